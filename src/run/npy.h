/* SPDX-License-Identifier: Apache-2.0
   npy: NumPy's array file, read from bytes and written to bytes. Numbers and bools only: no strings, records
   or objects. */
#ifndef HONE_RUN_NPY_H
#define HONE_RUN_NPY_H
#include "base/value.h"

/* Versions 1 to 3, either byte order, either order of dims (a column-major array is transposed). The value
   owns its data. */
hone_status hone_npy_read(const void *data, size_t bytes, hone_value **out) HONE_CHECKED;
/* The whole file, version 1, to be freed with hone_free. Types NumPy has no name for are widened: bf16 and
   smaller floats to f32, 4- and 2-bit integers to 8. */
hone_status hone_npy_write(const hone_value *, void **out, size_t *bytes) HONE_CHECKED;
#endif
