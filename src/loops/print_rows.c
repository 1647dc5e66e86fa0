/* SPDX-License-Identifier: Apache-2.0
   print_rows: several stages in one kernel, which share their outer indices (schedule_rows.h): `lanes`
   threads have one place of them, a row, and spread the rest of each stage. What a stage makes once a row is
   a variable that all its lanes have; what it makes along the row goes through memory, and a barrier stands
   before it is read. */
#include <stdio.h>
#include <string.h>

#include "loops/print_kernel.h"

static bool is_outer(const hone_kernel *m, int k, int place) {
    for (int q = 0; q < m->s->rows.n_outer; q++)
        if (m->s->rows.place[k][q] == place) return true;
    return false;
}
static bool read_later(const hone_kernel *m, int t) { /* by a stage behind the group */
    for (int k = m->first + m->s->n_stage; k < m->p.in->n_stage; k++)
        if (m->p.in->stage[k].uses >> (t < 63 ? t : 63) & 1) return true;
    return false;
}
static const char *name(hone_kernel *m, const char *format, int k) {
    char text[64];
    snprintf(text, sizeof text, "hone_%s%d", format, k);
    const char *s = hone_arena_text(m->p.arena, "%s", text);
    if (!s) m->failed = true;
    return s ? s : "";
}
static void name_indices(hone_kernel *m, int k) { /* the outer ones have one name in all stages */
    const hone_stage *s = m->p.in->stage + m->first + k;
    hone_print_name_indices(&m->p, s);
    for (int q = 0; q < m->s->rows.n_outer; q++)
        m->p.index[m->p.in->list[s->index0 + m->s->rows.place[k][q]]] = name(m, "row", q);
}
/* Once a row: every lane has the value. */
static void once(hone_kernel *m, int k) {
    hone_printer *p = &m->p;
    const hone_stage *s = p->in->stage + m->first + k;
    const int lanes = m->s->lanes;
    const char *held = name(m, "h", k);
    const bool stored =
        p->in->tensor[s->tensor].role != HONE_ROLE_TEMP || read_later(m, s->tensor) || !s->identity || s->how;
    hone_kernel_put(m, "%s %s = 0;", hone_print_types[p->in->x[s->pick >= 0 ? s->pick : s->value].type],
                    held);
    hone_kernel_open(m, "");
    if (s->reduce && lanes > 1) {
        const int32_t *ids = p->in->list + s->index0 + s->n_index;
        const char *n = name(m, "terms", k);
        char to[80];
        snprintf(to, sizeof to, "(%s)%.40s", hone_kernel_count(m), n);
        hone_kernel_number_add(m, n, hone_kernel_product(m, ids, s->n_reduce));
        hone_body_acc_open(m, s, true);
        hone_kernel_open(m, "if (hone_live) ");
        hone_kernel_terms(m, s, "hone_lane", to, lanes, NULL);
        hone_body_end(m, 1);
        hone_body_acc_close(m, s, true);
        hone_kernel_tree(m, s, lanes, true);
    }
    hone_kernel_open(m, "if (hone_live) ");
    if (s->reduce && lanes == 1) hone_body_serial(m, s);
    else if (s->reduce) hone_body_pick(m, s);
    if (stored) {
        hone_kernel_open(m, lanes > 1 ? "if (hone_lane == 0) " : "");
        hone_body_store(m, s, NULL);
        hone_body_end(m, 1);
    }
    hone_body_store(m, s, held);
    hone_body_end(m, 2);
    if (s->identity && !s->how) p->held[s->tensor] = held;
}
static void along(hone_kernel *m, int k, const int32_t *inner, int n) {
    const hone_stage *s = m->p.in->stage + m->first + k;
    const char *u = hone_kernel_count(m), *items = name(m, "items", k);
    hone_kernel_number_add(m, items, hone_kernel_product(m, inner, n));
    hone_kernel_open(m, "if (hone_live) ");
    hone_kernel_put(m, "for (%s hone_item = hone_lane; hone_item < (%s)%s; hone_item += %du) {", u, u, items,
                    m->s->lanes),
        m->p.depth++;
    hone_body_decode(m, "hone_item", inner, n);
    if (s->reduce) hone_body_serial(m, s);
    hone_body_store(m, s, NULL);
    hone_body_end(m, 2);
    if (m->s->lanes > 1 && k + 1 < m->s->n_stage) hone_kernel_put(m, "HONE_BARRIER();");
}
void hone_kernel_rows(hone_kernel *m) {
    hone_printer *p = &m->p;
    const hone_stage *first = p->in->stage + m->first;
    const char *u = hone_kernel_count(m);
    const int lanes = m->s->lanes, taken = p->n_taken;
    int32_t ids[HONE_SLOTS];
    for (int q = 0; q < m->s->n_order; q++) ids[q] = p->in->list[first->index0 + m->s->order[q]];
    hone_kernel_number_add(m, "hone_total", hone_kernel_product(m, ids, m->s->n_order));
    hone_kernel_put(m, "const uint32_t hone_lane = HONE_THREAD %% %du;", lanes);
    hone_kernel_put(m, "const %s hone_at = (%s)(HONE_GROUP * %du + HONE_THREAD / %du);", u, u,
                    m->s->threads / lanes, lanes);
    hone_kernel_put(m, "const int hone_live = hone_at < (%s)hone_total;", u);
    name_indices(m, 0);
    hone_body_decode(m, "hone_at", ids, m->s->n_order);
    for (int k = 0; k < m->s->n_stage; k++) {
        const hone_stage *s = first + k;
        int32_t inner[HONE_SLOTS];
        int order[HONE_SLOTS], n = 0;
        p->n_taken = taken;
        p->knows = m->know + k;
        name_indices(m, k);
        if (!hone_stage_order(p->in, s, m->param, m->stride + s->tensor * HONE_MAX_RANK, order))
            m->failed = true;
        for (int d = 0; d < s->n_index; d++)
            if (!is_outer(m, k, order[d])) inner[n++] = p->in->list[s->index0 + order[d]];
        if (n) along(m, k, inner, n);
        else once(m, k);
    }
}
