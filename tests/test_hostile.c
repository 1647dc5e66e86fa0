/* SPDX-License-Identifier: Apache-2.0
   Models that nobody meant well: what fuzzing found, rebuilt by code; then good models cut short, with bits
   flipped, and with fields changed so that the bytes stay a message. Each is loaded, compiled and run on
   small inputs under limits of time and memory: it must come back with an answer or a status. All changes
   come from fixed seeds. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../fuzz/feed.h"
#include "../fuzz/mutate.h"
#include "base/thread.h"
#include "onnx_write.h"
#include "random.h"
#include "rows.h"

enum { LONGEST_MS = 20000 }; /* for one model, on a slow and busy machine, under a sanitizer */

static void attempt(const void *data, size_t n, int interpret) {
    hone_model *m = NULL;
    uint64_t begun = hone_clock_ns();
    if (hone_model_load_memory(data, n, &m) == HONE_OK) feed_run(m, interpret);
    hone_model_free(m);
    if (hone_clock_ns() - begun > (uint64_t)LONGEST_MS * 1000000u)
        fail_msg("a model took longer than %d ms", LONGEST_MS);
}
static void attempt_msg(msg m) { /* takes m; by steps and by the definition */
    for (int k = 0; k < 2; k++) attempt(m.at, m.n, k);
    free(m.at);
}

/* ---- what fuzzing found -------------------------------------------------------------------------------- */
/* A graph without a single var: its table of names is empty too. */
static msg nothing(void) {
    msg g = {0};
    text(&g, 2, "empty");
    return model_of(g, 13);
}
/* Reshape to more elements than there are: read past its input. */
static msg reshape_grows(void) {
    msg g = {0};
    add_input(&g, "x", 1, "2 3 4");
    add_input(&g, "shape", 7, "2"); /* feed.h gives 0 and 5: 2 x 5 of 24 */
    add_node(&g, node("Reshape", "x shape", "y"));
    add_output(&g, "y");
    return model_of(g, 21);
}
/* The lowest whole number divided by -1: the machine traps. Shape arithmetic computes it at load. */
static msg far_quotient(void) {
    msg g = {0};
    sub(&g, 5, ints("a", "2", (int64_t[]){INT64_MIN, 7}, 2)),
        sub(&g, 5, ints("b", "2", (int64_t[]){-1, 0}, 2));
    add_node(&g, node("Div", "a b", "y"));
    add_node(&g, node("Mod", "a b", "z"));
    add_output(&g, "y"), add_output(&g, "z");
    return model_of(g, 21);
}
/* An axis so far out that it fits no int. */
static msg far_axis(void) {
    msg g = {0};
    add_input(&g, "x", 1, "2 3");
    add_node(&g, with(node("Softmax", "x", "a"), attr_int("axis", INT64_MIN)));
    add_node(&g, with(node("Flatten", "x", "y"), attr_int("axis", INT64_MAX)));
    add_output(&g, "a"), add_output(&g, "y");
    return model_of(g, 21);
}
/* The same of a Concat of nothing: its rank is not known, and joins counted the axis from there. */
static msg far_join(void) {
    msg g = {0}, n = {0};
    add_input(&g, "x", 1, "1 2 3 4");
    text(&n, 1, ""), text(&n, 2, "y"), text(&n, 4, "Concat"), sub(&n, 5, attr_int("axis", INT32_MIN));
    add_node(&g, n);
    add_output(&g, "y");
    return model_of(g, 25);
}
/* The same in a list of axes that is known at load: counting it from the end overflowed. */
static msg far_axes(void) {
    msg g = {0};
    add_input(&g, "x", 1, "2 3");
    sub(&g, 5, ints("axes", "2", (int64_t[]){INT64_MAX, INT64_MIN}, 2));
    add_node(&g, node("ReduceSum", "x axes", "y"));
    add_node(&g, node("Squeeze", "x axes", "z"));
    add_output(&g, "y"), add_output(&g, "z");
    return model_of(g, 21);
}
/* An order of nothing for four dims: shapes were kept, memory was walked the other way round. */
static msg empty_order(void) {
    msg g = {0};
    add_input(&g, "x", 1, "1 2 3 4");
    add_node(&g, with(node("Transpose", "x", "y"), attr_ints("perm", "")));
    add_output(&g, "y");
    return model_of(g, 21);
}
/* A window that moves further than memory reaches. */
static msg far_strides(void) {
    msg g = {0};
    add_input(&g, "x", 1, "2 1 1 1");
    for (int k = 0; k < 2; k++) {
        msg n = with(
            with(node(k ? "AveragePool" : "MaxPool", "x", k ? "y" : "z"), attr_ints("kernel_shape", "1 1")),
            attr_ints("strides", "4611686018427387904 9223372036854775807"));
        add_node(&g, with(with(n, attr_ints("dilations", "1 4611686018427387904")),
                          attr_ints("pads", "-3 2 4611686018427387904 1")));
        add_output(&g, k ? "y" : "z");
    }
    return model_of(g, 21);
}
/* A host function of constants, and nobody takes what it makes: it was kept for nobody. */
static msg no_outputs(void) {
    msg g = {0};
    sub(&g, 5, floats("a", "2", (float[]){1, 2}, 2));
    add_node(&g, in_domain(node("FeatureVectorizer", "a", ""), "ai.onnx.ml"));
    add_node(&g, node("Identity", "a", "y"));
    add_output(&g, "y");
    msg m = model_of(g, 21);
    sub(&m, 8, opset("ai.onnx.ml", 3));
    return m;
}
/* An output of more elements than can be counted, of an op without inputs: its strides overflowed before the
   run refused it. */
static msg endless_output(void) {
    msg g = {0};
    add_node(&g, with(node("RandomNormal", "", "y"), attr_ints("shape", "1099511627776 1099511627776 2")));
    add_output(&g, "y");
    return model_of(g, 25);
}
/* Bits seen as a wider type: four times as many bytes as there are. */
static msg bitcast_grows(void) {
    msg g = {0};
    add_input(&g, "x", 3, "2 3");
    add_node(&g, with(node("BitCast", "x", "y"), attr_int("to", 6)));
    add_output(&g, "y");
    return model_of(g, 26);
}
/* Slices of one axis twice: their offsets added up, past the end. And more starts than axes; and a step that
   overflows a stride. */
static msg slice_of(const int64_t *from, const int64_t *to, const int64_t *axis, int n_axis,
                    const int64_t *step) {
    msg g = {0};
    add_input(&g, "x", 1, "10 3");
    sub(&g, 5, ints("from", "2", from, 2)), sub(&g, 5, ints("to", "2", to, 2)),
        sub(&g, 5, ints("step", "2", step, 2));
    sub(&g, 5, ints("axis", n_axis == 1 ? "1" : "2", axis, n_axis));
    add_node(&g, node("Slice", "x from to axis step", "y"));
    add_output(&g, "y");
    return model_of(g, 21);
}
static msg slice_twice(void) {
    return slice_of((int64_t[]){5, 5}, (int64_t[]){10, 10}, (int64_t[]){0, 0}, 2, (int64_t[]){1, 1});
}
static msg slice_short(void) {
    return slice_of((int64_t[]){5, 1}, (int64_t[]){10, 3}, (int64_t[]){0}, 1, (int64_t[]){1, 1});
}
static msg slice_far(void) {
    return slice_of((int64_t[]){5, 1}, (int64_t[]){INT64_MAX, INT64_MIN}, (int64_t[]){0, 1}, 2,
                    (int64_t[]){INT64_MAX, INT64_MIN});
}
/* A loop that never ends ends at the limit of the run. */
static msg endless(void) {
    msg g = {0}, b = {0};
    sub(&b, 11, value_info("i", 7, "")), sub(&b, 11, value_info("c", 9, "")),
        sub(&b, 11, value_info("v", 1, "2"));
    add_node(&b, node("Identity", "c", "c2"));
    add_node(&b, node("Neg", "v", "w"));
    add_output(&b, "c2"), add_output(&b, "w");
    add_input(&g, "x", 1, "2");
    add_node(&g, with(node("Loop", "- - x", "y"), attr_sub("body", 5, 6, b)));
    add_output(&g, "y");
    return model_of(g, 21);
}
/* Terabytes from a few bytes: at load, where constants are folded, and in the run. */
static msg enormous(const char *op) {
    msg g = {0};
    sub(&g, 5, ints("dims", "2", (int64_t[]){1 << 21, 1 << 21}, 2));
    sub(&g, 5, floats("one", "1 1", (float[]){1}, 1));
    add_node(&g, node(op, strcmp(op, "ConstantOfShape") ? "one dims" : "dims", "y"));
    add_node(&g, node("Relu", "y", "z"));
    add_output(&g, "z");
    return model_of(g, 21);
}
static msg enormous_constant(void) { return enormous("ConstantOfShape"); }
static msg enormous_contents(void) { /* an operand whose numbers count, as many as there are */
    msg g = {0};
    add_node(&g, node("Range", "start limit delta", "y"));
    add_input(&g, "start", 1, "9223372036854775807"), add_input(&g, "limit", 1, "3"),
        add_input(&g, "delta", 1, "3"), add_output(&g, "y");
    return model_of(g, 25);
}
static msg enormous_view(void) { /* strides past what can be counted */
    msg g = {0};
    sub(&g, 5, ints("dims", "2", (int64_t[]){INT64_C(8719250353565990913), 1}, 2));
    add_node(&g, node("Expand", "x dims", "y"));
    add_input(&g, "x", 1, "17"), add_output(&g, "y");
    return model_of(g, 25);
}
static msg graph_attribute(void) { /* of an op that takes none */
    msg g = {0}, body = {0};
    add_node(&body, node("Relu", "x", "t")), add_output(&body, "t");
    add_node(&g, with(node("Shrink", "x", "y"), attr_sub("then_branch", 5, 6, body)));
    add_input(&g, "x", 1, "2 3"), add_output(&g, "y");
    return model_of(g, 21);
}
/* Softmax of version 1 asks for the rank of what an op without a name made: all nodes before it are inferred,
   the one that lacks its input too. */
static msg missing_inputs(const char *op) {
    msg g = {0};
    add_node(&g, node(op, "", "a"));
    add_node(&g, node("", "", "b"));
    add_node(&g, node("Softmax", "b", "y"));
    add_output(&g, "y");
    return model_of(g, 1);
}
static msg missing_view_input(void) { return missing_inputs("Shape"); }
static msg missing_kind_input(void) { return missing_inputs("Identity"); }
static msg enormous_expand(void) { return enormous("Expand"); }
static msg enormous_tile(void) { return enormous("Tile"); }
static const struct {
    const char *name;
    msg (*make)(void);
} findings[] = {
    {"nothing", nothing},
    {"far_join", far_join},
    {"endless_output", endless_output},
    {"reshape_grows", reshape_grows},
    {"far_quotient", far_quotient},
    {"far_axis", far_axis},
    {"far_axes", far_axes},
    {"empty_order", empty_order},
    {"far_strides", far_strides},
    {"no_outputs", no_outputs},
    {"bitcast_grows", bitcast_grows},
    {"slice_twice", slice_twice},
    {"slice_short", slice_short},
    {"slice_far", slice_far},
    {"endless", endless},
    {"enormous_constant", enormous_constant},
    {"enormous_contents", enormous_contents},
    {"enormous_view", enormous_view},
    {"graph_attribute", graph_attribute},
    {"missing_view_input", missing_view_input},
    {"missing_kind_input", missing_kind_input},
    {"enormous_expand", enormous_expand},
    {"enormous_tile", enormous_tile},
};
static void test_findings(void **state) {
    (void)state;
    parse_rows();
    for (size_t k = 0; k < sizeof findings / sizeof *findings; k++) {
        uint64_t held = hone_alloc_live_bytes();
        attempt_msg(findings[k].make());
        /* the first fills lasting tables */
        if (hone_alloc_live_bytes() != held && k) fail_msg("%s: memory is lost", findings[k].name);
    }
}

/* ---- damage -------------------------------------------------------------------------------------------- */
static uint64_t seed = 20250;
static uint64_t draw(void) { return next_linear64(&seed) >> 33; }
/* mutate.c asks for this where it changes plain bytes. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room) {
    if (size < room && draw() % 4 == 0) data[size++] = (uint8_t)draw();
    else if (size && draw() % 4 == 0) size--;
    if (size) data[draw() % size] ^= (uint8_t)(1u << draw() % 8);
    return size;
}
static uint8_t *read_file(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    uint8_t *data = f ? malloc(1 << 20) : NULL;
    *n = data ? fread(data, 1, 1 << 20, f) : 0;
    if (f) fclose(f);
    return data;
}
static void damage(const uint8_t *data, size_t n, int rounds) {
    size_t room = n + 4096;
    uint8_t *copy = malloc(room);
    assert_non_null(copy);
    static int k;
    /* goes on where the last model left off, so that every way meets every kind of model */
    for (int end = k + rounds; k < end; k++) {
        memcpy(copy, data, n);
        size_t now = n;
        if (k % 4 == 0) now = draw() % (n + 1); /* cut short */
        else if (k % 4 == 1)
            for (int j = 0; j < 3; j++) copy[draw() % n] ^= (uint8_t)(1u << draw() % 8);
        else now = mutate_model(copy, n, room, (unsigned)draw());
        attempt(copy, now, k >> 2 & 1);
    }
    free(copy);
}
static void test_damaged_example(void **state) {
    (void)state;
    const char *source = getenv("HONE_SOURCE_DIR");
    char path[512];
    size_t n;
    snprintf(path, sizeof path, "%.400s/examples/digits/model.onnx", source ? source : ".");
    uint8_t *data = read_file(path, &n);
    if (!data) fail_msg("cannot read %s", path);
    damage(data, n, 120);
    free(data);
}
static void test_damaged_cases(void **state) {
    (void)state;
    const char *shared = getenv("HONE_SHARED_DIR");
    char path[1024];
    snprintf(path, sizeof path, "%.400s/onnx/node", shared ? shared : "");
    DIR *d = shared ? opendir(path) : NULL;
    int cases = 0;
    if (!d) {
        print_message("no %s: skipped\n", path);
        skip();
    }
    for (struct dirent *e; (e = readdir(d));) {
        if (*e->d_name == '.') continue;
        size_t n;
        snprintf(path, sizeof path, "%.400s/onnx/node/%.300s/model.onnx", shared, e->d_name);
        uint8_t *data = read_file(path, &n);
        if (data && n && n < 20000) damage(data, n, 1), cases++;
        free(data);
    }
    closedir(d);
    assert_true(cases > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_findings),
        cmocka_unit_test(test_damaged_example),
        cmocka_unit_test(test_damaged_cases),
    };
    hone_alloc_limit(FEED_LIMIT_BYTES);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
