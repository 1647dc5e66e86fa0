/* SPDX-License-Identifier: Apache-2.0
   fuzz_image: any bytes as a picture: decoded in one of the three orders, and brought to a model's size. */
#include "base/mem.h"
#include "hone/image.h"

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    hone_alloc_limit(256 << 20);
    return 0;
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hone_value *v = NULL, *out = NULL;
    hone_image_order order = (hone_image_order)(size % 3);
    hone_image_recipe r = {.width = 8,
                           .height = 6,
                           .fit = (hone_image_fit)(size / 3 % 3),
                           .order = order,
                           .range = 1,
                           .std = {1, 1, 1},
                           .dtype = HONE_DTYPE_F32};
    if (hone_image_decode(data, size, order, &v) != HONE_OK) return 0;
    if (hone_value_bytes(v) < 1 << 22) (void)!hone_image_prepare(&v, 1, &r, &out);
    hone_value_free(out);
    hone_value_free(v);
    return 0;
}
