/* SPDX-License-Identifier: Apache-2.0
   own_cell: recurrent layers by the kernel of src/kernels/cuda/cell.cu, all steps in one launch: LSTM, and
   GRU whose state is multiplied before it is reset, one way or both. Others, and wider states than a
   cluster's shared memory holds weights of, are printed stage by stage. */
#include <string.h>

#include "base/round.h"
#include "device/cuda/own.h"
#include "loops/match_cell.h"

enum {
    MOST_WAYS = 2,
    MOST_UNITS = 64,
    PORTABLE = 8,
    MOST_CLUSTER = 16,
    MOST_TILES = 4,
    SLOTS = 4,
    EIGHT = 8
};
struct hone_own_cell {
    hone_match_cell m;
    hone_dtype half; /* as which weights and states are multiplied */
    int units, cluster, tiles, shared, ref;
    int64_t bias_at; /* behind the weights; 0: there is none */
};

/* ---- weights ---- */
typedef struct {
    struct {
        const float *at; /* NULL: zeros */
        int64_t way, each, k;
    } slot[SLOTS];
    const float *bias[SLOTS];
    int64_t bias_way[SLOTS], bias_at, ways, width, units, cluster;
    int gates;
    hone_dtype half;
} packing;
static void pack(const void *arg, void *dst, int part, int parts) {
    const packing *p = arg;
    const int64_t depth = p->units * p->cluster, rows = p->ways * depth * SLOTS;
    float line[MOST_UNITS * MOST_CLUSTER];
    for (int64_t r = rows * part / parts; r < rows * (part + 1) / parts; r++) {
        const int64_t eight = r / (EIGHT * SLOTS), unit = eight * EIGHT % depth + r % EIGHT,
                      way = eight * EIGHT / depth;
        const int s = (int)(r / EIGHT % SLOTS);
        const float *from = p->slot[s].at && unit < p->width
                                ? p->slot[s].at + way * p->slot[s].way + unit * p->slot[s].each
                                : NULL;
        for (int64_t k = 0; k < depth; k++) line[k] = from && k < p->width ? from[k * p->slot[s].k] : 0;
        hone_dtype_store_n(p->half, (char *)dst + r * depth * hone_dtypes[p->half].bytes, HONE_F32, line,
                           (size_t)depth, false);
    }
    float *bias = (float *)(void *)((char *)dst + p->bias_at);
    for (int64_t k = 0; p->bias_at && !part && k < p->ways * p->gates * depth; k++) {
        const int64_t unit = k % depth, gate = k / depth % p->gates, way = k / depth / p->gates;
        bias[k] = p->bias[gate] && unit < p->width ? p->bias[gate][way * p->bias_way[gate] + unit] : 0;
    }
}
static const float *numbers(const hone_device_call *c, int tensor) { /* NULL: they are no constant of f32 */
    const hone_ref r = c->ref[tensor];
    return c->packs && c->constant && c->constant[tensor] && hone_base_is_constant(r.base) &&
                   c->instance->tensor[tensor].dtype == HONE_DTYPE_F32
               ? (const float *)(const void *)((const char *)hone_packs_constant(c->packs, r.base) + r.offset)
               : NULL;
}
/* Which gate of which product stands in which of the kernel's slots. */
static bool slots(const hone_device_call *c, const hone_match_cell *m, packing *p) {
    const bool lstm = m->kind == HONE_CELL_LSTM;
    for (int s = 0; s < m->gates; s++) {
        const int product = !lstm && s == 2;
        const hone_cell_weights *w = m->weights + product;
        if (product >= m->n_weights || w->tensor < 0) return false;
        const float *at = numbers(c, w->tensor);
        if (!at) return false;
        p->slot[s].at = at + (w->first + (product ? 0 : s)) * w->gate, p->slot[s].way = w->way;
        p->slot[s].each = w->each, p->slot[s].k = w->k;
        const hone_cell_walk *b = m->bias + product;
        if (b->tensor < 0) continue;
        const float *bias = numbers(c, b->tensor);
        if (!bias || b->each != 1) return false;
        p->bias[s] = bias + b->c + (product ? 0 : s) * m->width, p->bias_way[s] = b->way, p->bias_at = 1;
    }
    return true;
}
static int shared_of(const hone_own_cell *p) {
    const int pitch = p->units * p->cluster * (int)hone_dtypes[p->half].bytes + 16;
    return (p->units * SLOTS + 2 * EIGHT * p->tiles) * pitch;
}
/* The most blocks that all have columns: a step is shortest where each has few. */
static bool choose(hone_own_cell *p, const hone_cuda_facts *gpu) {
    const int64_t width = p->m.width;
    const int most = gpu->major < 12 ? MOST_CLUSTER : PORTABLE;
    p->cluster = PORTABLE;
    while (p->cluster > 2 && (p->cluster - 1) * EIGHT >= width) p->cluster /= 2;
    for (; p->cluster <= most; p->cluster *= 2) {
        p->units = (int)((width + p->cluster * EIGHT - 1) / (p->cluster * EIGHT) * EIGHT);
        if (p->units > MOST_UNITS) continue;
        /* clusters lie side by side as long as there are multiprocessors */
        const int64_t eights = hone_ceil_div(p->m.rows, EIGHT);
        for (p->tiles = 1; p->tiles < MOST_TILES; p->tiles *= 2)
            if (hone_ceil_div(eights, p->tiles) * p->m.ways * p->cluster <= gpu->sms) break;
        while (p->tiles > 1 && shared_of(p) > gpu->shared_bytes) p->tiles /= 2;
        if ((p->shared = shared_of(p)) <= gpu->shared_bytes) return true;
    }
    return false;
}
hone_status hone_own_cell_match(hone_arena *arena, const hone_cuda_facts *gpu, const hone_device_call *c,
                                int stage, int ref, hone_own_cell **out, hone_ref *packed, int64_t *bytes) {
    const hone_instance *in = c->instance;
    hone_own_cell p = {.ref = ref,
                       .half = c->how.precision == HONE_PRECISION_TF32 ? HONE_DTYPE_F32 : c->how.precision};
    int end = stage;
    packing k = {.half = p.half};
    *out = NULL;
    while (end < in->n_stage && in->stage[end].over == in->stage[stage].over) end++;
    if (gpu->major < 9 || (stage && in->stage[stage - 1].over == in->stage[stage].over) ||
        !hone_match_cell_of(&c->sized, stage, end, &p.m) ||
        (p.m.kind != HONE_CELL_LSTM && p.m.kind != HONE_CELL_GRU) || p.m.ways > MOST_WAYS ||
        p.m.steps > INT32_MAX / 2 || p.m.rows > 1 << 20 || !choose(&p, gpu) || !slots(c, &p.m, &k))
        return HONE_OK;
    for (int way = 0; way < p.m.ways; way++)
        if (p.m.when[way].c < INT32_MIN / 2 || p.m.when[way].c > INT32_MAX / 2 || p.m.when[way].k < -1 ||
            p.m.when[way].k > 1)
            return HONE_OK;
    k.ways = p.m.ways, k.width = p.m.width, k.units = p.units, k.cluster = p.cluster, k.gates = p.m.gates;
    const int64_t depth = k.units * k.cluster,
                  all = k.ways * depth * SLOTS * depth * hone_dtypes[p.half].bytes;
    *bytes = all;
    if (k.bias_at) k.bias_at = p.bias_at = all, *bytes += k.ways * k.gates * depth * 4;
    int64_t key[8 + 2 * SLOTS * 4] = {211, p.half, k.units, k.cluster, k.ways, k.width, k.gates, k.bias_at},
                                n = 8;
    for (int s = 0; s < SLOTS; s++) /* constants stay where they are as long as packed forms are kept */
        key[n++] = (int64_t)(uintptr_t)k.slot[s].at, key[n++] = k.slot[s].way, key[n++] = k.slot[s].each,
        key[n++] = k.slot[s].k, key[n++] = (int64_t)(uintptr_t)k.bias[s], key[n++] = k.bias_way[s];
    const hone_packing of = {.source = (const char *)k.slot[0].at,
                             .source_bytes = 0,
                             .bytes = (size_t)*bytes,
                             .parts = all > 1 << 18 ? 32 : 1,
                             .fill = pack,
                             .arg = &k,
                             .arg_bytes = sizeof k};
    *packed = (hone_ref){hone_packs_get(c->packs, key, (int)n, &of), -1, 0};
    if (packed->base == HONE_BASE_NONE || !(*out = hone_arena_copy(arena, &p, sizeof p)))
        return hone_steps_no_memory();
    return HONE_OK;
}

/* ---- launches ---- */
hone_status hone_own_cell_take(hone_arena *arena, const hone_own_cell *p, const hone_instance *in,
                               hone_taken *out) {
    const hone_match_cell *m = &p->m;
    const hone_own_place none = {-1, false, 0};
    const hone_cell_walk *h0 = &m->h0, *c0 = &m->c0;
    if ((h0->tensor >= 0 && in->tensor[h0->tensor].dtype != HONE_DTYPE_F32) ||
        (c0->tensor >= 0 && in->tensor[c0->tensor].dtype != HONE_DTYPE_F32))
        return HONE_OK;
    hone_own_launch own = {.kind = HONE_OWN_CELL,
                           .aligned = 4,
                           .a = {m->x, false, 0},
                           .b = {p->ref, false, 0},
                           .c = {m->h, false, 0},
                           .bias = p->bias_at ? (hone_own_place){p->ref, false, p->bias_at} : none,
                           .whole = none,
                           .residual = h0->tensor < 0 ? none : (hone_own_place){h0->tensor, false, h0->c * 4},
                           .workspace = m->c_read ? (hone_own_place){m->c, false, 0} : none,
                           .v = c0->tensor < 0 ? none : (hone_own_place){c0->tensor, false, c0->c * 4}};
    own.cell = (hone_cuda_cell){.h0_way = h0->way,
                                .h0_row = h0->row,
                                .h0_each = h0->each,
                                .c0_way = c0->way,
                                .c0_row = c0->row,
                                .c0_each = c0->each,
                                .steps = (int)m->steps,
                                .ways = (int)m->ways,
                                .rows = (int)m->rows,
                                .width = (int)m->width};
    for (int way = 0; way < m->ways; way++)
        own.cell.when_c[way] = (int)m->when[way].c, own.cell.when_k[way] = (int)m->when[way].k;
    const int64_t parts = (m->rows + EIGHT * p->tiles - 1) / (EIGHT * p->tiles);
    own.shape = (hone_cuda_launch_shape){.grid = {(int)(parts * m->ways) * p->cluster, 1, 1},
                                         .threads = p->units / EIGHT * 32,
                                         .shared_bytes = p->shared,
                                         .cluster = p->cluster};
    const hone_cuda_fill fill[] = {{"IN_TYPE", (int)hone_own_type(p->half), NULL},
                                   {"KIND", m->kind == HONE_CELL_GRU, NULL},
                                   {"UNITS", p->units, NULL},
                                   {"CLUSTER", p->cluster, NULL},
                                   {"TILES", p->tiles, NULL}};
    hone_text text = {0};
    HONE_TRY(hone_cuda_print(&text, "cell", fill, 5));
    HONE_TRY(hone_own_finish(arena, &text, "hone_cell", &own, out->launch + out->n_launch++));
    out->n_stage = m->stages;
    return HONE_OK;
}
