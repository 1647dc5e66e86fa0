/* SPDX-License-Identifier: Apache-2.0
   unpack: LZW as TIFF has it (high bits first, a code grows one early) and PackBits. */
#include "image/unpack.h"

#include <string.h>

enum { CLEAR = 256, END = 257, FIRST = 258, CODES = 4096 };

/* Every string was written once, when it was made: a code is a place in the output and a length. */
hone_status hone_unlzw(const uint8_t *in, size_t n, uint8_t *out, size_t room, size_t *made) {
    struct {
        size_t at, n;
    } *code = hone_alloc_raw(sizeof *code * CODES);
    if (!code) return hone_fail(HONE_NO_MEMORY, "no memory to unpack");
    uint32_t bits = 0;
    int have = 0, width = 9, next = FIRST;
    size_t at = 0, last_at = 0, last_n = 0; /* the string before */
    bool good = true;
    for (size_t k = 0; good && at < room;) {
        while (have < width && k < n) bits = bits << 8 | in[k++], have += 8;
        if (have < width) break;
        int c = (int)(bits >> (have - width) & ((1u << width) - 1));
        have -= width;
        if (c == END) break;
        if (c == CLEAR) {
            width = 9, next = FIRST, last_n = 0;
            continue;
        }
        good = c < 256 || c < next || (c == next && last_n && next < CODES);
        if (!good) break;
        size_t from = c < 256 ? 0 : c < next ? code[c].at : last_at, length = c < 256 ? 1 : c < next ? code[c].n : last_n + 1, begin = at;
        if (last_n && next < CODES) { /* the string before and the first byte of this one; it lies there already, or will in a moment */
            code[next].at = last_at, code[next].n = last_n + 1;
            if (++next == (1 << width) - 1 && width < 12) width++;
        }
        if (length > room - at) length = room - at;
        if (c < 256) out[at++] = (uint8_t)c;
        else
            for (size_t i = 0; i < length; i++) out[at++] = out[from + i];
        last_at = begin, last_n = length;
    }
    hone_free(code);
    *made = at;
    return good ? HONE_OK : hone_fail(HONE_BAD_INPUT, "the packed data is damaged: no such code");
}

hone_status hone_unpackbits(const uint8_t *in, size_t n, uint8_t *out, size_t room, size_t *made) {
    size_t at = 0;
    for (size_t k = 0; k < n && at < room;) {
        int head = (int8_t)in[k++];
        size_t count = head >= 0 ? (size_t)head + 1 : (size_t)(1 - head);
        if (head == -128) continue;
        if (count > room - at) count = room - at;
        if (head >= 0) {
            if (count > n - k) count = n - k;
            memcpy(out + at, in + k, count);
            k += count;
        } else {
            if (k == n) break;
            memset(out + at, in[k++], count);
        }
        at += count;
    }
    *made = at;
    return HONE_OK;
}
