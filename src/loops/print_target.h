/* SPDX-License-Identifier: Apache-2.0
   print_target: a row of the table of languages that kernels are printed in. */
#ifndef HONE_LOOPS_PRINT_TARGET_H
#define HONE_LOOPS_PRINT_TARGET_H
#include "loops/kernel.h"
#include "loops/print_walk.h"

typedef struct {
    hone_print_words words;
    const char *prelude, *halves;
    bool offsets;  /* memory is (buffer, byte offset), not an address */
    bool vectors;  /* float4, float8, float16, vload4 … are types and functions of the language */
    bool shuffles; /* 32 neighbouring threads exchange values without shared memory: HONE_SHUFFLE */
} hone_print_target;
const hone_print_target *hone_print_target_of(hone_lang);
#endif
