/* SPDX-License-Identifier: Apache-2.0
   ranges: hone_model_ranges: which tensors of a model leave f16's range on samples. The model's optimized
   graph, its groups opened, is run on the CPU in f32 with its tensors as outputs, so many bytes of them at a
   time. */
#include <math.h>
#include <string.h>

#include "hone/quant.h"
#include "run/model.h"

enum { SAMPLES = 16, MOST_TAPS = 64 };
static const double near_most = 65504 / 4.0; /* the same margin as where models are written in halves */

typedef struct {
    const hone_model *model;
    const hone_graph *graph; /* the optimized one, opened */
    const hone_samples *data;
    int n_sample, threads;
    double *largest; /* of each var; infinite where a number was infinite or NaN */
} ranging;
static hone_status no_memory(void) {
    return hone_fail(HONE_NO_MEMORY, "no memory to look at a model's ranges");
}

static double largest_of(const hone_value *v) {
    const float *at = v->data;
    float top = 0;
    bool odd = false;
    for (int64_t k = 0, n = hone_value_count(v); k < n; k++)
        top = fmaxf(top, fabsf(at[k])), odd |= isnan(at[k]);
    return odd ? INFINITY : top;
}
/* These vars as the only outputs. */
static hone_status run_with(ranging *r, const hone_vid *tap, int n) {
    hone_graph *g = NULL;
    hone_compiled *c = NULL;
    hone_exec *e = NULL;
    const int n_in = r->graph->in.n;
    hone_value **in = hone_alloc(sizeof *in * (size_t)(n_in + 1)), *out[MOST_TAPS] = {0};
    hone_status s = in ? hone_graph_copy(r->graph, &g) : no_memory();
    if (!s) {
        g->out.n = 0;
        for (int k = 0; k < n && !s; k++)
            if (!hone_push(&g->out, tap[k])) s = no_memory();
        if (s) hone_graph_destroy(g);
    }
    if (!s) s = hone_compile(g, &c);
    if (!s) s = hone_exec_create(c, &(hone_exec_options){.threads = r->threads, .plans = 4}, &e);
    for (int64_t k = 0; k < r->n_sample && !s; k++) {
        s = r->data->get(r->data->arg, k, in);
        if (!s && (s = hone_exec_run(e, in, out))) s = hone_fail_at(s, "sample %lld: ", (long long)k + 1);
        for (int t = 0; t < n; t++) {
            if (!s && out[t] && out[t]->tag == HONE_TAG_TENSOR && out[t]->dtype == HONE_DTYPE_F32)
                r->largest[tap[t]] = fmax(r->largest[tap[t]], largest_of(out[t]));
            hone_value_drop(out[t]), out[t] = NULL;
        }
        for (int i = 0; i < n_in; i++) hone_value_drop(in[i]), in[i] = NULL;
    }
    hone_exec_destroy(e);
    hone_compiled_destroy(c);
    hone_free(in);
    return s;
}
static hone_status see_all(ranging *r) {
    hone_vid tap[MOST_TAPS];
    int n = 0;
    for (int v = 0; v < r->graph->var.n; v++) {
        const hone_var *of = r->graph->var.at + v;
        if (of->producer >= 0 && of->tag == HONE_TAG_TENSOR && of->dtype == HONE_DTYPE_F32) tap[n++] = v;
        if (n == MOST_TAPS || (n && v == r->graph->var.n - 1)) {
            HONE_TRY(run_with(r, tap, n));
            n = 0;
        }
    }
    return n ? run_with(r, tap, n) : HONE_OK;
}
static void put_pattern(hone_text *t, const char *name) { /* that means just this name */
    for (; *name; name++) {
        if (*name == '*' || *name == '?' || *name == '[' || *name == '\\') hone_text_put(t, "\\");
        hone_text_put(t, "%c", *name);
    }
    hone_text_put(t, "\n");
}
static void tell(const ranging *r, hone_text *keep, hone_text *report) {
    double top = 0;
    int n = 0;
    for (int v = 0; v < r->graph->var.n; v++)
        if (r->largest[v] < INFINITY) top = fmax(top, r->largest[v]);
    hone_text_put(report, "{\"samples\": %d, \"largest\": %.6g, \"kept\": [", r->n_sample, top);
    for (int v = 0; v < r->graph->var.n; v++) {
        const hone_var *of = r->graph->var.at + v;
        if (!(r->largest[v] > near_most)) continue;
        const hone_node *maker = r->graph->node.at[of->producer];
        if (!strchr(of->name, '\n')) put_pattern(keep, of->name);
        hone_text_put(report, "%s{\"tensor\": ", n++ ? ", " : "");
        hone_text_json(report, of->name);
        hone_text_put(report, ", \"node\": ");
        hone_text_json(report, maker->name);
        hone_text_put(report, ", \"op\": \"%s\", \"largest\": ", maker->program->name);
        if (r->largest[v] < INFINITY) hone_text_put(report, "%.6g}", r->largest[v]);
        else hone_text_put(report, "null}"); /* infinite or not a number */
    }
    hone_text_put(report, "]}");
    hone_text_put(keep, "%s", "");
}
hone_status hone_model_ranges(const hone_model *m, const hone_samples *data, int most, int threads,
                              char **keep, char **report) {
    if (!m || !data || !data->get || !keep)
        return hone_fail(HONE_BAD_INPUT, "hone_model_ranges: model, samples and keep must not be NULL");
    if (data->n < 1) return hone_fail(HONE_BAD_INPUT, "hone_model_ranges: there are no samples");
    most = most > 0 ? most : SAMPLES;
    hone_graph *g = NULL;
    hone_text lines = {0}, json = {0};
    HONE_TRY(hone_graph_copy(m->compiled->graph, &g));
    hone_graph_index(g);
    ranging r = {.model = m,
                 .graph = g,
                 .data = data,
                 .n_sample = data->n < most ? (int)data->n : most,
                 .threads = threads,
                 .largest = hone_alloc(sizeof(double) * (size_t)(g->var.n + 1))};
    hone_status s = r.largest ? see_all(&r) : no_memory();
    if (!s) tell(&r, &lines, &json);
    hone_free(r.largest);
    hone_graph_destroy(g);
    if (s) {
        hone_text_free(&lines), hone_text_free(&json);
        return s;
    }
    if ((s = hone_text_give(&lines, keep))) hone_text_free(&json);
    else if (!report) hone_text_free(&json);
    else if ((s = hone_text_give(&json, report))) hone_text_release(*keep), *keep = NULL;
    return s;
}
