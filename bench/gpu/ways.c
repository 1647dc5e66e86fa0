/* SPDX-License-Identifier: Apache-2.0
   ways: a product or convolution made ready to launch in one of its ways, and the search over all of them. */
#include "harness.h"

hone_cuda_product product_of(const bench *b, const char *epilogue, const tensor *a, const tensor *w,
                             const tensor *c, const tensor *bias, int m, int n, int k) {
    return (hone_cuda_product){.in = (hone_cuda_type)a->type,
                               .out = (hone_cuda_type)c->type,
                               .epilogue = epilogue,
                               .constant_b = true,
                               .p = {.a = a->at,
                                     .b = w->at,
                                     .c = c->at,
                                     .bias = bias->at,
                                     .workspace = b->workspace,
                                     .counters = b->counters,
                                     .pitch_a = k,
                                     .pitch_b = k,
                                     .pitch_c = n,
                                     .m = m,
                                     .n = n,
                                     .k = k,
                                     .batches = 1,
                                     .splits = 1,
                                     .alpha = 1}};
}
bool prepare(bench *b, const hone_cuda_product *p, const hone_cuda_way *way, prepared *out) {
    hone_text text = {0};
    size_t workspace, counters;
    hone_cuda_contract_room(p, way, &workspace, &counters);
    if (workspace > ROOM || counters > COUNTERS) return false;
    OK(hone_cuda_contract_print(&text, p, way));
    out->launch = hone_cuda_contract_launch(p, &b->gpu, way);
    out->kernel = kernel_of(b, text.text, hone_cuda_contract_names[way->unit], out->launch.shared_bytes);
    hone_text_free(&text);
    if (!out->kernel) return false;
    OK(hone_cuda_contract_fill(b->g, p, way, &out->args));
    return true;
}
hone_status launch_prepared(bench *b, void *what) {
    const prepared *p = what;
    return hone_cuda_launch(b->g, p->kernel, &p->launch, &p->args);
}
int few_ways(hone_cuda_way *way, int n) {
    int kept = 0;
    for (int k = 0; k < n; k++) {
        bool first = true, last = way[k].splits == 1;
        for (int q = 0; q < kept; q++)
            first &= way[q].unit != way[k].unit || (way[q].splits > 1) != (way[k].splits > 1);
        for (int q = k + 1; q < n; q++) last &= way[q].unit != way[k].unit || way[q].splits > 1;
        if (first || last) way[kept++] = way[k];
    }
    return kept;
}
void search_ways(bench *b, const char *what, const hone_cuda_product *p, bool seen) {
    static hone_cuda_way ways[600];
    const int count = hone_cuda_ways(p, &b->gpu, ways, 600);
    const hone_cuda_way chosen = hone_cuda_best_way(p, &b->gpu);
    double least = 0, mine = 0;
    int best = 0;
    for (int q = 0; q < count; q++) {
        prepared r;
        const double cost = hone_cuda_cost(p, &b->gpu, &ways[q]);
        if (cost > 4 * hone_cuda_cost(p, &b->gpu, &chosen) + 10 || !prepare(b, p, &ways[q], &r)) continue;
        contender c = contender_of(b, "hone", launch_prepared, &r);
        in_turns(b, &c, 1, 3);
        const double us = middle(&c);
        const hone_cuda_window *w = p->window;
        fprintf(b->csv, "%s,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%.3f,%.3f,%d\n", what, (int)p->in,
                (int)p->out, p->p.m, p->p.n, p->p.k, w ? w->kernel_x : 0, w ? w->stride_x : 0,
                w ? w->channels : 0, w ? w->width : 0, (int)ways[q].unit, ways[q].tile_m, ways[q].tile_n,
                ways[q].stages, ways[q].splits, ways[q].warps_m, ways[q].blocks, us, cost, seen);
        if (least == 0 || us < least) least = us, best = q;
        if (!memcmp(&ways[q], &chosen, sizeof chosen)) mine = us;
        contender_free(b, &c);
    }
    if (b->collect) return;
    char first[96], second[96];
    hone_cuda_way_text(&ways[best], first, sizeof first), hone_cuda_way_text(&chosen, second, sizeof second);
    fprintf(b->table, "search %s %d x %d x %d: best %.2f us %s; chosen %.2f us (%.2f) %s\n", what, p->p.m,
            p->p.n, p->p.k, least, first, mine, mine > 0 ? least / mine : 0, second);
    fflush(b->csv), fflush(b->table);
}
