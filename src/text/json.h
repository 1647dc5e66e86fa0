/* SPDX-License-Identifier: Apache-2.0
   json: a JSON text as a tree in an arena. */
#ifndef HONE_TEXT_JSON_H
#define HONE_TEXT_JSON_H
#include "base/mem.h"

typedef enum {
    HONE_TREE_NULL,
    HONE_TREE_BOOL,
    HONE_TREE_NUMBER,
    HONE_TREE_TEXT,
    HONE_TREE_LIST,
    HONE_TREE_OBJECT
} hone_tree_kind;
typedef struct hone_tree hone_tree;
struct hone_tree {
    hone_tree_kind kind;
    const char *key;  /* of a member; NULL */
    const char *text; /* TEXT: zero-terminated, and it may have zeros inside */
    size_t bytes;
    double number; /* NUMBER; BOOL: 0 or 1 */
    int n;         /* members */
    hone_tree *first, *next;
};
/* Fails: BAD_INPUT, with the byte where it goes wrong. */
hone_status hone_tree_read(hone_arena *, const char *text, size_t bytes, const hone_tree **out) HONE_CHECKED;
const hone_tree *hone_tree_get(const hone_tree *,
                               const char *key); /* NULL: none, or no object; of NULL too */
const char *hone_tree_text(const hone_tree *, const char *key, const char *otherwise);
bool hone_tree_bool(const hone_tree *, const char *key, bool otherwise);
#endif
