/* SPDX-License-Identifier: Apache-2.0
   residual: ResNet (He et al. 2015), as torchvision has it: the stride of a bottleneck on its 3x3
   convolution. */
#include "zoo/nets.h"

const hone_zoo_resnet_plan hone_zoo_resnet18_plan = {false, {2, 2, 2, 2}};
const hone_zoo_resnet_plan hone_zoo_resnet50_plan = {true, {3, 4, 6, 3}};

static hone_vid block(hone_zoo *z, hone_vid x, bool bottleneck, int width, int stride) {
    int out = bottleneck ? width * 4 : width;
    hone_vid y = x, side = x;
    if (bottleneck) {
        y = HONE_ZOO_CONV(z, "conv1", y, .out = width, .k = 1, .act = "Relu");
        y = HONE_ZOO_CONV(z, "conv2", y, .out = width, .k = 3, .stride = stride, .act = "Relu");
        /* blocks add up: small, so that 16 of them stay in range */
        y = HONE_ZOO_CONV(z, "conv3", y, .out = out, .k = 1, .gain = 0.4);
    } else {
        y = HONE_ZOO_CONV(z, "conv1", y, .out = width, .k = 3, .stride = stride, .act = "Relu");
        y = HONE_ZOO_CONV(z, "conv2", y, .out = out, .k = 3, .gain = 0.4);
    }
    if (stride != 1 || hone_zoo_dim(z, x, 1) != out)
        side = HONE_ZOO_CONV(z, "downsample", x, .out = out, .k = 1, .stride = stride, .gain = 0.8);
    return hone_zoo_act(z, "Relu", hone_zoo_add(z, y, side));
}

void hone_zoo_resnet(hone_zoo *z, const void *plan) {
    const hone_zoo_resnet_plan *p = plan;
    hone_vid x =
        HONE_ZOO_CONV(z, "conv1", hone_zoo_image(z, 3), .out = 64, .k = 7, .stride = 2, .act = "Relu");
    x = hone_zoo_max_pool(z, x, 3, 2, 1, false);
    for (int s = 0; s < 4; s++)
        for (int k = 0; k < p->blocks[s]; k++) {
            hone_zoo_enter(z, "layer%d.%d", s + 1, k);
            x = block(z, x, p->bottleneck, 64 << s, s && !k ? 2 : 1);
            hone_zoo_leave(z);
        }
    hone_zoo_classify(z, "fc", x);
}
