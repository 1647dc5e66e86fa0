/* SPDX-License-Identifier: Apache-2.0
   random: splitmix64, as src/base/random.h has it, for the server and the command, which see the library's
   public headers only. */
#ifndef HONE_NET_RANDOM_H
#define HONE_NET_RANDOM_H
#include <stdint.h>

/* every bit of x goes into every bit of the result */
static inline uint64_t hone_net_mix64(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}
static inline uint64_t hone_net_random(uint64_t *state) {
    return hone_net_mix64(*state += 0x9e3779b97f4a7c15u);
}
#endif
