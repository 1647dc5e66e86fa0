/* SPDX-License-Identifier: Apache-2.0
   dtype_run: widening and narrowing of long runs, one source (dtype_run.inc) for each CPU level. Private to
   base. */
#ifndef HONE_BASE_DTYPE_RUN_H
#define HONE_BASE_DTYPE_RUN_H
#include "base/dtype.h"

typedef void hone_dtype_load_fn(hone_dtype, void *dst, const void *src, size_t n);
typedef void hone_dtype_store_fn(hone_dtype, void *dst, hone_ctype from, const void *src, size_t n,
                                 bool saturate);
hone_dtype_load_fn hone_dtype_load_n__base, hone_dtype_load_n__avx2, hone_dtype_load_n__avx512;
hone_dtype_store_fn hone_dtype_store_n__base, hone_dtype_store_n__avx2, hone_dtype_store_n__avx512;
#endif
