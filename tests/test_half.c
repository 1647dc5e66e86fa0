/* SPDX-License-Identifier: Apache-2.0
   Products with constant weights computed in bf16 or f16, as a session may be asked to: against the
   definition in f32.

   Numbers that a half can hold, inputs and weights, must come out as f32 would have them, within the rounding
   of sums; for f16, whose sums may be short and of f16, small whole numbers of 1/8, which no sum rounds.
   Others lose at most 2^-8 (bf16) or 2^-11 (f16) of each factor, and short sums 2^-11 a term: the bound is
   that share of the terms' magnitudes. What f16 cannot hold comes out as in f32. What was not asked for does
   not change. */
#include "kernels/gemm_half.h"
#include "twin.h"

static const struct half {
    hone_dtype dtype;
    const char *weights, *tactic;
    int least; /* columns that are worth it on any machine */
} halves[] = {{HONE_DTYPE_BF16, "bf16", "contract bf16", 16}, {HONE_DTYPE_F16, "i8", "contract f16", 32}};
static const struct half *half; /* the one that is tested */
#define EACH_HALF for (half = halves; half < halves + sizeof halves / sizeof *halves; half++)

/* What rounding a factor loses of it at most. */
static double rounding_of(hone_dtype dtype) { return dtype == HONE_DTYPE_BF16 ? 0x1p-8 : 0x1p-11; }
/* And what short sums lose of their terms' magnitudes, where this machine has them. */
static double short_sums(void) {
    return hone_gemm_half_best(half->dtype)->sums == HONE_DTYPE_F16 ? HONE_HALF_SHORT * 0x1p-11 : 0;
}

static char text[4096], bound[4096];
#define ROUNDS twin_rounds(1, 1, 2)
static hone_value *input(const hone_graph *g, int k, bool exact) {
    const hone_var *v = g->var.at + g->in.at[k];
    hone_value *x;
    assert_int_equal(hone_value_tensor(v->dtype, v->dim, v->rank, &x), HONE_OK);
    for (int64_t q = 0; q < hone_value_count(x); q++)
        ((float *)x->data)[q] = !exact                          ? number()
                                : half->dtype == HONE_DTYPE_F16 ? (float)draw(-16, 16) / 8
                                                                : (float)draw(-128, 128) / 64;
    return x;
}
static hone_value *exact_input(const hone_graph *g, int k) { return input(g, k, true); }
/* Weights of the graph are f32(bf16), or of -1, 0, 1: exact factors. */
static const double ROUNDING = 16 * 0x1p-24; /* of sums, of the sum of the terms' magnitudes */
typedef hone_value *input_fn(const hone_graph *, int);
static int in_half(input_fn *of, twin_terms_fn *terms_of, double eps) {
    twin_precision = half->dtype;
    const int met = twin_check_by(text, of, terms_of, eps, half->tactic);
    twin_precision = HONE_DTYPE_NONE;
    return met;
}
static void must_in_half(input_fn *of, twin_terms_fn *terms_of, double eps) {
    if (!in_half(of, terms_of, eps)) fail_msg("nothing ran in %s in\n%s", hone_dtype_name(half->dtype), text);
}
static void check_exact(void) { must_in_half(exact_input, twin_terms, ROUNDING); }
/* Each value may be off by a share of what the graph `bound` makes of the same inputs. */
static void bound_terms(const char *of, hone_value *const *in, int n_in, hone_value **out) {
    (void)of, (void)n_in;
    hone_compiled *c = twin_compile(bound);
    twin_run(c, (hone_value **)in, 1, true, out, NULL, bound);
    hone_compiled_destroy(c);
}
static void matmul(void **state) {
    (void)state;
    EACH_HALF EACH_LEVEL_OF(hone_gemm_half_best(half->dtype)) for (int round = 0; round < ROUNDS; round++) {
        int m = draw(1, round ? 50 : 15), n = draw(half->least, half->least + 40),
            k = round ? draw(8, 150) : draw(513, 530), b = draw(1, 2); /* more than goes at once */
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d, %d], r: f32[%d, %d, %d]) -> y, z { wb: %s[%d, %d] = random(%d, -1, "
                 "1); vb: %s[%d, 40] = "
                 "random(5, -1, 1); c: f32[%d] = random(3, -1, 1); f: f32[40] = random(7, -1, 1); w = "
                 "Cast(wb) {to: 1}; v = Cast(vb) {to: "
                 "1}; h = MatMul(x, w); i = Add(h, "
                 "c); j = Relu(i); y = Add(j, r); l = MatMul(r, v); o = Add(l, f); z = %s(o); }",
                 b, m, k, b, m, n, half->weights, k, n, round, half->weights, n, n,
                 round % 2 ? "Tanh" : "HardSwish");
        check_exact();
        snprintf(text, sizeof text,
                 "graph g (a: f32[%d, %d], c: f32[%d]) -> y { bb: %s[%d, %d] = random(5, -1, 1); b = "
                 "Cast(bb) {to: 1}; y = Gemm(a, b, c) "
                 "{transA: 1, transB: 1, alpha: 0.5, beta: 2.0}; }",
                 k, m, n, half->weights, n, k);
        check_exact();
    }
}
/* windows, edges, groups, strides, several pictures, ends of all kinds */
static void pictures(void **state) {
    (void)state;
    EACH_HALF EACH_LEVEL_OF(hone_gemm_half_best(half->dtype)) for (int round = 0; round < ROUNDS; round++) {
        int g = draw(1, 2), c = g * draw(1, 20), m = g * draw(half->least, half->least + 12), kh = draw(1, 4),
            kw = draw(1, 5), h = draw(5, 11), w = draw(5, 15), n = draw(1, 2), dh = draw(1, 2),
            k = c / g * kh * kw, e = draw(half->least, half->least + 8);
        if (k < 8) continue;
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d, %d, %d]) -> y, q { wb: %s[%d, %d, %d, %d] = random(%d, -1, 1); b: "
                 "f32[%d] = random(2, -1, 1); "
                 "lo: f32[] = {0}; hi: f32[] = {6}; w = Cast(wb) {to: 1}; v = Conv(x, w, b) {group: %d, "
                 "strides: [%d, %d], dilations: [%d, "
                 "1], pads: [%d, %d, %d, %d]}; s = Sigmoid(v); y = Mul(v, s); a = Clip(v, lo, hi); q = "
                 "MaxPool(a) {kernel_shape: [1, 1]}; "
                 "}",
                 n, c, h, w, half->weights, m, c / g, kh, kw, round + 9, m, g, draw(1, 2), draw(1, 3), dh,
                 draw(0, 2), draw(0, 2), draw(2, 4), draw(0, 3));
        check_exact();
        /* between the two it lies channels last, and the signs are numbers that a half can hold */
        snprintf(text, sizeof text,
                 "graph g (x: f32[1, %d, %d, %d]) -> y { ub: %s[%d, %d, 1, 1] = random(7, -1, 1); wb: %s[%d, "
                 "%d, 3, 3] = random(%d, -1, "
                 "1); b: f32[%d] = random(2, -1, 1); u = Cast(ub) {to: 1}; w = Cast(wb) {to: 1}; e = Conv(x, "
                 "u); f = Sign(e); v = Conv(f, w, "
                 "b) {pads: [2, 2, 2, 2], dilations: [2, 2]}; a = Add(v, f); r = Relu(a); y = MaxPool(r) "
                 "{kernel_shape: [2, 2]}; }",
                 e, h / 2 + 2, w / 2, half->weights, e, e, half->weights, e, e, round, e);
        check_exact();
    }
}
/* Windows that move pixel by pixel, over channels that are whole steps of a kernel, some more, and many;
   pictures of a few pixels, and larger than a tile. */
static hone_value *spoiled_input(const hone_graph *g, int k);
static void windows(void **state) {
    (void)state;
    static const int channels[] = {16, 40, 64, 272};
    EACH_HALF EACH_LEVEL_OF(hone_gemm_half_best(half->dtype)) for (int round = SLOW ? 5 : 0; round < 7;
                                                                   round++) {
        const int c = channels[SLOW ? draw(0, 2) : round % 4], first = half->least,
                  h = SLOW || round < 4 ? draw(2, 5) : draw(7, 9),
                  w = SLOW || round < 4 ? draw(2, 5) : draw(17, 21), kh = draw(1, 3), kw = draw(2, 3),
                  n = draw(1, 2);
        const int top = draw(kh > h, 2), left = draw(kw > w, 2); /* the kernel has a place in the picture */
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d, %d, %d]) -> y { ub: %s[%d, %d, 1, 1] = random(7, -1, 1); wb: "
                 "%s[40, %d, %d, %d] = random(%d, -1, "
                 "1); b: f32[40] = random(2, -1, 1); u = Cast(ub) {to: 1}; w = Cast(wb) {to: 1}; e = Conv(x, "
                 "u); f = Sign(e); y = Conv(f, "
                 "w, b) {pads: [%d, %d, %d, %d]}; }",
                 n, first, h, w, half->weights, c, first, half->weights, c, kh, kw, round, top, left,
                 draw(0, 2), draw(0, 2));
        const int met = in_half(round % 2 ? exact_input : spoiled_input, twin_terms, ROUNDING);
        if (!met && (half->dtype == HONE_DTYPE_BF16 || c >= half->least))
            fail_msg("nothing ran in %s in\n%s", hone_dtype_name(half->dtype), text);
    }
}
/* Windows over few channels, as networks begin: from a copy of the picture where the kernel takes that. A
   value that is no number spoils what sees it and nothing else. */
static hone_value *spoiled_input(const hone_graph *g, int k) {
    hone_value *x = input(g, k, true);
    const int64_t n = hone_value_count(x);
    ((float *)x->data)[draw(0, (int)n - 1)] = NAN, ((float *)x->data)[draw(0, (int)n - 1)] = INFINITY;
    return x;
}
static void stems(void **state) {
    (void)state;
    half = halves;
    EACH_LEVEL_OF(hone_gemm_half_best(half->dtype)) for (int round = 0; round < 6 * ROUNDS; round++) {
        const hone_gemm_half *kernel = hone_gemm_half_best(half->dtype);
        const int c = round ? draw(1, 5) : 3, kh = round ? draw(2, 5) : 7, kw = round ? draw(2, 8) : 7,
                  m = draw(half->least, half->least + 30), h = draw(kh + 4, 24), w = draw(kw + 4, 70),
                  sy = draw(1, 3), sx = draw(1, 2), top = draw(0, kh - 1), left = draw(0, kw - 1),
                  below = draw(0, 2), right = draw(0, 3), last = !draw(0, 3), k = c * kh * kw,
                  wide = kw * ((c + 1) / 2 * 2),
                  deep = (wide + kernel->deep - 1) / kernel->deep * kernel->deep;
        if (k < 8) continue;
        /* else it stays f32 */
        const bool many = (m + kernel->nr - 1) / kernel->nr * kernel->nr <= (kernel->times > 2 ? 4 : 2) * m;
        const bool fits = many && kernel->window && deep == (kernel->begin ? kernel->deep : wide) &&
                          kh * deep <= 12 * k && (!last || c == 1);
        snprintf(text, sizeof text,
                 "graph g (x: f32[1, %d, %d, %d]) -> y { wb: bf16[%d, %d, %d, %d] = random(%d, -1, 1); b: "
                 "f32[%d] = random(2, -1, 1); w = "
                 "Cast(wb) {to: 1}; u = %s; v = Conv(u, w, b) {strides: [%d, %d], pads: [%d, %d, %d, %d]}; r "
                 "= Relu(v); y = MaxPool(r) "
                 "{kernel_shape: [1, 1]}; }",
                 last ? h : c, last ? w : h, last ? c : w, m, c, kh, kw, round + 9, m,
                 last ? "Transpose(x) {perm: [0, 3, 1, 2]}" : "Identity(x)", sy, sx, top, left, below, right);
        twin_precision = half->dtype;
        const int met =
            twin_check_terms(text, round % 3 ? exact_input : spoiled_input, ROUNDING, "first layer");
        twin_precision = HONE_DTYPE_NONE;
        if ((met > 0) != fits)
            fail_msg("%s: %d copies by %s in\n%s", fits ? "a stem" : "no stem", met, kernel->name, text);
    }
}
/* Any numbers: within what rounding both factors allows, and not the numbers of f32. */
static void rounded(void **state) {
    (void)state;
    EACH_HALF EACH_LEVEL_OF(hone_gemm_half_best(half->dtype)) for (int round = 0; round < ROUNDS; round++) {
        int m = draw(1, 30), n = draw(32, 90), k = draw(8, 200);
        /* two factors, each off by half of its most: of many, some are off one way and some the other */
        const double share = rounding_of(half->dtype) + short_sums() + ROUNDING;
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d]) -> y, z { w: f32[%d, %d] = random(%d, -1, 1); p = Abs(x); u = "
                 "Abs(w); y = MatMul(x, w); z = "
                 "MatMul(p, u); }",
                 m, k, k, n, round);
        hone_compiled *c = twin_compile(text);
        hone_value *in[1] = {input(c->graph, 0, false)}, *want[2] = {0}, *before[2] = {0}, *got[2] = {0},
                   *after[2] = {0};
        twin_run(c, in, 1, true, want, NULL, text);
        assert_int_equal(twin_run(c, in, 1, false, before, half->tactic, text), 0);
        twin_precision = half->dtype;
        assert_int_equal(twin_run(c, in, 1, false, got, half->tactic, text), 2);
        twin_precision = HONE_DTYPE_NONE;
        /* one model, sessions of both kinds */
        assert_int_equal(twin_run(c, in, 1, false, after, half->tactic, text), 0);
        twin_same_bits(before[0], after[0], "f32 before and after", text);
        assert_memory_not_equal(before[0]->data, got[0]->data, before[0]->bytes);
        for (int64_t q = 0; q < hone_value_count(want[0]); q++) {
            const double most = hone_value_number(want[1], q) * share,
                         d = hone_value_number(got[0], q) - hone_value_number(want[0], q);
            if (!(fabs(d) <= most))
                fail_msg("element %d is %g away, at most %g is allowed in\n%s", (int)q, d, most, text);
        }
        for (int q = 0; q < 2; q++)
            hone_value_drop(want[q]), hone_value_drop(before[q]), hone_value_drop(got[q]),
                hone_value_drop(after[q]);
        hone_value_drop(in[0]);
        hone_compiled_destroy(c);
    }
}
/* What lies between products of bf16 is stored so where all who read it can: in a chain of small whole
   numbers, which lose nothing by it, and of special values.
   Windows of all places over whole steps of channels, several pictures, residuals, depthwise convolutions, a
   largest value, a result that is also an output, and a reader that wants floats. */
static hone_value *whole_input(const hone_graph *g, int k) {
    hone_value *x = input(g, k, true);
    for (int64_t q = 0; q < hone_value_count(x); q++) ((float *)x->data)[q] = (float)draw(-2, 2);
    return x;
}
static hone_value *with_odd(hone_value *x) {
    static const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f, 1e-40f, 1e38f, -65520, 1e6f};
    for (int q = 0; q < (int)(sizeof odd / sizeof *odd); q++)
        ((float *)x->data)[draw(0, (int)hone_value_count(x) - 1)] = odd[q];
    return x;
}
static hone_value *whole_odd_input(const hone_graph *g, int k) { return with_odd(whole_input(g, k)); }
/* Units for bf16 take subnormals for zero, which a sum does not show, and Floor does: -1 or 0. */
static hone_value *whole_normal_input(const hone_graph *g, int k) {
    hone_value *x = whole_odd_input(g, k);
    for (int64_t q = 0; q < hone_value_count(x); q++)
        if (((float *)x->data)[q] == 1e-40f) ((float *)x->data)[q] = 0;
    return x;
}
/* Whole numbers, exactly; their Sigmoid within some roundings of itself. A subnormal is nothing or what it
   is. */
static void check_stored(input_fn *of, int *halved) {
    twin_precision = half->dtype;
    const int met = twin_check(text, of, 0x1p-120, 8 * 0x1p-24, half->tactic);
    twin_precision = HONE_DTYPE_NONE;
    if (!met) fail_msg("nothing ran in %s in\n%s", hone_dtype_name(half->dtype), text);
    if (halved) *halved = twin_halved;
}
static void stored(void **state) {
    (void)state;
    EACH_HALF EACH_LEVEL_OF(hone_gemm_half_best(half->dtype)) for (int round = 0; round < ROUNDS; round++) {
        const int n = draw(1, 2), c = draw(8, 20), e = level % 2 ? 32 : draw(24, 40),
                  f = draw(half->least, 40), h = draw(5, 9),
                  /* 1 in f16 goes by tiles, which round */
            w = draw(5, 19), d = half->dtype == HONE_DTYPE_F16 ? 2 : draw(1, 2);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d, %d, %d]) -> y, s, m { ab: i8[%d, %d, 1, 1] = random(%d, -1, 1); "
                 "bb: i8[%d, %d, 3, 3] = random(2, -1, "
                 "1); "
                 "cb: i8[%d, 1, 3, 3] = random(3, -1, 1); db: i8[%d, %d, 1, 1] = random(4, -1, 1); a = "
                 "Cast(ab) {to: 1}; b = Cast(bb) {to: "
                 "1}; v = Cast(cb) {to: 1}; u = Cast(db) {to: 1}; lo: f32[] = {-3}; hi: f32[] = {6}; "
                 "e0 = Conv(x, a); e = Clip(e0, lo, hi); f0 = Conv(e, b) {pads: [%d, %d, %d, %d], dilations: "
                 "[%d, %d]}; f1 = Add(f0, e); f = "
                 "Clip(f1, lo, hi); g0 = Conv(f, v) {group: %d, pads: [1, 1, 1, 1], strides: [%d, 1]}; g = "
                 "Clip(g0, lo, hi); h0 = Conv(g, u); "
                 "h = Clip(h0, lo, hi); p = MaxPool(g) {kernel_shape: [2, 2]}; y = Conv(p, u); s = "
                 "Sigmoid(f); a2b: i8[16, "
                 "%d, 1, 1] = random(5, -1, 1); a2 = Cast(a2b) {to: 1}; m = Conv(h, a2); }",
                 n, c, h, w, e, c, round, e, e, e, f, e, d, d, d, d, d, d, e, draw(1, 2), f);
        int halved;
        check_stored(whole_input, &halved);
        if ((halved > 0) != (half->dtype == HONE_DTYPE_BF16))
            fail_msg("%d blocks are stored as bf16 in\n%s", halved, text);
        check_stored(whole_odd_input, NULL);
        snprintf(text,
                 /* pools and a scale between products, a pool of bf16 that others read as floats, and one of
               floats for a product */
                 sizeof text,
                 "graph g (x: f32[%d, %d, %d, %d]) -> y, z, q, v { ab: i8[%d, %d, 1, 1] = random(%d, -1, 1); "
                 "db: i8[%d, %d, 1, 1] = random(4, "
                 "-1, 1); sb: i8[1, %d, 1, 1] = random(5, -1, 1); tb: i8[1, %d, 1, 1] = random(6, -1, 1); "
                 "cb: i8[%d, %d, 1, 1] = random(8, -1, "
                 "1); a = "
                 "Cast(ab) {to: 1}; b = Cast(cb) {to: 1}; u = Cast(db) {to: 1}; s = Cast(sb) {to: 1}; t = "
                 "Cast(tb) {to: 1}; lo: f32[] = {-3}; "
                 "hi: f32[] = {6}; e0 = Conv(x, a); e = Clip(e0, lo, "
                 "hi); m0 = Mul(e, s); m1 = Add(m0, t); m = Relu(m1); y = Conv(m, u); p = MaxPool(e) "
                 "{kernel_shape: [3, 3], pads: [1, 1, 1, 1], "
                 "strides: [%d, 1]}; v = Conv(p, u); o = MaxPool(e) {kernel_shape: [2, 2]}; z = Sigmoid(o); "
                 "g0 = Conv(x, b); g1 = Clip(g0, lo, "
                 "hi); f = Floor(g1); k = MaxPool(f) "
                 "{kernel_shape: [2, 3]}; q = Conv(k, u); }",
                 n, c, h, w, e, c, round, f, e, e, e, e, c, draw(1, 2));
        check_stored(whole_input, NULL);
        check_stored(whole_normal_input, NULL);
        /* Activations, which make other numbers. e is off by a rounding of a half, and so are g0's terms;
           HardSwish makes that larger by 1.5 at most, and rounding g adds its own. */
        char head[1024];
        snprintf(head, sizeof head,
                 "graph g (x: f32[1, %d, %d, %d]) -> y { ab: i8[%d, %d, 1, 1] = random(%d, -1, 1); cb: "
                 "i8[%d, 1, 3, 3] = random(3, -1, 1); "
                 "db: i8[%d, %d, 1, 1] = random(4, -1, 1); most: f32[] = {1.5}; a = Cast(ab) {to: 1}; v = "
                 "Cast(cb) {to: 1}; u = Cast(db) {to: 1}; lo: f32[] = "
                 "{-3}; hi: f32[] = {6}; e0 = Conv(x, a); e1 = Clip(e0, lo, hi); e = HardSwish(e1); g0 = "
                 "Conv(e, v) {group: %d, pads: [1, 1, "
                 "1, 1]}; g1 = Clip(g0, lo, hi); g = HardSwish(g1);",
                 c, h, w, e, c, round, e, f, e, e);
        snprintf(text, sizeof text, "%s y = Conv(g, u); }", head);
        snprintf(bound, sizeof bound,
                 "%s p = Abs(e); pv = Abs(v); t0 = Conv(p, pv) {group: %d, pads: [1, 1, 1, 1]}; t = Mul(t0, "
                 "most); pg = Abs(g); s = Add(t, pg); pu = Abs(u); y = Conv(s, pu); }",
                 head, e);
        must_in_half(whole_input, bound_terms, rounding_of(half->dtype) + short_sums() + ROUNDING);
    }
}
/* What an f16 cannot hold makes the row be computed in f32; what a bf16 cannot, 1e38, is that far off. */
static hone_value *special_input(const hone_graph *g, int k) { return with_odd(input(g, k, true)); }
static hone_value *large_input(const hone_graph *g, int k) { /* its sums are beyond f16, it itself is not */
    hone_value *x = input(g, k, true);
    for (int64_t q = 0; q < hone_value_count(x); q++) ((float *)x->data)[q] = (float)draw(1, 16) * 2048;
    return x;
}
/* What may be off: bf16's rounding of factors that it does not hold, roundings of sums, and subnormals, which
   may count as nothing. */
static void special_terms(const char *of, hone_value *const *in, int n_in, hone_value **out) {
    hone_value *off = NULL, *sums[2] = {0}, *lost[2] = {0};
    const hone_value *x = in[0];
    assert_int_equal(n_in, 1);
    twin_terms(of, in, n_in, sums);
    assert_int_equal(hone_value_tensor(x->dtype, x->dim, x->rank, &off), HONE_OK);
    for (int64_t q = 0; q < hone_value_count(x); q++) {
        const float v = ((const float *)x->data)[q];
        uint32_t bits;
        memcpy(&bits, &v, sizeof bits);
        const bool held = half->dtype != HONE_DTYPE_BF16 || !(bits & 0xffff) || !isfinite(v);
        ((float *)off->data)[q] = held ? 0 : fabsf(v) * 0x1p-8F;
    }
    twin_terms(of, &off, 1, lost);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(hone_value_tensor(HONE_DTYPE_F32, sums[k]->dim, sums[k]->rank, out + k), HONE_OK);
        for (int64_t q = 0; q < hone_value_count(out[k]); q++)
            ((float *)out[k]->data)[q] =
                (float)(ROUNDING * hone_value_number(sums[k], q) + hone_value_number(lost[k], q) + 0x1p-116);
        hone_value_drop(sums[k]), hone_value_drop(lost[k]);
    }
    hone_value_drop(off);
}
static void special(void **state) {
    (void)state;
    EACH_HALF EACH_LEVEL_OF(hone_gemm_half_best(half->dtype)) for (int round = 0; round < ROUNDS; round++) {
        int m = draw(3, 20), n = draw(32, 70), k = round ? draw(8, 60) : draw(513, 530);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d]) -> y, z { wb: %s[%d, %d] = random(%d, -1, 1); w = Cast(wb) {to: "
                 "1}; h = MatMul(x, w); y = Neg(h); "
                 "s: i64[4] = {1, 1, %d, %d}; vb: %s[32, 1, 3, 3] = random(3, -1, 1); v = Cast(vb) {to: 1}; "
                 "x4 = Reshape(x, s); z = Conv(x4, v) "
                 "{pads: "
                 "[1, 1, 1, 1]}; }",
                 m, k, half->weights, k, n, round, m, k, half->weights);
        must_in_half(special_input, special_terms, 1);
        /* whole numbers: f32, which takes over from f16, sums them exactly */
        must_in_half(large_input, twin_terms, half->dtype == HONE_DTYPE_BF16 ? ROUNDING : 0);
    }
}
/* Weights that an f16 cannot hold */
static void large_weights(void **state) {
    (void)state;
    half = halves + 1;
    EACH_LEVEL_OF(hone_gemm_half_best(half->dtype)) for (int round = 0; round < ROUNDS; round++) {
        int m = draw(1, 40), n = draw(32, 70), k = draw(8, 100);
        snprintf(
            text, sizeof text,
            "graph g (x: f32[%d, %d]) -> y { w: f32[%d, %d] = random(%d, -1e6, 1e6); y = MatMul(x, w); }", m,
            k, k, n, round);
        must_in_half(exact_input, twin_terms, ROUNDING);
    }
}
/* 3x3 convolutions by tiles in f16, where the machine multiplies it: off by a percent of what results are at
   most, one of them by ten, not of their own terms: a tile's pixels all have their
   part in it. What f16 cannot hold, pixels or weights at their places, comes out as near. */
static void tiles(void **state) {
    (void)state;
    half = halves + 1;
    EACH_LEVEL_OF(hone_gemm_half_best(half->dtype)) for (int round = 0; round < 4; round += SLOW ? 3 : 1) {
        const int c = 8 * draw(4, 6), n = draw(40, 55), h = round % 2 ? draw(5, 8) : draw(17, 18),
                  w = h + draw(0, 3);
        const hone_gemm_half *kernel = hone_gemm_half_best(HONE_DTYPE_F16);
        snprintf(text, sizeof text,
                 "graph g (x: f32[1, %d, %d, %d]) -> y { u: f32[%d, %d, 1, 1] = random(1, -0.3, 0.3); w: "
                 "f32[%d, %d, 3, 3] = random(%d, "
                 "-%s, %s); b: f32[%d] = random(2, -1, 1); e = Conv(x, u); f = Relu(e); v = Conv(f, w, b) "
                 "{pads: [1, 1, 1, 1]}; z = "
                 "Relu(v); y = Transpose(z) {perm: [0, 2, 3, 1]}; }",
                 c, h, w, c, c, n, c, round, round == 3 ? "1e6" : "1", round == 3 ? "1e6" : "1", n);
        hone_compiled *compiled = twin_compile(text);
        hone_value *in[1] = {input(compiled->graph, 0, false)}, *want[1] = {0}, *got[1] = {0};
        for (int64_t q = 0; round == 2 && q < hone_value_count(in[0]); q += draw(1, 50))
            ((float *)in[0]->data)[q] *= 1e5f;
        twin_run(compiled, in, 1, true, want, NULL, text);
        twin_precision = half->dtype;
        const int met = twin_run(compiled, in, 1, false, got, "winograd f16", text);
        twin_precision = HONE_DTYPE_NONE;
        if (kernel->times > 1 && kernel->group == 1 && h > 16) assert_int_not_equal(met, 0);
        double square = 0, most = 0, error = 0;
        for (int64_t q = 0; q < hone_value_count(want[0]); q++) {
            const double x = hone_value_number(want[0], q), d = fabs(hone_value_number(got[0], q) - x);
            square += x * x, error += d * d, most = d > most || d != d ? d : most;
        }
        const double bound = 0.1 * sqrt(square / (double)hone_value_count(want[0]));
        if (!(most <= bound)) fail_msg("%g away, at most %g is allowed in\n%s", most, bound, text);
        if (!(error <= 1e-4 * square))
            fail_msg("%g of it, at most 0.01 is allowed in\n%s", sqrt(error / square), text);
        hone_value_drop(want[0]), hone_value_drop(got[0]), hone_value_drop(in[0]);
        hone_compiled_destroy(compiled);
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul),   cmocka_unit_test(windows),       cmocka_unit_test(stems),
        cmocka_unit_test(pictures), cmocka_unit_test(stored),        cmocka_unit_test(rounded),
        cmocka_unit_test(special),  cmocka_unit_test(large_weights), cmocka_unit_test(tiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
