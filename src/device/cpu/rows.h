/* SPDX-License-Identifier: Apache-2.0
   rows: element-wise stages between floats and 8 bits, by kernels. Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_ROWS_H
#define HONE_DEVICE_CPU_ROWS_H
#include "device/cpu/cpu.h"

hone_status hone_cpu_rows(hone_recipe_maker *, const hone_cpu_call *, int stage, bool *done) HONE_CHECKED;
#endif
