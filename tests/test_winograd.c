/* SPDX-License-Identifier: Apache-2.0
   test_winograd: convolutions by tiles. The transforms against plain matrices in double, made here of the
   points alone; convolutions of odd sizes against the definition, on every CPU level, by blocks and by three
   steps, one thread and two (equal bits); how far it errs; what infinity and NaN do. */
#include <float.h>

#include "device/wisdom.h"
#include "kernels/gemm.h"
#include "kernels/winograd.h"

#include "twin.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
static const float GUARD = 12345.678f;
static float random_value(void) { return (float)draw(-1000000, 1000000) / 1e6f; }
static float *exact_floats(size_t n) { /* exactly n, so that one too many is seen */
    float *p = malloc(n ? n * sizeof *p : 1);
    assert_non_null(p);
    for (size_t i = 0; i < n; i++) p[i] = random_value();
    return p;
}

/* ---- the transforms ------------------------------------------------------------------------------------ */
typedef struct {
    int o, e, t;                /* results, pixels, taps */
    double a[48], b[64], g[40]; /* A' o x e, B' e x e, G e x t */
    int place[8];               /* which of all they are */
} matrices;
/* Lagrange: at point p, 1 p p^2 … of both factors; from the products back to coefficients with the others' (x
   - q); transposed, since a convolution that walks a window is the transpose of a product of polynomials. */
/* Without some pairs: of the other points, but for filters as before; what those miss is the pixels'
   factor. */
static matrices plain(int edge, int taps, int pairs) {
    static const double all[][7] = {{0, 1, -1}, {0, 0.625, -0.625, 1.5, -1.5}, {0, 0.5, -0.5, 1, -1, 2, -2}};
    if (edge == 1) return (matrices){1, 1, 1, {1}, {1}, {1}, {0}};
    matrices m = {.e = 0, .t = taps};
    double point[8], without[8];
    int n_without = 0;
    for (int i = 0; i < edge; i++) {
        if (hone_winograd_lacks(pairs, i)) without[n_without++] = all[edge / 2 - 2][i];
        else point[m.e] = i < edge - 1 ? all[edge / 2 - 2][i] : 0, m.place[m.e++] = i;
    }
    m.o = m.e - taps + 1;
    assert_int_equal(n_without, 2 * pairs);
    for (int i = 0; i < m.e; i++) {
        const bool infinity = i == m.e - 1;
        double c[9] = {1}, less = 1, power = 1,
               /* the polynomial with roots at the other points, and its value here */
            p = infinity ? 0 : point[i];
        for (int k = 0, n = 0; k < m.e - 1; k++) {
            if (k == i) continue;
            for (int q = ++n; q >= 0; q--) c[q] = (q ? c[q - 1] : 0) - point[k] * c[q];
            if (!infinity) less *= p - point[k];
        }
        double factor = 1;
        for (int q = 0; q < n_without && !infinity; q++) factor *= p - without[q];
        for (int q = 0; q < m.e; q++) m.b[i * m.e + q] = factor * c[q];
        for (int q = 0; q < m.o; q++, power *= p) m.a[q * m.e + i] = infinity ? q == m.o - 1 : power;
        power = 1;
        for (int q = 0; q < taps; q++, power *= p)
            m.g[i * taps + q] = infinity ? q == taps - 1 : power / less / factor;
    }
    return m;
}
/* down x across', of a matrix of ny x nx, and the sum of magnitudes; down is my x ny, across mx x nx. */
static void both_ways(int my, int ny, const double *down, int mx, int nx, const double *across,
                      const double *x, double *y, double *magnitude) {
    for (int r = 0; r < my; r++)
        for (int s = 0; s < mx; s++) {
            double sum = 0, size = 0;
            for (int i = 0; i < ny; i++)
                for (int k = 0; k < nx; k++) {
                    const double term = down[r * ny + i] * x[i * nx + k] * across[s * nx + k];
                    sum += term, size += fabs(term);
                }
            y[r * mx + s] = sum, magnitude[r * mx + s] = size;
        }
}
static const int widths[] = {1, 3, 4, 5, 8, 9, 15, 16, 17, 31, 33, 48, 64, 70};
static void transform(int size, int side, bool line, hone_winograd_less less) {
    const int all = hone_winograd_edge(size), tall = line ? 1 : hone_winograd_tall(size),
              results = hone_winograd_out(size, side);
    const matrices my = plain(tall, side, less.y), mx = plain(all, side, less.x);
    double x[64], y[64], magnitude[64];
    const int places = my.e * mx.e, pixels = my.o * mx.o, window = my.t * mx.t;
    assert_true(mx.o == results - 2 * less.x && (less.y || line || my.o == tall - side + 1));
    for (const hone_winograd_f32 *row = hone_winograd_f32_list; row->name; row++)
        for (size_t q = 0;
             q < COUNT(widths) && !(row->cpu & ~hone_cpu()) && (row->lacks || !(less.y || less.x)); q++) {
            const int n = widths[q];
            const ptrdiff_t apart = n + 3;
            const float *pixel[64] = {NULL};
            float *own[64], *v = exact_floats((size_t)(tall * all * apart));
            /* where a pixel, a place and a result lie among all of them */
#define PIXEL(k) ((k) / mx.e * all + (k) % mx.e)
#define PLACE(k) (my.place[(k) / mx.e] * all + mx.place[(k) % mx.e])
#define RESULT(k) ((k) / mx.o * results + (k) % mx.o)
            for (int k = 0; k < places; k++) pixel[PIXEL(k)] = own[k] = exact_floats((size_t)n);
            for (ptrdiff_t k = 0; k < tall * all * apart; k++) v[k] = GUARD;
            (line ? row->in_line : row->in[size])(pixel, n, v, apart, less);
            for (int c = 0; c < n; c++) {
                for (int k = 0; k < places; k++) x[k] = (double)own[k][c];
                both_ways(my.e, my.e, my.b, mx.e, mx.e, mx.b, x, y, magnitude);
                for (int k = 0; k < places; k++) {
                    float *at = v + PLACE(k) * apart + c;
                    if (!(fabs((double)*at - y[k]) <= 6 * FLT_EPSILON * magnitude[k]))
                        fail_msg("%s: in, place %d: %g, not %g", row->name, k, (double)*at, y[k]);
                    *at = GUARD;
                }
            }
            /* nothing else was written */
            for (ptrdiff_t k = 0; k < tall * all * apart; k++) assert_true(v[k] == GUARD);
            /* and back, each with its own end; where that is slow, each flag with and without two others */
            for (int flags = 0; flags < 16; flags += twin_rounds(5, 1, 1)) {
                float *to[36], *give[36] = {NULL}, *more[36], *bias = exact_floats((size_t)n);
                const float *add[36] = {NULL};
                free(v), v = exact_floats((size_t)(tall * all * apart - 3));
                for (int k = 0; k < pixels; k++) {
                    to[k] = exact_floats((size_t)n + 2),
                    add[RESULT(k)] = more[k] = exact_floats((size_t)n + 1);
                    for (int c = 0; c < n + 2; c++) to[k][c] = GUARD;
                    give[RESULT(k)] = flags & 1 && draw(0, 2) == 0 ? NULL : to[k];
                }
                const hone_winograd_end end = {.m = v,
                                               .apart = apart,
                                               .n = n,
                                               .less = less,
                                               .y = give,
                                               .from = 1,
                                               .bias = flags & 2 ? bias : NULL,
                                               .residual = flags & 4 ? add : NULL,
                                               .clamp = flags & 8,
                                               .lo = -0.5f,
                                               .hi = 0.75f};
                (line ? row->out_line : row->out[size])[side - HONE_WINOGRAD_LEAST](&end);
                for (int c = 0; c < n; c++) {
                    for (int k = 0; k < places; k++) x[k] = (double)v[PLACE(k) * apart + c];
                    both_ways(my.o, my.e, my.a, mx.o, mx.e, mx.a, x, y, magnitude);
                    for (int k = 0; k < pixels; k++) {
                        if (flags & 2) y[k] += (double)bias[c], magnitude[k] += 1;
                        if (flags & 4) y[k] += (double)more[k][1 + c], magnitude[k] += 1;
                        if (flags & 8) y[k] = y[k] < -0.5 ? -0.5 : y[k] > 0.75 ? 0.75 : y[k];
                        const double got = (double)to[k][1 + c];
                        if (give[RESULT(k)] ? !(fabs(got - y[k]) <= 6 * FLT_EPSILON * magnitude[k])
                                            : to[k][1 + c] != GUARD)
                            fail_msg("%s: out, pixel %d: %g, not %g", row->name, k, got, y[k]);
                    }
                }
                for (int k = 0; k < pixels; k++) {
                    assert_true(to[k][0] == GUARD && to[k][n + 1] == GUARD);
                    free(to[k]), free(more[k]);
                }
                free(bias);
            }
            for (int k = 0; k < places; k++) free(own[k]);
            free(v);
        }
#undef PIXEL
#undef PLACE
#undef RESULT
    /* filters, and that the three matrices belong together */
    float taps[25][HONE_WINOGRAD_FILTERS], *u = exact_floats((size_t)places * 70);
    for (int k = 0; k < window; k++)
        for (int j = 0; j < HONE_WINOGRAD_FILTERS; j++) taps[k][j] = random_value();
    for (int n = 1; n <= HONE_WINOGRAD_FILTERS && !less.y && !less.x; n += 21) {
        for (int k = 0; k < places * 70; k++) u[k] = GUARD;
        const hone_winograd_g of = hone_winograd_g_of(size, line, side);
        hone_winograd_filters(&of, (const float(*)[HONE_WINOGRAD_FILTERS])taps, n, u, 70);
        for (int j = 0; j < 70; j++) {
            for (int k = 0; k < window && j < n; k++) x[k] = (double)taps[k][j];
            both_ways(my.e, my.t, my.g, mx.e, mx.t, mx.g, x, y, magnitude);
            for (int k = 0; k < places; k++)
                assert_true(j < n ? fabs((double)u[k * 70 + j] - y[k]) <= FLT_EPSILON * magnitude[k]
                                  : u[k * 70 + j] == GUARD);
        }
    }
    double d[64] = {0}, at[64], product[64], back[64];
    for (int k = 0; k < places; k++) d[k] = (double)random_value();
    for (int k = 0; k < window; k++) x[k] = (double)taps[k][0];
    both_ways(my.e, my.e, my.b, mx.e, mx.e, mx.b, d, at, magnitude),
        both_ways(my.e, my.t, my.g, mx.e, mx.t, mx.g, x, y, magnitude);
    for (int k = 0; k < places; k++) product[k] = at[k] * y[k];
    both_ways(my.o, my.e, my.a, mx.o, mx.e, mx.a, product, back, magnitude);
    for (int r = 0; r < my.o; r++)
        for (int s = 0; s < mx.o; s++) {
            double sum = 0;
            for (int k = 0; k < window; k++) sum += x[k] * d[(r + k / side) * mx.e + s + k % side];
            assert_true(fabs(back[r * mx.o + s] - sum) < 1e-12);
        }
    free(u);
}
static void transforms(void **state) {
    (void)state;
    int many = 0;
    for (int size = 0; size < HONE_WINOGRAD_SIZES; size++)
        for (int side = HONE_WINOGRAD_LEAST; side <= HONE_WINOGRAD_MOST; side++) {
            const bool has = hone_winograd_has(size, side);
            for (const hone_winograd_f32 *row = hone_winograd_f32_list; row->name; row++)
                assert_int_equal(has, row->out[size][side - HONE_WINOGRAD_LEAST] != NULL);
            const int o = hone_winograd_out(size, side), edge = hone_winograd_edge(size);
            for (int y = 0; has && y <= 2; y++)
                for (int x = 0; x <= 2; x++) /* that are left out, where so many can be */
                    if ((!y && !x) ||
                        (size != HONE_WINOGRAD_FLAT && hone_winograd_spare(edge, o, o - 2 * y) == y &&
                         hone_winograd_spare(edge, o, o - 2 * x) == x))
                        transform(size, side, false, (hone_winograd_less){y, x}), many++;
            if (has && size == HONE_WINOGRAD_LINES)
                transform(size, side, true, (hone_winograd_less){0, 0}), many++;
        }
    assert_int_equal(many, 33);
}

/* ---- convolutions -------------------------------------------------------------------------------------- */
static char text[4096];
typedef struct {
    int side, stride;
    bool line, down; /* along one way; and that is down */
} window;
static const window windows[] = {{.side = 3, .stride = 1}, {.side = 3, .stride = 2},
                                 {.side = 5, .stride = 1}, {.side = 5, .stride = 2},
                                 {.side = 7, .stride = 2}, {.side = 4, .stride = 2}};
static int high(window w) { return w.line && !w.down ? 1 : w.side; }
static int wide(window w) { return w.down ? 1 : w.side; }
static int taps_of(window w) { return (w.side + w.stride - 1) / w.stride; }
static int results(window w, int size) { /* a side of a tile, or 0 */
    return hone_winograd_has(size, taps_of(w)) && !(w.line && size != HONE_WINOGRAD_LINES)
               ? hone_winograd_side(size, taps_of(w))
               : 0;
}
/* Wisdom that has every convolution of that window go by tiles of this size, whatever an estimate says. */
static hone_wisdom *told(const hone_compiled *c, const hone_value *in, window win, int size) {
    hone_fact fact = hone_fact_of_value(in);
    hone_wisdom *w = hone_wisdom_create();
    hone_plan *p = NULL;
    assert_non_null(w);
    assert_int_equal(hone_bind(c, &fact, NULL, NULL, (hone_bind_options){.threads = 1}, &p), HONE_OK);
    for (int k = 0; k < p->n_step; k++) {
        const hone_decision *d = p->step[k].decision;
        if (!d || d->problem.kind != HONE_PROBLEM_SUM ||
            d->problem.number[HONE_SUM_WINDOW] != taps_of(win) + (win.line ? HONE_SUM_LINE : 0) ||
            hone_wisdom_find(w, &d->problem))
            continue;
        hone_choice all[8];
        const int many = hone_choices(&d->problem, 1, all, 8);
        for (int q = 0; q < many; q++)
            if (all[q].knob[HONE_KNOB_TILE] == results(win, size))
                assert_int_equal(hone_wisdom_add(w, &d->problem, all + q, 1), HONE_OK);
    }
    hone_plan_destroy(p);
    return w;
}
/* Steps by tiles: 1 a convolution by blocks, 3 by three steps. */
static int by_tiles(const hone_compiled *c, const hone_value *in, const hone_wisdom *wisdom, int threads) {
    hone_fact fact = hone_fact_of_value(in);
    hone_plan *p = NULL;
    int n = 0;
    assert_int_equal(
        hone_bind(c, &fact, NULL, NULL, (hone_bind_options){.threads = threads, .wisdom = wisdom}, &p),
        HONE_OK);
    for (int k = 0; k < p->n_step; k++) n += !strcmp(p->step[k].tactic, "winograd");
    hone_plan_destroy(p);
    return n;
}
static hone_value *run(const hone_compiled *c, hone_value **in, int threads, bool interpret,
                       const hone_wisdom *wisdom) {
    hone_value *out[1] = {0};
    hone_exec *e;
    hone_exec_options o = {.threads = threads, .interpret = interpret, .wisdom = wisdom};
    assert_int_equal(hone_exec_create(c, &o, &e), HONE_OK);
    for (int again = interpret; again < 2; again++)
        if (hone_exec_run(e, in, out)) fail_msg("%s\nin\n%s", hone_fail_text(), text);
    hone_exec_destroy(e);
    return out[0];
}
/* Of the sum of magnitudes, at most, by the size: seen, not proven. docs/11 says what was seen; this is a
   little more. */
static double bound(window w, int size) { return size == 2 && !w.line ? 1e-5 : w.stride > 1 ? 5e-6 : 1e-6; }
static hone_value *input(int n, int c, int h, int w) {
    hone_value *x;
    assert_int_equal(hone_value_tensor(HONE_DTYPE_F32, (const int64_t[]){n, c, h, w}, 4, &x), HONE_OK);
    for (int64_t k = 0; k < hone_value_count(x); k++) ((float *)x->data)[k] = random_value();
    return x;
}
/* Pixels of three numbers become channels (but where they are few anyway: then it reads them as they come,
   channels first); then the convolution; then what follows it. Channels stay last: whoever wants them first
   gets sums in that order. */
enum { GIVEN = 3 };
static const char *const after[] = {"z = Relu(v);",
                                    "z = Neg(v);",
                                    "s = Sigmoid(v); z = Mul(v, s);",
                                    "a = Add(v, r); z = Relu(a);",
                                    "z = Clip(v, lo, hi);",
                                    "l = LeakyRelu(v) {alpha: 0.1}; z = Max(l, lo);",
                                    "l = LeakyRelu(v) {alpha: 0.1}; z = Add(l, r);"};
static void graph(window win, int n, int h, int w, int c, int m, const int pad[4], const char *then,
                  bool bias, bool late) {
    char k[128], how[128];
    snprintf(k, sizeof k, late ? ", k: f32[%d, %d, %d, %d]" : "k: f32[%d, %d, %d, %d] = random(4, -1, 1);", m,
             c, high(win), wide(win));
    snprintf(how, sizeof how, "{pads: [%d, %d, %d, %d], strides: [%d, %d]}", pad[0], pad[1], pad[2], pad[3],
             win.stride, win.stride);
    snprintf(text, sizeof text,
             "graph g (x: f32[%d, %d, %d, %d]%s) -> y { p: f32[%d, %d, 1, 1] = random(3, -1, 1); q: f32[%d, "
             "%d, %d, %d] = random(5, -1, "
             "1); %s b: f32[%d] = random(6, -1, 1); lo: f32[] = {-1}; hi: f32[] = {2}; t = Conv(x, p); r = "
             "Conv(x, q) %s; v = Conv(%s, "
             "k%s) %s; %s y = Transpose(z) {perm: [0, 2, 3, 1]}; }",
             n, GIVEN, h, w, late ? k : "", c, GIVEN, m, GIVEN, high(win), wide(win), late ? "" : k, m, how,
             c == GIVEN ? "x" : "t", bias ? ", b" : "", how, then);
}
static hone_value *filters_of(const hone_compiled *g, window win, int c) {
    for (int q = 0; q < g->graph->var.n; q++) {
        hone_value *v = g->graph->var.at[q].value;
        if (v && v->rank == 4 && v->dim[1] == c && v->dim[2] == high(win) && v->dim[3] == wide(win)) return v;
    }
    fail_msg("no filters in\n%s", text);
    return NULL;
}
enum { ROUNDS = SLOW ? 3 : 6 };
/* Against the definition, or where that would take too long against the sum itself: filters that come with
   the run are no constants to bring to their places. Counts the steps that went by tiles, by size, of two
   threads and of one; at last those of the estimate. */
static void convolution(window win, int n, int h, int w, int c, int m, const int pad[4], const char *then,
                        bool bias, bool definition, int how[HONE_WINOGRAD_SIZES + 1],
                        int alone[HONE_WINOGRAD_SIZES + 1]) {
    hone_value *x = input(n, GIVEN, h, w), *want = NULL;
    graph(win, n, h, w, c, m, pad, then, bias, false);
    hone_compiled *g = twin_compile(text);
    if (definition) want = run(g, &x, 1, true, NULL);
    else {
        hone_value *in[] = {x, filters_of(g, win, c)};
        graph(win, n, h, w, c, m, pad, then, bias, true);
        hone_compiled *late = twin_compile(text);
        want = run(late, in, 1, false, NULL);
        hone_compiled_destroy(late);
        graph(win, n, h, w, c, m, pad, then, bias, false);
    }
    for (int size = 0; size <= HONE_WINOGRAD_SIZES; size++) {
        const bool tells = size < HONE_WINOGRAD_SIZES;
        how[size] = alone[size] = 0;
        if (tells && !results(win, size)) continue;
        hone_wisdom *wisdom = tells ? told(g, x, win, size) : NULL;
        hone_value *one = run(g, &x, 1, false, wisdom), *two = run(g, &x, 2, false, wisdom),
                   *many = run(g, &x, 24, false, wisdom);
        how[size] = by_tiles(g, x, wisdom, 2), alone[size] = by_tiles(g, x, wisdom, 1);
        twin_same_bits(one, two, "one thread and two", text);
        twin_same_bits(one, many, "one thread and many", text);
        twin_close(one, want, bound(win, tells ? size : 2) * 2 * (win.side * win.side * c + 20), 0,
                   text); /* terms are below 2; the bound of errs, and what the definition errs itself */
        hone_value_drop(one), hone_value_drop(two), hone_value_drop(many), hone_wisdom_destroy(wisdom);
    }
    hone_value_drop(x), hone_value_drop(want);
    hone_compiled_destroy(g);
}
static void convolutions(void **state) {
    (void)state;
    int seen[HONE_WINOGRAD_SIZES + 1][4] = {{0}}, how[HONE_WINOGRAD_SIZES + 1],
                                   alone[HONE_WINOGRAD_SIZES + 1];
    EACH_F32_LEVEL for (int round = 0; round < ROUNDS; round++) {
        const bool deep = round == ROUNDS - 1, wide = !round,
                   /* few pixels, many channels: three steps; tiles of all kinds in batches */
            large = round == 2;
        const int n = large || !draw(0, 3) ? 2 : 1,
                  h = deep    ? 18
                      : large ? draw(25, 34)
                              : draw(wide ? 9 : 3, 11),
                  w = deep    ? 19
                      : large ? draw(25, 34)
                              : draw(wide ? 9 : 3, 13);
        const int c = deep    ? 131
                      : large ? draw(8, 20)
                              : draw(wide ? 36 : 8, 70),
                  m = deep         ? 148
                      : round == 1 ? 52
                      : large      ? draw(8, 30)
                                   : draw(wide ? 40 : 4, 90);
        const int pad[4] = {draw(0, 2), draw(0, 2), draw(0, 2), draw(0, 2)};
        convolution(windows[0], n, h, w, c, m, pad, after[(round + (int)level) % (int)COUNT(after)],
                    draw(0, 3), !deep, how, alone);
        for (int size = 0; size <= HONE_WINOGRAD_SIZES; size++)
            assert_true(how[size] < 4 && alone[size] < 4), seen[size][how[size]]++, seen[size][alone[size]]++;
    }
    /* both ways were taken */
    for (int size = 0; size < HONE_WINOGRAD_SIZES; size++) assert_true(seen[size][1] && seen[size][3]);
    assert_true(seen[HONE_WINOGRAD_SIZES][1] + seen[HONE_WINOGRAD_SIZES][3]);
}
/* Larger windows, and those that move two pixels at a time, of many channels and of few (of which only phases
   are brought together). */
enum { PHASES = SLOW ? 1 : 2 };
static void phases(void **state) {
    (void)state;
    int seen[2 * COUNT(windows)][HONE_WINOGRAD_SIZES] = {{0}};
    EACH_F32_LEVEL for (size_t k = 0; k < PHASES * 2 * COUNT(windows); k++) {
        const size_t which = k % (2 * COUNT(windows));
        const window win = windows[which / 2];
        const bool few = which % 2, deep = k == 2;
        const int pad[4] = {draw(0, 3), draw(0, 3), draw(0, 3), draw(0, 3)}, n = few || draw(0, 3) ? 1 : 2,
                  h = deep ? (SLOW ? 16 : 28) : draw(8, 12),
                  /* 9 results: as planes they would waste a quarter */
            w = deep  ? (SLOW ? 18 : 30)
                : few ? 8 * win.stride + win.side - pad[1] - pad[3]
                      : draw(8, 13),
                  c = few    ? GIVEN
                      : deep ? 131
                             : draw(8, 40),
                  m = deep ? 148 : draw(few ? 56 : 5, few ? 70 : 40);
        int how[HONE_WINOGRAD_SIZES + 1], alone[HONE_WINOGRAD_SIZES + 1];
        convolution(win, n, h, w, c, m, pad, after[(k + level) % COUNT(after)], draw(0, 3), few || k % 5 == 4,
                    how, alone);
        for (int size = 0; size < HONE_WINOGRAD_SIZES; size++) seen[which][size] += how[size] > few;
    }
    for (size_t which = 0; which < 2 * COUNT(windows); which++)
        for (int size = 0; size < HONE_WINOGRAD_SIZES; size++)
            if (results(windows[which / 2], size) && !(which % 2 && windows[which / 2].stride == 1) &&
                (windows[which / 2].stride == 1 || hone_gemm_f32_best()->pack_a) && !seen[which][size])
                fail_msg("window %zu never went by tiles of size %d", which, size);
}
/* Windows along one way, down a picture or across; where a kernel wants rows turned. */
static void lines(void **state) {
    (void)state;
    int seen[4] = {0}, how[HONE_WINOGRAD_SIZES + 1], alone[HONE_WINOGRAD_SIZES + 1];
    EACH_F32_LEVEL for (int round = 0; round < 12; round++) {
        const bool deep = round >= 10;
        if (SLOW && round % 2 && !deep) continue;
        const window win = {3 + round % 3, 1, true, draw(0, 2) == 0};
        const int n = draw(0, 3) ? 1 : 2, across = deep ? 61 : draw(16 + win.side, 50),
                  rows = deep ? 1 : draw(1, 4), follows = (round + (int)level) % (int)COUNT(after);
        const int c = deep ? 160 : draw(32, 70),
                  m = deep         ? 192
                      : round == 2 ? 52
                                   : draw(32, 90),
                  before = draw(0, 3), behind = draw(0, 3);
        const int pad[4] = {win.down ? before : 0, win.down ? 0 : before, win.down ? behind : 0,
                            win.down ? 0 : behind};
        convolution(win, n, win.down ? across : rows, win.down ? rows : across, c, m, pad, after[follows],
                    draw(0, 3), round % 4 == 0, how, alone);
        /* a row that is added behind an activation, if by the same step, is the sum's alone */
        if (how[2] > 3 || (follows != (int)COUNT(after) - 1 && !how[2] != !hone_gemm_f32_best()->pack_a))
            fail_msg("%d steps by tiles in\n%s", how[2], text);
        seen[how[2]]++, seen[alone[2]]++;
    }
    assert_true(!hone_gemm_f32_best()->pack_a || (seen[1] && seen[3]));
}
/* How far it is from the exact sum, against the sum of magnitudes. What docs/11 says is what holds here. */
static void errs(void **state) {
    (void)state;
    static const struct {
        int win, h, w, c, m;
    } cases[] = {{-3, 3, 70, 32, 40},   {-5, 1, 97, 256, 128}, {0, 24, 24, 16, 16}, {0, 12, 16, 64, 64},
                 {0, 14, 14, 192, 256}, {0, 7, 7, 256, 256},   {1, 24, 24, 64, 64}, {1, 18, 18, 128, 32},
                 {2, 16, 16, 16, 16},   {2, 13, 13, 40, 16},   {3, 17, 17, 40, 16}, {4, 40, 40, 3, 32}};
    EACH_F32_LEVEL for (size_t k = 0; k < COUNT(cases) * HONE_WINOGRAD_SIZES; k++) {
        const int size = (int)(k / COUNT(cases)), h = cases[k % COUNT(cases)].h,
                  w = cases[k % COUNT(cases)].w, c = cases[k % COUNT(cases)].c, m = cases[k % COUNT(cases)].m;
        const int which = cases[k % COUNT(cases)].win; /* below 0: so many along one way */
        const window win = which < 0 ? (window){-which, 1, true, false} : windows[which];
        const int area = high(win) * wide(win), pad = wide(win) / 2, over = high(win) / 2,
                  oh = (h + 2 * over - high(win)) / win.stride + 1,
                  ow = (w + 2 * pad - win.side) / win.stride + 1;
        if (SLOW && c * m > 4096) continue; /* that sums round well is nothing a sanitizer sees */
        if (!results(win, size) || ((win.line || win.stride > 1) && !hone_gemm_f32_best()->pack_a)) continue;
        snprintf(text, sizeof text,
                 "graph g (x: f32[1, %d, %d, %d]) -> y { k: f32[%d, %d, %d, %d] = random(4, -1, 1); p: "
                 "f32[%d, 1, 1, 1] = random(4, 1, 1); "
                 "t = Conv(x, p) {group: %d}; v = Conv(%s, k) {pads: [%d, %d, %d, %d], strides: [%d, %d]}; z "
                 "= Relu(v); y = Transpose(z) "
                 "{perm: [0, 2, 3, 1]}; }",
                 c, h, w, m, c, high(win), wide(win), c, c, c == GIVEN ? "x" : "t", over, pad, over, pad,
                 win.stride, win.stride);
        hone_compiled *g = twin_compile(text);
        hone_value *x = input(1, c, h, w);
        hone_wisdom *wisdom = told(g, x, win, size);
        hone_value *got = run(g, &x, 1, false, wisdom);
        assert_true(wisdom->line.n && by_tiles(g, x, wisdom, 2));
        const float *f = filters_of(g, win, c)->data;
        double worst = 0;
        for (int o = 0; o < m; o += 7)
            for (int y = 0; y < oh; y++)
                for (int z = 0; z < ow; z++) {
                    double sum = 0, magnitude = 0;
                    for (int i = 0; i < c * area; i++) {
                        const int iy = y * win.stride + i % area / wide(win) - over,
                                  ix = z * win.stride + i % win.side - pad;
                        if (iy < 0 || ix < 0 || iy >= h || ix >= w) continue;
                        const double term = (double)f[o * c * area + i] *
                                            (double)((const float *)x->data)[((i / area) * h + iy) * w + ix];
                        sum += term, magnitude += fabs(term);
                    }
                    sum = sum > 0 ? sum : 0;
                    const double off =
                        fabs((double)((const float *)got->data)[(y * ow + z) * m + o] - sum) / magnitude;
                    worst = off > worst ? off : worst;
                }
        if (!(worst <= bound(win, size)))
            fail_msg("%d: off by %g of the sum of magnitudes, in\n%s", size, worst, text);
        hone_value_drop(x), hone_value_drop(got), hone_wisdom_destroy(wisdom);
        hone_compiled_destroy(g);
    }
}
/* A number that is none reaches its own tile: what the definition makes of it is none here as well, and as
   far away as a tile is wide, and one, nothing is seen of it. */
static void special(void **state) {
    (void)state;
    static const float values[] = {INFINITY, -INFINITY, NAN};
    EACH_F32_LEVEL for (int k = 0; k < HONE_WINOGRAD_SIZES + (hone_gemm_f32_best()->pack_a ? 2 : 0); k++) {
        const window win =
            k < HONE_WINOGRAD_SIZES ? windows[0] : (window){k > HONE_WINOGRAD_SIZES ? 5 : 3, 1, true, false};
        const int size = k < HONE_WINOGRAD_SIZES ? k : HONE_WINOGRAD_LINES,
                  side = hone_winograd_out(size, taps_of(win)), pad[4] = {!win.line, 1, !win.line, 1};
        const int h = 15, w = win.line ? 21 : 17, c = 32, m = 40, py = draw(0, h - 1), px = draw(0, w - 1);
        /* what the first result of a row is over, and how many there are */
        const int shift = win.side == 5, across = w - 2 * shift;
        graph(win, 1, h, w, c, m, pad, after[1], true, false);
        hone_compiled *g = twin_compile(text);
        hone_value *x = input(1, GIVEN, h, w);
        ((float *)x->data)[py * w + px] = values[level % COUNT(values)];
        hone_wisdom *wisdom = told(g, x, win, size);
        assert_true(wisdom->line.n && by_tiles(g, x, wisdom, 2));
        hone_value *want = run(g, &x, 1, true, NULL), *got = run(g, &x, 1, false, wisdom);
        const float near = (float)bound(win, size) * 2 * (9 * c + 20);
        for (int64_t q = 0; q < hone_value_count(want); q++) {
            const float a = ((const float *)want->data)[q], b = ((const float *)got->data)[q];
            const int y = (int)(q / m / across), z = (int)(q / m % across) + shift,
                      away = abs(y - py) > abs(z - px) ? abs(y - py) : abs(z - px);
            if (away > side + shift || (win.line && y != py)) assert_true(fabsf(a - b) <= near);
            if (!isfinite(a)) assert_true(!isfinite(b));
            else assert_true(isnan(b) || fabsf(a - b) <= near);
        }
        hone_value_drop(x), hone_value_drop(want), hone_value_drop(got), hone_wisdom_destroy(wisdom);
        hone_compiled_destroy(g);
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(transforms), cmocka_unit_test(convolutions),
                                       cmocka_unit_test(phases),     cmocka_unit_test(lines),
                                       cmocka_unit_test(errs),       cmocka_unit_test(special)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
