/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/rows.h"

static const int bytes_of[] = {[HONE_CUDA_F16] = 2, [HONE_CUDA_BF16] = 2, [HONE_CUDA_F32] = 4,
                               [HONE_CUDA_S8] = 1,  [HONE_CUDA_S32] = 4,  [HONE_CUDA_U8] = 1};
/* vectors of so many elements are aligned, and rows are whole ones */
static bool fits(const hone_cuda_rowwise *r, int width) {
    const unsigned in = (unsigned)(width * bytes_of[r->in]), out = (unsigned)(width * bytes_of[r->out]),
                   to = out < 16 ? out : 16, constants = width < 4 ? (unsigned)width * 4 : 16;
    const bool reduces = r->kind >= HONE_CUDA_ROW_SUM;
    return r->p.columns % width == 0 && r->p.x % in == 0 && r->p.pitch_x * bytes_of[r->in] % in == 0 &&
           (r->p.weight | r->p.bias) % constants == 0 &&
           (reduces || (r->p.y % to == 0 && r->p.pitch_y * bytes_of[r->out] % to == 0));
}
int hone_cuda_rows_ways(const hone_cuda_rowwise *r, hone_cuda_rows_way *way, int most) {
    int n = 0, width = 16 / bytes_of[r->in];
    while (width > 1 && !fits(r, width)) width /= 2;
    for (int threads = 16; threads <= 1024; threads *= 2)
        for (int at_once = 1; at_once == 1 || at_once * threads <= 256; at_once *= 2) {
            const long long vectors = hone_ceil_div(r->p.columns, (long long)width * threads);
            if ((vectors > 8 && threads < 1024) || at_once * threads < 64) continue;
            const int kept = vectors > 8 ? 4 : (int)vectors, is_long = vectors > 8;
            /* registers: a vector is up to four, the rest about 26 */
            const int registers = 26 + (kept * width * bytes_of[r->in] + 3) / 4,
                      all = 2048 / (threads * at_once);
            int fit = 65536 / ((registers + 7) / 8 * 8) / (threads * at_once);
            fit = fit < 1 ? 1 : fit < all ? fit : all;
            if (n < most)
                way[n++] = (hone_cuda_rows_way){width, kept, threads, at_once, is_long, fit < 32 ? fit : 32};
        }
    return n;
}
/* ---- cost: microseconds from counts of work. The rates were fitted to all ways of 22 jobs as an H200 does
   them (bench/gpu --search); other GPUs are told apart by their multiprocessors only. ---- */
static const struct {
    double launch, latency, vector, joined,
        wide; /* a kernel; a block: what it takes at least, each vector, a join over warps, 128 threads */
    /* millions of bytes a microsecond; megabytes that must be under way for half of that */
    double memory, flight;
    /* nanoseconds from one block to the next, and for each 128 of its threads */
    double start, start_wide;
    double tail; /* of a block's time that nothing overlaps */
} fitted = {0.489, 0.101, 0.207, 0.065, 0.205, 4.1, 1.36, 0.805, 0.516, 0.537};
static double most_of(double a, double b) { return a > b ? a : b; }
double hone_cuda_rows_cost(const hone_cuda_rowwise *r, const hone_cuda_facts *gpu,
                           const hone_cuda_rows_way *w) {
    const int in = bytes_of[r->in], out = r->kind >= HONE_CUDA_ROW_SUM ? 0 : bytes_of[r->out];
    const double blocks = (double)hone_ceil_div(r->p.rows, w->at_once),
                 threads = w->threads * w->at_once / 128.0, vector = w->width * in;
    const double passes =
        w->is_long ? 3.0 * (double)hone_ceil_div(r->p.columns, (long long)w->threads * w->vectors * w->width)
                   : 1;
    const double bytes = (double)r->p.rows * r->p.columns * 1e-6 * (in * (w->is_long ? 2 : 1) + out);
    /* blocks of a multiprocessor at a time */
    const double here = most_of(1, blocks / gpu->sms < w->blocks ? blocks / gpu->sms : w->blocks);
    const double flight = gpu->sms * here * threads * 128e-6 * w->vectors * vector;
    const double block = fitted.latency + fitted.vector * w->vectors * passes * most_of(0.3, vector / 16) +
                         (w->threads > 32 ? fitted.joined : 0) + fitted.wide * threads;
    double apart = 0; /* blocks of 128 threads do best, and up to four vectors */
    for (int t = w->threads * w->at_once; t != 128; t = t < 128 ? t * 2 : t / 2) apart += 0.01;
    if (w->vectors > 4) apart += 0.02 * (w->vectors - 4);
    return (1 + apart) * (fitted.launch + fitted.tail * block +
                          most_of(most_of(bytes / fitted.memory * (1 + fitted.flight / flight),
                                          blocks * (fitted.start + fitted.start_wide * threads) * 1e-3),
                                  block * most_of(1, blocks / gpu->sms / w->blocks)));
}
hone_cuda_rows_way hone_cuda_rows_best(const hone_cuda_rowwise *r, const hone_cuda_facts *gpu) {
    hone_cuda_rows_way way[64];
    const int n = hone_cuda_rows_ways(r, way, 64);
    int best = 0;
    for (int k = 1; k < n; k++)
        if (hone_cuda_rows_cost(r, gpu, &way[k]) < hone_cuda_rows_cost(r, gpu, &way[best])) best = k;
    return way[best];
}
hone_status hone_cuda_rows_print(hone_text *out, const hone_cuda_rowwise *r, const hone_cuda_rows_way *w) {
    const hone_cuda_fill fill[] = {{"KIND", (int)r->kind, NULL},
                                   {"IN_TYPE", (int)r->in, NULL},
                                   {"OUT_TYPE", (int)r->out, NULL},
                                   {"WIDTH", w->width, NULL},
                                   {"VECTORS", w->vectors, NULL},
                                   {"THREADS_A_ROW", w->threads, NULL},
                                   {"ROWS_A_BLOCK", w->at_once, NULL},
                                   {"BLOCKS", w->blocks, NULL},
                                   {"LONG", w->is_long, NULL},
                                   {"BEFORE", 0, r->before},
                                   {"AFTER", 0, r->after}};
    return hone_cuda_print(out, "rows", fill, 11);
}
hone_cuda_launch_shape hone_cuda_rows_launch(const hone_cuda_rowwise *r, const hone_cuda_rows_way *w) {
    return (hone_cuda_launch_shape){.grid = {(int)hone_ceil_div(r->p.rows, w->at_once), 1, 1},
                                    .threads = w->threads * w->at_once,
                                    .shared_bytes = w->threads > 32 ? 128 * w->at_once : 0};
}
