/* SPDX-License-Identifier: Apache-2.0
   own_columns: sums and averages of columns, as of an image's channels that lie last, by the kernel of
   src/kernels/cuda/columns.cu. Sums are in f32, whatever is stored. */
#include "base/round.h"
#include "device/cuda/own.h"
#include "loops/match_columns.h"

struct hone_own_columns {
    hone_match_columns m;
};
enum { THREADS = 256, MOST_LANES = 32, LEAST_LANES = 8, MOST_SPLITS = 64, LEAST_ROWS = 8 /* of a thread */ };

hone_status hone_own_columns_match(hone_arena *arena, const hone_device_call *c, int stage,
                                   hone_own_columns **out) {
    hone_match_columns m;
    *out = NULL;
    if (!hone_match_columns_of(&c->sized, stage, &m)) return HONE_OK;
    if (m.rows > 1 << 30 || m.columns > 1 << 30 || m.matrices > 65535 || m.rows * m.columns < 256)
        return HONE_OK;
    hone_own_columns *p = HONE_NEW(arena, hone_own_columns);
    if (!p) return hone_steps_no_memory();
    p->m = m;
    *out = p;
    return HONE_OK;
}
hone_status hone_own_columns_take(hone_arena *arena, const hone_cuda_facts *gpu, const hone_own_columns *p,
                                  const hone_instance *in, const hone_ref *ref, hone_taken *out) {
    const hone_match_columns *m = &p->m;
    const hone_dtype x = in->tensor[m->x].dtype, y = in->tensor[m->y].dtype;
    const hone_own_place none = {-1, false, 0};
    if (x != HONE_DTYPE_F16 && x != HONE_DTYPE_BF16) return HONE_OK;
    hone_own_launch own = {.kind = HONE_OWN_COLUMNS,
                           .a = {m->x, false, m->at_x * hone_dtypes[x].bytes},
                           .c = {m->y, false, 0},
                           .b = none,
                           .bias = none,
                           .residual = none,
                           .v = none,
                           .workspace = none};
    int width = 8, lanes = MOST_LANES;
    const int64_t first = ref[m->x].offset + own.a.at;
    while (m->columns % width || m->row_x % width || m->matrix_x % width ||
           first % (width * hone_dtypes[x].bytes))
        width /= 2;
    const int64_t pieces = m->columns / width;
    /* lanes read lines of memory together; fewer of them are more blocks */
    while (lanes > 1 && (lanes / 2 >= pieces ||
                         (lanes > LEAST_LANES && m->matrices * hone_ceil_div(pieces, lanes) < gpu->sms)))
        lanes /= 2;
    const int64_t blocks = hone_ceil_div(pieces, lanes), threads = THREADS / lanes;
    int64_t splits = (2 * gpu->sms + blocks * m->matrices - 1) / (blocks * m->matrices);
    if (splits > m->rows / (threads * LEAST_ROWS)) splits = m->rows / (threads * LEAST_ROWS);
    if (splits > MOST_SPLITS) splits = MOST_SPLITS;
    if (splits < 1 || blocks * m->matrices * 4 > HONE_PRINTED_COUNTERS) splits = 1;
    own.columns = (hone_cuda_columns){.matrix_x = m->matrix_x,
                                      .matrix_y = m->matrix_y,
                                      .pitch_x = m->row_x,
                                      .rows = (int)m->rows,
                                      .columns = (int)m->columns,
                                      .blocks = (int)blocks,
                                      .splits = (int)splits,
                                      .scale = m->scale};
    if (splits > 1) {
        own.workspace = (hone_own_place){out->first_scratch + out->n_scratch, true, 0};
        out->scratch_bytes[out->n_scratch++] = m->matrices * blocks * splits * lanes * width * 4;
    }
    own.aligned = width * (int)hone_dtypes[x].bytes;
    while ((ref[m->y].offset + own.c.at) % own.aligned) own.aligned /= 2;
    own.shape = (hone_cuda_launch_shape){.grid = {(int)blocks, (int)splits, (int)m->matrices},
                                         .threads = THREADS,
                                         .shared_bytes = THREADS * width * 4 + 16};
    const hone_cuda_fill fill[] = {{"IN_TYPE", (int)hone_own_type(x), NULL},
                                   {"OUT_TYPE", (int)hone_own_type(y), NULL},
                                   {"WIDTH", width, NULL},
                                   {"LANES", lanes, NULL}};
    hone_text text = {0};
    HONE_TRY(hone_cuda_print(&text, "columns", fill, 4));
    HONE_TRY(hone_own_finish(arena, &text, "hone_columns", &own, out->launch + out->n_launch++));
    out->n_stage = m->stages;
    return HONE_OK;
}
