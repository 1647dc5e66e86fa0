/* SPDX-License-Identifier: Apache-2.0
   schedule_product: see schedule_product.h. */
#include "loops/schedule_product.h"

#include <string.h>

#include "base/round.h"

enum {
    LEAST_SIDE = 8,         /* rows, columns, depth: fewer are done as well by a thread, or lanes, a sum */
    SHARED_BYTES = 24 << 10 /* of the 32 KB that every device has for a work-group */
};
/* The match wants f32, which is what halves are when they have been read. */
static bool match(hone_arena *a, const hone_instance *in, int stage, const hone_param *p,
                  const int64_t *stride, hone_match_contraction *d) {
    hone_instance wide = *in;
    hone_strides *by = HONE_NEW_N(a, hone_strides, in->n_tensor + 1);
    hone_tensor *tensor = hone_arena_copy(a, in->tensor, sizeof *tensor * (size_t)in->n_tensor);
    if (!tensor || !by) return false;
    for (int t = 0; t < in->n_tensor; t++) {
        if (tensor[t].dtype == HONE_DTYPE_F16 || tensor[t].dtype == HONE_DTYPE_BF16)
            tensor[t].dtype = HONE_DTYPE_F32;
        memcpy(by[t], stride + t * HONE_MAX_RANK, sizeof by[t]);
    }
    wide.tensor = tensor;
    const hone_sized sized = {.instance = &wide, .param = p, .stride = by};
    return in->stage[stage].over < 0 && hone_match_contraction_of(&sized, stage, false, false, d) &&
           !d->integers && !d->shares_n;
}
static int ids_of(const hone_slots_of *w, const int *slot, int n, int32_t *id) {
    int many = 0;
    for (int k = 0; k < n; k++)
        if (w->extent[slot[k]] > 1) id[many++] = w->id[slot[k]];
    return many;
}
/* Rows, columns and depth as the match has them; K in the program's own order. Indices of length 1, which
   either operand may know, stand with the batches. */
static void name_indices(const hone_instance *in, int stage, const hone_match_contraction *d,
                         hone_product_blocks *b) {
    const hone_stage *s = in->stage + stage;
    b->n_m = ids_of(&d->slots, d->group_m, d->n_m, b->m);
    b->n_n = ids_of(&d->slots, d->group_n, d->n_n, b->n);
    b->n_k = s->n_reduce;
    for (int k = 0; k < s->n_reduce; k++) b->k[k] = in->list[s->index0 + s->n_index + k];
    b->n_batch = 0;
    for (int k = 0; k < s->n_index; k++) {
        const int32_t id = in->list[s->index0 + k];
        bool other = true;
        for (int q = 0; q < b->n_m; q++) other &= b->m[q] != id;
        for (int q = 0; q < b->n_n; q++) other &= b->n[q] != id;
        if (other) b->batch[b->n_batch++] = id;
    }
    b->load_a = d->load_a, b->load_b = d->load_b;
}
/* Elements that neighbours in K's last index are apart in an operand: 1, where threads should walk K. */
static bool is_deep(const hone_match_contraction *d, const hone_affine_load *l,
                    const hone_product_blocks *b) {
    for (int k = d->slots.n - 1; k >= d->slots.n_domain; k--)
        if (d->slots.id[k] == b->k[b->n_k - 1]) return l->at.k[k] == 1 && d->slots.extent[k] >= b->depth;
    return false;
}
static int64_t groups_of(const hone_match_contraction *d, const hone_product_blocks *b) {
    return hone_ceil_div(d->m, b->rows) * hone_ceil_div(d->n, b->columns) * d->batch;
}
bool hone_product_choose(hone_arena *a, const hone_instance *in, int stage, const hone_param *p,
                         const int64_t *stride, hone_blocks_for device, bool wished, int max_threads,
                         int units, hone_product_blocks *out) {
    static const struct {
        int rows, columns, depth, thread_rows, thread_columns;
        bool beside;
    } gpu[] = {{64, 64, 16, 4, 4, false}, {32, 32, 16, 4, 2, false}, {16, 16, 16, 2, 2, false}},
      cpu[] = {{64, 64, 32, 8, 16, true}, {32, 32, 32, 4, 16, true}, {16, 16, 32, 4, 16, true}};
    hone_match_contraction d;
    if (in->x[in->stage[stage].value].type != HONE_F32 || !match(a, in, stage, p, stride, &d)) return false;
    if (!wished && (device == HONE_BLOCKS_NONE || d.m < LEAST_SIDE || d.n < LEAST_SIDE || d.k < LEAST_SIDE))
        return false;
    name_indices(in, stage, &d, out);
    const bool is_cpu = device == HONE_BLOCKS_CPU;
    for (size_t k = 0; k < 3; k++) { /* the largest of which there are enough for the device */
        out->rows = is_cpu ? cpu[k].rows : gpu[k].rows;
        out->columns = is_cpu ? cpu[k].columns : gpu[k].columns;
        out->depth = is_cpu ? cpu[k].depth : gpu[k].depth, out->beside = is_cpu;
        out->thread_rows = is_cpu ? cpu[k].thread_rows : gpu[k].thread_rows;
        out->thread_columns = is_cpu ? cpu[k].thread_columns : gpu[k].thread_columns;
        if (hone_product_threads(out) > max_threads) continue;
        if (groups_of(&d, out) >= 2 * (int64_t)units && d.m > out->rows / 2 && d.n > out->columns / 2) break;
    }
    if (hone_product_threads(out) > max_threads) return false;
    out->a_deep = is_deep(&d, &d.a, out), out->b_deep = is_deep(&d, &d.b, out);
    return true;
}
const char *hone_product_illegal(const hone_instance *in, int stage, const hone_param *p,
                                 const int64_t *stride, int threads, const hone_product_blocks *b) {
    hone_arena *a = hone_arena_create();
    hone_match_contraction d;
    hone_product_blocks own = *b;
    const char *wrong = NULL;
    if (!a || !match(a, in, stage, p, stride, &d)) wrong = "it is no sum of products of floats";
    else name_indices(in, stage, &d, &own);
    hone_arena_destroy(a);
    if (wrong) return wrong;
    if (memcmp(&own, b, sizeof own)) return "its rows, columns and depth are not those of the product";
    if (b->depth < 1 || b->thread_rows < 1 || b->thread_columns < 1 || b->rows < 1 || b->columns < 1 ||
        b->rows % b->thread_rows || b->columns % b->thread_columns || hone_product_threads(b) != threads)
        return "a block is threads' blocks side by side";
    return (b->rows + b->columns + 2) * b->depth * 4 <= SHARED_BYTES
               ? NULL
               : "a block's operands do not fit in shared memory";
}
