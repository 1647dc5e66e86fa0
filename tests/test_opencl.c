/* SPDX-License-Identifier: Apache-2.0
   Printed kernels on an OpenCL device (PoCL, mostly) against the interpreter, launch by launch: the same calls as test_printer's. Skipped where there
   is no OpenCL. Before each launch the device's targets are the interpreter's, so that a difference is this launch's own; memory around every tensor
   is guarded. All but sums and functions that libraries define must agree bit for bit (NaNs among themselves).

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
#include "loops/kernel.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(HONE_EMULATED)
enum { SLOW = 1 }; /* printing is what a sanitizer can find something in; the device's compiler is not ours */
#else
enum { SLOW = 0 };
#endif
enum { GUARD = 256, BATCH = 120, HELD = 100000000 };
typedef struct {
    walk_call call;
    hone_value *in[WALK_MAX];
    int n_in;
    bool failed;
    char what[160];
    hone_kernels kernels;
} job;
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
    int calls, launches, refused, failures, cached, by_kind[8], grouped;
} batch;

static int set_up(void **state) {
    (void)state;
    const char *n = getenv("HONE_OPENCL"), *t = getenv("TMPDIR");
    calls_seed();
    batch.target = (hone_kernel_target){.lang = HONE_LANG_OPENCL, .f64 = true, .arg_bytes = 1024, .wish = {.max_threads = 256, .units = 2}};
    if (SLOW || hone_opencl_open(n ? atoi(n) : 0, &batch.device)) return 0;
    const hone_opencl_facts *f = hone_opencl_facts_of(batch.device);
    batch.target.f64 = f->f64, batch.target.arg_bytes = f->arg_bytes;
    batch.target.wish.max_threads = f->max_threads < 256 ? f->max_threads : 64; /* small groups: more of them at small sizes */
    snprintf(batch.cache, sizeof batch.cache, "%.40s/hone-opencl-XXXXXX", t ? t : "/tmp");
    if (!mkdtemp(batch.cache)) return -1;
    print_message("%s, %s\n", f->name, f->version);
    return 0;
}
static int tear_down(void **state) {
    (void)state;
    for (int k = 0; k < batch.kernels.n; k++) hone_opencl_kernel_free(batch.kernels.at[k].kernel), free((void *)batch.kernels.at[k].name);
    for (int k = 0; k < batch.programs.n; k++) hone_opencl_program_free(batch.programs.at[k]);
    hone_vec_free(&batch.kernels);
    hone_vec_free(&batch.programs);
    hone_opencl_close(batch.device);
    char command[160];
    snprintf(command, sizeof command, "rm -rf '%s'", batch.cache);
    return *batch.cache && system(command) ? -1 : 0;
}
static void complain(const job *j, const hone_launch *l, const char *format, ...) {
    va_list v;
    hone_text how = {0};
    va_start(v, format);
    if (l) hone_launch_describe(l, &how);
    fprintf(stderr, "%s (%s): ", j->what, how.text ? how.text : "");
    vfprintf(stderr, format, v);
    fputc('\n', stderr);
    if (l && getenv("HONE_TEST_TEXT")) fprintf(stderr, "%s\n", l->text);
    va_end(v);
    hone_text_free(&how);
    batch.failures++;
}

/* ---- what is the same ---- */
static bool by_library(const hone_instance *in, int32_t x, int depth) { /* uses a function whose last digits are the library's */
    const hone_x *e = in->x + x;
    if (e->kind == HONE_X_LOAD) return (e->c >= 0 && by_library(in, e->c, depth + 1));
    if (e->kind < HONE_X_FN) return false;
    if (e->kind == HONE_X_FN) switch (e->fn) {
        case HONE_FN_pow:
        case HONE_FN_atan2:
        case HONE_FN_log2:
        case HONE_FN_sin:
        case HONE_FN_cos:
        case HONE_FN_tan:
        case HONE_FN_asin:
        case HONE_FN_acos:
        case HONE_FN_atan:
        case HONE_FN_sinh:
        case HONE_FN_cosh:
        case HONE_FN_asinh:
        case HONE_FN_acosh:
        case HONE_FN_atanh:
        case HONE_FN_normal: return true;
        case HONE_FN_exp:
        case HONE_FN_log:
        case HONE_FN_log1p:
        case HONE_FN_expm1:
        case HONE_FN_tanh:
        case HONE_FN_erf:
        case HONE_FN_sigmoid:
            if (in->x[e->a].type == HONE_F64) return true;
            break;
        default: break;
        }
    const int32_t args[3] = {e->a, e->b, e->c};
    for (int k = 0; k < (e->kind == HONE_X_FN ? hone_fns[e->fn].arity : e->kind == HONE_X_SELECT ? 3 : 1); k++)
        if (by_library(in, args[k], depth + 1)) return true;
    return false;
}
static double eps_of(hone_dtype t) {
    return t == HONE_DTYPE_F64    ? 0x1p-52
           : t == HONE_DTYPE_F32  ? 0x1p-23
           : t == HONE_DTYPE_F16  ? 0x1p-10
           : t == HONE_DTYPE_BF16 ? 0x1p-7
                                  : 0x1p-2;
}
/* slack: in units of eps, of the sum of magnitudes (`absolute`, or NULL: `size` for all) and of the value itself. */
static bool same(const job *j, int t, const char *want, const char *got, const char *absolute, double size, double slack, char *text,
                 size_t room) {
    const hone_tensor *w = j->call.in->tensor + t;
    const hone_param *p = j->call.param;
    int64_t x[HONE_MAX_RANK] = {0}, n = 1;
    for (int d = 0; d < w->rank; d++) n *= p[w->dim[d]].i;
    const int bytes = hone_dtypes[w->dtype].bytes;
    const hone_ctype c = hone_dtypes[w->dtype].ctype;
    for (int64_t k = 0; k < n; k++) {
        int64_t at = 0;
        for (int d = 0; d < w->rank; d++) at += x[d] * j->call.place[t].stride[d];
        const char *a = want + at * bytes, *b = got + at * bytes;
        if (memcmp(a, b, (size_t)bytes)) {
            const double u = hone_scalar_f64(c, hone_dtype_load(w->dtype, a)), v = hone_scalar_f64(c, hone_dtype_load(w->dtype, b));
            const double of = absolute ? hone_scalar_f64(c, hone_dtype_load(w->dtype, absolute + at * bytes)) : size;
            bool ok = hone_dtypes[w->dtype].kind == HONE_KIND_FLOAT && isnan(u) && isnan(v);
            if (!ok && slack > 0)
                ok = fabs(u - v) <= slack * eps_of(w->dtype) * ((isinf(of) ? 0 : of) + fabs(u)) + 1e-37 ||
                     (!(of < 1e37) && (isnan(u) || isinf(u)) && (isnan(v) || isinf(v))) ||
                     (hone_dtypes[w->dtype].kind != HONE_KIND_FLOAT && fabs(u - v) <= 1); /* a rounding that went the other way */
            if (!ok) {
                snprintf(text, room, "'%s' element %lld: interpreter %.17g, kernel %.17g (of %g)", w->name, (long long)k, u, v, of);
                return false;
            }
        }
        for (int d = w->rank - 1; d >= 0; d--) {
            if (++x[d] < p[w->dim[d]].i) break;
            x[d] = 0;
        }
    }
    return true;
}
/* The memory that a place lies in, as far as the test knows: inputs and outputs are whole values. */
static size_t bytes_of(const job *j, int t) {
    const hone_tensor *w = j->call.in->tensor + t;
    return w->role == HONE_ROLE_IN ? j->in[w->operand]->bytes : j->call.bytes[t];
}

/* ---- running ---- */
#define MUST(call)                                               \
    do {                                                         \
        if (call) fail_msg("%s: %s", j->what, hone_fail_text()); \
    } while (0)
static hone_opencl_kernel *kernel_named(const char *name) {
    for (int k = 0; k < batch.kernels.n; k++)
        if (!strcmp(batch.kernels.at[k].name, name)) return batch.kernels.at[k].kernel;
    return NULL;
}
typedef struct {
    hone_opencl_memory **tensor, **scratch, *error;
} memories;
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
            MUST(hone_opencl_memory_make(batch.device, 8 * (uint64_t)l->n_number, &numbers));
            MUST(hone_opencl_copy_in(batch.device, numbers, 0, l->number, 8 * (uint64_t)l->n_number));
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
    hone_opencl_memory_free(batch.device, numbers);
    batch.launches++;
}
static void *copy_of(const void *at, size_t bytes) {
    void *c = malloc(bytes + 1);
    if (bytes) memcpy(c, at, bytes);
    return c;
}
/* One turn: the interpreter on the host, the launches on the device, then compared. False: the rest has no inputs. */
static bool run_turn(job *j, const hone_launches *turn, const memories *m, uint32_t where) {
    const hone_instance *in = j->call.in;
    const hone_launch *first = j->kernels.launch + turn->first, *last = first + turn->n - 1;
    const int from = first->first_stage, to = last->first_stage + last->n_stage;
    const bool over = in->stage[from].over >= 0;
    char *absolute = NULL, text[400];
    double size = 1, slack = 0;
    bool wild = false; /* some sum has no bound */
    uint32_t error = 0;
    for (int k = from; k < to; k++) { /* the targets are as the interpreter will find them */
        const int t = in->stage[k].tensor;
        MUST(hone_opencl_copy_in(batch.device, m->tensor[t], GUARD, j->call.place[t].at, bytes_of(j, t)));
        if (in->stage[k].reduce == HONE_REDUCE_SUM || in->stage[k].reduce == HONE_REDUCE_PROD || (over && in->stage[k].reduce)) {
            const hone_ctype c = (hone_ctype)in->x[in->stage[k].value].type;
            if (c == HONE_F32 || c == HONE_F64) slack += over ? 400 : 16;
        }
        if (by_library(in, in->stage[k].value, 0)) slack += 64;
    }
    const hone_stage *s = in->stage + from;
    hone_status want = HONE_OK;
    if (slack > 0 && !over && s->reduce == HONE_REDUCE_SUM) { /* the sum of absolute values, in a copy of the target */
        void *const here = j->call.place[s->tensor].at;
        absolute = copy_of(here, bytes_of(j, s->tensor));
        j->call.place[s->tensor].at = absolute;
        (void)!hone_interpret_stage(in, j->call.param, j->call.place, from, true);
        j->call.place[s->tensor].at = here;
        if (to > from + 1) { /* what follows a sum may be as far off as the largest of its terms */
            const hone_tensor *w = in->tensor + s->tensor;
            for (size_t k = 0; k < bytes_of(j, s->tensor) / hone_dtypes[w->dtype].bytes; k++) {
                const double v =
                    hone_scalar_f64(hone_dtypes[w->dtype].ctype, hone_dtype_load(w->dtype, absolute + k * hone_dtypes[w->dtype].bytes));
                if (!(v < 1e37)) wild = true;
                else if (v > size) size = v;
            }
            slack *= 4;
            if (wild) size = (double)INFINITY, slack *= 1e6;
            free(absolute), absolute = NULL;
        }
    }
    for (int k = from; k < to && !want; k++) {
        want = hone_interpret_stage(in, j->call.param, j->call.place, k, false);
        if (over) break; /* that was the whole group */
    }
    MUST(hone_opencl_fill(batch.device, m->error, 0, 0, 4));
    for (int64_t r = 0; r < turn->rounds; r++)
        for (int k = 0; k < turn->n; k++) launch(j, first + k, m, r, where);
    MUST(hone_opencl_copy_out(batch.device, &error, m->error, 0, 4));
    bool go_on = !want;
    if ((want != HONE_OK) != (error != 0))
        complain(j, first, "the interpreter says %d, the error word is %08x", want, error), go_on = false;
    else if (error) {
        const int tensor = (int)(~error & 255) - 1;
        char name[300];
        snprintf(name, sizeof name, "outside of '%.200s'", tensor >= 0 && tensor < in->n_tensor ? in->tensor[tensor].name : "?");
        if (~error >> 8 != where) complain(j, first, "the error word names launch %u, it was %u", ~error >> 8, where);
        if (!strstr(hone_fail_text(), name)) complain(j, first, "the error word says '%s', the interpreter: %s", name, hone_fail_text());
    }
    for (int k = from; k < to && go_on; k++) {
        const int t = in->stage[k].tensor;
        const size_t bytes = bytes_of(j, t);
        bool held = false;
        for (const hone_launch *l = first; l <= last; l++)
            if (k >= l->first_stage && k < l->first_stage + l->n_stage - 1 && in->tensor[t].role == HONE_ROLE_TEMP &&
                !j->kernels.temp_bytes[t])
                held = true;
        if (!held) {
            unsigned char *got = malloc(bytes + 2 * GUARD);
            MUST(hone_opencl_copy_out(batch.device, got, m->tensor[t], 0, bytes + 2 * GUARD));
            if (!same(j, t, j->call.place[t].at, (char *)got + GUARD, k == from ? absolute : NULL, size, slack, text, sizeof text))
                complain(j, first, "%s (stage %d)", text, k), go_on = false;
            for (size_t g = 0; g < GUARD && go_on; g++)
                if (got[g] != 0x5a || got[bytes + GUARD + g] != 0x5a)
                    complain(j, first, "'%s': wrote outside", in->tensor[t].name), go_on = false;
            free(got);
        }
        MUST(hone_opencl_copy_in(batch.device, m->tensor[t], GUARD, j->call.place[t].at, bytes));
    }
    free(absolute);
    return go_on;
}
static void run_job(job *j) { /* and frees it */
    const hone_instance *in = j->call.in;
    memories m = {calloc((size_t)in->n_tensor + 1, sizeof *m.tensor), calloc((size_t)j->kernels.n_scratch + 1, sizeof *m.scratch), NULL};
    for (int t = 0; t < in->n_tensor; t++) {
        const size_t bytes = bytes_of(j, t);
        MUST(hone_opencl_memory_make(batch.device, bytes + 2 * GUARD, m.tensor + t));
        MUST(hone_opencl_fill(batch.device, m.tensor[t], 0, 0x5a, bytes + 2 * GUARD));
        MUST(hone_opencl_copy_in(batch.device, m.tensor[t], GUARD, j->call.place[t].at, bytes));
    }
    for (int k = 0; k < j->kernels.n_scratch; k++)
        MUST(hone_opencl_memory_make(batch.device, (uint64_t)j->kernels.scratch_bytes[k], m.scratch + k));
    MUST(hone_opencl_memory_make(batch.device, 4, &m.error));
    bool go_on = true;
    for (int k = 0; k < j->kernels.n_turn && go_on; k++) go_on = run_turn(j, j->kernels.turn + k, &m, 1000u + (uint32_t)k);
    for (int t = 0; t < in->n_tensor; t++) hone_opencl_memory_free(batch.device, m.tensor[t]);
    for (int k = 0; k < j->kernels.n_scratch; k++) hone_opencl_memory_free(batch.device, m.scratch[k]);
    hone_opencl_memory_free(batch.device, m.error);
    free(m.tensor), free(m.scratch);
    batch.calls++;
}
static void drop(job *j) {
    for (int i = 0; i < WALK_MAX; i++) hone_value_drop(j->in[i]);
    walk_call_free(&j->call);
    free(j);
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
static void add(walk_call *c, hone_value *const *in, int n_in, hone_value *const *want, int n_out, bool failed, const char *what) {
    job *j = calloc(1, sizeof *j);
    (void)want, (void)n_out;
    j->call = *c, j->n_in = n_in, j->failed = failed;
    snprintf(j->what, sizeof j->what, "%s", what);
    for (int k = 0; k < n_in; k++) j->in[k] = in[k] ? hone_value_hold(in[k]) : NULL;
    int64_t *stride = HONE_NEW_N(c->arena, int64_t, c->in->n_tensor * HONE_MAX_RANK + 1);
    for (int t = 0; t < c->in->n_tensor; t++) memcpy(stride + t * HONE_MAX_RANK, c->place[t].stride, sizeof c->place[t].stride);
    const hone_status s = hone_kernels_make(c->arena, &batch.target, c->in, c->param, stride, &j->kernels);
    if (s) {
        if (s != HONE_NOT_SUPPORTED) complain(j, NULL, "%s", hone_fail_text());
        else if (getenv("HONE_TEST_VERBOSE")) fprintf(stderr, "refused: %s: %s\n", what, hone_fail_text());
        batch.refused++;
        drop(j);
        return;
    }
    for (int k = 0; k < j->kernels.n_launch; k++)
        batch.by_kind[j->kernels.launch[k].schedule.kind]++, batch.grouped += j->kernels.launch[k].n_stage > 1;
    if (!batch.device) {
        batch.calls++;
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
    for (int t = 0; t < c->in->n_tensor; t++) batch.held += c->bytes[t];
    if (batch.waiting.n >= BATCH || batch.held > HELD) flush();
}
static void summary(const char *what) {
    print_message("%s: %d calls, %d refused, %d kernels, %d launches; each %d, lanes %d, slices %d, owners %d, rows %d, grouped %d\n", what,
                  batch.calls, batch.refused, batch.kernels.n, batch.launches, batch.by_kind[0], batch.by_kind[1], batch.by_kind[2],
                  batch.by_kind[3], batch.by_kind[4], batch.grouped);
    batch.calls = batch.refused = batch.launches = batch.grouped = 0;
    memset(batch.by_kind, 0, sizeof batch.by_kind);
}
static void opencl_examples(void **state) {
    (void)state;
    if (!batch.device && !SLOW) skip();
    calls_examples(getenv("HONE_TEST_ALL") ? 1 : 10);
    flush();
    summary("examples");
    assert_int_equal(batch.failures, 0);
}
static void opencl_rows(void **state) {
    (void)state;
    if ((!batch.device && !SLOW) || !getenv("HONE_TEST_ALL")) skip();
    calls_rows(6);
    flush();
    summary("rows");
    assert_int_equal(batch.failures, 0);
}
/* The same with schedules that the rules would not choose for so little. */
static void opencl_schedules(void **state) {
    static const hone_schedule_wish wishes[] = {{.kind = 1 + HONE_LANES, .lanes = 8},   {.kind = 1 + HONE_LANES, .lanes = 64},
                                                {.kind = 1 + HONE_SLICES, .slices = 3}, {.kind = 1 + HONE_EACH, .unroll = 3},
                                                {.kind = 1 + HONE_ROWS, .lanes = 1},    {.kind = 1 + HONE_ROWS, .lanes = 16}};
    const hone_schedule_wish before = batch.target.wish;
    (void)state;
    if (!batch.device && !SLOW) skip();
    for (size_t k = 0; k < sizeof wishes / sizeof *wishes; k++) {
        hone_schedule_wish wish = wishes[k];
        wish.max_threads = before.max_threads, wish.units = before.units;
        batch.target.wish = wish;
        calls_examples(getenv("HONE_TEST_ALL") ? 1 : 58);
        flush();
        summary("wished");
    }
    batch.target.wish = before;
    const bool f64 = batch.target.f64; /* a device without it: everything else must still be there */
    batch.target.f64 = false;
    calls_examples(getenv("HONE_TEST_ALL") ? 1 : 58);
    flush();
    summary("without f64");
    batch.target.f64 = f64;
    assert_int_equal(batch.failures, 0);
}
static void opencl_cases(void **state) {
    (void)state;
    int cases = 0, whole = 0;
    if ((!batch.device && !SLOW) || !calls_cases(getenv("HONE_TEST_ALL") ? 1 : 400, &cases, &whole)) skip();
    flush();
    print_message("%d of %d cases walked\n", whole, cases);
    summary("cases");
    assert_int_equal(batch.failures, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(opencl_examples), cmocka_unit_test(opencl_schedules), cmocka_unit_test(opencl_rows),
                                       cmocka_unit_test(opencl_cases)};
    const char *only = getenv("HONE_TEST_ONLY"); /* a part of a test's name */
    if (only) {
        char pattern[64];
        snprintf(pattern, sizeof pattern, "*%.60s*", only);
        cmocka_set_test_filter(pattern);
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
