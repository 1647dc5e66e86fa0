/* SPDX-License-Identifier: Apache-2.0
   report_tactics: see report_tactics.h. The model is bound to its sizes, those that it leaves open as 1, and
   the CPU tells what it thinks of that node on the way. What tuning measured is not asked: these are
   estimates. */
#include "run/report_tactics.h"

#include "base/thread.h"

hone_status hone_report_tactics(const hone_model *m, const hone_node *n, hone_text *t) {
    const hone_graph *g = m->compiled->graph;
    hone_text told = {0};
    const hone_telling tell = {n, &told};
    hone_fact *in = hone_alloc(sizeof *in * (size_t)(g->in.n + 1));
    hone_plan *p = NULL;
    bool open = false;
    if (!in) return hone_fail(HONE_NO_MEMORY, "no memory to explain");
    for (int k = 0; k < g->in.n; k++) {
        in[k] = hone_fact_of_var(g->var.at + g->in.at[k]);
        for (int d = 0; d < in[k].rank; d++)
            if (!hone_dim_is_number(in[k].dim[d])) in[k].dim[d] = 1, open = true;
    }
    const hone_bind_options how = {.threads = hone_cores(), .tell = &tell};
    const hone_status s = hone_bind(m->compiled, in, NULL, NULL, how, &p);
    if (s == HONE_NO_MEMORY) {
        hone_free(in);
        hone_text_free(&told);
        return s;
    }
    t->failed |= told.failed;
    hone_text_put(t, "\n# its tactics on this CPU, by estimate%s\n", open ? "; open sizes are 1" : "");
    if (told.n) hone_text_put(t, "%s", told.text);
    else if (s) hone_text_put(t, "known only with sizes: %s\n", hone_fail_text());
    else hone_text_put(t, "none: a constant, a view, or known only in a run\n");
    hone_plan_destroy(p);
    hone_free(in);
    hone_text_free(&told);
    return HONE_OK;
}
