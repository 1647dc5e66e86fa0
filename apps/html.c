/* SPDX-License-Identifier: Apache-2.0
   html: the page of `hone inspect --html`: page.html, which the build puts into the program, with the model's reports in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "inspect.h"
#include "output.h"
#include "term.h"

extern const char hone_page_text[]; /* page.html */
static const char marker[] = "@DATA@";

/* JSON inside a page: no "</script>" may stand in it, and "<" only ever stands in strings. */
static void put(FILE *to, const char *json) {
    for (; *json; json++) {
        if (*json == '<') fputs("\\u003c", to);
        else fputc(*json, to);
    }
}
static void put_quoted(FILE *to, const char *text) {
    char *quoted = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&quoted, &bytes);
    if (memory) {
        hone_json_put_text(memory, text, strlen(text));
        fclose(memory);
    }
    put(to, quoted ? quoted : "\"\"");
    free(quoted);
}
static void put_member(FILE *to, const char *key, const char *text) {
    fprintf(to, ",\n\"%s\": ", key);
    put_quoted(to, text);
}

/* How each node is computed, each text once: layers repeat. The first line, which names the node, is left out. */
static void put_programs(FILE *to, const hone_model *m, const char *graph_json) {
    hone_json *graphs = hone_json_read(graph_json);
    hone_drawn d;
    hone_progress progress;
    hone_drawn_open(graphs, &d);
    hone_progress_begin(&progress, "explaining nodes");
    char **text = hone_must_alloc(sizeof *text * (size_t)(d.n_node + 1));       /* as the library gave it, */
    const char **body = hone_must_alloc(sizeof *body * (size_t)(d.n_node + 1)); /* without the first line */
    int n = 0;
    fprintf(to, ",\n\"text_of\": [");
    for (int k = 0; k < d.n_node; k++) {
        char number[24], *whole = NULL;
        int q = -1;
        snprintf(number, sizeof number, "%d", k);
        hone_progress_show(&progress, k, d.n_node, "nodes explained");
        if (!hone_model_explain(m, number, 0, &whole)) {
            const char *from = strchr(whole, '\n');
            from = from ? from + strspn(from, "\n") : whole;
            for (q = n - 1; q >= 0 && strcmp(body[q], from) != 0;) q--;
            if (q < 0) text[n] = whole, body[n] = from, whole = NULL, q = n++;
            hone_text_release(whole);
        }
        fprintf(to, k ? ", %d" : "%d", q);
    }
    hone_progress_end(&progress);
    fprintf(to, "],\n\"texts\": [");
    for (int k = 0; k < n; k++) {
        fputs(k ? ",\n" : "", to);
        put_quoted(to, body[k]);
        hone_text_release(text[k]);
    }
    fprintf(to, "]");
    free(text);
    free(body);
    hone_drawn_close(&d);
    hone_json_free(graphs);
}

static hone_status put_data(FILE *to, const hone_model *m, const char *path, const hone_planned *p, const char *plan_json) {
    static const char *const topics[][2] = {{"summary", "summary"}, {"passes", "passes"}, {"after", "graph"}};
    char *graph = NULL, *before = NULL;
    const char *name = path + strlen(path); /* with the folder's name: many a file is called model.onnx */
    for (int slashes = 0; name > path; name--)
        if (name[-1] == '/' && ++slashes == 2) break;
    hone_status s = HONE_OK;
    fprintf(to, "{\"version\": ");
    put_quoted(to, hone_version());
    put_member(to, "file", name);
    for (size_t k = 0; k < sizeof topics / sizeof *topics && !s; k++) {
        char *text = NULL;
        s = hone_model_report(m, topics[k][1], &text);
        if (s) break;
        fprintf(to, ",\n\"%s\": ", topics[k][0]);
        put(to, text);
        if (!strcmp(topics[k][1], "graph")) graph = text;
        else hone_text_release(text);
    }
    if (!s) put_programs(to, m, graph);
    hone_text_release(graph);
    if (!s && !hone_file_graph(path, &before)) { /* of what is no file there is no "before" */
        fprintf(to, ",\n\"before\": ");
        put(to, before);
    }
    hone_text_release(before);
    char dims[600];
    snprintf(dims, sizeof dims, "%s%s%s%s", p->given, *p->given && *p->guessed ? ", " : "", p->guessed, *p->guessed ? " (guessed)" : "");
    put_member(to, "dims", dims);
    if (p->plan) {
        fprintf(to, ",\n\"plan\": ");
        put(to, plan_json);
    } else put_member(to, "why", p->why);
    fprintf(to, "}\n");
    return s;
}

int hone_write_page(const hone_model *m, const char *path, const hone_planned *p, const char *plan_json, const char *file) {
    const char *split = strstr(hone_page_text, marker);
    hone_output o;
    if (!split) return hone_args_wrong("--html %s: the page has no place for data: a bug of Hone's, please report it", file) + 1;
    int rc = hone_output_begin("--html", file, &o);
    if (rc) return rc;
    fwrite(hone_page_text, 1, (size_t)(split - hone_page_text), o.to);
    hone_status s = put_data(o.to, m, path, p, plan_json);
    fputs(split + strlen(marker), o.to);
    long bytes = ftell(o.to);
    rc = hone_output_end(&o, !s);
    if (s) return hone_args_failed(s);
    if (!rc) hone_print(stdout, "%s is written, %s; open it in a browser\n", file, hone_text_bytes((double)bytes));
    return rc;
}
