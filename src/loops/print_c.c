/* SPDX-License-Identifier: Apache-2.0
   print_c: an instance as one C11 function: plain nested loops, as a person would write them. fn.h and storage.h stand before it.

   It gives the interpreter's bits: float sums in double in the same order, arms not taken are not evaluated, every load and store that
   could be outside is checked. Loads whose subscripts are indices over that very dim need no check. What an expression uses twice is
   named once, e12, unless it might fail where it is not reached. Not scheduled, not fast: fast code is tile_*.c's and a schedule's. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "loops/instance.h"

static const char *const c_types[HONE_CTYPES] = {"float", "double", "int32_t", "int64_t", "uint64_t"};

/* How elements lie: the C type of a pointer; `plain`: a load is just x[i]; `same`: the compute type from which a store is just x[i] = v. */
typedef struct {
    const char *c;
    bool plain;
    int same;
} element;
static element element_of(hone_dtype t) {
    switch (t) {
    case HONE_DTYPE_F32: return (element){"float", true, HONE_F32};
    case HONE_DTYPE_F64: return (element){"double", true, HONE_F64};
    case HONE_DTYPE_I8: return (element){"int8_t", true, -1};
    case HONE_DTYPE_I16: return (element){"int16_t", true, -1};
    case HONE_DTYPE_I32: return (element){"int32_t", true, HONE_I32};
    case HONE_DTYPE_I64: return (element){"int64_t", true, HONE_I64};
    case HONE_DTYPE_U64: return (element){"uint64_t", true, HONE_U64};
    case HONE_DTYPE_U8: return (element){"uint8_t", true, -1};
    case HONE_DTYPE_U16: return (element){"uint16_t", true, -1};
    case HONE_DTYPE_U32: return (element){"uint32_t", false, -1}; /* would meet a negative literal as unsigned */
    default: return (element){hone_dtypes[t].bytes == 1 ? "uint8_t" : hone_dtypes[t].bytes == 2 ? "uint16_t" : "uint64_t", false, -1};
    }
}

typedef struct {
    const hone_instance *in;
    hone_text *out;
    hone_arena *arena;
    const char **param, **tensor, **index; /* names; NULL: not used (yet) */
    const char **taken;
    int n_taken;
    uint8_t *loaded, *stored;        /* tensors */
    uint8_t *flat, *strided;         /* tensors: how they are indexed */
    int32_t *uses;                   /* expressions, of the roots being printed */
    uint8_t *always, *total, *named; /* reached whatever the conditions; cannot fail; has a name e12 */
    int n_temp;                      /* v0, v1 …: subscripts, in the block being printed */
    int depth;                       /* of indentation */
    bool can_fail;
} printer;

/* ---- names -------------------------------------------------------------------------------------------------------------------------- */
static bool reserved(const char *s) {
    static const char *const words[] = {"auto",     "break",  "case",   "char",     "const",    "continue", "default",  "do",
                                        "double",   "else",   "enum",   "extern",   "float",    "for",      "goto",     "if",
                                        "inline",   "int",    "long",   "register", "restrict", "return",   "short",    "signed",
                                        "sizeof",   "static", "struct", "switch",   "typedef",  "union",    "unsigned", "void",
                                        "volatile", "while",  "acc",    "bad",      "begun",    "pick",     "to",       "value"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (!strcmp(s, words[k])) return true;
    return (*s == 'e' || *s == 'v') && isdigit((unsigned char)s[1]);
}
static bool is_taken(const printer *p, const char *s) {
    if (reserved(s)) return true;
    for (int k = 0; k < p->n_taken; k++)
        if (!strcmp(p->taken[k], s)) return true;
    return false;
}
/* `base`, or base_1, base_2 …: a C name that nothing else has. */
static const char *unique(printer *p, const char *base) {
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
static const char *param(printer *p, int k) {
    char made_up[16];
    snprintf(made_up, sizeof made_up, "p%d", k);
    if (!p->param[k]) p->param[k] = unique(p, *p->in->param_name[k] ? p->in->param_name[k] : made_up);
    return p->param[k];
}
static void name_tensor(printer *p, int t) { /* with its strides, x_0 …, and its size, x_size */
    p->tensor[t] = unique(p, p->in->tensor[t].name);
    for (int k = 0; k <= p->in->tensor[t].rank; k++) {
        const char *s = k < p->in->tensor[t].rank ? hone_arena_text(p->arena, "%s_%d", p->tensor[t], k)
                                                  : hone_arena_text(p->arena, "%s_size", p->tensor[t]);
        if (s) p->taken[p->n_taken++] = s;
        else p->out->failed = true;
    }
}

/* ---- what is used ------------------------------------------------------------------------------------------------------------------- */
/* A subscript is an expression, or ~i: index i itself, where a stage stores at its own indices. */
static bool safe(const printer *p, const hone_tensor *w, int k, int32_t sub) { /* an index over this very dim */
    if (sub >= 0 && p->in->x[sub].kind != HONE_X_INDEX) return false;
    return p->in->index[sub < 0 ? ~sub : p->in->x[sub].a].extent == w->dim[k];
}
static bool checked(const printer *p, const hone_x *e) { /* a load that may be outside */
    const hone_tensor *w = p->in->tensor + e->a;
    if (e->flat) return true;
    for (int k = 0; k < w->rank; k++)
        if (!safe(p, w, k, p->in->list[e->b + k])) return true;
    return false;
}
static int children(const printer *p, const hone_x *e,
                    int32_t *out) { /* HONE_MAX_RANK + 3 at most; those evaluated only sometimes come last */
    int n = 0;
    if (e->kind == HONE_X_LOAD) {
        for (int k = 0; k < (e->flat ? 1 : p->in->tensor[e->a].rank); k++) out[n++] = p->in->list[e->b + k];
        if (e->c >= 0 && checked(p, e)) out[n++] = e->c;
    } else if (e->kind == HONE_X_FN || e->kind == HONE_X_SELECT || e->kind == HONE_X_CAST || e->kind == HONE_X_ROUND) {
        out[n++] = e->a;
        if (e->b >= 0) out[n++] = e->b;
        if (e->c >= 0) out[n++] = e->c;
    }
    return n;
}
static void note(printer *p, int32_t x) { /* what the whole function uses: visited once, `uses` as the mark */
    const hone_x *e = p->in->x + x;
    if (p->uses[x]++) return;
    if (e->kind == HONE_X_PARAM) param(p, e->a);
    if (e->kind == HONE_X_LOAD) {
        const hone_tensor *w = p->in->tensor + e->a;
        p->loaded[e->a] = 1;
        if (e->flat) p->flat[e->a] = 1;
        else p->strided[e->a] = 1;
        for (int k = 0; k < w->rank; k++)
            if (e->flat || !safe(p, w, k, p->in->list[e->b + k])) param(p, w->dim[k]);
        if (e->c < 0 && checked(p, e)) p->can_fail = true;
    }
    int32_t kid[HONE_MAX_RANK + 3];
    int n = children(p, e, kid);
    for (int k = 0; k < n; k++) note(p, kid[k]);
}
static void count(printer *p, int32_t x, bool always) {
    const hone_x *e = p->in->x + x;
    bool known = p->uses[x] && (!always || p->always[x]);
    if (!p->uses[x]) p->total[x] = !(e->kind == HONE_X_LOAD && e->c < 0 && checked(p, e));
    if (always) p->always[x] = 1;
    int32_t kid[HONE_MAX_RANK + 3];
    int n = children(p, e, kid);
    bool fresh = !p->uses[x];
    p->uses[x]++;
    if (known) return;
    for (int k = 0; k < n; k++) {
        bool sometimes = (e->kind == HONE_X_SELECT && k > 0) || (e->kind == HONE_X_LOAD && k == n - 1 && e->c >= 0 && checked(p, e));
        int32_t before = p->uses[kid[k]];
        count(p, kid[k], always && !sometimes);
        if (!fresh) p->uses[kid[k]] = before; /* seen before, as something conditional: the edge counts once */
        p->total[x] &= p->total[kid[k]];
    }
}

/* ---- expressions -------------------------------------------------------------------------------------------------------------------- */
enum { AT_SELECT = 1, AT_COMPARE, AT_ADD, AT_MUL, AT_ATOM };
static const struct {
    int fn;
    const char *op;
    int at;
} infix[] = {{HONE_FN_add, "+", AT_ADD},    {HONE_FN_sub, "-", AT_ADD},     {HONE_FN_mul, "*", AT_MUL},     {HONE_FN_div, "/", AT_MUL},
             {HONE_FN_lt, "<", AT_COMPARE}, {HONE_FN_le, "<=", AT_COMPARE}, {HONE_FN_eq, "==", AT_COMPARE}, {HONE_FN_ne, "!=", AT_COMPARE}};
/* Floats are written as in a book. Integers wrap, so their arithmetic is a function; so is a comparison that a compiler
   would call pointless. */
static int operator_of(const printer *p, const hone_x *e) {
    if (e->kind != HONE_X_FN) return -1;
    const hone_x *a = p->in->x + e->a;
    for (int k = 0; k < (int)(sizeof infix / sizeof *infix); k++) {
        if (infix[k].fn != e->fn) continue;
        if (a->type == HONE_F32 || a->type == HONE_F64) return infix[k].at == AT_COMPARE && e->a == e->b ? -1 : k;
        return infix[k].at == AT_COMPARE && e->a != e->b && a->kind != HONE_X_CONST && p->in->x[e->b].kind != HONE_X_CONST ? k : -1;
    }
    return -1;
}
static int strength(const printer *p, int32_t x) {
    const hone_x *e = p->in->x + x;
    if (p->named[x]) return AT_ATOM;
    if (e->kind == HONE_X_SELECT) return AT_SELECT;
    if (e->kind == HONE_X_CAST && p->in->x[e->a].type == e->type) return strength(p, e->a);
    int k = operator_of(p, e);
    return k >= 0 ? infix[k].at : AT_ATOM;
}
static void expr(printer *p, int32_t x);
static void child(printer *p, int32_t x, int at_least) {
    bool parens = strength(p, x) < at_least;
    if (parens) hone_text_put(p->out, "(");
    expr(p, x);
    if (parens) hone_text_put(p->out, ")");
}
static void constant(printer *p, const hone_x *e) {
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
            hone_text_put(p->out, "%s(%s)INFINITY", f < 0 ? "-" : "", c_types[e->type]);
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
    else hone_text_put(p->out, "%" PRId64 "%s", i, i > INT32_MAX || i < INT32_MIN ? "LL" : "");
}
static bool is_simple(const printer *p, int32_t x) {
    if (x < 0) return true;
    int k = p->in->x[x].kind;
    return p->named[x] || k == HONE_X_CONST || k == HONE_X_INDEX || k == HONE_X_PARAM;
}
/* Subscripts as they will be written more than once: simple ones as they are, others assigned to a temporary first ("v3 = …, "). */
typedef struct {
    int32_t sub[HONE_MAX_RANK];
    int temp[HONE_MAX_RANK];
    int n;
} places;
static void put_place(printer *p, const places *s, int k) {
    if (s->temp[k] >= 0) hone_text_put(p->out, "v%d", s->temp[k]);
    else if (s->sub[k] < 0) hone_text_put(p->out, "%s", p->index[~s->sub[k]]);
    else expr(p, s->sub[k]);
}
/* `a && b …`: the subscripts are inside. */
static void put_inside(printer *p, const hone_tensor *w, int t, bool flat, const places *s) {
    const char *sep = "";
    for (int k = 0; k < s->n; k++) {
        if (!flat && safe(p, w, k, s->sub[k])) continue;
        hone_text_put(p->out, "%s(uint64_t)", sep);
        put_place(p, s, k);
        if (flat) hone_text_put(p->out, " < (uint64_t)%s_size", p->tensor[t]);
        else hone_text_put(p->out, " < (uint64_t)%s", param(p, w->dim[k]));
        sep = " && ";
    }
}
static void put_at(printer *p, int t, bool flat, const places *s) {
    if (!s->n) hone_text_put(p->out, "0");
    for (int k = 0; k < s->n; k++) {
        hone_text_put(p->out, "%s", k ? " + " : "");
        put_place(p, s, k);
        if (!flat) hone_text_put(p->out, " * %s_%d", p->tensor[t], k);
    }
}
static void put_load(printer *p, int t, bool flat, const places *s) {
    const hone_tensor *w = p->in->tensor + t;
    if (element_of(w->dtype).plain) {
        hone_text_put(p->out, "%s[", p->tensor[t]);
        put_at(p, t, flat, s);
        hone_text_put(p->out, "]");
    } else {
        hone_text_put(p->out, "hone_load_%s(%s + ", hone_dtypes[w->dtype].name, p->tensor[t]);
        put_at(p, t, flat, s);
        hone_text_put(p->out, ")");
    }
}
static places subscripts(printer *p, const int32_t *sub, int n, bool assign) {
    places s = {.n = n};
    for (int k = 0; k < n; k++) {
        s.sub[k] = sub[k], s.temp[k] = -1;
        if (!assign || is_simple(p, sub[k])) continue;
        int v = p->n_temp++;
        hone_text_put(p->out, "v%d = ", v);
        child(p, sub[k], AT_COMPARE);
        hone_text_put(p->out, ", ");
        s.temp[k] = v;
    }
    return s;
}
static void load(printer *p, const hone_x *e) {
    const hone_tensor *w = p->in->tensor + e->a;
    bool check = checked(p, e);
    if (check) hone_text_put(p->out, "(");
    places s = subscripts(p, p->in->list + e->b, e->flat ? 1 : w->rank, check);
    if (check) {
        put_inside(p, w, e->a, e->flat, &s);
        hone_text_put(p->out, " ? ");
    }
    put_load(p, e->a, e->flat, &s);
    if (!check) return;
    hone_text_put(p->out, " : ");
    if (e->c >= 0) expr(p, e->c);
    else hone_text_put(p->out, "%shone_outside(&bad, %d)", e->type == HONE_U64 ? "(uint64_t)" : "", 1 + e->a);
    hone_text_put(p->out, ")");
}
static void expr(printer *p, int32_t x) {
    const hone_x *e = p->in->x + x;
    if (p->named[x]) {
        hone_text_put(p->out, "e%d", (int)x);
        return;
    }
    switch (e->kind) {
    case HONE_X_CONST: constant(p, e); return;
    case HONE_X_INDEX: hone_text_put(p->out, "%s", p->index[e->a]); return;
    case HONE_X_PARAM: hone_text_put(p->out, "%s", param(p, e->a)); return;
    case HONE_X_LOAD: load(p, e); return;
    case HONE_X_SELECT:
        child(p, e->a, AT_COMPARE);
        hone_text_put(p->out, " ? ");
        child(p, e->b, AT_COMPARE);
        hone_text_put(p->out, " : ");
        expr(p, e->c);
        return;
    case HONE_X_CAST:
        if (p->in->x[e->a].type == e->type) {
            expr(p, e->a);
            return;
        }
        hone_text_put(p->out, "hone_cast_%s_%s(", hone_ctype_names[p->in->x[e->a].type], hone_ctype_names[e->type]);
        expr(p, e->a);
        hone_text_put(p->out, ")");
        return;
    case HONE_X_ROUND:
        hone_text_put(p->out, "hone_as_%s(", hone_dtypes[e->fn].name);
        expr(p, e->a);
        hone_text_put(p->out, ")");
        return;
    default: break;
    }
    int op = operator_of(p, e);
    if (op >= 0) {
        child(p, e->a, infix[op].at + (infix[op].at == AT_COMPARE));
        hone_text_put(p->out, " %s ", infix[op].op);
        child(p, e->b, infix[op].at + 1);
        return;
    }
    hone_text_put(p->out, "hone_%s_%s(", hone_fns[e->fn].name, hone_ctype_names[p->in->x[e->a].type]);
    int32_t arg[3] = {e->a, e->b, e->c};
    for (int k = 0; k < hone_fns[e->fn].arity; k++) {
        if (k) hone_text_put(p->out, ", ");
        expr(p, arg[k]);
    }
    hone_text_put(p->out, ")");
}

/* ---- blocks ------------------------------------------------------------------------------------------------------------------------- */
static void line(printer *p) { hone_text_put(p->out, "%*s", 4 * p->depth, ""); }
static void forget(printer *p) {
    size_t n = (size_t)p->in->n_x;
    memset(p->uses, 0, n * sizeof *p->uses), memset(p->always, 0, n), memset(p->total, 0, n), memset(p->named, 0, n);
}
/* Opens a block that evaluates these roots: names what is used more than once. Temporaries are declared when the block is closed, so its
   text is made aside. */
typedef struct {
    hone_text text, *out;
    int n_temp;
} block;
static block open_block(printer *p, const int32_t *root, int n) {
    block b = {.out = p->out, .n_temp = p->n_temp};
    p->n_temp = 0;
    forget(p);
    for (int k = 0; k < n; k++)
        if (root[k] >= 0) count(p, root[k], true);
    return b;
}
static void name_shared(printer *p) {
    for (int x = 0; x < p->in->n_x; x++) {
        const hone_x *e = p->in->x + x;
        if (p->uses[x] < 2 || is_simple(p, x) || !(p->always[x] || p->total[x])) continue;
        line(p);
        hone_text_put(p->out, "const %s e%d = ", c_types[e->type], x);
        expr(p, x);
        hone_text_put(p->out, ";\n");
        p->named[x] = 1;
    }
}
static void close_block(printer *p, block *b) {
    p->out = b->out;
    if (p->n_temp) {
        line(p);
        for (int k = 0; k < p->n_temp; k++) hone_text_put(p->out, "%sv%d", k ? ", " : "int64_t ", k);
        hone_text_put(p->out, ";\n");
    }
    if (b->text.failed) p->out->failed = true;
    if (b->text.n) hone_text_put(p->out, "%s", b->text.text);
    hone_text_free(&b->text);
    p->n_temp = b->n_temp;
}
/* Nested heads; the last opens a brace; returns how deep it went. The first one asks all extents: around an empty loop it may not turn 2^62 times. */
static int loops(printer *p, const int32_t *ids, int n, int32_t fixed) {
    int made = 0;
    for (int k = 0; k < n; k++) {
        if (ids[k] == fixed) continue;
        const char *i = p->index[ids[k]];
        line(p);
        bool last = true;
        for (int q = k + 1; q < n; q++) last &= ids[q] == fixed;
        hone_text_put(p->out, "for (int64_t %s = 0; %s < %s", i, i, param(p, p->in->index[ids[k]].extent));
        for (int q = k + 1; q < n && !made; q++)
            if (ids[q] != fixed) hone_text_put(p->out, " && 0 < %s", param(p, p->in->index[ids[q]].extent));
        hone_text_put(p->out, "; %s++)%s\n", i, last ? " {" : "");
        p->depth++, made++;
    }
    if (!made) {
        line(p);
        hone_text_put(p->out, "{\n");
        p->depth++;
    }
    return made ? made : 1;
}
static void end_loops(printer *p, int made) {
    p->depth -= made;
    hone_text_put(p->out, "%*s}\n", 4 * (p->depth + made - 1), "");
}
static bool fails(const printer *p, int32_t x) { return x >= 0 && !p->total[x]; }

static void put_limit(printer *p, hone_ctype c, bool highest) {
    static const char *const low[HONE_CTYPES] = {"-(float)INFINITY", "-(double)INFINITY", "INT32_MIN", "INT64_MIN", "0"};
    static const char *const high[HONE_CTYPES] = {"(float)INFINITY", "(double)INFINITY", "INT32_MAX", "INT64_MAX", "UINT64_MAX"};
    hone_text_put(p->out, "%s", highest ? high[c] : low[c]);
}
/* The reduction's loops; its result is then `acc` (or `pick`), of the value's compute type. */
static void reduction(printer *p, const hone_stage *s) {
    hone_ctype c = (hone_ctype)p->in->x[s->value].type;
    bool real = c == HONE_F32 || c == HONE_F64, arg = s->reduce >= HONE_REDUCE_ARGMAX,
         max = s->reduce == HONE_REDUCE_MAX || s->reduce == HONE_REDUCE_ARGMAX, summed = s->reduce <= HONE_REDUCE_PROD;
    const char *cn = hone_ctype_names[c];
    line(p);
    hone_text_put(p->out, "%s acc = ", real && summed ? "double" : c_types[c]);
    if (summed) hone_text_put(p->out, "%d", s->reduce == HONE_REDUCE_PROD);
    else put_limit(p, c, !max);
    hone_text_put(p->out, ";\n");
    if (arg) {
        line(p);
        hone_text_put(p->out, "%s pick = 0;\n", c_types[p->in->x[s->pick].type]);
        line(p);
        hone_text_put(p->out, "int begun = 0;\n");
    }
    int made = loops(p, p->in->list + s->index0 + s->n_index, s->n_reduce, -1);
    block b = open_block(p, &s->value, 1);
    bool may_fail = fails(p, s->value);
    p->out = &b.text;
    name_shared(p);
    line(p);
    if (arg) {
        hone_text_put(p->out, "const %s value = ", c_types[c]);
        expr(p, s->value);
        hone_text_put(p->out, ";\n");
        line(p); /* the first largest; NaN counts as larger than all */
        if (real)
            hone_text_put(p->out, "if (!begun || (!hone_isnan_%s(acc) && (hone_isnan_%s(value) || %s))) {\n", cn, cn,
                          max ? "acc < value" : "value < acc");
        else hone_text_put(p->out, "if (!begun || %s) {\n", max ? "acc < value" : "value < acc");
        p->depth++;
        block inner = open_block(p, &s->pick, 1);
        may_fail |= fails(p, s->pick);
        p->out = &inner.text;
        name_shared(p);
        line(p);
        hone_text_put(p->out, "acc = value, begun = 1, pick = ");
        child(p, s->pick, AT_SELECT);
        hone_text_put(p->out, ";\n");
        close_block(p, &inner);
        p->depth--;
        line(p);
        hone_text_put(p->out, "}\n");
    } else {
        const char *fn = s->reduce == HONE_REDUCE_SUM ? "add" : s->reduce == HONE_REDUCE_PROD ? "mul" : max ? "max" : "min";
        if (real && summed) {
            hone_text_put(p->out, "acc %s ", s->reduce == HONE_REDUCE_SUM ? "+=" : "*=");
            if (c == HONE_F32) hone_text_put(p->out, "(double)");
            child(p, s->value, c == HONE_F32 ? AT_ATOM : AT_SELECT);
            hone_text_put(p->out, ";\n");
        } else {
            hone_text_put(p->out, "acc = hone_%s_%s(acc, ", fn, cn);
            expr(p, s->value);
            hone_text_put(p->out, ");\n");
        }
    }
    if (may_fail) {
        line(p);
        hone_text_put(p->out, "if (bad) return bad;\n");
    }
    close_block(p, &b);
    end_loops(p, made);
}
/* Stores `value` (text) of compute type c at the stage's place. */
static void store(printer *p, const hone_stage *s, const int32_t *sub) {
    const hone_tensor *w = p->in->tensor + s->tensor;
    element el = element_of(w->dtype);
    hone_ctype own = hone_dtypes[w->dtype].ctype, c = (hone_ctype)p->in->x[s->pick >= 0 ? s->pick : s->value].type;
    bool check = false, narrowed = s->reduce && s->reduce <= HONE_REDUCE_PROD && c == HONE_F32; /* a float sum ends in float */
    for (int k = 0; k < w->rank; k++) check |= !safe(p, w, k, sub[k]);
    places at = {.n = w->rank};
    for (int k = 0; k < w->rank; k++) {
        at.sub[k] = sub[k], at.temp[k] = -1;
        if (is_simple(p, sub[k])) continue;
        at.temp[k] = p->n_temp++;
        line(p);
        hone_text_put(p->out, "v%d = ", at.temp[k]);
        expr(p, sub[k]);
        hone_text_put(p->out, ";\n");
    }
    bool may_fail = false;
    for (int k = 0; k < w->rank; k++) may_fail |= fails(p, sub[k]);
    if (!s->reduce) may_fail |= fails(p, s->value);
    const char *value = s->reduce ? s->pick >= 0 ? "pick" : narrowed ? "(float)acc" : "acc" : NULL;
    if (!value && (s->how || may_fail || check)) {
        line(p);
        hone_text_put(p->out, "const %s value = ", c_types[c]);
        expr(p, s->value);
        hone_text_put(p->out, ";\n");
        value = "value";
    }
    if (may_fail) {
        line(p);
        hone_text_put(p->out, "if (bad) return bad;\n");
    }
    if (check) {
        line(p);
        hone_text_put(p->out, s->skip ? "if (" : "if (!(");
        put_inside(p, w, s->tensor, false, &at);
        if (s->skip) hone_text_put(p->out, ") {\n"), p->depth++;
        else hone_text_put(p->out, ")) return %d;\n", 1 + s->tensor);
    }
    line(p);
    if (s->how) {
        static const char *const hows[] = {"", "add", "mul", "max", "min"};
        hone_text_put(p->out, "%s *const to = %s + ", el.c, p->tensor[s->tensor]);
        put_at(p, s->tensor, false, &at);
        hone_text_put(p->out, ";\n");
        line(p);
        if (el.same == (int)own) hone_text_put(p->out, "*to = ");
        else hone_text_put(p->out, "hone_store_%s_%s(to, ", hone_dtypes[w->dtype].name, hone_ctype_names[own]);
        hone_text_put(p->out, "hone_%s_%s(", hows[s->how], hone_ctype_names[own]);
        if (el.plain) hone_text_put(p->out, "*to, ");
        else hone_text_put(p->out, "hone_load_%s(to), ", hone_dtypes[w->dtype].name);
        if (c == own) hone_text_put(p->out, "%s)", value);
        else hone_text_put(p->out, "hone_cast_%s_%s(%s))", hone_ctype_names[c], hone_ctype_names[own], value);
        hone_text_put(p->out, el.same == (int)own ? ";\n" : ", %d);\n", s->saturate);
    } else {
        bool same = el.same == (int)c;
        if (same) hone_text_put(p->out, "%s[", p->tensor[s->tensor]);
        else hone_text_put(p->out, "hone_store_%s_%s(%s + ", hone_dtypes[w->dtype].name, hone_ctype_names[c], p->tensor[s->tensor]);
        put_at(p, s->tensor, false, &at);
        hone_text_put(p->out, same ? "] = " : ", ");
        if (value) hone_text_put(p->out, "%s", value);
        else expr(p, s->value);
        if (same) hone_text_put(p->out, ";\n");
        else hone_text_put(p->out, ", %d);\n", s->saturate);
    }
    if (check && s->skip) {
        p->depth--;
        line(p);
        hone_text_put(p->out, "}\n");
    }
}
static void name_indices(printer *p, const hone_stage *s) {
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
        p->index[ids[k]] = unique(p, base ? base : "i");
    }
}
static void stage(printer *p, const hone_stage *s) {
    const hone_tensor *w = p->in->tensor + s->tensor;
    const int32_t *ids = p->in->list + s->index0;
    int taken = p->n_taken;
    name_indices(p, s);
    int made = loops(p, ids, s->n_index, s->over >= 0 ? s->over_index : -1);
    if (s->reduce) reduction(p, s);
    int32_t sub[HONE_MAX_RANK], root[HONE_MAX_RANK + 1];
    int n = 0;
    if (!s->reduce) root[n++] = s->value;
    for (int k = 0; k < w->rank; k++) root[n++] = sub[k] = s->identity ? ~ids[k] : p->in->list[s->sub0 + k];
    block b = open_block(p, root, n);
    p->out = &b.text;
    name_shared(p);
    store(p, s, sub);
    close_block(p, &b);
    end_loops(p, made);
    p->n_taken = taken;
}

/* ---- the function ------------------------------------------------------------------------------------------------------------------- */
static void survey(printer *p) { /* names of all that is used, so that it can be declared first */
    const hone_instance *in = p->in;
    for (int t = 0; t < in->n_tensor; t++) name_tensor(p, t);
    for (int k = 0; k < in->n_stage; k++) {
        const hone_stage *s = in->stage + k;
        const hone_tensor *w = in->tensor + s->tensor;
        p->stored[s->tensor] = p->strided[s->tensor] = 1;
        note(p, s->value);
        if (s->pick >= 0) note(p, s->pick);
        for (int q = 0; q < s->n_index + s->n_reduce; q++) param(p, in->index[in->list[s->index0 + q]].extent);
        for (int q = 0; q < w->rank; q++) {
            if (!s->identity) note(p, in->list[s->sub0 + q]);
            bool inside = s->identity ? in->index[in->list[s->index0 + q]].extent == w->dim[q] : safe(p, w, q, in->list[s->sub0 + q]);
            if (!inside) param(p, w->dim[q]);
        }
    }
    for (int t = 0; t < in->n_tensor; t++)
        if (p->flat[t])
            for (int k = 0; k < in->tensor[t].rank; k++) param(p, in->tensor[t].dim[k]);
}
static void declare(printer *p) {
    const hone_instance *in = p->in;
    hone_text_put(p->out, "    (void)hone_t, (void)hone_s, (void)hone_p, (void)hone_pf;\n");
    if (p->can_fail) hone_text_put(p->out, "    int bad = 0;\n");
    for (int k = 0; k < in->n_param; k++) {
        if (!p->param[k]) continue;
        if (in->param_real[k]) hone_text_put(p->out, "    const double %s = hone_pf[%d];\n", p->param[k], k);
        else hone_text_put(p->out, "    const int64_t %s = hone_p[%d];\n", p->param[k], k);
    }
    for (int t = 0; t < in->n_tensor; t++) {
        const hone_tensor *w = in->tensor + t;
        if (!p->loaded[t] && !p->stored[t]) continue;
        hone_text_put(p->out, "    %s%s *const %s = hone_t[%d];\n", p->stored[t] ? "" : "const ", element_of(w->dtype).c, p->tensor[t], t);
        if (p->strided[t] && w->rank) {
            for (int k = 0; k < w->rank; k++)
                hone_text_put(p->out, "%s%s_%d = hone_s[%d]", k ? ", " : "    const int64_t ", p->tensor[t], k, t * HONE_MAX_RANK + k);
            hone_text_put(p->out, ";\n");
        }
        if (p->flat[t]) {
            hone_text_put(p->out, "    const int64_t %s_size = 1", p->tensor[t]);
            for (int k = 0; k < w->rank; k++) hone_text_put(p->out, " * %s", param(p, w->dim[k]));
            hone_text_put(p->out, ";\n");
        }
    }
}
void hone_print_c(const hone_instance *in, const char *name, hone_text *out) {
    printer p = {.in = in, .out = out, .arena = hone_arena_create(), .depth = 1};
    size_t x = (size_t)in->n_x + 1, t = (size_t)in->n_tensor + 1;
    if (p.arena) {
        p.param = HONE_NEW_N(p.arena, const char *, in->n_param + 1), p.tensor = HONE_NEW_N(p.arena, const char *, t),
        p.index = HONE_NEW_N(p.arena, const char *, in->n_index + 1);
        p.taken = HONE_NEW_N(p.arena, const char *, in->n_param + in->n_tensor * (HONE_MAX_RANK + 2) + in->n_index + 1);
        p.loaded = HONE_NEW_N(p.arena, uint8_t, t), p.stored = HONE_NEW_N(p.arena, uint8_t, t), p.flat = HONE_NEW_N(p.arena, uint8_t, t),
        p.strided = HONE_NEW_N(p.arena, uint8_t, t);
        p.uses = HONE_NEW_N(p.arena, int32_t, x), p.always = HONE_NEW_N(p.arena, uint8_t, x), p.total = HONE_NEW_N(p.arena, uint8_t, x),
        p.named = HONE_NEW_N(p.arena, uint8_t, x);
    }
    if (!p.arena || !p.param || !p.tensor || !p.index || !p.taken || !p.loaded || !p.stored || !p.flat || !p.strided || !p.uses ||
        !p.always || !p.total || !p.named) {
        out->failed = true;
        hone_arena_destroy(p.arena);
        return;
    }
    survey(&p);
    hone_text_put(out, "int %s(void *const *hone_t, const long long *hone_s, const long long *hone_p, const double *hone_pf) {\n", name);
    declare(&p);
    for (int k = 0; k < in->n_stage;) {
        const hone_stage *s = in->stage + k;
        if (s->over < 0) {
            stage(&p, s), k++;
            continue;
        }
        const char *i = p.index[s->over_index] = unique(&p, in->index[s->over_index].name);
        line(&p);
        hone_text_put(out, "for (int64_t %s = 0; %s < %s; %s++) {\n", i, i, param(&p, in->index[s->over_index].extent), i);
        p.depth++;
        for (int over = s->over; k < in->n_stage && in->stage[k].over == over; k++) stage(&p, in->stage + k);
        p.depth--, p.n_taken--;
        hone_text_put(out, "    }\n");
    }
    hone_text_put(out, "    return 0;\n}\n");
    hone_arena_destroy(p.arena);
}
