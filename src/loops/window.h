/* SPDX-License-Identifier: Apache-2.0
   window: is an instance a convolution? By its form, not by its op's name: one sum of products, of a tensor
   that a window moves over (a subscript is a place of the result plus an index of the sum) and of weights
   that have that index for a subscript. Its result is all that it makes. */
#ifndef HONE_LOOPS_WINDOW_H
#define HONE_LOOPS_WINDOW_H
#include "loops/instance.h"

bool hone_instance_is_convolution(const hone_instance *);
#endif
