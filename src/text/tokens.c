/* SPDX-License-Identifier: Apache-2.0
   tokens: see tokens.h. Text is normalized, cut into words, and each word becomes tokens by the model's rule:

     normalize   lower case, marks off letters, spaces by a mark of their own (words.c)
     cut         words of letters, of numbers, of neither, as BERT, GPT-2 and the patterns after it do
     WordPiece   the longest piece that the vocabulary has, again and again
     BPE         symbols; of neighbours that can be joined, those first that were learnt first */
#include "text/tokens.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "host/utf8.h"
#include "text/json.h"
#include "text/words.h"

enum { MOST_STEPS = 8, MOST_MARKS = 16, MOST_BYTES = 512 << 20 };

/* ---- a table from texts, and from pairs, to numbers ---------------------------------------------------- */
typedef struct {
    const char *text; /* NULL: free. Of pairs: "" */
    size_t bytes;
    int64_t a, b; /* of pairs; of texts 0 */
    int32_t id, rank;
} entry;
typedef struct {
    entry *at;
    size_t room; /* a power of two */
} table;
static uint64_t hash(const char *text, size_t bytes, int64_t a, int64_t b) {
    uint64_t h = 1469598103934665603u ^ (uint64_t)a * 0x9e3779b97f4a7c15u ^ (uint64_t)b * 0xbf58476d1ce4e5b9u;
    for (size_t k = 0; k < bytes; k++) h = (h ^ (uint8_t)text[k]) * 1099511628211u;
    return h ^ h >> 29;
}
static entry *place(const table *t, const char *text, size_t bytes, int64_t a, int64_t b) {
    for (size_t k = hash(text, bytes, a, b);; k++) {
        entry *e = t->at + (k & (t->room - 1));
        if (!e->text || (e->a == a && e->b == b && e->bytes == bytes && !memcmp(e->text, text, bytes)))
            return e;
    }
}
static bool make_table(table *t, size_t n) {
    for (t->room = 16; t->room < 2 * n; t->room *= 2) {}
    return (t->at = hone_alloc(sizeof *t->at * t->room)) != NULL;
}
static int32_t find(const table *t, const char *text, size_t bytes) {
    const entry *e = place(t, text, bytes, 0, 0);
    return e->text ? e->id : -1;
}

/* ---- what a file says ---------------------------------------------------------------------------------- */
struct hone_tokenizer {
    hone_arena *arena;
    table vocabulary, merges;
    hone_change_step change[MOST_STEPS];
    hone_cut_step cut[MOST_STEPS];
    int n_change, n_cut;
    bool apart; /* while reading: marks stand by themselves, until something takes them away */
    bool bpe, bytes /* symbols are bytes, each written as a character */, fallback, fuse, whole_words;
    int32_t of_byte[256]; /* -1: there is none */
    int32_t unknown;      /* -1: none */
    const char *prefix;   /* WordPiece: before what goes on; BPE: likewise, of symbols */
    size_t longest;       /* characters of a word; beyond it is unknown */
    int64_t before[MOST_MARKS], after[MOST_MARKS], padding;
    int n_before, n_after;
    hone_vec(char) text;      /* as it is normalized */
    hone_vec(int32_t) symbol; /* of a word */
};
typedef hone_tokenizer tokenizer;

static hone_status no_memory(void) { return hone_fail(HONE_NO_MEMORY, "no memory for a tokenizer"); }
static hone_status lacks(const char *part, const char *what) {
    return hone_fail(HONE_NOT_SUPPORTED, "%s '%s' is none that Hone has", part, what);
}
static hone_status add_change(tokenizer *t, hone_change what, const char *from, const char *to) {
    if (t->n_change == MOST_STEPS) return hone_fail(HONE_NOT_SUPPORTED, "too many normalizers");
    t->change[t->n_change++] = (hone_change_step){what, from, to};
    return HONE_OK;
}
static hone_status add_cut(tokenizer *t, hone_cut_step c) {
    if (t->n_cut == MOST_STEPS) return hone_fail(HONE_NOT_SUPPORTED, "too many pre-tokenizers");
    t->cut[t->n_cut++] = c;
    return HONE_OK;
}
static hone_status read_change(tokenizer *t, const hone_tree *n) {
    const char *type = hone_tree_text(n, "type", "");
    const hone_tree *pattern = hone_tree_get(n, "pattern");
    if (!n || n->kind == HONE_TREE_NULL || !strcmp(type, "NFC") || !strcmp(type, "NFKC")) return HONE_OK;
    if (!strcmp(type, "Sequence")) {
        const hone_tree *list = hone_tree_get(n, "normalizers");
        for (const hone_tree *m = list ? list->first : NULL; m; m = m->next) HONE_TRY(read_change(t, m));
        return HONE_OK;
    }
    if (!strcmp(type, "BertNormalizer")) {
        const bool lower = hone_tree_bool(n, "lowercase", true);
        if (hone_tree_bool(n, "clean_text", true)) HONE_TRY(add_change(t, HONE_CHANGE_CLEAN, NULL, NULL));
        if (hone_tree_bool(n, "handle_chinese_chars", true))
            HONE_TRY(add_change(t, HONE_CHANGE_IDEOGRAPHS, NULL, NULL));
        if (hone_tree_bool(n, "strip_accents", lower))
            HONE_TRY(add_change(t, HONE_CHANGE_UNMARK, NULL, NULL));
        return lower ? add_change(t, HONE_CHANGE_LOWER, NULL, NULL) : HONE_OK;
    }
    if (!strcmp(type, "Lowercase")) return add_change(t, HONE_CHANGE_LOWER, NULL, NULL);
    if (!strcmp(type, "NFD")) return t->apart = true, HONE_OK; /* the next one takes the marks away */
    if (!strcmp(type, "StripAccents") && t->apart)
        return t->apart = false, add_change(t, HONE_CHANGE_UNMARK_ALL, NULL, NULL);
    if (!strcmp(type, "Prepend"))
        return add_change(t, HONE_CHANGE_PREPEND, NULL, hone_tree_text(n, "prepend", ""));
    if (!strcmp(type, "Strip") && hone_tree_bool(n, "strip_left", true) &&
        hone_tree_bool(n, "strip_right", true))
        return add_change(t, HONE_CHANGE_STRIP, NULL, NULL);
    if (!strcmp(type, "Replace") && *hone_tree_text(pattern, "String", ""))
        return add_change(t, HONE_CHANGE_REPLACE, hone_tree_text(pattern, "String", ""),
                          hone_tree_text(n, "content", ""));
    return lacks("normalizer", type);
}
/* Patterns of well-known models, each an arm of one way to cut. */
static const struct {
    const char *pattern;
    bool newer;
    int digits;
} patterns[] = {
    {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", false, 0},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
     "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     true, 3},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
     "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     true, 1},
};
static hone_status read_cut(tokenizer *t, const hone_tree *n) {
    const char *type = hone_tree_text(n, "type", "");
    if (!n || n->kind == HONE_TREE_NULL) return HONE_OK;
    if (!strcmp(type, "Sequence")) {
        const hone_tree *list = hone_tree_get(n, "pretokenizers");
        for (const hone_tree *m = list ? list->first : NULL; m; m = m->next) HONE_TRY(read_cut(t, m));
        return HONE_OK;
    }
    if (!strcmp(type, "BertPreTokenizer")) return add_cut(t, (hone_cut_step){.what = HONE_CUT_BERT});
    if (!strcmp(type, "WhitespaceSplit")) return add_cut(t, (hone_cut_step){.what = HONE_CUT_SPACES});
    if (!strcmp(type, "Whitespace")) return add_cut(t, (hone_cut_step){.what = HONE_CUT_WORDS});
    if (!strcmp(type, "Punctuation") && !strcmp(hone_tree_text(n, "behavior", "Isolated"), "Isolated"))
        return add_cut(t, (hone_cut_step){.what = HONE_CUT_PUNCTUATION});
    if (!strcmp(type, "Digits"))
        return add_cut(t, (hone_cut_step){.what = HONE_CUT_DIGITS,
                                          .single = hone_tree_bool(n, "individual_digits", false)});
    if (!strcmp(type, "ByteLevel")) {
        t->bytes = true;
        if (hone_tree_bool(n, "use_regex", true))
            return add_cut(t, (hone_cut_step){.what = HONE_CUT_GPT,
                                              .prefix = hone_tree_bool(n, "add_prefix_space", true)});
        return hone_tree_bool(n, "add_prefix_space", true) ? add_change(t, HONE_CHANGE_PREPEND, " ", " ")
                                                           : HONE_OK;
    }
    if (!strcmp(type, "Metaspace")) {
        const char *scheme = hone_tree_text(n, "prepend_scheme", "always");
        return add_cut(
            t, (hone_cut_step){.what = HONE_CUT_META,
                               .spaces = hone_tree_text(n, "replacement", "\xE2\x96\x81"),
                               .prefix = hone_tree_bool(n, "add_prefix_space", strcmp(scheme, "never") != 0),
                               .apart = hone_tree_bool(n, "split", true)});
    }
    if (!strcmp(type, "Split") && !strcmp(hone_tree_text(n, "behavior", ""), "Isolated") &&
        !hone_tree_bool(n, "invert", false)) {
        const char *pattern = hone_tree_text(hone_tree_get(n, "pattern"), "Regex", "");
        for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++)
            if (!strcmp(patterns[k].pattern, pattern))
                return add_cut(t, (hone_cut_step){.what = HONE_CUT_GPT,
                                                  .newer = patterns[k].newer,
                                                  .digits = patterns[k].digits});
        return lacks("the pattern to split hone_word_list by", pattern);
    }
    return lacks("pre-tokenizer", type);
}
static int64_t id_of(const hone_tree *n) { /* -1: it is none */
    return n && n->kind == HONE_TREE_NUMBER && n->number >= 0 && n->number < 1 << 30 ? (int64_t)n->number
                                                                                     : -1;
}
static hone_status add_mark(int64_t *to, int *n, int64_t id) {
    if (*n == MOST_MARKS || id < 0)
        return hone_fail(HONE_NOT_SUPPORTED, "the marks around a text are unknown or too many");
    to[(*n)++] = id;
    return HONE_OK;
}
static hone_status read_marks(tokenizer *t, const hone_tree *n) {
    const char *type = hone_tree_text(n, "type", "");
    if (!n || n->kind == HONE_TREE_NULL || !strcmp(type, "ByteLevel")) return HONE_OK;
    if (!strcmp(type, "Sequence")) {
        const hone_tree *list = hone_tree_get(n, "processors");
        for (const hone_tree *m = list ? list->first : NULL; m; m = m->next) HONE_TRY(read_marks(t, m));
        return HONE_OK;
    }
    if (!strcmp(type, "BertProcessing") || !strcmp(type, "RobertaProcessing")) { /* ["[CLS]", 101] */
        const hone_tree *cls = hone_tree_get(n, "cls"), *sep = hone_tree_get(n, "sep");
        if (!cls || !sep || cls->n != 2 || sep->n != 2)
            return hone_fail(HONE_BAD_INPUT, "%s has no cls and sep", type);
        HONE_TRY(add_mark(t->before, &t->n_before, id_of(cls->first->next)));
        return add_mark(t->after, &t->n_after, id_of(sep->first->next));
    }
    if (strcmp(type, "TemplateProcessing") != 0) return lacks("post-processor", type);
    const hone_tree *single = hone_tree_get(n, "single"), *special = hone_tree_get(n, "special_tokens");
    bool behind = false;
    for (const hone_tree *m = single ? single->first : NULL; m; m = m->next) {
        const hone_tree *mark = hone_tree_get(m, "SpecialToken");
        if (!mark) behind = true;
        const hone_tree *row = mark ? hone_tree_get(special, hone_tree_text(mark, "id", "")) : NULL,
                        *ids = hone_tree_get(row, "ids");
        for (const hone_tree *id = ids ? ids->first : NULL; id; id = id->next)
            HONE_TRY(behind ? add_mark(t->after, &t->n_after, id_of(id))
                            : add_mark(t->before, &t->n_before, id_of(id)));
        if (mark && !ids)
            return hone_fail(HONE_BAD_INPUT, "special token '%s' has no ids", hone_tree_text(mark, "id", ""));
    }
    return HONE_OK;
}
/* GPT-2 writes each byte as a character that can be seen: those of Latin-1 as themselves, the others behind
   U+0100. */
static uint32_t seen_byte(int b) {
    uint32_t n = 0;
    for (int k = 0; k <= b; k++) {
        const bool plain = (k >= '!' && k <= '~') || (k >= 0xA1 && k <= 0xAC) || k >= 0xAE;
        if (k == b) return plain ? (uint32_t)k : 256 + n;
        n += !plain;
    }
    return 0;
}
static hone_status read_merges(tokenizer *t, const hone_tree *merges) {
    int32_t rank = 0;
    if (!make_table(&t->merges, (size_t)(merges ? merges->n : 0) + 1)) return no_memory();
    for (const hone_tree *m = merges ? merges->first : NULL; m; m = m->next, rank++) {
        const char *a = NULL, *b = NULL;
        size_t n_a = 0, n_b = 0;
        if (m->kind == HONE_TREE_TEXT &&
            (b = memchr(m->text + (m->bytes > 0), ' ', m->bytes - (m->bytes > 0))))
            a = m->text, n_a = (size_t)(b - a), b++, n_b = m->bytes - n_a - 1;
        else if (m->kind == HONE_TREE_LIST && m->n == 2 && m->first->text && m->first->next->text)
            a = m->first->text, n_a = m->first->bytes, b = m->first->next->text, n_b = m->first->next->bytes;
        if (!a || !b) return hone_fail(HONE_BAD_INPUT, "merge %d is no pair", rank + 1);
        const size_t skip = t->prefix && n_b > strlen(t->prefix) && !memcmp(b, t->prefix, strlen(t->prefix))
                                ? strlen(t->prefix)
                                : 0;
        char *both = hone_arena_alloc(t->arena, n_a + n_b + 1);
        if (!both) return no_memory();
        memcpy(both, a, n_a), memcpy(both + n_a, b + skip, n_b - skip);
        const int32_t x = find(&t->vocabulary, a, n_a), y = find(&t->vocabulary, b, n_b),
                      z = find(&t->vocabulary, both, n_a + n_b - skip);
        if (x < 0 || y < 0 || z < 0)
            return hone_fail(HONE_BAD_INPUT, "merge %d is of tokens that are not in the vocabulary",
                             rank + 1);
        entry *e = place(&t->merges, "", 0, x + 1, y + 1);
        if (!e->text) *e = (entry){"", 0, x + 1, y + 1, z, rank};
    }
    return HONE_OK;
}
static hone_status read_model(tokenizer *t, const hone_tree *root) {
    const hone_tree *model = hone_tree_get(root, "model"), *vocab = hone_tree_get(model, "vocab");
    const hone_tree *added = hone_tree_get(root, "added_tokens");
    const char *type = hone_tree_text(model, "type", hone_tree_get(model, "merges") ? "BPE" : "WordPiece");
    t->bpe = !strcmp(type, "BPE");
    if (!t->bpe && strcmp(type, "WordPiece") != 0) return lacks("model", type);
    if (!vocab || vocab->kind != HONE_TREE_OBJECT)
        return hone_fail(HONE_BAD_INPUT, "the model has no vocabulary");
    if (!make_table(&t->vocabulary, (size_t)vocab->n + (size_t)(added ? added->n : 0) + 1))
        return no_memory();
    for (const hone_tree *m = vocab->first; m; m = m->next) {
        const size_t n = strlen(m->key);
        if (id_of(m) < 0) return hone_fail(HONE_BAD_INPUT, "token '%s' has no number", m->key);
        *place(&t->vocabulary, m->key, n, 0, 0) = (entry){m->key, n, 0, 0, (int32_t)m->number, 0};
    }
    const char *unknown = hone_tree_text(model, "unk_token", NULL);
    t->unknown = unknown ? find(&t->vocabulary, unknown, strlen(unknown)) : -1;
    t->prefix = hone_tree_text(model, "continuing_subword_prefix", t->bpe ? NULL : "##");
    if (t->prefix && !*t->prefix) t->prefix = NULL;
    const hone_tree *longest = hone_tree_get(model, "max_input_chars_per_word");
    t->longest = longest && longest->number > 0 ? (size_t)longest->number : 100;
    t->fallback = hone_tree_bool(model, "byte_fallback", false),
    t->fuse = hone_tree_bool(model, "fuse_unk", false);
    t->whole_words = hone_tree_bool(model, "ignore_merges", false);
    if (*hone_tree_text(model, "end_of_word_suffix", ""))
        return lacks("end_of_word_suffix", hone_tree_text(model, "end_of_word_suffix", ""));
    for (int b = 0; b < 256; b++) {
        char text[8];
        const int n = t->bytes ? hone_utf8_write(text, seen_byte(b))
                               : snprintf(text, sizeof text, "<0x%02X>", (unsigned)b);
        t->of_byte[b] = find(&t->vocabulary, text, (size_t)n);
        if (t->bytes && t->bpe && t->of_byte[b] < 0 && t->unknown < 0)
            return hone_fail(HONE_BAD_INPUT, "the vocabulary has no token for byte 0x%02X", (unsigned)b);
    }
    return t->bpe ? read_merges(t, hone_tree_get(model, "merges")) : HONE_OK;
}

/* ---- a word's tokens ----------------------------------------------------------------------------------- */
static bool word_piece(tokenizer *t, hone_word w, hone_ids *to) {
    const int before = to->n;
    size_t at = 0, characters = 0;
    for (size_t k = 0; k < w.bytes; k++) characters += ((uint8_t)w.at[k] & 0xC0) != 0x80;
    bool known = characters <= t->longest;
    while (known && at < w.bytes) {
        int32_t id = -1;
        size_t n = w.bytes - at;
        for (; n > 0; n--) {
            if (at + n < w.bytes && ((uint8_t)w.at[at + n] & 0xC0) == 0x80) continue;
            t->text.n = 0;
            if (at && t->prefix)
                for (const char *p = t->prefix; *p; p++)
                    if (!hone_push(&t->text, *p)) return false;
            for (size_t k = 0; k < n; k++)
                if (!hone_push(&t->text, w.at[at + k])) return false;
            if ((id = find(&t->vocabulary, t->text.at, (size_t)t->text.n)) >= 0) break;
        }
        known = id >= 0;
        if (known && !hone_push(to, (int64_t)id)) return false;
        at += n;
    }
    if (known) return true;
    to->n = before;
    return t->unknown < 0 || hone_push(to, (int64_t)t->unknown);
}
static bool symbols(tokenizer *t, hone_word w) {
    t->symbol.n = 0;
    bool unknown = false;
    for (const char *at = w.at, *end = at + w.bytes; at < end;) {
        int n = 1;
        uint32_t code;
        if (!t->bytes) n = hone_utf8_read(at, end, &code);
        int32_t id = t->bytes ? t->of_byte[(uint8_t)*at] : find(&t->vocabulary, at, (size_t)n);
        if (!t->bytes && t->prefix && at > w.at) {
            char text[64];
            const int m = snprintf(text, sizeof text, "%s%.*s", t->prefix, n, at);
            id = m < (int)sizeof text ? find(&t->vocabulary, text, (size_t)m) : -1;
        }
        bool all = id < 0 && t->fallback;
        for (int k = 0; k < n && all; k++) all = t->of_byte[(uint8_t)at[k]] >= 0;
        for (int k = 0; k < n && all; k++)
            if (!hone_push(&t->symbol, t->of_byte[(uint8_t)at[k]])) return false;
        if (!all && id < 0 && (unknown && t->fuse ? 0 : t->unknown >= 0) &&
            !hone_push(&t->symbol, t->unknown))
            return false;
        if (id >= 0 && !hone_push(&t->symbol, id)) return false;
        unknown = id < 0 && !all;
        at += n;
    }
    return true;
}
static bool pairs(tokenizer *t, hone_word w, hone_ids *to) {
    if (t->whole_words) { /* a word that is a token as it stands */
        t->text.n = 0;
        char text[4];
        for (size_t k = 0; k < w.bytes; k++)
            for (int i = 0, n = t->bytes ? hone_utf8_write(text, seen_byte((uint8_t)w.at[k]))
                                         : (text[0] = w.at[k], 1);
                 i < n; i++)
                if (!hone_push(&t->text, text[i])) return false;
        const int32_t id = find(&t->vocabulary, t->text.at, (size_t)t->text.n);
        if (id >= 0) return hone_push(to, (int64_t)id);
    }
    if (!symbols(t, w)) return false;
    int32_t *s = t->symbol.at;
    for (int n = t->symbol.n;;) {
        const entry *best = NULL;
        int where = 0;
        for (int k = 0; k + 1 < n; k++) {
            const entry *e = place(&t->merges, "", 0, s[k] + 1, s[k + 1] + 1);
            if (e->text && (!best || e->rank < best->rank)) best = e, where = k;
        }
        t->symbol.n = n;
        if (!best) break;
        s[where] = best->id;
        memmove(s + where + 1, s + where + 2, sizeof *s * (size_t)(n-- - where - 2));
    }
    for (int k = 0; k < t->symbol.n; k++)
        if (!hone_push(to, (int64_t)s[k])) return false;
    return true;
}

/* ---- the calls ----------------------------------------------------------------------------------------- */
hone_status hone_tokenizer_encode(tokenizer *t, const char *text, size_t bytes, bool marks, hone_ids *to) {
    hone_chars a = {0}, b = {0};
    hone_word_list w = {0}, v = {0};
    bool ok = true;
    for (size_t k = 0; k < bytes && ok; k++) ok = hone_push(&a, text[k]);
    for (int k = 0; k < t->n_change && ok; k++) {
        const hone_chars swap = a;
        b.n = 0, ok = hone_text_change(t->change + k, &a, &b);
        a = b, b = swap;
    }
    for (int k = 0; k < t->n_cut && ok; k++) { /* spaces by a mark, and one in front, before all is cut */
        const hone_cut_step *s = t->cut + k;
        const hone_change_step space = {HONE_CHANGE_REPLACE, " ", s->spaces},
                               front = {HONE_CHANGE_PREPEND, s->what == HONE_CUT_META ? NULL : " ",
                                        s->what == HONE_CUT_META ? s->spaces : " "};
        for (int i = 0; i < 2 && ok; i++) {
            if (i == 0 ? s->what != HONE_CUT_META : !s->prefix) continue;
            if (i == 1 && s->what == HONE_CUT_META && (size_t)a.n >= strlen(s->spaces) &&
                !memcmp(a.at, s->spaces, strlen(s->spaces)))
                continue;
            const hone_chars swap = a;
            b.n = 0, ok = hone_text_change(i ? &front : &space, &a, &b);
            a = b, b = swap;
        }
    }
    if (ok && a.n) ok = hone_push(&w, ((hone_word){a.at, (size_t)a.n}));
    for (int k = 0; k < t->n_cut && ok; k++) {
        const hone_word_list swap = w;
        v.n = 0, ok = hone_text_cut(t->cut + k, &w, &v);
        w = v, v = swap;
    }
    for (int k = 0; k < t->n_before && marks && ok; k++) ok = hone_push(to, t->before[k]);
    for (int k = 0; k < w.n && ok; k++) ok = t->bpe ? pairs(t, w.at[k], to) : word_piece(t, w.at[k], to);
    for (int k = 0; k < t->n_after && marks && ok; k++) ok = hone_push(to, t->after[k]);
    hone_vec_free(&a), hone_vec_free(&b), hone_vec_free(&w), hone_vec_free(&v);
    return ok ? HONE_OK : no_memory();
}
hone_status hone_tokenizer_open(const char *path, tokenizer **out) {
    hone_file f;
    const hone_tree *root = NULL;
    HONE_TRY(hone_file_open(path, &f));
    tokenizer *t = hone_alloc(sizeof *t);
    hone_status s = t && (t->arena = hone_arena_create()) ? HONE_OK : no_memory();
    if (!s && f.bytes > MOST_BYTES) s = hone_fail(HONE_BAD_INPUT, "the file is larger than any tokenizer");
    if (!s) s = hone_tree_read(t->arena, (const char *)f.data, f.bytes, &root);
    if (!s && !hone_tree_get(root, "model"))
        s = hone_fail(HONE_BAD_INPUT, "no tokenizer.json: it has no 'model'");
    if (!s) s = read_change(t, hone_tree_get(root, "normalizer"));
    if (!s && t->apart) s = lacks("normalizer", "NFD");
    if (!s) s = read_cut(t, hone_tree_get(root, "pre_tokenizer"));
    if (!s) s = read_model(t, root);
    if (!s) s = read_marks(t, hone_tree_get(root, "post_processor"));
    const hone_tree *pad = s ? NULL : hone_tree_get(hone_tree_get(root, "padding"), "pad_id");
    if (id_of(pad) >= 0) t->padding = id_of(pad);
    hone_file_close(&f);
    if (s) {
        hone_tokenizer_close(t);
        return hone_fail_at(s, "'%s' as tokenizer.json: ", path);
    }
    *out = t;
    return HONE_OK;
}
void hone_tokenizer_close(tokenizer *t) {
    if (!t) return;
    hone_free(t->vocabulary.at), hone_free(t->merges.at);
    hone_vec_free(&t->text), hone_vec_free(&t->symbol);
    hone_arena_destroy(t->arena);
    hone_free(t);
}
int64_t hone_tokenizer_padding(const tokenizer *t) { return t->padding; }
