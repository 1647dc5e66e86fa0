/* SPDX-License-Identifier: Apache-2.0
   rows: norms, softmax and reductions along rows: against PyTorch's and against the rate of a copy. */
#include "device/cuda/rows.h"
#include "harness.h"

typedef hone_cuda_rows_way way;
typedef struct {
    const hone_cuda_kernel *kernel;
    hone_cuda_launch_shape launch;
    hone_cuda_rows args;
} ready;
typedef struct {
    tensor x, y, weight, bias;
} operands;
enum { WAYS = 64 };
static const char *const kinds[] = {"",         "softmax", "log_softmax", "layer_norm",
                                    "rms_norm", "sum",     "mean",        "max"};

typedef struct {
    int kind, in, out;
} what;

static hone_cuda_rowwise rowwise_of(const operands *o, what k, int rows, int columns) {
    return (hone_cuda_rowwise){.kind = (hone_cuda_row_kind)k.kind,
                               .in = (hone_cuda_type)k.in,
                               .out = (hone_cuda_type)k.out,
                               .before = "v",
                               .after = "v",
                               .p = {.x = o->x.at,
                                     .y = o->y.at,
                                     .weight = o->weight.at,
                                     .bias = o->bias.at,
                                     .rows = rows,
                                     .pitch_x = columns,
                                     .pitch_y = k.kind < HONE_CUDA_ROW_SUM ? columns : 1,
                                     .columns = columns,
                                     .epsilon = 1e-5f}};
}
static bool prepare_rows(bench *b, const hone_cuda_rowwise *t, const way *w, ready *r) {
    hone_text text = {0};
    OK(hone_cuda_rows_print(&text, t, w));
    r->launch = hone_cuda_rows_launch(t, w), r->args = t->p;
    r->kernel = kernel_of(b, text.text, "hone_rows", r->launch.shared_bytes);
    hone_text_free(&text);
    return r->kernel != NULL;
}
static hone_status once(bench *b, void *what) {
    const ready *r = what;
    return hone_cuda_launch(b->g, r->kernel, &r->launch, &r->args);
}
static operands operands_of(bench *b, int in, int out, int rows, int columns) {
    return (operands){.x = tensor_random(b, in, (size_t)rows * (size_t)columns, 3),
                      .y = tensor_poison(b, out, (size_t)rows * (size_t)columns),
                      .weight = tensor_random(b, HONE_CUDA_F32, (size_t)columns, 1),
                      .bias = tensor_random(b, HONE_CUDA_F32, (size_t)columns, 1)};
}
static void operands_free(bench *b, operands *o) {
    tensor_free(b, &o->x), tensor_free(b, &o->y), tensor_free(b, &o->weight), tensor_free(b, &o->bias);
}
static bool check(bench *b, operands *o, what w, const way *by, int rows, int columns) {
    const int some = (double)rows * columns < 2e6 ? rows : 20,
              wide = w.kind < HONE_CUDA_ROW_SUM ? columns : 1;
    tensor_fetch(b, &o->y);
    for (int t = 0; t < some; t++) {
        const size_t r = some == rows ? (size_t)t : dice() % (size_t)rows, at = r * (size_t)columns;
        double sum = 0, squares = 0, largest = -INFINITY, powers = 0, apart = 0, size = 0;
        bool nan = false;
        for (int k = 0; k < columns; k++) {
            const double v = tensor_get(&o->x, at + (size_t)k);
            sum += v, squares += v * v, largest = fmax(largest, v), nan |= isnan(v), size += fabs(v);
        }
        if (nan) largest = NAN;
        for (int k = 0; k < columns; k++) {
            const double v = tensor_get(&o->x, at + (size_t)k);
            powers += exp(v - largest), apart += (v - sum / columns) * (v - sum / columns);
        }
        for (int k = 0; k < wide; k++) {
            const double x = tensor_get(&o->x, at + (size_t)k), f = tensor_get(&o->weight, (size_t)k),
                         c = tensor_get(&o->bias, (size_t)k),
                         got = tensor_get(&o->y, r * (size_t)wide + (size_t)k);
            const double want = w.kind == HONE_CUDA_SOFTMAX       ? exp(x - largest) / powers
                                : w.kind == HONE_CUDA_LOG_SOFTMAX ? x - largest - log(powers)
                                : w.kind == HONE_CUDA_LAYER_NORM
                                    ? (x - sum / columns) / sqrt(apart / columns + 1e-5) * f + c
                                : w.kind == HONE_CUDA_RMS_NORM ? x / sqrt(squares / columns + 1e-5) * f
                                : w.kind == HONE_CUDA_ROW_SUM  ? sum
                                : w.kind == HONE_CUDA_ROW_MEAN ? sum / columns
                                                               : largest;
            if (right(o->y.type, got, want, w.kind >= HONE_CUDA_ROW_SUM ? size : 2)) continue;
            fprintf(
                b->table,
                "WRONG rows %s types %d %d width %d vectors %d threads %d: %d x %d [%zu][%d] is %g, not %g\n",
                kinds[w.kind], w.in, w.out, by->width, by->vectors, by->threads, rows, columns, r, k, got,
                want);
            fflush(b->table), b->wrong++;
            return false;
        }
    }
    b->checked++;
    return true;
}
/* all of them, or the one that would be chosen */
static void try_ways(bench *b, what k, int rows, int columns, double odd, bool best) {
    operands o = operands_of(b, k.in, k.out, rows, columns);
    const hone_cuda_rowwise t = rowwise_of(&o, k, rows, columns);
    way ways[WAYS];
    if (!b->collect && odd != 0) tensor_put(&o.x, (size_t)(columns / 2), odd), tensor_send(b, &o.x);
    const int n = best ? 1 : hone_cuda_rows_ways(&t, ways, WAYS), every = best ? 1 : b->every;
    if (best) ways[0] = hone_cuda_rows_best(&t, &b->gpu);
    for (int q = (columns + k.kind) % every; q < n; q += every) {
        ready r;
        if (!prepare_rows(b, &t, &ways[q], &r)) continue;
        OK(hone_cuda_set(b->g, o.y.at, 0xfb, o.y.bytes));
        OK(once(b, &r));
        if (hone_cuda_wait(b->g)) stop("rows %s: %s", kinds[k.kind], hone_fail_text());
        if (check(b, &o, k, &ways[q], rows, columns)) check_again(b, &o.y, once, &r, kinds[k.kind]);
    }
    operands_free(b, &o);
}
static void every_way(bench *b, what k, int rows, int columns, double odd) {
    try_ways(b, k, rows, columns, odd, false);
}
/* Rows of every length up to two blocks' vectors, tensors that begin anywhere. */
static void edges(bench *b) {
    static const what some[] = {{HONE_CUDA_SOFTMAX, HONE_CUDA_F16, HONE_CUDA_F16},
                                {HONE_CUDA_LAYER_NORM, HONE_CUDA_F32, HONE_CUDA_F16},
                                {HONE_CUDA_ROW_SUM, HONE_CUDA_BF16, HONE_CUDA_F32}};
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        for (int columns = 1; columns <= 260; columns += b->every) try_ways(b, some[k], 7, columns, 0, true);
        for (int columns = 8188; columns <= 8196; columns += b->every)
            try_ways(b, some[k], 3, columns, 0, true);
        for (b->shift = 1; b->shift <= 8; b->shift += b->every)
            try_ways(b, some[k], 5, 96, 0, true), try_ways(b, some[k], 5, 99, 0, true);
        b->shift = 0;
    }
}
static what f16(int kind) { return (what){kind, HONE_CUDA_F16, HONE_CUDA_F16}; }
static void way_text(const way *w, char *to, size_t bytes) {
    snprintf(to, bytes, "%d vectors, %d threads a row, %d rows", w->vectors, w->threads, w->at_once);
}
static double one(bench *b, int kind, int rows, int columns) {
    operands o = operands_of(b, HONE_CUDA_F16, HONE_CUDA_F16, rows, columns);
    const hone_cuda_rowwise t = rowwise_of(&o, f16(kind), rows, columns);
    const way chosen = hone_cuda_rows_best(&t, &b->gpu);
    ready r;
    double ratio = 0;
    if (prepare_rows(b, &t, &chosen, &r)) {
        char spec[64], what_[64], text[64];
        snprintf(spec, sizeof spec, "%d %d", rows, columns);
        contender c[2] = {contender_of(b, "hone", once, &r), contender_torch(b, kinds[kind], spec)};
        in_turns(b, c, 2, 11);
        if (check(b, &o, f16(kind), &chosen, rows, columns)) check_again(b, &o.y, once, &r, kinds[kind]);
        snprintf(what_, sizeof what_, "%s %d x %d", kinds[kind], rows, columns),
            way_text(&chosen, text, sizeof text);
        ratio = tell(b, "rows", what_, text, c, 2, 0, (double)(o.x.bytes + o.y.bytes));
        contender_free(b, &c[0]);
    }
    operands_free(b, &o);
    return ratio;
}
static void search(bench *b, mean *all, int kind, int rows, int columns) {
    operands o = operands_of(b, HONE_CUDA_F16, HONE_CUDA_F16, rows, columns);
    const hone_cuda_rowwise t = rowwise_of(&o, f16(kind), rows, columns);
    way ways[WAYS], best = {0};
    const way chosen = hone_cuda_rows_best(&t, &b->gpu);
    const int n = hone_cuda_rows_ways(&t, ways, WAYS);
    double least = 0, mine = 0;
    for (int k = 0; k < n; k++) {
        ready r;
        if (!prepare_rows(b, &t, &ways[k], &r)) continue;
        contender c = contender_of(b, "hone", once, &r);
        in_turns(b, &c, 1, 3);
        const double us = middle(&c);
        const way *w = &ways[k];
        fprintf(b->csv, "rows,%d,%d,%d,%d,%d,%d,%d,%d,%.3f\n", kind, rows, columns, w->width, w->vectors,
                w->threads, w->at_once, w->is_long, us);
        if (least == 0 || us < least) least = us, best = *w;
        if (!memcmp(w, &chosen, sizeof chosen)) mine = us;
        contender_free(b, &c);
    }
    if (!b->collect && least > 0) {
        char what_[64], first[64], second[64];
        snprintf(what_, sizeof what_, "%s %d x %d", kinds[kind], rows, columns);
        way_text(&best, first, sizeof first), way_text(&chosen, second, sizeof second);
        tell_search(b, all, "rows", what_, least, first, mine, second);
    }
    operands_free(b, &o);
}
void bench_rows(bench *b) {
    enum { F16 = HONE_CUDA_F16, BF16 = HONE_CUDA_BF16, F32 = HONE_CUDA_F32 };
    if (b->check) edges(b);
    if (b->check)
        for (int kind = HONE_CUDA_SOFTMAX; kind <= HONE_CUDA_ROW_MAX; kind++) {
            every_way(b, (what){kind, F16, F16}, 5, 712, 0),
                every_way(b, (what){kind, F32, F32}, 3, 33000, 0);
            every_way(b, (what){kind, F16, F32}, 2, 1016, 0),
                every_way(b, (what){kind, BF16, BF16}, 3, 101, 0),
                every_way(b, (what){kind, F16, F16}, 4, 126, 0);
            every_way(b, (what){kind, F32, F32}, 3, 100, NAN);
            if (kind != HONE_CUDA_RMS_NORM) every_way(b, (what){kind, F32, F32}, 3, 100, -INFINITY);
        }
    if (b->time) {
        static const int shapes[][2] = {{128, 768},    {512, 768},    {4096, 768}, {16384, 768},
                                        {16384, 3072}, {65536, 1024}, {8192, 8192}};
        mean all = {.text = "rows f16"};
        for (size_t k = 0; k < 7; k++)
            mean_add(&all, one(b, HONE_CUDA_LAYER_NORM, shapes[k][0], shapes[k][1])),
                mean_add(&all, one(b, HONE_CUDA_SOFTMAX, shapes[k][0], shapes[k][1]));
        if (!b->collect) mean_tell(b, &all, "1.5");
    }
    if (b->search) {
        static const int seen[][2] = {{128, 768},    {512, 768},    {4096, 768},  {16384, 768},
                                      {16384, 3072}, {65536, 1024}, {8192, 8192}, {100000, 128},
                                      {1, 50257},    {32, 32000},   {2048, 4096}},
                         unseen[][2] = {{197, 1024},  {1024, 512}, {8192, 1280}, {24576, 512}, {4096, 4096},
                                        {300000, 64}, {64, 1000},  {12288, 197}, {512, 16384}};
        mean first = {.text = "rows, shapes it was fitted to"}, second = {.text = "rows, others"};
        for (size_t k = 0; k < 2 * sizeof seen / sizeof *seen; k++)
            search(b, &first, k % 2 ? HONE_CUDA_SOFTMAX : HONE_CUDA_LAYER_NORM, seen[k / 2][0],
                   seen[k / 2][1]);
        for (size_t k = 0; k < sizeof unseen / sizeof *unseen; k++)
            search(b, &second, k % 2 ? HONE_CUDA_SOFTMAX : HONE_CUDA_LAYER_NORM, unseen[k][0], unseen[k][1]);
        if (!b->collect) mean_tell(b, &first, "chosen / best"), mean_tell(b, &second, "0.9");
    }
}
