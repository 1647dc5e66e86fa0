/* SPDX-License-Identifier: Apache-2.0
   weights: the form that makes matrices smaller and leaves what is computed between them as it is: int8,
   int4, nf4 or f8 in blocks along the rows of a product.

        MatMul(x, w: f32[K, N])   ─▶   MatMulNBits(x, levels, scales, zero points)          format "nbits":
          com.microsoft's op, which ONNX Runtime, OpenVINO and Hone multiply from where the weights lie
                                  ─▶   MatMul(x, DequantizeLinear(levels, scales, …))       format "qdq":
                                    standard ONNX, opset 21

   Without samples each block is rounded with the scale that loses least; with samples levels are those that
   lose least at the layer's output (weights_learn.c). Tables of embeddings are in int8 as a rule: each
   of their numbers is used by itself, so that no other makes up for what it loses. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "quant/weights_form.h"

enum { LEAST_ROWS = 16, LEAST_TABLE = 4096, BLOCK = 32, MOST_BLOCK = 1 << 20 };

/* ---- wishes -------------------------------------------------------------------------------------------- */
static hone_status kind_of(const char *what, const char *name, const hone_weights_kind **out) {
    *out = hone_weights_kind_find(name);
    return *out ? HONE_OK
                : hone_fail(HONE_BAD_INPUT, "%s '%.40s': there are %s", what, name, hone_weights_kinds());
}
static hone_status read_wish(hone_weights_job *w) {
    hone_quantizing_weights *v = &w->wish;
    if (w->job->wish->more) *v = *(const hone_quantizing_weights *)w->job->wish->more;
    if (w->dynamic) v->type = "int8", v->method = "round", v->format = "nbits"; /* the one way there is */
    if (!v->type) v->type = "int4";
    if (!v->tables) v->tables = "int8";
    if (!v->format) v->format = strcmp(v->type, "f8") != 0 ? "nbits" : "qdq";
    if (!v->method) v->method = w->job->wish->data.n > 0 ? "gptq" : "round";
    if (!v->block) v->block = BLOCK;
    if (!(v->damping > 0)) v->damping = 0.1;
    v->sweeps = v->sweeps < 0 ? 0 : v->sweeps == 0 ? 12 : v->sweeps;
    HONE_TRY(kind_of("weights of type", v->type, &w->kind));
    if (strcmp(v->tables, "none") != 0) HONE_TRY(kind_of("tables of type", v->tables, &w->table_kind));
    w->written = !strcmp(v->format, "qdq");
    if (!w->written && strcmp(v->format, "nbits") != 0)
        return hone_fail(HONE_BAD_INPUT,
                         "format '%.40s': there are nbits (com.microsoft's ops) and qdq (DequantizeLinear)",
                         v->format);
    if (strcmp(v->method, "round") != 0 && strcmp(v->method, "gptq") != 0)
        return hone_fail(HONE_BAD_INPUT, "method '%.40s': there are round and gptq", v->method);
    if (!strcmp(v->method, "gptq") && w->job->wish->data.n < 1)
        return hone_fail(
            HONE_BAD_INPUT,
            "method gptq needs samples of what the model is given; without them there is method round");
    if (v->block != -1 && (v->block < LEAST_ROWS || v->block > MOST_BLOCK || v->block & (v->block - 1)))
        return hone_fail(HONE_BAD_INPUT,
                         "blocks of %d: a power of two of at least %d, or -1 for one a column", v->block,
                         LEAST_ROWS);
    if (!w->written && !strcmp(v->type, "f8"))
        return hone_fail(HONE_BAD_INPUT, "weights of f8 have format qdq only: MatMulNBits has no floats");
    if (w->written && !strcmp(v->type, "nf4"))
        return hone_fail(
            HONE_BAD_INPUT,
            "weights of nf4 have format nbits only: ONNX's DequantizeLinear does not know the type");
    if (!strcmp(v->tables, "nf4"))
        return hone_fail(HONE_BAD_INPUT,
                         "tables of nf4: no op gathers from them; there are int8, int4 and none");
    if (!strcmp(v->tables, "f8") && !w->written)
        return hone_fail(HONE_BAD_INPUT, "tables of f8 have format qdq only");
    return HONE_OK;
}
/* the block that a matrix of so many rows gets */
static int64_t block_of(const hone_weights_job *w, int64_t k) {
    int64_t block = w->wish.block;
    if (block > 0) return block;
    if (w->written) return k;
    for (block = LEAST_ROWS; block < k;) block *= 2;
    return block;
}

/* ---- which matrices ------------------------------------------------------------------------------------ */
static const hone_value *matrix(const hone_graph *g, hone_vid v) {
    const hone_value *c = v >= 0 ? g->var.at[v].value : NULL;
    return c && c->tag == HONE_TAG_TENSOR && c->dtype == HONE_DTYPE_F32 && c->rank == 2 && c->dim[0] > 0 &&
                   c->dim[1] > 0
               ? c
               : NULL;
}
static bool multiplies(const hone_weights_job *w, const hone_node *n, bool *transposed) {
    const hone_graph *g = w->job->graph;
    const hone_value *c = n->n_in > 1 ? matrix(g, n->in[1]) : NULL;
    *transposed = false;
    if (!c || n->in[0] < 0 || g->var.at[n->in[0]].value || g->var.at[n->in[0]].dtype != HONE_DTYPE_F32)
        return false;
    if (hone_quant_is(n, "Gemm")) {
        *transposed = hone_attr_int(n->attr, n->n_attr, "transB", 0) != 0;
        if (hone_attr_int(n->attr, n->n_attr, "transA", 0)) return false;
        if (!w->written && (hone_attr_float(n->attr, n->n_attr, "alpha", 1) != 1 ||
                            hone_attr_float(n->attr, n->n_attr, "beta", 1) != 1))
            return false;
    } else if (!hone_quant_is(n, "MatMul")) {
        return false;
    }
    const int64_t k = c->dim[*transposed ? 1 : 0];
    if (k < LEAST_ROWS) return false;
    return w->written || strcmp(w->kind->name, "nf4") != 0 ||
           k % block_of(w, k) == 0; /* bnb4's blocks do not end with a column */
}
static bool gathers(const hone_weights_job *w, const hone_node *n) {
    const hone_value *c =
        w->table_kind && hone_quant_is(n, "Gather") ? matrix(w->job->graph, n->in[0]) : NULL;
    return c && hone_attr_int(n->attr, n->n_attr, "axis", 0) == 0 && hone_value_count(c) >= LEAST_TABLE &&
           c->dim[1] >= LEAST_ROWS;
}
static hone_status take(hone_weights_job *w, int node, hone_vid var, bool transposed, bool table) {
    for (int k = 0; k < w->layer.n; k++) {
        hone_weights_layer *a = w->layer.at + k;
        if (a->var != var || (a->table != table && !w->written)) continue;
        if (a->transposed != transposed || a->table != table) return HONE_OK; /* one form of it is enough */
        return hone_push(&a->reader, node) ? HONE_OK : hone_quant_no_memory();
    }
    const hone_value *c = w->job->graph->var.at[var].value;
    if (!hone_push(&w->layer, ((hone_weights_layer){.var = var,
                                                    .transposed = transposed,
                                                    .table = table,
                                                    .n = c->dim[transposed ? 0 : 1],
                                                    .k = c->dim[transposed ? 1 : 0],
                                                    .lost_out = -1})))
        return hone_quant_no_memory();
    return hone_push(&w->layer.at[w->layer.n - 1].reader, node) ? HONE_OK : hone_quant_no_memory();
}
static hone_status find(hone_weights_job *w) {
    const hone_graph *g = w->job->graph;
    bool transposed;
    for (int k = 0; k < g->node.n; k++)
        if (multiplies(w, g->node.at[k], &transposed))
            HONE_TRY(take(w, k, g->node.at[k]->in[1], transposed, false));
    for (int k = 0; k < g->node.n; k++)
        if (gathers(w, g->node.at[k])) HONE_TRY(take(w, k, g->node.at[k]->in[0], true, true));
    for (int k = 0; k < w->layer.n; k++) {
        hone_weights_layer *a = w->layer.at + k;
        const hone_weights_kind *kind = a->table ? w->table_kind : w->kind;
        const bool bytes = w->dynamic && !a->table; /* one scale a column, no zero points */
        if (!hone_weights_make(&a->q, kind, bytes || w->wish.symmetric != 0, a->n, a->k,
                               bytes ? a->k : block_of(w, a->k)))
            return hone_quant_no_memory();
        const float *at = g->var.at[a->var].value->data;
        for (int64_t i = 0; i < a->n * a->k; i++)
            if (!isfinite(at[i]))
                return hone_fail(HONE_BAD_INPUT,
                                 "weights '%.100s' have a number that is infinite or not a number: they "
                                 "cannot be quantized",
                                 g->var.at[a->var].name);
    }
    if (!w->dynamic) HONE_TRY(hone_weights_rest_find(w));
    if (w->layer.n || w->rest.n) return HONE_OK;
    if (!w->dynamic)
        return hone_fail(HONE_NOT_SUPPORTED,
                         "model '%s' has no weights for this form: no constant matrix of f32 "
                         "with at least %d rows, no table, no other weights of at least %d numbers",
                         w->job->model, LEAST_ROWS, HONE_WEIGHTS_REST);
    return hone_quant_nothing(g, HONE_NOT_SUPPORTED, w->job->model,
                              "MatMul, Gemm or Gather with a constant matrix of f32 outside of bodies: there "
                              "are no weights for this form");
}
float *hone_weights_rows(const hone_weights_job *w, const hone_weights_layer *a) {
    const float *from = w->job->graph->var.at[a->var].value->data;
    float *to = hone_alloc(sizeof *to * (size_t)(a->n * a->k)); /* no more than the value has */
    if (to && a->transposed) memcpy(to, from, sizeof *to * (size_t)(a->n * a->k));
    enum { TILE = 32 };
    for (int64_t k0 = 0; to && !a->transposed && k0 < a->k; k0 += TILE)
        for (int64_t n = 0; n < a->n; n++)
            for (int64_t k = k0; k < k0 + TILE && k < a->k; k++) to[n * a->k + k] = from[k * a->n + n];
    return to;
}

/* ---- writing ------------------------------------------------------------------------------------------- */
static const hone_weights_layer *layer_of(const hone_weights_job *w, int node) {
    for (int k = 0; k < w->layer.n; k++)
        for (int r = 0; r < w->layer.at[k].reader.n; r++)
            if (w->layer.at[k].reader.at[r] == node) return w->layer.at + k;
    return NULL;
}
typedef struct { /* operands of one matrix, made once for all its readers */
    hone_vid q, scale, zero;
} operands;
static hone_vid named(hone_quant_edit *e, const hone_weights_layer *a, const char *what, hone_value *take_) {
    char name[160];
    snprintf(name, sizeof name, "%.120s_%s", e->graph->var.at[a->var].name, what);
    return hone_quant_constant(e, name, take_);
}
static operands operands_of(hone_quant_edit *e, const hone_weights_layer *a, bool dynamic) {
    const bool nf4 = !a->q.kind->uniform;
    operands o = {.zero = -1};
    if (dynamic && !a->table) {
        o.q = named(e, a, "levels", hone_weights_levels(&a->q, false, false)),
        o.scale = named(e, a, "scales", hone_weights_scales(&a->q, false, true));
        return o;
    }
    o.q = named(e, a, "levels",
                nf4        ? hone_weights_bnb4(&a->q)
                : a->table ? hone_weights_levels(&a->q, true, a->q.kind->bits == 8)
                           : hone_weights_packed(&a->q));
    o.scale = named(e, a, "scales", hone_weights_scales(&a->q, false, nf4));
    if (!a->q.symmetric)
        o.zero = named(e, a, "zeros",
                       a->table ? hone_weights_zeros(&a->q, true) : hone_weights_packed_zeros(&a->q));
    return o;
}
static void put_product(hone_quant_edit *e, const hone_weights_layer *a, const hone_node *n,
                        const operands *o) {
    const hone_vid in[] = {n->in[0], o->q, o->scale, o->zero},
                   bias = hone_quant_is(n, "Gemm") && n->n_in > 2 ? n->in[2] : -1;
    const bool nf4 = !a->q.kind->uniform;
    const hone_attr attr[] = {HONE_QUANT_INT("K", a->k), HONE_QUANT_INT("N", a->n),
                              HONE_QUANT_INT("block_size", a->q.block),
                              HONE_QUANT_INT("bits", a->q.kind->bits)},
                    bnb[] = {attr[0], attr[1], attr[2], HONE_QUANT_INT("quant_type", 1)};
    const hone_vid y =
        hone_quant_put(e, nf4 ? "com.microsoft.MatMulBnb4" : "com.microsoft.MatMulNBits", n->name, in,
                       o->zero < 0 ? 3 : 4, bias < 0 ? n->out[0] : -1, nf4 ? bnb : attr, 4);
    if (bias >= 0) hone_quant_put(e, "Add", n->name, (const hone_vid[]){y, bias}, 2, n->out[0], NULL, 0);
}
/* GatherBlockQuantized takes 8 bits as u8 only, around 128 where there is no zero point. */
static void put_gather(hone_quant_edit *e, const hone_weights_layer *a, const hone_node *n,
                       const operands *o) {
    const hone_vid in[] = {o->q, n->in[1], o->scale, o->zero};
    const hone_attr attr[] = {HONE_QUANT_INT("block_size", a->q.block), HONE_QUANT_INT("quantize_axis", 1),
                              HONE_QUANT_INT("gather_axis", 0), HONE_QUANT_INT("bits", a->q.kind->bits)};
    hone_quant_put(e, "com.microsoft.GatherBlockQuantized", n->name, in, o->zero < 0 ? 3 : 4, n->out[0], attr,
                   a->q.kind->bits == 8 ? 4 : 3);
}
static hone_status write_nbits(hone_weights_job *w) {
    hone_quant_edit e = hone_quant_edit_open(w->job);
    const int nodes = e.graph->node.n;
    hone_weights_rounded rounded = {0};
    operands *of = hone_alloc(sizeof *of * (size_t)(w->layer.n + 1));
    if (!of) return hone_quant_no_memory();
    for (int k = 0; k < w->layer.n && !e.status; k++) of[k] = operands_of(&e, w->layer.at + k, w->dynamic);
    for (int k = 0; k < nodes && !e.status; k++) {
        hone_node *n = e.graph->node.at[k];
        const hone_weights_layer *a = layer_of(w, k);
        if (!a) hone_quant_keep(&e, n);
        else if (a->table) put_gather(&e, a, n, of + (a - w->layer.at));
        else if (w->dynamic)
            hone_weights_put_dynamic(&e, a, n, of[a - w->layer.at].q, of[a - w->layer.at].scale, &rounded);
        else put_product(&e, a, n, of + (a - w->layer.at));
    }
    hone_free(of);
    hone_vec_free(&rounded);
    return hone_quant_edit_close(&e);
}
/* The constant is what it is dequantized to, and knows of what: export writes it so. */
static hone_status write_qdq(hone_weights_job *w) {
    hone_graph *g = w->job->graph;
    for (int k = 0; k < w->layer.n; k++) {
        const hone_weights_layer *a = w->layer.at + k;
        hone_value *v = hone_weights_floats(&a->q, a->transposed, true);
        if (!v) return hone_quant_no_memory();
        hone_value_drop(g->var.at[a->var].value);
        g->var.at[a->var].value = v;
    }
    return HONE_OK;
}

/* ---- the form ------------------------------------------------------------------------------------------ */
static hone_status round_all(hone_weights_job *w, bool tables) {
    for (int k = 0; k < w->layer.n; k++) {
        hone_weights_layer *a = w->layer.at + k;
        if (a->table != tables) continue;
        HONE_TRY(hone_quant_tell(w->job, (double)k / w->layer.n, w->job->graph->var.at[a->var].name));
        float *rows = hone_weights_rows(w, a);
        if (!rows) return hone_quant_no_memory();
        for (int64_t i = 0; a->by && i < a->n * a->k; i++) rows[i] /= a->by[i % a->k];
        hone_weights_round(&a->q, rows, w->job->wish->threads);
        hone_free(rows);
    }
    return HONE_OK;
}
static hone_status measure(const hone_weights_job *w) {
    for (int k = 0; k < w->layer.n; k++) {
        hone_weights_layer *a = w->layer.at + k;
        float *rows = hone_weights_rows(w, a);
        double lost = 0, all = 0;
        if (!rows) return hone_quant_no_memory();
        for (int64_t n = 0; n < a->n; n++)
            for (int64_t i = 0; i < a->k; i++) {
                const double v = (double)rows[n * a->k + i],
                             e = v - (double)hone_weights_value(&a->q, n, i) * (a->by ? (double)a->by[i] : 1);
                lost += e * e, all += v * v;
            }
        hone_free(rows);
        a->lost = all > 0 ? lost / all : 0;
    }
    return HONE_OK;
}
static void put_db(hone_text *t, const char *name, double lost) {
    if (lost > 0) hone_text_put(t, ", \"%s\": %.2f", name, -10 * log10(lost));
}
static void tell(const hone_weights_job *w) {
    const hone_graph *g = w->job->graph;
    hone_text *t = w->job->report;
    hone_text_put(t, ", \"type\": \"%s\", \"method\": \"%s\", \"format\": \"%s\", \"matrices\": [",
                  w->kind->name, w->wish.method, w->wish.format);
    for (int k = 0; k < w->layer.n; k++) {
        const hone_weights_layer *a = w->layer.at + k;
        hone_text_put(t, "%s{\"name\": ", k ? ", " : "");
        hone_text_json(t, g->var.at[a->var].name);
        hone_text_put(t, ", \"node\": ");
        hone_text_json(t, g->node.at[a->reader.at[0]]->name);
        hone_text_put(t,
                      ", \"table\": %s, \"type\": \"%s\", \"rows\": %lld, \"columns\": %lld, \"block\": %lld",
                      a->table ? "true" : "false", a->q.kind->name, (long long)a->k, (long long)a->n,
                      (long long)a->q.block);
        put_db(t, "weights_db", a->lost), put_db(t, "output_db", a->lost_out);
        if (a->lost_out >= 0) hone_text_put(t, ", \"seen\": %lld", (long long)a->rows);
        hone_text_put(t, "%s}", a->by ? ", \"smoothed\": true" : "");
    }
    for (int k = 0; k < w->rest.n; k++) {
        const hone_weights_rest *a = w->rest.at + k;
        hone_text_put(t, "%s{\"name\": ", k || w->layer.n ? ", " : "");
        hone_text_json(t, a->graph->var.at[a->var].name);
        hone_text_put(t, ", \"node\": ");
        hone_text_json(t, a->reader->name);
        hone_text_put(
            t, ", \"table\": false, \"type\": \"%s\", \"rows\": %lld, \"columns\": %lld, \"block\": %lld",
            a->kind->name, (long long)a->k, (long long)a->n, (long long)a->k);
        put_db(t, "weights_db", a->lost);
        hone_text_put(t, "}");
    }
    hone_text_put(t, "]");
}
static hone_status work(hone_quant_job *job, bool dynamic) {
    hone_weights_job w = {.job = job, .dynamic = dynamic};
    hone_graph_index(job->graph);
    hone_status s = read_wish(&w);
    if (!s) s = find(&w);
    const bool learns = !s && !strcmp(w.wish.method, "gptq");
    if (!s) s = round_all(&w, true);
    if (!s && dynamic && job->wish->data.n > 0) s = hone_weights_smooth(&w);
    if (!s) s = learns ? hone_weights_learn(&w) : round_all(&w, false);
    if (!s) s = measure(&w);
    if (!s) s = hone_weights_rest_round(&w);
    if (!s) tell(&w);
    if (!s) s = w.written ? write_qdq(&w) : write_nbits(&w);
    for (int k = 0; k < w.layer.n; k++) {
        hone_weights_free(&w.layer.at[k].q);
        hone_vec_free(&w.layer.at[k].reader);
        hone_free(w.layer.at[k].by);
    }
    hone_vec_free(&w.layer), hone_vec_free(&w.rest);
    return s;
}
hone_status hone_quant_weights(hone_quant_job *job) { return work(job, false); }
hone_status hone_quant_dynamic(hone_quant_job *job) { return work(job, true); }
