/* SPDX-License-Identifier: Apache-2.0
   attention: softmax(scale Q Kᵀ + mask) V on the matrix unit of warps, without the scores ever being in
   memory. Each warp has 16 rows of Q; keys and values pass through shared memory 64 at a time, two tiles
   ahead, and the largest score and the sum of a row are carried along.

   A row is a query of one of the heads that share their keys and values, so with grouped queries a single
   token fills a tile's rows. Where rows are few and keys are many (decode), keys are split over `splits`
   blocks; the last to arrive joins the parts in their order.
   Keys beyond lengths[batch] are not read. Rows that may see no key at all are NaN, as softmax of nothing is.

   One instruction takes 32 bytes of a row whatever the type, so halves and tf32 are one loop. Only where the
   weights meet the values they differ: a sum does not mind the order of its terms, so a thread's weights of
   keys 2t and 2t + 1 stand in tf32 for those of t and t + 4, and the values' rows are read in that order.

   Filled in by the printer: IN_TYPE (f16, bf16, f32: multiplied as tf32), HEAD (head size rounded up to
   16), WARPS, CAUSAL, MASK (0: there is none; else its type, f16, bf16 or f32), SPLIT, ALIGNED (1:
   rows of Q, K and V are aligned to 16 bytes and the head size is a multiple of as many). */
#define F16_TYPE 1
#define F32_TYPE 3
#if IN_TYPE == F16_TYPE
typedef u16 store;
#define MMA mma_f16
#define TWO f32_f16x2
#elif IN_TYPE == F32_TYPE
typedef float store;
#define MMA mma_tf32
#else
typedef u16 store;
#define MMA mma_bf16
#define TWO f32_bf16x2
#endif
enum {
    THREADS = 32 * WARPS,
    BLOCK_Q = 16 * WARPS,
    BLOCK_K = 64,
    BYTES = sizeof(store),
    PER = 16 / BYTES,  /* of a piece of 16 bytes */
    STEP = 32 / BYTES, /* of an instruction */
    PANEL = 128 / BYTES,
    PANELS = (HEAD + PANEL - 1) / PANEL, /* of columns: rows of 128 bytes, swizzled */
    PIECES = PANELS * 8,                 /* of a row */
    TILE = PANELS * BLOCK_K * 128,
    STAGES = 2,
    COLUMNS = HEAD / 8
};
#define LOWEST BITS_F32(0xff800000u)
#if MASK == 1
#define MASK_AT(i) f16_f32(((const u16 *)a->mask)[i])
#elif MASK == 2
#define MASK_AT(i) bf16_f32(((const u16 *)a->mask)[i])
#else
#define MASK_AT(i) (((const float *)a->mask)[i])
#endif
DEVICE u32 place(int row, int column) {
    return (u32)(column / PANEL) * (BLOCK_K * 128) + swizzle((u32)(row * 128 + column % PANEL * BYTES));
}

/* 64 rows from `row` on of a matrix with `rows` rows; what is not there is zero. */
DEVICE void fill(u32 tile, const store *from, i64 pitch, int row, int rows, int head_size) {
    for (int t = THREAD; t < BLOCK_K * PIECES; t += THREADS) {
        const int r = t / PIECES, column = t % PIECES * PER, left = row + r < rows ? head_size - column : 0;
        const store *p = left > 0 ? from + (i64)(row + r) * pitch + column : from;
#if ALIGNED
        copy16(tile + place(r, column), p, left <= 0 ? 0 : left < PER ? left * BYTES : 16);
#else
        union ALIGNED16 {
            store one[PER];
            u32x4 all;
        } v;
        UNROLL for (int e = 0; e < PER; e++) v.one[e] = e < left ? p[e] : (store)0;
        shared_store16(tile + place(r, column), v.all);
#endif
    }
}
DEVICE float larger(float x, float y) { return x > y ? x : y; }

KERNEL(hone_attention, hone_cuda_attention, THREADS, 1) {
    const u32 shared = shared_at(hone_shared);
    const int lane = THREAD % 32, warp = THREAD / 32, group = a->heads / a->kv_heads,
              rows = a->queries * group;
    const int row0 = BLOCK_X * BLOCK_Q, kv_head = BLOCK_Y, batch = BLOCK_Z / a->splits,
              split = BLOCK_Z % a->splits;
    launch_next();
    wait_previous();
    int keys = a->keys;
    if (a->lengths) {
        const int length = ((const int *)a->lengths)[batch];
        keys = length < 0 ? 0 : length < keys ? length : keys;
    }
    const int behind = keys - a->queries; /* query q sees keys up to q + behind */
    int last_key = keys;
    if (CAUSAL) {
        const int last_row = row0 + BLOCK_Q < rows ? row0 + BLOCK_Q - 1 : rows - 1,
                  seen = last_row / group + behind + 1;
        last_key = seen < 0 ? 0 : seen < keys ? seen : keys;
    }
    const int tiles = (last_key + BLOCK_K - 1) / BLOCK_K, from = (int)((i64)tiles * split / a->splits),
              to = (int)((i64)tiles * (split + 1) / a->splits);
    const store *k = (const store *)a->k + batch * a->stride_k[0] + kv_head * a->stride_k[1];
    const store *v = (const store *)a->v + batch * a->stride_v[0] + kv_head * a->stride_v[1];

    /* Q into fragments, by way of the first tile's room */
    for (int t = THREAD; t < BLOCK_Q * PIECES; t += THREADS) {
        const int r = t / PIECES, column = t % PIECES * PER, row = row0 + r,
                  left = row < rows ? a->head_size - column : 0;
        const store *p = (const store *)a->q + batch * a->stride_q[0];
        if (left > 0)
            p += (kv_head * group + row % group) * a->stride_q[1] + row / group * a->stride_q[2] + column;
        union ALIGNED16 {
            store one[PER];
            u32x4 all;
        } x;
        if (ALIGNED && left >= PER) x.all = load16(p);
        else {
            UNROLL for (int e = 0; e < PER; e++) x.one[e] = e < left ? p[e] : (store)0;
        }
        shared_store16(shared + (u32)(r / BLOCK_K) * TILE + place(r % BLOCK_K, column), x.all);
    }
    sync_block();
    u32 query[HEAD / STEP][4];
    UNROLL for (int i = 0; i < HEAD / STEP; i++) {
        const int r = warp * 16 + lane % 16;
        matrix_load(query[i],
                    shared + (u32)(r / BLOCK_K) * TILE + place(r % BLOCK_K, i * STEP + lane / 16 * PER));
    }
    sync_block();

#define FILL(t)                                                                 \
    if ((t) < to) {                                                             \
        const u32 stage = shared + (u32)(((t)-from) % STAGES) * 2 * TILE;       \
        fill(stage, k, a->stride_k[2], (t)*BLOCK_K, keys, a->head_size);        \
        fill(stage + TILE, v, a->stride_v[2], (t)*BLOCK_K, keys, a->head_size); \
    }                                                                           \
    copy_commit();
    float out[COLUMNS][4], largest[2], total[2];
    UNROLL for (int j = 0; j < COLUMNS; j++)
        UNROLL for (int e = 0; e < 4; e++) out[j][e] = 0;
    UNROLL for (int h = 0; h < 2; h++) largest[h] = LOWEST, total[h] = 0;
    const float scale = a->scale * 1.4426950408889634f; /* powers of 2 instead of e */
    /* of this thread's two rows: where its mask begins, and the last key that it sees */
    i64 mask_at[2];
    int last_seen[2];
    UNROLL for (int h = 0; h < 2; h++) {
        const int row = row0 + warp * 16 + lane / 4 + 8 * h;
        mask_at[h] = batch * a->stride_mask[0] + (kv_head * group + row % group) * a->stride_mask[1] +
                     row / group * a->stride_mask[2];
        last_seen[h] = row / group + behind;
    }
    /* Where this thread's pieces of keys and values are within 8 or 16 rows of 128 bytes, by 32 of them: what
       is behind that is a number in the instruction, and not an address of its own. */
    u32 key_at[4], value_at[2][4];
    UNROLL for (int i = 0; i < 4; i++) {
        key_at[i] = swizzle((u32)((lane / 16 * 8 + lane % 8) * 128 + i * 32 + lane / 8 % 2 * 16));
#if IN_TYPE == F32_TYPE
        UNROLL for (int e = 0; e < 2; e++) value_at[e][i] =
            swizzle((u32)((lane % 4 * 2 + e) * 128 + i * 32 + lane / 4 * 4));
#else
        value_at[0][i] = swizzle((u32)(lane % 16 * 128 + i * 32 + lane / 16 * 16)), value_at[1][i] = 0;
#endif
    }
    FILL(from)
    for (int t = from; t < to; t++) {
        FILL(t + 1)
        copy_wait(1);
        sync_block();
        const u32 tile_k = shared + (u32)((t - from) % STAGES) * 2 * TILE, tile_v = tile_k + TILE;
        float score[BLOCK_K / 8][4];
        UNROLL for (int j = 0; j < BLOCK_K / 8; j++)
            UNROLL for (int e = 0; e < 4; e++) score[j][e] = 0;
        UNROLL for (int i = 0; i < HEAD / STEP; i++)
            UNROLL for (int j = 0; j < BLOCK_K / 16; j++) {
                u32 key[4];
                matrix_load(key, tile_k + key_at[i % 4] + (u32)(i / 4 * (BLOCK_K * 128) + j * 16 * 128));
                MMA(score[2 * j], query[i], key), MMA(score[2 * j + 1], query[i], key + 2);
            }
        float was[2] = {largest[0], largest[1]};
        const bool edge =
            (t + 1) * BLOCK_K > keys || (CAUSAL && (t + 1) * BLOCK_K > (row0 + warp * 16) / group + behind);
        UNROLL for (int j = 0; j < BLOCK_K / 8; j++)
            UNROLL for (int e = 0; e < 4; e++) {
                const int row = row0 + warp * 16 + lane / 4 + e / 2 * 8,
                          key = t * BLOCK_K + j * 8 + lane % 4 * 2 + e % 2;
                float s = score[j][e] * scale;
                if (MASK && row < rows && key < keys)
                    s += MASK_AT(mask_at[e / 2] + key) * 1.4426950408889634f;
                if (edge && (key >= keys || (CAUSAL && key > last_seen[e / 2]))) s = LOWEST;
                score[j][e] = s;
                largest[e / 2] = larger(s, largest[e / 2]);
            }
        UNROLL for (int h = 0; h < 2; h++) {
            largest[h] = larger(largest[h], shuffle_xor(largest[h], 1));
            largest[h] = larger(largest[h], shuffle_xor(largest[h], 2));
            const float less = largest[h] == LOWEST ? 0.0f : exp2_fast(was[h] - largest[h]);
            total[h] *= less;
            UNROLL for (int j = 0; j < COLUMNS; j++) out[j][2 * h] *= less, out[j][2 * h + 1] *= less;
        }
        UNROLL for (int j = 0; j < BLOCK_K / 8; j++)
            UNROLL for (int e = 0; e < 4; e++) {
                score[j][e] = exp2_fast(score[j][e] - (largest[e / 2] == LOWEST ? 0.0f : largest[e / 2]));
                total[e / 2] += score[j][e];
            }
#if IN_TYPE == F32_TYPE
        UNROLL for (int i = 0; i < BLOCK_K / 8; i++) {
            u32 weight[4]; /* to the nearest tf32 */
            UNROLL for (int e = 0; e < 4; e++) weight[e] = F32_BITS(score[i][e % 2 * 2 + e / 2]) + 0x1000u;
            UNROLL for (int j = 0; j < COLUMNS; j++) {
                u32 value[2];
                UNROLL for (int e = 0; e < 2; e++)
                    value[e] = shared_load4(tile_v + value_at[e][j % 4] +
                                            (u32)(j / 4 * (BLOCK_K * 128) + i * 8 * 128));
                MMA(out[j], weight, value);
            }
        }
#else
        UNROLL for (int i = 0; i < BLOCK_K / 16; i++) {
            const u32 weight[4] = {
                TWO(score[2 * i][0], score[2 * i][1]), TWO(score[2 * i][2], score[2 * i][3]),
                TWO(score[2 * i + 1][0], score[2 * i + 1][1]), TWO(score[2 * i + 1][2], score[2 * i + 1][3])};
            UNROLL for (int j = 0; j < HEAD / 16; j++) {
                u32 value[4];
                matrix_load_across(value, tile_v + value_at[0][j % 4] +
                                              (u32)(j / 4 * (BLOCK_K * 128) + i * 16 * 128));
                MMA(out[2 * j], weight, value), MMA(out[2 * j + 1], weight, value + 2);
            }
        }
#endif
        sync_block(); /* the next tile but one may come here */
    }
    UNROLL for (int h = 0; h < 2; h++) {
        total[h] += shuffle_xor(total[h], 1);
        total[h] += shuffle_xor(total[h], 2);
    }
#if SPLIT
    if (a->splits > 1) { /* out, largest, total of each part; joined by the last to come, in order */
        const i64 id = ((i64)batch * a->kv_heads + kv_head) * ((rows + BLOCK_Q - 1) / BLOCK_Q) + BLOCK_X;
        enum { NUMBERS = COLUMNS * 4 + 4, PART = NUMBERS * THREADS };
        volatile float *part = (volatile float *)a->workspace + id * a->splits * PART + THREAD;
        volatile float *mine = part + (i64)split * PART;
        UNROLL for (int j = 0; j < COLUMNS; j++)
            UNROLL for (int e = 0; e < 4; e++) mine[(j * 4 + e) * THREADS] = out[j][e];
        UNROLL for (int h = 0; h < 2; h++)
            mine[(COLUMNS * 4 + h) * THREADS] = largest[h], mine[(COLUMNS * 4 + 2 + h) * THREADS] = total[h];
        fence_gpu();
        sync_block();
        u32 *count = (u32 *)a->counters + id;
        if (THREAD == 0) *(u32 *)hone_shared = atomic_count(count);
        sync_block();
        if (*(const volatile u32 *)hone_shared != (u32)a->splits - 1) return;
        if (THREAD == 0) *count = 0;
        fence_gpu();
        UNROLL for (int h = 0; h < 2; h++) largest[h] = LOWEST, total[h] = 0;
        for (int s = 0; s < a->splits; s++)
            UNROLL for (int h = 0; h < 2; h++)
                largest[h] = larger(largest[h], part[(i64)s * PART + (COLUMNS * 4 + h) * THREADS]);
        UNROLL for (int j = 0; j < COLUMNS; j++)
            UNROLL for (int e = 0; e < 4; e++) out[j][e] = 0;
        for (int s = 0; s < a->splits; s++)
            UNROLL for (int h = 0; h < 2; h++) {
                const float his = part[(i64)s * PART + (COLUMNS * 4 + h) * THREADS];
                const float less = largest[h] == LOWEST ? 0.0f : exp2_fast(his - largest[h]);
                total[h] += part[(i64)s * PART + (COLUMNS * 4 + 2 + h) * THREADS] * less;
                UNROLL for (int j = 0; j < COLUMNS; j++)
                    UNROLL for (int e = 0; e < 2; e++)
                        out[j][2 * h + e] += part[(i64)s * PART + (j * 4 + 2 * h + e) * THREADS] * less;
            }
    }
#endif
    UNROLL for (int h = 0; h < 2; h++) {
        const int row = row0 + warp * 16 + lane / 4 + 8 * h;
        const float part = 1.0f / total[h];
        if (row < rows) {
            store *y = (store *)a->y + batch * a->stride_y[0] +
                       (kv_head * group + row % group) * a->stride_y[1] + row / group * a->stride_y[2];
            UNROLL for (int j = 0; j < COLUMNS; j++) {
                const int column = j * 8 + lane % 4 * 2;
                const float first = out[j][2 * h] * part, second = out[j][2 * h + 1] * part;
#if IN_TYPE == F32_TYPE
                const u64 two = (u64)F32_BITS(second) << 32 | F32_BITS(first);
                if (ALIGNED && column < a->head_size) *(u64 *)(y + column) = two;
                else {
                    if (column < a->head_size) y[column] = first;
                    if (column + 1 < a->head_size) y[column + 1] = second;
                }
#else
                const u32 two = TWO(first, second);
                if (ALIGNED && column < a->head_size) *(u32 *)(y + column) = two;
                else {
                    if (column < a->head_size) y[column] = (u16)two;
                    if (column + 1 < a->head_size) y[column + 1] = (u16)(two >> 16);
                }
#endif
            }
        }
    }
}
