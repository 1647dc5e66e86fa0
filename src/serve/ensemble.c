/* SPDX-License-Identifier: Apache-2.0
   ensemble: a graph of models, from Triton's ensemble_scheduling (hone.json's "ensemble" becomes that when it
   is read), checked before the first request: every tensor is made once, what a step wants is made by another
   or given by the client, no step waits for itself, and types and shapes agree from end to end. Running one
   is ensemble_run.c's. */
#include "serve/ensemble.h"

#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *o, const char *key) {
    const char *t = json_string_value(json_object_get(o, key));
    return t ? t : "";
}
bool hone_serve_is_ensemble(const json_t *config) {
    return !strcmp(text_of(config, "platform"), "ensemble") || json_object_get(config, "ensemble_scheduling");
}
json_t *hone_serve_steps(const json_t *config) {
    return json_object_get(json_object_get(config, "ensemble_scheduling"), "step");
}

/* ---- names ---- */

static int tensor_named(hone_serve_ensemble *g, const char *name, hone_serve_error *e) {
    for (int k = 0; k < g->tensors; k++)
        if (!strcmp(g->tensor[k].name, name)) return k;
    if (g->tensors == HONE_SERVE_TENSORS || !*name) {
        hone_serve_fail(e, 400, "ensemble '%s': %s", g->name,
                        *name ? "more tensors than an ensemble may have" : "a tensor without a name");
        return -1;
    }
    if (!(g->tensors & (g->tensors - 1))) { /* 0, 1, 2, 4 …: grows */
        hone_serve_tensor *more =
            realloc(g->tensor, sizeof *more * (size_t)(g->tensors ? 2 * g->tensors : 1));
        if (more) g->tensor = more;
        if (!more) {
            hone_serve_fail(e, 503, "no memory for ensemble '%s'", g->name);
            return -1;
        }
    }
    hone_serve_tensor *t = &g->tensor[g->tensors];
    *t = (hone_serve_tensor){.name = strdup(name), .maker = HONE_SERVE_NOBODY};
    if (t->name) return g->tensors++;
    hone_serve_fail(e, 503, "no memory for ensemble '%s'", g->name);
    return -1;
}
/* "input_map" or "output_map": a port of the member, a tensor. */
static int read_map(hone_serve_ensemble *g, int at, const json_t *map, bool output, hone_serve_error *e) {
    hone_serve_step *s = &g->step[at];
    const char *port;
    json_t *tensor;
    const size_t n = json_object_size(map);
    hone_serve_link *link = calloc(n + 1, sizeof *link);
    *(output ? &s->out : &s->in) = link;
    if (!link) return hone_serve_fail(e, 503, "no memory for ensemble '%s'", g->name);
    if (map && !json_is_object(map) && !json_is_null(map))
        return hone_serve_fail(e, 400, "ensemble '%s', step %d ('%s'): its maps are to be objects", g->name,
                               at + 1, s->model);
    json_object_foreach((json_t *)map, port, tensor) {
        hone_serve_link l = {.port = strdup(port)};
        const int t = tensor_named(g, json_is_string(tensor) ? json_string_value(tensor) : "", e);
        link[output ? s->outs++ : s->ins++] = l;
        if (!l.port && !e->code) hone_serve_fail(e, 503, "no memory for ensemble '%s'", g->name);
        if (e->code) return e->code;
        link[(output ? s->outs : s->ins) - 1].tensor = t;
        if (!output) continue;
        hone_serve_tensor *made = &g->tensor[t];
        if (made->maker >= 0)
            return hone_serve_fail(
                e, 400, "ensemble '%s', step %d ('%s'): tensor '%.100s' is made by step %d ('%s') already",
                g->name, at + 1, s->model, made->name, made->maker + 1, g->step[made->maker].model);
        if (made->maker == HONE_SERVE_CLIENT)
            return hone_serve_fail(e, 400,
                                   "ensemble '%s', step %d ('%s'): tensor '%.100s' is an input of the "
                                   "ensemble, and cannot be made by a step",
                                   g->name, at + 1, s->model, made->name);
        made->maker = at;
    }
    return 0;
}
/* The ensemble's own inputs or outputs, as its config lists them. */
static int read_ports(hone_serve_ensemble *g, const json_t *list, bool output, hone_serve_error *e) {
    const json_t *one;
    size_t k;
    int **at = output ? &g->output : &g->input, *n = output ? &g->outputs : &g->inputs;
    if (!(*at = calloc(HONE_SERVE_TENSORS, sizeof **at)))
        return hone_serve_fail(e, 503, "no memory for ensemble '%s'", g->name);
    json_array_foreach(list, k, one) {
        const int t = tensor_named(g, text_of(one, "name"), e);
        if (t < 0) return e->code;
        for (int j = 0; j < *n; j++)
            if ((*at)[j] == t)
                return hone_serve_fail(e, 400, "ensemble '%s': '%.100s' is listed twice", g->name,
                                       g->tensor[t].name);
        if (!output) g->tensor[t].maker = HONE_SERVE_CLIENT;
        (*at)[(*n)++] = t;
    }
    return 0;
}
/* Where the config lists none: what no step makes is an input, what no step reads is an output. */
static void find_ports(hone_serve_ensemble *g, bool inputs, bool outputs) {
    for (int t = 0; t < g->tensors; t++) {
        hone_serve_tensor *at = &g->tensor[t];
        if (inputs && at->maker == HONE_SERVE_NOBODY)
            at->maker = HONE_SERVE_CLIENT, g->input[g->inputs++] = t;
        if (outputs && at->maker >= 0 && !at->readers) g->output[g->outputs++] = t;
    }
}
static int check_makers(hone_serve_ensemble *g, hone_serve_error *e) {
    for (int s = 0; s < g->steps; s++)
        for (int k = 0; k < g->step[s].ins; k++) {
            const hone_serve_tensor *t = &g->tensor[g->step[s].in[k].tensor];
            if (t->maker == HONE_SERVE_NOBODY)
                return hone_serve_fail(e, 400,
                                       "ensemble '%s', step %d ('%s'): no step makes tensor '%.100s', and it "
                                       "is no input of the ensemble",
                                       g->name, s + 1, g->step[s].model, t->name);
        }
    for (int k = 0; k < g->outputs; k++)
        if (g->tensor[g->output[k]].maker == HONE_SERVE_NOBODY)
            return hone_serve_fail(e, 400, "ensemble '%s': no step makes its output '%.100s'", g->name,
                                   g->tensor[g->output[k]].name);
    if (!g->outputs) return hone_serve_fail(e, 400, "ensemble '%s' has no outputs", g->name);
    return 0;
}
/* Kahn's order: what is left over waits for itself. */
static int check_circles(const hone_serve_ensemble *g, hone_serve_error *e) {
    bool done[HONE_SERVE_STEPS] = {false}, more = true;
    int left = g->steps, stuck = -1, wants = -1;
    while (more && left) {
        more = false, stuck = -1;
        for (int s = 0; s < g->steps; s++) {
            if (done[s]) continue;
            int waits = -1;
            for (int k = 0; k < g->step[s].ins && waits < 0; k++) {
                const int t = g->step[s].in[k].tensor, maker = g->tensor[t].maker;
                if (maker >= 0 && !done[maker]) waits = t;
            }
            if (waits < 0) done[s] = more = true, left--;
            else if (stuck < 0) stuck = s, wants = waits;
        }
    }
    if (!left) return 0;
    const hone_serve_tensor *t = &g->tensor[wants];
    return hone_serve_fail(
        e, 400,
        "ensemble '%s' is a circle: step %d ('%s') wants tensor '%.100s' of step %d ('%s'), "
        "which waits for it in turn",
        g->name, stuck + 1, g->step[stuck].model, t->name, t->maker + 1, g->step[t->maker].model);
}
static int read_steps(hone_serve_ensemble *g, const json_t *steps, hone_serve_error *e) {
    const json_t *one;
    size_t k;
    json_array_foreach(steps, k, one) {
        hone_serve_step *s = &g->step[g->steps++];
        const char *model = text_of(one, "model_name");
        s->number = hone_serve_config_int(one, "model_version", -1);
        if (!(s->model = strdup(model)))
            return hone_serve_fail(e, 503, "no memory for ensemble '%s'", g->name);
        if (!*model)
            return hone_serve_fail(e, 400, "ensemble '%s', step %d names no model", g->name, g->steps);
        if (read_map(g, g->steps - 1, json_object_get(one, "input_map"), false, e) ||
            read_map(g, g->steps - 1, json_object_get(one, "output_map"), true, e))
            return e->code;
        if (!s->outs)
            return hone_serve_fail(e, 400, "ensemble '%s', step %d ('%s') has no outputs: it does nothing",
                                   g->name, g->steps, s->model);
    }
    for (int s = 0; s < g->steps; s++)
        for (int i = 0; i < g->step[s].ins; i++) g->tensor[g->step[s].in[i].tensor].readers++;
    return 0;
}
hone_serve_ensemble *hone_serve_ensemble_read(const char *name, const json_t *config, hone_serve_error *e) {
    const json_t *steps = hone_serve_steps(config), *in = json_object_get(config, "input"),
                 *out = json_object_get(config, "output");
    hone_serve_ensemble *g = calloc(1, sizeof *g);
    const size_t n = json_array_size(steps);
    if (g) g->name = strdup(name), g->step = calloc(n + 1, sizeof *g->step);
    if (!g || !g->name || !g->step) hone_serve_fail(e, 503, "no memory for ensemble '%s'", name);
    else if (!n || n > HONE_SERVE_STEPS)
        hone_serve_fail(e, 400, "ensemble '%s' has %zu steps; from 1 to %d will do", name, n,
                        HONE_SERVE_STEPS);
    else if (!read_ports(g, in, false, e) && !read_ports(g, out, true, e) && !read_steps(g, steps, e)) {
        find_ports(g, !json_array_size(in), !json_array_size(out));
        if (!check_makers(g, e)) check_circles(g, e);
        for (int k = 0; k < g->outputs; k++) g->tensor[g->output[k]].kept = true;
    }
    if (!e->code) return g;
    hone_serve_ensemble_free(g);
    return NULL;
}
void hone_serve_ensemble_free(hone_serve_ensemble *g) {
    if (!g) return;
    for (int s = 0; g->step && s < g->steps; s++) {
        hone_serve_step *at = &g->step[s];
        for (int k = 0; k < at->ins; k++) free(at->in[k].port);
        for (int k = 0; k < at->outs; k++) free(at->out[k].port);
        hone_serve_release(at->version);
        free(at->in), free(at->out), free(at->model);
    }
    for (int t = 0; t < g->tensors; t++)
        free(g->tensor[t].name), free(g->tensor[t].dims), free(g->tensor[t].shape);
    free(g->step), free(g->tensor), free(g->input), free(g->output), free(g->name), free(g);
}

/* ---- members ---- */

static const char *type_name(hone_dtype d) {
    const char *t = hone_serve_type_name(d);
    return t ? t : "of a type that the protocol has not";
}
/* A tensor as this port has it, against what is known of it. */
static int agree(hone_serve_ensemble *g, int step, const hone_port *p, hone_serve_tensor *t,
                 hone_serve_error *e) {
    const hone_serve_step *s = &g->step[step];
    if (p->kind != HONE_VALUE_TENSOR)
        return hone_serve_fail(e, 400, "ensemble '%s', step %d ('%s'): '%.100s' is no tensor", g->name,
                               step + 1, s->model, p->name);
    if (!t->said) {
        t->said = true, t->dtype = p->dtype, t->rank = -1;
    } else if (t->dtype != p->dtype)
        return hone_serve_fail(
            e, 400, "ensemble '%s', step %d ('%s'): '%.100s' is %s, and tensor '%.100s' is %s", g->name,
            step + 1, s->model, p->name, type_name(p->dtype), t->name, type_name(t->dtype));
    if (p->rank < 0) return 0;
    if (t->rank < 0) {
        if (!(t->dims = malloc(sizeof *t->dims * (size_t)(p->rank + 1))))
            return hone_serve_fail(e, 503, "no memory for ensemble '%s'", g->name);
        memcpy(t->dims, p->dims, sizeof *t->dims * (size_t)p->rank);
        t->rank = p->rank;
        return 0;
    }
    if (t->rank != p->rank)
        return hone_serve_fail(
            e, 400, "ensemble '%s', step %d ('%s'): '%.100s' has %d dims, and tensor '%.100s' has %d",
            g->name, step + 1, s->model, p->name, p->rank, t->name, t->rank);
    for (int k = 0; k < p->rank; k++) {
        if (t->dims[k] < 0) t->dims[k] = p->dims[k];
        if (p->dims[k] >= 0 && t->dims[k] != p->dims[k])
            return hone_serve_fail(
                e, 400,
                "ensemble '%s', step %d ('%s'): dim %d of '%.100s' is %lld, and of tensor '%.100s' %lld",
                g->name, step + 1, s->model, k, p->name, (long long)p->dims[k], t->name,
                (long long)t->dims[k]);
    }
    return 0;
}
static int bind_links(hone_serve_ensemble *g, int step, bool output, hone_serve_error *e) {
    hone_serve_step *s = &g->step[step];
    const hone_serve_version *v = s->version;
    const int ports = output ? v->outputs : v->inputs;
    for (int k = 0; k < (output ? s->outs : s->ins); k++) {
        hone_serve_link *l = output ? &s->out[k] : &s->in[k];
        for (l->number = 0; l->number < ports; l->number++)
            if (!strcmp(v->port[l->number + (output ? v->inputs : 0)].name, l->port)) break;
        if (l->number == ports)
            return hone_serve_fail(e, 400,
                                   "ensemble '%s', step %d ('%s'): tensor '%.100s' is mapped to '%.100s', "
                                   "which is no %s of the model",
                                   g->name, step + 1, s->model, g->tensor[l->tensor].name, l->port,
                                   output ? "output" : "input");
        if (agree(g, step, &v->port[l->number + (output ? v->inputs : 0)], &g->tensor[l->tensor], e))
            return e->code;
    }
    for (int p = 0; !output && p < ports; p++) {
        bool given = v->port[p].kind == HONE_VALUE_OPTIONAL;
        for (int k = 0; k < s->ins; k++) given |= s->in[k].number == p;
        if (!given)
            return hone_serve_fail(e, 400,
                                   "ensemble '%s', step %d ('%s'): no tensor is mapped to its input '%.100s'",
                                   g->name, step + 1, s->model, v->port[p].name);
    }
    return 0;
}
/* What the config says of the ensemble's own inputs and outputs. */
static int agree_config(hone_serve_ensemble *g, const json_t *config, const char *list, hone_serve_error *e) {
    const json_t *all = json_object_get(config, list), *one;
    size_t k;
    const int skip = hone_serve_config_int(config, "max_batch_size", 0) > 0;
    json_array_foreach(all, k, one) {
        const int t = tensor_named(g, text_of(one, "name"), e);
        const char *type = text_of(one, "data_type");
        const json_t *dims = json_object_get(one, "dims");
        if (t < 0) return e->code;
        hone_serve_tensor *at = &g->tensor[t];
        if (!strncmp(type, "TYPE_", 5)) type += 5;
        if (!strcmp(type, "STRING")) type = "BYTES";
        if (*type && at->said && hone_serve_type(type) != at->dtype)
            return hone_serve_fail(e, 400,
                                   "ensemble '%s': its config says that '%.100s' is %.20s, and a step has %s",
                                   g->name, at->name, type, type_name(at->dtype));
        const int n = (int)json_array_size(dims) + skip;
        if (!dims || at->rank < 0) continue;
        if (n != at->rank)
            return hone_serve_fail(e, 400,
                                   "ensemble '%s': its config gives '%.100s' %d dims%s, and a step has %d",
                                   g->name, at->name, n, skip ? " with the batch's" : "", at->rank);
        for (int d = skip; d < n; d++) {
            const json_int_t said = json_integer_value(json_array_get(dims, (size_t)(d - skip)));
            if (said < 0) continue;
            if (at->dims[d] >= 0 && at->dims[d] != said)
                return hone_serve_fail(
                    e, 400,
                    "ensemble '%s': its config says that dim %d of '%.100s' is %lld, and a step has %lld",
                    g->name, d, at->name, (long long)said, (long long)at->dims[d]);
            at->dims[d] = said;
        }
    }
    return 0;
}
static bool shape_of(hone_serve_tensor *t) { /* in words */
    enum { ROOM = 400 };
    if (!(t->shape = malloc(ROOM))) return false;
    size_t n =
        (size_t)snprintf(t->shape, ROOM, "%s%s", type_name(t->dtype), t->rank < 0 ? " of any shape" : "[");
    for (int k = 0; k < t->rank && n + 24 < ROOM; k++)
        n += (size_t)(t->dims[k] < 0
                          ? snprintf(t->shape + n, ROOM - n, "%s?", k ? ", " : "")
                          : snprintf(t->shape + n, ROOM - n, "%s%lld", k ? ", " : "", (long long)t->dims[k]));
    if (t->rank >= 0) snprintf(t->shape + n, ROOM - n, "]");
    return true;
}
int hone_serve_ensemble_bind(hone_serve_version *v, hone_serve_version *const *member, hone_serve_error *e) {
    hone_serve_ensemble *g = v->ensemble;
    for (int s = 0; s < g->steps; s++) {
        g->step[s].version = hone_serve_hold(member[s]);
        g->stateful |= member[s]->sequences || (member[s]->ensemble && member[s]->ensemble->stateful);
    }
    for (int output = 1; output >= 0; output--) /* first what is made, then what is wanted */
        for (int s = 0; s < g->steps; s++)
            if (bind_links(g, s, output, e)) return e->code;
    if (agree_config(g, v->config, "input", e) || agree_config(g, v->config, "output", e)) return e->code;
    v->inputs = g->inputs, v->outputs = g->outputs;
    if (!(v->port = calloc((size_t)(v->inputs + v->outputs) + 1, sizeof *v->port)))
        return hone_serve_fail(e, 503, "no memory for ensemble '%s'", g->name);
    for (int k = 0; k < v->inputs + v->outputs; k++) {
        hone_serve_tensor *t = &g->tensor[k < v->inputs ? g->input[k] : g->output[k - v->inputs]];
        if (!t->said)
            return hone_serve_fail(e, 400, "ensemble '%s': no step reads its input '%.100s'", g->name,
                                   t->name);
        if (!t->shape && !shape_of(t)) return hone_serve_fail(e, 503, "no memory for ensemble '%s'", g->name);
        v->port[k] = (hone_port){.name = t->name,
                                 .kind = HONE_VALUE_TENSOR,
                                 .dtype = t->dtype,
                                 .rank = t->rank,
                                 .dims = t->dims,
                                 .shape = t->shape};
    }
    return 0;
}
