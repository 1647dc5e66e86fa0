/* SPDX-License-Identifier: Apache-2.0
   import: a ModelProto becomes a graph. Opsets first, then functions, then the model's graph. */
#include "model/import.h"

#include "model/onnx.h"
#include "model/scope.h"

enum { NEWEST_IR = 14 };

void hone_onnx_import(hone_onnx_model *m, hone_wire model) {
    hone_field f, graph = {0};
    bool good = hone_wire_good(model);
    if (!good)
        hone_import_problem(&m->im, HONE_BAD_INPUT, "the file is not an ONNX model, or it is cut short");
    int64_t ir_version = 0;
    for (hone_wire w = model; good && hone_wire_next(&w, &f);) {
        if (f.number == 1 && f.type == HONE_WIRE_VARINT) ir_version = (int64_t)f.value;
        if (f.type != HONE_WIRE_BYTES) continue;
        if (f.number == 7) graph = f;
        if (f.number == 8 && !hone_import_opset(m, hone_wire_of(&f), &m->opsets))
            hone_import_no_memory(&m->im);
    }
    if (!good) return;
    if (!graph.data) {
        hone_import_problem(&m->im, HONE_BAD_INPUT, "the file is not an ONNX model: it has no graph");
        return;
    }
    if (ir_version < 1) hone_import_forgive(&m->im, "the model says no ir_version");
    if (ir_version > NEWEST_IR)
        hone_import_forgive(&m->im, "ir_version %lld is newer than what is known, %d", (long long)ir_version,
                            NEWEST_IR);
    if (!hone_import_opset_missing(m, ir_version)) hone_import_no_memory(&m->im);
    for (hone_wire w = model; hone_wire_next(&w, &f);)
        if (f.number == 25 && f.type == HONE_WIRE_BYTES && !hone_import_function(m, hone_wire_of(&f)))
            hone_import_no_memory(&m->im);
    hone_import_functions_sort(m);
    hone_scope s = {.m = m, .g = m->im.root, .opsets = &m->opsets, .prefix = ""};
    m->im.root->opset = hone_scope_version(&s, "");
    hone_field name = hone_onnx_name_field(hone_wire_of(&graph), 2);
    if (name.bytes) m->im.root->name = hone_wire_text(m->im.root->arena, &name);
    if (!m->im.root->name) m->im.root->name = "", hone_import_no_memory(&m->im);
    if (!hone_import_graph(&s, hone_wire_of(&graph)))
        hone_import_problem(&m->im, HONE_BAD_INPUT, "the model's graph is damaged");
    m->im.root->n_formal = m->im.root->in.n;
}
