/* SPDX-License-Identifier: Apache-2.0
   einsum: Einsum becomes transposes, products and sums. Terms are taken from the left two at a time: with one
   label summed and at most one of its own on each side the pair is a MatMul (batch labels broadcast),
   otherwise a product over all labels and a sum.

   A label is a letter, or for dims under "…" ELLIPSIS + their distance from the right end of it, so that they
   line up as numpy's do. */
#include <string.h>

#include "model/upgrade.h"

enum { ELLIPSIS = 128, MAX_LABELS = HONE_MAX_RANK };

typedef struct {
    int at[MAX_LABELS];
    int n;
} labels;
typedef struct {
    hone_vid v;
    labels l;
} term;

static int place_of(const labels *l, int label) {
    for (int k = 0; k < l->n; k++)
        if (l->at[k] == label) return k;
    return -1;
}
static bool has(const labels *l, int label) { return place_of(l, label) >= 0; }
static bool add(labels *l, int label) {
    if (l->n == MAX_LABELS) return false;
    l->at[l->n++] = label;
    return true;
}
static bool add_new(labels *l, int label) { return has(l, label) || add(l, label); }

/* ---- steps on a term ----------------------------------------------------------------------------------- */
static void transpose(hone_edit *e, term *t, const labels *order) {
    int64_t perm[MAX_LABELS];
    bool same = true;
    for (int k = 0; k < order->n; k++) perm[k] = place_of(&t->l, order->at[k]), same &= perm[k] == k;
    if (!same)
        t->v = hone_edit_node(e, "Transpose", -1, HONE_IN(t->v),
                              HONE_WITH(hone_attr_of_ints(e->im, "perm", perm, order->n)));
    t->l = *order;
}

/* Dims in the given order, of 1 where the term does not have the label. */
static void arrange(hone_edit *e, term *t, const labels *order) {
    labels present = {0};
    int64_t missing[MAX_LABELS];
    int n = 0;
    for (int k = 0; k < order->n; k++) {
        if (has(&t->l, order->at[k])) add(&present, order->at[k]);
        else missing[n++] = k;
    }
    transpose(e, t, &present);
    if (n)
        t->v = hone_edit_node(e, "Unsqueeze", -1, HONE_IN(t->v, hone_edit_i64s(e, missing, n)), HONE_PLAIN);
    t->l = *order;
}

/* Sums over the labels that are not in `keep`. */
static void sum_others(hone_edit *e, term *t, const labels *keep) {
    int64_t axes[MAX_LABELS];
    labels left = {0};
    int n = 0;
    for (int k = 0; k < t->l.n; k++) {
        if (has(keep, t->l.at[k])) add(&left, t->l.at[k]);
        else axes[n++] = k;
    }
    if (n)
        t->v = hone_edit_node(e, "ReduceSum", -1, HONE_IN(t->v, hone_edit_i64s(e, axes, n)),
                              HONE_WITH(hone_attr_of_int(e->im, "keepdims", 0)));
    t->l = left;
}

/* A label twice in a term is its diagonal: the two dims as one, every (size + 1)-th of it. */
static void take_diagonals(hone_edit *e, term *t) {
    for (int p = 0; p < t->l.n; p++) {
        int q = p + 1, m = 0;
        while (q < t->l.n && t->l.at[q] != t->l.at[p]) q++;
        if (q == t->l.n) continue;
        int64_t perm[MAX_LABELS], shape[MAX_LABELS] = {0};
        labels rest = {0};
        for (int k = 0; k < t->l.n; k++)
            if (k != p && k != q) perm[m++] = k, add(&rest, t->l.at[k]);
        perm[m] = p, perm[m + 1] = q, shape[m] = -1;
        hone_attr last = hone_attr_of_int(e->im, "start", -1);
        hone_vid one = hone_edit_i64s(e, &(int64_t){1}, 1), end = hone_edit_i64s(e, &(int64_t){INT64_MAX}, 1);
        hone_vid x = hone_edit_node(e, "Transpose", -1, HONE_IN(t->v),
                                    HONE_WITH(hone_attr_of_ints(e->im, "perm", perm, m + 2)));
        hone_vid step = hone_edit_node(
            e, "Add", -1, HONE_IN(hone_edit_node(e, "Shape", -1, HONE_IN(x), HONE_WITH(last)), one),
            HONE_PLAIN);
        hone_vid flat =
            hone_edit_node(e, "Reshape", -1, HONE_IN(x, hone_edit_i64s(e, shape, m + 1)), HONE_PLAIN);
        hone_vid from = hone_edit_i64s(e, &(int64_t){0}, 1), axis = hone_edit_i64s(e, &(int64_t){m}, 1);
        t->v = hone_edit_node(e, "Slice", -1, HONE_IN(flat, from, end, axis, step), HONE_PLAIN);
        add(&rest, t->l.at[p]);
        t->l = rest;
        p = -1; /* the places have changed */
    }
}

/* ---- two terms ----------------------------------------------------------------------------------------- */
static term multiply(hone_edit *e, term a, term b, const labels *keep) {
    labels batch = {0}, summed = {0}, mine = {0}, yours = {0}, all;
    for (int k = 0; k < a.l.n; k++)
        if (has(&b.l, a.l.at[k])) add(has(keep, a.l.at[k]) ? &batch : &summed, a.l.at[k]);
    /* what each side must still have: what is wanted, and what both have */
    labels only_a = *keep, only_b = *keep;
    for (int k = 0; k < summed.n; k++) add_new(&only_a, summed.at[k]), add_new(&only_b, summed.at[k]);
    sum_others(e, &a, &only_a);
    sum_others(e, &b, &only_b);
    for (int k = 0; k < a.l.n; k++)
        if (!has(&b.l, a.l.at[k])) add(&mine, a.l.at[k]);
    for (int k = 0; k < b.l.n; k++)
        if (!has(&a.l, b.l.at[k])) add(&yours, b.l.at[k]);
    term y = {0};
    if (summed.n == 1 && mine.n <= 1 && yours.n <= 1 && batch.n + 2 <= MAX_LABELS) {
        /* [batch…, mine, summed] · [batch…, summed, yours]; a side without a label of its own has a dim of 1
           there. */
        labels left = batch, right = batch;
        int64_t ones[2];
        int n = 0, nobody = -1;
        add(&left, mine.n ? mine.at[0] : nobody), add(&left, summed.at[0]);
        add(&right, summed.at[0]), add(&right, yours.n ? yours.at[0] : nobody);
        arrange(e, &a, &left);
        arrange(e, &b, &right);
        y.v = hone_edit_node(e, "MatMul", -1, HONE_IN(a.v, b.v), HONE_PLAIN);
        y.l = batch;
        if (mine.n) add(&y.l, mine.at[0]);
        else ones[n++] = batch.n;
        if (yours.n) add(&y.l, yours.at[0]);
        else ones[n++] = batch.n + 1;
        if (n) y.v = hone_edit_node(e, "Squeeze", -1, HONE_IN(y.v, hone_edit_i64s(e, ones, n)), HONE_PLAIN);
        return y;
    }
    all = batch;
    bool fits = true;
    for (int k = 0; k < mine.n; k++) fits &= add(&all, mine.at[k]);
    for (int k = 0; k < yours.n; k++) fits &= add(&all, yours.at[k]);
    for (int k = 0; k < summed.n; k++) fits &= add(&all, summed.at[k]);
    if (!fits) hone_edit_problem(e, HONE_NOT_SUPPORTED, "has more than %d labels at once", MAX_LABELS);
    arrange(e, &a, &all);
    arrange(e, &b, &all);
    y = (term){hone_edit_node(e, "Mul", -1, HONE_IN(a.v, b.v), HONE_PLAIN), all};
    sum_others(e, &y, keep);
    return y;
}

/* ---- the equation -------------------------------------------------------------------------------------- */
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* One term's letters up to a comma, an arrow or the end; `under` dims stand under its "...", -1: not known.
   NULL: wrong. */
static const char *read_term(hone_edit *e, const char *c, int under, labels *out) {
    *out = (labels){0};
    for (; *c && *c != ',' && *c != '-'; c++) {
        if (*c == ' ') continue;
        if (strncmp(c, "...", 3) == 0) {
            if (under < 0) {
                hone_edit_problem(
                    e, HONE_NOT_SUPPORTED,
                    "its equation has \"...\" for an input of unknown rank: give the input's shape");
                return NULL;
            }
            for (int k = under - 1; k >= 0; k--)
                if (!add(out, ELLIPSIS + k)) return NULL;
            c += 2;
        } else if (!is_letter(*c) || !add(out, *c)) {
            return NULL;
        }
    }
    return c;
}

static int count_letters(const char *c) {
    int n = 0;
    for (; *c && *c != ',' && *c != '-'; c++) n += is_letter(*c);
    return n;
}

/* Without an arrow: what is under "...", then the letters that stand once, in order. */
static void implicit_output(const labels *in, int n, int under, labels *out) {
    for (int k = under - 1; k >= 0; k--) add(out, ELLIPSIS + k);
    for (int c = 'A'; c <= 'z'; c++) {
        int times = 0;
        for (int t = 0; t < n; t++)
            for (int k = 0; k < in[t].n; k++) times += in[t].at[k] == c;
        if (times == 1) add(out, c);
    }
}

void hone_canon_einsum(hone_edit *e) {
    enum { MAX_TERMS = 32 };
    hone_draft *n = e->node;
    const char *c = hone_edit_text(e, "equation", NULL);
    labels in[MAX_TERMS], out = {0};
    int terms = 0, widest = 0;
    if (hone_library_has(e->im->library, "", "Einsum")) return;
    n->placed = true;
    if (!c || n->in.n < 1 || n->in.n > MAX_TERMS || n->out.n != 1) c = NULL;
    while (c && terms < n->in.n) {
        int rank = hone_edit_rank(e, n->in.at[terms]), under = rank < 0 ? -1 : rank - count_letters(c);
        bool dots = strstr(c, "...") && strstr(c, "...") < c + strcspn(c, ",-");
        if (dots && under > widest) widest = under;
        c = under < -1 || (rank >= 0 && (dots ? under < 0 : under != 0)) ? NULL
                                                                         : read_term(e, c, under, in + terms);
        if (!c || n->in.at[terms] < 0) c = NULL;
        else if (++terms < n->in.n) c = *c == ',' ? c + 1 : NULL;
    }
    if (c && strncmp(c, "->", 2) == 0) {
        c = read_term(e, c + 2, widest, &out);
        if (c && *c) c = NULL;
    } else if (c && !*c) {
        implicit_output(in, terms, widest, &out);
    } else {
        c = NULL;
    }
    for (int k = 0; c && k < out.n; k++) {
        bool known = false;
        for (int t = 0; t < terms; t++) known |= has(in + t, out.at[k]);
        if (!known || place_of(&out, out.at[k]) != k) c = NULL;
    }
    if (!c) {
        hone_edit_problem(e, HONE_BAD_INPUT, "its equation does not fit its inputs");
        return;
    }
    term y = {0};
    for (int t = 0; t < terms; t++) {
        labels keep = out;
        bool fits = true;
        for (int later = t + 1; later < terms; later++)
            for (int k = 0; k < in[later].n; k++) fits &= add_new(&keep, in[later].at[k]);
        if (!fits) hone_edit_problem(e, HONE_NOT_SUPPORTED, "has more than %d labels at once", MAX_LABELS);
        term next = {n->in.at[t], in[t]};
        take_diagonals(e, &next);
        if (t) y = multiply(e, y, next, &keep);
        else y = next, sum_others(e, &y, &keep);
    }
    transpose(e, &y, &out);
    hone_edit_node(e, "Identity", n->out.at[0], HONE_IN(y.v), HONE_PLAIN);
}
