/* SPDX-License-Identifier: Apache-2.0
   step: what a plan is made of. Here and not in plan/, because devices make steps.

   A step is a grid of tiles: `tile(step, base, i, scratch)` may run on any thread, in any order; the split
   depends on the shape only, so runs repeat bit for bit. A host step runs on the calling thread between
   barriers. Every operand is a ref: a base, set each run, and an offset in bytes. No step holds an address.

   Bases are one table a run. Those from 0 on are the run's; those below 0 are the model's constants, numbered
   from -1 down, then their packed forms. */
#ifndef HONE_DEVICE_STEP_H
#define HONE_DEVICE_STEP_H
#include "base/cache.h"
#include "base/round.h"
#include "device/box.h"
#include "device/packs.h"
#include "host/host.h"
#include "loops/instance.h"

typedef struct {
    int32_t base;
    /* arena: number of the block it lies in, whose place is added when memory is planned: then it is
       hone_block_placed. -1 otherwise */
    int32_t block;
    int64_t offset; /* bytes */
} hone_ref;
static inline int32_t hone_block_placed(int32_t block) { return -2 - block; }
static inline char *hone_ref_at(hone_ref r, void *const *base) { return (char *)base[r.base] + r.offset; }

typedef struct {            /* what a step does to its refs, of which there are at most 64: a bit each */
    uint64_t reads, writes; /* what was there before it, what it makes */
    const hone_box *box;    /* how much of each */
    int n_ref;
} hone_access;
typedef struct { /* the same so many times, each of the refs by so many bytes further on */
    int64_t n;
    const int64_t *by;
} hone_copies;

typedef struct hone_step hone_step;
typedef hone_status hone_tile_fn(const hone_step *, void *const *base, int64_t tile, void *scratch);
struct hone_step {
    const char *tactic; /* "contract", "tile", "interpret", "host", … for reports */
    int32_t node;       /* of the graph being bound; for messages */
    const hone_node *of;
    bool host;    /* runs through run/: control flow and host ops */
    bool spreads; /* a host step that asks for other threads itself */
    bool serial;  /* too small to wake anyone */
    bool flush;   /* sums of products: subnormal numbers count as zero (base/flush.h) */
    uint8_t unit; /* of the session's devices, the one that runs it; HONE_UNIT_COPY */
    int64_t tiles;
    /* its tiles so many times, all of one round before any of the next: tile k of round r has the number r *
       tiles + k. 0: once */
    int64_t rounds;
    size_t scratch_bytes; /* a thread */
    hone_tile_fn *tile;
    const void *data; /* numbers only: steps of several plans share it */
    /* where its operands lie, one a tensor of its program, then buffers of its own; a host step keeps its
       own */
    const hone_ref *ref;
    const hone_access *access; /* what it does to them; NULL: a host step, whose operands say it */
    const hone_copies *copies; /* or NULL: once */
    /* refs that it reads only where it writes the same element: the result may lie on them */
    uint64_t in_place;
    /* floats that it can read or write as halves (bf16; on other devices than the CPU what precision says), a
       bit a ref; and those that are stored so (hone_steps_halve). They are 64 at most */
    uint64_t half_able, half_stored;
    /* what was chosen for it (device/wisdom.h), or NULL: nothing to choose */
    const struct hone_decision *decision;
    uint64_t ns, runs; /* where a session profiles */
    uint32_t launches; /* of kernels, a run; 0: no device's */
};
/* A step that brings bytes from one memory to another, ref 0 to ref 1, is nobody's: whoever runs segments
   does it. */
enum { HONE_UNIT_COPY = 255 };
typedef struct {
    int from, to; /* spaces */
    int64_t bytes;
} hone_transfer;
typedef struct { /* a piece of an arena */
    int64_t bytes, at;
    int64_t exact;           /* bytes that are used of it */
    int32_t first, last;     /* steps between which it holds something */
    int32_t shares;          /* may lie on this earlier block if that one dies where this is born; -1 */
    bool plain, half_stored; /* someone wants it as it is; it is floats, stored as bf16 */
    uint8_t space;           /* whose memory (hone_units) */
    const char *name; /* of the var that was placed here, for reports; NULL: a buffer of the step's own */
} hone_block;

typedef struct hone_steps { /* a plan in the making */
    hone_arena *arena;
    hone_vec(hone_step) step;
    hone_vec(hone_block) block;
    hone_vec(hone_ref *) patch;
    uint8_t space; /* of new blocks */
} hone_steps;
static inline hone_status hone_steps_no_memory(void) {
    return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
}
/* A new block, alive from the step that is added next. -1: no memory or overflow. */
int hone_steps_block(hone_steps *, int64_t bytes);
/* Adds a step with these refs (kept where they are, in the arena); they keep their blocks alive up to it. */
hone_status hone_steps_add(hone_steps *, hone_step, hone_ref *refs, int n) HONE_CHECKED;
/* Blocks of floats that all steps can read and write as halves are stored so, in half the memory. Before
   memory is planned, when all steps are there. */
void hone_steps_halve(hone_steps *);
static inline hone_ref hone_block_ref(int block, int64_t offset) {
    return (hone_ref){HONE_BASE_ARENA, block, offset};
}
#endif
