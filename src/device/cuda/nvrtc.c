/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/nvrtc.h"

#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/library.h"

typedef struct program *program;
static struct {
    int (*version)(int *, int *);
    int (*create)(program *, const char *, const char *, int, const char *const *, const char *const *);
    int (*compile)(program, int, const char *const *);
    int (*destroy)(program *);
    int (*cubin_size)(program, size_t *);
    int (*cubin)(program, char *);
    int (*ptx_size)(program, size_t *);
    int (*ptx)(program, char *);
    int (*log_size)(program, size_t *);
    int (*log)(program, char *);
    const char *(*error)(int);
    bool there;
} nvrtc;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* its built-in declarations are a library of their own, looked for by name only */
static void *open_beside(const char *path) {
    char pattern[600];
    const char *slash = strrchr(path, '/');
    glob_t found = {0};
    if (slash &&
        snprintf(pattern, sizeof pattern, "%.*s/libnvrtc-builtins.so*", (int)(slash - path), path) <
            (int)sizeof pattern &&
        !glob(pattern, 0, NULL, &found) && found.gl_pathc)
        (void)dlopen(found.gl_pathv[0], RTLD_NOW | RTLD_GLOBAL);
    globfree(&found);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}
static void find(void) {
    const hone_cuda_symbol wanted[] = {{&nvrtc.version, "nvrtcVersion"},
                                       {&nvrtc.create, "nvrtcCreateProgram"},
                                       {&nvrtc.compile, "nvrtcCompileProgram"},
                                       {&nvrtc.destroy, "nvrtcDestroyProgram"},
                                       {&nvrtc.cubin_size, "nvrtcGetCUBINSize"},
                                       {&nvrtc.cubin, "nvrtcGetCUBIN"},
                                       {&nvrtc.ptx_size, "nvrtcGetPTXSize"},
                                       {&nvrtc.ptx, "nvrtcGetPTX"},
                                       {&nvrtc.log_size, "nvrtcGetProgramLogSize"},
                                       {&nvrtc.log, "nvrtcGetProgramLog"},
                                       {&nvrtc.error, "nvrtcGetErrorString"}};
    nvrtc.there =
        hone_cuda_library("HONE_NVRTC", "nvrtc", open_beside, wanted, (int)(sizeof wanted / sizeof *wanted));
}
static hone_status there(void) {
    pthread_once(&once, find);
    return nvrtc.there
               ? HONE_OK
               : hone_fail(HONE_NOT_SUPPORTED, "CUDA kernels are compiled by NVRTC, which is not on this "
                                               "machine: install the CUDA toolkit or PyPI's "
                                               "nvidia-cuda-nvrtc, or name the library's file in HONE_NVRTC");
}
hone_status hone_nvrtc_version(int *major, int *minor) {
    HONE_TRY(there());
    return nvrtc.version(major, minor) ? hone_fail(HONE_IO, "NVRTC does not tell its version") : HONE_OK;
}
static hone_status refused(program p, const char *name, const char *arch, int code) {
    size_t n = 0;
    char *log = !nvrtc.log_size(p, &n) && n ? hone_alloc(n + 1) : NULL;
    if (log && nvrtc.log(p, log)) log[0] = 0;
    const hone_status s = hone_fail(HONE_BUG, "the CUDA kernel '%s' does not compile for %s: %s: %.600s",
                                    name, arch, nvrtc.error(code), log ? log : "");
    hone_free(log);
    return s;
}
static _Thread_local char remark[300];
const char *hone_nvrtc_remark(void) { return remark; }
static void look_for_remark(program p) {
    size_t n = 0;
    char *log = !nvrtc.log_size(p, &n) && n ? hone_alloc(n + 1) : NULL;
    const char *found = log && !nvrtc.log(p, log) ? strstr(log, "Potential Performance Loss") : NULL;
    snprintf(remark, sizeof remark, "%.*s", found ? (int)strcspn(found, "\n") : 0, found ? found : "");
    hone_free(log);
}
static hone_status compile(const char *source, const char *name, const char *arch, bool exact, void **cubin,
                           size_t *bytes) {
    HONE_TRY(there());
    char option[64];
    snprintf(option, sizeof option, "--gpu-architecture=%s", arch);
    const char *const options[] = {option, "--std=c++17", "--fmad=false"};
    program p = NULL;
    *cubin = NULL;
    if (nvrtc.create(&p, source, name, 0, NULL, NULL))
        return hone_fail(HONE_NO_MEMORY, "no memory to compile the CUDA kernel '%s'", name);
    const int code = nvrtc.compile(p, exact ? 3 : 2, options);
    hone_status s = code ? refused(p, name, arch, code) : HONE_OK;
    look_for_remark(p);
    const bool text = !strncmp(arch, "compute_", 8); /* PTX, which the driver compiles for the GPU at hand */
    if (!s && ((text ? nvrtc.ptx_size : nvrtc.cubin_size)(p, bytes) || !(*cubin = hone_alloc_raw(*bytes)) ||
               (text ? nvrtc.ptx : nvrtc.cubin)(p, *cubin)))
        s = hone_fail(HONE_NO_MEMORY, "no memory for the machine code of the CUDA kernel '%s'", name);
    if (s) hone_free(*cubin), *cubin = NULL;
    nvrtc.destroy(&p);
    return s;
}
hone_status hone_nvrtc_compile(const char *source, const char *name, const char *arch, void **cubin,
                               size_t *bytes) {
    return compile(source, name, arch, false, cubin, bytes);
}
hone_status hone_nvrtc_compile_exact(const char *source, const char *name, const char *arch, void **cubin,
                                     size_t *bytes) {
    return compile(source, name, arch, true, cubin, bytes);
}
