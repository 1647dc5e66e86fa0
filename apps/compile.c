/* SPDX-License-Identifier: Apache-2.0
   hone compile: a model, optimized, written to a file. The ending of the file's name chooses the format. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "args.h"
#include "commands.h"
#include "hone/quant.h"
#include "json.h"
#include "load.h"
#include "output.h"
#include "term.h"
#include "where.h"

static const struct {
    const char *ending, *what;
    hone_status (*save)(const hone_model *, const char *path);
} formats[] = {{".onnx", "ONNX", hone_model_save}};
enum { FORMATS = sizeof formats / sizeof *formats };

static int format_of(const char *path) {
    size_t n = strlen(path);
    for (int k = 0; k < FORMATS; k++) {
        size_t m = strlen(formats[k].ending);
        if (n > m && strcasecmp(path + n - m, formats[k].ending) == 0) return k;
    }
    return -1;
}

/* A report of the model, read; the command ends where it cannot be had. */
static hone_json *report(const hone_model *m, const char *topic) {
    char *text = NULL;
    hone_json *r = hone_model_report(m, topic, &text) == HONE_OK ? hone_json_read(text) : NULL;
    hone_text_release(text);
    return r;
}

/* Nodes as ONNX counts them: a fused one is as many as it stands for. */
static double nodes_of(const hone_model *m, double *before) {
    hone_json *nodes = report(m, "nodes"), *summary = report(m, "summary");
    double n = 0;
    for (const hone_json *node = nodes ? nodes->first : NULL; node; node = node->next)
        n += hone_json_number(node, "parts", 1);
    *before = hone_json_number(summary, "nodes_before", 0);
    hone_json_free(nodes);
    hone_json_free(summary);
    return n;
}

static struct stat look(const char *path) {
    struct stat s;
    if (stat(path, &s) != 0) memset(&s, 0, sizeof s);
    return s;
}

/* In halves: a model of fewer rewrites, whose weights and products are f16 or bf16. */
static void tell_halves(const hone_json *r, const char *precision) {
    hone_print(stdout, "halves  %.0f products, convolutions and tables have weights of %s\n",
               hone_json_number(r, "in_halves", 0), precision);
    const hone_json *kept = hone_json_get(r, "kept");
    for (const hone_json *k = kept ? kept->first : NULL; k; k = k->next)
        hone_print(stdout, "kept    %s (%s) stays f32: '%s' %s\n", hone_json_text(k, "node", ""),
                   hone_json_text(k, "op", ""), hone_json_text(k, "value", ""), hone_json_text(k, "why", ""));
}
static int halve(const char *from, const char *to, const char *precision, const hone_words *data, bool json) {
    if (format_of(to) < 0) return hone_args_wrong("'%s' is no format to write: -o must end in .onnx", to);
    if (strcmp(precision, "f16") != 0 && strcmp(precision, "bf16") != 0)
        return hone_args_wrong(
            "--precision %s: a model is written in f16 or bf16; without --precision its types stay",
            precision);
    if (data->n && strcmp(precision, "f16") != 0)
        return hone_args_wrong(
            "--data goes with --precision f16: only f16 has a range that values may leave");
    char *text = NULL;
    hone_quantizing wish = {.form = precision};
    hone_model *m = NULL;
    char why[4096];
    hone_status s = data->n ? hone_load(from, &m, why, sizeof why) : HONE_OK;
    if (s) return hone_args_stopped(s, why);
    if (data->n) s = hone_samples_open(m, data->at, data->n, NULL, &wish.data);
    if (!s) s = hone_quantize(from, &wish, to, &text);
    if (wish.data.get) hone_samples_close(&wish.data);
    hone_model_free(m);
    if (s) return hone_args_failed(s);
    hone_json *r = hone_json_read(text);
    if (json) hone_args_answered(), printf("%s\n", text);
    else {
        const double beside = hone_json_number(r, "data_bytes", 0);
        hone_print(stdout, "%s%s%s  ONNX, %s\n", hone_paint(stdout, HONE_BOLD), to,
                   hone_paint(stdout, HONE_PLAIN), hone_text_bytes(hone_json_number(r, "bytes", 0)));
        if (beside > 0) hone_print(stdout, "data    %s.data, %s\n", to, hone_text_bytes(beside));
        hone_print(stdout, "nodes   %.0f\n", hone_json_number(r, "nodes", 0));
        tell_halves(r, precision);
    }
    hone_json_free(r);
    hone_text_release(text);
    return 0;
}
static int compile(const char *from, const char *to, bool json) {
    int rc;
    hone_model *m = NULL;
    int format = format_of(to);
    if (format < 0) {
        const char *dot = strrchr(to, '.'), *slash = strrchr(to, '/');
        bool ending = dot && dot[1] && (!slash || dot > slash + 1);
        return hone_args_wrong("'%s' is no format to write: -o must end in .onnx", ending ? dot : to);
    }
    char why[4096];
    const hone_words model = {&from, 1};
    if ((rc = hone_output_check("-o", to, &model, NULL)) || (rc = hone_output_try("-o", to))) return rc;
    hone_status s = hone_load(from, &m, why, sizeof why);
    if (s) return hone_args_stopped(s, why);
    char *data = hone_must_alloc(strlen(to) + sizeof ".data");
    sprintf(data, "%s.data", to);
    struct stat before = look(data); /* what was there already does not count */
    s = formats[format].save(m, to);
    if (s) {
        rc = hone_args_failed(s);
    } else {
        struct stat model = look(to), beside = look(data);
        bool fresh = beside.st_ino != before.st_ino || beside.st_dev != before.st_dev;
        double was, now = nodes_of(m, &was), bytes = (double)model.st_size,
                    more = fresh ? (double)beside.st_size : 0;
        if (json) {
            hone_args_answered();
            printf("{\"model\": ");
            hone_json_put_text(stdout, hone_model_shown(from), strlen(hone_model_shown(from)));
            printf(", \"output\": ");
            hone_json_put_text(stdout, to, strlen(to));
            printf(", \"format\": \"%s\", \"nodes_before\": %.0f, \"nodes\": %.0f, \"bytes\": %.0f, "
                   "\"data_bytes\": %.0f}\n",
                   formats[format].what, was, now, bytes, more);
        } else {
            hone_print(stdout, "%s%s%s  %s, %s\n", hone_paint(stdout, HONE_BOLD), to,
                       hone_paint(stdout, HONE_PLAIN), formats[format].what, hone_text_bytes(bytes));
            if (fresh) hone_print(stdout, "data    %s, %s\n", data, hone_text_bytes(more));
            hone_print(stdout, "nodes   %.0f, of %.0f in %s\n", now, was, hone_model_shown(from));
        }
    }
    free(data);
    hone_model_free(m);
    return rc;
}

int hone_cmd_compile(int argc, char **argv) {
    bool json = false;
    const char *to = NULL, *precision = NULL;
    hone_words operands = {0}, data = {0};
    hone_where where = {0};
    const hone_option options[] = {
        {"-o", "FILE", "where to write; the ending says what: .onnx", HONE_ARG_TEXT, &to, 0},
        {"--precision", "f16|bf16",
         "weights are stored so; f16: products and convolutions run in it, all else stays f32", HONE_ARG_TEXT,
         &precision, 0},
        {"--data", "FILES",
         "with --precision f16: samples (as hone quantize takes them); what comes near the end of f16's "
         "range "
         "there stays f32",
         HONE_ARG_LIST, &data, 0},
        HONE_OPS_OPTION(&where),
        {"--json", NULL, "print JSON", HONE_ARG_FLAG, &json, 0},
        {0},
    };
    const hone_usage usage = {
        "compile",
        "MODEL -o FILE",
        1,
        1,
        "Optimizes a model and writes it. As .onnx it is standard ONNX: constants folded, dead and equal "
        "nodes gone, for any runtime. "
        "Above 2 GB the weights go to FILE.data beside it. A model is never written over itself.",
        "hone compile model.onnx -o small.onnx",
        options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    if (rc == HONE_ARGS_GO && !(rc = hone_where_begin(&where)))
        rc = !to         ? hone_args_wrong("-o is missing: hone compile MODEL -o FILE")
             : precision ? halve(operands.at[0], to, precision, &data, json)
             : data.n    ? hone_args_wrong("--data goes with --precision f16")
                         : compile(operands.at[0], to, json);
    hone_where_free(&where);
    hone_words_free(&operands), hone_words_free(&data);
    return rc;
}
