/* SPDX-License-Identifier: Apache-2.0
   epilogue_f32__avx512: what follows a sum, at the CPU level in the name, and two rows in one pass, sixteen
   numbers at a time. */
#if defined(__x86_64__)
#define ISA avx512
#include "kernels/ref/epilogue_f32.inc"

hone_joint_fn hone_joint_f32__avx512, hone_joint_bytes__avx512;
/* Those of `lanes`, as widen sees them; `bytes` is a constant at every call. */
BYTES_INLINE __m512 seen(const hone_seen_row *x, bool bytes, int64_t i, __mmask16 lanes) {
    if (!bytes) return _mm512_maskz_loadu_ps(lanes, x->floats + i);
    const __m128i v = _mm_xor_si128(_mm_maskz_loadu_epi8(lanes, x->bytes + i), _mm_set1_epi8((char)x->over));
    return _mm512_mul_ps(_mm512_sub_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(v)), _mm512_set1_ps(x->zero)),
                         _mm512_set1_ps(x->scale));
}
static inline __mmask16 lanes_of(int64_t n) { return n < 16 ? (__mmask16)((1u << n) - 1) : (__mmask16)-1; }
static inline bool clamps(const hone_epilogue_row *r) {
    return !(r->lo == -__builtin_inff() && r->hi == __builtin_inff());
}

/* As in quanta: sixteen of which one is near the middle of two, or none at all, are divided. */
BYTES_INLINE void joint_bytes(const hone_epilogue_row *r, by_inverse by, const hone_seen_row *x,
                              const hone_seen_row *y, bool more, uint8_t *out, int64_t n) {
    const __m512 magic = _mm512_set1_ps(12582912.0f), inverse = _mm512_set1_ps(by.inverse),
                 low = _mm512_set1_ps(by.low), high = _mm512_set1_ps(by.high), far = _mm512_set1_ps(0.4999f);
    /* within the bytes' range it wraps to where it should */
    const __m128i zero = _mm_set1_epi8((char)(int32_t)r->zero);
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 lanes = lanes_of(n - i);
        const __m512 v = _mm512_add_ps(seen(x, true, i, lanes), seen(y, more, i, lanes));
        const __m512 t = _mm512_min_ps(_mm512_max_ps(_mm512_mul_ps(v, inverse), low), high);
        __m512 whole = _mm512_add_ps(t, magic);
        const __m512 off = _mm512_abs_ps(_mm512_sub_ps(t, _mm512_sub_ps(whole, magic)));
        const __mmask16 none = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
        if ((_mm512_cmp_ps_mask(off, far, _CMP_NLT_UQ) | none) & lanes) {
            const __m512 q = _mm512_mask_blend_ps(none, _mm512_div_ps(v, _mm512_set1_ps(r->scale)),
                                                  _mm512_set1_ps(-r->zero));
            whole = _mm512_add_ps(_mm512_min_ps(_mm512_max_ps(q, low), high), magic);
        }
        _mm_mask_storeu_epi8(out + i, lanes,
                             _mm_add_epi8(_mm512_cvtepi32_epi8(_mm512_castps_si512(whole)), zero));
    }
}
bool hone_joint_bytes__avx512(const hone_epilogue_row *row, const hone_seen_row *x, const hone_seen_row *y,
                              void *out, int64_t n) {
    const hone_epilogue_row r = *row;
    const hone_seen_row a = *x, b = *y;
    const by_inverse by = inverse_of(&r);
    if (!a.bytes || !(by.inverse > 0) || clamps(&r)) return false;
    if (b.bytes) joint_bytes(&r, by, &a, &b, true, out, n);
    else joint_bytes(&r, by, &a, &b, false, out, n);
    return true;
}
BYTES_INLINE void joint_floats(const hone_seen_row *x, const hone_seen_row *y, bool more, float *out,
                               int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 lanes = lanes_of(n - i);
        _mm512_mask_storeu_ps(out + i, lanes,
                              _mm512_add_ps(seen(x, true, i, lanes), seen(y, more, i, lanes)));
    }
}
bool hone_joint_f32__avx512(const hone_epilogue_row *r, const hone_seen_row *x, const hone_seen_row *y,
                            void *out, int64_t n) {
    const hone_seen_row a = *x, b = *y;
    if (!a.bytes || clamps(r)) return false;
    if (b.bytes) joint_floats(&a, &b, true, out, n);
    else joint_floats(&a, &b, false, out, n);
    return true;
}
#else
typedef int hone_epilogue_f32__avx512_not_here;
#endif
