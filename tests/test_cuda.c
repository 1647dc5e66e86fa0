/* SPDX-License-Identifier: Apache-2.0
   CUDA kernels without a GPU: the text that NVRTC would compile is compiled for the CPU (emulate.h), run
   thread by thread, and compared with plain loops in double. Sizes around the edges of tiles, every type,
   infinities and NaN, operands that end where their page ends. */
#include "cuda.h"
#include "device/cuda/contract.h"

/* ---- rows ---- */
static void row_definition(int kind, const double *x, int n, double epsilon, const double *weight,
                           const double *bias, double *y) {
    double sum = 0, squares = 0, largest = -INFINITY, powers = 0, spread = 0;
    bool nan = false;
    for (int k = 0; k < n; k++)
        sum += x[k], squares += x[k] * x[k], largest = fmax(largest, x[k]), nan |= isnan(x[k]);
    if (nan) largest = NAN;
    for (int k = 0; k < n; k++) powers += exp(x[k] - largest), spread += (x[k] - sum / n) * (x[k] - sum / n);
    if (kind == HONE_CUDA_ROW_SUM) *y = sum;
    if (kind == HONE_CUDA_ROW_MEAN) *y = sum / n;
    if (kind == HONE_CUDA_ROW_MAX) *y = largest;
    for (int k = 0; k < n && kind < HONE_CUDA_ROW_SUM; k++)
        y[k] = kind == HONE_CUDA_SOFTMAX       ? exp(x[k] - largest) / powers
               : kind == HONE_CUDA_LOG_SOFTMAX ? x[k] - largest - log(powers)
               : kind == HONE_CUDA_LAYER_NORM
                   ? (x[k] - sum / n) / sqrt(spread / n + epsilon) * weight[k] + bias[k]
                   : x[k] / sqrt(squares / n + epsilon) * weight[k];
}
static void rows_of(int kind, int in, int out, int width, int vectors, int threads, int at_once, int is_long,
                    int rows, int columns, double odd) {
    const hone_cuda_fill fill[] = {{"KIND", kind, NULL},
                                   {"IN_TYPE", in, NULL},
                                   {"OUT_TYPE", out, NULL},
                                   {"WIDTH", width, NULL},
                                   {"VECTORS", vectors, NULL},
                                   {"THREADS_A_ROW", threads, NULL},
                                   {"ROWS_A_BLOCK", at_once, NULL},
                                   {"BLOCKS", 1, NULL},
                                   {"LONG", is_long, NULL},
                                   {"BEFORE", 0, "v + other_at(a, row, column)"},
                                   {"AFTER", 0, "v * 2.0f"}};
    const emulated e = compile("rows", "hone_rows", fill, 11);
    const int wide = kind < HONE_CUDA_ROW_SUM ? columns : 1, ib = bytes_of[in], ob = bytes_of[out];
    operand x = hold((size_t)(rows * columns * ib), 16), other = hold(x.bytes, 16),
            y = hold((size_t)(rows * wide * ob), 16), weight = hold((size_t)columns * 4, 16),
            bias = hold((size_t)columns * 4, 16);
    fill_with(&x, in), fill_with(&other, in), fill_with(&weight, HONE_CUDA_F32),
        fill_with(&bias, HONE_CUDA_F32);
    if (odd != 0) set(x.at, in, columns / 2, odd);
    const hone_cuda_rows args = {
        address(&x), address(&y), address(&weight), address(&bias), address(&other), rows, columns,
        wide,        columns,     columns,          1e-5f};
    run(&e, &args, (rows + at_once - 1) / at_once, 1, 1);
    double *row = malloc(sizeof *row * (size_t)columns * 4), *w = row + columns, *b = w + columns,
           *want = b + columns;
    for (int r = 0; r < rows; r++) {
        for (int k = 0; k < columns; k++)
            row[k] = get(x.at, in, r * columns + k) + get(other.at, in, r * columns + k),
            w[k] = get(weight.at, HONE_CUDA_F32, k), b[k] = get(bias.at, HONE_CUDA_F32, k);
        row_definition(kind, row, columns, 1e-5, w, b, want);
        for (int k = 0; k < wide; k++) {
            const double got = get(y.at, out, r * wide + k);
            if (!near_enough(got, 2 * want[k],
                             kind >= HONE_CUDA_ROW_SUM ? columns : fmax(1, fabs(2 * want[k])),
                             digits[out] + 3e-6))
                fail_msg("kind %d, type %d, %d x %d, width %d: [%d][%d] is %g, not %g", kind, in, rows,
                         columns, width, r, k, got, 2 * want[k]);
        }
    }
    free(row), drop(&x), drop(&other), drop(&y), drop(&weight), drop(&bias);
}
static void rows(void **state) {
    (void)state;
    if (!works) skip();
    for (int kind = HONE_CUDA_SOFTMAX; kind <= HONE_CUDA_ROW_MAX; kind++) {
        rows_of(kind, HONE_CUDA_F16, HONE_CUDA_F16, 8, 3, 32, 4, 0, 5, 712, 0);
        /* more than the registers hold */
        rows_of(kind, HONE_CUDA_F32, HONE_CUDA_F32, 4, 1, 64, 2, 1, 3, 1100, 0);
    }
    rows_of(HONE_CUDA_LAYER_NORM, HONE_CUDA_F16, HONE_CUDA_F32, 8, 1, 128, 1, 0, 2, 1016, 0);
    /* rows at odd places */
    rows_of(HONE_CUDA_SOFTMAX, HONE_CUDA_BF16, HONE_CUDA_BF16, 1, 4, 32, 2, 0, 3, 101, 0);
    for (int rows = 4; rows <= 5; rows++) /* half a warp a row; the last warp has one row */
        rows_of(HONE_CUDA_LAYER_NORM, HONE_CUDA_F16, HONE_CUDA_F16, 2, 4, 16, 2, 0, rows, 126, 0);
    for (int kind = HONE_CUDA_SOFTMAX; kind <= HONE_CUDA_ROW_MAX; kind++) {
        rows_of(kind, HONE_CUDA_F32, HONE_CUDA_F32, 4, 1, 64, 2, 1, 3, 100, NAN);
        if (kind != HONE_CUDA_RMS_NORM)
            rows_of(kind, HONE_CUDA_F32, HONE_CUDA_F32, 4, 1, 64, 2, 1, 3, 100, -INFINITY);
    }
}

/* ---- movement ---- */
static void move_of(int bytes, int turn, int64_t i, int64_t j, int64_t k, int misplaced, int high) {
    const int64_t n = i * j * k;
    const bool x_aligned = turn != 2 && (misplaced * bytes) % 16 == 0 && (turn ? j : k) * bytes % 16 == 0,
               y_aligned = k * bytes % 16 == 0;
    const hone_cuda_fill fill[] = {{"BYTES", bytes, NULL},
                                   {"TURN", turn, NULL},
                                   {"X_ALIGNED", x_aligned, NULL},
                                   {"Y_ALIGNED", y_aligned, NULL},
                                   {"HIGH", turn ? high : 4, NULL},
                                   {"ONCE", misplaced, NULL},
                                   {"BLOCKS", 4, NULL}};
    const emulated e = compile("move", "hone_move", fill, 7);
    operand x = hold((size_t)((n + misplaced) * bytes), 16), y = hold((size_t)(n * bytes), 16);
    for (size_t b = 0; b < x.bytes; b++) x.at[b] = (char)(b * 131 >> 3);
    hone_cuda_move args = {address(&x) + (uint64_t)(misplaced * bytes),
                           address(&y),
                           {i, j, k},
                           {j * k, turn ? 1 : k, turn ? j : 1}};
    const int64_t wide = 128 / bytes, copied = 256 * 4 * (x_aligned && y_aligned ? 16 / bytes : 1);
    run(&e, &args,
        (int)(turn >= 2 ? i
              : turn    ? (j + wide - 1) / wide * ((k + high - 1) / high) * i
                        : (n + copied - 1) / copied),
        1, 1);
    for (int64_t p = 0; p < n; p++) {
        const int64_t c = p % k, b = p / k % j, a = p / k / j;
        const int64_t from = misplaced + a * args.stride_x[0] + b * args.stride_x[1] + c * args.stride_x[2];
        if (memcmp(y.at + p * bytes, x.at + from * bytes, (size_t)bytes))
            fail_msg("%d bytes, turn %d: element %lld is wrong", bytes, turn, (long long)p);
    }
    drop(&x), drop(&y);
}
static void movement(void **state) {
    (void)state;
    if (!works) skip();
    for (int bytes = 1; bytes <= 8; bytes *= 2)
        for (int turn = 0; turn < 2; turn++)
            move_of(bytes, turn, 3, 70, 67, 0, 128), move_of(bytes, turn, 2, 64, 96, 0, 128),
                move_of(bytes, turn, 1, 33, 130, 1, 128), move_of(bytes, turn, 1, 144, 256, 0, 256),
                move_of(bytes, turn, 2, 41, 144, 0, 128), move_of(bytes, turn, 2, 144, 133, 0, 128);
    for (int bytes = 1; bytes <= 4; bytes *= 2) /* a matrix a block */
        move_of(bytes, 2, 3, 37, 48, 0, 0), move_of(bytes, 3, 3, 48, 37, 0, 0),
            move_of(bytes, 3, 2, 16, 3, 0, 0), move_of(bytes, 3, 1, 64, 197, 0, 0);
}

/* ---- contractions ---- */
typedef struct {
    int in, out, m, n, k, batches, splits;
    bool shared_b, odd_pitch; /* one B for all batches; rows at places that are not aligned */
    const char *epilogue;
} product;
typedef struct {
    operand a, b, c, bias, whole, residual, workspace, counters;
    hone_cuda_contract args;
} product_data;
static int right_of(const product *p) { /* the type of B */
    return p->in == HONE_CUDA_U8 ? HONE_CUDA_S8 : p->in;
}
static product_data product_make(const product *p, int tile_m, int tile_n, int align) {
    const int64_t pad = p->odd_pitch ? 1 : 0, pa = (p->k + (align - 1)) / align * align + pad,
                  pc = p->n + pad;
    product_data d;
    const int64_t tiles =
        (int64_t)((p->m + tile_m - 1) / tile_m) * ((p->n + tile_n - 1) / tile_n) * p->batches;
    d.a = hold((size_t)(p->batches * p->m * pa * bytes_of[p->in]), 16);
    d.b = hold((size_t)((p->shared_b ? 1 : p->batches) * p->n * pa * bytes_of[p->in]), 16);
    d.c = hold((size_t)(p->batches * p->m * pc * bytes_of[p->out]), 16);
    d.bias = hold((size_t)(4 * p->n), 4), d.whole = hold((size_t)(4 * p->n), 4),
    d.residual = hold(d.c.bytes, 16);
    d.workspace = hold((size_t)(tiles * p->splits * tile_m * tile_n * 4), 16),
    d.counters = hold((size_t)(tiles * 16), 16);
    memset(d.counters.at, 0, d.counters.bytes);
    fill_with(&d.a, p->in), fill_with(&d.b, right_of(p)), fill_with(&d.bias, HONE_CUDA_F32),
        fill_with(&d.whole, HONE_CUDA_S32), fill_with(&d.residual, p->out);
    d.args = (hone_cuda_contract){.a = address(&d.a),
                                  .b = address(&d.b),
                                  .c = address(&d.c),
                                  .bias = address(&d.bias),
                                  .whole = address(&d.whole),
                                  .residual = address(&d.residual),
                                  .workspace = address(&d.workspace),
                                  .counters = address(&d.counters),
                                  .batch_a = p->m * pa,
                                  .batch_b = p->shared_b ? 0 : p->n * pa,
                                  .batch_c = p->m * pc,
                                  .batch_residual = p->m * pc,
                                  .pitch_a = pa,
                                  .pitch_b = pa,
                                  .pitch_c = pc,
                                  .pitch_residual = pc,
                                  .m = p->m,
                                  .n = p->n,
                                  .k = p->k,
                                  .batches = p->batches,
                                  .splits = p->splits,
                                  .alpha = 0.5f};
    return d;
}
static double rounded(double v, int type) { /* what the matrix unit keeps of a factor */
    float f = (float)v;
    uint32_t u;
    memcpy(&u, &f, 4), u &= 0xffffe000u, memcpy(&f, &u, 4);
    return type == HONE_CUDA_F32 ? f : v;
}
static double product_end(const product *p, const product_data *d, double sum, int b, int m, int n) {
    if (p->out == HONE_CUDA_S32) return sum;
    if (strstr(p->epilogue, "whole")) sum += get(d->whole.at, HONE_CUDA_S32, n);
    double v = sum * 0.5 * (hone_cuda_is_byte((hone_cuda_type)p->in) ? 1e-3 : 1);
    if (strstr(p->epilogue, "bias")) v += get(d->bias.at, HONE_CUDA_F32, n);
    if (strstr(p->epilogue, "residual"))
        v += get(d->residual.at, p->out, b * d->args.batch_residual + m * d->args.pitch_residual + n);
    return strstr(p->epilogue, "fmaxf") ? fmax(v, 0) : v;
}
static void product_check(const product *p, const product_data *d, const char *what) {
    for (int b = 0; b < p->batches; b++)
        for (int m = 0; m < p->m; m++)
            for (int n = 0; n < p->n; n++) {
                double sum = 0, size = 0;
                for (int k = 0; k < p->k; k++) {
                    const double left =
                        rounded(get(d->a.at, p->in, b * d->args.batch_a + m * d->args.pitch_a + k), p->in);
                    const double term = left * rounded(get(d->b.at, right_of(p),
                                                           b * d->args.batch_b + n * d->args.pitch_b + k),
                                                       p->in);
                    sum += term, size += fabs(term);
                }
                const double got = get(d->c.at, p->out, b * d->args.batch_c + m * d->args.pitch_c + n),
                             want = product_end(p, d, sum, b, m, n);
                const double low = p->out == HONE_CUDA_S8 ? -128 : 0;
                const bool byte = hone_cuda_is_byte((hone_cuda_type)p->out),
                           whole = hone_cuda_is_byte((hone_cuda_type)p->in);
                const double clamped = byte ? fmin(low + 255, fmax(low, want)) : want;
                if (!near_enough(got, clamped, byte ? 1 : fmax(1, fabs(want)) + (whole ? 0 : 1e-3 * size),
                                 digits[p->out] + 1e-6))
                    fail_msg("%s, %d x %d x %d, types %d %d: [%d][%d][%d] is %g, not %g", what, p->m, p->n,
                             p->k, p->in, p->out, b, m, n, got, clamped);
            }
}
static void product_drop(product_data *d) {
    drop(&d->a), drop(&d->b), drop(&d->c), drop(&d->bias), drop(&d->whole), drop(&d->residual),
        drop(&d->workspace), drop(&d->counters);
}
static void mma(product p, int tile_m, int tile_n, int warps_m, int warps_n, int stages, int piece) {
    const hone_cuda_fill fill[] = {
        {"IN_TYPE", p.in, NULL},  {"OUT_TYPE", p.out, NULL},  {"TILE_M", tile_m, NULL},
        {"TILE_N", tile_n, NULL}, {"WARPS_M", warps_m, NULL}, {"WARPS_N", warps_n, NULL},
        {"STAGES", stages, NULL}, {"PIECE", piece, NULL},     {"SPLIT", p.splits > 1, NULL},
        {"WINDOW", 0, NULL},      {"EPILOGUE", 0, p.epilogue}};
    const emulated e = compile("contract_mma", "hone_contract", fill, 11);
    product_data d = product_make(&p, tile_m, tile_n,
                                  piece == 16  ? 16 / bytes_of[p.in]
                                  : piece == 4 ? 4 / bytes_of[p.in]
                                               : 1);
    for (int again = 0; again < 1 + (p.splits > 1); again++) { /* counters are left as they were found */
        run(&e, &d.args, ((p.m + tile_m - 1) / tile_m) * ((p.n + tile_n - 1) / tile_n), 1,
            p.batches * p.splits);
        product_check(&p, &d, "mma");
    }
    product_drop(&d);
}
#define PLAIN "v * a->alpha"
#define FULL "fmaxf(v * a->alpha + bias + residual, 0.0f)"
#define BYTES_ "v * a->alpha * 1e-3f + bias"
#define WHOLE_ "(float)(v + whole) * a->alpha * 1e-3f + bias"
#define BEFORE_ "(float)v * a->alpha * 1e-3f + (residual - 8388608.0f)" /* of bytes without a sign */
static void contract_mma(void **state) {
    (void)state;
    if (!works) skip();
    mma((product){HONE_CUDA_F16, HONE_CUDA_F16, 70, 50, 136, 2, 1, true, false, FULL}, 64, 32, 2, 1, 3, 16);
    mma((product){HONE_CUDA_BF16, HONE_CUDA_F32, 65, 33, 72, 1, 1, false, false, PLAIN}, 64, 64, 2, 2, 2, 16);
    mma((product){HONE_CUDA_F32, HONE_CUDA_F32, 40, 40, 100, 2, 1, false, false, FULL}, 32, 32, 1, 2, 3, 16);
    mma((product){HONE_CUDA_S8, HONE_CUDA_S8, 33, 47, 200, 1, 1, false, false, BYTES_}, 32, 32, 1, 2, 3, 16);
    mma((product){HONE_CUDA_U8, HONE_CUDA_U8, 33, 47, 200, 1, 1, false, false, WHOLE_}, 32, 32, 1, 2, 3, 16);
    mma((product){HONE_CUDA_S8, HONE_CUDA_S32, 17, 20, 160, 1, 1, false, false, "v"}, 32, 16, 2, 1, 3, 16);
    mma((product){HONE_CUDA_F16, HONE_CUDA_F16, 37, 45, 67, 1, 1, false, true, FULL}, 32, 32, 1, 2, 3, 2);
    mma((product){HONE_CUDA_F16, HONE_CUDA_F16, 37, 45, 66, 1, 1, false, false, FULL}, 32, 32, 1, 2, 3, 4);
    mma((product){HONE_CUDA_F16, HONE_CUDA_F16, 1, 1, 1, 1, 1, false, false, FULL}, 32, 32, 1, 2, 3, 16);
    mma((product){HONE_CUDA_F16, HONE_CUDA_F16, 33, 40, 640, 2, 3, false, false, FULL}, 32, 32, 1, 2, 3, 16);
}
static void wgmma(product p, int consumers, int tile_n, int stages, int blocks, int on) {
    const bool whole = tile_n / p.splits * bytes_of[p.out] % 128 == 0 || (p.splits == 1 && p.n <= tile_n),
               store = whole && p.n * bytes_of[p.out] % 16 == 0;
    const hone_cuda_fill fill[] = {{"IN_TYPE", p.in, NULL},
                                   {"OUT_TYPE", p.out, NULL},
                                   {"CONSUMERS", consumers, NULL},
                                   {"TILE_N", tile_n, NULL},
                                   {"STAGES", stages, NULL},
                                   {"SPLITS", p.splits, NULL},
                                   {"BLOCKS", on, NULL},
                                   {"WINDOW", 0, NULL},
                                   {"STORE", store ? 1 + (strstr(p.epilogue, "residual") != NULL) : 0, NULL},
                                   {"CONSTANT_B", p.batches == 1, NULL},
                                   {"EPILOGUE", 0, p.epilogue}};
    const emulated e = compile("contract_wgmma", "hone_contract", fill, 11);
    product_data d = product_make(&p, 64 * consumers, tile_n, 16 / bytes_of[p.in]);
    const int step = 128 / bytes_of[p.in];
    hone_cuda_contract_tma args = {.p = d.args};
    args.map_c = tensor_map(d.args.c, p.out, p.n, p.m, p.batches, d.args.pitch_c, d.args.batch_c,
                            128 / bytes_of[p.out], 64, 1);
    args.map_before = tensor_map(d.args.residual, p.out, p.n, p.m, p.batches, d.args.pitch_residual,
                                 d.args.batch_residual, 128 / bytes_of[p.out], 64, 1);
    for (int end = 0; end < 2; end++) { /* whole tiles, and the last ones where they are not whole */
        const int rows_a = end ? p.m % (64 * consumers) : 64 * consumers,
                  rows_b = end ? p.n % tile_n : tile_n;
        *(end ? &args.end_a : &args.map_a) =
            tensor_map(d.args.a, p.in, p.k, p.m, p.batches, d.args.pitch_a, d.args.batch_a, step, rows_a, 1);
        *(end ? &args.end_b : &args.map_b) = tensor_map(d.args.b, p.in, p.k, p.n, p.shared_b ? 1 : p.batches,
                                                        d.args.pitch_b, d.args.batch_b, step, rows_b, 1);
    }
    assert_true(hone_cuda_walk_of(p.m, p.n, p.batches, 64 * consumers, tile_n, &args.walk));
    run_clusters(&e, &args, p.splits, p.splits > 1 ? (int)args.walk.works * p.splits : blocks, 1, 1);
    product_check(&p, &d, "wgmma");
    product_drop(&d);
}
static void contract_wgmma(void **state) {
    (void)state;
    if (!works) skip();
    wgmma((product){HONE_CUDA_F16, HONE_CUDA_F16, 130, 96, 136, 2, 1, true, false, FULL}, 2, 64, 3, 3, 1);
    wgmma((product){HONE_CUDA_BF16, HONE_CUDA_F32, 65, 33, 200, 1, 1, false, false, PLAIN}, 1, 32, 4, 1, 1);
    wgmma((product){HONE_CUDA_F32, HONE_CUDA_F32, 64, 72, 100, 1, 1, false, false, FULL}, 1, 48, 2, 2, 2);
    wgmma((product){HONE_CUDA_S8, HONE_CUDA_S8, 70, 48, 400, 1, 1, false, false, BYTES_}, 1, 64, 2, 2, 1);
    wgmma((product){HONE_CUDA_U8, HONE_CUDA_U8, 70, 80, 400, 1, 1, false, false, WHOLE_}, 1, 80, 2, 2, 1);
    wgmma((product){HONE_CUDA_U8, HONE_CUDA_U8, 70, 80, 200, 2, 1, false, false, BEFORE_}, 1, 96, 2, 2, 1);
    wgmma((product){HONE_CUDA_U8, HONE_CUDA_U8, 150, 400, 200, 1, 1, false, false, BEFORE_}, 2, 256, 2, 2, 1);
    wgmma((product){HONE_CUDA_F16, HONE_CUDA_F16, 130, 256, 72, 1, 1, false, false, FULL}, 1, 256, 2, 2, 1);
    wgmma((product){HONE_CUDA_F16, HONE_CUDA_F16, 130, 128, 72, 1, 1, false, false, FULL}, 1, 128, 2, 2, 2);
    wgmma((product){HONE_CUDA_U8, HONE_CUDA_F16, 70, 64, 1100, 1, 2, false, false, WHOLE_}, 1, 64, 2, 2, 1);
    wgmma((product){HONE_CUDA_S8, HONE_CUDA_S32, 70, 48, 160, 1, 1, false, false, "v"}, 1, 32, 2, 2, 1);
    wgmma((product){HONE_CUDA_F16, HONE_CUDA_F16, 129, 40, 640, 2, 3, false, false, FULL}, 2, 48, 3, 0, 2);
    wgmma((product){HONE_CUDA_BF16, HONE_CUDA_BF16, 200, 130, 328, 1, 2, false, false, FULL}, 2, 128, 4, 0,
          1);
    wgmma((product){HONE_CUDA_S8, HONE_CUDA_S8, 65, 70, 1100, 1, 4, false, false, BYTES_}, 1, 64, 3, 0, 1);
    wgmma((product){HONE_CUDA_F16, HONE_CUDA_F32, 50, 64, 1000, 1, 8, false, false, FULL}, 1, 64, 3, 0, 2);
    wgmma((product){HONE_CUDA_F16, HONE_CUDA_F16, 1100, 100, 64, 2, 1, false, false, FULL}, 1, 32, 3, 7, 1);
    wgmma((product){HONE_CUDA_F16, HONE_CUDA_F16, 401, 200, 328, 1, 1, false, false, FULL}, 3, 192, 3, 2, 1);
    wgmma((product){HONE_CUDA_U8, HONE_CUDA_U8, 387, 192, 400, 1, 1, false, false, WHOLE_}, 3, 96, 3, 2, 1);
    wgmma((product){HONE_CUDA_F16, HONE_CUDA_F16, 1, 8, 8, 1, 1, false, false, FULL}, 1, 16, 2, 1, 1);
}

/* ---- convolutions ---- */
typedef struct {
    int batch, height, width, channels, outputs, kernel, stride, pad, dilation;
} image;
/* 0: warps, pieces of 16 bytes; 1: warps, element by element; 2: warpgroups */
static void window_of(image g, int which) {
    const int high = (g.height + 2 * g.pad - (g.kernel - 1) * g.dilation - 1) / g.stride + 1,
              wide = (g.width + 2 * g.pad - (g.kernel - 1) * g.dilation - 1) / g.stride + 1;
    const int k = g.kernel * g.kernel * g.channels, m = g.batch * high * wide, tile_m = which == 2 ? 64 : 32,
              tile_n = 32;
    const hone_cuda_fill warps[] = {{"IN_TYPE", HONE_CUDA_F16, NULL},
                                    {"OUT_TYPE", HONE_CUDA_F16, NULL},
                                    {"TILE_M", tile_m, NULL},
                                    {"TILE_N", tile_n, NULL},
                                    {"WARPS_M", 1, NULL},
                                    {"WARPS_N", 2, NULL},
                                    {"STAGES", 3, NULL},
                                    {"PIECE", which ? 2 : 16, NULL},
                                    {"SPLIT", 0, NULL},
                                    {"WINDOW", 1, NULL},
                                    {"EPILOGUE", 0, "fmaxf(v + bias, 0.0f)"}};
    const hone_cuda_fill groups[] = {{"IN_TYPE", HONE_CUDA_F16, NULL},
                                     {"OUT_TYPE", HONE_CUDA_F16, NULL},
                                     {"CONSUMERS", 1, NULL},
                                     {"TILE_N", tile_n, NULL},
                                     {"STAGES", 3, NULL},
                                     {"SPLITS", 1, NULL},
                                     {"BLOCKS", 1, NULL},
                                     {"WINDOW", 1, NULL},
                                     {"STORE", tile_n % 64 == 0, NULL},
                                     {"CONSTANT_B", 1, NULL},
                                     {"EPILOGUE", 0, "fmaxf(v + bias, 0.0f)"}};
    const emulated e = which == 2 ? compile("contract_wgmma", "hone_contract", groups, 11)
                                  : compile("contract_mma", "hone_contract", warps, 11);
    operand x = hold((size_t)(g.batch * g.height * g.width * g.channels * 2), 16),
            w = hold((size_t)(g.outputs * k * 2), 16), y = hold((size_t)(m * g.outputs * 2), 16),
            bias = hold((size_t)(g.outputs * 4), 4);
    fill_with(&x, HONE_CUDA_F16), fill_with(&w, HONE_CUDA_F16), fill_with(&bias, HONE_CUDA_F32);
    const hone_cuda_contract p = {.a = address(&x),
                                  .b = address(&w),
                                  .c = address(&y),
                                  .bias = address(&bias),
                                  .pitch_b = k,
                                  .pitch_c = g.outputs,
                                  .m = m,
                                  .n = g.outputs,
                                  .k = k,
                                  .batches = 1,
                                  .splits = 1,
                                  .alpha = 1};
    const hone_cuda_window window = {.batch = g.batch,
                                     .height = g.height,
                                     .width = g.width,
                                     .channels = g.channels,
                                     .out_height = high,
                                     .out_width = wide,
                                     .kernel_y = g.kernel,
                                     .kernel_x = g.kernel,
                                     .stride_y = g.stride,
                                     .stride_x = g.stride,
                                     .pad_y = g.pad,
                                     .pad_x = g.pad,
                                     .dilation_y = g.dilation,
                                     .dilation_x = g.dilation};
    if (which < 2) {
        struct {
            hone_cuda_contract p;
            hone_cuda_window w;
        } args = {p, window};
        run(&e, &args, ((m + tile_m - 1) / tile_m) * ((g.outputs + tile_n - 1) / tile_n), 1, 1);
    } else {
        struct {
            hone_cuda_contract_tma t;
            hone_cuda_window w;
        } args = {.t.p = p, .w = window};
        const int reach = (g.kernel - 1) * g.dilation;
        const uint64_t c = (uint64_t)g.channels * 2;
        const map im2col = {
            .base = p.a,
            .stride = {c, c * (uint64_t)g.width, c * (uint64_t)g.width * (uint64_t)g.height},
            .dim = {(uint32_t)g.channels, (uint32_t)g.width, (uint32_t)g.height, (uint32_t)g.batch, 1},
            .box = {64, 64, 1, 1, 1},
            .element = 2,
            .swizzled = 1,
            .low = {-g.pad, -g.pad},
            .high = {g.pad - reach, g.pad - reach},
            .step = {g.stride, g.stride}};
        args.t.map_c = tensor_map(p.c, HONE_CUDA_F16, g.outputs, m, 1, g.outputs, 0, 64, 64, 1);
        map end = im2col;
        end.box[1] = (uint32_t)(m % tile_m);
        memcpy(&args.t.map_a, &im2col, sizeof im2col), memcpy(&args.t.end_a, &end, sizeof end);
        args.t.map_b = tensor_map(p.b, HONE_CUDA_F16, g.channels, g.kernel * g.kernel, g.outputs, g.channels,
                                  k, 64, 1, tile_n);
        args.t.end_b = tensor_map(p.b, HONE_CUDA_F16, g.channels, g.kernel * g.kernel, g.outputs, g.channels,
                                  k, 64, 1, g.outputs % tile_n);
        assert_true(hone_cuda_walk_of(m, g.outputs, 1, tile_m, tile_n, &args.t.walk));
        run(&e, &args, 2, 1, 1);
    }
    for (int i = 0; i < m; i++)
        for (int o = 0; o < g.outputs; o++) {
            double sum = get(bias.at, HONE_CUDA_F32, o);
            for (int t = 0; t < g.kernel * g.kernel; t++) {
                const int v = i / wide % high * g.stride - g.pad + t / g.kernel * g.dilation,
                          u = i % wide * g.stride - g.pad + t % g.kernel * g.dilation;
                if (v < 0 || v >= g.height || u < 0 || u >= g.width) continue;
                for (int c = 0; c < g.channels; c++)
                    sum += get(x.at, HONE_CUDA_F16,
                               (((int64_t)(i / wide / high) * g.height + v) * g.width + u) * g.channels + c) *
                           get(w.at, HONE_CUDA_F16, ((int64_t)o * g.kernel * g.kernel + t) * g.channels + c);
            }
            const double got = get(y.at, HONE_CUDA_F16, (int64_t)i * g.outputs + o), want = fmax(sum, 0);
            if (!near_enough(got, want, fmax(1, want), 2e-3))
                fail_msg("window %d: pixel %d, channel %d is %g, not %g", which, i, o, got, want);
        }
    drop(&x), drop(&w), drop(&y), drop(&bias);
}
static void windows(void **state) {
    (void)state;
    if (!works) skip();
    window_of((image){2, 9, 7, 16, 40, 3, 1, 1, 1}, 0);
    window_of((image){1, 12, 11, 8, 24, 3, 2, 1, 1}, 0);
    window_of((image){2, 13, 11, 3, 24, 5, 2, 2, 1}, 1);
    window_of((image){2, 9, 7, 72, 40, 3, 1, 1, 1}, 2);
    window_of((image){1, 12, 11, 64, 32, 3, 2, 1, 1}, 2);
    window_of((image){3, 8, 8, 16, 16, 3, 1, 2, 2}, 2);
}

static void unknown(void **state) {
    (void)state;
    hone_text t = {0};
    assert_int_equal(hone_cuda_print(&t, "nothing", NULL, 0), HONE_BAD_INPUT);
    assert_non_null(strstr(hone_fail_text(), "'nothing'"));
    assert_int_equal(hone_cuda_print(&t, "move", &(hone_cuda_fill){"BYTES", 2, NULL}, 1), HONE_BAD_INPUT);
    assert_non_null(strstr(hone_fail_text(), "wants TURN"));
    hone_text_free(&t);
}
static void driver(void **state) { /* a machine without a GPU is told apart, not a crash */
    (void)state;
    hone_cuda *g = NULL;
    assert_int_equal(hone_cuda_open(100, &g), HONE_NOT_SUPPORTED);
    assert_null(g);
    if (hone_cuda_open(0, &g))
        assert_true(strstr(hone_fail_text(), "libcuda") || strstr(hone_fail_text(), "GPU"));
    hone_cuda_close(g);
}
/* every product has a way, every way fits the GPU, and the choice is one of them */
static void ways(void **state) {
    (void)state;
    const hone_cuda_facts gpus[] = {{.arch = "sm_90a", .major = 9, .sms = 132, .shared_bytes = 227 << 10},
                                    {.arch = "sm_80", .major = 8, .sms = 108, .shared_bytes = 163 << 10}};
    for (int k = 0; k < 400; k++) {
        hone_cuda_way all[600];
        const int m = 1 + (int)(fabs(draw()) * (k % 3 ? 300 : 9000)), n = 1 + (int)(fabs(draw()) * 5000),
                  depth = 1 + (int)(fabs(draw()) * 5000);
        hone_cuda_product p = {.in = k % 4 == 3 ? HONE_CUDA_S8 : (hone_cuda_type)(1 + k % 4),
                               .out = k % 4 == 3 ? HONE_CUDA_S32 : (hone_cuda_type)(1 + k % 4),
                               .epilogue = "v",
                               .p = {.a = k % 5 ? 256 : 257,
                                     .b = 512,
                                     .c = 1024,
                                     .pitch_a = depth,
                                     .pitch_b = depth,
                                     .pitch_c = n,
                                     .m = m,
                                     .n = n,
                                     .k = depth,
                                     .batches = 1,
                                     .splits = 1}};
        const hone_cuda_facts *gpu = &gpus[k % 2];
        const int count = hone_cuda_ways(&p, gpu, all, 600);
        assert_in_range(count, 1, 599);
        const hone_cuda_way best = hone_cuda_best_way(&p, gpu);
        int found = 0;
        for (int w = 0; w < count; w++) {
            const hone_cuda_launch_shape shape = hone_cuda_contract_launch(&p, gpu, &all[w]);
            const int step = 128 / bytes_of[p.in];
            assert_in_range(shape.shared_bytes, 0, gpu->shared_bytes);
            assert_in_range(shape.threads, 32, 1024);
            assert_true(shape.grid[0] > 0 && shape.grid[1] > 0 && shape.grid[2] > 0 && shape.grid[2] < 65536);
            assert_true(all[w].splits <= (depth + step - 1) / step || all[w].splits == 1);
            assert_true(hone_cuda_cost(&p, gpu, &all[w]) > 0 &&
                        hone_cuda_cost(&p, gpu, &all[w]) >= hone_cuda_cost(&p, gpu, &best));
            found += !memcmp(&all[w], &best, sizeof best);
        }
        assert_int_equal(found, 1);
    }
}
/* the copy engine writes pieces of 16 bytes: it may not where a row of C ends within one and others follow */
static void behind_rows(void **state) {
    (void)state;
    const hone_cuda_facts gpu = {.arch = "sm_90a", .major = 9, .sms = 132, .shared_bytes = 227 << 10};
    for (int n = 100; n <= 104; n += 4) {
        const hone_cuda_product p = {.in = HONE_CUDA_F16,
                                     .out = HONE_CUDA_F16,
                                     .epilogue = "v",
                                     .p = {.a = 256,
                                           .b = 512,
                                           .c = 1024,
                                           .pitch_a = 64,
                                           .pitch_b = 64,
                                           .pitch_c = 104,
                                           .m = 200,
                                           .n = n,
                                           .k = 64,
                                           .batches = 1}};
        hone_cuda_way all[600];
        const int count = hone_cuda_ways(&p, &gpu, all, 600);
        int by_engine = 0;
        for (int w = 0; w < count; w++) {
            hone_text text = {0};
            assert_int_equal(hone_cuda_contract_print(&text, &p, &all[w]), HONE_OK);
            by_engine += strstr(text.text, "#define STORE 1\n") != NULL;
            hone_text_free(&text);
        }
        assert_int_equal(by_engine > 0, n == 104);
    }
}
int main(int n, char **arg) {
    int major, minor;
    /* is it on this machine? */
    if (n > 1 && !strcmp(arg[1], "--nvrtc")) return hone_nvrtc_version(&major, &minor) != HONE_OK;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(driver),         cmocka_unit_test(ways),     cmocka_unit_test(unknown),
        cmocka_unit_test(rows),           cmocka_unit_test(movement), cmocka_unit_test(contract_mma),
        cmocka_unit_test(contract_wgmma), cmocka_unit_test(windows),  cmocka_unit_test(behind_rows)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
