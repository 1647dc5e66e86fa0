/* SPDX-License-Identifier: Apache-2.0
   dtype_pack: 4- and 2-bit runs of a file, one element a byte in memory; and which CPU level moves long
   runs. */
#include <string.h>

#include "base/dtype_run.h"
#include "base/thread.h"

static const struct {
    uint32_t cpu;
    hone_dtype_load_fn *load;
    hone_dtype_store_fn *store;
} levels[] = {
/* the fastest first */
#if defined(__x86_64__)
    {HONE_CPU_AVX512, hone_dtype_load_n__avx512, hone_dtype_store_n__avx512},
    {HONE_CPU_AVX2, hone_dtype_load_n__avx2, hone_dtype_store_n__avx2},
#endif
    {0, hone_dtype_load_n__base, hone_dtype_store_n__base},
};
void hone_dtype_load_n(hone_dtype t, void *dst, const void *src, size_t n) {
    int k = 0;
    for (uint32_t have = hone_cpu(); levels[k].cpu & ~have;) k++;
    levels[k].load(t, dst, src, n);
}
void hone_dtype_store_n(hone_dtype t, void *dst, hone_ctype from, const void *src, size_t n, bool saturate) {
    int k = 0;
    for (uint32_t have = hone_cpu(); levels[k].cpu & ~have;) k++;
    levels[k].store(t, dst, from, src, n, saturate);
}

void hone_dtype_unpack(hone_dtype t, uint8_t *dst, const uint8_t *packed, size_t n) {
    if (hone_dtypes[t].bits >= 8) memcpy(dst, packed, n * hone_dtypes[t].bytes);
    if (hone_dtypes[t].bits >= 8 || !hone_dtypes[t].bits) return;
    unsigned bits = hone_dtypes[t].bits, each = 8 / bits, mask = (1u << bits) - 1;
    unsigned top = hone_dtypes[t].kind == HONE_KIND_INT ? 1u << (bits - 1) : 0;
    for (size_t i = 0; i < n; i++)
        dst[i] = (uint8_t)(((packed[i / each] >> i % each * bits & mask) ^ top) - top);
}

void hone_dtype_pack(hone_dtype t, uint8_t *packed, const uint8_t *src, size_t n) {
    if (hone_dtypes[t].bits >= 8) memcpy(packed, src, n * hone_dtypes[t].bytes);
    if (hone_dtypes[t].bits >= 8 || !hone_dtypes[t].bits) return;
    unsigned bits = hone_dtypes[t].bits, each = 8 / bits, mask = (1u << bits) - 1;
    for (size_t i = 0; i < n; i++) {
        unsigned at = (unsigned)(i % each) * bits;
        packed[i / each] = (uint8_t)((at ? packed[i / each] : 0u) | (src[i] & mask) << at);
    }
}
