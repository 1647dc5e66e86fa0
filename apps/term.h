/* SPDX-License-Identifier: Apache-2.0
   term: colours, a progress bar and numbers with units. Colours and the bar only where a person looks (a terminal, and NO_COLOR not set). */
#ifndef HONE_APPS_TERM_H
#define HONE_APPS_TERM_H
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum { HONE_PLAIN, HONE_BOLD, HONE_DIM, HONE_RED, HONE_GREEN } hone_colour;
const char *hone_paint(FILE *, hone_colour); /* the sequence that switches it on, or "" */

/* printf for people: texts (%s) out of models and files are shown as hone_text_visible has them, so that none of them reaches the terminal as a
   command or breaks a line; what hone_paint gives stays. %d %i %u %c %x with l, ll, z and every float are there. */
void hone_print(FILE *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hone_printv(FILE *, const char *format, va_list);
void hone_print_lines(FILE *, const char *text); /* a text of many lines: only its line ends stay */

/* A bar on stderr, drawn from the second second on, so that what is quick shows none. */
typedef struct {
    double began, drawn;
    bool shown;
} hone_progress;
void hone_progress_begin(hone_progress *);
void hone_progress_show(hone_progress *, int done, int all, const char *what);
void hone_progress_end(hone_progress *); /* wipes it */

double hone_clock_ms(void); /* counts up; from no particular moment */

/* Text for people; valid until the eighth next call. */
const char *hone_text_bytes(double bytes);  /* "38.1 KB": 1 KB is 1000 bytes */
const char *hone_text_binary(double bytes); /* "48 KiB": as caches are sold */
const char *hone_text_flops(double n);      /* "314 KFLOP" */
const char *hone_text_count(double n);      /* "1.24 M" */
const char *hone_text_ms(double ms);        /* "0.213 ms", "1.20 s" */
#endif
