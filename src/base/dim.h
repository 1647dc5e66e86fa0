/* SPDX-License-Identifier: Apache-2.0
   dim: an extent that may be symbolic, as one int64.

   A plain number is itself. A symbolic expression is a handle: a number in one narrow band far below zero
   that no extent and no sane content can have. So arithmetic on numbers costs a compare, the same code infers
   shapes symbolically at compile and concretely at bind, and an array of dims is an array of int64.
   Expressions are hash-consed in one table a graph: equal handles mean equal values.
   The table is in evaluation order, so bind computes every expression of a model in one pass. */
#ifndef HONE_BASE_DIM_H
#define HONE_BASE_DIM_H
#include "base/mem.h"

typedef int64_t hone_dim;
/* not known, not even as an expression. Arithmetic with it gives it */
#define HONE_DIM_UNKNOWN ((hone_dim)(INT64_MIN + 1))
#define HONE_DIM_BAND ((hone_dim)(INT64_MIN + 4096)) /* handle h is HONE_DIM_BAND + h */
#define HONE_DIM_BAND_SIZE ((int64_t)1 << 24)
static inline bool hone_dim_is_number(hone_dim d) {
    return d >= HONE_DIM_BAND + HONE_DIM_BAND_SIZE || d == INT64_MIN;
}
static inline bool hone_dim_is_symbolic(hone_dim d) {
    return d >= HONE_DIM_BAND && d < HONE_DIM_BAND + HONE_DIM_BAND_SIZE;
}
/* A number from outside (a constant's contents) that falls into the band or below it means "as low as can be"
   (Slice's ends): one such number stands for all. */
static inline hone_dim hone_dim_from_content(int64_t v) { return hone_dim_is_number(v) ? v : INT64_MIN; }

/* A number that arithmetic gave and that falls there: not known. */
static inline hone_dim hone_dim_from_result(int64_t v) {
    return hone_dim_is_number(v) ? v : HONE_DIM_UNKNOWN;
}

typedef enum {
    HONE_DIM_SYMBOL,
    HONE_DIM_ADD,
    HONE_DIM_MUL,
    HONE_DIM_DIV,
    HONE_DIM_MOD,
    HONE_DIM_MIN,
    HONE_DIM_MAX,
    HONE_DIM_EQ,
    HONE_DIM_LT,
    HONE_DIM_SELECT
} hone_dim_op;
typedef struct hone_dims hone_dims; /* the table */
hone_dims *hone_dims_create(void);
void hone_dims_destroy(hone_dims *);
hone_dims *hone_dims_copy(const hone_dims *); /* the same handles mean the same in it. NULL: no memory */
int hone_dims_count(const hone_dims *);

/* A symbol by name ("batch"); the same name gives the same handle. NULL or "": a fresh one. Symbols stand for
   values >= 0. */
hone_dim hone_dim_symbol(hone_dims *, const char *name);
/* Arithmetic. Numbers fold (wrapping never: overflow gives UNKNOWN); / and % floor, x/0 and x%0 are 0, as in
   programs. `t` may be NULL where all arguments are numbers or unknown. Sums and products are kept in one
   canonical order, so that equal polynomials of symbols get equal handles; (a*b)/b is a for symbolic a and
   number b > 0 where provable. */
hone_dim hone_dim_add(hone_dims *t, hone_dim a, hone_dim b);
hone_dim hone_dim_sub(hone_dims *t, hone_dim a, hone_dim b);
hone_dim hone_dim_mul(hone_dims *t, hone_dim a, hone_dim b);
hone_dim hone_dim_div(hone_dims *t, hone_dim a, hone_dim b);
hone_dim hone_dim_mod(hone_dims *t, hone_dim a, hone_dim b);
hone_dim hone_dim_min(hone_dims *t, hone_dim a, hone_dim b);
hone_dim hone_dim_max(hone_dims *t, hone_dim a, hone_dim b);
/* 0 or 1 where decidable (equal handles; known bounds), else symbolic */
hone_dim hone_dim_eq(hone_dims *t, hone_dim a, hone_dim b);
hone_dim hone_dim_lt(hone_dims *t, hone_dim a, hone_dim b);
hone_dim hone_dim_select(hone_dims *t, hone_dim c, hone_dim a, hone_dim b); /* c != 0 ? a : b */
hone_dim hone_dim_product(hone_dims *t, const hone_dim *d, int n);
/* What is known of its range, by intervals (symbols are >= 0). */
void hone_dim_bounds(const hone_dims *t, hone_dim d, int64_t *lo, int64_t *hi);

/* Evaluate the whole table. `values[h]` must hold the values of symbols on entry (missing: HONE_DIM_UNKNOWN);
   the rest is filled in. */
void hone_dims_eval(const hone_dims *t, int64_t *values);
static inline int64_t hone_dim_value(hone_dim d, const int64_t *values) {
    return hone_dim_is_symbolic(d) ? values[d - HONE_DIM_BAND] : d;
}
int hone_dim_handle_op(const hone_dims *t, int handle);              /* hone_dim_op */
const char *hone_dim_symbol_name(const hone_dims *t, int handle);    /* "" for a fresh one */
void hone_dim_print(const hone_dims *t, hone_dim d, hone_text *out); /* "2*batch + 1", "?" for unknown */
#endif
