/* SPDX-License-Identifier: Apache-2.0
   device: the table of a device: how steps are made for it, and how it runs them. plan/ and run/ know a
   device by this table only; what is below (cpu/ …) is its own.

   A plan's steps go to devices as segments: steps one after another on one device, which it runs in its own
   way, the CPU by a team of threads that enters a segment once. A host step belongs to whoever runs the
   segment (run/): the CPU calls it back in its turn, no other device is given one. What a session needs to
   run segments one after another (scratch, a stream, a workspace, captured graphs) is its queue.

   A device has the host's memory, or memory of its own: then its bases are handles that only it can read,
   plans keep blocks there, and copies stand at the borders. */
#ifndef HONE_DEVICE_DEVICE_H
#define HONE_DEVICE_DEVICE_H
#include "device/step.h"
#include "ir/infer.h"
#include "ir/target.h"
#include "loops/match_affine.h"

/* The tensors of an instance as bound: where each is, and how it strides. Temporaries come without a ref. */
typedef struct {
    hone_ref *ref;
    hone_strides *stride;
} hone_operands;
static inline hone_operands hone_operands_make(hone_arena *a, int n) { /* ref NULL: no memory */
    const hone_operands t = {HONE_NEW_N(a, hone_ref, n + 1), HONE_NEW_N(a, hone_strides, n + 1)};
    return t.stride ? t : (hone_operands){NULL, NULL};
}
/* Where a device says which tactics a node's instance could have, and what each would cost by its
   estimate. */
typedef struct {
    const hone_node *of;
    hone_text *to;
} hone_telling;
/* How a plan will be run. Threads decide how work is cut, never what comes out; precision decides what it is
   rounded to on the way. */
typedef struct {
    bool interpret;                   /* by the definition only */
    int threads;                      /* at least 1 */
    const struct hone_wisdom *wisdom; /* measured choices (wisdom.h), or NULL */
    /* BF16, F16: products with constant weights round their factors to it; TF32: those of a device that has
       it. Anything else: f32 */
    hone_dtype precision;
    const char *keep_f32;           /* as in hone_options, for whoever makes calls; or NULL */
    const struct hone_units *units; /* the devices, and what goes where; NULL: the CPU alone */
    /* of each input of the graph: the space that it lies in; NULL: the host's */
    const uint8_t *in_space;
    bool stay;                /* outputs are left in the space that made them, */
    int read;                 /* but for the first so many, which the host reads */
    const hone_telling *tell; /* or NULL */
    /* of each value that a cut waited for: the space that it lies in; NULL: the host's */
    const uint8_t *wanted_space;
} hone_bind_options;
/* An instance whose tensors have places: its numbers, as recognition takes them (loops/match_affine.h), and
   the rest. Places and strides of temporaries are filled in by the device. What is constant may be packed
   ahead. */
typedef struct {
    union {
        hone_sized sized;
        struct { /* the same by their names */
            const hone_instance *instance;
            const hone_param *param;
            hone_strides *stride;
            const bool *constant;
            hone_cache *cache; /* NULL: in the plan */
        };
    };
    hone_ref *ref;                     /* of each tensor */
    const hone_batch_axis *batch_axis; /* or NULL */
    struct hone_packs *packs;          /* where packed constants are kept */
    int32_t node;
    const hone_node *of;
    hone_bind_options how;
    bool keep_f32;                /* what it reads and makes stays f32, whatever precision says */
    const struct hone_unit *unit; /* the device that it is bound to; NULL: the CPU */
} hone_device_call;
_Static_assert(offsetof(hone_device_call, cache) == offsetof(hone_sized, cache), "names of the same");

/* A host op that a device may have a function for: its operands dense, in its memory. Results whose size
   only the data say have room for the most there can be; how many there are of them is a number in memory,
   which the host reads where it wants to know. */
enum { HONE_MOST_FUNCTION = 12 }; /* inputs, outputs and the count */
typedef struct {
    const hone_node *of;
    int32_t node;
    const struct hone_unit *unit;
    /* one an input; those that are absent are unknown. `value` and `contents` where they are known */
    const hone_fact *in;
    /* one an output, as inferred; a function that takes the call fills in what it knows, the largest there
       can be for a counted dim … */
    hone_fact *out;
    int8_t *counted; /* … which it names here; -1: there is none */
    /* where they lie: inputs, outputs, then the count, an int64_t: the length of all counted dims */
    const hone_ref *ref;
} hone_function_call;

enum { HONE_PROFILE_ALONE = 1, HONE_PROFILE_ALL, HONE_PROFILE_BUSY, HONE_PROFILE_REPLAYED };
typedef struct {     /* some steps of a plan, one after another */
    hone_step *step; /* their times are written there where they are profiled; nothing else is */
    int n;
    void *const *base;    /* all that they name */
    size_t scratch_bytes; /* the most that one of them wants, a thread */
    int threads;          /* at most so many */
    /* 0; ALONE: each step is timed, on one thread; ALL: on as many as there are; BUSY: what the busiest of
       them had of a core; REPLAYED: as ALL, but where a device records launches each step's are replayed by
       themselves, and no launch is counted */
    int profile;
    uint64_t until; /* the clock at which it must be over, limit_ms after the run began; 0: whenever */
    int64_t limit_ms;
    hone_status (*host)(void *arg, const hone_step *); /* runs a host step; NULL: there is none */
    void *arg;
    const void *sealed; /* what seal made of these steps, or NULL */
} hone_segment;

typedef struct hone_queue hone_queue; /* a device's own: what a session runs with */
typedef struct hone_device hone_device;
struct hone_device {
    const char *name; /* "cpu" */
    /* the CPU's only, NULL elsewhere: what runs here, as members of a JSON object that follow others: ,
       "kernels": … */
    void (*describe)(hone_text *);
    /* One of them, in the same form, its copies and arithmetic measured if asked for; NULL: there is nothing
       to say. */
    void (*about)(const hone_device *, int number, bool measure, hone_text *);
    const char *missing; /* what a machine must have for one to be there; NULL: nothing more */
    /* How many of them there are, by number from 0 on; NULL: one. */
    int (*count)(const hone_device *);
    /* What it says of itself: its memory, and how it wants tensors to lie there (ir/target.h). NULL: all
       0. */
    void (*target)(const hone_device *, int number, hone_target *out);
    /* Why it cannot run this, in a few words that live for ever; NULL: it can. NULL: it can run all. Copies
       (Identity) it must be able to run. */
    const char *(*refuses)(const hone_device *, const hone_instance *);
    /* it computes in f16 or bf16 where how.precision says so; else such a precision is refused */
    bool halves;
    bool tf32; /* likewise products in tf32 */
    /* What a run in this precision is held against, measured just now: operations a second of products, bytes
       a second read and written in its memory. NULL: not known. */
    hone_status (*speed)(const hone_device *, int number, hone_dtype precision, double *flops, double *bytes);
    /* The steps of an instance, each stage by the best tactic that applies. */
    hone_status (*bind)(hone_steps *, const hone_device_call *);
    /* Functions for host ops, both or none. `takes` says whether it has one for this call, before anything
       lies anywhere; then `function` makes its steps. */
    bool (*takes)(const hone_device *, int number, hone_function_call *);
    hone_status (*function)(hone_steps *, const hone_function_call *);
    /* All steps of a plan are there and no memory is placed yet: what they can still do for one another.
       Steps of other devices may stand between its own. NULL: nothing. */
    hone_status (*join)(hone_steps *);
    /* Memory is placed, and what is stored in halves is known: what of a segment's steps follows from that
       (printed kernels are printed and compiled here), into the plan's arena; run gets it as `sealed`. NULL:
       nothing. */
    hone_status (*seal)(hone_arena *, const hone_step *, int n, const void **sealed);
    hone_status (*open)(const hone_device *, int number, hone_queue **out);
    void (*close)(hone_queue *); /* NULL is fine */
    /* Runs a segment to its end; the first message of a step that fails, with its node. Where there is `wait`
       it may come back as soon as all is under way. */
    hone_status (*run)(hone_queue *, const hone_segment *);

    /* DLPack's number for its kind of memory (kDLCUDA 2, kDLExtDev 12 …), whose pointers its handles then
       are; 0: others cannot use its memory. */
    int dlpack;
    /* All that somebody else's stream was given so far is done: a number as Python's __dlpack__(stream=…) has
       it. NULL: there are no streams. */
    hone_status (*await)(const hone_device *, int number, int64_t stream);

    /* ---- memory of its own: all of these, or none: it has the host's ----------------------------------- */
    /* A handle is what bases of its segments are. It need be no address: steps name a byte by handle and
       offset. */
    hone_status (*alloc)(const hone_device *, int number, size_t bytes, void **handle);
    void (*free)(const hone_device *, int number, void *handle); /* nothing that is under way may touch it */
    /* In the order of what the queue was given. copy_in comes back when `from` may change again, copy_out
       when all bytes are there. */
    hone_status (*copy_in)(hone_queue *, void *to, int64_t at, const void *from, size_t bytes);
    hone_status (*copy_out)(hone_queue *, void *to, void *from, int64_t at, size_t bytes);
    /* From one of them to another, after all that both queues were given so far and before all that they are
       given next. NULL: through the host. */
    hone_status (*copy_peer)(hone_queue *to_queue, void *to, int64_t at, hone_queue *from_queue, void *from,
                             int64_t from_at, size_t bytes);
    /* From one memory of the device to another, or within one where the two do not overlap, in the order of
       the queue. NULL: through the host. */
    hone_status (*copy_within)(hone_queue *, void *to, int64_t at, void *from, int64_t from_at, size_t bytes);
    /* All that the queue was given is done, also what failed: the first message, which it then forgets. */
    hone_status (*wait)(hone_queue *);
};
/* those that there are, the CPU first; NULL: no more */
const hone_device *hone_devices(int k);
const hone_device *hone_device_find(const char *name); /* NULL: there is none of that name */
/* One row more, which lives for ever. Fails for a name that is taken or none, and for a row that lacks
   functions. */
hone_status hone_devices_add(const hone_device *) HONE_CHECKED;

/* An instance as one step, whatever runs it: temporaries get blocks, the step its refs (one a tensor, in
   order), what it reads and writes. */
enum { HONE_MOST_WHOLE = 60 }; /* tensors */
hone_status hone_steps_whole(hone_steps *, const hone_device_call *, hone_step) HONE_CHECKED;
/* The same with further refs, which are read as whole (packed constants; bytes of each), and without the
   tensors of `unread`, a bit each. */
hone_status hone_steps_whole_with(hone_steps *, const hone_device_call *, hone_step, const hone_ref *more,
                                  const int64_t *bytes, int n_more, uint64_t unread) HONE_CHECKED;

/* ---- the devices of a session -------------------------------------------------------------------------- */
typedef struct hone_unit { /* one device */
    const hone_device *row;
    int number;
} hone_unit;
typedef struct {
    const char *nodes; /* a pattern for nodes' names, as of a shell: layer4.* */
    int unit;
} hone_placing;
enum { HONE_MOST_UNITS = 8 };
/* A space is a memory: 0 is the host's, k that of unit k. A unit that has the host's memory is in space 0. */
typedef struct hone_units {
    hone_unit unit[HONE_MOST_UNITS]; /* the first has the host's memory, and runs what only the host can */
    int n;
    int rest;                 /* the unit of nodes that no pattern names */
    const hone_placing *rule; /* the last that fits decides */
    int n_rule;
} hone_units;
extern const hone_units hone_units_cpu; /* the CPU alone */
static inline int hone_unit_space(const hone_units *u, int unit) {
    return u->unit[unit].row->alloc ? unit : 0;
}
int hone_units_place(const hone_units *, const char *node); /* the unit of a node */
#endif
