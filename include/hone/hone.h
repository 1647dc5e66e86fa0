/* SPDX-License-Identifier: Apache-2.0
   hone.h: the public interface of libhone. Load a model, run it, ask about it.

   Handles are opaque. A call that can fail returns hone_status; on failure its outputs are untouched and hone_error() says in one line
   what was wrong and what to do. `…_free(NULL)` is fine. Different handles may be used from different threads at once; one session by one
   thread at a time; one model by any number of sessions. */
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

typedef enum {
    HONE_OK = 0,
    HONE_BAD_INPUT,     /* the model, file, tensor or argument is wrong */
    HONE_NOT_SUPPORTED, /* right, but Hone cannot do it (yet) */
    HONE_NO_MEMORY,
    HONE_IO, /* the system refused: a file, a device */
    HONE_BUG /* ours: please report */
} hone_status;

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
               HONE_DTYPE_BOOL,
               HONE_DTYPE_F16,
               HONE_DTYPE_F64,
               HONE_DTYPE_U32,
               HONE_DTYPE_U64,
               HONE_DTYPE_C64,
               HONE_DTYPE_C128,
               HONE_DTYPE_BF16,
               HONE_DTYPE_F8E4M3FN,
               HONE_DTYPE_F8E4M3FNUZ,
               HONE_DTYPE_F8E5M2,
               HONE_DTYPE_F8E5M2FNUZ,
               HONE_DTYPE_U4,
               HONE_DTYPE_I4,
               HONE_DTYPE_F4E2M1,
               HONE_DTYPE_F8E8M0,
               HONE_DTYPE_U2,
               HONE_DTYPE_I2,
               HONE_DTYPE_COUNT
} hone_dtype;

HONE_API const char *hone_error(void); /* the calling thread's last message; "" when none. Valid until its next failing call */
HONE_API const char *hone_version(void);
HONE_API const char *hone_dtype_name(hone_dtype); /* "f32"; "none" for what is no dtype */

/* ---- values: tensors, sequences, optionals and maps, counted ----------------------------------------------------------------------- */
typedef struct hone_value hone_value;
typedef enum { HONE_VALUE_TENSOR, HONE_VALUE_SEQUENCE, HONE_VALUE_OPTIONAL, HONE_VALUE_MAP } hone_value_kind;
/* A dense row-major tensor; contents zero (strings: empty). The caller owns one reference. */
HONE_API hone_status hone_tensor_create(hone_dtype, const int64_t *dims, int rank, hone_value **out);
/* The same over the caller's memory, which must outlive the value. */
HONE_API hone_status hone_tensor_borrow(hone_dtype, const int64_t *dims, int rank, const void *data, hone_value **out);
HONE_API hone_status hone_list_create(hone_value_kind, hone_value *const *items, int n,
                                      hone_value **out); /* SEQUENCE or OPTIONAL; holds the items */
HONE_API hone_value *hone_value_share(hone_value *);     /* one more reference */
HONE_API void hone_value_free(hone_value *);             /* one reference less */
HONE_API hone_value_kind hone_value_kind_of(const hone_value *);
HONE_API hone_dtype hone_value_dtype(const hone_value *);
HONE_API int hone_value_rank(const hone_value *);
HONE_API const int64_t *hone_value_dims(const hone_value *);
HONE_API int64_t hone_value_elements(const hone_value *);
HONE_API void *hone_value_data(hone_value *); /* elements, dense; NULL where there is none. Strings: use hone_value_text */
HONE_API size_t hone_value_bytes(const hone_value *);
HONE_API const char *hone_value_text(const hone_value *, int64_t k, size_t *bytes); /* element k of a string tensor */
HONE_API hone_status hone_value_set_text(hone_value *, int64_t k, const char *text,
                                         size_t bytes);           /* of a tensor made by hone_tensor_create */
HONE_API int hone_value_items(const hone_value *);                /* sequence, optional */
HONE_API hone_value *hone_value_item(const hone_value *, int k);  /* borrowed */
HONE_API double hone_value_number(const hone_value *, int64_t k); /* element k of a numeric tensor, whatever its dtype */
/* Reads .npy (by its header), .pb (ONNX TensorProto, SequenceProto or OptionalProto, by `kind`), or .bin (raw bytes: dtype and dims needed, else NONE/NULL). */
HONE_API hone_status hone_value_read(const char *path, hone_value_kind kind, hone_dtype, const int64_t *dims, int rank, hone_value **out);
HONE_API hone_status hone_value_write(const hone_value *, const char *path); /* .npy or .bin, by the ending */

/* ---- models ------------------------------------------------------------------------------------------------------------------------ */
typedef struct hone_model hone_model;
/* Imports, optimizes and compiles an ONNX model. Immutable afterwards: any number of sessions, on any threads. */
HONE_API hone_status hone_model_load(const char *path, hone_model **out);
HONE_API hone_status hone_model_load_memory(const void *data, size_t bytes, hone_model **out); /* the bytes are copied */
HONE_API void hone_model_free(hone_model *);                                                   /* after its sessions */
typedef struct {
    const char *name;
    hone_value_kind kind;
    hone_dtype dtype;    /* of the tensor, or of the tensors inside */
    int rank;            /* -1: not known before the run */
    const int64_t *dims; /* -1: free */
    const char *shape;   /* "f32[batch, 3, 224, 224]" */
} hone_port;
HONE_API int hone_model_inputs(const hone_model *);
HONE_API int hone_model_outputs(const hone_model *);
HONE_API const hone_port *hone_model_input(const hone_model *, int k);
HONE_API const hone_port *hone_model_output(const hone_model *, int k);

/* ---- sessions ---------------------------------------------------------------------------------------------------------------------- */
typedef struct hone_session hone_session;
typedef struct {
    int threads;   /* 0: all cores */
    int plans;     /* plans kept for different shapes, least recently used goes first; 0: 64 */
    int interpret; /* 1: run everything by the interpreter, the definition: slow, for comparing */
    int profile;   /* 1: time each step, on one thread; report "steps" then has ns and runs */
} hone_options;
HONE_API void hone_options_default(hone_options *);
HONE_API hone_status hone_session_create(const hone_model *, const hone_options * /* or NULL */, hone_session **out);
HONE_API void hone_session_free(hone_session *);
/* One run. in[k] is the k-th input (NULL: an optional one left out); out[k] receives a new reference, or, where it holds a tensor of the right
   shape, that tensor is filled. On failure every out[k] is as before. */
HONE_API hone_status hone_session_run(hone_session *, hone_value *const *in, hone_value **out);

/* ---- reports: one JSON document a topic -------------------------------------------------------------------------------------------- */
/* Model topics: "summary" (name, opset, inputs, outputs, nodes, parameters, parameter_bytes, ops by count), "nodes" (one object a node: name, op, inputs with
   shapes, outputs, flops, bytes), "passes" (what each did), "text" (the graph as text, one string). Session topics, after a run: "memory" (arena_bytes,
   sum_bytes, lower_bound_bytes, steps, plans), "steps" (one object a step: node, tactic, tiles). The caller frees *out with hone_text_release. */
HONE_API hone_status hone_model_report(const hone_model *, const char *topic, char **out);
HONE_API hone_status hone_session_report(const hone_session *, const char *topic, char **out);
/* A node's op row, its instance and, where `c` is 1, its C, as plain text. `node`: name or number. */
HONE_API hone_status hone_model_explain(const hone_model *, const char *node, int c, char **out);
HONE_API void hone_text_release(char *);

#ifdef __cplusplus
}
#endif
#endif
