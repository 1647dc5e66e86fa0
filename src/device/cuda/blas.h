/* SPDX-License-Identifier: Apache-2.0
   blas: products by NVIDIA's cuBLASLt, which is opened at run time where it is installed: no header or
   library of the toolkit is needed to build. Its heuristics' first algorithm is taken. Where there is no
   library, or it has nothing for a product, there is no plan, and kernels of ours do it. */
#ifndef HONE_DEVICE_CUDA_BLAS_H
#define HONE_DEVICE_CUDA_BLAS_H
#include "device/cuda/driver.h"

enum { HONE_BLAS_BIAS = 1, HONE_BLAS_RELU = 2, HONE_BLAS_GELU = 4 /* by tanh */, HONE_BLAS_RESIDUAL = 8 };
/* C[b][m][n] = f(alpha Σ A[b][m][k] B[b][n][k] + residual[b][m][n] + bias[n]). Compared as bytes: zero it
   first. */
typedef struct {
    int in, out; /* hone_cuda_type; F32 as a factor: tf32 */
    int ends;    /* of HONE_BLAS_ */
    float alpha;
    int64_t m, n, k, batches, pitch_a, pitch_b, pitch_c, batch_a, batch_b, batch_c, pitch_residual,
        batch_residual;
    int aligned[4]; /* of A, B, C and the residual: bytes that addresses are multiples of, at most 256 */
} hone_blas_problem;
typedef struct hone_blas_plan hone_blas_plan; /* of the process; used by any thread */

bool hone_blas_there(void);
/* NULL: there is none. gpu: one a process and device. */
const hone_blas_plan *hone_blas_find(hone_cuda *gpu, const hone_blas_problem *);
size_t hone_blas_workspace(const hone_blas_plan *); /* bytes */
typedef struct {
    hone_cuda_address a, b, c, bias, residual, workspace;
} hone_blas_places;
/* In the stream of g; may be recorded. bias: as C is stored. */
hone_status hone_blas_run(hone_cuda *g, const hone_blas_plan *, const hone_blas_places *) HONE_CHECKED;
#endif
