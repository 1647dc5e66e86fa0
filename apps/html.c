/* SPDX-License-Identifier: Apache-2.0
   html: the page of `hone inspect --html`: page.html, which the build puts into the program, with the model's
   reports in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "inspect.h"
#include "page.h"
#include "term.h"

extern const char hone_page_html[];

static void put_member(hone_page *to, const char *key, const char *text) {
    fprintf(to->out.to, ",\n\"%s\": ", key);
    hone_page_text(to, text);
}

/* How each node is computed, each text once: layers repeat. The first line, which names the node, is left
   out. */
static void put_programs(hone_page *to, const hone_model *m, const char *graph_json) {
    hone_json *graphs = hone_json_read(graph_json);
    hone_drawn d;
    hone_progress progress;
    hone_drawn_open(graphs, &d);
    hone_progress_begin(&progress, "explaining nodes");
    char **text = hone_must_alloc(sizeof *text * (size_t)(d.n_node + 1));       /* as the library gave it, */
    const char **body = hone_must_alloc(sizeof *body * (size_t)(d.n_node + 1)); /* without the first line */
    int n = 0;
    fprintf(to->out.to, ",\n\"text_of\": [");
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
        fprintf(to->out.to, k ? ", %d" : "%d", q);
    }
    hone_progress_end(&progress);
    fprintf(to->out.to, "],\n\"texts\": [");
    for (int k = 0; k < n; k++) {
        fputs(k ? ",\n" : "", to->out.to);
        hone_page_text(to, body[k]);
        hone_text_release(text[k]);
    }
    fprintf(to->out.to, "]");
    free(text);
    free(body);
    hone_drawn_close(&d);
    hone_json_free(graphs);
}

static hone_status put_data(hone_page *to, const hone_model *m, const char *path, const hone_planned *p,
                            const char *plan_json) {
    static const char *const topics[][2] = {{"summary", "summary"}, {"passes", "passes"}, {"after", "graph"}};
    char *graph = NULL, *before = NULL;
    const char *name = path + strlen(path); /* with the folder's name: many a file is called model.onnx */
    for (int slashes = 0; name > path; name--)
        if (name[-1] == '/' && ++slashes == 2) break;
    hone_status s = HONE_OK;
    fprintf(to->out.to, "{\"version\": ");
    hone_page_text(to, hone_version());
    put_member(to, "file", name);
    for (size_t k = 0; k < sizeof topics / sizeof *topics && !s; k++) {
        char *text = NULL;
        s = hone_model_report(m, topics[k][1], &text);
        if (s) break;
        fprintf(to->out.to, ",\n\"%s\": ", topics[k][0]);
        hone_page_json(to, text);
        if (!strcmp(topics[k][1], "graph")) graph = text;
        else hone_text_release(text);
    }
    if (!s) put_programs(to, m, graph);
    hone_text_release(graph);
    if (!s && !hone_file_graph(path, &before)) { /* of what is no file there is no "before" */
        fprintf(to->out.to, ",\n\"before\": ");
        hone_page_json(to, before);
    }
    hone_text_release(before);
    char dims[600];
    snprintf(dims, sizeof dims, "%s%s%s%s", p->given, *p->given && *p->guessed ? ", " : "", p->guessed,
             *p->guessed ? " (guessed)" : "");
    put_member(to, "dims", dims);
    if (p->plan) {
        fprintf(to->out.to, ",\n\"plan\": ");
        hone_page_json(to, plan_json);
    } else put_member(to, "why", p->why);
    fprintf(to->out.to, "}\n");
    return s;
}

int hone_write_page(const hone_model *m, const char *path, const hone_planned *p, const char *plan_json,
                    const char *file) {
    hone_page page;
    int rc = hone_page_begin("--html", file, hone_page_html, &page);
    if (rc) return rc;
    hone_status s = put_data(&page, m, path, p, plan_json);
    rc = hone_page_end(&page, !s, file, stdout);
    return s ? hone_args_failed(s) : rc;
}
