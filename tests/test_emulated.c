/* SPDX-License-Identifier: Apache-2.0
   Printed CUDA kernels on the CPU against the interpreter: their texts, with words of C instead of CUDA's,
   are compiled by the system's C compiler; the threads of a block are fibers, which meet at barriers and
   shuffles. Quick, so it runs every example, every row with made-up calls and every
   conformance case, by the rules' schedules and by others. A barrier that not all threads reach is reported;
   threads take turns forwards and backwards. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "calls.h"

typedef char *memory;
#include "launches.h"
#include "compile_c.h"

extern const char hone_fn_text[], hone_storage_text[];
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(HONE_EMULATED)
/* printing is what a sanitizer can find something in; what is compiled here is not instrumented */
enum { SLOW = 1 };
#else
enum { SLOW = 0 };
#endif
enum { BATCH = 400, HELD = 100000000, STACK = 128 * 1024, THREADS = 256 };

static const char words[] = /* C's, for CUDA's */
    "#define HONE_GLOBAL\n#define HONE_SHARED static\n#define HONE_ENTRY(name, threads) static void name\n"
    "extern uint32_t hone_thread; extern uint64_t hone_group; extern uint64_t hone_slot[256]; extern void "
    "(*hone_meet)(void);\n"
    "uint32_t hone_thread; uint64_t hone_group, hone_slot[256]; void (*hone_meet)(void);\n"
    "#define HONE_THREAD hone_thread\n#define HONE_GROUP hone_group\n#define HONE_BARRIER() "
    "hone_meet()\n#define HONE_BEGIN()\n"
    "#define HONE_RAISE(at, code) do { if (*(at) < (code)) *(at) = (code); } while (0)\n"
    "#define HONE_SHUFFLE(v, by) __extension__({ __typeof__(v) hone_r = (v); memcpy(hone_slot + hone_thread, "
    "&hone_r, sizeof hone_r); "
    "hone_meet(); \\\n"
    "    if (hone_thread % 32 + (by) < 32) memcpy(&hone_r, hone_slot + hone_thread + (by), sizeof hone_r); "
    "hone_meet(); hone_r; })\n"
    "#define HONE_VECTOR(T, name, n) T name[n]\n"
    "#define HONE_BRING(T, n, to, from) memcpy((to), (from), sizeof(T) * (n))\n"
    "#define HONE_LEAVE(T, n, to, from) memcpy((to), (from), sizeof(T) * (n))\n"
    "static inline int32_t hone_outside_first(int *bad, int tensor) { return *bad = *bad ? *bad : tensor, 0; "
    "}\n"
    "#define hone_outside hone_outside_first\n";

typedef void emulated(void *const *args);
typedef struct {
    char *name;
    emulated *call;
    void *library;
    bool meets; /* has barriers */
} compiled;
static struct {
    char folder[64];
    bool works;
    hone_kernel_target target;
    hone_text text;
    hone_vec(compiled) kernels; /* of all files; the last `waiting` are not compiled yet */
    hone_vec(void *) libraries;
    hone_vec(job *) jobs;
    int waiting;
    size_t held;
} batch;

/* ---- threads ---- */
static struct {
    ucontext_t all, one[THREADS];
    char *stack;
    bool done[THREADS];
    int at, meetings;
    emulated *call;
    void *const *args;
    uint32_t *thread;
} block;
static void meet(void) {
    block.meetings++;
    const int at = block.at;
    swapcontext(&block.one[at], &block.all);
    *block.thread = (uint32_t)at;
}
static void enter(void) {
    block.call(block.args);
    block.done[block.at] = true;
}
static void prepare(int k) { /* by itself: getcontext returns more than once, as far as a compiler knows */
    getcontext(&block.one[k]);
    block.one[k].uc_stack.ss_sp = block.stack + (size_t)k * STACK, block.one[k].uc_stack.ss_size = STACK,
    block.one[k].uc_link = &block.all;
    makecontext(&block.one[k], enter, 0);
    block.done[k] = false;
}
static bool run_block(int threads, bool backwards) { /* false: a barrier that not all reached */
    for (int k = 0; k < threads; k++) prepare(k);
    for (int ended = 0; ended < threads;) {
        int now = 0;
        for (int q = 0; q < threads; q++) {
            const int k = backwards ? threads - 1 - q : q;
            if (block.done[k]) return false; /* the others still meet */
            block.at = k, *block.thread = (uint32_t)k;
            swapcontext(&block.all, &block.one[k]);
            now += block.done[k];
        }
        ended += now;
        if (now && now < threads) return false;
    }
    return true;
}

/* ---- memory and launches ---- */
static memory memory_make(size_t bytes) { return malloc(bytes + 1); }
static void memory_free(memory m) { free(m); }
static void memory_put(memory to, size_t at, const void *from, size_t bytes) {
    if (bytes) memcpy(to + at, from, bytes);
}
static void memory_get(void *to, memory from, size_t at, size_t bytes) {
    if (bytes) memcpy(to, from + at, bytes);
}
static const compiled *kernel_named(const char *name) {
    for (int k = 0; k < batch.kernels.n; k++)
        if (!strcmp(batch.kernels.at[k].name, name)) return batch.kernels.at + k;
    return NULL;
}
static void launch(const job *j, const hone_launch *l, const memories *m, int64_t step, uint32_t where) {
    const compiled *c = kernel_named(l->name);
    void *args[256];
    union {
        void *at;
        int64_t i;
        double f;
        float f32;
        uint32_t u;
    } value[256];
    if (!c || !c->call || l->n_arg > 256 || l->threads > THREADS) {
        complain(j, l, "no kernel");
        return;
    }
    for (int a = 0; a < l->n_arg; a++) {
        const hone_karg *g = l->arg + a;
        args[a] = value + a;
        switch (g->kind) {
        case HONE_KARG_TENSOR: value[a].at = m->tensor[g->which] + GUARD; break;
        case HONE_KARG_SCRATCH: value[a].at = m->scratch[g->which]; break;
        case HONE_KARG_ERROR: value[a].at = m->error; break;
        case HONE_KARG_NUMBERS: value[a].at = (void *)(uintptr_t)l->number; break;
        case HONE_KARG_F64: value[a].f = g->f; break;
        case HONE_KARG_F32: value[a].f32 = (float)g->f; break;
        case HONE_KARG_STEP: value[a].i = step; break;
        case HONE_KARG_WHERE: value[a].u = where; break;
        default: value[a].i = g->i;
        }
    }
    void *symbol = dlsym(c->library, "hone_meet");
    void (*to)(void) = meet;
    memcpy(symbol, &to, sizeof to);
    uint64_t *group = dlsym(c->library, "hone_group");
    block.thread = dlsym(c->library, "hone_thread"), block.call = c->call, block.args = args;
    for (int64_t g = 0; g < l->groups; g++) {
        *group = (uint64_t)g;
        if (c->meets) {
            if (!run_block(l->threads, g % 2)) {
                complain(j, l, "a barrier that not all threads reach");
                return;
            }
        } else
            for (int t = 0; t < l->threads; t++) *block.thread = (uint32_t)t, c->call(args);
    }
    tally.launches++;
}

/* ---- compiling ---- */
static bool compile(const char *text, const char *stem, void **library) {
    return compile_c(batch.folder, stem, text, "-std=gnu11 -Wno-unknown-pragmas", library);
}
static void flush(void) {
    if (batch.waiting) {
        hone_text file = {0};
        void *library = NULL;
        char stem[32], call[80];
        snprintf(stem, sizeof stem, "batch%d", batch.libraries.n);
        hone_text_put(&file, "%s\n%s\n%s%s", hone_fn_text, hone_storage_text, words, batch.text.text);
        if (!compile(file.text, stem, &library)) {
            tally.failures++;
            fprintf(stderr, "%s/%s.c does not compile; see %s.log\n", batch.folder, stem, stem);
        }
        assert_true(hone_push(&batch.libraries, library));
        for (; batch.waiting; batch.waiting--) {
            compiled *c = batch.kernels.at + batch.kernels.n - batch.waiting;
            snprintf(call, sizeof call, "%.60s_call", c->name);
            void *symbol = library ? dlsym(library, call) : NULL;
            c->library = library;
            memcpy(&c->call, &symbol, sizeof symbol);
        }
        hone_text_free(&file);
    }
    for (int k = 0; k < batch.jobs.n; k++) run_job(batch.jobs.at[k]), drop(batch.jobs.at[k]);
    hone_text_free(&batch.text);
    hone_vec_free(&batch.jobs);
    batch.held = 0;
}
static void add(walk_call *c, hone_value *const *in, int n_in, hone_value *const *want, int n_out,
                bool failed, const char *what) {
    static const char *const types[] = {
        [HONE_KARG_TENSOR] = "void *", [HONE_KARG_SCRATCH] = "void *", [HONE_KARG_NUMBERS] = "void *",
        [HONE_KARG_ERROR] = "void *",  [HONE_KARG_OFFSET] = "int64_t", [HONE_KARG_I64] = "int64_t",
        [HONE_KARG_F64] = "double",    [HONE_KARG_F32] = "float",      [HONE_KARG_STEP] = "int64_t",
        [HONE_KARG_WHERE] = "uint32_t"};
    job *j = job_of(&batch.target, c, in, n_in, failed, what);
    (void)want, (void)n_out;
    if (!j) return;
    if (SLOW) {
        tally.calls++;
        drop(j);
        return;
    }
    for (int k = 0; k < j->kernels.n_launch; k++) {
        const hone_launch *l = j->kernels.launch + k;
        if (kernel_named(l->name)) continue;
        compiled one = {.name = strdup(l->name),
                        .meets = strstr(l->text, "HONE_BARRIER") || strstr(l->text, "HONE_SHUFFLE")};
        assert_true(hone_push(&batch.kernels, one));
        hone_text_put(&batch.text,
                      "/* %s */\n%svoid %s_call(void *const *a);\nvoid %s_call(void *const *a) { %s(", what,
                      l->text, l->name, l->name, l->name);
        for (int a = 0; a < l->n_arg; a++)
            hone_text_put(&batch.text, "%s*(%s *)a[%d]", a ? ", " : "", types[l->arg[a].kind], a);
        hone_text_put(&batch.text, "); }\n");
        batch.waiting++;
    }
    assert_true(hone_push(&batch.jobs, j));
    for (int t = 0; t < j->call.in->n_tensor; t++) batch.held += j->call.bytes[t];
    if (batch.waiting >= BATCH || batch.held > HELD) flush();
}

/* ---- tests ---- */
static int set_up(void **state) {
    (void)state;
    const char *t = getenv("TMPDIR");
    void *library = NULL;
    calls_seed();
    batch.target = (hone_kernel_target){
        .lang = HONE_LANG_CUDA, .f64 = true, .arg_bytes = 700, .wish = {.max_threads = 64, .units = 2}};
    snprintf(batch.folder, sizeof batch.folder, "%.40s/hone-emulated-XXXXXX", t ? t : "/tmp");
    block.stack = malloc((size_t)STACK * THREADS);
    if (!mkdtemp(batch.folder) || !block.stack) return -1;
    batch.works = SLOW || compile("int probe(void);\nint probe(void) { return 1; }\n", "probe", &library);
    if (library) dlclose(library);
    return 0;
}
static int tear_down(void **state) {
    (void)state;
    for (int k = 0; k < batch.kernels.n; k++) free(batch.kernels.at[k].name);
    for (int k = 0; k < batch.libraries.n; k++)
        if (batch.libraries.at[k]) dlclose(batch.libraries.at[k]);
    hone_vec_free(&batch.kernels);
    hone_vec_free(&batch.libraries);
    free(block.stack);
    if (tally.failures) {
        fprintf(stderr, "printed kernels are kept in %s\n", batch.folder);
        return 0;
    }
    char command[160];
    snprintf(command, sizeof command, "rm -rf '%s'", batch.folder);
    return system(command) ? -1 : 0;
}
static void emulated_examples(void **state) {
    (void)state;
    if (!batch.works) skip();
    assert_true(calls_examples(1) >= 90);
    flush();
    summary("examples", batch.kernels.n);
    assert_int_equal(tally.failures, 0);
}
static void emulated_schedules(void **state) {
    const hone_schedule_wish before = batch.target.wish;
    (void)state;
    if (!batch.works) skip();
    /* all of them in make test-all */
    for (size_t k = 0; k < sizeof wishes / sizeof *wishes; k += getenv("HONE_TEST_ALL") ? 1 : 3) {
        batch.target.wish = wishes[k];
        batch.target.wish.max_threads = before.max_threads, batch.target.wish.units = before.units;
        calls_examples(1);
        flush();
        summary("wished", batch.kernels.n);
    }
    batch.target.wish = before;
    assert_int_equal(tally.failures, 0);
}
static void emulated_products(void **state) {
    (void)state;
    if (!batch.works) skip();
    test_products(&batch.target.wish, flush, &batch.kernels.n);
}
static void emulated_rows(void **state) {
    (void)state;
    if (!batch.works) skip();
    assert_true(calls_rows(SLOW || !getenv("HONE_TEST_ALL") ? 2 : 6) >= 120);
    flush();
    summary("rows", batch.kernels.n);
    assert_int_equal(tally.failures, 0);
}
static void emulated_cases(void **state) {
    int cases = 0, whole = 0;
    (void)state;
    if (!batch.works || !calls_cases(SLOW ? 10 : getenv("HONE_TEST_ALL") ? 1 : 5, &cases, &whole)) skip();
    flush();
    print_message("%d of %d cases walked\n", whole, cases);
    summary("cases", batch.kernels.n);
    assert_int_equal(tally.failures, 0);
    assert_true(whole * 10 >= cases * 9);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(emulated_examples),
                                       cmocka_unit_test(emulated_schedules),
                                       cmocka_unit_test(emulated_products), cmocka_unit_test(emulated_rows),
                                       cmocka_unit_test(emulated_cases)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
