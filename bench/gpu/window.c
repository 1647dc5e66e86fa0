/* SPDX-License-Identifier: Apache-2.0
   window: depthwise convolutions with bias and ReLU against cuDNN's bare ones, and pools, NHWC. */
#include "device/cuda/window.h"
#include "harness.h"

enum { WAYS = 128 };
typedef struct {
    int batch, channels, size, kernel, stride, pad, dilation;
} image;
typedef struct {
    const hone_cuda_kernel *kernel;
    hone_cuda_launch_shape launch;
    hone_cuda_window args;
} ready;
typedef struct {
    tensor x, w, y, bias;
    hone_cuda_windowed v;
} operands;
static operands operands_of(bench *b, const image *g, int kind, int type) {
    const int out = (g->size + 2 * g->pad - (g->kernel - 1) * g->dilation - 1) / g->stride + 1;
    operands o = {
        .x = tensor_random(b, type,
                           (size_t)g->batch * (size_t)g->size * (size_t)g->size * (size_t)g->channels, 1),
        .w = tensor_random(b, HONE_CUDA_F32, (size_t)(g->kernel * g->kernel * g->channels), 0.3),
        .y = tensor_poison(b, type, (size_t)g->batch * (size_t)out * (size_t)out * (size_t)g->channels),
        .bias = tensor_random(b, HONE_CUDA_F32, (size_t)g->channels, 1)};
    o.v = (hone_cuda_windowed){.kind = (hone_cuda_window_kind)kind,
                               .type = (hone_cuda_type)type,
                               .epilogue = kind == HONE_CUDA_DEPTHWISE ? "fmaxf(v + bias, 0.0f)" : "v",
                               .p = window_over(g->batch, g->size, g->channels, g->kernel, g->stride, g->pad,
                                                g->dilation, &o.x, &o.w, &o.y, &o.bias)};
    return o;
}
static void operands_free(bench *b, operands *o) {
    tensor_free(b, &o->x), tensor_free(b, &o->w), tensor_free(b, &o->y), tensor_free(b, &o->bias);
}
static bool prepare_window(bench *b, const hone_cuda_windowed *v, const hone_cuda_window_way *w, ready *r) {
    hone_text text = {0};
    OK(hone_cuda_window_print(&text, v, w));
    r->kernel = kernel_of(b, text.text, "hone_window", 0);
    hone_text_free(&text);
    r->launch = hone_cuda_window_launch(v, w), r->args = v->p;
    return r->kernel != NULL;
}
static hone_status once(bench *b, void *what) {
    const ready *r = what;
    return hone_cuda_launch(b->g, r->kernel, &r->launch, &r->args);
}
static reference reference_of(const operands *o) {
    const hone_cuda_window *p = &o->v.p;
    const size_t c = (size_t)p->channels, wide = (size_t)p->out_width, high = (size_t)p->out_height;
    reference r = reference_make((size_t)p->batch * high * wide * c, 50000);
    for (size_t k = 0; k < r.n; k++) {
        const size_t at = r.at[k], channel = at % c, n = at / c / wide / high;
        const int u = (int)(at / c % wide), v = (int)(at / c / wide % high);
        double sum = o->v.kind == HONE_CUDA_LARGEST ? -INFINITY : 0, size = 0;
        int there = 0;
        for (int t = 0; t < p->kernel_y * p->kernel_x; t++) {
            const int y = v * p->stride_y - p->pad_y + t / p->kernel_x * p->dilation_y,
                      x = u * p->stride_x - p->pad_x + t % p->kernel_x * p->dilation_x;
            if (y < 0 || y >= p->height || x < 0 || x >= p->width) continue;
            const double f = tensor_get(
                             &o->x, ((n * (size_t)p->height + (size_t)y) * (size_t)p->width + (size_t)x) * c +
                                        channel),
                         w = o->v.kind == HONE_CUDA_DEPTHWISE ? tensor_get(&o->w, (size_t)t * c + channel)
                                                              : 1;
            there++;
            if (o->v.kind == HONE_CUDA_LARGEST) sum = fmax(sum, f);
            else sum += f * w, size += fabs(f * w);
        }
        if (o->v.kind == HONE_CUDA_AVERAGE) sum /= there;
        if (o->v.kind == HONE_CUDA_AVERAGE_ALL) sum /= p->kernel_y * p->kernel_x;
        if (o->v.kind == HONE_CUDA_DEPTHWISE) sum = fmax(sum + tensor_get(&o->bias, channel), 0);
        r.want[k] = sum, r.size[k] = size;
    }
    return r;
}
static void texts(const image *g, const hone_cuda_window_way *w, char *what, char *way, size_t bytes) {
    snprintf(what, bytes, "%dx%d/%d b%d c%d %d", g->kernel, g->kernel, g->stride, g->batch, g->channels,
             g->size);
    snprintf(way, bytes, "width %d strip %d lines %d ahead %d", w->width, w->strip, w->lines, w->ahead);
}
static bool check(bench *b, const image *g, operands *o, const hone_cuda_window_way *w, const reference *r) {
    char what[80], way[80], all[200];
    texts(g, w, what, way, sizeof what);
    snprintf(all, sizeof all, "window kind %d %s dilation %d %s", (int)o->v.kind, what, g->dilation, way);
    if (hone_cuda_wait(b->g)) stop("%s: %s", all, hone_fail_text());
    return reference_check(b, r, &o->y, all);
}
static void every_way(bench *b, const image *g, int kind, int type) {
    operands o = operands_of(b, g, kind, type);
    hone_cuda_window_way ways[WAYS];
    reference r = {0};
    if (!b->collect) r = reference_of(&o);
    const int n = hone_cuda_window_ways(&o.v, ways, WAYS);
    for (int k = (g->size + kind) % b->every; k < n; k += b->every) {
        ready p;
        if (!prepare_window(b, &o.v, &ways[k], &p)) continue;
        OK(hone_cuda_set(b->g, o.y.at, 0xfb, o.y.bytes));
        OK(once(b, &p));
        if (check(b, g, &o, &ways[k], &r)) check_again(b, &o.y, once, &p, "window");
    }
    reference_free(&r), operands_free(b, &o);
}
/* Images of every small size, every number of channels up to some blocks, tensors that begin anywhere. */
static void edges(bench *b) {
    for (int size = 1; size <= 24; size += b->every)
        every_way(b, &(image){2, 16, size, 3, 1, 1, 1}, HONE_CUDA_DEPTHWISE, HONE_CUDA_F16),
            every_way(b, &(image){1, 24, size, 3, 2, 1, 1}, HONE_CUDA_LARGEST, HONE_CUDA_F16);
    for (int channels = 1; channels <= 72; channels += b->every)
        every_way(b, &(image){1, channels, 7, 3, 1, 1, 1}, HONE_CUDA_DEPTHWISE, HONE_CUDA_F16),
            every_way(b, &(image){1, channels, 7, 3, 2, 1, 1}, HONE_CUDA_AVERAGE, HONE_CUDA_F32);
    for (b->shift = 1; b->shift <= 8; b->shift += b->every)
        every_way(b, &(image){1, 16, 9, 3, 1, 1, 1}, HONE_CUDA_DEPTHWISE, HONE_CUDA_F16);
    b->shift = 0;
}
static double one(bench *b, const image *g) {
    operands o = operands_of(b, g, HONE_CUDA_DEPTHWISE, HONE_CUDA_F16);
    const hone_cuda_window_way chosen = hone_cuda_window_best(&o.v, &b->gpu);
    ready p;
    double ratio = 0;
    if (prepare_window(b, &o.v, &chosen, &p)) {
        char what[80], way[80], spec[64];
        snprintf(spec, sizeof spec, "%d %d %d %d", g->batch, g->channels, g->size, g->stride);
        contender c[2] = {contender_of(b, "hone", once, &p), contender_torch(b, "depthwise", spec)};
        in_turns(b, c, 2, 11);
        reference r = reference_of(&o);
        if (check(b, g, &o, &chosen, &r)) check_again(b, &o.y, once, &p, "depthwise");
        reference_free(&r);
        texts(g, &chosen, what, way, sizeof what);
        ratio = tell(b, "depthwise", what, way, c, 2, 0, (double)(o.x.bytes + o.y.bytes + o.w.bytes));
        contender_free(b, &c[0]);
    }
    operands_free(b, &o);
    return ratio;
}
static void search(bench *b, mean *all, image g) {
    operands o = operands_of(b, &g, HONE_CUDA_DEPTHWISE, HONE_CUDA_F16);
    hone_cuda_window_way ways[WAYS], best = {0};
    const hone_cuda_window_way chosen = hone_cuda_window_best(&o.v, &b->gpu);
    const int n = hone_cuda_window_ways(&o.v, ways, WAYS);
    double least = 0, mine = 0;
    for (int k = 0; k < n; k++) {
        ready r;
        const hone_cuda_window_way *w = &ways[k];
        if (!prepare_window(b, &o.v, w, &r)) continue;
        contender c = contender_of(b, "hone", once, &r);
        in_turns(b, &c, 1, 3);
        const double us = middle(&c);
        fprintf(b->csv, "depthwise,%d,%d,%d,%d,%d,%d,%d,%d,%d,%.3f\n", g.batch, g.channels, g.size, g.kernel,
                g.stride, w->width, w->strip, w->lines, w->ahead, us);
        if (least == 0 || us < least) least = us, best = *w;
        if (!memcmp(w, &chosen, sizeof chosen)) mine = us;
        contender_free(b, &c);
    }
    if (!b->collect && least > 0) {
        char what[80], first[80], second[80];
        texts(&g, &best, what, first, sizeof what), texts(&g, &chosen, what, second, sizeof what);
        tell_search(b, all, "depthwise", what, least, first, mine, second);
    }
    operands_free(b, &o);
}
static const image page[] = {{1, 32, 112, 3, 1, 1, 1}, {1, 96, 112, 3, 2, 1, 1}, {1, 144, 56, 3, 1, 1, 1},
                             {1, 192, 28, 3, 1, 1, 1}, {1, 384, 14, 3, 1, 1, 1}, {1, 576, 14, 3, 1, 1, 1},
                             {1, 960, 7, 3, 1, 1, 1}};
void bench_window(bench *b) {
    if (b->check) {
        edges(b);
        static const image small[] = {
            {2, 16, 9, 3, 1, 1, 1}, {1, 24, 14, 3, 2, 1, 1}, {1, 8, 12, 5, 1, 4, 2}, {1, 5, 7, 3, 1, 1, 1}};
        for (size_t k = 0; k < sizeof small / sizeof *small; k++)
            for (int kind = HONE_CUDA_DEPTHWISE; kind <= HONE_CUDA_AVERAGE_ALL; kind++)
                every_way(b, &small[k], kind, HONE_CUDA_F16);
        every_way(b, &small[0], HONE_CUDA_DEPTHWISE, HONE_CUDA_F32),
            every_way(b, &small[1], HONE_CUDA_DEPTHWISE, HONE_CUDA_BF16);
    }
    if (b->time) {
        mean deep[2] = {{.text = "depthwise b1"}, {.text = "depthwise b32"}};
        for (int many = 0; many < 2; many++)
            for (size_t k = 0; k < sizeof page / sizeof *page; k++) {
                image g = page[k];
                g.batch = many ? 32 : 1;
                mean_add(&deep[many], one(b, &g));
            }
        if (!b->collect) mean_tell(b, &deep[0], "1.2"), mean_tell(b, &deep[1], "1.2");
    }
    if (b->search) {
        static const image unseen[] = {{1, 240, 28, 5, 1, 2, 1}, {8, 64, 56, 3, 1, 1, 1},
                                       {8, 480, 14, 3, 1, 1, 1}, {16, 144, 56, 3, 2, 1, 1},
                                       {32, 72, 28, 5, 2, 2, 1}, {4, 16, 112, 3, 1, 1, 1},
                                       {64, 672, 7, 5, 1, 2, 1}, {1, 1152, 7, 5, 1, 2, 1},
                                       {2, 128, 40, 3, 2, 1, 1}, {8, 96, 56, 7, 1, 3, 1}};
        static const image more[] = {{1, 672, 14, 5, 1, 2, 1},
                                     {32, 240, 28, 5, 1, 2, 1},
                                     {32, 96, 56, 7, 1, 3, 1},
                                     {1, 384, 14, 7, 1, 3, 1}};
        mean first = {.text = "depthwise, shapes it was fitted to"}, second = {.text = "depthwise, others"};
        for (size_t k = 0; k < 2 * sizeof page / sizeof *page; k++) {
            image g = page[k / 2];
            g.batch = k % 2 ? 32 : 1;
            search(b, &first, g);
        }
        for (size_t k = 0; k < sizeof more / sizeof *more; k++) search(b, &first, more[k]);
        for (size_t k = 0; k < sizeof unseen / sizeof *unseen; k++) search(b, &second, unseen[k]);
        if (!b->collect) mean_tell(b, &first, "chosen / best"), mean_tell(b, &second, "0.9");
    }
}
