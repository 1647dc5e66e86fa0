/* SPDX-License-Identifier: Apache-2.0
   visible: one character after the other. */
#include "base/visible.h"

#include <stdio.h>
#include <string.h>

#include "hone/tools.h"

/* Bytes of the well-formed UTF-8 sequence at s, 0 when it is not one (overlong forms and surrogates are
   not). */
static int sequence(const unsigned char *s, size_t left) {
    static const struct {
        unsigned char first, last, low, high;
        int bytes;
    } rows[] = {{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
                {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
                {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    if (s[0] < 0x80) return 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (s[0] < rows[i].first || s[0] > rows[i].last) continue;
        if ((size_t)rows[i].bytes > left || s[1] < rows[i].low || s[1] > rows[i].high) return 0;
        for (int k = 2; k < rows[i].bytes; k++)
            if ((s[k] & 0xc0) != 0x80) return 0;
        return rows[i].bytes;
    }
    return 0;
}

hone_character hone_character_at(const char *text, size_t left) {
    static const struct {
        uint32_t first, last;
    } hidden[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x200e, 0x200f},
                  {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}};
    const unsigned char *s = (const unsigned char *)text;
    static const unsigned char mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    int n = sequence(s, left);
    if (!n) return (hone_character){1, UINT32_MAX, false};
    hone_character c = {n, s[0] & mask[n], true};
    for (int k = 1; k < n; k++) c.code = c.code << 6 | (s[k] & 0x3f);
    for (size_t k = 0; k < sizeof hidden / sizeof *hidden; k++)
        c.shown &= c.code < hidden[k].first || c.code > hidden[k].last;
    return c;
}

size_t hone_visible(char *out, size_t room, const char *text, size_t bytes, bool lines) {
    size_t n = 0;
    for (size_t k = 0; k < bytes && room;) {
        char escape[16];
        hone_character c = hone_character_at(text + k, bytes - k);
        const char *from = text + k;
        size_t more = (size_t)c.bytes;
        k += more;
        if (!c.shown && !(lines && c.code == '\n')) {
            if (c.code == '\n' || c.code == '\t')
                snprintf(escape, sizeof escape, c.code == '\n' ? "\\n" : "\\t");
            else if (c.code == UINT32_MAX || c.code < 0x80)
                snprintf(escape, sizeof escape, "\\x%02x", (unsigned char)*from);
            else snprintf(escape, sizeof escape, "\\u%04x", (unsigned)c.code);
            from = escape, more = strlen(escape);
        }
        if (n + more >= room) break;
        memcpy(out + n, from, more);
        n += more;
    }
    if (room) out[n] = 0;
    return n;
}
size_t hone_text_visible(char *out, size_t room, const char *text, size_t bytes, int lines) {
    return hone_visible(out, room, text, bytes, lines != 0);
}
