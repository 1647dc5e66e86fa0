/* SPDX-License-Identifier: Apache-2.0
   output: the files that commands write. No command writes over what it reads, and a file appears whole or
   not at all. */
#ifndef HONE_APPS_OUTPUT_H
#define HONE_APPS_OUTPUT_H
#include <stdio.h>

#include "args.h"

/* Refuses a path that is one of the inputs, links included: a model, its external data, or one of `files`
   ("FILE" or "NAME=FILE"; NULL: none). 0, or the exit code: one line was said, which begins with `option`. */
int hone_output_check(const char *option, const char *path, const hone_words *models,
                      const hone_words *files);

typedef struct {
    const char *option, *path;
    char *part; /* written first, then renamed; NULL: a device or pipe, written as it is */
    char *real; /* what the path leads to */
    FILE *to;
} hone_output;
int hone_output_begin(const char *option, const char *path, hone_output *out); /* 0, or the exit code */
/* keep false: nothing is left behind. 0, or the exit code: one line was said. */
int hone_output_end(hone_output *, bool keep);
/* Whether it can be written, found out before the work that it is for; nothing is left there. */
int hone_output_try(const char *option, const char *path);
#endif
