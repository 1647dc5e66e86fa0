/* SPDX-License-Identifier: Apache-2.0
   test_windows: kernels of depthwise windows, over rows of channels, lines of pixels and planes: every row
   of their lists that this CPU (as masked) can run, against plain loops in double precision. Bounds are
   exact.h's. */
#include "base/dtype.h"
#include "base/thread.h"
#include "kernels/gemm.h"
#include "kernels/dwconv_nhwc_rows.h"
#include "exact.h"

/* The same with rows of bf16: what is read is rounded first, what is stored at the end. */
static uint16_t *bf16_row(float *x, int64_t n) { /* and rounds x */
    uint16_t *h = malloc(sizeof *h * (size_t)(n + 1));
    assert_non_null(h);
    hone_dtype_store_n(HONE_DTYPE_BF16, h, HONE_F32, x, (size_t)n, false);
    hone_dtype_load_n(HONE_DTYPE_BF16, x, h, (size_t)n);
    return h;
}
static void depthwise_halves(const hone_dwconv_nhwc *row, const hone_gemm_args *w) {
    enum { MOST = 300 };
    const int64_t n_a = w->taps * w->m;
    const float *a[MOST], *half_a[MOST], *more[MOST], *half_more[MOST];
    float *c[MOST], *half_c[MOST];
    for (int64_t k = 0; k < n_a; k++) {
        float *x = exact_floats((size_t)(w->n + w->a_from));
        memcpy(x, w->a[k], sizeof *x * (size_t)(w->n + w->a_from));
        half_a[k] = (const float *)(const void *)bf16_row(x, w->n + w->a_from), a[k] = x;
    }
    for (int i = 0; i < w->m; i++) {
        float *x = exact_floats((size_t)w->n);
        half_more[i] = (const float *)(const void *)bf16_row(x, w->n), more[i] = x;
        c[i] = exact_floats((size_t)w->n), half_c[i] = calloc((size_t)w->n + 1, sizeof(uint16_t));
        ((uint16_t *)(void *)half_c[i])[w->n] = 4321;
    }
    hone_gemm_args part = *w;
    part.a = a, part.residual = w->residual ? more : NULL, part.c = c;
    row->run(&part);
    part.a = half_a, part.residual = w->residual ? half_more : NULL, part.c = half_c;
    part.a_bf16 = part.residual_bf16 = part.c_bf16 = true;
    row->run(&part);
    for (int i = 0; i < w->m; i++) {
        const uint16_t *got = (const uint16_t *)(const void *)half_c[i];
        for (int j = 0; j < w->n; j++) {
            uint16_t want;
            hone_dtype_store(HONE_DTYPE_BF16, &want, HONE_F32, (hone_scalar){.f32 = c[i][j]}, false);
            if (got[j] != want && !(fabsf(c[i][j]) < FLT_MIN && !(got[j] & 0x7fff)) &&
                !(isnan(c[i][j]) && (got[j] & 0x7fff) > 0x7f80))
                fail_msg("%s: %a became %04x, not %04x", row->name, (double)c[i][j], got[j], want);
        }
        assert_int_equal(got[w->n], 4321);
        free((void *)more[i]), free((void *)half_more[i]), free(c[i]), free(half_c[i]);
    }
    for (int64_t k = 0; k < n_a; k++) free((void *)a[k]), free((void *)half_a[k]);
}
/* one filter a channel: the same, but every column has its own A */
static void test_depthwise_rows(void **state) {
    (void)state;
    enum { MOST_ROWS = 9 };
    static const int ns[] = {1, 3, 4, 5, 8, 15, 16, 17, 31, 63, 64, 65, 97};
    for (const hone_dwconv_nhwc *row = hone_dwconv_nhwc_list; row->name; row++) {
        if (row->cpu & ~hone_cpu()) continue;
        for (int m = 1; m <= MOST_ROWS; m += m < 5 ? 1 : 4)
            for (size_t q = 0; q < COUNT(ns); q++)
                for (int64_t taps = 0; taps < 30; taps = taps ? taps * 3 : 1)
                    for (int flags = 0; flags < 16; flags += 3) {
                        const int n = ns[q];
                        float *a[30 * MOST_ROWS], *b = exact_floats((size_t)(taps * n)),
                                                  *bias = exact_floats((size_t)n), *c[MOST_ROWS],
                                                  *old[MOST_ROWS];
                        for (int64_t k = 0; k < taps * m; k++) a[k] = exact_floats((size_t)(n + 2));
                        if (flags & 1 && taps) a[0][2] = INFINITY, b[n - 1] = NAN;
                        for (int i = 0; i < m; i++) {
                            c[i] = exact_floats((size_t)n + 1), old[i] = exact_floats((size_t)n + 1);
                            c[i][n] = GUARD, memcpy(old[i], c[i], sizeof(float) * (size_t)(n + 1));
                        }
                        const hone_gemm_args part = {.m = m,
                                                     .n = n,
                                                     .taps = taps,
                                                     .k = 1,
                                                     .a = (const float *const *)a,
                                                     .a_step = m,
                                                     .a_from = 2,
                                                     .b = b,
                                                     .b_step = n,
                                                     .c = c,
                                                     .more = flags & 2,
                                                     .sums = (const float *const *)old,
                                                     .epilogue = flags & 4,
                                                     .bias_n = bias,
                                                     .residual = flags & 1 ? (const float *const *)old : NULL,
                                                     .clamp = flags & 8,
                                                     .lo = -1,
                                                     .hi = 0.5f};
                        row->run(&part);
                        depthwise_halves(row, &part);
                        for (int i = 0; i < m; i++) {
                            assert_memory_equal(c[i] + n, &GUARD, sizeof GUARD);
                            for (int j = 0; j < n; j++) {
                                double sum = flags & 2 ? (double)old[i][j] : 0, magnitude = fabs(sum);
                                for (int64_t t = 0; t < taps; t++) {
                                    const double term = (double)a[t * m + i][2 + j] * (double)b[t * n + j];
                                    sum += term, magnitude += fabs(term);
                                }
                                if (flags & 4)
                                    sum += (double)bias[j] + (flags & 1 ? (double)old[i][j] : 0),
                                        magnitude += 4;
                                if ((flags & 12) == 12 && !isnan(sum))
                                    sum = sum < -1 ? -1 : sum > 0.5 ? 0.5 : sum;
                                check(row->name, c[i][j], sum, magnitude, taps + 3);
                            }
                            free(c[i]), free(old[i]);
                        }
                        for (int64_t k = 0; k < taps * m; k++) free(a[k]);
                        free(b), free(bias);
                    }
    }
}

/* A line of a picture of `size` columns, of which the first window begins at `first`, perhaps before them;
   each row exact in its memory. */
static void lines_case(const hone_dwconv_nhwc_rows *row, int rows, int across, int step, int ahead,
                       int64_t results, int64_t n, int flags) {
    const int64_t pitch = n + (flags & 1 ? 3 : 0), out = n + (flags & 2 ? 5 : 0), size = step * results + 1,
                  first = -(int64_t)(random_bits() % 4);
    const int lines = flags & 16 ? 2 : 1, down = 1 + (int)(random_bits() % 2),
              all = rows + (lines - 1) * down;
    const int64_t line = out * results + 2, many = line * (lines - 1) + out * (results - 1) + n;
    float *x[HONE_DWCONV_ROWS_ROWS], *k[HONE_DWCONV_ROWS_ROWS], *c = exact_floats((size_t)many),
                                                                *old = exact_floats((size_t)many);
    float *zeros = calloc((size_t)n, sizeof *zeros), *bias = exact_floats((size_t)n);
    const float *at[HONE_DWCONV_ROWS_ROWS];
    for (int64_t p = 0; p < many; p++) c[p] = p % line < out * results && p % line % out < n ? c[p] : GUARD;
    memcpy(old, c, sizeof *c * (size_t)many);
    for (int r = 0; r < all; r++) {
        x[r] = exact_floats((size_t)(pitch * (size - 1) + n));
        at[r] = random_bits() % 6 ? x[r] + first * pitch : NULL;
    }
    for (int r = 0; r < rows; r++) k[r] = exact_floats((size_t)(across * n));
    if (flags & 1 && rows) x[0][0] = INFINITY, k[0][n - 1] = NAN;
    row->run(&(hone_dwconv_rows_args){.results = results,
                                      .channels = n,
                                      .rows = rows,
                                      .across = across,
                                      .stride = step,
                                      .dilation = ahead,
                                      .lines = lines,
                                      .down = down,
                                      .lo = -first,
                                      .hi = size - first,
                                      .row = at,
                                      .weight = (const float *const *)k,
                                      .pitch = pitch,
                                      .weight_step = n,
                                      .zeros = zeros,
                                      .to = c,
                                      .to_pitch = out,
                                      .to_down = line,
                                      .bias = flags & 4 ? bias : NULL,
                                      .residual = flags & 2 ? c : NULL,
                                      .residual_pitch = out,
                                      .residual_down = line,
                                      .clamp = flags & 8,
                                      .least = -1,
                                      .most = 0.5f});
    for (int64_t p = 0; p < many; p++) {
        const int64_t l = p / line, i = p % line / out, j = p % line % out;
        if (i >= results || j >= n) {
            assert_memory_equal(c + p, &GUARD, sizeof GUARD);
            continue;
        }
        double sum = (flags & 4 ? (double)bias[j] : 0) + (flags & 2 ? (double)old[p] : 0), magnitude = 4;
        bool either = false; /* a weight that is no number meets what is outside */
        for (int r = 0; r < rows; r++)
            for (int q = 0; q < across; q++) {
                const int64_t column = first + step * i + ahead * q;
                const int from = (int)l * down + r;
                const double weight = (double)k[r][q * n + j];
                if (at[from] && column >= 0 && column < size) {
                    const double term = (double)x[from][column * pitch + j] * weight;
                    sum += term, magnitude += fabs(term);
                } else either |= isnan(weight);
            }
        if (flags & 8 && !isnan(sum)) sum = sum < -1 ? -1 : sum > 0.5 ? 0.5 : sum;
        if (!either || !isnan(c[p])) check(row->name, c[p], sum, magnitude, rows * across + 3);
    }
    for (int r = 0; r < all; r++) free(x[r]);
    for (int r = 0; r < rows; r++) free(k[r]);
    free(c), free(old), free(zeros), free(bias);
}
/* Rows, results and residual as bf16: what the same kernel makes of the same numbers as floats, rounded, to
   the bit. flags: 1 results too, 2 a residual, 4 it too, 8 a clamp */
static void lines_half_case(const hone_dwconv_nhwc_rows *row, int across, int step, int64_t results,
                            int64_t n, int flags) {
    enum { ROWS = 3, GUARDS = 7 };
    const int64_t size = step * (results - 1) + across - 1, pitch = n + 3, all = results * n;
    float *wide[ROWS], *k[ROWS], *zeros = calloc((size_t)n, sizeof *zeros), *bias = exact_floats((size_t)n),
                                 *want = exact_floats((size_t)all), *more = exact_floats((size_t)all);
    uint16_t *narrow[ROWS], *half_more = malloc(sizeof *half_more * (size_t)all),
                            *half = malloc(sizeof *half * (size_t)(2 * all + GUARDS));
    assert_true(zeros && half && half_more);
    for (int r = 0; r < ROWS; r++) {
        wide[r] = exact_floats((size_t)(pitch * size)), k[r] = exact_floats((size_t)(across * n));
        assert_non_null(narrow[r] = malloc(sizeof **narrow * (size_t)(pitch * size)));
        hone_dtype_store_n(HONE_DTYPE_BF16, narrow[r], HONE_F32, wide[r], pitch * size, false);
        hone_dtype_load_n(HONE_DTYPE_BF16, wide[r], narrow[r], (size_t)(pitch * size));
    }
    hone_dtype_store_n(HONE_DTYPE_BF16, half_more, HONE_F32, more, all, false);
    hone_dtype_load_n(HONE_DTYPE_BF16, more, half_more, (size_t)all);
    memset(half, 0x5a, sizeof *half * (size_t)(2 * all + GUARDS));
    hone_dwconv_rows_args w = {.results = results,
                               .channels = n,
                               .rows = ROWS,
                               .across = across,
                               .stride = step,
                               .dilation = 1,
                               .lines = 1};
    w.lo = 1, w.hi = size + 1, w.pitch = pitch, w.weight_step = n, w.zeros = zeros, w.bias = bias,
    w.to_pitch = w.residual_pitch = n;
    w.weight = (const float *const *)k, w.clamp = flags & 8, w.least = -1, w.most = 0.5f;
    const float *at[ROWS] = {wide[0] - pitch, NULL, wide[2] - pitch};
    w.row = at, w.to = want, w.residual = flags & 2 ? more : NULL;
    row->run(&w);
    for (int r = 0; r < ROWS; r += 2) at[r] = (const float *)(const void *)(narrow[r] - pitch);
    w.row_bf16 = true, w.to_bf16 = flags & 1, w.residual_bf16 = flags & 4, w.to = (float *)(void *)half;
    if (flags & 6) w.residual = flags & 4 ? (const float *)(const void *)half_more : more;
    if (flags & 2) row->run(&w);
    else w.residual = NULL, row->run(&w);
    const int64_t last = flags & 1 ? all : 2 * all; /* of halves that were to be written */
    if (flags & 1) {
        uint16_t *rounded = malloc(sizeof *rounded * (size_t)all);
        assert_non_null(rounded);
        hone_dtype_store_n(HONE_DTYPE_BF16, rounded, HONE_F32, want, all, false);
        assert_memory_equal(half, rounded, sizeof *half * (size_t)all);
        free(rounded);
    } else assert_memory_equal(half, want, sizeof *want * (size_t)all);
    for (int64_t p = last; p < 2 * all + GUARDS; p++) assert_int_equal(half[p], 0x5a5a);
    for (int r = 0; r < ROWS; r++) free(wide[r]), free(narrow[r]), free(k[r]);
    free(zeros), free(bias), free(want), free(more), free(half_more), free(half);
}
static void test_lines_halves(void **state) {
    (void)state;
    static const int ns[] = {1, 3, 8, 15, 16, 17, 32, 50, 97};
    for (const hone_dwconv_nhwc_rows *row = hone_dwconv_nhwc_rows_list; row->name; row++)
        for (int across = 2; !(row->cpu & ~hone_cpu()) && row->bf16_able && across < 6; across++)
            for (int step = 1; step < 4; step++)
                for (size_t q = 0; q < COUNT(ns); q++)
                    for (int results = 2; results < 12; results++)
                        lines_half_case(row, across, step, results, ns[q], (int)(random_bits() % 16));
}
static void test_lines(void **state) {
    (void)state;
    static const struct {
        int across, step, ahead;
    } windows[] = {{3, 1, 1}, {3, 2, 1}, {5, 1, 1}, {5, 2, 1}, {2, 1, 1},
                   {7, 1, 1}, {3, 1, 2}, {3, 3, 1}, {4, 2, 3}};
    static const int ns[] = {1, 3, 4, 7, 8, 15, 16, 17, 32, 33, 50, 64, 97};
    for (const hone_dwconv_nhwc_rows *row = hone_dwconv_nhwc_rows_list; row->name; row++) {
        if (row->cpu & ~hone_cpu()) continue;
        for (size_t k = 0; k < COUNT(windows); k++)
            for (size_t q = 0; q < COUNT(ns); q++)
                for (int results = 1; results < 19; results++)
                    lines_case(row, (int)(random_bits() % 5), windows[k].across, windows[k].step,
                               windows[k].ahead, results, ns[q], (int)(random_bits() % 32));
    }
}

/* Fills in the output extents of a geometry from the pads at its end; false where there is no output. */
static bool depthwise_extents(hone_dwconv_nchw_shape *s, int64_t ph1, int64_t pw1) {
    const int64_t h = s->h + s->ph + ph1 - (s->kh - 1) * s->dh - 1,
                  w = s->w + s->pw + pw1 - (s->kw - 1) * s->dw - 1;
    s->oh = h < 0 ? 0 : h / s->sh + 1, s->ow = w < 0 ? 0 : w / s->sw + 1;
    return s->oh > 0 && s->ow > 0;
}

static void depthwise_case(const hone_dwconv_nchw *row, hone_dwconv_nchw_shape s, bool special) {
    s.xs = s.w + (ptrdiff_t)(random_bits() % 3), s.ys = s.ow + (ptrdiff_t)(random_bits() % 3);
    float *x = exact_floats((size_t)((s.h - 1) * s.xs + s.w)), *k = exact_floats((size_t)(s.kh * s.kw));
    const ptrdiff_t room = (s.oh + 2) * s.ys;
    float *y = exact_floats((size_t)room);
    for (ptrdiff_t i = 0; i < room; i++) y[i] = GUARD;
    if (special) {
        x[0] = NAN, x[(s.h - 1) * s.xs + s.w - 1] = INFINITY;
        /* over the padding too: 0 * inf is NaN */
        if (random_bits() % 2) k[random_bits() % (uint32_t)(s.kh * s.kw)] = -INFINITY;
    }
    /* a range of rows, as a tile would take, then the rows around it */
    const int64_t oy0 = (int64_t)(random_bits() % (uint32_t)s.oh),
                  oy1 = oy0 + 1 + (int64_t)(random_bits() % (uint32_t)(s.oh - oy0));
    float *out = y + s.ys;
    row->run(&s, x, k, out, oy0, oy1);
    for (ptrdiff_t i = 0; i < room; i++)
        if ((i < (oy0 + 1) * s.ys || i >= (oy1 + 1) * s.ys) && y[i] != GUARD)
            fail_msg("%s: wrote a row that is not its own", row->name);
    row->run(&s, x, k, out, 0, oy0);
    row->run(&s, x, k, out, oy1, s.oh);

    for (ptrdiff_t at = 0; at < room; at++) {
        const ptrdiff_t oy = at / s.ys - 1, ox = at % s.ys;
        if (oy < 0 || oy >= s.oh || ox >= s.ow) {
            if (y[at] != GUARD)
                fail_msg("%s: wrote row %d, column %d outside the plane", row->name, (int)oy, (int)ox);
            continue;
        }
        double sum = 0, magnitude = 0;
        for (int64_t i = 0; i < s.kh; i++)
            for (int64_t j = 0; j < s.kw; j++) {
                const int64_t iy = oy * s.sh + i * s.dh - s.ph, ix = ox * s.sw + j * s.dw - s.pw;
                const bool inside = iy >= 0 && iy < s.h && ix >= 0 && ix < s.w;
                const double term = (inside ? (double)x[iy * s.xs + ix] : 0.0) * (double)k[i * s.kw + j];
                sum += term, magnitude += fabs(term);
            }
        check(row->name, y[at], sum, magnitude, s.kh * s.kw);
    }
    free(x), free(k), free(y);
}

/* every width of a few vectors, every kernel that has code of its own and some that do not, all strides */
static void test_depthwise_f32_widths(void **state) {
    (void)state;
    static const struct {
        int64_t kh, kw;
    } kernels[] = {{3, 3}, {5, 5}, {1, 3}, {1, 9}, {7, 1}, {1, 1}, {4, 2}, {7, 7}};
    for (const hone_dwconv_nchw *row = hone_dwconv_nchw_list; row->name; row++) {
        if (row->cpu & ~hone_cpu()) continue;
        for (int64_t w = 1; w <= 70; w++)
            for (size_t i = 0; i < COUNT(kernels); i++)
                for (int64_t stride = 1; stride <= 3; stride++) {
                    hone_dwconv_nchw_shape s = {.h = 1 + (w * 5 + stride) % 11,
                                                .w = w,
                                                .kh = kernels[i].kh,
                                                .kw = kernels[i].kw,
                                                .sh = stride,
                                                .sw = stride,
                                                .dh = 1,
                                                .dw = 1,
                                                .ph = kernels[i].kh / 2,
                                                .pw = kernels[i].kw / 2};
                    if (depthwise_extents(&s, s.ph, s.pw)) depthwise_case(row, s, w % 7 == 0);
                }
    }
}

/* geometry at random: unequal strides, dilations and pads, pads wider than the plane or the kernel */
static void test_depthwise_f32_geometry(void **state) {
    (void)state;
    for (const hone_dwconv_nchw *row = hone_dwconv_nchw_list; row->name; row++) {
        if (row->cpu & ~hone_cpu()) continue;
        for (int n = 0; n < 4000; n++) {
            hone_dwconv_nchw_shape s = {.h = 1 + random_bits() % 12,
                                        .w = 1 + random_bits() % 70,
                                        .kh = 1 + random_bits() % 6,
                                        .kw = 1 + random_bits() % 6,
                                        .sh = 1 + random_bits() % 3,
                                        .sw = 1 + random_bits() % 3,
                                        .dh = 1 + random_bits() % 3,
                                        .dw = 1 + random_bits() % 3,
                                        .ph = random_bits() % 9,
                                        .pw = random_bits() % 9};
            if (n % 3 == 0) s.kh = s.kw = n % 2 ? 3 : 5, s.dh = 1;
            if (depthwise_extents(&s, random_bits() % 9, random_bits() % 9))
                depthwise_case(row, s, n % 8 == 0);
        }
    }
}

/* planes wide enough for several blocks, and kernels too great for the ring of lines */
static void test_depthwise_f32_extremes(void **state) {
    (void)state;
    static const hone_dwconv_nchw_shape shapes[] = {
        {.h = 9, .w = 5001, .kh = 3, .kw = 3, .sh = 1, .sw = 1, .dh = 1, .dw = 1, .ph = 1, .pw = 1},
        {.h = 9, .w = 5001, .kh = 3, .kw = 3, .sh = 2, .sw = 2, .dh = 1, .dw = 1, .ph = 1, .pw = 1},
        {.h = 13, .w = 3003, .kh = 5, .kw = 5, .sh = 2, .sw = 2, .dh = 1, .dw = 1, .ph = 2, .pw = 1},
        {.h = 13, .w = 3003, .kh = 5, .kw = 5, .sh = 1, .sw = 1, .dh = 1, .dw = 1, .ph = 2, .pw = 2},
        {.h = 1, .w = 20000, .kh = 1, .kw = 31, .sh = 1, .sw = 1, .dh = 1, .dw = 1, .ph = 0, .pw = 15},
        {.h = 1, .w = 20000, .kh = 1, .kw = 5, .sh = 1, .sw = 3, .dh = 1, .dw = 7, .ph = 0, .pw = 0},
        {.h = 50, .w = 60, .kh = 3, .kw = 3, .sh = 1, .sw = 1, .dh = 24, .dw = 24, .ph = 24, .pw = 24},
        {.h = 200, .w = 9, .kh = 3, .kw = 3, .sh = 1, .sw = 1, .dh = 50, .dw = 2, .ph = 50, .pw = 2},
        {.h = 3, .w = 90, .kh = 1, .kw = 40, .sh = 1, .sw = 1, .dh = 1, .dw = 1, .ph = 0, .pw = 3},
        {.h = 90, .w = 3, .kh = 70, .kw = 1, .sh = 1, .sw = 1, .dh = 1, .dw = 1, .ph = 3, .pw = 0},
        {.h = 3, .w = 10000, .kh = 1, .kw = 2, .sh = 1, .sw = 9000, .dh = 1, .dw = 8999, .ph = 0, .pw = 0},
        {.h = 1, .w = 4, .kh = 1, .kw = 2, .sh = 1, .sw = 1, .dh = 1, .dw = 100000, .ph = 0, .pw = 100000},
        {.h = 30, .w = 300, .kh = 2, .kw = 3, .sh = 17, .sw = 50, .dh = 1, .dw = 1, .ph = 40, .pw = 70},
    };
    for (const hone_dwconv_nchw *row = hone_dwconv_nchw_list; row->name; row++) {
        if (row->cpu & ~hone_cpu()) continue;
        for (size_t i = 0; i < COUNT(shapes); i++) {
            hone_dwconv_nchw_shape s = shapes[i];
            assert_true(depthwise_extents(&s, s.ph, s.pw));
            depthwise_case(row, s, i % 2);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_depthwise_rows),         cmocka_unit_test(test_lines),
        cmocka_unit_test(test_lines_halves),           cmocka_unit_test(test_depthwise_f32_widths),
        cmocka_unit_test(test_depthwise_f32_geometry), cmocka_unit_test(test_depthwise_f32_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
