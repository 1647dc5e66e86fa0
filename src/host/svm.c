/* SPDX-License-Identifier: Apache-2.0
   svm: ai.onnx.ml's SVMRegressor and SVMClassifier: kernels against support vectors, votes of pairs of
   classes, probabilities of pairs coupled as libsvm does (Wu, Lin, Weng 2004, second method). */
#include <math.h>

#include "host/score.h"

typedef enum { LINEAR, POLY, RBF, SIGMOID } kernel_kind;
typedef struct {
    const hone_value *x;
    int64_t rows, columns, vectors; /* vectors = 0: one linear function a class */
    hone_attr coefficients, support, rho, params;
    int kernel;
    hone_score_kind kind;
} machine;

static double param(const machine *m, int k) { return k < m->params.n ? m->params.f[k] : 0; }

static double kernel(const machine *m, int kind, const double *a, const double *b) {
    double s = 0;
    for (int64_t j = 0; j < m->columns; j++) s += kind == RBF ? (a[j] - b[j]) * (a[j] - b[j]) : a[j] * b[j];
    if (kind == RBF) return exp(-param(m, 0) * s);
    if (kind == POLY) return pow(s * param(m, 0) + param(m, 1), param(m, 2));
    return kind == SIGMOID ? tanh(s * param(m, 0) + param(m, 1)) : s;
}

static hone_status open_machine(const hone_host_call *c, int64_t vectors, machine *m) {
    static const char *const kernels[] = {"LINEAR", "POLY", "RBF", "SIGMOID", NULL};
    HONE_TRY(hone_score_rows(c, &m->x, &m->rows, &m->columns));
    HONE_TRY(hone_call_list(c, "coefficients", HONE_ATTR_FLOATS, &m->coefficients));
    HONE_TRY(hone_call_list(c, "support_vectors", HONE_ATTR_FLOATS, &m->support));
    HONE_TRY(hone_call_list(c, "rho", HONE_ATTR_FLOATS, &m->rho));
    HONE_TRY(hone_call_list(c, "kernel_params", HONE_ATTR_FLOATS, &m->params));
    HONE_TRY(hone_call_choice(c, "kernel_type", kernels, 0, &m->kernel));
    HONE_TRY(hone_score_attr(c, &m->kind));
    size_t need;
    m->vectors = vectors;
    if (vectors < 0 || !hone_mul_size((size_t)vectors, (size_t)m->columns, &need) ||
        (vectors && need != (size_t)m->support.n))
        return hone_call_fail(c, HONE_BAD_INPUT,
                              "%d numbers of support vectors do not fit %lld vectors of %lld features",
                              m->support.n, (long long)vectors, (long long)m->columns);
    if (!m->rho.n) return hone_call_fail(c, HONE_BAD_INPUT, "attribute rho is missing");
    return HONE_OK;
}

static void load_row(const machine *m, int64_t r, double *row) {
    for (int64_t j = 0; j < m->columns; j++) row[j] = hone_score_number(m->x, r * m->columns + j);
}

hone_status hone_host_svm_regressor(const hone_host_call *c) {
    machine m;
    hone_value *y;
    HONE_TRY(open_machine(c, hone_call_int(c, "n_supports", 0), &m));
    if (m.coefficients.n != (m.vectors ? m.vectors : m.columns))
        return hone_call_fail(c, HONE_BAD_INPUT, "there are %d coefficients", m.coefficients.n);
    HONE_TRY(hone_host_out(c, 0, HONE_DTYPE_F32, (int64_t[]){m.rows, 1}, 2, &y));
    double *row = hone_alloc(sizeof *row * (size_t)m.columns);
    if (!row) return hone_call_no_memory(c);
    bool one_class = hone_call_int(c, "one_class", 0) != 0;
    for (int64_t r = 0; r < m.rows; r++) {
        load_row(&m, r, row);
        double s = m.rho.f[0];
        for (int64_t k = 0; k < m.vectors; k++)
            s += m.coefficients.f[k] * kernel(&m, m.kernel, row, m.support.f + k * m.columns);
        if (!m.vectors) s += kernel(&m, LINEAR, row, m.coefficients.f);
        if (one_class) s = s > 0 ? 1 : -1;
        else hone_score_apply(m.kind, &s, 1);
        ((float *)y->data)[r] = (float)s;
    }
    hone_free(row);
    return HONE_OK;
}

/* p[i]: probability of class i, from those of pairs r[i][j]. q, qp: room. */
static void couple(const double *r, int64_t n, double *q, double *qp, double *p) {
    for (int64_t t = 0; t < n; t++) {
        p[t] = 1.0 / (double)n;
        q[t * n + t] = 0;
        for (int64_t j = 0; j < n; j++)
            if (j != t) {
                q[t * n + t] += r[j * n + t] * r[j * n + t];
                q[t * n + j] = -r[j * n + t] * r[t * n + j];
            }
    }
    for (int64_t step = 0, steps = n > 100 ? n : 100; step < steps; step++) {
        double all = 0, worst = 0;
        for (int64_t t = 0; t < n; t++) {
            qp[t] = 0;
            for (int64_t j = 0; j < n; j++) qp[t] += q[t * n + j] * p[j];
            all += p[t] * qp[t];
        }
        for (int64_t t = 0; t < n; t++) worst = fmax(worst, fabs(qp[t] - all));
        if (worst < 0.005 / (double)n) return;
        for (int64_t t = 0; t < n; t++) {
            double d = (all - qp[t]) / q[t * n + t];
            p[t] += d;
            all = (all + d * (d * q[t * n + t] + 2 * qp[t])) / (1 + d) / (1 + d);
            for (int64_t j = 0; j < n; j++) {
                qp[j] = (qp[j] + d * q[t * n + j]) / (1 + d);
                p[j] /= 1 + d;
            }
        }
    }
}

typedef struct {
    machine m;
    hone_attr counts, a, b; /* vectors a class; the sigmoids of pairs */
    hone_labels labels;
    int64_t classes, pairs;
    double *row, *k, *votes, *score, *r, *q, *qp, *p; /* room */
} classifier;

/* Scores of all pairs of classes, and how many each class wins. */
static void duel(const classifier *v) {
    const machine *m = &v->m;
    for (int64_t k = 0; k < m->vectors; k++)
        v->k[k] = kernel(m, m->kernel, v->row, m->support.f + k * m->columns);
    for (int64_t i = 0; i < v->classes; i++) v->votes[i] = 0;
    int64_t pair = 0, from_i = 0;
    for (int64_t i = 0; i < v->classes; from_i += v->counts.i[i++]) {
        int64_t from_j = from_i + v->counts.i[i];
        for (int64_t j = i + 1; j < v->classes; from_j += v->counts.i[j++], pair++) {
            double s = m->rho.f[pair];
            for (int64_t k = 0; k < v->counts.i[i]; k++)
                s += m->coefficients.f[(j - 1) * m->vectors + from_i + k] * v->k[from_i + k];
            for (int64_t k = 0; k < v->counts.i[j]; k++)
                s += m->coefficients.f[i * m->vectors + from_j + k] * v->k[from_j + k];
            v->score[pair] = s;
            v->votes[s > 0 ? i : j]++;
        }
    }
}

static void probabilities(const classifier *v) {
    int64_t n = v->classes, pair = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++, pair++) {
            double z = v->score[pair] * v->a.f[pair] + v->b.f[pair], p = 1 / (1 + exp(z));
            v->r[i * n + j] = fmin(fmax(p, 1e-7), 1 - 1e-7);
            v->r[j * n + i] = 1 - v->r[i * n + j];
        }
    couple(v->r, n, v->q, v->qp, v->p);
}

static int64_t largest(const double *v, int64_t n) {
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++)
        if (v[k] > v[best]) best = k;
    return best;
}

static hone_status check_classifier(const hone_host_call *c, classifier *v) {
    const machine *m = &v->m;
    int64_t n = v->classes, need = m->vectors ? (n - 1) * m->vectors : n * m->columns;
    v->pairs = n * (n - 1) / 2;
    if (m->coefficients.n != need)
        return hone_call_fail(c, HONE_BAD_INPUT, "there are %d coefficients; %lld are needed",
                              m->coefficients.n, (long long)need);
    if (m->vectors && v->counts.n != n)
        return hone_call_fail(c, HONE_BAD_INPUT, "vectors_per_class has %d entries for %lld classes",
                              v->counts.n, (long long)n);
    if (m->vectors && m->rho.n < v->pairs)
        return hone_call_fail(c, HONE_BAD_INPUT, "rho has %d entries for %lld pairs of classes", m->rho.n,
                              (long long)v->pairs);
    if (v->a.n && (v->a.n < v->pairs || v->b.n < v->pairs))
        return hone_call_fail(c, HONE_BAD_INPUT,
                              "prob_a or prob_b has fewer than %lld entries, one a pair of classes",
                              (long long)v->pairs);
    return HONE_OK;
}

static hone_status classify(const hone_host_call *c, classifier *v) {
    const machine *m = &v->m;
    bool prob = m->vectors && v->a.n;
    int64_t own = !m->vectors || prob ? v->classes : v->pairs, width = own == 1 && v->labels.n == 2 ? 2 : own;
    hone_value *label = NULL, *y = NULL;
    if (hone_call_wants(c, 0)) HONE_TRY(hone_labels_out(c, &v->labels, m->rows, &label));
    if (hone_call_wants(c, 1))
        HONE_TRY(hone_host_out(c, 1, HONE_DTYPE_F32, (int64_t[]){m->rows, width}, 2, &y));
    bool positive = true;
    for (int k = 0; k < m->coefficients.n; k++) positive = positive && m->coefficients.f[k] >= 0;
    for (int64_t r = 0; r < m->rows; r++) {
        load_row(m, r, v->row);
        int64_t best;
        double *score = v->score;
        if (m->vectors) {
            duel(v);
            best = largest(v->votes, v->classes);
            if (prob) probabilities(v), score = v->p;
        } else {
            for (int64_t k = 0; k < v->classes; k++)
                score[k] = m->rho.f[0] + kernel(m, LINEAR, v->row, m->coefficients.f + k * m->columns);
            best = largest(score, v->classes);
        }
        if (m->vectors && v->classes == 2 && !prob && positive && v->votes[best] >= 0.5) best = 1;
        if (width > own) score[1] = score[0], score[0] = -score[0];
        hone_score_apply(m->kind, score, width);
        for (int64_t k = 0; k < width && y; k++) ((float *)y->data)[r * width + k] = (float)score[k];
        if (label) HONE_TRY(hone_labels_put(c, &v->labels, label, r, best));
    }
    return HONE_OK;
}

hone_status hone_host_svm_classifier(const hone_host_call *c) {
    classifier v = {0};
    HONE_TRY(hone_labels_find(c, "classlabels_ints", "classlabels_strings", &v.labels));
    HONE_TRY(hone_call_list(c, "vectors_per_class", HONE_ATTR_INTS, &v.counts));
    HONE_TRY(hone_call_list(c, "prob_a", HONE_ATTR_FLOATS, &v.a));
    HONE_TRY(hone_call_list(c, "prob_b", HONE_ATTR_FLOATS, &v.b));
    int64_t vectors = 0;
    for (int k = 0; k < v.counts.n; k++)
        if (v.counts.i[k] < 0 || __builtin_add_overflow(vectors, v.counts.i[k], &vectors) ||
            vectors > INT32_MAX)
            return hone_call_fail(c, HONE_BAD_INPUT, "vectors_per_class[%d] is %lld", k,
                                  (long long)v.counts.i[k]);
    v.classes = v.labels.n ? v.labels.n : v.counts.n ? v.counts.n : 1;
    HONE_TRY(open_machine(c, vectors, &v.m));
    if (v.classes > 30000)
        return hone_call_fail(c, HONE_NOT_SUPPORTED, "%lld classes are too many", (long long)v.classes);
    HONE_TRY(check_classifier(c, &v));
    size_t n = (size_t)v.classes, square = v.a.n ? n * n : 0, pairs = (size_t)v.pairs + n + 2;
    double *room = hone_alloc(sizeof *room *
                              ((size_t)v.m.columns + (size_t)vectors + n + pairs + 2 * square + 2 * n + 2));
    if (!room) return hone_call_no_memory(c);
    v.row = room;
    v.k = v.row + v.m.columns;
    v.votes = v.k + vectors;
    v.score = v.votes + n;
    v.r = v.score + pairs;
    v.q = v.r + square;
    v.qp = v.q + square;
    v.p = v.qp + n;
    hone_status s = classify(c, &v);
    hone_free(room);
    return s;
}
