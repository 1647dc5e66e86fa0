/* SPDX-License-Identifier: Apache-2.0
   row: OpenCL devices as a row of the table: printed kernels through the ICD loader. A device has one queue,
   which its sessions share: a kernel's arguments are set and launched under its lock. */
#include <pthread.h>

#include "device/opencl/driver.h"
#include "device/printed.h"

typedef struct {
    hone_opencl *device;
    pthread_mutex_t lock;
    bool timing; /* of what is launched now, whoever launches it */
    double seconds;
} gpu;

static hone_status open_gpu(int number, void **out, hone_kernel_target *target, hone_target *memory) {
    static gpu all[HONE_MOST_PRINTED]; /* opened once each, by printed.c */
    gpu *g = all + number;
    HONE_TRY(hone_opencl_open(number, &g->device));
    const hone_opencl_facts *f = hone_opencl_facts_of(g->device);
    *target = (hone_kernel_target){.lang = HONE_LANG_OPENCL,
                                   .f64 = f->f64,
                                   .arg_bytes = f->arg_bytes,
                                   .wish = {.max_threads = f->max_threads < 256 ? f->max_threads : 256,
                                            .units = f->units,
                                            .blocks = f->gpu ? HONE_BLOCKS_GPU : HONE_BLOCKS_CPU}};
    *memory = (hone_target){.alignment = (size_t)f->alignment, .largest = (size_t)f->largest_bytes};
    pthread_mutex_init(&g->lock, NULL);
    *out = g;
    return HONE_OK;
}
static void about(void *at, hone_text *t) {
    const hone_opencl_facts *f = hone_opencl_facts_of(((gpu *)at)->device);
    hone_text_put(t, ", \"name\": ");
    hone_text_json(t, f->name);
    hone_text_put(t, ", \"through\": ");
    hone_text_json(t, f->version);
    hone_text_put(t, ", \"memory_bytes\": %llu", (unsigned long long)f->memory_bytes);
}
static hone_status alloc(void *at, size_t bytes, void **memory) {
    gpu *g = at;
    hone_opencl_memory *m = NULL;
    HONE_TRY(hone_opencl_memory_make(g->device, bytes ? bytes : 1, &m));
    *memory = m;
    return HONE_OK;
}
static void give_back(void *at, void *memory) { hone_opencl_memory_free(((gpu *)at)->device, memory); }
static hone_status compile(void *at, const char *text, const char *const *name, int n, const char *cache,
                           void **kernel) {
    hone_opencl_program *program = NULL;
    HONE_TRY(hone_opencl_build(((gpu *)at)->device, text, cache, &program));
    hone_status s = HONE_OK;
    for (int k = 0; k < n && !s; k++) {
        hone_opencl_kernel *made = NULL;
        s = hone_opencl_kernel_make(program, name[k], &made);
        kernel[k] = made;
    }
    hone_opencl_program_free(program); /* its kernels, which are kept for the process, hold it */
    return s;
}
static hone_status open_queue(void *at, int number, void **queue) {
    (void)number;
    *queue = at;
    return HONE_OK;
}
static void close_queue(void *queue) { (void)queue; }
static hone_status set(void *kernel, int k, const hone_printed_arg *a) {
    const float single = (float)a->f;
    const uint32_t where = (uint32_t)a->i;
    switch (a->kind) {
    case HONE_KARG_TENSOR:
    case HONE_KARG_SCRATCH:
    case HONE_KARG_NUMBERS:
    case HONE_KARG_ERROR: return hone_opencl_set_memory(kernel, k, a->memory);
    case HONE_KARG_F64: return hone_opencl_set(kernel, k, sizeof a->f, &a->f);
    case HONE_KARG_F32: return hone_opencl_set(kernel, k, sizeof single, &single);
    case HONE_KARG_WHERE: return hone_opencl_set(kernel, k, sizeof where, &where);
    case HONE_KARG_OFFSET:
    case HONE_KARG_STEP:
    case HONE_KARG_I64: return hone_opencl_set(kernel, k, sizeof a->i, &a->i);
    }
    return HONE_OK;
}
static hone_status launch(void *queue, void *kernel, int64_t groups, int threads, const hone_printed_arg *arg,
                          int n) {
    gpu *g = queue;
    hone_status s = HONE_OK;
    pthread_mutex_lock(&g->lock);
    for (int k = 0; k < n && !s; k++) s = set(kernel, k, arg + k);
    double seconds = 0;
    if (!s) s = hone_opencl_launch(g->device, kernel, (uint64_t)groups, threads, g->timing ? &seconds : NULL);
    g->seconds += seconds;
    pthread_mutex_unlock(&g->lock);
    return s;
}
static hone_status copy_in(void *queue, void *to, int64_t at, const void *from, size_t bytes) {
    return bytes ? hone_opencl_copy_in(((gpu *)queue)->device, to, (uint64_t)at, from, bytes) : HONE_OK;
}
static hone_status copy_out(void *queue, void *to, void *from, int64_t at, size_t bytes) {
    return bytes ? hone_opencl_copy_out(((gpu *)queue)->device, to, from, (uint64_t)at, bytes) : HONE_OK;
}
static hone_status copy(void *queue, void *to, int64_t at, void *from, int64_t from_at, size_t bytes) {
    return hone_opencl_copy(((gpu *)queue)->device, to, (uint64_t)at, from, (uint64_t)from_at, bytes);
}
static hone_status wait_queue(void *queue) { return hone_opencl_wait(((gpu *)queue)->device); }
/* Kernels alone, by their events: what lies between them is not in it. */
static hone_status time_begin(void *queue) {
    gpu *g = queue;
    pthread_mutex_lock(&g->lock);
    g->timing = true, g->seconds = 0;
    pthread_mutex_unlock(&g->lock);
    return HONE_OK;
}
static hone_status time_end(void *queue, double *seconds) {
    gpu *g = queue;
    pthread_mutex_lock(&g->lock);
    *seconds = g->seconds, g->timing = false;
    pthread_mutex_unlock(&g->lock);
    return hone_opencl_wait(g->device);
}
static const hone_printed_driver driver = {.count = hone_opencl_count,
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
                                           .wait = wait_queue,
                                           .time_begin = time_begin,
                                           .time_end = time_end};
hone_printed hone_printed_opencl = {
    .row = HONE_PRINTED_ROW("opencl", false,
                            "an OpenCL loader (ocl-icd-libopencl1) and a driver: the GPU vendor's, or "
                            "pocl-opencl-icd, which computes on the CPU",
                            0),
    .driver = &driver};
