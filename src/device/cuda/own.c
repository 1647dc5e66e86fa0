/* SPDX-License-Identifier: Apache-2.0
   own: see own.h. */
#include "device/cuda/own.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "device/cuda/nvrtc.h"
#include "device/kept.h"

typedef struct { /* what stages of a call are ours: one a stage, NULL: printed */
    hone_own_product **product;
    hone_own_attention **attention;
    const hone_cuda_facts *gpu;
    int n;
} owned;
static hone_status no_memory(void) { return hone_fail(HONE_NO_MEMORY, "no memory for a plan"); }

hone_status hone_own_match(void *gpu, hone_arena *arena, const hone_device_call *c, hone_printed_own *out) {
    const hone_instance *in = c->instance;
    *out = (hone_printed_own){0};
    if (c->how.precision != HONE_DTYPE_F16 && c->how.precision != HONE_DTYPE_BF16) return HONE_OK;
    owned *o = HONE_NEW(arena, owned);
    hone_ref *ref = HONE_NEW_N(arena, hone_ref, in->n_stage + 1);
    int64_t *bytes = HONE_NEW_N(arena, int64_t, in->n_stage + 1);
    if (!o || !ref || !bytes || !(o->product = HONE_NEW_N(arena, hone_own_product *, in->n_stage + 1)) ||
        !(o->attention = HONE_NEW_N(arena, hone_own_attention *, in->n_stage + 1)))
        return no_memory();
    o->gpu = hone_cuda_facts_of(gpu), o->n = in->n_stage;
    bool any = false;
    for (int k = 0; k < in->n_stage && in->n_tensor + out->n_ref < HONE_MOST_WHOLE;) {
        HONE_TRY(hone_own_attention_match(arena, c, k, o->attention + k));
        any |= o->attention[k] != NULL;
        ref[out->n_ref] = (hone_ref){.base = HONE_BASE_NONE};
        HONE_TRY(hone_own_product_match(arena, c, k, in->n_tensor + out->n_ref, o->product + k, ref + out->n_ref, bytes + out->n_ref));
        if (!o->product[k]) {
            k++;
            continue;
        }
        any = true;
        out->unread |= hone_own_product_unread(o->product[k]);
        if (ref[out->n_ref].base != HONE_BASE_NONE) out->n_ref++;
        k += hone_own_product_stages(o->product[k]);
    }
    for (int k = 0; k < in->n_stage; k++) { /* weights that a printed stage reads as well stay */
        bool ours = false;
        for (int q = 0; q <= k; q++) ours |= o->product[q] && k < q + hone_own_product_stages(o->product[q]);
        if (!ours) out->unread &= ~in->stage[k].uses;
    }
    out->ref = ref, out->bytes = bytes, out->of = any ? o : NULL, out->tactic = "tensor cores";
    return HONE_OK;
}
hone_status hone_own_take(void *gpu, hone_arena *arena, const hone_printed_own *own, const hone_instance *in, const hone_ref *ref,
                          int stage, hone_taken *out) {
    const owned *o = own->of;
    (void)gpu;
    if (o->attention[stage]) HONE_TRY(hone_own_attention_take(arena, o->gpu, o->attention[stage], in, ref, out));
    if (out->n_stage) return HONE_OK;
    return o->product[stage] ? hone_own_product_take(arena, o->gpu, o->product[stage], in, ref, out) : HONE_OK;
}

/* ---- copies ---- */
int64_t hone_own_copy_bytes(const hone_own_copy *c) {
    int64_t n = c->padded * hone_dtypes[c->to].bytes;
    for (int k = 0; k < HONE_OWN_COPY_AXES - 1; k++) n *= c->extent[k];
    return n;
}
hone_status hone_own_copy_launch(hone_arena *arena, const hone_own_copy *c, hone_own_place from, int scratch, hone_launch *out) {
    enum { ARGS = 3 + 2 * HONE_OWN_COPY_AXES + 3, THREADS = 256 };
    const int64_t total = hone_own_copy_bytes(c) / hone_dtypes[c->to].bytes;
    const bool narrow = total < INT32_MAX;
    hone_karg *arg = HONE_NEW_N(arena, hone_karg, ARGS);
    if (!arg) return no_memory();
    int n = 0;
    arg[n++] = from.scratch ? (hone_karg){.kind = HONE_KARG_SCRATCH, .which = from.which}
                            : (hone_karg){.kind = HONE_KARG_TENSOR, .which = from.which};
    arg[n++] = (hone_karg){.kind = HONE_KARG_SCRATCH, .which = scratch, .writes = true};
    arg[n++] = (hone_karg){.kind = HONE_KARG_I64, .i = total};
    arg[n++] = (hone_karg){.kind = HONE_KARG_I64, .i = from.at / hone_dtypes[c->from].bytes};
    arg[n++] = (hone_karg){.kind = HONE_KARG_I64, .i = c->padded};
    for (int k = 1; k < HONE_OWN_COPY_AXES; k++) arg[n++] = (hone_karg){.kind = HONE_KARG_I64, .i = c->extent[k]};
    for (int k = 0; k < HONE_OWN_COPY_AXES; k++) arg[n++] = (hone_karg){.kind = HONE_KARG_I64, .i = c->stride[k]};
    const char *type = narrow ? "uint32_t" : "uint64_t", *name_from = hone_dtypes[c->from].name, *name_to = hone_dtypes[c->to].name;
    out->name = hone_arena_text(arena, "hone_copy_%s_%s_%d", name_from, name_to, narrow);
    const char *element[2];
    for (int k = 0; k < 2; k++) element[k] = hone_dtypes[k ? c->to : c->from].bytes == 2 ? "uint16_t" : "float";
    if (out->name)
        out->text = hone_arena_text(arena,
                                    "HONE_ENTRY(%s, %d)(const %s *const x, %s *const y, const int64_t total, const int64_t first, const "
                                    "int64_t padded, const int64_t e1, const "
                                    "int64_t e2, const int64_t e3, const int64_t e4, const int64_t s0, const int64_t s1, const int64_t s2, "
                                    "const int64_t s3, const int64_t s4) {\n"
                                    "    typedef %s count;\n"
                                    "    count i = (count)HONE_GROUP * %du + HONE_THREAD;\n"
                                    "    if (i >= (count)total) return;\n"
                                    "    %s *const to = y + i;\n"
                                    "    const count i4 = i %% (count)padded;\n"
                                    "    i /= (count)padded;\n"
                                    "    const count i3 = i %% (count)e3;\n"
                                    "    i /= (count)e3;\n"
                                    "    const count i2 = i %% (count)e2;\n"
                                    "    i /= (count)e2;\n"
                                    "    const count i1 = i %% (count)e1, i0 = i / (count)e1;\n"
                                    "    *to = hone_put_%s_f32(i4 < (count)e4 ? hone_get_%s(x[first + (int64_t)i0 * s0 + (int64_t)i1 * s1 "
                                    "+ (int64_t)i2 * s2 + (int64_t)i3 * s3 + "
                                    "(int64_t)i4 * s4]) : 0.0f, 0);\n"
                                    "}\n",
                                    out->name, THREADS, element[0], element[1], type, THREADS, element[1], name_to, name_from);
    if (!out->name || !out->text) return no_memory();
    out->groups = (total + THREADS - 1) / THREADS, out->threads = THREADS, out->arg = arg, out->n_arg = n;
    return HONE_OK;
}

hone_status hone_own_copied(hone_arena *arena, const hone_own_copy *c, hone_own_place *place, hone_taken *out) {
    const int scratch = out->first_scratch + out->n_scratch;
    out->scratch_bytes[out->n_scratch++] = hone_own_copy_bytes(c) + 256;
    HONE_TRY(hone_own_copy_launch(arena, c, *place, scratch, out->launch + out->n_launch++));
    *place = (hone_own_place){scratch, true, 0};
    return HONE_OK;
}

/* ---- kernels ---- */
static uint64_t hash(const char *s, uint64_t h) {
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}
hone_status hone_own_finish(hone_arena *arena, hone_text *text, const char *entry, hone_own_launch *own, hone_launch *out) {
    if (text->failed) {
        hone_text_free(text);
        return no_memory();
    }
    hone_own_launch *kept = hone_arena_copy(arena, own, sizeof *own);
    out->text = hone_arena_text(arena, "%s", text->text);
    out->name = hone_arena_text(arena, "own_%016" PRIx64 "%016" PRIx64, hash(text->text, 0xcbf29ce484222325u), hash(text->text, 77));
    hone_text_free(text);
    if (!kept || !out->text || !out->name) return no_memory();
    out->own = kept, out->entry = entry, out->threads = own->shape.threads, out->shared_bytes = own->shape.shared_bytes;
    out->groups = (int64_t)own->shape.grid[0] * own->shape.grid[1] * own->shape.grid[2];
    return HONE_OK;
}
hone_status hone_own_compile(void *gpu, const hone_launch *l, const char *cache, void **kernel) {
    const char *arch = hone_cuda_facts_of(gpu)->arch;
    char compiler[40];
    int major = 0, minor = 0;
    size_t bytes = 0;
    (void)!hone_nvrtc_version(&major, &minor);
    snprintf(compiler, sizeof compiler, "NVRTC %d.%d", major, minor);
    const hone_kept kept = hone_kept_name(cache, "cubin", (const char *const[]){l->text, arch, compiler}, 3);
    void *code = hone_kept_get(&kept, &bytes);
    if (!code) {
        HONE_TRY(hone_nvrtc_compile(l->text, l->entry, arch, &code, &bytes));
        hone_kept_put(&kept, code, bytes);
    }
    hone_cuda_kernel loaded = {0};
    hone_status s = hone_cuda_enter(gpu);
    if (!s) s = hone_cuda_load(gpu, code, l->entry, l->shared_bytes, &loaded); /* kept for the process */
    hone_free(code);
    *kernel = loaded.function;
    return s;
}

/* ---- runs ---- */
static hone_cuda_address address(const hone_printed_memory *m, hone_own_place p) {
    if (p.which < 0) return 0;
    const hone_printed_arg *a = (p.scratch ? m->scratch : m->ref) + p.which;
    return (hone_cuda_address)(uintptr_t)a->memory + (hone_cuda_address)(a->offset + p.at);
}
hone_status hone_own_run(hone_cuda *g, void *kernel, const hone_launch *l, const hone_printed_memory *m) {
    const hone_own_launch *o = l->own;
    const hone_cuda_kernel k = {.function = kernel};
    const hone_cuda_address a = address(m, o->a), b = address(m, o->b), c = address(m, o->c), bias = address(m, o->bias),
                            residual = address(m, o->residual), v = address(m, o->v), workspace = address(m, o->workspace);
    if ((a | b | c | residual | v) % (unsigned)o->aligned)
        return hone_fail(HONE_NOT_SUPPORTED, "a tensor in GPU memory is not aligned to %d bytes, as its kernel wants it", o->aligned);
    HONE_TRY(hone_cuda_enter(g));
    if (o->kind == HONE_OWN_DEPTHWISE) {
        hone_cuda_window w = o->depthwise.p;
        w.x = a, w.w = b, w.y = c, w.bias = bias, w.residual = residual;
        return hone_cuda_launch(g, &k, &o->shape, &w);
    }
    if (o->kind == HONE_OWN_ATTENTION) {
        hone_cuda_attended t = o->attended;
        hone_cuda_attention_args args;
        t.p.q = a, t.p.k = b, t.p.v = v, t.p.y = c, t.p.mask = residual;
        t.p.workspace = workspace, t.p.counters = (hone_cuda_address)(uintptr_t)m->counters;
        HONE_TRY(hone_cuda_attention_fill(g, &t, &o->attention_way, &args));
        return hone_cuda_launch(g, &k, &o->shape, &args);
    }
    hone_cuda_product p = o->product;
    hone_cuda_contract_args args;
    if (p.window) p.window = &o->window;
    p.p.a = a, p.p.b = b, p.p.c = c, p.p.bias = bias, p.p.residual = residual;
    p.p.workspace = workspace, p.p.counters = (hone_cuda_address)(uintptr_t)m->counters;
    HONE_TRY(hone_cuda_contract_fill(g, &p, &o->way, &args));
    return hone_cuda_launch(g, &k, &o->shape, &args);
}
