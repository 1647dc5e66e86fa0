/* SPDX-License-Identifier: Apache-2.0
   packs: the model's constants as bases, and their packed forms, one cache a compiled model. Thread-safe.

   A base is a number in a run's table. Constants and packed forms have the numbers below 0: steps name them
   so, and whoever runs steps asks here where they are. */
#ifndef HONE_DEVICE_PACKS_H
#define HONE_DEVICE_PACKS_H
#include "base/mem.h"

enum {
    HONE_BASE_NONE /* not placed, and never touched */,
    HONE_BASE_ARENA,
    HONE_BASE_PLAN, /* what was computed when the plan was made */
    HONE_BASE_FIRST /* + inputs, outputs, slots */
};
static inline int32_t hone_base_constant(int number) { return -1 - number; }
static inline bool hone_base_is_constant(int32_t base) { return base < 0; }

typedef struct {
    const void *at;
    size_t bytes;
} hone_constant;
/* of a model, those of its bodies too; made by compile, then never changed */
typedef hone_vec(hone_constant) hone_constants;

typedef struct hone_packs hone_packs;
/* which stay its owner's; their number is asked for when one is packed. NULL: no memory */
hone_packs *hone_packs_create(const hone_constants *);
void hone_packs_destroy(hone_packs *);
/* A packed form: key: n numbers that, with the source, say all about it. The first time `fill(arg, dst,
   part, parts)` is noted, which hone_packs_fill calls for each of its parts, on any thread; arg is copied,
   and what it points to must live until then. Returns its base; HONE_BASE_NONE: no memory. */
typedef struct {
    const void *source;
    size_t source_bytes, bytes;
    int parts;
    void (*fill)(const void *arg, void *dst, int part, int parts);
    const void *arg;
    size_t arg_bytes;
} hone_packing;
int32_t hone_packs_get(hone_packs *, const int64_t *key, int n, const hone_packing *);
/* All that was noted is filled when it returns, by whomever. Whoever has asked for one calls it before one is
   read, and before anything goes that an arg points to. */
void hone_packs_fill(hone_packs *, int threads);
size_t hone_packs_bytes(const hone_packs *);
void hone_packs_empty(hone_packs *); /* forgets all packed forms; no plan may be left that reads them */
int hone_packs_count(hone_packs *);  /* constants and packed forms so far: their bases are -1 … -count */
/* Where numbers from … to - 1 lie, into base[-1 - number]. */
void hone_packs_bases(hone_packs *, int from, int to, void **base);
void *hone_packs_at(hone_packs *, int32_t base); /* one of them */
/* Where a constant lies, for who looks at its numbers or packs them. */
const void *hone_packs_constant(const hone_packs *, int32_t base);
size_t hone_packs_size(hone_packs *, int32_t base); /* bytes behind a base */
#endif
