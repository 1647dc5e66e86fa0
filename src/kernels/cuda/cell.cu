/* SPDX-License-Identifier: Apache-2.0
   cell: all steps of a recurrent layer in one kernel, LSTM's or GRU's: at each step the state times
   constant weights, what comes from the input added, and the gates. For sm_90: a cluster of blocks has
   some rows of the batch in one direction. Each block keeps its part of the weights in shared memory, all
   gates of UNITS columns of the state, multiplies the whole state by them on the matrix unit of warps
   (weights are the unit's rows, the batch its columns), and sends what it makes of its columns to every
   block of the cluster. So a step costs one meeting of a cluster, and nothing but x is read from memory.
   Sums are in one order.

   A warp has 8 columns of the state: the first 16 of its rows are two gates of them, the next 16 the others,
   and a thread has all gates of one column and two rows of the batch. What a state was before stays with it.

   Filled in by the printer: IN_TYPE (of weights and of the state as a factor: f16, bf16, f32 multiplied as
   tf32), KIND (0: LSTM; gates i, o, f, c. 1: GRU, whose state is multiplied before it is reset; gates z, r,
   h, and no fourth), UNITS (a multiple of 8), CLUSTER, TILES (of 8 rows of the batch). Weights: by direction,
   block and warp 32 rows of UNITS * CLUSTER values, zeros where there is no column. Bias: f32, by direction
   and gate UNITS * CLUSTER values, or 0. Grid: CLUSTER blocks a direction and part of the batch. */
#define BF16_TYPE 2
#define F32_TYPE 3
#if IN_TYPE == F32_TYPE
typedef float in_store;
#define MMA mma_tf32
#define NARROW(v) (v)
#elif IN_TYPE == BF16_TYPE
typedef u16 in_store;
#define MMA mma_bf16
#define NARROW(v) f32_bf16(v)
#else
typedef u16 in_store;
#define MMA mma_f16
#define NARROW(v) f32_f16(v)
#endif
enum {
    IN_BYTES = sizeof(in_store),
    WARPS = UNITS / 8,
    THREADS = 32 * WARPS,
    DEPTH = UNITS * CLUSTER,
    ROW = DEPTH * IN_BYTES,
    PITCH = ROW + 16, /* threads that read 8 rows at once meet 32 banks */
    ROWS = 8 * TILES,
    STATE = ROWS * PITCH,
    STATE_AT = WARPS * 32 * PITCH,
    PIECES = UNITS * IN_BYTES / 16, /* of a row of the state that a block makes */
    GATES = KIND ? 3 : 4
};

KERNEL(hone_cell, hone_cuda_cell, THREADS, 1) {
    const u32 shared = shared_at(hone_shared);
    const int lane = THREAD % 32, warp = THREAD / 32, rank = BLOCK_X % CLUSTER, id = BLOCK_X / CLUSTER,
              way = id % a->ways, first = id / a->ways * ROWS, local = warp * 8 + lane / 4,
              unit = rank * UNITS + local, column = lane % 4 * 2;
    const bool there = unit < a->width;
    launch_next();
    { /* constant: before the kernel ahead has ended */
        const char *from = (const char *)a->r + (i64)(way * CLUSTER + rank) * (WARPS * 32) * ROW;
        for (int i = THREAD; i < WARPS * 32 * (ROW / 16); i += THREADS)
            shared_store16(shared + (u32)(i / (ROW / 16) * PITCH + i % (ROW / 16) * 16),
                           load16(from + (i64)i * 16));
    }
    float bias[GATES];
    UNROLL for (int q = 0; q < GATES; q++)
        bias[q] = a->bias ? ((const float *)a->bias)[(way * GATES + q) * DEPTH + unit] : 0;
    wait_previous();
    for (int i = THREAD; i < ROWS * DEPTH; i += THREADS) {
        const int b = i / DEPTH, u = i % DEPTH;
        const i64 at = way * a->h0_way + (first + b) * a->h0_row + u * a->h0_each;
        const float v = a->h0 && first + b < a->rows && u < a->width ? ((const float *)a->h0)[at] : 0;
        *(in_store *)(hone_shared + STATE_AT + b * PITCH + u * IN_BYTES) = NARROW(v);
    }
    float kept[TILES][2], x[TILES][2][GATES]; /* kept: c of an LSTM, h of a GRU */
    UNROLL for (int n = 0; n < TILES; n++)
        UNROLL for (int e = 0; e < 2; e++) {
            const int b = first + n * 8 + column + e;
            kept[n][e] = 0;
            if (!there || b >= a->rows) continue;
            if (KIND == 0 && a->c0)
                kept[n][e] = ((const float *)a->c0)[way * a->c0_way + b * a->c0_row + unit * a->c0_each];
            if (KIND == 1 && a->h0)
                kept[n][e] = ((const float *)a->h0)[way * a->h0_way + b * a->h0_row + unit * a->h0_each];
        }
#define READ_X(step)                                                                                         \
    {                                                                                                        \
        const int u_ = a->when_c[way] + a->when_k[way] * (step);                                             \
        UNROLL for (int n = 0; n < TILES; n++)                                                               \
            UNROLL for (int e = 0; e < 2; e++) {                                                             \
                const int b = first + n * 8 + column + e;                                                    \
                const bool is = there && b < a->rows && (step) < a->steps && u_ >= 0 && u_ < a->steps;       \
                const i64 row_ = ((i64)u_ * a->ways + way) * a->rows + b;                                    \
                const float *from = (const float *)a->x + row_ * GATES * a->width + unit;                    \
                UNROLL for (int q = 0; q < GATES; q++) x[n][e][q] = is ? from[(i64)q * a->width] : 0;        \
            }                                                                                                \
    }
    READ_X(0)
    if (CLUSTER > 1) cluster_arrive(), cluster_wait();
    else sync_block();
    const u32 weights = shared + (u32)((warp * 32 + lane / 4) * PITCH + lane % 4 * 4);
    for (int t = 0; t < a->steps; t++) {
        const u32 states = shared + STATE_AT, now = states + (u32)(t % 2 * STATE),
                  next = states + (u32)((t + 1) % 2 * STATE);
        float sum[2][TILES][4];
        UNROLL for (int i = 0; i < 2; i++)
            UNROLL for (int n = 0; n < TILES; n++)
                UNROLL for (int e = 0; e < 4; e++) sum[i][n][e] = 0;
        UNROLL for (int k = 0; k < ROW; k += 32) {
            u32 left[2][4];
            UNROLL for (int i = 0; i < 2; i++)
                UNROLL for (int e = 0; e < 4; e++)
                    left[i][e] = shared_load4(weights + (u32)((i * 16 + e % 2 * 8) * PITCH + k + e / 2 * 16));
            UNROLL for (int n = 0; n < TILES; n++) {
                const u32 from = now + (u32)((n * 8 + lane / 4) * PITCH + lane % 4 * 4 + k);
                const u32 right[2] = {shared_load4(from), shared_load4(from + 16)};
                UNROLL for (int i = 0; i < 2; i++) MMA(sum[i][n], left[i], right);
            }
        }
        UNROLL for (int n = 0; n < TILES; n++)
            UNROLL for (int e = 0; e < 2; e++) {
                const int b = n * 8 + column + e;
                const float *g = x[n][e];
                float h, c = 0;
                if (KIND == 0) {
                    const float in = quick_sigmoid(g[0] + sum[0][n][e]),
                                out = quick_sigmoid(g[1] + sum[0][n][2 + e]),
                                forget = quick_sigmoid(g[2] + sum[1][n][e]),
                                made = quick_tanh(g[GATES - 1] + sum[1][n][2 + e]);
                    c = forget * kept[n][e] + in * made, kept[n][e] = c, h = out * quick_tanh(c);
                } else {
                    const float update = quick_sigmoid(g[0] + sum[0][n][e] + bias[0]),
                                reset = quick_sigmoid(g[1] + sum[0][n][2 + e] + bias[1]),
                                made = quick_tanh(g[2] + reset * (sum[1][n][e] + bias[2]));
                    h = (1 - update) * made + update * kept[n][e], kept[n][e] = h;
                }
                if (there && first + b < a->rows) {
                    const i64 at = (((i64)t * a->ways + way) * a->rows + first + b) * a->width + unit;
                    ((float *)a->h)[at] = h;
                    if (a->c) ((float *)a->c)[at] = c;
                } else h = 0;
                *(in_store *)(hone_shared + (next - shared) + b * PITCH + unit * IN_BYTES) = NARROW(h);
            }
        if (t + 1 == a->steps) break;
        sync_block();
        for (int i = THREAD; i < ROWS * PIECES * (CLUSTER - 1); i += THREADS) {
            const int p = i % (ROWS * PIECES), to = i / (ROWS * PIECES);
            const u32 at = next + (u32)(p / PIECES * PITCH + rank * UNITS * IN_BYTES + p % PIECES * 16);
            shared_store16_of(at, to + (to >= rank), shared_load16(at));
        }
        READ_X(t + 1)
        if (CLUSTER > 1) cluster_arrive(), cluster_wait();
    }
}
