/* SPDX-License-Identifier: Apache-2.0
   chain: networks that are mostly one layer after another: VGG (Simonyan and Zisserman 2014), SqueezeNet 1.1
   (Iandola et al. 2016). */
#include "zoo/nets.h"

const int hone_zoo_vgg16_plan[] = {64,  64,  0,   128, 128, 0,   256, 256, 256, 0,
                                   512, 512, 512, 0,   512, 512, 512, 0,   -1};

/* The first linear layer takes the picture as it is left, 7x7 of 224x224; a smaller picture makes a smaller
   layer. */
void hone_zoo_vgg(hone_zoo *z, const void *plan) {
    static const int hidden[] = {4096, 4096};
    hone_vid x = hone_zoo_image(z, 3);
    char name[32];
    int at = 0;
    for (const int *row = plan; *row >= 0; row++) {
        snprintf(name, sizeof name, "features.%d", at);
        at += *row ? 2 : 1; /* a convolution and its Relu, or a pool */
        x = *row ? HONE_ZOO_CONV(z, name, x, .out = *row, .k = 3, .plain = true, .act = "Relu")
                 : hone_zoo_max_pool(z, x, 2, 2, 0, false);
    }
    x = hone_zoo_op_with(z, "Flatten", HONE_ZOO_IN(x), "axis=1");
    for (int k = 0; k < 2; k++) {
        snprintf(name, sizeof name, "classifier.%d", 3 * k);
        x = hone_zoo_act(z, "Relu", hone_zoo_linear(z, name, x, hidden[k], true, 1.4));
    }
    hone_zoo_name(z, "logits");
    hone_zoo_output(z,
                    hone_zoo_linear(z, "classifier.6", x, hone_zoo_option(z, HONE_ZOO_CLASSES), true, 1.4));
}

/* Fire modules: squeeze to `s`, then `e` channels by 1x1 and `e` by 3x3. s 0: a pool. */
static const struct {
    int s, e;
} fires[] = {{16, 64}, {16, 64},  {0, 0},    {32, 128}, {32, 128},
             {0, 0},   {48, 192}, {48, 192}, {64, 256}, {64, 256}};

void hone_zoo_squeezenet(hone_zoo *z, const void *plan) {
    hone_vid x = HONE_ZOO_CONV(z, "features.0", hone_zoo_image(z, 3), .out = 64, .k = 3, .stride = 2,
                               .valid = true, .plain = true, .act = "Relu");
    x = hone_zoo_max_pool(z, x, 3, 2, 0, true);
    for (size_t k = 0; k < sizeof fires / sizeof *fires; k++) {
        if (!fires[k].s) {
            x = hone_zoo_max_pool(z, x, 3, 2, 0, true);
            continue;
        }
        hone_zoo_enter(z, "features.%d", (int)k + 3);
        x = HONE_ZOO_CONV(z, "squeeze", x, .out = fires[k].s, .k = 1, .plain = true, .act = "Relu");
        hone_vid one =
            HONE_ZOO_CONV(z, "expand1x1", x, .out = fires[k].e, .k = 1, .plain = true, .act = "Relu");
        hone_vid three =
            HONE_ZOO_CONV(z, "expand3x3", x, .out = fires[k].e, .k = 3, .plain = true, .act = "Relu");
        x = hone_zoo_cat(z, HONE_ZOO_IN(one, three), 1);
        hone_zoo_leave(z);
    }
    x = HONE_ZOO_CONV(z, "classifier.1", x, .out = (int)hone_zoo_option(z, HONE_ZOO_CLASSES), .k = 1,
                      .plain = true, .act = "Relu");
    x = hone_zoo_op(z, "GlobalAveragePool", HONE_ZOO_IN(x));
    hone_zoo_name(z, "logits");
    hone_zoo_output(z, hone_zoo_op_with(z, "Flatten", HONE_ZOO_IN(x), "axis=1"));
}
