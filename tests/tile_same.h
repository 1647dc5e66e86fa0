/* SPDX-License-Identifier: Apache-2.0
   tile_same: runs every stage of a bound instance as tile code and compares it with the interpreter, stage by
   stage. For tests.

   Before each stage the tile code's target is a copy of the interpreter's, so that a difference is this
   stage's own. All but sums must agree bit for bit (NaNs among themselves); sums within a few units of
   rounding of the sum of the terms' absolute values. */
#ifndef HONE_TESTS_TILE_SAME_H
#define HONE_TESTS_TILE_SAME_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "loops/tile.h"
#include "random.h"

typedef struct {
    char *at;
    size_t bytes;
} same_block; /* the memory a tensor's place lies in; a stage's targets are copied whole */
enum { SAME_GUARD = 64 };

static uint64_t same_seed = 1;
static uint64_t same_random(void) { return next_linear64(&same_seed) >> 33; }

static bool same_float(hone_dtype t) { return hone_dtypes[t].kind == HONE_KIND_FLOAT; }
/* Walks all elements of a tensor as its place says; reports the first that differs by more than `slack` times
   the element of `absolute`. */
static bool same_tensor(const hone_tensor *t, const hone_param *p, const int64_t *stride, const char *want,
                        const char *got, const char *absolute, double slack, char *text, size_t room) {
    int64_t x[HONE_MAX_RANK] = {0}, n = 1;
    for (int d = 0; d < t->rank; d++) n *= p[t->dim[d]].i;
    const int bytes = hone_dtypes[t->dtype].bytes;
    for (int64_t k = 0; k < n; k++) {
        int64_t at = 0;
        for (int d = 0; d < t->rank; d++) at += x[d] * stride[d];
        const char *a = want + at * bytes, *b = got + at * bytes;
        if (memcmp(a, b, (size_t)bytes)) {
            const hone_ctype c = hone_dtypes[t->dtype].ctype;
            const double u = hone_scalar_f64(c, hone_dtype_load(t->dtype, a)),
                         v = hone_scalar_f64(c, hone_dtype_load(t->dtype, b));
            bool ok = same_float(t->dtype) && isnan(u) && isnan(v);
            if (slack > 0 && !ok) {
                const double size = absolute
                                        ? hone_scalar_f64(c, hone_dtype_load(t->dtype, absolute + at * bytes))
                                        : fabs(u) + 1;
                ok = fabs(u - v) <= slack * size + 1e-30 ||
                     (isinf(size) && (isnan(u) || isinf(u)) && (isnan(v) || isinf(v)));
            }
            if (!ok) {
                snprintf(text, room, "'%s' element %lld: interpreter %.17g, tile code %.17g", t->name,
                         (long long)k, u, v);
                return false;
            }
        }
        for (int d = t->rank - 1; d >= 0; d--) {
            if (++x[d] < p[t->dim[d]].i) break;
            x[d] = 0;
        }
    }
    return true;
}

/* Runs a code in pieces of random size, and again in one; both must give the same bytes. */
static hone_status same_run(const hone_tilecode *code, void *const *base, int64_t over, same_block target) {
    const int64_t n = hone_tilecode_elements(code);
    const bool whole = hone_tilecode_whole(code);
    char *scratch = hone_alloc(hone_tilecode_scratch(code) + SAME_GUARD), *before = malloc(target.bytes + 1),
         *once = malloc(target.bytes + 1);
    memset(scratch, 0xff, hone_tilecode_scratch(code) + SAME_GUARD);
    memcpy(before, target.at, target.bytes);
    hone_status s = hone_tilecode_run(code, base, 0, n, over, NULL, scratch);
    memcpy(once, target.at, target.bytes);
    memcpy(target.at, before, target.bytes);
    hone_status again = HONE_OK;
    for (int64_t first = 0; first < n && !again;) {
        int64_t m = 1 + (int64_t)(same_random() % (uint64_t)(n < 100 ? n : same_random() % 3 ? n : 50));
        if (whole || m > n - first) m = n - first;
        again = hone_tilecode_run(code, base, first, m, over, NULL, scratch);
        first += m;
    }
    for (int k = 0; k < SAME_GUARD; k++)
        if ((unsigned char)scratch[hone_tilecode_scratch(code) + (size_t)k] != 0xff)
            s = hone_fail(HONE_BUG, "wrote behind its scratch");
    if (!s && again) s = again;
    if (!s && memcmp(once, target.at, target.bytes))
        s = hone_fail(HONE_BUG, "the result depends on how it is cut into pieces");
    hone_free(scratch), free(before), free(once);
    return s;
}

/* block: memory of each tensor of the instance. On entry inputs are filled; on success all tensors hold the
   interpreter's results. Returns NULL, or what was wrong. *used counts stages that ran as tile code, *refused
   those that asked for the interpreter. */
static const char *same_instance(const hone_instance *in, const hone_param *param, hone_tensor_view *place,
                                 const same_block *block, int *used, int *refused) {
    static char text[512];
    const char *wrong = NULL;
    hone_arena *arena = hone_arena_create();
    hone_tilecode **code = calloc((size_t)in->n_stage + 1, sizeof *code);
    void **base = calloc((size_t)in->n_tensor + 1, sizeof *base);
    for (int s = 0; s < in->n_stage && !wrong; s++) {
        hone_status st = hone_tilecode_make(arena, in, s, param, place, -1, code + s);
        if (st) {
            code[s] = NULL;
            (*refused)++;
            if (st != HONE_NOT_SUPPORTED)
                snprintf(text, sizeof text, "make: %s", hone_fail_text()), wrong = text;
        }
    }
    for (int s = 0, end; s < in->n_stage && !wrong; s = end) {
        bool sums = false, all = true;
        end = s + 1;
        while (in->stage[s].over >= 0 && end < in->n_stage && in->stage[end].over == in->stage[s].over) end++;
        char **copy = calloc((size_t)in->n_tensor + 1, sizeof *copy);
        for (int t = 0; t < in->n_tensor; t++) base[t] = place[t].at;
        for (int k = s; k < end; k++) {
            const int t = in->stage[k].tensor;
            sums = sums || (in->stage[k].reduce == HONE_REDUCE_SUM && same_float(in->tensor[t].dtype));
            all = all && code[k];
            if (copy[t]) continue;
            copy[t] = malloc(block[t].bytes + 2 * SAME_GUARD);
            memset(copy[t], 0x5a, block[t].bytes + 2 * SAME_GUARD);
            if (block[t].bytes) memcpy(copy[t] + SAME_GUARD, block[t].at, block[t].bytes);
            base[t] = copy[t] + SAME_GUARD + ((char *)place[t].at - block[t].at);
        }
        hone_status want, got = HONE_OK;
        char *absolute = NULL;
        const int t = in->stage[s].tensor;
        if (sums && end == s + 1) { /* the sum of absolute values, in a copy of the target */
            absolute = malloc(block[t].bytes + 1);
            if (block[t].bytes) memcpy(absolute, block[t].at, block[t].bytes);
            void *const here = place[t].at;
            place[t].at = absolute + ((char *)here - block[t].at);
            (void)!hone_interpret_stage(in, param, place, s, true);
            place[t].at = here;
        }
        want = hone_interpret_stage(in, param, place, s, false);
        if (all && s + 1 == end && in->stage[s].over < 0)
            got = same_run(code[s], base, 0, (same_block){copy[t] + SAME_GUARD, block[t].bytes});
        else if (all) {
            const int64_t steps = param[in->index[in->stage[s].over_index].extent].i;
            for (int64_t o = 0; o < steps && !got; o++)
                for (int k = s; k < end && !got; k++) {
                    const int q = in->stage[k].tensor;
                    got = same_run(code[k], base, o, (same_block){copy[q] + SAME_GUARD, block[q].bytes});
                }
        }
        if (all && (want != got)) {
            snprintf(text, sizeof text, "stage %d ('%s'): interpreter says %d, tile code %d: %s", s,
                     in->tensor[t].name, want, got, hone_fail_text());
            wrong = text;
        } else if (want) wrong = NULL, end = in->n_stage; /* both refuse: the rest has no inputs */
        for (int k = s; k < end && k < in->n_stage && !wrong && all && !want; k++) {
            const int q = in->stage[k].tensor;
            const hone_tensor *w = in->tensor + q;
            const double eps = w->dtype == HONE_DTYPE_F64   ? 0x1p-52
                               : w->dtype == HONE_DTYPE_F32 ? 0x1p-23
                               : w->dtype == HONE_DTYPE_F16 ? 0x1p-10
                                                            : 0x1p-2;
            const double slack = !sums ? 0 : end > s + 1 || in->stage[s].over >= 0 ? 100 * eps : 8 * eps;
            char *mine = copy[q] + SAME_GUARD;
            if (!same_tensor(w, param, place[q].stride, place[q].at,
                             mine + ((char *)place[q].at - block[q].at),
                             end == s + 1 && in->stage[k].reduce == HONE_REDUCE_SUM
                                 ? absolute + ((char *)place[q].at - block[q].at)
                                 : NULL,
                             slack, text, sizeof text)) {
                snprintf(text + strlen(text), sizeof text - strlen(text), " (stage %d)", k);
                wrong = text;
            }
            for (int g = 0; g < SAME_GUARD && !wrong; g++)
                if (copy[q][g] != 0x5a || mine[block[q].bytes + (size_t)g] != 0x5a)
                    snprintf(text, sizeof text, "'%s': wrote outside", w->name), wrong = text;
            (*used)++;
        }
        for (int k = 0; k < in->n_tensor; k++) free(copy[k]);
        free(copy), free(absolute);
    }
    free(code), free(base);
    hone_arena_destroy(arena);
    return wrong;
}
#endif
