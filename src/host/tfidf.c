/* SPDX-License-Identifier: Apache-2.0
   tfidf: TfIdfVectorizer: counts of the n-grams of a pool in rows of tokens.

   Tokens become numbers first (a string: its place in the pool's sorted strings), so that grams are short
   lists of numbers, sorted by length and content, and found by halving. */
#include "host/lookup.h"

typedef struct {
    int64_t *pool;              /* all grams' tokens */
    int64_t *start, *length, n; /* grams; gram k is the pool's k-th and goes to column index[k] */
    int64_t *order;             /* grams sorted */
    const int64_t *index;
    const double *weight; /* or NULL: 1 */
} grams;

/* Lexicographic, after length. */
static int compare_tokens(const int64_t *a, int64_t na, int64_t step_a, const int64_t *b, int64_t nb,
                          int64_t step_b) {
    if (na != nb) return na < nb ? -1 : 1;
    for (int64_t k = 0; k < na; k++)
        if (a[k * step_a] != b[k * step_b]) return a[k * step_a] < b[k * step_b] ? -1 : 1;
    return 0;
}
static int compare_grams(const void *with, int64_t a, int64_t b) {
    const grams *g = with;
    return compare_tokens(g->pool + g->start[a], g->length[a], 1, g->pool + g->start[b], g->length[b], 1);
}

static int64_t find_gram(const grams *g, const int64_t *token, int64_t n, int64_t step) {
    int64_t lo = 0, hi = g->n - 1;
    while (lo <= hi) {
        int64_t mid = lo + (hi - lo) / 2, at = g->order[mid];
        int d = compare_tokens(g->pool + g->start[at], g->length[at], 1, token, n, step);
        if (!d) return at;
        if (d < 0) lo = mid + 1;
        else hi = mid - 1;
    }
    return -1;
}

/* Cuts the pool into grams by ngram_counts: the place where 1-grams, 2-grams, … begin. */
static hone_status cut(const hone_host_call *c, grams *g, int64_t pool, const hone_attr *counts,
                       const hone_attr *indexes) {
    g->n = 0;
    for (int k = 0; k < counts->n; k++) {
        int64_t from = counts->i[k], to = k + 1 < counts->n ? counts->i[k + 1] : pool, length = k + 1;
        if (from < 0 || to < from || to > pool || (to - from) % length)
            return hone_call_fail(c, HONE_BAD_INPUT,
                                  "ngram_counts[%d] is %lld: %d-grams do not fit between there and %lld", k,
                                  (long long)from, k + 1, (long long)to);
        for (int64_t at = from; at < to; at += length) {
            if (g->n >= indexes->n)
                return hone_call_fail(c, HONE_BAD_INPUT,
                                      "ngram_indexes has %d entries, the pool has more n-grams", indexes->n);
            g->start[g->n] = at;
            g->length[g->n] = length;
            g->order[g->n] = g->n;
            g->n++;
        }
    }
    return hone_order_sort(g->order, g->n, compare_grams, g) ? HONE_OK : hone_call_no_memory(c);
}

static void count_row(const grams *g, const int64_t *token, int64_t n, int64_t least, int64_t most,
                      int64_t skips, int mode, float *y) {
    for (int64_t length = least; length <= most && length <= n; length++)
        for (int64_t skip = 0; skip <= skips && (length > 1 ? (length - 1) * (skip + 1) < n : !skip);
             skip++) {
            int64_t reach = length > 1 ? (length - 1) * (skip + 1) : 0;
            for (int64_t at = 0; at + reach < n; at++) {
                int64_t k = find_gram(g, token + at, length, skip + 1);
                if (k < 0) continue;
                float w = g->weight && mode ? (float)g->weight[k] : 1, *to = y + g->index[k];
                if (mode == 1) *to = w; /* IDF: there or not */
                else *to += w;
            }
        }
}

static hone_status vectorize(const hone_host_call *c, const hone_value *x, grams *g, const hone_lookup *words,
                             int64_t columns, int mode, int64_t *token) {
    hone_value *y;
    int64_t n = x->rank ? x->dim[x->rank - 1] : 0, rows = x->rank == 2 ? x->dim[0] : 1;
    int64_t dims[2] = {rows, columns}, least = hone_call_int(c, "min_gram_length", 1),
            most = hone_call_int(c, "max_gram_length", 1);
    int64_t skips = hone_call_int(c, "max_skip_count", 0);
    if (least < 1 || most < least || skips < 0)
        return hone_call_fail(c, HONE_BAD_INPUT,
                              "min_gram_length %lld, max_gram_length %lld and max_skip_count %lld do not fit",
                              (long long)least, (long long)most, (long long)skips);
    if (skips > n) skips = n;
    HONE_TRY(hone_host_out(c, 0, HONE_DTYPE_F32, dims + (x->rank == 1), x->rank, &y));
    if (y->bytes) memset(y->data, 0, y->bytes);
    for (int64_t r = 0; r < rows && n; r++) {
        for (int64_t k = 0; k < n; k++)
            token[k] = words->n ? hone_lookup_element(words, x, r * n + k) : hone_value_i64(x, r * n + k);
        count_row(g, token, n, least, most, skips, mode, (float *)y->data + r * columns);
    }
    return HONE_OK;
}

hone_status hone_host_tfidf(const hone_host_call *c) {
    static const char *const modes[] = {"TF", "IDF", "TFIDF", NULL};
    const hone_value *x;
    hone_attr counts, indexes, ints, strings, weights;
    int mode;
    HONE_TRY(hone_call_tensor(c, 0, &x));
    HONE_TRY(hone_call_list(c, "ngram_counts", HONE_ATTR_INTS, &counts));
    HONE_TRY(hone_call_list(c, "ngram_indexes", HONE_ATTR_INTS, &indexes));
    HONE_TRY(hone_call_list(c, "pool_int64s", HONE_ATTR_INTS, &ints));
    HONE_TRY(hone_call_list(c, "pool_strings", HONE_ATTR_STRINGS, &strings));
    HONE_TRY(hone_call_list(c, "weights", HONE_ATTR_FLOATS, &weights));
    HONE_TRY(hone_call_choice(c, "mode", modes, 0, &mode));
    bool text = x->dtype == HONE_DTYPE_STRING;
    if (x->rank < 1 || x->rank > 2)
        return hone_call_fail(c, HONE_BAD_INPUT, "x has rank %d; it must be [C] or [N, C]", x->rank);
    if (!text && x->dtype != HONE_DTYPE_I32 && x->dtype != HONE_DTYPE_I64)
        return hone_call_fail(c, HONE_BAD_INPUT, "x is of type %s; it must be string, i32 or i64",
                              hone_dtypes[x->dtype].name);
    if (text ? !strings.n : !ints.n)
        return hone_call_fail(c, HONE_BAD_INPUT, "attribute %s is missing: it goes with the type of x",
                              text ? "pool_strings" : "pool_int64s");
    if (weights.n && weights.n != indexes.n)
        return hone_call_fail(c, HONE_BAD_INPUT, "weights has %d entries, ngram_indexes %d", weights.n,
                              indexes.n);
    int64_t columns = 0, pool = text ? strings.n : ints.n, n = x->dim[x->rank - 1];
    for (int k = 0; k < indexes.n; k++) {
        if (indexes.i[k] < 0 || indexes.i[k] > INT32_MAX)
            return hone_call_fail(c, HONE_BAD_INPUT, "ngram_indexes[%d] is %lld", k, (long long)indexes.i[k]);
        if (indexes.i[k] >= columns) columns = indexes.i[k] + 1;
    }
    size_t bytes = sizeof(int64_t) * ((size_t)pool + 3 * (size_t)indexes.n), tokens;
    if (!hone_mul_size((size_t)n, sizeof(int64_t), &tokens) || !hone_add_size(bytes, tokens, &bytes))
        return hone_call_no_memory(c);
    int64_t *room = hone_alloc(bytes);
    if (!room) return hone_call_no_memory(c);
    grams g = {.pool = room,
               .start = room + pool,
               .length = room + pool + indexes.n,
               .order = room + pool + 2 * indexes.n,
               .index = indexes.i,
               .weight = weights.n ? weights.f : NULL};
    hone_lookup words = {0};
    hone_status s = text ? hone_lookup_attr(c, &strings, &words) : HONE_OK;
    for (int64_t k = 0; k < pool && !s; k++)
        room[k] = text ? hone_lookup_string(&words, strings.s + k) : ints.i[k];
    if (!s) s = cut(c, &g, pool, &counts, &indexes);
    if (!s) s = vectorize(c, x, &g, &words, columns, mode, room + pool + 3 * indexes.n);
    hone_lookup_free(&words);
    hone_free(room);
    return s;
}
