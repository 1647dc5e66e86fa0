/* SPDX-License-Identifier: Apache-2.0
   dtype_run.inc for the CPU level in the name. */
#if defined(__x86_64__)
#include "base/dtype_run.h"
#define LEVEL(name) name##__avx512
#include "base/dtype_run.inc"
#endif
