/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/library.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 600 };
static void *open_pattern(const char *root, const char *rest, const char *stem, void *(*open)(const char *)) {
    char pattern[PATH];
    glob_t found = {0};
    void *library = NULL;
    if (root && snprintf(pattern, sizeof pattern, "%s%s/lib%s.so.*", root, rest, stem) < PATH &&
        !glob(pattern, 0, NULL, &found))
        for (size_t k = 0; k < found.gl_pathc && !library; k++) library = open(found.gl_pathv[k]);
    globfree(&found);
    return library;
}
static void *find(const char *variable, const char *stem, void *(*open)(const char *)) {
    static const char *const versions[] = {".13", ".12", ""};
    const char *named = getenv(variable);
    if (named) return open(named);
    for (size_t k = 0; k < sizeof versions / sizeof *versions; k++) {
        char name[PATH];
        snprintf(name, sizeof name, "lib%s.so%s", stem, versions[k]);
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library) return library;
    }
    const struct {
        const char *root, *rest;
    } places[] = {{"/usr/local/cuda", "/lib*"},
                  {getenv("VIRTUAL_ENV"), "/lib/python3*/site-packages/nvidia/*/lib"},
                  {getenv("HOME"), "/.local/lib/python3*/site-packages/nvidia/*/lib"}};
    void *library = NULL;
    for (size_t k = 0; k < sizeof places / sizeof *places && !library; k++)
        library = open_pattern(places[k].root, places[k].rest, stem, open);
    return library;
}
bool hone_cuda_library(const char *variable, const char *stem, void *(*open)(const char *path),
                       const hone_cuda_symbol *wanted, int n) {
    void *library = find(variable, stem, open);
    bool there = library != NULL;
    for (int k = 0; k < n && library; k++) {
        void *symbol = dlsym(library, wanted[k].name);
        memcpy(wanted[k].to, &symbol, sizeof symbol);
        there &= symbol != NULL;
    }
    return there;
}
