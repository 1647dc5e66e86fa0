/* SPDX-License-Identifier: Apache-2.0
   cost: see cost.h. Weights are counted in units of the prior, so that all are about 1 and one number says
   how far they are held to it. */
#include "run/cost.h"

#include <math.h>
#include <string.h>

/* a weight that is twice the prior costs as much as one measurement that is off by a tenth */
static const double HOLD = 0.01;

void hone_cost_begin(hone_cost *c, const double *prior) {
    memset(c, 0, sizeof *c);
    memcpy(c->prior, prior, sizeof c->prior);
    memcpy(c->weight, prior, sizeof c->weight);
}
void hone_cost_learn(hone_cost *c, const double *feature, double ns) {
    double x[HONE_FEATURES];
    if (!(ns > 0)) return;
    for (int i = 0; i < HONE_FEATURES; i++) x[i] = feature[i] * c->prior[i] / ns; /* the sum should be 1 */
    for (int i = 0; i < HONE_FEATURES; i++) {
        c->right[i] += x[i];
        for (int j = 0; j < HONE_FEATURES; j++) c->square[i][j] += x[i] * x[j];
    }
    c->n++;
}
/* (square + HOLD) w = right + HOLD, by Cholesky: HOLD makes it positive. */
void hone_cost_fit(hone_cost *c) {
    double l[HONE_FEATURES][HONE_FEATURES] = {{0}}, w[HONE_FEATURES];
    for (int i = 0; i < HONE_FEATURES; i++) {
        for (int j = 0; j <= i; j++) {
            double s = c->square[i][j] + (i == j ? HOLD : 0);
            for (int k = 0; k < j; k++) s -= l[i][k] * l[j][k];
            if (i != j) l[i][j] = s / l[j][j];
            else if (s > 0) l[i][i] = sqrt(s);
            else return; /* rounding took it: the weights stay as they were */
        }
    }
    for (int i = 0; i < HONE_FEATURES; i++) {
        w[i] = c->right[i] + HOLD;
        for (int k = 0; k < i; k++) w[i] -= l[i][k] * w[k];
        w[i] /= l[i][i];
    }
    for (int i = HONE_FEATURES - 1; i >= 0; i--) {
        for (int k = i + 1; k < HONE_FEATURES; k++) w[i] -= l[k][i] * w[k];
        w[i] /= l[i][i];
    }
    for (int i = 0; i < HONE_FEATURES; i++) /* nothing takes less than no time */
        c->weight[i] = c->prior[i] * (isfinite(w[i]) ? fmax(w[i], 0.05) : 1);
}
double hone_cost_of(const hone_cost *c, const double *feature) {
    double ns = 0;
    for (int i = 0; i < HONE_FEATURES; i++) ns += c->weight[i] * feature[i];
    return ns;
}
