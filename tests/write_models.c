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

/* Two 3x3 convolutions without padding over a picture of any size: nothing below 5x5 fits. Its batch is `batch`, or has no name. */
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

int main(int argc, char **argv) {
    if (argc != 2) return fprintf(stderr, "write_models FOLDER\n"), 1;
    folder = argv[1];
    picture("picture.onnx", "batch 1 h w");
    picture("nameless.onnx", "? 1 ? ?");
    pair();
    external();
    return 0;
}
