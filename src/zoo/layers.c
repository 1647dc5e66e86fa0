/* SPDX-License-Identifier: Apache-2.0
   layers: convolutions with their batch norms, activations, pools, products, norms. */
#include "zoo/layers.h"

#include <math.h>
#include <string.h>

/* uniform of variance gain^2 / fan */
static double reach_of(double gain, double fan) { return gain * sqrt(3.0 / fan); }

/* ---- batch norm ---------------------------------------------------------------------------------------- */
/* Its four vectors, as a trained network might have them. */
static const struct {
    const char *leaf;
    double center, reach;
} norms[4] = {{"weight", 1, 0.1}, {"bias", 0, 0.1}, {"running_mean", 0, 0.1}, {"running_var", 1, 0.1}};
#define NORM_EPSILON 1e-5

hone_vid hone_zoo_norm(hone_zoo *z, const char *name, hone_vid x) {
    hone_vid in[5] = {x};
    hone_dim c = hone_zoo_dim(z, x, 1);
    hone_zoo_enter(z, "%s", name);
    for (int k = 0; k < 4; k++)
        in[k + 1] = (k < 2 ? hone_zoo_weight : hone_zoo_buffer)(z, norms[k].leaf, &c, 1, norms[k].center,
                                                                norms[k].reach);
    x = hone_zoo_op_with(z, "BatchNormalization", in, 5, "epsilon=1e-5 momentum=0.9");
    hone_zoo_leave(z);
    return x;
}

/* w[C, …] and a bias of C from the weights of a convolution without one and the batch norm behind it: what an
   exporter folds. */
static hone_status fold_norm(hone_zoo *z, hone_value *w, hone_value *bias) {
    int64_t c = w->dim[0], each = hone_value_count(w) / (c ? c : 1);
    float *v = hone_alloc(sizeof *v * 4 * (size_t)c), *to = w->data, *b = bias->data;
    if (!v) return hone_fail(HONE_NO_MEMORY, "no memory for the network");
    hone_zoo_enter(z, "bn");
    for (int k = 0; k < 4; k++)
        hone_zoo_fill(z, norms[k].leaf, v + k * c, c, norms[k].center, norms[k].reach);
    hone_zoo_leave(z);
    for (int64_t m = 0; m < c; m++) {
        float scale = v[m] / sqrtf(v[3 * c + m] + (float)NORM_EPSILON);
        b[m] = v[c + m] - v[2 * c + m] * scale;
        for (int64_t k = 0; k < each; k++) to[m * each + k] *= scale;
    }
    hone_free(v);
    return HONE_OK;
}

/* ---- convolution --------------------------------------------------------------------------------------- */
static hone_vid folded(hone_zoo *z, const hone_dim *dim, int rank, double reach, hone_vid *bias) {
    hone_value *w = NULL, *b = NULL;
    if (z->status || z->measure) {
        *bias = hone_zoo_weight(z, "bias", dim, 1, 0, 0);
        z->parameters += dim[0]; /* the norm has two numbers a channel */
        return hone_zoo_weight(z, "weight", dim, rank, 0, reach);
    }
    int64_t n = 0;
    z->status = hone_value_tensor(HONE_DTYPE_F32, dim, rank, &w);
    if (!z->status) z->status = hone_value_tensor(HONE_DTYPE_F32, dim, 1, &b);
    if (!z->status) {
        n = hone_value_count(w);
        hone_zoo_fill(z, "weight", w->data, n, 0, reach);
        z->status = fold_norm(z, w, b);
    }
    if (z->status) {
        hone_value_drop(w);
        hone_value_drop(b);
        return -1;
    }
    z->parameters += n + 2 * dim[0];
    hone_vid id = hone_zoo_const(z, "weight", w);
    *bias = hone_zoo_const(z, "bias", b);
    return id;
}

hone_vid hone_zoo_conv(hone_zoo *z, const char *name, hone_vid x, const hone_zoo_conv_of *c) {
    const hone_var *v = z->status ? NULL : z->g->var.at + x;
    int flat = v && v->rank == 3; /* one spatial axis */
    int kh = c->k, kw = c->kw ? c->kw : c->k, stride = c->stride ? c->stride : 1;
    hone_dim in = hone_zoo_dim(z, x, 1), group = c->group < 0 ? in : c->group ? c->group : 1;
    const hone_dim dim[] = {c->out, in / group, kh, kw};
    double reach =
        reach_of(1.41421356 * (c->gain > 0 ? c->gain : 1), (double)(in / group * kh) * (flat ? 1 : kw));
    int ph = c->valid ? 0 : kh / 2, pw = c->valid ? 0 : kw / 2;
    hone_vid w, bias = -1;
    hone_zoo_enter(z, "%s", name);
    /* a BatchNormalization of its own */
    bool apart = !c->plain && !c->bare && hone_zoo_option(z, HONE_ZOO_BN);
    if (c->plain || c->bare || apart) {
        w = hone_zoo_weight(z, "weight", dim, 4 - flat, 0, reach);
        if (c->plain) bias = hone_zoo_weight(z, "bias", dim, 1, 0, 0.1);
    } else {
        w = folded(z, dim, 4 - flat, reach, &bias);
    }
    const hone_vid list[] = {x, w, bias};
    if (flat)
        x = hone_zoo_op_with(z, "Conv", list, bias < 0 ? 2 : 3,
                             "dilations=1 group=%d kernel_shape=%d pads=%d,%d strides=%d", (int)group, kh, ph,
                             ph, stride);
    else
        x = hone_zoo_op_with(z, "Conv", list, bias < 0 ? 2 : 3,
                             "dilations=1,1 group=%d kernel_shape=%d,%d pads=%d,%d,%d,%d strides=%d,%d",
                             (int)group, kh, kw, ph, pw, ph, pw, stride, stride);
    if (apart) x = hone_zoo_norm(z, "bn", x);
    x = hone_zoo_act(z, c->act, x);
    hone_zoo_leave(z);
    return x;
}

hone_vid hone_zoo_up(hone_zoo *z, const char *name, hone_vid x, int out) {
    hone_dim in = hone_zoo_dim(z, x, 1);
    hone_zoo_enter(z, "%s", name);
    hone_vid w =
        hone_zoo_weight(z, "weight", HONE_ZOO_DIMS(in, out, 2, 2), 0, reach_of(1.41421356, (double)in));
    hone_vid b = hone_zoo_weight(z, "bias", HONE_ZOO_DIMS(out), 0, 0.1);
    x = hone_zoo_op_with(z, "ConvTranspose", HONE_ZOO_IN(x, w, b),
                         "dilations=1,1 group=1 kernel_shape=2,2 pads=0,0,0,0 strides=2,2");
    hone_zoo_leave(z);
    return x;
}

/* ---- element by element -------------------------------------------------------------------------------- */
hone_vid hone_zoo_add(hone_zoo *z, hone_vid a, hone_vid b) {
    return hone_zoo_op(z, "Add", HONE_ZOO_IN(a, b));
}
hone_vid hone_zoo_mul(hone_zoo *z, hone_vid a, hone_vid b) {
    return hone_zoo_op(z, "Mul", HONE_ZOO_IN(a, b));
}

static hone_vid relu6(hone_zoo *z, hone_vid x) {
    hone_vid low = hone_zoo_float(z, 0), high = hone_zoo_float(z, 6);
    return hone_zoo_op(z, "Clip", HONE_ZOO_IN(x, low, high));
}
static hone_vid hard_sigmoid(hone_zoo *z, hone_vid x) {
    return hone_zoo_op_with(z, "HardSigmoid", HONE_ZOO_IN(x), "alpha=0.1666666716337204");
}
static hone_vid silu(hone_zoo *z, hone_vid x) {
    return hone_zoo_mul(z, x, hone_zoo_op(z, "Sigmoid", HONE_ZOO_IN(x)));
}
static hone_vid gelu(hone_zoo *z, hone_vid x) {
    hone_vid root = hone_zoo_float(z, 1.4142135623730951), y = hone_zoo_op(z, "Div", HONE_ZOO_IN(x, root));
    y = hone_zoo_op(z, "Erf", HONE_ZOO_IN(y));
    y = hone_zoo_add(z, y, hone_zoo_float(z, 1));
    return hone_zoo_mul(z, hone_zoo_mul(z, x, y), hone_zoo_float(z, 0.5));
}
static hone_vid gelu_tanh(hone_zoo *z, hone_vid x) {
    hone_vid half = hone_zoo_mul(z, x, hone_zoo_float(z, 0.5)), three = hone_zoo_float(z, 3);
    hone_vid cube = hone_zoo_op(z, "Pow", HONE_ZOO_IN(x, three));
    hone_vid y = hone_zoo_add(z, x, hone_zoo_mul(z, cube, hone_zoo_float(z, 0.044715)));
    y = hone_zoo_op(z, "Tanh", HONE_ZOO_IN(hone_zoo_mul(z, y, hone_zoo_float(z, 0.7978845608028654))));
    return hone_zoo_mul(z, half, hone_zoo_add(z, y, hone_zoo_float(z, 1)));
}
/* Those that are not one plain op. */
static const struct {
    const char *name;
    hone_vid (*make)(hone_zoo *, hone_vid);
} acts[] = {
    {"Relu6", relu6}, {"HardSigmoid", hard_sigmoid}, {"Silu", silu}, {"Gelu", gelu}, {"GeluTanh", gelu_tanh}};

hone_vid hone_zoo_act(hone_zoo *z, const char *act, hone_vid x) {
    if (!act) return x;
    for (size_t k = 0; k < sizeof acts / sizeof *acts; k++)
        if (!strcmp(acts[k].name, act)) return acts[k].make(z, x);
    return hone_zoo_op(z, act, HONE_ZOO_IN(x));
}

hone_vid hone_zoo_cat(hone_zoo *z, const hone_vid *x, int n, int axis) {
    return hone_zoo_op_with(z, "Concat", x, n, "axis=%d", axis);
}

/* ---- pools --------------------------------------------------------------------------------------------- */
hone_vid hone_zoo_max_pool(hone_zoo *z, hone_vid x, int k, int stride, int pad, bool ceil) {
    return hone_zoo_op_with(z, "MaxPool", HONE_ZOO_IN(x),
                            "ceil_mode=%d kernel_shape=%d,%d pads=%d,%d,%d,%d strides=%d,%d", ceil, k, k, pad,
                            pad, pad, pad, stride, stride);
}
hone_vid hone_zoo_avg_pool(hone_zoo *z, hone_vid x, int k, int stride, int pad) {
    return hone_zoo_op_with(
        z, "AveragePool", HONE_ZOO_IN(x),
        "ceil_mode=0 count_include_pad=1 kernel_shape=%d,%d pads=%d,%d,%d,%d strides=%d,%d", k, k, pad, pad,
        pad, pad, stride, stride);
}

/* ---- products and norms -------------------------------------------------------------------------------- */
hone_vid hone_zoo_linear(hone_zoo *z, const char *name, hone_vid x, int64_t out, bool bias, double gain) {
    hone_dim in = hone_zoo_dim(z, x, -1);
    bool two = !z->status && z->g->var.at[x].rank == 2 && bias;
    double reach = reach_of(gain, (double)in);
    char called[64] = "";
    memcpy(called, z->next, sizeof called); /* the last node takes the name that waits */
    z->next[0] = 0;
    hone_zoo_enter(z, "%s", name);
    hone_vid w = hone_zoo_weight(z, "weight", two ? (const hone_dim[]){out, in} : (const hone_dim[]){in, out},
                                 2, 0, reach);
    hone_vid b = bias ? hone_zoo_weight(z, "bias", &out, 1, 0, 0.05) : -1;
    if (two || !bias) hone_zoo_name(z, called);
    if (two) {
        x = hone_zoo_op_with(z, "Gemm", HONE_ZOO_IN(x, w, b), "alpha=1 beta=1 transB=1");
    } else {
        x = hone_zoo_op(z, "MatMul", HONE_ZOO_IN(x, w));
        hone_zoo_name(z, called);
        if (bias) x = hone_zoo_add(z, b, x);
        else hone_zoo_name(z, "");
    }
    hone_zoo_leave(z);
    return x;
}
hone_vid hone_zoo_layer_norm(hone_zoo *z, const char *name, hone_vid x, double epsilon) {
    hone_dim n = hone_zoo_dim(z, x, -1);
    hone_zoo_enter(z, "%s", name);
    hone_vid w = hone_zoo_weight(z, "weight", &n, 1, 1, 0.1), b = hone_zoo_weight(z, "bias", &n, 1, 0, 0.1);
    x = hone_zoo_op_with(z, "LayerNormalization", HONE_ZOO_IN(x, w, b), "axis=-1 epsilon=%g", epsilon);
    hone_zoo_leave(z);
    return x;
}

/* ---- both ends of a classifier ------------------------------------------------------------------------- */
hone_vid hone_zoo_image(hone_zoo *z, int channels) {
    int64_t side = hone_zoo_option(z, HONE_ZOO_IMAGE);
    return hone_zoo_input(z, "image", HONE_DTYPE_F32, HONE_ZOO_DIMS(z->batch, channels, side, side));
}
void hone_zoo_classify(hone_zoo *z, const char *name, hone_vid x) {
    x = hone_zoo_op(z, "GlobalAveragePool", HONE_ZOO_IN(x));
    x = hone_zoo_op_with(z, "Flatten", HONE_ZOO_IN(x), "axis=1");
    hone_zoo_name(z, "logits");
    hone_zoo_output(z, hone_zoo_linear(z, name, x, hone_zoo_option(z, HONE_ZOO_CLASSES), true, 1.4));
}
