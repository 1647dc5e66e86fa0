/* SPDX-License-Identifier: Apache-2.0
   parse: one row of ops text into a program. Private to loops; the library is the way in. */
#ifndef HONE_LOOPS_PARSE_H
#define HONE_LOOPS_PARSE_H
#include "loops/program.h"

typedef struct hone_snippet hone_snippet; /* `lines NAME` */
struct hone_snippet {
    const char *name, *text;
    size_t bytes;
    int line;
    hone_snippet *next;
};
/* `scratch` holds what is not needed once the row is parsed: most of it. */
hone_status hone_parse_row(hone_arena *, hone_arena *scratch, const char *source, int line, const char *text,
                           size_t bytes, const hone_snippet *, hone_program **out) HONE_CHECKED;
#endif
