/* SPDX-License-Identifier: Apache-2.0
   own_rows: layer norm, RMS norm, softmax and its logarithm by the kernel of src/kernels/cuda/rows.cu, where
   rows follow each other at one distance. Statistics are in f32, whatever is stored. */
#include "device/cuda/own.h"
#include "loops/match_rows.h"

struct hone_own_rows {
    hone_match_norm m;
};
static const hone_cuda_row_kind kind_of[] = {[HONE_NORM_CENTRED] = HONE_CUDA_LAYER_NORM,
                                             [HONE_NORM_SQUARES] = HONE_CUDA_RMS_NORM,
                                             [HONE_NORM_SOFTMAX] = HONE_CUDA_SOFTMAX,
                                             [HONE_NORM_LOG_SOFTMAX] = HONE_CUDA_LOG_SOFTMAX};

hone_status hone_own_rows_match(hone_arena *arena, const hone_device_call *c, int stage,
                                hone_own_rows **out) {
    const hone_instance *in = c->instance;
    hone_match_norm m;
    *out = NULL;
    if (!hone_match_norm_of(&c->sized, stage, &m) || m.lead > 1 || m.n > INT32_MAX) return HONE_OK;
    if (in->tensor[m.x].dtype != HONE_DTYPE_F32 || in->tensor[m.y].dtype != HONE_DTYPE_F32) return HONE_OK;
    hone_own_rows *r = HONE_NEW(arena, hone_own_rows);
    if (!r) return hone_steps_no_memory();
    r->m = m;
    *out = r;
    return HONE_OK;
}
hone_status hone_own_rows_take(hone_arena *arena, const hone_cuda_facts *gpu, const hone_own_rows *r,
                               const hone_instance *in, const hone_ref *ref, hone_taken *out) {
    const hone_match_norm *m = &r->m;
    const hone_dtype x = in->tensor[m->x].dtype, y = in->tensor[m->y].dtype;
    const hone_own_place none = {-1, false, 0};
    hone_own_launch own = {
        .kind = HONE_OWN_ROWS, .b = none, .bias = none, .residual = none, .v = none, .workspace = none};
    for (int k = 0; k < m->n_p; k++) /* they are f32 as long as somebody may read them elsewhere */
        if (in->tensor[m->p[k]].dtype != HONE_DTYPE_F32) return HONE_OK;
    own.a = (hone_own_place){m->x, false, 0}, own.c = (hone_own_place){m->y, false, 0};
    if (m->n_p > 0) own.b = (hone_own_place){m->p[0], false, 0};
    if (m->n_p > 1) own.bias = (hone_own_place){m->p[1], false, 0};
/* only where it begins in its memory: that decides which configuration fits; the address comes later */
#define STAND_IN(place) ((place).which < 0 ? 0 : (hone_cuda_address)ref[(place).which].offset)
    own.rowwise = (hone_cuda_rowwise){.kind = kind_of[m->kind],
                                      .in = hone_own_type(x),
                                      .out = hone_own_type(y),
                                      .before = "v",
                                      .after = "v",
                                      .p = {.x = STAND_IN(own.a),
                                            .y = STAND_IN(own.c),
                                            .weight = STAND_IN(own.b),
                                            .bias = STAND_IN(own.bias),
                                            .rows = m->rows,
                                            .pitch_x = m->by_x[0],
                                            .pitch_y = m->by_y[0],
                                            .columns = (int)m->n,
                                            .epsilon = m->epsilon}};
#undef STAND_IN
    const hone_cuda_rows_way way = hone_cuda_rows_best(&own.rowwise, gpu);
    own.aligned = way.width * (int)(x == HONE_DTYPE_F32 ? 4 : 2);
    if (own.aligned > way.width * (int)(y == HONE_DTYPE_F32 ? 4 : 2)) own.aligned = way.width * 2;
    own.shape = hone_cuda_rows_launch(&own.rowwise, &way);
    hone_text text = {0};
    HONE_TRY(hone_cuda_rows_print(&text, &own.rowwise, &way));
    HONE_TRY(hone_own_finish(arena, &text, "hone_rows", &own, out->launch + out->n_launch++));
    out->n_stage = m->stages;
    return HONE_OK;
}
