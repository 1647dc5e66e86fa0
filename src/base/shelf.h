/* SPDX-License-Identifier: Apache-2.0
   shelf: what was made of numbers alone and never changes, kept by those numbers, so that plans of one model share it: layers of equal shape within a plan,
   and whatever a change of a few dims leaves as it was. Thread-safe.

   A shelf is counted: the model holds the current one, each plan the one it was made with. A full one is replaced, and goes with its last plan; one that no plan
   holds is emptied instead. */
#ifndef HONE_BASE_SHELF_H
#define HONE_BASE_SHELF_H
#include "base/mem.h"

typedef struct hone_shelves hone_shelves; /* one a compiled model */
typedef struct hone_shelf hone_shelf;
hone_shelves *hone_shelves_create(void); /* NULL: no memory */
void hone_shelves_destroy(hone_shelves *);
hone_shelf *hone_shelves_hold(hone_shelves *); /* the current one */
void hone_shelf_drop(hone_shelf *);            /* NULL is fine */
/* What `make(arena, arg, out)` makes of these numbers, made the first time; it lives as long as the shelf. What could not be made is not kept. */
typedef hone_status hone_shelf_make(hone_arena *, const void *arg, const void **out);
hone_status hone_shelf_get(hone_shelf *, const int64_t *key, int n, hone_shelf_make *make, const void *arg, const void **out) HONE_CHECKED;
#endif
