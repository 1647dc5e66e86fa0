/* SPDX-License-Identifier: Apache-2.0
   hone zoo: lists the networks that come with Hone, describes one, or writes one as ONNX. */
#include "hone/zoo.h"

#include <stdio.h>
#include <string.h>

#include "args.h"
#include "commands.h"
#include "json.h"
#include "output.h"
#include "table.h"
#include "term.h"

static void list(const hone_json *all) {
    static const char *const head[] = {"name", "parameters", "work a run", "weights", "nodes", "what"};
    hone_table *t = hone_table_create("lrrrrl", head);
    for (const hone_json *m = all->first; m; m = m->next) {
        hone_table_cell(t, "%s", hone_json_text(m, "name", "?"));
        hone_table_cell(t, "%s", hone_text_count(hone_json_number(m, "parameters", 0)));
        hone_table_cell(t, "%s", hone_text_flops(hone_json_number(m, "flops", 0)));
        hone_table_cell(t, "%s", hone_text_bytes(hone_json_number(m, "weight_bytes", 0)));
        hone_table_cell(t, "%.0f", hone_json_number(m, "nodes", 0));
        hone_table_cell(t, "%s", hone_json_text(m, "what", ""));
    }
    hone_table_print(t, stdout, "");
    printf("\nEvery command takes them as a model: 'hone run zoo:resnet50', with options as "
           "'zoo:bert_base?batch=8&seq=256'.\n"
           "'hone zoo NAME' shows a network's options, 'hone zoo NAME -o FILE.onnx' writes it.\n");
}

static void describe(const hone_json *m) {
    double flops = hone_json_number(m, "flops", 0);
    printf("%s%s%s  %s\n", hone_paint(stdout, HONE_BOLD), hone_json_text(m, "name", "?"),
           hone_paint(stdout, HONE_PLAIN), hone_json_text(m, "what", ""));
    const hone_json *inputs = hone_json_get(m, "inputs"), *options = hone_json_get(m, "options");
    for (const hone_json *i = inputs ? inputs->first : NULL; i; i = i->next) {
        const hone_json *dims = hone_json_get(i, "dims");
        hone_print(stdout, "%-10s  %s  %s[", i == inputs->first ? "inputs" : "",
                   hone_json_text(i, "name", ""), hone_json_text(i, "dtype", ""));
        for (const hone_json *d = dims ? dims->first : NULL; d; d = d->next) {
            if (d != dims->first) printf(", ");
            if (d->type == HONE_JSON_TEXT) hone_print(stdout, "%s", d->text);
            else printf("%.0f", d->number);
        }
        printf("]\n");
    }
    for (const hone_json *o = options ? options->first : NULL; o; o = o->next) {
        const double step = hone_json_number(o, "step", 1);
        hone_print(stdout, "%-10s  %s=%.0f, from %.0f to %.0f", o == options->first ? "options" : "",
                   hone_json_text(o, "name", ""), hone_json_number(o, "default", 0),
                   hone_json_number(o, "lowest", 0), hone_json_number(o, "highest", 0));
        if (step > 1) printf(", a multiple of %.0f", step);
        printf("\n");
    }
    printf("parameters  %s, %s as f32\n", hone_text_count(hone_json_number(m, "parameters", 0)),
           hone_text_bytes(hone_json_number(m, "weight_bytes", 0)));
    printf("nodes       %.0f\n", hone_json_number(m, "nodes", 0));
    if (flops > 0) printf("work        %s a run\n", hone_text_flops(flops));
    else printf("work        depends on the input's dims\n");
}

static int tell(const char *spec, bool json) {
    char *text = NULL;
    hone_status s = hone_zoo_report(spec, &text);
    if (s) return hone_args_failed(s);
    hone_json *all = json ? NULL : hone_json_read(text);
    if (json) hone_args_answered(), printf("%s\n", text);
    else if (all && spec) describe(all->first);
    else if (all) list(all);
    hone_text_release(text);
    if (!json && !all) return hone_args_wrong("no memory for the list");
    hone_json_free(all);
    return 0;
}

static int write_model(const char *spec, const char *path, bool json) {
    const char *ending = strrchr(path, '.');
    if (!ending || strcmp(ending, ".onnx") != 0)
        return hone_args_wrong("-o %s: a network is written as ONNX: the name must end in .onnx", path);
    int rc = hone_output_try("-o", path);
    if (rc) return rc;
    hone_status s = hone_zoo_write(spec, path);
    if (s) return hone_args_failed(s);
    if (json) {
        hone_args_answered();
        printf("{\"wrote\": "), hone_json_put_text(stdout, path, strlen(path)), printf("}\n");
    } else hone_print(stdout, "wrote %s\n", path);
    return 0;
}

int hone_cmd_zoo(int argc, char **argv) {
    bool json = false;
    const char *path = NULL;
    hone_words operands = {0};
    const hone_option options[] = {
        {"-o", "FILE", "write the network as an ONNX model", HONE_ARG_TEXT, &path, 0},
        {"--json", NULL, "print JSON", HONE_ARG_FLAG, &json, 0},
        {0}};
    const hone_usage usage = {
        "zoo",
        "[NAME[?KEY=VALUE&…]]",
        0,
        1,
        "Lists the networks that Hone makes itself, with weights from a seed; describes one; writes one as "
        "ONNX.",
        "hone zoo\nhone zoo bert_base\nhone zoo 'bert_base?batch=8&seq=256' -o bert.onnx",
        options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    if (rc == HONE_ARGS_GO && path && !operands.n)
        rc = hone_args_wrong("-o needs the name of a network; 'hone zoo' lists them");
    else if (rc == HONE_ARGS_GO)
        rc = path ? write_model(operands.at[0], path, json) : tell(operands.n ? operands.at[0] : NULL, json);
    hone_words_free(&operands);
    return rc;
}
