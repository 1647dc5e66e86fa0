/* SPDX-License-Identifier: Apache-2.0
   box: see box.h. */
#include "device/box.h"

enum { MOST = 32 };
static int64_t size(int64_t step) { return step < 0 ? -step : step; }
bool hone_box_make(hone_arena *a, const int64_t *extent, const int64_t *stride, int rank, int64_t item,
                   hone_box *out) {
    hone_box_dim dim[MOST];
    int n = 0;
    *out = (hone_box){.bytes = item};
    for (int k = 0; k < rank; k++) {
        if (extent[k] < 1) {
            *out = (hone_box){0};
            return true;
        }
        if (extent[k] == 1 || !stride[k] || n == MOST) continue;
        int q = n++;
        for (; q > 0 && size(dim[q - 1].step) < size(stride[k] * item); q--) dim[q] = dim[q - 1];
        dim[q] = (hone_box_dim){extent[k], stride[k] * item};
    }
    while (n && dim[n - 1].step == out->bytes) out->bytes *= dim[--n].count;
    int left = n ? 1 : 0; /* what follows on from one another is one dim */
    for (int k = 1; k < n; k++) {
        if (dim[left - 1].step == dim[k].step * dim[k].count)
            dim[left - 1] = (hone_box_dim){dim[left - 1].count * dim[k].count, dim[k].step};
        else dim[left++] = dim[k];
    }
    if (!left) return true;
    out->n = left, out->dim = hone_arena_copy(a, dim, sizeof *dim * (size_t)left);
    return out->dim != NULL;
}
bool hone_box_span(const hone_box *b, int64_t *first, int64_t *end) {
    *first = 0, *end = b->bytes;
    for (int k = 0; k < b->n; k++) {
        int64_t far;
        if (__builtin_mul_overflow(b->dim[k].count - 1, b->dim[k].step, &far)) return false;
        if (__builtin_add_overflow(*(far < 0 ? first : end), far, far < 0 ? first : end)) return false;
    }
    return b->bytes > 0;
}
