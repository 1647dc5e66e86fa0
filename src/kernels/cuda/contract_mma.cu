/* SPDX-License-Identifier: Apache-2.0
   contract_mma: C = A Bᵀ on the matrix unit of warps (mma.sync), for sm_80 and later, and where addresses are
   not aligned enough for the copy engine. Also convolution, as an implicit product whose rows are pixels.

   Rows of both tiles in shared memory are 128 bytes of K, swizzled. STAGES of them are filled by
   asynchronous copies while the oldest is multiplied. One instruction takes 32 bytes of K whatever the type,
   so f16, bf16, tf32 and int8 are one loop. Where tiles are few, K is split over `splits` blocks: each
   writes its sums to the workspace, and the last one to arrive adds them in order, so the bits do not depend
   on who was last.

   Filled in by the printer: TILE_M, TILE_N, WARPS_M, WARPS_N, STAGES, PIECE (bytes of one copy: 16, 4, or the
   size of an element), SPLIT (1: K may be split), WINDOW (1: rows of A are windows of an image), and what
   epilogue.cu takes. */
enum {
    THREADS = 32 * WARPS_M * WARPS_N,
    ROW = 128, /* bytes */
    STEP_K = ROW / IN_BYTES,
    WARP_M = TILE_M / WARPS_M,
    WARP_N = TILE_N / WARPS_N,
    BLOCKS_M = WARP_M / 16,
    BLOCKS_N = WARP_N / 8,
    STAGE = (TILE_M + TILE_N) * ROW,
    PIECES = ROW / 16, /* a row's pieces of 16 bytes; a thread fills the same piece of some rows */
    ROWS_AT_ONCE = THREADS / PIECES,
    OUT_PITCH = TILE_N * OUT_BYTES + 16
};

/* 16 bytes of shared memory from `left` elements of global memory (may be 0 or less, or more than fit). */
DEVICE void fill(u32 to, const in_store *from, int left) {
    const int bytes = left <= 0 ? 0 : left * IN_BYTES < 16 ? left * IN_BYTES : 16;
    if (PIECE == 16) copy16(to, from, bytes);
    else if (PIECE == 4)
        UNROLL for (int p = 0; p < 4; p++) {
            const int some = bytes - 4 * p;
            copy4(to + 4 * p, from + 4 / IN_BYTES * (some > 0 ? p : 0), some <= 0 ? 0 : some < 4 ? some : 4);
        }
    else { /* element by element */
        union ALIGNED16 {
            in_store one[16 / IN_BYTES];
            u32x4 all;
        } v;
        UNROLL for (int e = 0; e < 16 / IN_BYTES; e++) v.one[e] = e < left ? from[e] : (in_store)0;
        shared_store16(to, v.all);
    }
}
#if WINDOW
typedef struct {
    hone_cuda_contract p;
    hone_cuda_window w;
} contract_args;
#define P (&a->p)
#define W (&a->w)
/* A row is the window of one output pixel; column k of it is (tap, channel). Pieces of 16 bytes stay within
   a tap where the channels allow it. Of a grouped convolution a batch is one group: w.channels and p.n are a
   group's, pixels have the channels of all, batch_c and batch_residual are p.n (a group's outputs stand
   beside the next one's), and biases are those of all groups. */
typedef struct {
    const in_store *image;
    int y, x;
    bool there;
} row_start;
DEVICE row_start start_row(const contract_args *a, int batch, int m) {
    row_start r;
    const int pixels = W->out_height * W->out_width, at = m % pixels;
    r.there = m < P->m;
    r.image = (const in_store *)P->a +
              ((i64)(r.there ? m / pixels : 0) * W->height * W->width * P->batches + batch) * W->channels;
    r.y = at / W->out_width * W->stride_y - W->pad_y, r.x = at % W->out_width * W->stride_x - W->pad_x;
    return r;
}
DEVICE const in_store *pixel(const contract_args *a, const row_start *r, int k, int *channel) {
    const int tap = k / W->channels, y = r->y + tap / W->kernel_x * W->dilation_y,
              x = r->x + tap % W->kernel_x * W->dilation_x;
    *channel = k - tap * W->channels;
    if (!r->there || k >= P->k || y < 0 || y >= W->height || x < 0 || x >= W->width) return 0;
    return r->image + ((i64)y * W->width + x) * P->batches * W->channels + *channel;
}
DEVICE void fill_row(const contract_args *a, const row_start *r, u32 to, int k, int last) {
    int channel;
    if (PIECE == 16) { /* channels are a multiple of a piece */
        const in_store *p = pixel(a, r, k, &channel);
        fill(to, p ? p : (const in_store *)P->a, p && k < last ? 16 / IN_BYTES : 0);
    } else {
        union ALIGNED16 {
            in_store one[16 / IN_BYTES];
            u32x4 all;
        } v;
        UNROLL for (int e = 0; e < 16 / IN_BYTES; e++) {
            const in_store *p = pixel(a, r, k + e, &channel);
            v.one[e] = p && k + e < last ? *p : (in_store)0;
        }
        shared_store16(to, v.all);
    }
}
#else
typedef hone_cuda_contract contract_args;
#define P a
typedef struct {
    const in_store *row;
    bool there;
} row_start;
DEVICE row_start start_row(const contract_args *a, int batch, int m) {
    row_start r;
    r.there = m < P->m;
    r.row = (const in_store *)P->a + batch * P->batch_a + (i64)(r.there ? m : 0) * P->pitch_a;
    return r;
}
DEVICE void fill_row(const contract_args *a, const row_start *r, u32 to, int k, int last) {
    (void)a;
    fill(to, k < last ? r->row + k : r->row, r->there ? last - k : 0);
}
#endif

KERNEL(hone_contract, contract_args, THREADS, 1) {
    const u32 shared = shared_at(hone_shared);
    const int lane = THREAD % 32, warp = THREAD / 32, warp_m = warp % WARPS_M, warp_n = warp / WARPS_M;
    const int tiles_m = (P->m + TILE_M - 1) / TILE_M, tiles_n = (P->n + TILE_N - 1) / TILE_N;
    const int batch = BLOCK_Z / P->splits, split = BLOCK_Z % P->splits;
#if WINDOW
    contract_args group = *a;
    group.p.bias += (u64)batch * (u64)P->n * 4, group.p.whole += (u64)batch * (u64)P->n * 4;
    a = &group;
#endif
    int tm, tn;
    tile_of(BLOCK_X, tiles_m, tiles_n, &tm, &tn);
    const int m0 = tm * TILE_M, n0 = tn * TILE_N;
    const int steps = (P->k + STEP_K - 1) / STEP_K, from = (int)((i64)steps * split / P->splits),
              to = (int)((i64)steps * (split + 1) / P->splits);

    /* what this thread fills: one piece of every ROWS_AT_ONCE-th row */
    const int piece = THREAD % PIECES, row0 = THREAD / PIECES;
    row_start mine[(TILE_M + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE];
    UNROLL for (int r = 0; r * ROWS_AT_ONCE < TILE_M; r++)
        mine[r] = start_row(a, batch, m0 + row0 + r * ROWS_AT_ONCE);
    const in_store *b = (const in_store *)P->b + batch * P->batch_b;
    launch_next();
    wait_previous();

#define FILL(step)                                                                                          \
    if ((step) < to) {                                                                                      \
        const u32 stage = shared + (u32)((step) % STAGES) * STAGE;                                          \
        const int k = (step)*STEP_K + piece * (16 / IN_BYTES);                                              \
        UNROLL for (int r = 0; r * ROWS_AT_ONCE < TILE_M; r++)                                              \
            if (row0 + r * ROWS_AT_ONCE < TILE_M)                                                           \
                fill_row(a, &mine[r], stage + swizzle((u32)((row0 + r * ROWS_AT_ONCE) * ROW + piece * 16)), \
                         k, P->k);                                                                          \
        UNROLL for (int r = 0; r * ROWS_AT_ONCE < TILE_N; r++) {                                            \
            const int row = row0 + r * ROWS_AT_ONCE, n = n0 + row;                                          \
            const bool there = n < P->n && k < P->k;                                                        \
            if (row < TILE_N)                                                                               \
                fill(stage + TILE_M * ROW + swizzle((u32)(row * ROW + piece * 16)),                         \
                     b + (there ? (i64)n * P->pitch_b + k : 0), there ? P->k - k : 0);                      \
        }                                                                                                   \
    }                                                                                                       \
    copy_commit();

    sum_type sum[BLOCKS_M][BLOCKS_N][4];
    UNROLL for (int i = 0; i < BLOCKS_M; i++)
        UNROLL for (int j = 0; j < BLOCKS_N; j++)
            UNROLL for (int e = 0; e < 4; e++) sum[i][j][e] = 0;
    UNROLL for (int s = 0; s < STAGES - 1; s++) { FILL(from + s) }

    for (int step = from; step < to; step++) {
        copy_wait(STAGES - 2);
        sync_block(); /* this stage is there for all, and the one before it has been read by all */
        FILL(step + STAGES - 1)
        const u32 tile_a = shared + (u32)(step % STAGES) * STAGE, tile_b = tile_a + TILE_M * ROW;
        UNROLL for (int k = 0; k < ROW / 32; k++) {
            u32 left[BLOCKS_M][4], right[(BLOCKS_N + 1) / 2][4];
            UNROLL for (int i = 0; i < BLOCKS_M; i++)
                matrix_load(left[i], tile_a + swizzle((u32)((warp_m * WARP_M + i * 16 + lane % 16) * ROW +
                                                            k * 32 + lane / 16 * 16)));
            UNROLL for (int j = 0; j < BLOCKS_N / 2; j++)
                matrix_load(right[j],
                            tile_b +
                                swizzle((u32)((warp_n * WARP_N + j * 16 + lane / 16 * 8 + lane % 8) * ROW +
                                              k * 32 + lane / 8 % 2 * 16)));
            UNROLL for (int i = 0; i < BLOCKS_M; i++)
                UNROLL for (int j = 0; j < BLOCKS_N; j++) MMA(sum[i][j], left[i], right[j / 2] + j % 2 * 2);
        }
    }
    copy_wait(0);
    sync_block();

    /* where this thread's sums belong: rows lane/4 and 8 below, two columns */
    const int row_in = warp_m * WARP_M + lane / 4, column_in = warp_n * WARP_N + lane % 4 * 2;
#if SPLIT
    if (P->splits > 1) {
        const i64 tiles = (i64)tiles_m * tiles_n, tile = batch * tiles + BLOCK_X;
        typedef union ALIGNED16 {
            sum_type one[4];
            u32x4 all;
        } four_sums;
        enum { PART = BLOCKS_M * BLOCKS_N * THREADS };
        four_sums *part = (four_sums *)P->workspace + tile * P->splits * PART + THREAD;
        UNROLL for (int i = 0; i < BLOCKS_M; i++)
            UNROLL for (int j = 0; j < BLOCKS_N; j++) {
                four_sums v;
                UNROLL for (int e = 0; e < 4; e++) v.one[e] = sum[i][j][e];
                store16(part + (i64)split * PART + (i * BLOCKS_N + j) * THREADS, v.all);
            }
        fence_gpu();
        sync_block();
        if (THREAD == 0) *(u32 *)hone_shared = atomic_count((u32 *)P->counters + tile);
        sync_block();
        const bool last = *(const volatile u32 *)hone_shared == (u32)P->splits - 1;
        if (!last) return;
        if (THREAD == 0) ((u32 *)P->counters)[tile] = 0; /* ready for the next run */
        fence_gpu();
        UNROLL for (int i = 0; i < BLOCKS_M; i++)
            UNROLL for (int j = 0; j < BLOCKS_N; j++)
                UNROLL for (int e = 0; e < 4; e++) sum[i][j][e] = 0;
        for (int s = 0; s < P->splits; s++)
            UNROLL for (int i = 0; i < BLOCKS_M; i++) {
                four_sums v[BLOCKS_N]; /* all asked for before the first is added */
                UNROLL for (int j = 0; j < BLOCKS_N; j++)
                    v[j].all = load16_l2(part + (i64)s * PART + (i * BLOCKS_N + j) * THREADS);
                UNROLL for (int j = 0; j < BLOCKS_N; j++)
                    UNROLL for (int e = 0; e < 4; e++) sum[i][j][e] += v[j].one[e];
            }
        sync_block();
    }
#endif
    /* through shared memory, so that rows leave in whole lines */
    UNROLL for (int i = 0; i < BLOCKS_M; i++)
        UNROLL for (int j = 0; j < BLOCKS_N; j++)
            UNROLL for (int e = 0; e < 4; e++) {
                const int r = row_in + i * 16 + e / 2 * 8, c = column_in + j * 8 + e % 2, m = m0 + r,
                          n = n0 + c;
                *(out_store *)(hone_shared + r * OUT_PITCH + c * OUT_BYTES) =
                    finish(P, sum[i][j][e], bias_at(P, n), whole_at(P, n), residual_at(P, batch, m, n),
                           batch, m, n);
            }
    sync_block();
    out_store *c = (out_store *)P->c + batch * P->batch_c;
    const int a_row = TILE_N * OUT_BYTES / 16, per = 16 / OUT_BYTES;
    for (int t = THREAD; t < TILE_M * a_row; t += THREADS) {
        const int r = t / a_row, column = t % a_row * per;
        if (m0 + r >= P->m || n0 + column >= P->n) continue;
        out_store *p = c + (i64)(m0 + r) * P->pitch_c + n0 + column;
        const char *s = hone_shared + r * OUT_PITCH + column * OUT_BYTES;
        if (n0 + column + per <= P->n && (u64)p % 16 == 0) store16(p, *(const u32x4 *)s);
        else
            for (int e = 0; e < per && n0 + column + e < P->n; e++) p[e] = ((const out_store *)s)[e];
    }
}
