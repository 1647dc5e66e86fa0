/* SPDX-License-Identifier: Apache-2.0
   check_floats: products that a model's maker quantized and that run in floats here all the same, with what
   keeps them from integers. The graph as it was imported says what was quantized, that behind the passes what
   became of it; node's names lead from one to the other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "check.h"
#include "hone/tools.h"
#include "inspect.h"
#include "json.h"
#include "term.h"

enum { MOST_LINES = 12 };

static bool is_product(const char *op) {
    static const char *const ops[] = {"Conv", "MatMul", "Gemm", "ConvTranspose",
                                      "LSTM", "GRU",    "RNN",  "Einsum"};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        if (!strcmp(ops[k], op)) return true;
    return false;
}
static int at(const hone_json *list, int k) { /* number k of a list of vars */
    const hone_json *one = list ? list->first : NULL;
    for (; one && k > 0; k--) one = one->next;
    return one && one->type == HONE_JSON_NUMBER ? (int)one->number : -1;
}
static const hone_json *maker(const hone_drawn *d, int var) {
    for (int k = 0; k < d->n_node; k++) {
        const hone_json *out = hone_json_get(d->node[k], "out");
        for (const hone_json *o = out ? out->first : NULL; o; o = o->next)
            if ((int)o->number == var) return d->node[k];
    }
    return NULL;
}
static const hone_json *dequantizes(const hone_drawn *d, const hone_json *node, int operand) {
    const hone_json *n = maker(d, at(hone_json_get(node, "in"), operand));
    return n && !strcmp(hone_json_text(n, "op", ""), "DequantizeLinear") ? n : NULL;
}
static const hone_json *var(const hone_drawn *d, const hone_json *node, int operand) {
    const int v = at(hone_json_get(node, "in"), operand);
    return v >= 0 && v < d->n_var ? d->var[v] : NULL;
}
static double scales_of(const hone_drawn *d, const hone_json *dq) { /* how many; -1: they are computed */
    const hone_json *c = hone_json_get(var(d, dq, 1), "constant");
    return c ? hone_json_number(c, "elements", -1) : -1;
}
static bool bytes(const hone_drawn *d, const hone_json *dq) {
    const char *type = hone_json_text(var(d, dq, 0), "type", "");
    return !strncmp(type, "u8[", 3) || !strncmp(type, "i8[", 3);
}
/* What keeps a product from integers: the first thing that does, in the order in which one would mend it. */
static void why_not(const hone_drawn *d, const hone_json *node, char *out, size_t room) {
    const char *op = hone_json_text(node, "op", "");
    const hone_json *x = dequantizes(d, node, 0), *w = dequantizes(d, node, 1);
    const hone_json *axis = w ? hone_json_get(hone_json_get(w, "attributes"), "axis") : NULL;
    if (strcmp(op, "Conv") != 0 && strcmp(op, "MatMul") != 0 && strcmp(op, "Gemm") != 0)
        snprintf(out, room, "there are no integers for %s here", op);
    else if (!x)
        snprintf(out, room, "'%s', which it reads, is not rounded: only its weights are quantized",
                 hone_json_text(var(d, node, 0), "name", ""));
    else if (!w)
        snprintf(out, room, "its weights '%s' are floats: only what it reads is quantized",
                 hone_json_text(var(d, node, 1), "name", ""));
    else if (!bytes(d, x) || !bytes(d, w))
        snprintf(out, room, "'%s' is %s: products of integers are of 8 bits",
                 hone_json_text(var(d, bytes(d, x) ? w : x, 0), "name", ""),
                 hone_json_text(var(d, bytes(d, x) ? w : x, 0), "type", ""));
    else if (hone_json_get(hone_json_get(w, "attributes"), "block_size"))
        snprintf(out, room, "its weights have a scale a block");
    else if (scales_of(d, x) < 0 || scales_of(d, w) < 0)
        snprintf(out, room, "its scales are computed during the run");
    else if (scales_of(d, x) > 1) snprintf(out, room, "what it reads has a scale a channel");
    else if (scales_of(d, w) > 1 && !strcmp(op, "Conv") &&
             strcmp(axis && axis->text ? axis->text : "1", "0") != 0)
        snprintf(out, room, "its weights have a scale an input channel, not one an output channel");
    else
        snprintf(out, room,
                 "no rule makes integers of it as it stands: its bias, attributes or the axis of its scales");
}

/* Nodes behind the passes that are a product in floats, by themselves or as a part of one. */
static bool floats_in(const hone_json *made, const char *name) {
    const hone_json *parts = hone_json_get(made, "parts");
    if (!strcmp(hone_json_text(made, "name", ""), name) && is_product(hone_json_text(made, "op", "")))
        return true;
    for (const hone_json *p = parts ? parts->first : NULL; p; p = p->next)
        if (!strcmp(hone_json_text(p, "name", ""), name) && is_product(hone_json_text(p, "op", "")))
            return true;
    return false;
}
void hone_check_floats(const char *path, const hone_model *m, bool json) {
    char *after = NULL, *before = NULL, why[512];
    hone_drawn a = {0}, b = {0};
    int found = 0, all = 0;
    if (!hone_model_report(m, "graph", &after) && strstr(after, "inear\""))
        (void)hone_file_graph(path, &before);
    hone_json *a_json = before ? hone_json_read(after) : NULL,
              *b_json = before ? hone_json_read(before) : NULL;
    if (a_json && b_json) hone_drawn_open(a_json, &a), hone_drawn_open(b_json, &b);
    if (json) printf(", \"floats\": [");
    for (int k = 0; k < b.n_node; k++) {
        const hone_json *n = b.node[k];
        const char *op = hone_json_text(n, "op", ""), *name = hone_json_text(n, "name", "");
        if (!is_product(op) || (!dequantizes(&b, n, 0) && !dequantizes(&b, n, 1))) continue;
        bool floats = false;
        all++;
        for (int i = 0; i < a.n_node && !floats; i++) floats = floats_in(a.node[i], name);
        if (!floats) continue;
        why_not(&b, n, why, sizeof why);
        if (json) {
            printf("%s{", found ? ", " : "");
            hone_json_first_text(stdout, "node", name);
            hone_json_member_text(stdout, "op", op);
            hone_json_member_text(stdout, "why", why);
            printf("}");
        } else if (found < MOST_LINES) hone_print(stdout, "floats  %s (%s): %s\n", name, op, why);
        found++;
    }
    if (json) printf("], \"quantized\": %d", all);
    else if (found > MOST_LINES)
        printf("        and %d more of %d quantized products\n", found - MOST_LINES, all);
    else if (all && !found) printf("integers all %d quantized products\n", all);
    if (a_json && b_json) hone_drawn_close(&a), hone_drawn_close(&b);
    hone_json_free(a_json), hone_json_free(b_json);
    hone_text_release(after), hone_text_release(before);
}
