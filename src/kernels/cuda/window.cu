/* SPDX-License-Identifier: Apache-2.0
   window: depthwise convolution and pooling over channels-last pixels. A thread has WIDTH neighbouring
   channels of LINES x STRIP outputs: what their windows share is read and widened once. Taps outside of the
   image are zeros, or are left out (pools).

   A thread of few lines asks for all its pixels before it needs the first. One of many lines (AHEAD) walks
   down the image: a row is added to all outputs that see it, while the next AHEAD rows are under way; weights
   stay in registers. Either way an output's taps are added in the same order.

   Filled in by the printer: KIND (1 depthwise, 2 largest, 3 average of what is there, 4 average over all
   taps), IN_TYPE (f16, bf16, f32, s8, u8), ZERO (the byte that stands for 0), WIDTH, STRIP, LINES, AHEAD (0:
   all rows at once), KERNEL_Y, KERNEL_X, STRIDE, DILATION (of both dims), EPILOGUE(v): an expression of v
   that may use bias, whole, residual; of bytes v is an int, as sums of so few are exact. Weights are f32,
   whatever the pixels are: widened once, when they are packed; they and the bias are aligned to 16 bytes,
   and no kernel writes them. Grid: x over strips and channels of a line, y over lines, z over images. */
#define F16_TYPE 1
#define BF16_TYPE 2
#define S8_TYPE 4
#define U8_TYPE 6
#define DEPTHWISE 1
#define LARGEST 2
#define AVERAGE 3
#define AVERAGE_ALL 4
#if IN_TYPE == F16_TYPE
typedef u16 store;
#define TO_F32(v) f16_f32(v)
#define FROM_F32(v) f32_f16(v)
#elif IN_TYPE == BF16_TYPE
typedef u16 store;
#define TO_F32(v) bf16_f32(v)
#define FROM_F32(v) f32_bf16(v)
#elif IN_TYPE == S8_TYPE || IN_TYPE == U8_TYPE
#define WHOLE 1
#define TO_F32(v) ((float)((int)(v) - (ZERO)))
#define AS_F32(v) byte_up((u8)(v)) /* the residual as epilogues want it */
#define FROM_F32(v) narrow(v)
#if IN_TYPE == S8_TYPE
typedef i8 store;
#else
typedef u8 store;
#endif
DEVICE store narrow(float v) { /* the last bits of such a sum are the number, rounded */
    const float low = IN_TYPE == S8_TYPE ? -128.0f : 0.0f;
    return (store)F32_BITS(fminf(fmaxf(v, low), low + 255.0f) + 12582912.0f);
}
#else
typedef float store;
#define TO_F32(v) (v)
#define FROM_F32(v) (v)
#endif
#ifndef WHOLE
#define WHOLE 0
#define AS_F32 TO_F32
#endif
#if WHOLE && KIND == LARGEST /* conversions run at a quarter of the rate: none a tap */
typedef int total;
#define LEAST (-65536)
#else
typedef float total;
#define LEAST BITS_F32(0xff800000u)
#endif
enum {
    THREADS = 128,
    /* of the image, that a thread's windows see */
    COLUMNS = (STRIP - 1) * STRIDE + (KERNEL_X - 1) * DILATION + 1,
    ROWS = (LINES - 1) * STRIDE + (KERNEL_Y - 1) * DILATION + 1
};
#define IS_TAP(d, kernel) ((d) >= 0 && (d) % DILATION == 0 && (d) / DILATION < (kernel))
typedef union ALIGNED16 {
    store one[WIDTH];
    u32x4 all;
    u64 two;
    u32 word;
    u16 half;
} piece;
DEVICE piece load_piece(const store *p) {
    piece v;
    if (sizeof(store) * WIDTH == 16) v.all = load16(p);
    else if (sizeof(store) * WIDTH == 8) v.two = *(const u64 *)p;
    else if (sizeof(store) * WIDTH == 4) v.word = *(const u32 *)p;
    else if (sizeof(store) * WIDTH == 2) v.half = *(const u16 *)p;
    else v.one[0] = *p;
    return v;
}
DEVICE void store_piece(store *p, const piece *v) {
    if (sizeof(store) * WIDTH == 16) store16(p, v->all);
    else if (sizeof(store) * WIDTH == 8) *(u64 *)p = v->two;
    else if (sizeof(store) * WIDTH == 4) *(u32 *)p = v->word;
    else if (sizeof(store) * WIDTH == 2) *(u16 *)p = v->half;
    else *p = v->one[0];
}
DEVICE float end(total sum, float bias, int whole, float residual) {
    (void)bias, (void)whole, (void)residual;
#if WHOLE
    const int v = (int)sum;
    return EPILOGUE(v);
#else
    return EPILOGUE(sum);
#endif
}

/* Where a thread's windows begin: outputs from (line0, strip * STRIP) on. */
typedef struct {
    int n, line0, strip, channel, x0, y0;
    const store *corner;
} place;
DEVICE void load_row(piece to[COLUMNS], const hone_cuda_window *a, const place *at, int r) {
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        bool used = false; /* known when compiled: with gaps between taps some pixels are nobody's */
        UNROLL for (int l = 0; l < LINES; l++)
            UNROLL for (int s = 0; s < STRIP; s++)
                used |= IS_TAP(r - l * STRIDE, KERNEL_Y) && IS_TAP(c - s * STRIDE, KERNEL_X);
        if (!used) continue;
        if ((u32)(at->y0 + r) < (u32)a->height && (u32)(at->x0 + c) < (u32)a->width)
            to[c] = load_piece(at->corner + (i64)r * (a->width * a->pitch_x) + c * a->pitch_x);
        else
            UNROLL for (int e = 0; e < WIDTH; e++)
                to[c].one[e] = KIND == LARGEST ? FROM_F32(BITS_F32(0xff800000u)) : (store)ZERO;
    }
}
DEVICE total added(total sum, store pixel, float w) {
#if WHOLE && KIND == LARGEST
    const int v = (int)pixel - (ZERO);
    return v > sum ? v : sum;
#endif
    const float f = TO_F32(pixel);
    if (KIND == DEPTHWISE) return fmaf(f, w, sum);
    if (KIND == LARGEST) return f > sum || f != f ? f : sum;
    return sum + f;
}
/* line l's outputs */
DEVICE void leave(const hone_cuda_window *a, const place *at, int l, total sum[STRIP][WIDTH],
                  const float bias[WIDTH], const int whole[WIDTH]) {
    UNROLL for (int s = 0; s < STRIP; s++) {
        const int x = at->strip * STRIP + s, line = at->line0 + l;
        if (x >= a->out_width || line >= a->out_height) continue;
        const i64 pixel = ((i64)at->n * a->out_height + line) * a->out_width + x;
        piece out, before;
        float part = 1;
        if (KIND == AVERAGE_ALL) part = 1.0f / (float)(KERNEL_Y * KERNEL_X);
        if (KIND == AVERAGE) { /* taps that are there: rows times columns */
            int rows = 0, columns = 0;
            UNROLL for (int k = 0; k < KERNEL_Y; k++)
                rows += (u32)(at->y0 + l * STRIDE + k * DILATION) < (u32)a->height;
            UNROLL for (int k = 0; k < KERNEL_X; k++)
                columns += (u32)(at->x0 + s * STRIDE + k * DILATION) < (u32)a->width;
            part = 1.0f / (float)(rows * columns);
        }
        if (a->residual) before = load_piece((const store *)a->residual + pixel * a->channels + at->channel);
        UNROLL for (int e = 0; e < WIDTH; e++) {
            total v = sum[s][e];
            if (KIND == AVERAGE || KIND == AVERAGE_ALL) v *= part;
            out.one[e] = FROM_F32(end(v, bias[e], whole[e], a->residual ? AS_F32(before.one[e]) : 0.0f));
        }
        store_piece((store *)a->y + pixel * a->pitch_y + at->channel, &out);
    }
}

KERNEL(hone_window, hone_cuda_window, THREADS, 1) {
    const u32 pieces = (u32)(a->channels / WIDTH), strips = (u32)((a->out_width + STRIP - 1) / STRIP),
              id = (u32)(BLOCK_X * THREADS + THREAD);
    place at;
    at.strip = (int)(id / pieces), at.channel = (int)(id % pieces) * WIDTH, at.line0 = BLOCK_Y * LINES,
    at.n = BLOCK_Z;
    at.x0 = at.strip * STRIP * STRIDE - a->pad_x, at.y0 = at.line0 * STRIDE - a->pad_y;
    at.corner =
        (const store *)a->x + (((i64)at.n * a->height + at.y0) * a->width + at.x0) * a->pitch_x + at.channel;
    float bias[WIDTH];
    total sum[LINES][STRIP][WIDTH];
    int whole[WIDTH];
    launch_next();
    if ((u32)at.strip >= strips) return;
    UNROLL for (int e = 0; e < WIDTH; e++)
        whole[e] = WHOLE && a->whole ? ((const int *)a->whole)[at.channel + e] : 0;
    if (a->bias) load_floats(bias, (const float *)a->bias + at.channel, WIDTH);
    else
        UNROLL for (int e = 0; e < WIDTH; e++) bias[e] = 0.0f;
    const float *weights = (const float *)a->w + at.channel;
    UNROLL for (int l = 0; l < LINES; l++)
        UNROLL for (int s = 0; s < STRIP; s++)
            UNROLL for (int e = 0; e < WIDTH; e++)
                sum[l][s][e] = KIND == LARGEST ? LEAST : 0;
#if AHEAD
    float w[KERNEL_Y][KERNEL_X][WIDTH];
    UNROLL for (int k = 0; k < KERNEL_Y * KERNEL_X && KIND == DEPTHWISE; k++)
        load_floats(w[k / KERNEL_X][k % KERNEL_X], weights + k * a->channels, WIDTH);
    wait_previous();
    piece in[AHEAD + 1][COLUMNS];
    UNROLL for (int r = 0; r < AHEAD; r++) load_row(in[r], a, &at, r);
    UNROLL for (int r = 0; r < ROWS; r++) {
        if (r + AHEAD < ROWS) load_row(in[(r + AHEAD) % (AHEAD + 1)], a, &at, r + AHEAD);
        UNROLL for (int l = 0; l < LINES; l++) {
            const int ky = (r - l * STRIDE) / DILATION;
            if (!IS_TAP(r - l * STRIDE, KERNEL_Y)) continue;
            UNROLL for (int kx = 0; kx < KERNEL_X; kx++)
                UNROLL for (int s = 0; s < STRIP; s++)
                    UNROLL for (int e = 0; e < WIDTH; e++)
                        sum[l][s][e] =
                            added(sum[l][s][e], in[r % (AHEAD + 1)][s * STRIDE + kx * DILATION].one[e],
                                  w[ky][kx][e]);
            if (ky == KERNEL_Y - 1) leave(a, &at, l, sum[l], bias, whole);
        }
    }
#else
    wait_previous();
    piece in[ROWS][COLUMNS];
    UNROLL for (int r = 0; r < ROWS; r++) load_row(in[r], a, &at, r);
    UNROLL for (int ky = 0; ky < KERNEL_Y; ky++)
        UNROLL for (int kx = 0; kx < KERNEL_X; kx++) {
            float w[WIDTH];
            if (KIND == DEPTHWISE) load_floats(w, weights + (ky * KERNEL_X + kx) * a->channels, WIDTH);
            UNROLL for (int l = 0; l < LINES; l++)
                UNROLL for (int s = 0; s < STRIP; s++)
                    UNROLL for (int e = 0; e < WIDTH; e++)
                        sum[l][s][e] =
                            added(sum[l][s][e],
                                  in[l * STRIDE + ky * DILATION][s * STRIDE + kx * DILATION].one[e], w[e]);
        }
    UNROLL for (int l = 0; l < LINES; l++) leave(a, &at, l, sum[l], bias, whole);
#endif
}
