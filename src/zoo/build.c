/* SPDX-License-Identifier: Apache-2.0
   build: nodes, small constants and shapes. Layers are in layers.c, weights in weights.c. */
#include "zoo/build.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ATTRS = 12, MOST_NUMBERS = 16, MOST_OUTPUTS = 4 };

/* ---- names --------------------------------------------------------------------------------------------- */
void hone_zoo_enter(hone_zoo *z, const char *format, ...) {
    size_t n = strlen(z->path);
    va_list list;
    va_start(list, format);
    if (n + 2 < sizeof z->path) {
        z->path[n] = '/';
        vsnprintf(z->path + n + 1, sizeof z->path - n - 1, format, list);
    }
    va_end(list);
}
void hone_zoo_leave(hone_zoo *z) {
    char *last = strrchr(z->path, '/');
    if (last) *last = 0;
}
void hone_zoo_wrong(hone_zoo *z, const char *format, ...) {
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (!z->status) z->status = hone_fail(HONE_BAD_INPUT, "zoo:%s: %s", z->g->name, text);
}
static hone_vid no_memory(hone_zoo *z) {
    z->status = hone_fail(HONE_NO_MEMORY, "no memory for the network");
    return -1;
}

/* ---- vars ---------------------------------------------------------------------------------------------- */
hone_vid hone_zoo_var(hone_zoo *z, const char *name, hone_dtype dtype, const hone_dim *dim, int rank) {
    hone_vid id = z->status ? -1 : hone_graph_var(z->g, name);
    if (id < 0) return z->status ? -1 : no_memory(z);
    hone_var *v = z->g->var.at + id;
    v->dtype = dtype;
    v->rank = (int8_t)rank;
    memcpy(v->dim, dim, sizeof *dim * (size_t)rank);
    return id;
}
hone_vid hone_zoo_input(hone_zoo *z, const char *name, hone_dtype dtype, const hone_dim *dim, int rank) {
    hone_vid id = hone_zoo_var(z, name, dtype, dim, rank);
    if (id >= 0 && !hone_push(&z->g->in, id)) return no_memory(z);
    z->g->n_formal = z->g->in.n;
    return id;
}
void hone_zoo_name(hone_zoo *z, const char *name) { snprintf(z->next, sizeof z->next, "%s", name); }
void hone_zoo_output(hone_zoo *z, hone_vid v) {
    if (!z->status && !hone_push(&z->g->out, v)) no_memory(z);
}
hone_dim hone_zoo_dim(const hone_zoo *z, hone_vid id, int axis) {
    const hone_var *v = z->status ? NULL : hone_var_of(z->g, id);
    if (v && axis < 0) axis += v->rank;
    return v && axis >= 0 && axis < v->rank ? v->dim[axis] : 1;
}

/* A small constant that exporters write as a Constant node. */
static hone_vid small(hone_zoo *z, hone_dtype dtype, const void *data, int64_t n, int rank) {
    hone_value *value;
    if (z->status || (z->status = hone_value_tensor(dtype, &n, rank, &value))) return -1;
    memcpy(value->data, data, value->bytes);
    return hone_zoo_const(z, "Constant_output_0", value);
}
hone_vid hone_zoo_ints(hone_zoo *z, const int64_t *v, int n) { return small(z, HONE_DTYPE_I64, v, n, 1); }
hone_vid hone_zoo_int(hone_zoo *z, int64_t v) { return small(z, HONE_DTYPE_I64, &v, 1, 0); }
hone_vid hone_zoo_float(hone_zoo *z, double v) {
    float f = (float)v;
    return small(z, HONE_DTYPE_F32, &f, 1, 0);
}

/* ---- attributes as text -------------------------------------------------------------------------------- */
typedef struct {
    hone_attr at[MOST_ATTRS];
    int64_t i[MOST_ATTRS][MOST_NUMBERS];
    double f[MOST_ATTRS];
    hone_string s[MOST_ATTRS];
    int n;
} attrs;

/* "name=value" that ends at `end`; the row says what kind of value. false: a bug in the caller. */
static bool read_attr(attrs *a, const hone_program *p, char *text) {
    char *equals = strchr(text, '='), *at = equals ? equals + 1 : NULL;
    if (!equals || a->n == MOST_ATTRS) return false;
    *equals = 0;
    const hone_attr_spec *spec = NULL;
    for (int k = 0; k < p->n_attr; k++)
        if (!strcmp(p->attr[k].name, text)) spec = p->attr + k;
    if (!spec) return false;
    int k = a->n++;
    hone_attr *to = a->at + k;
    *to = (hone_attr){.name = text, .kind = spec->kind, .n = 1};
    if (spec->kind == HONE_ATTR_FLOAT) {
        a->f[k] = strtod(at, NULL);
        to->f = a->f + k;
    } else if (spec->kind == HONE_ATTR_STRING) {
        a->s[k] = (hone_string){(int64_t)strlen(at), at};
        to->s = a->s + k;
    } else {
        to->i = a->i[k];
        for (to->n = 0; *at && to->n < MOST_NUMBERS; at += *at == ',')
            a->i[k][to->n++] = strtoll(at, &at, 10);
    }
    return true;
}
static bool read_attrs(attrs *a, const hone_program *p, char *text) {
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        if (!read_attr(a, p, word)) return false;
    return true;
}

/* ---- nodes --------------------------------------------------------------------------------------------- */
/* Dims, dtype and contents of what a node makes, as hone_graph_infer would find them. */
static hone_status infer(hone_zoo *z, const hone_node *n) {
    hone_inferring w = {z->g->arena, z->g->dims, z->instances, NULL};
    hone_fact *facts = HONE_NEW_N(z->g->arena, hone_fact, n->n_in + n->n_out);
    const hone_fact **in = HONE_NEW_N(z->g->arena, const hone_fact *, n->n_in + 1);
    const hone_instance *i;
    hone_call *call;
    hone_param *param;
    if (!facts || !in) return hone_fail(HONE_NO_MEMORY, "no memory for the network");
    for (int k = 0; k < n->n_in; k++) {
        facts[k] = n->in[k] < 0 ? hone_fact_unknown : hone_fact_of_var(z->g->var.at + n->in[k]);
        in[k] = facts + k;
    }
    hone_fact *out = facts + n->n_in;
    hone_status s = hone_node_infer(&w, n, in, NULL, out, &i, &call, &param);
    if (s) return hone_fail_at(s, "zoo:%s, node '%s' (%s): ", z->g->name, n->name, n->program->name);
    for (int k = 0; k < n->n_out; k++) {
        hone_var *v = z->g->var.at + n->out[k];
        v->dtype = out[k].dtype, v->rank = out[k].rank;
        v->contents = out[k].contents, v->n_content = out[k].n_content;
        memcpy(v->dim, out[k].dim, sizeof v->dim);
    }
    return HONE_OK;
}

/* "/layer1/0/Conv", or "…/Conv_2" where that path has two already. */
static void name_node(const hone_zoo *z, const char *op, char *name, size_t room, char *var,
                      size_t var_room) {
    for (int k = 0;; k++) {
        if (k) snprintf(name, room, "%s/%s_%d", z->path, op, k);
        else snprintf(name, room, "%s/%s", z->path, op);
        snprintf(var, var_room, "%s_output_0", name);
        if (hone_graph_find(z->g, var) < 0) return;
    }
}

static hone_vid place(hone_zoo *z, const char *op, const hone_vid *in, int n_in, int n_out, char *text) {
    char name[336], var[400];
    hone_vid out[MOST_OUTPUTS];
    attrs a;
    if (z->status) return -1;
    const hone_program *p = hone_library_find(z->lib, "", op);
    a.n = 0;
    if (!p || n_out > MOST_OUTPUTS || !read_attrs(&a, p, text)) {
        z->status =
            hone_fail(HONE_BUG, "zoo:%s at '%s': the builder cannot write this %s", z->g->name, z->path, op);
        return -1;
    }
    name_node(z, op, name, sizeof name, var, sizeof var);
    for (int k = 0; k < n_out; k++) {
        if (k) snprintf(var, sizeof var, "%s_output_%d", name, k);
        if ((out[k] = hone_graph_var(z->g, !k && z->next[0] ? z->next : var)) < 0) return no_memory(z);
    }
    z->next[0] = 0;
    hone_node *n = hone_graph_node(z->g, p, name, in, n_in, out, n_out);
    if (!n || !hone_node_attrs(z->g, n, a.at, a.n)) return no_memory(z);
    z->status = infer(z, n);
    return out[0];
}

hone_vid hone_zoo_op(hone_zoo *z, const char *op, const hone_vid *in, int n_in) {
    char none[1] = "";
    return place(z, op, in, n_in, 1, none);
}
hone_vid hone_zoo_op_with(hone_zoo *z, const char *op, const hone_vid *in, int n_in, const char *format,
                          ...) {
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return place(z, op, in, n_in, 1, text);
}
hone_vid hone_zoo_op_many(hone_zoo *z, const char *op, const hone_vid *in, int n_in, int n_out,
                          const char *format, ...) {
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return place(z, op, in, n_in, n_out, text);
}

/* ---- shapes -------------------------------------------------------------------------------------------- */
static int axis_with(const hone_zoo *z, hone_vid from, hone_dim d) {
    const hone_var *v = hone_var_of(z->g, from);
    for (int k = 0; v && k < v->rank; k++)
        if (v->dim[k] == d) return k;
    return -1;
}
hone_vid hone_zoo_shape(hone_zoo *z, hone_vid from, const hone_dim *dim, int n) {
    hone_vid part[HONE_MAX_RANK];
    bool known = true;
    for (int k = 0; k < n; k++) known = known && hone_dim_is_number(dim[k]);
    if (known || z->status) return hone_zoo_ints(z, dim, n);
    for (int k = 0; k < n; k++) {
        if (hone_dim_is_number(dim[k])) {
            part[k] = hone_zoo_ints(z, dim + k, 1);
            continue;
        }
        int axis = axis_with(z, from, dim[k]);
        if (axis < 0 && !z->status)
            z->status = hone_fail(HONE_BUG, "zoo:%s at '%s': dim %d is nowhere", z->g->name, z->path, k);
        hone_vid all = hone_zoo_op(z, "Shape", HONE_ZOO_IN(from)), one = hone_zoo_int(z, axis);
        hone_vid d = hone_zoo_op_with(z, "Gather", HONE_ZOO_IN(all, one), "axis=0"),
                 zero = hone_zoo_ints(z, (const int64_t[]){0}, 1);
        part[k] = hone_zoo_op(z, "Unsqueeze", HONE_ZOO_IN(d, zero));
    }
    return n == 1 ? part[0] : hone_zoo_op_with(z, "Concat", part, n, "axis=0");
}
hone_vid hone_zoo_reshape(hone_zoo *z, hone_vid x, hone_vid from, const hone_dim *dim, int n) {
    hone_vid shape = hone_zoo_shape(z, from, dim, n);
    return hone_zoo_op(z, "Reshape", HONE_ZOO_IN(x, shape));
}
hone_vid hone_zoo_transpose(hone_zoo *z, hone_vid x, const char *perm) {
    return hone_zoo_op_with(z, "Transpose", HONE_ZOO_IN(x), "perm=%s", perm);
}
hone_vid hone_zoo_slice(hone_zoo *z, hone_vid x, int axis, int64_t from, int64_t to) {
    hone_vid a = hone_zoo_ints(z, &from, 1), b = hone_zoo_ints(z, &to, 1),
             on = hone_zoo_ints(z, (const int64_t[]){axis}, 1);
    return hone_zoo_op(z, "Slice", HONE_ZOO_IN(x, a, b, on));
}
