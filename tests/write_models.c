/* SPDX-License-Identifier: Apache-2.0
   write_models: small models for tests of the command, written to a folder:  write_models FOLDER */
#include "onnx_write.h"

static const char *folder;
static void save(const char *name, msg m) { /* takes m */
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(m.at, 1, m.n, f) != m.n || fclose(f)) {
        perror(path);
        exit(1);
    }
    free(m.at);
}

/* Two 3x3 convolutions without padding over a picture of any size: nothing below 5x5 fits. Its batch is
   `batch`, or has no name. */
static void picture(const char *name, const char *dims) {
    float w[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    msg g = {0};
    add_input(&g, "x", 1, dims);
    sub(&g, 5, floats("w", "1 1 3 3", w, 9));
    add_node(&g, node("Conv", "x w", "a"));
    add_node(&g, node("Conv", "a w", "y"));
    add_output(&g, "y");
    save(name, model_of(g, 18));
}
/* The same dim in two inputs. */
static void pair(void) {
    msg g = {0};
    add_input(&g, "a", 1, "n m");
    add_input(&g, "b", 1, "n m");
    add_node(&g, node("Add", "a b", "y"));
    add_output(&g, "y");
    save("pair.onnx", model_of(g, 18));
}
/* w is a default: an initializer that is an input, too. */
static void default_input(void) {
    msg g = {0};
    add_input(&g, "x", 1, "2"), add_input(&g, "w", 1, "2");
    sub(&g, 5, floats("w", "2", (float[]){1, 2}, 2)), sub(&g, 5, floats("v", "2", (float[]){1, 2}, 2));
    add_node(&g, node("Sum", "x w v", "y"));
    add_output(&g, "y");
    save("default.onnx", model_of(g, 18));
    save("seven.bin", (msg){memcpy(malloc(8), (float[]){70, 700}, 8), 8, 8});
}
static void external(void) {
    msg t = tensor_head("w", 1, "2"), g = {0}, e = {0}, data = {0};
    text(&e, 1, "location"), text(&e, 2, "w.data");
    sub(&t, 13, e);
    number(&t, 14, 1);
    add_input(&g, "x", 1, "2");
    sub(&g, 5, t);
    add_node(&g, node("Add", "x w", "y"));
    add_output(&g, "y");
    save("external.onnx", model_of(g, 18));
    put(&data, (float[]){1, 2}, 8);
    save("w.data", data);
}

/* Names that a terminal would obey: clear the screen, a line of their own, a C1 control, no UTF-8, right to
   left. */
#define EVIL                          \
    "a\x1b[2Jb\nfake: fine\r\xc2\x9b" \
    "31m\xff\xe2\x80\xae"
static msg named(msg n) {
    text(&n, 3, EVIL);
    return n;
}
static void evil(const char *name, const char *op, const char *reads, const char *dims) {
    msg g = {0}, v = {0}, t = {0}, tt = {0}, shape = {0}, d = {0}, n = {0};
    text(&d, 2, EVIL);
    sub(&shape, 1, d);
    for (const char *c = dims; *c; c++) {
        msg one = {0};
        number(&one, 1, *c - '0');
        sub(&shape, 1, one);
    }
    number(&tt, 1, 1), sub(&tt, 2, shape), sub(&t, 1, tt), text(&v, 1, EVIL), sub(&v, 2, t);
    sub(&g, 11, v);
    sub(&g, 5, ints("s", "2", (int64_t[]){5, 3}, 2));
    text(&g, 2, EVIL);
    text(&n, 1, reads), text(&n, 4, op), text(&n, 2, EVIL "y");
    if (!strcmp(op, "Reshape")) text(&n, 1, "s");
    add_node(&g, named(n));
    sub(&g, 12, value_info(EVIL "y", 1, NULL));
    save(name, model_of(g, 18));
}

int main(int argc, char **argv) {
    if (argc != 2) return fprintf(stderr, "write_models FOLDER\n"), 1;
    folder = argv[1];
    picture("picture.onnx", "batch 1 h w");
    picture("nameless.onnx", "? 1 ? ?");
    pair();
    external();
    default_input();
    evil("evil.onnx", "Relu", EVIL, "4");
    evil("evil_op.onnx", EVIL, EVIL, "4");
    evil("evil_reads.onnx", "Relu", EVIL "z", "4");
    evil("evil_shape.onnx", "Reshape", EVIL, "4");
    return 0;
}
