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
/* 0, or the exit code: one line was said. */
int hone_quantize_page(const hone_quantize_told *, const char *report, const char *file);
#endif
