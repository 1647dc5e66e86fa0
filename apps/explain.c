/* SPDX-License-Identifier: Apache-2.0
   hone explain: how one node is computed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "commands.h"
#include "hone/hone.h"
#include "json.h"
#include "load.h"
#include "term.h"
#include "where.h"

/* There is no such node: is there one with a name like it? */
static int no_node(const hone_model *m, const char *node, const char *path) {
    char *text = NULL;
    const char **names = NULL, *near = NULL;
    int n = 0;
    hone_json *r = hone_model_report(m, "nodes", &text) ? NULL : hone_json_read(text);
    if (r) names = hone_must_alloc(sizeof *names * (size_t)(r->n + 1));
    for (const hone_json *k = r ? r->first : NULL; k; k = k->next) names[n++] = hone_json_text(k, "name", "");
    near = hone_args_nearest(node, names, n);
    int rc = near ? hone_args_wrong("there is no node '%s'; did you mean '%s'?", node, near)
                  : hone_args_wrong("there is no node '%s'; give a name, or a number from 0 to %d ('hone "
                                    "inspect %s --nodes' lists them)",
                                    node, n - 1, hone_model_shown(path));
    free(names);
    hone_json_free(r);
    hone_text_release(text);
    return rc;
}
static int explain(const char *path, const char *node, int c, bool json) {
    hone_model *model = NULL;
    char *text = NULL, why[4096];
    hone_status s = hone_load(path, &model, why, sizeof why);
    int rc = s ? hone_args_stopped(s, why) : 0;
    if (!rc && (s = hone_model_explain(model, node, c, &text)))
        rc = s == HONE_BAD_INPUT ? no_node(model, node, path) : hone_args_failed(s);
    if (!rc && json) {
        hone_args_answered();
        printf("{\"node\": ");
        hone_json_put_text(stdout, node, strlen(node));
        printf(", \"text\": ");
        hone_json_put_text(stdout, text, strlen(text));
        printf("}\n");
    } else if (!rc) hone_print_lines(stdout, text);
    hone_text_release(text);
    hone_model_free(model);
    return rc;
}

int hone_cmd_explain(int argc, char **argv) {
    bool c = false, json = false;
    const char *node = NULL, *device = NULL;
    hone_words operands = {0};
    hone_where where = {0};
    const hone_option options[] = {
        {"--node", "N", "the node's name or number ('hone inspect MODEL --nodes' lists them)", HONE_ARG_TEXT,
         &node, 0},
        {"--c", NULL, "its program as C, too", HONE_ARG_FLAG, &c, 0},
        {"--device", "NAME",
         "its kernels as printed for opencl, cuda or hip, with their schedules; open sizes count as 1",
         HONE_ARG_TEXT, &device, 0},
        HONE_OPS_OPTION(&where),
        {"--json", NULL, "print JSON: the text as one string", HONE_ARG_FLAG, &json, 0},
        {0},
    };
    const hone_usage usage = {
        "explain",
        "MODEL",
        1,
        1,
        "Shows how a node is computed: its op, the program of that op, and what it became here.",
        "hone explain model.onnx --node 3\nhone explain model.onnx --node conv1 --c\nhone explain model.onnx "
        "--node 5 --device cuda",
        options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    static const char *const devices[] = {"opencl", "cuda", "hip"};
    int what = c;
    for (int k = 0; device && k < 3; k++)
        if (!strcmp(device, devices[k])) what = 2 + k;
    if (rc == HONE_ARGS_GO && device && what < 2)
        rc = hone_args_wrong("kernels are printed for opencl, cuda and hip, not for '%s'", device);
    if (rc == HONE_ARGS_GO && !(rc = hone_where_begin(&where)))
        rc = node ? explain(operands.at[0], node, what, json)
                  : hone_args_wrong("--node is missing; 'hone inspect %s --nodes' lists the nodes",
                                    operands.at[0]);
    hone_where_free(&where);
    hone_words_free(&operands);
    return rc;
}
