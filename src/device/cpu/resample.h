/* SPDX-License-Identifier: Apache-2.0
   resample: what is known of a stage that reads values of other places, and the tiles that do it (resample.c
   finds it, resample_run.c does it). */
#ifndef HONE_DEVICE_CPU_RESAMPLE_H
#define HONE_DEVICE_CPU_RESAMPLE_H
#include "loops/match_affine.h"
#include "device/cpu/cpu.h"
#include "kernels/pool.h"

enum { HONE_RESAMPLE_AXES = 6, HONE_RESAMPLE_TAPS = 256 }; /* the most */
typedef struct {
    uint32_t slots;
    int64_t positions, taps, *at; /* at[position * taps + tap], in elements */
    float *weight;                /* alike */
    bool weighted;
} hone_resample_axis;
typedef struct {
    int x, out, n_axis, n_outer;
    hone_resample_axis axis[HONE_RESAMPLE_AXES];
    hone_affine base;                                         /* what no axis says */
    int64_t extent[HONE_MAX_SLOTS], out_step[HONE_MAX_SLOTS]; /* of the indices before the last */
    int64_t by[HONE_RESAMPLE_AXES][HONE_MAX_SLOTS];           /* an axis' position moves so with each */
    int64_t rows, n, taps, grain;
    /* lanes */
    bool lanes;
    int64_t lo, reach, lane_taps;
    int64_t apart; /* of x's values along the row, where others between them are skipped; else 1 */
    int32_t *lane_at;
    float *lane_weight;       /* NULL: one tap of weight 1, of which */
    int64_t run_from, run_to; /* these follow on in memory */
    const hone_pool *kernel;
    /* of integers */
    bool whole, spread;
    hone_dtype x_type, y_type;
    hone_blend_whole_fn *blend;
    hone_settle_whole_fn *settle;
    int xs, xz, ys, yz; /* tensors of one number; -1: 0, or of scales 1 */
    int64_t run;        /* spread: pixels of a line */
} hone_resample;
/* Tiles of floats, of integers, and of any type that is only moved; a step's data is a hone_resample. */
hone_status hone_resample_tile(const hone_step *, void *const *base, int64_t number, void *scratch);
hone_status hone_resample_tile_whole(const hone_step *, void *const *base, int64_t number, void *scratch);
hone_status hone_resample_tile_moved(const hone_step *, void *const *base, int64_t number, void *scratch);
#endif
