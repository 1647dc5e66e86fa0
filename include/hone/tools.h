/* SPDX-License-Identifier: Apache-2.0
   tools.h: tools built on hone.h: checking, one ONNX test folder and many of them; and what a program that
   explains models asks for. The rules at the top of hone.h hold here too. */
#ifndef HONE_TOOLS_H
#define HONE_TOOLS_H
#include "hone/hone.h"
#ifdef __cplusplus
extern "C" {
#endif
/* How far `got` is from `want`: |got - want| <= atol + rtol * |want|, NaN equals NaN, shape and dtype exact,
   sequences and optionals by member. */
typedef struct {
    int ok;
    double max_abs, max_rel;
    int64_t wrong, elements;
    char why[256]; /* first difference in words */
} hone_difference;
HONE_API void hone_compare(const hone_value *got, const hone_value *want, double rtol, double atol,
                           hone_difference *out);
/* The same for tensors of numbers that two programs made: element by element in memory's order, whatever
   their shapes and types, and measured by the largest magnitude of `want`, by which sums in another order
   differ: max_rel is max_abs over it (infinite: it is all zeros, a NaN or an infinity stands on one side
   only, or they differ in size), and is at most `tolerance` where it is ok. */
HONE_API void hone_compare_answers(const hone_value *got, const hone_value *want, double tolerance,
                                   hone_difference *out);
/* Runs one ONNX backend case: FOLDER/model.onnx with every FOLDER/test_data_set_*. passed 1, failed 0,
   skipped -1; `why` in one line; `op` names what the case is about (the op type of its only or last node). */
typedef struct {
    int passed;
    char op[64];
    char why[512];
} hone_case;
HONE_API void hone_conformance_case(const char *folder, double rtol, double atol, const hone_options *,
                                    hone_case *out);

/* hone_model_load with some defaults left open. An initializer that the file lists as an input too is a
   default, and a constant otherwise; the `n` named here are inputs of the model, in the file's order, and
   must be given at each run. Fails, BAD_INPUT, for a name that is not listed as an input. */
HONE_API hone_status hone_model_load_open(const char *path, const char *const *names, int n,
                                          hone_model **out);

/* From here on the model only says what its inputs and outputs are: its weights are freed. For whoever opens
   samples for a model that is run elsewhere. Fails, BAD_INPUT, while a session holds it; sessions and reports
   of it fail from then on. */
HONE_API hone_status hone_model_bare(hone_model *);

/* ---- more reports, as JSON; free *out with hone_text_release ------------------------------------------- */
typedef struct {
    const int64_t *dims;
    int rank; /* -1 for an input that is no tensor */
} hone_shape;
/* What a run with inputs of these shapes, one an input of the model, would do; nothing is run. whole (false:
   the shapes after cut_at depend on the numbers of waits_for, and are planned when those are there),
   arena_bytes, lower_bound_bytes, sum_bytes, scratch_bytes (a thread), packed_bytes, input_bytes,
   output_bytes, parameter_bytes; flops, bytes and known, of the model and one object a node; blocks (pieces
   of the arena: name, bytes, at, first and last step), used (bytes of the arena in use, one number a step),
   steps (number of the node, node, op, tactic, tiles). Fails where a run with these shapes would fail before
   it begins. */
HONE_API hone_status hone_model_plan(const hone_model *, const hone_shape *in, char **out);
/* The same with a session's options, of which threads, precision, device and place count. A step says its
   device; devices: name, steps, arena_bytes of each; copies, and copied_bytes a run, between their memories;
   host: nodes that go to the CPU instead of the device that was asked for, and why. */
HONE_API hone_status hone_model_plan_with(const hone_model *, const hone_options *, const hone_shape *in,
                                          char **out);
/* The graph of a file as imported, before any pass: a list of graphs, the model's first, then bodies, as the
   model topic "graph" has it. */
HONE_API hone_status hone_file_graph(const char *path, char **out);
/* Whether a file may be written by a program that uses a model: fails, BAD_INPUT, where `path` is the model's
   own file or one of those that its external data lie in, under whatever name or link. In: `model`, a path
   (or zoo:…), which need not be loaded. */
HONE_API hone_status hone_not_source(const char *model, const char *path);
/* The machine: cpu (name, architecture, cores, levels, caches), memory, kernels (the one chosen of each
   family). measure 1: also measured, a copy and multiply-adds on one thread and on all, in about a second;
   noisy where others use the machine. */
HONE_API hone_status hone_machine_report(int measure, char **out);
/* The other devices: what each is, or what it would want; measure 1: its copies and multiply-adds. Opens
   them all: a process that forks afterwards cannot use them in its children. */
HONE_API hone_status hone_device_report(int measure, char **out);
/* The two figures alone, on so many threads: what a run is held against (a roofline). In: threads, 0 for all
   cores; more than there are cores is as many as there are. Out: what was measured, in about a quarter of a
   second; the best of many short rounds, so that other work on the machine spoils it late. Threads: not
   while something else runs in this process. */
typedef struct {
    int threads;
    /* bytes read and as many written, counted once; 0: no memory to measure it with */
    double copy_bytes_per_s;
    /* a fused multiply-add is two; of a device: in the precision that was asked for */
    double f32_flops_per_s;
} hone_speed;
HONE_API hone_status hone_machine_speed(int threads, hone_speed *out);
/* The same of a device, "cuda:0": a copy within its memory, and large products in this precision (F32:
   multiply-adds) by the kernel that networks get. Out: threads 0; figures that a device cannot say are 0.
   Fails where it is not there. */
HONE_API hone_status hone_device_speed(const char *device, hone_dtype precision, hone_speed *out);

/* A name or text out of a model, so that it can be shown on a terminal: control characters, marks that turn
   the direction of text and bytes that are no UTF-8 are written as \n, \x1b, \u202e; all else stays.
   hone_error() is so already; names of ports and strings of tensors are as they stand in the model. Out: a
   copy, cut to `room` bytes, that ends in a zero; the bytes written, without that zero. lines 1: line ends
   stay. */
HONE_API size_t hone_text_visible(char *out, size_t room, const char *text, size_t bytes, int lines);

/* One array of a NumPy archive (.npz) by its name, as numpy.savez or savez_compressed wrote it; and the names
   there are, as a JSON list, freed with hone_text_release. Fails: IO; BAD_INPUT for what is damaged and for a
   name that is not there. */
HONE_API hone_status hone_npz_read(const char *path, const char *name, hone_value **out);
HONE_API hone_status hone_npz_names(const char *path, char **out);
/* A tensor of numbers as one of another type. Fails: BAD_INPUT for a number that the type cannot hold (300 as
   u8, 1.5 as i64, 1e9 as f16); floats round to nearest. */
HONE_API hone_status hone_value_cast(const hone_value *, hone_dtype to, hone_value **out);

/* Which of these names was meant by a mistyped word of so many bytes; NULL where none is near. Borrowed: it
   is one of them. */
HONE_API const char *hone_nearest(const char *word, size_t bytes, const char *const *names, int n);

/* ---- tuning -------------------------------------------------------------------------------------------- */
/* Measures, with these inputs on this machine, the choices there are for each distinct problem of a model
   (panel widths, blocks, ways to convolve), and writes the best as wisdom (hone_options): beside it, in
   FILE.trials, all that was measured, with which a later call goes on where this one stopped. A call
   measures in rounds, each choice within the model as it runs; what was best is measured again against the
   estimate, and at last the whole model with and without, in turns; where that is not faster, nothing is
   written. In: inputs as for a run; options, or NULL for the defaults. Out: a report, as JSON: file,
   seconds, rounds, tried, candidates, resumed (trials of earlier calls), complete (nothing is left to try),
   note, problems (problem, nodes, layers, estimate and best with choice and ns, gain, tried, candidates),
   model (before_ms, after_ms, gain, runs), kept. Free it with hone_text_release. Threads: not while
   something else runs in this process. Fails: as a run does; IO where the file cannot be written; BAD_INPUT
   where it holds something that is no wisdom. */
typedef struct {
    double seconds;   /* 0: 30 */
    int threads;      /* of a run, at most; 0: all cores */
    const char *file; /* NULL: the default one */
    /* as in hone_options: schedules of the kernels that are printed for it are measured there */
    const char *device, *place;
    /* Called between rounds, where it is not NULL: the share of the time that is spent, and what is going on.
       Not 0: stop measuring, and write what was found. */
    int (*progress)(void *arg, double done, const char *what);
    void *arg;
    hone_dtype precision; /* as in hone_options */
    int reserved[7];      /* zero */
} hone_tuning;
HONE_API hone_status hone_tune(const hone_model *, hone_value *const *in, const hone_tuning *, char **out);
#ifdef __cplusplus
}
#endif
#endif
