/* SPDX-License-Identifier: Apache-2.0
   describe: which kernel of each family is chosen on this CPU, as JSON. */
#include "base/thread.h"
#include "device/cpu/cpu.h"
#include "kernels/epilogue.h"
#include "kernels/gemm.h"
#include "kernels/gemm_half.h"
#include "kernels/pool.h"

void hone_cpu_describe(hone_text *t) {
    const uint32_t have = hone_cpu();
    const char *vectors = have & HONE_CPU_AVX512 ? "avx512" : have & HONE_CPU_AVX2 ? "avx2" : "base";
    const hone_gemm_half *bf16 = hone_gemm_half_best(HONE_DTYPE_BF16),
                         *f16 = hone_gemm_half_best(HONE_DTYPE_F16);
    const struct {
        const char *family, *kernel, *what, *how;
    } rows[] = {
        {"gemm_f32", hone_gemm_f32_best()->name, "matrix products, convolution, recurrent products", ""},
        {"gemm_bf16", bf16->name, "the same in bf16, where it is asked for; ", bf16->how},
        {"gemm_f16", f16->name, "the same in f16, where it is asked for; ", f16->how},
        {"gemm_i8", hone_gemm_i8_best()->name, "8-bit matrix products and convolution", ""},
        {"dwconv_nchw", hone_dwconv_nchw_best()->name, "depthwise convolution", ""},
        {"pool", hone_pool_best()->name, "the largest of a window", ""},
        {"epilogue", hone_epilogue_best()->name, "what follows a product: bias, residual, clamp, narrowing",
         ""},
        {"tile", vectors, "everything else that is loops over indices", ""},
    };
    hone_text_put(t, ", \"kernels\": [");
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        hone_text_put(t, "%s{\"family\": \"%s\", \"kernel\": \"%s\", \"for\": \"%s%s\"}", k ? ", " : "",
                      rows[k].family, rows[k].kernel, rows[k].what, rows[k].how);
    hone_text_put(t, "]");
}
