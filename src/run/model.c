/* SPDX-License-Identifier: Apache-2.0
   model: the public model and session handles, and a user's ops. What they report is in report.c. */
#include "run/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "base/file.h"
#include "hone/tools.h"
#include "model/onnx.h"
#include "zoo/zoo.h"

const char *hone_version(void) { return "0.1.0"; }

/* ---- models -------------------------------------------------------------------------------------------- */
static hone_status describe(hone_model *m, hone_port *p, hone_vid id) {
    const hone_graph *g = m->compiled->graph;
    const hone_var *v = g->var.at + id;
    hone_text t = {0};
    int64_t *dims = HONE_NEW_N(g->arena, int64_t, HONE_MAX_RANK);
    if (!dims) return hone_fail(HONE_NO_MEMORY, "no memory for a model");
    static const char *const kinds[] = {"", "seq ", "opt ", "map "};
    hone_text_put(&t, "%s%s", kinds[v->tag], v->dtype ? hone_dtypes[v->dtype].name : "?");
    if (v->tag == HONE_TAG_TENSOR) hone_text_put(&t, v->rank < 0 ? "[…]" : "[");
    for (int k = 0; k < v->rank; k++) {
        if (k) hone_text_put(&t, ", ");
        hone_dim_print(g->dims, v->dim[k], &t);
        dims[k] = hone_dim_is_number(v->dim[k]) ? v->dim[k] : -1;
    }
    if (v->tag == HONE_TAG_TENSOR && v->rank >= 0) hone_text_put(&t, "]");
    *p = (hone_port){.name = v->name,
                     .kind = (hone_value_kind)v->tag,
                     .dtype = v->dtype,
                     .rank = v->rank,
                     .dims = dims,
                     .shape = t.failed ? NULL : hone_arena_text(g->arena, "%s", t.text)};
    hone_text_free(&t);
    return p->shape ? HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory for a model");
}
/* Passes look at weights; what they looked at in the mapped file need not stay in memory until kernels want
   it. */
static void forget_weights(const hone_graph *g) {
    for (int k = 0; k < g->var.n; k++) {
        const hone_value *v = g->var.at[k].value;
        if (v && v->tag == HONE_TAG_TENSOR && !v->free_data && v->bytes > 1 << 16)
            hone_file_forget(v->data, v->bytes);
    }
}
static hone_status wrap(hone_graph *g, hone_model **out) {
    hone_compiled *c;
    HONE_TRY(hone_compile(g, &c));
    forget_weights(c->graph);
    hone_model *m = hone_alloc(sizeof *m);
    if (!m) {
        hone_compiled_destroy(c);
        return hone_fail(HONE_NO_MEMORY, "no memory for a model");
    }
    m->compiled = c;
    hone_forms_begin(&m->forms);
    atomic_init(&m->holders, 1);
    m->in = HONE_NEW_N(c->graph->arena, hone_port, c->graph->in.n + 1);
    m->out = HONE_NEW_N(c->graph->arena, hone_port, c->graph->out.n + 1);
    hone_status s = m->in && m->out ? HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory for a model");
    for (int k = 0; k < c->graph->in.n && !s; k++) s = describe(m, m->in + k, c->graph->in.at[k]);
    for (int k = 0; k < c->graph->out.n && !s; k++) s = describe(m, m->out + k, c->graph->out.at[k]);
    if (s) {
        hone_model_free(m);
        return s;
    }
    *out = m;
    return HONE_OK;
}
hone_status hone_model_load(const char *path, hone_model **out) {
    return hone_model_load_open(path, NULL, 0, out);
}
hone_status hone_model_load_open(const char *path, const char *const *names, int n, hone_model **out) {
    const hone_library *lib;
    hone_graph *g;
    if (!path || !out || (n && !names))
        return hone_fail(HONE_BAD_INPUT, "hone_model_load: path, names and out must not be NULL");
    HONE_TRY(hone_cpu_check());
    HONE_TRY(hone_library_builtin(&lib));
    /* not a file: a network that we make */
    bool zoo = !strncmp(path, HONE_ZOO_PREFIX, strlen(HONE_ZOO_PREFIX));
    HONE_TRY(zoo ? hone_zoo_graph(path, lib, &g) : hone_onnx_load_open(path, names, n, lib, &g));
    return wrap(g, out);
}
hone_status hone_model_load_memory(const void *data, size_t bytes, hone_model **out) {
    const hone_library *lib;
    hone_graph *g;
    if ((!data && bytes) || !out)
        return hone_fail(HONE_BAD_INPUT, "hone_model_load_memory: data and out must not be NULL");
    HONE_TRY(hone_cpu_check());
    HONE_TRY(hone_library_builtin(&lib));
    HONE_TRY(hone_onnx_load_memory(data, bytes, NULL, lib, &g));
    return wrap(g, out);
}
void hone_model_free(hone_model *m) {
    if (!m || atomic_fetch_sub(&m->holders, 1) > 1) return;
    hone_forms_end(&m->forms);
    hone_compiled_destroy(m->compiled);
    hone_free(m);
}
hone_status hone_model_bare(hone_model *m) {
    if (!m) return hone_fail(HONE_BAD_INPUT, "hone_model_bare: model must not be NULL");
    if (atomic_load(&m->holders) > 1) return hone_fail(HONE_BAD_INPUT, "a session holds the model");
    hone_graph *g = m->compiled->graph;
    for (int k = 0; k < g->var.n; k++) hone_value_drop(g->var.at[k].value), g->var.at[k].value = NULL;
    m->bare = true;
    return HONE_OK;
}
hone_status hone_model_whole(const hone_model *m) {
    return m->bare ? hone_fail(HONE_BAD_INPUT, "the model's weights were freed (hone_model_bare)") : HONE_OK;
}
int hone_model_inputs(const hone_model *m) { return !m ? 0 : m->compiled->graph->in.n; }
int hone_model_outputs(const hone_model *m) { return !m ? 0 : m->compiled->graph->out.n; }
const hone_port *hone_model_input(const hone_model *m, int k) {
    return m && k >= 0 && k < m->compiled->graph->in.n ? m->in + k : NULL;
}
const hone_port *hone_model_output(const hone_model *m, int k) {
    return m && k >= 0 && k < m->compiled->graph->out.n ? m->out + k : NULL;
}

/* ---- sessions ------------------------------------------------------------------------------------------ */
void hone_options_default(hone_options *o) { *o = (hone_options){0}; }
enum { THREADS_MOST = 1024 }; /* more are a mistake, whatever the machine */
hone_status hone_session_create(const hone_model *m, const hone_options *o, hone_session **out) {
    if (!m || !out) return hone_fail(HONE_BAD_INPUT, "hone_session_create: model and out must not be NULL");
    if (o && (o->threads < 0 || o->threads > THREADS_MOST))
        return hone_fail(HONE_BAD_INPUT, "options: threads is %d; it must be from 0, all cores, to %d",
                         o->threads, THREADS_MOST);
    if (o && (o->plans < 0 || o->limit_ms < 0 || o->limit_bytes < 0 || o->profile < 0 || o->profile > 3))
        return hone_fail(HONE_BAD_INPUT, "options: plans, limit_ms and limit_bytes must not be negative, and "
                                         "profile is from 0 to 3");
    HONE_TRY(hone_model_whole(m));
    HONE_TRY(hone_cpu_check());
    hone_session *s = hone_alloc(sizeof *s);
    if (!s) return hone_fail(HONE_NO_MEMORY, "no memory for a session");
    hone_exec_options e = {0};
    if (o)
        e = (hone_exec_options){.threads = o->threads,
                                .plans = o->plans,
                                .interpret = o->interpret != 0,
                                .profile = o->profile == 3 ? HONE_PROFILE_REPLAYED : o->profile,
                                .limit_ms = o->limit_ms,
                                .limit_bytes = o->limit_bytes,
                                .stay = o->stay != 0,
                                .precision = o->precision};
    if (o && o->keep_f32 && !(s->keep_f32 = strdup(o->keep_f32))) {
        hone_free(s);
        return hone_fail(HONE_NO_MEMORY, "no memory for a session");
    }
    e.keep_f32 = s->keep_f32;
    s->model = (hone_model *)m; /* to hold it: the count is all that changes */
    atomic_flag_clear(&s->busy);
    hone_status st = e.interpret ? HONE_OK : hone_advice_open(o ? o->wisdom : NULL, &s->advice);
    if (!st && o) st = hone_units_make(o->device, o->place, &s->units);
    if (!st && o) st = hone_units_precision(s->units, o->precision);
    e.wisdom = s->advice.wisdom, e.units = s->units;
    if (!st) st = hone_forms_get(&s->model->forms, m->compiled, s->units, e.precision, &s->compiled);
    if (!st) st = hone_exec_create(s->compiled, &e, &s->exec);
    if (st) {
        hone_forms_drop(&s->model->forms, s->compiled);
        hone_advice_close(&s->advice);
        hone_units_free(s->units);
        free(s->keep_f32);
        hone_free(s);
        return st;
    }
    atomic_fetch_add(&s->model->holders, 1);
    *out = s;
    return HONE_OK;
}
void hone_session_free(hone_session *s) {
    if (!s) return;
    hone_exec_destroy(s->exec);
    hone_forms_drop(&s->model->forms, s->compiled);
    hone_advice_close(&s->advice);
    hone_units_free(s->units);
    hone_model_free(s->model);
    free(s->keep_f32);
    hone_free(s);
}
hone_status hone_session_run(hone_session *s, hone_value *const *in, hone_value **out) {
    if (!s) return hone_fail(HONE_BAD_INPUT, "hone_session_run: the session must not be NULL");
    const hone_graph *g = s->model->compiled->graph;
    hone_value *room[16] = {0}, **made = room;
    if ((!in && g->in.n) || (!out && g->out.n))
        return hone_fail(HONE_BAD_INPUT, "hone_session_run: in and out must not be NULL");
    if (atomic_flag_test_and_set_explicit(&s->busy, memory_order_acquire))
        return hone_fail(HONE_BAD_INPUT,
                         "this session is running already: a thread needs a session of its own");
    if (g->out.n > 16 && !(made = hone_alloc(sizeof *made * (size_t)g->out.n))) {
        atomic_flag_clear_explicit(&s->busy, memory_order_release);
        return hone_fail(HONE_NO_MEMORY, "no memory for a run");
    }
    for (int k = 0; k < g->out.n; k++) made[k] = out[k] ? hone_value_hold(out[k]) : NULL;
    hone_status st = hone_exec_run(s->exec, in, made);
    for (int k = 0; k < g->out.n; k++) {
        if (st) {
            hone_value_drop(made[k]);
            continue;
        } /* as before */
        hone_value_drop(out[k]);
        out[k] = made[k];
    }
    if (made != room) hone_free(made);
    atomic_flag_clear_explicit(&s->busy, memory_order_release);
    return st;
}

/* ---- ops ----------------------------------------------------------------------------------------------- */
hone_status hone_ops_add(const char *source, const char *text, size_t bytes) {
    if (!source || !text) return hone_fail(HONE_BAD_INPUT, "hone_ops_add: source and text must not be NULL");
    return hone_library_extend(source, text, bytes);
}

/* ---- text that crosses the interface ------------------------------------------------------------------- */
hone_status hone_text_give(hone_text *t, char **out) {
    if (t->failed) {
        hone_text_free(t);
        return hone_fail(HONE_NO_MEMORY, "no memory for a report");
    }
    char *copy = malloc(t->n + 1);
    if (copy) memcpy(copy, t->text ? t->text : "", t->n), copy[t->n] = 0;
    hone_text_free(t);
    if (!copy) return hone_fail(HONE_NO_MEMORY, "no memory for a report");
    *out = copy;
    return HONE_OK;
}
void hone_text_release(char *t) { free(t); }
