/* SPDX-License-Identifier: Apache-2.0
   compare: what the parts of `hone compare` share. A *runtime* is a program that runs models, Hone the first
   of them; an *entry* is one runtime on one model; a *contest* is all entries on that model. Found, run,
   judged and told, in this order, by one file each. Hone's own process is the worker of `hone bench`, and the
   others speak its lines (bench.h, compare.py). */
#ifndef HONE_APPS_COMPARE_H
#define HONE_APPS_COMPARE_H
#include <stdbool.h>
#include <stdio.h>

#include "bench.h"
#include "where.h"

enum { HONE_RUNTIMES = 7, HONE_STARTS_MOST = 99 };
typedef struct {
    const char *name, *label; /* "ort", "ONNX Runtime" */
    bool wanted;
    const char *python; /* that has it; NULL: none, and for Hone */
    char version[48];
    char why[300]; /* not found: why not */
} hone_runtime;

typedef struct {
    const hone_runtime *runtime;
    char why[512]; /* "": it ran; else why it did not */
    int starts;    /* of processes, each with its load and its first run */
    double load[HONE_STARTS_MOST], first[HONE_STARTS_MOST];
    double load_ms, first_ms; /* their medians */
    /* resident memory before the load, with what was imported; the most after it */
    double before_bytes, peak_bytes;
    hone_times times; /* of all runs that count */
    double *round;    /* their median in each round; NAN: it took no part in that one */
    double median_ms; /* of the rounds */
    hone_stats stats; /* of the runs */
    hone_value **out;
    int n_out;
    bool right; /* its answer agrees with the reference */
    /* from the reference: the largest difference; that over the output's largest magnitude */
    double max_abs, max_rel;
    hone_ratio slower; /* its time over Hone's, round by round: above 1, Hone is faster */
} hone_entry;

typedef struct {
    const char *name; /* as the user wrote it */
    char why[512];    /* "": there was a contest; else why none of them could run */
    char *inputs;     /* lines: name, type, where from */
    int n_in, n_out;
    char **output; /* names */
    hone_entry entry[HONE_RUNTIMES];
    int rounds;
    /* whose answer counts, of how many agree with it; of how many there are. -1: there is none */
    int reference, agree, answers;
    bool majority; /* more than half agree */
    int best;      /* the fastest other runtime with a right answer; -1: there is none */
} hone_contest;

typedef struct {
    int threads, runs, starts, batch, seed; /* runs 0: as many as fit into `seconds` */
    double seconds, limit, tolerance;
    /* "f32"; bf16 or f16: ONNX Runtime stays f32, and is what all are measured against */
    const char *precision;
    hone_words inputs, shapes, dims;
    hone_where where; /* of Hone; the others have the CPU */
} hone_contest_wish;

/* The table of runtimes. Hone is the first, and always wanted. */
void hone_runtimes_list(hone_runtime runtime[HONE_RUNTIMES]);
/* --with ort,openvino: which are wanted. 0, or the exit code. */
int hone_runtimes_choose(hone_runtime *, const char *with);
/* Looks for those that are wanted in each of these Pythons. `script`: compare.py; `folder`: for files. */
void hone_runtimes_find(hone_runtime *, const hone_words *pythons, const char *script, const char *folder,
                        double limit);

/* One contest. `model`: a path, or "zoo:…"; files go to `folder`, which is there and empty. Failures are in
   contest and entries. */
void hone_contest_run(hone_contest *, const char *model, const hone_runtime *, const hone_contest_wish *,
                      const char *script, const char *folder);
/* answers against each other; ratios; the best */
void hone_contest_judge(hone_contest *, const hone_contest_wish *);
void hone_contest_free(hone_contest *);

typedef struct { /* all that is told */
    const hone_runtime *runtime;
    const hone_contest *contest;
    int n;
    const hone_contest_wish *wish;
    const char *machine; /* the CPU's name */
} hone_comparison;
void hone_compare_tell(const hone_comparison *);     /* text: one model */
void hone_compare_table(const hone_comparison *);    /* text: a row a model */
void hone_compare_markdown(const hone_comparison *); /* the same and more, as docs show it */
void hone_compare_json(FILE *, const hone_comparison *);
int hone_compare_page(const hone_comparison *, const char *file);
/* How much faster Hone is than the best of the others, over all models that have both: the geometric mean,
   and of how many; 0: none. */
double hone_compare_mean(const hone_comparison *, int *n);
#endif
