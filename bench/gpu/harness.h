/* SPDX-License-Identifier: Apache-2.0
   harness: what the GPU benchmarks share: kernels compiled ahead by many processes, operands with known
   numbers, contenders timed in turns, one table. Each family of kernels is a file that calls this. */
#ifndef HONE_BENCH_GPU_HARNESS_H
#define HONE_BENCH_GPU_HARNESS_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/contract.h"
#include "device/cuda/driver.h"
#include "device/cuda/nvrtc.h"
#include "device/cuda/print.h"

enum { CALLS = 20 }; /* in a graph */
typedef struct {
    hone_cuda *g;
    hone_cuda_facts gpu;
    bool collect; /* only say which kernels will be needed */
    bool check, time, search;
    bool once;        /* what would be timed is launched once, for profilers */
    int every;        /* of the ways that are checked; 1: all */
    int again;        /* how often each is run once more, and compared to the bit */
    const char *arch; /* what kernels are compiled for; not the GPU's own when sm_80 code is tried */
    double copy_rate; /* bytes a second, read + written, measured */
    FILE *table, *csv;
    int wrong, checked, repeated;
    int shift;                             /* elements by which tensors begin behind an aligned place */
    hone_cuda_address workspace, counters; /* for split sums: ROOM and COUNTERS bytes, counters 0 */
} bench;
enum { ROOM = 256 << 20, COUNTERS = 1 << 20 };

void stop(const char *what, ...); /* prints and exits */
#define OK(call) ((call) ? stop("%s: %s", #call, hone_fail_text()) : (void)0)

/* A kernel of this text; NULL while collecting. Compiled before, by compile_all. */
const hone_cuda_kernel *kernel_of(bench *b, const char *text, const char *name, int shared_bytes);
void compile_all(bench *b);

/* ---- operands: the same numbers on both sides ---- */
typedef struct {
    hone_cuda_address at;
    void *host;
    size_t bytes, shift; /* shift: bytes of the allocation before it */
    int type;
} tensor;
tensor tensor_random(bench *b, int type, size_t n, double scale); /* -scale to scale */
tensor tensor_poison(bench *b, int type, size_t n);
tensor tensor_zero(bench *b, int type, size_t n);
void tensor_send(bench *b, tensor *t);
void tensor_fetch(bench *b, tensor *t);
void tensor_free(bench *b, tensor *t);
/* A square window over square images, channels last. */
hone_cuda_window window_over(int batch, int size, int channels, int kernel, int stride, int pad, int dilation,
                             const tensor *x, const tensor *w, const tensor *y, const tensor *bias);
double tensor_get(const tensor *t, size_t k);
void tensor_put(tensor *t, size_t k, double v);
int type_bytes(int type);
uint64_t dice(void);
double *tensor_doubles(const tensor *t); /* all of it; the caller frees */
/* What some outputs must be: computed once, compared with what every way gives. */
typedef struct {
    size_t n, *at; /* places in the output */
    double *want, *size;
} reference;
/* all places, or `most` drawn ones, the first and last among them */
reference reference_make(size_t all, size_t most);
void reference_free(reference *r);
/* fetches out; prints what is wrong */
bool reference_check(bench *b, const reference *r, tensor *out, const char *what);
typedef hone_status call(bench *b, void *what);
/* The same call again: out, as the last check fetched it, must be the same to the bit. */
void check_again(bench *b, tensor *out, call *once, void *ready, const char *what);
/* One output is right: got within the type's rounding of want, of a sum whose terms add up to `size`. */
bool right(int type, double got, double want, double size);

/* ---- time ---- */
typedef struct {
    char name[24];
    void *graph; /* of CALLS calls; or */
    bool torch;  /* the other process's */
    double us[64];
    int n;
} contender;
contender contender_of(bench *b, const char *name, call *once, void *what);
/* name[0] = 0 where there is no such peer */
contender contender_torch(bench *b, const char *name, const char *spec);
void in_turns(bench *b, contender *c, int n, int rounds);
double middle(const contender *c); /* median, microseconds a call */
double spread(const contender *c); /* (p90 - p10) / median */
void contender_free(bench *b, contender *c);

/* ---- what is reported ---- */
typedef struct {
    char text[64];
    double log_sum;
    int n;
} mean;
void mean_add(mean *m, double ratio);
void mean_tell(bench *b, const mean *m, const char *bar);
/* What a cost function chose beside the best that a search found: one line, and its share of the best's speed
   into the mean. */
void tell_search(bench *b, mean *m, const char *family, const char *what, double best_us, const char *best,
                 double us, const char *chosen);
/* A line: ours against peers (n of them, may be 0). flops, bytes: of one call. */
double tell(bench *b, const char *family, const char *what, const char *way, const contender *c, int n,
            double flops, double bytes);

/* ---- products and convolutions ---- */
typedef struct {
    const hone_cuda_kernel *kernel;
    hone_cuda_launch_shape launch;
    hone_cuda_contract_args args;
} prepared;
/* C = A Wᵀ of dense rows, types as the tensors have them; W is constant. Those who want other pitches or
   batches change them. */
hone_cuda_product product_of(const bench *b, const char *epilogue, const tensor *a, const tensor *w,
                             const tensor *c, const tensor *bias, int m, int n, int k);
bool prepare(bench *b, const hone_cuda_product *p, const hone_cuda_way *way,
             prepared *out); /* false while collecting, or where the workspace is too small */
hone_status launch_prepared(bench *b, void *what);
/* Leaves of all ways the first and the last of each unit, and the first that splits the sum; says how
   many. */
int few_ways(hone_cuda_way *way, int n);
/* All ways timed, into the table of searches; the cost function's choice beside the best. */
void search_ways(bench *b, const char *what, const hone_cuda_product *p, bool seen);

/* ---- families ---- */
void bench_gemm(bench *b);
void bench_conv(bench *b);
void bench_attention(bench *b);
void bench_rows(bench *b);
void bench_move(bench *b);
void bench_window(bench *b);
void bench_ladder(bench *b);

/* ---- cuBLASLt, opened at run time ---- */
typedef struct cublas cublas;
cublas *cublas_open(void); /* NULL: not there */
/* C[m][n] = A[m][k] B[n][k] by the best of the library's own suggestions, timed here; false where it has
   none. */
bool cublas_contender(bench *b, cublas *l, int type_in, int type_out, int m, int n, int k,
                      hone_cuda_address a, hone_cuda_address w, hone_cuda_address c, contender *out);
#endif
