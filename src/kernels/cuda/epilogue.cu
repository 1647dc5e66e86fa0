/* SPDX-License-Identifier: Apache-2.0
   epilogue: what happens to the sums of a product before they are stored, and how operands are told apart by
   type. Stands before the text of every contraction.

   Filled in by the printer: IN_TYPE (of both factors; U8: of A, B has signed bytes), OUT_TYPE, EPILOGUE(v):
   an expression of the sum v, a float, or an int where factors are 8 bits, that may use batch, m, n, bias,
   whole, residual, column_at, beside_at and a->…; USES_BIAS, USES_WHOLE, USES_RESIDUAL: whether it does. A
   residual of bytes comes as byte_up makes it: 2^23 + the byte, read without a sign. BESIDE_TYPE: of a
   residual that is stored otherwise than C is; where there is none, nothing. */
#define F16_TYPE 1
#define BF16_TYPE 2
#define F32_TYPE 3
#define S8_TYPE 4
#define S32_TYPE 5
#define U8_TYPE 6

#if IN_TYPE == F32_TYPE
enum { IN_BYTES = 4 };
typedef float in_store;
#define MMA mma_tf32
#elif IN_TYPE == S8_TYPE
enum { IN_BYTES = 1 };
typedef i8 in_store;
#define MMA mma_s8
#elif IN_TYPE == U8_TYPE
enum { IN_BYTES = 1 };
typedef u8 in_store;
#define MMA mma_u8s8
#define MMA_TURNED mma_s8u8 /* rows of B are the unit's rows */
#else
enum { IN_BYTES = 2 };
typedef u16 in_store;
#if IN_TYPE == F16_TYPE
#define MMA mma_f16
#else
#define MMA mma_bf16
#endif
#endif
#ifndef MMA_TURNED
#define MMA_TURNED MMA
#endif
#if IN_TYPE == S8_TYPE || IN_TYPE == U8_TYPE
typedef int sum_type;
#else
typedef float sum_type;
#endif
#if OUT_TYPE == F16_TYPE
typedef u16 out_store;
#define OUT_F32(v) f16_f32(v)
#elif OUT_TYPE == BF16_TYPE
typedef u16 out_store;
#define OUT_F32(v) bf16_f32(v)
#elif OUT_TYPE == S8_TYPE
typedef i8 out_store;
#define OUT_F32(v) byte_up((u8)(v))
#elif OUT_TYPE == U8_TYPE
typedef unsigned char out_store;
#define OUT_F32(v) byte_up(v)
#elif OUT_TYPE == S32_TYPE
typedef int out_store;
#define OUT_F32(v) ((float)(v))
#else
typedef float out_store;
#define OUT_F32(v) (v)
#endif
enum { OUT_BYTES = sizeof(out_store) };

DEVICE out_store narrow(float v) {
#if OUT_TYPE == F16_TYPE
    return f32_f16(v);
#elif OUT_TYPE == BF16_TYPE
    return f32_bf16(v);
#elif OUT_TYPE == S8_TYPE /* the last bits of such a sum are the number, rounded */
    return (i8)F32_BITS(fminf(fmaxf(v, -128.0f), 127.0f) + 12582912.0f);
#elif OUT_TYPE == U8_TYPE
    return (u8)F32_BITS(fminf(fmaxf(v, 0.0f), 255.0f) + 12582912.0f);
#else
    return (out_store)v;
#endif
}
/* What an epilogue reads beside the sum, for places that may lie behind the matrix's edge: their value is not
   stored. */
DEVICE float bias_at(const hone_cuda_contract *a, int n) {
    if (!USES_BIAS) return 0;
    return ((const float *)a->bias)[n < a->n ? n : a->n - 1];
}
DEVICE int whole_at(const hone_cuda_contract *a, int n) {
    if (!USES_WHOLE) return 0;
    return ((const int *)a->whole)[n < a->n ? n : a->n - 1];
}
DEVICE float residual_at(const hone_cuda_contract *a, int batch, int m, int n) {
    if (!USES_RESIDUAL) return 0;
    m = m < a->m ? m : a->m - 1, n = n < a->n ? n : a->n - 1;
    return OUT_F32(
        ((const out_store *)a->residual)[batch * a->batch_residual + (i64)m * a->pitch_residual + n]);
}
/* Behind the numbers that stand for the bias: more of them. */
DEVICE float column_at(const hone_cuda_contract *a, int n, int from) {
    return ((const float *)a->bias)[from + (n < a->n ? n : a->n - 1)];
}
#ifdef BESIDE_TYPE
DEVICE float beside_at(const hone_cuda_contract *a, int batch, int m, int n) {
    m = m < a->m ? m : a->m - 1, n = n < a->n ? n : a->n - 1;
    const i64 at = batch * a->batch_residual + (i64)m * a->pitch_residual + n;
#if BESIDE_TYPE == F16_TYPE
    return f16_f32(((const u16 *)a->residual)[at]);
#elif BESIDE_TYPE == BF16_TYPE
    return bf16_f32(((const u16 *)a->residual)[at]);
#elif BESIDE_TYPE == S8_TYPE
    return (float)((const i8 *)a->residual)[at];
#elif BESIDE_TYPE == U8_TYPE
    return (float)((const u8 *)a->residual)[at];
#else
    return ((const float *)a->residual)[at];
#endif
}
#endif
/* Two neighbours of a row, as they are stored: by one load, where those lie together in memory as well. */
typedef union {
    out_store one[2];
    u16 small;
    u32 word;
    u64 words;
} out_pair;
DEVICE out_pair pair_at(const out_store *at) {
    out_pair v;
    if (OUT_BYTES == 1) v.small = *(const u16 *)at;
    else if (OUT_BYTES == 2) v.word = *(const u32 *)at;
    else v.words = *(const u64 *)at;
    return v;
}
DEVICE out_pair shared_pair(u32 at) {
    out_pair v;
    if (OUT_BYTES == 1) v.small = shared_load2(at);
    else if (OUT_BYTES == 2) v.word = shared_load4(at);
    else v.words = shared_load8(at);
    return v;
}
DEVICE float pair_f32(out_pair v, int which) {
#if OUT_TYPE == S8_TYPE || OUT_TYPE == U8_TYPE
    return BITS_F32(pick_bytes(v.small, 0x4b000000u, which ? 0x7441u : 0x7440u)); /* as byte_up */
#else
    return OUT_F32(v.one[which]);
#endif
}
DEVICE const out_store *residual_row(const hone_cuda_contract *a, int batch, int m) {
    if (!USES_RESIDUAL) return 0;
    m = m < a->m ? m : a->m - 1;
    return (const out_store *)a->residual + batch * a->batch_residual + (i64)m * a->pitch_residual;
}
DEVICE out_pair residual_pair(const hone_cuda_contract *a, const out_store *row, int n) {
    out_pair v;
    UNROLL for (int e = 0; e < 2; e++) v.one[e] = row[n + e < a->n ? n + e : a->n - 1];
    return v;
}
DEVICE out_store finish(const hone_cuda_contract *a, sum_type sum, float bias, int whole, float residual,
                        int batch, int m, int n) {
    (void)a, (void)batch, (void)m, (void)n, (void)bias, (void)whole, (void)residual;
#if OUT_TYPE == S32_TYPE /* integers leave as they are: a float would lose some */
    return EPILOGUE(sum);
#else
    return narrow(EPILOGUE(sum));
#endif
}

/* Tiles in an order in which neighbours share rows and columns in L2: GROUP rows of tiles at a time, column
   by column. */
enum { GROUP = HONE_CUDA_GROUP };
DEVICE void tile_of(int t, int tiles_m, int tiles_n, int *tm, int *tn) {
    const int group = t / (GROUP * tiles_n), first = group * GROUP,
              high = tiles_m - first < GROUP ? tiles_m - first : GROUP;
    const int within = t - group * GROUP * tiles_n;
    *tm = first + within % high, *tn = within / high;
}
