/* SPDX-License-Identifier: Apache-2.0
   export_form: which opset a node needs, and forms of our own written as standard nodes.

   Every node is in the newest form of its op, but most forms are older than the newest version: that often
   only takes more types. So a model is written for the lowest opset that has what its nodes say, by the table
   below, and never below 18: from there on reductions take their axes, and Split and Resize say what they do,
   as rows here have it. */
#include <stdlib.h>
#include <string.h>

#include "model/export_write.h"

/* ---- opsets -------------------------------------------------------------------------------------------- */
#define BIT(t) (1u << HONE_DTYPE_##t)
enum {
    FLOAT8 = BIT(F8E4M3FN) | BIT(F8E4M3FNUZ) | BIT(F8E5M2) | BIT(F8E5M2FNUZ),
    NARROW = FLOAT8 | BIT(U4) | BIT(I4) | BIT(F4E2M1) | BIT(F8E8M0) | BIT(U2) | BIT(I2),
    HALVES = BIT(F16) | BIT(BF16),
    SIGNED = BIT(I8) | BIT(I16) | BIT(I32) | BIT(I64)
};
/* A node of this op needs `opset` where it has the attribute (of that text or number), or an operand of one
   of the types, or so many inputs; without any of these, always. Only what changed after opset 18. */
static const struct {
    const char *op;
    int opset;
    const char *attr, *text;
    uint32_t types;
    int inputs;
} needs[] = {
    {"AffineGrid", 20, NULL, NULL, 0, 0},
    {"Attention", 23, NULL, NULL, 0, 0},
    {"Attention", 24, NULL, NULL, 0, 7},
    {"Attention", 25, "left_window_size", NULL, 0, 0},
    {"Attention", 25, "right_window_size", NULL, 0, 0},
    {"AveragePool", 19, "dilations", NULL, 0, 0},
    {"AveragePool", 22, "ceil_mode", "1", 0, 0},
    {"BitCast", 26, NULL, NULL, 0, 0},
    {"BitShift", 28, NULL, NULL, SIGNED, 0},
    {"Cast", 19, "saturate", NULL, 0, 0},
    {"Cast", 24, "round_mode", NULL, 0, 0},
    {"CastLike", 19, "saturate", NULL, 0, 0},
    {"CastLike", 24, "round_mode", NULL, 0, 0},
    {"CausalConvWithState", 27, NULL, NULL, 0, 0},
    {"Celu", 28, NULL, NULL, HALVES | BIT(F64), 0},
    {"Compress", 28, NULL, NULL, BIT(BF16), 0},
    {"ConstantOfShape", 20, NULL, NULL, BIT(BF16), 0},
    {"CumProd", 26, NULL, NULL, 0, 0},
    {"DFT", 20, NULL, NULL, 0, 0},
    {"DeformConv", 19, NULL, NULL, 0, 0},
    {"DequantizeLinear", 19, NULL, NULL, HALVES, 0},
    {"DequantizeLinear", 21, NULL, NULL, BIT(I16) | BIT(U16), 0},
    {"DequantizeLinear", 21, "block_size", NULL, 0, 0},
    {"DequantizeLinear", 23, "output_dtype", NULL, 0, 0},
    {"Dropout", 22, NULL, NULL, FLOAT8, 0},
    {"Equal", 19, NULL, NULL, BIT(STRING), 0},
    {"Gelu", 20, NULL, NULL, 0, 0},
    {"GridSample", 20, NULL, NULL, 0, 0},
    {"GroupNormalization", 21, NULL, NULL, 0, 0},
    {"ImageDecoder", 20, NULL, NULL, 0, 0},
    {"IsInf", 20, NULL, NULL, HALVES, 0},
    {"LinearAttention", 27, NULL, NULL, 0, 0},
    {"LpPool", 22, "ceil_mode", "1", 0, 0},
    {"MaxPool", 22, "ceil_mode", "1", 0, 0},
    {"OneHot", 28, NULL, NULL, BIT(BF16), 0},
    {"Optional", 28, NULL, NULL, BIT(BF16) | NARROW, 0},
    {"OptionalGetElement", 28, NULL, NULL, BIT(BF16) | NARROW, 0},
    {"OptionalHasElement", 28, NULL, NULL, BIT(BF16) | NARROW, 0},
    {"Pad", 19, "mode", "wrap", 0, 0},
    {"QLinearMatMul", 21, NULL, NULL, HALVES, 0},
    {"QuantizeLinear", 19, NULL, NULL, HALVES, 0},
    {"QuantizeLinear", 19, "saturate", NULL, 0, 0},
    {"QuantizeLinear", 21, NULL, NULL, BIT(I16) | BIT(U16), 0},
    {"QuantizeLinear", 21, "block_size", NULL, 0, 0},
    {"QuantizeLinear", 21, "output_dtype", NULL, 0, 0},
    {"QuantizeLinear", 23, "precision", NULL, 0, 0},
    {"RMSNormalization", 23, NULL, NULL, 0, 0},
    {"Range", 27, NULL, NULL, HALVES, 0},
    {"Range", 27, "stash_type", NULL, 0, 0},
    {"ReduceMax", 20, NULL, NULL, BIT(BOOL), 0},
    {"ReduceMin", 20, NULL, NULL, BIT(BOOL), 0},
    {"RegexFullMatch", 20, NULL, NULL, 0, 0},
    {"Resize", 19, "coordinate_transformation_mode", "half_pixel_symmetric", 0, 0},
    {"ReverseSequence", 28, NULL, NULL, BIT(BF16), 0},
    {"RotaryEmbedding", 23, NULL, NULL, 0, 0},
    {"SpaceToDepth", 28, "mode", NULL, 0, 0},
    {"SplitToSequence", 24, NULL, NULL, BIT(BF16), 0},
    {"StringConcat", 20, NULL, NULL, 0, 0},
    {"StringSplit", 20, NULL, NULL, 0, 0},
    {"SwiGLU", 28, NULL, NULL, 0, 0},
    {"Swish", 24, NULL, NULL, 0, 0},
    {"TensorScatter", 24, NULL, NULL, 0, 0},
    {"TopK", 24, NULL, NULL, BIT(BF16), 0},
    {"Unique", 28, NULL, NULL, BIT(BF16), 0},
};
/* What any op that takes the type needs, if its newest version is as new as that. Before 22 few ops took
   bf16. */
static const struct {
    uint32_t types;
    int opset;
} type_needs[] = {
    {FLOAT8 | BIT(U4) | BIT(I4), 21}, {BIT(BF16), 22}, {BIT(F4E2M1), 23}, {BIT(F8E8M0), 24},
    {BIT(U2) | BIT(I2), 25},
};
/* Where an op left its domain. */
static const struct {
    const char *domain, *op;
    int until;
} gone[] = {{"ai.onnx.ml", "TreeEnsembleClassifier", 4}, {"ai.onnx.ml", "TreeEnsembleRegressor", 4}};

int hone_export_ir_version(int opset) {
    static const uint8_t of[] = {[18] = 8,  [19] = 9,  [20] = 9,  [21] = 10, [22] = 10, [23] = 11,
                                 [24] = 12, [25] = 13, [26] = 13, [27] = 13, [28] = 14};
    return opset < (int)sizeof of ? of[opset] : 14;
}

static void raise(hone_exporter *x, int opset) {
    if (x->opset < opset) x->opset = opset;
}

static void need_domain(hone_exporter *x, const hone_onnx_node *n, int since) {
    int d = 0;
    while (d < x->n_domain && strcmp(x->domain[d].domain, n->domain) != 0) d++;
    if (d == x->n_domain)
        x->n_domain++, x->domain[d].domain = n->domain, x->domain[d].version = 1,
                       x->domain[d].needs = n->name;
    if (x->domain[d].version < since) x->domain[d].version = since, x->domain[d].needs = n->name;
    for (size_t k = 0; k < sizeof gone / sizeof *gone; k++)
        if (strcmp(gone[k].domain, n->domain) == 0 && strcmp(gone[k].op, n->op) == 0)
            x->domain[d].last = n->name, x->domain[d].until = gone[k].until;
}

static bool says(const hone_attr *a, const char *text) {
    return a->kind == HONE_ATTR_INT ? a->i[0] == atoi(text)
                                    : strcmp(hone_attr_text(a, 1, a->name, ""), text) == 0;
}

void hone_export_need(hone_exporter *x, const hone_onnx_node *n, uint32_t dtypes, int since) {
    if (n->domain && n->domain[0]) {
        need_domain(x, n, since);
        return;
    }
    for (size_t k = 0; k < sizeof needs / sizeof *needs; k++) {
        if (strcmp(needs[k].op, n->op) != 0) continue;
        const hone_attr *a = needs[k].attr ? hone_attr_find(n->attr, n->n_attr, needs[k].attr) : NULL;
        if (needs[k].attr && (!a || (needs[k].text && !says(a, needs[k].text)))) continue;
        if ((needs[k].types && !(needs[k].types & dtypes)) || needs[k].inputs > n->n_in) continue;
        raise(x, needs[k].opset);
    }
    for (size_t k = 0; k < sizeof type_needs / sizeof *type_needs; k++)
        if ((type_needs[k].types & dtypes) && since >= type_needs[k].opset) raise(x, type_needs[k].opset);
    /* A remainder of floats that is not C's. */
    bool floats = dtypes & (HALVES | BIT(F32) | BIT(F64));
    if (strcmp(n->op, "Mod") == 0 && floats && !hone_attr_int(n->attr, n->n_attr, "fmod", 0)) raise(x, 28);
}

/* ---- forms of our own ---------------------------------------------------------------------------------- */
static uint32_t dtypes_of(const hone_export_scope *s, const hone_node *n) {
    uint32_t all = 0;
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k] >= 0) all |= 1u << s->g->var.at[n->in[k]].dtype;
    return all;
}

/* A standard node in the place of n; `out` NULL: a new name, which is returned. */
static const char *put(hone_exporter *x, hone_export_scope *s, const hone_node *n, const char *op,
                       const char *a, const char *b, const char *out, const hone_attr *attr) {
    const char *in[] = {a, b}, *to = out ? out : hone_export_fresh(x, n->name);
    hone_onnx_node node = {.op = op,
                           .name = n->name,
                           .in = in,
                           .n_in = a ? b ? 2 : 1 : 0,
                           .out = &to,
                           .n_out = 1,
                           .attr = attr,
                           .n_attr = attr != NULL};
    hone_export_need(x, &node, dtypes_of(s, n), 0);
    hone_export_put_node(x, s, &node);
    return to;
}

/* The number is an input here, an attribute there; a number that only the run knows is spread by Expand. */
static void constant_of_shape(hone_exporter *x, hone_export_scope *s, const hone_node *n) {
    const hone_value *v = s->g->var.at[n->in[1]].value;
    const char *shape = hone_export_name(x, s, n->in[0]), *y = hone_export_name(x, s, n->out[0]);
    if (!v) {
        put(x, s, n, "Expand", hone_export_name(x, s, n->in[1]), shape, y, NULL);
        return;
    }
    hone_value one = *v, *list[] = {&one};
    one.rank = 1, one.dim[0] = 1;
    put(x, s, n, "ConstantOfShape", shape, NULL, y,
        &(hone_attr){.name = "value", .kind = HONE_ATTR_TENSOR, .n = 1, .tensor = list});
}

/* A mask of one row for all queries is repeated for each: the specification lets it be broadcast, ONNX
   Runtime 1.31 does not. */
static void attention(hone_exporter *x, hone_export_scope *s, const hone_node *n) {
    const hone_var *q = s->g->var.at + n->in[0],
                   *mask = n->n_in > 3 && n->in[3] >= 0 ? s->g->var.at + n->in[3] : NULL;
    if (!mask || mask->rank < 2 || mask->dim[mask->rank - 2] != 1 || q->rank != 4 || q->dim[2] == 1) {
        hone_export_node_with(x, s, n, -1, NULL);
        return;
    }
    const hone_attr rows[] = {{.name = "start", .kind = HONE_ATTR_INT, .n = 1, .i = (const int64_t[]){2}},
                              {.name = "end", .kind = HONE_ATTR_INT, .n = 1, .i = (const int64_t[]){3}}};
    const hone_attr axis = {.name = "axis", .kind = HONE_ATTR_INT, .n = 1, .i = (const int64_t[]){0}};
    const hone_attr one = {.name = "value_ints", .kind = HONE_ATTR_INTS, .n = 1, .i = (const int64_t[]){1}};
    const char *in = hone_export_name(x, s, n->in[0]), *count = hone_export_fresh(x, n->name);
    hone_onnx_node shape = {.op = "Shape",
                            .name = n->name,
                            .in = &in,
                            .n_in = 1,
                            .out = &count,
                            .n_out = 1,
                            .attr = rows,
                            .n_attr = 2};
    hone_export_need(x, &shape, 0, 0);
    hone_export_put_node(x, s, &shape);
    const char *to =
        put(x, s, n, "Concat", count, put(x, s, n, "Constant", NULL, NULL, NULL, &one), NULL, &axis);
    hone_export_node_with(x, s, n, 3,
                          put(x, s, n, "Expand", hone_export_name(x, s, n->in[3]), to, NULL, NULL));
}

/* Heads joined for GroupQueryAttention, which wants them so, and split again behind it. */
static const char *with_heads(hone_exporter *x, hone_export_scope *s, const hone_node *n, const char *in,
                              int64_t heads, const char *out) {
    static const int64_t order[] = {0, 2, 1, 3}, join[] = {0, 0, -1};
    const int64_t split[] = {0, 0, heads, -1};
    const hone_attr perm = {.name = "perm", .kind = HONE_ATTR_INTS, .n = 4, .i = order};
    const hone_attr shape = {
        .name = "value_ints", .kind = HONE_ATTR_INTS, .n = heads ? 4 : 3, .i = heads ? split : join};
    const char *to = put(x, s, n, "Constant", NULL, NULL, NULL, &shape);
    if (heads)
        return put(x, s, n, "Transpose", put(x, s, n, "Reshape", in, to, NULL, NULL), NULL, out, &perm);
    return put(x, s, n, "Reshape", put(x, s, n, "Transpose", in, NULL, NULL, &perm), to, out, NULL);
}
static void cached_attention(hone_exporter *x, hone_export_scope *s, const hone_node *n) {
    /* of GroupQueryAttention; the row has these two behind the rest */
    enum { BIAS = 10, SINK = 11, INPUTS = 12, OUTPUTS = 4 };
    const char *in[INPUTS], *out[OUTPUTS];
    for (int k = 0; k < INPUTS; k++) {
        int own = k < 7 ? k : k < BIAS ? -1 : k - 3;
        in[k] = own >= 0 && own < n->n_in && n->in[own] >= 0 ? hone_export_name(x, s, n->in[own]) : "";
        if (k < 3) in[k] = with_heads(x, s, n, in[k], 0, NULL);
    }
    for (int k = 0; k < OUTPUTS; k++)
        out[k] = k < n->n_out && n->out[k] >= 0 ? hone_export_name(x, s, n->out[k]) : "";
    const char *y = out[0];
    int n_in = INPUTS, n_out = OUTPUTS;
    out[0] = hone_export_fresh(x, n->name);
    while (!in[n_in - 1][0]) n_in--;
    while (!out[n_out - 1][0]) n_out--;
    hone_onnx_node node = {
        "com.microsoft", "GroupQueryAttention", n->name, in, out, n_in, n_out, n->attr, n->n_attr, NULL};
    hone_export_need(x, &node, 0, 1);
    hone_export_put_node(x, s, &node);
    with_heads(x, s, n, out[0], hone_attr_int(n->attr, n->n_attr, "num_heads", 1), y);
}

/* Weights that tokens pick: gathered, a matrix each, times their row as a column. */
static void experts(hone_exporter *x, hone_export_scope *s, const hone_node *n) {
    static const int64_t last[] = {-1};
    const hone_attr axes = {.name = "value_ints", .kind = HONE_ATTR_INTS, .n = 1, .i = last};
    const char *at = put(x, s, n, "Constant", NULL, NULL, NULL, &axes);
    const char *picked = put(x, s, n, "Gather", hone_export_name(x, s, n->in[1]),
                             hone_export_name(x, s, n->in[2]), NULL, NULL);
    const char *column = put(x, s, n, "Unsqueeze", hone_export_name(x, s, n->in[0]), at, NULL, NULL);
    put(x, s, n, "Squeeze", put(x, s, n, "MatMul", picked, column, NULL, NULL), at,
        hone_export_name(x, s, n->out[0]), NULL);
}

static const struct {
    const char *domain, *op;
    void (*write)(hone_exporter *, hone_export_scope *, const hone_node *);
} forms[] = {
    {"", "Attention", attention},
    {"", "ConstantOfShape", constant_of_shape},
    {"hone", "QLinearMatMul", hone_export_quant_matmul},
    {"hone", "QLinearAveragePool", hone_export_quant_mean},
    {"hone", "QLinearMean", hone_export_quant_mean},
    {"hone", "QLinearResize", hone_export_quant_mean},
    {"hone", "Table", hone_export_table},
    {"hone", "CachedAttention", cached_attention},
    {"hone", "Experts", experts},
};
/* com.microsoft: what import left in it is written as it was, and ONNX Runtime reads it. */
static const char *const standard[] = {"", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training",
                                       "com.microsoft"};

void hone_export_node(hone_exporter *x, hone_export_scope *s, const hone_node *n) {
    const hone_program *p = n->program;
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
        if (strcmp(forms[k].op, p->name) == 0 && strcmp(forms[k].domain, p->domain) == 0) {
            forms[k].write(x, s, n);
            return;
        }
    const hone_library *rows; /* a user's own row may be in any domain; only ours are known to be ONNX's */
    size_t d = 0, domains = sizeof standard / sizeof *standard;
    hone_status st = hone_library_builtin(&rows);
    while (d < domains && strcmp(standard[d], p->domain) != 0) d++;
    if (st) hone_export_fail(x, st);
    else if (d < domains && hone_library_has(rows, p->domain, p->name))
        hone_export_node_with(x, s, n, -1, NULL);
    else
        hone_export_fail(x, hone_fail(HONE_NOT_SUPPORTED,
                                      "cannot export node '%.100s' (%s%s%s): its op is not standard ONNX, "
                                      "and no standard nodes say the same",
                                      n->name, p->domain, p->domain[0] ? "." : "", p->name));
}
