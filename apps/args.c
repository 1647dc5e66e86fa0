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

#include "hone/tools.h"
#include "json.h"
#include "term.h"

static const char *command = ""; /* whose mistakes are told */
static void (*describe)(const hone_usage *);
static const char *(*spool)(void);
static const hone_usage *usage; /* the one that is read */
static bool *given;             /* an option of it a place */
static bool quiet, verbose, json, answered, version;

const hone_option hone_args_common[] = {
    {"--quiet", NULL, "results and errors alone: no progress, no remarks", HONE_ARG_FLAG, &quiet, 0},
    {"--verbose", NULL, "more, on stderr: what is done and how long it takes", HONE_ARG_FLAG, &verbose, 0},
    {"--version", NULL, "the version of Hone", HONE_ARG_FLAG, &version, 0},
    {0}};
/* A letter means one thing in every command that has the option. */
static const struct {
    char letter;
    const char *name;
} letters[] = {{'i', "--input"},  {'s', "--shape"}, {'d', "--dim"},       {'t', "--threads"},
               {'n', "--runs"},   {'k', "--top"},   {'p', "--precision"}, {'j', "--json"},
               {'h', "--help"},   {'q', "--quiet"}, {'v', "--verbose"},   {'V', "--version"},
               {'D', "--device"}, {'b', "--batch"}};

char hone_args_letter(const char *name) {
    for (size_t k = 0; k < sizeof letters / sizeof *letters; k++)
        if (!strcmp(letters[k].name, name)) return letters[k].letter;
    return 0;
}
bool hone_args_quiet(void) { return quiet; }
void hone_args_stdin(const char *(*take)(void)) { spool = take; }
void hone_args_describe(void (*tell)(const hone_usage *)) { describe = tell; }

/* ---- mistakes ---- */

static struct {
    const char *status;
    char *message; /* the first that was told */
} error;

static void remember(const char *status, const char *message) {
    const size_t bytes = strlen(message) + 1;
    if (!json || error.message || !(error.message = malloc(bytes))) return;
    memcpy(error.message, message, bytes);
    error.status = status;
}
const char *hone_args_last(void) { return error.message ? error.message : ""; }
const char *hone_args_status(void) { return error.status ? error.status : "BUG"; }
static const char *const status_names[] = {[HONE_OK] = "OK",
                                           [HONE_BAD_INPUT] = "BAD_INPUT",
                                           [HONE_NOT_SUPPORTED] = "NOT_SUPPORTED",
                                           [HONE_NO_MEMORY] = "NO_MEMORY",
                                           [HONE_IO] = "IO",
                                           [HONE_BUG] = "BUG"};
enum { STATUSES = sizeof status_names / sizeof *status_names };
void hone_args_heard(const char *status, const char *message) {
    int k = 0;
    while (k < STATUSES && strcmp(status_names[k], status) != 0) k++;
    if (*message) remember(k < STATUSES ? status_names[k] : "BUG", message);
}
void hone_args_answered(void) { answered = true; }
int hone_args_end(int rc) {
    if (rc && json && !answered) {
        const char *message = error.message ? error.message : "it failed";
        printf("{\"error\": {\"command\": \"%s\", \"status\": \"%s\", \"message\": ", command,
               error.status ? error.status : "BUG");
        hone_json_put_text(stdout, message, strlen(message));
        printf("}}\n");
        fflush(stdout);
    }
    free(error.message);
    free(given);
    error.message = NULL, given = NULL;
    return rc;
}

void *hone_must_alloc(size_t bytes) {
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p) {
        char text[64];
        snprintf(text, sizeof text, "no memory for %zu bytes", bytes);
        fprintf(stderr, "hone %s: %s\n", command, text);
        remember("NO_MEMORY", text);
        exit(hone_args_end(1));
    }
    return p;
}

static void begin_line(hone_colour c) {
    fflush(stdout);
    fprintf(stderr, "%shone%s%s:%s ", hone_paint(stderr, c), *command ? " " : "", command,
            hone_paint(stderr, HONE_PLAIN));
}
int hone_args_wrong(const char *format, ...) {
    va_list args;
    char *text = NULL;
    size_t bytes = 0;
    begin_line(HONE_RED);
    va_start(args, format);
    hone_printv(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    /* the same words for the object */
    FILE *to = json && !error.message ? open_memstream(&text, &bytes) : NULL;
    if (to) {
        va_start(args, format);
        hone_printv(to, format, args);
        va_end(args);
        if (!fclose(to)) remember("BAD_INPUT", text);
        free(text);
    }
    return 1;
}
void hone_args_warn(const char *format, ...) {
    va_list args;
    begin_line(HONE_BOLD);
    va_start(args, format);
    hone_printv(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}
void hone_note(const char *format, ...) {
    va_list args;
    if (!verbose || quiet) return;
    begin_line(HONE_DIM);
    va_start(args, format);
    hone_printv(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

int hone_args_stopped(hone_status s, const char *why) {
    begin_line(HONE_RED);
    hone_print_lines(stderr, why); /* a model's problems are a line each */
    fputs(s == HONE_BUG ? ". This is a bug of Hone's, please report it with the model and the command\n"
                        : "\n",
          stderr);
    remember((size_t)s < STATUSES ? status_names[s] : "BUG", why);
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

const char *hone_args_nearest(const char *word, const char *const *names, int n) {
    return hone_nearest(word, strlen(word), names, n);
}

/* ---- help ---- */

/* By its whole name or by its letter; NULL: there is none. */
static const hone_option *find(const hone_usage *u, const char *name, size_t length, char letter) {
    const hone_option *const parts[] = {u->options, hone_args_common};
    for (size_t k = 0; k < 2; k++)
        for (const hone_option *o = parts[k]; o->name; o++)
            if (letter ? (o->name[1] == letter && !o->name[2]) || hone_args_letter(o->name) == letter
                       : strlen(o->name) == length && !memcmp(o->name, name, length))
                return o;
    return NULL;
}
enum { HELP_WIDE = 100, HELP_NARROW = 40, NAMES_WIDE = 34 };

int hone_help_columns(FILE *to) {
    const int wide = hone_columns(to);
    return wide <= 0 || wide > HELP_WIDE ? HELP_WIDE : wide < HELP_NARROW ? HELP_NARROW : wide;
}
/* Ends the last line. */
void hone_help_put(FILE *to, const char *text, int indent, int wide, int at) {
    for (const char *p = text; *p;) {
        const size_t n = strcspn(p, " "), seen = hone_text_columns(p, n);
        if (at > indent && at + 1 + (int)seen > wide) fprintf(to, "\n%*s", indent, ""), at = indent;
        else if (p > text) fputc(' ', to), at++;
        fwrite(p, 1, n, to);
        at += (int)seen, p += n + (p[n] == ' ');
    }
    fputc('\n', to);
}
static int names_of(const hone_option *o, char *out, size_t room) {
    const char letter = o->name[1] == '-' ? hone_args_letter(o->name) : 0;
    char head[8] = "";
    if (letter) snprintf(head, sizeof head, "-%c, ", letter);
    snprintf(out, room, "%s%s%s%s", o->name[1] == '-' ? (letter ? head : "    ") : "", o->name,
             o->value ? " " : "", o->value ? o->value : "");
    return (int)hone_text_columns(out, strlen(out));
}
static void print_options(const hone_usage *u, const hone_option *options, int width, int wide) {
    char names[128];
    for (const hone_option *o = options; o->name; o++) {
        if (options != u->options && o->to && find(u, o->name, strlen(o->name), 0) != o)
            continue; /* the command's own stands in its place */
        const int n = names_of(o, names, sizeof names);
        printf("  %s", names);
        if (n > width) printf("\n%*s", width + 4, "");
        else printf("%*s", width - n + 2, "");
        hone_help_put(stdout, o->help, width + 4, wide, width + 4);
    }
}
static void print_help(const hone_usage *u) {
    static const hone_option help[] = {{"--help", NULL, "this text", HONE_ARG_FLAG, NULL, 0}, {0}};
    const hone_option *const parts[] = {u->options, help, hone_args_common};
    const char *bold = hone_paint(stdout, HONE_BOLD), *plain = hone_paint(stdout, HONE_PLAIN);
    int width = 6;
    const int wide = hone_help_columns(stdout);
    char names[128];
    hone_help_put(stdout, u->what, 0, wide, 0);
    printf("\n%susage%s  hone %s %s%s[options]\n\n%soptions%s\n", bold, plain, u->name, u->operands,
           *u->operands ? " " : "", bold, plain);
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        for (const hone_option *o = parts[k]; o->name; o++) {
            const int n = names_of(o, names, sizeof names);
            if (n > width && n <= NAMES_WIDE) width = n;
        }
    if (wide < 2 * width) width = wide / 3;
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) print_options(u, parts[k], width, wide);
    printf("\n%sexample%s%s\n", bold, strchr(u->example, '\n') ? "s" : "", plain);
    for (const char *line = u->example; *line;) {
        const char *end = strchr(line, '\n');
        int n = end ? (int)(end - line) : (int)strlen(line);
        printf("  %.*s\n", n, line);
        line += n + (end != NULL);
    }
}

/* ---- reading ---- */

enum { PORT_MOST = 65535 };
static bool set_number(const hone_option *o, const char *text) {
    char *end;
    errno = 0;
    double v = strtod(text, &end);
    if (end == text || *end || errno || !isfinite(v) || v < o->low) return false;
    if (o->kind != HONE_ARG_NUMBER && (v != floor(v) || v > INT_MAX)) return false;
    if (o->kind == HONE_ARG_THREADS && v > HONE_THREADS_MOST) return false;
    if (o->kind == HONE_ARG_PORT && v > PORT_MOST) return false;
    if (o->kind == HONE_ARG_NUMBER) *(double *)o->to = v;
    else *(int *)o->to = (int)v;
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
        if (o->kind == HONE_ARG_INT && strtod(text, NULL) > INT_MAX)
            return hone_args_wrong("%s needs a whole number from %g to %d, not '%s'", o->name, o->low,
                                   INT_MAX, text);
        return hone_args_wrong("%s needs a %s of at least %g, not '%s'", o->name,
                               o->kind == HONE_ARG_INT ? "whole number" : "number", o->low, text);
    case HONE_ARG_PORT:
        if (set_number(o, text)) return HONE_ARGS_GO;
        return hone_args_wrong("%s needs a port: a number from 0 to %d, or -1 for none, not '%s'", o->name,
                               PORT_MOST, text);
    case HONE_ARG_THREADS:
        if (set_number(o, text)) return HONE_ARGS_GO;
        return hone_args_wrong("%s needs a whole number from %g to %d, not '%s'", o->name, o->low,
                               HONE_THREADS_MOST, text);
    }
    return HONE_ARGS_GO;
}

static int unknown(const hone_usage *u, const char *word, size_t length) {
    enum { MOST = 96 };
    const char *names[MOST];
    char name[64];
    int n = 0;
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), word);
    names[n++] = "--help";
    for (const hone_option *o = u->options; o->name && n < MOST; o++) names[n++] = o->name;
    for (const hone_option *o = hone_args_common; o->name && n < MOST; o++) names[n++] = o->name;
    const char *near = word[1] == '-' ? hone_args_nearest(name, names, n) : NULL;
    if (near) return hone_args_wrong("unknown option '%s'; did you mean '%s'?", name, near);
    return hone_args_wrong("unknown option '%s'; 'hone %s --help' lists them", name, u->name);
}
static bool is_own(const hone_usage *u, const hone_option *o) {
    const hone_option *at = u->options;
    while (at->name && at != o) at++;
    return at->name != NULL;
}
/* One option, whose value is `text` or else the next word. */
static int take(const hone_usage *u, const hone_option *o, const char *text, int argc, char **argv, int *i) {
    const bool own = is_own(u, o);
    const int place = own ? (int)(o - u->options) : 0;
    if (o->kind == HONE_ARG_FLAG && text) return hone_args_wrong("%s takes no value", o->name);
    if (o->kind != HONE_ARG_FLAG && !text && ++*i < argc) text = argv[*i];
    if (o->kind != HONE_ARG_FLAG && !text)
        return hone_args_wrong("%s needs a value: %s %s", o->name, o->name, o->value);
    if (own && given[place] && o->kind != HONE_ARG_FLAG && o->kind != HONE_ARG_LIST)
        return hone_args_wrong("%s stands there twice; say it once", o->name);
    if (own) given[place] = true;
    return set(o, text);
}
bool hone_args_given(const char *name) {
    for (const hone_option *o = usage ? usage->options : NULL; o && o->name; o++)
        if (!strcmp(o->name, name)) return given && given[o - usage->options];
    return false;
}
/* "with --dot or --html: …": an option that would change nothing alone. */
static int check_company(const hone_usage *u) {
    for (const hone_option *o = u->options; o->name; o++) {
        if (!given[o - u->options] || strncmp(o->help, "with --", 7) != 0) continue;
        const char *p = o->help + 5;
        char name[64], all[128];
        bool there = false;
        size_t n = 0;
        for (;; p += 4) {
            n = strspn(p, "-abcdefghijklmnopqrstuvwxyz0123456789");
            snprintf(name, sizeof name, "%.*s", (int)n, p);
            there |= hone_args_given(name);
            p += n;
            if (strncmp(p, " or --", 6) != 0) break;
        }
        snprintf(all, sizeof all, "%.*s", (int)(p - o->help - 5), o->help + 5);
        if (!there) return hone_args_wrong("%s goes with %s, and would change nothing alone", o->name, all);
    }
    return HONE_ARGS_GO;
}
/* before all else: a mistake may come first */
static void look_for_json(const hone_usage *u, int argc, char **argv) {
    if (!find(u, "--json", 6, 0)) return;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        json |= !strcmp(argv[i], "--json") || !strcmp(argv[i], "-j");
}

int hone_args_read(const hone_usage *u, int argc, char **argv, hone_words *operands) {
    bool plain = false; /* after "--" all are operands */
    int n = 0, rc = HONE_ARGS_GO;
    command = u->name;
    if (describe) {
        describe(u);
        return 0;
    }
    while (u->options[n].name) n++;
    free(given), given = NULL; /* should there be no memory, the end frees it, too */
    given = hone_must_alloc(sizeof *given * (size_t)(n + 1));
    usage = u;
    look_for_json(u, argc, argv);
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
        if (word[1] == '-') {
            const size_t length = strcspn(word, "=");
            const hone_option *o = find(u, word, length, 0);
            if (!o) return unknown(u, word, length);
            rc = take(u, o, word[length] ? word + length + 1 : NULL, argc, argv, &i);
        } else {
            for (const char *at = word + 1; *at && rc == HONE_ARGS_GO; at++) { /* -jq, -t4, -t 4, -t=4 */
                const hone_option *o = find(u, NULL, 0, *at);
                if (!o) return unknown(u, word, strlen(word));
                const bool flag = o->kind == HONE_ARG_FLAG;
                const char *text = flag || !at[1] ? NULL : at + 1 + (at[1] == '=');
                rc = take(u, o, text, argc, argv, &i);
                if (!flag) break;
            }
        }
        if (rc != HONE_ARGS_GO) return rc;
        if (version) {
            printf("hone %s\n", hone_version());
            return 0;
        }
    }
    if (quiet) hone_progress_silence();
    if (operands->n < u->least)
        return hone_args_wrong("%s is missing: hone %s %s [options]", u->operands, u->name, u->operands);
    if (u->most >= 0 && operands->n > u->most)
        return hone_args_wrong("'%s' is one word too many: hone %s %s%s[options]", operands->at[u->most],
                               u->name, u->operands, *u->operands ? " " : "");
    if ((rc = check_company(u)) != HONE_ARGS_GO || !spool || !strstr(u->operands, "MODEL")) return rc;
    for (int k = 0; k < operands->n; k++)
        if (!strcmp(operands->at[k], "-") && !(operands->at[k] = spool())) return 1;
    return HONE_ARGS_GO;
}
