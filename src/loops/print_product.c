/* SPDX-License-Identifier: Apache-2.0
   print_product: a sum of products in blocks (schedule_product.h). A work-group's threads bring a piece of K
   of both operands into shared memory, each element by the program's own expression of it, so that windows,
   pads and halves are what they are; then each thread multiplies its rows with its columns. Sums of a piece
   are made by themselves before they are added to the others. What follows the sum is printed behind it. */
#include "base/round.h"
#include "loops/print_kernel.h"

typedef struct {                    /* rows of an operand, columns of the other one, or K */
    const char *at, *first, *count; /* the name of a place, where the block begins, and how many there are */
    const int32_t *ids;
    int n, side;
} brought_side;
typedef struct { /* an operand on its way into shared memory */
    const char *name;
    int32_t load;
    int pitch;
    brought_side of, k, other; /* other: indices that its expression may name, but that do not move it */
    bool deep;
} brought;
/* Indices of the place that `from` says, which then go on one by one. */
static void begin_walk(hone_kernel *m, const brought_side *o, const char *from) {
    hone_printer *p = &m->p;
    const char *u = hone_kernel_count(m);
    hone_kernel_put(m, "%s hone_rest = %s;", u, from);
    for (int k = o->n - 1; k >= 0; k--) {
        const char *extent = hone_print_param(p, p->in->index[o->ids[k]].extent);
        hone_kernel_put(m, "int64_t %s = (int64_t)(hone_rest %% (%s)%s);", p->index[o->ids[k]], u, extent);
        hone_kernel_put(m, "hone_rest /= (%s)%s;", u, extent);
    }
}
static void go_on(hone_kernel *m, const brought_side *o) {
    hone_printer *p = &m->p;
    for (int k = o->n - 1; k > 0; k--) {
        const char *i = p->index[o->ids[k]];
        hone_kernel_put(m, "if (++%s == %s) {", i, hone_print_param(p, p->in->index[o->ids[k]].extent));
        p->depth++;
        hone_kernel_put(m, "%s = 0;", i);
    }
    if (o->n) hone_kernel_put(m, "++%s;", p->index[o->ids[0]]);
    hone_body_end(m, o->n ? o->n - 1 : 0);
}
/* Neighbours in memory are brought by neighbouring threads; on a CPU, where there are none, by one thread
   after another, which divides no number for it. */
static void bring(hone_kernel *m, const brought *o) {
    hone_printer *p = &m->p;
    const char *u = hone_kernel_count(m);
    const brought_side *inner = o->deep ? &o->k : &o->of, *outer = o->deep ? &o->of : &o->k;
    const int threads = m->s->threads;
    const bool walks = m->s->blocks.beside;
    const int lanes = walks ? (threads > outer->side ? threads / outer->side : 1)
                            : (threads < inner->side ? threads : inner->side);
    hone_kernel_open(m, "");
    for (int q = 0; q < o->other.n; q++)
        hone_kernel_put(m, "const int64_t %s = 0;", p->index[o->other.ids[q]]);
    hone_kernel_put(m, "for (uint32_t hone_r = HONE_THREAD / %du; hone_r < %du; hone_r += %du) {", lanes,
                    outer->side, threads / lanes);
    p->depth++;
    hone_kernel_put(m, "const %s %s = %s + hone_r;", u, outer->at, outer->first);
    hone_body_decode(m, outer->at, outer->ids, outer->n);
    hone_kernel_open(m, "");
    if (walks && lanes == 1) begin_walk(m, inner, inner->first);
    hone_kernel_put(m, "for (uint32_t hone_t = HONE_THREAD %% %du; hone_t < %du; hone_t += %du) {", lanes,
                    inner->side, lanes);
    p->depth++;
    hone_kernel_put(m, "const %s %s = %s + hone_t;", u, inner->at, inner->first);
    hone_kernel_put(m, "float hone_v = 0;");
    hone_kernel_put(m, "if (%s < (%s)%s && %s < (%s)%s) {", outer->at, u, outer->count, inner->at, u,
                    inner->count);
    p->depth++;
    if (!walks || lanes > 1) hone_body_decode(m, inner->at, inner->ids, inner->n);
    hone_print_block block = hone_print_open(p, &o->load, 1);
    p->out = &block.text;
    hone_print_name_shared(p);
    hone_print_line(p);
    hone_text_put(p->out, "hone_v = ");
    hone_print_child(p, o->load, HONE_AT_SELECT);
    hone_text_put(p->out, ";\n");
    hone_print_close(p, &block);
    hone_body_end(m, 1);
    hone_kernel_put(m, "%s[%s * %du + %s] = hone_v;", o->name, o->deep ? "hone_t" : "hone_r", o->pitch,
                    o->deep ? "hone_r" : "hone_t");
    if (walks && lanes == 1) go_on(m, inner);
    hone_body_end(m, 4);
}
/* ---- a thread's own block ---- */
typedef struct {
    hone_kernel *m;
    const hone_product_blocks *b;
    bool vectors; /* a row of it is one vector: columns lie side by side, and terms are products alone */
    int by;       /* from one column to the next */
    int pitch_a, pitch_b;
} own_block;
static bool is_fused(const hone_kernel *m, const hone_product_blocks *b) {
    const hone_x *e = m->p.in->x + m->p.in->stage[m->first].value;
    return e->kind == HONE_X_FN && e->fn == HONE_FN_mul &&
           ((e->a == b->load_a && e->b == b->load_b) || (e->a == b->load_b && e->b == b->load_a));
}
static void loop(hone_kernel *m, const char *name, int n, bool unrolled) {
    if (unrolled) hone_text_put(m->p.out, "#pragma unroll\n");
    hone_kernel_put(m, "for (uint32_t %s = 0; %s < %du; %s++) {", name, name, n, name), m->p.depth++;
}
static void clear(const own_block *o, const char *name) {
    hone_kernel *m = o->m;
    if (o->vectors) hone_kernel_put(m, "float%d %s[%d];", o->b->thread_columns, name, o->b->thread_rows);
    else hone_kernel_put(m, "float %s[%d][%d];", name, o->b->thread_rows, o->b->thread_columns);
    loop(m, "hone_i", o->b->thread_rows, true);
    if (!o->vectors) loop(m, "hone_j", o->b->thread_columns, true);
    hone_kernel_put(m, "%s[hone_i]%s = 0;", name, o->vectors ? "" : "[hone_j]");
    hone_body_end(m, o->vectors ? 1 : 2);
}
/* One term of every sum of a thread: hone_x times hone_y, and what numbers stand beside them. */
static void multiply(const own_block *o) {
    hone_kernel *m = o->m;
    hone_printer *p = &m->p;
    const int32_t value = p->in->stage[m->first].value;
    loop(m, "hone_q", o->b->depth, false);
    if (o->vectors)
        hone_kernel_put(m, "const float%d hone_y = vload%d(0, hone_bs + hone_q * %du + hone_own_column);",
                        o->b->thread_columns, o->b->thread_columns, o->pitch_b);
    loop(m, "hone_i", o->b->thread_rows, true);
    hone_kernel_put(m, "const float hone_x = hone_as[hone_q * %du + hone_own_row + hone_i];", o->pitch_a);
    if (o->vectors) {
        hone_kernel_put(m, "hone_part[hone_i] = fma((float%d)(hone_x), hone_y, hone_part[hone_i]);",
                        o->b->thread_columns);
        hone_body_end(m, 2);
        return;
    }
    loop(m, "hone_j", o->b->thread_columns, true);
    hone_kernel_put(m, "const float hone_y = hone_bs[hone_q * %du + hone_own_column + hone_j * %du];",
                    o->pitch_b, o->by);
    if (is_fused(m, o->b))
        hone_kernel_put(
            m, "hone_part[hone_i][hone_j] = hone_fma_f32(hone_x, hone_y, hone_part[hone_i][hone_j]);");
    else {
        p->said[o->b->load_a] = "hone_x", p->said[o->b->load_b] = "hone_y";
        hone_print_block block = hone_print_open(p, &value, 1);
        p->out = &block.text;
        hone_print_line(p);
        hone_text_put(p->out, "hone_part[hone_i][hone_j] += ");
        hone_print_child(p, value, HONE_AT_SELECT);
        hone_text_put(p->out, ";\n");
        hone_print_close(p, &block);
        p->said[o->b->load_a] = p->said[o->b->load_b] = NULL;
    }
    hone_body_end(m, 3);
}
static void collect(const own_block *o) { /* the sums of a piece go to the others */
    hone_kernel *m = o->m;
    const char *of = o->vectors ? "[hone_i]" : "[hone_i][hone_j]";
    loop(m, "hone_i", o->b->thread_rows, true);
    if (!o->vectors) loop(m, "hone_j", o->b->thread_columns, true);
    hone_kernel_put(m, "hone_sum%s += hone_part%s;", of, of);
    hone_body_end(m, o->vectors ? 1 : 2);
}
/* What follows the sums, and stores: where rows are vectors sums lie in memory anyway, and all that is said
   of one is said once; else each stays in its register. */
static void store(const own_block *o) {
    hone_kernel *m = o->m;
    const hone_product_blocks *b = o->b;
    const char *u = hone_kernel_count(m);
    loop(m, "hone_i", b->thread_rows, !o->vectors);
    hone_kernel_put(m, "const %s hone_row = hone_row0 + hone_own_row + hone_i;", u);
    if (o->vectors) {
        hone_kernel_put(m, "float hone_line[%d];", b->thread_columns);
        hone_kernel_put(m, "vstore%d(hone_sum[hone_i], 0, hone_line);", b->thread_columns);
    }
    loop(m, "hone_j", b->thread_columns, !o->vectors);
    hone_kernel_put(m, "const %s hone_column = hone_column0 + hone_own_column + hone_j * %du;", u, o->by);
    hone_kernel_put(m, "if (hone_row < (%s)hone_rows && hone_column < (%s)hone_columns) {", u, u),
        m->p.depth++;
    hone_kernel_put(m, "const float acc = %s;",
                    o->vectors ? "hone_line[hone_j]" : "hone_sum[hone_i][hone_j]");
    hone_body_decode(m, "hone_row", b->m, b->n_m);
    hone_kernel_open(m, "");
    hone_body_decode(m, "hone_column", b->n, b->n_n);
    hone_kernel_stages(m, true, NULL);
    hone_body_end(m, 4);
}
void hone_kernel_blocks(hone_kernel *m) {
    hone_printer *p = &m->p;
    const hone_product_blocks *b = &m->s->blocks;
    const char *u = hone_kernel_count(m);
    const int across = b->columns / b->thread_columns, wide = b->thread_columns;
    const own_block own = {.m = m,
                           .b = b,
                           .vectors = m->row->vectors && b->beside && is_fused(m, b) &&
                                      (wide == 4 || wide == 8 || wide == 16),
                           .by = b->beside ? 1 : across,
                           /* what threads write at once lies in different banks */
                           .pitch_a = b->rows + (b->a_deep && !b->beside),
                           .pitch_b = b->columns + (b->b_deep && !b->beside)};
    const int64_t rows = hone_kernel_product(m, b->m, b->n_m), columns = hone_kernel_product(m, b->n, b->n_n);
    p->knows = m->know;
    hone_kernel_number_add(m, "hone_rows", rows);
    hone_kernel_number_add(m, "hone_columns", columns);
    hone_kernel_number_add(m, "hone_terms", hone_kernel_product(m, b->k, b->n_k));
    hone_kernel_number_add(m, "hone_down", hone_ceil_div(rows, b->rows));
    hone_kernel_number_add(m, "hone_across", hone_ceil_div(columns, b->columns));
    hone_text_put(m->shared, "    HONE_SHARED float hone_as[%d];\n    HONE_SHARED float hone_bs[%d];\n",
                  own.pitch_a * b->depth, own.pitch_b * b->depth);
    m->shared_bytes += 4 * (own.pitch_a + own.pitch_b) * b->depth;
    hone_kernel_put(m, "const %s hone_row0 = (%s)(HONE_GROUP %% (uint64_t)hone_down) * %du;", u, u, b->rows);
    hone_kernel_put(
        m, "const %s hone_column0 = (%s)(HONE_GROUP / (uint64_t)hone_down %% (uint64_t)hone_across) * %du;",
        u, u, b->columns);
    hone_kernel_put(
        m, "const %s hone_place = (%s)(HONE_GROUP / (uint64_t)hone_down / (uint64_t)hone_across);", u, u);
    hone_kernel_put(m, "const uint32_t hone_own_row = HONE_THREAD / %du * %du;", across, b->thread_rows);
    hone_kernel_put(m, "const uint32_t hone_own_column = HONE_THREAD %% %du * %du;", across,
                    b->beside ? wide : 1);
    hone_kernel_put(m, "(void)hone_place;");
    hone_body_decode(m, "hone_place", b->batch, b->n_batch);
    clear(&own, "hone_sum");
    hone_kernel_put(m, "for (%s hone_from = 0; hone_from < (%s)hone_terms; hone_from += %du) {", u, u,
                    b->depth),
        p->depth++;
    const brought_side k = {"hone_term", "hone_from", "hone_terms", b->k, b->n_k, b->depth},
                       down = {"hone_row", "hone_row0", "hone_rows", b->m, b->n_m, b->rows},
                       over = {"hone_column", "hone_column0", "hone_columns", b->n, b->n_n, b->columns};
    bring(m, &(brought){"hone_as", b->load_a, own.pitch_a, down, k, over, b->a_deep});
    bring(m, &(brought){"hone_bs", b->load_b, own.pitch_b, over, k, down, b->b_deep});
    hone_kernel_put(m, "HONE_BARRIER();");
    clear(&own, "hone_part");
    multiply(&own);
    collect(&own);
    hone_kernel_put(m, "HONE_BARRIER();");
    hone_body_end(m, 1);
    store(&own);
}
