/* SPDX-License-Identifier: Apache-2.0
   decoder: GPT-2 (Radford et al. 2019) and a decoder in the style of LLaMA (Touvron et al. 2023): grouped
   queries, rotary positions, gated feed-forward, RMS norms. With cache=1 the keys and values of `past` tokens
   come in ("past_key_values.0.key", …) and all go out ("present.0.key", …), so that a token a run is
   enough. */
#include <math.h>

#include "zoo/nets.h"
#include "zoo/transformer.h"

typedef struct {
    bool cache;
    int64_t most;   /* tokens that positions are known for */
    hone_dim past;  /* 0 without a cache */
    hone_vid first; /* the first layer's past keys, or -1: past's size is read there */
    int64_t heads, size;
} context;

static void begin(hone_zoo *z, context *c) {
    c->cache = hone_zoo_option(z, HONE_ZOO_CACHE) != 0;
    c->first = -1;
    int64_t past = c->cache ? hone_zoo_option(z, HONE_ZOO_PAST) : 0, seq = hone_zoo_option(z, HONE_ZOO_SEQ);
    if (past + seq > c->most)
        hone_zoo_wrong(z, "past=%lld and seq=%lld are more than the %lld tokens that it knows positions for",
                       (long long)past, (long long)seq, (long long)c->most);
    c->past = c->cache && hone_zoo_option(z, HONE_ZOO_DYNAMIC) ? hone_dim_symbol(z->g->dims, "past") : past;
}
/* A layer's past, if any, in front of what is new, along the sequence; both are seen from outside. */
static hone_vid remember(hone_zoo *z, const context *c, hone_vid past, hone_vid x, int layer,
                         const char *what) {
    char name[48];
    if (!c->cache) return x;
    snprintf(name, sizeof name, "present.%d.%s", layer, what);
    hone_zoo_name(z, name);
    return hone_zoo_cat(z, HONE_ZOO_IN(past, x), -2);
}
static hone_vid past_input(hone_zoo *z, context *c, int layer, const char *what) {
    char name[48];
    if (!c->cache) return -1;
    snprintf(name, sizeof name, "past_key_values.%d.%s", layer, what);
    hone_vid v = hone_zoo_input(z, name, HONE_DTYPE_F32, HONE_ZOO_DIMS(z->batch, c->heads, c->past, c->size));
    if (c->first < 0) c->first = v;
    return v;
}

/* i64[1, S], from `past` on */
static hone_vid places(hone_zoo *z, const context *c, hone_vid ids) {
    if (hone_dim_is_number(z->seq)) return hone_zoo_count_up(z, "position_ids", c->past, z->seq);
    hone_vid all = hone_zoo_count_up(z, "position_ids", 0, c->most), from, to = hone_zoo_size_of(z, ids, 1);
    if (c->cache) {
        from = hone_zoo_size_of(z, c->first, 2);
        to = hone_zoo_add(z, from, to);
    } else {
        from = hone_zoo_ints(z, (const int64_t[]){0}, 1);
    }
    hone_vid axis = hone_zoo_ints(z, (const int64_t[]){1}, 1);
    return hone_zoo_op(z, "Slice", HONE_ZOO_IN(all, from, to, axis));
}

/* ---- GPT-2 --------------------------------------------------------------------------------------------- */
enum { PLACES = 1024, SIZE = 768, HEADS = 12 };

/* A linear layer as that model keeps it: weights [in, out], on two dims. */
static hone_vid conv1d(hone_zoo *z, const char *name, hone_vid x, int64_t out, double gain) {
    hone_dim in = hone_zoo_dim(z, x, 2);
    hone_vid from = x;
    hone_zoo_enter(z, "%s", name);
    hone_vid w = hone_zoo_weight(z, "weight", HONE_ZOO_DIMS(in, out), 0, gain * sqrt(3.0 / (double)in));
    hone_vid b = hone_zoo_weight(z, "bias", &out, 1, 0, 0.05);
    x = hone_zoo_reshape(z, x, from, HONE_ZOO_DIMS(-1, in));
    x = hone_zoo_op_with(z, "Gemm", HONE_ZOO_IN(x, w, b), "alpha=1 beta=1");
    x = hone_zoo_reshape(z, x, from, HONE_ZOO_DIMS(hone_zoo_dim(z, from, 0), hone_zoo_dim(z, from, 1), out));
    hone_zoo_leave(z);
    return x;
}

/* true where a key is not after the query: bool [1, 1, rows, columns], row 0 being token `past`. */
static hone_vid triangle(hone_zoo *z, int64_t past, int64_t rows, int64_t columns) {
    hone_value *v;
    if (z->status ||
        (z->status = hone_value_tensor(HONE_DTYPE_BOOL, (const int64_t[]){1, 1, rows, columns}, 4, &v)))
        return -1;
    for (int64_t q = 0; q < rows; q++)
        for (int64_t k = 0; k < columns; k++) ((uint8_t *)v->data)[q * columns + k] = k <= past + q;
    return hone_zoo_const(z, "bias", v);
}
static hone_vid gpt2_mask(hone_zoo *z, const context *c, hone_vid q, hone_vid k, hone_vid all) {
    if (hone_dim_is_number(z->seq)) return all;
    hone_vid keys = hone_zoo_size_of(z, k, 2), queries = hone_zoo_size_of(z, q, 2),
             from = hone_zoo_op(z, "Sub", HONE_ZOO_IN(keys, queries));
    hone_vid rows = hone_zoo_ints(z, (const int64_t[]){2}, 1),
             columns = hone_zoo_ints(z, (const int64_t[]){3}, 1);
    hone_vid zero = hone_zoo_ints(z, (const int64_t[]){0}, 1),
             part = hone_zoo_op(z, "Slice", HONE_ZOO_IN(all, from, keys, rows));
    return hone_zoo_op(z, "Slice", HONE_ZOO_IN(part, zero, keys, columns));
}

static hone_vid gpt2_attention(hone_zoo *z, context *c, hone_vid x, const hone_vid *past, hone_vid all,
                               int layer, hone_vid *kept) {
    hone_vid from = x, parts = hone_zoo_ints(z, (const int64_t[]){SIZE, SIZE, SIZE}, 3);
    hone_zoo_enter(z, "attn");
    x = conv1d(z, "c_attn", x, 3 * SIZE, 1);
    hone_vid q = hone_zoo_op_many(z, "Split", HONE_ZOO_IN(x, parts), 3, "axis=2"), k = q + 1, v = q + 2;
    q = hone_zoo_heads(z, q, HEADS, "0,2,1,3"), k = hone_zoo_heads(z, k, HEADS, "0,2,1,3"),
    v = hone_zoo_heads(z, v, HEADS, "0,2,1,3");
    kept[0] = k = remember(z, c, past[0], k, layer, "key"),
    kept[1] = v = remember(z, c, past[1], v, layer, "value");
    hone_vid s = hone_zoo_op(z, "MatMul", HONE_ZOO_IN(q, hone_zoo_transpose(z, k, "0,1,3,2")));
    s = hone_zoo_op(z, "Div", HONE_ZOO_IN(s, hone_zoo_float(z, sqrt(SIZE / HEADS))));
    hone_vid mask = gpt2_mask(z, c, q, k, all), low = hone_zoo_float(z, HONE_ZOO_LOWEST);
    s = hone_zoo_op(z, "Where", HONE_ZOO_IN(mask, s, low));
    s = hone_zoo_join_heads(z, hone_zoo_softmax(z, s, v), from);
    s = conv1d(z, "c_proj", s, SIZE, 1);
    hone_zoo_leave(z);
    return s;
}

void hone_zoo_gpt2(hone_zoo *z, const void *plan) {
    enum { MOST_LAYERS = 128 };
    context c = {.most = PLACES, .heads = HEADS, .size = SIZE / HEADS};
    hone_vid past[MOST_LAYERS][2], kept[MOST_LAYERS][2];
    int layers = (int)hone_zoo_option(z, HONE_ZOO_LAYERS);
    begin(z, &c);
    hone_vid ids = hone_zoo_input(z, "input_ids", HONE_DTYPE_I64, HONE_ZOO_DIMS(z->batch, z->seq));
    for (int k = 0; k < layers; k++)
        past[k][0] = past_input(z, &c, k, "key"), past[k][1] = past_input(z, &c, k, "value");
    bool fixed = hone_dim_is_number(z->seq);
    hone_zoo_enter(z, "transformer");
    hone_vid all = fixed ? triangle(z, c.past, z->seq, c.past + z->seq) : triangle(z, 0, PLACES, PLACES);
    hone_vid words = hone_zoo_weight(z, "wte.weight", HONE_ZOO_DIMS(hone_zoo_option(z, HONE_ZOO_VOCAB), SIZE),
                                     0, sqrt(3.0 / SIZE));
    hone_vid x = hone_zoo_op_with(z, "Gather", HONE_ZOO_IN(words, ids), "axis=0");
    x = hone_zoo_add(z, x, hone_zoo_embed(z, "wpe", places(z, &c, ids), PLACES, SIZE));
    for (int k = 0; k < layers; k++) {
        hone_zoo_enter(z, "h.%d", k);
        hone_vid y = hone_zoo_layer_norm(z, "ln_1", x, 1e-5);
        x = hone_zoo_add(z, gpt2_attention(z, &c, y, past[k], all, k, kept[k]), x);
        y = conv1d(z, "mlp.c_fc", hone_zoo_layer_norm(z, "ln_2", x, 1e-5), 4 * SIZE, 1);
        x = hone_zoo_add(z, x, conv1d(z, "mlp.c_proj", hone_zoo_act(z, "GeluTanh", y), SIZE, 1));
        hone_zoo_leave(z);
    }
    x = hone_zoo_layer_norm(z, "ln_f", x, 1e-5);
    hone_zoo_leave(z);
    words = hone_zoo_transpose(z, words, "1,0"); /* tied: the embedding, transposed */
    hone_zoo_name(z, "logits");
    hone_zoo_output(z, hone_zoo_op(z, "MatMul", HONE_ZOO_IN(x, words)));
    for (int k = 0; k < layers && c.cache; k++)
        hone_zoo_output(z, kept[k][0]), hone_zoo_output(z, kept[k][1]);
}

/* ---- LLaMA-style --------------------------------------------------------------------------------------- */
static hone_vid rms_norm(hone_zoo *z, const char *name, hone_vid x) {
    hone_dim n = hone_zoo_dim(z, x, 2);
    hone_zoo_enter(z, "%s", name);
    hone_vid w = hone_zoo_weight(z, "weight", &n, 1, 1, 0.1);
    hone_vid y = hone_zoo_op(z, "Pow", HONE_ZOO_IN(x, hone_zoo_float(z, 2)));
    y = hone_zoo_op_with(z, "ReduceMean", HONE_ZOO_IN(y, hone_zoo_ints(z, (const int64_t[]){-1}, 1)),
                         "keepdims=1");
    y = hone_zoo_op(z, "Sqrt", HONE_ZOO_IN(hone_zoo_add(z, y, hone_zoo_float(z, 1e-5))));
    hone_vid one = hone_zoo_float(z, 1);
    y = hone_zoo_op(z, "Div", HONE_ZOO_IN(one, y));
    y = hone_zoo_mul(z, w, hone_zoo_mul(z, x, y));
    hone_zoo_leave(z);
    return y;
}
/* Cosine and sine of place times frequency, [1, 1, S, D] each. */
static void angles(hone_zoo *z, hone_vid at, int64_t size, hone_vid *cosine, hone_vid *sine) {
    hone_value *v;
    const int64_t dim[] = {1, size / 2, 1};
    hone_zoo_enter(z, "rotary_emb");
    if (!z->status && !(z->status = hone_value_tensor(HONE_DTYPE_F32, dim, 3, &v))) {
        for (int64_t k = 0; k < size / 2; k++)
            ((float *)v->data)[k] = (float)pow(10000.0, -2.0 * (double)k / (double)size);
        hone_vid often = hone_zoo_const(z, "inv_freq", v);
        hone_vid x = hone_zoo_cast(z, hone_zoo_unsqueeze(z, at, 1), HONE_DTYPE_F32);
        x = hone_zoo_transpose(z, hone_zoo_op(z, "MatMul", HONE_ZOO_IN(often, x)), "0,2,1");
        x = hone_zoo_cat(z, HONE_ZOO_IN(x, x), -1);
        hone_vid c = hone_zoo_op(z, "Cos", HONE_ZOO_IN(x)), s = hone_zoo_op(z, "Sin", HONE_ZOO_IN(x));
        *cosine = hone_zoo_unsqueeze(z, c, 1), *sine = hone_zoo_unsqueeze(z, s, 1);
    }
    hone_zoo_leave(z);
}
static hone_vid rotate(hone_zoo *z, hone_vid x, hone_vid cosine, hone_vid sine) {
    int64_t half = hone_zoo_dim(z, x, 3) / 2;
    hone_vid low = hone_zoo_slice(z, x, 3, 0, half), high = hone_zoo_slice(z, x, 3, half, INT64_MAX);
    high = hone_zoo_op(z, "Neg", HONE_ZOO_IN(high));
    hone_vid transposed = hone_zoo_cat(z, HONE_ZOO_IN(high, low), -1), a = hone_zoo_mul(z, x, cosine);
    return hone_zoo_add(z, a, hone_zoo_mul(z, transposed, sine));
}
/* Each head of keys or values stands for `times` heads of queries. */
static hone_vid repeat(hone_zoo *z, hone_vid x, int64_t times) {
    if (times == 1) return x;
    hone_dim b = hone_zoo_dim(z, x, 0), h = hone_zoo_dim(z, x, 1), s = hone_zoo_dim(z, x, 2),
             d = hone_zoo_dim(z, x, 3);
    hone_vid y = hone_zoo_unsqueeze(z, x, 2);
    y = hone_zoo_op(z, "Expand", HONE_ZOO_IN(y, hone_zoo_shape(z, x, HONE_ZOO_DIMS(b, h, times, s, d))));
    return hone_zoo_reshape(z, y, x, HONE_ZOO_DIMS(b, h * times, s, d));
}
/* 0, and the lowest number where a key is after its query: [1, 1, S, all] */
static hone_vid llama_mask(hone_zoo *z, const context *c, hone_vid at, hone_vid ids) {
    hone_vid keys;
    hone_zoo_enter(z, "causal_mask");
    if (hone_dim_is_number(z->seq)) {
        keys = hone_zoo_count_up(z, "keys", 0, c->past + z->seq);
    } else {
        hone_vid all = hone_zoo_count_up(z, "keys", 0, c->most),
                 zero = hone_zoo_ints(z, (const int64_t[]){0}, 1);
        hone_vid end = hone_zoo_size_of(z, ids, 1), axis = hone_zoo_ints(z, (const int64_t[]){1}, 1);
        if (c->cache) end = hone_zoo_add(z, hone_zoo_size_of(z, c->first, 2), end);
        keys = hone_zoo_op(z, "Slice", HONE_ZOO_IN(all, zero, end, axis));
    }
    /* [1, S, all] */
    hone_vid rows = hone_zoo_unsqueeze(z, at, 2), later = hone_zoo_op(z, "Greater", HONE_ZOO_IN(keys, rows));
    later = hone_zoo_cast(z, hone_zoo_unsqueeze(z, later, 1), HONE_DTYPE_F32);
    later = hone_zoo_mul(z, later, hone_zoo_float(z, HONE_ZOO_LOWEST));
    hone_zoo_leave(z);
    return later;
}

void hone_zoo_llama(hone_zoo *z, const void *plan) {
    enum { MOST_LAYERS = 128 };
    int64_t dim = hone_zoo_option(z, HONE_ZOO_DIM), heads = hone_zoo_option(z, HONE_ZOO_HEADS),
            kv = hone_zoo_option(z, HONE_ZOO_KV);
    int64_t hidden = hone_zoo_option(z, HONE_ZOO_HIDDEN), vocab = hone_zoo_option(z, HONE_ZOO_VOCAB);
    int layers = (int)hone_zoo_option(z, HONE_ZOO_LAYERS);
    context c = {.most = 4096, .heads = kv, .size = dim / heads};
    hone_vid past[MOST_LAYERS][2], kept[MOST_LAYERS][2], cosine = -1, sine = -1;
    if (dim % heads || dim / heads % 2)
        hone_zoo_wrong(z, "dim=%lld must be an even multiple of heads=%lld", (long long)dim,
                       (long long)heads);
    if (heads % kv)
        hone_zoo_wrong(z, "heads=%lld must be a multiple of kv=%lld", (long long)heads, (long long)kv);
    begin(z, &c);
    hone_vid ids = hone_zoo_input(z, "input_ids", HONE_DTYPE_I64, HONE_ZOO_DIMS(z->batch, z->seq));
    for (int k = 0; k < layers; k++)
        past[k][0] = past_input(z, &c, k, "key"), past[k][1] = past_input(z, &c, k, "value");
    hone_zoo_enter(z, "model");
    hone_vid x = hone_zoo_embed(z, "embed_tokens", ids, vocab, dim), at = places(z, &c, ids),
             mask = llama_mask(z, &c, at, ids);
    angles(z, at, c.size, &cosine, &sine);
    for (int k = 0; k < layers; k++) {
        hone_zoo_enter(z, "layers.%d", k);
        hone_vid y = rms_norm(z, "input_layernorm", x), from = y;
        hone_zoo_enter(z, "self_attn");
        hone_vid q = hone_zoo_heads(z, hone_zoo_linear(z, "q_proj", y, dim, false, 1), heads, "0,2,1,3");
        hone_vid key =
            hone_zoo_heads(z, hone_zoo_linear(z, "k_proj", y, kv * c.size, false, 1), kv, "0,2,1,3");
        hone_vid value =
            hone_zoo_heads(z, hone_zoo_linear(z, "v_proj", y, kv * c.size, false, 1), kv, "0,2,1,3");
        q = rotate(z, q, cosine, sine), key = rotate(z, key, cosine, sine);
        kept[k][0] = key = remember(z, &c, past[k][0], key, k, "key"),
        kept[k][1] = value = remember(z, &c, past[k][1], value, k, "value");
        key = repeat(z, key, heads / kv), value = repeat(z, value, heads / kv);
        y = hone_zoo_op(z, "MatMul", HONE_ZOO_IN(q, hone_zoo_transpose(z, key, "0,1,3,2")));
        y = hone_zoo_mul(z, y, hone_zoo_float(z, 1 / sqrt((double)c.size)));
        y = hone_zoo_softmax(z, hone_zoo_add(z, y, mask), value);
        y = hone_zoo_linear(z, "o_proj", hone_zoo_join_heads(z, y, from), dim, false, 1);
        hone_zoo_leave(z);
        x = hone_zoo_add(z, x, y);
        y = rms_norm(z, "post_attention_layernorm", x);
        hone_zoo_enter(z, "mlp");
        hone_vid gate = hone_zoo_act(z, "Silu", hone_zoo_linear(z, "gate_proj", y, hidden, false, 1));
        y = hone_zoo_mul(z, gate, hone_zoo_linear(z, "up_proj", y, hidden, false, 1));
        x = hone_zoo_add(z, x, hone_zoo_linear(z, "down_proj", y, dim, false, 1.5));
        hone_zoo_leave(z);
        hone_zoo_leave(z);
    }
    x = rms_norm(z, "norm", x);
    hone_zoo_leave(z);
    hone_zoo_name(z, "logits");
    hone_zoo_output(z, hone_zoo_linear(z, "lm_head", x, vocab, false, 1));
    for (int k = 0; k < layers && c.cache; k++)
        hone_zoo_output(z, kept[k][0]), hone_zoo_output(z, kept[k][1]);
}
