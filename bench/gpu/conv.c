/* SPDX-License-Identifier: Apache-2.0
   conv: convolutions with bias and ReLU against cuDNN's bare ones, NHWC. */
#include "device/cuda/first.h"
#include "device/cuda/pack.h"
#include "harness.h"

typedef struct {
    int batch, channels, size, outputs, kernel, stride, pad, dilation;
} image;
#define EPILOGUE "fmaxf(v + bias, 0.0f)"
typedef struct {
    tensor x, w, y, bias;
    hone_cuda_window win;
    hone_cuda_product p;
} operands;
static operands operands_of(bench *b, const image *g, int type) {
    const int out = (g->size + 2 * g->pad - (g->kernel - 1) * g->dilation - 1) / g->stride + 1;
    const size_t taps = (size_t)(g->kernel * g->kernel), k = taps * (size_t)g->channels;
    operands o = {
        .x = tensor_random(b, type,
                           (size_t)g->batch * (size_t)g->size * (size_t)g->size * (size_t)g->channels, 1),
        .w = tensor_random(b, type, (size_t)g->outputs * k, 0.3),
        .y = tensor_poison(b, type, (size_t)g->batch * (size_t)out * (size_t)out * (size_t)g->outputs),
        .bias = tensor_random(b, HONE_CUDA_F32, (size_t)g->outputs, 1)};
    o.win = window_over(g->batch, g->size, g->channels, g->kernel, g->stride, g->pad, g->dilation, &o.x, &o.w,
                        &o.y, &o.bias);
    o.p = product_of(b, EPILOGUE, &o.x, &o.w, &o.y, &o.bias, g->batch * out * out, g->outputs, (int)k);
    o.p.p.pitch_a = g->channels;
    return o; /* p.window is set by those who hold the operands in place: see window_of */
}
/* A 1x1 window that moves by one pixel is a plain product. */
static void window_of(operands *o) {
    const bool plain = o->win.kernel_x == 1 && o->win.kernel_y == 1 && o->win.stride_x == 1 &&
                       o->win.stride_y == 1 && !o->win.pad_x && !o->win.pad_y;
    o->p.window = plain ? NULL : &o->win;
}
static void operands_free(bench *b, operands *o) {
    tensor_free(b, &o->x), tensor_free(b, &o->w), tensor_free(b, &o->y), tensor_free(b, &o->bias);
}
static reference reference_of(const image *g, const operands *o) {
    const hone_cuda_window *w = &o->win;
    const size_t all = (size_t)w->batch * (size_t)w->out_height * (size_t)w->out_width * (size_t)g->outputs,
                 channels = (size_t)g->channels;
    const int taps = w->kernel_y * w->kernel_x;
    reference r = reference_make(all, (double)all * taps * g->channels < 1e8 ? all : 1000);
    double *image_ = tensor_doubles(&o->x), *factor = tensor_doubles(&o->w);
    for (size_t q = 0; q < r.n; q++) {
        const size_t c = r.at[q] % (size_t)g->outputs, at = r.at[q] / (size_t)g->outputs,
                     n = at / (size_t)w->out_width / (size_t)w->out_height;
        const int x0 = (int)(at % (size_t)w->out_width) * w->stride_x - w->pad_x,
                  y0 = (int)(at / (size_t)w->out_width % (size_t)w->out_height) * w->stride_y - w->pad_y;
        double sum = 0, size = 0;
        for (int tap = 0; tap < taps; tap++) {
            const int y = y0 + tap / w->kernel_x * w->dilation_y, x = x0 + tap % w->kernel_x * w->dilation_x;
            if (y < 0 || y >= w->height || x < 0 || x >= w->width) continue;
            const double *pixel =
                image_ + ((n * (size_t)w->height + (size_t)y) * (size_t)w->width + (size_t)x) * channels;
            const double *f = factor + (c * (size_t)taps + (size_t)tap) * channels;
            for (size_t e = 0; e < channels; e++) sum += pixel[e] * f[e], size += fabs(pixel[e] * f[e]);
        }
        r.want[q] = fmax(sum + tensor_get(&o->bias, c), 0), r.size[q] = size;
    }
    free(image_), free(factor);
    return r;
}
static bool check(bench *b, const image *g, operands *o, const char *way, const reference *r) {
    char what[200];
    snprintf(what, sizeof what, "conv %s b%d c%d %d o%d k%d s%d p%d d%d", way, g->batch, g->channels, g->size,
             g->outputs, g->kernel, g->stride, g->pad, g->dilation);
    if (hone_cuda_wait(b->g)) stop("%s: %s", what, hone_fail_text());
    return reference_check(b, r, &o->y, what);
}
static void try_ways(bench *b, const image *g, int type, bool few) {
    static hone_cuda_way ways[600];
    operands o = operands_of(b, g, type);
    window_of(&o);
    int n = hone_cuda_ways(&o.p, &b->gpu, ways, 600);
    const int every = few ? 1 : b->every;
    if (few) n = few_ways(ways, n);
    reference r = {0};
    if (!b->collect) r = reference_of(g, &o);
    for (int k = 0; k < n; k++) {
        prepared p;
        char text[96];
        if ((ways[k].splits > 2 && ways[k].splits != 6) || k % every || !prepare(b, &o.p, &ways[k], &p))
            continue;
        OK(hone_cuda_set(b->g, o.y.at, 0xfb, o.y.bytes));
        OK(launch_prepared(b, &p));
        hone_cuda_way_text(&ways[k], text, sizeof text);
        if (check(b, g, &o, text, &r)) check_again(b, &o.y, launch_prepared, &p, "conv");
    }
    reference_free(&r);
    operands_free(b, &o);
}

/* Timed beside cuDNN's bare convolution. */
static double against(bench *b, const image *g, const operands *o, const char *way, call *once, void *ready) {
    char what[64], spec[64];
    snprintf(spec, sizeof spec, "%d %d %d %d %d %d %d", g->batch, g->channels, g->size, g->outputs, g->kernel,
             g->stride, g->pad);
    snprintf(what, sizeof what, "b%d c%d %d -> %d, %dx%d/%d", g->batch, g->channels, g->size, g->outputs,
             g->kernel, g->kernel, g->stride);
    contender c[2] = {contender_of(b, "hone", once, ready), contender_torch(b, "conv", spec)};
    in_turns(b, c, 2, 11);
    const double ratio = tell(b, "conv", what, way, c, 2, 2.0 * o->p.p.m * o->p.p.n * o->p.p.k,
                              (double)(o->x.bytes + o->w.bytes + o->y.bytes));
    contender_free(b, &c[0]);
    return ratio;
}

/* ---- the first layer: images of few channels ---- */
typedef struct {
    const hone_cuda_kernel *kernel;
    hone_cuda_launch_shape launch;
    hone_cuda_first args;
} first_ready;
static hone_cuda_first_layer first_of(const operands *o, const tensor *packed) {
    const hone_cuda_window *w = &o->win;
    hone_cuda_first_layer f = {.in = HONE_CUDA_F16,
                               .out = HONE_CUDA_F16,
                               .image = HONE_CUDA_F16,
                               .epilogue = EPILOGUE,
                               .p = {.p = o->p.p,
                                     .w = *w,
                                     .image = (long long)w->height * w->width * w->channels,
                                     .line = (long long)w->width * w->channels,
                                     .pixel = w->channels,
                                     .channel = 1}};
    f.p.p.b = packed->at;
    return f;
}
static bool first_prepare(bench *b, const hone_cuda_first_layer *f, const hone_cuda_first_way *way,
                          first_ready *r) {
    hone_text text = {0};
    r->launch = hone_cuda_first_launch(f, &b->gpu, way), r->args = f->p;
    OK(hone_cuda_first_print(&text, f, way));
    r->kernel = kernel_of(b, text.text, "hone_first_layer", r->launch.shared_bytes);
    hone_text_free(&text);
    return r->kernel != NULL;
}
static hone_status first_once(bench *b, void *what) {
    const first_ready *r = what;
    return hone_cuda_launch(b->g, r->kernel, &r->launch, &r->args);
}
static tensor first_pack(bench *b, const image *g, const operands *o) {
    const size_t k = (size_t)g->kernel, c = (size_t)g->channels, n = (size_t)g->outputs,
                 one = hone_cuda_pack_first_layer(NULL, n, k, k, c, NULL);
    tensor packed = tensor_zero(b, HONE_CUDA_F16, n * one);
    if (!b->collect) hone_cuda_pack_first_layer(o->w.host, n, k, k, c, packed.host), tensor_send(b, &packed);
    return packed;
}
static double first_layer(bench *b, const image *g, bool timed) {
    operands o = operands_of(b, g, HONE_CUDA_F16);
    tensor packed = first_pack(b, g, &o);
    reference wanted = {0};
    first_ready best = {0};
    double least = 0, ratio = 0;
    char way[64] = "";
    if (!b->collect) wanted = reference_of(g, &o);
    const hone_cuda_first_layer f = first_of(&o, &packed);
    hone_cuda_first_way ways[16];
    const int n = hone_cuda_first_ways(&f, &b->gpu, ways, 16);
    for (int k = 0; k < n; k++) {
        first_ready r;
        if (!first_prepare(b, &f, ways + k, &r)) continue;
        char text[64];
        snprintf(text, sizeof text, "first layer %d lines, %d a warp, %d wide", ways[k].tile_y,
                 ways[k].blocks_m, ways[k].tile_n);
        OK(hone_cuda_set(b->g, o.y.at, 0xfb, o.y.bytes));
        OK(first_once(b, &r));
        if (check(b, g, &o, text, &wanted)) check_again(b, &o.y, first_once, &r, "first layer");
        if (!timed) continue;
        contender c = contender_of(b, "hone", first_once, &r);
        in_turns(b, &c, 1, 3);
        fprintf(b->csv, "first,%d,%d,%d,%d,%d,%s,%.3f,%.3f\n", g->batch, g->size, g->outputs, g->kernel,
                g->stride, text, middle(&c), hone_cuda_first_cost(&f, &b->gpu, ways + k));
        if (least == 0 || middle(&c) < least)
            least = middle(&c), best = r, snprintf(way, sizeof way, "%s", text);
        contender_free(b, &c);
    }
    if (least > 0) ratio = against(b, g, &o, way, first_once, &best);
    reference_free(&wanted), tensor_free(b, &packed);
    operands_free(b, &o);
    return ratio;
}

static const image page[] = {
    {1, 3, 224, 64, 7, 2, 3, 1},    {1, 64, 56, 64, 1, 1, 0, 1},   {1, 64, 56, 64, 3, 1, 1, 1},
    {1, 64, 56, 256, 1, 1, 0, 1},   {1, 256, 56, 64, 1, 1, 0, 1},  {1, 256, 56, 128, 1, 1, 0, 1},
    {1, 128, 56, 128, 3, 2, 1, 1},  {1, 128, 28, 512, 1, 1, 0, 1}, {1, 512, 28, 128, 1, 1, 0, 1},
    {1, 128, 28, 128, 3, 1, 1, 1},  {1, 256, 14, 256, 3, 1, 1, 1}, {1, 256, 14, 1024, 1, 1, 0, 1},
    {1, 1024, 14, 256, 1, 1, 0, 1}, {1, 512, 7, 512, 3, 1, 1, 1},  {1, 512, 7, 2048, 1, 1, 0, 1},
    {1, 2048, 7, 512, 1, 1, 0, 1}};
static double one(bench *b, const image *g) {
    if (g->channels <= 4) return first_layer(b, g, true);
    operands o = operands_of(b, g, HONE_CUDA_F16);
    window_of(&o);
    prepared p;
    double ratio = 0;
    char text[96];
    hone_cuda_way way = hone_cuda_best_way(&o.p, &b->gpu);
    if (prepare(b, &o.p, &way, &p)) {
        hone_cuda_way_text(&way, text, sizeof text);
        ratio = against(b, g, &o, text, launch_prepared, &p);
        reference r = reference_of(g, &o);
        if (check(b, g, &o, text, &r)) check_again(b, &o.y, launch_prepared, &p, "conv");
        reference_free(&r);
    }
    operands_free(b, &o);
    return ratio;
}
/* Images of every small size, channels and outputs of every number up to two of the smallest tiles, tensors
   that begin anywhere. */
static void edges(bench *b) {
    for (int size = 1; size <= 24; size += b->every)
        for (int stride = 1; stride <= 2; stride++)
            try_ways(b, &(image){2, 16, size, 24, 3, stride, 1, 1}, HONE_CUDA_F16, true),
                try_ways(b, &(image){1, 64, size, 24, 1, stride, 0, 1}, HONE_CUDA_F16, true);
    for (int n = 1; n <= 136; n += b->every)
        try_ways(b, &(image){1, n, 7, 24, 3, 1, 1, 1}, HONE_CUDA_F16, true),
            try_ways(b, &(image){1, 64, 9, n, 3, 1, 1, 1}, HONE_CUDA_F16, true);
    for (b->shift = 1; b->shift <= 8; b->shift += b->every)
        try_ways(b, &(image){1, 64, 9, 72, 3, 1, 1, 1}, HONE_CUDA_F16, true);
    b->shift = 0;
}
void bench_conv(bench *b) {
    if (b->check) {
        static const image images[] = {{2, 16, 9, 40, 3, 1, 1, 1},  {1, 72, 13, 130, 3, 2, 1, 1},
                                       {2, 3, 15, 24, 5, 2, 2, 1},  {3, 64, 8, 72, 3, 1, 2, 2},
                                       {1, 128, 7, 64, 1, 2, 0, 1}, {5, 64, 11, 64, 3, 1, 1, 1}};
        for (size_t k = 0; k < sizeof images / sizeof *images; k++)
            try_ways(b, &images[k], HONE_CUDA_F16, false);
        try_ways(b, &images[1], HONE_CUDA_BF16, false);
        static const image firsts[] = {{2, 3, 37, 40, 7, 2, 3, 1},
                                       {1, 4, 33, 64, 3, 1, 1, 1},
                                       {3, 1, 28, 24, 5, 1, 2, 1},
                                       {1, 3, 50, 100, 3, 2, 1, 1}};
        for (size_t k = 0; k < sizeof firsts / sizeof *firsts; k++) first_layer(b, &firsts[k], false);
        edges(b);
    }
    if (b->time) {
        mean first = {.text = "conv f16 b1"}, many = {.text = "conv f16 b32"};
        for (size_t k = 0; k < sizeof page / sizeof *page; k++) mean_add(&first, one(b, &page[k]));
        for (size_t k = 0; k < sizeof page / sizeof *page; k++) {
            image g = page[k];
            g.batch = 32;
            mean_add(&many, one(b, &g));
        }
        if (!b->collect) mean_tell(b, &first, "1.0"), mean_tell(b, &many, "1.0");
    }
    if (b->search)
        for (size_t k = 0; k < 2 * sizeof page / sizeof *page; k++) {
            image g = page[k / 2];
            g.batch = k % 2 ? 32 : 1;
            if (g.channels <= 4) continue;
            operands o = operands_of(b, &g, HONE_CUDA_F16);
            window_of(&o);
            search_ways(b, "conv", &o.p, true);
            operands_free(b, &o);
        }
}
