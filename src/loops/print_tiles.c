/* SPDX-License-Identifier: Apache-2.0
   print_tiles: a stage that reads along one index and writes along another, a transpose above all, through
   tiles of 32 x 32 in shared memory: neighbouring threads read neighbours, then write neighbours (schedule.h,
   TILES). */
#include <stdio.h>

#include "loops/print_kernel.h"

enum { SIDE = 32, PITCH = SIDE + 1 /* so that a column is in all banks */ };

/* The body of one phase: `along` is the index that threads walk, `down` the other one. */
static void open_phase(hone_kernel *m, int32_t along, const char *along0, int32_t down, const char *down0) {
    hone_printer *p = &m->p;
    hone_kernel_put(m, "for (uint32_t hone_k = HONE_THREAD / %du; hone_k < %du; hone_k += %du) {", SIDE, SIDE,
                    m->s->threads / SIDE),
        p->depth++;
    hone_kernel_put(m, "const int64_t %s = %s + HONE_THREAD %% %du, %s = %s + hone_k;", p->index[along],
                    along0, SIDE, p->index[down], down0);
    hone_kernel_put(m, "if (%s < %s && %s < %s) {", p->index[along],
                    hone_print_param(p, p->in->index[along].extent), p->index[down],
                    hone_print_param(p, p->in->index[down].extent)),
        p->depth++;
}
void hone_kernel_tiles(hone_kernel *m) {
    hone_printer *p = &m->p;
    const hone_stage *s = p->in->stage + m->first;
    const char *u = hone_kernel_count(m);
    const int32_t a = p->in->list[s->index0 + m->s->order[m->s->n_order - 1]],
                  b = p->in->list[s->index0 + m->s->across];
    int32_t rest[HONE_GRID_INDICES];
    int n = 0;
    p->knows = m->know;
    for (int k = 0; k < m->s->n_order - 1; k++)
        if (m->s->order[k] != m->s->across) rest[n++] = p->in->list[s->index0 + m->s->order[k]];
    const int64_t ea = m->param[p->in->index[a].extent].i, eb = m->param[p->in->index[b].extent].i;
    hone_kernel_number_add(m, "hone_tiles_a", ea / SIDE + (ea % SIDE != 0));
    hone_kernel_number_add(m, "hone_tiles_b", eb / SIDE + (eb % SIDE != 0));
    hone_kernel_put(m, "const int64_t hone_a = (int64_t)(HONE_GROUP %% (uint64_t)hone_tiles_a) * %d;", SIDE);
    hone_kernel_put(m,
                    "const int64_t hone_b = (int64_t)(HONE_GROUP / (uint64_t)hone_tiles_a %% "
                    "(uint64_t)hone_tiles_b) * %d;",
                    SIDE);
    hone_kernel_put(
        m, "const %s hone_place = (%s)(HONE_GROUP / (uint64_t)hone_tiles_a / (uint64_t)hone_tiles_b);", u, u);
    hone_kernel_put(m, "(void)hone_place;");
    hone_body_decode(m, "hone_place", rest, n);
    open_phase(m, b, "hone_b", a, "hone_a");
    for (int k = 0; k < m->s->n_tiled; k++) {
        const int32_t x = m->s->tiled[k];
        const hone_ctype c = (hone_ctype)p->in->x[x].type;
        hone_text_put(m->shared, "    HONE_SHARED %s hone_tile%d[%d];\n", hone_print_types[c], k,
                      SIDE * PITCH);
        m->shared_bytes += SIDE * PITCH * hone_ctype_bytes[c];
        hone_kernel_open(m, "");
        hone_print_block block = hone_print_open(p, &x, 1);
        p->out = &block.text;
        hone_print_name_shared(p);
        hone_print_line(p);
        hone_text_put(p->out, "hone_tile%d[hone_k * %du + HONE_THREAD %% %du] = ", k, PITCH, SIDE);
        hone_print_child(p, x, HONE_AT_SELECT);
        hone_text_put(p->out, ";\n");
        hone_print_close(p, &block);
        hone_body_end(m, 1);
    }
    hone_body_end(m, 2);
    hone_kernel_put(m, "HONE_BARRIER();");
    open_phase(m, a, "hone_a", b, "hone_b");
    for (int k = 0; k < m->s->n_tiled; k++) {
        const int32_t x = m->s->tiled[k];
        hone_kernel_put(m, "const %s e%d = hone_tile%d[HONE_THREAD %% %du * %du + hone_k];",
                        hone_print_types[p->in->x[x].type], (int)x, k, SIDE, PITCH);
        p->given[x] = 1;
    }
    hone_body_store(m, s, NULL);
    hone_body_end(m, 2);
}
