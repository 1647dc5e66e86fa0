/* SPDX-License-Identifier: Apache-2.0
   gemm_bf16, AMX: tdpbf16ps multiplies a tile of 16 rows by 32 of A with one of 32 by 16 of B. Eight tile
   registers, each 16 rows of 64 bytes:

              b4  b5           32 rows and 32 columns of sums; a step of 32 values of K is four loads and four
                               products.
        a6    c0  c1           B's pairs lie as the instruction takes them, A as rows.
        a7    c2  c3

   Empty on other architectures. */
#if defined(__x86_64__)
#include "base/thread.h"
#include "kernels/gemm_half.h"
#include "kernels/x86/amx.h"

#include "kernels/x86/narrow_bf16.inc"

enum {
    NR = 32,
    DEEP = 32,
    ROWS = 16,
    FAR = 192 /* of K: 12 KB */,
    LONG = 1024 /* no recurrence's, whose weights stay near */,
    SOON = 256 /* 16 KB ahead */
};
/* A quarter of what is two steps further in B, to be in L1 then. A core that has its cache and its unit for
   itself does not need it; beside a neighbour that uses them networks take 4 to 13 % less so, and with 16
   threads up to 6 % (bench/RESULTS.md). All at one place it wins less than half of that. It is for panels
   that L1 does not keep (`far`); one that few rows meet once comes faster without. */
static inline __attribute__((always_inline)) void ask(const uint16_t *b, int quarter) {
    const char *from = (const char *)(b + 2 * DEEP * NR) + quarter * 512;
    for (int i = 0; i < 512; i += 64) _mm_prefetch(from + i, _MM_HINT_T0);
}
/* `two` blocks of rows, or one: constants at every call, as is `far`, since registers are numbers in the
   instruction. next: what will be wanted after this panel, `lines` of cache to be prefetched with each step
   */
static inline __attribute__((always_inline)) void block(bool two, bool far, int64_t taps, const int64_t *at,
                                                        int64_t k, const uint16_t *a, ptrdiff_t a_step,
                                                        const uint16_t *b, float *c, ptrdiff_t c_step,
                                                        bool more, const char *next, int lines) {
    const ptrdiff_t a_row = a_step * 2, b_row = NR * 4, c_row = c_step * 4; /* bytes */
    float *low = c + ROWS * c_step;
    if (more) {
        _tile_loadd(0, c, c_row);
        _tile_loadd(1, c + 16, c_row);
        if (two) _tile_loadd(2, low, c_row);
        if (two) _tile_loadd(3, low + 16, c_row);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        if (two) _tile_zero(2);
        if (two) _tile_zero(3);
    }
    for (int64_t t = 0; t < taps; t++) {
        const uint16_t *from = a + at[t];
        for (int64_t p = 0; p < k; p += DEEP, b += DEEP * NR) {
            _tile_loadd(4, b, b_row);
            _tile_loadd(6, from + p, a_row);
            if (far) ask(b, 0);
            _tile_dpbf16ps(0, 6, 4);
            _tile_loadd(5, b + 32, b_row);
            if (far) ask(b, 1);
            _tile_dpbf16ps(1, 6, 5);
            for (int i = 0; i < lines; i++, next += 64) _mm_prefetch(next, _MM_HINT_T1);
            if (two) _tile_loadd(7, from + ROWS * a_step + p, a_row);
            if (far) ask(b, 2);
            if (two) _tile_dpbf16ps(2, 7, 4);
            if (far) ask(b, 3);
            if (two) _tile_dpbf16ps(3, 7, 5);
        }
    }
    _tile_stored(0, c, c_row);
    _tile_stored(1, c + 16, c_row);
    if (two) _tile_stored(2, low, c_row);
    if (two) _tile_stored(3, low + 16, c_row);
}
static bool window(int64_t m, int64_t taps, const int64_t *at, int64_t k, const uint16_t *a, ptrdiff_t a_step,
                   const uint16_t *b, float *c, ptrdiff_t c_step, bool more) {
    /* weights are often in no cache at all. What comes after a panel lies behind it: every block of rows
       asks for its share. A single block reads all of its own from there, unless it is short: a recurrence's
       weights stay in L2, and prefetching them takes a quarter more. */
    const bool one = m <= ROWS;
    const int lines = one ? (taps * k > LONG ? DEEP : 0) : (int)(DEEP / ((m + 2 * ROWS - 1) / (2 * ROWS)));
    const char *next = (const char *)(b + (one ? SOON : taps * k) * NR);
    for (; m >= 2 * ROWS;
         m -= 2 * ROWS, a += 2 * ROWS * a_step, c += 2 * ROWS * c_step, next += taps * k / DEEP * lines * 64)
        if (taps * k >= FAR) block(true, true, taps, at, k, a, a_step, b, c, c_step, more, next, lines);
        else block(true, false, taps, at, k, a, a_step, b, c, c_step, more, next, lines);
    if (m) block(false, false, taps, at, k, a, a_step, b, c, c_step, more, next, lines);
    return true;
}
static bool run(int64_t m, int64_t k, const uint16_t *a, ptrdiff_t a_step, const uint16_t *b, float *c,
                ptrdiff_t c_step, bool more) {
    return window(m, 1, &(int64_t){0}, k, a, a_step, b, c, c_step, more);
}
static void begin(int64_t m, int64_t k) { hone_amx_begin_rows(m, k < DEEP ? 2 * k : 2 * DEEP); }
extern const hone_gemm_half hone_gemm_bf16__amx;
const hone_gemm_half hone_gemm_bf16__amx = {"hone_gemm_bf16__amx",
                                            HONE_DTYPE_BF16,
                                            HONE_CPU_AVX512 | HONE_CPU_AVX512BF16 | HONE_CPU_AMX,
                                            ROWS,
                                            NR,
                                            2,
                                            DEEP,
                                            10,
                                            HONE_DTYPE_F32,
                                            "by AMX, sums f32",
                                            run,
                                            narrow,
                                            window,
                                            DEEP,
                                            begin,
                                            hone_amx_end,
                                            0,
                                            NULL,
                                            NULL};
#else
typedef int hone_gemm_bf16__amx_not_here;
#endif
