/* SPDX-License-Identifier: Apache-2.0
   classes: what kind of character a code point is, as tokenizers ask. */
#ifndef HONE_TEXT_CLASSES_H
#define HONE_TEXT_CLASSES_H
#include <stdbool.h>
#include <stdint.h>

bool hone_is_letter(uint32_t), hone_is_number(uint32_t), hone_is_space(uint32_t);
bool hone_is_mark(uint32_t);        /* that stands on the letter before it */
bool hone_is_wide_mark(uint32_t);   /* that takes room of its own, or goes around */
bool hone_is_punctuation(uint32_t); /* in ASCII: whatever is no letter, number or space */
bool hone_is_ideograph(uint32_t);   /* of Chinese, Japanese, Korean: a word by itself */
uint32_t hone_without_marks(uint32_t);
#endif
