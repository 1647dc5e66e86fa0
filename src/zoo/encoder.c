/* SPDX-License-Identifier: Apache-2.0
   encoder: BERT base (Devlin et al. 2018), DistilBERT (Sanh et al. 2019), ViT-B/16 (Dosovitskiy et al.
   2020), Whisper's encoder (Radford et al. 2022; with default options that of whisper-tiny). Attention is
   written four ways, as the exports of the four are: scores divided, queries divided, both scaled by a root
   with heads packed, and heads folded into the batch. */
#include <math.h>

#include "zoo/nets.h"
#include "zoo/transformer.h"

enum { PLACES = 512, SIZE = 768, HEADS = 12, INNER = 3072 };

/* Numbers of the places in the sequence, i64[1, S]: a constant, or the front of a longer one. */
static hone_vid places(hone_zoo *z, hone_vid ids) {
    if (hone_dim_is_number(z->seq)) return hone_zoo_count_up(z, "position_ids", 0, z->seq);
    hone_vid all = hone_zoo_count_up(z, "position_ids", 0, PLACES),
             zero = hone_zoo_ints(z, (const int64_t[]){0}, 1);
    hone_vid end = hone_zoo_size_of(z, ids, 1), axis = hone_zoo_ints(z, (const int64_t[]){1}, 1);
    return hone_zoo_op(z, "Slice", HONE_ZOO_IN(all, zero, end, axis));
}

/* ---- BERT ---------------------------------------------------------------------------------------------- */
/* 1 where a token counts → 0, and the lowest number where it does not: [B, 1, 1, S] */
static hone_vid bert_mask(hone_zoo *z, hone_vid mask) {
    mask = hone_zoo_unsqueeze(z, hone_zoo_unsqueeze(z, mask, 1), 2);
    mask = hone_zoo_cast(z, mask, HONE_DTYPE_F32);
    hone_vid one = hone_zoo_float(z, 1), away = hone_zoo_op(z, "Sub", HONE_ZOO_IN(one, mask));
    return hone_zoo_mul(z, away, hone_zoo_float(z, HONE_ZOO_LOWEST));
}
static hone_vid bert_attention(hone_zoo *z, hone_vid x, hone_vid mask) {
    hone_zoo_enter(z, "attention.self");
    hone_vid q = hone_zoo_linear(z, "query", x, SIZE, true, 1),
             k = hone_zoo_linear(z, "key", x, SIZE, true, 1);
    hone_vid v = hone_zoo_linear(z, "value", x, SIZE, true, 1);
    k = hone_zoo_heads(z, k, HEADS, "0,2,3,1"), v = hone_zoo_heads(z, v, HEADS, "0,2,1,3"),
    q = hone_zoo_heads(z, q, HEADS, "0,2,1,3");
    hone_vid s = hone_zoo_op(z, "MatMul", HONE_ZOO_IN(q, k));
    s = hone_zoo_op(z, "Div", HONE_ZOO_IN(s, hone_zoo_float(z, sqrt(SIZE / HEADS))));
    s = hone_zoo_softmax(z, hone_zoo_add(z, s, mask), v);
    s = hone_zoo_join_heads(z, s, x);
    hone_zoo_leave(z);
    return s;
}
void hone_zoo_bert(hone_zoo *z, const void *plan) {
    const hone_dim two[] = {z->batch, z->seq};
    int layers = (int)hone_zoo_option(z, HONE_ZOO_LAYERS);
    hone_vid ids = hone_zoo_input(z, "input_ids", HONE_DTYPE_I64, two, 2);
    hone_vid mask = hone_zoo_input(z, "attention_mask", HONE_DTYPE_I64, two, 2);
    hone_vid kinds = hone_zoo_input(z, "token_type_ids", HONE_DTYPE_I64, two, 2);
    mask = bert_mask(z, mask);
    hone_zoo_enter(z, "embeddings");
    hone_vid x = hone_zoo_embed(z, "word_embeddings", ids, hone_zoo_option(z, HONE_ZOO_VOCAB), SIZE),
             t = hone_zoo_embed(z, "token_type_embeddings", kinds, 2, SIZE);
    x = hone_zoo_add(z, x, t);
    x = hone_zoo_add(z, x, hone_zoo_embed(z, "position_embeddings", places(z, ids), PLACES, SIZE));
    x = hone_zoo_layer_norm(z, "LayerNorm", x, 1e-12);
    hone_zoo_leave(z);
    for (int k = 0; k < layers; k++) {
        hone_zoo_enter(z, "encoder.layer.%d", k);
        hone_vid y = hone_zoo_linear(z, "attention.output.dense", bert_attention(z, x, mask), SIZE, true, 1);
        x = hone_zoo_layer_norm(z, "attention.output.LayerNorm", hone_zoo_add(z, y, x), 1e-12);
        y = hone_zoo_act(z, "Gelu", hone_zoo_linear(z, "intermediate.dense", x, INNER, true, 1));
        y = hone_zoo_linear(z, "output.dense", y, SIZE, true, 1);
        y = hone_zoo_add(z, y, x);
        if (k == layers - 1) hone_zoo_name(z, "last_hidden_state");
        x = hone_zoo_layer_norm(z, "output.LayerNorm", y, 1e-12);
        hone_zoo_leave(z);
    }
    hone_zoo_output(z, x);
    hone_zoo_enter(z, "pooler");
    x = hone_zoo_op_with(z, "Gather", HONE_ZOO_IN(x, hone_zoo_int(z, 0)), "axis=1");
    x = hone_zoo_linear(z, "dense", x, SIZE, true, 1);
    hone_zoo_name(z, "pooler_output");
    hone_zoo_output(z, hone_zoo_act(z, "Tanh", x));
    hone_zoo_leave(z);
}

/* ---- DistilBERT ---------------------------------------------------------------------------------------- */
static hone_vid distil_attention(hone_zoo *z, hone_vid x, hone_vid mask) {
    hone_zoo_enter(z, "attention");
    hone_vid q = hone_zoo_heads(z, hone_zoo_linear(z, "q_lin", x, SIZE, true, 1), HEADS, "0,2,1,3");
    hone_vid k = hone_zoo_heads(z, hone_zoo_linear(z, "k_lin", x, SIZE, true, 1), HEADS, "0,2,3,1");
    hone_vid v = hone_zoo_heads(z, hone_zoo_linear(z, "v_lin", x, SIZE, true, 1), HEADS, "0,2,1,3");
    q = hone_zoo_op(z, "Div", HONE_ZOO_IN(q, hone_zoo_float(z, sqrt(SIZE / HEADS))));
    hone_vid s = hone_zoo_op(z, "MatMul", HONE_ZOO_IN(q, k)), zero = hone_zoo_int(z, 0);
    hone_vid off = hone_zoo_op(z, "Equal", HONE_ZOO_IN(mask, zero));
    off = hone_zoo_reshape(z, off, mask,
                           HONE_ZOO_DIMS(hone_zoo_dim(z, mask, 0), 1, 1, hone_zoo_dim(z, mask, 1)));
    off = hone_zoo_op(z, "Expand", HONE_ZOO_IN(off, hone_zoo_op(z, "Shape", HONE_ZOO_IN(s))));
    hone_vid low = hone_zoo_float(z, HONE_ZOO_LOWEST);
    s = hone_zoo_op(z, "Where", HONE_ZOO_IN(off, low, s));
    s = hone_zoo_join_heads(z, hone_zoo_softmax(z, s, v), x);
    s = hone_zoo_linear(z, "out_lin", s, SIZE, true, 1);
    hone_zoo_leave(z);
    return s;
}
void hone_zoo_distilbert(hone_zoo *z, const void *plan) {
    const hone_dim two[] = {z->batch, z->seq};
    int layers = (int)hone_zoo_option(z, HONE_ZOO_LAYERS);
    hone_vid ids = hone_zoo_input(z, "input_ids", HONE_DTYPE_I64, two, 2);
    hone_vid mask = hone_zoo_input(z, "attention_mask", HONE_DTYPE_I64, two, 2);
    hone_zoo_enter(z, "embeddings");
    hone_vid x = hone_zoo_embed(z, "word_embeddings", ids, hone_zoo_option(z, HONE_ZOO_VOCAB), SIZE);
    x = hone_zoo_add(z, x, hone_zoo_embed(z, "position_embeddings", places(z, ids), PLACES, SIZE));
    x = hone_zoo_layer_norm(z, "LayerNorm", x, 1e-12);
    hone_zoo_leave(z);
    for (int k = 0; k < layers; k++) {
        hone_zoo_enter(z, "transformer.layer.%d", k);
        x = hone_zoo_layer_norm(z, "sa_layer_norm", hone_zoo_add(z, distil_attention(z, x, mask), x), 1e-12);
        hone_vid y = hone_zoo_act(z, "Gelu", hone_zoo_linear(z, "ffn.lin1", x, INNER, true, 1));
        y = hone_zoo_add(z, hone_zoo_linear(z, "ffn.lin2", y, SIZE, true, 1), x);
        if (k == layers - 1) hone_zoo_name(z, "last_hidden_state");
        x = hone_zoo_layer_norm(z, "output_layer_norm", y, 1e-12);
        hone_zoo_leave(z);
    }
    hone_zoo_output(z, x);
}

/* ---- ViT ----------------------------------------------------------------------------------------------- */
/* One product for queries, keys and values, sequence before batch, as nn.MultiheadAttention works inside. */
static hone_vid vit_attention(hone_zoo *z, hone_vid x) {
    hone_dim n = hone_zoo_dim(z, x, 0), s = hone_zoo_dim(z, x, 1), size = SIZE / HEADS;
    hone_vid part[3], from = x, root = hone_zoo_float(z, sqrt(sqrt(1.0 / (double)size)));
    hone_zoo_enter(z, "self_attention");
    x = hone_zoo_linear(z, "in_proj", hone_zoo_transpose(z, x, "1,0,2"), 3 * SIZE, true, 1);
    x = hone_zoo_reshape(z, x, from, HONE_ZOO_DIMS(s, n, 3, SIZE));
    x = hone_zoo_transpose(z, hone_zoo_unsqueeze(z, x, 0), "3,1,2,0,4");
    x = hone_zoo_op(z, "Squeeze", HONE_ZOO_IN(x, hone_zoo_ints(z, (const int64_t[]){3}, 1)));
    for (int k = 0; k < 3; k++) {
        part[k] = hone_zoo_op_with(z, "Gather", HONE_ZOO_IN(x, hone_zoo_int(z, k)), "axis=0");
        part[k] = hone_zoo_reshape(z, part[k], from, HONE_ZOO_DIMS(s, -1, size));
        part[k] = hone_zoo_transpose(z, part[k], "1,0,2");
        part[k] = hone_zoo_reshape(z, part[k], from, HONE_ZOO_DIMS(n, HEADS, s, size));
    }
    hone_vid q = hone_zoo_mul(z, part[0], root),
             k = hone_zoo_mul(z, hone_zoo_transpose(z, part[1], "0,1,3,2"), root);
    x = hone_zoo_softmax(z, hone_zoo_op(z, "MatMul", HONE_ZOO_IN(q, k)), part[2]);
    x = hone_zoo_reshape(z, hone_zoo_transpose(z, x, "2,0,1,3"), from, HONE_ZOO_DIMS(-1, SIZE));
    x = hone_zoo_linear(z, "out_proj", x, SIZE, true, 1);
    x = hone_zoo_reshape(z, x, from, HONE_ZOO_DIMS(s, n, SIZE));
    hone_zoo_leave(z);
    return hone_zoo_transpose(z, x, "1,0,2");
}
void hone_zoo_vit(hone_zoo *z, const void *plan) {
    int64_t side = hone_zoo_option(z, HONE_ZOO_IMAGE) / 16, patches = side * side;
    hone_vid image = hone_zoo_image(z, 3);
    hone_vid x = HONE_ZOO_CONV(z, "conv_proj", image, .out = SIZE, .k = 16, .stride = 16, .valid = true,
                               .plain = true);
    x = hone_zoo_reshape(z, x, image, HONE_ZOO_DIMS(z->batch, SIZE, patches));
    x = hone_zoo_transpose(z, x, "0,2,1");
    hone_vid token = hone_zoo_weight(z, "class_token", HONE_ZOO_DIMS(1, 1, SIZE), 0, 1);
    token = hone_zoo_op(z, "Expand",
                        HONE_ZOO_IN(token, hone_zoo_shape(z, image, HONE_ZOO_DIMS(z->batch, 1, SIZE))));
    x = hone_zoo_cat(z, HONE_ZOO_IN(token, x), 1);
    x = hone_zoo_add(
        z, x, hone_zoo_weight(z, "encoder.pos_embedding", HONE_ZOO_DIMS(1, patches + 1, SIZE), 0, 0.5));
    for (int k = 0; k < hone_zoo_option(z, HONE_ZOO_LAYERS); k++) {
        hone_zoo_enter(z, "encoder.layers.%d", k);
        x = hone_zoo_add(z, vit_attention(z, hone_zoo_layer_norm(z, "ln_1", x, 1e-6)), x);
        hone_vid y = hone_zoo_linear(z, "mlp.0", hone_zoo_layer_norm(z, "ln_2", x, 1e-6), INNER, true, 1);
        y = hone_zoo_linear(z, "mlp.3", hone_zoo_act(z, "Gelu", y), SIZE, true, 1);
        x = hone_zoo_add(z, x, y);
        hone_zoo_leave(z);
    }
    x = hone_zoo_layer_norm(z, "encoder.ln", x, 1e-6);
    x = hone_zoo_op_with(z, "Gather", HONE_ZOO_IN(x, hone_zoo_int(z, 0)), "axis=1");
    hone_zoo_name(z, "logits");
    hone_zoo_output(z, hone_zoo_linear(z, "heads.head", x, hone_zoo_option(z, HONE_ZOO_CLASSES), true, 1));
}

/* ---- Whisper ------------------------------------------------------------------------------------------- */
/* Heads are part of the batch: three-dimensional products. */
static hone_vid whisper_attention(hone_zoo *z, hone_vid x, int64_t heads) {
    hone_dim s = hone_zoo_dim(z, x, 1), all = hone_zoo_dim(z, x, 2), size = all / heads;
    hone_vid part[3], from = x;
    static const char *const names[] = {"q_proj", "k_proj", "v_proj"};
    hone_zoo_enter(z, "self_attn");
    for (int k = 0; k < 3; k++) {
        /* keys have no bias: it would change nothing */
        part[k] = hone_zoo_linear(z, names[k], x, all, k != 1, 1);
        if (k == 0) part[k] = hone_zoo_mul(z, part[k], hone_zoo_float(z, 1 / sqrt((double)size)));
        part[k] = hone_zoo_heads(z, part[k], heads, "0,2,1,3");
        part[k] = hone_zoo_reshape(z, part[k], from, HONE_ZOO_DIMS(-1, s, size));
    }
    hone_vid k = hone_zoo_transpose(z, part[1], "0,2,1");
    x = hone_zoo_softmax(z, hone_zoo_op(z, "MatMul", HONE_ZOO_IN(part[0], k)), part[2]);
    x = hone_zoo_reshape(z, x, from, HONE_ZOO_DIMS(z->batch, heads, s, size));
    x = hone_zoo_linear(z, "out_proj", hone_zoo_join_heads(z, x, from), all, true, 1);
    hone_zoo_leave(z);
    return x;
}
void hone_zoo_whisper(hone_zoo *z, const void *plan) {
    int64_t s = hone_zoo_option(z, HONE_ZOO_SEQ), dim = hone_zoo_option(z, HONE_ZOO_DIM),
            heads = hone_zoo_option(z, HONE_ZOO_HEADS);
    int layers = (int)hone_zoo_option(z, HONE_ZOO_LAYERS);
    if (dim % heads)
        hone_zoo_wrong(z, "dim=%lld must be a multiple of heads=%lld", (long long)dim, (long long)heads);
    /* a picture of sound: 80 tones */
    hone_vid x = hone_zoo_input(z, "input_features", HONE_DTYPE_F32, HONE_ZOO_DIMS(z->batch, 80, 2 * s));
    x = HONE_ZOO_CONV(z, "conv1", x, .out = (int)dim, .k = 3, .plain = true, .act = "Gelu");
    x = HONE_ZOO_CONV(z, "conv2", x, .out = (int)dim, .k = 3, .stride = 2, .plain = true, .act = "Gelu");
    x = hone_zoo_transpose(z, x, "0,2,1");
    x = hone_zoo_add(z, x, hone_zoo_weight(z, "embed_positions.weight", HONE_ZOO_DIMS(s, dim), 0, 1));
    for (int k = 0; k < layers; k++) {
        hone_zoo_enter(z, "layers.%d", k);
        x = hone_zoo_add(
            z, x, whisper_attention(z, hone_zoo_layer_norm(z, "self_attn_layer_norm", x, 1e-5), heads));
        hone_vid y =
            hone_zoo_linear(z, "fc1", hone_zoo_layer_norm(z, "final_layer_norm", x, 1e-5), 4 * dim, true, 1);
        y = hone_zoo_linear(z, "fc2", hone_zoo_act(z, "Gelu", y), dim, true, 1);
        x = hone_zoo_add(z, x, y);
        hone_zoo_leave(z);
    }
    hone_zoo_name(z, "last_hidden_state");
    hone_zoo_output(z, hone_zoo_layer_norm(z, "layer_norm", x, 1e-5));
}
