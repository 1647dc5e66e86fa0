/* SPDX-License-Identifier: Apache-2.0
   profile_tell: what hone profile has measured, as a table or JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "load.h"
#include "profile.h"
#include "show.h"
#include "table.h"
#include "term.h"

static const char *const bounds[] = {"", "arithmetic", "memory", "cache"};
/* Which roof a row is nearer to, and how near. What moves bytes faster than memory can has them in caches,
 * whose roof is not measured. */
hone_roofs hone_profile_roofs(const hone_profiled *j, const hone_profile_row *r) {
    const double s = r->ns * 1e-9, memory = 2 * j->speed.copy_bytes_per_s,
                 arithmetic = j->speed.f32_flops_per_s;
    hone_roofs f = {NAN, NAN, NAN, HONE_BOUND_NOT_KNOWN};
    if (!(s > 0) || !isfinite(r->flops) || !(memory > 0) || !(arithmetic > 0)) return f;
    f.arithmetic = r->flops / s / arithmetic, f.memory = r->bytes / s / memory;
    f.share = fmax(f.arithmetic, f.memory);
    f.by = f.arithmetic >= f.memory ? HONE_BOUND_ARITHMETIC
           : f.memory > 1           ? HONE_BOUND_CACHE
                                    : HONE_BOUND_MEMORY;
    if (f.by == HONE_BOUND_CACHE) f.share = f.arithmetic;
    return f;
}
static double launches_of(const hone_profiled *j) {
    double n = 0;
    for (int k = 0; k < j->n; k++) n += j->row[k].launches;
    return n;
}
static void put_rate(hone_table *t, double v) {
    if (!(v >= 0)) hone_table_cell(t, "?");
    else hone_table_cell(t, "%.*f", v >= 100 ? 0 : v >= 10 ? 1 : 2, v);
}
/* What both tables begin with: share, time, the row's name, and its op or how many nodes it stands for. */
static void put_row(hone_table *t, const hone_profiled *j, const hone_profile_row *r,
                    hone_profile_grouping by) {
    hone_table_cell(t, "%.1f %%", 100 * r->ns / j->steps_ns);
    hone_table_cell(t, "%s", hone_text_ms(r->ns * 1e-6));
    hone_table_cell(t, "%s",
                    by == HONE_PROFILE_BY_NODE ? r->node
                    : by == HONE_PROFILE_BY_OP ? r->op
                                               : r->tactic);
    if (by == HONE_PROFILE_BY_NODE) hone_table_cell(t, "%s", r->op);
    else hone_table_cell(t, "%d", r->nodes);
}
static void tell_host(const hone_profiled *j, hone_profile_grouping by) {
    static const char *const head[3][9] = {
        {"share", "time", "node", "op", "GFLOP/s", "GB/s", "of the roof", "tactic"},
        {"share", "time", "op", "nodes", "GFLOP/s", "GB/s", "of the roof", "tactic"},
        {"share", "time", "tactic", "nodes", "GFLOP/s", "GB/s", "of the roof"}};
    hone_table *t = hone_table_create(by == HONE_PROFILE_BY_NODE ? "rrllrrrl"
                                      : by == HONE_PROFILE_BY_OP ? "rrlrrrrl"
                                                                 : "rrlrrrr",
                                      head[by]);
    const int shown = j->top > 0 && j->top < j->n ? j->top : j->n;
    double rest = 0;
    for (int k = 0; k < j->n; k++) {
        const hone_profile_row *r = j->row + k;
        if (k >= shown) {
            rest += r->ns;
            continue;
        }
        const hone_roofs f = hone_profile_roofs(j, r);
        put_row(t, j, r, by);
        put_rate(t, r->flops / r->ns), put_rate(t, r->bytes / r->ns);
        if (f.by == HONE_BOUND_NOT_KNOWN) hone_table_cell(t, "?");
        else if (f.by == HONE_BOUND_CACHE) hone_table_cell(t, "cache");
        else hone_table_cell(t, "%s %.0f %%", bounds[f.by], 100 * f.share);
        if (by != HONE_PROFILE_BY_TACTIC) hone_table_cell(t, "%s", r->tactic);
    }
    hone_table_print(t, stdout, "");
    if (j->n > shown)
        hone_print(stdout, "and %d more, together %.1f %%; --top 0 lists all\n", j->n - shown,
                   100 * rest / j->steps_ns);
}
static void sum_host(const hone_profiled *j) {
    hone_print(
        stdout, "run     %s%s%s median of %d; %.0f %% of it in %s; the first, with planning, took %s\n",
        hone_paint(stdout, HONE_BOLD), hone_text_ms(j->median_ms), hone_paint(stdout, HONE_PLAIN), j->times.n,
        fmin(100, j->steps_ns * 1e-4 / j->median_ms), "the steps above", hone_text_ms(j->first_ms));
    if (j->speed.f32_flops_per_s > 0)
        hone_print(stdout,
                   "roofs   %s/s of f32 multiply-adds and %s/s of memory, read and written, on %d thread%s, "
                   "measured just now\n",
                   hone_text_flops(j->speed.f32_flops_per_s), hone_text_bytes(2 * j->speed.copy_bytes_per_s),
                   j->speed.threads, j->speed.threads == 1 ? "" : "s");
}

/* ---- a device ---- */
static void put_share(hone_table *t, double v) {
    if (!isfinite(v)) hone_table_cell(t, "?");
    else hone_table_cell(t, "%.0f %%", 100 * v);
}
static void tell_device(const hone_profiled *j, hone_profile_grouping by) {
    static const char *const head[3][11] = {
        {"share", "time", "node", "op", "launches", "flops", "bytes", "of products", "of memory", "tactic"},
        {"share", "time", "op", "nodes", "launches", "flops", "bytes", "of products", "of memory", "tactic"},
        {"share", "time", "tactic", "nodes", "launches", "flops", "bytes", "of products", "of memory"}};
    hone_table *t = hone_table_create(by == HONE_PROFILE_BY_NODE ? "rrllrrrrrl"
                                      : by == HONE_PROFILE_BY_OP ? "rrlrrrrrrl"
                                                                 : "rrlrrrrrr",
                                      head[by]);
    const int shown = j->top > 0 && j->top < j->n ? j->top : j->n;
    double rest = 0;
    for (int k = 0; k < j->n; k++) {
        const hone_profile_row *r = j->row + k;
        if (k >= shown) {
            rest += r->ns;
            continue;
        }
        const hone_roofs f = hone_profile_roofs(j, r);
        put_row(t, j, r, by);
        hone_table_cell(t, "%.0f", r->launches);
        hone_table_cell(t, "%s", isfinite(r->flops) ? hone_text_flops(r->flops) : "?");
        hone_table_cell(t, "%s", isfinite(r->bytes) ? hone_text_bytes(r->bytes) : "?");
        put_share(t, f.arithmetic), put_share(t, f.memory);
        if (by != HONE_PROFILE_BY_TACTIC) hone_table_cell(t, "%s", r->tactic);
    }
    hone_table_print(t, stdout, "");
    if (j->n > shown)
        hone_print(stdout, "and %d more, together %.1f %%; --top 0 lists all\n", j->n - shown,
                   100 * rest / j->steps_ns);
}
static void sum_device(const hone_profiled *j) {
    const double steps = j->steps_ns * 1e-6, between = j->median_ms - steps;
    hone_print(stdout,
               "run      %s%s%s median of %d, inputs and outputs on the device; the first, with planning and "
               "compiling, took %s\n",
               hone_paint(stdout, HONE_BOLD), hone_text_ms(j->median_ms), hone_paint(stdout, HONE_PLAIN),
               j->times.n, hone_text_ms(j->first_ms));
    hone_print(stdout, "kernels  %s, %.0f %% of it, in %.0f launches, each step replayed by itself\n",
               hone_text_ms(steps), 100 * steps / j->median_ms, launches_of(j));
    if (between >= 0)
        hone_print(stdout, "between  %s, %.0f %% of it: launches, gaps, and work on the host\n",
                   hone_text_ms(between), 100 * between / j->median_ms);
    else hone_print(stdout, "between  nothing: kernels of the run overlap by %s\n", hone_text_ms(-between));
    if (j->speed.f32_flops_per_s > 0) {
        hone_print(stdout, "roofs    %s/s of large %s products", hone_text_flops(j->speed.f32_flops_per_s),
                   j->precision ? j->precision : "f32");
        hone_print(stdout, " and %s/s of the device's memory, read and written, measured just now\n",
                   hone_text_bytes(2 * j->speed.copy_bytes_per_s));
    }
}

void hone_profile_tell(const hone_profiled *j, hone_profile_grouping by) {
    if (j->away) tell_device(j, by);
    else tell_host(j, by);
    if (hone_args_quiet()) return;
    putchar('\n');
    if (j->away) sum_device(j);
    else sum_host(j);
    if (*j->feed.guessed)
        hone_print(stdout, "dims    %s: a guess; --dim NAME=SIZE says otherwise\n", j->feed.guessed);
    for (int k = 0; k < j->n_advice; k++)
        hone_print(stdout, "%s  %s.\n", k ? "      " : "advice", j->advice[k]);
}

/* ---- JSON ---- */
static void put_number(const char *key, double v) { hone_json_member_number(stdout, key, v); }
void hone_profile_tell_json(const hone_profiled *j, hone_profile_grouping by) {
    hone_args_answered();
    printf("{"), hone_json_first_text(stdout, "model", hone_model_shown(j->path));
    hone_json_member_text(stdout, "device", j->where.device ? j->where.device : "cpu");
    hone_json_member_text(stdout, "precision", j->precision ? j->precision : "f32");
    printf(", \"threads\": %d, \"runs\": %d", j->speed.threads, j->times.n);
    put_number("first_ms", j->first_ms), put_number("median_ms", j->median_ms),
        put_number("steps_ms", j->steps_ns * 1e-6);
    if (j->away)
        put_number("launches", launches_of(j)), put_number("between_ms", j->median_ms - j->steps_ns * 1e-6);
    printf(", \"roofs\": {\"flops_per_s\": %.0f, \"bytes_per_s\": %.0f}, \"inputs\": [",
           j->speed.f32_flops_per_s, 2 * j->speed.copy_bytes_per_s);
    for (int k = 0; k < j->n_in; k++) {
        printf(k ? ", {" : "{"), hone_json_first_text(stdout, "name", hone_model_input(j->model, k)->name);
        hone_json_member_text(stdout, "from", j->fed[k].from);
        printf(", \"value\": "), hone_show_json(stdout, j->fed[k].value), printf("}");
    }
    printf("], \"by\": \"%s\", \"rows\": [", hone_profile_groupings[by]);
    for (int k = 0; k < j->n; k++) {
        const hone_profile_row *r = j->row + k;
        const hone_roofs f = hone_profile_roofs(j, r);
        printf(k ? ",\n  {" : "\n  {");
        hone_json_first_text(stdout,
                             by == HONE_PROFILE_BY_NODE ? "node"
                             : by == HONE_PROFILE_BY_OP ? "op"
                                                        : "tactic",
                             by == HONE_PROFILE_BY_NODE ? r->node
                             : by == HONE_PROFILE_BY_OP ? r->op
                                                        : r->tactic);
        if (by == HONE_PROFILE_BY_NODE) hone_json_member_text(stdout, "op", r->op);
        if (by != HONE_PROFILE_BY_TACTIC) hone_json_member_text(stdout, "tactic", r->tactic);
        printf(", \"nodes\": %d, \"steps\": %d", r->nodes, r->steps);
        if (j->away) printf(", \"launches\": %.0f", r->launches);
        put_number("ms", r->ns * 1e-6), put_number("share", r->ns / j->steps_ns);
        put_number("flops", r->flops), put_number("bytes", r->bytes);
        put_number("gflops_per_s", r->flops / r->ns), put_number("gbytes_per_s", r->bytes / r->ns);
        if (f.by == HONE_BOUND_NOT_KNOWN) printf(", \"bound\": null");
        else hone_json_member_text(stdout, "bound", bounds[f.by]);
        put_number("of_roof", f.by == HONE_BOUND_CACHE ? NAN : f.share),
            put_number("of_arithmetic", f.arithmetic), put_number("of_memory", f.memory);
        printf("}");
    }
    printf("],\n \"advice\": [");
    for (int k = 0; k < j->n_advice; k++) {
        if (k) printf(", ");
        hone_json_put_text(stdout, j->advice[k], strlen(j->advice[k]));
    }
    printf("]}\n");
}
