/* SPDX-License-Identifier: Apache-2.0
   args: options by table, help from the same table, and the one line that a mistake gets. */
#include "args.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "term.h"

static const char *command = ""; /* whose mistakes are told */

void *hone_must_alloc(size_t bytes) {
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p) {
        fprintf(stderr, "hone %s: no memory for %zu bytes\n", command, bytes);
        exit(1);
    }
    return p;
}

int hone_args_wrong(const char *format, ...) {
    va_list args;
    fflush(stdout);
    fprintf(stderr, "%shone %s:%s ", hone_paint(stderr, HONE_RED), command, hone_paint(stderr, HONE_PLAIN));
    va_start(args, format);
    hone_printv(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return 1;
}

int hone_args_stopped(hone_status s, const char *why) {
    fflush(stdout); /* a model's problems are a line each */
    fprintf(stderr, "%shone %s:%s ", hone_paint(stderr, HONE_RED), command, hone_paint(stderr, HONE_PLAIN));
    hone_print_lines(stderr, why);
    fputs(s == HONE_BUG ? ". This is a bug of Hone's, please report it with the model and the command\n" : "\n", stderr);
    return s == HONE_BUG ? 2 : 1;
}
int hone_args_failed(hone_status s) { return hone_args_stopped(s, hone_error()); }

const char *hone_args_after(const char *text, int *name_length) {
    const char *equals = strchr(text, '=');
    if (equals) *name_length = (int)(equals - text);
    return equals ? equals + 1 : NULL;
}

void hone_words_free(hone_words *w) {
    free(w->at);
    *w = (hone_words){0};
}

static void add_word(hone_words *w, const char *text) {
    const char **at = hone_must_alloc(sizeof *at * (size_t)(w->n + 1));
    if (w->n) memcpy(at, w->at, sizeof *at * (size_t)w->n);
    at[w->n++] = text;
    free(w->at);
    w->at = at;
}

/* Letters to insert, delete or change to make b of a. */
static int edits(const char *a, const char *b) {
    int row[64], n = (int)strlen(b);
    if (n >= 64) return INT_MAX;
    for (int j = 0; j <= n; j++) row[j] = j;
    for (int i = 1; *a; a++, i++) {
        int corner = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int change = corner + (*a != b[j - 1]), least = row[j - 1] < row[j] ? row[j - 1] + 1 : row[j] + 1;
            corner = row[j];
            row[j] = change < least ? change : least;
        }
    }
    return row[n];
}

const char *hone_args_nearest(const char *word, const char *const *names, int n) {
    const char *best = NULL;
    int least = 3; /* further away is another word */
    for (int k = 0; k < n; k++) {
        int d = edits(word, names[k]);
        if (d < least) least = d, best = names[k];
    }
    return best;
}

static void print_help(const hone_usage *u) {
    const char *bold = hone_paint(stdout, HONE_BOLD), *plain = hone_paint(stdout, HONE_PLAIN);
    int width = 6;
    printf("%s\n\n%susage%s  hone %s %s%s[options]\n\n%soptions%s\n", u->what, bold, plain, u->name, u->operands, *u->operands ? " " : "",
           bold, plain);
    for (const hone_option *o = u->options; o->name; o++) {
        int n = (int)strlen(o->name) + (o->value ? 1 + (int)strlen(o->value) : 0);
        if (n > width) width = n;
    }
    for (const hone_option *o = u->options; o->name; o++)
        printf("  %s %-*s  %s\n", o->name, width - (int)strlen(o->name) - 1, o->value ? o->value : "", o->help);
    printf("  %-*s  %s\n\n%sexample%s%s\n", width, "--help", "this text", bold, strchr(u->example, '\n') ? "s" : "", plain);
    for (const char *line = u->example; *line;) {
        const char *end = strchr(line, '\n');
        int n = end ? (int)(end - line) : (int)strlen(line);
        printf("  %.*s\n", n, line);
        line += n + (end != NULL);
    }
}

static bool set_number(const hone_option *o, const char *text) {
    char *end;
    errno = 0;
    double v = strtod(text, &end);
    if (end == text || *end || errno || !isfinite(v) || v < o->low) return false;
    if (o->kind == HONE_ARG_INT && (v != floor(v) || v > INT_MAX)) return false;
    if (o->kind == HONE_ARG_INT) *(int *)o->to = (int)v;
    else *(double *)o->to = v;
    return true;
}

static int set(const hone_option *o, const char *text) {
    switch (o->kind) {
    case HONE_ARG_FLAG: *(bool *)o->to = true; return HONE_ARGS_GO;
    case HONE_ARG_TEXT: *(const char **)o->to = text; return HONE_ARGS_GO;
    case HONE_ARG_LIST: add_word(o->to, text); return HONE_ARGS_GO;
    case HONE_ARG_INT:
    case HONE_ARG_NUMBER:
        if (set_number(o, text)) return HONE_ARGS_GO;
        return hone_args_wrong("%s needs a %s of at least %g, not '%s'", o->name, o->kind == HONE_ARG_INT ? "whole number" : "number",
                               o->low, text);
    }
    return HONE_ARGS_GO;
}

static int unknown(const hone_usage *u, const char *word, size_t length) {
    const char *names[64];
    char name[64];
    int n = 0;
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), word);
    names[n++] = "--help";
    for (const hone_option *o = u->options; o->name && n < 64; o++) names[n++] = o->name;
    const char *near = hone_args_nearest(name, names, n);
    if (near) return hone_args_wrong("unknown option '%s'; did you mean '%s'?", name, near);
    return hone_args_wrong("unknown option '%s'; 'hone %s --help' lists them", name, u->name);
}

int hone_args_read(const hone_usage *u, int argc, char **argv, hone_words *operands) {
    bool plain = false; /* after "--" all are operands */
    command = u->name;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (plain || word[0] != '-' || !word[1]) {
            add_word(operands, word);
            continue;
        }
        if (!strcmp(word, "--")) {
            plain = true;
            continue;
        }
        if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
            print_help(u);
            return 0;
        }
        size_t length = strcspn(word, "=");
        const hone_option *o = u->options;
        while (o->name && (strlen(o->name) != length || memcmp(o->name, word, length) != 0)) o++;
        if (!o->name) return unknown(u, word, length);
        const char *text = word[length] ? word + length + 1 : NULL;
        if (o->kind == HONE_ARG_FLAG && text) return hone_args_wrong("%s takes no value", o->name);
        if (o->kind != HONE_ARG_FLAG && !text && ++i < argc) text = argv[i];
        if (o->kind != HONE_ARG_FLAG && !text) return hone_args_wrong("%s needs a value: %s %s", o->name, o->name, o->value);
        int rc = set(o, text);
        if (rc != HONE_ARGS_GO) return rc;
    }
    if (operands->n < u->least) return hone_args_wrong("%s is missing: hone %s %s [options]", u->operands, u->name, u->operands);
    if (u->most >= 0 && operands->n > u->most)
        return hone_args_wrong("'%s' is one word too many: hone %s %s%s[options]", operands->at[u->most], u->name, u->operands,
                               *u->operands ? " " : "");
    return HONE_ARGS_GO;
}
