/* SPDX-License-Identifier: Apache-2.0
   feed: small made-up inputs for any model, and one bounded run of it. Shared by the fuzz targets and
   tests/test_hostile.c.

   Bounds: a run may take LIMIT_MS and the process may hold LIMIT_BYTES; a model that needs more is refused by
   the library, in words. */
#ifndef HONE_FUZZ_FEED_H
#define HONE_FUZZ_FEED_H
#include <stdlib.h>

#include "base/value.h"
#include "hone/hone.h"

enum {
    FEED_LIMIT_MS = 100,
    FEED_LIMIT_BYTES = 256 << 20,
    FEED_MOST = 64 /* inputs */,
    FEED_ELEMENTS = 1 << 14
};

static hone_value *feed_tensor(const hone_port *p) {
    int64_t dim[HONE_MAX_RANK] = {2, 3}, n;
    int rank = p->rank < 0 ? 2 : p->rank;
    for (int d = 0; d < p->rank; d++) dim[d] = p->dims[d] < 0 ? 2 : p->dims[d];
    hone_value *v = NULL;
    hone_dtype t = p->dtype ? p->dtype : HONE_DTYPE_F32;
    if (!hone_count_of(dim, rank, &n) || n > FEED_ELEMENTS || hone_tensor_create(t, dim, rank, &v))
        return NULL;
    for (int64_t k = 0; k < n; k++) {
        /* small, some below zero; the first ones fit as indices and axes */
        hone_scalar number = {.i64 = k * 5 % 7 - (k > 8 ? 2 : 0)};
        if (t == HONE_DTYPE_STRING) (void)!hone_value_set_text(v, k, "a b,1.5", (size_t)(k % 8));
        else hone_dtype_store(t, (char *)v->data + (size_t)k * hone_dtypes[t].bytes, HONE_I64, number, true);
    }
    return v;
}
static hone_value *feed_value(const hone_port *p) {
    if (p->kind == HONE_VALUE_TENSOR) return feed_tensor(p);
    hone_value *item[2] = {NULL}, *list = NULL;
    if (p->kind == HONE_VALUE_SEQUENCE || p->kind == HONE_VALUE_OPTIONAL) {
        int n = p->kind == HONE_VALUE_SEQUENCE ? 2 : 1;
        bool ok = true;
        for (int k = 0; k < n; k++) ok = (item[k] = feed_tensor(p)) && ok;
        if (ok && hone_list_create(p->kind, item, n, &list)) list = NULL;
        for (int k = 0; k < n; k++) hone_value_free(item[k]);
    }
    return list;
}
/* Runs it once, by steps or by the definition. Whether it succeeds does not matter: it must come back. */
static void feed_run(const hone_model *m, int interpret) {
    int n_in = hone_model_inputs(m), n_out = hone_model_outputs(m);
    hone_value *in[FEED_MOST] = {NULL}, **out = calloc((size_t)n_out + 1, sizeof *out);
    hone_session *s = NULL;
    hone_options o;
    hone_options_default(&o);
    o.threads = 1, o.limit_ms = FEED_LIMIT_MS, o.interpret = interpret;
    bool ready = out && n_in <= FEED_MOST;
    for (int k = 0; ready && k < n_in; k++) ready = (in[k] = feed_value(hone_model_input(m, k))) != NULL;
    if (ready && hone_session_create(m, &o, &s) == HONE_OK) (void)!hone_session_run(s, in, out);
    hone_session_free(s);
    for (int k = 0; k < FEED_MOST; k++) hone_value_free(in[k]);
    for (int k = 0; out && k < n_out; k++) hone_value_free(out[k]);
    free(out);
}
#endif
