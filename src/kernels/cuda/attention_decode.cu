/* SPDX-License-Identifier: Apache-2.0
   attention_decode: softmax(scale Q Kᵀ + mask) V for few queries over many keys, at the speed of memory. What
   attention.cu computes, for rows of Q, K, V and y that are aligned to 16 bytes and head sizes that are
   multiples of 8.

   A row is a query of one of the heads that share their keys and values; a block has up to 16 of them. Its
   warps take 16 keys each in turn and keep a largest score, a sum and an output of their own; at the end
   they are joined through shared memory, in the order of the warps. Where that are too few blocks to fill
   the GPU, keys are split over `splits` blocks; the last to arrive joins their parts, in their order.

   Keys and values go from memory to registers, 16 bytes a load, and straight into the matrix unit. A
   product's terms may come in any order that both factors share, so 16 bytes of a key are two steps' terms;
   and the columns of a result may lie in any order, so 16 bytes of two values, interleaved, are a pair's
   share of eight products. The next keys are loaded while weights are computed, the next values after them.

   Filled in by the printer: IN_TYPE (f16, bf16), HEAD (head size rounded up to 64), WARPS, BLOCKS (on a
   multiprocessor at least), CAUSAL, MASK (0: there is none; else its type), FULL (1: the head size is HEAD).
   Shared memory: WARPS * 16 * (HEAD + 2) floats. */
#define F16_TYPE 1
#if IN_TYPE == F16_TYPE
#define MMA mma_f16
#define TWO f32_f16x2
#else
#define MMA mma_bf16
#define TWO f32_bf16x2
#endif
enum {
    THREADS = 32 * WARPS,
    ROWS = 16,
    STEP = 16,                   /* keys that a warp takes at a time */
    WIDE = HEAD / 32,            /* pieces of 16 bytes that a thread has of a key */
    HIGH = HEAD / 64,            /* and of a value */
    NUMBERS = ROWS * (HEAD + 2), /* of a part: outputs, largest scores, sums */
    TOGETHER = 8                 /* parts that a thread joins at a time */
};
#define LOWEST BITS_F32(0xff800000u)
#if MASK == 1
#define MASK_AT(i) f16_f32(((const u16 *)a->mask)[i])
#elif MASK == 2
#define MASK_AT(i) bf16_f32(((const u16 *)a->mask)[i])
#else
#define MASK_AT(i) (((const float *)a->mask)[i])
#endif
typedef union {
    u32x4 all;
    u32 word[4];
} piece;
typedef union {
    u32x4 all;
    float one[4];
} four;
DEVICE float larger(float x, float y) { return x > y ? x : y; }
DEVICE float shrink(float his, float most) { return most == LOWEST ? 0.0f : exp2_fast(his - most); }
DEVICE piece load_or_zero(const u16 *p, bool there) {
    piece v;
    v.all.x = v.all.y = v.all.z = v.all.w = 0;
    if (there) v.all = load16_once(p);
    return v;
}

KERNEL(hone_attention, hone_cuda_attention, THREADS, BLOCKS) {
    const int lane = THREAD % 32, warp = THREAD / 32, across = lane / 4, along = lane % 4;
    const int group = a->heads / a->kv_heads, rows = a->queries * group, row0 = BLOCK_X * ROWS,
              high = rows - row0 < ROWS ? rows - row0 : ROWS;
    const int kv_head = BLOCK_Y, batch = BLOCK_Z / a->splits, split = BLOCK_Z % a->splits;
    launch_next();
    wait_previous();
    int keys = a->keys;
    if (a->lengths) {
        const int length = ((const int *)a->lengths)[batch];
        keys = length < 0 ? 0 : length < keys ? length : keys;
    }
    const int behind = keys - a->queries; /* query q sees keys up to q + behind */
    /* the first ones have one more */
    const int steps = (keys + STEP - 1) / STEP, each = steps / a->splits, more = steps - each * a->splits;
    const int from = split * each + (split < more ? split : more), to = from + each + (split < more);
    const u16 *k = (const u16 *)a->k + batch * a->stride_k[0] + kv_head * a->stride_k[1] + along * 8;
    const u16 *v = (const u16 *)a->v + batch * a->stride_v[0] + kv_head * a->stride_v[1] + across * 8;

    /* a thread has terms 8 along ... of its keys: of 8, the first four are one step's, the others the next
       one's. Rows behind the last are the last: their scores are not seen, and their values are zeros before
       they are used. */
    piece key[2][WIDE], value[4][HIGH];
#define ROW(p, stride, r) ((p) + (i64)((r) < keys ? (r) : keys - 1) * (stride))
#define LOAD_KEYS(t)                                                                         \
    UNROLL for (int n = 0; n < 2; n++) {                                                     \
        const u16 *p = ROW(k, a->stride_k[2], (t)*STEP + n * 8 + across);                    \
        UNROLL for (int i = 0; i < WIDE; i++)                                                \
            key[n][i] = load_or_zero(p + i * 32, FULL || i * 32 + along * 8 < a->head_size); \
    }
#define LOAD_VALUES(t)                                                                          \
    UNROLL for (int e = 0; e < 4; e++) {                                                        \
        const u16 *p = ROW(v, a->stride_v[2], (t)*STEP + e / 2 * 8 + along * 2 + e % 2);        \
        UNROLL for (int i = 0; i < HIGH; i++)                                                   \
            value[e][i] = load_or_zero(p + i * 64, FULL || i * 64 + across * 8 < a->head_size); \
    }
    if (from + warp < to) {
        LOAD_KEYS(from + warp)
        LOAD_VALUES(from + warp)
    }
    u32 query[HEAD / 16][4];
    UNROLL for (int h = 0; h < 2; h++) {
        /* rows that are not there are not stored either */
        const int there = row0 + across + 8 * h, row = there < rows ? there : rows - 1;
        const u16 *q = (const u16 *)a->q + batch * a->stride_q[0] + along * 8 +
                       (kv_head * group + row % group) * a->stride_q[1] + row / group * a->stride_q[2];
        UNROLL for (int i = 0; i < WIDE; i++) {
            const piece x = load_or_zero(q + i * 32, FULL || i * 32 + along * 8 < a->head_size);
            query[2 * i][h] = x.word[0], query[2 * i][2 + h] = x.word[1];
            query[2 * i + 1][h] = x.word[2], query[2 * i + 1][2 + h] = x.word[3];
        }
    }
    float out[HEAD / 8][4], largest[2], total[2];
    UNROLL for (int j = 0; j < HEAD / 8; j++)
        UNROLL for (int e = 0; e < 4; e++) out[j][e] = 0;
    UNROLL for (int h = 0; h < 2; h++) largest[h] = LOWEST, total[h] = 0;
    const float scale = a->scale * 1.4426950408889634f; /* powers of 2 instead of e */
    for (int t = from + warp; t < to; t += WARPS) {
        float score[2][4];
        UNROLL for (int n = 0; n < 2; n++) {
            UNROLL for (int e = 0; e < 4; e++) score[n][e] = 0;
            UNROLL for (int i = 0; i < WIDE; i++)
                MMA(score[n], query[2 * i], key[n][i].word),
                    MMA(score[n], query[2 * i + 1], key[n][i].word + 2);
        }
        if (t + WARPS < to) { LOAD_KEYS(t + WARPS) }
        const float was[2] = {largest[0], largest[1]};
        const bool edge = (t + 1) * STEP > keys || (CAUSAL && (t + 1) * STEP > row0 / group + behind);
        UNROLL for (int n = 0; n < 2; n++)
            UNROLL for (int e = 0; e < 4; e++) {
                const int row = row0 + across + e / 2 * 8, at = t * STEP + n * 8 + along * 2 + e % 2;
                float s = score[n][e] * scale;
                if (MASK && row < rows && at < keys)
                    s += MASK_AT(batch * a->stride_mask[0] +
                                 (kv_head * group + row % group) * a->stride_mask[1] +
                                 row / group * a->stride_mask[2] + at) *
                         1.4426950408889634f;
                if (edge && (at >= keys || (CAUSAL && at > row / group + behind))) s = LOWEST;
                score[n][e] = s;
                largest[e / 2] = larger(s, largest[e / 2]);
            }
        UNROLL for (int h = 0; h < 2; h++) {
            largest[h] = larger(largest[h], shuffle_xor(largest[h], 1));
            largest[h] = larger(largest[h], shuffle_xor(largest[h], 2));
            const float less = shrink(was[h], largest[h]);
            total[h] *= less;
            UNROLL for (int j = 0; j < HEAD / 8; j++) out[j][2 * h] *= less, out[j][2 * h + 1] *= less;
        }
        UNROLL for (int n = 0; n < 2; n++)
            UNROLL for (int e = 0; e < 4; e++) {
                score[n][e] = exp2_fast(score[n][e] - (largest[e / 2] == LOWEST ? 0.0f : largest[e / 2]));
                total[e / 2] += score[n][e];
            }
        const u32 weight[4] = {TWO(score[0][0], score[0][1]), TWO(score[0][2], score[0][3]),
                               TWO(score[1][0], score[1][1]), TWO(score[1][2], score[1][3])};
        if ((t + 1) * STEP > keys) {
            UNROLL for (int e = 0; e < 4; e++)
                if (t * STEP + e / 2 * 8 + along * 2 + e % 2 >= keys)
                    UNROLL for (int i = 0; i < HIGH; i++)
                        UNROLL for (int j = 0; j < 4; j++) value[e][i].word[j] = 0;
        }
        UNROLL for (int i = 0; i < HIGH; i++)
            UNROLL for (int j = 0; j < 8; j++) { /* halves j of two neighbouring keys, twice */
                u32 pair[2];
                UNROLL for (int h = 0; h < 2; h++) {
                    const u32 x = value[2 * h][i].word[j / 2], y = value[2 * h + 1][i].word[j / 2];
                    pair[h] = j % 2 ? x >> 16 | (y & 0xffff0000u) : (x & 0xffffu) | y << 16;
                }
                MMA(out[i * 8 + j], weight, pair);
            }
        if (t + WARPS < to) { LOAD_VALUES(t + WARPS) }
    }

    /* warps into one: thread (across, along) has of rows across and across + 8 columns 8 n ... 8 n + 7 of
       every 64, n = 2 along and 2 along + 1 */
    float *parts = (float *)hone_shared, *mosts = parts + WARPS * ROWS * HEAD, *totals = mosts + WARPS * ROWS;
    UNROLL for (int h = 0; h < 2; h++) {
        const int r = across + 8 * h;
        total[h] += shuffle_xor(total[h], 1);
        total[h] += shuffle_xor(total[h], 2);
        if (r < high) {
            UNROLL for (int i = 0; i < HIGH; i++)
                UNROLL for (int q = 0; q < 4; q++) {
                    four x;
                    UNROLL for (int e = 0; e < 4; e++) x.one[e] = out[i * 8 + q % 2 * 4 + e][2 * h + q / 2];
                    shared_store16(shared_at(parts + (warp * ROWS + r) * HEAD + i * 64 +
                                             (2 * along + q / 2) * 8 + q % 2 * 4),
                                   x.all);
                }
            if (along == 0) mosts[warp * ROWS + r] = largest[h], totals[warp * ROWS + r] = total[h];
        }
    }
    sync_block();
    const i64 id = ((i64)batch * a->kv_heads + kv_head) * ((rows + ROWS - 1) / ROWS) + BLOCK_X;
    float *record = (float *)a->workspace + (id * a->splits + split) * NUMBERS;
    for (int p = THREAD; p < high * (HEAD / 4); p += THREADS) {
        const int r = p / (HEAD / 4), column = p % (HEAD / 4) * 4;
        four sum;
        float most = LOWEST, all = 0;
        UNROLL for (int e = 0; e < 4; e++) sum.one[e] = 0;
        UNROLL for (int w = 0; w < WARPS; w++) most = larger(most, mosts[w * ROWS + r]);
        UNROLL for (int w = 0; w < WARPS; w++) {
            const float less = shrink(mosts[w * ROWS + r], most);
            four x;
            x.all = shared_load16(shared_at(parts + (w * ROWS + r) * HEAD + column));
            all += totals[w * ROWS + r] * less;
            UNROLL for (int e = 0; e < 4; e++) sum.one[e] += x.one[e] * less;
        }
        if (a->splits > 1) {
            store16(record + r * HEAD + column, sum.all);
            if (column == 0) record[ROWS * HEAD + r] = most, record[ROWS * (HEAD + 1) + r] = all;
        } else if (column < a->head_size) {
            const int row = row0 + r;
            u32 *y = (u32 *)((u16 *)a->y + batch * a->stride_y[0] +
                             (kv_head * group + row % group) * a->stride_y[1] + row / group * a->stride_y[2] +
                             column);
            const float part = 1.0f / all;
            y[0] = TWO(sum.one[0] * part, sum.one[1] * part),
            y[1] = TWO(sum.one[2] * part, sum.one[3] * part);
        }
    }
    if (a->splits == 1) return;

    /* blocks into one, by the last of them to come; the count orders what blocks wrote before it */
    sync_block();
    u32 *count = (u32 *)a->counters + id;
    if (THREAD == 0) *(u32 *)hone_shared = atomic_count(count);
    sync_block();
    if (*(const volatile u32 *)hone_shared != (u32)a->splits - 1) return;
    if (THREAD == 0) *count = 0;
    const float *first = (const float *)a->workspace + id * a->splits * NUMBERS;
    for (int p = THREAD; p < high * (HEAD / 4); p += THREADS) {
        const int r = p / (HEAD / 4), column = p % (HEAD / 4) * 4, row = row0 + r;
        if (column >= a->head_size) continue;
        four sum;
        float most = LOWEST, all = 0;
        UNROLL for (int e = 0; e < 4; e++) sum.one[e] = 0;
        for (int s0 = 0; s0 < a->splits; s0 += TOGETHER) { /* all are asked for before the first is needed */
            four x[TOGETHER];
            float his[TOGETHER], his_total[TOGETHER];
            const float was = most;
            UNROLL for (int s = 0; s < TOGETHER; s++) {
                const float *from_him = first + (i64)(s0 + s) * NUMBERS;
                his[s] = LOWEST, his_total[s] = 0;
                if (s0 + s < a->splits) {
                    x[s].all = load16_l2(from_him + r * HEAD + column);
                    his[s] = *(const volatile float *)(from_him + ROWS * HEAD + r),
                    his_total[s] = *(const volatile float *)(from_him + ROWS * (HEAD + 1) + r);
                }
            }
            UNROLL for (int s = 0; s < TOGETHER; s++) most = larger(most, his[s]);
            const float before = shrink(was, most);
            all *= before;
            UNROLL for (int e = 0; e < 4; e++) sum.one[e] *= before;
            UNROLL for (int s = 0; s < TOGETHER; s++)
                if (s0 + s < a->splits) {
                    const float less = shrink(his[s], most);
                    all += his_total[s] * less;
                    UNROLL for (int e = 0; e < 4; e++) sum.one[e] += x[s].one[e] * less;
                }
        }
        u32 *y =
            (u32 *)((u16 *)a->y + batch * a->stride_y[0] + (kv_head * group + row % group) * a->stride_y[1] +
                    row / group * a->stride_y[2] + column);
        const float part = 1.0f / all;
        y[0] = TWO(sum.one[0] * part, sum.one[1] * part), y[1] = TWO(sum.one[2] * part, sum.one[3] * part);
    }
}
