/* SPDX-License-Identifier: Apache-2.0
   hone check: loads and compiles a model, and lists every problem when it cannot. For people and for scripts: the exit code is the answer. */
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "commands.h"
#include "hone/hone.h"
#include "json.h"
#include "term.h"

static int problems(const char *text, bool json) {
    int n = 0;
    for (const char *line = text; *line; n++) {
        size_t length = strcspn(line, "\n");
        if (json) {
            printf(n ? ", " : "");
            hone_json_put_text(stdout, line, length);
        } else {
            printf("  %.*s\n", (int)length, line);
        }
        line += length + (line[length] == '\n');
    }
    return n;
}

static int check(const char *path, bool json) {
    hone_model *model = NULL;
    hone_session *session = NULL;
    hone_status s = hone_model_load(path, &model);
    if (!s) s = hone_session_create(model, NULL, &session);
    if (json) {
        printf("{\"model\": ");
        hone_json_put_text(stdout, path, strlen(path));
        printf(", \"ok\": %s, \"problems\": [", s ? "false" : "true");
        if (s) problems(hone_error(), true);
        printf("]}\n");
    } else if (s) {
        printf("%s%s cannot run:%s\n", hone_paint(stdout, HONE_RED), path, hone_paint(stdout, HONE_PLAIN));
        int n = problems(hone_error(), false);
        fflush(stdout);
        hone_args_wrong("%d problem%s", n, n == 1 ? "" : "s");
    } else {
        printf("%s%s can run%s: %d input%s, %d output%s\n", hone_paint(stdout, HONE_GREEN), path, hone_paint(stdout, HONE_PLAIN),
               hone_model_inputs(model), hone_model_inputs(model) == 1 ? "" : "s", hone_model_outputs(model),
               hone_model_outputs(model) == 1 ? "" : "s");
    }
    hone_session_free(session);
    hone_model_free(model);
    return !s ? 0 : s == HONE_BUG ? 2 : 1;
}

int hone_cmd_check(int argc, char **argv) {
    bool json = false;
    hone_words operands = {0};
    const hone_option options[] = {{"--json", NULL, "print JSON", HONE_ARG_FLAG, &json, 0}, {0}};
    const hone_usage usage = {"check",
                              "MODEL",
                              1,
                              1,
                              "Says whether a model can run, and every problem when it cannot. Exits 0 only when it can.",
                              "hone check model.onnx",
                              options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    if (rc == HONE_ARGS_GO) rc = check(operands.at[0], json);
    hone_words_free(&operands);
    return rc;
}
