/* SPDX-License-Identifier: Apache-2.0
   export_write: one export under way. Between export.c, which opens and closes it, and the files that write a
   model's parts: export_graph.c (scopes, names, nodes), export_value.c (tensors, attributes, types),
   export_form.c (opsets, forms of our own). */
#ifndef HONE_MODEL_EXPORT_WRITE_H
#define HONE_MODEL_EXPORT_WRITE_H
#include "model/wire_write.h"

enum { HONE_EXPORT_OPSET = 18 /* the lowest that is written */, HONE_EXPORT_DOMAINS = 4 };

typedef struct { /* a constant; where more than one graph has it, it is written once, in the outermost */
    const hone_value *value;
    const hone_graph *first; /* the graph where it was met first */
    bool many;               /* there is another */
    /* many: in the outermost graph; NULL: it has none there, and gets one with the first read */
    const char *name;
    bool used;
    const char **quantized; /* names of what it is dequantized from, in the outermost graph; NULL: nothing */
} hone_export_shared;
typedef struct {
    const hone_value *value;
    uint64_t offset;
} hone_export_outside; /* a tensor in the file beside */

typedef struct {
    hone_wire_out w;
    hone_arena *arena;
    const hone_graph *root;
    const char *data_name; /* NULL: weights stand in the model */
    /* where the next tensor lies in the file is known: no message around it will move it */
    bool placed;
    hone_vec(hone_export_outside) outside;
    uint64_t outside_bytes;
    hone_vec(hone_export_shared) shared; /* sorted by value */
    /* of these, what the outermost graph did not have, in the order of reads */
    hone_vec(int) hoisted;
    /* tildes, more than any name has in a row: marks names that are made up */
    const char *tag;
    int serial;
    struct {
        const char **at;
        int n, room;
    } titles; /* names of nodes so far, a hash: readers want them all different */
    int64_t nodes;
    int opset;
    struct {
        const char *domain;
        int version;
        const char *needs; /* the node that needs this version … */
        const char *last;  /* … and one whose op is gone after version `until`, or NULL */
        int until;
    } domain[HONE_EXPORT_DOMAINS];
    int n_domain;
    hone_status status; /* of the first failure; its message is on the thread */
} hone_exporter;

typedef struct hone_export_scope hone_export_scope;
struct hone_export_scope {
    const hone_graph *g;
    hone_export_scope *up;
    const char **name; /* of each var here, once it was asked for */
    hone_vid *from;    /* a capture: the var outside */
    bool *used;        /* a constant that was read */
    /* a constant that is written as DequantizeLinear of these: q, scale, zero point (or NULL) */
    const char ***quantized;
};

/* ---- export_graph.c ------------------------------------------------------------------------------------ */
void hone_export_graph(hone_exporter *, uint32_t field, const hone_graph *, hone_export_scope *up,
                       const hone_node *of);
/* as written; "" for an absent one. Counts as a read */
const char *hone_export_name(hone_exporter *, hone_export_scope *, hone_vid);
const char *hone_export_fresh(hone_exporter *, const char *base); /* a name that nothing has */
typedef struct {
    const char *domain, *op, *name;
    const char *const *in, *const *out;
    int n_in, n_out;
    const hone_attr *attr;
    int n_attr;
    const hone_node *of; /* whose bodies attributes may name; or NULL */
} hone_onnx_node;
void hone_export_put_node(hone_exporter *, hone_export_scope *, const hone_onnx_node *);
void hone_export_node_with(hone_exporter *, hone_export_scope *, const hone_node *, int other,
                           const char *name); /* as it stands, but input `other` (-1: none) */

/* ---- export_value.c ------------------------------------------------------------------------------------ */
void hone_export_tensor(hone_exporter *, uint32_t field, const char *name, const hone_value *);
void hone_export_attr(hone_exporter *, hone_export_scope *, const hone_onnx_node *, const hone_attr *);
void hone_export_list(hone_exporter *, hone_export_scope *, const char *name,
                      const hone_value *); /* a constant sequence or optional, as nodes */
void hone_export_type(hone_exporter *, uint32_t field, const hone_export_scope *, hone_vid,
                      const hone_stated *or_null);
void hone_export_scalar_type(hone_exporter *, uint32_t field, hone_dtype);

/* ---- export_form.c ------------------------------------------------------------------------------------- */
/* standard, or made so, or refused */
void hone_export_node(hone_exporter *, hone_export_scope *, const hone_node *);
/* raises the opset to what the node needs */
void hone_export_need(hone_exporter *, const hone_onnx_node *, uint32_t dtypes, int since);
int hone_export_ir_version(int opset);

/* ---- export_quant.c ------------------------------------------------------------------------------------ */
/* hone.QLinearMatMul */
void hone_export_quant_matmul(hone_exporter *, hone_export_scope *, const hone_node *);
/* hone.QLinearMean and its kin */
void hone_export_quant_mean(hone_exporter *, hone_export_scope *, const hone_node *);
/* a constant that was dequantized: the node that does it again */
/* A DequantizeLinear of what a constant was dequantized from: the names of its operands, which are written
   with the other constants; NULL: no memory. */
const char **hone_export_quantized(hone_exporter *, hone_export_scope *, const hone_quantized *,
                                   const char *base, const char *out);
void hone_export_table(hone_exporter *, hone_export_scope *, const hone_node *); /* hone.Table */

static inline void hone_export_fail(hone_exporter *x, hone_status s) { /* the first one stays */
    if (!x->status) x->status = s;
}
void hone_export_no_memory(hone_exporter *);
#endif
