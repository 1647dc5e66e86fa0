/* SPDX-License-Identifier: Apache-2.0
   print: an instance's stages as text, for people, and how much work they are. The text reads like a row
   whose groups are expanded; it does not parse back, because extents are parameters. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "loops/instance.h"

/* ---- text ---------------------------------------------------------------------------------------------- */
enum { TO_SELECT = 1, TO_OR, TO_AND, TO_COMPARE, TO_BITS, TO_ADD, TO_MUL, TO_ATOM };
static const struct {
    int fn;
    const char *op;
    int at;
} infix[] = {{HONE_FN_add, "+", TO_ADD},     {HONE_FN_sub, "-", TO_ADD},     {HONE_FN_mul, "*", TO_MUL},
             {HONE_FN_div, "/", TO_MUL},     {HONE_FN_mod, "%", TO_MUL},     {HONE_FN_lt, "<", TO_COMPARE},
             {HONE_FN_le, "<=", TO_COMPARE}, {HONE_FN_eq, "==", TO_COMPARE}, {HONE_FN_ne, "!=", TO_COMPARE},
             {HONE_FN_and, "&&", TO_AND},    {HONE_FN_or, "||", TO_OR},      {HONE_FN_band, "&", TO_BITS},
             {HONE_FN_bor, "|", TO_BITS},    {HONE_FN_bxor, "^", TO_BITS},   {HONE_FN_shl, "<<", TO_BITS},
             {HONE_FN_shr, ">>", TO_BITS}};
static int operator_of(const hone_x *e) {
    for (int k = 0; e->kind == HONE_X_FN && k < (int)(sizeof infix / sizeof *infix); k++)
        if (infix[k].fn == e->fn) return k;
    return -1;
}
/* An index or a parameter that shares its name with others carries its number. */
static void put_index(const hone_instance *in, int32_t i, hone_text *out) {
    int same = 0;
    for (int k = 0; k < in->n_index; k++) same += !strcmp(in->index[k].name, in->index[i].name);
    hone_text_put(out, "%s", in->index[i].name);
    if (same > 1) hone_text_put(out, "%d", (int)i);
}
static void put_param(const hone_instance *in, int32_t p, hone_text *out) {
    int same = 0;
    for (int k = 0; k < in->n_param; k++) same += !strcmp(in->param_name[k], in->param_name[p]);
    hone_text_put(out, "%s", *in->param_name[p] ? in->param_name[p] : "$");
    if (same > 1 || !*in->param_name[p]) hone_text_put(out, "%d", (int)p);
}
static void put(const hone_instance *in, int32_t x, int at_least, hone_text *out);
static void put_list(const hone_instance *in, const int32_t *x, int n, hone_text *out) {
    for (int k = 0; k < n; k++) {
        if (k) hone_text_put(out, ", ");
        put(in, x[k], 0, out);
    }
}
static void put_const(const hone_x *e, hone_text *out) {
    switch (e->type) {
    case HONE_F32: hone_text_put(out, "%.9g", (double)e->k.f32); return;
    case HONE_F64: hone_text_put(out, "%.17g", e->k.f64); return;
    case HONE_I32: hone_text_put(out, "%" PRId32, e->k.i32); return;
    case HONE_I64: hone_text_put(out, "%" PRId64, e->k.i64); return;
    default: hone_text_put(out, "%" PRIu64, e->k.u64); return;
    }
}
static void put(const hone_instance *in, int32_t x, int at_least, hone_text *out) {
    const hone_x *e = in->x + x;
    int op = operator_of(e), at = op >= 0                               ? infix[op].at
                                  : e->kind == HONE_X_LOAD && e->c >= 0 ? TO_SELECT
                                                                        : TO_ATOM;
    if (at < at_least) hone_text_put(out, "(");
    switch (e->kind) {
    case HONE_X_CONST: put_const(e, out); break;
    case HONE_X_INDEX: put_index(in, e->a, out); break;
    case HONE_X_PARAM: put_param(in, e->a, out); break;
    case HONE_X_LOAD:
        hone_text_put(out, e->flat ? "flat(%s)[" : "%s[", in->tensor[e->a].name);
        put_list(in, in->list + e->b, e->flat ? 1 : in->tensor[e->a].rank, out);
        hone_text_put(out, "]");
        if (e->c >= 0) hone_text_put(out, " else "), put(in, e->c, TO_OR, out);
        break;
    case HONE_X_SELECT:
        hone_text_put(out, "select("), put_list(in, (int32_t[]){e->a, e->b, e->c}, 3, out),
            hone_text_put(out, ")");
        break;
    case HONE_X_CAST:
        hone_text_put(out, "%s(", hone_ctype_names[e->type]), put(in, e->a, 0, out), hone_text_put(out, ")");
        break;
    case HONE_X_ROUND:
        hone_text_put(out, "%s(", hone_dtypes[e->fn].name), put(in, e->a, 0, out), hone_text_put(out, ")");
        break;
    default:
        if (op >= 0) {
            put(in, e->a, at + (at == TO_COMPARE), out);
            hone_text_put(out, " %s ", infix[op].op);
            put(in, e->b, at + 1, out);
            break;
        }
        hone_text_put(out, "%s(", hone_fns[e->fn].name);
        put_list(in, (int32_t[]){e->a, e->b, e->c}, hone_fns[e->fn].arity, out);
        hone_text_put(out, ")");
    }
    if (at < at_least) hone_text_put(out, ")");
}
/* i : N, j : M */
static void put_indices(const hone_instance *in, const int32_t *ids, int n, hone_text *out) {
    for (int k = 0; k < n; k++) {
        if (k) hone_text_put(out, ", ");
        put_index(in, ids[k], out);
        hone_text_put(out, " : ");
        put_param(in, in->index[ids[k]].extent, out);
    }
}
static void put_stage(const hone_instance *in, const hone_stage *s, hone_text *out) {
    static const char *const hows[] = {"=", "add=", "mul=", "max=", "min="};
    static const char *const reduces[] = {"", "sum", "prod", "max", "min", "argmax", "argmin"};
    const int32_t *ids = in->list + s->index0;
    hone_text_put(out, "%s%s[", s->over >= 0 ? "  " : "", in->tensor[s->tensor].name);
    if (s->identity) put_indices(in, ids, s->n_index, out);
    else put_list(in, in->list + s->sub0, in->tensor[s->tensor].rank, out);
    hone_text_put(out, "] %s ", hows[s->how]);
    if (s->saturate) hone_text_put(out, "sat(");
    if (s->reduce) {
        hone_text_put(out, "%s(", reduces[s->reduce]);
        put_indices(in, ids + s->n_index, s->n_reduce, out);
        hone_text_put(out, ") ");
    }
    put(in, s->value, s->reduce ? TO_MUL : 0, out);
    if (s->pick >= 0) hone_text_put(out, " : "), put(in, s->pick, 0, out);
    hone_text_put(out, "%s%s", s->saturate ? ")" : "", s->skip ? " else skip" : "");
    if (!s->identity) hone_text_put(out, "  # "), put_indices(in, ids, s->n_index, out);
    hone_text_put(out, "\n");
}
void hone_instance_print(const hone_instance *in, hone_text *out) {
    for (int k = 0; k < in->n_stage; k++) {
        const hone_stage *s = in->stage + k;
        if (s->over >= 0 && (k == 0 || s[-1].over != s->over))
            hone_text_put(out, "over("), put_indices(in, &s->over_index, 1, out), hone_text_put(out, ")\n");
        put_stage(in, s, out);
    }
}

/* ---- counts -------------------------------------------------------------------------------------------- */
/* Functions that an element's value takes; what only finds a place (subscripts) is no arithmetic. `seen`: a
   value used twice is computed once. */
static double operations(const hone_instance *in, int32_t x, uint8_t *seen) {
    if (x < 0 || seen[x]) return 0;
    seen[x] = 1;
    const hone_x *e = in->x + x;
    switch (e->kind) {
    case HONE_X_LOAD: return operations(in, e->c, seen);
    case HONE_X_FN:
        return (e->fn == HONE_FN_fma ? 2 : 1) + operations(in, e->a, seen) + operations(in, e->b, seen) +
               operations(in, e->c, seen);
    case HONE_X_SELECT:
    case HONE_X_CAST:
    case HONE_X_ROUND:
        return operations(in, e->a, seen) + operations(in, e->b, seen) + operations(in, e->c, seen);
    default: return 0;
    }
}
static double number(hone_param p) { return hone_dim_is_number(p.i) ? (double)p.i : (double)NAN; }
/* NaN where an extent is not a number yet. A dim that is broadcast counts as the dim it is broadcast to. */
void hone_instance_counts(const hone_instance *in, const hone_param *p, double *flops, double *bytes) {
    uint8_t *seen = hone_alloc((size_t)in->n_x + 1);
    *flops = *bytes = 0;
    for (int k = 0; k < in->n_stage && seen; k++) {
        const hone_stage *s = in->stage + k;
        double times = 1, inner = 1;
        for (int q = 0; q < s->n_index + s->n_reduce; q++)
            *(q < s->n_index ? &times : &inner) *= number(p[in->index[in->list[s->index0 + q]].extent]);
        memset(seen, 0, (size_t)in->n_x);
        *flops += times * (inner * (operations(in, s->value, seen) + (s->reduce != HONE_REDUCE_NONE)) +
                           (s->how != HONE_STORE_SET));
    }
    if (!seen) *flops = (double)NAN;
    hone_free(seen);
    for (int t = 0; t < in->n_tensor; t++) {
        const hone_tensor *w = in->tensor + t;
        if (w->role == HONE_ROLE_TEMP) continue;
        double n = hone_dtypes[w->dtype].bytes;
        for (int k = 0; k < w->rank; k++) n *= number(p[w->dim[k]]);
        *bytes += n;
    }
}
