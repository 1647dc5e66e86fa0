/* SPDX-License-Identifier: Apache-2.0
   8 bits from first to last node: the kernels of bytes against plain loops, to the bit, and quantized
   networks whose pictures lie channels last against the definition, on every CPU level, odd sizes and zero
   points. */
#include "twin.h"

#include "kernels/epilogue.h"
#include "kernels/gemm.h"

static uint8_t *exact_bytes(size_t n) { /* so many and no more, so that one too many is seen */
    uint8_t *p = malloc(n ? n : 1);
    assert_non_null(p);
    for (size_t i = 0; i < n; i++) p[i] = (uint8_t)(draw(0, 3) ? draw(0, 255) : draw(0, 1) ? 0x80 : 0xff);
    return p;
}
/* What requantize.h says, in double and with the C library's rounding: f32 products of whole numbers, rounded
   once. */
static uint8_t plain_level(const hone_requantize *l, int32_t sum, int32_t less, float bias_scale,
                           int32_t bias) {
    const float t = (float)(int32_t)((uint32_t)sum - (uint32_t)less + (uint32_t)bias) * bias_scale;
    double q = isnan(t) ? (double)l->flip : nearbyint((double)t) + l->zero;
    q = q < 0 ? 0 : q > 255 ? 255 : q;
    return (uint8_t)((uint8_t)q ^ l->flip);
}
static float any_scale(int kind) { /* 0: small, 1: halves to be rounded, 2: large, 3: anything */
    static const float odd[] = {INFINITY, NAN, 0, -1e30f, 3e38f};
    return kind == 0   ? (float)draw(1, 1000) / 1e6f
           : kind == 1 ? 0.5f
           : kind == 2 ? (float)draw(1, 1000)
                       : odd[draw(0, 4)];
}
static void levels_case(const hone_epilogue *row, int m, int n, int kind, bool with_less) {
    const int whole = (n + HONE_REQUANTIZE_BLOCK - 1) / HONE_REQUANTIZE_BLOCK * HONE_REQUANTIZE_BLOCK,
              step = whole + 16;
    int32_t *sum = malloc(sizeof *sum * (size_t)(m * step)), *bias = calloc((size_t)whole, sizeof *bias),
            less[8];
    float *scale = calloc((size_t)whole, sizeof *scale);
    uint8_t *out[8];
    assert_true(sum && bias && scale);
    const bool is_signed = draw(0, 1);
    hone_requantize l = {bias, scale, draw(0, 255), is_signed ? 0x80 : 0, kind == 3, kind < 2, false, false};
    for (int i = 0; i < m * step; i++)
        sum[i] = kind == 2 || kind == 3 ? draw(-1000000000, 1000000000) * 2 : draw(-3000, 3000);
    for (int j = 0; j < n; j++) bias[j] = draw(-500, 500), scale[j] = any_scale(kind);
    for (int i = 0; i < m; i++) out[i] = exact_bytes((size_t)n), less[i] = with_less ? draw(-400, 400) : 0;
    if (draw(0, 1)) hone_requantize_bound(&l, n, kind < 2 ? 3000 : 2e9);
    if (kind < 2 && draw(0, 1)) l.small = false;
    row->requantize(&l, m, n, sum, step, with_less ? less : NULL, out);
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            const uint8_t want = plain_level(&l, sum[i * step + j], less[i], scale[j], bias[j]);
            if (out[i][j] != want)
                fail_msg("%s: n %d, kind %d, row %d, column %d: %d, not %d", row->name, n, kind, i, j,
                         out[i][j], want);
        }
        free(out[i]);
    }
    free(sum), free(bias), free(scale);
}
static void levels(void **state) {
    (void)state;
    for (const hone_epilogue *row = hone_epilogue_list; row->name; row++) {
        if (row->cpu & ~hone_cpu()) continue;
        for (int n = 1; n < 200; n += n < 70 ? 1 : 23)
            for (int kind = 0; kind < 4; kind++) levels_case(row, draw(1, 8), n, kind, n & 1);
    }
}
/* Floats as bytes, and read back: quotients on the middle of two whole numbers and beside it, where an
   inverse would round the other way. */
static float any_quotient(float scale) {
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 0, -0.0f, 1e-40f};
    float v = ((float)draw(-300, 300) + 0.5f) * scale;
    if (!draw(0, 9)) return odd[draw(0, 7)];
    if (draw(0, 1)) return v * (float)draw(0, 1000) / 700;
    for (int k = draw(-3, 3); k; k += k < 0 ? 1 : -1) v = nextafterf(v, k < 0 ? -INFINITY : INFINITY);
    return v;
}
static int plain_quantum(const hone_epilogue_row *r, float acc, const float *residual) {
    float v = acc + r->bias;
    if (residual) v = v + *residual;
    v = v < r->lo ? r->lo : v;
    v = v > r->hi ? r->hi : v;
    const float t = v / r->scale; /* rounded once: a double would be right too often */
    const double q = isnan(v) ? 0 : isnan(t) ? NAN : nearbyint((double)t) + (double)r->zero;
    return q < (double)r->low ? (int)r->low : q > (double)r->high ? (int)r->high : (int)q;
}
static void quanta_case(const hone_epilogue *row, int n, float scale, bool is_signed, bool residual,
                        bool clamps) {
    hone_epilogue_row r = {-0.0f,
                           -INFINITY,
                           INFINITY,
                           scale,
                           (float)draw(is_signed ? -128 : 0, is_signed ? 127 : 255),
                           is_signed ? -128.0f : 0.0f,
                           is_signed ? 127.0f : 255.0f,
                           (float)draw(0, 9),
                           0.25f};
    if (clamps)
        r.bias = scale, r.lo = scale * (float)draw(-600, 100), r.hi = r.lo + scale * (float)draw(0, 600);
    float *acc = malloc(sizeof *acc * (size_t)n), *more = malloc(sizeof *more * (size_t)n),
          *back = malloc(sizeof *back * (size_t)n);
    uint8_t *out = exact_bytes((size_t)n);
    assert_true(acc && more && back);
    for (int i = 0; i < n; i++) acc[i] = any_quotient(scale), more[i] = back[i] = (float)draw(-2, 2) * scale;
    (is_signed ? row->i8 : row->u8)(&r, acc, residual ? more : NULL, out, n);
    row->back(&r, acc, residual ? back : NULL, back, n); /* in place */
    for (int i = 0; i < n; i++) {
        const int want = plain_quantum(&r, acc[i], residual ? more + i : NULL),
                  got = is_signed ? (int8_t)out[i] : out[i];
        if (got != want || back[i] != ((float)want - r.back_zero) * r.back_scale)
            fail_msg("%s: %g by %g: %d (%g read back), not %d", row->name, (double)acc[i], (double)scale, got,
                     (double)back[i], want);
    }
    free(acc), free(more), free(back), free(out);
}
static void quanta(void **state) {
    (void)state;
    static const float scales[] = {0.0186584f,     1,   0.1f,  3,         1 / 3.0f, 0x1.fffffep-1f,
                                   0x1.000002p-3f, 255, 1e-6f, 0x1p-110f, 0x1p110f, -0.5f};
    for (const hone_epilogue *row = hone_epilogue_list; row->name; row++) {
        if (row->cpu & ~hone_cpu()) continue;
        for (int n = 1; n < (SLOW ? 300 : 3000); n += n < 20 ? 1 : draw(1, 200))
            for (size_t k = 0; k < sizeof scales / sizeof *scales; k++)
                quanta_case(row, n, scales[k], n & 1, draw(0, 1), draw(0, 1));
    }
}
/* Two rows, seen as floats, joined in one pass: the bits of widening them and then joining, in place too.
   Kinds: whether the second is bytes, whether the result is. */
static void joint_case(const hone_epilogue *row, int n, int kind, float scale, bool is_signed) {
    const bool more = kind & 1, to_bytes = kind & 2;
    const float zero = draw(0, 19) ? (float)draw(-128, 255) : 0.5f;
    hone_epilogue_row r = {-0.0f,
                           draw(0, 9) ? -INFINITY : 0,
                           INFINITY,
                           scale,
                           (float)draw(0, 100),
                           is_signed ? -128 : 0,
                           is_signed ? 127 : 255,
                           0,
                           0};
    uint8_t *x = exact_bytes((size_t)n), *y = exact_bytes((size_t)n);
    const hone_seen_row a = {x, draw(0, 1) ? 0x80 : 0, zero,
                             scale * (draw(0, 9) ? (float)draw(1, 300) / 100 : 1e6f), NULL};
    const size_t size = to_bytes ? 1 : sizeof(float);
    float *acc = malloc(sizeof *acc * (size_t)n), *residual = malloc(sizeof *acc * (size_t)n),
          *z = malloc(sizeof *z * (size_t)n);
    char *want = malloc(size * (size_t)n), *got = malloc(size * (size_t)n);
    assert_true(acc && residual && z && want && got);
    for (int i = 0; i < n; i++)
        z[i] = draw(0, 60) ? (float)draw(-900, 900) * 0.5f * scale : any_quotient(scale);
    const hone_seen_row b = {more ? y : NULL, draw(0, 1) ? 0x80 : 0, (float)draw(0, 255), scale * 0.5f, z};
    row->dequantize(x, a.over, a.zero, a.scale, acc, n);
    if (more) row->dequantize(y, b.over, b.zero, b.scale, residual, n);
    else memcpy(residual, z, sizeof *z * (size_t)n);
    hone_epilogue_fn *run = !to_bytes ? row->f32 : is_signed ? row->i8 : row->u8;
    run(&r, acc, residual, want, n);
    hone_joint_fn *joint = to_bytes ? row->joint_bytes : row->joint_f32;
    memset(got, 7, size * (size_t)n);
    if (joint(&r, &a, &b, got, n)) {
        if (memcmp(want, got, size * (size_t)n))
            fail_msg("%s: %d joined, kind %d, scale %g: another result", row->name, n, kind, (double)scale);
        if (more == to_bytes) { /* onto the second */
            void *on = more ? (void *)y : (void *)z;
            assert_true(joint(&r, &a, &b, on, n) && !memcmp(want, on, size * (size_t)n));
        }
    } else
        for (size_t i = 0; i < size * (size_t)n; i++) assert_int_equal(got[i], 7);
    free(x), free(y), free(acc), free(residual), free(z), free(want), free(got);
}
static void joints(void **state) {
    (void)state;
    static const float scales[] = {0.017f, 1, 3e-20f, 0, NAN, -1};
    for (const hone_epilogue *row = hone_epilogue_list; row->name; row++) {
        if (row->cpu & ~hone_cpu()) continue;
        if (!row->joint_f32) continue;
        for (int n = 1; n < (SLOW ? 200 : 700); n += n < 40 ? 1 : draw(1, 60))
            for (int k = 0; k < 24; k++) joint_case(row, n, k % 4, scales[k / 4], n & 1);
    }
}
/* k places, `across` of them in a row of the window; stride 0: pixels share nothing */
static void depthwise_case(const hone_dwconv_i8 *row, int m, int n, int k, int across, int stride,
                           bool as_bytes) {
    enum { STEP = 240, MOST = 70 };
    const int wide = 16 * row->lanes, blocks = (n + wide - 1) / wide, group = row->group;
    const int groups = stride ? across : (k + group - 1) / group, high = stride ? k / across : group;
    const int whole = (n + HONE_REQUANTIZE_BLOCK - 1) / HONE_REQUANTIZE_BLOCK * HONE_REQUANTIZE_BLOCK;
    const uint8_t flip = draw(0, 1) ? 0x80 : 0;
    const hone_dwconv_i8_args way = {
        .a_pixel = stride ? stride : 1, .a_group = stride ? 1 : high * STEP, .a_place = STEP};
    /* m pixels more, of places one further */
    const bool below = row->below && stride && as_bytes && high < group && draw(0, 2);
    uint8_t *piece[32 * STEP] = {0}, *c[2 * MOST];
    int8_t *w = (int8_t *)exact_bytes((size_t)(n * k)),
           *b = calloc((size_t)(blocks * wide * groups * group), 1);
    int32_t *bias = calloc((size_t)whole, sizeof *bias), *placed = calloc((size_t)whole, sizeof *bias),
            *sums[MOST];
    float *scale = calloc((size_t)whole, sizeof *scale), *placed_scale = calloc((size_t)whole, sizeof *scale);
    assert_true(b && bias && placed && scale && placed_scale);
#define AT(i, g, q) piece[(i)*way.a_pixel + (g)*way.a_group + (q)*way.a_place]
    for (int i = 0; i < m; i++)
        for (int g = 0; g < groups; g++)
            for (int q = 0; q < high + below; q++)
                if (!AT(i, g, q)) AT(i, g, q) = exact_bytes((size_t)n);
    for (int j = 0; j < n; j++) {
        const int64_t place = hone_dwconv_i8_position(row->lanes, j % wide), to = j / wide * wide + place;
        placed[to] = bias[j] = draw(-900, 900), placed_scale[to] = scale[j] = any_scale(draw(0, 1));
        for (int t = 0; t < k; t++)
            b[((j / wide * groups + t / high) * wide + place) * group + t % high] = w[t * n + j];
    }
    for (int i = 0; i < m; i++) {
        c[i] = exact_bytes((size_t)n), c[m + i] = exact_bytes((size_t)n),
        sums[i] = malloc(sizeof(int32_t) * (size_t)n);
        assert_non_null(sums[i]);
    }
    hone_requantize l = {placed, placed_scale, draw(0, 255), draw(0, 1) ? 0x80 : 0,
                         false,  true,         false,        false};
    if (draw(0, 1)) hone_requantize_bound(&l, whole, 255.0 * 128 * k);
    hone_dwconv_i8_args part = way;
    part.m = m, part.high = high, part.n = n, part.groups = groups, part.a = (const uint8_t *const *)piece,
    part.flip = flip, part.b = b;
    part.requantize = as_bytes ? &l : NULL, part.c = c, part.sums = sums, part.below = below ? c + m : NULL;
    part.from = draw(0, 3) ? 0 : wide * draw(0, blocks - 1);
    if (part.from) c[0][0] = 77;
    row->run(&part);
    if (part.from) assert_int_equal(c[0][0], 77);
    for (int i = 0; i < (below ? 2 * m : m); i++)
        for (int j = (int)part.from; j < n; j++) {
            int32_t want = 0;
            for (int t = 0; t < k; t++) {
                const uint8_t x = AT(i % m, t / high, t % high + i / m)[j] ^ flip;
                want += (row->a_signed ? (int8_t)x : x) * w[t * n + j];
            }
            if (as_bytes) want = plain_level(&l, want, 0, scale[j], bias[j]);
            const int32_t got = as_bytes ? c[i][j] : sums[i][j];
            if (got != want)
                fail_msg("%s: m %d, n %d, %d places, stride %d, row %d, column %d: %d, not %d", row->name, m,
                         n, k, stride, i, j, got, want);
        }
#undef AT
    for (int t = 0; t < 32 * STEP; t++) free(piece[t]);
    for (int i = 0; i < m; i++) free(c[i]), free(c[m + i]), free(sums[i]);
    free(w), free(b), free(bias), free(placed), free(scale), free(placed_scale);
}
static void dwconv_nhwc(void **state) {
    (void)state;
    for (const hone_dwconv_i8 *row = hone_dwconv_i8_list; row->name; row++) {
        if (row->cpu & ~hone_cpu()) continue;
        for (int n = 1; n < 150; n += n < 20 ? 1 : 11) {
            for (int k = 1; k <= 25; k += k < 9 ? 1 : 8)
                depthwise_case(row, draw(1, 9), n, k, 1, 0, (n + k) & 1);
            for (int stride = 1; row->group == 4 && stride <= 3; stride++)
                for (int across = 2; across <= 4; across++)
                    depthwise_case(row,
                                   draw(0, 3)   ? draw(4, 20)
                                   : draw(0, 1) ? draw(1, 3)
                                                : draw(30, 70),
                                   n, across * (draw(0, 1) ? 3 : draw(2, 4)), across, stride,
                                   (n + stride) & 1);
        }
    }
}
/* The same to bytes at once. */
static void products_to_bytes(void **state) {
    (void)state;
    for (const hone_gemm_i8 *row = hone_gemm_i8_list; row->name; row++) {
        if ((row->cpu & ~hone_cpu()) || !row->run_requantize) continue;
        for (int round = 0; round < 60; round++) {
            const int m = draw(1, 3 * row->mr), n = draw(0, 2) ? row->nr * draw(1, 4) : draw(1, 4 * row->nr),
                      k = row->deep * draw(1, 20), j0 = 8 * draw(0, 3), mr = row->mr, nr = row->nr;
            const int panels = (m + mr - 1) / mr, deep = row->deep, group = row->group, kind = round % 3;
            uint8_t *a = exact_bytes((size_t)(panels * mr * k)),
                    *b = exact_bytes((size_t)((n + nr - 1) / nr * nr * k)), *out[3 * 32];
            int32_t bias[2 * HONE_REQUANTIZE_BLOCK] = {0};
            float scale[2 * HONE_REQUANTIZE_BLOCK] = {0};
            for (int j = 0; j < n; j++)
                bias[j0 + j] = draw(-20000, 20000),
                          scale[j0 + j] = kind == 2 ? any_scale(2) : any_scale(0) / 10;
            hone_requantize l = {bias,  scale,    draw(0, 255), draw(0, 1) ? 0x80 : 0,
                                 false, kind < 2, false,        false};
            if (draw(0, 2)) hone_requantize_bound(&l, 2 * HONE_REQUANTIZE_BLOCK, 255.0 * 128 * k);
            for (int i = 0; i < m; i++) out[i] = (uint8_t *)malloc((size_t)(j0 + n)), assert_non_null(out[i]);
            row->run_requantize(m, k / 4, a, b, &l, j0, n, out);
            for (int i = 0; i < m; i++) {
                for (int j = 0; j < n; j++) {
                    int32_t sum = 0;
                    for (int p = 0; p < k; p++)
                        sum += a[i / mr * mr * k + (p / deep * mr + i % mr) * deep + p % deep] *
                               (int8_t)b[j / nr * nr * k + (p / group * nr + j % nr) * group + p % group];
                    const uint8_t want = plain_level(&l, sum, 0, scale[j0 + j], bias[j0 + j]);
                    if (out[i][j0 + j] != want)
                        fail_msg("%s: m %d, n %d, k %d, row %d, column %d: %d, not %d", row->name, m, n, k, i,
                                 j, out[i][j0 + j], want);
                }
                free(out[i]);
            }
            free(a), free(b);
        }
    }
}
/* A unsigned, B signed: in panels, and rows as they lie. */
static void other_signs(void **state) {
    (void)state;
    for (const hone_gemm_i8 *row = hone_gemm_i8_list; row->name; row++) {
        if (row->cpu & ~hone_cpu() || !row->run_u) continue;
        for (int m = 1; m <= row->mr; m++)
            for (int64_t groups = row->deep / 4; groups < 70; groups = groups * 3 + row->deep / 4)
                for (int lie = 0; lie < 2; lie++) {
                    if (lie && (!row->run_direct || m % 16)) continue;
                    /* what is past k is 0 in B; where that is below deep, nothing past it is read */
                    const int64_t k = groups * 4 -
                                      (groups * 4 == row->deep ? draw(0, row->deep / 4 - 1) * 4 : 0),
                                  mr = row->mr, nr = row->nr, deep = row->deep, apart = k + draw(0, 40),
                                  stride = nr + 3;
                    uint8_t *a = exact_bytes((size_t)(lie ? (m - 1) * apart + k : groups * 4 * mr)),
                            *b = exact_bytes((size_t)(groups * 4 * nr));
                    for (int64_t p = k; p < groups * 4; p++)
                        for (int64_t j = 0; j < nr; j++)
                            b[(p / row->group * nr + j) * row->group + p % row->group] = 0;
                    int32_t *c = malloc(sizeof *c * (size_t)((m + 1) * stride));
                    assert_non_null(c);
                    for (int64_t i = 0; i < (m + 1) * stride; i++) c[i] = 1234567;
                    if (row->begin) row->begin(k);
                    const int some = lie && draw(0, 1) ? draw(1, (int)nr) : (int)nr; /* that are wanted */
                    if (lie) row->run_direct(m, groups, a, apart, b, some, c, stride);
                    else row->run_u(m, groups, (const int8_t *)a, b, c, stride);
                    if (row->end) row->end();
                    for (int64_t i = 0; i <= m; i++)
                        for (int64_t j = 0; j < stride; j++) {
                            int32_t want = i < m && j < nr ? 0 : 1234567;
                            for (int64_t p = 0; i < m && j < nr && p < k; p++)
                                want += a[lie ? i * apart + p : (p / deep * mr + i) * deep + p % deep] *
                                        (int8_t)b[(p / row->group * nr + j) * row->group + p % row->group];
                            if (c[i * stride + j] != want && !(i < m && j >= some && j < nr))
                                fail_msg("%s: m %d, row %d, column %d", row->name, m, (int)i, (int)j);
                        }
                    free(a), free(b), free(c);
                }
    }
}
/* Rows whose K lies in groups of at most four: what is behind a group's own bytes is read, and meets
   zeros. */
static void gathered(void **state) {
    (void)state;
    for (const hone_gemm_i8 *row = hone_gemm_i8_list; row->name; row++) {
        if (row->cpu & ~hone_cpu() || !row->run_gathered) continue;
        for (int m = 1; m <= 40; m += m < 16 ? 1 : 5)
            for (int groups = 1; groups < 50; groups = groups * 2 + 1) {
                const int64_t step = draw(1, 9), stride = row->nr + 3, far = 300;
                int64_t at[50];
                for (int g = 0; g < groups; g++) at[g] = draw(0, (int)far);
                at[draw(0, groups - 1)] = far;
                uint8_t *a = exact_bytes((size_t)((m - 1) * step + far + 4)),
                        *b = exact_bytes((size_t)(groups * 4 * row->nr));
                int32_t *c = malloc(sizeof *c * (size_t)((m + 1) * stride));
                assert_non_null(c);
                for (int64_t i = 0; i < (m + 1) * stride; i++) c[i] = 1234567;
                row->run_gathered(m, groups, a, step, at, b, c, stride);
                for (int64_t i = 0; i <= m; i++)
                    for (int64_t j = 0; j < stride; j++) {
                        int32_t want = i < m && j < row->nr ? 0 : 1234567;
                        for (int64_t p = 0; i < m && j < row->nr && p < 4 * groups; p++)
                            want += a[i * step + at[p / 4] + p % 4] *
                                    (int8_t)b[(p / 4 * row->nr + j) * 4 + p % 4];
                        if (c[i * stride + j] != want)
                            fail_msg("%s, gathered: m %d, row %d, column %d", row->name, m, (int)i, (int)j);
                    }
                free(a), free(b), free(c);
            }
    }
}
static void transpose(void **state) {
    (void)state;
    for (int m = 1; m < 70; m += draw(1, 9))
        for (int n = 1; n < 70; n += draw(1, 9)) {
            const int from_step = n + draw(0, 5), to_step = m + draw(0, 5);
            uint8_t *from = exact_bytes((size_t)((m - 1) * from_step + n)),
                    *to = exact_bytes((size_t)((n - 1) * to_step + m));
            uint8_t *want = malloc((size_t)(n * to_step));
            assert_non_null(want);
            memcpy(want, to, (size_t)((n - 1) * to_step + m));
            for (int i = 0; i < m; i++)
                for (int j = 0; j < n; j++) want[j * to_step + i] = from[i * from_step + j];
            hone_transpose_bytes(m, n, from, from_step, to, to_step);
            assert_memory_equal(to, want, (size_t)((n - 1) * to_step + m));
            free(from), free(to), free(want);
        }
}
static void transpose_floats(void **state) {
    (void)state;
    for (int m = 1; m < 40; m += draw(1, 3))
        for (int n = 1; n < 40; n += draw(1, 3)) {
            const int from_step = n + draw(0, 5), to_step = m + draw(0, 1) * draw(0, 5);
            const size_t there = (size_t)((n - 1) * to_step + m) * sizeof(float);
            float *from = (float *)(void *)exact_bytes((size_t)((m - 1) * from_step + n) * sizeof(float)),
                  *to = (float *)(void *)exact_bytes(there);
            float *want = malloc(there);
            assert_non_null(want);
            memcpy(want, to, there);
            /* bits: they may be NaN */
            for (int i = 0; i < m; i++)
                for (int j = 0; j < n; j++)
                    memcpy(want + j * to_step + i, from + i * from_step + j, sizeof *want);
            hone_transpose_floats(m, n, from, from_step, to, to_step);
            assert_memory_equal(to, want, there);
            free(from), free(to), free(want);
        }
}

/* ---- networks ------------------------------------------------------------------------------------------ */
enum { ROUNDS = SLOW ? 2 : 4 };
static char text[8192];
static const char *byte(int *lo, int *hi) {
    bool is_signed = draw(0, 1);
    *lo = is_signed ? -128 : 0, *hi = is_signed ? 127 : 255;
    return is_signed ? "i8" : "u8";
}
/* One conv as text: weights, scales and zero points of its own, one or one a channel, mostly nothing. */
static size_t layer(char *to, size_t room, const char *name, const char *x, const char *tx, const char *ty,
                    int xz, int yz, int c, int m, int g, int kh, int kw, const char *rest) {
    int lo, hi;
    const char *t = byte(&lo, &hi);
    const bool each = draw(0, 1), wild = draw(0, 2) == 0;
    const int zero = lo < 0 ? 0 : 128;
    char many[16] = "";
    if (each) snprintf(many, sizeof many, "%d", m);
    return (size_t)snprintf(to, room,
                            "%sw: %s[%d, %d, %d, %d] = random(%d, %d, %d); %sws: f32[%s] = %s; %swz: %s[%s] "
                            "= random(8, %d, %d); %sxs: f32[] = {0.02}; %sxz: "
                            "%s[] = {%d}; %sys: f32[] = {%g}; %syz: %s[] = {%d}; %sb: i32[%d] = random(5, "
                            "-9000, 9000); | %s = QLinearConv(%s, %sxs, %sxz, "
                            "%sw, "
                            "%sws, %swz, %sys, %syz, %sb) {group: %d, %s}; ",
                            name, t, m, c / g, kh, kw, draw(1, 99), lo, hi, name, many,
                            each ? "random(7, 0.01, 0.03)" : "{0.021}", name, t, many, wild ? lo : zero,
                            wild ? hi : zero, name, name, tx, xz, name,
                            0.02 * 0.02 * 4 * sqrt(1.0 * c / g * kh * kw) * 30, name, ty, yz, name, m, name,
                            x, name, name, name, name, name, name, name, name, g, rest);
}
static void network(void) {
    int lo[5], hi[5], z[5], c = draw(1, 5), m = draw(1, 80), o = draw(1, 90), h = draw(5, 14),
                            w = draw(5, 17), k = draw(1, 5), s = draw(1, 2);
    const char *t[5];
    for (int q = 0; q < 5; q++) t[q] = byte(lo + q, hi + q), z[q] = draw(lo[q], hi[q]);
    char window[256], part[4][1800], *parts[4] = {part[0], part[1], part[2], part[3]};
    snprintf(window, sizeof window, "strides: [%d, 1], pads: [1, 1, 1, 1]", s);
    layer(part[0], sizeof part[0], "a", "x", t[0], t[1], z[0], z[1], c, m, 1, 3, 3, window);
    snprintf(window, sizeof window, "strides: [1, %d], pads: [%d, %d, %d, %d]", s, k / 2, k / 2, k / 2,
             k / 2);
    layer(part[1], sizeof part[1], "d", "a", t[1], t[2], z[1], z[2], m, m, m, k, k, window);
    layer(part[2], sizeof part[2], "p", "d", t[2], t[3], z[2], z[3], m, o, 1, 1, 1, "pads: [0, 0, 0, 0]");
    const int g = o % 2 ? 1 : 2;
    snprintf(window, sizeof window, "pads: [%d, 1, 1, 0], dilations: [%d, 1]", draw(0, 2), draw(1, 2));
    layer(part[3], sizeof part[3], "r", "e", t[4], t[3], z[4], z[3], o, o, g, 2, 2, window);
    size_t n = (size_t)snprintf(text, sizeof text, "graph g (x: %s[%d, %d, %d, %d]) -> y, v, u { ", t[0],
                                draw(1, 2), c, h, w);
    for (int q = 0; q < 4; q++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s", (int)(strchr(parts[q], '|') - parts[q]),
                              parts[q]);
    n += (size_t)snprintf(text + n, sizeof text - n,
                          "es: f32[] = {0.7}; ez: %s[] = {%d}; fs: f32[] = {0.05}; ", t[4], z[4]);
    for (int q = 0; q < 3; q++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s", strchr(parts[q], '|') + 1);
    /* a residual sum, quantized again; a pool; sums as they are; a join */
    n += (size_t)snprintf(
        text + n, sizeof text - n,
        "f = DequantizeLinear(p, pys, pyz); i = Mul(f, fs); j = Add(i, f); e = QuantizeLinear(j, es, ez); %s "
        "q = DequantizeLinear(r, rys, ryz); v = GlobalAveragePool(q); u = ConvInteger(d, pw, dyz, pwz); "
        "l = Concat(e, e) {axis: 1}; y = MaxPool(l) {kernel_shape: [2, 2]}; }",
        strchr(parts[3], '|') + 1);
    assert_true(n < sizeof text);
}
/* First layers: few channels, windows of three to seven, padded, one picture or two. */
static void first_layer(void) {
    int lo[2], hi[2], z[2];
    const char *t[2];
    for (int q = 0; q < 2; q++) t[q] = byte(lo + q, hi + q), z[q] = draw(lo[q], hi[q]);
    if (draw(0, 2)) t[0] = "u8", z[0] = draw(0, 255);
    const int c = draw(1, 4), k = draw(3, 7), s = draw(1, 2);
    char window[256], part[1800];
    snprintf(window, sizeof window, "strides: [%d, %d], pads: [%d, %d, %d, %d]", s, draw(1, 2), draw(0, 3),
             draw(0, 3), draw(0, 3), draw(0, 3));
    layer(part, sizeof part, "a", "x", t[0], t[1], z[0], z[1], c, draw(1, 140), 1, k, draw(2, 7), window);
    const char *rest = strchr(part, '|') + 1;
    snprintf(text, sizeof text,
             "graph g (x: %s[%d, %d, %d, %d]) -> y { %.*s %s y = MaxPool(a) {kernel_shape: [1, 1]}; }", t[0],
             draw(1, 2), c, draw(8, 20), draw(8, 30), (int)(rest - 1 - part), part, rest);
}
/* A convolution of many channels whose ends lie channels first: both are turned around; with another before
   it or behind it, one end is. */
static void ends(void) {
    int lo[3], hi[3], z[3];
    const char *t[3];
    for (int q = 0; q < 3; q++) t[q] = byte(lo + q, hi + q), z[q] = draw(lo[q], hi[q]);
    const int g = draw(1, 2), c = g * draw(8, 20), m = g * draw(8, 35), k = draw(2, 3), two = draw(0, 1);
    char window[256], part[2][1800];
    snprintf(window, sizeof window, "strides: [%d, %d], pads: [%d, %d, %d, %d], dilations: [1, %d]",
             draw(1, 2), draw(1, 2), draw(0, 2), draw(0, 2), draw(0, 2), draw(0, 2), draw(1, 2));
    layer(part[0], sizeof part[0], "a", "x", t[0], t[1], z[0], z[1], c, m, g, k, 3, window);
    layer(part[1], sizeof part[1], "d", "a", t[1], t[2], z[1], z[2], m, draw(8, 30), 1, 3, 3,
          "pads: [1, 1, 1, 1]");
    const char *rest[2] = {strchr(part[0], '|') + 1, strchr(part[1], '|') + 1};
    snprintf(text, sizeof text, "graph g (x: %s[%d, %d, %d, %d]) -> %s { %.*s %.*s %s %s }", t[0], draw(1, 2),
             c, draw(7, 12), draw(7, 20), two ? "d" : "a", (int)(rest[0] - 1 - part[0]), part[0],
             two ? (int)(rest[1] - 1 - part[1]) : 0, part[1], rest[0], two ? rest[1] : "");
}
static void turned_ends(void **state) {
    (void)state;
    int met = 0;
    EACH_LEVEL for (int round = 0; round < 2 * ROUNDS; round++) {
        ends();
        met += twin_check(text, twin_input, 0, 0, "transpose");
    }
    assert_true(met >= 6); /* some are too small */
}
static void first_layers(void **state) {
    (void)state;
    EACH_LEVEL for (int round = 0; round < ROUNDS; round++) {
        first_layer();
        twin_check(text, twin_input, 0, 0, "contract int8");
    }
}
/* bytes: the definition's own, to the bit; means in f32 are sums in another order */
static void pictures(void **state) {
    (void)state;
    EACH_LEVEL for (int round = 0; round < ROUNDS; round++) {
        network();
        twin_check(text, twin_input, 1e-6, 1e-5, "contract int8");
    }
}
/* A convolution's bytes read back, and with them what was before it, of bytes too: their sum, quantized again
   and, or not, wanted as it is. */
static void sum_of_bytes(int m, bool wanted) {
    int lo[4], hi[4], z[4];
    const char *t[4];
    for (int q = 0; q < 4; q++) t[q] = byte(lo + q, hi + q), z[q] = draw(lo[q], hi[q]);
    const int c = draw(1, 40);
    char part[3][1800];
    layer(part[0], sizeof part[0], "a", "x", t[0], t[1], z[0], z[1], c, m, 1, 1, 1, "pads: [0, 0, 0, 0]");
    layer(part[1], sizeof part[1], "p", "a", t[1], t[2], z[1], z[2], m, m, 1, 1, 1, "pads: [0, 0, 0, 0]");
    layer(part[2], sizeof part[2], "r", "e", t[3], t[0], z[3], z[0], m, draw(1, 40), 1, 1, 1,
          "pads: [0, 0, 0, 0]");
    size_t n = (size_t)snprintf(text, sizeof text, "graph g (x: %s[%d, %d, %d, %d]) -> r%s { ", t[0],
                                draw(1, 2), c, draw(3, 9), draw(3, 9), wanted ? ", j" : "");
    for (int q = 0; q < 3; q++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s", (int)(strchr(part[q], '|') - part[q]),
                              part[q]);
    n += (size_t)snprintf(text + n, sizeof text - n,
                          "es: f32[] = {%g}; ez: %s[] = {%d}; %s %s f = DequantizeLinear(a, ays, ayz); h = "
                          "DequantizeLinear(p, pys, pyz); "
                          "j = Add(%s); e = QuantizeLinear(j, es, ez); %s }",
                          draw(1, 9) * 0.1, t[3], z[3], strchr(part[0], '|') + 1, strchr(part[1], '|') + 1,
                          draw(0, 1) ? "f, h" : "h, f", strchr(part[2], '|') + 1);
    assert_true(n < sizeof text);
}
static void sums_of_bytes(void **state) {
    (void)state;
    EACH_LEVEL for (int round = 0; round < ROUNDS; round++) {
        sum_of_bytes(draw(1, 260), round % 2); /* more columns than are read back at once */
        twin_check(text, twin_input, 0, 0, "contract int8");
    }
    EACH_LEVEL { /* one step a convolution */
        sum_of_bytes(64, false);
        assert_int_equal(twin_check(text, twin_input, 0, 0, "quantized elementwise"), 0);
    }
}
/* they are met: a network of usual sizes has no other steps for its convolutions */
static void tactics(void **state) {
    (void)state;
    static const char *const net = "graph g (x: u8[1, 16, 9, 9]) -> y { s: f32[] = {0.02}; z: u8[] = {114}; "
                                   "t: f32[] = {0.9}; aw: i8[96, 16, 1, 1] = random(1, -127, "
                                   "127); "
                                   "ws: f32[] = {0.01}; wz: i8[] = {0}; ab: i32[96] = random(2, -900, 900); "
                                   "dw: i8[96, 1, 3, 3] = random(3, -127, 127); pw: i8[24, "
                                   "96, 1, "
                                   "1] = random(4, -127, 127); a = QLinearConv(x, s, z, aw, ws, wz, t, z, "
                                   "ab); d = QLinearConv(a, t, z, dw, ws, wz, t, z, ab) {group: "
                                   "96, "
                                   "pads: [1, 1, 1, 1]}; p = QLinearConv(d, t, z, pw, ws, wz, t, z); y = "
                                   "Transpose(p) {perm: [0, 2, 3, 1]}; }";
    /* scales and zero points a channel; a depthwise convolution whose result the caller wants row by row */
    static const char *const each =
        "graph g (x: u8[1, 16, 9, 9]) -> y { s: f32[] = {0.02}; z: u8[] = {114}; t: f32[] = {0.9}; aw: "
        "i8[40, "
        "16, 3, 3] = random(1, -127, 127); "
        "ws: f32[40] = random(5, 0.001, 0.01); wz: i8[40] = random(6, 0, 0); ab: i32[40] = random(2, -900, "
        "900); dw: i8[40, 1, 3, 3] = random(3, "
        "-127, 127); a = QLinearConv(x, s, z, aw, ws, wz, t, z, ab) {pads: [1, 1, 1, 1]}; d = QLinearConv(a, "
        "t, z, dw, ws, wz, t, z, ab) {group: "
        "40, pads: [1, 1, 1, 1]}; e = QLinearConv(d, t, z, dw, ws, wz, t, z, ab) {group: 40, strides: [2, "
        "2]}; "
        "y = DequantizeLinear(e, t, z); }";
    EACH_LEVEL {
        assert_int_equal(twin_check(each, twin_input, 0, 0, "tile"), 0);
        assert_int_equal(twin_check(each, twin_input, 0, 0, "contract int8"), 1);
        assert_int_equal(twin_check(each, twin_input, 0, 0, "depthwise int8"), 2);
        assert_int_equal(twin_check(net, twin_input, 0, 0, "contract int8"), 2);
        assert_int_equal(twin_check(net, twin_input, 0, 0, "depthwise int8"), 1);
        assert_int_equal(twin_check(net, twin_input, 0, 0, "pack"), 0);
    }
}
/* u8 weights with zero points: 8 bits hold what is left of all columns, of some blocks of them, or of hardly
   any; then sums, bytes, floats, a residual, a table */
static void shifted_weights(void **state) {
    (void)state;
#define QCONV "d = QLinearConv(p, s, z, w, ws, wz, t, z, ab) "
    static const char *const conv[] = {QCONV, QCONV, QCONV, QCONV, "d = ConvInteger(p, w, z, wz) "};
    static const char *const after[] = {"e = Identity(d)", "e = DequantizeLinear(d, t, z)",
                                        "f = DequantizeLinear(d, t, z); e = Sigmoid(f)",
                                        "f = DequantizeLinear(d, t, z); g = DequantizeLinear(p, s, z); h = "
                                        "Add(f, g); e = QuantizeLinear(h, t, z)",
                                        "e = Identity(d)"};
    static const int channels[] = {3, 8, 16, 33, 80, 150};
    int met = 0;
    for (int round = 0; round < (SLOW ? 30 : 90); round++) {
        const int c = channels[round % 6], kind = round / 6 % 4, size = draw(3, 20), across = draw(2, 4),
                  stride = draw(1, 2);
        const int ends = round % 5 == 3 && (stride > 1 || across != 3) ? 0 : round % 5,
                  each = kind > 1 ? 1 : c;
        char zeros[1200] = "150", text[3000];
        for (int j = 0, at = 0; kind < 2 && j < c; j++)
            at += snprintf(zeros + at, sizeof zeros - (size_t)at, "%s%d", j ? ", " : "",
                           kind         ? draw(0, 255)
                           : j / 16 % 2 ? 90 + j
                                        : 128);
        snprintf(text, sizeof text,
                 "graph g (x: u8[1, %d, %d, %d]) -> y { s: f32[] = {0.02}; z: u8[] = {%d}; t: f32[] = {0.9}; "
                 "ws: f32[%d] = random(5, "
                 "0.001, 0.01); "
                 "wz: u8[%d] = {%s}; ab: i32[%d] = random(2, -900, 900); w: u8[%d, 1, 3, %d] = random(3, %d, "
                 "%d); p = Transpose(x) {perm: "
                 "[0, 3, 1, 2]}; "
                 "%s {group: %d, pads: [1, 1, 1, 1], strides: [%d, %d]}; %s; y = Transpose(e) {perm: [0, 2, "
                 "3, 1]}; }",
                 size, size + 1, c, draw(0, 1) ? 114 : 0, each, each, zeros, c, c, across, kind > 2 ? 30 : 0,
                 kind > 2 ? 250 : 255, conv[ends], c, stride, stride, after[ends]);
        EACH_LEVEL met += twin_check(text, twin_input, 0, 0, "depthwise int8");
    }
    assert_true(met > 20);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shifted_weights), cmocka_unit_test(levels),      cmocka_unit_test(products_to_bytes),
        cmocka_unit_test(quanta),          cmocka_unit_test(dwconv_nhwc), cmocka_unit_test(other_signs),
        cmocka_unit_test(gathered),        cmocka_unit_test(transpose),   cmocka_unit_test(transpose_floats),
        cmocka_unit_test(first_layers),    cmocka_unit_test(turned_ends), cmocka_unit_test(pictures),
        cmocka_unit_test(sums_of_bytes),   cmocka_unit_test(tactics),     cmocka_unit_test(joints)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
