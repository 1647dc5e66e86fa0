/* SPDX-License-Identifier: Apache-2.0
   The kernels that docs/19-gpu.md climbs (bench/gpu/ladder), each from its file: what its first line says is
   what it needs, and it computes C = A Bᵀ. */
#include <dirent.h>

#include "cuda.h"

extern const char hone_cuda_words_text[];

typedef struct {
    int tile_m, tile_n, threads, shared, box_k, box_a, box_b; /* boxes: of the copy engine, 0 without */
} step;
static void climb(const char *path, const char *name) {
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    hone_text text = {0};
    hone_text_put(&text, "%s", hone_cuda_words_text);
    char line[512];
    step s = {0};
    for (int first = 1; fgets(line, sizeof line, f); first = 0) {
        if (first && sscanf(line, "// tile %d %d threads %d shared %d box %d %d %d", &s.tile_m, &s.tile_n,
                            &s.threads, &s.shared, &s.box_k, &s.box_a, &s.box_b) < 4)
            fail_msg("%s does not begin with what it needs: %s", name, line);
        hone_text_put(&text, "%s", line);
    }
    fclose(f);
    const emulated e = compile_text(text, s.box_k ? "wgmma" : name, "hone_ladder");
    assert_int_equal(e.threads, s.threads);
    const int m = s.tile_m * (s.tile_m < 100 ? 2 : 1), n = s.tile_n * 2, k = 64 * 6, type = HONE_CUDA_F16;
    operand a = hold((size_t)(m * k * 2), 16), b = hold((size_t)(n * k * 2), 16),
            c = hold((size_t)(m * n * 2), 16);
    fill_with(&a, type), fill_with(&b, type);
    hone_cuda_contract_tma args = {.p = {.a = address(&a),
                                         .b = address(&b),
                                         .c = address(&c),
                                         .pitch_a = k,
                                         .pitch_b = k,
                                         .pitch_c = n,
                                         .m = m,
                                         .n = n,
                                         .k = k,
                                         .batches = 1,
                                         .splits = 1,
                                         .alpha = 1}};
    if (s.box_k)
        args.map_a = tensor_map(args.p.a, type, k, m, 1, k, 0, s.box_k, s.box_a, 1),
        args.map_b = tensor_map(args.p.b, type, k, n, 1, k, 0, s.box_k, s.box_b, 1);
    run(&e, s.box_k ? (const void *)&args : &args.p, n / s.tile_n, m / s.tile_m, 1);
    double *left = malloc(sizeof *left * (size_t)((m + n) * k)), *right = left + m * k;
    for (int q = 0; q < m * k; q++) left[q] = get(a.at, type, q);
    for (int q = 0; q < n * k; q++) right[q] = get(b.at, type, q);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int q = 0; q < k; q++) sum += left[i * k + q] * right[j * k + q];
            const double got = get(c.at, type, (int64_t)i * n + j);
            if (!near_enough(got, sum, fmax(1, fabs(sum)), 2e-3))
                fail_msg("%s: [%d][%d] is %g, not %g", name, i, j, got, sum);
        }
    free(left), drop(&a), drop(&b), drop(&c);
}
static void ladder(void **state) {
    (void)state;
    if (!works) skip();
    char folder_of[512], path[800];
    snprintf(folder_of, sizeof folder_of, "%.480s/bench/gpu/ladder",
             getenv("HONE_SOURCE_DIR") ? getenv("HONE_SOURCE_DIR") : "..");
    DIR *d = opendir(folder_of);
    int steps = 0;
    for (struct dirent *one; d && (one = readdir(d));)
        if (strstr(one->d_name, ".cu")) {
            snprintf(path, sizeof path, "%s/%.255s", folder_of, one->d_name);
            climb(path, one->d_name), steps++;
        }
    if (d) closedir(d);
    assert_true(steps >= 9);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ladder)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
