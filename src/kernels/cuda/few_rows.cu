/* SPDX-License-Identifier: Apache-2.0
   few_rows: C = A Bᵀ for 1 to ROWS rows of A, at the speed at which B is read. A warp makes one column of C
   for all rows: its lanes read a row of B in 16-byte pieces, every byte once, and A from L1. Plain
   multiply-adds: with so few rows the matrix unit would wait for memory too.

   Filled in by the printer: ROWS (at most 16), WARPS, UNROLLED (pieces of a lane in flight), CONSTANT_B (1:
   no kernel before this one writes B, so its first pieces are read before that has ended), what epilogue.cu
   takes (factors f16, bf16 or f32 as it is; rows of A and B aligned to 16 bytes, k a multiple of a piece). */
enum { THREADS = 32 * WARPS, PER = 16 / IN_BYTES };
DEVICE float wide(in_store v) {
#if IN_TYPE == F16_TYPE
    return f16_f32(v);
#elif IN_TYPE == BF16_TYPE
    return bf16_f32(v);
#else
    return (float)v;
#endif
}
typedef union ALIGNED16 {
    in_store one[PER];
    u32x4 all;
} piece;

KERNEL(hone_few_rows, hone_cuda_contract, THREADS, 1) {
    const int lane = THREAD % 32, n = BLOCK_X * WARPS + THREAD / 32, batch = BLOCK_Z;
    const bool mine = n < a->n;
    const in_store *b = (const in_store *)a->b + batch * a->batch_b + (i64)(mine ? n : 0) * a->pitch_b;
    const in_store *left = (const in_store *)a->a + batch * a->batch_a;
    piece right[UNROLLED];
    float sum[ROWS];
#define READ(at)                              \
    UNROLL for (int u = 0; u < UNROLLED; u++) \
        if ((at) + u * 32 * PER < a->k) right[u].all = load16_once(b + (at) + u * 32 * PER);
    launch_next();
    if (CONSTANT_B) { READ(lane * PER) }
    wait_previous();
    if (!mine) return;
    UNROLL for (int m = 0; m < ROWS; m++) sum[m] = 0;
    for (int k = lane * PER; k < a->k; k += 32 * PER * UNROLLED) {
        if (!CONSTANT_B || k >= 32 * PER) { READ(k) }
        UNROLL for (int u = 0; u < UNROLLED; u++)
            if (k + u * 32 * PER < a->k)
                UNROLL for (int m = 0; m < ROWS; m++)
                    if (m < a->m) {
                        piece x;
                        x.all = load16(left + m * a->pitch_a + k + u * 32 * PER);
                        UNROLL for (int e = 0; e < PER; e++)
                            sum[m] = fmaf(wide(x.one[e]), wide(right[u].one[e]), sum[m]);
                    }
    }
    UNROLL for (int m = 0; m < ROWS; m++)
        if (m < a->m) {
            UNROLL for (int step = 16; step > 0; step /= 2) sum[m] += shuffle_xor(sum[m], step);
            if (lane == 0)
                ((out_store *)a->c)[batch * a->batch_c + m * a->pitch_c + n] =
                    finish(a, (sum_type)sum[m], bias_at(a, n), 0, residual_at(a, batch, m, n), batch, m, n);
        }
}
