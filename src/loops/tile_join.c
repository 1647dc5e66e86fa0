/* SPDX-License-Identifier: Apache-2.0
   tile_join: instructions of tile code in a row that are one pass over the tile: pairs of functions, what
   makes a float a quantized number, and what makes that a float again. The bits are those of the instructions
   one by one. */
#include <stdlib.h>

#include "loops/tile_maker.h"

typedef hone_tile_maker maker;
typedef struct {
    maker *m;
    const hone_tilecode *code;
    int *reads, *def; /* of each register: how many read it, and where it is made */
} joining;
static bool count(joining *j) {
    maker *m = j->m;
    j->reads = HONE_NEW_N(m->tmp, int, m->regs.n + 1), j->def = HONE_NEW_N(m->tmp, int, m->regs.n + 1);
    if (!j->reads || !j->def) {
        hone_tile_no_memory(m);
        return false;
    }
    for (int k = 0; k < m->regs.n; k++) j->def[k] = -1;
    for (int k = 0; k < m->ins.n; k++) {
        const hone_tile_ins *i = m->ins.at + k;
        const int32_t args[3] = {i->a, i->b, i->c};
        for (int a = 0; a < 3; a++)
            if (args[a] >= 0) j->reads[args[a]]++;
        if (i->dst >= 0) j->def[i->dst] = k;
    }
    return true;
}

/* ---- quantized and back -------------------------------------------------------------------------------- */
/* The instruction that makes a register, if it is this function of elements. */
static const hone_tile_ins *made_by(const joining *j, int r, hone_tile_op *op) {
    if (r < 0 || j->def[r] < 0) return NULL;
    const hone_tile_ins *i = j->m->ins.at + j->def[r];
    return i->kind == HONE_TILE_OP && i->op == op && !i->level ? i : NULL;
}
static const hone_tile_ins *step(const joining *j, int r, hone_tile_op *op) { /* and nothing else reads it */
    return r >= 0 && j->reads[r] == 1 ? made_by(j, r, op) : NULL;
}
/* The register of rows whose first value is that of all elements of r, or -1: a load of one number, perhaps
   made a float. */
static int uniform(const joining *j, int r) {
    const maker *m = j->m;
    if (r < 0 || j->def[r] < 0 || m->ins.at[j->def[r]].kind != HONE_TILE_EXPAND) return -1;
    const int row = m->ins.at[j->def[r]].a;
    int load = j->def[row];
    if (load >= 0 && m->ins.at[load].kind == HONE_TILE_OP &&
        m->ins.at[load].op == j->code->ops->cast[HONE_I32][HONE_F32])
        load = j->def[m->ins.at[load].a];
    if (load < 0) return -1;
    const hone_tile_ins *i = m->ins.at + load;
    if (i->kind != HONE_TILE_LOAD || i->n_bound || !i->level) return -1;
    const hone_form *f = m->forms.at + i->form;
    for (int d = 0; d < j->code->walk.nd; d++)
        if (f->coef[d] && j->code->walk.ext[d] > 1) return -1;
    for (int k = 0; k < m->n_fixed; k++)
        if (f->fixed[k]) return -1;
    return row;
}
static bool constant(const maker *m, int r, float *out) {
    for (int k = 0; k < m->n_constant; k++)
        if (m->constant[k].reg == r && m->constant[k].width == 2) {
            *out = m->constant[k].k.f32;
            return true;
        }
    return false;
}
typedef struct {
    int value, scale, zero; /* zero: or -1 */
    hone_tile_op *op;
} found;
/* min(max(round(x / s) + z, least), most), which ends with this instruction */
static bool quantizes(const joining *j, const hone_tile_ins *min, found *f) {
    static const float range[HONE_TILE_RANGES][2] = HONE_TILE_RANGE;
    const hone_tile_ops *ops = j->code->ops;
    float least, most;
    if (min->op != ops->fn[HONE_FN_min][HONE_F32] || !constant(j->m, min->b, &most)) return false;
    const hone_tile_ins *i = step(j, min->a, ops->fn[HONE_FN_max][HONE_F32]), *sum;
    if (!i || !constant(j->m, i->b, &least)) return false;
    int type = 0;
    while (type < HONE_TILE_RANGES && (range[type][0] != least || range[type][1] != most)) type++;
    if (type == HONE_TILE_RANGES) return false;
    f->zero = -1, f->op = ops->quantize[type];
    if ((sum = step(j, i->a, ops->fn[HONE_FN_add][HONE_F32]))) {
        if ((f->zero = uniform(j, sum->b)) < 0) return false;
        i = sum;
    }
    if (!(i = step(j, i->a, ops->fn[HONE_FN_round][HONE_F32])) ||
        !(i = step(j, i->a, ops->fn[HONE_FN_div][HONE_F32])))
        return false;
    f->value = i->a;
    return (f->scale = uniform(j, i->b)) >= 0;
}
/* f32(i32(x) - z) * s */
static bool dequantizes(const joining *j, const hone_tile_ins *mul, found *f) {
    const hone_tile_ops *ops = j->code->ops;
    if (mul->op != ops->fn[HONE_FN_mul][HONE_F32] || (f->scale = uniform(j, mul->b)) < 0) return false;
    const hone_tile_ins *i = step(j, mul->a, ops->cast[HONE_I32][HONE_F32]), *less;
    if (!i) return false;
    f->zero = -1, f->op = ops->dequantize;
    if ((less = step(j, i->a, ops->fn[HONE_FN_sub][HONE_I32]))) {
        if ((f->zero = uniform(j, less->b)) < 0) return false;
        i = less;
    }
    if (!(i = step(j, i->a, ops->cast[HONE_F32][HONE_I32]))) return false;
    f->value = i->a;
    return true;
}
/* Instructions whose register nothing reads any more go. */
static void sweep(joining *j) {
    maker *m = j->m;
    for (int k = m->ins.n - 1; k >= 0; k--) {
        hone_tile_ins *i = m->ins.at + k;
        if (i->dst < 0 || j->reads[i->dst] || (i->kind != HONE_TILE_OP && i->kind != HONE_TILE_EXPAND))
            continue;
        const int32_t args[3] = {i->a, i->b, i->c};
        for (int a = 0; a < 3; a++)
            if (args[a] >= 0) j->reads[args[a]]--;
        i->dst = -2;
    }
    int n = 0;
    for (int k = 0; k < m->ins.n; k++)
        if (m->ins.at[k].dst != -2) m->ins.at[n++] = m->ins.at[k];
    m->ins.n = n;
}
static void join_quantized(joining *j) {
    maker *m = j->m;
    bool any = false;
    for (int k = 0; k < m->ins.n; k++) {
        hone_tile_ins *last = m->ins.at + k;
        found f;
        if (last->kind != HONE_TILE_OP || last->level ||
            !(quantizes(j, last, &f) || dequantizes(j, last, &f)))
            continue;
        j->reads[last->a]--, j->reads[last->b]--, j->reads[f.value]++, j->reads[f.scale]++;
        if (f.zero >= 0) j->reads[f.zero]++;
        last->op = f.op, last->a = f.value, last->b = f.scale, last->c = f.zero;
        any = true;
    }
    if (any) sweep(j);
}

/* ---- pairs --------------------------------------------------------------------------------------------- */
/* Two functions in a row, the second on what only it reads of the first: one instruction. Half as many passes
   over the tile. */
static int paired(const hone_tilecode *code, const hone_tile_ins *i) {
    static const hone_fn fns[HONE_TILE_PAIRED] = {HONE_FN_add, HONE_FN_sub, HONE_FN_mul, HONE_FN_max,
                                                  HONE_FN_min};
    for (int k = 0; k < HONE_TILE_PAIRED && i->kind == HONE_TILE_OP; k++)
        if (i->op == code->ops->fn[fns[k]][HONE_F32]) return k;
    return -1;
}
static void join_pairs(const joining *j) {
    maker *m = j->m;
    int n = 0;
    for (int k = 0; k < m->ins.n; k++) {
        hone_tile_ins i = m->ins.at[k];
        if (k + 1 < m->ins.n) {
            const hone_tile_ins *next = m->ins.at + k + 1;
            const int first = paired(j->code, &i), second = paired(j->code, next);
            const bool right = next->b == i.dst;
            if (first >= 0 && second >= 0 && i.level == next->level && j->reads[i.dst] == 1 &&
                (right || next->a == i.dst)) {
                i.op = j->code->ops->pair[first][second][right], i.c = right ? next->a : next->b,
                i.dst = next->dst;
                k++;
            }
        }
        m->ins.at[n++] = i;
    }
    m->ins.n = n;
}
void hone_tile_join(maker *m, const hone_tilecode *code) {
    joining j = {.m = m, .code = code};
    if (code->mode != HONE_TILE_MAP) return; /* elsewhere registers are read by the reduction too */
    if (!count(&j)) return;
    join_quantized(&j);
    join_pairs(&j);
}
