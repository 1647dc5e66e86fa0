/* SPDX-License-Identifier: Apache-2.0
   edit: see edit.h. No rule about quantization is here. */
#include "quant/edit.h"

#include <string.h>

static const char microsoft[] = "com.microsoft";

hone_quant_edit hone_quant_edit_open(const hone_quant_job *job) {
    hone_graph_index(job->graph);
    return (hone_quant_edit){.job = job, .graph = job->graph};
}
static hone_vid no_memory(hone_quant_edit *e) {
    if (!e->status) e->status = hone_quant_no_memory();
    return -1;
}
void hone_quant_keep(hone_quant_edit *e, hone_node *n) {
    if (!e->status && !hone_push(&e->done, n)) no_memory(e);
}
static const hone_program *row(hone_quant_edit *e, const char *op) {
    const size_t n = sizeof microsoft - 1;
    const bool theirs = !strncmp(op, microsoft, n) && op[n] == '.';
    const hone_program *p =
        hone_library_find(e->job->library, theirs ? microsoft : "", theirs ? op + n + 1 : op);
    if (!p) e->status = hone_fail(HONE_NOT_SUPPORTED, "there is no op row '%s'", op);
    return p;
}
void hone_quant_put_all(hone_quant_edit *e, const char *op, const char *name, const hone_vid *in, int n_in,
                        const hone_vid *out, int n_out, const hone_attr *attr, int n_attr) {
    const hone_program *p = e->status ? NULL : row(e, op);
    if (!p) return;
    hone_node *n = hone_graph_node(e->graph, p, name, in, n_in, out, n_out);
    if (n) e->graph->node.n--; /* it stands in `done` */
    if (!n || !hone_node_attrs(e->graph, n, attr, n_attr) || !hone_push(&e->done, n)) no_memory(e);
}
hone_vid hone_quant_put(hone_quant_edit *e, const char *op, const char *name, const hone_vid *in, int n_in,
                        hone_vid out, const hone_attr *attr, int n_attr) {
    if (e->status) return -1;
    if (out < 0) out = hone_graph_var(e->graph, name);
    if (out < 0) return no_memory(e);
    hone_quant_put_all(e, op, name, in, n_in, &out, 1, attr, n_attr);
    return e->status ? -1 : out;
}
hone_vid hone_quant_like(hone_quant_edit *e, hone_vid v, hone_dtype t) {
    if (e->status) return -1;
    const hone_vid made = hone_graph_var(e->graph, e->graph->var.at[v].name);
    if (made < 0) return no_memory(e);
    const hone_var *from = e->graph->var.at + v;
    hone_var *to = e->graph->var.at + made;
    to->tag = from->tag, to->dtype = t, to->rank = from->rank, to->producer = -1;
    memcpy(to->dim, from->dim, sizeof to->dim);
    return made;
}
hone_vid hone_quant_cast(hone_quant_edit *e, hone_vid from, hone_vid out, hone_dtype t) {
    const hone_attr to = {.name = "to", .kind = HONE_ATTR_TYPE, .n = 1, .i = (const int64_t[]){t}};
    if (out < 0) out = hone_quant_like(e, from, t);
    return out < 0 ? -1 : hone_quant_put(e, "Cast", e->graph->var.at[out].name, &from, 1, out, &to, 1);
}
hone_vid hone_quant_constant(hone_quant_edit *e, const char *name, hone_value *take) {
    if (e->status || !take) {
        hone_value_drop(take);
        return no_memory(e);
    }
    const hone_vid v = hone_graph_const(e->graph, name, take);
    return v < 0 ? no_memory(e) : v;
}
hone_status hone_quant_edit_close(hone_quant_edit *e) {
    hone_graph *g = e->graph;
    g->node.n = 0;
    for (int k = 0; k < e->done.n && !e->status; k++)
        if (!hone_push(&g->node, e->done.at[k])) no_memory(e);
    hone_vec_free(&e->done);
    if (e->status) return e->status;
    hone_graph_index(g);
    return hone_graph_infer_by(g, e->job->instances);
}
bool hone_quant_is(const hone_node *n, const char *op) {
    return !n->program->domain[0] && !strcmp(n->program->name, op);
}
