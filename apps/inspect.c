/* SPDX-License-Identifier: Apache-2.0
   hone inspect: what a model is, after import and optimization. Draws the library's reports; with --json they are printed as they come. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "commands.h"
#include "hone/hone.h"
#include "json.h"
#include "table.h"
#include "term.h"

enum { OPS_A_LINE = 6, NAME_MAX_WIDTH = 48 };

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

static void tell_summary(const hone_model *m, const hone_json *r) {
    const char *name = hone_json_text(r, "name", "");
    double before = hone_json_number(r, "nodes_before", NAN), flops = hone_json_number(r, "flops", NAN);
    const hone_json *known = hone_json_get(r, "flops_known"), *ops = hone_json_get(r, "ops");
    if (*name) printf("%s%s%s\n", hone_paint(stdout, HONE_BOLD), name, hone_paint(stdout, HONE_PLAIN));
    tell_ports(m);
    printf("opset       %.0f\n", hone_json_number(r, "opset", 0));
    printf("nodes       %.0f", hone_json_number(r, "nodes", 0));
    if (isfinite(before)) printf(", of %.0f in the file", before);
    printf("\nparameters  %s, %s\n", hone_text_count(hone_json_number(r, "parameters", 0)),
           hone_text_bytes(hone_json_number(r, "parameter_bytes", 0)));
    if (known && known->type == HONE_JSON_TRUE) printf("work        %s a run\n", hone_text_flops(flops));
    else printf("work        depends on the input's dims\n");
    int k = 0;
    for (const hone_json *op = ops ? ops->first : NULL; op; op = op->next, k++) {
        printf("%s", k % OPS_A_LINE ? ", " : k ? ",\n            " : "ops         ");
        printf("%s %.0f", hone_json_text(op, "op", "?"), hone_json_number(op, "count", 0));
    }
    if (k) putchar('\n');
}

static void shorten(char *out, size_t room, const char *text) {
    size_t n = strlen(text);
    if (n <= NAME_MAX_WIDTH) snprintf(out, room, "%s", text);
    else snprintf(out, room, "…%s", text + n - NAME_MAX_WIDTH + 1); /* the end of a path says more than its beginning */
}

/* "a f32[1, 8], 2 constants": what flows in, and how much else. */
static void list_values(char *out, size_t room, const hone_json *values) {
    size_t n = 0;
    int constants = 0, shown = 0;
    out[0] = 0;
    for (const hone_json *v = values ? values->first : NULL; v; v = v->next) {
        const hone_json *constant = hone_json_get(v, "constant");
        if (constant && constant->type == HONE_JSON_TRUE) {
            constants++;
        } else if (n < room) {
            n += (size_t)snprintf(out + n, room - n, "%s%s", shown++ ? ", " : "", hone_json_text(v, "shape", "?"));
        }
    }
    if (constants && n < room) snprintf(out + n, room - n, "%s%d constant%s", shown ? ", " : "", constants, constants > 1 ? "s" : "");
}

static void tell_nodes(const hone_json *r) {
    static const char *const head[] = {"#", "op", "name", "from", "to", "work", "bytes"};
    hone_table *t = hone_table_create("rllllrr", head);
    for (const hone_json *n = r->first; n; n = n->next) {
        char name[64], from[256], to[256];
        const hone_json *known = hone_json_get(n, "known");
        bool counted = known && known->type == HONE_JSON_TRUE;
        shorten(name, sizeof name, hone_json_text(n, "name", ""));
        list_values(from, sizeof from, hone_json_get(n, "inputs"));
        list_values(to, sizeof to, hone_json_get(n, "outputs"));
        hone_table_cell(t, "%.0f", hone_json_number(n, "number", 0));
        int parts = (int)hone_json_number(n, "parts", 1);
        hone_table_cell(t, parts > 1 ? "%s (%d fused)" : "%s", hone_json_text(n, "op", "?"), parts);
        hone_table_cell(t, "%s", name);
        hone_table_cell(t, "%s", from);
        hone_table_cell(t, "%s", to);
        hone_table_cell(t, counted ? "%s" : "%.0s", hone_text_flops(hone_json_number(n, "flops", 0)));
        hone_table_cell(t, counted ? "%s" : "%.0s", hone_text_bytes(hone_json_number(n, "bytes", 0)));
    }
    hone_table_print(t, stdout, "");
}

/* One line a pass: its members, named. */
static void tell_passes(const hone_json *r) {
    for (const hone_json *p = r->first; p; p = p->next) {
        const char *gap = "";
        for (const hone_json *m = p->first; m; m = m->next) {
            if (m->type == HONE_JSON_TEXT && m == p->first) printf("%s%-20s", gap, m->text);
            else if (m->type == HONE_JSON_TEXT) printf("%s%s %s", gap, m->key ? m->key : "", m->text);
            else if (m->type == HONE_JSON_NUMBER) printf("%s%s %.6g", gap, m->key ? m->key : "", m->number);
            gap = "  ";
        }
        putchar('\n');
    }
}

static void tell_graph(const hone_json *r) {
    const char *text = r->type == HONE_JSON_TEXT ? r->text : "";
    fputs(text, stdout);
    if (*text && text[strlen(text) - 1] != '\n') putchar('\n');
}

/* One topic: drawn, or in JSON as it came. */
static int tell(const hone_model *m, const char *topic, bool json, void (*draw)(const hone_json *)) {
    char *text = NULL;
    hone_status s = hone_model_report(m, topic, &text);
    if (s) return hone_args_failed(s);
    hone_json *r = NULL;
    int rc = 0;
    if (json) printf("%s", text);
    else if (!(r = hone_json_read(text)))
        rc = hone_args_wrong("the report '%s' cannot be read: a bug of Hone's, please report it", topic) + 1;
    else if (draw) draw(r);
    else tell_summary(m, r);
    hone_json_free(r);
    hone_text_release(text);
    return rc;
}

typedef struct {
    bool nodes, text, passes, json;
} wish;

static int inspect(const char *path, const wish *w) {
    const struct {
        bool wanted;
        const char *topic;
        void (*draw)(const hone_json *);
    } topics[] = {
        {true, "summary", NULL}, {w->passes, "passes", tell_passes}, {w->nodes, "nodes", tell_nodes}, {w->text, "text", tell_graph}};
    hone_model *m = NULL;
    hone_status s = hone_model_load(path, &m);
    int rc = s ? hone_args_failed(s) : 0, told = 0;
    if (!rc && w->json) putchar('{');
    for (size_t k = 0; k < sizeof topics / sizeof *topics && !rc; k++) {
        if (!topics[k].wanted) continue;
        if (w->json) printf("%s\"%s\": ", told ? ",\n" : "", topics[k].topic);
        else if (told) putchar('\n');
        rc = tell(m, topics[k].topic, w->json, topics[k].draw);
        told++;
    }
    if (!rc && w->json) printf("}\n");
    hone_model_free(m);
    return rc;
}

int hone_cmd_inspect(int argc, char **argv) {
    wish w = {0};
    hone_words operands = {0};
    const hone_option options[] = {
        {"--nodes", NULL, "a table of the nodes", HONE_ARG_FLAG, &w.nodes, 0},
        {"--text", NULL, "the graph as text", HONE_ARG_FLAG, &w.text, 0},
        {"--passes", NULL, "what each pass did", HONE_ARG_FLAG, &w.passes, 0},
        {"--json", NULL, "print JSON: one member a topic", HONE_ARG_FLAG, &w.json, 0},
        {0},
    };
    const hone_usage usage = {
        "inspect", "MODEL", 1, 1, "Shows what a model is: inputs, outputs, nodes, parameters and work.", "hone inspect model.onnx --nodes",
        options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    if (rc == HONE_ARGS_GO) rc = inspect(operands.at[0], &w);
    hone_words_free(&operands);
    return rc;
}
