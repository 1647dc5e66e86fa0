/* SPDX-License-Identifier: Apache-2.0
   same: equal nodes on equal operands become one, the first; equal small constants too, so that nodes on them
   meet. Neither what is random nor what has bodies. */
#include <string.h>

#include "passes/passes.h"
#include "passes/rewrite.h"

/* bytes: larger ones are weights, hardly ever equal, and to read them takes time */
enum { MAX_CONSTANT = 1 << 12 };
typedef struct {
    uint64_t hash;
    int32_t item; /* node or var, + 1; 0 is free */
} place;
typedef struct {
    hone_graph *graph;
    hone_renames rename;
    place *table;
    uint32_t mask;
    int changed;
} matching;

static uint64_t mix(uint64_t h, const void *data, size_t bytes) {
    const unsigned char *p = data;
    for (; bytes >= 8; p += 8, bytes -= 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        h = (h ^ word) * 0x9e3779b97f4a7c15u, h ^= h >> 32;
    }
    for (size_t k = 0; k < bytes; k++) h = (h ^ p[k]) * 1099511628211u;
    return h;
}
static uint64_t settle(uint64_t h) { return h ^ h >> 31; } /* the table uses the low bits */

/* ---- values and attributes ----------------------------------------------------------------------------- */
static bool plain(const hone_value *v) {
    return v->tag == HONE_TAG_TENSOR && v->dtype != HONE_DTYPE_STRING && v->bytes <= MAX_CONSTANT;
}
static uint64_t hash_value(uint64_t h, const hone_value *v) {
    h = mix(h, &v->dtype, sizeof v->dtype);
    h = mix(h, v->dim, sizeof *v->dim * (size_t)v->rank);
    return mix(h, v->data, v->bytes);
}
static bool equal_values(const hone_value *a, const hone_value *b) {
    if (a == b) return true;
    if (!plain(a) || !plain(b) || a->dtype != b->dtype || a->rank != b->rank || a->bytes != b->bytes)
        return false;
    return !memcmp(a->dim, b->dim, sizeof *a->dim * (size_t)a->rank) &&
           (!a->bytes || !memcmp(a->data, b->data, a->bytes));
}
static bool equal_attrs(const hone_attr *a, const hone_attr *b) {
    size_t n = (size_t)(a->n > 0 ? a->n : 0);
    if (a->kind != b->kind || a->n != b->n || strcmp(a->name, b->name) != 0) return false;
    if (n && a->i && memcmp(a->i, b->i, n * sizeof *a->i) != 0) return false;
    if (n && a->f && memcmp(a->f, b->f, n * sizeof *a->f) != 0) return false;
    for (size_t k = 0; k < n; k++) {
        if (a->s && (a->s[k].bytes != b->s[k].bytes ||
                     memcmp(a->s[k].text, b->s[k].text, (size_t)a->s[k].bytes) != 0))
            return false;
        if (a->tensor && !equal_values(a->tensor[k], b->tensor[k])) return false;
    }
    return true;
}

/* ---- nodes --------------------------------------------------------------------------------------------- */
static uint64_t hash_node(matching *m, const hone_node *n) {
    uint64_t h = mix(1469598103934665603u, &n->program, sizeof n->program);
    for (int k = 0; k < n->n_in; k++) {
        hone_vid v = hone_renames_now(&m->rename, n->in[k]);
        h = mix(h, &v, sizeof v);
    }
    for (int k = 0; k < n->n_attr; k++) {
        const hone_attr *a = n->attr + k;
        h = mix(h, &a->n, sizeof a->n);
        if (a->i) h = mix(h, a->i, sizeof *a->i * (size_t)a->n);
        if (a->f) h = mix(h, a->f, sizeof *a->f * (size_t)a->n);
    }
    return settle(h);
}
static bool equal_nodes(matching *m, const hone_node *a, const hone_node *b) {
    if (a->program != b->program || a->n_in != b->n_in || a->n_out != b->n_out || a->n_attr != b->n_attr)
        return false;
    for (int k = 0; k < a->n_in; k++)
        if (hone_renames_now(&m->rename, a->in[k]) != hone_renames_now(&m->rename, b->in[k])) return false;
    for (int k = 0; k < a->n_attr; k++)
        if (!equal_attrs(a->attr + k, b->attr + k)) return false;
    return true;
}
/* `n` goes, `first` does its work. All or nothing: two graph outputs that are equal are still two. */
static bool join(matching *m, hone_node *first, int number, hone_node *n) {
    for (int k = 0; k < n->n_out; k++) {
        hone_vid x = k < first->n_out ? hone_renames_now(&m->rename, first->out[k]) : -1;
        if (n->out[k] >= 0 && x >= 0 && m->rename.is_output[n->out[k]] && m->rename.is_output[x])
            return false;
    }
    for (int k = 0; k < n->n_out; k++) {
        if (n->out[k] < 0) continue;
        if (first->out[k] >= 0) {
            if (!hone_rename(&m->rename, n->out[k], first->out[k])) return false;
        } else first->out[k] = n->out[k], m->graph->var.at[n->out[k]].producer = number;
        n->out[k] = -1;
    }
    return true;
}
static bool takes_part(const hone_node *n) {
    return !n->dead && !n->n_body && !n->part && n->program->runs != HONE_RUNS_CONTROL && !n->program->random;
}

static void match_constants(matching *m) {
    for (int v = 0; v < m->graph->var.n; v++) {
        const hone_value *x = m->graph->var.at[v].value;
        if (!x || !plain(x) || m->graph->var.at[v].layout.kind != HONE_LAYOUT_ROWS || m->rename.is_output[v])
            continue;
        uint64_t h = settle(hash_value(1469598103934665603u, x));
        uint32_t at = (uint32_t)h & m->mask;
        int first;
        while ((first = m->table[at].item - 1) >= 0 &&
               (m->table[at].hash != h || !equal_values(m->graph->var.at[first].value, x)))
            at = (at + 1) & m->mask;
        if (first < 0) m->table[at] = (place){h, v + 1};
        else if (hone_rename(&m->rename, v, first)) m->changed++;
    }
}
static void match_nodes(matching *m) {
    hone_graph *g = m->graph;
    for (int k = 0; k < g->node.n; k++) {
        hone_node *n = g->node.at[k];
        if (!takes_part(n)) continue;
        uint64_t h = hash_node(m, n);
        uint32_t at = (uint32_t)h & m->mask;
        int first;
        while ((first = m->table[at].item - 1) >= 0 &&
               (m->table[at].hash != h || !equal_nodes(m, g->node.at[first], n)))
            at = (at + 1) & m->mask;
        if (first < 0) m->table[at] = (place){h, k + 1};
        else if (join(m, g->node.at[first], first, n)) n->dead = true, m->changed++;
    }
}
static hone_status match(hone_graph *g, int *changed) {
    matching m = {.graph = g, .mask = 63};
    while (m.mask < (uint32_t)(g->var.n > g->node.n ? g->var.n : g->node.n) * 2) m.mask = m.mask * 2 + 1;
    m.table = hone_alloc(sizeof *m.table * ((size_t)m.mask + 1));
    if (!m.table || !hone_renames_open(&m.rename, g)) {
        hone_free(m.table);
        return hone_fail(HONE_NO_MEMORY, "no memory to find equal nodes");
    }
    match_constants(&m);
    memset(m.table, 0, sizeof *m.table * ((size_t)m.mask + 1));
    match_nodes(&m);
    hone_renames_close(&m.rename);
    hone_free(m.table);
    *changed += m.changed;
    for (int k = 0; k < g->node.n; k++)
        for (int b = 0; b < g->node.at[k]->n_body; b++) HONE_TRY(match(g->node.at[k]->body[b], changed));
    return HONE_OK;
}
hone_status hone_pass_same(hone_passing *p) {
    hone_graph_index(p->graph);
    hone_status s = match(p->graph, &p->changed);
    hone_graph_compact(p->graph);
    return s;
}
