/* SPDX-License-Identifier: Apache-2.0
   view: ops that only look at their input differently. Strides and an offset instead of a copy. */
#include <string.h>

#include "plan/plan.h"

typedef struct {
    const hone_node *n;
    const hone_fact *const *in;
    const hone_bound_var *x;
    hone_fact *out;
    int k;
    int64_t *stride, *offset;
} viewing;

static bool number(const hone_fact *f, int64_t k, int64_t *v) { /* element k of a known small tensor */
    if (f->value) {
        if (k >= hone_value_count(f->value)) return false;
        *v = hone_value_i64(f->value, k);
        return true;
    }
    if (!f->contents || k >= f->n_content || !hone_dim_is_number(f->contents[k])) return false;
    *v = f->contents[k];
    return true;
}
static int64_t length(const hone_fact *f) {
    return f->value ? hone_value_count(f->value) : f->contents ? f->n_content : -1;
}
static bool given(const viewing *v, int k) { return k < v->n->n_in && v->n->in[k] >= 0; }

static bool transpose(viewing *v) {
    const hone_attr *p = hone_attr_find(v->n->attr, v->n->n_attr, "perm");
    int r = v->in[0]->rank;
    for (int d = 0; d < r; d++) {
        int64_t from = p && p->n == r ? p->i[d] : r - 1 - d;
        if (from < 0) from += r;
        if (from < 0 || from >= r) return false;
        v->stride[d] = v->x->stride[from];
    }
    return true;
}
/* Splits and merges of dims whose memory allows it: walk both shapes from the end, matching runs of equal
   size. */
bool hone_view_reshaped(const hone_fact *x, const int64_t *stride, const hone_fact *y, int64_t *out) {
    int i = x->rank - 1, j = y->rank - 1;
    for (int d = 0; d < x->rank; d++)
        if (x->dim[d] == 0) { /* nothing there: any strides will do */
            for (int e = 0; e < y->rank; e++) out[e] = 0;
            return true;
        }
    while (j >= 0) {
        if (y->dim[j] == 1) {
            out[j--] = 0;
            continue;
        }
        while (i >= 0 && x->dim[i] == 1) i--;
        if (i < 0) return false;
        int64_t have = x->dim[i], want = y->dim[j], step = stride[i];
        out[j] = step;
        while (have != want) {
            if (have < want) { /* the next outer dim of x must follow on in memory */
                int o = i - 1;
                while (o >= 0 && x->dim[o] == 1) o--;
                if (o < 0 || stride[o] != stride[i] * x->dim[i]) return false;
                i = o, have *= x->dim[i];
            } else { /* the next outer dim of y takes part of this one */
                if (j == 0) return false;
                j--;
                out[j] = y->dim[j] == 1 ? 0 : step * want;
                want *= y->dim[j];
            }
        }
        i--, j--;
    }
    return true;
}
static bool reshape(viewing *v) {
    return hone_view_reshaped(v->in[0], v->x->stride, v->out + v->k, v->stride);
}
static bool slice(viewing *v) {
    int r = v->in[0]->rank;
    memcpy(v->stride, v->x->stride, sizeof *v->stride * (size_t)r);
    if (!given(v, 1)) return false;
    int64_t n = length(v->in[1]);
    uint64_t seen = 0; /* an axis named twice is the row's to decide */
    if (n < 0) return false;
    for (int64_t k = 0; k < n; k++) {
        int64_t start, axis = k, step = 1;
        if (!number(v->in[1], k, &start) || (given(v, 3) && !number(v->in[3], k, &axis)) ||
            (given(v, 4) && !number(v->in[4], k, &step)))
            return false;
        axis += axis < 0 ? r : 0;
        if (axis < 0 || axis >= r || step == 0 || seen >> axis & 1) return false;
        seen |= (uint64_t)1 << axis;
        int64_t d = v->in[0]->dim[axis];
        start += start < 0 ? d : 0;
        start = start < 0 ? 0 : start > d - (step < 0) ? d - (step < 0) : start;
        if (v->out[v->k].dim[axis] > 0) *v->offset += start * v->x->stride[axis];
        /* a step that is never taken may be enormous */
        v->stride[axis] = v->out[v->k].dim[axis] > 1 ? v->x->stride[axis] * step : 0;
    }
    return true;
}
static bool split(viewing *v) {
    int r = v->in[0]->rank, axis = hone_attr_axis(v->n->attr, v->n->n_attr, r);
    if (axis < 0) return false;
    memcpy(v->stride, v->x->stride, sizeof *v->stride * (size_t)r);
    int64_t at = 0;
    for (int q = 0; q < v->k; q++) at += v->out[q].dim[axis];
    *v->offset = at * v->x->stride[axis];
    return true;
}
static bool expand(viewing *v) {
    int r = v->in[0]->rank, o = v->out[v->k].rank;
    for (int d = 0; d < o; d++) {
        int from = d - (o - r);
        v->stride[d] =
            from < 0 || (v->in[0]->dim[from] == 1 && v->out[v->k].dim[d] != 1) ? 0 : v->x->stride[from];
    }
    return true;
}
static bool same(viewing *v) {
    memcpy(v->stride, v->x->stride, sizeof *v->stride * (size_t)(v->in[0]->rank > 0 ? v->in[0]->rank : 0));
    return v->in[0]->rank == v->out[v->k].rank;
}
static const struct {
    const char *how;
    bool (*view)(viewing *);
} views[] = {{"transpose", transpose}, {"reshape", reshape}, {"slice", slice},
             {"split", split},         {"expand", expand},   {"identity", same}};

bool hone_view(const hone_node *n, const hone_fact *const *in, const hone_bound_var *x, hone_fact *out, int k,
               int64_t *stride, int64_t *offset) {
    viewing v = {n, in, x, out, k, stride, offset};
    *offset = 0;
    if (n->program->runs != HONE_RUNS_VIEW && strcmp(n->program->name, "Identity")) return false;
    const char *how = n->program->runs == HONE_RUNS_VIEW ? n->program->how : "identity";
    for (size_t q = 0; q < sizeof views / sizeof *views; q++)
        if (!strcmp(how, views[q].how)) return views[q].view(&v);
    return false;
}
