/* SPDX-License-Identifier: Apache-2.0
   mobile: networks of inverted residuals: MobileNetV2 (Sandler et al. 2018), MobileNetV3 (Howard et al.
   2019), EfficientNet (Tan and Le 2019). One builder; a network is rows: expand, channels, kernel, stride,
   how often, squeeze-and-excite, activation. */
#include "zoo/nets.h"

#include <string.h>

const hone_zoo_mobile_plan hone_zoo_mobilenet_v2_plan = {.stem = 32,
                                                         .head = 1280,
                                                         .stem_act = "Relu6",
                                                         .factor = true,
                                                         .row = {{1, 16, 3, 1, 1, false, "Relu6"},
                                                                 {6, 24, 3, 2, 2, false, "Relu6"},
                                                                 {6, 32, 3, 2, 3, false, "Relu6"},
                                                                 {6, 64, 3, 2, 4, false, "Relu6"},
                                                                 {6, 96, 3, 1, 3, false, "Relu6"},
                                                                 {6, 160, 3, 2, 3, false, "Relu6"},
                                                                 {6, 320, 3, 1, 1, false, "Relu6"}}};
const hone_zoo_mobile_plan hone_zoo_mobilenet_v3_small_plan = {
    .stem = 16,
    .head = 576,
    .hidden = 1024,
    .stem_act = "HardSwish",
    .squeeze_act = "Relu",
    .gate_act = "HardSigmoid",
    .row = {{16, 16, 3, 2, 1, true, "Relu"},
            {72, 24, 3, 2, 1, false, "Relu"},
            {88, 24, 3, 1, 1, false, "Relu"},
            {96, 40, 5, 2, 1, true, "HardSwish"},
            {240, 40, 5, 1, 2, true, "HardSwish"},
            {120, 48, 5, 1, 1, true, "HardSwish"},
            {144, 48, 5, 1, 1, true, "HardSwish"},
            {288, 96, 5, 2, 1, true, "HardSwish"},
            {576, 96, 5, 1, 2, true, "HardSwish"}}};
const hone_zoo_mobile_plan hone_zoo_efficientnet_b0_plan = {.stem = 32,
                                                            .head = 1280,
                                                            .stem_act = "Silu",
                                                            .squeeze_act = "Silu",
                                                            .gate_act = "Sigmoid",
                                                            .factor = true,
                                                            .squeeze_of_input = 4,
                                                            .row = {{1, 16, 3, 1, 1, true, "Silu"},
                                                                    {6, 24, 3, 2, 2, true, "Silu"},
                                                                    {6, 40, 5, 2, 2, true, "Silu"},
                                                                    {6, 80, 3, 2, 3, true, "Silu"},
                                                                    {6, 112, 5, 1, 3, true, "Silu"},
                                                                    {6, 192, 5, 2, 4, true, "Silu"},
                                                                    {6, 320, 3, 1, 1, true, "Silu"}}};

/* The nearest multiple of 8, not much below. */
static int eighth(double n) {
    int near = (int)(n + 4) / 8 * 8;
    if (near < 8) near = 8;
    return near < 0.9 * n ? near + 8 : near;
}

/* x times a gate a channel, from the mean over the picture. */
static hone_vid squeeze(hone_zoo *z, const hone_zoo_mobile_plan *p, hone_vid x, int in, int between) {
    int to = p->squeeze_of_input ? in / p->squeeze_of_input : eighth(between / 4.0);
    hone_zoo_enter(z, "se");
    hone_vid y = hone_zoo_op(z, "GlobalAveragePool", HONE_ZOO_IN(x));
    y = HONE_ZOO_CONV(z, "fc1", y, .out = to, .k = 1, .plain = true, .act = p->squeeze_act);
    y = HONE_ZOO_CONV(z, "fc2", y, .out = between, .k = 1, .plain = true, .act = p->gate_act);
    x = hone_zoo_mul(z, y, x);
    hone_zoo_leave(z);
    return x;
}

static hone_vid inverted(hone_zoo *z, const hone_zoo_mobile_plan *p, const hone_zoo_mobile_row *r, hone_vid x,
                         int stride) {
    int in = (int)hone_zoo_dim(z, x, 1), between = p->factor ? in * r->expand : r->expand;
    bool soft = strcmp(r->act, "Relu6") != 0 && strcmp(r->act, "Relu") != 0; /* such lose more than half */
    hone_vid y = x;
    if (between != in) y = HONE_ZOO_CONV(z, "expand", y, .out = between, .k = 1, .act = r->act);
    y = HONE_ZOO_CONV(z, "depthwise", y, .out = between, .k = r->k, .stride = stride, .group = -1,
                      .act = r->act, .gain = soft ? 1.15 : 1);
    if (r->squeeze) y = squeeze(z, p, y, in, between);
    bool adds = stride == 1 && in == r->out;
    y = HONE_ZOO_CONV(z, "project", y, .out = r->out, .k = 1,
                      .gain = (adds ? 0.5 : 0.8) * (r->squeeze ? 1.7 : 1) * (soft ? 1.15 : 1));
    return adds ? hone_zoo_add(z, x, y) : y;
}

void hone_zoo_mobile(hone_zoo *z, const void *plan) {
    const hone_zoo_mobile_plan *p = plan;
    int at = 1;
    hone_vid x = HONE_ZOO_CONV(z, "features.0", hone_zoo_image(z, 3), .out = p->stem, .k = 3, .stride = 2,
                               .act = p->stem_act);
    for (const hone_zoo_mobile_row *r = p->row; r->out; r++)
        for (int k = 0; k < r->repeat; k++, at++) {
            hone_zoo_enter(z, "features.%d", at);
            x = inverted(z, p, r, x, k ? 1 : r->stride);
            hone_zoo_leave(z);
        }
    x = HONE_ZOO_CONV(z, "features.last", x, .out = p->head, .k = 1, .act = p->stem_act);
    if (!p->hidden) {
        hone_zoo_classify(z, "classifier.1", x);
        return;
    }
    x = hone_zoo_op(z, "GlobalAveragePool", HONE_ZOO_IN(x));
    x = hone_zoo_op_with(z, "Flatten", HONE_ZOO_IN(x), "axis=1");
    x = hone_zoo_act(z, p->stem_act, hone_zoo_linear(z, "classifier.0", x, p->hidden, true, 1.4));
    hone_zoo_name(z, "logits");
    hone_zoo_output(z,
                    hone_zoo_linear(z, "classifier.3", x, hone_zoo_option(z, HONE_ZOO_CLASSES), true, 1.4));
}
