/* SPDX-License-Identifier: Apache-2.0
   compare_run: one contest. The inputs are written once, for all; every runtime loads and runs them in a
   process of its own; then they take turns, a few runs each, in many rounds, and whoever is not at work is
   stopped. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "child.h"
#include "compare.h"
#include "dims.h"
#include "feed.h"
#include "hone/zoo.h"
#include "json.h"
#include "load.h"
#include "show.h"
#include "term.h"

enum {
    PATH = 4096 /* as realpath writes */,
    ROUNDS = 12,
    ROUNDS_LEAST = 5,
    SLOW_ROUNDS_LEAST = 3,
    ASK_MOST = 2000 /* runs at once: an answer is a line with the time of each */,
    TURN_MOST =
        1 << 18 /* runs of a turn: what is shorter than that allows is shorter than a clock can tell */,
    OUTPUTS_MOST = 4096
};
/* after a pause, caches are warmed for so long; runs above that warm their own */
static const double WARM_MS = 3, LONG_MS = 50;

typedef struct {
    hone_contest *contest;
    const hone_runtime *runtime;
    const hone_contest_wish *wish;
    const char *script, *folder;
    char model[PATH], feed[PATH], self[PATH];
    hone_child child[HONE_RUNTIMES];
    double guess_ms[HONE_RUNTIMES]; /* a run's */
    hone_progress bar;
    int done, all;
} field;

/* ---- the model and its inputs ---- */

/* A zoo network is written as a file; --batch becomes one of its options. */
static hone_status write_zoo(field *f, const char *spec) {
    char *whole = hone_bench_model(spec, f->wish->batch);
    snprintf(f->model, sizeof f->model, "%s/model.onnx", f->folder);
    hone_status s = hone_zoo_write(whole, f->model);
    free(whole);
    return s;
}

/* --batch of a file: the first dim of every input, where it is free, as --dim would say it. `words` are to be
   freed one by one. */
static int batch_dims(const hone_model *m, const hone_contest_wish *w, hone_words *words) {
    int found = 0;
    words->at = hone_must_alloc(sizeof *words->at * (size_t)(hone_model_inputs(m) + w->dims.n + 1));
    for (int k = 0; k < w->dims.n; k++) words->at[words->n++] = strdup(w->dims.at[k]);
    for (int k = 0; k < hone_model_inputs(m) && w->batch; k++) {
        const hone_port *p = hone_model_input(m, k);
        if (p->kind != HONE_VALUE_TENSOR || p->rank < 1 || p->dims[0] >= 0) continue;
        char name[HONE_DIM_NAME], *word = hone_must_alloc(HONE_DIM_NAME + 16);
        hone_dim_name(p, 0, name);
        snprintf(word, HONE_DIM_NAME + 16, "%s=%d", name, w->batch);
        words->at[words->n++] = word;
        found++;
    }
    return found || !w->batch
               ? 0
               : hone_args_wrong("--batch %d: no input of the model has a free first dim", w->batch);
}

/* Files that were asked for, else the test data beside the model, else random numbers. */
static int make_inputs(field *f, const hone_model *m, bool zoo, hone_fed *fed) {
    const hone_contest_wish *w = f->wish;
    char data[PATH];
    const char *slash = strrchr(f->model, '/');
    snprintf(data, sizeof data, "%.*stest_data_set_0", slash ? (int)(slash + 1 - f->model) : 0, f->model);
    if (!zoo && !w->inputs.n && !w->shapes.n && !w->dims.n && !w->batch && access(data, R_OK | X_OK) == 0)
        return hone_feed_set(m, data, fed);
    hone_words dims = {0};
    int rc = zoo ? 0 : batch_dims(m, w, &dims);
    hone_feed_wish wish = {.inputs = &w->inputs,
                           .shapes = &w->shapes,
                           .seed = w->seed,
                           .picture = &(hone_picture_wish){0},
                           .dims = zoo ? &w->dims : &dims,
                           .plan = true};
    if (!rc) rc = hone_feed(m, &wish, fed);
    for (int k = 0; k < dims.n; k++) free((char *)dims.at[k]);
    hone_words_free(&dims);
    return rc;
}

/* Types that NumPy lacks are widened in the file, and the model would not take that. */
static bool comes_back(const char *path, const hone_value *v) {
    hone_value *again = NULL;
    bool same = !hone_value_read(path, HONE_VALUE_TENSOR, HONE_DTYPE_NONE, NULL, 0, &again) &&
                hone_value_dtype(again) == hone_value_dtype(v);
    hone_value_free(again);
    return same;
}

static hone_status write_inputs(field *f, const hone_model *m, const hone_fed *fed) {
    hone_contest *c = f->contest;
    char path[PATH + 32];
    size_t bytes = 0;
    hone_status s = HONE_OK;
    snprintf(path, sizeof path, "%s/feed.json", f->feed);
    FILE *to = fopen(path, "we"), *lines = open_memstream(&c->inputs, &bytes);
    if (!to || !lines)
        s = HONE_IO, snprintf(c->why, sizeof c->why, "%.300s cannot be written: %s", path, strerror(errno));
    if (!s) fprintf(to, "{\"inputs\": [");
    bool more = false;
    for (int k = 0; k < c->n_in && !s; k++) {
        const char *name = hone_model_input(m, k)->name;
        if (k) fputc('\n', lines);
        hone_print(lines, "%s  ", name);
        hone_show_type(lines, fed[k].value);
        hone_print(lines, "  %s", fed[k].from);
        if (!fed[k].value) continue;
        if (hone_value_kind_of(fed[k].value) != HONE_VALUE_TENSOR || !hone_value_data(fed[k].value)) {
            snprintf(c->why, sizeof c->why,
                     "input '%.100s' is no tensor of numbers: others cannot be given it", name);
            s = HONE_NOT_SUPPORTED;
            break;
        }
        snprintf(path, sizeof path, "%s/input_%d.npy", f->feed, k);
        if ((s = hone_value_write(fed[k].value, path))) snprintf(c->why, sizeof c->why, "%s", hone_error());
        if (!s && !comes_back(path, fed[k].value)) {
            snprintf(c->why, sizeof c->why, "input '%.100s' is %s, for which NumPy has no name", name,
                     hone_dtype_name(hone_value_dtype(fed[k].value)));
            s = HONE_NOT_SUPPORTED;
        }
        fprintf(to, "%s{\"name\": ", more ? ", " : "");
        hone_json_put_text(to, name, strlen(name));
        fprintf(to, ", \"file\": \"input_%d.npy\"}", k);
        more = true;
    }
    for (int k = 0; k < c->n_out && !s; k++) {
        fprintf(to, "%s{\"name\": ", k ? ", " : "], \"outputs\": [");
        hone_json_put_text(to, c->output[k], strlen(c->output[k]));
        fputc('}', to);
    }
    if (!s) fprintf(to, "]}\n");
    if (to && fclose(to) && !s)
        s = HONE_IO, snprintf(c->why, sizeof c->why, "%.300s cannot be written: is the disk full?", path);
    if (lines) fclose(lines);
    return s;
}

/* Everything that is the same for all. False: the contest's `why`. */
static bool prepare(field *f, const char *model) {
    hone_contest *c = f->contest;
    bool zoo = !strncmp(model, "zoo:", 4);
    hone_model *m = NULL;
    char why[4096];
    if (zoo && write_zoo(f, model)) return snprintf(c->why, sizeof c->why, "%s", hone_error()), false;
    /* loading says what is wrong */
    if (!zoo && !realpath(model, f->model)) snprintf(f->model, sizeof f->model, "%s", model);
    hone_status s = hone_load_for(f->model, &f->wish->inputs, &m, why, sizeof why);
    if (s) return snprintf(c->why, sizeof c->why, "%.*s", (int)strcspn(why, "\n"), why), false;
    c->n_in = hone_model_inputs(m), c->n_out = hone_model_outputs(m);
    c->output = hone_must_alloc(sizeof *c->output * (size_t)(c->n_out + 1));
    for (int k = 0; k < c->n_out; k++) {
        const char *name = hone_model_output(m, k)->name;
        size_t bytes = strlen(name) + 1;
        c->output[k] = memcpy(hone_must_alloc(bytes), name, bytes);
        if (hone_model_output(m, k)->kind != HONE_VALUE_TENSOR ||
            hone_model_output(m, k)->dtype == HONE_DTYPE_STRING)
            snprintf(c->why, sizeof c->why,
                     "output '%.100s' is no tensor of numbers: answers could not be held against each other",
                     name);
    }
    hone_fed *fed = hone_must_alloc(sizeof *fed * (size_t)(c->n_in + 1));
    snprintf(f->feed, sizeof f->feed, "%s/feed", f->folder);
    if (!*c->why && mkdir(f->feed, 0700))
        snprintf(c->why, sizeof c->why, "%.300s: %s", f->feed, strerror(errno));
    if (!*c->why && make_inputs(f, m, zoo, fed))
        snprintf(c->why, sizeof c->why, "its inputs could not be made");
    if (!*c->why) write_inputs(f, m, fed);
    hone_feed_free(fed, c->n_in);
    hone_model_free(m);
    return !*c->why;
}

/* ---- processes ---- */

static void step(field *f, int k, const char *what) {
    char text[96];
    snprintf(text, sizeof text, "%s: %s %s", f->contest->name, f->runtime[k].label, what);
    hone_progress_show(&f->bar, f->done, f->all, text);
}

static int worker_here(int argc, char **argv) { return hone_worker_main(argc - 2, argv + 2); }

/* Starts a process of runtime k for `what`: "convert" or "work". */
static bool start(field *f, int k, const char *what) {
    char own[PATH + 16], log[PATH + 48], threads[32];
    const char *const number = threads + strlen("--threads=");
    snprintf(own, sizeof own, "%s/%s", f->folder, f->runtime[k].name);
    snprintf(log, sizeof log, "%s/%s.log", own, what);
    snprintf(threads, sizeof threads, "--threads=%d", f->wish->threads);
    if (mkdir(own, 0700) && errno != EEXIST)
        return snprintf(f->child[k].why, sizeof f->child[k].why, "%.200s: %s", own, strerror(errno)), false;
    const char *peer[] = {
        f->runtime[k].python, f->script, what, f->runtime[k].name, f->model, f->feed, own, number,
        f->wish->precision,   NULL};
    const char *hone[] = {f->self,   "bench",  "--worker",    threads,
                          "--files", f->feed,  "--precision", f->wish->precision,
                          "--",      f->model, NULL};
    return k ? hone_child_start(&f->child[k], peer, log, NULL)
             : hone_child_start(&f->child[k], hone, log, worker_here);
}

static bool give_up(field *f, int k) { /* what the child said is the entry's reason */
    snprintf(f->contest->entry[k].why, sizeof f->contest->entry[k].why, "%s",
             *f->child[k].why ? f->child[k].why : "it ended");
    hone_child_end(&f->child[k]);
    return false;
}

/* Sends a line (NULL: none) and reads the answer, which must have a number `key`. NULL: the entry says why,
   and the child is gone. */
static hone_json *ask(field *f, int k, const char *line, const char *key, double seconds) {
    const char *answer = hone_child_ask(&f->child[k], line, seconds);
    hone_json *said = answer ? hone_json_read(answer) : NULL;
    if (hone_json_number(said, key, -1) >= 0) return said;
    if (answer) hone_child_refuse(&f->child[k], answer);
    hone_json_free(said);
    give_up(f, k);
    return NULL;
}

/* The same, and the number is all that is wanted; -1: it failed. */
static double ask_number(field *f, int k, const char *line, const char *key) {
    hone_json *said = ask(f, k, line, key, f->wish->limit);
    double number = said ? hone_json_number(said, key, -1) : -1;
    hone_json_free(said);
    return number;
}

/* `count` runs; their times are added to `out`, NULL: they do not count. */
static bool ask_runs(field *f, int k, int count, hone_times *out) {
    char line[64];
    snprintf(line, sizeof line, "run %d 0", count);
    const char *answer = hone_child_ask(&f->child[k], line, f->wish->limit + count * f->guess_ms[k] * 20e-3);
    hone_json *said = answer ? hone_json_read(answer) : NULL;
    const hone_json *list = hone_json_get(said, "ms");
    int n = 0;
    for (const hone_json *t = list ? list->first : NULL; t; t = t->next)
        n += t->type == HONE_JSON_NUMBER && t->number > 0 && t->number < 1e9;
    if (n == count && list->n == count) {
        for (const hone_json *t = list->first; t && out; t = t->next) hone_times_add(out, t->number);
        hone_json_free(said);
        return true;
    }
    hone_json_free(said);
    if (answer) hone_child_refuse(&f->child[k], answer);
    return give_up(f, k);
}

/* A virtual machine may give free memory back to its host within seconds, and to get it again takes as long
   as a load itself (0.7 ms a MB, 0.03 where it is there). Whoever loads first would pay for all. So just
   before each load a process touches more than any runtime takes, and ends. */
static void bring_memory(const field *f) {
    /* copies of the weights, and all else: no runtime here takes as much */
    enum { WEIGHTS = 4, BESIDES = 64 << 20 };
    struct stat st;
    const long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t bytes = (size_t)(stat(f->model, &st) ? 0 : st.st_size) * WEIGHTS + BESIDES;
    if (pages > 0 && page > 0 && bytes > (size_t)pages * (size_t)page / 2)
        bytes = (size_t)pages * (size_t)page / 2;
    const pid_t pid = fork();
    if (!pid) { /* where a container has less than the machine says, this is who goes */
        const int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
        if (score >= 0 && write(score, "1000", 4) < 0) _exit(1);
        char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) _exit(1);
        madvise(p, bytes, MADV_HUGEPAGE);
        for (size_t k = 0; k < bytes; k += (size_t)(page > 0 ? page : 4096)) p[k] = 1;
        _exit(0);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR && !hone_child_interrupted()) {}
}

/* One process more, its load and its first run. */
static bool begin(field *f, int k) {
    hone_entry *e = &f->contest->entry[k];
    f->guess_ms[k] = 0;
    step(f, k, "loads");
    if (!start(f, k, "work")) return give_up(f, k);
    if (ask_number(f, k, NULL, "worker") < 0) return false;
    bring_memory(f);
    hone_json *said = ask(f, k, "load", "load_ms", f->wish->limit);
    if (!said) return false;
    e->load[e->starts] = hone_json_number(said, "load_ms", 0);
    e->first[e->starts++] = hone_json_number(said, "first_ms", 0);
    e->before_bytes = hone_json_number(said, "before_bytes", 0);
    hone_json_free(said);
    return true;
}

/* How long a run takes, roughly, and warm; the outputs of the last one are written. */
static bool settle(field *f, int k) {
    enum { MOST = 64, WORD = 16 };
    hone_entry *e = &f->contest->entry[k];
    char line[PATH + WORD];
    int count = 1;
    for (double spent = 0; spent < 30 && count <= MOST; count *= 4) {
        hone_times times = {0};
        bool ran = ask_runs(f, k, count, &times);
        if (ran) spent = (f->guess_ms[k] = hone_stats_median(times.ms, count)) * count;
        free(times.ms);
        if (!ran) return false;
    }
    snprintf(line, sizeof line, "outputs %s/%s", f->folder, f->runtime[k].name);
    double n = ask_number(f, k, line, "outputs");
    e->n_out = n >= 0 && n <= OUTPUTS_MOST ? (int)n : 0;
    return n >= 0;
}

static bool convert(field *f, int k) {
    step(f, k, "converts");
    const char *answer = start(f, k, "convert") ? hone_child_ask(&f->child[k], NULL, f->wish->limit) : NULL;
    if (answer && strcmp(answer, "done") != 0) hone_child_refuse(&f->child[k], answer), answer = NULL;
    if (!answer) return give_up(f, k);
    hone_child_end(&f->child[k]);
    return true;
}

/* ---- turns ---- */

typedef struct {
    int runs, warm, rounds; /* a turn; of how many rounds it takes part in */
} turn;

/* Hone's time says how many rounds there are. One that is much slower takes part in fewer, so that it does
   not keep the others waiting. */
static int plan_turns(const field *f, turn *t) {
    const hone_contest_wish *w = f->wish;
    double ms = w->seconds * 1000, lead = f->child[0].pid ? f->guess_ms[0] : 0;
    for (int k = 1; k < HONE_RUNTIMES && !lead; k++) lead = f->child[k].pid ? f->guess_ms[k] : 0;
    int rounds = w->runs                          ? (w->runs < ROUNDS ? w->runs : ROUNDS)
                 : lead > 0 && ms / lead < ROUNDS ? (int)(ms / lead)
                                                  : ROUNDS;
    if (!w->runs && rounds < ROUNDS_LEAST) rounds = ROUNDS_LEAST;
    for (int k = 0; k < HONE_RUNTIMES; k++) {
        double each = f->guess_ms[k], runs = w->runs ? ceil((double)w->runs / rounds)
                                                     : floor(ms / rounds / (each > 0 ? each : 1e-3));
        t[k] = (turn){.runs = runs < 1 ? 1 : runs > TURN_MOST ? TURN_MOST : (int)runs, .rounds = rounds};
        t[k].warm = each > LONG_MS   ? 0
                    : each > WARM_MS ? 1
                                     : (int)fmin(1000, ceil(WARM_MS / fmax(each, 1e-3)));
        if (w->runs || each < 3 * lead || each * rounds < 2 * ms) continue;
        t[k].rounds = (int)(2 * ms / each);
        if (t[k].rounds < SLOW_ROUNDS_LEAST) t[k].rounds = SLOW_ROUNDS_LEAST;
        if (t[k].rounds > rounds) t[k].rounds = rounds;
    }
    return rounds;
}

static void take_turn(field *f, int k, int round, const turn *t) {
    hone_entry *e = &f->contest->entry[k];
    int before = e->times.n;
    step(f, k, "runs");
    hone_child_go(&f->child[k]);
    bool ran = !t->warm || ask_runs(f, k, t->warm, NULL);
    for (int left = t->runs, n; left && ran; left -= n)
        ran = ask_runs(f, k, n = left < ASK_MOST ? left : ASK_MOST, &e->times);
    if (ran) e->round[round] = hone_stats_median(e->times.ms + before, t->runs);
    hone_child_stop(&f->child[k]);
}

static void take_turns(field *f) {
    turn t[HONE_RUNTIMES];
    int rounds = f->contest->rounds = plan_turns(f, t);
    for (int k = 0; k < HONE_RUNTIMES; k++) {
        f->contest->entry[k].round = hone_must_alloc(sizeof(double) * (size_t)rounds);
        for (int r = 0; r < rounds; r++) f->contest->entry[k].round[r] = NAN;
    }
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < HONE_RUNTIMES; i++) {
            int k = (i + r) % HONE_RUNTIMES; /* another one is first each time */
            bool mine = (r + 1) * t[k].rounds / rounds > r * t[k].rounds / rounds;
            if (f->child[k].pid && mine && !hone_child_interrupted()) take_turn(f, k, r, &t[k]);
            f->done++;
        }
}

/* The largest memory, after all runs; then the process may go. */
static void finish(field *f, int k) {
    hone_entry *e = &f->contest->entry[k];
    if (!f->child[k].pid) return;
    hone_child_go(&f->child[k]);
    e->peak_bytes = ask_number(f, k, "memory", "peak_bytes");
    hone_child_end(&f->child[k]);
}

static void read_outputs(const field *f, hone_entry *e) {
    char path[PATH + 48];
    e->out = hone_must_alloc(sizeof(hone_value *) * (size_t)(e->n_out + 1));
    for (int k = 0; k < e->n_out && !*e->why; k++) {
        snprintf(path, sizeof path, "%s/%s/out_%d.npy", f->folder, e->runtime->name, k);
        if (hone_value_read(path, HONE_VALUE_TENSOR, HONE_DTYPE_NONE, NULL, 0, &e->out[k]))
            snprintf(e->why, sizeof e->why, "its output %d cannot be read: %.300s", k, hone_error());
    }
}

static void add_up(hone_contest *c, hone_entry *e) {
    double *took = hone_must_alloc(sizeof *took * (size_t)(c->rounds + 1));
    int n = 0;
    for (int r = 0; r < c->rounds; r++)
        if (isfinite(e->round[r])) took[n++] = e->round[r];
    if (!n) snprintf(e->why, sizeof e->why, "it made no run that counts");
    if (n) {
        e->median_ms = hone_stats_median(took, n);
        hone_stats_of(e->times.ms, e->times.n, &e->stats);
        e->load_ms = hone_stats_median(e->load, e->starts),
        e->first_ms = hone_stats_median(e->first, e->starts);
    }
    free(took);
}

void hone_contest_run(hone_contest *c, const char *model, const hone_runtime *runtime,
                      const hone_contest_wish *wish, const char *script, const char *folder) {
    field f = {.contest = c, .runtime = runtime, .wish = wish, .script = script, .folder = folder};
    *c = (hone_contest){.name = model, .reference = -1, .best = -1};
    int present = 0;
    for (int k = 0; k < HONE_RUNTIMES; k++) {
        c->entry[k].runtime = &runtime[k];
        if (k && !runtime[k].python)
            snprintf(c->entry[k].why, sizeof c->entry[k].why, "%s",
                     runtime[k].wanted ? runtime[k].why : "not asked for");
        present += !*c->entry[k].why;
    }
    ssize_t n = readlink("/proc/self/exe", f.self, sizeof f.self - 1);
    f.self[n > 0 ? n : 0] = 0;
    f.all = present * wish->starts + HONE_RUNTIMES * ROUNDS;
    hone_progress_begin(&f.bar, "looking for runtimes");
    if (prepare(&f, model)) {
        for (int k = 1; k < HONE_RUNTIMES; k++)
            if (!*c->entry[k].why) convert(&f, k);
        /* in turn here too, and another one first each time */
        for (int s = 0; s < wish->starts; s++)
            for (int i = 0; i < HONE_RUNTIMES; i++) {
                const int k = (i + s) % HONE_RUNTIMES;
                if (*c->entry[k].why || hone_child_interrupted()) continue;
                bool last = s + 1 == wish->starts, ok = begin(&f, k) && (!last || settle(&f, k));
                if (ok && last) hone_child_stop(&f.child[k]);
                else hone_child_end(&f.child[k]);
                f.done++;
            }
        take_turns(&f);
        for (int k = 0; k < HONE_RUNTIMES; k++) finish(&f, k);
        for (int k = 0; k < HONE_RUNTIMES; k++) {
            if (!*c->entry[k].why) add_up(c, &c->entry[k]);
            if (!*c->entry[k].why) read_outputs(&f, &c->entry[k]);
        }
    }
    hone_progress_end(&f.bar);
}

void hone_contest_free(hone_contest *c) {
    for (int k = 0; k < HONE_RUNTIMES; k++) {
        hone_entry *e = &c->entry[k];
        for (int i = 0; i < e->n_out && e->out; i++) hone_value_free(e->out[i]);
        free(e->out), free(e->times.ms), free(e->round);
    }
    for (int k = 0; k < c->n_out && c->output; k++) free(c->output[k]);
    free(c->output), free(c->inputs);
}
