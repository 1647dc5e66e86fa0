/* SPDX-License-Identifier: Apache-2.0
   cache: histograms as text, so that a second call need not run the float model over all samples again, and
   so that a person can read what was seen.

        hone calibration 1 KEY TENSORS
        tensor LOW WIDTH ZEROS SEEN ODD LEAST MOST SUM_LEAST SUM_MOST SAMPLES NAME
        bins FIRST COUNT COUNT …          from the first bin that holds something to the last
        channels AXIS COUNT LEAST MOST LEAST MOST …    of an operand of layers; COUNT 0 or less: it has none
                                                       of its own
        macs LAYER NUMBER                 of each layer */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "quant/calibrate.h"

hone_status hone_quant_cache_write(const hone_quant_plan *p, const char *path, uint64_t key) {
    hone_text t = {0};
    hone_text_put(&t, "hone calibration 1 %016llx %d\n", (unsigned long long)key, p->class.n);
    for (int k = 0; k < p->class.n; k++) {
        const hone_histogram *h = p->class.at[k].seen;
        hone_text_put(&t, "tensor %.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g %d ", h->low,
                      h->width, h->zeros, h->seen, h->odd, h->least, h->most, h->sum_least, h->sum_most,
                      h->samples);
        hone_text_json(&t, p->graph->var.at[p->class.at[k].var].name);
        int first = 0, last = HONE_QUANT_BINS;
        while (first < last && h->bin[first] == 0) first++;
        while (last > first && h->bin[last - 1] == 0) last--;
        hone_text_put(&t, "\nbins %d", first);
        for (int b = first; b < last; b++) hone_text_put(&t, " %.17g", h->bin[b]);
        const hone_quant_class *c = p->class.at + k;
        hone_text_put(&t, "\nchannels %d %lld", c->axis, (long long)c->channels);
        for (int64_t i = 0; i < c->channels; i++) hone_text_put(&t, " %.9g %.9g", c->least[i], c->most[i]);
        hone_text_put(&t, "\n");
    }
    for (int k = 0; k < p->layer.n; k++) hone_text_put(&t, "macs %d %.17g\n", k, p->layer.at[k].macs);
    hone_status s =
        t.failed ? hone_fail(HONE_NO_MEMORY, "no memory for a cache") : hone_file_write(path, t.text, t.n);
    hone_text_free(&t);
    return s;
}

/* ---- reading ------------------------------------------------------------------------------------------- */
typedef struct {
    const char *at;
    bool good;
} reader;
static bool word(reader *r, const char *text) {
    const size_t n = strlen(text);
    r->good = r->good && !strncmp(r->at, text, n);
    if (r->good) r->at += n;
    return r->good;
}
static double number(reader *r) {
    char *end = NULL;
    const double x = r->good ? strtod(r->at, &end) : 0;
    r->good = r->good && end != r->at && isfinite(x);
    if (r->good) r->at = end;
    return x;
}
static void line_end(reader *r) {
    const char *end = r->good ? strchr(r->at, '\n') : NULL;
    r->good = end != NULL;
    if (end) r->at = end + 1;
}
static bool read_channels(reader *r, hone_quant_class *c) {
    word(r, "channels");
    const double axis = number(r), n = number(r);
    r->good = r->good && axis >= -1 && axis < HONE_MAX_RANK && n >= -1 && n <= 1 << 20;
    hone_free(c->least), hone_free(c->most);
    c->least = c->most = NULL, c->channels = 0;
    if (!r->good) return true;
    const int64_t count = n > 0 ? (int64_t)n : 0;
    if (count && (!(c->least = hone_alloc(sizeof(float) * (size_t)count)) ||
                  !(c->most = hone_alloc(sizeof(float) * (size_t)count))))
        return false;
    for (int64_t i = 0; i < count && r->good; i++)
        c->least[i] = (float)number(r), c->most[i] = (float)number(r);
    if (r->good) c->axis = (int)axis, c->channels = n > 0 ? count : (int64_t)n;
    line_end(r);
    return true;
}
static void read_class(reader *r, hone_histogram *h) {
    word(r, "tensor");
    h->low = number(r), h->width = number(r), h->zeros = number(r), h->seen = number(r), h->odd = number(r);
    h->least = number(r), h->most = number(r), h->sum_least = number(r), h->sum_most = number(r);
    const double samples = number(r);
    r->good = r->good && samples >= 1 && samples < 1e9 && h->width >= 0 && h->least <= 0 && h->most >= 0 &&
              h->seen >= 0;
    h->samples = r->good ? (int)samples : 0;
    line_end(r);
    word(r, "bins");
    const double first = number(r);
    r->good = r->good && first >= 0 && first <= HONE_QUANT_BINS;
    for (int b = r->good ? (int)first : 0; r->good && *r->at == ' '; b++) {
        const double n = number(r);
        r->good = r->good && b < HONE_QUANT_BINS && n >= 0;
        if (r->good) h->bin[b] = n;
    }
    line_end(r);
}
hone_status hone_quant_cache_read(hone_quant_plan *p, const char *path, uint64_t key, bool *found) {
    hone_file f;
    *found = false;
    if (hone_file_open(path, &f)) return HONE_OK; /* it is to be written */
    const bool empty = !f.bytes;
    char *text = hone_alloc(f.bytes + 1);
    if (text) memcpy(text, f.data, f.bytes);
    hone_file_close(&f);
    if (!text) return hone_fail(HONE_NO_MEMORY, "no memory for a cache");
    reader r = {text, true};
    char head[64];
    snprintf(head, sizeof head, "hone calibration 1 %016llx %d\n", (unsigned long long)key, p->class.n);
    hone_status s = HONE_OK;
    if (!empty && strncmp(text, "hone calibration ", 17) != 0)
        s = hone_fail(HONE_BAD_INPUT,
                      "'%s' is no cache of a calibration, and is not written over; choose another name",
                      path);
    else if (word(&r, head)) {
        for (int k = 0; k < p->class.n && r.good && !s; k++) {
            read_class(&r, p->class.at[k].seen);
            if (!read_channels(&r, p->class.at + k)) s = hone_fail(HONE_NO_MEMORY, "no memory for a cache");
        }
        for (int k = 0; k < p->layer.n && r.good; k++) {
            word(&r, "macs");
            const double which = number(&r), macs = number(&r);
            r.good = r.good && which == k && macs >= 0;
            if (r.good) p->layer.at[k].macs = macs;
            line_end(&r);
        }
        *found = r.good;
        for (int k = 0; k < p->class.n && !r.good; k++) { /* damaged: made anew */
            hone_quant_class *c = p->class.at + k;
            memset(c->seen, 0, sizeof *c->seen);
            hone_free(c->least), hone_free(c->most);
            c->least = c->most = NULL, c->channels = 0;
        }
    }
    hone_free(text);
    return s;
}
