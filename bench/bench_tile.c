/* SPDX-License-Identifier: Apache-2.0
   bench_tile: tile code alone, one thread. The fixed cost of a step, and how near to a copy's bandwidth
   whole programs come: bytes that must move (each input read once, each output written once) a second,
   beside memcpy of as much in the same run. The minimum of many runs counts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "loops/tile.h"

typedef struct {
    const char *name, *row;
    int64_t dims[4][4];
    hone_dtype dtype[4];
} program; /* dims: per input, 0 ends */
static const program programs[] = {
    {"five ops",
     "op P 1 (x[I..]: f32) -> y[I..]: f32\n  y[i..] = max(x[i..] * 2 + 1, x[i..]) * x[i..] - 3\n",
     {{4 << 20}},
     {0}},
    {"five ops, in cache",
     "op P 1 (x[I..]: f32) -> y[I..]: f32\n  y[i..] = max(x[i..] * 2 + 1, x[i..]) * x[i..] - 3\n",
     {{1 << 16}},
     {0}},
    {"five ops, 2 inputs",
     "op P 1 (x[I..]: f32, z[I..]: f32) -> y[I..]: f32\n  y[i..] = max(x[i..] * 2 + z[i..], x[i..]) * z[i..] "
     "- 3\n",
     {{4 << 20}, {4 << 20}},
     {0}},
    {"bias and relu",
     "op P 1 (x[N, C]: f32, b[C]: f32) -> y[N, C]: f32\n  y[n, c] = max(x[n, c] + b[c], 0)\n",
     {{4096, 1024}, {1024}},
     {0}},
    {"bias of 64, relu",
     "op P 1 (x[N, C]: f32, b[C]: f32) -> y[N, C]: f32\n  y[n, c] = max(x[n, c] + b[c], 0)\n",
     {{65536, 64}, {64}},
     {0}},
    {"channel scale",
     "op P 1 (x[N, C, H]: f32, b[C]: f32, s[C]: f32) -> y[N, C, H]: f32\n  y[n, c, h] = x[n, c, h] * s[c] + "
     "b[c]\n",
     {{16, 64, 4096}, {64}, {64}},
     {0}},
    {"gelu",
     "op P 1 (x[I..]: f32) -> y[I..]: f32\n  y[i..] = 0.5 * x[i..] * (1 + erf(x[i..] * 0.70710678))\n",
     {{4 << 20}},
     {0}},
    {"silu", "op P 1 (x[I..]: f32) -> y[I..]: f32\n  y[i..] = x[i..] * sigmoid(x[i..])\n", {{4 << 20}}, {0}},
    {"softmax 1000",
     "op P 1 (x[I, K]: f32) -> y[I, K]: f32\n  m[i] = max(k) x[i, k]\n  e[i, k] = exp(x[i, k] - m[i])\n  "
     "s[i] = sum(k) e[i, k]\n  y[i, k] "
     "= e[i, k] / s[i]\n",
     {{1024, 1000}},
     {0}},
    {"layer norm 768",
     "op P 1 (x[I, J]: f32, g[J]: f32, b[J]: f32) -> y[I, J]: f32\n  m[i] = sum(j) x[i, j] / J\n  v[i] = "
     "sum(j) sq(x[i, j] - m[i]) / J\n"
     "  y[i, j] = (x[i, j] - m[i]) * rsqrt(v[i] + 0.00001) * g[j] + b[j]\n",
     {{1024, 768}, {768}, {768}},
     {0}},
    {"sum of columns", "op P 1 (x[I, J]: f32) -> y[J]: f32\n  y[j] = sum(i) x[i, j]\n", {{4096, 1024}}, {0}},
    {"sum of all", "op P 1 (x[I..]: f32) -> y[]: f32\n  y[] = sum(i..) x[i..]\n", {{4 << 20}}, {0}},
    {"transpose", "op P 1 (x[I, J]: f32) -> y[J, I]: f32\n  y[j, i] = x[i, j]\n", {{2048, 2048}}, {0}},
    {"gather rows",
     "op P 1 (x[I, J]: f32, at[K]: i64) -> y[K, J]: f32\n  y[k, j] = x[wrap(at[k], I), j]\n",
     {{5000, 768}, {4096}},
     {0, HONE_DTYPE_I64}},
    {"f16 add",
     "op P 1 (x[I..]: f16, z[I..]: f16) -> y[I..]: f16\n  y[i..] = x[i..] + z[i..]\n",
     {{4 << 20}, {4 << 20}},
     {HONE_DTYPE_F16, HONE_DTYPE_F16}},
    {"matmul 128",
     "op P 1 (x[M, K]: f32, z[K, N]: f32) -> y[M, N]: f32\n  y[m, n] = sum(k) x[m, k] * z[k, n]\n",
     {{128, 128}, {128, 128}},
     {0}},
    {"max pool 3x3",
     "op P 1 (x[C, H, W]: f32) -> y[C, P, Q]: f32\n  P = H / 2\n  Q = W / 2\n  y[c, p, q] = max(a : 3, b : "
     "3) (x[c, 2 * p + a - 1, 2 * q + "
     "b - 1] else -inf)\n",
     {{64, 112, 112}},
     {0}},
    {"one element",
     "op P 1 (x[I..]: f32) -> y[I..]: f32\n  y[i..] = max(x[i..] * 2 + 1, x[i..]) * x[i..] - 3\n",
     {{1}},
     {0}},
    {"one element, sum", "op P 1 (x[I, J]: f32) -> y[I]: f32\n  y[i] = sum(j) x[i, j]\n", {{1, 1}}, {0}},
};

/* This thread's own time: on a busy machine the others' does not count. */
static uint64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static double seconds_of_copy(size_t bytes) {
    char *a = hone_alloc(bytes), *b = hone_alloc(bytes);
    memset(a, 1, bytes), memset(b, 2, bytes);
    uint64_t best = UINT64_MAX;
    for (const uint64_t end = clock_ns() + 100000000; clock_ns() < end;) {
        const uint64_t t = clock_ns();
        memcpy(b, a, bytes);
        __asm__ volatile("" ::"r"(b) : "memory");
        const uint64_t d = clock_ns() - t;
        if (d < best) best = d;
    }
    hone_free(a), hone_free(b);
    return (double)best * 1e-9;
}

static int bench(const program *p) {
    hone_library *library;
    if (hone_library_create(&library) || hone_library_add(library, p->name, p->row, strlen(p->row)))
        return puts(hone_error()), 1;
    const hone_program *row = hone_library_find(library, "", "P");
    hone_arena *arena = hone_arena_create();
    hone_arg arg[8];
    memset(arg, 0, sizeof arg);
    void *data[8] = {0};
    size_t bytes[8] = {0}, moved = 0;
    for (int k = 0; k < row->n_in + row->n_out; k++) {
        arg[k] = (hone_arg){.present = true, .n_content = -1, .rank = -1};
        if (k >= row->n_in) continue;
        arg[k].dtype = p->dtype[k] ? p->dtype[k] : HONE_DTYPE_F32;
        arg[k].dim = p->dims[k], arg[k].rank = 0;
        size_t n = 1;
        while (arg[k].rank < 4 && p->dims[k][arg[k].rank]) n *= (size_t)p->dims[k][arg[k].rank++];
        data[k] = hone_alloc(bytes[k] = n * hone_dtypes[arg[k].dtype].bytes);
        for (size_t i = 0; i < n; i++)
            if (arg[k].dtype == HONE_DTYPE_F32) ((float *)data[k])[i] = (float)(i % 1013) * 0.01f - 5;
            else if (arg[k].dtype == HONE_DTYPE_I64) ((int64_t *)data[k])[i] = (int64_t)(i * 7919 % 4999);
            else ((uint16_t *)data[k])[i] = (uint16_t)(0x3000 + i % 2000);
        moved += bytes[k];
    }
    const hone_call call = {.program = row, .arg = arg};
    const hone_instance *in;
    if (hone_instance_make(arena, &call, &in)) return puts(hone_error()), 1;
    hone_param *param = HONE_NEW_N(arena, hone_param, in->n_param + 1);
    if (hone_instance_solve(in, &call, param)) return puts(hone_error()), 1;
    hone_tensor_view *place = HONE_NEW_N(arena, hone_tensor_view, in->n_tensor + 1);
    void *base[32];
    for (int t = 0; t < in->n_tensor; t++) {
        const hone_tensor *x = in->tensor + t;
        int64_t n = 1;
        for (int d = x->rank - 1; d >= 0; d--) place[t].stride[d] = n, n *= param[x->dim[d]].i;
        const size_t size = (size_t)n * hone_dtypes[x->dtype].bytes;
        base[t] = x->role == HONE_ROLE_IN ? data[x->operand] : hone_alloc(size + 64);
        if (x->role == HONE_ROLE_OUT) moved += size;
    }
    hone_tilecode *code[16];
    size_t room = 0;
    for (int s = 0; s < in->n_stage; s++) {
        if (hone_tilecode_make(arena, in, s, param, place, -1, code + s)) return puts(hone_error()), 1;
        if (hone_tilecode_scratch(code[s]) > room) room = hone_tilecode_scratch(code[s]);
    }
    void *scratch = hone_alloc(room);
    const int times = moved < 4096 ? 10000 : 1;
    uint64_t best = UINT64_MAX;
    for (const uint64_t end = clock_ns() + 300000000; clock_ns() < end;) {
        const uint64_t t = clock_ns();
        for (int n = 0; n < times; n++)
            for (int s = 0; s < in->n_stage; s++)
                if (hone_tilecode_run(code[s], base, 0, hone_tilecode_elements(code[s]), 0, NULL, scratch))
                    return puts(hone_error()), 1;
        const uint64_t d = clock_ns() - t;
        if (d < best) best = d;
    }
    const double s = (double)best * 1e-9 / times;
    if (times > 1) printf("%-20s %8.1f ns\n", p->name, s * 1e9 / in->n_stage);
    else {
        const double copy = seconds_of_copy(moved / 2);
        printf("%-20s %9.4f ms  %6.2f GB/s  %4.0f %% of a copy\n", p->name, s * 1e3, (double)moved / s * 1e-9,
               100 * copy / s);
    }
    for (int t = 0; t < in->n_tensor; t++)
        if (in->tensor[t].role != HONE_ROLE_IN) hone_free(base[t]);
    for (int k = 0; k < row->n_in; k++) hone_free(data[k]);
    hone_free(scratch);
    hone_arena_destroy(arena);
    hone_library_destroy(library);
    return 0;
}

int main(int n, char **names) {
    for (size_t k = 0; k < sizeof programs / sizeof *programs; k++)
        if (n < 2 || strstr(programs[k].name, names[1]))
            if (bench(programs + k)) return 1;
    return 0;
}
