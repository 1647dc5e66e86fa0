/* SPDX-License-Identifier: Apache-2.0
   export: a graph becomes a ModelProto: opening, closing, and where its bytes go. */
#include "model/export.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "model/export_write.h"
#include "model/tensor.h"

#define MOST_BYTES ((uint64_t)INT32_MAX) /* what readers of protobuf take */
#define MOST_WEIGHTS (MOST_BYTES - ((uint64_t)64 << 20))

void hone_export_no_memory(hone_exporter *x) {
    hone_export_fail(x, hone_fail(HONE_NO_MEMORY, "no memory to export a model"));
}

/* ---- what the whole graph has -------------------------------------------------------------------------- */
typedef struct {
    hone_exporter *x;
    int tildes;     /* the longest run in any name */
    uint64_t bytes; /* of weights */
} survey;

static void count_tildes(survey *y, const char *name) {
    int run = 0;
    for (; *name; name++) {
        run = *name == '~' ? run + 1 : 0;
        if (run > y->tildes) y->tildes = run;
    }
}

static void look_at(survey *y, const hone_graph *g) {
    for (int v = 0; v < g->var.n; v++) {
        const hone_var *var = g->var.at + v;
        count_tildes(y, var->name);
        if (var->value && var->tag == HONE_TAG_TENSOR &&
            !hone_push(&y->x->shared, ((hone_export_shared){.value = var->value, .first = g})))
            hone_export_no_memory(y->x);
    }
    for (int k = 0; k < g->node.n; k++) {
        const hone_node *n = g->node.at[k];
        count_tildes(y, n->name);
        for (int p = 0; p < n->n_part; p++) count_tildes(y, n->part[p]->name);
        for (int b = 0; b < n->n_body; b++) look_at(y, n->body[b]);
    }
}

static int by_value(const void *a, const void *b) {
    const hone_value *x = ((const hone_export_shared *)a)->value, *y = ((const hone_export_shared *)b)->value;
    return (x > y) - (x < y);
}

static const char *name_in(const hone_graph *g, const hone_value *value) {
    for (int v = 0; v < g->var.n; v++)
        if (g->var.at[v].value == value) return g->var.at[v].name;
    return NULL;
}

/* One entry a value is left. */
static void find_shared(survey *y) {
    hone_exporter *x = y->x;
    int n = 0;
    if (x->shared.n) qsort(x->shared.at, (size_t)x->shared.n, sizeof *x->shared.at, by_value);
    for (int k = 0; k < x->shared.n; n++) {
        hone_export_shared e = x->shared.at[k];
        size_t bytes = hone_dtype_file_bytes(e.value->dtype, (size_t)hone_value_count(e.value));
        y->bytes += bytes < MOST_BYTES ? bytes : MOST_BYTES;
        for (; k < x->shared.n && x->shared.at[k].value == e.value; k++)
            e.many |= x->shared.at[k].first != e.first;
        if (e.many) e.name = name_in(x->root, e.value);
        x->shared.at[n] = e;
    }
    x->shared.n = n;
}

/* ---- the model ----------------------------------------------------------------------------------------- */
static void put_opset(hone_wire_out *w, const char *domain, int version) {
    hone_wire_mark m = hone_wire_open(w, 8);
    hone_wire_put_text(w, 1, domain);
    hone_wire_put_number(w, 2, (uint64_t)version);
    hone_wire_close(w, m);
}

static void put_model(hone_exporter *x) {
    hone_wire_out *w = &x->w;
    hone_wire_put_number(w, 1, 0); /* ir_version: one byte, filled in when the opset is known */
    size_t ir_version = w->n - 1;
    hone_wire_put_text(w, 2, "hone");
    hone_wire_put_text(w, 3, hone_version());
    hone_export_graph(x, 7, x->root, NULL, NULL);
    put_opset(w, "", x->opset);
    for (int d = 0; d < x->n_domain && !x->status; d++) {
        put_opset(w, x->domain[d].domain, x->domain[d].version);
        if (x->domain[d].last && x->domain[d].version > x->domain[d].until)
            hone_export_fail(x, hone_fail(HONE_NOT_SUPPORTED,
                                          "cannot export node '%.80s': its op left %s after version %d, and "
                                          "node '%.80s' needs version %d",
                                          x->domain[d].last, x->domain[d].domain, x->domain[d].until,
                                          x->domain[d].needs, x->domain[d].version));
    }
    if (w->failed) hone_export_no_memory(x);
    else w->bytes[ir_version] = (uint8_t)hone_export_ir_version(x->opset);
}

static hone_status make(hone_exporter *x, const hone_graph *g, const hone_export_to *to, bool outside) {
    survey y = {.x = x};
    x->root = g, x->opset = HONE_EXPORT_OPSET;
    if (!(x->arena = hone_arena_create())) return hone_fail(HONE_NO_MEMORY, "no memory to export a model");
    look_at(&y, g);
    char *tag = hone_arena_alloc(x->arena, (size_t)y.tildes + 2);
    if (!tag) return hone_fail(HONE_NO_MEMORY, "no memory to export a model");
    memset(tag, '~', (size_t)y.tildes + 1);
    x->tag = tag;
    find_shared(&y);
    outside |= y.bytes > (to->inline_max ? to->inline_max : MOST_WEIGHTS);
    if (outside && !to->data.put)
        return hone_fail(HONE_NOT_SUPPORTED,
                         "cannot export: %llu bytes of weights need a file beside the model",
                         (unsigned long long)y.bytes);
    if (outside) x->data_name = to->data_name;
    if (!x->status) put_model(x);
    return x->status;
}

static void finish(hone_exporter *x) {
    hone_wire_out_free(&x->w);
    hone_vec_free(&x->outside);
    hone_vec_free(&x->shared);
    hone_vec_free(&x->hoisted);
    if (x->arena) hone_arena_destroy(x->arena);
    *x = (hone_exporter){0};
}

static hone_status send_outside(const hone_exporter *x, const hone_sink *to) {
    static const uint8_t zeros[4096];
    uint64_t at = 0;
    for (int k = 0; k < x->outside.n; k++) {
        const hone_value *v = x->outside.at[k].value;
        size_t n = (size_t)hone_value_count(v);
        if (x->outside.at[k].offset > at)
            HONE_TRY(to->put(to->context, zeros, (size_t)(x->outside.at[k].offset - at)));
        HONE_TRY(hone_wire_send_elements(v->dtype, v->data, n, to));
        at = x->outside.at[k].offset + hone_dtype_file_bytes(v->dtype, n);
    }
    return HONE_OK;
}

hone_status hone_graph_export(const hone_graph *g, const hone_export_to *to, hone_exported *out) {
    hone_exporter x = {0};
    if (g->outer)
        return hone_fail(HONE_BAD_INPUT, "cannot export graph '%.100s': it is the body of a node", g->name);
    hone_status s = make(&x, g, to, false);
    /* weights fit, but not with the rest */
    if (!s && hone_wire_size(&x.w) > MOST_BYTES && !x.data_name && to->data.put) {
        finish(&x);
        s = make(&x, g, to, true);
    }
    if (!s && hone_wire_size(&x.w) > MOST_BYTES)
        s = hone_fail(HONE_NOT_SUPPORTED, "cannot export: %llu bytes are more than an ONNX file can hold",
                      (unsigned long long)hone_wire_size(&x.w));
    if (!s && x.outside.n) s = send_outside(&x, &to->data);
    if (!s) s = hone_wire_send(&x.w, &to->model);
    if (!s && out) *out = (hone_exported){x.nodes, hone_wire_size(&x.w), x.outside_bytes, x.opset};
    finish(&x);
    return s;
}

/* ---- to files ------------------------------------------------------------------------------------------ */
hone_status hone_graph_not_source(const hone_graph *g, const char *path) {
    const hone_onnx_files *files = g->keep_free == hone_onnx_files_free ? g->keep : NULL;
    bool same = files && files->beside && hone_file_same(path, files->beside);
    for (int k = 0; files && k < files->name.n && !same; k++) same = hone_file_same(path, files->name.at[k]);
    return same ? hone_fail(HONE_BAD_INPUT,
                            "cannot write '%s': the model is read from that file; choose another name", path)
                : HONE_OK;
}

typedef struct {
    const char *path;
    hone_file_out file;
    bool begun;
} late_file; /* begun with its first byte: most models need no data beside them */

static hone_status put_late(void *context, const void *data, size_t bytes) {
    late_file *f = context;
    if (!f->begun) HONE_TRY(hone_file_begin(f->path, &f->file));
    f->begun = true;
    return hone_file_put(&f->file, data, bytes);
}

hone_status hone_graph_export_file(const hone_graph *g, const char *path, hone_exported *out) {
    hone_text data = {0};
    hone_text_put(&data, "%s.data", path);
    if (data.failed) {
        hone_text_free(&data);
        return hone_fail(HONE_NO_MEMORY, "no memory to write '%s'", path);
    }
    late_file model = {.path = path}, weights = {.path = data.text};
    const char *slash = strrchr(data.text, '/');
    hone_export_to to = {{put_late, &model}, {put_late, &weights}, slash ? slash + 1 : data.text, 0};
    hone_status s = hone_graph_not_source(g, path);
    if (!s) s = hone_graph_not_source(g, data.text);
    if (!s) s = hone_graph_export(g, &to, out);
    if (weights.begun) { /* first, so that no model is there without its data */
        hone_status end = hone_file_end(&weights.file, !s);
        if (!s) s = end;
    }
    if (model.begun) {
        hone_status end = hone_file_end(&model.file, !s);
        if (!s) s = end;
    }
    hone_text_free(&data);
    return s;
}
