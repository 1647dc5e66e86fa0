/* SPDX-License-Identifier: Apache-2.0
   graph: vars and nodes in SSA form. The middle of everything: model/ fills it, passes rewrite it, plan/
   reads it.

   - Every node is in the newest form of its op, and `program` is that op's row; old versions are known only
     in model/.
   - A var has a dtype, logical dims in ONNX's order (symbolic where not known, in the one `dims` table that a
     graph shares with its
     bodies), and a layout. A constant has a value.
   - Bodies of If, Loop, Scan and SequenceMap are graphs of their own and closed: what they capture from
     outside comes in as extra
     inputs, after the op's own: body input k (k >= n_formal) is the node's input n_in - n_capture + (k -
     n_formal).
   - Nodes stand in an order in which every var is produced before it is read.
   - Everything lives in the graph's arena, bodies included; vars and nodes are never freed one by one. */
#ifndef HONE_IR_GRAPH_H
#define HONE_IR_GRAPH_H
#include "base/dim.h"
#include "loops/program.h"

typedef struct hone_graph hone_graph;
typedef struct hone_node hone_node;
typedef int32_t hone_vid; /* number of a var; -1: an absent optional operand */

typedef enum {
    HONE_LAYOUT_ROWS /* row-major */,
    HONE_LAYOUT_ORDER /* dims stored in `order`, outermost first */
} hone_layout_kind;
typedef struct {
    hone_layout_kind kind;
    int8_t order[HONE_MAX_RANK];
} hone_layout;

typedef struct {
    const char *name; /* unique in its graph; "" never */
    hone_tag tag;
    hone_dtype dtype; /* NONE: not known yet */
    int8_t rank;      /* -1: not known yet */
    hone_dim dim[HONE_MAX_RANK];
    hone_layout layout;
    hone_value *value; /* a constant (an initializer), or NULL */
    /* small integer tensor whose numbers are known as dim expressions, row-major, or NULL */
    const hone_dim *contents;
    int n_content;
    int32_t producer; /* node number; -1: graph input or constant. Kept by hone_graph_index */
    int32_t uses;     /* reads by nodes and graph outputs. Kept by hone_graph_index */
} hone_var;

struct hone_node {
    const hone_program *program; /* the op's row */
    const char *name;            /* as in the model, or made up; for messages */
    hone_vid *in, *out;
    int n_in, n_out; /* outputs not wanted are -1 */
    int n_capture;   /* how many of `in`, at the end, are captures of bodies */
    const hone_attr *attr;
    int n_attr;
    hone_graph **body;
    int n_body;
    /* a fused group: the nodes it stands for, in order; NULL otherwise. program is the last part's */
    hone_node **part;
    int n_part;
    /* the group's program (loops/fuse.h); inputs are then what comes from outside, in any order */
    const struct hone_fused *fused;
    bool dead; /* removed by a pass; hone_graph_compact drops it */
    /* of the devices that the graph is compiled for: the one it was placed on (plan/compile.c) */
    uint8_t unit;
    const char *refused; /* why the one that it was sent to does not take it; NULL: it does. Lives for ever */
};

/* a type as a model file has it. Only model/ reads it, to write it again: it is not trusted */
typedef struct {
    const void *data;
    size_t bytes;
} hone_stated;
typedef hone_vec(hone_stated) hone_stated_types;
struct hone_graph {
    hone_arena *arena; /* of the outermost graph */
    hone_dims *dims;   /* likewise shared */
    const char *name;
    hone_graph *outer; /* NULL for the outermost */
    hone_vec(hone_var) var;
    hone_vec(hone_node *) node;
    hone_vec(hone_vid) in, out;
    int n_formal; /* body: inputs that the op gives; the rest are captures. Outermost: = in.n */
    int opset;    /* as imported, for reports */
    bool mixed;   /* outermost: constants of f16 and bf16 may stand where f32 is meant (passes/half.c) */
    int inferred; /* while it is imported: so many nodes were inferred already */
    struct {
        int32_t *at;
        int room, serial;
        /* var by name, a hash kept by graph.c: so names are given by hone_graph_var only */
    } names;
    hone_vec(hone_value *) held;  /* outermost: tensors that attributes point to */
    hone_vec(hone_graph *) owned; /* outermost: bodies, to be destroyed with it */
    /* outermost, in the arena: types of inputs and outputs, where the model states them */
    hone_stated_types in_stated, out_stated;
    hone_stated file;          /* outermost: the whole model file; empty: there is none */
    const char *forgiven;      /* outermost: what the importer forgave, a line each; NULL: nothing */
    void *keep;                /* what constants point into (a mapped file) … */
    void (*keep_free)(void *); /* … and how it is let go */
};

hone_status hone_graph_create(const char *name, hone_graph **out) HONE_CHECKED;
/* a body that shares arena and dims; NULL when out of memory */
hone_graph *hone_graph_body(hone_graph *outer, const char *name);
void hone_graph_destroy(hone_graph *); /* with all bodies and constants */
/* copy.c: the same graph once more, to be fused and laid out in another way: its groups are opened, its vars
   row-major. It shares constants, texts and attributes with the first, which must outlive it. */
hone_status hone_graph_copy(const hone_graph *, hone_graph **out) HONE_CHECKED;

/* a new var, nothing known; a taken or empty name is made unique. -1: no memory */
hone_vid hone_graph_var(hone_graph *, const char *name);
hone_vid hone_graph_find(const hone_graph *, const char *name); /* -1: none */
/* takes the reference; sets dtype, rank, dims. -1: no memory (value dropped) */
hone_vid hone_graph_const(hone_graph *, const char *name, hone_value *take);
hone_node *hone_graph_node(hone_graph *, const hone_program *, const char *name, const hone_vid *in, int n_in,
                           const hone_vid *out, int n_out);
/* Attributes are copied into the graph's arena, texts and numbers too; tensors are held by the graph. Nodes
   may share a list. */
bool hone_node_attrs(hone_graph *, hone_node *, const hone_attr *, int n);
static inline hone_var *hone_var_of(const hone_graph *g, hone_vid v) { return v < 0 ? NULL : g->var.at + v; }

/* a constant, or a constant seen another way. Needs the index */
bool hone_graph_known(const hone_graph *, hone_vid);
void hone_graph_index(hone_graph *);   /* producers and uses, bodies included */
void hone_graph_compact(hone_graph *); /* drops dead nodes */
/* renumbers, without vars that nothing names; bodies too. false: no memory, nothing done */
bool hone_graph_drop_vars(hone_graph *);
hone_status hone_graph_verify(const hone_graph *)
    HONE_CHECKED; /* every rule above, and each node against its row: operand counts, types where known */

/* ---- infer.c: shapes, types and small contents, symbolically ------------------------------------------- */
/* Fills dtype, rank, dim and contents of every var from inputs, constants and the rows. A var that stays
   unknown is legal until bind. Where the model states a shape for an intermediate var it is checked, not
   trusted. */
hone_status hone_graph_infer(hone_graph *) HONE_CHECKED;

/* ---- text.c: a graph as text that parses back ---------------------------------------------------------- */
/* graph NAME (x: f32[batch, 3, 224, 224], …) -> y { w: f32[64,3,7,7] = {…};  y = Conv(x, w, b) {group: 1,
   strides: [2, 2]} "node name" … } Constants of up to 64 elements print their numbers, larger ones print `=
   random(seed)` from a digest, and parse back to such data. */
hone_status hone_graph_print(const hone_graph *, hone_text *out) HONE_CHECKED;
hone_status hone_graph_parse(const char *text, size_t bytes, hone_graph **out) HONE_CHECKED;

/* ---- stats.c ------------------------------------------------------------------------------------------- */
typedef struct {
    double flops, bytes_read, bytes_written;
    int64_t parameters, parameter_bytes;
    bool known; /* all dims were numbers */
} hone_counts;
hone_counts hone_node_counts(const hone_graph *, const hone_node *,
                             const int64_t *dim_values /* of the dims table, or NULL */);
hone_counts hone_graph_counts(const hone_graph *, const int64_t *dim_values);
#endif
