/* SPDX-License-Identifier: Apache-2.0
   random: numbers for tests, by xorshift, xorshift* and linear congruence: the same ones in every run, from
   the state that a test begins with, so that a failure repeats. */
#ifndef HONE_TESTS_RANDOM_H
#define HONE_TESTS_RANDOM_H
#include <stdint.h>

static inline uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state;
}
/* whose low bits are as good as its high ones */
static inline uint64_t next_random_star(uint64_t *state) {
    *state ^= *state >> 12, *state ^= *state << 25, *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1du;
}
/* whose low bits are no good */
static inline uint32_t next_linear(uint32_t *state) { return *state = *state * 1664525u + 1013904223u; }
static inline uint64_t next_linear64(uint64_t *state) {
    return *state = *state * 6364136223846793005u + 1442695040888963407u;
}
#endif
