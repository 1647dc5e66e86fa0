/* SPDX-License-Identifier: Apache-2.0
   schedule_rows: stages that share outer indices (schedule_rows.c). */
#ifndef HONE_LOOPS_SCHEDULE_ROWS_H
#define HONE_LOOPS_SCHEDULE_ROWS_H
#include "loops/instance.h"

enum { HONE_ROWS_STAGES = 16 };
typedef struct {
    int n_stage, n_outer;
    /* of each stage: its domain's place of each outer index */
    int8_t place[HONE_ROWS_STAGES][HONE_MAX_RANK];
    int64_t most, terms; /* elements, or terms, that one outer place has at most; terms of its longest sum */
} hone_rows;
/* The longest group from `stage` on that is worth a kernel. alone(arg, k): stage k writes each element once
   and reads nothing that it writes. */
bool hone_rows_choose(const hone_instance *, int stage, const hone_param *,
                      bool (*alone)(const void *arg, int stage), const void *arg, int units, hone_rows *out);
bool hone_rows_legal(const hone_instance *, int stage, const hone_param *, const hone_rows *);
#endif
