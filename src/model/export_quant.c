/* SPDX-License-Identifier: Apache-2.0
   export_quant: rows of ops/quant_inner.hop, which passes write, as the standard nodes that they stand for:
   products of bytes between quantize and dequantize pairs, which other runtimes make integer products of as
   well; a table as a Gather. */
#include <string.h>

#include "model/export_write.h"

enum { MOST_IN = 3 };
static const char *put(hone_exporter *x, hone_export_scope *s, const hone_node *n, const char *op,
                       const char *const *in, int n_in, const char *out, const hone_attr *attr) {
    const char *to = out ? out : hone_export_fresh(x, n->name);
    hone_onnx_node node = {.op = op,
                           .name = n->name,
                           .in = in,
                           .n_in = n_in,
                           .out = &to,
                           .n_out = 1,
                           .attr = attr,
                           .n_attr = attr != NULL};
    hone_export_need(x, &node, 0, 0);
    hone_export_put_node(x, s, &node);
    return to;
}
static const char *dequantized(hone_exporter *x, hone_export_scope *s, const hone_node *n, int first,
                               int64_t axis) {
    const char *in[MOST_IN];
    const hone_attr along = {.name = "axis", .kind = HONE_ATTR_INT, .n = 1, .i = &axis};
    for (int k = 0; k < MOST_IN; k++) in[k] = hone_export_name(x, s, n->in[first + k]);
    return put(x, s, n, "DequantizeLinear", in, MOST_IN, NULL, axis >= 0 ? &along : NULL);
}
/* What a unit of the sum is worth, as the bias' scale. */
static const char *unit(hone_exporter *x, hone_export_scope *s, const hone_node *n, const hone_value *left,
                        const hone_value *right) {
    const size_t many = (size_t)hone_value_count(right);
    hone_value *v = HONE_NEW(x->arena, hone_value), *list[] = {v};
    float *at = hone_arena_alloc(x->arena, many * sizeof *at + 1); /* lies still until it is sent */
    if (!v || !at) {
        hone_export_no_memory(x);
        return "";
    }
    for (size_t k = 0; k < many; k++)
        at[k] = (float)hone_value_f64(left, 0) * (float)hone_value_f64(right, (int64_t)k);
    *v = (hone_value){.tag = HONE_TAG_TENSOR,
                      .dtype = HONE_DTYPE_F32,
                      .rank = many > 1,
                      .data = at,
                      .bytes = many * sizeof *at};
    v->dim[0] = (int64_t)many;
    return put(x, s, n, "Constant", NULL, 0, NULL,
               &(hone_attr){.name = "value", .kind = HONE_ATTR_TENSOR, .n = 1, .tensor = list});
}
void hone_export_quant_matmul(hone_exporter *x, hone_export_scope *s, const hone_node *n) {
    const hone_value *left = s->g->var.at[n->in[1]].value, *right = s->g->var.at[n->in[4]].value;
    if (!left || !right) {
        hone_export_fail(x, hone_fail(HONE_NOT_SUPPORTED,
                                      "cannot export node '%.100s': its scales are no constants", n->name));
        return;
    }
    const bool each = hone_value_count(right) > 1;
    const int64_t first = 0;
    const hone_attr along = {.name = "axis", .kind = HONE_ATTR_INT, .n = 1, .i = &first};
    const char *factor[] = {dequantized(x, s, n, 0, -1),
                            dequantized(x, s, n, 3, each ? s->g->var.at[n->in[3]].rank - 1 : -1)};
    const char *bias[] = {hone_export_name(x, s, n->in[8]), unit(x, s, n, left, right)};
    const char *sum[] = {put(x, s, n, "MatMul", factor, 2, NULL, NULL),
                         put(x, s, n, "DequantizeLinear", bias, 2, NULL, each ? &along : NULL)};
    const char *all[] = {put(x, s, n, "Add", sum, 2, NULL, NULL), hone_export_name(x, s, n->in[6]),
                         hone_export_name(x, s, n->in[7])};
    put(x, s, n, "QuantizeLinear", all, 3, hone_export_name(x, s, n->out[0]), NULL);
}
/* A signed byte is an index that counts from the end. */
void hone_export_table(hone_exporter *x, hone_export_scope *s, const hone_node *n) {
    const int64_t type = HONE_DTYPE_I32;
    const hone_attr to = {.name = "to", .kind = HONE_ATTR_TYPE, .n = 1, .i = &type};
    const char *byte = hone_export_name(x, s, n->in[0]);
    const char *in[] = {hone_export_name(x, s, n->in[1]), put(x, s, n, "Cast", &byte, 1, NULL, &to)};
    put(x, s, n, "Gather", in, 2, hone_export_name(x, s, n->out[0]), NULL);
}
/* Averages and resized pictures of integers: the op of floats between a pair. Inputs from 5 on are its
   own. */
void hone_export_quant_mean(hone_exporter *x, hone_export_scope *s, const hone_node *n) {
    static const struct {
        const char *row, *op;
    } ops[] = {
        {"QLinearAveragePool", "AveragePool"}, {"QLinearMean", "ReduceMean"}, {"QLinearResize", "Resize"}};
    enum { OWN = 5, MOST_OWN = 4 };
    size_t k = 0;
    while (k + 1 < sizeof ops / sizeof *ops && strcmp(ops[k].row, n->program->name) != 0) k++;
    const uint32_t types = 1u << s->g->var.at[n->in[0]].dtype | 1u << s->g->var.at[n->out[0]].dtype;
    const char *in[MOST_OWN] = {dequantized(x, s, n, 0, -1)}, *made = hone_export_fresh(x, n->name);
    hone_onnx_node node = {.op = ops[k].op,
                           .name = n->name,
                           .in = in,
                           .n_in = 1,
                           .out = &made,
                           .n_out = 1,
                           .attr = n->attr,
                           .n_attr = n->n_attr};
    for (int q = OWN; q < n->n_in && node.n_in < MOST_OWN; q++)
        in[node.n_in++] = hone_export_name(x, s, n->in[q]);
    hone_export_need(x, &node, 0, 0);
    hone_export_put_node(x, s, &node);
    const char *all[] = {made, hone_export_name(x, s, n->in[3]), hone_export_name(x, s, n->in[4])};
    put(x, s, n, "QuantizeLinear", all, 3, hone_export_name(x, s, n->out[0]), NULL);
    node.op = "DequantizeLinear";
    hone_export_need(x, &node, types, 21);
}
const char **hone_export_quantized(hone_exporter *x, hone_export_scope *s, const hone_quantized *from,
                                   const char *base, const char *out) {
    const hone_value *value[] = {from->q, from->scale, from->zero};
    const char **in = HONE_NEW_N(x->arena, const char *, MOST_IN);
    if (!in) {
        hone_export_no_memory(x);
        return NULL;
    }
    uint32_t dtypes = 0;
    int n = 0;
    for (; n < MOST_IN && value[n]; n++) in[n] = hone_export_fresh(x, base), dtypes |= 1u << value[n]->dtype;
    const hone_attr attr[] = {{.name = "axis", .kind = HONE_ATTR_INT, .n = 1, .i = &from->axis},
                              {.name = "block_size", .kind = HONE_ATTR_INT, .n = 1, .i = &from->block_size}};
    const bool one = hone_value_count(from->scale) == 1 && !from->block_size;
    hone_onnx_node node = {.op = "DequantizeLinear",
                           .name = base,
                           .in = in,
                           .n_in = n,
                           .out = &out,
                           .n_out = 1,
                           .attr = attr,
                           .n_attr = one                ? 0
                                     : from->block_size ? 2
                                                        : 1};
    hone_export_need(x, &node, dtypes, 21);
    hone_export_put_node(x, s, &node);
    return in;
}
