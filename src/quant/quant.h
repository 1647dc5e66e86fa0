/* SPDX-License-Identifier: Apache-2.0
   quant: a float graph becomes one of integers, as standard ONNX. The room's table of forms, and what a form
   is given.

   - A form changes `graph` in place, or makes `result`; it comes as imported and settled by
     hone_passes_settle: constants folded, BatchNormalization in the weights, every node standard ONNX.
   - The room runs nothing itself: `runner` does (run/quantize.c), for it may not know plans and sessions.
   - static*.c and their helpers are one form; weights*.c and half.c are others: a file each, a
     line in forms.c. */
#ifndef HONE_QUANT_QUANT_H
#define HONE_QUANT_QUANT_H
#include "hone/quant.h"
#include "passes/passes.h"

typedef struct hone_quant_run hone_quant_run; /* a graph that can be run */
typedef struct {
    /* Takes the graph, also where it fails. What a graph shares with another (hone_graph_copy) must outlive
       the run. */
    hone_status (*open)(const void *context, hone_graph *take, hone_quant_run **out);
    /* out[k]: a new reference, one an output of the graph. */
    hone_status (*run)(hone_quant_run *, hone_value *const *in, hone_value **out);
    /* The same, timed: nanoseconds a run, the least of a few. */
    hone_status (*time)(hone_quant_run *, hone_value *const *in, int runs, double *ns);
    /* Step by step: `see` is told of each step's node, as compiled, and of the nanoseconds that the busiest
       thread spent on it, the least of so many runs. What else runs on the machine hardly shows. */
    hone_status (*profile)(hone_quant_run *, hone_value *const *in, int runs,
                           void (*see)(void *arg, const hone_node *of, double ns), void *arg);
    void (*close)(hone_quant_run *);
    /* What wish->measure_file says of a graph, written to a file for it; NULL: of the float model. */
    hone_status (*measure)(const void *context, const hone_graph *, double *worth);
    const void *context;
} hone_quant_runner;

typedef struct {
    hone_graph *graph;
    const hone_library *library;
    hone_instances *instances;
    const hone_quantizing *wish;
    const char *model; /* its name, for messages */
    hone_quant_runner runner;
    hone_graph *result; /* out: what is written, where it is not `graph` itself; it may share with that */
    hone_text *report;  /* JSON: a form puts members into an open object, each with ", " before it */
    uint64_t began;     /* hone_clock_ns, for wish->seconds */
    hone_text *left;    /* JSON strings: what there was no time for */
} hone_quant_job;

typedef hone_status hone_quant_form(hone_quant_job *);
hone_quant_form hone_quant_weights, hone_quant_dynamic; /* weights.c */
hone_quant_form hone_quant_f16, hone_quant_bf16;        /* half.c */
/* The row of a form; NULL is the first. *needs_data: whether it does anything without samples. */
hone_status hone_quant_form_find(const char *name, hone_quant_form **out, bool *needs_data) HONE_CHECKED;
/* Fails, BAD_INPUT, where something is wished that only another form does. */
hone_status hone_quant_form_fits(const hone_quantizing *) HONE_CHECKED;

hone_quant_form hone_quant_static; /* static.c */
/* weights_rest.c: tables that only Gather reads get 8 bits, a scale a row; "tables", their names, in the
   report. */
hone_status hone_quant_tables(hone_quant_job *) HONE_CHECKED;
/* Any other form, between two looks by the caller's metric; without one the form alone. */
hone_status hone_quant_judged(hone_quant_job *, hone_quant_form *) HONE_CHECKED; /* judge.c */

/* Says how far it is; fails, BAD_INPUT, where the caller wants to stop. */
hone_status hone_quant_tell(const hone_quant_job *, double done, const char *what) HONE_CHECKED;
static inline hone_status hone_quant_no_memory(void) {
    return hone_fail(HONE_NO_MEMORY, "no memory to quantize a model");
}
/* bodies.c: layers inside of bodies of If, Loop and Scan stay as they are: which nodes have them, as a member
   of the report. */
void hone_quant_bodies(const hone_graph *, hone_text *report);
/* "model 'm' has no X": fails, and says what lies in bodies. */
hone_status hone_quant_nothing(const hone_graph *, hone_status, const char *model, const char *what);
/* Whether this share of the time that the caller allows is over; then `what` is left out, and told. */
bool hone_quant_late(const hone_quant_job *, double share, const char *what);
/* A copy of a graph, made into something that runs, with other outputs where `out` is not NULL. */
hone_status hone_quant_open(const hone_quant_job *, const hone_graph *, const hone_vid *out, int n_out,
                            hone_quant_run **run) HONE_CHECKED;
/* Sample k of the caller's, one value an input of the graph; free each with hone_value_drop also after a
   failure. */
hone_status hone_quant_sample(const hone_quant_job *, int64_t k, hone_value **in) HONE_CHECKED;
#endif
