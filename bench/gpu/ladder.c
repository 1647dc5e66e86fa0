/* SPDX-License-Identifier: Apache-2.0
   ladder: the kernels of bench/gpu/ladder, from the plainest to the library's, timed on one product: what
   each step brings. */
#include <dirent.h>

#include "harness.h"

extern const char hone_cuda_words_text[];

typedef struct {
    const hone_cuda_kernel *kernel;
    hone_cuda_launch_shape launch;
    hone_cuda_contract_tma args;
    bool tiles;
} step;
static hone_status once(bench *b, void *what) {
    const step *s = what;
    return hone_cuda_launch(b->g, s->kernel, &s->launch, s->tiles ? (const void *)&s->args : &s->args.p);
}
static void climb(bench *b, const char *path, const char *name) {
    enum { SIDE = 4096 };
    int tile_m = 0, tile_n = 0, box_k = 0, box_a = 0, box_b = 0;
    step s = {0};
    hone_text text = {0};
    char line[1024];
    FILE *f = fopen(path, "r");
    if (!f) stop("%s cannot be read", path);
    hone_text_put(&text, "%s", hone_cuda_words_text);
    for (bool first = true; fgets(line, sizeof line, f); first = false) {
        if (first && sscanf(line, "// tile %d %d threads %d shared %d box %d %d %d", &tile_m, &tile_n,
                            &s.launch.threads, &s.launch.shared_bytes, &box_k, &box_a, &box_b) < 4)
            stop("%s does not begin with what it needs", path);
        hone_text_put(&text, "%s", line);
    }
    fclose(f);
    if (box_k && b->gpu.major != 9) { /* by the copy engine and wgmma: sm_90a's alone */
        hone_text_free(&text);
        return;
    }
    s.kernel = kernel_of(b, text.text, "hone_ladder", s.launch.shared_bytes);
    hone_text_free(&text);
    tensor x = tensor_random(b, HONE_CUDA_F16, (size_t)SIDE * SIDE, 1),
           w = tensor_random(b, HONE_CUDA_F16, (size_t)SIDE * SIDE, 1),
           y = tensor_poison(b, HONE_CUDA_F16, (size_t)SIDE * SIDE);
    if (s.kernel) {
        s.args.p = (hone_cuda_contract){.a = x.at,
                                        .b = w.at,
                                        .c = y.at,
                                        .pitch_a = SIDE,
                                        .pitch_b = SIDE,
                                        .pitch_c = SIDE,
                                        .m = SIDE,
                                        .n = SIDE,
                                        .k = SIDE,
                                        .batches = 1,
                                        .splits = 1,
                                        .alpha = 1};
        s.launch.grid[0] = SIDE / tile_n, s.launch.grid[1] = SIDE / tile_m, s.launch.grid[2] = 1,
        s.tiles = box_k > 0;
        const long long extent[] = {SIDE, SIDE, 1}, strides[] = {SIDE * 2, (long long)SIDE * SIDE * 2};
        if (s.tiles) {
            OK(hone_cuda_tiled(b->g, &s.args.map_a, HONE_CUDA_F16, 3, x.at, extent, strides,
                               (const int[]){box_k, box_a, 1}));
            OK(hone_cuda_tiled(b->g, &s.args.map_b, HONE_CUDA_F16, 3, w.at, extent, strides,
                               (const int[]){box_k, box_b, 1}));
        }
        contender c[2] = {contender_of(b, "hone", once, &s), {.n = 0}};
        cublas *l = cublas_open();
        if (l &&
            !cublas_contender(b, l, HONE_CUDA_F16, HONE_CUDA_F16, SIDE, SIDE, SIDE, x.at, w.at, y.at, &c[1]))
            c[1].name[0] = 0;
        in_turns(b, c, 2, 3);
        OK(hone_cuda_set(b->g, y.at, 0xfb, y.bytes)), OK(once(b, &s));
        reference r = reference_make((size_t)SIDE * SIDE, 300);
        double *left = tensor_doubles(&x), *right_ = tensor_doubles(&w);
        for (size_t q = 0; q < r.n; q++) {
            const double *p = left + r.at[q] / SIDE * SIDE, *o = right_ + r.at[q] % SIDE * SIDE;
            r.want[q] = 0;
            for (size_t k = 0; k < SIDE; k++) r.want[q] += p[k] * o[k], r.size[q] += fabs(p[k] * o[k]);
        }
        reference_check(b, &r, &y, name);
        reference_free(&r), free(left), free(right_);
        tell(b, "ladder", name, "", c, 2, 2.0 * SIDE * SIDE * SIDE, 6.0 * SIDE * SIDE);
        contender_free(b, &c[0]), contender_free(b, &c[1]);
    }
    tensor_free(b, &x), tensor_free(b, &w), tensor_free(b, &y);
}
static int ladder_file(const struct dirent *d) { return strstr(d->d_name, ".cu") != NULL; }
void bench_ladder(bench *b) {
    const char *folder = getenv("HONE_GPU_LADDER") ? getenv("HONE_GPU_LADDER") : "bench/gpu/ladder";
    struct dirent **names = NULL;
    const int n = b->time ? scandir(folder, &names, ladder_file, alphasort) : 0;
    for (int k = 0; k < n; k++) {
        char path[800];
        snprintf(path, sizeof path, "%s/%s", folder, names[k]->d_name);
        climb(b, path, names[k]->d_name);
        free(names[k]);
    }
    free(names);
}
