/* SPDX-License-Identifier: Apache-2.0
   hash: com.microsoft's MurmurHash3, which feature hashers write: Murmur3 of 32 bits (Appleby, public domain)
   over each element's bytes. */
#include "host/call.h"

static uint32_t turn(uint32_t v, int by) { return v << by | v >> (32 - by); }
static uint32_t mixed(uint32_t v) { return turn(v * 0xcc9e2d51u, 15) * 0x1b873593u; }

static uint32_t murmur(const uint8_t *at, size_t bytes, uint32_t seed) {
    uint32_t h = seed, rest = 0;
    size_t whole = bytes / 4 * 4;
    for (size_t k = 0; k < whole; k += 4) {
        uint32_t word =
            at[k] | (uint32_t)at[k + 1] << 8 | (uint32_t)at[k + 2] << 16 | (uint32_t)at[k + 3] << 24;
        h = turn(h ^ mixed(word), 13) * 5 + 0xe6546b64u;
    }
    for (size_t k = bytes; k > whole; k--) rest = rest << 8 | at[k - 1];
    if (bytes > whole) h ^= mixed(rest);
    h ^= (uint32_t)bytes;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

hone_status hone_host_murmur_hash(const hone_host_call *c) {
    const hone_value *x;
    hone_value *y;
    HONE_TRY(hone_call_tensor(c, 0, &x));
    const bool positive = hone_call_int(c, "positive", 1) != 0;
    const uint32_t seed = (uint32_t)hone_call_int(c, "seed", 0);
    HONE_TRY(hone_host_out(c, 0, positive ? HONE_DTYPE_U32 : HONE_DTYPE_I32, x->dim, x->rank, &y));
    const size_t bytes = hone_call_bytes(x->dtype);
    for (int64_t k = 0, n = hone_value_count(x); k < n; k++) {
        const hone_string *s = x->dtype == HONE_DTYPE_STRING ? hone_value_string(x, k) : NULL;
        ((uint32_t *)y->data)[k] = s ? murmur((const uint8_t *)s->text, (size_t)s->bytes, seed)
                                     : murmur((const uint8_t *)x->data + (size_t)k * bytes, bytes, seed);
    }
    return HONE_OK;
}
