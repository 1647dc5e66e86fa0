/* SPDX-License-Identifier: Apache-2.0
   table: what a stage makes of one byte and constants, for all 256 of them, found once when the step template
   is made: whatever stands between two roundings to 8 bits (activations, scales, clamps, casts) is then one
   look-up. The values are the definition's own. Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_TABLE_H
#define HONE_DEVICE_CPU_TABLE_H
#include "loops/match_affine.h"
#include "device/cpu/cpu.h"
#include "kernels/table.h"

typedef struct {
    uint8_t bytes[256]; /* what is stored is 8 bits, */
    float floats[256];  /* or these */
} hone_table;
/* Whether expression x is the byte that a table is of: called for every part of the stage's value, from its
   root on, until it says so. */
typedef bool hone_table_is(void *of, int32_t x);
/* The table of a stage's value, where that is a function of such an expression and of constants; else NULL,
   or where there is no memory. is_signed: the byte is. */
const hone_table *hone_table_make(hone_arena *, const hone_cpu_call *, const hone_slots_of *, int stage,
                                  hone_table_is *, void *of, const bool *is_signed);
/* rows of n bytes, each in its place */
void hone_table_rows(const hone_table *, uint8_t *const *row, int64_t m, int64_t n);
#endif
