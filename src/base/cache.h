/* SPDX-License-Identifier: Apache-2.0
   cache: what was made of numbers alone and never changes, kept by those numbers, so that plans of one model
   share it: layers of equal shape within a plan, and whatever a change of a few dims leaves as it was.
   Thread-safe.

   A cache is counted: the model holds the current one, each plan the one it was made with. A full one is
   replaced, and goes with its last plan; one that no plan holds is emptied instead. */
#ifndef HONE_BASE_CACHE_H
#define HONE_BASE_CACHE_H
#include "base/mem.h"

typedef struct hone_caches hone_caches; /* one a compiled model */
typedef struct hone_cache hone_cache;
hone_caches *hone_caches_create(void); /* NULL: no memory */
void hone_caches_destroy(hone_caches *);
hone_cache *hone_caches_hold(hone_caches *); /* the current one */
void hone_cache_drop(hone_cache *);          /* NULL is fine */
/* What `make(arena, arg, out)` makes of these numbers, made the first time; it lives as long as the cache.
   What could not be made is not kept. */
typedef hone_status hone_cache_make(hone_arena *, const void *arg, const void **out);
hone_status hone_cache_get(hone_cache *, const int64_t *key, int n, hone_cache_make *make, const void *arg,
                           const void **out) HONE_CHECKED;
#endif
