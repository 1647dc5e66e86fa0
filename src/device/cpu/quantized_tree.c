/* SPDX-License-Identifier: Apache-2.0
   quantized_tree: element-wise stages that read or make 8 bits and in between add and multiply operands that
   are broadcast: the factors of squeeze and excitation, a mask on scores, a constant a channel; and what is
   rounded twice, with other scales. Found in the program as

        [a function of one byte] [round to 8 bits [, read back]] [clamp] a tree of + and * over  f32(q - zero)
          * scale,  floats and numbers

   Elements that follow on in the result are taken some hundred at a time, each operand as a row of floats in
   scratch; one that is the same again and again is put there once. The arithmetic is that of the kernels
   behind sums (kernels/epilogue.h), in the program's own order: the same bits. Where nothing is broadcast and
   nothing rounded twice quantized_elementwise.c is asked first; what is floats throughout, or reads
   otherwise, is tile code. */
#include <math.h>
#include <string.h>

#include "base/round.h"
#include "base/thread.h"
#include "loops/match_affine.h"
#include "device/cpu/cpu.h"
#include "device/cpu/table.h"
#include "kernels/epilogue.h"

enum {
    AT_ONCE = 512 /* elements: a few rows of floats stay in L1 */,
    LEAST = 1 << 12,
    MOST = 1 << 14,
    FEWEST = 64,
    MAX_LEAVES = 6,
    MAX_NODES = 5,
    MAX_ROWS = 1 << 20
};
typedef struct { /* one number for all elements */
    int tensor;  /* -1: k */
    hone_dtype dtype;
    int64_t c;
    float k;
} number;
typedef struct {
    number value; /* one number; else: */
    int tensor;   /* -1: it is value */
    bool bytes;   /* (q - zero) * scale; else floats */
    number zero, scale;
    hone_affine at;
    const int64_t *row; /* where rows begin */
    int64_t period;     /* after so many elements it is the same again; 0: never within a row */
    bool moves;         /* from row to row */
} leaf;
typedef struct {
    bool product; /* else sum */
    int a, b;     /* leaf k as k, node k as MAX_LEAVES + k */
} node;
typedef struct {
    int n_leaf, n_node, n_tensor, out;
    leaf leaf[MAX_LEAVES];
    node node[MAX_NODES]; /* operands stand before what uses them */
    number lo, hi, quantum, zero, back_zero, back_scale;
    float low, high;
    hone_epilogue_fn *finish;
    const hone_epilogue *kernel;
    const hone_table *table; /* of the bytes; what is stored are these, or floats */
    bool floats;
    const int64_t *row_out;
    int64_t rows, row, span, unit, parts, units,
        /* elements of a row; of a part that is cut in units by itself; at once; units of a span and of a row;
           units a tile */
        grain;
} tree;

/* ---- running ------------------------------------------------------------------------------------------- */
static float read_number(const number *n, void *const *at) {
    if (n->tensor < 0) return n->k;
    if (n->dtype == HONE_DTYPE_F32) return ((const float *)at[n->tensor])[n->c];
    return n->dtype == HONE_DTYPE_U8 ? (float)((const uint8_t *)at[n->tensor])[n->c]
                                     : (float)((const int8_t *)at[n->tensor])[n->c];
}
/* n of a leaf's floats from an offset on: where they are, or put into room. */
static const float *floats_of(const tree *d, const leaf *l, void *const *at, int64_t from, int64_t n,
                              float *room) {
    if (!l->bytes) return (const float *)at[l->tensor] + from;
    const bool is_signed = l->zero.dtype == HONE_DTYPE_I8;
    d->kernel->dequantize((const uint8_t *)at[l->tensor] + from, is_signed ? 0x80 : 0,
                          read_number(&l->zero, at) + (is_signed ? 128.0f : 0.0f), read_number(&l->scale, at),
                          room, n);
    return room;
}
/* A period, again and again. */
static void repeat(const tree *d, const leaf *l, void *const *at, int64_t from, float *room) {
    const float *once = floats_of(d, l, at, from, l->period, room);
    if (once != room) memcpy(room, once, sizeof *room * (size_t)l->period);
    for (int64_t have = l->period; have < d->unit; have *= 2)
        memcpy(room + have, room, sizeof *room * (size_t)(2 * have < d->unit ? have : d->unit - have));
}
/* Is its row widened for each unit, so that a result may take its place? */
static bool own(const tree *d, int k) {
    return k < MAX_LEAVES && d->leaf[k].tensor >= 0 && d->leaf[k].bytes &&
           !(d->leaf[k].period && d->leaf[k].period <= d->unit);
}
static hone_status tile(const hone_step *s, void *const *base, int64_t number_of, void *scratch) {
    const tree *d = s->data;
    void *at[64];
    for (int t = 0; t < d->n_tensor; t++) at[t] = hone_ref_at(s->ref[t], base);
    float *room[MAX_LEAVES];
    for (int k = 0; k < d->n_leaf; k++) room[k] = (float *)scratch + k * AT_ONCE;
    uint8_t *bytes = (uint8_t *)((float *)scratch + d->n_leaf * AT_ONCE);
    const hone_epilogue_row with = {-0.0f,
                                    read_number(&d->lo, at),
                                    read_number(&d->hi, at),
                                    read_number(&d->quantum, at),
                                    read_number(&d->zero, at),
                                    d->low,
                                    d->high,
                                    read_number(&d->back_zero, at),
                                    read_number(&d->back_scale, at)};
    for (int k = 0; k < d->n_leaf; k++)
        if (d->leaf[k].tensor < 0) {
            const float v = read_number(&d->leaf[k].value, at);
            for (int64_t i = 0; i < d->unit; i++) room[k][i] = v;
        }
    const int64_t all = d->rows * d->units, first = number_of * d->grain,
                  end = all - first < d->grain ? all : first + d->grain;
    int64_t before = -1;
    for (int64_t u = first; u < end; u++) {
        const int64_t r = u / d->units, part = u % d->units % d->parts * d->unit,
                      from = u % d->units / d->parts * d->span + part,
                      n = d->span - part < d->unit ? d->span - part : d->unit;
        const float *seen[MAX_LEAVES + MAX_NODES];
        for (int k = 0; k < d->n_leaf; k++) {
            const leaf *l = d->leaf + k;
            seen[k] = room[k];
            if (l->tensor < 0) continue;
            const int64_t begin = l->at.c + l->row[r];
            if (l->period && l->period <= d->unit) {
                if (before < 0 || (before != r && l->moves)) repeat(d, l, at, begin, room[k]);
            } else seen[k] = floats_of(d, l, at, begin + (l->period ? from % l->period : from), n, room[k]);
        }
        before = r;
        char *out = (char *)at[d->out] + (d->row_out[r] + from) * (d->floats ? 4 : 1);
        for (int k = 0; k < d->n_node; k++) {
            const node *g = d->node + k;
            const bool last = k == d->n_node - 1;
            if (last && !g->product) {
                d->finish(&with, seen[g->a], seen[g->b], d->table ? (void *)bytes : (void *)out, n);
                break;
            }
            float *to = (float *)(void *)(bytes + AT_ONCE) + k * AT_ONCE;
            if (g->product && (own(d, g->a) || own(d, g->b))) {
                to = room[own(d, g->a) ? g->a : g->b];
                d->kernel->gate(&to, 0, 1, n, 0, 0, seen[own(d, g->a) ? g->b : g->a], 0);
            } else if (g->product) {
                memcpy(to, seen[g->a], sizeof *to * (size_t)n);
                d->kernel->gate(&to, 0, 1, n, 0, 0, seen[g->b], 0);
            } else {
                static const hone_epilogue_row plain = {-0.0f, -INFINITY, INFINITY, 1, 0, 0, 0, 0, 0};
                d->kernel->f32(&plain, seen[g->a], seen[g->b], to, n);
            }
            seen[MAX_LEAVES + k] = to;
            if (last) d->finish(&with, to, NULL, d->table ? (void *)bytes : (void *)out, n);
        }
        if (!d->n_node) d->finish(&with, seen[0], NULL, d->table ? (void *)bytes : (void *)out, n);
        if (d->table && d->floats) hone_table_floats(d->table->floats, bytes, (float *)(void *)out, n);
        else if (d->table) hone_table_bytes(d->table->bytes, bytes, (uint8_t *)out, n);
    }
    return HONE_OK;
}

/* ---- recognising --------------------------------------------------------------------------------------- */
typedef struct {
    const hone_cpu_call *c;
    const hone_slots_of *slots;
    tree *d;
    int32_t narrows; /* the byte that a table is of, or -1 */
    bool narrow_signed;
} matching;
static const hone_x *at(const matching *m, int32_t x) { return m->c->instance->x + x; }
static bool is_fn(const matching *m, int32_t x, hone_fn fn) {
    return at(m, x)->kind == HONE_X_FN && at(m, x)->fn == fn;
}
static bool is_cast(const matching *m, int32_t x, hone_ctype to) {
    return at(m, x)->kind == HONE_X_CAST && at(m, x)->type == to;
}
/* A constant, or one element of a tensor of f32, or of 8 bits, as it is or made a float. */
static bool one_number(const matching *m, int32_t x, number *out) {
    const hone_x *e = at(m, x);
    hone_affine f;
    if (e->kind == HONE_X_CONST && e->type == HONE_F32)
        return *out = (number){.tensor = -1, .k = e->k.f32}, true;
    if (is_cast(m, x, HONE_F32)) x = e->a, e = at(m, x);
    if (e->kind != HONE_X_LOAD || !hone_affine_inside(&m->c->sized, m->slots, x, &f)) return false;
    for (int k = 0; k < m->slots->n; k++)
        if (m->slots->extent[k] > 1 && f.k[k]) return false;
    const hone_dtype dtype = m->c->instance->tensor[e->a].dtype;
    *out = (number){.tensor = e->a, .dtype = dtype, .c = f.c};
    return dtype == HONE_DTYPE_F32 || dtype == HONE_DTYPE_U8 || dtype == HONE_DTYPE_I8;
}
static bool load_of(const matching *m, int32_t x, leaf *l, hone_dtype *dtype) {
    const hone_x *e = at(m, x);
    if (e->kind != HONE_X_LOAD || !hone_affine_inside(&m->c->sized, m->slots, x, &l->at)) return false;
    l->tensor = e->a, *dtype = m->c->instance->tensor[e->a].dtype;
    return true;
}
/* f32(q [- zero]) * scale of bytes, floats, or a number. */
static bool is_leaf(const matching *m, int32_t x, leaf *l) {
    hone_dtype dtype;
    *l = (leaf){.tensor = -1};
    if (one_number(m, x, &l->value)) return true;
    if (at(m, x)->kind == HONE_X_LOAD) return load_of(m, x, l, &dtype) && dtype == HONE_DTYPE_F32;
    l->zero = (number){.tensor = -1}, l->scale = (number){.tensor = -1, .k = 1}, l->bytes = true;
    if (is_fn(m, x, HONE_FN_mul)) {
        if (!one_number(m, at(m, x)->b, &l->scale) ||
            (l->scale.tensor >= 0 && l->scale.dtype != HONE_DTYPE_F32))
            return false;
        x = at(m, x)->a;
    }
    if (!is_cast(m, x, HONE_F32)) return false;
    x = at(m, x)->a;
    const bool less = is_fn(m, x, HONE_FN_sub);
    if (!load_of(m, less ? at(m, x)->a : x, l, &dtype) || (dtype != HONE_DTYPE_U8 && dtype != HONE_DTYPE_I8))
        return false;
    if (less && (!one_number(m, at(m, x)->b, &l->zero) || l->zero.tensor < 0 || l->zero.dtype != dtype))
        return false;
    l->zero.dtype = dtype; /* also says how q is read */
    return true;
}
static int branch(matching *m, int32_t x) { /* its number; -1: it is something else, or too much */
    tree *d = m->d;
    if (d->n_leaf < MAX_LEAVES && is_leaf(m, x, d->leaf + d->n_leaf)) return d->n_leaf++;
    const bool product = is_fn(m, x, HONE_FN_mul);
    if (!product && !is_fn(m, x, HONE_FN_add)) return -1;
    const int a = branch(m, at(m, x)->a), b = a < 0 ? -1 : branch(m, at(m, x)->b);
    if (b < 0 || d->n_node == MAX_NODES) return -1;
    d->node[d->n_node] = (node){product, a, b};
    return MAX_LEAVES + d->n_node++;
}
/* A limit whose value is known: step templates are kept by the addresses of such constants. */
static bool limit_of(const matching *m, int32_t x, number *out) {
    if (!one_number(m, x, out)) return false;
    const int t = out->tensor;
    if (t < 0) return true;
    const float *k = hone_cpu_constant(m->c, t);
    if (out->dtype != HONE_DTYPE_F32 || m->c->instance->tensor[t].rank || !k) return false;
    *out = (number){.tensor = -1, .k = k[out->c]};
    return true;
}
static bool clamped(matching *m, int32_t x) {
    tree *d = m->d;
    d->lo = (number){.tensor = -1, .k = -INFINITY}, d->hi = (number){.tensor = -1, .k = INFINITY};
    bool low = false, high = false;
    while ((!low && is_fn(m, x, HONE_FN_max)) || (!high && is_fn(m, x, HONE_FN_min))) {
        const bool max = is_fn(m, x, HONE_FN_max);
        number *limit = max ? &d->lo : &d->hi;
        const bool right = limit_of(m, at(m, x)->b, limit);
        if (!right && !limit_of(m, at(m, x)->a, limit)) return false;
        *(max ? &low : &high) = true, x = right ? at(m, x)->a : at(m, x)->b;
    }
    return d->lo.k <= d->hi.k && branch(m, x) >= 0; /* in which order they apply does not matter then */
}
/* round(v / scale) [+ zero] */
static bool rounded(matching *m, int32_t x, hone_dtype to) {
    tree *d = m->d;
    d->n_leaf = d->n_node = 0;
    d->low = (float)hone_dtypes[to].lowest, d->high = (float)hone_dtypes[to].highest;
    d->finish = to == HONE_DTYPE_U8 ? d->kernel->u8 : d->kernel->i8;
    d->zero = d->back_zero = (number){.tensor = -1}, d->back_scale = (number){.tensor = -1, .k = 1};
    if (is_fn(m, x, HONE_FN_add)) {
        if (!one_number(m, at(m, x)->b, &d->zero)) return false;
        x = at(m, x)->a;
    }
    if (!is_fn(m, x, HONE_FN_round) || !is_fn(m, at(m, x)->a, HONE_FN_div)) return false;
    x = at(m, x)->a;
    return one_number(m, at(m, x)->b, &d->quantum) &&
           (d->quantum.tensor < 0 || d->quantum.dtype == HONE_DTYPE_F32) && clamped(m, at(m, x)->a);
}
/* i32 of a float kept within an 8-bit type: is it rounded so? Asked for each part of a value that may be a
   function of it. */
static bool is_narrowed(void *of, int32_t x) {
    matching *m = of;
    if (m->narrows >= 0) return x == m->narrows;
    if (!is_cast(m, x, HONE_I32)) return false;
    const int32_t q = at(m, x)->a;
    if (!is_fn(m, q, HONE_FN_min) || !is_fn(m, at(m, q)->a, HONE_FN_max)) return false;
    const hone_x *high = at(m, at(m, q)->b), *low = at(m, at(m, at(m, q)->a)->b);
    if (high->kind != HONE_X_CONST || low->kind != HONE_X_CONST) return false;
    const hone_dtype to = low->k.f32 == 0 ? HONE_DTYPE_U8 : HONE_DTYPE_I8;
    if (low->k.f32 != (float)hone_dtypes[to].lowest || high->k.f32 != (float)hone_dtypes[to].highest)
        return false;
    if (!rounded(m, at(m, at(m, q)->a)->a, to)) return false;
    m->narrows = x, m->narrow_signed = to == HONE_DTYPE_I8;
    return true;
}
static bool recognise(matching *m, hone_arena *a, int stage) {
    tree *d = m->d;
    const hone_instance *in = m->c->instance;
    const hone_stage *st = in->stage + stage;
    const hone_dtype to = in->tensor[st->tensor].dtype;
    if (at(m, st->value)->type != HONE_F32) return false;
    if (to != HONE_DTYPE_F32 && st->saturate && rounded(m, st->value, to)) return true;
    m->narrows = -1;
    if ((d->table = hone_table_make(a, m->c, m->slots, stage, is_narrowed, m, &m->narrow_signed)))
        return true;
    if (to != HONE_DTYPE_F32) return false;
    d->n_leaf = d->n_node = 0, d->finish = d->kernel->f32;
    d->quantum = d->zero = d->back_zero = d->back_scale = (number){.tensor = -1, .k = 1};
    bool bytes = false;
    if (!clamped(m, st->value)) return false;
    for (int k = 0; k < d->n_leaf; k++) bytes |= d->leaf[k].tensor >= 0 && d->leaf[k].bytes;
    return bytes;
}
/* Over the slots from `first` on, does f follow on, elements as the result's do, up to where it begins again?
   period: 0 where it never does; it must not begin anew within one. */
static bool follows(const hone_slots_of *slots, const hone_affine *f, int first, int64_t *period) {
    int64_t run = 1;
    *period = 0;
    for (int k = slots->n_domain - 1; k >= first; k--) {
        if (slots->extent[k] == 1) continue;
        if (!*period && f->k[k] == run) run *= slots->extent[k];
        else if (f->k[k] == 0) *period = *period ? *period : run;
        else return false;
    }
    return true;
}
/* Rows as long as they can be: from which slot on all operands follow on, with one period. */
static int row_from(tree *d, const hone_slots_of *slots, const hone_affine *out) {
    int best = -1;
    for (int first = slots->n_domain - 1; first >= 0; first--) {
        int64_t period[MAX_LEAVES] = {0}, common = 0, own;
        bool fits = follows(slots, out, first, &own) && !own;
        for (int k = 0; k < d->n_leaf && fits; k++) {
            if (d->leaf[k].tensor < 0) continue;
            fits = follows(slots, &d->leaf[k].at, first, period + k) &&
                   !(common && period[k] && period[k] != common);
            common = period[k] ? period[k] : common;
        }
        if (!fits) break;
        best = first;
        for (int k = 0; k < d->n_leaf; k++) d->leaf[k].period = period[k];
    }
    return best;
}
hone_status hone_cpu_quantized_tree(hone_template_builder *m, const hone_cpu_call *c, int stage, int *end,
                                    bool *done) {
    const hone_instance *in = c->instance;
    const hone_stage *st = in->stage + stage;
    const hone_dtype to = in->tensor[st->tensor].dtype;
    hone_slots_of slots;
    (void)end;
    if (st->reduce || st->how || !st->identity || st->over >= 0 || st->skip || st->pick >= 0 ||
        in->n_tensor > 64 || (to != HONE_DTYPE_F32 && to != HONE_DTYPE_U8 && to != HONE_DTYPE_I8) ||
        !hone_affine_slots(&c->sized, stage, stage, &slots) || slots.n_domain < 1 || !slots.injective)
        return HONE_OK;
    int64_t all = 1;
    for (int k = 0; k < slots.n_domain; k++) all *= slots.extent[k];
    if (all < FEWEST) return HONE_OK;
    tree *d = HONE_NEW(m->arena, tree);
    if (!d) return hone_steps_no_memory();
    d->kernel = hone_epilogue_best(), d->out = st->tensor, d->n_tensor = in->n_tensor,
    d->floats = to == HONE_DTYPE_F32;
    matching in_it = {.c = c, .slots = &slots, .d = d, .narrows = -1};
    if (!recognise(&in_it, m->arena, stage)) return HONE_OK;
    hone_affine out = {0};
    for (int k = 0; k < slots.n_domain; k++) out.k[k] = c->stride[st->tensor][slots.dim[k]];
    const int first = row_from(d, &slots, &out);
    if (first < 0) return HONE_OK;
    int before[HONE_MAX_SLOTS];
    int64_t period = 0;
    d->rows = d->row = 1;
    for (int k = 0; k < slots.n_domain; k++) {
        before[k] = k;
        if (k < first) d->rows *= slots.extent[k];
        else d->row *= slots.extent[k];
    }
    for (int k = 0; k < d->n_leaf; k++) {
        leaf *l = d->leaf + k;
        if (l->tensor < 0) continue;
        for (int q = 0; q < first; q++) l->moves |= slots.extent[q] > 1 && l->at.k[q];
        period = l->period ? l->period : period;
    }
    if (d->rows > MAX_ROWS || d->row < FEWEST / 4) return HONE_OK;
    /* units are whole periods, or parts of one */
    d->unit = period > 1 && period <= AT_ONCE ? AT_ONCE / period * period : AT_ONCE,
    d->span = period > AT_ONCE ? period : d->row;
    d->parts = hone_ceil_div(d->span, d->unit), d->units = d->row / d->span * d->parts;
    bool made = (d->row_out = hone_affine_table(m->arena, &slots, before, first, &out));
    for (int k = 0; k < d->n_leaf && made; k++)
        made = d->leaf[k].tensor < 0 ||
               (d->leaf[k].row = hone_affine_table(m->arena, &slots, before, first, &d->leaf[k].at));
    if (!made) return hone_steps_no_memory();
    const int64_t units = d->rows * d->units, each = d->row < d->unit ? d->row : d->unit;
    d->grain = hone_share_of(units, LEAST / each + 1, MOST / each + 1, c->how.threads);
    hone_step step = {.tactic = "quantized elementwise",
                      .tiles = hone_ceil_div(units, d->grain),
                      .scratch_bytes = sizeof(float) * AT_ONCE * (size_t)(d->n_leaf + d->n_node) + AT_ONCE,
                      .tile = tile,
                      .data = d};
    step.serial = step.tiles == 1, *done = true;
    return hone_cpu_add(m, (hone_step_template){.step = step, .uses = st->uses, .buffer = -1});
}
