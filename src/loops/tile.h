/* SPDX-License-Identifier: Apache-2.0
   tile: tile code, the fast executor of one stage of an instance once all its numbers are known. Not a
   schedule: threads, order of stages and memory belong to the caller.

   The stage's domain is flattened, outermost index first, and walked in tiles of some hundred elements that
   may span several rows. An instruction works on a whole tile of one compute type; its registers are buffers
   that stay in L1, or the tensor's own memory. No machine code is made. Meaning: hone_interpret_stage, bit
   for bit; sums within rounding, in an order that only the shape decides. */
#ifndef HONE_LOOPS_TILE_H
#define HONE_LOOPS_TILE_H
#include "loops/instance.h"

/* read-only once made; any number of threads may run it. Base addresses are given at run */
typedef struct hone_tilecode hone_tilecode;

/* tensor: only strides are used. acc_tensor: a temporary whose values at the domain's own indices the caller
   hands to run in `acc` (the tile a hand-written kernel has just computed), or -1. HONE_NOT_SUPPORTED: use
   the interpreter. */
hone_status hone_tilecode_make(hone_arena *, const hone_instance *, int stage, const hone_param *,
                               const hone_tensor_view *tensor, int acc_tensor,
                               hone_tilecode **out) HONE_CHECKED;
/* of the domain, without reduced indices and the over index */
int64_t hone_tilecode_elements(const hone_tilecode *);
/* two elements may store to one place: it must run in one piece */
bool hone_tilecode_whole(const hone_tilecode *);
/* elements that make a good piece of work for one of so many threads */
int64_t hone_tilecode_grain(const hone_tilecode *, int threads);
size_t hone_tilecode_scratch(const hone_tilecode *); /* bytes a thread, 64-byte aligned */
/* Elements first … first + n - 1. base: one address a tensor of the instance (unused ones may be NULL).
   over: value of the over index, or 0. acc: n values (f32 or i32, as the temporary's type says), or NULL. */
hone_status hone_tilecode_run(const hone_tilecode *, void *const *base, int64_t first, int64_t n,
                              int64_t over, const void *acc, void *scratch) HONE_CHECKED;
/* All stages, on this thread; temporaries must be placed. Falls back to the interpreter. */
hone_status hone_tile_all(const hone_instance *, const hone_param *,
                          const hone_tensor_view *tensor) HONE_CHECKED;
#endif
