/* SPDX-License-Identifier: Apache-2.0
   text_parse: reads what text.c prints. Ops are the built-in rows; the result is verified, not inferred. */
#include "ir/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

enum { MAX_BODIES = 40 };
static const size_t most_random = (size_t)1 << 30; /* bytes of made-up constants in one text */

typedef struct {
    const char *p, *end;
    int line, depth;
    hone_graph *root;
    const hone_library *library;
    hone_vec(hone_value *) mine; /* tensors of attributes, until their nodes hold them */
    size_t random;
} reader;
typedef struct {
    const char *text;
    int64_t bytes;
    bool quoted;
} word;
typedef hone_vec(hone_vid) ids;
typedef hone_vec(word) words;

static hone_status wrong_name(const reader *r, const char *name, const char *what) {
    return hone_fail(HONE_BAD_INPUT, "graph text, line %d: '%s' %s", r->line, name, what);
}
static int readable(const reader *r) { /* how much of what comes next to show */
    int n = 0;
    while (n < 20 && r->p + n < r->end && (unsigned char)r->p[n] >= ' ') n++;
    return n;
}
static hone_status wrong(const reader *r, const char *what) {
    return hone_fail(HONE_BAD_INPUT, "graph text, line %d, at '%.*s': %s", r->line, readable(r), r->p, what);
}
static hone_status no_memory(void) { return hone_fail(HONE_NO_MEMORY, "no memory to read a graph's text"); }

/* ---- words --------------------------------------------------------------------------------------------- */
static void skip(reader *r) {
    for (; r->p < r->end; r->p++) {
        if (*r->p == '#')
            while (r->p + 1 < r->end && r->p[1] != '\n') r->p++;
        else if (*r->p == '\n') r->line++;
        else if (*r->p != ' ' && *r->p != '\t' && *r->p != '\r') return;
    }
}
static char peek(reader *r) {
    skip(r);
    return r->p < r->end ? *r->p : 0;
}
static bool take(reader *r, char c) {
    if (peek(r) != c) return false;
    r->p++;
    return true;
}
static hone_status expect(reader *r, char c) {
    char what[] = "a ' ' belongs here";
    what[3] = c;
    return take(r, c) ? HONE_OK : wrong(r, what);
}
static bool of_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '/';
}

static int hex(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

static hone_status read_quoted(reader *r, word *out) {
    const char *close = r->p + 1;
    while (close < r->end && *close != '"') close += *close == '\\' ? 2 : 1;
    if (close >= r->end) return wrong(r, "a string does not end");
    char *text = hone_arena_alloc(r->root->arena, (size_t)(close - r->p));
    if (!text) return no_memory();
    int64_t n = 0;
    for (r->p++; r->p < close; r->p++) {
        if (*r->p == '\n') r->line++;
        if (*r->p != '\\') {
            text[n++] = *r->p;
            continue;
        }
        r->p++; /* before `close`, which no backslash hides */
        if (*r->p == 'n') text[n++] = '\n';
        else if (*r->p == 'x') {
            int high = close - r->p > 2 ? hex(r->p[1]) : -1, low = high >= 0 ? hex(r->p[2]) : -1;
            if (low < 0) return wrong(r, "\\x takes two digits, 0 to 9 or a to f");
            text[n++] = (char)(high * 16 + low);
            r->p += 2;
        } else text[n++] = *r->p;
    }
    r->p++;
    *out = (word){text, n, true};
    return HONE_OK;
}
static hone_status read_word(reader *r, word *out) {
    if (peek(r) == '"') return read_quoted(r, out);
    const char *from = r->p;
    while (r->p < r->end && of_word(*r->p)) r->p++;
    if (r->p == from) return wrong(r, "a name belongs here");
    *out = (word){hone_arena_textn(r->root->arena, from, (size_t)(r->p - from)), r->p - from, false};
    return out->text ? HONE_OK : no_memory();
}
static hone_status read_name(reader *r, word *out) {
    HONE_TRY(read_word(r, out));
    return strlen(out->text) == (size_t)out->bytes ? HONE_OK : wrong(r, "a name cannot hold a zero byte");
}
static bool is(const word *w, const char *text) { return !w->quoted && !strcmp(w->text, text); }

/* ---- numbers ------------------------------------------------------------------------------------------- */
typedef struct {
    char text[48];
    bool real;
} number;
static hone_status read_number(reader *r, number *out) {
    size_t n = 0;
    out->real = false;
    skip(r);
    while (r->p < r->end && n + 1 < sizeof out->text && (of_word(*r->p) || *r->p == '-' || *r->p == '+')) {
        out->real |= strchr(".einfa", *r->p) != NULL; /* 1.5, 1e9, inf, nan */
        out->text[n++] = *r->p++;
    }
    out->text[n] = 0;
    char *end;
    (void)strtod(out->text, &end);
    return n && !*end ? HONE_OK : wrong(r, "a number belongs here");
}
static hone_status read_i64(reader *r, int64_t *out) {
    number n;
    HONE_TRY(read_number(r, &n));
    if (n.real) return wrong(r, "a whole number belongs here");
    *out = strtoll(n.text, NULL, 10);
    return HONE_OK;
}

/* ---- values -------------------------------------------------------------------------------------------- */
typedef struct {
    hone_tag tag;
    hone_dtype dtype;
    int rank;
    hone_dim dim[HONE_MAX_RANK];
    hone_layout layout;
} type;

static hone_status read_dims(reader *r, type *t) {
    t->rank = 0;
    while (!take(r, ']')) {
        if (t->rank) HONE_TRY(expect(r, ','));
        if (t->rank == HONE_MAX_RANK) return wrong(r, "more than 16 dims");
        hone_dim *d = t->dim + t->rank++;
        char c = peek(r);
        if (c >= '0' && c <= '9') HONE_TRY(read_i64(r, d));
        else if (take(r, '?')) *d = HONE_DIM_UNKNOWN;
        else {
            word w;
            HONE_TRY(read_name(r, &w));
            if ((*d = hone_dim_symbol(r->root->dims, w.text)) == HONE_DIM_UNKNOWN) return no_memory();
        }
    }
    return HONE_OK;
}
static hone_status read_type(reader *r, type *t) {
    static const char *const tags[] = {"", "seq", "opt", "map"};
    word w = {0};
    *t = (type){.rank = -1};
    if (peek(r) != '?') HONE_TRY(read_word(r, &w));
    for (int k = HONE_TAG_SEQUENCE; w.text && k <= HONE_TAG_MAP; k++)
        if (is(&w, tags[k])) {
            t->tag = (hone_tag)k, w.text = NULL;
            if (peek(r) != '?') HONE_TRY(read_word(r, &w));
            break;
        }
    if (!w.text) HONE_TRY(expect(r, '?'));
    else if (!(t->dtype = hone_dtype_named(w.text, (size_t)w.bytes)))
        return wrong(r, "there is no such element type");
    if (t->tag == HONE_TAG_TENSOR && take(r, '[')) HONE_TRY(read_dims(r, t));
    if (t->rank > 0 && peek(r) == 'o') {
        HONE_TRY(read_word(r, &w));
        if (!is(&w, "order")) return wrong(r, "only 'order(…)' may follow a type");
        t->layout.kind = HONE_LAYOUT_ORDER;
        HONE_TRY(expect(r, '('));
        for (int k = 0; k < t->rank; k++) {
            int64_t d = 0;
            if (k) HONE_TRY(expect(r, ','));
            HONE_TRY(read_i64(r, &d));
            if (d < 0 || d >= t->rank) return wrong(r, "an order names each dim once");
            t->layout.order[k] = (int8_t)d;
        }
        HONE_TRY(expect(r, ')'));
    }
    return HONE_OK;
}
static hone_status put_text(hone_value *v, int64_t k, const char *text, int64_t bytes) {
    if (!v->strings && !(v->strings = hone_strings_create())) return no_memory();
    const hone_string *s = hone_strings_add(v->strings, text, bytes);
    if (!s) return no_memory();
    memcpy((char *)v->data + (size_t)k * sizeof s, &s, sizeof s);
    return HONE_OK;
}
static hone_status read_element(reader *r, hone_value *v, int64_t k) {
    const hone_dtype_row *row = hone_dtypes + v->dtype;
    char *at = (char *)v->data + (size_t)k * row->bytes;
    if (row->kind == HONE_KIND_STRING) {
        word w;
        HONE_TRY(read_word(r, &w));
        return put_text(v, k, w.text, w.bytes);
    }
    number n;
    HONE_TRY(read_number(r, &n));
    hone_scalar s;
    if (row->kind == HONE_KIND_COMPLEX) {
        for (int part = 0; part < 2; part++) {
            if (part) HONE_TRY(expect(r, ','));
            if (part) HONE_TRY(read_number(r, &n));
            if (row->bytes == 8) ((float *)(void *)at)[part] = strtof(n.text, NULL);
            else ((double *)(void *)at)[part] = strtod(n.text, NULL);
        }
        return HONE_OK;
    }
    if (row->kind == HONE_KIND_FLOAT) {
        if (row->ctype == HONE_F32) s.f32 = strtof(n.text, NULL);
        else s.f64 = strtod(n.text, NULL);
        hone_dtype_store(v->dtype, at, row->ctype, s, false);
        return HONE_OK;
    }
    if (n.real) return wrong(r, "an element of this type is a whole number");
    if (row->ctype == HONE_U64) s.u64 = strtoull(n.text, NULL, 10);
    else s.i64 = strtoll(n.text, NULL, 10);
    hone_dtype_store(v->dtype, at, row->ctype == HONE_U64 ? HONE_U64 : HONE_I64, s, false);
    return HONE_OK;
}
/* random(seed), random(seed, lowest, highest) */
static hone_status read_random(reader *r, hone_value *v) {
    const hone_dtype_row *row = hone_dtypes + v->dtype;
    int64_t seed = 0, n = hone_value_count(v);
    number lo = {"0", false}, hi = {"1", false};
    HONE_TRY(expect(r, '('));
    HONE_TRY(read_i64(r, &seed));
    if (take(r, ',')) {
        HONE_TRY(read_number(r, &lo));
        HONE_TRY(expect(r, ','));
        HONE_TRY(read_number(r, &hi));
    }
    HONE_TRY(expect(r, ')'));
    uint64_t state = (uint64_t)seed, from = (uint64_t)strtoll(lo.text, NULL, 10),
             span = (uint64_t)strtoll(hi.text, NULL, 10) - from + 1;
    double low = strtod(lo.text, NULL), high = strtod(hi.text, NULL);
    for (int64_t k = 0; k < n; k++) {
        uint64_t bits = hone_random(&state);
        double u = (double)(bits >> 11) * 0x1p-53;
        char *at = (char *)v->data + (size_t)k * row->bytes;
        if (row->kind == HONE_KIND_STRING) {
            char text[24];
            HONE_TRY(put_text(v, k, text, snprintf(text, sizeof text, "s%u", (unsigned)(bits >> 32))));
        } else if (row->kind == HONE_KIND_COMPLEX) {
            for (int part = 0; part < 2; part++) {
                if (row->bytes == 8) ((float *)(void *)at)[part] = (float)u;
                else ((double *)(void *)at)[part] = u;
            }
        } else if (row->kind == HONE_KIND_FLOAT) {
            hone_dtype_store(v->dtype, at, HONE_F64, (hone_scalar){.f64 = low + (high - low) * u}, true);
        } else
            hone_dtype_store(v->dtype, at, HONE_U64, (hone_scalar){.u64 = from + (span ? bits % span : bits)},
                             false);
    }
    return HONE_OK;
}
static hone_status read_value(reader *r, int depth, hone_value **out);

static hone_status read_list(reader *r, const type *t, int depth, hone_value **out) {
    hone_vec(hone_value *) item = {0};
    hone_status s = depth < HONE_MAX_DEPTH ? expect(r, '(') : wrong(r, "lists are nested too deeply");
    while (!s && !take(r, ')')) {
        hone_value *v = NULL;
        if (item.n) s = expect(r, ',');
        if (!s) s = read_value(r, depth + 1, &v);
        if (!s && !hone_push(&item, v)) hone_value_drop(v), s = no_memory();
    }
    if (!s) s = hone_value_list(t->tag, item.at, item.n, out);
    if (!s) (*out)->dtype = t->dtype;
    for (int k = 0; k < item.n; k++) hone_value_drop(item.at[k]);
    hone_vec_free(&item);
    return s;
}
/* f32[2] = {1, 2}; f32[900] = random(7, -1, 1); seq f32(f32[1] = {1}, …) */
static hone_status read_value(reader *r, int depth, hone_value **out) {
    type t;
    HONE_TRY(read_type(r, &t));
    if (t.tag != HONE_TAG_TENSOR) return read_list(r, &t, depth, out);
    if (t.rank < 0) return wrong(r, "a constant's shape is missing");
    for (int k = 0; k < t.rank; k++)
        if (!hone_dim_is_number(t.dim[k])) return wrong(r, "a constant's dims are numbers");
    HONE_TRY(expect(r, '='));
    bool listed = take(r, '{');
    word w = {0};
    if (!listed) HONE_TRY(read_word(r, &w));
    if (!listed && !is(&w, "random")) return wrong(r, "'{' or 'random' belongs here");
    int64_t count;
    if (!hone_count_of(t.dim, t.rank, &count)) return wrong(r, "the constant is too large");
    if (listed && count > r->end - r->p) return wrong(r, "there are fewer elements than the shape says");
    if (!listed && (uint64_t)count > (most_random - r->random) / 16) return wrong(r, "too much random data");
    hone_value *v;
    HONE_TRY(hone_value_tensor(t.dtype, t.dim, t.rank, &v));
    hone_status s = HONE_OK;
    if (!listed) s = read_random(r, v), r->random += v->bytes;
    for (int64_t k = 0; listed && !s && k < count; k++) {
        if (k) s = expect(r, ',');
        if (!s) s = read_element(r, v, k);
    }
    if (listed && !s) s = expect(r, '}');
    if (s) hone_value_drop(v);
    else *out = v;
    return s;
}

/* ---- attributes ---------------------------------------------------------------------------------------- */
static hone_status read_graph(reader *r, hone_graph *outer, hone_graph **out);

typedef struct {
    hone_vec(int64_t) i;
    hone_vec(double) f;
    hone_vec(hone_string) s;
    hone_vec(hone_value *) t;
    bool real;
} items;

static hone_status read_item(reader *r, items *all, const word *first) {
    if (first ? is(first, "tensor") : peek(r) == 't') {
        word w;
        hone_value *v;
        if (!first) HONE_TRY(read_word(r, &w));
        HONE_TRY(read_value(r, 0, &v));
        if (!hone_push(&r->mine, v)) {
            hone_value_drop(v);
            return no_memory();
        }
        return hone_push(&all->t, v) ? HONE_OK : no_memory();
    }
    if (peek(r) == '"') {
        word w;
        HONE_TRY(read_word(r, &w));
        hone_string s = {w.bytes, w.text};
        return hone_push(&all->s, s) ? HONE_OK : no_memory();
    }
    number n;
    HONE_TRY(read_number(r, &n));
    all->real |= n.real;
    return hone_push(&all->i, strtoll(n.text, NULL, 10)) && hone_push(&all->f, strtod(n.text, NULL))
               ? HONE_OK
               : no_memory();
}
static hone_status make_attr(reader *r, const items *all, bool list, hone_attr *a) {
    hone_arena *arena = r->root->arena;
    if ((all->t.n > 0) + (all->s.n > 0) + (all->i.n > 0) != 1)
        return wrong(r, "a list holds one kind of thing");
    if (all->t.n) {
        a->kind = list ? HONE_ATTR_TENSORS : HONE_ATTR_TENSOR, a->n = all->t.n;
        a->tensor = hone_arena_copy(arena, all->t.at, sizeof *all->t.at * (size_t)all->t.n);
    } else if (all->s.n) {
        a->kind = list ? HONE_ATTR_STRINGS : HONE_ATTR_STRING, a->n = all->s.n;
        a->s = hone_arena_copy(arena, all->s.at, sizeof *all->s.at * (size_t)all->s.n);
    } else if (all->real) {
        a->kind = list ? HONE_ATTR_FLOATS : HONE_ATTR_FLOAT, a->n = all->f.n;
        a->f = hone_arena_copy(arena, all->f.at, sizeof *all->f.at * (size_t)all->f.n);
    } else {
        a->kind = list ? HONE_ATTR_INTS : HONE_ATTR_INT, a->n = all->i.n;
        a->i = hone_arena_copy(arena, all->i.at, sizeof *all->i.at * (size_t)all->i.n);
    }
    return a->tensor || a->s || a->f || a->i ? HONE_OK : no_memory();
}
static hone_status read_items(reader *r, items *all, hone_attr *a) {
    static const struct {
        const char *word;
        hone_attr_kind kind;
    } empty[] = {{"ints", HONE_ATTR_INTS},
                 {"floats", HONE_ATTR_FLOATS},
                 {"strings", HONE_ATTR_STRINGS},
                 {"tensors", HONE_ATTR_TENSORS}};
    char c = peek(r);
    if (take(r, '[')) {
        do HONE_TRY(read_item(r, all, NULL));
        while (take(r, ','));
        HONE_TRY(expect(r, ']'));
        return make_attr(r, all, true, a);
    }
    const char *back = r->p;
    word w = {0};
    if (of_word(c) && !(c >= '0' && c <= '9') && c != '.') HONE_TRY(read_word(r, &w));
    for (size_t k = 0; w.text && k < sizeof empty / sizeof *empty; k++)
        if (is(&w, empty[k].word)) {
            a->kind = empty[k].kind, a->n = 0;
            HONE_TRY(expect(r, '['));
            return expect(r, ']');
        }
    hone_dtype t = w.text ? hone_dtype_named(w.text, (size_t)w.bytes) : HONE_DTYPE_NONE;
    if (t) {
        int64_t *i = HONE_NEW(r->root->arena, int64_t);
        if (!i) return no_memory();
        *i = t;
        *a = (hone_attr){.name = a->name, .kind = HONE_ATTR_TYPE, .n = 1, .i = i};
        return HONE_OK;
    }
    if (w.text && !is(&w, "tensor")) r->p = back; /* inf, nan */
    HONE_TRY(read_item(r, all, w.text && is(&w, "tensor") ? &w : NULL));
    return make_attr(r, all, false, a);
}
static hone_status read_attr(reader *r, hone_graph *g, hone_attr *a, hone_graph **body) {
    word name, w;
    HONE_TRY(read_name(r, &name));
    HONE_TRY(expect(r, ':'));
    *a = (hone_attr){.name = name.text, .n = 1};
    if (peek(r) == 'g') {
        HONE_TRY(read_word(r, &w));
        if (!is(&w, "graph")) return wrong(r, "an attribute's value belongs here");
        a->kind = HONE_ATTR_BODY;
        return read_graph(r, g, body);
    }
    items all = {0};
    hone_status s = read_items(r, &all, a);
    hone_vec_free(&all.i);
    hone_vec_free(&all.f);
    hone_vec_free(&all.s);
    hone_vec_free(&all.t);
    return s;
}

/* ---- statements ---------------------------------------------------------------------------------------- */
static hone_status read_operands(reader *r, const hone_graph *g, ids *list) {
    while (peek(r) != ')' && peek(r) != ';') {
        word w;
        if (list->n) (void)take(r, ',');
        HONE_TRY(read_name(r, &w));
        hone_vid id = is(&w, "_") ? -1 : hone_graph_find(g, w.text);
        if (id < 0 && !is(&w, "_")) return wrong_name(r, w.text, "is read but nothing before makes it");
        if (!hone_push(list, id)) return no_memory();
    }
    return HONE_OK;
}
static hone_status new_var(reader *r, hone_graph *g, const word *w, hone_vid *out) {
    if (hone_graph_find(g, w->text) >= 0) return wrong_name(r, w->text, "is made twice");
    return (*out = hone_graph_var(g, w->text)) < 0 ? no_memory() : HONE_OK;
}
static const hone_program *find_op(const reader *r, const char *name) {
    const char *dot = strrchr(name, '.');
    char domain[128] = "";
    if (dot && (size_t)(dot - name) < sizeof domain) memcpy(domain, name, (size_t)(dot - name));
    return hone_library_find(r->library, domain, dot ? dot + 1 : name);
}
typedef struct {
    words out;
    ids in, id;
    hone_vec(hone_attr) attr;
    hone_vec(hone_graph *) body;
} draft;

static hone_status read_statement(reader *r, hone_graph *g);

/* fused(…) [ … ] is read as its parts: fusing is a pass's affair. */
static hone_status read_fused(reader *r, hone_graph *g) {
    word w;
    HONE_TRY(expect(r, '['));
    if (++r->depth > MAX_BODIES) return wrong(r, "groups are nested too deeply");
    while (!take(r, ']')) HONE_TRY(read_statement(r, g));
    r->depth--;
    if (peek(r) == '"') HONE_TRY(read_name(r, &w));
    return expect(r, ';');
}
static hone_status read_call(reader *r, hone_graph *g, draft *d) {
    word op, name = {"", 0, true};
    HONE_TRY(read_name(r, &op));
    bool fused = is(&op, "fused");
    const hone_program *p = fused ? NULL : find_op(r, op.text);
    if (!fused && !p) return wrong_name(r, op.text, "is no op");
    HONE_TRY(expect(r, '('));
    HONE_TRY(read_operands(r, g, &d->in));
    int own = d->in.n;
    if (take(r, ';')) HONE_TRY(read_operands(r, g, &d->in));
    HONE_TRY(expect(r, ')'));
    if (fused) return read_fused(r, g);
    if (take(r, '{') && !take(r, '}')) {
        do {
            hone_attr a;
            hone_graph *body = NULL;
            HONE_TRY(read_attr(r, g, &a, &body));
            a.body = d->body.n;
            if ((body && !hone_push(&d->body, body)) || !hone_push(&d->attr, a)) return no_memory();
        } while (take(r, ','));
        HONE_TRY(expect(r, '}'));
    }
    if (peek(r) == '"') HONE_TRY(read_name(r, &name));
    HONE_TRY(expect(r, ';'));
    for (int k = 0; k < d->out.n; k++) {
        hone_vid id = -1;
        if (!is(d->out.at + k, "_")) HONE_TRY(new_var(r, g, d->out.at + k, &id));
        if (!hone_push(&d->id, id)) return no_memory();
    }
    hone_node *n = hone_graph_node(g, p, name.text, d->in.at, d->in.n, d->id.at, d->id.n);
    if (!n || !hone_node_attrs(g, n, d->attr.at, d->attr.n)) return no_memory();
    n->n_capture = d->in.n - own, n->n_body = d->body.n;
    if (d->body.n &&
        !(n->body = hone_arena_copy(g->arena, d->body.at, sizeof *d->body.at * (size_t)d->body.n)))
        return no_memory();
    return HONE_OK;
}
static hone_status read_constant(reader *r, hone_graph *g, const word *name) {
    hone_value *v;
    if (hone_graph_find(g, name->text) >= 0) return wrong_name(r, name->text, "is made twice");
    HONE_TRY(read_value(r, 0, &v));
    if (hone_graph_const(g, name->text, v) < 0) return no_memory();
    return expect(r, ';');
}
static hone_status read_line(reader *r, hone_graph *g, draft *d) {
    while (peek(r) != '=' && peek(r) != ':') {
        word w;
        if (d->out.n) HONE_TRY(expect(r, ','));
        HONE_TRY(read_name(r, &w));
        if (!hone_push(&d->out, w)) return no_memory();
    }
    if (take(r, '=')) return read_call(r, g, d);
    r->p++;
    return d->out.n == 1 ? read_constant(r, g, d->out.at) : wrong(r, "a constant has one name");
}
static hone_status read_statement(reader *r, hone_graph *g) {
    draft d = {0};
    hone_status s = read_line(r, g, &d);
    hone_vec_free(&d.out);
    hone_vec_free(&d.in);
    hone_vec_free(&d.id);
    hone_vec_free(&d.attr);
    hone_vec_free(&d.body);
    return s;
}

/* ---- graphs -------------------------------------------------------------------------------------------- */
static hone_status read_inputs(reader *r, hone_graph *g) {
    int formal = -1;
    while (!take(r, ')')) {
        word w;
        type t;
        hone_vid id = -1;
        if (take(r, ';')) {
            if (!g->outer || formal >= 0) return wrong(r, "only a body has captures, and one list of them");
            formal = g->in.n;
            continue;
        }
        if (g->in.n) (void)take(r, ',');
        HONE_TRY(read_name(r, &w));
        HONE_TRY(expect(r, ':'));
        HONE_TRY(read_type(r, &t));
        HONE_TRY(new_var(r, g, &w, &id));
        hone_var *v = g->var.at + id;
        v->tag = t.tag, v->dtype = t.dtype, v->rank = (int8_t)t.rank, v->layout = t.layout;
        for (int k = 0; k < t.rank; k++)
            v->dim[k] = t.dim[k] == HONE_DIM_UNKNOWN && !g->outer ? hone_dim_symbol(g->dims, NULL) : t.dim[k];
        if (!hone_push(&g->in, id)) return no_memory();
    }
    g->n_formal = formal < 0 ? g->in.n : formal;
    return HONE_OK;
}
static hone_status read_inside(reader *r, hone_graph *g, words *out) {
    word w;
    if (!g->outer && peek(r) == 'o') {
        int64_t opset = 0;
        HONE_TRY(read_word(r, &w));
        if (!is(&w, "opset")) return wrong(r, "'opset' or '(' belongs here");
        HONE_TRY(read_i64(r, &opset));
        g->opset = opset > 0 && opset < 1000 ? (int)opset : 0;
    }
    HONE_TRY(expect(r, '('));
    HONE_TRY(read_inputs(r, g));
    HONE_TRY(expect(r, '-'));
    HONE_TRY(expect(r, '>'));
    while (!take(r, '{')) {
        if (out->n) HONE_TRY(expect(r, ','));
        HONE_TRY(read_name(r, &w));
        if (!hone_push(out, w)) return no_memory();
    }
    while (!take(r, '}')) HONE_TRY(read_statement(r, g));
    for (int k = 0; k < out->n; k++) {
        hone_vid id = hone_graph_find(g, out->at[k].text);
        if (id < 0) return wrong_name(r, out->at[k].text, "is an output, but nothing makes it");
        if (!hone_push(&g->out, id)) return no_memory();
    }
    return HONE_OK;
}
/* After the word `graph`. `outer` NULL: the root. */
static hone_status read_graph(reader *r, hone_graph *outer, hone_graph **out) {
    word name;
    HONE_TRY(read_name(r, &name));
    hone_graph *g = outer ? hone_graph_body(outer, name.text) : r->root;
    if (!g) return no_memory();
    if (!outer) g->name = name.text;
    if (++r->depth > MAX_BODIES) return wrong(r, "bodies are nested too deeply");
    words names = {0};
    hone_status s = read_inside(r, g, &names);
    hone_vec_free(&names);
    r->depth--;
    *out = g;
    return s;
}

hone_status hone_graph_parse(const char *text, size_t bytes, hone_graph **out) {
    reader r = {.p = text, .end = text + bytes, .line = 1};
    word w;
    HONE_TRY(hone_library_builtin(&r.library));
    HONE_TRY(hone_graph_create("", &r.root));
    hone_graph *g;
    hone_status s = read_word(&r, &w);
    if (!s && !is(&w, "graph")) s = wrong(&r, "'graph' belongs at the start");
    if (!s) s = read_graph(&r, NULL, &g);
    if (!s && peek(&r)) s = wrong(&r, "nothing belongs after the graph");
    for (int k = 0; k < r.mine.n; k++) hone_value_drop(r.mine.at[k]);
    hone_vec_free(&r.mine);
    if (!s) hone_graph_index(r.root);
    if (!s) s = hone_graph_verify(r.root);
    if (s) hone_graph_destroy(r.root);
    else *out = r.root;
    return s;
}
