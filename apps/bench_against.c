/* SPDX-License-Identifier: Apache-2.0
   bench_against: an earlier result of `hone bench`, read from its file, and the verdict beside it. A result
   holds its times and what made them: the program, its words, its folder. Where that very program is still
   there it can run again, in turn with this one; what slows the machine then slows both. Where it is not,
   the stored times are all there is, and the difference includes that of two moments. */
#include <errno.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "hone/hone.h"

enum { FILE_MOST = 256 << 20, BLOCKS = 30, BLOCKS_MIN = 5 };

/* ---- programs ---- */

void hone_program_self(char *path, size_t room) {
    ssize_t n = readlink("/proc/self/exe", path, room - 1);
    path[n > 0 ? n : 0] = 0;
}

bool hone_program_mark(const char *path, char mark[20]) {
    unsigned char bytes[1 << 14];
    /* FNV-1a: not against forgers, but no build gives another's by chance */
    uint64_t h = 0xcbf29ce484222325u;
    FILE *f = fopen(path, "rbe");
    if (!f) return false;
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, f)) > 0;)
        for (size_t k = 0; k < n; k++) h = (h ^ bytes[k]) * 0x100000001b3u;
    bool good = !ferror(f);
    fclose(f);
    snprintf(mark, 20, "%016llx", (unsigned long long)h);
    return good;
}

bool hone_base_program(const hone_json *result, hone_other *out, char *why, size_t room) {
    const hone_json *by = hone_json_get(result, "made_by"), *words = hone_json_get(by, "words");
    const char *program = hone_json_text(by, "hone", ""), *build = hone_json_text(by, "build", ""),
               *folder = hone_json_text(by, "folder", "");
    struct stat st;
    char mark[20];
    bool texts = words && words->type == HONE_JSON_ARRAY && words->n > 0;
    for (const hone_json *w = texts ? words->first : NULL; w; w = w->next) texts &= w->type == HONE_JSON_TEXT;
    if (*program != '/' || !*build || *folder != '/' || !texts)
        snprintf(why, room, "it does not say which program made it, and how");
    else if (stat(program, &st) || !S_ISREG(st.st_mode))
        snprintf(why, room, "the program that made it, %.300s, is gone", program);
    else if (!hone_program_mark(program, mark) || strcmp(mark, build) != 0)
        snprintf(why, room, "%.300s is another build by now; save with a copy of it to compare builds",
                 program);
    else if (access(program, X_OK)) snprintf(why, room, "%.300s may not be run", program);
    else {
        *out = (hone_other){program, folder, hone_json_text(by, "level", ""), words};
        return true;
    }
    return false;
}

/* ---- the file ---- */

static char *read_text(const char *path) {
    char *text = NULL;
    FILE *f = fopen(path, "rbe");
    struct stat st;
    if (!f || fstat(fileno(f), &st) || !S_ISREG(st.st_mode) || st.st_size > FILE_MOST) {
        hone_args_wrong("--against %s: %s", path,
                        f ? "no file that 'hone bench --save' wrote" : strerror(errno));
    } else {
        text = hone_must_alloc((size_t)st.st_size + 1);
        text[fread(text, 1, (size_t)st.st_size, f)] = 0;
    }
    if (f) fclose(f);
    return text;
}

static bool failed(const hone_json *r) { return hone_json_get(r, "failed") != NULL; }
static bool is_result(const hone_json *r) {
    const hone_json *times = hone_json_get(r, "samples_ms");
    if (failed(r)) return true;
    if (!hone_json_text(r, "model", NULL) || !times || times->type != HONE_JSON_ARRAY || !times->n)
        return false;
    for (const hone_json *t = times->first; t; t = t->next)
        if (t->type != HONE_JSON_NUMBER || !(t->number > 0) || !isfinite(t->number)) return false;
    return true;
}

/* One result is the document itself; of a sweep they are a list in it. */
static const hone_json *first_result(const hone_json *base, int *n) {
    const hone_json *list = hone_json_get(base, "results");
    *n = list ? list->n : 1;
    return list ? list->first : base;
}

int hone_base_read(const char *path, hone_json **out) {
    char *text = read_text(path);
    if (!text) return 1;
    *out = hone_json_read(text);
    free(text);
    int n;
    const hone_json *r = first_result(*out, &n);
    bool good = *out && n > 0;
    for (; good && r; r = r == *out ? NULL : r->next) good = is_result(r);
    if (good) return 0;
    hone_json_free(*out), *out = NULL;
    return hone_args_wrong("--against %s: not a result of 'hone bench': write one with --save", path);
}

static bool same_batch(const hone_json *r, const hone_bench_row *row) {
    return (int)hone_json_number(r, "batch", 0) == row->batch;
}

const hone_json *hone_base_find(const hone_json *base, const hone_bench_row *row, int rows) {
    int n;
    const hone_json *r = first_result(base, &n);
    if (n == 1 && rows == 1) return failed(r) ? NULL : r; /* two things that differ on purpose */
    for (int k = 0; k < n; k++, r = r->next)
        if (!failed(r) && !strcmp(hone_json_text(r, "model", ""), row->model) && same_batch(r, row) &&
            (int)hone_json_number(r, "threads", 0) == row->threads &&
            !strcmp(hone_json_text(r, "precision", ""), row->precision))
            return r;
    return NULL;
}

/* ---- the verdict ---- */

static void note(hone_bench_result *r, const char *what, const char *base) {
    size_t n = strlen(r->against.note);
    snprintf(r->against.note + n, sizeof r->against.note - n, "%s%s %.120s", n ? ", " : "", what, base);
}

/* What is not the same there: it may be what is being compared, or a mistake. */
static void note_differences(const hone_bench *b, const hone_json *base, hone_bench_result *r) {
    const char *model = hone_json_text(base, "model", ""), *cpu = hone_json_text(base, "cpu", ""),
               *precision = hone_json_text(base, "precision", "");
    char number[32];
    if (strcmp(model, r->row.model) != 0) note(r, "model", model);
    if (!same_batch(base, &r->row)) {
        snprintf(number, sizeof number, "%d", (int)hone_json_number(base, "batch", 0));
        note(r, "batch", strcmp(number, "0") != 0 ? number : "as the model says");
    }
    snprintf(number, sizeof number, "%d", (int)hone_json_number(base, "threads", 0));
    if ((int)hone_json_number(base, "threads", 0) != r->row.threads) note(r, "threads", number);
    if (strcmp(precision, r->row.precision) != 0) note(r, "precision", precision);
    snprintf(number, sizeof number, "%g ms", hone_json_number(base, "pause_ms", 0));
    if (hone_json_number(base, "pause_ms", 0) != r->row.pause_ms) note(r, "pause", number);
    const char *level = getenv("HONE_CPU"),
               *was = hone_json_text(hone_json_get(base, "made_by"), "level", "");
    if (strcmp(was, level ? level : "") != 0) note(r, "HONE_CPU", *was ? was : "not set");
    if (strcmp(cpu, b->cpu) != 0) note(r, "another machine,", cpu);
}

static void judge_stored(const hone_json *base, hone_bench_result *r) {
    const hone_json *list = hone_json_get(base, "samples_ms");
    hone_times times = {0};
    double was[BLOCKS], now[BLOCKS];
    for (const hone_json *t = list->first; t; t = t->next) hone_times_add(&times, t->number);
    int n_was = hone_stats_blocks(times.ms, times.n, BLOCKS, was),
        n_now = hone_stats_blocks(r->times.ms, r->times.n, BLOCKS, now);
    r->against.base_ms = hone_stats_median(times.ms, times.n);
    r->against.rounds = n_was < n_now ? n_was : n_now;
    hone_stats_apart(was, n_was, now, n_now, &r->against.ratio);
    free(times.ms);
}

void hone_base_judge(const hone_bench *b, const hone_json *result, hone_bench_result *r, const double *base,
                     const double *now, int rounds, int pairs) {
    r->against.there = true;
    r->against.pairs = pairs;
    r->against.rounds = rounds;
    note_differences(b, result, r);
    if (pairs) hone_stats_rounds(base, now, rounds, pairs, &r->against.ratio);
    else judge_stored(result, r);
    r->against.verdict = r->against.rounds < BLOCKS_MIN ? 0 : hone_stats_verdict(&r->against.ratio);
    if (r->against.rounds < BLOCKS_MIN)
        hone_bench_warn(r, "too few runs to compare: at least %d on each side", BLOCKS_MIN);
}
