/* SPDX-License-Identifier: Apache-2.0
   tokenizer: com.microsoft's Tokenizer, as text vectorizers of classic models use it: what a regular
   expression finds, what lies between separators, or single characters. Rows of tokens are as long as the
   longest; the rest is padding. */
#include "host/call.h"
#include "host/regex.h"
#include "host/utf8.h"

typedef struct {
    const char *text;
    int64_t bytes;
} slice;
typedef hone_vec(slice) slices;

typedef struct {
    slices token, part, other; /* of all strings so far; room for one string's, separator by separator */
    int64_t least;             /* characters a token must have */
    hone_regex **regex;        /* one that finds tokens, or separators in turn; none: characters */
    int n_regex;
    bool finds;
} tokenizer;

static int64_t characters(const char *at, int64_t bytes) {
    const char *end = at + bytes;
    int64_t n = 0;
    uint32_t c;
    for (; at < end; n++) at += hone_utf8_read(at, end, &c);
    return n;
}

static bool push_if_long(const tokenizer *t, slices *to, const char *at, int64_t bytes) {
    return characters(at, bytes) < t->least || hone_push(to, ((slice){at, bytes}));
}

/* Past what was found; past one character where that is empty, or too short to count. */
static size_t past(const char *text, size_t bytes, size_t at, size_t n) {
    uint32_t c;
    if (n) return at + n;
    return at < bytes ? at + (size_t)hone_utf8_read(text + at, text + bytes, &c) : at + 1;
}

static bool find_tokens(tokenizer *t, slice s) {
    size_t n = (size_t)s.bytes, at, long_;
    if (characters(s.text, s.bytes) < t->least) return true;
    for (size_t from = 0; from <= n && hone_regex_find(t->regex[0], s.text, n, from, &at, &long_);) {
        bool counts = characters(s.text + at, (int64_t)long_) >= t->least;
        if (counts && !hone_push(&t->token, ((slice){s.text + at, (int64_t)long_}))) return false;
        from = past(s.text, n, at, counts ? long_ : 0);
    }
    return true;
}

static bool split(tokenizer *t, hone_regex *by, slice s) { /* into t->other */
    size_t n = (size_t)s.bytes, from = 0, at, long_;
    while (from <= n) {
        bool found = hone_regex_find(by, s.text, n, from, &at, &long_);
        if (!push_if_long(t, &t->other, s.text + from, (int64_t)((found ? at : n) - from))) return false;
        if (!found) break;
        from = past(s.text, n, at, long_);
    }
    return true;
}

static bool split_all(tokenizer *t, slice s) {
    t->part.n = 0;
    if (!hone_push(&t->part, s)) return false;
    for (int k = 0; k < t->n_regex && t->part.n; k++) {
        t->other.n = 0;
        for (int i = 0; i < t->part.n; i++)
            if (!split(t, t->regex[k], t->part.at[i])) return false;
        slices swap = t->part;
        t->part = t->other;
        t->other = swap;
    }
    for (int i = 0; i < t->part.n; i++)
        if (!hone_push(&t->token, t->part.at[i])) return false;
    return true;
}

static bool each_character(tokenizer *t, slice s) {
    uint32_t c;
    for (const char *at = s.text, *end = s.text + s.bytes; at < end;) {
        int n = hone_utf8_read(at, end, &c);
        if (!hone_push(&t->token, ((slice){at, n}))) return false;
        at += n;
    }
    return true;
}

/* Which of the three ways; the regular expressions it needs. */
static hone_status open_tokenizer(const hone_host_call *c, tokenizer *t) {
    hone_attr separators;
    const hone_attr *expression = hone_call_attr(c, "tokenexp");
    HONE_TRY(hone_call_list(c, "separators", HONE_ATTR_STRINGS, &separators));
    t->least = hone_call_int(c, "mincharnum", 1);
    if (t->least < 1)
        return hone_call_fail(c, HONE_BAD_INPUT, "mincharnum is %lld; it must be 1 or more",
                              (long long)t->least);
    t->finds = !separators.n;
    if (t->finds && (!expression || expression->kind != HONE_ATTR_STRING || !expression->s->bytes))
        return hone_call_fail(c, HONE_BAD_INPUT,
                              "one of the attributes separators and tokenexp must be given");
    const hone_string *pattern = t->finds ? expression->s : separators.s;
    int n = t->finds ? 1 : separators.n;
    if (n == 1 && (t->finds ? pattern->bytes == 1 && pattern->text[0] == '.' : !pattern->bytes)) {
        if (t->least > 1)
            return hone_call_fail(c, HONE_BAD_INPUT, "mincharnum is %lld, and a token one character",
                                  (long long)t->least);
        return HONE_OK;
    }
    if (!(t->regex = hone_alloc(sizeof *t->regex * (size_t)n))) return hone_call_no_memory(c);
    for (; t->n_regex < n; t->n_regex++) {
        hone_status s = hone_regex_create(pattern[t->n_regex].text, (size_t)pattern[t->n_regex].bytes,
                                          t->regex + t->n_regex);
        if (s) return hone_fail_at(s, "node '%s' (Tokenizer): ", c->node->name ? c->node->name : "");
    }
    return HONE_OK;
}

/* Rows of `widest` places: a mark, the tokens, a mark, padding. */
static hone_status fill(const hone_host_call *c, const tokenizer *t, const int64_t *count, int64_t widest,
                        bool mark, hone_value *y) {
    const hone_attr *padding = hone_call_attr(c, "pad_value");
    const hone_string *pad = padding && padding->kind == HONE_ATTR_STRING ? padding->s : &hone_string_empty;
    const hone_string *begin = NULL, *end = NULL, **to = y->data;
    if (!(pad = hone_strings_add(c->strings, pad->text, pad->bytes))) return hone_call_no_memory(c);
    if (mark &&
        (!(begin = hone_strings_add(c->strings, "\2", 1)) || !(end = hone_strings_add(c->strings, "\3", 1))))
        return hone_call_no_memory(c);
    const slice *s = t->token.at;
    for (int64_t r = 0, rows = hone_value_count(y) / widest; r < rows; r++, to += widest) {
        int64_t k = 0;
        if (mark) to[k++] = begin;
        for (int64_t i = 0; i < count[r]; i++, s++)
            if (!(to[k++] = hone_strings_add(c->strings, s->text, s->bytes))) return hone_call_no_memory(c);
        if (mark) to[k++] = end;
        while (k < widest) to[k++] = pad;
    }
    return HONE_OK;
}

hone_status hone_host_tokenizer(const hone_host_call *c) {
    const hone_value *x;
    hone_value *y;
    HONE_TRY(hone_call_typed(c, 0, HONE_DTYPE_STRING, &x));
    if (x->rank == HONE_MAX_RANK)
        return hone_call_fail(c, HONE_BAD_INPUT, "x has rank %d: no room for one more axis", x->rank);
    const bool mark = hone_call_int(c, "mark", 0) != 0;
    const int64_t n = hone_value_count(x);
    int64_t widest = 0, dims[HONE_MAX_RANK];
    tokenizer t = {0};
    int64_t *count = hone_alloc(sizeof *count * (size_t)n);
    hone_status s = count ? open_tokenizer(c, &t) : hone_call_no_memory(c);
    for (int64_t k = 0; k < n && !s; k++) {
        const hone_string *text = hone_value_string(x, k);
        slice all = {text->bytes ? text->text : "", text->bytes};
        int before = t.token.n;
        if (!(!t.n_regex ? each_character : t.finds ? find_tokens : split_all)(&t, all))
            s = hone_call_no_memory(c);
        count[k] = t.token.n - before;
        if (count[k] > widest) widest = count[k];
    }
    if (widest && mark) widest += 2;
    memcpy(dims, x->dim, sizeof *dims * (size_t)x->rank);
    dims[x->rank] = widest;
    if (!s) s = hone_host_out(c, 0, HONE_DTYPE_STRING, dims, x->rank + 1, &y);
    if (!s) {
        hone_call_pool(y, c->strings);
        if (widest && n) s = fill(c, &t, count, widest, mark, y);
    }
    for (int k = 0; k < t.n_regex; k++) hone_regex_destroy(t.regex[k]);
    hone_free(t.regex);
    hone_vec_free(&t.token);
    hone_vec_free(&t.part);
    hone_vec_free(&t.other);
    hone_free(count);
    return s;
}
