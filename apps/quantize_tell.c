/* SPDX-License-Identifier: Apache-2.0
   quantize_tell: the report of hone_quantize for people: lines, and the page quantize.html with the report's
   JSON in it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "args.h"
#include "hone/hone.h"
#include "page.h"
#include "quantize.h"
#include "table.h"
#include "term.h"

extern const char hone_quantize_html[];
enum { FEW = 16 /* samples: fewer are remarked on */ };

/* ---- telling ------------------------------------------------------------------------------------------- */
static double of(const hone_json *r, const char *name) { return hone_json_number(r, name, NAN); }
static void put_db(hone_table *t, double db) {
    if (db == db) hone_table_cell(t, "%.1f dB", db);
    else hone_table_cell(t, "%s", "");
}
static void tell_layers(const hone_json *r, bool every) {
    static const char *const head[] = {"layer",    "op",    "computes in", "alone",
                                       "range by", "range", "work",        "why"};
    const hone_json *layers = hone_json_get(r, "layers");
    const double macs = of(r, "macs");
    int n = 0, more = 0;
    for (const hone_json *l = layers ? layers->first : NULL; l; l = l->next)
        n += every || strcmp(hone_json_text(l, "type", ""), "int8") != 0;
    hone_table *t = n ? hone_table_create("lllrllrl", head) : NULL;
    for (const hone_json *l = layers ? layers->first : NULL; l; l = l->next) {
        const char *type = hone_json_text(l, "type", ""), *why = hone_json_text(l, "why", "");
        if (!every && !strcmp(type, "int8")) {
            more++;
            continue;
        }
        hone_table_cell(t, "%s", hone_json_text(l, "node", ""));
        hone_table_cell(t, "%s", hone_json_text(l, "op", ""));
        hone_table_cell(t, "%s", type);
        put_db(t, of(l, "sqnr_db"));
        hone_table_cell(t, "%s", hone_json_text(l, "observer", ""));
        hone_table_cell(t, "%.4g to %.4g", hone_json_number(l, "low", 0), hone_json_number(l, "high", 0));
        hone_table_cell(t, "%.1f %%", macs > 0 ? 100 * hone_json_number(l, "macs", 0) / macs : 0);
        hone_table_cell(t, "%s", why);
    }
    if (t) hone_table_print(t, stdout, "");
    if (more)
        printf("%s%d layers are in int8 throughout%s\n", n ? "and " : "", more,
               every ? "" : "; --all lists them");
}
/* Forms that change weights: matrices, and what is lost of them. */
static void put_share(hone_table *t, const hone_json *m, const char *name) {
    if (hone_json_get(m, name)) hone_table_cell(t, "%.1f dB", of(m, name));
    else hone_table_cell(t, "%s", "");
}
static void tell_matrices(const hone_json *all, bool every) {
    static const char *const head[] = {"weights", "read by",      "type",        "rows", "columns",
                                       "block",   "weights kept", "output kept", ""};
    int n = 0, tables = 0;
    for (const hone_json *m = all->first; m; m = m->next)
        n++, tables += hone_json_get(m, "table") && of(m, "columns") > 0 &&
                       hone_json_get(m, "table")->type == HONE_JSON_TRUE;
    printf("weights %d matrices%s%s\n", n, tables ? ", tables among them" : "",
           every ? "" : "; --all lists them");
    hone_table *t = every ? hone_table_create("lllrrrrrl", head) : NULL;
    for (const hone_json *m = all->first; m && t; m = m->next) {
        hone_table_cell(t, "%s", hone_json_text(m, "name", ""));
        hone_table_cell(t, "%s", hone_json_text(m, "node", ""));
        hone_table_cell(t, "%s", hone_json_text(m, "type", ""));
        hone_table_cell(t, "%.0f", of(m, "rows")), hone_table_cell(t, "%.0f", of(m, "columns")),
            hone_table_cell(t, "%.0f", of(m, "block"));
        put_share(t, m, "weights_db"), put_share(t, m, "output_db");
        hone_table_cell(t, "%s", hone_json_get(m, "smoothed") ? "smoothed" : "");
    }
    if (t) hone_table_print(t, stdout, "");
}
static void tell_kept(const hone_json *kept) {
    for (const hone_json *k = kept->first; k; k = k->next)
        hone_print(stdout, "kept    %s (%s) stays f32: '%s' %s\n", hone_json_text(k, "node", ""),
                   hone_json_text(k, "op", ""), hone_json_text(k, "value", ""), hone_json_text(k, "why", ""));
}
/* What no form reaches. */
static void tell_bodies(const hone_json *r) {
    const hone_json *all = hone_json_get(r, "bodies");
    for (const hone_json *b = all ? all->first : NULL; b; b = b->next)
        hone_print(stdout, "bodies  %s '%s': %.0f layer%s in its bodies stay%s as %s\n",
                   hone_json_text(b, "op", ""), hone_json_text(b, "node", ""), of(b, "layers"),
                   of(b, "layers") == 1 ? "" : "s", of(b, "layers") == 1 ? "s" : "",
                   of(b, "layers") == 1 ? "it is" : "they are");
}
/* Error against time and size: a line a mixture, the least time and size first seen as bars. */
static void tell_mixtures(const hone_json *r) {
    enum { WIDE = 24 };
    static const char *const head[] = {"layers in f32", "nearness", "same largest", "steps", "", "weights"};
    const hone_json *all = hone_json_get(r, "mixtures");
    double most = 0;
    for (const hone_json *m = all->first; m; m = m->next) most = fmax(most, of(m, "steps_us"));
    hone_table *t = hone_table_create("rrrrlr", head);
    for (const hone_json *m = all->first; m; m = m->next) {
        char bar[WIDE + 1];
        const hone_json *q = hone_json_get(m, "quality");
        const double top1 = of(q, "top1");
        const int n = most > 0 ? (int)(WIDE * of(m, "steps_us") / most) : 0;
        memset(bar, '=', WIDE);
        bar[n < 0 ? 0 : n > WIDE ? WIDE : n] = 0;
        hone_table_cell(t, "%.0f%s", of(m, "layers_f32"),
                        strcmp(hone_json_text(m, "what", ""), "written") ? "" : " (written)");
        if (of(q, "sqnr_db") >= 200) hone_table_cell(t, "%s", "as f32");
        else put_db(t, of(q, "sqnr_db"));
        if (top1 == top1) hone_table_cell(t, "%.1f %%", 100 * top1);
        else hone_table_cell(t, "%s", "");
        hone_table_cell(t, "%s", hone_text_ms(of(m, "steps_us") / 1e3));
        hone_table_cell(t, "%s", bar);
        hone_table_cell(t, "%s", hone_text_bytes(of(m, "weight_bytes")));
    }
    hone_table_print(t, stdout, "");
}
/* By the caller's metric, where it is a number of the model's own. */
static void tell_metric(const hone_json *r, const hone_json *q) {
    static const struct {
        const char *name, *base, *title;
    } numbers[] = {{"perplexity", "perplexity_f32", "perplexity"}, {"measure", "measure_f32", "measure"}};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        const double base = of(r, numbers[k].base), now = of(q ? q : r, numbers[k].name);
        if (base == base && now == now) printf("%-7s %.6g, in f32 %.6g\n", numbers[k].title, now, base);
    }
    if (of(r, "loss") > of(r, "allowed"))
        hone_args_warn("by %s %.4g is lost, and %.4g was allowed: --float-share keeps more from staying f32",
                       hone_json_text(r, "metric", ""), of(r, "loss"), of(r, "allowed"));
}
void hone_quantize_tell(const hone_quantize_told *j, const hone_json *r) {
    const hone_json *q = hone_json_get(r, "quality");
    struct stat st = {0}, was = {0};
    (void)stat(j->to, &st);
    const bool both = stat(j->from, &was) == 0 && was.st_size > 0;
    hone_print(stdout, "%s%s%s  ONNX, %s", hone_paint(stdout, HONE_BOLD), j->to,
               hone_paint(stdout, HONE_PLAIN), hone_text_bytes((double)st.st_size));
    if (both)
        printf(", %.2f of %s", (double)st.st_size / (double)was.st_size,
               hone_text_bytes((double)was.st_size));
    printf("\n");
    if (hone_json_get(r, "layers")) {
        const double macs = of(r, "macs"), whole = of(r, "macs_int8");
        printf("layers  %.0f in int8, %.0f in f32; %.1f %% of the multiply-adds in int8\n",
               of(r, "layers_int8"), of(r, "layers_f32"), macs > 0 ? 100 * whole / macs : 0);
        const double seen = of(r, "calibrated"), judged = of(r, "judged");
        if (j->samples < 2) printf("seen    one sample, for ranges and to judge\n");
        else
            printf("seen    %.0f sample%s for ranges, %.0f other%s to judge\n", seen, seen == 1 ? "" : "s",
                   judged, judged == 1 ? "" : "s");
        if (j->samples < FEW)
            hone_args_warn("%lld sample%s say little of what the model will see: 50 to 100 are usual",
                           (long long)j->samples, j->samples == 1 ? "" : "s");
    }
    if (q) {
        printf("nearness %.1f dB, cosine %.5f", of(q, "sqnr_db"), of(q, "cosine"));
        if (of(q, "top1") == of(q, "top1"))
            printf(", %.1f %% of the largest outputs the same", 100 * of(q, "top1"));
        printf(" as in f32\n");
    }
    tell_metric(r, q);
    tell_bodies(r);
    const double f = of(r, "float_ms"), i = of(r, "int_ms");
    if (f == f && i > 0) {
        printf("time    %s, %.2f times as fast as in f32 (%s)\n", hone_text_ms(i), f / i, hone_text_ms(f));
        if (i > f && strcmp(hone_json_text(r, "target", ""), "size") == 0)
            printf("        slower on this machine: --target speed leaves in f32 what integers slow down\n");
        if (of(r, "layers_int8") == 0 && of(r, "layers_f32") > 0)
            printf("        nothing of it is faster in integers on this machine: all of it stays f32; "
                   "--target size "
                   "makes it small\n");
    }
    const hone_json *left = hone_json_get(r, "left");
    if (left && left->first) printf("left    for a limit of %.0f s: ", of(r, "limit_s"));
    for (const hone_json *k = left ? left->first : NULL; k; k = k->next)
        hone_print(stdout, k->next ? "%s, " : "%s\n", k->text);
    if (hone_json_get(r, "mixtures")) tell_mixtures(r);
    if (hone_json_get(r, "layers")) tell_layers(r, j->every);
    if (hone_json_get(r, "matrices")) tell_matrices(hone_json_get(r, "matrices"), j->every);
    if (hone_json_get(r, "kept")) tell_kept(hone_json_get(r, "kept"));
}

/* ---- a page -------------------------------------------------------------------------------------------- */
int hone_quantize_page(const hone_quantize_told *j, const char *report, const char *file) {
    hone_page page;
    struct stat st;
    int rc = hone_page_begin("--report", file, hone_quantize_html, &page);
    if (rc) return rc;
    fputs("{\"version\": ", page.out.to);
    hone_page_text(&page, hone_version());
    if (stat(j->from, &st) == 0) fprintf(page.out.to, ", \"from_bytes\": %lld", (long long)st.st_size);
    if (stat(j->to, &st) == 0) fprintf(page.out.to, ", \"to_bytes\": %lld", (long long)st.st_size);
    fputs(", \"report\": ", page.out.to);
    hone_page_json(&page, report);
    fputs("}", page.out.to);
    return hone_page_end(&page, true, file, stderr);
}
