/* SPDX-License-Identifier: Apache-2.0
   match_pool: see match_pool.h. A pool is a stage that takes the largest of x at affine places, or their sum;
   then a sum is followed by one that counts places, and one that divides:

        s[n, c, o, p]  =  sum(k, l) (x[n, c, o + k - 1, p + l - 1] else 0)
        t[o, p]        =  sum(k, l) (0 <= o + k - 1 && o + k - 1 < H && …)
        y[n, c, o, p]  =  s[n, c, o, p] / f32(t[o, p])

   Conditions that hold everywhere say nothing. Those that are left have to be the image's edges. */
#include "loops/match_pool.h"

typedef struct {
    const hone_sized *c;
    const hone_instance *in;
    const hone_stage *s; /* the first */
    hone_slots_of slots;
    const hone_x *load;
    hone_affine dim[HONE_MAX_RANK]; /* of x */
    int slot_out[HONE_MAX_RANK],
        slot_in[HONE_MAX_RANK]; /* of each dim: of the domain, of the window; or -1 */
    int lines, pixels;          /* dims of x: the window's sides */
} reading;
static int64_t size_of(const reading *r, int d) { return r->c->param[r->in->tensor[r->load->a].dim[d]].i; }
static bool plain(const hone_stage *s) {
    return s->identity && !s->how && s->over < 0 && s->pick < 0 && !s->skip && !s->saturate;
}

/* The only slot that moves it from `from` to `to`: -1 none, -2 several. */
static int slot_of(const reading *r, const hone_affine *a, int from, int to) {
    int found = -1;
    for (int k = from; k < to; k++)
        if (a->k[k] && r->slots.extent[k] > 1) found = found == -1 ? k : -2;
    return found;
}
static bool read_load(reading *r) {
    const hone_x *e = r->in->x + r->s->value;
    const bool largest = r->s->reduce == HONE_REDUCE_MAX;
    bool outside = false;
    if (e->kind != HONE_X_LOAD || e->flat) return false;
    const hone_dtype type = r->in->tensor[e->a].dtype;
    if (type != HONE_DTYPE_F32 && !(largest && (type == HONE_DTYPE_U8 || type == HONE_DTYPE_I8)))
        return false;
    r->load = e;
    for (int d = 0; d < r->in->tensor[e->a].rank; d++) {
        int64_t lo, hi;
        hone_affine *a = r->dim + d;
        if (!hone_affine_expr(r->c, &r->slots, r->in->list[e->b + d], a)) return false;
        hone_affine_range(&r->slots, a, &lo, &hi);
        outside |= lo < 0 || hi >= size_of(r, d);
        r->slot_out[d] = slot_of(r, a, 0, r->slots.n_domain);
        r->slot_in[d] = slot_of(r, a, r->slots.n_domain, r->slots.n);
        if (r->slot_out[d] == -2 || r->slot_in[d] == -2) return false;
    }
    if (!outside) return true;
    return e->c >= 0 &&
           hone_affine_is_nothing(r->in, e->c, type, largest ? HONE_AFFINE_MAX : HONE_AFFINE_FACTOR, -1);
}
/* Lines and pixels are the last two dims that a window moves along, or could; all before them are as in y. */
static bool read_dims(reading *r, hone_match_pool *m) {
    const int rank = r->in->tensor[r->load->a].rank;
    const int64_t *by_x = r->c->stride[r->load->a];
    if (rank != 4) return false;
    r->lines = 2, r->pixels = 3;
    for (int d = 0; d < rank; d++) {
        const hone_affine *a = r->dim + d;
        const int out = r->slot_out[d], in = r->slot_in[d];
        const int64_t extent = out < 0 ? 1 : r->slots.extent[out];
        const int64_t step_y = out < 0 ? 0 : r->c->stride[m->y][r->slots.dim[out]];
        if (d < 2) {
            if (in >= 0 || a->c || (out >= 0 && a->k[out] != 1) || extent != size_of(r, d)) return false;
            if (d == 0) m->images = extent, m->image_x = by_x[d], m->image_y = step_y;
            else m->channels = extent, m->channel_x = by_x[d], m->channel_y = step_y;
            continue;
        }
        m->side[d - 2] = (hone_pool_side){.size = size_of(r, d),
                                          .out = extent,
                                          .kernel = in < 0 ? 1 : r->slots.extent[in],
                                          .stride = out < 0 ? 1 : a->k[out],
                                          .dilation = in < 0 ? 1 : a->k[in],
                                          .pad = -a->c,
                                          .step_x = by_x[d],
                                          .step_y = step_y};
        if (m->side[d - 2].stride < 1 || m->side[d - 2].dilation < 1 || m->side[d - 2].pad < 0) return false;
    }
    /* every index is one of these, once */
    for (int k = 0; k < r->slots.n; k++) {
        int times = 0;
        for (int d = 0; d < rank; d++) times += r->slot_out[d] == k || r->slot_in[d] == k;
        if (times != 1 && r->slots.extent[k] > 1) return false;
    }
    return true;
}

/* ---- averages ---- */
typedef struct {
    hone_slots_of slots; /* of the stage that counts */
    bool below[HONE_POOL_SIDES],
        behind[HONE_POOL_SIDES]; /* it leaves out what lies before the image, behind it */
} counting;
/* A side's place, as the stage that counts writes it: which side; -1: neither. */
static int side_of(const counting *n, const hone_match_pool *m, const hone_affine *a) {
    for (int q = 0; q < HONE_POOL_SIDES; q++) {
        const hone_pool_side *s = m->side + q;
        bool same = a->c == -s->pad;
        for (int k = 0; k < n->slots.n && same; k++) {
            if (n->slots.extent[k] == 1) continue;
            const int place = k < n->slots.n_domain ? n->slots.dim[k] : k - n->slots.n_domain;
            const int64_t want = place != q ? 0 : k < n->slots.n_domain ? s->stride : s->dilation;
            same = a->k[k] == want;
        }
        if (same && (s->out > 1 || s->kernel > 1)) return q;
    }
    return -1;
}
static bool read_condition(const reading *r, const hone_match_pool *m, counting *n, int32_t x) {
    const hone_x *e = r->in->x + x;
    hone_affine a, b;
    int64_t lo, hi;
    if (e->kind != HONE_X_FN) return false;
    if (e->fn == HONE_FN_and) return read_condition(r, m, n, e->a) && read_condition(r, m, n, e->b);
    if ((e->fn != HONE_FN_lt && e->fn != HONE_FN_le) || r->in->x[e->a].type != HONE_I64) return false;
    if (!hone_affine_expr(r->c, &n->slots, e->a, &a) || !hone_affine_expr(r->c, &n->slots, e->b, &b))
        return false;
    hone_affine apart = b; /* the condition is: it is 1 or more, or 0 or more */
    for (int k = 0; k < n->slots.n; k++) apart.k[k] -= a.k[k];
    apart.c -= a.c;
    hone_affine_range(&n->slots, &apart, &lo, &hi);
    if (lo >= (e->fn == HONE_FN_lt)) return true;
    hone_affine place = apart; /* 0 <= place, or place < size */
    int q = -1;
    if (e->fn == HONE_FN_le && (q = side_of(n, m, &place)) >= 0) return n->below[q] = true;
    for (int k = 0; k < n->slots.n; k++) place.k[k] = -apart.k[k];
    for (q = 0; q < HONE_POOL_SIDES; q++) {
        place.c = m->side[q].size - apart.c;
        if (e->fn == HONE_FN_lt && side_of(n, m, &place) == q) return n->behind[q] = true;
    }
    return false;
}
/* Does it leave out exactly what is outside of the image, or nothing? */
static bool read_count(const reading *r, hone_match_pool *m, const hone_stage *s) {
    counting n = {0};
    if (!plain(s) || s->reduce != HONE_REDUCE_SUM || s->n_index != 2 || s->n_reduce != 2) return false;
    if (r->in->tensor[s->tensor].role != HONE_ROLE_TEMP) return false;
    if (!hone_affine_slots(r->c, (int)(s - r->in->stage), (int)(s - r->in->stage), &n.slots)) return false;
    for (int k = 0; k < n.slots.n; k++) {
        const int q = k < n.slots.n_domain ? n.slots.dim[k] : k - n.slots.n_domain;
        if (n.slots.extent[k] != (k < n.slots.n_domain ? m->side[q].out : m->side[q].kernel)) return false;
    }
    if (!read_condition(r, m, &n, s->value)) return false;
    bool inside = true, all = true;
    for (int q = 0; q < HONE_POOL_SIDES; q++) {
        const hone_pool_side *d = m->side + q;
        const bool before = d->pad > 0,
                   after = (d->out - 1) * d->stride + (d->kernel - 1) * d->dilation - d->pad >= d->size;
        inside &= n.below[q] == before && n.behind[q] == after;
        all &= !n.below[q] && !n.behind[q];
    }
    m->kind = all ? HONE_POOL_AVERAGE_ALL : HONE_POOL_AVERAGE_INSIDE;
    return all || inside;
}
/* Loads a temporary at so many of the stage's own indices, the last of them. */
static bool is_at(const reading *r, const hone_stage *s, int32_t x, const hone_stage *made, int from) {
    const hone_x *e = r->in->x + x;
    if (e->kind != HONE_X_LOAD || e->flat || e->a != made->tensor || made->n_index != s->n_index - from)
        return false;
    for (int k = 0; k < made->n_index; k++) {
        const hone_x *at = r->in->x + r->in->list[e->b + k];
        if (at->kind != HONE_X_INDEX || at->a != r->in->list[s->index0 + from + k]) return false;
    }
    return true;
}
static bool divides(const reading *r, const hone_stage *s) {
    const hone_x *e = r->in->x + s->value;
    if (!plain(s) || s->reduce || s->n_index != 4 || e->kind != HONE_X_FN || e->fn != HONE_FN_div ||
        e->type != HONE_F32)
        return false;
    const hone_x *by = r->in->x + e->b;
    return is_at(r, s, e->a, r->s, 0) && by->kind == HONE_X_CAST && is_at(r, s, by->a, r->s + 1, 2);
}

bool hone_match_pool_of(const hone_sized *c, int stage, hone_match_pool *m) {
    const hone_instance *in = c->instance;
    const hone_stage *s = in->stage + stage;
    reading r = {.c = c, .in = in, .s = s};
    const bool largest = s->reduce == HONE_REDUCE_MAX;
    *m = (hone_match_pool){.stages = largest ? 1 : 3};
    if ((!largest && s->reduce != HONE_REDUCE_SUM) || !plain(s) || s->n_index != 4 || s->n_reduce < 1 ||
        s->n_reduce > 2)
        return false;
    if (stage + m->stages > in->n_stage || (!largest && in->x[s->value].type != HONE_F32)) return false;
    if (largest && stage + 1 < in->n_stage && s[1].follows) return false;
    m->y = s[m->stages - 1].tensor;
    if (in->tensor[m->y].rank != 4) return false;
    if (!hone_affine_slots(c, stage, stage, &r.slots) || !read_load(&r)) return false;
    m->x = r.load->a;
    if (in->tensor[m->y].dtype != in->tensor[m->x].dtype) return false;
    if (!read_dims(&r, m)) return false;
    m->kind = HONE_POOL_LARGEST;
    if (largest) return true;
    if (s->n_reduce != 2 || in->tensor[s->tensor].role != HONE_ROLE_TEMP || !divides(&r, s + 2) ||
        !read_count(&r, m, s + 1))
        return false;
    if (s->tensor >= 63 || s[1].tensor >= 63) return false;
    for (int k = 0; k < in->n_stage; k++) /* what is made on the way is nobody else's */
        if ((k < stage || k > stage + 2) &&
            in->stage[k].uses & ((uint64_t)1 << s->tensor | (uint64_t)1 << s[1].tensor))
            return false;
    return true;
}
