/* SPDX-License-Identifier: Apache-2.0
   child: a process that is asked by lines and answers by lines. No wait is without an end: a child that
   hangs, dies or says too much is killed, and `why` says which it was. It knows nothing of what the lines
   mean. */
#ifndef HONE_APPS_CHILD_H
#define HONE_APPS_CHILD_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct {
    pid_t pid;             /* 0: there is none, or no longer */
    int line;              /* a socket: its standard input and output */
    char log[1024];        /* the file that its standard error goes to */
    char *text;            /* what it said: the last answer, then what nobody read yet */
    size_t n, room, taken; /* bytes: in all, there is room for, of the last answer */
    char why[512];         /* after a failure: what happened, in one line */
    int code;              /* and, where it ended by itself, its exit code; else -1 */
} hone_child;

/* Starts argv, whose standard error goes to the file `log`. `instead`, where it is given, is called in the
   new process if argv[0] cannot be executed. False: `why`. */
bool hone_child_start(hone_child *, const char *const *argv, const char *log, int (*instead)(int, char **));
/* Sends a line (NULL: none, something is due anyway) and waits for the answer: a line without its end, valid
   until the next call. NULL: `why`, and the child is gone. An answer "cannot WHY" is such a failure. */
const char *hone_child_ask(hone_child *, const char *line, double seconds);
/* the answer is none: ends it, `why` quotes what it said */
void hone_child_refuse(hone_child *, const char *answer);
/* A process that waits for its turn is stopped, so that threads which spin take nothing from the others. */
void hone_child_stop(hone_child *);
void hone_child_go(hone_child *);
void hone_child_end(hone_child *); /* asks nothing: kills it and what it started. Fine for one that is gone */

/* From here on an interrupt (Ctrl-C) ends waits and not the program; hone_child_interrupted says that there
   was one. */
void hone_child_catch(void);
bool hone_child_interrupted(void);
#endif
