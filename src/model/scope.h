/* SPDX-License-Identifier: Apache-2.0
   scope: where names are looked up during an import, and what the files of the importer share. Private to
   them.

   A scope is the model's graph, a body, or a call of a function; a body sees what is outside it (and what it
   uses becomes a capture), a call sees only its formals. Inlined names get a prefix, so that they stay unique
   in the graph they land in. */
#ifndef HONE_MODEL_SCOPE_H
#define HONE_MODEL_SCOPE_H
#include "model/import.h"

enum { HONE_ABSENT = -1, HONE_NOT_FOUND = -2 };

typedef struct {
    const char *name;
    hone_vid id;
} hone_formal;
typedef struct {
    hone_vid outer, inner;
} hone_capture;
typedef struct hone_scope {
    hone_onnx_model *m;
    struct hone_scope *up;
    hone_graph *g;
    const hone_onnx_opsets *opsets;
    const char *prefix;
    int depth;
    hone_vec(hone_capture) captured; /* a body's */
    bool inlined;                    /* in a call, at any depth */
    bool call;                       /* a call of a function: with its formals and attributes */
    hone_vec(hone_formal) formals;
    int n_given; /* so many of them are inputs; the others, outputs of a function, are made by its nodes */
    const hone_draft *caller;
    const hone_onnx_function *function;
} hone_scope;

/* ---- scope.c ---- */
/* of the load; "" where there is no memory, which is noted */
const char *hone_scope_text(hone_scope *, const hone_field *);
const char *hone_scope_full(hone_scope *, const char *name); /* with the prefix */
/* HONE_ABSENT, HONE_NOT_FOUND; what a body uses becomes a capture */
hone_vid hone_scope_lookup(hone_scope *, const char *name);
bool hone_scope_knows(hone_scope *, const char *name); /* the same question, without a capture */
/* for a node's output, or an input; -1: it is taken, and noted */
hone_vid hone_scope_define(hone_scope *, const char *name, const char *what);
int hone_scope_version(hone_scope *, const char *domain);
const char *hone_onnx_domain(const char *); /* "ai.onnx" is "" */

/* ---- order.c ---- */
typedef hone_vec(hone_field) hone_nodes;
/* The nodes of a graph (field `number` of the message) in an order in which each stands after what it reads:
   the file's own where that will do. False: no memory, or a cycle, which is noted. Free the list. */
bool hone_import_order(hone_scope *, hone_wire, uint32_t number, hone_nodes *out);

/* ---- import_node.c ---- */
typedef struct {
    const char *name;
    hone_field graph;
} hone_body_ref;
typedef hone_vec(hone_body_ref) hone_body_refs;
/* One AttributeProto into the draft, or a graph into `bodies`. In a function it may stand for an attribute of
   the call. */
void hone_import_attr(hone_scope *, hone_edit *, hone_wire, hone_body_refs *bodies);
void hone_import_nodes(hone_scope *, hone_wire, uint32_t number);

/* ---- import_graph.c ---- */
/* false: the bytes are damaged. Captures are left to the caller */
bool hone_import_graph(hone_scope *, hone_wire);
void hone_import_initializer(hone_scope *, const hone_field *, bool sparse);

/* ---- function.c ---- */
const hone_onnx_function *hone_scope_function(hone_scope *, const char *domain, const char *op,
                                              const char *overload);
/* written out in place */
void hone_import_call(hone_scope *, hone_edit *, const hone_onnx_function *);
bool hone_import_function(hone_onnx_model *, hone_wire); /* into the list; false: no memory */
void hone_import_functions_sort(hone_onnx_model *);
bool hone_import_opset(hone_onnx_model *, hone_wire, hone_onnx_opsets *); /* false: no memory */
/* likewise; adds one where there is none of ai.onnx */
bool hone_import_opset_missing(hone_onnx_model *, int64_t ir_version);
#endif
