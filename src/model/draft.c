/* SPDX-License-Identifier: Apache-2.0
   draft: editing tools, and the last step in which a draft meets its row and becomes a node. */
#include "model/draft.h"

#include <stdio.h>
#include <string.h>

#include "base/visible.h"

enum { MAX_PROBLEMS = 50, MAX_NODES = 1 << 19, RANK_STEPS = 64 };

/* ---- problems ------------------------------------------------------------------------------------------ */
static void note(hone_import *im, hone_status s, const char *line) {
    if (im->worst != HONE_NO_MEMORY && (s != HONE_NOT_SUPPORTED || !im->worst)) im->worst = s;
    if (im->n_problem++ < MAX_PROBLEMS) {
        char shown[1024];
        hone_visible(shown, sizeof shown, line, strlen(line), false);
        hone_text_put(&im->problems, "%s%s", im->problems.n ? "\n" : "", shown);
    }
    if (im->n_problem == MAX_PROBLEMS + 1) hone_text_put(&im->problems, "\n… and more");
}

void hone_import_problem(hone_import *im, hone_status s, const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    note(im, s, line);
}

/* Is the line among those of the text? */
static bool has_line(const hone_text *t, const char *line) {
    const size_t n = strlen(line);
    for (const char *at = t->text; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        if (strncmp(at, line, n) == 0 && (at[n] == '\n' || !at[n])) return true;
    return false;
}

void hone_import_forgive(hone_import *im, const char *format, ...) {
    char line[512], shown[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    hone_visible(shown, sizeof shown, line, strlen(line), false);
    if (im->n_forgiven > MAX_PROBLEMS || has_line(&im->forgiven, shown)) return;
    im->n_forgiven++;
    hone_text_put(&im->forgiven, "%s%s", im->forgiven.n ? "\n" : "",
                  im->n_forgiven > MAX_PROBLEMS ? "… and more" : shown);
}

void hone_import_no_memory(hone_import *im) {
    if (im->worst != HONE_NO_MEMORY) note(im, HONE_NO_MEMORY, "no memory to import the model");
}

bool hone_import_stop(const hone_import *im) {
    return im->n_problem > MAX_PROBLEMS || im->n_node > MAX_NODES || im->inlined_bytes > im->inlined_limit ||
           im->worst == HONE_NO_MEMORY;
}

bool hone_import_count(hone_import *im, size_t inlined_bytes) {
    if (hone_import_stop(im)) return false;
    im->n_node++;
    im->inlined_bytes += inlined_bytes;
    if (im->n_node <= MAX_NODES && im->inlined_bytes <= im->inlined_limit) return true;
    hone_import_problem(im, HONE_NOT_SUPPORTED,
                        "the model has more than %d nodes, or its functions repeat too much", MAX_NODES);
    return false;
}

void hone_edit_problem(hone_edit *e, hone_status s, const char *format, ...) {
    char line[640], what[320];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const hone_draft *n = e->node;
    char version[16] = "newest";
    if (n->version != HONE_NEWEST) snprintf(version, sizeof version, "%d", n->version);
    snprintf(line, sizeof line, "node '%.60s' (op %.60s, domain %.40s, version %s): %s", n->name, n->op,
             n->domain[0] ? n->domain : "ai.onnx", version, what);
    note(e->im, s, line);
}

/* ---- the draft ----------------------------------------------------------------------------------------- */
void hone_draft_free(hone_draft *n) {
    hone_vec_free(&n->in);
    hone_vec_free(&n->out);
    hone_vec_free(&n->attr);
    hone_vec_free(&n->capture);
}

void hone_edit_set_in(hone_edit *e, int k, hone_vid v) {
    hone_draft *n = e->node;
    while (n->in.n <= k)
        if (!hone_push(&n->in, -1)) {
            hone_import_no_memory(e->im);
            return;
        }
    n->in.at[k] = v;
}

const hone_attr *hone_edit_attr(const hone_edit *e, const char *name) {
    return hone_attr_find(e->node->attr.at, e->node->attr.n, name);
}
int64_t hone_edit_int(const hone_edit *e, const char *name, int64_t otherwise) {
    return hone_attr_int(e->node->attr.at, e->node->attr.n, name, otherwise);
}
double hone_edit_float(const hone_edit *e, const char *name, double otherwise) {
    return hone_attr_float(e->node->attr.at, e->node->attr.n, name, otherwise);
}
const char *hone_edit_text(const hone_edit *e, const char *name, const char *otherwise) {
    return hone_attr_text(e->node->attr.at, e->node->attr.n, name, otherwise);
}

void hone_edit_drop(hone_edit *e, const char *name) {
    hone_draft *n = e->node;
    int kept = 0;
    for (int k = 0; k < n->attr.n; k++)
        if (strcmp(n->attr.at[k].name, name) != 0) n->attr.at[kept++] = n->attr.at[k];
    n->attr.n = kept;
}

void hone_edit_set(hone_edit *e, hone_attr a) {
    hone_edit_drop(e, a.name);
    if (!hone_push(&e->node->attr, a)) hone_import_no_memory(e->im);
}

/* ---- attributes ---------------------------------------------------------------------------------------- */
hone_attr hone_attr_of_int(hone_import *im, const char *name, int64_t v) {
    hone_attr a = hone_attr_of_ints(im, name, &v, 1);
    a.kind = HONE_ATTR_INT;
    return a;
}

/* Without memory an attribute has nothing: no dangling pointer. */
hone_attr hone_attr_of_ints(hone_import *im, const char *name, const int64_t *v, int n) {
    static const int64_t none;
    const int64_t *copy = n ? hone_arena_copy(im->scratch, v, (size_t)n * sizeof *v) : &none;
    if (!copy) hone_import_no_memory(im), copy = &none, n = n > 1 ? 0 : n;
    return (hone_attr){.name = name, .kind = HONE_ATTR_INTS, .n = n, .i = copy};
}

hone_attr hone_attr_of_floats(hone_import *im, const char *name, const double *v, int n) {
    static const double none;
    const double *copy = n ? hone_arena_copy(im->scratch, v, (size_t)n * sizeof *v) : &none;
    if (!copy) hone_import_no_memory(im), copy = &none, n = n > 1 ? 0 : n;
    return (hone_attr){.name = name, .kind = HONE_ATTR_FLOATS, .n = n, .f = copy};
}

hone_attr hone_attr_of_text(hone_import *im, const char *name, const char *v) {
    hone_string s = {(int64_t)strlen(v), v};
    const hone_string *copy = hone_arena_copy(im->scratch, &s, sizeof s);
    if (!copy) hone_import_no_memory(im), copy = &hone_string_empty;
    return (hone_attr){.name = name, .kind = HONE_ATTR_STRING, .n = 1, .s = copy};
}

/* ---- constants and nodes ------------------------------------------------------------------------------- */
hone_vid hone_edit_const(hone_edit *e, hone_value *take) {
    hone_vid v = take ? hone_graph_const(e->g, NULL, take) : -1;
    if (v < 0) hone_import_no_memory(e->im);
    return v;
}

static hone_value *tensor_of(hone_dtype t, const int64_t *dim, int rank) {
    hone_value *v;
    return hone_value_tensor(t, dim, rank, &v) == HONE_OK ? v : NULL;
}

hone_vid hone_edit_i64(hone_edit *e, int64_t x) {
    hone_value *v = tensor_of(HONE_DTYPE_I64, NULL, 0);
    if (v) *(int64_t *)v->data = x;
    return hone_edit_const(e, v);
}

hone_vid hone_edit_i64s(hone_edit *e, const int64_t *x, int n) {
    int64_t dim = n;
    hone_value *v = tensor_of(HONE_DTYPE_I64, &dim, 1);
    if (v && n) memcpy(v->data, x, (size_t)n * sizeof *x);
    return hone_edit_const(e, v);
}

hone_vid hone_edit_scalar(hone_edit *e, hone_dtype t, double x) {
    hone_value *v = tensor_of(t, NULL, 0);
    if (v) hone_dtype_store(t, v->data, HONE_F64, (hone_scalar){.f64 = x}, true);
    return hone_edit_const(e, v);
}

hone_vid hone_edit_like(hone_edit *e, double x, hone_vid like) {
    hone_dtype t = hone_edit_dtype(e, like);
    if (t != HONE_DTYPE_NONE) return hone_edit_scalar(e, t, x);
    return hone_edit_node(e, "CastLike", -1, HONE_IN(hone_edit_scalar(e, HONE_DTYPE_F32, x), like),
                          HONE_PLAIN);
}

hone_vid hone_edit_var(hone_edit *e) {
    hone_vid v = hone_graph_var(e->g, NULL);
    if (v < 0) hone_import_no_memory(e->im);
    return v;
}

hone_vid hone_edit_node(hone_edit *e, const char *op, hone_vid out, const hone_vid *in, int n_in,
                        const hone_attr *attr, int n_attr) {
    hone_draft n = {.domain = "", .op = op, .name = e->node->name, .version = HONE_NEWEST};
    if (out < 0) out = hone_edit_var(e);
    bool good = hone_push(&n.out, out);
    for (int k = 0; good && k < n_in; k++) good = hone_push(&n.in, in[k]);
    for (int k = 0; good && k < n_attr; k++) good = hone_push(&n.attr, attr[k]);
    if (good) hone_draft_place(&(hone_edit){e->im, e->g, &n});
    else hone_import_no_memory(e->im);
    hone_draft_free(&n);
    return out;
}

/* ---- what is known ------------------------------------------------------------------------------------- */
/* Nodes that came since this was asked last are inferred. In a body the formal inputs are unknown, so little
   comes of it. */
static void infer_so_far(const hone_edit *e) {
    hone_import *im = e->im;
    if (!im->instances) im->instances = hone_instances_create();
    if (!im->instances || hone_graph_infer_from(e->g, im->instances, e->g->inferred))
        hone_import_no_memory(im);
    e->g->inferred = e->g->node.n;
}

hone_dtype hone_edit_dtype(const hone_edit *e, hone_vid v) {
    const hone_var *var = hone_var_of(e->g, v);
    if (var && var->tag == HONE_TAG_TENSOR && var->dtype == HONE_DTYPE_NONE && e->g->inferred < e->g->node.n)
        infer_so_far(e);
    return var && var->tag == HONE_TAG_TENSOR ? var->dtype : HONE_DTYPE_NONE;
}

const hone_value *hone_edit_value(const hone_edit *e, hone_vid v) {
    const hone_var *var = hone_var_of(e->g, v);
    return var && var->tag == HONE_TAG_TENSOR ? var->value : NULL;
}

/* How an op's output rank comes from its inputs: enough to see through the usual trunk of a network. */
typedef enum {
    RANK_FIRST /* that of input 0 */,
    RANK_TWO,
    RANK_WIDEST /* the largest of all */,
    RANK_SHAPE /* as many as input 1 says */
} rank_rule;
static const struct {
    const char *op;
    rank_rule rule;
} rank_rules[] = {
    {"Gemm", RANK_TWO},
    {"Flatten", RANK_TWO},
    {"Reshape", RANK_SHAPE},
    {"Transpose", RANK_FIRST},
    {"Add", RANK_WIDEST},
    {"Sub", RANK_WIDEST},
    {"Mul", RANK_WIDEST},
    {"Div", RANK_WIDEST},
    {"Pow", RANK_WIDEST},
    {"Conv", RANK_FIRST},
    {"ConvTranspose", RANK_FIRST},
    {"BatchNormalization", RANK_FIRST},
    {"InstanceNormalization", RANK_FIRST},
    {"LayerNormalization", RANK_FIRST},
    {"MaxPool", RANK_FIRST},
    {"AveragePool", RANK_FIRST},
    {"GlobalAveragePool", RANK_FIRST},
    {"GlobalMaxPool", RANK_FIRST},
    {"Relu", RANK_FIRST},
    {"LeakyRelu", RANK_FIRST},
    {"PRelu", RANK_FIRST},
    {"Clip", RANK_FIRST},
    {"Sigmoid", RANK_FIRST},
    {"Tanh", RANK_FIRST},
    {"Exp", RANK_FIRST},
    {"Log", RANK_FIRST},
    {"Sqrt", RANK_FIRST},
    {"Elu", RANK_FIRST},
    {"Dropout", RANK_FIRST},
    {"Identity", RANK_FIRST},
    {"Cast", RANK_FIRST},
    {"Concat", RANK_FIRST},
    {"Pad", RANK_FIRST},
    {"LRN", RANK_FIRST},
    {"Softmax", RANK_FIRST},
    {"Slice", RANK_FIRST},
    {"Split", RANK_FIRST},
    {"Resize", RANK_FIRST},
    {"Tile", RANK_FIRST},
    {"DepthToSpace", RANK_FIRST},
    {"QuantizeLinear", RANK_FIRST},
    {"DequantizeLinear", RANK_FIRST},
};

static int rank_from(const hone_edit *e, hone_vid v, int steps) {
    for (; steps < RANK_STEPS; steps++) {
        const hone_var *var = hone_var_of(e->g, v);
        if (!var || var->tag != HONE_TAG_TENSOR) return -1;
        if (var->rank >= 0 || var->producer < 0) return var->rank;
        const hone_node *n = e->g->node.at[var->producer];
        size_t k = 0, rules = sizeof rank_rules / sizeof *rank_rules;
        while (k < rules && (n->program->domain[0] || strcmp(rank_rules[k].op, n->program->name) != 0)) k++;
        if (k == rules || n->n_in < 1) return -1;
        if (rank_rules[k].rule == RANK_TWO) return 2;
        if (rank_rules[k].rule == RANK_SHAPE) {
            const hone_value *shape = n->n_in > 1 ? hone_edit_value(e, n->in[1]) : NULL;
            return shape && shape->rank == 1 && shape->dim[0] <= HONE_MAX_RANK ? (int)shape->dim[0] : -1;
        }
        if (rank_rules[k].rule == RANK_WIDEST && n->n_in == 2) {
            /* Half the steps for each side, so that a deep ladder of residuals stays cheap. */
            int a = rank_from(e, n->in[0], steps + (RANK_STEPS - steps + 1) / 2),
                b = a < 0 ? -1 : rank_from(e, n->in[1], steps + (RANK_STEPS - steps + 1) / 2);
            return b < 0 ? -1 : a > b ? a : b;
        }
        v = n->in[0];
    }
    return -1;
}

int hone_edit_rank(const hone_edit *e, hone_vid v) {
    int rank = rank_from(e, v, 0);
    const hone_var *var = hone_var_of(e->g, v);
    if (rank >= 0 || !var || var->tag != HONE_TAG_TENSOR) return rank;
    if (e->g->inferred < e->g->node.n) infer_so_far(e);
    return var->rank;
}

/* ---- the row ------------------------------------------------------------------------------------------- */
static const hone_attr_spec *spec_of(const hone_program *p, const char *name) {
    for (int k = 0; k < p->n_attr; k++)
        if (strcmp(p->attr[k].name, name) == 0) return p->attr + k;
    return NULL;
}

static bool has_kind(hone_attr *a, hone_attr_kind want, hone_import *im) {
    if (a->kind == want || (a->kind == HONE_ATTR_INT && want == HONE_ATTR_INTS) ||
        (a->kind == HONE_ATTR_FLOAT && want == HONE_ATTR_FLOATS)) {
        a->kind = want;
        return true;
    }
    if (a->kind == HONE_ATTR_INT && want == HONE_ATTR_TYPE)
        return a->kind = want, a->i[0] == 0 || hone_dtype_valid(a->i[0]);
    if (a->kind == HONE_ATTR_STRING && want == HONE_ATTR_STRINGS) return a->kind = want, true;
    bool ints = a->kind == HONE_ATTR_INT || a->kind == HONE_ATTR_INTS;
    if (ints && (want == HONE_ATTR_FLOAT || want == HONE_ATTR_FLOATS) &&
        (want == HONE_ATTR_FLOATS || a->n == 1)) {
        double *f = HONE_NEW_N(im->scratch, double, a->n ? a->n : 1);
        if (!f) return hone_import_no_memory(im), false;
        for (int k = 0; k < a->n; k++) f[k] = (double)a->i[k];
        *a = (hone_attr){.name = a->name, .kind = want, .n = a->n, .f = f};
        return true;
    }
    /* an empty list says no type */
    if (a->n == 0 && (want == HONE_ATTR_INTS || want == HONE_ATTR_FLOATS || want == HONE_ATTR_STRINGS)) {
        static const int64_t none;
        *a = (hone_attr){.name = a->name, .kind = want, .i = want == HONE_ATTR_INTS ? &none : NULL};
        return true;
    }
    return false;
}

/* Attributes that never meant anything at inference. */
static bool harmless(const char *name) { return strcmp(name, "consumed_inputs") == 0; }

static void check_attrs(hone_edit *e, const hone_program *p) {
    hone_draft *n = e->node;
    int kept = 0;
    for (int k = 0; k < n->attr.n; k++) {
        hone_attr a = n->attr.at[k];
        const hone_attr_spec *spec = spec_of(p, a.name);
        if (a.kind != HONE_ATTR_BODY && harmless(a.name)) continue;
        if (a.kind != HONE_ATTR_BODY && !spec)
            hone_edit_problem(e, HONE_NOT_SUPPORTED, "unknown attribute '%.60s'", a.name);
        else if (spec && a.kind != HONE_ATTR_BODY && !has_kind(&a, spec->kind, e->im))
            hone_edit_problem(e, HONE_BAD_INPUT, "attribute '%.60s' has the wrong type", a.name);
        else n->attr.at[kept++] = a;
    }
    n->attr.n = kept;
}

/* Element types that follow from the row alone; the rest is inference's. */
static hone_dtype output_type(const hone_graph *g, const hone_node *n, const hone_operand *o) {
    const hone_program *p = n->program;
    if (o->of == HONE_OF_DTYPE) return o->dtype;
    if (o->of == HONE_OF_ATTR) {
        int64_t t = hone_attr_int(n->attr, n->n_attr, o->type, 0);
        return hone_dtype_valid(t) ? (hone_dtype)t : HONE_DTYPE_NONE;
    }
    if (o->of != HONE_OF_VAR) return HONE_DTYPE_NONE;
    for (int k = 0; k < p->n_in && k < n->n_in - n->n_capture; k++) {
        const hone_operand *from = p->operand + k;
        const hone_var *v = hone_var_of(g, n->in[k]);
        if (v && v->tag == HONE_TAG_TENSOR && v->dtype != HONE_DTYPE_NONE && from->of == HONE_OF_VAR &&
            strcmp(from->type, o->type) == 0)
            return v->dtype;
    }
    return HONE_DTYPE_NONE;
}

static void set_output_types(hone_graph *g, const hone_node *n) {
    const hone_program *p = n->program;
    for (int k = 0; k < n->n_out && k < p->n_out; k++) {
        const hone_operand *o = p->operand + p->n_in + k;
        if (n->out[k] >= 0 && o->shaped && g->var.at[n->out[k]].tag == HONE_TAG_TENSOR)
            g->var.at[n->out[k]].dtype = output_type(g, n, o);
    }
}

static void make_node(hone_edit *e, const hone_program *p) {
    hone_draft *n = e->node;
    bool good = true;
    while (n->in.n && n->in.at[n->in.n - 1] < 0) n->in.n--;
    while (n->out.n && n->out.at[n->out.n - 1] < 0) n->out.n--;
    for (int k = 0; good && k < n->capture.n; k++) good = hone_push(&n->in, n->capture.at[k]);
    hone_node *node = good ? hone_graph_node(e->g, p, n->name, n->in.at, n->in.n, n->out.at, n->out.n) : NULL;
    if (node && n->n_body) {
        node->body = hone_arena_copy(e->g->arena, n->body, sizeof n->body);
        node->n_body = n->n_body;
        node->n_capture = n->capture.n;
    }
    if (!node || (n->n_body && !node->body) || !hone_node_attrs(e->g, node, n->attr.at, n->attr.n))
        hone_import_no_memory(e->im);
    else set_output_types(e->g, node);
}

void hone_draft_place(hone_edit *e) {
    hone_draft *n = e->node;
    if (hone_import_stop(e->im)) return;
    hone_upgrade(e);
    if (n->placed) return;
    n->placed = true;
    if (!hone_import_count(e->im, 0)) return;
    const hone_program *p = hone_library_find(e->im->library, n->domain, n->op);
    if (!p) { /* a row that is there and cannot be had says why itself */
        if (hone_library_has(e->im->library, n->domain, n->op))
            hone_edit_problem(e, HONE_BUG, "%s", hone_fail_text());
        else hone_edit_problem(e, HONE_NOT_SUPPORTED, "unknown op");
        return;
    }
    check_attrs(e, p);
    make_node(e, p);
}
