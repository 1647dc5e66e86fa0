/* SPDX-License-Identifier: Apache-2.0
   feed_word: see feed_word.h. Numbers are read as i64, or u64, where they are whole, else as f64, and then
   brought into the input's type, which says so where one does not fit. */
#include "feed_word.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hone/tools.h"

static const struct {
    const char *word, *number;
} names[] = {{"zeros", "0"}, {"ones", "1"}, {"true", "1"}, {"false", "0"}};

typedef struct {
    double f;
    uint64_t bits; /* of a whole number */
    enum { SIGNED, UNSIGNED /* beyond i64 */, FRACTION } kind;
} number;
/* A number, "nan" and "inf" included, up to `end`. */
static bool read_number(const char *text, const char *end, number *out) {
    char copy[64], *stop;
    const size_t n = (size_t)(end - text);
    if (!n || n >= sizeof copy || *text == ' ') return false;
    memcpy(copy, text, n), copy[n] = 0;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (!strcmp(copy, names[k].word)) snprintf(copy, sizeof copy, "%s", names[k].number);
    errno = 0;
    const long long whole = strtoll(copy, &stop, 10);
    if (!*stop && !errno) return *out = (number){(double)whole, (uint64_t)whole, SIGNED}, true;
    errno = 0;
    const unsigned long long large = strtoull(copy, &stop, 10);
    if (!*stop && !errno && *copy != '-') return *out = (number){(double)large, large, UNSIGNED}, true;
    errno = 0;
    *out = (number){strtod(copy, &stop), 0, FRACTION};
    return stop != copy && !*stop && !(errno && isinf(out->f)); /* 1e400 is no infinity */
}
static bool are_numbers(const char *text) {
    number x;
    for (const char *p = text;; p++) {
        const char *end = p + strcspn(p, ",");
        if (!read_number(p, end, &x)) return false;
        if (!*end) return true;
        p = end;
    }
}
bool hone_word_known(const hone_port *port, const char *text) {
    if (!strcmp(text, "random")) return true;
    if (port->dtype == HONE_DTYPE_STRING) return access(text, F_OK) != 0;
    return are_numbers(text);
}
bool hone_word_is_list(const hone_port *port, const char *text) {
    return port->dtype != HONE_DTYPE_STRING && strchr(text, ',');
}
int64_t hone_word_count(const char *text) {
    int64_t n = 1;
    for (; *text; text++) n += *text == ',';
    return n;
}

static int fill_text(const char *text, hone_value *v) {
    for (int64_t k = 0; k < hone_value_elements(v); k++) {
        hone_status s = hone_value_set_text(v, k, text, strlen(text));
        if (s) return hone_args_failed(s);
    }
    return 0;
}
int hone_word_make(const hone_port *port, const char *text, const int64_t *dims, int rank, hone_value **out) {
    const bool strings = port->dtype == HONE_DTYPE_STRING, list = !strings && strchr(text, ',');
    bool whole = true, large = false, negative = false;
    number x = {0};
    for (const char *p = text, *end; !strings; p = end + 1) {
        end = p + strcspn(p, ",");
        if (!read_number(p, end, &x))
            return hone_args_wrong("--input %s=%s: '%s' is no number", port->name, text, p);
        whole &= x.kind != FRACTION, large |= x.kind == UNSIGNED, negative |= x.f < 0;
        if (!*end) break;
    }
    whole &= !(large && negative); /* no type has both */
    hone_value *v = NULL;
    hone_status s = hone_tensor_create(strings  ? HONE_DTYPE_STRING
                                       : !whole ? HONE_DTYPE_F64
                                       : large  ? HONE_DTYPE_U64
                                                : HONE_DTYPE_I64,
                                       dims, rank, &v);
    if (s) return hone_args_failed(s);
    const int64_t n = hone_value_elements(v);
    int rc = strings ? fill_text(text, v) : 0;
    if (list && n != hone_word_count(text))
        rc = hone_args_wrong("--input %s=%.60s: %lld numbers for %lld elements", port->name, text,
                             (long long)hone_word_count(text), (long long)n);
    const char *p = text;
    for (int64_t k = 0; k < n && !rc && !strings; k++) {
        const char *end = p + strcspn(p, ",");
        if (list || k == 0) read_number(p, end, &x);
        if (whole) ((uint64_t *)hone_value_data(v))[k] = x.bits;
        else ((double *)hone_value_data(v))[k] = x.f;
        if (list) p = end + (*end == ',');
    }
    if (!rc && !strings && hone_value_cast(v, port->dtype, out))
        rc = hone_args_wrong("--input %s=%.60s: input '%s' is %s: %s", port->name, text, port->name,
                             port->shape, hone_error());
    if (!rc && strings) *out = v;
    else hone_value_free(v);
    return rc;
}
