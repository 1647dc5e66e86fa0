/* SPDX-License-Identifier: Apache-2.0
   text: a graph as text; text_parse.c reads it back. One statement a line, each ends in ';':

     graph NAME opset 17 (x: f32[batch, 3], state: seq f32) -> y, z {
       w: f32[3, 2] = {1, 2, 3, 4, 5, 6};
       big: f32[512, 512] = random(1234567, -0.5, 0.5);
       y, _ = Dropout(x, _, t) {seed: 3} "node name"; # f32[batch, 3]
       z = If(c; x) {then_branch: graph b (; x: f32[batch, 3]) -> r { … }};
     }

   A name that is not plain stands in quotes; `_` is an operand that is absent, an output that is not wanted.
   What stands after a ';' among operands is captured. Types of results are comments: infer.c finds them
   again. A size that is an expression prints as `?` for the same reason. A fused group prints its parts in [
   ]; read back, they are nodes of their own. A large constant prints a digest of its bytes and its range,
   and parses back to other data of that range. */
#include "base/visible.h"
#include "ir/graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PRINTED = 64, INDENT = 2 };

/* ---- words --------------------------------------------------------------------------------------------- */
static void put_string(hone_text *t, const char *s, int64_t n) {
    hone_text_put(t, "\"");
    for (int64_t k = 0; k < n;) {
        hone_character c = hone_character_at(s + k, (size_t)(n - k));
        if (s[k] == '"' || s[k] == '\\') hone_text_put(t, "\\%c", s[k]);
        else if (s[k] == '\n') hone_text_put(t, "\\n");
        else
            for (int j = 0; j < c.bytes; j++)
                hone_text_put(t, c.shown ? "%c" : "\\x%02x", (unsigned char)s[k + j]);
        k += c.bytes;
    }
    hone_text_put(t, "\"");
}
static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool plain(const char *s) {
    bool ok = letter(*s) || (*s == '_' && s[1]) || *s == '/';
    for (const char *c = s; ok && *c; c++) ok = letter(*c) || (*c >= '0' && *c <= '9') || strchr("_./", *c);
    return ok;
}
static void put_name(hone_text *t, const char *s) {
    if (plain(s)) hone_text_put(t, "%s", s);
    else put_string(t, s, (int64_t)strlen(s));
}
/* The shortest digits that read back as the same number. `real`: must look like a float. */
static void put_number(hone_text *t, double v, bool narrow, bool real) {
    char text[40];
    if (!isfinite(v)) {
        hone_text_put(t, "%s", isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (narrow ? strtof(text, NULL) == (float)v : strtod(text, NULL) == v) break;
    }
    hone_text_put(t, "%s%s", text, real && !strpbrk(text, ".e") ? ".0" : "");
}

/* ---- types and values ---------------------------------------------------------------------------------- */
static const char *const tags[] = {"", "seq ", "opt ", "map "};

/* "" where it is an expression, unknown, or has no name */
static const char *symbol_of(const hone_graph *g, hone_dim d) {
    int handle = hone_dim_is_symbolic(d) ? (int)(d - HONE_DIM_BAND) : -1;
    return handle >= 0 && hone_dim_handle_op(g->dims, handle) == HONE_DIM_SYMBOL
               ? hone_dim_symbol_name(g->dims, handle)
               : "";
}
static void put_type(const hone_graph *g, const hone_var *v, hone_text *t) {
    hone_text_put(t, "%s%s", tags[v->tag], v->dtype ? hone_dtypes[v->dtype].name : "?");
    if (v->rank < 0) return;
    hone_text_put(t, "[");
    for (int k = 0; k < v->rank; k++) {
        if (k) hone_text_put(t, ", ");
        hone_dim d = v->dim[k];
        if (hone_dim_is_number(d)) hone_text_put(t, "%lld", (long long)d);
        else if (*symbol_of(g, d)) put_name(t, symbol_of(g, d));
        else hone_text_put(t, "?");
    }
    hone_text_put(t, "]");
    if (v->layout.kind != HONE_LAYOUT_ORDER) return;
    hone_text_put(t, " order(");
    for (int k = 0; k < v->rank; k++) hone_text_put(t, k ? ", %d" : "%d", v->layout.order[k]);
    hone_text_put(t, ")");
}
/* The same for the reader only, expressions in full; a name must not end the comment. */
static void put_comment(const hone_graph *g, const hone_var *v, hone_text *t) {
    hone_text s = {0};
    hone_text_put(&s, "%s%s", tags[v->tag], v->dtype ? hone_dtypes[v->dtype].name : "?");
    if (v->rank >= 0) hone_text_put(&s, "[");
    for (int k = 0; k < v->rank; k++) {
        if (k) hone_text_put(&s, ", ");
        hone_dim_print(g->dims, v->dim[k], &s);
    }
    if (v->rank >= 0) hone_text_put(&s, "]");
    for (size_t k = 0; k < s.n; k++)
        if (s.text[k] == '\n' || s.text[k] == '\r') s.text[k] = ' ';
    hone_text_put(t, "%s", s.text ? s.text : "");
    t->failed |= s.failed;
    hone_text_free(&s);
}
static void put_element(const hone_value *v, int64_t k, hone_text *t) {
    const hone_dtype_row *row = hone_dtypes + v->dtype;
    const char *at = (const char *)v->data + (size_t)k * row->bytes;
    if (row->kind == HONE_KIND_STRING) {
        const hone_string *s = hone_value_string(v, k);
        put_string(t, s->text, s->bytes);
    } else if (row->kind == HONE_KIND_COMPLEX) { /* two numbers */
        bool narrow = row->bytes == 8;
        for (int part = 0; part < 2; part++) {
            if (part) hone_text_put(t, ", ");
            put_number(t,
                       narrow ? (double)((const float *)v->data)[2 * k + part]
                              : ((const double *)v->data)[2 * k + part],
                       narrow, false);
        }
    } else if (row->kind == HONE_KIND_FLOAT)
        put_number(t, hone_value_f64(v, k), row->ctype == HONE_F32, false);
    else if (row->ctype == HONE_U64)
        hone_text_put(t, "%llu", (unsigned long long)hone_dtype_load(v->dtype, at).u64);
    else hone_text_put(t, "%lld", (long long)hone_value_i64(v, k));
}
static uint32_t digest(const hone_value *v) {
    uint32_t h = 2166136261u;
    bool text = v->dtype == HONE_DTYPE_STRING;
    int64_t n = text ? hone_value_count(v) : 1;
    for (int64_t k = 0; k < n; k++) {
        const unsigned char *p = text ? (const unsigned char *)hone_value_string(v, k)->text : v->data;
        size_t bytes = text ? (size_t)hone_value_string(v, k)->bytes : v->bytes;
        for (size_t b = 0; b < bytes; b++) h = (h ^ p[b]) * 16777619u;
    }
    return h;
}
static void put_random(const hone_value *v, hone_text *t) {
    const hone_dtype_row *row = hone_dtypes + v->dtype;
    hone_text_put(t, "random(%u", digest(v));
    if (row->kind == HONE_KIND_INT || row->kind == HONE_KIND_UINT || row->kind == HONE_KIND_BOOL) {
        int64_t lo = INT64_MAX, hi = INT64_MIN, n = hone_value_count(v);
        for (int64_t k = 0; k < n; k++) {
            int64_t x = hone_value_i64(v, k);
            lo = x < lo ? x : lo, hi = x > hi ? x : hi;
        }
        hone_text_put(t, ", %lld, %lld", (long long)lo, (long long)hi);
    } else if (row->kind == HONE_KIND_FLOAT) {
        double lo = INFINITY, hi = -INFINITY;
        int64_t n = hone_value_count(v);
        for (int64_t k = 0; k < n; k++) {
            double x = hone_value_f64(v, k);
            if (isfinite(x)) lo = x < lo ? x : lo, hi = x > hi ? x : hi;
        }
        hone_text_put(t, ", ");
        put_number(t, lo <= hi ? lo : 0, false, false);
        hone_text_put(t, ", ");
        put_number(t, lo <= hi ? hi : 0, false, false);
    }
    hone_text_put(t, ")");
}
static void put_value(const hone_value *v, hone_text *t) { /* lists nest at most HONE_MAX_DEPTH deep */
    hone_text_put(t, "%s", tags[v->tag]);
    if (v->tag != HONE_TAG_TENSOR) {
        hone_text_put(t, "%s(", v->dtype ? hone_dtypes[v->dtype].name : "?");
        for (int k = 0; k < v->n_item; k++) {
            if (k) hone_text_put(t, ", ");
            put_value(v->item[k], t);
        }
        hone_text_put(t, ")");
        return;
    }
    hone_text_put(t, "%s[", hone_dtypes[v->dtype].name);
    for (int k = 0; k < v->rank; k++) hone_text_put(t, k ? ", %lld" : "%lld", (long long)v->dim[k]);
    hone_text_put(t, "] = ");
    int64_t n = hone_value_count(v);
    if (n > MAX_PRINTED) {
        put_random(v, t);
        return;
    }
    hone_text_put(t, "{");
    for (int64_t k = 0; k < n; k++) {
        if (k) hone_text_put(t, ", ");
        put_element(v, k, t);
    }
    hone_text_put(t, "}");
}

/* ---- nodes and graphs ---------------------------------------------------------------------------------- */
static void put_graph(const hone_graph *g, int indent, hone_text *t);

static void put_attr(const hone_node *n, const hone_attr *a, int indent, hone_text *t) {
    bool list = a->kind == HONE_ATTR_INTS || a->kind == HONE_ATTR_FLOATS || a->kind == HONE_ATTR_STRINGS ||
                a->kind == HONE_ATTR_TENSORS;
    static const char *const empty[] = {[HONE_ATTR_INTS] = "ints",
                                        [HONE_ATTR_FLOATS] = "floats",
                                        [HONE_ATTR_STRINGS] = "strings",
                                        [HONE_ATTR_TENSORS] = "tensors"};
    put_name(t, a->name);
    hone_text_put(t, ": ");
    if (list && a->n == 0) {
        hone_text_put(t, "%s[]", empty[a->kind]);
        return;
    }
    if (list) hone_text_put(t, "[");
    for (int k = 0; k < (list ? a->n : 1); k++) {
        if (k) hone_text_put(t, ", ");
        switch (a->kind) {
        case HONE_ATTR_INT:
        case HONE_ATTR_INTS: hone_text_put(t, "%lld", (long long)a->i[k]); break;
        case HONE_ATTR_FLOAT:
        case HONE_ATTR_FLOATS: put_number(t, a->f[k], false, true); break;
        case HONE_ATTR_STRING:
        case HONE_ATTR_STRINGS: put_string(t, a->s[k].text, a->s[k].bytes); break;
        case HONE_ATTR_TENSOR:
        case HONE_ATTR_TENSORS: hone_text_put(t, "tensor "), put_value(a->tensor[k], t); break;
        case HONE_ATTR_TYPE:
            hone_text_put(t, "%s", hone_dtype_valid(a->i[0]) ? hone_dtypes[a->i[0]].name : "?");
            break;
        case HONE_ATTR_BODY: put_graph(n->body[a->body], indent + INDENT, t); break;
        }
    }
    if (list) hone_text_put(t, "]");
}
static void put_ids(const hone_graph *g, const hone_vid *id, int n, hone_text *t) {
    for (int k = 0; k < n; k++) {
        if (k) hone_text_put(t, ", ");
        if (id[k] < 0) hone_text_put(t, "_");
        else put_name(t, g->var.at[id[k]].name);
    }
}
static void put_node(const hone_graph *g, const hone_node *n, int indent, hone_text *t) {
    const hone_program *p = n->program;
    hone_text_put(t, "%*s", indent, "");
    put_ids(g, n->out, n->n_out, t);
    if (n->part) hone_text_put(t, " = fused(");
    else hone_text_put(t, " = %s%s%s(", p->domain, *p->domain ? "." : "", p->name);
    put_ids(g, n->in, n->n_in - n->n_capture, t);
    if (n->n_capture) hone_text_put(t, "; ");
    put_ids(g, n->in + n->n_in - n->n_capture, n->n_capture, t);
    hone_text_put(t, ")");
    if (n->part) {
        hone_text_put(t, " [\n");
        for (int k = 0; k < n->n_part; k++) put_node(g, n->part[k], indent + INDENT, t);
        hone_text_put(t, "%*s]", indent, "");
    } else if (n->n_attr) {
        hone_text_put(t, " {");
        for (int k = 0; k < n->n_attr; k++) {
            if (k) hone_text_put(t, ", ");
            put_attr(n, n->attr + k, indent, t);
        }
        hone_text_put(t, "}");
    }
    if (n->name && *n->name) hone_text_put(t, " "), put_string(t, n->name, (int64_t)strlen(n->name));
    hone_text_put(t, ";");
    const char *between = " # ";
    for (int k = 0; k < n->n_out; k++) {
        const hone_var *v = hone_var_of(g, n->out[k]);
        if (!v || (!v->dtype && v->rank < 0 && v->tag == HONE_TAG_TENSOR)) continue;
        hone_text_put(t, "%s", between), between = ", ";
        put_comment(g, v, t);
    }
    hone_text_put(t, "\n");
}
static void put_inputs(const hone_graph *g, int from, int to, hone_text *t) {
    for (int k = from; k < to; k++) {
        const hone_var *v = g->var.at + g->in.at[k];
        if (k > from) hone_text_put(t, ", ");
        put_name(t, v->name);
        hone_text_put(t, ": ");
        put_type(g, v, t);
    }
}
static void put_graph(const hone_graph *g, int indent, hone_text *t) {
    hone_text_put(t, "graph ");
    put_name(t, g->name);
    if (!g->outer && g->opset) hone_text_put(t, " opset %d", g->opset);
    hone_text_put(t, " (");
    put_inputs(g, 0, g->n_formal, t);
    if (g->n_formal < g->in.n)
        hone_text_put(t, g->n_formal ? "; " : ";"), put_inputs(g, g->n_formal, g->in.n, t);
    hone_text_put(t, ") -> ");
    put_ids(g, g->out.at, g->out.n, t);
    hone_text_put(t, "%s{\n", g->out.n ? " " : "");
    for (int k = 0; k < g->var.n; k++) {
        const hone_var *v = g->var.at + k;
        if (!v->value) continue;
        hone_text_put(t, "%*s", indent + INDENT, "");
        put_name(t, v->name);
        hone_text_put(t, ": ");
        put_value(v->value, t);
        hone_text_put(t, ";\n");
    }
    for (int k = 0; k < g->node.n; k++)
        if (!g->node.at[k]->dead) put_node(g, g->node.at[k], indent + INDENT, t);
    hone_text_put(t, "%*s}", indent, "");
}

hone_status hone_graph_print(const hone_graph *g, hone_text *out) {
    put_graph(g, 0, out);
    hone_text_put(out, "\n");
    return out->failed ? hone_fail(HONE_NO_MEMORY, "no memory to print graph '%s'", g->name) : HONE_OK;
}
