/* SPDX-License-Identifier: Apache-2.0
   words: see words.h. */
#include "text/words.h"

#include <string.h>

#include "host/utf8.h"
#include "text/classes.h"

/* ---- normalizing --------------------------------------------------------------------------------------- */
static bool put(hone_chars *to, const char *text, size_t n) {
    for (size_t k = 0; k < n; k++)
        if (!hone_push(to, text[k])) return false;
    return true;
}
static bool put_code(hone_chars *to, uint32_t c) {
    char text[4];
    return put(to, text, (size_t)hone_utf8_write(text, c));
}
static bool put_unmarked(hone_chars *to, uint32_t c) {
    if (hone_is_mark(c)) return true;
    if (c >= 0xAC00 && c <= 0xD7A3) { /* a syllable of Hangul is two or three letters */
        const uint32_t s = c - 0xAC00;
        return put_code(to, 0x1100 + s / 588) && put_code(to, 0x1161 + s % 588 / 28) &&
               (s % 28 == 0 || put_code(to, 0x11A7 + s % 28));
    }
    return put_code(to, hone_without_marks(c));
}
static bool change_code(hone_change what, uint32_t c, const char *at, size_t n, hone_chars *to) {
    switch (what) {
    case HONE_CHANGE_CLEAN:
        if (c == 0 || c == 0xFFFD || (c < 32 && c != '\t' && c != '\n' && c != '\r') ||
            (c >= 0x7F && c < 0xA0) || (c >= 0x200B && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) ||
            (c >= 0x2060 && c <= 0x2064) || c == 0xAD || c == 0xFEFF)
            return true;
        return hone_is_space(c) ? put_code(to, ' ') : put(to, at, n);
    case HONE_CHANGE_IDEOGRAPHS:
        return hone_is_ideograph(c) ? put(to, " ", 1) && put(to, at, n) && put(to, " ", 1) : put(to, at, n);
    case HONE_CHANGE_UNMARK_ALL:
        if (hone_is_wide_mark(c)) return true;
        return put_unmarked(to, c);
    case HONE_CHANGE_UNMARK: return put_unmarked(to, c);
    default: return put_code(to, hone_utf8_lower(c));
    }
}
bool hone_text_change(const hone_change_step *s, const hone_chars *from, hone_chars *to) {
    const char *at = from->at, *end = from->at + from->n;
    if (s->what == HONE_CHANGE_PREPEND) {
        const bool has = s->from && from->n && *at == *s->from; /* a space, where there is none */
        return (!from->n || has || put(to, s->to, strlen(s->to))) && put(to, at, (size_t)from->n);
    }
    if (s->what == HONE_CHANGE_STRIP) {
        uint32_t c;
        while (at < end && *at == ' ') at++;
        while (end > at && (c = (uint8_t)end[-1], hone_is_space(c))) end--;
        return put(to, at, (size_t)(end - at));
    }
    if (s->what == HONE_CHANGE_REPLACE) {
        for (const size_t n = strlen(s->from); at < end;) {
            const bool here = (size_t)(end - at) >= n && !memcmp(at, s->from, n);
            if (!(here ? put(to, s->to, strlen(s->to)) : put(to, at, 1))) return false;
            at += here ? n : 1;
        }
        return true;
    }
    while (at < end) {
        uint32_t c;
        const int n = hone_utf8_read(at, end, &c);
        if (!change_code(s->what, c, at, (size_t)n, to)) return false;
        at += n;
    }
    return true;
}

/* ---- words --------------------------------------------------------------------------------------------- */
static uint32_t peek(const char *at, const char *end, int *n) {
    uint32_t c = 0;
    *n = at < end ? hone_utf8_read(at, end, &c) : 0;
    return c;
}
static bool other(uint32_t c) { return !hone_is_space(c) && !hone_is_letter(c) && !hone_is_number(c); }
static const char *run_of(bool (*is)(uint32_t), const char *at, const char *end, int most) {
    int n;
    for (int k = 0; at < end && (most == 0 || k < most) && is(peek(at, end, &n)); k++) at += n;
    return at;
}
static const char *contraction(const char *at, const char *end, bool any_case) {
    static const char *const ends[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (at >= end || *at != '\'') return NULL;
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
        const size_t n = strlen(ends[k]);
        bool same = (size_t)(end - at - 1) >= n;
        for (size_t i = 0; same && i < n; i++) same = (any_case ? at[1 + i] | 32 : at[1 + i]) == ends[k][i];
        if (same) return at + 1 + n;
    }
    return NULL;
}
static const char *space_word(const char *at, const char *end, bool newer) {
    const char *stop = run_of(hone_is_space, at, end, 0), *last = at, *line = NULL;
    int n;
    for (const char *p = at; p < stop; p += n) {
        const uint32_t c = peek(p, end, &n);
        last = p;
        if (c == '\n' || c == '\r') line = p + n;
    }
    if (newer && line) return line;
    return stop < end && last > at ? last : stop; /* the last space goes with the word behind it */
}
/* The word of GPT-2's pattern that begins here, or of that after it. */
static const char *gpt_word(const hone_cut_step *s, const char *at, const char *end) {
    int n = 0, m = 0;
    const uint32_t c = peek(at, end, &n), next = peek(at + n, end, &m);
    const char *stop = contraction(at, end, s->newer);
    if (stop) return stop;
    if (s->newer) {
        if (hone_is_letter(c)) return run_of(hone_is_letter, at, end, 0);
        if (c != '\r' && c != '\n' && !hone_is_number(c) && m && hone_is_letter(next))
            return run_of(hone_is_letter, at + n, end, 0);
        if (hone_is_number(c)) return run_of(hone_is_number, at, end, s->digits);
    } else {
        const char *from = c == ' ' ? at + n : at;
        const uint32_t first = c == ' ' ? next : c;
        if (from < end && hone_is_letter(first)) return run_of(hone_is_letter, from, end, 0);
        if (from < end && hone_is_number(first)) return run_of(hone_is_number, from, end, 0);
    }
    if (other(c) || (c == ' ' && m && other(next))) {
        stop = run_of(other, c == ' ' ? at + n : at, end, 0);
        while (s->newer && stop < end && (*stop == '\r' || *stop == '\n')) stop++;
        return stop;
    }
    return space_word(at, end, s->newer);
}
static bool is_word(uint32_t c) {
    return hone_is_letter(c) || hone_is_number(c) || hone_is_mark(c) || hone_is_wide_mark(c) || c == '_';
}
static bool no_word(uint32_t c) { return !hone_is_space(c) && !is_word(c); }
static bool bert_letter(uint32_t c) { return !hone_is_space(c) && !hone_is_punctuation(c); }
static bool no_space(uint32_t c) { return !hone_is_space(c); }
static bool no_punctuation(uint32_t c) { return !hone_is_punctuation(c); }
static bool no_number(uint32_t c) { return !hone_is_number(c); }
/* Where the piece that begins here ends; *drop: it is no word. */
static const char *piece(const hone_cut_step *s, const char *at, const char *end, bool *drop) {
    int n = 0;
    const uint32_t c = peek(at, end, &n);
    const bool spaces = s->what == HONE_CUT_BERT || s->what == HONE_CUT_SPACES || s->what == HONE_CUT_WORDS;
    *drop = spaces && hone_is_space(c);
    if (*drop) return at + n;
    switch (s->what) {
    case HONE_CUT_BERT: return hone_is_punctuation(c) ? at + n : run_of(bert_letter, at, end, 0);
    case HONE_CUT_SPACES: return run_of(no_space, at, end, 0);
    case HONE_CUT_WORDS: return run_of(is_word(c) ? is_word : no_word, at, end, 0);
    case HONE_CUT_PUNCTUATION: return hone_is_punctuation(c) ? at + n : run_of(no_punctuation, at, end, 0);
    case HONE_CUT_DIGITS:
        return hone_is_number(c) ? s->single ? at + n : run_of(hone_is_number, at, end, 0)
                                 : run_of(no_number, at, end, 0);
    case HONE_CUT_META: {
        const size_t long_ = strlen(s->spaces);
        const char *p = at + n;
        while (s->apart && p < end && ((size_t)(end - p) < long_ || memcmp(p, s->spaces, long_) != 0)) p++;
        return s->apart ? p : end;
    }
    default: return gpt_word(s, at, end);
    }
}
bool hone_text_cut(const hone_cut_step *s, const hone_word_list *from, hone_word_list *to) {
    for (int k = 0; k < from->n; k++)
        for (const char *at = from->at[k].at, *end = at + from->at[k].bytes; at < end;) {
            bool drop;
            const char *stop = piece(s, at, end, &drop);
            if (!drop && !hone_push(to, ((hone_word){at, (size_t)(stop - at)}))) return false;
            at = stop;
        }
    return true;
}
