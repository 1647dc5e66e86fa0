/* SPDX-License-Identifier: Apache-2.0
   schedule_rows: which stages can share their outer indices, so that one kernel runs them all: a softmax, a
   norm, attention's scores (schedule.h).

   Stages join one after another. The outer places are those of the first stage's domain along which every
   later stage reads what the group has made at its own index, and nowhere else: then nothing crosses from one
   place to another, and a work-group needs no other. */
#include <string.h>

#include "loops/schedule.h"
#include "loops/schedule_rows.h"

enum { SLOTS = HONE_MAX_RANK };
typedef struct {
    const hone_instance *in;
    const hone_param *param;
    int first, n, n_slot;
    int8_t place[HONE_ROWS_STAGES][SLOTS]; /* of each stage: its domain's place of each slot */
} group;

static int stage_of(const group *g, int t) { /* which stage of the group makes tensor t, or -1 */
    for (int k = 0; k < g->n; k++)
        if (g->in->stage[g->first + k].tensor == t) return k;
    return -1;
}
static int place_of(const hone_instance *in, const hone_stage *s, int32_t index) {
    for (int k = 0; k < s->n_index; k++)
        if (in->list[s->index0 + k] == index) return k;
    return -1;
}
static int64_t extent(const group *g, const hone_stage *s, int place) {
    return g->param[g->in->index[g->in->list[s->index0 + place]].extent].i;
}
static bool touches(const hone_stage *s, int t) { return s->uses >> (t < 63 ? t : 63) & 1; }

/* What a load of the group's own tensor says of the slots of the stage that loads it; false: they cannot be
   together. */
static bool take_load(group *g, const hone_stage *s, const hone_x *e, int8_t *place, bool *dropped) {
    const int by = stage_of(g, e->a);
    if (by < 0) return true;
    const hone_stage *maker = g->in->stage + g->first + by;
    if (e->flat || !maker->identity) return false;
    for (int q = 0; q < g->n_slot; q++) {
        if (dropped[q]) continue;
        const hone_x *sub = g->in->x + g->in->list[e->b + g->place[by][q]];
        const int at = sub->kind == HONE_X_INDEX ? place_of(g->in, s, sub->a) : -1;
        if (at < 0 || (place[q] >= 0 && place[q] != at) ||
            extent(g, s, at) != extent(g, g->in->stage + g->first, g->place[0][q]))
            dropped[q] = true;
        else place[q] = (int8_t)at;
    }
    return true;
}
static bool take_loads(group *g, const hone_stage *s, int8_t *place, bool *dropped, bool *reads) {
    const hone_instance *in = g->in;
    uint8_t *mark = hone_alloc((size_t)in->n_x + 1);
    bool fits = mark != NULL;
    if (!mark) return false;
    mark[s->value] = 1;
    if (s->pick >= 0) mark[s->pick] = 1;
    for (int d = 0; !s->identity && d < in->tensor[s->tensor].rank; d++) mark[in->list[s->sub0 + d]] = 1;
    for (int32_t x = in->n_x - 1; x >= 0 && fits; x--) {
        const hone_x *e = in->x + x;
        if (!mark[x] || e->kind < HONE_X_LOAD) continue;
        if (e->kind == HONE_X_LOAD) {
            for (int k = 0; k < (e->flat ? 1 : in->tensor[e->a].rank); k++) mark[in->list[e->b + k]] = 1;
            *reads = *reads || stage_of(g, e->a) >= 0;
            fits = take_load(g, s, e, place, dropped);
        } else {
            if (e->a >= 0) mark[e->a] = 1;
            if (e->b >= 0) mark[e->b] = 1;
        }
        if (e->c >= 0) mark[e->c] = 1;
    }
    hone_free(mark);
    return fits;
}
static bool join(group *g, const hone_stage *s) {
    int8_t place[SLOTS];
    bool dropped[SLOTS] = {false}, reads = false;
    memset(place, -1, sizeof place);
    if (g->n == HONE_ROWS_STAGES || s->over >= 0) return false;
    /* it writes what was read or written before */
    for (int k = 0; k < g->n; k++)
        if (touches(g->in->stage + g->first + k, s->tensor)) return false;
    if (!take_loads(g, s, place, dropped, &reads) || !reads) return false;
    for (int q = 0; q < g->n_slot; q++) /* one index for two slots: the second is inside */
        for (int w = 0; w < q; w++) dropped[q] |= !dropped[w] && place[q] == place[w];
    int left = 0;
    for (int q = 0; q < g->n_slot; q++) left += !dropped[q];
    if (!left) return false;
    for (int q = 0, to = 0; q < g->n_slot; q++) {
        if (dropped[q]) continue;
        for (int k = 0; k < g->n; k++) g->place[k][to] = g->place[k][q];
        g->place[g->n][to++] = place[q];
    }
    g->n_slot = left, g->n++;
    return true;
}
static int64_t points(const group *g) {
    int64_t n = 1;
    for (int q = 0; q < g->n_slot; q++) n *= extent(g, g->in->stage + g->first, g->place[0][q]);
    return n;
}
static void start(group *g, const hone_instance *in, int stage, const hone_param *p) {
    const hone_stage *s = in->stage + stage;
    *g = (group){.in = in, .param = p, .first = stage, .n = 1};
    for (int k = 0; k < s->n_index && g->n_slot < SLOTS; k++) g->place[0][g->n_slot++] = (int8_t)k;
}
/* What one place of the outer indices has to do, stage by stage: elements, and terms of a sum that its lanes
   share. */
static int64_t inside(const group *g, int k) {
    const hone_stage *s = g->in->stage + g->first + k;
    int64_t n = 1;
    for (int d = 0; d < s->n_index; d++) {
        bool slot = false;
        for (int q = 0; q < g->n_slot; q++) slot |= g->place[k][q] == d;
        if (!slot && __builtin_mul_overflow(n, extent(g, s, d), &n)) return INT64_MAX / 2;
    }
    return n;
}
static int64_t terms(const group *g, int k) {
    const hone_stage *s = g->in->stage + g->first + k;
    int64_t n = 1;
    for (int d = 0; d < s->n_reduce; d++)
        if (__builtin_mul_overflow(n, extent(g, s, s->n_index + d), &n)) return INT64_MAX / 2;
    return n;
}
bool hone_rows_choose(const hone_instance *in, int stage, const hone_param *p,
                      bool (*alone)(const void *, int), const void *arg, int units, hone_rows *out) {
    enum { SMALL = 1 << 16 };
    group g, best = {.n = 0};
    if (in->stage[stage].over >= 0 || in->stage[stage].n_index > SLOTS || !in->stage[stage].n_index ||
        !alone(arg, stage))
        return false;
    start(&g, in, stage, p);
    for (int k = stage + 1; k < in->n_stage && alone(arg, k) && join(&g, in->stage + k); k++) {
        int64_t most = 1;
        const int64_t rows = points(&g);
        for (int q = 0; q < g.n; q++) {
            const int64_t a = inside(&g, q), b = terms(&g, q);
            if (a > most) most = a;
            if (b > most) most = b;
        }
        /* too few work-groups for so much */
        if (rows < units / 4 && (most > SMALL || rows > SMALL || rows * most > SMALL)) break;
        best = g;
    }
    *out = (hone_rows){.n_stage = best.n, .n_outer = best.n_slot};
    if (best.n < 2) return false;
    bool spread = false;
    out->most = 1;
    for (int k = 0; k < best.n; k++) {
        const int64_t a = inside(&best, k), b = terms(&best, k);
        bool inner = in->stage[stage + k].n_index > best.n_slot;
        spread |= inner;
        if (a > out->most) out->most = a;
        if (!inner && b > out->most) out->most = b;
        if (b > out->terms) out->terms = b;
        memcpy(out->place[k], best.place[k], sizeof out->place[k]);
    }
    return spread;
}
bool hone_rows_legal(const hone_instance *in, int stage, const hone_param *p, const hone_rows *rows) {
    group g;
    start(&g, in, stage, p);
    for (int k = 1; k < rows->n_stage; k++)
        if (stage + k >= in->n_stage || !join(&g, in->stage + stage + k)) return false;
    for (int q = 0; q < rows->n_outer; q++) { /* every outer place is one of those that all share */
        bool found = false;
        for (int w = 0; w < g.n_slot && !found; w++) {
            found = true;
            for (int k = 0; k < rows->n_stage; k++) found = found && g.place[k][w] == rows->place[k][q];
        }
        if (!found) return false;
    }
    return rows->n_outer > 0;
}
