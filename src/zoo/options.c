/* SPDX-License-Identifier: Apache-2.0
   options: a spec is read by two tables: the keys here, and each model's own text, which says which keys it
   has, with what default and range.
     "image=299:75-4096/32"   default 299, from 75 to 4096, a multiple of 32; the range and the step may be
                              left out */
#include "zoo/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hone/tools.h"

static const struct {
    const char *name;
    int64_t low, high; /* where a model's text does not say */
} keys[HONE_ZOO_KEYS] = {
    [HONE_ZOO_BATCH] = {"batch", 1, 65536},
    [HONE_ZOO_IMAGE] = {"image", 32, 4096},
    [HONE_ZOO_CLASSES] = {"classes", 1, 100000},
    [HONE_ZOO_SEQ] = {"seq", 1, 65536},
    [HONE_ZOO_PAST] = {"past", 0, 65536},
    [HONE_ZOO_LAYERS] = {"layers", 1, 128},
    [HONE_ZOO_DIM] = {"dim", 8, 16384},
    [HONE_ZOO_HEADS] = {"heads", 1, 256},
    [HONE_ZOO_KV] = {"kv", 1, 256},
    [HONE_ZOO_HIDDEN] = {"hidden", 1, 65536},
    [HONE_ZOO_VOCAB] = {"vocab", 2, 1000000},
    [HONE_ZOO_ROWS] = {"rows", 2, 10000000},
    [HONE_ZOO_CACHE] = {"cache", 0, 1},
    [HONE_ZOO_BI] = {"bi", 0, 1},
    [HONE_ZOO_BN] = {"bn", 0, 1},
    [HONE_ZOO_DYNAMIC] = {"dynamic", 0, 1},
    [HONE_ZOO_SEED] = {"seed", 0, INT32_MAX},
};

typedef struct {
    int key; /* -1: the text has no such key: a bug in table.c */
    int64_t value, low, high, step;
} setting;

static int key_of(const char *name, size_t n) {
    for (int k = 0; k < HONE_ZOO_KEYS; k++)
        if (strlen(keys[k].name) == n && !memcmp(keys[k].name, name, n)) return k;
    return -1;
}

/* One setting of a model's text; *at moves behind it. false at the end. */
static bool next_setting(const char **at, setting *s) {
    char *end;
    while (**at == ' ') (*at)++;
    if (!**at) return false;
    size_t n = strcspn(*at, "=");
    s->key = key_of(*at, n);
    s->value = strtoll(*at + n + 1, &end, 10);
    s->low = s->key < 0 ? 0 : keys[s->key].low, s->high = s->key < 0 ? 0 : keys[s->key].high, s->step = 1;
    if (*end == ':') s->low = strtoll(end + 1, &end, 10);
    if (*end == '-') s->high = strtoll(end + 1, &end, 10);
    if (*end == '/') s->step = strtoll(end + 1, &end, 10);
    *at = end;
    return true;
}

static hone_status no_model(const char *name, size_t n) {
    hone_text t = {0};
    for (const hone_zoo_model *m = hone_zoo_models; m->name; m++)
        hone_text_put(&t, "%s%s", m == hone_zoo_models ? "" : ", ", m->name);
    enum { MOST = 64 };
    const char *names[MOST];
    int models = 0;
    for (const hone_zoo_model *m = hone_zoo_models; m->name && models < MOST; m++) names[models++] = m->name;
    const char *near = hone_nearest(name, n, names, models);
    hone_status s = near ? hone_fail(HONE_BAD_INPUT, "the zoo has no model '%.*s'; did you mean '%s'?",
                                     (int)(n < 64 ? n : 64), name, near)
                         : hone_fail(HONE_BAD_INPUT, "the zoo has no model '%.*s'; it has %s",
                                     (int)(n < 64 ? n : 64), name, t.text ? t.text : "");
    hone_text_free(&t);
    return s;
}

static hone_status no_option(const hone_zoo_model *m, const char *name, size_t n) {
    hone_text t = {0};
    setting s;
    for (const char *at = m->options; next_setting(&at, &s);)
        if (s.key >= 0) hone_text_put(&t, "%s%s=%lld", t.n ? ", " : "", keys[s.key].name, (long long)s.value);
    hone_status st = hone_fail(
        HONE_BAD_INPUT, "zoo:%s has no option '%.*s'; it has %s (written as zoo:%s?key=value&key=value)",
        m->name, (int)(n < 64 ? n : 64), name, t.text ? t.text : "", m->name);
    hone_text_free(&t);
    return st;
}

void hone_zoo_options_json(const hone_zoo_model *m, hone_text *t) {
    setting s;
    int n = 0;
    hone_text_put(t, "[");
    for (const char *at = m->options; next_setting(&at, &s);)
        if (s.key >= 0)
            hone_text_put(t,
                          "%s{\"name\": \"%s\", \"default\": %lld, \"lowest\": %lld, \"highest\": %lld, "
                          "\"step\": %lld}",
                          n++ ? ", " : "", keys[s.key].name, (long long)s.value, (long long)s.low,
                          (long long)s.high, (long long)s.step);
    hone_text_put(t, "]");
}

static bool find_setting(const hone_zoo_model *m, int key, setting *s) {
    for (const char *at = m->options; next_setting(&at, s);)
        if (s->key == key) return true;
    return false;
}

static hone_status read_option(const hone_zoo_model *m, const char *text, size_t n, hone_zoo_options *out) {
    const char *equals = memchr(text, '=', n);
    size_t name = equals ? (size_t)(equals - text) : n;
    setting s;
    int key = key_of(text, name);
    if (key < 0 || !find_setting(m, key, &s)) return no_option(m, text, name);
    const char *digits = text + name + 1;
    size_t many = equals ? n - name - 1 : 0;
    int64_t value = 0;
    bool good = many > 0 && many < 12;
    for (size_t k = 0; good && k < many; k++) {
        good = digits[k] >= '0' && digits[k] <= '9';
        value = value * 10 + (digits[k] - '0');
    }
    if (!good || value < s.low || value > s.high || value % s.step) {
        char step[48] = "";
        if (s.step > 1) snprintf(step, sizeof step, " that is a multiple of %lld", (long long)s.step);
        return hone_fail(HONE_BAD_INPUT, "zoo:%s: %s=%.*s: must be a whole number from %lld to %lld%s",
                         m->name, keys[key].name, (int)(many < 32 ? many : 32), many ? digits : "",
                         (long long)s.low, (long long)s.high, step);
    }
    out->value[key] = value;
    return HONE_OK;
}

hone_status hone_zoo_read(const char *spec, const hone_zoo_model **model, hone_zoo_options *out) {
    const hone_zoo_model *m = hone_zoo_models;
    if (!strncmp(spec, HONE_ZOO_PREFIX, strlen(HONE_ZOO_PREFIX))) spec += strlen(HONE_ZOO_PREFIX);
    size_t n = strcspn(spec, "?");
    while (m->name && (strlen(m->name) != n || memcmp(m->name, spec, n) != 0)) m++;
    if (!m->name) return no_model(spec, n);
    *out = (hone_zoo_options){{0}};
    setting s;
    for (const char *at = m->options; next_setting(&at, &s);)
        if (s.key >= 0) out->value[s.key] = s.value;
    spec += n;
    while (*spec) { /* at '?' or '&' */
        n = strcspn(++spec, "&");
        HONE_TRY(read_option(m, spec, n, out));
        spec += n;
    }
    *model = m;
    return HONE_OK;
}
