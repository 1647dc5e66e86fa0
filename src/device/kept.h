/* SPDX-License-Identifier: Apache-2.0
   kept: compiled programs on disk. A file is known by what its program was made of (text, compiler, device),
   is written whole or not at all, and counts as none where it is another's or damaged: so processes may
   share a folder, and what cannot be kept is compiled again, no more. */
#ifndef HONE_DEVICE_KEPT_H
#define HONE_DEVICE_KEPT_H
#include "base/mem.h"

typedef struct {
    uint64_t key[2];
    char path[700]; /* "": nowhere */
} hone_kept;
/* Where the program made of these n texts is kept in `folder` (NULL: nowhere), under a name that ends so. */
hone_kept hone_kept_name(const char *folder, const char *end, const char *const *part, int n);
/* NULL: it is not there; else the caller frees it with hone_free */
void *hone_kept_get(const hone_kept *, size_t *bytes);
void hone_kept_put(const hone_kept *, const void *code, size_t bytes);
#endif
