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

/* new places from, from + 1, … */
static hone_status make_taps(int size, int new_size, int from, int n, taps *t) {
    double scale = (double)size / new_size, support = scale < 1 ? 1 : scale; /* half the filter's width */
    *t = (taps){.n = n, .most = (int)ceil(support) * 2 + 1};
    size_t cells;
    if (hone_mul_size((size_t)t->most, (size_t)n * sizeof *t->weight, &cells)) {
        t->first = hone_alloc(sizeof *t->first * (size_t)n);
        t->count = hone_alloc(sizeof *t->count * (size_t)n);
        t->weight = hone_alloc(cells);
    }
    double *w = hone_alloc(sizeof *w * (size_t)t->most);
    if (!t->first || !t->count || !t->weight || !w) {
        hone_free(w);
        free_taps(t);
        *t = (taps){0};
        return hone_fail(HONE_NO_MEMORY, "no memory to resize a picture");
    }
    for (int k = 0; k < n; k++) {
        double centre = (from + k + 0.5) * scale, sum = 0;
        int first = (int)(centre - support + 0.5), end = (int)(centre + support + 0.5);
        if (first < 0) first = 0;
        if (end > size) end = size;
        for (int i = 0; i < end - first; i++) {
            double far = fabs((i + first - centre + 0.5) * (1.0 / support));
            sum += w[i] = far < 1 ? 1 - far : 0;
        }
        t->first[k] = first, t->count[k] = end - first;
        for (int i = 0; i < end - first; i++)
            t->weight[(size_t)k * (size_t)t->most + (size_t)i] =
                (int32_t)(0.5 + (sum != 0 ? w[i] / sum : w[i]) * (1 << BITS));
    }
    hone_free(w);
    return HONE_OK;
}

/* Along one axis: `outer` times, rows of `inner` bytes that belong together are mixed. */
static void mix(const taps *t, const uint8_t *from, int size, int outer, size_t inner, int32_t *sum,
                uint8_t *to) {
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

hone_status hone_resize(const uint8_t *from, int width, int height, int channels, int new_width,
                        int new_height, const hone_box *part, uint8_t *to) {
    const size_t old_row = (size_t)width * (size_t)channels, row = (size_t)part->width * (size_t)channels;
    taps across = {0}, down = {0};
    uint8_t *middle = NULL;
    int32_t *sum = NULL;
    hone_status s = HONE_OK;
    int first = part->y, rows = part->height; /* the old rows that are needed */
    if (height != new_height) {
        s = make_taps(height, new_height, part->y, part->height, &down);
        if (!s)
            first = down.first[0], rows = down.first[part->height - 1] + down.count[part->height - 1] - first;
        for (int k = 0; !s && k < part->height; k++) down.first[k] -= first;
    }
    if (!s && width != new_width) s = make_taps(width, new_width, part->x, part->width, &across);
    from += (size_t)first * old_row;
    if (!s) {
        uint8_t *mid = height == new_height ? to : (middle = hone_alloc_raw(row * (size_t)rows));
        sum = hone_alloc(sizeof *sum * row);
        if (!mid || !sum) s = hone_fail(HONE_NO_MEMORY, "no memory to resize a picture");
        else if (width != new_width) mix(&across, from, width, rows, (size_t)channels, sum, mid);
        else
            for (int y = 0; y < rows; y++)
                memcpy(mid + (size_t)y * row, from + (size_t)y * old_row + (size_t)part->x * (size_t)channels,
                       row);
    }
    if (!s && middle) mix(&down, middle, rows, 1, row, sum, to);
    hone_free(middle), hone_free(sum);
    free_taps(&across), free_taps(&down);
    return s;
}
