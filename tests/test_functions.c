/* SPDX-License-Identifier: Apache-2.0
   Host ops that devices run themselves (device/functions): TopK, NonZero, Compress, NonMaxSuppression and
   Unique on a device against the host's own functions, bit for bit: all types, odd sizes, rows longer than a
   work-group sorts, ties, NaN, zeros of both signs, both directions, results of no elements, and ops behind
   them that need their sizes. On OpenCL, or what HONE_TEST_DEVICE names; skipped where there is none. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/cuda/nvrtc.h"
#include "device/functions/functions.h"
#include "hone/hone.h"
#include "onnx_write.h"
#include "random.h"

static const char *device(void) { return getenv("HONE_TEST_DEVICE") ? getenv("HONE_TEST_DEVICE") : "opencl"; }
static uint64_t state = 88172645463325252u;
static uint64_t draw(uint64_t below) { return next_random(&state) % below; }
static const struct {
    hone_dtype type;
    int onnx, bytes;
    char kind; /* f: float, i: integer, b: bool */
} types[] = {{HONE_DTYPE_F32, 1, 4, 'f'},  {HONE_DTYPE_I64, 7, 8, 'i'},   {HONE_DTYPE_U8, 2, 1, 'i'},
             {HONE_DTYPE_F16, 10, 2, 'f'}, {HONE_DTYPE_BF16, 16, 2, 'f'}, {HONE_DTYPE_I32, 6, 4, 'i'},
             {HONE_DTYPE_F64, 11, 8, 'f'}, {HONE_DTYPE_I8, 3, 1, 'i'},    {HONE_DTYPE_U64, 13, 8, 'i'},
             {HONE_DTYPE_U16, 4, 2, 'i'},  {HONE_DTYPE_I16, 5, 2, 'i'},   {HONE_DTYPE_U32, 12, 4, 'i'},
             {HONE_DTYPE_BOOL, 9, 1, 'b'}};
enum { TYPES = sizeof types / sizeof *types };

/* Numbers of few values, so that many are equal, with specials among them: by bits, so that every type has
   its own. */
static hone_value *tensor(int t, const char *dims, int special) {
    int64_t dim[8];
    int rank = 0;
    char copy[64];
    hone_value *v = NULL;
    snprintf(copy, sizeof copy, "%s", dims);
    for (char *w = strtok(copy, " "); w; w = strtok(NULL, " ")) dim[rank++] = atoll(w);
    assert_int_equal(hone_tensor_create(types[t].type, dim, rank, &v), HONE_OK);
    unsigned char *at = hone_value_data(v);
    for (int64_t k = 0; k < hone_value_elements(v); k++, at += types[t].bytes) {
        if (types[t].kind == 'b') *at = (unsigned char)(draw(3) == 0);
        else if (types[t].kind == 'i') {
            const uint64_t n = special && draw(9) == 0 ? (uint64_t)1 << (8 * types[t].bytes - 1)
                               : draw(40) < 10         ? 0
                                                       : draw(60) - 20;
            memcpy(at, &n, (size_t)types[t].bytes);
        } else {
            const float small = (float)((int)draw(50) - 25) / 4;
            uint32_t bits;
            memcpy(&bits, &small, 4);
            uint64_t all = bits;
            if (types[t].type == HONE_DTYPE_F64) {
                const double d = (double)small;
                memcpy(&all, &d, 8);
            }
            if (types[t].bytes == 2)
                all = types[t].type == HONE_DTYPE_BF16
                          ? bits >> 16
                          : (bits >> 16 & 0x8000) | (draw(30) * 300 + 8000) * (small != 0);
            const int top = 8 * types[t].bytes - 1;
            const uint64_t infinity = types[t].type == HONE_DTYPE_F16    ? 0x7c00
                                      : types[t].type == HONE_DTYPE_BF16 ? 0x7f80
                                      : types[t].type == HONE_DTYPE_F64  ? 0x7ff0000000000000
                                                                         : 0x7f800000;
            const uint64_t quiet = (infinity & -infinity) >> 1;
            if (special && draw(8) == 0)
                all = ((uint64_t[]){infinity, infinity | quiet, 0, 5, infinity | quiet | 3})[draw(5)] |
                      draw(2) << top;
            memcpy(at, &all, (size_t)types[t].bytes);
        }
    }
    return v;
}
static void add_typed(msg *g, const char *name, int type) { sub(g, 12, value_info(name, type, NULL)); }
static hone_model *load(msg g) {
    msg m = model_of(g, 18);
    hone_model *out = NULL;
    if (hone_model_load_memory(m.at, m.n, &out)) fail_msg("%s", hone_error());
    free(m.at);
    return out;
}
static hone_session *session(const hone_model *m, const char *where) {
    hone_options o;
    hone_session *out = NULL;
    hone_options_default(&o);
    o.device = where, o.threads = 1;
    return hone_session_create(m, &o, &out) ? NULL : out;
}
static bool there(void) {
    msg g = {0};
    add_input(&g, "x", 1, "1"), add_node(&g, node("Neg", "x", "y")), add_output(&g, "y");
    hone_model *m = load(g);
    hone_session *s = session(m, device());
    const bool is = s != NULL;
    hone_session_free(s), hone_model_free(m);
    if (!is) print_message("SKIPPED: there is no device '%s'\n", device());
    return is;
}
/* Equal bits; a NaN may be another one, since what is strided is copied by the device, in f16 by way of
   f32. */
static bool equal(const hone_value *a, const hone_value *b) {
    const int64_t n = hone_value_elements(a);
    const size_t bytes = n ? hone_value_bytes(a) / (size_t)n : 0;
    const char *p = hone_value_data((hone_value *)a), *q = hone_value_data((hone_value *)b);
    for (int64_t k = 0; k < n; k++)
        if (memcmp(p + (size_t)k * bytes, q + (size_t)k * bytes, bytes) &&
            !(isnan(hone_value_number(a, k)) && isnan(hone_value_number(b, k))))
            return false;
    return true;
}
/* Here and there, twice: equal bits. taken: the device's function must have run. */
static void same(msg g, hone_value **in, int n_in, int n_out, bool taken, const char *what) {
    hone_model *m = load(g);
    hone_session *a = session(m, device()), *b = session(m, NULL);
    for (int round = 0; round < 2; round++) {
        hone_value *x[4] = {0}, *y[4] = {0};
        if (hone_session_run(a, in, x)) fail_msg("%s: %s", what, hone_error());
        if (hone_session_run(b, in, y)) fail_msg("%s: the CPU: %s", what, hone_error());
        for (int k = 0; k < n_out; k++) {
            if (hone_value_rank(x[k]) != hone_value_rank(y[k]) ||
                hone_value_dtype(x[k]) != hone_value_dtype(y[k]) ||
                memcmp(hone_value_dims(x[k]), hone_value_dims(y[k]),
                       sizeof(int64_t) * (size_t)hone_value_rank(x[k])))
                fail_msg("%s: output %d has another shape or type: %lld elements, not %lld", what, k,
                         (long long)hone_value_elements(x[k]), (long long)hone_value_elements(y[k]));
            if (!equal(x[k], y[k]))
                fail_msg("%s: output %d (type %d, %lld elements) differs", what, k,
                         (int)hone_value_dtype(x[k]), (long long)hone_value_elements(x[k]));
            hone_value_free(x[k]), hone_value_free(y[k]);
        }
    }
    char *steps = NULL;
    assert_int_equal(hone_session_report(a, "steps", &steps), HONE_OK);
    if (taken != (strstr(steps, "\"function\"") != NULL))
        fail_msg("%s: %s", what, taken ? "it ran on the host" : "it ran on the device");
    hone_text_release(steps);
    hone_session_free(a), hone_session_free(b), hone_model_free(m);
    for (int k = 0; k < n_in; k++) hone_value_free(in[k]);
}

static void topk_one(int t, const char *dims, int axis, int64_t k, int largest, bool values, bool places) {
    msg g = {0};
    char what[120];
    snprintf(what, sizeof what, "TopK of type %d, %s, axis %d, k %lld, largest %d", types[t].onnx, dims, axis,
             (long long)k, largest);
    add_input(&g, "x", types[t].onnx, dims);
    sub(&g, 5, ints("k", "1", &k, 1));
    add_node(&g, with(with(with(node("TopK", "x k",
                                     values && places ? "v p"
                                     : values         ? "v -"
                                                      : "- p"),
                                attr_int("axis", axis)),
                           attr_int("largest", largest)),
                      attr_int("sorted", (int64_t)draw(2))));
    if (values) add_typed(&g, "v", types[t].onnx);
    if (places) add_typed(&g, "p", 7);
    same(g, (hone_value *[]){tensor(t, dims, 1)}, 1, values + places, k > 0, what);
}
static void topk(void **unused) {
    (void)unused;
    if (!there()) skip();
    for (int t = 0; t < TYPES - 1; t++) topk_one(t, "3 17", -1, 5, t % 2, true, true);
    topk_one(0, "1", 0, 1, 1, true, true);
    topk_one(0, "4 1 3", 1, 1, 0, true, true);
    topk_one(0, "2 33 5", 1, 33, 1, true, true);
    topk_one(0, "2 33 5", 1, 0, 1, true, true);
    topk_one(0, "5 7", 0, 3, 0, true, false);
    topk_one(0, "5 7", 0, 3, 1, false, true);
    topk_one(0, "2 2048", 1, 2048, 1, true, true);
    topk_one(0, "2 2049", 1, 1024, 0, true, true);
    topk_one(0, "3 9001", 1, 7, 1, true, true);
    topk_one(0, "2 9001 2", 1, 1000, 0, true, true);
    topk_one(1, "70001", 0, 100, 1, true, true);
    topk_one(0, "2 5000", 1, 3000, 1, true, true); /* sorted in memory */
    topk_one(0, "3 9001 2", 1, 9001, 0, true, true);
}
static void nonzero(void **unused) {
    (void)unused;
    if (!there()) skip();
    for (int t = 0; t < TYPES; t++) {
        static const char *const shapes[] = {"1", "7", "3 5", "2 1 4", "5000", "3 2 7 301", "2049 2"};
        for (int k = 0; k < 7; k++) {
            msg g = {0};
            if (t && k != t % 7 && k != 2) continue;
            add_input(&g, "x", types[t].onnx, shapes[k]);
            add_node(&g, node("NonZero", "x", "y"));
            add_typed(&g, "y", 7);
            if (k % 2) { /* and something that needs its size */
                add_node(&g, node("Transpose", "y", "z"));
                add_node(&g, node("Abs", "z", "w"));
                add_typed(&g, "w", 7);
            }
            same(g, (hone_value *[]){tensor(t, shapes[k], 1)}, 1, 1 + k % 2, true, shapes[k]);
        }
    }
    for (int full = 0; full < 2; full++) { /* none of them, all of them */
        msg g = {0};
        hone_value *x = tensor(0, "40 3", 0);
        for (int k = 0; k < 120; k++) ((float *)hone_value_data(x))[k] = full ? -1 : 0;
        add_input(&g, "x", 1, "40 3");
        add_node(&g, node("NonZero", "x", "y"));
        add_node(&g, node("Neg", "y", "z"));
        add_typed(&g, "z", 7);
        same(g, &x, 1, 1, true, full ? "all" : "none");
    }
}
static void compress(void **unused) {
    (void)unused;
    if (!there()) skip();
    static const struct {
        const char *x, *which;
        int axis; /* 9: none */
        bool taken;
    } cases[] = {{"7", "7", 0, true},         {"3 5", "2", 0, true},         {"3 5", "5", 1, true},
                 {"3 5 2", "4", -2, true},    {"3 5 2", "30", 9, true},      {"3 5 2", "29", 9, true},
                 {"4000 3", "4000", 0, true}, {"2 3000 5", "2999", 1, true}, {"3 0", "3", 0, false},
                 {"1", "1", 0, true}};
    for (int t = 0; t < TYPES; t++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            if (t && (int)k != t % 10 && k != 3) continue;
            msg g = {0}, n = node("Compress", "x which", "y");
            add_input(&g, "x", types[t].onnx, cases[k].x);
            add_input(&g, "which", 9, cases[k].which);
            add_node(&g, cases[k].axis == 9 ? n : with(n, attr_int("axis", cases[k].axis)));
            add_typed(&g, "y", types[t].onnx);
            same(g, (hone_value *[]){tensor(t, cases[k].x, 1), tensor(TYPES - 1, cases[k].which, 0)}, 2, 1,
                 cases[k].taken, cases[k].x);
        }
}
static void unique(void **unused) {
    (void)unused;
    if (!there()) skip();
    static const char *const shapes[] = {"1", "2", "13", "4 9", "3000", "70001"}, *const outs[] = {
                                                                                      "y f i c", "y", "y - i",
                                                                                      "y f", "y - - c"};
    static const int n_outs[] = {4, 1, 2, 2, 2};
    for (int t = 0; t < TYPES; t++)
        for (int k = 0; k < 6; k++) {
            msg g = {0};
            const int o = t ? 0 : k % 5;
            if (t && k != 3) continue;
            add_input(&g, "x", types[t].onnx, shapes[k]);
            add_node(&g, node("Unique", "x", outs[o]));
            for (const char *w = outs[o]; *w; w++)
                if (*w != ' ' && *w != '-') add_typed(&g, (char[]){*w, 0}, *w == 'y' ? types[t].onnx : 7);
            same(g, (hone_value *[]){tensor(t, shapes[k], 1)}, 1, n_outs[o], true, shapes[k]);
        }
    msg g = {0}; /* by first appearance: the host's */
    add_input(&g, "x", 1, "30");
    add_node(&g, with(node("Unique", "x", "y"), attr_int("sorted", 0)));
    add_output(&g, "y");
    same(g, (hone_value *[]){tensor(0, "30", 0)}, 1, 1, false, "unsorted");
}
static void nms_one(int batches, int classes, int n, int64_t most, float iou, float least, int center,
                    int thresholds, bool special) {
    msg g = {0};
    char boxes[40], scores[40], what[160], ins[80] = "boxes scores";
    snprintf(boxes, sizeof boxes, "%d %d 4", batches, n),
        snprintf(scores, sizeof scores, "%d %d %d", batches, classes, n);
    snprintf(what, sizeof what, "NonMaxSuppression of %s, most %lld, iou %g, least %g, center %d", scores,
             (long long)most, (double)iou, (double)least, center);
    if (thresholds > 0) sub(&g, 5, ints("most", "", &most, 1)), strcat(ins, " most");
    if (thresholds > 1) sub(&g, 5, floats("iou", "", &iou, 1)), strcat(ins, " iou");
    if (thresholds > 2) sub(&g, 5, floats("least", "", &least, 1)), strcat(ins, " least");
    add_input(&g, "boxes", 1, boxes), add_input(&g, "scores", 1, scores);
    add_node(&g, with(node("NonMaxSuppression", ins, "y"), attr_int("center_point_box", center)));
    add_typed(&g, "y", 7);
    hone_value *b = tensor(0, boxes, 0), *s = tensor(0, scores, special);
    for (int k = 0; k < batches * n; k++)
        for (int q = 0; q < 4; q++)
            ((float *)hone_value_data(b))[k * 4 + q] =
                (float)draw(100) / 7 + (q > 1 ? (float)draw(40) / 5 : 0);
    if (special && n > 3) ((float *)hone_value_data(b))[5] = NAN, ((float *)hone_value_data(b))[8] = INFINITY;
    same(g, (hone_value *[]){b, s}, 2, 1, thresholds > 0 && most > 0, what);
}
static void nms(void **unused) {
    (void)unused;
    if (!there()) skip();
    nms_one(1, 1, 1, 5, 0.5f, 0, 0, 3, false);
    nms_one(2, 3, 37, 5, 0.5f, 0, 0, 3, false);
    nms_one(2, 3, 37, 50, 0.3f, -100, 1, 3, true);
    nms_one(1, 2, 300, 1000, 0.2f, 0, 0, 2, true);
    nms_one(1, 2, 300, 1000, 0, 0, 0, 1, true);
    nms_one(1, 2, 600, 20, 1, 1e9f, 0, 3, true); /* nothing is good enough */
    nms_one(1, 1, 2500, 100, 0.4f, -1, 0, 3, true);
    nms_one(1, 2, 9, 0, 0.5f, 0, 0, 3, false);
    nms_one(1, 1, 50, 9, 0.5f, -INFINITY, 0, 3, true);
}
/* ---- the same texts as CUDA C, by NVRTC, without a GPU ---- */
static hone_vec(char *) known; /* names of kernels */
static void put_texts(const char *op, hone_attr *attr, int n_attr, hone_fact *fact, int n_in, int n_out,
                      hone_text *text, int *kernels) {
    hone_kernel_target target = {
        .lang = HONE_LANG_CUDA, .f64 = true, .arg_bytes = 4000, .wish = {.max_threads = 256, .units = 8}};
    hone_vid id[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const hone_library *library = NULL;
    assert_int_equal(hone_library_builtin(&library), HONE_OK);
    hone_node n = {.program = hone_library_find(library, "", op),
                   .name = op,
                   .attr = attr,
                   .n_attr = n_attr,
                   .n_in = n_in,
                   .n_out = n_out,
                   .in = id,
                   .out = id};
    int8_t counted[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
    hone_function_call c = {.of = &n, .in = fact, .out = fact + n_in, .counted = counted};
    hone_arena *a = hone_arena_create();
    hone_kernels k;
    assert_non_null(n.program);
    if (!hone_function_takes(&c)) fail_msg("%s is not taken", op);
    assert_int_equal(hone_function_make(a, &target, &c, &k), HONE_OK);
    for (int l = 0; l < k.n_launch; l++) {
        bool is = false;
        for (int q = 0; q < known.n && !is; q++) is = !strcmp(known.at[q], k.launch[l].name);
        if (is) continue;
        assert_true(hone_push(&known, strdup(k.launch[l].name)));
        hone_text_put(text, "%s", k.launch[l].text);
        ++*kernels;
    }
    hone_arena_destroy(a);
}
static void compiled(void **unused) {
    (void)unused;
    int major, minor, kernels = 0;
    hone_text text = {0};
    if (hone_nvrtc_version(&major, &minor)) skip();
    hone_kernel_prelude(&(hone_kernel_target){.lang = HONE_LANG_CUDA, .f64 = true}, false, &text);
    for (int t = 0; t < TYPES; t++) {
        const hone_dtype type = types[t].type;
        const hone_fact x = {.dtype = type, .rank = 2, .dim = {3, 5000}},
                        row = {.dtype = type, .rank = 1, .dim = {5000}};
        const hone_fact few = {.dtype = type, .rank = 2, .dim = {3, 7}},
                        many = {.dtype = type, .rank = 2, .dim = {3, 4000}};
        const hone_fact i64 = {.dtype = HONE_DTYPE_I64, .rank = 1, .dim = {1}},
                        which = {.dtype = HONE_DTYPE_BOOL, .rank = 1, .dim = {3}};
        hone_attr axis = {.name = "axis", .kind = HONE_ATTR_INT, .n = 1, .i = &(int64_t){0}};
        if (t < TYPES - 1) put_texts("TopK", NULL, 0, (hone_fact[]){x, i64, few, few}, 2, 2, &text, &kernels);
        if (t < TYPES - 1)
            put_texts("TopK", NULL, 0, (hone_fact[]){x, i64, many, many}, 2, 2, &text, &kernels);
        put_texts("NonZero", NULL, 0, (hone_fact[]){x, i64}, 1, 1, &text, &kernels);
        put_texts("Compress", &axis, 1, (hone_fact[]){x, which, i64}, 2, 1, &text, &kernels);
        put_texts("Unique", NULL, 0, (hone_fact[]){row, i64, i64, i64, i64}, 1, 4, &text, &kernels);
    }
    const int64_t most = 9;
    const hone_fact boxes = {.dtype = HONE_DTYPE_F32, .rank = 3, .dim = {1, 3000, 4}},
                    scores = {.dtype = HONE_DTYPE_F32, .rank = 3, .dim = {1, 2, 3000}};
    const hone_fact limit = {.dtype = HONE_DTYPE_I64, .rank = 0, .contents = &most, .n_content = 1};
    put_texts("NonMaxSuppression", NULL, 0, (hone_fact[]){boxes, scores, limit, limit}, 3, 1, &text,
              &kernels);
    assert_false(text.failed);
#ifdef __SANITIZE_ADDRESS__ /* whose look for leaks NVRTC's threads crash */
    enum { archs = 0 };
#else
    const int archs = getenv("HONE_TEST_ALL") ? 2 : 1; /* half a minute each */
#endif
    for (int k = 0; k < archs; k++) {
        void *cubin = NULL;
        size_t bytes = 0;
        if (hone_nvrtc_compile_exact(text.text, "functions", k ? "sm_80" : "sm_90a", &cubin, &bytes))
            fail_msg("%s", hone_fail_text());
        hone_free(cubin);
    }
    print_message("%d kernels printed, compiled by NVRTC %d.%d for %d of 2 architectures\n", kernels, major,
                  minor, archs);
    hone_text_free(&text);
    for (int k = 0; k < known.n; k++) free(known.at[k]);
    hone_vec_free(&known);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(topk),     cmocka_unit_test(nonzero),
                                       cmocka_unit_test(compress), cmocka_unit_test(unique),
                                       cmocka_unit_test(nms),      cmocka_unit_test(compiled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
