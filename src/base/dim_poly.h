/* SPDX-License-Identifier: Apache-2.0
   dim_poly: a dim as a polynomial on the stack, while arithmetic works on it; and the table's rows. Private
   to base. */
#ifndef HONE_BASE_DIM_POLY_H
#define HONE_BASE_DIM_POLY_H
#include "base/dim.h"

typedef struct {
    uint8_t op;       /* hone_dim_op */
    int32_t first, n; /* its arguments in the table's `arg` */
    uint32_t hash;
    int32_t next;     /* in the hash chain */
    const char *name; /* of a named symbol */
    int64_t lo, hi;
} hone_dim_row;

struct hone_dims {
    hone_vec(hone_dim_row) row; /* by handle; arguments stand before their users */
    hone_vec(int64_t) arg;
    hone_vec(int) bucket;
    hone_arena *names;
};
static inline const hone_dim_row *hone_dim_at(const hone_dims *t, hone_dim d) {
    return &t->row.at[d - HONE_DIM_BAND];
}
static inline const int64_t *hone_dim_args(const hone_dims *t, hone_dim d) {
    return t->arg.at + hone_dim_at(t, d)->first;
}
/* the handle of this row, new or not */
hone_dim hone_dim_intern(hone_dims *, hone_dim_op, const int64_t *arg, int n);
void hone_dim_row_bounds(const hone_dims *, hone_dim_op, const int64_t *arg, int n, int64_t *lo, int64_t *hi);

/* Terms stand from the highest to the lowest: more factors first, then by factors. `what` is a product, an
   atom, or 1. No term is 0. */
enum { HONE_POLY_TERMS = 64, HONE_POLY_FACTORS = 16 };
typedef struct {
    int64_t times;
    hone_dim what;
} hone_poly_term;
typedef struct {
    int n;
    bool overflow; /* a coefficient left int64 */
    hone_poly_term term[HONE_POLY_TERMS];
} hone_poly;
void hone_poly_of(const hone_dims *, hone_dim, hone_poly *);
hone_dim hone_poly_dim(hone_dims *, const hone_poly *); /* interned; UNKNOWN when out of memory */
/* These are false when the result has too many terms or factors or a coefficient overflows; what they wrote
   is then of no use. */
bool hone_poly_put(hone_dims *, hone_poly *, int64_t times, hone_dim what);            /* += times * what */
bool hone_poly_add(hone_dims *, hone_poly *, const hone_poly *, int64_t times);        /* += times * other */
bool hone_poly_mul(hone_dims *, const hone_poly *, const hone_poly *, hone_poly *out); /* out += product */
/* a = quotient*b + rest. A divisor of several terms must divide without rest, else false. */
bool hone_poly_divide(hone_dims *, const hone_poly *a, const hone_poly *b, hone_poly *quotient,
                      hone_poly *rest);
/* takes out what is a factor of every term of both; true if anything */
bool hone_poly_cancel(hone_dims *, hone_poly *a, hone_poly *b);
void hone_poly_bounds(const hone_dims *, const hone_poly *, int64_t *lo, int64_t *hi);
#endif
