/* SPDX-License-Identifier: Apache-2.0
   graph: making, indexing and destroying. What a graph may be is checked in verify.c; what its vars are is
   found in infer.c.

   Names are found by an open-addressing hash of var numbers, one a graph, at most half full; the names
   themselves stand in the vars. */
#include "ir/graph.h"

#include <string.h>

static uint64_t hash_name(const char *name) {
    uint64_t h = 1469598103934665603u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 1099511628211u;
    return h ^ h >> 29;
}

static hone_graph *root_of(hone_graph *g) {
    while (g->outer) g = g->outer;
    return g;
}

/* ---- create, destroy ----------------------------------------------------------------------------------- */
hone_status hone_graph_create(const char *name, hone_graph **out) {
    hone_graph *g = hone_alloc(sizeof *g);
    if (!g) return hone_fail(HONE_NO_MEMORY, "no memory for graph '%s'", name ? name : "");
    g->arena = hone_arena_create();
    g->dims = hone_dims_create();
    g->name = g->arena ? hone_arena_text(g->arena, "%s", name ? name : "") : NULL;
    if (!g->arena || !g->dims || !g->name) {
        hone_graph_destroy(g);
        return hone_fail(HONE_NO_MEMORY, "no memory for graph '%s'", name ? name : "");
    }
    *out = g;
    return HONE_OK;
}

hone_graph *hone_graph_body(hone_graph *outer, const char *name) {
    hone_graph *root = root_of(outer);
    const char *text = hone_arena_text(root->arena, "%s", name ? name : "");
    hone_graph *g = text ? hone_alloc(sizeof *g) : NULL;
    if (!g) return NULL;
    *g = (hone_graph){
        .arena = root->arena, .dims = root->dims, .name = text, .outer = outer, .opset = root->opset};
    if (!hone_push(&root->owned, g)) {
        hone_free(g);
        return NULL;
    }
    return g;
}

static void free_parts(hone_graph *g) {
    for (int k = 0; k < g->var.n; k++) hone_value_drop(g->var.at[k].value);
    for (int k = 0; k < g->held.n; k++) hone_value_drop(g->held.at[k]);
    hone_vec_free(&g->var);
    hone_vec_free(&g->node);
    hone_vec_free(&g->in);
    hone_vec_free(&g->out);
    hone_vec_free(&g->held);
    hone_free(g->names.at);
}

void hone_graph_destroy(hone_graph *g) {
    if (!g) return;
    for (int k = 0; k < g->owned.n; k++) {
        free_parts(g->owned.at[k]);
        hone_free(g->owned.at[k]);
    }
    hone_vec_free(&g->owned);
    free_parts(g);
    if (g->keep && g->keep_free) g->keep_free(g->keep); /* after the constants that point into it */
    if (g->dims) hone_dims_destroy(g->dims);
    if (g->arena) hone_arena_destroy(g->arena);
    hone_free(g);
}

/* ---- vars and their names ------------------------------------------------------------------------------ */
/* The slot that holds `name`, or the free one where it would stand. The table is never full. */
static int slot_of(const hone_graph *g, const char *name) {
    int mask = g->names.room - 1, k = (int)(hash_name(name) & (uint64_t)mask);
    while (g->names.at[k] && strcmp(g->var.at[g->names.at[k] - 1].name, name) != 0) k = (k + 1) & mask;
    return k;
}

static bool names_grow(hone_graph *g) {
    if ((g->var.n + 1) * 2 <= g->names.room) return true;
    int room = g->names.room ? g->names.room * 2 : 64;
    if (room <= 0) return false;
    int32_t *at = hone_alloc((size_t)room * sizeof *at);
    if (!at) return false;
    hone_free(g->names.at);
    g->names.at = at;
    g->names.room = room;
    for (int v = 0; v < g->var.n; v++) at[slot_of(g, g->var.at[v].name)] = v + 1;
    return true;
}

hone_vid hone_graph_find(const hone_graph *g, const char *name) {
    return g->names.room ? g->names.at[slot_of(g, name)] - 1 : -1;
}

/* `name`, or it with a number behind it that is free. Numbers are used once, so that a file full of such
   names cannot make this slow. */
static const char *free_name(hone_graph *g, const char *name) {
    if (name && name[0] && hone_graph_find(g, name) < 0) return hone_arena_text(g->arena, "%s", name);
    for (;;) {
        const char *made = hone_arena_text(g->arena, "%s#%d", name ? name : "", g->names.serial++);
        if (!made || hone_graph_find(g, made) < 0) return made;
    }
}

hone_vid hone_graph_var(hone_graph *g, const char *name) {
    if (g->var.n >= INT32_MAX / 4 || !names_grow(g)) return -1;
    hone_var v = {.name = free_name(g, name), .rank = -1, .producer = -1};
    if (!v.name || !hone_push(&g->var, v)) return -1;
    g->names.at[slot_of(g, v.name)] = g->var.n;
    return g->var.n - 1;
}

hone_vid hone_graph_const(hone_graph *g, const char *name, hone_value *take) {
    hone_vid id = hone_graph_var(g, name);
    if (id < 0) {
        hone_value_drop(take);
        return -1;
    }
    hone_var *v = g->var.at + id;
    v->value = take;
    v->tag = take->tag;
    v->dtype = take->dtype;
    if (take->tag == HONE_TAG_TENSOR) {
        v->rank = take->rank;
        for (int k = 0; k < take->rank; k++) v->dim[k] = take->dim[k];
    }
    return id;
}

/* ---- nodes --------------------------------------------------------------------------------------------- */
static hone_vid *copy_ids(hone_graph *g, const hone_vid *id, int n) {
    hone_vid *copy = HONE_NEW_N(g->arena, hone_vid, n ? n : 1);
    if (copy && n) memcpy(copy, id, (size_t)n * sizeof *id);
    return copy;
}

hone_node *hone_graph_node(hone_graph *g, const hone_program *p, const char *name, const hone_vid *in,
                           int n_in, const hone_vid *out, int n_out) {
    hone_node *n = HONE_NEW(g->arena, hone_node);
    if (!n) return NULL;
    n->program = p;
    n->name = hone_arena_text(g->arena, "%s", name ? name : "");
    n->in = copy_ids(g, in, n_in);
    n->out = copy_ids(g, out, n_out);
    n->n_in = n_in;
    n->n_out = n_out;
    if (!n->name || !n->in || !n->out || !hone_push(&g->node, n)) return NULL;
    for (int k = 0; k < n_out; k++)
        if (out[k] >= 0) g->var.at[out[k]].producer = g->node.n - 1;
    return n;
}

static bool copy_attr(hone_graph *g, hone_graph *root, const hone_attr *from, hone_attr *to) {
    size_t n = (size_t)(from->n > 0 ? from->n : 0);
    *to = *from;
    to->name = hone_arena_text(g->arena, "%s", from->name);
    if (!to->name) return false;
    if (from->i && !(to->i = hone_arena_copy(g->arena, from->i, n * sizeof *from->i))) return false;
    if (from->f && !(to->f = hone_arena_copy(g->arena, from->f, n * sizeof *from->f))) return false;
    if (from->s) {
        hone_string *s = HONE_NEW_N(g->arena, hone_string, n ? n : 1);
        for (size_t k = 0; s && k < n; k++) {
            s[k].bytes = from->s[k].bytes;
            if (!(s[k].text = hone_arena_textn(g->arena, from->s[k].text, (size_t)from->s[k].bytes)))
                return false;
        }
        if (!(to->s = s)) return false;
    }
    if (from->tensor) {
        hone_value **t = HONE_NEW_N(g->arena, hone_value *, n ? n : 1);
        for (size_t k = 0; t && k < n; k++) {
            if (!hone_push(&root->held, from->tensor[k])) return false;
            t[k] = hone_value_hold(from->tensor[k]);
        }
        if (!(to->tensor = t)) return false;
    }
    return true;
}

bool hone_node_attrs(hone_graph *g, hone_node *node, const hone_attr *attr, int n) {
    hone_attr *copy = HONE_NEW_N(g->arena, hone_attr, n ? n : 1);
    if (!copy) return false;
    for (int k = 0; k < n; k++)
        if (!copy_attr(g, root_of(g), attr + k, copy + k)) return false;
    node->attr = copy;
    node->n_attr = n;
    return true;
}

/* ---- index, compact ------------------------------------------------------------------------------------ */
void hone_graph_index(hone_graph *g) {
    for (int v = 0; v < g->var.n; v++) g->var.at[v].producer = -1, g->var.at[v].uses = 0;
    for (int k = 0; k < g->node.n; k++) {
        const hone_node *n = g->node.at[k];
        if (n->dead) continue;
        for (int j = 0; j < n->n_in; j++)
            if (n->in[j] >= 0) g->var.at[n->in[j]].uses++;
        for (int j = 0; j < n->n_out; j++)
            if (n->out[j] >= 0) g->var.at[n->out[j]].producer = k;
        for (int j = 0; j < n->n_body; j++) hone_graph_index(n->body[j]);
    }
    for (int k = 0; k < g->out.n; k++) g->var.at[g->out.at[k]].uses++;
}

bool hone_graph_known(const hone_graph *g, hone_vid v) {
    while (!g->var.at[v].value) {
        const int32_t k = g->var.at[v].producer;
        const hone_node *n = k < 0 ? NULL : g->node.at[k];
        if (!n || n->program->runs != HONE_RUNS_VIEW || n->n_in < 1 || n->in[0] < 0) return false;
        v = n->in[0];
    }
    return true;
}
static void drop_dead(hone_graph *g) {
    int kept = 0;
    for (int k = 0; k < g->node.n; k++) {
        hone_node *n = g->node.at[k];
        if (n->dead) continue;
        for (int j = 0; j < n->n_body; j++) drop_dead(n->body[j]);
        g->node.at[kept++] = n;
    }
    g->node.n = kept;
}

void hone_graph_compact(hone_graph *g) {
    drop_dead(g);
    hone_graph_index(g);
}
static void mark(const hone_node *n, int32_t *to) {
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k] >= 0) to[n->in[k]] = 1;
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] >= 0) to[n->out[k]] = 1;
    for (int k = 0; k < n->n_part; k++) mark(n->part[k], to);
}
/* Two nodes may share a list of operands (a part, and what became of it): each list is renumbered once. */
static bool renumber(hone_vid *list, int n, const int32_t *to, void ***seen, int *n_seen, int *room) {
    for (int k = 0; k < *n_seen; k++)
        if ((*seen)[k] == list) return true;
    if (n && (!hone_vec_grow((void **)seen, room, *n_seen + 1, sizeof **seen))) return false;
    if (n) (*seen)[(*n_seen)++] = list;
    for (int k = 0; k < n; k++)
        if (list[k] >= 0) list[k] = to[list[k]] - 1;
    return true;
}
static bool renumber_node(hone_node *n, const int32_t *to, void ***seen, int *n_seen, int *room) {
    *n_seen = 0; /* lists are shared only inside a group */
    if (!renumber(n->in, n->n_in, to, seen, n_seen, room) ||
        !renumber(n->out, n->n_out, to, seen, n_seen, room))
        return false;
    for (int p = 0; p < n->n_part; p++)
        if (!renumber(n->part[p]->in, n->part[p]->n_in, to, seen, n_seen, room) ||
            !renumber(n->part[p]->out, n->part[p]->n_out, to, seen, n_seen, room))
            return false;
    return true;
}
bool hone_graph_drop_vars(hone_graph *g) {
    int32_t *to = hone_alloc(sizeof *to * (size_t)(g->var.n + 1));
    void **seen = NULL;
    int n_seen = 0, room = 0, n = 0;
    bool ok = to != NULL;
    for (int k = 0; ok && k < g->node.n; k++) mark(g->node.at[k], to);
    for (int k = 0; ok && k < g->in.n; k++) to[g->in.at[k]] = 1;
    for (int k = 0; ok && k < g->out.n; k++) to[g->out.at[k]] = 1;
    /* so that nothing can fail half-way: groups are small */
    ok = ok && hone_vec_grow((void **)&seen, &room, 64, sizeof *seen);
    for (int k = 0; ok && k < g->node.n; k++) ok = g->node.at[k]->n_part <= 30;
    if (ok) {
        for (int k = 0; k < g->var.n; k++) {
            if (!to[k]) {
                hone_value_drop(g->var.at[k].value);
                continue;
            }
            g->var.at[n] = g->var.at[k], to[k] = ++n;
        }
        g->var.n = n;
        for (int k = 0; k < g->node.n; k++) (void)renumber_node(g->node.at[k], to, &seen, &n_seen, &room);
        for (int k = 0; k < g->in.n; k++) g->in.at[k] = to[g->in.at[k]] - 1;
        for (int k = 0; k < g->out.n; k++) g->out.at[k] = to[g->out.at[k]] - 1;
        /* a graph may have no var at all */
        if (g->names.room) memset(g->names.at, 0, sizeof *g->names.at * (size_t)g->names.room);
        for (int k = 0; k < g->var.n; k++) g->names.at[slot_of(g, g->var.at[k].name)] = k + 1;
        for (int k = 0; k < g->node.n; k++)
            for (int b = 0; b < g->node.at[k]->n_body; b++)
                ok = hone_graph_drop_vars(g->node.at[k]->body[b]) && ok;
    }
    hone_free(to);
    hone_free(seen);
    if (ok) hone_graph_index(g);
    return ok;
}
