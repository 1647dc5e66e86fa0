/* SPDX-License-Identifier: Apache-2.0
   attention: softmax(scale Q Kᵀ + mask) V against double precision, and against cuDNN's and FlashAttention's through PyTorch. */
#include "harness.h"

typedef struct {
    int type, batches, heads, kv_heads, queries, keys, head_size, causal;
    bool mask, lengths;
} heads;
typedef struct {
    tensor q, k, v, y, mask, lengths;
    hone_cuda_attention args;
} operands;
typedef struct {
    int warps, splits;                       /* by warps; or */
    int consumers, block_k, stages, section; /* by warpgroups */
    bool free;                               /* they do not take turns */
} way;
typedef struct {
    const hone_cuda_kernel *kernel;
    hone_cuda_launch_shape launch;
    hone_cuda_attention_tma args;
    bool groups;
} ready;
static int way_text(const way *w, char *to, size_t bytes) {
    return w->consumers ? snprintf(to, bytes, "wgmma %d x 64 rows, %d keys, %d stages%s", w->consumers, w->block_k, w->stages,
                                   w->free ? ", no turns" : "")
                        : snprintf(to, bytes, "mma %d x 16 rows, splits %d", w->warps, w->splits);
}

static operands operands_of(bench *b, const heads *g) { /* [batch][head][token][head size], as the peers take it */
    const size_t d = (size_t)g->head_size, nq = (size_t)g->batches * (size_t)g->heads * (size_t)g->queries * d,
                 nk = (size_t)g->batches * (size_t)g->kv_heads * (size_t)g->keys * d;
    operands o = {.q = tensor_random(b, g->type, nq, 1),
                  .k = tensor_random(b, g->type, nk, 1),
                  .v = tensor_random(b, g->type, nk, 1),
                  .y = tensor_poison(b, g->type, nq),
                  .mask = tensor_random(b, HONE_CUDA_F32, g->mask ? (size_t)g->queries * (size_t)g->keys : 1, 2),
                  .lengths = tensor_zero(b, HONE_CUDA_S32, (size_t)g->batches)};
    for (int z = 0; z < g->batches && !b->collect; z++) ((int *)o.lengths.host)[z] = g->keys - 3 * z - 1;
    tensor_send(b, &o.lengths);
    o.args = (hone_cuda_attention){.q = o.q.at,
                                   .k = o.k.at,
                                   .v = o.v.at,
                                   .y = o.y.at,
                                   .mask = o.mask.at,
                                   .lengths = g->lengths ? o.lengths.at : 0,
                                   .workspace = b->workspace,
                                   .counters = b->counters,
                                   .batches = g->batches,
                                   .heads = g->heads,
                                   .kv_heads = g->kv_heads,
                                   .queries = g->queries,
                                   .keys = g->keys,
                                   .head_size = g->head_size,
                                   .splits = 1,
                                   .scale = 1.0f / sqrtf((float)g->head_size)};
    const long long hq = (long long)g->queries * g->head_size, hk = (long long)g->keys * g->head_size;
    const long long sq[3] = {g->heads * hq, hq, g->head_size}, sk[3] = {g->kv_heads * hk, hk, g->head_size};
    for (int k = 0; k < 3; k++) o.args.stride_q[k] = o.args.stride_y[k] = sq[k], o.args.stride_k[k] = o.args.stride_v[k] = sk[k];
    o.args.stride_mask[2] = g->keys;
    return o;
}
static void operands_free(bench *b, operands *o) {
    tensor *all[] = {&o->q, &o->k, &o->v, &o->y, &o->mask, &o->lengths};
    for (size_t k = 0; k < 6; k++) tensor_free(b, all[k]);
}
static bool prepare_warps(bench *b, const heads *g, const operands *o, way w, ready *r) {
    const int head = (g->head_size + 15) / 16 * 16, panels = (head + 63) / 64, tile = panels * 64 * 128,
              rows = g->queries * (g->heads / g->kv_heads), blocks = (rows + 16 * w.warps - 1) / (16 * w.warps);
    const hone_cuda_fill fill[] = {{"IN_TYPE", g->type, NULL},
                                   {"HEAD", head, NULL},
                                   {"WARPS", w.warps, NULL},
                                   {"CAUSAL", g->causal, NULL},
                                   {"MASK", g->mask, NULL},
                                   {"SPLIT", w.splits > 1, NULL},
                                   {"ALIGNED", g->head_size % 8 == 0, NULL}};
    hone_text text = {0};
    if ((size_t)g->batches * (size_t)g->kv_heads * (size_t)blocks * (size_t)w.splits * 32 * (size_t)w.warps * (size_t)(head / 2 + 4) * 4 >
        ROOM)
        return false;
    OK(hone_cuda_print(&text, "attention", fill, 7));
    const int for_q = (16 * w.warps + 63) / 64 * tile, shared = for_q > 4 * tile ? for_q : 4 * tile;
    if (shared > b->gpu.shared_bytes) return false;
    r->kernel = kernel_of(b, text.text, "hone_attention", shared);
    hone_text_free(&text);
    r->launch =
        (hone_cuda_launch_shape){.grid = {blocks, g->kv_heads, g->batches * w.splits}, .threads = 32 * w.warps, .shared_bytes = shared};
    r->args.p = o->args, r->args.p.splits = w.splits, r->groups = false;
    return r->kernel != NULL;
}
static bool prepare_groups(bench *b, const heads *g, const operands *o, way w, ready *r) {
    const int head = (g->head_size + 15) / 16 * 16, panels = (head + 63) / 64, group = g->heads / g->kv_heads,
              queries = group > 64 ? 0 : 64 / group;
    if (g->mask || g->head_size % 8 || !queries || b->gpu.major != 9) return false;
    const int shared = w.consumers * panels * 64 * 128 + 2 * w.stages * panels * w.block_k * 128 + w.consumers * 64 * 128 +
                       16 * w.consumers + 8 * (2 * w.consumers + 4 * w.stages);
    const hone_cuda_fill fill[] = {{"IN_TYPE", g->type, NULL},
                                   {"HEAD", head, NULL},
                                   {"BLOCK_K", w.block_k, NULL},
                                   {"CONSUMERS", w.consumers, NULL},
                                   {"STAGES", w.stages, NULL},
                                   {"CAUSAL", g->causal, NULL},
                                   {"TURNS", w.consumers > 1 && !w.free, NULL}};
    hone_text text = {0};
    if (shared > b->gpu.shared_bytes) return false;
    OK(hone_cuda_print(&text, "attention_wgmma", fill, 7));
    r->kernel = kernel_of(b, text.text, "hone_attention", shared);
    hone_text_free(&text);
    if (!r->kernel) return false;
    const int tiles = (g->queries + queries * w.consumers - 1) / (queries * w.consumers) * g->batches * g->kv_heads;
    const int fit = (b->gpu.shared_bytes + 1024) / (shared + 1024),
              by_registers = 65536 / ((r->kernel->registers + 7) / 8 * 8 * 128 * (w.consumers + 1)),
              many = b->gpu.sms * (w.consumers > 1      ? 1
                                   : fit < by_registers ? fit
                                                        : by_registers);
    r->launch =
        (hone_cuda_launch_shape){.grid = {tiles < many ? tiles : many, 1, 1}, .threads = 128 * (w.consumers + 1), .shared_bytes = shared};
    r->args.p = o->args, r->args.section = w.section, r->groups = true;
    const hone_cuda_attention *p = &o->args;
    const long long dims[] = {g->head_size, group, g->queries, g->kv_heads, g->batches},
                    keys[] = {g->head_size, g->keys, g->kv_heads, g->batches};
    const int box[] = {64, group, queries, 1, 1}, key_box[] = {64, w.block_k, 1, 1};
#define STEPS(s) (const long long[]){s[1] * 2, s[2] * 2, s[1] * group * 2, s[0] * 2}
    OK(hone_cuda_tiled(b->g, &r->args.map_q, g->type, 5, p->q, dims, STEPS(p->stride_q), box)),
        OK(hone_cuda_tiled(b->g, &r->args.map_y, g->type, 5, p->y, dims, STEPS(p->stride_y), box));
    OK(hone_cuda_tiled(b->g, &r->args.map_k, g->type, 4, p->k, keys,
                       (const long long[]){p->stride_k[2] * 2, p->stride_k[1] * 2, p->stride_k[0] * 2}, key_box));
    OK(hone_cuda_tiled(b->g, &r->args.map_v, g->type, 4, p->v, keys,
                       (const long long[]){p->stride_v[2] * 2, p->stride_v[1] * 2, p->stride_v[0] * 2}, key_box));
    return true;
}
static bool prepare_way(bench *b, const heads *g, const operands *o, way w, ready *r) {
    return w.consumers ? prepare_groups(b, g, o, w, r) : prepare_warps(b, g, o, w, r);
}
static hone_status once(bench *b, void *what) {
    const ready *r = what;
    return hone_cuda_launch(b->g, r->kernel, &r->launch, r->groups ? (const void *)&r->args : &r->args.p);
}
static reference reference_of(const heads *g, const operands *o) {
    const size_t group = (size_t)(g->heads / g->kv_heads), d = (size_t)g->head_size,
                 rows = (size_t)g->batches * (size_t)g->heads * (size_t)g->queries;
    const bool all = (double)rows * g->keys * (double)d < 5e7;
    reference r = reference_make(all ? rows * d : 40 * d, (size_t)-1);
    double *score = malloc(sizeof *score * (size_t)g->keys), *k = tensor_doubles(&o->k), *v = tensor_doubles(&o->v);
    for (size_t t = 0; t < r.n / d; t++) {
        const size_t row = all      ? t
                           : t == 0 ? rows - 1
                                    : dice() % rows,
                     i = row % (size_t)g->queries, h = row / (size_t)g->queries % (size_t)g->heads,
                     z = row / (size_t)g->queries / (size_t)g->heads;
        const int seen = g->lengths ? ((int *)o->lengths.host)[z] : g->keys, own = (int)i + seen - g->queries + 1,
                  last = g->causal && own < seen ? own : seen;
        const size_t kv = (z * (size_t)g->kv_heads + h / group) * (size_t)g->keys * d, q = row * d;
        double largest = -INFINITY, total = 0;
        for (int j = 0; j < last; j++) {
            score[j] = 0;
            for (size_t c = 0; c < d; c++) score[j] += tensor_get(&o->q, q + c) * k[kv + (size_t)j * d + c];
            score[j] = score[j] * (double)o->args.scale + (g->mask ? tensor_get(&o->mask, i * (size_t)g->keys + (size_t)j) : 0);
            largest = fmax(largest, score[j]);
        }
        for (int j = 0; j < last; j++) total += score[j] = exp(score[j] - largest);
        for (size_t c = 0; c < d; c++) {
            double want = last > 0 ? 0 : NAN;
            for (int j = 0; j < last; j++) want += score[j] / total * v[kv + (size_t)j * d + c];
            r.at[t * d + c] = q + c, r.want[t * d + c] = want,
                         r.size[t * d + c] = g->type == HONE_CUDA_BF16 ? 2000 : 250; /* weights are rounded, too */
        }
    }
    free(score), free(k), free(v);
    return r;
}
static bool check(bench *b, const heads *g, operands *o, const char *text, const reference *r) {
    char what[200];
    snprintf(what, sizeof what, "attention %s type %d b%d h%d/%d q%d k%d d%d causal %d mask %d lengths %d", text, g->type, g->batches,
             g->heads, g->kv_heads, g->queries, g->keys, g->head_size, g->causal, g->mask, g->lengths);
    if (hone_cuda_wait(b->g)) stop("%s: %s", what, hone_fail_text());
    return reference_check(b, r, &o->y, what);
}
static void every_way(bench *b, heads g) {
    static const way ways[] = {{.warps = 1, .splits = 1},  {.warps = 2, .splits = 1},   {.warps = 4, .splits = 1},
                               {.warps = 8, .splits = 1},  {.warps = 1, .splits = 3},   {.warps = 4, .splits = 2},
                               {0, 1, 1, 64, 2, 2, false}, {0, 1, 2, 128, 2, 8, false}, {0, 1, 2, 64, 3, 3, false},
                               {0, 1, 3, 64, 2, 1, false}};
    operands o = operands_of(b, &g);
    reference reference_ = {0};
    if (!b->collect) reference_ = reference_of(&g, &o);
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        ready r;
        char text[48];
        if (!prepare_way(b, &g, &o, ways[k], &r)) continue;
        way_text(&ways[k], text, sizeof text);
        OK(hone_cuda_set(b->g, o.y.at, 0xfb, o.y.bytes));
        OK(once(b, &r));
        check(b, &g, &o, text, &reference_);
    }
    reference_free(&reference_);
    operands_free(b, &o);
}
static double one(bench *b, heads g) {
    operands o = operands_of(b, &g);
    double least = 0, ratio = 0;
    ready best = {0};
    char text[64] = "", what[80], spec[64];
    static const way ways[] = {
        {.warps = 1, .splits = 1},    {.warps = 2, .splits = 1},   {.warps = 4, .splits = 1},   {.warps = 8, .splits = 1},
        {.warps = 1, .splits = 4},    {.warps = 1, .splits = 8},   {.warps = 1, .splits = 16},  {.warps = 1, .splits = 32},
        {.warps = 4, .splits = 2},    {.warps = 4, .splits = 8},   {0, 1, 1, 64, 2, 8, false},  {0, 1, 1, 128, 2, 8, false},
        {0, 1, 2, 64, 2, 8, false},   {0, 1, 2, 128, 2, 8, false}, {0, 1, 2, 160, 2, 8, false}, {0, 1, 2, 176, 2, 8, false},
        {0, 1, 2, 192, 2, 64, false}, {0, 1, 3, 64, 2, 64, false}, {0, 1, 3, 128, 2, 8, false}, {0, 1, 3, 128, 2, 64, false},
        {0, 1, 2, 128, 2, 64, true},  {0, 1, 2, 192, 2, 64, true}, {0, 1, 3, 128, 2, 64, true}, {0, 1, 3, 64, 3, 64, true},
        {0, 1, 3, 128, 3, 64, true},  {0, 1, 2, 128, 2, 8, true}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const way w = ways[i];
        ready r;
        if (w.splits * 64 > g.keys && w.splits > 1) continue;
        if (w.warps && (double)g.batches * g.heads * g.queries * g.keys > 1e9) continue; /* too slow to try */
        if (!prepare_way(b, &g, &o, w, &r)) continue;
        contender c = contender_of(b, "hone", once, &r);
        in_turns(b, &c, 1, 3);
        char one[64];
        way_text(&w, one, sizeof one);
        fprintf(b->csv, "attention,%d,%d,%d,%d,%d,%d,%d,%s,%.3f\n", g.batches, g.heads, g.kv_heads, g.queries, g.keys, g.head_size,
                g.causal, one, middle(&c));
        if (least == 0 || middle(&c) < least) least = middle(&c), best = r, snprintf(text, sizeof text, "%s", one);
        contender_free(b, &c);
    }
    if (least > 0) {
        snprintf(spec, sizeof spec, "%d %d %d %d %d %d %d", g.batches, g.heads, g.kv_heads, g.queries, g.keys, g.head_size, g.causal);
        contender c[3] = {contender_of(b, "hone", once, &best), contender_torch(b, "cudnn", spec), contender_torch(b, "flash", spec)};
        in_turns(b, c, 3, 11);
        reference r = reference_of(&g, &o);
        check(b, &g, &o, text, &r);
        reference_free(&r);
        snprintf(what, sizeof what, "b%d h%d/%d q%d k%d d%d%s", g.batches, g.heads, g.kv_heads, g.queries, g.keys, g.head_size,
                 g.causal ? " causal" : "");
        ratio = tell(b, "attention", what, text, c, 3,
                     4.0 * g.batches * g.heads * (double)g.queries * g.keys * g.head_size * (g.causal ? 0.5 : 1),
                     (double)(o.q.bytes + o.k.bytes + o.v.bytes + o.y.bytes));
        contender_free(b, &c[0]);
    }
    operands_free(b, &o);
    return ratio;
}
void bench_attention(bench *b) {
    enum { F16 = HONE_CUDA_F16, BF16 = HONE_CUDA_BF16 };
    if (b->check) {
        every_way(b, (heads){F16, 2, 2, 2, 70, 130, 64, 0, false, false}), every_way(b, (heads){F16, 1, 4, 2, 33, 65, 40, 0, true, false});
        every_way(b, (heads){BF16, 2, 2, 1, 66, 66, 80, 1, false, false}), every_way(b, (heads){F16, 1, 2, 1, 9, 150, 128, 1, true, true});
        every_way(b, (heads){F16, 2, 8, 2, 1, 300, 64, 0, false, true}), every_way(b, (heads){F16, 1, 1, 1, 5, 20, 21, 0, false, false});
        every_way(b, (heads){F16, 2, 1, 1, 20, 3, 16, 1, false, true}), every_way(b, (heads){F16, 1, 3, 3, 130, 200, 256, 1, false, false});
    }
    if (b->time) {
        mean all = {.text = "attention f16, head size 64"};
        static const int tokens[] = {128, 197, 512};
        for (int batch = 1; batch <= 32; batch *= 32)
            for (size_t k = 0; k < 3; k++) mean_add(&all, one(b, (heads){F16, batch, 12, 12, tokens[k], tokens[k], 64, 0, false, false}));
        if (!b->collect) mean_tell(b, &all, "1.0 each");
        one(b, (heads){F16, 1, 12, 12, 512, 512, 64, 1, false, false}), one(b, (heads){F16, 32, 12, 12, 512, 512, 64, 1, false, false});
        one(b, (heads){F16, 4, 32, 32, 4096, 4096, 128, 0, false, false}),
            one(b, (heads){F16, 4, 32, 32, 4096, 4096, 128, 1, false, false});
        one(b, (heads){F16, 1, 32, 8, 1, 4096, 128, 0, false, false}), one(b, (heads){F16, 8, 32, 8, 1, 4096, 128, 0, false, false});
    }
}
