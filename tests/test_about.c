/* SPDX-License-Identifier: Apache-2.0
   What a model file says of itself: report "file", of good files, and of bytes that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hone/hone.h"
#include "model/onnx.h"
#include "onnx_write.h"

static msg value(const char *name, msg type) {
    msg v = {0};
    text(&v, 1, name), sub(&v, 2, type);
    return v;
}
static msg tensor_type(int element, const char *const *dims, int n) {
    msg shape = {0}, tensor = {0}, type = {0};
    number(&tensor, 1, element);
    for (int k = 0; k < n; k++) {
        msg dim = {0};
        if (dims[k] && dims[k][0] >= '0' && dims[k][0] <= '9') number(&dim, 1, atoll(dims[k]));
        else if (dims[k]) text(&dim, 2, dims[k]);
        sub(&shape, 1, dim);
    }
    if (n >= 0) sub(&tensor, 2, shape);
    else free(shape.at);
    sub(&type, 1, tensor);
    return type;
}
static msg list_type(int kind, int key, msg inner) {
    msg list = {0}, type = {0};
    if (key) number(&list, 1, key);
    sub(&list, key ? 2 : 1, inner), sub(&type, kind, list);
    return type;
}
static msg model(void) {
    msg m = {0}, g = {0}, n = {0}, o = {0}, p = {0};
    number(&m, 1, 8), text(&m, 2, "pen"), text(&m, 3, "1.2"), text(&m, 4, "com.example"), number(&m, 5, 7),
        text(&m, 6, "a \"model\"");
    text(&n, 1, "x"), text(&n, 2, "y"), text(&n, 4, "Relu");
    sub(&g, 1, n), text(&g, 2, "relu"), text(&g, 10, "of\nthings");
    sub(&g, 11, value("x", tensor_type(1, (const char *const[]){"batch", "3", NULL}, 3)));
    sub(&g, 12, value("y", tensor_type(1, NULL, -1)));
    sub(&m, 7, g);
    text(&o, 1, ""), number(&o, 2, 17), sub(&m, 8, o);
    text(&p, 1, "names"), text(&p, 2, "cat\ndog"), sub(&m, 14, p);
    return m;
}
static void of_a_model(void **state) {
    (void)state;
    msg m = model();
    hone_model *loaded = NULL;
    if (hone_model_load_memory(m.at, m.n, &loaded)) fail_msg("%s", hone_error());
    free(m.at);
    char *said = NULL;
    assert_int_equal(hone_model_report(loaded, "file", &said), HONE_OK);
    assert_string_equal(
        said, "{\"ir_version\": 8, \"model_version\": 7, \"producer_name\": \"pen\", \"producer_version\": "
              "\"1.2\", "
              "\"domain\": \"com.example\", \"doc_string\": \"a \\\"model\\\"\", \"graph_name\": \"relu\", "
              "\"graph_doc_string\": \"of\\nthings\", \"opsets\": [[\"\", 17]], \"metadata\": [[\"names\", "
              "\"cat\\ndog\"]], \"inputs\": [{\"name\": \"x\", \"type\": \"tensor(float)\", \"dims\": "
              "[\"batch\", 3, "
              "null]}], \"outputs\": [{\"name\": \"y\", \"type\": \"tensor(float)\", \"dims\": null}]}");
    hone_text_release(said);
    hone_model_free(loaded);
}
static void of_types(void **state) {
    (void)state;
    static const struct {
        const char *name, *type, *dims;
    } want[] = {{"a", "seq(map(int64,tensor(float)))", "null"},
                {"b", "optional(seq(tensor(string)))", "null"},
                {"c", "optional(tensor(int4))", "[2]"},
                {"d", "tensor(undefined)", "null"}};
    msg m = {0}, g = {0};
    const char *const two[] = {"2"};
    sub(&g, 11, value("a", list_type(4, 0, list_type(5, 7, tensor_type(1, NULL, -1)))));
    sub(&g, 11, value("b", list_type(9, 0, list_type(4, 0, tensor_type(8, NULL, -1)))));
    sub(&g, 11, value("c", list_type(9, 0, tensor_type(22, two, 1))));
    sub(&g, 11, value("d", tensor_type(99, NULL, -1)));
    sub(&m, 7, g);
    hone_text t = {0};
    hone_onnx_about(m.at, m.n, &t);
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        char line[128];
        snprintf(line, sizeof line, "{\"name\": \"%s\", \"type\": \"%s\", \"dims\": %s}", want[k].name,
                 want[k].type, want[k].dims);
        if (!strstr(t.text, line)) fail_msg("%s is not in %s", line, t.text);
    }
    hone_text_free(&t), free(m.at);
}
/* cut anywhere, and with any byte wrong: an answer, and no fault */
static void of_what_is_none(void **state) {
    (void)state;
    msg m = model();
    for (size_t cut = 0; cut < m.n; cut++)
        for (int wrong = 0; wrong < 3; wrong++) {
            uint8_t *bytes = malloc(m.n);
            assert_non_null(bytes);
            memcpy(bytes, m.at, m.n);
            if (wrong) bytes[cut] ^= wrong == 1 ? 0xff : 0x07;
            hone_text t = {0};
            hone_onnx_about(bytes, wrong ? m.n : cut, &t);
            assert_true(!t.failed && t.n > 2 && t.text[0] == '{' && t.text[t.n - 1] == '}');
            hone_text_free(&t), free(bytes);
        }
    free(m.at);
    hone_text t = {0};
    hone_onnx_about(NULL, 0, &t);
    assert_non_null(strstr(t.text, "\"ir_version\": 0"));
    hone_text_free(&t);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_a_model), cmocka_unit_test(of_types),
                                       cmocka_unit_test(of_what_is_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
