/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/first.h"

#include <math.h>

#include "base/round.h"
#include "device/cuda/pack.h"

static int bytes_of(hone_cuda_type t) {
    return t == HONE_CUDA_F32 || t == HONE_CUDA_S32 ? 4 : t == HONE_CUDA_S8 || t == HONE_CUDA_U8 ? 1 : 2;
}
typedef struct { /* of a block; the names and the sums are first_layer.cu's */
    int threads, pieces, pixels, shared;
    int64_t tiles;
    int columns, fit; /* blocks side by side: in y, and on a multiprocessor */
} block;
static block block_of(const hone_cuda_first_layer *f, const hone_cuda_facts *gpu,
                      const hone_cuda_first_way *w) {
    enum { REGISTERS = 128, MOST_THREADS = 2048 }; /* a thread's, about; a multiprocessor's */
    const hone_cuda_window *x = &f->p.w;
    const int line = (x->kernel_x + 1) / 2, warps = w->tile_y / w->blocks_m,
              patch_y = (w->tile_y - 1) * x->stride_y + x->kernel_y,
              patch_x = (15 * x->stride_x + 2 * line + 1) / 2 * 2;
    block b = {
        .threads = 32 * warps, .pieces = (x->kernel_y * line + 1) / 2 * 2, .pixels = patch_y * patch_x};
    b.shared =
        w->tile_n * (b.pieces + 1) * 16 + b.pixels * 8 + warps * 16 * (w->tile_n * bytes_of(f->out) + 16);
    b.tiles = (int64_t)((x->out_width + 15) / 16) * hone_ceil_div(x->out_height, w->tile_y) * x->batch;
    b.columns = hone_ceil_div(f->p.p.n, w->tile_n);
    const int by_shared = (gpu->shared_bytes + 1024) / (b.shared + 1024),
              by_threads = MOST_THREADS / b.threads, by_registers = 65536 / (REGISTERS * b.threads);
    b.fit = by_shared < by_threads ? by_shared : by_threads;
    b.fit = b.fit < by_registers ? b.fit : by_registers;
    b.fit = b.fit > 1 ? b.fit : 1;
    return b;
}
int hone_cuda_first_ways(const hone_cuda_first_layer *f, const hone_cuda_facts *gpu, hone_cuda_first_way *way,
                         int most) {
    static const hone_cuda_first_way all[] = {{4, 1, 64}, {8, 1, 64}, {8, 2, 64},  {16, 2, 64}, {16, 4, 64},
                                              {8, 2, 32}, {4, 1, 32}, {16, 4, 32}, {4, 1, 16},  {8, 2, 16}};
    enum { MOST_PIXELS = 40 }; /* that a thread has in registers */
    const hone_cuda_window *x = &f->p.w;
    int n = 0;
    if (x->channels < 1 || x->channels > 4 || x->stride_y != x->stride_x || x->dilation_y != 1 ||
        x->dilation_x != 1 || x->kernel_y * x->kernel_x * 4 > HONE_CUDA_FIRST_MOST ||
        f->p.p.k != x->kernel_y * x->kernel_x * x->channels)
        return 0;
    for (size_t k = 0; k < sizeof all / sizeof *all && n < most; k++) {
        const block b = block_of(f, gpu, all + k);
        if (b.shared > gpu->shared_bytes || b.pixels > MOST_PIXELS * b.threads) continue;
        /* a narrower tile for few channels, not for many */
        if (all[k].tile_n < 64 && f->p.p.n > all[k].tile_n) continue;
        way[n++] = all[k];
    }
    return n;
}
/* Clocks of one block's tile, counted from its instructions: pixels into shared memory, matrix instructions,
   and the loads of their fragments, 4 clocks each; and not less than one tile's latency. */
double hone_cuda_first_cost(const hone_cuda_first_layer *f, const hone_cuda_facts *gpu,
                            const hone_cuda_first_way *w) {
    enum { CLOCKS_A_US = 1700, LATENCY = 2500, START_US = 2 };
    const block b = block_of(f, gpu, w);
    const double warps = b.threads / 32, steps = b.pieces / 2, blocks_n = w->tile_n / 8;
    const double loads = b.pixels * (f->p.w.channels + 2) / 32.0,
                 fragments = warps * steps * (w->blocks_m + blocks_n / 2) * 4,
                 products = warps * steps * w->blocks_m * blocks_n,
                 stores = w->tile_y * 16.0 * w->tile_n * bytes_of(f->out) / 64;
    const double at_once = (double)gpu->sms * b.fit, turns = ceil((double)b.tiles * b.columns / at_once);
    const double busy = b.fit * (loads + fragments + products + stores);
    return START_US + turns * (busy > LATENCY ? busy : LATENCY) / CLOCKS_A_US;
}
bool hone_cuda_first_best(const hone_cuda_first_layer *f, const hone_cuda_facts *gpu,
                          hone_cuda_first_way *way) {
    hone_cuda_first_way all[16];
    const int n = hone_cuda_first_ways(f, gpu, all, 16);
    for (int k = 0; k < n; k++)
        if (!k || hone_cuda_first_cost(f, gpu, all + k) < hone_cuda_first_cost(f, gpu, way)) *way = all[k];
    return n > 0;
}
hone_status hone_cuda_first_print(hone_text *out, const hone_cuda_first_layer *f,
                                  const hone_cuda_first_way *w) {
    const hone_cuda_window *x = &f->p.w;
    const hone_cuda_fill fill[] = {
        {"IN_TYPE", (int)f->in, NULL},   {"OUT_TYPE", (int)f->out, NULL}, {"IMAGE_TYPE", (int)f->image, NULL},
        {"CHANNELS", x->channels, NULL}, {"KERNEL_Y", x->kernel_y, NULL}, {"KERNEL_X", x->kernel_x, NULL},
        {"STRIDE", x->stride_x, NULL},   {"TILE_Y", w->tile_y, NULL},     {"BLOCKS_M", w->blocks_m, NULL},
        {"TILE_N", w->tile_n, NULL},     {"EPILOGUE", 0, f->epilogue}};
    return hone_cuda_print(out, "first_layer", fill, (int)(sizeof fill / sizeof *fill));
}
hone_cuda_launch_shape hone_cuda_first_launch(const hone_cuda_first_layer *f, const hone_cuda_facts *gpu,
                                              const hone_cuda_first_way *w) {
    const block b = block_of(f, gpu, w);
    const int64_t at_once = (int64_t)gpu->sms * b.fit / b.columns, some = at_once > 1 ? at_once : 1;
    return (hone_cuda_launch_shape){.grid = {(int)(b.tiles < some ? b.tiles : some), b.columns, 1},
                                    .threads = b.threads,
                                    .shared_bytes = b.shared};
}
