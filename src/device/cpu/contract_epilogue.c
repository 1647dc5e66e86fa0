/* SPDX-License-Identifier: Apache-2.0
   contract_epilogue: what follows the sums of a contraction, rows of a tile at a time (contract.h): handed to
   the kernel, which does it before it stores; behind an activation; or on rows that wait in scratch, by
   epilogue_run.c or as tile code. */
#include <math.h>
#include <string.h>

#include "device/cpu/contract.h"

hone_status hone_contract_epilogue(const hone_contract *d, void *const *at, int64_t over,
                                   const hone_standing *w, int64_t m0, int64_t m, int64_t n0, int64_t n,
                                   void *sums, int64_t stride, const int32_t *less, void *scratch) {
    float *c = sums; /* or i32, four bytes as well */
    if (d->of.alpha != 1)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) c[i * stride + j] *= d->of.alpha;
    if (d->epilogue) {
        hone_epilogue_rows(d->epilogue, at, w->index, m0, m, n0, n, c, stride, less);
        return HONE_OK;
    }
    for (int64_t i = 0; less && i < m; i++)
        if (less[i])
            for (int64_t j = 0; j < n; j++) ((uint32_t *)sums)[i * stride + j] -= (uint32_t)less[i];
    if (!d->epilogue_code) {
        float *out = (float *)at[d->out] + over * d->of.over_out;
        for (int64_t i = 0; i < m; i++)
            memcpy(out + w->out + d->at_m_out[m0 + i] + n0, c + i * stride, sizeof *c * (size_t)n);
        return HONE_OK;
    }
    int64_t first = w->domain + n0;
    /* whole rows, one after another: one run */
    if (n == d->of.n && m > 1 && n < 2048 &&
        d->at_m_domain[m0 + m - 1] - d->at_m_domain[m0] == (m - 1) * d->of.n) {
        if (stride != n)
            for (int64_t i = 1; i < m; i++) memmove(c + i * n, c + i * stride, sizeof *c * (size_t)n);
        return hone_tilecode_run(d->epilogue_code, at, first + d->at_m_domain[m0], m * n, 0, c, scratch);
    }
    for (int64_t i = 0; i < m; i++)
        HONE_TRY(hone_tilecode_run(d->epilogue_code, at, first + d->at_m_domain[m0 + i], n, 0, c + i * stride,
                                   scratch));
    return HONE_OK;
}
void hone_contract_epilogue_args(const hone_contract *d, void *const *at, int64_t over,
                                 const hone_standing *w, int64_t m0, int64_t m, hone_gemm_args *part,
                                 const hone_contract_lists *l) {
    const hone_cpu_epilogue *s = d->epilogue;
    float *out = at[s ? s->out.tensor : d->out];
    const int64_t first = s ? hone_epilogue_at(&s->out, s->n_batch, w->index, m0) - s->out.at_m[m0]
                            : over * d->of.over_out + w->out;
    const int64_t *rows = s ? s->out.at_m : d->at_m_out;
    for (int64_t i = 0; i < m; i++) l->c[i] = hone_element(out, part->c_bf16, first + rows[m0 + i]);
    if (!s) return;
    if (s->bias_n)
        part->bias_n =
            (const float *)at[s->bias.tensor] + hone_epilogue_at(&s->bias, s->n_batch, w->index, m0);
    else if (s->bias.tensor >= 0 || s->bias.k != 0) {
        for (int64_t i = 0; i < m; i++)
            l->bias_m[i] = hone_epilogue_number(&s->bias, s->n_batch, at, w->index, m0 + i);
        part->bias_m = l->bias_m;
    }
    if (s->residual.tensor >= 0) {
        const int64_t begin = hone_epilogue_at(&s->residual, s->n_batch, w->index, m0) - s->residual.at_m[m0];
        for (int64_t i = 0; i < m; i++)
            l->residual[i] =
                hone_element(at[s->residual.tensor], part->residual_bf16, begin + s->residual.at_m[m0 + i]);
        part->residual = l->residual;
    }
    part->lo = hone_epilogue_number(&s->lo, s->n_batch, at, w->index, m0),
    part->hi = hone_epilogue_number(&s->hi, s->n_batch, at, w->index, m0);
    part->clamp = part->lo != -INFINITY || part->hi != INFINITY;
}
void hone_contract_keep(const hone_contract *d, void *const *at, const hone_standing *w, int64_t m,
                        int64_t n0, const hone_gemm_args *part, float *kept) {
    const hone_row_number *row = &d->epilogue->later;
    const float *from = (const float *)at[row->tensor] +
                        hone_epilogue_at(row, d->epilogue->n_batch, w->index, m) - row->at_m[m] + n0;
    for (int i = 0; i < part->m; i++)
        memcpy(kept + i * HONE_CONTRACT_KEPT, from + row->at_m[m + i], sizeof *kept * (size_t)part->n);
}
void hone_contract_then(const hone_contract *d, void *const *at, const hone_standing *w,
                        const hone_gemm_args *part, const float *kept) {
    const hone_cpu_epilogue *s = d->epilogue;
    s->then(part->c, part->c_from, part->m, part->n,
            hone_epilogue_number(&s->times, s->n_batch, at, w->index, 0),
            hone_epilogue_number(&s->plus, s->n_batch, at, w->index, 0), s->later.tensor < 0 ? NULL : kept,
            HONE_CONTRACT_KEPT);
}
/* What is given times the activation of rows that are in `gates` from column 0 on: the result may lie on what
   is given, and then that is there already. */
void hone_contract_gate(const hone_contract *d, void *const *at, const hone_standing *w, int64_t m0,
                        const hone_gemm_args *part, const hone_contract_lists *l, const float *gates) {
    const hone_row_number *row = &d->epilogue->later;
    const float *from = (const float *)at[row->tensor] +
                        hone_epilogue_at(row, d->epilogue->n_batch, w->index, m0) - row->at_m[m0];
    for (int i = 0; i < part->m; i++) {
        const float *given = from + row->at_m[m0 + i] + part->c_from;
        if (given != l->c[i] + part->c_from)
            memcpy(l->c[i] + part->c_from, given, sizeof *given * (size_t)part->n);
    }
    d->epilogue->gate(l->c, part->c_from, part->m, part->n, d->epilogue->alpha, d->epilogue->beta, gates,
                      HONE_CONTRACT_KEPT);
}
