/* SPDX-License-Identifier: Apache-2.0
   http_text: texts that grow, as answers are written: bytes, numbers, JSON's quoted texts. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/http.h"

enum { LINE = 1024 };

bool hone_http_append(hone_http_text *t, const void *bytes, size_t n) {
    if (t->room - t->n < n + 1 || !t->at) {
        const size_t room = (t->n + n + 1) * 2 + 256;
        char *more = realloc(t->at, room);
        if (!more) return false;
        t->at = more, t->room = room;
    }
    if (n) memcpy(t->at + t->n, bytes, n);
    t->n += n, t->at[t->n] = 0;
    return true;
}
bool hone_http_printf(hone_http_text *t, const char *format, ...) {
    char text[LINE];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return n >= 0 && (size_t)n < sizeof text && hone_http_append(t, text, (size_t)n);
}
bool hone_http_text_append(hone_http_text *t, const char *text) {
    return hone_http_append(t, text, strlen(text));
}
char *hone_http_digits(int64_t number, char text[24]) {
    char *at = text + 23;
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    *at = 0;
    do *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (number < 0) *--at = '-';
    return at;
}
bool hone_http_number(hone_http_text *t, int64_t number) {
    char text[24];
    return hone_http_text_append(t, hone_http_digits(number, text));
}
bool hone_http_quoted(hone_http_text *t, const char *text) {
    bool good = hone_http_append(t, "\"", 1);
    for (const char *p = text, *plain; good && *p; p++) {
        for (plain = p; (unsigned char)*p >= ' ' && *p != '"' && *p != '\\';) p++;
        if (p > plain) good = hone_http_append(t, plain, (size_t)(p - plain));
        if (!*p || !good) break;
        if (*p == '"' || *p == '\\') good = hone_http_printf(t, "\\%c", *p);
        else good = hone_http_printf(t, "\\u%04x", (unsigned char)*p);
    }
    return good && hone_http_append(t, "\"", 1);
}
