/* SPDX-License-Identifier: Apache-2.0
   few_rows_mma: C = A Bᵀ for up to 8 ROWS8 rows of A, at the speed at which B is read, on the matrix unit of
   warps. Rows of B are the unit's rows, rows of A its columns, and both come straight from memory into its
   registers: a sum does not mind the order of k, so a thread's 16 contiguous bytes
   of both factors are four words for two instructions, whatever k the instruction believes them to be. No
   shared memory until the end.

   A block has 16 columns of C; its warps take K in turns, and their sums are added in the order of warps.

   Filled in by the printer: ROWS8, WARPS, UNROLLED (steps of a warp in flight), CONSTANT_B (1: no kernel
   before this one writes B, so its first pieces are read before that has ended), what epilogue.cu takes (rows
   of A and B aligned to 16 bytes, k a multiple of a piece). */
enum {
    THREADS = 32 * WARPS,
    PER = 16 / IN_BYTES,
    STEP = 4 * PER,
    STRIDE = STEP * WARPS,
    OUTPUTS = 128 * ROWS8
};
typedef union ALIGNED16 {
    u32 word[4];
    u32x4 all;
} piece;
DEVICE piece read(const in_store *row, bool there) {
    piece v;
    if (there) v.all = load16_once(row);
    else v.word[0] = v.word[1] = v.word[2] = v.word[3] = 0;
    return v;
}

KERNEL(hone_few_rows, hone_cuda_contract, THREADS, 1) {
    const int lane = THREAD % 32, warp = THREAD / 32, n0 = BLOCK_X * 16, batch = BLOCK_Z,
              first = warp * STEP + lane % 4 * PER, row = lane / 4;
    const in_store *b = (const in_store *)a->b + batch * a->batch_b + (i64)(n0 + row) * a->pitch_b;
    const in_store *x = (const in_store *)a->a + batch * a->batch_a + (i64)row * a->pitch_a;
    const bool low = n0 + row < a->n, high = n0 + row + 8 < a->n;
    piece right[UNROLLED][2];
    sum_type sum[ROWS8][4];
#define READ(at)                                                        \
    UNROLL for (int u = 0; u < UNROLLED; u++) {                         \
        const int k_ = (at) + u * STRIDE;                               \
        right[u][0] = read(b + k_, low && k_ < a->k),                   \
        right[u][1] = read(b + 8 * a->pitch_b + k_, high && k_ < a->k); \
    }
    launch_next();
    if (CONSTANT_B) { READ(first) }
    wait_previous();
    UNROLL for (int j = 0; j < ROWS8; j++)
        UNROLL for (int e = 0; e < 4; e++) sum[j][e] = 0;
    /* all lanes of a warp stay together */
    for (int k = first; k - lane % 4 * PER < a->k; k += STRIDE * UNROLLED) {
        if (!CONSTANT_B || k != first) { READ(k) }
        UNROLL for (int u = 0; u < UNROLLED; u++)
            UNROLL for (int j = 0; j < ROWS8; j++) {
                const int at = k + u * STRIDE;
                piece left;
                if (j * 8 + row < a->m && at < a->k) left.all = load16(x + j * 8 * a->pitch_a + at);
                else left.word[0] = left.word[1] = left.word[2] = left.word[3] = 0;
                UNROLL for (int h = 0; h < 4; h += 2) {
                    const u32 rows[4] = {right[u][0].word[h], right[u][1].word[h], right[u][0].word[h + 1],
                                         right[u][1].word[h + 1]};
                    const u32 columns[2] = {left.word[h], left.word[h + 1]};
                    MMA_TURNED(sum[j], rows, columns);
                }
            }
    }
    sum_type *all = (sum_type *)hone_shared; /* [warp][row of A][column of C] */
    UNROLL for (int j = 0; j < ROWS8; j++)
        UNROLL for (int e = 0; e < 4; e++)
            all[warp * OUTPUTS + (j * 8 + lane % 4 * 2 + e % 2) * 16 + row + e / 2 * 8] = sum[j][e];
    sync_block();
    for (int i = THREAD; i < OUTPUTS; i += THREADS) {
        const int m = i / 16, n = n0 + i % 16;
        sum_type total = 0;
        UNROLL for (int w = 0; w < WARPS; w++) total += all[w * OUTPUTS + i];
        if (m < a->m && n < a->n)
            ((out_store *)a->c)[batch * a->batch_c + m * a->pitch_c + n] =
                finish(a, total, bias_at(a, n), whole_at(a, n), residual_at(a, batch, m, n), batch, m, n);
    }
}
