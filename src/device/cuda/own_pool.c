/* SPDX-License-Identifier: Apache-2.0
   own_pool: the largest value of a window, or its average, by the kernel of src/kernels/cuda/window.cu, where
   channels lie side by side, in halves or bytes. A part of something wider (a Concat's) is read and
   written in place. */
#include "device/cuda/own.h"
#include "loops/match_pool.h"

struct hone_own_pool {
    hone_match_pool m;
};
static const hone_cuda_window_kind kind_of[] = {[HONE_POOL_LARGEST] = HONE_CUDA_LARGEST,
                                                [HONE_POOL_AVERAGE_INSIDE] = HONE_CUDA_AVERAGE,
                                                [HONE_POOL_AVERAGE_ALL] = HONE_CUDA_AVERAGE_ALL};

/* Pixels of `channels` values follow each other at one distance, lines and images without gaps. */
static bool channels_last(int64_t channels, int64_t between, int64_t pixel, int64_t line, int64_t image,
                          int64_t wide, int64_t high, int64_t images) {
    return (channels == 1 || between == 1) && pixel >= channels && pixel <= INT32_MAX &&
           (high == 1 || line == pixel * wide) && (images == 1 || image == pixel * wide * high);
}
static bool suits(const hone_match_pool *m) {
    const hone_pool_side *y = m->side + HONE_POOL_Y, *x = m->side + HONE_POOL_X;
    if (y->stride != x->stride || y->dilation != x->dilation || y->kernel * x->kernel > 49 ||
        m->images > 65535 || y->size > 1 << 20 || x->size > 1 << 20 || y->out > 1 << 20 || x->out > 1 << 20 ||
        m->channels > 1 << 20 || y->pad >= y->kernel * y->dilation || x->pad >= x->kernel * x->dilation ||
        x->size < 2 || x->out < 2)
        return false;
    return channels_last(m->channels, m->channel_x, x->step_x, y->step_x, m->image_x, x->size, y->size,
                         m->images) &&
           channels_last(m->channels, m->channel_y, x->step_y, y->step_y, m->image_y, x->out, y->out,
                         m->images);
}
hone_status hone_own_pool_match(hone_arena *arena, const hone_device_call *c, int stage,
                                hone_own_pool **out) {
    hone_match_pool m;
    *out = NULL;
    if (!hone_match_pool_of(&c->sized, stage, &m) || !suits(&m)) return HONE_OK;
    /* of bytes the largest is exact in every precision; of floats it is not looked for without one */
    const bool bytes = c->instance->tensor[m.y].dtype != HONE_DTYPE_F32;
    if (!bytes && c->how.precision == HONE_DTYPE_NONE) return HONE_OK;
    hone_own_pool *p = HONE_NEW(arena, hone_own_pool);
    if (!p) return hone_steps_no_memory();
    p->m = m;
    *out = p;
    return HONE_OK;
}
hone_status hone_own_pool_take(hone_arena *arena, const hone_cuda_facts *gpu, const hone_own_pool *p,
                               const hone_instance *in, const hone_ref *ref, hone_taken *out) {
    const hone_match_pool *m = &p->m;
    const hone_pool_side *v = m->side + HONE_POOL_Y, *h = m->side + HONE_POOL_X;
    const hone_dtype type = in->tensor[m->y].dtype;
    const hone_own_place none = {-1, false, 0};
    if (in->tensor[m->x].dtype != type) return HONE_OK;
    hone_own_launch own = {.kind = HONE_OWN_WINDOW,
                           .a = {m->x, false, 0},
                           .c = {m->y, false, 0},
                           .b = none,
                           .bias = none,
                           .residual = none,
                           .v = none,
                           .whole = none,
                           .workspace = none};
    own.windowed = (hone_cuda_windowed){.kind = kind_of[m->kind],
                                        .type = hone_own_type(type),
                                        .epilogue = "v",
                                        .p = {.x = (hone_cuda_address)ref[m->x].offset,
                                              .y = (hone_cuda_address)ref[m->y].offset,
                                              .batch = (int)m->images,
                                              .height = (int)v->size,
                                              .width = (int)h->size,
                                              .channels = (int)m->channels,
                                              .out_height = (int)v->out,
                                              .out_width = (int)h->out,
                                              .kernel_y = (int)v->kernel,
                                              .kernel_x = (int)h->kernel,
                                              .stride_y = (int)v->stride,
                                              .stride_x = (int)h->stride,
                                              .pad_y = (int)v->pad,
                                              .pad_x = (int)h->pad,
                                              .dilation_y = (int)v->dilation,
                                              .dilation_x = (int)h->dilation,
                                              .pitch_x = (int)h->step_x,
                                              .pitch_y = (int)h->step_y}};
    const hone_cuda_window_way way = hone_cuda_window_best(&own.windowed, gpu);
    own.aligned = way.width * (int)hone_dtypes[type].bytes;
    own.shape = hone_cuda_window_launch(&own.windowed, &way);
    hone_text text = {0};
    HONE_TRY(hone_cuda_window_print(&text, &own.windowed, &way));
    HONE_TRY(hone_own_finish(arena, &text, "hone_window", &own, out->launch + out->n_launch++));
    out->n_stage = m->stages;
    return HONE_OK;
}
