/* SPDX-License-Identifier: Apache-2.0
   dtype_run.inc for the CPU level in the name. */
#include "base/dtype_run.h"
#define LEVEL(name) name##__base
#include "base/dtype_run.inc"
