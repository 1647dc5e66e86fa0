/* SPDX-License-Identifier: Apache-2.0
   ranges: see ranges.h. */
#include "ranges.h"

#include <math.h>
#include <string.h>

#include "hone/quant.h"
#include "json.h"
#include "term.h"

enum { SAMPLES = 16, TOLD = 12 };

int hone_ranges_find(const hone_model *m, const hone_words *data, const char *precision, int threads,
                     char **keep, char **report) {
    hone_samples samples = {0};
    if (!data->n) return 0;
    if (!precision || strcmp(precision, "f16") != 0)
        return hone_args_wrong(
            "--data goes with --precision f16: only f16 has a range that values may leave");
    hone_status s = hone_samples_open(m, data->at, data->n, NULL, &samples);
    hone_progress bar;
    hone_progress_begin(&bar, "looking at ranges");
    if (!s) s = hone_model_ranges(m, &samples, SAMPLES, threads, keep, report);
    hone_progress_end(&bar);
    if (samples.get) hone_samples_close(&samples);
    return s ? hone_args_failed(s) : 0;
}
void hone_ranges_tell(const char *report) {
    hone_json *r = report ? hone_json_read(report) : NULL;
    if (!r) return;
    const hone_json *kept = hone_json_get(r, "kept");
    int n = 0;
    hone_print(stdout, "ranges  %.0f samples, largest value %.4g\n", hone_json_number(r, "samples", 0),
               hone_json_number(r, "largest", 0));
    for (const hone_json *k = kept ? kept->first : NULL; k; k = k->next) {
        const double top = hone_json_number(k, "largest", NAN);
        if (n++ >= TOLD) continue;
        hone_print(stdout, "kept    %s (%s) stays f32: '%s' ", hone_json_text(k, "node", ""),
                   hone_json_text(k, "op", ""), hone_json_text(k, "tensor", ""));
        if (isnan(top)) hone_print(stdout, "has numbers that are infinite or not a number\n");
        else hone_print(stdout, "reaches %.4g, and f16 ends at 65504\n", top);
    }
    if (n > TOLD) hone_print(stdout, "        and %d more\n", n - TOLD);
    hone_json_free(r);
}
