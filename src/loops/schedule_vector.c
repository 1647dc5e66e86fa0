/* SPDX-License-Identifier: Apache-2.0
   schedule_vector: which places of a stage a thread may have side by side, with which loads as one access
   (schedule_vector.h). */
#include "loops/schedule_vector.h"

#include "loops/tile_know.h"

enum { BYTES = 16 }; /* of an access, at most */

/* Elements that a step along each index goes on by, of a load (or of the target: NULL) that is surely inside;
   false: it is another kind. */
static bool steps_of(const hone_knows *w, const hone_x *e, int tensor, const int64_t *stride, int64_t *far) {
    for (int q = 0; q < HONE_SLOTS; q++) far[q] = 0;
    for (int k = 0; k < hone_know_subs(w, e); k++) {
        const int64_t by = e && e->flat ? 1 : stride[tensor * HONE_MAX_RANK + k];
        if (!e && w->stage->identity) { /* subscript k is index k */
            far[k] += by;
            continue;
        }
        const int32_t x = hone_know_sub(w, e, k);
        const hone_know *sub = hone_know_of(w, x);
        if (sub->kind == HONE_KNOW_VALUE || !hone_know_inside(sub, hone_know_dim(w, e, tensor, k)))
            return false;
        for (int q = 0; sub->kind == HONE_KNOW_AFFINE && q < w->n_slot; q++) far[q] += sub->affine[q] * by;
    }
    return true;
}
static bool depends(const hone_knows *w, int32_t x, int slot, int depth) {
    const hone_know *known = hone_know_of(w, x);
    const hone_x *e = w->in->x + w->x[x].is;
    if (known->kind == HONE_KNOW_CONST) return false;
    if (known->kind == HONE_KNOW_AFFINE) return known->affine[slot] != 0;
    if (!depth || e->kind == HONE_X_INDEX) return true;
    if (e->kind == HONE_X_PARAM) return false;
    if (e->kind == HONE_X_LOAD) {
        for (int k = 0; k < hone_know_subs(w, e); k++)
            if (depends(w, hone_know_sub(w, e, k), slot, depth - 1)) return true;
        return e->c >= 0 && depends(w, e->c, slot, depth - 1);
    }
    const int32_t arg[3] = {e->a, e->b, e->c};
    const int n = e->kind == HONE_X_SELECT ? 3 : e->kind == HONE_X_FN ? hone_fns[e->fn].arity : 1;
    for (int k = 0; k < n; k++)
        if (depends(w, arg[k], slot, depth - 1)) return true;
    return false;
}
/* Of rows that are picked, as Gather does: places along the fastest index follow on, or are one. Read one by
   one, they are of the line that the first one brought, and which row it is, is asked once. */
static bool of_a_row(const hone_knows *w, const hone_x *e, const int64_t *stride, int fast) {
    enum { DEPTH = 8 };
    int64_t by = 0;
    for (int k = 0; k < hone_know_subs(w, e); k++) {
        const int32_t x = hone_know_sub(w, e, k);
        const hone_know *sub = hone_know_of(w, x);
        if (sub->kind == HONE_KNOW_AFFINE)
            by += sub->affine[fast] * (e->flat ? 1 : stride[e->a * HONE_MAX_RANK + k]);
        else if (depends(w, x, fast, DEPTH)) return false;
    }
    return by == 0 || by == 1;
}
static bool even(const hone_knows *w, const int64_t *far, int fastest,
                 int n) { /* accesses begin where one may */
    for (int q = 0; q < w->n_slot; q++)
        if (q != fastest && w->extent[q] > 1 && far[q] % n) return false;
    return true;
}
bool hone_vector_find(hone_arena *a, const hone_instance *in, int stage, int n_stage, const hone_param *p,
                      const int64_t *stride, int fastest, int vector, hone_vectors *out) {
    const hone_stage *s = in->stage + stage, *last = s + n_stage - 1;
    int64_t far[HONE_SLOTS];
    uint64_t made = 0;
    int bytes = (int)hone_dtypes[in->tensor[last->tensor].dtype].bytes;
    *out = (hone_vectors){.even = true, .across = true};
    if (fastest < 0 || s->over >= 0) return false;
    for (int k = 0; k < n_stage; k++) {
        if (s[k].reduce || s[k].how || s[k].skip || s[k].tensor > 62) return false;
        made |= (uint64_t)1 << s[k].tensor;
    }
    for (int k = 0; k < n_stage; k++) {
        hone_knows w;
        int fast = 0;
        while (fast < s[k].n_index && in->list[s[k].index0 + fast] != in->list[s->index0 + fastest]) fast++;
        if (fast == s[k].n_index || hone_know_stage(a, in, stage + k, p, &w)) return false;
        if (k == n_stage - 1) {
            if (!steps_of(&w, NULL, last->tensor, stride, far) || far[fast] != 1) return false;
            out->even &= even(&w, far, fast, vector ? vector : 8);
        }
        for (int x = 0; x < in->n_x; x++) {
            const hone_x *e = in->x + x;
            bool known = false;
            if (!w.x[x].live || e->kind != HONE_X_LOAD || w.x[x].is != x ||
                made >> (e->a < 63 ? e->a : 63) & 1)
                continue;
            for (int q = 0; q < out->n; q++) known |= out->load[q] == x;
            if (known) continue;
            const int size = (int)hone_dtypes[in->tensor[e->a].dtype].bytes;
            const bool plain = !w.x[x].fails && steps_of(&w, e, e->a, stride, far);
            if (plain && far[fast] == 1 && out->n < HONE_VECTORED) {
                out->load[out->n++] = x;
                if (size > bytes) bytes = size;
                out->even &= even(&w, far, fast, vector ? vector : 8);
            } else out->across &= plain ? far[fast] == 0 : of_a_row(&w, e, stride, fast);
        }
    }
    out->most = bytes >= BYTES ? 1 : BYTES / bytes < 8 ? BYTES / bytes : 8;
    return vector <= out->most;
}
