/* SPDX-License-Identifier: Apache-2.0
   kernel: an instance as kernels for a device: texts and launches, plain data. A device compiles the texts,
   allocates the temporaries, sets the arguments and launches in order; it needs to know nothing about stages.

   A text depends on the instance, on its schedule and on which checks fell away; extents and strides are
   arguments, so one text serves many shapes. Its name is made of its contents: equal names, equal texts.
   Before it stands the target's prelude (hone_kernel_prelude): words, fn.h, storage.h;
   several kernels may stand behind one prelude.

   A load or store outside of its tensor raises the error word (a uint32_t, 0 before a run) to ~(where << 8 |
   1 + tensor): the first step that fails wins, on every run the same. What was outside counts as 0 or is not
   stored. Nothing here allocates device memory, compiles or launches. */
#ifndef HONE_LOOPS_KERNEL_H
#define HONE_LOOPS_KERNEL_H
#include "loops/schedule.h"

/* ---- targets ---- */
typedef enum { HONE_LANG_OPENCL, HONE_LANG_CUDA, HONE_LANG_HIP, HONE_LANGS } hone_lang;
typedef struct {
    hone_lang lang;
    bool f64;      /* the device has it */
    int arg_bytes; /* that a kernel may take; more go into memory */
    hone_schedule_wish wish;
} hone_kernel_target;
extern const char *const hone_lang_names[HONE_LANGS];
void hone_kernel_prelude(const hone_kernel_target *, bool f64, hone_text *out);

/* ---- launches ---- */
typedef enum {
    HONE_KARG_TENSOR,  /* memory: tensor `which` of the instance */
    HONE_KARG_SCRATCH, /* memory: scratch `which` */
    /* memory: the launch's `number`s, which are the same in every run */
    HONE_KARG_NUMBERS,
    HONE_KARG_ERROR, /* memory: the error word */
    /* int64: in bytes, from the start of the memory argument just before. OpenCL only: elsewhere memory is an
       address */
    HONE_KARG_OFFSET,
    HONE_KARG_I64,  /* i */
    HONE_KARG_F64,  /* f */
    HONE_KARG_F32,  /* f, as a float */
    HONE_KARG_STEP, /* int64: which round of a recurrence */
    /* uint32 below 2^24: the device's number for this launch, told by the error word; earlier launches have
       lower ones */
    HONE_KARG_WHERE
} hone_karg_kind;
typedef struct {
    hone_karg_kind kind;
    int which;
    bool writes; /* memory */
    int64_t i;
    double f;
} hone_karg;
typedef struct {
    const char *name, *text; /* of the kernel; without prelude */
    bool f64;                /* needs a prelude with f64 */
    int64_t groups;          /* grid, one-dimensional; at least 1: empty ones are not listed */
    int threads;             /* of a work-group */
    int shared_bytes; /* a printed text declares them itself; a device asks for its own kernels' at launch */
    hone_karg *arg;
    int n_arg;
    const int64_t *number; /* of HONE_KARG_NUMBERS (a float as its bits) */
    int n_number;
    int first_stage, n_stage;
    hone_schedule schedule;
    /* A kernel of the device's own: `text` is a whole program, in which `entry` is the kernel; grid and
       arguments are for the device to say. NULL: a printed one */
    const void *own;
    const char *entry;
} hone_launch;
typedef struct { /* launches [first, first + n) so many times in turn; 1 where it is no recurrence */
    int first, n;
    int64_t rounds;
} hone_launches;
typedef struct {
    hone_launch *launch;
    hone_launches *turn;
    int n_launch, n_turn;
    /* of each tensor of the instance: what a temporary needs; 0: no temporary, or it lives in registers */
    int64_t *temp_bytes;
    int64_t *scratch_bytes;
    int n_scratch;
} hone_kernels;

/* Stages that a device has kernels of its own for: asked before each stage, of a recurrence before its first
   for all of them. */
enum { HONE_MOST_TAKEN = 6 };
typedef struct {
    int n_stage; /* done by these launches, in this order; 0: none, they are printed */
    hone_launch launch[HONE_MOST_TAKEN];
    int n_launch;
    int64_t scratch_bytes[HONE_MOST_TAKEN]; /* new scratch, numbered from first_scratch on */
    int n_scratch, first_scratch;
} hone_taken;
typedef struct {
    void *of;
    hone_status (*take)(void *of, hone_arena *, int stage, hone_taken *);
} hone_taker;
/* stride: HONE_MAX_RANK each, in elements, tensor by tensor; those of temporaries are filled in (row-major).
   HONE_NOT_SUPPORTED, by name: the device has no f64, or something that cannot be said. */
hone_status hone_kernels_make(hone_arena *, const hone_kernel_target *, const hone_instance *,
                              const hone_param *, int64_t *stride, const hone_taker * /* or NULL */,
                              hone_kernels *out) HONE_CHECKED;
/* How one launch is described to people: kind, grid, threads. */
void hone_launch_describe(const hone_launch *, hone_text *out);
#endif
