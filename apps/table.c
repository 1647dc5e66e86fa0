/* SPDX-License-Identifier: Apache-2.0
   table: cells are gathered first, widths follow. */
#include "table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "hone/tools.h"
#include "term.h"

struct hone_table {
    const char *columns;
    const char *const *head;
    char **cell;
    int n, room;
};

hone_table *hone_table_create(const char *columns, const char *const *head) {
    hone_table *t = hone_must_alloc(sizeof *t);
    t->columns = columns;
    t->head = head;
    return t;
}

void hone_table_cell(hone_table *t, const char *format, ...) {
    va_list args;
    if (t->n == t->room) {
        int room = t->room ? t->room * 2 : 64;
        char **cell = hone_must_alloc(sizeof *cell * (size_t)room);
        if (t->n) memcpy(cell, t->cell, sizeof *cell * (size_t)t->n);
        free(t->cell);
        t->cell = cell;
        t->room = room;
    }
    va_start(args, format);
    int bytes = vsnprintf(NULL, 0, format, args);
    va_end(args);
    size_t room = (size_t)bytes * 6 + 1; /* as an escape is long */
    char *raw = hone_must_alloc((size_t)bytes + 1), *text = hone_must_alloc(room);
    va_start(args, format);
    vsnprintf(raw, (size_t)bytes + 1, format, args);
    va_end(args);
    hone_text_visible(text, room, raw, (size_t)bytes, 0);
    free(raw);
    t->cell[t->n++] = text;
}

static int width(const char *text) { return (int)hone_text_columns(text, strlen(text)); }

/* So much of a text as there is room for, then "…". Of a path, whose end says more, the end. */
static void put_cut(FILE *to, const char *text, int room) {
    int n = width(text);
    if (n <= room) {
        fputs(text, to);
        return;
    }
    const bool path = strchr(text, '/') && !strchr(text, ' ');
    int skip = path ? n - room + 1 : 0, keep = room - 1, at = -1;
    if (path) fputs("…", to);
    for (const char *p = text; *p; p++) {
        at += ((unsigned char)*p & 0xc0) != 0x80;
        if (at >= skip && at < skip + keep) fputc(*p, to);
    }
    if (!path) fputs("…", to);
}
static void print_row(FILE *to, const char *indent, const char *columns, const int *widths,
                      const char *const *cell) {
    int n = (int)strlen(columns);
    fputs(indent, to);
    for (int c = 0; c < n; c++) {
        int pad = widths[c] > width(cell[c]) ? widths[c] - width(cell[c]) : 0;
        if (columns[c] == 'r') fprintf(to, "%*s", pad, "");
        put_cut(to, cell[c], widths[c]);
        if (columns[c] != 'r') fprintf(to, "%*s", c + 1 < n ? pad : 0, "");
        fputs(c + 1 < n ? "  " : "\n", to);
    }
}
/* Where the rows are wider than the terminal, the widest column of text gives way first, and the first
   column, names, last; numbers stay whole. */
static void fit(const hone_table *t, FILE *to, const char *indent, int *widths, int n) {
    enum { LEAST = 8 };
    int most = hone_columns(to), sum = (int)strlen(indent) + 2 * (n - 1);
    for (int c = 0; c < n; c++) sum += widths[c];
    for (; most > 0 && sum > most; sum--) {
        int widest = 0;
        for (int c = 1; c < n; c++)
            if (t->columns[c] == 'l' && widths[c] > LEAST && (widest == 0 || widths[c] > widths[widest]))
                widest = c;
        if (widest == 0 && (t->columns[0] != 'l' || widths[0] <= LEAST)) return;
        widths[widest]--;
    }
}

void hone_table_print(hone_table *t, FILE *to, const char *indent) {
    int n = (int)strlen(t->columns), *widths = hone_must_alloc(sizeof *widths * (size_t)n);
    while (t->n % n) hone_table_cell(t, "%s", ""); /* a short last row */
    for (int c = 0; c < n && t->head; c++) widths[c] = width(t->head[c]);
    for (int k = 0; k < t->n; k++)
        if (width(t->cell[k]) > widths[k % n]) widths[k % n] = width(t->cell[k]);
    fit(t, to, indent, widths, n);
    if (t->head) {
        fputs(hone_paint(to, HONE_BOLD), to);
        print_row(to, indent, t->columns, widths, t->head);
        fputs(hone_paint(to, HONE_PLAIN), to);
    }
    for (int k = 0; k < t->n; k += n)
        print_row(to, indent, t->columns, widths, (const char *const *)t->cell + k);
    for (int k = 0; k < t->n; k++) free(t->cell[k]);
    free(t->cell);
    free(widths);
    free(t);
}
