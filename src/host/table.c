/* SPDX-License-Identifier: Apache-2.0
   table: host functions by name, and the one way to an output tensor. */
#include "host/call.h"

#define HONE_HOST(name) hone_host_fn hone_host_##name;
#include "host/functions.def"
#undef HONE_HOST

static const struct {
    const char *name;
    hone_host_fn *run;
    bool spreads;
} functions[] = {
#define HONE_HOST(name) {#name, hone_host_##name, false},
#define HONE_HOST_SPREAD(name) {#name, hone_host_##name, true},
#include "host/functions.def"
#undef HONE_HOST
};

hone_host_fn *hone_host_find(const char *name) {
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        if (!strcmp(functions[k].name, name)) return functions[k].run;
    return NULL;
}

bool hone_host_spreads(hone_host_fn *f) {
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        if (functions[k].run == f) return functions[k].spreads;
    return false;
}

hone_status hone_host_out(const hone_host_call *c, int k, hone_dtype t, const int64_t *dims, int rank,
                          hone_value **out) {
    hone_value *v = c->out[k];
    if (v && v->tag == HONE_TAG_TENSOR && v->dtype == t && v->rank == rank &&
        (!rank || !memcmp(v->dim, dims, sizeof *dims * (size_t)rank))) {
        *out = v;
        return HONE_OK;
    }
    if (rank < 0 || rank > HONE_MAX_RANK)
        return hone_call_fail(c, HONE_BAD_INPUT, "output %d would have rank %d; at most %d is possible", k,
                              rank, HONE_MAX_RANK);
    hone_value *fresh;
    hone_status s = hone_value_tensor(t, dims, rank, &fresh);
    if (s) return hone_fail_at(s, "node '%s', output %d: ", c->node->name ? c->node->name : "", k);
    hone_value_drop(v);
    *out = c->out[k] = fresh;
    return HONE_OK;
}
