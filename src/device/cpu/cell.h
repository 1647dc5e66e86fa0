/* SPDX-License-Identifier: Apache-2.0
   cell: recurrent networks by kernels of their own (cell.c). Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_CELL_H
#define HONE_DEVICE_CPU_CELL_H
#include "device/cpu/cpu.h"

/* Stages from … to-1, an over group, where they are a cell that it knows; else *done is false and nothing was added. */
hone_status hone_cpu_cell(hone_recipe_maker *, const hone_cpu_call *, int from, int to, bool *done) HONE_CHECKED;
#endif
