/* SPDX-License-Identifier: Apache-2.0
   ragged: requests of different lengths in one batch: where a model's config names a mask, dim 1 of its
   inputs is filled with zeros up to one of a few lengths, and outputs are cut back. At load it is tried
   whether what comes out is the same with and without; where it is not, nothing is filled. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hone/tools.h"
#include "serve/inside.h"

enum { LEAST = 8, MOST = 4096, TRY_FROM = 5, TRY_TO = 8, RANK = 16 };

static bool fills(const hone_port *p) { return p->rank >= 2 && p->dims[1] < 0; }

int hone_serve_ragged_read(hone_serve_version *v, hone_serve_error *e) {
    const json_t *said = json_object_get(v->config, "ragged"), *list = json_object_get(said, "buckets"), *one;
    const char *mask = json_string_value(json_object_get(said, "mask"));
    hone_serve_ragged *r = &v->ragged;
    size_t k;
    r->mask = -1;
    if (!said) return 0;
    for (int i = 0; mask && i < v->inputs; i++)
        if (!strcmp(v->port[i].name, mask)) r->mask = i;
    if (r->mask < 0 || !fills(&v->port[r->mask]) || !hone_serve_type_bytes(v->port[r->mask].dtype))
        return hone_serve_fail(
            e, 400,
            "the config of '%s': ragged wants a \"mask\", an input of numbers whose second "
            "dim is free",
            v->name);
    json_array_foreach(list, k, one) {
        const json_int_t n = json_integer_value(one), before = r->n ? r->length[r->n - 1] : 0;
        if (r->n == HONE_SERVE_SIZES || n <= before || n > 1 << 24)
            return hone_serve_fail(e, 400,
                                   "the config of '%s': ragged.buckets are at most %d lengths, rising",
                                   v->name, HONE_SERVE_SIZES);
        r->length[r->n++] = n;
    }
    for (int64_t n = LEAST; !list && n <= MOST; n *= 2) r->length[r->n++] = n;
    return 0;
}

/* A copy whose dim 1 has another length: cut, or filled with zeros. */
static bool resize(hone_value *in, int64_t to, hone_value **out) {
    int64_t dims[RANK];
    const int rank = hone_value_rank(in);
    if (rank > RANK) return false;
    memcpy(dims, hone_value_dims(in), sizeof *dims * (size_t)rank);
    const int64_t rows = dims[0], from = dims[1];
    dims[1] = to;
    if (hone_tensor_create(hone_value_dtype(in), dims, rank, out)) return false;
    if (!rows || !from || !to) return true;
    const size_t old = hone_value_bytes(in) / (size_t)rows, each = old / (size_t)from,
                 wide = each * (size_t)to, some = old < wide ? old : wide;
    const char *src = hone_value_data(in);
    char *dst = hone_value_data(*out);
    for (int64_t r = 0; r < rows; r++, src += old, dst += wide) {
        memcpy(dst, src, some);
        memset(dst + some, 0, wide - some);
    }
    return true;
}

void hone_serve_ragged_fill(hone_serve_request *r) {
    const hone_serve_version *v = r->version;
    const hone_serve_ragged *g = &v->ragged;
    const hone_value *mask = g->on ? r->in[g->mask] : NULL;
    const int64_t from = mask ? hone_value_dims(mask)[1] : 0;
    int64_t to = 0;
    for (int k = 0; k < g->n && to < from; k++) to = g->length[k];
    if (!from || to <= from) return;
    for (int k = 0; k < v->inputs; k++)
        if (r->in[k] && fills(&v->port[k]) && hone_value_dims(r->in[k])[1] != from) return;
    for (int k = 0; k < v->inputs; k++) {
        hone_value *filled = NULL;
        if (!r->in[k] || !fills(&v->port[k])) continue;
        if (!resize(r->in[k], to, &filled)) { /* those before are filled: all or none */
            hone_value_free(filled);
            hone_serve_fail(&r->error, 503, "no memory to fill input '%s'", v->port[k].name);
            return;
        }
        hone_value_free(r->in[k]), free(r->memory[k]);
        r->in[k] = filled, r->memory[k] = NULL;
    }
    r->length = from;
}
void hone_serve_ragged_cut(hone_serve_request *r) {
    const hone_serve_version *v = r->version;
    for (int k = 0; k < v->outputs && r->length && !r->error.code; k++) {
        hone_value *cut = NULL;
        if (!r->out[k] || !(v->ragged.cuts[k / 64] >> k % 64 & 1)) continue;
        if (!resize(r->out[k], r->length, &cut)) {
            hone_value_free(cut);
            hone_serve_fail(&r->error, 503, "no memory to cut output '%s'", v->port[v->inputs + k].name);
            return;
        }
        hone_value_free(r->out[k]);
        r->out[k] = cut;
    }
}

/* ---- is it the same? ---- */

static void ones(hone_value *v) {
    const size_t each = hone_serve_type_bytes(hone_value_dtype(v));
    const float one = 1;
    const double wide = 1;
    char *at = hone_value_data(v);
    memset(at, 0, hone_value_bytes(v));
    for (int64_t k = 0; k < hone_value_elements(v); k++, at += each)
        if (hone_value_dtype(v) == HONE_DTYPE_F32) memcpy(at, &one, each);
        else if (hone_value_dtype(v) == HONE_DTYPE_F64) memcpy(at, &wide, each);
        else *at = 1; /* whole numbers, little-endian */
}
static const char *differs(hone_serve_version *v, hone_session *s, hone_value **in, hone_value **full,
                           hone_value **out, hone_value **long_out) {
    for (int k = 0; k < v->inputs; k++) {
        hone_value *whole = in[k];
        if (fills(&v->port[k])) {
            in[k] = NULL;
            const bool good = resize(whole, TRY_FROM, &in[k]);
            hone_value_free(whole);
            if (!good) return "there is no memory to try it with";
            if (k == v->ragged.mask) ones(in[k]);
            if (!resize(in[k], TRY_TO, &full[k])) return "there is no memory to try it with";
        } else full[k] = hone_value_share(in[k]);
    }
    if (hone_session_run(s, in, out) || hone_session_run(s, full, long_out)) return "it could not be tried";
    for (int k = 0; k < v->outputs; k++) {
        const int rank = hone_value_rank(out[k]);
        hone_value *cut = NULL;
        hone_difference d;
        if (rank >= 2 && hone_value_rank(long_out[k]) == rank && hone_value_dims(out[k])[1] == TRY_FROM &&
            hone_value_dims(long_out[k])[1] == TRY_TO) {
            if (!resize(long_out[k], TRY_FROM, &cut)) return "there is no memory to try it with";
            v->ragged.cuts[k / 64] |= (uint64_t)1 << k % 64;
        }
        hone_compare(cut ? cut : long_out[k], out[k], 1e-3, 1e-5, &d);
        hone_value_free(cut);
        if (!d.ok) return "what is filled changes what comes out";
    }
    return NULL;
}
void hone_serve_ragged_try(hone_serve_version *v, hone_session *s) {
    hone_serve_ragged *g = &v->ragged;
    const int n = v->inputs + v->outputs;
    if (!g->n) return;
    memset(g->cuts, 0, sizeof g->cuts);
    g->why = v->outputs > (int)sizeof g->cuts * 8 ? "the model has too many outputs"
             : v->way.max_batch < 2               ? "there are no batches"
                                                  : NULL;
    hone_value **in = g->why ? NULL : hone_serve_made_inputs(v, 2),
               **full = calloc((size_t)n + 1, sizeof *full);
    if (in && full) g->why = differs(v, s, in, full, in + v->inputs, full + v->inputs);
    else if (!g->why) g->why = "it could not be tried";
    for (int k = 0; in && k < n; k++) hone_value_free(in[k]);
    for (int k = 0; full && k < n; k++) hone_value_free(full[k]);
    free(in), free(full);
    g->on = !g->why;
}
