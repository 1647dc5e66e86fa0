/* SPDX-License-Identifier: Apache-2.0
   report: what models and sessions tell about themselves, as JSON, one document a topic. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/visible.h"
#include "loops/fuse.h"
#include "run/model.h"
#include "loops/kernel.h"
#include "model/onnx.h"
#include "run/report_kernels.h"
#include "run/report_tactics.h"
#include "run/spaces.h"

/* Numbers, and texts for those that a run decides; null where not even the rank is known. */
static void put_dims(const hone_graph *g, const hone_var *v, hone_text *t) {
    if (v->rank < 0) {
        hone_text_put(t, "null");
        return;
    }
    hone_text_put(t, "[");
    for (int k = 0; k < v->rank; k++) {
        hone_text s = {0};
        hone_dim_print(g->dims, v->dim[k], &s);
        if (k) hone_text_put(t, ", ");
        if (hone_dim_is_number(v->dim[k])) hone_text_put(t, "%lld", (long long)v->dim[k]);
        else hone_text_json(t, s.text ? s.text : "?");
        hone_text_free(&s);
    }
    hone_text_put(t, "]");
}
static void put_shape(const hone_graph *g, hone_vid id, hone_text *t) {
    const hone_var *v = g->var.at + id;
    hone_text s = {0};
    hone_text_put(&s, "%s", v->dtype ? hone_dtypes[v->dtype].name : "?");
    hone_text_put(&s, v->rank < 0 ? "[…]" : "[");
    for (int k = 0; k < v->rank; k++) {
        if (k) hone_text_put(&s, ", ");
        hone_dim_print(g->dims, v->dim[k], &s);
    }
    if (v->rank >= 0) hone_text_put(&s, "]");
    hone_text_put(t, "{\"name\": ");
    hone_text_json(t, v->name);
    hone_text_put(t, ", \"shape\": ");
    hone_text_json(t, s.text ? s.text : "");
    hone_text_put(t, ", \"dtype\": \"%s\", \"dims\": ", v->dtype ? hone_dtypes[v->dtype].name : "none");
    put_dims(g, v, t);
    hone_text_put(t, ", \"constant\": %s}", v->value ? "true" : "false");
    hone_text_free(&s);
}
static void put_list(const hone_graph *g, const hone_vid *id, int n, hone_text *t) {
    hone_text_put(t, "[");
    bool any = false;
    for (int k = 0; k < n; k++) {
        if (id[k] < 0) continue;
        if (any) hone_text_put(t, ", ");
        put_shape(g, id[k], t), any = true;
    }
    hone_text_put(t, "]");
}
typedef struct {
    const char *name;
    int n;
} tally;
static int more(const void *p, const void *q) {
    const tally *a = p, *b = q;
    return a->n != b->n ? b->n - a->n : strcmp(a->name, b->name);
}
static void count_ops(const hone_graph *g, tally *all, int *n, int most, int *nodes, int64_t *elements,
                      int64_t *bytes) {
    for (int k = 0; k < g->node.n; k++) {
        const hone_node *node = g->node.at[k];
        for (int p = 0; p < (node->n_part ? node->n_part : 1); p++) { /* a fused node is all its parts */
            const char *name = node->n_part ? node->part[p]->program->name : node->program->name;
            int q = 0;
            while (q < *n && strcmp(all[q].name, name)) q++;
            if (q == *n && *n < most) all[(*n)++] = (tally){name, 0};
            if (q < *n) all[q].n++;
        }
        (*nodes)++;
        for (int b = 0; b < node->n_body; b++) count_ops(node->body[b], all, n, most, nodes, elements, bytes);
    }
    for (int k = 0; k < g->var.n; k++)
        if (g->var.at[k].value && g->var.at[k].value->tag == HONE_TAG_TENSOR)
            *elements += hone_value_count(g->var.at[k].value), *bytes += (int64_t)g->var.at[k].value->bytes;
}
static void summary(const hone_model *m, hone_text *t) {
    const hone_graph *g = m->compiled->graph;
    tally all[512];
    int n = 0, nodes = 0;
    int64_t elements = 0, bytes = 0;
    count_ops(g, all, &n, 512, &nodes, &elements, &bytes);
    qsort(all, (size_t)n, sizeof *all, more);
    hone_counts c = hone_graph_counts(g, NULL);
    hone_text_put(t, "{\"name\": ");
    hone_text_json(t, g->name ? g->name : "");
    hone_text_put(t, ", \"opset\": %d, %s\"forgiven\": [", g->opset,
                  g->mixed ? "\"arithmetic\": \"f32\", " : "");
    for (const char *line = g->forgiven; line && *line;) { /* a line each */
        char one[1024];
        const size_t n = strcspn(line, "\n");
        snprintf(one, sizeof one, "%.*s", (int)n, line);
        if (line != g->forgiven) hone_text_put(t, ", ");
        hone_text_json(t, one);
        line += n + (line[n] != 0);
    }
    hone_text_put(t, "], \"inputs\": ");
    put_list(g, g->in.at, g->in.n, t);
    hone_text_put(t, ", \"outputs\": ");
    put_list(g, g->out.at, g->out.n, t);
    hone_text_put(t,
                  ", \"nodes\": %d, \"nodes_before\": %d, \"parameters\": %lld, \"parameter_bytes\": %lld, "
                  "\"flops\": %.0f, "
                  "\"flops_known\": %s, \"ops\": [",
                  nodes, m->compiled->nodes_before, (long long)elements, (long long)bytes, c.flops,
                  c.known ? "true" : "false");
    for (int k = 0; k < n; k++) {
        hone_text_put(t, "%s{\"op\": ", k ? ", " : "");
        hone_text_json(t, all[k].name);
        hone_text_put(t, ", \"count\": %d}", all[k].n);
    }
    hone_text_put(t, "]}");
}
static void nodes(const hone_model *m, hone_text *t) {
    const hone_graph *g = m->compiled->graph;
    hone_text_put(t, "[");
    for (int k = 0; k < g->node.n; k++) {
        const hone_node *n = g->node.at[k];
        hone_counts c = hone_node_counts(g, n, NULL);
        hone_text_put(t, "%s{\"number\": %d, \"name\": ", k ? ", " : "", k);
        hone_text_json(t, n->name);
        hone_text_put(t, ", \"op\": ");
        hone_text_json(t, n->program->name);
        hone_text_put(t, ", \"parts\": %d, \"inputs\": ", n->n_part ? n->n_part : 1);
        put_list(g, n->in, n->n_in, t);
        hone_text_put(t, ", \"outputs\": ");
        put_list(g, n->out, n->n_out, t);
        hone_text_put(t, ", \"flops\": %.0f, \"bytes\": %.0f, \"known\": %s}", c.flops,
                      c.bytes_read + c.bytes_written, c.known ? "true" : "false");
    }
    hone_text_put(t, "]");
}
hone_status hone_model_report(const hone_model *m, const char *topic, char **out) {
    if (!m || !topic || !out)
        return hone_fail(HONE_BAD_INPUT, "hone_model_report: model, topic and out must not be NULL");
    HONE_TRY(hone_model_whole(m));
    hone_text t = {0};
    if (!strcmp(topic, "summary")) summary(m, &t);
    else if (!strcmp(topic, "nodes")) nodes(m, &t);
    else if (!strcmp(topic, "file"))
        hone_onnx_about(m->compiled->graph->file.data, m->compiled->graph->file.bytes, &t);
    else if (!strcmp(topic, "passes"))
        hone_text_put(&t, "%s", m->compiled->passes.text ? m->compiled->passes.text : "[]");
    else if (!strcmp(topic, "text")) {
        hone_text g = {0};
        hone_status s = hone_graph_print(m->compiled->graph, &g);
        if (!s) hone_text_json(&t, g.text ? g.text : "");
        hone_text_free(&g);
        if (s) {
            hone_text_free(&t);
            return s;
        }
    } else if (!strcmp(topic, "graph")) {
        hone_status s = hone_report_graph(m->compiled->graph, &t);
        if (s) {
            hone_text_free(&t);
            return s;
        }
    } else
        return hone_fail(HONE_BAD_INPUT,
                         "a model has no report '%s'; there are summary, nodes, passes, text, graph, file",
                         topic);
    return hone_text_give(&t, out);
}
static void put_decision(const hone_decision *d, hone_text *t) { /* the words of wisdom need no quoting */
    hone_text_put(t, ", \"problem\": \"");
    hone_problem_print(&d->problem, t);
    hone_text_put(t, "\", \"choice\": \"");
    hone_choice_print(&d->problem, &d->choice, t);
    hone_text_put(t, "\", \"by\": \"%s\"", d->wise ? "wisdom" : "estimate");
}
/* That a step reads and writes, each once. */
static double bytes_of(const hone_step *s) {
    const hone_access *a = s->access;
    double all = 0;
    for (int k = 0; k < a->n_ref; k++) {
        const hone_box *b = a->box + k;
        double one = b->bytes > 0 ? (double)b->bytes : 0;
        for (int d = 0; d < b->n; d++) one *= (double)b->dim[d].count;
        if (s->half_stored >> (k & 63) & 1) one /= 2;
        all += one * (double)((a->reads >> k & 1) + (a->writes >> k & 1));
    }
    return all * (double)(s->copies ? s->copies->n : 1);
}
static void put_parts(const hone_node *n, hone_text *t) { /* the ops of a fused node */
    for (int k = 0; n && k < n->n_part; k++) {
        hone_text_put(t, k ? ", " : ", \"parts\": [");
        hone_text_json(t, n->part[k]->program->name);
    }
    if (n && n->n_part) hone_text_put(t, "]");
}
static void put_wisdom(const hone_session *s, const hone_plan *p, hone_text *t) {
    int used = 0;
    for (; p; p = p->next_cut)
        for (int k = 0; k < p->n_step; k++) used += p->step[k].decision && p->step[k].decision->wise;
    hone_text_put(t, "{\"file\": ");
    hone_text_json(t, s->advice.path ? s->advice.path : "");
    hone_text_put(t, ", \"choices\": %d, \"used\": %d, \"why\": ",
                  s->advice.wisdom ? s->advice.wisdom->line.n : 0, used);
    hone_text_json(t, s->advice.why);
    hone_text_put(t, "}");
}
hone_status hone_session_report(const hone_session *s, const char *topic, char **out) {
    if (!s || !topic || !out)
        return hone_fail(HONE_BAD_INPUT, "hone_session_report: session, topic and out must not be NULL");
    hone_text t = {0};
    const hone_plan *p = hone_exec_last(s->exec);
    if (!p) return hone_fail(HONE_BAD_INPUT, "a session reports after its first run");
    if (!strcmp(topic, "memory")) {
        int64_t arena = 0, sum = 0, lower = 0, elsewhere = 0;
        int steps = 0;
        for (const hone_plan *q = p; q; q = q->next_cut)
            for (int u = 1; q->space && u < q->units->n; u++) elsewhere += q->space[u].bytes;
        for (const hone_plan *q = p; q; q = q->next_cut)
            arena += q->arena_bytes, sum += q->sum_bytes, lower += q->lower_bound_bytes, steps += q->n_step;
        hone_text_put(&t,
                      "{\"arena_bytes\": %lld, \"sum_bytes\": %lld, \"lower_bound_bytes\": %lld, "
                      "\"device_bytes\": %lld, "
                      "\"packed_bytes\": %lld, \"steps\": %d, \"plans\": %d}",
                      (long long)arena, (long long)sum, (long long)lower, (long long)elsewhere,
                      (long long)hone_packs_bytes(s->compiled->packs), steps, hone_exec_plans(s->exec));
    } else if (!strcmp(topic, "copies")) {
        const hone_copied *c = hone_exec_copied(s->exec);
        hone_text_put(&t,
                      "{\"in_bytes\": %lld, \"out_bytes\": %lld, \"across_bytes\": %lld, \"within_bytes\": "
                      "%lld, \"constant_bytes\": %lld}",
                      (long long)c->in, (long long)c->out, (long long)c->across, (long long)c->within,
                      (long long)c->constants);
    } else if (!strcmp(topic, "steps")) {
        hone_text_put(&t, "[");
        bool any = false;
        for (const hone_plan *q = p; q; q = q->next_cut)
            for (int k = 0; k < q->n_step; k++) {
                hone_text_put(&t, "%s{\"node\": ", any ? ", " : "");
                hone_text_json(&t, q->step[k].of ? q->step[k].of->name : "");
                hone_text_put(&t, ", \"op\": ");
                hone_text_json(&t, q->step[k].of ? q->step[k].of->program->name : "");
                put_parts(q->step[k].of, &t);
                hone_text_put(&t, ", \"tactic\": \"%s\", \"tiles\": %lld, \"ns\": %llu, \"runs\": %llu",
                              q->step[k].tactic, (long long)q->step[k].tiles,
                              (unsigned long long)q->step[k].ns, (unsigned long long)q->step[k].runs);
                if (q->step[k].unit && q->step[k].access)
                    hone_text_put(&t, ", \"bytes\": %.0f", bytes_of(q->step + k));
                if (q->step[k].launches) hone_text_put(&t, ", \"launches\": %u", q->step[k].launches);
                if (q->step[k].decision) put_decision(q->step[k].decision, &t);
                hone_text_put(&t, "}");
                any = true;
            }
        hone_text_put(&t, "]");
    } else if (!strcmp(topic, "wisdom")) put_wisdom(s, p, &t);
    else
        return hone_fail(HONE_BAD_INPUT,
                         "a session has no report '%s'; there are memory, copies, steps, wisdom", topic);
    return hone_text_give(&t, out);
}
hone_status hone_model_explain(const hone_model *m, const char *node, int c, char **out) {
    if (!m || !node || !out)
        return hone_fail(HONE_BAD_INPUT, "hone_model_explain: model, node and out must not be NULL");
    HONE_TRY(hone_model_whole(m));
    const hone_graph *g = m->compiled->graph;
    char *end;
    long number = strtol(node, &end, 10);
    const hone_node *n = NULL;
    for (int k = 0; k < g->node.n; k++)
        if (!strcmp(g->node.at[k]->name, node)) n = g->node.at[k];
    if (!n && *node && !*end && number >= 0 && number < g->node.n) n = g->node.at[number];
    if (!n)
        return hone_fail(HONE_BAD_INPUT,
                         "there is no node '%s'; give a name, or a number from 0 to %d ('hone inspect MODEL "
                         "--nodes' lists them)",
                         node, g->node.n - 1);
    hone_text t = {0};
    char shown[256];
    hone_visible(shown, sizeof shown, n->name, strlen(n->name), false);
    if (n->n_part) hone_text_put(&t, "node '%s': %d nodes in one\n", shown, n->n_part);
    else hone_text_put(&t, "node '%s'\n", shown);
    for (int k = 0; k < n->n_part; k++) {
        hone_visible(shown, sizeof shown, n->part[k]->name, strlen(n->part[k]->name), false);
        hone_text_put(&t, "\n# part %d: '%s'\n%.*s\n", k, shown, (int)n->part[k]->program->text_bytes,
                      n->part[k]->program->text);
    }
    if (!n->n_part) hone_text_put(&t, "\n%.*s\n", (int)n->program->text_bytes, n->program->text);
    hone_arena *a = hone_arena_create();
    hone_fact *facts = a ? HONE_NEW_N(a, hone_fact, n->n_in + n->n_out + 1) : NULL;
    const hone_fact **in = a ? HONE_NEW_N(a, const hone_fact *, n->n_in + 1) : NULL;
    hone_status s = facts && in ? HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory to explain");
    const hone_instance *i = n->fused ? n->fused->instance : NULL;
    if (!s && !i) {
        for (int k = 0; k < n->n_in; k++)
            facts[k] = n->in[k] < 0 ? hone_fact_unknown : hone_fact_of_var(g->var.at + n->in[k]),
            in[k] = facts + k;
        hone_inferring w = {a, g->dims, m->compiled->instances, NULL};
        hone_call *call;
        hone_param *p;
        s = hone_node_infer(&w, n, in, NULL, facts + n->n_in, &i, &call, &p);
    }
    if (!s && i && i->n_stage) {
        hone_text_put(&t, "\n# its instance here\n");
        hone_instance_print(i, &t);
        s = hone_report_tactics(m, n, &t);
        if (c == 1) {
            hone_text_put(&t, "\n");
            hone_print_c(i, "run", &t);
        } else if (!s && c > 1 && c < 2 + HONE_LANGS) s = hone_report_kernels(m, n, i, c - 2, &t);
    } else if (!s)
        hone_text_put(&t, "\n# no loops: %s\n",
                      n->program->runs == HONE_RUNS_VIEW ? "it runs for free, as a view of its input"
                      : n->program->how                  ? "it runs as plain C on values"
                                                         : "its rank is not known before it is bound");
    hone_arena_destroy(a);
    if (s) {
        hone_text_free(&t);
        return s;
    }
    return hone_text_give(&t, out);
}
