/* SPDX-License-Identifier: Apache-2.0
   cpu: what the CPU's tactics share. Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_CPU_H
#define HONE_DEVICE_CPU_CPU_H
#include "device/step.h"
#include "loops/tile.h"

hone_status hone_cpu_tilecode(hone_steps *, const hone_cpu_call *, int stage, int acc_tensor, hone_tilecode **out) HONE_CHECKED;
hone_ref *hone_cpu_refs(hone_steps *, const hone_cpu_call *);        /* of all tensors, in the plan's arena; NULL: no memory */
hone_status hone_cpu_add(hone_steps *, const hone_cpu_call *, hone_step, hone_ref *refs, uint64_t uses) HONE_CHECKED;

/* contract.c: sums of products as matrix multiplications. Does stage k, and the stages up to *end that it takes in as its epilogue. */
hone_status hone_cpu_contract(hone_steps *, const hone_cpu_call *, int stage, int *end, bool *done) HONE_CHECKED;
#endif
