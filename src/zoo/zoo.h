/* SPDX-License-Identifier: Apache-2.0
   zoo: well-known networks, built by code with weights from a seed. Nothing is read from disk, and nothing
   is trained: the shapes, the ops and the parameter counts are those of the published networks, the numbers
   are noise of a sane size. Used as "zoo:NAME?option=value&…" wherever a model's path may stand. */
#ifndef HONE_ZOO_ZOO_H
#define HONE_ZOO_ZOO_H
#include "ir/graph.h"

typedef struct hone_zoo hone_zoo; /* a network while it is built: build.h */

typedef struct {
    const char *name, *what; /* "resnet50", "image classifier: 16 bottleneck blocks" */
    void (*build)(hone_zoo *, const void *plan);
    const void *plan;    /* the architecture as data, or NULL */
    const char *options; /* "batch=1 image=224:32-4096/32": default, lowest and highest, step (options.c) */
    /* parameters with default options, as the authors or their libraries count them; 0: our own design */
    int64_t published;
} hone_zoo_model;
extern const hone_zoo_model hone_zoo_models[]; /* up to a NULL name */

/* A spec is "NAME" or "NAME?key=value&key=value", with or without "zoo:" in front. */
#define HONE_ZOO_PREFIX "zoo:"
/* The network as a graph: verified, shapes inferred. */
hone_status hone_zoo_graph(const char *spec, const hone_library *, hone_graph **out) HONE_CHECKED;

typedef struct {
    /* as published: tied ones once, batch norms with scale and shift though they are folded */
    int64_t parameters;
    int64_t weight_bytes; /* of the constants */
    int nodes;
    double flops; /* a run; 0 where a dim is free */
} hone_zoo_size;
/* The same without the numbers: quick, and small. `inputs` gets what it takes, for people: "image f32[1, 3,
   224, 224]". */
hone_status hone_zoo_measure(const char *spec, const hone_library *, hone_zoo_size *out,
                             hone_text *inputs) HONE_CHECKED;
#endif
