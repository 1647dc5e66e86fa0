/* SPDX-License-Identifier: Apache-2.0
   stride: the kernel of a ConvTranspose becomes as long as a multiple of its strides, by zeros behind, and as
   much is cut off behind the result: then every result has equally many taps, and the op is a convolution for
   each place of a stride (ops/conv.hop), which must be told by kernel_shape. Only where weights are
   constant. */
#include <string.h>

#include "base/round.h"
#include "passes/match.h"

enum { MOST = 4 }; /* times the weights there were */

/* w[channels, rows, k..] with zeros behind each k. NULL: no memory. */
static hone_value *longer(const hone_value *w, const int64_t *dim) {
    hone_value *v;
    if (hone_value_tensor(w->dtype, dim, w->rank, &v)) return NULL;
    memset(v->data, 0, v->bytes);
    const int64_t row = w->dim[w->rank - 1], rows = row ? hone_value_count(w) / row : 0;
    for (int64_t r = 0; r < rows; r++) {
        int64_t to = 0, rest = r, step = dim[w->rank - 1];
        for (int d = w->rank - 2; d >= 0; step *= dim[d--]) to += rest % w->dim[d] * step, rest /= w->dim[d];
        memcpy((float *)v->data + to, (const float *)w->data + r * row, sizeof(float) * (size_t)row);
    }
    return v;
}
static bool whole(hone_matching *m) {
    hone_node *n = hone_match_root(m);
    const hone_value *w = hone_match_value(m, "w");
    const hone_attr *stride = hone_attr_find(n->attr, n->n_attr, "strides"),
                    *pads = hone_attr_find(n->attr, n->n_attr, "pads"),
                    *dilation = hone_attr_find(n->attr, n->n_attr, "dilations"),
                    *given = hone_attr_find(n->attr, n->n_attr, "output_shape");
    const int rank = w->rank - 2;
    int64_t dim[HONE_MAX_RANK] = {0}, end[2 * HONE_MAX_RANK] = {0}, elements = 1,
            before = hone_value_count(w);
    if (w->dtype != HONE_DTYPE_F32 || rank < 1 || before < 1 || n->n_attr > 14 ||
        (stride && stride->n != rank) || (pads && pads->n != 2 * rank) || (given && given->n) ||
        strcmp(hone_attr_text(n->attr, n->n_attr, "auto_pad", "NOTSET"), "NOTSET") != 0)
        return false;
    bool more = false, told = hone_attr_find(n->attr, n->n_attr, "kernel_shape");
    for (int d = 0; d < w->rank; d++) {
        dim[d] = w->dim[d];
        if (d >= 2) {
            const int64_t s = stride ? stride->i[d - 2] : 1, k = w->dim[d];
            if (s < 1 || s > 1 << 10 || (dilation && (dilation->n != rank || dilation->i[d - 2] != 1)))
                return false;
            dim[d] = hone_round_up(k, s), more |= dim[d] != k;
            end[d - 2] = pads ? pads->i[d - 2] : 0;
            if (__builtin_add_overflow(pads ? pads->i[rank + d - 2] : 0, dim[d] - k, end + rank + d - 2))
                return false;
        }
        if (__builtin_mul_overflow(elements, dim[d], &elements)) return false;
    }
    if ((!more && told) || elements / MOST > before || (more && !hone_match_spend(m, elements))) return false;
    hone_value *v = more ? longer(w, dim) : NULL;
    if (more && !v) return hone_match_no_memory(m);
    hone_attr attr[16];
    int k = 0;
    for (int q = 0; q < n->n_attr; q++)
        if (strcmp(n->attr[q].name, "pads") != 0 && strcmp(n->attr[q].name, "kernel_shape") != 0)
            attr[k++] = n->attr[q];
    attr[k++] = (hone_attr)HONE_ATTR_L("pads", end, 2 * rank),
    attr[k++] = (hone_attr)HONE_ATTR_L("kernel_shape", dim + 2, rank);
    const hone_vid in[3] = {n->in[0], more ? hone_match_constant(m, "w", v) : n->in[1],
                            n->n_in > 2 ? n->in[2] : -1};
    return hone_match_emit(m, n->program->name, n->out[0], in, 3, attr, k) >= 0;
}
static const hone_rule rules[] = {
    {"{ConvTranspose(x, $w)|ConvTranspose(x, $w, b)}", whole},
};
hone_status hone_pass_stride(hone_passing *p) {
    return hone_match_rules(p, rules, (int)(sizeof rules / sizeof *rules));
}
