/* SPDX-License-Identifier: Apache-2.0
   printed: devices whose steps are printed kernels (loops/kernel.h): whatever a program says runs there,
   with no line for any op. What differs between CUDA and OpenCL is a table of functions, the driver;
   everything a row of device.h wants beside that is written here once.

   Kernels are compiled when a plan's memory has been placed, all that a segment still lacks as one program,
   and kept for the process by their names (equal names, equal texts); compiled programs are kept on disk by
   the driver. A run launches; it compiles and allocates nothing, but for scratch that grows. */
#ifndef HONE_DEVICE_PRINTED_H
#define HONE_DEVICE_PRINTED_H
#include <pthread.h>
#include <stdatomic.h>

#include "device/captured.h"
#include "device/device.h"
#include "loops/kernel.h"

typedef struct { /* an argument of a launch, in the kernel's order */
    hone_karg_kind kind;
    void *memory; /* and its byte */
    int64_t offset;
    int64_t i; /* I64, STEP; WHERE in its low half; OFFSET */
    double f;
} hone_printed_arg;

/* Kernels of a driver's own, beside those that are printed. When a call is bound: which of its stages they
   will do, the packed constants that they read as refs behind the call's own, and which tensors nothing reads
   any more. */
typedef struct {
    const hone_ref *ref;
    const int64_t *bytes; /* of each */
    int n_ref;
    uint64_t unread;
    void *of;                       /* the driver's; NULL: no stage is theirs */
    const char *tactic;             /* their name in reports */
    struct hone_decision *decision; /* of the step, or NULL: nothing to choose */
    bool beyond; /* it has weights that leave f16's range: nothing is taken yet, and it is to stay f32 */
} hone_printed_own;
typedef struct {                     /* where things are in a run */
    const hone_printed_arg *ref;     /* of a step: memory and offset */
    const hone_printed_arg *scratch; /* by number */
    void *counters;                  /* HONE_PRINTED_COUNTERS bytes that are 0 between kernels */
} hone_printed_memory;
enum { HONE_PRINTED_COUNTERS = 1 << 16, HONE_PRINTED_SCRATCH = 64 };

/* `gpu`: a device of a process; `queue`: what a session gives work to, in order. Any thread; a queue is used
   by one at a time. */
typedef struct {
    int (*count)(void);
    hone_status (*open)(int number, void **gpu, hone_kernel_target *, hone_target *);
    void (*about)(void *gpu, hone_text *); /* , "name": …, "memory_bytes": … */
    hone_status (*alloc)(void *gpu, size_t bytes, void **memory);
    void (*free)(void *gpu, void *memory);
    /* Several kernels behind one prelude. cache: a folder that is there, or NULL. kernel: one a name, for
       ever. */
    hone_status (*compile)(void *gpu, const char *text, const char *const *name, int n, const char *cache,
                           void **kernel);
    hone_status (*queue)(void *gpu, int number, void **queue);
    void (*close)(void *queue);
    hone_status (*launch)(void *queue, void *kernel, int64_t groups, int threads, const hone_printed_arg *,
                          int n);
    /* comes back when `from` may change */
    hone_status (*copy_in)(void *queue, void *to, int64_t at, const void *from, size_t bytes);
    /* comes back when all bytes are there */
    hone_status (*copy_out)(void *queue, void *to, void *from, int64_t at, size_t bytes);
    /* in the queue */
    hone_status (*copy)(void *queue, void *to, int64_t at, void *from, int64_t from_at, size_t bytes);
    hone_status (*wait)(void *queue);
    /* A word of the device's memory, to be in *to when the next copy_out or wait has come back: one wait for
       both. NULL: there is no such way. */
    hone_status (*peek)(void *queue, void *from, uint32_t *to);
    hone_status (*await)(void *gpu, int64_t stream); /* as in device.h; NULL: there are no streams */
    const hone_capture *capture;                     /* NULL: launches cannot be recorded */
    /* All of these, or none: it has no kernels of its own. own_take: `in` has the types in which tensors are
       stored. */
    hone_status (*own_match)(void *gpu, hone_arena *, const hone_device_call *, hone_printed_own *out);
    hone_status (*own_take)(void *gpu, hone_arena *, const hone_printed_own *, const hone_instance *in,
                            const hone_ref *, int stage, hone_taken *);
    /* any thread */
    hone_status (*own_compile)(void *gpu, const hone_launch *, const char *cache, void **kernel);
    hone_status (*own_launch)(void *queue, void *kernel, const hone_launch *, const hone_printed_memory *);
    /* The device's own clock around what comes between; end waits. NULL: it is timed by the host's. */
    hone_status (*time_begin)(void *queue);
    hone_status (*time_end)(void *queue, double *seconds);
    /* replayed behind itself: the second one's time. NULL: without capture */
    hone_status (*time_graph)(void *queue, void *graph, double *seconds);
    /* Operations a second of large products in this precision by its best kernel. NULL: multiply-adds of
       printed kernels */
    hone_status (*products)(void *gpu, void *queue, hone_dtype, double *rate);
} hone_printed_driver;

enum { HONE_MOST_PRINTED = 16 }; /* devices of a kind */
typedef struct hone_printed_gpu hone_printed_gpu;
typedef struct {
    hone_device row; /* first: rows are found again by it */
    const hone_printed_driver *driver;
    _Atomic(hone_printed_gpu *) gpu[HONE_MOST_PRINTED];
} hone_printed;
/* A device's state, opened by the first who asks. */
struct hone_printed_gpu {
    const hone_printed_driver *driver;
    void *gpu;
    hone_kernel_target target;
    hone_target memory;
    pthread_mutex_t lock; /* of the kernels that are known, by name, sorted */
    struct hone_printed_known *known;
    int n_known, room;
};
hone_status hone_printed_gpu_of(const hone_device *, int number, hone_printed_gpu **out) HONE_CHECKED;

/* The functions that all such rows share. */
void hone_printed_about(const hone_device *, int number, bool measure, hone_text *); /* printed_about.c */
int hone_printed_count(const hone_device *);
void hone_printed_target(const hone_device *, int number, hone_target *out);
const char *hone_printed_refuses(const hone_device *, const hone_instance *);
hone_status hone_printed_bind(hone_steps *, const hone_device_call *) HONE_CHECKED;
/* printed_choice.c: which problem these kernels are; where wisdom has something for it they are printed
   anew. */
hone_status hone_printed_choose(hone_arena *, const char *row, hone_printed_gpu *, const struct hone_wisdom *,
                                const hone_instance *, const hone_param *, int64_t *stride, hone_kernels *,
                                struct hone_decision *out) HONE_CHECKED;
bool hone_printed_takes(const hone_device *, int number, hone_function_call *);
hone_status hone_printed_function(hone_steps *, const hone_function_call *) HONE_CHECKED;
hone_status hone_printed_speed(const hone_device *, int number, hone_dtype precision, double *flops,
                               double *bytes) HONE_CHECKED; /* printed_about.c */
hone_status hone_printed_seal(hone_arena *, const hone_step *, int n, const void **sealed) HONE_CHECKED;
hone_status hone_printed_open(const hone_device *, int number, hone_queue **out) HONE_CHECKED;
void hone_printed_close(hone_queue *);
hone_status hone_printed_run(hone_queue *, const hone_segment *) HONE_CHECKED;
hone_status hone_printed_alloc(const hone_device *, int number, size_t bytes, void **handle) HONE_CHECKED;
void hone_printed_free(const hone_device *, int number, void *handle);
hone_status hone_printed_copy_in(hone_queue *, void *to, int64_t at, const void *from,
                                 size_t bytes) HONE_CHECKED;
hone_status hone_printed_copy_out(hone_queue *, void *to, void *from, int64_t at, size_t bytes) HONE_CHECKED;
hone_status hone_printed_copy_within(hone_queue *, void *to, int64_t at, void *from, int64_t from_at,
                                     size_t bytes) HONE_CHECKED;
hone_status hone_printed_await(const hone_device *, int number, int64_t stream) HONE_CHECKED;
hone_status hone_printed_wait(hone_queue *) HONE_CHECKED;
/* clang-format off */
#define HONE_PRINTED_ROW(name_, tf32_, missing_, dlpack_) \
    {.name = name_, .missing = missing_, .about = hone_printed_about, \
     .count = hone_printed_count, .target = hone_printed_target, .refuses = hone_printed_refuses, \
     .takes = hone_printed_takes, .function = hone_printed_function, \
     .halves = true, .tf32 = tf32_, .speed = hone_printed_speed, \
     .bind = hone_printed_bind, .seal = hone_printed_seal, \
     .open = hone_printed_open, .close = hone_printed_close, \
     .run = hone_printed_run, .alloc = hone_printed_alloc, .free = hone_printed_free, \
     .wait = hone_printed_wait, \
     .copy_in = hone_printed_copy_in, .copy_out = hone_printed_copy_out, \
     .copy_within = hone_printed_copy_within, \
     .dlpack = dlpack_, .await = hone_printed_await}
/* clang-format on */
#endif
