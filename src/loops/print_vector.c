/* SPDX-License-Identifier: Apache-2.0
   print_vector: a thread that has several neighbouring places (schedule.h, `vector`): what lies side by side
   in memory comes and goes as one access; what is computed of it is written once, in a loop that is unrolled.
   */
#include "loops/print_kernel.h"

static void put_offset(hone_kernel *m, int tensor, bool flat, const int32_t *sub, int n) {
    hone_print_places at = {.n = n};
    for (int k = 0; k < n; k++) at.sub[k] = sub[k], at.temp[k] = -1;
    hone_print_at(&m->p, tensor, flat, &at);
}
static void bring(hone_kernel *m, int number, int32_t x) {
    hone_printer *p = &m->p;
    const hone_x *e = p->in->x + x;
    const int rank = e->flat ? 1 : p->in->tensor[e->a].rank;
    const char *type = hone_print_element_of(p->in->tensor[e->a].dtype).c;
    hone_kernel_put(m, "HONE_VECTOR(%s, hone_l%d, %d);", type, number, m->s->vector);
    hone_kernel_open(m, "");
    hone_print_block block = hone_print_open(p, p->in->list + e->b, rank);
    p->out = &block.text;
    hone_print_name_shared(p);
    hone_print_line(p);
    hone_text_put(p->out, "HONE_BRING(%s, %d, hone_l%d, %s + ", type, m->s->vector, number, p->tensor[e->a]);
    put_offset(m, e->a, e->flat, p->in->list + e->b, rank);
    hone_text_put(p->out, ");\n");
    hone_print_close(p, &block);
    hone_body_end(m, 1);
}
static void leave(hone_kernel *m, const hone_stage *s) {
    hone_printer *p = &m->p;
    const hone_tensor *w = p->in->tensor + s->tensor;
    int32_t sub[HONE_MAX_RANK], root[HONE_MAX_RANK];
    for (int k = 0; k < w->rank; k++) {
        sub[k] = s->identity ? ~p->in->list[s->index0 + k] : p->in->list[s->sub0 + k];
        root[k] = sub[k] < 0 ? -1 : sub[k];
    }
    hone_kernel_open(m, "");
    hone_print_block block = hone_print_open(p, root, w->rank);
    p->out = &block.text;
    hone_print_name_shared(p);
    hone_print_line(p);
    hone_text_put(p->out, "HONE_LEAVE(%s, %d, %s + ", hone_print_element_of(w->dtype).c, m->s->vector,
                  p->tensor[s->tensor]);
    put_offset(m, s->tensor, false, sub, w->rank);
    hone_text_put(p->out, ", hone_r);\n");
    hone_print_close(p, &block);
    hone_body_end(m, 1);
    m->written[s->tensor] = 1;
}
void hone_kernel_vector(hone_kernel *m) {
    hone_printer *p = &m->p;
    const hone_schedule *o = m->s;
    const hone_stage *s = p->in->stage + m->first, *last = s + o->n_stage - 1;
    const char *u = hone_kernel_count(m);
    int32_t ids[HONE_GRID_INDICES], load[HONE_VECTORED];
    int n = 0; /* an `else` that is never taken is not printed */
    for (int k = 0; k < o->n_vectored; k++)
        if (p->uses[o->vectored[k]]) load[n++] = o->vectored[k];
    for (int k = 0; k < o->n_order; k++) ids[k] = p->in->list[s->index0 + o->order[k]];
    const char *fastest = p->index[ids[o->n_order - 1]];
    const hone_tensor *w = p->in->tensor + last->tensor;
    const hone_ctype c = (hone_ctype)p->in->x[last->value].type;
    hone_kernel_number_add(m, "hone_total", hone_kernel_product(m, ids, o->n_order) / o->vector);
    hone_kernel_put(m, "const %s hone_at = (%s)(HONE_GROUP * %du + HONE_THREAD);", u, u, o->threads);
    hone_kernel_put(m, "if (hone_at < (%s)hone_total) {", u), p->depth++;
    hone_kernel_put(m, "const %s hone_place = hone_at * %du;", u, o->vector);
    hone_body_decode(m, "hone_place", ids, o->n_order);
    hone_kernel_put(m, "const int64_t hone_first = %s;", fastest);
    p->knows = m->know;
    for (int k = 0; k < n; k++) bring(m, k, load[k]);
    hone_kernel_put(m, "HONE_VECTOR(%s, hone_r, %d);", hone_print_element_of(w->dtype).c, o->vector);
    hone_text_put(p->out, "#pragma unroll\n");
    hone_kernel_put(m, "for (uint32_t hone_k = 0; hone_k < %du; hone_k++) {", o->vector), p->depth++;
    hone_kernel_put(m, "const int64_t %s = hone_first + hone_k;", fastest);
    hone_kernel_put(m, "(void)%s;", fastest);
    for (int k = 0; k < n; k++) {
        const int32_t x = load[k];
        const hone_dtype t = p->in->tensor[p->in->x[x].a].dtype;
        const bool plain = hone_print_element_of(t).plain;
        hone_kernel_put(m, "const %s e%d = %s%s%shone_l%d[hone_k]%s;", hone_print_types[p->in->x[x].type],
                        (int)x, plain ? "" : "hone_get_", plain ? "" : hone_dtypes[t].name, plain ? "" : "(",
                        k, plain ? "" : ")");
        p->given[x] = 1;
    }
    hone_kernel_put(m, "%s hone_v;", hone_print_types[c]);
    hone_kernel_stages(m, false, "hone_v");
    hone_print_line(p);
    hone_text_put(p->out, "hone_r[hone_k] = ");
    hone_body_element(m, last, c, "hone_v");
    hone_text_put(p->out, ";\n");
    hone_body_end(m, 1);
    for (int k = 0; k < n; k++) p->given[load[k]] = 0;
    p->knows = m->know + o->n_stage - 1;
    leave(m, last);
    hone_body_end(m, 1);
}
