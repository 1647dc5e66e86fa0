/* SPDX-License-Identifier: Apache-2.0
   onnx: opening and closing around an import, and the one message where it fails. */
#include "model/onnx.h"

#include <string.h>

#include "model/import.h"

static void finish(hone_onnx_model *m) {
    for (int k = 0; k < m->functions.n; k++) {
        hone_vec_free(&m->functions.at[k].opsets);
        hone_vec_free(&m->functions.at[k].defaults);
    }
    hone_vec_free(&m->functions);
    hone_vec_free(&m->opsets);
    for (int k = 0; k < m->im.loose.n; k++) hone_value_drop(m->im.loose.at[k]);
    hone_vec_free(&m->im.loose);
    if (m->im.instances) hone_instances_destroy(m->im.instances);
    hone_text_free(&m->im.problems);
    hone_text_free(&m->im.forgiven);
    if (m->im.scratch) hone_arena_destroy(m->im.scratch);
}

/* Takes `files`, whatever happens. */
static hone_status load(hone_onnx_files *files, const char *const *open, int n_open,
                        const hone_library *library, hone_graph **out) {
    hone_onnx_model m = {.im = {.library = library,
                                .open = open,
                                .n_open = n_open,
                                .files = files,
                                .scratch = hone_arena_create(),
                                .inlined_limit = (256u << 20) + 16 * (uint64_t)files->model.bytes}};
    hone_status s = m.im.scratch ? hone_graph_create("", &m.im.root)
                                 : hone_fail(HONE_NO_MEMORY, "no memory to import a model");
    if (s) {
        hone_onnx_files_free(files);
        finish(&m);
        return s;
    }
    hone_graph *g = m.im.root;
    g->keep = files;
    g->keep_free = hone_onnx_files_free;
    hone_onnx_import(&m, (hone_wire){files->model.data, files->model.data + files->model.bytes, false});
    s = m.im.worst;
    if (!s && m.im.forgiven.n && !(g->forgiven = hone_arena_text(g->arena, "%s", m.im.forgiven.text)))
        hone_import_no_memory(&m.im), s = m.im.worst;
    if (s) hone_fail_lines(s, m.im.problems.text ? m.im.problems.text : "no memory to import the model");
    finish(&m);
    if (!s) {
        hone_graph_index(g);
        s = hone_graph_verify(g);
    }
    g->file = (hone_stated){files->model.data, files->model.bytes};
    if (s) hone_graph_destroy(g);
    else *out = g;
    return s;
}

static hone_onnx_files *files_create(const char *beside) {
    hone_onnx_files *files = hone_alloc(sizeof *files);
    if (!files) return NULL;
    files->model.data = (const uint8_t *)"";
    files->arena = hone_arena_create();
    if (files->arena && beside) files->beside = hone_arena_text(files->arena, "%s", beside);
    if (files->arena && (!beside || files->beside)) return files;
    hone_onnx_files_free(files);
    return NULL;
}

hone_status hone_onnx_load(const char *path, const hone_library *library, hone_graph **out) {
    return hone_onnx_load_open(path, NULL, 0, library, out);
}

hone_status hone_onnx_load_open(const char *path, const char *const *names, int n,
                                const hone_library *library, hone_graph **out) {
    hone_onnx_files *files = files_create(path);
    if (!files) return hone_fail(HONE_NO_MEMORY, "no memory to load '%s'", path);
    hone_status s = hone_file_open(path, &files->model);
    if (s) {
        files->model = (hone_file){0};
        hone_onnx_files_free(files);
        return s;
    }
    s = load(files, names, n, library, out);
    /* what was copied is twice in memory, what was not comes again */
    if (!s) hone_file_forget(files->model.data, files->model.bytes);
    return s ? hone_fail_at(s, "%s: ", path) : HONE_OK;
}

hone_status hone_onnx_load_memory(const void *data, size_t bytes, const char *folder,
                                  const hone_library *library, hone_graph **out) {
    hone_text beside = {0};
    if (folder) hone_text_put(&beside, "%s/x", folder);
    hone_onnx_files *files = beside.failed ? NULL : files_create(folder ? beside.text : NULL);
    hone_text_free(&beside);
    uint8_t *copy = files && bytes ? hone_alloc_raw(bytes) : NULL;
    if (!files || (bytes && !copy)) {
        hone_onnx_files_free(files);
        return hone_fail(HONE_NO_MEMORY, "no memory to load a model of %zu bytes", bytes);
    }
    if (bytes) memcpy(copy, data, bytes), files->model = (hone_file){copy, bytes, false};
    return load(files, NULL, 0, library, out);
}
