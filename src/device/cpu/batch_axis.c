/* SPDX-License-Identifier: Apache-2.0
   batch_axis: windows over several images as the steps of one, so many times. Steps are made of numbers
   alone; when only the number of images is another, all the rest was understood before, and binding a new
   batch costs what binding a known one does. */
#include <string.h>

#include "device/cpu/cpu.h"

enum { LEAST_PIXELS = 32 }; /* fewer are better done as rows of one product over all images */
/* Tiles of one image for threads to share: as few as keep nine tenths of them busy until the last is
   done. */
static int threads_for_one(int threads, int64_t images) {
    int best = 1;
    double most = 0;
    for (int c = 1; c <= threads && most < 0.9; c++) {
        const double tiles = (double)images * c;
        const int64_t turns = (images * c + threads - 1) / threads;
        const double busy = tiles / (double)(turns * threads);
        if (busy > most) most = busy, best = c;
    }
    return best;
}
bool hone_batch_axis_one(const hone_cpu_call *c, hone_param *param, hone_cpu_call *one, int64_t *n) {
    const hone_batch_axis *p = c->batch_axis;
    if (!p || c->how.interpret) return false;
    const int64_t many = c->param[p->param[0]].i;
    int64_t pixels = 1;
    for (int k = 0; k < p->n_pixel && pixels < LEAST_PIXELS; k++) pixels *= c->param[p->pixel[k]].i;
    if (many < 2 || many > 1 << 20 || pixels < LEAST_PIXELS) return false;
    for (int k = 1; k < p->n_param; k++)
        if (c->param[p->param[k]].i != many) return false;
    memcpy(param, c->param, sizeof *param * (size_t)c->instance->n_param);
    for (int k = 0; k < p->n_param; k++) param[p->param[k]].i = 1;
    *one = *c, *n = many;
    one->param = param, one->how.threads = threads_for_one(c->how.threads, many);
    return true;
}
typedef struct {
    hone_tile_fn *tile;
    const void *data;
    int64_t tiles;
    hone_copies copies;
    int n_ref;
} repeated;
static hone_status repeat(const hone_step *s, void *const *base, int64_t tile, void *scratch) {
    const repeated *d = s->data;
    const int64_t picture = tile / d->tiles;
    hone_ref ref[HONE_MAX_REFS];
    memcpy(ref, s->ref, sizeof *ref * (size_t)d->n_ref);
    for (int t = 0; t < d->n_ref; t++)
        ref[t].offset += (d->copies.by[t] * picture) >> (s->half_stored >> t & 1);
    hone_step one = *s;
    one.ref = ref, one.data = d->data, one.tiles = d->tiles;
    return d->tile(&one, base, tile - picture * d->tiles, scratch);
}
int64_t *hone_batch_axis_strides(hone_arena *a, const hone_cpu_call *c, int n_ref) {
    int64_t *by = HONE_NEW_N(a, int64_t, n_ref + 1);
    for (int t = 0; by && t < c->instance->n_tensor; t++) {
        const int dim = c->batch_axis->dim[t];
        if (dim >= 0) by[t] = c->stride[t][dim] * (int64_t)hone_dtypes[c->instance->tensor[t].dtype].bytes;
    }
    return by;
}
hone_status hone_batch_axis_all(hone_arena *a, const int64_t *by, int64_t n, int n_ref, hone_step *s) {
    repeated *d = HONE_NEW(a, repeated);
    if (!d) return hone_steps_no_memory();
    *d = (repeated){s->tile, s->data, s->tiles, {n, by}, n_ref};
    s->tile = repeat, s->data = d, s->copies = &d->copies, s->tiles *= n, s->serial = s->serial && n < 4;
    return HONE_OK;
}
