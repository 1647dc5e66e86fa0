/* SPDX-License-Identifier: Apache-2.0
   match: patterns of nodes as text, and what stands in their place. Private to passes.

   A pattern is the expression that an exporter wrote:
        Mul(x, Sigmoid(x))                      ops by name; small names are operands, the same name is the
                                                same var
        m=ReduceMean(x, $a)                     m= names a result; $a is a constant; 0.5 a constant of one
                                                element with that value
        {Pow(d, 2)|Mul(d, d)}                   one of several
   Add and Mul match in either order. A node of the pattern other than its root must have no reader outside
   it, unless it is a view, which costs nothing to keep. Operands that a pattern does not mention must be
   absent.

   Rules are tried in order, each on the whole graph, bodies included: longer patterns first. `make` emits
   nodes and says whether it did; what it emits is inferred on the way, and is dropped where a row refuses it
   or the result would have another type or shape. */
#ifndef HONE_PASSES_MATCH_H
#define HONE_PASSES_MATCH_H
#include "passes/passes.h"

typedef struct hone_matching hone_matching;
typedef struct {
    const char *pattern;
    bool (*make)(hone_matching *);
} hone_rule;
hone_status hone_match_rules(hone_passing *, const hone_rule *, int n) HONE_CHECKED;

/* ---- what was found ------------------------------------------------------------------------------------ */
hone_graph *hone_match_graph(hone_matching *);
hone_node *hone_match_root(hone_matching *);
/* Where the root is placed, and what f32 counts as there; NULL: nowhere yet. */
const hone_target *hone_match_target(hone_matching *, hone_dtype *counts_as);
/* -1: the pattern found it without this one */
hone_vid hone_match_var(const hone_matching *, const char *name);
/* of a constant; NULL: absent */
const hone_value *hone_match_value(const hone_matching *, const char *name);
/* who makes it; NULL: nobody, or absent */
hone_node *hone_match_node(const hone_matching *, const char *name);
hone_node *hone_match_maker(const hone_matching *, hone_vid); /* likewise, of any var */
int hone_match_uses(const hone_matching *, hone_vid);         /* readers now, graph outputs counted */
bool hone_match_number(const hone_value *, double *out);      /* a constant of one element */

/* ---- what takes its place ------------------------------------------------------------------------------ */
/* Any number of nodes, in order; -1 and later calls do nothing where one is refused. `out`: the root's
   result, or HONE_MATCH_NEW. An op of ai.onnx, "hone.X" or "com.microsoft.X". */
enum { HONE_MATCH_NEW = -2 };
hone_vid hone_match_emit(hone_matching *, const char *op, hone_vid out, const hone_vid *in, int n_in,
                         const hone_attr *, int n_attr);
hone_vid hone_match_constant(hone_matching *, const char *name, hone_value *take); /* NULL gives -1 */
/* Before `elements` of weights are computed anew: false where the pass has done so much of that that a model
   could hang here. */
bool hone_match_spend(hone_matching *, int64_t elements);
/* false; and the pass fails: with less memory a model must not become another */
bool hone_match_no_memory(hone_matching *);
hone_vid hone_match_ints(hone_matching *, const char *name, const int64_t *, int n);

/* ---- small things that rules share --------------------------------------------------------------------- */
/* An axes operand as bits of the dims of x; 0: none, or not a plain list of them. */
uint32_t hone_match_axes(const hone_value *axes, int rank);
bool hone_node_is(const hone_node *, const char *op); /* of ai.onnx, or "hone.X" */
#define HONE_ATTR_I(name_, value)                                                          \
    {                                                                                      \
        .name = (name_), .kind = HONE_ATTR_INT, .n = 1, .i = (const int64_t[]) { (value) } \
    }
#define HONE_ATTR_F(name_, value)                                                           \
    {                                                                                       \
        .name = (name_), .kind = HONE_ATTR_FLOAT, .n = 1, .f = (const double[]) { (value) } \
    }
#define HONE_ATTR_L(name_, list, count) \
    { .name = (name_), .kind = HONE_ATTR_INTS, .n = (count), .i = (list) }
#endif
