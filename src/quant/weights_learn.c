/* SPDX-License-Identifier: Apache-2.0
   weights_learn: runs samples, layer after layer, and quantizes each by the second moments of what it reads.
   No arithmetic of weights is here: weights_solve.c.

   Layers that read the same var are a stage. When its turn comes all stages before it are quantized: the
   samples run through the float model and through the one so far, and what the stage reads in both
   goes into its moments. One stage's moments are in memory at a time, never what samples made. */
#include <math.h>
#include <string.h>

#include "quant/weights_form.h"

typedef struct {
    hone_weights_job *w;
    hone_graph *made;     /* the graph so far */
    hone_vec(hone_vid) x; /* of the stage; a layer with several readers may read several */
    hone_value **in, **f, **q;
    int64_t samples;
    double done, share; /* of all, for progress */
} learning;

static hone_vid input_of(const learning *l, const hone_weights_layer *a, int reader) {
    return l->w->job->graph->node.at[a->reader.at[reader]]->in[0];
}
/* From now on the graph so far has it quantized. */
static hone_status install(const learning *l, const hone_weights_layer *a) {
    hone_value *v = hone_weights_floats(&a->q, a->transposed, false);
    if (!v) return hone_quant_no_memory();
    hone_value_drop(l->made->var.at[a->var].value);
    l->made->var.at[a->var].value = v;
    return HONE_OK;
}
static hone_status add(const learning *l, hone_weights_moments *m, const hone_value *q, const hone_value *f,
                       const char *name) {
    const int64_t count = hone_value_count(q);
    if (q->dtype != HONE_DTYPE_F32 || q->rank < 1 || q->dim[q->rank - 1] != m->k ||
        count != hone_value_count(f))
        return hone_fail(HONE_BAD_INPUT,
                         "'%.100s' has another shape in the run than a product with %lld rows wants", name,
                         (long long)m->k);
    hone_weights_moments_add(m, q->data, m->drift ? f->data : NULL, count / m->k, l->w->job->wish->threads);
    return HONE_OK;
}
static hone_status one(const learning *l, int64_t sample, hone_quant_run *plain, hone_quant_run *made,
                       hone_weights_moments *m) {
    const hone_quant_job *job = l->w->job;
    hone_status s = hone_quant_sample(job, sample, l->in);
    if (!s) s = job->runner.run(plain, l->in, l->f);
    if (!s && made) s = job->runner.run(made, l->in, l->q);
    for (int k = 0; k < l->x.n && !s; k++)
        s = add(l, m, made ? l->q[k] : l->f[k], l->f[k], job->graph->var.at[l->x.at[k]].name);
    for (int k = 0; k < job->graph->in.n; k++) hone_value_drop(l->in[k]), l->in[k] = NULL;
    for (int k = 0; k < l->x.n; k++)
        hone_value_drop(l->f[k]), hone_value_drop(l->q[k]), l->f[k] = l->q[k] = NULL;
    return s;
}
static hone_status watch(learning *l, hone_weights_moments *m, const char *name) {
    const hone_quant_job *job = l->w->job;
    hone_quant_run *plain = NULL, *made = NULL;
    hone_status s = hone_quant_open(job, job->graph, l->x.at, l->x.n, &plain);
    if (!s && m->drift) s = hone_quant_open(job, l->made, l->x.at, l->x.n, &made);
    for (int64_t k = 0; k < l->samples && !s; k++) {
        s = hone_quant_tell(job, l->done + l->share * (double)k / (double)l->samples, name);
        if (!s) s = one(l, k, plain, made, m);
    }
    if (plain) job->runner.close(plain);
    if (made) job->runner.close(made);
    return s;
}
static hone_status quantize(const learning *l, hone_weights_layer *a, const hone_weights_moments *m) {
    const hone_weights_job *w = l->w;
    const int threads = w->job->wish->threads;
    float *plain = hone_weights_rows(w, a), *wanted = hone_weights_rows(w, a);
    hone_status s = plain && wanted ? HONE_OK : hone_quant_no_memory();
    if (!s && m->drift) s = hone_weights_follow(m, wanted, a->n, threads);
    if (!s) s = hone_weights_solve(&a->q, m, wanted, w->wish.sweeps, threads);
    if (!s) a->lost_out = hone_weights_loss(&a->q, m, wanted), a->rows = m->rows;
    hone_free(plain), hone_free(wanted);
    return s;
}
/* All layers that read what layer `first` reads. */
static hone_status stage(learning *l, int first, uint8_t *finished) {
    hone_weights_job *w = l->w;
    const hone_weights_layer *a = w->layer.at + first;
    hone_weights_moments m;
    l->x.n = 0;
    for (int r = 0; r < a->reader.n; r++) {
        bool there = false;
        for (int k = 0; k < l->x.n; k++) there |= l->x.at[k] == input_of(l, a, r);
        if (!there && !hone_push(&l->x, input_of(l, a, r))) return hone_quant_no_memory();
    }
    const size_t room = sizeof *l->f * (size_t)l->x.n;
    hone_free(l->f), hone_free(l->q);
    l->f = hone_alloc(room), l->q = hone_alloc(room);
    if (!l->f || !l->q || !hone_weights_moments_make(&m, a->k, l->done > 0)) return hone_quant_no_memory();
    hone_status s = watch(l, &m, w->job->graph->node.at[a->reader.at[0]]->name);
    if (!s) s = hone_weights_factor(&m, w->wish.damping, w->job->wish->threads);
    for (int k = first; k < w->layer.n && !s; k++) {
        hone_weights_layer *b = w->layer.at + k;
        bool same = !finished[k] && !b->table && b->k == m.k && (k == first || b->reader.n == 1);
        same = same && (k == first || (l->x.n == 1 && input_of(l, b, 0) == l->x.at[0]));
        if (!same) continue;
        s = quantize(l, b, &m);
        if (!s) s = install(l, b);
        finished[k] = 1;
    }
    hone_weights_moments_free(&m);
    return s;
}
hone_status hone_weights_learn(hone_weights_job *w) {
    const hone_quantizing *wish = w->job->wish;
    const hone_graph *g = w->job->graph;
    const int64_t most = wish->calibrate > 0 ? wish->calibrate : HONE_WEIGHTS_SAMPLES;
    learning l = {.w = w, .samples = most < wish->data.n ? most : wish->data.n};
    uint8_t *finished = hone_alloc((size_t)w->layer.n + 1);
    l.in = hone_alloc(sizeof *l.in * (size_t)(g->in.n + 1));
    hone_status s = finished && l.in ? hone_graph_copy(g, &l.made) : hone_quant_no_memory();
    /* time goes with what runs before a layer and with the cube of its rows; by numbers will do */
    double all = 1e-30, part = 0;
    bool drifts = false;
    for (int k = 0; k < w->layer.n; k++) all += !w->layer.at[k].table;
    for (int k = 0; k < w->layer.n && !s; k++)
        if (w->layer.at[k].table && w->layer.at[k].q.level)
            s = install(&l, w->layer.at + k), finished[k] = 1, drifts = true;
    for (int k = 0; k < w->layer.n && !s; k++) {
        if (finished[k] || w->layer.at[k].table) continue;
        l.done = fmax(part / all, drifts ? 1e-9 : 0), l.share = 1 / all;
        s = stage(&l, k, finished);
        part = 0;
        for (int j = 0; j < w->layer.n; j++) part += finished[j] && !w->layer.at[j].table;
        drifts = true;
    }
    if (l.made) hone_graph_destroy(l.made);
    hone_free(finished), hone_free(l.in), hone_free(l.f), hone_free(l.q);
    hone_vec_free(&l.x);
    return s;
}
