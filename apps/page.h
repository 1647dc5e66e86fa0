/* SPDX-License-Identifier: Apache-2.0
   page: writes a page that shows JSON: HTML that the build put into the program, in which a marker stands
   where the data go. One file that fetches nothing. */
#ifndef HONE_APPS_PAGE_H
#define HONE_APPS_PAGE_H
#include "output.h"

typedef struct {
    hone_output out;
    const char *rest; /* of the page, behind its data */
} hone_page;
/* `text`: the page, behind what all begin with (head.html). Opens FILE and writes what stands
   before the data. 0, or the exit code. */
int hone_page_begin(const char *option, const char *file, const char *text, hone_page *);
/* Data, piece by piece; a piece may be cut anywhere. */
void hone_page_json(hone_page *, const char *json);
void hone_page_text(hone_page *, const char *text); /* as a JSON string */
/* Not good: nothing is left behind. Else the file is there, and a line is said to `to`. 0, or the exit
   code. */
int hone_page_end(hone_page *, bool good, const char *file, FILE *to);
#endif
