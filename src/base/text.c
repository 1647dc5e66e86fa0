/* SPDX-License-Identifier: Apache-2.0
   text: the growing text buffer, and the quoting of JSON strings. */
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

#include "base/visible.h"

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

/* Names come from hostile files: what is not UTF-8 becomes U+FFFD, so that a report is always valid JSON;
   what a terminal would obey is escaped. */
void hone_text_json(hone_text *t, const char *string) {
    put_bytes(t, "\"", 1);
    for (const char *s = string ? string : "", *end = s + strlen(s); s < end;) {
        hone_character c = hone_character_at(s, (size_t)(end - s));
        if (c.code == UINT32_MAX) put_bytes(t, "\\ufffd", 6);
        else if (*s == '"' || *s == '\\') hone_text_put(t, "\\%c", *s);
        else if (*s == '\n') put_bytes(t, "\\n", 2);
        else if (*s == '\t') put_bytes(t, "\\t", 2);
        else if (!c.shown) hone_text_put(t, "\\u%04x", (unsigned)c.code);
        else put_bytes(t, s, (size_t)c.bytes);
        s += c.bytes;
    }
    put_bytes(t, "\"", 1);
}

void hone_text_free(hone_text *t) {
    hone_free(t->text);
    *t = (hone_text){0};
}
