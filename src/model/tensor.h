/* SPDX-License-Identifier: Apache-2.0
   tensor: TensorProto and its relatives become values. */
#ifndef HONE_MODEL_TENSOR_H
#define HONE_MODEL_TENSOR_H
#include "base/file.h"
#include "base/value.h"
#include "model/wire.h"

/* Where a model's bytes lie: the model itself and the files of its external data, each mapped once. Kept by
   the graph. */
typedef struct {
    hone_arena *arena;
    const char *beside; /* a path in the model's folder; NULL: there is no folder, so no external data */
    hone_file model;
    hone_vec(const char *) name; /* external files, by location … */
    hone_vec(hone_file) file;    /* … and mapped */
} hone_onnx_files;
void hone_onnx_files_free(void *); /* takes a hone_onnx_files, NULL is fine */

/* `files` NULL: the value owns its data, and external data is refused. Else aligned data is borrowed from the
   files. */
hone_status hone_onnx_tensor(hone_wire, hone_onnx_files *, hone_value **out) HONE_CHECKED;
hone_status hone_onnx_sparse(hone_wire, hone_onnx_files *, hone_value **out) HONE_CHECKED; /* made dense */
/* The name field (TensorProto's number is 8), or "" */
hone_field hone_onnx_name_field(hone_wire, uint32_t number);
#endif
