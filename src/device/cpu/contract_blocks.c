/* SPDX-License-Identifier: Apache-2.0
   contract_blocks: how wide a panel of an f32 matrix multiplication is, and how it is cut into tiles, by
   estimate. What was measured instead is wisdom's (wisdom.c). */
#include <math.h>

#include "device/cpu/contract.h"

/* NEON: nanoseconds for all columns of a value of A, by panels of w vectors, at about what a Neoverse-V1 does
   in GFLOP/s by so many */
static double passing(const hone_contract *d, int w, const double *rate) {
    const int64_t all = hone_ceil_div(d->of.n, d->kernel->vector), rest = all % w;
    return 2.0 * (double)d->kernel->vector *
           ((double)(all - rest) / rate[w - 1] + (rest ? (double)rest / rate[rest - 1] : 0));
}
/* Packed rows: few values of K pay for fewer calls, rows that are not eight at a time want more sums.
   Unpacked rows, by four vectors, where they are of one piece and so short that they stay in L1 while all
   weights pass (3136 x 64 of K 64: 64 to 71 GFLOP/s). Nobody prefetches weights there, so they are waited
   for. */
static int neon_panel(const hone_contract *d) {
    enum { SMALL_K = 96, SHORT = 256 };
    static const double rates[3][3] = {{57, 79, 78.5}, {44, 70, 71}, {44, 71, 77}},
                        direct_rate[4] = {38, 72, 74, 79}, PACK_NS = 0.1, WEIGHTS_PER_NS = 24,
                        NEAR = 32768; /* bytes */
    const int64_t mr = d->kernel->mr[2], vector = d->kernel->vector;
    const double *rate = rates[d->of.k < SMALL_K                                         ? 1
                               : hone_ceil_div(d->of.m, hone_ceil_div(d->of.m, mr)) < mr ? 2
                                                                                         : 0],
                 m = (double)d->of.m;
    /* one row reads panels, and wide ones faster */
    if (d->of.m <= HONE_GEMM_SMALL_M) return d->of.m == 1 ? 3 : 2;
    const int v = passing(d, 2, rate) < passing(d, 3, rate) ? 2 : 3;
    const bool packs = hone_contract_packs_a(d), may = d->of.taps == 1 && d->of.piece == d->of.k &&
                                                       d->of.k <= SHORT && d->of.k % vector == 0 &&
                                                       d->of.n % vector == 0;
    const double far = 4.0 * (double)d->of.n - NEAR / (double)d->of.k,
                 direct = m * passing(d, 4, direct_rate) + (far > 0 ? far / WEIGHTS_PER_NS : 0),
                 packed = m * (passing(d, v, rate) + PACK_NS);
    return may && (!packs || direct < packed) ? 4 : packs ? v : 2;
}
/* The panel: as wide as the kernel can where it stays in L1 while rows pass, or rows pass only once. Else
   three vectors, where the tile is as high as by two and threads have panels enough to share: that the last
   one may be narrow matters less (Xeon, 64 x 2048 of K 512: 1.18 ms by three, 1.38
   by two; resnet50's late layers 6 to 23 % less). Else what divides the columns and asks L2 for less a
   row. */
void hone_contract_panel(hone_contract *d, int threads) {
    const hone_gemm_f32 *kernel = d->kernel;
    int v = kernel->widths;
    d->nr = 0;
    if (kernel->pack_a) v = neon_panel(d);
    else if (d->of.m > kernel->mr[v - 1] && v > 2 && d->of.k * v * kernel->vector > 10000 &&
             d->of.n > v * kernel->vector) {
        const bool high =
            kernel->mr[2] >= kernel->mr[1] && hone_ceil_div(d->of.n, 3 * kernel->vector) >= 2 * threads;
        if (high || d->of.n % (3 * kernel->vector) == 0) v = 3;
        else if (d->of.n % (2 * kernel->vector) == 0) v = 2;
        else v = 3;
    }
    d->nr = v * kernel->vector, d->mr = kernel->mr[v - 1];
}
/* f32: a tile walks its panels of B one by one, and for each all its rows of A, which should stay in L2
   meanwhile. What is cut more often is more evenly shared by the threads, but reads its operands more often:
   the least estimate of the time until the last one is done. */
enum {
    TILE_NS = 300,
    MEET_NS = 2000,
    BYTES_PER_NS = 32,
    PACKED_PER_NS = 8 /* bytes of rows that every tile packs */,
    DEPTHWISE = 4 /* times slower */
};
/* depthwise, a part of the channels: rows in pieces. 7 to 17 % in 8 layers of mobilenet_v2 */
static const double APART = 1.2;
static double estimate(const hone_contract *d, double rows, double columns, double tiles, int threads) {
    const double rate =
                     (double)(d->kernel->vector * hone_contract_lane(d)) / (d->dwconv_nhwc ? DEPTHWISE : 1),
                 k = (double)d->of.k;
    const double row = (double)(hone_contract_packs_a(d) && !d->dwconv_nhwc ? PACKED_PER_NS : BYTES_PER_NS);
    const double ns = TILE_NS + rows * columns * k / rate + (rows / row + columns / BYTES_PER_NS) * k * 4,
                 passes = ceil(tiles / threads);
    const double waits = !d->kernel->pack_a ? 0.2 : threads > 1 ? 0.05 : 0; /* at the end, for who is last */
    return tiles == 1
               ? ns
               : MEET_NS + (passes + waits) * ns * (d->dwconv_nhwc && columns < (double)d->of.n ? APART : 1);
}
void hone_contract_blocks(hone_contract *d, int threads) {
    static const int8_t parts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48};
    const int64_t whole = d->of.piece && d->of.piece <= HONE_CONTRACT_KC ? d->of.piece : 1;
    int64_t k = d->of.k < HONE_CONTRACT_KC ? d->of.k : HONE_CONTRACT_KC;
    /* parts of K: about equal, of whole pieces, because a short one pays for its sums as a long one does */
    if (d->kernel->pack_a) {
        k = hone_ceil_div(hone_ceil_div(d->of.k, hone_ceil_div(d->of.k, HONE_CONTRACT_KC)), whole) * whole;
        if (k > HONE_CONTRACT_KC) k -= whole;
    }
    const int64_t rows = hone_ceil_div(d->of.m, d->mr), panels = hone_ceil_div(d->of.n, d->nr);
    /* half a megabyte of each */
    int64_t most_m = 131072 / k / d->mr, most_n = d->packed_b || d->shared ? panels : 131072 / k / d->nr;
    /* rows are lists of pointers, which are to stay in L1 beside what is small */
    const int64_t listed = 2048 / (d->dwconv_nhwc ? d->of.k : (d->of.piece ? d->of.taps : 1) + 3) / d->mr;
    if (most_m > listed && (d->dwconv_nhwc || d->of.n * d->of.k <= 8192)) most_m = listed;
    if (most_m < 4) most_m = 4;
    if (most_n < 1) most_n = 1;
    const int64_t least_m = hone_ceil_div(rows, most_m), least_n = hone_ceil_div(panels, most_n);
    double best = INFINITY;
    d->kc = k;
    for (size_t i = 0; i < sizeof parts && (i == 0 || least_m * parts[i] <= rows); i++)
        for (size_t j = 0; j < sizeof parts && (j == 0 || least_n * parts[j] <= panels); j++) {
            int64_t mt = hone_ceil_div(rows, least_m * parts[i]) * d->mr,
                    nt = hone_ceil_div(panels, least_n * parts[j]) * d->nr;
            if (!d->direct && mt * nt > 131072 && nt > 4 * d->nr) nt = 4 * d->nr; /* sums wait in scratch */
            const double tiles =
                (double)(d->of.batch * hone_ceil_div(d->of.m, mt) * hone_ceil_div(d->of.n, nt));
            const double ns = estimate(d, (double)(mt < d->of.m ? mt : d->of.m), (double)nt, tiles, threads);
            if (ns < best) best = ns, d->mt = mt, d->nt = nt;
            if (tiles >= 8 * threads) break; /* enough */
        }
}
