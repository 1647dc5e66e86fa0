/* SPDX-License-Identifier: Apache-2.0
   quant: what the passes on quantized graphs share. Private to passes.

        moves    DequantizeLinear goes behind what only moves elements, QuantizeLinear before it: the move is
                 then one of bytes
        quant    products between such pairs become products of integers
        means    averages and resized pictures between such pairs become ops on integers
        table    an element-wise chain from bytes to bytes becomes a table of its 256 results */
#ifndef HONE_PASSES_QUANT_H
#define HONE_PASSES_QUANT_H
#include "passes/match.h"

typedef struct {             /* operands of a DequantizeLinear or QuantizeLinear of 8 bits and f32 */
    hone_vid q, scale, zero; /* zero -1: absent, and so 0 */
    const hone_value *s;     /* the scales: positive numbers */
    hone_dtype dtype;        /* U8 or I8; where asked for, U16 or I16 */
    bool each;               /* a scale for each place along the axis */
} hone_scaled;
/* Is it one with one scale, or with one for each place along `axis` of q (-1: one only), all constants? `q`:
   the bytes' side of the node. */
bool hone_quant_scales(const hone_graph *, const hone_node *, hone_vid q, int axis, hone_scaled *out);
/* likewise; 16 bits too */
bool hone_quant_scales_wide(const hone_graph *, const hone_node *, hone_vid q, int axis, hone_scaled *out);
/* Scales and zero points as operands of an integer op: one is a number, whatever the rank in which the model
   has it, and a zero point that is absent is 0. */
hone_vid hone_quant_scale_of(hone_matching *, const hone_scaled *);
hone_vid hone_quant_zero_of(hone_matching *, const hone_scaled *);
/* A chain of bytes is evaluated by passes/table.c. */
#endif
