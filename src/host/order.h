/* SPDX-License-Identifier: Apache-2.0
   order: elements of any type as numbers that compare, and a stable sort. One code path serves every
   dtype. */
#ifndef HONE_HOST_ORDER_H
#define HONE_HOST_ORDER_H
#include "host/call.h"

/* Keys: unsigned numbers in the order of the elements they stand for. -0 and 0 are one; NaNs are one and
   above all numbers. Complex elements have two keys, real part first; strings have none. */
int hone_order_width(hone_dtype);                                            /* keys an element: 0, 1 or 2 */
void hone_order_keys(hone_dtype, uint64_t *to, const void *from, int64_t n); /* dense elements */
/* by bytes, which is by code points */
int hone_order_strings(const hone_string *a, const hone_string *b);

/* Sorts at[0 … n) by less-than-zero `compare`; equal ones keep their order. False: out of memory. */
bool hone_order_sort(int64_t *at, int64_t n, int (*compare)(const void *with, int64_t a, int64_t b),
                     const void *with) HONE_CHECKED;
#endif
