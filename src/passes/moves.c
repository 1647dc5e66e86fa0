/* SPDX-License-Identifier: Apache-2.0
   moves: what only moves elements (Reshape, Transpose, Slice, MaxPool, Concat …) moves bytes instead of the
   floats that they stand for.

        move(DQ(q))   →   DQ(move(q))         always the same numbers; then the product behind it may see its
                                              DQ
        Q(move(x))    →   move(Q(x))          where nothing else reads between; then the product before it may
                                              see its Q
        Concat(DQ(a), DQ(b))   →   DQ(Concat(Q(DQ(a)), Q(DQ(b))))   behind a Q of bytes: each part rounded as
                                                                    the whole would be

   One scale for the whole tensor; a Transpose also takes a scale for each place of an axis along. Rounding
   keeps order, so the largest byte stands for the largest float. */
#include <string.h>

#include "passes/quant.h"

typedef struct {
    const char *op;
    bool smaller; /* the result may have fewer elements: rounding before it would be more work */
    bool ordered; /* it compares elements */
} move;
static const move movers[] = {
    {"Reshape", false, false},      {"Transpose", false, false},    {"Squeeze", false, false},
    {"Unsqueeze", false, false},    {"Flatten", false, false},      {"Identity", false, false},
    {"DepthToSpace", false, false}, {"SpaceToDepth", false, false}, {"MaxPool", false, true},
    {"Slice", true, false},         {"Split", true, false},         {"Gather", true, false},
    {"Expand", true, false},        {"Tile", true, false},          {"Resize", true, false},
};
typedef struct {
    hone_passing *pass;
    hone_graph *g;
    hone_vec(hone_node *) done;
    hone_vec(hone_node *) maker; /* of each var, so far */
    const hone_program *dequantize, *quantize;
} moving;

/* Nearest pixels are moved; between pixels something is computed, and what lies outside of a crop is a number
   of its own. */
static bool nearest(const hone_node *n) {
    return !strcmp(hone_attr_text(n->attr, n->n_attr, "mode", "nearest"), "nearest") &&
           strcmp(hone_attr_text(n->attr, n->n_attr, "coordinate_transformation_mode", "half_pixel"),
                  "tf_crop_and_resize") != 0;
}
static const move *mover(const hone_node *n) {
    if (!n) return NULL;
    for (size_t k = 0; k < sizeof movers / sizeof *movers; k++)
        if (hone_node_is(n, movers[k].op))
            return hone_node_is(n, "Resize") && !nearest(n) ? NULL : movers + k;
    return NULL;
}
/* A window that saw nothing but padding would be another number. */
static bool sees_pixels(const hone_node *n) {
    const hone_attr *kernel = hone_attr_find(n->attr, n->n_attr, "kernel_shape"),
                    *pads = hone_attr_find(n->attr, n->n_attr, "pads");
    const hone_attr *apart = hone_attr_find(n->attr, n->n_attr, "dilations");
    for (int k = 0; apart && k < apart->n; k++)
        if (apart->i[k] != 1) return false;
    for (int k = 0; pads && k < pads->n; k++)
        if (!kernel || !kernel->n || pads->i[k] >= kernel->i[k % kernel->n]) return false;
    return true;
}
static bool push(moving *w, hone_node *n) {
    while (w->maker.n < w->g->var.n)
        if (!hone_push(&w->maker, NULL)) return false;
    for (int k = 0; k < n->n_out; k++) {
        const hone_vid v = n->out[k];
        if (v >= 0 && v < w->maker.n) w->maker.at[v] = n;
    }
    return hone_push(&w->done, n);
}
static hone_node *maker_of(const moving *w, hone_vid v) {
    return v >= 0 && v < w->maker.n ? w->maker.at[v] : NULL;
}
/* A var like another one, of bytes. */
static hone_vid bytes_like(moving *w, hone_vid v, hone_dtype t) {
    hone_vid made = hone_graph_var(w->g, w->g->var.at[v].name);
    if (made < 0) return -1;
    const hone_var from = w->g->var.at[v];
    hone_var *to = w->g->var.at + made;
    to->tag = from.tag, to->dtype = t, to->rank = from.rank;
    memcpy(to->dim, from.dim, sizeof to->dim);
    return made;
}
/* The maker of v as a DequantizeLinear to f32 with constant numbers; its axis in *axis, or -1: one scale.
   NULL: it is none. */
static const hone_node *source(const moving *w, hone_vid v, int *axis) {
    const hone_graph *g = w->g;
    const hone_node *n = maker_of(w, v);
    hone_scaled s;
    if (!n || !hone_node_is(n, "DequantizeLinear")) return NULL;
    if (g->var.at[v].dtype != HONE_DTYPE_F32 || g->var.at[v].rank < 0) return NULL;
    if (hone_quant_scales(g, n, n->in[0], -1, &s)) return *axis = -1, n;
    for (int d = 0; d < g->var.at[v].rank; d++)
        if (hone_quant_scales(g, n, n->in[0], d, &s)) return *axis = d, n;
    return NULL;
}
static bool put_dequantize(moving *w, const hone_node *like, int axis, hone_vid q, hone_vid y) {
    const hone_attr along = HONE_ATTR_I("axis", axis);
    hone_vid in[3] = {q, like->in[1], like->n_in > 2 ? like->in[2] : -1};
    hone_node *n = hone_graph_node(w->g, w->dequantize, like->name, in, like->n_in, &y, 1);
    if (!n) return false;
    w->g->node.n--; /* it stands in `done` */
    return hone_node_attrs(w->g, n, &along, axis >= 0) && push(w, n);
}
/* Of a node that moves, or false where it stays as it is. */
static bool down(moving *w, hone_node *n, bool *ok) {
    const move *m = mover(n);
    int axis = -1;
    const hone_node *d = m && n->n_in ? source(w, n->in[0], &axis) : NULL;
    if (!d || (m->ordered && (!sees_pixels(n) || (n->n_out > 1 && n->out[1] >= 0)))) return false;
    const hone_attr *perm = hone_attr_find(n->attr, n->n_attr, "perm");
    const int rank = w->g->var.at[n->in[0]].rank;
    if (axis >= 0) {
        if (!hone_node_is(n, "Transpose") || (perm && perm->n != rank)) return false;
        int to = perm ? -1 : rank - 1 - axis;
        for (int k = 0; perm && k < rank; k++) to = perm->i[k] == axis ? k : to;
        if ((axis = to) < 0) return false;
    }
    hone_vid y[64] = {0};
    const int outs = n->n_out;
    if (outs > 64) return false;
    for (int k = 0; k < outs; k++)
        if (n->out[k] >= 0 &&
            (w->g->var.at[n->out[k]].dtype != HONE_DTYPE_F32 || w->g->var.at[n->out[k]].rank < 0))
            return false;
    const hone_dtype t = w->g->var.at[d->in[0]].dtype;
    n->in[0] = d->in[0];
    for (int k = 0; k < outs && *ok; k++) {
        y[k] = n->out[k];
        if (y[k] >= 0) *ok = (n->out[k] = bytes_like(w, y[k], t)) >= 0;
    }
    *ok = *ok && push(w, n);
    for (int k = 0; k < outs && *ok; k++)
        if (y[k] >= 0) *ok = put_dequantize(w, d, axis, n->out[k], y[k]);
    w->pass->changed++;
    return true;
}

/* ---- rounding before ----------------------------------------------------------------------------------- */
/* Reverse order: one rounding goes before a chain of moves step by step. */
static bool up(moving *w) {
    hone_graph *g = w->g;
    for (int k = g->node.n - 1; k >= 0; k--) {
        hone_node *q = g->node.at[k];
        hone_scaled y;
        if (!hone_node_is(q, "QuantizeLinear") || !hone_quant_scales(g, q, q->out[0], -1, &y)) continue;
        const hone_var *v = g->var.at + q->in[0];
        hone_node *n = v->producer >= 0 ? g->node.at[v->producer] : NULL;
        const move *m = mover(n);
        if (!n || !m || m->smaller || n->n_out < 1 || n->out[0] != q->in[0] ||
            (n->n_out > 1 && n->out[1] >= 0))
            continue;
        if (v->uses != 1 || v->dtype != HONE_DTYPE_F32 || (m->ordered && !sees_pixels(n))) continue;
        const hone_vid x = n->in[0], end = q->out[0];
        if (g->var.at[x].uses != 1 || g->var.at[x].value || g->var.at[x].producer < 0 ||
            g->var.at[x].dtype != HONE_DTYPE_F32)
            continue;
        if (hone_node_is(g->node.at[g->var.at[x].producer], "DequantizeLinear")) continue;
        const int place = v->producer; /* of the move, before k: they change places */
        const hone_vid made = bytes_like(w, x, y.dtype);
        if (made < 0) return false;
        q->in[0] = x, q->out[0] = made, n->in[0] = made, n->out[0] = end;
        g->node.at[place] = q, g->node.at[k] = n;
        g->var.at[made].producer = place, g->var.at[made].uses = 1, g->var.at[end].producer = k;
        w->pass->changed++;
    }
    return true;
}

/* ---- joins --------------------------------------------------------------------------------------------- */
/* DQ, then Q with the same numbers, is nothing: who reads the second byte may read the first. */
static bool same_number(const hone_graph *g, hone_vid a, hone_vid b) {
    double p = 0, q = 0;
    if (a >= 0 && !hone_match_number(g->var.at[a].value, &p)) return false;
    if (b >= 0 && !hone_match_number(g->var.at[b].value, &q)) return false;
    return p == q;
}
/* Q(Concat(…)) of parts that are all bytes: each part has the rounding of the whole. Parts of its own scale
   lose theirs again (table, same). */
static bool join(moving *w, hone_node *q, bool *ok) {
    hone_graph *g = w->g;
    hone_scaled y;
    int axis;
    if (!hone_node_is(q, "QuantizeLinear") || !hone_quant_scales(g, q, q->out[0], -1, &y)) return false;
    hone_node *n = maker_of(w, q->in[0]);
    if (!n || !hone_node_is(n, "Concat") || g->var.at[q->in[0]].uses != 1 || n->n_in < 1 || n->n_in > 64)
        return false;
    for (int k = 0; k < n->n_in; k++)
        if (!source(w, n->in[k], &axis) || axis >= 0) return false;
    hone_vid part[64];
    for (int k = 0; k < n->n_in && *ok; k++) {
        const hone_node *d = maker_of(w, n->in[k]);
        hone_scaled x;
        if (d && hone_node_is(d, "DequantizeLinear") && hone_quant_scales(g, d, d->in[0], -1, &x) &&
            x.dtype == y.dtype && same_number(g, x.scale, y.scale) && same_number(g, x.zero, y.zero)) {
            part[k] = d->in[0]; /* rounded so already */
            continue;
        }
        hone_vid in[3] = {n->in[k], q->in[1], q->n_in > 2 ? q->in[2] : -1};
        part[k] = bytes_like(w, n->in[k], y.dtype);
        hone_node *each =
            part[k] < 0 ? NULL : hone_graph_node(g, w->quantize, q->name, in, q->n_in, part + k, 1);
        if (each) g->node.n--;
        *ok = each && hone_node_attrs(g, each, q->attr, q->n_attr) && push(w, each);
    }
    hone_node *whole = *ok ? hone_graph_node(g, n->program, n->name, part, n->n_in, &y.q, 1) : NULL;
    if (whole) g->node.n--;
    *ok = whole && hone_node_attrs(g, whole, n->attr, n->n_attr) && push(w, whole);
    w->pass->changed++;
    return true;
}
/* The DequantizeLinear that q undoes, or NULL. */
static const hone_node *undone(const moving *w, const hone_node *q) {
    const hone_graph *g = w->g;
    hone_scaled x, y;
    const hone_node *d = q->n_in ? maker_of(w, q->in[0]) : NULL;
    if (!d || !hone_node_is(q, "QuantizeLinear") || !hone_node_is(d, "DequantizeLinear") ||
        g->var.at[q->in[0]].dtype != HONE_DTYPE_F32)
        return NULL;
    const bool same = hone_quant_scales(g, q, q->out[0], -1, &y) &&
                      hone_quant_scales(g, d, d->in[0], -1, &x) && x.dtype == y.dtype &&
                      same_number(g, x.scale, y.scale) && same_number(g, x.zero, y.zero);
    return same ? d : NULL;
}

static hone_status moves_graph(hone_passing *p, hone_graph *g, const hone_library *library) {
    moving w = {.pass = p, .g = g};
    bool ok = true, any = false;
    const hone_program *identity = hone_library_find(library, "", "Identity");
    w.dequantize = hone_library_find(library, "", "DequantizeLinear"),
    w.quantize = hone_library_find(library, "", "QuantizeLinear");
    if (!identity || !w.dequantize || !w.quantize)
        return hone_fail(HONE_BUG, "the library has no DequantizeLinear");
    for (int k = 0; k < g->node.n; k++) {
        any |=
            hone_node_is(g->node.at[k], "DequantizeLinear") || hone_node_is(g->node.at[k], "QuantizeLinear");
        for (int b = 0; b < g->node.at[k]->n_body; b++)
            HONE_TRY(moves_graph(p, g->node.at[k]->body[b], library));
    }
    if (!any) return HONE_OK;
    ok = up(&w);
    for (int k = 0; k < g->node.n && ok; k++) {
        hone_node *n = g->node.at[k];
        if (n->dead || down(&w, n, &ok) || join(&w, n, &ok)) continue;
        const hone_node *d = ok ? undone(&w, n) : NULL;
        if (d) n->in[0] = d->in[0], n->program = identity, n->n_in = 1, n->n_attr = 0, p->changed++;
        ok = ok && push(&w, n);
    }
    hone_vec_free(&w.maker);
    if (!ok) {
        hone_vec_free(&w.done);
        return hone_fail(HONE_NO_MEMORY, "no memory to move bytes");
    }
    hone_free(g->node.at);
    g->node.at = w.done.at, g->node.n = w.done.n, g->node.room = w.done.room;
    hone_graph_compact(g);
    return HONE_OK;
}
hone_status hone_pass_moves(hone_passing *p) {
    const hone_library *library;
    HONE_TRY(hone_library_builtin(&library));
    hone_graph_index(p->graph);
    HONE_TRY(moves_graph(p, p->graph, library));
    hone_graph_index(p->graph);
    return HONE_OK;
}
