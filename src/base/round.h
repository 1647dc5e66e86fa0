/* SPDX-License-Identifier: Apache-2.0
   round: whole times of something: how many pieces, and up to the next multiple. */
#ifndef HONE_BASE_ROUND_H
#define HONE_BASE_ROUND_H
#include <stddef.h>
#include <stdint.h>

/* of n from 0 on, however large: nothing is added before the division */
static inline int64_t hone_ceil_div(int64_t n, int64_t by) { return n / by + (n % by > 0); }
static inline int64_t hone_round_up(int64_t n, int64_t by) { return hone_ceil_div(n, by) * by; }
/* to a multiple of a cache line, for room in memory */
static inline size_t hone_round_up64(size_t n) { return (n + 63) / 64 * 64; }
#endif
