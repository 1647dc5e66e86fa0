/* SPDX-License-Identifier: Apache-2.0
   contract_wgmma: C = A Bᵀ on the matrix unit of warpgroups, for sm_90a, tiles by the copy engine. Also convolution over channels-last pixels,
   whose tiles of A the copy engine gathers (im2col).

   A block stays for many tiles of C. Its first warpgroup only asks for tiles of A and B, STAGES ahead; the others multiply, 64 rows each, and
   write their part of C while the next tile's factors are on their way. A stage's two barriers: `full` opens when its bytes have come, `empty`
   when every multiplying warpgroup has read it. Rows in shared memory are 128 bytes of K, swizzled; one wgmma takes 32 bytes of K whatever
   the type. K is split as in contract_mma.

   Filled in by the printer: CONSUMERS (multiplying warpgroups), TILE_N (a multiple of 16, up to 256), STAGES, SPLIT, WINDOW, STORE (1: C is
   aligned, the copy engine writes it), what epilogue.cu takes, and the function wgmma for TILE_N. */
enum {
    TILE_M = 64 * CONSUMERS,
    THREADS = 128 * (CONSUMERS + 1),
    ROW = 128, /* bytes */
    STEP_K = ROW / IN_BYTES,
    TILE_A = TILE_M * ROW,
    TILE_B = TILE_N * ROW,
    STAGE = TILE_A + TILE_B,
    OUT_ROW = ROW / OUT_BYTES, /* columns of C in a row of its stage: C lies there in panels of that width, swizzled */
    PANELS = (TILE_N + OUT_ROW - 1) / OUT_ROW,
    OUT_STAGE = 64 * ROW * PANELS, /* of one warpgroup */
    OUT_AT = STAGES * STAGE,
    BARRIERS_AT = OUT_AT + CONSUMERS * OUT_STAGE,
    SHARED_BYTES = BARRIERS_AT + 16 * STAGES + 16
};
#if WINDOW
typedef struct { hone_cuda_contract_tma t; hone_cuda_window w; } contract_args;
#define T (&a->t)
#else
typedef hone_cuda_contract_tma contract_args;
#define T a
#endif
#define P (&T->p)

DEVICE u64 operand(u32 at) { /* rows of 128 bytes, swizzled; 8 rows are 1024 bytes */
    return (u64)((at & 0x3ffffu) >> 4) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}
typedef struct { int batch, split, m0, n0, from, to; } work;
DEVICE int steps_of(const contract_args *a) {
#if WINDOW
    return a->w.kernel_y * a->w.kernel_x * ((a->w.channels + STEP_K - 1) / STEP_K);
#else
    return (P->k + STEP_K - 1) / STEP_K;
#endif
}
DEVICE work work_of(const contract_args *a, int t) {
    const int tiles_m = (P->m + TILE_M - 1) / TILE_M, tiles_n = (P->n + TILE_N - 1) / TILE_N, tiles = tiles_m * tiles_n;
    const int steps = steps_of(a);
    work w;
    int tm, tn;
    w.split = t % P->splits, t /= P->splits;
    w.batch = t / tiles;
    tile_of(t % tiles, tiles_m, tiles_n, &tm, &tn);
    w.m0 = tm * TILE_M, w.n0 = tn * TILE_N;
    w.from = (int)((i64)steps * w.split / P->splits), w.to = (int)((i64)steps * (w.split + 1) / P->splits);
    return w;
}
DEVICE int works_of(const contract_args *a) {
    return (P->m + TILE_M - 1) / TILE_M * ((P->n + TILE_N - 1) / TILE_N) * P->batches * P->splits;
}

/* One thread asks for the tiles of all works of this block, in order. */
DEVICE void bring(const contract_args *a, u32 shared, u32 full, u32 empty) {
    int s = 0;
    u32 turn = 0;
    for (int t = BLOCK_X; t < works_of(a); t += GRID_X) {
        const work w = work_of(a, t);
#if WINDOW
        const int pixels = a->w.out_height * a->w.out_width, slices = (a->w.channels + STEP_K - 1) / STEP_K;
        const int n = w.m0 / pixels, y = w.m0 % pixels / a->w.out_width * a->w.stride_y - a->w.pad_y,
                  x = w.m0 % a->w.out_width * a->w.stride_x - a->w.pad_x;
        for (int k = w.from; k < w.to; k++) {
            const int tap = k / slices, channel = k % slices * STEP_K;
#else
        for (int k = w.from; k < w.to; k++) {
#endif
            barrier_wait(empty + 8 * s, turn ^ 1);
            barrier_expect(full + 8 * s, STAGE);
#if WINDOW
            window_load(shared + s * STAGE, &T->map_a, full + 8 * s, channel, x, y, n, tap % a->w.kernel_x * a->w.dilation_x,
                        tap / a->w.kernel_x * a->w.dilation_y);
            tile_load(shared + s * STAGE + TILE_A, &T->map_b, full + 8 * s, channel, tap, w.n0);
#else
            tile_load(shared + s * STAGE, &T->map_a, full + 8 * s, k * STEP_K, w.m0, P->batch_a ? w.batch : 0);
            tile_load(shared + s * STAGE + TILE_A, &T->map_b, full + 8 * s, k * STEP_K, w.n0, P->batch_b ? w.batch : 0);
#endif
            if (++s == STAGES) s = 0, turn ^= 1;
        }
    }
}

/* The sums of one warpgroup's 64 rows into C, by way of its stage in shared memory. */
DEVICE void leave(const contract_args *a, const work *w, sum_type sum[TILE_N / 2], u32 stage, int group) {
    const int t = THREAD % 128, lane = t % 32, row = t / 32 * 16 + lane / 4, m0 = w->m0 + group * 64;
    if (t == 0) store_wait();      /* what left from here before has been read */
    sync_some(1 + group, 128);
    UNROLL for (int j = 0; j < TILE_N / 8; j++)
        UNROLL for (int half = 0; half < 2; half++) {
            const int r = row + 8 * half, c = j * 8 + lane % 4 * 2, m = m0 + r, n = w->n0 + c;
            const u32 at = stage + (u32)(c / OUT_ROW) * (64 * ROW) + swizzle((u32)(r * ROW + c % OUT_ROW * OUT_BYTES));
            union { out_store one[2]; u16 small; u32 word; u64 words; } v;
            UNROLL for (int e = 0; e < 2; e++) v.one[e] = m < P->m && n + e < P->n ? finish(P, sum[j * 4 + half * 2 + e], w->batch, m, n + e) : (out_store)0;
            if (OUT_BYTES == 1) shared_store2(at, v.small);
            else if (OUT_BYTES == 2) shared_store4(at, v.word);
            else shared_store8(at, v.words);
        }
#if STORE
    fence_proxy();
    sync_some(1 + group, 128);
    if (t == 0) {
        UNROLL for (int p = 0; p < PANELS; p++)
            if (w->n0 + p * OUT_ROW < P->n && m0 < P->m) tile_store(&T->map_c, stage + (u32)p * (64 * ROW), w->n0 + p * OUT_ROW, m0, w->batch);
        store_commit();
    }
#else
    sync_some(1 + group, 128);
    out_store *c = (out_store *)P->c + w->batch * P->batch_c;
    for (int i = t; i < 64 * TILE_N; i += 128) {
        const int r = i / TILE_N, column = i % TILE_N;
        if (m0 + r < P->m && w->n0 + column < P->n)
            c[(i64)(m0 + r) * P->pitch_c + w->n0 + column] =
                *(const out_store *)(hone_shared + (stage - shared_at(hone_shared)) + column / OUT_ROW * (64 * ROW) +
                                     swizzle((u32)(r * ROW + column % OUT_ROW * OUT_BYTES)));
    }
#endif
}

#if SPLIT
/* Sums of one part of K to the workspace; true for the last to come, whose sums are then those of all parts, added in their order. */
DEVICE bool gather(const contract_args *a, const work *w, int t, sum_type sum[TILE_N / 2], int group, u32 flag) {
    const int id = t / P->splits, thread = THREAD - 128;
    enum { TILE = TILE_M * TILE_N, STRIDE = 128 * CONSUMERS };
    sum_type *part = (sum_type *)P->workspace + (i64)id * P->splits * TILE;
    UNROLL for (int j = 0; j < TILE_N / 2; j++) part[(i64)w->split * TILE + j * STRIDE + thread] = sum[j];
    fence_gpu();
    sync_some(1 + group, 128);
    u32 *count = (u32 *)P->counters + (i64)id * CONSUMERS + group, *told = (u32 *)(hone_shared + (flag - shared_at(hone_shared))) + group;
    if (THREAD % 128 == 0) *told = atomic_count(count);
    sync_some(1 + group, 128);
    const bool last = *(const volatile u32 *)told == (u32)P->splits - 1;
    if (last) {
        fence_gpu();
        UNROLL for (int j = 0; j < TILE_N / 2; j++) {
            sum[j] = 0;
            for (int s = 0; s < P->splits; s++) sum[j] += ((const volatile sum_type *)part)[(i64)s * TILE + j * STRIDE + thread];
        }
        if (THREAD % 128 == 0) *count = 0; /* ready for the next run */
    }
    return last;
}
#endif

KERNEL(hone_contract, contract_args, THREADS, 1) {
    const u32 shared = shared_at(hone_shared), full = shared + BARRIERS_AT, empty = full + 8 * STAGES;
    const int group = THREAD / 128 - 1;
    if (THREAD == 0) {
        UNROLL for (int s = 0; s < STAGES; s++) barrier_init(full + 8 * s, 1), barrier_init(empty + 8 * s, CONSUMERS);
        barrier_fence();
    }
    sync_block();
    launch_next();
    wait_previous();
    if (group < 0) {
        if (CONSUMERS > 1) registers_less(40);
        if (THREAD == 0) bring(a, shared, full, empty);
    } else {
        if (CONSUMERS > 1) registers_more(232);
        int s = 0;
        u32 turn = 0;
        for (int t = BLOCK_X; t < works_of(a); t += GRID_X) {
            const work w = work_of(a, t);
            sum_type sum[TILE_N / 2];
            for (int k = w.from; k < w.to; k++) {
                barrier_wait(full + 8 * s, turn);
                const u64 left = operand(shared + s * STAGE + group * 64 * ROW), right = operand(shared + s * STAGE + TILE_A);
                wgmma_fence();
                UNROLL for (int q = 0; q < ROW / 32; q++) wgmma(sum, left + 2 * q, right + 2 * q, k > w.from || q > 0);
                wgmma_commit();
                if (k > w.from) { /* the stage before has been read */
                    wgmma_wait(1);
                    if (THREAD % 128 == 0) barrier_arrive(empty + 8 * (s ? s - 1 : STAGES - 1));
                }
                if (++s == STAGES) s = 0, turn ^= 1;
            }
            wgmma_wait(0);
            if (w.to > w.from) {
                if (THREAD % 128 == 0) barrier_arrive(empty + 8 * (s ? s - 1 : STAGES - 1));
            } else {
                UNROLL for (int j = 0; j < TILE_N / 2; j++) sum[j] = 0;
            }
#if SPLIT
            if (P->splits > 1 && !gather(a, &w, t, sum, group, empty + 8 * STAGES)) continue;
#endif
            leave(a, &w, sum, shared + OUT_AT + (u32)group * OUT_STAGE, group);
        }
        if (STORE && THREAD % 128 == 0) store_wait_all();
    }
}
