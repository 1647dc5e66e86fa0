/* SPDX-License-Identifier: Apache-2.0
   seeds: what the fuzzers begin with:  seeds FOLDER [MODELS…]  writes FOLDER/model, FOLDER/ops, FOLDER/graph,
     FOLDER/image, FOLDER/wisdom, FOLDER/grpc and FOLDER/serve.
   MODELS are folders; every small .onnx file below them is a seed too, as whatever tool left it.

   Models: one of a single node for each op row, at three ranks, and some written by hand (bodies, functions,
   sparse tensors, lists). Op texts: each row of the library. Graph texts: the models that load, as text.
   Pictures: a tiny one in each format. Wisdom: a line of each kind, without the head, which the fuzzer puts
   before it. */
#define _GNU_SOURCE
#include <ftw.h>
#include <sys/stat.h>

#include "../tests/onnx_write.h"
#include "base/file.h"
#include "model/onnx.h"
#include "seeds_image.h"

static const char *folder;
static int count;

static void save(const char *kind, const char *name, const void *data, size_t n) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%03d-%s", folder, kind, count++, name);
    if (hone_file_write(path, data, n)) fprintf(stderr, "%s\n", hone_fail_text()), exit(1);
}
static void save_model(const char *name, msg m) { /* takes m */
    hone_graph *g = NULL;
    const hone_library *library;
    hone_text t = {0};
    save("model", name, m.at, m.n);
    if (hone_library_builtin(&library) == HONE_OK &&
        hone_onnx_load_memory(m.at, m.n, NULL, library, &g) == HONE_OK) {
        if (hone_graph_print(g, &t) == HONE_OK) save("graph", name, t.text, t.n);
        hone_graph_destroy(g);
    }
    hone_text_free(&t);
    free(m.at);
}

/* ---- one node of each row ------------------------------------------------------------------------------ */
static int dtype_of(const hone_program *p, const hone_operand *o) {
    if (o->of == HONE_OF_DTYPE) return o->dtype;
    for (int k = 0; o->of == HONE_OF_VAR && k < p->n_type; k++)
        if (!strcmp(p->type[k].name, o->type))
            for (int t = 1; t < HONE_DTYPE_COUNT; t++)
                if (p->type[k].allowed >> t & 1 &&
                    (t == HONE_DTYPE_F32 || !(p->type[k].allowed >> HONE_DTYPE_F32 & 1)))
                    return t;
    return HONE_DTYPE_F32;
}
static msg attribute_of(const hone_attr_spec *a) {
    switch (a->kind) {
    case HONE_ATTR_INT:
    case HONE_ATTR_TYPE: return attr_int(a->name, a->has_default ? a->i : 1);
    case HONE_ATTR_FLOAT: return attr_float(a->name, a->has_default ? (float)a->f : 0.5f);
    case HONE_ATTR_INTS: return attr_ints(a->name, "1 2");
    case HONE_ATTR_STRING: return attr_text(a->name, a->s ? a->s : "");
    case HONE_ATTR_TENSOR: return attr_sub(a->name, 4, 5, floats("", "1", (float[]){2}, 1));
    default: return attr(a->name, 0);
    }
}
/* `contents`: operands whose numbers decide shapes are initializers, else everything is an input. */
static msg single(const hone_program *p, int rank) {
    static const char *const dims[] = {"", "3", "2 3", "1 2 3", "1 2 3 4"};
    msg g = {0}, n = {0};
    text(&g, 2, "seed");
    for (int k = 0; k < p->n_in + p->n_out; k++) text(&n, k < p->n_in ? 1 : 2, p->operand[k].name);
    text(&n, 4, p->name);
    text(&n, 7, p->domain);
    for (int k = 0; k < p->n_attr; k++)
        if (p->attr[k].required || rank == 4) sub(&n, 5, attribute_of(p->attr + k));
    add_node(&g, n);
    for (int k = 0; k < p->n_in; k++) {
        const hone_operand *o = p->operand + k;
        int type = dtype_of(p, o), own = o->shaped && o->n_entry <= 4 && o->n_entry > 1 ? o->n_entry : rank;
        if (o->contents && type == HONE_DTYPE_I64) sub(&g, 5, ints(o->name, "2", (int64_t[]){1, 1}, 2));
        else add_input(&g, o->name, type, dims[own]);
    }
    for (int k = 0; k < p->n_out; k++) add_output(&g, p->operand[p->n_in + k].name);
    msg m = model_of(g, 25);
    if (*p->domain) sub(&m, 8, opset(p->domain, 1));
    return m;
}

/* ---- by hand ------------------------------------------------------------------------------------------- */
static msg body_of(const char *op, const char *in, const char *out, const char *outputs) {
    msg g = {0};
    char copy[64];
    text(&g, 2, "body");
    add_node(&g, node(op, in, out));
    snprintf(copy, sizeof copy, "%s", outputs);
    for (char *w = strtok(copy, " "); w; w = strtok(NULL, " ")) add_output(&g, w);
    return g;
}
static msg start(const char *dims) {
    msg g = {0};
    text(&g, 2, "seed");
    add_input(&g, "x", 1, dims);
    return g;
}
static msg finish(msg g, const char *out, int version) {
    char copy[64];
    snprintf(copy, sizeof copy, "%s", out);
    for (char *w = strtok(copy, " "); w; w = strtok(NULL, " ")) add_output(&g, w);
    return model_of(g, version);
}
static msg choose(void) {
    msg g = start("2 3");
    add_input(&g, "c", 9, "");
    msg n = with(node("If", "c", "y"), attr_sub("then_branch", 5, 6, body_of("Relu", "x", "t", "t")));
    add_node(&g, with(n, attr_sub("else_branch", 5, 6, body_of("NonZero", "x", "e", "e"))));
    return finish(g, "y", 21);
}
static msg loop(void) {
    msg g = start("2 3"), b = body_of("Add", "v x", "w", "c w w");
    sub(&b, 11, value_info("i", 7, "")), sub(&b, 11, value_info("c", 9, "")),
        sub(&b, 11, value_info("v", 1, NULL));
    sub(&g, 5, ints("n", "", (int64_t[]){3}, 1));
    add_node(&g, with(node("Loop", "n - x", "y s"), attr_sub("body", 5, 6, b)));
    return finish(g, "y s", 21);
}
static msg scan(void) {
    msg g = start("4 3"), b = body_of("Add", "state part", "sum", "sum sum");
    sub(&b, 11, value_info("state", 1, "3")), sub(&b, 11, value_info("part", 1, "3"));
    sub(&g, 5, floats("zero", "3", (float[]){0, 0, 0}, 3));
    add_node(&g, with(with(node("Scan", "zero x", "y s"), attr_int("num_scan_inputs", 1)),
                      attr_sub("body", 5, 6, b)));
    return finish(g, "y s", 21);
}
static msg function(void) {
    msg g = start("2 3"), f = {0}, inner = with(node("LeakyRelu", "a", "b"), attr_ref("alpha", 1, "slope"));
    text(&f, 1, "Leak"), text(&f, 4, "a"), text(&f, 5, "b"), text(&f, 6, "slope"), text(&f, 10, "my");
    sub(&f, 7, inner), sub(&f, 9, opset("", 16));
    add_node(&g, with(in_domain(node("Leak", "x", "y"), "my"), attr_float("slope", 0.25f)));
    msg m = finish(g, "y", 16);
    sub(&m, 8, opset("my", 1)), sub(&m, 25, f);
    return m;
}
static msg lists(void) {
    msg g = start("4 3");
    add_node(&g, with(node("SplitToSequence", "x", "s"), attr_int("keepdims", 1)));
    add_node(&g, node("SequenceInsert", "s x", "t"));
    add_node(&g, node("SequenceLength", "t", "n"));
    add_node(&g, with(node("ConcatFromSequence", "s", "y"), attr_int("axis", 0)));
    add_node(&g, node("Optional", "t", "o"));
    add_node(&g, node("OptionalHasElement", "o", "h"));
    return finish(g, "y n h", 21);
}
static msg sparse(void) {
    msg g = start("3"), s = {0};
    sub(&s, 1, floats("w", "2", (float[]){5, 6}, 2)), sub(&s, 2, ints("", "2", (int64_t[]){0, 2}, 2)),
        number(&s, 3, 3);
    sub(&g, 15, s);
    add_node(&g, node("Add", "x w", "y"));
    return finish(g, "y", 21);
}
static msg shapes(void) { /* sizes from numbers: known, free, and found during the run */
    msg g = start("batch 4");
    sub(&g, 5, ints("two", "2", (int64_t[]){-1, 2}, 2)), sub(&g, 5, ints("one", "1", (int64_t[]){1}, 1));
    add_node(&g, node("Shape", "x", "dims"));
    add_node(&g, node("Reshape", "x two", "r"));
    add_node(&g, node("NonZero", "r", "z"));
    add_node(&g, node("Expand", "one dims", "e"));
    add_node(&g, node("ConstantOfShape", "dims", "k"));
    add_node(&g, node("Tile", "r two", "t"));
    add_node(&g, with(node("Einsum", "x x", "s"), attr_text("equation", "ij,kj->ik")));
    return finish(g, "z e k t s", 21);
}
static msg network(void) { /* a convolution with what usually surrounds it */
    msg g = start("1 2 6 6");
    float w[3 * 2 * 3 * 3];
    for (int k = 0; k < 54; k++) w[k] = (float)(k % 7 - 3) / 4;
    sub(&g, 5, floats("w", "3 2 3 3", w, 54)), sub(&g, 5, floats("b", "3", w, 3)),
        sub(&g, 5, floats("m", "27 5", w, 0));
    sub(&g, 5, floats("v", "3 5", w, 15));
    add_node(&g, with(with(node("Conv", "x w b", "c"), attr_ints("pads", "1 1 1 1")),
                      attr_ints("strides", "2 2")));
    add_node(&g, node("BatchNormalization", "c b b b b", "n"));
    add_node(&g, node("Relu", "n", "r"));
    add_node(&g, with(node("MaxPool", "r", "p"), attr_ints("kernel_shape", "2 2")));
    add_node(&g, node("GlobalAveragePool", "r", "a"));
    add_node(&g, with(node("Flatten", "a", "f"), attr_int("axis", 1)));
    add_node(&g, node("MatMul", "f v", "l"));
    add_node(&g, with(node("Softmax", "l", "y"), attr_int("axis", -1)));
    return finish(g, "y p", 15);
}
static const struct {
    const char *name;
    msg (*make)(void);
} hand[] = {{"if", choose},   {"loop", loop},     {"scan", scan},     {"function", function},
            {"lists", lists}, {"sparse", sparse}, {"shapes", shapes}, {"network", network}};

/* ---- pictures ------------------------------------------------------------------------------------------ */
static void save_image(const char *name, msg m) { /* takes m */
    save("image", name, m.at, m.n);
    free(m.at);
}
static void pictures(void) {
    static const int bmp[] = {1, 4, 8, 16, 24, 32};
    static const char *const pnm[] = {"P1\n3 2\n1 0 1 0 1 0\n", "P2 3 2 255 1 2 3 4 5 6\n",
                                      "P3 1 1 9 1 2 3\n",       "P4 9 2\n",
                                      "P5 4 2 255\n",           "P6 2 2 255\n",
                                      "P6 2 2 65535\n"};
    for (size_t k = 0; k < sizeof bmp / sizeof *bmp; k++) save_image("bmp", seed_bmp(bmp[k]));
    for (size_t k = 0; k < sizeof pnm / sizeof *pnm; k++) save_image("pnm", seed_pnm(pnm[k], 24));
    for (int k = 0; k < IMAGE_FILES; k++) save_image("file", seed_file(k));
}

/* ---- wisdom -------------------------------------------------------------------------------------------- */
static void wisdom(void) {
    static const char sum[] =
        "sum k m 49 n 320 k 960 batch 1 taps 1 piece 960 a 0 b 1 each 0 direct 1 window 0 : vectors 1 rows "
        "49 columns 64 depth 960 tile 0 threads 2 : 9\nend 1\n";
    static const char *const lines[] = {
        sum, "bytes k m 49 n 320 k 960 batch 1 taps 1 piece 960 a 0 b 1 : rows 14 columns 64 : 9\nend 1\n",
        "plane k planes 3 height 9 width 9 down 3 across 3 bytes 0 : rows 2 : 9\nend 1\n",
        "attention k batch 12 m 128 n 128 depth 64 width 64 : rows 32 threads 1 : 9\nend 1\n"};
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
        save("wisdom", "line", lines[k], strlen(lines[k]));
}

/* ---- models of other tools ----------------------------------------------------------------------------- */
/* bytes of a file, files: what is longer is changed too rarely where it matters */
enum { SMALL = 48 << 10, MOST = 2000 };
static int found;
static int one_file(const char *path, const struct stat *st, int type, struct FTW *where) {
    const char *name = path + where->base, *dot = strrchr(name, '.');
    hone_file f;
    if (type != FTW_F || !dot || strcmp(dot, ".onnx") != 0 || st->st_size > SMALL || found == MOST ||
        hone_file_open(path, &f))
        return 0;
    msg m = {0};
    put(&m, f.data, f.bytes);
    hone_file_close(&f);
    found++;
    save_model("tool", m);
    return 0;
}

/* ---- the gRPC front: the first byte says what as, see fuzz_grpc.c -------------------------------------- */
static msg infer_request(const char *model, const char *type, bool raw) {
    msg r = {0}, in = {0};
    text(&r, 1, model), text(&r, 2, "1"), text(&r, 3, "an id");
    text(&in, 1, "x"), text(&in, 2, type), bytes(&in, 3, "\1\3", 2);
    if (!raw) {
        msg contents = {0};
        if (!strcmp(type, "BYTES")) text(&contents, 8, "a"), text(&contents, 8, ""), text(&contents, 8, "bc");
        else if (!strcmp(type, "FP32")) bytes(&contents, 6, "\0\0\x80\x3f\0\0\0\x40\0\0\0\0", 12);
        else bytes(&contents, 2, "\1\2\3", 3);
        sub(&in, 5, contents);
    }
    sub(&r, 5, in);
    msg out = {0}, parameter = {0}, value = {0};
    text(&out, 1, "y"), text(&parameter, 1, "classification"), number(&value, 2, 2);
    sub(&parameter, 2, value);
    if (strcmp(type, "BYTES")) sub(&out, 2, parameter);
    else free(parameter.at);
    sub(&r, 6, out);
    if (raw && !strcmp(type, "BYTES")) bytes(&r, 7, "\1\0\0\0a\0\0\0\0\2\0\0\0bc", 15);
    else if (raw) bytes(&r, 7, "\0\0\x80\x3f\0\0\0\x40\0\0\0\0", !strcmp(type, "FP32") ? 12 : 3);
    return r;
}
static void frame(msg *m, int type, int flags, const void *at, size_t n) {
    const uint8_t head[9] = {
        (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n, (uint8_t)type, (uint8_t)flags, 0, 0, 0, 1};
    put(m, head, sizeof head), put(m, at, n);
}
static void put_header(msg *m, const char *name, const char *value) { /* HPACK, literal */
    const uint8_t n = (uint8_t)strlen(name), v = (uint8_t)strlen(value);
    put(m, "\0", 1), put(m, &n, 1), put(m, name, n), put(m, &v, 1), put(m, value, v);
}
/* What a server behind a front answers, `status` with a message before it or alone. */
static void one_answer(const char *status, bool alone) {
    msg head = {0}, tail = {0}, all = {0};
    put(&head, "\x88", 1), put_header(&head, "content-type", "application/grpc");
    put_header(alone ? &head : &tail, "grpc-status", status);
    put_header(alone ? &head : &tail, "grpc-message", "why%20not");
    put(&all, "\2\0\0\0\4\0\0\0\0\0", 10); /* as what; then SETTINGS */
    frame(&all, 1, alone ? 5 : 4, head.at, head.n);
    if (!alone) frame(&all, 0, 0, "\0\0\0\0\2\10\1", 7), frame(&all, 1, 5, tail.at, tail.n);
    save("grpc", "answer", all.at, all.n);
    free(head.at), free(tail.at), free(all.at);
}
static void one_call(const char *method, msg request) { /* takes it */
    msg head = {0}, data = {0}, all = {0};
    const char *const more[] = {":path", method,     "content-type", "application/grpc",
                                "te",    "trailers", "grpc-timeout", "1S"};
    const uint8_t prefix[5] = {0, 0, (uint8_t)(request.n >> 16), (uint8_t)(request.n >> 8),
                               (uint8_t)request.n};
    put(&head, "\x83\x86", 2); /* POST, http: of HPACK's own table; the rest in words */
    for (size_t k = 0; k < sizeof more / sizeof *more; k += 2) put_header(&head, more[k], more[k + 1]);
    put(&data, prefix, sizeof prefix), put(&data, request.at, request.n);
    put(&all, "\1", 1);
    frame(&all, 1, 4, head.at, head.n), frame(&all, 0, 1, data.at, data.n);
    save("grpc", "call", all.at, all.n);
    free(head.at), free(data.at), free(all.at), free(request.at);
}
static void grpc(void) {
    static const char *const of[][2] = {{"f", "FP32"}, {"b", "INT8"}, {"t", "BYTES"}};
    static const char *const methods[] = {"ServerLive",          "ServerMetadata",  "ModelMetadata",
                                          "ModelConfig",         "ModelStatistics", "RepositoryIndex",
                                          "RepositoryModelLoad", "ModelReady"};
    char path[100];
    for (int k = 0; k < 6; k++) {
        msg r = infer_request(of[k / 2][0], of[k / 2][1], k % 2), all = {0};
        put(&all, "", 1), put(&all, r.at, r.n);
        save("grpc", "request", all.at, all.n);
        free(all.at);
        one_call(k % 3 ? "/inference.GRPCInferenceService/ModelInfer"
                       : "/inference.GRPCInferenceService/ModelStreamInfer",
                 r);
    }
    for (size_t k = 0; k < sizeof methods / sizeof *methods; k++) {
        msg r = {0};
        text(&r, 1, "f"), text(&r, 2, "1");
        snprintf(path, sizeof path, "/inference.GRPCInferenceService/%s", methods[k]);
        one_call(path, r);
    }
    for (int k = 3; k <= 7; k++) { /* what reflection is asked */
        msg r = {0};
        text(&r, k, k == 3 ? "inference.proto" : "inference.ModelInferRequest");
        one_call("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", r);
    }
    one_call("/grpc.health.v1.Health/Watch", (msg){0});
    one_answer("0", false), one_answer("14", true), one_answer("3", false);
}

/* ---- what the server reads: the first two bytes say as what, see fuzz_serve.c -------------------------- */
static void serve(void) {
    static const struct {
        char as, more;
        const char *text;
    } all[] = {
        {0, 0,
         "name: \"a\" max_batch_size: 8 input [ { name: \"x\" data_type: TYPE_FP32 dims: [ -1, 3 ] } ] "
         "dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100 } "
         "instance_group { count: 2 } version_policy: { specific { versions: [1, 2] } }"},
        {0, 0,
         "platform: \"ensemble\" ensemble_scheduling { step { model_name: \"a\" model_version: -1 input_map "
         "{ "
         "key: \"x\" value: \"t\" } output_map { key: \"y\" value: \"u\" } } }"},
        {0, 0,
         "sequence_batching { state { input_name: \"sum\" output_name: \"sum_out\" data_type: TYPE_FP32 "
         "dims: "
         "1 initial_state { zero_data: true data_type: TYPE_FP32 dims: 1 } } control_input { name: \"x\" "
         "control { kind: CONTROL_SEQUENCE_START fp32_false_true: [0, 1] } } }"},
        {1, 8, "[[1.5, 2], [null, true]]"},
        {1, 30, "[\"a\", \"\\u00e9\"]"},
        {2, 1, "\1"},
        {3, 0,
         "{\"ensemble\": [{\"model\": \"a\", \"inputs\": {\"x\": \"t\"}, \"outputs\": {\"y\": \"u\"}}]}"},
        {3, 0,
         "{\"sequence_batching\": {\"state\": {\"sum\": \"sum_out\"}}, \"ragged\": {\"mask\": \"x\", "
         "\"buckets\": [1, 2]}, \"dynamic_batching\": {\"preferred_batch_size\": [2, 4]}}"},
        {4, 0,
         "{\"inputs\": [{\"name\": \"x\", \"datatype\": \"FP32\", \"shape\": [1, 2], \"data\": [1.5, 2]}], "
         "\"outputs\": [{\"name\": \"y\", \"parameters\": {\"classification\": 1}}]}"},
        {4, 2,
         "{\"inputs\": [{\"name\": \"x\", \"datatype\": \"BYTES\", \"shape\": [1, 2], \"data\": [\"a\", "
         "\"b\"]}], \"parameters\": {\"timeout\": 5, \"sequence_id\": 3}}"},
        {4, 4,
         "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"INT8\",\"shape\":[1,101],\"parameters\":{\"binary_data_"
         "size\":101}}]}                  "
         "0123456789012345678901234567890123456789012345678901234567890123456789012"
         "345678901234567890123456789"},
        {4, 6, "0123456789abcdef"},
        {5, 0, "{\"config\": \"{}\", \"file:1/model.onnx\": \"QUJDRA==\", \"file:labels.txt\" : \"YQo\\/\"}"},
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        msg m = {0};
        put(&m, &all[k].as, 1), put(&m, &all[k].more, 1), put(&m, all[k].text, strlen(all[k].text));
        save("serve", "read", m.at, m.n);
        free(m.at);
    }
}

int main(int argc, char **argv) {
    static const char *const kinds[] = {"model", "ops", "graph", "image", "wisdom", "grpc", "serve"};
    const hone_library *library;
    char path[512];
    if (argc < 2) return fprintf(stderr, "usage: seeds FOLDER [MODELS...]\n"), 1;
    folder = argv[1];
    mkdir(folder, 0777);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        snprintf(path, sizeof path, "%s/%s", folder, kinds[k]), mkdir(path, 0777);
    if (hone_library_builtin(&library)) return fprintf(stderr, "%s\n", hone_fail_text()), 1;
    for (int k = 0; k < hone_library_count(library); k++) {
        const hone_program *p = hone_library_at(library, k);
        save("ops", p->name, p->text, p->text_bytes);
        for (int rank = 1; rank <= 4; rank += rank) save_model(p->name, single(p, rank));
    }
    for (size_t k = 0; k < sizeof hand / sizeof *hand; k++) save_model(hand[k].name, hand[k].make());
    pictures();
    wisdom();
    grpc();
    serve();
    for (int k = 2; k < argc; k++) nftw(argv[k], one_file, 16, FTW_PHYS);
    if (argc > 2) printf("%d models of other tools are seeds\n", found);
    return 0;
}
