/* SPDX-License-Identifier: Apache-2.0
   check: parts of `hone check`. */
#ifndef HONE_APPS_CHECK_H
#define HONE_APPS_CHECK_H
#include <stdbool.h>

#include "hone/hone.h"

/* A line, or a member of an object, for each quantized product that runs in floats, and why. */
void hone_check_floats(const char *path, const hone_model *, bool json);
#endif
