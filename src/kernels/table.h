/* SPDX-License-Identifier: Apache-2.0
   table: a function of one byte, looked up. Signed bytes count as what their bits are unsigned. */
#ifndef HONE_KERNELS_TABLE_H
#define HONE_KERNELS_TABLE_H
#include <stdint.h>

/* y[i] = table[x[i]]; y of bytes may be x */
void hone_table_bytes(const uint8_t table[256], const uint8_t *x, uint8_t *y, int64_t n);
void hone_table_floats(const float table[256], const uint8_t *x, float *y, int64_t n);
#endif
