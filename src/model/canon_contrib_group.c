/* SPDX-License-Identifier: Apache-2.0
   canon_contrib_group: GroupQueryAttention and DecoderMaskedMultiHeadAttention. Their operands are taken
   apart here (packed heads, norms of heads, rotary positions); what is left, the cache and
   the attention itself, is the row hone.CachedAttention in ops/contrib_attention.hop. Caches of bytes and
   caches that forget are not here. */
#include "model/canon_contrib.h"

enum {
    QUERY,
    KEY,
    VALUE,
    PAST_KEY,
    PAST_VALUE,
    LENS,
    TOTAL,
    COS,
    SIN,
    POSITIONS,
    BIAS,
    SINK,
    K_SCALE,
    V_SCALE,
    Q_NORM,
    K_NORM
};

static bool refused(hone_edit *e) {
    const hone_draft *n = e->node;
    bool bytes = strcmp(hone_edit_text(e, "k_quant_type", "NONE"), "NONE") != 0 ||
                 strcmp(hone_edit_text(e, "v_quant_type", "NONE"), "NONE") != 0 ||
                 hone_edit_int(e, "kv_cache_bit_width", 0) || hone_draft_in(n, K_SCALE) >= 0 ||
                 hone_draft_in(n, V_SCALE) >= 0;
    if (bytes) hone_edit_problem(e, HONE_NOT_SUPPORTED, "a quantized cache");
    else if (hone_edit_int(e, "sliding_window_cache", 0))
        hone_edit_problem(e, HONE_NOT_SUPPORTED, "sliding_window_cache");
    else if (hone_edit_int(e, "num_heads", 0) <= 0 || hone_edit_int(e, "kv_num_heads", 0) <= 0)
        hone_edit_problem(e, HONE_BAD_INPUT, "num_heads and kv_num_heads must be positive");
    else if (hone_draft_in(n, LENS) < 0) hone_edit_problem(e, HONE_BAD_INPUT, "seqlens_k is missing");
    else if ((hone_draft_in(n, KEY) < 0) != (hone_draft_in(n, VALUE) < 0))
        hone_edit_problem(e, HONE_BAD_INPUT, "key and value come together");
    else if (hone_edit_int(e, "do_rotary", 0) && (hone_draft_in(n, COS) < 0 || hone_draft_in(n, SIN) < 0))
        hone_edit_problem(e, HONE_BAD_INPUT, "do_rotary needs cos_cache and sin_cache");
    else return false;
    return true;
}

/* Where each query stands: [B, S]. In the first step (S is the total) all rows count from the first position;
   later ones from what the cache has. */
static hone_vid positions(hone_edit *e, hone_vid q, hone_vid lens) {
    static const int64_t column[] = {1};
    const hone_draft *n = e->node;
    hone_vid s = hone_contrib_dim(e, q, 2), row = hone_contrib_range(e, s),
             given = hone_draft_in(n, POSITIONS);
    hone_vid total = hone_contrib_cast(e, HONE_NODE(e, "Reshape", n->in.at[TOTAL], hone_contrib_number(e, 1)),
                                       HONE_DTYPE_I64);
    hone_vid first = HONE_NODE(e, "Equal", s, total), zero = hone_contrib_number(e, 0),
             one = hone_contrib_number(e, 1);
    /* [B] */
    hone_vid start =
        HONE_NODE(e, "Sub", HONE_NODE(e, "Add", hone_contrib_cast(e, lens, HONE_DTYPE_I64), one), s);
    if (given < 0)
        return HONE_NODE(
            e, "Add", hone_contrib_unsqueeze(e, HONE_NODE(e, "Where", first, zero, start), column, 1), row);
    hone_vid origin =
        hone_contrib_slice(e, HONE_NODE(e, "Reshape", given, hone_contrib_number(e, -1)), zero, one, 0);
    return HONE_NODE(e, "Where", first, HONE_NODE(e, "Add", origin, row), given);
}

static hone_vid rotated(hone_edit *e, hone_vid x, hone_vid at) {
    const hone_draft *n = e->node;
    const hone_var *cos = hone_var_of(e->g, n->in.at[COS]);
    int rank = hone_edit_rank(e, x); /* infers what is known of x */
    const hone_var *var = hone_var_of(e->g, x);
    int64_t width = cos && cos->rank == 2 && cos->dim[1] > 0 ? 2 * (int64_t)cos->dim[1] : 0;
    bool whole = rank == 4 && var && var->dim[3] == width;
    hone_attr attr[] = {hone_attr_of_int(e->im, "interleaved", hone_edit_int(e, "rotary_interleaved", 0)),
                        hone_attr_of_int(e->im, "rotary_embedding_dim", width)};
    return hone_edit_node(e, "RotaryEmbedding", -1, HONE_IN(x, n->in.at[COS], n->in.at[SIN], at), attr,
                          width > 0 && !whole ? 2 : 1);
}

/* Heads of q, k, v side by side, [B, S, (heads + 2 * of keys) * D] */
static void unpack(hone_edit *e, int64_t heads, int64_t of_keys, hone_vid *part) {
    const int64_t sizes[] = {heads, of_keys, of_keys};
    hone_vid all = hone_contrib_split_heads(e, e->node->in.at[QUERY], heads + 2 * of_keys);
    for (int k = 0; k < 3; k++) part[k] = hone_edit_var(e);
    hone_contrib_node(e, "", "Split", part, 3, HONE_IN(all, hone_edit_i64s(e, sizes, 3)),
                      HONE_WITH(hone_attr_of_int(e->im, "axis", 1)));
}

static hone_vid normed(hone_edit *e, hone_vid x, hone_vid weight) {
    if (weight < 0) return x;
    hone_attr epsilon = hone_contrib_float(e, "epsilon", hone_edit_float(e, "qk_norm_epsilon", 1e-6));
    return hone_edit_node(e, "RMSNormalization", -1, HONE_IN(x, weight), &epsilon, 1);
}

void hone_contrib_group_query(hone_edit *e) {
    static const char *const kept[] = {"num_heads", "kv_num_heads", "causal",         "local_window_size",
                                       "qk_output", "scale",        "smooth_softmax", "softcap"};
    hone_draft *n = e->node;
    n->placed = true;
    if (refused(e)) return;
    int64_t heads = hone_edit_int(e, "num_heads", 0), of_keys = hone_edit_int(e, "kv_num_heads", 0);
    hone_vid part[3], lens = HONE_NODE(e, "Reshape", n->in.at[LENS], hone_contrib_number(e, -1)),
                      made = hone_edit_var(e);
    if (hone_draft_in(n, KEY) < 0) unpack(e, heads, of_keys, part);
    else
        for (int k = 0; k < 3; k++) part[k] = hone_contrib_split_heads(e, n->in.at[k], k ? of_keys : heads);
    part[0] = normed(e, part[0], hone_draft_in(n, Q_NORM));
    part[1] = normed(e, part[1], hone_draft_in(n, K_NORM));
    if (hone_edit_int(e, "do_rotary", 0)) {
        hone_vid at = positions(e, part[0], lens);
        part[0] = rotated(e, part[0], at);
        part[1] = rotated(e, part[1], at);
    }
    hone_attr attr[sizeof kept / sizeof *kept];
    int n_attr = 0;
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
        if (hone_edit_attr(e, kept[k])) attr[n_attr++] = *hone_edit_attr(e, kept[k]);
    const hone_vid in[] = {part[0],
                           part[1],
                           part[2],
                           hone_draft_in(n, PAST_KEY),
                           hone_draft_in(n, PAST_VALUE),
                           lens,
                           n->in.at[TOTAL],
                           hone_draft_in(n, BIAS),
                           hone_draft_in(n, SINK)};
    const hone_vid out[] = {made, hone_draft_out(n, 1), hone_draft_out(n, 2), hone_draft_out(n, 3)};
    hone_contrib_node(e, "hone", "CachedAttention", out, 4, in, 9, attr, n_attr);
    hone_contrib_join_heads(e, made, n->out.at[0]);
}

/* ---- DecoderMaskedMultiHeadAttention ------------------------------------------------------------------- */
/* One query a batch: against keys and values of an encoder, which is MultiHeadAttention; or behind a cache
   with room for more, whose length is an input. */
void hone_contrib_decoder_masked(hone_edit *e) {
    enum {
        D_QUERY,
        D_KEY,
        D_VALUE,
        D_MASK,
        D_ADDED,
        D_PAST_KEY,
        D_PAST_VALUE,
        D_LENGTH,
        D_WIDTH,
        D_BEAMS,
        D_BIAS
    };
    hone_draft *n = e->node;
    int64_t heads = hone_edit_int(e, "num_heads", 0);
    const hone_vid bias = hone_draft_in(n, D_BIAS), mask = hone_draft_in(n, D_MASK),
                   added = hone_draft_in(n, D_ADDED), key = hone_draft_in(n, D_KEY);
    const hone_vid value = hone_draft_in(n, D_VALUE), past = hone_draft_in(n, D_PAST_KEY),
                   past_value = hone_draft_in(n, D_PAST_VALUE);
    const hone_vid length = hone_draft_in(n, D_LENGTH);
    if (hone_draft_in(n, D_BEAMS) >= 0 || hone_draft_out(n, 3) >= 0 || key < 0 || value < 0 || heads <= 0) {
        hone_edit_problem(e, HONE_NOT_SUPPORTED,
                          "cache_indirection, output 'qk', a packed query or no heads");
        n->placed = true;
        return;
    }
    if (past < 0) {
        hone_edit_set_in(e, 3, bias);
        hone_edit_set_in(e, 4, mask);
        hone_edit_set_in(e, 5, added);
        n->in.n = 6;
        hone_contrib_multi_head(e);
        return;
    }
    n->placed = true;
    if (length < 0) {
        hone_edit_problem(e, HONE_NOT_SUPPORTED, "a past without past_sequence_length");
        return;
    }
    hone_vid part[3] = {n->in.at[D_QUERY], key, value}, made = hone_edit_var(e),
             from = hone_contrib_number(e, 0);
    for (int k = 0; k < 3; k++) { /* the bias has a part for each */
        if (bias >= 0) {
            hone_vid to = k == 2 ? hone_contrib_number(e, INT64_MAX)
                                 : HONE_NODE(e, "Add", from, hone_contrib_dim(e, part[k], 2));
            part[k] = HONE_NODE(e, "Add", part[k], hone_contrib_slice(e, bias, from, to, 0));
            from = to;
        }
        part[k] = hone_contrib_split_heads(e, part[k], heads);
    }
    hone_vid before = HONE_NODE(e, "Reshape", length, hone_contrib_number(e, 1)),
             one = hone_edit_scalar(e, HONE_DTYPE_I32, 1);
    hone_vid total = HONE_NODE(e, "Add", before, one),
             lens = HONE_NODE(e, "Expand", before, hone_contrib_dim(e, part[0], 0));
    hone_vid scores = hone_contrib_add(
        e, hone_contrib_added_mask(e, mask, part[0], hone_contrib_cast(e, total, HONE_DTYPE_I64)), added);
    const hone_vid in[] = {part[0], part[1], part[2], past, past_value, lens, total, scores, -1};
    const hone_vid out[] = {made, hone_draft_out(n, 1), hone_draft_out(n, 2)};
    hone_attr attr[] = {hone_attr_of_int(e->im, "num_heads", heads),
                        hone_attr_of_int(e->im, "kv_num_heads", heads),
                        hone_contrib_float(e, "scale", hone_edit_float(e, "scale", 0))};
    hone_contrib_node(e, "hone", "CachedAttention", out, 3, in, 9, attr, 3);
    hone_contrib_join_heads(e, made, n->out.at[0]);
}
