/* SPDX-License-Identifier: Apache-2.0
   dim_poly: sums of products of atoms, their division, and intervals. The order of terms (number of factors,
   then the factors, the smaller handle being the higher) respects multiplication, so that long division by
   the highest term works as in school. */
#include "base/dim_poly.h"

#include <string.h>

__extension__ typedef __int128 wide;

/* The atoms of a product; `d` itself when it is one; none of the number 1. */
static const hone_dim *factors(const hone_dims *t, const hone_dim *d, int *n) {
    *n = hone_dim_is_number(*d) ? 0 : 1;
    if (*n && hone_dim_at(t, *d)->op == HONE_DIM_MUL) {
        *n = hone_dim_at(t, *d)->n;
        return hone_dim_args(t, *d);
    }
    return d;
}

static int compare(const hone_dims *t, hone_dim a, hone_dim b) { /* > 0: a stands before b */
    int n, m;
    if (a == b) return 0;
    const hone_dim *f = factors(t, &a, &n), *g = factors(t, &b, &m);
    if (n != m) return n - m;
    for (int i = 0; i < n; i++)
        if (f[i] != g[i]) return f[i] < g[i] ? 1 : -1;
    return 0;
}

static hone_dim product_of(hone_dims *t, const hone_dim *f, int n) {
    return n == 0 ? 1 : n == 1 ? f[0] : hone_dim_intern(t, HONE_DIM_MUL, f, n);
}

/* a * b of products, UNKNOWN when there are too many factors. */
static hone_dim multiply(hone_dims *t, hone_dim a, hone_dim b) {
    int n, m, k = 0;
    if (a == 1 || b == 1) return a == 1 ? b : a;
    hone_dim merged[2 * HONE_POLY_FACTORS];
    const hone_dim *f = factors(t, &a, &n), *g = factors(t, &b, &m);
    if (n + m > HONE_POLY_FACTORS) return HONE_DIM_UNKNOWN;
    for (int i = 0, j = 0; i < n || j < m;) merged[k++] = j == m || (i < n && f[i] <= g[j]) ? f[i++] : g[j++];
    return product_of(t, merged, k);
}

/* a / b of products; UNKNOWN when b is not a part of a. */
static hone_dim take_out(hone_dims *t, hone_dim a, hone_dim b) {
    int n, m, k = 0, j = 0;
    hone_dim left[HONE_POLY_FACTORS];
    const hone_dim *f = factors(t, &a, &n), *g = factors(t, &b, &m);
    if (n > HONE_POLY_FACTORS) return HONE_DIM_UNKNOWN;
    for (int i = 0; i < n; i++)
        if (j < m && f[i] == g[j]) j++;
        else left[k++] = f[i];
    return j == m ? product_of(t, left, k) : HONE_DIM_UNKNOWN;
}

void hone_poly_of(const hone_dims *t, hone_dim d, hone_poly *p) {
    p->n = 0;
    p->overflow = false;
    if (hone_dim_is_number(d)) {
        if (d) p->term[p->n++] = (hone_poly_term){d, 1};
    } else if (hone_dim_at(t, d)->op == HONE_DIM_ADD) {
        const int64_t *arg = hone_dim_args(t, d);
        p->n = hone_dim_at(t, d)->n / 2;
        for (int i = 0; i < p->n; i++) p->term[i] = (hone_poly_term){arg[2 * i], arg[2 * i + 1]};
    } else p->term[p->n++] = (hone_poly_term){1, d};
}

hone_dim hone_poly_dim(hone_dims *t, const hone_poly *p) {
    int64_t arg[2 * HONE_POLY_TERMS];
    if (p->n == 0) return 0;
    if (p->n == 1 && p->term[0].what == 1) return hone_dim_from_result(p->term[0].times);
    if (p->n == 1 && p->term[0].times == 1) return p->term[0].what;
    for (int i = 0; i < p->n; i++) arg[2 * i] = p->term[i].times, arg[2 * i + 1] = p->term[i].what;
    return hone_dim_intern(t, HONE_DIM_ADD, arg, 2 * p->n);
}

bool hone_poly_put(hone_dims *t, hone_poly *p, int64_t times, hone_dim what) {
    int at = 0, order = 1;
    if (times == 0) return true;
    while (at < p->n && (order = compare(t, p->term[at].what, what)) > 0) at++;
    if (at < p->n && order == 0) {
        if (__builtin_add_overflow(p->term[at].times, times, &p->term[at].times))
            return !(p->overflow = true);
        if (p->term[at].times == 0)
            memmove(p->term + at, p->term + at + 1, sizeof *p->term * (size_t)(--p->n - at));
        return true;
    }
    if (p->n == HONE_POLY_TERMS) return false;
    memmove(p->term + at + 1, p->term + at, sizeof *p->term * (size_t)(p->n++ - at));
    p->term[at] = (hone_poly_term){times, what};
    return true;
}

bool hone_poly_add(hone_dims *t, hone_poly *p, const hone_poly *q, int64_t times) {
    for (int i = 0; i < q->n; i++) {
        int64_t c;
        if (__builtin_mul_overflow(q->term[i].times, times, &c)) return !(p->overflow = true);
        if (!hone_poly_put(t, p, c, q->term[i].what)) return false;
    }
    return true;
}

bool hone_poly_mul(hone_dims *t, const hone_poly *p, const hone_poly *q, hone_poly *out) {
    if (p->n * q->n > HONE_POLY_TERMS) return false;
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < q->n; j++) {
            int64_t c;
            hone_dim what = multiply(t, p->term[i].what, q->term[j].what);
            if (__builtin_mul_overflow(p->term[i].times, q->term[j].times, &c))
                return !(out->overflow = true);
            if (what == HONE_DIM_UNKNOWN || !hone_poly_put(t, out, c, what)) return false;
        }
    return true;
}

static int64_t floor_of(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

bool hone_poly_divide(hone_dims *t, const hone_poly *a, const hone_poly *b, hone_poly *quotient,
                      hone_poly *rest) {
    hone_poly left = *a;
    *quotient = *rest = (hone_poly){0};
    for (int step = 0; left.n; step++) {
        hone_poly_term top = left.term[0], by = b->term[0];
        /* A number in a sum is floored by a number; every other coefficient must divide. */
        bool fits = by.times != -1 && (top.times % by.times == 0 || (top.what == 1 && by.what == 1));
        hone_dim what = fits || by.times == -1 ? take_out(t, top.what, by.what) : HONE_DIM_UNKNOWN;
        int64_t times;
        if (by.times == -1) {
            if (__builtin_sub_overflow((int64_t)0, top.times, &times)) return false;
        } else times = floor_of(top.times, by.times);
        if (step > 4 * HONE_POLY_TERMS) return false;
        if (what == HONE_DIM_UNKNOWN || times == 0) {
            if (b->n > 1 || !hone_poly_put(t, rest, top.times, top.what)) return false;
            memmove(left.term, left.term + 1, sizeof *left.term * (size_t)--left.n);
            continue;
        }
        if (!hone_poly_put(t, quotient, times, what)) return false;
        hone_poly one = {.n = 1, .term = {{times, what}}}, taken = {0};
        if (!hone_poly_mul(t, &one, b, &taken) || !hone_poly_add(t, &left, &taken, -1)) return false;
    }
    return true;
}

bool hone_poly_cancel(hone_dims *t, hone_poly *a, hone_poly *b) {
    int n;
    bool any = false;
    if (b->n != 1) return false;
    hone_dim each[HONE_POLY_FACTORS], what = b->term[0].what;
    const hone_dim *f = factors(t, &what, &n);
    if (n > HONE_POLY_FACTORS) return false;
    memcpy(each, f, sizeof *each * (size_t)n); /* the table may move when products are interned */
    for (int k = 0; k < n; k++) {
        hone_poly less = {0};
        bool all = true;
        for (int i = 0; i < a->n && all; i++) {
            hone_dim without = take_out(t, a->term[i].what, each[k]);
            all = without != HONE_DIM_UNKNOWN && hone_poly_put(t, &less, a->term[i].times, without);
        }
        hone_dim without = all ? take_out(t, b->term[0].what, each[k]) : HONE_DIM_UNKNOWN;
        if (without == HONE_DIM_UNKNOWN) continue;
        b->term[0].what = without;
        *a = less;
        any = true;
    }
    return any;
}

/* ---- intervals ---- */

typedef struct {
    int64_t lo, hi;
} range;
static int64_t clip(wide v) { return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v; }

static range range_of(const hone_dims *t, hone_dim d) {
    range r;
    hone_dim_bounds(t, d, &r.lo, &r.hi);
    return r;
}

/* Smallest and largest of f at the four corners. A value outside int64 is UNKNOWN, not a value, so clipping
   loses nothing. */
static range corners(range a, range b, wide (*f)(int64_t, int64_t)) {
    wide v[4] = {f(a.lo, b.lo), f(a.lo, b.hi), f(a.hi, b.lo), f(a.hi, b.hi)}, lo = v[0], hi = v[0];
    for (int i = 1; i < 4; i++) lo = v[i] < lo ? v[i] : lo, hi = v[i] > hi ? v[i] : hi;
    return (range){clip(lo), clip(hi)};
}
static wide times(int64_t a, int64_t b) { return (wide)a * b; }
static wide over(int64_t a, int64_t b) { return floor_of(a, b); } /* b > 0 */

/* Of n terms, (factor, dim) each. Terms beyond 2^100 count as infinite on the side where that is safe, so
   that the sum itself cannot overflow. */
static range sum_range(const hone_dims *t, const int64_t *arg, int n) {
    const wide far = (wide)1 << 100;
    wide lo = 0, hi = 0;
    for (int i = 0; i < n; i++) {
        int64_t factor = arg[2 * i];
        range r = range_of(t, arg[2 * i + 1]);
        wide x = times(factor, factor < 0 ? r.hi : r.lo), y = times(factor, factor < 0 ? r.lo : r.hi);
        lo = x < -far || lo < -far ? -far * 2 : lo + (x > far ? far : x);
        hi = y > far || hi > far ? far * 2 : hi + (y < -far ? -far : y);
    }
    return (range){clip(lo), clip(hi)};
}

void hone_poly_bounds(const hone_dims *t, const hone_poly *p, int64_t *lo, int64_t *hi) {
    int64_t arg[2 * HONE_POLY_TERMS];
    for (int i = 0; i < p->n; i++) arg[2 * i] = p->term[i].times, arg[2 * i + 1] = p->term[i].what;
    range r = sum_range(t, arg, p->n);
    *lo = r.lo, *hi = r.hi;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

void hone_dim_row_bounds(const hone_dims *t, hone_dim_op op, const int64_t *arg, int n, int64_t *lo,
                         int64_t *hi) {
    range r = {INT64_MIN, INT64_MAX}, a = r, b = r;
    if (op != HONE_DIM_ADD && n > 1) a = range_of(t, arg[0]), b = range_of(t, arg[1]);
    switch (op) {
    case HONE_DIM_ADD: r = sum_range(t, arg, n / 2); break;
    case HONE_DIM_MUL:
        r = a;
        for (int i = 1; i < n; i++) r = corners(r, range_of(t, arg[i]), times);
        break;
    case HONE_DIM_DIV:
        if (b.lo >= 0) { /* x/0 is 0 */
            r = corners(a, (range){larger(b.lo, 1), larger(b.hi, 1)}, over);
            if (b.lo == 0) r = (range){smaller(r.lo, 0), larger(r.hi, 0)};
        }
        break;
    case HONE_DIM_MOD:
        if (b.lo >= 0) r = (range){0, larger(b.hi - 1, 0)};
        if (b.lo >= 0 && a.lo >= 0) r.hi = smaller(r.hi, a.hi);
        break;
    case HONE_DIM_MIN: r = (range){smaller(a.lo, b.lo), smaller(a.hi, b.hi)}; break;
    case HONE_DIM_MAX: r = (range){larger(a.lo, b.lo), larger(a.hi, b.hi)}; break;
    case HONE_DIM_EQ:
    case HONE_DIM_LT: r = (range){0, 1}; break;
    case HONE_DIM_SELECT: {
        range c = range_of(t, arg[2]);
        r = (range){smaller(b.lo, c.lo), larger(b.hi, c.hi)};
        break;
    }
    case HONE_DIM_SYMBOL: break;
    }
    *lo = r.lo, *hi = r.hi;
}

/* ---- print ---- */

typedef struct {
    const hone_dims *t;
    hone_text *out;
    size_t end; /* expressions share parts, so the text can be much larger than the table: stop there */
} printer;

static void print(printer *p, hone_dim d, int depth);

static void print_sum(printer *p, const int64_t *arg, int n, int depth) {
    for (int i = 0; i < n; i += 2) {
        int64_t c = arg[i];
        uint64_t size = c < 0 ? 0 - (uint64_t)c : (uint64_t)c;
        hone_text_put(p->out, i == 0 ? (c < 0 ? "-" : "") : c < 0 ? " - " : " + ");
        if (size != 1 || arg[i + 1] == 1)
            hone_text_put(p->out, arg[i + 1] == 1 ? "%llu" : "%llu*", (unsigned long long)size);
        if (arg[i + 1] != 1) print(p, arg[i + 1], depth + 1);
    }
}

static void print(printer *p, hone_dim d, int depth) {
    static const struct {
        const char *open, *between, *close;
    } words[] = {[HONE_DIM_MUL] = {"", "*", ""},       [HONE_DIM_DIV] = {"(", " / ", ")"},
                 [HONE_DIM_MOD] = {"(", " % ", ")"},   [HONE_DIM_MIN] = {"min(", ", ", ")"},
                 [HONE_DIM_MAX] = {"max(", ", ", ")"}, [HONE_DIM_EQ] = {"(", " == ", ")"},
                 [HONE_DIM_LT] = {"(", " < ", ")"},    [HONE_DIM_SELECT] = {"select(", ", ", ")"}};
    if (hone_dim_is_number(d)) {
        hone_text_put(p->out, "%lld", (long long)d);
        return;
    }
    if (!hone_dim_is_symbolic(d) || depth > 32 || p->out->n > p->end) {
        hone_text_put(p->out, "?");
        return;
    }
    const hone_dim_row *r = hone_dim_at(p->t, d);
    const int64_t *arg = r->n ? p->t->arg.at + r->first : NULL;
    if (r->op == HONE_DIM_SYMBOL && r->name) hone_text_put(p->out, "%s", r->name);
    else if (r->op == HONE_DIM_SYMBOL) hone_text_put(p->out, "_%lld", (long long)(d - HONE_DIM_BAND));
    else if (r->op == HONE_DIM_ADD) {
        if (depth) hone_text_put(p->out, "(");
        print_sum(p, arg, r->n, depth);
        if (depth) hone_text_put(p->out, ")");
    } else {
        hone_text_put(p->out, "%s", words[r->op].open);
        for (int i = 0; i < r->n; i++) {
            if (i) hone_text_put(p->out, "%s", words[r->op].between);
            print(p, arg[i], depth + 1);
        }
        hone_text_put(p->out, "%s", words[r->op].close);
    }
}

void hone_dim_print(const hone_dims *t, hone_dim d, hone_text *out) {
    printer p = {t, out, out->n + 4096};
    print(&p, d, 0);
}
