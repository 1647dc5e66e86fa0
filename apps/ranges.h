/* SPDX-License-Identifier: Apache-2.0
   ranges: --data of commands that run models in f16: which tensors leave its range on samples, and stay f32.
   */
#ifndef HONE_APPS_RANGES_H
#define HONE_APPS_RANGES_H
#include "args.h"
#include "hone/hone.h"

#define HONE_RANGES_OPTION(words)                                                                         \
    {                                                                                                     \
        "--data", "FILES",                                                                                \
            "with --precision f16: samples (as hone quantize takes them); what leaves f16's range there " \
            "stays f32",                                                                                  \
            HONE_ARG_LIST, words, 0                                                                       \
    }
/* 0: *keep is for hone_options.keep_f32, and *report what was found, as JSON (hone_model_ranges), both NULL
   where no data were named; to be freed by hone_text_release. Else the exit code: one line was said. */
int hone_ranges_find(const hone_model *, const hone_words *data, const char *precision, int threads,
                     char **keep, char **report);
void hone_ranges_tell(const char *report); /* a line, and one for each tensor that stays f32 */
#endif
