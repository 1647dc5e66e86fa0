/* SPDX-License-Identifier: Apache-2.0
   cost: how long a choice will take, as a weighted sum of its features (device/wisdom.h). The weights are
   fitted to what was measured, by least squares of relative errors; where little was measured they stay near
   those that nobody measured. Used to say what to measure next, never to decide. */
#ifndef HONE_RUN_COST_H
#define HONE_RUN_COST_H
#include "device/wisdom.h"

typedef struct {
    double square[HONE_FEATURES][HONE_FEATURES], right[HONE_FEATURES]; /* the normal equations, so far */
    double prior[HONE_FEATURES], weight[HONE_FEATURES];
    int n;
} hone_cost;
void hone_cost_begin(hone_cost *, const double *prior);
void hone_cost_learn(hone_cost *, const double *feature, double ns);
void hone_cost_fit(hone_cost *); /* the weights of what was learned so far */
double hone_cost_of(const hone_cost *, const double *feature);
#endif
