/* SPDX-License-Identifier: Apache-2.0
   canon_contrib_fused: products that carry what stood behind them, written out again: fusion does the joining
   here, and knows more partners. */
#include "model/canon_contrib.h"

/* [N, …, C] from or to [N, C, …]: a picture's four dims. */
static const int64_t channels_first[] = {0, 3, 1, 2}, channels_last[] = {0, 2, 3, 1};

/* (x, w, bias, a sum to add before the activation) */
void hone_contrib_fused_conv(hone_edit *e) {
    hone_draft *n = e->node;
    const hone_attr *given = hone_edit_attr(e, "activation_params");
    const char *name = hone_edit_text(e, "activation", "");
    double param[2] = {0};
    int n_param = 0;
    for (; given && given->kind == HONE_ATTR_FLOATS && n_param < given->n && n_param < 2; n_param++)
        param[n_param] = given->f[n_param];
    bool nhwc = strncmp(n->op, "Nhwc", 4) == 0;
    hone_vid sum = hone_draft_in(n, 3), wanted;
    if (n->in.n > 3) n->in.n = 3;
    if (nhwc) {
        n->in.at[0] = hone_contrib_transpose(e, n->in.at[0], -1, channels_first, 4);
        if (sum >= 0) sum = hone_contrib_transpose(e, sum, -1, channels_first, 4);
    }
    hone_edit_drop(e, "activation");
    hone_edit_drop(e, "activation_params");
    hone_contrib_becomes(e, "Conv");
    hone_vid y = hone_contrib_place_before(e, &wanted), to = nhwc ? -1 : wanted;
    if (sum >= 0) y = HONE_NODE_AS(e, "Add", name[0] ? -1 : to, y, sum);
    if (name[0]) y = hone_contrib_activate(e, name, param, n_param, y, to);
    if (nhwc) hone_contrib_transpose(e, y, wanted, channels_last, 4);
    else if (sum < 0 && !name[0]) HONE_NODE_AS(e, "Identity", wanted, y);
}

/* The activation that attributes name, with its numbers; a node without one ends as it is. */
static void activate_by_attributes(hone_edit *e, const char *name, const double *param, int n_param,
                                   hone_vid y, hone_vid wanted) {
    if (name[0]) hone_contrib_activate(e, name, param, n_param, y, wanted);
    else HONE_NODE_AS(e, "Identity", wanted, y);
}
static const char *activation_attributes(hone_edit *e, double *param, int *n_param) {
    static const char *const words[] = {"activation_alpha", "activation_beta", "activation_gamma"};
    const char *name = hone_edit_text(e, "activation", "");
    *n_param = 0;
    for (int k = 0; k < 3; k++) { /* of beta and gamma an activation has one */
        if (hone_edit_attr(e, words[k]) && *n_param < 2)
            param[(*n_param)++] = hone_edit_float(e, words[k], 0);
        hone_edit_drop(e, words[k]);
    }
    hone_edit_drop(e, "activation");
    hone_edit_drop(e, "activation_axis");
    return name;
}

void hone_contrib_fused_gemm(hone_edit *e) {
    double param[2];
    int n_param;
    hone_vid wanted;
    const char *name = activation_attributes(e, param, &n_param);
    hone_contrib_becomes(e, "Gemm");
    hone_vid y = hone_contrib_place_before(e, &wanted);
    activate_by_attributes(e, name, param, n_param, y, wanted);
}

/* Which dims of a stack of matrices go where: transBatch brings the first dim behind the batch, trans swaps
   the last two. False: none is moved. */
static bool order_of(int rank, bool batch, bool swap, int64_t *perm) {
    for (int k = 0; k < rank; k++) perm[k] = batch && k < rank - 1 ? (k == rank - 2 ? 0 : k + 1) : k;
    if (swap && rank > 1) {
        int64_t t = perm[rank - 1];
        perm[rank - 1] = perm[rank - 2], perm[rank - 2] = t;
    }
    return rank > 1 && (batch || swap);
}

void hone_contrib_fused_matmul(hone_edit *e) {
    static const char *const words[2][2] = {{"transBatchA", "transA"}, {"transBatchB", "transB"}};
    hone_draft *n = e->node;
    double alpha = hone_edit_float(e, "alpha", 1), param[2];
    int n_param;
    const char *name = activation_attributes(e, param, &n_param);
    hone_vid in[2] = {n->in.at[0], n->in.at[1]};
    for (int k = 0; k < 2; k++) {
        bool batch = hone_edit_int(e, words[k][0], 0) != 0, swap = hone_edit_int(e, words[k][1], 0) != 0;
        int rank = batch || swap ? hone_edit_rank(e, n->in.at[k]) : 0;
        int64_t perm[HONE_MAX_RANK];
        if (rank < 0 && !name[0]) {
            n->op = "FusedMatMul"; /* its own row does what it can with a rank that only the run knows */
            return;
        }
        if (rank < 0 || (batch && rank < 3)) {
            hone_edit_problem(e, HONE_NOT_SUPPORTED, "input %d is transposed, and its rank is %s", k,
                              rank < 0 ? "not known" : "below 3");
            n->placed = true;
            return;
        }
        if (order_of(rank, batch, swap, perm)) in[k] = hone_contrib_transpose(e, in[k], -1, perm, rank);
    }
    n->placed = true;
    hone_vid wanted = n->out.at[0], last = name[0] ? -1 : wanted;
    hone_vid y = HONE_NODE_AS(e, "MatMul", alpha != 1 ? -1 : last, in[0], in[1]);
    if (alpha != 1) y = HONE_NODE_AS(e, "Mul", last, y, hone_edit_like(e, alpha, n->in.at[0]));
    if (name[0]) hone_contrib_activate(e, name, param, n_param, y, wanted);
}

/* ---- Gelus and biases ---------------------------------------------------------------------------------- */
static void gelu(hone_edit *e, hone_vid x, hone_vid bias, bool fast) {
    hone_attr how = hone_attr_of_text(e->im, "approximate", "tanh");
    e->node->placed = true;
    hone_edit_node(e, "Gelu", e->node->out.at[0], HONE_IN(hone_contrib_add(e, x, bias)), &how, fast);
}
void hone_contrib_gelu(hone_edit *e) { gelu(e, e->node->in.at[0], hone_draft_in(e->node, 1), false); }
void hone_contrib_fast_gelu(hone_edit *e) { gelu(e, e->node->in.at[0], hone_draft_in(e->node, 1), true); }
void hone_contrib_gemm_fast_gelu(hone_edit *e) {
    gelu(e, HONE_NODE(e, "MatMul", e->node->in.at[0], e->node->in.at[1]), hone_draft_in(e->node, 2), true);
}

/* x * sigmoid(alpha * x) */
void hone_contrib_quick_gelu(hone_edit *e) {
    hone_vid x = e->node->in.at[0], t = x;
    double alpha = hone_edit_float(e, "alpha", 1.702);
    e->node->placed = true;
    if (alpha != 1) t = HONE_NODE(e, "Mul", x, hone_edit_like(e, alpha, x));
    HONE_NODE_AS(e, "Mul", e->node->out.at[0], x, HONE_NODE(e, "Sigmoid", t));
}

/* x + bias + skip */
void hone_contrib_bias_add(hone_edit *e) {
    hone_draft *n = e->node;
    n->placed = true;
    HONE_NODE_AS(e, "Add", n->out.at[0], HONE_NODE(e, "Add", n->in.at[0], n->in.at[1]), n->in.at[2]);
}

/* x + bias in two halves: left * Gelu(right) */
void hone_contrib_bias_split_gelu(hone_edit *e) {
    hone_draft *n = e->node;
    hone_vid half[] = {hone_edit_var(e), hone_edit_var(e)};
    n->placed = true;
    hone_contrib_node(e, "", "Split", half, 2, HONE_IN(HONE_NODE(e, "Add", n->in.at[0], n->in.at[1])),
                      HONE_WITH(hone_attr_of_int(e->im, "axis", -1)));
    HONE_NODE_AS(e, "Mul", n->out.at[0], half[0], HONE_NODE(e, "Gelu", half[1]));
}

/* (x, bias, residual, ratio, training): models are run here, so Dropout drops nothing unless it is told to
   train. */
void hone_contrib_bias_dropout(hone_edit *e) {
    hone_draft *n = e->node;
    hone_vid residual = hone_draft_in(n, 2),
             out[] = {residual < 0 ? n->out.at[0] : hone_edit_var(e), hone_draft_out(n, 1)};
    const hone_attr *seed = hone_edit_attr(e, "seed");
    n->placed = true;
    hone_contrib_node(
        e, "", "Dropout", out, 2,
        HONE_IN(HONE_NODE(e, "Add", n->in.at[0], n->in.at[1]), hone_draft_in(n, 3), hone_draft_in(n, 4)),
        seed, seed != NULL);
    if (residual >= 0) HONE_NODE_AS(e, "Add", n->out.at[0], out[0], residual);
}

/* Dims from `axis` on are normalized together, as Softmax did before version 13. The bias has the data's
   rank, or dims of 1 are put in front of it: both are numpy's rule. */
void hone_contrib_bias_softmax(hone_edit *e) {
    hone_draft *n = e->node, soft = {.domain = "", .op = "Softmax", .name = n->name, .version = 12};
    hone_edit inner = {e->im, e->g, &soft};
    n->placed = true;
    if (hone_push(&soft.in, HONE_NODE(e, "Add", n->in.at[0], n->in.at[1])) &&
        hone_push(&soft.out, n->out.at[0])) {
        hone_edit_set(&inner, hone_attr_of_int(e->im, "axis", hone_edit_int(e, "axis", 1)));
        hone_draft_place(&inner);
    } else {
        hone_import_no_memory(e->im);
    }
    hone_draft_free(&soft);
}
