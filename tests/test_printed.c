/* SPDX-License-Identifier: Apache-2.0
   Printed kernels as CUDA C and HIP, compiled without a GPU: NVRTC for sm_80 and sm_90a, clang for AMD's
   gfx90a. Skipped where there is no compiler. A sample; HONE_TEST_ALL=1: every distinct kernel of the
   conformance cases (HIP: 20 of them). Whether they compute what they should is test_opencl's matter:
   the bodies are the same text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "calls.h"
#include "device/cuda/nvrtc.h"
#include "loops/kernel.h"

enum { BATCH = 150 };
static struct {
    hone_kernel_target target;
    hone_text text;
    hone_vec(char *) names;
    int waiting, calls, refused, programs, failures;
    int by_kind[8];
    void (*compile)(const char *text);
} batch;

static void add(walk_call *c, hone_value *const *in, int n_in, hone_value *const *want, int n_out,
                bool failed, const char *what) {
    (void)in, (void)n_in, (void)want, (void)n_out, (void)failed;
    hone_kernels k;
    int64_t *stride = HONE_NEW_N(c->arena, int64_t, c->in->n_tensor * HONE_MAX_RANK + 1);
    for (int t = 0; t < c->in->n_tensor; t++)
        memcpy(stride + t * HONE_MAX_RANK, c->place[t].stride, sizeof c->place[t].stride);
    const hone_status s = hone_kernels_make(c->arena, &batch.target, c->in, c->param, stride, NULL, &k);
    batch.calls++;
    if (s) {
        batch.refused++;
        if (s != HONE_NOT_SUPPORTED) fprintf(stderr, "%s: %s\n", what, hone_fail_text()), batch.failures++;
    }
    for (int l = 0; !s && l < k.n_launch; l++) {
        const hone_launch *o = k.launch + l;
        bool known = false;
        for (int q = 0; q < batch.names.n && !known; q++) known = !strcmp(batch.names.at[q], o->name);
        if (known) continue;
        assert_true(hone_push(&batch.names, strdup(o->name)));
        hone_text_put(&batch.text, "/* %s */\n%s", what, o->text);
        batch.by_kind[o->schedule.kind]++, batch.waiting++;
    }
    walk_call_free(c);
    if (batch.waiting < BATCH) return;
    batch.compile(batch.text.text);
    hone_text_free(&batch.text);
    batch.waiting = 0;
}
static void start(hone_lang lang, void (*compile)(const char *)) {
    for (int k = 0; k < batch.names.n; k++) free(batch.names.at[k]);
    hone_vec_free(&batch.names);
    memset(&batch, 0, sizeof batch);
    batch.target = (hone_kernel_target){
        .lang = lang, .f64 = true, .arg_bytes = 4096, .wish = {.max_threads = 1024, .units = 8}};
    batch.compile = compile;
}
static void finish(const char *what) {
    if (batch.waiting) batch.compile(batch.text.text);
    print_message("%s: %d calls, %d refused, %d kernels (each %d, lanes %d, slices %d, owners %d, tiles %d, "
                  "rows %d, blocks %d), %d compilations\n",
                  what, batch.calls, batch.refused, batch.names.n, batch.by_kind[0], batch.by_kind[1],
                  batch.by_kind[2], batch.by_kind[3], batch.by_kind[4], batch.by_kind[5], batch.by_kind[6],
                  batch.programs);
    hone_text_free(&batch.text);
    for (int k = 0; k < batch.names.n; k++) free(batch.names.at[k]);
    hone_vec_free(&batch.names);
    assert_int_equal(batch.failures, 0);
}

/* ---- CUDA ---- */
static void by_nvrtc(const char *text) {
    static const char *const archs[] = {"sm_80", "sm_90a"};
    hone_text file = {0};
    hone_kernel_prelude(&batch.target, true, &file);
    hone_text_put(&file, "%s", text);
#ifdef __SANITIZE_ADDRESS__ /* printing is what it can find faults in; NVRTC's threads crash its leak check */
    hone_text_free(&file);
    return;
#endif
    for (size_t k = 0; k < sizeof archs / sizeof *archs; k++, batch.programs++) {
        void *cubin = NULL;
        size_t bytes = 0;
        if (hone_nvrtc_compile_exact(file.text, "printed", archs[k], &cubin, &bytes)) {
            batch.failures++;
            fprintf(stderr, "%s\n", hone_fail_text());
        }
        hone_free(cubin);
    }
    hone_text_free(&file);
}
static void printed_cuda(void **state) {
    int major, minor, cases = 0, whole = 0;
    (void)state;
    if (hone_nvrtc_version(&major, &minor)) skip();
    start(HONE_LANG_CUDA, by_nvrtc);
    calls_examples(getenv("HONE_TEST_ALL") ? 1 : 3);
    batch.target.wish.vector = 8; /* with accesses of 16 bytes, which rules do not choose at such sizes */
    calls_examples(getenv("HONE_TEST_ALL") ? 1 : 9);
    batch.target.wish.vector = 0;
    if (getenv("HONE_TEST_ALL")) {
        if (!getenv("HONE_TEST_PART")) calls_rows(6);
        (void)!calls_cases(1, &cases, &whole);
    }
    finish("CUDA C by NVRTC");
}

/* ---- HIP ---- */
/* The few words of HIP that the texts use, for a compiler without its headers. */
static const char words[] =
    "#define __device__ __attribute__((device))\n#define __global__ __attribute__((global))\n"
    "#define __shared__ __attribute__((shared))\n#define __launch_bounds__(n) "
    "__attribute__((amdgpu_flat_work_group_size(1, n)))\n"
    "struct hip_x { struct at { int axis; __device__ operator unsigned() const { return axis ? "
    "__builtin_amdgcn_workgroup_id_x() : "
    "__builtin_amdgcn_workitem_id_x(); } } x; };\n"
    "#define threadIdx (hip_x{{0}})\n#define blockIdx (hip_x{{1}})\n"
    "__device__ inline void __syncthreads() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, \"workgroup\"); "
    "__builtin_amdgcn_s_barrier(); }\n"
    "__device__ inline unsigned atomicMax(unsigned *at, unsigned v) { unsigned o = *at; while (o < v && "
    "!__atomic_compare_exchange_n(at, &o, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {} return o; }\n"
    "template <class T> __device__ inline T __shfl_down(T v, unsigned by, int width) { union { T t; int "
    "i[sizeof(T) / 4]; } u; u.t = v;\n"
    "  for (unsigned k = 0; k < sizeof(T) / 4; k++) u.i[k] = __builtin_amdgcn_ds_bpermute(4 * "
    "(int)(__builtin_amdgcn_mbcnt_hi(~0u, "
    "__builtin_amdgcn_mbcnt_lo(~0u, 0)) + by), u.i[k]); (void)width; return u.t; }\n"
    "extern \"C\" __device__ void *memcpy(void *, const void *, unsigned long);\n"
    "#define F1(n) extern \"C\" __device__ float n##f(float); extern \"C\" __device__ double n(double);\n"
    "#define F2(n) extern \"C\" __device__ float n##f(float, float); extern \"C\" __device__ double "
    "n(double, double);\n"
    "F1(fabs) F1(trunc) F1(floor) F1(ceil) F1(rint) F1(sqrt) F1(log2) F1(sin) F1(cos) F1(tan) F1(asin) "
    "F1(acos) F1(atan) F1(sinh) "
    "F1(cosh)\n"
    "F1(asinh) F1(acosh) F1(atanh) F1(expm1) F1(log1p) F1(exp) F1(log) F1(tanh) F1(erf) F2(fmod) F2(pow) "
    "F2(atan2) F2(copysign)\n"
    "extern \"C\" __device__ float fmaf(float, float, float); extern \"C\" __device__ double fma(double, "
    "double, double);\n";
static char folder[64];
static void by_clang(const char *text) {
    char path[100], command[600];
    snprintf(path, sizeof path, "%s/printed.hip", folder);
    FILE *f = fopen(path, "w");
    hone_text prelude = {0};
    assert_non_null(f);
    hone_kernel_prelude(&batch.target, true, &prelude);
    fprintf(f, "%s%s%s", words, prelude.text, text);
    assert_int_equal(fclose(f), 0);
    hone_text_free(&prelude);
    snprintf(command, sizeof command,
             "clang -x hip --cuda-device-only --offload-arch=gfx90a -nogpuinc -nogpulib -std=c++17 "
             "-ffp-contract=off -O1 -S -o "
             "%s/printed.s %s > %s/log 2>&1 || "
             "{ head -20 %s/log >&2; false; }",
             folder, path, folder, folder);
    batch.programs++;
    if (system(command)) batch.failures++;
}
static void printed_hip(void **state) {
    const char *t = getenv("TMPDIR");
    char command[160];
    (void)state;
    if (!getenv("HONE_TEST_ALL") || system("clang --print-targets 2> /dev/null | grep -q amdgcn")) skip();
    snprintf(folder, sizeof folder, "%.40s/hone-hip-XXXXXX", t ? t : "/tmp");
    assert_non_null(mkdtemp(folder));
    start(HONE_LANG_HIP, by_clang);
    calls_examples(1);
    batch.target.wish.vector = 8;
    calls_examples(1);
    finish("HIP by clang");
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

int main(void) {
    calls_seed();
    const struct CMUnitTest tests[] = {cmocka_unit_test(printed_cuda), cmocka_unit_test(printed_hip)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
