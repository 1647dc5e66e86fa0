/* SPDX-License-Identifier: Apache-2.0
   amx: eight tile registers of 16 rows of 64 bytes each, set up and given up. A thread that holds tiles pays
   for them when it is put aside, so they are held while kernels run and no longer. For kernels of x86-64. */
#ifndef HONE_KERNELS_X86_AMX_H
#define HONE_KERNELS_X86_AMX_H
#include <stdint.h>

/* k of K; below 64: so many bytes a row of A (tiles 6, 7), and as many rows of groups of B (4, 5) */
void hone_amx_begin_bytes(int64_t k);
/* the same; below 16 rows: A (6, 7) and sums (0 to 3) have only so many */
void hone_amx_begin_rows(int64_t rows, int64_t k);
void hone_amx_end(void);
#endif
