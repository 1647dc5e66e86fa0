/* SPDX-License-Identifier: Apache-2.0
   hone explain: how one node is computed. */
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "commands.h"
#include "hone/hone.h"

static int explain(const char *path, const char *node, bool c) {
    hone_model *model = NULL;
    char *text = NULL;
    hone_status s = hone_model_load(path, &model);
    if (!s) s = hone_model_explain(model, node, c, &text);
    int rc = s ? hone_args_failed(s) : 0;
    if (!s) fputs(text, stdout);
    hone_text_release(text);
    hone_model_free(model);
    return rc;
}

int hone_cmd_explain(int argc, char **argv) {
    bool c = false;
    const char *node = NULL;
    hone_words operands = {0};
    const hone_option options[] = {
        {"--node", "N", "the node's name or number ('hone inspect MODEL --nodes' lists them)", HONE_ARG_TEXT, &node, 0},
        {"--c", NULL, "its program as C, too", HONE_ARG_FLAG, &c, 0},
        {0},
    };
    const hone_usage usage = {"explain",
                              "MODEL",
                              1,
                              1,
                              "Shows how a node is computed: its op, the program of that op, and what it became here.",
                              "hone explain model.onnx --node 3 --c",
                              options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    if (rc == HONE_ARGS_GO)
        rc = node ? explain(operands.at[0], node, c)
                  : hone_args_wrong("--node is missing; 'hone inspect %s --nodes' lists the nodes", operands.at[0]);
    hone_words_free(&operands);
    return rc;
}
