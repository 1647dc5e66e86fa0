/* SPDX-License-Identifier: Apache-2.0
   tactics: see tactics.h. Estimates tell tactics apart; how one of them is best cut, and by which kernel, is
   its own business, and wisdom's (choices.c). */
#include "device/cpu/tactics.h"

#include "kernels/gemm.h"
#include "loops/match_attention.h"
#include "loops/match_rows.h"

/* ---- what they may take -------------------------------------------------------------------------------- */
static const hone_stage *stage_of(const hone_cpu_call *c, int k) { return c->instance->stage + k; }
static bool is(const hone_cpu_call *c, int k, hone_reduce reduce) {
    return stage_of(c, k)->reduce == reduce && stage_of(c, k)->over < 0;
}
static bool loads(const hone_cpu_call *c, int k) {
    return c->instance->x[stage_of(c, k)->value].kind == HONE_X_LOAD;
}
static int follows(const hone_cpu_call *c, int k) { /* with the stage that runs on its finished blocks */
    return k + 1 < c->instance->n_stage && stage_of(c, k + 1)->follows ? 2 : 1;
}
static int attention(const hone_cpu_call *c, int k) {
    int temp[HONE_ATTENTION_TEMPS];
    return is(c, k, HONE_REDUCE_SUM) && hone_match_attention_shaped(&c->sized, k, temp)
               ? HONE_ATTENTION_STAGES
               : 0;
}
static int norm(const hone_cpu_call *c, int k) {
    hone_match_norm m;
    return stage_of(c, k)->over < 0 && hone_match_norm_of(&c->sized, k, &m) ? m.stages : 0;
}
static int rotary(const hone_cpu_call *c, int k) {
    enum { STAGES = 3 };
    bool plain = k + STAGES <= c->instance->n_stage;
    for (int q = 0; q < STAGES && plain; q++) plain = is(c, k + q, HONE_REDUCE_NONE);
    return plain ? STAGES : 0;
}
static int bits(const hone_cpu_call *c, int k) {
    return is(c, k, HONE_REDUCE_SUM) && stage_of(c, k)->n_reduce == 2 && c->constant ? 1 : 0;
}
static int product(const hone_cpu_call *c, int k) {
    return is(c, k, HONE_REDUCE_SUM) && !loads(c, k) ? follows(c, k) : 0;
}
static int mean(const hone_cpu_call *c, int k) { /* a sum of integers, and what rounds it */
    return is(c, k, HONE_REDUCE_SUM) && c->instance->x[stage_of(c, k)->value].type == HONE_I64 &&
                   follows(c, k) == 2
               ? 2
               : 0;
}
static int window(const hone_cpu_call *c, int k) {
    return (is(c, k, HONE_REDUCE_SUM) || is(c, k, HONE_REDUCE_MAX)) && loads(c, k) ? 1 : 0;
}
static int sum(const hone_cpu_call *c, int k) { return is(c, k, HONE_REDUCE_SUM) && loads(c, k) ? 1 : 0; }
static int whole(const hone_cpu_call *c, int k) {
    return (is(c, k, HONE_REDUCE_MAX) || is(c, k, HONE_REDUCE_MIN)) && loads(c, k) ? 1 : 0;
}
static int element(const hone_cpu_call *c, int k) { return is(c, k, HONE_REDUCE_NONE) ? 1 : 0; }
static int weights(const hone_cpu_call *c, int k) { /* a stage, or weights and the sum that they are for */
    const bool two = k + 1 < c->instance->n_stage && is(c, k + 1, HONE_REDUCE_SUM);
    return !is(c, k, HONE_REDUCE_NONE) ? 0 : two ? 2 : 1;
}
static int moved(const hone_cpu_call *c, int k) { return element(c, k) && loads(c, k) ? 1 : 0; }
static int any(const hone_cpu_call *c, int k) { return stage_of(c, k)->over < 0 ? 1 : 0; }
static int recurrence(const hone_cpu_call *c, int k) {
    int n = 0;
    const int over = stage_of(c, k)->over;
    while (over >= 0 && k + n < c->instance->n_stage && stage_of(c, k + n)->over == over) n++;
    return n;
}

/* ---- the table ----------------------------------------------------------------------------------------- */
/* Estimates: AVX-512 at 2.5 GHz; a lane of an instruction a cycle is 0.4 ns. Tile code passes all its values
   through L1 once an operation; kernels keep them in registers. */
static const hone_tactic tactics[] = {
    /* name, what it may take, how it is bound; once, a point, a result */
    {"attention", attention, hone_cpu_attention, 200, 0.2, 2},
    {"norm", norm, hone_cpu_norm, 100, 0.5, 0.5},
    {"rotary", rotary, hone_cpu_rotary, 100, 0, 1},
    {"bits", bits, hone_cpu_bits, 200, 0.15, 1},
    {"contract", product, hone_cpu_contract, 200, 0.2, 1},
    {"pool", window, hone_cpu_pool, 100, 0.4, 1},
    {"row reduction", sum, hone_cpu_row_reduction, 100, 0.5, 1},
    {"quantized mean", mean, hone_cpu_means, 100, 0.1, 1},
    {"resample", weights, hone_cpu_resample, 100, 0.15, 1},
    {"full reduction", whole, hone_cpu_extreme, 50, 0.8, 1},
    {"table", element, hone_cpu_table, 50, 0, 1.4},
    {"quantized elementwise", element, hone_cpu_quantized_elementwise, 60, 0, 1.6},
    {"quantized tree", element, hone_cpu_quantized_tree, 70, 0, 2},
    {"channel affine", element, hone_cpu_channel_affine, 80, 0, 2.2},
    {"splice", element, hone_cpu_splice, 90, 0, 2.4},
    {"transpose", moved, hone_cpu_transpose, 100, 0, 2.6},
    {"tile", any, hone_cpu_tile, 300, 4, 8},
    {"cell", recurrence, hone_cpu_cell, 500, 0.2, 2},
    {"over", recurrence, hone_cpu_over, 600, 0.4, 8},
};
enum { TACTICS = sizeof tactics / sizeof *tactics };
_Static_assert((int)TACTICS <= (int)HONE_MOST_CANDIDATES, "room for all of them");

/* ---- estimates ----------------------------------------------------------------------------------------- */
static void work_of(const hone_cpu_call *c, int k, double *points, double *results) {
    const hone_instance *in = c->instance;
    const hone_stage *s = in->stage + k;
    *results = 1;
    for (int q = 0; q < s->n_index; q++)
        *results *= (double)c->param[in->index[in->list[s->index0 + q]].extent].i;
    *points = s->n_reduce ? *results : 0;
    for (int q = s->n_index; q < s->n_index + s->n_reduce; q++)
        *points *= (double)c->param[in->index[in->list[s->index0 + q]].extent].i;
}
static double cost_of(const hone_cpu_call *c, const hone_tactic *t, int from, int to) {
    const double lanes = hone_gemm_f32_best()->vector;
    double ns = t->once;
    for (int k = from; k < to; k++) {
        double points, results;
        work_of(c, k, &points, &results);
        ns += (points * t->point + results * t->result) / lanes;
    }
    return ns;
}
/* The least that stages from … to - 1 cost one by one: others may decline them, tile code takes nearly
   all. */
static double rest_of(const hone_cpu_call *c, int from, int to) {
    double ns = 0;
    for (int k = from; k < to; k++) {
        double best = 0;
        for (int t = 0; t < TACTICS; t++) {
            const int n = tactics[t].bind == hone_cpu_contract || tactics[t].bind == hone_cpu_tile
                              ? tactics[t].applies(c, k)
                              : 0;
            const double own = n ? cost_of(c, tactics + t, k, k + 1) : 0;
            if (n && (best == 0 || own < best)) best = own;
        }
        ns += best;
    }
    return ns;
}
int hone_tactics_for(const hone_cpu_call *c, int stage, hone_candidate *out) {
    int n = 0, end[HONE_MOST_CANDIDATES], far = stage;
    for (int t = 0; t < TACTICS; t++) {
        const int stages = tactics[t].applies(c, stage);
        if (!stages) continue;
        out[n] = (hone_candidate){tactics + t, cost_of(c, tactics + t, stage, stage + stages)};
        end[n++] = stage + stages;
        far = end[n - 1] > far ? end[n - 1] : far;
    }
    for (int k = 0; k < n; k++)
        if (end[k] < far) out[k].ns += rest_of(c, end[k], far);
    for (int k = 1; k < n; k++) { /* of equals the first in the table */
        const hone_candidate r = out[k];
        int q = k;
        for (; q > 0 && out[q - 1].ns > r.ns; q--) out[q] = out[q - 1];
        out[q] = r;
    }
    return n;
}

/* ---- telling ------------------------------------------------------------------------------------------- */
/* Would it? By binding it to nothing. */
static hone_status try_it(const hone_cpu_call *c, const hone_tactic *t, int stage, int *end, bool *does) {
    hone_template_builder m = {.arena = hone_arena_create(), .n_ref = c->instance->n_tensor};
    *does = false, *end = stage + t->applies(c, stage);
    if (t->bind != hone_cpu_cell && t->bind != hone_cpu_over) *end = stage + 1;
    const hone_status s = m.arena ? t->bind(&m, c, stage, end, does)
                                  : hone_fail(HONE_NO_MEMORY, "no memory to tell of tactics");
    hone_vec_free(&m.part);
    hone_vec_free(&m.packed);
    hone_arena_destroy(m.arena);
    return s;
}
hone_status hone_tactics_tell(const hone_cpu_call *c, hone_text *t) {
    for (int k = 0; k < c->instance->n_stage;) {
        hone_candidate r[HONE_MOST_CANDIDATES];
        const int n = hone_tactics_for(c, k, r);
        int next = 0, told = 0;
        for (int q = 0; q < n; q++) {
            int end;
            bool does;
            HONE_TRY(try_it(c, r[q].tactic, k, &end, &does));
            if (!does) continue;
            const double us = r[q].ns / 1e3;
            if (!told++) {
                hone_text_put(t, end > k + 1 ? "stages %d to %d: " : "stage %d: ", k, end - 1);
                hone_text_put(t, "%s, about %.3g us of one core", r[q].tactic->name, us);
                next = end;
            } else hone_text_put(t, "%s %s %.3g us", told == 2 ? "; could be" : ",", r[q].tactic->name, us);
        }
        if (!told) {
            hone_text_put(t, "stage %d: no tactic takes it, so the interpreter runs all of them\n", k);
            return HONE_OK;
        }
        hone_text_put(t, "\n");
        k = next;
    }
    return HONE_OK;
}
