/* SPDX-License-Identifier: Apache-2.0
   quantize: what `hone quantize` says of a report: lines for the terminal, and a page. */
#ifndef HONE_APPS_QUANTIZE_H
#define HONE_APPS_QUANTIZE_H
#include <stdbool.h>
#include <stdint.h>

#include "json.h"

typedef struct {
    const char *from, *to; /* the model's path, and that of what was written */
    int64_t samples;       /* that were given */
    bool every;            /* all layers, not only those that stay f32 */
} hone_quantize_told;
void hone_quantize_tell(const hone_quantize_told *, const hone_json *report);
/* `hone quantize --metric COMMAND`: the number that is the last line which it prints, larger is better. The
   model's path comes behind its words. NaN: `why`; a last line that is no number, an exit code that is not 0
   and more than so many seconds are failures. */
typedef struct {
    const char *command;
    double seconds;
    char why[768];
} hone_quantize_scorer;
double hone_quantize_score(hone_quantize_scorer *, const char *model);

/* 0, or the exit code: one line was said. */
int hone_quantize_page(const hone_quantize_told *, const char *report, const char *file);
#endif
