/* SPDX-License-Identifier: Apache-2.0
   match_product: see match_product.h. */
#include "loops/match_product.h"
#include "loops/match_contraction.h"

#include <string.h>

typedef struct { /* a factor */
    int32_t x;
    int tensor;
    hone_affine at, dim[HONE_MAX_RANK];
    int64_t stride[HONE_MAX_RANK];
    bool outside[HONE_MAX_RANK]; /* a subscript may be outside; there it is 0 */
} factor;
static bool factor_of(const hone_sized *c, const hone_slots_of *slots, int32_t x, int32_t zero_point,
                      bool integers, factor *out) {
    const hone_instance *in = c->instance;
    const hone_x *e = in->x + x;
    if (e->flat) return false;
    const hone_dtype type = in->tensor[e->a].dtype;
    if (integers ? type != HONE_DTYPE_I8 && type != HONE_DTYPE_U8
                 : type != HONE_DTYPE_F32 && type != HONE_DTYPE_F16 && type != HONE_DTYPE_BF16)
        return false;
    *out = (factor){.x = x, .tensor = e->a};
    const bool zero =
        e->c >= 0 &&
        hone_affine_is_nothing(in, e->c, type, integers ? HONE_AFFINE_BYTES : HONE_AFFINE_FACTOR, zero_point);
    for (int k = 0; k < in->tensor[e->a].rank; k++) {
        int64_t lo, hi;
        if (!hone_affine_expr(c, slots, in->list[e->b + k], out->dim + k)) return false;
        hone_affine_range(slots, out->dim + k, &lo, &hi);
        if (!hone_affine_move(slots, out->dim + k, c->stride[e->a][k], &out->at)) return false;
        out->stride[k] = c->stride[e->a][k];
        out->outside[k] = lo < 0 || hi >= c->param[in->tensor[e->a].dim[k]].i;
        if (out->outside[k] && !zero) return false;
    }
    return true;
}
static bool knows(const hone_slots_of *w, const factor *f, int slot) {
    if (w->extent[slot] == 1) return false;
    if (f->at.k[slot]) return true;
    for (int k = 0; k < HONE_MAX_RANK; k++)
        if (f->dim[k].k[slot] && f->stride[k]) return true; /* one element that is broadcast has stride 0 */
    return false;
}
/* Where the last stage stores, over the slots of the first: both walk the same domain. */
static bool stores(const hone_sized *c, hone_match_product *m, int stage, int last) {
    const hone_instance *in = c->instance;
    const hone_stage *s = in->stage + stage, *z = in->stage + last;
    if (z->n_index != s->n_index || z->how) return false;
    m->c = z->tensor, m->store = (hone_affine){0};
    hone_slots_of own = m->slots; /* the last stage's names of the same indices */
    for (int k = 0; k < own.n_domain; k++) own.id[k] = in->list[z->index0 + own.dim[k]];
    own.n = own.n_domain;
    for (int k = 0; k < own.n_domain && z->identity; k++) m->store.k[k] = c->stride[z->tensor][own.dim[k]];
    for (int d = 0; !z->identity && d < in->tensor[z->tensor].rank; d++) {
        hone_affine at;
        if (z->sub0 < 0 || !hone_affine_expr(c, &own, in->list[z->sub0 + d], &at) ||
            !hone_affine_move(&own, &at, c->stride[z->tensor][d], &m->store))
            return false;
    }
    for (int k = 0; k < own.n_domain; k++)
        if (own.extent[k] > 1 && !m->store.k[k]) return false;
    return m->slots.injective;
}
static void add(hone_axes *to, hone_axis a) {
    hone_axis *last = to->n ? to->at + to->n - 1 : NULL;
    if (last && last->a == a.a * a.extent && last->b == a.b * a.extent && last->c == a.c * a.extent)
        *last = (hone_axis){last->extent * a.extent, a.a, a.b, a.c};
    else to->at[to->n++] = a;
}
/* ---- windows ---- */
/* The only slot of its kind that an index expression has: -1 none, -2 several. */
static int slot_of(const hone_slots_of *w, const hone_affine *a, int from, int to) {
    int found = -1;
    for (int k = from; k < to; k++)
        if (a->k[k] && w->extent[k] > 1) found = found == -1 ? k : -2;
    return found;
}
typedef struct {
    int64_t size, step; /* of A's dim */
    int64_t out, kernel, stride, pad, dilation;
    int m, k; /* slots, or -1 */
} side;
static bool side_of(const hone_sized *c, const hone_slots_of *w, const factor *f, int d, side *out) {
    const hone_affine *a = f->dim + d;
    const int m = slot_of(w, a, 0, w->n_domain), k = slot_of(w, a, w->n_domain, w->n);
    if (m == -2 || k == -2) return false;
    *out = (side){.size = c->param[c->instance->tensor[f->tensor].dim[d]].i,
                  .step = c->stride[f->tensor][d],
                  .out = m < 0 ? 1 : w->extent[m],
                  .kernel = k < 0 ? 1 : w->extent[k],
                  .stride = m < 0 ? 1 : a->k[m],
                  .dilation = k < 0 ? 1 : a->k[k],
                  .pad = -a->c,
                  .m = m,
                  .k = k};
    return out->stride > 0 && out->dilation > 0;
}
static bool window_of(const hone_sized *c, hone_match_product *m, const factor *a, const factor *b) {
    const hone_slots_of *w = &m->slots;
    const int rank = c->instance->tensor[a->tensor].rank;
    int channel = -1, group = -1, rest[HONE_MAX_RANK], n = 0, channel_slot = -1, group_slot = -1;
    for (int d = 0; d < rank; d++) {
        const hone_affine *s = a->dim + d;
        const int in_m = slot_of(w, s, 0, w->n_domain), in_k = slot_of(w, s, w->n_domain, w->n);
        const bool plain = !s->c && !a->outside[d];
        if (plain && in_m == -1 && in_k >= 0 && s->k[in_k] == 1 && channel < 0 && d > 0)
            channel = d, channel_slot = in_k;
        else if (plain && in_k == -1 && in_m >= 0 && s->k[in_m] == 1 && knows(w, b, in_m) && group < 0)
            group = d, group_slot = in_m;
        else rest[n++] = d;
    }
    /* dims of one element between image and lines say nothing */
    for (int q = 1; q < n && n > 2;)
        if (c->param[c->instance->tensor[a->tensor].dim[rest[q]]].i == 1 && !a->outside[rest[q]] &&
            slot_of(w, a->dim + rest[q], 0, w->n) == -1 && n > 3) {
            memmove(rest + q, rest + q + 1, sizeof *rest * (size_t)(n - q - 1)), n--;
        } else q++;
    side image, y = {.size = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1, .m = -1, .k = -1}, x;
    if (n < 2 || n > 3 || !side_of(c, w, a, rest[0], &image) || image.kernel != 1 || image.stride != 1 ||
        image.pad || a->outside[rest[0]])
        return false;
    if (!side_of(c, w, a, rest[n - 1], &x) || (n == 3 && !side_of(c, w, a, rest[1], &y))) return false;
    if (image.out != image.size) return false;
    const hone_tensor *t = c->instance->tensor + a->tensor;
    hone_match_window *v = &m->w;
    *v = (hone_match_window){.images = image.size,
                             .height = y.size,
                             .width = x.size,
                             .channels = channel < 0 ? 1 : c->param[t->dim[channel]].i,
                             .image_step = image.step,
                             .line_step = y.step,
                             .pixel_step = x.step,
                             .channel_step = channel < 0 ? 1 : c->stride[a->tensor][channel],
                             .out_height = y.out,
                             .out_width = x.out,
                             .kernel_y = y.kernel,
                             .kernel_x = x.kernel,
                             .stride_y = y.stride,
                             .stride_x = x.stride,
                             .pad_y = y.pad,
                             .pad_x = x.pad,
                             .dilation_y = y.dilation,
                             .dilation_x = x.dilation,
                             .b_y = y.k < 0 ? 0 : b->at.k[y.k],
                             .b_x = x.k < 0 ? 0 : b->at.k[x.k],
                             .b_channel = channel_slot < 0 ? 0 : b->at.k[channel_slot],
                             .groups = group < 0 ? 1 : w->extent[group_slot],
                             .group_step = group < 0 ? 0 : c->stride[a->tensor][group]};
    if (channel_slot >= 0 && w->extent[channel_slot] != v->channels) return false;
    /* all of K and all rows are the window's; rows lie as images, lines, pixels */
    for (int k = w->n_domain; k < w->n; k++)
        if (w->extent[k] > 1 && k != channel_slot && k != y.k && k != x.k) return false;
    int64_t pitch = 0, count = 1;
    const int row[3] = {x.m, y.m, image.m};
    int at = w->n_domain;
    for (int q = 0; q < 3; q++) {
        if (row[q] < 0) continue;
        if (row[q] >= at || (pitch && m->store.k[row[q]] != pitch * count)) return false;
        if (!pitch) pitch = m->store.k[row[q]];
        at = row[q], count *= w->extent[row[q]];
    }
    for (int k = 0; k < w->n_domain; k++)
        if (w->extent[k] > 1 && k != group_slot && k != x.m && k != y.m && k != image.m &&
            !(knows(w, b, k) && !knows(w, a, k)))
            return false;
    return true;
}

bool hone_match_product_of(const hone_sized *c, int stage, hone_match_product *m) {
    const hone_instance *in = c->instance;
    const hone_stage *st = in->stage + stage;
    hone_match_factors p = {.alpha = 1};
    factor f[2];
    *m = (hone_match_product){.stages = stage + 1 < in->n_stage && st[1].follows && st[1].over < 0 ? 2 : 1};
    if (st->reduce != HONE_REDUCE_SUM || st->how || !st->identity || st->over >= 0 ||
        (in->x[st->value].type != HONE_F32 && in->x[st->value].type != HONE_I32) ||
        !hone_match_factors_of(c, st->value, &p) || p.n != 2)
        return false;
    m->integers = in->x[st->value].type == HONE_I32;
    hone_slots_of *w = &m->slots;
    if (!hone_affine_slots(c, stage, stage + m->stages - 1, w) || !stores(c, m, stage, stage + m->stages - 1))
        return false;
    for (int k = 0; k < 2; k++)
        if (!factor_of(c, w, p.load[k], p.zero[k], m->integers, f + k)) return false;
    int last = w->n_domain - 1, b = -1;
    while (last > 0 && w->extent[last] == 1) last--;
    if (last < 0) return false;
    if (knows(w, f, last) != knows(w, f + 1, last)) b = knows(w, f + 1, last) ? 1 : 0;
    else if (!knows(w, f, last)) b = c->constant && c->constant[f[0].tensor] ? 0 : 1; /* one result */
    else
        for (int k = 0; k < 2 && b < 0 && c->constant; k++)
            if (c->constant[f[k].tensor]) b = k, m->shares_columns = true;
    if (b < 0) return false;
    const factor *fa = f + 1 - b, *fb = f + b;
    m->a = fa->tensor, m->b = fb->tensor, m->alpha = p.alpha;
    m->zero_a = p.zero[1 - b], m->zero_b = p.zero[b];
    m->at_a = fa->at.c, m->at_b = fb->at.c, m->at_c = m->store.c;
    bool moves =
        false; /* a subscript with an index of the domain and one of the sum, or one that may be outside */
    for (int d = 0; d < in->tensor[fb->tensor].rank; d++)
        if (fb->outside[d]) return false;
    for (int d = 0; d < in->tensor[fa->tensor].rank; d++) {
        const int row = slot_of(w, fa->dim + d, 0, w->n_domain),
                  deep = slot_of(w, fa->dim + d, w->n_domain, w->n);
        moves |= fa->outside[d] || (row != -1 && deep != -1) || (row >= 0 && fa->dim[d].k[row] != 1);
    }
    m->window = moves || m->shares_columns;
    if (m->window && !window_of(c, m, fa, fb)) return false;
    if (m->window) m->at_a = 0; /* where the images begin; where windows do is what pads say */
    int rows = -1;              /* the last index of A alone */
    for (int k = 0; k < w->n_domain; k++)
        if (knows(w, fa, k) && !knows(w, fb, k)) rows = k;
    for (int k = 0; k < w->n_domain; k++) {
        if (w->extent[k] == 1) continue;
        const bool in_a = knows(w, fa, k), in_b = knows(w, fb, k);
        const hone_axis axis = {w->extent[k], fa->at.k[k], fb->at.k[k], m->store.k[k]};
        if (!in_a && !in_b) return false;
        const bool outer =
            !in_a && k < rows && !m->window; /* columns outside of rows: A is the same in all of them */
        m->kind[k] = (in_a && in_b) || outer ? 'b' : in_a ? 'm' : 'n';
        add(m->kind[k] == 'b' ? &m->batch : m->kind[k] == 'm' ? &m->m : &m->n, axis);
    }
    int order[HONE_MAX_SLOTS], n = 0; /* K in the order in which A lies */
    for (int k = w->n_domain; k < w->n; k++) {
        if (w->extent[k] == 1) continue;
        int q = n++;
        for (; q > 0 && fa->at.k[order[q - 1]] < fa->at.k[k]; q--) order[q] = order[q - 1];
        order[q] = k;
    }
    for (int q = 0; q < n; q++)
        add(&m->k, (hone_axis){w->extent[order[q]], fa->at.k[order[q]], fb->at.k[order[q]], 0});
    return true;
}

hone_end_kind hone_match_end(const hone_sized *c, const hone_match_product *m, int32_t load, int64_t *first) {
    const hone_instance *in = c->instance;
    const hone_x *e = in->x + load;
    const hone_slots_of *w = &m->slots;
    hone_slots_of own = *w;
    int z = -1;
    for (int k = 0; k < in->n_stage; k++)
        if (in->stage[k].tensor == m->c) z = k;
    if (z < 0) return HONE_END_OTHER;
    for (int k = 0; k < own.n_domain; k++) own.id[k] = in->list[in->stage[z].index0 + own.dim[k]];
    own.n = own.n_domain;
    hone_affine at;
    if (!hone_affine_inside(c, &own, load, &at)) return HONE_END_OTHER;
    *first = at.c;
    bool number = true, residual = true, column = true;
    int64_t columns = 1;
    for (int k = own.n_domain - 1; k >= 0; k--) {
        if (own.extent[k] == 1) continue;
        number &= !at.k[k], residual &= at.k[k] == m->store.k[k];
        /* columns; and those of groups of channels, which lie one beside the other */
        if (m->kind[k] == 'n' || (m->kind[k] == 'b' && m->window))
            column &= at.k[k] == columns, columns *= own.extent[k];
        else column &= !at.k[k];
    }
    if (number) return HONE_END_NUMBER;
    const hone_dtype type = in->tensor[e->a].dtype;
    if ((type == HONE_DTYPE_F32 || type == HONE_DTYPE_I32) && column) return HONE_END_COLUMN;
    return residual ? HONE_END_RESIDUAL : HONE_END_OTHER;
}
