/* SPDX-License-Identifier: Apache-2.0
   tiles: see amx.h. Empty on other architectures. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdint.h>

#include "kernels/x86/amx.h"

typedef struct {
    uint8_t palette, start_row, zero[14];
    uint16_t bytes_a_row[16];
    uint8_t rows[16];
} tile_shape;
static const tile_shape shape __attribute__((aligned(64))) = {
    1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
_Static_assert(sizeof shape == 64, "as ldtilecfg reads it");

void hone_amx_begin_bytes(int64_t k) { hone_amx_begin_rows(16, k); }
void hone_amx_begin_rows(int64_t rows, int64_t k) {
    tile_shape own __attribute__((aligned(64))) = shape;
    const int groups = k > 0 && k < 64 ? (int)(k + 3) / 4 : 16;
    for (int t = 0; t < 2; t++)
        own.rows[4 + t] = (uint8_t)groups, own.bytes_a_row[6 + t] = (uint16_t)(4 * groups);
    for (int t = 0; t < 8 && rows > 0 && rows < 16; t++)
        if (t < 4 || t > 5) own.rows[t] = (uint8_t)rows;
    __asm__ volatile("" : : "r"(&own) : "memory"); /* gcc 12's intrinsic says that it reads 8 bytes */
    _tile_loadconfig(&own);
}
void hone_amx_end(void) { _tile_release(); }
#else
typedef int hone_tiles__amx_not_here;
#endif
