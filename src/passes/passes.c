/* SPDX-License-Identifier: Apache-2.0
   passes: the pipeline. */
#include "passes/passes.h"

static const struct { const char *name; hone_pass_fn *run; } pipeline[] = {
    {"infer", hone_pass_infer},
};
hone_status hone_passes_run(hone_graph *g, hone_instances *instances, hone_text *report) {
    hone_text_put(report, "[");
    for (size_t k = 0; k < sizeof pipeline / sizeof *pipeline; k++) {
        hone_passing p = {.graph = g, .instances = instances};
        hone_status s = pipeline[k].run(&p);
        if (s) return s;
        hone_graph_index(g);
#ifndef NDEBUG
        HONE_TRY(hone_graph_verify(g));
#endif
        hone_text_put(report, "%s{\"pass\": \"%s\", \"changed\": %d, \"nodes\": %d}", k ? ", " : "", pipeline[k].name, p.changed, g->node.n);
    }
    hone_text_put(report, "]");
    return HONE_OK;
}
hone_status hone_pass_infer(hone_passing *p) { return hone_graph_infer(p->graph); }
