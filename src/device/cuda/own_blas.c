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
#include "loops/match_product.h"

/* ---- epilogues: by what they compute, not by how they are written ----------------------------------- */
typedef struct {
    const hone_device_call *c;
    const hone_match_product *m;
    int acc, bias, residual;
    float v, b, r; /* the sum, and what is added */
    bool fits;
} probe;
static hone_scalar value_of(probe *p, int32_t x) {
    const hone_instance *in = p->c->instance;
    const hone_x *n = in->x + x;
    hone_scalar a[3] = {{0}}, out = {0};
    const int32_t args[3] = {n->a, n->b, n->c};
    switch (n->kind) {
    case HONE_X_CONST: return n->k;
    case HONE_X_LOAD: {
        int64_t at = 0;
        if (n->a == p->acc) return out.f32 = p->v * (float)p->m->alpha, out;
        const hone_end_kind kind = hone_match_end(&p->c->sized, p->m, x, &at);
        if (n->a == p->bias && kind == HONE_END_COLUMN) return out.f32 = p->b, out;
        if (n->a == p->residual && kind == HONE_END_RESIDUAL) return out.f32 = p->r, out;
        if (kind == HONE_END_NUMBER && in->tensor[n->a].dtype == HONE_DTYPE_F32 && p->c->constant &&
            p->c->constant[n->a] && hone_base_is_constant(p->c->ref[n->a].base)) {
            const hone_ref r = p->c->ref[n->a];
            memcpy(&out.f32, (const char *)hone_packs_constant(p->c->packs, r.base) + r.offset + at * 4, 4);
            return out;
        }
        break;
    }
    case HONE_X_FN:
        for (int k = 0; k < hone_fns[n->fn].arity; k++) a[k] = value_of(p, args[k]);
        if (in->x[n->a].type == HONE_F32) return hone_fn_eval((hone_fn)n->fn, HONE_F32, a);
        break;
    case HONE_X_PARAM:
    case HONE_X_INDEX:
    case HONE_X_SELECT:
    case HONE_X_CAST:
    case HONE_X_ROUND: break;
    }
    p->fits = false;
    return out;
}
static double end_of(int ends, double v) {
    if (ends & HONE_BLAS_RELU) return v > 0 ? v : 0;
    if (ends & HONE_BLAS_GELU) return 0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
    return v;
}
/* What cuBLASLt would be asked for; -1: it has no such epilogue. */
static int ends_of(const hone_device_call *c, const hone_match_product *m, int stage, int bias,
                   int residual) {
    static const float sums[] = {0, 0.25f, -0.25f, 1, -1, 2.5f, -2.5f, 7, -7, 30, -30, 700, -700};
    static const float adds[][2] = {{0, 0}, {1, 0}, {0, 1}, {-3, 0.5f}, {0.5f, -3}};
    const int with = (bias >= 0 ? HONE_BLAS_BIAS : 0) | (residual >= 0 ? HONE_BLAS_RESIDUAL : 0);
    static const int kinds[] = {0, HONE_BLAS_RELU, HONE_BLAS_GELU};
    if (m->stages == 1) return 0;
    for (int k = 0; k < 3; k++) {
        probe p = {.c = c,
                   .m = m,
                   .acc = c->instance->stage[stage].tensor,
                   .bias = bias,
                   .residual = residual,
                   .fits = true};
        bool same = true;
        for (size_t s = 0; s < sizeof sums / sizeof *sums && same; s++)
            for (size_t a = 0; a < sizeof adds / sizeof *adds && same && p.fits; a++) {
                p.v = sums[s], p.b = adds[a][0], p.r = adds[a][1];
                const double got = (double)value_of(&p, c->instance->stage[stage + 1].value).f32,
                             want = end_of(kinds[k], (double)p.v * m->alpha + (bias >= 0 ? (double)p.b : 0) +
                                                         (residual >= 0 ? (double)p.r : 0));
                same &= fabs(got - want) <= 2e-6 * fmax(1, fabs(want));
            }
        if (!p.fits) return -1;
        if (same) return with | kinds[k];
    }
    return -1;
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
