/* SPDX-License-Identifier: Apache-2.0
   turn: bytes of pictures that lie channels first, turned around for a product that wants them channels last, or back. Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_TURN_H
#define HONE_DEVICE_CPU_TURN_H
#include "device/cpu/cpu.h"

typedef struct {
    int tensor; /* -1: none */
    int64_t batches, channels, pixels;
} hone_turn;
/* Does this tensor of bytes lie channels first, dense, with some channels and some pixels? */
bool hone_turn_able(const hone_cpu_call *, int tensor, hone_turn *);
void hone_turn_strides(const hone_cpu_call *, const hone_turn *, int64_t *stride); /* those of channels last */
/* A step between the tensor and a buffer (a ref): to the buffer, channels last, or back. */
hone_status hone_turn_step(hone_recipe_maker *, const hone_turn *, int buffer, bool back) HONE_CHECKED;
#endif
