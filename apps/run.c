/* SPDX-License-Identifier: Apache-2.0
   hone run: one model, its inputs, its outputs; how long it took and what memory it used; or whether the
   outputs are the expected ones. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "args.h"
#include "commands.h"
#include "feed.h"
#include "hone/tools.h"
#include "json.h"
#include "load.h"
#include "labels.h"
#include "output.h"
#include "ranges.h"
#include "show.h"
#include "term.h"
#include "where.h"

/* All that one call of the command holds. */
typedef struct {
    const char *path, *save, *check, *labels_path, *wisdom, *precision;
    int seed, threads, runs, top;
    double rtol, atol;
    bool interpret, json, picture, cast;
    hone_where where;
    hone_words inputs, shapes, dims, data;
    char *keep_f32, *ranges;
    hone_picture_wish wish;
    hone_feed_wish feed;

    hone_model *model;
    hone_session *session;
    hone_fed *fed;
    hone_value **in, **out;
    int n_in, n_out;
    double first_ms, *ms;        /* the first run, with planning; the later ones, sorted */
    hone_difference *difference; /* --check: one an output … */
    bool *compared;              /* … that has a file */
    hone_labels labels;
} job;

/* ---- doing ---- */

static int open_model(job *j) {
    hone_options options;
    hone_options_default(&options);
    options.threads = j->threads;
    options.interpret = j->interpret;
    hone_where_set(&j->where, &options);
    options.wisdom = j->wisdom;
    if (j->precision && !(options.precision = hone_precision(j->precision, strlen(j->precision))))
        return hone_args_wrong("--precision %s: Hone computes in f32, bf16 or f16, on a GPU in tf32 too%s",
                               j->precision,
                               strstr(j->precision, "8") ? "; 'hone quantize' makes a model of 8 bits" : "");
    if (j->interpret && options.precision && options.precision != HONE_DTYPE_F32)
        return hone_args_wrong(
            "--precision %s: the interpreter computes in f32 alone; leave --interpret away", j->precision);
    char why[4096];
    hone_status s = hone_load_for(j->path, &j->inputs, &j->model, why, sizeof why);
    if (s) return hone_args_stopped(s, why);
    const int rc = hone_ranges_find(j->model, &j->data, j->precision, j->threads, &j->keep_f32, &j->ranges);
    if (rc) return rc;
    options.keep_f32 = j->keep_f32;
    hone_where_doubt(&j->where, j->model);
    if ((s = hone_session_create(j->model, &options, &j->session))) return hone_args_failed(s);
    j->n_in = hone_model_inputs(j->model);
    j->n_out = hone_model_outputs(j->model);
    j->fed = hone_must_alloc(sizeof *j->fed * (size_t)j->n_in);
    j->in = hone_must_alloc(sizeof *j->in * (size_t)j->n_in);
    j->out = hone_must_alloc(sizeof *j->out * (size_t)j->n_out);
    j->ms = hone_must_alloc(sizeof *j->ms * (size_t)j->runs);
    return 0;
}

static int by_number(const void *a, const void *b) {
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* --runs 1 is the first run; more are counted after it, into the same output tensors. */
static int run_all(job *j) {
    hone_progress bar;
    hone_progress_begin(&bar, "the first run");
    for (int k = 0; k < j->n_in; k++) j->in[k] = j->fed[k].value;
    for (int r = -1; r < (j->runs > 1 ? j->runs : 0); r++) {
        double began = hone_clock_ms();
        hone_status s = hone_session_run(j->session, j->in, j->out);
        double took = hone_clock_ms() - began;
        if (s && r < 0 && hone_feed_again(j->model, &j->feed, s, j->fed)) {
            for (int k = 0; k < j->n_in; k++) j->in[k] = j->fed[k].value;
            began = hone_clock_ms();
            s = hone_session_run(j->session, j->in, j->out);
            took = hone_clock_ms() - began;
        }
        if (s) {
            hone_progress_end(&bar);
            return hone_feed_failed(&j->feed, s);
        }
        if (r < 0) j->first_ms = took;
        else j->ms[r] = took;
        hone_progress_show(&bar, r + 1, j->runs, "runs");
    }
    hone_progress_end(&bar);
    if (j->runs > 1) qsort(j->ms, (size_t)j->runs, sizeof *j->ms, by_number);
    return 0;
}

static double median(const job *j) {
    return j->runs > 1 ? (j->ms[(j->runs - 1) / 2] + j->ms[j->runs / 2]) / 2 : j->first_ms;
}

/* Whether an output may be written there: not over the model nor over anything that was read. */
static int may_save(const job *j, const char *path) {
    const char *others[] = {j->labels_path ? j->labels_path : "", j->wisdom ? j->wisdom : ""};
    int rc = hone_output_check("--save", path, &(hone_words){(const char **)&j->path, 1}, &j->inputs);
    if (!rc) rc = hone_output_check("--save", path, NULL, &(hone_words){others, 2});
    for (int k = 0; k < j->n_in + j->n_out && j->check && !rc; k++) {
        char *file = hone_must_alloc(strlen(j->check) + 40);
        sprintf(file, "%s/%sput_%d.pb", j->check, k < j->n_in ? "in" : "out", k < j->n_in ? k : k - j->n_in);
        rc = hone_output_check("--save", path, NULL, &(hone_words){(const char **)&file, 1});
        free(file);
    }
    return rc;
}

/* NumPy's files hold numbers: strings and maps are written as ONNX's test data has them. */
static bool is_numbers(const hone_value *v) {
    bool good = true;
    if (hone_value_kind_of(v) == HONE_VALUE_TENSOR) return hone_value_dtype(v) != HONE_DTYPE_STRING;
    for (int k = 0; k < hone_value_items(v) && good; k++)
        good = hone_value_kind_of(hone_value_item(v, k)) == HONE_VALUE_TENSOR &&
               is_numbers(hone_value_item(v, k));
    return good && hone_value_kind_of(v) != HONE_VALUE_MAP;
}

/* Before the run: the folder is there and can be written, and no output lies where something that is read
   does. */
static int prepare_save(const job *j) {
    static const char *const endings[] = {"npy", "pb"};
    char *path = hone_must_alloc(strlen(j->save) + 64);
    int rc = 0;
    if (mkdir(j->save, 0777) && errno != EEXIST)
        rc = hone_args_wrong("--save %s: %s", j->save, strerror(errno));
    for (int k = 0; k < 2 * j->n_out && !rc; k++) {
        sprintf(path, "%s/output_%d.%s", j->save, k / 2, endings[k % 2]);
        rc = may_save(j, path);
        if (!rc && k == 0) rc = hone_output_try("--save", path);
    }
    free(path);
    return rc;
}

static int save_all(const job *j) {
    if (mkdir(j->save, 0777) && errno != EEXIST)
        return hone_args_wrong("--save %s: %s", j->save, strerror(errno));
    size_t room = strlen(j->save) + 64;
    char *path = hone_must_alloc(room);
    hone_status s = HONE_OK;
    int rc = 0;
    for (int k = 0; k < j->n_out && !s && !rc; k++) {
        bool numbers = is_numbers(j->out[k]),
             list = numbers && hone_value_kind_of(j->out[k]) != HONE_VALUE_TENSOR;
        for (int i = 0; i < (list ? hone_value_items(j->out[k]) : 1) && !s && !rc; i++) {
            if (list) snprintf(path, room, "%s/output_%d_%d.npy", j->save, k, i);
            else snprintf(path, room, "%s/output_%d.%s", j->save, k, numbers ? "npy" : "pb");
            if ((rc = may_save(j, path))) break;
            s = hone_value_write(list ? hone_value_item(j->out[k], i) : j->out[k], path);
            if (!s && !j->json) hone_print(stdout, "saved   %s\n", path);
        }
    }
    free(path);
    return s ? hone_args_failed(s) : rc;
}

static int compare_all(job *j) {
    int files = 0;
    j->difference = hone_must_alloc(sizeof *j->difference * (size_t)j->n_out);
    j->compared = hone_must_alloc(sizeof *j->compared * (size_t)j->n_out);
    for (int k = 0; k < j->n_out; k++) {
        hone_value *want = NULL;
        int rc = hone_feed_read(j->check, "output", k, hone_value_kind_of(j->out[k]), &want);
        if (rc) return rc;
        if (!want) continue;
        hone_compare(j->out[k], want, j->rtol, j->atol, &j->difference[k]);
        j->compared[k] = true;
        files++;
        hone_value_free(want);
    }
    return files ? 0 : hone_args_wrong("--check %s: there is no output_K.pb to compare with", j->check);
}

/* ---- telling ---- */

/* Names for other classes than there are would be read as the truth. */
static void tell_labels(const job *j) {
    for (int k = 0; k < j->n_out && j->labels.n && j->top; k++) {
        const hone_value *v = j->out[k];
        const int rank = hone_value_kind_of(v) == HONE_VALUE_TENSOR ? hone_value_rank(v) : 0;
        const long long classes = rank ? (long long)hone_value_dims(v)[rank - 1] : 1;
        if (classes != j->labels.n)
            hone_args_warn("--labels %s has %d names, output '%s' %lld classes: they are hardly its names",
                           j->labels_path, j->labels.n, hone_model_output(j->model, k)->name, classes);
    }
}

static int name_width(const job *j) {
    size_t width = 0;
    for (int k = 0; k < j->n_in + j->n_out; k++) {
        const char *name = k < j->n_in ? hone_model_input(j->model, k)->name
                                       : hone_model_output(j->model, k - j->n_in)->name;
        if (strlen(name) > width) width = strlen(name);
    }
    return width > 40 ? 40 : (int)width;
}

static void tell_values(const job *j) {
    int width = name_width(j);
    for (int k = 0; k < j->n_in; k++) {
        hone_print(stdout, "input   %-*s  ", width, hone_model_input(j->model, k)->name);
        hone_show_type(stdout, j->fed[k].value);
        hone_print(stdout, "  %s%s%s\n", hone_paint(stdout, HONE_DIM), j->fed[k].from,
                   hone_paint(stdout, HONE_PLAIN));
        if (j->picture) hone_show_picture(stdout, "        ", j->fed[k].value);
    }
    for (int k = 0; k < j->n_out; k++) {
        hone_print(stdout, "output  %-*s  %s", width, hone_model_output(j->model, k)->name,
                   hone_paint(stdout, HONE_BOLD));
        hone_show_type(stdout, j->out[k]);
        hone_print(stdout, "%s\n", hone_paint(stdout, HONE_PLAIN));
        if (!j->top) hone_show_value(stdout, "        ", j->out[k]);
        else hone_show_top(stdout, "        ", j->out[k], j->top, j->labels.at, j->labels.n);
    }
}

static void tell_time(const job *j) {
    char threads[32] = "all cores", by[32] = "";
    if (j->threads) snprintf(threads, sizeof threads, "%d thread%s", j->threads, j->threads > 1 ? "s" : "");
    if (j->interpret) snprintf(by, sizeof by, ", interpreted");
    if (j->runs == 1)
        hone_print(stdout, "time    %s  the first run, with planning; %s%s\n", hone_text_ms(j->first_ms),
                   threads, by);
    else
        hone_print(stdout,
                   "time    %s  median of %d runs (%s to %s); the first, with planning, took %s; %s%s\n",
                   hone_text_ms(median(j)), j->runs, hone_text_ms(j->ms[0]), hone_text_ms(j->ms[j->runs - 1]),
                   hone_text_ms(j->first_ms), threads, by);
}

static bool ends_in_f32(const char *tactic) { /* a device's step that stays f32; its products may be tf32 */
    const size_t n = strlen(tactic);
    return n > 4 && !strcmp(tactic + n - 3, "f32");
}
/* How much of it was computed in what was asked for: never more than that, and it may be less. */
static void tell_precision(const job *j) {
    char *report = NULL;
    if (!j->precision || hone_session_report(j->session, "steps", &report)) return;
    hone_json *r = hone_json_read(report);
    int halves = 0, all = 0, printed = 0, cores = 0;
    for (const hone_json *s = r ? r->first : NULL; s; s = s->next) {
        const char *tactic = hone_json_text(s, "tactic", "");
        halves += !strncmp(tactic, "contract ", 9) && !strcmp(tactic + 9, j->precision);
        all += !strncmp(tactic, "contract", 8) || !strcmp(tactic, "winograd") ||
               !strcmp(tactic, "direct conv") || !strcmp(tactic, "attention") || !strcmp(tactic, "over");
    }
    for (const hone_json *s = r ? r->first : NULL; s; s = s->next) {
        const char *tactic = hone_json_text(s, "tactic", "");
        printed += !strncmp(tactic, "printed", 7) || !strncmp(tactic, "kernel", 6),
            cores += !strncmp(tactic, "tensor cores", 12);
    }
    if (printed + cores && !strcmp(j->precision, "tf32")) {
        hone_print(stdout, "floats  f32; %d of the device's %d steps multiply by tensor cores, in tf32\n",
                   cores, printed + cores);
        hone_json_free(r);
        hone_text_release(report);
        return;
    }
    if (printed + cores) {
        hone_print(stdout,
                   "floats  %s: so the device stores values between nodes; %d of its %d steps multiply by "
                   "tensor cores; sums, norms and "
                   "softmax are f32\n",
                   j->precision, cores, printed + cores);
        for (const hone_json *s = r && !j->ranges ? r->first : NULL; s; s = s->next)
            if (ends_in_f32(hone_json_text(s, "tactic", "")))
                hone_print(stdout, "kept    %s (%s) stays f32: it has weights beyond f16's largest, 65504\n",
                           hone_json_text(s, "node", ""), hone_json_text(s, "op", ""));
        hone_json_free(r);
        hone_text_release(report);
        return;
    }
    hone_print(stdout,
               "floats  %s asked for; %d of %d steps that multiply matrices round to it, all else is f32\n",
               j->precision, halves, all);
    char *machine = NULL, family[32];
    hone_json *m = halves && !hone_machine_report(0, &machine) ? hone_json_read(machine) : NULL;
    const hone_json *kernels = m ? hone_json_get(m, "kernels") : NULL;
    snprintf(family, sizeof family, "gemm_%s", j->precision);
    for (const hone_json *k = kernels ? kernels->first : NULL; k; k = k->next)
        if (!strcmp(hone_json_text(k, "family", ""), family))
            hone_print(stdout, "        %s\n", strrchr(hone_json_text(k, "for", "; "), ';') + 2);
    hone_json_free(m);
    hone_text_release(machine);
    hone_json_free(r);
    hone_text_release(report);
}

static void tell_memory(const char *report) {
    hone_json *r = report ? hone_json_read(report) : NULL;
    double arena = hone_json_number(r, "arena_bytes", NAN), sum = hone_json_number(r, "sum_bytes", NAN),
           bound = hone_json_number(r, "lower_bound_bytes", NAN),
           elsewhere = hone_json_number(r, "device_bytes", 0);
    if (elsewhere > 0) {
        hone_print(stdout, "memory  %s for tensors on the device", hone_text_bytes(elsewhere));
        hone_print(stdout, ", %s on the host\n", hone_text_bytes(arena));
    } else if (arena == 0) { /* one step, from inputs to outputs */
        hone_print(stdout, "memory  none for tensors: nothing lies between the inputs and the outputs\n");
    } else if (isfinite(arena)) {
        hone_print(stdout, "memory  %s peak for tensors", hone_text_bytes(arena));
        if (isfinite(sum) && sum > arena)
            hone_print(stdout, "; all of them side by side are %s", hone_text_bytes(sum));
        if (isfinite(bound) && bound > 0)
            hone_print(stdout, "; no plan can need less than %s", hone_text_bytes(bound));
        putchar('\n');
    }
    hone_json_free(r);
}

static void tell_wisdom(const char *report) {
    hone_json *r = report ? hone_json_read(report) : NULL;
    char text[512];
    if (hone_wisdom_words(r, text, sizeof text)) hone_print(stdout, "wisdom  %s\n", text);
    hone_json_free(r);
}

static void tell_check(const job *j) {
    for (int k = 0; k < j->n_out; k++) {
        const hone_difference *d = &j->difference[k];
        if (!j->compared[k]) continue;
        hone_print(stdout,
                   "check   %s%s%s  output '%s': max abs %.3g, max rel %.3g, %lld of %lld elements out of "
                   "tolerance\n",
                   hone_paint(stdout, d->ok ? HONE_GREEN : HONE_RED), d->ok ? "pass" : "FAIL",
                   hone_paint(stdout, HONE_PLAIN), hone_model_output(j->model, k)->name, d->max_abs,
                   d->max_rel, (long long)d->wrong, (long long)d->elements);
    }
}

static void put_named(const char *name, const char *text) {
    printf("\"%s\": ", name);
    hone_json_put_text(stdout, text, strlen(text));
}

static void tell_json(const job *j, const char *memory, const char *wisdom) {
    hone_args_answered();
    putchar('{');
    put_named("model", hone_model_shown(j->path));
    printf(", \"inputs\": [");
    for (int k = 0; k < j->n_in; k++) {
        printf(k ? ", {" : "{");
        put_named("name", hone_model_input(j->model, k)->name);
        printf(", ");
        put_named("from", j->fed[k].from);
        printf(", \"value\": ");
        hone_show_json(stdout, j->fed[k].value);
        putchar('}');
    }
    printf("], \"outputs\": [");
    for (int k = 0; k < j->n_out; k++) {
        printf(k ? ", {" : "{");
        put_named("name", hone_model_output(j->model, k)->name);
        printf(", \"value\": ");
        hone_show_json(stdout, j->out[k]);
        if (j->top) {
            printf(", \"top\": ");
            hone_show_json_top(stdout, j->out[k], j->top, j->labels.at, j->labels.n);
        }
        if (j->check && j->compared[k]) {
            const hone_difference *d = &j->difference[k];
            printf(", \"check\": {\"ok\": %s, \"max_abs\": ", d->ok ? "true" : "false");
            hone_json_put_number(stdout, d->max_abs);
            printf(", \"max_rel\": ");
            hone_json_put_number(stdout, d->max_rel);
            printf(", \"wrong\": %lld, \"elements\": %lld, ", (long long)d->wrong, (long long)d->elements);
            put_named("why", d->why);
            putchar('}');
        }
        putchar('}');
    }
    printf("], \"precision\": \"%s\"", j->precision ? j->precision : "f32");
    if (j->ranges) printf(", \"ranges\": %s", j->ranges);
    printf(", \"threads\": %d, \"interpret\": %s, \"runs\": %d, \"time_ms\": {\"first\": ", j->threads,
           j->interpret ? "true" : "false", j->runs);
    hone_json_put_number(stdout, j->first_ms);
    printf(", \"median\": ");
    hone_json_put_number(stdout, median(j));
    printf(", \"min\": ");
    hone_json_put_number(stdout, j->runs > 1 ? j->ms[0] : j->first_ms);
    printf(", \"max\": ");
    hone_json_put_number(stdout, j->runs > 1 ? j->ms[j->runs - 1] : j->first_ms);
    printf("}, \"memory\": %s, \"wisdom\": %s}\n", memory ? memory : "null", wisdom ? wisdom : "null");
}

/* The verdict of --check: the last line says the first thing that was wrong. */
static int verdict(const job *j) {
    for (int k = 0; k < j->n_out; k++)
        if (j->compared[k] && !j->difference[k].ok)
            return hone_args_wrong("output '%s' is not within rtol %g, atol %g: %s (max abs %.3g, max rel "
                                   "%.3g, %lld of %lld wrong)",
                                   hone_model_output(j->model, k)->name, j->rtol, j->atol,
                                   j->difference[k].why, j->difference[k].max_abs, j->difference[k].max_rel,
                                   (long long)j->difference[k].wrong, (long long)j->difference[k].elements);
    return 0;
}

static int do_job(job *j) {
    int rc = j->labels_path ? hone_labels_read(j->labels_path, &j->labels) : 0;
    char *memory = NULL, *wisdom = NULL;
    if (!rc) rc = open_model(j);
    if (!rc && j->save) rc = prepare_save(j);
    if (!rc && j->check) rc = hone_feed_set(j->model, j->check, j->fed);
    j->feed = (hone_feed_wish){.inputs = &j->inputs,
                               .shapes = &j->shapes,
                               .seed = j->seed,
                               .picture = &j->wish,
                               .dims = &j->dims,
                               .cast = j->cast};
    if (!rc && !j->check) rc = hone_feed(j->model, &j->feed, j->fed);
    if (!rc) rc = run_all(j);
    if (!rc && j->check) rc = compare_all(j);
    if (rc) return rc;
    if (hone_session_report(j->session, "memory", &memory)) memory = NULL; /* the interpreter has none */
    if (hone_session_report(j->session, "wisdom", &wisdom)) wisdom = NULL;
    tell_labels(j);
    if (j->json) {
        tell_json(j, memory, wisdom);
    } else {
        if (!j->check) tell_values(j);
        if (j->check) tell_check(j);
        if (!hone_args_quiet()) {
            tell_time(j);
            tell_precision(j);
            hone_ranges_tell(j->ranges);
            tell_memory(memory);
            tell_wisdom(wisdom);
        }
    }
    hone_text_release(memory), hone_text_release(wisdom);
    if (j->save) rc = save_all(j);
    return rc || !j->check ? rc : verdict(j);
}

int hone_cmd_run(int argc, char **argv) {
    job j = {.runs = 1, .rtol = 1e-3, .atol = 1e-5};
    hone_words operands = {0};
    const hone_option options[] = {
        {"--input", "[NAME=]FILE",
         "a .npy, .npz, .pb or .bin file or a picture for an input, by name or in order (several pictures "
         "are a batch); or NAME=16000, "
         "NAME=1,2,3, "
         "NAME=ones, NAME=random",
         HONE_ARG_LIST, &j.inputs, 0},
        {"--cast", NULL, "with --input: convert files of another type, where every number fits",
         HONE_ARG_FLAG, &j.cast, 0},
        {"--resize", "N|WxH|HOW",
         "pictures: shorter side to N; just WxH; 'stretch' or 'pad' to the model's size (else: cover it)",
         HONE_ARG_TEXT, &j.wish.resize, 0},
        {"--crop", "N|WxH", "pictures: cut out the centre (the model's size where it has one)", HONE_ARG_TEXT,
         &j.wish.crop, 0},
        {"--mean", "M|NAME",
         "pictures: numbers to subtract, for 0..1, or for 0..255 if one is above 1; or imagenet, 0-1, -1-1, "
         "none",
         HONE_ARG_TEXT, &j.wish.mean, 0},
        {"--std", "S", "pictures: numbers to divide by, as --mean's", HONE_ARG_TEXT, &j.wish.std, 0},
        {"--order", "rgb|bgr", "pictures: order of the channels (rgb)", HONE_ARG_TEXT, &j.wish.order, 0},
        {"--shape", "[NAME=]DIMS", "dims of a random or .bin input, as 1x3x224x224", HONE_ARG_LIST, &j.shapes,
         0},
        {"--dim", "NAME=SIZE", "a free dim of the inputs, as in batch=8; others are guessed", HONE_ARG_LIST,
         &j.dims, 0},
        {"--seed", "N", "of the random inputs (0)", HONE_ARG_INT, &j.seed, 0},
        {"--threads", "N", "at most so many (0: all cores)", HONE_ARG_THREADS, &j.threads, 0},
        {"--wisdom", "FILE",
         "choices that hone tune measured (else: $HONE_WISDOM, or where it writes by default; '' for none)",
         HONE_ARG_TEXT, &j.wisdom, 0},
        {"--runs", "N", "run N times after a first one and print the median (1: only the first)",
         HONE_ARG_INT, &j.runs, 1},
        {"--top", "K", "print the K largest elements of each row of the outputs", HONE_ARG_INT, &j.top, 1},
        {"--labels", "FILE", "with --top: names of the classes, a line each, or a JSON list or dict",
         HONE_ARG_TEXT, &j.labels_path, 0},
        {"--picture", NULL, "draw an input that is one small picture", HONE_ARG_FLAG, &j.picture, 0},
        {"--save", "DIR", "write the outputs to DIR/output_K.npy (strings and maps: .pb)", HONE_ARG_TEXT,
         &j.save, 0},
        {"--check", "DIR", "take DIR/input_K.pb and compare with DIR/output_K.pb; fails when they differ",
         HONE_ARG_TEXT, &j.check, 0},
        {"--rtol", "R", "with --check: |got - want| <= A + R * |want| (0.001)", HONE_ARG_NUMBER, &j.rtol, 0},
        {"--atol", "A", "with --check (0.00001)", HONE_ARG_NUMBER, &j.atol, 0},
        {"--precision", "f32|bf16|f16|tf32",
         "what floats are computed in: f32; bf16 or f16 for products with constant weights, on other devices "
         "for all that is stored; tf32 for products on cuda (f32)",
         HONE_ARG_TEXT, &j.precision, 0},
        HONE_RANGES_OPTION(&j.data),
        {"--interpret", NULL, "run by the interpreter, the slow definition of every op", HONE_ARG_FLAG,
         &j.interpret, 0},
        HONE_WHERE_OPTIONS(&j.where),
        {"--json", NULL, "print JSON", HONE_ARG_FLAG, &j.json, 0},
        {0},
    };
    const hone_usage usage = {
        "run",
        "MODEL",
        1,
        1,
        "Runs a model and prints its outputs, the time and the memory.",
        "hone run model.onnx --input cat.jpg --resize 256 --mean imagenet --top 5 --labels classes.txt\n"
        "hone run model.onnx --shape 8x3x224x224 --runs 50\n"
        "hone run model.onnx --check test_data_set_0",
        options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    if (rc == HONE_ARGS_GO && !(rc = hone_where_begin(&j.where))) {
        j.path = operands.at[0];
        rc =
            j.check && (j.inputs.n || j.shapes.n || j.dims.n || hone_args_given("--seed") ||
                        hone_picture_wished(&j.wish))
                ? hone_args_wrong("--check brings its own inputs: leave --input, --shape, --dim, --seed and "
                                  "what is for pictures away")
            : j.interpret && j.wisdom
                ? hone_args_wrong("--wisdom is for kernels: the interpreter has none; leave --interpret away")
                : do_job(&j);
    }
    for (int k = 0; k < j.n_out && j.out; k++) hone_value_free(j.out[k]);
    if (j.fed) hone_feed_free(j.fed, j.n_in);
    hone_session_free(j.session);
    hone_model_free(j.model);
    free(j.in), free(j.out), free(j.ms), free(j.difference), free(j.compared);
    hone_labels_free(&j.labels);
    hone_where_free(&j.where);
    hone_words_free(&j.inputs);
    hone_words_free(&j.shapes);
    hone_words_free(&j.dims), hone_words_free(&j.data);
    hone_text_release(j.keep_f32), hone_text_release(j.ranges);
    hone_words_free(&operands);
    return rc;
}
