/* SPDX-License-Identifier: Apache-2.0
   lexer: ops text into tokens. Newlines are tokens where a line ends; brackets and trailing operators join
   lines. Private to loops. */
#ifndef HONE_LOOPS_LEXER_H
#define HONE_LOOPS_LEXER_H
#include "base/mem.h"

typedef enum {
    HONE_TOK_END,
    HONE_TOK_LINE /* a new line begins; `indent` */,
    HONE_TOK_NAME,
    HONE_TOK_NUMBER,
    HONE_TOK_STRING,
    HONE_TOK_MARK
} hone_token_kind;
typedef struct {
    hone_token_kind kind;
    bool group, real;         /* NAME: followed by ..; NUMBER: has a point or exponent */
    int line, column, indent; /* from 1, 1 and 0; a column counts bytes */
    const char *text;         /* NAME, STRING (unquoted), MARK: zero-terminated */
    int64_t i;
    double f;
} hone_token;
/* Tokens of one row; the first line's indent is 0. The last token is END. Tokens lie in `scratch`, the words
   they point to in the arena. */
hone_status hone_lex(hone_arena *, hone_arena *scratch, const char *source, int first_line, const char *text,
                     size_t bytes, hone_token **out) HONE_CHECKED;
#endif
