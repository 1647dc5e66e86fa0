/* SPDX-License-Identifier: Apache-2.0
   match_cell: see match_cell.h. The form of an over group is compared with a table: each stage's value is
   written as text in which only

        A, B, …     what the group's first, second, … stage makes, here and now; B2: of its gate 2
        F'          the same a step ago, before the first step another tensor, or 0
        x, x2       what comes from the input at some step that t and the direction alone decide; of gate 2. 0
                    where there is no such step
        r, b        weights; a bias

   are left. All else (peepholes, clipping, other functions, backward sequences of several lengths) is no
   cell. */
#include "loops/match_cell.h"

#include <stdio.h>
#include <string.h>

enum { STAGES = 6, FORM = 48, BIASES = HONE_CELL_BIASES };
typedef hone_cell_line along;
typedef hone_cell_walk walk;

/* The stages' forms; which of them is c, and how many gates x has. The last one is h. */
#define GRU(x, c)                                                              \
    "mul(E',r)", "sigmoid(" x ")", "mul(E',r)", "tanh(add(x2,mul(B1," c ")))", \
        "add(mul(sub(1,B0),D),mul(B0,E'))"
#define GRU_RESET(x, c) \
    "mul(F',r)", "sigmoid(" x ")", "mul(B1,F')", "mul(C,r)", "tanh(" c ")", "add(mul(sub(1,B0),E),mul(B0,F'))"
static const struct {
    hone_cell_kind kind;
    int n, c, gates;
    const char *stage[STAGES];
} forms[] = {{HONE_CELL_LSTM,
              6,
              4,
              4,
              {"mul(F',r)", "add(x,A)", "sigmoid(B0)", "sigmoid(B2)", "add(mul(D,E'),mul(C,tanh(B3)))",
               "mul(sigmoid(B1),tanh(E))"}},
             {HONE_CELL_GRU, 5, -1, 3, {GRU("add(x,A)", "C")}},
             {HONE_CELL_GRU, 5, -1, 3, {GRU("add(add(x,A),b)", "add(C,b)")}},
             {HONE_CELL_GRU_RESET, 6, -1, 3, {GRU_RESET("add(x,A)", "add(x2,D)")}},
             {HONE_CELL_GRU_RESET, 6, -1, 3, {GRU_RESET("add(add(x,A),b)", "add(add(x2,D),b)")}},
             {HONE_CELL_RNN, 2, -1, 1, {"mul(B',r)", "tanh(add(x,A))"}}};
#undef GRU
#undef GRU_RESET

typedef struct {
    const hone_sized *c;
    int from, n;
    const hone_stage *s;     /* whose value is written */
    char text[STAGES][FORM]; /* so far */
    int length, x, n_bias, n_weights;
    hone_cell_weights weights[HONE_CELL_PRODUCTS];
    walk before[STAGES], bias[BIASES];
    bool known[STAGES];         /* before */
    along when[HONE_CELL_WAYS]; /* by direction; known where x >= 0 */
    int64_t ways;
} reading;
static const hone_x *at(const reading *r, int32_t x) { return r->c->instance->x + x; }
static bool put(reading *r, const char *word) {
    char *to = r->text[r->s - r->c->instance->stage - r->from];
    const int n = snprintf(to + r->length, (size_t)(FORM - r->length), "%s", word);
    return n >= 0 && (r->length += n) < FORM;
}
static int32_t own(const reading *r, int place) { return r->c->instance->list[r->s->index0 + place]; }
static bool is_index(const reading *r, int32_t x, int32_t index) {
    return at(r, x)->kind == HONE_X_INDEX && at(r, x)->a == index;
}
static bool is_zero(const reading *r, int32_t x) {
    return at(r, x)->kind == HONE_X_CONST && at(r, x)->k.f32 == 0;
}
/* A subscript as a line over t in one direction. */
static bool line(const reading *r, int32_t x, int64_t way, along *out) {
    const hone_x *e = at(r, x);
    along a, b = {0, 0};
    *out = (along){0, 0};
    switch ((hone_xkind)e->kind) {
    case HONE_X_CONST:
        out->c = e->type == HONE_I64 ? e->k.i64 : e->k.i32;
        return e->type == HONE_I64 || e->type == HONE_I32;
    case HONE_X_INDEX:
        if (e->a == own(r, 0)) out->k = 1;
        else out->c = way;
        return e->a == own(r, 0) || e->a == own(r, 1);
    case HONE_X_PARAM: out->c = r->c->param[e->a].i; return !r->c->instance->param_real[e->a];
    case HONE_X_SELECT: return line(r, e->a, way, &a) && a.k == 0 && line(r, a.c ? e->b : e->c, way, out);
    case HONE_X_FN: {
        const int arity = hone_fns[e->fn].arity;
        if (arity > 2 || !line(r, e->a, way, &a) || (arity == 2 && !line(r, e->b, way, &b))) return false;
        const hone_ctype type = at(r, e->a)->type;
        if (a.k || b.k) {
            const int64_t sign = e->fn == HONE_FN_add ? 1 : -1;
            *out = (along){a.c + sign * b.c, a.k + sign * b.k};
            return type == HONE_I64 && (e->fn == HONE_FN_add || e->fn == HONE_FN_sub);
        }
        hone_scalar arg[2] = {{.i64 = a.c}, {.i64 = b.c}};
        if (type == HONE_I32) arg[0].i32 = (int32_t)a.c, arg[1].i32 = (int32_t)b.c;
        if (type != HONE_I32 && type != HONE_I64) return false;
        const hone_scalar v = hone_fn_eval((hone_fn)e->fn, type, arg);
        out->c = e->type == HONE_I64 ? v.i64 : v.i32;
        return e->type == HONE_I64 || e->type == HONE_I32;
    }
    case HONE_X_LOAD:
    case HONE_X_CAST:
    case HONE_X_ROUND: return false;
    }
    return false;
}
/* A gate's number: the stage's own, perhaps so many further, or a fixed one. */
static bool gate(const reading *r, int32_t x, bool *fixed, int64_t *number) {
    const hone_x *e = at(r, x);
    const bool has = r->s->n_index == 5;
    *fixed = e->kind == HONE_X_CONST, *number = *fixed ? e->k.i64 : 0;
    if (*fixed || (has && is_index(r, x, own(r, 3)))) return true;
    if (!has || e->kind != HONE_X_FN || e->fn != HONE_FN_add || !is_index(r, e->a, own(r, 3)) ||
        at(r, e->b)->kind != HONE_X_CONST)
        return false;
    *number = at(r, e->b)->k.i64;
    return true;
}
static walk walk_of(const reading *r, int tensor, int way, int row, int each) {
    const int64_t *stride = r->c->stride[tensor];
    return (walk){tensor, 0, stride[way], row < 0 ? 0 : stride[row], stride[each]};
}
static bool same_walk(const walk *a, const walk *b) {
    return a->tensor == b->tensor && a->c == b->c && a->way == b->way && a->row == b->row &&
           a->each == b->each;
}
/* A state before the first step: 0, or an input by direction, row and place. */
static bool initial(reading *r, int32_t x, int32_t last, walk *out) {
    const hone_x *e = at(r, x);
    const int32_t *sub = r->c->instance->list + e->b;
    *out = (walk){.tensor = -1};
    if (is_zero(r, x)) return true;
    if (e->kind != HONE_X_LOAD || e->flat || r->c->instance->tensor[e->a].rank != 3 ||
        r->c->instance->tensor[e->a].role != HONE_ROLE_IN)
        return false;
    *out = walk_of(r, e->a, 0, 1, 2);
    return is_index(r, sub[0], own(r, 1)) && is_index(r, sub[1], own(r, 2)) && is_index(r, sub[2], last);
}
static bool weights(reading *r, const hone_x *e) {
    const hone_instance *in = r->c->instance;
    const int32_t *sub = in->list + e->b;
    const int64_t *stride = r->c->stride[e->a];
    hone_cell_weights *w = r->weights + r->n_weights;
    bool fixed;
    if (r->n_weights == HONE_CELL_PRODUCTS) return false;
    *w = (hone_cell_weights){.tensor = -1}, r->n_weights++;
    const int n = r->s->n_index;
    if (e->flat || in->tensor[e->a].rank != 4 || !is_index(r, sub[0], own(r, 1)) ||
        !gate(r, sub[1], &fixed, &w->first) || !is_index(r, sub[2], own(r, n - 1)) ||
        !is_index(r, sub[3], own(r, n)))
        return true;
    w->tensor = e->a, w->way = stride[0], w->gate = stride[1], w->each = stride[2], w->k = stride[3];
    return true;
}
static bool write_load(reading *r, const hone_x *e) {
    const hone_instance *in = r->c->instance;
    const hone_tensor *t = in->tensor + e->a;
    const int32_t *sub = in->list + e->b;
    const int32_t last = own(r, r->s->n_reduce ? r->s->n_index : r->s->n_index - 1);
    char word[4] = "?";
    bool fixed = false;
    int64_t number = 0;
    if (e->flat || t->rank < 3) return false;
    /* looked at as a factor: weights may be halves */
    if (t->role == HONE_ROLE_IN && r->s->n_reduce) return weights(r, e) && put(r, "r");
    if (t->dtype != HONE_DTYPE_F32) return false;
    if (t->role == HONE_ROLE_IN) {
        if (t->rank != 3 || r->n_bias == BIASES || !is_index(r, sub[0], own(r, 1)) ||
            !gate(r, sub[1], &fixed, &number) || !is_index(r, sub[2], last))
            return false;
        walk *b = r->bias + r->n_bias++;
        *b = walk_of(r, e->a, 0, -1, 2), b->c = number * r->c->stride[e->a][1];
        return b->each == 1 && r->c->stride[e->a][1] == r->c->param[t->dim[2]].i && put(r, "b");
    }
    if (t->role != HONE_ROLE_TEMP || t->rank > 5 || !is_index(r, sub[1], own(r, 1)) ||
        !is_index(r, sub[2], own(r, 2)) || !is_index(r, sub[t->rank - 1], last) ||
        (t->rank == 5 && !gate(r, sub[3], &fixed, &number)) || number < 0 || number > 9 || (!fixed && number))
        return false;
    int k = 0;
    while (k < r->n && in->stage[r->from + k].tensor != e->a) k++;
    word[0] = k < r->n ? (char)('A' + k) : 'x';
    if (fixed) word[1] = (char)('0' + number);
    if (k == r->n) {
        if (!is_zero(r, e->c) || (r->x >= 0 && r->x != e->a)) return false;
        for (int64_t way = 0; way < r->ways; way++) {
            along now;
            if (!line(r, sub[0], way, &now) ||
                (r->x >= 0 && (now.c != r->when[way].c || now.k != r->when[way].k)))
                return false;
            r->when[way] = now;
        }
        r->x = e->a;
        return put(r, word);
    }
    along when;
    if (!line(r, sub[0], 0, &when) || when.k != 1 || (when.c != 0 && when.c != -1)) return false;
    if (when.c == 0) return put(r, word);
    walk before;
    if (fixed || e->c < 0 || !initial(r, e->c, last, &before) ||
        (r->known[k] && !same_walk(&before, r->before + k)))
        return false;
    r->before[k] = before, r->known[k] = true, word[1] = '\'';
    return put(r, word);
}
static bool write_x(reading *r, int32_t x) {
    const hone_x *e = at(r, x);
    if (e->type != HONE_F32) return false;
    if (e->kind == HONE_X_LOAD) return write_load(r, e);
    if (e->kind == HONE_X_CONST && e->k.f32 == 1) return put(r, "1");
    if (e->kind != HONE_X_FN || hone_fns[e->fn].arity > 2 || !put(r, hone_fns[e->fn].name) || !put(r, "(") ||
        !write_x(r, e->a))
        return false;
    return (hone_fns[e->fn].arity < 2 || (put(r, ",") && write_x(r, e->b))) && put(r, ")");
}
/* Stages in the domain (t, direction, row, [gate,] place), of the same extents, making temporaries of that
   shape. */
static bool shaped(const reading *r) {
    const hone_instance *in = r->c->instance;
    const hone_stage *first = in->stage + r->from;
    for (int k = 0; k < r->n; k++) {
        const hone_stage *s = first + k;
        if (!s->identity || s->how || s->pick >= 0 || s->tensor >= 63 ||
            (s->n_index != 4 && s->n_index != 5) || s->n_reduce > 1 ||
            s->reduce != (s->n_reduce ? HONE_REDUCE_SUM : HONE_REDUCE_NONE) ||
            in->list[s->index0] != s->over_index)
            return false;
        if (in->tensor[s->tensor].role != HONE_ROLE_TEMP || in->tensor[s->tensor].dtype != HONE_DTYPE_F32)
            return false;
        for (int d = 0; d < 4; d++) { /* t, direction, row; place */
            const int place = d < 3 ? d : s->n_index - 1, there = d < 3 ? d : first->n_index - 1;
            if (r->c->param[in->index[in->list[s->index0 + place]].extent].i !=
                r->c->param[in->index[in->list[first->index0 + there]].extent].i)
                return false;
        }
    }
    return true;
}
static int form_of(reading *r) {
    for (int k = 0; k < r->n; k++) {
        r->s = r->c->instance->stage + r->from + k, r->length = 0;
        if (!write_x(r, r->s->value)) return -1;
    }
    for (int f = 0; f < (int)(sizeof forms / sizeof *forms); f++) {
        bool same = forms[f].n == r->n;
        for (int k = 0; same && k < r->n; k++) same = !strcmp(r->text[k], forms[f].stage[k]);
        if (same) return f;
    }
    return -1;
}
bool hone_match_cell_of(const hone_sized *c, int first, int end, hone_match_cell *out) {
    const hone_instance *in = c->instance;
    const hone_stage *s = in->stage + first;
    if (end - first > STAGES || s->over < 0 || s->n_index < 4) return false;
    reading r = {.c = c, .from = first, .n = end - first, .x = -1};
    if (!shaped(&r)) return false;
    *out = (hone_match_cell){.c = -1};
    int64_t *const extent[] = {&out->steps, &out->ways, &out->rows};
    for (int k = 0; k < 3; k++) *extent[k] = c->param[in->index[in->list[s->index0 + k]].extent].i;
    out->width = c->param[in->index[in->list[s->index0 + s->n_index - 1]].extent].i, r.ways = out->ways;
    if (out->steps < 1 || out->ways < 1 || out->rows < 1 || out->width < 1 || out->ways > HONE_CELL_WAYS)
        return false;
    const int f = form_of(&r), last = r.n - 1;
    if (f < 0 || r.x < 0 || r.x >= 63) return false;
    /* what the group makes only for itself need not be stored */
    uint64_t others = 0;
    for (int k = 0; k < in->n_stage; k++) {
        const bool here = k >= first && k < end;
        *(here ? &out->uses : &others) |= in->stage[k].uses;
        if (here && k - first != last) out->own |= (uint64_t)1 << in->stage[k].tensor;
    }
    out->kind = forms[f].kind, out->stages = r.n, out->gates = forms[f].gates;
    if (forms[f].c >= 0) {
        out->c = s[forms[f].c].tensor, out->c_read = others >> out->c & 1, out->c0 = r.before[forms[f].c];
        if (out->c_read) out->own &= ~((uint64_t)1 << out->c);
    } else out->c0.tensor = -1;
    if (out->own & others) return false;
    out->x = r.x, out->h = s[last].tensor, out->h0 = r.before[last];
    for (int k = 0; k < BIASES; k++) out->bias[k] = k < r.n_bias ? r.bias[k] : (walk){.tensor = -1};
    memcpy(out->weights, r.weights, sizeof out->weights), out->n_weights = r.n_weights;
    memcpy(out->when, r.when, sizeof out->when);
    return true;
}
