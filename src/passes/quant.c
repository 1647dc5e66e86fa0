/* SPDX-License-Identifier: Apache-2.0
   quant: products between quantize and dequantize pairs become products of integers. The pairs say which
   precision the model's maker chose; without this pass it would be computed in f32 and only rounded to it.

        Q(act(Conv(DQ(x), DQ(w), b)))    →   QLinearConv(x, w, b as i32)          where x has one scale, w one
          or one a channel, all scales constants
        Q(act(MatMul(DQ(x), DQ(w)) + b)) →   QLinearMatMul, with a bias hone.QLinearMatMul; Gemm likewise
        MatMul(DQ(x), DQ(w))             →   MatMulInteger, Cast, Mul: read as floats, its sums are those of
                                         integers times the scales

   A clamp between sum and rounding is one of bytes behind it: rounding keeps order. Where saturation does the
   same it goes. Not here: averages (means.c), and whatever else reads DQ: element-wise, these fuse. */
#include "passes/quant.h"

#include <math.h>
#include <string.h>

static bool is_positive(const hone_value *s) {
    if (!s || s->tag != HONE_TAG_TENSOR || s->dtype != HONE_DTYPE_F32) return false;
    for (int64_t k = 0; k < hone_value_count(s); k++)
        if (!(hone_value_f64(s, k) > 1e-30 && hone_value_f64(s, k) < 1e30)) return false;
    return hone_value_count(s) > 0;
}
static bool scales(const hone_graph *g, const hone_node *n, hone_vid q, int axis, int bytes,
                   hone_scaled *out) {
    *out = (hone_scaled){
        .q = q, .scale = n->in[1], .zero = n->n_in > 2 ? n->in[2] : -1, .dtype = g->var.at[q].dtype};
    out->s = g->var.at[out->scale].value;
    const bool byte = out->dtype == HONE_DTYPE_U8 || out->dtype == HONE_DTYPE_I8,
               wide = out->dtype == HONE_DTYPE_U16 || out->dtype == HONE_DTYPE_I16;
    if (!(byte || (wide && bytes == 2)) || !is_positive(out->s)) return false;
    const hone_value *z = out->zero >= 0 ? g->var.at[out->zero].value : NULL;
    if (out->zero >= 0 &&
        (!z || z->tag != HONE_TAG_TENSOR || hone_value_count(z) != hone_value_count(out->s)))
        return false;
    if (hone_attr_int(n->attr, n->n_attr, "block_size", 0) ||
        hone_attr_int(n->attr, n->n_attr, "precision", 0))
        return false;
    if (hone_value_count(out->s) == 1 && out->s->rank <= 1) return true;
    int rank = g->var.at[q].rank;
    int64_t along = hone_attr_int(n->attr, n->n_attr, "axis", 1);
    out->each = true;
    return axis >= 0 && out->s->rank == 1 && (along < 0 ? along + rank : along) == axis &&
           g->var.at[q].dim[axis] == out->s->dim[0];
}
bool hone_quant_scales(const hone_graph *g, const hone_node *n, hone_vid q, int axis, hone_scaled *out) {
    return scales(g, n, q, axis, 1, out);
}
bool hone_quant_scales_wide(const hone_graph *g, const hone_node *n, hone_vid q, int axis, hone_scaled *out) {
    return scales(g, n, q, axis, 2, out);
}
static bool dequantized(hone_matching *m, hone_vid v, int axis, hone_scaled *out) {
    const hone_node *n = hone_match_maker(m, v);
    return hone_node_is(n, "DequantizeLinear") && hone_match_graph(m)->var.at[v].dtype == HONE_DTYPE_F32 &&
           hone_quant_scales(hone_match_graph(m), n, n->in[0], axis, out);
}
static hone_vid number_of(hone_matching *m, hone_dtype t, const hone_value *from, const char *name) {
    hone_value *v = NULL;
    if (hone_value_tensor(t, NULL, 0, &v) == HONE_OK && from)
        memcpy(v->data, from->data, hone_dtypes[t].bytes);
    return hone_match_constant(m, name, v);
}
hone_vid hone_quant_scale_of(hone_matching *m, const hone_scaled *s) {
    return s->each || !s->s->rank ? s->scale : number_of(m, HONE_DTYPE_F32, s->s, "scale");
}
hone_vid hone_quant_zero_of(hone_matching *m, const hone_scaled *s) {
    const hone_value *z = s->zero >= 0 ? hone_match_graph(m)->var.at[s->zero].value : NULL;
    if (z && (s->each || !z->rank)) return s->zero;
    if (!s->each) return number_of(m, s->dtype, z, "zero_point");
    hone_value *none = NULL;
    if (hone_value_tensor(s->dtype, s->s->dim, s->s->rank, &none)) none = NULL;
    return hone_match_constant(m, "zero_point", none);
}

/* ---- what stands between the sum and its rounding ------------------------------------------------------ */
/* The limits of bytes that a clamp of the sum comes to: exactly, because rounding keeps order. False: it is
   no clamp. */
static bool limits(hone_matching *m, const hone_scaled *y, double *low, double *high) {
    const hone_graph *g = hone_match_graph(m);
    const hone_node *n = hone_match_node(m, "act");
    *low = hone_dtypes[y->dtype].lowest, *high = hone_dtypes[y->dtype].highest;
    if (!n) return true;
    double at[2] = {0, INFINITY}, zero = y->zero >= 0 ? hone_value_f64(g->var.at[y->zero].value, 0) : 0;
    const float scale = (float)hone_value_f64(y->s, 0);
    if (hone_node_is(n, "Clip")) {
        at[0] = -INFINITY;
        for (int k = 0; k < 2; k++)
            if (n->n_in > k + 1 && n->in[k + 1] >= 0 &&
                !hone_match_number(g->var.at[n->in[k + 1]].value, at + k))
                return false;
    }
    if (!(at[0] <= at[1])) return false;
    for (int k = 0; k < 2; k++) {
        const double q = nearbyint((double)((float)at[k] / scale)) + zero; /* as the definition rounds it */
        at[k] = q < *low ? *low : q > *high ? *high : q;
    }
    *low = at[0], *high = at[1];
    return true;
}
static hone_vid byte(hone_matching *m, hone_dtype t, double k) {
    hone_value *v = NULL;
    if (hone_value_tensor(t, NULL, 0, &v) == HONE_OK) *(uint8_t *)v->data = (uint8_t)(int)k;
    return hone_match_constant(m, "limit", v);
}
static bool outcome(hone_matching *m, hone_scaled *y, double *low, double *high) {
    const hone_node *root = hone_match_root(m);
    return hone_quant_scales(hone_match_graph(m), root, root->out[0], -1, y) && limits(m, y, low, high);
}
/* The integer op, and behind it the clamp that saturation does not do. */
static bool rounded(hone_matching *m, const char *op, const hone_vid *in, int n_in, const hone_attr *attr,
                    int n_attr, const hone_scaled *y, double low, double high) {
    const bool clamps = low > hone_dtypes[y->dtype].lowest || high < hone_dtypes[y->dtype].highest;
    hone_vid v = hone_match_emit(m, op, clamps ? HONE_MATCH_NEW : y->q, in, n_in, attr, n_attr);
    if (v < 0 || !clamps) return v >= 0;
    const hone_vid clip[] = {v, byte(m, y->dtype, low), byte(m, y->dtype, high)};
    return hone_match_emit(m, "Clip", y->q, clip, 3, NULL, 0) >= 0;
}

/* ---- biases -------------------------------------------------------------------------------------------- */
typedef struct {
    const hone_value *q, *s, *z; /* s NULL: floats as they are */
    int64_t n;
} addend;
/* One number a channel, constant: floats, or quantized with scales of its own. Ones in front of its dims mean
   nothing. */
static bool addend_of(hone_matching *m, hone_vid b, int64_t channels, addend *out) {
    const hone_graph *g = hone_match_graph(m);
    const hone_node *n = hone_match_maker(m, b);
    *out = (addend){.q = g->var.at[b].value};
    if (!out->q && hone_node_is(n, "DequantizeLinear")) {
        out->q = g->var.at[n->in[0]].value, out->s = g->var.at[n->in[1]].value;
        if (hone_attr_int(n->attr, n->n_attr, "block_size", 0) || !is_positive(out->s) ||
            (n->n_in > 2 && n->in[2] >= 0 && !(out->z = g->var.at[n->in[2]].value)))
            return false;
        const int64_t many = hone_value_count(out->s);
        if (out->s->rank > 1 || (many != 1 && (many != channels || !out->q || out->q->rank != 1)) ||
            (out->z && hone_value_count(out->z) != many))
            return false;
    }
    if (!out->q || out->q->tag != HONE_TAG_TENSOR || (!out->s && out->q->dtype != HONE_DTYPE_F32))
        return false;
    out->n = hone_value_count(out->q);
    if (out->n != 1 && out->n != channels) return false;
    return out->q->rank == 0 || out->q->dim[out->q->rank - 1] == out->n;
}
static double addend_at(const addend *a, int64_t k) {
    k = a->n == 1 ? 0 : k;
    const int64_t one = a->s && hone_value_count(a->s) > 1 ? k : 0;
    if (!a->s) return hone_value_f64(a->q, k);
    const double q = hone_value_f64(a->q, k) - (a->z ? hone_value_f64(a->z, one) : 0);
    return (double)((float)q * (float)hone_value_f64(a->s, one));
}
static double scale_at(const hone_scaled *s, int64_t k) { return hone_value_f64(s->s, s->each ? k : 0); }
/* The bias in units of the sum. NULL: those are too coarse, or the numbers too large; or no memory. */
static hone_value *whole_bias(hone_matching *m, hone_vid b, const hone_scaled *x, const hone_scaled *w,
                              const hone_scaled *y, int64_t channels) {
    addend a;
    hone_value *out = NULL;
    if (!addend_of(m, b, channels, &a)) return NULL;
    if (hone_value_tensor(HONE_DTYPE_I32, (const int64_t[]){channels}, 1, &out)) {
        hone_match_no_memory(m);
        return NULL;
    }
    for (int64_t k = 0; k < channels; k++) {
        const double unit = scale_at(x, 0) * scale_at(w, k), v = addend_at(&a, k) / unit,
                     whole = nearbyint(v);
        /* a rounding that could be seen in the result */
        const bool coarse = fabs(v - whole) * unit > hone_value_f64(y->s, 0) / 64;
        if (!(fabs(whole) < 0x1p30) || coarse) {
            hone_value_drop(out);
            return NULL;
        }
        ((int32_t *)out->data)[k] = (int32_t)whole;
    }
    return out;
}
/* ones: dims of 1 behind */
static hone_vid real_bias(hone_matching *m, const addend *a, int64_t channels, int ones) {
    int64_t dim[HONE_MAX_RANK] = {channels};
    hone_value *out = NULL;
    for (int k = 1; k <= ones; k++) dim[k] = 1;
    if (hone_value_tensor(HONE_DTYPE_F32, dim, 1 + ones, &out) == HONE_OK)
        for (int64_t k = 0; k < channels; k++) ((float *)out->data)[k] = (float)addend_at(a, k);
    return hone_match_constant(m, "bias", out);
}
/* What a unit of the sum is worth: one number, or one a channel. */
static hone_vid unit_of(hone_matching *m, const hone_scaled *x, const hone_scaled *w, int ones) {
    const int64_t n = w->each ? w->s->dim[0] : 1;
    int64_t dim[HONE_MAX_RANK] = {n};
    hone_value *out = NULL;
    for (int k = 1; k <= ones; k++) dim[k] = 1;
    if (hone_value_tensor(HONE_DTYPE_F32, dim, w->each ? 1 + ones : 0, &out) == HONE_OK)
        for (int64_t k = 0; k < n; k++)
            ((float *)out->data)[k] = (float)scale_at(x, 0) * (float)scale_at(w, k);
    return hone_match_constant(m, "scale", out);
}
/* f32(sum) * unit [+ bias], as the root's result. */
static bool as_floats(hone_matching *m, hone_vid sum, hone_vid unit, hone_vid bias) {
    const hone_attr to = {
        .name = "to", .kind = HONE_ATTR_TYPE, .n = 1, .i = (const int64_t[]){HONE_DTYPE_F32}};
    const hone_vid y = hone_match_root(m)->out[0];
    const hone_vid f = hone_match_emit(m, "Cast", HONE_MATCH_NEW, &sum, 1, &to, 1);
    const hone_vid v =
        hone_match_emit(m, "Mul", bias < 0 ? y : HONE_MATCH_NEW, (const hone_vid[]){f, unit}, 2, NULL, 0);
    if (v < 0 || bias < 0) return v >= 0;
    return hone_match_emit(m, "Add", y, (const hone_vid[]){v, bias}, 2, NULL, 0) >= 0;
}

/* ---- convolutions -------------------------------------------------------------------------------------- */
static bool conv_of(hone_matching *m, hone_scaled *x, hone_scaled *w, hone_var *kernel) {
    if (!dequantized(m, hone_match_var(m, "x"), -1, x) || !dequantized(m, hone_match_var(m, "w"), 0, w))
        return false;
    *kernel = hone_match_graph(m)->var.at[w->q];
    return kernel->value && kernel->rank >= 2;
}
static bool conv(hone_matching *m) {
    hone_scaled x, w, y;
    hone_var kernel;
    double low, high;
    if (!conv_of(m, &x, &w, &kernel) || !outcome(m, &y, &low, &high)) return false;
    hone_vid bias = hone_match_var(m, "b");
    if (bias >= 0) {
        hone_value *b = whole_bias(m, bias, &x, &w, &y, kernel.dim[0]);
        if (!b || (bias = hone_match_constant(m, "bias", b)) < 0) return false;
    }
    const hone_node *n = hone_match_node(m, "sum");
    const hone_vid in[] = {x.q,
                           hone_quant_scale_of(m, &x),
                           hone_quant_zero_of(m, &x),
                           w.q,
                           hone_quant_scale_of(m, &w),
                           hone_quant_zero_of(m, &w),
                           hone_quant_scale_of(m, &y),
                           hone_quant_zero_of(m, &y),
                           bias};
    return rounded(m, "QLinearConv", in, 9, n->attr, n->n_attr, &y, low, high);
}

/* Read as floats: by an activation that is no clamp, a sum, the model's output. */
static bool conv_floats(hone_matching *m) {
    hone_scaled x, w;
    hone_var kernel;
    addend a;
    hone_vid bias = hone_match_var(m, "b");
    const hone_node *n = hone_match_node(m, "sum");
    if (!conv_of(m, &x, &w, &kernel) || (bias >= 0 && !addend_of(m, bias, kernel.dim[0], &a))) return false;
    const hone_vid in[] = {x.q, w.q, hone_quant_zero_of(m, &x), hone_quant_zero_of(m, &w)};
    if (bias >= 0) bias = real_bias(m, &a, kernel.dim[0], kernel.rank - 2);
    return as_floats(m, hone_match_emit(m, "ConvInteger", HONE_MATCH_NEW, in, 4, n->attr, n->n_attr),
                     unit_of(m, &x, &w, kernel.rank - 2), bias);
}

/* ---- matrices ------------------------------------------------------------------------------------------ */
typedef struct {
    hone_scaled x, w;
    hone_vid right, bias; /* the weights as MatMul takes them; bias -1: none */
    int64_t columns;      /* where there is a bias, or a scale a column */
} product;
/* MatMul, or a Gemm that is one, with a bias of one number a column. */
static bool product_of(hone_matching *m, product *p) {
    const hone_graph *g = hone_match_graph(m);
    const hone_node *n = hone_match_node(m, "sum");
    const hone_vid w = hone_match_var(m, "w");
    const bool gemm = hone_node_is(n, "Gemm"),
               transposed = gemm && hone_attr_int(n->attr, n->n_attr, "transB", 0);
    const int rank = g->var.at[w].rank;
    p->bias = hone_match_var(m, "b");
    if (gemm && (hone_attr_int(n->attr, n->n_attr, "transA", 0) ||
                 hone_attr_float(n->attr, n->n_attr, "alpha", 1) != 1 ||
                 (p->bias >= 0 && hone_attr_float(n->attr, n->n_attr, "beta", 1) != 1)))
        return false;
    if (rank < 2 || g->var.at[hone_match_var(m, "x")].rank < 2 ||
        !dequantized(m, hone_match_var(m, "x"), -1, &p->x) ||
        !dequantized(m, w, rank == 2 ? !transposed : -1, &p->w))
        return false;
    const hone_dim columns = g->var.at[w].dim[transposed ? 0 : rank - 1];
    p->columns = hone_dim_is_number(columns) ? columns : -1;
    if (p->bias >= 0 && p->columns < 1) return false;
    p->right = transposed ? hone_match_emit(m, "Transpose", HONE_MATCH_NEW, &p->w.q, 1, NULL, 0) : p->w.q;
    return p->right >= 0;
}
static bool matmul(hone_matching *m) {
    hone_scaled y;
    product p;
    double low, high;
    if (!outcome(m, &y, &low, &high) || !product_of(m, &p)) return false;
    hone_vid in[] = {p.x.q,
                     hone_quant_scale_of(m, &p.x),
                     hone_quant_zero_of(m, &p.x),
                     p.right,
                     hone_quant_scale_of(m, &p.w),
                     hone_quant_zero_of(m, &p.w),
                     hone_quant_scale_of(m, &y),
                     hone_quant_zero_of(m, &y),
                     -1};
    if (p.bias < 0) return rounded(m, "QLinearMatMul", in, 8, NULL, 0, &y, low, high);
    hone_value *b = whole_bias(m, p.bias, &p.x, &p.w, &y, p.columns);
    if (!b || (in[8] = hone_match_constant(m, "bias", b)) < 0) return false;
    return rounded(m, "hone.QLinearMatMul", in, 9, NULL, 0, &y, low, high);
}
static bool matmul_floats(hone_matching *m) {
    product p;
    addend a;
    hone_vid bias = -1;
    if (!product_of(m, &p) || (p.bias >= 0 && !addend_of(m, p.bias, p.columns, &a))) return false;
    if (p.bias >= 0) bias = real_bias(m, &a, p.columns, 0);
    const hone_vid in[] = {p.x.q, p.right, hone_quant_zero_of(m, &p.x), hone_quant_zero_of(m, &p.w)};
    return as_floats(m, hone_match_emit(m, "MatMulInteger", HONE_MATCH_NEW, in, 4, NULL, 0),
                     unit_of(m, &p.x, &p.w, 0), bias);
}

#define OUT(sum)                                                                      \
    "{QuantizeLinear({" sum "|act=Relu(" sum ")|act=Clip(" sum ", $lo)|act=Clip(" sum \
    ", $lo, $hi)}, $s, $z)|"                                                          \
    "QuantizeLinear({" sum "|act=Relu(" sum ")|act=Clip(" sum ", $lo)|act=Clip(" sum ", $lo, $hi)}, $s)}"
#define ADDED "Add(sum=MatMul(x, w), b)"
static const hone_rule rules[] = {
    {OUT("sum=Conv(x, w, b)"), conv},
    {OUT("sum=Conv(x, w)"), conv},
    {OUT("sum=Gemm(x, w, b)"), matmul},
    {OUT("sum=Gemm(x, w)"), matmul},
    {OUT(ADDED), matmul},
    {OUT("sum=MatMul(x, w)"), matmul},
    {"sum=Conv(x, w, b)", conv_floats},
    {"sum=Conv(x, w)", conv_floats},
    {"sum=Gemm(x, w, b)", matmul_floats},
    {"sum=Gemm(x, w)", matmul_floats},
    {"sum=MatMul(x, w)", matmul_floats},
};
hone_status hone_pass_quant(hone_passing *p) {
    return hone_match_rules(p, rules, (int)(sizeof rules / sizeof *rules));
}
