/* SPDX-License-Identifier: Apache-2.0
   zoo_api: the public face of the zoo: what there is, and writing it as ONNX. */
#include "hone/zoo.h"

#include "model/export.h"
#include "run/model.h"
#include "zoo/options.h"

static hone_status put_model(const hone_library *lib, const hone_zoo_model *m, const char *spec,
                             hone_text *t) {
    hone_zoo_size size;
    hone_text inputs = {0};
    hone_status s = hone_zoo_measure(spec, lib, &size, &inputs);
    if (!s) {
        hone_text_put(t, "{\"name\": ");
        hone_text_json(t, m->name);
        hone_text_put(t, ", \"what\": ");
        hone_text_json(t, m->what);
        hone_text_put(t, ", \"options\": ");
        hone_zoo_options_json(m, t);
        hone_text_put(t, ", \"inputs\": [%s]", inputs.text ? inputs.text : "");
        hone_text_put(t, ", \"parameters\": %lld, \"weight_bytes\": %lld, \"nodes\": %d, \"flops\": ",
                      (long long)size.parameters, (long long)size.weight_bytes, size.nodes);
        hone_text_put(t, size.flops > 0 ? "%.0f}" : "null}", size.flops);
    }
    hone_text_free(&inputs);
    return s;
}

hone_status hone_zoo_report(const char *spec, char **out) {
    const hone_library *lib;
    const hone_zoo_model *m;
    hone_zoo_options options;
    hone_text t = {0};
    if (!out) return hone_fail(HONE_BAD_INPUT, "hone_zoo_report: out must not be NULL");
    hone_status s = hone_library_builtin(&lib);
    hone_text_put(&t, "[");
    if (!s && spec) {
        s = hone_zoo_read(spec, &m, &options);
        if (!s) s = put_model(lib, m, spec, &t);
    }
    for (m = hone_zoo_models; !s && !spec && m->name; m++) {
        if (m != hone_zoo_models) hone_text_put(&t, ", ");
        s = put_model(lib, m, m->name, &t);
    }
    hone_text_put(&t, "]");
    if (!s) return hone_text_give(&t, out);
    hone_text_free(&t);
    return s;
}

hone_status hone_zoo_write(const char *spec, const char *path) {
    const hone_library *lib;
    hone_graph *g;
    if (!spec || !path) return hone_fail(HONE_BAD_INPUT, "hone_zoo_write: spec and path must not be NULL");
    HONE_TRY(hone_library_builtin(&lib));
    HONE_TRY(hone_zoo_graph(spec, lib, &g));
    hone_status s = hone_graph_export_file(g, path, NULL);
    hone_graph_destroy(g);
    return s;
}
