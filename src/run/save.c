/* SPDX-License-Identifier: Apache-2.0
   save: a model as a file for other runtimes; and whether a file may be written beside a model that is in
   use. */
#include <string.h>

#include "base/file.h"
#include "hone/tools.h"
#include "model/export.h"
#include "model/onnx.h"
#include "run/model.h"
#include "zoo/zoo.h"

hone_status hone_model_save(const hone_model *m, const char *path) {
    if (!m || !path) return hone_fail(HONE_BAD_INPUT, "hone_model_save: model and path must not be NULL");
    HONE_TRY(hone_model_whole(m));
    return hone_graph_export_file(m->compiled->graph, path, NULL);
}

hone_status hone_not_source(const char *model, const char *path) {
    const hone_library *lib;
    hone_graph *g;
    if (!model || !path) return hone_fail(HONE_BAD_INPUT, "hone_not_source: model and path must not be NULL");
    /* nothing is there */
    if (!strncmp(model, HONE_ZOO_PREFIX, strlen(HONE_ZOO_PREFIX)) || !hone_file_same(path, path))
        return HONE_OK;
    if (hone_file_same(model, path))
        return hone_fail(HONE_BAD_INPUT,
                         "cannot write '%s': the model is read from that file; choose another name", path);
    HONE_TRY(hone_library_builtin(&lib));
    if (hone_onnx_load(model, lib, &g)) return HONE_OK; /* what cannot be imported reads nothing else */
    hone_status s = hone_graph_not_source(g, path);
    hone_graph_destroy(g);
    return s;
}
