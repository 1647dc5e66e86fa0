/* SPDX-License-Identifier: Apache-2.0
   own_attention: scores, softmax and the weighted sum of values by one kernel
   (src/kernels/cuda/attention*.cu). A constant mask that hides what comes later, and nothing else, is no
   mask but an order: causal. */
#include <string.h>

#include "device/cuda/own.h"
#include "loops/match_attention.h"

struct hone_own_attention {
    hone_match_attention m;
    hone_dtype half;
    bool causal;
};

/* Does a constant mask let each query see all keys up to its own place, and none after it? */
static bool is_causal(const hone_device_call *c, const hone_match_attention *m) {
    enum { HIDDEN = -10000 };
    const hone_match_rows *r = &m->mask;
    if (r->tensor < 0 || !c->packs || !c->constant || !c->constant[r->tensor] ||
        c->instance->tensor[r->tensor].dtype != HONE_DTYPE_F32)
        return false;
    const hone_ref ref = c->ref[r->tensor];
    if (!hone_base_is_constant(ref.base) || r->batch || r->head || m->keys < m->queries) return false;
    const float *v =
        (const float *)(const void *)((const char *)hone_packs_constant(c->packs, ref.base) + ref.offset) +
        r->at;
    for (int64_t i = 0; i < m->queries; i++)
        for (int64_t t = 0; t < m->keys; t++) {
            const float w = v[i * r->token + t * r->one];
            if (t <= i + m->keys - m->queries ? w != 0 : !(w <= HIDDEN)) return false;
        }
    return true;
}
hone_status hone_own_attention_match(hone_arena *arena, const hone_device_call *c, int stage,
                                     hone_own_attention **out) {
    const hone_instance *in = c->instance;
    hone_match_attention m;
    *out = NULL;
    if (!hone_match_attention_of(&c->sized, stage, &m)) return HONE_OK;
    const int tensor[] = {m.q.tensor, m.k.tensor, m.v.tensor, m.y.tensor};
    for (int k = 0; k < 4; k++)
        if (in->tensor[tensor[k]].dtype != HONE_DTYPE_F32) return HONE_OK;
    if (m.head_size > 256 || m.y.one != 1 || m.queries > 1 << 24 || m.keys > 1 << 24 ||
        m.batches * m.heads > 1 << 20)
        return HONE_OK;
    /* the kernel's order is that the last query sees all keys, and each before it one less */
    const bool ordered = m.after < m.keys - 1;
    if (ordered && (m.after != m.keys - m.queries || m.after < 0)) return HONE_OK;
    hone_own_attention *a = HONE_NEW(arena, hone_own_attention);
    if (!a) return hone_steps_no_memory();
    const bool masked = is_causal(c, &m); /* by a constant that says no more than that */
    *a = (hone_own_attention){.m = m,
                              .half =
                                  c->how.precision == HONE_PRECISION_TF32 ? HONE_DTYPE_F32 : c->how.precision,
                              .causal = ordered || masked};
    if (masked) a->m.mask.tensor = -1;
    *out = a;
    return HONE_OK;
}
/* An operand as the kernel reads it: a half each, the head's elements side by side; copied where it is not
   so. */
static hone_status operand(hone_arena *arena, const hone_own_attention *a, const hone_instance *in,
                           hone_match_rows r, int64_t heads, int64_t tokens, int64_t size, hone_dtype to,
                           hone_own_place *place, long long *stride, hone_taken *out) {
    const hone_dtype from = in->tensor[r.tensor].dtype;
    *place = (hone_own_place){r.tensor, false, r.at * hone_dtypes[from].bytes};
    if (from != to || (r.one != 1 && size > 1)) {
        const int64_t batches = r.batch ? a->m.batches : 1;
        const int64_t some = r.head ? heads : 1, rows = r.token ? tokens : 1;
        const hone_own_copy copy = {.extent = {1, 1, batches, some, rows, size},
                                    .stride = {0, 0, r.batch, r.head, r.token, r.one},
                                    .padded = size,
                                    .from = from,
                                    .to = to};
        HONE_TRY(hone_own_copied(arena, &copy, place, out));
        r.token = r.token ? size : 0, r.head = r.head ? rows * size : 0,
        r.batch = r.batch ? some * rows * size : 0;
    }
    stride[0] = r.batch, stride[1] = r.head, stride[2] = r.token;
    return HONE_OK;
}
hone_status hone_own_attention_take(hone_arena *arena, const hone_cuda_facts *gpu,
                                    const hone_own_attention *a, const hone_instance *in, const hone_ref *ref,
                                    hone_taken *out) {
    const hone_match_attention *m = &a->m;
    if (in->tensor[m->y.tensor].dtype != a->half) return HONE_OK;
    hone_own_launch own = {.kind = HONE_OWN_ATTENTION, .aligned = 16};
    own.attended = (hone_cuda_attended){.type = hone_own_type(a->half), .causal = a->causal};
    hone_cuda_attention *p = &own.attended.p;
    own.bias = own.workspace = own.residual = (hone_own_place){-1, false, 0};
    HONE_TRY(
        operand(arena, a, in, m->q, m->heads, m->queries, m->head_size, a->half, &own.a, p->stride_q, out));
    HONE_TRY(
        operand(arena, a, in, m->k, m->kv_heads, m->keys, m->head_size, a->half, &own.b, p->stride_k, out));
    HONE_TRY(
        operand(arena, a, in, m->v, m->kv_heads, m->keys, m->head_size, a->half, &own.v, p->stride_v, out));
    HONE_TRY(
        operand(arena, a, in, m->y, m->heads, m->queries, m->head_size, a->half, &own.c, p->stride_y, out));
    if (m->mask.tensor >= 0) { /* as it is stored */
        const hone_dtype type = in->tensor[m->mask.tensor].dtype;
        own.attended.mask = hone_own_type(type);
        HONE_TRY(operand(arena, a, in, m->mask, m->heads, m->queries, m->keys, type, &own.residual,
                         p->stride_mask, out));
    }
    p->batches = (int)m->batches, p->heads = (int)m->heads, p->kv_heads = (int)m->kv_heads,
    p->queries = (int)m->queries, p->keys = (int)m->keys;
    p->head_size = (int)m->head_size, p->scale = m->alpha;
    const hone_own_place *const place[] = {&own.a, &own.b, &own.v, &own.c};
    hone_cuda_address at[4];
    for (int k = 0; k < 4; k++) {
        at[k] = place[k]->scratch ? 0 : hone_own_stands(ref, *place[k]);
        while (at[k] % (unsigned)own.aligned) own.aligned /= 2;
    }
    if (own.attended.mask && !own.residual.scratch) { /* as it lies, read by one or two numbers */
        p->mask = hone_own_stands(ref, own.residual);
        while (p->mask % (unsigned)own.aligned) own.aligned /= 2;
    }
    p->q = at[0], p->k = at[1], p->v = at[2], p->y = at[3];
    if (!hone_cuda_attention_best(&own.attended, gpu, &own.attention_way)) {
        out->n_launch = out->n_scratch = 0;
        return HONE_OK;
    }
    size_t workspace = 0, counters = 0;
    hone_cuda_attention_room(&own.attended, &own.attention_way, &workspace, &counters);
    if (counters > HONE_PRINTED_COUNTERS)
        return hone_fail(HONE_BUG, "attention wants %zu bytes of counters", counters);
    if (workspace) {
        own.workspace = (hone_own_place){out->first_scratch + out->n_scratch, true, 0};
        out->scratch_bytes[out->n_scratch++] = (int64_t)workspace;
    }
    own.shape = hone_cuda_attention_launch(&own.attended, gpu, &own.attention_way);
    hone_text text = {0};
    HONE_TRY(hone_cuda_attention_print(&text, &own.attended, &own.attention_way));
    HONE_TRY(hone_own_finish(arena, &text, "hone_attention", &own, out->launch + out->n_launch++));
    out->n_stage = HONE_ATTENTION_STAGES;
    return HONE_OK;
}
