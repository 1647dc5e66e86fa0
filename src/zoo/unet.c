/* SPDX-License-Identifier: Apache-2.0
   unet: U-Net (Ronneberger et al. 2015) in its usual form today: padded convolutions with batch norm,
   transposed convolutions on the way up. Down to 1/16 and up again; each level joins what the way down left
   there. Output: one map a class. */
#include "zoo/nets.h"

enum { LEVELS = 4, FIRST = 64 };

static hone_vid twice(hone_zoo *z, hone_vid x, int out) {
    x = HONE_ZOO_CONV(z, "conv1", x, .out = out, .k = 3, .act = "Relu");
    return HONE_ZOO_CONV(z, "conv2", x, .out = out, .k = 3, .act = "Relu");
}

void hone_zoo_unet(hone_zoo *z, const void *plan) {
    hone_vid left[LEVELS + 1], x = hone_zoo_image(z, 3);
    for (int k = 0; k <= LEVELS; k++) {
        hone_zoo_enter(z, "down%d", k);
        if (k) x = hone_zoo_max_pool(z, x, 2, 2, 0, false);
        x = left[k] = twice(z, x, FIRST << k);
        hone_zoo_leave(z);
    }
    for (int k = LEVELS - 1; k >= 0; k--) {
        hone_zoo_enter(z, "up%d", LEVELS - k);
        x = hone_zoo_up(z, "up", x, FIRST << k);
        x = hone_zoo_cat(z, HONE_ZOO_IN(left[k], x), 1);
        x = twice(z, x, FIRST << k);
        hone_zoo_leave(z);
    }
    hone_zoo_name(z, "mask");
    hone_zoo_output(z, HONE_ZOO_CONV(z, "outc", x, .out = (int)hone_zoo_option(z, HONE_ZOO_CLASSES), .k = 1,
                                     .plain = true));
}
