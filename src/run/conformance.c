/* SPDX-License-Identifier: Apache-2.0
   conformance: one of ONNX's own test cases: a folder with model.onnx and test_data_set_*, each with
   input_K.pb and output_K.pb.

   Runs in the caller's process and thread; who runs many of them puts a process and a time limit around
   each. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/value.h"
#include "hone/tools.h"
#include "model/wire.h"

/* Outputs drawn by another library's generator can be compared in shape and type only. */
static const char *const drawn[] = {"Bernoulli",        "Multinomial",   "RandomNormal",
                                    "RandomNormalLike", "RandomUniform", "RandomUniformLike"};

static void say(hone_case *c, int passed, const char *format, ...) HONE_PRINTF(3, 4);
static void say(hone_case *c, int passed, const char *format, ...) {
    va_list args;
    c->passed = passed;
    va_start(args, format);
    vsnprintf(c->why, sizeof c->why, format, args);
    va_end(args);
    for (char *p = c->why; *p; p++)
        if (*p == '\n') *p = ';';
}

static bool is_drawn(const char *op) {
    for (size_t k = 0; k < sizeof drawn / sizeof *drawn; k++)
        if (!strcmp(op, drawn[k])) return true;
    return false;
}

/* ModelProto.graph (7) .node (1) .op_type (4): read from the file, as passes may leave no node of that name.
   True: some node draws at random. */
static bool name_op(const char *path, const char *folder, hone_case *c) {
    hone_file file;
    hone_field f, g, n;
    bool random = strstr(folder, "test_training_dropout") && !strstr(folder, "zero_ratio");
    if (hone_file_open(path, &file)) return false;
    hone_wire model = {file.data, file.data + file.bytes, false};
    while (hone_wire_next(&model, &f)) {
        if (f.number != 7 || f.type != HONE_WIRE_BYTES) continue;
        hone_wire graph = hone_wire_of(&f);
        while (hone_wire_next(&graph, &g)) {
            if (g.number != 1 || g.type != HONE_WIRE_BYTES) continue;
            hone_wire node = hone_wire_of(&g);
            while (hone_wire_next(&node, &n)) {
                if (n.number != 4 || n.type != HONE_WIRE_BYTES) continue;
                snprintf(c->op, sizeof c->op, "%.*s",
                         n.bytes < sizeof c->op ? (int)n.bytes : (int)sizeof c->op - 1, (const char *)n.data);
                random |= is_drawn(c->op);
            }
        }
    }
    hone_file_close(&file);
    return random;
}

typedef struct {
    const hone_model *model;
    hone_session *session;
    hone_value **in, **out;
    double rtol, atol;
    hone_case *result;
} bench;

/* Missing files are values left out: of inputs, NULL goes in; of outputs, nothing is compared. False:
   `result` says why. */
static bool read_value(const bench *b, const char *set, const char *word, int k, hone_value_kind kind,
                       hone_value **out) {
    hone_text path = {0};
    hone_text_put(&path, "%s/%s_%d.pb", set, word, k);
    bool ok = !path.failed;
    if (!ok) say(b->result, 0, "no memory");
    if (ok && access(path.text, F_OK) == 0 &&
        hone_value_read(path.text, kind, HONE_DTYPE_NONE, NULL, 0, out)) {
        say(b->result, 0, "%s", hone_error());
        ok = false;
    }
    hone_text_free(&path);
    return ok;
}

static bool run_set(const bench *b, const char *set) {
    int n_in = hone_model_inputs(b->model), n_out = hone_model_outputs(b->model), compared = 0;
    bool ok = true;
    for (int k = 0; k < n_in && ok; k++)
        ok = read_value(b, set, "input", k, hone_model_input(b->model, k)->kind, &b->in[k]);
    if (ok && hone_session_run(b->session, b->in, b->out)) {
        say(b->result, 0, "%s", hone_error());
        ok = false;
    }
    for (int k = 0; k < n_out && ok; k++) {
        hone_difference d;
        hone_value *want = NULL;
        const hone_port *port = hone_model_output(b->model, k);
        ok = read_value(b, set, "output", k, b->out[k] ? hone_value_kind_of(b->out[k]) : port->kind, &want);
        if (!ok || !want) continue;
        compared++;
        hone_compare(b->out[k], want, b->rtol, b->atol, &d);
        if (!d.ok) {
            say(b->result, 0, "output '%s' %s (%lld of %lld wrong, max abs %.3g, max rel %.3g)", port->name,
                d.why, (long long)d.wrong, (long long)d.elements, d.max_abs, d.max_rel);
            ok = false;
        }
        hone_value_drop(want);
    }
    if (ok && n_out && !compared) {
        say(b->result, -1, "%s has no output_K.pb to compare with", set);
        ok = false;
    }
    for (int k = 0; k < n_in; k++) hone_value_drop(b->in[k]), b->in[k] = NULL;
    for (int k = 0; k < n_out; k++) hone_value_drop(b->out[k]), b->out[k] = NULL;
    return ok;
}

static int is_set(const struct dirent *e) { return !strncmp(e->d_name, "test_data_set_", 14); }

static void run_sets(const bench *b, const char *folder) {
    struct dirent **entry = NULL;
    int n = scandir(folder, &entry, is_set, alphasort);
    bool ok = n > 0;
    if (n <= 0) say(b->result, -1, "no test_data_set_* in the folder");
    for (int k = 0; k < n; k++) {
        hone_text set = {0};
        hone_text_put(&set, "%s/%s", folder, entry[k]->d_name);
        if (ok && set.failed) say(b->result, 0, "no memory");
        ok = ok && !set.failed && run_set(b, set.text);
        hone_text_free(&set);
        free(entry[k]);
    }
    free(entry);
    if (ok) say(b->result, 1, "%s", "");
}

void hone_conformance_case(const char *folder, double rtol, double atol, const hone_options *options,
                           hone_case *out) {
    *out = (hone_case){0};
    hone_text path = {0};
    hone_text_put(&path, "%s/model.onnx", folder);
    if (path.failed) {
        say(out, 0, "no memory");
        return;
    }
    bool random = name_op(path.text, folder, out);
    hone_model *model = NULL;
    bench b = {.rtol = rtol, .atol = random ? INFINITY : atol, .result = out};
    hone_status s = hone_model_load(path.text, &model);
    if (!s) s = hone_session_create(model, options, &b.session);
    if (s) {
        say(out, 0, "%s", hone_error());
    } else {
        b.model = model;
        b.in = hone_alloc(sizeof *b.in * (size_t)(hone_model_inputs(model) + 1));
        b.out = hone_alloc(sizeof *b.out * (size_t)(hone_model_outputs(model) + 1));
        if (b.in && b.out) run_sets(&b, folder);
        else say(out, 0, "no memory");
    }
    if (random && out->passed == 1)
        say(out, -1, "draws at random: shapes and types are right, the numbers cannot be compared");
    hone_free(b.in);
    hone_free(b.out);
    hone_session_free(b.session);
    hone_model_free(model);
    hone_text_free(&path);
}
