/* SPDX-License-Identifier: Apache-2.0
   CUDA kernels without a GPU, continued: attention, depthwise windows and pools, products of few
   rows. */
#include "cuda.h"

/* ---- attention ---- */
typedef struct {
    int type, batches, heads, kv_heads, queries, keys, head_size, warps, causal, mask,
        splits; /* mask: a type */
    bool lengths;
} heads;
typedef struct {
    int consumers, block_k, stages, blocks; /* of warpgroups; 0 consumers: by warps */
    bool decode;                            /* by warps that split keys */
} groups;
typedef struct { /* a mask: one row for all queries; one of each batch and head */
    bool broadcast, wide;
} hiding;
static void attention_with(heads g, groups u, hiding m) {
    const int bytes = g.type == HONE_CUDA_F32 ? 4 : 2;
    const bool aligned = g.head_size % (16 / bytes) == 0;
    const int64_t mask_queries = m.broadcast ? 1 : g.queries,
                  masks = m.wide ? g.batches * g.heads : 1; /* of so many rows */
    const int mask_type = g.mask ? g.mask : HONE_CUDA_F32;
    const hone_cuda_fill fill[] = {{"IN_TYPE", g.type, NULL}, {"HEAD", (g.head_size + 15) / 16 * 16, NULL},
                                   {"WARPS", g.warps, NULL},  {"CAUSAL", g.causal, NULL},
                                   {"MASK", g.mask, NULL},    {"SPLIT", g.splits > 1, NULL},
                                   {"ALIGNED", aligned, NULL}};
    const hone_cuda_fill fill_groups[] = {{"IN_TYPE", g.type, NULL},
                                          {"HEAD", (g.head_size + 15) / 16 * 16, NULL},
                                          {"BLOCK_K", u.block_k, NULL},
                                          {"CONSUMERS", u.consumers, NULL},
                                          {"STAGES", u.stages, NULL},
                                          {"CAUSAL", g.causal, NULL},
                                          {"TURNS", u.consumers > 1, NULL},
                                          {"MASK", g.mask, NULL},
                                          {"MASK_ROWS", m.broadcast ? 1 : 2, NULL},
                                          {"MASK_PAIRS", g.keys % 2 == 0, NULL}};
    const hone_cuda_fill fill_decode[] = {{"IN_TYPE", g.type, NULL},
                                          {"HEAD", (g.head_size + 63) / 64 * 64, NULL},
                                          {"WARPS", g.warps, NULL},
                                          {"BLOCKS", 1, NULL},
                                          {"CAUSAL", g.causal, NULL},
                                          {"MASK", g.mask, NULL},
                                          {"FULL", g.head_size % 64 == 0, NULL}};
    const emulated e = u.consumers ? compile("attention_wgmma", "hone_attention", fill_groups, 10)
                       : u.decode  ? compile("attention_decode", "hone_attention", fill_decode, 7)
                                   : compile("attention", "hone_attention", fill, 7);
    const int64_t d = g.head_size, group = g.heads / g.kv_heads, rows = g.queries * group,
                  tile = u.decode ? 16 : 16 * g.warps, blocks = (rows + tile - 1) / tile;
    operand q = hold((size_t)(g.batches * g.queries * g.heads * d * bytes), 16),
            k = hold((size_t)(g.batches * g.keys * g.kv_heads * d * bytes), 16), v = hold(k.bytes, 16),
            y = hold(q.bytes, 16),
            mask = hold((size_t)(masks * mask_queries * g.keys * (mask_type == HONE_CUDA_F32 ? 4 : 2)), 4),
            lengths = hold((size_t)(g.batches * 4), 4);
    const int64_t part = u.decode ? 16 * ((d + 63) / 64 * 64 + 2) : 32 * g.warps * ((d + 15) / 16 * 8 + 4);
    operand workspace = hold((size_t)(g.batches * g.kv_heads * blocks * g.splits * part * 4), 16),
            counters = hold((size_t)(g.batches * g.kv_heads * blocks * 4), 4);
    memset(counters.at, 0, counters.bytes);
    fill_with(&q, g.type), fill_with(&k, g.type), fill_with(&v, g.type), fill_with(&mask, mask_type);
    for (int b = 0; b < g.batches; b++) ((int *)lengths.at)[b] = g.keys - 3 * b - 1;
    if (g.mask && g.keys > 1) set(mask.at, mask_type, 1, -INFINITY);
    /* one row hidden by the lowest number there is sees all keys alike */
    for (int j = 0; j < g.keys && g.mask == HONE_CUDA_F32 && u.consumers && !m.broadcast; j++)
        set(mask.at, mask_type, g.keys * (g.queries - 1) + j, -3.4028234663852886e38);
    for (int b = 0; b < g.batches && g.lengths; b++) /* what is behind the length may be anything */
        for (int64_t j = ((int *)lengths.at)[b]; j < g.keys; j++)
            for (int64_t c = 0; c < g.kv_heads * d; c++)
                set(k.at, g.type, (b * g.keys + j) * g.kv_heads * d + c, NAN),
                    set(v.at, g.type, (b * g.keys + j) * g.kv_heads * d + c, NAN);
    const hone_cuda_attention args = {.q = address(&q),
                                      .k = address(&k),
                                      .v = address(&v),
                                      .y = address(&y),
                                      .mask = address(&mask),
                                      .lengths = g.lengths ? address(&lengths) : 0,
                                      .workspace = address(&workspace),
                                      .counters = address(&counters),
                                      .stride_q = {g.queries * g.heads * d, d, g.heads * d},
                                      .stride_k = {g.keys * g.kv_heads * d, d, g.kv_heads * d},
                                      .stride_v = {g.keys * g.kv_heads * d, d, g.kv_heads * d},
                                      .stride_y = {g.queries * g.heads * d, d, g.heads * d},
                                      .stride_mask = {m.wide ? g.heads * mask_queries * g.keys : 0,
                                                      m.wide ? mask_queries * g.keys : 0,
                                                      m.broadcast ? 0 : g.keys},
                                      .batches = g.batches,
                                      .heads = g.heads,
                                      .kv_heads = g.kv_heads,
                                      .queries = g.queries,
                                      .keys = g.keys,
                                      .head_size = g.head_size,
                                      .splits = g.splits,
                                      .scale = 1.5f};
    hone_cuda_attention_tma tma = {.p = args, .section = 3};
    if (u.consumers) {
        const int64_t dims[] = {d, group, g.queries, g.kv_heads, g.batches},
                      steps[] = {d, g.heads * d, group * d, g.queries * g.heads * d},
                      keys[] = {d, g.keys, g.kv_heads, g.batches, 1},
                      key_steps[] = {g.kv_heads * d, d, g.keys * g.kv_heads * d, 0};
        const int box[] = {64, (int)group, 64 / (int)group, 1, 1}, key_box[] = {64, u.block_k, 1, 1, 1};
        tma.map_q = tensor_map5(args.q, g.type, dims, steps, box),
        tma.map_y = tensor_map5(args.y, g.type, dims, steps, box);
        tma.map_k = tensor_map5(args.k, g.type, keys, key_steps, key_box),
        tma.map_v = tensor_map5(args.v, g.type, keys, key_steps, key_box);
    }
    double *score = malloc(sizeof *score * (size_t)g.keys);
    for (int again = 0; again < 1 + (g.splits > 1 || u.consumers > 1); again++) {
        if (u.consumers) run(&e, &tma, u.blocks, 1, 1);
        else run(&e, &args, (int)blocks, g.kv_heads, g.batches * g.splits);
        assert_int_equal(((uint32_t *)counters.at)[0], 0);
        for (int b = 0; b < g.batches; b++)
            for (int h = 0; h < g.heads; h++)
                for (int i = 0; i < g.queries; i++) {
                    const int seen = g.lengths ? ((int *)lengths.at)[b] : g.keys,
                              last = g.causal && i + seen - g.queries + 1 < seen ? i + seen - g.queries + 1
                                                                                 : seen;
                    double largest = -INFINITY, total = 0;
                    for (int j = 0; j < last; j++) {
                        score[j] = 0;
                        for (int64_t c = 0; c < d; c++)
                            score[j] +=
                                get(q.at, g.type, b * args.stride_q[0] + h * d + i * args.stride_q[2] + c) *
                                get(k.at, g.type,
                                    b * args.stride_k[0] + h / group * d + j * args.stride_k[2] + c);
                        score[j] =
                            score[j] * 1.5 + (g.mask ? get(mask.at, mask_type,
                                                           b * args.stride_mask[0] + h * args.stride_mask[1] +
                                                               i * args.stride_mask[2] + j)
                                                     : 0);
                        largest = fmax(largest, score[j]);
                    }
                    for (int j = 0; j < last; j++) total += score[j] = exp(score[j] - largest);
                    for (int64_t c = 0; c < d; c++) {
                        double want = 0;
                        for (int j = 0; j < last; j++)
                            want += score[j] / total *
                                    get(v.at, g.type,
                                        b * args.stride_v[0] + h / group * d + j * args.stride_v[2] + c);
                        if (last <= 0) want = NAN;
                        const double got =
                            get(y.at, g.type, b * args.stride_y[0] + h * d + i * args.stride_y[2] + c);
                        /* of f32 factors tf32 keeps 10 bits, as halves do */
                        const int kept = g.type == HONE_CUDA_F32 ? HONE_CUDA_F16 : g.type;
                        if (!near_enough(got, want, 1, 2 * digits[kept]))
                            fail_msg("batch %d head %d query %d [%d] of %d x %d is %g, not %g", b, h, i,
                                     (int)c, g.queries, g.keys, got, want);
                    }
                }
    }
    free(score), drop(&q), drop(&k), drop(&v), drop(&y), drop(&mask), drop(&lengths), drop(&workspace),
        drop(&counters);
}
static void attention_by(heads g, groups u) { attention_with(g, u, (hiding){false, false}); }
static void attention_of(heads g) { attention_by(g, (groups){0}); }
static void attention(void **state) {
    (void)state;
    if (!works) skip();
    attention_of((heads){HONE_CUDA_F16, 2, 2, 2, 70, 130, 64, 4, 0, 0, 1, false});
    attention_of((heads){HONE_CUDA_F16, 1, 4, 2, 33, 65, 40, 2, 0, HONE_CUDA_F32, 1, false});
    attention_of((heads){HONE_CUDA_BF16, 2, 2, 1, 66, 66, 80, 4, 1, 0, 1, false});
    attention_of((heads){HONE_CUDA_F16, 1, 2, 1, 9, 150, 128, 2, 1, HONE_CUDA_F16, 1, true});
    attention_of((heads){HONE_CUDA_F16, 2, 8, 2, 1, 300, 64, 1, 0, 0, 3, true}); /* decode */
    attention_of((heads){HONE_CUDA_F16, 1, 1, 1, 5, 20, 21, 1, 0, 0, 1, false}); /* rows at odd places */
    attention_of((heads){HONE_CUDA_F16, 2, 1, 1, 20, 3, 16, 2, 1, 0, 2, true});  /* queries before any key */
    attention_of((heads){HONE_CUDA_F32, 2, 2, 2, 70, 130, 64, 4, 0, 0, 1, false}); /* as tf32 */
    attention_of((heads){HONE_CUDA_F32, 1, 4, 2, 33, 65, 40, 2, 1, HONE_CUDA_F32, 1, true});
    attention_of((heads){HONE_CUDA_F32, 1, 2, 1, 9, 150, 21, 2, 0, 0, 2, false});
}

static void attention_decode(void **state) {
    (void)state;
    if (!works) skip();
    const groups decode = {.decode = true};
    attention_by((heads){HONE_CUDA_F16, 2, 8, 2, 1, 300, 64, 2, 0, 0, 1, false}, decode);
    attention_by((heads){HONE_CUDA_F16, 1, 4, 2, 1, 517, 128, 4, 0, 0, 3, true}, decode);
    /* 21 rows: two tiles of them */
    attention_by((heads){HONE_CUDA_BF16, 2, 3, 1, 7, 90, 80, 3, 1, 0, 2, true}, decode);
    attention_by((heads){HONE_CUDA_F16, 1, 2, 1, 5, 130, 256, 2, 1, HONE_CUDA_F32, 4, false}, decode);
    /* fewer keys than warps and splits could take */
    attention_by((heads){HONE_CUDA_F16, 1, 1, 1, 1, 9, 8, 4, 0, HONE_CUDA_BF16, 5, false}, decode);
    /* queries before any key */
    attention_by((heads){HONE_CUDA_F16, 2, 1, 1, 20, 3, 16, 2, 1, 0, 2, true}, decode);
}

static void attention_groups(void **state) {
    (void)state;
    if (!works) skip();
    attention_by((heads){HONE_CUDA_F16, 1, 2, 2, 130, 150, 64, 1, 0, 0, 1, false},
                 (groups){2, 64, 2, 2, false});
    /* grouped, causal */
    attention_by((heads){HONE_CUDA_F16, 2, 2, 1, 70, 100, 128, 1, 1, 0, 1, false},
                 (groups){2, 48, 2, 1, false});
    attention_by((heads){HONE_CUDA_BF16, 1, 6, 2, 50, 90, 80, 1, 1, 0, 1, true},
                 (groups){1, 32, 3, 3, false}); /* three heads a group: 63 rows */
    /* queries before any key */
    attention_by((heads){HONE_CUDA_F16, 3, 1, 1, 200, 70, 64, 1, 1, 0, 1, true},
                 (groups){3, 64, 2, 2, false});
    attention_by((heads){HONE_CUDA_F16, 1, 1, 1, 5, 1, 256, 1, 0, 0, 1, false}, (groups){1, 80, 2, 1, false});
    /* a length of 0, and less */
    attention_by((heads){HONE_CUDA_F16, 4, 1, 1, 3, 4, 16, 1, 0, 0, 1, true}, (groups){1, 16, 2, 2, false});
    attention_by((heads){HONE_CUDA_F16, 1, 2, 2, 300, 130, 64, 1, 1, 0, 1, false},
                 (groups){4, 64, 3, 1, false}); /* most rows before any key */
    attention_by((heads){HONE_CUDA_F16, 2, 2, 2, 70, 200, 64, 1, 0, 0, 1, true},
                 (groups){4, 48, 2, 2, false}); /* warpgroups without a row */
    attention_by((heads){HONE_CUDA_F16, 1, 1, 1, 330, 330, 64, 1, 1, 0, 1, false},
                 (groups){3, 64, 4, 2, false});
}

static void attention_masked(void **state) { /* by warpgroups */
    (void)state;
    if (!works) skip();
    enum { F16 = HONE_CUDA_F16, BF16 = HONE_CUDA_BF16, F32 = HONE_CUDA_F32 };
    /* keys in pairs and not; a mask for all heads, or each its own; one row of it for all queries */
    attention_with((heads){F16, 2, 2, 2, 70, 130, 64, 1, 0, F32, 1, false}, (groups){2, 64, 2, 2, false},
                   (hiding){false, true});
    attention_with((heads){F16, 2, 4, 2, 37, 99, 64, 1, 0, F16, 1, false}, (groups){1, 64, 2, 3, false},
                   (hiding){true, true});
    attention_with((heads){BF16, 1, 6, 2, 50, 90, 80, 1, 1, BF16, 1, true}, (groups){1, 32, 3, 3, false},
                   (hiding){false, true});
    attention_with((heads){F16, 1, 2, 1, 66, 131, 64, 1, 1, F32, 1, false}, (groups){3, 48, 2, 1, false},
                   (hiding){false, false});
    attention_with((heads){F16, 3, 2, 2, 130, 64, 32, 1, 0, F16, 1, true}, (groups){1, 128, 2, 4, false},
                   (hiding){true, false});
    attention_with((heads){F16, 1, 1, 1, 5, 1, 256, 1, 0, F32, 1, false}, (groups){1, 80, 2, 1, false},
                   (hiding){true, false});
}

/* ---- windows ---- */
typedef struct {
    int batch, height, width, channels, kernel, stride, pad, dilation;
} image;
static void window_of(int kind, int type, int width, int strip, int lines, int ahead, image g) {
    const bool plain = kind != HONE_CUDA_DEPTHWISE, bytes = hone_cuda_is_byte((hone_cuda_type)type);
    const int zero = bytes && !plain ? 11 : 0;
    const hone_cuda_fill fill[] = {{"KIND", kind, NULL},
                                   {"IN_TYPE", type, NULL},
                                   {"ZERO", zero, NULL},
                                   {"WIDTH", width, NULL},
                                   {"STRIP", strip, NULL},
                                   {"LINES", lines, NULL},
                                   {"AHEAD", ahead, NULL},
                                   {"DILATION", g.dilation, NULL},
                                   {"KERNEL_Y", g.kernel, NULL},
                                   {"KERNEL_X", g.kernel, NULL},
                                   {"STRIDE", g.stride, NULL},
                                   {"EPILOGUE", 0,
                                    plain ? "v"
                                    : type == HONE_CUDA_S8
                                        ? "(float)(v + whole) * 3e-4f + bias + "
                                          "(BITS_F32(F32_BITS(residual) ^ 0x80u) - 8388736.0f)"
                                    : bytes ? "(float)(v + whole) * 3e-4f + bias + (residual - 8388608.0f)"
                                            : "fmaxf(v + bias + residual, 0.0f)"}};
    const emulated e = compile("window", "hone_window", fill, 12);
    const int high = (g.height + 2 * g.pad - (g.kernel - 1) * g.dilation - 1) / g.stride + 1,
              wide = (g.width + 2 * g.pad - (g.kernel - 1) * g.dilation - 1) / g.stride + 1;
    const size_t b = (size_t)bytes_of[type];
    operand x = hold((size_t)(g.batch * g.height * g.width * g.channels) * b, 16),
            w = hold((size_t)(g.kernel * g.kernel * g.channels) * 4, 16),
            y = hold((size_t)(g.batch * high * wide * g.channels) * b, 16), r = hold(y.bytes, 16),
            bias = hold((size_t)(g.channels * 4), 16), whole = hold(bias.bytes, 16);
    fill_with(&x, type), fill_with(&w, HONE_CUDA_F32), fill_with(&r, type), fill_with(&bias, HONE_CUDA_F32);
    fill_with(&whole, HONE_CUDA_S32);
    for (int64_t k = 0; bytes && k < g.kernel * g.kernel * g.channels; k++)
        set(w.at, HONE_CUDA_F32, k, rint(127 * get(w.at, HONE_CUDA_F32, k))); /* as weights of bytes are */
    if (kind == HONE_CUDA_LARGEST && !bytes)
        set(x.at, type, g.channels + 1, NAN), set(x.at, type, 0, -INFINITY);
    const hone_cuda_window args = {.x = address(&x),
                                   .w = address(&w),
                                   .y = address(&y),
                                   .bias = address(&bias),
                                   .whole = address(&whole),
                                   .residual = plain ? 0 : address(&r),
                                   .batch = g.batch,
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
                                   .dilation_x = g.dilation,
                                   .pitch_x = g.channels,
                                   .pitch_y = g.channels};
    const int threads = (wide + strip - 1) / strip * (g.channels / width);
    run(&e, &args, (threads + 127) / 128, (high + lines - 1) / lines, g.batch);
    for (int64_t p = 0; p < (int64_t)g.batch * high * wide * g.channels; p++) {
        const int c = (int)(p % g.channels), u = (int)(p / g.channels % wide),
                  v = (int)(p / g.channels / wide % high), n = (int)(p / g.channels / wide / high);
        double sum = kind == HONE_CUDA_LARGEST ? -INFINITY : 0;
        int there = 0;
        for (int t = 0; t < g.kernel * g.kernel; t++) {
            const int py = v * g.stride - g.pad + t / g.kernel * g.dilation,
                      px = u * g.stride - g.pad + t % g.kernel * g.dilation;
            if (py < 0 || py >= g.height || px < 0 || px >= g.width) continue;
            const double f = get(x.at, type, (((int64_t)n * g.height + py) * g.width + px) * g.channels + c);
            there++;
            if (kind == HONE_CUDA_DEPTHWISE)
                sum += (f - zero) * get(w.at, HONE_CUDA_F32, (int64_t)t * g.channels + c);
            else if (kind == HONE_CUDA_LARGEST) sum = isnan(f) || isnan(sum) ? NAN : fmax(sum, f);
            else sum += f;
        }
        if (kind == HONE_CUDA_AVERAGE) sum /= there;
        if (kind == HONE_CUDA_AVERAGE_ALL) sum /= g.kernel * g.kernel;
        if (bytes && !plain) {
            sum = (sum + get(whole.at, HONE_CUDA_S32, c)) * 3e-4 + get(bias.at, HONE_CUDA_F32, c) +
                  get(r.at, type, p);
            const double low = type == HONE_CUDA_S8 ? -128 : 0;
            sum = fmin(low + 255, fmax(low, sum));
        } else if (!plain) sum = fmax(sum + get(bias.at, HONE_CUDA_F32, c) + get(r.at, type, p), 0);
        const double got = get(y.at, type, p);
        if (!near_enough(got, sum, bytes ? 1 : fmax(1, fabs(sum)), digits[type] + 1e-6))
            fail_msg("kind %d, type %d: element %lld is %g, not %g", kind, type, (long long)p, got, sum);
    }
    drop(&x), drop(&w), drop(&y), drop(&r), drop(&bias), drop(&whole);
}
static void windows(void **state) {
    (void)state;
    if (!works) skip();
    window_of(HONE_CUDA_DEPTHWISE, HONE_CUDA_F16, 8, 4, 2, 0, (image){2, 9, 11, 24, 3, 1, 1, 1});
    window_of(HONE_CUDA_DEPTHWISE, HONE_CUDA_F16, 8, 2, 2, 0, (image){1, 14, 13, 16, 5, 2, 2, 1});
    window_of(HONE_CUDA_DEPTHWISE, HONE_CUDA_F32, 1, 3, 3, 0, (image){1, 8, 7, 5, 3, 1, 2, 2});
    window_of(HONE_CUDA_LARGEST, HONE_CUDA_BF16, 2, 2, 1, 0, (image){2, 9, 9, 6, 3, 2, 1, 1});
    window_of(HONE_CUDA_AVERAGE, HONE_CUDA_F16, 4, 2, 2, 0, (image){1, 7, 8, 12, 3, 1, 1, 1});
    window_of(HONE_CUDA_DEPTHWISE, HONE_CUDA_F16, 8, 2, 7, 2, (image){2, 9, 11, 24, 3, 1, 1, 1});
    window_of(HONE_CUDA_DEPTHWISE, HONE_CUDA_BF16, 4, 1, 4, 1, (image){1, 17, 8, 12, 3, 2, 1, 1});
    window_of(HONE_CUDA_LARGEST, HONE_CUDA_F16, 4, 2, 4, 1, (image){1, 13, 9, 8, 3, 1, 1, 1});
    window_of(HONE_CUDA_DEPTHWISE, HONE_CUDA_U8, 16, 1, 2, 0, (image){2, 9, 11, 32, 3, 1, 1, 1});
    window_of(HONE_CUDA_DEPTHWISE, HONE_CUDA_S8, 4, 2, 7, 2, (image){1, 14, 13, 12, 3, 2, 1, 1});
    window_of(HONE_CUDA_DEPTHWISE, HONE_CUDA_U8, 2, 1, 1, 0, (image){1, 7, 8, 6, 5, 1, 2, 1});
    window_of(HONE_CUDA_LARGEST, HONE_CUDA_U8, 8, 2, 1, 0, (image){2, 9, 9, 24, 3, 2, 1, 1});
    window_of(HONE_CUDA_AVERAGE_ALL, HONE_CUDA_F32, 4, 1, 1, 0, (image){1, 7, 8, 12, 2, 2, 1, 1});
}

/* ---- few rows ---- */
static void few_of(int in, int out, int rows, int m, int n, int k, bool matrix) {
    const hone_cuda_fill fill[] = {{"IN_TYPE", in, NULL},
                                   {"OUT_TYPE", out, NULL},
                                   {"ROWS", rows, NULL},
                                   {"WARPS", 4, NULL},
                                   {"UNROLLED", 2, NULL},
                                   {"CONSTANT_B", m % 2, NULL},
                                   {"EPILOGUE", 0, "v * a->alpha + bias"}};
    const hone_cuda_fill columns[] = {{"IN_TYPE", in, NULL},
                                      {"OUT_TYPE", out, NULL},
                                      {"ROWS8", rows / 8, NULL},
                                      {"WARPS", 3, NULL},
                                      {"UNROLLED", 2, NULL},
                                      {"CONSTANT_B", m % 2, NULL},
                                      {"EPILOGUE", 0, "v * a->alpha + bias"}};
    const emulated e = matrix ? compile("few_rows_mma", "hone_few_rows", columns, 7)
                              : compile("few_rows", "hone_few_rows", fill, 7);
    operand a = hold((size_t)(m * k * bytes_of[in]), 16), b = hold((size_t)(n * k * bytes_of[in]), 16),
            c = hold((size_t)(m * n * bytes_of[out]), 16), bias = hold((size_t)(n * 4), 4);
    fill_with(&a, in), fill_with(&b, in), fill_with(&bias, HONE_CUDA_F32);
    const hone_cuda_contract args = {.a = address(&a),
                                     .b = address(&b),
                                     .c = address(&c),
                                     .bias = address(&bias),
                                     .pitch_a = k,
                                     .pitch_b = k,
                                     .pitch_c = n,
                                     .m = m,
                                     .n = n,
                                     .k = k,
                                     .batches = 1,
                                     .splits = 1,
                                     .alpha = 0.25f};
    run(&e, &args, matrix ? (n + 15) / 16 : (n + 3) / 4, 1, 1);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int q = 0; q < k; q++) sum += get(a.at, in, i * k + q) * get(b.at, in, j * k + q);
            const double want = sum * 0.25 + get(bias.at, HONE_CUDA_F32, j), got = get(c.at, out, i * n + j);
            if (!near_enough(got, want, fmax(1, fabs(want)), digits[out] + 1e-5))
                fail_msg("few rows: [%d][%d] is %g, not %g", i, j, got, want);
        }
    drop(&a), drop(&b), drop(&c), drop(&bias);
}
static void few_rows(void **state) {
    (void)state;
    if (!works) skip();
    few_of(HONE_CUDA_F16, HONE_CUDA_F16, 1, 1, 37, 1000, false);
    few_of(HONE_CUDA_F16, HONE_CUDA_F16, 8, 1, 37, 1000, true);
    few_of(HONE_CUDA_F16, HONE_CUDA_F32, 16, 13, 56, 72, true);
    few_of(HONE_CUDA_BF16, HONE_CUDA_BF16, 24, 18, 16, 776, true);
    few_of(HONE_CUDA_F16, HONE_CUDA_F16, 8, 8, 5, 8, true);
    few_of(HONE_CUDA_BF16, HONE_CUDA_F32, 8, 5, 20, 264, false);
    few_of(HONE_CUDA_F32, HONE_CUDA_F32, 4, 3, 9, 516, false);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(attention),        cmocka_unit_test(attention_decode),
                                       cmocka_unit_test(attention_groups), cmocka_unit_test(attention_masked),
                                       cmocka_unit_test(windows),          cmocka_unit_test(few_rows)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
