/* SPDX-License-Identifier: Apache-2.0
   string: ops on string tensors. Text that is made goes into the call's pool; text that is taken over stays
   in its own. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "host/lookup.h"
#include "host/regex.h"
#include "host/utf8.h"

static hone_status strings_out(const hone_host_call *c, int k, const int64_t *dims, int rank,
                               hone_value **out) {
    HONE_TRY(hone_host_out(c, k, HONE_DTYPE_STRING, dims, rank, out));
    hone_call_pool(*out, c->strings);
    return HONE_OK;
}
/* Two string operands and the dims they broadcast to. */
static hone_status pair(const hone_host_call *c, const hone_value **a, const hone_value **b, int64_t *dims,
                        int *rank) {
    HONE_TRY(hone_call_typed(c, 0, HONE_DTYPE_STRING, a));
    HONE_TRY(hone_call_typed(c, 1, HONE_DTYPE_STRING, b));
    return hone_call_broadcast(c, *a, *b, dims, rank);
}
static void put(hone_value *v, int64_t k, const hone_string *s) { ((const hone_string **)v->data)[k] = s; }

hone_status hone_host_string_concat(const hone_host_call *c) {
    const hone_value *a, *b;
    hone_value *y;
    int64_t dims[HONE_MAX_RANK];
    int rank;
    HONE_TRY(pair(c, &a, &b, dims, &rank));
    HONE_TRY(strings_out(c, 0, dims, rank, &y));
    size_t room = 64;
    char *text = hone_alloc_raw(room);
    hone_status s = text ? HONE_OK : hone_call_no_memory(c);
    for (int64_t k = 0, n = hone_value_count(y); k < n && !s; k++) {
        const hone_string *sa = hone_value_string(a, hone_call_source(a, dims, rank, k)),
                          *sb = hone_value_string(b, hone_call_source(b, dims, rank, k));
        size_t bytes;
        if (!hone_add_size((size_t)sa->bytes, (size_t)sb->bytes, &bytes)) s = hone_call_no_memory(c);
        if (!s && bytes > room) {
            char *grown = hone_realloc(text, room, bytes);
            if (grown) text = grown, room = bytes;
            else s = hone_call_no_memory(c);
        }
        if (s) break;
        if (sa->bytes) memcpy(text, sa->text, (size_t)sa->bytes);
        if (sb->bytes) memcpy(text + sa->bytes, sb->text, (size_t)sb->bytes);
        const hone_string *made = hone_strings_add(c->strings, text, (int64_t)bytes);
        if (made) put(y, k, made);
        else s = hone_call_no_memory(c);
    }
    hone_free(text);
    return s;
}

hone_status hone_host_equal_string(const hone_host_call *c) {
    const hone_value *a, *b;
    hone_value *y;
    int64_t dims[HONE_MAX_RANK];
    int rank;
    HONE_TRY(pair(c, &a, &b, dims, &rank));
    HONE_TRY(hone_host_out(c, 0, HONE_DTYPE_BOOL, dims, rank, &y));
    for (int64_t k = 0, n = hone_value_count(y); k < n; k++)
        ((uint8_t *)y->data)[k] =
            !hone_order_strings(hone_value_string(a, hone_call_source(a, dims, rank, k)),
                                hone_value_string(b, hone_call_source(b, dims, rank, k)));
    return HONE_OK;
}

/* ---- StringSplit --------------------------------------------------------------------------------------- */
static bool is_space(char ch) { return ch == ' ' || (ch >= '\t' && ch <= '\r'); }

typedef struct {
    const char *at, *end;
    int64_t left;
    bool done;
} splitter; /* left: how many splits may still be made */

/* The next part; false when there is none. */
static bool next_part(splitter *p, const hone_string *by, const char **from, int64_t *bytes) {
    if (p->done) return false;
    const char *stop = p->end;
    if (!by->bytes) {
        while (p->at < p->end && is_space(*p->at)) p->at++;
        if (p->at == p->end) return false;
        const char *q = p->at;
        while (q < p->end && !is_space(*q)) q++;
        if (p->left) stop = q;
    } else if (p->left) {
        const char *q = p->end - p->at >= by->bytes
                            ? memmem(p->at, (size_t)(p->end - p->at), by->text, (size_t)by->bytes)
                            : NULL;
        if (q) stop = q;
    }
    *from = p->at;
    *bytes = stop - p->at;
    p->left--;
    if (stop == p->end) p->done = true;
    else p->at = stop + (by->bytes ? by->bytes : 0);
    return true;
}

hone_status hone_host_string_split(const hone_host_call *c) {
    const hone_value *x;
    HONE_TRY(hone_call_typed(c, 0, HONE_DTYPE_STRING, &x));
    if (x->rank == HONE_MAX_RANK)
        return hone_call_fail(c, HONE_BAD_INPUT, "x has rank %d: no room for one more axis", x->rank);
    const hone_attr *delimiter = hone_call_attr(c, "delimiter");
    const hone_string *by =
        delimiter && delimiter->kind == HONE_ATTR_STRING ? delimiter->s : &hone_string_empty;
    int64_t most = hone_call_int(c, "maxsplit", INT64_MAX), n = hone_value_count(x), widest = 0,
            dims[HONE_MAX_RANK], bytes;
    if (most < 0) most = INT64_MAX;
    const char *part;
    hone_value *y = NULL, *z = NULL;
    if (hone_call_wants(c, 1)) HONE_TRY(hone_host_out(c, 1, HONE_DTYPE_I64, x->dim, x->rank, &z));
    for (int64_t k = 0; k < n; k++) {
        const hone_string *s = hone_value_string(x, k);
        int64_t count = 0;
        for (splitter p = {s->text, s->text + s->bytes, most, false}; next_part(&p, by, &part, &bytes);)
            count++;
        if (z) ((int64_t *)z->data)[k] = count;
        if (count > widest) widest = count;
    }
    if (!hone_call_wants(c, 0)) return HONE_OK;
    memcpy(dims, x->dim, sizeof *dims * (size_t)x->rank);
    dims[x->rank] = widest;
    HONE_TRY(strings_out(c, 0, dims, x->rank + 1, &y));
    for (int64_t k = 0; k < n; k++) {
        const hone_string *s = hone_value_string(x, k);
        splitter p = {s->text, s->text + s->bytes, most, false};
        for (int64_t i = 0; i < widest; i++) {
            const hone_string *made = &hone_string_empty;
            if (next_part(&p, by, &part, &bytes) && !(made = hone_strings_add(c->strings, part, bytes)))
                return hone_call_no_memory(c);
            put(y, k * widest + i, made);
        }
    }
    return HONE_OK;
}

/* ---- StringNormalizer ---------------------------------------------------------------------------------- */
/* A copy in the pool with every letter changed. */
static const hone_string *change_case(hone_strings *pool, const hone_string *s,
                                      uint32_t (*change)(uint32_t)) {
    /* a letter and its other case differ by one byte at most */
    char *text = hone_alloc((size_t)s->bytes * 2 + 4), *to = text;
    if (!text) return NULL;
    for (const char *at = s->text, *end = s->text + s->bytes; at < end;) {
        uint32_t ch;
        int n = hone_utf8_read(at, end, &ch);
        if (ch == 0xFFFD) { /* bytes that are no text stay */
            memcpy(to, at, (size_t)n);
            to += n;
        } else to += hone_utf8_write(to, change(ch));
        at += n;
    }
    const hone_string *made = hone_strings_add(pool, text, to - text);
    hone_free(text);
    return made;
}

static hone_status normalize(const hone_host_call *c, const hone_value *x, const hone_lookup *stops,
                             bool sensitive, int action) {
    int64_t n = hone_value_count(x), kept = 0;
    const hone_string **word = hone_alloc(sizeof *word * (size_t)n);
    if (!word) return hone_call_no_memory(c);
    hone_status s = HONE_OK;
    for (int64_t k = 0; k < n && !s; k++) {
        const hone_string *w = hone_value_string(x, k),
                          *compared = sensitive ? w : change_case(c->strings, w, hone_utf8_lower);
        if (!compared) s = hone_call_no_memory(c);
        else if (stops->n && hone_lookup_string(stops, compared) >= 0) continue;
        else if (!(word[kept++] =
                       action == 2 ? hone_strings_add(c->strings, w->text, w->bytes)
                                   : change_case(c->strings, w, action ? hone_utf8_upper : hone_utf8_lower)))
            s = hone_call_no_memory(c);
    }
    hone_value *y;
    int64_t dims[2] = {1, 1};
    dims[x->rank - 1] = kept ? kept : 1; /* nothing left: one empty string */
    if (!s) s = strings_out(c, 0, dims, x->rank, &y);
    if (!s && !kept) put(y, 0, &hone_string_empty);
    for (int64_t k = 0; k < kept && !s; k++) put(y, k, word[k]);
    hone_free(word);
    return s;
}

hone_status hone_host_string_normalizer(const hone_host_call *c) {
    static const char *const actions[] = {"LOWER", "UPPER", "NONE", NULL};
    const hone_value *x;
    hone_attr stopwords;
    int action;
    HONE_TRY(hone_call_typed(c, 0, HONE_DTYPE_STRING, &x));
    if (x->rank != 1 && !(x->rank == 2 && x->dim[0] == 1))
        return hone_call_fail(c, HONE_BAD_INPUT, "x must have shape [C] or [1, C]");
    HONE_TRY(hone_call_list(c, "stopwords", HONE_ATTR_STRINGS, &stopwords));
    HONE_TRY(hone_call_choice(c, "case_change_action", actions, 2, &action));
    bool sensitive = hone_call_int(c, "is_case_sensitive", 0) != 0;
    hone_string *small = hone_alloc(sizeof *small * (size_t)stopwords.n);
    if (!small) return hone_call_no_memory(c);
    hone_status s = HONE_OK;
    for (int k = 0; k < stopwords.n && !s; k++) {
        const hone_string *w =
            sensitive ? stopwords.s + k : change_case(c->strings, stopwords.s + k, hone_utf8_lower);
        if (w) small[k] = *w;
        else s = hone_call_no_memory(c);
    }
    stopwords.s = small;
    hone_lookup stops = {0};
    if (!s) s = hone_lookup_attr(c, &stopwords, &stops);
    if (!s) s = normalize(c, x, &stops, sensitive, action);
    hone_lookup_free(&stops);
    hone_free(small);
    return s;
}

/* ---- RegexFullMatch ------------------------------------------------------------------------------------ */
hone_status hone_host_regex_full_match(const hone_host_call *c) {
    const hone_value *x;
    hone_value *y;
    HONE_TRY(hone_call_typed(c, 0, HONE_DTYPE_STRING, &x));
    const hone_attr *pattern = hone_call_attr(c, "pattern");
    if (!pattern || pattern->kind != HONE_ATTR_STRING)
        return hone_call_fail(c, HONE_BAD_INPUT, "attribute pattern is missing");
    HONE_TRY(hone_host_out(c, 0, HONE_DTYPE_BOOL, x->dim, x->rank, &y));
    hone_regex *regex;
    hone_status s = hone_regex_create(pattern->s->text, (size_t)pattern->s->bytes, &regex);
    if (s) return hone_fail_at(s, "node '%s' (RegexFullMatch): ", c->node->name ? c->node->name : "");
    for (int64_t k = 0, n = hone_value_count(x); k < n; k++) {
        const hone_string *text = hone_value_string(x, k);
        ((uint8_t *)y->data)[k] = hone_regex_matches(regex, text->text, (size_t)text->bytes);
    }
    hone_regex_destroy(regex);
    return HONE_OK;
}
