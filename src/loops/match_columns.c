/* SPDX-License-Identifier: Apache-2.0
   match_columns: see match_columns.h. One stage that adds up, and perhaps one that divides or multiplies what
   came of it by a number. */
#include "loops/match_columns.h"

#include <math.h>

#include "loops/match_attention.h"

static bool plain(const hone_stage *s) {
    return s->identity && !s->how && s->over < 0 && s->pick < 0 && !s->skip && !s->saturate;
}
static int64_t extent(const hone_sized *c, const hone_stage *s, int k) {
    return c->param[c->instance->index[c->instance->list[s->index0 + k]].extent].i;
}
/* Both walk the same indices? */
static bool same_domain(const hone_sized *c, const hone_stage *s, const hone_stage *z) {
    for (int k = 0; k < s->n_index && s->n_index == z->n_index; k++)
        if (extent(c, s, k) != extent(c, z, k)) return false;
    return s->n_index == z->n_index;
}
/* y = s / number, or s * number */
static bool scales(const hone_sized *c, const hone_stage *z, int tensor, float *scale) {
    const hone_x *e = c->instance->x + z->value;
    if (!plain(z) || z->reduce || e->kind != HONE_X_FN || e->type != HONE_F32) return false;
    if (e->fn == HONE_FN_div && hone_match_reads(c, z, e->a, tensor, 0) && hone_match_f32(c, e->b, scale))
        *scale = 1 / *scale;
    else if (e->fn != HONE_FN_mul ||
             !((hone_match_reads(c, z, e->a, tensor, 0) && hone_match_f32(c, e->b, scale)) ||
               (hone_match_reads(c, z, e->b, tensor, 0) && hone_match_f32(c, e->a, scale))))
        return false;
    return isfinite(*scale);
}
bool hone_match_columns_of(const hone_sized *c, int stage, hone_match_columns *m) {
    const hone_instance *in = c->instance;
    const hone_stage *s = in->stage + stage, *z = s;
    hone_slots_of w;
    hone_affine at;
    *m = (hone_match_columns){.stages = 1, .matrices = 1, .columns = 1, .rows = 1, .scale = 1};
    if (s->reduce != HONE_REDUCE_SUM || !plain(s) || in->x[s->value].type != HONE_F32 ||
        in->x[s->value].kind != HONE_X_LOAD)
        return false;
    if (in->tensor[s->tensor].role == HONE_ROLE_TEMP) {
        if (stage + 1 >= in->n_stage || s->tensor >= 63 || !same_domain(c, s, s + 1) ||
            !scales(c, s + 1, s->tensor, &m->scale))
            return false;
        for (int k = 0; k < in->n_stage; k++) /* the sum is nobody else's */
            if (k != stage && k != stage + 1 && in->stage[k].uses >> s->tensor & 1) return false;
        z = s + 1, m->stages = 2;
    } else if (stage + 1 < in->n_stage && s[1].follows) return false;
    m->x = in->x[s->value].a, m->y = z->tensor;
    if (in->tensor[m->x].dtype != HONE_DTYPE_F32 || in->tensor[m->y].dtype != HONE_DTYPE_F32) return false;
    if (!hone_affine_slots(c, stage, stage, &w) || !hone_affine_inside(c, &w, s->value, &at)) return false;
    m->at_x = at.c;
    int64_t last = 0; /* of a row, how far it reaches */
    for (int k = 0; k < w.n; k++) {
        if (w.extent[k] < 1) return false;
        if (w.extent[k] == 1) continue;
        const int64_t n = w.extent[k], x = at.k[k];
        if (x < 1) return false;
        if (k >= w.n_domain) { /* rows: indices that follow on, in either order */
            if (m->rows == 1) m->row_x = x;
            else if (m->row_x == x * n) m->row_x = x;
            else if (x != m->row_x * m->rows) return false;
            m->rows *= n;
            continue;
        }
        const int64_t y = c->stride[m->y][w.dim[k]];
        if (x == 1) {
            if (m->columns > 1 || y != 1) return false;
            m->columns = n, last = n;
        } else {
            if (m->matrices > 1) return false;
            m->matrices = n, m->matrix_x = x, m->matrix_y = y;
        }
    }
    return m->rows > 1 && m->columns > 1 && m->row_x >= last;
}
