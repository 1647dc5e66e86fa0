/* SPDX-License-Identifier: Apache-2.0
   compare_page: a comparison as JSON, and as the page compare.html with that JSON in it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "json.h"
#include "page.h"

extern const char hone_compare_html[];

static void put_numbers(FILE *to, const char *key, const double *v, int n) {
    fprintf(to, ", \"%s\": [", key);
    for (int k = 0; k < n; k++) {
        if (k) fputs(", ", to);
        hone_json_put_number(to, v[k]);
    }
    fputc(']', to);
}

static void put_entry(FILE *to, const hone_contest *c, int k) {
    const hone_entry *e = &c->entry[k];
    bool ran = !*e->why;
    fputc('{', to);
    hone_json_first_text(to, "runtime", e->runtime->name);
    fprintf(to, ", \"ok\": %s", ran ? "true" : "false");
    hone_json_member_text(to, "why", e->why);
    if (ran) {
        hone_json_member_number(to, "median_ms", e->median_ms);
        hone_json_member_number(to, "min_ms", e->stats.min);
        hone_json_member_number(to, "p90_ms", e->stats.p90);
        hone_json_member_number(to, "spread", e->stats.spread);
        fprintf(to, ", \"runs\": %d", e->times.n);
        put_numbers(to, "rounds_ms", e->round, c->rounds);
        hone_json_member_number(to, "load_ms", e->load_ms);
        hone_json_member_number(to, "first_ms", e->first_ms);
        hone_json_member_number(to, "peak_bytes", e->peak_bytes);
        hone_json_member_number(to, "before_bytes", e->before_bytes);
        fprintf(to, ", \"right\": %s", e->right ? "true" : "false");
        hone_json_member_number(to, "max_abs", e->max_abs);
        hone_json_member_number(to, "max_rel", e->max_rel);
        if (k && !*c->entry[0].why) {
            hone_json_member_number(to, "hone_faster", e->slower.ratio);
            put_numbers(to, "hone_faster_95", (const double[]){e->slower.low, e->slower.high}, 2);
        }
    }
    fputc('}', to);
}

static void put_contest(FILE *to, const hone_contest *c) {
    fputc('{', to);
    hone_json_first_text(to, "model", c->name);
    hone_json_member_text(to, "why", c->why);
    hone_json_member_text(to, "inputs", c->inputs ? c->inputs : "");
    fprintf(to, ", \"rounds\": %d, \"answers\": %d, \"agree\": %d, \"majority\": %s", c->rounds, c->answers,
            c->agree, c->majority ? "true" : "false");
    hone_json_member_text(to, "reference", c->reference >= 0 ? c->entry[c->reference].runtime->name : "");
    hone_json_member_text(to, "best_peer", c->best >= 0 ? c->entry[c->best].runtime->name : "");
    bool both = c->best >= 0 && !*c->entry[0].why && c->entry[0].right;
    hone_json_member_number(to, "hone_faster", both ? c->entry[c->best].slower.ratio : NAN);
    hone_json_member_number(to, "ratio", both ? 1 / c->entry[c->best].slower.ratio : NAN);
    fprintf(to, ", \"entries\": [");
    for (int k = 0; k < HONE_RUNTIMES && !*c->why; k++) {
        fputs(k ? ",\n   " : "\n   ", to);
        put_entry(to, c, k);
    }
    fprintf(to, "]}");
}

void hone_compare_json(FILE *to, const hone_comparison *a) {
    int counted;
    double mean = hone_compare_mean(a, &counted);
    fputc('{', to);
    hone_json_first_text(to, "version", hone_version());
    hone_json_member_text(to, "machine", a->machine);
    hone_json_member_text(to, "device", a->wish->where.device ? a->wish->where.device : "cpu");
    fprintf(to, ", \"precision\": \"%s\", \"threads\": %d", a->wish->precision, a->wish->threads);
    hone_json_member_number(to, "tolerance", a->wish->tolerance);
    fprintf(to, ",\n \"runtimes\": [");
    for (int k = 0; k < HONE_RUNTIMES; k++) {
        const hone_runtime *r = &a->runtime[k];
        bool found = !k || r->python;
        fputs(k ? ",\n  {" : "\n  {", to);
        hone_json_first_text(to, "name", r->name);
        hone_json_member_text(to, "label", r->label);
        fprintf(to, ", \"found\": %s", found ? "true" : "false");
        hone_json_member_text(to, "version", r->version);
        hone_json_member_text(to, "why", found ? "" : r->wanted ? r->why : "not asked for");
        fputc('}', to);
    }
    fprintf(to, "],\n \"models\": [");
    for (int k = 0; k < a->n; k++) {
        fputs(k ? ",\n  " : "\n  ", to);
        put_contest(to, &a->contest[k]);
    }
    fprintf(to, "],\n \"compared\": %d", counted);
    hone_json_member_number(to, "hone_faster_mean", counted ? mean : NAN);
    fprintf(to, "}\n");
}

int hone_compare_page(const hone_comparison *a, const char *file) {
    char *json = NULL;
    size_t bytes = 0;
    hone_page page;
    int rc = hone_page_begin("--html", file, hone_compare_html, &page);
    if (rc) return rc;
    FILE *memory = open_memstream(&json, &bytes);
    if (memory) hone_compare_json(memory, a), fclose(memory);
    if (json) hone_page_json(&page, json);
    rc = hone_page_end(&page, json != NULL, file, stderr);
    if (!json) rc = hone_args_wrong("no memory for a page");
    free(json);
    return rc;
}
