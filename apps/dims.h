/* SPDX-License-Identifier: Apache-2.0
   dims: the shapes a model is planned for: what the user says (--dim batch=8), and for the rest a guess, which is told. */
#ifndef HONE_APPS_DIMS_H
#define HONE_APPS_DIMS_H
#include "args.h"
#include "hone/tools.h"
#include "json.h"

typedef struct {
    hone_json *plan; /* what hone_model_plan says; NULL: it could not be made, and `why` says so */
    char why[512];
    char given[256];   /* "batch = 8"; "" where nothing was asked */
    char guessed[256]; /* "seq = 1"; "" where nothing was guessed */
    bool partial;      /* there is more to a run than the plan says: shapes that depend on computed numbers, bodies */
    hone_status status;
} hone_planned;
/* 0, or the exit code of a mistake in `dims` (words as "batch=8"), which was told. A plan that cannot be made is no mistake: see `why`. */
int hone_plan_for(const hone_model *, const hone_words *dims, hone_planned *out,
                  char **json /* the report as it came, or NULL: not wanted */);
void hone_planned_free(hone_planned *);
#endif
