/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/move.h"

static long long rounds(long long n, long long by) { return (n + by - 1) / by; }
static bool x_aligned(const hone_cuda_movement *m, bool turn) { /* rows of x along its contiguous dim */
    return m->p.x % 16 == 0 && m->p.stride_x[0] * m->bytes % 16 == 0 && m->p.stride_x[turn ? 2 : 1] * m->bytes % 16 == 0;
}
static bool y_aligned(const hone_cuda_movement *m) { return m->p.y % 16 == 0 && m->p.extent[2] * m->bytes % 16 == 0; }

int hone_cuda_move_ways(const hone_cuda_movement *m, hone_cuda_move_way *way, int most) {
    static const int bands[] = {1, 8, 32, 4096};
    const bool turn = m->p.stride_x[2] != 1 && m->p.extent[2] > 1;
    int n = 0;
    if (!turn) {
        for (int high = 2; high <= 8; high *= 2)
            for (int once = 0; once < 2; once++)
                if (n < most) way[n++] = (hone_cuda_move_way){false, high, 1, once, high == 8 ? 4 : 6};
        return n;
    }
    for (int high = m->bytes == 1 ? 128 : 64; high <= 256; high *= 2) {
        if (high > 128 && m->p.extent[2] <= high / 2) break; /* a lower tile holds all rows */
        for (int k = 0; k < 4; k++)
            for (int once = 0; once < 2; once++) {
                const int blocks = 196608 / (high * (x_aligned(m, true) ? 128 : 144)); /* by shared memory */
                if (k && bands[k - 1] * 128 / m->bytes >= m->p.extent[1]) continue;   /* a narrower band holds all columns */
                if (n < most) way[n++] = (hone_cuda_move_way){true, high, bands[k], once, blocks < 8 ? blocks : 8};
            }
    }
    return n;
}
double hone_cuda_move_cost(const hone_cuda_movement *m, const hone_cuda_facts *gpu, const hone_cuda_move_way *w) {
    (void)gpu;
    const double bytes = 2e-6 * (double)m->p.extent[0] * (double)m->p.extent[1] * (double)m->p.extent[2] * m->bytes;
    return 2 + bytes / 3.8 + (w->turn ? (w->high == 128 ? 0 : 1) + (w->band == 8 ? 0 : 1) : w->high == 4 ? 0 : 1) + w->once;
}
hone_cuda_move_way hone_cuda_move_best(const hone_cuda_movement *m, const hone_cuda_facts *gpu) {
    hone_cuda_move_way way[64];
    const int n = hone_cuda_move_ways(m, way, 64);
    int best = 0;
    for (int k = 1; k < n; k++)
        if (hone_cuda_move_cost(m, gpu, &way[k]) < hone_cuda_move_cost(m, gpu, &way[best])) best = k;
    return way[best];
}
hone_status hone_cuda_move_print(hone_text *out, const hone_cuda_movement *m, const hone_cuda_move_way *w) {
    const hone_cuda_fill fill[] = {{"BYTES", m->bytes, NULL},
                                   {"TURN", w->turn, NULL},
                                   {"X_ALIGNED", x_aligned(m, w->turn), NULL},
                                   {"Y_ALIGNED", y_aligned(m), NULL},
                                   {"HIGH", w->high, NULL},
                                   {"BAND", w->band, NULL},
                                   {"ONCE", w->once, NULL},
                                   {"BLOCKS", w->blocks, NULL}};
    return hone_cuda_print(out, "move", fill, 8);
}
hone_cuda_launch_shape hone_cuda_move_launch(const hone_cuda_movement *m, const hone_cuda_move_way *w) {
    const long long *e = m->p.extent, pieces = x_aligned(m, false) && y_aligned(m) ? 16 / m->bytes : 1;
    const long long blocks = w->turn ? rounds(e[1], 128 / m->bytes) * rounds(e[2], w->high) * e[0] : rounds(e[0] * e[1] * e[2], 256 * w->high * pieces);
    return (hone_cuda_launch_shape){
        .grid = {(int)blocks, 1, 1}, .threads = 256, .shared_bytes = w->turn ? w->high * (x_aligned(m, true) ? 128 : 144) : 0};
}
