/* SPDX-License-Identifier: Apache-2.0
   bodies: what lies inside bodies of If, Loop, Scan and SequenceMap stays as it is, in every form but
   weights: here it is said. */
#include <string.h>

#include "quant/quant.h"

/* Layers with weights that a form could have changed outside. */
static int layers(const hone_graph *g) {
    static const char *const ops[] = {"Conv", "ConvTranspose", "MatMul", "Gemm", "LSTM", "GRU", "RNN"};
    int n = 0;
    for (int k = 0; k < g->node.n; k++) {
        const hone_node *a = g->node.at[k];
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) n += !strcmp(a->program->name, ops[i]);
        for (int b = 0; b < a->n_body; b++) n += layers(a->body[b]);
    }
    return n;
}
static int layers_inside(const hone_node *a) {
    int n = 0;
    for (int b = 0; b < a->n_body; b++) n += layers(a->body[b]);
    return n;
}
void hone_quant_bodies(const hone_graph *g, hone_text *report) {
    const char *comma = "";
    hone_text_put(report, ", \"bodies\": [");
    for (int k = 0; k < g->node.n; k++) {
        const hone_node *a = g->node.at[k];
        const int n = layers_inside(a);
        if (!n) continue;
        hone_text_put(report, "%s{\"node\": ", comma), comma = ", ";
        hone_text_json(report, a->name);
        hone_text_put(report, ", \"op\": \"%s\", \"layers\": %d}", a->program->name, n);
    }
    hone_text_put(report, "]");
}
hone_status hone_quant_nothing(const hone_graph *g, hone_status s, const char *model, const char *what) {
    enum { MOST = 4 };
    hone_text t = {0};
    int nodes = 0;
    for (int k = 0; k < g->node.n; k++) {
        const hone_node *a = g->node.at[k];
        const int n = layers_inside(a);
        if (n && ++nodes <= MOST)
            hone_text_put(&t, "%s %d in the bodies of %s '%s'",
                          nodes > 1 ? "," : "; what lies in bodies stays f32:", n, a->program->name, a->name);
    }
    if (nodes > MOST) hone_text_put(&t, " and of %d nodes more", nodes - MOST);
    if (nodes) hone_text_put(&t, "; form weights makes them smaller");
    s = hone_fail(s, "model '%s' has no %s%s", model, what, t.n && !t.failed ? t.text : "");
    hone_text_free(&t);
    return s;
}
