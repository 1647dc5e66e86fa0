/* SPDX-License-Identifier: Apache-2.0
   repository: a folder of small models for fuzzers of the server: "f" gives back floats, "b" bytes, "t"
   texts. */
#ifndef HONE_FUZZ_REPOSITORY_H
#define HONE_FUZZ_REPOSITORY_H
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "../tests/onnx_write.h"

static void write_model(const char *folder, const char *name, int elem) {
    char path[300];
    msg g = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name), mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/1", folder, name), mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/1/model.onnx", folder, name);
    add_node(&g, node("Identity", "x", "y"));
    add_input(&g, "x", elem, "n m"), sub(&g, 12, value_info("y", elem, "n m"));
    msg m = model_of(g, 17);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(m.at, 1, m.n, f) != m.n || fclose(f)) abort();
    free(m.at);
}
static inline const char *hone_fuzz_repository(void) {
    static char folder[] = "/tmp/hone-fuzz-XXXXXX";
    if (!mkdtemp(folder)) abort();
    write_model(folder, "f", 1), write_model(folder, "b", 3), write_model(folder, "t", 8);
    return folder;
}
#endif
