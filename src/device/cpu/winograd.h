/* SPDX-License-Identifier: Apache-2.0
   winograd: contractions that are convolutions of images, by tiles (kernels/winograd.h): winograd.c finds
   and cuts them, winograd_run.c computes them. Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_WINOGRAD_H
#define HONE_DEVICE_CPU_WINOGRAD_H
#include "device/cpu/contract.h"
#include "kernels/gemm_half.h"
#include "kernels/winograd.h"

enum { HONE_WINOGRAD_PHASES = 4 };
/* Transposed tiles, as the product takes them. The first of a block are whole and go by `high`; the others go
   in batches, and each place takes as many at a time as suits those that have it: by kinds of places, which
   the last tiles down (1) lack, or across (2). Tiles are counted in the block's order. */
enum { HONE_WINOGRAD_BATCH = 32, HONE_WINOGRAD_KINDS = 4 };
typedef struct {
    int64_t first, before; /* packed ones that come before */
    int n;
    struct {
        int n, high;
        int8_t which[HONE_WINOGRAD_BATCH];
    } have[HONE_WINOGRAD_KINDS];
} hone_winograd_batch;
struct hone_winograd {
    const hone_winograd_f32 *kernel;
    const hone_gemm_half *half; /* factors of f16; or NULL */
    int side, stride;           /* of the window: taps; from result to result */
    bool line, is_down;         /* along one way: tiles are one result high, or wide */
    /* of a tile: which; taps of a phase; results across and down, pixels across and places */
    int size, taps, out, out_y, edge, places;
    int mr, nr, high; /* of the product: its K is channels only */
    /* images that are seen as one, each with filters of its own */
    int phases;
    int64_t own, channels; /* of the image, of each phase */
    /* in K: from tap to tap, and from channel to channel */
    int64_t at_y, at_x, at_c;
    int64_t images, oh, ow, h, w, pad_y, pad_x; /* results; pixels */
    int64_t pitch_y, pitch_x, pitch_c;          /* from pixel to pixel, in elements */
    /* few channels: phases are brought together as channels by a step before */
    struct {
        bool is;
        int64_t h, w;
        int ref;
    } spread;
    int64_t down, across, tiles; /* tiles: of an image, and in all */
    /* the last ones down and across have fewer results, and lack places (kernels/winograd.h). Then the tiles
       of a block, one block after another, are in order: whole ones first */
    hone_winograd_less less;
    const int32_t *order;
    int8_t kind[HONE_WINOGRAD_POINTS];
    const struct hone_winograd_cut {
        int32_t even, batches, first; /* of a block: whole ones that go by themselves, batches, which */
    } * cut;
    const hone_winograd_batch *batch;
    bool steps; /* three steps; else all three for one block after another */
    /* three steps, by panels of filters, whose places follow one another; else by places, for all panels */
    bool panels;
    bool by_place;         /* filters lie place by place, else panel by panel: as they are read */
    int each;              /* three steps: places of a tile of the grid */
    int64_t block, blocks; /* tiles a block */
    int64_t columns;       /* in whole panels, or vectors */
    /* columns that are multiplied, then transformed back; three steps: that, and tiles, of one tile
       of the grid */
    int64_t nt, some;
    ptrdiff_t v_at[HONE_WINOGRAD_POINTS + 1],
        /* places: a line more than they need, or all would fall on the same sets of the cache */
        apart_m;
    bool direct; /* the kernel finishes its pixels itself */
    int v, m;    /* three steps: refs of the buffers between them */
    /* near: of tiles that are packed, a few channels */
    size_t near_bytes, v_bytes, m_bytes, sum_bytes, at_bytes;
    ptrdiff_t near, near_apart; /* floats of a place, and from one to the next */
    hone_winograd_g g;
    /* phases at places: how many are at those before; which of its place's each is, -1: its filters are all
       zero there */
    int16_t before[HONE_WINOGRAD_POINTS + 1];
    int8_t slot[HONE_WINOGRAD_PHASES][HONE_WINOGRAD_POINTS];
};
/* Sets d->winograd where it is such a convolution and this is the faster way; d is analysed, its weights are
   to be packed, its epilogue is known. */
/* whose products; NULL: f32 */
hone_status hone_winograd_choose(hone_template_builder *, hone_contract *d, int threads,
                                 const hone_gemm_half *) HONE_CHECKED;
/* it is one: taps a side of its filters (and 16 along one way), else 0; d as above */
int hone_winograd_able(const hone_contract *);
int hone_winograd_tile(const hone_contract *); /* results a side of a tile; 0: not by tiles */
/* Filters at their places, in panels: how many bytes, and their filling from the weights. */
size_t hone_winograd_bytes(const hone_contract *);
/* parts 1 in f16 */
void hone_winograd_fill(const hone_contract *, const void *source, void *panels, int part, int parts);
/* Adds its steps; uses: what the contraction reads and writes. */
hone_status hone_winograd_steps(hone_template_builder *, hone_contract *, uint64_t uses) HONE_CHECKED;

/* Between the two files. Where part k of the columns begins, of `nt` each. */
int64_t hone_winograd_part(const hone_contract *, int64_t k);
/* Columns n0 … of the filters of a phase's channel c at all places: u[place * apart + j], j < wide. */
void hone_winograd_filters_of(const hone_contract *, const void *source, int phase, int64_t c, int64_t n0,
                              int64_t wide, float *u, ptrdiff_t apart);
static inline hone_winograd_less hone_winograd_less_of(const struct hone_winograd *w, int64_t tile) {
    const bool down = tile / w->across % w->down == w->down - 1, across = tile % w->across == w->across - 1;
    return (hone_winograd_less){down ? w->less.y : 0, across ? w->less.x : 0};
}
static inline bool hone_winograd_packs_a(const hone_contract *d, const struct hone_winograd *w) {
    return d->kernel->pack_a && !w->half;
}
/* Columns of the panel that begins at n0. Where a last one would be of one vector, whose sums are too few to
   keep the units of a core busy, the one before gives it one of its own. */
static inline bool hone_winograd_gives(const hone_contract *d, const struct hone_winograd *w, int64_t left) {
    return hone_winograd_packs_a(d, w) && d->kernel->packed_widths > 2 && left == w->nr + d->kernel->vector;
}
static inline int64_t hone_winograd_panel(const hone_contract *d, const struct hone_winograd *w, int64_t n0) {
    const int64_t left = w->columns - n0;
    return left < w->nr ? left : hone_winograd_gives(d, w, left) ? w->nr - d->kernel->vector : w->nr;
}
static inline int64_t hone_winograd_depth(const struct hone_winograd *w, int place) { /* K of a place */
    return (w->before[place + 1] - w->before[place]) * w->channels;
}
/* Where the filters of a place begin, in the panel of `wide` columns from n0 on. */
static inline int64_t hone_winograd_filters_at(const struct hone_winograd *w, int place, int64_t n0,
                                               int64_t wide) {
    return w->by_place ? w->before[place] * w->channels * w->columns + n0 * hone_winograd_depth(w, place)
                       : (n0 * w->before[w->places] + w->before[place] * wide) * w->channels;
}
#endif
