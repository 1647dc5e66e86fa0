/* SPDX-License-Identifier: Apache-2.0
   quantize: hone_quantize: a model is loaded, settled, given to a form of quant/ with a way to run graphs,
   and written. */
#include <stdio.h>
#include <string.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "base/file.h"
#include "base/thread.h"
#include "hone/tools.h"
#include "model/export.h"
#include "model/onnx.h"
#include "quant/quant.h"
#include "run/model.h"
#include "zoo/zoo.h"

/* ---- how quant/ runs graphs ---------------------------------------------------------------------------- */
typedef struct { /* of one hone_quantize */
    const hone_quantizing *wish;
    const char *model, *to;
    const hone_graph *graph; /* as imported and settled */
} whole;
struct hone_quant_run {
    hone_compiled *compiled;
    hone_exec *exec;
    int threads;
};
static void run_close(hone_quant_run *r) {
    if (!r) return;
    hone_exec_destroy(r->exec);
    hone_compiled_destroy(r->compiled);
    hone_free(r);
#if defined(__GLIBC__)
    malloc_trim(0); /* many graphs follow each other: what one leaves in pieces is not kept beside the next */
#endif
}
static hone_status run_open(const void *context, hone_graph *take, hone_quant_run **out) {
    const hone_quantizing *wish = ((const whole *)context)->wish;
    hone_quant_run *r = hone_alloc(sizeof *r);
    if (!r) {
        hone_graph_destroy(take);
        return hone_quant_no_memory();
    }
    r->threads = wish->threads;
    hone_status s = hone_compile(take, &r->compiled);
    if (!s)
        s = hone_exec_create(r->compiled, &(hone_exec_options){.threads = wish->threads, .plans = 4},
                             &r->exec);
    if (s) run_close(r);
    else *out = r;
    return s;
}
static hone_status run_run(hone_quant_run *r, hone_value *const *in, hone_value **out) {
    for (int k = 0; k < r->compiled->graph->out.n; k++) out[k] = NULL;
    return hone_exec_run(r->exec, in, out);
}
static hone_status run_time(hone_quant_run *r, hone_value *const *in, int runs, double *ns) {
    const int n = r->compiled->graph->out.n;
    hone_value **out = hone_alloc(sizeof *out * (size_t)(n + 1));
    hone_status s = out ? HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory for a run");
    *ns = 0;
    for (int k = 0; !s && k < runs; k++) {
        const uint64_t began = hone_clock_ns();
        s = hone_exec_run(r->exec, in, out);
        const double took = (double)(hone_clock_ns() - began);
        if (k == 0 || took < *ns) *ns = took;
    }
    for (int k = 0; out && k < n; k++) hone_value_drop(out[k]);
    hone_free(out);
    return s;
}
/* Steps of all plan segments of the last run; `seen`: ns of each before it, and the least so far. */
static int steps_of(const hone_exec *e) {
    int n = 0;
    for (const hone_plan *p = hone_exec_last(e); p; p = p->next_cut) n += p->n_step;
    return n;
}
static hone_status run_profile(hone_quant_run *r, hone_value *const *in, int runs,
                               void (*see)(void *arg, const hone_node *of, double ns), void *arg) {
    const int n_out = r->compiled->graph->out.n;
    hone_value **out = hone_alloc(sizeof *out * (size_t)(n_out + 1));
    hone_exec *e = NULL;
    double *least = NULL, *sum = NULL;
    int n = 0;
    hone_status s = out ? HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory for a run");
    const hone_exec_options how = {.threads = r->threads, .plans = 4, .profile = HONE_BUSY};
    if (!s) s = hone_exec_create(r->compiled, &how, &e);
    /* the first is one of packing and planning; so is one that takes other steps than that before it */
    for (int k = 0, turn = 0; k <= runs && turn <= 3 * runs && !s; k++, turn++) {
        s = hone_exec_run(e, in, out);
        if (s) break;
        if (!least || steps_of(e) != n) {
            hone_free(least), hone_free(sum);
            n = steps_of(e), k = 0;
            least = hone_alloc(sizeof *least * (size_t)(n + 1)),
            sum = hone_alloc(sizeof *sum * (size_t)(n + 1));
            if (!least || !sum) s = hone_fail(HONE_NO_MEMORY, "no memory for a run");
        }
        int at = 0;
        for (const hone_plan *p = hone_exec_last(e); p && !s; p = p->next_cut)
            for (int i = 0; i < p->n_step; i++, at++) {
                const double now = (double)p->step[i].ns - sum[at];
                if (k == 1 || now < least[at]) least[at] = now;
                sum[at] = (double)p->step[i].ns;
            }
    }
    int at = 0;
    for (const hone_plan *p = s || !least ? NULL : hone_exec_last(e); p; p = p->next_cut)
        for (int i = 0; i < p->n_step; i++, at++)
            if (p->step[i].of) see(arg, p->step[i].of, least[at]);
    for (int k = 0; out && k < n_out; k++) hone_value_drop(out[k]);
    hone_free(out), hone_free(least), hone_free(sum);
    hone_exec_destroy(e);
    return s;
}

/* A model that is tried stands beside the one that is written, as long as it is looked at. */
static hone_status run_measure(const void *context, const hone_graph *g, double *worth) {
    const whole *w = context;
    hone_text path = {0}, data = {0};
    hone_status s = HONE_OK;
    const bool as_it_is = !g && strncmp(w->model, HONE_ZOO_PREFIX, strlen(HONE_ZOO_PREFIX)) != 0;
    hone_text_put(&path, "%s.trial.onnx", w->to), hone_text_put(&data, "%s.trial.onnx.data", w->to);
    if (path.failed || data.failed) s = hone_fail(HONE_NO_MEMORY, "no memory for a path");
    if (!s && !as_it_is) s = hone_graph_export_file(g ? g : w->graph, path.text, NULL);
    if (!s) *worth = w->wish->measure_file(w->wish->arg, as_it_is ? w->model : path.text);
    if (!s && !(*worth - *worth == 0))
        s = hone_fail(HONE_BAD_INPUT, "the measure of '%s' failed", as_it_is ? w->model : path.text);
    if (!as_it_is && path.text) (void)remove(path.text);
    if (!as_it_is && data.text) (void)remove(data.text);
    hone_text_free(&path), hone_text_free(&data);
    return s;
}

/* ---- the call ------------------------------------------------------------------------------------------ */
static hone_status work(const char *model, const hone_quantizing *wish, hone_quant_form *form, const char *to,
                        hone_text *report) {
    const hone_library *lib;
    hone_graph *g = NULL;
    HONE_TRY(hone_library_builtin(&lib));
    const bool zoo = !strncmp(model, HONE_ZOO_PREFIX, strlen(HONE_ZOO_PREFIX));
    HONE_TRY(zoo ? hone_zoo_graph(model, lib, &g) : hone_onnx_load(model, lib, &g));
    const whole w = {wish, model, to, g};
    hone_quant_job job = {.graph = g,
                          .library = lib,
                          .instances = hone_instances_create(),
                          .wish = wish,
                          .model = model,
                          .runner = {run_open, run_run, run_time, run_profile, run_close, run_measure, &w},
                          .report = report};
    hone_text left = {0};
    hone_exported e = {0};
    job.began = hone_clock_ns(), job.left = &left;
    hone_status s = job.instances ? HONE_OK : hone_quant_no_memory();
    if (!s) s = hone_passes_settle(g, job.instances);
    hone_text_put(report, "{\"model\": ");
    hone_text_json(report, model);
    hone_text_put(report, ", \"output\": ");
    hone_text_json(report, to);
    if (!s && form != hone_quant_weights) hone_quant_bodies(g, report);
    if (!s) s = form == hone_quant_static ? form(&job) : hone_quant_judged(&job, form);
    if (!s) s = hone_graph_export_file(job.result ? job.result : job.graph, to, &e);
    if (wish->seconds)
        hone_text_put(report, ", \"limit_s\": %d, \"left\": [%s]", wish->seconds, left.n ? left.text : "");
    if (!s && (report->failed || left.failed)) s = hone_fail(HONE_NO_MEMORY, "no memory for a report");
    hone_text_put(report, ", \"nodes\": %lld, \"bytes\": %llu, \"data_bytes\": %llu}", (long long)e.nodes,
                  (unsigned long long)e.model_bytes, (unsigned long long)e.data_bytes);
    hone_text_free(&left);
    hone_graph_destroy(job.result);
    hone_instances_destroy(job.instances);
    hone_graph_destroy(g);
    return s;
}

hone_status hone_quantize(const char *model, const hone_quantizing *wish, const char *to, char **out) {
    hone_quant_form *form = NULL;
    bool needs_data = false;
    if (!model || !wish || !to || !out)
        return hone_fail(HONE_BAD_INPUT, "hone_quantize: model, wishes, path and report must not be NULL");
    HONE_TRY(hone_quant_form_find(wish->form, &form, &needs_data));
    HONE_TRY(hone_quant_form_fits(wish));
    if (needs_data && (wish->data.n < 1 || !wish->data.get))
        return hone_fail(HONE_BAD_INPUT,
                         "form '%s' needs samples of what the model is given: it has none to see ranges in",
                         wish->form ? wish->form : "static");
    HONE_TRY(hone_not_source(model, to));
    hone_text report = {0};
    hone_status s = work(model, wish, form, to, &report);
    if (s) {
        hone_text_free(&report);
        return s;
    }
    return hone_text_give(&report, out);
}
