/* SPDX-License-Identifier: Apache-2.0
   print_walk: names, use counts and expressions as text (print_walk.h). */
#include "loops/print_walk.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const hone_print_types[HONE_CTYPES] = {"float", "double", "int32_t", "int64_t", "uint64_t"};

hone_print_element hone_print_element_of(hone_dtype t) {
    switch (t) {
    case HONE_DTYPE_F32: return (hone_print_element){"float", true, HONE_F32};
    case HONE_DTYPE_F64: return (hone_print_element){"double", true, HONE_F64};
    case HONE_DTYPE_I8: return (hone_print_element){"int8_t", true, -1};
    case HONE_DTYPE_I16: return (hone_print_element){"int16_t", true, -1};
    case HONE_DTYPE_I32: return (hone_print_element){"int32_t", true, HONE_I32};
    case HONE_DTYPE_I64: return (hone_print_element){"int64_t", true, HONE_I64};
    case HONE_DTYPE_U64: return (hone_print_element){"uint64_t", true, HONE_U64};
    case HONE_DTYPE_U8: return (hone_print_element){"uint8_t", true, -1};
    case HONE_DTYPE_U16: return (hone_print_element){"uint16_t", true, -1};
    /* would meet a negative literal as unsigned */
    case HONE_DTYPE_U32: return (hone_print_element){"uint32_t", false, -1};
    default:
        return (hone_print_element){hone_dtypes[t].bytes == 1   ? "uint8_t"
                                    : hone_dtypes[t].bytes == 2 ? "uint16_t"
                                                                : "uint64_t",
                                    false, -1};
    }
}

bool hone_printer_open(hone_printer *p, const hone_print_words *words, const hone_instance *in,
                       hone_text *out) {
    const size_t x = (size_t)in->n_x + 1, t = (size_t)in->n_tensor + 1;
    *p = (hone_printer){.words = words, .in = in, .out = out, .arena = hone_arena_create(), .depth = 1};
    if (!p->arena) return false;
    p->param = HONE_NEW_N(p->arena, const char *, in->n_param + 1),
    p->tensor = HONE_NEW_N(p->arena, const char *, t);
    p->index = HONE_NEW_N(p->arena, const char *, in->n_index + 1),
    p->held = HONE_NEW_N(p->arena, const char *, t);
    p->taken = HONE_NEW_N(p->arena, const char *,
                          in->n_param + in->n_tensor * (HONE_MAX_RANK + 2) + in->n_index + 16);
    p->loaded = HONE_NEW_N(p->arena, uint8_t, t), p->stored = HONE_NEW_N(p->arena, uint8_t, t);
    p->flat = HONE_NEW_N(p->arena, uint8_t, t), p->strided = HONE_NEW_N(p->arena, uint8_t, t);
    p->uses = HONE_NEW_N(p->arena, int32_t, x), p->always = HONE_NEW_N(p->arena, uint8_t, x),
    p->total = HONE_NEW_N(p->arena, uint8_t, x), p->named = HONE_NEW_N(p->arena, uint8_t, x);
    p->param_used = HONE_NEW_N(p->arena, uint8_t, in->n_param + 1),
    p->size_used = HONE_NEW_N(p->arena, uint8_t, t);
    p->given = HONE_NEW_N(p->arena, uint8_t, x), p->said = HONE_NEW_N(p->arena, const char *, x);
    p->stride_used = HONE_NEW_N(p->arena, uint8_t, t * HONE_MAX_RANK);
    return p->param && p->tensor && p->index && p->held && p->taken && p->loaded && p->stored && p->flat &&
           p->strided && p->uses && p->always && p->total && p->named && p->param_used && p->size_used &&
           p->stride_used && p->given && p->said;
}

/* ---- names --------------------------------------------------------------------------------------------- */
static bool reserved(const char *s) {
    static const char *const words[] = {
        "auto",     "break",  "case",   "char",     "const",    "continue", "default",  "do",
        "double",   "else",   "enum",   "extern",   "float",    "for",      "goto",     "if",
        "inline",   "int",    "long",   "register", "restrict", "return",   "short",    "signed",
        "sizeof",   "static", "struct", "switch",   "typedef",  "union",    "unsigned", "void",
        "volatile", "while",  "acc",    "bad",      "begun",    "pick",     "to",       "value"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (!strcmp(s, words[k])) return true;
    return (*s == 'e' || *s == 'v') && isdigit((unsigned char)s[1]);
}
static bool is_taken(const hone_printer *p, const char *s) {
    if (reserved(s)) return true;
    for (const char *w = p->words->reserved; w && (w = strstr(w, s)); w++)
        if (w > p->words->reserved && w[-1] == ' ' && w[strlen(s)] == ' ') return true;
    for (int k = 0; k < p->n_taken; k++)
        if (!strcmp(p->taken[k], s)) return true;
    return false;
}
/* `base`, or base_1, base_2 …: a C name that nothing else has. */
const char *hone_print_unique(hone_printer *p, const char *base) {
    char *s = hone_arena_text(p->arena, "%s", base);
    for (char *c = s; c && *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_') *c = '_';
    const char *name = s;
    for (int k = 1; name && is_taken(p, name); k++) name = hone_arena_text(p->arena, "%s_%d", s, k);
    if (!name) {
        p->out->failed = true;
        return "";
    }
    p->taken[p->n_taken++] = name;
    return name;
}
const char *hone_print_param(hone_printer *p, int k) {
    char made_up[16];
    snprintf(made_up, sizeof made_up, "p%d", k);
    if (!p->param[k])
        p->param[k] = hone_print_unique(p, *p->in->param_name[k] ? p->in->param_name[k] : made_up);
    p->param_used[k] = p->in->param_real[k] ? 2 : 1;
    return p->param[k];
}
void hone_print_name_tensor(hone_printer *p, int t) { /* with its strides, x_0 …, and its size, x_size */
    p->tensor[t] = hone_print_unique(p, p->in->tensor[t].name);
    for (int k = 0; k <= p->in->tensor[t].rank; k++) {
        const char *s = k < p->in->tensor[t].rank ? hone_arena_text(p->arena, "%s_%d", p->tensor[t], k)
                                                  : hone_arena_text(p->arena, "%s_size", p->tensor[t]);
        if (s) p->taken[p->n_taken++] = s;
        else p->out->failed = true;
    }
}

/* ---- what is used -------------------------------------------------------------------------------------- */
/* A subscript is an expression, or ~i: index i itself, where a stage stores at its own indices. */
/* an index over this very dim */
bool hone_print_safe(const hone_printer *p, const hone_tensor *w, int k, int32_t sub) {
    if (sub >= 0 && p->in->x[sub].kind != HONE_X_INDEX) return false;
    return p->in->index[sub < 0 ? ~sub : p->in->x[sub].a].extent == w->dim[k];
}
static bool is_checked(const hone_printer *p, const hone_x *e) { /* a load that may be outside */
    const hone_tensor *w = p->in->tensor + e->a;
    if (p->knows) {
        bool inside = true;
        for (int k = 0; k < hone_know_subs(p->knows, e) && inside; k++)
            inside = hone_know_inside(hone_know_of(p->knows, hone_know_sub(p->knows, e, k)),
                                      hone_know_dim(p->knows, e, e->a, k));
        if (inside) return false;
    }
    if (e->flat) return true;
    for (int k = 0; k < w->rank; k++)
        if (!hone_print_safe(p, w, k, p->in->list[e->b + k])) return true;
    return false;
}
static int children(const hone_printer *p, const hone_x *e,
                    int32_t *out) { /* HONE_MAX_RANK + 3 at most; those evaluated only sometimes come last */
    int n = 0;
    if (p->given[e - p->in->x] || p->said[e - p->in->x] || (e->kind == HONE_X_LOAD && p->held[e->a]))
        return 0;
    if (e->kind == HONE_X_LOAD) {
        for (int k = 0; k < (e->flat ? 1 : p->in->tensor[e->a].rank); k++) out[n++] = p->in->list[e->b + k];
        if (e->c >= 0 && is_checked(p, e)) out[n++] = e->c;
    } else if (e->kind == HONE_X_FN || e->kind == HONE_X_SELECT || e->kind == HONE_X_CAST ||
               e->kind == HONE_X_ROUND) {
        out[n++] = e->a;
        if (e->b >= 0) out[n++] = e->b;
        if (e->c >= 0) out[n++] = e->c;
    }
    return n;
}
/* what the whole function uses: visited once, `uses` as the mark */
void hone_print_note(hone_printer *p, int32_t x) {
    const hone_x *e = p->in->x + x;
    if (p->uses[x]++) return;
    if (e->kind == HONE_X_PARAM) hone_print_param(p, e->a);
    if (e->kind == HONE_X_LOAD && !p->held[e->a]) {
        const hone_tensor *w = p->in->tensor + e->a;
        p->loaded[e->a] = 1;
        if (e->flat) p->flat[e->a] = 1;
        else p->strided[e->a] = 1;
        for (int k = 0; k < w->rank; k++)
            if (e->flat || !hone_print_safe(p, w, k, p->in->list[e->b + k])) hone_print_param(p, w->dim[k]);
        if (e->c < 0 && is_checked(p, e)) p->can_fail = true;
    }
    int32_t kid[HONE_MAX_RANK + 3];
    int n = children(p, e, kid);
    for (int k = 0; k < n; k++) hone_print_note(p, kid[k]);
}
static void count(hone_printer *p, int32_t x, bool always) {
    const hone_x *e = p->in->x + x;
    bool known = p->uses[x] && (!always || p->always[x]);
    if (!p->uses[x])
        p->total[x] =
            p->given[x] || !(e->kind == HONE_X_LOAD && !p->held[e->a] && e->c < 0 && is_checked(p, e));
    if (always) p->always[x] = 1;
    int32_t kid[HONE_MAX_RANK + 3];
    int n = children(p, e, kid);
    bool fresh = !p->uses[x];
    p->uses[x]++;
    if (known) return;
    for (int k = 0; k < n; k++) {
        bool sometimes = (e->kind == HONE_X_SELECT && k > 0) ||
                         (e->kind == HONE_X_LOAD && k == n - 1 && e->c >= 0 && is_checked(p, e));
        int32_t before = p->uses[kid[k]];
        count(p, kid[k], always && !sometimes);
        /* seen before, as something conditional: the edge counts once */
        if (!fresh) p->uses[kid[k]] = before;
        p->total[x] &= p->total[kid[k]];
    }
}

/* ---- expressions --------------------------------------------------------------------------------------- */
static const struct {
    int fn;
    const char *op;
    int at;
} infix[] = {{HONE_FN_add, "+", HONE_AT_ADD},     {HONE_FN_sub, "-", HONE_AT_ADD},
             {HONE_FN_mul, "*", HONE_AT_MUL},     {HONE_FN_div, "/", HONE_AT_MUL},
             {HONE_FN_lt, "<", HONE_AT_COMPARE},  {HONE_FN_le, "<=", HONE_AT_COMPARE},
             {HONE_FN_eq, "==", HONE_AT_COMPARE}, {HONE_FN_ne, "!=", HONE_AT_COMPARE}};
/* Floats are written as in a book. Integers wrap, so their arithmetic is a function; so is a comparison that
   a compiler would call pointless. */
static int operator_of(const hone_printer *p, const hone_x *e) {
    if (e->kind != HONE_X_FN) return -1;
    const hone_x *a = p->in->x + e->a;
    for (int k = 0; k < (int)(sizeof infix / sizeof *infix); k++) {
        if (infix[k].fn != e->fn) continue;
        if (a->type == HONE_F32 || a->type == HONE_F64)
            return infix[k].at == HONE_AT_COMPARE && e->a == e->b ? -1 : k;
        return infix[k].at == HONE_AT_COMPARE && e->a != e->b && a->kind != HONE_X_CONST &&
                       p->in->x[e->b].kind != HONE_X_CONST
                   ? k
                   : -1;
    }
    return -1;
}
static int strength(const hone_printer *p, int32_t x) {
    const hone_x *e = p->in->x + x;
    if (p->named[x]) return HONE_AT_ATOM;
    if (e->kind == HONE_X_SELECT) return HONE_AT_SELECT;
    if (e->kind == HONE_X_CAST && p->in->x[e->a].type == e->type) return strength(p, e->a);
    int k = operator_of(p, e);
    return k >= 0 ? infix[k].at : HONE_AT_ATOM;
}
void hone_print_child(hone_printer *p, int32_t x, int at_least) {
    bool parens = strength(p, x) < at_least;
    if (parens) hone_text_put(p->out, "(");
    hone_print_expr(p, x);
    if (parens) hone_text_put(p->out, ")");
}
static void constant(hone_printer *p, const hone_x *e) {
    char s[64];
    double f = e->type == HONE_F32 ? (double)e->k.f32 : e->k.f64;
    switch (e->type) {
    case HONE_F32:
    case HONE_F64:
        if (isnan(f)) {
            if (e->type == HONE_F32) {
                uint32_t u;
                memcpy(&u, &e->k.f32, 4);
                hone_text_put(p->out, "hone_from_bits_f32(0x%" PRIx32 "u)", u);
            } else hone_text_put(p->out, "hone_from_bits_f64(0x%" PRIx64 "u)", e->k.u64);
            return;
        }
        if (isinf(f)) {
            hone_text_put(p->out, "%s(%s)INFINITY", f < 0 ? "-" : "", hone_print_types[e->type]);
            return;
        }
        snprintf(s, sizeof s, "%.*g", e->type == HONE_F32 ? 9 : 17, f);
        hone_text_put(p->out, "%s%s%s", s, strpbrk(s, ".e") ? "" : ".0", e->type == HONE_F32 ? "f" : "");
        return;
    case HONE_U64: hone_text_put(p->out, "%" PRIu64 "u", e->k.u64); return;
    default: break;
    }
    int64_t i = e->type == HONE_I32 ? e->k.i32 : e->k.i64;
    if (i == INT64_MIN) hone_text_put(p->out, "INT64_MIN");
    else if (i == INT32_MIN) hone_text_put(p->out, "INT32_MIN");
    else hone_text_put(p->out, "%" PRId64 "%s", i, i > INT32_MAX || i < INT32_MIN ? p->words->wide : "");
}
bool hone_print_simple(const hone_printer *p, int32_t x) {
    if (x < 0) return true;
    int k = p->in->x[x].kind;
    if (p->said[x]) return true;
    if (k == HONE_X_LOAD && p->held[p->in->x[x].a]) return true;
    return p->named[x] || k == HONE_X_CONST || k == HONE_X_INDEX || k == HONE_X_PARAM;
}
static void put_place(hone_printer *p, const hone_print_places *s, int k) {
    if (s->temp[k] >= 0) hone_text_put(p->out, "v%d", s->temp[k]);
    else if (s->sub[k] < 0) hone_text_put(p->out, "%s", p->index[~s->sub[k]]);
    else hone_print_child(p, s->sub[k], HONE_AT_ATOM); /* a stride or a comparison follows */
}
/* `a && b …`: the subscripts are inside. */
void hone_print_inside(hone_printer *p, const hone_tensor *w, int t, bool flat, const hone_print_places *s) {
    const char *sep = "";
    for (int k = 0; k < s->n; k++) {
        if (!flat && hone_print_safe(p, w, k, s->sub[k])) continue;
        hone_text_put(p->out, "%s(uint64_t)", sep);
        put_place(p, s, k);
        if (flat) p->size_used[t] = 1, hone_text_put(p->out, " < (uint64_t)%s_size", p->tensor[t]);
        else hone_text_put(p->out, " < (uint64_t)%s", hone_print_param(p, w->dim[k]));
        sep = " && ";
    }
}
void hone_print_at(hone_printer *p, int t, bool flat, const hone_print_places *s) {
    if (!s->n) hone_text_put(p->out, "0");
    for (int k = 0; k < s->n; k++) {
        hone_text_put(p->out, "%s", k ? " + " : "");
        put_place(p, s, k);
        if (!flat)
            p->stride_used[t * HONE_MAX_RANK + k] = 1, hone_text_put(p->out, " * %s_%d", p->tensor[t], k);
    }
}
static void put_load(hone_printer *p, int t, bool flat, const hone_print_places *s) {
    const hone_tensor *w = p->in->tensor + t;
    if (hone_print_element_of(w->dtype).plain) {
        hone_text_put(p->out, "%s[", p->tensor[t]);
        hone_print_at(p, t, flat, s);
        hone_text_put(p->out, "]");
    } else if (p->words->by_value) {
        hone_text_put(p->out, "hone_get_%s(%s[", hone_dtypes[w->dtype].name, p->tensor[t]);
        hone_print_at(p, t, flat, s);
        hone_text_put(p->out, "])");
    } else {
        hone_text_put(p->out, "hone_load_%s(%s + ", hone_dtypes[w->dtype].name, p->tensor[t]);
        hone_print_at(p, t, flat, s);
        hone_text_put(p->out, ")");
    }
}
static hone_print_places subscripts(hone_printer *p, const int32_t *sub, int n, bool assign) {
    hone_print_places s = {.n = n};
    for (int k = 0; k < n; k++) {
        s.sub[k] = sub[k], s.temp[k] = -1;
        if (!assign || hone_print_simple(p, sub[k])) continue;
        int v = p->n_temp++;
        hone_text_put(p->out, "v%d = ", v);
        hone_print_child(p, sub[k], HONE_AT_COMPARE);
        hone_text_put(p->out, ", ");
        s.temp[k] = v;
    }
    return s;
}
static void load(hone_printer *p, const hone_x *e) {
    const hone_tensor *w = p->in->tensor + e->a;
    if (p->held[e->a]) {
        hone_text_put(p->out, "%s", p->held[e->a]);
        return;
    }
    bool check = is_checked(p, e);
    if (check) hone_text_put(p->out, "(");
    hone_print_places s = subscripts(p, p->in->list + e->b, e->flat ? 1 : w->rank, check);
    if (check) {
        hone_print_inside(p, w, e->a, e->flat, &s);
        hone_text_put(p->out, " ? ");
    }
    put_load(p, e->a, e->flat, &s);
    if (!check) return;
    hone_text_put(p->out, " : ");
    if (e->c >= 0) hone_print_expr(p, e->c);
    else hone_text_put(p->out, "%shone_outside(&bad, %d)", e->type == HONE_U64 ? "(uint64_t)" : "", 1 + e->a);
    hone_text_put(p->out, ")");
}
void hone_print_expr(hone_printer *p, int32_t x) {
    const hone_x *e = p->in->x + x;
    if (e->type == HONE_F64) p->f64 = true;
    if (p->named[x]) {
        hone_text_put(p->out, "e%d", (int)x);
        return;
    }
    if (p->said[x]) {
        hone_text_put(p->out, "%s", p->said[x]);
        return;
    }
    switch (e->kind) {
    case HONE_X_CONST: constant(p, e); return;
    case HONE_X_INDEX: hone_text_put(p->out, "%s", p->index[e->a]); return;
    case HONE_X_PARAM: hone_text_put(p->out, "%s", hone_print_param(p, e->a)); return;
    case HONE_X_LOAD: load(p, e); return;
    case HONE_X_SELECT:
        hone_print_child(p, e->a, HONE_AT_COMPARE);
        hone_text_put(p->out, " ? ");
        hone_print_child(p, e->b, HONE_AT_COMPARE);
        hone_text_put(p->out, " : ");
        hone_print_expr(p, e->c);
        return;
    case HONE_X_CAST:
        if (p->in->x[e->a].type == e->type) {
            hone_print_expr(p, e->a);
            return;
        }
        if (p->words->by_value && e->type == HONE_F32 && p->in->x[e->a].kind == HONE_X_PARAM &&
            p->in->param_real[p->in->x[e->a].a]) {
            const uint8_t used = p->param_used[p->in->x[e->a].a];
            /* may come as a float already */
            hone_text_put(p->out, "(float)%s", hone_print_param(p, p->in->x[e->a].a));
            p->param_used[p->in->x[e->a].a] = used > 1 ? used : 1;
            return;
        }
        hone_text_put(p->out, "hone_cast_%s_%s(", hone_ctype_names[p->in->x[e->a].type],
                      hone_ctype_names[e->type]);
        hone_print_expr(p, e->a);
        hone_text_put(p->out, ")");
        return;
    case HONE_X_ROUND:
        hone_text_put(p->out, "hone_as_%s(", hone_dtypes[e->fn].name);
        hone_print_expr(p, e->a);
        hone_text_put(p->out, ")");
        return;
    default: break;
    }
    int op = operator_of(p, e);
    if (op >= 0) {
        hone_print_child(p, e->a, infix[op].at + (infix[op].at == HONE_AT_COMPARE));
        hone_text_put(p->out, " %s ", infix[op].op);
        hone_print_child(p, e->b, infix[op].at + 1);
        return;
    }
    hone_text_put(p->out, "hone_%s_%s(", hone_fns[e->fn].name, hone_ctype_names[p->in->x[e->a].type]);
    int32_t arg[3] = {e->a, e->b, e->c};
    for (int k = 0; k < hone_fns[e->fn].arity; k++) {
        if (k) hone_text_put(p->out, ", ");
        hone_print_expr(p, arg[k]);
    }
    hone_text_put(p->out, ")");
}

/* ---- blocks -------------------------------------------------------------------------------------------- */
void hone_print_line(hone_printer *p) { hone_text_put(p->out, "%*s", 4 * p->depth, ""); }
static void forget(hone_printer *p) {
    size_t n = (size_t)p->in->n_x;
    memset(p->uses, 0, n * sizeof *p->uses), memset(p->always, 0, n), memset(p->total, 0, n),
        memcpy(p->named, p->given, n);
}
hone_print_block hone_print_open(hone_printer *p, const int32_t *root, int n) {
    hone_print_block b = {.out = p->out, .n_temp = p->n_temp};
    p->n_temp = 0;
    forget(p);
    for (int k = 0; k < n; k++)
        if (root[k] >= 0) count(p, root[k], true);
    return b;
}
void hone_print_name_shared(hone_printer *p) {
    for (int x = 0; x < p->in->n_x; x++) {
        const hone_x *e = p->in->x + x;
        if (p->uses[x] < 2 || hone_print_simple(p, x) || !(p->always[x] || p->total[x])) continue;
        hone_print_line(p);
        hone_text_put(p->out, "const %s e%d = ", hone_print_types[e->type], x);
        hone_print_expr(p, x);
        hone_text_put(p->out, ";\n");
        p->named[x] = 1;
    }
}
void hone_print_close(hone_printer *p, hone_print_block *b) {
    p->out = b->out;
    if (p->n_temp) {
        hone_print_line(p);
        for (int k = 0; k < p->n_temp; k++) hone_text_put(p->out, "%sv%d", k ? ", " : "int64_t ", k);
        hone_text_put(p->out, ";\n");
    }
    if (b->text.failed) p->out->failed = true;
    if (b->text.n) hone_text_put(p->out, "%s", b->text.text);
    hone_text_free(&b->text);
    p->n_temp = b->n_temp;
}
bool hone_print_fails(const hone_printer *p, int32_t x) { return x >= 0 && !p->total[x]; }
void hone_print_limit(hone_printer *p, hone_ctype c, bool highest) {
    static const char *const low[HONE_CTYPES] = {"-(float)INFINITY", "-(double)INFINITY", "INT32_MIN",
                                                 "INT64_MIN", "0"};
    static const char *const high[HONE_CTYPES] = {"(float)INFINITY", "(double)INFINITY", "INT32_MAX",
                                                  "INT64_MAX", "UINT64_MAX"};
    hone_text_put(p->out, "%s", highest ? high[c] : low[c]);
}
void hone_print_name_indices(hone_printer *p, const hone_stage *s) {
    const int32_t *ids = p->in->list + s->index0;
    int n = s->n_index + s->n_reduce;
    for (int k = 0; k < n; k++) { /* i, or i_0, i_1 where a group has several */
        if (s->over >= 0 && ids[k] == s->over_index) continue;
        int same = 0, before = 0;
        for (int q = 0; q < n; q++) {
            if (strcmp(p->in->index[ids[q]].name, p->in->index[ids[k]].name)) continue;
            same++, before += q < k;
        }
        const char *base = p->in->index[ids[k]].name;
        if (same > 1) base = hone_arena_text(p->arena, "%s_%d", base, before);
        p->index[ids[k]] = hone_print_unique(p, base ? base : "i");
    }
}
void hone_print_arg(hone_printer *p, const hone_stage *s) {
    const hone_ctype c = (hone_ctype)p->in->x[s->value].type;
    const char *cn = hone_ctype_names[c],
               *cmp = s->reduce == HONE_REDUCE_ARGMAX ? "acc < value" : "value < acc";
    hone_print_line(p);
    if (c == HONE_F32 || c == HONE_F64)
        hone_text_put(p->out, "if (!begun || (!hone_isnan_%s(acc) && (hone_isnan_%s(value) || %s))) {\n", cn,
                      cn, cmp);
    else hone_text_put(p->out, "if (!begun || %s) {\n", cmp);
    p->depth++;
    hone_print_block inner = hone_print_open(p, &s->pick, 1);
    p->out = &inner.text;
    hone_print_name_shared(p);
    hone_print_line(p);
    hone_text_put(p->out, "acc = value, begun = 1, pick = ");
    hone_print_child(p, s->pick, HONE_AT_SELECT);
    hone_text_put(p->out, ";\n");
    hone_print_close(p, &inner);
    p->depth--;
    hone_print_line(p);
    hone_text_put(p->out, "}\n");
}
