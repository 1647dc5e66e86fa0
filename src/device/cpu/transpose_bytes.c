/* SPDX-License-Identifier: Apache-2.0
   transpose_bytes: see cpu.h. Transposing an image of bytes takes a small part of what a convolution takes
   that has to gather its window byte by byte. */
#include "base/round.h"
#include "device/cpu/transpose.h"

#include "kernels/gemm.h"

/* As convolutions have them: the images, groups, channels of a group, and then what is across an image. */
enum { PIXEL_DIM = 3, FEWEST_CHANNELS = 8, FEWEST_PIXELS = 16, PIXELS = 256 /* a tile */ };
/* the next further dim of what lies densely */
static bool steps(int64_t extent, int64_t stride, int64_t *n) {
    const bool so = extent == 1 || stride == *n;
    *n *= extent;
    return so;
}
bool hone_transpose_able(const hone_cpu_call *c, int tensor, hone_transposed *t) {
    const hone_tensor *w = c->instance->tensor + tensor;
    if (w->rank <= PIXEL_DIM || w->role == HONE_ROLE_TEMP ||
        (w->dtype != HONE_DTYPE_U8 && w->dtype != HONE_DTYPE_I8))
        return false;
    int64_t n = 1;
    bool dense = true;
    *t = (hone_transposed){.tensor = tensor, .batches = c->param[w->dim[0]].i};
    for (int k = w->rank - 1; k >= 0; k--) {
        if (k == PIXEL_DIM - 1) t->pixels = n;
        if (k == 0) t->channels = n / (t->pixels ? t->pixels : 1);
        dense &= steps(c->param[w->dim[k]].i, c->stride[tensor][k], &n);
    }
    return dense && t->channels >= FEWEST_CHANNELS && t->pixels >= FEWEST_PIXELS;
}
void hone_transpose_strides(const hone_cpu_call *c, const hone_transposed *t, int64_t *stride) {
    const hone_tensor *w = c->instance->tensor + t->tensor;
    int64_t n = 1;
    for (int k = PIXEL_DIM - 1; k > 0; k--) stride[k] = n, n *= c->param[w->dim[k]].i;
    for (int k = w->rank - 1; k >= PIXEL_DIM; k--) stride[k] = n, n *= c->param[w->dim[k]].i;
    stride[0] = n;
}
typedef struct {
    hone_transposed of;
    int from, to;
    bool back;
} transposing;
static hone_status tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const transposing *d = s->data;
    const hone_transposed *t = &d->of;
    const int64_t tiles = hone_ceil_div(t->pixels, PIXELS), all = number / tiles * t->channels * t->pixels,
                  p0 = number % tiles * PIXELS;
    const int64_t n = t->pixels - p0 < PIXELS ? t->pixels - p0 : PIXELS;
    const uint8_t *from = (const uint8_t *)hone_ref_at(s->ref[d->from], base) + all;
    uint8_t *to = (uint8_t *)hone_ref_at(s->ref[d->to], base) + all;
    (void)scratch;
    if (d->back)
        hone_transpose_bytes(n, t->channels, from + p0 * t->channels, t->channels, to + p0, t->pixels);
    else hone_transpose_bytes(t->channels, n, from + p0, t->pixels, to + p0 * t->channels, t->channels);
    return HONE_OK;
}
hone_status hone_transpose_step(hone_template_builder *m, const hone_transposed *t, int buffer, bool back) {
    transposing *d = HONE_NEW(m->arena, transposing);
    if (!d) return hone_steps_no_memory();
    const int64_t bytes = t->batches * t->channels * t->pixels;
    *d = (transposing){*t, back ? buffer : t->tensor, back ? t->tensor : buffer, back};
    const hone_step step = {.tactic = "transpose",
                            .serial = bytes < 65536,
                            .tiles = t->batches * hone_ceil_div(t->pixels, PIXELS),
                            .tile = tile,
                            .data = d};
    return hone_cpu_add(m, (hone_step_template){.step = step,
                                                .uses = (uint64_t)1 << t->tensor | (uint64_t)1 << buffer,
                                                .buffer = back ? -1 : buffer,
                                                .bytes = back ? 0 : bytes});
}
