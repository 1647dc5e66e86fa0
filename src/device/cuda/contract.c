/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/contract.h"

#include <stdio.h>
#include <string.h>

const char *const hone_cuda_contract_names[] = {[HONE_CUDA_BY_WGMMA] = "hone_contract",
                                                [HONE_CUDA_BY_MMA] = "hone_contract",
                                                [HONE_CUDA_BY_ROWS] = "hone_few_rows",
                                                [HONE_CUDA_BY_COLUMNS] = "hone_few_rows"};
static const int bytes_of[] = {[HONE_CUDA_F16] = 2, [HONE_CUDA_BF16] = 2, [HONE_CUDA_F32] = 4,
                               [HONE_CUDA_S8] = 1,  [HONE_CUDA_S32] = 4,  [HONE_CUDA_U8] = 1};

static bool aligned(hone_cuda_address at, long long pitch, long long batch, int bytes, int to) {
    return at % (unsigned)to == 0 && pitch * bytes % to == 0 && batch * bytes % to == 0;
}
static bool output_aligned(const hone_cuda_product *p) {
    return aligned(p->p.c, p->p.pitch_c, p->p.batch_c, bytes_of[p->out], 16);
}
/* C can leave by the copy engine, which writes pieces of 16 bytes: with a row's last piece in part, it would
   write what lies behind the row. */
static int stored_by_engine(const hone_cuda_product *p,
                            const hone_cuda_way *w) { /* 2: the residual comes so */
    const int bytes = bytes_of[p->out];
    if (!output_aligned(p) || (long long)p->p.n * bytes % 16 ||
        (w->tile_n / w->splits * bytes % 128 &&
         (w->splits > 1 || p->p.n > w->tile_n))) /* what is behind a row it does not write */
        return 0;
    return p->epilogue && strstr(p->epilogue, "residual") &&
                   aligned(p->p.residual, p->p.pitch_residual, p->p.batch_residual, bytes, 16)
               ? 2
               : 1;
}
/* rows of both factors begin at multiples of `to` bytes */
static bool inputs_aligned(const hone_cuda_product *p, int to) {
    const int bytes = bytes_of[p->in];
    if (p->window) /* pieces stay within a pixel */
        return p->p.a % (unsigned)to == 0 && p->p.b % (unsigned)to == 0 &&
               p->window->channels * bytes % to == 0 && p->p.pitch_b * bytes % to == 0;
    return aligned(p->p.a, p->p.pitch_a, p->p.batch_a, bytes, to) &&
           aligned(p->p.b, p->p.pitch_b, p->p.batch_b, bytes, to);
}
static int steps_of(const hone_cuda_product *p, const hone_cuda_way *way) { /* of 128 bytes of K */
    const int step = 128 / bytes_of[p->in];
    if (way->unit == HONE_CUDA_BY_WGMMA && p->window)
        return p->window->kernel_y * p->window->kernel_x * (int)hone_ceil_div(p->window->channels, step);
    return (int)hone_ceil_div(p->p.k, step);
}
static long long tiles_of(const hone_cuda_product *p, const hone_cuda_way *way) {
    return hone_ceil_div(p->p.m, way->tile_m) * hone_ceil_div(p->p.n, way->tile_n) * p->p.batches;
}
static int shared_of(const hone_cuda_product *p, const hone_cuda_way *way) {
    const int stage = 128 * (way->tile_m + way->tile_n), out = bytes_of[p->out];
    if (way->unit == HONE_CUDA_BY_ROWS) return 0;
    if (way->unit == HONE_CUDA_BY_COLUMNS) return way->warps_m * way->tile_m * 16 * 4; /* sums of its warps */
    if (way->unit == HONE_CUDA_BY_MMA) {
        const int staged = way->tile_m * (way->tile_n * out + 16);
        return way->stages * stage > staged ? way->stages * stage : staged;
    }
    const int slots = way->blocks > 1 || way->tile_n / way->splits * out <= 128 ? 1 : 2; /* panels of C */
    return way->stages * stage + way->tile_m * 128 * slots + 16 * way->stages + way->tile_m / 4;
}
static unsigned by(unsigned d) { return d == 1 ? 0 : (unsigned)((1ull << 32) / d + 1); }
bool hone_cuda_walk_of(int m, int n, int batches, int tile_m, int tile_n, hone_cuda_walk *out) {
    const unsigned long long rows = (unsigned long long)hone_ceil_div(m, tile_m),
                             columns = (unsigned long long)hone_ceil_div(n, tile_n), tiles = rows * columns,
                             group = HONE_CUDA_GROUP * columns, largest = tiles > group ? tiles : group;
    /* x * by(d) is too large by less than x * d / 2^32, which must not reach 1 */
    if (tiles >> 31 || (tiles * (unsigned)batches) >> 31 ||
        tiles * (unsigned)batches >= (1ull << 32) / largest)
        return false;
    *out = (hone_cuda_walk){.works = (unsigned)tiles * (unsigned)batches,
                            .tiles = (unsigned)tiles,
                            .group = (unsigned)group,
                            .groups = (unsigned)hone_ceil_div((long long)rows, HONE_CUDA_GROUP),
                            .last = (unsigned)((rows - 1) % HONE_CUDA_GROUP + 1)};
    out->by_tiles = by(out->tiles), out->by_group = by(out->group), out->by_last = by(out->last);
    return true;
}

/* ---- ways ---- */
int hone_cuda_ways(const hone_cuda_product *p, const hone_cuda_facts *gpu, hone_cuda_way *way, int most) {
    static const int widths[] = {16, 32, 48, 64, 96, 128, 192, 256};
    static const struct {
        int m, n, warps_m, warps_n;
    } tiles[] = {{32, 32, 1, 2},  {64, 32, 2, 1},  {32, 64, 1, 2},  {64, 64, 2, 2},
                 {128, 64, 4, 2}, {64, 128, 2, 4}, {128, 128, 2, 4}};
    int n = 0;
    const bool bytes = bytes_of[p->in] == 1, matrix = !bytes || p->out == HONE_CUDA_U8 ||
                                                      p->out == HONE_CUDA_S8 || p->out == HONE_CUDA_S32 ||
                                                      p->out == HONE_CUDA_F32 || p->out == HONE_CUDA_F16;
    /* of channels: the copy engine sees all of a pixel as one */
    const bool groups = p->window && p->p.batches > 1;
    const bool engine = gpu->major == 9 && inputs_aligned(p, 16) && matrix && !groups;
    for (size_t k = 0; k < sizeof widths / sizeof *widths && engine; k++) {
        if (k && widths[k - 1] >= p->p.n) break; /* a narrower tile holds all columns */
        for (int tile_m = 64; tile_m <= 192; tile_m += 64)
            for (int blocks = 1; blocks <= 3; blocks++) { /* on a multiprocessor */
                hone_cuda_walk walk;
                const int room = (gpu->shared_bytes + 1024) / blocks - 1024;
                hone_cuda_way w = {HONE_CUDA_BY_WGMMA, tile_m, widths[k], 2, 1, blocks, 0, 0}, more = w;
                if (tile_m == 128 && (p->p.m <= 64 || blocks > 2 || (blocks > 1 && widths[k] > 64))) continue;
                if (tile_m == 192 && (p->p.m <= 128 || blocks > 1 || widths[k] > 192 || widths[k] < 96))
                    continue;
                if (blocks > 1 && widths[k] > (blocks == 2 ? 128 : 64)) continue; /* registers */
                if (!hone_cuda_walk_of(p->p.m, p->p.n, p->p.batches, tile_m, widths[k], &walk)) continue;
                const int steps = steps_of(p, &w);
                const long long tiles = tiles_of(p, &w);
                for (int splits = 1; splits <= 8; splits += splits < 4 ? 1 : 2) { /* blocks of a cluster */
                    const int part = (int)hone_ceil_div(steps, splits);
                    /* clusters lie within parts of 16 or more multiprocessors: more of them than fit would
                       come one after the other */
                    if (splits > 1 && (blocks > 1 || tile_m * widths[k] > 128 * 128 ||
                                       tiles > gpu->sms / 16 * (16 / splits)))
                        break;
                    if (splits > 1 && steps / splits < 2) break;
                    if (widths[k] / 8 % splits || widths[k] / splits * bytes_of[p->out] % 16) continue;
                    w.splits = more.splits = splits, w.stages = 2;
                    const int useful = tiles * splits > gpu->sms * blocks || part > 8 ? 16 : part > 4 ? 8 : 4;
                    for (more.stages = 3; more.stages <= useful && shared_of(p, &more) <= room; more.stages++)
                        w = more;
                    if (shared_of(p, &w) > room) continue;
                    if (n < most) way[n++] = w;
                }
            }
    }
    const int to = inputs_aligned(p, 16) ? 16 : inputs_aligned(p, 4) ? 4 : bytes_of[p->in];
    if (to == 16 && !p->window && p->p.m <= 32 && p->p.k % (16 / bytes_of[p->in]) == 0)
        for (int warps = 4; warps <= 16; warps *= 2)
            for (int steps = 2; steps <= 8; steps *= 2)
                if (n < most)
                    way[n++] = (hone_cuda_way){
                        HONE_CUDA_BY_COLUMNS, (p->p.m + 7) / 8 * 8, 16, steps, 1, 1, warps, 1};
    if (to == 16 && !p->window && p->p.m <= 8 && !bytes && p->p.k % (16 / bytes_of[p->in]) == 0)
        for (int columns = 1; columns <= 8; columns *= 2)
            for (int pieces = 4; pieces <= (p->p.m == 1 ? 16 : 8); pieces *= 2)
                if (n < most)
                    way[n++] = (hone_cuda_way){HONE_CUDA_BY_ROWS, p->p.m, columns, pieces, 1, 1, 0, 0};
    for (size_t k = 0; k < sizeof tiles / sizeof *tiles; k++) {
        hone_cuda_way w = {HONE_CUDA_BY_MMA, tiles[k].m,      tiles[k].n, 4, 1, 1,
                           tiles[k].warps_m, tiles[k].warps_n};
        if (shared_of(p, &w) > gpu->shared_bytes) w.stages = 3;
        const int steps = steps_of(p, &w);
        const long long blocks = tiles_of(p, &w);
        for (int splits = 1; splits <= 16 && splits * 2 <= (steps > 1 ? steps : 2); splits += splits < 4 ? 1
                                                                                              : splits < 8
                                                                                                  ? 2
                                                                                                  : 4) {
            if (splits > 1 && blocks * splits > 4 * gpu->sms) break;
            w.splits = splits;
            if (n < most) way[n++] = w;
        }
    }
    return n;
}
int hone_cuda_way_text(const hone_cuda_way *w, char *to, size_t bytes) {
    static const char *const names[] = {"wgmma", "mma", "rows", "columns"};
    return snprintf(to, bytes, "%s %dx%d stages %d splits %d, %d", names[w->unit], w->tile_m, w->tile_n,
                    w->stages, w->splits, w->blocks);
}

/* ---- cost: microseconds from counts of work. The rates were fitted to all ways of 78 shapes as an H200 runs
   them (bench/gpu --search); others are told apart by their multiprocessors only. ---- */
static const struct {
    /* by wgmma: a kernel; millions of operations a microsecond; a step's least time */
    double launch, rate, narrow, step;
    /* millions of bytes a microsecond, of all multiprocessors and of one; a tile's way from L2 */
    double l2, sm, under_way;
    /* a tile's end, an element of it; without the copy engine; behind another block's products */
    double end, end_element, end_odd, hidden;
    /* all operands, millions of bytes a microsecond; megabytes that stay in L2, others from memory */
    double memory, l2_holds, read;
    /* sums of parts joined in a cluster; thousand elements of a tile */
    double split, split_element, split_each;
    double mma_launch, mma_rate, mma_step, mma_element, mma_l2, mma_split, mma_split_element;
    double short_row;
    /* by rows, by columns: B is read once */
    double rows, rows_memory, rows_each, columns, columns_memory, columns_each;
} fitted = {1.483, 7.16,    0.7039, 0.0606, 14.81,  0.3426,  0.3017, 0.2616, 3.107e-5, 0.2274, 0.2421,
            8.844, 33.35,   4.599,  0.4989, 0.1303, 0.06653, 2.44,   2.3,    0.46,     7.7e-5, 7.0,
            0.559, 0.04568, 0.02,   2.624,  6.252,  0.33,    1.93,   9.226,  0.1252};

static double least_of(double a, double b) { return a < b ? a : b; }
static double most_of(double a, double b) { return a > b ? a : b; }
static double cost_wgmma(const hone_cuda_product *p, const hone_cuda_facts *gpu, const hone_cuda_way *w) {
    const double all = (double)tiles_of(p, w) * w->splits, slots = (double)gpu->sms * w->blocks,
                 waves = (double)hone_ceil_div((long long)all, (long long)slots);
    const double sharing = least_of(w->blocks, (double)hone_ceil_div((long long)all, gpu->sms)),
                 steps = (double)hone_ceil_div(steps_of(p, w), w->splits);
    const double operations = 128e-6 * w->tile_m * sharing / fitted.rate,
                 size = (double)w->tile_m * w->tile_n;
    const double bytes = 128e-6 * (least_of(w->tile_m, p->p.m) + least_of(w->tile_n, p->p.n));
    double step = most_of(operations * w->tile_n, w->tile_n < 64 ? operations * 64 * fitted.narrow : 0);
    step = most_of(step, most_of(bytes * least_of(all, slots) / fitted.l2, bytes * sharing / fitted.sm));
    step =
        most_of(step, most_of(fitted.step, fitted.under_way * sharing / most_of(1, w->stages * sharing - 1)));
    /* of rows of 16 bytes the engine writes zeros mostly, and slowly */
    if (!p->window && p->p.k * bytes_of[p->in] <= 16)
        step = most_of(step, fitted.short_row * (w->tile_m + w->tile_n) * sharing);
    double end = fitted.end + fitted.end_element * size / w->splits * sharing *
                                  (stored_by_engine(p, w) ? 1 : 1 + fitted.end_odd);
    if (waves > 1) end /= 1 + fitted.hidden * (sharing - 1);
    const double pixels =
        p->window ? (double)p->p.m * p->window->channels * p->window->stride_x * p->window->stride_x
                  : (double)p->p.m * p->p.k;
    const double operands =
        (pixels + (double)p->p.n * p->p.k + (double)p->p.m * p->p.n) * bytes_of[p->in] * 1e-6;
    const double products = waves * (steps * step + end),
                 memory = operands / (operands > fitted.l2_holds ? fitted.read : fitted.memory);
    const double t = fitted.launch + most_of(products, memory) + 0.1 * least_of(products, memory);
    return w->splits > 1
               ? t + fitted.split + fitted.split_element * 1e-3 * size + fitted.split_each * w->splits
               : t;
}
static double cost_mma(const hone_cuda_product *p, const hone_cuda_facts *gpu, const hone_cuda_way *w) {
    const int fit = 220 * 1024 / ((w->tile_m + w->tile_n) * 128 * w->stages), blocks = fit < 1   ? 1
                                                                                       : fit > 4 ? 4
                                                                                                 : fit;
    const double all = (double)tiles_of(p, w) * w->splits, slots = (double)gpu->sms * blocks,
                 waves = (double)hone_ceil_div((long long)all, (long long)slots);
    const double sharing = least_of(blocks, (double)hone_ceil_div((long long)all, gpu->sms)),
                 steps = (double)hone_ceil_div(steps_of(p, w), w->splits);
    double step = most_of(128e-6 * w->tile_m * w->tile_n * sharing / fitted.mma_rate, fitted.mma_step);
    step = most_of(step, 128e-6 * (w->tile_m + w->tile_n) * least_of(all, slots) / fitted.mma_l2);
    double t =
        fitted.mma_launch + waves * (steps * step + fitted.mma_element * w->tile_m * w->tile_n * sharing);
    if (!inputs_aligned(p, 16)) t *= 8; /* element by element */
    const double part = least_of(w->tile_m, p->p.m) * w->tile_n;
    return w->splits > 1 ? t + fitted.mma_split + fitted.mma_split_element * 1e-3 * w->splits * part +
                               all * part * 4e-6 / fitted.mma_l2
                         : t;
}
double hone_cuda_cost(const hone_cuda_product *p, const hone_cuda_facts *gpu, const hone_cuda_way *w) {
    /* B from memory, or from L2 where it has been read before */
    if (w->unit == HONE_CUDA_BY_ROWS || w->unit == HONE_CUDA_BY_COLUMNS) {
        const double bytes = (double)p->p.n * p->p.k * bytes_of[p->in] * 1e-6,
                     from_memory = bytes > 40 ? bytes / 3.95 : 0;
        if (w->unit == HONE_CUDA_BY_ROWS)
            return fitted.rows +
                   most_of(from_memory, bytes / fitted.rows_memory * (1 + fitted.rows_each * (p->p.m - 1))) +
                   (w->tile_n == 8 ? 0 : 0.2) + (w->stages == 8 ? 0 : 0.1);
        const bool few = p->p.n <= 16 * gpu->sms; /* blocks: then each must have more under way */
        const int warps = !few && p->p.m <= 8 ? 16 : 8, steps = few ? 8 : p->p.m <= 8 ? 2 : 4;
        return fitted.columns +
               most_of(from_memory, bytes / fitted.columns_memory * (1 + fitted.columns_each * p->p.m)) +
               (w->warps_m == warps ? 0 : 0.4) + (w->stages == steps ? 0 : 0.4);
    }
    return w->unit == HONE_CUDA_BY_WGMMA ? cost_wgmma(p, gpu, w) : cost_mma(p, gpu, w);
}
hone_cuda_way hone_cuda_best_way(const hone_cuda_product *p, const hone_cuda_facts *gpu) {
    hone_cuda_way ways[400];
    const int n = hone_cuda_ways(p, gpu, ways, 400);
    int best = 0;
    double least = 0;
    for (int k = 0; k < n; k++) {
        const double cost = hone_cuda_cost(p, gpu, &ways[k]);
        if (!k || cost < least) best = k, least = cost;
    }
    return ways[best];
}

/* ---- printing and launching ---- */
hone_status hone_cuda_contract_print(hone_text *out, const hone_cuda_product *p, const hone_cuda_way *w) {
    const int piece = inputs_aligned(p, 16)  ? 16
                      : inputs_aligned(p, 4) ? 4
                                             : bytes_of[p->in],
              window = p->window != NULL, split = w->splits > 1;
    if (w->unit == HONE_CUDA_BY_WGMMA) {
        const hone_cuda_fill fill[] = {{"IN_TYPE", (int)p->in, NULL},
                                       {"OUT_TYPE", (int)p->out, NULL},
                                       {"CONSUMERS", w->tile_m / 64, NULL},
                                       {"TILE_N", w->tile_n, NULL},
                                       {"STAGES", w->stages, NULL},
                                       {"SPLITS", w->splits, NULL},
                                       {"BLOCKS", w->blocks, NULL},
                                       {"WINDOW", window, NULL},
                                       {"STORE", stored_by_engine(p, w), NULL},
                                       {"CONSTANT_B", p->constant_b, NULL},
                                       {"EPILOGUE", 0, p->epilogue}};
        return hone_cuda_print(out, "contract_wgmma", fill, 11);
    }
    if (w->unit == HONE_CUDA_BY_MMA) {
        const hone_cuda_fill fill[] = {
            {"IN_TYPE", (int)p->in, NULL}, {"OUT_TYPE", (int)p->out, NULL}, {"TILE_M", w->tile_m, NULL},
            {"TILE_N", w->tile_n, NULL},   {"WARPS_M", w->warps_m, NULL},   {"WARPS_N", w->warps_n, NULL},
            {"STAGES", w->stages, NULL},   {"PIECE", piece, NULL},          {"SPLIT", split, NULL},
            {"WINDOW", window, NULL},      {"EPILOGUE", 0, p->epilogue}};
        return hone_cuda_print(out, "contract_mma", fill, 11);
    }
    if (w->unit == HONE_CUDA_BY_COLUMNS) {
        const hone_cuda_fill fill[] = {{"IN_TYPE", (int)p->in, NULL},  {"OUT_TYPE", (int)p->out, NULL},
                                       {"ROWS8", w->tile_m / 8, NULL}, {"WARPS", w->warps_m, NULL},
                                       {"UNROLLED", w->stages, NULL},  {"CONSTANT_B", p->constant_b, NULL},
                                       {"EPILOGUE", 0, p->epilogue}};
        return hone_cuda_print(out, "few_rows_mma", fill, 7);
    }
    const hone_cuda_fill fill[] = {{"IN_TYPE", (int)p->in, NULL}, {"OUT_TYPE", (int)p->out, NULL},
                                   {"ROWS", w->tile_m, NULL},     {"WARPS", w->tile_n, NULL},
                                   {"UNROLLED", w->stages, NULL}, {"CONSTANT_B", p->constant_b, NULL},
                                   {"EPILOGUE", 0, p->epilogue}};
    return hone_cuda_print(out, "few_rows", fill, 7);
}
hone_cuda_launch_shape hone_cuda_contract_launch(const hone_cuda_product *p, const hone_cuda_facts *gpu,
                                                 const hone_cuda_way *w) {
    const long long tiles = tiles_of(p, w);
    hone_cuda_launch_shape s = {.shared_bytes = shared_of(p, w), .cluster = 1};
    if (w->unit == HONE_CUDA_BY_WGMMA) { /* blocks stay for many tiles, but not those that share one */
        const long long most = (long long)gpu->sms * w->blocks;
        s.cluster = w->splits;
        s.grid[0] = (int)(w->splits > 1  ? tiles * w->splits
                          : tiles < most ? tiles
                                         : most),
        s.grid[1] = s.grid[2] = 1;
        s.threads = 2 * w->tile_m + (w->tile_m > 64 && w->blocks == 1 ? 128 : 64);
    } else if (w->unit == HONE_CUDA_BY_MMA) {
        s.grid[0] = (int)(tiles / p->p.batches), s.grid[1] = 1, s.grid[2] = p->p.batches * w->splits;
        s.threads = 32 * w->warps_m * w->warps_n;
    } else {
        s.grid[0] = (int)hone_ceil_div(p->p.n, w->tile_n), s.grid[1] = 1, s.grid[2] = p->p.batches;
        s.threads = 32 * (w->unit == HONE_CUDA_BY_COLUMNS ? w->warps_m : w->tile_n);
    }
    return s;
}
void hone_cuda_contract_room(const hone_cuda_product *p, const hone_cuda_way *w, size_t *workspace,
                             size_t *counters) {
    const long long tiles = w->splits > 1 && w->unit == HONE_CUDA_BY_MMA ? tiles_of(p, w) : 0;
    *workspace = (size_t)(tiles * w->splits * w->tile_m * w->tile_n * 4);
    *counters = (size_t)(tiles * 4);
}
hone_status hone_cuda_contract_fill(hone_cuda *g, const hone_cuda_product *p, const hone_cuda_way *w,
                                    hone_cuda_contract_args *args) {
    hone_cuda_contract c = p->p;
    const long long ib = bytes_of[p->in], ob = bytes_of[p->out];
    memset(args, 0, sizeof *args);
    c.splits = w->splits;
    if (w->unit != HONE_CUDA_BY_WGMMA) {
        if (p->window) args->window.p = c, args->window.w = *p->window;
        else args->plain = c;
        return HONE_OK;
    }
    hone_cuda_contract_tma *t = p->window ? &args->window_tiles.t : &args->tiles;
    const int step = 128 / (int)ib;
    t->p = c;
    if (!hone_cuda_walk_of(c.m, c.n, c.batches, w->tile_m, w->tile_n, &t->walk))
        return hone_fail(HONE_BAD_INPUT, "a product of %d x %d has too many tiles", c.m, c.n);
    const int tail_m = c.m % w->tile_m, tail_n = c.n % w->tile_n;
    for (int end = 0; end < 2; end++) { /* whole tiles, and the last ones where they are not whole */
        hone_cuda_tensor_map *map_a = end ? &t->end_a : &t->map_a, *map_b = end ? &t->end_b : &t->map_b;
        const int rows_a = end ? tail_m : w->tile_m, rows_b = end ? tail_n : w->tile_n;
        if (p->window) {
            const hone_cuda_window *x = p->window;
            hone_cuda_window at = *x;
            at.x = c.a, args->window_tiles.w = *x;
            if (rows_a) HONE_TRY(hone_cuda_im2col(g, map_a, p->in, &at, step, rows_a));
            if (rows_b)
                HONE_TRY(hone_cuda_tiled(
                    g, map_b, p->in, 3, c.b,
                    (const long long[]){x->channels, (long long)x->kernel_y * x->kernel_x, c.n},
                    (const long long[]){x->channels * ib, c.pitch_b * ib}, (const int[]){step, 1, rows_b}));
            continue;
        }
        if (rows_a)
            HONE_TRY(hone_cuda_tiled(
                g, map_a, p->in, 3, c.a, (const long long[]){c.k, c.m, c.batch_a ? c.batches : 1},
                (const long long[]){c.pitch_a * ib, (c.batch_a ? c.batch_a : c.pitch_a) * ib},
                (const int[]){step, rows_a, 1}));
        if (rows_b)
            HONE_TRY(hone_cuda_tiled(
                g, map_b, p->in, 3, c.b, (const long long[]){c.k, c.n, c.batch_b ? c.batches : 1},
                (const long long[]){c.pitch_b * ib, (c.batch_b ? c.batch_b : c.pitch_b) * ib},
                (const int[]){step, rows_b, 1}));
    }
    const struct {
        hone_cuda_tensor_map *map;
        unsigned long long at;
        long long pitch, batch;
    } panels[] = {{&t->map_c, c.c, c.pitch_c, c.batch_c},
                  {&t->map_before, c.residual, c.pitch_residual, c.batch_residual}};
    const int engine = stored_by_engine(p, w);
    for (int k = 0; k < engine; k++)
        HONE_TRY(hone_cuda_tiled(
            g, panels[k].map, p->out, 3, panels[k].at, (const long long[]){c.n, c.m, c.batches},
            (const long long[]){panels[k].pitch * ob,
                                (panels[k].batch ? panels[k].batch : panels[k].pitch) * ob},
            (const int[]){128 / (int)ob, 64, 1}));
    return HONE_OK;
}
