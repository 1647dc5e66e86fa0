/* SPDX-License-Identifier: Apache-2.0
   plan: what of a graph can be quantized: its layers (products with constant weights), the tensors that are
   rounded, and which of these share a grid. What is decided about them (floats, ranges, repairs) stands here
   too; rewrite.c makes a graph of it.

   Rules
   - A layer is Conv, MatMul or Gemm of f32 with constant weights. Its operand is rounded, its weights are
     stored as s8.
   - Behind a layer there is rounding only where another layer reads: Hone adds in integers and goes on in
     floats from there, through activations and residuals, at no cost. Other runtimes want a
     rounding right behind a Conv (and the Relu or Clip that it takes in), or they compute it in floats:
     `portable` writes it. Answers are worse where SiLU or HardSwish follow, and were better for mobilenetv2:
     try both.
   - What only moves elements (Reshape, MaxPool, Concat …) has one grid for all that goes in and comes out, so
     that bytes move.
   - All else computes in f32, from the bytes of what is rounded; a sum or a norm that feeds MatMul alone
     hands its floats on to the others, because what transformers add up must not be
     rounded on the way.
   - Attention's products, whose factors are both computed, ConvTranspose, and recurrent cells stay f32. */
#ifndef HONE_QUANT_PLAN_H
#define HONE_QUANT_PLAN_H
#include "quant/observe.h"
#include "quant/quant.h"

typedef struct {
    int node; /* in the settled graph */
    hone_vid x, w, b, y;
    int axis; /* of w: output channels */
    bool conv;
    bool depthwise;
    bool stays;              /* f32 … */
    const char *why;         /* … because of this; lives for ever */
    bool slow;               /* stays for good: integers take no less time here (pace.c) */
    double float_ns, int_ns; /* of the layer and what floats behind it; 0: not measured */
    double macs;             /* a sample; 0: not known */
    /* of the model's outputs when this layer alone is integers: a share of their power; < 0: not measured */
    double noise;
    double behind; /* of its result where all before it is as it was decided: likewise; < 0: not measured */
    hone_value *bytes, *scales; /* of its weights, kept from one rewriting to the next; NULL: not yet */
    float *shift;               /* what refit.c adds to its bias, one an output channel; or NULL */
    bool fitted;                /* refit.c was here */
    uint8_t units;              /* whose units are in those: 1 its operand's, 2 its result's */
    struct {                    /* the same in other units, which come back when neighbours do */
        hone_value *bytes, *scales;
        float *shift;
        bool fitted;
    } aside[4];
} hone_quant_layer;

typedef struct {  /* tensors with one grid */
    hone_vid var; /* one of them, for its name */
    hone_histogram *seen;
    hone_range range;
    int observer; /* that it came from; -1: none yet */
    /* behind the nodes that read it, as a share of their power; NaN: not tried */
    double error[HONE_OBSERVERS];
    /* Of the operand of layers, where it has channels of its own (repair.c): the extremes of each, and the
       unit that it is divided by before it is rounded; the layer's weights are multiplied by it. NULL: not
       known, or all 1 */
    int64_t channels;
    int axis; /* of the operand */
    float *least, *most, *unit;
    hone_range plain; /* the range without units */
} hone_quant_class;

typedef struct {
    hone_graph *graph;
    hone_vec(hone_quant_layer) layer;
    hone_vec(hone_quant_class) class;
    int32_t *class_of; /* one a var; -1: never rounded */
    int32_t *layer_of; /* one a node; -1 */
    uint8_t *moves;    /* one a node: so many of its operands are moved elements; 0: it computes */
    int n_var, n_node;
    int32_t lowest, highest;
    hone_dtype dtype; /* of rounded tensors */
    bool symmetric, per_tensor, rounds_sums;
    bool integer_ops; /* written as QLinearConv and its kin, which want a rounding behind */
    /* what a Conv reads rounded goes on in floats to whoever else reads it, as what MatMul reads does */
    bool sums_go_on;
} hone_quant_plan;

hone_status hone_quant_plan_make(hone_graph *, const hone_quantizing *, hone_quant_plan *out) HONE_CHECKED;
void hone_quant_plan_free(hone_quant_plan *);
/* on[v]: tensor v is rounded, as layers stand now; so many bytes as there are vars. */
void hone_quant_plan_mark(const hone_quant_plan *, uint8_t *on);
/* The Relu or Clip behind a layer that it takes in: its result; else the layer's own. */
hone_vid hone_quant_result(const hone_quant_plan *, const hone_quant_layer *);

void hone_quant_layer_units(hone_quant_layer *, uint8_t units); /* what it has in these */
void hone_quant_layer_forget(hone_quant_layer *); /* its bytes are rounded anew by the next rewriting */
/* After units of a class have changed: weights are not what they were. */
void hone_quant_plan_forget(hone_quant_plan *, int class);
/* Whether every reader of tensor v that would see it rounded is a layer in integers. */
bool hone_quant_layers_alone(const hone_quant_plan *, hone_vid v);
/* Whether tensor v goes on as floats to those who compute with them: it feeds MatMul and Gemm alone (or Conv,
   too: sums_go_on), and a float op made it. */
bool hone_quant_goes_on(const hone_quant_plan *, hone_vid v);

/* rewrite.c: a new graph, as the plan says, that shares what it can with the plan's. */
hone_status hone_quant_rewrite(hone_quant_plan *, const hone_library *, hone_graph **out) HONE_CHECKED;
/* A layer's weights and bias as the plan stands, in their units, new references (bias: NULL where it is none
   that can be i32); the units of its operand, or NULL; and its plain bytes in place. */
hone_status hone_quant_weights_now(hone_quant_plan *, const hone_library *, hone_quant_layer *,
                                   hone_value **w, hone_value **b, const float **unit) HONE_CHECKED;
hone_grid hone_quant_plan_grid(const hone_quant_plan *, int class);
/* A node of ai.onnx at the end of g, with one new result; -1: no memory or no such op. */
hone_vid hone_quant_emit(hone_graph *g, const hone_library *, const char *op, const char *name,
                         const hone_vid *in, int n_in, const hone_attr *attr, int n_attr);
/* x rounded to a grid and back. */
hone_vid hone_quant_pair(hone_graph *g, const hone_library *, hone_vid x, const hone_grid *, hone_dtype);
hone_vid hone_quant_number(hone_graph *g, const char *name, hone_dtype, double);
/* qoperator.c: pairs around products become ops of integers, in a graph that rewriting made. */
hone_status hone_quant_qoperator(const hone_quant_job *, hone_graph *) HONE_CHECKED;
#endif
