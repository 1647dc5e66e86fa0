/* SPDX-License-Identifier: Apache-2.0
   bind: a plan in the making. Private to plan/, but for host steps, which run/ executes. */
#ifndef HONE_PLAN_BIND_H
#define HONE_PLAN_BIND_H
#include "plan/plan.h"

enum { HONE_MAX_WANTED = 64, HONE_MAX_CUTS = 256 };

typedef enum {
    HONE_OPERAND_ABSENT,
    HONE_OPERAND_TENSOR,
    HONE_OPERAND_SLOT,
    HONE_OPERAND_INPUT,
    HONE_OPERAND_CONST
} hone_operand_kind;
typedef struct {
    hone_operand_kind kind;
    int slot;
    hone_fact fact;
    const hone_value *constant;
    /* to a body of If, Loop or Scan that runs on a device: there as a value of its own, wherever it is now */
    bool goes;
    uint8_t space; /* TENSOR: where it is now */
} hone_host_operand;
typedef struct {
    const hone_compiled *compiled;
    const hone_node *node;
    int number;
    hone_host_fn *host;
    hone_host_operand *in, *out;
    hone_ref *ref; /* in, then out */
    uint8_t unit;  /* control flow: where its bodies' values should be; 0: on the host */
} hone_host_step;

typedef struct hone_concat_buffer hone_concat_buffer;
typedef struct hone_level hone_level;
struct hone_level { /* a graph being bound: the outermost, or a branch bound in place */
    const hone_compiled *c;
    hone_level *outer;
    bool top;
    hone_bound_var *var;
    const int64_t *values; /* of the dims table */
    bool whole;            /* all that shape-only nodes ask for are numbers */
    /* an input has no elements: expressions divide by dims as if they were not 0, so nothing goes by
       formula */
    bool empty;
    hone_concat_buffer *concat_buffer; /* one a var, or NULL: none yet (concat_alias.c) */
    struct hone_there *there;          /* what was brought to other spaces, newest first (space.c) */
};
typedef struct {
    hone_steps steps;
    hone_arena *scratch;
    hone_cache *cache;
    hone_packs *packs; /* of the model that is bound: branches in place use it too */
    hone_own own;
    const hone_plan *after;
    hone_bind_options options;
    const hone_units *units;
    int unit;            /* of the node being bound */
    uint8_t *port;       /* as in hone_plan; NULL: one unit */
    uint8_t *slot_space; /* as in hone_plan, of the slots before this plan segment */
    int n_slot_space;
    hone_vec(hone_refusal) refused;
    bool *out_taken;
    int n_in, n_out, n_slot, inlined;
    int cut; /* node where the plan ends, -1 */
    hone_vid wanted[HONE_MAX_WANTED];
    int n_wanted;
    int64_t folded_bytes; /* of own, for what was computed already (fold_at_bind.c) */
} hone_binder;

static inline hone_status hone_bind_no_memory(void) {
    return hone_fail(HONE_NO_MEMORY, "no memory to bind a plan");
}
/* ---- bind.c -------------------------------------------------------------------------------------------- */
/* Vars as they are before any node is bound: constants are there, numbers that the dims say are known. */
void hone_bind_begin(hone_level *);
/* All nodes from this one on, until one breaks the plan off. */
hone_status hone_bind_nodes(hone_binder *, hone_level *, int from) HONE_CHECKED;

static inline bool hone_bind_stays(const hone_binder *b, int output) {
    return b->options.stay && output >= b->options.read;
}

/* ---- place.c ------------------------------------------------------------------------------------------- */
bool hone_bind_is_dense(const hone_bound_var *);
hone_status hone_bind_bytes(const hone_fact *, int64_t *out) HONE_CHECKED;
/* Numbers that compile knew as expressions of the input dims: written out when somebody asks. */
hone_status hone_bind_see(hone_binder *, const hone_level *, hone_vid) HONE_CHECKED;
/* Is a bound var just what compile said of it? */
bool hone_bind_as_compiled(const hone_level *, hone_vid);
static inline int32_t hone_slot_base(const hone_binder *b, int slot) {
    return HONE_BASE_FIRST + b->n_in + b->n_out + slot;
}
/* Room in the plan's own memory, zeroed: its offset; -1: no memory. */
int64_t hone_bind_own(hone_binder *, int64_t bytes);
/* Is the ref's memory known while the plan is made, and will it not change? */
bool hone_bind_is_known(const hone_binder *, hone_ref);
/* Bytes for a var that is only numbers so far. */
hone_status hone_bind_real(hone_binder *, hone_bound_var *) HONE_CHECKED;
/* A new block in the var's layout; id -1: row-major. */
hone_status hone_bind_block(hone_binder *, const hone_level *, hone_vid, hone_bound_var *) HONE_CHECKED;
/* Where an output of the node being bound will lie: in the caller's tensor if it is a graph output, in its
   alias in a join, or in a new block. */
hone_status hone_bind_place(hone_binder *, hone_level *, hone_vid, hone_bound_var *) HONE_CHECKED;
/* The same for what can only be stored row-major. */
hone_status hone_bind_place_rows(hone_binder *, hone_level *, hone_vid, hone_bound_var *) HONE_CHECKED;
/* A copy of `from` with the strides of `to` (both placed, equal shapes). */
bool hone_bind_keeps(const hone_binder *, const hone_level *, const hone_node *);
hone_status hone_bind_copy(hone_binder *, const hone_level *, int node, const hone_bound_var *from,
                           const hone_bound_var *to) HONE_CHECKED;
/* The same where `to` may run on in few elements at a time (channels that are shuffled): then a copy for each
   of them, in rows of `from`. */
hone_status hone_bind_copy_apart(hone_binder *, const hone_level *, int node, const hone_bound_var *from,
                                 const hone_bound_var *to) HONE_CHECKED;
/* A dense copy in its stead, where it is not dense. */
hone_status hone_bind_dense(hone_binder *, const hone_level *, int node, hone_bound_var *) HONE_CHECKED;
/* ---- function.c: a host op by the function of the device that it is placed on. *done false: it has none for
   it --- */
hone_status hone_bind_function(hone_binder *, hone_level *, int node, const hone_node *, const hone_fact *out,
                               bool *done) HONE_CHECKED;
/* The plan is cut to know how many there are of a counted var: the number comes to the host. */
hone_status hone_bind_count(hone_binder *, hone_bound_var *) HONE_CHECKED;
/* ---- space.c: which device a node goes to, and values that are wanted in another memory ---------------- */
/* Where a ref's memory is: a space; -1: in all that want it (constants, what was computed when plans were
   made). */
int hone_bind_space(const hone_binder *, hone_ref);
/* Nodes are bound to this unit from now on, and new blocks lie in its space. */
void hone_bind_on(hone_binder *, int unit);
/* The unit of a node: as it was placed, but for what the device refuses, strings, and small results of
   constants, which are computed while the plan is made. instance:
   NULL, a view. */
hone_status hone_bind_choose(hone_binder *, const hone_level *, const hone_node *, const hone_instance *,
                             const hone_fact *out) HONE_CHECKED;
/* Where a var lies in the memory of the unit that is bound: it is copied there, once, where it must be. May
   make the var dense. */
hone_status hone_bind_bring(hone_binder *, hone_level *, int node, hone_vid, hone_ref *out) HONE_CHECKED;
/* Bytes without gaps, from one memory to another. */
hone_status hone_bind_transfer(hone_binder *, int node, const hone_node *, hone_ref from, hone_ref to,
                               int64_t bytes) HONE_CHECKED;
/* All steps are there, their refs settled: segments, and what they need of constants. */
hone_status hone_bind_segments(const hone_binder *, hone_plan *) HONE_CHECKED;
/* The space behind a base of a finished plan; -1 as above. first_slot: the base of slot 0. */
int hone_plan_space(const hone_plan *, int first_slot, int32_t base);
/* fold_at_bind.c: where the steps of a node, from step0 and patch0 on, read constants only, they are run and
   taken back. */
hone_status hone_bind_fold(hone_binder *, const hone_level *, const hone_instance *, hone_operands t,
                           const hone_vid *id, int step0, int patch0) HONE_CHECKED;
#endif
