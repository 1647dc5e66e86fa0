/* SPDX-License-Identifier: Apache-2.0
   topk: TopK. A work-group has a row: the first 2048 elements are sorted in shared memory, then the rest
   comes in pieces, of which only what is better than the last wanted so far is sorted in. Where many of a
   long row are wanted, all of it is sorted in memory. */
#include "device/functions/functions.h"

#include <string.h>

typedef struct {
    int64_t outer, n, inner, k;
} shape;
enum { MOST = INT32_MAX, MOST_SORTED = 1 << 26 /* pairs */ };
static bool shape_of(const hone_function_call *c, shape *out) {
    const hone_fact *x = c->in;
    int64_t axis = hone_attr_int(c->of->attr, c->of->n_attr, "axis", -1);
    axis += axis < 0 ? x->rank : 0;
    if (axis < 0 || axis >= x->rank) return false;
    *out = (shape){1, x->dim[axis], 1, 0};
    for (int d = 0; d < x->rank; d++) *(d < axis ? &out->outer : &out->inner) *= d == axis ? 1 : x->dim[d];
    for (int q = 0; q < c->of->n_out; q++)
        if (c->of->out[q] >= 0) out->k = c->out[q].dim[axis];
    return true;
}
static bool is_selected(const shape *s) { return s->n <= HONE_FN_BLOCK || s->k <= HONE_FN_BLOCK / 2; }
static bool takes(hone_function_call *c) {
    int64_t n;
    shape s;
    if (!hone_fact_shaped(c->in) || !hone_fn_bits(c->in->dtype) ||
        !hone_count_of(c->in->dim, c->in->rank, &n) || n < 1 || n > MOST)
        return false;
    for (int q = 0; q < c->of->n_out; q++)
        if (c->of->out[q] >= 0 && !hone_fact_shaped(c->out + q)) return false;
    return shape_of(c, &s) && s.k > 0 && s.k <= s.n &&
           (is_selected(&s) || s.outer * s.inner <= MOST_SORTED / hone_fn_power(s.n));
}

static const char select_text[] =
    "    HONE_SHARED uint64_t key[M];\n    HONE_SHARED uint32_t place[M];\n    HONE_SHARED uint32_t "
    "vote[T];\n"
    "    const int64_t row = (int64_t)HONE_GROUP, o = row / inner, begin = o * n * inner + row - o * inner;\n"
    "    for (uint32_t p = HONE_THREAD; p < M; p += T) {\n"
    "        key[p] = p < n ? KEY(x[begin + p * inner]) : 0;\n        place[p] = p < n ? p : 0xffffffffu;\n  "
    "  }\n"
    "    HONE_BARRIER();\n    SORT\n"
    "    for (int64_t first = M; first < n; first += M / 2) {\n"
    "        const uint64_t least = key[k - 1];\n        uint32_t better = 0;\n"
    "        for (uint32_t p = HONE_THREAD; p < M / 2; p += T) {\n"
    "            const int64_t from = first + p;\n            const uint64_t own = from < n ? KEY(x[begin + "
    "from * inner]) : 0;\n"
    "            const int taken = from < n && own > least;\n"
    "            key[M / 2 + p] = taken ? own : 0, place[M / 2 + p] = taken ? (uint32_t)from : 0xffffffffu;\n"
    "            if (taken) better = 1;\n        }\n"
    "        vote[HONE_THREAD] = better;\n        HONE_BARRIER();\n"
    "        for (uint32_t by = T / 2; by > 0; by /= 2) {\n"
    "            if (HONE_THREAD < by) vote[HONE_THREAD] |= vote[HONE_THREAD + by];\n            "
    "HONE_BARRIER();\n        }\n"
    "        const uint32_t any = vote[0];\n        HONE_BARRIER();\n"
    "        if (any != 0) {\n            SORT\n        }\n    }\n"
    "    for (int64_t p = HONE_THREAD; p < k; p += T) {\n        const int64_t to = (o * k + p) * inner + "
    "row - o * inner;\n"
    "        GIVE(to, place[p])\n    }\n";
/* The statements that write element `p` of the row that begins at `begin`. */
static const char *giving(const hone_function *f) {
    static const char *const all[] = {
        "", "values[to] = x[begin + (int64_t)(p) * inner];", "given[to] = (int64_t)(p);",
        "values[to] = x[begin + (int64_t)(p) * inner], given[to] = (int64_t)(p);"};
    return all[(hone_fn_out(f, 0) >= 0) + 2 * (hone_fn_out(f, 1) >= 0)];
}
static int results(const hone_function *f, hone_function_arg *arg, int n) {
    const char *bits = hone_fn_bits(f->call->in->dtype);
    if (hone_fn_out(f, 0) >= 0) arg[n++] = HONE_FN_WRITE(bits, "values", hone_fn_out(f, 0));
    if (hone_fn_out(f, 1) >= 0) arg[n++] = HONE_FN_WRITE("int64_t", "given", hone_fn_out(f, 1));
    return n;
}
static void make(hone_function *f) {
    const hone_fact *x = f->call->in;
    const bool largest = hone_attr_int(f->call->of->attr, f->call->of->n_attr, "largest", 1) != 0;
    const char *bits = hone_fn_bits(x->dtype), *key = hone_fn_key(f, x->dtype);
    shape s;
    if (!shape_of(f->call, &s)) {
        f->failed = true;
        return;
    }
    const int64_t rows = s.outer * s.inner;
    hone_function_arg arg[8] = {HONE_FN_READ(bits, "x", 0), HONE_FN_NUMBER("n", s.n),
                                HONE_FN_NUMBER("inner", s.inner), HONE_FN_NUMBER("k", s.k)};
    const char *words = hone_arena_text(
        f->arena, "#define KEY(bits) %shone_key_%s((uint64_t)(bits))\n#define GIVE(to, p) %s\n",
        largest ? "" : "~", hone_dtypes[x->dtype].name, giving(f));
    if (is_selected(&s)) {
        const int m = (int)(s.n < HONE_FN_BLOCK ? hone_fn_power(s.n) : HONE_FN_BLOCK),
                  threads = m <= 64 ? 32 : HONE_FN_THREADS;
        hone_text body = {0};
        hone_text_put(&body, "%s#define M %d\n#define T %d\n", words ? words : "", m, threads);
        for (const char *at = select_text; *at;) { /* the sort stands where SORT is */
            const char *sort = strstr(at, "    SORT\n");
            hone_text_put(&body, "%.*s%s", sort ? (int)(sort - at) : (int)strlen(at), at,
                          sort ? hone_fn_sort_shared : "");
            at = sort ? sort + strlen("    SORT\n") : "";
        }
        hone_text_put(&body, "#undef M\n#undef T\n#undef KEY\n#undef GIVE\n");
        const char *helpers = hone_arena_text(f->arena, "%s%s", hone_fn_before, key);
        if (body.failed || !words || !helpers) f->failed = true;
        else hone_fn_launch(f, rows, threads, helpers, body.text, arg, results(f, arg, 4));
        hone_text_free(&body);
        return;
    }
    const int64_t m = hone_fn_power(s.n);
    const int keys = hone_fn_scratch(f, rows * m * 8), places = hone_fn_scratch(f, rows * m * 4);
    const hone_function_arg fill[] = {arg[0],
                                      arg[1],
                                      arg[2],
                                      HONE_FN_NUMBER("m", m),
                                      HONE_FN_SCRATCH("uint64_t", "keys", keys),
                                      HONE_FN_SCRATCH("uint32_t", "places", places)};
    const char *filling =
        hone_arena_text(f->arena,
                        "%s        const int64_t row = at / m, p = at - row * m, o = row / inner;\n"
                        "        const int there = p < n;\n"
                        "        keys[at] = there ? KEY(x[(o * n + p) * inner + row - o * inner]) : 0;\n"
                        "        places[at] = there ? (uint32_t)p : 0xffffffffu;\n#undef KEY\n#undef GIVE\n",
                        words ? words : "");
    const char *taking = hone_arena_text(
        f->arena,
        "%s        const int64_t row = at / k, j = at - row * k, o = row / inner;\n"
        "        const int64_t begin = o * n * inner + row - o * inner, to = (o * k + j) * inner + row - o * "
        "inner;\n        GIVE(to, places[row * m + j])\n#undef KEY\n#undef GIVE\n",
        words ? words : "");
    if (!filling || !taking) {
        f->failed = true;
        return;
    }
    hone_fn_each(f, rows * m, key, filling, fill, 6);
    hone_fn_sort(f, keys, places, rows, m);
    arg[4] = HONE_FN_NUMBER("m", m), arg[5] = HONE_FN_SCRATCH("uint32_t", "places", places);
    hone_fn_each(f, rows * s.k, "", taking, arg, results(f, arg, 6));
}
const hone_function_row hone_function_topk = {"topk", takes, make};
