/* SPDX-License-Identifier: Apache-2.0
   peak: how fast this machine copies and multiplies, measured now. A figure to hold beside others of the same
   minute, not a benchmark. */
#ifndef HONE_RUN_PEAK_H
#define HONE_RUN_PEAK_H
#include <stdint.h>

typedef struct {
    int threads;
    double copy_bytes_per_s; /* bytes read and as many written, counted once */
    double f32_flops_per_s;  /* a fused multiply-add is two */
} hone_peak;
/* About a third of a second each. threads 0: all cores. What could not be measured (no memory) is 0. */
hone_peak hone_peak_measure(int threads);
/* Flops per second of this thread with the vectors that these bits of hone_cpu() allow: one short round, half
   a millisecond. The best of several is the peak. */
double hone_peak_round(uint32_t cpu);
#endif
