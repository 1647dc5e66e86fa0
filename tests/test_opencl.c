/* SPDX-License-Identifier: Apache-2.0
   Printed kernels on an OpenCL device (PoCL, mostly) against the interpreter, launch by launch: the same
   calls as test_printer's. Skipped where there is no OpenCL.

   HONE_TEST_ALL=1: all conformance cases, not a sample. HONE_OPENCL=n: device n. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "calls.h"
#include "device/opencl/driver.h"

typedef hone_opencl_memory *memory;
#include "launches.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(HONE_EMULATED)
enum { SLOW = 1 }; /* printing is what a sanitizer can find something in; the device's compiler is not ours */
#else
enum { SLOW = 0 };
#endif
enum { BATCH = 120, HELD = 100000000 };
typedef struct {
    const char *name;
    hone_opencl_kernel *kernel;
} compiled;
static struct {
    hone_opencl *device;
    hone_kernel_target target;
    char cache[80];
    hone_text text;             /* of the program in the making */
    hone_vec(char *) waiting;   /* kernels in it */
    hone_vec(compiled) kernels; /* of all programs */
    hone_vec(hone_opencl_program *) programs;
    hone_vec(job *) jobs;
    size_t held;
} batch;

static int set_up(void **state) {
    (void)state;
    const char *n = getenv("HONE_OPENCL"), *t = getenv("TMPDIR");
    calls_seed();
    batch.target = (hone_kernel_target){
        .lang = HONE_LANG_OPENCL, .f64 = true, .arg_bytes = 1024, .wish = {.max_threads = 256, .units = 2}};
    if (SLOW || hone_opencl_open(n ? atoi(n) : 0, &batch.device)) return 0;
    const hone_opencl_facts *f = hone_opencl_facts_of(batch.device);
    batch.target.f64 = f->f64, batch.target.arg_bytes = f->arg_bytes;
    /* small groups: more of them at small sizes */
    batch.target.wish.max_threads = f->max_threads < 256 ? f->max_threads : 64;
    snprintf(batch.cache, sizeof batch.cache, "%.40s/hone-opencl-XXXXXX", t ? t : "/tmp");
    if (!mkdtemp(batch.cache)) return -1;
    print_message("%s, %s\n", f->name, f->version);
    return 0;
}
static int tear_down(void **state) {
    (void)state;
    for (int k = 0; k < batch.kernels.n; k++)
        hone_opencl_kernel_free(batch.kernels.at[k].kernel), free((void *)batch.kernels.at[k].name);
    for (int k = 0; k < batch.programs.n; k++) hone_opencl_program_free(batch.programs.at[k]);
    hone_vec_free(&batch.kernels);
    hone_vec_free(&batch.programs);
    hone_opencl_close(batch.device);
    char command[160];
    snprintf(command, sizeof command, "rm -rf '%s'", batch.cache);
    return *batch.cache && system(command) ? -1 : 0;
}
/* ---- running ---- */
#define MUST(call)                                  \
    do {                                            \
        if (call) fail_msg("%s", hone_fail_text()); \
    } while (0)
static memory memory_make(size_t bytes) {
    memory m = NULL;
    MUST(hone_opencl_memory_make(batch.device, bytes, &m));
    return m;
}
static void memory_free(memory m) { hone_opencl_memory_free(batch.device, m); }
static void memory_put(memory to, size_t at, const void *from, size_t bytes) {
    MUST(hone_opencl_copy_in(batch.device, to, at, from, bytes));
}
static void memory_get(void *to, memory from, size_t at, size_t bytes) {
    MUST(hone_opencl_copy_out(batch.device, to, from, at, bytes));
}
static hone_opencl_kernel *kernel_named(const char *name) {
    for (int k = 0; k < batch.kernels.n; k++)
        if (!strcmp(batch.kernels.at[k].name, name)) return batch.kernels.at[k].kernel;
    return NULL;
}
static void launch(const job *j, const hone_launch *l, const memories *m, int64_t step, uint32_t where) {
    hone_opencl_kernel *k = kernel_named(l->name);
    if (!k) fail_msg("%s: no kernel %s", j->what, l->name);
    hone_opencl_memory *numbers = NULL;
    for (int a = 0; a < l->n_arg; a++) {
        const hone_karg *g = l->arg + a;
        const float single = (float)g->f;
        int64_t offset = 0;
        switch (g->kind) {
        case HONE_KARG_TENSOR: MUST(hone_opencl_set_memory(k, a, m->tensor[g->which])); break;
        case HONE_KARG_SCRATCH: MUST(hone_opencl_set_memory(k, a, m->scratch[g->which])); break;
        case HONE_KARG_ERROR: MUST(hone_opencl_set_memory(k, a, m->error)); break;
        case HONE_KARG_NUMBERS:
            numbers = memory_make(8 * (size_t)l->n_number);
            memory_put(numbers, 0, l->number, 8 * (size_t)l->n_number);
            MUST(hone_opencl_set_memory(k, a, numbers));
            break;
        case HONE_KARG_OFFSET:
            offset = l->arg[a - 1].kind == HONE_KARG_TENSOR ? GUARD : 0;
            MUST(hone_opencl_set(k, a, 8, &offset));
            break;
        case HONE_KARG_I64: MUST(hone_opencl_set(k, a, 8, &g->i)); break;
        case HONE_KARG_F64: MUST(hone_opencl_set(k, a, 8, &g->f)); break;
        case HONE_KARG_F32: MUST(hone_opencl_set(k, a, 4, &single)); break;
        case HONE_KARG_STEP: MUST(hone_opencl_set(k, a, 8, &step)); break;
        case HONE_KARG_WHERE: MUST(hone_opencl_set(k, a, 4, &where)); break;
        }
    }
    MUST(hone_opencl_launch(batch.device, k, (uint64_t)l->groups, l->threads, NULL));
    MUST(hone_opencl_wait(batch.device));
    memory_free(numbers);
    tally.launches++;
}
static void flush(void) {
    if (batch.waiting.n) {
        hone_text file = {0};
        hone_opencl_program *program = NULL;
        hone_kernel_prelude(&batch.target, batch.target.f64, &file);
        hone_text_put(&file, "%s", batch.text.text);
        if (hone_opencl_build(batch.device, file.text, batch.cache, &program)) {
            FILE *f = fopen("/tmp/hone-opencl-failed.cl", "w");
            if (f) fputs(file.text, f), fclose(f);
            fail_msg("%s", hone_fail_text());
        }
        assert_true(hone_push(&batch.programs, program));
        for (int k = 0; k < batch.waiting.n; k++) {
            compiled c = {batch.waiting.at[k], NULL};
            if (hone_opencl_kernel_make(program, c.name, &c.kernel)) fail_msg("%s", hone_fail_text());
            assert_true(hone_push(&batch.kernels, c));
        }
        hone_text_free(&file);
    }
    for (int k = 0; k < batch.jobs.n; k++) {
        const time_t begun = time(NULL);
        run_job(batch.jobs.at[k]);
        if (getenv("HONE_TEST_VERBOSE") && time(NULL) - begun > 2)
            fprintf(stderr, "%s: %d s\n", batch.jobs.at[k]->what, (int)(time(NULL) - begun));
        drop(batch.jobs.at[k]);
    }
    hone_text_free(&batch.text);
    hone_vec_free(&batch.waiting);
    hone_vec_free(&batch.jobs);
    batch.held = 0;
}
static bool is_known(const char *name) {
    for (int k = 0; k < batch.waiting.n; k++)
        if (!strcmp(batch.waiting.at[k], name)) return true;
    return kernel_named(name) != NULL;
}
static void add(walk_call *c, hone_value *const *in, int n_in, hone_value *const *want, int n_out,
                bool failed, const char *what) {
    job *j = job_of(&batch.target, c, in, n_in, failed, what);
    (void)want, (void)n_out;
    if (!j) return;
    if (!batch.device) {
        tally.calls++;
        drop(j);
        return;
    }
    for (int k = 0; k < j->kernels.n_launch; k++) {
        const hone_launch *l = j->kernels.launch + k;
        if (is_known(l->name)) continue;
        hone_text_put(&batch.text, "%s", l->text);
        assert_true(hone_push(&batch.waiting, strdup(l->name)));
    }
    assert_true(hone_push(&batch.jobs, j));
    for (int t = 0; t < j->call.in->n_tensor; t++) batch.held += j->call.bytes[t];
    if (batch.waiting.n >= BATCH || batch.held > HELD) flush();
}
static void opencl_examples(void **state) {
    (void)state;
    if (!batch.device && !SLOW) skip();
    calls_examples(getenv("HONE_TEST_ALL") ? 1 : 10);
    flush();
    summary("examples", batch.kernels.n);
    assert_int_equal(tally.failures, 0);
}
static void opencl_products(void **state) {
    (void)state;
    if (!batch.device && !SLOW) skip();
    test_products(&batch.target.wish, flush, &batch.kernels.n);
}
static void opencl_rows(void **state) {
    (void)state;
    if ((!batch.device && !SLOW) || !getenv("HONE_TEST_ALL")) skip();
    calls_rows(6);
    flush();
    summary("rows", batch.kernels.n);
    assert_int_equal(tally.failures, 0);
}
/* The same with schedules that the rules would not choose for so little. */
static void opencl_schedules(void **state) {
    const hone_schedule_wish before = batch.target.wish;
    (void)state;
    if (!batch.device && !SLOW) skip();
    for (size_t k = 0; k < sizeof wishes / sizeof *wishes; k++) {
        hone_schedule_wish wish = wishes[k];
        wish.max_threads = before.max_threads, wish.units = before.units;
        batch.target.wish = wish;
        calls_examples(getenv("HONE_TEST_ALL") ? 1 : 58);
        flush();
        summary("wished", batch.kernels.n);
    }
    batch.target.wish = before;
    const bool f64 = batch.target.f64; /* a device without it: everything else must still be there */
    batch.target.f64 = false;
    calls_examples(getenv("HONE_TEST_ALL") ? 1 : 58);
    flush();
    summary("without f64", batch.kernels.n);
    batch.target.f64 = f64;
    assert_int_equal(tally.failures, 0);
}
static void opencl_cases(void **state) {
    (void)state;
    int cases = 0, whole = 0;
    if ((!batch.device && !SLOW) || !calls_cases(getenv("HONE_TEST_ALL") ? 1 : 400, &cases, &whole)) skip();
    flush();
    print_message("%d of %d cases walked\n", whole, cases);
    summary("cases", batch.kernels.n);
    assert_int_equal(tally.failures, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(opencl_examples), cmocka_unit_test(opencl_schedules),
                                       cmocka_unit_test(opencl_products), cmocka_unit_test(opencl_rows),
                                       cmocka_unit_test(opencl_cases)};
    const char *only = getenv("HONE_TEST_ONLY"); /* a part of a test's name */
    if (only) {
        char pattern[64];
        snprintf(pattern, sizeof pattern, "*%.60s*", only);
        cmocka_set_test_filter(pattern);
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
