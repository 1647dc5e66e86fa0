/* SPDX-License-Identifier: Apache-2.0
   move: transposes and copies against the rate at which the driver copies 1 GB from device memory to device
   memory (bytes read and written). */
#include "device/cuda/move.h"
#include "harness.h"

enum { WAYS = 64 };
typedef struct {
    long long i, j, k;
} sizes; /* of y */
typedef struct {
    const hone_cuda_kernel *kernel;
    hone_cuda_launch_shape launch;
    hone_cuda_move args;
} ready;
typedef struct {
    tensor x, y;
    hone_cuda_movement m;
    size_t misplaced;
} operands;
static hone_status once(bench *b, void *what) {
    const ready *r = what;
    return hone_cuda_launch(b->g, r->kernel, &r->launch, &r->args);
}
static operands operands_of(bench *b, int bytes, bool turn, sizes s, int misplaced) {
    const int type = (int[]){0, HONE_CUDA_S8, HONE_CUDA_F16, 0, HONE_CUDA_F32}[bytes > 4 ? 4 : bytes];
    const size_t n = (size_t)(s.i * s.j * s.k), scale = bytes == 8 ? 2 : 1;
    operands o = {.x = tensor_random(b, type, (n + (size_t)misplaced) * scale, 1),
                  .y = tensor_poison(b, type, n * scale),
                  .misplaced = (size_t)misplaced};
    o.m = (hone_cuda_movement){bytes,
                               {o.x.at + (size_t)(misplaced * bytes),
                                o.y.at,
                                {s.i, s.j, s.k},
                                {s.j * s.k, turn ? 1 : s.k, turn ? s.j : 1}}};
    hone_cuda_move_merge(&o.m);
    return o;
}
static bool prepare_move(bench *b, const hone_cuda_movement *m, const hone_cuda_move_way *w, ready *r) {
    hone_text text = {0};
    OK(hone_cuda_move_print(&text, m, w));
    r->launch = hone_cuda_move_launch(m, w), r->args = m->p;
    r->kernel = kernel_of(b, text.text, "hone_move", r->launch.shared_bytes);
    hone_text_free(&text);
    return r->kernel != NULL;
}
static bool check(bench *b, operands *o, const char *what) {
    const size_t bytes = (size_t)o->m.bytes, j = (size_t)o->m.p.extent[1], k = (size_t)o->m.p.extent[2],
                 n = (size_t)o->m.p.extent[0] * j * k;
    if (hone_cuda_wait(b->g)) stop("%s: %s", what, hone_fail_text());
    tensor_fetch(b, &o->y);
    for (size_t p = 0; p < n && (n <= 1 << 22 || p <= 1 << 18); p++) {
        const size_t q = n > 1 << 22 ? dice() % n : p, c2 = q % k, c1 = q / k % j, c0 = q / k / j;
        const size_t from = o->misplaced + c0 * (size_t)o->m.p.stride_x[0] + c1 * (size_t)o->m.p.stride_x[1] +
                            c2 * (size_t)o->m.p.stride_x[2];
        if (memcmp((char *)o->y.host + q * bytes, (char *)o->x.host + from * bytes, bytes)) {
            fprintf(b->table, "WRONG move %s: element %zu\n", what, q), fflush(b->table);
            b->wrong++;
            return false;
        }
    }
    b->checked++;
    return true;
}
static void texts(const operands *o, const hone_cuda_move_way *w, char *what, char *way, size_t bytes) {
    snprintf(what, bytes, "%s %d bytes %lld x %lld x %lld", w->turn ? "transpose" : "copy", o->m.bytes,
             o->m.p.extent[0], o->m.p.extent[1], o->m.p.extent[2]);
    if (w->turn >= 2) snprintf(way, bytes, "all of a matrix");
    else
        snprintf(way, bytes, "%d %s%s", w->high, w->turn ? "rows a tile" : "pieces a thread",
                 w->once ? ", not kept" : "");
}
static void every_way(bench *b, int bytes, bool turn, sizes s, int misplaced) {
    operands o = operands_of(b, bytes, turn, s, misplaced);
    hone_cuda_move_way ways[WAYS];
    const int n = hone_cuda_move_ways(&o.m, ways, WAYS);
    for (int k = (int)((s.j + bytes) % b->every); k < n; k += b->every) {
        ready r;
        char what[80], way[80], all[200];
        if (!prepare_move(b, &o.m, &ways[k], &r)) continue;
        texts(&o, &ways[k], what, way, sizeof what),
            snprintf(all, sizeof all, "%s %s misplaced %d", what, way, misplaced);
        OK(hone_cuda_set(b->g, o.y.at, 0xfb, o.y.bytes));
        OK(once(b, &r));
        if (check(b, &o, all)) check_again(b, &o.y, once, &r, all);
    }
    tensor_free(b, &o.x), tensor_free(b, &o.y);
}
static void one(bench *b, mean *all, int bytes, bool turn, sizes s) {
    operands o = operands_of(b, bytes, turn, s, 0);
    const hone_cuda_move_way chosen = hone_cuda_move_best(&o.m, &b->gpu);
    ready r;
    char what[80], way[80];
    if (prepare_move(b, &o.m, &chosen, &r)) {
        texts(&o, &chosen, what, way, sizeof what);
        contender c = contender_of(b, "hone", once, &r);
        in_turns(b, &c, 1, 11);
        check(b, &o, what);
        tell(b, "move", what, way, &c, 1, 0, (double)(o.x.bytes + o.y.bytes));
        if (turn) mean_add(all, (double)(o.x.bytes + o.y.bytes) / middle(&c) * 1e6 / b->copy_rate);
        contender_free(b, &c);
    }
    tensor_free(b, &o.x), tensor_free(b, &o.y);
}
static void search(bench *b, mean *all, int bytes, bool turn, sizes s) {
    operands o = operands_of(b, bytes, turn, s, 0);
    hone_cuda_move_way ways[WAYS], best = {0};
    const hone_cuda_move_way chosen = hone_cuda_move_best(&o.m, &b->gpu);
    const int n = hone_cuda_move_ways(&o.m, ways, WAYS);
    double least = 0, mine = 0;
    for (int k = 0; k < n; k++) {
        ready r;
        const hone_cuda_move_way *w = &ways[k];
        if (!prepare_move(b, &o.m, w, &r)) continue;
        contender c = contender_of(b, "hone", once, &r);
        in_turns(b, &c, 1, 3);
        const double us = middle(&c);
        fprintf(b->csv, "move,%d,%d,%lld,%lld,%lld,%d,%d,%d,%.3f,%.3f\n", bytes, turn, s.i, s.j, s.k, w->high,
                w->once, w->blocks, us, (double)(o.x.bytes + o.y.bytes) / us * 1e6 / b->copy_rate);
        if (least == 0 || us < least) least = us, best = *w;
        if (!memcmp(w, &chosen, sizeof chosen)) mine = us;
        contender_free(b, &c);
    }
    if (!b->collect && least > 0) {
        char what[80], first[80], second[80];
        texts(&o, &best, what, first, sizeof what), texts(&o, &chosen, what, second, sizeof what);
        tell_search(b, all, "move", what, least, first, mine, second);
    }
    tensor_free(b, &o.x), tensor_free(b, &o.y);
}
/* Every size up to two tiles and a bit, tensors that begin anywhere. */
static void edges(bench *b) {
    for (int bytes = 1; bytes <= 8; bytes *= 2) {
        for (int n = 1; n <= (bytes == 1 ? 260 : 140); n += b->every)
            every_way(b, bytes, true, (sizes){2, n, 70}, 0), every_way(b, bytes, true, (sizes){2, 70, n}, 0),
                every_way(b, bytes, true, (sizes){2, n, 64}, 0),
                every_way(b, bytes, true, (sizes){2, 64, n}, 0),
                every_way(b, bytes, false, (sizes){2, 3, n}, 0);
        const int unit = bytes == 8 ? 2 : 1; /* elements of 8 bytes are pairs of the tensor's */
        for (b->shift = unit; b->shift <= 16; b->shift += unit * b->every)
            for (int turn = 0; turn < 2; turn++)
                every_way(b, bytes, turn, (sizes){2, 80, 96}, 0),
                    every_way(b, bytes, turn, (sizes){2, 75, 77}, 0);
        b->shift = 0;
    }
}
void bench_move(bench *b) {
    if (b->check) edges(b);
    if (b->check)
        for (int bytes = 1; bytes <= 8; bytes *= 2)
            for (int turn = 0; turn < 2; turn++)
                every_way(b, bytes, turn, (sizes){3, 70, 67}, 0),
                    every_way(b, bytes, turn, (sizes){2, 64, 96}, 0),
                    every_way(b, bytes, turn, (sizes){1, 33, 130}, 1),
                    every_way(b, bytes, turn, (sizes){2, 144, 256}, 0),
                    every_way(b, bytes, turn, (sizes){2, 41, 144}, 0),
                    every_way(b, bytes, turn, (sizes){2, 144, 133}, 0),
                    every_way(b, bytes, turn, (sizes){5, 197, 64}, 0),
                    every_way(b, bytes, turn, (sizes){3, 20, 28}, 0);
    if (b->time) {
        mean all = {.text = "transposes of large tensors, share of the copy rate"};
        for (int bytes = 1; bytes <= 8; bytes *= 2) one(b, &all, bytes, true, (sizes){1, 16384, 8192});
        one(b, &all, 2, true, (sizes){32, 256, 56 * 56}), one(b, &all, 2, true, (sizes){32, 56 * 56, 256}),
            one(b, &all, 2, true, (sizes){1024, 197, 64}), one(b, &all, 2, true, (sizes){1024, 64, 197}),
            one(b, &all, 2, true, (sizes){4096, 64, 512}), one(b, &all, 2, false, (sizes){1, 16384, 8192});
        if (!b->collect) mean_tell(b, &all, "0.9");
    }
    if (b->search) {
        /* The others were never timed while the rates were made. */
        static const sizes seen[] = {{1, 16384, 8192}, {32, 256, 3136}, {32, 3136, 256}, {1024, 197, 64},
                                     {1024, 64, 197},  {4096, 64, 512}, {12, 128, 64},   {1, 5000, 6000},
                                     {64, 768, 196},   {2048, 64, 128}, {1, 50257, 768}, {8, 512, 512},
                                     {32, 1001, 333}},
                           unseen[] = {{1, 7000, 9000}, {96, 384, 784},  {512, 49, 512}, {3072, 32, 200},
                                       {16, 1280, 49},  {1, 30522, 768}, {24, 640, 360}, {6, 2000, 80},
                                       {384, 100, 100}, {2, 4096, 1024}, {5, 33, 4097}};
        mean first = {.text = "move, shapes it was fitted to"}, second = {.text = "move, others"};
        for (size_t k = 0; k < 4 * sizeof seen / sizeof *seen; k++)
            search(b, &first, 1 << k % 4, true, seen[k / 4]);
        for (size_t k = 0; k < 2 * sizeof unseen / sizeof *unseen; k++)
            search(b, &second, k % 2 ? 4 : 2, true, unseen[k / 2]);
        search(b, &first, 2, false, (sizes){1, 16384, 8192}),
            search(b, &first, 2, false, (sizes){1024, 64, 197}),
            search(b, &first, 4, false, (sizes){32, 1000, 1000}),
            search(b, &first, 2, false, (sizes){1, 1024, 768}),
            search(b, &second, 4, false, (sizes){7, 300, 3001}),
            search(b, &second, 2, false, (sizes){1, 197, 3072});
        if (!b->collect) mean_tell(b, &first, "chosen / best"), mean_tell(b, &second, "0.9");
    }
}
