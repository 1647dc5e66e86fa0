/* SPDX-License-Identifier: Apache-2.0
   export_graph: graphs, scopes and nodes as GraphProto and NodeProto.

   Names are found when they are read: a capture has the name of the var outside, a constant that several
   graphs share its one name in the outermost, everything else its own, unless a scope around it has that name
   too. Nodes are written before initializers, so what was read is known by then, and what nobody reads is not
   written. Nodes' names (titles, here) are made different, as readers want them. */
#include <stdlib.h>
#include <string.h>

#include "model/export_write.h"
#include "model/onnx.h"

/* ---- names --------------------------------------------------------------------------------------------- */
const char *hone_export_fresh(hone_exporter *x, const char *base) {
    const char *t = hone_arena_text(x->arena, "%s%s%d", base, x->tag, ++x->serial);
    if (!t) hone_export_no_memory(x);
    return t ? t : "";
}

static int by_value(const void *a, const void *b) {
    const hone_value *x = ((const hone_export_shared *)a)->value, *y = ((const hone_export_shared *)b)->value;
    return (x > y) - (x < y);
}

static hone_export_shared *shared_of(const hone_exporter *x, const hone_value *v) {
    if (!v || !x->shared.n) return NULL;
    hone_export_shared *e =
        bsearch(&(hone_export_shared){.value = v}, x->shared.at, (size_t)x->shared.n, sizeof *e, by_value);
    return e && e->many ? e : NULL;
}

static bool taken_outside(const hone_export_scope *s, const char *name) {
    for (s = s->up; s; s = s->up)
        if (hone_graph_find(s->g, name) >= 0) return true;
    return false;
}

const char *hone_export_name(hone_exporter *x, hone_export_scope *s, hone_vid v) {
    while (s && v >= 0 && s->from[v] >= 0) v = s->from[v], s = s->up;
    if (!s || v < 0) return "";
    const hone_var *var = s->g->var.at + v;
    hone_export_shared *e = shared_of(x, var->value);
    if (e && (s->up || (e->name && strcmp(e->name, var->name) == 0))) {
        if (!e->name && !hone_push(&x->hoisted, (int)(e - x->shared.at))) hone_export_no_memory(x);
        if (!e->name) e->name = hone_export_fresh(x, var->name);
        e->used = true;
        return e->name;
    }
    s->used[v] = true;
    if (!s->name[v]) s->name[v] = taken_outside(s, var->name) ? hone_export_fresh(x, var->name) : var->name;
    return s->name[v];
}

static uint32_t hash_of(const char *name) {
    uint32_t h = 2166136261u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

/* Where a node's name stands in the hash, or the free place where it would. */
static int place_of(const hone_exporter *x, const char *title) {
    uint32_t k = hash_of(title) & (uint32_t)(x->titles.room - 1);
    while (x->titles.at[k] && strcmp(x->titles.at[k], title) != 0)
        k = (k + 1) & (uint32_t)(x->titles.room - 1);
    return (int)k;
}

static const char *title_of(hone_exporter *x, const char *title) {
    if (!title || !title[0]) return "";
    if (x->titles.n * 2 >= x->titles.room) {
        const char **old = x->titles.at;
        int n = x->titles.room, room = n ? n * 2 : 256;
        const char **at = HONE_NEW_N(x->arena, const char *, room);
        if (!at) {
            hone_export_no_memory(x);
            return title;
        }
        x->titles.at = at, x->titles.room = room;
        for (int k = 0; k < n; k++)
            if (old[k]) at[place_of(x, old[k])] = old[k];
    }
    if (x->titles.at[place_of(x, title)]) title = hone_export_fresh(x, title);
    x->titles.at[place_of(x, title)] = title;
    x->titles.n++;
    return title;
}

/* ---- nodes --------------------------------------------------------------------------------------------- */
void hone_export_put_node(hone_exporter *x, hone_export_scope *s, const hone_onnx_node *n) {
    hone_wire_out *w = &x->w;
    const char *title = title_of(x, n->name);
    hone_wire_mark m = hone_wire_open(w, 1);
    for (int k = 0; k < n->n_in; k++) hone_wire_put_text(w, 1, n->in[k]);
    for (int k = 0; k < n->n_out; k++) hone_wire_put_text(w, 2, n->out[k]);
    if (title[0]) hone_wire_put_text(w, 3, title);
    hone_wire_put_text(w, 4, n->op);
    for (int k = 0; k < n->n_attr && !x->status; k++) hone_export_attr(x, s, n, n->attr + k);
    if (n->domain && n->domain[0]) hone_wire_put_text(w, 7, n->domain);
    hone_wire_close(w, m);
    x->nodes++;
}

/* Split lists all its pieces, wanted or not. */
static int pieces(const hone_export_scope *s, const hone_node *n) {
    if (n->program->domain[0] || strcmp(n->program->name, "Split") != 0) return 0;
    const hone_value *v = n->n_in > 1 && n->in[1] >= 0 ? s->g->var.at[n->in[1]].value : NULL;
    int64_t many = v ? hone_value_count(v) : hone_attr_int(n->attr, n->n_attr, "num_outputs", 0);
    return many > 0 && many < 1 << 20 ? (int)many : 0;
}

/* How many outputs are written: up to the last that is wanted or that the op always has. */
static int outputs_of(const hone_export_scope *s, const hone_node *n) {
    const hone_program *p = n->program;
    int last = n->n_out, all = pieces(s, n);
    while (last && n->out[last - 1] < 0) last--;
    for (int k = last; k < p->n_out; k++)
        if (!p->operand[p->n_in + k].optional && !p->operand[p->n_in + k].variadic) last = k + 1;
    return all > last ? all : last;
}

/* A constant of halves among operands of f32 (passes/half.c): a Cast says so in the file, and the constant
   stays as small as it is. */
static bool stands_for_f32(const hone_export_scope *s, const hone_node *n, int k) {
    const hone_program *p = n->program;
    const hone_dtype t = n->in[k] >= 0 ? s->g->var.at[n->in[k]].dtype : HONE_DTYPE_NONE;
    if (k >= p->n_in || p->operand[k].of != HONE_OF_VAR || (t != HONE_DTYPE_F16 && t != HONE_DTYPE_BF16))
        return false;
    for (int q = 0; q < n->n_in && q < p->n_in; q++)
        if (n->in[q] >= 0 && p->operand[q].of == HONE_OF_VAR &&
            !strcmp(p->operand[q].type, p->operand[k].type) && s->g->var.at[n->in[q]].dtype == HONE_DTYPE_F32)
            return true;
    return false;
}
static const char *widened(hone_exporter *x, hone_export_scope *s, const hone_node *n, const char *from) {
    const char *to = hone_export_fresh(x, from);
    const hone_attr attr = {
        .name = "to", .kind = HONE_ATTR_TYPE, .n = 1, .i = (const int64_t[]){HONE_DTYPE_F32}};
    hone_onnx_node cast = {.op = "Cast",
                           .name = n->name,
                           .in = &from,
                           .n_in = 1,
                           .out = &to,
                           .n_out = 1,
                           .attr = &attr,
                           .n_attr = 1};
    hone_export_need(x, &cast, 0, 0);
    hone_export_put_node(x, s, &cast);
    return to;
}
void hone_export_node_with(hone_exporter *x, hone_export_scope *s, const hone_node *n, int other,
                           const char *name) {
    const hone_program *p = n->program;
    int n_in = n->n_in - n->n_capture, n_out = outputs_of(s, n);
    uint32_t dtypes = 0;
    while (n_in && n->in[n_in - 1] < 0) n_in--;
    const char **in = HONE_NEW_N(x->arena, const char *, n_in + n_out + 1), **out = in + n_in;
    if (!in) {
        hone_export_no_memory(x);
        return;
    }
    for (int k = 0; k < n_in; k++) {
        in[k] = k == other ? name : hone_export_name(x, s, n->in[k]);
        if (k != other && stands_for_f32(s, n, k)) in[k] = widened(x, s, n, in[k]);
        if (n->in[k] >= 0) dtypes |= 1u << s->g->var.at[n->in[k]].dtype;
    }
    for (int k = 0; k < n_out; k++) {
        hone_vid v = k < n->n_out ? n->out[k] : -1;
        const hone_operand *o = p->operand + p->n_in + (k < p->n_out ? k : p->n_out - 1);
        out[k] = v >= 0 ? hone_export_name(x, s, v) : o->optional ? "" : hone_export_fresh(x, n->name);
        if (v >= 0) dtypes |= 1u << s->g->var.at[v].dtype;
    }
    hone_onnx_node node = {p->domain, p->name, n->name, in, out, n_in, n_out, n->attr, n->n_attr, n};
    hone_export_need(x, &node, dtypes, p->since);
    hone_export_put_node(x, s, &node);
}

/* ---- graphs -------------------------------------------------------------------------------------------- */
static void put_input(hone_exporter *x, hone_export_scope *s, int k, const hone_node *of) {
    const hone_graph *g = s->g;
    /* the number of the turn, and whether it goes on */
    bool turn = of && k < 2 && strcmp(of->program->name, "Loop") == 0;
    hone_wire_mark m = hone_wire_open(&x->w, 11);
    hone_wire_put_text(&x->w, 1, hone_export_name(x, s, g->in.at[k]));
    if (turn) hone_export_scalar_type(x, 2, k ? HONE_DTYPE_BOOL : HONE_DTYPE_I64);
    else hone_export_type(x, 2, s, g->in.at[k], k < g->in_stated.n ? g->in_stated.at + k : NULL);
    hone_wire_close(&x->w, m);
}

/* Outputs of bodies have no type: readers infer it, and know better what is inside a list. But those of
   SequenceMap are tensors, and must say of what. */
static void put_output(hone_exporter *x, const hone_export_scope *s, int k, const char *name,
                       const hone_node *of) {
    const hone_graph *g = s->g;
    hone_wire_mark m = hone_wire_open(&x->w, 12);
    hone_wire_put_text(&x->w, 1, name);
    if (!of || strcmp(of->program->name, "SequenceMap") == 0)
        hone_export_type(x, 2, s, g->out.at[k], k < g->out_stated.n ? g->out_stated.at + k : NULL);
    hone_wire_close(&x->w, m);
}

/* An output must be made in its graph, and stand once: what is handed through from outside, or stands twice,
   goes through Identity. */
static const char *output_name(hone_exporter *x, hone_export_scope *s, int k) {
    hone_vid v = s->g->out.at[k];
    const char *name = hone_export_name(x, s, v);
    bool again = s->from[v] >= 0 || (s->up && shared_of(x, s->g->var.at[v].value));
    for (int j = 0; j < k && !again; j++) again = s->g->out.at[j] == v;
    if (!again) return name;
    const char *made = hone_export_fresh(x, s->g->var.at[v].name);
    hone_onnx_node node = {.op = "Identity", .in = &name, .n_in = 1, .out = &made, .n_out = 1};
    hone_export_put_node(x, s, &node);
    return made;
}

/* What several graphs share is dequantized once, before all of them. */
static void put_shared_quantized(hone_exporter *x, hone_export_scope *s) {
    for (int k = 0; k < x->shared.n && !x->status; k++) {
        hone_export_shared *e = x->shared.at + k;
        if (!e->many || !e->value->from) continue;
        if (!e->name) e->name = hone_export_fresh(x, "weights");
        e->quantized = hone_export_quantized(x, s, e->value->from, e->name, e->name);
    }
}
static void put_quantized(hone_exporter *x, const hone_quantized *from, const char *const *name) {
    const hone_value *value[] = {from->q, from->scale, from->zero};
    for (int k = 0; k < 3 && name[k]; k++) hone_export_tensor(x, 5, name[k], value[k]);
}

static void put_nodes(hone_exporter *x, hone_export_scope *s) {
    const hone_graph *g = s->g;
    if (!s->up) put_shared_quantized(x, s);
    for (int v = 0; v < g->var.n && !x->status; v++)
        if (g->var.at[v].value && g->var.at[v].tag != HONE_TAG_TENSOR)
            hone_export_list(x, s, hone_export_name(x, s, v), g->var.at[v].value);
    for (int v = 0; v < g->var.n && !x->status; v++) {
        const hone_value *c = g->var.at[v].value;
        if (c && c->from && !shared_of(x, c) && g->var.at[v].uses)
            s->quantized[v] =
                hone_export_quantized(x, s, c->from, g->var.at[v].name, hone_export_name(x, s, v));
    }
    for (int k = 0; k < g->node.n && !x->status; k++) {
        const hone_node *n = g->node.at[k];
        if (n->dead) continue;
        if (!n->part) hone_export_node(x, s, n);
        for (int p = 0; n->part && p < n->n_part && !x->status; p++) hone_export_node(x, s, n->part[p]);
    }
}

static void put_initializers(hone_exporter *x, const hone_export_scope *s) {
    const hone_graph *g = s->g;
    for (int v = 0; v < g->var.n && !x->status; v++) {
        const hone_var *var = g->var.at + v;
        const hone_export_shared *e = s->up ? NULL : shared_of(x, var->value);
        bool once = e && e->used && strcmp(e->name, var->name) == 0;
        const char *const *q = s->quantized[v];
        if (e && e->quantized && !strcmp(e->name, var->name)) continue;
        if (q) put_quantized(x, var->value->from, q);
        else if (var->value && var->tag == HONE_TAG_TENSOR && (once || s->used[v]))
            hone_export_tensor(x, 5, once ? e->name : s->name[v], var->value);
    }
    for (int k = 0; !s->up && k < x->shared.n && !x->status; k++)
        if (x->shared.at[k].quantized)
            put_quantized(x, x->shared.at[k].value->from, x->shared.at[k].quantized);
    for (int k = 0; !s->up && k < x->hoisted.n && !x->status; k++) {
        const hone_export_shared *e = x->shared.at + x->hoisted.at[k];
        hone_export_tensor(x, 5, e->name, e->value);
    }
}

void hone_export_graph(hone_exporter *x, uint32_t field, const hone_graph *g, hone_export_scope *up,
                       const hone_node *of) {
    hone_export_scope s = {.g = g, .up = up};
    size_t n = (size_t)g->var.n + 1;
    int depth = 0;
    for (const hone_export_scope *o = up; o; o = o->up) depth++;
    if (depth > HONE_ONNX_MAX_DEPTH) {
        hone_export_fail(x, hone_fail(HONE_NOT_SUPPORTED, "cannot export: bodies are nested deeper than %d",
                                      HONE_ONNX_MAX_DEPTH));
        return;
    }
    s.name = HONE_NEW_N(x->arena, const char *, n);
    s.from = HONE_NEW_N(x->arena, hone_vid, n);
    s.used = HONE_NEW_N(x->arena, bool, n);
    s.quantized = HONE_NEW_N(x->arena, const char **, n);
    const char **out = HONE_NEW_N(x->arena, const char *, g->out.n + 1);
    if (!s.name || !s.from || !s.used || !s.quantized || !out) {
        hone_export_no_memory(x);
        return;
    }
    for (int v = 0; v < g->var.n; v++) s.from[v] = -1;
    for (int k = g->n_formal; of && k < g->in.n; k++)
        s.from[g->in.at[k]] = of->in[of->n_in - of->n_capture + (k - g->n_formal)];
    hone_wire_mark m = up ? hone_wire_open(&x->w, field) : hone_wire_open_wide(&x->w, field);
    put_nodes(x, &s);
    for (int k = 0; k < g->out.n && !x->status; k++) out[k] = output_name(x, &s, k);
    hone_wire_put_text(&x->w, 2, g->name[0] ? g->name : "graph"); /* a name is asked for */
    x->placed = !up;
    put_initializers(x, &s);
    x->placed = false;
    for (int k = 0; k < g->n_formal && !x->status; k++) put_input(x, &s, k, of);
    for (int k = 0; k < g->out.n && !x->status; k++) put_output(x, &s, k, out[k], of);
    hone_wire_close(&x->w, m);
}
