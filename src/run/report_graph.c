/* SPDX-License-Identifier: Apache-2.0
   report_graph: a whole graph as JSON, for whoever draws it: vars with types and the statistics of constants,
   nodes with attributes, parts, work and bodies. Bodies follow in the list of graphs; nodes name theirs by
   number. */
#include <math.h>
#include <string.h>

#include "hone/tools.h"
#include "model/onnx.h"
#include "run/model.h"
#include "zoo/zoo.h"

enum {
    SAMPLE = 1 << 20 /* elements of a constant that are looked at */,
    FIRST = 8,
    MOST_LISTED = 64,
    MOST_TEXT = 400
};
typedef struct {
    const hone_graph *graph;
    hone_text title; /* "main", "main / If_3 / body 0" */
} listed;
typedef hone_vec(listed) list;

static void put_number(hone_text *t, double v) {
    if (isfinite(v)) hone_text_put(t, "%.9g", v);
    else hone_text_put(t, "null");
}
static void put_type(const hone_graph *g, const hone_var *v, hone_text *t) {
    static const char *const kinds[] = {"", "seq ", "opt ", "map "};
    hone_text s = {0};
    hone_text_put(&s, "%s%s", kinds[v->tag], v->dtype ? hone_dtypes[v->dtype].name : "?");
    if (v->tag == HONE_TAG_TENSOR) hone_text_put(&s, v->rank < 0 ? "[…]" : "[");
    for (int k = 0; k < v->rank; k++) {
        if (k) hone_text_put(&s, ", ");
        hone_dim_print(g->dims, v->dim[k], &s);
    }
    if (v->tag == HONE_TAG_TENSOR && v->rank >= 0) hone_text_put(&s, "]");
    hone_text_json(t, s.text ? s.text : "");
    t->failed |= s.failed;
    hone_text_free(&s);
}
static bool is_number(const hone_value *v) {
    hone_kind k = hone_dtypes[v->dtype].kind;
    return v->tag == HONE_TAG_TENSOR && k != HONE_KIND_STRING && k != HONE_KIND_COMPLEX &&
           k != HONE_KIND_NONE;
}
/* Over the finite elements of the first SAMPLE. */
static void put_constant(const hone_value *v, hone_text *t) {
    int64_t n = v->tag == HONE_TAG_TENSOR ? hone_value_count(v) : 0, look = n < SAMPLE ? n : SAMPLE,
            finite = 0, zeros = 0;
    double low = INFINITY, high = -INFINITY, sum = 0, squares = 0;
    hone_text_put(t, "{\"elements\": %lld, \"bytes\": %zu", (long long)n, v->bytes);
    for (int64_t k = 0; k < look && is_number(v); k++) {
        double x = hone_value_number(v, k);
        if (!isfinite(x)) continue;
        finite++, sum += x, squares += x * x, zeros += x == 0;
        low = x < low ? x : low, high = x > high ? x : high;
    }
    if (finite) {
        double mean = sum / (double)finite, variance = squares / (double)finite - mean * mean;
        const struct {
            const char *name;
            double v;
        } row[] = {{"min", low},
                   {"max", high},
                   {"mean", mean},
                   {"std", sqrt(variance > 0 ? variance : 0)},
                   {"zeros", (double)zeros}};
        hone_text_put(t, ", \"looked_at\": %lld, \"not_finite\": %lld", (long long)look,
                      (long long)(look - finite));
        for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
            hone_text_put(t, ", \"%s\": ", row[k].name);
            put_number(t, row[k].v);
        }
    }
    if (is_number(v)) {
        hone_text_put(t, ", \"first\": [");
        for (int64_t k = 0; k < n && k < FIRST; k++) {
            if (k) hone_text_put(t, ", ");
            put_number(t, hone_value_number(v, k));
        }
        hone_text_put(t, "]");
    }
    hone_text_put(t, "}");
}
/* An attribute as people write it: 3, [1, 1], "SAME_UPPER", f32[2,3]. */
static void put_attr(const hone_attr *a, hone_text *t) {
    hone_text s = {0};
    bool list = a->kind == HONE_ATTR_INTS || a->kind == HONE_ATTR_FLOATS || a->kind == HONE_ATTR_STRINGS ||
                a->kind == HONE_ATTR_TENSORS;
    if (list) hone_text_put(&s, "[");
    for (int k = 0; k < a->n && k < MOST_LISTED; k++) {
        if (k) hone_text_put(&s, ", ");
        switch (a->kind) {
        case HONE_ATTR_INT:
        case HONE_ATTR_INTS: hone_text_put(&s, "%lld", (long long)a->i[k]); break;
        case HONE_ATTR_TYPE: hone_text_put(&s, "%s", hone_dtype_name((hone_dtype)a->i[k])); break;
        case HONE_ATTR_FLOAT:
        case HONE_ATTR_FLOATS: hone_text_put(&s, "%.7g", a->f[k]); break;
        case HONE_ATTR_STRING:
        case HONE_ATTR_STRINGS:
            hone_text_put(&s, "\"%.*s\"", (int)(a->s[k].bytes < MOST_TEXT ? a->s[k].bytes : MOST_TEXT),
                          a->s[k].text);
            break;
        case HONE_ATTR_TENSOR:
        case HONE_ATTR_TENSORS: hone_value_describe(a->tensor[k], &s); break;
        case HONE_ATTR_BODY: hone_text_put(&s, "body %d", a->body); break;
        }
    }
    if (a->n > MOST_LISTED) hone_text_put(&s, ", … %d in all", a->n);
    if (list) hone_text_put(&s, "]");
    hone_text_json(t, s.text ? s.text : "");
    t->failed |= s.failed;
    hone_text_free(&s);
}
/* name, op and attributes: of a node, or of a part of one */
static void put_what(const hone_node *n, hone_text *t) {
    hone_text_put(t, "\"name\": ");
    hone_text_json(t, n->name);
    hone_text_put(t, ", \"op\": ");
    hone_text_json(t, n->program->name);
    if (*n->program->domain) {
        hone_text_put(t, ", \"domain\": ");
        hone_text_json(t, n->program->domain);
    }
    hone_text_put(t, ", \"attributes\": {");
    for (int k = 0; k < n->n_attr; k++) {
        if (k) hone_text_put(t, ", ");
        hone_text_json(t, n->attr[k].name);
        hone_text_put(t, ": ");
        put_attr(n->attr + k, t);
    }
    hone_text_put(t, "}");
}
static void put_ids(const hone_vid *id, int n, hone_text *t) {
    hone_text_put(t, "[");
    for (int k = 0; k < n; k++) hone_text_put(t, k ? ", %d" : "%d", (int)id[k]);
    hone_text_put(t, "]");
}
static bool put_node(list *all, int me, const hone_node *n, hone_text *t) {
    static const char *const runs[] = {"program", "view", "host", "control"};
    const hone_graph *g = all->at[me].graph;
    hone_counts c = hone_node_counts(g, n, NULL);
    hone_text_put(t, "{");
    put_what(n, t);
    hone_text_put(t, ", \"runs\": \"%s\", \"in\": ", runs[n->program->runs]);
    put_ids(n->in, n->n_in, t);
    hone_text_put(t, ", \"out\": ");
    put_ids(n->out, n->n_out, t);
    hone_text_put(t, ", \"flops\": %.0f, \"bytes\": %.0f, \"parameters\": %lld, \"known\": %s, \"parts\": [",
                  c.flops, c.bytes_read + c.bytes_written, (long long)c.parameters,
                  c.known ? "true" : "false");
    for (int k = 0; k < n->n_part; k++) {
        hone_text_put(t, k ? ", {" : "{");
        put_what(n->part[k], t);
        hone_text_put(t, "}");
    }
    hone_text_put(t, "], \"bodies\": [");
    for (int k = 0; k < n->n_body; k++) {
        listed body = {.graph = n->body[k]};
        hone_text_put(&body.title, "%s / %s / %s", all->at[me].title.text, n->name,
                      n->body[k]->name && *n->body[k]->name ? n->body[k]->name : "body");
        if (body.title.failed || !hone_push(all, body)) {
            hone_text_free(&body.title);
            return false;
        }
        hone_text_put(t, k ? ", %d" : "%d", all->n - 1);
    }
    hone_text_put(t, "]}");
    return true;
}
static bool put_graph(list *all, int me, hone_text *t) {
    const hone_graph *g = all->at[me].graph;
    hone_text_put(t, "{\"title\": ");
    hone_text_json(t, all->at[me].title.text);
    hone_text_put(t, ", \"inputs\": ");
    put_ids(g->in.at, g->in.n, t);
    hone_text_put(t, ", \"outputs\": ");
    put_ids(g->out.at, g->out.n, t);
    hone_text_put(t, ",\n\"vars\": [");
    for (int k = 0; k < g->var.n; k++) {
        const hone_var *v = g->var.at + k;
        hone_text_put(t, "%s{\"name\": ", k ? ",\n" : "");
        hone_text_json(t, v->name);
        hone_text_put(t, ", \"type\": ");
        put_type(g, v, t);
        if (v->value) hone_text_put(t, ", \"constant\": "), put_constant(v->value, t);
        hone_text_put(t, "}");
    }
    hone_text_put(t, "],\n\"nodes\": [");
    for (int k = 0; k < g->node.n; k++) {
        if (k) hone_text_put(t, ",\n");
        if (!put_node(all, me, g->node.at[k], t)) return false;
    }
    hone_text_put(t, "]}");
    return true;
}
hone_status hone_report_graph(const hone_graph *g, hone_text *t) {
    list all = {0};
    listed first = {.graph = g};
    hone_text_put(&first.title, "main");
    bool ok = !first.title.failed && hone_push(&all, first);
    if (!ok) hone_text_free(&first.title);
    hone_text_put(t, "[");
    for (int k = 0; ok && k < all.n; k++) { /* grows as bodies are met */
        if (k) hone_text_put(t, ",\n");
        ok = put_graph(&all, k, t);
    }
    hone_text_put(t, "]");
    for (int k = 0; k < all.n; k++) hone_text_free(&all.at[k].title);
    hone_vec_free(&all);
    return ok ? HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory for a report");
}
hone_status hone_file_graph(const char *path, char **out) {
    if (!path || !out) return hone_fail(HONE_BAD_INPUT, "hone_file_graph: path and out must not be NULL");
    const hone_library *lib;
    hone_graph *g;
    hone_text t = {0};
    HONE_TRY(hone_library_builtin(&lib));
    bool zoo = !strncmp(path, HONE_ZOO_PREFIX, strlen(HONE_ZOO_PREFIX));
    HONE_TRY(zoo ? hone_zoo_graph(path, lib, &g) : hone_onnx_load(path, lib, &g));
    hone_status s = hone_graph_infer(g);
    if (!s) s = hone_report_graph(g, &t);
    hone_graph_destroy(g);
    if (s) {
        hone_text_free(&t);
        return s;
    }
    return hone_text_give(&t, out);
}
