/* SPDX-License-Identifier: Apache-2.0
   hone.h: the public interface of libhone. Load a model, run it, ask about it.

       hone_model *model = NULL;      hone_session *session = NULL;      hone_value *in[1] = {0}, *out[1] =
                                                                         {0};
       hone_status s = hone_model_load("model.onnx", &model);
       if (!s) s = hone_session_create(model, NULL, &session);
       if (!s) s = hone_tensor_create(HONE_DTYPE_F32, dims, 4, &in[0]);      then fill hone_value_data(in[0])
       if (!s) s = hone_session_run(session, in, out);
       if (s) puts(hone_error());

   Rules that hold for every function, and are not repeated at each:

   Handles     are opaque. `…_free(NULL)` is fine. Pointers that a function wants must not be NULL unless it
   says so.
   Failure     a call that can fail returns hone_status. On failure its outputs are as before, and
   hone_error() says in one line what was
               wrong and what to do. Nothing in the library prints, exits or aborts. HONE_NO_MEMORY is
               possible wherever something is made.
   Ownership   what is written to an `out` argument is the caller's, who frees it with the `…_free` of its
   kind. What a function returns
               directly is borrowed, and lives as long as the handle it was asked of, unless it says
               otherwise.
   Threads     any function may be called from any thread. A model is immutable: any number of sessions and
   threads at once. A session
               runs one thing at a time. A value may be read by many threads at once, and is written by one
               alone; its count of references
               is atomic.
   Text        is UTF-8. Names and strings come as they stand in the model.

   Load and compile are one call: what a model is compiled to depends on the model alone. What depends on the
   shapes of a run is made at the first run with them, and kept by the session; so options belong to the
   session, and there is no third step to get wrong. */
#ifndef HONE_HONE_H
#define HONE_HONE_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HONE_API __attribute__((visibility("default")))
#else
#define HONE_API
#endif

#define HONE_VERSION_MAJOR 0
#define HONE_VERSION_MINOR 1
#define HONE_VERSION_PATCH 0
/* The version of the library that runs, "0.1.0"; the macros are of the one compiled against. Lives for
   ever. */
HONE_API const char *hone_version(void);

typedef enum {
    HONE_OK = 0,
    HONE_BAD_INPUT,     /* the model, file, tensor or argument is wrong */
    HONE_NOT_SUPPORTED, /* right, but Hone cannot do it (yet) */
    HONE_NO_MEMORY,
    HONE_IO, /* the system refused: a file, a device */
    HONE_BUG /* ours: please report */
} hone_status;

/* The calling thread's last message: one line, or, of a model with several problems, a line each; "" when
   there was none. A success does not clear it. Borrowed: until the thread's next failing call. */
HONE_API const char *hone_error(void);

/* ---- types of elements --------------------------------------------------------------------------------- */
typedef enum { /* ONNX's numbers */
               HONE_DTYPE_NONE = 0,
               HONE_DTYPE_F32 = 1,
               HONE_DTYPE_U8,
               HONE_DTYPE_I8,
               HONE_DTYPE_U16,
               HONE_DTYPE_I16,
               HONE_DTYPE_I32,
               HONE_DTYPE_I64,
               HONE_DTYPE_STRING,
               HONE_DTYPE_BOOL, /* a byte, 0 or 1 */
               HONE_DTYPE_F16,
               HONE_DTYPE_F64,
               HONE_DTYPE_U32,
               HONE_DTYPE_U64,
               HONE_DTYPE_C64, /* two f32 */
               HONE_DTYPE_C128,
               HONE_DTYPE_BF16,
               HONE_DTYPE_F8E4M3FN,
               HONE_DTYPE_F8E4M3FNUZ,
               HONE_DTYPE_F8E5M2,
               HONE_DTYPE_F8E5M2FNUZ,
               /* types below 8 bits have a byte an element in memory, in its low bits; only files pack
                  them */
               HONE_DTYPE_U4,
               HONE_DTYPE_I4,
               HONE_DTYPE_F4E2M1,
               HONE_DTYPE_F8E8M0,
               HONE_DTYPE_U2,
               HONE_DTYPE_I2,
               HONE_DTYPE_COUNT,
               /* the type of no tensor: hone_options.precision */
               HONE_PRECISION_TF32 = 60
} hone_dtype;
/* "f32"; "tf32" for that precision; "none" for what is no dtype. Lives for ever. */
HONE_API const char *hone_dtype_name(hone_dtype);

/* ---- values: what goes into a run and comes out -------------------------------------------------------- */
/* Five kinds of thing: tensors of numbers and tensors of strings (kind TENSOR, told apart by the dtype),
   sequences, optionals and maps. Values are counted: whoever stores one shares it, and the last
   hone_value_free ends it.

       sequence   its items, any number, of any kind            optional   no item, or one
       map        two items: the keys, a vector of integers or strings, and as many values: a vector, or a
                  sequence */
typedef struct hone_value hone_value;
typedef enum { HONE_VALUE_TENSOR, HONE_VALUE_SEQUENCE, HONE_VALUE_OPTIONAL, HONE_VALUE_MAP } hone_value_kind;

/* A dense row-major tensor of its own; contents zero (strings: empty).
   In: rank from 0 to 16, so many dims, none negative. Out: one reference. Fails: BAD_INPUT or NOT_SUPPORTED
   for such dims or a dtype that is none. */
HONE_API hone_status hone_tensor_create(hone_dtype, const int64_t *dims, int rank, hone_value **out);

/* The same over the caller's memory: nothing is copied, nothing freed.
   In: `data` is dense, aligned as its elements ask, and outlives the value, and everything that shares it; it
   may be NULL where a dim is 0. A value over memory that must not be written is never to be given as an
   output to fill. Not for strings. */
HONE_API hone_status hone_tensor_borrow(hone_dtype, const int64_t *dims, int rank, const void *data,
                                        hone_value **out);

/* A sequence or an optional of `n` items (an optional: 0 or 1). Holds a reference of its own to each item;
   lists nest at most 64 deep. */
HONE_API hone_status hone_list_create(hone_value_kind, hone_value *const *items, int n, hone_value **out);

/* A map. In: `keys`, a tensor of rank 1, i64 (or another integer) or string; `values`, a tensor of rank 1 or
   a sequence, as many as keys. Holds a reference of its own to both. Fails: BAD_INPUT where they are not
   so. */
HONE_API hone_status hone_map_create(hone_value *keys, hone_value *values, hone_value **out);

/* A sequence of maps that share their keys, as classifiers make it, in one piece: `keys`, their vector,
   shared with them, and `values`, a new tensor of numbers [maps, keys]. Fails: NOT_SUPPORTED where the maps
   do not share their keys, or their values are no vectors of numbers of one type; BAD_INPUT where it is no
   sequence of maps, or an empty one. */
HONE_API hone_status hone_maps_table(const hone_value *, hone_value **keys, hone_value **values);

/* One call in place of several, for who has room of the right size and asks often. Copies the numbers of a
   tensor to `to` where it lies on the host and is of this type and these dims; of such maps the values,
   [maps, keys], where their keys are those of `keys`. Returns 1; or 0, and nothing is written. */
HONE_API int hone_value_copy_to(const hone_value *, hone_dtype, const int64_t *dims, int rank, void *to);
HONE_API int hone_maps_copy_to(const hone_value *, const hone_value *keys, hone_dtype, const int64_t *dims,
                               void *to);

/* one reference more; returns its argument; NULL is fine */
HONE_API hone_value *hone_value_share(hone_value *);
HONE_API void hone_value_free(hone_value *); /* one reference less */

/* What a value is. Of NULL, and of kinds that have no such thing, there is none: NONE, 0 or NULL. */
HONE_API hone_value_kind hone_value_kind_of(const hone_value *);
/* of the elements; of a list: of the tensors in it where all agree */
HONE_API hone_dtype hone_value_dtype(const hone_value *);
HONE_API int hone_value_rank(const hone_value *);
HONE_API const int64_t *hone_value_dims(const hone_value *); /* so many as the rank */
HONE_API int64_t hone_value_elements(const hone_value *);    /* of a tensor */
/* of a numeric tensor: dense, row-major. To write through it, see Threads */
HONE_API void *hone_value_data(hone_value *);
HONE_API size_t hone_value_bytes(const hone_value *); /* that hone_value_data has */
/* of a sequence, optional (0 or 1) or map (2: keys, values) */
HONE_API int hone_value_items(const hone_value *);
/* borrowed; NULL where there is none of that number */
HONE_API hone_value *hone_value_item(const hone_value *, int);

/* Element k of a numeric tensor, whatever its dtype; NaN where there is no such number. */
HONE_API double hone_value_number(const hone_value *, int64_t k);

/* Element k of a string tensor. Out: *bytes (may be NULL), its length: a text may hold zeros, and is not
   ended by one. Borrowed: until the element is set again or the value ends. "" where there is none. */
HONE_API const char *hone_value_text(const hone_value *, int64_t k, size_t *bytes);

/* Sets element k of a string tensor that hone_tensor_create made; the text is copied. Fails: BAD_INPUT where
   there is no such element. */
HONE_API hone_status hone_value_set_text(hone_value *, int64_t k, const char *text, size_t bytes);

/* Reads a file: .npy (type and shape by its header), .pb (ONNX's TensorProto, SequenceProto, OptionalProto or
   MapProto, by `kind`), or .bin (raw little-endian elements, as `dtype` and `dims` say; for the others NONE
   and NULL). Fails: IO, or BAD_INPUT for contents that are wrong. */
HONE_API hone_status hone_value_read(const char *path, hone_value_kind kind, hone_dtype, const int64_t *dims,
                                     int rank, hone_value **out);

/* Writes a value, by the ending of the path, as what hone_value_read reads: .npy or .bin a numeric tensor,
   .pb any value. The whole file, or nothing. */
HONE_API hone_status hone_value_write(const hone_value *, const char *path);

/* ---- values on devices --------------------------------------------------------------------------------- */
/* A copy of a numeric tensor in the memory of a device, "plain:0", or back on the host, "cpu"; wherever it
   was. A tensor on a device has type and shape, but no data and no numbers that the host can read:
   hone_value_data is NULL, and it cannot be written to a file, compared, put into lists. It is an input for
   sessions that have that device, and then not copied again; its numbers must not decide shapes. */
HONE_API hone_status hone_value_bring(const hone_value *, const char *device, hone_value **out);
/* Where it lies: "cpu", or "plain:0". Out: cut to `room` bytes, ends in a zero. */
HONE_API void hone_value_where(const hone_value *, char *out, size_t room);

/* ---- tensors of other libraries: DLPack ---------------------------------------------------------------- */
/* The structs are those of DLPack's header, versioned (1.x) and not; include it, from wherever it is, to look
   inside them. Here they are only passed on. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* A value over somebody's tensor. Takes it, on success only: its deleter runs when the value ends (or at
   once, where it had to be copied). Not copied where it is dense and aligned; any other strides are, into a
   dense tensor. Read-only memory is fine for an input of a run.
   Memory of a device that is here (CUDA's, or a plugin's that says so in its table) becomes a value on that
   device (hone_value_where), an input for its sessions: as it is where it is dense, begins at byte
   0 and is aligned as the device wants it; by a copy on the device where it is only dense.
   Fails: NOT_SUPPORTED for a device that is not here, strides on a device, a type that is not ours, or
   vectors as elements; types below 8 bits need the versioned form with its flag for a byte an element. Then
   it is still the caller's. */
HONE_API hone_status hone_value_from_dlpack(struct DLManagedTensor *take, hone_value **out);
HONE_API hone_status hone_value_from_dlpack_versioned(struct DLManagedTensorVersioned *take,
                                                      hone_value **out);
/* The same for a tensor on a device that a stream of its maker's may still be working on: all that the
   stream was given so far is done when this returns. Streams are numbers as in Python's
   __dlpack__(stream=…): for CUDA 1 the legacy default stream, 2 the calling thread's, else a cudaStream_t.
   The two functions above take a tensor as ready. Fails also: NOT_SUPPORTED for a device without streams. */
#define HONE_STREAM_NONE (-1) /* nothing is under way */
HONE_API hone_status hone_value_from_dlpack_stream(struct DLManagedTensorVersioned *take, int64_t stream,
                                                   hone_value **out);

/* Somebody's view of a tensor: shares the value until the view's deleter is called, by whoever uses it last,
   on any thread. Nothing is copied. A value on a device goes with its device's type and number; it is
   complete, as every value is, so any stream may read it at once. Fails: BAD_INPUT for what is no tensor of
   numbers; NOT_SUPPORTED for a type below 8 bits in the unversioned form, and for a device whose memory
   others cannot use (OpenCL's). */
HONE_API hone_status hone_value_to_dlpack(hone_value *, struct DLManagedTensor **out);
HONE_API hone_status hone_value_to_dlpack_versioned(hone_value *, struct DLManagedTensorVersioned **out);

/* ---- ops of your own ----------------------------------------------------------------------------------- */
/* Adds ops, written as text, to those that models may use: `op my.ops.Swish 1 (x[I..]: T) -> y[I..]: T` and
   its lines; docs/02-programs.md is the language. Once for the process, before the models that use them are
   loaded; models loaded earlier do not change. Whatever Hone does with its own ops (shapes, fusion, vector
   code, threads) it does with these. In: `source` names the text in messages; the text need not end in a
   zero, and is copied. Out: nothing; the ops stay until the process ends, there is nothing to free. Threads:
   any. Fails: BAD_INPUT with "source:line:column: what"; then none of the text's ops was added. An op must
   be a program (no `host`, `view` or `control`), be in a domain of its own, and not be there already: the
   very same text again is fine, another meaning for a name is refused. */
HONE_API hone_status hone_ops_add(const char *source, const char *text, size_t bytes);

/* ---- models -------------------------------------------------------------------------------------------- */
typedef struct hone_model hone_model;

/* Imports, checks, optimizes and compiles an ONNX model. External data is looked for beside the file. The
   file is mapped: it must not be changed in place while the model lives (replacing it is fine).
   Out: a model, immutable. Fails: IO; BAD_INPUT or NOT_SUPPORTED with all the problems found, a line each. */
HONE_API hone_status hone_model_load(const char *path, hone_model **out);

/* The same from memory, which is copied: it may go as soon as the call is back. There can be no external
   data. */
HONE_API hone_status hone_model_load_memory(const void *data, size_t bytes, hone_model **out);

/* Writes the optimized model as standard ONNX, for other runtimes: whole or not at all. Above 2 GB the
   weights go to PATH.data beside it. Fails: IO; BAD_INPUT where the model was read from that very file;
   NOT_SUPPORTED where a node has no form in standard ONNX. */
HONE_API hone_status hone_model_save(const hone_model *, const char *path);

/* The caller is done with it. Sessions made of it hold it until they end, so the order does not matter. */
HONE_API void hone_model_free(hone_model *);

typedef struct { /* an input or output; lives as long as the model */
    const char *name;
    hone_value_kind kind;
    hone_dtype dtype;    /* of the tensor, or of the tensors inside */
    int rank;            /* -1: not known before the run */
    const int64_t *dims; /* so many as the rank; -1: free, given by the run */
    const char *shape;   /* in words: "f32[batch, 3, 224, 224]" */
} hone_port;
HONE_API int hone_model_inputs(const hone_model *);
HONE_API int hone_model_outputs(const hone_model *);
/* NULL where there is none of that number */
HONE_API const hone_port *hone_model_input(const hone_model *, int k);
HONE_API const hone_port *hone_model_output(const hone_model *, int k);

/* ---- sessions ------------------------------------------------------------------------------------------ */
typedef struct hone_session hone_session;
typedef struct {
    int threads;   /* of a run, at most; 0: all cores */
    int plans;     /* plans kept for different shapes, least recently used goes first; 0: 64 */
    int interpret; /* 1: run everything by the interpreter, the definition: slow, for comparing */
    /* 1: time each step, on one thread; 2: on all of the run; report "steps" then has ns and runs. 3: as 2,
       but on a device that records launches (CUDA) each step's are replayed by themselves, many times over,
       so that kernels are timed and not launches; a run takes much longer then. */
    int profile;
    int64_t limit_ms; /* a run that takes longer fails, at its next step or tile; 0: no limit */
    /* Measured choices (hone_tune, tools.h): a file's name, copied; NULL: what the variable HONE_WISDOM
       names, else the file where hone_tune writes by default, if it is there; "": none, estimates only. A
       named file that cannot be read is a failure; one that is damaged, or of another machine or other
       kernels, is not used, and the report "wisdom" says why. Results differ by rounding at most. */
    const char *wisdom;
    /* NONE or F32: floats are computed in f32. BF16, F16: sums of products with constant weights
       (convolutions, matrices) round both factors to it, by AMX or whatever this CPU has, and add in f32;
       f16 may add up to 64 products in f16 first. With BF16 what only such products, depthwise convolutions
       and their residuals read is stored as bf16 too. All else stays f32, and so do rows whose numbers are
       beyond f16. Report "steps" says which ran so, hone_machine_report by which kernel. On a CUDA or OpenCL
       device: what values between nodes are stored in; sums, norms and softmax in f32. HONE_PRECISION_TF32,
       on CUDA only: values stay f32, products and convolutions go by tensor cores that read 10 of their 23
       bits behind the point, and add in f32. */
    hone_dtype precision;
    /* 1: outputs that a device makes stay in its memory (hone_value_bring); 0: all come to the host */
    int stay;
    /* Where it runs: "cpu", or a device that was added (hone/device.h), by name and, where there are
       several, number: "plain:1". NULL: the CPU. Host ops, and what a device refuses, run on the CPU.
       Copied. A device that is not there, or cannot be had, is a failure. */
    const char *device;
    /* What runs elsewhere: lines "PATTERN=DEVICE", where the pattern is as of a shell, for names of nodes of
       the optimized graph: "layer4.*=cpu". The last that fits decides.
       A fused group goes by its name, that of its first node. NULL: nothing. Copied. */
    const char *place;
    /* On a device in BF16 or F16: tensors of the model that stay f32, as those that leave f16's range do
       (hone_model_ranges, quant.h): a pattern as of a shell a line. Nodes that read or make one compute in
       f32. Copied. NULL: none */
    const char *keep_f32;
    /* A run whose tensors between nodes need more memory than this fails, before it is taken (NO_MEMORY);
       inputs, outputs and weights are not counted. 0: no limit */
    int64_t limit_bytes;
} hone_options;
HONE_API void hone_options_default(hone_options *); /* fills all fields; then set those that matter */

/* A place to run a model: its plans by shape and the memory they need. In: options, or NULL for the defaults;
   they are copied. Cheap: plans and memory come with the first run. */
HONE_API hone_status hone_session_create(const hone_model *, const hone_options *, hone_session **out);
HONE_API void hone_session_free(hone_session *);

/* One run. In: in[k] is the k-th input of the model (NULL: an optional one left out), read during the call
   only. Out: out[k], for every output: where it is NULL a new value is made; where it holds a tensor of the
   right type and shape, that one is filled, which must not be an input or another output; where it holds
   anything else, that is freed and replaced. Ownership: of the references in `out`, the caller's before and
   after. Threads: one run at a time; a second one at the same time is refused. Fails: BAD_INPUT for inputs
   that do not fit, naming the input; what a model's data make impossible (an index outside, a wrong shape),
   naming the node. Then every out[k] is the reference it was; a tensor that was to be filled may hold
   anything. The session stays usable. */
HONE_API hone_status hone_session_run(hone_session *, hone_value *const *in, hone_value **out);

/* ---- reports: one JSON document a topic ---------------------------------------------------------------- */
/* Model topics: "summary" (name, opset, forgiven: what was wrong with the file and did not matter, a text
   each, inputs and outputs with dtype and dims, nodes, parameters, parameter_bytes, ops by count), "nodes"
   (one object a node: name, op, inputs with shapes, outputs, flops, bytes), "passes" (what each did), "text"
   (the graph as text, one string), "graph" (all of it, to draw: a list of graphs, bodies after the model's
   own, with vars, attributes, constants' statistics), "file" (what the file says of itself: ir_version,
   producer_name, producer_version, domain, model_version, doc_string, graph_name, graph_doc_string; opsets
   and metadata, a pair each; inputs and outputs with type and dims in ONNX's words,
   "seq(map(int64,tensor(float)))", defaults among the inputs; empty for zoo:). Session topics, after a run:
   "memory" (arena_bytes, sum_bytes, lower_bound_bytes, packed_bytes, steps, plans), "copies" (in_bytes,
   out_bytes, across_bytes, within_bytes: what the last run copied to devices, back, from one to another and
   inside of one, with its bodies; constant_bytes), "steps" (one object a step: node, op, parts (the ops of a
   fused node), tactic, tiles, ns, runs; on a device bytes (read and written by it, as stored) and, where
   they were timed, launches (of kernels); and where there was something to choose, problem, choice and by,
   "wisdom" or "estimate"), "wisdom" (file, "" for none; choices in it; used, by steps of this plan; why it
   is not used, or ""). Not while the session runs. Out: text that ends in a zero, to be freed with
   hone_text_release. Fails: BAD_INPUT for a topic that is none, naming those there are. */
HONE_API hone_status hone_model_report(const hone_model *, const char *topic, char **out);
HONE_API hone_status hone_session_report(const hone_session *, const char *topic, char **out);

/* What a node of the optimized graph means: its op row, its instance and, where `c` is 1, its C (2, 3, 4:
   its kernels in OpenCL C, CUDA C, HIP), as plain text. In: `node`, its name or its number. Out and failure
   as above. */
HONE_API hone_status hone_model_explain(const hone_model *, const char *node, int c, char **out);
HONE_API void hone_text_release(char *); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
