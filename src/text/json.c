/* SPDX-License-Identifier: Apache-2.0
   json: see json.h. Depth is bounded, so that no text exhausts the stack. */
#include "text/json.h"

#include <stdlib.h>
#include <string.h>

#include "host/utf8.h"

enum { DEPTH = 64 };
typedef struct {
    hone_arena *arena;
    const char *begin, *at, *end;
    int depth;
    hone_status status;
} reader;

static bool bad(reader *r, const char *what) {
    if (!r->status)
        r->status = hone_fail(HONE_BAD_INPUT, "byte %lld: %s", (long long)(r->at - r->begin), what);
    return false;
}
static bool no_memory(reader *r) {
    if (!r->status) r->status = hone_fail(HONE_NO_MEMORY, "no memory for JSON");
    return false;
}
static void skip(reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) r->at++;
}
static bool take(reader *r, const char *word) {
    const size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0) return false;
    r->at += n;
    return true;
}
static bool hex4(reader *r, uint32_t *out) {
    *out = 0;
    for (int k = 0; k < 4; k++, r->at++) {
        const char c = r->at < r->end ? *r->at : 0;
        const int digit = c >= '0' && c <= '9'                 ? c - '0'
                          : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                               : -1;
        if (digit < 0) return bad(r, "four hexadecimal digits are missing");
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}
static bool escaped(reader *r, char **to) {
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    const char c = r->at < r->end ? *r->at++ : 0;
    const char *plain = c ? strchr(from, c) : NULL;
    uint32_t code, low;
    if (plain) return *(*to)++ = into[plain - from], true;
    if (c != 'u') return bad(r, "an escape that is none");
    if (!hex4(r, &code)) return false;
    if (code >= 0xD800 && code < 0xDC00 && take(r, "\\u")) {
        if (!hex4(r, &low)) return false;
        code = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : 0xFFFD;
    } else if (code >= 0xD800 && code < 0xE000) code = 0xFFFD;
    *to += hone_utf8_write(*to, code);
    return true;
}
static bool read_text(reader *r, const char **out, size_t *bytes) {
    if (!take(r, "\"")) return bad(r, "a text is missing");
    const char *stop = r->at;
    while (stop < r->end && *stop != '"') stop += *stop == '\\' ? 2 : 1;
    if (stop >= r->end) return bad(r, "a text has no end");
    char *text = hone_arena_alloc(r->arena, (size_t)(stop - r->at) + 1), *to = text;
    if (!text) return no_memory(r);
    while (r->at < stop)
        if (*r->at == '\\') {
            r->at++;
            if (!escaped(r, &to)) return false;
        } else *to++ = *r->at++;
    r->at++;
    *out = text, *bytes = (size_t)(to - text);
    return true;
}
static hone_tree *read_tree(reader *);
static bool read_members(reader *r, hone_tree *t, char close) {
    hone_tree **to = &t->first;
    for (skip(r); r->at < r->end && *r->at != close; skip(r)) {
        const char *key = NULL;
        size_t bytes;
        if (t->n && !take(r, ",")) return bad(r, "a comma is missing");
        skip(r);
        if (close == '}' && !read_text(r, &key, &bytes)) return false;
        skip(r);
        if (close == '}' && !take(r, ":")) return bad(r, "a colon is missing");
        if (!(*to = read_tree(r))) return false;
        (*to)->key = key, to = &(*to)->next, t->n++;
    }
    if (r->at >= r->end) return bad(r, "a list or an object has no end");
    r->at++;
    return true;
}
static hone_tree *read_tree(reader *r) {
    static const struct {
        const char *word;
        hone_tree_kind kind;
        double number;
    } words[] = {{"null", HONE_TREE_NULL, 0}, {"true", HONE_TREE_BOOL, 1}, {"false", HONE_TREE_BOOL, 0}};
    hone_tree *t = hone_arena_alloc(r->arena, sizeof *t);
    if (!t) return no_memory(r), NULL;
    skip(r);
    if (r->at >= r->end) return bad(r, "a value is missing"), NULL;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (take(r, words[k].word)) return t->kind = words[k].kind, t->number = words[k].number, t;
    if (*r->at == '"') {
        t->kind = HONE_TREE_TEXT;
        return read_text(r, &t->text, &t->bytes) ? t : NULL;
    }
    if (*r->at == '{' || *r->at == '[') {
        const char close = *r->at++ == '{' ? '}' : ']';
        t->kind = close == '}' ? HONE_TREE_OBJECT : HONE_TREE_LIST;
        if (++r->depth > DEPTH) return bad(r, "values too deep in each other"), NULL;
        if (!read_members(r, t, close)) return NULL;
        return r->depth--, t;
    }
    char number[48] = "", *behind;
    size_t n = 0;
    while (n < sizeof number - 1 && r->at + n < r->end && r->at[n] && strchr("+-.0123456789eE", r->at[n]))
        n++;
    memcpy(number, r->at, n);
    t->kind = HONE_TREE_NUMBER, t->number = strtod(number, &behind);
    if (!n || behind != number + n) return bad(r, "a value that is none"), NULL;
    return r->at += n, t;
}
hone_status hone_tree_read(hone_arena *a, const char *text, size_t bytes, const hone_tree **out) {
    reader r = {a, text, text, text + bytes, 0, HONE_OK};
    const hone_tree *t = read_tree(&r);
    skip(&r);
    if (t && r.at < r.end) bad(&r, "something follows the value");
    if (!r.status) *out = t;
    return r.status;
}
const hone_tree *hone_tree_get(const hone_tree *t, const char *key) {
    if (t && t->kind == HONE_TREE_OBJECT)
        for (const hone_tree *m = t->first; m; m = m->next)
            if (!strcmp(m->key, key)) return m;
    return NULL;
}
const char *hone_tree_text(const hone_tree *t, const char *key, const char *otherwise) {
    const hone_tree *m = hone_tree_get(t, key);
    return m && m->kind == HONE_TREE_TEXT ? m->text : otherwise;
}
bool hone_tree_bool(const hone_tree *t, const char *key, bool otherwise) {
    const hone_tree *m = hone_tree_get(t, key);
    return m && m->kind == HONE_TREE_BOOL ? m->number != 0 : otherwise;
}
