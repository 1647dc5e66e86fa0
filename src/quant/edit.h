/* SPDX-License-Identifier: Apache-2.0
   edit: a graph's list of nodes written anew, in order: nodes that stay are kept, others put where they
   stood. Private to quant. */
#ifndef HONE_QUANT_EDIT_H
#define HONE_QUANT_EDIT_H
#include "quant/quant.h"

typedef struct {
    const hone_quant_job *job;
    hone_graph *graph;
    hone_vec(hone_node *) done;
    hone_status status; /* of the first failure; later calls do nothing and give -1 */
} hone_quant_edit;

hone_quant_edit hone_quant_edit_open(const hone_quant_job *); /* indexes the graph */
void hone_quant_keep(hone_quant_edit *, hone_node *);
/* A node of an op of ai.onnx, or "com.microsoft.X"; `out` -1: a new var, of which nothing is known. Gives its
   output. */
hone_vid hone_quant_put(hone_quant_edit *, const char *op, const char *name, const hone_vid *in, int n_in,
                        hone_vid out, const hone_attr *, int n_attr);
void hone_quant_put_all(hone_quant_edit *, const char *op, const char *name, const hone_vid *in, int n_in,
                        const hone_vid *out, int n_out, const hone_attr *, int n_attr);
hone_vid hone_quant_cast(hone_quant_edit *, hone_vid from, hone_vid out, hone_dtype);
/* a new var of the same shape and another type */
hone_vid hone_quant_like(hone_quant_edit *, hone_vid, hone_dtype);
hone_vid hone_quant_constant(hone_quant_edit *, const char *name, hone_value *take); /* NULL: no memory */
/* The new list in place, shapes inferred; or the first failure, and the graph is only good to be destroyed.
   Frees what the edit holds. */
hone_status hone_quant_edit_close(hone_quant_edit *) HONE_CHECKED;

bool hone_quant_is(const hone_node *, const char *op); /* of ai.onnx */
#define HONE_QUANT_INT(name_, value)                                                       \
    {                                                                                      \
        .name = (name_), .kind = HONE_ATTR_INT, .n = 1, .i = (const int64_t[]) { (value) } \
    }
#endif
