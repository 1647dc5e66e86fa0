/* SPDX-License-Identifier: Apache-2.0
   functions: host ops that devices of printed kernels run themselves: TopK, NonZero, Compress,
   NonMaxSuppression, Unique. A function is a few kernels, written once as text that OpenCL C 1.2, CUDA C and
   HIP compile (the prelude of loops/kernel.h has the words), and their launches as plain data, as printed
   programs have them. Answers have the bits of the host's own function (src/host). What a function does not
   take (strings, sizes only the data say, …) stays on the host.

   Tensors of a launch (HONE_KARG_TENSOR) are the call's operands: inputs, then outputs, then the count. */
#ifndef HONE_DEVICE_FUNCTIONS_H
#define HONE_DEVICE_FUNCTIONS_H
#include "device/device.h"
#include "loops/kernel.h"

bool hone_function_takes(hone_function_call *);
hone_status hone_function_make(hone_arena *, const hone_kernel_target *, const hone_function_call *,
                               hone_kernels *out) HONE_CHECKED;

/* ---- for the functions themselves ---------------------------------------------------------------------- */
typedef struct { /* a function in the making */
    hone_arena *arena;
    const hone_kernel_target *target;
    const hone_function_call *call;
    hone_vec(hone_launch) launch;
    hone_vec(int64_t) scratch;
    bool failed;
} hone_function;
typedef struct { /* a parameter of a kernel */
    const char *type, *name;
    hone_karg_kind kind; /* TENSOR, SCRATCH: memory `which`; I64, F32 */
    int which;
    bool writes;
    int64_t i;
    double f;
} hone_function_arg;
#define HONE_FN_READ(type_, name_, tensor) \
    ((hone_function_arg){.type = (type_), .name = (name_), .kind = HONE_KARG_TENSOR, .which = (tensor)})
#define HONE_FN_WRITE(type_, name_, tensor) \
    ((hone_function_arg){                   \
        .type = (type_), .name = (name_), .kind = HONE_KARG_TENSOR, .which = (tensor), .writes = true})
#define HONE_FN_SCRATCH(type_, name_, number) \
    ((hone_function_arg){                     \
        .type = (type_), .name = (name_), .kind = HONE_KARG_SCRATCH, .which = (number), .writes = true})
#define HONE_FN_NUMBER(name_, value) \
    ((hone_function_arg){.type = "int64_t", .name = (name_), .kind = HONE_KARG_I64, .i = (value)})
#define HONE_FN_FLOAT(name_, value) \
    ((hone_function_arg){.type = "float", .name = (name_), .kind = HONE_KARG_F32, .f = (value)})

enum { HONE_FN_THREADS = 256, HONE_FN_BLOCK = 2048 /* elements that a work-group sorts in shared memory */ };
int hone_fn_out(const hone_function *, int k); /* the tensor's number of output k; -1: nobody wants it */
int hone_fn_count(const hone_function *);      /* of the count */
const char *hone_fn_bits(hone_dtype);          /* an unsigned type of its size; NULL: it has no order */
int hone_fn_scratch(hone_function *, int64_t bytes);
/* A kernel over `groups` work-groups. body: what stands between the braces; helpers: functions before it,
   each behind a guard of its own. */
void hone_fn_launch(hone_function *, int64_t groups, int threads, const char *helpers, const char *body,
                    const hone_function_arg *, int n);
/* The same with a thread for each of n places: `at`, an int64_t below `places` (`total` in the text), is
   there. */
void hone_fn_each(hone_function *, int64_t places, const char *helpers, const char *body,
                  const hone_function_arg *, int n);
/* hone_key_<dtype>(bits) as a helper: unsigned 64-bit keys in the order of the values, equal where the values
   are; NaN above all. */
const char *hone_fn_key(hone_function *, hone_dtype);
int64_t hone_fn_power(int64_t n); /* the next power of two, at least 2 */

/* ---- sort.c: rows of m pairs, a key (uint64_t) and a place (uint32_t) in scratch, m a power of two: the
   largest key first, at equal keys the lowest place first --- */
extern const char hone_fn_before[]; /* helper: hone_before(key, place, key, place) */
/* of a body: sorts key[M], place[M] in shared memory with T threads; ends in a barrier */
extern const char hone_fn_sort_shared[];
void hone_fn_sort(hone_function *, int keys, int places, int64_t rows, int64_t m);
/* ---- compact.c: places of 0 … n - 1 that are marked, in their order ------------------------------------ */
typedef struct {
    const char *mark; /* an expression of `at` */
    const char *emit; /* statements for a marked one: the to-th is `at` */
    const char *each; /* statements for all: `upto` marked ones up to and with `at`; or NULL */
    const hone_function_arg *arg;
    int n_arg;
} hone_fn_choice;
void hone_fn_compact(hone_function *, int64_t n, const hone_fn_choice *); /* their number goes to the count */
/* n numbers (int64_t) in scratch become the sums of those before them; the sum of all goes to the count. */
void hone_fn_running_sums(hone_function *, int numbers, int64_t n);

/* Shapes, and whether it is taken: facts of outputs are filled in, at most. Then its launches. */
typedef struct {
    const char *name; /* of the host's function */
    bool (*takes)(hone_function_call *);
    void (*make)(hone_function *);
} hone_function_row;
extern const hone_function_row hone_function_topk, hone_function_nonzero, hone_function_compress,
    hone_function_nms, hone_function_unique;
#endif
