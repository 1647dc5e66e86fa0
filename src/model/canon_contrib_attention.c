/* SPDX-License-Identifier: Apache-2.0
   canon_contrib_attention: Attention and MultiHeadAttention of com.microsoft as ONNX's Attention: heads split
   off the last dim, projections a MatMul, padding masks of any form a number that is added. RotaryEmbedding
   of that domain, whose operands stand in another order. Beams and caches that are larger than
   what they hold are not here. */
#include "model/canon_contrib.h"

/* ---- masks --------------------------------------------------------------------------------------------- */
/* 0 where `seen` is true, the filter value elsewhere, in the type of x. */
static hone_vid filtered(hone_edit *e, hone_vid seen, hone_vid x) {
    return HONE_NODE(e, "Where", seen, hone_edit_like(e, 0, x),
                     hone_edit_like(e, hone_edit_float(e, "mask_filter_value", -10000), x));
}

/* How many keys of each row count, and perhaps behind them where they start: [B] or [2 B] → seen [B, T]. */
static hone_vid seen_by_ends(hone_edit *e, hone_vid ends, hone_vid x, hone_vid total) {
    static const int64_t last[] = {1};
    hone_vid batch = hone_contrib_dim(e, x, 0), zero = hone_contrib_number(e, 0),
             two = hone_contrib_number(e, 2);
    hone_vid many = hone_contrib_cast(e, ends, HONE_DTYPE_I64), at = hone_contrib_range(e, total);
    hone_vid end = hone_contrib_unsqueeze(e, hone_contrib_slice(e, many, zero, batch, 0), last, 1);
    /* Without starts the second half is what is put behind: zeros. */
    hone_vid padded = hone_edit_node(e, "Concat", -1, HONE_IN(many, HONE_NODE(e, "Expand", zero, batch)),
                                     HONE_WITH(hone_attr_of_int(e->im, "axis", 0)));
    hone_vid start = hone_contrib_unsqueeze(
        e, hone_contrib_slice(e, padded, batch, HONE_NODE(e, "Mul", batch, two), 0), last, 1);
    return HONE_NODE(e, "And", HONE_NODE(e, "Less", at, end), HONE_NODE(e, "GreaterOrEqual", at, start));
}

/* A mask of keys as something to add to scores [B, heads, S, T]. `total`: T, as a vector of one number. -1:
   there is none, or a problem is noted. */
hone_vid hone_contrib_added_mask(hone_edit *e, hone_vid mask, hone_vid x, hone_vid total) {
    static const int64_t for_keys[] = {1, 2}, for_pairs[] = {1};
    int rank = mask < 0 ? 0 : hone_edit_rank(e, mask);
    if (mask < 0) return -1;
    hone_vid seen = rank == 1 ? seen_by_ends(e, mask, x, total)
                              : HONE_NODE(e, "Greater", mask, hone_edit_like(e, 0, mask));
    if (rank == 1 || rank == 2) return filtered(e, hone_contrib_unsqueeze(e, seen, for_keys, 2), x);
    if (rank == 3) return filtered(e, hone_contrib_unsqueeze(e, seen, for_pairs, 1), x);
    hone_edit_problem(e, HONE_NOT_SUPPORTED, "a mask of %d dims: 1, 2 or 3 are (-1: not known)", rank);
    return -1;
}

/* ---- the node itself ----------------------------------------------------------------------------------- */
typedef struct {
    hone_vid q, k, v, mask, past_k, past_v; /* heads split */
    hone_vid y;                             /* heads joined */
    hone_vid present_k, present_v, scores;
} attention;

static void attend(hone_edit *e, const attention *a) {
    hone_vid made = hone_edit_var(e);
    const hone_vid out[] = {made, a->present_k, a->present_v, a->scores},
                   in[] = {a->q, a->k, a->v, a->mask, a->past_k, a->past_v};
    hone_attr attr[3];
    int n = 0;
    double scale = hone_edit_float(e, "scale", 0);
    if (hone_edit_int(e, "unidirectional", 0)) attr[n++] = hone_attr_of_int(e->im, "is_causal", 1);
    if (scale != 0) attr[n++] = hone_contrib_float(e, "scale", scale);
    /* masked, before Softmax */
    if (a->scores >= 0) attr[n++] = hone_attr_of_int(e->im, "qk_matmul_output_mode", 2);
    hone_contrib_node(e, "", "Attention", out, 4, in, 6, attr, n);
    hone_contrib_join_heads(e, made, a->y);
}

static int64_t heads_of(hone_edit *e) {
    int64_t heads = hone_edit_int(e, "num_heads", 0);
    if (heads <= 0) hone_edit_problem(e, HONE_BAD_INPUT, "num_heads must be positive");
    return heads;
}

/* Half k of a cache whose first dim tells keys from values. */
static hone_vid half_of(hone_edit *e, hone_vid past, int64_t k) {
    return hone_edit_node(e, "Gather", -1, HONE_IN(past, hone_edit_i64(e, k)),
                          HONE_WITH(hone_attr_of_int(e->im, "axis", 0)));
}

/* q, k, v side by side in the last dim */
void hone_contrib_attention_of(hone_edit *e, hone_vid projected, hone_vid mask, hone_vid past,
                               hone_vid added) {
    const hone_draft *n = e->node;
    const hone_attr *sizes = hone_edit_attr(e, "qkv_hidden_sizes");
    int64_t heads = heads_of(e);
    hone_vid part[] = {hone_edit_var(e), hone_edit_var(e), hone_edit_var(e)}, present = hone_draft_out(n, 1);
    if (heads <= 0) return;
    if (hone_edit_int(e, "do_rotary", 0) || hone_edit_int(e, "past_present_share_buffer", 0)) {
        hone_edit_problem(e, HONE_NOT_SUPPORTED, "do_rotary and past_present_share_buffer are not supported");
        return;
    }
    hone_vid cut =
        sizes && sizes->kind == HONE_ATTR_INTS && sizes->n == 3 ? hone_edit_i64s(e, sizes->i, 3) : -1;
    hone_contrib_node(e, "", "Split", part, 3, HONE_IN(projected, cut),
                      HONE_WITH(hone_attr_of_int(e->im, "axis", -1)));
    attention a = {
        .past_k = -1, .past_v = -1, .present_k = -1, .present_v = -1, .scores = -1, .y = n->out.at[0]};
    a.q = hone_contrib_split_heads(e, part[0], heads);
    a.k = hone_contrib_split_heads(e, part[1], heads);
    a.v = hone_contrib_split_heads(e, part[2], heads);
    hone_vid total = hone_contrib_dim(e, projected, 1);
    if (past >= 0) {
        a.past_k = half_of(e, past, 0), a.past_v = half_of(e, past, 1);
        total = HONE_NODE(e, "Add", total, hone_contrib_dim(e, past, 3));
    }
    if (present >= 0) a.present_k = hone_edit_var(e), a.present_v = hone_edit_var(e);
    a.mask = hone_contrib_add(e, hone_contrib_added_mask(e, mask, projected, total), added);
    attend(e, &a);
    if (present < 0) return;
    static const int64_t first[] = {0};
    hone_edit_node(e, "Concat", present,
                   HONE_IN(hone_contrib_unsqueeze(e, a.present_k, first, 1),
                           hone_contrib_unsqueeze(e, a.present_v, first, 1)),
                   HONE_WITH(hone_attr_of_int(e->im, "axis", 0)));
}

/* (x, weights, bias, mask, past, added, past length) */
void hone_contrib_attention(hone_edit *e) {
    hone_draft *n = e->node;
    n->placed = true;
    if (hone_draft_in(n, 6) >= 0) {
        hone_edit_problem(e, HONE_NOT_SUPPORTED, "past_sequence_length is not supported");
        return;
    }
    hone_vid all = hone_contrib_add(e, HONE_NODE(e, "MatMul", n->in.at[0], n->in.at[1]), hone_draft_in(n, 2));
    hone_contrib_attention_of(e, all, hone_draft_in(n, 3), hone_draft_in(n, 4), hone_draft_in(n, 5));
}

/* ---- MultiHeadAttention -------------------------------------------------------------------------------- */
/* [B, S, heads, n, D], of which place k → [B, heads, S, D] */
static hone_vid unpacked(hone_edit *e, hone_vid x, int64_t k) {
    static const int64_t heads_first[] = {0, 2, 1, 3};
    hone_vid one = hone_edit_node(e, "Gather", -1, HONE_IN(x, hone_edit_i64(e, k)),
                                  HONE_WITH(hone_attr_of_int(e->im, "axis", 3)));
    return hone_contrib_transpose(e, one, -1, heads_first, 4);
}

/* (query, key, value, bias, mask, added, past key, past value, past length, beams) → y, keys, values,
   scores */
void hone_contrib_multi_head(hone_edit *e) {
    hone_draft *n = e->node;
    int64_t heads = heads_of(e);
    hone_vid q = n->in.at[0], k = hone_draft_in(n, 1), v = hone_draft_in(n, 2), bias = hone_draft_in(n, 3);
    int rank_q = hone_edit_rank(e, q), rank_k = k < 0 ? 0 : hone_edit_rank(e, k);
    attention a = {.y = n->out.at[0], .past_k = hone_draft_in(n, 6), .past_v = hone_draft_in(n, 7)};
    a.present_k = hone_draft_out(n, 1), a.present_v = hone_draft_out(n, 2), a.scores = hone_draft_out(n, 3);
    n->placed = true;
    if (heads <= 0) return;
    if (hone_draft_in(n, 8) >= 0 || hone_draft_in(n, 9) >= 0) {
        hone_edit_problem(e, HONE_NOT_SUPPORTED,
                          "past_sequence_length and cache_indirection are not supported");
        return;
    }
    bool packed = rank_q == 5 && k < 0 && v < 0, pairs = rank_q == 3 && rank_k == 5 && v < 0,
         split = rank_q == 3 && rank_k == 4 && v >= 0;
    bool plain = k >= 0 && v >= 0 && (rank_q == 3 || rank_q < 0) && (rank_k == 3 || rank_k < 0);
    if ((!packed && !pairs && !split && !plain) || (bias >= 0 && (packed || pairs))) {
        hone_edit_problem(e, HONE_NOT_SUPPORTED,
                          "query and key of %d and %d dims in this combination (-1: not known)", rank_q,
                          rank_k);
        return;
    }
    if (bias >= 0) { /* its parts are as long as those of q, k, v */
        hone_vid zero = hone_contrib_number(e, 0), to_k = hone_contrib_dim(e, q, 2),
                 end = hone_contrib_number(e, INT64_MAX);
        q = HONE_NODE(e, "Add", q, hone_contrib_slice(e, bias, zero, to_k, 0));
        if (!split) { /* keys and values that come with heads split have theirs already */
            hone_vid to_v = HONE_NODE(e, "Add", to_k, hone_contrib_dim(e, k, 2));
            k = HONE_NODE(e, "Add", k, hone_contrib_slice(e, bias, to_k, to_v, 0));
            v = HONE_NODE(e, "Add", v, hone_contrib_slice(e, bias, to_v, end, 0));
        }
    }
    a.q = packed ? unpacked(e, q, 0) : hone_contrib_split_heads(e, q, heads);
    a.k = packed  ? unpacked(e, q, 1)
          : pairs ? unpacked(e, k, 0)
          : split ? k
                  : hone_contrib_split_heads(e, k, heads);
    a.v = packed  ? unpacked(e, q, 2)
          : pairs ? unpacked(e, k, 1)
          : split ? v
                  : hone_contrib_split_heads(e, v, heads);
    hone_vid total = hone_contrib_dim(e, a.k, 2);
    if (a.past_k >= 0) total = HONE_NODE(e, "Add", total, hone_contrib_dim(e, a.past_k, 2));
    a.mask =
        hone_contrib_add(e, hone_contrib_added_mask(e, hone_draft_in(n, 4), a.q, total), hone_draft_in(n, 5));
    attend(e, &a);
}

/* ---- RotaryEmbedding ----------------------------------------------------------------------------------- */
/* (x, positions, cosines, sines): x has its heads split, or side by side in the last dim. One position is
   that of the first token. */
void hone_contrib_rotary(hone_edit *e) {
    hone_draft *n = e->node;
    static const int64_t heads_first[] = {0, 2, 1, 3}, front[] = {0};
    hone_vid x = n->in.at[0], at = n->in.at[1], cos = n->in.at[2], sin = n->in.at[3];
    int rank = hone_edit_rank(e, x), rank_at = hone_edit_rank(e, at);
    int64_t heads = hone_edit_int(e, "num_heads", 0), width = hone_edit_int(e, "rotary_embedding_dim", 0);
    n->placed = true;
    if ((rank != 3 && rank != 4) || (rank_at != 1 && rank_at != 2) ||
        hone_edit_int(e, "is_packed_batching", 0) || hone_edit_float(e, "scale", 1) != 1) {
        hone_edit_problem(
            e, HONE_NOT_SUPPORTED,
            "an input of %d dims, positions of %d, is_packed_batching or a scale (-1: not known)", rank,
            rank_at);
        return;
    }
    if (rank == 3 && heads > 0) {
        x = hone_contrib_split_heads(e, x, heads);
    } else if (rank == 3) { /* a head is twice as wide as the caches: they say how many there are */
        hone_vid two = hone_contrib_number(e, 2), keep = hone_contrib_number(e, 0),
                 rest = hone_contrib_number(e, -1);
        hone_vid size = HONE_NODE(e, "Mul", hone_contrib_dim(e, cos, 1), two);
        hone_vid shape = hone_edit_node(e, "Concat", -1, HONE_IN(keep, keep, rest, size),
                                        HONE_WITH(hone_attr_of_int(e->im, "axis", 0)));
        x = hone_contrib_transpose(e, HONE_NODE(e, "Reshape", x, shape), -1, heads_first, 4);
    }
    if (rank_at == 1) { /* + 0, 1, … for each token, the same in every batch */
        hone_vid row = HONE_NODE(e, "Add", at, hone_contrib_range(e, hone_contrib_dim(e, x, 2)));
        hone_vid shape =
            hone_edit_node(e, "Concat", -1, HONE_IN(hone_contrib_dim(e, x, 0), hone_contrib_dim(e, x, 2)),
                           HONE_WITH(hone_attr_of_int(e->im, "axis", 0)));
        at = HONE_NODE(e, "Expand", hone_contrib_unsqueeze(e, row, front, 1), shape);
    }
    hone_attr attr[] = {hone_attr_of_int(e->im, "interleaved", hone_edit_int(e, "interleaved", 0)),
                        hone_attr_of_int(e->im, "rotary_embedding_dim", width)};
    hone_vid y = hone_edit_node(e, "RotaryEmbedding", rank == 4 ? n->out.at[0] : -1, HONE_IN(x, cos, sin, at),
                                attr, width > 0 ? 2 : 1);
    if (rank == 3) hone_contrib_join_heads(e, y, n->out.at[0]);
}
