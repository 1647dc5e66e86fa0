/* SPDX-License-Identifier: Apache-2.0
   wisdom: see wisdom.h. The text is hostile: every word is looked for in a table, every number is checked,
   and nothing is used before its end was seen. */
#include "device/wisdom.h"

#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "kernels/epilogue.h"
#include "kernels/gemm.h"
#include "kernels/dwconv_nhwc_rows.h"
#include "kernels/softmax.h"
#include "kernels/winograd.h"

enum { RULES = 2 }; /* counts up when a knob or a number gets another meaning */
static const struct {
    const char *name, *number[HONE_PROBLEM_NUMBERS + 1], *knob[HONE_CHOICE_KNOBS + 1];
} kinds[HONE_PROBLEM_KINDS] = {
    [HONE_PROBLEM_SUM] = {"sum",
                          {"m", "n", "k", "batch", "taps", "piece", "a", "b", "each", "direct", "window"},
                          {"vectors", "rows", "columns", "depth", "tile", "threads"}},
    [HONE_PROBLEM_BYTES] = {"bytes",
                            {"m", "n", "k", "batch", "taps", "piece", "a", "b"},
                            {"rows", "columns"}},
    [HONE_PROBLEM_PLANE] = {"plane", {"planes", "height", "width", "down", "across", "bytes"}, {"rows"}},
    [HONE_PROBLEM_SCHEDULE] = {"schedule",
                               {"kernels", "numbers"},
                               {"kind", "lanes", "unroll", "threads", "vector"}},
    [HONE_PROBLEM_PRODUCT] = {"product", {"m", "n", "k", "batch", "type", "ends"}, {"library"}},
    [HONE_PROBLEM_ATTENTION] = {"attention", {"batch", "m", "n", "depth", "width"}, {"rows", "threads"}},
};

/* ---- problems and choices ------------------------------------------------------------------------------ */
bool hone_problem_same(const hone_problem *a, const hone_problem *b) {
    return a->kind == b->kind && !memcmp(a->number, b->number, sizeof a->number) &&
           !strcmp(a->kernel, b->kernel);
}
bool hone_choice_same(const hone_problem *p, const hone_choice *a, const hone_choice *b) {
    for (int k = 0; kinds[p->kind].knob[k]; k++)
        if (a->knob[k] != b->knob[k]) return false;
    return true;
}
void hone_problem_name(hone_problem *p, const char *kernel) {
    strncpy(p->kernel, kernel, sizeof p->kernel - 1);
}
static void put(hone_text *t, const char *const *name, const int64_t *number) {
    for (int k = 0; name[k]; k++) hone_text_put(t, "%s%s %lld", k ? " " : "", name[k], (long long)number[k]);
}
void hone_problem_print(const hone_problem *p, hone_text *t) {
    hone_text_put(t, "%s ", kinds[p->kind].name);
    put(t, kinds[p->kind].number, p->number);
}
void hone_choice_print(const hone_problem *p, const hone_choice *c, hone_text *t) {
    put(t, kinds[p->kind].knob, c->knob);
}

/* ---- the machine --------------------------------------------------------------------------------------- */
static uint64_t mix(uint64_t h, uint64_t n) {
    h = (h ^ n) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}
static uint64_t mix_text(uint64_t h, const char *text) {
    for (; *text; text++) h = mix(h, (uint8_t)*text);
    return mix(h, 256);
}
/* Every row of every list, chosen or not: a kernel that changes its tile or gets a neighbour is another
   one. */
static uint64_t kernels(void) {
    uint64_t h = RULES;
    for (int k = 0; hone_gemm_f32_list[k]; k++) {
        const hone_gemm_f32 *g = hone_gemm_f32_list[k];
        h = mix(mix(mix_text(h, g->name), (uint64_t)g->vector), (uint64_t)g->widths);
        for (int v = 0; v < g->widths; v++) h = mix(h, (uint64_t)g->mr[v]);
    }
    for (const hone_gemm_i8 *g = hone_gemm_i8_list; g->name; g++)
        h = mix(mix(mix_text(h, g->name), (uint64_t)g->mr), (uint64_t)g->nr);
    for (const hone_dwconv_nhwc_rows *g = hone_dwconv_nhwc_rows_list; g->name; g++) h = mix_text(h, g->name);
    for (const hone_dwconv_nhwc *g = hone_dwconv_nhwc_list; g->name; g++) h = mix_text(h, g->name);
    for (const hone_dwconv_nchw *g = hone_dwconv_nchw_list; g->name; g++) h = mix_text(h, g->name);
    for (const hone_epilogue *g = hone_epilogue_list; g->name; g++) h = mix_text(h, g->name);
    for (const hone_winograd_f32 *g = hone_winograd_f32_list; g->name; g++) h = mix_text(h, g->name);
    for (const hone_softmax *g = hone_softmax_list; g->name; g++) h = mix_text(h, g->name);
    return h;
}
uint64_t hone_wisdom_machine(void) { return mix(mix_text(RULES, hone_cpu_name()), hone_cpu()); }

/* ---- lines --------------------------------------------------------------------------------------------- */
hone_wisdom *hone_wisdom_create(void) { return hone_alloc(sizeof(hone_wisdom)); }
void hone_wisdom_destroy(hone_wisdom *w) {
    if (!w) return;
    hone_vec_free(&w->line);
    hone_free(w);
}
static uint64_t mix_line(uint64_t h, const hone_wise *l) {
    h = mix_text(mix(h, (uint64_t)l->problem.kind), l->problem.kernel);
    for (int q = 0; q < HONE_PROBLEM_NUMBERS; q++) h = mix(h, (uint64_t)l->problem.number[q]);
    for (int q = 0; kinds[l->problem.kind].knob[q]; q++) h = mix(h, (uint64_t)l->choice.knob[q]);
    return h ? h : 1;
}
hone_status hone_wisdom_add(hone_wisdom *w, const hone_problem *p, const hone_choice *c, int64_t ns) {
    const hone_wise line = {*p, *c, ns};
    if (!hone_push(&w->line, line)) return hone_fail(HONE_NO_MEMORY, "no memory for wisdom");
    w->id = mix_line(w->id, &line);
    return HONE_OK;
}
void hone_wisdom_remove(hone_wisdom *w, const hone_problem *p) {
    int n = 0;
    for (int k = 0; k < w->line.n; k++)
        if (!hone_problem_same(&w->line.at[k].problem, p)) w->line.at[n++] = w->line.at[k];
    w->line.n = n, w->id = 0;
    for (int k = 0; k < n; k++) w->id = mix_line(w->id, w->line.at + k);
}
const hone_choice *hone_wisdom_find(const hone_wisdom *w, const hone_problem *p) {
    for (int k = 0; w && k < w->line.n; k++)
        if (hone_problem_same(&w->line.at[k].problem, p))
            return hone_choice_fits(p, &w->line.at[k].choice) ? &w->line.at[k].choice : NULL;
    return NULL;
}
void hone_wisdom_print(const hone_wisdom *w, hone_text *t) {
    hone_text_put(t, "hone wisdom %d\ncpu %s\nlevel %x\nkernels %016llx\n", RULES, hone_cpu_name(),
                  (unsigned)hone_cpu(), (unsigned long long)kernels());
    for (int k = 0; k < w->line.n; k++) {
        const hone_wise *l = w->line.at + k;
        hone_text_put(t, "%s %s ", kinds[l->problem.kind].name, l->problem.kernel);
        put(t, kinds[l->problem.kind].number, l->problem.number);
        hone_text_put(t, " : ");
        put(t, kinds[l->problem.kind].knob, l->choice.knob);
        hone_text_put(t, " : %lld\n", (long long)l->ns);
    }
    hone_text_put(t, "end %d\n", w->line.n);
}

/* ---- reading ------------------------------------------------------------------------------------------- */
typedef struct {
    const char *at, *end; /* of what is left of a line, or of the text */
    int line;
} cursor;
/* a last one without an end is none: it may have been cut off */
static bool next_line(cursor *text, cursor *line) {
    const char *stop = text->at < text->end ? memchr(text->at, '\n', (size_t)(text->end - text->at)) : NULL;
    if (!stop) return false;
    *line = (cursor){text->at, stop, ++text->line};
    text->at = stop + 1;
    return true;
}
/* The next word, between single blanks. */
static bool word(cursor *c, char *to, size_t room) {
    size_t n = 0;
    while (c->at < c->end && *c->at != ' ') {
        if (n + 1 >= room || (unsigned char)*c->at < 33 || (unsigned char)*c->at > 126) return false;
        to[n++] = *c->at++;
    }
    to[n] = 0;
    if (c->at < c->end) c->at++;
    return n > 0;
}
static bool is(cursor *c, const char *text) {
    char w[HONE_PROBLEM_NAME];
    return word(c, w, sizeof w) && !strcmp(w, text);
}
static bool number(cursor *c, int64_t *out) {
    char w[20];
    if (!word(c, w, sizeof w) || strlen(w) > 15) return false;
    *out = 0;
    for (const char *d = w; *d; d++) {
        if (*d < '0' || *d > '9') return false;
        *out = *out * 10 + (*d - '0');
    }
    return true;
}
static bool numbers(cursor *c, const char *const *name, int64_t *to) {
    for (int k = 0; name[k]; k++)
        if (!is(c, name[k]) || !number(c, to + k)) return false;
    return true;
}
static bool line_of(cursor *c, hone_wise *out) {
    char w[HONE_PROBLEM_NAME];
    *out = (hone_wise){0};
    if (!word(c, w, sizeof w)) return false;
    int k = 0;
    while (k < HONE_PROBLEM_KINDS && strcmp(w, kinds[k].name) != 0) k++;
    if (k == HONE_PROBLEM_KINDS) return false;
    out->problem.kind = (hone_problem_kind)k;
    return word(c, out->problem.kernel, sizeof out->problem.kernel) &&
           numbers(c, kinds[k].number, out->problem.number) && is(c, ":") &&
           numbers(c, kinds[k].knob, out->choice.knob) && is(c, ":") && number(c, &out->ns) &&
           c->at == c->end;
}
/* One line of the head: a word and the rest, which must be what it would be here. */
static hone_status head(cursor *text, const char *name, const char *want, const char *what) {
    cursor l;
    const size_t n = strlen(name), m = strlen(want);
    if (!next_line(text, &l) || (size_t)(l.end - l.at) < n + 1 || memcmp(l.at, name, n) != 0 ||
        l.at[n] != ' ')
        return hone_fail(HONE_BAD_INPUT, "line %d should say '%s'", text->line + !text->line, name);
    l.at += n + 1;
    if ((size_t)(l.end - l.at) == m && !memcmp(l.at, want, m)) return HONE_OK;
    char theirs[81] = "";
    for (size_t k = 0; k < sizeof theirs - 1 && l.at + k < l.end; k++)
        theirs[k] = (unsigned char)l.at[k] < 32 || (unsigned char)l.at[k] > 126 ? '?' : l.at[k];
    return hone_fail(HONE_NOT_SUPPORTED, "it was made %s ('%s', here '%s')", what, theirs, want);
}
static hone_status read_lines(cursor *text, hone_wisdom *w) {
    cursor l;
    while (next_line(text, &l)) {
        cursor end = l;
        int64_t n;
        hone_wise line;
        if (is(&end, "end")) {
            if (!number(&end, &n) || end.at != end.end || n != w->line.n || text->at != text->end)
                return hone_fail(HONE_BAD_INPUT,
                                 "line %d: 'end' does not count the lines before it, or is not the last",
                                 l.line);
            return HONE_OK;
        }
        if (w->line.n >= HONE_WISDOM_LINES)
            return hone_fail(HONE_BAD_INPUT, "it has more than %d lines", HONE_WISDOM_LINES);
        if (!line_of(&l, &line))
            return hone_fail(HONE_BAD_INPUT, "line %d is not a problem, a choice and a time", l.line);
        HONE_TRY(hone_wisdom_add(w, &line.problem, &line.choice, line.ns));
    }
    return hone_fail(HONE_BAD_INPUT, "it is cut off: its last line should be 'end' and a number");
}
hone_status hone_wisdom_read(const char *text, size_t bytes, hone_wisdom **out) {
    *out = NULL;
    if (bytes > HONE_WISDOM_BYTES)
        return hone_fail(HONE_BAD_INPUT, "it has more than %d bytes", HONE_WISDOM_BYTES);
    cursor c = {text, text + bytes, 0};
    char level[16], list[24], rules[16];
    snprintf(rules, sizeof rules, "wisdom %d", RULES),
        snprintf(level, sizeof level, "%x", (unsigned)hone_cpu());
    snprintf(list, sizeof list, "%016llx", (unsigned long long)kernels());
    HONE_TRY(head(&c, "hone", rules, "by another version of the tuner"));
    HONE_TRY(head(&c, "cpu", hone_cpu_name(), "on another CPU"));
    HONE_TRY(head(&c, "level", level, "for another level of CPU"));
    HONE_TRY(head(&c, "kernels", list, "with other kernels"));
    hone_wisdom *w = hone_wisdom_create();
    if (!w) return hone_fail(HONE_NO_MEMORY, "no memory for wisdom");
    hone_status s = read_lines(&c, w);
    if (s) hone_wisdom_destroy(w);
    else *out = w;
    return s;
}
