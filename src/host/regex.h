/* SPDX-License-Identifier: Apache-2.0
   regex: does a whole string match, and where is the first, longest piece that does? RE2's syntax without
   Unicode classes (\pL), \C, \Q…\E and multi-line mode; patterns with these are refused.

   A pattern becomes a small program; matching runs all its threads side by side, so time is pattern × text
   whatever the pattern is. */
#ifndef HONE_HOST_REGEX_H
#define HONE_HOST_REGEX_H
#include "base/mem.h"

typedef struct hone_regex hone_regex;
/* the message says what is wrong where */
hone_status hone_regex_create(const char *pattern, size_t bytes, hone_regex **out) HONE_CHECKED;
void hone_regex_destroy(hone_regex *);
/* uses room of its own in the regex: one thread at a time */
bool hone_regex_matches(hone_regex *, const char *text, size_t bytes);
/* The leftmost match that begins at `from` or after it, and the longest of those; what stands before `from`
   counts for ^ and \b. */
bool hone_regex_find(hone_regex *, const char *text, size_t bytes, size_t from, size_t *at, size_t *length);
#endif
