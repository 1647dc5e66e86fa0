/* SPDX-License-Identifier: Apache-2.0
   compact: the marked ones of many places, in their order: work-groups count theirs, one adds the counts up,
   then each writes its own from where it begins. NonZero and Compress are little more. */
#include "base/round.h"
#include "device/functions/functions.h"

#include <string.h>

enum { PER = 8, SHARE = HONE_FN_THREADS * PER };
/* Of a body: `mine` of each thread becomes the sum of those up to and with it, in sum[]; ends in a
   barrier. */
#define SCAN                                                                                                 \
    "        sum[HONE_THREAD] = mine;\n        HONE_BARRIER();\n"                                            \
    "        for (uint32_t by = 1; by < 256; by *= 2) {\n"                                                   \
    "            const int64_t before = HONE_THREAD >= by ? sum[HONE_THREAD - by] : 0;\n"                    \
    "            HONE_BARRIER();\n            sum[HONE_THREAD] += before;\n            HONE_BARRIER();\n   " \
    "     }\n"
_Static_assert(HONE_FN_THREADS == 256, "the texts have it");

static const char running[] =
    "    HONE_SHARED int64_t sum[256];\n    int64_t all = 0;\n"
    "    for (int64_t begin = 0; begin < n; begin += 256) {\n"
    "        const int64_t at = begin + HONE_THREAD, mine = at < n ? number[at] : 0;\n" SCAN
    "        if (at < n) number[at] = all + sum[HONE_THREAD] - mine;\n"
    "        all += sum[255];\n        HONE_BARRIER();\n    }\n"
    "    if (HONE_THREAD == 0) count[0] = all;\n";
void hone_fn_running_sums(hone_function *f, int numbers, int64_t n) {
    const hone_function_arg arg[] = {HONE_FN_SCRATCH("int64_t", "number", numbers),
                                     HONE_FN_WRITE("int64_t", "count", hone_fn_count(f)),
                                     HONE_FN_NUMBER("n", n)};
    hone_fn_launch(f, 1, HONE_FN_THREADS, "", running, arg, 3);
}
void hone_fn_compact(hone_function *f, int64_t n, const hone_fn_choice *c) {
    const int64_t groups = hone_ceil_div(n, SHARE);
    const int partial = hone_fn_scratch(f, groups * (int64_t)sizeof(int64_t));
    hone_function_arg *arg = HONE_NEW_N(f->arena, hone_function_arg, c->n_arg + 2);
    const char *counting =
        hone_arena_text(f->arena,
                        "    HONE_SHARED int64_t sum[256];\n    int64_t mine = 0;\n"
                        "    for (int r = 0; r < %d; r++) {\n"
                        "        const int64_t at = (int64_t)HONE_GROUP * %d + r * 256 + HONE_THREAD;\n"
                        "        if (at < n && (%s)) mine++;\n    }\n    {\n" SCAN
                        "    }\n    if (HONE_THREAD == 0) partial[HONE_GROUP] = sum[255];\n",
                        PER, SHARE, c->mark);
    const char *writing =
        hone_arena_text(f->arena,
                        "    HONE_SHARED int64_t sum[256];\n    int64_t done = partial[HONE_GROUP];\n"
                        "    for (int r = 0; r < %d; r++) {\n"
                        "        const int64_t at = (int64_t)HONE_GROUP * %d + r * 256 + HONE_THREAD;\n"
                        "        const int64_t mine = at < n && (%s) ? 1 : 0;\n" SCAN
                        "        const int64_t upto = done + sum[HONE_THREAD], to = upto - 1;\n"
                        "        if (mine != 0) {\n%s        }\n        if (at < n) {\n%s        }\n"
                        "        done += sum[255];\n        HONE_BARRIER();\n    }\n",
                        PER, SHARE, c->mark, c->emit, c->each ? c->each : "");
    if (!arg || !counting || !writing) {
        f->failed = true;
        return;
    }
    memcpy(arg, c->arg, sizeof *arg * (size_t)c->n_arg);
    arg[c->n_arg] = HONE_FN_SCRATCH("int64_t", "partial", partial),
    arg[c->n_arg + 1] = HONE_FN_NUMBER("n", n);
    hone_fn_launch(f, groups, HONE_FN_THREADS, "", counting, arg, c->n_arg + 2);
    hone_fn_running_sums(f, partial, groups);
    hone_fn_launch(f, groups, HONE_FN_THREADS, "", writing, arg, c->n_arg + 2);
}

/* ---- NonZero ------------------------------------------------------------------------------------------- */
enum { MOST = INT32_MAX };
static int64_t count_of(const hone_fact *f) {
    int64_t n;
    return hone_fact_shaped(f) && f->dtype != HONE_DTYPE_STRING && hone_count_of(f->dim, f->rank, &n) ? n : 0;
}
static bool takes_nonzero(hone_function_call *c) {
    const hone_fact *x = c->in;
    const int64_t n = count_of(x);
    if (n < 1 || n > MOST || x->rank < 1 || x->rank > 8 || !hone_fn_bits(x->dtype)) return false;
    c->out[0] = (hone_fact){.dtype = HONE_DTYPE_I64, .rank = 2, .dim = {x->rank, n}};
    c->counted[0] = 1;
    return true;
}
static void make_nonzero(hone_function *f) {
    static const char *const size[] = {"d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7"};
    const hone_fact *x = f->call->in;
    const bool is_float = hone_dtypes[x->dtype].kind == HONE_KIND_FLOAT;
    hone_function_arg arg[3 + HONE_MAX_RANK] = {HONE_FN_READ(hone_fn_bits(x->dtype), "x", 0),
                                                HONE_FN_WRITE("int64_t", "y", hone_fn_out(f, 0)),
                                                HONE_FN_NUMBER("most", f->call->out[0].dim[1])};
    hone_text emit = {0};
    hone_text_put(&emit, "            int64_t rest = at;\n");
    for (int d = x->rank - 1; d >= 0; d--) {
        hone_text_put(&emit, "            y[%d * most + to] = rest %% %s;\n            rest /= %s;\n", d,
                      size[d], size[d]);
        arg[3 + d] = HONE_FN_NUMBER(size[d], x->dim[d]);
    }
    const hone_fn_choice c = {
        .mark = is_float ? hone_arena_text(f->arena, "(%s)(x[at] << 1) != 0", hone_fn_bits(x->dtype))
                         : "x[at] != 0",
        .emit = emit.text,
        .arg = arg,
        .n_arg = 3 + x->rank};
    if (emit.failed || !c.mark) f->failed = true;
    else hone_fn_compact(f, count_of(x), &c);
    hone_text_free(&emit);
}
const hone_function_row hone_function_nonzero = {"nonzero", takes_nonzero, make_nonzero};

/* ---- Compress ------------------------------------------------------------------------------------------ */
typedef struct {
    int axis;
    int64_t outer, n, inner, most;
} around;
static bool around_of(const hone_function_call *c, around *out) {
    const hone_fact *x = c->in;
    const hone_attr *axis = hone_attr_find(c->of->attr, c->of->n_attr, "axis");
    *out = (around){0, 1, count_of(x), 1, 0};
    if (axis) {
        int64_t a = hone_attr_int(c->of->attr, c->of->n_attr, "axis", 0);
        a += a < 0 ? x->rank : 0;
        if (a < 0 || a >= x->rank) return false;
        out->axis = (int)a, out->n = x->dim[a];
        for (int d = 0; d < x->rank; d++) *(d < a ? &out->outer : &out->inner) *= d == a ? 1 : x->dim[d];
    }
    out->most = c->in[1].dim[0] < out->n ? c->in[1].dim[0] : out->n;
    return true;
}
static bool takes_compress(hone_function_call *c) {
    const hone_fact *x = c->in, *which = c->in + 1;
    around a;
    if (count_of(x) < 1 || count_of(x) > MOST || which->rank != 1 || which->dtype != HONE_DTYPE_BOOL ||
        count_of(which) < 1 || !hone_fn_bits(x->dtype) || !around_of(c, &a) || which->dim[0] > a.n)
        return false; /* a condition that is longer may be wrong: the host says so */
    c->out[0] = hone_attr_find(c->of->attr, c->of->n_attr, "axis") ? *x : (hone_fact){.rank = 1};
    c->out[0].dtype = x->dtype, c->out[0].value = NULL, c->out[0].contents = NULL;
    c->out[0].dim[a.axis] = a.most, c->counted[0] = (int8_t)a.axis;
    return true;
}
static void make_compress(hone_function *f) {
    around a;
    const char *bits = hone_fn_bits(f->call->in[0].dtype);
    if (!around_of(f->call, &a)) {
        f->failed = true;
        return;
    }
    const int list = hone_fn_scratch(f, a.most * (int64_t)sizeof(uint32_t));
    const hone_function_arg choose[] = {HONE_FN_READ("uint8_t", "which", 1),
                                        HONE_FN_SCRATCH("uint32_t", "list", list)};
    hone_fn_compact(f, a.most,
                    &(hone_fn_choice){.mark = "which[at] != 0",
                                      .emit = "            list[to] = (uint32_t)at;\n",
                                      .arg = choose,
                                      .n_arg = 2});
    const hone_function_arg gather[] = {HONE_FN_READ(bits, "x", 0),
                                        HONE_FN_WRITE(bits, "y", hone_fn_out(f, 0)),
                                        HONE_FN_SCRATCH("uint32_t", "list", list),
                                        HONE_FN_READ("int64_t", "count", hone_fn_count(f)),
                                        HONE_FN_NUMBER("most", a.most),
                                        HONE_FN_NUMBER("n", a.n),
                                        HONE_FN_NUMBER("inner", a.inner)};
    hone_fn_each(f, a.outer * a.most * a.inner, "",
                 "        const int64_t i = at % inner, p = at / inner % most, o = at / inner / most;\n"
                 "        if (p < count[0]) y[at] = x[(o * n + list[p]) * inner + i];\n",
                 gather, 7);
}
const hone_function_row hone_function_compress = {"compress", takes_compress, make_compress};
