/* SPDX-License-Identifier: Apache-2.0
   8-bit products of rows that are multiplied where they lie: the kernels alone against plain sums, and
   convolutions, mostly of few columns, against the definition: odd pictures, pads,
   strides, dilations, groups, weights with zero points of their own; every CPU level, any number of
   threads. */
#include "twin.h"

#include "base/thread.h"

static void kernel_case(const hone_gemm_i8 *k, int64_t m, int64_t taps, int64_t piece, int n) {
    const int64_t groups = taps * piece / 4, wide = 16 * ((n + 15) / 16), stride = wide + draw(0, 5),
                  far = 97;
    const size_t size = (size_t)(m * far + taps * 61 + piece);
    uint8_t *a = malloc(size), *b = malloc((size_t)(groups * 4 * k->nr)), *beyond = malloc((size_t)piece);
    int64_t *row = malloc(sizeof *row * (size_t)m), at[32];
    uint32_t *outside = malloc(sizeof *outside * (size_t)m);
    int32_t *c = malloc(sizeof *c * (size_t)((m + 1) * stride));
    assert_true(a && b && beyond && row && outside && c);
    for (size_t i = 0; i < size; i++) a[i] = (uint8_t)draw(0, 255);
    for (int64_t i = 0; i < groups * 4 * k->nr; i++) b[i] = (uint8_t)draw(0, 255);
    for (int64_t i = 0; i < piece; i++) beyond[i] = (uint8_t)draw(0, 255);
    for (int64_t t = 0; t < taps; t++) at[t] = 61 * ((t * 5) % taps); /* in any order */
    for (int64_t i = 0; i < m; i++)
        row[i] = far * ((m - 1 - i + m / 2) % m), outside[i] = draw(0, 2) ? 0 : (uint32_t)draw(0, 1 << 30);
    for (int64_t i = 0; i < (m + 1) * stride; i++) c[i] = 1234567;
    const uint8_t flip = draw(0, 1) ? 0x80 : 0;
    const hone_gemm_i8_indirect g = {m, taps, piece, a, row, at, draw(0, 3) ? outside : NULL, beyond, flip};
    k->run_indirect(&g, b, n, c, stride);
    for (int64_t i = 0; i <= m; i++)
        for (int64_t j = 0; j < stride; j++) {
            int32_t want = 1234567;
            for (int64_t p = 0; p < taps * piece && i < m && j < wide; p++) {
                const uint8_t *from =
                    g.outside && outside[i] >> p / piece & 1 ? beyond : a + row[i] + at[p / piece];
                const int byte = from[p % piece] ^ flip;
                want = (p ? want : 0) +
                       (k->run_u ? byte : (int8_t)byte) * (int8_t)b[(p / 4 * k->nr + j) * 4 + p % 4];
            }
            if (j < n || j >= wide || i == m) /* what is rounded up is anything's */
                if (c[i * stride + j] != want)
                    fail_msg("%s: %d rows, %d taps of %d, %d columns: %d at %d, %d, not %d", k->name, (int)m,
                             (int)taps, (int)piece, n, c[i * stride + j], (int)i, (int)j, want);
        }
    free(a), free(b), free(beyond), free(row), free(outside), free(c);
}
static void kernels(void **state) {
    (void)state;
    for (const hone_gemm_i8 *k = hone_gemm_i8_indirect_list; k->name; k++) {
        if (k->cpu & ~hone_cpu()) continue;
        for (int64_t piece = 4; piece <= 60; piece += 4)
            for (int64_t m = 1; m < 40; m += draw(1, 3))
                kernel_case(k, m, draw(1, 32), piece, draw(1, k->nr));
        for (int n = 1; n <= k->nr; n++) kernel_case(k, 9, 9, 16, n);
    }
}
static void convolutions(void **state) {
    (void)state;
    static char text[2048];
    static const char *const types[] = {"u8", "i8"};
    EACH_LEVEL for (int round = 0; round < twin_rounds(8, 20, 40); round++) {
        const int groups = draw(0, 2) ? 1 : draw(2, 3), deep = 4 * draw(2, 13),
                  columns = draw(1, draw(0, 3) ? 50 : 150), kh = draw(1, 5), kw = draw(1, 3);
        const char *t = types[round % 2], *u = types[round / 2 % 2];
        snprintf(text, sizeof text,
                 "graph g (x: %s[2, %d, %d, %d]) -> y { s: f32[] = {0.02}; z: %s[] = {%d}; w: %s[%d, %d, %d, "
                 "%d] = random(7, %d, %d); v: "
                 "%s[] = {%d}; r: f32[] = {0.9}; "
                 "o: i32[%d] = random(5, -900, 900); e: i8[%d, 1, 1, 1] = random(1, 1, 1); n: i8[] = {0}; "
                 "one: f32[] = {1}; "
                 "a = QLinearConv(x, one, z, e, one, n, one, z) {group: %d}; y = QLinearConv(a, s, z, w, s, "
                 "v, r, z, o) {group: %d, "
                 "strides: [%d, %d], "
                 "dilations: [%d, 1], pads: [%d, %d, %d, %d]}; }",
                 t, groups * deep, draw(9, 13), draw(7, 15), t, draw(0, 100), u, groups * columns, deep, kh,
                 kw, round / 2 % 2 ? -127 : 0, round / 2 % 2 ? 127 : 255, u, draw(0, 3) ? 0 : draw(1, 90),
                 groups * columns, groups * deep, groups * deep, groups, draw(1, 2), draw(1, 3), draw(1, 2),
                 draw(0, kh - 1), draw(0, kw - 1), draw(0, kh - 1), draw(0, kw - 1));
        twin_check(text, twin_input, 0, 0, "contract int8");
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels), cmocka_unit_test(convolutions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
