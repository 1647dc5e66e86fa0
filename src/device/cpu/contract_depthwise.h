/* SPDX-License-Identifier: Apache-2.0
   contract_depthwise: depthwise convolutions of floats that are bound: plane by plane (contract_plane.c), or channels last
   and line by line (contract_lines.c). Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_CONTRACT_DEPTHWISE_H
#define HONE_DEVICE_CPU_CONTRACT_DEPTHWISE_H
#include "device/cpu/contract.h"
#include "kernels/lines.h"

struct hone_contract_plane {
    const hone_depthwise_f32 *kernel;
    hone_depthwise_shape shape;
    int64_t rows; /* output rows a tile */
    int64_t step; /* from pixel to pixel of a row; 1 but for bytes that lie channels last */
};
struct hone_contract_lines { /* by lines of `run` results; 0: it is not so */
    const hone_lines *kernel;
    int64_t run, pitch, out_pitch, residual_pitch;
    int across, step, ahead;
    int bound; /* which of A's bounds is about columns, or -1 */
    int down;  /* rows of the picture from a line to the next, 0: they do not lie evenly */
};
/* contract_plane.c: fills plane, but for its room; *is false: not one plane a batch */
hone_status hone_contract_plane(hone_arena *, hone_contract *, bool *is) HONE_CHECKED;
void hone_contract_plane_step(hone_contract *, hone_step *);
/* contract_lines.c: whether it goes by lines, when all else is chosen; and where these tensors are stored as bf16; a tile of it */
void hone_lines_choose(hone_contract *);
bool hone_lines_takes(const hone_contract *, uint64_t half);
void hone_lines_fill(const hone_contract *, const void *source,
                     float *panels); /* weights of any depthwise that lies channels last: rows of all channels */
void hone_lines_tile(const hone_contract *, void *const *at, uint64_t half, int64_t number);
#endif
