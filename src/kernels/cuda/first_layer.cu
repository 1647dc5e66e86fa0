/* SPDX-License-Identifier: Apache-2.0
   first_layer: convolution over pixels of 1 to 4 channels, on the matrix unit of warps: what a network does
   with an image, which is read as it is: channels last or planes of f32, narrowed on the way. As an implicit
   product (contract_mma) it would gather every window's few bytes by themselves; here a block brings the
   patch of the image that its TILE_Y x 16 outputs see into shared memory once, pixels padded to 4 channels, 8
   bytes. Rows of the left factor are then addresses into the patch: two taps beside each other are 16 bytes,
   half of what an instruction multiplies, and windows overlap without being copied.

   K is in pieces of 8: two taps of a line by four channels; a line of an odd kernel has half a piece too
   much, whose pixels are replaced by zeros (its weights are zeros, but zero times infinity is not). Weights
   are packed in that order: [n][piece][8], see hone_cuda_pack_first_layer; they are nobody's result, so they
   are asked for before the kernel before has ended. Blocks stay for many tiles, and
   the next tile's pixels are on their way, in registers, while this one is multiplied.

   Filled in by the printer: IMAGE_TYPE (of the image: that of both factors, or f32), CHANNELS, KERNEL_Y,
   KERNEL_X, STRIDE (both directions; dilation is 1), TILE_Y (lines of 16 outputs), BLOCKS_M (of them a warp),
   TILE_N (output channels of a block, a multiple of 16), and what epilogue.cu takes (16-bit factors). */
enum {
    TILE_X = 16,
    WARPS = TILE_Y / BLOCKS_M,
    THREADS = 32 * WARPS,
    BLOCKS_N = TILE_N / 8,
    LINE = (KERNEL_X + 1) / 2, /* pieces of one line of the kernel */
    PIECES = (KERNEL_Y * LINE + 1) / 2 * 2,
    PITCH_B = (PIECES + 1) * 16, /* bytes: an odd number of 16, so that eight rows meet eight banks */
    PATCH_Y = (TILE_Y - 1) * STRIDE + KERNEL_Y,
    PATCH_X = ((TILE_X - 1) * STRIDE + 2 * LINE + 1) / 2 * 2,
    PITCH = PATCH_X * 8,
    PIXELS = PATCH_Y * PATCH_X,
    MINE = (PIXELS + THREADS - 1) / THREADS, /* pixels a thread brings */
    PATCH_AT = TILE_N * PITCH_B,
    OUT_PITCH = TILE_N * OUT_BYTES + 16,
    OUT_AT = PATCH_AT + PATCH_Y * PITCH, /* one line of outputs a warp */
    SHARED_BYTES = OUT_AT + WARPS * TILE_X * OUT_PITCH
};
#define P (&a->p)
#define W (&a->w)
typedef struct {
    int image, y, x;
} spot; /* the first output of a tile */
DEVICE spot spot_of(const hone_cuda_first *a, int t) {
    const int wide = (W->out_width + TILE_X - 1) / TILE_X, high = (W->out_height + TILE_Y - 1) / TILE_Y;
    spot s;
    s.x = t % wide * TILE_X, s.y = t / wide % high * TILE_Y, s.image = t / wide / high;
    return s;
}
#if IMAGE_TYPE == F32_TYPE
typedef float image_store;
#if IN_TYPE == F16_TYPE
#define PIXEL(v) f32_f16(v)
#else
#define PIXEL(v) f32_bf16(v)
#endif
#else
typedef u16 image_store;
#define PIXEL(v) (v)
#endif
typedef struct {
    u16 channel[CHANNELS];
} pixel;
/* what this thread brings of a patch; zeros outside of the image */
DEVICE void look(const hone_cuda_first *a, spot s, pixel mine[MINE]) {
    const int y0 = s.y * STRIDE - W->pad_y, x0 = s.x * STRIDE - W->pad_x;
    const image_store *first = (const image_store *)P->a + s.image * a->image + y0 * a->line + x0 * a->pixel;
    UNROLL for (int i = 0; i < MINE; i++) {
        const int t = THREAD + i * THREADS, y = t / PATCH_X, x = t % PATCH_X;
        const bool there = t < PIXELS && (u32)(y0 + y) < (u32)W->height && (u32)(x0 + x) < (u32)W->width;
        const image_store *p = first + (y * a->line + x * a->pixel);
        UNROLL for (int c = 0; c < CHANNELS; c++)
            mine[i].channel[c] = there ? PIXEL(p[c * a->channel]) : (u16)0;
    }
}
DEVICE void place(u32 patch, const pixel mine[MINE]) {
    UNROLL for (int i = 0; i < MINE; i++) {
        u64 all = 0;
        UNROLL for (int c = 0; c < CHANNELS; c++) all |= (u64)mine[i].channel[c] << 16 * c;
        if (THREAD + i * THREADS < PIXELS) shared_store8(patch + (u32)(THREAD + i * THREADS) * 8, all);
    }
}
/* Where a piece of the window begins in the patch; pieces too many are at the first. */
#define PIECE_AT(q) ((q) < KERNEL_Y * LINE ? (q) / LINE * PITCH + (q) % LINE * 16 : 0)
#define HALF(q) (KERNEL_X % 2 && (q) % LINE == LINE - 1) /* only its first tap is the window's */

DEVICE int least(int x, int y) { return x < y ? x : y; }

KERNEL(hone_first_layer, hone_cuda_first, THREADS, THREADS > 128 ? 1 : 2) {
    const u32 shared = shared_at(hone_shared), patch = shared + PATCH_AT;
    const int lane = THREAD % 32, warp = THREAD / 32, n0 = BLOCK_Y * TILE_N;
    const int tiles =
        (W->out_width + TILE_X - 1) / TILE_X * ((W->out_height + TILE_Y - 1) / TILE_Y) * W->batch;
    for (int t = THREAD; t < TILE_N * PIECES; t += THREADS) {
        const int n = t / PIECES, piece = t % PIECES;
        const bool there = n0 + n < P->n;
        copy16(shared + (u32)(n * PITCH_B + piece * 16),
               (const u16 *)P->b + (there ? ((i64)(n0 + n) * PIECES + piece) * 8 : 0), there ? 16 : 0);
    }
    copy_commit();
    launch_next();
    wait_previous();
    pixel mine[MINE];
    if (BLOCK_X < tiles) look(a, spot_of(a, BLOCK_X), mine);
    copy_wait(0);
    for (int t = BLOCK_X; t < tiles; t += GRID_X) {
        const spot s = spot_of(a, t);
        place(patch, mine);
        sync_block();
        if (t + GRID_X < tiles) look(a, spot_of(a, t + GRID_X), mine);
        float sum[BLOCKS_M][BLOCKS_N][4];
        UNROLL for (int i = 0; i < BLOCKS_M; i++)
            UNROLL for (int j = 0; j < BLOCKS_N; j++)
                UNROLL for (int e = 0; e < 4; e++) sum[i][j][e] = 0;
        UNROLL for (int q = 0; q < PIECES; q += 2) {
            u32 left[BLOCKS_M][4], right[BLOCKS_N / 2][4];
            UNROLL for (int i = 0; i < BLOCKS_M; i++) {
                const u32 line = patch + (u32)((warp * BLOCKS_M + i) * STRIDE * PITCH);
                if (STRIDE % 2 == 0) /* 16 bytes of a row are aligned */
                    matrix_load(left[i], line + (u32)(lane % 16 * STRIDE * 8 +
                                                      (lane / 16 ? PIECE_AT(q + 1) : PIECE_AT(q))));
                else
                    UNROLL for (int e = 0; e < 4; e++)
                        left[i][e] =
                            shared_load4(line + (u32)((lane / 4 + e % 2 * 8) * STRIDE * 8 + lane % 4 * 4 +
                                                      (e / 2 ? PIECE_AT(q + 1) : PIECE_AT(q))));
                UNROLL for (int e = 0; e < 4; e++) {
                    if (q + e / 2 >= KERNEL_Y * LINE) left[i][e] = 0;
                    else if (HALF(q + e / 2) && lane % 4 >= 2) left[i][e] = 0;
                }
            }
            UNROLL for (int j = 0; j < BLOCKS_N / 2; j++)
                matrix_load(right[j], shared + (u32)((j * 16 + lane / 16 * 8 + lane % 8) * PITCH_B + q * 16 +
                                                     lane / 8 % 2 * 16));
            UNROLL for (int i = 0; i < BLOCKS_M; i++)
                UNROLL for (int j = 0; j < BLOCKS_N; j++) MMA(sum[i][j], left[i], right[j / 2] + j % 2 * 2);
        }
        /* All values first, so that a bias is read once; what is outside has the value of an edge, and is not
           stored. */
        out_store value[BLOCKS_M][BLOCKS_N][4];
        UNROLL for (int j = 0; j < BLOCKS_N; j++)
            UNROLL for (int i = 0; i < BLOCKS_M; i++)
                UNROLL for (int e = 0; e < 4; e++) {
                    const int y = least(s.y + warp * BLOCKS_M + i, W->out_height - 1),
                              x = least(s.x + lane / 4 + e / 2 * 8, W->out_width - 1);
                    const int n = least(n0 + j * 8 + lane % 4 * 2 + e % 2, P->n - 1);
                    const int m = (s.image * W->out_height + y) * W->out_width + x;
                    value[i][j][e] = finish(P, sum[i][j][e], bias_at(P, n), 0, residual_at(P, 0, m, n), 0, m,
                                            n);
                }
        /* lines leave by way of shared memory, in whole rows of channels */
        char *line = hone_shared + OUT_AT + warp * TILE_X * OUT_PITCH;
        UNROLL for (int i = 0; i < BLOCKS_M; i++) {
            UNROLL for (int j = 0; j < BLOCKS_N; j++)
                UNROLL for (int e = 0; e < 4; e += 2) {
                    union {
                        out_store one[2];
                        u16 small;
                        u32 word;
                        u64 words;
                    } v;
                    const u32 at = shared_at(line) + (u32)((lane / 4 + e / 2 * 8) * OUT_PITCH +
                                                           (j * 8 + lane % 4 * 2) * OUT_BYTES);
                    v.one[0] = value[i][j][e], v.one[1] = value[i][j][e + 1];
                    if (OUT_BYTES == 1) shared_store2(at, v.small);
                    else if (OUT_BYTES == 2) shared_store4(at, v.word);
                    else shared_store8(at, v.words);
                }
            sync_warp();
            const int y = s.y + warp * BLOCKS_M + i, a_row = TILE_N * OUT_BYTES / 16, per = 16 / OUT_BYTES;
            for (int k = lane; k < TILE_X * a_row; k += 32) {
                const int x = s.x + k / a_row, n = n0 + k % a_row * per;
                if (y >= W->out_height || x >= W->out_width || n >= P->n) continue;
                out_store *p = (out_store *)P->c +
                               (((i64)s.image * W->out_height + y) * W->out_width + x) * P->pitch_c + n;
                const char *from = line + k / a_row * OUT_PITCH + k % a_row * 16;
                if (n + per <= P->n && (u64)p % 16 == 0) store16(p, *(const u32x4 *)from);
                else
                    for (int e = 0; e < per && n + e < P->n; e++) p[e] = ((const out_store *)from)[e];
            }
            sync_warp();
        }
        sync_block(); /* the patch has been read by all */
    }
}
