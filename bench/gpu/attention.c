/* SPDX-License-Identifier: Apache-2.0
   attention: softmax(scale Q Kᵀ + mask) V against double precision, and against cuDNN's and FlashAttention's
   through PyTorch. */
#include "device/cuda/attention.h"
#include "harness.h"

enum { WAYS = 128 };

typedef struct {
    int type, batches, heads, kv_heads, queries, keys, head_size, causal;
    bool mask, lengths;
} heads;
typedef struct {
    tensor q, k, v, y, mask, lengths;
    hone_cuda_attention args;
} operands;
typedef struct {
    const hone_cuda_kernel *kernel;
    hone_cuda_launch_shape launch;
    hone_cuda_attention_args args;
} ready;

/* [batch][head][token][head size], as the peers take it */
static operands operands_of(bench *b, const heads *g) {
    const size_t d = (size_t)g->head_size,
                 nq = (size_t)g->batches * (size_t)g->heads * (size_t)g->queries * d,
                 nk = (size_t)g->batches * (size_t)g->kv_heads * (size_t)g->keys * d;
    operands o = {.q = tensor_random(b, g->type, nq, 1),
                  .k = tensor_random(b, g->type, nk, 1),
                  .v = tensor_random(b, g->type, nk, 1),
                  .y = tensor_poison(b, g->type, nq),
                  .mask =
                      tensor_random(b, HONE_CUDA_F32, g->mask ? (size_t)g->queries * (size_t)g->keys : 1, 2),
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
    for (int k = 0; k < 3; k++)
        o.args.stride_q[k] = o.args.stride_y[k] = sq[k], o.args.stride_k[k] = o.args.stride_v[k] = sk[k];
    o.args.stride_mask[2] = g->keys;
    return o;
}
static void operands_free(bench *b, operands *o) {
    tensor *all[] = {&o->q, &o->k, &o->v, &o->y, &o->mask, &o->lengths};
    for (size_t k = 0; k < 6; k++) tensor_free(b, all[k]);
}
static hone_cuda_attended attended_of(const heads *g, const operands *o) {
    return (hone_cuda_attended){(hone_cuda_type)g->type, g->causal, g->mask ? HONE_CUDA_F32 : 0, o->args};
}
static bool prepare_way(bench *b, const heads *g, const operands *o, const hone_cuda_attention_way *w,
                        ready *r) {
    const hone_cuda_attended t = attended_of(g, o);
    size_t workspace, counters;
    hone_text text = {0};
    hone_cuda_attention_room(&t, w, &workspace, &counters);
    if (workspace > ROOM || counters > COUNTERS) return false;
    OK(hone_cuda_attention_print(&text, &t, w));
    r->launch = hone_cuda_attention_launch(&t, &b->gpu, w);
    r->kernel = kernel_of(b, text.text, "hone_attention", r->launch.shared_bytes);
    hone_text_free(&text);
    if (!r->kernel) return false;
    OK(hone_cuda_attention_fill(b->g, &t, w, &r->args));
    return true;
}
static hone_status once(bench *b, void *what) {
    const ready *r = what;
    return hone_cuda_launch(b->g, r->kernel, &r->launch, &r->args);
}
static reference reference_of(const heads *g, const operands *o) {
    const size_t group = (size_t)(g->heads / g->kv_heads), d = (size_t)g->head_size,
                 rows = (size_t)g->batches * (size_t)g->heads * (size_t)g->queries;
    const bool all = (double)rows * g->keys * (double)d < 5e7;
    reference r = reference_make(all ? rows * d : 40 * d, (size_t)-1);
    double *score = malloc(sizeof *score * (size_t)g->keys), *k = tensor_doubles(&o->k),
           *v = tensor_doubles(&o->v);
    for (size_t t = 0; t < r.n / d; t++) {
        const size_t row = all      ? t
                           : t == 0 ? rows - 1
                                    : dice() % rows,
                     i = row % (size_t)g->queries, h = row / (size_t)g->queries % (size_t)g->heads,
                     z = row / (size_t)g->queries / (size_t)g->heads;
        const int seen = g->lengths ? ((int *)o->lengths.host)[z] : g->keys,
                  own = (int)i + seen - g->queries + 1, last = g->causal && own < seen ? own : seen;
        const size_t kv = (z * (size_t)g->kv_heads + h / group) * (size_t)g->keys * d, q = row * d;
        double largest = -INFINITY, total = 0;
        for (int j = 0; j < last; j++) {
            score[j] = 0;
            for (size_t c = 0; c < d; c++) score[j] += tensor_get(&o->q, q + c) * k[kv + (size_t)j * d + c];
            score[j] = score[j] * (double)o->args.scale +
                       (g->mask ? tensor_get(&o->mask, i * (size_t)g->keys + (size_t)j) : 0);
            largest = fmax(largest, score[j]);
        }
        for (int j = 0; j < last; j++) total += score[j] = exp(score[j] - largest);
        for (size_t c = 0; c < d; c++) {
            double want = last > 0 ? 0 : NAN;
            for (int j = 0; j < last; j++) want += score[j] / total * v[kv + (size_t)j * d + c];
            r.at[t * d + c] = q + c, r.want[t * d + c] = want,
                         /* weights are rounded, too */
                r.size[t * d + c] = g->type == HONE_CUDA_BF16 ? 2000 : 250;
        }
    }
    free(score), free(k), free(v);
    return r;
}
static bool check(bench *b, const heads *g, operands *o, const char *text, const reference *r) {
    char what[200];
    snprintf(what, sizeof what, "attention %s type %d b%d h%d/%d q%d k%d d%d causal %d mask %d lengths %d",
             text, g->type, g->batches, g->heads, g->kv_heads, g->queries, g->keys, g->head_size, g->causal,
             g->mask, g->lengths);
    if (hone_cuda_wait(b->g)) stop("%s: %s", what, hone_fail_text());
    return reference_check(b, r, &o->y, what);
}
/* All ways; or of each unit the first and the last, and the first that splits the keys. */
static void try_ways(bench *b, heads g, bool few) {
    hone_cuda_attention_way ways[WAYS];
    operands o = operands_of(b, &g);
    reference reference_ = {0};
    if (!b->collect) reference_ = reference_of(&g, &o);
    const hone_cuda_attended t = attended_of(&g, &o);
    const int n = hone_cuda_attention_ways(&t, &b->gpu, ways, WAYS);
    const int every = few ? 1 : b->every;
    for (int k = (g.queries + g.keys) % every; k < n; k += every) {
        bool first = true, last = ways[k].splits == 1;
        for (int q = 0; q < k; q++)
            first &= ways[q].unit != ways[k].unit || (ways[q].splits > 1) != (ways[k].splits > 1);
        for (int q = k + 1; q < n; q++) last &= ways[q].unit != ways[k].unit || ways[q].splits > 1;
        if (few && !first && !last) continue;
        ready r;
        char text[64];
        if (!prepare_way(b, &g, &o, &ways[k], &r)) continue;
        hone_cuda_attention_way_text(&ways[k], text, sizeof text);
        OK(hone_cuda_set(b->g, o.y.at, 0xfb, o.y.bytes));
        OK(once(b, &r));
        if (check(b, &g, &o, text, &reference_)) check_again(b, &o.y, once, &r, "attention");
    }
    reference_free(&reference_);
    operands_free(b, &o);
}
static void every_way(bench *b, heads g) { try_ways(b, g, false); }
/* Queries and keys of every number up to two tiles, head sizes around each edge, tensors that begin
   anywhere. */
static void edges(bench *b) {
    enum { F16 = HONE_CUDA_F16, BF16 = HONE_CUDA_BF16 };
    static const int sizes[] = {1,  7,  8,  9,  15, 16,  17,  31,  32,  33,  48,  63,
                                64, 65, 72, 80, 96, 127, 128, 129, 160, 200, 255, 256};
    for (int n = 1; n <= 136; n += b->every)
        try_ways(b, (heads){F16, 1, 4, 2, n, 100, 64, n % 2, false, false}, true),
            try_ways(b, (heads){F16, 2, 2, 2, 70, n, 64, 0, false, n > 4 && n % 3 == 0}, true),
            try_ways(b, (heads){BF16, 1, 8, 2, 1, 2 * n, 128, 0, false, false}, true);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k += (size_t)b->every)
        try_ways(b, (heads){F16, 1, 2, 1, 20, 70, sizes[k], 1, false, false}, true);
    for (b->shift = 1; b->shift <= 8; b->shift += b->every)
        try_ways(b, (heads){F16, 1, 2, 1, 20, 70, 64, 0, true, false}, true);
    b->shift = 0;
}
static void what_text(const heads *g, char *to, size_t bytes) {
    snprintf(to, bytes, "b%d h%d/%d q%d k%d d%d%s", g->batches, g->heads, g->kv_heads, g->queries, g->keys,
             g->head_size, g->causal ? " causal" : "");
}
static double one(bench *b, heads g) {
    operands o = operands_of(b, &g);
    const hone_cuda_attended t = attended_of(&g, &o);
    hone_cuda_attention_way way;
    double ratio = 0;
    ready r;
    char text[64], what[80], spec[64];
    if (hone_cuda_attention_best(&t, &b->gpu, &way) && prepare_way(b, &g, &o, &way, &r)) {
        snprintf(spec, sizeof spec, "%d %d %d %d %d %d %d", g.batches, g.heads, g.kv_heads, g.queries, g.keys,
                 g.head_size, g.causal);
        contender c[3] = {contender_of(b, "hone", once, &r), contender_torch(b, "cudnn", spec),
                          contender_torch(b, "flash", spec)};
        in_turns(b, c, 3, 11);
        const double pairs =
            (double)g.batches * g.heads *
            ((double)g.queries * g.keys - (g.causal ? (double)g.queries * (g.queries - 1) / 2 : 0));
        reference reference_ = reference_of(&g, &o);
        hone_cuda_attention_way_text(&way, text, sizeof text), what_text(&g, what, sizeof what);
        if (check(b, &g, &o, text, &reference_)) check_again(b, &o.y, once, &r, "attention");
        reference_free(&reference_);
        ratio = tell(b, "attention", what, text, c, 3, 4 * pairs * g.head_size,
                     (double)(o.q.bytes + o.k.bytes + o.v.bytes + o.y.bytes));
        contender_free(b, &c[0]);
    }
    operands_free(b, &o);
    return ratio;
}
static void search(bench *b, mean *all, heads g) {
    hone_cuda_attention_way ways[WAYS], chosen, best = {0};
    operands o = operands_of(b, &g);
    const hone_cuda_attended t = attended_of(&g, &o);
    const int n = hone_cuda_attention_ways(&t, &b->gpu, ways, WAYS);
    double least = 0, mine = 0;
    hone_cuda_attention_best(&t, &b->gpu, &chosen);
    for (int k = 0; k < n; k++) {
        ready r;
        if (ways[k].unit == HONE_CUDA_ATTENTION_WARPS && b->gpu.major == 9 &&
            (double)g.batches * g.heads * g.queries * g.keys > 3e8)
            continue; /* too slow to try */
        if (!prepare_way(b, &g, &o, &ways[k], &r)) continue;
        contender c = contender_of(b, "hone", once, &r);
        in_turns(b, &c, 1, 3);
        const double us = middle(&c);
        const hone_cuda_attention_way *w = &ways[k];
        fprintf(b->csv, "attention,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%.3f\n", g.batches, g.heads,
                g.kv_heads, g.queries, g.keys, g.head_size, g.causal, (int)w->unit, w->warps, w->splits,
                w->consumers, w->block_k, w->stages, w->section, w->turns, us);
        if (least == 0 || us < least) least = us, best = *w;
        if (!memcmp(w, &chosen, sizeof chosen)) mine = us;
        contender_free(b, &c);
    }
    if (!b->collect && least > 0) {
        char what[80], first[64], second[64];
        what_text(&g, what, sizeof what);
        hone_cuda_attention_way_text(&best, first, sizeof first),
            hone_cuda_attention_way_text(&chosen, second, sizeof second);
        tell_search(b, all, "attention", what, least, first, mine, second);
    }
    operands_free(b, &o);
}
void bench_attention(bench *b) {
    enum { F16 = HONE_CUDA_F16, BF16 = HONE_CUDA_BF16 };
    if (b->check) {
        edges(b);
        every_way(b, (heads){F16, 2, 2, 2, 70, 130, 64, 0, false, false}),
            every_way(b, (heads){F16, 1, 4, 2, 33, 65, 40, 0, true, false});
        every_way(b, (heads){BF16, 2, 2, 1, 66, 66, 80, 1, false, false}),
            every_way(b, (heads){F16, 1, 2, 1, 9, 150, 128, 1, true, true});
        every_way(b, (heads){F16, 2, 8, 2, 1, 900, 64, 0, false, true}),
            every_way(b, (heads){F16, 1, 1, 1, 5, 20, 21, 0, false, false});
        every_way(b, (heads){F16, 2, 1, 1, 20, 3, 16, 1, false, true}),
            every_way(b, (heads){F16, 1, 3, 3, 130, 200, 256, 1, false, false});
        every_way(b, (heads){BF16, 1, 6, 2, 7, 1000, 128, 1, false, true}),
            every_way(b, (heads){F16, 3, 12, 12, 300, 333, 64, 1, false, false});
    }
    if (b->time) {
        mean all = {.text = "attention f16, head size 64"};
        static const int tokens[] = {128, 197, 512};
        for (int batch = 1; batch <= 32; batch *= 32)
            for (size_t k = 0; k < 3; k++)
                mean_add(&all,
                         one(b, (heads){F16, batch, 12, 12, tokens[k], tokens[k], 64, 0, false, false}));
        if (!b->collect) mean_tell(b, &all, "1.0 each");
        one(b, (heads){F16, 1, 12, 12, 512, 512, 64, 1, false, false}),
            one(b, (heads){F16, 32, 12, 12, 512, 512, 64, 1, false, false});
        one(b, (heads){F16, 4, 32, 32, 4096, 4096, 128, 0, false, false}),
            one(b, (heads){F16, 4, 32, 32, 4096, 4096, 128, 1, false, false});
        one(b, (heads){F16, 1, 32, 8, 1, 4096, 128, 0, false, false}),
            one(b, (heads){F16, 8, 32, 8, 1, 4096, 128, 0, false, false});
    }
    if (b->search) {
        static const heads
            seen[] = {{F16, 1, 12, 12, 128, 128, 64, 0, 0, 0},    {F16, 1, 12, 12, 197, 197, 64, 0, 0, 0},
                      {F16, 1, 12, 12, 512, 512, 64, 0, 0, 0},    {F16, 32, 12, 12, 128, 128, 64, 0, 0, 0},
                      {F16, 32, 12, 12, 197, 197, 64, 0, 0, 0},   {F16, 32, 12, 12, 512, 512, 64, 0, 0, 0},
                      {F16, 1, 12, 12, 512, 512, 64, 1, 0, 0},    {F16, 32, 12, 12, 512, 512, 64, 1, 0, 0},
                      {F16, 4, 32, 32, 4096, 4096, 128, 0, 0, 0}, {F16, 4, 32, 32, 4096, 4096, 128, 1, 0, 0},
                      {F16, 1, 32, 8, 1, 4096, 128, 0, 0, 0},     {F16, 8, 32, 8, 1, 4096, 128, 0, 0, 0},
                      {F16, 1, 16, 16, 1024, 1024, 80, 0, 0, 0},  {F16, 32, 12, 12, 1, 1024, 64, 0, 0, 0},
                      {F16, 16, 8, 8, 1024, 1024, 64, 0, 0, 0},   {F16, 2, 32, 8, 2048, 2048, 128, 1, 0, 0},
                      {F16, 1, 8, 8, 4096, 4096, 64, 0, 0, 0},    {F16, 1, 8, 8, 4096, 4096, 128, 0, 0, 0}},
            unseen[] = {{F16, 8, 16, 16, 384, 384, 64, 0, 0, 0},   {F16, 4, 16, 4, 1024, 1024, 128, 1, 0, 0},
                        {F16, 4, 16, 16, 2048, 2048, 64, 0, 0, 0}, {F16, 3, 8, 8, 900, 900, 96, 0, 0, 0},
                        {F16, 2, 12, 12, 600, 600, 128, 0, 0, 0},  {F16, 16, 12, 12, 640, 640, 64, 1, 0, 0},
                        {F16, 4, 12, 12, 256, 256, 64, 1, 0, 0},   {F16, 1, 20, 20, 1500, 1500, 64, 0, 0, 0},
                        {F16, 4, 32, 8, 1, 8192, 128, 0, 0, 0},    {F16, 1, 12, 12, 1, 700, 64, 0, 0, 0},
                        {F16, 2, 28, 4, 4, 2048, 128, 1, 0, 0},    {F16, 64, 3, 3, 197, 197, 64, 0, 0, 0}};
        mean first = {.text = "attention, shapes it was fitted to"}, second = {.text = "attention, others"};
        for (size_t k = 0; k < sizeof seen / sizeof *seen; k++) search(b, &first, seen[k]);
        for (size_t k = 0; k < sizeof unseen / sizeof *unseen; k++) search(b, &second, unseen[k]);
        if (!b->collect) mean_tell(b, &first, "chosen / best"), mean_tell(b, &second, "0.9");
    }
}
