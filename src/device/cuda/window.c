/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/window.h"

static const int bytes_of[] = {[HONE_CUDA_F16] = 2, [HONE_CUDA_BF16] = 2, [HONE_CUDA_F32] = 4, [HONE_CUDA_S8] = 1, [HONE_CUDA_S32] = 4};
static long long rounds(long long n, long long by) { return (n + by - 1) / by; }
/* Registers that hold a thread's pixels; too many are spilled. */
static int pixels_kept(const hone_cuda_windowed *v, const hone_cuda_window_way *w) {
    const int columns = (w->strip - 1) * v->p.stride_x + (v->p.kernel_x - 1) * v->p.dilation_x + 1,
              lines = (w->lines - 1) * v->p.stride_y + (v->p.kernel_y - 1) * v->p.dilation_y + 1;
    return columns * lines * ((w->width * bytes_of[v->type] + 3) / 4);
}
int hone_cuda_window_ways(const hone_cuda_windowed *v, hone_cuda_window_way *way, int most) {
    static const int strips[] = {1, 2, 4, 7}, many[] = {1, 2, 4};
    const hone_cuda_address all = v->p.x | v->p.y | v->p.residual;
    int n = 0;
    for (int width = 1; width <= 16 / bytes_of[v->type]; width *= 2)
        for (int q = 0; q < 12; q++) {
            const hone_cuda_window_way w = {width, strips[q % 4], many[q / 4]};
            const int sums = width * w.strip * w.lines;
            if (width > 1 && (v->p.channels % width || all % (unsigned)(width * bytes_of[v->type]))) break;
            if (width * w.strip * w.lines > 1 && (sums > 64 || sums + pixels_kept(v, &w) > 190)) continue; /* registers */
            if (n < most) way[n++] = w;
        }
    return n;
}
double hone_cuda_window_cost(const hone_cuda_windowed *v, const hone_cuda_facts *gpu, const hone_cuda_window_way *w) {
    (void)v, (void)gpu, (void)w;
    return 1;
}
hone_cuda_window_way hone_cuda_window_best(const hone_cuda_windowed *v, const hone_cuda_facts *gpu) {
    hone_cuda_window_way way[64];
    const int n = hone_cuda_window_ways(v, way, 64);
    int best = 0;
    for (int k = 1; k < n; k++)
        if (hone_cuda_window_cost(v, gpu, &way[k]) < hone_cuda_window_cost(v, gpu, &way[best])) best = k;
    return way[best];
}
hone_status hone_cuda_window_print(hone_text *out, const hone_cuda_windowed *v, const hone_cuda_window_way *w) {
    const hone_cuda_fill fill[] = {{"KIND", (int)v->kind, NULL},       {"IN_TYPE", (int)v->type, NULL},
                                   {"WIDTH", w->width, NULL},          {"STRIP", w->strip, NULL},
                                   {"LINES", w->lines, NULL},          {"DILATION", v->p.dilation_x, NULL},
                                   {"KERNEL_Y", v->p.kernel_y, NULL},  {"KERNEL_X", v->p.kernel_x, NULL},
                                   {"STRIDE", v->p.stride_x, NULL},    {"EPILOGUE", 0, v->epilogue}};
    return hone_cuda_print(out, "window", fill, 10);
}
hone_cuda_launch_shape hone_cuda_window_launch(const hone_cuda_windowed *v, const hone_cuda_window_way *w) {
    const long long across = rounds(v->p.out_width, w->strip) * (v->p.channels / w->width);
    return (hone_cuda_launch_shape){.grid = {(int)rounds(across, 128), (int)rounds(v->p.out_height, w->lines), v->p.batch}, .threads = 128};
}
