/* SPDX-License-Identifier: Apache-2.0
   args: what stands behind a command's name, read by a table of its options. --help, the man pages and the
   completions of shells are printed from the same table (pages.c), so a new command has them all by having
   its table. */
#ifndef HONE_APPS_ARGS_H
#define HONE_APPS_ARGS_H
#include <stdbool.h>
#include <stdio.h>

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
    HONE_ARG_LIST /* hone_words */,
    HONE_ARG_THREADS /* int, from `low` to as many as a run may have */,
    HONE_ARG_PORT /* int, of TCP; 0: any that is free, -1: none */
} hone_arg_kind;
enum { HONE_THREADS_MOST = 1024 }; /* more are a slip of the finger, whatever the machine */
typedef struct {
    const char *name; /* "--input"; its short form, where it has one, is the same in all commands (args.c) */
    /* "NAME=FILE": how --help calls it; NULL for a flag. FILE, DIR and a|b are completed */
    const char *value;
    /* one that begins "with --check: …" is a rule, too: without --check the option is refused */
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

/* Reads argv[1..]; every command knows -h, -q, -v and -V besides its table. HONE_ARGS_GO: go on, `operands`
   is filled (free it and every list with hone_words_free). Else the exit code: --help was shown, or one line
   said what was wrong. */
enum { HONE_ARGS_GO = -1 };
int hone_args_read(const hone_usage *, int argc, char **argv, hone_words *operands);
void hone_words_free(hone_words *);
bool hone_args_given(const char *name);      /* whether the option stood there; after hone_args_read */
bool hone_args_quiet(void);                  /* -q: results and errors alone */
char hone_args_letter(const char *name);     /* "--input": 'i'; 0 where there is no short form */
extern const hone_option hone_args_common[]; /* what every command has besides, up to a NULL name */
/* From now on hone_args_read reads nothing: the usage goes to `tell`, and the command ends with 0. */
void hone_args_describe(void (*tell)(const hone_usage *));
/* What turns the operand "-" of a command that wants a MODEL into the path of a file: NULL after a line that
   says why not. */
void hone_args_stdin(const char *(*spool)(void));
/* one line on stderr where -v asks for more */
void hone_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Under --json a command that fails says so on stdout, too: {"error": {"command", "status", "message"}}.
   hone_args_end prints it, unless the answer is there already: call hone_args_answered before the first byte
   of it. What goes wrong after that is told on stderr alone. */
void hone_args_answered(void);
int hone_args_end(int rc); /* returns rc; at the end of main */

/* "NAME=REST": the REST, and the length of NAME; NULL without a '='. */
const char *hone_args_after(const char *text, int *name_length);
/* one line on stderr; returns 1, the exit code of a user's mistake */
int hone_args_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* the same for what is no failure */
void hone_args_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
int hone_args_failed(hone_status);                   /* hone_error() on stderr; returns the exit code */
int hone_args_stopped(hone_status, const char *why); /* the same with another message */
/* under --json: the first line that was told; "" where there is none */
const char *hone_args_last(void);
/* zeroed memory, or the command ends with a line that says so */
void *hone_must_alloc(size_t bytes);
/* What another process of this command has told on stderr already: under --json it is this one's error. */
void hone_args_heard(const char *status, const char *message);
const char *hone_args_status(void); /* of hone_args_last */
/* How wide a text of help may be, and words of it in lines no longer than that, later ones behind `indent`
   blanks; the cursor is at column `at`. */
int hone_help_columns(FILE *);
void hone_help_put(FILE *, const char *text, int indent, int wide, int at);
/* The nearest of `names` to a mistyped word; NULL when none is near. */
const char *hone_args_nearest(const char *word, const char *const *names, int n);
#endif
