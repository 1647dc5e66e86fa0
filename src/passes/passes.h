/* SPDX-License-Identifier: Apache-2.0
   passes: graph → graph. One file a pass, one table; in debug builds the verifier runs after each. */
#ifndef HONE_PASSES_PASSES_H
#define HONE_PASSES_PASSES_H
#include "ir/infer.h"
#include "ir/target.h"

typedef struct {
    hone_graph *graph;
    hone_instances *instances;
    /* out: how many things the pass did; shapes are inferred again only after passes that say they did
       something */
    int changed;
    int64_t spent;             /* elements of weights that it computed anew */
    const hone_target *target; /* one a unit that nodes are placed on; NULL: nobody wishes anything */
    hone_dtype precision;      /* that tensors of f32 count as; NONE: as f32 */
} hone_passing;
typedef hone_status hone_pass_fn(hone_passing *);
/* All passes in order, bodies included. `report`: JSON array of {"pass", "changed", "before", "nodes"}. */
hone_status hone_passes_run(hone_graph *, hone_instances *, const hone_target *,
                            hone_text *report) HONE_CHECKED;
/* Only those that ask where nodes are placed and what is wished there, for a graph that has been through all
   others (hone_graph_copy). */
hone_status hone_passes_place(hone_graph *, hone_instances *, const hone_target *, hone_dtype precision,
                              hone_text *report) HONE_CHECKED;
/* Only those that leave standard ONNX for a reader of any age: constants folded, scales in weights; for what
   is to be rewritten and exported (quant/). */
hone_status hone_passes_settle(hone_graph *, hone_instances *) HONE_CHECKED;

hone_pass_fn hone_pass_infer; /* shapes, types and small contents */
/* what a Loop or Scan carries along and never changes becomes a capture */
hone_pass_fn hone_pass_carried;
hone_pass_fn hone_pass_fold;     /* what depends on constants alone is computed now */
hone_pass_fn hone_pass_settle;   /* likewise, but what is quantized stays so: its readers may want it so */
hone_pass_fn hone_pass_moves;    /* what is quantized moves as bytes */
hone_pass_fn hone_pass_quant;    /* products of what is quantized: integer ops */
hone_pass_fn hone_pass_means;    /* averages and resized pictures, likewise */
hone_pass_fn hone_pass_blocks;   /* products with weights of few bits: MatMulNBits */
hone_pass_fn hone_pass_table;    /* element-wise chains from bytes to bytes become tables */
hone_pass_fn hone_pass_stored;   /* weights of f16 and bf16 that are cast to f32 are taken as they are */
hone_pass_fn hone_pass_half;     /* f16 and bf16 between nodes become f32 */
hone_pass_fn hone_pass_dead;     /* what nobody reads goes */
hone_pass_fn hone_pass_same;     /* equal nodes on equal operands become one */
hone_pass_fn hone_pass_identity; /* Identity, Cast to the same type, Transpose in order, … */
/* Reshape, Transpose and Cast one after another become one; computed shapes become constants */
hone_pass_fn hone_pass_views;
hone_pass_fn hone_pass_pad;    /* zeros around pixels go into Conv and AveragePool */
hone_pass_fn hone_pass_stride; /* kernels of ConvTranspose become multiples of their strides */
hone_pass_fn hone_pass_sink;   /* a Squeeze behind a convolution goes behind its bias and activation */
/* scales and shifts of channels, BatchNormalization too, go into weights */
hone_pass_fn hone_pass_affine;
hone_pass_fn hone_pass_norm;       /* layer norm and RMS norm written out */
hone_pass_fn hone_pass_activation; /* Gelu, HardSwish, Softmax written out */
hone_pass_fn hone_pass_lookup;     /* products with ones and zeros become rows of a table */
hone_pass_fn hone_pass_rotary;     /* rotary positions written out */
hone_pass_fn hone_pass_attention;  /* queries, keys, Softmax and values written out */
hone_pass_fn hone_pass_masks;      /* what attention adds, the same at any size, is a constant */
hone_pass_fn hone_pass_transposes; /* Transposes go around products; chains of views become short */
hone_pass_fn hone_pass_joins;      /* a Concat takes what another Concat or a Split has in one piece */
hone_pass_fn hone_pass_floats;     /* products of integers become products of floats where these are faster */
hone_pass_fn
    hone_pass_unsigned; /* bytes that count from -128 become unsigned where units want zeros as pads */
hone_pass_fn hone_pass_abreast; /* products of one tensor with constants become one product */
hone_pass_fn hone_pass_layout;  /* vars that are only transposed are stored transposed */
hone_pass_fn hone_pass_widen;   /* every element-wise reader of a DequantizeLinear has its own */
hone_pass_fn hone_pass_fuse;    /* element-wise chains and epilogues become one node */
#endif
