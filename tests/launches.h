/* SPDX-License-Identifier: Apache-2.0
   launches: runs what hone_kernels_make made of a call, and compares it with the interpreter launch by
   launch. For tests: whoever includes this has defined `memory` (a handle), memory_make, memory_free,
   memory_put, memory_get and launch.

   Before each launch the device's targets are the interpreter's, so that a difference is this launch's own;
   memory around every tensor is guarded. All but sums and functions that libraries define must agree bit for
   bit (NaNs among themselves). */
#ifndef HONE_TESTS_LAUNCHES_H
#define HONE_TESTS_LAUNCHES_H
#include <math.h>

#include "loops/kernel.h"

enum { GUARD = 256 };
static struct { int calls, launches, refused, failures, by_kind[8], grouped; } tally;
typedef struct {
    walk_call call;
    hone_value *in[WALK_MAX];
    int n_in;
    bool failed;
    char what[160];
    hone_kernels kernels;
} job;
typedef struct {
    memory *tensor, *scratch, error;
} memories;
static memory memory_make(size_t bytes);
static void memory_free(memory);
static void memory_put(memory to, size_t at, const void *from, size_t bytes);
static void memory_get(void *to, memory from, size_t at, size_t bytes);
/* and waits for its end */
static void launch(const job *, const hone_launch *, const memories *, int64_t step, uint32_t where);

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
    tally.failures++;
}

/* ---- what is the same ---- */
/* uses a function whose last digits are the library's */
static bool by_library(const hone_instance *in, int32_t x, int depth) {
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
    for (int k = 0; k < (e->kind == HONE_X_FN       ? hone_fns[e->fn].arity
                         : e->kind == HONE_X_SELECT ? 3
                                                    : 1);
         k++)
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
/* slack: in units of eps, of the sum of magnitudes (`absolute`, or NULL: `size` for all) and of the value
   itself. */
static bool same(const job *j, int t, const char *want, const char *got, const char *absolute, double size,
                 double slack, double coarse, char *text, size_t room) {
    const hone_tensor *w = j->call.in->tensor + t;
    const hone_param *p = j->call.param;
    int64_t x[HONE_MAX_RANK] = {0}, n = 1;
    for (int d = 0; d < w->rank; d++) n *= p[w->dim[d]].i;
    const double eps = eps_of(w->dtype) > coarse ? eps_of(w->dtype) : coarse;
    const int bytes = hone_dtypes[w->dtype].bytes;
    const hone_ctype c = hone_dtypes[w->dtype].ctype;
    for (int64_t k = 0; k < n; k++) {
        int64_t at = 0;
        for (int d = 0; d < w->rank; d++) at += x[d] * j->call.place[t].stride[d];
        const char *a = want + at * bytes, *b = got + at * bytes;
        if (memcmp(a, b, (size_t)bytes)) {
            const double u = hone_scalar_f64(c, hone_dtype_load(w->dtype, a)),
                         v = hone_scalar_f64(c, hone_dtype_load(w->dtype, b));
            const double of =
                absolute ? hone_scalar_f64(c, hone_dtype_load(w->dtype, absolute + at * bytes)) : size;
            bool ok = hone_dtypes[w->dtype].kind == HONE_KIND_FLOAT && isnan(u) && isnan(v);
            /* a rounding that went the other way */
            if (!ok && slack > 0)
                ok = fabs(u - v) <= slack * eps * (of + fabs(u)) + 1e-37 ||
                     (!(of < 1e37) && (isnan(u) || isinf(u)) && (isnan(v) || isinf(v))) ||
                     (hone_dtypes[w->dtype].kind != HONE_KIND_FLOAT && fabs(u - v) <= 1);
            if (!ok) {
                snprintf(text, room, "'%s' element %lld: interpreter %.17g, kernel %.17g (of %g)", w->name,
                         (long long)k, u, v, of);
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
static void *copy_of(const void *at, size_t bytes) {
    void *c = malloc(bytes + 1);
    if (bytes) memcpy(c, at, bytes);
    return c;
}
/* One turn: the interpreter on the host, the launches on the device, then compared. False: the rest has no
   inputs. */
static bool run_turn(job *j, const hone_launches *turn, const memories *m, uint32_t where) {
    const hone_instance *in = j->call.in;
    const hone_launch *first = j->kernels.launch + turn->first, *last = first + turn->n - 1;
    const int from = first->first_stage, to = last->first_stage + last->n_stage;
    const bool over = in->stage[from].over >= 0;
    char *absolute = NULL, text[400];
    double size = 1, slack = 0, coarse = 0; /* coarse: the rounding of what it was made of */
    bool wild = false;                      /* some sum has no bound */
    uint32_t error = 0;
    for (int k = from; k < to; k++) { /* the targets are as the interpreter will find them */
        const int t = in->stage[k].tensor;
        memory_put(m->tensor[t], GUARD, j->call.place[t].at, bytes_of(j, t));
        if (in->stage[k].reduce == HONE_REDUCE_SUM || in->stage[k].reduce == HONE_REDUCE_PROD ||
            (over && in->stage[k].reduce)) {
            const hone_ctype c = (hone_ctype)in->x[in->stage[k].value].type;
            if (c == HONE_F32 || c == HONE_F64) slack += over ? 400 : 16;
        }
        if (by_library(in, in->stage[k].value, 0)) slack += 64;
        if (in->x[in->stage[k].value].type == HONE_F32 && to > from + 1) coarse = 0x1p-23;
    }
    const hone_stage *s = in->stage + from;
    hone_status want = HONE_OK;
    /* the sum of absolute values, in a copy of the target */
    if (slack > 0 && !over && s->reduce == HONE_REDUCE_SUM) {
        void *const here = j->call.place[s->tensor].at;
        absolute = copy_of(here, bytes_of(j, s->tensor));
        j->call.place[s->tensor].at = absolute;
        (void)!hone_interpret_stage(in, j->call.param, j->call.place, from, true);
        j->call.place[s->tensor].at = here;
        if (to > from + 1) { /* what follows a sum may be as far off as the largest of its terms */
            const hone_tensor *w = in->tensor + s->tensor;
            for (size_t k = 0; k < bytes_of(j, s->tensor) / hone_dtypes[w->dtype].bytes; k++) {
                const double v =
                    hone_scalar_f64(hone_dtypes[w->dtype].ctype,
                                    hone_dtype_load(w->dtype, absolute + k * hone_dtypes[w->dtype].bytes));
                if (!(v < 1e37)) wild = true;
                else if (v > size) size = v;
            }
            slack *= 4;
            if (wild) size = 1e37;
            free(absolute), absolute = NULL;
        }
    }
    for (int k = from; k < to && !want; k++) {
        want = hone_interpret_stage(in, j->call.param, j->call.place, k, false);
        if (over) break; /* that was the whole group */
    }
    memory_put(m->error, 0, &(uint32_t){0}, 4);
    for (int64_t r = 0; r < turn->rounds; r++)
        for (int k = 0; k < turn->n; k++) launch(j, first + k, m, r, where);
    memory_get(&error, m->error, 0, 4);
    bool go_on = !want;
    if ((want != HONE_OK) != (error != 0))
        complain(j, first, "the interpreter says %d, the error word is %08x", want, error), go_on = false;
    else if (error) {
        const int tensor = (int)(~error & 255) - 1;
        char name[300];
        snprintf(name, sizeof name, "outside of '%.200s'",
                 tensor >= 0 && tensor < in->n_tensor ? in->tensor[tensor].name : "?");
        if (~error >> 8 != where)
            complain(j, first, "the error word names launch %u, it was %u", ~error >> 8, where);
        /* where several tensors are indexed outside, the kernel may meet another of them first */
        bool touched = false;
        for (int k = from; k < to; k++)
            touched |= tensor >= 0 && in->stage[k].uses >> (tensor < 63 ? tensor : 63) & 1;
        if (!strstr(hone_fail_text(), name) && !touched)
            complain(j, first, "the error word says '%s', the interpreter: %s", name, hone_fail_text());
    }
    for (int k = from; k < to && go_on; k++) {
        const int t = in->stage[k].tensor;
        const size_t bytes = bytes_of(j, t);
        bool held = false;
        for (const hone_launch *l = first; l <= last; l++)
            if (k >= l->first_stage && k < l->first_stage + l->n_stage - 1 &&
                in->tensor[t].role == HONE_ROLE_TEMP && !j->kernels.temp_bytes[t])
                held = true;
        if (!held) {
            unsigned char *got = malloc(bytes + 2 * GUARD);
            memory_get(got, m->tensor[t], 0, bytes + 2 * GUARD);
            if (!same(j, t, j->call.place[t].at, (char *)got + GUARD, k == from ? absolute : NULL, size,
                      slack, coarse, text, sizeof text))
                complain(j, first, "%s (stage %d)", text, k), go_on = false;
            for (size_t g = 0; g < GUARD && go_on; g++)
                if (got[g] != 0x5a || got[bytes + GUARD + g] != 0x5a)
                    complain(j, first, "'%s': wrote outside", in->tensor[t].name), go_on = false;
            free(got);
        }
        memory_put(m->tensor[t], GUARD, j->call.place[t].at, bytes);
    }
    free(absolute);
    return go_on;
}
static void run_job(job *j) { /* and frees it */
    const hone_instance *in = j->call.in;
    memories m = {calloc((size_t)in->n_tensor + 1, sizeof *m.tensor),
                  calloc((size_t)j->kernels.n_scratch + 1, sizeof *m.scratch), NULL};
    for (int t = 0; t < in->n_tensor; t++) {
        const size_t bytes = bytes_of(j, t);
        unsigned char *pattern = malloc(bytes + 2 * GUARD);
        memset(pattern, 0x5a, bytes + 2 * GUARD);
        m.tensor[t] = memory_make(bytes + 2 * GUARD);
        memory_put(m.tensor[t], 0, pattern, bytes + 2 * GUARD);
        free(pattern);
        memory_put(m.tensor[t], GUARD, j->call.place[t].at, bytes);
    }
    for (int k = 0; k < j->kernels.n_scratch; k++)
        m.scratch[k] = memory_make((size_t)j->kernels.scratch_bytes[k]);
    m.error = memory_make(4);
    bool go_on = true;
    for (int k = 0; k < j->kernels.n_turn && go_on; k++)
        go_on = run_turn(j, j->kernels.turn + k, &m, 1000u + (uint32_t)k);
    for (int t = 0; t < in->n_tensor; t++) memory_free(m.tensor[t]);
    for (int k = 0; k < j->kernels.n_scratch; k++) memory_free(m.scratch[k]);
    memory_free(m.error);
    free(m.tensor), free(m.scratch);
    tally.calls++;
}
static void drop(job *j) {
    for (int i = 0; i < WALK_MAX; i++) hone_value_drop(j->in[i]);
    walk_call_free(&j->call);
    free(j);
}
/* A call as a job; NULL: it has no kernels, or they are wrong. */
static job *job_of(const hone_kernel_target *target, walk_call *c, hone_value *const *in, int n_in,
                   bool failed, const char *what) {
    job *j = calloc(1, sizeof *j);
    j->call = *c, j->n_in = n_in, j->failed = failed;
    snprintf(j->what, sizeof j->what, "%s", what);
    for (int k = 0; k < n_in; k++) j->in[k] = in[k] ? hone_value_hold(in[k]) : NULL;
    int64_t *stride = HONE_NEW_N(c->arena, int64_t, c->in->n_tensor * HONE_MAX_RANK + 1);
    for (int t = 0; t < c->in->n_tensor; t++)
        memcpy(stride + t * HONE_MAX_RANK, c->place[t].stride, sizeof c->place[t].stride);
    const hone_status s = hone_kernels_make(c->arena, target, c->in, c->param, stride, NULL, &j->kernels);
    if (s) {
        if (s != HONE_NOT_SUPPORTED) complain(j, NULL, "%s", hone_fail_text());
        else if (getenv("HONE_TEST_VERBOSE")) fprintf(stderr, "refused: %s: %s\n", what, hone_fail_text());
        tally.refused++;
        drop(j);
        return NULL;
    }
    for (int k = 0; k < j->kernels.n_launch; k++)
        tally.by_kind[j->kernels.launch[k].schedule.kind]++,
            tally.grouped += j->kernels.launch[k].n_stage > 1;
    return j;
}
static void summary(const char *what, int kernels) {
    print_message("%s: %d calls, %d refused, %d kernels so far, %d launches; each %d, lanes %d, slices %d, "
                  "owners %d, tiles %d, rows %d, blocks %d; %d of "
                  "several stages\n",
                  what, tally.calls, tally.refused, kernels, tally.launches, tally.by_kind[0],
                  tally.by_kind[1], tally.by_kind[2], tally.by_kind[3], tally.by_kind[4], tally.by_kind[5],
                  tally.by_kind[6], tally.grouped);
    tally.calls = tally.refused = tally.launches = tally.grouped = 0;
    memset(tally.by_kind, 0, sizeof tally.by_kind);
}
/* Schedules that the rules would not choose for so little. */
static const hone_schedule_wish wishes[] = {{.kind = 1 + HONE_LANES, .lanes = 8},
                                            {.kind = 1 + HONE_LANES, .lanes = 64},
                                            {.kind = 1 + HONE_SLICES, .slices = 3},
                                            {.vector = 8},
                                            {.kind = 1 + HONE_EACH, .unroll = 3},
                                            {.kind = 1 + HONE_TILES},
                                            {.kind = 1 + HONE_ROWS, .lanes = 1},
                                            {.kind = 1 + HONE_ROWS, .lanes = 16},
                                            {.vector = 2},
                                            {.kind = 1 + HONE_BLOCKS, .blocks = HONE_BLOCKS_GPU},
                                            {.kind = 1 + HONE_BLOCKS, .blocks = HONE_BLOCKS_CPU}};

/* ---- products in blocks, at the edges of blocks and beside them ---- */
static int product_calls(void) { /* so many calls, each with one stage that is a sum of products */
    enum { SIDES = 5, DEPTHS = 3, SQUARES = SIDES * SIDES * DEPTHS };
    static const int side[SIDES] = {1, 16, 17, 33, 65}, deep[DEPTHS] = {1, 15, 33};
    static const example others[] = {
        {"MatMul", "f16[21,35] f16[35,18]", ""},
        {"MatMul", "bf16[9,70] bf16[70,40]", ""},
        {"MatMul", "f32[2,3,17,33] f32[3,33,19]", ""},
        {"MatMul", "f32[5,1,17,20] f32[3,20,66]", ""},
        {"Gemm", "f32[33,17] f32[19,33] f32[19]", "transA=1 transB=1 alpha=0.5"},
        {"Gemm", "f32[17,33] f32[33,70] f32[17,1]", "beta=0.25"},
        {"Conv", "f32[2,8,9,7] f32[16,8,3,3] f32[16]", "pads=1,1,1,1"},
        {"Conv", "f32[1,8,19,13] f32[17,8,3,2] -", "dilations=2,3 pads=2,1,0,3 strides=2,1"},
        {"Conv", "f32[3,6,10,9] f32[33,6,1,1] f32[33]", ""},
        {"Conv", "f32[1,8,9,11] f32[20,4,3,3] f32[20]", "group=2 pads=0,1,2,0"},
        {"Conv", "f16[1,5,18,17] f16[18,5,3,3] -", "pads=1,1,1,1"},
        {"Conv", "f32[2,3,33] f32[18,3,5] -", "pads=2,2 strides=2"},
        {"Conv", "f32[1,3,7,6,8] f32[9,3,3,2,3] f32[9]", "pads=1,0,1,1,1,1"},
    };
    const hone_library *lib;
    int calls = 0;
    assert_int_equal(hone_library_builtin(&lib), HONE_OK);
    tame = true;
    const size_t n_other = sizeof others / sizeof *others, step = getenv("HONE_TEST_ALL") ? 1 : 3;
    for (size_t k = 0; k < SQUARES + n_other; k += k < SQUARES ? 1 : step) {
        char text[80];
        if (k < SQUARES)
            snprintf(text, sizeof text, "f32[%d,%d] f32[%d,%d]", side[k % SIDES], deep[k / SIDES / SIDES],
                     deep[k / SIDES / SIDES], side[k / SIDES % SIDES]);
        const example e = k < SQUARES ? (example){"MatMul", text, ""} : others[k - SQUARES];
        const hone_program *p = hone_library_find(lib, "", e.op);
        hone_value *in[8] = {0};
        hone_attr attr[16];
        hone_arena *a = hone_arena_create();
        const int n = parse_inputs(e.in, in), n_attr = parse_attrs(a, p, e.attr, attr);
        const bool want[] = {true};
        if (!try_call(p, attr, n_attr, in, n, want, e.in))
            fail_msg("%s %s %s is no call", e.op, e.in, e.attr);
        calls++;
        for (int q = 0; q < n; q++) hone_value_drop(in[q]);
        hone_arena_destroy(a);
    }
    return calls;
}
/* By both shapes of blocks, whatever the device is. run: what compiles and runs the calls. */
static void test_products(hone_schedule_wish *wish, void (*run)(void), int *kernels) {
    const hone_schedule_wish before = *wish;
    for (hone_blocks_for device = HONE_BLOCKS_GPU; device <= HONE_BLOCKS_CPU; device++) {
        *wish = (hone_schedule_wish){.max_threads = before.max_threads, .units = before.units};
        wish->kind = 1 + HONE_BLOCKS, wish->blocks = device;
        const int calls = product_calls();
        run();
        if (tally.by_kind[HONE_BLOCKS] < calls && tally.launches)
            fail_msg("%d calls, %d in blocks", calls, tally.by_kind[HONE_BLOCKS]);
        summary("products in blocks", *kernels);
    }
    *wish = before;
    assert_int_equal(tally.failures, 0);
}
#endif
