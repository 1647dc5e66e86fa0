/* SPDX-License-Identifier: Apache-2.0
   canon_contrib: which op of com.microsoft is said how. A row has the op's inputs and attributes: what a
   model writes beyond them is refused by name, so the functions only see what they know. */
#include "model/canon_contrib.h"

static const char ms[] = "com.microsoft";
static const struct {
    const char *domain, *op;
    int min, max, outputs; /* how many inputs, those left out in between counted; at most so many outputs */
    const char *attrs;     /* words it may have */
    hone_upgrade_fn *apply;
} table[] = {
    {ms, "FusedConv", 2, 4, 1,
     "activation activation_params auto_pad dilations group kernel_shape pads strides",
     hone_contrib_fused_conv},
    {ms, "NhwcFusedConv", 2, 4, 1,
     "activation activation_params auto_pad dilations group kernel_shape pads strides",
     hone_contrib_fused_conv},
    {ms, "NhwcConv", 2, 3, 1, "auto_pad dilations group kernel_shape pads strides", hone_contrib_fused_conv},
    {ms, "FusedGemm", 2, 3, 1,
     "activation activation_alpha activation_beta activation_gamma alpha beta transA transB",
     hone_contrib_fused_gemm},
    {ms, "FusedMatMul", 2, 2, 1, "alpha transA transB transBatchA transBatchB", hone_contrib_fused_matmul},
    {ms, "FusedMatMulActivation", 2, 2, 1,
     "activation activation_alpha activation_beta activation_gamma activation_axis alpha transA transB "
     "transBatchA transBatchB",
     hone_contrib_fused_matmul},
    {ms, "TransposeMatMul", 2, 2, 1, "alpha transA transB transBatchA transBatchB",
     hone_contrib_fused_matmul},
    {ms, "GemmFastGelu", 2, 3, 1, "", hone_contrib_gemm_fast_gelu},
    {ms, "Gelu", 1, 1, 1, "", hone_contrib_gelu},
    {ms, "BiasGelu", 2, 2, 1, "", hone_contrib_gelu},
    {ms, "FastGelu", 1, 2, 1, "", hone_contrib_fast_gelu},
    {ms, "QuickGelu", 1, 1, 1, "alpha", hone_contrib_quick_gelu},
    {ms, "BiasAdd", 3, 3, 1, "", hone_contrib_bias_add},
    {ms, "BiasSplitGelu", 2, 2, 1, "", hone_contrib_bias_split_gelu},
    {ms, "BiasDropout", 2, 5, 2, "seed", hone_contrib_bias_dropout},
    {ms, "BiasSoftmax", 2, 2, 1, "axis is_inner_broadcast", hone_contrib_bias_softmax},
    {"", "SimplifiedLayerNormalization", 2, 2, 2, "axis epsilon stash_type", hone_contrib_simplified_norm},
    {ms, "SimplifiedLayerNormalization", 2, 2, 2, "axis epsilon stash_type", hone_contrib_simplified_norm},
    {ms, "SkipLayerNormalization", 3, 5, 4, "epsilon", hone_contrib_skip_norm},
    {ms, "SkipSimplifiedLayerNormalization", 3, 4, 4, "epsilon", hone_contrib_skip_simplified_norm},
    {ms, "GroupNorm", 3, 3, 1, "activation channels_last epsilon groups", hone_contrib_group_norm},
    {ms, "SkipGroupNorm", 4, 5, 2, "activation channels_last epsilon groups", hone_contrib_skip_group_norm},
    {ms, "Attention", 2, 7, 2,
     "do_rotary mask_filter_value num_heads past_present_share_buffer qkv_hidden_sizes rotary_embedding_dim "
     "scale unidirectional",
     hone_contrib_attention},
    {ms, "MultiHeadAttention", 1, 10, 4, "mask_filter_value num_heads scale unidirectional",
     hone_contrib_multi_head},
    {ms, "RotaryEmbedding", 4, 4, 1, "interleaved is_packed_batching num_heads rotary_embedding_dim scale",
     hone_contrib_rotary},
    {ms, "GroupQueryAttention", 7, 16, 4,
     "causal do_rotary k_quant_type kv_cache_bit_width kv_num_heads local_window_size num_heads "
     "qk_norm_epsilon qk_output "
     "rotary_interleaved scale "
     "sliding_window_cache smooth_softmax softcap v_quant_type",
     hone_contrib_group_query},
    {ms, "EmbedLayerNormalization", 7, 9, 3, "epsilon mask_index_type", hone_contrib_embed_norm},
    {ms, "QLinearAdd", 7, 8, 1, "", hone_contrib_q_binary},
    {ms, "QLinearMul", 7, 8, 1, "", hone_contrib_q_binary},
    {ms, "QLinearLeakyRelu", 4, 5, 1, "alpha", hone_contrib_q_leaky_relu},
    {ms, "QLinearSigmoid", 4, 5, 1, "", hone_contrib_q_sigmoid},
    {ms, "QLinearSoftmax", 4, 5, 1, "axis opset", hone_contrib_q_softmax},
    {ms, "QLinearConcat", 4, 65536, 1, "axis", hone_contrib_q_concat},
    {ms, "QLinearWhere", 8, 9, 1, "", hone_contrib_q_where},
    {ms, "QLinearReduceMean", 4, 5, 1, "axes keepdims", hone_contrib_q_mean},
    {ms, "QLinearAveragePool", 4, 5, 1,
     "auto_pad ceil_mode channels_last count_include_pad kernel_shape pads strides", hone_contrib_q_pool},
    {ms, "QLinearGlobalAveragePool", 4, 5, 1, "channels_last", hone_contrib_q_pool},
    {ms, "NhwcMaxPool", 1, 1, 1, "auto_pad ceil_mode dilations kernel_shape pads strides",
     hone_contrib_nhwc_max_pool},
    {ms, "QLinearConv", 8, 9, 1, "auto_pad channels_last dilations group kernel_shape pads strides",
     hone_contrib_q_conv},
    {ms, "QuantizeLinear", 2, 3, 1, "axis", hone_contrib_q_linear},
    {ms, "DequantizeLinear", 2, 3, 1, "axis", hone_contrib_q_linear},
    {ms, "MatMulIntegerToFloat", 4, 7, 1, "", hone_contrib_matmul_to_float},
    {ms, "DynamicQuantizeMatMul", 3, 5, 1, "", hone_contrib_dynamic_matmul},
    {ms, "QGemm", 6, 9, 1, "alpha transA transB", hone_contrib_q_gemm},
    {ms, "QAttention", 5, 9, 2,
     "do_rotary mask_filter_value num_heads past_present_share_buffer scale unidirectional",
     hone_contrib_q_attention},
    {ms, "DynamicQuantizeLSTM", 11, 12, 3,
     "activation_alpha activation_beta activations clip direction hidden_size input_forget",
     hone_contrib_dynamic_lstm},
    {ms, "QEmbedLayerNormalization", 18, 18, 2, "epsilon", hone_contrib_q_embed_norm},
    {ms, "MatMulInteger16", 2, 2, 1, "", hone_contrib_matmul_integer16},
    {ms, "MulInteger", 3, 4, 1, "", hone_contrib_mul_integer},
    {ms, "ReduceSumInteger", 1, 1, 1, "axes keepdims", hone_contrib_sum_integer},
    {ms, "MoE", 5, 8, 1,
     "activation_alpha activation_beta activation_type k normalize_routing_weights swiglu_fusion "
     "swiglu_limit use_sparse_mixer",
     hone_contrib_moe},
    {ms, "QMoE", 7, 15, 1,
     "accuracy_level activation_alpha activation_beta activation_type block_size expert_weight_bits "
     "fc1_expert_weight_bits "
     "fc2_expert_weight_bits fc3_expert_weight_bits k normalize_routing_weights quant_type swiglu_fusion "
     "swiglu_limit use_sparse_mixer "
     "weights_prepacked",
     hone_contrib_q_moe},
    {ms, "Trilu", 1, 2, 1, "upper", hone_contrib_renamed},
    {ms, "GatherND", 2, 2, 1, "", hone_contrib_renamed},
    {ms, "Pad", 2, 3, 1, "mode", hone_contrib_renamed},
    {ms, "GridSample", 2, 2, 1, "align_corners mode padding_mode", hone_contrib_grid_sample},
    {ms, "Range", 2, 3, 1, "", hone_contrib_range_op},
    {ms, "ExpandDims", 2, 2, 1, "", hone_contrib_expand_dims},
    {ms, "Unique", 1, 1, 3, "", hone_contrib_unique},
    {ms, "ConvTransposeWithDynamicPads", 2, 4, 1,
     "auto_pad dilations group kernel_shape output_padding strides", hone_contrib_conv_transpose},
    {ms, "GatedAdd", 3, 3, 1, "", hone_contrib_gated_add},
    {"", "DynamicSlice", 3, 4, 1, "", hone_contrib_dynamic_slice},
    {"", "Affine", 1, 1, 1, "alpha beta", hone_contrib_affine},
    {"", "Scale", 1, 1, 1, "scale", hone_contrib_scale},
    {"", "ParametricSoftplus", 1, 1, 1, "alpha beta", hone_contrib_parametric_softplus},
    {"", "ScaledTanh", 1, 1, 1, "alpha beta", hone_contrib_scaled_tanh},
    {"", "ImageScaler", 1, 1, 1, "bias scale", hone_contrib_image_scaler},
    {"", "Crop", 1, 1, 1, "border scale", hone_contrib_crop},
    {ms, "DecoderMaskedMultiHeadAttention", 1, 11, 4,
     "mask_filter_value num_heads output_qk past_present_share_buffer scale", hone_contrib_decoder_masked},
};
enum { ROWS = sizeof table / sizeof *table };

static int row_of(const char *domain, const char *op) {
    int k = 0;
    while (k < ROWS && (strcmp(table[k].op, op) != 0 || strcmp(table[k].domain, domain) != 0)) k++;
    return k;
}

static bool lists(const char *words, const char *word) {
    size_t n = strlen(word);
    /* a hostile one may have no name */
    for (const char *at = words; n && (at = strstr(at, word)) != NULL; at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0)) return true;
    return false;
}

static bool in_order(hone_edit *e, int row) {
    const hone_draft *n = e->node;
    int n_in = n->in.n, n_out = n->out.n;
    while (n_in && n->in.at[n_in - 1] < 0) n_in--;
    while (n_out && n->out.at[n_out - 1] < 0) n_out--;
    bool good = n_in >= table[row].min && n_in <= table[row].max && n_out <= table[row].outputs &&
                hone_draft_out(n, 0) >= 0;
    if (!good)
        hone_edit_problem(e, HONE_BAD_INPUT,
                          "it has %d inputs and %d outputs; %d to %d and at most %d are expected", n_in,
                          n_out, table[row].min, table[row].max, table[row].outputs);
    for (int k = 0; k < n->attr.n; k++)
        if (!lists(table[row].attrs, n->attr.at[k].name))
            hone_edit_problem(e, HONE_NOT_SUPPORTED, "unknown attribute '%.60s'", n->attr.at[k].name),
                good = false;
    return good;
}

bool hone_contrib_knows(const char *domain, const char *op) { return row_of(domain, op) < ROWS; }

void hone_contrib(hone_edit *e) {
    int row = row_of(e->node->domain, e->node->op);
    if (row == ROWS) return;
    if (in_order(e, row)) table[row].apply(e);
    else e->node->placed = true; /* the problem is noted */
}

/* ---- activations by name ------------------------------------------------------------------------------- */
hone_vid hone_contrib_activate(hone_edit *e, const char *name, const double *param, int n, hone_vid x,
                               hone_vid out) {
    static const struct {
        const char *op, *param[2];
    } known[] = {
        {"Relu", {0}},
        {"Tanh", {0}},
        {"Sigmoid", {0}},
        {"Softplus", {0}},
        {"Softsign", {0}},
        {"HardSwish", {0}},
        {"Gelu", {0}},
        {"LeakyRelu", {"alpha"}},
        {"Elu", {"alpha"}},
        {"Celu", {"alpha"}},
        {"ThresholdedRelu", {"alpha"}},
        {"HardSigmoid", {"alpha", "beta"}},
        {"Selu", {"alpha", "gamma"}},
    };
    if (strcmp(name, "Clip") == 0 && n == 2)
        return HONE_NODE_AS(e, "Clip", out, x, hone_edit_like(e, param[0], x),
                            hone_edit_like(e, param[1], x));
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        if (strcmp(name, known[k].op) != 0) continue;
        hone_attr attr[2];
        int m = 0;
        for (; m < 2 && m < n && known[k].param[m]; m++)
            attr[m] = hone_contrib_float(e, known[k].param[m], param[m]);
        return hone_edit_node(e, name, out, HONE_IN(x), attr, m);
    }
    hone_edit_problem(e, HONE_NOT_SUPPORTED, "activation '%.40s' is not known", name);
    return out;
}

/* ---- nodes --------------------------------------------------------------------------------------------- */
void hone_contrib_node(hone_edit *e, const char *domain, const char *op, const hone_vid *out, int n_out,
                       const hone_vid *in, int n_in, const hone_attr *attr, int n_attr) {
    hone_draft n = {.domain = domain, .op = op, .name = e->node->name, .version = HONE_NEWEST};
    bool good = true;
    for (int k = 0; good && k < n_out; k++) good = hone_push(&n.out, out[k]);
    for (int k = 0; good && k < n_in; k++) good = hone_push(&n.in, in[k]);
    for (int k = 0; good && k < n_attr; k++) good = hone_push(&n.attr, attr[k]);
    if (good) hone_draft_place(&(hone_edit){e->im, e->g, &n});
    else hone_import_no_memory(e->im);
    hone_draft_free(&n);
}

static const int64_t heads_first[] = {0, 2, 1, 3};
hone_vid hone_contrib_split_heads(hone_edit *e, hone_vid x, int64_t heads) {
    hone_vid shape = hone_edit_i64s(e, (const int64_t[]){0, 0, heads, -1}, 4);
    return hone_contrib_transpose(e, HONE_NODE(e, "Reshape", x, shape), -1, heads_first, 4);
}
hone_vid hone_contrib_join_heads(hone_edit *e, hone_vid x, hone_vid out) {
    hone_vid shape = hone_edit_i64s(e, (const int64_t[]){0, 0, -1}, 3);
    return HONE_NODE_AS(e, "Reshape", out, hone_contrib_transpose(e, x, -1, heads_first, 4), shape);
}
