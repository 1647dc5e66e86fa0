/* SPDX-License-Identifier: Apache-2.0
   print_kernel: what the threads of a kernel do, one function a kind of schedule (schedule.h); what happens
   at a place is print_body.c's. Between barriers no thread leaves: those beyond the end of the grid take part
   and store nothing. */
#include "loops/print_kernel.h"

#include <stdio.h>
#include <string.h>

static const hone_stage *first_stage(const hone_kernel *m) { return m->p.in->stage + m->first; }
void hone_kernel_put(hone_kernel *m, const char *format, ...) {
    va_list v;
    hone_print_line(&m->p);
    va_start(v, format);
    hone_text_putv(m->p.out, format, v);
    va_end(v);
    hone_text_put(m->p.out, "\n");
}
void hone_kernel_open(hone_kernel *m, const char *text) {
    hone_kernel_put(m, "%s{", text);
    m->p.depth++;
}
static int grid_indices(const hone_kernel *m, int32_t *ids) {
    const hone_stage *s = first_stage(m);
    for (int k = 0; k < m->s->n_order; k++) ids[k] = m->p.in->list[s->index0 + m->s->order[k]];
    return m->s->n_order;
}
int64_t hone_kernel_product(const hone_kernel *m, const int32_t *ids, int n) {
    int64_t all = 1;
    for (int k = 0; k < n; k++)
        if (__builtin_mul_overflow(all, m->param[m->p.in->index[ids[k]].extent].i, &all))
            return INT64_MAX / 2;
    return all;
}

void hone_kernel_stages(hone_kernel *m, bool reduced, const char *into) {
    hone_printer *p = &m->p;
    for (int k = 0; k < m->s->n_stage; k++) {
        const hone_stage *s = p->in->stage + m->first + k;
        const bool last = k == m->s->n_stage - 1;
        const char *held = NULL;
        p->knows = m->know + k;
        if (!last) {
            held = hone_arena_text(p->arena, "hone_h%d", k);
            if (!held) {
                m->failed = true;
                return;
            }
            hone_kernel_put(m, "%s %s;", hone_print_types[p->in->x[s->pick >= 0 ? s->pick : s->value].type],
                            held);
        }
        hone_kernel_open(m, "");
        if (s->reduce && !reduced) hone_body_serial(m, s);
        hone_body_store(m, s, last ? into : held);
        hone_body_end(m, 1);
        if (held) p->held[s->tensor] = held;
    }
}
static void each(hone_kernel *m) {
    const char *u = hone_kernel_count(m);
    int32_t ids[HONE_SLOTS];
    const int n = grid_indices(m, ids);
    hone_kernel_number_add(m, "hone_total", hone_kernel_product(m, ids, n));
    if (m->s->unroll > 1) {
        hone_text_put(m->p.out, "#pragma unroll\n");
        hone_kernel_put(m, "for (uint32_t hone_turn = 0; hone_turn < %du; hone_turn++) {", m->s->unroll),
            m->p.depth++;
        hone_kernel_put(m, "const %s hone_at = (%s)(HONE_GROUP * %du + hone_turn * %du + HONE_THREAD);", u, u,
                        m->s->threads * m->s->unroll, m->s->threads);
    } else
        hone_kernel_put(m, "const %s hone_at = (%s)(HONE_GROUP * %du + HONE_THREAD);", u, u, m->s->threads);
    hone_kernel_put(m, "if (hone_at < (%s)hone_total) {", u), m->p.depth++;
    hone_body_decode(m, "hone_at", ids, n);
    hone_kernel_stages(m, false, NULL);
    hone_body_end(m, m->s->unroll > 1 ? 2 : 1);
}

/* ---- lanes ---- */
static void shared(hone_kernel *m, const char *type, const char *name, int bytes) {
    hone_text_put(m->shared, "    HONE_SHARED %s %s[%d];\n", type, name, m->s->threads);
    m->shared_bytes += bytes * m->s->threads;
}
/* What the lanes have meets in lane 0, by halves: an order that only their number decides. */
void hone_kernel_tree(hone_kernel *m, const hone_stage *s, int lanes, bool all) {
    const hone_ctype c = hone_body_acc(m, s);
    const char *type = hone_print_types[c];
    const bool arg = s->reduce >= HONE_REDUCE_ARGMAX;
    if (lanes == 1) return;
    if (m->row->shuffles && lanes <= 32 && !all) {
        hone_kernel_put(m, "for (uint32_t hone_by = %du; hone_by; hone_by /= 2) {", lanes / 2), m->p.depth++;
        hone_kernel_put(m, "const %s hone_other = HONE_SHUFFLE(acc, hone_by);", type);
        if (arg) hone_kernel_put(m, "const int64_t hone_other_term = HONE_SHUFFLE(hone_best, hone_by);");
        hone_body_join(m, s, "hone_other", "hone_other_term");
        hone_body_end(m, 1);
        return;
    }
    char name[32];
    snprintf(name, sizeof name, "hone_s_%s", hone_ctype_names[c]);
    if (!m->shared->n || !strstr(m->shared->text, name)) shared(m, type, name, hone_ctype_bytes[c]);
    if (arg && (!m->shared->n || !strstr(m->shared->text, "hone_s_best")))
        shared(m, "int64_t", "hone_s_best", 8);
    hone_kernel_put(m, "%s[HONE_THREAD] = acc;", name);
    if (arg) hone_kernel_put(m, "hone_s_best[HONE_THREAD] = hone_best;");
    hone_kernel_put(m, "HONE_BARRIER();");
    hone_kernel_put(m, "for (uint32_t hone_by = %du; hone_by; hone_by /= 2) {", lanes / 2), m->p.depth++;
    hone_kernel_open(m, "if (hone_lane < hone_by) ");
    hone_kernel_put(m, "const %s hone_other = %s[HONE_THREAD + hone_by];", type, name);
    if (arg) hone_kernel_put(m, "const int64_t hone_other_term = hone_s_best[HONE_THREAD + hone_by];");
    hone_body_join(m, s, "hone_other", "hone_other_term");
    hone_kernel_put(m, "%s[HONE_THREAD] = acc;", name);
    if (arg) hone_kernel_put(m, "hone_s_best[HONE_THREAD] = hone_best;");
    hone_body_end(m, 1);
    hone_kernel_put(m, "HONE_BARRIER();");
    hone_body_end(m, 1);
    if (!all) return;
    hone_kernel_put(m, "acc = %s[HONE_THREAD - hone_lane];", name);
    if (arg) hone_kernel_put(m, "hone_best = hone_s_best[HONE_THREAD - hone_lane];");
    hone_kernel_put(m, "HONE_BARRIER();"); /* before the next tree writes there */
}
/* The terms from `from` up to `to`, every so many lanes one. */
void hone_kernel_terms(hone_kernel *m, const hone_stage *s, const char *from, const char *to, int lanes,
                       const char *source) {
    const char *u = hone_kernel_count(m);
    hone_kernel_put(m, "for (%s hone_term = %s; hone_term < %s; hone_term += %du) {", u, from, to, lanes),
        m->p.depth++;
    if (!source) hone_body_decode(m, "hone_term", m->p.in->list + s->index0 + s->n_index, s->n_reduce);
    hone_body_term(m, s, true, source);
    hone_body_end(m, 1);
}
static void by_lanes(hone_kernel *m, bool second) {
    const hone_stage *s = first_stage(m);
    const char *u = hone_kernel_count(m);
    const int lanes = m->s->lanes;
    int32_t ids[HONE_SLOTS];
    const int n = grid_indices(m, ids);
    char to[64];
    hone_kernel_number_add(m, "hone_total", hone_kernel_product(m, ids, n));
    if (second) hone_kernel_number_add(m, "hone_slices", m->s->slices);
    else
        hone_kernel_number_add(m, "hone_terms",
                               hone_kernel_product(m, m->p.in->list + s->index0 + s->n_index, s->n_reduce));
    hone_kernel_put(m, "const uint32_t hone_lane = HONE_THREAD %% %du;", lanes);
    hone_kernel_put(m, "const %s hone_at = (%s)(HONE_GROUP * %du + HONE_THREAD / %du);", u, u,
                    m->s->threads / lanes, lanes);
    hone_kernel_put(m, "const int hone_live = hone_at < (%s)hone_total;", u);
    hone_body_decode(m, "hone_at", ids, n);
    m->p.knows = m->know;
    hone_body_acc_open(m, s, true);
    hone_kernel_open(m, "if (hone_live) ");
    snprintf(to, sizeof to, "(%s)hone_%s", u, second ? "slices" : "terms");
    hone_kernel_terms(m, s, "hone_lane", to, lanes,
                      second ? "hone_scratch[(uint64_t)hone_at * (uint64_t)hone_slices + hone_term]" : NULL);
    hone_body_end(m, 1);
    hone_body_acc_close(m, s, true);
    hone_kernel_tree(m, s, lanes, false);
    hone_kernel_open(m, "if (hone_live && hone_lane == 0) ");
    hone_body_pick(m, s);
    hone_kernel_stages(m, true, NULL);
    hone_body_end(m, 1);
}
static void slice(hone_kernel *m) {
    const hone_stage *s = first_stage(m);
    const char *u = hone_kernel_count(m);
    int32_t ids[HONE_SLOTS];
    const int n = grid_indices(m, ids);
    const int64_t all = hone_kernel_product(m, m->p.in->list + s->index0 + s->n_index, s->n_reduce);
    hone_kernel_number_add(m, "hone_slices", m->s->slices);
    hone_kernel_number_add(m, "hone_terms", all);
    hone_kernel_number_add(m, "hone_length", all / m->s->slices + (all % m->s->slices != 0));
    hone_kernel_put(m, "const uint32_t hone_lane = HONE_THREAD;");
    hone_kernel_put(m, "const %s hone_at = (%s)(HONE_GROUP / (uint64_t)hone_slices);", u, u);
    hone_kernel_put(m, "const %s hone_from = (%s)(HONE_GROUP %% (uint64_t)hone_slices) * (%s)hone_length;", u,
                    u, u);
    hone_kernel_put(m,
                    "const %s hone_end = hone_from + (%s)hone_length < (%s)hone_terms ? hone_from + "
                    "(%s)hone_length : (%s)hone_terms;",
                    u, u, u, u, u);
    hone_body_decode(m, "hone_at", ids, n);
    m->p.knows = m->know;
    hone_body_acc_open(m, s, true);
    hone_kernel_terms(m, s, "hone_from + hone_lane", "hone_end", m->s->threads, NULL);
    hone_body_acc_close(m, s, true);
    hone_kernel_tree(m, s, m->s->threads, false);
    hone_kernel_put(m, "if (hone_lane == 0) hone_scratch[HONE_GROUP] = acc;");
    m->scratch_written = true;
}

/* ---- scatters ---- */
static void owners(hone_kernel *m) {
    const hone_stage *s = first_stage(m);
    const char *u = hone_kernel_count(m);
    int32_t ids[HONE_SLOTS], rest[HONE_SLOTS];
    const int n = grid_indices(m, ids);
    int n_rest = 0;
    for (int k = 0; k < s->n_index; k++) {
        bool walked = false;
        for (int q = 0; q < m->s->n_order; q++) walked |= m->s->order[q] == k;
        if (!walked) rest[n_rest++] = m->p.in->list[s->index0 + k];
    }
    hone_kernel_number_add(m, "hone_total", hone_kernel_product(m, ids, n) * m->s->owners);
    hone_kernel_put(m, "const %s hone_at = (%s)(HONE_GROUP * %du + HONE_THREAD);", u, u, m->s->threads);
    hone_kernel_put(m, "if (hone_at < (%s)hone_total) {", u), m->p.depth++;
    if (m->s->owners > 1) {
        hone_kernel_number_add(m, "hone_owners", m->s->owners);
        hone_kernel_put(
            m, "const %s hone_own = hone_at %% (%s)hone_owners, hone_place = hone_at / (%s)hone_owners;", u,
            u, u);
    } else hone_kernel_put(m, "const %s hone_place = hone_at;", u);
    hone_kernel_put(m, "(void)hone_place;");
    hone_body_decode(m, "hone_place", ids, n);
    m->p.knows = m->know;
    const int made = hone_body_loops(m, rest, n_rest, s->over >= 0 ? s->over_index : -1);
    hone_body_scatter(m, s);
    hone_body_end(m, made);
    hone_body_end(m, 1);
}

void hone_kernel_body(hone_kernel *m, bool second) {
    switch (m->s->kind) {
    case HONE_EACH:
        if (m->s->vector > 1) hone_kernel_vector(m);
        else each(m);
        return;
    case HONE_LANES: by_lanes(m, false); return;
    case HONE_SLICES:
        if (second) by_lanes(m, true);
        else slice(m);
        return;
    case HONE_OWNERS: owners(m); return;
    case HONE_ROWS: hone_kernel_rows(m); return;
    case HONE_TILES: hone_kernel_tiles(m); return;
    case HONE_BLOCKS: hone_kernel_blocks(m); return;
    default: m->failed = true;
    }
}
