/* SPDX-License-Identifier: Apache-2.0
   hone inspect: what a model is, after import and optimization. Draws the library's reports; with --json they
   are printed as they come. */
#include "inspect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "commands.h"
#include "load.h"
#include "output.h"
#include "table.h"
#include "term.h"
#include "where.h"

enum { OPS_A_LINE = 6 };
typedef struct {
    bool nodes, text, passes, memory, dot, json;
    const char *html, *sort;
    hone_words dims;
} wish;

static void tell_ports(const hone_model *m) {
    hone_table *t = hone_table_create("lll", NULL);
    for (int k = 0; k < hone_model_inputs(m) + hone_model_outputs(m); k++) {
        bool in = k < hone_model_inputs(m);
        const hone_port *p = in ? hone_model_input(m, k) : hone_model_output(m, k - hone_model_inputs(m));
        hone_table_cell(t, in ? "input" : "output");
        hone_table_cell(t, "%s", p->name);
        hone_table_cell(t, "%s", p->shape);
    }
    hone_table_print(t, stdout, "");
}
/* "batch = 8, seq = 1 (guessed)" */
static void tell_dims(const hone_planned *p) {
    hone_print(stdout, "%s%s%s%s", p->given, *p->given && *p->guessed ? ", " : "", p->guessed,
               *p->guessed ? " (guessed)" : "");
}
static void tell_work(const hone_json *summary, const hone_planned *p) {
    const hone_json *known = hone_json_get(p->plan ? p->plan : summary, p->plan ? "known" : "flops_known");
    double flops = hone_json_number(p->plan ? p->plan : summary, "flops", NAN);
    bool sure = known && known->type == HONE_JSON_TRUE;
    if (!sure && !(flops > 0)) {
        printf("work        depends on the input's dims\n");
        return;
    }
    hone_print(stdout, "work        %s%s a run", sure ? "" : "at least ", hone_text_flops(flops));
    if (p->plan && (*p->given || *p->guessed)) printf(" with "), tell_dims(p);
    printf("\n");
}
static void tell_summary(const hone_model *m, const hone_json *r, const hone_planned *p) {
    const char *name = hone_json_text(r, "name", "");
    double before = hone_json_number(r, "nodes_before", NAN);
    const hone_json *ops = hone_json_get(r, "ops");
    if (*name)
        hone_print(stdout, "%s%s%s\n", hone_paint(stdout, HONE_BOLD), name, hone_paint(stdout, HONE_PLAIN));
    tell_ports(m);
    hone_print(stdout, "opset       %.0f\n", hone_json_number(r, "opset", 0));
    if (hone_json_get(r, "arithmetic"))
        hone_print(stdout, "arithmetic  f32 between tensors of f16 or bf16\n");
    hone_print(stdout, "nodes       %.0f", hone_json_number(r, "nodes", 0));
    if (isfinite(before)) hone_print(stdout, ", of %.0f before the passes", before);
    hone_print(stdout, "\nparameters  %s, %s\n", hone_text_count(hone_json_number(r, "parameters", 0)),
               hone_text_bytes(hone_json_number(r, "parameter_bytes", 0)));
    tell_work(r, p);
    if (p->plan)
        hone_print(stdout, "memory      %s for tensors at the peak\n",
                   hone_text_bytes(hone_json_number(p->plan, "arena_bytes", 0)));
    int k = 0;
    for (const hone_json *op = ops ? ops->first : NULL; op; op = op->next, k++) {
        printf("%s", k % OPS_A_LINE ? ", " : k ? ",\n            " : "ops         ");
        hone_print(stdout, "%s %.0f", hone_json_text(op, "op", "?"), hone_json_number(op, "count", 0));
    }
    if (k) putchar('\n');
}

/* A row a pass that did something; the others only counted. */
static void tell_passes(const hone_json *r) {
    static const char *const head[] = {"pass", "did", "nodes"};
    hone_table *t = hone_table_create("lrl", head);
    int idle = 0;
    /* of the main graph; the first pass only infers shapes */
    double before = hone_json_number(r->first, "nodes", 0);
    for (const hone_json *p = r->first; p; p = p->next) {
        double changed = hone_json_number(p, "changed", 0), nodes = hone_json_number(p, "nodes", before);
        if (changed == 0 && nodes == before) idle++;
        else {
            hone_table_cell(t, "%s", hone_json_text(p, "pass", "?"));
            hone_table_cell(t, "%.0f", changed);
            if (nodes == before) hone_table_cell(t, "%.0f", nodes);
            else hone_table_cell(t, "%.0f → %.0f", before, nodes);
        }
        before = nodes;
    }
    hone_table_print(t, stdout, "");
    if (idle) hone_print(stdout, "%d of %d passes found nothing to do\n", idle, r->n);
}
static void tell_text(const hone_json *r) {
    const char *text = r->type == HONE_JSON_TEXT ? r->text : "";
    hone_print_lines(stdout, text);
    if (*text && text[strlen(text) - 1] != '\n') putchar('\n');
}

/* A report as a tree; NULL: one line was said, *rc is the exit code. */
static hone_json *report(const hone_model *m, const char *topic, int *rc) {
    char *text = NULL;
    hone_json *r = NULL;
    hone_status s = hone_model_report(m, topic, &text);
    if (s) *rc = hone_args_failed(s);
    else if (!(r = hone_json_read(text)))
        *rc = hone_args_wrong("the report '%s' cannot be read: a bug of Hone's, please report it", topic) + 1;
    hone_text_release(text);
    return r;
}
static int tell_json(const hone_model *m, const wish *w, const hone_planned *p, const char *plan_json) {
    const struct {
        bool wanted;
        const char *topic;
    } topics[] = {{true, "summary"}, {w->passes, "passes"}, {w->nodes, "graph"}, {w->text, "text"}};
    enum { TOPICS = sizeof topics / sizeof *topics };
    char *text[TOPICS] = {NULL};
    hone_status s = HONE_OK;
    for (int k = 0; k < TOPICS && !s; k++)
        if (topics[k].wanted) s = hone_model_report(m, topics[k].topic, &text[k]);
    if (!s) hone_args_answered(), putchar('{');
    for (int k = 0; k < TOPICS; k++) {
        if (text[k] && !s) printf("%s\"%s\": %s", k ? ",\n" : "", topics[k].topic, text[k]);
        hone_text_release(text[k]);
    }
    if (s) return hone_args_failed(s);
    if (p->plan) printf(",\n\"plan\": %s", plan_json);
    printf(",\n\"dims_given\": %s, \"dims_guessed\": %s", p->given_json ? p->given_json : "null",
           p->guessed_json ? p->guessed_json : "null");
    printf("}\n");
    return 0;
}
static int tell_all(const hone_model *m, const wish *w, const hone_planned *p) {
    int rc = 0;
    hone_json *summary = report(m, "summary", &rc), *r = NULL;
    if (rc) return rc;
    if (w->dot) {
        if ((r = report(m, "graph", &rc))) hone_show_dot(r, hone_json_text(summary, "name", ""));
    } else {
        tell_summary(m, summary, p);
        if (w->passes && (r = report(m, "passes", &rc))) {
            putchar('\n');
            tell_passes(r);
            hone_json_free(r), r = NULL;
        }
        if (!rc && w->nodes && (r = report(m, "graph", &rc))) {
            putchar('\n');
            hone_show_nodes(r, p, w->sort);
            hone_json_free(r), r = NULL;
        }
        if (!rc && w->memory) {
            putchar('\n');
            if (p->plan) hone_show_memory(p);
            else
                rc = hone_args_wrong("no plan with %s%s%s: %s; --dim NAME=SIZE gives other dims", p->given,
                                     *p->given && *p->guessed ? ", " : "", p->guessed, p->why);
        }
        if (!rc && w->text && (r = report(m, "text", &rc))) {
            putchar('\n');
            tell_text(r);
        }
    }
    hone_json_free(r);
    hone_json_free(summary);
    return rc;
}

static int inspect(const char *path, const wish *w) {
    hone_model *m = NULL;
    hone_planned p = {0};
    char *plan = NULL;
    char why[4096];
    int rc = w->html ? hone_output_check("--html", w->html, &(hone_words){&path, 1}, NULL) : 0;
    if (!rc && w->html) rc = hone_output_try("--html", w->html);
    if (rc) return rc;
    hone_status s = hone_load(path, &m, why, sizeof why);
    rc = s ? hone_args_stopped(s, why) : 0;
    if (!rc && !w->dot) rc = hone_plan_for(m, &w->dims, NULL, &p, &plan);
    if (!rc && w->html) rc = hone_write_page(m, path, &p, plan, w->html);
    else if (!rc && w->json) rc = tell_json(m, w, &p, plan);
    else if (!rc) rc = tell_all(m, w, &p);
    hone_text_release(plan);
    hone_planned_free(&p);
    hone_model_free(m);
    return rc;
}

int hone_cmd_inspect(int argc, char **argv) {
    static const char *const orders[] = {"number", "work", "bytes", "parameters"};
    wish w = {.sort = "number"};
    hone_words operands = {0};
    hone_where where = {0};
    const hone_option options[] = {
        {"--nodes", NULL, "a table of the nodes", HONE_ARG_FLAG, &w.nodes, 0},
        {"--sort", "work|bytes|parameters", "the table's order, largest first", HONE_ARG_TEXT, &w.sort, 0},
        {"--passes", NULL, "what each pass did", HONE_ARG_FLAG, &w.passes, 0},
        {"--memory", NULL, "the memory for tensors, step by step, and what makes its peak", HONE_ARG_FLAG,
         &w.memory, 0},
        {"--dim", "NAME=SIZE", "a free dim of the inputs, as in batch=8; others are guessed", HONE_ARG_LIST,
         &w.dims, 0},
        {"--text", NULL, "the graph as text", HONE_ARG_FLAG, &w.text, 0},
        {"--dot", NULL, "the graph for Graphviz, and nothing else", HONE_ARG_FLAG, &w.dot, 0},
        {"--html", "FILE", "write a page with the graph, to look at in any browser", HONE_ARG_TEXT, &w.html,
         0},
        HONE_OPS_OPTION(&where),
        {"--json", NULL, "print JSON: one member a topic", HONE_ARG_FLAG, &w.json, 0},
        {0},
    };
    const hone_usage usage = {
        "inspect",
        "MODEL",
        1,
        1,
        "Shows what a model is: inputs, outputs, nodes, parameters, work and memory.",
        "hone inspect model.onnx --nodes --sort work\nhone inspect model.onnx --memory --dim batch=8\n"
        "hone inspect model.onnx --html model.html\nhone inspect model.onnx --dot | dot -Tsvg > model.svg",
        options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    if (rc == HONE_ARGS_GO) {
        bool known = false;
        for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) known |= !strcmp(w.sort, orders[k]);
        if (strcmp(w.sort, "number") != 0) w.nodes = true;
        const bool more = w.nodes || w.passes || w.memory || w.text || w.json;
        rc = !known ? hone_args_wrong("--sort %s: nodes are sorted by work, bytes or parameters", w.sort)
             : w.dot && (more || w.html)
                 ? hone_args_wrong("--dot prints the graph and nothing else: leave the other options away")
             : w.html && more
                 ? hone_args_wrong(
                       "--html writes a page and prints nothing else: leave the other options away")
                 : hone_where_begin(&where);
        if (!rc) rc = inspect(operands.at[0], &w);
    }
    hone_where_free(&where);
    hone_words_free(&operands);
    hone_words_free(&w.dims);
    return rc;
}
