/* SPDX-License-Identifier: Apache-2.0
   nodes: the graph as a table, and as Graphviz's text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "inspect.h"
#include "table.h"
#include "term.h"

enum { NAME_WIDTH = 40, LIST = 110 };

void hone_drawn_open(const hone_json *graphs, hone_drawn *d) {
    *d = (hone_drawn){.graph = graphs ? graphs->first : NULL};
    const hone_json *vars = hone_json_get(d->graph, "vars"), *nodes = hone_json_get(d->graph, "nodes");
    d->var = hone_must_alloc(sizeof *d->var * (size_t)(vars ? vars->n + 1 : 1));
    d->node = hone_must_alloc(sizeof *d->node * (size_t)(nodes ? nodes->n + 1 : 1));
    for (const hone_json *v = vars ? vars->first : NULL; v; v = v->next) d->var[d->n_var++] = v;
    for (const hone_json *v = nodes ? nodes->first : NULL; v; v = v->next) d->node[d->n_node++] = v;
}
void hone_drawn_close(hone_drawn *d) {
    free(d->var);
    free(d->node);
}
static const hone_json *var_at(const hone_drawn *d, const hone_json *id) {
    return id->number >= 0 && id->number < d->n_var ? d->var[(int)id->number] : NULL;
}
static bool is_true(const hone_json *v, const char *key) {
    const hone_json *m = hone_json_get(v, key);
    return m && m->type == HONE_JSON_TRUE;
}

/* "Conv + Relu" */
static void node_title(const hone_json *node, char *out, size_t room) {
    const hone_json *parts = hone_json_get(node, "parts");
    size_t n = 0;
    out[0] = 0;
    for (const hone_json *p = parts ? parts->first : NULL; p && n < room; p = p->next)
        n += (size_t)snprintf(out + n, room - n, "%s%s", n ? " + " : "", hone_json_text(p, "op", "?"));
    if (!n) snprintf(out, room, "%s", hone_json_text(node, "op", "?"));
    if (n >= room && room > 4) memcpy(out + room - 4, "…", 4);
}

static void shorten(char *out, size_t room, const char *text) {
    size_t n = strlen(text);
    if (n <= NAME_WIDTH) {
        snprintf(out, room, "%s", text);
        return;
    }
    const char *end = text + n - NAME_WIDTH + 1; /* the end of a path says more than its beginning */
    while (((unsigned char)*end & 0xc0) == 0x80) end++;
    snprintf(out, room, "…%s", end);
}
/* "f32[1, 8], 2 constants": what flows, and how much else. */
static void list_values(const hone_drawn *d, char *out, size_t room, const hone_json *ids) {
    size_t n = 0;
    int constants = 0, shown = 0, more = 0;
    out[0] = 0;
    for (const hone_json *id = ids ? ids->first : NULL; id; id = id->next) {
        const hone_json *v = var_at(d, id);
        if (!v) continue;
        const char *type = hone_json_text(v, "type", "?");
        if (hone_json_get(v, "constant")) constants++;
        else if (n + strlen(type) + 40 > room) more++;
        else n += (size_t)snprintf(out + n, room - n, "%s%s", shown++ ? ", " : "", type);
    }
    if (more) n += (size_t)snprintf(out + n, room - n, ", and %d more", more);
    if (constants && n < room)
        snprintf(out + n, room - n, "%s%d constant%s", shown ? ", " : "", constants,
                 constants > 1 ? "s" : "");
}

typedef struct {
    int number;
    double by;
} place;
static int larger(const void *p, const void *q) {
    const place *a = p, *b = q;
    return a->by != b->by ? (a->by < b->by) - (a->by > b->by) : a->number - b->number;
}
/* by number; NULL where the plan says nothing */
static const hone_json **work_list(const hone_json *plan, int n) {
    const hone_json **out = hone_must_alloc(sizeof *out * (size_t)(n + 1)),
                    *nodes = hone_json_get(plan, "nodes");
    int k = 0;
    for (const hone_json *w = nodes ? nodes->first : NULL; w && k < n; w = w->next, k++)
        if (is_true(w, "known")) out[k] = w;
    return out;
}
void hone_show_nodes(const hone_json *graphs, const hone_planned *planned, const char *sort) {
    static const char *const head[] = {"#", "op", "name", "from", "to", "parameters", "bytes", "work"};
    hone_drawn d;
    hone_drawn_open(graphs, &d);
    const hone_json **work = work_list(planned->plan, d.n_node);
    place *order = hone_must_alloc(sizeof *order * (size_t)(d.n_node + 1));
    for (int k = 0; k < d.n_node; k++) {
        if (!work[k]) work[k] = d.node[k];
        bool own = !strcmp(sort, "parameters");
        order[k] =
            (place){k, !strcmp(sort, "number") ? 0
                                               : hone_json_number(own ? d.node[k] : work[k],
                                                                  !strcmp(sort, "work") ? "flops" : sort, 0)};
    }
    qsort(order, (size_t)d.n_node, sizeof *order, larger);
    hone_table *t = hone_table_create("rllllrrr", head);
    for (int i = 0; i < d.n_node; i++) {
        int k = order[i].number;
        char title[96], name[64], from[LIST], to[LIST];
        bool known = is_true(work[k], "known");
        double parameters = hone_json_number(d.node[k], "parameters", 0);
        node_title(d.node[k], title, sizeof title);
        shorten(name, sizeof name, hone_json_text(d.node[k], "name", ""));
        list_values(&d, from, sizeof from, hone_json_get(d.node[k], "in"));
        list_values(&d, to, sizeof to, hone_json_get(d.node[k], "out"));
        hone_table_cell(t, "%d", k);
        hone_table_cell(t, "%s", title);
        hone_table_cell(t, "%s", name);
        hone_table_cell(t, "%s", from);
        hone_table_cell(t, "%s", to);
        hone_table_cell(t, parameters > 0 ? "%s" : "%.0s", hone_text_count(parameters));
        hone_table_cell(t, "%s", known ? hone_text_bytes(hone_json_number(work[k], "bytes", 0)) : "?");
        hone_table_cell(t, "%s", known ? hone_text_flops(hone_json_number(work[k], "flops", 0)) : "?");
    }
    hone_table_print(t, stdout, "");
    free(order);
    free(work);
    hone_drawn_close(&d);
}

/* ---- Graphviz ---- */

static void put_dot(const char *name) { /* inside quotes */
    char shown[512];
    hone_text_visible(shown, sizeof shown, name, strlen(name), 0);
    for (const char *text = shown; *text; text++) {
        if (*text == '"' || *text == '\\') putchar('\\');
        putchar(*text);
    }
}
static void port(const hone_drawn *d, const hone_json *ids, const char *word) {
    for (const hone_json *id = ids ? ids->first : NULL; id; id = id->next) {
        const hone_json *v = var_at(d, id);
        if (!v) continue;
        printf("    %s%.0f [shape=ellipse, label=\"", word, id->number);
        put_dot(hone_json_text(v, "name", ""));
        printf("\\n");
        put_dot(hone_json_text(v, "type", ""));
        printf("\"];\n");
    }
}
void hone_show_dot(const hone_json *graphs, const char *name) {
    hone_drawn d;
    hone_drawn_open(graphs, &d);
    const hone_json *in = hone_json_get(d.graph, "inputs"), *out = hone_json_get(d.graph, "outputs");
    /* 0 none, -1 an input, else node + 1 */
    int *maker = hone_must_alloc(sizeof *maker * (size_t)(d.n_var + 1));
    for (const hone_json *id = in ? in->first : NULL; id; id = id->next)
        if (var_at(&d, id)) maker[(int)id->number] = -1;
    printf("digraph \"");
    put_dot(name);
    printf("\" {\n    node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=11];\n    edge "
           "[fontname=\"sans-serif\", "
           "fontsize=9];\n");
    port(&d, in, "i");
    port(&d, out, "o");
    for (int k = 0; k < d.n_node; k++) {
        char title[256];
        const hone_json *ids = hone_json_get(d.node[k], "out");
        node_title(d.node[k], title, sizeof title);
        printf("    n%d [label=\"", k);
        put_dot(title);
        printf("\\n");
        put_dot(hone_json_text(d.node[k], "name", ""));
        printf("\"];\n");
        for (const hone_json *id = ids ? ids->first : NULL; id; id = id->next)
            if (var_at(&d, id)) maker[(int)id->number] = k + 1;
    }
    for (int k = 0; k <= d.n_node; k++) { /* the edges into each node, then those into the outputs */
        const hone_json *ids = k < d.n_node ? hone_json_get(d.node[k], "in") : out;
        for (const hone_json *id = ids ? ids->first : NULL; id; id = id->next) {
            const hone_json *v = var_at(&d, id);
            int from = v ? maker[(int)id->number] : 0;
            if (!from) continue; /* a constant, or left out */
            if (from < 0) printf("    i%.0f -> ", id->number);
            else printf("    n%d -> ", from - 1);
            if (k < d.n_node) printf("n%d", k);
            else printf("o%.0f", id->number);
            printf(" [label=\"");
            put_dot(hone_json_text(v, "type", ""));
            printf("\"];\n");
        }
    }
    printf("}\n");
    free(maker);
    hone_drawn_close(&d);
}
