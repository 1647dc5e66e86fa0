/* SPDX-License-Identifier: Apache-2.0
   activation: Gelu (by erf and by tanh), HardSwish and Softmax, written out, become one node. Swish stays x *
   sigmoid(x): those two are fused anyway, and the op has one more multiplication. */
#include "passes/match.h"

/* ---- Gelu ---------------------------------------------------------------------------------------------- */
/* half of x times h, in any order */
#define HALF_OF(h)                                                                           \
    "{Mul(Mul(x, " h "), 0.5)|Mul(x, Mul(" h ", 0.5))|Mul(Mul(x, 0.5), " h ")|Div(Mul(x, " h \
    "), 2)|Mul(Div(x, 2), " h ")}"
#define ERF "Add(Erf({Div(x, 1.4142135623730951)|Mul(x, 0.7071067811865476)}), 1)"
#define CUBE                                                                                               \
    "{Mul(0.044715, {Pow(x, 3)|Mul(x, Mul(x, x))})|Mul(x, Mul(x, Mul(x, 0.044715)))|Mul(x, Mul(0.044715, " \
    "{Pow(x, 2)|Mul(x, x)}))}"
#define NEAR \
    "Add(Tanh({Mul(0.7978845608028654, Add(x, " CUBE "))|Mul(Mul(x, 0.7978845608028654), " FACTOR ")}), 1)"
#define FACTOR "Add(1, {Mul(x, Mul(x, 0.044715))|Mul(0.044715, {Pow(x, 2)|Mul(x, x)})})"

static bool put(hone_matching *m, const char *op, const hone_attr *attr, int n) {
    hone_vid x = hone_match_var(m, "x");
    return hone_match_emit(m, op, hone_match_root(m)->out[0], &x, 1, attr, n) >= 0;
}
static bool gelu(hone_matching *m) { return put(m, "Gelu", NULL, 0); }
static bool gelu_near(hone_matching *m) {
    const hone_attr near = {
        .name = "approximate", .kind = HONE_ATTR_STRING, .n = 1, .s = (const hone_string[]){{4, "tanh"}}};
    return put(m, "Gelu", &near, 1);
}

/* ---- HardSwish ----------------------------------------------------------------------------------------- */
#define BENT "{Clip(Add(x, 3), 0, 6)|Min(Max(Add(x, 3), 0), 6)}"
static bool hard_swish(hone_matching *m) { return put(m, "HardSwish", NULL, 0); }

/* ---- Softmax ------------------------------------------------------------------------------------------- */
/* One and the same axis, kept as 1. */
static bool softmax(hone_matching *m) {
    int rank = hone_match_graph(m)->var.at[hone_match_var(m, "x")].rank, axis = -1;
    uint32_t bits = hone_match_axes(hone_match_value(m, "a"), rank),
             other = hone_match_axes(hone_match_value(m, "b"), rank);
    const hone_node *max = hone_match_node(m, "m"), *sum = hone_match_node(m, "s");
    for (int d = 0; d < rank; d++)
        if (bits == (uint32_t)1 << d) axis = d;
    if (axis < 0 || bits != other) return false;
    if (!hone_attr_int(max->attr, max->n_attr, "keepdims", 1) ||
        !hone_attr_int(sum->attr, sum->n_attr, "keepdims", 1))
        return false;
    return put(m, "Softmax", (const hone_attr[]){HONE_ATTR_I("axis", axis - rank)}, 1);
}

static const hone_rule rules[] = {
    {HALF_OF(ERF), gelu},
    {HALF_OF(NEAR), gelu_near},
    {"{Div(Mul(x, " BENT "), 6)|Mul(x, Div(" BENT ", 6))|Mul(Mul(x, " BENT
     "), 0.16666666666666666)|Mul(x, Mul(" BENT ", 0.16666666666666666))}",
     hard_swish},
    {"Div(e=Exp(Sub(x, m=ReduceMax(x, $a))), s=ReduceSum(e, $b))", softmax},
    {"Mul(e=Exp(Sub(x, m=ReduceMax(x, $a))), {Reciprocal(s=ReduceSum(e, $b))|Div(1, s=ReduceSum(e, $b))})",
     softmax},
};
hone_status hone_pass_activation(hone_passing *p) {
    return hone_match_rules(p, rules, (int)(sizeof rules / sizeof *rules));
}
