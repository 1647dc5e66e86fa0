/* SPDX-License-Identifier: Apache-2.0
   resample_run: rows of values of other places, as resample.c found them. */
#include "device/cpu/resample.h"

#include <string.h>

typedef hone_resample_axis axis;
typedef hone_resample resample;
enum { MAX_AXES = HONE_RESAMPLE_AXES, MAX_TAPS = HONE_RESAMPLE_TAPS };

static int64_t list_rows(const resample *d, const float *x, const int64_t *position, const float **list,
                         float *weight) {
    int64_t many = 1;
    list[0] = x, weight[0] = 1;
    for (int q = 0; q < d->n_axis; q++) {
        const axis *a = d->axis + q;
        const int64_t *at = a->at + position[q] * a->taps;
        const float *w = a->weight + position[q] * a->taps;
        /* the first copy last: it is what the others are made of */
        for (int64_t t = a->taps - 1; t >= 0; t--)
            for (int64_t k = 0; k < many; k++)
                list[t * many + k] = list[k] + at[t], weight[t * many + k] = weight[k] * w[t];
        many *= a->taps;
    }
    return many;
}
static void pick(const resample *d, const float *row, float *y) {
    hone_pick_fn *some = d->kernel->pick;
    if (d->run_to == d->run_from) some(row, d->lane_at, d->lane_weight, d->lane_taps, d->n, y);
    else {
        some(row, d->lane_at, NULL, 1, d->run_from, y);
        memcpy(y + d->run_from, row + d->lane_at[d->run_from], sizeof *y * (size_t)(d->run_to - d->run_from));
        some(row, d->lane_at + d->run_to, NULL, 1, d->n - d->run_to, y + d->run_to);
    }
}
static double number_at(const hone_step *s, void *const *base, int tensor, hone_dtype type) {
    const void *at = tensor < 0 ? NULL : hone_ref_at(s->ref[tensor], base);
    return !at                      ? 0
           : type == HONE_DTYPE_U8  ? *(const uint8_t *)at
           : type == HONE_DTYPE_I8  ? *(const int8_t *)at
           : type == HONE_DTYPE_U16 ? *(const uint16_t *)at
           : type == HONE_DTYPE_I16 ? *(const int16_t *)at
                                    : (double)*(const float *)at;
}
/* As the kernels blend, of values that lie apart. */
static void blend_apart(const void *const *x, const float *w, int64_t taps, int64_t n, int64_t apart,
                        hone_dtype type, float *y) {
    for (int64_t t = 0; t < taps; t++) {
#define ADD(of) \
    for (int64_t j = 0; j < n; j++) y[j] = (t ? y[j] : -0.0f) + w[t] * (float)((const of *)x[t])[j * apart]
        switch (type) {
        case HONE_DTYPE_U8: ADD(uint8_t); break;
        case HONE_DTYPE_I8: ADD(int8_t); break;
        case HONE_DTYPE_U16: ADD(uint16_t); break;
        case HONE_DTYPE_I16: ADD(int16_t); break;
        default: ADD(float);
        }
#undef ADD
    }
}
/* Of integers. */
hone_status hone_resample_tile_whole(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const resample *d = s->data;
    const int64_t size = (int64_t)hone_dtypes[d->x_type].bytes,
                  out_size = (int64_t)hone_dtypes[d->y_type].bytes;
    const char *x = (const char *)hone_ref_at(s->ref[d->x], base) + (d->base.c + d->lo) * size;
    const void *list[MAX_TAPS];
    char *y = hone_ref_at(s->ref[d->out], base);
    const float ratio = d->xs < 0 ? 1
                                  : (float)number_at(s, base, d->xs, HONE_DTYPE_F32) /
                                        (float)number_at(s, base, d->ys, HONE_DTYPE_F32);
    const hone_settle_row row = {ratio, -(float)number_at(s, base, d->xz, d->x_type) * ratio,
                                 (float)number_at(s, base, d->yz, d->y_type),
                                 (float)hone_dtypes[d->y_type].lowest, (float)hone_dtypes[d->y_type].highest};
    const int64_t from = number * d->grain, to = d->rows - from < d->grain ? d->rows : from + d->grain,
                  n = d->spread ? d->run * d->n : d->n;
    float weight[MAX_TAPS], *line = scratch, *made = d->lanes || d->spread ? line + d->reach : line;
    int64_t index[HONE_MAX_SLOTS], rest = from;
    for (int k = d->n_outer - 1; k >= 0; k--) index[k] = rest % d->extent[k], rest /= d->extent[k];
    for (int64_t r = from; r < to; r++) {
        int64_t position[MAX_AXES] = {0}, at = 0, out = 0, many = 1;
        for (int k = 0; k < d->n_outer; k++) {
            at += d->base.k[k] * index[k], out += d->out_step[k] * index[k];
            for (int q = 0; q < d->n_axis; q++) position[q] += d->by[q][k] * index[k];
        }
        list[0] = x + at * size, weight[0] = 1;
        for (int q = 0; q < d->n_axis; q++) {
            const axis *a = d->axis + q;
            for (int64_t t = a->taps - 1; t >= 0; t--)
                for (int64_t k = 0; k < many; k++)
                    list[t * many + k] = (const char *)list[k] + a->at[position[q] * a->taps + t] * size,
                                    weight[t * many + k] = weight[k] * a->weight[position[q] * a->taps + t];
            many *= a->taps;
        }
        if (d->apart > 1) blend_apart(list, weight, many, d->reach, d->apart, d->x_type, line);
        else d->blend(list, weight, many, d->lanes || d->spread ? d->reach : n, line);
        if (d->spread) d->kernel->spread(line, d->lane_at, d->lane_weight, d->lane_taps, d->run, d->n, made);
        else if (d->lanes) pick(d, line, made);
        d->settle(&row, made, n, y + out * out_size);
        for (int k = d->n_outer - 1; k >= 0 && ++index[k] == d->extent[k]; k--) index[k] = 0;
    }
    return HONE_OK;
}
hone_status hone_resample_tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const resample *d = s->data;
    const float *x = (const float *)(const void *)hone_ref_at(s->ref[d->x], base) + d->base.c,
                *list[MAX_TAPS];
    float *y = (float *)(void *)hone_ref_at(s->ref[d->out], base), weight[MAX_TAPS];
    const int64_t from = number * d->grain, to = d->rows - from < d->grain ? d->rows : from + d->grain;
    int64_t index[HONE_MAX_SLOTS], rest = from;
    for (int k = d->n_outer - 1; k >= 0; k--) index[k] = rest % d->extent[k], rest /= d->extent[k];
    const float *first = NULL; /* what the row before this one was made of, */
    int64_t before = -1;       /* and where it is; -1: there is none */
    for (int64_t r = from; r < to; r++) {
        int64_t position[MAX_AXES] = {0}, at = 0, out = 0;
        for (int k = 0; k < d->n_outer; k++) {
            at += d->base.k[k] * index[k], out += d->out_step[k] * index[k];
            for (int q = 0; q < d->n_axis; q++) position[q] += d->by[q][k] * index[k];
        }
        const int64_t many = list_rows(d, x + at + d->lo, position, list, weight);
        if (!d->lanes) d->kernel->blend(list, weight, many, d->n, y + out);
        else if (many == 1 && weight[0] == 1 && d->apart == 1) {
            if (before >= 0 && list[0] == first) memcpy(y + out, y + before, sizeof *y * (size_t)d->n);
            else pick(d, list[0], y + out);
            first = list[0], before = out;
        } else {
            const void *apart[MAX_TAPS];
            /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): list_rows wrote so many */
            for (int64_t t = 0; t < many && d->apart > 1; t++) apart[t] = list[t];
            if (d->apart > 1) blend_apart(apart, weight, many, d->reach, d->apart, HONE_DTYPE_F32, scratch);
            else d->kernel->blend(list, weight, many, d->reach, scratch);
            pick(d, scratch, y + out);
        }
        for (int k = d->n_outer - 1; k >= 0 && ++index[k] == d->extent[k]; k--) index[k] = 0;
    }
    return HONE_OK;
}
/* Of any type, moved. */
hone_status hone_resample_tile_moved(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const resample *d = s->data;
    const size_t size = hone_dtypes[d->x_type].bytes;
    const char *x = (const char *)hone_ref_at(s->ref[d->x], base) + (d->base.c + d->lo) * (int64_t)size,
               *first = NULL;
    char *y = hone_ref_at(s->ref[d->out], base);
    int64_t before = -1; /* the row before this one; -1: there is none */
    const int64_t from = number * d->grain, to = d->rows - from < d->grain ? d->rows : from + d->grain;
    int64_t index[HONE_MAX_SLOTS], rest = from;
    (void)scratch;
    for (int k = d->n_outer - 1; k >= 0; k--) index[k] = rest % d->extent[k], rest /= d->extent[k];
    for (int64_t r = from; r < to; r++) {
        int64_t at = 0, out = 0;
        for (int k = 0; k < d->n_outer; k++) at += d->base.k[k] * index[k], out += d->out_step[k] * index[k];
        for (int q = 0; q < d->n_axis; q++) {
            int64_t position = 0;
            for (int k = 0; k < d->n_outer; k++) position += d->by[q][k] * index[k];
            at += d->axis[q].at[position];
        }
        const char *row = x + at * (int64_t)size;
        char *made = y + out * (int64_t)size;
        if (!d->lanes) memcpy(made, row, (size_t)d->n * size);
        else if (before >= 0 && row == first) memcpy(made, y + before * (int64_t)size, (size_t)d->n * size);
        else switch (size) {
#define PICK(of)                       \
    for (int64_t j = 0; j < d->n; j++) \
    ((of *)(void *)made)[j] = ((const of *)(const void *)row)[d->lane_at[j] * d->apart]
            case 1: PICK(uint8_t); break;
            case 2: PICK(uint16_t); break;
            case 4: PICK(uint32_t); break;
            default: PICK(uint64_t);
#undef PICK
            }
        first = row, before = out;
        for (int k = d->n_outer - 1; k >= 0 && ++index[k] == d->extent[k]; k--) index[k] = 0;
    }
    return HONE_OK;
}