/* SPDX-License-Identifier: Apache-2.0
   utf8: code points and simple case, for string ops. Bytes that are no UTF-8 read as U+FFFD, one at a time.

   Case is one code point to one code point (no ß → SS), for the scripts in the table of utf8.c; it never asks
   the process's locale. */
#ifndef HONE_HOST_UTF8_H
#define HONE_HOST_UTF8_H
#include <stddef.h>
#include <stdint.h>

int hone_utf8_read(const char *at, const char *end, uint32_t *out); /* bytes used; at < end */
int hone_utf8_write(char *to, uint32_t c);                          /* bytes made, at most 4 */
uint32_t hone_utf8_lower(uint32_t);
uint32_t hone_utf8_upper(uint32_t);
#endif
