/* SPDX-License-Identifier: Apache-2.0
   cuda: the driver's functions by name, and the few calls that another process's memory needs. Tensors are
   copied between it and where models read and write: models on the device get them from there as any. */
#include "serve/cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char bytes[HONE_SERVE_CUDA_HANDLE];
} ipc_handle; /* as the driver's ABI has it: by value */

/* name in struct, name in the library, arguments */
#define FUNCTIONS(X)                                                      \
    X(init, "cuInit", (unsigned))                                         \
    X(error_text, "cuGetErrorString", (int, const char **))               \
    X(count, "cuDeviceGetCount", (int *))                                 \
    X(device, "cuDeviceGet", (int *, int))                                \
    X(context, "cuDevicePrimaryCtxRetain", (void **, int))                \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", (int))             \
    X(context_push, "cuCtxPushCurrent_v2", (void *))                      \
    X(context_pop, "cuCtxPopCurrent_v2", (void **))                       \
    X(open, "cuIpcOpenMemHandle_v2", (uint64_t *, ipc_handle, unsigned))  \
    X(close, "cuIpcCloseMemHandle", (uint64_t))                           \
    X(range, "cuMemGetAddressRange_v2", (uint64_t *, size_t *, uint64_t)) \
    X(copy_in, "cuMemcpyHtoD_v2", (uint64_t, const void *, size_t))       \
    X(copy_out, "cuMemcpyDtoH_v2", (void *, uint64_t, size_t))
static struct {
#define FIELD(name, symbol, arguments) int(*name) arguments;
    FUNCTIONS(FIELD)
#undef FIELD
} driver;
static bool there;

static void open_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int devices = 0;
    if (!library) return;
#define FIND(name, symbol, arguments)         \
    {                                         \
        void *at = dlsym(library, symbol);    \
        if (!at) return;                      \
        memcpy(&driver.name, &at, sizeof at); \
    }
    FUNCTIONS(FIND)
#undef FIND
    there = !driver.init(0) && !driver.count(&devices) && devices > 0;
}
bool hone_serve_cuda_there(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_driver);
    return there;
}

struct hone_serve_cuda {
    int device;
    void *context;
    uint64_t at, bytes;
};
static const char *said(int rc) {
    const char *text = NULL;
    if (!rc) return NULL;
    return !driver.error_text(rc, &text) && text ? text : "an error of the driver";
}
const char *hone_serve_cuda_open(const uint8_t handle[HONE_SERVE_CUDA_HANDLE], int64_t number, uint64_t bytes,
                                 hone_serve_cuda **out) {
    ipc_handle h;
    int devices = 0;
    if (!hone_serve_cuda_there()) return "GPUs not supported";
    if (driver.count(&devices) || number < 0 || number >= devices) return "there is no device of that number";
    hone_serve_cuda *m = calloc(1, sizeof *m);
    if (!m) return "no memory for a region";
    memcpy(h.bytes, handle, sizeof h.bytes);
    const char *why = said(driver.device(&m->device, (int)number));
    if (!why) why = said(driver.context(&m->context, m->device));
    if (why) {
        free(m);
        return why;
    }
    if (!(why = said(driver.context_push(m->context)))) {
        uint64_t base;
        size_t whole = 0;
        why = said(driver.open(&m->at, h, 1 /* with peers that it needs */));
        /* what is beyond the allocation is nobody's to read */
        if (!why && !(why = said(driver.range(&base, &whole, m->at))) &&
            (bytes == 0 || m->at - base > whole || bytes > whole - (m->at - base)))
            why = "byte_size is more than the memory behind the handle has";
        if (why && m->at) (void)driver.close(m->at);
        (void)driver.context_pop(&(void *){NULL});
    }
    if (why) {
        (void)driver.context_release(m->device);
        free(m);
        return why;
    }
    m->bytes = bytes, *out = m;
    return NULL;
}
static const char *move(hone_serve_cuda *m, uint64_t offset, void *to, const void *from, size_t bytes) {
    if (offset > m->bytes || bytes > m->bytes - offset) return "beyond the region's end";
    if (!bytes) return NULL;
    const char *why = said(driver.context_push(m->context));
    if (why) return why;
    why = said(to ? driver.copy_out(to, m->at + offset, bytes) : driver.copy_in(m->at + offset, from, bytes));
    (void)driver.context_pop(&(void *){NULL});
    return why;
}
const char *hone_serve_cuda_read(hone_serve_cuda *m, uint64_t offset, void *to, size_t bytes) {
    return move(m, offset, to, NULL, bytes);
}
const char *hone_serve_cuda_write(hone_serve_cuda *m, uint64_t offset, const void *from, size_t bytes) {
    return move(m, offset, NULL, from, bytes);
}
void hone_serve_cuda_close(hone_serve_cuda *m) {
    if (!m) return;
    if (!driver.context_push(m->context))
        (void)driver.close(m->at), (void)driver.context_pop(&(void *){NULL});
    (void)driver.context_release(m->device);
    free(m);
}
