/* SPDX-License-Identifier: Apache-2.0
   args: what stands behind a command's name, read by a table of its options. --help is printed from the same table. */
#ifndef HONE_APPS_ARGS_H
#define HONE_APPS_ARGS_H
#include <stdbool.h>

#include "hone/hone.h"

typedef struct {
    const char **at;
    int n;
} hone_words;
typedef enum {
    HONE_ARG_FLAG /* bool */,
    HONE_ARG_INT /* int */,
    HONE_ARG_NUMBER /* double */,
    HONE_ARG_TEXT /* const char * */,
    HONE_ARG_LIST /* hone_words */
} hone_arg_kind;
typedef struct {
    const char *name;  /* "--input" */
    const char *value; /* "NAME=FILE": how --help calls it; NULL for a flag */
    const char *help;
    hone_arg_kind kind;
    void *to;   /* what it sets, of the kind's type; lists grow, all else may stand once */
    double low; /* INT, NUMBER: the smallest that is allowed */
} hone_option;
typedef struct {
    const char *name, *operands; /* "run", "MODEL" */
    int least, most;             /* operands; most -1: any number */
    const char *what;            /* one sentence */
    const char *example;         /* lines, each one a command */
    const hone_option *options;  /* up to a NULL name */
} hone_usage;

/* Reads argv[1..]. HONE_ARGS_GO: go on, `operands` is filled (free it and every list with hone_words_free). Else the exit code: --help was shown, or one line said
   what was wrong. */
enum { HONE_ARGS_GO = -1 };
int hone_args_read(const hone_usage *, int argc, char **argv, hone_words *operands);
void hone_words_free(hone_words *);

/* "NAME=REST": the REST, and the length of NAME; NULL without a '='. */
const char *hone_args_after(const char *text, int *name_length);
int hone_args_wrong(const char *format, ...)
    __attribute__((format(printf, 1, 2)));           /* one line on stderr; returns 1, the exit code of a user's mistake */
int hone_args_failed(hone_status);                   /* hone_error() on stderr; returns the exit code */
int hone_args_stopped(hone_status, const char *why); /* the same with another message */
void *hone_must_alloc(size_t bytes);                 /* zeroed memory, or the command ends with a line that says so */
/* The nearest of `names` to a mistyped word; NULL when none is near. */
const char *hone_args_nearest(const char *word, const char *const *names, int n);
#endif
