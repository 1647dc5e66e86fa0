/* SPDX-License-Identifier: Apache-2.0
   plan: compile a graph once, bind it to shapes, get steps.

   Compile runs every pass and is done once; its result is immutable and shared. Bind is concrete inference
   over the finished graph, from the input shapes and from the contents of those inputs that some op reads as
   shape, axes, range, k or branch. Where a shape depends on computed data the plan breaks off: it ends
   there, and the rest is bound into an arena of its own when the numbers are known. */
#ifndef HONE_PLAN_PLAN_H
#define HONE_PLAN_PLAN_H
#include <stdatomic.h>

#include "device/device.h"
#include "ir/infer.h"

typedef struct hone_formula hone_formula;           /* formula.h */
typedef struct hone_concat_alias hone_concat_alias; /* concat_alias.h */
typedef hone_vec(char) hone_own; /* bytes that a plan computes for itself while it is made */
typedef struct {                 /* what a bind works with: the same memory for one after another */
    hone_arena *scratch;
    hone_steps steps;
    hone_own own;
} hone_bind_workspace;
typedef struct hone_compiled hone_compiled;
struct hone_compiled {
    hone_graph *graph;    /* owned by the outermost */
    hone_compiled *outer; /* of a body: who owns graph, instances, constants, packs, caches and bench */
    hone_instances *instances;
    hone_constants *constants; /* of the outermost and all its bodies */
    hone_packs *packs;
    struct hone_residents *residents; /* constants on devices */
    hone_caches *caches;
    _Atomic(hone_bind_workspace *) *workspace; /* of the last bind, for the next one; or NULL */
    const hone_instance **instance;            /* one a node, or NULL: made at bind */
    const hone_formula **formula;              /* one a node, or NULL: what it is must be found out at bind */
    const bool *shape_only; /* one a node: its outputs are numbers that the input dims say */
    hone_dim *asked;        /* the expressions of those numbers, once each */
    int n_asked;
    const hone_program *identity;           /* what copies are, */
    _Atomic(const hone_instance *) *copies; /* by dtype and rank, or NULL: not made yet */
    hone_host_fn **host;                    /* one a node: HOST and CONTROL ops */
    _Atomic(hone_host_kept *) *kept;        /* one a node: what its host function keeps */
    hone_compiled ***body;                  /* one a node: its bodies, or NULL */
    const uint8_t *begin;                   /* one a var: where it is when bind begins (hone_whereabouts) */
    struct hone_bound_var *constant;        /* those that are there already, in order */
    /* one a var, or NULL: nobody lies in a Concat's output (concat_alias.h) */
    const hone_concat_alias *concat_alias;
    bool *content_input; /* one a graph input: its numbers may decide shapes */
    hone_text passes;    /* JSON: what each pass did */
    int nodes_before;
    bool borrows; /* instances, from the form that it was made of */
};
/* For the CPU. Takes the graph, also on failure. */
hone_status hone_compile(hone_graph *take, hone_compiled **out) HONE_CHECKED;
/* The same model for several devices: nodes are placed, then fused (no group crosses devices) and laid out
   as their devices want it. `of` must outlive it. precision: of the sessions that will run it
   (hone_bind_options). */
hone_status hone_compile_for(const hone_compiled *of, const hone_units *, hone_dtype precision,
                             hone_compiled **out) HONE_CHECKED;
void hone_compiled_destroy(hone_compiled *);

typedef enum {
    HONE_AT_NOWHERE,
    HONE_AT_DIMS /* numbers that the input dims say, not written out yet */,
    HONE_AT_CONTENTS /* known numbers, no bytes yet */,
    HONE_AT_REF,
    HONE_AT_SLOT /* a value that is no tensor, or of a shape known only when it is there */,
    /* in memory with room for the most there can be of one dim; how many there are is a number in memory,
       too */
    HONE_AT_COUNTED
} hone_whereabouts;
typedef struct hone_bound_var { /* what bind knows of a var */
    hone_fact fact;
    hone_whereabouts at;
    bool as_compiled; /* just what compile said of it, no less and no more: formulas hold for it */
    int32_t slot;     /* SLOT; also REF to a slot's tensor once it is known */
    hone_ref ref;
    int64_t stride[HONE_MAX_RANK];
    hone_ref count; /* COUNTED: an int64_t, on the device; when the plan breaks off for it, on the host … */
    int64_t most;   /* … of at most so many */
    int8_t counted; /* of this dim */
} hone_bound_var;
/* What memory holds of it: COUNTED with all that there may be. */
static inline hone_fact hone_bound_room(const hone_bound_var *v) {
    hone_fact f = v->fact;
    if (v->at == HONE_AT_COUNTED) f.dim[v->counted] = v->most;
    return f;
}

typedef struct { /* a node that a device cannot run: it went to the first unit */
    const hone_node *node;
    const char *why;
} hone_refusal;
typedef struct hone_plan hone_plan;
struct hone_plan { /* one plan segment between segment breaks; immutable once made */
    hone_arena *arena;
    hone_cache *cache; /* what steps share with those of other plans */
    hone_step *step;
    int n_step;
    const hone_block *block; /* how the arena is used */
    int n_block;
    /* -1; or, in guard mode, there is no arena: each block has a slot of its own, from this one on */
    int guard_slot;
    int64_t arena_bytes, sum_bytes, lower_bound_bytes;
    size_t scratch_bytes;
    void *own; /* HONE_BASE_PLAN: what was computed when the plan was made */
    int64_t own_bytes;
    int n_constant;          /* bases below 0 that a run needs, */
    int n_base;              /* and from 0 on */
    const hone_units *units; /* outlive it */
    const uint8_t *port;     /* the space of each input, then of each output; NULL: all the host's */
    struct {                 /* one a unit, or NULL: the first is alone. Of those with memory of their own: */
        int64_t bytes;       /* an arena there */
        int slot;            /* whose base is that slot's; -1: nothing lies there */
    } * space;
    struct hone_planned_segment { /* steps from … to - 1 go to a unit, or are copies (HONE_UNIT_COPY) */
        int unit, from, to;
        size_t scratch_bytes;
        const void *sealed;
    } * segment;
    int n_segment;
    /* what of constants, and of what was computed when plans were made, segments in other memories read */
    struct hone_need {
        int unit;
        int32_t base;
    } * need;
    int n_need;
    hone_refusal *refused;
    int n_refused;
    /* of the tensors in the first n_slot_space slots, as far as they were known when it was made: the space
       that each lies in; NULL: all the host's */
    const uint8_t *slot_space;
    int n_slot_space;
    uint64_t id;             /* no other plan of the process has it */
    int n_slot;              /* values this run needs room for, so far */
    int depth;               /* 0 the first plan segment, 1 after one segment break … */
    const hone_plan *before; /* the plan segment that this one continues, or NULL */
    /* a segment break: slots whose bases are this plan segment's arena and `own` for those after it; else -1
       */
    int arena_slot, own_slot;
    /* outputs: graph output k is */
    struct {
        enum {
            HONE_OUT_WRITTEN /* in the caller's or a new tensor, base HONE_BASE_FIRST + n_in + k */,
            HONE_OUT_SLOT,
            HONE_OUT_LATER
        } how;
        int slot;
        hone_fact fact;
    } * out;
    /* a segment break */
    int cut_node;     /* -1: none, the plan is whole */
    hone_vid *wanted; /* what must be known of: facts of slots, contents of tensors */
    int n_wanted;
    hone_bound_var *var;           /* state at the segment break (all vars of the graph) */
    char *key;                     /* of this plan among its siblings */
    hone_plan *next_cut, *sibling; /* plans that continue from here, most recently used first; my own list */
    uint64_t used;
};
/* Facts of the inputs (with `value` set for content inputs). `after`: the plan that was cut, with facts and
   contents of its wanted vars, else NULL. */
hone_status hone_bind(const hone_compiled *, const hone_fact *input, const hone_plan *after,
                      const hone_fact *wanted, hone_bind_options, hone_plan **out) HONE_CHECKED;
void hone_plan_destroy(hone_plan *); /* with all that continue from it */
void hone_bind_workspace_destroy(hone_bind_workspace *);

/* memory.c: places the blocks of a space so that those alive together do not overlap. Returns the bytes
   needed; *lower: the largest sum alive at once; *sum: of all. */
int64_t hone_memory_plan(hone_arena *scratch, hone_block *, int n, int n_step, int space, int64_t align,
                         int64_t *lower, int64_t *sum);
void hone_dense_strides(const hone_fact *, int64_t *stride);
/* view.c: strides of a view op's output from those of its input; false: it must be copied. */
bool hone_view(const hone_node *, const hone_fact *const *in, const hone_bound_var *x, hone_fact *out, int k,
               int64_t *stride, int64_t *offset_elements);
/* Strides with which memory that holds x is seen as y, equal elements in equal order; false: there are
   none. */
bool hone_view_reshaped(const hone_fact *x, const int64_t *stride, const hone_fact *y, int64_t *out);
#endif
