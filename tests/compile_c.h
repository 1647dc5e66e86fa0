/* SPDX-License-Identifier: Apache-2.0
   compile_c: text of C as a library that is loaded. For tests of what is printed. */
#ifndef HONE_TESTS_COMPILE_C_H
#define HONE_TESTS_COMPILE_C_H
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* STEM.c, STEM.so and STEM.log in the folder; false: see the log */
static bool compile_c(const char *folder, const char *stem, const char *text, const char *flags,
                      void **library) {
    char path[160], command[512];
    snprintf(path, sizeof path, "%s/%s.c", folder, stem);
    FILE *f = fopen(path, "w");
    if (!f) return false;
    fputs(text, f);
    if (fclose(f)) return false;
    snprintf(command, sizeof command,
             "cc -O0 %s -ffp-contract=off -shared -fPIC -o %s/%s.so %s -lm > %s/%s.log 2>&1", flags, folder,
             stem, path, folder, stem);
    if (system(command)) return false;
    snprintf(path, sizeof path, "%s/%s.so", folder, stem);
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return *library != NULL;
}
#endif
