/* SPDX-License-Identifier: Apache-2.0
   hone tune: measures choices for a model's layers on this machine and keeps the best (hone_tune); here is
   only what a user says and sees. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "commands.h"
#include "feed.h"
#include "hone/tools.h"
#include "json.h"
#include "load.h"
#include "output.h"
#include "table.h"
#include "term.h"
#include "where.h"

typedef struct {
    const char *path, *budget, *file, *precision;
    int seed, threads;
    bool json, all, cast;
    hone_words inputs, shapes, dims;
    hone_model *model;
    hone_fed *fed;
    hone_value **in;
    int n_in;
    double seconds;
    hone_progress bar;
    hone_where where;
} job;

/* "30s", "2m", "500ms"; seconds where there is no unit. */
static bool seconds_of(const char *text, double *out) {
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
    char *end;
    double n = strtod(text, &end);
    if (end == text || !isfinite(n) || n <= 0) return false;
    for (size_t k = 0; k < sizeof units / sizeof *units; k++)
        if (!strcmp(end, units[k].unit)) return (*out = n * units[k].seconds) <= 1e6;
    return false;
}
static int show(void *arg, double done, const char *what) {
    enum { STEPS = 1000 };
    job *j = arg;
    char text[160];
    snprintf(text, sizeof text, "%.0f s left: %s", j->seconds * (1 - done), what);
    hone_progress_show(&j->bar, (int)(done * STEPS), STEPS, text);
    return 0;
}

/* ---- telling ---- */

/* "sum m 3136 n 64 k 576 …" is long: the first numbers say which it is. */
static void put_problem(hone_table *t, const char *text) {
    char copy[160];
    int blanks = 0, n = 0;
    for (; text[n] && n < (int)sizeof copy - 1; n++) {
        if (text[n] == ' ' && ++blanks == 7) break;
        copy[n] = text[n];
    }
    copy[n] = 0;
    hone_table_cell(t, "%s", copy);
}
/* "vectors 4 rows 784 columns 64 depth 576 tile 0" as people say it. */
static void put_choice(hone_table *t, const char *text) {
    long long v, rows, columns, depth, tile;
    if (sscanf(text, "vectors %lld rows %lld columns %lld depth %lld tile %lld", &v, &rows, &columns, &depth,
               &tile) == 5) {
        if (tile > 9) hone_table_cell(t, "by tiles of %lldx%lld", tile / 10, tile % 10); /* 24: 2x4 */
        else if (tile) hone_table_cell(t, "by tiles of %lldx%lld", tile, tile);
        else hone_table_cell(t, "%lldx%lld, panel %lld, depth %lld", rows, columns, v, depth);
    } else if (sscanf(text, "rows %lld columns %lld", &rows, &columns) == 2)
        hone_table_cell(t, "%lldx%lld", rows, columns);
    else hone_table_cell(t, "%s", text);
}
static void tell_problems(const job *j, const hone_json *r) {
    static const char *const head[] = {"problem", "where", "estimate", "time", "best", "time", "gain"};
    const hone_json *all = hone_json_get(r, "problems");
    hone_table *t = hone_table_create("lllrlrr", head);
    int same = 0, shown = 0;
    for (const hone_json *p = all ? all->first : NULL; p; p = p->next) {
        const hone_json *estimate = hone_json_get(p, "estimate"), *best = hone_json_get(p, "best");
        double gain = hone_json_number(p, "gain", 0), layers = hone_json_number(p, "layers", 1);
        if (gain <= 0 && !j->all) {
            same++;
            continue;
        }
        shown++;
        put_problem(t, hone_json_text(p, "problem", ""));
        if (layers > 1) hone_table_cell(t, "%.24s and %.0f more", hone_json_text(p, "node", ""), layers - 1);
        else hone_table_cell(t, "%.24s", hone_json_text(p, "node", ""));
        put_choice(t, hone_json_text(estimate, "choice", ""));
        hone_table_cell(t, "%s", hone_text_ms(hone_json_number(estimate, "ns", NAN) * 1e-6));
        put_choice(t, gain > 0 ? hone_json_text(best, "choice", "") : "the same");
        hone_table_cell(t, "%s", hone_text_ms(hone_json_number(best, "ns", NAN) * 1e-6));
        hone_table_cell(t, "%.0f %%", 100 * gain);
    }
    if (shown) {
        hone_table_print(t, stdout, "");
        putchar('\n');
    } else {
        FILE *nowhere = fopen("/dev/null", "w");
        hone_table_print(t, nowhere ? nowhere : stderr, "");
        if (nowhere) fclose(nowhere);
    }
    if (same)
        hone_print(stdout, "problems  %d of %d stay as estimated: nothing was clearly faster%s\n", same,
                   all ? all->n : 0, shown ? "" : "; --all lists them");
}
static void tell(const job *j, const hone_json *r) {
    const hone_json *model = hone_json_get(r, "model"), *complete = hone_json_get(r, "complete"),
                    *kept = hone_json_get(r, "kept");
    const hone_json *problems = hone_json_get(r, "problems");
    const char *note = hone_json_text(r, "note", "");
    double gain = hone_json_number(model, "gain", 0), resumed = hone_json_number(r, "resumed", 0), was = 0,
           now = 0;
    tell_problems(j, r);
    for (const hone_json *p = problems ? problems->first : NULL; p; p = p->next)
        was += hone_json_number(hone_json_get(p, "estimate"), "ns", 0),
            now += hone_json_number(hone_json_get(p, "best"), "ns", 0);
    if (was > 0)
        hone_print(stdout, "together  %s instead of %s, %.1f %% less; the least that each step took\n",
                   hone_text_ms(now * 1e-6), hone_text_ms(was * 1e-6), 100 * (1 - now / was));
    hone_print(stdout, "tried     %.0f of %.0f choices in %.0f rounds, %.1f s",
               hone_json_number(r, "tried", 0), hone_json_number(r, "candidates", 0),
               hone_json_number(r, "rounds", 0), hone_json_number(r, "seconds", 0));
    if (resumed > 0) hone_print(stdout, "; %.0f of them by earlier calls", resumed);
    printf(complete && complete->type == HONE_JSON_TRUE ? "; no other is worth trying\n"
                                                        : "; another call goes on\n");
    hone_print(stdout,
               "model     %s%s%s instead of %s, %.1f %% %s, medians of %.0f runs each, in turns, %.0f "
               "threads; least %s and %s\n",
               hone_paint(stdout, HONE_BOLD), hone_text_ms(hone_json_number(model, "after_ms", NAN)),
               hone_paint(stdout, HONE_PLAIN), hone_text_ms(hone_json_number(model, "before_ms", NAN)),
               fabs(100 * gain), gain >= 0 ? "less" : "more", hone_json_number(model, "runs", 0),
               hone_json_number(r, "threads", 0), hone_text_ms(hone_json_number(model, "after_min_ms", NAN)),
               hone_text_ms(hone_json_number(model, "before_min_ms", NAN)));
    if (kept && kept->type == HONE_JSON_TRUE)
        hone_print(stdout, "wisdom    %s  %.0f choices of this model\n", hone_json_text(r, "file", ""),
                   hone_json_number(r, "choices", 0));
    else
        hone_print(stdout, "wisdom    not written: the model was not faster with it. %s stays as it was\n",
                   hone_json_text(r, "file", ""));
    if (*note) hone_print(stdout, "note      %s\n", note);
}

/* FILE and FILE.trials are written. */
static int may_write(const job *j) {
    const hone_words model = {(const char **)&j->path, 1};
    char *trials = hone_must_alloc(strlen(j->file) + sizeof ".trials");
    sprintf(trials, "%s.trials", j->file);
    int rc = hone_output_check("-o", j->file, &model, &j->inputs);
    if (!rc) rc = hone_output_check("-o", trials, &model, &j->inputs);
    free(trials);
    return rc;
}

static int do_job(job *j) {
    char why[4096], *report = NULL;
    int rc = j->file ? may_write(j) : 0;
    if (rc) return rc;
    if ((rc = hone_where_begin(&j->where))) return rc;
    const hone_dtype precision =
        j->precision ? hone_precision(j->precision, strlen(j->precision)) : HONE_DTYPE_NONE;
    if (j->precision && !precision)
        return hone_args_wrong("--precision %s: Hone computes in f32, bf16 or f16, on a GPU in tf32 too",
                               j->precision);
    hone_status s = hone_load_for(j->path, &j->inputs, &j->model, why, sizeof why);
    if (s) return hone_args_stopped(s, why);
    j->n_in = hone_model_inputs(j->model);
    j->fed = hone_must_alloc(sizeof *j->fed * (size_t)j->n_in);
    j->in = hone_must_alloc(sizeof *j->in * (size_t)j->n_in);
    hone_feed_wish wish = {
        .inputs = &j->inputs, .shapes = &j->shapes, .seed = j->seed, .dims = &j->dims, .cast = j->cast};
    rc = hone_feed(j->model, &wish, j->fed);
    if (rc) return rc;
    do {
        for (int k = 0; k < j->n_in; k++) j->in[k] = j->fed[k].value;
        hone_progress_begin(&j->bar, "measuring");
        s = hone_tune(j->model, j->in,
                      &(hone_tuning){.seconds = j->seconds,
                                     .threads = j->threads,
                                     .file = j->file,
                                     .device = j->where.device,
                                     .place = j->where.lines,
                                     .precision = precision,
                                     .progress = show,
                                     .arg = j},
                      &report);
        hone_progress_end(&j->bar);
    } while (s && hone_feed_again(j->model, &wish, s, j->fed));
    if (s) return hone_feed_failed(&wish, s);
    if (j->json) {
        hone_args_answered();
        printf("%s\n", report);
    } else {
        hone_json *r = hone_json_read(report);
        for (int k = 0; k < j->n_in; k++)
            if (j->fed[k].guessed)
                hone_print(stdout, "input     %s  %s\n", hone_model_input(j->model, k)->name, j->fed[k].from);
        tell(j, r);
        hone_json_free(r);
    }
    hone_text_release(report);
    return 0;
}

int hone_cmd_tune(int argc, char **argv) {
    job j = {.budget = "30s"};
    hone_words operands = {0};
    const hone_option options[] = {
        {"--budget", "TIME", "measure for so long: 30s, 5m (30s)", HONE_ARG_TEXT, &j.budget, 0},
        {"-o", "FILE",
         "where wisdom is written (a file of this machine in $XDG_CACHE_HOME/hone or ~/.cache/hone, which "
         "every run finds)",
         HONE_ARG_TEXT, &j.file, 0},
        {"--threads", "N", "measure on at most so many (0: all cores)", HONE_ARG_THREADS, &j.threads, 0},
        {"--input", "[NAME=]FILE", "a .npy, .pb or .bin file or a picture for an input, by name or in order",
         HONE_ARG_LIST, &j.inputs, 0},
        {"--cast", NULL, "with --input: convert files of another type, where every number fits",
         HONE_ARG_FLAG, &j.cast, 0},
        {"--shape", "[NAME=]DIMS", "dims of a random or .bin input; wisdom is for these", HONE_ARG_LIST,
         &j.shapes, 0},
        {"--dim", "NAME=SIZE", "a free dim of the inputs, as in batch=8; others are guessed", HONE_ARG_LIST,
         &j.dims, 0},
        {"--seed", "N", "of the random inputs (0)", HONE_ARG_INT, &j.seed, 0},
        {"--precision", "f32|bf16|f16|tf32", "of the runs that wisdom is for (f32)", HONE_ARG_TEXT,
         &j.precision, 0},
        HONE_WHERE_OPTIONS(&j.where),
        {"--all", NULL, "list problems that stay as estimated, too", HONE_ARG_FLAG, &j.all, 0},
        {"--json", NULL, "print JSON", HONE_ARG_FLAG, &j.json, 0},
        {0},
    };
    const hone_usage usage = {"tune",
                              "MODEL",
                              1,
                              1,
                              "Measures how each layer of a model is best computed on this machine, and "
                              "keeps it as wisdom for later runs. A "
                              "second call goes on where the first stopped.",
                              "hone tune model.onnx\n"
                              "hone tune zoo:resnet50 --budget 5m --shape 8x3x224x224\n"
                              "hone tune model.onnx --device cuda\n"
                              "hone tune model.onnx -o wisdom.txt && hone run model.onnx --wisdom wisdom.txt",
                              options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    if (rc == HONE_ARGS_GO) {
        j.path = operands.at[0];
        rc = seconds_of(j.budget, &j.seconds)
                 ? do_job(&j)
                 : hone_args_wrong("--budget: '%s' is no time; say 30s, 500ms or 5m", j.budget);
    }
    if (j.fed) hone_feed_free(j.fed, j.n_in);
    hone_model_free(j.model);
    free(j.in);
    hone_words_free(&operands), hone_words_free(&j.inputs), hone_words_free(&j.shapes),
        hone_words_free(&j.dims);
    hone_where_free(&j.where);
    return rc;
}
