/* SPDX-License-Identifier: Apache-2.0
   advice: wisdom as files: which one a session uses, and why not. */
#ifndef HONE_RUN_ADVICE_H
#define HONE_RUN_ADVICE_H
#include "device/wisdom.h"

typedef struct {
    hone_wisdom *wisdom; /* NULL: none */
    char *path;          /* that was looked at; NULL: none */
    char why[256];       /* it is not used; or "" */
} hone_advice;
/* named: as in hone_options. Fails where a named file cannot be read, and without memory; damaged or foreign
   wisdom is no failure. */
hone_status hone_advice_open(const char *named, hone_advice *out) HONE_CHECKED;
void hone_advice_close(hone_advice *);
/* The file where this machine's wisdom is by default, into text that is empty; nothing where there is no
   home. */
void hone_advice_path(hone_text *);
/* Writes it whole or not at all, and makes the folders of the default path. */
hone_status hone_advice_write(const hone_wisdom *, const char *path) HONE_CHECKED;
#endif
