/* SPDX-License-Identifier: Apache-2.0
   onnx_load: a model that onnx_write.h wrote, read as a graph, and looked at. For the tests of the
   importer. */
#ifndef HONE_TESTS_ONNX_LOAD_H
#define HONE_TESTS_ONNX_LOAD_H
#include "model/onnx.h"
#include "onnx_write.h"

static inline const hone_library *rows(void) {
    const hone_library *l;
    if (hone_library_builtin(&l)) fail_msg("%s", hone_fail_text());
    return l;
}
static inline hone_graph *load(msg m) { /* takes m; must succeed */
    hone_graph *g = NULL;
    if (hone_onnx_load_memory(m.at, m.n, NULL, rows(), &g)) fail_msg("%s", hone_fail_text());
    free(m.at);
    return g;
}
static inline const char *refused(msg m) { /* takes m; must fail, without a change of *out */
    hone_graph *g = (hone_graph *)8;
    assert_int_not_equal(hone_onnx_load_memory(m.at, m.n, NULL, rows(), &g), HONE_OK);
    assert_ptr_equal(g, (hone_graph *)8);
    free(m.at);
    return hone_fail_text();
}
/* The ops of a graph in order: "Add Relu" */
static inline const char *ops(const hone_graph *g) {
    static char line[1024];
    line[0] = 0;
    for (int k = 0; k < g->node.n; k++)
        snprintf(line + strlen(line), sizeof line - strlen(line), "%s%s", k ? " " : "",
                 g->node.at[k]->program->name);
    return line;
}
static inline const hone_var *var(const hone_graph *g, const char *name) {
    hone_vid v = hone_graph_find(g, name);
    if (v < 0) fail_msg("no var '%s'", name);
    return g->var.at + v;
}
static inline const hone_value *input_of(const hone_graph *g, const hone_node *n, int k) {
    assert_true(k < n->n_in && n->in[k] >= 0);
    assert_non_null(g->var.at[n->in[k]].value);
    return g->var.at[n->in[k]].value;
}
static inline void assert_ints(const hone_value *v, int n, ...) {
    va_list a;
    va_start(a, n);
    assert_int_equal(hone_value_count(v), n);
    for (int k = 0; k < n; k++) assert_int_equal(hone_value_i64(v, k), va_arg(a, int));
    va_end(a);
}
/* x of a given type and shape → one node → y */
static inline hone_graph *one_node(msg n, int version, int type, const char *dims, msg *initializers,
                                   int n_init) {
    msg g = {0};
    add_input(&g, "x", type, dims);
    for (int k = 0; k < n_init; k++) sub(&g, 5, initializers[k]);
    add_node(&g, n);
    add_output(&g, "y");
    return load(model_of(g, version));
}
#endif
