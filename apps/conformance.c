/* SPDX-License-Identifier: Apache-2.0
   hone conformance: ONNX's own cases, in child processes, so that a crash or a hang is one failed case.

   A child takes case after case until none is left: a device is opened once a child, not once a case. What
   it takes and what comes of it lies in memory that all processes share, so of a child that died it is known
   where. It limits the time of a case by an alarm; the parent only waits, and starts another child for the
   cases that are left. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "args.h"
#include "commands.h"
#include "hone/tools.h"
#include "json.h"
#include "table.h"
#include "term.h"
#include "where.h"

enum { SECONDS = 20 /* a case may take */ };
static const double FOURIER_ATOL = 1e-4; /* ONNX's own bound for them: sums of many terms that cancel */

typedef struct {
    const char *filter;
    double rtol, atol;
    int least, jobs, seconds;
    bool interpret, json;
    hone_where where;
    char **folder; /* cases */
    int n, room;
    hone_case *result; /* shared, one a case; */
    struct shared *shared;
} job;
enum { MOST_JOBS = 512 };
struct shared {
    _Atomic int next, done; /* the case that is taken next; how many are over */
    int at[MOST_JOBS];      /* the case that child k is at; -1: none */
    hone_status status;     /* of opening the devices, */
    char why[512];          /* and what it said */
};

static const char *case_name(const char *folder) {
    const char *slash = strrchr(folder, '/');
    return slash ? slash + 1 : folder;
}

/* ---- finding ---- */

static char *join(const char *folder, const char *name) {
    size_t n = strlen(folder), room = n + strlen(name) + 2;
    char *path = hone_must_alloc(room);
    while (n > 1 && folder[n - 1] == '/') n--;
    snprintf(path, room, "%.*s%s%s", (int)n, folder, *name ? "/" : "", name);
    return path;
}

static bool add_case(job *j, char *folder) { /* takes it */
    char *model = join(folder, "model.onnx");
    bool is_case = access(model, F_OK) == 0;
    free(model);
    if (!is_case || (j->filter && !strstr(case_name(folder), j->filter))) {
        free(folder);
        return is_case;
    }
    if (j->n == j->room) {
        int room = j->room ? j->room * 2 : 256;
        char **at = hone_must_alloc(sizeof *at * (size_t)room);
        if (j->n) memcpy(at, j->folder, sizeof *at * (size_t)j->n);
        free(j->folder);
        j->folder = at;
        j->room = room;
    }
    j->folder[j->n++] = folder;
    return true;
}

static int find_cases(job *j, const char *where) {
    if (add_case(j, join(where, ""))) return 0;
    struct dirent **entry = NULL;
    int n = scandir(where, &entry, NULL, alphasort), found = 0;
    if (n < 0) return hone_args_wrong("%s: %s", where, strerror(errno));
    for (int k = 0; k < n; k++) {
        if (entry[k]->d_name[0] != '.') found += add_case(j, join(where, entry[k]->d_name));
        free(entry[k]);
    }
    free(entry);
    return found ? 0
                 : hone_args_wrong("%s holds no case: neither it nor a folder in it has a model.onnx", where);
}

/* ---- running ---- */

static void run_one(const job *j, int k) {
    const char *name = case_name(j->folder[k]);
    bool fourier = !strncmp(name, "test_dft", 8) || !strncmp(name, "test_stft", 9);
    hone_options options;
    hone_options_default(&options);
    options.threads = j->jobs > 1 ? 1 : 0;
    options.interpret = j->interpret;
    hone_where_set(&j->where, &options);
    hone_conformance_case(j->folder[k], j->rtol, fourier && j->atol < FOURIER_ATOL ? FOURIER_ATOL : j->atol,
                          &options, &j->result[k]);
}

/* What the process's end says beyond what the case said itself. */
static void judge(const job *j, hone_case *c, int status) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    c->passed = 0;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(c->why, sizeof c->why, "took longer than %d s", j->seconds);
    else if (WIFSIGNALED(status)) snprintf(c->why, sizeof c->why, "crashed: %s", strsignal(WTERMSIG(status)));
    else
        snprintf(c->why, sizeof c->why, "its process ended with code %d",
                 WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/* Opens the devices that are named before any case asks for them: one line then, not one a case. In a child,
   as what drivers hold is not for the children of who holds it. 0, or the exit code. */
static int open_devices(job *j) {
    if (!j->where.device && !j->where.place.n) return 0;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid < 0) return hone_args_wrong("cannot start a process: %s", strerror(errno));
    if (!pid) {
        j->shared->status = hone_where_open(&j->where);
        if (j->shared->status) snprintf(j->shared->why, sizeof j->shared->why, "%s", hone_error());
        exit(0);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    if (j->shared->status) return hone_args_stopped(j->shared->status, j->shared->why);
    if (WIFSIGNALED(status))
        return hone_args_wrong("opening the device crashed: %s", strsignal(WTERMSIG(status)));
    return 0;
}

static void run_child(const job *j, int child) {
    for (int k; (k = atomic_fetch_add(&j->shared->next, 1)) < j->n; atomic_fetch_add(&j->shared->done, 1)) {
        j->shared->at[child] = k;
        alarm((unsigned)j->seconds);
        run_one(j, k);
        alarm(0);
        j->shared->at[child] = -1;
    }
    exit(0); /* not _exit: a sanitizer looks for leaks here */
}

static int run_all(job *j) {
    const int jobs = j->jobs < MOST_JOBS ? j->jobs : MOST_JOBS;
    pid_t pid[MOST_JOBS] = {0};
    int running = 0, status, last = 0;
    hone_progress bar;
    hone_model *none = NULL;
    hone_progress_begin(&bar, "cases");
    /* the op library is parsed here, once, and every child inherits it */
    hone_model_load_memory("", 0, &none);
    hone_model_free(none);
    fflush(NULL);
    do {
        for (int k = 0; k < jobs && atomic_load(&j->shared->next) < j->n; k++) {
            if (pid[k]) continue;
            j->shared->at[k] = last = -1;
            if (!(pid[k] = fork())) run_child(j, k);
            running += pid[k] > 0;
            if (pid[k] < 0 && !running) return hone_args_wrong("cannot start a process: %s", strerror(errno));
            if (pid[k] < 0) pid[k] = 0;
        }
        const pid_t ended = waitpid(-1, &status, WNOHANG);
        if (ended < 0 && errno != EINTR) break; /* no child is left: none of ours can be */
        for (int k = 0; ended > 0 && k < jobs; k++) {
            if (pid[k] != ended) continue;
            pid[k] = 0, running--;
            if (j->shared->at[k] >= 0)
                judge(j, &j->result[j->shared->at[k]], status), atomic_fetch_add(&j->shared->done, 1);
            else if (!WIFEXITED(status) || WEXITSTATUS(status))
                return hone_args_wrong("a process failed after its last case");
        }
        const int done = atomic_load(&j->shared->done);
        if (done != last) hone_progress_show(&bar, done, j->n, "cases"), last = done;
        if (!ended) usleep(5000);
    } while (running || atomic_load(&j->shared->next) < j->n);
    hone_progress_end(&bar);
    return 0;
}

/* ---- telling ---- */

static int by_op(const void *a, const void *b) {
    return strcmp((*(hone_case *const *)a)->op, (*(hone_case *const *)b)->op);
}

static void tell_table(const job *j) {
    static const char *const head[] = {"op", "passed", "failed", "skipped"};
    hone_case **order = hone_must_alloc(sizeof *order * (size_t)j->n);
    hone_table *t = hone_table_create("lrrr", head);
    for (int k = 0; k < j->n; k++) order[k] = &j->result[k];
    qsort(order, (size_t)j->n, sizeof *order, by_op);
    for (int k = 0; k < j->n;) {
        const char *op = order[k]->op;
        int count[3] = {0};
        for (; k < j->n && !strcmp(order[k]->op, op); k++) count[order[k]->passed + 1]++;
        hone_table_cell(t, "%s", *op ? op : "(no node)");
        hone_table_cell(t, "%d", count[2]);
        hone_table_cell(t, "%.0d", count[1]);
        hone_table_cell(t, "%.0d", count[0]);
    }
    hone_table_print(t, stdout, "");
    free(order);
    putchar('\n');
}

static void tell_text(const job *j, const int *count) {
    if (!hone_args_quiet()) tell_table(j);
    for (int k = 0; k < j->n; k++)
        if (j->result[k].passed == 0 || (j->result[k].passed < 0 && !hone_args_quiet()))
            hone_print(stdout, "%s%s%s: %s%s\n",
                       hone_paint(stdout, j->result[k].passed ? HONE_DIM : HONE_RED), case_name(j->folder[k]),
                       hone_paint(stdout, HONE_PLAIN), j->result[k].passed ? "skipped: " : "",
                       j->result[k].why);
    hone_print(stdout, "%d passed, %d failed, %d skipped\n", count[2], count[1], count[0]);
}

static void tell_json(const job *j, const int *count) {
    const char *comma = "";
    printf("{\"cases\": %d, \"passed\": %d, \"failed\": %d, \"skipped\": %d, \"failures\": [", j->n, count[2],
           count[1], count[0]);
    for (int k = 0; k < j->n; k++) {
        const hone_case *c = &j->result[k];
        if (c->passed) continue;
        printf("%s\n  {\"case\": ", comma);
        hone_json_put_text(stdout, case_name(j->folder[k]), strlen(case_name(j->folder[k])));
        printf(", \"op\": ");
        hone_json_put_text(stdout, c->op, strlen(c->op));
        printf(", \"why\": ");
        hone_json_put_text(stdout, c->why, strlen(c->why));
        putchar('}');
        comma = ",";
    }
    printf("]}\n");
}

static int do_job(job *j, const hone_words *operands) {
    for (int k = 0; k < operands->n; k++) {
        int rc = find_cases(j, operands->at[k]);
        if (rc) return rc;
    }
    if (!j->n) return hone_args_wrong("no case has '%s' in its name", j->filter);
    size_t bytes = sizeof *j->result * (size_t)j->n;
    j->result = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (j->result == MAP_FAILED) return hone_args_wrong("no memory for %d results", j->n);
    j->shared = mmap(NULL, sizeof *j->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (j->shared == MAP_FAILED) return hone_args_wrong("no memory for %d results", j->n);
    int rc = open_devices(j), count[3] = {0}; /* skipped, failed, passed */
    if (!rc) rc = run_all(j);
    if (!rc) {
        for (int k = 0; k < j->n; k++) count[j->result[k].passed + 1]++;
        if (j->json) hone_args_answered(), tell_json(j, count);
        else tell_text(j, count);
        rc = j->least ? count[2] < j->least : count[1] > 0;
        if (rc && j->least)
            hone_args_wrong("%d case%s passed, fewer than --min %d", count[2], count[2] == 1 ? "" : "s",
                            j->least);
    }
    munmap(j->result, bytes), munmap(j->shared, sizeof *j->shared);
    return rc;
}

int hone_cmd_conformance(int argc, char **argv) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    job j = {.rtol = 1e-3, .atol = 1e-7, .jobs = cores > 0 ? (int)cores : 1, .seconds = SECONDS};
    hone_words operands = {0};
    const hone_option options[] = {
        {"--filter", "TEXT", "only cases with TEXT in their name", HONE_ARG_TEXT, &j.filter, 0},
        {"--rtol", "R", "|got - want| <= A + R * |want| (0.001, as ONNX's own runner)", HONE_ARG_NUMBER,
         &j.rtol, 0},
        {"--atol", "A", "(1e-7; Fourier transforms 1e-4)", HONE_ARG_NUMBER, &j.atol, 0},
        {"--min", "N", "succeed when at least N cases pass, whatever else fails", HONE_ARG_INT, &j.least, 1},
        {"--jobs", "N", "cases at a time (all cores)", HONE_ARG_THREADS, &j.jobs, 1},
        {"--seconds", "N", "a case may take (20)", HONE_ARG_INT, &j.seconds, 1},
        {"--interpret", NULL, "run by the interpreter, the slow definition of every op", HONE_ARG_FLAG,
         &j.interpret, 0},
        HONE_WHERE_OPTIONS(&j.where),
        {"--json", NULL, "print JSON", HONE_ARG_FLAG, &j.json, 0},
        {0},
    };
    const hone_usage usage = {
        "conformance",
        "DIR...",
        1,
        -1,
        "Runs ONNX test cases: every folder with a model.onnx and test_data_set_* in or at DIR.",
        "hone conformance onnx/backend/test/data/node --filter resize",
        options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    if (rc == HONE_ARGS_GO && !(rc = hone_where_begin(&j.where))) rc = do_job(&j, &operands);
    hone_where_free(&j.where);
    for (int k = 0; k < j.n; k++) free(j.folder[k]);
    free(j.folder);
    hone_words_free(&operands);
    return rc;
}
