/* SPDX-License-Identifier: Apache-2.0
   bench_tell: what `hone bench` prints: one row in lines, a sweep as a table, either as JSON; and what the
   numbers do not say by themselves, as warnings in words. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "hone/hone.h"
#include "load.h"
#include "table.h"
#include "show.h"
#include "term.h"

enum { SAMPLES = 1000 /* that a result keeps */ };
static const char *const verdicts[] = {"slower", "no significant difference", "faster"}; /* -1, 0, 1 */

/* ---- what the numbers mean ---- */

void hone_bench_warn(hone_bench_result *r, const char *format, ...) {
    va_list args;
    if (r->warnings == (int)(sizeof r->warning / sizeof *r->warning)) return;
    va_start(args, format);
    vsnprintf(r->warning[r->warnings++], sizeof *r->warning, format, args);
    va_end(args);
}

static void warn_small(hone_bench_result *r) {
    const hone_json *inputs = hone_json_get(r->hello, "inputs");
    for (const hone_json *i = inputs ? inputs->first : NULL; i; i = i->next) {
        const hone_json *small = hone_json_get(i, "small");
        if (!small || small->type != HONE_JSON_TRUE) continue;
        hone_bench_warn(r,
                        "free dims are guesses, so input '%.40s' is %.60s: is that what is used? --dim "
                        "NAME=SIZE says others",
                        hone_json_text(i, "name", ""), hone_json_text(i, "type", ""));
        return;
    }
}

void hone_bench_judge(const hone_bench *b, hone_bench_result *r) {
    enum { RUNS_FEW = 20, SHORT_MS = 200 };
    static const double noisy = 0.05, drifting = 0.03, far = 3;
    hone_stats_of(r->times.ms, r->times.n, &r->stats);
    /* Runs that took turns with another process are no even stretch of time. */
    r->trend = r->against.pairs ? 0 : hone_stats_trend(r->times.ms, r->times.n);
    const hone_stats *s = &r->stats;
    warn_small(r);
    if (s->n < RUNS_FEW)
        hone_bench_warn(r,
                        "too short: %d run%s; p90 and p99 are little more than the slowest (--runs or "
                        "--seconds asks for more)",
                        s->n, s->n == 1 ? "" : "s");
    else if (s->sum < SHORT_MS)
        hone_bench_warn(r,
                        "too short: all runs together took %s; one disturbance counts much (--runs or "
                        "--seconds asks for more)",
                        hone_text_ms(s->sum));
    if (s->spread > noisy && b->load > 1)
        hone_bench_warn(r,
                        "noise: the middle half of the runs spreads over %.0f %% of the median; other "
                        "processes were busy (load %.1f)",
                        s->spread * 100, b->load);
    else if (s->spread > noisy)
        hone_bench_warn(r,
                        "noise: the middle half of the runs spreads over %.0f %% of the median; something "
                        "else may use the machine",
                        s->spread * 100);
    if (s->spread <= noisy && s->n >= 100 && s->p99 > far * s->median)
        hone_bench_warn(r,
                        "noise: one run in a hundred took %.0f times the median or more; something else uses "
                        "the machine now and then",
                        s->p99 / s->median);
    if (r->trend > drifting)
        hone_bench_warn(r,
                        "throttling? runs at the end took %.0f %% longer than at the start: the CPU grows "
                        "hot, or others grow busy",
                        r->trend * 100);
    if (r->trend < -drifting)
        hone_bench_warn(r,
                        "runs at the end took %.0f %% less than at the start: the warm-up was too short "
                        "(--warmup), or others went idle",
                        -r->trend * 100);
}

/* The least time that arithmetic, or memory where the bytes fit no cache, would allow, as a share of the
   median. */
/* of the roofline; NAN: not known */
static double share_of(const hone_bench_result *r, bool *memory) {
    double compute = r->flops / r->peak_flops_per_s, moving = r->bytes / r->peak_bytes_per_s;
    *memory = false;
    if (!(r->flops > 0) || !(r->peak_flops_per_s > 0)) return NAN;
    if (r->far && moving > compute) compute = moving, *memory = true;
    return compute * 1000 / r->stats.median;
}

static double per_second(const hone_bench_result *r) {
    return 1000.0 * r->stats.n * (r->row.batch ? r->row.batch : 1) / r->stats.sum;
}

/* ---- for people ---- */

static const char *text_rate(double v) {
    static char text[8][32];
    static int next;
    char *out = text[next++ % 8];
    snprintf(out, sizeof text[0], "%.*f", v >= 100 ? 0 : v >= 10 ? 1 : v >= 1 ? 2 : 4, v);
    return out;
}
static const char *text_percent(double v) {
    static char text[8][32];
    static int next;
    char *out = text[next++ % 8];
    if (isfinite(v)) snprintf(out, sizeof text[0], "%.*f %%", v >= 0.1 ? 0 : v >= 0.01 ? 1 : 2, v * 100);
    else snprintf(out, sizeof text[0], "-");
    return out;
}

static void tell_inputs(const hone_bench_result *r) {
    enum { MOST = 4 };
    const hone_json *inputs = hone_json_get(r->hello, "inputs");
    int shown = 0;
    for (const hone_json *i = inputs ? inputs->first : NULL; i && shown < MOST; i = i->next, shown++)
        hone_print(stdout, "input       %s  %s  %s%s%s\n", hone_json_text(i, "name", ""),
                   hone_json_text(i, "type", ""), hone_paint(stdout, HONE_DIM), hone_json_text(i, "from", ""),
                   hone_paint(stdout, HONE_PLAIN));
    if (inputs && inputs->n > shown) hone_print(stdout, "            and %d more\n", inputs->n - shown);
}

static void tell_roofline(const hone_bench_result *r) {
    bool memory;
    double share = share_of(r, &memory), s = r->stats.median / 1000;
    if (!isfinite(share)) printf("roofline    not known: the work of this model depends on its numbers\n");
    else if (memory)
        hone_print(stdout,
                   "roofline    %s of what memory allows: %s/s of %s/s, measured just now; nothing keeps %s "
                   "of parameters near\n",
                   text_percent(share), hone_text_bytes(r->bytes / s), hone_text_bytes(r->peak_bytes_per_s),
                   hone_text_bytes(r->bytes));
    else
        hone_print(
            stdout,
            "roofline    %s of what arithmetic allows: %s/s of %s/s (f32 multiply-add, measured just now)\n",
            text_percent(share), hone_text_flops(r->flops / s), hone_text_flops(r->peak_flops_per_s));
}

static hone_colour verdict_colour(int verdict) {
    return verdict > 0 ? HONE_GREEN : verdict < 0 ? HONE_RED : HONE_PLAIN;
}

static void tell_against(const hone_bench *b, const hone_bench_result *r, const char *indent) {
    const hone_ratio *q = &r->against.ratio;
    if (!r->against.there) return;
    hone_print(stdout, "%s%s%s%s, %.3f x as fast as %s (95 %% interval %.3f x to %.3f x); %s there\n", indent,
               hone_paint(stdout, verdict_colour(r->against.verdict)), verdicts[r->against.verdict + 1],
               hone_paint(stdout, HONE_PLAIN), q->ratio, b->against, q->low, q->high,
               hone_text_ms(r->against.base_ms));
    hone_print(stdout, "%*s", (int)strlen(indent), "");
    if (r->against.pairs)
        hone_print(stdout,
                   "from %d rounds in turn with the program that made it, in %d pair%s of processes\n",
                   r->against.rounds, r->against.pairs, r->against.pairs == 1 ? "" : "s");
    else
        hone_print(stdout,
                   "from its stored times, not in turn: what changed on the machine since counts as "
                   "difference (%s)\n",
                   r->against.why);
    if (*r->against.note)
        hone_print(stdout, "%*snot the same there: %s\n", (int)strlen(indent), "", r->against.note);
}

static void tell_one(const hone_bench *b) {
    const hone_bench_result *r = b->result;
    const hone_stats *s = &r->stats;
    hone_print(stdout, "model       %s, %s, %d thread%s", hone_model_shown(r->row.model), r->row.precision,
               r->row.threads, r->row.threads == 1 ? "" : "s");
    if (r->row.pause_ms > 0) hone_print(stdout, ", %g ms before each run", r->row.pause_ms);
    if (r->row.batch) hone_print(stdout, ", batch %d", r->row.batch);
    hone_print(stdout, ", cpu%s%s\n", *b->cpu ? ": " : "", b->cpu);
    tell_inputs(r);
    hone_print(
        stdout,
        "latency     %s%s%s median, %s p90, %s p99, spread %s  (%d run%s in %s, after %d to warm up)\n",
        hone_paint(stdout, HONE_BOLD), hone_text_ms(s->median), hone_paint(stdout, HONE_PLAIN),
        hone_text_ms(s->p90), hone_text_ms(s->p99), text_percent(s->spread), s->n, s->n == 1 ? "" : "s",
        hone_text_ms(s->sum), r->warmup);
    if (!(r->row.pause_ms > 0))
        hone_print(stdout, "throughput  %s %s/s\n", text_rate(per_second(r)),
                   r->row.batch ? "items" : "runs");
    hone_print(stdout, "load        %s, then %s for the first run, with planning\n", hone_text_ms(r->load_ms),
               hone_text_ms(r->first_ms));
    hone_print(stdout, "memory      %s peak, of a process that does only this\n",
               hone_text_bytes(r->peak_bytes));
    tell_roofline(r);
    tell_against(b, r, "against     ");
    char wisdom[512];
    if (hone_wisdom_words(hone_json_get(r->hello, "wisdom"), wisdom, sizeof wisdom))
        hone_print(stdout, "wisdom      %s\n", wisdom);
    for (int k = 0; k < r->warnings; k++)
        hone_print(stdout, "%swarning%s     %s\n", hone_paint(stdout, HONE_RED),
                   hone_paint(stdout, HONE_PLAIN), r->warning[k]);
}

static void tell_name(const hone_bench_result *r, char *out, size_t room) {
    int n = snprintf(out, room, "%.120s", hone_model_shown(r->row.model));
    if (r->row.batch) n += snprintf(out + n, room - (size_t)n, ", batch %d", r->row.batch);
    snprintf(out + n, room - (size_t)n, ", %d thread%s", r->row.threads, r->row.threads == 1 ? "" : "s");
}

static void tell_sweep(const hone_bench *b) {
    static const char *const head[] = {"model", "batch",  "threads", "precision",  "median",
                                       "p90",   "p99",    "spread",  "throughput", "load",
                                       "first", "memory", "roofline"};
    hone_table *t = hone_table_create("lrrlrrrrrrrrr", head);
    hone_print(stdout, "cpu         %s; each row in a process of its own\n\n", *b->cpu ? b->cpu : "unnamed");
    for (const hone_bench_result *r = b->result; r < b->result + b->n; r++) {
        bool memory;
        hone_table_cell(t, "%s", hone_model_shown(r->row.model));
        if (r->row.batch) hone_table_cell(t, "%d", r->row.batch);
        else hone_table_cell(t, "-");
        hone_table_cell(t, "%d", r->row.threads);
        hone_table_cell(t, "%s", r->row.precision);
        if (r->failed) {
            hone_table_cell(t, "failed");
            for (int k = 0; k < 8; k++) hone_table_cell(t, "-");
            continue;
        }
        hone_table_cell(t, "%s", hone_text_ms(r->stats.median));
        hone_table_cell(t, "%s", hone_text_ms(r->stats.p90));
        hone_table_cell(t, "%s", hone_text_ms(r->stats.p99));
        hone_table_cell(t, "%s", text_percent(r->stats.spread));
        hone_table_cell(t, "%s %s/s", text_rate(per_second(r)), r->row.batch ? "items" : "runs");
        hone_table_cell(t, "%s", hone_text_ms(r->load_ms));
        hone_table_cell(t, "%s", hone_text_ms(r->first_ms));
        hone_table_cell(t, "%s", hone_text_bytes(r->peak_bytes));
        hone_table_cell(t, "%s", text_percent(share_of(r, &memory)));
    }
    hone_table_print(t, stdout, "");
    for (const hone_bench_result *r = b->result; r < b->result + b->n; r++) {
        char name[256];
        tell_name(r, name, sizeof name);
        if (r->against.there || r->warnings) hone_print(stdout, "\n%s\n", name);
        tell_against(b, r, "  ");
        for (int k = 0; k < r->warnings; k++)
            hone_print(stdout, "  %swarning%s  %s\n", hone_paint(stdout, HONE_RED),
                       hone_paint(stdout, HONE_PLAIN), r->warning[k]);
    }
}

void hone_bench_tell(const hone_bench *b) {
    if (b->n == 1) tell_one(b);
    else tell_sweep(b);
}

/* ---- for programs ---- */

static void put_inputs(FILE *to, const hone_bench_result *r) {
    const hone_json *inputs = hone_json_get(r->hello, "inputs");
    fprintf(to, ", \"inputs\": [");
    for (const hone_json *i = inputs ? inputs->first : NULL; i; i = i->next) {
        const char *name = hone_json_text(i, "name", "");
        fprintf(to, "%s{\"name\": ", i == inputs->first ? "" : ", ");
        hone_json_put_text(to, name, strlen(name));
        /* "f32[1,28]"; what is no tensor has no dims */
        const char *type = hone_json_text(i, "type", ""), *dims = strchr(type, '[');
        char dtype[16];
        snprintf(dtype, sizeof dtype, "%.*s", dims ? (int)(dims - type) : 0, type);
        hone_json_member_text(to, "type", type);
        hone_json_member_text(to, "dtype", dtype);
        fprintf(to, ", \"dims\": %s", dims ? dims : "null");
        hone_json_member_text(to, "from", hone_json_text(i, "from", ""));
        fputc('}', to);
    }
    fputc(']', to);
}

static void put_roofline(FILE *to, const hone_bench_result *r) {
    bool memory;
    double share = share_of(r, &memory);
    fprintf(to, ", \"roofline\": ");
    if (!isfinite(share)) {
        fprintf(to, "null");
        return;
    }
    fprintf(to, "{\"bound\": \"%s\"", memory ? "memory" : "arithmetic");
    hone_json_member_number(to, "share", share);
    hone_json_member_number(to, "flops", r->flops);
    hone_json_member_number(to, "bytes", r->bytes);
    hone_json_member_number(to, "peak_flops_per_s", r->peak_flops_per_s);
    hone_json_member_number(to, "peak_bytes_per_s", r->peak_bytes_per_s);
    fputc('}', to);
}

static void put_against(FILE *to, const hone_bench *b, const hone_bench_result *r) {
    if (!r->against.there) return;
    fprintf(to, ", \"against\": {\"verdict\": \"%s\"", verdicts[r->against.verdict + 1]);
    hone_json_member_text(to, "file", b->against);
    hone_json_member_number(to, "ratio", r->against.ratio.ratio);
    hone_json_member_number(to, "low", r->against.ratio.low);
    hone_json_member_number(to, "high", r->against.ratio.high);
    hone_json_member_number(to, "base_median_ms", r->against.base_ms);
    fprintf(to, ", \"interleaved\": %s, \"rounds\": %d, \"process_pairs\": %d",
            r->against.pairs ? "true" : "false", r->against.rounds, r->against.pairs);
    hone_json_member_text(to, "why_not_interleaved", r->against.why);
    hone_json_member_text(to, "not_the_same", r->against.note);
    fputc('}', to);
}

static void put_maker(FILE *to, const hone_bench_result *r) {
    char path[4096], folder[4096], mark[20] = "";
    const char *level = getenv("HONE_CPU");
    hone_program_self(path, sizeof path);
    hone_program_mark("/proc/self/exe", mark);
    fprintf(to, ", \"made_by\": {\"version\": \"%s\"", hone_version());
    hone_json_member_text(to, "hone", path);
    hone_json_member_text(to, "build", mark);
    hone_json_member_text(to, "folder", getcwd(folder, sizeof folder) ? folder : "");
    hone_json_member_text(to, "level", level ? level : "");
    fprintf(to, ", \"words\": ");
    hone_bench_words(to, &r->row);
    fputc('}', to);
}

static void put_result(FILE *to, const hone_bench *b, const hone_bench_result *r) {
    const hone_stats *s = &r->stats;
    int every = (s->n + SAMPLES - 1) / SAMPLES;
    fprintf(to, "{\"model\": ");
    hone_json_put_text(to, hone_model_shown(r->row.model), strlen(hone_model_shown(r->row.model)));
    hone_json_member_text(to, "device", b->device);
    hone_json_member_text(to, "cpu", b->cpu);
    hone_json_member_text(to, "precision", r->row.precision);
    hone_json_member_number(to, "pause_ms", r->row.pause_ms);
    fprintf(to, ", \"threads\": %d", r->row.threads);
    hone_json_member_number(to, "batch", r->row.batch ? r->row.batch : NAN);
    if (r->failed) {
        fprintf(to, ", \"failed\": true}");
        return;
    }
    put_inputs(to, r);
    fprintf(to, ", \"runs\": %d, \"warmup\": %d", s->n, r->warmup);
    hone_json_member_number(to, "median_ms", s->median);
    hone_json_member_number(to, "p90_ms", s->p90);
    hone_json_member_number(to, "p99_ms", s->p99);
    hone_json_member_number(to, "min_ms", s->min);
    hone_json_member_number(to, "max_ms", s->max);
    hone_json_member_number(to, "mean_ms", s->sum / s->n);
    hone_json_member_number(to, "spread_percent", s->spread * 100);
    hone_json_member_number(to, "trend_percent", r->trend * 100);
    hone_json_member_number(to, "throughput_per_s", per_second(r));
    hone_json_member_number(to, "load_ms", r->load_ms);
    hone_json_member_number(to, "first_ms", r->first_ms);
    hone_json_member_number(to, "peak_bytes", r->peak_bytes);
    put_roofline(to, r);
    char wisdom[512];
    if (hone_wisdom_words(hone_json_get(r->hello, "wisdom"), wisdom, sizeof wisdom))
        hone_json_member_text(to, "wisdom", wisdom);
    fprintf(to, ", \"warnings\": [");
    for (int k = 0; k < r->warnings; k++) {
        if (k) fprintf(to, ", ");
        hone_json_put_text(to, r->warning[k], strlen(r->warning[k]));
    }
    fputc(']', to);
    put_against(to, b, r);
    put_maker(to, r);
    fprintf(to, ", \"sample_every\": %d, \"samples_ms\": [", every);
    for (int k = 0; k < s->n; k += every) {
        if (k) fputc(',', to);
        hone_json_put_number(to, r->times.ms[k]);
    }
    fprintf(to, "]}");
}

void hone_bench_json(const hone_bench *b, FILE *to) {
    if (b->n > 1) fprintf(to, "{\"results\": [");
    for (int k = 0; k < b->n; k++) {
        if (k) fprintf(to, ",\n");
        put_result(to, b, &b->result[k]);
    }
    fprintf(to, "%s\n", b->n > 1 ? "]}" : "");
}
