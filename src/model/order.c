/* SPDX-License-Identifier: Apache-2.0
   order: the nodes of a graph, body or function, each after what it reads. ONNX asks files to have them so,
   and many tools do not.

   Names are compared where they lie in the file. A node depends on what it reads itself and on what its
   bodies read and do not make. Where the file's order will do it is taken; else a depth-first walk in the
   file's order, with a stack of its own, brings forward only what is missing. A name
   that an input, a constant or a graph outside has, and that is made later too, is not waited for. */
#include <string.h>

#include "model/onnx.h"
#include "model/scope.h"

enum { NAMED = 6 /* nodes of a cycle in its message */ };

typedef struct {
    const hone_field *name; /* NULL: free */
    uint32_t hash;
    int node;
} made;
typedef struct {
    hone_scope *s;
    hone_nodes all;
    hone_vec(hone_field) outputs; /* names, one after the other */
    made *table;
    size_t room;         /* a power of two */
    int *first;          /* of each node in `needs`, and one past the last */
    hone_vec(int) needs; /* nodes */
    int early;           /* nodes that stand before what they read */
    bool failed;         /* no memory */
} order;

static uint32_t hash_of(const hone_field *f) {
    uint32_t h = 2166136261u;
    for (size_t k = 0; k < f->bytes; k++) h = (h ^ f->data[k]) * 16777619u;
    return h;
}
static bool same(const hone_field *a, const hone_field *b) {
    return a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

static made *slot_of(const order *o, const hone_field *name) {
    uint32_t hash = hash_of(name);
    size_t k = hash & (o->room - 1);
    while (o->table[k].name && (o->table[k].hash != hash || !same(o->table[k].name, name)))
        k = (k + 1) & (o->room - 1);
    o->table[k].hash = o->table[k].name ? o->table[k].hash : hash;
    return o->table + k;
}

/* All nodes, and who makes which name; of two that make the same one, the first: the second is refused
   later. */
static bool gather(order *o, hone_wire w, uint32_t number) {
    hone_field f, out;
    hone_vec(int) of = {0};
    bool good = true;
    while (good && hone_wire_next(&w, &f)) {
        if (f.number != number || f.type != HONE_WIRE_BYTES) continue;
        for (hone_wire n = hone_wire_of(&f); good && hone_wire_next(&n, &out);)
            if (out.number == 2 && out.type == HONE_WIRE_BYTES && out.bytes)
                good = hone_push(&o->outputs, out) && hone_push(&of, o->all.n);
        good = good && hone_push(&o->all, f);
    }
    for (o->room = 16; o->room < 2 * (size_t)o->outputs.n + 2;) o->room *= 2;
    o->table = good ? hone_alloc(o->room * sizeof *o->table) : NULL;
    good = good && o->table;
    for (int k = 0; good && k < of.n; k++) { /* one each of the outputs */
        made *m = slot_of(o, o->outputs.at + k);
        if (!m->name) m->name = o->outputs.at + k, m->node = of.at[k];
    }
    hone_vec_free(&of);
    return good;
}

/* ---- what a node reads --------------------------------------------------------------------------------- */
typedef struct bodies {
    const struct bodies *up;
    hone_wire graph;
} bodies;

/* Whether one of these bodies has that name as an input, an initializer or what a node makes. */
static bool made_inside(const bodies *b, const hone_field *name) {
    hone_field f, g;
    for (; b; b = b->up)
        for (hone_wire w = b->graph; hone_wire_next(&w, &f);) {
            if (f.type != HONE_WIRE_BYTES) continue;
            if (f.number == 11) g = hone_onnx_name_field(hone_wire_of(&f), 1);
            else if (f.number == 5) g = hone_onnx_name_field(hone_wire_of(&f), 8);
            else if (f.number == 15)
                g = hone_onnx_name_field(hone_wire_of(&f), 1), g = hone_onnx_name_field(hone_wire_of(&g), 8);
            else if (f.number == 1) {
                for (hone_wire n = hone_wire_of(&f); hone_wire_next(&n, &g);)
                    if (g.number == 2 && g.type == HONE_WIRE_BYTES && g.bytes && same(&g, name)) return true;
                continue;
            } else continue;
            if (g.bytes && same(&g, name)) return true;
        }
    return false;
}
static void reads(order *o, int k, const hone_field *name, const bodies *inside) {
    if (!name->bytes || o->failed) return;
    const made *m = slot_of(o, name);
    if (!m->name || (inside && made_inside(inside, name))) return;
    if (m->node >= k) { /* later, or itself */
        const char *text = hone_wire_text(o->s->m->im.scratch, name);
        if (!text) o->failed = true;
        if (!text || hone_scope_knows(o->s, text)) return;
    }
    if (!hone_push(&o->needs, m->node)) o->failed = true;
}
static void reads_of_graph(order *o, int k, hone_wire graph, const bodies *up, int depth);
static void reads_of_node(order *o, int k, hone_wire node, const bodies *inside, int depth) {
    hone_field f, g;
    while (hone_wire_next(&node, &f)) {
        if (f.type != HONE_WIRE_BYTES) continue;
        if (f.number == 1) reads(o, k, &f, inside);
        if (f.number != 5) continue;
        for (hone_wire a = hone_wire_of(&f); hone_wire_next(&a, &g);)
            if ((g.number == 6 || g.number == 11) && g.type == HONE_WIRE_BYTES)
                reads_of_graph(o, k, hone_wire_of(&g), inside, depth + 1);
    }
}
static void reads_of_graph(order *o, int k, hone_wire graph, const bodies *up, int depth) {
    hone_field f;
    const bodies here = {up, graph};
    if (depth > HONE_ONNX_MAX_DEPTH) return; /* refused later */
    for (hone_wire w = graph; hone_wire_next(&w, &f);) {
        if (f.type != HONE_WIRE_BYTES) continue;
        if (f.number == 1) reads_of_node(o, k, hone_wire_of(&f), &here, depth);
        if (f.number != 12) continue;
        hone_field name = hone_onnx_name_field(hone_wire_of(&f), 1);
        reads(o, k, &name, &here);
    }
}
static bool read_all(order *o) {
    o->first = hone_alloc(((size_t)o->all.n + 1) * sizeof *o->first);
    for (int k = 0; o->first && k < o->all.n; k++) {
        bool early = false;
        o->first[k] = o->needs.n;
        reads_of_node(o, k, hone_wire_of(o->all.at + k), NULL, 0);
        for (int q = o->first[k]; q < o->needs.n; q++) early |= o->needs.at[q] >= k;
        o->early += early;
    }
    if (o->first) o->first[o->all.n] = o->needs.n;
    return o->first && !o->failed;
}

/* ---- the walk ------------------------------------------------------------------------------------------ */
static const char *name_of(order *o, int k) {
    hone_wire w = hone_wire_of(o->all.at + k);
    hone_field name = hone_onnx_name_field(w, 3), f;
    while (!name.bytes && hone_wire_next(&w, &f))
        if (f.number == 2 && f.type == HONE_WIRE_BYTES) name = f;
    return hone_scope_text(o->s, &name);
}
static void tell_cycle(order *o, const int *stack, int depth, int back) {
    hone_text t = {0};
    int from = depth;
    while (from > 0 && stack[from] != back) from--;
    const int n = depth - from + 1;
    for (int k = depth; k >= from && depth - k < NAMED; k--)
        hone_text_put(&t, "%s'%.60s'", k < depth ? ", " : "", name_of(o, stack[k]));
    if (n > NAMED) hone_text_put(&t, " and %d more", n - NAMED);
    hone_import_problem(
        &o->s->m->im, HONE_BAD_INPUT, "graph '%.60s' has a cycle: %s %s", o->s->g->name, t.text ? t.text : "",
        n > 1 ? "each read what the one before makes, in a circle" : "reads what it makes itself");
    hone_text_free(&t);
}
static bool walk(order *o, hone_nodes *out) {
    const size_t n = (size_t)o->all.n;
    char *state = hone_alloc(n + 1); /* 1: on the stack, 2: done */
    int *stack = hone_alloc((n + 1) * sizeof *stack), *at = hone_alloc((n + 1) * sizeof *at);
    bool memory = state && stack && at, good = memory;
    for (int k = 0; good && k < o->all.n; k++) {
        if (state[k]) continue;
        int depth = 0;
        stack[0] = k, at[0] = o->first[k], state[k] = 1;
        while (good && depth >= 0) {
            const int node = stack[depth];
            if (at[depth] == o->first[node + 1]) { /* all it needs is there */
                state[node] = 2, depth--;
                memory = good = hone_push(out, o->all.at[node]);
                continue;
            }
            const int next = o->needs.at[at[depth]++];
            if (state[next] == 1) tell_cycle(o, stack, depth, next), good = false;
            else if (!state[next]) depth++, stack[depth] = next, at[depth] = o->first[next], state[next] = 1;
        }
    }
    hone_free(state), hone_free(stack), hone_free(at);
    if (!memory) hone_import_no_memory(&o->s->m->im);
    return good;
}

bool hone_import_order(hone_scope *s, hone_wire w, uint32_t number, hone_nodes *out) {
    order o = {.s = s};
    bool good = gather(&o, w, number) && read_all(&o);
    if (!good) hone_import_no_memory(&s->m->im);
    if (good && !o.early) *out = o.all, o.all = (hone_nodes){0};
    else if (good) {
        good = walk(&o, out);
        if (good)
            hone_import_forgive(
                &s->m->im, "graph '%.60s': %d node%s stood before what %s, and the nodes were sorted",
                s->g->name, o.early, o.early == 1 ? "" : "s", o.early == 1 ? "it reads" : "they read");
    }
    hone_vec_free(&o.all), hone_vec_free(&o.outputs), hone_vec_free(&o.needs);
    hone_free(o.table), hone_free(o.first);
    return good;
}
