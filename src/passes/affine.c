/* SPDX-License-Identifier: Apache-2.0
   affine: a constant scale and shift of each channel, before or after a product with constant weights, goes
   into the weights and the bias. BatchNormalization is one; so are Mul, Div, Add and Sub by a constant that
   varies over channels only.

        after   Conv, ConvTranspose, Gemm; MatMul takes the scale, its Add stays an epilogue
        before  Conv; a shift only where nothing is padded, because what is padded is not shifted

   A BatchNormalization that is left over becomes Mul and Add.

   f32 and f64 only: halves would lose what a rounded product loses. */
#include <math.h>
#include <string.h>

#include "passes/match.h"

enum {
    MOST_SHARED = 1 << 20 /* bytes of weights that other nodes read too, and that may be doubled */,
    MOST_ROUNDS = 16
};

/* y = x * scale + shift, one number a channel */
typedef struct {
    int64_t n;
    double *scale, *shift;
    bool shifts, scales;
} line;
static bool line_open(hone_matching *m, line *l, int64_t n) {
    *l = (line){.n = n};
    if (n < 1 || n > 1 << 24) return false;
    l->scale = hone_alloc(sizeof(double) * (size_t)n * 2), l->shift = l->scale + (l->scale ? n : 0);
    for (int64_t k = 0; l->scale && k < n; k++) l->scale[k] = 1;
    return l->scale ? true : hone_match_no_memory(m);
}
static void line_close(line *l) { hone_free(l->scale); }

/* ---- what is affine ------------------------------------------------------------------------------------ */
static bool is_real(const hone_value *v) {
    return v && v->tag == HONE_TAG_TENSOR && (v->dtype == HONE_DTYPE_F32 || v->dtype == HONE_DTYPE_F64);
}
/* How far apart the channels of a constant stand (0: one number for all); -1: it varies along other dims too.
   `rank`, `axis`: of what it meets. */
static int64_t step_of(const hone_value *c, int rank, int axis, int64_t channels) {
    int64_t step = 1;
    bool varies = false;
    if (!is_real(c) || c->rank > rank) return -1;
    for (int d = 0; d < c->rank; d++) {
        if (c->dim[d] == 1) continue;
        if (rank - c->rank + d != axis || c->dim[d] != channels) return -1;
        varies = true;
    }
    return varies ? step : 0;
}
static bool by_constant(const hone_node *n, const hone_value *c, bool first, int rank, int axis, line *l) {
    int64_t step = step_of(c, rank, axis, l->n);
    if (step < 0) return false;
    bool mul = hone_node_is(n, "Mul"), div = hone_node_is(n, "Div"), add = hone_node_is(n, "Add"),
         sub = hone_node_is(n, "Sub");
    if (!(mul || add || sub || (div && !first))) return false;
    for (int64_t k = 0; k < l->n; k++) {
        double v = hone_value_f64(c, k * step);
        if (mul || div) l->scale[k] = mul ? v : 1 / v;
        else l->shift[k] = sub && !first ? -v : v, l->scale[k] = sub && first ? -1 : 1;
    }
    l->scales = mul || div || (sub && first), l->shifts = add || sub;
    return true;
}
static bool by_norm(const hone_graph *g, const hone_node *n, int axis, line *l) {
    const hone_value *v[5] = {0};
    double epsilon = hone_attr_float(n->attr, n->n_attr, "epsilon", 1e-5);
    if (n->n_in != 5 || axis != 1 || hone_attr_int(n->attr, n->n_attr, "training_mode", 0)) return false;
    for (int k = 1; k < 5; k++)
        if (n->in[k] < 0 || !is_real(v[k] = g->var.at[n->in[k]].value) || hone_value_count(v[k]) != l->n)
            return false;
    for (int64_t k = 0; k < l->n; k++) {
        double scale = hone_value_f64(v[1], k) / sqrt(hone_value_f64(v[4], k) + epsilon);
        l->scale[k] = scale, l->shift[k] = hone_value_f64(v[2], k) - hone_value_f64(v[3], k) * scale;
    }
    l->scales = l->shifts = true;
    return true;
}
/* What node n does to its operand: which one in *x, how in *l (opened). `y`: its result. */
static bool line_of(hone_matching *m, const hone_graph *g, const hone_node *n, int axis, int64_t channels,
                    hone_vid *x, line *l) {
    bool is = false;
    l->scale = NULL;
    if (!n || n->n_out < 1 || n->out[0] < 0) return false;
    int rank = g->var.at[n->out[0]].rank;
    if (hone_node_is(n, "BatchNormalization")) {
        *x = n->in[0];
        is = line_open(m, l, channels) && by_norm(g, n, axis, l);
    } else if (n->n_in == 2 && n->in[0] >= 0 && n->in[1] >= 0 && !n->part) {
        bool first = g->var.at[n->in[0]].value != NULL;
        *x = n->in[first];
        if (!first && !g->var.at[n->in[1]].value) return false;
        is =
            line_open(m, l, channels) && by_constant(n, g->var.at[n->in[!first]].value, first, rank, axis, l);
    }
    for (int64_t k = 0; is && k < channels; k++) is = isfinite(l->scale[k]) && isfinite(l->shift[k]);
    if (!is) line_close(l), l->scale = NULL;
    return is;
}

/* ---- weights ------------------------------------------------------------------------------------------- */
typedef struct {
    hone_node *node;
    const hone_value *weights, *bias; /* bias NULL: none */
    /* of what is made of them: weights may be halves where the result is f32 (half.c) */
    hone_dtype dtype;
    int64_t outs, ins; /* channels of the result, of the operand; ins 0: not asked for */
    int64_t groups;
    bool in_first; /* weights are [in, out, …] */
    int axis;      /* channels' place in the result */
    bool takes_shift;
    double beta;
} product;

static bool product_of(const hone_matching *m, hone_graph *g, hone_node *n, product *p) {
    bool conv = hone_node_is(n, "Conv"), back = hone_node_is(n, "ConvTranspose"),
         gemm = hone_node_is(n, "Gemm"), mat = hone_node_is(n, "MatMul");
    if (!(conv || back || gemm || mat) || n->n_in < 2 || n->in[1] < 0 || n->out[0] < 0) return false;
    *p = (product){
        .node = n, .weights = g->var.at[n->in[1]].value, .groups = 1, .beta = 1, .takes_shift = !mat};
    const hone_var *y = g->var.at + n->out[0];
    p->dtype = y->dtype;
    const bool halves = y->dtype == HONE_DTYPE_F32 && p->weights && p->weights->tag == HONE_TAG_TENSOR &&
                        (p->weights->dtype == HONE_DTYPE_F16 || p->weights->dtype == HONE_DTYPE_BF16);
    if (y->rank < 1 || !(halves || (is_real(p->weights) && y->dtype == p->weights->dtype))) return false;
    if (hone_match_uses(m, n->in[1]) > 1 && p->weights->bytes > MOST_SHARED) return false;
    bool has_bias = n->n_in > 2 && n->in[2] >= 0;
    if (has_bias && !is_real(p->bias = g->var.at[n->in[2]].value)) return false;
    const int64_t *dim = p->weights->dim;
    if (conv || back) {
        p->groups = hone_attr_int(n->attr, n->n_attr, "group", 1);
        if (p->weights->rank < 3 || p->groups < 1 || dim[0] % p->groups) return false;
        p->outs = conv ? dim[0] : dim[1] * p->groups, p->ins = conv ? dim[1] * p->groups : dim[0];
        p->in_first = back, p->axis = 1;
        return !p->bias || hone_value_count(p->bias) == p->outs;
    }
    if (p->weights->rank != 2) return false;
    p->in_first = !hone_attr_int(n->attr, n->n_attr, "transB", 0);
    p->outs = dim[p->in_first], p->axis = y->rank - 1;
    if (gemm) p->beta = hone_attr_float(n->attr, n->n_attr, "beta", 1);
    return !p->bias || step_of(p->bias, 2, 1, p->outs) >= 0;
}
static void store(hone_value *v, int64_t k, double x) {
    hone_dtype_store(v->dtype, (char *)v->data + (size_t)k * hone_dtypes[v->dtype].bytes, HONE_F64,
                     (hone_scalar){.f64 = x}, false);
}
/* Weights by a factor an output channel, or an input channel. */
static hone_value *scaled(hone_matching *m, const product *p, const line *l, bool outs) {
    const int64_t *dim = p->weights->dim;
    int64_t inner = 1, per_group = dim[0] / p->groups;
    hone_value *v = NULL;
    for (int d = 2; d < p->weights->rank; d++) inner *= dim[d];
    if (hone_value_tensor(p->dtype, dim, p->weights->rank, &v)) return hone_match_no_memory(m), NULL;
    for (int64_t a = 0, k = 0; a < dim[0]; a++)
        for (int64_t b = 0; b < dim[1]; b++) {
            /* the channel that the second dim counts, over all groups */
            int64_t of_second = a / per_group * dim[1] + b;
            double by = l->scale[outs == p->in_first ? of_second : a];
            if (p->weights->dtype == HONE_DTYPE_F32) /* weights are large */
                for (int64_t e = 0; e < inner; e++, k++)
                    ((float *)v->data)[k] = (float)(((const float *)p->weights->data)[k] * by);
            else
                for (int64_t e = 0; e < inner; e++, k++) store(v, k, hone_value_f64(p->weights, k) * by);
        }
    return v;
}
static hone_value *new_bias(hone_matching *m, const product *p, const double *value) {
    hone_value *v = NULL;
    if (hone_value_tensor(p->dtype, &p->outs, 1, &v)) return hone_match_no_memory(m), NULL;
    for (int64_t k = 0; k < p->outs; k++) store(v, k, value[k]);
    return v;
}
static double old_bias(const product *p, int64_t k) {
    return p->bias ? hone_value_f64(p->bias, hone_value_count(p->bias) == 1 ? 0 : k) * p->beta : 0;
}
static bool all_finite(const hone_value *v) {
    int64_t n = v ? hone_value_count(v) : 0;
    for (int64_t k = 0; k < n; k++)
        if (!isfinite(v->dtype == HONE_DTYPE_F32 ? ((const float *)v->data)[k]
                                                 : ((const double *)v->data)[k]))
            return false;
    return true;
}
/* The product again, with other weights and bias (NULL: as it was). */
static bool emit(hone_matching *m, const product *p, hone_vid x, hone_value *weights, hone_value *bias) {
    hone_graph *g = hone_match_graph(m);
    hone_vid in[3] = {x, p->node->in[1], p->node->n_in > 2 ? p->node->in[2] : -1};
    hone_attr attr[16];
    int n = 0;
    bool ok = all_finite(weights) && all_finite(bias) && p->node->n_attr <= 16;
    for (int k = 0; ok && k < p->node->n_attr; k++)
        if (!bias || strcmp(p->node->attr[k].name, "beta") != 0) attr[n++] = p->node->attr[k];
    if (!ok) {
        hone_value_drop(weights), hone_value_drop(bias);
        return false;
    }
    if (weights) in[1] = hone_match_constant(m, g->var.at[in[1]].name, weights);
    if (bias) in[2] = hone_match_constant(m, in[2] >= 0 ? g->var.at[in[2]].name : "bias", bias);
    if (in[1] < 0 || (bias && in[2] < 0)) return false;
    hone_vid y = hone_match_root(m)->out[0];
    if (p->takes_shift || !bias) return hone_match_emit(m, p->node->program->name, y, in, 3, attr, n) >= 0;
    hone_vid sums = hone_match_emit(m, p->node->program->name, HONE_MATCH_NEW, in, 2, attr, n);
    return hone_match_emit(m, "Add", y, (const hone_vid[]){sums, in[2]}, 2, NULL, 0) >= 0;
}

/* ---- the rules ----------------------------------------------------------------------------------------- */
/* The root scales and shifts what a product made for it alone. */
static bool after(hone_matching *m) {
    hone_graph *g = hone_match_graph(m);
    hone_node *root = hone_match_root(m);
    product p;
    hone_vid x = -1;
    line l;
    for (int k = 0; k < root->n_in && x < 0; k++) /* the only operand that is computed */
        if (root->in[k] >= 0 && !g->var.at[root->in[k]].value) x = root->in[k];
    hone_node *maker = hone_match_maker(m, x);
    if (!maker || hone_match_uses(m, x) != 1 || !product_of(m, g, maker, &p)) return false;
    const hone_var *y = g->var.at + root->out[0], *made = g->var.at + x;
    if (y->rank != made->rank || !line_of(m, g, root, p.axis, p.outs, &x, &l)) return false;
    hone_value *weights = NULL, *bias = NULL;
    bool ok = (p.takes_shift || l.scales) && hone_match_spend(m, hone_value_count(p.weights)),
         wants_bias = l.shifts || p.bias; /* MatMul's Add is where it belongs already */
    if (ok && l.scales) ok = (weights = scaled(m, &p, &l, true)) != NULL;
    for (int64_t k = 0; k < l.n; k++) l.shift[k] += old_bias(&p, k) * l.scale[k];
    if (ok && wants_bias) ok = (bias = new_bias(m, &p, l.shift)) != NULL;
    line_close(&l);
    if (!ok) {
        hone_value_drop(weights), hone_value_drop(bias);
        return false;
    }
    return emit(m, &p, maker->in[0], weights, bias);
}
static bool is_padded(const hone_node *n) {
    const hone_attr *pads = hone_attr_find(n->attr, n->n_attr, "pads");
    const char *how = hone_attr_text(n->attr, n->n_attr, "auto_pad", "NOTSET");
    bool any = strcmp(how, "NOTSET") != 0 && strcmp(how, "VALID") != 0;
    for (int k = 0; pads && pads->kind == HONE_ATTR_INTS && k < pads->n; k++) any |= pads->i[k] != 0;
    return any;
}
/* The root is a Conv over what was scaled and shifted for it alone. */
static bool before(hone_matching *m) {
    hone_graph *g = hone_match_graph(m);
    hone_node *root = hone_match_root(m), *maker = hone_match_maker(m, root->in[0]);
    product p;
    hone_vid x;
    line l;
    if (!maker || hone_match_uses(m, root->in[0]) != 1 || !product_of(m, g, root, &p)) return false;
    if (!line_of(m, g, maker, 1, p.ins, &x, &l)) return false;
    const hone_var *a = g->var.at + x, *b = g->var.at + root->in[0];
    bool ok = a->rank == b->rank && a->rank >= 3 && !(l.shifts && is_padded(root)) &&
              hone_match_spend(m, hone_value_count(p.weights));
    for (int d = 0; ok && d < a->rank; d++) ok = a->dim[d] == b->dim[d]; /* the constant must not widen it */
    hone_value *weights = NULL, *bias = NULL;
    double *sum = ok && l.shifts ? hone_alloc(sizeof *sum * (size_t)p.outs) : NULL;
    if (ok && l.shifts && !sum) ok = hone_match_no_memory(m);
    if (sum) { /* what the shift adds to each sum: the weights as they are */
        const int64_t *dim = p.weights->dim;
        int64_t pairs = dim[0] * dim[1], inner = pairs > 0 ? hone_value_count(p.weights) / pairs : 0,
                per_group = p.outs / p.groups;
        for (int64_t o = 0, k = 0; o < p.outs; o++) {
            sum[o] = old_bias(&p, o);
            for (int64_t c = 0; c < dim[1]; c++)
                for (int64_t e = 0; e < inner; e++, k++)
                    sum[o] += hone_value_f64(p.weights, k) * l.shift[o / per_group * dim[1] + c];
        }
        ok = (bias = new_bias(m, &p, sum)) != NULL;
    } else ok = ok && !l.shifts;
    if (ok && l.scales) ok = (weights = scaled(m, &p, &l, false)) != NULL;
    hone_free(sum);
    line_close(&l);
    if (!ok) {
        hone_value_drop(weights), hone_value_drop(bias);
        return false;
    }
    return emit(m, &p, x, weights, bias);
}
/* (x + b) * c = x * c + b * c: a scale goes before the shift, to where MatMul can take it. */
static bool scale_first(hone_matching *m) {
    hone_graph *g = hone_match_graph(m);
    const hone_value *b = hone_match_value(m, "b"), *c = hone_match_value(m, "c");
    hone_vid x = hone_match_var(m, "x");
    const hone_var *y = g->var.at + hone_match_root(m)->out[0];
    product p;
    if (!hone_node_is(hone_match_maker(m, x), "MatMul") || hone_match_uses(m, x) != 1 ||
        !product_of(m, g, hone_match_maker(m, x), &p))
        return false;
    int64_t by_b = step_of(b, y->rank, p.axis, p.outs), by_c = step_of(c, y->rank, p.axis, p.outs);
    hone_value *bias = NULL;
    if (by_b < 0 || by_c < 0 || b->dtype != c->dtype) return false;
    if (hone_value_tensor(b->dtype, &p.outs, 1, &bias)) return hone_match_no_memory(m);
    for (int64_t k = 0; k < p.outs; k++)
        store(bias, k, hone_value_f64(b, k * by_b) * hone_value_f64(c, k * by_c));
    if (!all_finite(bias)) {
        hone_value_drop(bias);
        return false;
    }
    hone_vid shift = hone_match_constant(m, "bias", bias);
    hone_vid scaled_x =
        hone_match_emit(m, "Mul", HONE_MATCH_NEW, (const hone_vid[]){x, hone_match_var(m, "c")}, 2, NULL, 0);
    return hone_match_emit(m, "Add", hone_match_root(m)->out[0], (const hone_vid[]){scaled_x, shift}, 2, NULL,
                           0) >= 0;
}

/* A BatchNormalization that no product took: two numbers a channel say the same as four and a root of each
   element. */
static bool norm_alone(hone_matching *m) {
    hone_graph *g = hone_match_graph(m);
    hone_node *root = hone_match_root(m);
    hone_vid x = root->in[0], y = root->out[0];
    const hone_value *mean = hone_match_value(m, "m");
    const int rank = x >= 0 ? g->var.at[x].rank : 0;
    line l;
    if (root->n_out != 1 || rank < 2 || rank > HONE_MAX_RANK || !is_real(mean) ||
        !line_of(m, g, root, 1, hone_value_count(mean), &x, &l))
        return false;
    int64_t dim[HONE_MAX_RANK];
    for (int d = 0; d < rank - 1; d++) dim[d] = d ? 1 : l.n;
    hone_value *scale = NULL, *shift = NULL;
    bool ok = !hone_value_tensor(mean->dtype, dim, rank - 1, &scale) &&
              !hone_value_tensor(mean->dtype, dim, rank - 1, &shift);
    if (!ok) hone_match_no_memory(m);
    for (int64_t k = 0; ok && k < l.n; k++) store(scale, k, l.scale[k]), store(shift, k, l.shift[k]);
    line_close(&l);
    if (!ok || !all_finite(scale) || !all_finite(shift)) {
        hone_value_drop(scale), hone_value_drop(shift);
        return false;
    }
    const hone_vid by = hone_match_constant(m, "scale", scale), plus = hone_match_constant(m, "shift", shift);
    if (by < 0 || plus < 0) return false;
    const hone_vid scaled_x =
        hone_match_emit(m, "Mul", HONE_MATCH_NEW, (const hone_vid[]){x, by}, 2, NULL, 0);
    return hone_match_emit(m, "Add", y, (const hone_vid[]){scaled_x, plus}, 2, NULL, 0) >= 0;
}

static const hone_rule rules[] = {
    {"{BatchNormalization(x, $s, $b, $m, $v)|Mul(x, $s)|Div(x, $s)|Add(x, $s)|{Sub(x, $s)|Sub($s, x)}}",
     after},
    {"Mul(Add(x, $b), $c)", scale_first},
    {"Mul(x, $s)", after},
    {"{Conv(x, $w, $b)|Conv(x, $w)}", before},
};
hone_status hone_pass_affine(hone_passing *p) {
    int last = -1;
    /* each takes one more link of a chain */
    for (int round = 0; round < MOST_ROUNDS && last != p->changed; round++) {
        last = p->changed;
        HONE_TRY(hone_match_rules(p, rules, (int)(sizeof rules / sizeof *rules)));
    }
    static const hone_rule left[] = {{"BatchNormalization(x, $s, $b, $m, $v)", norm_alone}};
    return hone_match_rules(p, left, 1);
}
