/* SPDX-License-Identifier: Apache-2.0
   norm: rows that are normalized, as one step (norm.c). Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_NORM_H
#define HONE_DEVICE_CPU_NORM_H
#include "device/cpu/cpu.h"

/* Stages from `stage` to *end - 1, where they are of such a form; else *done is false and nothing was added. */
hone_status hone_cpu_norm(hone_recipe_maker *, const hone_cpu_call *, int stage, int *end, bool *done) HONE_CHECKED;
#endif
