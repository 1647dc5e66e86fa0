/* SPDX-License-Identifier: Apache-2.0
   device: the table of a device: how steps are made for it, and how it runs them. plan/ and run/ know a device by this table only; what is below (cpu/ …) is its own.

   A plan's steps go to the device as segments: steps one after another, which it runs in its own way, the CPU by a team of threads that enters a segment once. A host step
   belongs to whoever runs the segment (run/): the device calls it back in its turn. What a session needs to run segments one after another (scratch; later a stream, a
   workspace, captured graphs) is its queue. */
#ifndef HONE_DEVICE_DEVICE_H
#define HONE_DEVICE_DEVICE_H
#include "device/step.h"

/* One tensor of an instance as bound: where, and how it strides. Temporaries come without a ref. */
typedef struct {
    hone_ref ref;
    int64_t stride[HONE_MAX_RANK];
} hone_bound;
/* How a plan will be run. Threads decide how work is cut, never what comes out; precision decides what it is rounded to on the way. */
typedef struct {
    bool interpret;                   /* by the definition only */
    int threads;                      /* at least 1 */
    const struct hone_wisdom *wisdom; /* measured choices (wisdom.h), or NULL */
    hone_dtype precision;             /* BF16, F16: products with constant weights round their factors to it. Anything else: f32 */
    const struct hone_device *device; /* NULL: the first of hone_devices */
} hone_how;
/* An instance whose tensors have places. tensor: one an instance's tensor; temporaries are filled in by the device.
   `constant(t)`: the tensor's data is known at compile and will not change, so it may be packed ahead; NULL: none is. */
typedef struct {
    const hone_instance *instance;
    const hone_param *param;
    hone_bound *tensor;
    const bool *constant;          /* n_tensor, or NULL */
    const hone_pictures *pictures; /* or NULL */
    struct hone_packs *packs;      /* where packed constants are kept */
    hone_shelf *shelf;             /* where what is made of numbers alone is kept; NULL: in the plan */
    int32_t node;
    const hone_node *of;
    hone_how how;
} hone_device_call;

enum { HONE_PROFILE_ALONE = 1, HONE_PROFILE_ALL, HONE_PROFILE_BUSY };
typedef struct {     /* some steps of a plan, one after another */
    hone_step *step; /* their times are written there where they are profiled; nothing else is */
    int n;
    void *const *base;    /* all that they name */
    size_t scratch_bytes; /* the most that one of them wants, a thread */
    int threads;          /* at most so many */
    int profile; /* 0; ALONE: each step is timed, on one thread; ALL: on as many as there are; BUSY: what the busiest of them had of a core */
    uint64_t until; /* the clock at which it must be over, limit_ms after the run began; 0: whenever */
    int64_t limit_ms;
    hone_status (*host)(void *arg, const hone_step *); /* runs a host step; NULL: there is none */
    void *arg;
} hone_segment;

typedef struct hone_queue hone_queue; /* a device's own: what a session runs with */
typedef struct hone_device hone_device;
struct hone_device {
    const char *name;              /* "cpu" */
    void (*describe)(hone_text *); /* what runs here, as members of a JSON object that follow others: , "kernels": … */
    /* The steps of an instance, each stage by the best tactic that applies. */
    hone_status (*bind)(hone_steps *, const hone_device_call *);
    /* All steps of a plan are there and no memory is placed yet: what they can still do for one another. */
    hone_status (*join)(hone_steps *);
    hone_status (*open)(hone_queue **out);
    void (*close)(hone_queue *); /* NULL is fine */
    /* Runs a segment to its end; the first message of a step that fails, with its node. */
    hone_status (*run)(hone_queue *, const hone_segment *);
};
const hone_device *hone_devices(int k);                /* those that there are, the CPU first; NULL: no more */
const hone_device *hone_device_find(const char *name); /* NULL: there is none of that name */
#endif
