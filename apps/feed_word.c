/* SPDX-License-Identifier: Apache-2.0
   feed_word: see feed_word.h. Numbers are read as i64 where they are whole, else as f64, and then brought
   into the input's type, which says so where one does not fit. */
#include "feed_word.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hone/tools.h"

static const struct {
    const char *word, *number;
} names[] = {{"zeros", "0"}, {"ones", "1"}, {"true", "1"}, {"false", "0"}};

/* A number, "nan" and "inf" included, up to `end`. */
static bool read_number(const char *text, const char *end, double *as_f64, int64_t *as_i64, bool *whole) {
    char copy[64], *stop;
    const size_t n = (size_t)(end - text);
    if (!n || n >= sizeof copy || *text == ' ') return false;
    memcpy(copy, text, n), copy[n] = 0;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (!strcmp(copy, names[k].word)) strcpy(copy, names[k].number);
    errno = 0;
    *as_i64 = strtoll(copy, &stop, 10);
    *whole = !*stop && !errno;
    if (*whole) return *as_f64 = (double)*as_i64, true;
    *as_f64 = strtod(copy, &stop);
    return stop != copy && !*stop;
}
static bool are_numbers(const char *text) {
    double f;
    int64_t i;
    bool whole;
    for (const char *p = text;; p++) {
        const char *end = p + strcspn(p, ",");
        if (!read_number(p, end, &f, &i, &whole)) return false;
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
    bool all_whole = true, whole;
    double f = 0;
    int64_t i = 0;
    for (const char *p = text, *end; !strings; p = end + 1) {
        end = p + strcspn(p, ",");
        if (!read_number(p, end, &f, &i, &whole))
            return hone_args_wrong("--input %s=%s: '%s' is no number", port->name, text, p);
        all_whole &= whole;
        if (!*end) break;
    }
    hone_value *v = NULL;
    hone_status s = hone_tensor_create(strings     ? HONE_DTYPE_STRING
                                       : all_whole ? HONE_DTYPE_I64
                                                   : HONE_DTYPE_F64,
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
        if (list || k == 0) read_number(p, end, &f, &i, &whole);
        if (all_whole) ((int64_t *)hone_value_data(v))[k] = i;
        else ((double *)hone_value_data(v))[k] = f;
        if (list) p = end + (*end == ',');
    }
    if (!rc && !strings && (s = hone_value_cast(v, port->dtype, out)))
        rc = hone_args_wrong("--input %s=%.60s: input '%s' is %s: %s", port->name, text, port->name,
                             port->shape, hone_error());
    if (!rc && strings) *out = v;
    else hone_value_free(v);
    return rc;
}
