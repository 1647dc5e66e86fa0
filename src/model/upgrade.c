/* SPDX-License-Identifier: Apache-2.0
   upgrade: which op needs which up-converter, below which version. Read from the top: a row may rename the
   op, and later rows see the new name. Old versions that differ from the newest only in the types they take,
   or in attributes whose defaults mean the same, need no row. */
#include "model/upgrade.h"

#include <string.h>

static const char ml[] = "ai.onnx.ml", training[] = "ai.onnx.preview.training";
static const struct {
    const char *domain, *op;
    int below;
    hone_upgrade_fn *apply;
} table[] = {
    {"", "Add", 7, hone_up_broadcast},
    {"", "Sub", 7, hone_up_broadcast},
    {"", "Mul", 7, hone_up_broadcast},
    {"", "Div", 7, hone_up_broadcast},
    {"", "Pow", 7, hone_up_broadcast},
    {"", "And", 7, hone_up_broadcast},
    {"", "Or", 7, hone_up_broadcast},
    {"", "Xor", 7, hone_up_broadcast},
    {"", "Greater", 7, hone_up_broadcast},
    {"", "Less", 7, hone_up_broadcast},
    {"", "Equal", 7, hone_up_broadcast},
    {"", "PRelu", 7, hone_up_prelu},
    {"", "Gemm", 7, hone_up_gemm},
    {"", "Cast", 6, hone_up_cast},
    {"", "Selu", 6, hone_up_selu},
    {"", "Concat", 4, hone_up_concat},
    {"", "Clip", 11, hone_up_clip},
    {"", "Dropout", 12, hone_up_dropout},
    {"", "Pad", 11, hone_up_pad},
    {"", "Slice", 10, hone_up_slice},
    {"", "Squeeze", 13, hone_up_axes},
    {"", "Unsqueeze", 13, hone_up_axes},
    {"", "ReduceSum", 13, hone_up_axes},
    {"", "ReduceL1", 18, hone_up_axes},
    {"", "ReduceL2", 18, hone_up_axes},
    {"", "ReduceLogSum", 18, hone_up_axes},
    {"", "ReduceLogSumExp", 18, hone_up_axes},
    {"", "ReduceMax", 18, hone_up_axes},
    {"", "ReduceMean", 18, hone_up_axes},
    {"", "ReduceMin", 18, hone_up_axes},
    {"", "ReduceProd", 18, hone_up_axes},
    {"", "ReduceSumSquare", 18, hone_up_axes},
    {"", "Split", 13, hone_up_split},
    {"", "TopK", 10, hone_up_topk},
    {"", "Reshape", 5, hone_up_reshape},
    {"", "Tile", 6, hone_up_tile},
    {"", "Upsample", HONE_NEWEST, hone_up_upsample},
    {"", "Resize", 11, hone_up_upsample},
    {"", "DFT", 20, hone_up_dft},
    {"", "BatchNormalization", 14, hone_up_batch_norm},
    {"", "GroupNormalization", 21, hone_up_group_norm},
    {"", "Softmax", 13, hone_up_softmax},
    {"", "LogSoftmax", 13, hone_up_softmax},
    {"", "Hardmax", 13, hone_up_softmax},
    {"", "Scatter", HONE_NEWEST, hone_up_scatter},
    {"", "LpPool", 2, hone_up_lp_pool},
    {"", "GlobalLpPool", 2, hone_up_lp_pool},
    {"", "RNN", 7, hone_up_recurrent},
    {"", "GRU", 7, hone_up_recurrent},
    {"", "LSTM", 7, hone_up_recurrent},
    {"", "RoiAlign", 16, hone_up_roi_align},
    {"", "GridSample", 20, hone_up_grid_sample},
    {"", "Scan", 9, hone_up_scan},
    {ml, "LabelEncoder", 2, hone_up_label_encoder},
    /* The canonical forms: of any version, the newest included; each leaves alone what it has done. */
    {"", "Sum", 0, hone_canon_chain},
    {"", "Mean", 0, hone_canon_chain},
    {"", "Max", 0, hone_canon_chain},
    {"", "Min", 0, hone_canon_chain},
    {"", "ConstantOfShape", 0, hone_canon_fill},
    {"", "MeanVarianceNormalization", 0, hone_canon_mvn},
    {"", "Split", 0, hone_canon_split},
    {"", "RNN", 0, hone_canon_layout},
    {"", "GRU", 0, hone_canon_layout},
    {"", "LSTM", 0, hone_canon_layout},
    {"", "Attention", 0, hone_canon_attention},
    {"", "RotaryEmbedding", 0, hone_canon_rotary},
    {"", "Resize", 0, hone_canon_resize},
    {"", "Einsum", 0, hone_canon_einsum},
    {training, "Adagrad", 0, hone_canon_optimizer},
    {training, "Adam", 0, hone_canon_optimizer},
    {training, "Momentum", 0, hone_canon_optimizer},
    {training, "Gradient", 0, hone_canon_gradient},
};
enum { ROWS = sizeof table / sizeof *table };

static bool is_op(int row, const char *domain, const char *op) {
    return strcmp(table[row].op, op) == 0 && strcmp(table[row].domain, domain) == 0;
}

void hone_upgrade(hone_edit *e) {
    hone_draft *n = e->node;
    hone_contrib(e);
    for (int k = 0; k < ROWS && !n->placed; k++)
        if ((!table[k].below || n->version < table[k].below) && is_op(k, n->domain, n->op)) table[k].apply(e);
}

bool hone_upgrade_knows(const char *domain, const char *op) {
    if (hone_contrib_knows(domain, op)) return true;
    for (int k = 0; k < ROWS; k++)
        if (is_op(k, domain, op)) return true;
    return false;
}
