/* SPDX-License-Identifier: Apache-2.0
   wisdom: measured choices for one machine, as text. Parsing, printing and looking up are cpu/wisdom.c's;
   cpu/choices.c knows which choices there are, run/tune.c measures
   them. Kinds and knobs are the CPU's but for schedules, which devices of printed kernels have
   (printed_choice.c).

   A *problem* is what a step computes, by its numbers: two layers of equal numbers are one problem. A
   *choice* is the numbers that a tactic is free to choose for it. A line of the text is a problem, its
   choice, and how long that took:

        hone wisdom 1
        cpu Some CPU @ 2.1GHz
        level 700
        kernels 5f0c91aa0d3e22b7
        sum hone_gemm_f32__avx512 m 3136 n 64 k 576 … : vectors 4 rows 784 columns 64 depth 576 tile 0 threads
        2 : 81234 …
        end 12

   A text that is damaged, or of another CPU, level or list of kernels, is refused as a whole. A choice that
   does not fit its problem is never used: whoever asks gets nothing, and estimates. */
#ifndef HONE_DEVICE_WISDOM_H
#define HONE_DEVICE_WISDOM_H
#include "base/mem.h"

typedef enum {
    HONE_PROBLEM_SUM,
    HONE_PROBLEM_BYTES,
    HONE_PROBLEM_PLANE,
    HONE_PROBLEM_ATTENTION,
    HONE_PROBLEM_SCHEDULE,
    HONE_PROBLEM_PRODUCT, /* of a GPU's tensor cores: 1: by a vendor's library, 0: by our kernel */
    HONE_PROBLEM_KINDS
} hone_problem_kind;
enum { HONE_PROBLEM_NUMBERS = 12, HONE_CHOICE_KNOBS = 6, HONE_PROBLEM_NAME = 48, HONE_PROBLEM_WIDTHS = 4 };
/* Numbers by kind, in the order in which they are printed. Flags are 0 or 1. */
enum {
    HONE_SUM_M,
    HONE_SUM_N,
    HONE_SUM_K,
    HONE_SUM_BATCH,
    HONE_SUM_TAPS,
    HONE_SUM_PIECE,
    HONE_SUM_A /* packed ahead */,
    HONE_SUM_B,
    HONE_SUM_EACH,
    HONE_SUM_DIRECT,
    HONE_SUM_WINDOW,   /* by tiles is possible: taps a side, of a phase; */
    HONE_SUM_LINE = 16 /* and so much more where the window is along one way */
};
enum {
    HONE_PLANE_COUNT,
    HONE_PLANE_HEIGHT,
    HONE_PLANE_WIDTH,
    HONE_PLANE_DOWN,
    HONE_PLANE_ACROSS,
    HONE_PLANE_BYTES
};
enum { HONE_ATTEND_BATCH, HONE_ATTEND_M, HONE_ATTEND_N, HONE_ATTEND_DEPTH, HONE_ATTEND_WIDTH };
/* Knobs: a sum has them all, bytes have rows and columns (named as here), planes rows, attention rows and
   threads. */
enum {
    HONE_KNOB_VECTORS,
    HONE_KNOB_ROWS,
    HONE_KNOB_COLUMNS,
    HONE_KNOB_DEPTH,
    HONE_KNOB_TILE, /* 0: the sum itself; results a side */
    /* that rows and columns were measured for; with others work is cut as estimated, all else holds */
    HONE_KNOB_THREADS
};
enum { HONE_BYTES_ROWS, HONE_BYTES_COLUMNS };
/* Of printed kernels (loops/schedule.h's wishes; 0: by rule): 1 + kind, lanes of a reduction, places a
   thread, threads of a work-group at most, neighbouring places a thread. */
enum {
    HONE_SCHEDULE_KIND,
    HONE_SCHEDULE_LANES,
    HONE_SCHEDULE_UNROLL,
    HONE_SCHEDULE_THREADS,
    HONE_SCHEDULE_VECTOR
};
typedef struct {
    hone_problem_kind kind;
    char kernel[HONE_PROBLEM_NAME];
    int64_t number[HONE_PROBLEM_NUMBERS];
    /* what the kernel can do; follows from its name, so it is not compared. Panels of 1 … widths vectors;
       bytes: mr rows, nr columns */
    int vector, widths, rows[HONE_PROBLEM_WIDTHS], mr, nr;
    bool packs_a; /* rows are packed for the kernel */
} hone_problem;
typedef struct {
    int64_t knob[HONE_CHOICE_KNOBS];
} hone_choice;
typedef struct hone_decision { /* what a step follows: for the tuner and reports */
    hone_problem problem;
    hone_choice choice;
    bool wise; /* by wisdom; else estimated */
} hone_decision;

bool hone_problem_same(const hone_problem *, const hone_problem *);
bool hone_choice_same(const hone_problem *, const hone_choice *, const hone_choice *);
void hone_problem_name(hone_problem *, const char *kernel);
void hone_problem_print(const hone_problem *, hone_text *); /* without the kernel: "sum m 3136 n 64 …" */
void hone_choice_print(const hone_problem *, const hone_choice *, hone_text *);

/* ---- choices.c ----------------------------------------------------------------------------------------- */
/* Would the tactic be right with it, in memory that is in proportion? The only gate between a file and a
   kernel. */
bool hone_choice_fits(const hone_problem *, const hone_choice *);
/* Choices worth measuring, at most `most`; how many. All fit. */
int hone_choices(const hone_problem *, int threads, hone_choice *out, int most);
/* What a choice costs, in terms that are linear: time is about the sum of weight * feature. weight: what each
   is worth, in ns, on no machine in particular. */
enum { HONE_FEATURES = 14 };
void hone_choice_features(const hone_problem *, const hone_choice *, int threads, double *feature);
void hone_choice_weights(const hone_problem *, double *weight);

/* ---- wisdom.c ------------------------------------------------------------------------------------------ */
typedef struct {
    hone_problem problem; /* without what its kernel can do */
    hone_choice choice;
    int64_t ns;
} hone_wise;
typedef struct hone_wisdom {
    hone_vec(hone_wise) line;
    uint64_t id; /* the same for the same lines; 0 for none. Recipes are kept by it */
} hone_wisdom;
enum { HONE_WISDOM_BYTES = 8 << 20, HONE_WISDOM_LINES = 40000 }; /* the most that is read */
hone_wisdom *hone_wisdom_create(void);                           /* NULL: no memory */
void hone_wisdom_destroy(hone_wisdom *);                         /* NULL is fine */
/* BAD_INPUT: damaged, with the line; NOT_SUPPORTED: of another machine or other kernels. *out is then
   NULL. */
hone_status hone_wisdom_read(const char *text, size_t bytes, hone_wisdom **out) HONE_CHECKED;
void hone_wisdom_print(const hone_wisdom *, hone_text *);
/* The choice for a problem: the first line about it, if it fits; else NULL. wisdom may be NULL. */
const hone_choice *hone_wisdom_find(const hone_wisdom *, const hone_problem *);
/* a line more */
hone_status hone_wisdom_add(hone_wisdom *, const hone_problem *, const hone_choice *,
                            int64_t ns) HONE_CHECKED;
void hone_wisdom_remove(hone_wisdom *, const hone_problem *); /* every line about it */
uint64_t hone_wisdom_machine(void);                           /* of the CPU's name and level */
#endif
