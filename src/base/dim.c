/* SPDX-License-Identifier: Apache-2.0
   dim: the table of expressions, and arithmetic on dims. Polynomials are in dim_poly.c.

   What a handle may be:
     atom     SYMBOL, DIV, MOD, MIN, MAX, EQ, LT, SELECT    arguments are dims
     product  MUL    [atom, atom, …]                         two or more, sorted
     sum      ADD    [coefficient, product or atom or 1, …]  pairs in the order of dim_poly.c; 2*n is a sum of
                                                             one pair
   Each is interned, so one value has one handle as far as these forms can tell. Bounds are found once, when a
   handle is made.

   A symbol in a divisor counts as nonzero when an expression is simplified: (n*c)/n is c, which is what
   reshape arithmetic means. Where the symbol turns out to be 0 the tensor is empty and the plan's own checks
   speak. */
#include <string.h>

#include "base/dim_poly.h"

/* ---- the table ---- */

hone_dims *hone_dims_create(void) {
    hone_dims *t = hone_alloc(sizeof *t);
    if (t && !(t->names = hone_arena_create())) hone_free(t), t = NULL;
    return t;
}

void hone_dims_destroy(hone_dims *t) {
    if (!t) return;
    hone_arena_destroy(t->names);
    hone_vec_free(&t->row);
    hone_vec_free(&t->arg);
    hone_vec_free(&t->bucket);
    hone_free(t);
}

hone_dims *hone_dims_copy(const hone_dims *from) {
    hone_dims *t = hone_dims_create();
    bool good = t != NULL;
    for (int k = 0; good && k < from->arg.n; k++) good = hone_push(&t->arg, from->arg.at[k]);
    for (int k = 0; good && k < from->bucket.n; k++) good = hone_push(&t->bucket, from->bucket.at[k]);
    for (int k = 0; good && k < from->row.n; k++) {
        hone_dim_row row = from->row.at[k];
        if (row.name) good = (row.name = hone_arena_textn(t->names, row.name, strlen(row.name))) != NULL;
        good = good && hone_push(&t->row, row);
    }
    if (!good) hone_dims_destroy(t), t = NULL;
    return t;
}
int hone_dims_count(const hone_dims *t) { return t->row.n; }
int hone_dim_handle_op(const hone_dims *t, int handle) { return t->row.at[handle].op; }
const char *hone_dim_symbol_name(const hone_dims *t, int handle) {
    return t->row.at[handle].name ? t->row.at[handle].name : "";
}

/* as FNV-1a */
static uint32_t mix(uint32_t h, uint64_t v) {
    return ((h ^ (uint32_t)v) * 16777619u ^ (uint32_t)(v >> 32)) * 16777619u;
}

/* Doubles the chains' heads when rows outnumber them. */
static bool rehash(hone_dims *t) {
    int n = t->bucket.n ? t->bucket.n * 2 : 64;
    if (!hone_vec_grow((void **)&t->bucket.at, &t->bucket.room, n, sizeof *t->bucket.at)) return false;
    t->bucket.n = n;
    for (int i = 0; i < n; i++) t->bucket.at[i] = -1;
    for (int h = 0; h < t->row.n; h++) {
        int *head = &t->bucket.at[t->row.at[h].hash & (uint32_t)(n - 1)];
        t->row.at[h].next = *head;
        *head = h;
    }
    return true;
}

static hone_dim append(hone_dims *t, hone_dim_row row) {
    if (t->row.n >= HONE_DIM_BAND_SIZE || (t->row.n >= t->bucket.n && !rehash(t))) return HONE_DIM_UNKNOWN;
    int *head = &t->bucket.at[row.hash & (uint32_t)(t->bucket.n - 1)];
    row.next = *head;
    if (!hone_push(&t->row, row)) return HONE_DIM_UNKNOWN;
    *head = t->row.n - 1;
    return HONE_DIM_BAND + *head;
}

hone_dim hone_dim_symbol(hone_dims *t, const char *name) {
    hone_dim_row row = {.op = HONE_DIM_SYMBOL, .lo = 0, .hi = INT64_MAX};
    if (name && *name) {
        row.hash = 2166136261u;
        for (const char *c = name; *c; c++) row.hash = mix(row.hash, (unsigned char)*c);
        for (int h = t->bucket.n ? t->bucket.at[row.hash & (uint32_t)(t->bucket.n - 1)] : -1; h >= 0;
             h = t->row.at[h].next)
            if (t->row.at[h].name && !strcmp(t->row.at[h].name, name)) return HONE_DIM_BAND + h;
        if (!(row.name = hone_arena_textn(t->names, name, strlen(name)))) return HONE_DIM_UNKNOWN;
    }
    return append(t, row);
}

hone_dim hone_dim_intern(hone_dims *t, hone_dim_op op, const int64_t *arg, int n) {
    uint32_t hash = 2166136261u + (uint32_t)op;
    for (int k = 0; k < n; k++) hash = mix(hash, (uint64_t)arg[k]);
    for (int h = t->bucket.n ? t->bucket.at[hash & (uint32_t)(t->bucket.n - 1)] : -1; h >= 0;
         h = t->row.at[h].next) {
        const hone_dim_row *r = &t->row.at[h];
        if (r->hash == hash && r->op == op && r->n == n &&
            !memcmp(t->arg.at + r->first, arg, sizeof *arg * (size_t)n))
            return HONE_DIM_BAND + h;
    }
    hone_dim_row row = {.op = (uint8_t)op, .n = n, .first = t->arg.n, .hash = hash};
    hone_dim_row_bounds(t, op, arg, n, &row.lo, &row.hi);
    for (int i = 0; i < n; i++)
        if (!hone_push(&t->arg, arg[i])) return HONE_DIM_UNKNOWN;
    return append(t, row);
}

void hone_dim_bounds(const hone_dims *t, hone_dim d, int64_t *lo, int64_t *hi) {
    if (hone_dim_is_symbolic(d) && t) *lo = hone_dim_at(t, d)->lo, *hi = hone_dim_at(t, d)->hi;
    else if (hone_dim_is_number(d)) *lo = *hi = d;
    else *lo = INT64_MIN, *hi = INT64_MAX;
}

/* ---- numbers ---- */

static inline bool numbers(hone_dim a, hone_dim b) { return hone_dim_is_number(a) && hone_dim_is_number(b); }
static inline bool hopeless(const hone_dims *t, hone_dim a, hone_dim b) {
    return a == HONE_DIM_UNKNOWN || b == HONE_DIM_UNKNOWN || !t;
}

static int64_t floor_div(int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return a == INT64_MIN ? HONE_DIM_UNKNOWN : hone_dim_from_result(-a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t floor_mod(int64_t a, int64_t b) {
    if (b == 0 || b == -1) return 0;
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* ---- arithmetic ---- */

static bool put_whole(hone_dims *t, hone_poly *p, hone_dim d) {
    return hone_dim_is_number(d) ? hone_poly_put(t, p, d, 1) : hone_poly_put(t, p, 1, d);
}

hone_dim hone_dim_add(hone_dims *t, hone_dim a, hone_dim b) {
    int64_t r;
    if (numbers(a, b)) return __builtin_add_overflow(a, b, &r) ? HONE_DIM_UNKNOWN : hone_dim_from_result(r);
    if (hopeless(t, a, b)) return HONE_DIM_UNKNOWN;
    if (a == 0 || b == 0) return a == 0 ? b : a;
    hone_poly p, q;
    hone_poly_of(t, a, &p);
    hone_poly_of(t, b, &q);
    if (hone_poly_add(t, &p, &q, 1)) return hone_poly_dim(t, &p);
    if (p.overflow) return HONE_DIM_UNKNOWN;
    /* Too many terms: both stand whole in a sum of two. */
    p.n = 0;
    return put_whole(t, &p, a) && put_whole(t, &p, b) ? hone_poly_dim(t, &p) : HONE_DIM_UNKNOWN;
}

hone_dim hone_dim_mul(hone_dims *t, hone_dim a, hone_dim b) {
    int64_t r;
    if (numbers(a, b)) return __builtin_mul_overflow(a, b, &r) ? HONE_DIM_UNKNOWN : hone_dim_from_result(r);
    if (hopeless(t, a, b)) return HONE_DIM_UNKNOWN;
    if (a == 0 || b == 0) return 0;
    if (a == 1 || b == 1) return a == 1 ? b : a;
    hone_poly p, q, product = {0};
    hone_poly_of(t, a, &p);
    hone_poly_of(t, b, &q);
    if (hone_poly_mul(t, &p, &q, &product)) return hone_poly_dim(t, &product);
    if (product.overflow || hone_dim_is_number(a) || hone_dim_is_number(b)) return HONE_DIM_UNKNOWN;
    /* Too many terms or factors: both stand whole in a product of two. */
    return hone_dim_intern(t, HONE_DIM_MUL, a < b ? (int64_t[]){a, b} : (int64_t[]){b, a}, 2);
}

hone_dim hone_dim_sub(hone_dims *t, hone_dim a, hone_dim b) {
    int64_t r;
    if (numbers(a, b)) return __builtin_sub_overflow(a, b, &r) ? HONE_DIM_UNKNOWN : hone_dim_from_result(r);
    if (a == b && hone_dim_is_symbolic(a)) return 0;
    return hone_dim_add(t, a, hone_dim_mul(t, b, -1));
}

hone_dim hone_dim_product(hone_dims *t, const hone_dim *d, int n) {
    hone_dim r = 1;
    for (int i = 0; i < n; i++) r = hone_dim_mul(t, r, d[i]);
    return r;
}

/* a - b without leaving it in the table. False: cannot be formed. */
static bool difference(hone_dims *t, hone_dim a, hone_dim b, hone_poly *out) {
    hone_poly q;
    hone_poly_of(t, a, out);
    hone_poly_of(t, b, &q);
    return hone_poly_add(t, out, &q, -1);
}

/* Is 0 <= r < b, as far as intervals can tell? */
static bool within(hone_dims *t, hone_dim r, hone_dim b) {
    int64_t lo, hi;
    hone_poly d;
    hone_dim_bounds(t, r, &lo, &hi);
    if (lo < 0 || !difference(t, r, b, &d)) return false;
    hone_poly_bounds(t, &d, &lo, &hi);
    return hi < 0;
}

/* floor(r / b) for number b > 1 where r has no term that is a multiple of b: common factors go, and divisions
   in divisions are one. */
static hone_dim divide_by_number(hone_dims *t, hone_poly r, int64_t b) {
    int64_t common = b;
    for (int i = 0; i < r.n; i++)
        if (r.term[i].what != 1)
            for (int64_t x = floor_mod(r.term[i].times, common), rest; x; common = x, x = rest)
                rest = common % x;
    /* floor((g*x + c) / (g*b)) = floor((x + floor(c/g)) / b) */
    if (common > 1)
        for (int i = 0; i < r.n; i++) r.term[i].times = floor_div(r.term[i].times, common);
    if (common > 1 && r.term[r.n - 1].times == 0) r.n--;
    b /= common;
    hone_dim whole = hone_poly_dim(t, &r);
    if (common > 1) return hone_dim_div(t, whole, b);
    /* floor((p + floor(x/d)) / b) = floor((p*d + x) / (d*b)) */
    for (int i = 0; i < r.n; i++) {
        hone_dim inner = r.term[i].what, scale;
        if (r.term[i].times != 1 || !hone_dim_is_symbolic(inner) || hone_dim_at(t, inner)->op != HONE_DIM_DIV)
            continue;
        hone_dim x = hone_dim_args(t, inner)[0], d = hone_dim_args(t, inner)[1];
        if (!hone_dim_is_number(d) || d <= 0 || (scale = hone_dim_mul(t, d, b)) == HONE_DIM_UNKNOWN) continue;
        hone_dim over = hone_dim_add(t, hone_dim_mul(t, hone_dim_sub(t, whole, inner), d), x);
        if (over != HONE_DIM_UNKNOWN) return hone_dim_div(t, over, scale);
    }
    return hone_dim_intern(t, HONE_DIM_DIV, (int64_t[]){whole, b}, 2);
}

hone_dim hone_dim_div(hone_dims *t, hone_dim a, hone_dim b) {
    if (numbers(a, b)) return floor_div(a, b);
    if (hopeless(t, a, b)) return HONE_DIM_UNKNOWN;
    if (a == 0 || b == 0) return 0;
    if (b == 1) return a;
    /* a = quotient*b + rest, so a/b = quotient + rest/b */
    hone_poly p, by, quotient, rest;
    hone_poly_of(t, a, &p);
    hone_poly_of(t, b, &by);
    if (!hone_poly_divide(t, &p, &by, &quotient, &rest))
        return hone_dim_intern(t, HONE_DIM_DIV, (int64_t[]){a, b}, 2);
    hone_dim q = hone_poly_dim(t, &quotient);
    if (rest.n == 0) return q;
    if (hone_poly_cancel(t, &rest, &by))
        return hone_dim_add(t, q, hone_dim_div(t, hone_poly_dim(t, &rest), hone_poly_dim(t, &by)));
    hone_dim r = hone_poly_dim(t, &rest), part;
    if (r == HONE_DIM_UNKNOWN || q == HONE_DIM_UNKNOWN) return HONE_DIM_UNKNOWN;
    if (within(t, r, b)) part = 0;
    else if (hone_dim_is_number(b) && b > 1) part = divide_by_number(t, rest, b);
    else part = hone_dim_intern(t, HONE_DIM_DIV, (int64_t[]){r, b}, 2);
    return hone_dim_add(t, q, part);
}

hone_dim hone_dim_mod(hone_dims *t, hone_dim a, hone_dim b) {
    if (numbers(a, b)) return floor_mod(a, b);
    if (hopeless(t, a, b)) return HONE_DIM_UNKNOWN;
    if (a == 0 || b == 0 || b == 1 || b == -1) return 0;
    hone_poly p, by, quotient, rest;
    hone_poly_of(t, a, &p);
    hone_poly_of(t, b, &by);
    hone_dim r = hone_poly_divide(t, &p, &by, &quotient, &rest) ? hone_poly_dim(t, &rest) : a;
    if (r == HONE_DIM_UNKNOWN || r == 0 || numbers(r, b))
        return r == HONE_DIM_UNKNOWN || r == 0 ? r : floor_mod(r, b);
    return within(t, r, b) ? r : hone_dim_intern(t, HONE_DIM_MOD, (int64_t[]){r, b}, 2);
}

static hone_dim least(hone_dims *t, hone_dim a, hone_dim b, hone_dim_op op) {
    bool min = op == HONE_DIM_MIN;
    if (numbers(a, b)) return (a < b) == min ? a : b;
    if (hopeless(t, a, b)) return HONE_DIM_UNKNOWN;
    int64_t lo = INT64_MIN, hi = INT64_MAX;
    hone_poly d;
    if (difference(t, a, b, &d)) hone_poly_bounds(t, &d, &lo, &hi);
    if (hi <= 0) return min ? a : b;
    if (lo >= 0) return min ? b : a;
    return hone_dim_intern(t, op, a < b ? (int64_t[]){a, b} : (int64_t[]){b, a}, 2);
}

hone_dim hone_dim_min(hone_dims *t, hone_dim a, hone_dim b) { return least(t, a, b, HONE_DIM_MIN); }
hone_dim hone_dim_max(hone_dims *t, hone_dim a, hone_dim b) { return least(t, a, b, HONE_DIM_MAX); }

/* Comparisons keep the difference against 0, so that x+1 = y+1 and x = y are one question. */
hone_dim hone_dim_eq(hone_dims *t, hone_dim a, hone_dim b) {
    if (numbers(a, b)) return a == b;
    if (hopeless(t, a, b)) return HONE_DIM_UNKNOWN;
    if (a == b) return 1;
    int64_t lo, hi;
    hone_poly d, none = {0};
    if (!difference(t, a, b, &d))
        return hone_dim_intern(t, HONE_DIM_EQ, a < b ? (int64_t[]){a, b} : (int64_t[]){b, a}, 2);
    hone_poly_bounds(t, &d, &lo, &hi);
    if (lo > 0 || hi < 0) return 0;
    if (lo == 0 && hi == 0) return 1;
    if (d.term[0].times < 0 && hone_poly_add(t, &none, &d, -1)) d = none;
    hone_dim whole = hone_poly_dim(t, &d);
    return whole == HONE_DIM_UNKNOWN ? whole : hone_dim_intern(t, HONE_DIM_EQ, (int64_t[]){whole, 0}, 2);
}

hone_dim hone_dim_lt(hone_dims *t, hone_dim a, hone_dim b) {
    if (numbers(a, b)) return a < b;
    if (hopeless(t, a, b)) return HONE_DIM_UNKNOWN;
    int64_t lo, hi;
    hone_poly d;
    if (!difference(t, a, b, &d)) return hone_dim_intern(t, HONE_DIM_LT, (int64_t[]){a, b}, 2);
    hone_poly_bounds(t, &d, &lo, &hi);
    if (hi < 0 || lo >= 0) return hi < 0;
    hone_dim whole = hone_poly_dim(t, &d);
    return whole == HONE_DIM_UNKNOWN ? whole : hone_dim_intern(t, HONE_DIM_LT, (int64_t[]){whole, 0}, 2);
}

hone_dim hone_dim_select(hone_dims *t, hone_dim c, hone_dim a, hone_dim b) {
    if (hone_dim_is_number(c)) return c ? a : b;
    if (a == b) return a;
    if (c == HONE_DIM_UNKNOWN || hopeless(t, a, b)) return HONE_DIM_UNKNOWN;
    return hone_dim_intern(t, HONE_DIM_SELECT, (int64_t[]){c, a, b}, 3);
}

/* ---- evaluation ---- */

static int64_t sum_of(const int64_t *arg, int n, const int64_t *values) {
    __extension__ __int128 sum = 0, product;
    for (int i = 0; i < n; i += 2) {
        int64_t v = hone_dim_value(arg[i + 1], values);
        if (v == HONE_DIM_UNKNOWN) return v;
        product = arg[i];
        product *= v;
        if (__builtin_add_overflow(sum, product, &sum)) return HONE_DIM_UNKNOWN;
    }
    return sum > INT64_MAX || sum < INT64_MIN ? HONE_DIM_UNKNOWN : hone_dim_from_result((int64_t)sum);
}

void hone_dims_eval(const hone_dims *t, int64_t *values) {
    hone_dim (*const two[])(hone_dims *, hone_dim, hone_dim) = {
        [HONE_DIM_DIV] = hone_dim_div, [HONE_DIM_MOD] = hone_dim_mod, [HONE_DIM_MIN] = hone_dim_min,
        [HONE_DIM_MAX] = hone_dim_max, [HONE_DIM_EQ] = hone_dim_eq,   [HONE_DIM_LT] = hone_dim_lt};
    for (int h = 0; h < t->row.n; h++) {
        const hone_dim_row *r = &t->row.at[h];
        int64_t v;
        if (r->op == HONE_DIM_SYMBOL) { /* has no arguments */
            values[h] = hone_dim_from_result(values[h]);
            continue;
        }
        const int64_t *arg = t->arg.at + r->first;
        switch (r->op) {
        case HONE_DIM_ADD: v = sum_of(arg, r->n, values); break;
        case HONE_DIM_MUL:
            v = 1;
            for (int i = 0; i < r->n; i++) v = hone_dim_mul(NULL, v, hone_dim_value(arg[i], values));
            break;
        case HONE_DIM_SELECT:
            v = hone_dim_select(NULL, hone_dim_value(arg[0], values), hone_dim_value(arg[1], values),
                                hone_dim_value(arg[2], values));
            break;
        default: v = two[r->op](NULL, hone_dim_value(arg[0], values), hone_dim_value(arg[1], values));
        }
        values[h] = v;
    }
}
