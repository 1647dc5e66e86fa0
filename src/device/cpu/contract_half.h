/* SPDX-License-Identifier: Apache-2.0
   contract_half: a bound matrix multiplication whose factors are rounded to bf16 or f16. contract_half.c
   computes it; contract_implicit_gemm.c and contract_first_layer.c are how rows of A are taken where these
   are windows. Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_CONTRACT_HALF_H
#define HONE_DEVICE_CPU_CONTRACT_HALF_H
#include "device/cpu/contract.h"
#include "kernels/gemm_half.h"

/* A window that moves pixel by pixel: a tile's pixels are kept once, in lines of `pitch`, and its results,
   `run` a line, are rows of that. */
typedef struct {
    int64_t lines, run, pitch;             /* lines of results a tile, 0: it is not so; */
    int64_t high, line;                    /* of pixels so many more, so far apart in A */
    int64_t rows, pixels;                  /* the kernel's rows of a tile, and pixels that these see */
    int64_t channel_block, channel_blocks; /* channels lie in slices; */
    int64_t deep, *at; /* of K in panels; where its parts, a slice at a place of the window, begin */
} hone_implicit_gemm;
/* Few channels: rows are `taps` runs of `wide` values of a copy of A in bf16, of lines of `pitch` values. */
typedef struct {
    int64_t lines;                 /* of results a tile; 0: it is not so */
    int64_t run, tall;             /* results of a line, and the kernel's rows for them; */
    int64_t right, down;           /* pixels from one to the next, lines from a line to the next */
    int64_t taps, wide, deep, *at; /* deep: of K in panels; at: where taps begin, from a row's first */
    /* of the copy: values a line, lines, values a pixel, of which these are A's: */
    int64_t pitch, height, channels;
    int64_t own, channel, line, pixel; /* how far apart its channels, lines and pixels are */
    int64_t y0, x0, high, across;      /* the copy's first line and pixel are these of A, which has so many */
} hone_contract_first_layer;
struct hone_contract_half {
    const hone_gemm_half *kernel;
    const hone_dwconv_nhwc *epilogue; /* what finishes rows of sums */
    /* rows of A: so many values lie in a row, so many are inside a window together */
    int64_t run_a, unit_a;
    /* rows are all of K in a row, so far apart, and of whole steps of the kernel; 0: they are not */
    int64_t row_stride_a;
    int64_t *place; /* of a value of K, in a panel; NULL: its own */
    int rounded;    /* ref of all of A as halves, rounded by a step before; 0: none */
    int64_t all_a;  /* how many values that are */
    hone_implicit_gemm implicit_gemm;
    hone_contract_first_layer first_layer;
};
/* contract_half.c: factors rounded to a half. choose: not where precision is none, or it does not pay; panels
   of B: how many bytes, and their filling from the weights */
hone_status hone_contract_half_choose(hone_arena *, hone_contract *, const hone_bind_options *,
                                      bool *chosen) HONE_CHECKED;
size_t hone_contract_half_bytes(const hone_contract *);
void hone_contract_half_fill(const hone_contract *, const void *source, void *panels);
/* contract_first_layer.c: is it one, with all that it needs (bf16, after the kernel is chosen)? The step that
   makes its copy. */
bool hone_contract_first_layer_choose(hone_arena *, hone_contract *);
void hone_contract_first_layer_copy(hone_contract *, hone_step_template *);
/* contract_implicit_gemm.c: is it one, by about so many rows? The pixels that rows from m0 on see. */
void hone_implicit_gemm_choose(hone_arena *, hone_contract *, int64_t most);
void hone_implicit_gemm_take(const hone_contract *, const float *a, bool half, int64_t m0, uint16_t *to);
/* A step before, where rows of A are to be put together of short pieces: rounds all of it once, or makes a
   stem's copy. */
hone_status hone_contract_half_before(hone_template_builder *, const hone_cpu_call *, hone_contract *,
                                      uint64_t *uses) HONE_CHECKED;
void hone_contract_half_step(hone_contract *, hone_step *);
#endif
