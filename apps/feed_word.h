/* SPDX-License-Identifier: Apache-2.0
   feed_word: an input whose numbers stand on the command line: "16000" or "ones" for all of its elements,
   "1,2,3" for one each, "random"; of an input of strings, the text itself. */
#ifndef HONE_APPS_FEED_WORD_H
#define HONE_APPS_FEED_WORD_H
#include "args.h"
#include "hone/hone.h"

bool hone_word_known(const hone_port *, const char *text);   /* no name of a file, but one of these */
bool hone_word_is_list(const hone_port *, const char *text); /* "1,2,3" */
int64_t hone_word_count(const char *text);                   /* of the elements of a list */
/* A tensor of the input's type. 0, or the exit code: a number does not fit, or a list has not as many as
   there are elements. */
int hone_word_make(const hone_port *, const char *text, const int64_t *dims, int rank, hone_value **out);
#endif
