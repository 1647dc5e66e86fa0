/* SPDX-License-Identifier: Apache-2.0
   status: the calling thread's last message. Not a log: one line (a model's problems: a line each), replaced
   by the next failure.

   Messages quote names out of hostile files, so what a terminal would obey is escaped (visible.h): whatever
   was put in, one line comes out. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/visible.h"

enum { LIMIT = 1024, LINES_LIMIT = 12 * LIMIT };
static _Thread_local char message[LINES_LIMIT];

/* Formats into a buffer of its own first: the arguments may point into the message. */
static void format_line(char out[LIMIT], const char *format, va_list args) {
    char raw[LIMIT];
    if (vsnprintf(raw, LIMIT, format, args) < 0) raw[0] = 0;
    hone_visible(out, LIMIT, raw, strlen(raw), false);
}

hone_status(hone_fail)(hone_status s, const char *format, ...) {
    char line[LIMIT];
    va_list args;
    va_start(args, format);
    format_line(line, format, args);
    va_end(args);
    memcpy(message, line, LIMIT);
    return s;
}

hone_status(hone_fail_at)(hone_status s, const char *format, ...) {
    char line[LIMIT];
    va_list args;
    va_start(args, format);
    format_line(line, format, args);
    va_end(args);
    size_t front = strlen(line), rest = strlen(message);
    if (front + rest >= LINES_LIMIT) rest = LINES_LIMIT - 1 - front;
    memmove(message + front, message, rest);
    memcpy(message, line, front);
    message[front + rest] = 0;
    return s;
}

hone_status hone_fail_lines(hone_status s, const char *text) {
    hone_visible(message, LINES_LIMIT, text, strlen(text), true);
    return s;
}

const char *hone_fail_text(void) { return message; }
const char *hone_error(void) { return message; }
