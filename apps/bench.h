/* SPDX-License-Identifier: Apache-2.0
   bench: what the files of `hone bench` share. bench.c reads options and measures, bench_worker.c is a
   process that runs one model when told to, bench_against.c compares with an earlier result, bench_tell.c
   prints.

   Every row of a sweep runs in a process of its own: load time, first run and peak memory are then those of
   that row alone. The parent holds no model, and sends lines: "run N MS", "memory", "speed", "outputs
   FOLDER". Each is answered by a line of JSON; the first line comes unasked. Other programs speak the same
   lines in `hone compare` (compare.py). */
#ifndef HONE_APPS_BENCH_H
#define HONE_APPS_BENCH_H
#include <sys/types.h>

#include "args.h"
#include "json.h"
#include "stats.h"

typedef struct { /* one row: what is measured */
    const char *model;
    int batch;   /* 0: not asked for */
    int threads; /* 0: all cores */
    const char *precision;
    int seed;
    double pause_ms;                       /* before each run */
    bool cast;                             /* files of another type are converted */
    bool resident;                         /* inputs and outputs stay in the device's memory */
    hone_words inputs, shapes, dims, data; /* borrowed words */
} hone_bench_row;

typedef struct {
    double *ms; /* in the order they came */
    int n, room;
} hone_times;
void hone_times_add(hone_times *, double ms);

typedef struct {
    hone_bench_row row;
    /* the exit code of a row that could not be measured, which was said; then there is nothing below */
    int failed;
    double load_ms, first_ms, peak_bytes;
    int warmup; /* runs before those that count, the first one not among them */
    hone_times times;
    hone_stats stats;
    double trend;
    double flops, bytes; /* of a run; bytes that have to come from memory; NAN: not known */
    bool far;            /* more bytes than the largest cache holds */
    double peak_flops_per_s, peak_bytes_per_s;
    hone_json *hello; /* the worker's first line */
    struct {          /* --against */
        bool there;
        int verdict; /* as hone_stats_verdict */
        hone_ratio ratio;
        double base_ms; /* median */
        int rounds, pairs /* of processes; 0: not interleaved */;
        char why[512]; /* not interleaved: why not; else "" */
        char note[512];
    } against;
    char warning[8][256];
    int warnings;
} hone_bench_result;

typedef struct {        /* how it is measured, and what is done with it */
    int runs, warmup;   /* runs 0: by time; warmup -1: by time */
    const char *device; /* "cpu" */
    bool elsewhere;     /* on another device than the CPU */
    double seconds;
    bool seconds_said, json, stored;
    const char *save, *against;
    int cores;
    double load;        /* processes that wanted to run, in the minute before */
    double cache_bytes; /* the largest cache */
    const char *cpu;
    hone_bench_result *result;
    int n;
} hone_bench;

/* ---- the process that runs (bench_worker.c) ---- */
typedef struct {
    pid_t pid;
    FILE *to, *from;
} hone_worker;
typedef struct {         /* another program than this one */
    const char *program; /* NULL: this one */
    const char *folder, *level;
    const hone_json *words; /* an array of texts */
} hone_other;
/* Starts one and reads its first line: load_ms, first_ms, inputs, plan. 0, or the exit code; what was wrong
   was said by it, or here. */
int hone_worker_start(const hone_bench_row *, const hone_other *, hone_worker *, hone_json **hello);
/* NULL: it has died; the exit code is what hone_worker_stop gives. */
hone_json *hone_worker_ask(hone_worker *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* At least one run, at most `runs` (0: any number), not begun after `ms` (0: no limit). The times are added
   to `to` where it is not NULL. */
int hone_worker_run(hone_worker *, int runs, double ms, hone_times *to);
int hone_worker_stop(hone_worker *);
/* hone bench --worker …: the words of one row. */
int hone_worker_main(int argc, char **argv);
/* The zoo makes a network for a batch ("zoo:NAME?batch=8"); other models leave the first dim open. To be
   freed. */
char *hone_bench_model(const char *model, int batch);
/* A row as such words, as JSON. */
void hone_bench_words(FILE *, const hone_bench_row *);

/* ---- comparing (bench_against.c) ---- */
/* Reads the file. 0 or the exit code. */
int hone_base_read(const char *path, hone_json **out);
/* The result in it that a row is compared with; NULL: there is none. */
const hone_json *hone_base_find(const hone_json *base, const hone_bench_row *, int rows);
/* The program that made it, if that very file is still there; else `why` says what is the matter. */
bool hone_base_program(const hone_json *result, hone_other *out, char *why, size_t room);
/* Judges the rounds (pairs > 0), or, without, the stored times. */
void hone_base_judge(const hone_bench *, const hone_json *result, hone_bench_result *, const double *base,
                     const double *now, int rounds, int pairs);
/* This program: where it lies, and a number made from all its bytes. */
void hone_program_self(char *path, size_t room);
bool hone_program_mark(const char *path, char mark[20]);

/* ---- telling (bench_tell.c) ---- */
void hone_bench_warn(hone_bench_result *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* stats, trend and the warnings that follow from them */
void hone_bench_judge(const hone_bench *, hone_bench_result *);
void hone_bench_tell(const hone_bench *);
void hone_bench_json(const hone_bench *, FILE *);
#endif
