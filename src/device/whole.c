/* SPDX-License-Identifier: Apache-2.0
   whole: an instance as one step, whatever runs it: for devices that have no tactic, or none that applies.
   Temporaries lie in blocks of the device's, row-major. */
#include <string.h>

#include "device/device.h"

static hone_status lay(hone_steps *s, const hone_device_call *c, int t) {
    const hone_tensor *w = c->instance->tensor + t;
    int64_t n = 1;
    bool fits = true;
    for (int k = w->rank - 1; k >= 0; k--) {
        c->stride[t][k] = n;
        fits &= !__builtin_mul_overflow(n, c->param[w->dim[k]].i, &n);
    }
    fits &= !__builtin_mul_overflow(n, (int64_t)hone_dtypes[w->dtype].bytes, &n);
    const int block = fits ? hone_steps_block(s, n) : -1;
    if (block < 0)
        return hone_fail(HONE_NO_MEMORY, "a temporary of %s is too large", c->instance->program->name);
    c->ref[t] = hone_block_ref(block, 0);
    return HONE_OK;
}
hone_status hone_steps_whole(hone_steps *s, const hone_device_call *c, hone_step step) {
    return hone_steps_whole_with(s, c, step, NULL, NULL, 0, 0);
}
hone_status hone_steps_whole_with(hone_steps *s, const hone_device_call *c, hone_step step,
                                  const hone_ref *more, const int64_t *bytes, int n_more, uint64_t unread) {
    const hone_instance *in = c->instance;
    const int n = in->n_tensor;
    if (n + n_more > HONE_MOST_WHOLE)
        return hone_fail(HONE_NOT_SUPPORTED, "%s has more than %d tensors in one program", in->program->name,
                         HONE_MOST_WHOLE);
    for (int t = 0; t < n; t++)
        if (in->tensor[t].role == HONE_ROLE_TEMP) HONE_TRY(lay(s, c, t));
    hone_ref *ref = HONE_NEW_N(s->arena, hone_ref, n + n_more + 1);
    hone_box *box = HONE_NEW_N(s->arena, hone_box, n + n_more + 1);
    hone_access *access = HONE_NEW(s->arena, hone_access);
    if (!ref || !box || !access) return hone_steps_no_memory();
    *access = (hone_access){.box = box, .n_ref = n + n_more};
    uint64_t uses = 0; /* an operand may be there for its type alone */
    for (int k = 0; k < in->n_stage; k++) uses |= in->stage[k].uses;
    uses &= ~unread;
    for (int t = 0; t < n; t++) {
        const hone_tensor *w = in->tensor + t;
        int64_t extent[HONE_MAX_RANK];
        for (int k = 0; k < w->rank; k++) extent[k] = c->param[w->dim[k]].i;
        if (!hone_box_make(s->arena, extent, c->stride[t], w->rank, (int64_t)hone_dtypes[w->dtype].bytes,
                           box + t))
            return hone_steps_no_memory();
        ref[t] = unread >> t & 1 ? (hone_ref){HONE_BASE_NONE, -1, 0} : c->ref[t];
        *(w->role == HONE_ROLE_IN ? &access->reads : &access->writes) |= uses & (uint64_t)1 << t;
    }
    for (int k = 0; k < n_more; k++) {
        if (!hone_box_make(s->arena, bytes + k, (const int64_t[]){1}, 1, 1, box + n + k))
            return hone_steps_no_memory();
        ref[n + k] = more[k], access->reads |= (uint64_t)1 << (n + k);
    }
    step.node = c->node, step.of = c->of, step.access = access, step.tiles = 1;
    return hone_steps_add(s, step, ref, n + n_more);
}
