/* SPDX-License-Identifier: Apache-2.0
   tile_know: what is known of a stage's expressions once all parameters are numbers: constants, affine
   functions of the indices, ranges of integers. Selects, comparisons, minima and remainders that the ranges
   decide disappear here: what is left must be computed. */
#ifndef HONE_LOOPS_TILE_KNOW_H
#define HONE_LOOPS_TILE_KNOW_H
#include "loops/tile_code.h"

typedef enum { HONE_KNOW_UNUSED, HONE_KNOW_CONST, HONE_KNOW_AFFINE, HONE_KNOW_VALUE } hone_know_kind;
typedef struct {
    int32_t is; /* the node that stands for this one: itself, or the arm that a decided select takes */
    uint8_t kind;
    bool fails;      /* holds a load that may be outside and has no `else` */
    bool live;       /* computed: reached from the stage's results through `is` */
    hone_scalar k;   /* CONST */
    int64_t lo, hi;  /* i32, i64: range */
    int64_t *affine; /* AFFINE: a coefficient an index, then the constant; i64 only */
} hone_know;
typedef struct {
    hone_arena *arena; /* of the knowledge: may go when the code is made */
    const hone_instance *in;
    const hone_stage *stage;
    const hone_param *param;
    int n_slot; /* the stage's indices: domain, then reduced */
    int64_t extent[HONE_SLOTS];
    int over;     /* slot of the over index, or -1 */
    hone_know *x; /* one an expression of the instance */
} hone_knows;

hone_status hone_know_stage(hone_arena *, const hone_instance *, int stage, const hone_param *,
                            hone_knows *out) HONE_CHECKED;
static inline hone_know *hone_know_of(const hone_knows *w, int32_t x) { return w->x + w->x[x].is; }
/* Subscript k of a load (or of the stage's target: load NULL) and the extent it must be below. */
int hone_know_subs(const hone_knows *, const hone_x *load);
int32_t hone_know_sub(const hone_knows *, const hone_x *load, int k);
int64_t hone_know_dim(const hone_knows *, const hone_x *load, int tensor, int k);
static inline bool hone_know_inside(const hone_know *k, int64_t dim) { return k->lo >= 0 && k->hi < dim; }
/* d += f * s, coefficient by coefficient; false where a number does not fit. CONST counts as affine. */
bool hone_know_add(const hone_knows *, int64_t *d, const hone_know *s, int64_t f);
#endif
