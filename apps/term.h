/* SPDX-License-Identifier: Apache-2.0
   term: colours, a progress bar and numbers with units. Colours and the bar only where a person looks: a
   terminal that is not dumb, and NO_COLOR not set. */
#ifndef HONE_APPS_TERM_H
#define HONE_APPS_TERM_H
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum { HONE_PLAIN, HONE_BOLD, HONE_DIM, HONE_RED, HONE_GREEN } hone_colour;
const char *hone_paint(FILE *, hone_colour); /* the sequence that switches it on, or "" */
/* How wide a line may be: of a terminal, its width; else what $COLUMNS says; 0 where nothing limits it. */
int hone_columns(FILE *);
size_t hone_text_columns(const char *, size_t bytes); /* that a text takes: characters, not bytes */

/* printf for people: texts (%s) out of models and files are shown as hone_text_visible has them, so that none
   of them reaches the terminal as a command or breaks a line; what hone_paint gives stays. %d %i %u %c %x
   with l, ll, z and every float are there. */
void hone_print(FILE *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hone_printv(FILE *, const char *format, va_list);
void hone_print_lines(FILE *, const char *text); /* a text of many lines: only its line ends stay */

/* A bar on stderr, drawn from the second second on, so that what is quick shows none; a thread of its own
   draws it, so that one long step shows the seconds that it takes. One bar at a time. End it before this
   process is forked. */
typedef struct {
    bool on;
} hone_progress;
/* what is under way, until a step is done; copied */
void hone_progress_begin(hone_progress *, const char *what);
void hone_progress_show(hone_progress *, int done, int all, const char *what);
void hone_progress_end(hone_progress *); /* wipes it; a later hone_progress_show begins anew */
void hone_progress_silence(void);        /* none from now on */

double hone_clock_ms(void); /* counts up; from no particular moment */

/* Text for people; valid until the eighth next call. */
const char *hone_text_bytes(double bytes);  /* "38.1 KB": 1 KB is 1000 bytes */
const char *hone_text_binary(double bytes); /* "48 KiB": as caches are sold */
const char *hone_text_flops(double n);      /* "314 KFLOP" */
const char *hone_text_count(double n);      /* "1.24 M" */
const char *hone_text_ms(double ms);        /* "0.213 ms", "1.20 s" */
#endif
