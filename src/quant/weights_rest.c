/* SPDX-License-Identifier: Apache-2.0
   weights_rest: weights that no product of few bits takes: of convolutions and recurrent cells, and of all
   that lies in bodies of If, Loop and Scan. They get 8 bits with a scale a row and stay operands of the same
   node:

        Conv(x, w)   ─▶   Conv(x, DequantizeLinear(levels, scales, zero points))        standard ONNX

   What is computed does not change, and nothing runs faster: the file is smaller. */
#include <math.h>
#include <string.h>

#include "quant/weights_form.h"

/* ---- which -------------------------------------------------------------------------------------------- */
/* Operands that are weights, and the dim along which each index has a scale of its own: -1 is the last one,
   FIRST the first that is not 1. Tables are weights of their own kind. */
enum { FIRST = -2 };
static const struct {
    const char *op;
    int first, last, axis;
    bool table;
} weights[] = {
    {"Conv", 1, 1, FIRST, false}, {"ConvTranspose", 1, 1, FIRST, false}, {"MatMul", 1, 1, -1, false},
    {"Gemm", 1, 1, -1, false},    {"LSTM", 1, 2, FIRST, false},          {"GRU", 1, 2, FIRST, false},
    {"RNN", 1, 2, FIRST, false},  {"Gather", 0, 0, FIRST, true},         {0},
};

typedef struct scope {
    hone_graph *graph;
    const hone_node *of; /* whose body it is */
    const struct scope *up;
} scope;
typedef struct {
    hone_graph *graph;
    hone_vid var;
} place;
/* The constant that a var is, here or where it is captured from. */
static bool constant(const scope *s, hone_vid v, place *out) {
    while (v >= 0 && !s->graph->var.at[v].value) {
        const hone_graph *g = s->graph;
        int k = 0;
        while (k < g->in.n && g->in.at[k] != v) k++;
        if (!s->up || k < g->n_formal || k >= g->in.n) return false;
        v = s->of->in[s->of->n_in - s->of->n_capture + k - g->n_formal], s = s->up;
    }
    *out = (place){s->graph, v};
    return v >= 0;
}
/* The dim with scales, where operand `k` of a node is weights; else -1. */
static int axis_of(const hone_node *n, int k, const hone_value *c, bool tables) {
    int w = 0;
    while (weights[w].op && !hone_quant_is(n, weights[w].op)) w++;
    if (!weights[w].op || k < weights[w].first || k > weights[w].last || weights[w].table != tables ||
        (tables && (c->rank != 2 || hone_attr_int(n->attr, n->n_attr, "axis", 0))))
        return -1;
    if (weights[w].axis != FIRST) {
        const bool transposed = hone_quant_is(n, "Gemm") && hone_attr_int(n->attr, n->n_attr, "transB", 0);
        return c->rank - (transposed ? 2 : 1);
    }
    for (int a = 0; a < c->rank; a++)
        if (c->dim[a] > 1) return a;
    return -1;
}
static bool fits(const hone_value *c) {
    if (c->tag != HONE_TAG_TENSOR || c->dtype != HONE_DTYPE_F32 || c->rank < 2 || c->from) return false;
    const int64_t count = hone_value_count(c);
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(((const float *)c->data)[i])) return false;
    return count >= HONE_WEIGHTS_REST;
}
static hone_weights_rest *entry(hone_weights_job *w, place p) {
    for (int k = 0; k < w->rest.n; k++)
        if (w->rest.at[k].graph == p.graph && w->rest.at[k].var == p.var) return w->rest.at + k;
    return hone_push(&w->rest, ((hone_weights_rest){.graph = p.graph, .var = p.var}))
               ? w->rest.at + w->rest.n - 1
               : NULL;
}
static hone_status look(hone_weights_job *w, const scope *s) {
    place p;
    for (int k = 0; k < s->graph->node.n; k++) {
        hone_node *n = s->graph->node.at[k];
        for (int i = 0; i < n->n_in - n->n_capture; i++) {
            if (!constant(s, n->in[i], &p)) continue;
            const hone_value *c = p.graph->var.at[p.var].value;
            if (!fits(c)) continue;
            const int axis = axis_of(n, i, c, w->tables);
            hone_weights_rest *e = entry(w, p);
            if (!e) return hone_quant_no_memory();
            if (axis < 0 || (e->reader && e->axis != axis)) e->other = true;
            if (!e->reader) e->reader = n, e->axis = axis;
        }
        for (int b = 0; b < n->n_body; b++)
            HONE_TRY(look(w, &(scope){.graph = n->body[b], .of = n, .up = s}));
    }
    for (int k = 0; k < s->graph->out.n; k++) { /* an answer is no weight */
        if (!constant(s, s->graph->out.at[k], &p)) continue;
        hone_weights_rest *e = entry(w, p);
        if (!e) return hone_quant_no_memory();
        e->other = true;
    }
    return HONE_OK;
}
static bool taken(const hone_weights_job *w, const hone_weights_rest *e) {
    for (int k = 0; k < w->layer.n; k++)
        if (e->graph == w->job->graph && w->layer.at[k].var == e->var) return true;
    return false;
}
hone_status hone_weights_rest_find(hone_weights_job *w) {
    const scope whole = {.graph = w->job->graph};
    int kept = 0;
    HONE_TRY(look(w, &whole));
    for (int k = 0; k < w->rest.n; k++)
        if (!w->rest.at[k].other && !taken(w, w->rest.at + k)) w->rest.at[kept++] = w->rest.at[k];
    w->rest.n = kept;
    return HONE_OK;
}

/* ---- rounding ----------------------------------------------------------------------------------------- */
/* Element i of the tensor belongs to row (i / inner) % n. A cell for both directions has rows of its last
   dim: an axis has one scale an index, and they share none. */
typedef struct {
    int64_t n, inner, k;
    bool block; /* scales for each row of the last dim, written as one block each */
} rows_of;
static rows_of rows_in(const hone_value *c, int axis, const hone_node *reader) {
    rows_of r = {.n = c->dim[axis], .inner = 1};
    const int64_t count = hone_value_count(c);
    r.block = axis == 0 && c->rank == 3 && !hone_quant_is(reader, "Conv") &&
              !hone_quant_is(reader, "ConvTranspose") && !hone_quant_is(reader, "MatMul");
    if (r.block) r.n = c->dim[0] * c->dim[1], r.inner = c->dim[2];
    for (int a = axis + 1; !r.block && a < c->rank; a++) r.inner *= c->dim[a];
    r.k = count / r.n;
    return r;
}
static int64_t at_row(const rows_of *r, int64_t i) {
    return i / r->inner % r->n * r->k + i / (r->inner * r->n) * r->inner + i % r->inner;
}
static hone_value *like(const hone_value *c, hone_dtype t) {
    hone_value *v = NULL;
    return hone_value_tensor(t, c->dim, c->rank, &v) ? NULL : v;
}
static hone_value *scales_like(const hone_value *c, const rows_of *r, hone_dtype t) {
    const int64_t dim[] = {r->block ? c->dim[0] : r->n, r->block ? c->dim[1] : 1, 1};
    hone_value *v = NULL;
    return hone_value_tensor(t, dim, r->block ? 3 : 1, &v) ? NULL : v;
}
/* The floats that levels mean, and a note of the levels, for export. */
static hone_value *noted(const hone_value *c, const rows_of *r, const hone_weights *q, int axis) {
    const hone_dtype t = q->kind->stored[q->symmetric];
    hone_value *made = like(c, HONE_DTYPE_F32), *levels = like(c, t),
               *scales = scales_like(c, r, HONE_DTYPE_F32),
               *zeros = q->symmetric ? NULL : scales_like(c, r, t);
    if (made && levels && scales && (zeros || q->symmetric)) {
        for (int64_t i = 0, count = hone_value_count(c); i < count; i++) {
            const int64_t at = at_row(r, i);
            ((float *)made->data)[i] = hone_weights_value(q, at / r->k, at % r->k);
            hone_weights_put(q, t, (uint8_t *)levels->data + i, q->level[at]);
        }
        memcpy(scales->data, q->scale, sizeof *q->scale * (size_t)r->n);
        if (zeros) memcpy(zeros->data, q->zero, (size_t)r->n);
        hone_value_note(made, levels, scales, zeros, r->block ? 2 : axis, r->block ? r->inner : 0);
    }
    hone_value_drop(levels), hone_value_drop(scales), hone_value_drop(zeros);
    if (made && made->from) return made;
    hone_value_drop(made);
    return NULL;
}
static hone_status one(const hone_weights_job *w, hone_weights_rest *e) {
    hone_var *var = e->graph->var.at + e->var;
    const hone_value *c = var->value;
    const rows_of r = rows_in(c, e->axis, e->reader);
    const int64_t count = hone_value_count(c);
    const float *from = c->data;
    hone_weights q;
    double lost = 0, all = 0;
    e->kind = w->kind->bits == 8 ? w->kind : hone_weights_kind_find("int8");
    if (!hone_weights_make(&q, e->kind, w->wish.symmetric != 0, r.n, r.k, r.k)) return hone_quant_no_memory();
    float *rows = hone_alloc(sizeof *rows * (size_t)count);
    for (int64_t i = 0; rows && i < count; i++) rows[at_row(&r, i)] = from[i];
    if (rows) hone_weights_round(&q, rows, w->job->wish->threads);
    hone_free(rows);
    hone_value *made = rows ? noted(c, &r, &q, e->axis) : NULL;
    hone_weights_free(&q);
    if (!made) return hone_quant_no_memory();
    for (int64_t i = 0; i < count; i++) {
        const double v = (double)from[i], d = v - (double)((const float *)made->data)[i];
        lost += d * d, all += v * v;
    }
    e->lost = all > 0 ? lost / all : 0, e->n = r.n, e->k = r.k;
    for (int k = 0; k < w->rest.n; k++) { /* bodies may hold one constant between them: it stays one */
        hone_weights_rest *b = w->rest.at + k;
        hone_var *other = b->graph->var.at + b->var;
        if (other == var || other->value != c || b->axis != e->axis) continue;
        b->kind = e->kind, b->lost = e->lost, b->n = e->n, b->k = e->k;
        hone_value_drop(other->value), other->value = hone_value_hold(made);
    }
    hone_value_drop(var->value), var->value = made;
    return HONE_OK;
}
hone_status hone_weights_rest_round(hone_weights_job *w) {
    for (int k = 0; k < w->rest.n; k++) {
        const char *name = w->rest.at[k].graph->var.at[w->rest.at[k].var].name;
        HONE_TRY(hone_quant_tell(w->job, (double)k / w->rest.n, name));
        if (!w->rest.at[k].graph->var.at[w->rest.at[k].var].value->from) HONE_TRY(one(w, w->rest.at + k));
    }
    return HONE_OK;
}
hone_status hone_quant_tables(hone_quant_job *job) {
    hone_weights_job w = {.job = job, .kind = hone_weights_kind_find("int8"), .tables = true};
    w.wish.symmetric = 1;
    hone_status s = hone_weights_rest_find(&w);
    if (!s) s = hone_weights_rest_round(&w);
    hone_text_put(job->report, ", \"tables\": [");
    for (int k = 0; k < w.rest.n; k++) {
        hone_text_put(job->report, "%s", k ? ", " : "");
        hone_text_json(job->report, w.rest.at[k].graph->var.at[w.rest.at[k].var].name);
    }
    hone_text_put(job->report, "]");
    hone_vec_free(&w.rest);
    return s;
}
