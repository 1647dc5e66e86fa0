/* SPDX-License-Identifier: Apache-2.0
   inception: Inception v3 (Szegedy et al. 2015), as torchvision has it, without the auxiliary classifier,
   which only training uses.

   A block is a line of text, its branches parted by '|' and joined at the end:
     7x1:192    a convolution 7 high and 1 wide to 192 channels      /2 behind it: stride 2, no padding
     +1x3:384   a fork: reads what the last one without '+' made, and is joined itself
     avg, max   a pool of 3x3: avg with stride 1, max with stride 2 */
#include "zoo/nets.h"

#include <stdlib.h>
#include <string.h>

static const char *const blocks[] = {
    "1x1:64 | 1x1:48 5x5:64 | 1x1:64 3x3:96 3x3:96 | avg 1x1:32",
    "1x1:64 | 1x1:48 5x5:64 | 1x1:64 3x3:96 3x3:96 | avg 1x1:64",
    "1x1:64 | 1x1:48 5x5:64 | 1x1:64 3x3:96 3x3:96 | avg 1x1:64",
    "3x3:384/2 | 1x1:64 3x3:96 3x3:96/2 | max",
    "1x1:192 | 1x1:128 1x7:128 7x1:192 | 1x1:128 7x1:128 1x7:128 7x1:128 1x7:192 | avg 1x1:192",
    "1x1:192 | 1x1:160 1x7:160 7x1:192 | 1x1:160 7x1:160 1x7:160 7x1:160 1x7:192 | avg 1x1:192",
    "1x1:192 | 1x1:160 1x7:160 7x1:192 | 1x1:160 7x1:160 1x7:160 7x1:160 1x7:192 | avg 1x1:192",
    "1x1:192 | 1x1:192 1x7:192 7x1:192 | 1x1:192 7x1:192 1x7:192 7x1:192 1x7:192 | avg 1x1:192",
    "1x1:192 3x3:320/2 | 1x1:192 1x7:192 7x1:192 3x3:192/2 | max",
    "1x1:320 | 1x1:384 +1x3:384 +3x1:384 | 1x1:448 3x3:384 +1x3:384 +3x1:384 | avg 1x1:192",
    "1x1:320 | 1x1:384 +1x3:384 +3x1:384 | 1x1:448 3x3:384 +1x3:384 +3x1:384 | avg 1x1:192",
};
enum { MOST_PARTS = 8 };

static hone_vid item(hone_zoo *z, const char *text, hone_vid x, int branch, int at) {
    char name[32], *end;
    if (!strncmp(text, "avg", 3)) return hone_zoo_avg_pool(z, x, 3, 1, 1);
    if (!strncmp(text, "max", 3)) return hone_zoo_max_pool(z, x, 3, 2, 0, false);
    snprintf(name, sizeof name, "branch%d.%d", branch, at);
    hone_zoo_conv_of c = {.act = "Relu"};
    c.k = (int)strtol(text + (*text == '+'), &end, 10);
    c.kw = (int)strtol(end + 1, &end, 10);
    c.out = (int)strtol(end + 1, &end, 10);
    c.valid = *end == '/';
    c.stride = c.valid ? 2 : 1;
    return hone_zoo_conv(z, name, x, &c);
}

static hone_vid block(hone_zoo *z, const char *text, hone_vid input) {
    hone_vid part[MOST_PARTS], x = input;
    int n = 0, branch = 0, at = 0;
    bool forked = false;
    for (;;) {
        text += strspn(text, " ");
        if (!*text || *text == '|') {
            if (!forked) part[n++] = x;
            if (!*text) break;
            text++, branch++, at = 0, forked = false, x = input;
            continue;
        }
        hone_vid y = item(z, text, x, branch, at++);
        if (*text == '+') part[n++] = y, forked = true;
        else x = y;
        text += strcspn(text, " ");
    }
    return hone_zoo_cat(z, part, n, 1);
}

void hone_zoo_inception(hone_zoo *z, const void *plan) {
    hone_vid x = HONE_ZOO_CONV(z, "Conv2d_1a", hone_zoo_image(z, 3), .out = 32, .k = 3, .stride = 2,
                               .valid = true, .act = "Relu");
    x = HONE_ZOO_CONV(z, "Conv2d_2a", x, .out = 32, .k = 3, .valid = true, .act = "Relu");
    x = HONE_ZOO_CONV(z, "Conv2d_2b", x, .out = 64, .k = 3, .act = "Relu");
    x = hone_zoo_max_pool(z, x, 3, 2, 0, false);
    x = HONE_ZOO_CONV(z, "Conv2d_3b", x, .out = 80, .k = 1, .act = "Relu");
    x = HONE_ZOO_CONV(z, "Conv2d_4a", x, .out = 192, .k = 3, .valid = true, .act = "Relu");
    x = hone_zoo_max_pool(z, x, 3, 2, 0, false);
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) {
        hone_zoo_enter(z, "Mixed_%d", (int)k);
        x = block(z, blocks[k], x);
        hone_zoo_leave(z);
    }
    hone_zoo_classify(z, "fc", x);
}
