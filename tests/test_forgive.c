/* SPDX-License-Identifier: Apache-2.0
   What the importer forgives, and says that it did; and what looks like it and is refused. Models written
   byte by byte (onnx_write.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "onnx_load.h"

/* Loads, and says all of that: words that stand in the notes, or "" for no note at all. */
static hone_graph *forgives(msg m, const char *words) {
    hone_graph *g = load(m);
    const char *said = g->forgiven ? g->forgiven : "";
    if (*words ? !strstr(said, words) : *said != 0) fail_msg("it said '%s', not '%s'", said, words);
    return g;
}
static void fine(msg m, const char *words) { hone_graph_destroy(forgives(m, words)); }
static void bad(msg m, const char *words) {
    const char *said = refused(m);
    if (!strstr(said, words)) fail_msg("it said '%s', not '%s'", said, words);
}
static msg graph(void) { /* x, y */
    msg g = {0};
    add_input(&g, "x", 1, "2 3");
    add_output(&g, "y");
    return g;
}
static msg named(msg n, const char *name) {
    text(&n, 3, name);
    return n;
}

/* ---- order --------------------------------------------------------------------------------------------- */
static void sorted(void **state) {
    (void)state;
    static const char *const in[] = {"x", "a", "b", "c a"}, *const out[] = {"a", "b", "c", "y"},
                             *const op[] = {"Relu", "Neg", "Exp", "Add"};
    static const struct {
        int order[4];
        const char *ops;
    } cases[] = {{{0, 1, 2, 3}, "Relu Neg Exp Add"},
                 {{3, 2, 1, 0}, "Relu Neg Exp Add"},
                 {{1, 0, 3, 2}, "Relu Neg Exp Add"},
                 {{2, 0, 1, 3}, "Relu Neg Exp Add"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        msg g = graph();
        for (int j = 0; j < 4; j++)
            add_node(&g, node(op[cases[k].order[j]], in[cases[k].order[j]], out[cases[k].order[j]]));
        hone_graph *r = forgives(model_of(g, 18), k ? "the nodes were sorted" : "");
        assert_string_equal(ops(r), cases[k].ops);
        hone_graph_destroy(r);
    }
    /* what need not move stays where it is */
    msg g = graph();
    add_node(&g, node("Neg", "b", "y")), add_node(&g, node("Exp", "x", "z")),
        add_node(&g, node("Relu", "x", "b")), add_node(&g, node("Abs", "z", "w"));
    hone_graph *r = forgives(model_of(g, 18), "1 node stood before what it reads");
    assert_string_equal(ops(r), "Relu Neg Exp Abs");
    hone_graph_destroy(r);
}
/* A long chain, back to front: no recursion. */
static void deep(void **state) {
    (void)state;
    enum { N = 50000 };
    msg g = graph();
    for (int k = N - 1; k >= 0; k--) {
        char from[16], to[16];
        snprintf(from, sizeof from, k ? "t%d" : "x", k);
        snprintf(to, sizeof to, k + 1 < N ? "t%d" : "y", k + 1);
        add_node(&g, node("Relu", from, to));
    }
    hone_graph *r = forgives(model_of(g, 18), "49999 nodes stood before what they read");
    assert_int_equal(r->node.n, N);
    hone_graph_destroy(r);
}
static void cycles(void **state) {
    (void)state;
    msg g = graph();
    add_node(&g, named(node("Add", "x b", "a"), "first")),
        add_node(&g, named(node("Neg", "a", "b"), "second")), add_node(&g, node("Relu", "b", "y"));
    bad(model_of(g, 18), "has a cycle: 'second', 'first' each read");
    g = graph();
    add_node(&g, named(node("Add", "x y", "y"), "own"));
    bad(model_of(g, 18), "has a cycle: 'own' reads what it makes itself");
    g = graph();
    add_node(&g, node("Add", "x z", "y"));
    bad(model_of(g, 18), "reads 'z', which nothing produces");
}
static msg body_of(const char *name, msg g, const char *out) {
    text(&g, 2, name);
    sub(&g, 12, value_info(out, 1, NULL));
    return g;
}
static void bodies(void **state) {
    (void)state;
    msg t = {0}, e = {0}, g = graph();
    /* out of order, and reads what stands behind the If */
    add_node(&t, node("Neg", "t0", "t")), add_node(&t, node("Relu", "a", "t0"));
    add_node(&e, node("Identity", "a", "e"));
    sub(&g, 5, tensor_raw("c", 9, "", (uint8_t[]){1}, 1));
    add_node(&g, with(with(node("If", "c", "y"), attr_sub("then_branch", 5, 6, body_of("then", t, "t"))),
                      attr_sub("else_branch", 5, 6, body_of("else", e, "e"))));
    add_node(&g, node("Exp", "x", "a"));
    hone_graph *r = forgives(model_of(g, 18), "graph 'then': 1 node stood before");
    assert_non_null(strstr(r->forgiven, "graph '': 1 node stood before"));
    assert_string_equal(ops(r), "Exp If");
    assert_string_equal(ops(r->node.at[1]->body[0]), "Relu Neg");
    hone_graph_destroy(r);
    /* a name of the body's own is not waited for: 'a' is made inside, and later outside */
    t = (msg){0}, e = (msg){0}, g = graph();
    add_node(&t, node("Neg", "x", "a"));
    add_node(&e, node("Exp", "x", "e"));
    sub(&g, 5, tensor_raw("c", 9, "", (uint8_t[]){1}, 1));
    add_node(&g, with(with(node("If", "c", "y"), attr_sub("then_branch", 5, 6, body_of("then", t, "a"))),
                      attr_sub("else_branch", 5, 6, body_of("else", e, "e"))));
    add_node(&g, node("Exp", "y", "a"));
    r = forgives(model_of(g, 18), "");
    assert_string_equal(ops(r), "If Exp");
    hone_graph_destroy(r);
}
static msg call_of(msg f) { /* y = my.F(x) */
    msg g = graph();
    add_node(&g, in_domain(node("F", "x", "y"), "my"));
    msg m = model_of(g, 18);
    sub(&m, 8, opset("my", 1));
    sub(&m, 25, f);
    return m;
}
static msg function(const char *in, const char *out) {
    msg f = {0};
    text(&f, 1, "F"), text(&f, 10, "my");
    names(&f, 4, in), names(&f, 5, out);
    return f;
}
static void functions(void **state) {
    (void)state;
    msg f = function("a", "b");
    sub(&f, 9, opset("", 18));
    sub(&f, 7, node("Neg", "t", "b")), sub(&f, 7, node("Relu", "a", "t"));
    hone_graph *r = forgives(call_of(f), "1 node stood before");
    assert_string_equal(ops(r), "Relu Neg");
    hone_graph_destroy(r);
    f = function("a", "b c"); /* reads an output of its own before it is made */
    sub(&f, 9, opset("", 18));
    sub(&f, 7, node("Neg", "b", "c")), sub(&f, 7, node("Relu", "a", "b"));
    r = forgives(call_of(f), "1 node stood before");
    assert_string_equal(ops(r), "Relu Neg");
    hone_graph_destroy(r);
    f = function("a unused", "b"); /* no opset of its own, an input too many */
    sub(&f, 7, node("Relu", "a", "b"));
    fine(call_of(f), "a function imports no opset of ai.onnx: the model's, 18, is taken");
    f = function("a", "b");
    sub(&f, 9, opset("", 18));
    sub(&f, 7, node("Neg", "c", "b")), sub(&f, 7, node("Relu", "b", "c"));
    bad(call_of(f), "has a cycle");
}

/* ---- initializers, inputs, outputs --------------------------------------------------------------------- */
static msg with_w(msg g) {
    sub(&g, 5, floats("w", "3", (float[]){1, 2, 3}, 3));
    add_node(&g, node("Add", "x w", "y"));
    return g;
}
static void defaults(void **state) {
    (void)state;
    msg g = with_w(graph());
    add_input(&g, "w", 1, "3");
    hone_graph *r = forgives(model_of(g, 18), "");
    assert_int_equal(r->in.n, 1);
    assert_true(var(r, "w")->value != NULL);
    hone_graph_destroy(r);
    g = with_w(graph());
    sub(&g, 5, floats("w", "3", (float[]){4, 5, 6}, 3));
    r = forgives(model_of(g, 18), "initializer 'w' is there twice: the last one counts");
    assert_true(hone_value_f64(var(r, "w")->value, 0) == 4);
    hone_graph_destroy(r);
    g = with_w(graph());
    sub(&g, 5, floats("", "1", (float[]){4}, 1));
    fine(model_of(g, 18), "an initializer has no name");
    g = with_w(graph());
    add_node(&g, node("Neg", "x", "w"));
    bad(model_of(g, 18), "has a name that is taken");
    g = with_w(graph());
    add_input(&g, "x", 1, "2 3");
    bad(model_of(g, 18), "has a name that is taken");
    g = with_w(graph());
    add_input(&g, "", 1, "2 3");
    r = forgives(model_of(g, 18), "an input has no name: it is left out");
    assert_int_equal(r->in.n, 1);
    hone_graph_destroy(r);
}
static void ends(void **state) {
    (void)state;
    msg g = with_w(graph());
    add_output(&g, "x"), add_output(&g, "w"), add_output(&g, "y"); /* an input, an initializer, one twice */
    hone_graph *r = forgives(model_of(g, 18), "");
    assert_int_equal(r->out.n, 4);
    hone_graph_destroy(r);
    g = (msg){0};
    add_input(&g, "x", 1, "2 3");
    add_node(&g, node("Relu", "x", "y"));
    fine(model_of(g, 18), "the model has no outputs");
    g = with_w(graph());
    add_node(&g, named(node("Neg", "x", "-"), "idle"));
    r = forgives(model_of(g, 18), "node 'idle' (Neg) has no outputs: it is left out");
    assert_string_equal(ops(r), "Add");
    hone_graph_destroy(r);
    g = with_w(graph());
    add_output(&g, "z");
    bad(model_of(g, 18), "output 'z' is not produced");
    g = graph(); /* trailing inputs and outputs that are left out */
    add_node(&g, node("Clip", "x - -", "a")), add_node(&g, node("Dropout", "a", "y -"));
    fine(model_of(g, 18), "");
    g = (msg){0}; /* dims of -1, of 0 and of no name are free, each for itself */
    add_input(&g, "x", 1, "0 ?");
    add_node(&g, node("Relu", "x", "y"));
    add_output(&g, "y");
    r = forgives(model_of(g, 18), "");
    assert_true(hone_dim_is_symbolic(var(r, "x")->dim[0]) && hone_dim_is_symbolic(var(r, "x")->dim[1]) &&
                var(r, "x")->dim[0] != var(r, "x")->dim[1]);
    hone_graph_destroy(r);
    g = graph(); /* value_info that is wrong is not believed */
    add_node(&g, node("Relu", "x", "a")), add_node(&g, node("Neg", "a", "y"));
    sub(&g, 13, value_info("a", 7, "9 9 9"));
    sub(&g, 13, value_info("nothing", 1, "1"));
    fine(model_of(g, 18), "");
}

/* ---- opsets and versions ------------------------------------------------------------------------------- */
static msg relu(void) {
    msg g = graph();
    add_node(&g, node("Relu", "x", "y"));
    return g;
}
static msg file(int ir, int n, ...) { /* opsets: n pairs of domain, version */
    va_list a;
    msg m = {0};
    if (ir) number(&m, 1, ir);
    sub(&m, 7, relu());
    va_start(a, n);
    for (int k = 0; k < n; k++) {
        const char *domain = va_arg(a, const char *);
        sub(&m, 8, opset(domain, va_arg(a, int)));
    }
    va_end(a);
    return m;
}
static void opsets(void **state) {
    (void)state;
    static const struct {
        int ir, opset;
        const char *says;
    } missing[] = {{1, 1, ""},
                   {2, 1, ""},
                   {3, 8, "read as opset 8"},
                   {4, 9, "read as opset 9"},
                   {8, 18, "read as opset 18"},
                   {10, 22, "read as opset 22"}};
    for (size_t k = 0; k < sizeof missing / sizeof *missing; k++) {
        hone_graph *r = forgives(file(missing[k].ir, 0), missing[k].says);
        assert_int_equal(r->opset, missing[k].opset);
        hone_graph_destroy(r);
    }
    fine(file(0, 1, "", 18), "the model says no ir_version");
    fine(file(99, 1, "", 18), "ir_version 99 is newer than what is known");
    fine(file(3, 1, "", 8), "");
    fine(file(8, 1, "ai.onnx", 18), "");
    fine(file(8, 2, "", 18, "com.nobody", 7), "");
    fine(file(8, 2, "", 18, "ai.onnx", 18), "");
    fine(file(8, 1, "", 0), "opset 0 of ai.onnx is none");
    fine(file(8, 1, "", -1), "opset -1 of ai.onnx is none");
    fine(file(8, 1, "com.nobody", 1), "no opset of ai.onnx is imported: read as opset 18");
    hone_graph *r =
        forgives(file(8, 1, "", 99), "opset 99 of ai.onnx is newer than what is known: read as opset 28");
    assert_int_equal(r->opset, 28);
    hone_graph_destroy(r);
    r = forgives(file(8, 2, "", 12, "", 18),
                 "opset 12 and opset 18 of ai.onnx are both imported: the last counts");
    assert_int_equal(r->opset, 18);
    hone_graph_destroy(r);
    msg g = graph();
    add_node(&g, with(in_domain(node("Binarizer", "x", "y"), "ai.onnx.ml"), attr_float("threshold", 0.5f)));
    fine(model_of(g, 18), "no opset of ai.onnx.ml is imported: the newest is taken");
    g = graph();
    add_node(&g, in_domain(node("Relu", "x", "y"), "ai.onnx"));
    fine(model_of(g, 18), "");
}

/* ---- Constant, attributes, tensors --------------------------------------------------------------------- */
static hone_graph *constant(msg a, const char *words) {
    msg g = graph();
    add_node(&g, with(named(node("Constant", "", "c"), "const"), a));
    add_node(&g, node("Identity", "c", "y"));
    return forgives(model_of(g, 18), words);
}
static void constants(void **state) {
    (void)state;
    msg strings = attr("value_strings", 8), many = attr("value_floats", 6),
        values = floats("v", "1", (float[]){5}, 1), s = {0};
    text(&strings, 9, "one"), text(&strings, 9, "two");
    fixed32(&many, 7, 1.5f), fixed32(&many, 7, 2.5f);
    sub(&s, 1, values), sub(&s, 2, ints("i", "1", (int64_t[]){1}, 1)), number(&s, 3, 3);
    struct {
        msg attr;
        hone_dtype dtype;
        int rank;
        int64_t count;
        double first, last;
    } forms[] = {
        {attr_sub("value", 4, 5, floats("", "3", (float[]){1, 2, 3}, 3)), HONE_DTYPE_F32, 1, 3, 1, 3},
        {attr_float("value_float", 2.5f), HONE_DTYPE_F32, 0, 1, 2.5, 2.5},
        {many, HONE_DTYPE_F32, 1, 2, 1.5, 2.5},
        {attr_int("value_int", -7), HONE_DTYPE_I64, 0, 1, -7, -7},
        {attr_ints("value_ints", "4 5 6"), HONE_DTYPE_I64, 1, 3, 4, 6},
        {attr_text("value_string", "word"), HONE_DTYPE_STRING, 0, 1, 0, 0},
        {strings, HONE_DTYPE_STRING, 1, 2, 0, 0},
        {attr_sub("sparse_value", 11, 22, s), HONE_DTYPE_F32, 1, 3, 0, 0},
    };
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        hone_graph *g = constant(forms[k].attr, "");
        const hone_value *v = var(g, "c")->value;
        assert_non_null(v);
        assert_int_equal(v->dtype, forms[k].dtype);
        assert_int_equal(v->rank, forms[k].rank);
        assert_int_equal(hone_value_count(v), forms[k].count);
        if (v->dtype != HONE_DTYPE_STRING) {
            assert_true(hone_value_f64(v, 0) == forms[k].first &&
                        hone_value_f64(v, forms[k].count - 1) == forms[k].last);
            if (k == 7) assert_true(hone_value_f64(v, 1) == 5);
        }
        hone_graph_destroy(g);
    }
    msg g = graph(); /* several values: the first */
    add_node(&g, with(with(named(node("Constant", "", "c"), "const"), attr_float("value_float", 2.5f)),
                      attr_int("value_int", 3)));
    add_node(&g, node("Add", "x c", "y"));
    hone_graph *r = forgives(model_of(g, 18), "node 'const' (Constant) has 2 values: the first counts");
    assert_true(hone_value_f64(var(r, "c")->value, 0) == 2.5);
    hone_graph_destroy(r);
    g = graph();
    add_node(&g, node("Constant", "", "c")), add_node(&g, node("Add", "x c", "y"));
    bad(model_of(g, 18), "must have a value and an output");
}
static void attributes(void **state) {
    (void)state;
    msg g = graph(), alpha = attr("alpha", 0);
    fixed32(&alpha, 2, 0.25f);
    add_node(&g, with(node("LeakyRelu", "x", "y"), alpha));
    hone_graph *r = forgives(model_of(g, 18), "attributes do not say their type");
    assert_true(hone_attr_float(r->node.at[0]->attr, r->node.at[0]->n_attr, "alpha", 0) == 0.25);
    hone_graph_destroy(r);
    g = graph();
    add_node(&g, named(with(with(node("LeakyRelu", "x", "y"), attr_float("alpha", 0.25f)),
                            attr_float("alpha", 0.5f)),
                       "l"));
    r = forgives(model_of(g, 18), "node 'l' has attribute 'alpha' twice: the last one counts");
    assert_true(hone_attr_float(r->node.at[0]->attr, r->node.at[0]->n_attr, "alpha", 0) == 0.5);
    hone_graph_destroy(r);
    g = graph();
    add_node(&g, with(node("Relu", "x", "y"), attr_text("colour", "red")));
    bad(model_of(g, 18), "unknown attribute 'colour'");
}
static void lengths(void **state) {
    (void)state;
    static const float three[4] = {1, 2, 3, 4};
    static const struct {
        int raw, typed;
        const char *dims;
        bool good;
    } cases[] = {{12, 0, "3", true}, {8, 0, "3", false},   {16, 0, "3", false},
                 {0, 3, "3", true},  {0, 2, "3", false},   {0, 4, "3", false},
                 {0, 0, "3", false}, {12, 0, "-3", false}, {12, 3, "3", true}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        msg g = graph(), t = tensor_head("w", 1, cases[k].dims);
        for (int j = 0; j < cases[k].typed; j++) fixed32(&t, 4, three[j]);
        if (cases[k].raw) bytes(&t, 9, three, (size_t)cases[k].raw);
        sub(&g, 5, t);
        add_node(&g, node("Add", "x w", "y"));
        if (cases[k].good) fine(model_of(g, 18), "");
        else bad(model_of(g, 18), "tensor 'w'");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorted),     cmocka_unit_test(deep),      cmocka_unit_test(cycles),
        cmocka_unit_test(bodies),     cmocka_unit_test(functions), cmocka_unit_test(defaults),
        cmocka_unit_test(ends),       cmocka_unit_test(opsets),    cmocka_unit_test(constants),
        cmocka_unit_test(attributes), cmocka_unit_test(lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
