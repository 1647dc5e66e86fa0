/* SPDX-License-Identifier: Apache-2.0
   blocks: products with constant weights of few bits that a DequantizeLinear makes floats, become
   MatMulNBits: the weights stay as small as they are and are multiplied from there.

        MatMul(x, DequantizeLinear(w: u4[K, N], s: f32[K / 32, N], z) {axis: 0, block_size: 32})   ─▶
          MatMulNBits(x, b: u8[N, K / 32, 16], s: f32[N, K / 32], z)

   Weights of 2 and 4 bits with scales in blocks along K, one a column, or one; of 8 bits in blocks only:
   others have kernels of their own. MatMulNBits is unsigned, so signed weights and zero points
   get 2^(bits-1) more. It computes as the definition does: accuracy_level stays 0. Left to be folded to f32:
   weights that several products read, and small ones: a cache has them as floats too, and
   many rows are faster so (32 rows of a net of 384 columns by a third); large ones are read from memory,
   where an eighth of the bytes counts for more. */
#include <string.h>

#include "base/round.h"
#include "passes/match.h"

enum { LEAST_BLOCK = 16, MOST_BLOCK = 256, COLUMN_BLOCK = 128, LARGE = 1 << 20 /* elements */ };
typedef struct {
    const hone_value *w, *s, *z;
    int bits, inner;             /* the axis of K */
    bool is_signed, each_column; /* one scale a column, or one for all where it has one element */
    int64_t k, n, block, blocks;
    int64_t k_step, n_step; /* of weights */
} weights;
static bool known_type(hone_dtype t, weights *out) {
    static const struct {
        hone_dtype dtype;
        int bits;
        bool is_signed;
    } types[] = {{HONE_DTYPE_U2, 2, false}, {HONE_DTYPE_I2, 2, true},  {HONE_DTYPE_U4, 4, false},
                 {HONE_DTYPE_I4, 4, true},  {HONE_DTYPE_U8, 8, false}, {HONE_DTYPE_I8, 8, true}};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (types[k].dtype == t) {
            out->bits = types[k].bits, out->is_signed = types[k].is_signed;
            return true;
        }
    return false;
}
static int64_t count(const hone_value *v) {
    int64_t n = 1;
    for (int k = 0; k < v->rank; k++) n *= v->dim[k];
    return n;
}
static bool same_dims(const hone_value *a, const hone_value *b) {
    return a->rank == b->rank && !memcmp(a->dim, b->dim, sizeof *a->dim * (size_t)a->rank);
}
static bool find(hone_matching *m, int inner, weights *out) {
    const hone_node *d = hone_match_node(m, "d");
    *out = (weights){
        .w = hone_match_value(m, "w"), .s = hone_match_value(m, "s"), .z = hone_match_value(m, "z")};
    const hone_value *w = out->w, *s = out->s, *z = out->z;
    if (!d || !w || !s || w->rank != 2 || s->dtype != HONE_DTYPE_F32 ||
        hone_match_graph(m)->var.at[d->out[0]].dtype != HONE_DTYPE_F32)
        return false;
    if (!known_type(w->dtype, out) || (z && (z->dtype != w->dtype || !same_dims(z, s)))) return false;
    int64_t axis = hone_attr_int(d->attr, d->n_attr, "axis", 1),
            block = hone_attr_int(d->attr, d->n_attr, "block_size", 0);
    axis += axis < 0 ? 2 : 0;
    out->inner = inner, out->k = w->dim[inner], out->n = w->dim[1 - inner];
    out->k_step = inner ? 1 : out->n, out->n_step = inner ? out->k : 1;
    if (out->k < LEAST_BLOCK || out->n < 2 || out->k * out->n < LARGE) return false;
    if (block > 0) {
        if (axis != inner || block < LEAST_BLOCK || block > MOST_BLOCK || block & (block - 1)) return false;
        out->block = block, out->blocks = hone_ceil_div(out->k, block);
        return s->rank == 2 && s->dim[inner] == out->blocks && s->dim[1 - inner] == out->n;
    }
    if (out->bits == 8 || (count(s) != 1 && (s->rank != 1 || axis != 1 - inner || s->dim[0] != out->n)))
        return false;
    out->each_column = true, out->block = COLUMN_BLOCK;
    while (out->block > out->k) out->block /= 2;
    out->blocks = hone_ceil_div(out->k, out->block);
    return true;
}
static int level(const weights *w, const hone_value *from, int64_t at) { /* unsigned, as MatMulNBits has it */
    const int v = hone_dtype_load(from->dtype, (const char *)from->data + at).i32;
    return w->is_signed ? v + (1 << (w->bits - 1)) : v;
}
static int64_t place(const weights *w, int64_t g, int64_t n) { /* of a block's scale and zero point */
    if (!w->each_column) return w->inner ? n * w->blocks + g : g * w->n + n;
    return count(w->s) == 1 ? 0 : n;
}
static hone_value *packed(const weights *w) {
    const int64_t bytes = w->block * w->bits / 8, dim[] = {w->n, w->blocks, bytes}, per = 8 / w->bits;
    hone_value *v;
    if (hone_value_tensor(HONE_DTYPE_U8, dim, 3, &v)) return NULL;
    uint8_t *to = v->data;
    for (int64_t n = 0; n < w->n; n++, to += w->blocks * bytes)
        for (int64_t k = 0; k < w->k; k++)
            to[k / per] =
                (uint8_t)(to[k / per] | level(w, w->w, k * w->k_step + n * w->n_step) << k % per * w->bits);
    return v;
}
static hone_value *scales(const weights *w) {
    hone_value *v;
    if (hone_value_tensor(HONE_DTYPE_F32, (const int64_t[]){w->n, w->blocks}, 2, &v)) return NULL;
    for (int64_t n = 0; n < w->n; n++)
        for (int64_t g = 0; g < w->blocks; g++)
            ((float *)v->data)[n * w->blocks + g] = ((const float *)w->s->data)[place(w, g, n)];
    return v;
}
static hone_value *zeros(const weights *w) {
    const int64_t bytes = (w->blocks * w->bits + 7) / 8;
    hone_value *v;
    if (hone_value_tensor(HONE_DTYPE_U8, (const int64_t[]){w->n, bytes}, 2, &v)) return NULL;
    uint8_t *to = v->data;
    for (int64_t n = 0; n < w->n && w->z; n++, to += bytes)
        for (int64_t g = 0; g < w->blocks; g++)
            to[g * w->bits / 8] =
                (uint8_t)(to[g * w->bits / 8] | level(w, w->z, place(w, g, n)) << g * w->bits % 8);
    return v;
}
static bool emit(hone_matching *m, const weights *w, hone_vid bias) {
    if (!hone_match_spend(m, w->k * w->n)) return false;
    const bool middle = !w->z && w->is_signed; /* zero points are what MatMulNBits has without any */
    hone_value *b = packed(w), *s = scales(w), *z = middle ? NULL : zeros(w);
    const hone_vid in[] = {hone_match_var(m, "x"), hone_match_constant(m, "weights", b),
                           hone_match_constant(m, "scales", s),
                           middle ? -1 : hone_match_constant(m, "zero_points", z)};
    if (!b || !s || (!middle && !z)) return hone_match_no_memory(m);
    const hone_attr attr[] = {HONE_ATTR_I("K", w->k), HONE_ATTR_I("N", w->n), HONE_ATTR_I("bits", w->bits),
                              HONE_ATTR_I("block_size", w->block)};
    const hone_vid end = hone_match_root(m)->out[0],
                   y = hone_match_emit(m, "com.microsoft.MatMulNBits", bias < 0 ? end : HONE_MATCH_NEW, in, 4,
                                       attr, 4);
    return bias < 0 ? y >= 0 : hone_match_emit(m, "Add", end, (const hone_vid[]){y, bias}, 2, NULL, 0) >= 0;
}
static bool plain(hone_matching *m) {
    weights w;
    return find(m, 0, &w) && emit(m, &w, -1);
}
static bool gemm(hone_matching *m) {
    weights w;
    const hone_node *n = hone_match_root(m);
    if (hone_attr_int(n->attr, n->n_attr, "transA", 0) ||
        hone_attr_float(n->attr, n->n_attr, "alpha", 1) != 1 ||
        hone_attr_float(n->attr, n->n_attr, "beta", 1) != 1)
        return false;
    return find(m, hone_attr_int(n->attr, n->n_attr, "transB", 0) ? 1 : 0, &w) &&
           emit(m, &w, hone_match_var(m, "c"));
}
static bool transposed(hone_matching *m) {
    weights w;
    const hone_node *t = hone_match_node(m, "t");
    const hone_attr *perm = t ? hone_attr_find(t->attr, t->n_attr, "perm") : NULL;
    return t && (!perm || (perm->n == 2 && perm->i[0] == 1)) && find(m, 1, &w) && emit(m, &w, -1);
}
static const hone_rule rules[] = {
    {"MatMul(x, {d=DequantizeLinear($w, $s)|d=DequantizeLinear($w, $s, $z)})", plain},
    {"Gemm(x, {d=DequantizeLinear($w, $s)|d=DequantizeLinear($w, $s, $z)})", gemm},
    {"Gemm(x, {d=DequantizeLinear($w, $s)|d=DequantizeLinear($w, $s, $z)}, c)", gemm},
    {"MatMul(x, t=Transpose({d=DequantizeLinear($w, $s)|d=DequantizeLinear($w, $s, $z)}))", transposed},
};
hone_status hone_pass_blocks(hone_passing *p) {
    return hone_match_rules(p, rules, (int)(sizeof rules / sizeof *rules));
}
