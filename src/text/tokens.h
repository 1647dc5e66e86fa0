/* SPDX-License-Identifier: Apache-2.0
   tokens: text to the numbers that a model reads, as a tokenizer.json of Hugging Face says: WordPiece
   and BPE, over bytes or over characters (with or without bytes behind them). What a file asks for that is
   not here is refused when it is opened: tokens that are nearly right would be wrong without a word.

   NFC and NFKC are taken to be done already: text files are in the first of them nearly always. */
#ifndef HONE_TEXT_TOKENS_H
#define HONE_TEXT_TOKENS_H
#include "base/mem.h"

typedef struct hone_tokenizer hone_tokenizer;
typedef hone_vec(int64_t) hone_ids;
/* Fails: IO; BAD_INPUT for what is no such file; NOT_SUPPORTED, with the part's name. */
hone_status hone_tokenizer_open(const char *path, hone_tokenizer **out) HONE_CHECKED;
void hone_tokenizer_close(hone_tokenizer *);
/* Adds what a piece of text is, with the marks around it that the file asks for, or without. One thread. */
hone_status hone_tokenizer_encode(hone_tokenizer *, const char *text, size_t bytes, bool marks,
                                  hone_ids *to) HONE_CHECKED;
int64_t hone_tokenizer_padding(const hone_tokenizer *); /* what fills a row that is too short */
#endif
