/* SPDX-License-Identifier: Apache-2.0
   branches: networks whose channels part and join: DenseNet-121 (Huang et al. 2016), ShuffleNetV2 x1.0 (Ma et
   al. 2018). */
#include "zoo/nets.h"

/* ---- DenseNet: every layer reads all before it --------------------------------------------------------- */
enum { GROWTH = 32, WIDTH = 4, MOST_LAYERS = 24 };
static const int dense[] = {6, 12, 24, 16};

static hone_vid dense_layer(hone_zoo *z, const hone_vid *before, int n) {
    hone_vid x = n == 1 ? before[0] : hone_zoo_cat(z, before, n, 1);
    /* stands before its convolution: no exporter can fold it */
    x = hone_zoo_act(z, "Relu", hone_zoo_norm(z, "norm1", x));
    x = HONE_ZOO_CONV(z, "conv1", x, .out = WIDTH * GROWTH, .k = 1, .act = "Relu");
    return HONE_ZOO_CONV(z, "conv2", x, .out = GROWTH, .k = 3, .bare = true);
}

void hone_zoo_densenet(hone_zoo *z, const void *plan) {
    hone_vid all[MOST_LAYERS + 1];
    hone_vid x = HONE_ZOO_CONV(z, "features.conv0", hone_zoo_image(z, 3), .out = 64, .k = 7, .stride = 2,
                               .act = "Relu");
    x = hone_zoo_max_pool(z, x, 3, 2, 1, false);
    for (int b = 0; b < 4; b++) {
        all[0] = x;
        for (int k = 0; k < dense[b]; k++) {
            hone_zoo_enter(z, "features.denseblock%d.denselayer%d", b + 1, k + 1);
            all[k + 1] = dense_layer(z, all, k + 1);
            hone_zoo_leave(z);
        }
        x = hone_zoo_cat(z, all, dense[b] + 1, 1);
        hone_zoo_enter(z, b < 3 ? "features.transition%d" : "features.norm%d", b < 3 ? b + 1 : 5);
        x = hone_zoo_act(z, "Relu", hone_zoo_norm(z, "norm", x));
        if (b < 3) {
            x = HONE_ZOO_CONV(z, "conv", x, .out = (int)hone_zoo_dim(z, x, 1) / 2, .k = 1, .bare = true);
            x = hone_zoo_avg_pool(z, x, 2, 2, 0);
        }
        hone_zoo_leave(z);
    }
    hone_zoo_classify(z, "classifier", x);
}

/* ---- ShuffleNetV2: half of the channels pass by, then all are shuffled --------------------------------- */
static const struct { int out, repeat; } shuffles[] = {{116, 4}, {232, 8}, {464, 4}};

/* [N, C, H, W] seen as [N, 2, C/2, H, W] with both turned around. */
static hone_vid shuffle(hone_zoo *z, hone_vid x) {
    hone_dim n = hone_zoo_dim(z, x, 0), c = hone_zoo_dim(z, x, 1), h = hone_zoo_dim(z, x, 2),
             w = hone_zoo_dim(z, x, 3);
    hone_vid y = hone_zoo_reshape(z, x, x, HONE_ZOO_DIMS(n, 2, c / 2, h, w));
    y = hone_zoo_transpose(z, y, "0,2,1,3,4");
    return hone_zoo_reshape(z, y, x, HONE_ZOO_DIMS(n, c, h, w));
}
static hone_vid branch(hone_zoo *z, hone_vid x, int out, int stride) {
    x = HONE_ZOO_CONV(z, "0", x, .out = out, .k = 1, .act = "Relu");
    x = HONE_ZOO_CONV(z, "3", x, .out = out, .k = 3, .stride = stride, .group = -1, .gain = 0.7);
    return HONE_ZOO_CONV(z, "5", x, .out = out, .k = 1, .act = "Relu", .gain = 0.9);
}
static hone_vid shuffle_block(hone_zoo *z, hone_vid x, int out, bool first) {
    hone_vid side, main = x;
    if (first) {
        hone_zoo_enter(z, "branch1");
        side = HONE_ZOO_CONV(z, "0", x, .out = (int)hone_zoo_dim(z, x, 1), .k = 3, .stride = 2, .group = -1,
                             .gain = 0.7);
        side = HONE_ZOO_CONV(z, "2", side, .out = out, .k = 1, .act = "Relu", .gain = 0.9);
        hone_zoo_leave(z);
    } else {
        hone_vid halves = hone_zoo_ints(z, (const int64_t[]){out, out}, 2);
        side = hone_zoo_op_many(z, "Split", HONE_ZOO_IN(x, halves), 2, "axis=1");
        main = side + 1;
    }
    hone_zoo_enter(z, "branch2");
    main = branch(z, main, out, first ? 2 : 1);
    hone_zoo_leave(z);
    return shuffle(z, hone_zoo_cat(z, HONE_ZOO_IN(side, main), 1));
}

void hone_zoo_shufflenet(hone_zoo *z, const void *plan) {
    hone_vid x =
        HONE_ZOO_CONV(z, "conv1", hone_zoo_image(z, 3), .out = 24, .k = 3, .stride = 2, .act = "Relu");
    x = hone_zoo_max_pool(z, x, 3, 2, 1, false);
    for (int s = 0; s < 3; s++)
        for (int k = 0; k < shuffles[s].repeat; k++) {
            hone_zoo_enter(z, "stage%d.%d", s + 2, k);
            x = shuffle_block(z, x, shuffles[s].out / 2, k == 0);
            hone_zoo_leave(z);
        }
    x = HONE_ZOO_CONV(z, "conv5", x, .out = 1024, .k = 1, .act = "Relu");
    x = hone_zoo_op_with(z, "ReduceMean", HONE_ZOO_IN(x, hone_zoo_ints(z, (const int64_t[]){2, 3}, 2)),
                         "keepdims=0");
    hone_zoo_name(z, "logits");
    hone_zoo_output(z, hone_zoo_linear(z, "fc", x, hone_zoo_option(z, HONE_ZOO_CLASSES), true, 1.4));
}
