/* SPDX-License-Identifier: Apache-2.0
   list: the rows of every kernel family, slowest first, and the choice among them. The only place where a
   kernel is registered.

   A row's tile is part of its function's name, so a tile changed in one place only does not link. */
#include <limits.h>

#include "base/thread.h"
#include "kernels/activate.h"
#include "kernels/bits.h"
#include "kernels/cell.h"
#include "kernels/epilogue.h"
#include "kernels/gemm.h"
#include "kernels/gemm_half.h"
#include "kernels/dwconv_nhwc_rows.h"
#include "kernels/norm.h"
#include "kernels/pool.h"
#include "kernels/rotary.h"
#include "kernels/direct_conv.h"
#include "kernels/softmax.h"
#include "kernels/winograd.h"
#include "kernels/x86/amx.h"

#if defined(__aarch64__) /* what only its steps prefetch */
#define NEON_ONLY(what) what
#else
#define NEON_ONLY(what) 0
#endif
#if defined(__x86_64__)
#define GEMM_F32(ROW) ROW(base) ROW(avx2) ROW(avx512)
#define GEMM_BF16(ROW) ROW(bf16__base) ROW(bf16__avx2) ROW(bf16__avx512) ROW(bf16__avx512bf16) ROW(bf16__amx)
#define GEMM_F16(ROW) ROW(f16__base) ROW(f16__avx2) ROW(f16__avx512) ROW(f16__avx512fp16)
#define DEPTHWISE_F32(ROW)   \
    ROW(base, 0)             \
    ROW(avx2, HONE_CPU_AVX2) \
    ROW(avx512, HONE_CPU_AVX512)
#define DEPTHWISE_ROWS(ROW) DEPTHWISE_F32(ROW) ROW(avx512bf16, HONE_CPU_AVX512 | HONE_CPU_AVX512BF16)
#define LINES(ROW)                     \
    ROW(base, 0, true)                 \
    ROW(avx2, HONE_CPU_AVX2, true)     \
    ROW(avx512, HONE_CPU_AVX512, true) \
    ROW(avx512bf16, HONE_CPU_AVX512 | HONE_CPU_AVX512BF16, true)
#define GEMM_I8(ROW)                                                                                     \
    ROW(4, 8, 4, 4, base, 0, 0, NULL, base, NULL, NULL)                                                  \
    ROW(4, 16, 4, 4, avx2, HONE_CPU_AVX2, 0, NULL, avx2, NULL, NULL)                                     \
    ROW(14, 32, 4, 4, vnni, HONE_CPU_AVX512 | HONE_CPU_VNNI, 0, NULL, vnni, NULL, NULL)                  \
    ROW(32, 32, 64, 4, amx, HONE_CPU_AVX512 | HONE_CPU_VNNI | HONE_CPU_AMX, 0, hone_gemm_u8_direct__amx, \
        vnni, hone_amx_begin_bytes, hone_amx_end)
#define DEPTHWISE_I8(ROW)                \
    ROW(base, 0, 1, 1, 0, 0)             \
    ROW(avx2, HONE_CPU_AVX2, 4, 2, 0, 0) \
    ROW(vnni, HONE_CPU_AVX512 | HONE_CPU_VNNI, 4, 4, 0, 0)
#elif defined(__aarch64__)
#define GEMM_F32(ROW) ROW(base)
#define GEMM_BF16(ROW) ROW(bf16__base) ROW(bf16__bf16)
#define GEMM_F16(ROW) ROW(f16__base) ROW(f16__fp16) ROW(f16__fhm)
#define GEMM_I8(ROW)                                                       \
    ROW(4, 8, 4, 4, base, 0, 0, NULL, base, NULL, NULL)                    \
    ROW(8, 12, 4, 4, dotprod, HONE_CPU_DOTPROD, 1, NULL, none, NULL, NULL) \
    ROW(8, 8, 8, 8, i8mm, HONE_CPU_I8MM, 0, NULL, none, NULL, NULL)
#define DEPTHWISE_F32(ROW) ROW(base, 0)
#define DEPTHWISE_ROWS(ROW) DEPTHWISE_F32(ROW) ROW(bf16, HONE_CPU_BF16)
#define LINES(ROW) ROW(base, 0, false)
#define DEPTHWISE_I8(ROW)                      \
    ROW(base, 0, 1, 1, 0, 0)                   \
    ROW(dotprod, HONE_CPU_DOTPROD, 4, 1, 1, 1) \
    ROW(i8mm, HONE_CPU_I8MM, 4, 1, 0, 1)
#else
#define GEMM_F32(ROW) ROW(base)
#define GEMM_BF16(ROW) ROW(bf16__base)
#define GEMM_F16(ROW) ROW(f16__base)
#define GEMM_I8(ROW) ROW(4, 8, 4, 4, base, 0, 0, NULL, base, NULL, NULL)
#define DEPTHWISE_F32(ROW) ROW(base, 0)
#define DEPTHWISE_ROWS(ROW) DEPTHWISE_F32(ROW)
#define LINES(ROW) ROW(base, 0, true)
#define DEPTHWISE_I8(ROW) ROW(base, 0, 1, 1, 0, 0)
#endif

#define DECLARE(isa) extern const hone_gemm_f32 hone_gemm_f32__##isa;
GEMM_F32(DECLARE)
#undef DECLARE
#define DECLARE(isa, cpu) hone_dwconv_nchw_fn hone_dwconv_nchw__##isa;
DEPTHWISE_F32(DECLARE)
#undef DECLARE
#define DECLARE(isa, cpu) hone_gemm_f32_fn hone_dwconv_nhwc__##isa;
DEPTHWISE_ROWS(DECLARE)
#undef DECLARE

#define ROW(isa) &hone_gemm_f32__##isa,
const hone_gemm_f32 *const hone_gemm_f32_list[] = {GEMM_F32(ROW) NULL};
#undef ROW
#define DECLARE(row) extern const hone_gemm_half hone_gemm_##row;
GEMM_BF16(DECLARE)
GEMM_F16(DECLARE)
#undef DECLARE
#define ROW(row) &hone_gemm_##row,
const hone_gemm_half *const hone_gemm_half_list[] = {GEMM_BF16(ROW) GEMM_F16(ROW) NULL};
#undef ROW
hone_gemm_u8_direct_fn hone_gemm_u8_direct__amx;
hone_gemm_i8_gathered_fn hone_gemm_i8_gathered__base, hone_gemm_i8_gathered__avx2,
    hone_gemm_i8_gathered__vnni;
#define hone_gemm_i8_gathered__none NULL
hone_gemm_i8_requantize_fn hone_gemm_i8_requantize__i8mm;
hone_gemm_i8_some_fn hone_gemm_some__dotprod;
#define SOME_OF_base NULL
#define SOME_OF_avx2 NULL
#define SOME_OF_vnni NULL
#define SOME_OF_amx NULL
#define SOME_OF_dotprod hone_gemm_some__dotprod
#define SOME_OF_i8mm NULL
#define BYTES_OF_base NULL
#define BYTES_OF_avx2 NULL
#define BYTES_OF_vnni NULL
#define BYTES_OF_amx NULL
#define BYTES_OF_dotprod NULL
#define BYTES_OF_i8mm hone_gemm_i8_requantize__i8mm
#define DECLARE(mr, nr, deep, group, isa, cpu, b_signed, rows, gathered, begin, end) \
    hone_gemm_i8_fn hone_gemm_i8_##mr##x##nr##__##isa, hone_gemm_u8_##mr##x##nr##__##isa;
GEMM_I8(DECLARE)
#undef DECLARE
#define ROW(mr, nr, deep, group, isa, cpu, b_signed, rows, gathered, begin, end) \
    {"hone_gemm_i8_" #mr "x" #nr "__" #isa,                                      \
     cpu,                                                                        \
     mr,                                                                         \
     nr,                                                                         \
     deep,                                                                       \
     group,                                                                      \
     b_signed,                                                                   \
     hone_gemm_i8_##mr##x##nr##__##isa,                                          \
     b_signed ? NULL : hone_gemm_u8_##mr##x##nr##__##isa,                        \
     rows,                                                                       \
     hone_gemm_i8_gathered__##gathered,                                          \
     BYTES_OF_##isa,                                                             \
     begin,                                                                      \
     end,                                                                        \
     NULL,                                                                       \
     SOME_OF_##isa},
const hone_gemm_i8 hone_gemm_i8_list[] = {GEMM_I8(ROW){0}};
#undef ROW
#if defined(__aarch64__)
hone_gemm_i8_fn hone_gemm_i8_4x16__dotprod;
hone_gemm_i8_indirect_fn hone_gemm_i8_indirect__dotprod;
const hone_gemm_i8 hone_gemm_i8_indirect_list[] = {{"hone_gemm_i8_4x16__dotprod", HONE_CPU_DOTPROD, 4, 16, 4,
                                                    4, 1, hone_gemm_i8_4x16__dotprod, NULL, NULL, NULL, NULL,
                                                    NULL, NULL, hone_gemm_i8_indirect__dotprod, NULL},
                                                   {0}};
#elif defined(__x86_64__)
hone_gemm_i8_indirect_fn hone_gemm_i8_indirect__vnni;
const hone_gemm_i8 hone_gemm_i8_indirect_list[] = {
    {"hone_gemm_i8_14x32__vnni", HONE_CPU_AVX512 | HONE_CPU_VNNI, 14, 32, 4, 4, 0, hone_gemm_i8_14x32__vnni,
     hone_gemm_u8_14x32__vnni, NULL, NULL, NULL, NULL, NULL, hone_gemm_i8_indirect__vnni, NULL},
    {0}};
#else
const hone_gemm_i8 hone_gemm_i8_indirect_list[] = {{0}};
#endif
#define ROW(isa, cpu) {"hone_dwconv_nchw__" #isa, cpu, hone_dwconv_nchw__##isa},
const hone_dwconv_nchw hone_dwconv_nchw_list[] = {DEPTHWISE_F32(ROW){0}};
#undef ROW
#define ROW(isa, cpu) {"hone_dwconv_nhwc__" #isa, cpu, hone_dwconv_nhwc__##isa},
const hone_dwconv_nhwc hone_dwconv_nhwc_list[] = {DEPTHWISE_ROWS(ROW){0}};
#undef ROW

#define DECLARE(isa, cpu, halves) hone_dwconv_nhwc_rows_fn hone_dwconv_nhwc_rows__##isa;
LINES(DECLARE)
#undef DECLARE
#define ROW(isa, cpu, halves) {"hone_dwconv_nhwc_rows__" #isa, cpu, halves, hone_dwconv_nhwc_rows__##isa},
const hone_dwconv_nhwc_rows hone_dwconv_nhwc_rows_list[] = {LINES(ROW){0}};
#undef ROW
#if defined(__aarch64__)
hone_gemm_f32_fn hone_direct_conv_f32__base;
static const hone_direct_conv_f32 hone_direct_conv_f32_list[] = {
    {"hone_direct_conv_f32__base", 0, hone_direct_conv_f32__base}, {0}};
#else
static const hone_direct_conv_f32 hone_direct_conv_f32_list[] = {{0}};
#endif
#define DECLARE(isa, cpu, group, lanes, a_signed, below) hone_dwconv_i8_fn hone_dwconv_i8__##isa;
DEPTHWISE_I8(DECLARE)
#undef DECLARE
#define ROW(isa, cpu, group, lanes, a_signed, below) \
    {"hone_dwconv_i8__" #isa, cpu, group, lanes, a_signed, below, hone_dwconv_i8__##isa},
const hone_dwconv_i8 hone_dwconv_i8_list[] = {DEPTHWISE_I8(ROW){0}};
#undef ROW

#define DECLARE(isa, cpu)                                                                         \
    hone_epilogue_fn hone_epilogue_f32__##isa, hone_epilogue_u8__##isa, hone_epilogue_i8__##isa,  \
        hone_epilogue_back__##isa;                                                                \
    hone_epilogue_fn hone_epilogue_u16__##isa, hone_epilogue_i16__##isa;                          \
    hone_requantize_by_row_fn hone_requantize_by_row_u8__##isa, hone_requantize_by_row_i8__##isa, \
        hone_requantize_by_row_u16__##isa, hone_requantize_by_row_i16__##isa;                     \
    hone_joint_fn hone_joint_f32__##isa, hone_joint_bytes__##isa;                                 \
    hone_widen_fn hone_widen__##isa;                                                              \
    hone_settle_fn hone_settle__##isa;                                                            \
    hone_finish_fn hone_finish_i32__##isa;                                                        \
    hone_requantize_fn hone_requantize__##isa;                                                    \
    hone_then_fn hone_gate__##isa;
DEPTHWISE_F32(DECLARE) /* the same levels */
#undef DECLARE
#define JOINT_OF_base(what) NEON_ONLY(what)
#define JOINT_OF_avx2(what) NULL
#define JOINT_OF_avx512(what) what
#define ROW(isa, cpu)                         \
    {"hone_epilogue__" #isa,                  \
     cpu,                                     \
     hone_epilogue_f32__##isa,                \
     hone_epilogue_u8__##isa,                 \
     hone_epilogue_i8__##isa,                 \
     hone_epilogue_u16__##isa,                \
     hone_epilogue_i16__##isa,                \
     hone_epilogue_back__##isa,               \
     JOINT_OF_##isa(hone_joint_f32__##isa),   \
     JOINT_OF_##isa(hone_joint_bytes__##isa), \
     hone_requantize_by_row_u8__##isa,        \
     hone_requantize_by_row_i8__##isa,        \
     hone_requantize_by_row_u16__##isa,       \
     hone_requantize_by_row_i16__##isa,       \
     hone_widen__##isa,                       \
     hone_settle__##isa,                      \
     hone_finish_i32__##isa,                  \
     hone_requantize__##isa,                  \
     hone_gate__##isa},
const hone_epilogue hone_epilogue_list[] = {DEPTHWISE_F32(ROW){0}};
#undef ROW

#define DECLARE(isa, cpu)                                                                                   \
    hone_winograd_input_fn hone_winograd_in_4__##isa, hone_winograd_in_6__##isa, hone_winograd_in_8__##isa, \
        hone_winograd_in_1x8__##isa, hone_winograd_in_4x6__##isa;                                           \
    hone_winograd_output_fn hone_winograd_out_4_3__##isa, hone_winograd_out_4_2__##isa,                     \
        hone_winograd_out_6_5__##isa, hone_winograd_out_6_4__##isa, hone_winograd_out_6_3__##isa,           \
        hone_winograd_out_6_2__##isa, hone_winograd_out_8_6__##isa, hone_winograd_out_8_5__##isa,           \
        hone_winograd_out_8_4__##isa, hone_winograd_out_1x8_6__##isa, hone_winograd_out_1x8_5__##isa,       \
        hone_winograd_out_1x8_4__##isa, hone_winograd_out_4x6_2x4__##isa;
DEPTHWISE_F32(DECLARE)
#undef DECLARE
#define ROW(isa, cpu)                                                                                   \
    {"hone_winograd_f32__" #isa,                                                                        \
     cpu,                                                                                               \
     NEON_ONLY(1),                                                                                      \
     {hone_winograd_in_4__##isa, hone_winograd_in_6__##isa, hone_winograd_in_8__##isa,                  \
      hone_winograd_in_4x6__##isa},                                                                     \
     {{hone_winograd_out_4_3__##isa, hone_winograd_out_4_2__##isa},                                     \
      {hone_winograd_out_6_5__##isa, hone_winograd_out_6_4__##isa, hone_winograd_out_6_3__##isa,        \
       hone_winograd_out_6_2__##isa},                                                                   \
      {NULL, hone_winograd_out_8_6__##isa, hone_winograd_out_8_5__##isa, hone_winograd_out_8_4__##isa}, \
      {NULL, hone_winograd_out_4x6_2x4__##isa}},                                                        \
     hone_winograd_in_1x8__##isa,                                                                       \
     {NULL, hone_winograd_out_1x8_6__##isa, hone_winograd_out_1x8_5__##isa,                             \
      hone_winograd_out_1x8_4__##isa}},
const hone_winograd_f32 hone_winograd_f32_list[] = {DEPTHWISE_F32(ROW){0}};
#undef ROW

#define DECLARE(isa, cpu)                                \
    hone_softmax_row_fn hone_softmax_row__##isa;         \
    hone_times_row_fn hone_times_row__##isa;             \
    hone_exps_row_fn hone_exps_row__##isa;               \
    hone_softmax_columns_fn hone_softmax_columns__##isa; \
    hone_softmax_over_fn hone_softmax_over__##isa;
DEPTHWISE_F32(DECLARE)
#undef DECLARE
#define ROW(isa, cpu)                                      \
    {"hone_softmax__" #isa,   cpu,                         \
     hone_softmax_row__##isa, hone_times_row__##isa,       \
     hone_exps_row__##isa,    hone_softmax_columns__##isa, \
     hone_softmax_over__##isa},
const hone_softmax hone_softmax_list[] = {DEPTHWISE_F32(ROW){0}};
#undef ROW

#define DECLARE(isa, cpu)                                                     \
    extern hone_activate_fn *const hone_activate__##isa[HONE_ACTIVATE_COUNT]; \
    extern hone_gate_fn *const hone_gates__##isa[HONE_ACTIVATE_COUNT];        \
    hone_then_fn hone_then__##isa, hone_floor__##isa;
DEPTHWISE_F32(DECLARE)
#undef DECLARE
#define ROW(isa, cpu)                                                                                   \
    {"hone_activate__" #isa, cpu, hone_activate__##isa, NEON_ONLY(hone_gates__##isa), hone_then__##isa, \
     hone_floor__##isa},
const hone_activate hone_activate_list[] = {DEPTHWISE_F32(ROW){0}};
#undef ROW

#define DECLARE(isa, cpu)                  \
    hone_lstm_row_fn hone_lstm_row__##isa; \
    hone_gru_row_fn hone_gru_row__##isa;   \
    hone_reset_row_fn hone_reset_row__##isa;
DEPTHWISE_F32(DECLARE)
#undef DECLARE
#define ROW(isa, cpu) \
    {"hone_cell__" #isa, cpu, hone_lstm_row__##isa, hone_gru_row__##isa, hone_reset_row__##isa},
const hone_cell hone_cell_list[] = {DEPTHWISE_F32(ROW){0}};
#undef ROW

#define DECLARE(isa, cpu) hone_norm_rows_fn hone_norm_rows__##isa;
DEPTHWISE_F32(DECLARE)
#undef DECLARE
#define ROW(isa, cpu) {"hone_norm__" #isa, cpu, hone_norm_rows__##isa},
const hone_norm hone_norm_list[] = {DEPTHWISE_F32(ROW){0}};
#undef ROW

#define DECLARE(isa, cpu) hone_rotary_fn hone_rotary_halves__##isa, hone_rotary_neighbours__##isa;
DEPTHWISE_F32(DECLARE)
#undef DECLARE
#define ROW(isa, cpu) {"hone_rotary__" #isa, cpu, hone_rotary_halves__##isa, hone_rotary_neighbours__##isa},
const hone_rotary hone_rotary_list[] = {DEPTHWISE_F32(ROW){0}};
#undef ROW

#define DECLARE(isa, cpu)                                                     \
    hone_pool_fn hone_pool_max__##isa;                                        \
    hone_pool_bf16_fn hone_pool_max_bf16__##isa;                              \
    hone_pool_bytes_fn hone_pool_max_u8__##isa;                               \
    hone_pool_bytes_fn hone_pool_max_i8__##isa;                               \
    hone_blend_fn hone_pool_blend__##isa;                                     \
    hone_pick_fn hone_pool_pick__##isa;                                       \
    hone_add_fn hone_pool_add__##isa;                                         \
    extern hone_sum_fn *const hone_pool_sums__##isa[HONE_WHOLES];             \
    extern hone_blend_whole_fn *const hone_pool_blends__##isa[HONE_WHOLES];   \
    extern hone_settle_whole_fn *const hone_pool_settles__##isa[HONE_WHOLES]; \
    hone_spread_fn hone_pool_spread__##isa;
DEPTHWISE_F32(DECLARE)
#undef DECLARE
#define ROW(isa, cpu)                                    \
    {"hone_pool__" #isa,      cpu,                       \
     hone_pool_max__##isa,    hone_pool_max_bf16__##isa, \
     hone_pool_max_u8__##isa, hone_pool_max_i8__##isa,   \
     hone_pool_blend__##isa,  hone_pool_pick__##isa,     \
     hone_pool_add__##isa,    hone_pool_sums__##isa,     \
     hone_pool_blends__##isa, hone_pool_settles__##isa,  \
     hone_pool_spread__##isa},
const hone_pool hone_pool_list[] = {DEPTHWISE_F32(ROW){0}};
#undef ROW

#define DECLARE(isa)                                 \
    hone_bits_fn hone_bits_rows__##isa;              \
    hone_bits_unpack_fn hone_bits_unpack__##isa;     \
    hone_bits_quantize_fn hone_bits_quantize__##isa; \
    hone_bits_floats_fn hone_bits_floats__##isa;
#define ROW(isa, cpu, one, packed, few, many) \
    {"hone_bits__" #isa,                      \
     cpu,                                     \
     hone_bits_rows__##isa,                   \
     one,                                     \
     packed,                                  \
     few,                                     \
     many,                                    \
     hone_bits_unpack__##isa,                 \
     hone_bits_quantize__##isa,               \
     hone_bits_floats__##isa},
DECLARE(base)
#if defined(__x86_64__)
DECLARE(avx2)
DECLARE(vnni)
hone_bits_fn hone_bits_packed__avx2, hone_bits_packed__vnni;
static const hone_bits hone_bits_list[] = {
    ROW(base, 0, NULL, NULL, 0, NULL) ROW(avx2, HONE_CPU_AVX2, NULL, hone_bits_packed__avx2, 16, NULL)
        ROW(vnni, HONE_CPU_AVX512 | HONE_CPU_VNNI, NULL, hone_bits_packed__vnni, INT_MAX, NULL){0}};
#elif defined(__aarch64__)
DECLARE(dotprod)
hone_bits_fn hone_bits_one__dotprod;
hone_bits_many_fn hone_bits_many__dotprod;
static const hone_bits hone_bits_list[] = {ROW(base, 0, NULL, NULL, 0, NULL) ROW(
    dotprod, HONE_CPU_DOTPROD, hone_bits_one__dotprod, NULL, 0, hone_bits_many__dotprod){0}};
#else
static const hone_bits hone_bits_list[] = {ROW(base, 0, NULL, NULL, 0, NULL){0}};
#endif
#undef DECLARE
#undef ROW

/* Of each family the last row that this CPU, as masked, can run. */
#define BEST(family)                                     \
    const family *family##_best(void) {                  \
        const uint32_t have = hone_cpu();                \
        const family *best = family##_list;              \
        for (const family *row = best; row->name; row++) \
            if ((row->cpu & ~have) == 0) best = row;     \
        return best;                                     \
    }
/* lists of pointers: the kernel's file makes the row */
const hone_gemm_f32 *hone_gemm_f32_best(void) {
    const uint32_t have = hone_cpu();
    const hone_gemm_f32 *best = hone_gemm_f32_list[0];
    for (const hone_gemm_f32 *const *row = hone_gemm_f32_list; *row; row++)
        if (((*row)->cpu & ~have) == 0) best = *row;
    return best;
}
const hone_gemm_half *hone_gemm_half_best(hone_dtype dtype) {
    const uint32_t have = hone_cpu();
    const hone_gemm_half *best = NULL;
    for (const hone_gemm_half *const *row = hone_gemm_half_list; *row; row++)
        if ((*row)->dtype == dtype && ((*row)->cpu & ~have) == 0) best = *row;
    return best;
}
const hone_direct_conv_f32 *hone_direct_conv_f32_best(void) {
    return hone_direct_conv_f32_list[0].name ? hone_direct_conv_f32_list : NULL;
}
BEST(hone_gemm_i8)
const hone_gemm_i8 *hone_gemm_i8_indirect_best(void) {
    const uint32_t have = hone_cpu();
    const hone_gemm_i8 *row = hone_gemm_i8_indirect_list, *best = hone_gemm_i8_best();
    return row->name && !(row->cpu & ~have) && !best->run_requantize ? row : NULL;
}
BEST(hone_dwconv_nchw)
BEST(hone_dwconv_nhwc)
BEST(hone_dwconv_i8)
BEST(hone_dwconv_nhwc_rows)
BEST(hone_epilogue)
BEST(hone_winograd_f32)
BEST(hone_pool)
BEST(hone_softmax)
BEST(hone_activate)
BEST(hone_cell)
BEST(hone_norm)
BEST(hone_rotary)
BEST(hone_bits)
