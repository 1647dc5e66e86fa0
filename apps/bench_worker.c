/* SPDX-License-Identifier: Apache-2.0
   bench_worker: both ends of the process that runs a model for `hone bench`. It loads, runs once, and then
   runs when told to, so that a parent can let several of them take turns. A worker of an older hone can be
   one, too: the lines between the two are all that must stay. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "dims.h"
#include "feed.h"
#include "hone/tools.h"
#include "load.h"
#include "ranges.h"
#include "show.h"
#include "term.h"
#include "where.h"

enum { PROTOCOL = 1, NAME = 256, RANK_MAX = 16 };

void hone_times_add(hone_times *t, double ms) {
    if (t->n == t->room) {
        int room = t->room ? t->room * 2 : 256;
        double *at = hone_must_alloc(sizeof *at * (size_t)room);
        if (t->n) memcpy(at, t->ms, sizeof *at * (size_t)t->n);
        free(t->ms);
        t->ms = at, t->room = room;
    }
    t->ms[t->n++] = ms;
}

/* ---- the worker's end ---- */

typedef struct {
    const hone_bench_row *row;
    FILE *to;
    hone_model *model;
    hone_session *session;
    hone_fed *fed;
    hone_value **in, **out;
    int n_in, n_out;
    double load_ms, first_ms;
    hone_feed_wish wish;
    hone_where where;
    const char *files;   /* the folder that inputs come from as input_K.npy; NULL: they are made of the row */
    double before_bytes; /* resident before the load */
} work;

/* Bytes, of a field of the kernel's account of this process; 0 where there is none. */
static double memory_of(const char *field) {
    char line[128];
    double kb = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, field, strlen(field))) kb = strtod(line + strlen(field), NULL);
    if (f) fclose(f);
    return kb * 1024;
}
static void forget_peak(void) {
    FILE *f = fopen("/proc/self/clear_refs", "we");
    if (f) fputs("5", f), fclose(f);
}

char *hone_bench_model(const char *model, int batch) {
    size_t room = strlen(model) + 32;
    char *name = hone_must_alloc(room);
    bool zoo = !strncmp(model, "zoo:", 4) && batch;
    if (zoo) snprintf(name, room, "%s%cbatch=%d", model, strchr(model, '?') ? '&' : '?', batch);
    else snprintf(name, room, "%s", model);
    return name;
}

static int open_model(work *w) {
    hone_options options;
    hone_options_default(&options);
    options.threads = w->row->threads;
    hone_where_set(&w->where, &options);
    options.stay = w->row->resident;
    if (w->row->precision) options.precision = hone_precision(w->row->precision, strlen(w->row->precision));
    char why[4096], *name = hone_bench_model(w->row->model, w->row->batch);
    if (w->files) forget_peak();
    w->before_bytes = memory_of("VmRSS:");
    double began = hone_clock_ms();
    hone_status s = hone_load_for(name, &w->row->inputs, &w->model, why, sizeof why);
    char *keep = NULL, *ranges = NULL;
    const double loaded = hone_clock_ms();
    const int rc =
        s ? 0 : hone_ranges_find(w->model, &w->row->data, w->row->precision, w->row->threads, &keep, &ranges);
    hone_text_release(ranges);
    began += hone_clock_ms() - loaded; /* that is no part of loading */
    if (rc) return rc;
    options.keep_f32 = keep;
    if (!s && (s = hone_session_create(w->model, &options, &w->session)))
        snprintf(why, sizeof why, "%s", hone_error());
    w->load_ms = hone_clock_ms() - began;
    hone_text_release(keep);
    free(name);
    if (s) return hone_args_stopped(s, why);
    w->n_in = hone_model_inputs(w->model), w->n_out = hone_model_outputs(w->model);
    w->fed = hone_must_alloc(sizeof *w->fed * (size_t)w->n_in);
    w->in = hone_must_alloc(sizeof *w->in * (size_t)w->n_in);
    w->out = hone_must_alloc(sizeof *w->out * (size_t)w->n_out);
    return 0;
}

/* The symbol of a free first dim, up to the comma: "f32[batch, 8]"; NULL where it is fixed or there is
   none. */
static const char *first_dim(const hone_port *p, size_t *length) {
    if (p->kind != HONE_VALUE_TENSOR || p->rank < 1 || p->rank > RANK_MAX || p->dims[0] >= 0) return NULL;
    const char *at = strchr(p->shape, '[');
    *length = at ? strcspn(at, ",]") : 0;
    return at ? at : "";
}
static bool same_first(const hone_port *a, const hone_port *b) {
    size_t n = 0, m = 0;
    const char *x = first_dim(a, &n), *y = first_dim(b, &m);
    return x && y && n == m && !memcmp(x, y, n);
}

/* Fed once, the inputs have all their dims; then those that share the first free one get the batch, and are
   fed again. */
static int set_batch(work *w, const hone_feed_wish *first) {
    const hone_port *lead = NULL;
    size_t length;
    int batch = w->row->batch, rc = 0, words = 0;
    for (int k = 0; k < w->n_in && !lead; k++)
        if (first_dim(hone_model_input(w->model, k), &length)) lead = hone_model_input(w->model, k);
    if (!lead) {
        hone_value *v = w->n_in ? w->fed[0].value : NULL;
        if (v && hone_value_rank(v) > 0 && hone_value_dims(v)[0] == batch) return 0;
        return hone_args_wrong("--batch %d: %s has no input whose first dim is free; its first is %s", batch,
                               w->row->model, w->n_in ? hone_model_input(w->model, 0)->shape : "not there");
    }
    for (int k = 0; k < w->row->dims.n; k++) { /* "batch=2" beside --batch 3 */
        char name[HONE_DIM_NAME];
        hone_dim_name(lead, 0, name);
        length = strlen(name);
        if (!strncmp(w->row->dims.at[k], name, length) && w->row->dims.at[k][length] == '=')
            return hone_args_wrong("--batch %d and --dim %s: one of the two", batch, w->row->dims.at[k]);
    }
    char(*text)[NAME + RANK_MAX * 24] = hone_must_alloc(sizeof *text * (size_t)w->n_in);
    const char **at = hone_must_alloc(sizeof *at * (size_t)w->n_in);
    for (int k = 0; k < w->n_in; k++) {
        const hone_port *p = hone_model_input(w->model, k);
        hone_value *v = w->fed[k].value;
        if (!v || p->kind != HONE_VALUE_TENSOR || hone_value_rank(v) > RANK_MAX) continue;
        if (strlen(p->name) >= NAME)
            rc = hone_args_wrong("--batch %d: the name of input %d is too long: say --shape instead", batch,
                                 k);
        if (rc) break;
        int n = snprintf(text[words], sizeof *text, "%s=%s", p->name, hone_value_rank(v) ? "" : "scalar");
        for (int d = 0; d < hone_value_rank(v); d++)
            n += snprintf(text[words] + n, sizeof *text - (size_t)n, "%s%lld", d ? "x" : "",
                          d || !same_first(lead, p) ? (long long)hone_value_dims(v)[d] : (long long)batch);
        at[words] = text[words];
        words++;
    }
    hone_words shapes = {at, words};
    hone_feed_wish again = {.inputs = first->inputs,
                            .shapes = &shapes,
                            .seed = first->seed,
                            .picture = first->picture,
                            .cast = first->cast};
    hone_fed *before = w->fed;
    w->fed = hone_must_alloc(sizeof *w->fed * (size_t)w->n_in);
    if (!rc) rc = hone_feed(w->model, &again, w->fed);
    for (int k = 0; k < w->n_in; k++) w->fed[k].guessed = before[k].guessed; /* their other dims still are */
    hone_feed_free(before, w->n_in);
    for (int k = 0; k < w->n_in && !rc; k++) {
        hone_value *v = w->fed[k].value;
        long long has = v && hone_value_rank(v) > 0 ? (long long)hone_value_dims(v)[0] : -1;
        if (same_first(lead, hone_model_input(w->model, k)) && has >= 0 && has != batch)
            rc = hone_args_wrong(
                "--batch %d: the file for input '%s' holds %lld: give a file with %d, or leave --batch away",
                batch, hone_model_input(w->model, k)->name, has, batch);
    }
    free(text), free(at);
    return rc;
}

static int run_once(work *w, double *ms) {
    double began = hone_clock_ms();
    hone_status s = hone_session_run(w->session, w->in, w->out);
    *ms = hone_clock_ms() - began;
    if (!s) return 0;
    return hone_feed_failed(&w->wish, s);
}

/* The most memory this process ever held, files it mapped included. */
static double peak_bytes(void) {
    double bytes = memory_of("VmHWM:");
    struct rusage used;
    if (bytes <= 0 && !getrusage(RUSAGE_SELF, &used)) bytes = (double)used.ru_maxrss * 1024;
    return bytes;
}

/* The plan's report without its lists, or null where the shapes cannot be planned ahead. */
static void put_plan(const work *w) {
    static const char *const keys[] = {"flops",       "bytes",        "parameter_bytes",
                                       "input_bytes", "output_bytes", "arena_bytes"};
    char *text = NULL;
    hone_shape *in = hone_must_alloc(sizeof *in * (size_t)w->n_in);
    for (int k = 0; k < w->n_in; k++) {
        bool tensor = w->in[k] && hone_value_kind_of(w->in[k]) == HONE_VALUE_TENSOR;
        in[k] =
            (hone_shape){tensor ? hone_value_dims(w->in[k]) : NULL, tensor ? hone_value_rank(w->in[k]) : -1};
    }
    hone_json *plan = hone_model_plan(w->model, in, &text) ? NULL : hone_json_read(text);
    const hone_json *known = hone_json_get(plan, "known"), *whole = hone_json_get(plan, "whole");
    bool all = known && known->type == HONE_JSON_TRUE && whole && whole->type == HONE_JSON_TRUE;
    fprintf(w->to, ", \"plan\": %s", all ? "{" : "null");
    for (size_t k = 0; all && k < sizeof keys / sizeof *keys; k++) {
        fprintf(w->to, "%s\"%s\": ", k ? ", " : "", keys[k]);
        hone_json_put_number(w->to, hone_json_number(plan, keys[k], NAN));
    }
    if (all) fputc('}', w->to);
    hone_json_free(plan);
    hone_text_release(text);
    free(in);
}

/* Free dims were guessed, and not only the first, which is the batch of most models. */
static bool is_small(const hone_fed *fed, const hone_port *port) {
    bool small = false;
    for (int d = 1; fed->guessed && d < port->rank; d++) small |= port->dims[d] < 0;
    return small;
}

static void put_hello(const work *w) {
    fprintf(w->to, "{\"worker\": %d, \"load_ms\": ", PROTOCOL);
    hone_json_put_number(w->to, w->load_ms);
    fprintf(w->to, ", \"before_bytes\": %.0f, \"first_ms\": ", w->before_bytes);
    hone_json_put_number(w->to, w->first_ms);
    /* who gave the files knows the rest, and a plan's report would take memory that is measured */
    if (w->files) {
        fprintf(w->to, "}\n");
        return;
    }
    fprintf(w->to, ", \"inputs\": [");
    for (int k = 0; k < w->n_in; k++) {
        const char *name = hone_model_input(w->model, k)->name;
        char *type = NULL;
        size_t bytes = 0;
        FILE *text = open_memstream(&type, &bytes);
        if (text) hone_show_type(text, w->in[k]), fclose(text);
        fprintf(w->to, "%s{\"name\": ", k ? ", " : "");
        hone_json_put_text(w->to, name, strlen(name));
        fprintf(w->to, ", \"type\": ");
        hone_json_put_text(w->to, type ? type : "", type ? strlen(type) : 0);
        fprintf(w->to, ", \"from\": ");
        hone_json_put_text(w->to, w->fed[k].from, strlen(w->fed[k].from));
        fprintf(w->to, ", \"small\": %s}",
                is_small(&w->fed[k], hone_model_input(w->model, k)) ? "true" : "false");
        free(type);
    }
    fputc(']', w->to);
    put_plan(w);
    char *wisdom = NULL;
    if (!hone_session_report(w->session, "wisdom", &wisdom)) fprintf(w->to, ", \"wisdom\": %s", wisdom);
    hone_text_release(wisdom);
    fprintf(w->to, "}\n");
}

static int answer_run(work *w, int runs, double limit_ms, hone_times *times) {
    int rc = 0;
    double began = hone_clock_ms(), ms;
    times->n = 0;
    const double pause = fmin(w->row->pause_ms * 1e-3, 3600);
    const struct timespec wait = {(time_t)pause, (long)(fmod(pause, 1) * 1e9)};
    do {
        if (pause > 0) nanosleep(&wait, NULL);
        if ((rc = run_once(w, &ms))) return rc;
        hone_times_add(times, ms);
    } while ((!runs || times->n < runs) && (limit_ms <= 0 || hone_clock_ms() - began < limit_ms));
    fprintf(w->to, "{\"ms\": [");
    for (int k = 0; k < times->n; k++) {
        if (k) fputc(',', w->to);
        hone_json_put_number(w->to, times->ms[k]);
    }
    fprintf(w->to, "]}\n");
    return 0;
}

/* What the last run gave, as FOLDER/out_K.npy. */
static int answer_outputs(const work *w, const char *folder) {
    char path[4096];
    for (int k = 0; k < w->n_out; k++) {
        snprintf(path, sizeof path, "%.*s/out_%d.npy", (int)strcspn(folder, "\n"), folder, k);
        hone_status s = hone_value_write(w->out[k], path);
        if (s) return hone_args_failed(s);
    }
    return fprintf(w->to, "{\"outputs\": %d}\n", w->n_out), 0;
}

static int answer(work *w, const char *line, hone_times *times) {
    int runs;
    double ms;
    hone_speed speed;
    if (!strncmp(line, "outputs ", 8)) return answer_outputs(w, line + 8);
    if (sscanf(line, "run %d %lf", &runs, &ms) == 2 && (runs > 0 || ms > 0))
        return answer_run(w, runs, ms, times);
    if (!strcmp(line, "memory\n")) return fprintf(w->to, "{\"peak_bytes\": %.0f}\n", peak_bytes()), 0;
    if (strcmp(line, "speed\n") != 0)
        return hone_args_wrong("a worker was told '%.*s'", (int)strcspn(line, "\n"), line);
    hone_status s = hone_machine_speed(w->row->threads, &speed);
    if (s) return hone_args_failed(s);
    fprintf(w->to, "{\"threads\": %d, \"copy_bytes_per_s\": %.0f, \"f32_flops_per_s\": %.0f}\n",
            speed.threads, speed.copy_bytes_per_s, speed.f32_flops_per_s);
    return 0;
}

/* With other guesses, where the first cannot be planned. */
static int first_run(work *w) {
    int rc = w->row->batch ? set_batch(w, &w->wish) : 0;
    for (int k = 0; k < w->n_in && !rc; k++) {
        hone_value *there = NULL;
        if (w->row->resident &&
            hone_value_bring(w->fed[k].value, w->where.device ? w->where.device : "cpu", &there))
            return hone_args_wrong("--resident: %s", hone_error());
        if (there) hone_value_free(w->fed[k].value), w->fed[k].value = there;
        w->in[k] = w->fed[k].value;
    }
    double began = hone_clock_ms();
    hone_status s = rc ? HONE_OK : hone_session_run(w->session, w->in, w->out);
    w->first_ms = hone_clock_ms() - began;
    if (rc || !s) return rc;
    return !w->files && hone_feed_again(w->model, &w->wish, s, w->fed) ? first_run(w)
                                                                       : hone_feed_failed(&w->wish, s);
}

/* FOLDER/input_K.npy, as `hone compare` wrote them for all runtimes; a missing file is an optional input left
   out. */
static int read_inputs(work *w) {
    char path[4096];
    for (int k = 0; k < w->n_in; k++) {
        snprintf(path, sizeof path, "%s/input_%d.npy", w->files, k);
        if (access(path, F_OK)) continue;
        hone_status s = hone_value_read(path, HONE_VALUE_TENSOR, HONE_DTYPE_NONE, NULL, 0, &w->fed[k].value);
        if (s) return hone_args_failed(s);
    }
    return 0;
}

/* Among other programs in turn: waits with its load until it is told, and says on the same line why it cannot
   go on. */
static bool wait_for_load(FILE *from, FILE *to) {
    char line[16];
    fprintf(to, "{\"worker\": %d}\n", PROTOCOL);
    return !fflush(to) && fgets(line, sizeof line, from) && !strcmp(line, "load\n");
}
static void say_cannot(FILE *to) { /* messages may have several lines; the first says enough */
    const char *why = hone_error();
    fprintf(to, "cannot %.*s\n", (int)strcspn(why, "\n"), why);
}

static int serve(const hone_bench_row *row, const char *files, FILE *from, FILE *to) {
    work w = {.row = row, .to = to, .files = files};
    hone_times times = {0};
    char line[4096];
    w.wish = (hone_feed_wish){.inputs = &row->inputs,
                              .shapes = &row->shapes,
                              .seed = row->seed,
                              .dims = &row->dims,
                              .cast = row->cast};
    int rc = hone_where_import(&w.where);
    if (!rc && files && !wait_for_load(from, to)) rc = 1;
    if (!rc) rc = open_model(&w);
    if (!rc) rc = files ? read_inputs(&w) : hone_feed(w.model, &w.wish, w.fed);
    if (!rc) rc = first_run(&w);
    if (!rc) put_hello(&w);
    while (!rc && !fflush(to) && fgets(line, sizeof line, from) && strcmp(line, "quit\n") != 0)
        rc = answer(&w, line, &times);
    if (rc && files) say_cannot(to);
    if (rc && !files && *hone_args_last()) { /* said on stderr; under --json the parent says it, too */
        fprintf(to, "{\"cannot\": ");
        hone_json_put_text(to, hone_args_last(), strlen(hone_args_last()));
        fprintf(to, ", \"status\": \"%s\"}\n", hone_args_status());
    }
    for (int k = 0; k < w.n_out && w.out; k++) hone_value_free(w.out[k]);
    if (w.fed) hone_feed_free(w.fed, w.n_in);
    hone_session_free(w.session);
    hone_model_free(w.model);
    hone_where_free(&w.where);
    free(w.in), free(w.out), free(times.ms);
    return rc;
}

/* The words that hone_bench_words wrote, perhaps by another version. */
int hone_worker_main(int argc, char **argv) {
    hone_bench_row row = {0};
    hone_words operands = {0};
    const char *files = NULL;
    const hone_option options[] = {
        {"--files", "FOLDER", "", HONE_ARG_TEXT, &files, 0},
        {"--input", "[NAME=]FILE", "", HONE_ARG_LIST, &row.inputs, 0},
        {"--shape", "[NAME=]DIMS", "", HONE_ARG_LIST, &row.shapes, 0},
        {"--dim", "NAME=SIZE", "", HONE_ARG_LIST, &row.dims, 0},
        {"--data", "FILES", "", HONE_ARG_LIST, &row.data, 0},
        {"--seed", "N", "", HONE_ARG_INT, &row.seed, 0},
        {"--pause", "MS", "", HONE_ARG_NUMBER, &row.pause_ms, 0},
        {"--threads", "N", "", HONE_ARG_THREADS, &row.threads, 0},
        {"--batch", "N", "", HONE_ARG_INT, &row.batch, 0},
        {"--precision", "P", "", HONE_ARG_TEXT, &row.precision, 0},
        {"--resident", NULL, "", HONE_ARG_FLAG, &row.resident, 0},
        {"--cast", NULL, "", HONE_ARG_FLAG, &row.cast, 0},
        {0},
    };
    const hone_usage usage = {
        "bench", "MODEL", 1, 1, "Runs one model for another process.", "hone bench --worker MODEL", options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    if (rc == HONE_ARGS_GO) {
        row.model = operands.at[0];
        rc = serve(&row, files, stdin, stdout);
    }
    hone_words_free(&row.inputs), hone_words_free(&row.shapes), hone_words_free(&row.dims),
        hone_words_free(&row.data), hone_words_free(&operands);
    return rc;
}

static void put_word(FILE *to, const char *word) {
    fprintf(to, ", ");
    hone_json_put_text(to, word, strlen(word));
}
void hone_bench_words(FILE *to, const hone_bench_row *row) {
    fprintf(to, "[\"--threads=%d\", \"--batch=%d\"", row->threads, row->batch);
    if (row->seed) fprintf(to, ", \"--seed=%d\"", row->seed);
    if (row->resident) fprintf(to, ", \"--resident\"");
    if (row->cast) fprintf(to, ", \"--cast\"");
    /* programs of before do not know it */
    if (row->pause_ms > 0) fprintf(to, ", \"--pause=%.9g\"", row->pause_ms);
    for (int k = 0; k < row->inputs.n; k++) put_word(to, "--input"), put_word(to, row->inputs.at[k]);
    for (int k = 0; k < row->shapes.n; k++) put_word(to, "--shape"), put_word(to, row->shapes.at[k]);
    for (int k = 0; k < row->dims.n; k++) put_word(to, "--dim"), put_word(to, row->dims.at[k]);
    for (int k = 0; k < row->data.n; k++) put_word(to, "--data"), put_word(to, row->data.at[k]);
    put_word(to, "--precision"), put_word(to, row->precision);
    put_word(to, "--"), put_word(to, row->model);
    fputc(']', to);
}

/* ---- the parent's end ---- */

/* In the child: becomes the other program, with the words of its own result. Comes back only where that
   fails. */
static int become(const hone_other *o) {
    int n = 3 + (o->words ? o->words->n : 0), at = 0;
    char **argv = hone_must_alloc(sizeof *argv * (size_t)(n + 1)), bench[] = "bench", worker[] = "--worker",
         *program = strdup(o->program);
    argv[at++] = program, argv[at++] = bench, argv[at++] = worker;
    for (const hone_json *w = o->words ? o->words->first : NULL; w && program; w = w->next)
        if (w->type == HONE_JSON_TEXT) argv[at++] = w->text;
    if (o->level && *o->level) setenv("HONE_CPU", o->level, 1);
    else unsetenv("HONE_CPU");
    if (program && !chdir(o->folder)) execv(program, argv);
    hone_args_wrong("%s cannot be started in %s: %s", o->program, o->folder, strerror(errno));
    free(program), free(argv);
    return 1;
}

static void child(const hone_bench_row *row, const hone_other *other, const int *down, const int *up) {
    close(down[1]), close(up[0]);
    if (other) {
        if (dup2(down[0], STDIN_FILENO) < 0 || dup2(up[1], STDOUT_FILENO) < 0) exit(1);
        close(down[0]), close(up[1]);
        exit(become(other));
    }
    FILE *from = fdopen(down[0], "r"), *to = fdopen(up[1], "w");
    int rc = from && to ? serve(row, NULL, from, to) : 1;
    if (from) fclose(from);
    if (to) fclose(to);
    exit(rc); /* not _exit: a sanitizer looks for leaks here */
}

int hone_worker_start(const hone_bench_row *row, const hone_other *other, hone_worker *w, hone_json **hello) {
    int down[2], up[2];
    *w = (hone_worker){0};
    if (pipe(down)) return hone_args_wrong("cannot make a pipe: %s", strerror(errno));
    if (pipe(up))
        return close(down[0]), close(down[1]), hone_args_wrong("cannot make a pipe: %s", strerror(errno));
    signal(SIGPIPE, SIG_IGN); /* a worker that died is told by the line that does not come */
    fflush(NULL);
    w->pid = fork();
    if (w->pid == 0) child(row, other, down, up);
    close(down[0]), close(up[1]);
    w->to = fdopen(down[1], "w"), w->from = fdopen(up[0], "r");
    if (w->pid < 0 || !w->to || !w->from) {
        hone_worker_stop(w);
        return hone_args_wrong("cannot start a process: %s", strerror(errno));
    }
    *hello = hone_worker_ask(w, "%s", "");
    if (*hello && hone_json_number(*hello, "worker", 0) == PROTOCOL) return 0;
    hone_json_free(*hello), *hello = NULL;
    int rc = hone_worker_stop(w);
    return rc ? rc
              : hone_args_wrong("%s is no worker of 'hone bench'", other ? other->program : "this program");
}

hone_json *hone_worker_ask(hone_worker *w, const char *format, ...) {
    va_list args;
    char *line = NULL;
    size_t room = 0;
    va_start(args, format);
    vfprintf(w->to, format, args);
    va_end(args);
    bool heard = !fflush(w->to) && getline(&line, &room, w->from) > 0;
    hone_json *said = heard ? hone_json_read(line) : NULL;
    free(line);
    if (!said || !hone_json_get(said, "cannot")) return said;
    hone_args_heard(hone_json_text(said, "status", ""), hone_json_text(said, "cannot", ""));
    hone_json_free(said);
    return NULL;
}

int hone_worker_run(hone_worker *w, int runs, double ms, hone_times *to) {
    hone_json *said = hone_worker_ask(w, "run %d %.3f\n", runs, ms);
    const hone_json *list = hone_json_get(said, "ms");
    int n = 0;
    for (const hone_json *t = list ? list->first : NULL; t; t = t->next) {
        if (t->type != HONE_JSON_NUMBER || !(t->number >= 0)) continue;
        if (to) hone_times_add(to, t->number);
        n++;
    }
    hone_json_free(said);
    if (n) return 0;
    int rc = hone_worker_stop(w);
    return rc ? rc : hone_args_wrong("a process that measured said nothing");
}

int hone_worker_stop(hone_worker *w) {
    int status = 0, rc = 0;
    if (w->to) fprintf(w->to, "quit\n"), fclose(w->to);
    if (w->from) fclose(w->from);
    if (w->pid > 0) {
        while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR) {}
        rc = WIFEXITED(status)
                 ? WEXITSTATUS(status)
                 : hone_args_wrong("the process that ran the model died: %s. This is a bug of Hone's, "
                                   "please report it with the model and the command",
                                   strsignal(WTERMSIG(status))) +
                       1;
    }
    *w = (hone_worker){0};
    return rc;
}
