/* SPDX-License-Identifier: Apache-2.0
   layers: what networks are made of, spelled as PyTorch's exporter spells it in eval mode. Each makes its
   nodes and weights under `name`. */
#ifndef HONE_ZOO_LAYERS_H
#define HONE_ZOO_LAYERS_H
#include "zoo/build.h"

typedef struct {
    int out, k, kw;  /* kw 0: = k */
    int stride;      /* 0: 1 */
    int group;       /* 0: 1; -1: one a channel */
    bool valid;      /* no padding; else k / 2 */
    bool plain;      /* a bias of its own and no batch norm */
    bool bare;       /* no bias and no batch norm */
    const char *act; /* below, or NULL */
    double gain;     /* of the weights, on what keeps the variance of a relu's output; 0: 1 */
} hone_zoo_conv_of;
/* x: [N, C, H, W] or [N, C, L]. Convolution, batch norm (folded into it, or a node of its own with bn=1),
   activation. */
hone_vid hone_zoo_conv(hone_zoo *, const char *name, hone_vid x, const hone_zoo_conv_of *);
#define HONE_ZOO_CONV(z, name, x, ...) hone_zoo_conv(z, name, x, &(const hone_zoo_conv_of){__VA_ARGS__})
/* A batch norm that no convolution stands before. */
hone_vid hone_zoo_norm(hone_zoo *, const char *name, hone_vid x);
/* transposed convolution of 2x2, stride 2 */
hone_vid hone_zoo_up(hone_zoo *, const char *name, hone_vid x, int out);

/* Relu, Relu6, HardSwish, HardSigmoid, Sigmoid, Silu, Gelu (by Erf), GeluTanh, Tanh; NULL: none */
hone_vid hone_zoo_act(hone_zoo *, const char *act, hone_vid x);
hone_vid hone_zoo_add(hone_zoo *, hone_vid a, hone_vid b);
hone_vid hone_zoo_mul(hone_zoo *, hone_vid a, hone_vid b);
hone_vid hone_zoo_cat(hone_zoo *, const hone_vid *x, int n, int axis);
hone_vid hone_zoo_max_pool(hone_zoo *, hone_vid x, int k, int stride, int pad, bool ceil);
hone_vid hone_zoo_avg_pool(hone_zoo *, hone_vid x, int k, int stride, int pad);

/* [N, K] by a Gemm with the weight as PyTorch keeps it, [out, K]; of higher rank by MatMul and Add. */
hone_vid hone_zoo_linear(hone_zoo *, const char *name, hone_vid x, int64_t out, bool bias, double gain);
hone_vid hone_zoo_layer_norm(hone_zoo *, const char *name, hone_vid x, double epsilon);
/* The end of a classifier: mean over the picture, [N, C], and one Gemm to "logits". */
void hone_zoo_classify(hone_zoo *, const char *name, hone_vid x);
/* The picture that goes in: "image", [batch, channels, image, image]. */
hone_vid hone_zoo_image(hone_zoo *, int channels);
#endif
