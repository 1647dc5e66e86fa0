/* SPDX-License-Identifier: Apache-2.0
   lookup: which entry of a list has this value? Entries are strings, or numbers as order.h's keys. Sorted
   once, then found by halving. */
#ifndef HONE_HOST_LOOKUP_H
#define HONE_HOST_LOOKUP_H
#include "host/order.h"

typedef struct {
    int64_t n, *order;
    uint64_t *key;              /* numbers, or NULL */
    const hone_string **string; /* strings, or NULL; the text stays the caller's */
} hone_lookup;
/* From an attribute (ints, floats, strings) or a tensor. Floats are told apart as `t` would hold them (an
   attribute's floats are f32). */
hone_status hone_lookup_attr(const hone_host_call *, const hone_attr *, hone_lookup *out) HONE_CHECKED;
hone_status hone_lookup_tensor(const hone_host_call *, const hone_value *, hone_lookup *out) HONE_CHECKED;
void hone_lookup_free(hone_lookup *);
/* The last entry that equals it, or -1. */
int64_t hone_lookup_key(const hone_lookup *, uint64_t key);
int64_t hone_lookup_string(const hone_lookup *, const hone_string *);
/* Element k of a tensor; -1 too where one side is strings and the other is not. */
int64_t hone_lookup_element(const hone_lookup *, const hone_value *, int64_t k);
#endif
