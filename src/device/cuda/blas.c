/* SPDX-License-Identifier: Apache-2.0
   blas: see blas.h. Its matrices are column-major: C transposed, n x m, is B as k x n transposed, by A as
   k x m. */
#include "device/cuda/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/library.h"
#include "device/cuda/print.h"

enum { MOST_WORKSPACE = 32 << 20, MOST_GPUS = 16 };
/* numbers of its interface */
enum { COMPUTE_F32 = 68, COMPUTE_TF32 = 77, TRANSPOSED = 1 };
enum { DESC_TRANSPOSE_LEFT = 3, DESC_EPILOGUE = 7, DESC_BIAS = 8, DESC_BIAS_TYPE = 26 };
enum { LAYOUT_BATCHES = 5, LAYOUT_BATCH = 6 };
enum { WISH_WORKSPACE = 1, WISH_ALIGNED = 5 /* left, right, C, D */ };
enum { EPILOGUE_PLAIN = 1, EPILOGUE_RELU = 2, EPILOGUE_BIAS = 4, EPILOGUE_GELU = 32 };

static struct {
    int (*create)(void **);
    int (*desc)(void **, int compute, int scale);
    int (*desc_free)(void *);
    int (*desc_set)(void *, int, const void *, size_t);
    int (*layout)(void **, int type, uint64_t rows, uint64_t columns, int64_t pitch);
    int (*layout_free)(void *);
    int (*layout_set)(void *, int, const void *, size_t);
    int (*wish)(void **);
    int (*wish_free)(void *);
    int (*wish_set)(void *, int, const void *, size_t);
    int (*suggest)(void *, void *, void *, void *, void *, void *, void *, int, void *, int *);
    int (*product)(void *, void *, const void *, const void *, void *, const void *, void *, const void *,
                   const void *, void *, void *, void *, const void *, void *, size_t, void *);
    bool there;
} lt;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *open_file(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }
static void find(void) {
    const hone_cuda_symbol wanted[] = {{&lt.create, "cublasLtCreate"},
                                       {&lt.desc, "cublasLtMatmulDescCreate"},
                                       {&lt.desc_free, "cublasLtMatmulDescDestroy"},
                                       {&lt.desc_set, "cublasLtMatmulDescSetAttribute"},
                                       {&lt.layout, "cublasLtMatrixLayoutCreate"},
                                       {&lt.layout_free, "cublasLtMatrixLayoutDestroy"},
                                       {&lt.layout_set, "cublasLtMatrixLayoutSetAttribute"},
                                       {&lt.wish, "cublasLtMatmulPreferenceCreate"},
                                       {&lt.wish_free, "cublasLtMatmulPreferenceDestroy"},
                                       {&lt.wish_set, "cublasLtMatmulPreferenceSetAttribute"},
                                       {&lt.suggest, "cublasLtMatmulAlgoGetHeuristic"},
                                       {&lt.product, "cublasLtMatmul"}};
    lt.there = hone_cuda_library("HONE_CUBLASLT", "cublasLt", open_file, wanted,
                                 (int)(sizeof wanted / sizeof *wanted));
}
bool hone_blas_there(void) {
    pthread_once(&once, find);
    return lt.there;
}

/* ---- plans: made once, kept for the process ------------------------------------------------------------ */
typedef struct { /* as its heuristics fill it in */
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} suggestion;
struct hone_blas_plan {
    hone_blas_problem of;
    void *handle, *desc, *left, *right, *added, *result;
    suggestion how;
    pthread_mutex_t *lock; /* the address of a bias is a member of desc */
    bool good;
    hone_blas_plan *next;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    hone_cuda *gpu;
    void *handle;
} gpus[MOST_GPUS];
static hone_blas_plan *plans;

static void *handle_of(hone_cuda *gpu) { /* under the lock */
    for (int k = 0; k < MOST_GPUS; k++) {
        if (gpus[k].gpu == gpu) return gpus[k].handle;
        if (gpus[k].gpu) continue;
        gpus[k].gpu = gpu;
        if (hone_cuda_enter(gpu) || lt.create(&gpus[k].handle)) gpus[k].handle = NULL;
        return gpus[k].handle;
    }
    return NULL;
}
static int type_of(int type) { return type == HONE_CUDA_F16 ? 2 : type == HONE_CUDA_BF16 ? 14 : 0; }
/* columns of `rows` values */
static bool matrix(void **out, int type, int64_t rows, int64_t columns, int64_t pitch, int64_t batches,
                   int64_t batch) {
    const int n = (int)batches;
    return !lt.layout(out, type_of(type), (uint64_t)rows, (uint64_t)columns, pitch) &&
           (batches == 1 || (!lt.layout_set(*out, LAYOUT_BATCHES, &n, sizeof n) &&
                             !lt.layout_set(*out, LAYOUT_BATCH, &batch, sizeof batch)));
}
static bool describe(hone_blas_plan *p) {
    const hone_blas_problem *q = &p->of;
    const int transposed = TRANSPOSED, type = type_of(q->out), ends = q->ends;
    const uint32_t epilogue =
        ends & HONE_BLAS_GELU   ? EPILOGUE_GELU | (ends & HONE_BLAS_BIAS ? EPILOGUE_BIAS : 0)
        : ends & HONE_BLAS_RELU ? EPILOGUE_RELU | (ends & HONE_BLAS_BIAS ? EPILOGUE_BIAS : 0)
        : ends & HONE_BLAS_BIAS ? EPILOGUE_BIAS
                                : EPILOGUE_PLAIN;
    const bool residual = ends & HONE_BLAS_RESIDUAL;
    const void *somewhere = (void *)(uintptr_t)256; /* it looks at the alignment only */
    return !lt.desc(&p->desc, q->in == HONE_CUDA_F32 ? COMPUTE_TF32 : COMPUTE_F32, 0) &&
           !lt.desc_set(p->desc, DESC_TRANSPOSE_LEFT, &transposed, sizeof transposed) &&
           !lt.desc_set(p->desc, DESC_EPILOGUE, &epilogue, sizeof epilogue) &&
           (!(ends & HONE_BLAS_BIAS) || (!lt.desc_set(p->desc, DESC_BIAS, &somewhere, sizeof somewhere) &&
                                         !lt.desc_set(p->desc, DESC_BIAS_TYPE, &type, sizeof type))) &&
           matrix(&p->left, q->in, q->k, q->n, q->pitch_b, q->batches, q->batch_b) &&
           matrix(&p->right, q->in, q->k, q->m, q->pitch_a, q->batches, q->batch_a) &&
           matrix(&p->result, q->out, q->n, q->m, q->pitch_c, q->batches, q->batch_c) &&
           matrix(&p->added, q->out, q->n, q->m, residual ? q->pitch_residual : q->pitch_c, q->batches,
                  residual ? q->batch_residual : q->batch_c);
}
static bool choose(hone_blas_plan *p) {
    void *wish = NULL;
    const size_t most = MOST_WORKSPACE;
    const int *const a = p->of.aligned,
                     order[] = {a[1], a[0], p->of.ends & HONE_BLAS_RESIDUAL ? a[3] : a[2], a[2]};
    int found = 0;
    bool good = !lt.wish(&wish) && !lt.wish_set(wish, WISH_WORKSPACE, &most, sizeof most);
    for (int k = 0; k < 4 && good; k++) {
        const uint32_t bytes = (uint32_t)order[k];
        good = !lt.wish_set(wish, WISH_ALIGNED + k, &bytes, sizeof bytes);
    }
    good =
        good &&
        !lt.suggest(p->handle, p->desc, p->left, p->right, p->added, p->result, wish, 1, &p->how, &found) &&
        found == 1 && !p->how.state && p->how.workspace <= most;
    if (wish) lt.wish_free(wish);
    return good;
}
const hone_blas_plan *hone_blas_find(hone_cuda *gpu, const hone_blas_problem *q) {
    if (!hone_blas_there()) return NULL;
    pthread_mutex_lock(&lock);
    void *handle = handle_of(gpu);
    hone_blas_plan *p = plans;
    while (p && (p->handle != handle || memcmp(&p->of, q, sizeof *q))) p = p->next;
    /* what a process keeps to its end is not counted by hone_alloc */
    if (!p && handle && (p = calloc(1, sizeof *p))) {
        p->of = *q, p->handle = handle, p->lock = &lock;
        p->good = !hone_cuda_enter(gpu) && describe(p) && choose(p);
        if (!p->good) {
            if (p->desc) lt.desc_free(p->desc);
            void *const layouts[] = {p->left, p->right, p->result, p->added};
            for (int k = 0; k < 4; k++)
                if (layouts[k]) lt.layout_free(layouts[k]);
        }
        p->next = plans, plans = p;
    }
    pthread_mutex_unlock(&lock);
    return p && p->good ? p : NULL;
}
size_t hone_blas_workspace(const hone_blas_plan *p) { return p->how.workspace; }

static void *at(hone_cuda_address a) { return (void *)(uintptr_t)a; }
hone_status hone_blas_run(hone_cuda *g, const hone_blas_plan *p, const hone_blas_places *o) {
    const bool residual = p->of.ends & HONE_BLAS_RESIDUAL, bias = p->of.ends & HONE_BLAS_BIAS;
    const float alpha = p->of.alpha, beta = residual ? 1 : 0;
    const void *bias_at = at(o->bias);
    if (bias) pthread_mutex_lock(p->lock);
    int code = bias ? lt.desc_set(p->desc, DESC_BIAS, &bias_at, sizeof bias_at) : 0;
    if (!code)
        code = lt.product(p->handle, p->desc, &alpha, at(o->b), p->left, at(o->a), p->right, &beta,
                          at(residual ? o->residual : o->c), p->added, at(o->c), p->result, p->how.algorithm,
                          at(o->workspace), p->how.workspace, hone_cuda_stream(g));
    if (bias) pthread_mutex_unlock(p->lock);
    return code ? hone_fail(HONE_IO, "cuBLASLt: a product of %lld x %lld x %lld failed (%d)",
                            (long long)p->of.m, (long long)p->of.n, (long long)p->of.k, code)
                : HONE_OK;
}
