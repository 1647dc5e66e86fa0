/* SPDX-License-Identifier: Apache-2.0
   visible: which bytes of a text may reach a terminal. Names come out of hostile files: control characters,
   the C1 ones among them, marks that turn the direction of text, and bytes that are no UTF-8 may not. */
#ifndef HONE_BASE_VISIBLE_H
#define HONE_BASE_VISIBLE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int bytes;     /* of the character at hand, at least 1 */
    uint32_t code; /* 0xffffffff: no UTF-8 */
    bool shown;    /* as it is */
} hone_character;
hone_character hone_character_at(const char *text, size_t left); /* left at least 1 */
/* A copy that can be shown, cut to `room`, zero-terminated; what cannot is written \n, \x1b, \u202e. `lines`:
   '\n' stays. Bytes written. */
size_t hone_visible(char *out, size_t room, const char *text, size_t bytes, bool lines);
#endif
