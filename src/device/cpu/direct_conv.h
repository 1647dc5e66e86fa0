/* SPDX-License-Identifier: Apache-2.0
   planes: contractions that are convolutions of few channels, with pixels in the lanes of a vector. Private
   to device/cpu. */
#ifndef HONE_DEVICE_CPU_DIRECT_CONV_H
#define HONE_DEVICE_CPU_DIRECT_CONV_H
#include "device/cpu/contract.h"

/* Sets d->planes where d is such a convolution; d is analysed. pixel, n: the slots of its pixels. transpose:
   pixels are its rows, not its columns. */
hone_status hone_direct_conv_find(hone_template_builder *, hone_contract *d, const int *pixel, int n,
                                  bool transpose) HONE_CHECKED;
bool hone_direct_conv_pays(const hone_contract *d); /* where sums are transposed: its ends are known */
void hone_direct_conv_cut(const hone_contract *d, int threads); /* into tiles */
/* Weights as rows of K, or transposed, as its kernel takes them; a: they are the operand A. How many rows
   that is in all, of one batch. */
void hone_direct_conv_fill(const hone_contract *, bool a, const void *source, float *to);
int64_t hone_direct_conv_rows(const hone_contract *);
void hone_direct_conv_step(hone_contract *, hone_step *);
#endif
