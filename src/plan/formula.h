/* SPDX-License-Identifier: Apache-2.0
   formula: what a node's numbers are as expressions of the input dims, found once at compile. Bind then only
   evaluates: it does not infer, solve or look up. A node has none where something about it is known only at
   bind, or might then be known better (small tensors whose numbers decide shapes).

   A formula holds for operands that are as compile saw them, and where its conditions do; otherwise the node
   is bound as if it had none. */
#ifndef HONE_PLAN_FORMULA_H
#define HONE_PLAN_FORMULA_H
#include "plan/plan.h"

typedef enum {
    HONE_VIEW_NONE,
    HONE_VIEW_PLAIN,
    HONE_VIEW_BY_NUMBERS /* Slice: its operands' numbers say where */
} hone_view_kind;
struct hone_formula {
    hone_view_kind view;
    bool concat;
    const hone_dim *must; /* must not be 0 */
    int n_must;
    /* of an instance; NULL for what has none, or is only seen as a view */
    const hone_instance *instance;
    const hone_param *param; /* whole ones are dims, */
    const int32_t *open;     /* and these of them are symbolic */
    int n_open;
    const hone_vid *id;                /* the var of each tensor, -1 a temporary */
    const bool *constant;              /* each tensor is a constant */
    const hone_walks **walks;          /* of each tensor that is none */
    uint64_t in_place;                 /* inputs that are read only where the result is stored */
    const hone_batch_axis *batch_axis; /* NULL: it is no window over images */
};
/* NULL: there is none. `instance`: where it is known, the node's own. Lives in the graph's arena. */
const hone_formula *hone_formula_make(const hone_compiled *, hone_arena *scratch, const hone_node *,
                                      const hone_instance **instance, hone_status *);
/* Are the outputs' numbers known as expressions? Then nothing has to be done for the node, whatever the input
   dims are. */
bool hone_formula_shape_only(const hone_graph *, const hone_node *);
/* Tensors that the instance reads only where its last stage stores, element by element: the result may lie on
   them if nobody needs them afterwards. */
uint64_t hone_formula_in_place(const hone_instance *);
#endif
