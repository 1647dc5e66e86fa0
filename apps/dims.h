/* SPDX-License-Identifier: Apache-2.0
   dims: how large the free dims of a model are, by one rule for every command: what the user says (--dim
   batch=8, --shape, the shape of a file), and for the rest a guess, which is told. A guess is 1; where the
   model cannot be planned so, usual sizes are tried. */
#ifndef HONE_APPS_DIMS_H
#define HONE_APPS_DIMS_H
#include "args.h"
#include "hone/tools.h"
#include "json.h"

enum { HONE_DIM_NAME = 64 };
/* What dim d of an input is called: its symbol, or input.place where it has none. */
void hone_dim_name(const hone_port *, int d, char out[HONE_DIM_NAME]);

typedef struct hone_dims_known hone_dims_known;
/* The free dims of a model's inputs, as far as `words` ("batch=8") say. NULL: one line was said. Free it. */
hone_dims_known *hone_dims_read(const hone_model *, const hone_words *words);
/* An input has this shape, by its file or by --shape (`by` is how it is called in a message). 0, or the exit
   code: --dim says otherwise. */
int hone_dims_fix(hone_dims_known *, const hone_port *, const int64_t *dims, int rank, const char *by);
/* Guesses are sizes with which the model can be planned; 1 where none is found. Without this call they are
   1. */
void hone_dims_try(hone_dims_known *, const hone_model *);
int64_t hone_dims_size(const hone_dims_known *, const hone_port *, int d, bool *guessed);
/* "seq = 1, x = scalar"; "" where nothing is guessed */
void hone_dims_guesses(const hone_dims_known *, char *out, size_t room);
bool hone_dims_other(const hone_dims_known *); /* a guess is not 1 */
void hone_dims_free(hone_dims_known *);

typedef struct {
    hone_json *plan; /* what hone_model_plan says; NULL: it could not be made, and `why` says so */
    char why[512];
    char given[256];   /* "batch = 8"; "" where nothing was asked */
    char guessed[256]; /* "seq = 1"; "" where nothing was guessed */
    char *given_json;  /* the same as an object: {"batch": 8} */
    char *guessed_json;
    /* there is more to a run than the plan says: shapes that depend on computed numbers, bodies */
    bool partial;
    hone_status status;
} hone_planned;
/* 0, or the exit code of a mistake in `dims` (words as "batch=8"), which was told. A plan that cannot be made
   is no mistake: see `why`. */
int hone_plan_for(const hone_model *, const hone_words *dims, const hone_options *, hone_planned *out,
                  char **json /* the report as it came, or NULL: not wanted */);
void hone_planned_free(hone_planned *);
#endif
