/* SPDX-License-Identifier: Apache-2.0
   row: NVIDIA GPUs as a row of the table: printed kernels, compiled by NVRTC, kept on disk as machine code.
   A session has a stream of its own; memory and modules belong to the GPU's primary context, which all
   share. */
#include <stdio.h>
#include <string.h>

#include "device/cuda/driver.h"
#include "device/cuda/nvrtc.h"
#include "device/cuda/own.h"
#include "device/cuda/staging.h"
#include "device/kept.h"
#include "device/printed.h"

static hone_status open_gpu(int number, void **out, hone_kernel_target *target, hone_target *memory) {
    hone_cuda *g = NULL;
    HONE_TRY(hone_cuda_open(number, &g));
    *target = (hone_kernel_target){.lang = HONE_LANG_CUDA,
                                   .f64 = true,
                                   .arg_bytes = 4000,
                                   .wish = {.max_threads = 256, .units = hone_cuda_facts_of(g)->sms}};
    const uint64_t bytes = (uint64_t)1 << HONE_DTYPE_I8 | (uint64_t)1 << HONE_DTYPE_U8,
                   matrix_units = (uint64_t)1 << HONE_DTYPE_F16 | (uint64_t)1 << HONE_DTYPE_BF16 |
                                  (uint64_t)1 << HONE_PRECISION_TF32;
    *memory = (hone_target){.alignment = 256,
                            .channels_last = matrix_units | bytes,
                            .abreast = matrix_units,
                            .floats = matrix_units,
                            .bytes = true};
    *out = g;
    return HONE_OK;
}
static void about(void *gpu, hone_text *t) {
    const hone_cuda_facts *f = hone_cuda_facts_of(gpu);
    int major = 0, minor = 0;
    hone_text_put(t, ", \"name\": ");
    hone_text_json(t, f->name);
    hone_text_put(t, ", \"through\": \"%s, ", f->arch);
    if (hone_nvrtc_version(&major, &minor)) hone_text_put(t, "no NVRTC: nothing can be compiled\"");
    else hone_text_put(t, "NVRTC %d.%d\"", major, minor);
    hone_text_put(t, ", \"memory_bytes\": %llu", (unsigned long long)f->memory_bytes);
}
static hone_status alloc(void *gpu, size_t bytes, void **memory) {
    hone_cuda_address at = 0;
    HONE_TRY(hone_cuda_enter(gpu));
    HONE_TRY(hone_cuda_memory(gpu, bytes, &at));
    *memory = (void *)(uintptr_t)at;
    return HONE_OK;
}
static void give_back(void *gpu, void *memory) {
    if (!hone_cuda_enter(gpu)) hone_cuda_memory_free(gpu, (hone_cuda_address)(uintptr_t)memory);
}

static hone_status compile(void *gpu, const char *text, const char *const *name, int n, const char *cache,
                           void **kernel) {
    const char *arch = hone_cuda_facts_of(gpu)->arch;
    char compiler[40];
    int major = 0, minor = 0;
    size_t bytes = 0;
    (void)!hone_nvrtc_version(&major, &minor);
    snprintf(compiler, sizeof compiler, "NVRTC %d.%d", major, minor);
    const hone_kept kept = hone_kept_name(cache, "cubin", (const char *const[]){text, arch, compiler}, 3);
    void *code = hone_kept_get(&kept, &bytes), *module = NULL;
    if (!code) {
        HONE_TRY(hone_nvrtc_compile_exact(text, "printed", arch, &code, &bytes));
        hone_kept_put(&kept, code, bytes);
    }
    hone_status s = hone_cuda_enter(gpu);
    if (!s) s = hone_cuda_module(gpu, code, &module); /* kept for the process, as its kernels are */
    for (int k = 0; k < n && !s; k++) s = hone_cuda_function(gpu, module, name[k], kernel + k);
    hone_free(code);
    return s;
}

/* ---- queues -------------------------------------------------------------------------------------------- */
typedef struct {
    hone_cuda *gpu; /* the same context, another stream */
    hone_staging staging;
} cuda_queue;
static void close_queue(void *queue) {
    cuda_queue *q = queue;
    if (q->gpu && !hone_cuda_enter(q->gpu)) hone_staging_end(&q->staging), hone_cuda_close(q->gpu);
    hone_free(q);
}
static hone_status open_queue(void *gpu, int number, void **queue) {
    (void)gpu;
    cuda_queue *q = hone_alloc(sizeof *q);
    if (!q) return hone_fail(HONE_NO_MEMORY, "no memory for a GPU's queue");
    hone_status s = hone_cuda_open(number, &q->gpu);
    if (!s) s = hone_staging_begin(q->gpu, &q->staging);
    if (s) close_queue(q);
    else *queue = q;
    return s;
}
static hone_status launch(void *queue, void *kernel, int64_t groups, int threads, const hone_printed_arg *arg,
                          int n) {
    union {
        uint64_t address;
        int64_t i;
        double f;
        float single;
        uint32_t where;
    } value[600];
    void *at[600];
    if (n > 600) return hone_fail(HONE_NOT_SUPPORTED, "a kernel has %d arguments", n);
    for (int k = 0; k < n; k++) {
        const hone_printed_arg *a = arg + k;
        at[k] = value + k;
        switch (a->kind) {
        case HONE_KARG_TENSOR:
        case HONE_KARG_SCRATCH:
        case HONE_KARG_NUMBERS:
        case HONE_KARG_ERROR: value[k].address = (uint64_t)(uintptr_t)a->memory + (uint64_t)a->offset; break;
        case HONE_KARG_F64: value[k].f = a->f; break;
        case HONE_KARG_F32: value[k].single = (float)a->f; break;
        case HONE_KARG_WHERE: value[k].where = (uint32_t)a->i; break;
        case HONE_KARG_OFFSET:
        case HONE_KARG_STEP:
        case HONE_KARG_I64: value[k].i = a->i; break;
        }
    }
    hone_cuda *g = ((cuda_queue *)queue)->gpu;
    HONE_TRY(hone_cuda_enter(g));
    return hone_cuda_launch_in_turn(g, kernel, groups, threads, at);
}
static hone_status launch_own(void *queue, void *kernel, const hone_launch *l, const hone_printed_memory *m) {
    return hone_own_run(((cuda_queue *)queue)->gpu, kernel, l, m);
}
static hone_cuda_address address(void *memory, int64_t at) {
    return (hone_cuda_address)(uintptr_t)memory + (hone_cuda_address)at;
}
static hone_status copy_in(void *queue, void *to, int64_t at, const void *from, size_t bytes) {
    cuda_queue *q = queue;
    HONE_TRY(hone_cuda_enter(q->gpu));
    return hone_staging_send(&q->staging, address(to, at), from, bytes);
}
static hone_status copy_out(void *queue, void *to, void *from, int64_t at, size_t bytes) {
    cuda_queue *q = queue;
    HONE_TRY(hone_cuda_enter(q->gpu));
    return hone_staging_fetch(&q->staging, to, address(from, at), bytes);
}
static hone_status copy(void *queue, void *to, int64_t at, void *from, int64_t from_at, size_t bytes) {
    cuda_queue *q = queue;
    HONE_TRY(hone_cuda_enter(q->gpu));
    return hone_cuda_copy(q->gpu, address(to, at), address(from, from_at), bytes);
}
static hone_status peek(void *queue, void *from, uint32_t *to) {
    cuda_queue *q = queue;
    HONE_TRY(hone_cuda_enter(q->gpu));
    return hone_staging_peek(&q->staging, address(from, 0), to);
}
static hone_status wait_queue(void *queue) {
    cuda_queue *q = queue;
    HONE_TRY(hone_cuda_enter(q->gpu));
    return hone_staging_wait(&q->staging);
}
static hone_status await(void *gpu, int64_t stream) {
    HONE_TRY(hone_cuda_enter(gpu));
    return hone_cuda_await_stream(gpu, stream);
}
static hone_status capture_begin(void *queue) {
    hone_cuda *g = ((cuda_queue *)queue)->gpu;
    HONE_TRY(hone_cuda_enter(g));
    return hone_cuda_record(g);
}
static hone_status capture_end(void *queue, void **graph) {
    return hone_cuda_recorded(((cuda_queue *)queue)->gpu, graph);
}
static hone_status replay(void *queue, void *graph) {
    hone_cuda *g = ((cuda_queue *)queue)->gpu;
    HONE_TRY(hone_cuda_enter(g));
    return hone_cuda_replay(g, graph);
}
static void graph_free(void *queue, void *graph) {
    hone_cuda *g = ((cuda_queue *)queue)->gpu;
    if (!hone_cuda_enter(g)) hone_cuda_graph_free(g, graph);
}
static hone_status time_begin(void *queue) {
    cuda_queue *q = queue;
    HONE_TRY(hone_cuda_enter(q->gpu));
    HONE_TRY(hone_staging_wait(&q->staging)); /* it uses the marks, too */
    return hone_cuda_mark(q->gpu, 0);
}
static hone_status time_end(void *queue, double *seconds) {
    cuda_queue *q = queue;
    HONE_TRY(hone_cuda_mark(q->gpu, 1));
    return hone_cuda_marked(q->gpu, seconds);
}
/* Behind one replay already: how long the GPU takes to begin is not seen. */
static hone_status time_graph(void *queue, void *graph, double *seconds) {
    cuda_queue *q = queue;
    HONE_TRY(hone_cuda_enter(q->gpu));
    HONE_TRY(hone_staging_wait(&q->staging));
    HONE_TRY(hone_cuda_replay(q->gpu, graph));
    HONE_TRY(hone_cuda_mark(q->gpu, 0));
    HONE_TRY(hone_cuda_replay(q->gpu, graph));
    HONE_TRY(hone_cuda_mark(q->gpu, 1));
    return hone_cuda_marked(q->gpu, seconds);
}
static hone_status products(void *gpu, void *queue, hone_dtype precision, double *rate) {
    return hone_own_speed(gpu, ((cuda_queue *)queue)->gpu, precision, rate);
}
static const hone_capture capture = {
    .begin = capture_begin, .end = capture_end, .replay = replay, .free = graph_free};
static const hone_printed_driver driver = {.count = hone_cuda_count,
                                           .open = open_gpu,
                                           .about = about,
                                           .alloc = alloc,
                                           .free = give_back,
                                           .compile = compile,
                                           .queue = open_queue,
                                           .close = close_queue,
                                           .launch = launch,
                                           .copy_in = copy_in,
                                           .copy_out = copy_out,
                                           .copy = copy,
                                           .await = await,
                                           .wait = wait_queue,
                                           .peek = peek,
                                           .capture = &capture,
                                           .own_match = hone_own_match,
                                           .own_take = hone_own_take,
                                           .own_compile = hone_own_compile,
                                           .own_launch = launch_own,
                                           .time_begin = time_begin,
                                           .time_end = time_end,
                                           .time_graph = time_graph,
                                           .products = products};
hone_printed hone_printed_cuda = {
    .row = HONE_PRINTED_ROW("cuda", true,
                            "an NVIDIA GPU and its driver (libcuda.so.1), and NVRTC: the CUDA toolkit's, or "
                            "PyPI's nvidia-cuda-nvrtc",
                            2 /* kDLCUDA */),
    .driver = &driver};
