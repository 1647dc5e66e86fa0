/* SPDX-License-Identifier: Apache-2.0
   winograd: convolutions by tiles, with fewer products than the sum has terms. Pure arithmetic, as gemm.h:
   the products in between are its matrix kernels', blocks and pointers those of the tactic that calls
   (device/cpu/winograd.c).

   The results of a tile of o x o pixels come of e x e pixels d, e = o + r - 1, and a filter g of r x r taps.
   As polynomials, filter and pixels are multiplied at e - 1 points and at infinity, along both ways:

        v = B' d B     pixels in the transform domain (the input transform)
        u = G g G'     filters there
        m = v u        value by value, summed over channels
        y = A' m A     results (the output transform)

   The values of a tile in the transform domain are its *places*. So a place is one matrix product over
   channels, and a tile costs e^2 products a channel instead of r^2 o^2: for 3x3 taps 16 instead of 36 (o =
   2), 36 instead of 144 (o = 4), 64 instead of 324 (o = 6). B knows the points only: an edge e serves all
   filters, with as many results as r leaves. Errors grow with e and with the points. For e = 4 they are 0, 1,
   -1; for e = 6  0, 5/8, -5/8, 3/2, -3/2, which err half as much as 0, 1, -1, 2, -2 and whose A and B are
   exact in f32. For e = 8  0, 1/2, -1/2, 1, -1, 2, -2: of 3571 triples a < b < c of four binary digits, from
   1/4 to 3.5, none erred clearly less (3x3 taps emulated in f32 against double, random pixels and filters:
   root mean square 3e-6 of that of the results for 64 channels, 8e-6 for 512; the best others within a tenth
   of that), and no other has so simple constants. Infinity and NaN in d reach all of the tile.

   Of these points ±1 alone serve tiles that are smaller by four results, ±1/2 and ±2 those smaller by two;
   of e = 6 ±5/8. Filters at a point are the same for all of them, but for a factor, which is the pixels'
   then: (p^2 - q^2) for each pair ±q that is left out. They err less than whole tiles (8 to 6 places 1.1e-6,
   to 4 3e-7; 6 to 4 4e-7; as above, 64 channels).

   Tiles need not be square: where filters are what costs, 2x4 results are 24 places, between the 16 of 2x2
   and the 36 of 4x4. A window along one way has tiles of results in a line, of the eight points of e = 8: v =
   B' d, u = G g, y = A' m: for five taps 8 products instead of 20. Errors are those
   of one way: root mean square 1.3e-6 of that of the results for 256 channels (emulated), less than half of
   those of 6x6.

   Pixels lie channels last: a vector is of channels. */
#ifndef HONE_KERNELS_WINOGRAD_H
#define HONE_KERNELS_WINOGRAD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HONE_WINOGRAD_SIZES = 4, /* of 4x4, 6x6, 8x8 and 4x6 places */
    HONE_WINOGRAD_LINES = 2, /* the size whose points lines have */
    HONE_WINOGRAD_FLAT = 3,
    HONE_WINOGRAD_EDGE = 8 /* the most */,
    HONE_WINOGRAD_POINTS = HONE_WINOGRAD_EDGE * HONE_WINOGRAD_EDGE,
    HONE_WINOGRAD_LEAST = 2, /* taps a side */
    HONE_WINOGRAD_MOST = 5,
    HONE_WINOGRAD_FILTERED = HONE_WINOGRAD_MOST - HONE_WINOGRAD_LEAST + 1
};
/* across */
static inline int hone_winograd_edge(int size) { return size == HONE_WINOGRAD_FLAT ? 6 : 2 * size + 4; }
/* down */
static inline int hone_winograd_tall(int size) { return size == HONE_WINOGRAD_FLAT ? 4 : 2 * size + 4; }
static inline int hone_winograd_out(int size, int taps) { return hone_winograd_edge(size) - taps + 1; }
/* How a choice calls it: results a side, where it is square; 24: of 2x4 */
static inline int hone_winograd_side(int size, int taps) {
    return size == HONE_WINOGRAD_FLAT ? 24 : hone_winograd_out(size, taps);
}
static inline bool hone_winograd_has(int size, int taps) {
    if (size == HONE_WINOGRAD_FLAT) return taps == 3;
    return taps >= HONE_WINOGRAD_LEAST && taps <= HONE_WINOGRAD_MOST && hone_winograd_out(size, taps) >= 2 &&
           hone_winograd_out(size, taps) <= 6;
}

/* A tile of fewer results, which an image's last ones may be, needs fewer points. Of 6x6 and 8x8 places some
   pairs p, -p are left out, down and across: the others are places of the same filters, and only B knows.
   Two pixels and results less for each pair. */
typedef struct {
    int y, x; /* pairs */
} hone_winograd_less;
static inline bool hone_winograd_lacks(int pairs, int place) { /* of a line */
    return pairs == 1 ? place == 3 || place == 4
                      : pairs == 2 && place && place != 3 && place != 4 && place != 7;
}
/* How many are not needed for so many results of a line of o, with `edge` places. */
static inline int hone_winograd_spare(int edge, int o, int64_t results) {
    int pairs = 0;
    while (o - 2 * (pairs + 1) >= results && o - 2 * (pairs + 1) >= 2 && edge - 2 * (pairs + 1) >= 4) pairs++;
    return pairs;
}
/* v[place * apart + c], c < n, of pixel[place][c]; of a tile that lacks some, of the first ones of its
   lines */
typedef void hone_winograd_input_fn(const float *const *pixel, int64_t n, float *v, ptrdiff_t apart,
                                    hone_winograd_less);
typedef struct {
    const float *m; /* m[place * apart + j], j < n */
    ptrdiff_t apart, n;
    hone_winograd_less less;
    float *const *y; /* y[pixel][from + j]; NULL: outside the image, not written */
    ptrdiff_t from;
    /* as in gemm.h, where given: + bias[j] + residual[pixel][from + j], then the clamp */
    const float *bias, *const *residual;
    bool clamp;
    float lo, hi;
} hone_winograd_end;
typedef void hone_winograd_output_fn(const hone_winograd_end *);
typedef struct {
    const char *name;
    uint32_t cpu;
    bool lacks; /* takes tiles that lack some; else hone_winograd_less is not looked at */
    hone_winograd_input_fn *in[HONE_WINOGRAD_SIZES];
    /* by taps - the least; NULL: not so */
    hone_winograd_output_fn *out[HONE_WINOGRAD_SIZES][HONE_WINOGRAD_FILTERED];
    /* along one way */
    hone_winograd_input_fn *in_line;
    hone_winograd_output_fn *out_line[HONE_WINOGRAD_FILTERED];
} hone_winograd_f32;
extern const hone_winograd_f32 hone_winograd_f32_list[];
const hone_winograd_f32 *hone_winograd_f32_best(void);

/* G, down and across, in double. */
typedef struct {
    int down, across, taps;
    double y[HONE_WINOGRAD_EDGE][HONE_WINOGRAD_MOST], x[HONE_WINOGRAD_EDGE][HONE_WINOGRAD_MOST];
} hone_winograd_g;
hone_winograd_g hone_winograd_g_of(int size, bool line, int taps);
/* n filters of taps x taps, g[taps*y + x][j], or along one way g[x][j], to u[place * apart + j]: in double,
   rounded once. */
enum { HONE_WINOGRAD_FILTERS = 64 /* at once */ };
void hone_winograd_filters(const hone_winograd_g *, const float (*g)[HONE_WINOGRAD_FILTERS], int n, float *u,
                           ptrdiff_t apart);
#endif
