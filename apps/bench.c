/* SPDX-License-Identifier: Apache-2.0
   hone bench: how long a model takes, how many it does in a second, and how sure that is. A sweep is the
   product of the comma lists; each row is measured by a process of its own (bench.h). What the numbers mean
   is in stats.c, how they are shown in bench_tell.c. */
#include "bench.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "hone/tools.h"
#include "load.h"
#include "ranges.h"
#include "output.h"
#include "term.h"
#include "where.h"

/* SLICE_MS: the worker is asked for so much at once, so that a bar can move; RUNS_MIN: less says nothing of a
   tail, so a slow model may take up to PATIENCE times the time that was meant for it. */
enum {
    SLICE_MS = 250,
    RUNS_MIN = 10,
    RUNS_MOST = 4 << 20,
    PATIENCE = 5,
    ROUNDS = 30,
    ROUNDS_MIN = 10,
    PAIRS = 5,
    LIST_MAX = 64,
    SLOWER = 3
};

/* ---- measuring one row ---- */

static void take_hello(const hone_bench *b, hone_bench_result *r, hone_json *hello) {
    const hone_json *plan = hone_json_get(hello, "plan");
    r->hello = hello;
    r->load_ms = hone_json_number(hello, "load_ms", NAN);
    r->first_ms = hone_json_number(hello, "first_ms", NAN);
    r->flops = hone_json_number(plan, "flops", NAN);
    /* What must come from memory at each run if no cache holds it: parameters once, inputs and outputs; less
       where only rows are picked. */
    double bytes = hone_json_number(plan, "parameter_bytes", NAN) +
                   hone_json_number(plan, "input_bytes", NAN) + hone_json_number(plan, "output_bytes", NAN);
    r->bytes = fmin(bytes, hone_json_number(plan, "bytes", NAN));
    r->far = r->bytes > b->cache_bytes;
}

static int warm_up(const hone_bench *b, hone_worker *w, hone_times *to) {
    if (b->warmup >= 0) return b->warmup ? hone_worker_run(w, b->warmup, 0, to) : 0;
    return hone_worker_run(w, 0, fmin(b->seconds * 200, 500), to);
}

/* Memory first: measuring the speed of the machine takes some. */
static int finish(const hone_bench *b, hone_worker *w, hone_bench_result *r) {
    hone_json *memory = hone_worker_ask(w, "memory\n"), *speed = NULL;
    r->peak_bytes = hone_json_number(memory, "peak_bytes", NAN);
    r->peak_flops_per_s = 0;
    /* a row before this one may have asked the same */
    for (const hone_bench_result *o = b->result; o < r; o++)
        if (o->row.threads == r->row.threads)
            r->peak_flops_per_s = o->peak_flops_per_s, r->peak_bytes_per_s = o->peak_bytes_per_s;
    /* what the CPU could do says nothing of another device */
    if (memory && r->peak_flops_per_s <= 0 && !b->elsewhere) {
        speed = hone_worker_ask(w, "speed\n");
        r->peak_flops_per_s = hone_json_number(speed, "f32_flops_per_s", 0);
        r->peak_bytes_per_s = 2 * hone_json_number(speed, "copy_bytes_per_s", 0); /* read and written */
    }
    hone_json_free(memory), hone_json_free(speed);
    return hone_worker_stop(w);
}

static bool enough(const hone_bench *b, const hone_times *t, double spent) {
    double meant = b->seconds * 1000;
    if (t->n >= RUNS_MOST) return true;
    if (b->runs) return t->n >= b->runs || (b->seconds_said && spent >= meant);
    return spent >= meant && (t->n >= RUNS_MIN || spent >= PATIENCE * meant);
}

static int measure(const hone_bench *b, hone_bench_result *r, hone_progress *bar, int k) {
    enum { STEPS = 100 };
    hone_worker w;
    hone_json *hello = NULL;
    hone_times warm = {0};
    hone_progress_end(bar);
    int rc = hone_worker_start(&r->row, NULL, &w, &hello);
    if (rc) return rc;
    take_hello(b, r, hello);
    rc = warm_up(b, &w, &warm);
    r->warmup = warm.n;
    free(warm.ms);
    for (double spent = 0; !rc && !enough(b, &r->times, spent);) {
        int before = r->times.n, left = b->runs ? b->runs - before : 0;
        rc = hone_worker_run(&w, left, b->runs ? SLICE_MS : fmin(SLICE_MS, b->seconds * 1000), &r->times);
        for (int i = before; i < r->times.n; i++) spent += r->times.ms[i] + r->row.pause_ms;
        double share = b->runs ? (double)r->times.n / b->runs : spent / (b->seconds * 1000);
        hone_progress_show(bar, k * STEPS + (int)(fmin(share, 1) * STEPS), b->n * STEPS, r->row.model);
    }
    return rc ? rc : finish(b, &w, r);
}

/* ---- measuring in turn with the program that made the base ---- */

enum { NOW, BASE };
typedef struct {
    hone_times times[2];              /* all runs of each side */
    double median[2][ROUNDS + PAIRS]; /* of each round */
    /* done; to be done; processes that share them. 0 before the first pair */
    int round, rounds, pairs;
    bool theirs; /* what went wrong went wrong there */
} turns;

/* A block: one run that does not count where the other process has just had the caches, then those that
   do. */
static int block(const hone_bench *b, turns *t, hone_worker *w, int side, double one_ms) {
    enum { LONG_MS = 50 }; /* cold caches are no part of so long a run */
    hone_times *all = &t->times[side];
    int runs = (b->runs + t->rounds - 1) / t->rounds, before = all->n;
    int rc = one_ms < LONG_MS ? hone_worker_run(w, 1, 0, NULL) : 0;
    if (!rc) rc = hone_worker_run(w, runs, runs ? 0 : b->seconds * 1000 / t->rounds, all);
    if (!rc) t->median[side][t->round] = hone_stats_median(all->ms + before, all->n - before);
    return rc;
}

/* How many rounds, and by how many pairs of processes: each pair costs its start, which must not take longer
   than the rounds. */
static void decide(const hone_bench *b, turns *t, double start_ms, double one_ms) {
    double meant = b->seconds * 1000;
    t->rounds = b->runs ? (int)fmin(b->runs, ROUNDS) : (int)fmin(ROUNDS, fmax(ROUNDS_MIN, meant / one_ms));
    t->pairs = (int)fmax(1, fmin(fmin(PAIRS, t->rounds / 2), meant / start_ms));
    t->rounds = (t->rounds + t->pairs - 1) / t->pairs * t->pairs; /* as many in each */
}

/* Starts this program and the other, lets them take turns for a pair's rounds, and ends them. The first pair
   stands for load, first run and memory, too. */
static int pair(const hone_bench *b, hone_bench_result *r, const hone_other *other, turns *t) {
    hone_worker w[2] = {{0}};
    hone_json *hello[2] = {NULL, NULL};
    double one_ms = 1;
    int rc = 0;
    for (int side = 0; side < 2 && !rc; side++) {
        hone_times warm = {0};
        double began = hone_clock_ms();
        t->theirs = side == BASE;
        rc = hone_worker_start(&r->row, side == BASE ? other : NULL, &w[side], &hello[side]);
        if (!rc) rc = warm_up(b, &w[side], &warm);
        if (!rc && side == NOW) {
            one_ms =
                warm.n ? hone_stats_median(warm.ms, warm.n) : hone_json_number(hello[NOW], "first_ms", 1);
            if (!t->rounds) decide(b, t, hone_clock_ms() - began, one_ms), r->warmup = warm.n;
        }
        free(warm.ms);
    }
    for (int k = 0; !rc && k < t->rounds / t->pairs; k++, t->round += !rc)
        for (int i = 0; i < 2 && !rc; i++) {
            int side = (t->round + i) % 2;
            t->theirs = side == BASE;
            rc = block(b, t, &w[side], side, one_ms);
        }
    if (!rc && !r->hello) {
        t->theirs = false;
        take_hello(b, r, hello[NOW]), hello[NOW] = NULL;
        rc = finish(b, &w[NOW], r);
    }
    for (int side = 0; side < 2; side++) {
        hone_json_free(hello[side]);
        if (w[side].pid) hone_worker_stop(&w[side]); /* one that died is stopped already */
    }
    return rc;
}

static int take_turns(const hone_bench *b, hone_bench_result *r, const hone_json *base,
                      const hone_other *other, hone_progress *bar, int k) {
    turns *t = hone_must_alloc(sizeof *t);
    int rc = 0;
    do {
        hone_progress_end(bar);
        if ((rc = pair(b, r, other, t))) break;
        hone_progress_show(bar, k * t->rounds + t->round, b->n * t->rounds, r->row.model);
    } while (t->round < t->rounds);
    if (rc && t->theirs) { /* the base cannot run any more; its times can still be read */
        snprintf(r->against.why, sizeof r->against.why, "the program that made it could not run it again");
        hone_json_free(r->hello), r->hello = NULL;
        rc = measure(b, r, bar, k);
        if (!rc) hone_base_judge(b, base, r, NULL, NULL, 0, 0);
    } else if (!rc) {
        r->times = t->times[NOW], t->times[NOW].ms = NULL;
        r->against.base_ms = hone_stats_median(t->times[BASE].ms, t->times[BASE].n);
        hone_base_judge(b, base, r, t->median[BASE], t->median[NOW], t->round, t->pairs);
    }
    free(t->times[NOW].ms), free(t->times[BASE].ms), free(t);
    return rc;
}

static int measure_row(const hone_bench *b, const hone_json *base, hone_progress *bar, int k) {
    hone_bench_result *r = &b->result[k];
    const hone_json *found = base ? hone_base_find(base, &r->row, b->n) : NULL;
    hone_other other = {0};
    int rc = 0;
    bool again =
        found && !b->stored && hone_base_program(found, &other, r->against.why, sizeof r->against.why);
    if (found && b->stored) snprintf(r->against.why, sizeof r->against.why, "as --stored asks");
    if (again) rc = take_turns(b, r, found, &other, bar, k);
    else if (!(rc = measure(b, r, bar, k)) && found) hone_base_judge(b, found, r, NULL, NULL, 0, 0);
    if (!rc) hone_bench_judge(b, r);
    if (!rc && base && !found)
        hone_bench_warn(r, "%s has no result for this row: nothing was compared", b->against);
    return rc;
}

/* ---- the rows ---- */

typedef struct {
    int at[LIST_MAX], n;
} numbers;

static int read_numbers(const char *option, const char *text, int low, int high, numbers *out) {
    for (const char *p = text; p;) {
        char *end;
        errno = 0;
        long v = strtol(p, &end, 10);
        if (end == p || (*end && *end != ',') || errno || v < low)
            return hone_args_wrong("%s %s: give whole numbers of at least %d, as in %s 1,4", option, text,
                                   low, option);
        if (v > high) return hone_args_wrong("%s %s: at most %d", option, text, high);
        if (out->n == LIST_MAX) return hone_args_wrong("%s %s: at most %d of them", option, text, LIST_MAX);
        out->at[out->n++] = (int)v;
        p = *end ? end + 1 : NULL;
    }
    return 0;
}

static int read_precisions(const char *text, const char **out, int *n) {
    for (const char *p = text; p;) {
        size_t length = strcspn(p, ",");
        hone_dtype kind = hone_precision(p, length);
        if (!kind)
            return hone_args_wrong(
                "--precision %.*s: Hone computes in f32, bf16 or f16, on a GPU in tf32 too; models whose "
                "tensors are f16, bf16 or 8-bit keep them so "
                "under --precision f32",
                (int)length, p);
        if (*n == LIST_MAX) return hone_args_wrong("--precision %s: at most %d of them", text, LIST_MAX);
        out[(*n)++] = hone_dtype_name(kind);
        p = p[length] ? p + length + 1 : NULL;
    }
    return 0;
}

static int read_machine(hone_bench *b, hone_json **report) {
    char *text = NULL;
    hone_status s = hone_machine_report(0, &text);
    if (s) return hone_args_failed(s);
    *report = hone_json_read(text);
    hone_text_release(text);
    const hone_json *cpu = hone_json_get(*report, "cpu");
    b->cpu = hone_json_text(cpu, "name", "");
    b->cores = (int)hone_json_number(cpu, "cores", 1);
    if (getloadavg(&b->load, 1) != 1) b->load = 0;
    const hone_json *caches = hone_json_get(cpu, "caches");
    for (const hone_json *c = caches ? caches->first : NULL; c; c = c->next)
        if (hone_json_number(c, "bytes", 0) > b->cache_bytes)
            b->cache_bytes = hone_json_number(c, "bytes", 0);
    return 0;
}

static int make_rows(hone_bench *b, const hone_bench_row *shared, const hone_words *models, const char *batch,
                     const char *threads, const char *precision) {
    numbers batches = {0}, teams = {0};
    const char *kinds[LIST_MAX];
    int n_kinds = 0, rc = 0;
    if (batch) rc = read_numbers("--batch", batch, 1, 1 << 24, &batches);
    else batches.n = 1; /* 0: as the model says */
    if (!rc && threads) rc = read_numbers("--threads", threads, 0, HONE_THREADS_MOST, &teams);
    else teams.n = 1;
    if (!rc) rc = read_precisions(precision ? precision : "f32", kinds, &n_kinds);
    for (int k = 0; k < models->n && !rc; k++)
        if (batch && !strncmp(models->at[k], "zoo:", 4) &&
            (strstr(models->at[k], "?batch=") || strstr(models->at[k], "&batch=")))
            rc = hone_args_wrong("--batch %s: '%s' says its batch already; leave one of the two away", batch,
                                 models->at[k]);
    if (rc) return rc;
    b->result = hone_must_alloc(sizeof *b->result * (size_t)models->n * (size_t)batches.n * (size_t)teams.n *
                                (size_t)n_kinds);
    for (int m = 0; m < models->n; m++)
        for (int x = 0; x < batches.n; x++)
            for (int t = 0; t < teams.n; t++)
                for (int p = 0; p < n_kinds; p++) {
                    hone_bench_result *r = &b->result[b->n++];
                    int asked = teams.at[t], use = asked == 0 || asked > b->cores ? b->cores : asked;
                    r->row = *shared;
                    r->row.model = models->at[m], r->row.batch = batches.at[x], r->row.threads = use,
                    r->row.precision = kinds[p];
                    if (asked > use)
                        hone_bench_warn(r, "%d threads were asked for and %d used: there are no more cores",
                                        asked, use);
                }
    return 0;
}

/* ---- all of it ---- */

/* The file appears whole or not at all. Tried before measuring, with nothing in it: to find out afterwards
   would be late. */
static int save(const hone_bench *b, bool trial) {
    hone_output o;
    int rc = hone_output_begin("--save", b->save, &o);
    if (rc) return rc;
    if (!trial) hone_bench_json(b, o.to);
    rc = hone_output_end(&o, !trial);
    if (!rc && !trial && !b->json) hone_print(stdout, "saved       %s\n", b->save);
    return rc;
}
/* What was measured from, and what it is compared with, are not written over; a result that is replaced by a
   newer one may be. */
static int may_save(const hone_bench *b, const hone_words *models, const hone_bench_row *row,
                    const char *wisdom) {
    int rc = hone_output_check("--save", b->save, models, &row->inputs);
    return rc || !wisdom ? rc : hone_output_check("--save", b->save, NULL, &(hone_words){&wisdom, 1});
}

static int bench(hone_bench *b, const hone_json *base) {
    hone_progress bar;
    int failed = 0, good = 0, slower = 0, compared = 0, rc = 0;
    hone_progress_begin(&bar, "starting");
    for (int k = 0; k < b->n; k++) { /* a row that fails has said why, and the others go on */
        b->result[k].failed = measure_row(b, base, &bar, k);
        if (b->result[k].failed > failed) failed = b->result[k].failed;
        good += !b->result[k].failed;
    }
    hone_progress_end(&bar);
    if (!good) return failed;
    if (b->json) hone_args_answered(), hone_bench_json(b, stdout);
    else hone_bench_tell(b);
    if (b->save && (rc = save(b, false))) return rc;
    for (int k = 0; k < b->n; k++)
        slower += b->result[k].against.verdict < 0, compared += b->result[k].against.there;
    if (failed) return failed;
    if (base && !compared)
        return hone_args_wrong("--against %s: it has no result for what was measured here", b->against);
    return slower ? SLOWER : 0;
}

int hone_cmd_bench(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "--worker")) return hone_worker_main(argc - 1, argv + 1);
    hone_bench b = {.warmup = -1, .seconds = 3};
    hone_bench_row row = {0};
    double seconds = 0;
    const char *batch = NULL, *threads = NULL, *precision = NULL, *wisdom = NULL;
    hone_words operands = {0};
    hone_json *machine = NULL, *base = NULL;
    hone_where where = {0};
    const hone_option options[] = {
        {"--batch", "N,N",
         "the first dim of the inputs, where it is free, or the batch of a zoo: model; one row for each",
         HONE_ARG_TEXT, &batch, 0},
        {"--threads", "N,N", "at most so many; one row for each (0: all cores)", HONE_ARG_TEXT, &threads, 0},
        {"--precision", "P,P",
         "what floats are computed in, f32, bf16 or f16, on cuda tf32; one row for each (f32)", HONE_ARG_TEXT,
         &precision, 0},
        {"--runs", "N", "so many runs that count (else: as many as fit the time, at least 10)", HONE_ARG_INT,
         &b.runs, 1},
        {"--seconds", "S", "time for the runs of a row (3); with --runs: what is reached first",
         HONE_ARG_NUMBER, &seconds, 0.001},
        {"--warmup", "N",
         "runs before those that count, after the first (else: a fifth of the time, at most half a second)",
         HONE_ARG_INT, &b.warmup, 0},
        {"--pause", "MS", "wait so long before each run, as requests do that come now and then (0)",
         HONE_ARG_NUMBER, &row.pause_ms, 0},
        {"--input", "[NAME=]FILE", "an input, as of hone run (else: random numbers)", HONE_ARG_LIST,
         &row.inputs, 0},
        {"--cast", NULL, "with --input: convert files of another type, where every number fits",
         HONE_ARG_FLAG, &row.cast, 0},
        {"--shape", "[NAME=]DIMS", "dims of a random or .bin input, as 1x3x224x224", HONE_ARG_LIST,
         &row.shapes, 0},
        {"--dim", "NAME=SIZE", "a free dim of the inputs, as in seq=128; others are guessed", HONE_ARG_LIST,
         &row.dims, 0},
        HONE_RANGES_OPTION(&row.data),
        {"--seed", "N", "of the random inputs (0)", HONE_ARG_INT, &row.seed, 0},
        {"--wisdom", "FILE",
         "choices that hone tune measured (else: $HONE_WISDOM, or where it writes by default; '' for none)",
         HONE_ARG_TEXT, &wisdom, 0},
        HONE_WHERE_OPTIONS(&where),
        {"--resident", NULL,
         "inputs are brought to the device once and outputs stay there: no copies from and to the host are "
         "timed",
         HONE_ARG_FLAG, &row.resident, 0},
        {"--save", "FILE", "write the result as JSON, for --against", HONE_ARG_TEXT, &b.save, 0},
        {"--against", "FILE",
         "compare with a saved result: faster, slower (exit code 3) or no significant difference",
         HONE_ARG_TEXT, &b.against, 0},
        {"--stored", NULL,
         "with --against: compare with the times in the file; else the program that made it runs again, in "
         "turn",
         HONE_ARG_FLAG, &b.stored, 0},
        {"--json", NULL, "print JSON", HONE_ARG_FLAG, &b.json, 0},
        {0},
    };
    const hone_usage usage = {"bench",
                              "MODEL...",
                              1,
                              -1,
                              "Measures how long a model takes, each row in a process of its own: latency, "
                              "throughput, load, memory, and the "
                              "share of what the machine could do.",
                              "hone bench model.onnx --threads 1\n"
                              "hone bench zoo:resnet50 zoo:mobilenet_v2 --batch 1,4,8 --threads 1,2\n"
                              "hone bench model.onnx --save base.json\n"
                              "hone bench model.onnx --against base.json",
                              options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    bool go = rc == HONE_ARGS_GO;
    if (go) {
        hone_where_export(&where); /* to every worker */
        b.device = where.device ? where.device : "cpu";
        b.elsewhere = where.device && strcmp(where.device, "cpu");
        b.seconds_said = seconds > 0;
        if (b.seconds_said) b.seconds = seconds;
        if (wisdom) setenv("HONE_WISDOM", wisdom, 1); /* of every worker */
        rc = wisdom && *wisdom && access(wisdom, R_OK)
                 ? hone_args_wrong("--wisdom %s: %s", wisdom, strerror(errno))
             : b.stored && !b.against ? hone_args_wrong("--stored is for --against FILE")
                                      : read_machine(&b, &machine);
        if (!rc) rc = make_rows(&b, &row, &operands, batch, threads, precision);
        if (!rc && b.against) rc = hone_base_read(b.against, &base);
        if (!rc && b.save) rc = may_save(&b, &operands, &row, wisdom);
        if (!rc && b.save) rc = save(&b, true);
        if (!rc) rc = bench(&b, base);
    }
    hone_where_free(&where);
    for (int k = 0; k < b.n; k++) free(b.result[k].times.ms), hone_json_free(b.result[k].hello);
    free(b.result);
    hone_json_free(machine), hone_json_free(base);
    hone_words_free(&row.inputs), hone_words_free(&row.shapes), hone_words_free(&row.dims),
        hone_words_free(&row.data), hone_words_free(&operands);
    return rc;
}
