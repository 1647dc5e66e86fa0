/* SPDX-License-Identifier: Apache-2.0
   attention_wgmma: softmax(scale Q Kᵀ + mask) V on the matrix unit of warpgroups, for sm_90a, tiles by the
   copy engine. What attention.cu computes, less the split over keys; for scale > 0, and rows of Q, K, V and y
   that are aligned to 16 bytes. A mask goes from memory to registers, asked for before the scores that it is
   added to.

   A block stays for many tiles of rows. Which ones follows from its number alone, so no warp has to tell
   another. Causal tiles differ in length, so where there are more of them than blocks, a block takes two of
   a head at a time, the longest with the shortest, the second with the last but one. Its first warpgroup
   only asks for tiles. CONSUMERS others have 64 rows each: scores S = Q Kᵀ come from shared memory, become
   weights in registers, and from there multiply V; the registers of a sum are laid out as those of a left
   factor, so nothing moves. While the softmax of one tile of keys is computed, the scores of the next are
   multiplied, and warpgroups take turns (TURNS): one multiplies while another has its softmax. Tiles of keys
   go from the last to the first, because only the last ones are masked; a warpgroup none of whose rows sees
   a tile only lets it pass.

   A row is a query of one of the heads that share their keys and values. A warpgroup has QUERIES = 64 / group
   queries of all of them; where the group does not divide 64, its last rows are empty.

   Filled in by the printer: IN_TYPE (f16, bf16), HEAD (head size rounded up to 16, up to 256), BLOCK_K (keys
   of a tile, a multiple of 16), CONSUMERS (1 to 4), STAGES (tiles of K, and of V, that are under way),
   CAUSAL, TURNS, MASK (0: there is none; else its type, f16, bf16 or f32), MASK_ROWS (1: it is the same for
   all queries, 2: each has its own), MASK_PAIRS (1: two numbers of it can be read at once), and the functions
   wgmma_scores and wgmma_values. */
#define F16_TYPE 1
#if IN_TYPE == F16_TYPE
#define TWO f32_f16x2
#else
#define TWO f32_bf16x2
#endif
enum {
    THREADS = 128 * (CONSUMERS + 1),
    ROW = 128,                 /* bytes of a row of a panel, swizzled */
    PANELS = (HEAD + 63) / 64, /* of 64 columns */
    PANEL_Q = 64 * ROW,
    PANEL_K = BLOCK_K * ROW,
    TILE_Q = PANELS * PANEL_Q, /* of one warpgroup */
    TILE_K = PANELS * PANEL_K,
    K_AT = CONSUMERS * TILE_Q,
    V_AT = K_AT + STAGES * TILE_K,
    OUT_AT = V_AT + STAGES * TILE_K, /* one panel a warpgroup */
    BARRIERS_AT = OUT_AT + CONSUMERS * PANEL_Q,
    SHARED_BYTES = BARRIERS_AT + 8 * (2 * CONSUMERS + 4 * STAGES)
};
#define LOWEST BITS_F32(0xff800000u)
#define LOG2_E 1.4426950408889634f /* powers of 2 instead of e */
#define P (&a->p)
#if MASK == 1 || MASK == 2
typedef u16 masked;
#else
typedef float masked;
#endif
/* equal in all threads of a warp, and the compiler knows it */
#define UNIFORM(v) ((int)shuffle_from((u32)(v), 0))

/* Barriers: Q is full, Q is empty (a warpgroup), K is full, K is empty, V is full, V is empty (a stage). */
#define Q_FULL(c) (barriers + 8 * (u32)(c))
#define Q_EMPTY(c) (barriers + 8 * (u32)(CONSUMERS + (c)))
#define K_FULL(s) (barriers + 8 * (u32)(2 * CONSUMERS + (s)))
#define K_EMPTY(s) (barriers + 8 * (u32)(2 * CONSUMERS + STAGES + (s)))
#define V_FULL(s) (barriers + 8 * (u32)(2 * CONSUMERS + 2 * STAGES + (s)))
#define V_EMPTY(s) (barriers + 8 * (u32)(2 * CONSUMERS + 3 * STAGES + (s)))

/* Which rows: QUERIES queries a warpgroup from `query` on, of one batch and one head of K and V; `keys` of
   them are there. */
typedef struct {
    int query, head, batch, keys;
} work;
typedef struct {
    int stage;
    u32 turn;
} ring; /* a stage, and how often all stages were used, odd or even */
DEVICE u32x4 four(int x, int y, int z, int w) {
    u32x4 v;
    v.x = (u32)x, v.y = (u32)y, v.z = (u32)z, v.w = (u32)w;
    return v;
}
DEVICE void next(ring *r) {
    if (++r->stage == STAGES) r->stage = 0, r->turn ^= 1;
}
/* of keys that any of so many queries from w's on sees */
DEVICE int tiles_of(const hone_cuda_attention_tma *a, const work *w, int queries) {
    int last = w->keys;
    if (w->query >= P->queries) return 0;
    if (CAUSAL) {
        const int end = w->query + queries < P->queries ? w->query + queries : P->queries,
                  seen = end + w->keys - P->queries;
        last = seen < 0 ? 0 : seen < last ? seen : last;
    }
    return (last + BLOCK_K - 1) / BLOCK_K;
}
/* All works in an order: `section` heads at a time, all their first tiles, all their second ones; or pairs of
   tiles, two works each. */
typedef struct {
    int group, tiles, pairs, count;
} plan;
DEVICE plan plan_of(const hone_cuda_attention_tma *a) {
    plan p;
    p.group = P->heads / P->kv_heads;
    const int queries = 64 / p.group * CONSUMERS, heads = P->batches * P->kv_heads;
    p.tiles = (P->queries + queries - 1) / queries;
    p.pairs = CAUSAL && heads * p.tiles > GRID_X ? (p.tiles + 1) / 2 : 0;
    p.count = heads * (p.pairs ? 2 * p.pairs : p.tiles);
    return p;
}
DEVICE int first_work(const plan *p) { return p->pairs ? 2 * BLOCK_X : BLOCK_X; }
DEVICE int next_work(const plan *p, int t) {
    return !p->pairs ? t + GRID_X : t % 2 ? t - 1 + 2 * GRID_X : t + 1;
}
DEVICE work work_of(const hone_cuda_attention_tma *a, const plan *p, int t) {
    const int second = p->pairs ? t % 2 : 0, places = p->pairs ? p->pairs : p->tiles,
              heads = P->batches * P->kv_heads;
    if (p->pairs) t /= 2;
    const int first = t / (a->section * places) * a->section,
              size = heads - first < a->section ? heads - first : a->section;
    const int within = t - first * places, place = within / size, head = first + within - place * size,
              batch = head / P->kv_heads;
    int tile = CAUSAL ? p->tiles - 1 - place : place;
    /* of the middle one there is no second: its queries are not there */
    if (second) tile = place == tile ? p->tiles : place;
    work w = {tile * (64 / p->group * CONSUMERS), head - batch * P->kv_heads, batch, P->keys};
    if (P->lengths) {
        const int length = ((const int *)P->lengths)[w.batch];
        w.keys = length < 0 ? 0 : length < w.keys ? length : w.keys;
    }
    return w;
}

/* One thread asks for all tiles of this block, in the order in which they are needed. */
DEVICE void bring(const hone_cuda_attention_tma *a, const plan *plan, u32 shared, u32 barriers) {
    const int group = plan->group, queries = 64 / group;
    ring k = {0, 0}, v = {0, 0};
    u32 turn = 0;
    for (int t = first_work(plan); t < plan->count; t = next_work(plan, t)) {
        const work w = work_of(a, plan, t);
        const int tiles = tiles_of(a, &w, queries * CONSUMERS);
        if (w.query >= P->queries) continue;
#define BRING(what, at, r, n)                                                                              \
    barrier_wait(what##_EMPTY(r.stage), r.turn ^ 1);                                                       \
    barrier_expect(what##_FULL(r.stage), TILE_K);                                                          \
    UNROLL for (int p = 0; p < PANELS; p++)                                                                \
        tile_load4(shared + at + (u32)(r.stage * TILE_K + p * PANEL_K), &a->map_##r, what##_FULL(r.stage), \
                   p * 64, (n)*BLOCK_K, w.head, w.batch);                                                  \
    next(&r);
        if (tiles) { BRING(K, K_AT, k, tiles - 1) }
        UNROLL for (int c = 0; c < CONSUMERS; c++) {
            barrier_wait(Q_EMPTY(c), turn ^ 1);
            barrier_expect(Q_FULL(c), (u32)(PANELS * ROW * queries * group));
            UNROLL for (int p = 0; p < PANELS; p++)
                tile_load5(shared + (u32)(c * TILE_Q + p * PANEL_Q), &a->map_q, Q_FULL(c), p * 64, 0,
                           w.query + c * queries, w.head, w.batch);
        }
        turn ^= 1;
        for (int n = tiles - 1; n >= 0; n--) {
            if (n > 0) { BRING(K, K_AT, k, n - 1) }
            BRING(V, V_AT, v, n)
        }
    }
}

/* What is added to the scores of a thread's rows: of each 8 keys of a tile two, from `key` on. Keys behind
   the last are the first: their scores are not seen. Halves stay halves until they are added. */
enum { MASK_WORDS = MASK == 0 ? 1 : MASK_ROWS * (BLOCK_K / 8) * (int)sizeof(masked) / 2 };
#if MASK
DEVICE void mask_of(u32 mask[MASK_WORDS], const masked *const from[2], int key, int keys) {
    UNROLL for (int h = 0; h < MASK_ROWS; h++)
        UNROLL for (int j = 0; j < BLOCK_K / 8; j++) {
            const int at = key + j * 8, one = at < keys ? at : 0, two = at + 1 < keys ? at + 1 : 0,
                      to = h * (BLOCK_K / 8) + j;
#if MASK == 1 || MASK == 2
            mask[to] =
                MASK_PAIRS ? *(const u32 *)(from[h] + one) : (u32)from[h][one] | (u32)from[h][two] << 16;
#else
            float pair[2];
            if (MASK_PAIRS) load_floats(pair, from[h] + one, 2);
            else pair[0] = from[h][one], pair[1] = from[h][two];
            mask[2 * to] = F32_BITS(pair[0]), mask[2 * to + 1] = F32_BITS(pair[1]);
#endif
        }
}
DEVICE float mask_at(const u32 mask[MASK_WORDS], int j) { /* of score[j] */
    const int to = j / 2 % MASK_ROWS * (BLOCK_K / 8) + j / 4;
#if MASK == 1
    return f16_f32((u16)(mask[to] >> j % 2 * 16));
#elif MASK == 2
    return bf16_f32((u16)(mask[to] >> j % 2 * 16));
#else
    return BITS_F32(mask[2 * to + j % 2]);
#endif
}
#define MASK_OF(n) mask_of(mask, masks, (n)*BLOCK_K + lane % 4 * 2, P->keys);
#else
#define MASK_OF(n)
#endif

/* Scores become weights; `less` is what sums so far shrink by. Keys from end[h] on are not seen by row h.
   What is added is no power of 2 and may be the lowest number there is: then differences are scaled, not
   scores. */
#if MASK
#define POWER(v, base) exp2_fast(((v) - (base)) * LOG2_E)
#else
#define POWER(v, base) exp2_fast(fmaf(v, scale, -(base)))
#endif
DEVICE void weigh(float score[BLOCK_K / 2], float largest[2], float total[2], float less[2], float scale,
                  const u32 mask[MASK_WORDS], bool edge, int key, const int end[2]) {
    float base[2];
#if MASK
    UNROLL for (int j = 0; j < BLOCK_K / 2; j++) score[j] = fmaf(score[j], scale, mask_at(mask, j));
#endif
    if (edge) {
        UNROLL for (int j = 0; j < BLOCK_K / 2; j++)
            if (key + j / 4 * 8 + j % 2 >= end[j / 2 % 2]) score[j] = LOWEST;
    }
    UNROLL for (int h = 0; h < 2; h++) {
        float most = largest[h];
        UNROLL for (int j = 0; j < BLOCK_K / 8; j++)
            most = fmaxf(most, fmaxf(score[j * 4 + h * 2], score[j * 4 + h * 2 + 1]));
        most = fmaxf(most, shuffle_xor(most, 1));
        most = fmaxf(most, shuffle_xor(most, 2));
        base[h] = most == LOWEST ? 0.0f : MASK ? most : most * scale; /* a row that has seen nothing yet */
        less[h] = POWER(largest[h], base[h]);
        largest[h] = most, total[h] *= less[h];
    }
    UNROLL for (int j = 0; j < BLOCK_K / 2; j++) {
        score[j] = POWER(score[j], base[j / 2 % 2]);
        total[j / 2 % 2] += score[j];
    }
}

DEVICE u64 operand(u32 at, u32 leading) { /* rows of 128 bytes, swizzled; 8 rows are 1024 bytes */
    return (u64)((at & 0x3ffffu) >> 4) | (u64)(leading >> 4) << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}
#define SCORES(at)                                                                    \
    wgmma_fence();                                                                    \
    UNROLL for (int i = 0; i < HEAD / 16; i++)                                        \
        wgmma_scores(score, operand(mine + (u32)(i / 4 * PANEL_Q + i % 4 * 32), 16),  \
                     operand((at) + (u32)(i / 4 * PANEL_K + i % 4 * 32), 16), i > 0); \
    wgmma_commit();
#define VALUES(at)                                                                          \
    wgmma_fence();                                                                          \
    UNROLL for (int i = 0; i < BLOCK_K / 16; i++)                                           \
        wgmma_values(out, weight + 4 * i, operand((at) + (u32)(i * 16 * ROW), PANEL_K), 1); \
    wgmma_commit();
#define NARROW \
    UNROLL for (int j = 0; j < BLOCK_K / 4; j++) weight[j] = TWO(score[2 * j], score[2 * j + 1]);

/* 64 rows through all tiles of keys. */
DEVICE void attend(const hone_cuda_attention_tma *a, const work *w, int group, int c, u32 shared,
                   u32 barriers, u32 turn, ring *k, ring *v) {
    const int t = THREAD % 128, lane = t % 32, queries = 64 / group,
              all_tiles = tiles_of(a, w, queries * CONSUMERS);
    const int first = w->query + c * queries, behind = w->keys - P->queries, row = t / 32 * 16 + lane / 4;
    const u32 mine = shared + (u32)(c * TILE_Q), panel = shared + OUT_AT + (u32)(c * PANEL_Q);
    const float scale = MASK ? P->scale : P->scale * LOG2_E;
    const bool one = t == 0;
    int end[2] = {w->keys, w->keys}, all = w->keys; /* keys before `all` are seen by every row */
    if (CAUSAL) {
        UNROLL for (int h = 0; h < 2; h++) {
            const int seen = first + (row + 8 * h) / group + behind + 1;
            end[h] = seen < end[h] ? seen : end[h];
        }
        all = first + behind + 1 < all ? first + behind + 1 : all;
    }
    float out[HEAD / 2], score[BLOCK_K / 2], largest[2] = {LOWEST, LOWEST}, total[2] = {0, 0}, less[2];
    u32 weight[BLOCK_K / 4], mask[MASK_WORDS] = {0};
#if MASK
    const masked *masks[2];
    UNROLL for (int h = 0; h < 2; h++) { /* rows that are not there have another's */
        const int query = first + (row + 8 * h) / group, there = query < P->queries ? query : P->queries - 1;
        masks[h] = (const masked *)P->mask + w->batch * P->stride_mask[0] +
                   (w->head * group + (row + 8 * h) % group) * P->stride_mask[1] + there * P->stride_mask[2];
    }
#endif
    UNROLL for (int j = 0; j < HEAD / 2; j++) out[j] = 0;
    const work own = {first, w->head, w->batch, w->keys};
    const int tiles = tiles_of(a, &own, queries); /* the first of them, which come last */
    for (int n = all_tiles; n > tiles; n--) {
        barrier_wait(K_FULL(k->stage), k->turn);
        barrier_wait(V_FULL(v->stage), v->turn);
        sync_some(1 + c, 128); /* all have seen that they came, before they may be replaced */
        if (one) barrier_arrive(K_EMPTY(k->stage)), barrier_arrive(V_EMPTY(v->stage));
        next(k), next(v);
        if (TURNS && CONSUMERS > 1 && n > 1)
            sync_some(1 + CONSUMERS + c, 256), arrive_some(1 + CONSUMERS + (c + 1) % CONSUMERS, 256);
    }
    barrier_wait(Q_FULL(c), turn);
    if (!tiles) sync_some(1 + c, 128);
    if (tiles) {
        MASK_OF(tiles - 1)
        barrier_wait(K_FULL(k->stage), k->turn);
        SCORES(shared + K_AT + (u32)(k->stage * TILE_K))
        wgmma_wait(0);
        UNROLL for (int j = 0; j < BLOCK_K / 2; j++) KNOWN(score[j]);
        if (one) barrier_arrive(K_EMPTY(k->stage));
        next(k);
        weigh(score, largest, total, less, scale, mask, tiles * BLOCK_K > all,
              (tiles - 1) * BLOCK_K + lane % 4 * 2, end);
        /* values behind the length may be anything, and 0 times anything must be 0 */
        NARROW
        if (w->keys < P->keys && tiles * BLOCK_K > w->keys) {
            barrier_wait(V_FULL(v->stage), v->turn);
            const int from = w->keys - (tiles - 1) * BLOCK_K;
            for (int i = t; i < (BLOCK_K - from) * 8; i += 128)
                UNROLL for (int p = 0; p < PANELS; p++)
                    shared_store16(shared + V_AT +
                                       (u32)(v->stage * TILE_K + p * PANEL_K + from * ROW + i * 16),
                                   four(0, 0, 0, 0));
            fence_proxy();
            sync_some(1 + c, 128);
        }
        for (int n = tiles - 2; n >= 0; n--) {
            MASK_OF(n)
            barrier_wait(K_FULL(k->stage), k->turn);
            if (TURNS && CONSUMERS > 1) sync_some(1 + CONSUMERS + c, 256);
            SCORES(shared + K_AT + (u32)(k->stage * TILE_K))
            barrier_wait(V_FULL(v->stage), v->turn);
            VALUES(shared + V_AT + (u32)(v->stage * TILE_K))
            if (TURNS && CONSUMERS > 1) arrive_some(1 + CONSUMERS + (c + 1) % CONSUMERS, 256);
            wgmma_wait(1);
            UNROLL for (int j = 0; j < BLOCK_K / 2; j++) KNOWN(score[j]);
            if (one) barrier_arrive(K_EMPTY(k->stage));
            next(k);
            weigh(score, largest, total, less, scale, mask, (n + 1) * BLOCK_K > all,
                  n * BLOCK_K + lane % 4 * 2, end);
            /* all weights are computed while values are multiplied, not after it */
            before_wait(total[0] + total[1], panel);
            wgmma_wait(0);
            UNROLL for (int j = 0; j < HEAD / 2; j++) KNOWN(out[j]);
            if (one) barrier_arrive(V_EMPTY(v->stage));
            next(v);
            UNROLL for (int j = 0; j < HEAD / 2; j++) out[j] *= less[j / 2 % 2];
            NARROW
        }
    }
    if (one) barrier_arrive(Q_EMPTY(c));
    if (tiles) {
        barrier_wait(V_FULL(v->stage), v->turn);
        VALUES(shared + V_AT + (u32)(v->stage * TILE_K))
        wgmma_wait(0);
        UNROLL for (int j = 0; j < HEAD / 2; j++) KNOWN(out[j]);
        if (one) barrier_arrive(V_EMPTY(v->stage));
        next(v);
    }
    UNROLL for (int h = 0; h < 2; h++) {
        total[h] += shuffle_xor(total[h], 1);
        total[h] += shuffle_xor(total[h], 2);
        total[h] = 1.0f / total[h];
    }
    /* out by way of one panel in shared memory; the copy engine leaves out what is not there */
    UNROLL for (int p = 0; p < PANELS; p++) {
        if (one) store_wait(0); /* what left from here before has been read */
        sync_some(1 + c, 128);
        UNROLL for (int j = p * 8; j < p * 8 + 8 && j < HEAD / 8; j++)
            UNROLL for (int h = 0; h < 2; h++)
                shared_store4(panel + swizzle((u32)((row + 8 * h) * ROW + j % 8 * 16 + lane % 4 * 4)),
                              TWO(out[j * 4 + h * 2] * total[h], out[j * 4 + h * 2 + 1] * total[h]));
        fence_proxy();
        sync_some(1 + c, 128);
        if (one) tile_store5(&a->map_y, panel, p * 64, 0, first, w->head, w->batch), store_commit();
    }
}

KERNEL(hone_attention, hone_cuda_attention_tma, THREADS, 1) {
    const u32 shared = shared_at(hone_shared), barriers = shared + BARRIERS_AT;
    const int c = UNIFORM(THREAD / 128) - 1;
    const plan plan = plan_of(a);
    if (THREAD == 0) {
        UNROLL for (int i = 0; i < CONSUMERS; i++) barrier_init(Q_FULL(i), 1), barrier_init(Q_EMPTY(i), 1);
        UNROLL for (int s = 0; s < STAGES; s++) {
            barrier_init(K_FULL(s), 1), barrier_init(K_EMPTY(s), CONSUMERS);
            barrier_init(V_FULL(s), 1), barrier_init(V_EMPTY(s), CONSUMERS);
        }
        barrier_fence();
    }
    sync_block();
    launch_next();
    wait_previous();
    if (c < 0) {
        if (CONSUMERS == 2) registers_less(40);
        if (CONSUMERS == 3) registers_less(32);
        if (CONSUMERS == 4) registers_less(24);
        if (THREAD == 0) bring(a, &plan, shared, barriers);
    } else {
        if (CONSUMERS == 2) registers_more(232);
        if (CONSUMERS == 3) registers_more(160);
        if (CONSUMERS == 4) registers_more(112);
        ring k = {0, 0}, v = {0, 0};
        /* the first one begins */
        if (TURNS && CONSUMERS > 1 && c == CONSUMERS - 1) arrive_some(1 + CONSUMERS, 256);
        u32 turn = 0;
        for (int t = first_work(&plan); t < plan.count; t = next_work(&plan, t)) {
            work w = work_of(a, &plan, t);
            if (w.query >= P->queries) continue;
            w.keys = UNIFORM(w.keys);
            attend(a, &w, plan.group, c, shared, barriers, turn, &k, &v);
            turn ^= 1;
        }
        if (THREAD % 128 == 0) store_wait(0);
    }
}
