/* SPDX-License-Identifier: Apache-2.0
   functions: see functions.h. The table, and what all of them are built with. */
#include "device/functions/functions.h"
#include "base/round.h"

#include <inttypes.h>
#include <string.h>

static const hone_function_row *const rows[] = {&hone_function_topk, &hone_function_nonzero,
                                                &hone_function_compress, &hone_function_nms,
                                                &hone_function_unique};
static const hone_function_row *row_of(const hone_function_call *c) {
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (!strcmp(rows[k]->name, c->of->program->how)) return rows[k];
    return NULL;
}
bool hone_function_takes(hone_function_call *c) {
    const hone_function_row *row = row_of(c);
    return row && c->of->n_in + c->of->n_out + 1 <= HONE_MOST_FUNCTION && row->takes(c);
}
hone_status hone_function_make(hone_arena *arena, const hone_kernel_target *target,
                               const hone_function_call *c, hone_kernels *out) {
    hone_function f = {.arena = arena, .target = target, .call = c};
    const hone_function_row *row = row_of(c);
    if (!row) return hone_fail(HONE_BUG, "there is no device function for %s", c->of->program->name);
    row->make(&f);
    *out = (hone_kernels){.n_launch = f.launch.n, .n_turn = 1, .n_scratch = f.scratch.n};
    out->launch = hone_arena_copy(arena, f.launch.at, sizeof *f.launch.at * (size_t)f.launch.n);
    out->scratch_bytes = hone_arena_copy(arena, f.scratch.at, sizeof *f.scratch.at * (size_t)f.scratch.n);
    out->turn = hone_arena_copy(arena, &(hone_launches){.n = f.launch.n, .rounds = 1}, sizeof *out->turn);
    hone_vec_free(&f.launch);
    hone_vec_free(&f.scratch);
    return f.failed || !out->launch || !out->scratch_bytes || !out->turn ? hone_steps_no_memory() : HONE_OK;
}

/* ---- building ------------------------------------------------------------------------------------------ */
int hone_fn_out(const hone_function *f, int k) {
    const hone_node *n = f->call->of;
    return k < n->n_out && n->out[k] >= 0 ? n->n_in + k : -1;
}
int hone_fn_count(const hone_function *f) { return f->call->of->n_in + f->call->of->n_out; }
int64_t hone_fn_power(int64_t n) {
    int64_t p = 2;
    while (p < n) p *= 2;
    return p;
}
int hone_fn_scratch(hone_function *f, int64_t bytes) {
    if (!hone_push(&f->scratch, bytes)) f->failed = true;
    return f->scratch.n - 1;
}
static uint64_t hash(const char *s, uint64_t h) {
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}
void hone_fn_launch(hone_function *f, int64_t groups, int threads, const char *helpers, const char *body,
                    const hone_function_arg *arg, int n) {
    const bool offsets = f->target->lang == HONE_LANG_OPENCL;
    hone_text head = {0}, start = {0}, all = {0};
    hone_karg *karg = HONE_NEW_N(f->arena, hone_karg, 2 * n + 1);
    int m = 0;
    for (int k = 0; k < n && karg; k++) {
        const hone_function_arg *a = arg + k;
        const bool memory = a->kind == HONE_KARG_TENSOR || a->kind == HONE_KARG_SCRATCH;
        const char *constant = a->writes ? "" : "const ", *sep = k ? ", " : "";
        if (!memory) hone_text_put(&head, "%sconst %s %s", sep, a->type, a->name);
        else if (!offsets) hone_text_put(&head, "%s%s%s *const %s", sep, constant, a->type, a->name);
        else {
            hone_text_put(&head, "%sHONE_GLOBAL uchar *hone_b%d, const int64_t hone_o%d", sep, k, k);
            hone_text_put(&start, "    HONE_GLOBAL %s%s *const %s = HONE_AT(%s%s, hone_b%d, hone_o%d);\n",
                          constant, a->type, a->name, constant, a->type, k, k);
        }
        karg[m++] =
            (hone_karg){.kind = a->kind, .which = a->which, .writes = a->writes, .i = a->i, .f = a->f};
        if (memory && offsets) karg[m++] = (hone_karg){.kind = HONE_KARG_OFFSET, .which = a->which};
    }
    hone_text_put(&all, "(%s) {\n    HONE_BEGIN();\n%s%s}\n", head.text ? head.text : "",
                  start.text ? start.text : "", body);
    hone_launch l = {.groups = groups, .threads = threads, .arg = karg, .n_arg = m};
    if (!all.failed && karg) {
        const uint64_t h = hash(helpers, hash(all.text, 0xcbf29ce484222325u + (uint64_t)threads));
        l.name =
            hone_arena_text(f->arena, "hone_f%016" PRIx64 "%08x", h, (unsigned)(hash(all.text, h) >> 32));
        l.text = hone_arena_text(f->arena, "%sHONE_ENTRY(%s, %d)%s", helpers, l.name ? l.name : "", threads,
                                 all.text);
    }
    if (head.failed || start.failed || !l.name || !l.text || !hone_push(&f->launch, l)) f->failed = true;
    hone_text_free(&head), hone_text_free(&start), hone_text_free(&all);
}
void hone_fn_each(hone_function *f, int64_t places, const char *helpers, const char *body,
                  const hone_function_arg *arg, int n) {
    hone_function_arg *all = HONE_NEW_N(f->arena, hone_function_arg, n + 1);
    const char *text = hone_arena_text(
        f->arena,
        "    const int64_t at = (int64_t)HONE_GROUP * %d + HONE_THREAD;\n    if (at < total) {\n%s    }\n",
        HONE_FN_THREADS, body);
    if (!all || !text) {
        f->failed = true;
        return;
    }
    memcpy(all, arg, sizeof *arg * (size_t)n);
    all[n] = HONE_FN_NUMBER("total", places);
    hone_fn_launch(f, hone_ceil_div(places, HONE_FN_THREADS), HONE_FN_THREADS, helpers, text, all, n + 1);
}

/* ---- keys ---------------------------------------------------------------------------------------------- */
typedef enum { UNORDERED, UNSIGNED, SIGNED, FLOAT, TRUTH } order;
static const struct {
    hone_dtype type;
    order order;
    int bits;
    uint64_t infinity;
} ordered[] = {{HONE_DTYPE_U8, UNSIGNED, 8, 0},         {HONE_DTYPE_U16, UNSIGNED, 16, 0},
               {HONE_DTYPE_U32, UNSIGNED, 32, 0},       {HONE_DTYPE_U64, UNSIGNED, 64, 0},
               {HONE_DTYPE_I8, SIGNED, 8, 0},           {HONE_DTYPE_I16, SIGNED, 16, 0},
               {HONE_DTYPE_I32, SIGNED, 32, 0},         {HONE_DTYPE_I64, SIGNED, 64, 0},
               {HONE_DTYPE_F16, FLOAT, 16, 0x7c00},     {HONE_DTYPE_BF16, FLOAT, 16, 0x7f80},
               {HONE_DTYPE_F32, FLOAT, 32, 0x7f800000}, {HONE_DTYPE_F64, FLOAT, 64, 0x7ff0000000000000},
               {HONE_DTYPE_BOOL, TRUTH, 8, 0}};
static int order_of(hone_dtype t) {
    for (size_t k = 0; k < sizeof ordered / sizeof *ordered; k++)
        if (ordered[k].type == t) return (int)k;
    return -1;
}
const char *hone_fn_bits(hone_dtype t) {
    static const char *const types[] = {
        [8] = "uint8_t", [16] = "uint16_t", [32] = "uint32_t", [64] = "uint64_t"};
    const int k = order_of(t);
    return k < 0 ? NULL : types[ordered[k].bits];
}
const char *hone_fn_key(hone_function *f, hone_dtype t) {
    const int k = order_of(t);
    const char *name = hone_dtypes[t].name, *text = NULL;
    const uint64_t all = ~(uint64_t)0 >> (64 - ordered[k].bits), sign = (uint64_t)1 << (ordered[k].bits - 1);
    const char *guard = "#ifndef HONE_KEY_%s\n#define HONE_KEY_%s\nHONE_INLINE uint64_t hone_key_%s(uint64_t "
                        "b) { return %s; }\n#endif\n";
    const char *said = "b";
    if (ordered[k].order == TRUTH) said = "(uint64_t)(b != 0)";
    if (ordered[k].order == SIGNED) said = hone_arena_text(f->arena, "b ^ 0x%" PRIx64, sign);
    if (ordered[k].order == FLOAT)
        said = hone_arena_text(f->arena,
                               "(b & 0x%" PRIx64 ") > 0x%" PRIx64 " ? ~(uint64_t)0 : (b & 0x%" PRIx64
                               ") == 0 ? 0x%" PRIx64 " : (b & 0x%" PRIx64 ") != 0 ? ~b & 0x%" PRIx64
                               " : b | 0x%" PRIx64,
                               all >> 1, ordered[k].infinity, all >> 1, sign, sign, all, sign);
    if (said) text = hone_arena_text(f->arena, guard, name, name, name, said);
    if (!text) f->failed = true;
    return text ? text : "";
}
