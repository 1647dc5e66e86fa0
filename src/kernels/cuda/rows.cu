/* SPDX-License-Identifier: Apache-2.0
   rows: layer norm, RMS norm, softmax, log-softmax and reductions along rows of memory, with an element-wise
   program before and after.

   A row is read once and kept in registers: THREADS_A_ROW threads hold VECTORS vectors of WIDTH elements
   each. Rows that are longer than that (LONG) are read for every pass (RMS norm has two, softmax and layer
   norm three), then mostly from L2. Statistics are in f32; the variance is of differences from the mean.

   Filled in by device/cuda/rows.c: KIND (hone_cuda_row_kind), IN_TYPE and OUT_TYPE (hone_cuda_type: f16,
   bf16 or f32), WIDTH, VECTORS, THREADS_A_ROW, ROWS_A_BLOCK, BLOCKS (of them on a multiprocessor at least),
   LONG, BEFORE(v) and AFTER(v): expressions of v that may use row, column and a->… Weight and bias are f32,
   whatever rows are. */
#define THREADS (THREADS_A_ROW * ROWS_A_BLOCK)

#define F16_TYPE 1 /* as hone_cuda_type has them */
#define BF16_TYPE 2
#define F32_TYPE 3

#if IN_TYPE == F32_TYPE
typedef float in_store;
#define IN_F32(v) (v)
#else
typedef u16 in_store;
#if IN_TYPE == F16_TYPE
#define IN_F32(v) f16_f32(v)
#else
#define IN_F32(v) bf16_f32(v)
#endif
#endif
#if OUT_TYPE == F32_TYPE
typedef float out_store;
#define F32_OUT(v) (v)
#else
typedef u16 out_store;
#if OUT_TYPE == F16_TYPE
#define F32_OUT(v) f32_f16(v)
#else
#define F32_OUT(v) f32_bf16(v)
#endif
#endif

typedef union ALIGNED16 {
    in_store element[WIDTH];
    u32x4 all;
    u64 two;
    u32 one;
} in_vector;
typedef union ALIGNED16 {
    out_store element[WIDTH];
    u32x4 all[(WIDTH * sizeof(out_store) + 15) / 16];
    u64 two;
    u32 one;
} out_vector;

DEVICE in_vector load_vector(const in_store *p) {
    in_vector v;
    if (WIDTH * sizeof(in_store) == 16) v.all = load16_once(p);
    else if (WIDTH * sizeof(in_store) == 8) v.two = *(const u64 *)p;
    else if (WIDTH * sizeof(in_store) == 4) v.one = *(const u32 *)p;
    else v.element[0] = *p;
    return v;
}
DEVICE void store_vector(out_store *p, const out_vector *v) {
    if (WIDTH * sizeof(out_store) >= 16) {
        UNROLL for (int k = 0; k < (int)(WIDTH * sizeof(out_store) / 16); k++)
            store16((char *)p + 16 * k, v->all[k]);
    } else if (WIDTH * sizeof(out_store) == 8) *(u64 *)p = v->two;
    else if (WIDTH * sizeof(out_store) == 4) *(u32 *)p = v->one;
    else *p = v->element[0];
}

/* Over the threads of a row; all of them get the result. The order depends on THREADS_A_ROW only. */
DEVICE float combine(float a, float b, bool largest) { return largest ? (a > b || a != a ? a : b) : a + b; }
DEVICE float over_row(float v, bool largest) {
    UNROLL for (int step = (THREADS_A_ROW < 32 ? THREADS_A_ROW : 32) / 2; step > 0; step /= 2)
        v = combine(v, shuffle_xor(v, step), largest);
    if (THREADS_A_ROW > 32) {
        float *part = (float *)hone_shared + THREAD / THREADS_A_ROW * 32;
        const int warps = THREADS_A_ROW / 32, warp = THREAD % THREADS_A_ROW / 32;
        sync_block(); /* what the last reduction left has been read */
        if (THREAD % 32 == 0) part[warp] = v;
        sync_block();
        v = part[0];
        UNROLL for (int k = 1; k < warps; k++) v = combine(v, part[k], largest);
    }
    return v;
}

#define SOFTMAX 1 /* as hone_cuda_row_kind has them */
#define LOG_SOFTMAX 2
#define LAYER_NORM 3
#define RMS_NORM 4
#define ROW_SUM 5
#define ROW_MEAN 6
#define ROW_MAX 7
#define LOWEST BITS_F32(0xff800000u)
#define LARGEST (KIND == SOFTMAX || KIND == LOG_SOFTMAX || KIND == ROW_MAX)
#define LOG2_E 1.4426950408889634f

DEVICE float other_at(const hone_cuda_rows *a, i64 row, int column) {
    return IN_F32(((const in_store *)a->other)[row * a->pitch_other + column]);
}
/* Of weight or bias: f32, whatever rows are, and kept in L1, because all rows read them. */
DEVICE void constants(float to[WIDTH], u64 base, int column, float none) {
    UNROLL for (int e = 0; e < WIDTH; e++) to[e] = none;
    if (base) load_floats(to, (const float *)base + column, WIDTH);
}
DEVICE float before_at(const hone_cuda_rows *a, float v, i64 row, int column) {
    (void)a, (void)row, (void)column;
    return BEFORE(v);
}
DEVICE float after_at(const hone_cuda_rows *a, float v, i64 row, int column) {
    (void)a, (void)row, (void)column;
    return AFTER(v);
}

KERNEL(hone_rows, hone_cuda_rows, THREADS, BLOCKS) {
    /* A block's last rows may not be there: their threads, which meet the others in shuffles and barriers,
       work on the last one and store nothing. */
    const i64 place = (i64)BLOCK_X * ROWS_A_BLOCK + THREAD / THREADS_A_ROW;
    const bool mine = place < a->rows;
    const i64 row = mine ? place : a->rows - 1;
    const int lane = THREAD % THREADS_A_ROW, columns = a->columns;
    const in_store *x = (const in_store *)a->x + row * a->pitch_x;
    out_store *y = (out_store *)a->y + row * a->pitch_y;
    const int passes =
        LONG ? (columns + THREADS_A_ROW * VECTORS * WIDTH - 1) / (THREADS_A_ROW * VECTORS * WIDTH) : 1;
    float first = LARGEST ? LOWEST : 0, second = 0;
    in_vector v[VECTORS]; /* as they are stored: half the registers, so more rows are under way */
    launch_next();
    wait_previous();

#define COLUMN(p, q) ((((p)*VECTORS + (q)) * THREADS_A_ROW + lane) * WIDTH)
#define READ(p)                              \
    UNROLL for (int q = 0; q < VECTORS; q++) \
        if (COLUMN(p, q) < columns) v[q] = load_vector(x + COLUMN(p, q));
/* statement, for every element f of pass p that is there */
#define EACH(p, statement)                                                                    \
    UNROLL for (int q = 0; q < VECTORS; q++)                                                  \
        if (COLUMN(p, q) < columns) {                                                         \
            UNROLL for (int e = 0; e < WIDTH; e++) {                                          \
                const float f = before_at(a, IN_F32(v[q].element[e]), row, COLUMN(p, q) + e); \
                statement;                                                                    \
            }                                                                                 \
        }

    /* first: the largest, the sum, or the sum of squares */
    for (int p = 0; p < passes; p++) {
        READ(p)
        EACH(p, first = KIND == RMS_NORM ? first + f * f : combine(first, f, LARGEST))
    }
    first = over_row(first, LARGEST);
    if (KIND == LAYER_NORM || KIND == ROW_MEAN) first /= (float)columns;
    if (KIND == RMS_NORM) second = rsqrt_fast(first / (float)columns + a->epsilon);
    if (KIND == ROW_SUM || KIND == ROW_MEAN || KIND == ROW_MAX) {
        if (lane == 0 && mine) *y = F32_OUT(after_at(a, first, row, 0));
        return;
    }
    /* second: the sum of exponentials, or of squared differences */
    if (KIND == SOFTMAX || KIND == LOG_SOFTMAX || KIND == LAYER_NORM) {
        for (int p = 0; p < passes; p++) {
            if (LONG) READ(p)
            EACH(p,
                 second += KIND == LAYER_NORM ? (f - first) * (f - first) : exp2_fast((f - first) * LOG2_E))
        }
        second = over_row(second, false);
        if (KIND == LAYER_NORM) second = rsqrt_fast(second / (float)columns + a->epsilon);
        if (KIND == SOFTMAX) second = 1.0f / second;
        if (KIND == LOG_SOFTMAX) second = logf(second);
    }
    for (int p = 0; p < passes; p++) {
        if (LONG) READ(p)
        UNROLL for (int q = 0; q < VECTORS; q++) {
            const int c0 = COLUMN(p, q);
            if (c0 >= columns) continue;
            out_vector piece;
            float weight[WIDTH], bias[WIDTH];
            if (KIND == LAYER_NORM || KIND == RMS_NORM) constants(weight, a->weight, c0, 1.0f);
            if (KIND == LAYER_NORM) constants(bias, a->bias, c0, 0.0f);
            UNROLL for (int e = 0; e < WIDTH; e++) {
                float r = before_at(a, IN_F32(v[q].element[e]), row, c0 + e);
                if (KIND == SOFTMAX) r = exp2_fast((r - first) * LOG2_E) * second;
                if (KIND == LOG_SOFTMAX) r = r - first - second;
                if (KIND == LAYER_NORM) r = fmaf((r - first) * second, weight[e], bias[e]);
                if (KIND == RMS_NORM) r = r * second * weight[e];
                piece.element[e] = F32_OUT(after_at(a, r, row, c0 + e));
            }
            if (mine) store_vector(y + c0, &piece);
        }
    }
}
