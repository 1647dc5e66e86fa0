/* SPDX-License-Identifier: Apache-2.0
   amx: eight tile registers of 16 rows of 64 bytes each, set up and given up. A thread that holds tiles pays for them when it is put aside, so they are held
   while kernels run and no longer. For kernels of x86-64. */
#ifndef HONE_KERNELS_X86_AMX_H
#define HONE_KERNELS_X86_AMX_H
void hone_amx_begin(void);
void hone_amx_end(void);
#endif
