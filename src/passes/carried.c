/* SPDX-License-Identifier: Apache-2.0
   carried: what a Loop or Scan carries along and never changes becomes a capture of its body. Exporters carry
   weights so, and a weight that a body is given anew at each turn is prepared for its kernel at each turn;
   one that is captured can be a constant of the body.

   The outer node is looked at first: what an inner one hands through is then free to go there, too. */
#include <string.h>

#include "passes/passes.h"
#include "passes/rewrite.h"

/* how a node carries values: input in0 + k comes back as the body's output out0 + k, and leaves as the node's
   output k */
typedef struct {
    int in0, out0, n;
} carrying;

static carrying carries(const hone_node *n) {
    const char *how = n->program->runs == HONE_RUNS_CONTROL ? n->program->how : "";
    const int own = n->n_in - n->n_capture;
    if (n->dead || n->n_body != 1) return (carrying){0};
    if (!strcmp(how, "loop")) return (carrying){2, 1, own > 2 ? own - 2 : 0};
    const int64_t scanned =
        !strcmp(how, "scan") ? hone_attr_int(n->attr, n->n_attr, "num_scan_inputs", -1) : -1;
    const int64_t states = scanned > 0 && scanned <= own ? own - scanned : 0;
    return (carrying){0, 0, (int)states};
}
static bool unchanged(const hone_node *, carrying, int k, int depth);

/* The var that this one is, handed on by nodes that change nothing. */
static hone_vid origin(const hone_graph *g, hone_vid v, int depth) {
    enum { DEEP = 20, LONG = 1000 };
    for (int steps = 0; v >= 0 && g->var.at[v].producer >= 0 && steps < LONG; steps++) {
        const hone_node *n = g->node.at[g->var.at[v].producer];
        const carrying c = carries(n);
        int k = 0;
        if (!*n->program->domain && !strcmp(n->program->name, "Identity") && n->n_in == 1 && !n->part) {
            v = n->in[0];
            continue;
        }
        while (k < n->n_out && n->out[k] != v) k++;
        if (k >= c.n || k >= n->n_out || depth >= DEEP || !unchanged(n, c, k, depth + 1)) break;
        v = n->in[c.in0 + k];
    }
    return v;
}
static bool unchanged(const hone_node *n, carrying c, int k, int depth) {
    const hone_graph *body = n->body[0];
    if (c.in0 + k >= body->n_formal || c.out0 + k >= body->out.n || n->in[c.in0 + k] < 0) return false;
    return origin(body, body->out.at[c.out0 + k], depth) == body->in.at[c.in0 + k];
}
static void to_end(hone_vid *at, int from, int n) {
    const hone_vid v = at[from];
    memmove(at + from, at + from + 1, sizeof *at * (size_t)(n - from - 1));
    at[n - 1] = v;
}
static void capture(hone_node *n, carrying c, int k) {
    hone_graph *body = n->body[0];
    to_end(n->in, c.in0 + k, n->n_in);
    n->n_capture++;
    to_end(body->in.at, c.in0 + k, body->in.n);
    body->n_formal--;
    to_end(body->out.at, c.out0 + k, body->out.n);
    body->out.n--;
    if (k >= n->n_out) return;
    to_end(n->out, k, n->n_out);
    n->n_out--;
}
static hone_status look(hone_graph *g, int *changed) {
    hone_renames r;
    if (!hone_renames_open(&r, g))
        return hone_fail(HONE_NO_MEMORY, "no memory to find what loops carry unchanged");
    for (int q = 0; q < g->node.n; q++) {
        hone_node *n = g->node.at[q];
        carrying c = carries(n);
        for (int k = c.n - 1; k >= 0; k--) {
            const hone_vid y = k < n->n_out ? n->out[k] : -1;
            if (!unchanged(n, c, k, 0)) continue;
            /* a graph's output that its input, or a constant, is not */
            if (y >= 0 && !hone_rename(&r, y, n->in[c.in0 + k])) continue;
            capture(n, c, k);
            c.n--, (*changed)++;
        }
        n->dead |= !n->n_out; /* it made nothing else */
    }
    hone_renames_close(&r);
    for (int q = 0; q < g->node.n; q++)
        for (int b = 0; b < g->node.at[q]->n_body && !g->node.at[q]->dead; b++)
            HONE_TRY(look(g->node.at[q]->body[b], changed));
    return HONE_OK;
}
hone_status hone_pass_carried(hone_passing *p) {
    hone_graph_index(p->graph);
    hone_status s = look(p->graph, &p->changed);
    hone_graph_compact(p->graph);
    return s;
}
