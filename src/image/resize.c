/* SPDX-License-Identifier: Apache-2.0
   resize: a triangle filter as wide as a new pixel, one axis after the other. */
#include "image/resize.h"

#include <math.h>
#include <string.h>

enum { BITS = 22 };

/* For each new place: where its old ones begin, how many, and `most` weights. */
typedef struct {
    int n, most;
    int *first, *count;
    int32_t *weight;
} taps;

static void free_taps(taps *t) { hone_free(t->first), hone_free(t->count), hone_free(t->weight); }

static hone_status make_taps(int size, int new_size, taps *t) {
    double scale = (double)size / new_size, support = scale < 1 ? 1 : scale; /* half the filter's width */
    *t = (taps){.n = new_size, .most = (int)ceil(support) * 2 + 1};
    size_t cells;
    if (hone_mul_size((size_t)t->most, (size_t)new_size * sizeof *t->weight, &cells)) {
        t->first = hone_alloc(sizeof *t->first * (size_t)new_size);
        t->count = hone_alloc(sizeof *t->count * (size_t)new_size);
        t->weight = hone_alloc(cells);
    }
    double *w = hone_alloc(sizeof *w * (size_t)t->most);
    if (!t->first || !t->count || !t->weight || !w) {
        hone_free(w);
        free_taps(t);
        return hone_fail(HONE_NO_MEMORY, "no memory to resize a picture");
    }
    for (int k = 0; k < new_size; k++) {
        double centre = (k + 0.5) * scale, sum = 0;
        int first = (int)(centre - support + 0.5), end = (int)(centre + support + 0.5);
        if (first < 0) first = 0;
        if (end > size) end = size;
        for (int i = 0; i < end - first; i++) {
            double far = fabs((i + first - centre + 0.5) * (1.0 / support));
            sum += w[i] = far < 1 ? 1 - far : 0;
        }
        t->first[k] = first, t->count[k] = end - first;
        for (int i = 0; i < end - first; i++)
            t->weight[(size_t)k * (size_t)t->most + (size_t)i] = (int32_t)(0.5 + (sum != 0 ? w[i] / sum : w[i]) * (1 << BITS));
    }
    hone_free(w);
    return HONE_OK;
}

/* Along one axis: `outer` times, rows of `inner` bytes that belong together are mixed. */
static void mix(const taps *t, const uint8_t *from, int size, int outer, size_t inner, int32_t *sum, uint8_t *to) {
    for (int o = 0; o < outer; o++, from += (size_t)size * inner)
        for (int k = 0; k < t->n; k++, to += inner) {
            const uint8_t *p = from + (size_t)t->first[k] * inner;
            for (size_t c = 0; c < inner; c++) sum[c] = 1 << (BITS - 1);
            for (int i = 0; i < t->count[k]; i++, p += inner) {
                int32_t w = t->weight[(size_t)k * (size_t)t->most + (size_t)i];
                for (size_t c = 0; c < inner; c++) sum[c] += p[c] * w;
            }
            for (size_t c = 0; c < inner; c++) to[c] = (uint8_t)(sum[c] >> BITS > 255 ? 255 : sum[c] >> BITS);
        }
}

static hone_status along(const uint8_t *from, int size, int new_size, int outer, size_t inner, uint8_t *to) {
    taps t;
    HONE_TRY(make_taps(size, new_size, &t));
    int32_t *sum = hone_alloc(sizeof *sum * inner);
    if (sum) mix(&t, from, size, outer, inner, sum, to);
    hone_free(sum);
    free_taps(&t);
    return sum ? HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory to resize a picture");
}

hone_status hone_resize(const uint8_t *from, int width, int height, int channels, int new_width, int new_height, uint8_t *to) {
    size_t row = (size_t)new_width * (size_t)channels;
    if (height == new_height && width == new_width) return memcpy(to, from, row * (size_t)height), HONE_OK;
    if (height == new_height) return along(from, width, new_width, height, (size_t)channels, to);
    if (width == new_width) return along(from, height, new_height, 1, row, to);
    uint8_t *middle = hone_alloc_raw(row * (size_t)height);
    if (!middle) return hone_fail(HONE_NO_MEMORY, "no memory to resize a picture");
    hone_status s = along(from, width, new_width, height, (size_t)channels, middle);
    if (!s) s = along(middle, height, new_height, 1, row, to);
    hone_free(middle);
    return s;
}
