/* SPDX-License-Identifier: Apache-2.0
   export: a graph becomes a standard ONNX model that other runtimes load. The way back from onnx.h; no pass
   runs here.

   - Nodes are written in the graph's order; a fused group is written as its parts; layouts mean nothing here
     (dims are logical).
   - Constants are initializers with raw data, sent to the sink straight from where they lie: no second copy
     is held.
   - Captures of bodies are names of the outer scope again. A constant that several graphs share is written
     once, outside.
   - The opset is the lowest that has all the forms used (18 at least). A row that is not standard ONNX is
     written as standard nodes, or
     the export is refused with a line that names the node.
   - Types of inputs and outputs are written where they are known: run hone_graph_infer first if outputs
     should have theirs. */
#ifndef HONE_MODEL_EXPORT_H
#define HONE_MODEL_EXPORT_H
#include "ir/graph.h"

typedef struct { /* where bytes go, in order */
    hone_status (*put)(void *context, const void *data, size_t bytes);
    void *context;
} hone_sink;
typedef struct {
    hone_sink model;
    hone_sink data;        /* for weights of a model above inline_max; put NULL: such a model is refused */
    const char *data_name; /* what the model calls that file: a name beside it */
    uint64_t inline_max;   /* 0: 2 GB, what protobuf can hold */
} hone_export_to;
typedef struct {
    int64_t nodes;                    /* written, those of bodies included */
    uint64_t model_bytes, data_bytes; /* data_bytes 0: all is in the model */
    int opset;                        /* of ai.onnx */
} hone_exported;

hone_status hone_graph_export(const hone_graph *, const hone_export_to *,
                              hone_exported *out_or_null) HONE_CHECKED;
/* To a file, whole or not at all; above 2 GB the weights go to PATH.data beside it. Never onto a file that
   the graph was read from. */
hone_status hone_graph_export_file(const hone_graph *, const char *path,
                                   hone_exported *out_or_null) HONE_CHECKED;
/* Fails where `path` is the model's file or one of its external data, links included: the graph may point
   into them. */
hone_status hone_graph_not_source(const hone_graph *, const char *path) HONE_CHECKED;
#endif
