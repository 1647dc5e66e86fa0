/* SPDX-License-Identifier: Apache-2.0
   tiles: see amx.h. Empty on other architectures. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdint.h>

#include "kernels/x86/amx.h"

static const struct {
    uint8_t palette, start_row, zero[14];
    uint16_t bytes_a_row[16];
    uint8_t rows[16];
} shape __attribute__((aligned(64))) = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
_Static_assert(sizeof shape == 64, "as ldtilecfg reads it");

void hone_amx_begin(void) { _tile_loadconfig(&shape); }
void hone_amx_end(void) { _tile_release(); }
#else
typedef int hone_tiles__amx_not_here;
#endif
