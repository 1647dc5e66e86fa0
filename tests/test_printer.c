/* SPDX-License-Identifier: Apache-2.0
   Printed C against the interpreter, bit for bit: programs are printed, compiled by the system's C compiler,
   loaded and run on the same data. Calls come from three places: a table of examples, calls made up at random
   for every row, and ONNX's conformance cases node by node. NaNs count as equal whatever their bits: which
   operand's NaN survives is the compiler's choice. HONE_TEST_SEED repeats a run. */
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "loops/storage.h"
#include "compile_c.h"
#include "walk.h"

extern const char hone_fn_text[], hone_storage_text[];

/* What is printed is compiled by the release build's test. Printing, and the definition, are what a sanitizer
   can find something in; the examples are compiled there too. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(HONE_EMULATED)
enum { SLOW = 1 };
#else
enum { SLOW = 0 };
#endif
enum {
    BATCH = 300 /* functions a file */,
    HELD = 100000000 /* bytes of calls that wait */
};
typedef int printed_fn(void *const *, const long long *, const long long *, const double *);
typedef struct {
    walk_call call;
    hone_value *in[WALK_MAX], *want[WALK_MAX];
    int n_in, n_out, function;
    bool failed;
    char what[160];
} job;
typedef struct {
    char *body;
    printed_fn *fn;
} function; /* printed without a name, so that equal ones are compiled once; NULL: not compiled */
static struct {
    char folder[64];
    bool works;     /* there is a compiler, and what it makes runs here */
    bool print;     /* and no more: it is not compiled */
    hone_text text; /* of the file in the making */
    hone_vec(function) functions;
    hone_vec(void *) libraries;
    hone_vec(job *) jobs; /* that wait for it; jobs of compiled functions run at once */
    size_t held;
    int compiled, calls, failures;
} batch;
/* ---- compiling and running ----------------------------------------------------------------------------- */
static bool compile(const char *text, const char *stem, void **library) {
    return compile_c(batch.folder, stem, text, "-std=c11 -Wall -Wextra -Werror", library);
}
static void calls_seed(void);
static int set_up(void **state) {
    (void)state;
    calls_seed();
    const char *t = getenv("TMPDIR");
    snprintf(batch.folder, sizeof batch.folder, "%.40s/hone-printer-XXXXXX", t ? t : "/tmp");
    if (!mkdtemp(batch.folder)) return -1;
    void *library = NULL;
    batch.works = compile("int probe(void);\nint probe(void) { return 1; }\n", "probe", &library);
    if (library) dlclose(library);
    return 0;
}
static int tear_down(void **state) {
    (void)state;
    for (int k = 0; k < batch.libraries.n; k++)
        if (batch.libraries.at[k]) dlclose(batch.libraries.at[k]);
    for (int k = 0; k < batch.functions.n; k++) free(batch.functions.at[k].body);
    hone_vec_free(&batch.libraries);
    hone_vec_free(&batch.functions);
    if (batch.failures) { /* keep what failed, for reading */
        fprintf(stderr, "printed C is kept in %s\n", batch.folder);
        return 0;
    }
    DIR *d = opendir(batch.folder);
    char path[400];
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "%s/%s", batch.folder, e->d_name);
        if (*e->d_name != '.') unlink(path);
    }
    if (d) closedir(d);
    rmdir(batch.folder);
    return 0;
}
static bool same_bits(const hone_value *a, const hone_value *b, int64_t *at) {
    size_t each = hone_dtypes[a->dtype].bytes;
    for (int64_t k = 0; k < hone_value_count(a); k++) {
        const char *p = (const char *)a->data + (size_t)k * each,
                   *q = (const char *)b->data + (size_t)k * each;
        *at = k;
        if (!memcmp(p, q, each)) continue;
        if (hone_dtypes[a->dtype].kind != HONE_KIND_FLOAT) return false;
        hone_ctype c = hone_dtypes[a->dtype].ctype;
        if (!isnan(hone_scalar_f64(c, hone_dtype_load(a->dtype, p))) ||
            !isnan(hone_scalar_f64(c, hone_dtype_load(a->dtype, q))))
            return false;
    }
    return true;
}
static void complain(const job *j, const char *format, ...) {
    va_list v;
    va_start(v, format);
    fprintf(stderr, "f%d, %s: ", j->function, j->what);
    vfprintf(stderr, format, v);
    fputc('\n', stderr);
    va_end(v);
    batch.failures++;
}
static void run_job(job *j, printed_fn *fn) { /* and frees it */
    const hone_instance *in = j->call.in;
    void **t = calloc((size_t)in->n_tensor + 1, sizeof *t);
    long long *s = calloc((size_t)in->n_tensor * HONE_MAX_RANK + 1, sizeof *s),
              *p = calloc((size_t)in->n_param + 1, sizeof *p);
    double *pf = calloc((size_t)in->n_param + 1, sizeof *pf);
    for (int k = 0; k < in->n_tensor; k++) {
        t[k] = j->call.place[k].at;
        for (int d = 0; d < in->tensor[k].rank; d++) s[k * HONE_MAX_RANK + d] = j->call.place[k].stride[d];
    }
    for (int k = 0; k < in->n_param; k++) {
        if (in->param_real[k]) pf[k] = j->call.param[k].f;
        else p[k] = j->call.param[k].i;
    }
    int rc = fn ? fn(t, s, p, pf) : 0;
    int64_t at = 0;
    batch.calls++;
    if (!fn) j->n_out = 0; /* its file did not compile, which is a failure already */
    else if ((rc != 0) != j->failed)
        complain(j, "printed C returned %d, the interpreter %s", rc, j->failed ? "failed" : "did not fail");
    else if (rc < 0 || rc > in->n_tensor)
        complain(j, "printed C returned %d; there are %d tensors", rc, in->n_tensor);
    for (int k = 0; !j->failed && !rc && k < j->n_out; k++)
        if (j->want[k] && !same_bits(j->call.out[k], j->want[k], &at)) {
            complain(j, "output %d differs at %lld: %g, must be %g", k, (long long)at,
                     hone_dtypes[j->want[k]->dtype].kind == HONE_KIND_FLOAT
                         ? hone_value_f64(j->call.out[k], at)
                         : (double)hone_value_i64(j->call.out[k], at),
                     hone_dtypes[j->want[k]->dtype].kind == HONE_KIND_FLOAT
                         ? hone_value_f64(j->want[k], at)
                         : (double)hone_value_i64(j->want[k], at));
            break;
        }
    free(t), free(s), free(p), free(pf);
    for (int i = 0; i < WALK_MAX; i++) hone_value_drop(j->in[i]), hone_value_drop(j->want[i]);
    walk_call_free(&j->call);
    free(j);
}
static void flush(void) {
    char stem[32];
    hone_text file = {0};
    void *library = NULL;
    if (batch.compiled < batch.functions.n) {
        snprintf(stem, sizeof stem, "batch%d", batch.libraries.n);
        hone_text_put(&file, "%s\n%s\n%s", hone_fn_text, hone_storage_text, batch.text.text);
        assert_false(file.failed);
        if (!compile(file.text, stem, &library)) {
            batch.failures++;
            fprintf(stderr, "%s/%s.c does not compile; see %s.log\n", batch.folder, stem, stem);
        }
        assert_true(hone_push(&batch.libraries, library));
    }
    for (; batch.compiled < batch.functions.n; batch.compiled++) {
        snprintf(stem, sizeof stem, "f%d", batch.compiled);
        void *symbol = library ? dlsym(library, stem) : NULL;
        memcpy(&batch.functions.at[batch.compiled].fn, &symbol, sizeof symbol);
    }
    for (int k = 0; k < batch.jobs.n; k++)
        run_job(batch.jobs.at[k], batch.functions.at[batch.jobs.at[k]->function].fn);
    batch.held = 0;
    hone_text_free(&file);
    hone_text_free(&batch.text);
    hone_vec_free(&batch.jobs);
}
/* Takes `c`, made but not run, for the next file; `want` are the interpreter's outputs. */
static void add(walk_call *c, hone_value *const *in, int n_in, hone_value *const *want, int n_out,
                bool failed, const char *what) {
    hone_text body = {0};
    int f = 0;
    if (batch.print) {
        hone_print_c(c->in, "f", &body);
        assert_false(body.failed);
        batch.calls++;
        hone_text_free(&body);
        walk_call_free(c);
        return;
    }
    job *j = calloc(1, sizeof *j);
    j->call = *c, j->n_in = n_in, j->n_out = n_out, j->failed = failed;
    snprintf(j->what, sizeof j->what, "%s", what);
    for (int k = 0; k < n_in; k++) j->in[k] = in[k] ? hone_value_hold(in[k]) : NULL;
    for (int k = 0; k < n_out; k++) j->want[k] = want[k] ? hone_value_hold(want[k]) : NULL;
    hone_print_c(c->in, "", &body);
    assert_false(body.failed);
    while (f < batch.functions.n && strcmp(batch.functions.at[f].body, body.text)) f++;
    j->function = f;
    if (f == batch.functions.n) {
        char name[32];
        snprintf(name, sizeof name, "f%d", f);
        assert_true(hone_push(&batch.functions, ((function){strdup(body.text), NULL})));
        hone_text_put(
            &batch.text,
            "int %s(void *const *, const long long *, const long long *, const double *);\n/* %s */\n", name,
            what);
        hone_print_c(c->in, name, &batch.text);
    }
    hone_text_free(&body);
    if (f < batch.compiled) {
        run_job(j, batch.functions.at[f].fn);
        return;
    }
    assert_true(hone_push(&batch.jobs, j));
    for (int t = 0; t < c->in->n_tensor; t++) batch.held += 2 * c->bytes[t];
    if (batch.functions.n - batch.compiled == BATCH || batch.held > HELD) flush();
}

#include "calls.h"

static void printer_examples(void **state) {
    (void)state;
    if (!batch.works) skip();
    const int met = calls_examples(1);
    flush();
    print_message("%d functions, %d calls\n", batch.functions.n, batch.calls);
    assert_int_equal(batch.failures, 0);
    assert_true(met >= 90);
}
static void printer_rows(void **state) {
    (void)state;
    if (!batch.works) skip();
    batch.print = SLOW;
    const int met = calls_rows(6);
    flush();
    print_message("%d rows, %d functions, %d calls\n", met, batch.functions.n, batch.calls);
    assert_int_equal(batch.failures, 0);
    assert_true(met >= 120);
}
static void printer_cases(void **state) {
    (void)state;
    int cases = 0, whole = 0;
    batch.print = SLOW;
    if (!batch.works || !calls_cases(1, &cases, &whole)) skip();
    flush();
    print_message("%d of %d cases walked, %d functions, %d calls\n", whole, cases, batch.functions.n,
                  batch.calls);
    assert_int_equal(batch.failures, 0);
    assert_true(whole * 10 >= cases * 9);
}

/* ---- storage.h against base/dtype.h -------------------------------------------------------------------- */
/* clang-format off */
#define EACH(X) \
    X(i8, I8) X(i16, I16) X(i32, I32) X(i64, I64) X(u8, U8) X(u16, U16) X(u32, U32) X(u64, U64) \
    X(i4, I4) X(u4, U4) X(i2, I2) X(u2, U2) X(bool, BOOL) X(f32, F32) X(f64, F64) X(f16, F16) \
    X(bf16, BF16) X(f8e4m3fn, F8E4M3FN) X(f8e4m3fnuz, F8E4M3FNUZ) X(f8e5m2, F8E5M2) \
    X(f8e5m2fnuz, F8E5M2FNUZ) X(f4e2m1, F4E2M1) X(f8e8m0, F8E8M0)
/* clang-format on */
static void stored(hone_dtype t, hone_ctype from, hone_scalar v, int sat, const void *mine) {
    uint64_t want[2] = {0};
    hone_dtype_store(t, want, from, v, sat);
    if (memcmp(want, mine, hone_dtypes[t].bytes))
        fail_msg("store of %s from %s differs for bits %llx, sat %d", hone_dtypes[t].name,
                 hone_ctype_names[from], (unsigned long long)v.u64, sat);
}
static void storage(void **state) {
    (void)state;
    for (int round = 0; round < 40000; round++) {
        hone_scalar f = {.u64 = 0}, d = {.u64 = random_bits()}, i = {.u64 = 0}, l, u;
        uint32_t bits = (uint32_t)random_bits();
        memcpy(&f.f32, &bits, 4);
        if (round % 3)
            f.f32 = ldexpf(1.0f + (float)below(4096) / 4096, (int)below(60) - 30) * (below(2) ? 1.0f : -1.0f);
        if (round % 2) d.f64 = (double)f.f32 * (1 + (double)(below(3) - 1) * 1e-12);
        i.i32 = (int32_t)(random_bits() >> (32 + below(32))), l.u64 = random_bits() >> below(64),
        u.u64 = random_bits() >> below(64);
        if (round & 4) i.i32 = (int32_t)(0u - (uint32_t)i.i32), l.u64 = 0 - l.u64;
#define CHECK(n, N)                                                                             \
    for (int sat = 0; sat < 2; sat++) {                                                         \
        const uint64_t raw = random_bits();                                                     \
        uint64_t mine[2];                                                                       \
        hone_store_##n##_f32(mine, f.f32, sat), stored(HONE_DTYPE_##N, HONE_F32, f, sat, mine); \
        hone_store_##n##_f64(mine, d.f64, sat), stored(HONE_DTYPE_##N, HONE_F64, d, sat, mine); \
        hone_store_##n##_i32(mine, i.i32, sat), stored(HONE_DTYPE_##N, HONE_I32, i, sat, mine); \
        hone_store_##n##_i64(mine, l.i64, sat), stored(HONE_DTYPE_##N, HONE_I64, l, sat, mine); \
        hone_store_##n##_u64(mine, u.u64, sat), stored(HONE_DTYPE_##N, HONE_U64, u, sat, mine); \
        const hone_scalar want = hone_dtype_load(HONE_DTYPE_##N, &raw);                         \
        const __typeof__(hone_load_##n(&raw)) got = hone_load_##n(&raw);                        \
        if (memcmp(&want, &got, sizeof got))                                                    \
            fail_msg("load of " #n " differs for bits %llx", (unsigned long long)raw);          \
    }
        EACH(CHECK)
    }
}

/* ---- print and counts ---------------------------------------------------------------------------------- */
static void text_and_counts(void **state) {
    (void)state;
    const hone_library *library;
    assert_int_equal(hone_library_builtin(&library), HONE_OK);
    hone_value *in[2] = {random_value(HONE_DTYPE_F32, (int64_t[]){3, 4}, 2),
                         random_value(HONE_DTYPE_F32, (int64_t[]){4, 5}, 2)};
    walk_call c;
    double flops, bytes;
    hone_text t = {0};
    assert_int_equal(walk_call_make(&c, hone_library_find(library, "", "MatMul"), NULL, 0, in, 2, NULL, 1),
                     HONE_OK);
    hone_instance_counts(c.in, c.param, &flops, &bytes);
    assert_true(flops == 2 * 3 * 4 * 5 && bytes == 4 * (12 + 20 + 15));
    hone_instance_print(c.in, &t);
    assert_non_null(strstr(t.text, "= sum(k"));
    assert_non_null(strstr(t.text, " * b["));
    hone_text_free(&t);
    walk_call_free(&c);
    hone_value_drop(in[0]), hone_value_drop(in[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storage),      cmocka_unit_test(text_and_counts), cmocka_unit_test(printer_examples),
        cmocka_unit_test(printer_rows), cmocka_unit_test(printer_cases),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
