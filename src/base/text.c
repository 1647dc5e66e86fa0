/* SPDX-License-Identifier: Apache-2.0
   text: the growing text buffer, and the quoting of JSON strings. */
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static bool make_room(hone_text *t, size_t more) {
    size_t need;
    if (t->failed) return false;
    if (!hone_add_size(t->n, more, &need) || !hone_add_size(need, 1, &need)) return !(t->failed = true);
    if (need <= t->room) return true;
    size_t room = t->room < 128 ? 128 : t->room * 2;
    if (room < need) room = need;
    char *p = hone_realloc(t->text, t->text ? t->n + 1 : 0, room);
    if (!p) return !(t->failed = true);
    t->text = p;
    t->room = room;
    return true;
}

static void put_bytes(hone_text *t, const char *bytes, size_t n) {
    if (!make_room(t, n)) return;
    memcpy(t->text + t->n, bytes, n);
    t->text[t->n += n] = 0;
}

void hone_text_putv(hone_text *t, const char *format, va_list args) {
    if (!make_room(t, 0)) return;
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(t->text + t->n, t->room - t->n, format, args);
    if (n < 0) {
        t->text[t->n] = 0;
        t->failed = true;
    } else if ((size_t)n < t->room - t->n) {
        t->n += (size_t)n;
    } else {
        t->text[t->n] = 0; /* cut off: print again with room enough */
        if (make_room(t, (size_t)n)) {
            vsnprintf(t->text + t->n, t->room - t->n, format, again);
            t->n += (size_t)n;
        }
    }
    va_end(again);
}

void hone_text_put(hone_text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    hone_text_putv(t, format, args);
    va_end(args);
}

/* Bytes of the well-formed UTF-8 sequence at s, 0 when it is not one (overlong forms and surrogates are not). */
static int utf8_bytes(const unsigned char *s) {
    static const struct {
        unsigned char first, last, low, high;
        int bytes;
    } rows[] = {{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
                {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    if (s[0] < 0x80) return 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (s[0] < rows[i].first || s[0] > rows[i].last) continue;
        if (s[1] < rows[i].low || s[1] > rows[i].high) return 0;
        for (int k = 2; k < rows[i].bytes; k++)
            if ((s[k] & 0xc0) != 0x80) return 0;
        return rows[i].bytes;
    }
    return 0;
}

/* Names come from hostile files: what is not UTF-8 becomes U+FFFD, so that a report is always valid JSON. */
void hone_text_json(hone_text *t, const char *string) {
    put_bytes(t, "\"", 1);
    for (const unsigned char *s = (const unsigned char *)(string ? string : ""); *s;) {
        int n = utf8_bytes(s);
        if (n == 0) put_bytes(t, "\\ufffd", 6), n = 1;
        else if (*s == '"' || *s == '\\') hone_text_put(t, "\\%c", *s);
        else if (*s == '\n') put_bytes(t, "\\n", 2);
        else if (*s == '\t') put_bytes(t, "\\t", 2);
        else if (*s < ' ' || *s == 127) hone_text_put(t, "\\u%04x", *s);
        else put_bytes(t, (const char *)s, (size_t)n);
        s += n;
    }
    put_bytes(t, "\"", 1);
}

void hone_text_free(hone_text *t) {
    hone_free(t->text);
    *t = (hone_text){0};
}
