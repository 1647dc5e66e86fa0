/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/print.h"

/* The driver's own structs, as its ABI has them. */
typedef struct {
    unsigned grid[3], block[3], shared_bytes;
    void *stream;
    struct attribute *attributes;
    unsigned n_attributes;
} launch_config;
struct attribute {
    int id, pad;
    union {
        unsigned cluster[3];
        int flag;
        char room[64];
    } value;
};
_Static_assert(sizeof(launch_config) == 56 && sizeof(struct attribute) == 72,
               "CUlaunchConfig, CUlaunchAttribute");
_Static_assert(sizeof(hone_cuda_tensor_map) == 128, "CUtensorMap");
enum { ATTRIBUTE_CLUSTER = 4, ATTRIBUTE_DEPENDENT = 6 };

/* name in struct, name in the library, arguments */
#define FUNCTIONS(X)                                                                                       \
    X(init, "cuInit", (unsigned))                                                                          \
    X(error_text, "cuGetErrorString", (int, const char **))                                                \
    X(count, "cuDeviceGetCount", (int *))                                                                  \
    X(device, "cuDeviceGet", (int *, int))                                                                 \
    X(device_name, "cuDeviceGetName", (char *, int, int))                                                  \
    X(device_memory, "cuDeviceTotalMem_v2", (size_t *, int))                                               \
    X(device_attribute, "cuDeviceGetAttribute", (int *, int, int))                                         \
    X(context, "cuDevicePrimaryCtxRetain", (void **, int))                                                 \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", (int))                                              \
    X(context_set, "cuCtxSetCurrent", (void *))                                                            \
    X(alloc, "cuMemAlloc_v2", (hone_cuda_address *, size_t))                                               \
    X(pin, "cuMemAllocHost_v2", (void **, size_t))                                                         \
    X(unpin, "cuMemFreeHost", (void *))                                                                    \
    X(fetch, "cuMemcpyDtoHAsync_v2", (void *, hone_cuda_address, size_t, void *))                          \
    X(release, "cuMemFree_v2", (hone_cuda_address))                                                        \
    X(copy_in, "cuMemcpyHtoDAsync_v2", (hone_cuda_address, const void *, size_t, void *))                  \
    X(copy_out, "cuMemcpyDtoH_v2", (void *, hone_cuda_address, size_t))                                    \
    X(copy, "cuMemcpyDtoDAsync_v2", (hone_cuda_address, hone_cuda_address, size_t, void *))                \
    X(fill, "cuMemsetD8Async", (hone_cuda_address, unsigned char, size_t, void *))                         \
    X(module, "cuModuleLoadData", (void **, const void *))                                                 \
    X(module_unload, "cuModuleUnload", (void *))                                                           \
    X(function, "cuModuleGetFunction", (void **, void *, const char *))                                    \
    X(function_attribute, "cuFuncGetAttribute", (int *, int, void *))                                      \
    X(function_set, "cuFuncSetAttribute", (void *, int, int))                                              \
    X(launch, "cuLaunchKernelEx", (const launch_config *, void *, void **, void **))                       \
    X(stream, "cuStreamCreate", (void **, unsigned))                                                       \
    X(stream_destroy, "cuStreamDestroy_v2", (void *))                                                      \
    X(stream_wait, "cuStreamSynchronize", (void *))                                                        \
    X(capture, "cuStreamBeginCapture_v2", (void *, int))                                                   \
    X(capture_end, "cuStreamEndCapture", (void *, void **))                                                \
    X(instantiate, "cuGraphInstantiateWithFlags", (void **, void *, unsigned long long))                   \
    X(graph_launch, "cuGraphLaunch", (void *, void *))                                                     \
    X(graph_destroy, "cuGraphDestroy", (void *))                                                           \
    X(exec_destroy, "cuGraphExecDestroy", (void *))                                                        \
    X(event, "cuEventCreate", (void **, unsigned))                                                         \
    X(event_destroy, "cuEventDestroy_v2", (void *))                                                        \
    X(event_record, "cuEventRecord", (void *, void *))                                                     \
    X(event_wait, "cuEventSynchronize", (void *))                                                          \
    X(event_time, "cuEventElapsedTime", (float *, void *, void *))                                         \
    X(tiled, "cuTensorMapEncodeTiled",                                                                     \
      (void *, int, unsigned, void *, const unsigned long long *, const unsigned long long *,              \
       const unsigned *, const unsigned *, int, int, int, int))                                            \
    X(im2col, "cuTensorMapEncodeIm2col",                                                                   \
      (void *, int, unsigned, void *, const unsigned long long *, const unsigned long long *, const int *, \
       const int *, unsigned, unsigned, const unsigned *, int, int, int, int))
static struct {
#define X(field, name, arguments) int(*field) arguments;
    FUNCTIONS(X)
#undef X
} cu;
static const char *missing; /* the first function that the driver has not; NULL: all there */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void find(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    missing = library ? NULL : "libcuda.so.1";
#define X(field, name, arguments)                  \
    if (library) {                                 \
        void *symbol = dlsym(library, name);       \
        memcpy(&cu.field, &symbol, sizeof symbol); \
        if (!symbol && !missing) missing = name;   \
    }
    FUNCTIONS(X)
#undef X
}

struct hone_cuda {
    int device;
    void *context, *stream, *event[2];
    hone_cuda_facts facts;
};
static hone_status told(int code, const char *what) {
    const char *text = NULL;
    if (!code) return HONE_OK;
    if (cu.error_text(code, &text) || !text) text = "unknown error";
    return hone_fail(code == 2 ? HONE_NO_MEMORY : HONE_IO, "CUDA: %s: %s (%d)", what, text, code);
}
#define ASK(call, what) HONE_TRY(told((call), (what)))

static int attribute(const hone_cuda *g, int which) {
    int v = 0;
    return cu.device_attribute(&v, which, g->device) ? 0 : v;
}
int hone_cuda_count(void) {
    int n = 0;
    pthread_once(&once, find);
    return missing || cu.init(0) || cu.count(&n) ? 0 : n;
}
hone_status hone_cuda_enter(hone_cuda *g) { return told(cu.context_set(g->context), "context"); }
hone_status hone_cuda_open(int ordinal, hone_cuda **out) {
    int n = 0;
    pthread_once(&once, find);
    *out = NULL;
    if (missing)
        return hone_fail(HONE_NOT_SUPPORTED,
                         "no NVIDIA driver that Hone can use is on this machine: %s is missing", missing);
    if (cu.init(0) || cu.count(&n) || ordinal < 0 || ordinal >= n)
        return hone_fail(HONE_NOT_SUPPORTED, "there is no GPU cuda:%d: the driver sees %d", ordinal, n);
    hone_cuda *g = calloc(1, sizeof *g); /* a process may keep it to its end: not counted by hone_alloc */
    if (!g) return hone_fail(HONE_NO_MEMORY, "no memory for a GPU's state");
    hone_status s = told(cu.device(&g->device, ordinal), "device");
    if (!s) s = told(cu.context(&g->context, g->device), "context");
    if (!s) s = told(cu.context_set(g->context), "context");
    if (!s) s = told(cu.stream(&g->stream, 1), "stream");
    for (int k = 0; k < 2 && !s; k++) s = told(cu.event(&g->event[k], 0), "event");
    hone_cuda_facts *f = &g->facts;
    if (!s) s = told(cu.device_name(f->name, sizeof f->name, g->device), "name");
    if (!s) s = told(cu.device_memory(&f->memory_bytes, g->device), "memory");
    if (s) {
        hone_cuda_close(g);
        return s;
    }
    f->sms = attribute(g, 16), f->l2_bytes = attribute(g, 38), f->major = attribute(g, 75),
    f->minor = attribute(g, 76);
    f->shared_bytes = attribute(g, 97);
    snprintf(f->arch, sizeof f->arch, "sm_%d%d%s", f->major, f->minor, f->major >= 9 ? "a" : "");
    *out = g;
    return HONE_OK;
}
void hone_cuda_close(hone_cuda *g) {
    if (!g) return;
    for (int k = 0; k < 2; k++)
        if (g->event[k]) cu.event_destroy(g->event[k]);
    if (g->stream) cu.stream_destroy(g->stream);
    if (g->context) cu.context_release(g->device);
    free(g);
}
const hone_cuda_facts *hone_cuda_facts_of(const hone_cuda *g) { return &g->facts; }
void *hone_cuda_stream(hone_cuda *g) { return g->stream; }

/* ---- memory ---- */
hone_status hone_cuda_memory(hone_cuda *g, size_t bytes, hone_cuda_address *out) {
    (void)g;
    *out = 0;
    return told(cu.alloc(out, bytes ? bytes : 1), "memory");
}
void hone_cuda_memory_free(hone_cuda *g, hone_cuda_address at) {
    (void)g;
    if (at) cu.release(at);
}
hone_status hone_cuda_copy_in(hone_cuda *g, hone_cuda_address to, const void *from, size_t bytes) {
    /* In the stream: the plain call may come back while the last bytes are on their way, and kernels of this
       stream would not wait for them. */
    if (bytes) ASK(cu.copy_in(to, from, bytes, g->stream), "copy to the GPU");
    return hone_cuda_wait(g);
}
hone_status hone_cuda_copy_out(hone_cuda *g, void *to, hone_cuda_address from, size_t bytes) {
    HONE_TRY(hone_cuda_wait(g));
    return bytes ? told(cu.copy_out(to, from, bytes), "copy from the GPU") : HONE_OK;
}
hone_status hone_cuda_pin(hone_cuda *g, size_t bytes, void **out) {
    (void)g;
    *out = NULL;
    return told(cu.pin(out, bytes), "pinned memory");
}
void hone_cuda_unpin(hone_cuda *g, void *at) {
    (void)g;
    if (at) cu.unpin(at);
}
hone_status hone_cuda_send(hone_cuda *g, hone_cuda_address to, const void *from, size_t bytes) {
    return told(cu.copy_in(to, from, bytes, g->stream), "copy to the GPU");
}
hone_status hone_cuda_fetch(hone_cuda *g, void *to, hone_cuda_address from, size_t bytes) {
    return told(cu.fetch(to, from, bytes, g->stream), "copy from the GPU");
}
hone_status hone_cuda_copy(hone_cuda *g, hone_cuda_address to, hone_cuda_address from, size_t bytes) {
    return bytes ? told(cu.copy(to, from, bytes, g->stream), "copy on the GPU") : HONE_OK;
}
hone_status hone_cuda_set(hone_cuda *g, hone_cuda_address at, unsigned char value, size_t bytes) {
    return bytes ? told(cu.fill(at, value, bytes, g->stream), "fill") : HONE_OK;
}

/* ---- kernels ---- */
hone_status hone_cuda_load(hone_cuda *g, const void *cubin, const char *name, int shared_bytes,
                           hone_cuda_kernel *out) {
    *out = (hone_cuda_kernel){0};
    ASK(cu.module(&out->module, cubin), "load of a kernel");
    hone_status s = told(cu.function(&out->function, out->module, name), name);
    if (!s && shared_bytes > 48 * 1024)
        s = told(cu.function_set(out->function, 8, shared_bytes), "shared memory of a block");
    if (!s && shared_bytes > 48 * 1024 && g->facts.major >= 9)
        s = told(cu.function_set(out->function, 14, 1), "a cluster of more than 8 blocks");
    if (!s) s = told(cu.function_attribute(&out->threads, 0, out->function), "threads");
    if (!s) s = told(cu.function_attribute(&out->local_bytes, 3, out->function), "local memory");
    if (!s) s = told(cu.function_attribute(&out->registers, 4, out->function), "registers");
    if (s) hone_cuda_unload(g, out);
    return s;
}
void hone_cuda_unload(hone_cuda *g, hone_cuda_kernel *kernel) {
    (void)g;
    if (kernel->module) cu.module_unload(kernel->module);
    *kernel = (hone_cuda_kernel){0};
}
hone_status hone_cuda_launch(hone_cuda *g, const hone_cuda_kernel *kernel,
                             const hone_cuda_launch_shape *shape, const void *args) {
    struct attribute attributes[] = {
        {.id = ATTRIBUTE_DEPENDENT, .value.flag = 1},
        {.id = ATTRIBUTE_CLUSTER, .value.cluster = {(unsigned)shape->cluster, 1, 1}}};
    launch_config c = {.block = {(unsigned)shape->threads, 1, 1},
                       .shared_bytes = (unsigned)shape->shared_bytes,
                       .stream = g->stream,
                       .attributes = attributes,
                       .n_attributes = shape->cluster > 1 ? 2 : 1};
    for (int k = 0; k < 3; k++) c.grid[k] = (unsigned)shape->grid[k];
    if (g->facts.major < 9) c.attributes = NULL, c.n_attributes = 0;
    union {
        const void *given;
        void *taken; /* the driver only reads */
    } arguments = {.given = args};
    return told(cu.launch(&c, kernel->function, &arguments.taken, NULL), "launch");
}
hone_status hone_cuda_module(hone_cuda *g, const void *cubin, void **module) {
    (void)g;
    return told(cu.module(module, cubin), "load of kernels");
}
hone_status hone_cuda_function(hone_cuda *g, void *module, const char *name, void **function) {
    (void)g;
    return told(cu.function(function, module, name), name);
}
hone_status hone_cuda_launch_in_turn(hone_cuda *g, void *function, int64_t groups, int threads, void **args) {
    /* each of them begins with HONE_BEGIN, which waits */
    struct attribute early = {.id = ATTRIBUTE_DEPENDENT, .value.flag = 1};
    const launch_config c = {.grid = {(unsigned)groups, 1, 1},
                             .block = {(unsigned)threads, 1, 1},
                             .stream = g->stream,
                             .attributes = g->facts.major < 9 ? NULL : &early,
                             .n_attributes = g->facts.major < 9 ? 0 : 1};
    return told(cu.launch(&c, function, args, NULL), "launch");
}
hone_status hone_cuda_wait(hone_cuda *g) { return told(cu.stream_wait(g->stream), "a kernel"); }

/* ---- graphs and time ---- */
hone_status hone_cuda_record(hone_cuda *g) { return told(cu.capture(g->stream, 2), "recording"); }
hone_status hone_cuda_recorded(hone_cuda *g, void **graph) {
    void *recorded = NULL;
    *graph = NULL;
    ASK(cu.capture_end(g->stream, &recorded), "recording");
    const hone_status s = told(cu.instantiate(graph, recorded, 0), "a graph");
    cu.graph_destroy(recorded);
    return s;
}
hone_status hone_cuda_replay(hone_cuda *g, void *graph) {
    return told(cu.graph_launch(graph, g->stream), "a graph");
}
void hone_cuda_graph_free(hone_cuda *g, void *graph) {
    (void)g;
    if (graph) cu.exec_destroy(graph);
}
hone_status hone_cuda_mark(hone_cuda *g, int which) {
    return told(cu.event_record(g->event[which], g->stream), "event");
}
hone_status hone_cuda_marked(hone_cuda *g, double *seconds) {
    float ms = 0;
    ASK(cu.event_wait(g->event[1]), "a kernel");
    ASK(cu.event_time(&ms, g->event[0], g->event[1]), "event");
    *seconds = (double)ms * 1e-3;
    return HONE_OK;
}

hone_status hone_cuda_await_stream(hone_cuda *g, int64_t stream) {
    (void)g;
    return told(cu.stream_wait((void *)(uintptr_t)stream), "a stream of somebody else's");
}
hone_status hone_cuda_await(hone_cuda *g, int which) {
    return told(cu.event_wait(g->event[which]), "a copy");
}

/* ---- tensor maps ---- */
static const struct {
    int type, bytes;
} elements[] = {[HONE_CUDA_F16] = {6, 2}, [HONE_CUDA_BF16] = {9, 2}, [HONE_CUDA_F32] = {7, 4},
                [HONE_CUDA_S8] = {0, 1},  [HONE_CUDA_S32] = {3, 4},  [HONE_CUDA_U8] = {0, 1}};
enum { SWIZZLE_128 = 3, PROMOTE_256 = 3 };
hone_status hone_cuda_tiled(hone_cuda *g, hone_cuda_tensor_map *map, int type, int rank, hone_cuda_address at,
                            const long long *extent, const long long *stride_bytes, const int *box) {
    unsigned long long extents[5], strides[4];
    unsigned boxes[5];
    (void)g;
    for (int k = 0; k < rank; k++) extents[k] = (unsigned long long)extent[k], boxes[k] = (unsigned)box[k];
    for (int k = 0; k < rank - 1; k++) strides[k] = (unsigned long long)stride_bytes[k];
    return told(cu.tiled(map, elements[type].type, (unsigned)rank, (void *)(uintptr_t)at, extents, strides,
                         boxes, (const unsigned[]){1, 1, 1, 1, 1}, 0, SWIZZLE_128, PROMOTE_256, 0),
                "a tensor map");
}
hone_status hone_cuda_im2col(hone_cuda *g, hone_cuda_tensor_map *map, int type, const hone_cuda_window *w,
                             int channels, int pixels) {
    const unsigned long long bytes = (unsigned long long)elements[type].bytes,
                             c = (unsigned long long)w->channels;
    const unsigned long long extents[4] = {c, (unsigned long long)w->width, (unsigned long long)w->height,
                                           (unsigned long long)w->batch};
    const unsigned long long strides[3] = {c * bytes, c * bytes * extents[1],
                                           c * bytes * extents[1] * extents[2]};
    /* where the first window begins, and the last, from the image's last pixel */
    const int low[2] = {-w->pad_x, -w->pad_y};
    const int high[2] = {(w->out_width - 1) * w->stride_x - w->pad_x - (w->width - 1),
                         (w->out_height - 1) * w->stride_y - w->pad_y - (w->height - 1)};
    const unsigned steps[4] = {1, (unsigned)w->stride_x, (unsigned)w->stride_y, 1};
    (void)g;
    return told(cu.im2col(map, elements[type].type, 4, (void *)(uintptr_t)w->x, extents, strides, low, high,
                          (unsigned)channels, (unsigned)pixels, steps, 0, SWIZZLE_128, PROMOTE_256, 0),
                "a tensor map of windows");
}
