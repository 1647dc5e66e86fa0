/* SPDX-License-Identifier: Apache-2.0
   table: what a stage makes of one byte and constants, for all 256 of them, found once when the step template
   is made: whatever stands between two roundings to 8 bits (activations, scales, clamps, casts) is then one
   look-up. The values are the definition's own. Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_TABLE_H
#define HONE_DEVICE_CPU_TABLE_H
#include "device/cpu/cpu.h"
#include "kernels/table.h"
#include "loops/match_table.h"

typedef struct {
    uint8_t bytes[256]; /* what is stored is 8 bits, */
    float floats[256];  /* or these */
} hone_table;
/* The values that a stage makes of bytes, where `given` says which expressions are the byte. NULL: it cannot
   be computed, or there is no memory. is_signed: the byte is. */
const hone_table *hone_table_of(hone_arena *, const hone_cpu_call *, int stage, const bool *given,
                                bool is_signed);
/* The table of a stage's value, where that is a function of such an expression and of constants; else NULL,
   or where there is no memory. is_signed: the byte is. */
const hone_table *hone_table_make(hone_arena *, const hone_cpu_call *, const hone_slots_of *, int stage,
                                  hone_table_is *, void *of, const bool *is_signed);
/* rows of n bytes, each in its place */
void hone_table_rows(const hone_table *, uint8_t *const *row, int64_t m, int64_t n);
#endif
