/* SPDX-License-Identifier: Apache-2.0
   build_tree: one tree into one expression: the walk over names, loads, calls and operators. The pool and the
   types are build_expr.c's. */
#include <math.h>
#include <string.h>

#include "loops/build.h"

static int32_t settled(hone_builder *b, int32_t x) { /* an i64 that an executor can see */
    x = hone_build_typed(b, x, HONE_I64);
    if (!b->pure.at[x] || b->x.at[x].kind == HONE_X_CONST || b->x.at[x].kind == HONE_X_PARAM) return x;
    return hone_build_x(b, (hone_x){.kind = HONE_X_PARAM, .type = HONE_I64, .a = hone_build_param(b, x, "")},
                        true);
}
static int32_t param_x(hone_builder *b, int32_t p) {
    int32_t def = b->param.at[p];
    if (b->x.at[def].kind == HONE_X_CONST) return def;
    return hone_build_x(b, (hone_x){.kind = HONE_X_PARAM, .type = HONE_I64, .a = p}, true);
}

/* ---- groups -------------------------------------------------------------------------------------------- */
static const hone_tree *uses_pos(const hone_tree *t) {
    if (!t) return NULL;
    if (t->kind == HONE_T_CALL && !strcmp(t->name, "pos")) return t;
    for (int k = 0; k < t->n_arg; k++) {
        const hone_tree *p = uses_pos(t->arg[k]);
        if (p) return p;
    }
    return NULL;
}
static bool plain_group(const hone_tree *t) {
    return (t->kind == HONE_T_NAME || t->kind == HONE_T_INDEX) && t->group;
}
static int members(hone_builder *b, const hone_tree *t, const hone_env *e, int depth) {
    if (!t || depth > 50) return -1;
    if (plain_group(t)) {
        const hone_env *f = hone_build_lookup(e, t->name, true);
        if (f) return f->index ? f->n : members(b, f->tree, f->where, depth + 1);
        int r = hone_build_rank(b, t->name);
        if (r >= 0) return r;
        const hone_line *l = hone_build_short(b, t->name, true);
        if (l) {
            r = members(b, l->expr, e, depth + 1);
            if (r >= 0) return r;
        }
        const hone_attr_spec *s = hone_build_attr(b, t->name);
        const hone_attr *a = s && s->group ? hone_build_attr_given(b, s) : NULL;
        return a ? a->n : -1;
    }
    if (t->kind == HONE_T_CALL && (t->group || !strcmp(t->name, "rank") || !strcmp(t->name, "size") ||
                                   !strcmp(t->name, "len") || !strcmp(t->name, "dims")))
        return -1; /* folds its group */
    if (t->kind == HONE_T_CALL && !strcmp(t->name, "pos"))
        return t->n_arg == 1 ? members(b, t->arg[0], e, depth + 1) : -1;
    if (t->kind == HONE_T_CALL && !strcmp(t->name, "flat")) return -1;
    /* its subscripts have groups of their own; as a whole it is repeated only where pos() picks by member */
    if (t->kind == HONE_T_LOAD) {
        const hone_tree *pos = NULL;
        for (int k = 0; k < t->n_arg && !pos; k++) pos = uses_pos(t->arg[k]);
        if (pos) return members(b, pos, e, depth + 1);
        return t->other ? members(b, t->other, e, depth + 1) : -1;
    }
    if (t->kind == HONE_T_CALL) { /* an abbreviation with parameters */
        const hone_line *l = hone_build_short(b, t->name, false);
        if (l && l->n_param == t->n_arg && l->n_param) {
            int r = members(b, l->expr, e, depth + 1);
            if (r >= 0) return r;
        }
    }
    if (t->kind == HONE_T_NAME || t->kind == HONE_T_INDEX) {
        const hone_env *f = hone_build_lookup(e, t->name, false);
        if (f && f->tree) return members(b, f->tree, f->where, depth + 1);
        return -1;
    }
    for (int k = 0; k < t->n_arg; k++) {
        int r = members(b, t->arg[k], e, depth + 1);
        if (r >= 0) return r;
    }
    int r = members(b, t->body, e, depth + 1);
    return r >= 0 ? r : members(b, t->other, e, depth + 1);
}
int hone_build_spread(hone_builder *b, const hone_tree *t, const hone_env *e) { return members(b, t, e, 0); }

/* ---- loads --------------------------------------------------------------------------------------------- */
static bool spreads(const hone_tree *t) {
    if (!t) return false;
    if (t->kind == HONE_T_LOAD && t->spread) return true;
    for (int k = 0; k < t->n_arg; k++)
        if (spreads(t->arg[k])) return true;
    return false;
}
/* Subscripts of a load or store into `out`; returns how many. `want`: how many the tensor has. */
static int subscripts(hone_builder *b, hone_tree *const *arg, int n, const hone_env *e, int member, int want,
                      int line, int32_t *out) {
    int made = 0;
    for (int k = 0; k < n; k++) {
        const hone_tree *t = arg[k];
        if (t->kind == HONE_T_TUPLE) {
            made += subscripts(b, t->arg, t->n_arg, e, member, want - made, line, out + made);
            continue;
        }
        if (t->kind == HONE_T_COLON) { /* x[i.., :].. : this member's */
            if (member < 0) hone_build_fail(b, line, "':' stands only in a spread, x[…, :]..");
            if (made >= want) hone_build_fail(b, line, "too many subscripts");
            out[made++] = hone_build_typed(b, hone_build_int(b, member), HONE_I64);
            continue;
        }
        int r = members(b, t, e, 0);
        if (r < 0 && spreads(t)) { /* as many as are left */
            int rest = 0;
            for (int q = k + 1; q < n; q++) {
                int m = members(b, arg[q], e, 0);
                rest += m < 0 ? 1 : m;
            }
            r = want - made - rest;
        }
        /* inside an expression that is itself repeated, only a plain group stands for all its members */
        bool all = r >= 0 && (member < 0 || plain_group(t));
        for (int m = 0; all && m < r; m++) {
            if (made >= want) hone_build_fail(b, line, "too many subscripts");
            out[made++] = settled(b, hone_build_expr(b, t, e, m));
        }
        if (all) continue;
        if (made >= want) hone_build_fail(b, line, "too many subscripts");
        out[made++] = settled(b, hone_build_expr(b, t, e, member));
    }
    return made;
}
int hone_build_subscripts(hone_builder *b, hone_tree *const *arg, int n, const hone_env *e, int want,
                          int line, int32_t *out) {
    return subscripts(b, arg, n, e, -1, want, line, out);
}

static int32_t tensor_size(hone_builder *b, int t) {
    int32_t size = hone_build_typed(b, hone_build_int(b, 1), HONE_I64);
    for (int k = 0; k < b->tensor.at[t].rank; k++)
        size = hone_build_fn(b, HONE_FN_mul, size, param_x(b, b->tensor.at[t].dim[k]), -1);
    return size;
}
/* What a name, an abbreviation or a call finally is, where it must be a load: its tree and the names it is
   read in. */
static const hone_tree *load_tree(hone_builder *b, const hone_tree *t, const hone_env **e, int depth) {
    if (depth > 20) hone_build_fail(b, t->line, "'%s' goes round in circles", t->name);
    if (t->kind == HONE_T_LOAD) return t;
    if (t->kind == HONE_T_NAME) {
        const hone_env *f = hone_build_lookup(*e, t->name, t->group);
        if (f && f->tree) {
            *e = f->where;
            return load_tree(b, f->tree, e, depth + 1);
        }
        const hone_line *l = hone_build_short(b, t->name, t->group);
        if (l && !l->n_param) return load_tree(b, l->expr, e, depth + 1);
    }
    hone_build_fail(b, t->line, "expected a load, x[…]");
}
static int32_t load(hone_builder *b, const hone_tree *t, const hone_tree *other, const hone_env *e,
                    const hone_env *other_env, int member) {
    int at = hone_build_tensor(b, t->name);
    if (at < 0) {
        int o = hone_build_operand(b, t->name);
        if (o < 0) hone_build_fail(b, t->line, "there is no tensor '%s'", t->name);
        const hone_operand *op = b->p->operand + o;
        if (!op->output && !b->call->arg[o].present && op->otherwise)
            return hone_build_expr(b, op->otherwise, NULL, -1);
        if (other) return hone_build_expr(b, other, other_env, member);
        if (!b->slots) hone_build_later(b);
        hone_build_fail(b, t->line, "'%s' is read, but it is not there", t->name);
    }
    int32_t sub[HONE_MAX_RANK];
    int want = t->flat ? 1 : b->tensor.at[at].rank,
        n = subscripts(b, t->arg, t->n_arg, e, member, want, t->line, sub);
    if (n != want) hone_build_fail(b, t->line, "'%s' has %d dims, not %d", t->name, want, n);
    int type = (int)hone_dtypes[b->tensor.at[at].dtype].ctype;
    int32_t otherwise = other ? hone_build_typed(b, hone_build_expr(b, other, other_env, member), type) : -1;
    if (t->flat) b->tensor.at[at].dense = true;
    int32_t place = hone_build_push(b, sub, n);
    return hone_build_x(
        b,
        (hone_x){
            .kind = HONE_X_LOAD, .type = (uint8_t)type, .flat = t->flat, .a = at, .b = place, .c = otherwise},
        false);
}
static int32_t inside(hone_builder *b, const hone_tree *t, const hone_env *e, int member) {
    t = load_tree(b, t, &e, 0);
    int32_t x = load(b, t, NULL, e, e, member), all = -1;
    if (b->x.at[x].kind != HONE_X_LOAD) return hone_build_int(b, 1);
    hone_x l = b->x.at[x];
    int n = l.flat ? 1 : b->tensor.at[l.a].rank;
    for (int k = 0; k < n; k++) {
        int32_t s = b->list.at[l.b + k],
                extent = l.flat ? tensor_size(b, l.a) : param_x(b, b->tensor.at[l.a].dim[k]);
        const hone_x *sx = b->x.at + s;
        /* cannot be outside */
        if (sx->kind == HONE_X_INDEX && b->index.at[sx->a].extent == b->tensor.at[l.a].dim[k] && !l.flat)
            continue;
        int32_t ok = hone_build_fn(b, HONE_FN_and, hone_build_fn(b, HONE_FN_le, hone_build_int(b, 0), s, -1),
                                   hone_build_fn(b, HONE_FN_lt, s, extent, -1), -1);
        all = all < 0 ? ok : hone_build_fn(b, HONE_FN_and, all, ok, -1);
    }
    return all < 0 ? hone_build_typed(b, hone_build_int(b, 1), HONE_I32) : all;
}
static int32_t flat(hone_builder *b, const hone_tree *t, const hone_env *e, int member) {
    int32_t at = hone_build_typed(b, hone_build_int(b, 0), HONE_I64);
    if (t->kind == HONE_T_NAME && t->group) { /* flat(i..) */
        const hone_env *f = hone_build_lookup(e, t->name, true);
        if (f && f->index) {
            for (int k = 0; k < f->n; k++) {
                at = hone_build_fn(b, HONE_FN_mul, at, param_x(b, b->index.at[f->index[k]].extent), -1);
                at = hone_build_fn(
                    b, HONE_FN_add, at,
                    hone_build_x(b, (hone_x){.kind = HONE_X_INDEX, .type = HONE_I64, .a = f->index[k]},
                                 false),
                    -1);
            }
            return at;
        }
    }
    t = load_tree(b, t, &e, 0);
    int32_t x = load(b, t, NULL, e, e, member);
    hone_x l = b->x.at[x];
    if (l.kind != HONE_X_LOAD) hone_build_fail(b, t->line, "flat() needs a load or a group of indices");
    if (l.flat) return b->list.at[l.b];
    for (int k = 0; k < b->tensor.at[l.a].rank; k++) {
        at = hone_build_fn(b, HONE_FN_mul, at, param_x(b, b->tensor.at[l.a].dim[k]), -1);
        at = hone_build_fn(b, HONE_FN_add, at, b->list.at[l.b + k], -1);
    }
    return at;
}

/* ---- calls --------------------------------------------------------------------------------------------- */
static bool storage_type(hone_builder *b, const char *name, hone_dtype *out) {
    for (int k = 0; k < b->p->n_in + b->p->n_out; k++) {
        const hone_operand *o = b->p->operand + k;
        if ((o->of == HONE_OF_VAR || o->of == HONE_OF_ATTR) && !strcmp(o->type, name)) {
            *out = hone_build_type(b, o);
            return *out != HONE_DTYPE_NONE;
        }
    }
    return (*out = hone_dtype_named(name, strlen(name))) != HONE_DTYPE_NONE;
}
static int32_t fold_group(hone_builder *b, const hone_tree *t, const hone_env *e) { /* prod..(e) */
    static const struct {
        const char *name;
        hone_fn fn;
        int empty;
    } folds[] = {{"prod", HONE_FN_mul, 1}, {"sum", HONE_FN_add, 0}, {"min", HONE_FN_min, 0},
                 {"max", HONE_FN_max, 0},  {"all", HONE_FN_and, 1}, {"any", HONE_FN_or, 0}};
    for (size_t k = 0; k < sizeof folds / sizeof *folds; k++) {
        if (strcmp(t->name, folds[k].name) || t->n_arg != 1) continue;
        int n = members(b, t->arg[0], e, 0);
        if (n < 0) hone_build_fail(b, t->line, "%s.. needs a group", t->name);
        int32_t all = -1;
        for (int m = 0; m < n; m++) {
            int32_t x = hone_build_expr(b, t->arg[0], e, m);
            all = all < 0 ? x : hone_build_fn(b, folds[k].fn, all, x, -1);
        }
        return all < 0 ? hone_build_int(b, folds[k].empty) : all;
    }
    hone_build_fail(b, t->line, "%s.. is no fold", t->name);
}
/* A call of the language's own functions: where it stands. */
typedef struct {
    hone_builder *b;
    const hone_tree *t;
    const hone_env *e;
    int member;
} at_call;
static int32_t arg(const at_call *c, int k) { return hone_build_expr(c->b, c->t->arg[k], c->e, c->member); }
static const char *arg_name(const at_call *c) {
    return c->t->arg[0]->kind == HONE_T_NAME ? c->t->arg[0]->name : NULL;
}

static int32_t call_else(const at_call *c) {
    hone_builder *b = c->b;
    const hone_env *le = c->e;
    const hone_tree *what = c->t->arg[0];
    if (what->kind == HONE_T_CALL) { /* f(j) else … : the abbreviation's load, in its own names */
        const hone_line *l = hone_build_short(b, what->name, false);
        if (!l || l->n_param != what->n_arg) hone_build_fail(b, c->t->line, "'else' follows a load");
        hone_build_fail(b, c->t->line, "write 'else' inside the abbreviation %s", what->name);
    }
    const hone_tree *l = load_tree(b, what, &le, 0);
    return load(b, l, c->t->arg[1], le, c->e, c->member);
}
/* From the first condition on, so that what is decided hides the rest. */
static int32_t call_select(const at_call *c) {
    enum { MOST = 32 };
    int n = c->t->n_arg, open = 0;
    if (n < 3 || n % 2 == 0)
        hone_build_fail(c->b, c->t->line, "select takes a condition and a value, …, and a last value");
    double v;
    int32_t cond[MOST], value[MOST], last = -1;
    for (int k = 0; k + 1 < n && last < 0; k += 2) {
        int32_t x = arg(c, k);
        if (hone_build_const(c->b, x, &v)) {
            if (v != 0) last = arg(c, k + 1);
            continue;
        }
        if (open == MOST) hone_build_fail(c->b, c->t->line, "too many conditions");
        cond[open] = x, value[open++] = arg(c, k + 1);
    }
    if (last < 0) last = arg(c, n - 1);
    while (open-- > 0) last = hone_build_select(c->b, cond[open], value[open], last);
    return last;
}
static int32_t truth(const at_call *c, bool is) {
    return hone_build_typed(c->b, hone_build_int(c->b, is), HONE_I32);
}
static int32_t call_has(const at_call *c) {
    if (!arg_name(c)) return -1;
    int o = hone_build_operand(c->b, arg_name(c));
    if (o >= 0) return truth(c, c->b->call->arg[o].present);
    const hone_attr_spec *s = hone_build_attr(c->b, arg_name(c));
    if (!s) hone_build_fail(c->b, c->t->line, "there is no '%s'", arg_name(c));
    return truth(c, hone_build_attr_given(c->b, s) != NULL);
}
static int32_t call_isfloat(const at_call *c) {
    hone_dtype d;
    if (!arg_name(c) || !storage_type(c->b, arg_name(c), &d)) return -1;
    return truth(c, hone_dtypes[d].kind == HONE_KIND_FLOAT);
}
static int32_t call_isint(const at_call *c) {
    hone_dtype d;
    if (!arg_name(c) || !storage_type(c->b, arg_name(c), &d)) return -1;
    return truth(c, hone_dtypes[d].kind == HONE_KIND_INT || hone_dtypes[d].kind == HONE_KIND_UINT);
}
/* The least or the greatest number of a type; of floats that have infinities, those. */
static int32_t extreme(const at_call *c, bool low) {
    hone_dtype d;
    if (!arg_name(c) || !storage_type(c->b, arg_name(c), &d)) return -1;
    const hone_dtype_row *row = hone_dtypes + d;
    const bool infinite = d == HONE_DTYPE_F32 || d == HONE_DTYPE_BF16 || d == HONE_DTYPE_F16;
    hone_scalar k = {.u64 = 0};
    if (row->ctype == HONE_F32)
        k.f32 = (float)(infinite ? (low ? -INFINITY : INFINITY) : low ? row->lowest : row->highest);
    else if (row->ctype == HONE_F64) k.f64 = low ? -INFINITY : INFINITY;
    else if (row->ctype == HONE_I32) k.i32 = (int32_t)(low ? row->lowest : row->highest);
    else if (row->ctype == HONE_I64)
        k.i64 = d == HONE_DTYPE_U32 ? (low ? 0 : UINT32_MAX) : low ? INT64_MIN : INT64_MAX;
    else k.u64 = low ? 0 : UINT64_MAX;
    return hone_build_x(c->b, (hone_x){.kind = HONE_X_CONST, .type = (uint8_t)row->ctype, .k = k}, true);
}
static int32_t call_lowest(const at_call *c) { return extreme(c, true); }
static int32_t call_highest(const at_call *c) { return extreme(c, false); }
static int32_t call_size(const at_call *c) {
    hone_builder *b = c->b;
    if (!arg_name(c)) return -1;
    if (c->t->arg[0]->group) {
        int32_t size = hone_build_typed(b, hone_build_int(b, 1), HONE_I64);
        int r = members(b, c->t->arg[0], c->e, 0);
        if (r < 0) hone_build_later(b);
        for (int m = 0; m < r; m++)
            size = hone_build_fn(b, HONE_FN_mul, size, hone_build_expr(b, c->t->arg[0], NULL, m), -1);
        return size;
    }
    int at = hone_build_tensor(b, arg_name(c));
    if (at < 0) hone_build_fail(b, c->t->line, "there is no tensor '%s'", arg_name(c));
    return tensor_size(b, at);
}
static int32_t call_rank(const at_call *c) {
    if (!arg_name(c)) return -1;
    int r = -1, o = -1;
    if (c->t->arg[0]->group) r = members(c->b, c->t->arg[0], c->e, 0);
    else if ((o = hone_build_operand(c->b, arg_name(c))) >= 0 && o < c->b->p->n_in)
        r = c->b->call->arg[o].rank;
    if (r < 0) hone_build_later(c->b);
    return hone_build_int(c->b, r);
}
static int32_t call_pos(const at_call *c) {
    if (c->member < 0) hone_build_fail(c->b, c->t->line, "pos() stands only where a group is repeated");
    return hone_build_int(c->b, c->member);
}
static int vector_of(const at_call *c, int64_t *length) {
    int v = hone_build_vector(c->b, c->t->arg[0]);
    if (v < 0) hone_build_fail(c->b, c->t->line, "%s() needs a vector", c->t->name);
    *length = hone_vector_length(c->b->vector.at, v, c->b->call);
    return v;
}
static int32_t call_len(const at_call *c) {
    int64_t length;
    vector_of(c, &length);
    if (length < 0) hone_build_later(c->b);
    return hone_build_int(c->b, length);
}
static int32_t call_find(const at_call *c) {
    hone_builder *b = c->b;
    int64_t length;
    int v = vector_of(c, &length);
    int32_t wanted = hone_build_typed(b, hone_build_pure(b, c->t->arg[1], c->e, c->member), HONE_I64),
            from = hone_build_typed(b, hone_build_pure(b, c->t->arg[2], c->e, c->member), HONE_I64);
    return hone_build_x(b, (hone_x){.kind = HONE_XS_FIND, .type = HONE_I64, .a = v, .b = wanted, .c = from},
                        true);
}
static int32_t call_inside(const at_call *c) { return inside(c->b, c->t->arg[0], c->e, c->member); }
static int32_t call_flat(const at_call *c) { return flat(c->b, c->t->arg[0], c->e, c->member); }
static int32_t fn2(const at_call *c, hone_fn f, int32_t x, int32_t y) {
    return hone_build_fn(c->b, f, x, y, -1);
}
static int32_t call_clamp(const at_call *c) {
    int32_t low = arg(c, 1), high = arg(c, 2);
    return fn2(c, HONE_FN_max, fn2(c, HONE_FN_min, arg(c, 0), high), low);
}
static int32_t call_wrap(const at_call *c) {
    int32_t x = arg(c, 0), below = fn2(c, HONE_FN_lt, x, hone_build_int(c->b, 0));
    return hone_build_select(c->b, below, fn2(c, HONE_FN_add, x, arg(c, 1)), x);
}
static int32_t call_reflect(const at_call *c) { /* … 2 1 0 1 2 … n-1 n-2 …: period 2(n - 1) */
    int32_t size = arg(c, 1), one = hone_build_int(c->b, 1);
    int32_t steps = fn2(c, HONE_FN_mul, fn2(c, HONE_FN_sub, size, one), hone_build_int(c->b, 2));
    int32_t period = fn2(c, HONE_FN_max, steps, hone_build_int(c->b, 1));
    int32_t r = fn2(c, HONE_FN_mod, arg(c, 0), period), back = fn2(c, HONE_FN_sub, period, r);
    return hone_build_select(c->b, fn2(c, HONE_FN_lt, r, size), r, back);
}
static int32_t call_ceildiv(const at_call *c) {
    int32_t x = hone_build_fn(c->b, HONE_FN_neg, arg(c, 0), -1, -1);
    return hone_build_fn(c->b, HONE_FN_neg, fn2(c, HONE_FN_div, x, arg(c, 1)), -1, -1);
}
static int32_t call_sq(const at_call *c) {
    int32_t x = arg(c, 0);
    return fn2(c, HONE_FN_mul, x, x);
}

/* The language's own functions. One that does not take what stands there (it gives -1) leaves it to those of
   the row, and to numbers'. */
static const struct {
    const char *name;
    int n_arg; /* -1: any number */
    int32_t (*build)(const at_call *);
} builtins[] = {{"else", 2, call_else},
                {"select", -1, call_select},
                {"has", 1, call_has},
                {"isfloat", 1, call_isfloat},
                {"isint", 1, call_isint},
                {"lowest", 1, call_lowest},
                {"highest", 1, call_highest},
                {"size", 1, call_size},
                {"rank", 1, call_rank},
                {"pos", 1, call_pos},
                {"len", 1, call_len},
                {"find", 3, call_find},
                {"inside", 1, call_inside},
                {"flat", 1, call_flat},
                {"clamp", 3, call_clamp},
                {"wrap", 2, call_wrap},
                {"reflect", 2, call_reflect},
                {"ceildiv", 2, call_ceildiv},
                {"sq", 1, call_sq}};

/* What storage of this type would hold of a number. */
static int32_t rounded(hone_builder *b, hone_dtype d, int32_t x) {
    hone_ctype c = hone_dtypes[d].ctype;
    x = hone_build_typed(b, x, (int)c);
    if (hone_dtypes[d].bytes == hone_ctype_bytes[c] && d != HONE_DTYPE_STRING) return x;
    if (b->x.at[x].kind == HONE_X_CONST) {
        uint64_t room = 0;
        hone_dtype_store(d, &room, c, b->x.at[x].k, false);
        hone_scalar k = hone_dtype_load(d, &room), clean = {.u64 = 0};
        memcpy(&clean, &k, hone_ctype_bytes[c]);
        return hone_build_x(b, (hone_x){.kind = HONE_X_CONST, .type = (uint8_t)c, .k = clean}, true);
    }
    return hone_build_x(
        b, (hone_x){.kind = HONE_X_ROUND, .type = (uint8_t)c, .fn = (uint16_t)d, .a = x, .b = -1, .c = -1},
        false);
}

static int32_t call(hone_builder *b, const hone_tree *t, const hone_env *e, int member) {
    const at_call c = {b, t, e, member};
    const char *f = t->name;
    int n = t->n_arg;
    if (t->group) return fold_group(b, t, e);
    for (size_t k = 0; k < sizeof builtins / sizeof *builtins; k++) {
        if ((builtins[k].n_arg >= 0 && builtins[k].n_arg != n) || strcmp(f, builtins[k].name) != 0) continue;
        int32_t x = builtins[k].build(&c);
        if (x >= 0) return x;
    }
    const hone_line *l = hone_build_short(b, f, false);
    if (l && l->n_param) {
        if (l->n_param != n) hone_build_fail(b, t->line, "%s takes %d arguments", f, l->n_param);
        hone_env frame[16];
        for (int k = 0; k < n; k++)
            frame[k] =
                (hone_env){.up = k ? frame + k - 1 : e, .name = l->param[k], .tree = t->arg[k], .where = e};
        return hone_build_expr(b, l->expr, frame + n - 1, member);
    }
    for (int to = 0; to < HONE_CTYPES; to++)
        if (n == 1 && !strcmp(f, hone_ctype_names[to])) {
            int32_t x = arg(&c, 0);
            if (b->x.at[x].type == HONE_WEAK_REAL && to != HONE_F32 && to != HONE_F64)
                x = b->pure.at[x] && to == HONE_I64 ? x : hone_build_typed(b, x, b->weak_real);
            return hone_build_typed(b, x, to);
        }
    hone_dtype d;
    if (n == 1 && storage_type(b, f, &d)) return rounded(b, d, arg(&c, 0));
    for (int k = 0; k < HONE_FN_COUNT; k++)
        if (!strcmp(f, hone_fns[k].name) && hone_fns[k].arity == n) {
            int32_t a[3] = {-1, -1, -1};
            for (int q = 0; q < n; q++) a[q] = arg(&c, q);
            return hone_build_fn(b, (hone_fn)k, a[0], a[1], a[2]);
        }
    hone_build_fail(b, t->line, "there is no function %s of %d arguments", f, n);
}

/* ---- everything ---------------------------------------------------------------------------------------- */
static int32_t name(hone_builder *b, const hone_tree *t, const hone_env *e, int member) {
    if (t->group && member < 0)
        hone_build_fail(b, t->line, "'%s..' stands where one number is needed", t->name);
    const hone_env *f = hone_build_lookup(e, t->name, t->group);
    if (f && f->index) {
        if (t->group && member >= f->n) hone_build_fail(b, t->line, "'%s..' has %d members", t->name, f->n);
        return hone_build_x(
            b, (hone_x){.kind = HONE_X_INDEX, .type = HONE_I64, .a = f->index[t->group ? member : 0]}, false);
    }
    if (f) return hone_build_expr(b, f->tree, f->where, member);
    const hone_attr_spec *s = hone_build_attr(b, t->name);
    if (s && s->group == t->group) {
        const hone_attr *a = hone_build_attr_given(b, s);
        if (a && t->group && member >= a->n && a->n > 0)
            hone_build_fail(b, 0, "attribute '%s' has %d numbers; %s needs at least %d", s->name, a->n,
                            b->p->name, member + 1);
        bool given = a && a->n > 0 && (a->i || a->f);
        int k = t->group ? member : 0;
        if (s->kind == HONE_ATTR_FLOAT || s->kind == HONE_ATTR_FLOATS)
            return hone_build_x(b,
                                (hone_x){.kind = HONE_X_CONST,
                                         .type = HONE_WEAK_REAL,
                                         .k.f64 = given && a->f ? a->f[k] : s->f},
                                true);
        if (s->kind == HONE_ATTR_INT || s->kind == HONE_ATTR_INTS || s->kind == HONE_ATTR_TYPE)
            return hone_build_int(b, given && a->i ? a->i[k] : s->i);
        hone_build_fail(b, t->line, "'%s' is no number", t->name);
    }
    if (t->name[0] >= 'A' && t->name[0] <= 'Z')
        return hone_build_dim(b, t->name, t->group ? member : -1, t->line);
    const hone_line *l = hone_build_short(b, t->name, t->group);
    if (l && !l->n_param) return hone_build_expr(b, l->expr, e, member);
    static const struct {
        const char *name;
        double v;
    } known[] = {{"inf", INFINITY}, {"nan", NAN}, {"pi", 3.14159265358979323846}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (!strcmp(t->name, known[k].name))
            return hone_build_x(
                b, (hone_x){.kind = HONE_X_CONST, .type = HONE_WEAK_REAL, .k.f64 = known[k].v}, true);
    int o = hone_build_operand(b, t->name);
    if (o >= 0 && !t->group && b->p->operand[o].shaped && b->p->operand[o].n_entry == 0) {
        hone_tree l0 = {.kind = HONE_T_LOAD, .name = t->name, .line = t->line};
        return load(b, &l0, NULL, e, e, member);
    }
    if (!b->slots && !t->group) { /* while ranks are sought, an index may not exist yet */
        if (o >= 0) hone_build_later(b);
    }
    hone_build_fail(b, t->line, "'%s%s' is not known here", t->name, t->group ? ".." : "");
}
static int32_t binary(hone_builder *b, const hone_tree *t, const hone_env *e, int member) {
    const char *op = t->name;
    double v;
    bool equality = !strcmp(op, "==") || !strcmp(op, "!=");
    if (equality) { /* texts and types */
        const char *p, *q;
        if (hone_build_strings(b, t->arg[0], e, &p) && hone_build_strings(b, t->arg[1], e, &q))
            return hone_build_typed(b, hone_build_int(b, (strcmp(p, q) == 0) == (*op == '=')), HONE_I32);
        hone_dtype d0, d1;
        if (t->arg[0]->kind == HONE_T_NAME && t->arg[1]->kind == HONE_T_NAME && !t->arg[0]->group &&
            !hone_build_lookup(e, t->arg[0]->name, false) && storage_type(b, t->arg[0]->name, &d0) &&
            storage_type(b, t->arg[1]->name, &d1))
            return hone_build_typed(b, hone_build_int(b, (d0 == d1) == (*op == '=')), HONE_I32);
        /* an operand of its own type: x == string */
        if (t->arg[0]->kind == HONE_T_NAME && t->arg[1]->kind == HONE_T_NAME) {
            int o = hone_build_operand(b, t->arg[0]->name);
            if (o >= 0 && o < b->p->n_in && storage_type(b, t->arg[1]->name, &d1))
                return hone_build_typed(b, hone_build_int(b, (b->call->arg[o].dtype == d1) == (*op == '=')),
                                        HONE_I32);
        }
    }
    int32_t x = hone_build_expr(b, t->arg[0], e, member);
    if (!strcmp(op, "&&") && hone_build_const(b, x, &v) && v == 0) return x;
    if (!strcmp(op, "||") && hone_build_const(b, x, &v) && v != 0) return x;
    int32_t y = hone_build_expr(b, t->arg[1], e, member);
    static const struct {
        const char *op;
        hone_fn fn;
        bool swap;
    } ops[] = {{"+", HONE_FN_add, 0},  {"-", HONE_FN_sub, 0},  {"*", HONE_FN_mul, 0}, {"/", HONE_FN_div, 0},
               {"%", HONE_FN_mod, 0},  {"<", HONE_FN_lt, 0},   {"<=", HONE_FN_le, 0}, {">", HONE_FN_lt, 1},
               {">=", HONE_FN_le, 1},  {"==", HONE_FN_eq, 0},  {"!=", HONE_FN_ne, 0}, {"&&", HONE_FN_and, 0},
               {"||", HONE_FN_or, 0},  {"&", HONE_FN_band, 0}, {"|", HONE_FN_bor, 0}, {"^", HONE_FN_bxor, 0},
               {"<<", HONE_FN_shl, 0}, {">>", HONE_FN_shr, 0}};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        if (strcmp(op, ops[k].op)) continue;
        /* an absent operand's literal 0 in a sum, or literal 1 in a product, leaves the other side as it
           is */
        const hone_x *ex = b->x.at + x, *ey = b->x.at + y;
        if (ops[k].fn == HONE_FN_add && ex->kind == HONE_X_CONST && ex->type == HONE_WEAK_INT &&
            ex->k.i64 == 0)
            return y;
        if ((ops[k].fn == HONE_FN_add || ops[k].fn == HONE_FN_sub) && ey->kind == HONE_X_CONST &&
            ey->type == HONE_WEAK_INT && ey->k.i64 == 0)
            return x;
        if (ops[k].fn == HONE_FN_mul && ex->kind == HONE_X_CONST && ex->type == HONE_WEAK_INT &&
            ex->k.i64 == 1)
            return y;
        if (ops[k].fn == HONE_FN_mul && ey->kind == HONE_X_CONST && ey->type == HONE_WEAK_INT &&
            ey->k.i64 == 1)
            return x;
        return hone_build_fn(b, ops[k].fn, ops[k].swap ? y : x, ops[k].swap ? x : y, -1);
    }
    hone_build_fail(b, t->line, "there is no operator '%s'", op);
}
int32_t hone_build_expr(hone_builder *b, const hone_tree *t, const hone_env *e, int member) {
    if (++b->depth > 500)
        hone_build_fail(b, t->line, "an expression is nested too deeply, or an abbreviation uses itself");
    int32_t x = -1;
    switch (t->kind) {
    case HONE_T_NUMBER:
        x = t->real ? hone_build_x(b, (hone_x){.kind = HONE_X_CONST, .type = HONE_WEAK_REAL, .k.f64 = t->k.f},
                                   true)
                    : hone_build_int(b, t->k.i);
        break;
    case HONE_T_INDEX:
    case HONE_T_NAME: x = name(b, t, e, member); break;
    case HONE_T_LOAD: {
        hone_tree v = {.kind = HONE_T_NAME, .name = t->name};
        int vec = t->body                             ? hone_build_vector(b, t->body)
                  : hone_build_tensor(b, t->name) < 0 ? hone_build_vector(b, &v)
                                                      : -1;
        if (vec >= 0 && t->n_arg == 1) {
            x = hone_build_vector_at(b, vec, t->arg[0], e, member);
        } else x = load(b, t, t->other, e, e, member);
        break;
    }
    case HONE_T_CALL: x = call(b, t, e, member); break;
    case HONE_T_UNARY:
        x = hone_build_fn(b, *t->name == '-' ? HONE_FN_neg : HONE_FN_not,
                          hone_build_expr(b, t->arg[0], e, member), -1, -1);
        break;
    case HONE_T_BINARY: x = binary(b, t, e, member); break;
    case HONE_T_REDUCE: x = hone_build_reduce(b, t, e, member); break;
    default: hone_build_fail(b, t->line, "this stands only in subscripts and comparisons");
    }
    b->depth--;
    return x;
}
