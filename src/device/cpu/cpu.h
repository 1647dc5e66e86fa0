/* SPDX-License-Identifier: Apache-2.0
   cpu: what the CPU's tactics share. Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_CPU_H
#define HONE_DEVICE_CPU_CPU_H
#include "base/round.h"
#include "device/wisdom.h"
#include "device/device.h"
#include "loops/tile.h"

typedef hone_device_call hone_cpu_call;
typedef struct hone_contract hone_contract; /* contract.h */
hone_status hone_cpu_bind(hone_steps *, const hone_cpu_call *) HONE_CHECKED;
void hone_cpu_describe(hone_text *);
/* Rows that one step scales by column for the product that is the next one alone: that one does it, and the
   step goes. Before memory is planned. */
hone_status hone_cpu_prologue(hone_steps *) HONE_CHECKED;

/* Element k of a tensor of floats, which may be stored as bf16. */
static inline void *hone_element(const void *at, bool half, int64_t k) {
    return (char *)at + (half ? 2 * k : 4 * k);
}

enum { HONE_MAX_TENSORS = 60, HONE_MAX_REFS = 64 }; /* of a program; with the buffers of its steps */
/* A step template: the steps of an instance at given numbers, without node and refs. Made once, bound to
   places in each plan. */
typedef struct {
    hone_step step;
    /* refs it touches, a bit each; which of them it reads and writes is seen from the stages that it does
       (program.c) */
    uint64_t uses;
    int buffer;          /* number of a ref that is a new buffer from this step on, or -1 */
    int64_t bytes;       /* … of so many */
    hone_access *access; /* the step's, in the making */
} hone_step_template;
typedef struct hone_packed hone_packed;
struct hone_packed { /* a ref that is a constant operand in panels, whatever its numbers are */
    const void *of;  /* a contraction, or what `get` knows */
    bool a;
    int ref;
    /* NULL: hone_contract_packed */
    hone_status (*get)(const hone_cpu_call *, const hone_packed *, hone_ref *out);
};
typedef struct {
    hone_arena *arena; /* of the step template */
    hone_vec(hone_step_template) part;
    hone_vec(hone_packed) packed;
    int n_ref;
    hone_decision *decision; /* of the steps that are added now, or NULL */
} hone_template_builder;
hone_status hone_cpu_add(hone_template_builder *, hone_step_template) HONE_CHECKED;
/* Steps that are added from now on follow a choice for this problem: *choice is wisdom's, or NULL: estimate.
   What it comes to is to be written to m->decision->choice. */
hone_status hone_cpu_decide(hone_template_builder *, const hone_cpu_call *, const hone_problem *,
                            const hone_choice **choice) HONE_CHECKED;
hone_status hone_cpu_tilecode(hone_template_builder *, const hone_cpu_call *, int stage, int acc_tensor,
                              const hone_tilecode **out) HONE_CHECKED;

/* Whether a tensor is one number, or as many as there are bytes: of such constants a step template knows
   which they are, and may have looked at them. */
bool hone_cpu_known(const hone_cpu_call *, int tensor);
/* Where the numbers of a tensor are that is a constant of the model; NULL: it is none. */
static inline const void *hone_cpu_constant(const hone_cpu_call *c, int tensor) {
    const hone_ref r = c->ref[tensor];
    if (!c->packs || !c->constant || !c->constant[tensor] || !hone_base_is_constant(r.base)) return NULL;
    return (const char *)hone_packs_constant(c->packs, r.base) + r.offset;
}
/* The same of one that is known, as matches ask for it (hone_constant_seen). of: a call. */
const void *hone_cpu_seen(const void *of, int tensor);
/* where its panels are, packed the first time */
hone_status hone_contract_packed(const hone_cpu_call *, const hone_packed *, hone_ref *out) HONE_CHECKED;
/* batch_axis.c: the same call for one image of several, if one by one is how they are best done: then *n of
   them; else false. param: room for all of them. */
bool hone_batch_axis_one(const hone_cpu_call *, hone_param *param, hone_cpu_call *one, int64_t *n);
/* How many bytes each of the call's tensors is from image to image; 0 for those of the n_ref refs that
   are to be placed yet. NULL: no memory. */
int64_t *hone_batch_axis_strides(hone_arena *, const hone_cpu_call *, int n_ref);
hone_status hone_batch_axis_all(hone_arena *, const int64_t *by, int64_t n, int n_ref,
                                hone_step *) HONE_CHECKED; /* the step of one for all n */
/* A tactic does stages from `stage` to *end - 1 where they are of its form; else *done stays false and
   nothing was added. *end comes as the next stage; for those of a recurrence, which go together, as the one
   after them. */
typedef hone_status hone_tactic_bind(hone_template_builder *, const hone_cpu_call *, int stage, int *end,
                                     bool *done);
hone_tactic_bind hone_cpu_attention, /* scores, softmax and weighted sum */
    hone_cpu_norm,                   /* rows that are normalized */
    hone_cpu_rotary,                 /* positions as rotations */
    hone_cpu_bits,                   /* products with weights of few bits in blocks */
    hone_cpu_contract,               /* sums of products as matrix multiplications, with what follows them */
    hone_cpu_pool,                   /* the largest of a window, channels last */
    hone_cpu_row_reduction,          /* long sums of rows */
    hone_cpu_means,                  /* averages of integers, as integers */
    hone_cpu_resample,               /* sums of places that indices alone decide */
    hone_cpu_extreme,                /* the largest or least of all values */
    hone_cpu_table,                  /* a function of one byte */
    hone_cpu_quantized_elementwise,  /* element-wise between floats and 8 bits */
    hone_cpu_quantized_tree,         /* the same of operands that are broadcast, or rounded twice */
    hone_cpu_channel_affine,         /* a factor and an addend a column */
    hone_cpu_splice,                 /* rows of one tensor, then of another */
    hone_cpu_transpose,              /* floats that are only moved, rows to columns */
    hone_cpu_tile,                   /* anything, by tile code (program.c) */
    hone_cpu_cell,                   /* recurrent networks */
    hone_cpu_over;                   /* any recurrence, its stages in turn (program.c) */
#endif
