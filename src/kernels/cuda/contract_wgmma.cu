/* SPDX-License-Identifier: Apache-2.0
   contract_wgmma: C = A Bᵀ on the matrix unit of warpgroups, for sm_90a, tiles by the copy engine. Also
   convolution over channels-last pixels, whose tiles of A the copy engine gathers (im2col).

   A block stays for many tiles of C. One of its last warps only asks for tiles of A, another for tiles of B,
   STAGES ahead; the warpgroups before them multiply, 64 rows each, and write their part of C while the next
   tile's factors are on their way. A stage's two barriers: `full` opens when its bytes have come, `empty`
   when every multiplying warpgroup has read it. Rows in shared memory are 128 bytes of K, swizzled; one
   wgmma takes 32 bytes of K whatever the type.

   Where there are too few tiles, SPLITS blocks of a cluster share one: each has a part of K, then each adds
   up and writes 1 / SPLITS of the tile's columns, reading the others' sums from their shared memory, in the
   order of parts.

   The small products of a network last a few microseconds, and a step of a small tile a tenth of one. So a
   block knows its first tile before it waits for the kernel ahead; constant factors come before that has
   ended; what asks for tiles is one thread, and the compiler knows it (elect):
   it makes a loop over threads around each request otherwise; and loops' counters are equal in a warp, which
   the compiler knows too.

   Filled in by the printer: CONSUMERS (multiplying warpgroups), TILE_N (a multiple of 16, up to 256), STAGES,
   SPLITS (1 to 8, a divisor of TILE_N / 8), BLOCKS (of them on a multiprocessor), WINDOW, STORE (1: C is
   aligned and a tile's rows are whole panels or all that C has, the copy engine writes it; 2: so is the
   residual, and the engine brings it to where C's rows leave from, while the unit multiplies),
   CONSTANT_B (1: no kernel before this one writes B), what epilogue.cu takes, and the function wgmma for
   TILE_N. A part of K is never empty: splits are at most the steps. */
enum {
    TILE_M = 64 * CONSUMERS,
    SHIFT = CONSUMERS > 1 && BLOCKS == 1, /* of registers to those who multiply, by whole warpgroups */
    THREADS = 128 * CONSUMERS + (SHIFT ? 128 : 64),
    ROW = 128, /* bytes */
    STEP_K = ROW / IN_BYTES,
    TILE_A = TILE_M * ROW,
    TILE_B = TILE_N * ROW,
    STAGE = TILE_A + TILE_B,
    END_N = TILE_N / SPLITS, /* columns of C that a block writes */
    /* columns of C in a row of its stage: C lies there in panels of that width, swizzled */
    OUT_ROW = ROW / OUT_BYTES,
    PANELS = (END_N + OUT_ROW - 1) / OUT_ROW,
    /* panels of a warpgroup in shared memory: with two, one is written while one leaves */
    SLOTS = PANELS < 2 || BLOCKS > 1 ? 1 : 2,
    OUT_STAGE = 64 * ROW * SLOTS,
    OUT_AT = STAGES * STAGE,
    BARRIERS_AT = OUT_AT + CONSUMERS * OUT_STAGE,
    BEFORE_AT = BARRIERS_AT + 16 * STAGES, /* barriers of the residual's panels */
    SHARED_BYTES = BEFORE_AT + 16 * CONSUMERS,
    OWN = (END_N + 31) / 32 /* values of the bias that a thread keeps for its warp */
};
#if WINDOW
typedef struct {
    hone_cuda_contract_tma t;
    hone_cuda_window w;
} contract_args;
#define T (&a->t)
#else
typedef hone_cuda_contract_tma contract_args;
#define T a
#endif
#define P (&T->p)

DEVICE u64 operand(u32 at) { /* rows of 128 bytes, swizzled; 8 rows are 1024 bytes */
    return (u64)((at & 0x3ffffu) >> 4) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}
typedef struct {
    int batch, m0, n0, from, to;
} work;
DEVICE int steps_of(const contract_args *a) {
#if WINDOW
    return a->w.kernel_y * a->w.kernel_x * ((a->w.channels + STEP_K - 1) / STEP_K);
#else
    return (P->k + STEP_K - 1) / STEP_K;
#endif
}
DEVICE u32 divided(u32 x, u32 by) { return by ? upper_product(x, by) : x; }
DEVICE work work_of(const contract_args *a, u32 t) {
    const hone_cuda_walk *o = &T->walk;
    const u32 batch = divided(t, o->by_tiles), in = t - batch * o->tiles, group = divided(in, o->by_group),
              within = in - group * o->group;
    const u32 tn = group + 1 == o->groups ? divided(within, o->by_last) : within / GROUP;
    const u32 tm = group * GROUP + within - tn * (group + 1 == o->groups ? o->last : GROUP);
    const int steps = steps_of(a), rank = BLOCK_X % SPLITS;
    work w;
    w.batch = (int)batch, w.m0 = (int)tm * TILE_M, w.n0 = (int)tn * TILE_N;
    w.from = steps * rank / SPLITS, w.to = steps * (rank + 1) / SPLITS;
    return w;
}

/* Where in K the next tiles are. Of windows: which tap and which of its channels, counted on instead of
   divided anew. */
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
    const int pixels = a->w.out_height * a->w.out_width, slices = (a->w.channels + STEP_K - 1) / STEP_K,
              at = w->m0 % pixels;
    c.tap = c.k / slices, c.channel = c.k % slices * STEP_K, c.tap_y = c.tap / a->w.kernel_x,
    c.tap_x = c.tap % a->w.kernel_x;
    c.n = w->m0 / pixels, c.y = at / a->w.out_width * a->w.stride_y - a->w.pad_y,
    c.x = at % a->w.out_width * a->w.stride_x - a->w.pad_x;
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
DEVICE int rows_a(const contract_args *a, const work *w) {
    return P->m - w->m0 < TILE_M ? P->m - w->m0 : TILE_M;
}
DEVICE int rows_b(const contract_args *a, const work *w) {
    return P->n - w->n0 < TILE_N ? P->n - w->n0 : TILE_N;
}
DEVICE const hone_cuda_tensor_map *map_a(const contract_args *a, const work *w) {
    return rows_a(a, w) < TILE_M ? &T->end_a : &T->map_a;
}
DEVICE const hone_cuda_tensor_map *map_b(const contract_args *a, const work *w) {
    return rows_b(a, w) < TILE_N ? &T->end_b : &T->map_b;
}
/* One thread asks for the tiles of A of all works of this block, in order, and one for those of B. */
DEVICE void bring(const contract_args *a, u32 shared, u32 full, u32 empty, bool right) {
    u32 t = (u32)BLOCK_X / SPLITS, turn = 1;
    int s = 0;
    work w = work_of(a, t);
    cursor c = cursor_at(a, &w);
    if (!right || !CONSTANT_B) wait_previous();
    for (;;) {
        const hone_cuda_tensor_map *map = right ? map_b(a, &w) : map_a(a, &w);
        const u32 bytes = (u32)(right ? rows_b(a, &w) : rows_a(a, &w)) * ROW;
        const int batch = (right ? P->batch_b : P->batch_a) ? w.batch : 0;
        for (; c.k < w.to; cursor_next(a, &c)) {
            const u32 to = shared + (u32)(s * STAGE + (right ? TILE_A : 0)), barrier = full + 8 * (u32)s;
            barrier_wait(empty + 8 * (u32)s, turn);
            barrier_expect(barrier, bytes);
#if WINDOW
            if (right) tile_load(to, map, barrier, c.channel, c.tap, w.n0);
            else
                window_load(to, map, barrier, c.channel, c.x, c.y, c.n, c.tap_x * a->w.dilation_x,
                            c.tap_y * a->w.dilation_y);
#else
            tile_load(to, map, barrier, c.k * STEP_K, right ? w.n0 : w.m0, batch);
#endif
            if (++s == STAGES) s = 0, turn ^= 1;
        }
        if ((t += (u32)GRID_X / SPLITS) >= T->walk.works) break;
        w = work_of(a, t), c = cursor_at(a, &w);
    }
}

/* A warpgroup's slots in shared memory, from which its part of C leaves, panel by panel. */
typedef struct {
    u32 at, before; /* before: barriers that open when the residual has come to a slot */
    u32 turns;      /* of those, a bit a slot */
    int group;
} slots;
/* The residual of panel p into its slot, from where C's leaves then. One thread asks. */
DEVICE void fetch(const contract_args *a, const work *w, const slots *s, int p) {
    const u32 barrier = s->before + 8 * (u32)(p % SLOTS);
    barrier_expect(barrier, 64 * ROW);
    tile_load(s->at + (u32)(p % SLOTS) * (64 * ROW), &T->map_before, barrier,
              w->n0 + BLOCK_X % SPLITS * END_N + p * OUT_ROW, w->m0 + s->group * 64, w->batch);
}
/* before the products, which hide the way */
DEVICE void fetch_first(const contract_args *a, const work *w, const slots *s) {
    if (STORE < 2 || THREAD % 128) return;
    store_wait(0); /* what left from the slots has been read */
    UNROLL for (int p = 0; p < SLOTS && p < PANELS; p++) fetch(a, w, s, p);
}
/* The sums of 64 rows into C. bias: END_N values, 32 threads have one of 32. */
DEVICE void leave(const contract_args *a, const work *w, const sum_type sum[END_N / 2], slots *s,
                  const float bias[OWN], const int whole[OWN]) {
    const int t = THREAD % 128, lane = t % 32, row = t / 32 * 16 + lane / 4, m0 = w->m0 + s->group * 64,
              n0 = w->n0 + BLOCK_X % SPLITS * END_N;
    enum { EIGHTS = (END_N < OUT_ROW ? END_N : OUT_ROW) / 8 }; /* groups of 8 columns in a panel */
    const out_store *const before[2] = {residual_row(P, w->batch, m0 + row),
                                        residual_row(P, w->batch, m0 + row + 8)};
    /* rows 8 apart are swizzled alike */
    const u32 mine = swizzle((u32)(row * ROW + lane % 4 * 2 * OUT_BYTES));
    const bool pairs = ((u64)before[0] | (u64)before[1]) % (2 * OUT_BYTES) == 0;
    UNROLL for (int p = 0; p < PANELS; p++) {
        const int k = p % SLOTS, first = n0 + p * OUT_ROW + lane % 4 * 2;
        const u32 slot = s->at + (u32)k * (64 * ROW);
        out_pair residual[EIGHTS][2]; /* all asked for at once */
        if (!USES_RESIDUAL || STORE == 2) {
        } else if (pairs && n0 + p * OUT_ROW + EIGHTS * 8 <= P->n)
            UNROLL for (int j = 0; j < EIGHTS; j++)
                UNROLL for (int half = 0; half < 2; half++) residual[j][half] =
                    pair_at(before[half] + first + j * 8);
        else
            UNROLL for (int j = 0; j < EIGHTS; j++)
                UNROLL for (int half = 0; half < 2; half++) residual[j][half] =
                    residual_pair(P, before[half], first + j * 8);
#if STORE == 2
        if (SLOTS == 2 && p > 0 && p + 1 < PANELS && t == 0) {
            store_wait(0);
            fetch(a, w, s, p + 1);
        }
        barrier_wait(s->before + 8 * (u32)k, s->turns >> k & 1);
        s->turns ^= 1u << k;
#else
        if (STORE && t == 0) { /* what left from this slot before has been read */
            if (p == 0) store_wait(0);
            else if (p >= SLOTS) store_wait(SLOTS - 1);
        }
        sync_some(1 + s->group, 128);
#endif
        UNROLL for (int j = 0; j < EIGHTS; j++) {
            const int column = p * OUT_ROW + j * 8; /* of the tile */
            if (column >= END_N) continue;
            const int c = j * 8 + lane % 4 * 2;
            const u32 at = slot + (mine ^ (u32)(j * 8 * OUT_BYTES));
            float b[2];
            int i[2];
            UNROLL for (int e = 0; e < 2; e++) {
                b[e] = USES_BIAS ? BITS_F32(shuffle_from(F32_BITS(bias[column / 32]), (c + e) % 32)) : 0;
                i[e] = USES_WHOLE ? (int)shuffle_from((u32)whole[column / 32], (c + e) % 32) : 0;
            }
            UNROLL for (int half = 0; half < 2; half++) {
                const u32 to = at + (u32)(8 * half * ROW);
                const out_pair r = STORE == 2 ? shared_pair(to) : residual[j][half];
                out_pair v;
                UNROLL for (int e = 0; e < 2; e++)
                    v.one[e] = finish(P, sum[column / 2 + half * 2 + e], b[e], i[e],
                                      USES_RESIDUAL ? pair_f32(r, e) : 0, w->batch, m0 + row + 8 * half,
                                      n0 + p * OUT_ROW + c + e);
                if (OUT_BYTES == 1) shared_store2(to, v.small);
                else if (OUT_BYTES == 2) shared_store4(to, v.word);
                else shared_store8(to, v.words);
            }
        }
        if (STORE) fence_proxy();
        sync_some(1 + s->group, 128);
#if STORE
        if (t == 0) {
            if (n0 + p * OUT_ROW < P->n && m0 < P->m)
                tile_store(&T->map_c, slot, n0 + p * OUT_ROW, m0, w->batch);
            store_commit();
            if (STORE == 2 && SLOTS == 1 && p + 1 < PANELS) {
                store_wait(0);
                fetch(a, w, s, p + 1);
            }
        }
#else
        enum { PER = 16 / OUT_BYTES, WIDE = (END_N < OUT_ROW ? END_N : OUT_ROW) / PER };
        out_store *c = (out_store *)P->c + w->batch * P->batch_c;
        for (int i = t; i < 64 * WIDE; i += 128) {
            const int r = i / WIDE, first = i % WIDE * PER, n = n0 + p * OUT_ROW + first;
            if (m0 + r >= P->m || n >= P->n || p * OUT_ROW + first >= END_N) continue;
            union ALIGNED16 {
                out_store one[PER];
                u32x4 all;
            } v;
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

#if SPLITS > 1
/* Sums of one part of K, all columns, to those of all parts, this block's columns. Stages are no longer read,
   and hold the sums for the others. */
typedef union ALIGNED16 {
    sum_type one[4];
    u32x4 all;
} four_sums;
DEVICE void join(const sum_type sum[TILE_N / 2], sum_type total[END_N / 2], u32 shared) {
    enum { FOURS = TILE_N / 8, MINE = FOURS / SPLITS, STRIDE = 128 * CONSUMERS * 16 };
    const u32 at = shared + (u32)THREAD * 16, first = at + (u32)(BLOCK_X % SPLITS * MINE) * STRIDE;
    if (CONSUMERS > 1) sync_some(1 + CONSUMERS, 128 * CONSUMERS);
    UNROLL for (int j = 0; j < FOURS; j++) {
        four_sums v;
        UNROLL for (int e = 0; e < 4; e++) v.one[e] = sum[j * 4 + e];
        shared_store16(at + (u32)j * STRIDE, v.all);
    }
    cluster_arrive(), cluster_wait();
    UNROLL for (int s = 0; s < SPLITS; s++)
        UNROLL for (int j = 0; j < MINE; j++) {
            four_sums v;
            v.all = shared_load16_of(first + (u32)j * STRIDE, s);
            UNROLL for (int e = 0; e < 4; e++) total[j * 4 + e] = s ? total[j * 4 + e] + v.one[e] : v.one[e];
        }
    cluster_arrive(); /* waited for before the block ends, and its shared memory with it */
}
#endif

KERNEL(hone_contract, contract_args, THREADS, BLOCKS) {
    const u32 shared = shared_at(hone_shared), full = shared + BARRIERS_AT, empty = full + 8 * STAGES;
    /* equal in a warp, and the compiler knows it */
    const int warp = (int)shuffle_from((u32)THREAD / 32, 0), group = warp / 4;
    if (THREAD == 0) {
        const work first = work_of(a, (u32)BLOCK_X / SPLITS);
        map_prefetch(map_a(a, &first)), map_prefetch(map_b(a, &first));
        if (STORE) map_prefetch(&T->map_c);
        if (STORE == 2) {
            map_prefetch(&T->map_before);
            UNROLL for (int i = 0; i < 2 * CONSUMERS; i++) barrier_init(shared + BEFORE_AT + 8 * i, 1);
        }
        UNROLL for (int s = 0; s < STAGES; s++)
            barrier_init(full + 8 * s, 2), barrier_init(empty + 8 * s, CONSUMERS);
        barrier_fence();
    }
    sync_block();
    launch_next();
    if (group == CONSUMERS) {
        if (SHIFT) registers_less(CONSUMERS == 2 ? 40 : 32);
        if (warp < CONSUMERS * 4 + 2 && elect()) bring(a, shared, full, empty, warp == CONSUMERS * 4 + 1);
    } else {
        if (SHIFT) registers_more(CONSUMERS == 2 ? 232 : 160);
        u32 t = (u32)BLOCK_X / SPLITS, turn = 0;
        int s = 0;
        work w = work_of(a, t);
        slots c = {shared + OUT_AT + (u32)group * OUT_STAGE, shared + BEFORE_AT + 16 * (u32)group, 0, group};
        wait_previous();
        for (;;) {
            fetch_first(a, &w, &c);
            sum_type sum[TILE_N / 2];
            float bias[OWN]; /* asked for now, needed at the end */
            int whole[OWN];
            UNROLL for (int i = 0; i < OWN; i++) {
                const int n = w.n0 + BLOCK_X % SPLITS * END_N + THREAD % 32 + 32 * i;
                bias[i] = bias_at(P, n), whole[i] = whole_at(P, n);
            }
            for (int k = w.from; k < w.to; k++) {
                barrier_wait(full + 8 * s, turn);
                const u64 left = operand(shared + s * STAGE + group * 64 * ROW),
                          right = operand(shared + s * STAGE + TILE_A);
                wgmma_fence();
                UNROLL for (int q = 0; q < ROW / 32; q++)
                    wgmma(sum, left + 2 * q, right + 2 * q, k > w.from || q > 0);
                wgmma_commit();
                if (k > w.from) { /* the stage before has been read */
                    wgmma_wait(1);
                    if (THREAD % 128 == 0) barrier_arrive(empty + 8 * (s ? s - 1 : STAGES - 1));
                }
                if (++s == STAGES) s = 0, turn ^= 1;
            }
            wgmma_wait(0);
            if (THREAD % 128 == 0) barrier_arrive(empty + 8 * (s ? s - 1 : STAGES - 1));
#if SPLITS > 1
            sum_type total[END_N / 2];
            join(sum, total, shared);
            leave(a, &w, total, &c, bias, whole);
#else
            leave(a, &w, sum, &c, bias, whole);
#endif
            if ((t += (u32)GRID_X / SPLITS) >= T->walk.works) break;
            w = work_of(a, t);
        }
        if (STORE && THREAD % 128 == 0) store_wait(0); /* shared memory lives until it has been read */
#if SPLITS > 1
        cluster_wait();
#endif
    }
}
