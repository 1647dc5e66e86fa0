/* SPDX-License-Identifier: Apache-2.0
   linear: ai.onnx.ml's LinearRegressor and LinearClassifier: rows times coefficients, and an end
   (score.h). */
#include "host/score.h"

typedef struct {
    const hone_value *x;
    int64_t rows, columns, targets;
    hone_attr coefficients, intercepts;
    hone_score_kind kind;
} model;

static hone_status open_model(const hone_host_call *c, int64_t targets, model *m) {
    HONE_TRY(hone_score_rows(c, &m->x, &m->rows, &m->columns));
    HONE_TRY(hone_call_list(c, "coefficients", HONE_ATTR_FLOATS, &m->coefficients));
    HONE_TRY(hone_call_list(c, "intercepts", HONE_ATTR_FLOATS, &m->intercepts));
    HONE_TRY(hone_score_attr(c, &m->kind));
    m->targets = targets ? targets : m->columns ? m->coefficients.n / m->columns : 0;
    size_t need;
    if (m->targets < 1 || !hone_mul_size((size_t)m->targets, (size_t)m->columns, &need) ||
        need != (size_t)m->coefficients.n)
        return hone_call_fail(c, HONE_BAD_INPUT, "%d coefficients do not fit %lld features and %lld targets",
                              m->coefficients.n, (long long)m->columns, (long long)m->targets);
    if (m->intercepts.n && m->intercepts.n != m->targets)
        return hone_call_fail(c, HONE_BAD_INPUT, "there are %d intercepts for %lld targets", m->intercepts.n,
                              (long long)m->targets);
    return HONE_OK;
}

static void score_row(const model *m, int64_t row, double *score) {
    for (int64_t t = 0; t < m->targets; t++) {
        score[t] = m->intercepts.n ? m->intercepts.f[t] : 0;
        for (int64_t j = 0; j < m->columns; j++)
            score[t] += hone_score_number(m->x, row * m->columns + j) * m->coefficients.f[t * m->columns + j];
    }
}

hone_status hone_host_linear_regressor(const hone_host_call *c) {
    model m;
    hone_value *y;
    HONE_TRY(open_model(c, hone_call_int(c, "targets", 1), &m));
    HONE_TRY(hone_host_out(c, 0, HONE_DTYPE_F32, (int64_t[]){m.rows, m.targets}, 2, &y));
    double *score = hone_alloc(sizeof *score * (size_t)m.targets);
    if (!score) return hone_call_no_memory(c);
    for (int64_t r = 0; r < m.rows; r++) {
        score_row(&m, r, score);
        hone_score_apply(m.kind, score, m.targets);
        for (int64_t t = 0; t < m.targets; t++) ((float *)y->data)[r * m.targets + t] = (float)score[t];
    }
    hone_free(score);
    return HONE_OK;
}

hone_status hone_host_linear_classifier(const hone_host_call *c) {
    model m;
    hone_labels labels;
    HONE_TRY(hone_labels_find(c, "classlabels_ints", "classlabels_strings", &labels));
    HONE_TRY(open_model(c, 0, &m));
    bool two = m.targets == 1 && labels.n == 2; /* one row of coefficients stands for both classes */
    int64_t width = two ? 2 : m.targets;
    if (width > 1 && labels.n && labels.n < width)
        return hone_call_fail(c, HONE_BAD_INPUT, "there are %d labels for %lld classes", labels.n,
                              (long long)width);
    hone_value *label = NULL, *y = NULL;
    double *score = hone_alloc(sizeof *score * (size_t)(m.targets + 1));
    hone_status s = score ? HONE_OK : hone_call_no_memory(c);
    if (!s && hone_call_wants(c, 0)) s = hone_labels_out(c, &labels, m.rows, &label);
    if (!s && hone_call_wants(c, 1))
        s = hone_host_out(c, 1, HONE_DTYPE_F32, (int64_t[]){m.rows, width}, 2, &y);
    for (int64_t r = 0; r < m.rows && !s; r++) {
        score_row(&m, r, score);
        if (two) score[1] = score[0], score[0] = -score[0];
        hone_score_apply(m.kind, score, width);
        int64_t best = 0;
        for (int64_t k = 1; k < width; k++)
            if (score[k] > score[best]) best = k;
        for (int64_t k = 0; k < width && y; k++) ((float *)y->data)[r * width + k] = (float)score[k];
        bool positive = width > 1 || score[0] >= (m.kind == HONE_SCORE_NONE ? 0 : 0.5);
        if (!label) continue;
        if (positive && (width > 1 || labels.n)) s = hone_labels_put(c, &labels, label, r, best);
        else if (labels.strings.n) ((const hone_string **)label->data)[r] = &hone_string_empty;
        else ((int64_t *)label->data)[r] = positive;
    }
    hone_free(score);
    return s;
}
