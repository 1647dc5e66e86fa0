/* SPDX-License-Identifier: Apache-2.0
   infer: what is known of a node's results from what is known of its operands. One node at a time, so that
   compile (on symbols) and bind (in numbers) share it. */
#ifndef HONE_IR_INFER_H
#define HONE_IR_INFER_H
#include "base/cache.h"
#include "ir/graph.h"
#include "loops/instance.h"

typedef struct {
    hone_tag tag;
    hone_dtype dtype; /* NONE: not known */
    int8_t rank;      /* -1: not known */
    hone_dim dim[HONE_MAX_RANK];
    const hone_dim *contents; /* small whole numbers, known as expressions; or NULL */
    int n_content;
    const hone_value *value; /* all data known (a constant); or NULL */
} hone_fact;
extern const hone_fact hone_fact_unknown;
hone_fact hone_fact_of_value(const hone_value *);
hone_fact hone_fact_of_var(const hone_var *);
bool hone_fact_shaped(const hone_fact *);  /* a tensor whose dtype and dims are all numbers */
bool hone_fact_numbers(const hone_fact *); /* contents are there and all numbers */

static inline hone_status hone_infer_no_memory(void) {
    return hone_fail(HONE_NO_MEMORY, "no memory to infer shapes");
}
/* Instances by key, shared by all threads that bind a model. */
typedef struct hone_instances hone_instances;
hone_instances *hone_instances_create(void); /* NULL: no memory */
void hone_instances_destroy(hone_instances *);
/* *out NULL: not yet */
hone_status hone_instances_get(hone_instances *, const hone_call *, const hone_instance **out) HONE_CHECKED;
/* From now on a constant of f16 or bf16 may stand where the others of its type are f32: it is widened as it
   is loaded (passes/half.c). */
void hone_instances_mix(hone_instances *);
bool hone_instances_mixed(const hone_instances *);
/* the arena they live in, locked: for whoever makes one in another way (fusion) */
hone_arena *hone_instances_lock(hone_instances *);
void hone_instances_unlock(hone_instances *);

typedef struct {
    hone_arena *arena; /* of calls and contents */
    hone_dims *dims;   /* NULL at bind */
    hone_instances *instances;
    hone_cache *cache; /* where what was solved is kept, or NULL */
} hone_inferring;

/* hone_graph_infer (graph.h) with instances that are kept */
hone_status hone_graph_infer_by(hone_graph *, hone_instances *) HONE_CHECKED;
/* The nodes from number `from` on, while a graph is being built. What contradicts a row is left unknown:
   whoever infers the whole graph says so. */
hone_status hone_graph_infer_from(hone_graph *, hone_instances *, int from) HONE_CHECKED;
/* The call of a node: attributes, and its operands' facts in the row's order. Lives in the arena. NULL out
   facts: all wanted ones of the node. */
hone_status hone_node_call(const hone_inferring *, const hone_node *, const hone_fact *const *in,
                           hone_call **out) HONE_CHECKED;
/* Facts of the outputs (n_out). *instance: NULL where there is none, or not yet. Unknown stays unknown; what
   contradicts the row is an error. `known`: an instance found earlier for this node, or NULL. *call is what
   was solved. */
hone_status hone_node_infer(const hone_inferring *, const hone_node *, const hone_fact *const *in,
                            const hone_instance *known, hone_fact *out, const hone_instance **instance,
                            hone_call **call, hone_param **param) HONE_CHECKED;
#endif
