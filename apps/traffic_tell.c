/* SPDX-License-Identifier: Apache-2.0
   traffic_tell: what was measured, as a table, as JSON, as CSV. One list of figures for the three. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "table.h"
#include "term.h"
#include "traffic.h"

static double part(const hone_traffic_level *l, double ns) { /* µs a request */
    return l->served.there && l->served.requests > 0 ? ns / l->served.requests / 1e3 : NAN;
}
static double items(const hone_traffic_report *r, const hone_traffic_level *l) {
    return l->per_s * (double)r->traffic->model.batch;
}

enum { FIGURES = 27 };
/* Name and value, in the order of the columns of CSV. */
static const char *figure(const hone_traffic_report *r, const hone_traffic_level *l, int k, double *v) {
    const hone_traffic_served *s = &l->served;
    const struct {
        const char *name;
        double v;
    } all[FIGURES] = {
        {"clients", l->clients ? l->clients : NAN},
        {"rate", l->rate > 0 ? l->rate : NAN},
        {"requests", (double)l->n},
        {"errors", (double)l->errors},
        {"seconds", l->seconds},
        {"windows", l->windows},
        {"requests_per_s", l->per_s},
        {"items_per_s", items(r, l)},
        {"mean_ms", l->mean_ms},
        {"p50_ms", l->p50.at},
        {"p50_low_ms", l->p50.low},
        {"p50_high_ms", l->p50.high},
        {"p90_ms", l->p90.at},
        {"p95_ms", l->p95.at},
        {"p99_ms", l->p99.at},
        {"p99_low_ms", l->p99.low},
        {"p99_high_ms", l->p99.high},
        {"max_ms", l->max_ms},
        {"late_p99_ms", l->clients ? NAN : l->late_ms},
        {"server_us", part(l, s->total)},
        {"queue_us", part(l, s->queue)},
        {"compute_input_us", part(l, s->input)},
        {"compute_infer_us", part(l, s->infer)},
        {"compute_output_us", part(l, s->output)},
        {"server_batch", s->there && s->executions > 0 ? s->inferences / s->executions : NAN},
        {"server_cpu_us", l->cpu_us},
        {"server_memory_bytes", l->memory_bytes},
    };
    *v = all[k].v;
    return all[k].name;
}

static const char *state(const hone_traffic_level *l) {
    return l->overloaded ? "overloaded" : !l->n ? "failed" : l->stable ? "stable" : "unstable";
}

void hone_traffic_json(const hone_traffic_report *r, FILE *to) {
    const hone_traffic_model *m = &r->traffic->model;
    fputc('{', to);
    hone_json_first_text(to, "url", r->url);
    hone_json_member_text(to, "protocol", r->traffic->protocol->name);
    hone_json_member_text(to, "server", m->server);
    hone_json_member_text(to, "model", m->name);
    hone_json_member_number(to, "batch", (double)m->batch);
    hone_json_member_number(to, "request_bytes", (double)r->traffic->request[0].n);
    fputs(", \"inputs\": [", to);
    for (int k = 0; k < m->n; k++) {
        const hone_traffic_input *in = &m->input[k];
        fputs(k ? ", {" : "{", to);
        hone_json_first_text(to, "name", in->name);
        hone_json_member_text(to, "datatype", in->datatype);
        fputs(", \"shape\": [", to);
        for (int d = 0; d < in->rank; d++) fprintf(to, d ? ", %lld" : "%lld", (long long)in->dims[d]);
        fputs("]", to);
        hone_json_member_text(to, "from", in->from);
        fputs("}", to);
    }
    fputs("], \"levels\": [", to);
    for (int k = 0; k < r->n; k++) {
        const hone_traffic_level *l = &r->level[k];
        fputs(k ? ", {" : "{", to);
        hone_json_first_text(to, "state", state(l));
        for (int f = 0; f < FIGURES; f++) {
            double v;
            const char *name = figure(r, l, f, &v);
            if (!isnan(v)) hone_json_member_number(to, name, v);
        }
        if (*l->why) hone_json_member_text(to, "why", l->why);
        fputs(", \"each_window\": [", to);
        for (int w = 0; w < l->windows; w++) {
            fputs(w ? ", {\"requests_per_s\": " : "{\"requests_per_s\": ", to);
            hone_json_put_number(to, l->window[w].per_s);
            hone_json_member_number(to, "p50_ms", l->window[w].p50);
            hone_json_member_number(to, "p99_ms", l->window[w].p99);
            fputs("}", to);
        }
        fputs("]}", to);
    }
    fputs("]", to);
    if (r->knee >= 0) {
        const hone_traffic_level *l = &r->level[r->knee];
        hone_json_member_number(to, l->clients ? "knee_clients" : "knee_rate",
                                l->clients ? l->clients : l->rate);
    }
    fputs("}\n", to);
}

void hone_traffic_csv(const hone_traffic_report *r, FILE *to) {
    double v;
    fputs("state", to);
    for (int f = 0; f < FIGURES; f++) fprintf(to, ",%s", figure(r, &r->level[0], f, &v));
    for (int k = 0; k < r->n; k++) {
        fprintf(to, "\n%s", state(&r->level[k]));
        for (int f = 0; f < FIGURES; f++) {
            figure(r, &r->level[k], f, &v);
            if (isnan(v)) fputs(",", to);
            else fprintf(to, ",%.9g", v);
        }
    }
    fputc('\n', to);
}

/* Three digits, and no exponent: "0.213", "1180". */
static const char *three(double v, char out[32]) {
    snprintf(out, 32, "%.*f", v >= 100 ? 0 : v >= 10 ? 1 : v >= 1 ? 2 : 3, v);
    return out;
}
/* "0.213 ±0.004": the wider side of the interval. */
static void cell(hone_table *t, const hone_traffic_quantile *q) {
    char at[32], off[32];
    hone_table_cell(t, "%s ±%s", three(q->at, at), three(fmax(q->high - q->at, q->at - q->low), off));
}

static void tell_server(const hone_traffic_report *r) {
    static const char *const head[] = {
        "server, µs a request", "all", "queue", "input", "infer", "output", "batch", "client sees"};
    hone_table *t = hone_table_create("lrrrrrrr", head);
    for (int k = 0; k < r->n; k++) {
        const hone_traffic_level *l = &r->level[k];
        const hone_traffic_served *s = &l->served;
        if (!s->there || s->requests < 1) continue;
        hone_table_cell(t, l->clients ? "%.0f clients" : "%.0f a second", l->clients ? l->clients : l->rate);
        hone_table_cell(t, "%.0f", part(l, s->total));
        hone_table_cell(t, "%.0f", part(l, s->queue));
        hone_table_cell(t, "%.0f", part(l, s->input));
        hone_table_cell(t, "%.0f", part(l, s->infer));
        hone_table_cell(t, "%.0f", part(l, s->output));
        hone_table_cell(t, "%.2f", s->executions > 0 ? s->inferences / s->executions : NAN);
        hone_table_cell(t, "%.0f", l->mean_ms * 1e3);
    }
    printf("\n");
    hone_table_print(t, stdout, "");
}

void hone_traffic_tell(const hone_traffic_report *r) {
    const hone_traffic_model *m = &r->traffic->model;
    hone_print(stdout, "server  %s, %s, %s\n", m->server, r->traffic->protocol->name, r->url);
    hone_print(stdout, "model   %s\n", m->name);
    for (int k = 0; k < m->n; k++) {
        const hone_traffic_input *in = &m->input[k];
        hone_print(stdout, "input   %s  %s[", in->name, in->datatype);
        for (int d = 0; d < in->rank; d++) printf(d ? ", %lld" : "%lld", (long long)in->dims[d]);
        hone_print(stdout, "]  %s\n", in->from);
    }
    printf("sent    %s a request, %d different in turn\n\n",
           hone_text_bytes((double)r->traffic->request[0].n), r->traffic->requests);
    bool rates = r->n && !r->level[0].clients, server = false, process = r->traffic->pid > 0, errors = false;
    const char *head[] = {rates ? "rate" : "clients",
                          "requests/s",
                          "mean ms",
                          "p50 ms",
                          "p90 ms",
                          "p99 ms",
                          "max ms",
                          "",
                          "",
                          ""};
    int columns = 7;
    for (int k = 0; k < r->n; k++) server |= r->level[k].served.there, errors |= r->level[k].errors > 0;
    if (process) head[columns++] = "server CPU µs";
    if (errors) head[columns++] = "errors";
    head[columns++] = "";
    char kinds[] = "rrrrrrrrrrr";
    kinds[columns - 1] = 'l', kinds[columns] = 0;
    hone_table *t = hone_table_create(kinds, head);
    for (int k = 0; k < r->n; k++) {
        const hone_traffic_level *l = &r->level[k];
        hone_table_cell(t, "%.6g", l->clients ? l->clients : l->rate);
        hone_table_cell(t, "%.6g", l->per_s);
        char text[32];
        hone_table_cell(t, "%s", three(l->mean_ms, text));
        cell(t, &l->p50), cell(t, &l->p90), cell(t, &l->p99);
        hone_table_cell(t, "%s", three(l->max_ms, text));
        if (process) hone_table_cell(t, "%.0f", l->cpu_us);
        if (errors) hone_table_cell(t, "%lld", (long long)l->errors);
        hone_table_cell(t, "%s%s%s", k == r->knee ? "knee" : "",
                        k == r->knee && strcmp(state(l), "stable") ? ", " : "",
                        strcmp(state(l), "stable") ? state(l) : "");
    }
    hone_table_print(t, stdout, "");
    if (server) tell_server(r);
    if (process && r->n)
        printf("\nmemory  %s resident, process %d\n", hone_text_bytes(r->level[r->n - 1].memory_bytes),
               r->traffic->pid);
    for (int k = 0; k < r->n; k++)
        if (*r->level[k].why) {
            hone_print(stdout, "errors  first: %s\n", r->level[k].why);
            break;
        }
}
