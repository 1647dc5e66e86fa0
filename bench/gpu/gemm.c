/* SPDX-License-Identifier: Apache-2.0
   gemm: products: every way on odd sizes against double precision, the page's shapes against cuBLASLt, and
   the search that the cost function is held against. */
#include "harness.h"

typedef struct {
    int in, out, m, n, k, batches;
    const char *epilogue;
    int pad, pad_c; /* elements between rows of the factors, and of C */
} shape;
typedef struct {
    tensor a, b, c, bias, residual;
    hone_cuda_product p;
} operands;

static operands operands_of(bench *b, const shape *s) {
    const size_t pitch = (size_t)(s->k + s->pad), pc = (size_t)(s->n + s->pad_c), z = (size_t)s->batches,
                 m = (size_t)s->m, n = (size_t)s->n;
    operands o = {.a = tensor_random(b, s->in, z * m * pitch, 1),
                  .b = tensor_random(b, s->in, z * n * pitch, 1),
                  .c = tensor_poison(b, s->out, z * m * pc),
                  .bias = tensor_random(b, HONE_CUDA_F32, n, 1),
                  .residual = tensor_random(b, s->out, z * m * pc, 1)};
    o.p = product_of(b, s->epilogue, &o.a, &o.b, &o.c, &o.bias, s->m, s->n, s->k);
    hone_cuda_contract *p = &o.p.p;
    p->residual = o.residual.at, p->batches = s->batches, p->alpha = 0.5f;
    p->pitch_a = p->pitch_b = (long long)pitch, p->pitch_c = p->pitch_residual = (long long)pc;
    if (s->batches > 1)
        p->batch_a = (long long)(m * pitch), p->batch_b = (long long)(n * pitch),
        p->batch_c = p->batch_residual = (long long)(m * pc);
    return o;
}
static void operands_free(bench *b, operands *o) {
    tensor *all[] = {&o->a, &o->b, &o->c, &o->bias, &o->residual};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) tensor_free(b, all[k]);
}
static double rounded(double v) { /* what the matrix unit keeps of a factor */
    float f = (float)v;
    uint32_t u;
    memcpy(&u, &f, 4), u &= 0xffffe000u, memcpy(&f, &u, 4);
    return (double)f;
}
/* Sums in double; all of them where that is quick, else some hundred. tf32: factors as the matrix unit rounds
   them. */
static reference reference_of(const shape *s, const operands *o, bool tf32) {
    const hone_cuda_contract *p = &o->p.p;
    const size_t all = (size_t)s->batches * (size_t)s->m * (size_t)s->n;
    reference r = reference_make(all, (double)all * s->k < 1e8 ? all : 400);
    double *x = tensor_doubles(&o->a), *y = tensor_doubles(&o->b);
    if (tf32 && s->in == HONE_CUDA_F32) {
        for (size_t k = 0; k < o->a.bytes / 4; k++) x[k] = rounded(x[k]);
        for (size_t k = 0; k < o->b.bytes / 4; k++) y[k] = rounded(y[k]);
    }
    for (size_t q = 0; q < r.n; q++) {
        const size_t i = r.at[q], n = i % (size_t)s->n, m = i / (size_t)s->n % (size_t)s->m,
                     z = i / (size_t)s->n / (size_t)s->m;
        const double *left = x + z * (size_t)p->batch_a + m * (size_t)p->pitch_a,
                     *right_ = y + z * (size_t)p->batch_b + n * (size_t)p->pitch_b;
        const size_t at = z * (size_t)p->batch_c + m * (size_t)p->pitch_c + n;
        double want = 0, size = 0;
        for (size_t k = 0; k < (size_t)s->k; k++)
            want += left[k] * right_[k], size += fabs(left[k] * right_[k]);
        if (strstr(s->epilogue, "alpha")) want *= 0.5;
        if (strstr(s->epilogue, "1e-3f")) want *= 1e-3;
        if (strstr(s->epilogue, "bias")) want += tensor_get(&o->bias, n);
        if (strstr(s->epilogue, "residual")) want += tensor_get(&o->residual, at);
        if (strstr(s->epilogue, "fmaxf")) want = fmax(want, 0);
        if (s->out == HONE_CUDA_S8) want = fmin(127, fmax(-128, want));
        r.want[q] = want, r.size[q] = s->in == HONE_CUDA_S8 ? 0 : size, r.at[q] = at;
    }
    free(x), free(y);
    return r;
}
/* What p left in C, against the reference; then the same again. */
static void check(bench *b, const shape *s, operands *o, const hone_cuda_way *way, prepared *p,
                  const reference *r) {
    char text[96], what[220];
    hone_cuda_way_text(way, text, sizeof text);
    snprintf(what, sizeof what, "gemm %s types %d %d, %dx%dx%d, batches %d, pads %d %d, shift %d", text,
             s->in, s->out, s->m, s->n, s->k, s->batches, s->pad, s->pad_c, b->shift);
    if (hone_cuda_wait(b->g)) stop("%s: %s", what, hone_fail_text());
    if (!reference_check(b, r, &o->c, what)) return;
    const size_t e = (size_t)type_bytes(s->out), wide = (size_t)s->n * e, gap = (size_t)s->pad_c * e;
    for (size_t row = 0; row < (size_t)(s->batches * s->m); row++) /* between rows nothing was written */
        for (size_t k = 0; k < gap; k++)
            if (((unsigned char *)o->c.host)[row * (wide + gap) + wide + k] != 0xfb) {
                fprintf(b->table, "WRONG %s: something was written behind row %zu\n", what, row),
                    fflush(b->table), b->wrong++;
                return;
            }
    check_again(b, &o->c, launch_prepared, p, what);
}
static void try_ways(bench *b, const shape *s, bool few) {
    static hone_cuda_way ways[600];
    operands o = operands_of(b, s);
    int n = hone_cuda_ways(&o.p, &b->gpu, ways, 600);
    const int every = few ? 1 : b->every;
    if (few) n = few_ways(ways, n);
    reference tf32 = {0}, exact = {0};
    if (!b->collect) tf32 = reference_of(s, &o, true);
    if (!b->collect && s->in == HONE_CUDA_F32) exact = reference_of(s, &o, false);
    for (int k = 0; k < n; k++) {
        prepared p;
        if ((ways[k].splits > 2 && ways[k].splits != 6) || k % every || !prepare(b, &o.p, &ways[k], &p))
            continue;
        OK(hone_cuda_set(b->g, o.c.at, 0xfb, o.c.bytes));
        OK(launch_prepared(b, &p));
        check(b, s, &o, &ways[k], &p, ways[k].unit == HONE_CUDA_BY_ROWS && exact.n ? &exact : &tf32);
    }
    reference_free(&tf32), reference_free(&exact);
    operands_free(b, &o);
}
#define PLAIN "v"
#define FULL "fmaxf(v * a->alpha + bias + residual, 0.0f)"
#define BYTES "v * a->alpha * 1e-3f + bias"
static void checks(bench *b) {
    enum {
        F16 = HONE_CUDA_F16,
        BF16 = HONE_CUDA_BF16,
        F32 = HONE_CUDA_F32,
        S8 = HONE_CUDA_S8,
        S32 = HONE_CUDA_S32
    };
    static const shape shapes[] = {
        {F16, F16, 1, 1, 8, 1, FULL, 0, 0},         {F16, F16, 130, 200, 136, 1, FULL, 0, 0},
        {F16, F16, 257, 264, 520, 2, FULL, 0, 0},   {F16, F16, 65, 48, 1032, 1, FULL, 0, 0},
        {F16, F16, 3, 129, 264, 1, FULL, 0, 0},     {F16, F16, 37, 45, 67, 1, FULL, 1, 1},
        {F16, F16, 150, 31, 66, 1, FULL, 0, 0},     {BF16, F32, 129, 72, 264, 1, PLAIN, 0, 0},
        {BF16, BF16, 255, 120, 200, 3, FULL, 0, 0}, {F32, F32, 140, 136, 260, 1, FULL, 0, 0},
        {F32, F32, 5, 68, 132, 1, FULL, 0, 0},      {S8, S8, 133, 144, 400, 1, BYTES, 0, 0},
        {S8, S32, 70, 260, 528, 2, PLAIN, 0, 0},    {F16, F16, 384, 512, 2048, 1, FULL, 0, 0}};
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) try_ways(b, &shapes[k], false);
    static const shape special = {F16, F16, 130, 72, 200, 1, PLAIN, 0, 0};
    operands o = operands_of(b, &special); /* infinities and NaN go where the definition has them */
    if (!b->collect)
        tensor_put(&o.a, 3 * 200 + 5, INFINITY), tensor_put(&o.a, 70 * 200 + 150, NAN),
            tensor_put(&o.a, 129 * 200 + 199, -INFINITY);
    for (size_t k = 0; k < 72 && !b->collect; k++)
        tensor_put(&o.b, k * 200 + 5, k % 2 ? 0.5 : -0.5), tensor_put(&o.b, k * 200 + 199, 0.25);
    tensor_send(b, &o.a), tensor_send(b, &o.b);
    hone_cuda_way ways[400];
    const int n = hone_cuda_ways(&o.p, &b->gpu, ways, 400);
    reference r = {0};
    if (!b->collect) r = reference_of(&special, &o, false);
    for (int k = 0; k < n; k++) {
        prepared p;
        hone_cuda_way w = ways[k];
        if (w.splits > 1 || k % b->every || !prepare(b, &o.p, &w, &p)) continue;
        OK(launch_prepared(b, &p));
        check(b, &special, &o, &w, &p, &r);
    }
    reference_free(&r);
    operands_free(b, &o);
}
/* Every size up to two of the smallest tiles, and around the second edge of larger ones; rows that follow
   each other and rows at aligned places; tensors that begin anywhere. */
static void edges(bench *b) {
    static const struct {
        int in, out, step;
        const char *epilogue;
    } types[] = {{HONE_CUDA_F16, HONE_CUDA_F16, 1, FULL},
                 {HONE_CUDA_BF16, HONE_CUDA_F32, 5, FULL},
                 {HONE_CUDA_F32, HONE_CUDA_F32, 5, FULL},
                 {HONE_CUDA_S8, HONE_CUDA_S8, 5, BYTES}};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        const int line = 16 / type_bytes(types[t].in);
        shape s = {types[t].in, types[t].out, 70, 72, 80, 1, types[t].epilogue, 0, 0};
        for (int dim = 0; dim < 3; dim++)
            for (int size = 1; size <= 390; size += types[t].step * b->every) {
                if (size > 130 && size < 250) size = 250;
                if (dim < 2 && size > 260) break;
                shape g = s;
                *(dim == 0 ? &g.m : dim == 1 ? &g.n : &g.k) = size;
                try_ways(b, &g, true);
                *(dim == 2 ? &g.pad : &g.pad_c) = dim ? (line - size % line) % line : 0;
                if (g.pad || g.pad_c) try_ways(b, &g, true);
            }
        for (b->shift = 1; b->shift <= 16; b->shift += b->every) try_ways(b, &s, true);
        b->shift = 0;
    }
}

static const struct {
    int m, n, k;
} page[] = {{128, 768, 768},    {128, 2304, 768},  {128, 3072, 768},  {128, 768, 3072},  {512, 768, 768},
            {512, 2304, 768},   {512, 3072, 768},  {512, 768, 3072},  {197, 768, 768},   {197, 3072, 768},
            {197, 768, 3072},   {4096, 768, 768},  {4096, 3072, 768}, {4096, 768, 3072}, {16384, 768, 768},
            {16384, 3072, 768}, {16384, 768, 3072}},
  few[] = {{1, 1000, 2048}, {32, 1000, 2048}, {1, 4096, 4096},  {2, 4096, 4096},  {4, 4096, 4096},
           {8, 4096, 4096}, {16, 4096, 4096}, {32, 4096, 4096}, {64, 4096, 4096}, {1, 11008, 4096}},
  more[] = {{300, 1000, 1000}, {1024, 1024, 1024}, {2048, 512, 2048}, {77, 640, 640},    {1000, 5000, 300},
            {256, 4096, 1024}, {3136, 256, 64},    {784, 512, 128},   {49, 2048, 512},   {12, 11008, 4096},
            {384, 1024, 4096}, {1000, 1000, 2000}, {77, 3072, 768},   {257, 1280, 1280}, {2000, 2048, 2048},
            {96, 5120, 5120},  {24, 2048, 8192},   {640, 640, 640},   {64, 1536, 512},   {8192, 320, 320},
            {1500, 384, 1536}, {5, 8192, 3072}},
  unseen[] = {{200, 1024, 1024},
              {1024, 4096, 4096},
              {50, 768, 3072},
              {333, 2000, 512},
              {4096, 512, 512},
              {128, 1000, 4096},
              {3000, 3000, 128},
              {10, 1024, 1024},
              /* no fit knows them */
              {768, 768, 6144},
              {160, 2560, 2560},
              {2304, 96, 960},
              {40, 7168, 2048}};
static double one(bench *b, int in, int out, int m, int n, int k, int rounds) {
    const shape s = {in, out, m, n, k, 1, PLAIN, 0, 0};
    operands o = operands_of(b, &s);
    prepared p;
    char what[64], way_text[96];
    double ratio = 0;
    hone_cuda_way way = hone_cuda_best_way(&o.p, &b->gpu);
    if (prepare(b, &o.p, &way, &p)) {
        contender c[2] = {contender_of(b, "hone", launch_prepared, &p), {.n = 0}};
        cublas *l = cublas_open();
        if (l && !cublas_contender(b, l, in, out, m, n, k, o.a.at, o.b.at, o.residual.at, &c[1]))
            c[1].name[0] = 0;
        in_turns(b, c, 2, rounds);
        OK(hone_cuda_set(b->g, o.c.at, 0xfb, o.c.bytes));
        OK(launch_prepared(b, &p));
        reference r = reference_of(&s, &o, way.unit != HONE_CUDA_BY_ROWS);
        check(b, &s, &o, &way, &p, &r);
        reference_free(&r);
        snprintf(what, sizeof what, "%s %d x %d x %d",
                 (const char *[]){"", "f16", "bf16", "tf32", "int8"}[in], m, n, k);
        hone_cuda_way_text(&way, way_text, sizeof way_text);
        ratio =
            tell(b, "gemm", what, way_text, c, 2, 2.0 * m * n * k,
                 (double)type_bytes(in) * ((double)m * k + (double)n * k) + (double)type_bytes(out) * m * n);
        contender_free(b, &c[0]), contender_free(b, &c[1]);
    }
    operands_free(b, &o);
    return ratio;
}
static void search(bench *b, int in, int out, int m, int n, int k, bool seen) {
    const shape s = {in, out, m, n, k, 1, PLAIN, 0, 0};
    operands o = operands_of(b, &s);
    search_ways(b, "gemm", &o.p, seen);
    operands_free(b, &o);
}
void bench_gemm(bench *b) {
    enum {
        F16 = HONE_CUDA_F16,
        BF16 = HONE_CUDA_BF16,
        F32 = HONE_CUDA_F32,
        S8 = HONE_CUDA_S8,
        S32 = HONE_CUDA_S32
    };
    if (b->check) checks(b), edges(b);
    if (b->time) {
        mean f16 = {.text = "gemm f16, transformer shapes"}, bf16 = {.text = "gemm bf16, transformer shapes"},
             rows = {.text = "gemm f16, few rows"};
        one(b, F16, F16, 4096, 4096, 4096, 15), one(b, BF16, BF16, 4096, 4096, 4096, 15),
            one(b, F32, F32, 4096, 4096, 4096, 15), one(b, S8, S32, 4096, 4096, 4096, 15);
        for (size_t k = 0; k < sizeof page / sizeof *page; k++)
            mean_add(&f16, one(b, F16, F16, page[k].m, page[k].n, page[k].k, 11));
        for (size_t k = 0; k < sizeof page / sizeof *page; k++)
            mean_add(&bf16, one(b, BF16, BF16, page[k].m, page[k].n, page[k].k, 11));
        for (size_t k = 0; k < sizeof few / sizeof *few; k++)
            mean_add(&rows, one(b, F16, F16, few[k].m, few[k].n, few[k].k, 11));
        if (!b->collect) mean_tell(b, &f16, "1.0"), mean_tell(b, &bf16, "1.0"), mean_tell(b, &rows, "1.0");
    }
    if (b->search) {
        search(b, F16, F16, 4096, 4096, 4096, true);
        for (size_t k = 0; k < sizeof page / sizeof *page; k++)
            search(b, F16, F16, page[k].m, page[k].n, page[k].k, true);
        for (size_t k = 0; k < sizeof few / sizeof *few; k++)
            search(b, F16, F16, few[k].m, few[k].n, few[k].k, true);
        for (size_t k = 0; k < sizeof unseen / sizeof *unseen; k++)
            search(b, F16, F16, unseen[k].m, unseen[k].n, unseen[k].k, false);
        for (size_t k = 0; k < sizeof more / sizeof *more; k++)
            search(b, F16, F16, more[k].m, more[k].n, more[k].k, true);
        search(b, S8, S32, 4096, 4096, 4096, true), search(b, F32, F32, 4096, 4096, 4096, true);
    }
}
