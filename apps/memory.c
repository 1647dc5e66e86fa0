/* SPDX-License-Identifier: Apache-2.0
   memory: how a plan uses its arena, step by step, as a picture in text: the peak, and what lives there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "inspect.h"
#include "table.h"
#include "term.h"

enum { WIDTH = 72, HEIGHT = 10, LISTED = 12 };

static const hone_json *at(const hone_json *list, int k) {
    const hone_json *m = list ? list->first : NULL;
    while (m && k-- > 0) m = m->next;
    return m;
}
static int larger(const void *p, const void *q) {
    const hone_json *a = *(const hone_json *const *)p, *b = *(const hone_json *const *)q;
    double x = hone_json_number(a, "bytes", 0), y = hone_json_number(b, "bytes", 0);
    return (x < y) - (x > y);
}

/* Columns of eighths: a step is one column or several; where there are more steps than columns, a column is
   the largest of its steps. */
static void draw(const double *used, int n, double most, int peak) {
    static const char *const eighth[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    if (n < 1) return;
    int wide = n >= WIDTH      ? 1
               : WIDTH / n > 8 ? 8
                               : WIDTH / n,
        columns = n >= WIDTH ? WIDTH : n * wide, mark = 0;
    const char *colour = hone_paint(stdout, HONE_GREEN), *red = hone_paint(stdout, HONE_RED),
               *plain = hone_paint(stdout, HONE_PLAIN);
    double column[WIDTH] = {0};
    for (int k = 0; k < n; k++) {
        int first = n >= WIDTH ? (int)((long long)k * WIDTH / n) : k * wide,
            last = n >= WIDTH ? first : first + wide - 1;
        for (int c = first; c <= last; c++)
            if (used[k] > column[c]) column[c] = used[k];
        if (k == peak) mark = (first + last) / 2;
    }
    for (int row = HEIGHT - 1; row >= 0; row--) {
        if (row == HEIGHT - 1) hone_print(stdout, "%9s ┤%s", hone_text_bytes(most), colour);
        else if (row == HEIGHT / 2 - 1) hone_print(stdout, "%9s ┤%s", hone_text_bytes(most / 2), colour);
        else hone_print(stdout, "%9s │%s", "", colour);
        for (int c = 0; c < columns; c++) {
            int level = (int)(column[c] / most * HEIGHT * 8 + 0.5) - row * 8;
            if (level < 1 && row == 0 && column[c] > 0) level = 1; /* little is not nothing */
            fputs(eighth[level < 0 ? 0 : level > 8 ? 8 : level], stdout);
        }
        hone_print(stdout, "%s\n", plain);
    }
    hone_print(stdout, "%9s └", "0 B");
    for (int c = 0; c < columns; c++) fputs("─", stdout);
    hone_print(stdout, "\n%9s  %*s%s▲%s\n", "step", mark, "", red, plain);
    char last[24];
    snprintf(last, sizeof last, "%d", n - 1);
    hone_print(stdout, "%9s  0%*s\n", "", columns - 1 > 0 ? columns - 1 : 0, n > 1 ? last : "");
}
static void tell_peak(const hone_json *blocks, int peak) {
    static const char *const head[] = {"bytes", "tensor", "steps"};
    const hone_json **alive = hone_must_alloc(sizeof *alive * (size_t)(blocks ? blocks->n + 1 : 1));
    int n = 0;
    for (const hone_json *b = blocks ? blocks->first : NULL; b; b = b->next)
        if (hone_json_number(b, "first", 0) <= peak && peak <= hone_json_number(b, "last", -1))
            alive[n++] = b;
    qsort(alive, (size_t)n, sizeof *alive, larger);
    hone_table *t = hone_table_create("rll", head);
    for (int k = 0; k < n && k < LISTED; k++) {
        const hone_json *in_place = hone_json_get(alive[k], "in_place");
        const char *name = hone_json_text(alive[k], "name", "");
        hone_table_cell(t, "%s", hone_text_bytes(hone_json_number(alive[k], "bytes", 0)));
        hone_table_cell(t, "%s%s", *name ? name : "(a buffer of the step's own)",
                        in_place && in_place->type == HONE_JSON_TRUE ? "  (in place of another)" : "");
        hone_table_cell(t, "%.0f to %.0f", hone_json_number(alive[k], "first", 0),
                        hone_json_number(alive[k], "last", 0));
    }
    hone_table_print(t, stdout, "");
    if (n > LISTED) hone_print(stdout, "… and %d smaller ones\n", n - LISTED);
    free(alive);
}
void hone_show_memory(const hone_planned *p) {
    const hone_json *used = hone_json_get(p->plan, "used"), *steps = hone_json_get(p->plan, "steps"),
                    *whole = hone_json_get(p->plan, "whole");
    int n = used ? used->n : 0, peak = 0, k = 0;
    double most = 0, *value = hone_must_alloc(sizeof *value * (size_t)(n + 1));
    for (const hone_json *u = n ? used->first : NULL; u; u = u->next, k++) {
        value[k] = u->number;
        if (u->number > most) most = u->number, peak = k;
    }
    double arena = hone_json_number(p->plan, "arena_bytes", 0),
           lower = hone_json_number(p->plan, "lower_bound_bytes", 0);
    hone_print(
        stdout,
        "%smemory for tensors%s  %s in %d step%s; no plan can need less than %s; all side by side are %s\n",
        hone_paint(stdout, HONE_BOLD), hone_paint(stdout, HONE_PLAIN), hone_text_bytes(arena), n,
        n == 1 ? "" : "s", hone_text_bytes(lower),
        hone_text_bytes(hone_json_number(p->plan, "sum_bytes", 0)));
    if (whole && whole->type != HONE_JSON_TRUE)
        hone_print(stdout,
                   "up to node '%s': shapes after it depend on computed numbers, and are planned when those "
                   "are there\n",
                   hone_json_text(p->plan, "cut_at", "?"));
    if (most > 0) {
        const hone_json *s = at(steps, peak);
        draw(value, n, most, peak);
        hone_print(stdout, "the peak, %s, is at step %d: %s '%s'. It holds\n", hone_text_bytes(most), peak,
                   hone_json_text(s, "op", ""), hone_json_text(s, "node", ""));
        tell_peak(hone_json_get(p->plan, "blocks"), peak);
    }
    free(value);
}
