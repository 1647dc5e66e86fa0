/* SPDX-License-Identifier: Apache-2.0
   The zoo: every network has the published number of parameters, builds with fixed and free dims, and, where
   it is small, runs; the numbers are the same on every machine; a batch norm folded or not, a batch free or
   fixed, a past kept or not give equal answers; mistakes are told. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread.h"
#include "hone/tools.h"
#include "hone/zoo.h"
#include "zoo/zoo.h"

static const hone_library *library(void) {
    const hone_library *lib = NULL;
    assert_int_equal(hone_library_builtin(&lib), HONE_OK);
    return lib;
}
static hone_zoo_size measure(const char *spec) {
    hone_zoo_size size = {0};
    hone_text inputs = {0};
    if (hone_zoo_measure(spec, library(), &size, &inputs)) fail_msg("%s: %s", spec, hone_error());
    assert_true(inputs.n > 0);
    hone_text_free(&inputs);
    return size;
}

/* ---- running ------------------------------------------------------------------------------------------- */
enum { MOST = 40 };
typedef struct {
    hone_model *model;
    hone_session *session;
    hone_value *in[MOST], *out[MOST];
    int n_in, n_out;
} net;

static net open_net(const char *spec) {
    net n = {0};
    if (hone_model_load(spec, &n.model) || hone_session_create(n.model, NULL, &n.session))
        fail_msg("%s: %s", spec, hone_error());
    n.n_in = hone_model_inputs(n.model), n.n_out = hone_model_outputs(n.model);
    assert_true(n.n_in <= MOST && n.n_out <= MOST);
    return n;
}
/* Inputs that depend on their number and place only; free dims are `free_dim`. Whole numbers from 0 to 7, or
   1 for masks. */
static void feed(net *n, int64_t free_dim) {
    for (int k = 0; k < n->n_in; k++) {
        const hone_port *p = hone_model_input(n->model, k);
        int64_t dim[HONE_MAX_RANK];
        for (int d = 0; d < p->rank; d++) dim[d] = p->dims[d] < 0 ? free_dim : p->dims[d];
        assert_int_equal(hone_tensor_create(p->dtype, dim, p->rank, &n->in[k]), HONE_OK);
        int64_t many = hone_value_elements(n->in[k]);
        for (int64_t j = 0; j < many; j++) {
            uint32_t h = ((uint32_t)j * 2654435761u) ^ ((uint32_t)k * 40503u);
            h = (h ^ h >> 15) * 0x85ebca6bu, h ^= h >> 13;
            if (p->dtype == HONE_DTYPE_F32)
                ((float *)hone_value_data(n->in[k]))[j] = (float)(h % 2001) / 1000 - 1;
            else ((int64_t *)hone_value_data(n->in[k]))[j] = strstr(p->name, "mask") ? h % 8 != 0 : h % 2;
        }
    }
}
static void run(net *n) {
    if (hone_session_run(n->session, n->in, n->out)) fail_msg("%s", hone_error());
}
static void close_net(net *n) {
    for (int k = 0; k < n->n_in; k++) hone_value_free(n->in[k]);
    for (int k = 0; k < n->n_out; k++) hone_value_free(n->out[k]);
    hone_session_free(n->session);
    hone_model_free(n->model);
}
static void assert_near(const hone_value *a, const hone_value *b, double error) {
    hone_difference d;
    hone_compare(a, b, error, error, &d);
    if (!d.ok) fail_msg("%s", d.why);
}

/* ---- sizes --------------------------------------------------------------------------------------------- */
static void published_parameters(void **state) {
    for (const hone_zoo_model *m = hone_zoo_models; m->name; m++) {
        hone_zoo_size size = measure(m->name);
        if (m->published && size.parameters != m->published)
            fail_msg("%s has %lld parameters, published are %lld", m->name, (long long)size.parameters,
                     (long long)m->published);
        assert_true(size.nodes > 5 && size.flops > 1e6);
        assert_true(size.weight_bytes >= size.parameters * 39 / 10); /* folded norms are half as many */
    }
}
static void free_dims(void **state) {
    char spec[64];
    for (const hone_zoo_model *m = hone_zoo_models; m->name; m++) {
        snprintf(spec, sizeof spec, "zoo:%s?dynamic=1", m->name);
        assert_int_equal(measure(spec).parameters, measure(m->name).parameters);
    }
}
static void the_list(void **state) {
    char *text = NULL;
    assert_int_equal(hone_zoo_report(NULL, &text), HONE_OK);
    for (const hone_zoo_model *m = hone_zoo_models; m->name; m++) assert_non_null(strstr(text, m->name));
    hone_text_release(text);
    assert_int_equal(hone_zoo_report("zoo:bert_base?batch=8&seq=256", &text), HONE_OK);
    assert_non_null(strstr(text, "{\"name\": \"input_ids\", \"dtype\": \"i64\", \"dims\": [8, 256]}"));
    hone_text_release(text);
}

/* ---- answers ------------------------------------------------------------------------------------------- */
/* Small enough to run under a sanitizer. */
static const char *const small[] = {
    "zoo:resnet18?image=32&classes=10",
    "zoo:mobilenet_v2?image=32&classes=10",
    "zoo:mobilenet_v3_small?image=32&classes=10",
    "zoo:efficientnet_b0?image=32&classes=10",
    "zoo:squeezenet1_1?image=32&classes=10",
    "zoo:densenet121?image=32&classes=10",
    "zoo:shufflenet_v2?image=32&classes=10",
    "zoo:yolo?image=64&classes=3",
    "zoo:vit_b16?image=32&layers=1&classes=10",
    "zoo:whisper?seq=20&dim=32&heads=4",
    "zoo:llama?seq=7&layers=2&dim=32&heads=4&kv=2&hidden=48&vocab=100",
    "zoo:llama_cache?past=6&layers=2&dim=32&heads=4&kv=1&hidden=48&vocab=100",
    "zoo:lstm?seq=9&dim=8&hidden=16&vocab=50",
    "zoo:bilstm?seq=9&dim=8&hidden=16&vocab=50",
    "zoo:gru?seq=9&dim=8&hidden=16&vocab=50",
    "zoo:dlrm?batch=4&rows=20",
};
static void small_ones_run(void **state) {
    for (size_t k = 0; k < sizeof small / sizeof *small; k++) {
        net n = open_net(small[k]);
        feed(&n, 1);
        run(&n);
        for (int q = 0; q < n.n_out; q++) {
            int64_t many = hone_value_elements(n.out[q]);
            double sum = 0, squares = 0;
            for (int64_t j = 0; j < many; j++) {
                double v = hone_value_number(n.out[q], j);
                if (!isfinite(v)) fail_msg("%s: output %d is not finite", small[k], q);
                sum += v, squares += v * v;
            }
            double spread = sqrt(squares / (double)many - sum / (double)many * (sum / (double)many));
            if (spread < 1e-3 || spread > 1e3) fail_msg("%s: output %d spreads by %g", small[k], q, spread);
        }
        close_net(&n);
    }
}

static uint64_t digest(const char *spec) {
    hone_graph *g = NULL;
    uint64_t h = 1469598103934665603u;
    if (hone_zoo_graph(spec, library(), &g)) fail_msg("%s: %s", spec, hone_error());
    for (int k = 0; k < g->var.n; k++) {
        const hone_value *v = g->var.at[k].value;
        for (size_t j = 0; v && j + 4 <= v->bytes; j += 4) {
            uint32_t word;
            memcpy(&word, (const char *)v->data + j, 4);
            h = (h ^ word) * 1099511628211u;
        }
    }
    hone_graph_destroy(g);
    return h;
}
/* Written down once: another compiler, another machine or another number of threads must find the same. */
static void the_same_numbers_everywhere(void **state) {
    const uint64_t plain = 0x69efc353db7e8a80u, folded_norms = 0xbb7b2efb9d667a10u;
    assert_int_equal(digest("squeezenet1_1?classes=10"), plain);
    assert_int_not_equal(digest("squeezenet1_1?classes=10&seed=1"), plain);
    assert_int_equal(digest("mobilenet_v3_small?classes=10"), folded_norms);
}

static void norms_fold(void **state) {
    static const char *const pairs[][2] = {
        {"zoo:mobilenet_v2?image=32&classes=10", "zoo:mobilenet_v2?image=32&classes=10&bn=1"},
        {"zoo:shufflenet_v2?image=32&classes=10", "zoo:shufflenet_v2?image=32&classes=10&bn=1"},
    };
    for (int k = 0; k < 2; k++) {
        net a = open_net(pairs[k][0]), b = open_net(pairs[k][1]);
        feed(&a, 1), feed(&b, 1);
        run(&a), run(&b);
        assert_near(a.out[0], b.out[0], 1e-3);
        close_net(&a), close_net(&b);
    }
}

/* Free dims of 3 give what fixed dims of 3 give. */
static void dynamic_equals_fixed(void **state) {
    static const char *const pairs[][2] = {
        {"zoo:shufflenet_v2?image=32&classes=10&batch=3", "zoo:shufflenet_v2?image=32&classes=10&dynamic=1"},
        {"zoo:vit_b16?image=32&layers=1&classes=10&batch=3",
         "zoo:vit_b16?image=32&layers=1&classes=10&dynamic=1"},
        {"zoo:yolo?image=64&classes=3&batch=3", "zoo:yolo?image=64&classes=3&dynamic=1"},
        {"zoo:distilbert?layers=1&vocab=100&batch=3&seq=3", "zoo:distilbert?layers=1&vocab=100&dynamic=1"},
        {"zoo:bert_base?layers=1&vocab=100&batch=3&seq=3", "zoo:bert_base?layers=1&vocab=100&dynamic=1"},
        {"zoo:gpt2_cache?layers=1&vocab=100&batch=3&seq=3&past=3",
         "zoo:gpt2_cache?layers=1&vocab=100&dynamic=1"},
        {"zoo:bilstm?batch=3&seq=3&dim=8&hidden=16&vocab=50",
         "zoo:bilstm?dynamic=1&dim=8&hidden=16&vocab=50"},
        {"zoo:llama_cache?batch=3&seq=3&past=3&layers=2&dim=32&heads=4&kv=2&hidden=48&vocab=100",
         "zoo:llama_cache?dynamic=1&layers=2&dim=32&heads=4&kv=2&hidden=48&vocab=100"},
    };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        net a = open_net(pairs[k][0]), b = open_net(pairs[k][1]);
        feed(&a, 3), feed(&b, 3);
        run(&a), run(&b);
        assert_int_equal(a.n_out, b.n_out);
        for (int q = 0; q < a.n_out; q++) assert_near(b.out[q], a.out[q], 1e-4);
        close_net(&a), close_net(&b);
    }
}

/* Five tokens at once, or four and then one with what is remembered of them: the same next token. */
static void a_past_kept(void **state) {
    static const char *const specs[][3] = {
        {"zoo:llama?seq=5&layers=2&dim=32&heads=4&kv=2&hidden=48&vocab=100",
         "zoo:llama?cache=1&past=0&seq=4&layers=2&dim=32&heads=4&kv=2&hidden=48&vocab=100",
         "zoo:llama_cache?past=4&layers=2&dim=32&heads=4&kv=2&hidden=48&vocab=100"},
        {"zoo:gpt2?seq=5&layers=1&vocab=100", "zoo:gpt2?cache=1&past=0&seq=4&layers=1&vocab=100",
         "zoo:gpt2_cache?past=4&layers=1&vocab=100"},
    };
    for (int s = 0; s < 2; s++) {
        net all = open_net(specs[s][0]), front = open_net(specs[s][1]), last = open_net(specs[s][2]);
        feed(&all, 1), feed(&front, 1), feed(&last, 1);
        int64_t *ids = hone_value_data(all.in[0]);
        memcpy(hone_value_data(front.in[0]), ids, 4 * sizeof *ids);
        memcpy(hone_value_data(last.in[0]), ids + 4, sizeof *ids);
        run(&all), run(&front);
        for (int k = 1; k < last.n_in; k++) {
            hone_value_free(last.in[k]);
            last.in[k] = hone_value_share(front.out[k]);
        }
        run(&last);
        int64_t words = hone_value_elements(last.out[0]);
        for (int64_t k = 0; k < words; k++)
            assert_true(fabs(hone_value_number(last.out[0], k) -
                             hone_value_number(all.out[0], 4 * words + k)) < 1e-4);
        close_net(&all), close_net(&front), close_net(&last);
    }
}

static void written_and_read_again(void **state) {
    char path[] = "/tmp/hone-zoo-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    if (hone_zoo_write("yolo?image=64&classes=3&bn=1", path)) fail_msg("%s", hone_error());
    net a = open_net("zoo:yolo?image=64&classes=3&bn=1"), b = open_net(path);
    feed(&a, 1), feed(&b, 1);
    run(&a), run(&b);
    assert_near(b.out[0], a.out[0], 1e-5);
    close_net(&a), close_net(&b);
    unlink(path);
}

/* ---- mistakes ------------------------------------------------------------------------------------------ */
static void mistakes_are_told(void **state) {
    static const struct {
        const char *spec, *says;
    } rows[] = {
        {"zoo:", "the zoo has no model ''; it has resnet18, resnet50"},
        {"zoo:resnet51", "the zoo has no model 'resnet51'; did you mean 'resnet50'?"},
        {"zoo:nothing_like_it", "the zoo has no model 'nothing_like_it'; it has resnet18, resnet50"},
        {"zoo:resnet50?seq=3", "zoo:resnet50 has no option 'seq'; it has batch=1, image=224, classes=1000"},
        {"zoo:resnet50?", "zoo:resnet50 has no option ''"},
        {"zoo:resnet50?batch", "must be a whole number from 1 to 65536"},
        {"zoo:resnet50?batch=", "must be a whole number from 1 to 65536"},
        {"zoo:resnet50?batch=0", "batch=0: must be a whole number from 1 to 65536"},
        {"zoo:resnet50?batch=-1", "must be a whole number from 1 to 65536"},
        {"zoo:resnet50?batch=99999999999999999999", "must be a whole number from 1 to 65536"},
        {"zoo:resnet50?batch=2&&", "has no option ''"},
        {"zoo:yolo?image=100", "must be a whole number from 32 to 4096 that is a multiple of 32"},
        {"zoo:bert_base?seq=513", "from 1 to 512"},
        {"zoo:gpt2_cache?past=1000&seq=100", "are more than the 1024 tokens"},
        {"zoo:llama?dim=100&heads=8", "dim=100 must be an even multiple of heads=8"},
        {"zoo:llama?heads=8&kv=3", "heads=8 must be a multiple of kv=3"},
        {"zoo:whisper?heads=7", "dim=384 must be a multiple of heads=7"},
        {"zoo:llama?dim=16384&vocab=262144", "the weights would be above 8 GB"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        hone_model *m = NULL;
        if (hone_model_load(rows[k].spec, &m) != HONE_BAD_INPUT)
            fail_msg("%s was loaded, or failed in another way", rows[k].spec);
        if (!strstr(hone_error(), rows[k].says)) fail_msg("%s says: %s", rows[k].spec, hone_error());
        assert_null(strchr(hone_error(), '\n'));
    }
}
static void memory_that_runs_out(void **state) {
    for (int64_t k = 0; k < 400; k += 7) {
        hone_graph *g = NULL;
        hone_alloc_fail_after(k);
        hone_status s = hone_zoo_graph("gru?seq=3&dim=8&hidden=8&vocab=20&dynamic=1", library(), &g);
        hone_alloc_fail_after(-1);
        assert_true(s == HONE_OK || s == HONE_NO_MEMORY);
        if (!s) hone_graph_destroy(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_parameters),
        cmocka_unit_test(free_dims),
        cmocka_unit_test(the_list),
        cmocka_unit_test(small_ones_run),
        cmocka_unit_test(the_same_numbers_everywhere),
        cmocka_unit_test(norms_fold),
        cmocka_unit_test(dynamic_equals_fixed),
        cmocka_unit_test(a_past_kept),
        cmocka_unit_test(written_and_read_again),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(memory_that_runs_out),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hone_pool_shutdown();
    return failed;
}
