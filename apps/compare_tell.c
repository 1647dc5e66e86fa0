/* SPDX-License-Identifier: Apache-2.0
   compare_tell: contests for people: one model with all its figures, or a row a model, as text or as
   markdown. */
#include <math.h>
#include <string.h>

#include "compare.h"
#include "table.h"
#include "term.h"

static const double NOISY = 0.10; /* a spread that makes figures doubtful */

static const char *threads_text(int n) {
    static char text[32];
    snprintf(text, sizeof text, "%d thread%s", n, n == 1 ? "" : "s");
    return text;
}

static bool ran(const hone_entry *e) { return !*e->why; }
/* Whether a runtime ran any of the models: only those get a column. */
static bool ran_any(const hone_comparison *a, int k) {
    for (int i = 0; i < a->n; i++)
        if (!*a->contest[i].why && ran(&a->contest[i].entry[k])) return true;
    return false;
}

/* "1.21 ×", or "≈ 1.00 ×" where it may as well be the same. */
static const char *times_text(const hone_ratio *r) {
    static char text[4][32];
    static int next;
    char *out = text[next++ % 4];
    snprintf(out, sizeof text[0], "%s%.2f ×", hone_stats_verdict(r) ? "" : "≈ ", r->ratio);
    return out;
}

static const char *error_text(const hone_contest *c, int k) {
    static char text[64];
    const hone_entry *e = &c->entry[k];
    if (k == c->reference && c->agree > 1) return "reference";
    if (k == c->reference) return c->answers > 1 ? "reference (nobody agrees)" : "–";
    if (!isfinite(e->max_rel))
        snprintf(text, sizeof text, "%s",
                 e->max_abs > 0 && isfinite(e->max_abs) ? "of zeros" : "NaN, infinity or another size");
    else snprintf(text, sizeof text, "%.2g, %.2g of the largest", e->max_abs, e->max_rel);
    return text;
}

/* ---- one model ---- */

static void tell_rows(const hone_contest *c) {
    static const char *const head[] = {"runtime", "version",   "median", "spread",      "Hone is",
                                       "load",    "first run", "peak",   "of it model", "error"};
    hone_table *t = hone_table_create("llrrrrrrrl", head);
    for (int k = 0; k < HONE_RUNTIMES; k++) {
        const hone_entry *e = &c->entry[k];
        if (!ran(e)) continue;
        hone_table_cell(t, "%s", e->runtime->label);
        hone_table_cell(t, "%s", e->runtime->version);
        hone_table_cell(t, "%s", hone_text_ms(e->median_ms));
        hone_table_cell(t, "%.1f %%", e->stats.spread * 100);
        hone_table_cell(t, "%s", k && ran(&c->entry[0]) ? times_text(&e->slower) : "");
        hone_table_cell(t, "%s", hone_text_ms(e->load_ms));
        hone_table_cell(t, "%s", hone_text_ms(e->first_ms));
        hone_table_cell(t, "%s", e->peak_bytes > 0 ? hone_text_bytes(e->peak_bytes) : "–");
        hone_table_cell(t, "%s",
                        e->peak_bytes > 0 ? hone_text_bytes(fmax(0, e->peak_bytes - e->before_bytes)) : "–");
        hone_table_cell(t, "%s%s", e->right ? "" : "WRONG: ", error_text(c, k));
    }
    hone_table_print(t, stdout, "");
}

static void tell_absent(const hone_contest *c) {
    size_t width = 0;
    for (int k = 0; k < HONE_RUNTIMES; k++)
        if (!ran(&c->entry[k]) && c->entry[k].runtime->wanted && strlen(c->entry[k].runtime->label) > width)
            width = strlen(c->entry[k].runtime->label);
    for (int k = 0; k < HONE_RUNTIMES; k++) {
        const hone_entry *e = &c->entry[k];
        if (!ran(e) && e->runtime->wanted)
            hone_print(stdout, "%s%-*s  no figures: %s%s\n", hone_paint(stdout, HONE_DIM), (int)width,
                       e->runtime->label, e->why, hone_paint(stdout, HONE_PLAIN));
    }
}

static bool half(const hone_contest_wish *w) { return strcmp(w->precision, "f32") != 0; }
static void tell_verdict(const hone_contest *c, const hone_contest_wish *wish) {
    const double tolerance = wish->tolerance;
    const hone_entry *best = c->best >= 0 ? &c->entry[c->best] : NULL;
    double worst = 0;
    if (c->answers > 1 && c->agree == c->answers)
        hone_print(stdout, "answers  all %d agree within %g of the largest magnitude\n", c->answers,
                   tolerance);
    else if (c->answers > 1)
        hone_print(stdout, "answers  %d of %d agree within %g of the largest magnitude; right is %s\n",
                   c->agree, c->answers, tolerance,
                   c->majority                       ? "what most say"
                   : half(wish) && c->reference == 1 ? "ONNX Runtime, in f32"
                   : c->reference == 1               ? "ONNX Runtime, since no more than half agree"
                                                     : "Hone, since nobody else is to be asked");
    if (best && ran(&c->entry[0]) && c->entry[0].right) {
        int verdict = hone_stats_verdict(&best->slower);
        const hone_ratio *r = &best->slower;
        printf("speed    ");
        if (verdict)
            hone_print(stdout, "%sHone is %.2f × as fast as %s%s, the fastest of the others",
                       hone_paint(stdout, verdict > 0 ? HONE_GREEN : HONE_RED), r->ratio,
                       best->runtime->label, hone_paint(stdout, HONE_PLAIN));
        else
            hone_print(stdout, "no clear difference between Hone and %s, the fastest of the others",
                       best->runtime->label);
        hone_print(stdout, " (%.2f to %.2f, with 95 %% certainty)\n", r->low, r->high);
    }
    for (int k = 0; k < HONE_RUNTIMES; k++)
        if (ran(&c->entry[k]) && c->entry[k].stats.spread > worst) worst = c->entry[k].stats.spread;
    if (worst > NOISY)
        hone_print(stdout,
                   "noise    times vary by up to %.0f %%: the machine was busy, or runs were too short; "
                   "--seconds makes them longer\n",
                   worst * 100);
}

void hone_compare_tell(const hone_comparison *a) {
    const hone_contest *c = a->contest;
    const char *bold = hone_paint(stdout, HONE_BOLD), *plain = hone_paint(stdout, HONE_PLAIN);
    hone_print(stdout, "%s%s%s  %s, %s, %s\n", bold, c->name, plain, a->wish->precision,
               threads_text(a->wish->threads), a->machine);
    if (*c->why) {
        hone_print(stdout, "cannot be compared: %s\n", c->why);
        return;
    }
    for (const char *line = c->inputs; *line;) {
        size_t n = strcspn(line, "\n");
        hone_print(stdout, "input  %.*s\n", (int)n, line);
        line += n + (line[n] != 0);
    }
    putchar('\n');
    tell_rows(c);
    tell_absent(c);
    tell_verdict(c, a->wish);
}

/* ---- a row a model ---- */

static void put_time(hone_table *t, const hone_contest *c, int k) {
    const hone_entry *e = &c->entry[k];
    if (!ran(e)) hone_table_cell(t, "%s", "–");
    else if (!e->right) hone_table_cell(t, "WRONG");
    else hone_table_cell(t, "%.*f", e->median_ms < 10 ? 3 : e->median_ms < 100 ? 2 : 1, e->median_ms);
}

static bool has_best(const hone_contest *c) { return c->best >= 0 && ran(&c->entry[0]) && c->entry[0].right; }

void hone_compare_table(const hone_comparison *a) {
    const char *head[HONE_RUNTIMES + 3];
    char columns[HONE_RUNTIMES + 4] = "l";
    int n = 0, counted;
    head[n++] = "model";
    for (int k = 0; k < HONE_RUNTIMES; k++)
        if (ran_any(a, k)) columns[n] = 'r', head[n++] = a->runtime[k].label;
    columns[n] = 'l', head[n++] = "best of the others";
    columns[n] = 'r', head[n++] = "Hone is";
    columns[n] = 0;
    hone_table *t = hone_table_create(columns, head);
    hone_print(stdout, "\n%smedian ms%s  %s, %s, %s%s\n", hone_paint(stdout, HONE_BOLD),
               hone_paint(stdout, HONE_PLAIN), a->wish->precision, threads_text(a->wish->threads), a->machine,
               half(a->wish) ? "; ONNX Runtime in f32" : "");
    for (int i = 0; i < a->n; i++) {
        const hone_contest *c = &a->contest[i];
        hone_table_cell(t, "%s", c->name);
        for (int k = 0; k < HONE_RUNTIMES; k++) {
            if (!ran_any(a, k)) continue;
            if (*c->why) hone_table_cell(t, "%s", "–");
            else put_time(t, c, k);
        }
        hone_table_cell(t, "%s", c->best >= 0 ? c->entry[c->best].runtime->label : "–");
        hone_table_cell(t, "%s", has_best(c) ? times_text(&c->entry[c->best].slower) : "–");
    }
    hone_table_print(t, stdout, "");
    double mean = hone_compare_mean(a, &counted);
    if (counted)
        hone_print(stdout, "\nHone is %.2f × as fast as the best of the others: geometric mean of %d\n", mean,
                   counted);
}

/* ---- markdown ---- */

static double figure(const hone_entry *e, int what) {
    return what == 0   ? e->median_ms
           : what == 1 ? e->load_ms + e->first_ms
                       : fmax(0, e->peak_bytes - e->before_bytes) / 1e6;
}

/* A table of one figure: what 0 is the median, 1 load and first run, 2 memory. */
static void put_table(const hone_comparison *a, int what) {
    static const char *const unit[] = {"ms, median", "ms until the first answer (load and first run)",
                                       "MB at the peak, less what was there before the load"};
    int counted;
    double mean = hone_compare_mean(a, &counted);
    hone_print(stdout, "| %s |", unit[what]);
    for (int k = 0; k < HONE_RUNTIMES; k++)
        if (ran_any(a, k)) hone_print(stdout, " %s |", a->runtime[k].label);
    printf(what ? "\n|---|" : " best of the others | Hone is |\n|---|");
    for (int k = 0; k < HONE_RUNTIMES; k++)
        if (ran_any(a, k)) printf("---:|");
    printf(what ? "\n" : "---|---:|\n");
    for (int i = 0; i < a->n; i++) {
        const hone_contest *c = &a->contest[i];
        hone_print(stdout, "| %s |", strncmp(c->name, "zoo:", 4) ? c->name : c->name + 4);
        for (int k = 0; k < HONE_RUNTIMES; k++) {
            const hone_entry *e = &c->entry[k];
            double v = figure(e, what);
            if (!ran_any(a, k)) continue;
            if (*c->why || !ran(e)) printf(" – |");
            else if (!e->right) printf(" wrong |");
            else printf(k == 0 ? " **%.*f** |" : " %.*f |", v < 1 ? 3 : v < 10 ? 2 : v < 100 ? 1 : 0, v);
        }
        if (!what)
            hone_print(stdout, " %s | %s |", c->best >= 0 ? c->entry[c->best].runtime->label : "–",
                       has_best(c) ? times_text(&c->entry[c->best].slower) : "–");
        putchar('\n');
    }
    if (!what && counted) {
        hone_print(stdout, "| geometric mean of %d |", counted);
        for (int k = 0; k < HONE_RUNTIMES; k++)
            if (ran_any(a, k)) printf(" |");
        hone_print(stdout, " | **%.2f ×** |\n", mean);
    }
}

void hone_compare_markdown(const hone_comparison *a) {
    hone_print(stdout, "%s, %s, %s%s", a->machine, threads_text(a->wish->threads), a->wish->precision,
               half(a->wish) ? " (ONNX Runtime f32)" : "");
    for (int k = 0; k < HONE_RUNTIMES; k++)
        if (ran_any(a, k))
            hone_print(stdout, "%s %s %s", k ? "," : ";", a->runtime[k].label, a->runtime[k].version);
    hone_print(stdout, ". Medians of turns taken in %s.\n\n",
               a->wish->runs ? "equal numbers of runs" : "equal time");
    for (int what = 0; what < 3; what++) {
        put_table(a, what);
        putchar('\n');
    }
    for (int i = 0; i < a->n; i++) {
        const hone_contest *c = &a->contest[i];
        if (*c->why) hone_print(stdout, "- %s cannot be compared: %s\n", c->name, c->why);
        for (int k = 0; k < HONE_RUNTIMES && !*c->why; k++)
            if (!ran(&c->entry[k]) && ran_any(a, k))
                hone_print(stdout, "- %s has no %s: %s\n", c->entry[k].runtime->label, c->name,
                           c->entry[k].why);
            else if (ran(&c->entry[k]) && !c->entry[k].right)
                hone_print(stdout, "- %s is wrong on %s: %s\n", c->entry[k].runtime->label, c->name,
                           error_text(c, k));
    }
}
