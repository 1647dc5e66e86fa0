/* SPDX-License-Identifier: Apache-2.0
   labels: reading names in place: the file's text is cut up where it lies. */
#include "labels.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"

enum { BYTES = 16 << 20, CLASSES = 1 << 20 };

static bool put(hone_labels *l, long k, char *name) {
    if (k < 0 || k >= CLASSES) return false;
    if (k >= l->room) {
        int room = (int)k + 1 < 2 * l->room ? 2 * l->room : (int)k + 64;
        char **at = hone_must_alloc(sizeof *at * (size_t)room);
        if (l->n) memcpy(at, l->at, sizeof *at * (size_t)l->n);
        free(l->at);
        l->at = at, l->room = room;
    }
    while (l->n <= k) l->at[l->n++] = "";
    l->at[k] = name;
    return true;
}

static void lines(hone_labels *l) {
    int n = 0;
    for (char *p = l->text; *p;) {
        char *end = p + strcspn(p, "\r\n");
        bool pair = end[0] == '\r' && end[1] == '\n', last = !*end;
        *end = 0;
        put(l, n++, p);
        p = last ? end : end + 1 + pair;
    }
}

/* ---- lists and dicts ---- */

static void skip(char **p) {
    while (**p == ' ' || **p == '\t' || **p == '\r' || **p == '\n' || **p == ',') (*p)++;
}

/* A quoted string, its end written over its closing quote; NULL: none, or it has no end. */
static char *quoted(char **p) {
    char quote = **p, *from = *p + 1, *to = from, *begin = from;
    if (quote != '"' && quote != '\'') return NULL;
    for (; *from && *from != quote; from++) {
        /* \" and \' and \\; the rarer escapes stay as they are written */
        if (*from == '\\' && from[1]) from++;
        *to++ = *from;
    }
    if (!*from) return NULL;
    *p = from + 1;
    *to = 0;
    return begin;
}

/* A string, a number, or a list, of which the last string counts. */
static bool item(char **p, char **name, long *number) {
    char *end;
    *name = NULL, *number = -1;
    if (**p == '[' || **p == '(') {
        char close = **p == '[' ? ']' : ')';
        for ((*p)++, skip(p); **p && **p != close; skip(p)) {
            char *inner;
            if (!(inner = quoted(p))) return false;
            *name = inner;
        }
        if (!**p) return false;
        (*p)++;
        return *name != NULL;
    }
    if ((*name = quoted(p))) return true;
    *number = strtol(*p, &end, 10);
    bool good = end != *p;
    *p = end;
    return good;
}

static bool tree(hone_labels *l, char *p) {
    bool dict = *p == '{';
    char close = dict ? '}' : ']';
    int n = 0;
    for (p++, skip(&p); *p && *p != close; skip(&p)) {
        char *name, *key = NULL, *end;
        long number, place = n++;
        if (!item(&p, &name, &number)) return false;
        if (dict) {
            key = name, place = number;
            skip(&p);
            if (*p++ != ':') return false;
            skip(&p);
            if (!item(&p, &name, &number)) return false;
            if (!name) name = key, place = number; /* "cat": 0 */
            else if (key) {
                place = strtol(key, &end, 10);
                if (end == key || *end) return false;
            }
        }
        if (!name || !put(l, place, name)) return false;
    }
    return *p == close && l->n;
}

int hone_labels_read(const char *path, hone_labels *out) {
    FILE *f = fopen(path, "rb");
    *out = (hone_labels){0};
    if (!f) return hone_args_wrong("--labels %s: %s", path, strerror(errno));
    out->text = hone_must_alloc(BYTES + 1);
    size_t n = fread(out->text, 1, BYTES, f);
    bool more = n == BYTES && fgetc(f) != EOF;
    const int bad = ferror(f) ? errno : 0; /* a folder can be opened, too */
    fclose(f);
    if (bad) return hone_args_wrong("--labels %s: %s", path, strerror(bad));
    if (more) return hone_args_wrong("--labels %s: more than %d MB of names", path, BYTES >> 20);
    out->text[n] = 0;
    char *p = out->text;
    skip(&p);
    if (!*p) return hone_args_wrong("--labels %s: there is no name in it", path);
    if (*p != '[' && *p != '{') lines(out);
    else if (!tree(out, p))
        return hone_args_wrong(
            "--labels %s: say a name a line, a list as [\"cat\", \"dog\"], or {\"0\": \"cat\"}", path);
    return 0;
}

void hone_labels_free(hone_labels *l) { free(l->at), free(l->text); }
