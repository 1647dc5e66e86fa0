/* SPDX-License-Identifier: Apache-2.0
   memory: where blocks lie in the arena. Largest first, each at the lowest place free during its life. A block may lie exactly on one that dies where it is
   born (in place), if its maker said so. */
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

typedef struct { int64_t bytes, at; int first, last, block; } life;
static int larger(const void *p, const void *q) {
    const life *a = p, *b = q;
    return a->bytes != b->bytes ? (a->bytes < b->bytes) - (a->bytes > b->bytes) : a->block - b->block;
}
static int root(const int *of, int k) {
    while (of[k] != k) k = of[k];
    return k;
}
int64_t hone_memory_plan(hone_block *block, int n, int n_step, int64_t *lower, int64_t *sum) {
    *lower = *sum = 0;
    if (!n) return 0;
    int *of = hone_alloc(sizeof *of * (size_t)n);
    life *all = hone_alloc(sizeof *all * (size_t)n);
    int64_t *alive = hone_alloc(sizeof *alive * (size_t)(n_step + 2)), need = 0;
    int *placed = hone_alloc(sizeof *placed * (size_t)n);
    if (!of || !all || !alive || !placed) { need = -1; goto done; }
    /* chains of blocks that share one place */
    for (int k = 0; k < n; k++) of[k] = k;
    for (int k = 0; k < n; k++) {
        int s = block[k].shares;
        if (s < 0) continue;
        int r = root(of, s);
        /* born exactly where the other dies, and no larger */
        int last = -1;
        for (int q = r; q <= k; q++)
            if (q != k && root(of, q) == r && block[q].last > last) last = block[q].last;
        if (last == block[k].first && block[k].bytes <= block[r].bytes) of[k] = r;
    }
    int lives = 0;
    for (int k = 0; k < n; k++) {
        *sum += block[k].bytes;
        if (of[k] == k) all[lives++] = (life){block[k].bytes, 0, block[k].first, block[k].last, k};
    }
    for (int k = 0; k < n; k++) {
        int r = root(of, k);
        if (r == k) continue;
        for (int q = 0; q < lives; q++)
            if (all[q].block == r && block[k].last > all[q].last) all[q].last = block[k].last;
    }
    for (int k = 0; k < lives; k++) alive[all[k].first] += all[k].bytes, alive[all[k].last + 1] -= all[k].bytes;
    int64_t now = 0;
    for (int k = 0; k <= n_step; k++)
        if ((now += alive[k]) > *lower) *lower = now;
    qsort(all, (size_t)lives, sizeof *all, larger);
    int count = 0; /* placed, by rising address */
    for (int k = 0; k < lives; k++) {
        int64_t at = 0;
        for (int q = 0; q < count; q++) {
            const life *o = all + placed[q];
            if (o->last < all[k].first || all[k].last < o->first) continue;
            if (at + all[k].bytes <= o->at) break;
            if (o->at + o->bytes > at) at = o->at + o->bytes;
        }
        all[k].at = at;
        if (at + all[k].bytes > need) need = at + all[k].bytes;
        int q = count++;
        while (q > 0 && all[placed[q - 1]].at > at) placed[q] = placed[q - 1], q--;
        placed[q] = k;
    }
    for (int k = 0; k < lives; k++) block[all[k].block].at = all[k].at;
    for (int k = 0; k < n; k++) block[k].at = block[root(of, k)].at;
done:
    hone_free(of), hone_free(all), hone_free(alive), hone_free(placed);
    return need;
}
