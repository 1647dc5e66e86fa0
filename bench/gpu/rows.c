/* SPDX-License-Identifier: Apache-2.0
   rows: norms, softmax and reductions along rows, and movement: against PyTorch's and against the rate of a copy. */
#include "harness.h"

typedef struct {
    int kind, in, out, width, vectors, threads, at_once, is_long, blocks;
} way;
typedef struct {
    const hone_cuda_kernel *kernel;
    hone_cuda_launch_shape launch;
    hone_cuda_rows args;
} ready;
typedef struct {
    tensor x, y, weight, bias;
} operands;
static const char *const kinds[] = {"", "softmax", "log_softmax", "layer_norm", "rms_norm", "sum", "mean", "max"};

static bool prepare_rows(bench *b, const operands *o, way w, int rows, int columns, ready *r) {
    const hone_cuda_fill fill[] = {{"KIND", w.kind, NULL},
                                   {"IN_TYPE", w.in, NULL},
                                   {"OUT_TYPE", w.out, NULL},
                                   {"WIDTH", w.width, NULL},
                                   {"VECTORS", w.vectors, NULL},
                                   {"THREADS_A_ROW", w.threads, NULL},
                                   {"ROWS_A_BLOCK", w.at_once, NULL},
                                   {"BLOCKS", w.blocks, NULL},
                                   {"LONG", w.is_long, NULL},
                                   {"BEFORE", 0, "v"},
                                   {"AFTER", 0, "v"}};
    hone_text text = {0};
    OK(hone_cuda_print(&text, "rows", fill, 11));
    const int shared = w.threads > 32 ? 128 * w.at_once : 0;
    r->kernel = kernel_of(b, text.text, "hone_rows", shared);
    hone_text_free(&text);
    r->launch = (hone_cuda_launch_shape){
        .grid = {(rows + w.at_once - 1) / w.at_once, 1, 1}, .threads = w.threads * w.at_once, .shared_bytes = shared};
    r->args = (hone_cuda_rows){.x = o->x.at,
                               .y = o->y.at,
                               .weight = o->weight.at,
                               .bias = o->bias.at,
                               .rows = rows,
                               .pitch_x = columns,
                               .pitch_y = w.kind < HONE_CUDA_ROW_SUM ? columns : 1,
                               .columns = columns,
                               .epsilon = 1e-5f};
    return r->kernel != NULL;
}
static hone_status once(bench *b, void *what) {
    const ready *r = what;
    return hone_cuda_launch(b->g, r->kernel, &r->launch, &r->args);
}
static operands operands_of(bench *b, int in, int out, int rows, int columns) {
    return (operands){.x = tensor_random(b, in, (size_t)rows * (size_t)columns, 3),
                      .y = tensor_poison(b, out, (size_t)rows * (size_t)columns),
                      .weight = tensor_random(b, in, (size_t)columns, 1),
                      .bias = tensor_random(b, in, (size_t)columns, 1)};
}
static void operands_free(bench *b, operands *o) {
    tensor_free(b, &o->x), tensor_free(b, &o->y), tensor_free(b, &o->weight), tensor_free(b, &o->bias);
}
static void check(bench *b, operands *o, way w, int rows, int columns) {
    const int some = (double)rows * columns < 2e6 ? rows : 20, wide = w.kind < HONE_CUDA_ROW_SUM ? columns : 1;
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
            const double x = tensor_get(&o->x, at + (size_t)k), f = tensor_get(&o->weight, (size_t)k), c = tensor_get(&o->bias, (size_t)k),
                         got = tensor_get(&o->y, r * (size_t)wide + (size_t)k);
            const double want = w.kind == HONE_CUDA_SOFTMAX       ? exp(x - largest) / powers
                                : w.kind == HONE_CUDA_LOG_SOFTMAX ? x - largest - log(powers)
                                : w.kind == HONE_CUDA_LAYER_NORM  ? (x - sum / columns) / sqrt(apart / columns + 1e-5) * f + c
                                : w.kind == HONE_CUDA_RMS_NORM    ? x / sqrt(squares / columns + 1e-5) * f
                                : w.kind == HONE_CUDA_ROW_SUM     ? sum
                                : w.kind == HONE_CUDA_ROW_MEAN    ? sum / columns
                                                                  : largest;
            if (right(o->y.type, got, want, w.kind >= HONE_CUDA_ROW_SUM ? size : 2)) continue;
            fprintf(b->table, "WRONG rows %s types %d %d width %d vectors %d threads %d: %d x %d [%zu][%d] is %g, not %g\n", kinds[w.kind],
                    w.in, w.out, w.width, w.vectors, w.threads, rows, columns, r, k, got, want);
            fflush(b->table), b->wrong++;
            return;
        }
    }
    b->checked++;
}
static void try_rows(bench *b, way w, int rows, int columns, double odd) {
    operands o = operands_of(b, w.in, w.out, rows, columns);
    ready r;
    if (!b->collect && odd != 0) tensor_put(&o.x, (size_t)(columns / 2), odd), tensor_send(b, &o.x);
    if (prepare_rows(b, &o, w, rows, columns, &r)) {
        OK(once(b, &r));
        if (hone_cuda_wait(b->g)) stop("rows %s: %s", kinds[w.kind], hone_fail_text());
        check(b, &o, w, rows, columns);
    }
    operands_free(b, &o);
}
static double one(bench *b, int kind, int rows, int columns) {
    operands o = operands_of(b, HONE_CUDA_F16, HONE_CUDA_F16, rows, columns);
    ready best = {0};
    way chosen = {0};
    double least = 0, ratio = 0;
    static const int threads[] = {16, 32, 64, 128, 256, 512, 1024};
    for (size_t k = 0; k < sizeof threads / sizeof *threads; k++)
        for (int at_once = 1; at_once == 1 || at_once * threads[k] <= 256; at_once *= 2) {
            const int vectors = (columns + 8 * threads[k] - 1) / (8 * threads[k]);
            if (vectors > 8 || at_once * threads[k] < 64) continue;
            /* registers: a vector is four, the rest about 26 */
            const int registers = 26 + 4 * vectors, fit = 65536 / ((registers + 7) / 8 * 8) / (threads[k] * at_once),
                      all = 2048 / (threads[k] * at_once);
            const way w = {kind, HONE_CUDA_F16, HONE_CUDA_F16, 8, vectors, threads[k], at_once, 0, fit < 1 ? 1 : fit < all ? fit : all};
            ready r;
            if (!prepare_rows(b, &o, w, rows, columns, &r)) continue;
            contender c = contender_of(b, "hone", once, &r);
            in_turns(b, &c, 1, 3);
            if (b->csv) fprintf(b->csv, "rows,%d,%d,%d,%d,%d,%d,%.3f\n", kind, rows, columns, vectors, threads[k], at_once, middle(&c));
            if (least == 0 || middle(&c) < least) least = middle(&c), best = r, chosen = w;
            contender_free(b, &c);
        }
    if (least > 0) {
        char spec[64], what[64], text[64];
        snprintf(spec, sizeof spec, "%d %d", rows, columns);
        contender c[2] = {contender_of(b, "hone", once, &best), contender_torch(b, kinds[kind], spec)};
        in_turns(b, c, 2, 11);
        check(b, &o, chosen, rows, columns);
        snprintf(what, sizeof what, "%s %d x %d", kinds[kind], rows, columns);
        snprintf(text, sizeof text, "%d vectors, %d threads a row, %d rows", chosen.vectors, chosen.threads, chosen.at_once);
        ratio = tell(b, "rows", what, text, c, 2, 0, (double)(o.x.bytes + o.y.bytes));
        contender_free(b, &c[0]);
    }
    operands_free(b, &o);
    return ratio;
}
void bench_rows(bench *b) {
    enum { F16 = HONE_CUDA_F16, BF16 = HONE_CUDA_BF16, F32 = HONE_CUDA_F32 };
    if (b->check)
        for (int kind = HONE_CUDA_SOFTMAX; kind <= HONE_CUDA_ROW_MAX; kind++) {
            try_rows(b, (way){kind, F16, F16, 8, 3, 32, 4, 0, 1}, 5, 712, 0),
                try_rows(b, (way){kind, F32, F32, 4, 1, 64, 2, 1, 1}, 3, 1100, 0);
            try_rows(b, (way){kind, F16, F32, 8, 1, 128, 1, 0, 1}, 2, 1016, 0),
                try_rows(b, (way){kind, BF16, BF16, 1, 4, 32, 2, 0, 1}, 3, 101, 0),
                try_rows(b, (way){kind, F16, F16, 2, 4, 16, 2, 0, 1}, 4, 126, 0);
            try_rows(b, (way){kind, F32, F32, 4, 1, 64, 2, 1, 1}, 3, 100, NAN);
            if (kind != HONE_CUDA_RMS_NORM) try_rows(b, (way){kind, F32, F32, 4, 1, 64, 2, 1, 1}, 3, 100, -INFINITY);
        }
    if (b->time) {
        static const int shapes[][2] = {{128, 768}, {512, 768}, {4096, 768}, {16384, 768}, {16384, 3072}, {65536, 1024}, {8192, 8192}};
        mean all = {.text = "rows f16"};
        for (size_t k = 0; k < 7; k++)
            mean_add(&all, one(b, HONE_CUDA_LAYER_NORM, shapes[k][0], shapes[k][1])),
                mean_add(&all, one(b, HONE_CUDA_SOFTMAX, shapes[k][0], shapes[k][1]));
        if (!b->collect) mean_tell(b, &all, "1.5");
    }
}

/* ---- movement ---- */
typedef struct {
    const hone_cuda_kernel *kernel;
    hone_cuda_launch_shape launch;
    hone_cuda_move args;
} move_ready;
static hone_status move_once(bench *b, void *what) {
    const move_ready *r = what;
    return hone_cuda_launch(b->g, r->kernel, &r->launch, &r->args);
}
static void move(bench *b, int bytes, int turn, long long i, long long j, long long k, int misplaced, bool timed) {
    const int type = (int[]){0, HONE_CUDA_S8, HONE_CUDA_F16, 0, HONE_CUDA_F32}[bytes > 4 ? 4 : bytes];
    const size_t n = (size_t)(i * j * k), scale = bytes == 8 ? 2 : 1;
    const hone_cuda_fill fill[] = {{"BYTES", bytes, NULL}, {"TURN", turn, NULL}};
    tensor x = tensor_random(b, type, (n + (size_t)misplaced) * scale, 1), y = tensor_poison(b, type, n * scale);
    move_ready r;
    hone_text text = {0};
    OK(hone_cuda_print(&text, "move", fill, 2));
    const int shared = turn ? 2 * 128 * 128 : 0;
    r.kernel = kernel_of(b, text.text, "hone_move", shared);
    hone_text_free(&text);
    r.args = (hone_cuda_move){x.at + (size_t)(misplaced * bytes), y.at, {i, j, k}, {j * k, turn ? 1 : k, turn ? j : 1}};
    const long long many = (long long)((n * (size_t)bytes / 16 + 1023) / 1024);
    r.launch = turn ? (hone_cuda_launch_shape){.grid = {b->gpu.sms * 4, 1, 1}, .threads = 256, .shared_bytes = shared}
                    : (hone_cuda_launch_shape){.grid = {(int)(many < 1          ? 1
                                                              : many < 132 * 32 ? many
                                                                                : 132 * 32),
                                                        1, 1},
                                               .threads = 256};
    if (r.kernel) {
        char what[96];
        snprintf(what, sizeof what, "%s %d bytes %lld x %lld x %lld", turn ? "transpose" : "copy", bytes, i, j, k);
        contender c = {.n = 0};
        if (timed) c = contender_of(b, "hone", move_once, &r), in_turns(b, &c, 1, 11);
        else OK(move_once(b, &r));
        if (hone_cuda_wait(b->g)) stop("%s: %s", what, hone_fail_text());
        tensor_fetch(b, &y);
        for (size_t p = 0; p < n; p++) {
            const size_t q = n > 1 << 22 ? dice() % n : p, c2 = q % (size_t)k, c1 = q / (size_t)k % (size_t)j,
                         c0 = q / (size_t)k / (size_t)j;
            const size_t from =
                (size_t)misplaced + c0 * (size_t)r.args.stride_x[0] + c1 * (size_t)r.args.stride_x[1] + c2 * (size_t)r.args.stride_x[2];
            if (memcmp((char *)y.host + q * (size_t)bytes, (char *)x.host + from * (size_t)bytes, (size_t)bytes)) {
                fprintf(b->table, "WRONG move %s misplaced %d: element %zu\n", what, misplaced, q), fflush(b->table);
                b->wrong++;
                break;
            }
            if (n > 1 << 22 && p > 1 << 18) break;
        }
        b->checked++;
        if (timed) tell(b, "move", what, "", &c, 1, 0, 2.0 * (double)n * bytes), contender_free(b, &c);
    }
    tensor_free(b, &x), tensor_free(b, &y);
}
void bench_move(bench *b) {
    if (b->check)
        for (int bytes = 1; bytes <= 8; bytes *= 2)
            for (int turn = 0; turn < 2; turn++)
                move(b, bytes, turn, 3, 70, 67, 0, false), move(b, bytes, turn, 2, 64, 96, 0, false),
                    move(b, bytes, turn, 1, 33, 130, 1, false), move(b, bytes, turn, 2, 144, 256, 0, false);
    if (b->time) {
        for (int bytes = 1; bytes <= 8; bytes *= 2) move(b, bytes, 1, 1, 16384, 8192, 0, true);
        move(b, 2, 1, 32, 256, 56 * 56, 0, true), move(b, 2, 1, 32, 56 * 56, 256, 0, true), move(b, 2, 1, 1024, 197, 64, 0, true),
            move(b, 2, 1, 4096, 64, 512, 0, true), move(b, 2, 0, 1, 16384, 8192, 0, true);
    }
}
