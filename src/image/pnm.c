/* SPDX-License-Identifier: Apache-2.0
   pnm: P1 to P6: bits, gray and colour, as text or as bytes; any largest value up to 65535. The first picture
   of a file. */
#include "image/image.h"

typedef struct {
    const uint8_t *at, *end;
} text;

static bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* The next number behind spaces and comments; -1: there is none. */
static int64_t number(text *t) {
    int64_t v = 0;
    while (t->at < t->end && (is_space(*t->at) || *t->at == '#')) {
        if (*t->at == '#')
            while (t->at < t->end && *t->at != '\n' && *t->at != '\r') t->at++;
        else t->at++;
    }
    if (t->at == t->end || *t->at < '0' || *t->at > '9') return -1;
    while (t->at < t->end && *t->at >= '0' && *t->at <= '9') {
        v = v * 10 + (*t->at++ - '0');
        if (v > INT32_MAX) return -1;
    }
    return v;
}

static hone_status cut(void) {
    return hone_fail(HONE_BAD_INPUT, "the file is cut short, or has something else than numbers");
}

/* P1 may leave no space between its digits. 1 is black. */
static hone_status text_bits(text *t, uint8_t *to, size_t n) {
    for (size_t k = 0; k < n; k++) {
        while (t->at < t->end && is_space(*t->at)) t->at++;
        if (t->at == t->end || (*t->at != '0' && *t->at != '1')) return cut();
        to[k] = *t->at++ == '1' ? 0 : 255;
    }
    return HONE_OK;
}

static hone_status raw_bits(const text *t, uint8_t *to, int width, int height) {
    size_t row = ((size_t)width + 7) / 8;
    if ((size_t)(t->end - t->at) < row * (size_t)height) return cut();
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            *to++ = t->at[(size_t)y * row + (size_t)x / 8] >> (7 - x % 8) & 1 ? 0 : 255;
    return HONE_OK;
}

static uint8_t scale(int64_t v, int64_t most) {
    return v >= most ? 255 : (uint8_t)((v * 510 + most) / (2 * most));
}

static hone_status samples(text *t, bool raw, int64_t most, uint8_t *to, size_t n) {
    size_t width = most > 255 ? 2 : 1;
    if (raw && (size_t)(t->end - t->at) / width < n) return cut();
    for (size_t k = 0; k < n; k++) {
        int64_t v = raw ? (width == 2 ? hone_be16(t->at + 2 * k) : t->at[k]) : number(t);
        if (v < 0) return cut();
        to[k] = scale(v, most);
    }
    return HONE_OK;
}

hone_status hone_pnm_read(const uint8_t *data, size_t bytes, hone_pixels *out) {
    text t = {data + 2, data + bytes};
    int kind = data[1] - '0';
    bool bits = kind % 3 == 1, raw = kind > 3;
    int64_t width = number(&t), height = number(&t), most = bits ? 1 : number(&t);
    if (width < 0 || height < 0 || most < 1 || most > 65535)
        return hone_fail(HONE_BAD_INPUT, "the header has no width, height and largest value");
    if (t.at == t.end) return cut();
    if (raw) t.at++; /* one space before the bytes */
    HONE_TRY(hone_pixels_allowed(width, height));
    /* no kind has less than a bit a pixel */
    if ((uint64_t)(width * height) / 8 > (uint64_t)(t.end - t.at)) return cut();
    HONE_TRY(hone_pixels_create(width, height, kind % 3 == 0 ? 3 : 1, out));
    size_t n = (size_t)width * (size_t)height * (size_t)out->channels;
    if (bits) return raw ? raw_bits(&t, out->data, (int)width, (int)height) : text_bits(&t, out->data, n);
    return samples(&t, raw, most, out->data, n);
}
