/* SPDX-License-Identifier: Apache-2.0
   build_expr: trees into typed expressions. Constants fold here, so conditions on attributes, types and
   presence decide themselves and the arm not taken is never built. What is made of parameters only stays
   "pure" and is turned into one parameter where it meets the rest. */
#include <math.h>
#include <string.h>

#include "loops/build.h"

/* ---- the pool ------------------------------------------------------------------------------------------ */
static uint32_t hash(const hone_x *x) {
    uint64_t h = x->kind * 0x9e3779b97f4a7c15u ^ x->type * 0xff51afd7ed558ccdu ^
                 (uint64_t)(uint32_t)x->a << 17 ^ (uint64_t)(uint32_t)x->b << 34 ^ (uint32_t)x->c ^
                 (uint64_t)x->fn << 50 ^ x->k.u64 * 0xc4ceb9fe1a85ec53u;
    return (uint32_t)(h ^ h >> 29);
}
static bool equal(const hone_builder *b, const hone_x *p, const hone_x *q) {
    if (p->kind != q->kind || p->type != q->type || p->flat != q->flat || p->fn != q->fn || p->a != q->a ||
        p->c != q->c || p->k.u64 != q->k.u64)
        return false;
    if (p->kind != HONE_X_LOAD) return p->b == q->b;
    int n = p->flat ? 1 : b->tensor.at[p->a].rank;
    return n == 0 || !memcmp(b->list.at + p->b, b->list.at + q->b, sizeof(int32_t) * (size_t)n);
}
static uint32_t hash_load(const hone_builder *b, const hone_x *x) {
    hone_x y = *x;
    uint32_t h = 0;
    int n = x->flat ? 1 : b->tensor.at[x->a].rank;
    for (int k = 0; k < n; k++) h = h * 31 + (uint32_t)b->list.at[x->b + k];
    y.b = 0;
    return hash(&y) ^ h;
}
int32_t hone_build_x(hone_builder *b, hone_x x, bool pure) {
    if (x.kind != HONE_X_CONST) x.k.u64 = 0;
    if (b->x.n * 2 >= b->table.n) { /* grow the hash */
        int size = b->table.n ? b->table.n * 2 : 256;
        b->table.n = 0;
        while (b->table.n < size)
            if (!hone_push(&b->table, -1)) hone_build_memory(b);
        for (int k = 0; k < b->x.n; k++) {
            uint32_t h = (b->x.at[k].kind == HONE_X_LOAD ? hash_load(b, b->x.at + k) : hash(b->x.at + k)) &
                         (uint32_t)(size - 1);
            while (b->table.at[h] >= 0) h = (h + 1) & (uint32_t)(size - 1);
            b->table.at[h] = k;
        }
    }
    uint32_t mask = (uint32_t)b->table.n - 1,
             h = (x.kind == HONE_X_LOAD ? hash_load(b, &x) : hash(&x)) & mask;
    for (; b->table.at[h] >= 0; h = (h + 1) & mask)
        if (equal(b, b->x.at + b->table.at[h], &x)) return b->table.at[h];
    if (b->x.n > 100000) hone_build_fail(b, 0, "%s grows too large", b->p->name);
    b->table.at[h] = b->x.n;
    if (!hone_push(&b->x, x) || !hone_push(&b->pure, (uint8_t)pure)) hone_build_memory(b);
    return b->x.n - 1;
}
static int32_t make_const(hone_builder *b, int type, hone_scalar k) {
    return hone_build_x(b, (hone_x){.kind = HONE_X_CONST, .type = (uint8_t)type, .k = k}, true);
}
int32_t hone_build_int(hone_builder *b, int64_t v) {
    return make_const(b, HONE_WEAK_INT, (hone_scalar){.i64 = v});
}
static int32_t real(hone_builder *b, double v) {
    return make_const(b, HONE_WEAK_REAL, (hone_scalar){.f64 = v});
}
static int32_t truth(hone_builder *b, bool v) { return make_const(b, HONE_I32, (hone_scalar){.u64 = v}); }
static int type_of(const hone_builder *b, int32_t x) { return b->x.at[x].type; }
static bool is_real(int t) { return t == HONE_F32 || t == HONE_F64 || t == HONE_WEAK_REAL; }
/* what folding computes in */
static int ctype(int t) { return t == HONE_WEAK_INT ? HONE_I64 : t == HONE_WEAK_REAL ? HONE_F64 : t; }

bool hone_build_const(const hone_builder *b, int32_t x, double *value) {
    const hone_x *e = b->x.at + x;
    if (e->kind != HONE_X_CONST) return false;
    *value = hone_scalar_f64((hone_ctype)ctype(e->type), e->k);
    return true;
}
static bool const_int(const hone_builder *b, int32_t x, int64_t *v) {
    const hone_x *e = b->x.at + x;
    if (e->kind != HONE_X_CONST || is_real(e->type)) return false;
    *v = ctype(e->type) == HONE_I32 ? e->k.i32 : e->k.i64;
    return true;
}
int32_t hone_build_param(hone_builder *b, int32_t x, const char *name) {
    if (b->x.at[x].kind == HONE_X_PARAM) return b->x.at[x].a;
    for (int k = 0; k < b->param.n; k++)
        if (b->param.at[k] == x) return k;
    if (!hone_push(&b->param, x) || !hone_push(&b->param_name, name)) hone_build_memory(b);
    return b->param.n - 1;
}
/* Something pure, met by something that is not: one parameter. */
static int32_t settle(hone_builder *b, int32_t x) {
    const hone_x *e = b->x.at + x;
    if (!b->pure.at[x] || e->kind == HONE_X_CONST || e->kind == HONE_X_PARAM) return x;
    int type = e->type;
    int32_t p = hone_build_param(b, x, "");
    int32_t y = hone_build_x(b,
                             (hone_x){.kind = HONE_X_PARAM,
                                      .type = (uint8_t)(type == HONE_WEAK_REAL ? HONE_WEAK_REAL : HONE_I64),
                                      .a = p},
                             true);
    return type == HONE_I32 ? hone_build_typed(b, y, HONE_I32) : y;
}
static bool pure_type(int t) {
    return t == HONE_I64 || t == HONE_I32 || t == HONE_WEAK_INT || t == HONE_WEAK_REAL;
}

/* ---- types --------------------------------------------------------------------------------------------- */
static int meet(int p, int q) {
    if (p == HONE_F64 || q == HONE_F64) return HONE_F64;
    if (p == HONE_F32 || q == HONE_F32) return HONE_F32;
    if (p == HONE_WEAK_REAL || q == HONE_WEAK_REAL) return HONE_WEAK_REAL;
    if (p == HONE_WEAK_INT) return q;
    if (q == HONE_WEAK_INT) return p;
    if (p == HONE_U64 || q == HONE_U64) return HONE_U64;
    return p == HONE_I64 || q == HONE_I64 ? HONE_I64 : HONE_I32;
}
int32_t hone_build_typed(hone_builder *b, int32_t x, int type) {
    hone_x e = b->x.at[x];
    if (e.type == type) return x;
    if (e.kind == HONE_X_CONST) {
        hone_scalar k = hone_ctype_cast((hone_ctype)ctype(type), (hone_ctype)ctype(e.type), e.k);
        /* unused upper half: keep it clean for hashing */
        if (ctype(type) == HONE_I32 || ctype(type) == HONE_F32) {
            hone_scalar clean = {.u64 = 0};
            if (ctype(type) == HONE_I32) clean.i32 = k.i32;
            else clean.f32 = k.f32;
            k = clean;
        }
        return make_const(b, type, k);
    }
    /* the whole weak tree takes the type */
    if (e.type == HONE_WEAK_REAL && !(b->pure.at[x] && (type == HONE_I64 || type == HONE_WEAK_INT))) {
        if (b->pure.at[x] && e.kind != HONE_X_PARAM) x = settle(b, x), e = b->x.at[x];
        switch (e.kind) {
        case HONE_X_FN: {
            int32_t p = hone_build_typed(b, e.a, type), q = e.b >= 0 ? hone_build_typed(b, e.b, type) : -1,
                    r = e.c >= 0 ? hone_build_typed(b, e.c, type) : -1;
            return hone_build_x(
                b, (hone_x){.kind = HONE_X_FN, .type = (uint8_t)type, .fn = e.fn, .a = p, .b = q, .c = r},
                false);
        }
        case HONE_X_SELECT: {
            int32_t p = hone_build_typed(b, e.b, type), q = hone_build_typed(b, e.c, type);
            return hone_build_x(
                b, (hone_x){.kind = HONE_X_SELECT, .type = (uint8_t)type, .a = e.a, .b = p, .c = q}, false);
        }
        case HONE_X_CAST: return hone_build_typed(b, e.a, type);
        case HONE_X_PARAM: {
            int32_t p = hone_build_x(b, (hone_x){.kind = HONE_X_PARAM, .type = HONE_F64, .a = e.a}, false);
            return type == HONE_F64
                       ? p
                       : hone_build_x(
                             b,
                             (hone_x){.kind = HONE_X_CAST, .type = (uint8_t)type, .a = p, .b = -1, .c = -1},
                             false);
        }
        default: hone_build_fail(b, 0, "a weak number of an unexpected kind");
        }
    }
    bool pure = b->pure.at[x] && pure_type(type);
    if (!pure) x = settle(b, x);
    if (b->x.at[x].type == type) return x;
    return hone_build_x(b, (hone_x){.kind = HONE_X_CAST, .type = (uint8_t)type, .a = x, .b = -1, .c = -1},
                        pure);
}
static int32_t as_truth(hone_builder *b, int32_t x) {
    int t = type_of(b, x);
    double v;
    if (hone_build_const(b, x, &v)) return truth(b, v != 0);
    if (t == HONE_I32) {
        const hone_x *e = b->x.at + x;
        if (e->kind == HONE_X_FN && (hone_fns[e->fn].result == 'B' || hone_fns[e->fn].types == 'L')) return x;
    }
    return hone_build_fn(b, HONE_FN_ne, x, hone_build_int(b, 0), -1);
}
int32_t hone_build_fn(hone_builder *b, hone_fn fn, int32_t a0, int32_t a1, int32_t a2) {
    const hone_fn_row *row = hone_fns + fn;
    int32_t a[3] = {a0, a1, a2};
    int n = row->arity, t;
    if (row->types == 'L') {
        for (int k = 0; k < n; k++) a[k] = as_truth(b, a[k]);
        t = HONE_I32;
    } else if (row->types == 'R') {
        for (int k = 0; k < n; k++) a[k] = hone_build_typed(b, a[k], HONE_I64);
        t = HONE_I64;
    } else {
        t = type_of(b, a[0]);
        for (int k = 1; k < n; k++) t = meet(t, type_of(b, a[k]));
        if (row->types == 'F' && !is_real(t)) {
            if (fn == HONE_FN_floor || fn == HONE_FN_ceil || fn == HONE_FN_round || fn == HONE_FN_trunc)
                return a[0];
            t = HONE_WEAK_REAL;
        }
        if (row->types == 'I' && is_real(t)) hone_build_fail(b, 0, "%s needs integers", row->name);
        /* integers become weak reals: a cast that a strong type later goes through */
        if (t == HONE_WEAK_REAL) {
            for (int k = 0; k < n; k++)
                if (!is_real(type_of(b, a[k]))) a[k] = hone_build_typed(b, a[k], HONE_WEAK_REAL);
        } else
            for (int k = 0; k < n; k++) a[k] = hone_build_typed(b, a[k], t);
    }
    int result = row->result == 'B' ? HONE_I32 : row->result == 'F' ? HONE_F32 : t;
    /* a comparison needs a strong type, unless it folds or is a parameter's */
    if (row->result == 'B' && t == HONE_WEAK_REAL) {
        bool all = true;
        for (int k = 0; k < n; k++) all &= b->pure.at[a[k]];
        if (!all) {
            t = b->weak_real;
            for (int k = 0; k < n; k++) a[k] = hone_build_typed(b, a[k], t);
        }
    }
    bool constant = true, pure = pure_type(result);
    for (int k = 0; k < n; k++) constant &= b->x.at[a[k]].kind == HONE_X_CONST, pure &= b->pure.at[a[k]] != 0;
    if (constant && row->types != 'R') {
        hone_scalar v[3] = {{0}};
        for (int k = 0; k < n; k++) v[k] = b->x.at[a[k]].k;
        hone_scalar r = hone_fn_eval(fn, (hone_ctype)ctype(t), v), clean = {.u64 = 0};
        if (ctype(result) == HONE_I32) clean.i32 = r.i32;
        else if (ctype(result) == HONE_F32) clean.f32 = r.f32;
        else clean = r;
        return make_const(b, result, clean);
    }
    int64_t k0 = 0, k1 = 0;
    if (!is_real(t) && row->types != 'L') { /* what keeps subscripts readable: x*1, x+0, x*0 */
        bool c0 = const_int(b, a[0], &k0), c1 = n > 1 && const_int(b, a[1], &k1);
        if (fn == HONE_FN_mul && ((c0 && k0 == 1) || (c1 && k1 == 1))) return c0 && k0 == 1 ? a[1] : a[0];
        if (fn == HONE_FN_mul && ((c0 && k0 == 0) || (c1 && k1 == 0)))
            return hone_build_typed(b, hone_build_int(b, 0), t);
        if (fn == HONE_FN_add && ((c0 && k0 == 0) || (c1 && k1 == 0))) return c0 && k0 == 0 ? a[1] : a[0];
        if (fn == HONE_FN_sub && c1 && k1 == 0) return a[0];
        if ((fn == HONE_FN_div || fn == HONE_FN_quot) && c1 && k1 == 1) return a[0];
        if ((fn == HONE_FN_mod || fn == HONE_FN_rem) && c1 && k1 == 1)
            return hone_build_typed(b, hone_build_int(b, 0), t);
    }
    double one;
    for (int k = 0; k < 2 && fn == HONE_FN_mul && is_real(t); k++) /* exact, NaN included */
        if (hone_build_const(b, a[k], &one) && one == 1.0) return a[1 - k];
    if (!pure)
        for (int k = 0; k < n; k++) a[k] = settle(b, a[k]);
    return hone_build_x(b,
                        (hone_x){.kind = HONE_X_FN,
                                 .type = (uint8_t)result,
                                 .fn = (uint16_t)fn,
                                 .a = a[0],
                                 .b = n > 1 ? a[1] : -1,
                                 .c = n > 2 ? a[2] : -1},
                        pure);
}
int32_t hone_build_select(hone_builder *b, int32_t c, int32_t p, int32_t q) {
    double v;
    if (hone_build_const(b, c, &v)) return v != 0 ? p : q;
    if (p == q) return p;
    c = as_truth(b, c);
    int t = meet(type_of(b, p), type_of(b, q));
    p = hone_build_typed(b, p, t), q = hone_build_typed(b, q, t);
    bool pure = pure_type(t) && b->pure.at[c] && b->pure.at[p] && b->pure.at[q];
    if (t == HONE_WEAK_INT) t = HONE_I64, p = hone_build_typed(b, p, t), q = hone_build_typed(b, q, t);
    if (!pure) c = settle(b, c), p = settle(b, p), q = settle(b, q);
    return hone_build_x(b, (hone_x){.kind = HONE_X_SELECT, .type = (uint8_t)t, .a = c, .b = p, .c = q}, pure);
}

/* ---- names --------------------------------------------------------------------------------------------- */
const hone_env *hone_build_lookup(const hone_env *e, const char *name, bool group) {
    for (; e; e = e->up)
        if (e->group == group && !strcmp(e->name, name)) return e;
    return NULL;
}
const hone_line *hone_build_short(const hone_builder *b, const char *name, bool group) {
    for (int k = b->lines.n - 1; k >= 0; k--) {
        const hone_line *l = b->lines.at[k];
        if ((l->kind == HONE_LINE_SHORT || l->kind == HONE_LINE_DIM) && l->group == group &&
            !strcmp(l->name, name))
            return l;
    }
    return NULL;
}
int hone_build_strings(const hone_builder *b, const hone_tree *t, const hone_env *e, const char **out) {
    if (t->kind == HONE_T_TEXT) {
        *out = t->name;
        return 1;
    }
    const hone_env *f = t->kind == HONE_T_NAME ? hone_build_lookup(e, t->name, t->group) : NULL;
    if (f) return f->tree ? hone_build_strings(b, f->tree, f->where, out) : 0;
    const hone_attr_spec *s =
        (t->kind == HONE_T_NAME || t->kind == HONE_T_LOAD) && !t->group ? hone_build_attr(b, t->name) : NULL;
    if (!s) return 0;
    const hone_attr *a = hone_build_attr_given(b, s);
    if (t->kind == HONE_T_NAME && s->kind == HONE_ATTR_STRING) {
        *out = a && a->s ? a->s[0].text : s->s ? s->s : "";
        return 1;
    }
    if (t->kind == HONE_T_LOAD && s->kind == HONE_ATTR_STRINGS && t->n_arg == 1) {
        hone_builder *w = (hone_builder *)b; /* building a constant position changes only the pool */
        int64_t k;
        if (!const_int(b, hone_build_expr(w, t->arg[0], e, -1), &k)) return 0;
        *out = a && k >= 0 && k < a->n ? a->s[k].text : s->s ? s->s : "";
        return 1;
    }
    return 0;
}
static int add_vector(hone_builder *b, hone_vector v) {
    for (int k = 0; k < b->vector.n; k++)
        if (!memcmp(b->vector.at + k, &v, sizeof v)) return k;
    if (!hone_push(&b->vector, v)) hone_build_memory(b);
    return b->vector.n - 1;
}
int hone_build_vector(hone_builder *b, const hone_tree *t) {
    hone_vector v;
    memset(&v, 0, sizeof v);
    v.operand = v.arg0 = v.arg1 = -1;
    if (t->kind == HONE_T_NAME) {
        const hone_attr_spec *s = hone_build_attr(b, t->name);
        if (s && (s->kind == HONE_ATTR_INTS || s->kind == HONE_ATTR_FLOATS || s->kind == HONE_ATTR_STRINGS)) {
            v.kind = HONE_VECTOR_ATTR, v.attr = hone_build_attr_given(b, s),
            v.flag = s->kind == HONE_ATTR_INTS && s->s, v.real = s->kind == HONE_ATTR_FLOATS,
            v.fallback_i = s->i, v.fallback_f = s->f;
            if (v.flag && v.attr && !v.attr->n) v.attr = NULL; /* an empty order is none */
            return add_vector(b, v);
        }
        int o = hone_build_operand(b, t->name);
        if (o >= 0 && o < b->p->n_in && b->p->operand[o].contents) {
            hone_dtype d = b->call->arg[o].dtype;
            v.kind = HONE_VECTOR_CONTENT, v.operand = o;
            v.real = d ? hone_dtypes[d].kind == HONE_KIND_FLOAT
                       : b->p->operand[o].of == HONE_OF_DTYPE &&
                             hone_dtypes[b->p->operand[o].dtype].kind == HONE_KIND_FLOAT;
            if (b->p->operand[o].otherwise && b->p->operand[o].otherwise->kind == HONE_T_NUMBER) {
                const hone_tree *n = b->p->operand[o].otherwise;
                v.fallback_i =
                    n->real ? hone_ctype_cast(HONE_I64, HONE_F64, (hone_scalar){.f64 = n->k.f}).i64 : n->k.i,
                v.fallback_f = n->real ? n->k.f : (double)n->k.i;
            }
            return add_vector(b, v);
        }
        return -1;
    }
    if (t->kind != HONE_T_CALL || t->group) return -1;
    static const struct {
        const char *name;
        hone_vector_kind kind;
        int args;
    } calls[] = {{"dims", HONE_VECTOR_DIMS, 1},
                 {"reshape", HONE_VECTOR_RESHAPE, 3},
                 {"squeeze", HONE_VECTOR_SQUEEZE, 2},
                 {"unsqueeze", HONE_VECTOR_UNSQUEEZE, 2},
                 {"broadcast", HONE_VECTOR_BROADCAST, 2}};
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        if (strcmp(t->name, calls[k].name)) continue;
        if (t->n_arg != calls[k].args)
            hone_build_fail(b, t->line, "%s takes %d arguments", t->name, calls[k].args);
        v.kind = calls[k].kind;
        if (v.kind == HONE_VECTOR_DIMS) {
            v.operand = t->arg[0]->kind == HONE_T_NAME ? hone_build_operand(b, t->arg[0]->name) : -1;
            if (v.operand < 0 || v.operand >= b->p->n_in)
                hone_build_fail(b, t->line, "dims() is of an input");
        } else {
            v.arg0 = hone_build_vector(b, t->arg[0]), v.arg1 = hone_build_vector(b, t->arg[1]);
            if (v.arg0 < 0 || v.arg1 < 0) hone_build_fail(b, t->line, "%s takes vectors", t->name);
            if (v.kind == HONE_VECTOR_RESHAPE) {
                double f = 0;
                if (!hone_build_const(b, hone_build_expr(b, t->arg[2], NULL, -1), &f))
                    hone_build_fail(b, t->line, "the last argument of reshape is a constant");
                v.flag = f != 0;
            }
        }
        return add_vector(b, v);
    }
    return -1;
}
int32_t hone_build_vector_at(hone_builder *b, int v, const hone_tree *at, const hone_env *e, int member) {
    int32_t x = hone_build_pure(b, at, e, member);
    const hone_vector *w = b->vector.at + v;
    int64_t k;
    bool fixed = const_int(b, x, &k);
    /* attributes are constants; while ranks are sought, numbers are needed */
    if ((w->kind == HONE_VECTOR_ATTR || !b->slots) && fixed) {
        hone_number n = hone_vector_at(b->vector.at, v, b->call, k);
        if (!n.real && !hone_dim_is_number(n.i)) hone_build_later(b);
        return n.real ? real(b, n.f) : hone_build_int(b, n.i);
    }
    return hone_build_x(b,
                        (hone_x){.kind = HONE_XS_VECTOR,
                                 .type = (uint8_t)(w->real ? HONE_WEAK_REAL : HONE_I64),
                                 .a = v,
                                 .b = hone_build_typed(b, x, HONE_I64),
                                 .c = -1},
                        true);
}

/* ---- dims ---------------------------------------------------------------------------------------------- */
static bool names_dim(const hone_tree *t, const char *name, bool group) {
    if (!t) return false;
    if (t->kind == HONE_T_NAME) return t->group == group && !strcmp(t->name, name);
    for (int k = 0; k < t->n_arg; k++)
        if (names_dim(t->arg[k], name, group)) return true;
    return false;
}
/* Solves `t = value` for the dim; t names it exactly once, in products and sums. */
static int32_t invert(hone_builder *b, const hone_tree *t, int32_t value, const char *name, bool group,
                      int member) {
    if (t->kind == HONE_T_NAME) return value;
    int n = t->n_arg, at = -1;
    for (int k = 0; k < n; k++)
        if (names_dim(t->arg[k], name, group)) at = k;
    if (t->kind == HONE_T_TUPLE) {
        for (int k = 0; k < n; k++)
            if (k != at)
                value = hone_build_x(
                    b,
                    (hone_x){.kind = HONE_XS_EXACT,
                             .type = HONE_I64,
                             .a = value,
                             .b = hone_build_typed(b, hone_build_pure(b, t->arg[k], NULL, member), HONE_I64),
                             .c = -1},
                    true);
        return invert(b, t->arg[at], value, name, group, member);
    }
    if (t->kind != HONE_T_BINARY || n != 2) return -1;
    int32_t other = hone_build_typed(b, hone_build_pure(b, t->arg[1 - at], NULL, member), HONE_I64);
    if (*t->name == '*')
        value = hone_build_x(
            b, (hone_x){.kind = HONE_XS_EXACT, .type = HONE_I64, .a = value, .b = other, .c = -1}, true);
    else if (*t->name == '+') value = hone_build_fn(b, HONE_FN_sub, value, other, -1);
    else if (*t->name == '-')
        value = at == 0 ? hone_build_fn(b, HONE_FN_add, value, other, -1)
                        : hone_build_fn(b, HONE_FN_sub, other, value, -1);
    else return -1;
    return invert(b, t->arg[at], value, name, group, member);
}
/* While ranks are sought there are no slots yet: a plain dim before or after all groups can be read all the
   same. */
static int32_t peek(hone_builder *b, const char *name) {
    for (int k = 0; k < b->p->n_in; k++) {
        const hone_operand *o = b->p->operand + k;
        const hone_arg *a = b->call->arg + k;
        if (!a->present || a->rank < 0) continue;
        for (int e = 0; e < o->n_entry; e++) {
            const hone_tree *t = o->entry[e].expr;
            if (!t || t->kind != HONE_T_NAME || t->group || strcmp(t->name, name) || o->entry[e].broadcast)
                continue;
            int before = 0, after = 0;
            for (int f = 0; f < o->n_entry; f++) {
                const hone_tree *u = o->entry[f].expr;
                bool group = u && u->kind == HONE_T_NAME && u->group;
                if (group && hone_build_rank(b, u->name) < 0) {
                    if (f < e) before = -99;
                    else after = -99;
                }
                int m = group ? hone_build_rank(b, u->name) : 1;
                if (f < e) before += m;
                if (f > e) after += m;
            }
            int axis = before >= 0 ? before : after >= 0 ? a->rank - 1 - after : -1;
            if (axis < 0 || axis >= a->rank) continue;
            if (!hone_dim_is_number(a->dim[axis])) hone_build_later(b);
            return hone_build_int(b, a->dim[axis]);
        }
    }
    return -1;
}
static int slot_number(hone_builder *b, int operand, int entry, int member) {
    const hone_operand *o = b->p->operand + operand;
    int at = 0;
    for (int e = 0; e < entry; e++) {
        const hone_entry *n = o->entry + e;
        if (n->kind == HONE_DIM_ONES) { /* inputs have plain ones only */
            at++;
            continue;
        }
        at +=
            n->expr && n->expr->kind == HONE_T_NAME && n->expr->group ? hone_build_rank(b, n->expr->name) : 1;
    }
    at += member > 0 ? member : 0;
    const hone_entry *n = o->entry + entry;
    const bool group = n->expr && n->expr->kind == HONE_T_NAME && n->expr->group;
    if (at >= b->slots[operand].n || (group && member >= hone_build_rank(b, n->expr->name)))
        hone_build_fail(b, 0, "'%s' has no dim %d of %s", o->name, at, b->p->name);
    return at;
}
static int32_t slot_x(hone_builder *b, int operand, int slot) {
    return hone_build_x(b, (hone_x){.kind = HONE_XS_SLOT, .type = HONE_I64, .a = operand, .b = slot, .c = -1},
                        true);
}
static int32_t find_dim(hone_builder *b, const char *name, int member, int line) {
    bool group = member >= 0;
    const hone_line *l = hone_build_short(b, name, group);
    if (l) {
        int v = hone_build_vector(b, l->expr); /* Y.. = reshape(…) */
        if (v >= 0 && group)
            return hone_build_x(b,
                                (hone_x){.kind = HONE_XS_VECTOR,
                                         .type = HONE_I64,
                                         .a = v,
                                         .b = hone_build_typed(b, hone_build_int(b, member), HONE_I64),
                                         .c = -1},
                                true);
        return hone_build_pure(b, l->expr, NULL, member);
    }
    if (!b->slots) {
        int32_t x = group ? -1 : peek(b, name);
        if (x < 0) hone_build_later(b);
        return x;
    }
    bool seen = false, absent_only = true;
    for (int pass = 0; pass < 2; pass++) /* a dim that stands alone; then one inside an expression */
        for (int k = 0; k < b->p->n_in; k++)
            for (int e = 0; e < b->p->operand[k].n_entry; e++) {
                const hone_entry *n = b->p->operand[k].entry + e;
                if (n->kind != HONE_DIM_PLAIN || !names_dim(n->expr, name, group)) continue;
                seen = true;
                if (!b->call->arg[k].present) continue;
                absent_only = false;
                if (n->broadcast || (n->expr->kind == HONE_T_NAME) != (pass == 0)) continue;
                int slot = slot_number(b, k, e, member);
                int32_t x = invert(b, n->expr, slot_x(b, k, slot), name, group, member);
                if (x >= 0) return x;
            }
    int room = 0, n_pair = 0;
    for (int k = 0; k < b->p->n_in; k++) room += b->p->operand[k].n_entry;
    /* in the arena: what follows may jump out of here */
    int32_t *pairs = HONE_NEW_N(b->arena, int32_t, 2 * room + 1);
    if (!pairs) hone_build_memory(b);
    bool inside = false;
    for (int k = 0; k < b->p->n_in; k++)
        for (int e = 0; e < b->p->operand[k].n_entry; e++) {
            const hone_entry *n = b->p->operand[k].entry + e;
            if (n->kind != HONE_DIM_PLAIN || !n->broadcast || !names_dim(n->expr, name, group) ||
                !b->call->arg[k].present)
                continue;
            if (n->expr->kind != HONE_T_NAME) {
                inside = true;
                continue;
            }
            int slot = slot_number(b, k, e, member);
            if (b->slots[k].slot[slot].axis < 0) continue;
            pairs[n_pair++] = k, pairs[n_pair++] = slot;
        }
    if (n_pair || (!absent_only && !inside)) {
        int32_t list = n_pair ? hone_build_push(b, pairs, n_pair) : 0, n = n_pair / 2;
        return hone_build_x(b, (hone_x){.kind = HONE_XS_WIDEST, .type = HONE_I64, .a = list, .b = n, .c = -1},
                            true);
    }
    if (inside) /* ~(G, M): the size of a broadcast tuple, where nothing else gives it */
        for (int k = 0; k < b->p->n_in; k++)
            for (int e = 0; e < b->p->operand[k].n_entry; e++) {
                const hone_entry *n = b->p->operand[k].entry + e;
                if (n->kind != HONE_DIM_PLAIN || !n->broadcast || !names_dim(n->expr, name, group) ||
                    !b->call->arg[k].present)
                    continue;
                int32_t x =
                    invert(b, n->expr, slot_x(b, k, slot_number(b, k, e, member)), name, group, member);
                if (x >= 0) return x;
            }
    if (seen && absent_only) return hone_build_int(b, 0);
    hone_build_fail(b, line, "dim '%s%s' is not given by the inputs of %s and not defined", name,
                    group ? ".." : "", b->p->name);
}
int32_t hone_build_dim(hone_builder *b, const char *name, int member, int line) {
    for (int k = 0; k < b->dims.n; k++)
        if (b->dims.at[k].member == member && !strcmp(b->dims.at[k].name, name)) {
            if (b->dims.at[k].busy) hone_build_fail(b, line, "dim '%s' is defined by itself", name);
            return b->dims.at[k].x;
        }
    hone_dim_memo m = {name, member, -1, true};
    int at = b->dims.n;
    bool keep = b->slots != NULL; /* what was found while ranks are sought is read again later */
    if (keep && !hone_push(&b->dims, m)) hone_build_memory(b);
    int32_t x = find_dim(b, name, member, line);
    if (b->slots) {
        double v;
        x = hone_build_typed(b, x, HONE_I64);
        if (!hone_build_const(b, x, &v)) { /* a parameter of its own, with its name */
            int32_t p = hone_build_param(b, x, name);
            x = hone_build_x(b, (hone_x){.kind = HONE_X_PARAM, .type = HONE_I64, .a = p}, true);
        }
    }
    if (keep) b->dims.at[at].x = x, b->dims.at[at].busy = false;
    return x;
}
int32_t hone_build_pure(hone_builder *b, const hone_tree *t, const hone_env *e, int member) {
    int32_t x = hone_build_expr(b, t, e, member);
    if (!b->pure.at[x])
        hone_build_fail(b, t->line, "this must follow from dims, attributes and contents alone");
    return x;
}
