/* SPDX-License-Identifier: Apache-2.0
   import_node: a NodeProto becomes a draft, and the draft a node: attributes, bodies, constants, calls. */
#include "model/scope.h"

#include <string.h>

#include "model/attribute.h"
#include "model/onnx.h"
#include "model/upgrade.h"

enum { MAX_ATTRS = 256 };

/* ---- attributes ---------------------------------------------------------------------------------------- */
/* One AttributeProto into the draft, or a graph into `bodies`. In a function it may stand for an attribute of
   the call. */
void hone_import_attr(hone_scope *s, hone_edit *e, hone_wire w, hone_body_refs *bodies) {
    hone_import *im = &s->m->im;
    hone_onnx_attr a;
    hone_status st = hone_onnx_read_attr(im, w, &a);
    if (st == HONE_NO_MEMORY) {
        hone_import_no_memory(im);
    } else if (st) {
        hone_edit_problem(e, st, "attribute '%.60s' %.200s", a.attr.name, hone_fail_text());
    } else if (a.ref) {
        hone_scope *call = s;
        while (call && !call->call) call = call->up;
        const hone_attr *from =
            call ? hone_attr_find(call->caller->attr.at, call->caller->attr.n, a.ref) : NULL;
        if (!call)
            hone_edit_problem(e, HONE_BAD_INPUT,
                              "attribute '%.60s' refers to a function's attribute outside a function",
                              a.attr.name);
        if (!from && call)
            from = hone_attr_find(call->function->defaults.at, call->function->defaults.n, a.ref);
        if (from) {
            const char *name = a.attr.name;
            a.attr = *from;
            a.attr.name = name;
            hone_edit_set(e, a.attr);
        }
    } else if (a.attr.kind == HONE_ATTR_BODY) {
        if (!hone_push(bodies, ((hone_body_ref){a.attr.name, a.graph}))) hone_import_no_memory(im);
    } else {
        if (hone_edit_attr(e, a.attr.name))
            hone_import_forgive(im, "node '%.60s' has attribute '%.60s' twice: the last one counts",
                                e->node->name, a.attr.name);
        hone_edit_set(e, a.attr);
    }
    if (!st && a.untyped)
        hone_import_forgive(im, "attributes do not say their type: it is told by what they hold");
}

/* ---- bodies -------------------------------------------------------------------------------------------- */
/* All bodies of a node take the same captures, in the same order: the union of what each uses. `slot[v]`:
   where outer var v stands. */
static bool share_captures(hone_scope *s, hone_scope *inner, int n, hone_draft *node, int *slot) {
    for (int b = 0; b < n; b++)
        for (int k = 0; k < inner[b].captured.n; k++) {
            hone_vid v = inner[b].captured.at[k].outer;
            if (!slot[v] && !hone_push(&node->capture, v)) return false;
            if (!slot[v]) slot[v] = node->capture.n;
        }
    for (int b = 0; b < n; b++) {
        hone_graph *g = inner[b].g;
        int formals = g->n_formal = g->in.n;
        for (int j = 0; j < node->capture.n; j++)
            if (!hone_push(&g->in, -1)) return false;
        for (int k = 0; k < inner[b].captured.n; k++)
            g->in.at[formals + slot[inner[b].captured.at[k].outer] - 1] = inner[b].captured.at[k].inner;
        for (int j = 0; j < node->capture.n; j++)
            if (g->in.at[formals + j] < 0 &&
                (g->in.at[formals + j] = hone_graph_var(g, s->g->var.at[node->capture.at[j]].name)) < 0)
                return false;
    }
    return true;
}

static void import_bodies(hone_scope *s, hone_edit *e, hone_body_refs *refs) {
    hone_draft *node = e->node;
    hone_scope inner[2] = {{0}};
    int n = 0;
    if (refs->n == 2 && strcmp(refs->at[0].name, "else_branch") == 0) { /* then comes first */
        hone_body_ref t = refs->at[0];
        refs->at[0] = refs->at[1], refs->at[1] = t;
    }
    if (refs->n > 2) hone_edit_problem(e, HONE_NOT_SUPPORTED, "has more than two bodies");
    if (s->depth >= HONE_ONNX_MAX_DEPTH)
        hone_edit_problem(e, HONE_NOT_SUPPORTED, "bodies are nested deeper than %d", HONE_ONNX_MAX_DEPTH);
    if (refs->n > 2 || s->depth >= HONE_ONNX_MAX_DEPTH) return;
    for (int b = 0; b < refs->n; b++, n++) {
        hone_field name = hone_onnx_name_field(hone_wire_of(&refs->at[b].graph), 2);
        hone_graph *g = hone_graph_body(s->g, hone_scope_text(s, &name));
        inner[b] = (hone_scope){.m = s->m,
                                .up = s,
                                .g = g,
                                .opsets = s->opsets,
                                .prefix = s->prefix,
                                .depth = s->depth + 1,
                                .inlined = s->inlined};
        if (!g) hone_import_no_memory(&s->m->im);
        else if (!hone_import_graph(inner + b, hone_wire_of(&refs->at[b].graph)))
            hone_edit_problem(e, HONE_BAD_INPUT, "the body '%.60s' is damaged", refs->at[b].name);
        hone_edit_set(e, (hone_attr){.name = refs->at[b].name, .kind = HONE_ATTR_BODY, .n = 1, .body = b});
        if (!g) break;
        node->body[b] = g;
    }
    node->n_body = n;
    int *slot = hone_alloc(((size_t)s->g->var.n + 1) * sizeof *slot);
    if (!slot || (n == refs->n && !share_captures(s, inner, n, node, slot))) hone_import_no_memory(&s->m->im);
    hone_free(slot);
    for (int b = 0; b < 2; b++) hone_vec_free(&inner[b].captured);
}

typedef struct {
    hone_scope *s;
    const hone_body_refs *refs;
} bodies_of;

/* Writes a body of one input and one output out in the graph at hand (see flex.c). */
static hone_vid write_out(void *context, const char *body, hone_vid x) {
    const bodies_of *b = context;
    hone_scope *s = b->s;
    int k = 0;
    while (k < b->refs->n && strcmp(b->refs->at[k].name, body) != 0) k++;
    if (k == b->refs->n) return x;
    hone_wire w = hone_wire_of(&b->refs->at[k].graph);
    hone_field in = hone_onnx_name_field(w, 11), out = hone_onnx_name_field(w, 12), f;
    in = hone_onnx_name_field(hone_wire_of(&in), 1), out = hone_onnx_name_field(hone_wire_of(&out), 1);
    const char *prefix = hone_arena_text(s->m->im.scratch, "%.40s#%d/", body, ++s->m->im.serial);
    hone_scope inner = {.m = s->m,
                        .up = s,
                        .g = s->g,
                        .opsets = s->opsets,
                        .prefix = prefix,
                        .depth = s->depth + 1,
                        .inlined = s->inlined};
    if (!prefix || !hone_push(&inner.formals, ((hone_formal){hone_scope_text(s, &in), x}))) {
        hone_import_no_memory(&s->m->im);
        return -1;
    }
    inner.n_given = 1;
    for (hone_wire c = w; hone_wire_next(&c, &f);)
        if ((f.number == 5 || f.number == 15) && f.type == HONE_WIRE_BYTES)
            hone_import_initializer(&inner, &f, f.number == 15);
    hone_import_nodes(&inner, w, 1);
    hone_vid y = hone_scope_lookup(&inner, hone_scope_text(s, &out));
    hone_vec_free(&inner.formals);
    if (y < 0)
        hone_import_problem(&s->m->im, HONE_BAD_INPUT,
                            "graph '%.60s': the output of body '%.60s' is not produced", s->g->name, body);
    return y < 0 ? -1 : y;
}

/* ---- nodes --------------------------------------------------------------------------------------------- */
/* Constant: whichever of its attributes is there becomes the value. */
static void place_constant(hone_edit *e) {
    const hone_draft *n = e->node;
    const hone_attr *a = n->attr.n ? n->attr.at : NULL;
    hone_value *v = NULL;
    hone_vid out = hone_draft_out(n, 0);
    if (!a || out < 0) {
        hone_edit_problem(e, HONE_BAD_INPUT, "must have a value and an output");
        return;
    }
    if (n->attr.n > 1)
        hone_import_forgive(e->im, "node '%.60s' (Constant) has %d values: the first counts", n->name,
                            n->attr.n);
    bool many = a->kind == HONE_ATTR_INTS || a->kind == HONE_ATTR_FLOATS || a->kind == HONE_ATTR_STRINGS;
    int64_t dim = a->n;
    hone_dtype t = a->i ? HONE_DTYPE_I64 : a->f ? HONE_DTYPE_F32 : HONE_DTYPE_STRING;
    if (a->kind == HONE_ATTR_TENSOR) {
        v = hone_value_hold(a->tensor[0]);
    } else if (a->i || a->f || a->s) {
        if (hone_value_tensor(t, &dim, many ? 1 : 0, &v)) v = NULL;
        bool good = v && (t != HONE_DTYPE_STRING || v->strings || (v->strings = hone_strings_create()));
        for (int k = 0; good && k < a->n; k++) {
            if (a->i) ((int64_t *)v->data)[k] = a->i[k];
            else if (a->f) ((float *)v->data)[k] = (float)a->f[k];
            else
                good = (((const hone_string **)v->data)[k] =
                            hone_strings_add(v->strings, a->s[k].text, a->s[k].bytes)) != NULL;
        }
        if (!good) {
            hone_value_drop(v);
            hone_import_no_memory(e->im);
            return;
        }
    } else {
        hone_edit_problem(e, HONE_BAD_INPUT, "has a value of no known kind");
        return;
    }
    hone_var *var = e->g->var.at + out;
    if (var->value) {
        hone_value_drop(v);
        hone_edit_problem(e, HONE_BAD_INPUT, "its output is made twice");
        return;
    }
    var->value = v;
    var->dtype = v->dtype;
    var->rank = v->rank;
    for (int k = 0; k < v->rank; k++) var->dim[k] = v->dim[k];
}

static void read_names(hone_scope *s, hone_edit *e, hone_wire w) {
    hone_draft *n = e->node;
    hone_field f;
    bool good = true;
    for (hone_wire c = w; good && hone_wire_next(&c, &f);) {
        if (f.number != 1 || f.type != HONE_WIRE_BYTES) continue;
        const char *name = hone_scope_text(s, &f);
        hone_vid id = name[0] ? hone_scope_lookup(s, name) : HONE_ABSENT;
        if (id == HONE_NOT_FOUND)
            hone_edit_problem(e, HONE_BAD_INPUT, "reads '%.100s', which nothing produces", name);
        good = hone_push(&n->in, id < 0 ? HONE_ABSENT : id);
    }
    if (!good) hone_import_no_memory(&s->m->im);
}

static void define_outputs(hone_scope *s, hone_edit *e, hone_wire w) {
    hone_field f;
    while (hone_wire_next(&w, &f)) {
        if (f.number != 2 || f.type != HONE_WIRE_BYTES) continue;
        const char *name = hone_scope_text(s, &f);
        if (!hone_push(&e->node->out, name[0] ? hone_scope_define(s, name, "output") : HONE_ABSENT))
            hone_import_no_memory(&s->m->im);
    }
}

static bool makes_something(hone_wire w) {
    hone_field f;
    while (hone_wire_next(&w, &f))
        if (f.number == 2 && f.type == HONE_WIRE_BYTES && f.bytes) return true;
    return false;
}

static void import_node(hone_scope *s, hone_wire w) {
    hone_import *im = &s->m->im;
    hone_draft n = {.domain = "", .op = "", .name = ""};
    hone_edit e = {im, s->g, &n};
    hone_body_refs bodies = {0};
    const char *overload = "";
    hone_field f;
    int n_attr = 0;
    if (!hone_import_count(im, s->inlined ? (size_t)(w.end - w.at) : 0)) return;
    for (hone_wire c = w; hone_wire_next(&c, &f);) {
        if (f.type != HONE_WIRE_BYTES) continue;
        if (f.number == 3) n.name = hone_scope_text(s, &f);
        if (f.number == 4) n.op = hone_scope_text(s, &f);
        if (f.number == 7) n.domain = hone_onnx_domain(hone_scope_text(s, &f));
        if (f.number == 8) overload = hone_scope_text(s, &f);
    }
    n.version = hone_scope_version(s, n.domain);
    if (n.version == HONE_NEWEST && n.domain[0]) /* a row's version is the newest */
        hone_import_forgive(im, "no opset of %.60s is imported: the newest is taken", n.domain);
    if (!hone_wire_good(w)) hone_edit_problem(&e, HONE_BAD_INPUT, "its bytes are damaged");
    read_names(s, &e, w);
    for (hone_wire c = w; hone_wire_next(&c, &f);)
        if (f.number == 5 && f.type == HONE_WIRE_BYTES && ++n_attr <= MAX_ATTRS)
            hone_import_attr(s, &e, hone_wire_of(&f), &bodies);
    if (n_attr > MAX_ATTRS)
        hone_edit_problem(&e, HONE_NOT_SUPPORTED, "has more than %d attributes", MAX_ATTRS);
    const hone_onnx_function *function = hone_scope_function(s, n.domain, n.op, overload);
    if (function && (hone_library_has(im->library, n.domain, n.op) || hone_upgrade_knows(n.domain, n.op)))
        function = NULL;
    bool flex = strcmp(n.domain, "ai.onnx.preview") == 0 && strcmp(n.op, "FlexAttention") == 0 &&
                !hone_library_has(im->library, n.domain, n.op);
    if (!makes_something(w)) {
        hone_import_forgive(im, "node '%.60s' (%.60s) has no outputs: it is left out", n.name, n.op);
        goto done;
    }
    if (bodies.n && !flex) import_bodies(s, &e, &bodies);
    define_outputs(s, &e, w); /* after the bodies: they cannot see what their own node makes */
    if (!n.name[0] && n.out.n && n.out.at[0] >= 0) n.name = s->g->var.at[n.out.at[0]].name;
    if (flex && s->depth < HONE_ONNX_MAX_DEPTH)
        hone_onnx_flex_attention(&e, write_out, &(bodies_of){s, &bodies});
    else if (function) hone_import_call(s, &e, function);
    else if (!n.domain[0] && strcmp(n.op, "Constant") == 0) place_constant(&e);
    else hone_draft_place(&e);
done:
    hone_vec_free(&bodies);
    hone_draft_free(&n);
}

void hone_import_nodes(hone_scope *s, hone_wire w, uint32_t number) {
    hone_nodes list = {0};
    if (hone_import_order(s, w, number, &list))
        for (int k = 0; k < list.n && !hone_import_stop(&s->m->im); k++)
            import_node(s, hone_wire_of(list.at + k));
    hone_vec_free(&list);
}
