/* SPDX-License-Identifier: Apache-2.0
   jpeg: what the three files of the JPEG decoder share. jpeg.c reads markers, jpeg_scan.c the bits of a scan, jpeg_out.c makes samples of
   coefficients and pixels of samples. */
#ifndef HONE_IMAGE_JPEG_H
#define HONE_IMAGE_JPEG_H
#include "image/image.h"

enum { HONE_JPEG_FAST = 9, HONE_JPEG_LONGEST = 16 };

/* A Huffman code: up to FAST bits in one look, longer ones by the largest code of each length. */
typedef struct {
    bool there;
    uint16_t fast[1 << HONE_JPEG_FAST];  /* symbol << 4 | bits; 0: longer, or none */
    int32_t past[HONE_JPEG_LONGEST + 1]; /* one more than the last code of so many bits, as a left-aligned 16-bit number */
    int32_t base[HONE_JPEG_LONGEST + 1]; /* what to add to a code of so many bits to have its symbol's place */
    uint8_t symbol[256];
} hone_jpeg_code;

typedef struct {
    int id, h, v, quant;  /* as the frame says; h and v: samples across and down an MCU, in blocks */
    int width, height;    /* of its samples */
    int across, down;     /* of its blocks, whole MCUs */
    int dc, ac;           /* codes of the current scan */
    int pred;             /* the last DC */
    uint16_t step[64];    /* quantization, in zigzag's order undone; kept when its first scan comes */
    bool seen;            /* a scan brought its DC */
    int8_t bit[64];       /* progressive: the lowest bit of each coefficient that has come; -1: none */
    int16_t *coefficient; /* progressive: [down][across][64] */
    uint8_t *sample;      /* [down * 8][across * 8] */
} hone_jpeg_part;

typedef struct {
    const uint8_t *at, *end;
    int width, height, n_part, h_max, v_max, across, down; /* MCUs */
    bool frame, progressive, jfif, adobe;
    int transform; /* Adobe's */
    uint32_t restart;
    int scans;
    uint16_t quant[4][64];
    bool quant_there[4];
    hone_jpeg_code dc[4], ac[4];
    hone_jpeg_part part[4];
} hone_jpeg;

typedef struct {
    int n, part[4];
    int first, last, high, low; /* coefficients; bits before and after, in progressive scans */
} hone_jpeg_span;

extern const uint8_t hone_jpeg_zigzag[64]; /* place in the block of the k-th coefficient */
bool hone_jpeg_make_code(hone_jpeg_code *, const uint8_t count[16], const uint8_t *symbols, int n);
/* Reads a scan's bits; j->at stands behind its header, and afterwards at the next marker. */
hone_status hone_jpeg_scan(hone_jpeg *j, const hone_jpeg_span *) HONE_CHECKED;
/* The inverse DCT of 64 coefficients times `step` into 8 rows. */
void hone_jpeg_inverse(const int16_t *coefficient, const uint16_t *step, uint8_t *to, size_t stride);
hone_status hone_jpeg_pixels(const hone_jpeg *j, hone_pixels *out) HONE_CHECKED; /* samples → the picture */
#endif
