/* SPDX-License-Identifier: Apache-2.0
   report_kernels: a node's kernels as text, for `hone explain --device`: schedule, launch and source, for a
   device of that language as they mostly are. */
#include <string.h>

#include "ir/infer.h"
#include "loops/fuse.h"
#include "loops/kernel.h"
#include "plan/plan.h"
#include "run/model.h"
#include "run/report_kernels.h"

/* Sizes that a model leaves open count as 1. */
static hone_status params(hone_arena *a, const hone_model *m, const hone_node *n, const int64_t *values,
                          const hone_instance **out, hone_param *to) {
    const hone_graph *g = m->compiled->graph;
    hone_fact *facts = HONE_NEW_N(a, hone_fact, n->n_in + n->n_out + 1);
    const hone_fact **in = HONE_NEW_N(a, const hone_fact *, n->n_in + 1);
    hone_call *call;
    hone_param *p = NULL;
    if (!facts || !in) return hone_fail(HONE_NO_MEMORY, "no memory to explain");
    for (int k = 0; k < n->n_in; k++)
        facts[k] = n->in[k] < 0 ? hone_fact_unknown : hone_fact_of_var(g->var.at + n->in[k]),
        in[k] = facts + k;
    hone_inferring w = {a, g->dims, m->compiled->instances, NULL};
    HONE_TRY(hone_node_infer(&w, n, in, NULL, facts + n->n_in, out, &call, &p));
    for (int k = 0; *out && to && k < (*out)->n_param; k++) {
        to[k] = p[k];
        if (!(*out)->param_real[k]) to[k].i = hone_dim_value(p[k].i, values);
    }
    return HONE_OK;
}
hone_status hone_report_kernels(const hone_model *m, const hone_node *n, const hone_instance *in, int lang,
                                hone_text *t) {
    const hone_graph *g = m->compiled->graph;
    const hone_kernel_target target = {.lang = (hone_lang)lang,
                                       .f64 = true,
                                       .arg_bytes = lang == HONE_LANG_OPENCL ? 1024 : 4096,
                                       .wish = {.max_threads = 256, .units = 128}};
    hone_arena *a = hone_arena_create();
    const int count = hone_dims_count(g->dims);
    int64_t *values = a ? HONE_NEW_N(a, int64_t, count + 1) : NULL;
    int64_t *stride = a ? HONE_NEW_N(a, int64_t, in->n_tensor * HONE_MAX_RANK + 1) : NULL;
    hone_param *p = a ? HONE_NEW_N(a, hone_param, in->n_param + 1) : NULL;
    hone_status s = values && stride && p ? HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory to explain");
    const hone_instance *part;
    if (!s) {
        for (int k = 0; k < count; k++) values[k] = 1;
        hone_dims_eval(g->dims, values);
    }
    for (int k = 0; !s && n->fused && k < n->fused->n_part; k++)
        s = params(a, m, n->part[k], values, &part, p + n->fused->param0[k]);
    if (!s && !n->fused) s = params(a, m, n, values, &part, p);
    for (int k = 0; !s && k < in->n_param; k++)
        if (!in->param_real[k] && !hone_dim_is_number(p[k].i)) {
            hone_text_put(t, "\n# no kernels: '%s' is known only when it is bound\n", in->param_name[k]);
            hone_arena_destroy(a);
            return HONE_OK;
        }
    for (int k = 0; !s && k < in->n_tensor; k++) { /* as if all were row-major */
        int64_t far = 1;
        for (int d = in->tensor[k].rank - 1; d >= 0; d--)
            stride[k * HONE_MAX_RANK + d] = far, far *= p[in->tensor[k].dim[d]].i;
    }
    hone_kernels kernels;
    if (!s) {
        s = hone_kernels_make(a, &target, in, p, stride, NULL, &kernels);
        if (s == HONE_NOT_SUPPORTED) {
            hone_text_put(t, "\n# no kernels: %s\n", hone_fail_text());
            s = HONE_OK, kernels.n_launch = kernels.n_turn = 0;
        }
    }
    for (int q = 0; !s && q < kernels.n_turn; q++)
        for (int k = kernels.turn[q].first; k < kernels.turn[q].first + kernels.turn[q].n; k++) {
            const hone_launch *l = kernels.launch + k;
            hone_text_put(t, "\n# %s, stage %d: ", hone_lang_names[lang], l->first_stage);
            hone_launch_describe(l, t);
            if (kernels.turn[q].rounds > 1)
                hone_text_put(t, ", %lld rounds", (long long)kernels.turn[q].rounds);
            hone_text_put(t, "\n%s", l->text);
        }
    hone_arena_destroy(a);
    return s;
}
