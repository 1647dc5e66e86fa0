/* SPDX-License-Identifier: Apache-2.0
   test_kernels: every row of the kernel lists that this CPU (as masked) can run, against plain loops in
   double precision: products, activations, cells. Bounds are exact.h's. */
#include "base/thread.h"
#include "kernels/activate.h"
#include "kernels/cell.h"
#include "kernels/gemm.h"
#include "kernels/gemm_half.h"
#include "kernels/direct_conv.h"
#include "exact.h"

/* flags: 1 adds to sums that are there, 2 special values, 4 finishes, with bias a row (8), bias a column
   (16), residual (32) and clamp (64) where set; 128: values of K lie backwards in A, 256: in B; 512: rows
   turned before, in two blocks, 1024: in one, for `slices` */
static void gemm_case(const hone_gemm_f32 *row, int vectors, int m, int n, int64_t taps, int64_t k,
                      int flags) {
    const int wide = vectors * row->vector, stride = wide + 3;
    const int64_t all = taps * k;
    float *b = exact_floats((size_t)(all * wide)), *bias_m = exact_floats((size_t)m),
          *bias_n = exact_floats((size_t)n);
    float *c = exact_floats((size_t)((m + 2) * stride)), *before = exact_floats((size_t)((m + 2) * stride));
    float *piece[3 * HONE_GEMM_ROWS], *residual[HONE_GEMM_ROWS], *at[HONE_GEMM_ROWS];
    const float *a[3 * HONE_GEMM_ROWS], *more[HONE_GEMM_ROWS];
    for (int64_t t = 0; t < taps; t++) /* pieces of their exact size, anywhere, rows in no order */
        for (int i = 0; i < m; i++)
            a[t * HONE_GEMM_ROWS + i] = piece[t * HONE_GEMM_ROWS + i] = exact_floats((size_t)k);
    for (int i = 0; i < m; i++) more[i] = residual[i] = exact_floats((size_t)n + 5);
    if (flags & 2 && all > 1) {
        /* inf * 0 is NaN in the last column, -inf in the first */
        piece[0][0] = INFINITY, b[wide - 1] = 0, b[0] = -2;
        if (n > 2 && k > 1) b[wide + 1] = NAN, b[wide + 2] = -INFINITY;
    }
    int64_t where[130], slice[130];
    for (int64_t p = 0; p < k; p++)
        where[p] = flags & 128 ? k - 1 - p : p, slice[p] = (flags & 256 ? k - 1 - p : p) * wide;
    for (ptrdiff_t i = 0; i < (m + 2) * stride; i++) c[i] = GUARD;
    for (int i = 0; i < m; i++) {
        at[i] = c + (m - i) * stride - 5; /* rows backwards: the kernel takes each where it is told */
        for (int j = 0; j < n; j++) at[i][5 + j] = flags & 1 ? random_value() : NAN;
    }
    memcpy(before, c, (size_t)((m + 2) * stride) * sizeof *c);
    const hone_gemm_args part = {.m = m,
                                 .n = n,
                                 .taps = taps,
                                 .k = k,
                                 .a = a,
                                 .at = flags & 128 ? where : NULL,
                                 .at_b = flags & 256 ? slice : NULL,
                                 .a_step = HONE_GEMM_ROWS,
                                 .b = b,
                                 .b_step = wide,
                                 .c = at,
                                 .c_from = 5,
                                 .small_m = !(flags & 128) && (m + n) & 1,
                                 .more = flags & 1,
                                 .sums = (const float *const *)at,
                                 .sums_from = 5,
                                 .epilogue = flags & 4,
                                 .bias_m = flags & 8 ? bias_m : NULL,
                                 .bias_n = flags & 16 ? bias_n : NULL,
                                 .residual = flags & 32 ? more : NULL,
                                 .clamp = flags & 64,
                                 .lo = -0.5f,
                                 .hi = 0.75f};
    if (flags & 512) { /* the same, turned before */
        float *turned = exact_floats((size_t)(all * 2 * HONE_GEMM_PACKED_M((m + 1) / 2)));
        hone_gemm_args other = part;
        other.packed_a = turned, other.small_m = false, other.a = NULL, other.at = NULL,
        other.m_block = (m + 1) / 2;
        const int call = !part.at && n % 2 ? m : other.m_block; /* two blocks, at once or one after another */
        for (int i = 0; i < m; i += call) {
            hone_gemm_args some = part;
            some.a += i, some.m = m - i < call ? m - i : call, some.m_block = other.m_block;
            row->pack_a(&some, turned + (i ? all * HONE_GEMM_PACKED_M(other.m_block) : 0));
        }
        row->run[vectors - 1](&other);
        free(turned);
    } else if (flags & 1024) {
        float *turned = exact_floats((size_t)(all * HONE_GEMM_PACKED_M(m)));
        hone_gemm_args other = part;
        row->pack_a(&part, turned);
        other.packed_a = turned, other.a = NULL;
        hone_direct_conv_f32_best()->run(&other);
        free(turned);
    } else row->run[vectors - 1](&part);
    for (ptrdiff_t place = 0; place < (m + 2) * stride; place++) {
        const ptrdiff_t i = m - place / stride, j = place % stride;
        if (i < 0 || i >= m || j >= n) {
            if (memcmp(&c[place], &before[place], sizeof *c))
                fail_msg("%s: %d vectors, m %d, n %d wrote row %d, column %d", row->name, vectors, m, n,
                         (int)i, (int)j);
            continue;
        }
        double sum = flags & 1 ? (double)before[place] : 0, magnitude = fabs(sum);
        for (int64_t p = 0; p < all; p++) {
            const double term = (double)a[p / k * HONE_GEMM_ROWS + i][where[p % k]] *
                                (double)b[p / k * k * wide + slice[p % k] + j];
            sum += term, magnitude += fabs(term);
        }
        const double ends[3] = {flags & 8 ? (double)bias_m[i] : 0, flags & 16 ? (double)bias_n[j] : 0,
                                flags & 32 ? (double)residual[i][5 + j] : 0};
        for (int q = 0; q < 3 && flags & 4; q++) sum += ends[q], magnitude += fabs(ends[q]);
        if (flags & 4 && flags & 64 && !isnan(sum)) sum = sum < -0.5 ? -0.5 : sum > 0.75 ? 0.75 : sum;
        check(row->name, c[place], sum, magnitude, all + 4);
    }
    for (int64_t t = 0; t < taps; t++)
        for (int i = 0; i < m; i++) free(piece[t * HONE_GEMM_ROWS + i]);
    for (int i = 0; i < m; i++) free(residual[i]);
    free(b), free(bias_m), free(bias_n), free(c), free(before);
}

/* Rows that are scaled while they are turned; NaN stays. */
static void test_gemm_ahead(void **state) {
    (void)state;
    for (const hone_gemm_f32 *const *list = hone_gemm_f32_list; *list; list++)
        for (int round = 0; round < 600 && (*list)->pack_a && !((*list)->cpu & ~hone_cpu()); round++) {
            const int m = 1 + round % 8, high = HONE_GEMM_PACKED_M(m), k = 1 + (int)(random_bits() % 40),
                      ends = round / 8 % 4;
            float *scale = exact_floats((size_t)k), *shift = exact_floats((size_t)k),
                  *to = exact_floats((size_t)(high * k)), *rows[8];
            for (int i = 0; i < m; i++)
                rows[i] = exact_floats((size_t)k), rows[i][random_bits() % (uint32_t)k] = i ? NAN : INFINITY;
            const hone_gemm_prologue ahead = {scale, ends & 1 ? shift : NULL, ends ? -0.25f : -INFINITY,
                                              ends & 2 ? 0.5f : INFINITY};
            (*list)->pack_a(
                &(hone_gemm_args){
                    .m = m, .taps = 1, .k = k, .a = (const float *const *)rows, .prologue = &ahead},
                to);
            for (int i = 0; i < m; i++)
                for (int p = 0; p < k; p++) {
                    const double term = (double)rows[i][p] * (double)scale[p],
                                 more = ends & 1 ? (double)shift[p] : 0, sum = term + more;
                    const double want = sum < (double)ahead.lo   ? (double)ahead.lo
                                        : sum > (double)ahead.hi ? (double)ahead.hi
                                                                 : sum;
                    check((*list)->name, to[p * high + i], want, isinf(term) ? 1 : fabs(term) + fabs(more),
                          2);
                }
            float *flat = exact_floats((size_t)(m * k)); /* the same of rows that stay as they lie */
            (*list)->pack_a(
                &(hone_gemm_args){
                    .m = m, .k = k, .a = (const float *const *)rows, .prologue = &ahead, .copy_a = true},
                flat);
            for (int i = 0; i < m; i++)
                for (int p = 0; p < k; p++)
                    if (memcmp(flat + i * k + p, to + p * high + i, sizeof *to))
                        fail_msg("%s: row %d, value %d: %a and %a, k %d, ends %d", (*list)->name, i, p,
                                 (double)flat[i * k + p], (double)to[p * high + i], k, ends);
            for (int i = 0; i < m; i++) free(rows[i]);
            free(scale), free(shift), free(to), free(flat);
        }
}
/* Several panels of few rows by one call, against one after another: the same bits. */
static void test_gemm_panels(void **state) {
    (void)state;
    enum { PANELS = 3, WIDE = PANELS * 4 * 16 };
    for (const hone_gemm_f32 *const *list = hone_gemm_f32_list; *list; list++) {
        const hone_gemm_f32 *row = *list;
        if (row->cpu & ~hone_cpu()) continue;
        for (int round = 0; round < 400; round++) {
            const int v = 1 + round % row->widths, m = 1 + (int)(random_bits() % HONE_GEMM_SMALL_M),
                      wide = v * row->vector, ends = (int)(random_bits() % 16);
            const int64_t k = 1 + random_bits() % 40;
            float *a = exact_floats((size_t)(m * k)), *b = exact_floats((size_t)(PANELS * k * wide)),
                  *bias = exact_floats((size_t)(PANELS * wide)),
                  *residual = exact_floats((size_t)(m * PANELS * wide));
            float one[HONE_GEMM_SMALL_M][WIDE], all[HONE_GEMM_SMALL_M][WIDE], *to[HONE_GEMM_SMALL_M];
            const float *rows[HONE_GEMM_SMALL_M], *more[HONE_GEMM_SMALL_M];
            for (int i = 0; i < m; i++) {
                rows[i] = a + i * k, more[i] = residual + i * PANELS * wide;
                for (int j = 0; j < WIDE; j++) one[i][j] = all[i][j] = random_value();
            }
            hone_gemm_args part = {.m = m,
                                   .n = wide,
                                   .taps = 1,
                                   .k = k,
                                   .a = rows,
                                   .b = b,
                                   .b_step = wide,
                                   .c = to,
                                   .small_m = true,
                                   .panels = PANELS,
                                   .b_apart = k * wide};
            part.more = ends & 1, part.sums = (const float *const *)to, part.epilogue = ends & 2;
            part.bias_n = ends & 4 ? bias : NULL, part.residual = ends & 8 ? more : NULL;
            for (int i = 0; i < m; i++) to[i] = all[i];
            row->run[v - 1](&part);
            for (int i = 0; i < m; i++) to[i] = one[i];
            part.panels = 0;
            for (int j = 0; j < PANELS; j++) {
                part.b = b + j * k * wide, part.c_from = part.sums_from = j * wide,
                part.bias_n = ends & 4 ? bias + j * wide : NULL;
                row->run[v - 1](&part);
            }
            if (memcmp(one, all, sizeof *one * (size_t)m))
                fail_msg("%s: %d vectors, m %d: panels together are not panels by themselves", row->name, v,
                         m);
            free(a), free(b), free(bias), free(residual);
        }
    }
}

/* Rows in many blocks by one call, turned or as they lie, and then several panels of them, against one block
   after another: the same bits, whatever ends them. */
static void test_gemm_blocks(void **state) {
    (void)state;
    for (const hone_gemm_f32 *const *list = hone_gemm_f32_list; *list; list++) {
        const hone_gemm_f32 *row = *list;
        if (row->cpu & ~hone_cpu() || !row->pack_a) continue;
        for (int round = 0; round < 600; round++) {
            const int v = 1 + round % row->widths;
            const bool turns = v <= row->packed_widths && random_bits() % 2, dense = random_bits() % 2;
            const int most = turns ? row->mr[v - 1] : row->direct_rows[v - 1],
                      high = most - (int)(random_bits() % 4) % most, m = high + (int)(random_bits() % 30),
                      wide = v * row->vector;
            const int n = random_bits() % 4 ? wide : wide - 1, ends = (int)(random_bits() % 128);
            const int panels = !turns && n == wide ? 1 + (int)(random_bits() % 3) : 1;
            const int64_t k = 1 + random_bits() % 20;
            enum { MOST = 40, STRIDE = 52 };
            float *turned = exact_floats((size_t)(k * (m / high + 1) * HONE_GEMM_PACKED_M(high))),
                  *b = exact_floats((size_t)(k * wide * panels));
            float *bias_m = exact_floats((size_t)m), *bias_n = exact_floats((size_t)(n * panels)), *c[2],
                  *residual = exact_floats(MOST * STRIDE), *at[2][MOST];
            const float *more[MOST], *lie[MOST]; /* rows of A: the last first, or one after another */
            for (int i = 0; i < m; i++) lie[i] = turned + (dense ? i : m - 1 - i) * k;
            for (int q = 0; q < 2; q++) {
                c[q] = exact_floats(MOST * STRIDE);
                if (q) memcpy(c[1], c[0], MOST * STRIDE * sizeof(float));
                for (int i = 0; i < m; i++)
                    at[q][i] = c[q] + (MOST - 1 - i) * STRIDE, more[i] = residual + i * STRIDE;
            }
            hone_gemm_args part = {.n = n,
                                   .taps = 1,
                                   .k = k,
                                   .b = b,
                                   .b_step = wide,
                                   .c_from = 3,
                                   .sums_from = 3,
                                   .lo = -0.5f,
                                   .m_block = high};
            part.epilogue = ends & 1, part.clamp = ends & 2, part.hi = ends & 4 ? 0.75f : INFINITY,
            part.more = ends & 64 && ends & 32;
            for (int each = 0; each < panels * ((m + high - 1) / high); each++) {
                const int i = each / panels * high, q = each % panels;
                hone_gemm_args one = part;
                one.m = m - i < high ? m - i : high, one.c = at[0] + i, one.a = lie + i;
                one.b += q * wide * k, one.c_from += q * wide, one.sums_from += q * wide;
                if (turns) one.packed_a = turned + i / high * HONE_GEMM_PACKED_M(high) * k;
                one.sums = (const float *const *)at[0] + i, one.residual = ends & 8 ? more + i : NULL;
                one.bias_n = ends & 16 ? bias_n + q * wide : NULL, one.bias_m = ends & 32 ? bias_m + i : NULL;
                row->run[v - 1](&one);
            }
            part.m = m, part.packed_a = turns ? turned : NULL, part.a = lie, part.c = at[1],
            part.sums = (const float *const *)at[1];
            part.residual = ends & 8 ? more : NULL, part.bias_n = ends & 16 ? bias_n : NULL,
            part.bias_m = ends & 32 ? bias_m : NULL;
            part.panels = panels > 1 ? panels : 0, part.b_apart = wide * k;
            if (random_bits() % 2) part.prefetch = b, part.prefetch_step = 32; /* asks for what is there */
            row->run[v - 1](&part);
            if (memcmp(c[0], c[1], MOST * STRIDE * sizeof(float)))
                fail_msg("%s: %d vectors, m %d by %d, n %d, k %d, ends %d", row->name, v, m, high, n, (int)k,
                         ends);
            free(turned), free(b), free(bias_m), free(bias_n), free(c[0]), free(c[1]), free(residual);
        }
    }
}
static void test_gemm_f32(void **state) {
    (void)state;
    static const int64_t ks[] = {1, 2, 3, 7, 33, 130};
    static const int flags[] = {0,
                                1,
                                2,
                                4 + 8,
                                4 + 16 + 64,
                                4 + 32,
                                5 + 8 + 32 + 64,
                                4 + 2 + 64,
                                8 + 16 + 32 + 64,
                                128 + 4 + 16,
                                256,
                                256 + 2,
                                256 + 5 + 8 + 64,
                                512,
                                512 + 2,
                                512 + 5 + 8 + 32 + 64,
                                512 + 128 + 4 + 16,
                                1024 + 256,
                                1024 + 256 + 2,
                                1024 + 256 + 4 + 8 + 64,
                                1024 + 256 + 4 + 16 + 32,
                                1024 + 256 + 8 + 16 + 32 + 64};
    for (const hone_gemm_f32 *const *list = hone_gemm_f32_list; *list; list++) {
        const hone_gemm_f32 *row = *list;
        if (row->cpu & ~hone_cpu()) continue;
        for (int v = 1; v <= row->widths; v++)
            for (int m = 1; m <= row->mr[v - 1]; m++)
                for (size_t k = 0; k < COUNT(ks); k++)
                    for (size_t f = 0; f < COUNT(flags) && !(flags[f] & (512 | 1024) && !row->pack_a); f++) {
                        if (flags[f] & (512 | 1024) && v > row->packed_widths)
                            continue; /* not for turned rows */
                        for (int64_t taps = 1; taps <= (flags[f] & (128 | 256) ? 1 : 3); taps += 2)
                            for (int less = 0; less < row->vector; less += row->vector / 2 + 1)
                                gemm_case(row, v, m, v * row->vector - less, taps, ks[k], flags[f]);
                    }
    }
}

/* ---- halves: the products of two bf16 or f16 are exact in f32, so the bound is that of sums in f32 once
   more; a bf16 that is not normal may count as 0, and a unit may round sums in pairs, to odd: twice the
   bound, and 2^-126 a term. Where sums are f16 over a short piece of K, each adds 2^-11 of the magnitude or
   2^-25 a term more */
static float *widened(const hone_gemm_half *row, const uint16_t *h, size_t n) {
    float *x = exact_floats(n);
    hone_dtype_load_n(row->dtype, x, h, n);
    return x;
}
static uint16_t narrowed(const hone_gemm_half *row, float x) { /* by the definition */
    uint16_t h;
    hone_dtype_store(row->dtype, &h, HONE_F32, (hone_scalar){.f32 = x}, false);
    return h;
}
/* tiny: some that are not normal */
static uint16_t *exact_halves(const hone_gemm_half *row, size_t n, bool tiny) {
    uint16_t *p = malloc(n ? n * sizeof *p : 1);
    assert_non_null(p);
    for (size_t i = 0; i < n; i++)
        p[i] = narrowed(row, random_bits() % 16 || !tiny
                                 ? random_value()
                                 : random_value() * (row->dtype == HONE_DTYPE_F16 ? 1e-5f : 1e-39f));
    return p;
}
/* flags: 1 adds to sums that are there, 2 special values, 4 factors whose sums leave f16's range */
static void gemm_half_case(const hone_gemm_half *row, int64_t m, int64_t k, ptrdiff_t pad, int flags) {
    const int nr = row->nr, group = row->group;
    const ptrdiff_t a_step = k + pad, c_step = nr + pad;
    const bool f16 = row->dtype == HONE_DTYPE_F16, is_short = row->sums == HONE_DTYPE_F16;
    const size_t n_a = (size_t)((m - 1) * a_step + k), n_b = (size_t)(k * nr);
    uint16_t *a = exact_halves(row, n_a, !(flags & 2)),
             *b = exact_halves(row, n_b, !(flags & 2)); /* infinity times what may count as 0 may be NaN */
    float *c = exact_floats((size_t)((m + 2) * c_step)), *before = exact_floats((size_t)((m + 2) * c_step));
    if (flags & 2 && k > 3)
        a[0] = narrowed(row, INFINITY), b[0] = narrowed(row, -2), b[group] = 0,
        b[2 * group] = narrowed(row, NAN), b[3 * group + 1 % group] = narrowed(row, -INFINITY);
    for (size_t i = 0; flags & 4 && i < n_a; i++) a[i] = narrowed(row, 256);
    for (size_t i = 0; flags & 4 && i < n_b; i++) b[i] = narrowed(row, 200);
    if (!(flags & 1))
        for (ptrdiff_t i = 0; i < (m + 2) * c_step; i++) c[i] = NAN;
    memcpy(before, c, sizeof *c * (size_t)((m + 2) * c_step));
    if (row->begin) row->begin(m, k);
    uint16_t *laid = calloc((size_t)(m * a_step) + 1, sizeof *laid);
    assert_non_null(laid);
    for (int64_t i = 0, high; row->pack_a && i < m; i += high)
        high = hone_gemm_half_high(row->m_block, row->mr, m - i),
        row->pack_a(high, k, a + i * a_step, a_step, laid + i * k);
    const bool said = row->run(m, k, row->pack_a ? laid : a, a_step, b, c + c_step, c_step, flags & 1);
    if (row->end) row->end();
    bool finite = true;
    float *wide_a = widened(row, a, n_a), *wide_b = widened(row, b, n_b);
    for (ptrdiff_t place = 0; place < (m + 2) * c_step; place++) {
        const ptrdiff_t i = place / c_step - 1, j = place % c_step;
        if (i < 0 || i >= m || j >= nr) {
            if (memcmp(c + place, before + place, sizeof *c))
                fail_msg("%s: m %d, k %d wrote row %d, column %d", row->name, (int)m, (int)k, (int)i, (int)j);
            continue;
        }
        double sum = flags & 1 ? (double)before[place] : 0, magnitude = fabs(sum);
        for (int64_t p = 0; p < k; p++) {
            const double term =
                (double)wide_a[i * a_step + p] * (double)wide_b[(p / group * nr + j) * group + p % group];
            sum += term, magnitude += fabs(term);
        }
        finite &= isfinite(c[place]) != 0;
        if (flags & 4 && is_short && k > 1) continue; /* no number of them is right */
        magnitude = 2 * magnitude + (double)k * FLT_MIN / FLT_EPSILON;
        if (is_short)
            magnitude += (HONE_HALF_SHORT * 0x1p-11 * magnitude + (double)k * 0x1p-25) /
                         ((double)(k + 2) * FLT_EPSILON);
        check(row->name, c[place], sum, magnitude, k + 1);
    }
    assert_int_equal(said, !f16 || finite);
    if (flags & 4 && k > 1) assert_int_equal(said, !is_short);
    free(a), free(b), free(c), free(before), free(wide_a), free(wide_b), free(laid);
}
static void test_gemm_half(void **state) {
    (void)state;
    for (const hone_gemm_half *const *list = hone_gemm_half_list; *list; list++) {
        const hone_gemm_half *row = *list;
        if (row->cpu & ~hone_cpu()) continue;
        const int64_t most = 20 * row->deep > 200 ? 20 * row->deep : 200; /* several short sums */
        for (int64_t m = row->mr; m <= (row->mr > 8 ? 6 * row->mr : 33); m += row->mr)
            for (int64_t k = row->deep; k <= most; k = k * 2 + row->deep)
                for (int flags = 0; flags < 6; flags++)
                    gemm_half_case(row, m, k, (ptrdiff_t)(random_bits() % 3 * 5), flags);
    }
}
/* Fewer values of K than a step: what lies behind them in a row is not read. */
static void test_half_short(void **state) {
    (void)state;
    for (const hone_gemm_half *const *list = hone_gemm_half_list; *list; list++) {
        const hone_gemm_half *row = *list;
        if (row->cpu & ~hone_cpu() || !row->begin) continue;
        for (int64_t k = row->group; k < row->deep; k += row->group) {
            const int64_t m = 3 * row->mr, deep = row->deep;
            uint16_t *a = exact_halves(row, (size_t)(m * deep), false),
                     *b = exact_halves(row, (size_t)(deep * row->nr), false);
            uint16_t *rows = malloc(sizeof *rows * (size_t)(m * k));
            float *c = exact_floats((size_t)(m * row->nr)), *want = exact_floats((size_t)(m * row->nr));
            assert_non_null(rows);
            for (int64_t i = 0; i < m; i++) {
                memcpy(rows + i * k, a + i * deep, sizeof *a * (size_t)k);
                for (int64_t p = k; p < deep; p++) a[i * deep + p] = 0;
            }
            memset(b + k * row->nr, 0, sizeof *b * (size_t)((deep - k) * row->nr));
            row->begin(m, deep);
            row->run(m, deep, a, deep, b, want, row->nr, false);
            row->end();
            row->begin(m, k);
            row->run(m, deep, rows, k, b, c, row->nr, false);
            row->end();
            for (int64_t i = 0; i < m * row->nr; i++)
                check(row->name, c[i], (double)want[i], fabs((double)want[i]) + (double)k, k);
            free(a), free(b), free(rows), free(c), free(want);
        }
    }
}
/* Fewer rows than the unit takes: others are neither read nor written. */
static void test_half_few_rows(void **state) {
    (void)state;
    for (const hone_gemm_half *const *list = hone_gemm_half_list; *list; list++) {
        const hone_gemm_half *row = *list;
        for (int64_t m = 1; !(row->cpu & ~hone_cpu()) && row->begin && m < row->mr; m++) {
            const int64_t k = row->deep * (1 + (int64_t)(random_bits() % 4)), tall = row->mr;
            uint16_t *a = exact_halves(row, (size_t)(m * k), false),
                     *b = exact_halves(row, (size_t)(k * row->nr), false),
                     *all = calloc((size_t)(tall * k), sizeof *all);
            float *c = exact_floats((size_t)(m * row->nr)), *want = exact_floats((size_t)(tall * row->nr));
            assert_non_null(all);
            memcpy(all, a, sizeof *a * (size_t)(m * k));
            row->begin(tall, k), row->run(tall, k, all, k, b, want, row->nr, false), row->end();
            row->begin(m, k), row->run(tall, k, a, k, b, c, row->nr, false), row->end();
            assert_memory_equal(c, want, sizeof *c * (size_t)(m * row->nr));
            free(a), free(b), free(all), free(c), free(want);
        }
    }
}
/* Rows that a window finds among pixels: as if they had been put together, to the bit. */
static void test_half_window(void **state) {
    (void)state;
    for (const hone_gemm_half *const *list = hone_gemm_half_list; *list; list++) {
        const hone_gemm_half *row = *list;
        if (row->cpu & ~hone_cpu() || !row->window) continue;
        for (int64_t m = row->mr; m <= 5 * row->mr; m += row->mr)
            for (int64_t taps = 1; taps < 10; taps++) {
                const int64_t piece = row->deep * (1 + (int64_t)(random_bits() % 3)), k = taps * piece,
                              c_step = row->nr + 3;
                int64_t at[10];
                for (int64_t t = 0; t < taps; t++) at[t] = (int64_t)(random_bits() % 40) * piece;
                uint16_t *a = exact_halves(row, (size_t)((m + 40) * piece), false),
                         *b = exact_halves(row, (size_t)(k * row->nr), false),
                         *rows = exact_halves(row, (size_t)(m * k), false);
                float *c = exact_floats((size_t)(m * c_step)), *want = exact_floats((size_t)(m * c_step));
                memcpy(want, c, sizeof *c * (size_t)(m * c_step));
                for (int64_t i = 0; i < m; i++)
                    for (int64_t t = 0; t < taps; t++)
                        memcpy(rows + i * k + t * piece, a + at[t] + i * piece, sizeof *a * (size_t)piece);
                if (row->begin) row->begin(m, k);
                row->run(m, k, rows, k, b, want, c_step, taps & 1);
                row->window(m, taps, at, piece, a, piece, b, c, c_step, taps & 1);
                if (row->end) row->end();
                assert_memory_equal(c, want, sizeof *c * (size_t)(m * c_step));
                free(a), free(b), free(rows), free(c), free(want);
            }
    }
}
/* Rows that a kernel finishes itself: as if they had been finished afterwards, to the bit, and nothing else
   is written. Odd m: its last row is none. */
static void half_finish_case(const hone_gemm_half *row, int64_t m, int64_t k, unsigned how) {
    enum { WIDE = 48, FROM = 11 };
    const int64_t tall = (m + row->mr - 1) / row->mr * row->mr;
    uint16_t *a = exact_halves(row, (size_t)(tall * k), false),
             *b = exact_halves(row, (size_t)(k * row->nr), false);
    float *sums = exact_floats((size_t)(tall * row->nr)), *bias = exact_floats((size_t)row->nr),
          *residual = exact_floats((size_t)m * WIDE);
    float *c = calloc((size_t)m * WIDE, sizeof *c), *want = calloc((size_t)m * WIDE, sizeof *c), *to[64],
          *expected[64], *earlier[64];
    const float *more[64];
    assert_true(c && want && m <= 64);
    hone_gemm_args ends = {.m = (int)m,
                           .n = row->nr,
                           .c = to,
                           .c_from = FROM,
                           .more = true,
                           .epilogue = true,
                           .lo = -0.5f,
                           .hi = 0.75f};
    ends.bias_n = how & 1 ? bias : NULL, ends.residual = how & 2 ? more : NULL, ends.clamp = how & 4;
    ends.residual_bf16 = how & 8, ends.c_bf16 = how & 16, ends.sums = (const float *const *)earlier;
    for (int64_t i = 0; i < m; i++)
        to[i] = c + i * WIDE, expected[i] = want + i * WIDE, more[i] = residual + i * WIDE,
        earlier[i] = sums + i * row->nr;
    for (int64_t i = 0; how & 8 && i < m; i++)
        row->narrow(residual + i * WIDE, (uint16_t *)(void *)(residual + i * WIDE), WIDE);
    row->run_epilogue(tall, k, a, b, sums, row->nr, how & 32, &ends);
    row->run(tall, k, a, k, b, sums, row->nr, how & 32);
    ends.c = expected, hone_dwconv_nhwc_list[0].run(&ends);
    if (memcmp(c, want, sizeof *c * (size_t)m * WIDE))
        fail_msg("%s: %d rows, k %d, ends %u differ", row->name, (int)m, (int)k, how);
    free(a), free(b), free(sums), free(bias), free(residual), free(c), free(want);
}
static void test_half_finish(void **state) {
    (void)state;
    for (const hone_gemm_half *const *list = hone_gemm_half_list; *list; list++)
        for (int64_t m = 1; !((*list)->cpu & ~hone_cpu()) && (*list)->run_epilogue && m < 34; m++)
            for (unsigned how = 0; how < 64; how++)
                half_finish_case(*list, m, (*list)->deep * (1 + (int64_t)(random_bits() % 9)), how);
}
/* Every number that a half can hold, those between two of them, and what lies next to these: as the
   definition rounds. */
static void test_narrow_half(void **state) {
    (void)state;
    enum { EACH = 5, CODES = 1 << 16 };
    float *x = malloc(sizeof *x * EACH * CODES);
    uint16_t *y = malloc(sizeof *y * (EACH * CODES + 1)), *want = malloc(sizeof *want * EACH * CODES);
    hone_dtype made = HONE_DTYPE_NONE; /* whose numbers these are: rows of a dtype stand together */
    assert_true(x && y && want);
    for (const hone_gemm_half *const *list = hone_gemm_half_list; *list; list++) {
        const hone_gemm_half *row = *list;
        if (row->cpu & ~hone_cpu()) continue;
        for (uint32_t code = 0; made != row->dtype && code < CODES; code++) {
            const uint16_t two[] = {(uint16_t)code, (uint16_t)(code + 1)};
            const float here = hone_dtype_load(row->dtype, two).f32,
                        next = hone_dtype_load(row->dtype, two + 1).f32;
            const float middle = isfinite(next) ? here + (next - here) / 2 : here * (1 + 0x1p-12f);
            const float all[EACH] = {here, middle, nextafterf(middle, -INFINITY),
                                     nextafterf(middle, INFINITY), here * 3e5f};
            memcpy(x + code * EACH, all, sizeof all);
            hone_dtype_store_n(row->dtype, want + code * EACH, HONE_F32, all, EACH, false);
        }
        made = row->dtype;
        for (int64_t n = EACH * CODES, from = 0; from < EACH * CODES; from += n) {
            n = from < 3000 ? from / 40 : EACH * CODES - from; /* few at a time, and many */
            if (!n) n = 1;
            y[from + n] = 4321;
            row->narrow(x + from, y + from, n);
            assert_int_equal(y[from + n], 4321);
        }
        for (uint32_t i = 0; i < EACH * CODES; i++) {
            /* not normal: 0 will do */
            if (y[i] == want[i] || (fabsf(x[i]) < FLT_MIN && !(y[i] & 0x7fff))) continue;
            fail_msg("%s: %a became %04x, not %04x", row->name, (double)x[i], y[i], want[i]);
        }
    }
    free(x), free(y), free(want);
}

/* 8 bits: exact, whatever the bytes are; rows of c that are not asked for stay, and nothing past the panels
   is read. */
static void gemm_i8_case(const hone_gemm_i8 *row, int m, int64_t groups, ptrdiff_t pad,
                         int some /* columns; 0: all */) {
    const int mr = row->mr, nr = row->nr, deep = row->deep;
    const ptrdiff_t stride = nr + pad;
    int8_t *a = malloc((size_t)(groups * 4 * mr) + 1);
    uint8_t *b = malloc((size_t)(groups * 4 * nr) + 1);
    int32_t *c = malloc(sizeof *c * (size_t)((mr + 2) * stride));
    assert_true(a && b && c);
    for (int64_t i = 0; i < groups * 4 * mr; i++)
        a[i] = random_bits() % 4 ? (int8_t)random_bits() : random_bits() % 2 ? -128 : 127;
    for (int64_t i = 0; i < groups * 4 * nr; i++)
        b[i] = random_bits() % 4 ? (uint8_t)random_bits() : random_bits() % 2 ? 0x80 : 0xff;
    for (ptrdiff_t i = 0; i < (mr + 2) * stride; i++) c[i] = 1234567;
    if (row->begin) row->begin(groups * 4);
    if (some) row->run_edge(m, groups, a, b, some, c + stride, stride);
    else row->run(m, groups, a, b, c + stride, stride);
    if (row->end) row->end();
    for (ptrdiff_t at = 0; at < (mr + 2) * stride; at++) {
        const ptrdiff_t i = at / stride - 1, j = at % stride;
        int32_t want = 1234567;
        if (i >= 0 && i < m && j < nr) {
            want = 0;
            for (int64_t k = 0; k < groups * 4; k++) {
                const uint8_t v = b[(k / row->group * nr + j) * row->group + k % row->group];
                want += a[(k / deep * mr + i) * deep + k % deep] * (row->b_signed ? (int8_t)v : v);
            }
        }
        const bool spare = some && j >= some && j < nr && i >= 0 && i < m; /* may be rounded up */
        if (c[at] != want && !(spare && c[at] == 1234567))
            fail_msg("%s: m %d, row %d, column %d: %d, not %d", row->name, m, (int)i, (int)j, c[at], want);
    }
    free(a), free(b), free(c);
}
static void test_gemm_i8(void **state) {
    (void)state;
    const hone_gemm_i8 *const lists[] = {hone_gemm_i8_list, hone_gemm_i8_indirect_list};
    for (int k = 0; k < 2; k++)
        for (const hone_gemm_i8 *row = lists[k]; row->name; row++) {
            if (row->cpu & ~hone_cpu()) continue;
            for (int m = 1; m <= row->mr; m++)
                for (int64_t groups = 0; groups < 70; groups = groups * 3 + row->deep / 4)
                    for (ptrdiff_t pad = 0; pad < 8; pad += 3) {
                        gemm_i8_case(row, m, groups, pad, 0);
                        for (int n = 1; row->run_edge && n < row->nr; n += 2)
                            gemm_i8_case(row, m, groups, pad, n);
                    }
        }
}
static void test_interleave4(void **state) {
    (void)state;
    for (int64_t n = 0; n < 70; n++) {
        uint8_t *rows = malloc((size_t)(4 * n) + 1), *to = malloc((size_t)(4 * n) + 1);
        assert_true(rows && to);
        for (int64_t i = 0; i < 4 * n; i++) rows[i] = (uint8_t)random_bits();
        to[4 * n] = 77;
        const uint8_t flip = n % 2 ? 0x80 : 0, *row[4] = {rows, rows + n, rows + 2 * n, rows + 3 * n};
        hone_interleave4(row, n, flip, to);
        for (int64_t i = 0; i < n; i++)
            for (int q = 0; q < 4; q++) assert_int_equal(to[4 * i + q], row[q][i] ^ flip);
        assert_int_equal(to[4 * n], 77);
        free(rows), free(to);
    }
}

/* in double, and how large the numbers are that it is rounded from */
static double activated(int which, double x, double alpha, double beta, double *magnitude) {
    const double hard = alpha * x + beta, clamped = hard >= 1 ? 1 : hard <= 0 ? 0 : hard;
    double y = 0;
    switch ((hone_activation)which) {
    case HONE_ACTIVATE_sigmoid: y = 1 / (1 + exp(-x)); break;
    case HONE_ACTIVATE_tanh: y = tanh(x); break;
    case HONE_ACTIVATE_silu: y = x * (1 / (1 + exp(-alpha * x))); break;
    case HONE_ACTIVATE_hard_sigmoid: return *magnitude = 1, isnan(x) ? x : clamped;
    case HONE_ACTIVATE_hard_swish: return *magnitude = fabs(x), x * clamped;
    case HONE_ACTIVATE_gelu: return *magnitude = fabs(x), 0.5 * x * (1 + erf(x * M_SQRT1_2));
    case HONE_ACTIVATE_gelu_tanh: y = x * (1 / (1 + exp(-x * (alpha + beta * x * x)))); break;
    /* beyond the largest: infinite */
    case HONE_ACTIVATE_leaky: y = x < 0 ? (double)(float)(alpha * x) : x; break;
    case HONE_ACTIVATE_COUNT: break;
    }
    *magnitude = fabs(y);
    return y;
}
static void test_activate(void **state) {
    (void)state;
    static const float special[] = {0,     -0.0f,  INFINITY, -INFINITY, NAN,   1e-42f, -1e-42f, FLT_MIN,
                                    1e30f, -1e30f, FLT_MAX,  -FLT_MAX,  87.2f, -87.2f, 87.4f,   -87.4f,
                                    88.8f, -88.8f, 104,      -104,      3,     -3,     1,       -1};
    static const char *const name[] = {
#define NAME(name) #name,
        HONE_ACTIVATIONS(NAME)
#undef NAME
    };
    enum { ROWS = 3, MOST = 70, GAP = 5 };
    for (const hone_activate *row = hone_activate_list; row->name; row++) {
        if (row->cpu & ~hone_cpu()) continue;
        for (int which = 0; which < HONE_ACTIVATE_COUNT; which++)
            for (int n = 1; n <= MOST; n++) {
                const bool tanh_form = which == HONE_ACTIVATE_gelu_tanh,
                           hard = which == HONE_ACTIVATE_hard_swish || which == HONE_ACTIVATE_hard_sigmoid;
                const float alpha = tanh_form ? 1.5957691f
                                    : hard    ? (n % 2 ? 1.0f / 6 : 0.2f)
                                    : n % 3   ? 1
                                              : 1.702f,
                            beta = tanh_form ? 0.07135482f : 0.5f;
                float *x[ROWS], *y[ROWS];
                for (int i = 0; i < ROWS; i++) {
                    x[i] = exact_floats((size_t)(n + GAP)), y[i] = exact_floats((size_t)(n + GAP));
                    for (int j = 0; j < n; j++)
                        x[i][GAP + j] = n % 4 ? random_value() * (n % 5 ? 6 : 90)
                                              : special[(i * n + j) % (int)COUNT(special)];
                    memcpy(y[i], x[i], sizeof(float) * (size_t)(n + GAP));
                }
                for (int j = 0; n % 4 == 0 && j < n; j++) /* a NaN with bits of its own */
                    if (isnan(x[1][GAP + j]))
                        memcpy(&x[1][GAP + j], &(uint32_t){0x7fc00001u + (uint32_t)n}, 4),
                            y[1][GAP + j] = x[1][GAP + j];
                row->run[which](y, GAP, ROWS, n, alpha, beta);
                for (int i = 0; i < ROWS; i++) {
                    for (int j = 0; j < GAP; j++) assert_true(y[i][j] == x[i][j]);
                    for (int j = GAP; j < GAP + n; j++) {
                        double magnitude,
                            want = activated(which, (double)x[i][j], (double)alpha, (double)beta, &magnitude);
                        /* a sigmoid too small to be normal may be 0; its argument is rounded, which e^ makes
                           as much of as the argument is large */
                        const double arg = !(tanh_form || (which == HONE_ACTIVATE_silu && alpha != 1)) ||
                                                   fabs((double)x[i][j]) > 200
                                               ? 0
                                               : fabs((double)x[i][j]) * (tanh_form ? 30 : 1),
                                     bound = (4 + arg) * FLT_EPSILON * magnitude +
                                             FLT_MIN * fmax(1, 2 * fabs((double)x[i][j]));
                        const float got = y[i][j];
                        if (isnan(want)   ? !isnan(got)
                            : isinf(want) ? got != (float)want
                                          : !(fabs((double)got - want) <= bound))
                            fail_msg("%s, %s of %.9g: %.9g where it is %.9g", row->name, name[which],
                                     (double)x[i][j], (double)got, want);
                    }
                    free(x[i]), free(y[i]);
                }
            }
    }
}

static void test_floor(void **state) {
    (void)state;
    enum { ROWS = 2, MOST = 37, GAP = 3 };
    for (const hone_activate *row = hone_activate_list; row->name; row++)
        for (int n = 1; n <= MOST && !(row->cpu & ~hone_cpu()); n++) {
            float *x[ROWS], *y[ROWS];
            for (int i = 0; i < ROWS; i++) {
                x[i] = exact_floats((size_t)(n + GAP)), y[i] = exact_floats((size_t)(n + GAP));
                x[i][GAP] = n % 3 ? NAN : -INFINITY;
                memcpy(y[i], x[i], sizeof(float) * (size_t)(n + GAP));
            }
            row->floor(y, GAP, ROWS, n, 1, -0.25f, NULL, 0);
            for (int i = 0; i < ROWS; free(x[i]), free(y[i]), i++)
                for (int j = 0; j < n + GAP; j++) {
                    const float want = j >= GAP && x[i][j] < -0.25f ? -0.25f : x[i][j];
                    if (isnan(want) ? !isnan(y[i][j]) : y[i][j] != want)
                        fail_msg("%s: floor of %.9g is %.9g", row->name, (double)x[i][j], (double)y[i][j]);
                }
        }
}
static void test_then(void **state) {
    (void)state;
    enum { ROWS = 3, MOST = 70, GAP = 5 };
    for (const hone_activate *row = hone_activate_list; row->name; row++) {
        if (row->cpu & ~hone_cpu()) continue;
        for (int n = 1; n <= MOST; n++) {
            float *x[ROWS], *y[ROWS], *more = exact_floats((size_t)(ROWS * n));
            const float times = n % 3 ? random_value() : 1, plus = n % 5 ? random_value() : -0.0f;
            for (int i = 0; i < ROWS; i++) {
                x[i] = exact_floats((size_t)(n + GAP)), y[i] = exact_floats((size_t)(n + GAP));
                x[i][GAP] = n % 7 ? x[i][GAP] : NAN;
                memcpy(y[i], x[i], sizeof(float) * (size_t)(n + GAP));
            }
            row->then(y, GAP, ROWS, n, times, plus, n % 2 ? more : NULL, n);
            for (int i = 0; i < ROWS; i++) {
                for (int j = 0; j < GAP; j++) assert_true(y[i][j] == x[i][j]);
                for (int j = 0; j < n; j++) {
                    const double own = (double)x[i][GAP + j] * (double)times,
                                 other = n % 2 ? (double)more[i * n + j] : 0;
                    check(row->name, y[i][GAP + j], own + (double)plus + other,
                          fabs(own) + fabs((double)plus) + fabs(other), 3);
                }
                free(x[i]), free(y[i]);
            }
            free(more);
        }
    }
}

/* Ends of recurrent steps against double. Gates may be anything, the state before is finite. */
static double logistic(double x) { return 1 / (1 + exp(-x)); }
static void is_near(const char *name, float got, double want, double bound) {
    if (isnan(want) ? !isnan(got) : !(fabs((double)got - want) <= bound))
        fail_msg("%s: %.9g where it is %.9g", name, (double)got, want);
}
static void test_cell(void **state) {
    (void)state;
    static const float special[] = {0,     -0.0f,  INFINITY, -INFINITY, NAN,    1e-42f,
                                    1e30f, -1e30f, 88.8f,    -88.8f,    0.624f, -0.626f};
    enum { GATES = 4, MOST = 70 };
    for (const hone_cell *row = hone_cell_list; row->name; row++) {
        if (row->cpu & ~hone_cpu()) continue;
        for (int n = 1; n <= MOST; n++) {
            float *g[GATES], *before = exact_floats((size_t)n), *c = exact_floats((size_t)n),
                             *h = exact_floats((size_t)n);
            for (int k = 0; k < GATES; k++) g[k] = exact_floats((size_t)n);
            for (int j = 0; j < n; j++) {
                for (int k = 0; k < GATES; k++)
                    g[k][j] = n % 4 || (j + k) % 3 ? random_value() * (n % 5 ? 4 : 40)
                                                   : special[(j + 5 * k + n) % (int)COUNT(special)];
                before[j] = random_value() * 2;
            }
            memcpy(c, before, sizeof *c * (size_t)n);
            /* where the state was, or beside it */
            row->lstm(n, g[0], g[1], g[2], g[3], n % 2 ? before : c, c, h);
            for (int j = 0; j < n; j++) {
                const double kept = logistic((double)g[2][j]) * (double)before[j],
                             put = logistic((double)g[0][j]) * tanh((double)g[3][j]);
                is_near(row->name, c[j], kept + put, 16 * FLT_EPSILON * (fabs(kept) + fabs(put)) + FLT_MIN);
                const double want = logistic((double)g[1][j]) * tanh((double)c[j]);
                is_near(row->name, h[j], want, 16 * FLT_EPSILON * fabs(want) + FLT_MIN);
            }
            for (int after = 0; after < 2; after++) {
                row->gru(n, g[0], after ? NULL : g[1], after ? NULL : g[2], g[3], before, h);
                for (int j = 0; j < n; j++) {
                    const double z = logistic((double)g[0][j]),
                                 y = (after ? 1 : logistic((double)g[1][j])) * (double)g[3][j],
                                 x = after ? 0 : (double)g[2][j], u = x + y,
                                 slack = fmin(1, 8 * FLT_EPSILON * (fabs(x) + fabs(y)));
                    is_near(row->name, h[j], (1 - z) * tanh(u) + z * (double)before[j],
                            slack + 16 * FLT_EPSILON * (1 + fabs((double)before[j])));
                }
            }
            row->reset(n, g[1], before, h);
            for (int j = 0; j < n; j++) {
                const double want = logistic((double)g[1][j]) * (double)before[j];
                is_near(row->name, h[j], want, 8 * FLT_EPSILON * fabs(want) + FLT_MIN * 4);
            }
            for (int k = 0; k < GATES; k++) free(g[k]);
            free(before), free(c), free(h);
        }
    }
}

static void test_best(void **state) {
    (void)state;
    const hone_gemm_f32 *gemm = hone_gemm_f32_best();
    const hone_dwconv_nchw *depthwise = hone_dwconv_nchw_best();
    assert_true((gemm->cpu & ~hone_cpu()) == 0 && (depthwise->cpu & ~hone_cpu()) == 0);
    /* nothing faster was passed over, and something always runs */
    bool after = false;
    for (const hone_gemm_f32 *const *row = hone_gemm_f32_list; *row; after |= *row == gemm, row++)
        assert_true(!after || ((*row)->cpu & ~hone_cpu()));
    for (const hone_dwconv_nchw *row = depthwise + 1; row->name; row++) assert_true(row->cpu & ~hone_cpu());
    assert_int_equal(hone_gemm_f32_list[0]->cpu, 0);
    assert_int_equal(hone_dwconv_nchw_list[0].cpu, 0);
}

int bench_kernels(void); /* bench/bench_kernels.c */
int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "--bench")) return bench_kernels();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best),          cmocka_unit_test(test_gemm_panels),
        cmocka_unit_test(test_gemm_ahead),    cmocka_unit_test(test_gemm_blocks),
        cmocka_unit_test(test_gemm_f32),      cmocka_unit_test(test_gemm_half),
        cmocka_unit_test(test_half_window),   cmocka_unit_test(test_half_finish),
        cmocka_unit_test(test_half_few_rows), cmocka_unit_test(test_half_short),
        cmocka_unit_test(test_narrow_half),   cmocka_unit_test(test_activate),
        cmocka_unit_test(test_then),          cmocka_unit_test(test_floor),
        cmocka_unit_test(test_cell),          cmocka_unit_test(test_gemm_i8),
        cmocka_unit_test(test_interleave4),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
