/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/attention.h"

#include <stdio.h>
#include <string.h>

enum { DECODE_ROWS = 16, MOST_SPLITS = 128 };
static int head_of(const hone_cuda_attended *t, int to) {
    return (int)hone_ceil_div(t->p.head_size, to) * to;
}
/* of one head of keys and values */
static int rows_of(const hone_cuda_attended *t) { return t->p.queries * (t->p.heads / t->p.kv_heads); }
static int bytes_of(const hone_cuda_attended *t) { return t->type == HONE_CUDA_F32 ? 4 : 2; }
static bool aligned(const hone_cuda_attended *t) { /* rows of all four begin at multiples of 16 bytes */
    const long long *const strides[] = {t->p.stride_q, t->p.stride_k, t->p.stride_v, t->p.stride_y};
    const int piece = 16 / bytes_of(t);
    bool all = t->p.head_size % piece == 0 && (t->p.q | t->p.k | t->p.v | t->p.y) % 16 == 0;
    for (int k = 0; k < 12; k++) all &= strides[k / 3][k % 3] % piece == 0;
    return all;
}
/* of a mask, side by side, at even places */
static bool mask_pairs(const hone_cuda_attended *t) {
    bool even = t->p.keys % 2 == 0 && t->p.mask % (t->mask == HONE_CUDA_F32 ? 8 : 4) == 0;
    for (int k = 0; k < 3; k++) even &= t->p.stride_mask[k] % 2 == 0;
    return even;
}
static int mask_rows(const hone_cuda_attended *t) { return t->mask && t->p.stride_mask[2] ? 2 : 1; }
static int shared_of(const hone_cuda_attended *t, const hone_cuda_attention_way *w) {
    const int panels = (int)hone_ceil_div(head_of(t, 16), 128 / bytes_of(t)), tile = panels * 64 * 128;
    if (w->unit == HONE_CUDA_ATTENTION_DECODE) return w->warps * DECODE_ROWS * (head_of(t, 64) + 2) * 4;
    if (w->unit == HONE_CUDA_ATTENTION_WARPS) {
        const int for_q = (int)hone_ceil_div(16 * w->warps, 64) * tile;
        return for_q > 4 * tile ? for_q : 4 * tile;
    }
    return w->consumers * panels * 64 * 128 + 2 * w->stages * panels * w->block_k * 128 +
           w->consumers * 64 * 128 + 8 * (2 * w->consumers + 4 * w->stages);
}
/* What a thread of a warpgroup needs: outputs, scores, weights, a mask, the rest. Of a block's 64 K
   registers, three consumers have 160 each, four 112. */
static int registers_of(const hone_cuda_attended *t, const hone_cuda_attention_way *w) {
    const int mask = !t->mask ? 0 : w->block_k / 8 * mask_rows(t) * (t->mask == HONE_CUDA_F32 ? 2 : 1) + 8;
    return head_of(t, 16) / 2 + w->block_k / 2 + w->block_k / 4 + mask + 40;
}
static int most_registers(int consumers) { return consumers == 3 ? 160 : consumers == 4 ? 112 : 240; }
/* on a multiprocessor */
static int blocks_of(const hone_cuda_attended *t, const hone_cuda_facts *gpu,
                     const hone_cuda_attention_way *w) {
    if (w->consumers > 1) return 1;
    const int fit = (gpu->shared_bytes + 1024) / (shared_of(t, w) + 1024),
              by_registers = 65536 / (registers_of(t, w) * 256);
    return fit < by_registers ? fit : by_registers < 1 ? 1 : by_registers;
}
static long long works_of(const hone_cuda_attended *t, const hone_cuda_attention_way *w) {
    const long long heads = (long long)t->p.batches * t->p.kv_heads;
    if (w->unit == HONE_CUDA_ATTENTION_GROUPS)
        return heads * hone_ceil_div(t->p.queries, 64 / (t->p.heads / t->p.kv_heads) * w->consumers);
    return heads *
           hone_ceil_div(rows_of(t), w->unit == HONE_CUDA_ATTENTION_DECODE ? DECODE_ROWS : 16 * w->warps);
}

/* ---- ways. What each of warpgroups takes was fitted to 18 shapes as an H200 runs them (bench/gpu --search),
   in microseconds: a work's begin and end, a tile of keys, and what grows of it with the head size. ---- */
static const struct {
    int consumers, block_k, stages, turns;
    double work, tile, tile_head; /* tile_head: for each 64 of the head size */
} groups[] = {
    {1, 64, 2, 0, 0.94, 0.61, 0.12},  {1, 128, 2, 0, 0.99, 0.53, 0.35}, {2, 64, 2, 1, 1.20, 0.36, 0.36},
    {2, 128, 2, 1, 1.37, 0.62, 0.61}, {2, 176, 2, 1, 1.83, 0.82, 0.80}, {3, 64, 2, 1, 1.44, 0.37, 0.53},
    {3, 96, 3, 1, 1.05, 0.00, 1.39},  {3, 128, 3, 1, 1.59, 1.53, 0.00}, {4, 64, 3, 1, 1.25, 0.00, 1.19}};
enum { GROUPS = sizeof groups / sizeof *groups };
/* by warps, 1, 2, 4, 8 of them: a tile of 64 keys with a head size of 64 */
static const double few_warps[] = {3.3, 3.0, 2.0, 1.9};
static const struct {
    /* memory: millions of bytes a microsecond */
    double launch, memory, decode, decode_step, decode_rows, join, join_each;
} fitted = {1.2, 3.9, 3.4, 1.58, 0.15, 0.53, 0.08};

int hone_cuda_attention_ways(const hone_cuda_attended *t, const hone_cuda_facts *gpu,
                             hone_cuda_attention_way *way, int most) {
    int n = 0;
    if (t->p.head_size > 256) return 0;
    for (int warps = 1; warps <= 8; warps *= 2)
        for (int splits = 1; splits <= 32; splits *= 2) {
            hone_cuda_attention_way w = {.unit = HONE_CUDA_ATTENTION_WARPS, .warps = warps, .splits = splits};
            if (shared_of(t, &w) > gpu->shared_bytes || (warps > 1 && 16 * warps >= 2 * rows_of(t))) continue;
            if (splits > 1 && (splits * 128 > t->p.keys || works_of(t, &w) * splits > 8 * gpu->sms)) continue;
            if (n < most) way[n++] = w;
        }
    if (t->type == HONE_CUDA_F32) return n; /* the others multiply halves alone */
    for (int warps = 4; warps <= 16 && aligned(t) && rows_of(t) <= 64; warps *= 2)
        for (int splits = 1; splits <= MOST_SPLITS; splits += splits < 4 ? 1 : splits < 16 ? 4 : splits / 2) {
            hone_cuda_attention_way w = {
                .unit = HONE_CUDA_ATTENTION_DECODE, .warps = warps, .splits = splits};
            /* registers */
            if (shared_of(t, &w) > gpu->shared_bytes || (warps == 16 && head_of(t, 64) > 64)) continue;
            if (splits > 1 &&
                (splits * 16 * warps >= 2 * t->p.keys || works_of(t, &w) * splits > 4 * gpu->sms))
                continue;
            if (n < most) way[n++] = w;
        }
    const bool engine = gpu->major == 9 && aligned(t) && t->p.heads / t->p.kv_heads <= 64 && t->p.scale > 0;
    /* heads whose keys and values stay in L2 */
    const int section = 256.0 * t->p.keys * t->p.head_size <= 20e6 ? 64 : 8;
    for (int k = 0; k < GROUPS && engine; k++) {
        hone_cuda_attention_way w = {HONE_CUDA_ATTENTION_GROUPS,
                                     0,
                                     1,
                                     groups[k].consumers,
                                     groups[k].block_k,
                                     groups[k].stages,
                                     section,
                                     groups[k].turns};
        if (shared_of(t, &w) > gpu->shared_bytes || registers_of(t, &w) > most_registers(w.consumers) + 24)
            continue;
        if (n < most) way[n++] = w;
    }
    return n;
}
int hone_cuda_attention_way_text(const hone_cuda_attention_way *w, char *to, size_t bytes) {
    if (w->unit == HONE_CUDA_ATTENTION_GROUPS)
        return snprintf(to, bytes, "wgmma %d x 64 rows, %d keys, %d stages, section %d%s", w->consumers,
                        w->block_k, w->stages, w->section, w->turns ? ", turns" : "");
    return snprintf(to, bytes, "%s %d warps, splits %d",
                    w->unit == HONE_CUDA_ATTENTION_DECODE ? "decode" : "mma", w->warps, w->splits);
}

/* ---- cost: microseconds from counts of work; other GPUs than an H200 are told apart by their
   multiprocessors only --- */
static double most_of(double a, double b) { return a > b ? a : b; }
static double cost_groups(const hone_cuda_attended *t, const hone_cuda_facts *gpu,
                          const hone_cuda_attention_way *w) {
    const long long heads = (long long)t->p.batches * t->p.kv_heads, works = works_of(t, w),
                    tiles = works / heads;
    const long long slots = (long long)gpu->sms * blocks_of(t, gpu, w),
                    queries = 64 / (t->p.heads / t->p.kv_heads);
    double keys = (double)hone_ceil_div(t->p.keys, w->block_k), turns = (double)hone_ceil_div(works, slots);
    if (t->causal && works > slots) { /* pairs of tiles, a long one and a short one */
        double all = 0;
        for (long long i = 0; i < tiles; i++) {
            const long long seen = (i + 1) * queries * w->consumers + t->p.keys - t->p.queries;
            all += (double)hone_ceil_div(seen < 0 ? 0 : seen < t->p.keys ? seen : t->p.keys, w->block_k);
        }
        keys = all / (double)tiles, turns = 2.0 * (double)hone_ceil_div(heads * ((tiles + 1) / 2), slots);
    }
    /* warpgroups that have rows */
    const double live =
        0.5 + 0.5 * (double)hone_ceil_div(t->p.queries, queries) / (double)(tiles * w->consumers);
    for (int k = 0; k < GROUPS; k++)
        if (groups[k].consumers == w->consumers && groups[k].block_k == w->block_k &&
            groups[k].stages == w->stages)
            return fitted.launch +
                   most_of(turns *
                               (groups[k].work +
                                keys * live * (groups[k].tile + groups[k].tile_head * t->p.head_size / 64)),
                           groups[k].work + (double)heads * t->p.keys * t->p.head_size * 4e-6 / 3.7);
    return 1e9;
}
double hone_cuda_attention_cost(const hone_cuda_attended *t, const hone_cuda_facts *gpu,
                                const hone_cuda_attention_way *w) {
    if (w->unit == HONE_CUDA_ATTENTION_GROUPS) return cost_groups(t, gpu, w);
    const double blocks = (double)works_of(t, w) * w->splits,
                 bytes = 4e-6 * t->p.batches * t->p.kv_heads * (double)t->p.keys * t->p.head_size;
    if (w->unit == HONE_CUDA_ATTENTION_DECODE) {
        const int head = head_of(t, 64), fit = (head > 64 ? 8 : 16) / w->warps,
                  rows = rows_of(t) < DECODE_ROWS ? rows_of(t) : DECODE_ROWS;
        const double turns =
                         (double)hone_ceil_div((long long)blocks, (long long)gpu->sms * (fit < 1 ? 1 : fit)),
                     steps = (double)hone_ceil_div(hone_ceil_div(hone_ceil_div(t->p.keys, 16), w->splits),
                                                   w->warps);
        return fitted.decode + fitted.decode_rows * w->warps * rows / 32 +
               most_of(bytes / fitted.memory, turns * steps * fitted.decode_step * head / 128) +
               (w->splits > 1 ? fitted.join + fitted.join_each * w->splits : 0);
    }
    const int by_shared = gpu->shared_bytes / (shared_of(t, w) + 1024),
              by_registers = (t->p.head_size > 80 ? 8 : 10) / w->warps,
              fit = by_shared < by_registers ? by_shared : by_registers;
    const double turns = (double)hone_ceil_div((long long)blocks, (long long)gpu->sms * (fit < 1 ? 1 : fit)),
                 tile = few_warps[w->warps == 1   ? 0
                                  : w->warps == 2 ? 1
                                  : w->warps == 4 ? 2
                                                  : 3] *
                        (0.35 + 0.65 * t->p.head_size / 64) * (t->type == HONE_CUDA_F32 ? 2 : 1);
    return fitted.launch +
           turns * (1 + (double)hone_ceil_div(hone_ceil_div(t->p.keys, 64), w->splits)) * tile +
           (w->splits > 1 ? 0.4 * w->splits : 0);
}
bool hone_cuda_attention_best(const hone_cuda_attended *t, const hone_cuda_facts *gpu,
                              hone_cuda_attention_way *best) {
    hone_cuda_attention_way way[128];
    const int n = hone_cuda_attention_ways(t, gpu, way, 128);
    double least = 0;
    for (int k = 0; k < n; k++) {
        const double cost = hone_cuda_attention_cost(t, gpu, &way[k]);
        if (!k || cost < least) least = cost, *best = way[k];
    }
    return n > 0;
}

/* ---- printing and launching ---- */
hone_status hone_cuda_attention_print(hone_text *out, const hone_cuda_attended *t,
                                      const hone_cuda_attention_way *w) {
    if (w->unit == HONE_CUDA_ATTENTION_GROUPS) {
        const hone_cuda_fill fill[] = {
            {"IN_TYPE", (int)t->type, NULL},   {"HEAD", head_of(t, 16), NULL},
            {"BLOCK_K", w->block_k, NULL},     {"CONSUMERS", w->consumers, NULL},
            {"STAGES", w->stages, NULL},       {"CAUSAL", t->causal, NULL},
            {"TURNS", w->turns, NULL},         {"MASK", (int)t->mask, NULL},
            {"MASK_ROWS", mask_rows(t), NULL}, {"MASK_PAIRS", t->mask && mask_pairs(t), NULL}};
        return hone_cuda_print(out, "attention_wgmma", fill, 10);
    }
    if (w->unit == HONE_CUDA_ATTENTION_DECODE) {
        /* about 230 registers for 128 columns, 128 for 64 */
        const int head = head_of(t, 64), fit = (head > 64 ? 8 : 16) / w->warps;
        const hone_cuda_fill fill[] = {
            {"IN_TYPE", (int)t->type, NULL},       {"HEAD", head, NULL},        {"WARPS", w->warps, NULL},
            {"BLOCKS", fit < 1 ? 1 : fit, NULL},   {"CAUSAL", t->causal, NULL}, {"MASK", (int)t->mask, NULL},
            {"FULL", t->p.head_size == head, NULL}};
        return hone_cuda_print(out, "attention_decode", fill, 7);
    }
    const hone_cuda_fill fill[] = {{"IN_TYPE", (int)t->type, NULL}, {"HEAD", head_of(t, 16), NULL},
                                   {"WARPS", w->warps, NULL},       {"CAUSAL", t->causal, NULL},
                                   {"MASK", (int)t->mask, NULL},    {"SPLIT", w->splits > 1, NULL},
                                   {"ALIGNED", aligned(t), NULL}};
    return hone_cuda_print(out, "attention", fill, 7);
}
hone_cuda_launch_shape hone_cuda_attention_launch(const hone_cuda_attended *t, const hone_cuda_facts *gpu,
                                                  const hone_cuda_attention_way *w) {
    hone_cuda_launch_shape s = {.shared_bytes = shared_of(t, w)};
    if (w->unit == HONE_CUDA_ATTENTION_GROUPS) { /* blocks stay for many tiles */
        const long long works = works_of(t, w), many = (long long)gpu->sms * blocks_of(t, gpu, w);
        s.grid[0] = (int)(works < many ? works : many), s.grid[1] = s.grid[2] = 1,
        s.threads = 128 * (w->consumers + 1);
    } else {
        s.grid[0] = (int)(works_of(t, w) / t->p.batches / t->p.kv_heads), s.grid[1] = t->p.kv_heads,
        s.grid[2] = t->p.batches * w->splits;
        s.threads = 32 * w->warps;
    }
    return s;
}
void hone_cuda_attention_room(const hone_cuda_attended *t, const hone_cuda_attention_way *w,
                              size_t *workspace, size_t *counters) {
    const size_t works = w->splits > 1 ? (size_t)works_of(t, w) : 0;
    const size_t part = w->unit == HONE_CUDA_ATTENTION_DECODE
                            ? DECODE_ROWS * ((size_t)head_of(t, 64) + 2)
                            : 32 * (size_t)w->warps * (size_t)(head_of(t, 16) / 2 + 4);
    *workspace = works * (size_t)w->splits * part * 4, *counters = works * 4;
}
hone_status hone_cuda_attention_fill(hone_cuda *g, const hone_cuda_attended *t,
                                     const hone_cuda_attention_way *w, hone_cuda_attention_args *args) {
    memset(args, 0, sizeof *args);
    if (w->unit != HONE_CUDA_ATTENTION_GROUPS) {
        args->plain = t->p, args->plain.splits = w->splits;
        return HONE_OK;
    }
    const hone_cuda_attention *p = &t->p;
    const int group = p->heads / p->kv_heads;
    args->tiles.p = *p, args->tiles.section = w->section;
    const long long dims[] = {p->head_size, group, p->queries, p->kv_heads, p->batches},
                    keys[] = {p->head_size, p->keys, p->kv_heads, p->batches};
    const int box[] = {64, group, 64 / group, 1, 1}, key_box[] = {64, w->block_k, 1, 1};
#define ROWS(s) (const long long[]){s[1] * 2, s[2] * 2, s[1] * group * 2, s[0] * 2}
#define KEYS(s) \
    (const long long[]) { s[2] * 2, s[1] * 2, s[0] * 2 }
    HONE_TRY(hone_cuda_tiled(g, &args->tiles.map_q, (int)t->type, 5, p->q, dims, ROWS(p->stride_q), box));
    HONE_TRY(hone_cuda_tiled(g, &args->tiles.map_y, (int)t->type, 5, p->y, dims, ROWS(p->stride_y), box));
    HONE_TRY(hone_cuda_tiled(g, &args->tiles.map_k, (int)t->type, 4, p->k, keys, KEYS(p->stride_k), key_box));
    return hone_cuda_tiled(g, &args->tiles.map_v, (int)t->type, 4, p->v, keys, KEYS(p->stride_v), key_box);
}
