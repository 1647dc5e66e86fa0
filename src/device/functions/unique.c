/* SPDX-License-Identifier: Apache-2.0
   unique: Unique of all elements, sorted: pairs of key and place are sorted, the lowest first; where a key
   differs from the one before a new value begins. Slices along an axis, and the order of first appearance,
   are the host's. */
#include "device/functions/functions.h"

enum { MOST_SORTED = 1 << 26 /* pairs */ };
static int64_t count_of(const hone_fact *x) {
    int64_t n;
    return hone_fact_shaped(x) && hone_count_of(x->dim, x->rank, &n) ? n : 0;
}
static bool takes(hone_function_call *c) {
    const hone_fact *x = c->in;
    const int64_t n = count_of(x);
    const bool axis = hone_attr_find(c->of->attr, c->of->n_attr, "axis") != NULL;
    if (n < 1 || !hone_fn_bits(x->dtype) || hone_fn_power(n) > MOST_SORTED || (axis && x->rank != 1) ||
        !hone_attr_int(c->of->attr, c->of->n_attr, "sorted", 1))
        return false;
    for (int k = 0; k < c->of->n_out; k++) {
        c->out[k] = (hone_fact){.dtype = k ? HONE_DTYPE_I64 : x->dtype, .rank = 1, .dim = {n}};
        c->counted[k] = k == 2 ? -1 : 0; /* the inverse has a place for every element */
    }
    return true;
}
static void make(hone_function *f) {
    const hone_fact *x = f->call->in;
    const char *bits = hone_fn_bits(x->dtype);
    const int64_t n = count_of(x), m = hone_fn_power(n);
    const int keys = hone_fn_scratch(f, m * 8), places = hone_fn_scratch(f, m * 4),
              begins = hone_fn_scratch(f, n * 8);
    const int y = hone_fn_out(f, 0), first = hone_fn_out(f, 1), inverse = hone_fn_out(f, 2),
              counts = hone_fn_out(f, 3);
    const hone_function_arg pair[] = {HONE_FN_SCRATCH("uint64_t", "keys", keys),
                                      HONE_FN_SCRATCH("uint32_t", "places", places)};
    const hone_function_arg fill[] = {HONE_FN_READ(bits, "x", 0), pair[0], pair[1], HONE_FN_NUMBER("n", n)};
    const char *filling = hone_arena_text(f->arena,
                                          "        const int there = at < n;\n"
                                          "        keys[at] = there ? ~hone_key_%s((uint64_t)x[at]) : 0;\n"
                                          "        places[at] = there ? (uint32_t)at : 0xffffffffu;\n",
                                          hone_dtypes[x->dtype].name);
    hone_function_arg arg[8] = {pair[0], pair[1], HONE_FN_SCRATCH("int64_t", "begins", begins)};
    hone_text emit = {0};
    int n_arg = 3;
    hone_text_put(&emit, "            begins[to] = at;\n");
    if (y >= 0) {
        hone_text_put(&emit, "            y[to] = x[places[at]];\n");
        arg[n_arg++] = HONE_FN_READ(bits, "x", 0), arg[n_arg++] = HONE_FN_WRITE(bits, "y", y);
    }
    if (first >= 0) {
        hone_text_put(&emit, "            first[to] = places[at];\n");
        arg[n_arg++] = HONE_FN_WRITE("int64_t", "first", first);
    }
    if (inverse >= 0) arg[n_arg++] = HONE_FN_WRITE("int64_t", "inverse", inverse);
    const hone_fn_choice heads = {.mark = "at == 0 || keys[at] != keys[at - 1]",
                                  .emit = emit.text,
                                  .each =
                                      inverse >= 0 ? "            inverse[places[at]] = upto - 1;\n" : NULL,
                                  .arg = arg,
                                  .n_arg = n_arg};
    if (emit.failed || !filling) f->failed = true;
    else {
        hone_fn_each(f, m, hone_fn_key(f, x->dtype), filling, fill, 4);
        hone_fn_sort(f, keys, places, 1, m);
        hone_fn_compact(f, n, &heads);
    }
    hone_text_free(&emit);
    if (counts < 0 || f->failed) return;
    const hone_function_arg length[] = {HONE_FN_SCRATCH("int64_t", "begins", begins),
                                        HONE_FN_READ("int64_t", "count", hone_fn_count(f)),
                                        HONE_FN_WRITE("int64_t", "counts", counts), HONE_FN_NUMBER("n", n)};
    hone_fn_each(
        f, n, "",
        "        if (at < count[0]) counts[at] = (at + 1 < count[0] ? begins[at + 1] : n) - begins[at];\n",
        length, 4);
}
const hone_function_row hone_function_unique = {"unique", takes, make};
