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
    hone_own_rows **rows;
    hone_own_pool **pool;
    hone_own_columns **columns;
    hone_own_cell **cell;
    const hone_cuda_facts *gpu;
    int n;
} owned;

hone_cuda_type hone_own_type(hone_dtype t) {
    return t == HONE_DTYPE_F16    ? HONE_CUDA_F16
           : t == HONE_DTYPE_BF16 ? HONE_CUDA_BF16
           : t == HONE_DTYPE_I8   ? HONE_CUDA_S8
           : t == HONE_DTYPE_U8   ? HONE_CUDA_U8
           : t == HONE_DTYPE_I32  ? HONE_CUDA_S32
                                  : HONE_CUDA_F32;
}

/* The call as matches want it: temporaries lie row-major, which they learn of when kernels are made. */
static hone_status laid(hone_arena *arena, const hone_device_call *from, hone_device_call *to) {
    const hone_instance *in = from->instance;
    *to = *from;
    if (!(to->stride = hone_arena_copy(arena, from->stride, sizeof *to->stride * (size_t)(in->n_tensor + 1))))
        return hone_steps_no_memory();
    for (int t = 0; t < in->n_tensor; t++) {
        const hone_tensor *w = in->tensor + t;
        int64_t n = 1;
        for (int k = w->rank - 1; k >= 0 && w->role == HONE_ROLE_TEMP; k--) {
            to->stride[t][k] = n;
            if (__builtin_mul_overflow(n, from->param[w->dim[k]].i, &n)) n = 0; /* refused later */
        }
    }
    return HONE_OK;
}
hone_status hone_own_match(void *gpu, hone_arena *arena, const hone_device_call *call,
                           hone_printed_own *out) {
    const hone_instance *in = call->instance;
    hone_device_call laid_out, *const c = &laid_out;
    HONE_TRY(laid(arena, call, c));
    *out = (hone_printed_own){0};
    const bool halves = c->how.precision == HONE_DTYPE_F16 || c->how.precision == HONE_DTYPE_BF16;
    const bool floats =
        halves || c->how.precision == HONE_PRECISION_TF32; /* else they stay as printed: exact */
    owned *o = HONE_NEW(arena, owned);
    hone_ref *ref = HONE_NEW_N(arena, hone_ref, in->n_stage + 1);
    int64_t *bytes = HONE_NEW_N(arena, int64_t, in->n_stage + 1);
    if (!o || !ref || !bytes || !(o->product = HONE_NEW_N(arena, hone_own_product *, in->n_stage + 1)) ||
        !(o->attention = HONE_NEW_N(arena, hone_own_attention *, in->n_stage + 1)) ||
        !(o->rows = HONE_NEW_N(arena, hone_own_rows *, in->n_stage + 1)) ||
        !(o->pool = HONE_NEW_N(arena, hone_own_pool *, in->n_stage + 1)) ||
        !(o->columns = HONE_NEW_N(arena, hone_own_columns *, in->n_stage + 1)) ||
        !(o->cell = HONE_NEW_N(arena, hone_own_cell *, in->n_stage + 1)))
        return hone_steps_no_memory();
    o->gpu = hone_cuda_facts_of(gpu), o->n = in->n_stage;
    bool any = false, matrix = false;
    int products = 0; /* a step has one choice */
    for (int k = 0; k < in->n_stage && in->n_tensor + out->n_ref < HONE_MOST_WHOLE;) {
        if (floats) HONE_TRY(hone_own_attention_match(arena, c, k, o->attention + k));
        if (floats) HONE_TRY(hone_own_rows_match(arena, c, k, o->rows + k));
        HONE_TRY(hone_own_pool_match(arena, c, k, o->pool + k));
        if (floats) HONE_TRY(hone_own_columns_match(arena, c, k, o->columns + k));
        any |= o->attention[k] || o->rows[k] || o->pool[k] || o->columns[k],
            matrix |= o->attention[k] != NULL;
        ref[out->n_ref] = (hone_ref){.base = HONE_BASE_NONE};
        if (floats && in->stage[k].over >= 0)
            HONE_TRY(hone_own_cell_match(arena, o->gpu, c, k, in->n_tensor + out->n_ref, o->cell + k,
                                         ref + out->n_ref, bytes + out->n_ref));
        if (o->cell[k]) any = matrix = true, out->n_ref++;
        if (in->stage[k].over >= 0) { /* a group is one kernel's, or printed */
            for (const int over = in->stage[k].over; k < in->n_stage && in->stage[k].over == over;) k++;
            continue;
        }
        HONE_TRY(hone_own_product_match(arena, o->gpu, c, k, in->n_tensor + out->n_ref, o->product + k,
                                        ref + out->n_ref, bytes + out->n_ref, &out->beyond));
        if (out->beyond) return HONE_OK;
        if (!o->product[k]) {
            k++;
            continue;
        }
        any = matrix = true;
        out->decision = products++ ? NULL : hone_own_product_decision(o->product[k]);
        out->unread |= hone_own_product_unread(o->product[k]);
        if (ref[out->n_ref].base != HONE_BASE_NONE) out->n_ref++;
        k += hone_own_product_stages(o->product[k]);
    }
    for (int k = 0; k < in->n_stage; k++) { /* weights that a printed stage reads as well stay */
        bool ours = false;
        for (int q = 0; q <= k; q++) ours |= o->product[q] && k < q + hone_own_product_stages(o->product[q]);
        if (!ours) out->unread &= ~in->stage[k].uses;
    }
    out->ref = ref, out->bytes = bytes, out->of = any ? o : NULL,
    out->tactic = matrix ? "tensor cores" : "kernel";
    return HONE_OK;
}
hone_status hone_own_take(void *gpu, hone_arena *arena, const hone_printed_own *own, const hone_instance *in,
                          const hone_ref *ref, int stage, hone_taken *out) {
    const owned *o = own->of;
    if (o->cell[stage]) HONE_TRY(hone_own_cell_take(arena, o->cell[stage], in, out));
    if (!out->n_stage && o->attention[stage])
        HONE_TRY(hone_own_attention_take(arena, o->gpu, o->attention[stage], in, ref, out));
    if (!out->n_stage && o->rows[stage])
        HONE_TRY(hone_own_rows_take(arena, o->gpu, o->rows[stage], in, ref, out));
    if (!out->n_stage && o->pool[stage])
        HONE_TRY(hone_own_pool_take(arena, o->gpu, o->pool[stage], in, ref, out));
    if (!out->n_stage && o->columns[stage])
        HONE_TRY(hone_own_columns_take(arena, o->gpu, o->columns[stage], in, ref, out));
    if (out->n_stage) return HONE_OK;
    return o->product[stage] ? hone_own_product_take(arena, gpu, o->product[stage], in, ref, out) : HONE_OK;
}

/* ---- kernels ---- */
static uint64_t hash(const char *s, uint64_t h) {
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}
hone_status hone_own_finish(hone_arena *arena, hone_text *text, const char *entry, hone_own_launch *own,
                            hone_launch *out) {
    if (text->failed) {
        hone_text_free(text);
        return hone_steps_no_memory();
    }
    hone_own_launch *kept = hone_arena_copy(arena, own, sizeof *own);
    out->text = hone_arena_text(arena, "%s", text->text);
    out->name = hone_arena_text(arena, "own_%016" PRIx64 "%016" PRIx64, hash(text->text, 0xcbf29ce484222325u),
                                hash(text->text, 77));
    hone_text_free(text);
    if (!kept || !out->text || !out->name) return hone_steps_no_memory();
    out->own = kept, out->entry = entry, out->threads = own->shape.threads,
    out->shared_bytes = own->shape.shared_bytes;
    out->groups = (int64_t)own->shape.grid[0] * own->shape.grid[1] * own->shape.grid[2];
    return HONE_OK;
}
hone_status hone_own_compile(void *gpu, const hone_launch *l, const char *cache, void **kernel) {
    const hone_own_launch *own = l->own;
    if (own->kind == HONE_OWN_BLAS) { /* nothing is compiled; what stands for the kernel is not read */
        *kernel = gpu;
        return HONE_OK;
    }
    const char *arch = hone_cuda_facts_of(gpu)->arch;
    char compiler[40];
    int major = 0, minor = 0;
    size_t bytes = 0;
    (void)!hone_nvrtc_version(&major, &minor);
    snprintf(compiler, sizeof compiler, "NVRTC %d.%d", major, minor);
    const hone_kept kept = hone_kept_name(cache, "cubin", (const char *const[]){l->text, arch, compiler}, 3);
    void *code = hone_kept_get(&kept, &bytes);
    if (!code) {
        const bool whole = (own->kind == HONE_OWN_PRODUCT && hone_cuda_is_byte(own->product.in)) ||
                           (own->kind == HONE_OWN_WINDOW && hone_cuda_is_byte(own->windowed.type));
        HONE_TRY(
            (whole ? hone_nvrtc_compile_exact : hone_nvrtc_compile)(l->text, l->entry, arch, &code, &bytes));
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
    const hone_cuda_address a = address(m, o->a), b = address(m, o->b), c = address(m, o->c),
                            bias = address(m, o->bias), whole = address(m, o->whole),
                            residual = address(m, o->residual), v = address(m, o->v),
                            workspace = address(m, o->workspace);
    if ((a | b | c | residual | v) % (unsigned)o->aligned)
        return hone_fail(HONE_NOT_SUPPORTED,
                         "a tensor in GPU memory is not aligned to %d bytes, as its kernel wants it",
                         o->aligned);
    HONE_TRY(hone_cuda_enter(g));
    if (o->kind == HONE_OWN_BLAS)
        return hone_blas_run(g, o->blas, &(hone_blas_places){a, b, c, bias, residual, workspace});
    if (o->kind == HONE_OWN_WINDOW) {
        hone_cuda_window w = o->windowed.p;
        w.x = a, w.w = b, w.y = c, w.bias = bias, w.whole = whole, w.residual = residual;
        return hone_cuda_launch(g, &k, &o->shape, &w);
    }
    if (o->kind == HONE_OWN_FIRST) {
        hone_cuda_first f = o->first.p;
        f.p.a = a, f.p.b = b, f.p.c = c, f.p.bias = bias;
        return hone_cuda_launch(g, &k, &o->shape, &f);
    }
    if (o->kind == HONE_OWN_ROWS) {
        hone_cuda_rows r = o->rowwise.p;
        r.x = a, r.weight = b, r.y = c, r.bias = bias;
        return hone_cuda_launch(g, &k, &o->shape, &r);
    }
    if (o->kind == HONE_OWN_COLUMNS) {
        hone_cuda_columns s = o->columns;
        s.x = a, s.y = c, s.workspace = workspace, s.counters = (hone_cuda_address)(uintptr_t)m->counters;
        return hone_cuda_launch(g, &k, &o->shape, &s);
    }
    if (o->kind == HONE_OWN_CELL) {
        hone_cuda_cell cell = o->cell;
        cell.x = a, cell.r = b, cell.h = c, cell.bias = bias, cell.h0 = residual, cell.c = workspace,
        cell.c0 = v;
        return hone_cuda_launch(g, &k, &o->shape, &cell);
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
    p.p.a = a, p.p.b = b, p.p.c = c, p.p.bias = bias, p.p.whole = whole, p.p.residual = residual;
    p.p.workspace = workspace, p.p.counters = (hone_cuda_address)(uintptr_t)m->counters;
    HONE_TRY(hone_cuda_contract_fill(g, &p, &o->way, &args));
    return hone_cuda_launch(g, &k, &o->shape, &args);
}
