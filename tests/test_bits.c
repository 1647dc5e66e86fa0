/* SPDX-License-Identifier: Apache-2.0
   Weights of 2, 4 and 8 bits in blocks: the rows and products that kernels make, beside plain loops; and
   whole nodes beside the definition, on odd sizes, with zero points of all kinds, at every
   CPU level; on rows that are infinite, not a number or tiny. */
#include "twin.h"

#include "kernels/bits.h"

enum { N = HONE_BITS_COLUMNS };
static float random_float(float by) { return (float)draw(-10000, 10000) * by / 10000.0F; }

/* ---- kernels ---- */
/* the largest is 127; nothing is off by more than half a step, and what is left is said */
static void quantizes(void **state) {
    (void)state;
    EACH_LEVEL_OF(hone_bits_best()) {
        float a[256], rest[256], scale;
        int8_t q[256];
        int32_t sum;
        for (int n = 16; n <= 256; n *= 2)
            for (int kind = 0; kind < 4; kind++) {
                for (int k = 0; k < n; k++)
                    a[k] = kind == 0 ? 0.0F : random_float(kind == 1 ? 1.0F : kind == 2 ? 1e30F : 1e-25F);
                assert_int_equal(hone_bits_best()->quantize(a, n, q, &scale, &sum, rest), 1);
                float largest = 0;
                int total = 0;
                for (int k = 0; k < n; k++) largest = fmaxf(largest, fabsf(a[k]));
                for (int k = 0; k < n; k++) total += q[k];
                assert_int_equal(total, sum);
                assert_true(fabsf(scale - largest / 127) <= largest * 1e-7F);
                for (int k = 0; k < n; k++) {
                    assert_true(q[k] >= -127 &&
                                fabs((double)a[k] - (double)q[k] * (double)scale) <= 0.5001 * (double)scale);
                    assert_true(fabs((double)rest[k] - ((double)a[k] - (double)q[k] * (double)scale)) <=
                                2e-7 * (double)largest);
                }
            }
        const float odd[] = {INFINITY, -INFINITY, NAN, 1e-30F};
        for (int k = 0; k < 4; k++) {
            memset(a, 0, sizeof a), a[5] = odd[k];
            assert_int_equal(hone_bits_best()->quantize(a, 16, q, &scale, &sum, NULL), 0);
        }
    }
}
typedef struct {
    float a_scale[HONE_BITS_ROWS][8], scale[8 * N], c[HONE_BITS_ROWS][N + 1];
    int8_t a[HONE_BITS_ROWS][8 * 256], b[8 * 256 * N], zero[8 * N];
    int32_t a_sum[HONE_BITS_ROWS][16], start[64];
} room;
/* of 8 bits, or of 4 as they are packed */
static int stored(const room *w, bool packed, int k, int j) {
    if (!packed) return w->b[k / 4 * 4 * N + 4 * j + k % 4];
    const int x = (uint8_t)w->b[k / 8 * 4 * N + 4 * j + k % 4] ^ 0x80;
    return k % 8 < 4 ? x & 15 : x >> 4;
}
static void check_rows(bool packed) { /* and nothing is written beside the sums */
    room *w = malloc(sizeof *w);
    assert_non_null(w);
    EACH_LEVEL_OF(hone_bits_best())
    for (int block = 16; block <= 256 && (hone_bits_best()->packed || !packed); block *= 2)
        for (int m = 1; m <= HONE_BITS_ROWS; m++) {
            const int blocks = draw(1, SLOW ? 2 : 8), most = draw(0, 3) == 0; /* numbers at their limits */
            hone_bits_part p = {.m = m,
                                .block = block,
                                .blocks = blocks,
                                .b = w->b,
                                .b_step = block * N / (packed ? 2 : 1),
                                .scale = w->scale,
                                .scale_step = N,
                                .all = packed ? draw(0, 1) * 8 : 0};
            p.zero = draw(0, 3) ? w->zero : NULL;
            for (int k = 0; k < blocks * block * N; k++)
                w->b[k] = (int8_t)(packed && most ? 0x7f : draw(0, 9) ? draw(-128, 127) : -128);
            for (int k = 0; k < blocks * N; k++)
                w->scale[k] = random_float(1), w->zero[k] = (int8_t)(packed ? draw(0, 15) : draw(-128, 127));
            for (int r = 0; r < m; r++) {
                memset(w->a_sum[r], 0, sizeof w->a_sum[r]);
                for (int k = 0; k < blocks * block; k++)
                    w->a[r][k] = (int8_t)(draw(0, 9) && !most ? draw(-127, 127) : 127 - 254 * (r % 2)),
                    w->a_sum[r][k / block] += w->a[r][k];
                for (int g = 0; g < blocks; g++) w->a_scale[r][g] = random_float(1);
                for (int j = 0; j < N + 1; j++) w->c[r][j] = (float)j;
                p.a[r] = w->a[r], p.a_scale[r] = w->a_scale[r], p.a_sum[r] = w->a_sum[r], p.c[r] = w->c[r];
            }
            (packed ? hone_bits_best()->packed : hone_bits_best()->rows)(&p);
            for (int r = 0; r < m; r++) {
                assert_true(w->c[r][N] == N);
                for (int j = 0; j < N; j++) {
                    double want = j, size = j;
                    for (int g = 0; g < blocks; g++) {
                        int64_t sum = 0;
                        for (int k = g * block; k < (g + 1) * block; k++)
                            sum += w->a[r][k] *
                                   ((int64_t)stored(w, packed, k, j) - (p.zero ? w->zero[g * N + j] : p.all));
                        const double by = (double)w->a_scale[r][g] * (double)w->scale[g * N + j];
                        want += by * (double)sum, size += fabs(by * (double)sum);
                    }
                    assert_true(fabs((double)w->c[r][j] - want) <= 2e-6 * size);
                }
            }
        }
    free(w);
}
static void rows(void **state) {
    (void)state;
    check_rows(false);
}
static void packed_rows(void **state) {
    (void)state;
    check_rows(true);
}
static void one(void **state) { /* 4 bits as they are packed: what the coupled row stands for, exactly */
    (void)state;
    room *w = malloc(sizeof *w);
    float *a = malloc(sizeof *a * 8 * 256);
    assert_true(w && a);
    EACH_LEVEL_OF(hone_bits_best())
    for (int block = 16; block <= 256 && hone_bits_best()->one; block *= 2)
        for (int zeros = 0; zeros < 3; zeros++) {
            /* most: numbers at their limits */
            const int blocks = draw(1, SLOW ? 2 : 8), most = draw(0, 3) == 0;
            for (int k = 0; k < blocks * block; k++) a[k] = most ? (k & 1 ? 1.0F : -1.0F) : random_float(2);
            for (int k = 0; k < blocks * block * N / 2; k++)
                w->b[k] = (int8_t)(most ? (draw(0, 1) ? 0x7f : -128) : draw(-128, 127));
            for (int k = 0; k < blocks * N; k++)
                w->scale[k] = random_float(1), w->zero[k] = (int8_t)(zeros == 1 ? draw(0, 15)
                                                                     : zeros    ? 15
                                                                                : 8);
            for (int g = 0; g < blocks; g++)
                assert_int_equal(hone_bits_couple(a + g * block, block, w->a[0] + g * block,
                                                  w->a_scale[0] + g, w->a_sum[0] + 2 * g, w->start + 8 * g),
                                 1);
            for (int j = 0; j < N + 1; j++) w->c[0][j] = (float)j;
            const hone_bits_part p = {.m = 1,
                                      .block = block,
                                      .blocks = blocks,
                                      .b = w->b,
                                      .b_step = block * N / 2,
                                      .scale = w->scale,
                                      .scale_step = N,
                                      .zero = w->zero,
                                      .a = {w->a[0]},
                                      .a_scale = {w->a_scale[0]},
                                      .a_sum = {w->a_sum[0]},
                                      .start = zeros ? NULL : w->start,
                                      .c = {w->c[0]}};
            hone_bits_best()->one(&p);
            assert_true(w->c[0][N] == N);
            for (int j = 0; j < N; j++) {
                double want = j, size = j;
                for (int g = 0; g < blocks; g++) {
                    double sum = 0;
                    for (int k = g * block; k < (g + 1) * block; k++) {
                        const int x = (uint8_t)w->b[k / 8 * 4 * N + 4 * j + k % 4] ^ 0x80,
                                  q = k % 8 < 4 ? x & 15 : x >> 4;
                        const double v = k % 8 < 4 ? w->a[0][k] + w->a[0][k + 4] / 16.0 : w->a[0][k];
                        assert_true(fabs(v * (double)w->a_scale[0][g] - (double)a[k]) <=
                                    0.501 * (double)w->a_scale[0][g]);
                        sum += v * (q - w->zero[g * N + j]);
                    }
                    const double by = (double)w->a_scale[0][g] * (double)w->scale[g * N + j];
                    want += by * sum, size += fabs(by * sum);
                }
                assert_true(fabs((double)w->c[0][j] - want) <= 2e-6 * size);
            }
        }
    free(w), free(a);
}
typedef struct {
    int8_t a[(8 * 256 + 4) * HONE_BITS_HIGH + 16], b[8 * (256 * N + 64)];
    float scale[8 * N], shift[8 * N], by[8 * HONE_BITS_HIGH + 4], less[8 * HONE_BITS_HIGH + 4],
        c[HONE_BITS_HIGH * N + 1];
    int32_t start[8 * HONE_BITS_HIGH * 4];
} band;
static int weight_of(const band *w, const hone_bits_many *p, int g, int k, int j) {
    const int8_t *b = w->b + g * p->b_step;
    if (!p->packed) return b[k / 4 * 4 * N + 4 * j + k % 4];
    const int x = (uint8_t)b[k / 8 * 4 * N + 4 * j + k % 4] ^ 0x80;
    return (k % 8 < 4 ? x & 15 : x >> 4) - 8;
}
/* most: numbers at their limits */
static void check_band(band *w, int high, bool packed, int block, bool shifts, bool most) {
    const int blocks = draw(1, SLOW ? 2 : 8), bytes = block * N / (packed ? 2 : 1), gap = draw(0, 1) * 64;
    for (int k = 0; k < high * blocks * block; k++)
        w->a[k] = (int8_t)(most ? (k & 1 ? 127 : -127) : draw(-127, 127));
    for (int k = 0; k < blocks * (bytes + gap); k++)
        w->b[k] = (int8_t)(most ? (k & 1 ? 127 : -128) : draw(-128, 127));
    for (int k = 0; k < blocks * N; k++) w->scale[k] = random_float(1), w->shift[k] = random_float(3);
    for (int k = 0; k < blocks * high; k++) {
        w->by[k] = random_float(1), w->less[k] = random_float(100);
        int lower = 0;
        for (int i = 0; i < block; i++)
            lower += i % 8 < 4 ? w->a[((k / high * block + i) / 4 * high + k % high) * 4 + i % 4] : 0;
        for (int i = 0; i < 4; i++) w->start[4 * k + i] = HONE_BITS_LOWER - 8 * lower;
    }
    for (int k = 0; k < high * N + 1; k++) w->c[k] = (float)k;
    const hone_bits_many p = {.high = high,
                              .packed = packed,
                              .block = block,
                              .blocks = blocks,
                              .a = w->a,
                              .a_scale = w->by,
                              .a_shift = w->less,
                              .a_start = w->start,
                              .b = w->b,
                              .b_step = bytes + gap,
                              .scale = w->scale,
                              .scale_step = N,
                              .shift = shifts ? w->shift : NULL,
                              .c = w->c};
    hone_bits_best()->many(&p);
    assert_true(w->c[high * N] == (float)(high * N));
    for (int r = 0; r < high; r++)
        for (int j = 0; j < N; j++) {
            double want = r * N + j, size = want;
            for (int g = 0; g < blocks; g++) {
                int64_t sum = 0;
                for (int k = 0; k < block; k++)
                    sum += w->a[((g * block + k) / 4 * high + r) * 4 + k % 4] *
                           (int64_t)weight_of(w, &p, g, k, j);
                const double v = (double)w->by[high * g + r] * (double)w->scale[g * N + j] * (double)sum,
                             off = shifts ? (double)w->less[high * g + r] * (double)w->shift[g * N + j] : 0;
                want += v - off, size += fabs(v) + fabs(off);
            }
            assert_true(fabs((double)w->c[r * N + j] - want) <= 2e-6 * size);
        }
}
/* several rows, which stand in turn, times bytes or 4 bits as they are packed */
static void bands(void **state) {
    (void)state;
    const int heights[] = {2, 3, 4};
    band *w = malloc(sizeof *w);
    assert_non_null(w);
    memset(w, 0, sizeof *w);
    EACH_LEVEL_OF(hone_bits_best())
    for (int block = 16; block <= 256 && hone_bits_best()->many; block *= 2)
        for (int kind = 0; kind < 24; kind++)
            check_band(w, heights[kind / 8], kind & 1, block, kind & 2, kind & 4);
    free(w);
}
static void floats(void **state) { /* units of 8 bits as floats, four columns to each place */
    (void)state;
    EACH_LEVEL_OF(hone_bits_best())
    for (int block = 16; block <= 64; block += 16)
        for (int how = 0; how < 4; how++) {
            enum { STEP = 7 };
            int8_t b[64 * N], zero[N];
            float scale[N], shift[N], out[4][64 * STEP], *to[4];
            for (int k = 0; k < block * N; k++) b[k] = (int8_t)draw(-128, 127);
            for (int j = 0; j < N; j++)
                scale[j] = random_float(1), shift[j] = random_float(10), zero[j] = (int8_t)draw(-128, 127);
            for (int q = 0; q < 4; q++) {
                to[q] = out[q];
                for (int k = 0; k < 64 * STEP; k++) out[q][k] = 99;
            }
            hone_bits_best()->floats(block, b, scale, how & 1 ? zero : NULL, how & 2 ? shift : NULL, to,
                                     (ptrdiff_t[]){STEP, STEP, STEP, STEP});
            for (int q = 0; q < 4; q++)
                for (int k = 0; k < 64; k++)
                    for (int i = 0; i < STEP; i++) {
                        const int j = 4 * q + i, there = i < 4 && k < block;
                        const int v = there ? b[k / 4 * 4 * N + 4 * j + k % 4] - (how & 1 ? zero[j] : 0) : 0;
                        const double want =
                            !there ? 99 : (double)v * (double)scale[j] - (how & 2 ? (double)shift[j] : 0);
                        assert_true(fabs((double)out[q][k * STEP + i] - want) <= 1e-7 * (256 + 10));
                    }
        }
}
static void unpacks(void **state) {
    (void)state;
    EACH_LEVEL_OF(hone_bits_best())
    for (int bits = 2; bits <= 4; bits += 2)
        for (int zeros = 0; zeros < 2; zeros++) {
            enum { UNITS = 5 };
            uint8_t from[UNITS * HONE_BITS_UNIT], flip = bits == 4 ? 0x80 : 0;
            int8_t to[UNITS * HONE_BITS_UNIT * 4 + 1], zero[UNITS * N];
            for (size_t k = 0; k < sizeof from; k++) from[k] = (uint8_t)draw(0, 255);
            for (size_t k = 0; k < sizeof zero; k++) zero[k] = (int8_t)draw(0, (1 << bits) - 1);
            to[UNITS * HONE_BITS_UNIT * 8 / bits] = 99;
            hone_bits_best()->unpack(bits, UNITS, 1, HONE_BITS_UNIT, flip, zeros ? zero : NULL, 5, from, to);
            assert_int_equal(to[UNITS * HONE_BITS_UNIT * 8 / bits], 99);
            for (int u = 0; u < UNITS; u++)
                for (int f = 0; f < 8 / bits; f++)
                    for (int i = 0; i < HONE_BITS_UNIT; i++)
                        assert_int_equal(
                            to[(u * 8 / bits + f) * HONE_BITS_UNIT + i],
                            ((from[u * HONE_BITS_UNIT + i] ^ flip) >> f * bits & ((1 << bits) - 1)) -
                                (zeros ? zero[u * N + i / 4] : 5));
        }
}

/* ---- nodes ---- */
typedef struct {
    int bits, block, k, n, m, level;
    const char *zero, *type, *after; /* zero: "", u8 or the type */
} node_row;
static void make(const node_row *r, char *text, size_t room_of) {
    const int blocks = (r->k + r->block - 1) / r->block;
    char zero[160] = "", rows_of[32];
    const bool floats = *r->zero && strcmp(r->zero, "u8");
    if (*r->zero)
        snprintf(zero, sizeof zero, "z: %s[%d] = random(3, 0, %d); ", r->zero,
                 r->n * (floats ? blocks : (blocks * r->bits + 7) / 8), floats ? (1 << r->bits) - 1 : 255);
    snprintf(rows_of, sizeof rows_of, r->m > 6 && r->m % 2 == 0 ? "2, %d" : "%d",
             r->m > 6 && r->m % 2 == 0 ? r->m / 2 : r->m);
    snprintf(text, room_of,
             "graph g (x: %s[%s, %d]) -> y { b: u8[%d, %d, %d] = random(1, 0, 255); s: %s[%d, %d] = "
             "random(2, -0.1, 0.1); %s"
             "bias: %s[%d] = random(4, -1, 1); v = com.microsoft.MatMulNBits(x, b, s%s) {K: %d, N: %d, bits: "
             "%d, block_size: %d, "
             "accuracy_level: %d}; %s }",
             r->type, rows_of, r->k, r->n, blocks, r->block * r->bits / 8, r->type, r->n, blocks, zero,
             r->type, r->n, *r->zero ? ", z" : "", r->k, r->n, r->bits, r->block, r->level, r->after);
}
/* Roundings of sums, of the sum of the terms' magnitudes; at level 4 a value is off by at most half of 1/119
   of its block's largest, too. */
static const double ROUNDING = 16 * 0x1p-24;
static const node_row *checked;
static double checked_eps;
static hone_value *constant_of(const hone_graph *g, const char *name) {
    const hone_vid v = hone_graph_find(g, name);
    return v < 0 ? NULL : g->var.at[v].value;
}
static double stored_weight(const node_row *r, const hone_graph *g, int column, int k) {
    const int blocks = (r->k + r->block - 1) / r->block, each = 8 / r->bits, most = (1 << r->bits) - 1;
    const hone_value *b = constant_of(g, "b"), *z = constant_of(g, "z");
    const int at = k / r->block, byte = (column * blocks + at) * (r->block / each) + k % r->block / each;
    const int q = ((const uint8_t *)b->data)[byte] >> k % each * r->bits & most;
    double zero = 1 << (r->bits - 1);
    if (z && z->dtype != HONE_DTYPE_U8) zero = hone_value_number(z, column * blocks + at);
    else if (z)
        zero = ((const uint8_t *)z->data)[column * ((blocks + each - 1) / each) + at / each] >>
                   at % each * r->bits &
               most;
    return (q - zero) * hone_value_number(constant_of(g, "s"), column * blocks + at);
}
static void node_terms(const char *text, hone_value *const *in, int n_in, hone_value **out) {
    const node_row *r = checked;
    hone_graph *g;
    assert_int_equal(n_in, 1);
    assert_int_equal(hone_graph_parse(text, strlen(text), &g), HONE_OK);
    const int64_t m = hone_value_count(in[0]) / r->k;
    assert_int_equal(hone_value_tensor(HONE_DTYPE_F32, (const int64_t[]){m, r->n}, 2, out), HONE_OK);
    double *w = malloc(sizeof *w * (size_t)r->k);
    assert_non_null(w);
    for (int j = 0; j < r->n; j++) {
        for (int k = 0; k < r->k; k++) w[k] = fabs(stored_weight(r, g, j, k));
        for (int64_t i = 0; i < m; i++) {
            /* a bias; and what products lose that are subnormal */
            double terms = (strstr(r->after, "bias") ? 1 : 0) + r->k * 0x1p-149 / checked_eps, slack = 0;
            for (int from = 0; from < r->k; from += r->block) {
                double largest = 0, weights = 0;
                for (int k = from; k < from + r->block && k < r->k; k++) {
                    const double x = fabs(hone_value_number(in[0], i * r->k + k));
                    terms += x * w[k], weights += w[k], largest = x > largest ? x : largest;
                }
                slack += largest * weights * 0.5 / 119;
            }
            ((float *)(*out)->data)[i * r->n + j] =
                (float)(terms + (r->level == 4 ? slack / checked_eps : 0));
        }
    }
    free(w);
    hone_graph_destroy(g);
}
static void check_by(const node_row *r, hone_value *(*input)(const hone_graph *, int), double eps) {
    char text[1024];
    make(r, text, sizeof text);
    checked = r, checked_eps = eps;
    EACH_LEVEL_OF(hone_bits_best())
    if (!twin_check_by(text, input, node_terms, eps, "bits")) fail_msg("not by its kernels: %s", text);
}
static void check(const node_row *r) { check_by(r, twin_input, ROUNDING); }
static hone_value *half_input(const hone_graph *g, int k) {
    const hone_var *v = g->var.at + g->in.at[k];
    hone_value *x;
    assert_int_equal(hone_value_tensor(v->dtype, v->dim, v->rank, &x), HONE_OK);
    for (int64_t q = 0; q < hone_value_count(x); q++)
        hone_dtype_store(v->dtype, (char *)x->data + q * hone_dtypes[v->dtype].bytes, HONE_F32,
                         (hone_scalar){.f32 = number()}, false);
    return x;
}
static void nodes(void **state) {
    (void)state;
    const char *zeros[] = {"", "u8", "f32"};
    for (int bits = 2; bits <= 8; bits *= 2)
        for (int block = 16; block <= 256; block *= 2)
            for (int z = 0; z < 3; z++)
                for (int level = 0; level <= 4; level += 4) {
                    const int k = block * draw(1, SLOW ? 2 : 4) - (draw(0, 1) ? draw(0, block - 1) : 0);
                    const node_row r = {bits,
                                        block,
                                        k,
                                        draw(2, SLOW ? 20 : 70), /* a single column is left to tile code */
                                        draw(0, 2) ? draw(1, 9) : 1,
                                        level,
                                        zeros[z],
                                        "f32",
                                        draw(0, 1)   ? "y = Relu(v);"
                                        : draw(0, 1) ? "y = Add(v, bias);"
                                                     : "y = Neg(v);"};
                    check(&r);
                }
    check(&(node_row){4, 32, 96, 33, 1, 4, "", "f32", "y = Identity(v);"});
    check(&(node_row){4, 32, 96, 33, 1, 4, "u8", "f32", "y = Identity(v);"});
    /* several pieces of K, several tiles of rows */
    check(&(node_row){4, 32, 2080, 20, SLOW ? 3 : 131, 4, "u8", "f32", "y = Identity(v);"});
    check(&(node_row){8, 32, 1056, 20, SLOW ? 3 : 131, 0, "u8", "f32", "y = Identity(v);"});
    /* several rows: in bands of 8 bits, and as floats; panels that end anywhere, pieces of K */
    for (int bits = 2; bits <= 8; bits *= 2)
        for (int z = 0; z < 3; z++)
            for (int level = 0; level <= 4; level += 4) {
                const int block = 16 << draw(0, 4),
                          k = draw(0, 1) ? draw(1, 2 * block) : draw(513, SLOW ? 600 : 800);
                check(&(node_row){bits, block, k, draw(2, SLOW ? 30 : 60),
                                  draw(0, 1) ? draw(2, SLOW ? 14 : 20) : draw(SLOW ? 2 : 28, SLOW ? 14 : 40),
                                  level, zeros[z], "f32", "y = Identity(v);"});
            }
    /* two tiles of rows */
    check(&(node_row){4, 16, 40, 50, SLOW ? 13 : 270, 0, "u8", "f32", "y = Identity(v);"});
}
static void halves(void **state) {
    (void)state;
    const char *types[] = {"f16", "bf16"};
    for (int t = 0; t < 2; t++)
        for (int bits = 2; bits <= 8; bits *= 2)
            for (int z = 0; z < 3; z++) {
                const node_row r = {bits,
                                    32,
                                    70,
                                    21,
                                    draw(0, 1) ? draw(1, 5) : draw(6, 19),
                                    draw(0, 1) * 4,
                                    z == 0   ? ""
                                    : z == 1 ? "u8"
                                             : types[t],
                                    types[t],
                                    "y = Identity(v);"};
                check_by(&r, half_input, t ? 0x1p-7 : 0x1p-10); /* both round once, at the end */
            }
}
static int odd_first;
static hone_value *odd_input(const hone_graph *g, int k) { /* a row of each kind, from odd_first on */
    const float odd[] = {INFINITY, -INFINITY, NAN, 1e-30F, 3.0F, -0.0F};
    hone_value *x = twin_input(g, k);
    float *v = x->data;
    const int64_t n = x->dim[x->rank - 1];
    for (int64_t r = 0; r < hone_value_count(x) / n; r++) {
        const int64_t kind = (r + odd_first) % 7;
        if (kind == 6) continue;
        if (kind == 3)
            for (int64_t q = 0; q < n; q++) v[r * n + q] *= 1e-36F;
        v[r * n + (11 + 29 * odd_first + r) % n] = odd[kind];
    }
    return x;
}
/* Infinities and NaN where the definition has them; tiny rows within roundings of their own terms. */
static void odd(void **state) {
    (void)state;
    for (int bits = 2; bits <= 8; bits *= 2)
        for (int m = 1; m <= 19; m += 6)
            for (int level = 0; level <= 4; level += 4)
                for (int again = 0; again < (m == 1 ? 7 : 1); again++) {
                    const node_row r = {
                        bits, 32, 90, 19, m, level, again & 1 ? "u8" : "", "f32", "y = Identity(v);"};
                    odd_first = again;
                    check_by(&r, odd_input, ROUNDING);
                }
}
/* ---- weights that a DequantizeLinear makes floats ---- */
typedef struct {
    const char *type, *op, *zero; /* zero: there is one */
    int block, k, n, m;           /* block 0: a scale a column; -1: one for all */
} pair_row;
static void pair_text(const pair_row *r, char *text, size_t room_of) {
    const bool by_n = strcmp(r->op, "MatMul") != 0; /* weights [N, K] */
    const int high = r->type[0] == 'u' ? (1 << (r->type[1] - '0')) - 1 : (1 << (r->type[1] - '1')) - 1,
              low = r->type[0] == 'u' ? 0 : -high - 1;
    const int blocks = r->block > 0 ? (r->k + r->block - 1) / r->block : 0;
    char scale[64], zero[128] = "", how[64] = "", root[192];
    if (blocks) snprintf(scale, sizeof scale, "[%d, %d]", by_n ? r->n : blocks, by_n ? blocks : r->n);
    else snprintf(scale, sizeof scale, r->block ? "[]" : "[%d]", r->n);
    if (*r->zero) snprintf(zero, sizeof zero, "z: %s%s = random(3, %d, %d); ", r->type, scale, low, high);
    if (blocks) snprintf(how, sizeof how, "{axis: %d, block_size: %d}", by_n, r->block);
    else snprintf(how, sizeof how, "{axis: %d}", !by_n);
    snprintf(root, sizeof root,
             !strcmp(r->op, "MatMul") ? "y = MatMul(x, d);"
             : !strcmp(r->op, "Gemm") ? "c: f32[%d] = random(4, -1, 1); y = Gemm(x, d, c) {transB: 1};"
                                      : "t = Transpose(d) {perm: [1, 0]}; y = MatMul(x, t);",
             r->n);
    snprintf(text, room_of,
             "graph g (x: f32[%d, %d]) -> y { w: %s[%d, %d] = random(1, %d, %d); s: f32%s = random(2, -0.1, "
             "0.1); %sd = "
             "DequantizeLinear(w, s%s) %s; %s }",
             r->m, r->k, r->type, by_n ? r->n : r->k, by_n ? r->k : r->n, low, high, scale, zero,
             *r->zero ? ", z" : "", how, root);
}
static void pairs(void **state) {
    (void)state;
    const pair_row rows_of[] = {
        {"u4", "MatMul", "z", 32, 1030, 1024, 2},    {"i4", "MatMul", "", 64, 1024, 1024, 1},
        {"i4", "Transpose", "z", 16, 1024, 1025, 1}, {"u4", "Gemm", "", 128, 1100, 1000, 1},
        {"u2", "MatMul", "z", 16, 1040, 1024, 1},    {"i8", "MatMul", "z", 32, 1024, 1030, 1},
        {"u8", "Gemm", "z", 256, 1024, 1024, 1},     {"i4", "MatMul", "z", 0, 1050, 1000, 2},
        {"u4", "Gemm", "z", 0, 1024, 1024, 1},       {"i4", "MatMul", "", -1, 1024, 1024, 1},
    };
    for (size_t k = 0; k < sizeof rows_of / sizeof *rows_of; k += SLOW ? 3 : 1) {
        char text[1024];
        pair_text(rows_of + k, text, sizeof text);
        if (twin_check_terms(text, twin_input, ROUNDING, "bits") != 1)
            fail_msg("not by its kernels: %s", text);
    }
    const char *const texts[] = {
        /* small; read twice; 8 bits a column; blocks along N; a Transpose that is none */
        "graph g (x: f32[3, 64]) -> y { w: u4[64, 64] = random(1, 0, 15); s: f32[2, 64] = random(2, -0.1, "
        "0.1); "
        "d = DequantizeLinear(w, s) {axis: 0, block_size: 32}; y = MatMul(x, d); }",
        "graph g (x: f32[1, 1024]) -> y { w: u4[1024, 1024] = random(1, 0, 15); s: f32[32, 1024] = random(2, "
        "-0.1, 0.1); "
        "d = DequantizeLinear(w, s) {axis: 0, block_size: 32}; u = MatMul(x, d); y = MatMul(u, d); }",
        "graph g (x: f32[1, 1024]) -> y { w: i8[1024, 1024] = random(1, -128, 127); s: f32[1024] = random(2, "
        "-0.1, 0.1); "
        "d = DequantizeLinear(w, s) {axis: 1}; y = MatMul(x, d); }",
        "graph g (x: f32[1, 1024]) -> y { w: u4[1024, 1024] = random(1, 0, 15); s: f32[1024, 32] = random(2, "
        "-0.1, 0.1); "
        "d = DequantizeLinear(w, s) {axis: 1, block_size: 32}; y = MatMul(x, d); }",
        "graph g (x: f32[1, 1024]) -> y { w: u4[1024, 1024] = random(1, 0, 15); s: f32[1024, 32] = random(2, "
        "-0.1, 0.1); "
        "d = DequantizeLinear(w, s) {axis: 1, block_size: 32}; t = Transpose(d) {perm: [0, 1]}; y = "
        "MatMul(x, t); }"};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k += SLOW ? 4 : 1)
        assert_int_equal(twin_check_terms(texts[k], twin_input, ROUNDING, "bits"), 0);
}
/* What is not of that form is left to tile code: with g_idx, with blocks above 256, with weights that are
   computed. */
/* Weights are within 8 steps of their zero point, and steps within 0.1. */
static void others_terms(const char *text, hone_value *const *in, int n_in, hone_value **out) {
    (void)text, (void)n_in;
    const int64_t m = in[0]->dim[0], k = in[0]->dim[1], n = 9;
    assert_int_equal(hone_value_tensor(HONE_DTYPE_F32, (const int64_t[]){m, n}, 2, out), HONE_OK);
    for (int64_t i = 0; i < m; i++) {
        double terms = 0;
        for (int64_t q = 0; q < k; q++) terms += 8 * 0.1 * fabs(hone_value_number(in[0], i * k + q));
        for (int64_t j = 0; j < n; j++) ((float *)(*out)->data)[i * n + j] = (float)terms;
    }
}
static void others(void **state) {
    (void)state;
    const char *const texts[] = {
        "graph g (x: f32[3, 64]) -> y { b: u8[9, 2, 16] = random(1, 0, 255); s: f32[9, 2] = random(2, -0.1, "
        "0.1); i: i32[64] = random(3, "
        "0, 1); "
        "y = com.microsoft.MatMulNBits(x, b, s, _, i) {K: 64, N: 9, bits: 4, block_size: 32}; }",
        "graph g (x: f32[3, 600]) -> y { b: u8[9, 2, 256] = random(1, 0, 255); s: f32[9, 2] = random(2, "
        "-0.1, 0.1); "
        "y = com.microsoft.MatMulNBits(x, b, s) {K: 600, N: 9, bits: 4, block_size: 512}; }",
        "graph g (x: f32[3, 64], b: u8[9, 2, 16]) -> y { s: f32[9, 2] = random(2, -0.1, 0.1); "
        "y = com.microsoft.MatMulNBits(x, b, s) {K: 64, N: 9, bits: 4, block_size: 32}; }"};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        assert_int_equal(twin_check_by(texts[k], twin_input, others_terms, ROUNDING, "bits"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantizes), cmocka_unit_test(rows),  cmocka_unit_test(packed_rows),
        cmocka_unit_test(one),       cmocka_unit_test(bands), cmocka_unit_test(floats),
        cmocka_unit_test(unpacks),   cmocka_unit_test(nodes), cmocka_unit_test(halves),
        cmocka_unit_test(odd),       cmocka_unit_test(pairs), cmocka_unit_test(others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
