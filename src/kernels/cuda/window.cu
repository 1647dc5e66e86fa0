/* SPDX-License-Identifier: Apache-2.0
   window: depthwise convolution and pooling over channels-last pixels. A thread has WIDTH neighbouring channels of STRIP outputs of a line:
   what two windows share is read once. Taps outside of the image are zeros, or are left out (pools).

   Filled in by the printer: KIND (1 depthwise, 2 largest, 3 average of what is there, 4 average over all taps), IN_TYPE (f16, bf16, f32), WIDTH,
   STRIP, KERNEL_Y, KERNEL_X, STRIDE, EPILOGUE(v): an expression of v that may use bias, residual. Dilation is the args'. */
#define F16_TYPE 1
#define BF16_TYPE 2
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
#else
typedef float store;
#define TO_F32(v) (v)
#define FROM_F32(v) (v)
#endif
typedef union ALIGNED16 { store one[WIDTH]; u32x4 all; u64 two; u32 word; } piece;
DEVICE piece load_piece(const store *p) {
    piece v;
    if (sizeof(store) * WIDTH == 16) v.all = load16(p);
    else if (sizeof(store) * WIDTH == 8) v.two = *(const u64 *)p;
    else if (sizeof(store) * WIDTH == 4) v.word = *(const u32 *)p;
    else v.one[0] = *p;
    return v;
}
DEVICE void store_piece(store *p, const piece *v) {
    if (sizeof(store) * WIDTH == 16) store16(p, v->all);
    else if (sizeof(store) * WIDTH == 8) *(u64 *)p = v->two;
    else if (sizeof(store) * WIDTH == 4) *(u32 *)p = v->word;
    else *p = v->one[0];
}
DEVICE float end(float v, float bias, float residual) {
    (void)bias, (void)residual;
    return EPILOGUE(v);
}

KERNEL(hone_window, hone_cuda_window, 256, 1) {
    const int pieces = a->channels / WIDTH, strips = (a->out_width + STRIP - 1) / STRIP;
    const i64 all = (i64)a->batch * a->out_height * strips * pieces, id = (i64)BLOCK_X * 256 + THREAD;
    launch_next();
    wait_previous();
    if (id >= all) return;
    const int channel = (int)(id % pieces) * WIDTH, strip = (int)(id / pieces % strips), line = (int)(id / pieces / strips % a->out_height);
    const int n = (int)(id / pieces / strips / a->out_height), x0 = strip * STRIP * STRIDE - a->pad_x, y0 = line * STRIDE - a->pad_y;
    float sum[STRIP][WIDTH];
    int there[STRIP];
    UNROLL for (int s = 0; s < STRIP; s++) {
        there[s] = 0;
        UNROLL for (int e = 0; e < WIDTH; e++) sum[s][e] = KIND == LARGEST ? BITS_F32(0xff800000u) : 0.0f;
    }
    UNROLL for (int ky = 0; ky < KERNEL_Y; ky++) {
        const int y = y0 + ky * a->dilation_y;
        if (y < 0 || y >= a->height) continue;
        const store *row = (const store *)a->x + ((i64)n * a->height + y) * a->width * a->channels + channel;
        UNROLL for (int kx = 0; kx < KERNEL_X; kx++) {
            piece w;
            if (KIND == DEPTHWISE) w = load_piece((const store *)a->w + (i64)(ky * KERNEL_X + kx) * a->channels + channel);
            UNROLL for (int s = 0; s < STRIP; s++) {
                const int x = x0 + s * STRIDE + kx * a->dilation_x;
                if (x < 0 || x >= a->width) continue;
                const piece v = load_piece(row + (i64)x * a->channels); /* neighbours read it again, from L1 */
                there[s]++;
                UNROLL for (int e = 0; e < WIDTH; e++) {
                    const float f = TO_F32(v.one[e]);
                    if (KIND == DEPTHWISE) sum[s][e] = fmaf(f, TO_F32(w.one[e]), sum[s][e]);
                    else if (KIND == LARGEST) sum[s][e] = f > sum[s][e] || f != f ? f : sum[s][e];
                    else sum[s][e] += f;
                }
            }
        }
    }
    UNROLL for (int s = 0; s < STRIP; s++) {
        const int x = strip * STRIP + s;
        if (x >= a->out_width) continue;
        const i64 at = (((i64)n * a->out_height + line) * a->out_width + x) * a->channels + channel;
        piece out, before;
        if (a->residual) before = load_piece((const store *)a->residual + at);
        UNROLL for (int e = 0; e < WIDTH; e++) {
            float v = sum[s][e];
            if (KIND == AVERAGE) v /= (float)there[s];
            if (KIND == AVERAGE_ALL) v /= (float)(KERNEL_Y * KERNEL_X);
            out.one[e] = FROM_F32(end(v, a->bias ? ((const float *)a->bias)[channel + e] : 0.0f, a->residual ? TO_F32(before.one[e]) : 0.0f));
        }
        store_piece((store *)a->y + at, &out);
    }
}
