/* SPDX-License-Identifier: Apache-2.0
   contract_wgmma: C = A Bᵀ on the matrix unit of warpgroups, for sm_90a, tiles by the copy engine. Also convolution over channels-last pixels,
   whose tiles of A the copy engine gathers (im2col).

   A block stays for many tiles of C. Its first warpgroup only asks for tiles of A and B, STAGES ahead; the others multiply, 64 rows each, and
   write their part of C while the next tile's factors are on their way. A stage's two barriers: `full` opens when its bytes have come, `empty`
   when every multiplying warpgroup has read it. Rows in shared memory are 128 bytes of K, swizzled; one wgmma takes 32 bytes of K whatever
   the type. K is split as in contract_mma.

   With CLUSTER 2, two blocks take tiles below each other, and each brings half of the B tile for both: B comes from L2 once for two. A stage is
   then empty when both blocks have read it.

   Filled in by the printer: CONSUMERS (multiplying warpgroups), TILE_N (a multiple of 16, up to 256), STAGES, CLUSTER (1 or 2), BLOCKS (of them on
   a multiprocessor), SPLIT, WINDOW,
   STORE (1: C is aligned and a tile's rows are whole panels, the copy engine writes it), CONSTANT_B (1: no kernel before this one writes B), what
   epilogue.cu takes, and the function wgmma for TILE_N. A part of K is never empty: splits are at most the steps. */
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
    SLOTS = PANELS < 2 ? PANELS : 2, /* panels of a warpgroup in shared memory: one is written while one leaves */
    OUT_STAGE = 64 * ROW * SLOTS,
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
DEVICE int rows_of_tiles(const contract_args *a) { return (P->m + TILE_M * CLUSTER - 1) / (TILE_M * CLUSTER); } /* one for a cluster */
DEVICE work work_of(const contract_args *a, int t) {
    const int tiles_m = rows_of_tiles(a), tiles_n = (P->n + TILE_N - 1) / TILE_N, tiles = tiles_m * tiles_n;
    const int steps = steps_of(a);
    work w;
    int tm, tn;
    w.split = t % P->splits, t /= P->splits;
    w.batch = t / tiles;
    tile_of(t % tiles, tiles_m, tiles_n, &tm, &tn);
    w.m0 = (tm * CLUSTER + BLOCK_X % CLUSTER) * TILE_M, w.n0 = tn * TILE_N;
    w.from = (int)((i64)steps * w.split / P->splits), w.to = (int)((i64)steps * (w.split + 1) / P->splits);
    return w;
}
DEVICE int works_of(const contract_args *a) {
    return rows_of_tiles(a) * ((P->n + TILE_N - 1) / TILE_N) * P->batches * P->splits;
}

/* Where in K the next tiles are. Of windows: which tap and which of its channels, counted on instead of divided anew. */
typedef struct {
    int k;
#if WINDOW
    int channel, tap, tap_x, tap_y, x, y, n; /* x, y, n: the first pixel of the tile's first window */
#endif
} cursor;
DEVICE cursor cursor_at(const contract_args *a, const work *w) {
    cursor c;
    c.k = w->from;
#if WINDOW
    const int pixels = a->w.out_height * a->w.out_width, slices = (a->w.channels + STEP_K - 1) / STEP_K, at = w->m0 % pixels;
    c.tap = c.k / slices, c.channel = c.k % slices * STEP_K, c.tap_y = c.tap / a->w.kernel_x, c.tap_x = c.tap % a->w.kernel_x;
    c.n = w->m0 / pixels, c.y = at / a->w.out_width * a->w.stride_y - a->w.pad_y, c.x = at % a->w.out_width * a->w.stride_x - a->w.pad_x;
#endif
    return c;
}
DEVICE void cursor_next(const contract_args *a, cursor *c) {
    (void)a;
    c->k++;
#if WINDOW
    c->channel += STEP_K;
    if (c->channel >= a->w.channels) {
        c->channel = 0, c->tap++, c->tap_x++;
        if (c->tap_x == a->w.kernel_x) c->tap_x = 0, c->tap_y++;
    }
#endif
}
/* A tile of A: rows, or the pixels that one tap of the windows sees. */
DEVICE void bring_a(const contract_args *a, u32 to, u32 barrier, const work *w, const cursor *c) {
#if WINDOW
    (void)w;
    window_load(to, &T->map_a, barrier, c->channel, c->x, c->y, c->n, c->tap_x * a->w.dilation_x, c->tap_y * a->w.dilation_y);
#else
    tile_load(to, &T->map_a, barrier, c->k * STEP_K, w->m0, P->batch_a ? w->batch : 0);
#endif
}
/* A tile of B, or this block's part of it for all blocks of the cluster. */
DEVICE void bring_b(const contract_args *a, u32 to, u32 barrier, const work *w, const cursor *c) {
    const int from = w->n0 + BLOCK_X % CLUSTER * (TILE_N / CLUSTER);
#if WINDOW
    const int c0 = c->channel, c1 = c->tap, c2 = from;
#else
    const int c0 = c->k * STEP_K, c1 = from, c2 = P->batch_b ? w->batch : 0;
#endif
#if CLUSTER > 1
    tile_load_all(to + (u32)(BLOCK_X % CLUSTER * (TILE_B / CLUSTER)), &T->map_b, barrier, c0, c1, c2, (1 << CLUSTER) - 1);
#else
    tile_load(to, &T->map_b, barrier, c0, c1, c2);
#endif
}
/* This thread's warpgroup has read the stage: tells all who bring to it. */
DEVICE void release(u32 empty) {
#if CLUSTER > 1
    if (THREAD % 128 < CLUSTER) barrier_arrive_at(empty, THREAD % 128);
#else
    if (THREAD % 128 == 0) barrier_arrive(empty);
#endif
}
/* One thread asks for the tiles of all works of this block, in order. Where B is constant, its first tiles are asked for before the kernel
   ahead of this one has ended. */
DEVICE void bring(const contract_args *a, u32 shared, u32 full, u32 empty) {
    int s = 0, early = 0;
    u32 turn = 0;
    if (CONSTANT_B && CLUSTER == 1 && BLOCK_X < works_of(a)) {
        const work w = work_of(a, BLOCK_X);
        cursor c = cursor_at(a, &w);
        for (; early < STAGES && c.k < w.to; early++, cursor_next(a, &c)) {
            barrier_expect(full + 8 * early, STAGE);
            bring_b(a, shared + early * STAGE + TILE_A, full + 8 * early, &w, &c);
        }
    }
    wait_previous();
    for (int t = BLOCK_X / CLUSTER; t < works_of(a); t += GRID_X / CLUSTER) {
        const work w = work_of(a, t);
        for (cursor c = cursor_at(a, &w); c.k < w.to; cursor_next(a, &c)) {
            if (early > 0) early--;
            else {
                barrier_wait(empty + 8 * s, turn ^ 1);
                barrier_expect(full + 8 * s, STAGE);
                bring_b(a, shared + s * STAGE + TILE_A, full + 8 * s, &w, &c);
            }
            bring_a(a, shared + s * STAGE, full + 8 * s, &w, &c);
            if (++s == STAGES) s = 0, turn ^= 1;
        }
    }
}

/* The sums of one warpgroup's 64 rows into C, panel by panel, by way of its slots in shared memory. */
DEVICE void leave(const contract_args *a, const work *w, sum_type sum[TILE_N / 2], u32 stage, int group) {
    const int t = THREAD % 128, lane = t % 32, row = t / 32 * 16 + lane / 4, m0 = w->m0 + group * 64;
    enum { EIGHTS = (TILE_N < OUT_ROW ? TILE_N : OUT_ROW) / 8 }; /* groups of 8 columns in a panel */
    UNROLL for (int p = 0; p < PANELS; p++) {
        const u32 slot = stage + (u32)(p % SLOTS) * (64 * ROW);
        /* all that the epilogue reads is asked for at once */
        float bias[EIGHTS][2], residual[EIGHTS][2][2];
        UNROLL for (int j = 0; j < EIGHTS; j++)
            UNROLL for (int e = 0; e < 2; e++) {
                const int n = w->n0 + p * OUT_ROW + j * 8 + lane % 4 * 2 + e;
                bias[j][e] = bias_at(P, n);
                UNROLL for (int half = 0; half < 2; half++) residual[j][half][e] = residual_at(P, w->batch, m0 + row + 8 * half, n);
            }
        if (STORE && t == 0) { /* what left from this slot before has been read */
            if (p == 0) store_wait(0);
            else if (p >= SLOTS) store_wait(SLOTS - 1);
        }
        sync_some(1 + group, 128);
        UNROLL for (int j = 0; j < EIGHTS; j++) {
            const int column = p * OUT_ROW + j * 8; /* of the tile */
            if (column >= TILE_N) continue;
            UNROLL for (int half = 0; half < 2; half++) {
                const int r = row + 8 * half, c = j * 8 + lane % 4 * 2;
                const u32 at = slot + swizzle((u32)(r * ROW + c * OUT_BYTES));
                union { out_store one[2]; u16 small; u32 word; u64 words; } v;
                UNROLL for (int e = 0; e < 2; e++)
                    v.one[e] = finish(P, sum[column / 2 + half * 2 + e], bias[j][e], residual[j][half][e], w->batch, m0 + r, w->n0 + p * OUT_ROW + c + e);
                if (OUT_BYTES == 1) shared_store2(at, v.small);
                else if (OUT_BYTES == 2) shared_store4(at, v.word);
                else shared_store8(at, v.words);
            }
        }
        if (STORE) fence_proxy();
        sync_some(1 + group, 128);
#if STORE
        if (t == 0) {
            if (w->n0 + p * OUT_ROW < P->n && m0 < P->m) tile_store(&T->map_c, slot, w->n0 + p * OUT_ROW, m0, w->batch);
            store_commit();
        }
#else
        enum { PER = 16 / OUT_BYTES, WIDE = (TILE_N < OUT_ROW ? TILE_N : OUT_ROW) / PER };
        out_store *c = (out_store *)P->c + w->batch * P->batch_c;
        for (int i = t; i < 64 * WIDE; i += 128) {
            const int r = i / WIDE, first = i % WIDE * PER, n = w->n0 + p * OUT_ROW + first;
            if (m0 + r >= P->m || n >= P->n || p * OUT_ROW + first >= TILE_N) continue;
            union ALIGNED16 { out_store one[PER]; u32x4 all; } v;
            v.all = shared_load16(slot + swizzle((u32)(r * ROW + first * OUT_BYTES)));
            out_store *to = c + (i64)(m0 + r) * P->pitch_c + n;
            if (n + PER <= P->n && (u64)to % 16 == 0) store16(to, v.all);
            else
                UNROLL for (int e = 0; e < PER; e++)
                    if (n + e < P->n) to[e] = v.one[e];
        }
#endif
    }
}

#if SPLIT
/* Sums of one part of K to the workspace; true for the last to come, whose sums are then those of all parts, added in their order. */
typedef union ALIGNED16 { sum_type one[4]; u32x4 all; } four_sums;
DEVICE bool gather(const contract_args *a, const work *w, int t, sum_type sum[TILE_N / 2], int group, u32 flag) {
    const int id = t / P->splits * CLUSTER + BLOCK_X % CLUSTER, thread = THREAD - 128;
    enum { FOURS = TILE_N / 8, STRIDE = 128 * CONSUMERS, PART = FOURS * STRIDE, BATCH = FOURS < 8 ? FOURS : 8 };
    four_sums *part = (four_sums *)P->workspace + (i64)id * P->splits * PART + thread;
    const bool there = w->m0 + group * 64 + thread % 128 / 32 * 16 + thread % 32 / 4 < P->m; /* of few rows most threads have none */
    UNROLL for (int j = 0; j < FOURS; j++) {
        four_sums v;
        if (!there) continue;
        UNROLL for (int e = 0; e < 4; e++) v.one[e] = sum[j * 4 + e];
        store16(part + (i64)w->split * PART + j * STRIDE, v.all);
    }
    fence_gpu();
    sync_some(1 + group, 128);
    u32 *count = (u32 *)P->counters + (i64)id * CONSUMERS + group, *told = (u32 *)(hone_shared + (flag - shared_at(hone_shared))) + group;
    if (THREAD % 128 == 0) *told = atomic_count(count);
    sync_some(1 + group, 128);
    if (*(const volatile u32 *)told != (u32)P->splits - 1) return false;
    fence_gpu();
    UNROLL for (int j = 0; j < TILE_N / 2; j++) sum[j] = 0;
    for (int s = 0; s < P->splits && there; s++)
        UNROLL for (int j0 = 0; j0 < FOURS; j0 += BATCH) { /* many asked for before the first is added */
            four_sums v[BATCH];
            UNROLL for (int j = 0; j < BATCH; j++) 
                if (j0 + j < FOURS) v[j].all = load16_l2(part + (i64)s * PART + (j0 + j) * STRIDE);
            UNROLL for (int j = 0; j < BATCH; j++)
                UNROLL for (int e = 0; e < 4; e++)
                    if (j0 + j < FOURS) sum[(j0 + j) * 4 + e] += v[j].one[e];
        }
    if (THREAD % 128 == 0) *count = 0; /* ready for the next run */
    return true;
}
#endif

KERNEL(hone_contract, contract_args, THREADS, BLOCKS) {
    const u32 shared = shared_at(hone_shared), full = shared + BARRIERS_AT, empty = full + 8 * STAGES;
    const int group = THREAD / 128 - 1;
    if (THREAD == 0) {
        map_prefetch(&T->map_a), map_prefetch(&T->map_b);
        if (STORE) map_prefetch(&T->map_c);
        UNROLL for (int s = 0; s < STAGES; s++) barrier_init(full + 8 * s, 1), barrier_init(empty + 8 * s, CONSUMERS * CLUSTER);
        barrier_fence();
    }
#if CLUSTER > 1
    sync_cluster();
#else
    sync_block();
#endif
    launch_next();
    if (group < 0) {
        if (CONSUMERS > 1) registers_less(40);
        if (THREAD == 0) bring(a, shared, full, empty);
    } else {
        if (CONSUMERS > 1) registers_more(232);
        wait_previous();
        int s = 0;
        u32 turn = 0;
        for (int t = BLOCK_X / CLUSTER; t < works_of(a); t += GRID_X / CLUSTER) {
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
                    release(empty + 8 * (s ? s - 1 : STAGES - 1));
                }
                if (++s == STAGES) s = 0, turn ^= 1;
            }
            wgmma_wait(0);
            release(empty + 8 * (s ? s - 1 : STAGES - 1));
#if SPLIT
            if (P->splits > 1 && !gather(a, &w, t, sum, group, empty + 8 * STAGES)) continue;
#endif
            leave(a, &w, sum, shared + OUT_AT + (u32)group * OUT_STAGE, group);
        }
        if (STORE && THREAD % 128 == 0) store_wait(0); /* shared memory lives until it has been read */
    }
#if CLUSTER > 1
    sync_cluster(); /* the other block may still write here */
#endif
}
