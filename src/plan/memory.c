/* SPDX-License-Identifier: Apache-2.0
   memory: where blocks lie in the arena. Largest first, each at the lowest place free during its life; where
   that leaves gaps, other orders are tried, also with those first that lay highest, and the best is kept. A
   block may lie exactly on one that dies where it is born (in place), if its maker said so. */
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

enum { SPAN = 32 }; /* steps: who lives within one span is compared only with what lives there too */
typedef struct {
    int64_t bytes, at;
    int first, last, block;
} life;

/* Largest first, else by number: a radix sort, byte by byte. `other` is as large. */
static void sort(life *all, life *other, int n) {
    int64_t most = 0;
    for (int k = 0; k < n; k++) most = all[k].bytes > most ? all[k].bytes : most;
    for (int shift = 0; shift < 63 && most >> shift; shift += 8) {
        int at[257] = {0}; /* where those of each byte begin; the largest byte first */
        for (int k = 0; k < n; k++) at[256 - (all[k].bytes >> shift & 255)]++;
        for (int b = 1; b < 257; b++) at[b] += at[b - 1];
        for (int k = 0; k < n; k++) other[at[255 - (all[k].bytes >> shift & 255)]++] = all[k];
        memcpy(all, other, sizeof *all * (size_t)n);
    }
}
/* The lowest place, from `at` on, where life k meets none of those in the list, which lies by rising
   address. */
static int64_t lowest(const life *all, const int *list, int n, int k, int64_t at) {
    for (int q = 0; q < n; q++) {
        const life *o = all + list[q];
        if (o->last < all[k].first || all[k].last < o->first) continue;
        if (at + all[k].bytes <= o->at) break;
        if (o->at + o->bytes > at) at = o->at + o->bytes;
    }
    return at;
}
static void insert(const life *all, int *list, int *n, int k) {
    int q = (*n)++;
    while (q > 0 && all[list[q - 1]].at > all[k].at) list[q] = list[q - 1], q--;
    list[q] = k;
}
/* Places all, in the order they stand; `from`, `count`, `placed`: a list of who lies in each span. Returns
   the bytes needed. */
static int64_t place(life *all, int lives, const int *from, int *count, int spans, int *placed) {
    int64_t need = 0;
    memset(count, 0, sizeof *count * (size_t)spans);
    for (int k = 0; k < lives; k++) {
        int first = all[k].first / SPAN, end = all[k].last / SPAN;
        all[k].at = 0;
        for (int64_t before = -1; before != all[k].at;) { /* up, until it is free in every span */
            before = all[k].at;
            for (int s = first; s <= end; s++)
                all[k].at = lowest(all, placed + from[s], count[s], k, all[k].at);
            if (first == end) break;
        }
        if (all[k].at + all[k].bytes > need) need = all[k].at + all[k].bytes;
        for (int s = first; s <= end; s++) insert(all, placed + from[s], count + s, k);
    }
    return need;
}
/* Other orders: by bytes times steps, by steps, by birth. */
static int64_t steps_of(const life *l) { return l->last - l->first + 1; }
static int by(int64_t a, int64_t b, const life *p, const life *q) {
    return a != b ? (a < b) - (a > b) : p->block - q->block;
}
static int by_area(const void *p, const void *q) {
    const life *a = p, *b = q;
    return by(a->bytes / 64 * steps_of(a), b->bytes / 64 * steps_of(b), a, b);
}
static int by_steps(const void *p, const void *q) {
    const life *a = p, *b = q;
    return steps_of(a) != steps_of(b) ? by(steps_of(a), steps_of(b), a, b) : by(a->bytes, b->bytes, a, b);
}
static int by_birth(const void *p, const void *q) {
    const life *a = p, *b = q;
    return a->first != b->first ? by(b->first, a->first, a, b) : by(a->bytes, b->bytes, a, b);
}
int64_t hone_memory_plan(hone_arena *scratch, hone_block *block, int n, int n_step, int space, int64_t align,
                         int64_t *lower, int64_t *sum) {
    *lower = *sum = 0;
    if (!n) return 0;
    int spans = n_step / SPAN + 1, lives = 0;
    int64_t need = -1, now = 0;
    /* of a chain: its first block; where it dies */
    int *of = HONE_NEW_N(scratch, int, n), *last = HONE_NEW_N(scratch, int, n);
    life *all = hone_arena_raw(scratch, 2 * sizeof *all * (size_t)n);
    int64_t *alive = HONE_NEW_N(scratch, int64_t, n_step + 2);
    int *placed = NULL, *from = HONE_NEW_N(scratch, int, spans + 2),
        *count = HONE_NEW_N(scratch, int, spans + 1);
    if (!of || !last || !all || !alive || !from || !count) return -1;
    /* chains of blocks that share one place */
    for (int k = 0; k < n; k++) {
        if (block[k].space != space) continue;
        int s = block[k].shares, r = s < 0 ? k : of[s];
        /* born exactly where the other dies, and no larger */
        of[k] = s >= 0 && last[r] == block[k].first && block[k].bytes <= block[r].bytes ? r : k;
        if (of[k] == k || block[k].last > last[of[k]]) last[of[k]] = block[k].last;
        *sum += block[k].bytes;
    }
    for (int k = 0; k < n; k++)
        if (of[k] == k && block[k].space == space)
            all[lives++] =
                (life){(block[k].bytes + align - 1) / align * align, 0, block[k].first, last[k], k};
    for (int k = 0; k < lives; k++) {
        alive[all[k].first] += all[k].bytes, alive[all[k].last + 1] -= all[k].bytes;
        for (int s = all[k].first / SPAN; s <= all[k].last / SPAN; s++) from[s + 1]++;
    }
    for (int k = 0; k <= n_step; k++)
        if ((now += alive[k]) > *lower) *lower = now;
    sort(all, all + n, lives);
    for (int s = 0; s < spans; s++) from[s + 1] += from[s];
    if (!(placed = HONE_NEW_N(scratch, int, from[spans] + 1))) return -1; /* a list a span */
    need = place(all, lives, from, count, spans, placed);
    for (int k = 0; k < lives; k++) block[all[k].block].at = all[k].at;
    static int (*const orders[])(const void *, const void *) = {by_area, by_steps, by_birth};
    for (int o = 0; o < 3 && need - *lower > *lower / 32; o++) { /* gaps: worth another try */
        qsort(all, (size_t)lives, sizeof *all, orders[o]);
        int64_t other = place(all, lives, from, count, spans, placed);
        if (other >= need) continue;
        need = other;
        for (int k = 0; k < lives; k++) block[all[k].block].at = all[k].at;
    }
    /* who lies highest chooses first the next time */
    for (int o = 0; o < 12 && need - *lower > *lower / 32; o++) {
        int top = 0;
        for (int k = 1; k < lives; k++)
            if (all[k].at + all[k].bytes > all[top].at + all[top].bytes) top = k;
        life first = all[top];
        memmove(all + 1, all, sizeof *all * (size_t)top);
        all[0] = first;
        int64_t other = place(all, lives, from, count, spans, placed);
        if (other >= need) continue;
        need = other;
        for (int k = 0; k < lives; k++) block[all[k].block].at = all[k].at;
    }
    for (int k = 0; k < n; k++)
        if (block[k].space == space) block[k].at = block[of[k]].at;
    return need;
}
