/* SPDX-License-Identifier: Apache-2.0
   import: GraphProto, NodeProto and FunctionProto become graph, drafts and inlined drafts.

   Names are looked up in scopes. A scope is the model's graph, a body, or a call of a function; a body sees what is outside it (and what it
   uses becomes a capture), a call sees only its formals. Inlined names get a prefix, so that they stay unique in the graph they land in. */
#include "model/import.h"

#include <stdlib.h>
#include <string.h>

#include "model/attribute.h"
#include "model/onnx.h"
#include "model/upgrade.h"

enum { ABSENT = -1, NOT_FOUND = -2, MAX_ATTRS = 256 };

typedef struct {
    const char *name;
    hone_vid id;
} formal;
typedef struct {
    hone_vid outer, inner;
} capture;
typedef struct scope {
    hone_onnx_model *m;
    struct scope *up;
    hone_graph *g;
    const hone_onnx_opsets *opsets;
    const char *prefix;
    int depth;
    hone_vec(capture) captured; /* a body's */
    bool inlined;               /* in a call, at any depth */
    bool call;                  /* a call of a function: with its formals and attributes */
    hone_vec(formal) formals;
    const hone_draft *caller;
    const hone_onnx_function *function;
} scope;

static void import_nodes(scope *, hone_wire w, uint32_t number);
static bool import_graph(scope *, hone_wire w);
static void import_initializer(scope *s, const hone_field *f, bool sparse);

/* ---- names ----------------------------------------------------------------------------------------------------------------------- */
static const char *text_of(scope *s, const hone_field *f) {
    const char *t = hone_wire_text(s->m->im.scratch, f);
    if (!t) hone_import_no_memory(&s->m->im);
    return t ? t : "";
}

static const char *full_name(scope *s, const char *name) {
    if (!s->prefix[0]) return name;
    const char *t = hone_arena_text(s->m->im.scratch, "%s%s", s->prefix, name);
    if (!t) hone_import_no_memory(&s->m->im);
    return t ? t : name;
}

static hone_vid lookup(scope *s, const char *name) {
    for (int k = 0; k < s->formals.n; k++)
        if (strcmp(s->formals.at[k].name, name) == 0) return s->formals.at[k].id;
    const char *full = full_name(s, name);
    hone_vid id = hone_graph_find(s->g, full);
    if (id >= 0) return id;
    if (s->call || !s->up) return NOT_FOUND;
    hone_vid outer = lookup(s->up, name);
    if (outer < 0 || s->up->g == s->g) return outer; /* absent, or a body that is written out in place */
    const hone_var *from = s->up->g->var.at + outer;
    if (from->value) {
        id = hone_graph_const(s->g, full, hone_value_hold(from->value));
    } else {
        id = hone_graph_var(s->g, full);
        hone_var *to = hone_var_of(s->g, id);
        from = s->up->g->var.at + outer;
        if (to) {
            to->tag = from->tag, to->dtype = from->dtype, to->rank = from->rank;
            memcpy(to->dim, from->dim, sizeof to->dim);
            if (!hone_push(&s->captured, ((capture){outer, id}))) id = -1;
        }
    }
    if (id < 0) hone_import_no_memory(&s->m->im);
    return id;
}

/* A var that a node will produce, an input or an initializer of that name. */
static hone_vid define(scope *s, const char *name, const char *what) {
    for (int k = 0; k < s->formals.n; k++)
        if (strcmp(s->formals.at[k].name, name) == 0) return s->formals.at[k].id;
    const char *full = full_name(s, name);
    if (hone_graph_find(s->g, full) >= 0) {
        hone_import_problem(&s->m->im, HONE_BAD_INPUT, "graph '%.60s': %s '%.100s' has a name that is taken", s->g->name, what, full);
        return -1;
    }
    hone_vid id = hone_graph_var(s->g, full);
    if (id < 0) hone_import_no_memory(&s->m->im);
    return id;
}

/* ---- types of inputs ------------------------------------------------------------------------------------------------------------- */
static hone_dim read_dim(scope *s, hone_wire w) {
    hone_field f;
    hone_dim d = 0;
    const char *name = NULL;
    while (hone_wire_next(&w, &f)) {
        if (f.number == 1 && f.type == HONE_WIRE_VARINT) d = (hone_dim)f.value, name = NULL;
        if (f.number == 2 && f.type == HONE_WIRE_BYTES) d = 0, name = text_of(s, &f);
    }
    return d > 0 ? d : hone_dim_symbol(s->g->dims, name);
}

static void read_tensor_type(scope *s, hone_wire w, hone_vid id, bool shaped) {
    hone_field f, dim;
    while (hone_wire_next(&w, &f)) {
        hone_var *v = s->g->var.at + id;
        if (f.number == 1 && f.type == HONE_WIRE_VARINT) {
            if (hone_dtype_valid((int64_t)f.value)) v->dtype = (hone_dtype)f.value;
            else if (f.value)
                hone_import_problem(&s->m->im, HONE_NOT_SUPPORTED, "input '%.100s' has unknown element type %llu", v->name,
                                    (unsigned long long)f.value);
        }
        if (f.number != 2 || f.type != HONE_WIRE_BYTES || !shaped) continue;
        int rank = 0;
        for (hone_wire shape = hone_wire_of(&f); hone_wire_next(&shape, &dim);) {
            if (dim.number != 1 || dim.type != HONE_WIRE_BYTES) continue;
            if (rank == HONE_MAX_RANK) {
                hone_import_problem(&s->m->im, HONE_NOT_SUPPORTED, "input '%.100s' has more than %d dims", v->name, HONE_MAX_RANK);
                return;
            }
            v->dim[rank++] = read_dim(s, hone_wire_of(&dim));
        }
        v->rank = (int8_t)rank;
    }
}

/* TypeProto. In sequences, optionals and maps the type of the tensors inside is what the var's dtype says. */
static void read_type(scope *s, hone_wire w, hone_vid id, bool shaped, int depth) {
    static const hone_tag tags[] = {[4] = HONE_TAG_SEQUENCE, [5] = HONE_TAG_MAP, [9] = HONE_TAG_OPTIONAL};
    hone_field f, inner;
    if (depth > HONE_ONNX_MAX_DEPTH) return;
    while (hone_wire_next(&w, &f)) {
        if (f.type != HONE_WIRE_BYTES) continue;
        if (f.number == 1 || f.number == 8) read_tensor_type(s, hone_wire_of(&f), id, shaped && depth == 0 && f.number == 1);
        if (f.number != 4 && f.number != 5 && f.number != 9) continue;
        if (depth == 0) s->g->var.at[id].tag = tags[f.number];
        for (hone_wire of = hone_wire_of(&f); hone_wire_next(&of, &inner);) /* a map's value type is field 2 */
            if (inner.type == HONE_WIRE_BYTES && inner.number == (f.number == 5 ? 2u : 1u))
                read_type(s, hone_wire_of(&inner), id, false, depth + 1);
    }
}

/* ---- attributes ------------------------------------------------------------------------------------------------------------------ */
typedef struct {
    const char *name;
    hone_field graph;
} body_ref;
typedef hone_vec(body_ref) body_refs;

/* One AttributeProto into the draft, or a graph into `bodies`. In a function it may stand for an attribute of the call. */
static void read_attr(scope *s, hone_edit *e, hone_wire w, body_refs *bodies) {
    hone_import *im = &s->m->im;
    hone_onnx_attr a;
    hone_status st = hone_onnx_read_attr(im, w, &a);
    if (st == HONE_NO_MEMORY) {
        hone_import_no_memory(im);
    } else if (st) {
        hone_edit_problem(e, st, "attribute '%.60s' %.200s", a.attr.name, hone_fail_text());
    } else if (a.ref) {
        scope *call = s;
        while (call && !call->call) call = call->up;
        const hone_attr *from = call ? hone_attr_find(call->caller->attr.at, call->caller->attr.n, a.ref) : NULL;
        if (!call)
            hone_edit_problem(e, HONE_BAD_INPUT, "attribute '%.60s' refers to a function's attribute outside a function", a.attr.name);
        if (!from && call) from = hone_attr_find(call->function->defaults.at, call->function->defaults.n, a.ref);
        if (from) {
            const char *name = a.attr.name;
            a.attr = *from;
            a.attr.name = name;
            hone_edit_set(e, a.attr);
        }
    } else if (a.attr.kind == HONE_ATTR_BODY) {
        if (!hone_push(bodies, ((body_ref){a.attr.name, a.graph}))) hone_import_no_memory(im);
    } else {
        hone_edit_set(e, a.attr);
    }
}

/* ---- bodies ---------------------------------------------------------------------------------------------------------------------- */
/* All bodies of a node take the same captures, in the same order: the union of what each uses. `slot[v]`: where outer var v stands. */
static bool share_captures(scope *s, scope *inner, int n, hone_draft *node, int *slot) {
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
            if (g->in.at[formals + j] < 0 && (g->in.at[formals + j] = hone_graph_var(g, s->g->var.at[node->capture.at[j]].name)) < 0)
                return false;
    }
    return true;
}

static void import_bodies(scope *s, hone_edit *e, body_refs *refs) {
    hone_draft *node = e->node;
    scope inner[2] = {{0}};
    int n = 0;
    if (refs->n == 2 && strcmp(refs->at[0].name, "else_branch") == 0) { /* then comes first */
        body_ref t = refs->at[0];
        refs->at[0] = refs->at[1], refs->at[1] = t;
    }
    if (refs->n > 2) hone_edit_problem(e, HONE_NOT_SUPPORTED, "has more than two bodies");
    if (s->depth >= HONE_ONNX_MAX_DEPTH) hone_edit_problem(e, HONE_NOT_SUPPORTED, "bodies are nested deeper than %d", HONE_ONNX_MAX_DEPTH);
    if (refs->n > 2 || s->depth >= HONE_ONNX_MAX_DEPTH) return;
    for (int b = 0; b < refs->n; b++, n++) {
        hone_field name = hone_onnx_name_field(hone_wire_of(&refs->at[b].graph), 2);
        hone_graph *g = hone_graph_body(s->g, text_of(s, &name));
        inner[b] =
            (scope){.m = s->m, .up = s, .g = g, .opsets = s->opsets, .prefix = s->prefix, .depth = s->depth + 1, .inlined = s->inlined};
        if (!g) hone_import_no_memory(&s->m->im);
        else if (!import_graph(inner + b, hone_wire_of(&refs->at[b].graph)))
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
    scope *s;
    const body_refs *refs;
} bodies_of;

/* Writes a body of one input and one output out in the graph at hand (see flex.c). */
static hone_vid write_out(void *context, const char *body, hone_vid x) {
    const bodies_of *b = context;
    scope *s = b->s;
    int k = 0;
    while (k < b->refs->n && strcmp(b->refs->at[k].name, body) != 0) k++;
    if (k == b->refs->n) return x;
    hone_wire w = hone_wire_of(&b->refs->at[k].graph);
    hone_field in = hone_onnx_name_field(w, 11), out = hone_onnx_name_field(w, 12), f;
    in = hone_onnx_name_field(hone_wire_of(&in), 1), out = hone_onnx_name_field(hone_wire_of(&out), 1);
    const char *prefix = hone_arena_text(s->m->im.scratch, "%.40s#%d/", body, ++s->m->im.serial);
    scope inner = {.m = s->m, .up = s, .g = s->g, .opsets = s->opsets, .prefix = prefix, .depth = s->depth + 1, .inlined = s->inlined};
    if (!prefix || !hone_push(&inner.formals, ((formal){text_of(s, &in), x}))) {
        hone_import_no_memory(&s->m->im);
        return -1;
    }
    for (hone_wire c = w; hone_wire_next(&c, &f);)
        if ((f.number == 5 || f.number == 15) && f.type == HONE_WIRE_BYTES) import_initializer(&inner, &f, f.number == 15);
    import_nodes(&inner, w, 1);
    hone_vid y = lookup(&inner, text_of(s, &out));
    hone_vec_free(&inner.formals);
    if (y < 0)
        hone_import_problem(&s->m->im, HONE_BAD_INPUT, "graph '%.60s': the output of body '%.60s' is not produced", s->g->name, body);
    return y < 0 ? -1 : y;
}

/* ---- functions ------------------------------------------------------------------------------------------------------------------- */
static uint32_t hash_of(const char *name) {
    uint32_t h = 2166136261u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

static int by_hash(const void *a, const void *b) {
    uint32_t x = ((const hone_onnx_function *)a)->hash, y = ((const hone_onnx_function *)b)->hash;
    return (x > y) - (x < y);
}

static const hone_onnx_function *function_of(scope *s, const char *domain, const char *op, const char *overload) {
    uint32_t hash = hash_of(op);
    int lo = 0, hi = s->m->functions.n;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (s->m->functions.at[mid].hash < hash) lo = mid + 1;
        else hi = mid;
    }
    for (; lo < s->m->functions.n && s->m->functions.at[lo].hash == hash; lo++) {
        const hone_onnx_function *f = s->m->functions.at + lo;
        if (strcmp(f->name, op) == 0 && strcmp(f->domain, domain) == 0 && strcmp(f->overload, overload) == 0) return f;
    }
    return NULL;
}

static bool bind_formals(scope *inner, hone_wire w, uint32_t number, const hone_vid *id, int n) {
    hone_field f;
    for (int k = 0; hone_wire_next(&w, &f);) {
        if (f.number != number || f.type != HONE_WIRE_BYTES) continue;
        const char *name = text_of(inner, &f);
        if (!hone_push(&inner->formals, ((formal){name, k < n ? id[k] : ABSENT}))) return false;
        k++;
    }
    return true;
}

/* An output that no node of the function makes: one of its inputs, handed through. */
static void hand_through(hone_edit *e, scope *inner, int n_in) {
    for (int k = n_in; k < inner->formals.n; k++)
        for (int j = 0; j < n_in; j++)
            if (inner->formals.at[k].id >= 0 && strcmp(inner->formals.at[j].name, inner->formals.at[k].name) == 0)
                hone_edit_node(e, "Identity", inner->formals.at[k].id, HONE_IN(inner->formals.at[j].id), HONE_PLAIN);
}

static void inline_call(scope *s, hone_edit *e, const hone_onnx_function *f) {
    const hone_draft *n = e->node;
    if (s->depth >= HONE_ONNX_MAX_DEPTH) {
        hone_edit_problem(e, HONE_NOT_SUPPORTED, "functions are nested deeper than %d, or call themselves", HONE_ONNX_MAX_DEPTH);
        return;
    }
    /* Short, and not a path of calls: names that grow with depth would grow without end. */
    const char *prefix = hone_arena_text(s->m->im.scratch, "%.40s#%d/", n->op, ++s->m->im.serial);
    scope inner = {.m = s->m,
                   .up = s,
                   .g = s->g,
                   .opsets = &f->opsets,
                   .prefix = prefix,
                   .depth = s->depth + 1,
                   .inlined = true,
                   .call = true,
                   .caller = n,
                   .function = f};
    bool good = prefix && bind_formals(&inner, f->proto, 4, n->in.at, n->in.n);
    int n_in = inner.formals.n;
    good = good && bind_formals(&inner, f->proto, 5, n->out.at, n->out.n);
    if (!good) hone_import_no_memory(&s->m->im);
    if (n->in.n > n_in || n->out.n > inner.formals.n - n_in)
        hone_edit_problem(e, HONE_BAD_INPUT, "the function has %d inputs and %d outputs", n_in, inner.formals.n - n_in);
    else if (good) {
        import_nodes(&inner, f->proto, 7);
        hand_through(e, &inner, n_in);
    }
    hone_vec_free(&inner.formals);
}

/* ---- nodes ----------------------------------------------------------------------------------------------------------------------- */
static int version_of(scope *s, const char *domain) {
    for (int k = 0; k < s->opsets->n; k++)
        if (strcmp(s->opsets->at[k].domain, domain) == 0) return s->opsets->at[k].version;
    return domain[0] ? HONE_NEWEST : 1;
}

/* Constant: whichever of its attributes is there becomes the value. */
static void place_constant(hone_edit *e) {
    const hone_draft *n = e->node;
    const hone_attr *a = n->attr.n == 1 ? n->attr.at : NULL;
    hone_value *v = NULL;
    hone_vid out = hone_draft_out(n, 0);
    if (!a || out < 0) {
        hone_edit_problem(e, HONE_BAD_INPUT, "must have one attribute and one output");
        return;
    }
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
            else good = (((const hone_string **)v->data)[k] = hone_strings_add(v->strings, a->s[k].text, a->s[k].bytes)) != NULL;
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

static void read_names(scope *s, hone_edit *e, hone_wire w) {
    hone_draft *n = e->node;
    hone_field f;
    bool good = true;
    for (hone_wire c = w; good && hone_wire_next(&c, &f);) {
        if (f.number != 1 || f.type != HONE_WIRE_BYTES) continue;
        const char *name = text_of(s, &f);
        hone_vid id = name[0] ? lookup(s, name) : ABSENT;
        if (id == NOT_FOUND) hone_edit_problem(e, HONE_BAD_INPUT, "reads '%.100s', which nothing before it produces", name);
        good = hone_push(&n->in, id < 0 ? ABSENT : id);
    }
    if (!good) hone_import_no_memory(&s->m->im);
}

static void define_outputs(scope *s, hone_edit *e, hone_wire w) {
    hone_field f;
    while (hone_wire_next(&w, &f)) {
        if (f.number != 2 || f.type != HONE_WIRE_BYTES) continue;
        const char *name = text_of(s, &f);
        if (!hone_push(&e->node->out, name[0] ? define(s, name, "output") : ABSENT)) hone_import_no_memory(&s->m->im);
    }
}

static const char *domain_of(const char *d) { return strcmp(d, "ai.onnx") == 0 ? "" : d; }

static void import_node(scope *s, hone_wire w) {
    hone_import *im = &s->m->im;
    hone_draft n = {.domain = "", .op = "", .name = ""};
    hone_edit e = {im, s->g, &n};
    body_refs bodies = {0};
    const char *overload = "";
    hone_field f;
    int n_attr = 0;
    if (!hone_import_count(im, s->inlined ? (size_t)(w.end - w.at) : 0)) return;
    for (hone_wire c = w; hone_wire_next(&c, &f);) {
        if (f.type != HONE_WIRE_BYTES) continue;
        if (f.number == 3) n.name = text_of(s, &f);
        if (f.number == 4) n.op = text_of(s, &f);
        if (f.number == 7) n.domain = domain_of(text_of(s, &f));
        if (f.number == 8) overload = text_of(s, &f);
    }
    n.version = version_of(s, n.domain);
    if (!hone_wire_good(w)) hone_edit_problem(&e, HONE_BAD_INPUT, "its bytes are damaged");
    read_names(s, &e, w);
    for (hone_wire c = w; hone_wire_next(&c, &f);)
        if (f.number == 5 && f.type == HONE_WIRE_BYTES && ++n_attr <= MAX_ATTRS) read_attr(s, &e, hone_wire_of(&f), &bodies);
    if (n_attr > MAX_ATTRS) hone_edit_problem(&e, HONE_NOT_SUPPORTED, "has more than %d attributes", MAX_ATTRS);
    const hone_onnx_function *function = function_of(s, n.domain, n.op, overload);
    if (function && (hone_library_has(im->library, n.domain, n.op) || hone_upgrade_knows(n.domain, n.op))) function = NULL;
    bool flex =
        strcmp(n.domain, "ai.onnx.preview") == 0 && strcmp(n.op, "FlexAttention") == 0 && !hone_library_has(im->library, n.domain, n.op);
    if (bodies.n && !flex) import_bodies(s, &e, &bodies);
    define_outputs(s, &e, w); /* after the bodies: they cannot see what their own node makes */
    if (!n.name[0] && n.out.n && n.out.at[0] >= 0) n.name = s->g->var.at[n.out.at[0]].name;
    if (flex && s->depth < HONE_ONNX_MAX_DEPTH) hone_onnx_flex_attention(&e, write_out, &(bodies_of){s, &bodies});
    else if (function) inline_call(s, &e, function);
    else if (!n.domain[0] && strcmp(n.op, "Constant") == 0) place_constant(&e);
    else hone_draft_place(&e);
    hone_vec_free(&bodies);
    hone_draft_free(&n);
}

static void import_nodes(scope *s, hone_wire w, uint32_t number) {
    hone_field f;
    while (!hone_import_stop(&s->m->im) && hone_wire_next(&w, &f))
        if (f.number == number && f.type == HONE_WIRE_BYTES) import_node(s, hone_wire_of(&f));
}

/* ---- graphs ---------------------------------------------------------------------------------------------------------------------- */
static void import_initializer(scope *s, const hone_field *f, bool sparse) {
    hone_import *im = &s->m->im;
    hone_wire w = hone_wire_of(f);
    hone_field name = hone_onnx_name_field(w, 8);
    if (sparse) { /* the name is that of its values */
        hone_field values = hone_onnx_name_field(w, 1);
        name = hone_onnx_name_field(hone_wire_of(&values), 8);
    }
    hone_value *v;
    hone_status st = (sparse ? hone_onnx_sparse : hone_onnx_tensor)(w, im->files, &v);
    if (st) {
        if (st == HONE_NO_MEMORY) hone_import_no_memory(im);
        else hone_import_problem(im, st, "%s", hone_fail_text());
        v = NULL;
    }
    const char *full = full_name(s, text_of(s, &name));
    if (hone_graph_find(s->g, full) >= 0 || !full[0]) {
        hone_import_problem(im, HONE_BAD_INPUT, "initializer '%.100s' has a name that is taken or empty", full);
        hone_value_drop(v);
        return;
    }
    /* One that could not be read still has its name, so that its readers are not reported too. */
    if ((v ? hone_graph_const(s->g, full, v) : hone_graph_var(s->g, full)) < 0) hone_import_no_memory(im);
}

/* The TypeProto of an input or output of the model, for whoever writes the model again. */
static bool keep_stated(scope *s, hone_stated_types *list, const hone_field *type) {
    return s->up || hone_push_in(s->g->arena, list, ((hone_stated){type->data, type->bytes}));
}

static void import_input(scope *s, const hone_field *f) {
    hone_import *im = &s->m->im;
    hone_wire w = hone_wire_of(f);
    hone_field name = hone_onnx_name_field(w, 1), type = hone_onnx_name_field(w, 2);
    const char *text = text_of(s, &name);
    hone_vid known = hone_graph_find(s->g, full_name(s, text));
    if (known >= 0 && !s->up && (s->g->var.at[known].value || im->n_problem)) return; /* an initializer's default */
    if (!text[0]) hone_import_problem(im, HONE_BAD_INPUT, "graph '%.60s' has an input without a name", s->g->name);
    hone_vid id = define(s, text, "input");
    if (id < 0) return;
    read_type(s, hone_wire_of(&type), id, !s->up, 0);
    if (!hone_push(&s->g->in, id) || !keep_stated(s, &s->g->in_stated, &type)) hone_import_no_memory(im);
}

/* False: the bytes are damaged. Captures are left to the caller. */
static bool import_graph(scope *s, hone_wire w) {
    hone_import *im = &s->m->im;
    hone_field f;
    if (!hone_wire_good(w)) return false;
    for (hone_wire c = w; hone_wire_next(&c, &f);)
        if ((f.number == 5 || f.number == 15) && f.type == HONE_WIRE_BYTES) import_initializer(s, &f, f.number == 15);
    for (hone_wire c = w; hone_wire_next(&c, &f);)
        if (f.number == 11 && f.type == HONE_WIRE_BYTES) import_input(s, &f);
    import_nodes(s, w, 1);
    for (hone_wire c = w; !hone_import_stop(im) && hone_wire_next(&c, &f);) {
        if (f.number != 12 || f.type != HONE_WIRE_BYTES) continue;
        hone_field name = hone_onnx_name_field(hone_wire_of(&f), 1);
        const char *text = text_of(s, &name);
        hone_vid id = lookup(s, text);
        hone_field type = hone_onnx_name_field(hone_wire_of(&f), 2);
        if (id >= 0 && !s->up && !s->g->var.at[id].dtype)
            read_type(s, hone_wire_of(&type), id, false, 0); /* stands where inference cannot tell */
        if (id < 0) hone_import_problem(im, HONE_BAD_INPUT, "graph '%.60s': output '%.100s' is not produced", s->g->name, text);
        else if (!hone_push(&s->g->out, id) || !keep_stated(s, &s->g->out_stated, &type)) hone_import_no_memory(im);
    }
    return true;
}

/* ---- the model ------------------------------------------------------------------------------------------------------------------- */
static bool read_opset(hone_onnx_model *m, hone_wire w, hone_onnx_opsets *list) {
    hone_field f;
    hone_onnx_opset o = {"", 0};
    uint64_t version = 0;
    while (hone_wire_next(&w, &f)) {
        if (f.number == 1 && f.type == HONE_WIRE_BYTES) o.domain = hone_wire_text(m->im.scratch, &f);
        if (f.number == 2 && f.type == HONE_WIRE_VARINT) version = f.value;
    }
    if (!o.domain) return false;
    o.domain = domain_of(o.domain);
    o.version = version < HONE_NEWEST ? (int)version : HONE_NEWEST - 1;
    if (!o.domain[0] && (o.version < 1 || o.version > HONE_ONNX_MAX_OPSET))
        hone_import_problem(&m->im, HONE_NOT_SUPPORTED, "the model is of opset %d of ai.onnx; known are 1 to %d", o.version,
                            HONE_ONNX_MAX_OPSET);
    return hone_push(list, o);
}

static bool read_function(hone_onnx_model *m, hone_wire w) {
    hone_onnx_function function = {.proto = w, .name = "", .domain = "", .overload = ""};
    scope s = {.m = m, .g = m->im.root, .prefix = ""};
    hone_draft n = {.domain = "", .op = "", .name = "function"};
    hone_edit e = {&m->im, m->im.root, &n};
    body_refs bodies = {0};
    hone_field f;
    bool good = hone_wire_good(w);
    if (!good) hone_import_problem(&m->im, HONE_BAD_INPUT, "a function's bytes are damaged");
    while (good && hone_wire_next(&w, &f)) {
        if (f.type != HONE_WIRE_BYTES) continue;
        if (f.number == 1) function.name = text_of(&s, &f);
        if (f.number == 10) function.domain = domain_of(text_of(&s, &f));
        if (f.number == 13) function.overload = text_of(&s, &f);
        if (f.number == 9) good = read_opset(m, hone_wire_of(&f), &function.opsets);
        if (f.number == 11) read_attr(&s, &e, hone_wire_of(&f), &bodies);
    }
    function.defaults.at = n.attr.at, function.defaults.n = n.attr.n, function.defaults.room = n.attr.room;
    n.attr.at = NULL;
    hone_draft_free(&n);
    hone_vec_free(&bodies);
    function.hash = hash_of(function.name);
    if (hone_push(&m->functions, function)) return true;
    hone_vec_free(&function.defaults);
    hone_vec_free(&function.opsets);
    return false;
}

void hone_onnx_import(hone_onnx_model *m, hone_wire model) {
    hone_field f, graph = {0};
    bool good = hone_wire_good(model);
    if (!good) hone_import_problem(&m->im, HONE_BAD_INPUT, "the file is not an ONNX model, or it is cut short");
    for (hone_wire w = model; good && hone_wire_next(&w, &f);) {
        if (f.type != HONE_WIRE_BYTES) continue;
        if (f.number == 7) graph = f;
        if (f.number == 8 && !read_opset(m, hone_wire_of(&f), &m->opsets)) hone_import_no_memory(&m->im);
    }
    if (!good) return;
    if (!graph.data) {
        hone_import_problem(&m->im, HONE_BAD_INPUT, "the file is not an ONNX model: it has no graph");
        return;
    }
    for (hone_wire w = model; hone_wire_next(&w, &f);)
        if (f.number == 25 && f.type == HONE_WIRE_BYTES && !read_function(m, hone_wire_of(&f))) hone_import_no_memory(&m->im);
    if (m->functions.n) qsort(m->functions.at, (size_t)m->functions.n, sizeof *m->functions.at, by_hash);
    scope s = {.m = m, .g = m->im.root, .opsets = &m->opsets, .prefix = ""};
    m->im.root->opset = version_of(&s, "");
    hone_field name = hone_onnx_name_field(hone_wire_of(&graph), 2);
    if (name.bytes) m->im.root->name = hone_wire_text(m->im.root->arena, &name);
    if (!m->im.root->name) m->im.root->name = "", hone_import_no_memory(&m->im);
    if (!import_graph(&s, hone_wire_of(&graph))) hone_import_problem(&m->im, HONE_BAD_INPUT, "the model's graph is damaged");
    m->im.root->n_formal = m->im.root->in.n;
}
