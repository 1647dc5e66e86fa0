/* SPDX-License-Identifier: Apache-2.0
   The ways of CUDA kernels that are not products, on drawn shapes: there is one for every shape, each fits
   the GPU, the choice is the cheapest. */
#include "cuda.h"
#include "device/cuda/attention.h"
#include "device/cuda/move.h"
#include "device/cuda/rows.h"
#include "device/cuda/window.h"

static const hone_cuda_facts gpus[] = {{.arch = "sm_90a", .major = 9, .sms = 132, .shared_bytes = 227 << 10},
                                       {.arch = "sm_80", .major = 8, .sms = 108, .shared_bytes = 163 << 10}};
enum { MOST = 200, DRAWS = 300 };
static int below(int n) { return 1 + (int)(fabs(draw()) * n) % n; }
static void fits(const hone_cuda_launch_shape *s, const hone_cuda_facts *gpu) {
    assert_in_range(s->shared_bytes, 0, gpu->shared_bytes);
    assert_in_range(s->threads, 32, 1024);
    for (int k = 0; k < 3; k++) assert_true(s->grid[k] > 0 && (k == 0 || s->grid[k] < 65536));
}
#define CHECK(count, ways, best, cost, launch, print)                           \
    do {                                                                        \
        int found = 0;                                                          \
        assert_in_range(count, 1, MOST - 1);                                    \
        for (int w = 0; w < (count); w++) {                                     \
            const hone_cuda_launch_shape shape = launch(&ways[w]);              \
            hone_text text = {0};                                               \
            fits(&shape, gpu);                                                  \
            assert_true(cost(&ways[w]) > 0 && cost(&ways[w]) >= cost(&best));   \
            found += !memcmp(&ways[w], &best, sizeof best);                     \
            if (k % 50 == 0) assert_int_equal(print(&text, &ways[w]), HONE_OK); \
            hone_text_free(&text);                                              \
        }                                                                       \
        assert_int_equal(found, 1);                                             \
    } while (0)

static void moves(void **state) {
    (void)state;
    for (int k = 0; k < DRAWS; k++) {
        const hone_cuda_facts *gpu = &gpus[k % 2];
        const bool turn = k % 3;
        const long long i = below(20), j = below(3000), n = below(3000);
        const hone_cuda_movement m = {1 << k % 4,
                                      {.x = 4096 + (k % 5 ? 0 : 8),
                                       .y = 8192,
                                       .extent = {i, j, n},
                                       .stride_x = {j * n, turn ? 1 : n, turn ? j : 1}}};
        hone_cuda_move_way ways[MOST];
        const int count = hone_cuda_move_ways(&m, ways, MOST);
        const hone_cuda_move_way best = hone_cuda_move_best(&m, gpu);
#define COST(w) hone_cuda_move_cost(&m, gpu, w)
#define LAUNCH(w) hone_cuda_move_launch(&m, w)
#define PRINT(t, w) hone_cuda_move_print(t, &m, w)
        CHECK(count, ways, best, COST, LAUNCH, PRINT);
#undef COST
#undef LAUNCH
#undef PRINT
    }
}
static void rows(void **state) {
    (void)state;
    for (int k = 0; k < DRAWS; k++) {
        const hone_cuda_facts *gpu = &gpus[k % 2];
        const int columns = below(k % 4 ? 2000 : 100000), in = 1 + k % 3;
        const hone_cuda_rowwise r = {.kind = (hone_cuda_row_kind)(1 + k % 7),
                                     .in = (hone_cuda_type)in,
                                     .out = (hone_cuda_type)(k % 2 ? HONE_CUDA_F32 : in),
                                     .before = "v",
                                     .after = "v",
                                     .p = {.x = 4096 + (k % 5 ? 0 : 4),
                                           .y = 1 << 20,
                                           .rows = below(9000),
                                           .pitch_x = columns,
                                           .pitch_y = columns,
                                           .columns = columns}};
        hone_cuda_rows_way ways[MOST];
        const int count = hone_cuda_rows_ways(&r, ways, MOST);
        const hone_cuda_rows_way best = hone_cuda_rows_best(&r, gpu);
        for (int w = 0; w < count; w++) { /* a row is all of its vectors, unless it is read twice */
            assert_true(ways[w].is_long ||
                        (long long)ways[w].width * ways[w].vectors * ways[w].threads >= columns);
            assert_int_equal(columns % ways[w].width, 0);
        }
#define COST(w) hone_cuda_rows_cost(&r, gpu, w)
#define LAUNCH(w) hone_cuda_rows_launch(&r, w)
#define PRINT(t, w) hone_cuda_rows_print(t, &r, w)
        CHECK(count, ways, best, COST, LAUNCH, PRINT);
#undef COST
#undef LAUNCH
#undef PRINT
    }
}
static void windows(void **state) {
    (void)state;
    for (int k = 0; k < DRAWS; k++) {
        const hone_cuda_facts *gpu = &gpus[k % 2];
        const int kernel = 1 + 2 * (k % 4), stride = 1 + k % 2, size = kernel + below(100),
                  out = (size - 1) / stride + 1;
        const hone_cuda_windowed v = {.kind = (hone_cuda_window_kind)(1 + k % 4),
                                      .type = (hone_cuda_type)(1 + k % 3),
                                      .epilogue = "v",
                                      .p = {.x = 4096,
                                            .w = 8192,
                                            .y = 1 << 20,
                                            .batch = below(64),
                                            .height = size,
                                            .width = size,
                                            .channels = below(1000),
                                            .out_height = out,
                                            .out_width = out,
                                            .kernel_y = kernel,
                                            .kernel_x = kernel,
                                            .stride_y = stride,
                                            .stride_x = stride,
                                            .pad_y = kernel / 2,
                                            .pad_x = kernel / 2,
                                            .dilation_y = 1,
                                            .dilation_x = 1}};
        hone_cuda_window_way ways[MOST];
        const int count = hone_cuda_window_ways(&v, ways, MOST);
        const hone_cuda_window_way best = hone_cuda_window_best(&v, gpu);
#define COST(w) hone_cuda_window_cost(&v, gpu, w)
#define LAUNCH(w) hone_cuda_window_launch(&v, w)
#define PRINT(t, w) hone_cuda_window_print(t, &v, w)
        CHECK(count, ways, best, COST, LAUNCH, PRINT);
#undef COST
#undef LAUNCH
#undef PRINT
    }
}
static void attentions(void **state) {
    (void)state;
    for (int k = 0; k < DRAWS; k++) {
        const hone_cuda_facts *gpu = &gpus[k % 2];
        const int kv = below(16), heads = kv * below(8), d = k % 5 ? 8 * below(32) : below(256),
                  queries = k % 3 ? below(2000) : below(8), keys = below(5000);
        const long long row = (long long)heads * d, key = (long long)kv * d;
        const hone_cuda_attended t = {.type = (hone_cuda_type)(1 + k % 2),
                                      .causal = k % 4 == 1,
                                      .mask = k % 7 == 1,
                                      .p = {.q = 4096,
                                            .k = 8192,
                                            .v = 1 << 20,
                                            .y = 1 << 21,
                                            .stride_q = {row * queries, d, row},
                                            .stride_k = {key * keys, d, key},
                                            .stride_v = {key * keys, d, key},
                                            .stride_y = {row * queries, d, row},
                                            .batches = below(40),
                                            .heads = heads,
                                            .kv_heads = kv,
                                            .queries = queries,
                                            .keys = keys,
                                            .head_size = d,
                                            .scale = 1}};
        hone_cuda_attention_way ways[MOST], best;
        const int count = hone_cuda_attention_ways(&t, gpu, ways, MOST);
        assert_true(hone_cuda_attention_best(&t, gpu, &best));
        for (int w = 0; w < count; w++) {
            size_t workspace, counters;
            hone_cuda_attention_room(&t, &ways[w], &workspace, &counters);
            assert_true(workspace < (size_t)1 << 28 && (ways[w].splits > 1) == (workspace > 0) &&
                        (workspace > 0) == (counters > 0));
        }
#define COST(w) hone_cuda_attention_cost(&t, gpu, w)
#define LAUNCH(w) hone_cuda_attention_launch(&t, gpu, w)
#define PRINT(x, w) hone_cuda_attention_print(x, &t, w)
        CHECK(count, ways, best, COST, LAUNCH, PRINT);
    }
    hone_cuda_attention_way way;
    assert_false(hone_cuda_attention_best(
        &(hone_cuda_attended){.type = HONE_CUDA_F16, .p = {.heads = 1, .kv_heads = 1, .head_size = 257}},
        &gpus[0], &way));
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(moves), cmocka_unit_test(rows),
                                       cmocka_unit_test(windows), cmocka_unit_test(attentions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
