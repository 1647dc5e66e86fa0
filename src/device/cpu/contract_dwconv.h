/* SPDX-License-Identifier: Apache-2.0
   contract_dwconv: depthwise convolutions of floats that are bound: plane by plane
   (contract_dwconv_nchw.c), or channels last and line by line (contract_dwconv_rows.c). Private to
   device/cpu. */
#ifndef HONE_DEVICE_CPU_CONTRACT_DWCONV_H
#define HONE_DEVICE_CPU_CONTRACT_DWCONV_H
#include "device/cpu/contract.h"
#include "kernels/dwconv_nhwc_rows.h"

struct hone_contract_dwconv_nchw {
    const hone_dwconv_nchw *kernel;
    hone_dwconv_nchw_shape shape;
    int64_t rows; /* output rows a tile */
    int64_t step; /* from pixel to pixel of a row; 1 but for bytes that lie channels last */
};
struct hone_contract_dwconv_rows { /* by lines of `run` results; 0: it is not so */
    const hone_dwconv_nhwc_rows *kernel;
    int64_t run, pitch, out_pitch, residual_pitch;
    int across, stride, dilation;
    int bound; /* which of A's bounds is about columns, or -1 */
    int down;  /* rows of the image from a line to the next, 0: they do not lie evenly */
};
/* contract_dwconv_nchw.c: fills plane, but for its room; *is false: not one plane a batch */
hone_status hone_contract_dwconv_nchw(hone_arena *, hone_contract *, bool *is) HONE_CHECKED;
void hone_contract_dwconv_nchw_step(hone_contract *, hone_step *);
/* contract_dwconv_rows.c: whether it goes by lines, when all else is chosen; and where these tensors are
   stored as bf16; a tile of it */
void hone_contract_dwconv_rows_choose(hone_contract *);
bool hone_contract_dwconv_rows_takes(const hone_contract *, uint64_t half);
/* weights of any depthwise that lies channels last: rows of all channels */
void hone_contract_dwconv_rows_fill(const hone_contract *, const void *source, float *panels);
void hone_contract_dwconv_rows_tile(const hone_contract *, void *const *at, uint64_t half, int64_t number);
#endif
