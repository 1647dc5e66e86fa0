/* SPDX-License-Identifier: Apache-2.0
   onnx: a model file becomes a graph. The only room that knows ONNX's format and its old operator versions.

   - The file is read in place from a mapping that the graph keeps; constants point into it where the data is
     aligned.
   - Every node comes out in the newest form of its op (upgrade.h), functions inlined, Constant nodes as
     constants, bodies closed. A
     constant that a body uses from outside becomes a constant of the body too (the bytes are shared),
     everything else a capture.
   - What has one sensible meaning is forgiven, and noted in the graph: nodes in any order, opsets missing or
     too new (docs/07).
   - An initializer that is also listed as an input is a default that a caller could override: here it is a
     constant, not an input.
   - Dims of graph inputs: a name is a symbol of the model, a missing dim or 0 (some exporters write it for
     "any") a symbol of its own.
   - What is wrong with a model is gathered: one message, a line a problem, up to 50. */
#ifndef HONE_MODEL_ONNX_H
#define HONE_MODEL_ONNX_H
#include "model/export.h"

enum { HONE_ONNX_MAX_OPSET = 28, HONE_ONNX_MAX_DEPTH = 32 /* bodies in bodies, functions in functions */ };

hone_status hone_onnx_load(const char *path, const hone_library *, hone_graph **out) HONE_CHECKED;
/* The same with some defaults left open: initializers that are listed as inputs too, and named here, are
   inputs. */
hone_status hone_onnx_load_open(const char *path, const char *const *names, int n, const hone_library *,
                                hone_graph **out) HONE_CHECKED;
/* The bytes are copied. External data is looked for in `folder`; NULL: a model that needs some is refused. */
hone_status hone_onnx_load_memory(const void *data, size_t bytes, const char *folder_or_null,
                                  const hone_library *, hone_graph **out) HONE_CHECKED;
/* What a file says of itself, as JSON (about.c); of no file, the same with nothing in it. */
void hone_onnx_about(const void *data, size_t bytes, hone_text *out);
/* One value of a .pb file: a TensorProto, SequenceProto, OptionalProto or MapProto, by tag. The value owns
   its data. */
hone_status hone_onnx_read_value(const void *data, size_t bytes, hone_tag, hone_value **out) HONE_CHECKED;
/* The same message, written (value_write.c). */
hone_status hone_onnx_write_value(const hone_value *, const hone_sink *) HONE_CHECKED;
#endif
