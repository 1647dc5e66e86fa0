/* SPDX-License-Identifier: Apache-2.0
   forms: the ways to quantize, by name; and what all of them need: samples, copies that run, progress. */
#include <string.h>

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
            return hone_fail(HONE_NO_MEMORY, "no memory to quantize a model");
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
