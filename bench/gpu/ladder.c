/* SPDX-License-Identifier: Apache-2.0
   ladder: the kernels of bench/gpu/ladder, from the plainest to the library's, timed on one product: what each step brings. */
#include "harness.h"

void bench_ladder(bench *b) { (void)b; }
