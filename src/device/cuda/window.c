/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/window.h"

static const int bytes_of[] = {[HONE_CUDA_F16] = 2, [HONE_CUDA_BF16] = 2, [HONE_CUDA_F32] = 4,
                               [HONE_CUDA_S8] = 1,  [HONE_CUDA_S32] = 4,  [HONE_CUDA_U8] = 1};
/* Registers that hold a thread's pixels; too many are spilled. */
static int pixels_kept(const hone_cuda_windowed *v, const hone_cuda_window_way *w) {
    const int columns = (w->strip - 1) * v->p.stride_x + (v->p.kernel_x - 1) * v->p.dilation_x + 1,
              lines = (w->lines - 1) * v->p.stride_y + (v->p.kernel_y - 1) * v->p.dilation_y + 1;
    return columns * lines * ((w->width * bytes_of[v->type] + 3) / 4);
}
int hone_cuda_window_ways(const hone_cuda_windowed *v, hone_cuda_window_way *way, int most) {
    const hone_cuda_address all = v->p.x | v->p.y | v->p.residual, constants = v->p.w | v->p.bias;
    const int bytes = bytes_of[v->type], taps = v->p.kernel_y * v->p.kernel_x;
    int n = 0, widest = 16 / bytes;
    while (widest > 1 && ((v->p.channels | v->p.pitch_x | v->p.pitch_y) % widest || constants % 16 ||
                          all % (unsigned)(widest * bytes)))
        widest /= 2;
    for (int width = 1; width <= widest; width *= 2)
        for (int q = 0; q < 9; q++) {
            const hone_cuda_window_way w = {width, 1 << q % 3, 1 << q / 3, 0};
            const int sums = width * w.strip * w.lines;
            if (w.strip * w.lines == 16) continue; /* was never the best */
            /* narrow loads pay for few windows only */
            if (width < widest && width < 4 && (width > 1 || taps > 9)) break;
            /* registers */
            if (sums > 1 && (sums > 64 || sums + pixels_kept(v, &w) > 170) && n) continue;
            if (n < most) way[n++] = w;
        }
    /* weights stay in registers */
    for (int width = 4; width <= widest && taps * width <= 72 && v->p.dilation_x == 1; width *= 2)
        for (int q = 0; q < (width == 4 ? 12 : 6); q++) {
            static const int lines[] = {4, 7, 14};
            const hone_cuda_window_way w = {width, q / 6 + 1, lines[q % 3], q / 3 % 2 + 1};
            if (w.lines < 2 * v->p.out_height && w.strip * w.lines * v->p.stride_x < 50 && n < most)
                way[n++] = w;
        }
    return n;
}
/* ---- cost: microseconds from counts of work. The rates were fitted to all ways of 18 depthwise convolutions
   as an H200 does them (bench/gpu --search); other GPUs are told apart by their multiprocessors only. ---- */
static const struct {
    double launch, memory; /* a kernel; millions of bytes a microsecond */
    /* all blocks that run at a time: what they wait for memory, and for each pixel of a thread */
    double turn, turn_pixel;
    /* of a block, nanoseconds: a multiply-add of each thread, a channel of a pixel, a load */
    double product, widened, pixel;
    double registers, registers_pixel; /* of a thread: what it has anyway, and what it has of its pixels */
    double whole;                      /* how much of the last turn's blocks run alone */
} fitted = {0.4947, 3.908, 0.2957, 0.0244, 0.7327, 4.083, 3.065, 62.03, 0.4474, 0.428};
/* the same of threads that walk down the image: they wait for each row, the less the more rows are under
   way */
static const struct {
    double launch, turn, row, product, weight, pixel, whole;
} walking = {0.0192, 0.1866, 0.1356, 1.746, 1.075, 9.72, 0.2104};
double hone_cuda_window_cost(const hone_cuda_windowed *v, const hone_cuda_facts *gpu,
                             const hone_cuda_window_way *w) {
    const hone_cuda_launch_shape s = hone_cuda_window_launch(v, w);
    const double blocks = (double)s.grid[0] * s.grid[1] * s.grid[2], sums = w->width * w->strip * w->lines,
                 taps = v->p.kernel_y * v->p.kernel_x, rows = (w->lines - 1) * v->p.stride_y + v->p.kernel_y;
    const double pixels = ((w->strip - 1) * v->p.stride_x + v->p.kernel_x) * rows;
    const double registers = fitted.registers + fitted.registers_pixel * pixels_kept(v, w) + sums;
    int fit =
        (int)(65536 / (128 * 8 * (double)hone_ceil_div((long long)(registers > 255 ? 255 : registers), 8)));
    if (w->ahead) fit = w->width > 4 ? 2 : 4;
    fit = fit < 1 ? 1 : fit > 16 ? 16 : fit;
    const double whole = w->ahead ? walking.whole : fitted.whole;
    double turns = blocks / gpu->sms / fit;
    turns = turns <= 1 ? 1
                       : (double)hone_ceil_div((long long)blocks, (long long)gpu->sms * fit) * whole +
                             turns * (1 - whole);
    const double each = blocks < gpu->sms ? 1 : blocks / gpu->sms,
                 work = w->ahead ? sums * taps * walking.product + pixels * walking.pixel +
                                       w->width * taps * walking.weight
                                 : sums * taps * fitted.product + pixels * w->width * fitted.widened +
                                       pixels * fitted.pixel;
    const double bytes = 1e-6 * v->p.batch * v->p.channels * bytes_of[v->type] *
                         ((double)v->p.height * v->p.width + (double)v->p.out_height * v->p.out_width);
    const double wait = w->ahead ? walking.turn + walking.row * rows / w->ahead
                                 : fitted.turn + fitted.turn_pixel * pixels,
                 t = turns * wait + each * work * 1e-3, least = bytes / fitted.memory;
    return (fitted.launch + (w->ahead ? walking.launch : 0) + (t > least ? t : least)) *
           (w->ahead ? 1 : 1 + 0.01 * (w->strip - 1)); /* lines share more than strips */
}
hone_cuda_window_way hone_cuda_window_best(const hone_cuda_windowed *v, const hone_cuda_facts *gpu) {
    hone_cuda_window_way way[128];
    const int n = hone_cuda_window_ways(v, way, 128);
    int best = 0;
    for (int k = 1; k < n; k++)
        if (hone_cuda_window_cost(v, gpu, &way[k]) < hone_cuda_window_cost(v, gpu, &way[best])) best = k;
    return way[best];
}
hone_status hone_cuda_window_print(hone_text *out, const hone_cuda_windowed *v,
                                   const hone_cuda_window_way *w) {
    const hone_cuda_fill fill[] = {{"KIND", (int)v->kind, NULL},      {"IN_TYPE", (int)v->type, NULL},
                                   {"ZERO", v->zero, NULL},           {"WIDTH", w->width, NULL},
                                   {"STRIP", w->strip, NULL},         {"LINES", w->lines, NULL},
                                   {"AHEAD", w->ahead, NULL},         {"DILATION", v->p.dilation_x, NULL},
                                   {"KERNEL_Y", v->p.kernel_y, NULL}, {"KERNEL_X", v->p.kernel_x, NULL},
                                   {"STRIDE", v->p.stride_x, NULL},   {"EPILOGUE", 0, v->epilogue}};
    return hone_cuda_print(out, "window", fill, 12);
}
hone_cuda_launch_shape hone_cuda_window_launch(const hone_cuda_windowed *v, const hone_cuda_window_way *w) {
    const long long across = hone_ceil_div(v->p.out_width, w->strip) * (v->p.channels / w->width);
    return (hone_cuda_launch_shape){
        .grid = {(int)hone_ceil_div(across, 128), (int)hone_ceil_div(v->p.out_height, w->lines), v->p.batch},
        .threads = 128};
}
