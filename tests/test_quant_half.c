/* SPDX-License-Identifier: Apache-2.0
   Models in halves (quant/half.c): which nodes run in them, what stays f32 and is named, and that the written
   file computes what the model did. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "quant_files.h"

static const char net[] = "graph g (x: f32[2, 3, 9, 9]) -> y, r { w: f32[8, 3, 3, 3] = random(1, -1, 1); b: "
                          "f32[8] = random(2, -1, 1); v: "
                          "f32[6, 8, 1, 1] = random(3, -1, 1); "
                          "m: f32[6, 5] = random(4, -1, 1); c = Conv(x, w, b); r = Relu(c); d = Conv(r, v); "
                          "p = GlobalAveragePool(d); f = "
                          "Flatten(p); q = MatMul(f, m); "
                          "y = Softmax(q) {axis: 1}; }";

static void runs(const char *precision, double within) {
    quant_files f = quant_files_open(net);
    char *report = NULL;
    quantized(&f, &(hone_quantizing){.form = precision}, &report);
    assert_non_null(strstr(report, "\"in_halves\": 3"));
    assert_non_null(strstr(report, "\"kept\": []"));
    assert_true(largest_difference(&f) <= within);
    /* Relu stands between two convolutions; it is an output, too, and that stays f32 */
    if (!strcmp(precision, "f16")) {
        assert_int_equal(count_of(f.to, "Relu"), 1);
        assert_int_equal(count_of(f.to, "Cast"), 5); /* into the first, r and d out, into MatMul and out */
    }
    hone_text_release(report);
    quant_files_close(&f);
}
static void f16(void **state) {
    (void)state;
    runs("f16", 2e-3);
}
static void bf16(void **state) {
    (void)state;
    runs("bf16", 2e-2);
}
static void beyond_f16(void **state) {
    (void)state;
    quant_files f = quant_files_open("graph g (x: f32[2, 4]) -> y { a: f32[4, 2] = {70000, 1, 2, 3, 4, 5, 6, "
                                     "7}; b: f32[2, 3] = {1, 2, 3, 4, 5, 6}; "
                                     "s: f32[3, 2] = {1e-8, 2e-8, -1e-8, 0, 0, 3e-8}; h = MatMul(x, a) ; k = "
                                     "MatMul(h, b) ; y = MatMul(k, s); }");
    char *report = NULL;
    quantized(&f, &(hone_quantizing){.form = "f16"}, &report);
    assert_non_null(strstr(report, "\"in_halves\": 1"));
    assert_non_null(strstr(report, "65504"));
    assert_non_null(strstr(report, "smallest normal"));
    assert_true(largest_difference(&f) <= 2e-3);
    hone_text_release(report);
    quantized(&f, &(hone_quantizing){.form = "bf16"}, &report); /* has room for all of them */
    assert_non_null(strstr(report, "\"in_halves\": 3"));
    hone_text_release(report);
    quant_files_close(&f);
}
static hone_status large(void *arg, int64_t k, hone_value **in) {
    (void)arg, (void)k;
    const int64_t dim[] = {2, 4};
    hone_status s = hone_value_tensor(HONE_DTYPE_F32, dim, 2, &in[0]);
    for (int i = 0; !s && i < 8; i++) ((float *)in[0]->data)[i] = 3000;
    return s;
}
static void samples_show_it(void **state) { /* 4 x 3000 x 2 x 2 is not beyond f16, and too near */
    (void)state;
    quant_files f = quant_files_open("graph g (x: f32[2, 4]) -> y { a: f32[4, 2] = {2, 2, 2, 2, 2, 2, 2, 2}; "
                                     "b: f32[2, 2] = {0.01, 0.01, 0.01, 0.01}; h = MatMul(x, a); "
                                     "t = Tanh(h); y = MatMul(t, b); }");
    char *report = NULL;
    quantized(&f, &(hone_quantizing){.form = "f16", .data = {.n = 1, .get = large}}, &report);
    assert_non_null(strstr(report, "on the samples"));
    assert_non_null(strstr(report, "\"in_halves\": 1"));
    hone_text_release(report);
    quant_files_close(&f);
}
static void nothing_to_do(void **state) {
    (void)state;
    quant_files f = quant_files_open("graph g (x: f32[2, 4]) -> y { y = Relu(x); }");
    assert_non_null(strstr(refused_quantized(&f, &(hone_quantizing){.form = "f16"}), "nothing to store"));
    assert_non_null(strstr(refused_quantized(&f, &(hone_quantizing){.form = "f17"}), "no form 'f17'"));
    quant_files_close(&f);
}
/* What lies in bodies is said, by whoever leaves it as it is and by whoever finds nothing else. */
static void bodies_are_named(void **state) {
    (void)state;
#define BRANCHES                                                                        \
    " {then_branch: graph t (;p: f32[2, 4], q: f32[4, 4]) -> r { r = MatMul(p, q); }, " \
    "else_branch: graph e (;p: f32[2, 4], q: f32[4, 4]) -> r { r = Relu(p); }}; "
    quant_files f = quant_files_open("graph g (c: bool[], x: f32[2, 4]) -> y { w: f32[4, 4] = random(1); "
                                     "y = If(c; x, w)" BRANCHES "}");
    static const char *const forms[] = {"f16", "dynamic"};
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
        assert_non_null(strstr(refused_quantized(&f, &(hone_quantizing){.form = forms[k]}),
                               "what lies in bodies stays f32: 1 in the bodies of If"));
    assert_non_null(strstr(refused_quantized(&f, &(hone_quantizing){.form = "weights"}), "no weights"));
    quant_files_close(&f);
    f = quant_files_open("graph g (c: bool[], x: f32[2, 4]) -> y { w: f32[4, 4] = random(1); "
                         "z = If(c; x, w)" BRANCHES "y = MatMul(z, w); }");
    char *report = NULL;
    quantized(&f, &(hone_quantizing){.form = "f16"}, &report);
    assert_non_null(strstr(report, "\"in_halves\": 1"));
    assert_non_null(strstr(strstr(report, "\"bodies\": [{"), "\"op\": \"If\", \"layers\": 1}]"));
    hone_text_release(report);
    quant_files_close(&f);
}
static void without_memory(void **state) {
    (void)state;
    quant_files f = quant_files_open(net);
    fails_without_memory(&f, &(hone_quantizing){.form = "f16"});
    quant_files_close(&f);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f16),
        cmocka_unit_test(bf16),
        cmocka_unit_test(beyond_f16),
        cmocka_unit_test(samples_show_it),
        cmocka_unit_test(nothing_to_do),
        cmocka_unit_test(bodies_are_named),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
