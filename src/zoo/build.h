/* SPDX-License-Identifier: Apache-2.0
   build: a network while it is built. Node by node, with shapes inferred on the way, so that a layer knows
   the channels of what it reads.

   - A failure stays: `status` keeps the first one, later calls do nothing and return -1, and nobody has to
     look before the end.
   - Names are module paths, as exporters write them: inside enter(z, "layer1") and enter(z, "0") a Conv is
     "/layer1/0/Conv" and a weight
     "layer1.0.weight".
   - Weights are hashes of seed, name and place: the same on every machine, whatever else the network has.
   - When measuring, weights are vars without numbers: shapes and counts come out the same and nothing large
     is made. */
#ifndef HONE_ZOO_BUILD_H
#define HONE_ZOO_BUILD_H
#include <stdio.h>

#include "ir/infer.h"
#include "zoo/options.h"

struct hone_zoo {
    hone_graph *g;
    const hone_library *lib;
    hone_instances *instances;
    hone_zoo_options o;
    hone_status status;
    bool measure;
    int64_t parameters, weight_bytes; /* see hone_zoo_size */
    hone_dim batch, seq;              /* a number, or a symbol where dynamic */
    char path[256];                   /* "/layer1/0" */
    char next[64];                    /* the next node's output, or "" */
};

/* A list of operands as two arguments. */
#define HONE_ZOO_IN(...) \
    (const hone_vid[]){__VA_ARGS__}, (int)(sizeof((const hone_vid[]){__VA_ARGS__}) / sizeof(hone_vid))
#define HONE_ZOO_DIMS(...) \
    (const hone_dim[]){__VA_ARGS__}, (int)(sizeof((const hone_dim[]){__VA_ARGS__}) / sizeof(hone_dim))

static inline int64_t hone_zoo_option(const hone_zoo *z, hone_zoo_key k) { return z->o.value[k]; }
void hone_zoo_enter(hone_zoo *, const char *format, ...) HONE_PRINTF(2, 3);
void hone_zoo_leave(hone_zoo *);
/* options that do not go together */
void hone_zoo_wrong(hone_zoo *, const char *format, ...) HONE_PRINTF(2, 3);

/* ---- vars ---- */
/* nothing makes it yet */
hone_vid hone_zoo_var(hone_zoo *, const char *name, hone_dtype, const hone_dim *, int rank);
hone_vid hone_zoo_input(hone_zoo *, const char *name, hone_dtype, const hone_dim *, int rank);
void hone_zoo_name(hone_zoo *, const char *name); /* what the next node makes is called so, not by its path */
void hone_zoo_output(hone_zoo *, hone_vid);
hone_dim hone_zoo_dim(const hone_zoo *, hone_vid, int axis); /* axis from the end where negative */
hone_vid hone_zoo_ints(hone_zoo *, const int64_t *, int n);  /* i64[n] */
hone_vid hone_zoo_int(hone_zoo *, int64_t);                  /* i64[] */
hone_vid hone_zoo_float(hone_zoo *, double);                 /* f32[] */
hone_vid hone_zoo_const(hone_zoo *, const char *leaf, hone_value *take);

/* ---- nodes ---- */
/* The first output; further ones are numbered on from it. */
hone_vid hone_zoo_op(hone_zoo *, const char *op, const hone_vid *in, int n_in);
/* Attributes as text, "group=32 pads=1,1,1,1 mode=nearest"; their kinds come from the op's row. */
hone_vid hone_zoo_op_with(hone_zoo *, const char *op, const hone_vid *in, int n_in, const char *attrs, ...)
    HONE_PRINTF(5, 6);
hone_vid hone_zoo_op_many(hone_zoo *, const char *op, const hone_vid *in, int n_in, int n_out,
                          const char *attrs, ...) HONE_PRINTF(6, 7);

/* ---- shapes ---- */
/* i64 contents for Reshape and Expand. Where a dim is symbolic it is taken from `from`, which has such a dim,
   by Shape and Gather. */
hone_vid hone_zoo_shape(hone_zoo *, hone_vid from, const hone_dim *, int n);
hone_vid hone_zoo_reshape(hone_zoo *, hone_vid x, hone_vid from, const hone_dim *, int n);
hone_vid hone_zoo_transpose(hone_zoo *, hone_vid x, const char *perm); /* "0,2,1,3" */
hone_vid hone_zoo_slice(hone_zoo *, hone_vid x, int axis, int64_t from, int64_t to);

/* ---- weights: weights.c ---- */
/* `parameters`: how many of them the published count has. Uniform in center ± reach. */
hone_vid hone_zoo_weight(hone_zoo *, const char *leaf, const hone_dim *, int rank, double center,
                         double reach);
/* The same, tied to one that exists, or not a parameter: counts nothing. */
hone_vid hone_zoo_buffer(hone_zoo *, const char *leaf, const hone_dim *, int rank, double center,
                         double reach);
/* The numbers alone, for who computes with them before they become a constant. */
void hone_zoo_fill(const hone_zoo *, const char *leaf, float *to, int64_t n, double center, double reach);
#endif
