/* SPDX-License-Identifier: Apache-2.0
   CUDA kernels without a GPU, continued: convolutions of a network's first layer, and of groups. */
#include "cuda.h"
#include "device/cuda/pack.h"

typedef struct {
    /* channels and outputs: of all groups */
    int batch, height, width, channels, outputs, kernel_y, kernel_x, stride, pad, groups;
} image;
typedef struct {
    hone_cuda_contract p;
    hone_cuda_window w;
} conv_args;
typedef struct {
    operand x, w, y, residual, bias;
    int high, wide;
    conv_args args;
} conv_data;
static conv_data conv_make(image g, int type) {
    conv_data d = {.high = (g.height + 2 * g.pad - g.kernel_y) / g.stride + 1,
                   .wide = (g.width + 2 * g.pad - g.kernel_x) / g.stride + 1};
    const int m = g.batch * d.high * d.wide, k = g.kernel_y * g.kernel_x * (g.channels / g.groups),
              n = g.outputs / g.groups;
    d.x = hold((size_t)(g.batch * g.height * g.width * g.channels * 2), 8);
    d.w = hold((size_t)(g.outputs * g.kernel_y * g.kernel_x * (g.channels / g.groups) * 2), 16);
    d.y = hold((size_t)(m * g.outputs * 2), 16), d.residual = hold(d.y.bytes, 16),
    d.bias = hold((size_t)(g.outputs * 4), 4);
    fill_with(&d.x, type), fill_with(&d.w, type), fill_with(&d.residual, type),
        fill_with(&d.bias, HONE_CUDA_F32);
    d.args.p = (hone_cuda_contract){.a = address(&d.x),
                                    .b = address(&d.w),
                                    .c = address(&d.y),
                                    .bias = address(&d.bias),
                                    .residual = address(&d.residual),
                                    .batch_b = n * k,
                                    .batch_c = n,
                                    .batch_residual = n,
                                    .pitch_b = k,
                                    .pitch_c = g.outputs,
                                    .pitch_residual = g.outputs,
                                    .m = m,
                                    .n = n,
                                    .k = k,
                                    .batches = g.groups,
                                    .splits = 1,
                                    .alpha = 1};
    d.args.w = (hone_cuda_window){.batch = g.batch,
                                  .height = g.height,
                                  .width = g.width,
                                  .channels = g.channels / g.groups,
                                  .out_height = d.high,
                                  .out_width = d.wide,
                                  .kernel_y = g.kernel_y,
                                  .kernel_x = g.kernel_x,
                                  .stride_y = g.stride,
                                  .stride_x = g.stride,
                                  .pad_y = g.pad,
                                  .pad_x = g.pad,
                                  .dilation_y = 1,
                                  .dilation_x = 1};
    return d;
}
/* relu(conv + bias + residual) */
static void conv_check(const conv_data *d, image g, int type, const char *what) {
    for (int64_t p = 0; p < (int64_t)g.batch * d->high * d->wide * g.outputs; p++) {
        const int o = (int)(p % g.outputs), u = (int)(p / g.outputs % d->wide),
                  v = (int)(p / g.outputs / d->wide % d->high), n = (int)(p / g.outputs / d->wide / d->high);
        double sum = get(d->bias.at, HONE_CUDA_F32, o) + get(d->residual.at, type, p);
        for (int t = 0; t < g.kernel_y * g.kernel_x; t++) {
            const int y = v * g.stride - g.pad + t / g.kernel_x, x = u * g.stride - g.pad + t % g.kernel_x;
            if (y < 0 || y >= g.height || x < 0 || x >= g.width) continue;
            /* the channels that o's group sees */
            const int some = g.channels / g.groups, first = o / (g.outputs / g.groups) * some;
            for (int c = 0; c < some; c++)
                sum +=
                    get(d->x.at, type, (((int64_t)n * g.height + y) * g.width + x) * g.channels + first + c) *
                    get(d->w.at, type, ((int64_t)o * g.kernel_y * g.kernel_x + t) * some + c);
        }
        /* fmaxf(NaN, 0) is 0 */
        const double got = get(d->y.at, type, p), want = isnan(sum) ? 0 : fmax(sum, 0);
        if (!near_enough(got, want, fmax(1, fabs(want)), 1.1 * digits[type]))
            fail_msg("%s: image %d, line %d, pixel %d, channel %d is %g, not %g", what, n, v, u, o, got,
                     want);
    }
}
static void conv_drop(conv_data *d) {
    drop(&d->x), drop(&d->w), drop(&d->y), drop(&d->residual), drop(&d->bias);
}

static void first_of(int type, int image_type, image g, int tile_y, int blocks_m, int tile_n, int blocks,
                     double odd) {
    const hone_cuda_fill fill[] = {{"IN_TYPE", type, NULL},
                                   {"OUT_TYPE", type, NULL},
                                   {"IMAGE_TYPE", image_type, NULL},
                                   {"CHANNELS", g.channels, NULL},
                                   {"KERNEL_Y", g.kernel_y, NULL},
                                   {"KERNEL_X", g.kernel_x, NULL},
                                   {"STRIDE", g.stride, NULL},
                                   {"TILE_Y", tile_y, NULL},
                                   {"BLOCKS_M", blocks_m, NULL},
                                   {"TILE_N", tile_n, NULL},
                                   {"EPILOGUE", 0, "fmaxf(v + bias + residual, 0.0f)"}};
    const emulated e = compile("first_layer", "hone_first_layer", fill, 11);
    conv_data d = conv_make(g, type);
    if (odd != 0) set(d.x.at, type, (int64_t)g.height * g.width * g.channels / 2, odd);
    const size_t one = hone_cuda_pack_first_layer(NULL, (size_t)g.outputs, (size_t)g.kernel_y,
                                                  (size_t)g.kernel_x, (size_t)g.channels, NULL);
    operand packed = hold((size_t)g.outputs * one * 2, 16);
    hone_cuda_pack_first_layer((unsigned short *)(void *)d.w.at, (size_t)g.outputs, (size_t)g.kernel_y,
                               (size_t)g.kernel_x, (size_t)g.channels, (unsigned short *)(void *)packed.at);
    d.args.p.b = address(&packed);
    hone_cuda_first args = {.p = d.args.p,
                            .w = d.args.w,
                            .image = (int64_t)g.height * g.width * g.channels,
                            .line = (int64_t)g.width * g.channels,
                            .pixel = g.channels,
                            .channel = 1};
    operand planes = hold(d.x.bytes * 2, 4);
    if (image_type == HONE_CUDA_F32) { /* the same image as planes of f32 */
        const int64_t plane = (int64_t)g.height * g.width;
        for (int64_t k = 0; k < plane * g.channels * g.batch; k++)
            set(planes.at, HONE_CUDA_F32,
                (k / (plane * g.channels) * g.channels + k % g.channels) * plane + k / g.channels % plane,
                get(d.x.at, type, k));
        args.p.a = address(&planes), args.line = g.width, args.pixel = 1, args.channel = plane;
    }
    run(&e, &args, blocks, (g.outputs + tile_n - 1) / tile_n, 1);
    conv_check(&d, g, type, "first layer");
    conv_drop(&d), drop(&packed), drop(&planes);
}
static void first_layers(void **state) {
    (void)state;
    if (!works) skip();
    first_of(HONE_CUDA_F16, HONE_CUDA_F32, (image){1, 30, 33, 3, 24, 7, 7, 2, 3, 1}, 8, 4, 32, 3, 0);
    first_of(HONE_CUDA_F16, HONE_CUDA_F32, (image){2, 19, 40, 3, 40, 3, 3, 2, 1, 1}, 4, 1, 16, 2, INFINITY);
    /* rows that are not aligned to 16 bytes */
    first_of(HONE_CUDA_BF16, HONE_CUDA_F32, (image){1, 9, 20, 3, 16, 3, 3, 1, 1, 1}, 4, 2, 16, 5, NAN);
    first_of(HONE_CUDA_F16, HONE_CUDA_F16, (image){1, 12, 12, 4, 16, 5, 5, 1, 0, 1}, 4, 2, 16, 1, 0);
    first_of(HONE_CUDA_F16, HONE_CUDA_F32, (image){2, 21, 25, 1, 7, 5, 3, 2, 2, 1}, 2, 1, 16, 1, 0);
    first_of(HONE_CUDA_F16, HONE_CUDA_F16, (image){1, 39, 39, 3, 8, 11, 11, 4, 2, 1}, 2, 2, 16, 1, 0);
    first_of(HONE_CUDA_F16, HONE_CUDA_F16, (image){1, 32, 32, 3, 16, 4, 4, 4, 0, 1}, 4, 2, 16, 2, INFINITY);
}

/* ---- groups ---- */
static void groups_of(int type, image g, int piece, int splits) {
    const hone_cuda_fill fill[] = {{"IN_TYPE", type, NULL},
                                   {"OUT_TYPE", type, NULL},
                                   {"TILE_M", 32, NULL},
                                   {"TILE_N", 32, NULL},
                                   {"WARPS_M", 1, NULL},
                                   {"WARPS_N", 2, NULL},
                                   {"STAGES", 3, NULL},
                                   {"PIECE", piece, NULL},
                                   {"SPLIT", splits > 1, NULL},
                                   {"WINDOW", 1, NULL},
                                   {"EPILOGUE", 0, "fmaxf(v + bias + residual, 0.0f)"}};
    const emulated e = compile("contract_mma", "hone_contract", fill, 11);
    conv_data d = conv_make(g, type);
    const int tiles = (d.args.p.m + 31) / 32 * ((d.args.p.n + 31) / 32);
    operand workspace = hold((size_t)(tiles * g.groups * splits * 32 * 32 * 4), 16),
            counters = hold((size_t)(tiles * g.groups * 4), 4);
    memset(counters.at, 0, counters.bytes);
    d.args.p.splits = splits, d.args.p.workspace = address(&workspace),
    d.args.p.counters = address(&counters);
    run(&e, &d.args, tiles, 1, g.groups * splits);
    conv_check(&d, g, type, "groups");
    conv_drop(&d), drop(&workspace), drop(&counters);
}
static void groups(void **state) {
    (void)state;
    if (!works) skip();
    groups_of(HONE_CUDA_F16, (image){2, 7, 9, 32, 32, 3, 3, 1, 1, 4}, 16, 1);
    groups_of(HONE_CUDA_BF16, (image){1, 11, 8, 48, 72, 3, 3, 2, 1, 2}, 16, 2);
    /* groups that begin at odd places */
    groups_of(HONE_CUDA_F16, (image){1, 6, 7, 15, 21, 3, 1, 1, 0, 3}, 2, 1);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_layers), cmocka_unit_test(groups)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
