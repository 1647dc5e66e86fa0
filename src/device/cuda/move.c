/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/move.h"

/* rows of x along its contiguous dim; of one row the pitch does not matter */
static bool x_aligned(const hone_cuda_movement *m, bool turn) {
    const int across = turn ? 2 : 1;
    return m->p.x % 16 == 0 && (m->p.extent[0] == 1 || m->p.stride_x[0] * m->bytes % 16 == 0) &&
           (m->p.extent[across] == 1 || m->p.stride_x[across] * m->bytes % 16 == 0);
}
static bool y_aligned(const hone_cuda_movement *m) {
    return m->p.y % 16 == 0 && m->p.extent[2] * m->bytes % 16 == 0;
}

enum { MOST_WHOLE = 64 << 10 };
/* How a block can have all of one i (see move.cu): 2, 3, or 0 where it cannot. */
static int whole_turn(const hone_cuda_movement *m) {
    const long long *e = m->p.extent, bytes = e[1] * m->bytes > MOST_WHOLE || e[2] * m->bytes > MOST_WHOLE
                                                  ? 0
                                                  : e[1] * e[2] * m->bytes;
    const bool can = m->p.stride_x[1] == 1 && m->p.stride_x[2] == e[1] && (m->p.x | m->p.y) % 16 == 0 &&
                     m->p.stride_x[0] * m->bytes % 16 == 0;
    if (!can || bytes % 16 || bytes > MOST_WHOLE || !bytes) return 0;
    if (!x_aligned(m, true)) return 2;
    return y_aligned(m) || m->bytes > 2 || e[1] * m->bytes % 16 ? 0 : 3;
}
static long long whole_bytes(const hone_cuda_movement *m, int turn) { /* of shared memory */
    return m->p.extent[1] * m->p.extent[2] * m->bytes +
           (turn == 3 ? m->p.extent[2] * m->bytes / 16 * 16 + 16 : 0);
}
void hone_cuda_move_merge(hone_cuda_movement *m) {
    long long *e = m->p.extent, *s = m->p.stride_x;
    if (s[2] == 1 && s[1] == e[2]) e[2] *= e[1], e[1] = 1, s[1] = e[2];
    if (e[1] == 1 && s[2] == 1 && s[0] == e[2]) e[2] *= e[0], e[0] = 1, s[0] = s[1] = e[2];
}
int hone_cuda_move_ways(const hone_cuda_movement *m, hone_cuda_move_way *way, int most) {
    const int turn = m->p.stride_x[2] != 1 && m->p.extent[2] > 1;
    int n = 0;
    /* a copy: pieces a thread has under way, whether what it writes stays in L2 */
    for (int k = 0; k < 4 && !turn; k++)
        if (n < most) way[n++] = (hone_cuda_move_way){0, k / 2 ? 4 : 2, k % 2, 6};
    for (int high = m->bytes == 1 ? 128 : 64; high <= 256 && turn; high *= 2) {
        /* by shared memory */
        const int blocks = 196608 / (high * (x_aligned(m, true) ? 128 : 144));
        if (n && m->p.extent[2] <= high / 2) break; /* a lower tile holds all rows */
        if (n < most) way[n++] = (hone_cuda_move_way){1, high, 0, blocks < 8 ? blocks : 8};
    }
    const int whole = turn ? whole_turn(m) : 0;
    const long long fit = (160 << 10) / (whole_bytes(m, whole) + 1024);
    if (whole && n < most) way[n++] = (hone_cuda_move_way){whole, 0, 0, fit < 1 ? 1 : fit < 8 ? (int)fit : 8};
    return n;
}
/* ---- cost: microseconds, from what an H200 was measured to take (bench/gpu --search); other GPUs are told
   apart by their multiprocessors and their L2 only. A tile takes a multiprocessor as long as some of its
   rows: more where sides are not aligned, and halves of them where elements are wide. ---- */
static const struct {
    /* nanoseconds a row of 128 bytes; what a tile takes besides, in rows */
    double row, rows_more;
} tile[2][2] = {{{11.9, 29}, {3.5, 122}}, {{6.8, 84}, {1.0, 64}}}; /* x is aligned, y is */
double hone_cuda_move_cost(const hone_cuda_movement *m, const hone_cuda_facts *gpu,
                           const hone_cuda_move_way *w) {
    const double elements = (double)m->p.extent[0] * (double)m->p.extent[1] * (double)m->p.extent[2],
                 bytes = elements * m->bytes;
    if (!w->turn) { /* what is larger than L2 need not stay there */
        const bool large = bytes > (gpu->l2_bytes ? gpu->l2_bytes : 50e6) / 2;
        return 1 + bytes * 2e-6 / 4 + (w->once == large ? 0 : 0.1) + (w->high == (large ? 4 : 2) ? 0 : 0.05);
    }
    if (w->turn >= 2) { /* five times less arithmetic than by tiles whose rows begin anywhere */
        const double one =
                         0.7 + 1.2e-4 * (double)whole_bytes(m, w->turn) * (m->bytes > 2 ? 2.0 / m->bytes : 1),
                     turns = (double)hone_ceil_div(m->p.extent[0], (long long)gpu->sms * w->blocks),
                     all = turns * one * (w->blocks > 4 ? w->blocks / 4.0 : 1);
        return 1 + (all > bytes * 2e-6 / 4 ? all : bytes * 2e-6 / 4);
    }
    const bool x = x_aligned(m, true), y = y_aligned(m);
    const double tiles = (double)hone_ceil_div(m->p.extent[1], 128 / m->bytes) *
                         (double)hone_ceil_div(m->p.extent[2], w->high) * (double)m->p.extent[0];
    const double one =
        (w->high + tile[x][y].rows_more) * tile[x][y].row * (m->bytes > 2 ? 2.0 / m->bytes : 1) * 1e-3;
    const double all = tiles * one / gpu->sms, least = bytes * 2e-6 / 4;
    return 1 + (all > least ? all : least) + one + 1e-4 * w->high;
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
                                   {"ONCE", w->once, NULL},
                                   {"BLOCKS", w->blocks, NULL}};
    return hone_cuda_print(out, "move", fill, 7);
}
hone_cuda_launch_shape hone_cuda_move_launch(const hone_cuda_movement *m, const hone_cuda_move_way *w) {
    const long long *e = m->p.extent, pieces = x_aligned(m, false) && y_aligned(m) ? 16 / m->bytes : 1;
    if (w->turn >= 2)
        return (hone_cuda_launch_shape){
            .grid = {(int)e[0], 1, 1}, .threads = 256, .shared_bytes = (int)whole_bytes(m, w->turn)};
    const long long blocks = w->turn
                                 ? hone_ceil_div(e[1], 128 / m->bytes) * hone_ceil_div(e[2], w->high) * e[0]
                                 : hone_ceil_div(e[0] * e[1] * e[2], 256 * w->high * pieces);
    return (hone_cuda_launch_shape){.grid = {(int)blocks, 1, 1},
                                    .threads = 256,
                                    .shared_bytes = w->turn ? w->high * (x_aligned(m, true) ? 128 : 144) : 0};
}
