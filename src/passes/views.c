/* SPDX-License-Identifier: Apache-2.0
   views: nodes that only look at a tensor in another way, joined: Reshape and its kind, Transpose, Cast. What
   comes out may be an identity, which the identity pass takes; what lay between is dropped where nobody else
   reads it.

   One place along an axis, by Gather, is a Slice; a stretch of it set anew, by ScatterND, is a Concat of what
   stands before, the new and what stands after. A MatMul of rows between two Reshapes needs neither. A
   Reshape whose shape is computed gets a constant one where the symbols say what it must be, and the
   arithmetic on shapes goes. */
#include <string.h>

#include "passes/match.h"

/* ---- Reshape ------------------------------------------------------------------------------------------- */
static bool is_reshape(const hone_node *n) {
    return n && n->program->runs == HONE_RUNS_VIEW && !strcmp(n->program->how, "reshape");
}
/* A constant shape that takes any x of these dims to y: numbers, 0 where y has x's dim, and -1 once, where
   all else are numbers: with an empty dim beside it -1 would mean nothing. */
static bool shape_to(const hone_var *x, const hone_var *y, int64_t *shape) {
    int open = -1, copied = 0;
    for (int d = 0; d < y->rank; d++) {
        hone_dim at = y->dim[d];
        if (at == HONE_DIM_UNKNOWN || at == 0) return false;
        if (hone_dim_is_number(at)) shape[d] = at;
        else if (d < x->rank && x->dim[d] == at) shape[d] = 0, copied++;
        else if (open < 0) open = d, shape[d] = -1;
        else return false;
    }
    return open < 0 || !copied;
}
static bool put_reshape(hone_matching *m, hone_vid x) {
    hone_graph *g = hone_match_graph(m);
    hone_node *root = hone_match_root(m);
    int64_t shape[HONE_MAX_RANK] = {0};
    const hone_var *from = g->var.at + x, *y = g->var.at + root->out[0];
    if (from->rank < 0 || y->rank < 0 || !shape_to(from, y, shape)) return false;
    hone_vid to = hone_match_ints(m, "shape", shape, y->rank);
    return hone_match_emit(m, "Reshape", root->out[0], (const hone_vid[]){x, to}, 2, NULL, 0) >= 0;
}
/* One after another is the last one. */
static bool reshape_twice(hone_matching *m) {
    hone_node *root = hone_match_root(m), *maker = hone_match_maker(m, root->in[0]);
    return is_reshape(root) && is_reshape(maker) && put_reshape(m, maker->in[0]);
}
static bool reshape_fixed(hone_matching *m) {
    const hone_graph *g = hone_match_graph(m);
    hone_node *root = hone_match_root(m);
    return !g->var.at[hone_match_var(m, "s")].value && put_reshape(m, root->in[0]);
}

/* A constant matrix with its dims transposed. */
static hone_vid transposed_matrix(hone_matching *m, hone_vid w) {
    const hone_value *from = hone_match_graph(m)->var.at[w].value;
    const int64_t rows = from->dim[0], columns = from->dim[1];
    const size_t bytes = hone_dtypes[from->dtype].bytes;
    hone_value *to = NULL;
    if (hone_dtypes[from->dtype].bits % 8 || !hone_match_spend(m, rows * columns)) return -1;
    if (hone_value_tensor(from->dtype, (const int64_t[]){columns, rows}, 2, &to))
        return hone_match_constant(m, "", NULL);
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = 0; r < rows; r++)
            memcpy((char *)to->data + (size_t)(c * rows + r) * bytes,
                   (const char *)from->data + (size_t)(r * columns + c) * bytes, bytes);
    return hone_match_constant(m, "transposed", to);
}
/* Rows of x laid under each other, times a matrix, and back: MatMul does that by itself, and what follows may
   join it. Gemm is what PyTorch's Conv1D and addmm become. */
static bool rows_of_matmul(hone_matching *m) {
    const hone_graph *g = hone_match_graph(m);
    hone_vid x = hone_match_var(m, "x"), w = hone_match_var(m, "w"), b = hone_match_var(m, "b"),
             y = hone_match_root(m)->out[0];
    const hone_var *v = g->var.at + x, *rows = g->var.at + hone_match_var(m, "r"), *weights = g->var.at + w,
                   *to = g->var.at + y;
    if (v->rank < 2 || rows->rank != 2 || weights->rank != 2 || to->rank < 2) return false;
    const hone_node *gemm = hone_match_node(m, "g");
    if (gemm && (hone_attr_float(gemm->attr, gemm->n_attr, "alpha", 1) != 1 ||
                 hone_attr_float(gemm->attr, gemm->n_attr, "beta", 1) != 1 ||
                 hone_attr_int(gemm->attr, gemm->n_attr, "transA", 0)))
        return false;
    const bool transposed = gemm && hone_attr_int(gemm->attr, gemm->n_attr, "transB", 0);
    if (b >= 0) {
        const hone_var *bias = g->var.at + b;
        if (bias->rank > 1 && !(bias->rank == 2 && bias->dim[0] == 1)) return false;
    }
    if (v->rank != to->rank || v->dim[v->rank - 1] != rows->dim[1]) { /* as y stands, but for the last dim */
        hone_var as = *to;
        int64_t shape[HONE_MAX_RANK] = {0};
        as.dim[as.rank - 1] = rows->dim[1];
        if (!shape_to(v, &as, shape)) return false;
        hone_vid s = hone_match_ints(m, "shape", shape, as.rank);
        x = hone_match_emit(m, "Reshape", HONE_MATCH_NEW, (const hone_vid[]){x, s}, 2, NULL, 0);
    }
    if (transposed && (w = transposed_matrix(m, w)) < 0) return false;
    if (b < 0) return hone_match_emit(m, "MatMul", y, (const hone_vid[]){x, w}, 2, NULL, 0) >= 0;
    hone_vid sums = hone_match_emit(m, "MatMul", HONE_MATCH_NEW, (const hone_vid[]){x, w}, 2, NULL, 0);
    return hone_match_emit(m, "Add", y, (const hone_vid[]){sums, b}, 2, NULL, 0) >= 0;
}

/* ---- Gather -------------------------------------------------------------------------------------------- */
/* x[:, 3] as PyTorch writes it. Of floats: arithmetic on shapes is better off as it is. */
static bool gather_one(hone_matching *m) {
    hone_graph *g = hone_match_graph(m);
    hone_node *root = hone_match_root(m);
    hone_vid x = hone_match_var(m, "x"), y = root->out[0];
    const hone_var *v = g->var.at + x;
    const hone_value *i = g->var.at[hone_match_var(m, "i")].value;
    if (v->dtype != HONE_DTYPE_F32 || v->rank < 1 || i->rank > 1 || hone_value_count(i) != 1) return false;
    int64_t axis = hone_attr_int(root->attr, root->n_attr, "axis", 0), at = (int64_t)hone_value_number(i, 0);
    axis += axis < 0 ? v->rank : 0;
    if (axis < 0 || axis >= v->rank || !hone_dim_is_number(v->dim[axis])) return false;
    at += at < 0 ? v->dim[axis] : 0;
    if (at < 0 || at >= v->dim[axis]) return false; /* whoever runs it says so */
    const int64_t past = at + 1;
    hone_vid from = hone_match_ints(m, "from", &at, 1), to = hone_match_ints(m, "to", &past, 1),
             along = hone_match_ints(m, "axis", &axis, 1);
    const hone_vid in[] = {x, from, to, along};
    if (i->rank == 1) return hone_match_emit(m, "Slice", y, in, 4, NULL, 0) >= 0;
    hone_vid some = hone_match_emit(m, "Slice", HONE_MATCH_NEW, in, 4, NULL, 0);
    return hone_match_emit(m, "Squeeze", y, (const hone_vid[]){some, along}, 2, NULL, 0) >= 0;
}

/* ---- ScatterND ----------------------------------------------------------------------------------------- */
/* x[:, :, 3:7] = u as PyTorch writes it, which lists every place: here is the stretch, where there is one
   along one axis and all of the others. */
static bool stretch_of(const hone_value *i, const hone_var *x, int64_t *axis, int64_t *from, int64_t *to) {
    enum { MOST = 1 << 22 };
    const int64_t last = i->rank < 1 ? 0 : i->dim[i->rank - 1], many = hone_value_count(i);
    int64_t low[HONE_MAX_RANK], extent[HONE_MAX_RANK], at[HONE_MAX_RANK] = {0}, all = 1;
    if (last < 1 || last > x->rank || many < 1 || many > MOST) return false;
    *axis = -1;
    for (int64_t d = 0; d < last; d++) {
        const int64_t size = x->dim[d], first = (int64_t)hone_value_number(i, d),
                      end = (int64_t)hone_value_number(i, many - last + d);
        if (!hone_dim_is_number(size)) return false;
        low[d] = first < 0 ? first + size : first, extent[d] = (end < 0 ? end + size : end) - low[d] + 1;
        if (low[d] < 0 || extent[d] < 1 || low[d] + extent[d] > size) return false;
        all *= extent[d];
        if (extent[d] == size) continue;
        if (*axis >= 0) return false;
        *axis = d, *from = low[d], *to = low[d] + extent[d];
    }
    if (*axis < 0 || all != many / last) return false;
    for (int64_t k = 0; k < many; k += last) { /* in order, none left out */
        for (int64_t d = 0; d < last; d++) {
            const int64_t place = (int64_t)hone_value_number(i, k + d);
            if ((place < 0 ? place + x->dim[d] : place) != low[d] + at[d]) return false;
        }
        for (int64_t d = last - 1; d >= 0 && ++at[d] == extent[d]; d--) at[d] = 0;
    }
    return true;
}
static bool scatter_stretch(hone_matching *m) {
    hone_graph *g = hone_match_graph(m);
    hone_node *root = hone_match_root(m);
    const hone_vid x = hone_match_var(m, "x"), u = hone_match_var(m, "u");
    const hone_var *v = g->var.at + x, *w = g->var.at + u;
    int64_t axis, from, to, zero = 0;
    if (v->dtype != HONE_DTYPE_F32 || v->rank < 1 || w->rank != v->rank ||
        strcmp(hone_attr_text(root->attr, root->n_attr, "reduction", "none"), "none") ||
        !stretch_of(g->var.at[hone_match_var(m, "i")].value, v, &axis, &from, &to))
        return false;
    const int64_t size = v->dim[axis];
    for (int d = 0; d < v->rank; d++)
        if (w->dim[d] != (d == axis ? to - from : v->dim[d])) return false;
    hone_vid part[3], along = hone_match_ints(m, "axis", &axis, 1);
    int n = 0;
    if (from > 0)
        part[n++] = hone_match_emit(m, "Slice", HONE_MATCH_NEW,
                                    (const hone_vid[]){x, hone_match_ints(m, "from", &zero, 1),
                                                       hone_match_ints(m, "to", &from, 1), along},
                                    4, NULL, 0);
    part[n++] = u;
    if (to < size)
        part[n++] = hone_match_emit(m, "Slice", HONE_MATCH_NEW,
                                    (const hone_vid[]){x, hone_match_ints(m, "from", &to, 1),
                                                       hone_match_ints(m, "to", &size, 1), along},
                                    4, NULL, 0);
    const hone_attr by = HONE_ATTR_I("axis", axis);
    return hone_match_emit(m, "Concat", root->out[0], part, n, &by, 1) >= 0;
}

/* ---- Transpose ----------------------------------------------------------------------------------------- */
static bool order_of(const hone_node *n, int rank, int64_t *order) {
    const hone_attr *perm = hone_attr_find(n->attr, n->n_attr, "perm");
    if (perm && (perm->kind != HONE_ATTR_INTS || perm->n != rank)) return false;
    for (int d = 0; d < rank; d++) {
        order[d] = perm ? perm->i[d] : rank - 1 - d;
        if (order[d] < 0 || order[d] >= rank) return false;
    }
    return true;
}
static bool transpose_twice(hone_matching *m) {
    hone_graph *g = hone_match_graph(m);
    hone_node *root = hone_match_root(m), *first = hone_match_node(m, "t");
    hone_vid x = hone_match_var(m, "x");
    int rank = g->var.at[x].rank;
    int64_t inner[HONE_MAX_RANK], outer[HONE_MAX_RANK], both[HONE_MAX_RANK];
    if (rank < 0 || !order_of(first, rank, inner) || !order_of(root, rank, outer)) return false;
    for (int d = 0; d < rank; d++) both[d] = inner[outer[d]];
    const hone_attr perm = HONE_ATTR_L("perm", both, rank);
    return hone_match_emit(m, "Transpose", root->out[0], &x, 1, &perm, 1) >= 0;
}
/* Where only dims of 1 change places nothing moves. */
static bool transpose_ones(hone_matching *m) {
    hone_graph *g = hone_match_graph(m);
    hone_vid x = hone_match_var(m, "x");
    const hone_var *v = g->var.at + x;
    int64_t order[HONE_MAX_RANK], last = -1;
    if (v->rank < 1 || !order_of(hone_match_root(m), v->rank, order)) return false;
    for (int d = 0; d < v->rank; d++) {
        if (v->dim[order[d]] == 1) continue;
        if (order[d] < last) return false;
        last = order[d];
    }
    return put_reshape(m, x);
}

/* ---- Cast ---------------------------------------------------------------------------------------------- */
/* Which types hold every value of another: bits of significand (with sign), or whole numbers by sign and
   bits. */
static bool holds_all(hone_dtype from, hone_dtype to) {
    static const struct {
        hone_dtype type;
        int whole, is_signed, digits, exponent; /* digits and exponent: of floats */
    } rows[] = {{HONE_DTYPE_BOOL, 1, 0, 0, 0}, {HONE_DTYPE_U8, 8, 0, 0, 0},   {HONE_DTYPE_U16, 16, 0, 0, 0},
                {HONE_DTYPE_U32, 32, 0, 0, 0}, {HONE_DTYPE_U64, 64, 0, 0, 0}, {HONE_DTYPE_I8, 7, 1, 0, 0},
                {HONE_DTYPE_I16, 15, 1, 0, 0}, {HONE_DTYPE_I32, 31, 1, 0, 0}, {HONE_DTYPE_I64, 63, 1, 0, 0},
                {HONE_DTYPE_F16, 0, 1, 11, 5}, {HONE_DTYPE_BF16, 0, 1, 8, 8}, {HONE_DTYPE_F32, 0, 1, 24, 8},
                {HONE_DTYPE_F64, 0, 1, 53, 11}};
    int a = -1, b = -1;
    for (int k = 0; k < (int)(sizeof rows / sizeof *rows); k++)
        a = rows[k].type == from ? k : a, b = rows[k].type == to ? k : b;
    if (a < 0 || b < 0 || to == HONE_DTYPE_BOOL) return false;
    if (rows[b].digits)
        return rows[a].digits ? rows[a].digits <= rows[b].digits && rows[a].exponent <= rows[b].exponent
                              : rows[a].whole <= rows[b].digits && rows[b].exponent > 5;
    return !rows[a].digits && rows[a].whole <= rows[b].whole && rows[a].is_signed <= rows[b].is_signed;
}
static bool cast_twice(hone_matching *m) {
    hone_graph *g = hone_match_graph(m);
    hone_node *root = hone_match_root(m);
    hone_vid x = hone_match_var(m, "x");
    if (!holds_all(g->var.at[x].dtype, g->var.at[hone_match_var(m, "c")].dtype)) return false;
    return hone_match_emit(m, "Cast", root->out[0], &x, 1, root->attr, root->n_attr) >= 0;
}

static const hone_rule rules[] = {
    {"Transpose(t=Transpose(x))", transpose_twice},
    {"Transpose(x)", transpose_ones},
    {"Reshape(x, s)", reshape_fixed},
    {"{Reshape(x, s)|Squeeze(x, s)|Squeeze(x)|Unsqueeze(x, s)|Flatten(x)}", reshape_twice},
    {"{Reshape(MatMul(r=Reshape(x, s), $w), t)|Reshape(Add(MatMul(r=Reshape(x, s), $w), $b), t)}",
     rows_of_matmul},
    {"{Reshape(g=Gemm(r=Reshape(x, s), $w, $b), t)|Reshape(g=Gemm(r=Reshape(x, s), $w), t)}", rows_of_matmul},
    {"Gather(x, $i)", gather_one},
    {"ScatterND(x, $i, u)", scatter_stretch},
    {"Cast(c=Cast(x))", cast_twice},
};
hone_status hone_pass_views(hone_passing *p) {
    return hone_match_rules(p, rules, (int)(sizeof rules / sizeof *rules));
}
