/* SPDX-License-Identifier: Apache-2.0
   bench_bind: what binding a model to shapes costs, a step. Usage: bench_bind MODEL [--vary] [--rounds N]
   [NAME=2x3x4 …]; free dims are 1 where not given. With --vary they are another number each time, so that
   nothing bound before can be used again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "model/onnx.h"
#include "plan/plan.h"

static int by_time(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}
int main(int argc, char **argv) {
    const hone_library *lib;
    hone_graph *g;
    hone_compiled *c;
    if (argc < 2 || hone_library_builtin(&lib) || hone_onnx_load(argv[1], lib, &g) || hone_compile(g, &c)) {
        fprintf(stderr, "%s\n",
                argc < 2 ? "usage: bench_bind MODEL [--vary] [--rounds N] [NAME=2x3x4 …]" : hone_error());
        return 1;
    }
    g = c->graph;
    hone_fact *in = calloc((size_t)g->in.n + 1, sizeof *in);
    for (int k = 0; k < g->in.n; k++) {
        in[k] = hone_fact_of_var(g->var.at + g->in.at[k]);
        for (int d = 0; d < in[k].rank; d++)
            if (!hone_dim_is_number(in[k].dim[d])) in[k].dim[d] = 1;
        for (int a = 2; a < argc; a++) {
            const char *name = g->var.at[g->in.at[k]].name, *p = argv[a] + strlen(name);
            if (strncmp(argv[a], name, strlen(name)) || *p != '=') continue;
            for (int d = 0; d < in[k].rank && *p; d++) in[k].dim[d] = strtoll(p + 1, (char **)&p, 10);
        }
    }
    int steps = 0, rounds = 51;
    bool vary = false;
    for (int a = 2; a < argc; a++) {
        vary |= !strcmp(argv[a], "--vary");
        if (!strcmp(argv[a], "--rounds") && a + 1 < argc) rounds = atoi(argv[++a]);
    }
    if (rounds < 1) rounds = 1;
    uint64_t *ns = calloc((size_t)rounds, sizeof *ns);
    for (int r = 0; r < rounds; r++) {
        hone_plan *p;
        for (int k = 0; vary && k < g->in.n; k++)
            for (int d = 0; d < in[k].rank; d++)
                if (!hone_dim_is_number(g->var.at[g->in.at[k]].dim[d])) in[k].dim[d] = 1 + r;
        uint64_t t = hone_clock_ns();
        if (hone_bind(c, in, NULL, NULL, (hone_bind_options){.threads = hone_cores()}, &p)) {
            fprintf(stderr, "%s\n", hone_error());
            return 1;
        }
        ns[r] = hone_clock_ns() - t, steps = p->n_step;
        hone_plan_destroy(p);
    }
    qsort(ns, (size_t)rounds, sizeof *ns, by_time);
    printf("%d nodes, %d steps: bind %.1f us (p10 %.1f, p90 %.1f), %.2f us a step\n", g->node.n, steps,
           (double)ns[rounds / 2] / 1e3, (double)ns[rounds / 10] / 1e3, (double)ns[rounds * 9 / 10] / 1e3,
           (double)ns[rounds / 2] / 1e3 / (steps ? steps : 1));
    hone_compiled_destroy(c);
    free(in);
    free(ns);
    return 0;
}
