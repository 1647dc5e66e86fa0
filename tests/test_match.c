/* SPDX-License-Identifier: Apache-2.0
   What match_product and match_contraction say of a stage, computed as they say: over batches, rows, columns
   and depth, or over a window, by the strides it found, and compared with what the interpreter makes of that
   stage. Examples with the pads, strides, groups and broadcasts that networks have, every row with made-up
   calls, every conformance case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "calls.h"

#include "loops/match_contraction.h"
#include "loops/match_pool.h"
#include "loops/match_product.h"

static struct { int stages, products, windows, depthwise, contractions, bytes, pools[3]; } seen;

static double at_of(const hone_tensor_view *p, hone_dtype t, int64_t k) {
    return hone_scalar_f64(hone_dtypes[t].ctype,
                           hone_dtype_load(t, (const char *)p->at + k * (int64_t)hone_dtypes[t].bytes));
}
/* Zero points of the calls that are made up are single numbers, or one a row or column: single_zero. */
static double zero_of(const walk_call *c, int32_t zero) {
    const hone_x *z = zero < 0 ? NULL : c->in->x + zero;
    return z ? at_of(c->place + z->a, c->in->tensor[z->a].dtype, 0) : 0;
}
static bool single_zero(const walk_call *c, int32_t zero) {
    return zero < 0 || !c->in->tensor[c->in->x[zero].a].rank;
}
static int64_t by(const hone_axes *a, int64_t i, int which) {
    int64_t at = 0;
    for (int k = a->n - 1; k >= 0; k--) {
        const hone_axis *x = a->at + k;
        at += i % x->extent * (which == 0 ? x->a : which == 1 ? x->b : x->c), i /= x->extent;
    }
    return at;
}
static int64_t all(const hone_axes *a) {
    int64_t n = 1;
    for (int k = 0; k < a->n; k++) n *= a->at[k].extent;
    return n;
}
/* The sum at batch b, row i, column j, and the sum of the magnitudes of its terms. */
static double sum_of(const walk_call *c, const hone_match_product *m, int64_t b, int64_t i, int64_t j,
                     double *magnitude) {
    const hone_dtype ta = c->in->tensor[m->a].dtype, tb = c->in->tensor[m->b].dtype;
    const int64_t at_b = m->at_b + by(&m->batch, b, 1) + by(&m->n, j, 1);
    const double zero_a = zero_of(c, m->zero_a), zero_b = zero_of(c, m->zero_b);
    double sum = 0;
    *magnitude = 0;
    if (!m->window) {
        const int64_t at_a = m->at_a + by(&m->batch, b, 0) + by(&m->m, i, 0);
        for (int64_t k = 0; k < all(&m->k); k++) {
            const double term = (at_of(c->place + m->a, ta, at_a + by(&m->k, k, 0)) - zero_a) *
                                (at_of(c->place + m->b, tb, at_b + by(&m->k, k, 1)) - zero_b);
            sum += term, *magnitude += fabs(term);
        }
        return m->alpha * sum;
    }
    const hone_match_window *w = &m->w;
    const int64_t x = i % w->out_width, y = i / w->out_width % w->out_height,
                  image = i / w->out_width / w->out_height;
    for (int64_t ky = 0; ky < w->kernel_y; ky++)
        for (int64_t kx = 0; kx < w->kernel_x; kx++)
            for (int64_t q = 0; q < w->channels; q++) {
                const int64_t line = y * w->stride_y + ky * w->dilation_y - w->pad_y,
                              pixel = x * w->stride_x + kx * w->dilation_x - w->pad_x;
                if (line < 0 || line >= w->height || pixel < 0 || pixel >= w->width) continue;
                const int64_t at = m->at_a + image * w->image_step + line * w->line_step +
                                   pixel * w->pixel_step + q * w->channel_step +
                                   (w->groups > 1 ? b : 0) * w->group_step;
                const double term =
                    (at_of(c->place + m->a, ta, at) - zero_a) *
                    (at_of(c->place + m->b, tb, at_b + ky * w->b_y + kx * w->b_x + q * w->b_channel) -
                     zero_b);
                sum += term, *magnitude += fabs(term);
            }
    return m->alpha * sum;
}
static void check(const walk_call *c, const hone_match_product *m, int stage, const char *what) {
    const hone_slots_of *w = &m->slots;
    const hone_stage *s = c->in->stage + stage;
    const hone_tensor_view *to = c->place + s->tensor;
    int64_t points = 1, work = all(&m->k);
    for (int k = 0; k < w->n_domain; k++) points *= w->extent[k];
    if (m->window) work = m->w.kernel_y * m->w.kernel_x * m->w.channels;
    if (points * work > WORK || !single_zero(c, m->zero_a) || !single_zero(c, m->zero_b)) return;
    for (int64_t p = 0; p < points; p++) {
        int64_t rest = p, at = 0, store = m->store.c, b = 0, i = 0, j = 0, index[HONE_MAX_SLOTS];
        for (int k = w->n_domain - 1; k >= 0; k--) index[k] = rest % w->extent[k], rest /= w->extent[k];
        for (int k = 0; k < w->n_domain; k++) {
            at += index[k] * to->stride[w->dim[k]], store += index[k] * m->store.k[k];
            if (w->extent[k] == 1) continue;
            int64_t *number = m->kind[k] == 'b' ? &b : m->kind[k] == 'm' ? &i : &j;
            *number = *number * w->extent[k] + index[k];
        }
        if (m->at_c + by(&m->batch, b, 2) + by(&m->m, i, 2) + by(&m->n, j, 2) != store)
            fail_msg(
                "%s, stage %d: batch %lld, row %lld, column %lld are not stored where the stage stores them",
                what, stage, (long long)b, (long long)i, (long long)j);
        double magnitude;
        const double got = sum_of(c, m, b, i, j, &magnitude),
                     want = at_of(to, c->in->tensor[s->tensor].dtype, at);
        if (!isfinite(want) || !isfinite(got)) continue; /* infinities meet in another order */
        const double eps = c->in->tensor[s->tensor].dtype == HONE_DTYPE_F16    ? 0x1p-10
                           : c->in->tensor[s->tensor].dtype == HONE_DTYPE_BF16 ? 0x1p-7
                                                                               : 0x1p-22;
        if (fabs(got - want) > eps * (fabs(m->alpha) * magnitude + fabs(want)) + 1e-30)
            fail_msg(
                "%s, stage %d: the match gives %g at batch %lld, row %lld, column %lld; the interpreter %g",
                what, stage, got, (long long)b, (long long)i, (long long)j, want);
    }
    seen.products++, seen.windows += m->window, seen.depthwise += m->window && m->shares_columns;
}
static int64_t at_point(const hone_affine *f, const int64_t *index, int n) {
    int64_t at = f->c;
    for (int k = 0; k < n; k++) at += f->k[k] * index[k];
    return at;
}
static double factor_at(const walk_call *c, const hone_affine_load *l, int32_t zero, const int64_t *index,
                        int n) {
    const hone_dtype t = c->in->tensor[l->tensor].dtype;
    const double nothing = zero_of(c, zero);
    for (int q = 0; q < l->n_bounded; q++) {
        const int64_t i = at_point(l->bounded + q, index, n);
        if (i < 0 || i >= l->size[q]) return 0;
    }
    const hone_scalar v = hone_dtype_load(t, (const char *)c->place[l->tensor].at +
                                                 at_point(&l->at, index, n) * (int64_t)hone_dtypes[t].bytes);
    return t == HONE_DTYPE_U8 || t == HONE_DTYPE_I8 ? (double)v.i32 - nothing : (double)v.f32;
}
/* Rows, columns, batches and depth are all indices, each once; operands know what they should; the sums are
   the stage's. */
static void check_contraction(const walk_call *c, const hone_match_contraction *m, int stage,
                              const char *what) {
    const hone_slots_of *w = &m->slots;
    const hone_stage *s = c->in->stage + stage;
    const hone_tensor_view *to = c->place + s->tensor;
    const struct {
        const int *slot;
        int n;
        int64_t extent;
    } group[] = {{m->group_m, m->n_m, m->m},
                 {m->group_n, m->n_n, m->n},
                 {m->group_b, m->n_batch, m->batch},
                 {m->group_k, m->n_k, m->k}};
    int64_t points = 1;
    int times[HONE_MAX_SLOTS] = {0};
    for (int g = 0; g < 4; g++) {
        int64_t all = 1;
        for (int q = 0; q < group[g].n; q++) {
            const int k = group[g].slot[q];
            all *= w->extent[k], times[k]++;
            assert_true((k < w->n_domain) == (g < 3));
            if (w->extent[k] == 1) continue;
            if (g == 0) assert_false(hone_match_depends(&m->b, k));
            if (g == 1 && !m->shares_n) assert_false(hone_match_depends(&m->a, k));
        }
        assert_true(all == group[g].extent);
        points *= all;
    }
    for (int k = 0; k < w->n; k++) assert_true(times[k] == 1 || (!times[k] && w->extent[k] == 1));
    if (m->piece) assert_true(m->piece * m->taps == m->k);
    if (points > WORK || m->first_tensor >= 0 || w->over >= 0 || !single_zero(c, m->zero_a) ||
        !single_zero(c, m->zero_b))
        return;
    for (int64_t p = 0; p < points / m->k; p++) {
        int64_t index[HONE_MAX_SLOTS], rest = p, at = 0;
        for (int k = w->n_domain - 1; k >= 0; k--) {
            index[k] = rest % w->extent[k], rest /= w->extent[k];
            at += index[k] * to->stride[w->dim[k]];
        }
        double sum = 0, magnitude = 0;
        for (int64_t k = 0; k < m->k; k++) {
            for (int q = w->n - 1, left = (int)k; q >= w->n_domain; q--)
                index[q] = left % w->extent[q], left /= (int)w->extent[q];
            const double term =
                factor_at(c, &m->a, m->zero_a, index, w->n) * factor_at(c, &m->b, m->zero_b, index, w->n);
            sum += term, magnitude += fabs(term);
        }
        const hone_dtype t = c->in->tensor[s->tensor].dtype;
        const hone_scalar v = hone_dtype_load(t, (const char *)to->at + at * (int64_t)hone_dtypes[t].bytes);
        const double got = (double)m->alpha * sum, want = m->integers ? (double)v.i32 : (double)v.f32;
        if (!isfinite(want) || !isfinite(got) || (m->integers && magnitude > 0x1p30)) continue;
        const double eps = m->integers            ? 0
                           : t == HONE_DTYPE_F16  ? 0x1p-10
                           : t == HONE_DTYPE_BF16 ? 0x1p-7
                                                  : 0x1p-22;
        if (fabs(got - want) >
            eps * (fabs((double)m->alpha) * magnitude + fabs(want)) + (m->integers ? 0 : 1e-30))
            fail_msg("%s, stage %d: the contraction gives %g at point %lld; the interpreter %g", what, stage,
                     got, (long long)p, want);
    }
    seen.contractions++, seen.bytes += m->integers;
}
/* Every output of a pool, from the places that the match says. */
static void check_pool(const walk_call *c, const hone_match_pool *m, const char *what) {
    const hone_pool_side *v = m->side + HONE_POOL_Y, *h = m->side + HONE_POOL_X;
    for (int64_t p = 0; p < m->images * m->channels * v->out * h->out; p++) {
        const int64_t ox = p % h->out, oy = p / h->out % v->out, channel = p / h->out / v->out % m->channels,
                      n = p / h->out / v->out / m->channels;
        double largest = -INFINITY, sum = 0, size = 0, there = 0;
        for (int64_t k = 0; k < v->kernel * h->kernel; k++) {
            const int64_t y = oy * v->stride + k / h->kernel * v->dilation - v->pad,
                          x = ox * h->stride + k % h->kernel * h->dilation - h->pad;
            if (y < 0 || y >= v->size || x < 0 || x >= h->size) continue;
            const double f = at_of(c->place + m->x, c->in->tensor[m->x].dtype,
                                   n * m->image_x + channel * m->channel_x + y * v->step_x + x * h->step_x);
            largest = isnan(f) || f > largest ? f : largest, sum += f, size += fabs(f), there++;
        }
        const double over = m->kind == HONE_POOL_AVERAGE_ALL ? (double)(v->kernel * h->kernel) : there;
        const double got = m->kind == HONE_POOL_LARGEST ? largest : sum / over;
        const double want = at_of(c->place + m->y, c->in->tensor[m->y].dtype,
                                  n * m->image_y + channel * m->channel_y + oy * v->step_y + ox * h->step_y);
        if (!isfinite(want) || !isfinite(got)) continue;
        if (fabs(got - want) > 0x1p-22 * (size + fabs(want)))
            fail_msg("%s: the pool gives %g at image %lld, channel %lld, [%lld][%lld]; the interpreter %g",
                     what, got, (long long)n, (long long)channel, (long long)oy, (long long)ox, want);
    }
    seen.pools[m->kind]++;
}
/* Images and what is made of them with their channels last, as devices with such kernels ask for: dims are
   image, group, channel, and those of a place. */
static void put_last(walk_call *c, int t) {
    const hone_tensor *w = c->in->tensor + t;
    hone_tensor_view *p = c->place + t;
    int64_t extent[HONE_MAX_RANK], stride[HONE_MAX_RANK] = {0}, count = 1, step = 1;
    if (w->rank < 4) return;
    for (int k = 0; k < w->rank; k++) extent[k] = c->param[w->dim[k]].i, count *= extent[k];
    const int order[] = {2, 1};
    for (int k = 0; k < 2; k++) stride[order[k]] = step, step *= extent[order[k]];
    for (int k = w->rank - 1; k >= 3; k--) stride[k] = step, step *= extent[k];
    stride[0] = step;
    const size_t bytes = hone_dtypes[w->dtype].bytes;
    char *to = HONE_NEW_N(c->arena, char, count *(int64_t)bytes + 1);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, from = 0, at = 0;
        for (int k = w->rank - 1; k >= 0; k--)
            from += rest % extent[k] * p->stride[k], at += rest % extent[k] * stride[k], rest /= extent[k];
        memcpy(to + at * (int64_t)bytes, (const char *)p->at + from * (int64_t)bytes, bytes);
    }
    p->at = to;
    memcpy(p->stride, stride, sizeof stride);
}
static void add(walk_call *c, hone_value *const *in, int n_in, hone_value *const *want, int n_out,
                bool failed, const char *what) {
    (void)in, (void)n_in, (void)want, (void)n_out;
    const hone_instance *i = c->in;
    for (int t = 0; t < i->n_tensor && !strcmp(i->program->name, "Conv"); t++)
        if ((i->tensor[t].role == HONE_ROLE_IN && i->tensor[t].operand == 0) ||
            i->tensor[t].role == HONE_ROLE_OUT)
            put_last(c, t);
    if (!failed && !hone_interpret(i, c->param, c->place)) {
        hone_strides *stride = HONE_NEW_N(c->arena, hone_strides, i->n_tensor + 1);
        bool *constant = HONE_NEW_N(c->arena, bool, i->n_tensor + 1);
        for (int t = 0; t < i->n_tensor; t++) {
            memcpy(stride[t], c->place[t].stride, sizeof *stride);
            constant[t] = i->tensor[t].role == HONE_ROLE_IN && i->tensor[t].operand == 1; /* weights */
        }
        const hone_sized call = {.instance = i, .param = c->param, .stride = stride, .constant = constant};
        for (int k = 0; k < i->n_stage; k++) {
            hone_match_product m;
            seen.stages++;
            if (i->stage[k].over < 0 && hone_match_product_of(&call, k, &m)) check(c, &m, k, what);
            hone_match_contraction n;
            if (hone_match_contraction_of(&call, k, false, false, &n)) check_contraction(c, &n, k, what);
            hone_match_pool pool;
            if (i->stage[k].over < 0 && hone_match_pool_of(&call, k, &pool)) check_pool(c, &pool, what);
        }
    }
    walk_call_free(c);
}
static const example products[] = {
    {"MatMul", "f32[37,40] f32[40,24]", ""},
    {"MatMul", "f32[3,5,40] f32[40,24]", ""},
    {"MatMul", "f32[3,1,5,40] f32[4,40,8]", ""},
    {"MatMul", "f32[7,1,40] f32[40,24]", ""},
    {"MatMul", "f32[40] f32[2,40,24]", ""},
    {"Gemm", "f32[9,16] f32[24,16] f32[24]", "transB=1 alpha=0.5"},
    {"Gemm", "f32[16,9] f32[16,24] f32[9,1]", "transA=1"},
    {"Conv", "f32[2,8,9,7] f32[16,8,3,3] f32[16]", "pads=1,1,1,1"},
    {"Conv", "f32[1,8,9,7] f32[16,8,3,3] -", "pads=1,0,2,1 strides=2,2"},
    {"Conv", "f32[2,8,12,7] f32[16,8,3,2] -", "dilations=2,3 pads=2,1,0,3"},
    {"Conv", "f32[1,8,9,7] f32[16,8,1,1] f32[16]", ""},
    {"Conv", "f32[3,8,9,7] f32[16,8,1,1] f32[16]", "strides=2,2"},
    {"Conv", "f32[1,8,9,7] f32[16,8,1,5] -", "pads=0,2,0,2"},
    {"Conv", "f32[1,8,9,7] f32[16,8,9,7] f32[16]", ""},
    {"Conv", "f32[2,8,9,7] f32[16,2,3,3] f32[16]", "group=4 pads=1,1,1,1"},
    {"Conv", "f32[2,8,9,7] f32[8,1,3,3] f32[8]", "group=8 pads=1,1,1,1"},
    {"Conv", "f32[2,8,9,7] f32[8,1,3,3] f32[8]", "group=8 pads=1,1,1,1 strides=2,2"},
    {"Conv", "f32[2,8,9,7] f32[16,1,3,3] f32[16]", "group=8 pads=1,1,1,1"},
    {"Conv", "f32[2,3,33] f32[8,3,5] -", "pads=2,2 strides=2"},
    {"Conv", "f32[1,1,16,16] f32[8,1,3,3] -", "pads=1,1,1,1"},
};
static void named(void **state) {
    (void)state;
    const hone_library *lib;
    assert_int_equal(hone_library_builtin(&lib), HONE_OK);
    for (size_t k = 0; k < sizeof products / sizeof *products; k++) {
        const hone_program *p = hone_library_find(lib, "", products[k].op);
        hone_value *in[8] = {0};
        hone_attr attr[16];
        hone_arena *a = hone_arena_create();
        tame = true;
        const int n = parse_inputs(products[k].in, in), n_attr = parse_attrs(a, p, products[k].attr, attr),
                  before = seen.products;
        const bool want[] = {true};
        assert_true(try_call(p, attr, n_attr, in, n, want, products[k].in));
        if (seen.products != before + 1)
            fail_msg("%s %s %s is no product", products[k].op, products[k].in, products[k].attr);
        for (int q = 0; q < n; q++) hone_value_drop(in[q]);
        hone_arena_destroy(a);
    }
    assert_true(seen.windows >= 10 && seen.depthwise >= 2);
}
/* Which kind of pool an op's call is: of each its own, and none where windows hang over in a way that has no
   name. */
static const struct {
    example call;
    int kind; /* -1: none */
} pools[] = {
    {{"MaxPool", "f32[2,8,9,7]", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1"}, HONE_POOL_LARGEST},
    {{"MaxPool", "f32[1,3,12,11]", "kernel_shape=2,3 dilations=2,1 ceil_mode=1 strides=2,3"},
     HONE_POOL_LARGEST},
    {{"AveragePool", "f32[2,8,9,7]", "kernel_shape=3,3 pads=1,1,1,1"}, HONE_POOL_AVERAGE_INSIDE},
    {{"AveragePool", "f32[2,8,9,7]", "kernel_shape=3,2 pads=1,0,2,1 strides=2,1"}, HONE_POOL_AVERAGE_INSIDE},
    {{"AveragePool", "f32[1,4,8,9]", "kernel_shape=3,3 strides=2,2 ceil_mode=1"}, HONE_POOL_AVERAGE_INSIDE},
    {{"AveragePool", "f32[2,8,9,7]", "kernel_shape=3,3 pads=1,1,1,1 count_include_pad=1"},
     HONE_POOL_AVERAGE_ALL},
    {{"AveragePool", "f32[2,8,8,6]", "kernel_shape=2,2 strides=2,2"}, HONE_POOL_AVERAGE_ALL},
    {{"AveragePool", "f32[1,4,8,8]",
      "kernel_shape=3,3 pads=1,1,1,1 strides=2,2 ceil_mode=1 count_include_pad=1"},
     -1},
};
static void named_pools(void **state) {
    (void)state;
    const hone_library *lib;
    assert_int_equal(hone_library_builtin(&lib), HONE_OK);
    for (size_t k = 0; k < sizeof pools / sizeof *pools; k++) {
        const hone_program *p = hone_library_find(lib, "", pools[k].call.op);
        hone_value *in[8] = {0};
        hone_attr attr[16];
        hone_arena *a = hone_arena_create();
        tame = true;
        int before[3];
        memcpy(before, seen.pools, sizeof before);
        const int n = parse_inputs(pools[k].call.in, in),
                  n_attr = parse_attrs(a, p, pools[k].call.attr, attr);
        const bool want[2] = {true};
        assert_true(try_call(p, attr, n_attr, in, n, want, pools[k].call.in));
        for (int kind = 0; kind < 3; kind++)
            if (seen.pools[kind] != before[kind] + (kind == pools[k].kind))
                fail_msg("%s %s %s is matched %d times as kind %d", pools[k].call.op, pools[k].call.in,
                         pools[k].call.attr, seen.pools[kind] - before[kind], kind);
        for (int q = 0; q < n; q++) hone_value_drop(in[q]);
        hone_arena_destroy(a);
    }
}
static void every(void **state) {
    (void)state;
    tame = false;
    const int before = seen.products;
    int cases = 0, whole = 0;
    calls_examples(1);
    calls_rows(2);
    (void)!calls_cases(3, &cases, &whole); /* where they are on this machine */
    assert_true(seen.products > before && seen.contractions > before && (seen.bytes > 0 || !cases));
    print_message("%d stages, of which %d are products: %d over windows, %d of these depthwise; %d are "
                  "contractions, %d of bytes\n",
                  seen.stages, seen.products, seen.windows, seen.depthwise, seen.contractions, seen.bytes);
}
int main(void) {
    calls_seed();
    const struct CMUnitTest tests[] = {cmocka_unit_test(named), cmocka_unit_test(named_pools),
                                       cmocka_unit_test(every)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
