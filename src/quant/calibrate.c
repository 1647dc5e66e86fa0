/* SPDX-License-Identifier: Apache-2.0
   calibrate: see calibrate.h. Errors behind a node are computed by the graph itself: beside node N, which
   reads tensor T, stands N once more for each range, reading T rounded to it, and the
   sum of squares by which their results differ is an output. */
#include "quant/calibrate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    LEAST_HELD = 8 << 20,
    MOST_HELD = 64 << 20,
    MOST_READERS = 3,
    MOST_TRIALS = 64 /* at a time: each is half a dozen nodes, which take memory of their own */
};

/* ---- histograms ---------------------------------------------------------------------------------------- */
int64_t hone_quant_held(const hone_graph *g) {
    int64_t weights = 0;
    for (int k = 0; k < g->var.n; k++)
        if (g->var.at[k].value) weights += (int64_t)g->var.at[k].value->bytes;
    return LEAST_HELD + weights / 4 < MOST_HELD ? LEAST_HELD + weights / 4 : MOST_HELD;
}
static int64_t known_bytes(const hone_var *v) { /* -1: its shape is not known */
    int64_t n = (int64_t)sizeof(float);
    for (int k = 0; k < v->rank; k++) {
        if (!hone_dim_is_number(v->dim[k]) || v->dim[k] < 0 || v->dim[k] > MOST_HELD) return -1;
        n *= v->dim[k];
        if (n > MOST_HELD) return MOST_HELD;
    }
    return v->rank < 0 ? -1 : n;
}
/* The shapes of tensors on a sample, as outputs of the graph: no tensor has to be kept for it. */
static hone_status ask_shapes(const hone_quant_job *job, const hone_graph *of, const hone_vid *v, int n,
                              int64_t sample, int64_t *bytes) {
    hone_graph *g = NULL;
    hone_quant_run *run = NULL;
    HONE_TRY(hone_graph_copy(of, &g));
    bool ok = true;
    g->out.n = 0;
    for (int k = 0; k < n && ok; k++) {
        const hone_vid shape =
            bytes[k] >= 0 ? -1 : hone_quant_emit(g, job->library, "Shape", "shape", v + k, 1, NULL, 0);
        ok = bytes[k] >= 0 || (shape >= 0 && hone_push(&g->out, shape));
    }
    const int n_out = g->out.n;
    hone_value **in = hone_alloc(sizeof *in * (size_t)(of->in.n + 1)),
               **out = hone_alloc(sizeof *out * (size_t)(n_out + 1));
    hone_graph_index(g);
    hone_status s = HONE_OK;
    if (ok && in && out) s = job->runner.open(job->runner.context, g, &run);
    else hone_graph_destroy(g), s = hone_quant_no_memory();
    if (!s) s = hone_quant_sample(job, sample, in);
    if (!s) s = job->runner.run(run, in, out);
    for (int k = 0, i = 0; k < n && !s; k++) {
        if (bytes[k] >= 0) continue;
        bytes[k] = (int64_t)sizeof(float);
        for (int64_t d = 0; d < hone_value_count(out[i]) && bytes[k] < MOST_HELD; d++)
            bytes[k] *= ((const int64_t *)out[i]->data)[d];
        i++;
    }
    for (int k = 0; out && k < n_out; k++) hone_value_drop(out[k]);
    for (int k = 0; in && k < of->in.n; k++) hone_value_drop(in[k]);
    if (run) job->runner.close(run);
    hone_free(in), hone_free(out);
    return s;
}
hone_status hone_quant_bytes(const hone_quant_job *job, const hone_graph *g, const hone_vid *v, int n,
                             int64_t sample, int64_t *bytes) {
    bool all = true;
    for (int k = 0; k < n; k++) bytes[k] = known_bytes(g->var.at + v[k]), all &= bytes[k] >= 0;
    return all ? HONE_OK : ask_shapes(job, g, v, n, sample, bytes);
}
/* Tensors whose numbers are their class's own: what only moves shows nothing new. */
static bool is_source(const hone_quant_plan *p, hone_vid v) {
    const int maker = p->graph->var.at[v].producer;
    return p->class_of[v] >= 0 && (maker < 0 || !p->moves[maker]);
}
/* Of layers' operands the shape and the channels are wanted, too. */
static bool is_operand(const hone_quant_plan *p, hone_vid v) {
    bool is = false;
    for (int k = 0; k < p->layer.n; k++) is |= p->layer.at[k].x == v;
    return is;
}
/* Multiply-adds of a layer, from the operand's shape: borders aside. */
static double macs_of(const hone_quant_plan *p, const hone_quant_layer *l, const int64_t *dim, int64_t rank) {
    const hone_node *n = p->graph->node.at[l->node];
    const hone_attr *strides = hone_attr_find(n->attr, n->n_attr, "strides");
    double macs = (double)hone_value_count(p->graph->var.at[l->w].value);
    for (int d = 0; d < rank; d++)
        if (l->conv ? d != 1 : d != rank - 1) macs *= (double)dim[d];
    for (int k = 0; l->conv && strides && k < strides->n; k++)
        macs /= (double)(strides->i[k] > 0 ? strides->i[k] : 1);
    return macs;
}
static void count_macs(hone_quant_plan *p, hone_vid v, const hone_value *dims) {
    for (int k = 0; k < p->layer.n; k++)
        if (p->layer.at[k].x == v)
            p->layer.at[k].macs = macs_of(p, p->layer.at + k, dims->data, hone_value_count(dims));
}
/* The axis of channels of what layers alone read, which repairs want; 0: there are none. */
static int channels_axis(const hone_quant_plan *p, hone_vid v) {
    int axis = 0;
    for (int k = 0; k < p->layer.n; k++)
        if (p->layer.at[k].x == v) axis = p->layer.at[k].conv ? 1 : -1;
    for (int w = 0; w < p->n_var; w++)
        if (w != v && p->class_of[w] == p->class_of[v]) axis = 0; /* one grid for several tensors */
    return axis;
}
/* Extremes of each channel: y[2, channels]. */
static bool see_channels(hone_quant_class *c, int axis, const hone_value *y, const hone_value *dims) {
    const float *at = y->data;
    if (!c->channels) {
        c->channels = y->dim[1], c->axis = axis < 0 ? (int)hone_value_count(dims) + axis : axis;
        c->least = hone_alloc(sizeof(float) * (size_t)c->channels),
        c->most = hone_alloc(sizeof(float) * (size_t)c->channels);
        if (!c->least || !c->most) return false;
    }
    for (int64_t k = 0; k < c->channels && y->dim[1] == c->channels; k++) {
        if (at[k] < c->least[k]) c->least[k] = at[k];
        if (at[c->channels + k] > c->most[k]) c->most[k] = at[c->channels + k];
    }
    return true;
}
bool hone_quant_settle_down(hone_graph *g, int nodes, const int *after) {
    const int added = g->node.n - nodes;
    int *place = hone_alloc(sizeof *place * (size_t)(nodes + 2)); /* of the first that follows node k - 1 */
    hone_node **to = hone_alloc(sizeof *to * (size_t)(g->node.n + 1));
    if (place && to) {
        for (int k = 0; k < added; k++) place[after[k] + 2]++;
        for (int k = 0; k <= nodes; k++) place[k + 1] += place[k];
        for (int k = 0; k < nodes; k++) to[k + place[k + 1]] = g->node.at[k];
        for (int k = 0; k < added; k++) to[after[k] + 1 + place[after[k] + 1]++] = g->node.at[nodes + k];
        memcpy(g->node.at, to, sizeof *to * (size_t)g->node.n);
    }
    const bool done = place && to;
    hone_free(place), hone_free(to);
    return done;
}
/* A copy of the plan's graph whose outputs are what the taps show, each looked at right behind the node that
   makes it: so memory is that of a run. */
typedef struct {
    hone_vid var;
    int axis;                 /* of channels; 0: they are not wanted */
    int seen, extremes, dims; /* numbers of outputs; -1: not wanted */
} tapped;
typedef hone_vec(tapped) taps;
static bool watch(const hone_quant_job *job, const hone_quant_plan *p, hone_graph *g, tapped *t) {
    const hone_program *seen = hone_library_find(job->library, "hone", "Observe"),
                       *channels = hone_library_find(job->library, "hone", "ObserveChannels");
    const hone_program *row = t->axis ? channels : seen;
    t->seen = t->extremes = t->dims = -1;
    if (is_source(p, t->var) || t->axis) {
        /* seen with their channels last, as kernels want pictures, nothing is moved */
        static const int64_t last[] = {0, 2, 3, 1};
        const bool picture = t->axis == 1 && p->graph->var.at[t->var].rank == 4;
        const hone_attr perm = {.name = "perm", .kind = HONE_ATTR_INTS, .n = 4, .i = last};
        const int64_t axis = picture ? -1 : t->axis;
        const hone_attr attr = {.name = "axis", .kind = HONE_ATTR_INT, .n = 1, .i = &axis};
        const hone_vid x =
            picture ? hone_quant_emit(g, job->library, "Transpose", "last", &t->var, 1, &perm, 1) : t->var;
        const hone_vid y[2] = {hone_graph_var(g, "seen"), t->axis ? hone_graph_var(g, "extremes") : 0};
        hone_node *n = x < 0 || y[0] < 0 || y[1] < 0 || !row
                           ? NULL
                           : hone_graph_node(g, row, "watch", &x, 1, y, t->axis ? 2 : 1);
        t->seen = g->out.n, t->extremes = t->axis ? g->out.n + 1 : -1;
        if (!n || (t->axis && !hone_node_attrs(g, n, &attr, 1)) || !hone_push(&g->out, y[0]) ||
            (t->axis && !hone_push(&g->out, y[1])))
            return false;
    }
    if (is_operand(p, t->var)) {
        const hone_vid y = hone_quant_emit(g, job->library, "Shape", "dims", &t->var, 1, NULL, 0);
        t->dims = g->out.n;
        if (y < 0 || !hone_push(&g->out, y)) return false;
    }
    return true;
}
static hone_status watching(const hone_quant_job *job, const hone_quant_plan *p, taps *tap,
                            hone_graph **out) {
    hone_graph *g = NULL;
    HONE_TRY(hone_graph_copy(p->graph, &g));
    const int nodes = g->node.n;
    hone_vec(int) after = {0};
    bool ok = true;
    g->out.n = 0;
    for (int t = 0; t < tap->n && ok; t++) {
        const int before = g->node.n;
        ok = watch(job, p, g, tap->at + t);
        const int maker = p->graph->var.at[tap->at[t].var].producer;
        for (int k = before; k < g->node.n && ok; k++) ok = hone_push(&after, maker);
    }
    ok = ok && hone_quant_settle_down(g, nodes, after.at);
    hone_vec_free(&after);
    if (!ok) {
        hone_graph_destroy(g);
        return hone_quant_no_memory();
    }
    hone_graph_index(g);
    *out = g;
    return HONE_OK;
}
static hone_status see(hone_quant_plan *p, const tapped *t, hone_value *const *out, bool first) {
    hone_quant_class *c = p->class.at + p->class_of[t->var];
    if (t->seen >= 0 && is_source(p, t->var)) hone_histogram_add(c->seen, out[t->seen]->data);
    if (first && t->dims >= 0) count_macs(p, t->var, out[t->dims]);
    return t->extremes < 0 || see_channels(c, t->axis, out[t->extremes], out[t->dims])
               ? HONE_OK
               : hone_quant_no_memory();
}
static hone_status see_all(const hone_quant_job *job, hone_quant_plan *p, taps *tap, const int64_t *sample,
                           int n) {
    hone_quant_run *run = NULL;
    hone_graph *g = NULL;
    HONE_TRY(watching(job, p, tap, &g));
    const int n_out = g->out.n;
    HONE_TRY(job->runner.open(job->runner.context, g, &run));
    hone_value **in = hone_alloc(sizeof *in * (size_t)(p->graph->in.n + 1)),
               **out = hone_alloc(sizeof *out * (size_t)(n_out + 1));
    hone_status s = in && out ? HONE_OK : hone_quant_no_memory();
    /* two fifths of the time, and one sample in any case */
    for (int k = 0; k < n && !s && !(k && hone_quant_late(job, 0.4, "some samples' ranges")); k++) {
        s = hone_quant_tell(job, 0.2 * k / n, "ranges");
        if (!s) s = hone_quant_sample(job, sample[k], in);
        if (!s && (s = job->runner.run(run, in, out)))
            s = hone_fail_at(s, "sample %lld: ", (long long)sample[k] + 1);
        for (int t = 0; t < tap->n && !s; t++) s = see(p, tap->at + t, out, k == 0);
        for (int t = 0; out && t < n_out; t++) hone_value_drop(out[t]), out[t] = NULL;
        for (int i = 0; in && i < p->graph->in.n; i++) hone_value_drop(in[i]), in[i] = NULL;
    }
    job->runner.close(run);
    hone_free(in), hone_free(out);
    return s;
}
hone_status hone_quant_calibrate(const hone_quant_job *job, hone_quant_plan *p, const int64_t *sample,
                                 int n) {
    taps tap = {0};
    hone_status s = HONE_OK;
    for (int v = 0; v < p->n_var && !s; v++)
        if (p->class_of[v] >= 0 && (is_source(p, v) || is_operand(p, v)) &&
            !hone_push(&tap, ((tapped){.var = v, .axis = channels_axis(p, v)})))
            s = hone_quant_no_memory();
    if (!s) s = see_all(job, p, &tap, sample, n);
    hone_vec_free(&tap);
    for (int k = 0; k < p->class.n && !s; k++) {
        const hone_histogram *h = p->class.at[k].seen;
        if (h->odd > 0 && h->odd == h->seen)
            s = hone_fail(
                HONE_BAD_INPUT,
                "tensor '%s' is NaN or infinite in all samples: nothing can be learned of its range",
                p->graph->var.at[p->class.at[k].var].name);
    }
    return s;
}

/* ---- ranges -------------------------------------------------------------------------------------------- */
static int levels_of(const hone_quant_plan *p) { return p->highest - p->lowest + 1; }
void hone_quant_choose_all(hone_quant_plan *p, hone_observer o) {
    for (int k = 0; k < p->class.n; k++) {
        hone_quant_class *c = p->class.at + k;
        c->observer = o, c->range = hone_observer_range(o, c->seen, levels_of(p), p->symmetric);
    }
}
typedef struct {
    int class, observer;
    int reader, nodes; /* number of the node beside which it stands; its own */
} trial;
typedef hone_vec(trial) trials;
typedef hone_vec(hone_vid) vids;

/* Sum of squares of a tensor, in f32. */
static hone_vid power(hone_graph *g, const hone_library *lib, hone_vid v) {
    return hone_quant_emit(
        g, lib, "ReduceSumSquare", "power", &v, 1,
        (const hone_attr[]){{.name = "keepdims", .kind = HONE_ATTR_INT, .n = 1, .i = (const int64_t[]){0}}},
        1);
}
static bool near(hone_range a, hone_range b) {
    const double span = a.high - a.low;
    return fabs(a.low - b.low) <= 0.01 * span && fabs(a.high - b.high) <= 0.01 * span;
}
/* Readers of a class that say most: its layers, else the first few of what computes. */
static int readers(const hone_quant_plan *p, int class, int *out) {
    int n = 0;
    for (int layers = 1; layers >= 0 && !n; layers--)
        for (int k = 0; k < p->n_node && n < MOST_READERS; k++) {
            const hone_node *node = p->graph->node.at[k];
            bool reads = false;
            if (p->moves[k] || (p->layer_of[k] >= 0) != (layers == 1) || node->n_body || node->n_out != 1 ||
                node->program->runs != HONE_RUNS_PROGRAM)
                continue;
            if (p->graph->var.at[node->out[0]].dtype != HONE_DTYPE_F32) continue;
            for (int i = 0; i < node->n_in; i++)
                reads |= node->in[i] >= 0 && p->class_of[node->in[i]] == class;
            if (reads) out[n++] = k;
        }
    return n;
}
static bool try_ranges(const hone_quant_job *job, hone_quant_plan *p, hone_graph *g, int class, trials *t,
                       vids *out) {
    hone_quant_class *c = p->class.at + class;
    int reader[MOST_READERS];
    hone_range tried[HONE_OBSERVERS];
    int n_tried = 0;
    const int n = readers(p, class, reader);
    for (int o = 0; n && o < HONE_OBSERVERS; o++) {
        const hone_range r = hone_observer_range((hone_observer)o, c->seen, levels_of(p), p->symmetric);
        bool known = !(r.high > r.low);
        for (int k = 0; k < n_tried; k++) known |= near(tried[k], r);
        if (known) continue;
        tried[n_tried++] = r;
        const hone_grid grid = hone_grid_of(r, p->lowest, p->highest, p->symmetric);
        for (int k = 0; k < n; k++) {
            const hone_node *node = p->graph->node.at[reader[k]];
            hone_vid in[64], y = node->out[0];
            const int before = g->node.n;
            if (node->n_in > 64) continue;
            for (int i = 0; i < node->n_in; i++) {
                in[i] = node->in[i];
                if (in[i] >= 0 && p->class_of[in[i]] == class &&
                    (in[i] = hone_quant_pair(g, job->library, in[i], &grid, p->dtype)) < 0)
                    return false;
            }
            /* attributes are those of the first graph, which outlives this one */
            const hone_vid z = hone_graph_var(g, "trial");
            hone_node *made =
                z < 0 ? NULL : hone_graph_node(g, node->program, node->name, in, node->n_in, &z, 1);
            if (!made) return false;
            made->attr = node->attr, made->n_attr = node->n_attr;
            const hone_vid d = hone_quant_emit(g, job->library, "Sub", "off", (const hone_vid[]){z, y}, 2,
                                               NULL, 0),
                           off = d < 0 ? -1 : power(g, job->library, d), all = power(g, job->library, y);
            if (off < 0 || all < 0 || !hone_push(out, off) || !hone_push(out, all) ||
                !hone_push(t, ((trial){class, o, reader[k], g->node.n - before})))
                return false;
        }
    }
    return true;
}
static hone_status run_trials(const hone_quant_job *job, hone_quant_plan *p, const trials *t,
                              hone_quant_run *run, const int64_t *sample, int n, double done) {
    hone_value **in = hone_alloc(sizeof *in * (size_t)(p->graph->in.n + 1)),
               **out = hone_alloc(sizeof *out * (size_t)(2 * t->n + 1));
    double *sum = hone_alloc(sizeof *sum * (size_t)(2 * t->n + 1));
    hone_status s = in && out && sum ? HONE_OK : hone_quant_no_memory();
    for (int k = 0; k < n && !s && !(k && hone_quant_late(job, 0.5, "ranges tried on some samples")); k++) {
        s = hone_quant_tell(job, 0.2 + 0.08 * done, "which ranges");
        if (!s) s = hone_quant_sample(job, sample[k], in);
        if (!s && (s = job->runner.run(run, in, out)))
            s = hone_fail_at(s, "sample %lld: ", (long long)sample[k] + 1);
        for (int i = 0; i < 2 * t->n && !s; i++) sum[i] += hone_value_f64(out[i], 0);
        for (int i = 0; out && i < 2 * t->n; i++) hone_value_drop(out[i]), out[i] = NULL;
        for (int i = 0; in && i < p->graph->in.n; i++) hone_value_drop(in[i]), in[i] = NULL;
    }
    for (int i = 0; i < t->n && !s; i++) {
        double *e = p->class.at[t->at[i].class].error + t->at[i].observer;
        const double share = sum[2 * i + 1] > 0 ? sum[2 * i] / sum[2 * i + 1] : 0;
        *e = (isnan(*e) ? 0 : *e) + (isfinite(share) ? share : 1);
    }
    hone_free(in), hone_free(out), hone_free(sum);
    return s;
}
/* Ranges of classes from *from on, as many as a graph holds together; *from: the next one. */
static hone_status choose_some(const hone_quant_job *job, hone_quant_plan *p, int *from,
                               const int64_t *sample, int n) {
    hone_graph *g = NULL;
    hone_quant_run *run = NULL;
    trials t = {0};
    vids out = {0};
    hone_vec(int) after = {0};
    bool ok = true;
    HONE_TRY(hone_graph_copy(p->graph, &g));
    const int nodes = g->node.n, first = *from;
    for (; ok && *from < p->class.n && t.n < MOST_TRIALS; ++*from) {
        const int before = t.n;
        ok = try_ranges(job, p, g, *from, &t, &out);
        for (int i = before; i < t.n; i++)
            for (int node = 0; ok && node < t.at[i].nodes; node++) ok = hone_push(&after, t.at[i].reader);
    }
    ok = ok && hone_quant_settle_down(g, nodes, after.at);
    hone_vec_free(&after);
    hone_status s = ok ? HONE_OK : hone_quant_no_memory();
    g->out.n = 0;
    for (int k = 0; k < out.n && !s; k++)
        s = hone_push(&g->out, out.at[k]) ? HONE_OK : hone_quant_no_memory();
    if (s || !t.n) {
        hone_graph_destroy(g);
    } else {
        hone_graph_index(g);
        s = job->runner.open(job->runner.context, g, &run);
        if (!s) s = run_trials(job, p, &t, run, sample, n, (double)first / p->class.n);
        if (run) job->runner.close(run);
    }
    hone_vec_free(&t), hone_vec_free(&out);
    return s;
}
hone_status hone_quant_choose(const hone_quant_job *job, hone_quant_plan *p, const int64_t *sample, int n) {
    const char *wished = job->wish->observer;
    hone_status s = HONE_OK;
    for (int o = 0; wished && o < HONE_OBSERVERS; o++)
        if (!strcmp(wished, hone_observer_names[o])) {
            hone_quant_choose_all(p, (hone_observer)o);
            return HONE_OK;
        }
    if (wished)
        return hone_fail(
            HONE_BAD_INPUT,
            "observer '%s': there are minmax, average, percentile, percentile99.9, entropy and mse", wished);
    hone_quant_choose_all(p, HONE_OBSERVE_MINMAX);
    for (int from = 0; from < p->class.n && !s;) s = choose_some(job, p, &from, sample, n);
    for (int k = 0; k < p->class.n && !s; k++) {
        hone_quant_class *c = p->class.at + k;
        for (int o = 0; o < HONE_OBSERVERS; o++)
            if (!isnan(c->error[o]) && (isnan(c->error[c->observer]) || c->error[o] < c->error[c->observer]))
                c->observer = o;
        c->range = hone_observer_range((hone_observer)c->observer, c->seen, levels_of(p), p->symmetric);
    }
    return s;
}
