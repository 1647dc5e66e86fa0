/* SPDX-License-Identifier: Apache-2.0
   attribute: what a node says of itself, as read from the file. */
#ifndef HONE_MODEL_ATTRIBUTE_H
#define HONE_MODEL_ATTRIBUTE_H
#include "model/draft.h"

typedef struct {
    hone_attr attr; /* kind HONE_ATTR_BODY: its graph is below, not read yet */
    hone_field graph;
    bool untyped;    /* its type had to be told by what it holds */
    const char *ref; /* in a function: the attribute of the call that this one stands for; NULL: none */
} hone_onnx_attr;
/* On failure a message that goes behind "attribute 'x' " (HONE_NO_MEMORY: none); the name is set. All lives
   as long as the load. */
hone_status hone_onnx_read_attr(hone_import *, hone_wire, hone_onnx_attr *out) HONE_CHECKED;
#endif
