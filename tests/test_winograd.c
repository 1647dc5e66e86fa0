/* SPDX-License-Identifier: Apache-2.0
   test_winograd: 3x3 convolutions by tiles. The transforms against plain matrices in double, made here of the points alone; convolutions of odd sizes against
   the definition, on every CPU level, by blocks and by three steps, one thread and two (equal bits); how far it errs; what infinity and NaN do. */
#include <float.h>

#include "device/cpu/wisdom.h"
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

/* ---- the transforms ------------------------------------------------------------------------------------------------------------------ */
typedef struct {
    int o, e;
    double a[6][8], b[8][8], g[8][3]; /* A' o x e, B' e x e, G e x 3 */
} matrices;
/* Lagrange: at point p, 1 p p^2 … of both factors; from the products back to coefficients with the others' (x - q); transposed, since a convolution that walks a
   window is the transpose of a product of polynomials. */
static matrices plain(int size) {
    static const double points[HONE_WINOGRAD_SIZES][7] = {{0, 1, -1}, {0, 0.625, -0.625, 1.5, -1.5}, {0, 0.5, -0.5, 1, -1, 2, -2}};
    matrices m = {.o = 2 + 2 * size, .e = 4 + 2 * size};
    for (int i = 0; i < m.e; i++) {
        const bool infinity = i == m.e - 1;
        double c[9] = {1}, less = 1, power = 1,
               p = infinity ? 0 : points[size][i]; /* the polynomial with roots at the other points, and its value here */
        for (int k = 0, n = 0; k < m.e - 1; k++) {
            if (k == i) continue;
            for (int q = ++n; q >= 0; q--) c[q] = (q ? c[q - 1] : 0) - points[size][k] * c[q];
            if (!infinity) less *= p - points[size][k];
        }
        for (int q = 0; q < m.e; q++) m.b[i][q] = c[q];
        for (int q = 0; q < m.o; q++, power *= p) m.a[q][i] = infinity ? q == m.o - 1 : power;
        power = 1;
        for (int q = 0; q < 3; q++, power *= p) m.g[i][q] = infinity ? q == 2 : power / less;
    }
    return m;
}
/* m x m' of an n x n matrix, and the sum of magnitudes; m is rows x n. */
static void both_ways(int rows, int n, const double *m, const double *x, double *y, double *magnitude) {
    for (int r = 0; r < rows; r++)
        for (int s = 0; s < rows; s++) {
            double sum = 0, size = 0;
            for (int i = 0; i < n; i++)
                for (int k = 0; k < n; k++) {
                    const double term = m[r * n + i] * x[i * n + k] * m[s * n + k];
                    sum += term, size += fabs(term);
                }
            y[r * rows + s] = sum, magnitude[r * rows + s] = size;
        }
}
static void flat(const matrices *m, double *a, double *b, double *g) {
    for (int r = 0; r < m->e; r++) {
        for (int k = 0; k < m->e; k++) b[r * m->e + k] = m->b[r][k];
        for (int k = 0; k < 3; k++) g[r * 3 + k] = m->g[r][k];
        for (int q = 0; q < m->o; q++) a[q * m->e + r] = m->a[q][r];
    }
}
static const int widths[] = {1, 3, 4, 5, 8, 9, 15, 16, 17, 31, 33, 48, 64, 70};
static void transforms(void **state) {
    (void)state;
    for (int size = 0; size < HONE_WINOGRAD_SIZES; size++) {
        const matrices m = plain(size);
        double a[48], b[64], g[24], x[64], y[64], magnitude[64];
        const int places = m.e * m.e, pixels = m.o * m.o;
        flat(&m, a, b, g);
        assert_int_equal(places, hone_winograd_places(size));
        assert_int_equal(m.o, hone_winograd_out(size));
        for (const hone_winograd_f32 *row = hone_winograd_f32_list; row->name; row++)
            for (size_t q = 0; q < COUNT(widths) && !(row->cpu & ~hone_cpu()); q++) {
                const int n = widths[q];
                const ptrdiff_t apart = n + 3;
                float *pixel[64], *v = exact_floats((size_t)(places * apart));
                for (int k = 0; k < places; k++) pixel[k] = exact_floats((size_t)n);
                for (ptrdiff_t k = 0; k < places * apart; k++) v[k] = GUARD;
                row->in[size]((const float *const *)pixel, n, v, apart);
                for (int c = 0; c < n; c++) {
                    for (int k = 0; k < places; k++) x[k] = (double)pixel[k][c];
                    both_ways(m.e, m.e, b, x, y, magnitude);
                    for (int k = 0; k < places; k++)
                        if (!(fabs((double)v[k * apart + c] - y[k]) <= 6 * FLT_EPSILON * magnitude[k]))
                            fail_msg("%s: in, place %d: %g, not %g", row->name, k, (double)v[k * apart + c], y[k]);
                }
                for (int k = 0; k < places; k++)
                    for (ptrdiff_t c = n; c < apart; c++) assert_true(v[k * apart + c] == GUARD);
                /* and back, each with its own end */
                for (int flags = 0; flags < 16; flags++) {
                    float *to[36], *give[36], *more[36], *bias = exact_floats((size_t)n);
                    free(v), v = exact_floats((size_t)(places * apart - 3));
                    for (int k = 0; k < pixels; k++) {
                        to[k] = exact_floats((size_t)n + 2), more[k] = exact_floats((size_t)n + 1);
                        for (int c = 0; c < n + 2; c++) to[k][c] = GUARD;
                        give[k] = flags & 1 && draw(0, 2) == 0 ? NULL : to[k];
                    }
                    const hone_winograd_end end = {.m = v,
                                                   .apart = apart,
                                                   .n = n,
                                                   .y = give,
                                                   .from = 1,
                                                   .bias = flags & 2 ? bias : NULL,
                                                   .residual = flags & 4 ? (const float *const *)more : NULL,
                                                   .clamp = flags & 8,
                                                   .lo = -0.5f,
                                                   .hi = 0.75f};
                    row->out[size](&end);
                    for (int c = 0; c < n; c++) {
                        for (int k = 0; k < places; k++) x[k] = (double)v[k * apart + c];
                        both_ways(m.o, m.e, a, x, y, magnitude);
                        for (int k = 0; k < pixels; k++) {
                            if (flags & 2) y[k] += (double)bias[c], magnitude[k] += 1;
                            if (flags & 4) y[k] += (double)more[k][1 + c], magnitude[k] += 1;
                            if (flags & 8) y[k] = y[k] < -0.5 ? -0.5 : y[k] > 0.75 ? 0.75 : y[k];
                            const double got = (double)to[k][1 + c];
                            if (give[k] ? !(fabs(got - y[k]) <= 6 * FLT_EPSILON * magnitude[k]) : to[k][1 + c] != GUARD)
                                fail_msg("%s: out, pixel %d: %g, not %g", row->name, k, got, y[k]);
                        }
                    }
                    for (int k = 0; k < pixels; k++) {
                        assert_true(to[k][0] == GUARD && to[k][n + 1] == GUARD);
                        free(to[k]), free(more[k]);
                    }
                    free(bias);
                }
                for (int k = 0; k < places; k++) free(pixel[k]);
                free(v);
            }
        /* filters, and that the three matrices belong together */
        float taps[9][HONE_WINOGRAD_FILTERS], *u = exact_floats((size_t)places * 70);
        for (int k = 0; k < 9; k++)
            for (int j = 0; j < HONE_WINOGRAD_FILTERS; j++) taps[k][j] = random_value();
        for (int n = 1; n <= HONE_WINOGRAD_FILTERS; n += 21) {
            for (int k = 0; k < places * 70; k++) u[k] = GUARD;
            hone_winograd_filters(size, (const float(*)[HONE_WINOGRAD_FILTERS])taps, n, u, 70);
            for (int j = 0; j < 70; j++) {
                for (int k = 0; k < 9 && j < n; k++) x[k] = (double)taps[k][j];
                both_ways(m.e, 3, g, x, y, magnitude);
                for (int k = 0; k < places; k++)
                    assert_true(j < n ? fabs((double)u[k * 70 + j] - y[k]) <= FLT_EPSILON * magnitude[k] : u[k * 70 + j] == GUARD);
            }
        }
        double d[64], at[64], product[64], back[64];
        for (int k = 0; k < places; k++) d[k] = (double)random_value();
        for (int k = 0; k < 9; k++) x[k] = (double)taps[k][0];
        both_ways(m.e, m.e, b, d, at, magnitude), both_ways(m.e, 3, g, x, y, magnitude);
        for (int k = 0; k < places; k++) product[k] = at[k] * y[k];
        both_ways(m.o, m.e, a, product, back, magnitude);
        for (int r = 0; r < m.o; r++)
            for (int s = 0; s < m.o; s++) {
                double sum = 0;
                for (int k = 0; k < 9; k++) sum += x[k] * d[(r + k / 3) * m.e + s + k % 3];
                assert_true(fabs(back[r * m.o + s] - sum) < 1e-13);
            }
        free(u);
    }
}

/* ---- convolutions -------------------------------------------------------------------------------------------------------------------- */
static char text[4096];
static const int sides[] = {2, 4, 6}; /* results a side of a tile */
/* Wisdom that has every 3x3 convolution go by tiles of this side, whatever an estimate says; but for those of few channels, which are by no choice. */
static hone_wisdom *told(const hone_compiled *c, const hone_value *in, int side) {
    hone_fact fact = hone_fact_of_value(in);
    hone_wisdom *w = hone_wisdom_create();
    hone_plan *p = NULL;
    assert_non_null(w);
    assert_int_equal(hone_bind(c, &fact, NULL, NULL, (hone_how){false, 1, NULL, HONE_DTYPE_F32}, &p), HONE_OK);
    for (int k = 0; k < p->n_step; k++) {
        const hone_decision *d = p->step[k].decision;
        if (!d || d->problem.kind != HONE_PROBLEM_SUM || !d->problem.number[HONE_SUM_WINDOW] || hone_wisdom_find(w, &d->problem)) continue;
        hone_choice all[8];
        const int many = hone_choices(&d->problem, 1, all, 8);
        for (int q = 0; q < many; q++)
            if (all[q].knob[HONE_KNOB_TILE] == side) assert_int_equal(hone_wisdom_add(w, &d->problem, all + q, 1), HONE_OK);
    }
    hone_plan_destroy(p);
    return w;
}
/* Steps by tiles: 1 a convolution by blocks, 3 by three steps. */
static int by_tiles(const hone_compiled *c, const hone_value *in, const hone_wisdom *wisdom) {
    hone_fact fact = hone_fact_of_value(in);
    hone_plan *p = NULL;
    int n = 0;
    assert_int_equal(hone_bind(c, &fact, NULL, NULL, (hone_how){false, 2, wisdom, HONE_DTYPE_F32}, &p), HONE_OK);
    for (int k = 0; k < p->n_step; k++) n += !strcmp(p->step[k].tactic, "winograd");
    hone_plan_destroy(p);
    return n;
}
static hone_value *run(const hone_compiled *c, hone_value **in, int threads, bool interpret, const hone_wisdom *wisdom) {
    hone_value *out[1] = {0};
    hone_exec *e;
    hone_exec_options o = {.threads = threads, .interpret = interpret, .wisdom = wisdom};
    assert_int_equal(hone_exec_create(c, &o, &e), HONE_OK);
    for (int again = interpret; again < 2; again++)
        if (hone_exec_run(e, in, out)) fail_msg("%s\nin\n%s", hone_fail_text(), text);
    hone_exec_destroy(e);
    return out[0];
}
/* Of the sum of magnitudes, at most, by the side: seen, not proven. docs/11 says what was seen; this is a little more. */
static double bound(int side) { return side == 6 ? 1e-5 : 1e-6; }
static hone_value *input(int n, int c, int h, int w) {
    hone_value *x;
    assert_int_equal(hone_value_tensor(HONE_DTYPE_F32, (const int64_t[]){n, c, h, w}, 4, &x), HONE_OK);
    for (int64_t k = 0; k < hone_value_count(x); k++) ((float *)x->data)[k] = random_value();
    return x;
}
/* Pixels of two numbers become channels; then the convolution; then what follows it. Channels stay last: whoever wants them first gets sums in that order. */
static const char *const after[] = {"z = Relu(v);", "z = Neg(v);", "s = Sigmoid(v); z = Mul(v, s);", "a = Add(v, r); z = Relu(a);",
                                    "z = Clip(v, lo, hi);"};
static void graph(int n, int h, int w, int c, int m, const int pad[4], const char *then, bool bias, bool late) {
    char k[128];
    snprintf(k, sizeof k, late ? ", k: f32[%d, %d, 3, 3]" : "k: f32[%d, %d, 3, 3] = random(4, -1, 1);", m, c);
    snprintf(text, sizeof text,
             "graph g (x: f32[%d, 2, %d, %d]%s) -> y { p: f32[%d, 2, 1, 1] = random(3, -1, 1); q: f32[%d, 2, 3, 3] = random(5, -1, 1); %s "
             "b: f32[%d] = random(6, -1, 1); lo: f32[] = {-1}; hi: f32[] = {2}; t = Conv(x, p); r = "
             "Conv(x, q) {pads: [%d, %d, %d, %d]}; v = Conv(t, k%s) {pads: [%d, %d, %d, %d]}; %s y = Transpose(z) {perm: [0, 2, 3, 1]}; }",
             n, h, w, late ? k : "", c, m, late ? "" : k, m, pad[0], pad[1], pad[2], pad[3], bias ? ", b" : "", pad[0], pad[1], pad[2],
             pad[3], then);
}
static hone_value *filters_of(const hone_compiled *g, int c) {
    for (int q = 0; q < g->graph->var.n; q++) {
        hone_value *v = g->graph->var.at[q].value;
        if (v && v->rank == 4 && v->dim[1] == c && v->dim[2] == 3) return v;
    }
    fail_msg("no filters in\n%s", text);
    return NULL;
}
enum { ROUNDS = SLOW ? 2 : 5 };
static void convolutions(void **state) {
    (void)state;
    int seen[7][4] = {{0}};
    EACH_LEVEL for (int round = 0; round < ROUNDS; round++) {
        /* few pixels, many channels: three steps. Filters that come with the run are no constants to bring to their places, and the definition would take long */
        const bool deep = round == ROUNDS - 1, wide = !round, bias = draw(0, 3);
        const int n = draw(0, 3) ? 1 : 2, h = deep ? 18 : draw(wide ? 9 : 3, 11), w = deep ? 19 : draw(wide ? 9 : 3, 13);
        const int c = deep ? 131 : draw(wide ? 36 : 8, 70), m = deep ? 148 : round == 1 ? 52 : draw(wide ? 40 : 4, 90);
        const int pad[4] = {draw(0, 2), draw(0, 2), draw(0, 2), draw(0, 2)};
        const char *then = after[(round + (int)level) % (int)COUNT(after)];
        hone_value *x = input(n, 2, h, w), *want = NULL;
        if (deep) {
            graph(n, h, w, c, m, pad, then, bias, false);
            hone_compiled *g = twin_compile(text);
            hone_value *in[] = {x, filters_of(g, c)};
            graph(n, h, w, c, m, pad, then, bias, true);
            hone_compiled *late = twin_compile(text);
            want = run(late, in, 1, false, NULL);
            hone_compiled_destroy(late), hone_compiled_destroy(g);
        }
        graph(n, h, w, c, m, pad, then, bias, false);
        hone_compiled *g = twin_compile(text);
        if (!want) want = run(g, &x, 1, true, NULL);
        for (size_t q = 0; q <= COUNT(sides); q++) { /* at last what is estimated */
            const int side = q < COUNT(sides) ? sides[q] : 0;
            hone_wisdom *wisdom = side ? told(g, x, side) : NULL;
            hone_value *one = run(g, &x, 1, false, wisdom), *two = run(g, &x, 2, false, wisdom), *many = run(g, &x, 24, false, wisdom);
            const int how = by_tiles(g, x, wisdom);
            assert_true(how < 4), seen[side][how]++;
            twin_same_bits(one, two, "one thread and two", text);
            twin_same_bits(one, many, "one thread and many", text);
            twin_close(one, want, bound(side ? side : 6) * 2 * (9 * c + 20), 0,
                       text); /* terms are below 2; the bound of errs, and what the definition errs itself */
            hone_value_drop(one), hone_value_drop(two), hone_value_drop(many), hone_wisdom_destroy(wisdom);
        }
        hone_value_drop(x), hone_value_drop(want);
        hone_compiled_destroy(g);
    }
    for (size_t q = 0; q < COUNT(sides); q++) assert_true(seen[sides[q]][1] && seen[sides[q]][3]); /* both ways were taken */
    assert_true(seen[0][1] + seen[0][3]);
}
/* How far it is from the exact sum, against the sum of magnitudes. What docs/11 says is what holds here. */
static void errs(void **state) {
    (void)state;
    static const struct { int h, w, c, m; } cases[] = {{24, 24, 16, 16}, {12, 16, 64, 64}, {14, 14, 192, 256}, {7, 7, 256, 256}};
    EACH_LEVEL for (size_t k = 0; k < COUNT(cases) * COUNT(sides); k++) {
        const int side = sides[k / COUNT(cases)], h = cases[k % COUNT(cases)].h, w = cases[k % COUNT(cases)].w,
                  c = cases[k % COUNT(cases)].c, m = cases[k % COUNT(cases)].m;
        snprintf(
            text, sizeof text,
            "graph g (x: f32[1, %d, %d, %d]) -> y { k: f32[%d, %d, 3, 3] = random(4, -1, 1); p: f32[%d, 1, 1, 1] = random(4, 1, 1); t = "
            "Conv(x, p) {group: %d}; v = Conv(t, k) {pads: [1, 1, 1, 1]}; z = Relu(v); y = Transpose(z) {perm: [0, 2, 3, 1]}; }",
            c, h, w, m, c, c, c);
        hone_compiled *g = twin_compile(text);
        hone_value *x = input(1, c, h, w);
        hone_wisdom *wisdom = told(g, x, side);
        hone_value *got = run(g, &x, 1, false, wisdom);
        assert_true(wisdom->line.n && by_tiles(g, x, wisdom));
        const float *f = filters_of(g, c)->data;
        double worst = 0;
        for (int o = 0; o < m; o += 7)
            for (int y = 0; y < h; y++)
                for (int z = 0; z < w; z++) {
                    double sum = 0, size = 0;
                    for (int i = 0; i < c * 9; i++) {
                        const int iy = y + i % 9 / 3 - 1, ix = z + i % 3 - 1;
                        if (iy < 0 || ix < 0 || iy >= h || ix >= w) continue;
                        const double term = (double)f[o * c * 9 + i] * (double)((const float *)x->data)[((i / 9) * h + iy) * w + ix];
                        sum += term, size += fabs(term);
                    }
                    sum = sum > 0 ? sum : 0;
                    const double off = fabs((double)((const float *)got->data)[(y * w + z) * m + o] - sum) / size;
                    worst = off > worst ? off : worst;
                }
        if (!(worst <= bound(side))) fail_msg("%d: off by %g of the sum of magnitudes, in\n%s", side, worst, text);
        hone_value_drop(x), hone_value_drop(got), hone_wisdom_destroy(wisdom);
        hone_compiled_destroy(g);
    }
}
/* A number that is none reaches its own tile: what the definition makes of it is none here as well, and as far away as a tile is wide, and one, nothing is seen of it. */
static void special(void **state) {
    (void)state;
    static const float values[] = {INFINITY, -INFINITY, NAN};
    EACH_LEVEL for (size_t k = 0; k < COUNT(sides); k++) {
        const int side = sides[k], h = 15, w = 17, c = 32, m = 40, py = draw(0, h - 1), px = draw(0, w - 1), pad[4] = {1, 1, 1, 1};
        graph(1, h, w, c, m, pad, after[1], true, false);
        hone_compiled *g = twin_compile(text);
        hone_value *x = input(1, 2, h, w);
        ((float *)x->data)[py * w + px] = values[level % COUNT(values)];
        hone_wisdom *wisdom = told(g, x, side);
        assert_true(wisdom->line.n && by_tiles(g, x, wisdom));
        hone_value *want = run(g, &x, 1, true, NULL), *got = run(g, &x, 1, false, wisdom);
        const float near = (float)bound(side) * 2 * (9 * c + 20);
        for (int64_t q = 0; q < hone_value_count(want); q++) {
            const float a = ((const float *)want->data)[q], b = ((const float *)got->data)[q];
            const int y = (int)(q / m / w), z = (int)(q / m % w), away = abs(y - py) > abs(z - px) ? abs(y - py) : abs(z - px);
            if (away > side) assert_true(fabsf(a - b) <= near);
            if (!isfinite(a)) assert_true(!isfinite(b));
            else assert_true(isnan(b) || fabsf(a - b) <= near);
        }
        hone_value_drop(x), hone_value_drop(want), hone_value_drop(got), hone_wisdom_destroy(wisdom);
        hone_compiled_destroy(g);
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(transforms), cmocka_unit_test(convolutions), cmocka_unit_test(errs),
                                       cmocka_unit_test(special)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
