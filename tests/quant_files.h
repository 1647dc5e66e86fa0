/* SPDX-License-Identifier: Apache-2.0
   quant_files: a graph written as a model, quantized into another file, and both run on the same random
   inputs. For tests of the forms of quantization. */
#ifndef HONE_TESTS_QUANT_FILES_H
#define HONE_TESTS_QUANT_FILES_H
#include <math.h>

#include "hone/quant.h"
#include "model/export.h"
#include "model/onnx.h"
#include "random.h"

typedef struct {
    char folder[64], from[96], to[96];
    uint32_t seed;
} quant_files;
static inline const hone_library *quant_rows(void) {
    const hone_library *l;
    if (hone_library_builtin(&l)) fail_msg("%s", hone_fail_text());
    return l;
}
static inline quant_files quant_files_open(const char *text) {
    quant_files f = {.seed = 7};
    hone_graph *g = NULL;
    snprintf(f.folder, sizeof f.folder, "/tmp/hone_quant_XXXXXX");
    assert_non_null(mkdtemp(f.folder));
    snprintf(f.from, sizeof f.from, "%s/from.onnx", f.folder),
        snprintf(f.to, sizeof f.to, "%s/to.onnx", f.folder);
    if (hone_graph_parse(text, strlen(text), &g) || hone_graph_infer(g) ||
        hone_graph_export_file(g, f.from, NULL))
        fail_msg("%s", hone_fail_text());
    hone_graph_destroy(g);
    return f;
}
static inline void quant_files_close(const quant_files *f) {
    unlink(f->from), unlink(f->to), rmdir(f->folder);
}
static inline void quantized(const quant_files *f, const hone_quantizing *wish, char **report) {
    if (hone_quantize(f->from, wish, f->to, report)) fail_msg("%s", hone_fail_text());
}
static inline const char *refused_quantized(const quant_files *f, const hone_quantizing *wish) {
    char *report = NULL;
    assert_int_not_equal(hone_quantize(f->from, wish, f->to, &report), HONE_OK);
    assert_null(report);
    return hone_fail_text();
}
static inline hone_graph *quant_graph(const char *path) {
    hone_graph *g = NULL;
    if (hone_onnx_load(path, quant_rows(), &g)) fail_msg("%s", hone_fail_text());
    return g;
}
static inline int count_of(const char *path, const char *op) {
    hone_graph *g = quant_graph(path);
    int n = 0;
    for (int k = 0; k < g->node.n; k++) n += !strcmp(g->node.at[k]->program->name, op);
    hone_graph_destroy(g);
    return n;
}
/* Inputs of f32 from -1 to 1, of whole numbers from 0 to 3; free dims are 2. */
static inline void quant_inputs(const hone_model *m, uint32_t seed, hone_value **in) {
    for (int k = 0; k < hone_model_inputs(m); k++) {
        const hone_port *p = hone_model_input(m, k);
        int64_t dim[HONE_MAX_RANK];
        for (int i = 0; i < p->rank; i++) dim[i] = p->dims[i] < 0 ? 2 : p->dims[i];
        if (hone_value_tensor(p->dtype, dim, p->rank, &in[k])) fail_msg("%s", hone_fail_text());
        for (int64_t i = 0, n = hone_value_count(in[k]); i < n; i++) {
            next_linear(&seed);
            if (p->dtype == HONE_DTYPE_F32) ((float *)in[k]->data)[i] = (float)(seed >> 8) / (1 << 23) - 1;
            else if (p->dtype == HONE_DTYPE_BOOL) ((uint8_t *)in[k]->data)[i] = seed >> 31;
            else ((int64_t *)in[k]->data)[i] = seed >> 30;
        }
    }
}
/* Of the outputs of both models, as a share of the largest value. */
static inline double largest_difference(const quant_files *f) {
    hone_value *in[8] = {0}, *out[2][8] = {{0}};
    double worst = 0;
    int n = 0;
    for (int w = 0; w < 2; w++) {
        hone_model *m = NULL;
        hone_session *s = NULL;
        if (hone_model_load(w ? f->to : f->from, &m) || hone_session_create(m, NULL, &s))
            fail_msg("%s", hone_error());
        if (!w) quant_inputs(m, f->seed, in);
        if (hone_session_run(s, in, out[w])) fail_msg("%s", hone_error());
        n = hone_model_outputs(m);
        hone_session_free(s);
        if (w)
            for (int k = 0; k < hone_model_inputs(m); k++) hone_value_drop(in[k]);
        hone_model_free(m);
    }
    for (int k = 0; k < n; k++) {
        double top = 1e-30, most = 0;
        assert_int_equal(out[0][k]->dtype, out[1][k]->dtype);
        for (int64_t i = 0, many = hone_value_count(out[0][k]); i < many; i++) {
            top = fmax(top, fabs(hone_value_f64(out[0][k], i)));
            most = fmax(most, fabs(hone_value_f64(out[0][k], i) - hone_value_f64(out[1][k], i)));
        }
        worst = fmax(worst, most / top);
        hone_value_drop(out[0][k]), hone_value_drop(out[1][k]);
    }
    return worst;
}
/* Each allocation fails once: a line that says so, or the model all the same; nothing lost (leaks.c
   looks). */
static inline void fails_without_memory(const quant_files *f, const hone_quantizing *wish) {
    char *report = NULL;
    hone_status s = HONE_NO_MEMORY;
    quantized(f, wish, &report); /* what is made once for the process is made now */
    hone_text_release(report);
    for (int64_t k = 0; k < 100000; k += 1 + k / 16) {
        report = NULL;
        hone_alloc_fail_after(k);
        s = hone_quantize(f->from, wish, f->to, &report);
        hone_alloc_fail_after(-1);
        if (s) assert_null(report);
        if (s && s != HONE_NO_MEMORY) fail_msg("allocation %lld: %s", (long long)k, hone_fail_text());
        hone_text_release(report);
    }
    assert_int_equal(s, HONE_OK);
}
#endif
