/* SPDX-License-Identifier: Apache-2.0
   pad: zeros that a Pad puts around pixels become pads of the Conv or AveragePool that reads them, so that no
   copy is made. */
#include <string.h>

#include "passes/match.h"

/* What a Pad adds before and after each dim; false: not plain zeros. */
static bool pads_of(const hone_matching *m, const hone_node *n, int rank, int64_t *before, int64_t *after) {
    const hone_value *pads = hone_match_value(m, "p"), *value = hone_match_value(m, "z"),
                     *axes = hone_match_value(m, "a");
    double with = 0;
    int64_t count = axes ? hone_value_count(axes) : rank;
    if (strcmp(hone_attr_text(n->attr, n->n_attr, "mode", "constant"), "constant") != 0) return false;
    if (value && (!hone_match_number(value, &with) || with != 0)) return false;
    if (pads->dtype != HONE_DTYPE_I64 || hone_value_count(pads) != 2 * count || count > rank) return false;
    for (int d = 0; d < rank; d++) before[d] = after[d] = 0;
    for (int64_t k = 0; k < count; k++) {
        int64_t d = axes ? hone_value_i64(axes, k) : k;
        d += d < 0 ? rank : 0;
        if (d < 0 || d >= rank) return false;
        before[d] = hone_value_i64(pads, k), after[d] = hone_value_i64(pads, k + count);
        if (before[d] < 0 || after[d] < 0 || before[d] > 1 << 20 || after[d] > 1 << 20) return false;
    }
    return before[0] == 0 && after[0] == 0 && before[1] == 0 && after[1] == 0;
}
static bool into(hone_matching *m) {
    static const int64_t one = 1;
    hone_graph *g = hone_match_graph(m);
    hone_node *root = hone_match_root(m);
    hone_vid in[3] = {hone_match_var(m, "x"), root->n_in > 1 ? root->in[1] : -1,
                      root->n_in > 2 ? root->in[2] : -1};
    int rank = g->var.at[in[0]].rank, n = 0;
    bool pool = hone_node_is(root, "AveragePool");
    int64_t before[HONE_MAX_RANK], after[HONE_MAX_RANK], pads[2 * HONE_MAX_RANK] = {0};
    const hone_attr *had = hone_attr_find(root->attr, root->n_attr, "pads");
    if (rank < 3 || !pads_of(m, hone_match_node(m, "q"), rank, before, after) || root->n_attr > 14)
        return false;
    if (strcmp(hone_attr_text(root->attr, root->n_attr, "auto_pad", "NOTSET"), "NOTSET") != 0) return false;
    if (had && (had->kind != HONE_ATTR_INTS || had->n != 2 * (rank - 2))) return false;
    for (int d = 0; d < rank - 2; d++) {
        pads[d] = before[d + 2] + (had ? had->i[d] : 0),
        pads[rank - 2 + d] = after[d + 2] + (had ? had->i[rank - 2 + d] : 0);
        /* a pool that leaves out its own pads counts the zeros that were there */
        bool own = had && (had->i[d] || had->i[rank - 2 + d]);
        if (pool && own && !hone_attr_int(root->attr, root->n_attr, "count_include_pad", 0)) return false;
    }
    if (pool && hone_attr_int(root->attr, root->n_attr, "ceil_mode", 0)) return false;
    hone_attr attr[16];
    for (int k = 0; k < root->n_attr; k++)
        if (strcmp(root->attr[k].name, "pads") != 0 && strcmp(root->attr[k].name, "count_include_pad") != 0)
            attr[n++] = root->attr[k];
    attr[n++] = (hone_attr)HONE_ATTR_L("pads", pads, 2 * (rank - 2));
    if (pool)
        attr[n++] = (hone_attr)HONE_ATTR_L("count_include_pad", &one, 1), attr[n - 1].kind = HONE_ATTR_INT;
    return hone_match_emit(m, root->program->name, root->out[0], in, 3, attr, n) >= 0;
}

#define PAD "q={Pad(x, $p)|Pad(x, $p, $z)|Pad(x, $p, $z, $a)}"
static const hone_rule rules[] = {
    {"{Conv(" PAD ", w)|Conv(" PAD ", w, b)|AveragePool(" PAD ")}", into},
};
hone_status hone_pass_pad(hone_passing *p) {
    return hone_match_rules(p, rules, (int)(sizeof rules / sizeof *rules));
}
