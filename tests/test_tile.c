/* SPDX-License-Identifier: Apache-2.0
   Tile code against the interpreter: small programs over every kind of access, store and reduction, on random
   shapes (0 and 1 among them), layouts (permuted, backwards, with gaps, repeated) and types, at every CPU
   level. tile_same.h says what "the same" is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loops/fn.h"
#include "loops/tile_code.h"
#include "tile_same.h"

/* An input: type, dims by letter (each one random extent; digits stand for themselves). "C<A": one dim C,
   integers from -A to A - 1. */
typedef struct {
    const char *type, *dims;
} operand;
typedef struct {
    const char *name, *row;
    operand in[5];
} sample;

static const sample samples[] = {
    {"chain",
     "op P 1 (x[I..]: T) -> y[I..]: T\n  T: f16 bf16 f32 f64\n  y[i..] = max(x[i..] * 2 + 1, x[i..]) * "
     "x[i..] - 3\n",
     {{"T", "ABC"}}},
    {"functions",
     "op P 1 (x[I..]: T) -> y[I..]: T\n  T: f32 f64\n"
     "  y[i..] = exp(x[i..]) + log(x[i..]) + tanh(x[i..]) + erf(x[i..]) * sigmoid(x[i..]) + sin(x[i..]) + "
     "rsqrt(abs(x[i..])) + "
     "round(x[i..]) + floor(x[i..]) + sign(x[i..])\n",
     {{"T", "AB"}}},
    {"powers",
     "op P 1 (x[I..]: f32, z[I..]: f32) -> y[I..]: f32\n  y[i..] = pow(x[i..], 2) + pow(x[i..], 3) - "
     "pow(x[i..], z[i..]) + rem(x[i..], "
     "z[i..])\n",
     {{"f32", "AB"}, {"f32", "AB"}}},
    {"integers",
     "op P 1 (x[I..]: T, z[I..]: T) -> y[I..]: T\n  T: i8 u8 i16 u16 i32 u32 i64 u64\n"
     "  y[i..] = x[i..] / z[i..] + x[i..] % z[i..] * quot(x[i..], z[i..]) - rem(x[i..], z[i..]) + (x[i..] << "
     "3) + (x[i..] >> 2) + (x[i..] "
     "& z[i..]) + (x[i..] ^ z[i..]) + popcount(x[i..]) + pow(x[i..], 3) + min(x[i..], z[i..]) + "
     "abs(x[i..])\n",
     {{"T", "AB"}, {"T", "AB"}}},
    {"compare",
     "op P 1 (x[I..]: T, z[I..]: T) -> y[I..]: bool\n  T: f16 f32 f64 i8 u32 i64 u64\n  y[i..] = x[i..] < "
     "z[i..] || x[i..] == 3 && z[i..] "
     ">= 1\n",
     {{"T", "AB"}, {"T", "AB"}}},
    {"broadcast",
     "op P 1 (x[N, C, H, W]: T, b[C]: T, s[W]: T) -> y[N, C, H, W]: T\n  T: f32 f16 i8\n  y[n, c, h, w] = "
     "x[n, c, h, w] * s[w] + b[c]\n",
     {{"T", "ABCD"}, {"T", "B"}, {"T", "D"}}},
    {"numpy",
     "op P 1 (x[~I..]: T, z[~I..]: T) -> y[I..]: T\n  T: f32 i32 f64\n  y[i..] = x[i..] - z[i..]\n",
     {{"T", "A1C"}, {"T", "BC"}}},
    {"transpose",
     "op P 1 (x[I, J, K]: T) -> y[K, I, J]: T\n  T: f32 f16 u8 i64\n  y[k, i, j] = x[i, j, k]\n",
     {{"T", "ABC"}}},
    {"reverse",
     "op P 1 (x[I, J]: T) -> y[I, J]: T\n  T: f32 bf16 i8\n  y[i, j] = x[i, J - 1 - j]\n",
     {{"T", "AB"}}},
    {"convert",
     "op P 1 (x[I..]: T) -> y[I..]: i8, z[I..]: f16, u[I..]: u64, v[I..]: f8e4m3fn\n  T: f32 f64 i64 u8 "
     "bf16\n  y[i..] = sat(x[i..])\n  "
     "z[i..] = x[i..]\n  u[i..] = x[i..]\n  v[i..] = sat(x[i..] * 100)\n",
     {{"T", "AB"}}},
    {"round",
     "op P 1 (x[I..]: f32) -> y[I..]: f32\n  y[i..] = f32(f16(x[i..] * 1.7) + bf16(x[i..]))\n",
     {{"f32", "AB"}}},
    {"sums",
     "op P 1 (x[I, K, J]: T) -> y[I, J]: T, z[I]: T, u[]: T, v[K, J]: T\n  T: f32 f64 f16 i32 i64 u8\n"
     "  y[i, j] = sum(k) x[i, k, j]\n  z[i] = sum(k, j) x[i, k, j]\n  u[] = sum(i, k, j) x[i, k, j]\n  v[k, "
     "j] = sum(i) x[i, k, j]\n",
     {{"T", "ABC"}}},
    {"extremes",
     "op P 1 (x[I, K, J]: T) -> y[I, J]: T, z[I]: T, u[]: T, v[K, J]: T\n  T: f32 f64 f16 i32 i64 u64 i8\n"
     "  y[i, j] = max(k) x[i, k, j]\n  z[i] = min(k, j) x[i, k, j]\n  u[] = max(i, k, j) x[i, k, j]\n  v[k, "
     "j] = min(i) x[i, k, j]\n",
     {{"T", "ABC"}}},
    {"products",
     "op P 1 (x[I, K]: T) -> y[I]: T, z[K]: T\n  T: f32 f64 i32 u64\n  y[i] = prod(k) x[i, k]\n  z[k] = "
     "prod(i) x[i, k]\n",
     {{"T", "AB"}}},
    {"places",
     "op P 1 (x[I, K]: T) -> y[I]: i64, z[K]: i64, u[K]: i64\n  T: f32 f64 i32 i64 u64 f16\n"
     "  y[i] = argmax(k) x[i, k] : k\n  z[k] = argmin(i) x[i, k] : i * 2\n  u[k] = argmax(i) x[i, k] : i - "
     "1\n",
     {{"T", "AB"}}},
    {"softmax",
     "op P 1 (x[I.., K]: f32) -> y[I.., K]: f32\n  m[i..] = max(k) x[i.., k]\n  e[i.., k] = exp(x[i.., k] - "
     "m[i..])\n  s[i..] = sum(k) "
     "e[i.., k]\n  y[i.., k] = e[i.., k] / s[i..]\n",
     {{"f32", "ABC"}}},
    {"layer norm",
     "op P 1 (x[I, J]: T, g[J]: T, b[J]: T) -> y[I, J]: T\n  T: f32 f16\n  m[i] = sum(j) x[i, j] / J\n  v[i] "
     "= sum(j) sq(x[i, j] - m[i]) / "
     "J\n"
     "  y[i, j] = (x[i, j] - m[i]) * rsqrt(v[i] + 0.001) * g[j] + b[j]\n",
     {{"T", "AB"}, {"T", "B"}, {"T", "B"}}},
    {"matmul",
     "op P 1 (x[M, K]: T, z[K, N]: T) -> y[M, N]: T\n  T: f32 f64 i32 u8\n  y[m, n] = sum(k) x[m, k] * z[k, "
     "n]\n",
     {{"T", "AB"}, {"T", "BC"}}},
    {"convolution",
     "op P 1 (x[N, C, X, Y]: f32, w[M, C, 3, 3]: f32) -> y[N, M, O, P]: f32\n  O = (X + 1) / 2\n  P = (Y + "
     "1) / 2\n"
     "  y[n, m, o, p] = sum(c, a : 3, b : 3) (x[n, c, 2 * o + a - 1, 2 * p + 2 * b - 2] else 0) * w[m, c, a, "
     "b]\n",
     {{"f32", "ABCD"}, {"f32", "3B33"}}},
    {"max pool",
     "op P 1 (x[C, X, Y]: T) -> y[C, X, Y]: T, at[C, X, Y]: i64\n  T: f32 u8 f16\n  y[c, p, q] = max(a : 3, "
     "b : 2) (x[c, p + a - 1, q - b] "
     "else lowest(T))\n"
     "  at[c, p, q] = argmax(a : 3, b : 2) (x[c, p + a - 1, q - b] else lowest(T)) : flat(x[c, p + a - 1, q "
     "- b])\n",
     {{"T", "ABC"}}},
    {"gather rows",
     "op P 1 (x[I, J]: T, at[K]: i64) -> y[K, J]: T\n  T: f32 f16 u8\n  y[k, j] = x[wrap(at[k], I), j]\n",
     {{"T", "AB"}, {"i64", "C<A"}}},
    {"gather columns",
     "op P 1 (x[I, J]: T, at[K]: i32) -> y[I, K]: T\n  T: f32 i8 i64\n  y[i, k] = x[i, wrap(at[k], J)] * 2\n",
     {{"T", "AB"}, {"i32", "C<B"}}},
    {"gather each",
     "op P 1 (x[I, J]: T, at[K, J]: i64) -> y[K, J]: T\n  T: f32 bf16\n  y[k, j] = x[at[k, j], j] else x[0, "
     "j] else 7\n",
     {{"T", "AB"}, {"i64", "CB<A"}}},
    {"gather or",
     "op P 1 (x[I, J]: T, at[K]: i64) -> y[K, J]: T\n  T: f32 f16 i32\n  y[k, j] = x[at[k], j + at[k]] else "
     "j\n",
     {{"T", "AB"}, {"i64", "C<A"}}},
    {"scatter",
     "op P 1 (x[I, J]: T, at[K]: i64, u[K, J]: T) -> y[I, J]: T\n  T: f32 f16 i32 u8\n  y[i, j] = x[i, j]\n  "
     "y[wrap(at[k], I), j] = u[k, "
     "j]\n",
     {{"T", "AB"}, {"i64", "C<A"}, {"T", "CB"}}},
    {"scatter add",
     "op P 1 (x[I, J]: T, at[K]: i64, u[K, J]: T) -> y[I, J]: T\n  T: f32 f16 i32 u8\n  y[i, j] = x[i, j]\n  "
     "y[wrap(at[k], I), j] add= "
     "u[k, j]\n"
     "  y[at[k], j + 1] max= u[k, j] * 2 else skip\n",
     {{"T", "AB"}, {"i64", "C<A"}, {"T", "CB"}}},
    {"wrong index",
     "op P 1 (x[I, J]: T, at[K]: i64) -> y[K, J]: T\n  T: f32 f16\n  y[k, j] = x[at[k], j]\n",
     {{"T", "AB"}, {"i64", "C<A"}}},
    {"wrong place",
     "op P 1 (x[I]: f32, at[K]: i64, u[K]: f32) -> y[I]: f32\n  y[i] = x[i]\n  y[at[k]] = u[k]\n",
     {{"f32", "A"}, {"i64", "C<A"}, {"f32", "C"}}},
    {"only where taken",
     "op P 1 (x[I]: T, at[K]: i64) -> y[K]: T\n  T: f32 u8\n  y[k] = select(at[k] >= 0, x[at[k]], at[k] < "
     "-2, x[at[k] + I], 5)\n",
     {{"T", "A"}, {"i64", "C<A"}}},
    {"concat",
     "op P 1 (x[I, J]: T, z[I, K]: T) -> y[I, W]: T\n  T: f32 f16 i8\n  W = J + K\n  y[i, w : W] = x[i, w] "
     "else z[i, w - J]\n",
     {{"T", "AB"}, {"T", "AC"}}},
    {"pad",
     "op P 1 (x[I, J]: T) -> y[P, Q]: T\n  T: f32 u8 f64\n  P = I + 3\n  Q = J + 5\n  y[p, q] = x[p - 1, q - "
     "3] else 2\n",
     {{"T", "AB"}}},
    {"stride",
     "op P 1 (x[I, J]: f32) -> y[P, Q]: f32\n  P = ceildiv(I, 2)\n  Q = ceildiv(J, 3)\n  y[p, q] = x[2 * p, "
     "3 * q]\n",
     {{"f32", "AB"}}},
    {"stores apart",
     "op P 1 (x[I, J]: f32) -> y[P, Q]: f32\n  P = 2 * I\n  Q = J + 1\n  y[p, q] = 0\n  y[2 * i + 1, j] = "
     "x[i, j]\n",
     {{"f32", "AB"}}},
    {"divided",
     "op P 1 (x[I, J]: T) -> y[I, J]: T\n  T: f32 i8\n  y[i, j] = x[i, j / 4 * 4] + j % 3\n",
     {{"T", "AB"}}},
    {"indices",
     "op P 1 (x[I, J]: f32) -> y[I, J]: f32\n  y[i, j] = select(i < j, f32(i * 3 - j), f32(i) * 0.5) + x[i, "
     "j]\n",
     {{"f32", "AB"}}},
    {"flat",
     "op P 1 (x[I, J]: T) -> y[I, J]: T\n  T: f32 i16\n  y[i, j] = flat(x)[flat(x[i, j])] + (flat(x)[i + j * "
     "2] else 1)\n",
     {{"T", "AB"}}},
    {"running sum",
     "op P 1 (x[I, K, J]: T) -> y[I, K, J]: T\n  T: f32 i32\n  over(k)\n    y[i, k, j] = (y[i, k - 1, j] "
     "else 0) + x[i, k, j]\n",
     {{"T", "ABC"}}},
    {"recurrence",
     "op P 1 (x[T, B, K]: f32, w[H, K]: f32, r[H, H]: f32, h0[B, H]: f32) -> y[T, B, H]: f32\n  over(t)\n"
     "    y[t, b, h] = tanh(sum(k) x[t, b, k] * w[h, k] * 0.1 + sum(j : H) (y[t - 1, b, j] else h0[b, j]) * "
     "r[h, j] * 0.1)\n",
     {{"f32", "4BC"}, {"f32", "DC"}, {"f32", "DD"}, {"f32", "BD"}}},
    {"random",
     "op P 1 (x[I, J]: f32) -> y[I, J]: f32\n  y[i, j] = uniform(7, i * J + j) + normal(8, j) * x[i, j]\n",
     {{"f32", "AB"}}},
    {"constant", "op P 1 (x[I, J]: T) -> y[I, J]: T\n  T: f32 f16 i64\n  y[i, j] = 3\n", {{"T", "AB"}}},
    {"scalar",
     "op P 1 (x[I, J]: f32, s[]: f32) -> y[I, J]: f32, z[]: f32\n  y[i, j] = x[i, j] * s[]\n  z[] = exp(s[]) "
     "+ 1\n",
     {{"f32", "AB"}, {"f32", ""}}},
/* a pass each, to a number and back (tile_join.c); below, what looks like it */
#define NUMBERS(name, least, most)                                                                           \
    {                                                                                                        \
        "numbers of " name,                                                                                  \
            "op P 1 (x[I..]: f32, s[]: f32, z[]: T, r[]: f32, v[]: T) -> y[I..]: f32, w[I..]: f32\n  T: u8 " \
            "i8 u16 i16\n"                                                                                   \
            "  y[i..] = f32(i32(min(max(round(x[i..] / s[]) + f32(z[]), " least "), " most                   \
            ")) - v[]) * r[]\n"                                                                              \
            "  w[i..] = f32(i32(min(max(round(x[i..] / s[]), " least "), " most "))) * r[]\n",               \
        {                                                                                                    \
            {"f32", "AB"}, {"f32", ""}, {"T", ""}, {"f32", ""}, { "T", "" }                                  \
        }                                                                                                    \
    }
    NUMBERS("u8", "0", "255"),
    NUMBERS("i8", "-128", "127"),
    NUMBERS("u16", "0", "65535"),
    NUMBERS("i16", "-32768", "32767"),
    {"numbers of rows",
     "op P 1 (x[I, J]: f32, s[I]: f32, z[I]: T, r[J]: f32, v[J]: T) -> y[I, J]: f32, w[I, J]: f32\n  T: u8 "
     "i16\n"
     "  y[i, j] = f32(i32(min(max(round(x[i, j] / s[i]) + f32(z[i]), 0), 255)) - v[j]) * r[j]\n"
     "  w[i, j] = f32(i32(min(max(round(x[i, j] / r[j]) + f32(v[j]), 0), 255)) - z[i]) * s[i]\n",
     {{"f32", "AB"}, {"f32", "A"}, {"T", "A"}, {"f32", "B"}, {"T", "B"}}},
    {"numbers read twice",
     "op P 1 (x[I..]: f32, s[]: f32, z[]: T) -> y[I..]: f32\n  T: u8 u16\n"
     "  q = min(max(round(x[i..] / s[]) + f32(z[]), 0), 65535)\n  r = round(x[i..] / s[])\n"
     "  d = f32(i32(q) - z[]) * s[]\n  y[i..] = (q + r) * d + f32(i32(r) - z[]) * s[]\n",
     {{"f32", "AB"}, {"f32", ""}, {"T", ""}}},
    {"other limits",
     "op P 1 (x[I..]: f32, s[]: f32, z[]: f32) -> y[I..]: f32, w[I..]: f32\n"
     "  y[i..] = min(max(round(x[i..] / s[]) + z[], 0), 127)\n"
     "  w[i..] = min(max(round(x[i..] / s[]) + z[], 0), 255) + max(min(round(x[i..] / s[]) + z[], 255), 0)\n",
     {{"f32", "AB"}, {"f32", ""}, {"f32", ""}}},
    {"quantised",
     "op P 1 (x[I, K]: u8, z[K, J]: i8, s[]: f32, n[J]: i8) -> y[I, J]: u8\n  a[i, j] = sum(k) (x[i, k] - "
     "128) * (z[k, j] - n[j])\n  y[i, "
     "j] = sat(round(a[i, j] * s[]) + 128)\n",
     {{"u8", "AB"}, {"i8", "BC"}, {"f32", ""}, {"i8", "C"}}},
};

static int64_t extents[26];
static int64_t letter(char c) { return c >= '0' && c <= '9' ? c - '0' : extents[c - 'A']; }

/* Memory for a tensor in a random layout: dims in any order, any of them backwards or with gaps. *at is
   element 0. */
static same_block layout(const int64_t *dim, int rank, int bytes, bool dense, int64_t *stride, char **at) {
    int order[HONE_MAX_RANK];
    int64_t n = 1, back = 0;
    for (int d = 0; d < rank; d++) order[d] = d;
    for (int d = rank - 1; d > 0 && !dense; d--)
        if (same_random() % 2) {
            const int o = (int)(same_random() % (uint64_t)(d + 1)), t = order[d];
            order[d] = order[o], order[o] = t;
        }
    for (int k = rank - 1; k >= 0; k--) {
        const int d = order[k];
        stride[d] = n;
        if (!dense && same_random() % 5 == 0) stride[d] *= 2;
        const int64_t span = stride[d] * (dim[d] > 0 ? dim[d] : 1);
        if (!dense && same_random() % 5 == 0 && dim[d] > 0)
            back += stride[d] * (dim[d] - 1), stride[d] = -stride[d];
        n = span;
    }
    same_block b = {.bytes = (size_t)(n * bytes)};
    b.at = calloc(b.bytes + 1, 1);
    *at = b.at + back * bytes;
    return b;
}

static void fill(same_block b, hone_dtype t, int64_t below) {
    static const double special[] = {0.0, -0.0, 1e30, -1e30, 1e-40, 0.5, 1.5, 2.5, 100, -100, 88.8, -104};
    const int bytes = hone_dtypes[t].bytes;
    const hone_kind kind = hone_dtypes[t].kind;
    const bool odd = same_random() % 4 == 0;
    for (size_t k = 0; k + (size_t)bytes <= b.bytes; k += (size_t)bytes) {
        hone_scalar v = {.f64 = ((double)(same_random() % 2001) - 1000) / 250};
        if (kind == HONE_KIND_FLOAT && odd && same_random() % 8 == 0) v.f64 = special[same_random() % 12];
        if (kind == HONE_KIND_FLOAT && odd && same_random() % 100 == 0)
            v.f64 = same_random() % 2 ? (double)NAN : (double)INFINITY;
        if (kind == HONE_KIND_FLOAT) hone_dtype_store(t, b.at + k, HONE_F64, v, false);
        else {
            v.i64 = (int64_t)(same_random() % 41) - 20;
            if (odd && same_random() % 16 == 0) v.i64 = same_random() % 2 ? INT64_MIN : INT64_MAX;
            if (below > 0) v.i64 = (int64_t)(same_random() % (uint64_t)(2 * below)) - below;
            hone_dtype_store(t, b.at + k, HONE_I64, v, false);
        }
    }
}

static int stages, refusals;
static void try_once(const sample *s, const hone_program *p, hone_dtype type) {
    hone_arena *arena = hone_arena_create();
    hone_arg arg[16];
    same_block block[16] = {{0}};
    char *at[16] = {0};
    int64_t dim[16][HONE_MAX_RANK], stride[16][HONE_MAX_RANK];
    memset(arg, 0, sizeof arg);
    const bool flat = !strcmp(s->name, "flat");
    for (int k = 0; k < p->n_in + p->n_out; k++) {
        arg[k] = (hone_arg){.present = true, .rank = -1, .n_content = -1};
        if (k >= p->n_in) continue;
        const operand *o = s->in + k;
        arg[k].dtype = !strcmp(o->type, "T") ? type : hone_dtype_named(o->type, strlen(o->type));
        arg[k].rank = (int8_t)strcspn(o->dims, "<"), arg[k].dim = dim[k];
        for (int d = 0; d < arg[k].rank; d++) dim[k][d] = letter(o->dims[d]);
        block[k] = layout(dim[k], arg[k].rank, hone_dtypes[arg[k].dtype].bytes, flat || same_random() % 2,
                          stride[k], &at[k]);
        fill(block[k], arg[k].dtype, o->dims[arg[k].rank] ? letter(o->dims[arg[k].rank + 1]) : 0);
    }
    const hone_call call = {.program = p, .arg = arg};
    const hone_instance *in = NULL;
    if (hone_instance_make(arena, &call, &in)) fail_msg("%s: %s", s->name, hone_fail_text());
    assert_non_null(in);
    hone_param *param = HONE_NEW_N(arena, hone_param, in->n_param + 1);
    if (hone_instance_solve(in, &call, param)) fail_msg("%s: %s", s->name, hone_fail_text());
    hone_tensor_view *place = HONE_NEW_N(arena, hone_tensor_view, in->n_tensor + 1);
    same_block *mine = HONE_NEW_N(arena, same_block, in->n_tensor + 1);
    for (int t = 0; t < in->n_tensor; t++) {
        const hone_tensor *x = in->tensor + t;
        char *zero;
        if (x->role == HONE_ROLE_IN) {
            hone_instance_strides(in, &call, param, t, dim[x->operand], stride[x->operand], place[t].stride);
            mine[t] = block[x->operand], place[t].at = at[x->operand];
            continue;
        }
        int64_t d[HONE_MAX_RANK], st[HONE_MAX_RANK];
        int rank = x->rank;
        for (int k = 0; k < rank; k++) d[k] = param[x->dim[k]].i;
        if (x->role == HONE_ROLE_OUT)
            hone_instance_out_shape(in, &call, param, x->operand - p->n_in, &rank, d);
        mine[t] = layout(d, rank, hone_dtypes[x->dtype].bytes,
                         x->role == HONE_ROLE_TEMP || flat || same_random() % 2, st, &zero);
        if (x->role == HONE_ROLE_OUT) hone_instance_strides(in, &call, param, t, d, st, place[t].stride);
        else memcpy(place[t].stride, st, sizeof st);
        place[t].at = zero;
    }
    const char *wrong = same_instance(in, param, place, mine, &stages, &refusals);
    if (wrong) {
        for (int k = 0; k < 4; k++) print_message("%c = %lld\n", 'A' + k, (long long)extents[k]);
        fail_msg("%s (%s): %s", s->name, hone_dtypes[type].name, wrong);
    }
    for (int t = 0; t < in->n_tensor; t++)
        if (in->tensor[t].role != HONE_ROLE_IN) free(mine[t].at);
    for (int k = 0; k < p->n_in; k++) free(block[k].at);
    hone_arena_destroy(arena);
}

static void every_sample(int trials, int size, const int64_t *sizes) {
    for (size_t k = 0; k < sizeof samples / sizeof *samples; k++) {
        hone_library *library;
        if (hone_library_create(&library) ||
            hone_library_add(library, samples[k].name, samples[k].row, strlen(samples[k].row)))
            fail_msg("%s", hone_fail_text());
        const hone_program *p = hone_library_find(library, "", "P");
        for (int t = 1; t < HONE_DTYPE_COUNT; t++) {
            if (p->n_type ? !(p->type[0].allowed >> t & 1) : t != HONE_DTYPE_F32) continue;
            for (int trial = 0; trial < trials; trial++) {
                for (int l = 0; l < 26; l++) extents[l] = sizes[same_random() % (uint64_t)size];
                try_once(samples + k, p, (hone_dtype)t);
            }
        }
        hone_library_destroy(library);
    }
}
static void test_small(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 13};
    every_sample(10, 10, sizes);
    assert_int_equal(refusals, 0);
}
static void test_long(void **state) { /* rows longer than a tile, reductions long enough for lanes */
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 17, 40};
    every_sample(2, 5, sizes);
    extents[2] = extents[3] = 3;
    for (int turn = 0; turn < 2; turn++) {
        for (size_t k = 0; k < sizeof samples / sizeof *samples; k++) {
            if (strlen(samples[k].in[0].dims) != 2 || !strcmp(samples[k].name, "matmul")) continue;
            extents[turn] = 1300, extents[!turn] = 3;
            hone_library *library;
            if (hone_library_create(&library) ||
                hone_library_add(library, samples[k].name, samples[k].row, strlen(samples[k].row)))
                fail_msg("%s", hone_fail_text());
            const hone_program *p = hone_library_find(library, "", "P");
            for (int t = 1; t < HONE_DTYPE_COUNT; t++)
                if (p->n_type ? p->type[0].allowed >> t & 1 : t == HONE_DTYPE_F32)
                    try_once(samples + k, p, (hone_dtype)t);
            hone_library_destroy(library);
        }
    }
}
static void test_levels(void **state) {
    static const uint32_t masks[] = {0, HONE_CPU_AVX2};
    for (int k = 0; k < 2; k++) {
        hone_cpu_mask(masks[k]);
        test_small(state);
        test_long(state);
    }
    hone_cpu_mask(UINT32_MAX);
}

/* ---- several steps as one pass ------------------------------------------------------------------------- */
static void test_joined(void **state) {
    (void)state;
    static const char row[] =
        "op P 1 (x[I]: f32, s[]: f32, z[]: u16) -> y[I]: f32\n"
        "  y[i] = f32(i32(min(max(round(x[i] / s[]) + f32(z[]), 0), 65535)) - z[]) * s[]\n";
    hone_library *library;
    assert_int_equal(
        hone_library_create(&library) || hone_library_add(library, "joined", row, sizeof row - 1), 0);
    const int64_t dx[1] = {1000};
    const hone_arg arg[4] = {
        {.present = true, .dtype = HONE_DTYPE_F32, .rank = 1, .dim = dx, .n_content = -1},
        {.present = true, .dtype = HONE_DTYPE_F32, .rank = 0, .dim = dx, .n_content = -1},
        {.present = true, .dtype = HONE_DTYPE_U16, .rank = 0, .dim = dx, .n_content = -1},
        {.present = true, .rank = -1, .n_content = -1}};
    const hone_call call = {.program = hone_library_find(library, "", "P"), .arg = arg};
    hone_arena *arena = hone_arena_create();
    const hone_instance *in = NULL;
    if (hone_instance_make(arena, &call, &in)) fail_msg("%s", hone_fail_text());
    hone_param *param = HONE_NEW_N(arena, hone_param, in->n_param + 1);
    if (hone_instance_solve(in, &call, param)) fail_msg("%s", hone_fail_text());
    hone_tensor_view place[4] = {{0}};
    for (int t = 0; t < in->n_tensor; t++) place[t].stride[0] = 1;
    hone_tilecode *code = NULL;
    assert_int_equal(hone_tilecode_make(arena, in, in->n_stage - 1, param, place, -1, &code), HONE_OK);
    int passes = 0;
    for (int k = 0; k < code->n_ins; k++)
        passes += !code->ins[k].level && code->ins[k].kind != HONE_TILE_LOAD;
    assert_int_equal(passes, 2); /* to a number, and back */
    hone_arena_destroy(arena);
    hone_library_destroy(library);
}

/* ---- an epilogue --------------------------------------------------------------------------------------- */
static void test_epilogue(void **state) {
    (void)state;
    static const char row[] = "op P 1 (x[I, K]: f32, b[K]: f32) -> y[I, K]: f32\n  a[i, k] = x[i, k] * 3\n  "
                              "y[i, k] = max(a[i, k] + b[k], 0)\n";
    hone_library *library;
    assert_int_equal(
        hone_library_create(&library) || hone_library_add(library, "epilogue", row, sizeof row - 1), 0);
    const hone_program *p = hone_library_find(library, "", "P");
    enum { I = 9, K = 37 };
    const int64_t dx[2] = {I, K}, db[1] = {K};
    const hone_arg arg[3] = {
        {.present = true, .dtype = HONE_DTYPE_F32, .rank = 2, .dim = dx, .n_content = -1},
        {.present = true, .dtype = HONE_DTYPE_F32, .rank = 1, .dim = db, .n_content = -1},
        {.present = true, .rank = -1, .n_content = -1}};
    const hone_call call = {.program = p, .arg = arg};
    hone_arena *arena = hone_arena_create();
    const hone_instance *in = NULL;
    if (hone_instance_make(arena, &call, &in)) fail_msg("%s", hone_fail_text());
    hone_param *param = HONE_NEW_N(arena, hone_param, in->n_param + 1);
    if (hone_instance_solve(in, &call, param)) fail_msg("%s", hone_fail_text());
    if (in->n_stage == 2) {
        hone_tensor_view place[4] = {{0}};
        float b[K], y[I * K], acc[I * K];
        void *base[4] = {0};
        for (int k = 0; k < I * K; k++) acc[k] = (float)(k % 23) - 11;
        for (int k = 0; k < K; k++) b[k] = (float)k * 0.25f - 4;
        for (int t = 0; t < in->n_tensor; t++) {
            int64_t n = 1;
            for (int d = in->tensor[t].rank - 1; d >= 0; d--)
                place[t].stride[d] = n, n *= param[in->tensor[t].dim[d]].i;
            /* a is nowhere in memory */
            base[t] = !strcmp(in->tensor[t].name, "b") ? b : !strcmp(in->tensor[t].name, "y") ? y : NULL;
        }
        hone_tilecode *code = NULL;
        for (int64_t calls = 0; !code; calls++) { /* with every allocation failing once */
            assert_true(calls < 100);
            hone_alloc_fail_after(calls);
            const hone_status s = hone_tilecode_make(arena, in, 1, param, place, in->stage[0].tensor, &code);
            assert_true(s == HONE_OK || s == HONE_NO_MEMORY);
            assert_true((s == HONE_OK) == (code != NULL));
        }
        hone_alloc_fail_after(-1);
        void *scratch = hone_alloc(hone_tilecode_scratch(code));
        for (int64_t first = 0, n; first < I * K; first += n) {
            n = first + 50 < I * K ? 50 : I * K - first;
            assert_int_equal(hone_tilecode_run(code, base, first, n, 0, acc + first, scratch), HONE_OK);
        }
        for (int k = 0; k < I * K; k++) assert_true(y[k] == hone_max_f32(acc[k] + b[k % K], 0));
        hone_free(scratch);
    }
    hone_arena_destroy(arena);
    hone_library_destroy(library);
}

/* ---- fn.h: f32 functions against double, integers at their edges --------------------------------------- */
static double ulps(float got, double want) {
    const float w = (float)want;
    if (isnan(want)) return isnan(got) ? 0 : 1e9;
    if (isinf(w) || isinf(got)) return w == got ? 0 : 1e9;
    if (w == 0 && got == 0) return signbit(w) == signbit(got) ? 0 : 1e9;
    int e;
    frexp(want, &e);
    return fabs((double)got - want) / ldexp(1, (e < -125 ? -125 : e) - 24);
}
static double sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }
static void test_functions(void **state) {
    (void)state;
    static const struct {
        const char *name;
        float (*f)(float);
        double (*exact)(double);
        double most;
    } rows[] = {
        {"exp", hone_exp_f32, exp, 1},
        {"log", hone_log_f32, log, 1},
        {"tanh", hone_tanh_f32, tanh, 1.5},
        {"erf", hone_erf_f32, erf, 1.5},
        {"sigmoid", hone_sigmoid_f32, sigmoid, 2},
        {"expm1", hone_expm1_f32, expm1, 2},
        {"log1p", hone_log1p_f32, log1p, 2},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (uint64_t u = 0; u <= UINT32_MAX; u += 10007) {
            const float x = hone_from_bits_f32((uint32_t)u);
            const double off = ulps(rows[r].f(x), rows[r].exact(x));
            if (off > rows[r].most)
                fail_msg("%s(%a) is %a: %.2f ulp off", rows[r].name, x, rows[r].f(x), off);
        }
    static const float edges[] = {0.0f,      -0.0f,           INFINITY,   -INFINITY, NAN,
                                  88.72283f, 88.72284f,       -87.33655f, -103.97f,  -103.98f,
                                  0x1p-149f, 0x1.fffffep127f, 1.0f};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t k = 0; k < sizeof edges / sizeof *edges; k++) {
            const double off = ulps(rows[r].f(edges[k]), rows[r].exact(edges[k]));
            if (off > rows[r].most) fail_msg("%s(%a) is %a", rows[r].name, edges[k], rows[r].f(edges[k]));
        }
    assert_int_equal(hone_div_i32(-7, 2), -4);
    assert_int_equal(hone_mod_i32(-7, 2), 1);
    assert_int_equal(hone_mod_i64(7, -3), -2);
    assert_int_equal(hone_div_i32(INT32_MIN, -1), INT32_MIN);
    assert_int_equal(hone_rem_i64(INT64_MIN, -1), 0);
    assert_int_equal(hone_div_i64(5, 0) | hone_mod_i64(5, 0) | hone_quot_i32(5, 0) | hone_rem_i32(5, 0), 0);
    assert_int_equal(hone_shl_i32(1, 32) | hone_shl_i32(1, -1) | hone_shr_i32(-1, 32), 0);
    assert_int_equal(hone_shr_i32(-8, 1), -4);
    assert_int_equal(hone_pow_i32(-1, -3), -1);
    assert_int_equal(hone_pow_i32(2, -1), 0);
    assert_int_equal(hone_pow_i32(3, 5), 243);
    assert_int_equal(hone_popcount_i32(-1), 32);
    assert_int_equal(hone_cast_f32_i32(3e9f), INT32_MAX);
    assert_int_equal(hone_cast_f32_i32(NAN), 0);
    assert_int_equal(hone_cast_f64_i64(-1e30), INT64_MIN);
    assert_true(hone_cast_f32_u64(-1.0f) == 0 && hone_cast_f32_u64(1e30f) == UINT64_MAX);
    assert_true(isnan(hone_max_f32(NAN, 1)) && isnan(hone_max_f32(1, NAN)) &&
                isnan(hone_min_f64(1, (double)NAN)));
    assert_true(!signbit(hone_max_f32(0.0f, -0.0f)) && !signbit(hone_max_f32(-0.0f, 0.0f)) &&
                signbit(hone_min_f32(0.0f, -0.0f)));
    double mean = 0, square = 0;
    for (int k = 0; k < 20000; k++) {
        const float u = hone_uniform_i64(3, k), g = hone_normal_i64(3, k);
        assert_true(u >= 0 && u < 1);
        mean += u, square += (double)g * g;
    }
    assert_true(fabs(mean / 20000 - 0.5) < 0.01 && fabs(square / 20000 - 1) < 0.05);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions), cmocka_unit_test(test_small),  cmocka_unit_test(test_long),
        cmocka_unit_test(test_levels),    cmocka_unit_test(test_joined), cmocka_unit_test(test_epilogue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
