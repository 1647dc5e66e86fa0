/* SPDX-License-Identifier: Apache-2.0
   cuda: what tests of CUDA kernels share: a kernel's text compiled for the CPU and run there (emulate.h),
   operands that end where their page ends, numbers of every type. */
#ifndef HONE_TESTS_CUDA_H
#define HONE_TESTS_CUDA_H
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/dtype.h"
#include "device/cuda/nvrtc.h"
#include "device/cuda/print.h"
#include "random.h"

typedef const char *emulate_fn(void (*)(const void *), const void *, const int grid[3], int cluster,
                               int threads, uint32_t seed);
typedef struct {
    char *text; /* equal texts are compiled once */
    emulate_fn *emulate;
    void (*kernel)(const void *);
    int threads;
} emulated;
static char folder[64];
static emulated kernels[100];
static int made;
static bool works;

static int by_nvrtc_count;
static inline int set_up(void **state) {
    (void)state;
    const char *t = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.40s/hone-cuda-XXXXXX", t ? t : "/tmp");
    if (!mkdtemp(folder)) return -1;
    /* what the system's compiler makes may be for another machine than this test: then all is skipped */
    char command[256], path[80];
    snprintf(command, sizeof command,
             "echo 'int probe;' | cc -x c -shared -fPIC -o %s/probe.so - > /dev/null 2>&1", folder);
    snprintf(path, sizeof path, "%s/probe.so", folder);
    void *probe = system(command) ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
#ifdef __SANITIZE_ADDRESS__ /* what is emulated is not instrumented: once is enough */
    works = false;
#else
    works = probe != NULL;
#endif
    if (probe) dlclose(probe);
    return 0;
}
static inline int tear_down(void **state) {
    (void)state;
    for (int k = 0; k < made; k++) hone_free(kernels[k].text);
    if (by_nvrtc_count) print_message("%d compilations by NVRTC\n", by_nvrtc_count);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) ? -1 : 0;
}
/* With HONE_TEST_NVRTC=1, where NVRTC is: every kernel that is run here also compiles for the architectures
   it is meant for. */
static inline void by_nvrtc(const char *source, const char *family) {
    static const char *const archs[] = {"sm_90a", "sm_80", "sm_100a"};
    if (!getenv("HONE_TEST_NVRTC")) return;
    for (int k = 0; k < (strstr(family, "wgmma") ? 1 : 3); k++) { /* wgmma is sm_90a's alone */
        void *cubin = NULL;
        size_t bytes = 0;
        if (hone_nvrtc_compile(source, family, archs[k], &cubin, &bytes)) fail_msg("%s", hone_fail_text());
        if (*hone_nvrtc_remark()) fail_msg("%s for %s: %s", family, archs[k], hone_nvrtc_remark());
        assert_true(bytes > 1000 && !memcmp(cubin, "\177ELF", 4));
        hone_free(cubin), by_nvrtc_count++;
    }
}
/* takes the text */
static inline emulated compile_text(hone_text text, const char *family, const char *name) {
    char path[128], command[1024];
    /* beside the emulated GPU lies emulate.h compiled before, which the system's C compiler may take */
    const char *gpu = getenv("HONE_EMULATED_GPU"), *end = gpu ? strrchr(gpu, '/') : NULL,
               *source = getenv("HONE_SOURCE_DIR");
    for (int k = 0; k < made; k++)
        if (!strcmp(kernels[k].text, text.text)) {
            hone_text_free(&text);
            return kernels[k];
        }
    by_nvrtc(text.text, family);
    snprintf(path, sizeof path, "%s/k%d.c", folder, made);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "#include \"emulate.h\"\n%s", text.text);
    assert_int_equal(fclose(f), 0);
    snprintf(command, sizeof command,
             "cc -O0 -std=gnu11 -Wall -Wno-unused -Wno-uninitialized -Wno-maybe-uninitialized -Werror "
             "-shared -fPIC -I '%.*s' -I '%s/tests' -o %s/k%d.so %s -lm > "
             "%s/log 2>&1 || "
             "{ head -20 %s/log; false; }",
             end ? (int)(end - gpu) : 1, end ? gpu : ".", source ? source : "..", folder, made, path, folder,
             folder);
    if (system(command)) fail_msg("%s: the kernel does not compile", family);
    snprintf(path, sizeof path, "%s/k%d.so", folder, made);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    emulated e = {.text = text.text};
    if (!library) fail_msg("%s", dlerror());
    char symbol[64];
    snprintf(symbol, sizeof symbol, "%s_threads", name);
    *(void **)&e.emulate = dlsym(library, "hone_emulate");
    *(void **)&e.kernel = dlsym(library, name);
    const int *threads = dlsym(library, symbol);
    assert_true(e.emulate && e.kernel && threads);
    e.threads = *threads;
    assert_true(made < 100);
    return kernels[made++] = e;
}
static inline emulated compile(const char *family, const char *name, const hone_cuda_fill *fill, int n) {
    hone_text text = {0};
    if (hone_cuda_print(&text, family, fill, n)) fail_msg("%s", hone_fail_text());
    return compile_text(text, family, name);
}
static inline void run_clusters(const emulated *e, const void *args, int cluster, int x, int y, int z) {
    static uint32_t seed = 1;
    const char *wrong = e->emulate(e->kernel, args, (int[]){x, y, z}, cluster, e->threads, seed++);
    if (wrong) fail_msg("%s", wrong);
}
static inline void run(const emulated *e, const void *args, int x, int y, int z) {
    run_clusters(e, args, 1, x, y, z);
}

/* ---- operands whose last byte is the last of a page: what reads or writes past them stops the test ---- */
typedef struct {
    char *map, *at;
    size_t bytes, pages;
} operand;
static inline operand hold(size_t bytes, int align) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page * page;
    operand o = {.bytes = bytes, .pages = pages + page};
    o.map = mmap(NULL, o.pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(o.map != MAP_FAILED);
    assert_int_equal(mprotect(o.map + pages, page, PROT_NONE), 0);
    o.at = o.map + (pages - bytes) / (size_t)align * (size_t)align;
    memset(o.at, 0xfb, bytes);
    return o;
}
static inline void drop(operand *o) { munmap(o->map, o->pages); }
static inline uint64_t address(const operand *o) { return (uint64_t)(uintptr_t)o->at; }

static uint64_t state_ = 88172645463325252u;
static inline double draw(void) { /* -1 to 1 */
    return (double)(int64_t)next_random(&state_) * 0x1p-63;
}
static const int bytes_of[] = {[HONE_CUDA_F16] = 2, [HONE_CUDA_BF16] = 2, [HONE_CUDA_F32] = 4,
                               [HONE_CUDA_S8] = 1,  [HONE_CUDA_S32] = 4,  [HONE_CUDA_U8] = 1};
static const hone_dtype dtype_of[] = {
    [HONE_CUDA_F16] = HONE_DTYPE_F16, [HONE_CUDA_BF16] = HONE_DTYPE_BF16, [HONE_CUDA_F32] = HONE_DTYPE_F32,
    [HONE_CUDA_S8] = HONE_DTYPE_I8,   [HONE_CUDA_S32] = HONE_DTYPE_I32,   [HONE_CUDA_U8] = HONE_DTYPE_U8};
static inline double get(const void *p, int type, int64_t k) {
    const hone_dtype t = dtype_of[type];
    return hone_scalar_f64(hone_dtypes[t].ctype, hone_dtype_load(t, (const char *)p + k * bytes_of[type]));
}
static inline void set(void *p, int type, int64_t k, double v) {
    hone_dtype_store(dtype_of[type], (char *)p + k * bytes_of[type], HONE_F64, (hone_scalar){.f64 = v},
                     type >= HONE_CUDA_S8);
}
static inline void fill_with(operand *o, int type) {
    for (int64_t k = 0; k < (int64_t)(o->bytes / (size_t)bytes_of[type]); k++)
        set(o->at, type, k,
            type == HONE_CUDA_S8    ? rint(draw() * 127)
            : type == HONE_CUDA_U8  ? rint(127.5 + draw() * 127.5)
            : type == HONE_CUDA_S32 ? rint(draw() * 1e5)
                                    : draw());
}
static inline bool near_enough(double got, double want, double scale, double tolerance) {
    if (isnan(want)) return isnan(got);
    if (isinf(want)) return got == want;
    return fabs(got - want) <= tolerance * scale;
}
static const double digits[] = {[HONE_CUDA_F16] = 1e-3, [HONE_CUDA_BF16] = 8e-3, [HONE_CUDA_F32] = 2e-6,
                                [HONE_CUDA_S8] = 0.51,  [HONE_CUDA_S32] = 0,     [HONE_CUDA_U8] = 0.51};

/* ---- tensor maps: what the driver would encode, as emulate.h reads it. Strides in elements, of dims 1 and
   on --- */
typedef struct {
    uint64_t base, stride[4];
    uint32_t dim[5], box[5], element, swizzled;
    int32_t low[2], high[2], step[2];
} map;
static inline hone_cuda_tensor_map tensor_map5(uint64_t base, int type, const int64_t dim[5],
                                               const int64_t stride[4], const int box[5]) {
    map m = {.base = base, .element = (uint32_t)bytes_of[type], .swizzled = 1};
    for (int k = 0; k < 5; k++) m.dim[k] = (uint32_t)dim[k], m.box[k] = (uint32_t)box[k];
    for (int k = 0; k < 4; k++) m.stride[k] = (uint64_t)stride[k] * m.element;
    hone_cuda_tensor_map t = {{0}};
    memcpy(&t, &m, sizeof m);
    return t;
}
static inline hone_cuda_tensor_map tensor_map(uint64_t base, int type, int64_t d0, int64_t d1, int64_t d2,
                                              int64_t s1, int64_t s2, int b0, int b1, int b2) {
    return tensor_map5(base, type, (int64_t[]){d0, d1, d2, 1, 1}, (int64_t[]){s1, s2, 0, 0},
                       (int[]){b0, b1, b2, 1, 1});
}
#endif
