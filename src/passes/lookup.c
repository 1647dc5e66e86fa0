/* SPDX-License-Identifier: Apache-2.0
   lookup: a product of ones and zeros with a constant matrix is a row of it. x == 0, 1, … n-1 as a float (or
   OneHot) times w becomes Gather, with rows of zeros for what is none of them; and what every row of a
   constant table then meets alone (a bias, an activation) is done to the table. */
#include <math.h>
#include <string.h>

#include "passes/match.h"

/* elements of a table that an activation is taken into: it is computed at load */
enum { MOST_TABLE = 1 << 18 };

static hone_value *number(hone_dtype dtype, int64_t v) {
    hone_value *value;
    if (hone_value_tensor(dtype, NULL, 0, &value)) return NULL;
    if (dtype == HONE_DTYPE_I32) *(int32_t *)value->data = (int32_t)v;
    else *(int64_t *)value->data = v;
    return value;
}
/* A row of zeros, w (so many times), a row of zeros. A weight that is no finite number makes NaN of zeros:
   then NULL, and all is left. -0 becomes 0, as in a sum. */
static hone_value *table_of(hone_matching *m, const hone_value *w, int times) {
    const int64_t rows = w->dim[0], columns = w->dim[1], count = rows * columns,
                  dim[2] = {times * rows + 2, columns};
    const float *from = w->data;
    hone_value *v;
    for (int64_t k = 0; k < count; k++)
        if (!isfinite(from[k])) return NULL;
    if (!hone_match_spend(m, dim[0] * columns)) return NULL;
    if (hone_value_tensor(HONE_DTYPE_F32, dim, 2, &v)) {
        hone_match_no_memory(m);
        return NULL;
    }
    float *to = v->data;
    memset(to, 0, v->bytes);
    for (int t = 0; t < times; t++)
        for (int64_t k = 0; k < count; k++) to[columns + t * count + k] = from[k] + 0.0f;
    return v;
}
static bool is_matrix(const hone_value *w) {
    return w->dtype == HONE_DTYPE_F32 && w->rank == 2 && w->dim[0] > 0 && w->dim[0] < 1 << 20 &&
           w->dim[1] > 0;
}
/* Rows x of w, low … n - 1; others are the zeros before or behind. */
static bool rows(hone_matching *m, hone_vid x, const hone_value *w, bool wraps) {
    if (x < 0) return false; /* what was to make it is refused */
    const hone_dtype dtype = hone_match_graph(m)->var.at[x].dtype;
    const int64_t n = w->dim[0], low = wraps ? -n : 0;
    if (dtype != HONE_DTYPE_I32 && dtype != HONE_DTYPE_I64) return false;
    hone_value *table = table_of(m, w, wraps ? 2 : 1);
    if (!table) return false;
    const hone_vid from = hone_match_constant(m, "table", table),
                   least = hone_match_constant(m, "least", number(dtype, low - 1)),
                   most = hone_match_constant(m, "most", number(dtype, n)),
                   first = hone_match_constant(m, "first", number(dtype, 1 - low));
    const hone_vid near =
        hone_match_emit(m, "Clip", HONE_MATCH_NEW, (const hone_vid[]){x, least, most}, 3, NULL, 0);
    const hone_vid at =
        hone_match_emit(m, "Add", HONE_MATCH_NEW, (const hone_vid[]){near, first}, 2, NULL, 0);
    return hone_match_emit(m, "Gather", hone_match_root(m)->out[0], (const hone_vid[]){from, at}, 2,
                           (const hone_attr[]){HONE_ATTR_I("axis", 0)}, 1) >= 0;
}
static bool equals(hone_matching *m) {
    const hone_value *w = hone_match_value(m, "w"), *r = hone_match_value(m, "r");
    const hone_vid x = hone_match_var(m, "x");
    const hone_var *of = hone_match_graph(m)->var.at + x;
    if (!is_matrix(w) || hone_value_count(r) != w->dim[0] || r->rank < 1 ||
        r->dim[r->rank - 1] != w->dim[0] || of->rank < r->rank || of->rank < 2 ||
        of->dim[of->rank - 1] != 1 || (of->dtype != HONE_DTYPE_I32 && of->dtype != HONE_DTYPE_I64))
        return false;
    for (int64_t k = 0; k < w->dim[0]; k++)
        if (hone_value_i64(r, k) != k) return false;
    const hone_vid last = hone_match_ints(m, "last", (const int64_t[]){-1}, 1);
    return rows(m, hone_match_emit(m, "Squeeze", HONE_MATCH_NEW, (const hone_vid[]){x, last}, 2, NULL, 0), w,
                false);
}
static bool one_hot(hone_matching *m) {
    const hone_node *n = hone_match_node(m, "h");
    const hone_value *w = hone_match_value(m, "w"), *v = hone_match_value(m, "v");
    const hone_vid x = hone_match_var(m, "x");
    const int rank = hone_match_graph(m)->var.at[x].rank;
    const int64_t axis = hone_attr_int(n->attr, n->n_attr, "axis", -1);
    double depth;
    if (!is_matrix(w) || rank < 1 || (axis != -1 && axis != rank) ||
        !hone_match_number(hone_match_value(m, "d"), &depth) || depth != (double)w->dim[0] ||
        v->dtype != HONE_DTYPE_F32 || hone_value_count(v) != 2 || ((const float *)v->data)[0] != 0 ||
        ((const float *)v->data)[1] != 1)
        return false;
    return rows(m, x, w, true);
}
/* The table of a Gather along its rows. */
static const hone_value *table(hone_matching *m) {
    const hone_node *g = hone_match_node(m, "g");
    const hone_value *w = hone_match_value(m, "w");
    return is_matrix(w) && hone_value_count(w) <= MOST_TABLE &&
                   hone_attr_int(g->attr, g->n_attr, "axis", 0) == 0
               ? w
               : NULL;
}
static bool again(hone_matching *m, hone_vid from) {
    return hone_match_emit(m, "Gather", hone_match_root(m)->out[0],
                           (const hone_vid[]){from, hone_match_var(m, "i")}, 2,
                           (const hone_attr[]){HONE_ATTR_I("axis", 0)}, 1) >= 0;
}
static bool shift(hone_matching *m) {
    const hone_value *w = table(m), *b = hone_match_value(m, "b");
    if (!w || b->dtype != HONE_DTYPE_F32) return false;
    const int64_t columns = w->dim[1], count = hone_value_count(w), own = hone_value_count(b);
    if (own != 1 && (own != columns || b->dim[b->rank - 1] != columns)) return false;
    hone_value *v;
    if (!hone_match_spend(m, count)) return false;
    if (hone_value_tensor(HONE_DTYPE_F32, w->dim, 2, &v)) return hone_match_no_memory(m);
    for (int64_t k = 0; k < count; k++)
        ((float *)v->data)[k] =
            ((const float *)w->data)[k] + ((const float *)b->data)[own == 1 ? 0 : k % columns];
    return again(m, hone_match_constant(m, "table", v));
}
static bool through(hone_matching *m) {
    const hone_node *root = hone_match_root(m);
    const hone_vid w = hone_match_var(m, "w");
    return table(m) &&
           again(m, hone_match_emit(m, root->program->name, HONE_MATCH_NEW, &w, 1, root->attr, root->n_attr));
}

#define FOUND "g=Gather($w, i)"
static const hone_rule rules[] = {
    {"MatMul(Cast({Equal(x, $r)|Equal($r, x)}), $w)", equals},
    {"MatMul(h=OneHot(x, $d, $v), $w)", one_hot},
    {"Add(" FOUND ", $b)", shift},
    {"{Relu(" FOUND ")|Gelu(" FOUND ")|Tanh(" FOUND ")|Sigmoid(" FOUND ")|HardSwish(" FOUND ")}", through},
};
hone_status hone_pass_lookup(hone_passing *p) {
    return hone_match_rules(p, rules, (int)(sizeof rules / sizeof *rules));
}
