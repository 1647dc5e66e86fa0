/* SPDX-License-Identifier: Apache-2.0 */
#include "device/opencl/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/kept.h"

/* name in struct, name in the library, result, arguments; OpenCL 1.2's ABI */
typedef uint64_t bits;
#define FUNCTIONS(X)                                                                                      \
    X(platforms, "clGetPlatformIDs", int, (unsigned, void **, unsigned *))                                \
    X(platform_info, "clGetPlatformInfo", int, (void *, unsigned, size_t, void *, size_t *))              \
    X(devices, "clGetDeviceIDs", int, (void *, bits, unsigned, void **, unsigned *))                      \
    X(device_info, "clGetDeviceInfo", int, (void *, unsigned, size_t, void *, size_t *))                  \
    X(context, "clCreateContext", void *,                                                                 \
      (const intptr_t *, unsigned, void *const *, void *, void *, int *))                                 \
    X(context_free, "clReleaseContext", int, (void *))                                                    \
    X(queue, "clCreateCommandQueue", void *, (void *, void *, bits, int *))                               \
    X(queue_free, "clReleaseCommandQueue", int, (void *))                                                 \
    X(buffer, "clCreateBuffer", void *, (void *, bits, size_t, void *, int *))                            \
    X(buffer_free, "clReleaseMemObject", int, (void *))                                                   \
    X(write, "clEnqueueWriteBuffer", int,                                                                 \
      (void *, void *, unsigned, size_t, size_t, const void *, unsigned, void *const *, void **))         \
    X(read, "clEnqueueReadBuffer", int,                                                                   \
      (void *, void *, unsigned, size_t, size_t, void *, unsigned, void *const *, void **))               \
    X(copy, "clEnqueueCopyBuffer", int,                                                                   \
      (void *, void *, void *, size_t, size_t, size_t, unsigned, void *const *, void **))                 \
    X(program, "clCreateProgramWithSource", void *,                                                       \
      (void *, unsigned, const char **, const size_t *, int *))                                           \
    X(program_binary, "clCreateProgramWithBinary", void *,                                                \
      (void *, unsigned, void *const *, const size_t *, const unsigned char **, int *, int *))            \
    X(program_info, "clGetProgramInfo", int, (void *, unsigned, size_t, void *, size_t *))                \
    X(program_free, "clReleaseProgram", int, (void *))                                                    \
    X(build, "clBuildProgram", int, (void *, unsigned, void *const *, const char *, void *, void *))      \
    X(build_info, "clGetProgramBuildInfo", int, (void *, void *, unsigned, size_t, void *, size_t *))     \
    X(kernel, "clCreateKernel", void *, (void *, const char *, int *))                                    \
    X(kernel_free, "clReleaseKernel", int, (void *))                                                      \
    X(argument, "clSetKernelArg", int, (void *, unsigned, size_t, const void *))                          \
    X(launch, "clEnqueueNDRangeKernel", int,                                                              \
      (void *, void *, unsigned, const size_t *, const size_t *, const size_t *, unsigned, void *const *, \
       void **))                                                                                          \
    X(finish, "clFinish", int, (void *))                                                                  \
    X(event_wait, "clWaitForEvents", int, (unsigned, void *const *))                                      \
    X(event_time, "clGetEventProfilingInfo", int, (void *, unsigned, size_t, void *, size_t *))           \
    X(event_free, "clReleaseEvent", int, (void *))
static struct {
#define X(name, symbol, result, arguments) result(*name) arguments;
    FUNCTIONS(X)
#undef X
} cl;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *missing;

static void find(void) {
    static const char *const names[] = {"libOpenCL.so.1", "libOpenCL.so"};
    void *library = NULL;
    for (size_t k = 0; k < sizeof names / sizeof *names && !library; k++)
        library = dlopen(names[k], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        missing = names[0];
        return;
    }
    const struct {
        void *to;
        const char *name;
    } wanted[] = {
#define X(name, symbol, result, arguments) {&cl.name, symbol},
        FUNCTIONS(X)
#undef X
    };
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted && !missing; k++) {
        void *symbol = dlsym(library, wanted[k].name);
        if (!symbol) missing = wanted[k].name;
        memcpy(wanted[k].to, &symbol, sizeof symbol);
    }
}
enum { /* OpenCL's numbers */
       DEVICE_ALL = 0xffffffff,
       TYPE_GPU = 4,
       PROGRAM_BINARY_SIZES = 0x1165,
       PROGRAM_BINARIES = 0x1166,
       BUILD_LOG = 0x1183,
       EVENT_START = 0x1282,
       EVENT_END = 0x1283
};
struct hone_opencl {
    void *device, *context, *queue;
    hone_opencl_facts facts;
};
struct hone_opencl_program {
    hone_opencl *on;
    void *program;
};
static const struct {
    int code;
    const char *text;
} errors[] = {{-4, "no device memory of that size"},
              {-5, "the device is out of resources"},
              {-6, "out of host memory"},
              {-11, "a program does not compile"},
              {-36, "the queue is lost"},
              {-45, "the program was not built"},
              {-46, "there is no such kernel"},
              {-51, "an argument has another size"},
              {-52, "an argument is missing"},
              {-54, "a work-group of that size is not possible"},
              {-61, "a buffer of that size is not possible"},
              {-63, "a grid of that size is not possible"}};
static hone_status told(int code, const char *what) {
    if (!code) return HONE_OK;
    const char *text = "error";
    for (size_t k = 0; k < sizeof errors / sizeof *errors; k++)
        if (errors[k].code == code) text = errors[k].text;
    return hone_fail(code == -4 || code == -6 || code == -61 ? HONE_NO_MEMORY : HONE_IO,
                     "OpenCL: %s: %s (%d)", what, text, code);
}
#define ASK(call, what) HONE_TRY(told((call), (what)))

/* ---- devices ---- */
static int list(void **device, void **platform, int room) {
    void *p[16];
    unsigned n = 0, each = 0;
    int count = 0;
    if (cl.platforms(16, p, &n)) return 0;
    for (unsigned k = 0; k < n && k < 16; k++) {
        void *d[16];
        if (cl.devices(p[k], DEVICE_ALL, 16, d, &each)) continue;
        for (unsigned q = 0; q < each && q < 16; q++, count++)
            if (count < room) device[count] = d[q], platform[count] = p[k];
    }
    return count;
}
int hone_opencl_count(void) {
    void *device[64], *platform[64];
    pthread_once(&once, find);
    return missing ? 0 : list(device, platform, 64);
}
static uint64_t number(void *device, unsigned which) {
    uint64_t v = 0;
    return cl.device_info(device, which, sizeof v, &v, NULL) ? 0 : v;
}
static void words(void *device, unsigned which, char *to, size_t room) {
    if (cl.device_info(device, which, room, to, NULL)) to[0] = 0;
    to[room - 1] = 0;
}
static void look(void *device, void *platform, hone_opencl_facts *f) {
    char extensions[8192] = "";
    words(device, 0x102b, f->name, sizeof f->name), words(device, 0x102f, f->version, sizeof f->version);
    words(device, 0x102d, f->driver, sizeof f->driver), words(device, 0x1030, extensions, sizeof extensions);
    if (cl.platform_info(platform, 0x0902, sizeof f->platform, f->platform, NULL)) f->platform[0] = 0;
    f->gpu = (number(device, 0x1000) & TYPE_GPU) != 0;
    f->f64 = number(device, 0x1032) != 0 || strstr(extensions, "cl_khr_fp64"),
    f->f16 = strstr(extensions, "cl_khr_fp16") != NULL;
    f->exact_division = (number(device, 0x101b) & 128) != 0;
    f->little_endian = number(device, 0x1026) != 0;
    f->units = (int)number(device, 0x1002), f->max_threads = (int)number(device, 0x1004),
    f->arg_bytes = (int)number(device, 0x1017);
    f->alignment = (int)number(device, 0x1019) / 8;
    f->largest_bytes = number(device, 0x1010), f->memory_bytes = number(device, 0x101f),
    f->shared_bytes = number(device, 0x1023);
    if (f->units < 1) f->units = 1;
    if (f->arg_bytes < 256) f->arg_bytes = 256;
}
hone_status hone_opencl_open(int ordinal, hone_opencl **out) {
    void *device[64], *platform[64];
    int code = 0;
    *out = NULL;
    pthread_once(&once, find);
    if (missing)
        return hone_fail(HONE_NOT_SUPPORTED,
                         "no OpenCL loader that Hone can use is on this machine: %s is missing", missing);
    const int n = list(device, platform, 64);
    if (ordinal < 0 || ordinal >= n || ordinal >= 64)
        return hone_fail(HONE_NOT_SUPPORTED, "there is no device opencl:%d: the loader sees %d", ordinal, n);
    hone_opencl *g = calloc(1, sizeof *g); /* a process may keep it to its end: not counted by hone_alloc */
    if (!g) return hone_fail(HONE_NO_MEMORY, "no memory for a device's state");
    g->device = device[ordinal];
    look(g->device, platform[ordinal], &g->facts);
    const intptr_t properties[] = {0x1084, (intptr_t)platform[ordinal], 0};
    g->context = cl.context(properties, 1, &g->device, NULL, NULL, &code);
    hone_status s = told(g->context ? 0 : code, "a context");
    if (!s) {
        g->queue = cl.queue(g->context, g->device, 2 /* profiling; in order */, &code);
        s = told(g->queue ? 0 : code, "a queue");
    }
    if (s) {
        hone_opencl_close(g);
        return s;
    }
    *out = g;
    return HONE_OK;
}
void hone_opencl_close(hone_opencl *g) {
    if (!g) return;
    if (g->queue) cl.finish(g->queue), cl.queue_free(g->queue);
    if (g->context) cl.context_free(g->context);
    free(g);
}
const hone_opencl_facts *hone_opencl_facts_of(const hone_opencl *g) { return &g->facts; }

/* ---- memory ---- */
hone_status hone_opencl_memory_make(hone_opencl *g, uint64_t bytes, hone_opencl_memory **out) {
    int code = 0;
    *out =
        (hone_opencl_memory *)cl.buffer(g->context, 1 /* read and write */, bytes ? bytes : 1, NULL, &code);
    return told(*out ? 0 : code, "memory");
}
void hone_opencl_memory_free(hone_opencl *g, hone_opencl_memory *m) {
    (void)g;
    if (m) cl.buffer_free(m);
}
hone_status hone_opencl_copy_in(hone_opencl *g, hone_opencl_memory *to, uint64_t at, const void *from,
                                uint64_t bytes) {
    return bytes ? told(cl.write(g->queue, to, 1, at, bytes, from, 0, NULL, NULL), "copy to the device")
                 : HONE_OK;
}
hone_status hone_opencl_copy_out(hone_opencl *g, void *to, hone_opencl_memory *from, uint64_t at,
                                 uint64_t bytes) {
    return bytes ? told(cl.read(g->queue, from, 1, at, bytes, to, 0, NULL, NULL), "copy from the device")
                 : HONE_OK;
}
hone_status hone_opencl_copy(hone_opencl *g, hone_opencl_memory *to, uint64_t to_at, hone_opencl_memory *from,
                             uint64_t at, uint64_t bytes) {
    return bytes ? told(cl.copy(g->queue, from, to, at, to_at, bytes, 0, NULL, NULL), "copy on the device")
                 : HONE_OK;
}

/* ---- programs ---- */
static bool from_kept(hone_opencl_program *p, const hone_kept *kept, const char *options) {
    size_t bytes = 0;
    unsigned char *code = hone_kept_get(kept, &bytes);
    const unsigned char *at = code;
    int error = 0, status = 0;
    if (!code) return false;
    p->program = cl.program_binary(p->on->context, 1, &p->on->device, &bytes, &at, &status, &error);
    bool good =
        p->program && !error && !status && !cl.build(p->program, 1, &p->on->device, options, NULL, NULL);
    if (!good && p->program) cl.program_free(p->program), p->program = NULL;
    hone_free(code);
    return good;
}
static void to_kept(const hone_opencl_program *p, const hone_kept *kept) {
    size_t bytes = 0;
    if (!kept->path[0] || cl.program_info(p->program, PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) ||
        !bytes)
        return;
    unsigned char *code = hone_alloc(bytes);
    if (code && !cl.program_info(p->program, PROGRAM_BINARIES, sizeof code, &code, NULL))
        hone_kept_put(kept, code, bytes);
    hone_free(code);
}
static hone_status compile(hone_opencl_program *p, const char *text, const char *options) {
    int code = 0;
    p->program = cl.program(p->on->context, 1, &text, NULL, &code);
    if (!p->program) return told(code, "a program");
    code = cl.build(p->program, 1, &p->on->device, options, NULL, NULL);
    if (!code) return HONE_OK;
    char log[1500] = "";
    size_t n = 0;
    char *whole = NULL;
    if (!cl.build_info(p->program, p->on->device, BUILD_LOG, 0, NULL, &n) && n &&
        (whole = hone_alloc(n + 1)) && !cl.build_info(p->program, p->on->device, BUILD_LOG, n, whole, NULL))
        snprintf(log, sizeof log, "%s", whole);
    hone_free(whole);
    return hone_fail(HONE_BUG, "an OpenCL program does not compile for %s (%d): %.900s", p->on->facts.name,
                     code, log);
}
hone_status hone_opencl_build(hone_opencl *g, const char *text, const char *cache,
                              hone_opencl_program **out) {
    const char *options = g->facts.exact_division ? "-w -cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
                                                  : "-w -cl-std=CL1.2";
    hone_opencl_program *p = calloc(1, sizeof *p);
    *out = NULL;
    if (!p) return hone_fail(HONE_NO_MEMORY, "no memory for a program");
    p->on = g;
    const hone_kept kept =
        hone_kept_name(cache, "clbin",
                       (const char *const[]){text, options, g->facts.name, g->facts.platform,
                                             g->facts.version, g->facts.driver},
                       6);
    const bool cached = from_kept(p, &kept, options);
    hone_status s = cached ? HONE_OK : compile(p, text, options);
    if (!s && !cached) to_kept(p, &kept);
    if (s) hone_opencl_program_free(p);
    else *out = p;
    return s;
}
void hone_opencl_program_free(hone_opencl_program *p) {
    if (p && p->program) cl.program_free(p->program);
    free(p);
}
hone_status hone_opencl_kernel_make(hone_opencl_program *p, const char *name, hone_opencl_kernel **out) {
    int code = 0;
    *out = (hone_opencl_kernel *)cl.kernel(p->program, name, &code);
    return told(*out ? 0 : code, name);
}
void hone_opencl_kernel_free(hone_opencl_kernel *k) {
    if (k) cl.kernel_free(k);
}
hone_status hone_opencl_set(hone_opencl_kernel *kernel, int k, uint64_t bytes, const void *value) {
    return told(cl.argument(kernel, (unsigned)k, bytes, value), "an argument");
}
hone_status hone_opencl_set_memory(hone_opencl_kernel *kernel, int k, hone_opencl_memory *m) {
    return told(cl.argument(kernel, (unsigned)k, sizeof m, &m), "an argument");
}
hone_status hone_opencl_launch(hone_opencl *g, hone_opencl_kernel *kernel, uint64_t groups, int threads,
                               double *seconds) {
    const size_t local = (size_t)threads, global = (size_t)groups * local;
    void *event = NULL;
    ASK(cl.launch(g->queue, kernel, 1, NULL, &global, &local, 0, NULL, seconds ? &event : NULL), "launch");
    if (!seconds) return HONE_OK;
    uint64_t start = 0, end = 0;
    hone_status s = told(cl.event_wait(1, &event), "a kernel");
    if (!s) s = told(cl.event_time(event, EVENT_START, sizeof start, &start, NULL), "time");
    if (!s) s = told(cl.event_time(event, EVENT_END, sizeof end, &end, NULL), "time");
    cl.event_free(event);
    *seconds = (double)(end - start) * 1e-9;
    return s;
}
hone_status hone_opencl_wait(hone_opencl *g) { return told(cl.finish(g->queue), "a kernel"); }
