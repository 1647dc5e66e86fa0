/* SPDX-License-Identifier: Apache-2.0
   forms: the ways to quantize, by name; and what all of them need: samples, copies that run, progress. */
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "quant/quant.h"

static const struct {
    const char *name;
    hone_quant_form *run;
    bool needs_data;
} forms[] = {
    {"static", hone_quant_static, true},    {"weights", hone_quant_weights, false},
    {"dynamic", hone_quant_dynamic, false}, {"f16", hone_quant_f16, false},
    {"bf16", hone_quant_bf16, false},       {0},
};

hone_status hone_quant_form_find(const char *name, hone_quant_form **out, bool *needs_data) {
    hone_text list = {0};
    for (int k = 0; forms[k].name; k++) {
        if (name && strcmp(name, forms[k].name) != 0) {
            hone_text_put(&list, "%s%s", k ? ", " : "", forms[k].name);
            continue;
        }
        *out = forms[k].run, *needs_data = forms[k].needs_data;
        hone_text_free(&list);
        return HONE_OK;
    }
    hone_status s = hone_fail(HONE_BAD_INPUT, "there is no form '%s' of quantization; there are: %s", name,
                              list.failed ? "" : list.text);
    hone_text_free(&list);
    return s;
}

/* A wish without effect is a mistake of somebody, who is told. */
hone_status hone_quant_form_fits(const hone_quantizing *w) {
    const struct {
        const char *name;
        bool wished;
    } of_static[] = {
        {"observer", w->observer},       {"activations", w->activations},
        {"per-tensor", w->per_tensor},   {"portable", w->portable},
        {"no-repairs", w->no_repairs},   {"cache", w->cache},
        {"target", w->target},           {"float-share", w->float_share != 0},
        {"limit (seconds)", w->seconds}, {"seed", w->seed},
        {"format", w->format},
    };
    char list[256] = "";
    size_t n = 0;
    if (w->seconds < 0)
        return hone_fail(HONE_BAD_INPUT, "a limit of %d seconds: it must not be below 0", w->seconds);
    if (!w->form || !strcmp(w->form, forms[0].name)) return HONE_OK;
    for (size_t k = 0; k < sizeof of_static / sizeof *of_static; k++)
        if (of_static[k].wished && n < sizeof list)
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", of_static[k].name);
    if (n)
        return hone_fail(HONE_BAD_INPUT, "form '%s' has no use for %s: only form '%s' has", w->form, list,
                         forms[0].name);
    return HONE_OK;
}

bool hone_quant_late(const hone_quant_job *job, double share, const char *what) {
    const double limit = 1e9 * job->wish->seconds;
    hone_text quoted = {0};
    if (!(limit > 0) || (double)(hone_clock_ns() - job->began) < share * limit) return false;
    hone_text_json(&quoted, what);
    if (quoted.failed) job->left->failed = true; /* and so does the report */
    else if (!job->left->n || !strstr(job->left->text, quoted.text))
        hone_text_put(job->left, "%s%s", job->left->n ? ", " : "", quoted.text);
    hone_text_free(&quoted);
    return true;
}

hone_status hone_quant_tell(const hone_quant_job *job, double done, const char *what) {
    if (job->wish->progress && job->wish->progress(job->wish->arg, done, what))
        return hone_fail(HONE_BAD_INPUT, "quantization was stopped by the caller; nothing is written");
    return HONE_OK;
}

hone_status hone_quant_open(const hone_quant_job *job, const hone_graph *g, const hone_vid *out, int n_out,
                            hone_quant_run **run) {
    hone_graph *copy;
    HONE_TRY(hone_graph_copy(g, &copy));
    if (out) copy->out.n = 0;
    for (int k = 0; out && k < n_out; k++)
        if (!hone_push(&copy->out, out[k])) {
            hone_graph_destroy(copy);
            return hone_quant_no_memory();
        }
    hone_graph_index(copy);
    return job->runner.open(job->runner.context, copy, run);
}

hone_status hone_quant_sample(const hone_quant_job *job, int64_t k, hone_value **in) {
    const hone_samples *d = &job->wish->data;
    for (int i = 0; i < job->graph->in.n; i++) in[i] = NULL;
    hone_status s = d->get(d->arg, k, in);
    return s ? hone_fail_at(s, "sample %lld: ", (long long)k + 1) : HONE_OK;
}
