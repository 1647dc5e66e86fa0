/* SPDX-License-Identifier: Apache-2.0
   own_blas: cuBLASLt (blas.h) as a tactic for products, beside kernels of ours: which epilogues it has, which
   measured choice asks for it, and its launch. Never chosen by estimate: by wisdom, or by
   HONE_CUBLASLT_ALWAYS=1, which is for measuring and tests. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/own.h"
#include "loops/match_epilogue.h"

/* ---- epilogues ---------------------------------------------------------------------------------------- */
static const void *constant(const void *of, int tensor) { /* single numbers */
    const hone_device_call *c = of;
    const hone_ref r = c->ref[tensor];
    return c->constant && c->constant[tensor] && hone_base_is_constant(r.base) &&
                   !c->instance->tensor[tensor].rank
               ? (const char *)hone_packs_constant(c->packs, r.base) + r.offset
               : NULL;
}
static bool near(double a, double b) { return fabs(a - b) <= 1e-5 * fabs(b); }
static bool nothing(const hone_match_number *n) { return n->tensor < 0 && n->k == 0; }
static int kind_of(const hone_match_epilogue *e) { /* what follows what is added; -1: something else */
    static const double root = 0.7978845608028654, cubic = 0.044715;
    if (e->hi.tensor >= 0 || e->lo.tensor >= 0 || e->hi.k < INFINITY) return -1;
    if (e->activation == HONE_ACTIVATE_COUNT)
        return e->lo.k == 0 ? HONE_BLAS_RELU : e->lo.k == -INFINITY ? 0 : -1;
    return e->activation == HONE_ACTIVATE_gelu_tanh && e->lo.k == -INFINITY &&
                   near((double)e->alpha, 2 * root) && near((double)e->beta, 2 * root * cubic)
               ? HONE_BLAS_GELU
               : -1;
}
/* What cuBLASLt would be asked for; -1: it has no such epilogue. */
static int ends_of(const hone_device_call *c, const hone_match_product *m, int stage, int bias,
                   int residual) {
    if (m->stages == 1) return 0;
    hone_arena *a = hone_arena_create();
    const hone_match_epilogue *e =
        a ? hone_match_epilogue_behind(a, &c->sized, m, stage, false, constant, c) : NULL;
    int ends = -1;
    if (e && e->form == HONE_EPILOGUE_STORED && e->out.dtype == HONE_DTYPE_F32 && !e->given &&
        e->residual.tensor == residual &&
        (bias >= 0 ? e->bias_n && e->bias.tensor == bias : nothing(&e->bias)))
        ends = kind_of(e);
    hone_arena_destroy(a);
    return ends < 0 ? -1 : ends | (bias >= 0 ? HONE_BLAS_BIAS : 0) | (residual >= 0 ? HONE_BLAS_RESIDUAL : 0);
}

/* ---- choice ----------------------------------------------------------------------------------------- */
static uint64_t mix(uint64_t h, const void *at, size_t n) {
    for (size_t k = 0; k < n; k++) h = (h ^ ((const unsigned char *)at)[k]) * 0x100000001b3u;
    return h;
}
bool hone_own_blas_wanted(const hone_device_call *c, const hone_cuda_facts *gpu, const hone_match_product *m,
                          int stage, int bias, int residual, const int64_t *size, hone_decision *decision,
                          int *ends) {
    const char *always = getenv("HONE_CUBLASLT_ALWAYS");
    char name[HONE_PROBLEM_NAME];
    if ((*ends = ends_of(c, m, stage, bias, residual)) < 0) return false;
    const uint64_t h = mix(mix(7, gpu->name, strlen(gpu->name)), gpu->arch, strlen(gpu->arch));
    *decision = (hone_decision){
        .problem = {.kind = HONE_PROBLEM_PRODUCT,
                    .number = {size[0], size[1], size[2], size[3],
                               c->how.precision == HONE_PRECISION_TF32 ? HONE_DTYPE_F32 : c->how.precision,
                               *ends}}};
    snprintf(name, sizeof name, "cuda-%08x", (unsigned)(h >> 32));
    hone_problem_name(&decision->problem, name);
    const hone_choice *wise = hone_wisdom_find(c->how.wisdom, &decision->problem);
    if (wise) decision->choice = *wise, decision->wise = true;
    /* a large library: opened only for who wants it */
    return ((always && *always == '1') || decision->choice.knob[0]) && hone_blas_there();
}

/* ---- its launch ------------------------------------------------------------------------------------- */
hone_status hone_own_blas_take(hone_arena *arena, hone_cuda *gpu, int ends, hone_own_launch *own,
                               hone_taken *out, bool *taken) {
    const hone_cuda_product *p = &own->product;
    const hone_cuda_contract *c = &p->p;
    hone_blas_problem q;
    *taken = false;
    memset(&q, 0, sizeof q);
    q.in = (int)p->in, q.out = (int)p->out, q.ends = ends, q.alpha = c->alpha;
    q.m = c->m, q.n = c->n, q.k = c->k, q.batches = c->batches;
    q.pitch_a = c->pitch_a, q.pitch_b = c->pitch_b, q.pitch_c = c->pitch_c;
    q.batch_a = c->batch_a, q.batch_b = c->batch_b, q.batch_c = c->batch_c;
    q.pitch_residual = c->pitch_residual, q.batch_residual = c->batch_residual;
    for (int k = 0; k < 4; k++) q.aligned[k] = own->aligned;
    if (own->bias.which >= 0 && q.batches > 1) return HONE_OK;
    const hone_blas_plan *plan = hone_blas_find(gpu, &q);
    if (!plan) return HONE_OK;
    own->kind = HONE_OWN_BLAS, own->blas = plan;
    if (hone_blas_workspace(plan)) {
        own->workspace = (hone_own_place){out->first_scratch + out->n_scratch, true, 0};
        out->scratch_bytes[out->n_scratch++] = (int64_t)hone_blas_workspace(plan);
    }
    hone_launch *l = out->launch + out->n_launch++;
    l->own = hone_arena_copy(arena, own, sizeof *own);
    l->name = hone_arena_text(arena, "blas_%016" PRIx64 "%016" PRIx64, mix(0xcbf29ce484222325u, &q, sizeof q),
                              mix(77, &q, sizeof q));
    l->text = "", l->entry = "cublasLtMatmul", l->groups = 1, l->threads = 1;
    *taken = true;
    return l->own && l->name ? HONE_OK : hone_steps_no_memory();
}
