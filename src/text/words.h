/* SPDX-License-Identifier: Apache-2.0
   words: what a tokenizer does to text before its model sees it: changes of all of it, and cuts into words,
   one step after the other. */
#ifndef HONE_TEXT_WORDS_H
#define HONE_TEXT_WORDS_H
#include "base/mem.h"

typedef enum {
    HONE_CHANGE_CLEAN,
    HONE_CHANGE_IDEOGRAPHS,
    HONE_CHANGE_UNMARK,
    HONE_CHANGE_UNMARK_ALL,
    HONE_CHANGE_LOWER,
    HONE_CHANGE_STRIP,
    HONE_CHANGE_REPLACE,
    HONE_CHANGE_PREPEND
} hone_change; /* of the whole text */
typedef struct {
    hone_change what;
    const char *from, *to;
} hone_change_step;
typedef enum {
    HONE_CUT_BERT,
    HONE_CUT_SPACES,
    HONE_CUT_WORDS,
    HONE_CUT_PUNCTUATION,
    HONE_CUT_DIGITS,
    HONE_CUT_GPT,
    HONE_CUT_META
} hone_cut;
typedef struct {
    hone_cut what;
    bool prefix;        /* a space before the first word */
    bool single;        /* HONE_CUT_DIGITS: each by itself */
    const char *spaces; /* HONE_CUT_META: stands for one */
    bool apart;         /* HONE_CUT_META: words begin there */
    int digits;         /* HONE_CUT_GPT: so many at most in a word; 0: any */
    bool newer;         /* HONE_CUT_GPT: as GPT-4's pattern has it */
} hone_cut_step;
typedef hone_vec(char) hone_chars;
typedef struct {
    const char *at; /* in the text */
    size_t bytes;
} hone_word;
typedef hone_vec(hone_word) hone_word_list;
/* Adds to `to`. False: no memory. */
bool hone_text_change(const hone_change_step *, const hone_chars *from, hone_chars *to);
bool hone_text_cut(const hone_cut_step *, const hone_word_list *from, hone_word_list *to);
#endif
