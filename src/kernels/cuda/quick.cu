/* SPDX-License-Identifier: Apache-2.0
   quick: exp, sigmoid, tanh and erf for values that are stored in 16 bits right after, in a fifth of the
   instructions of fn.h's, which are right to the last bit of an f32. Stands before every kernel with an
   epilogue; where results have 16 bits, the epilogue's functions are these. An activation's instructions
   come after the products, where nothing hides them: of a product of 6304 x 3072 x 768 with Gelu they were
   half of the time.

   Errors, relative to the result: exp 2^-17 where |x| < 88, sigmoid and 1 + tanh 2^-17, tanh 2^-20, erf
   2^-14. A half has 2^-12, bf16 2^-9. NaN stays NaN; beyond its range each is what it tends to: exactly 0 or
   1, so that a large negative number times it is 0.

   And of bytes' arithmetic what is exact, in fewer instructions, or in those that the multiprocessor does
   many of at a time. */
/* To the nearest whole number, exactly between two to the even one, where |x| < 2^22; of what is larger it
   stays far outside of a byte. */
DEVICE float quick_round(float x) { return (x + 12582912.0f) - 12582912.0f; }
/* x / by, rounded as a division is: the inverse is the nearest to 1 / by, one step makes the quotient that of
   a neighbour at most, the next one that of the division (Markstein). Neither operand is near f32's ends, but
   for an x that is so small that the quotient is nearer to 0 than to 1. */
DEVICE float quick_quotient(float x, float by, float inverse) {
    float q = x * inverse;
    q = fmaf(fmaf(-q, by, x), inverse, q);
    return fmaf(fmaf(-q, by, x), inverse, q);
}
DEVICE float quick_exp(float x) { return exp2_fast(x * 1.44269504f); }
DEVICE float quick_sigmoid(float x) { return inverse_fast(1.0f + exp2_fast(x * -1.44269504f)); }
/* Near 0 the odd series, as 1 - 2 / (e^2x + 1) has no digits left there. */
DEVICE float quick_tanh(float x) {
    const float size = fabsf(x), z = x * x;
    const float small =
        x * (1.0f + z * (-0.333333333f + z * (0.133333333f + z * (-0.0539682540f + z * 0.0218694885f))));
    const float large = 1.0f - 2.0f * inverse_fast(1.0f + exp2_fast(size * 2.88539008f));
    return size >= 0.3f ? copysignf(large, x) : small;
}
/* 1 + tanh(x), as Gelu has it: where x is far below 0, no digits are lost to the 1. */
DEVICE float quick_one_tanh(float x) { return 2.0f * inverse_fast(1.0f + exp2_fast(x * -2.88539008f)); }
/* A polynomial with the least relative error below 3.2, where 1 - erf is 6e-6: products cost less than the
   two special functions of 1 - erfc. */
DEVICE float quick_erf(float x) {
    const float size = fabsf(x), z = x * x;
    float p = -0x1.6d8218p-29f;
    p = p * z + 0x1.4c8844p-23f;
    p = p * z - 0x1.0d451cp-18f;
    p = p * z + 0x1.027bd8p-14f;
    p = p * z - 0x1.4bfb40p-11f;
    p = p * z + 0x1.327f5ep-8f;
    p = p * z - 0x1.aac2aap-6f;
    p = p * z + 0x1.cb84f0p-4f;
    p = p * z - 0x1.80f040p-2f;
    p = p * z + 0x1.20dcaep+0f;
    return size >= 3.2f ? copysignf(1.0f, x) : p * x;
}
#ifdef OUT_TYPE
#define RESULT OUT_TYPE
#else
#define RESULT IN_TYPE
#endif
#if RESULT == 1 || RESULT == 2 /* f16, bf16 */
#define hone_exp_f32 quick_exp
#define hone_sigmoid_f32 quick_sigmoid
#define hone_tanh_f32 quick_tanh
#define hone_erf_f32 quick_erf
#define hone_one_tanh_f32 quick_one_tanh
#else
#define hone_one_tanh_f32(x) (1.0f + hone_tanh_f32(x))
#endif
