/* SPDX-License-Identifier: Apache-2.0
   cublas: the peer of products: cuBLASLt, opened at run time. Its own heuristic suggests algorithms; the
   fastest of them here is the peer. */
#include <dlfcn.h>

#include "harness.h"

struct cublas {
    void *handle;
    int (*create)(void **);
    int (*desc)(void **, int compute, int scale);
    int (*desc_set)(void *, int, const void *, size_t);
    int (*layout)(void **, int type, uint64_t rows, uint64_t columns, int64_t pitch);
    int (*preference)(void **);
    int (*preference_set)(void *, int, const void *, size_t);
    int (*suggest)(void *, void *, void *, void *, void *, void *, void *, int, void *, int *);
    int (*product)(void *, void *, const void *, const void *, void *, const void *, void *, const void *,
                   const void *, void *, void *, void *, const void *, void *, size_t, void *);
};
typedef struct { /* cublasLtMatmulHeuristicResult_t */
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} suggestion;
enum { WORKSPACE = 64 << 20 };

cublas *cublas_open(void) {
    static cublas l;
    static bool tried;
    static const char *const files[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so",
                                        "/usr/local/cuda/lib64/libcublasLt.so"};
    if (tried) return l.handle ? &l : NULL;
    tried = true;
    void *library = NULL;
    const char *named = getenv("HONE_CUBLASLT");
    if (named) library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
    for (size_t k = 0; k < sizeof files / sizeof *files && !library; k++)
        library = dlopen(files[k], RTLD_NOW | RTLD_LOCAL);
    if (!library) return NULL;
    const struct {
        void *to;
        const char *name;
    } wanted[] = {{&l.create, "cublasLtCreate"},
                  {&l.desc, "cublasLtMatmulDescCreate"},
                  {&l.desc_set, "cublasLtMatmulDescSetAttribute"},
                  {&l.layout, "cublasLtMatrixLayoutCreate"},
                  {&l.preference, "cublasLtMatmulPreferenceCreate"},
                  {&l.preference_set, "cublasLtMatmulPreferenceSetAttribute"},
                  {&l.suggest, "cublasLtMatmulAlgoGetHeuristic"},
                  {&l.product, "cublasLtMatmul"}};
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
        void *symbol = dlsym(library, wanted[k].name);
        if (!symbol) return NULL;
        memcpy(wanted[k].to, &symbol, sizeof symbol);
    }
    if (l.create(&l.handle)) l.handle = NULL;
    return l.handle ? &l : NULL;
}
typedef struct {
    cublas *l;
    void *desc, *left, *right, *result;
    hone_cuda_address a, b, c, workspace;
    const suggestion *how;
    bool whole;
} product;
static hone_status once(bench *b, void *what) {
    const product *p = what;
    const float one = 1, none = 0;
    const int one_i = 1, none_i = 0;
    const int code = p->l->product(
        p->l->handle, p->desc, p->whole ? (const void *)&one_i : &one, (void *)p->a, p->left, (void *)p->b,
        p->right, p->whole ? (const void *)&none_i : &none, (void *)p->c, p->result, (void *)p->c, p->result,
        p->how->algorithm, (void *)p->workspace, WORKSPACE, hone_cuda_stream(b->g));
    return code ? hone_fail(HONE_IO, "cuBLASLt says %d", code) : HONE_OK;
}
bool cublas_contender(bench *b, cublas *l, int in, int out, int m, int n, int k, hone_cuda_address a,
                      hone_cuda_address w, hone_cuda_address c, contender *best) {
    static hone_cuda_address workspace;
    static const int types[] = {[HONE_CUDA_F16] = 2,
                                [HONE_CUDA_BF16] = 14,
                                [HONE_CUDA_F32] = 0,
                                [HONE_CUDA_S8] = 3,
                                [HONE_CUDA_S32] = 10};
    const int compute = in == HONE_CUDA_S8    ? 72
                        : in == HONE_CUDA_F32 ? 77
                                              : 68,
              scale = in == HONE_CUDA_S8 ? 10 : 0, turned = 1;
    const size_t room = WORKSPACE;
    /* its matrices are column-major: C^T[n][m] = (B as k x n, turned) (A as k x m) */
    product p = {.l = l, .a = w, .b = a, .c = c, .whole = in == HONE_CUDA_S8};
    void *preference = NULL;
    suggestion s[16];
    int found = 0;
    *best = (contender){.n = 0};
    if (!workspace) OK(hone_cuda_memory(b->g, WORKSPACE, &workspace));
    p.workspace = workspace;
    if (l->desc(&p.desc, compute, scale) || l->desc_set(p.desc, 3, &turned, sizeof turned) ||
        l->layout(&p.left, types[in], (uint64_t)k, (uint64_t)n, k) ||
        l->layout(&p.right, types[in], (uint64_t)k, (uint64_t)m, k) ||
        l->layout(&p.result, types[out], (uint64_t)n, (uint64_t)m, n) || l->preference(&preference) ||
        l->preference_set(preference, 1, &room, sizeof room) ||
        l->suggest(l->handle, p.desc, p.left, p.right, p.result, p.result, preference, 16, s, &found) ||
        !found)
        return false;
    double least = 0;
    for (int q = 0; q < found; q++) {
        p.how = &s[q];
        if (s[q].state || once(b, &p) || hone_cuda_wait(b->g)) continue;
        contender one = contender_of(b, "cuBLASLt", once, &p);
        in_turns(b, &one, 1, 3);
        const double us = middle(&one);
        if (least == 0 || us < least) {
            contender_free(b, best);
            *best = one, least = us;
        } else {
            contender_free(b, &one);
        }
    }
    best->n = 0;
    return least > 0;
}
