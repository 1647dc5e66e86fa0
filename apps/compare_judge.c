/* SPDX-License-Identifier: Apache-2.0
   compare_judge: who is right, and who is fast. Right is what most say; where no more than half agree, ONNX
   Runtime; where it did not answer, Hone. In half precision none of them is: there ONNX Runtime computes in
   f32, and its answer, not its time, is in the contest. How far two answers are apart is the library's to
   say. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "hone/tools.h"

/* The worst of all outputs. Shapes need not agree: some runtimes drop a dim of 1. */
static hone_difference between(const hone_entry *a, const hone_entry *b) {
    hone_difference worst = {0}, d;
    if (a->n_out != b->n_out) return (hone_difference){.max_abs = INFINITY, .max_rel = INFINITY};
    for (int k = 0; k < a->n_out; k++) {
        hone_compare_answers(a->out[k], b->out[k], 0, &d);
        worst.max_abs = fmax(worst.max_abs, d.max_abs), worst.max_rel = fmax(worst.max_rel, d.max_rel);
    }
    return worst;
}

/* How many agree with k, itself among them. */
static int count_agreeing(const hone_contest *c, int k, double tolerance) {
    int n = 0;
    for (int i = 0; i < HONE_RUNTIMES; i++)
        n += !*c->entry[i].why && (i == k || between(&c->entry[i], &c->entry[k]).max_rel <= tolerance);
    return n;
}

static void find_reference(hone_contest *c, double tolerance, bool half) {
    /* ONNX Runtime first, Hone last: it is not to be its own judge */
    static const int order[HONE_RUNTIMES] = {1, 2, 3, 4, 5, 6, 0};
    int lone = -1;
    for (int i = 0; i < HONE_RUNTIMES; i++) c->answers += !*c->entry[i].why;
    for (int i = 0; i < HONE_RUNTIMES; i++) {
        int k = order[i], n = *c->entry[k].why ? 0 : count_agreeing(c, k, tolerance);
        if (n > c->agree) c->agree = n, c->reference = k;
        if (n && (k == 1 || (k == 0 && lone < 0))) lone = k;
    }
    c->majority = 2 * c->agree > c->answers && !(half && !*c->entry[1].why);
    if (!c->majority && lone >= 0) c->reference = lone, c->agree = count_agreeing(c, lone, tolerance);
}

/* Round by round, where both took part. */
static void weigh(const hone_contest *c, hone_entry *e) {
    const hone_entry *hone = &c->entry[0];
    double *theirs = hone_must_alloc(sizeof *theirs * (size_t)(c->rounds + 1)),
           *ours = hone_must_alloc(sizeof *ours * (size_t)(c->rounds + 1));
    int n = 0;
    for (int r = 0; r < c->rounds; r++)
        if (isfinite(e->round[r]) && isfinite(hone->round[r]))
            theirs[n] = e->round[r], ours[n++] = hone->round[r];
    if (n) hone_stats_rounds(theirs, ours, n, 1, &e->slower);
    free(theirs), free(ours);
}

/* By the same figure that is told: rounds side by side with Hone's, where it ran. */
static bool faster(const hone_contest *c, int a, int b) {
    if (*c->entry[0].why) return c->entry[a].median_ms < c->entry[b].median_ms;
    return c->entry[a].slower.ratio < c->entry[b].slower.ratio;
}

void hone_contest_judge(hone_contest *c, const hone_contest_wish *wish) {
    const bool half = strcmp(wish->precision, "f32") != 0;
    const double tolerance = wish->tolerance;
    if (*c->why) return;
    find_reference(c, tolerance, half);
    for (int k = 0; k < HONE_RUNTIMES; k++) {
        hone_entry *e = &c->entry[k];
        if (*e->why) continue;
        hone_difference d = between(e, &c->entry[c->reference]);
        e->max_abs = d.max_abs, e->max_rel = d.max_rel;
        e->right = k == c->reference || d.max_rel <= tolerance;
        if (k && !*c->entry[0].why) weigh(c, e);
        if (k && e->right && !(half && k == 1) && (c->best < 0 || faster(c, k, c->best))) c->best = k;
    }
}

double hone_compare_mean(const hone_comparison *a, int *n) {
    double sum = 0;
    *n = 0;
    for (int k = 0; k < a->n; k++) {
        const hone_contest *c = &a->contest[k];
        if (c->best < 0 || *c->entry[0].why || !c->entry[0].right) continue;
        sum += log(c->entry[c->best].slower.ratio);
        ++*n;
    }
    return *n ? exp(sum / *n) : 0;
}
