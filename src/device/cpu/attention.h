/* SPDX-License-Identifier: Apache-2.0
   attention: scores, softmax and weighted sum as one step. Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_ATTENTION_H
#define HONE_DEVICE_CPU_ATTENTION_H
#include "device/cpu/cpu.h"

/* Does stages from k up to *end, where they are attention; *done false: they are not. */
hone_status hone_cpu_attention(hone_recipe_maker *, const hone_cpu_call *, int stage, int *end, bool *done) HONE_CHECKED;
#endif
