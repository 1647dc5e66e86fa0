/* SPDX-License-Identifier: Apache-2.0
   print: the source of a CUDA kernel: the words all kernels use, the numbers of this one, its family's text
   (src/kernels/cuda). Says nothing about which numbers are good, and compiles nothing. */
#ifndef HONE_DEVICE_CUDA_PRINT_H
#define HONE_DEVICE_CUDA_PRINT_H
#include "base/mem.h"
#include "kernels/cuda/args.h"

/* F32 as a factor: tf32 */
typedef enum {
    HONE_CUDA_F16 = 1,
    HONE_CUDA_BF16,
    HONE_CUDA_F32,
    HONE_CUDA_S8,
    HONE_CUDA_S32,
    HONE_CUDA_U8 /* as a factor: A's; B is S8 then */
} hone_cuda_type;
static inline bool hone_cuda_is_byte(hone_cuda_type t) { return t == HONE_CUDA_S8 || t == HONE_CUDA_U8; }
/* what is done to rows of memory (rows.cu, which has the same numbers) */
typedef enum {
    HONE_CUDA_SOFTMAX = 1,
    HONE_CUDA_LOG_SOFTMAX,
    HONE_CUDA_LAYER_NORM,
    HONE_CUDA_RMS_NORM,
    HONE_CUDA_ROW_SUM,
    HONE_CUDA_ROW_MEAN,
    HONE_CUDA_ROW_MAX
} hone_cuda_row_kind;

/* One number or expression that a family's text wants: its name there, and what it is. */
typedef struct {
    const char *name;
    int number;
    const char *text; /* of an expression; then number is not looked at */
} hone_cuda_fill;

typedef enum {
    HONE_CUDA_DEPTHWISE = 1,
    HONE_CUDA_LARGEST,
    HONE_CUDA_AVERAGE,
    HONE_CUDA_AVERAGE_ALL
} hone_cuda_window_kind;

/* A family goes by its file's name in src/kernels/cuda, without .cu; the table in print.c says which names
   each wants. All of them must be given, and no other. */
hone_status hone_cuda_print(hone_text *out, const char *family, const hone_cuda_fill *fill, int n);
#endif
