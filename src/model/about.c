/* SPDX-License-Identifier: Apache-2.0
   about: what a model file says of itself: who made it, texts, versions, and the types of inputs and outputs
   in its own words. Read when somebody asks; nothing that runs depends on it, and no weight is looked at. */
#include <string.h>

#include "model/onnx.h"
#include "model/wire.h"

enum { DEEPEST = 16 };
static const char *const elements[] = {
    "undefined", "float",      "uint8",      "int8",         "uint16",         "int16",      "int32",
    "int64",     "string",     "bool",       "float16",      "double",         "uint32",     "uint64",
    "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
    "uint4",     "int4",       "float4e2m1", "float8e8m0",   "uint2",          "int2",
};
static const char *element(uint64_t number) {
    return number < sizeof elements / sizeof *elements ? elements[number] : "undefined";
}

/* the last one, as protobuf has it; none: number 0 */
static hone_field field_of(hone_wire w, uint32_t number) {
    hone_field f, found = {0};
    while (hone_wire_next(&w, &f))
        if (f.number == number) found = f;
    return found;
}
static void put_string(hone_text *t, const hone_field *f) {
    hone_arena *a = hone_arena_create();
    const char *text = a && f->type == HONE_WIRE_BYTES && f->bytes ? hone_wire_text(a, f) : "";
    if (!a || !text) t->failed = true;
    else hone_text_json(t, text);
    hone_arena_destroy(a);
}
/* "tensor(float)", "seq(map(int64,tensor(float)))"; returns the message of the innermost tensor, for its
   shape. */
static hone_field put_type(hone_text *t, const hone_field *type, int depth) {
    static const struct {
        uint32_t number;
        const char *name;
    } lists[] = {{4, "seq"}, {5, "map"}, {9, "optional"}};
    hone_field tensor = field_of(hone_wire_of(type), 1), sparse = field_of(hone_wire_of(type), 8), none = {0};
    if (tensor.type == HONE_WIRE_BYTES && tensor.number) {
        hone_text_put(t, "tensor(%s)", element(field_of(hone_wire_of(&tensor), 1).value));
        return tensor;
    }
    if (sparse.type == HONE_WIRE_BYTES && sparse.number) {
        hone_text_put(t, "sparse_tensor(%s)", element(field_of(hone_wire_of(&sparse), 1).value));
        return sparse;
    }
    for (size_t k = 0; k < sizeof lists / sizeof *lists && depth < DEEPEST; k++) {
        const hone_field list = field_of(hone_wire_of(type), lists[k].number);
        if (list.type != HONE_WIRE_BYTES || !list.number) continue;
        const bool map = lists[k].number == 5;
        hone_text_put(t, "%s(", lists[k].name);
        if (map) hone_text_put(t, "%s,", element(field_of(hone_wire_of(&list), 1).value));
        const hone_field inside = field_of(hone_wire_of(&list), map ? 2 : 1);
        const hone_field found =
            inside.type == HONE_WIRE_BYTES && inside.number ? put_type(t, &inside, depth + 1) : none;
        hone_text_put(t, ")");
        return lists[k].number == 9 ? found : none;
    }
    return none;
}
static void put_dims(hone_text *t, const hone_field *tensor) {
    const hone_field shape = tensor->number ? field_of(hone_wire_of(tensor), 2) : (hone_field){0};
    if (shape.type != HONE_WIRE_BYTES || !shape.number) {
        hone_text_put(t, "null");
        return;
    }
    hone_field dim;
    const char *comma = "";
    hone_text_put(t, "[");
    for (hone_wire w = hone_wire_of(&shape); hone_wire_next(&w, &dim); comma = ", ") {
        if (dim.number != 1 || dim.type != HONE_WIRE_BYTES) continue;
        const hone_field value = field_of(hone_wire_of(&dim), 1), name = field_of(hone_wire_of(&dim), 2);
        hone_text_put(t, "%s", comma);
        if (value.number && value.type == HONE_WIRE_VARINT) hone_text_put(t, "%lld", (long long)value.value);
        else if (name.bytes) put_string(t, &name);
        else hone_text_put(t, "null");
    }
    hone_text_put(t, "]");
}
static void put_ports(hone_text *t, hone_wire graph, uint32_t number) {
    hone_field f;
    const char *comma = "";
    while (hone_wire_next(&graph, &f)) {
        if (f.number != number || f.type != HONE_WIRE_BYTES) continue;
        const hone_field name = field_of(hone_wire_of(&f), 1), type = field_of(hone_wire_of(&f), 2);
        hone_text_put(t, "%s{\"name\": ", comma), comma = ", ";
        put_string(t, &name);
        hone_text_put(t, ", \"type\": \"");
        const hone_field tensor = put_type(t, &type, 0);
        hone_text_put(t, "\", \"dims\": ");
        put_dims(t, &tensor);
        hone_text_put(t, "}");
    }
}
static void put_pairs(hone_text *t, hone_wire model, uint32_t number, bool versions) {
    hone_field f;
    const char *comma = "";
    while (hone_wire_next(&model, &f)) {
        if (f.number != number || f.type != HONE_WIRE_BYTES) continue;
        const hone_field key = field_of(hone_wire_of(&f), 1), value = field_of(hone_wire_of(&f), 2);
        hone_text_put(t, "%s[", comma), comma = ", ";
        put_string(t, &key);
        hone_text_put(t, ", ");
        if (versions) hone_text_put(t, "%lld", (long long)value.value);
        else put_string(t, &value);
        hone_text_put(t, "]");
    }
}
void hone_onnx_about(const void *data, size_t bytes, hone_text *t) {
    static const struct {
        const char *name;
        uint32_t number;
        bool of_graph;
    } texts[] = {{"producer_name", 2, false}, {"producer_version", 3, false}, {"domain", 4, false},
                 {"doc_string", 6, false},    {"graph_name", 2, true},        {"graph_doc_string", 10, true}};
    const hone_wire model = {data, data ? (const uint8_t *)data + bytes : data, false};
    const hone_field g = field_of(model, 7);
    const hone_wire graph = hone_wire_of(&g);
    hone_text_put(t, "{\"ir_version\": %lld, \"model_version\": %lld", (long long)field_of(model, 1).value,
                  (long long)field_of(model, 5).value);
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        const hone_field f = field_of(texts[k].of_graph ? graph : model, texts[k].number);
        hone_text_put(t, ", \"%s\": ", texts[k].name);
        put_string(t, &f);
    }
    hone_text_put(t, ", \"opsets\": [");
    put_pairs(t, model, 8, true);
    hone_text_put(t, "], \"metadata\": [");
    put_pairs(t, model, 14, false);
    hone_text_put(t, "], \"inputs\": [");
    put_ports(t, graph, 11);
    hone_text_put(t, "], \"outputs\": [");
    put_ports(t, graph, 12);
    hone_text_put(t, "]}");
}
