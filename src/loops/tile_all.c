/* SPDX-License-Identifier: Apache-2.0
   tile_all: a whole instance by tile code on the calling thread, stage by stage: for computing constants,
   where a plan would be too much. */
#include "loops/tile.h"

hone_status hone_tile_all(const hone_instance *in, const hone_param *p, const hone_tensor_view *tensor) {
    hone_arena *a = hone_arena_create();
    hone_tilecode **code = a ? HONE_NEW_N(a, hone_tilecode *, in->n_stage + 1) : NULL;
    void **base = a ? HONE_NEW_N(a, void *, in->n_tensor + 1) : NULL;
    size_t scratch_bytes = 64;
    hone_status s = code && base ? HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory to compute a constant");
    for (int t = 0; t < in->n_tensor && !s; t++) base[t] = tensor[t].at;
    for (int k = 0; k < in->n_stage && !s; k++) {
        s = hone_tilecode_make(a, in, k, p, tensor, -1, &code[k]);
        if (!s && hone_tilecode_scratch(code[k]) > scratch_bytes)
            scratch_bytes = hone_tilecode_scratch(code[k]);
    }
    if (s == HONE_NOT_SUPPORTED) { /* by the definition, then */
        hone_arena_destroy(a);
        return hone_interpret(in, p, tensor);
    }
    void *scratch = s ? NULL : hone_alloc_raw(scratch_bytes);
    if (!s && !scratch) s = hone_fail(HONE_NO_MEMORY, "no memory to compute a constant");
    for (int k = 0; k < in->n_stage && !s;) {
        const hone_stage *st = in->stage + k;
        int end = k + 1;
        while (st->over >= 0 && end < in->n_stage && in->stage[end].over == st->over) end++;
        int64_t turns = st->over >= 0 ? p[in->index[st->over_index].extent].i : 1;
        for (int64_t t = 0; t < turns && !s; t++)
            for (int q = k; q < end && !s; q++)
                if (hone_tilecode_elements(code[q]) > 0)
                    s = hone_tilecode_run(code[q], base, 0, hone_tilecode_elements(code[q]), t, NULL,
                                          scratch);
        k = end;
    }
    hone_free(scratch);
    hone_arena_destroy(a);
    return s;
}
