/* SPDX-License-Identifier: Apache-2.0
   bench_kernels: GFLOP/s of every kernel row that this CPU (as masked) can run, beside the peak of
   multiply-adds at the row's level.

   The peak is measured, not looked up (run/peak.h); the best of all short runs counts. Kernels are shown as
   the median of short runs, with slowest and fastest; on a busy machine the fastest says what the kernel can
   do. One thread. Also `test_kernels --bench`. */
#include "base/thread.h"
#include "kernels/gemm.h"
#include "kernels/gemm_half.h"
#include "kernels/dwconv_nhwc_rows.h"
#include "kernels/winograd.h"
#include "run/peak.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
enum { RUNS = 25 };

/* ---- peak ---- */

static struct {
    uint32_t cpu; /* as in the kernels' rows */
    double best;
} peaks[] = {
    {0, 0},
#if defined(__x86_64__)
    {HONE_CPU_AVX2, 0},
    {HONE_CPU_AVX512, 0},
#endif
};

/* Measures once more and gives the best GFLOP/s seen so far. Called beside every kernel, so that both see the
   same weather. */
static double peak_of(uint32_t cpu) {
    for (size_t i = 0; i < COUNT(peaks); i++) {
        if (peaks[i].cpu != cpu) continue;
        for (int run = 0; run < 3; run++) {
            const double gflops = hone_peak_round(cpu) * 1e-9;
            if (gflops > peaks[i].best) peaks[i].best = gflops;
        }
        return peaks[i].best;
    }
    return 0;
}

/* ---- one line of figures ---- */

typedef struct {
    double median, low, high; /* of GFLOP/s */
} figure;

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* work(arg) does `flops`; it is repeated until a run is long enough for the clock */
static figure measure(void (*work)(void *), void *arg, double flops) {
    double sample[RUNS];
    uint64_t start = hone_clock_ns();
    work(arg);
    const uint64_t once = hone_clock_ns() - start + 1;
    const int repeats = (int)(once < 200000 ? 200000 / once + 1 : 1);
    for (int run = 0; run < RUNS; run++) {
        start = hone_clock_ns();
        for (int i = 0; i < repeats; i++) work(arg);
        sample[run] = flops * repeats / (double)(hone_clock_ns() - start);
    }
    qsort(sample, RUNS, sizeof *sample, ascending);
    return (figure){sample[RUNS / 2], sample[0], sample[RUNS - 1]};
}

static void show(const char *name, const char *what, figure f, double top) {
    printf("%-30s %-32s %7.1f  (%6.1f … %6.1f)  %3.0f %%", name, what, f.median, f.low, f.high,
           100 * f.median / top);
}

static float *floats(size_t n) {
    float *p = aligned_alloc(64, (n * sizeof *p + 63) / 64 * 64);
    if (!p) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    for (size_t i = 0; i < n; i++) p[i] = (float)(i % 17) * 0.1f - 0.8f;
    return p;
}

/* ---- GEMM: a few rows of A against a row of panels of B ---- */

typedef struct {
    const hone_gemm_f32 *row;
    int vectors, m;
    int64_t k, panels;
    const float *a, *b;
    float *c;
} gemm_work;

static void gemm_run(void *arg) {
    const gemm_work *w = arg;
    const int wide = w->vectors * w->row->vector;
    const float *a[HONE_GEMM_ROWS];
    float *c[HONE_GEMM_ROWS];
    for (int i = 0; i < w->m; i++) a[i] = w->a + i * w->k;
    for (int64_t p = 0; p < w->panels; p++) {
        for (int i = 0; i < w->m; i++) c[i] = w->c + i * w->panels * wide + p * wide;
        const hone_gemm_args part = {.m = w->m,
                                     .n = wide,
                                     .taps = 1,
                                     .k = w->k,
                                     .a = a,
                                     .b = w->b + p * w->k * wide,
                                     .b_step = wide,
                                     .c = c,
                                     .small_m = w->m <= HONE_GEMM_SMALL_M,
                                     .more = true,
                                     .sums = (const float *const *)c};
        w->row->run[w->vectors - 1](&part);
    }
}

static void gemm(const hone_gemm_f32 *row, int vectors) {
    const int64_t k = 256;
    const int mr = row->direct_rows[vectors - 1], wide = vectors * row->vector; /* rows as they lie */
    /* bytes of B: in L1, in L2, in memory; rows */
    const struct {
        const char *where;
        int64_t bytes;
        int m;
    } cases[] = {{"B in L1", 16 << 10, mr},
                 {"B in L2", 256 << 10, mr},
                 {"B in L2, half", 256 << 10, mr / 2},
                 {"B in L2", 256 << 10, 1},
                 {"B in memory", 192 << 20, 1}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const int64_t panel = k * wide * (int64_t)sizeof(float),
                      panels = cases[i].bytes / panel ? cases[i].bytes / panel : 1;
        float *a = floats((size_t)(k * mr)), *b = floats((size_t)(panels * k * wide));
        float *c = floats((size_t)(mr * panels * wide));
        gemm_work w = {row, vectors, cases[i].m, k, panels, a, b, c};
        const double flops = 2.0 * w.m * (double)k * wide * (double)panels;
        char what[64];
        snprintf(what, sizeof what, "%dx%d, k %d, %s", w.m, wide, (int)k, cases[i].where);
        const figure f = measure(gemm_run, &w, flops);
        show(row->name, what, f, peak_of(row->cpu));
        printf(w.m == 1 ? "  reads %.1f GB/s\n" : "\n", f.median / 2 * (double)sizeof(float));
        free(a), free(b), free(c);
    }
}

/* Many rows as they lie, all in L1 */
enum { LIE_ROWS = 40, LIE_K = 64 };
static void lie_run(void *arg) {
    const gemm_work *w = arg;
    const float *a[LIE_ROWS];
    float *c[LIE_ROWS];
    for (int i = 0; i < LIE_ROWS; i++)
        a[i] = w->a + i * w->k, c[i] = w->c + i * w->panels * w->vectors * w->row->vector;
    const int wide = w->vectors * w->row->vector;
    const hone_gemm_args part = {.m = LIE_ROWS,
                                 .n = wide,
                                 .taps = 1,
                                 .k = w->k,
                                 .a = a,
                                 .b = w->b,
                                 .b_step = wide,
                                 .c = c,
                                 .m_block = w->row->direct_rows[w->vectors - 1],
                                 .panels = (int)w->panels,
                                 .b_apart = w->k * wide};
    w->row->run[w->vectors - 1](&part);
}
static void lies(const hone_gemm_f32 *row, int vectors) {
    const int wide = vectors * row->vector;
    const int64_t panels = 48 / wide;
    float *a = floats(LIE_ROWS * LIE_K), *b = floats((size_t)(panels * LIE_K * wide)),
          *c = floats((size_t)(LIE_ROWS * panels * wide));
    gemm_work w = {row, vectors, LIE_ROWS, LIE_K, panels, a, b, c};
    char what[64];
    snprintf(what, sizeof what, "%dx%d of %d rows, k %d, lie", row->direct_rows[vectors - 1], wide, LIE_ROWS,
             LIE_K);
    show(row->name, what, measure(lie_run, &w, 2.0 * LIE_ROWS * LIE_K * wide * (double)panels),
         peak_of(row->cpu));
    printf("\n");
    free(a), free(b), free(c);
}

/* ---- the same on halves and on bytes, beside f32: a block of rows against a panel of B in L1 ---- */

typedef struct {
    const hone_gemm_half *half;
    const hone_gemm_i8 *bytes;
    int64_t m, k;
    const void *a, *b;
    float *c;
} narrow_work;

static void narrow_run(void *arg) {
    const narrow_work *w = arg;
    if (w->half) {
        if (w->half->begin) w->half->begin(w->m, w->k);
        w->half->run(w->m, w->k, w->a, w->k, w->b, w->c, w->half->nr, true);
        if (w->half->end) w->half->end();
        return;
    }
    if (w->bytes->begin) w->bytes->begin(w->k);
    for (int64_t i = 0; i < w->m; i += w->bytes->mr)
        w->bytes->run(w->bytes->mr, w->k / 4, (const int8_t *)w->a + i * w->k, w->b,
                      (int32_t *)(void *)w->c + i * w->bytes->nr, w->bytes->nr);
    if (w->bytes->end) w->bytes->end();
}

static void narrow(const char *name, narrow_work w, int nr, uint32_t cpu) {
    w.k = 512;
    float *a = floats((size_t)(w.m * w.k)), *b = floats((size_t)(w.k * nr)), *c = floats((size_t)(w.m * nr));
    memset(a, 0, sizeof *a * (size_t)(w.m * w.k)), memset(b, 0, sizeof *b * (size_t)(w.k * nr));
    w.a = a, w.b = b, w.c = c;
    char what[64];
    snprintf(what, sizeof what, "%dx%d, k %d, B in L1", (int)w.m, nr, (int)w.k);
    show(name, what, measure(narrow_run, &w, 2.0 * (double)(w.m * w.k * nr)), peak_of(cpu));
    printf(" of f32\n");
    free(a), free(b), free(c);
}

/* ---- depthwise: planes of the usual networks, enough of them to lie in L2 ---- */

typedef struct {
    const hone_dwconv_nchw *row;
    hone_dwconv_nchw_shape s;
    int64_t planes;
    const float *x, *k;
    float *y;
} depthwise_work;

static void depthwise_run(void *arg) {
    const depthwise_work *w = arg;
    for (int64_t p = 0; p < w->planes; p++)
        w->row->run(&w->s, w->x + p * w->s.h * w->s.w, w->k + p * w->s.kh * w->s.kw,
                    w->y + p * w->s.oh * w->s.ow, 0, w->s.oh);
}

static void depthwise(const hone_dwconv_nchw *row) {
    static const struct {
        int64_t h, w, kh, kw, stride;
    } cases[] = {{112, 112, 3, 3, 1}, {112, 112, 3, 3, 2}, {56, 56, 3, 3, 1}, {56, 56, 3, 3, 2},
                 {28, 28, 3, 3, 1},   {14, 14, 3, 3, 1},   {14, 14, 3, 3, 2}, {7, 7, 3, 3, 1},
                 {56, 56, 5, 5, 2},   {28, 28, 5, 5, 1},   {14, 14, 5, 5, 1}, {7, 7, 5, 5, 1},
                 {56, 56, 7, 7, 1},   {1, 1000, 1, 9, 1}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        hone_dwconv_nchw_shape s = {.h = cases[i].h,
                                    .w = cases[i].w,
                                    .kh = cases[i].kh,
                                    .kw = cases[i].kw,
                                    .sh = cases[i].stride,
                                    .sw = cases[i].stride,
                                    .dh = 1,
                                    .dw = 1,
                                    .ph = cases[i].kh / 2,
                                    .pw = cases[i].kw / 2,
                                    .xs = cases[i].w};
        s.oh = (s.h + 2 * s.ph - s.kh) / s.sh + 1, s.ow = (s.w + 2 * s.pw - s.kw) / s.sw + 1, s.ys = s.ow;
        const int64_t planes = (256 << 10) / (s.h * s.w * (int64_t)sizeof(float)) + 1;
        float *x = floats((size_t)(planes * s.h * s.w)), *k = floats((size_t)(planes * s.kh * s.kw));
        float *y = floats((size_t)(planes * s.oh * s.ow));
        depthwise_work w = {row, s, planes, x, k, y};
        const double flops = 2.0 * (double)(s.kh * s.kw * s.oh * s.ow * planes);
        char what[64];
        snprintf(what, sizeof what, "%dx%d, kernel %dx%d, stride %d", (int)s.h, (int)s.w, (int)s.kh,
                 (int)s.kw, (int)s.sh);
        const figure f = measure(depthwise_run, &w, flops);
        show(row->name, what, f, peak_of(row->cpu));
        printf("  %.2f us a plane\n", flops / (double)planes / f.median * 1e-3);
        free(x), free(k), free(y);
    }
}

/* ---- depthwise, channels last: a line of results ---- */

typedef struct {
    const hone_dwconv_nhwc_rows *row;
    hone_dwconv_rows_args part;
} lines_work;
static void lines_run(void *arg) {
    const lines_work *w = arg;
    w->row->run(&w->part);
}
static void lines(const hone_dwconv_nhwc_rows *row) {
    static const struct {
        int width, channels, side, step;
    } cases[] = {{112, 32, 3, 1}, {112, 96, 3, 2}, {56, 144, 3, 1}, {28, 192, 3, 1}, {14, 384, 3, 1},
                 {7, 960, 3, 1},  {28, 240, 5, 1}, {56, 96, 7, 1},  {28, 64, 3, 1},  {28, 64, 3, 2},
                 {14, 64, 3, 1},  {7, 64, 3, 1},   {14, 64, 5, 1},  {14, 64, 5, 2}}; /* the last six in L1 */
    for (size_t i = 0; i < COUNT(cases); i++) {
        const int n = cases[i].channels, side = cases[i].side, step = cases[i].step,
                  results = cases[i].width / step;
        const size_t line = (size_t)(cases[i].width * n);
        float *x = floats(line * (size_t)(side + step)), *k = floats((size_t)(side * side * n)),
              *y = floats((size_t)(2 * results * n)), *zeros = calloc((size_t)n, sizeof *zeros);
        const float *at[9], *weight[8];
        for (int r = 0; r < side; r++) weight[r] = k + r * side * n;
        for (int r = 0; r < side + step; r++) at[r] = x + (size_t)r * line - side / 2 * n;
        lines_work w = {row,
                        {.lines = 2,
                         .down = step,
                         .to_down = results * n,
                         .results = results,
                         .channels = n,
                         .rows = side,
                         .across = side,
                         .stride = step,
                         .dilation = 1,
                         .lo = side / 2,
                         .hi = side / 2 + cases[i].width,
                         .row = at,
                         .weight = weight,
                         .pitch = n,
                         .weight_step = n,
                         .zeros = zeros,
                         .to = y,
                         .to_pitch = n}};
        char what[64];
        snprintf(what, sizeof what, "%d x %d channels, %dx%d, stride %d", cases[i].width, n, side, side,
                 step);
        show(row->name, what, measure(lines_run, &w, 2 * 2.0 * side * side * results * n), peak_of(row->cpu));
        printf("\n");
        free(x), free(k), free(y), free(zeros);
    }
}

/* ---- convolutions by tiles: to places and back, in L1; and filters to theirs ---- */

enum { WINOGRAD_CHANNELS = 32, WINOGRAD_APART = 272, WINOGRAD_COLUMNS = 12 };
typedef struct {
    const hone_winograd_f32 *row;
    int size;
    const float *pixel[HONE_WINOGRAD_POINTS];
    float *v, *result[HONE_WINOGRAD_POINTS];
    hone_winograd_g g;
    float taps[9][HONE_WINOGRAD_FILTERS];
} winograd_work;
static void winograd_in(void *arg) {
    const winograd_work *w = arg;
    w->row->in[w->size](w->pixel, WINOGRAD_CHANNELS, w->v, WINOGRAD_APART, (hone_winograd_less){0, 0});
}
static void winograd_out(void *arg) {
    const winograd_work *w = arg;
    w->row->out[w->size][3 - HONE_WINOGRAD_LEAST](&(hone_winograd_end){
        .m = w->v, .apart = WINOGRAD_APART, .n = WINOGRAD_CHANNELS, .y = w->result, .clamp = true, .hi = 6});
}
static void winograd_filters(void *arg) {
    const winograd_work *w = arg;
    hone_winograd_filters(&w->g, (const float(*)[HONE_WINOGRAD_FILTERS])w->taps, WINOGRAD_COLUMNS, w->v,
                          WINOGRAD_APART);
}
static void winograd(const hone_winograd_f32 *row) {
    float *pixels = floats((size_t)HONE_WINOGRAD_POINTS * WINOGRAD_CHANNELS),
          *v = floats((size_t)HONE_WINOGRAD_POINTS * WINOGRAD_APART);
    for (int size = 0; size < HONE_WINOGRAD_SIZES; size++) {
        winograd_work w = {.row = row, .size = size, .v = v, .g = hone_winograd_g_of(size, false, 3)};
        for (int k = 0; k < HONE_WINOGRAD_POINTS; k++)
            w.pixel[k] = w.result[k] = pixels + k * WINOGRAD_CHANNELS;
        /* a thousandth of a "GFLOP/s" is a vector, or a filter, a microsecond */
        const figure in = measure(winograd_in, &w, 1e3 * WINOGRAD_CHANNELS / 4),
                     out = measure(winograd_out, &w, 1e3 * WINOGRAD_CHANNELS / 4),
                     of = measure(winograd_filters, &w, 1e3 * WINOGRAD_COLUMNS);
        printf("%-30s %dx%d places: four channels there %.1f ns, back %.1f; a filter %.1f\n", row->name,
               hone_winograd_tall(size), hone_winograd_edge(size), 1e3 / in.median, 1e3 / out.median,
               1e3 / of.median);
    }
    free(pixels), free(v);
}

/* Rows that come from beyond L2, to where they stay in L1 or L2 */
enum { TURNED_AT_ONCE = 64, TURNED_FLOATS = 800000 };
typedef struct {
    const hone_gemm_f32 *row;
    const float **a;
    int64_t m, k;
    float *to;
} turn_work;
static void turn(void *arg) {
    const turn_work *w = arg;
    for (int64_t i = 0; i < w->m; i += TURNED_AT_ONCE)
        w->row->pack_a(
            &(hone_gemm_args){.m = TURNED_AT_ONCE, .m_block = 8, .taps = 1, .k = w->k, .a = w->a + i}, w->to);
}
static void turns(const hone_gemm_f32 *row) {
    for (int64_t k = 32; k <= 256 && row->pack_a; k *= 2) {
        turn_work w = {.row = row,
                       .m = TURNED_FLOATS / k / TURNED_AT_ONCE * TURNED_AT_ONCE,
                       .k = k,
                       .to = floats((size_t)(TURNED_AT_ONCE * k))};
        float *rows = floats((size_t)(w.m * k));
        w.a = malloc(sizeof *w.a * (size_t)w.m);
        if (!w.a) abort();
        for (int64_t i = 0; i < w.m; i++) w.a[i] = rows + i * k;
        const figure f = measure(turn, &w, (double)(w.m * k) * sizeof(float));
        printf("%-30s rows of %d turned: %.1f GB/s (%.1f … %.1f)\n", row->name, (int)k, f.median, f.low,
               f.high);
        free(rows), free(w.a), free(w.to);
    }
}

int bench_kernels(void);
int bench_kernels(void) {
    for (const hone_gemm_f32 *const *row = hone_gemm_f32_list; *row; row++)
        if (((*row)->cpu & ~hone_cpu()) == 0) peak_of((*row)->cpu);
    printf("%-30s %-32s GFLOP/s  (slowest … fastest)  of peak\n", "kernel", "work");
    for (const hone_gemm_f32 *const *row = hone_gemm_f32_list; *row; row++)
        for (int v = 1; v <= (*row)->widths && ((*row)->cpu & ~hone_cpu()) == 0; v++) gemm(*row, v);
    for (const hone_gemm_f32 *const *row = hone_gemm_f32_list; *row; row++)
        if (((*row)->cpu & ~hone_cpu()) == 0) {
            turns(*row);
            for (int v = 1; v <= (*row)->widths && (*row)->pack_a; v++) lies(*row, v);
        }
    const uint32_t f32 = hone_gemm_f32_best()->cpu;
    for (const hone_gemm_half *const *row = hone_gemm_half_list; *row; row++)
        if (((*row)->cpu & ~hone_cpu()) == 0)
            narrow((*row)->name, (narrow_work){.half = *row, .m = 96}, (*row)->nr, f32);
    for (const hone_gemm_i8 *row = hone_gemm_i8_list; row->name; row++)
        if ((row->cpu & ~hone_cpu()) == 0)
            narrow(row->name, (narrow_work){.bytes = row, .m = (96 + row->mr - 1) / row->mr * row->mr},
                   row->nr, f32);
    for (const hone_dwconv_nchw *row = hone_dwconv_nchw_list; row->name; row++)
        if ((row->cpu & ~hone_cpu()) == 0) depthwise(row);
    for (const hone_dwconv_nhwc_rows *row = hone_dwconv_nhwc_rows_list; row->name; row++)
        if ((row->cpu & ~hone_cpu()) == 0) lines(row);
    for (const hone_winograd_f32 *row = hone_winograd_f32_list; row->name; row++)
        if ((row->cpu & ~hone_cpu()) == 0) winograd(row);
    for (size_t i = 0; i < COUNT(peaks); i++)
        if ((peaks[i].cpu & ~hone_cpu()) == 0)
            printf("peak of multiply-adds, level %zu: %.1f GFLOP/s\n", i, peaks[i].best);
    return 0;
}
#ifndef HONE_TEST
int main(void) { return bench_kernels(); }
#endif
