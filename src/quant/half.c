/* SPDX-License-Identifier: Apache-2.0
   half: a model whose weights are f16 or bf16, as standard ONNX. Inputs and outputs keep their types; so do
   norms, softmax, sums over dims and bodies of control flow.

        x: f32 ─Cast─▶ f16 ─▶ Conv ─▶ Relu ─▶ Conv ─Cast─▶ f32 ─▶ Softmax

   f16: products and convolutions with constant weights run in f16, and so does what only hands on or joins
   their results, where it stands between two of them: otherwise each of them would be
   between two Casts. Tables that rows are gathered from are f16, their rows f32.
   bf16: weights are stored so, and a Cast makes them f32 where they are read: runtimes that compute in bf16
   do so by an option (--precision here), and ONNX Runtime's CPU has no product in it.

   Weights with a number beyond f16's range, or all below its normal numbers, stay f32, and the report names
   them. How large values between nodes become is only known from samples: where there are any,
   what comes within a quarter of the largest f16 stays f32 too. */
#include <math.h>
#include <string.h>

#include "quant/edit.h"

static const double most = 65504, least = 6.103515625e-05 /* the smallest normal f16 */, near = 65504 / 4.0;

enum { PLAIN, HALVES /* it runs in them */, STORES /* its weights are stored in them */ };
typedef struct {
    const hone_quant_job *job;
    hone_graph *graph;
    hone_dtype type;
    int n;         /* vars that there were */
    uint8_t *in;   /* a node */
    double *above; /* a var: the largest magnitude that samples showed; 0: none did */
    /* a var: its f16 form; a constant: stored in halves and made f32 again. -1: not made yet */
    hone_vid *half, *stored;
    hone_text kept; /* JSON of nodes that stay f32, and why */
    int n_kept, n_half;
} halving;

/* ---- which nodes --------------------------------------------------------------------------------------- */
static const char *const products[] = {"MatMul", "Gemm", "Conv", "ConvTranspose", NULL};
/* long sums: their weights are stored in halves only */
static const char *const cells[] = {"LSTM", "GRU", "RNN", NULL};
static const char *const between[] = {"Relu",      "LeakyRelu",    "Clip",         "Add",     "Mul",
                                      "MaxPool",   "Reshape",      "Transpose",    "Squeeze", "Flatten",
                                      "Unsqueeze", "Identity",     "Concat",       "Slice",   "Split",
                                      "Expand",    "DepthToSpace", "Pad",          "PRelu",   "Sigmoid",
                                      "HardSwish", "HardSigmoid",  "SpaceToDepth", NULL};
static bool listed(const hone_node *n, const char *const *list) {
    for (; *list; list++)
        if (hone_quant_is(n, *list)) return true;
    return false;
}
static bool is_f32(const halving *h, hone_vid v) {
    return v >= 0 && h->graph->var.at[v].tag == HONE_TAG_TENSOR &&
           h->graph->var.at[v].dtype == HONE_DTYPE_F32;
}
/* why a constant cannot be f16; NULL: it can */
static const char *misfit(const halving *h, const hone_value *v) {
    const float *at = v->data;
    float top = 0;
    for (int64_t k = 0, n = hone_value_count(v); k < n; k++) {
        if (!isfinite(at[k])) return "has numbers that are infinite or not a number";
        top = fmaxf(top, fabsf(at[k]));
    }
    if (h->type == HONE_DTYPE_F16 && top > most) return "has numbers beyond f16's largest, 65504";
    if (h->type == HONE_DTYPE_F16 && top > 0 && top < least)
        return "has only numbers below f16's smallest normal one";
    return NULL;
}
static void stays(halving *h, const hone_node *n, const char *what, const char *why) {
    hone_text_put(&h->kept, "%s{\"node\": ", h->n_kept++ ? ", " : "");
    hone_text_json(&h->kept, n->name);
    hone_text_put(&h->kept, ", \"op\": \"%s\", \"value\": ", n->program->name);
    hone_text_json(&h->kept, what);
    hone_text_put(&h->kept, ", \"why\": \"%s\"}", why);
}
/* All of its constants fit, and so do values that samples showed. */
static bool fits(halving *h, const hone_node *n, bool tell) {
    const hone_graph *g = h->graph;
    for (int k = 0; k < n->n_in + n->n_out; k++) {
        const hone_vid v = k < n->n_in ? n->in[k] : n->out[k - n->n_in];
        if (!is_f32(h, v)) continue;
        const char *why = g->var.at[v].value ? misfit(h, g->var.at[v].value)
                          : h->type == HONE_DTYPE_F16 && h->above[v] > near
                              ? "came near f16's largest number, 65504, on the samples"
                              : NULL;
        if (why && tell) stays(h, n, g->var.at[v].name, why);
        if (why) return false;
    }
    return true;
}
static bool has_weights(const halving *h, const hone_node *n) {
    bool constant = false;
    if (listed(n, cells)) return is_f32(h, n->in[1]) && h->graph->var.at[n->in[1]].value;
    for (int k = 0; k < n->n_in && k < 2; k++)
        constant |= is_f32(h, n->in[k]) && h->graph->var.at[n->in[k]].value;
    return constant && n->n_out == 1 && is_f32(h, n->out[0]);
}
static bool gathers(const halving *h, const hone_node *n) {
    return hone_quant_is(n, "Gather") && is_f32(h, n->in[0]) && h->graph->var.at[n->in[0]].value;
}
static void choose(halving *h) {
    const hone_graph *g = h->graph;
    for (int k = 0; k < g->node.n; k++) {
        const hone_node *n = g->node.at[k];
        if (n->n_body || n->part) continue;
        const bool cell = listed(n, cells), product = listed(n, products) || cell;
        if ((product && has_weights(h, n)) || gathers(h, n))
            h->in[k] = !fits(h, n, true)                                 ? PLAIN
                       : cell || (product && h->type == HONE_DTYPE_BF16) ? STORES
                                                                         : HALVES;
        else if (h->type == HONE_DTYPE_F16 && listed(n, between) && is_f32(h, n->out[0]) && fits(h, n, false))
            h->in[k] = HALVES;
        h->n_half += h->in[k] && !listed(n, between);
    }
    /* what hands on stays where its values come from halves, and one reader at least takes them */
    for (bool news = true; news;) {
        news = false;
        for (int k = 0; k < g->node.n; k++) {
            const hone_node *n = g->node.at[k];
            if (!h->in[k] || !listed(n, between)) continue;
            bool good = true, wanted = false;
            for (int q = 0; q < n->n_in; q++) {
                if (!is_f32(h, n->in[q]) || g->var.at[n->in[q]].value) continue;
                const int maker = g->var.at[n->in[q]].producer;
                good &= maker >= 0 && h->in[maker] == HALVES && !hone_quant_is(g->node.at[maker], "Gather");
            }
            for (int j = k + 1; good && j < g->node.n && !wanted; j++)
                for (int q = 0; q < g->node.at[j]->n_in && h->in[j] == HALVES; q++)
                    for (int o = 0; o < n->n_out; o++)
                        wanted |= n->out[o] >= 0 && g->node.at[j]->in[q] == n->out[o];
            if (!good || !wanted) h->in[k] = 0, news = true;
        }
    }
}

/* ---- how large values become --------------------------------------------------------------------------- */
static void see(halving *h, const hone_vid *v, hone_value *const *out, int n) {
    for (int k = 0; k < n; k++) {
        const float *at = out[k]->data;
        for (int64_t i = 0, many = hone_value_count(out[k]); i < many; i++)
            if (!(fabs((double)at[i]) <= h->above[v[k]]))
                h->above[v[k]] = isnan(at[i]) ? (double)INFINITY : fabs((double)at[i]);
    }
}
static hone_status measure(halving *h) {
    const hone_samples *d = &h->job->wish->data;
    const int64_t samples =
        h->job->wish->calibrate > 0 && h->job->wish->calibrate < d->n ? h->job->wish->calibrate : d->n;
    hone_graph *g = h->graph;
    hone_vec(hone_vid) seen = {0};
    hone_quant_run *run = NULL;
    if (!d->get || samples < 1 || h->type != HONE_DTYPE_F16) return HONE_OK;
    hone_status s = HONE_OK;
    for (int k = 0; k < g->node.n && !s; k++) {
        const hone_node *n = g->node.at[k];
        for (int q = 0; q < n->n_in + n->n_out && listed(n, products) && has_weights(h, n); q++) {
            const hone_vid v = q < n->n_in ? n->in[q] : n->out[q - n->n_in];
            if (is_f32(h, v) && !g->var.at[v].value && g->var.at[v].producer >= 0 && !hone_push(&seen, v))
                s = hone_quant_no_memory();
        }
    }
    hone_value **in = hone_alloc(sizeof *in * (size_t)(g->in.n + 1)),
               **out = hone_alloc(sizeof *out * (size_t)(seen.n + 1));
    if (!s && (!in || !out)) s = hone_quant_no_memory();
    if (!s) s = hone_quant_open(h->job, g, seen.at, seen.n, &run);
    for (int64_t k = 0; k < samples && !s; k++) {
        s = hone_quant_tell(h->job, (double)k / (double)samples, "how large values become");
        if (!s) s = hone_quant_sample(h->job, k, in);
        if (!s) s = h->job->runner.run(run, in, out);
        if (!s) see(h, seen.at, out, seen.n);
        for (int i = 0; i < seen.n; i++) hone_value_drop(out[i]), out[i] = NULL;
        for (int i = 0; i < g->in.n; i++) hone_value_drop(in[i]), in[i] = NULL;
    }
    if (run) h->job->runner.close(run);
    hone_free(in), hone_free(out);
    hone_vec_free(&seen);
    return s;
}

/* ---- the rewrite --------------------------------------------------------------------------------------- */
static hone_value *narrowed(const hone_value *v, hone_dtype t) {
    hone_value *to = NULL;
    if (hone_value_tensor(t, v->dim, v->rank, &to)) return NULL;
    hone_dtype_store_n(t, to->data, HONE_F32, v->data, (size_t)hone_value_count(v), false);
    return to;
}
static hone_vid half_of(halving *h, hone_quant_edit *e, hone_vid v) {
    if (h->half[v] >= 0) return h->half[v];
    const hone_value *c = h->graph->var.at[v].value;
    hone_vid made = -1;
    if (c) made = hone_quant_constant(e, h->graph->var.at[v].name, narrowed(c, h->type));
    else made = hone_quant_cast(e, v, -1, h->type);
    return h->half[v] = made;
}
static bool leaves(const halving *h, hone_vid v) { /* somebody wants it as f32 */
    const hone_graph *g = h->graph;
    for (int k = 0; k < g->out.n; k++)
        if (g->out.at[k] == v) return true;
    for (int k = g->var.at[v].producer + 1; k < g->node.n; k++)
        for (int q = 0; q < g->node.at[k]->n_in; q++)
            if (h->in[k] != HALVES && g->node.at[k]->in[q] == v) return true;
    return false;
}
/* Stored, and f32 again where it is read. */
static void weights_only(halving *h, hone_quant_edit *e, hone_node *n) {
    for (int k = 0; k < n->n_in; k++) {
        const hone_vid v = n->in[k];
        if (!is_f32(h, v) || !h->graph->var.at[v].value || h->graph->var.at[v].rank < 2) continue;
        const hone_vid small = h->stored[v] < 0 ? half_of(h, e, v) : -1;
        if (small >= 0) h->stored[v] = hone_quant_cast(e, small, -1, HONE_DTYPE_F32);
        n->in[k] = h->stored[v];
    }
    hone_quant_keep(e, n);
}
static hone_status rewrite(halving *h) {
    hone_quant_edit e = hone_quant_edit_open(h->job);
    hone_graph *g = h->graph;
    const int nodes = g->node.n;
    uint8_t *out32 = hone_alloc((size_t)h->n + 1);
    if (!out32) e.status = hone_quant_no_memory();
    for (int k = 0; k < nodes && !e.status; k++)
        for (int q = 0; q < g->node.at[k]->n_out && h->in[k] == HALVES; q++)
            if (is_f32(h, g->node.at[k]->out[q]))
                out32[g->node.at[k]->out[q]] = leaves(h, g->node.at[k]->out[q]);
    for (int k = 0; k < nodes && !e.status; k++) {
        hone_node *n = g->node.at[k];
        if (!h->in[k]) {
            hone_quant_keep(&e, n);
            continue;
        }
        if (h->in[k] == STORES) {
            weights_only(h, &e, n);
            continue;
        }
        for (int q = 0; q < n->n_in && !e.status; q++)
            if (is_f32(h, n->in[q])) n->in[q] = half_of(h, &e, n->in[q]);
        hone_quant_keep(&e, n);
        for (int q = 0; q < n->n_out && !e.status; q++) {
            const hone_vid v = n->out[q];
            if (!is_f32(h, v)) continue;
            n->out[q] = h->half[v] = hone_quant_like(&e, v, h->type);
            if (!e.status && out32[v]) hone_quant_cast(&e, n->out[q], v, HONE_DTYPE_F32);
        }
    }
    hone_free(out32);
    return hone_quant_edit_close(&e);
}
static hone_status halve(hone_quant_job *job, hone_dtype type) {
    hone_graph *g = job->graph;
    halving h = {.job = job, .graph = g, .type = type, .n = g->var.n};
    hone_graph_index(g);
    const size_t vars = (size_t)g->var.n + 1;
    h.in = hone_alloc((size_t)g->node.n + 1), h.above = hone_alloc(sizeof *h.above * vars),
    h.half = hone_alloc(sizeof *h.half * vars), h.stored = hone_alloc(sizeof *h.stored * vars);
    hone_status s = h.in && h.above && h.half && h.stored ? HONE_OK : hone_quant_no_memory();
    for (int k = 0; !s && k < g->var.n; k++) h.half[k] = h.stored[k] = -1;
    if (!s) s = measure(&h);
    if (!s) choose(&h);
    if (!s && !h.n_half && !h.n_kept)
        s = hone_quant_nothing(
            g, HONE_NOT_SUPPORTED, job->model,
            "product, convolution or table with constant weights of f32 outside of bodies: "
            "nothing to store in halves");
    if (!s) s = rewrite(&h);
    hone_text_put(job->report, ", \"type\": \"%s\", \"in_halves\": %d, \"kept\": [%s]",
                  hone_dtypes[type].name, h.n_half, h.kept.text ? h.kept.text : "");
    if (!s && h.kept.failed) s = hone_fail(HONE_NO_MEMORY, "no memory for a report");
    hone_text_free(&h.kept);
    hone_free(h.in), hone_free(h.above), hone_free(h.half), hone_free(h.stored);
    return s;
}
hone_status hone_quant_f16(hone_quant_job *job) { return halve(job, HONE_DTYPE_F16); }
hone_status hone_quant_bf16(hone_quant_job *job) { return halve(job, HONE_DTYPE_BF16); }
