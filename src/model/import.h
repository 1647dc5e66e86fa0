/* SPDX-License-Identifier: Apache-2.0
   import: one model being read. Between onnx.c, which opens the file, and import.c, which walks it. */
#ifndef HONE_MODEL_IMPORT_H
#define HONE_MODEL_IMPORT_H
#include "model/draft.h"

typedef struct {
    const char *domain;
    int version;
} hone_onnx_opset;
typedef hone_vec(hone_onnx_opset) hone_onnx_opsets;
typedef struct {
    const char *domain, *name, *overload;
    uint32_t hash;   /* of the name: the list is sorted by it */
    hone_wire proto; /* FunctionProto */
    hone_onnx_opsets opsets;
    hone_vec(hone_attr) defaults; /* of attributes that a call leaves out */
} hone_onnx_function;

typedef struct {
    hone_import im;
    hone_onnx_opsets opsets;
    hone_vec(hone_onnx_function) functions;
} hone_onnx_model;

/* fills im.root; what is wrong stands in im.problems */
void hone_onnx_import(hone_onnx_model *, hone_wire model);
#endif
