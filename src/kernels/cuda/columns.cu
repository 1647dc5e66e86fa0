/* SPDX-License-Identifier: Apache-2.0
   columns: the sum of each column of matrices whose columns lie side by side, times a number: the average of
   each channel over an image whose channels are last. A block has LANES x WIDTH columns of a matrix, its
   other threads have rows; where matrices are few, rows are split over blocks too, and the last block to come
   adds up their parts, in their order. So bits do not depend on who was last.

   Filled in by the printer: IN_TYPE (f16, bf16), OUT_TYPE (f16, bf16, f32), WIDTH (columns that a load has:
   1, 2, 4 or 8, which divides all pitches), LANES (a power of 2 up to 32). Grid: x over columns, y over
   splits, z over matrices. */
#define F16_TYPE 1
#define BF16_TYPE 2
#if IN_TYPE == F16_TYPE
#define TO_F32(v) f16_f32(v)
#else
#define TO_F32(v) bf16_f32(v)
#endif
#if OUT_TYPE == F16_TYPE
typedef u16 out_store;
#define FROM_F32(v) f32_f16(v)
#elif OUT_TYPE == BF16_TYPE
typedef u16 out_store;
#define FROM_F32(v) f32_bf16(v)
#else
typedef float out_store;
#define FROM_F32(v) (v)
#endif
enum { THREADS = 256, ROWS = THREADS / LANES, NUMBERS = LANES * WIDTH, AHEAD = 4 };
typedef union ALIGNED16 {
    u16 one[8];
    u32x4 all;
    u64 two;
    u32 word;
} piece;
DEVICE piece load_piece(const u16 *p) {
    piece v;
    if (WIDTH == 8) v.all = load16(p);
    else if (WIDTH == 4) v.two = *(const u64 *)p;
    else if (WIDTH == 2) v.word = *(const u32 *)p;
    else v.one[0] = *p;
    return v;
}
KERNEL(hone_columns, hone_cuda_columns, THREADS, 1) {
    float *const part = (float *)hone_shared; /* THREADS * WIDTH numbers, and behind them one that all read */
    volatile u32 *const came = (volatile u32 *)(hone_shared + THREADS * WIDTH * 4);
    const int lane = THREAD % LANES, row = THREAD / LANES, column = (BLOCK_X * LANES + lane) * WIDTH;
    const int from = (int)((i64)a->rows * BLOCK_Y / a->splits),
              to = (int)((i64)a->rows * (BLOCK_Y + 1) / a->splits);
    float sum[WIDTH];
    UNROLL for (int e = 0; e < WIDTH; e++) sum[e] = 0;
    launch_next();
    wait_previous();
    if (column < a->columns) {
        const u16 *const x = (const u16 *)a->x + BLOCK_Z * a->matrix_x + column;
        for (int r = from + row; r < to; r += AHEAD * ROWS) {
            piece v[AHEAD];
            UNROLL for (int q = 0; q < AHEAD; q++)
                v[q] = load_piece(x + (i64)(r + q * ROWS < to ? r + q * ROWS : r) * a->pitch_x);
            UNROLL for (int q = 0; q < AHEAD; q++)
                UNROLL for (int e = 0; e < WIDTH; e++)
                    sum[e] += r + q * ROWS < to ? TO_F32(v[q].one[e]) : 0.0f;
        }
    }
    UNROLL for (int e = 0; e < WIDTH; e++) part[row * NUMBERS + lane * WIDTH + e] = sum[e];
    sync_block();
    const int own = BLOCK_X * NUMBERS + THREAD;
    float total = 0;
    if (THREAD < NUMBERS)
        for (int r = 0; r < ROWS; r++) total += part[r * NUMBERS + THREAD];
    if (a->splits > 1) {
        const i64 id = (i64)BLOCK_Z * a->blocks + BLOCK_X;
        volatile float *const parts = (volatile float *)a->workspace + id * a->splits * NUMBERS + THREAD;
        u32 *const count = (u32 *)a->counters + id;
        if (THREAD < NUMBERS) parts[(i64)BLOCK_Y * NUMBERS] = total;
        fence_gpu();
        sync_block();
        if (THREAD == 0) *came = atomic_count(count);
        sync_block();
        if (*came != (u32)a->splits - 1) return;
        if (THREAD == 0) *count = 0;
        fence_gpu();
        total = 0;
        for (int s = 0; s < a->splits && THREAD < NUMBERS; s++) total += parts[(i64)s * NUMBERS];
    }
    if (THREAD < NUMBERS && own < a->columns)
        ((out_store *)a->y)[BLOCK_Z * a->matrix_y + own] = FROM_F32(total * a->scale);
}
