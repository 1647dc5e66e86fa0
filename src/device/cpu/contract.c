/* SPDX-License-Identifier: Apache-2.0
   contract: sums of products as matrix multiplications. */
#include "device/cpu/cpu.h"

hone_status hone_cpu_contract(hone_steps *s, const hone_cpu_call *c, int stage, int *end, bool *done) {
    (void)s, (void)c, (void)stage, (void)end;
    *done = false;
    return HONE_OK;
}
