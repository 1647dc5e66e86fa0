/* SPDX-License-Identifier: Apache-2.0
   call: what host functions share: errors that name the node, operands and attributes with their checks,
   outputs, shapes around an axis.

   Not for other rooms: they know host.h only. */
#ifndef HONE_HOST_CALL_H
#define HONE_HOST_CALL_H
#include <stdatomic.h>
#include <string.h>

#include "host/host.h"

/* "node 'n3' (TopK 24): …" */
hone_status hone_call_fail(const hone_host_call *, hone_status, const char *format, ...) HONE_PRINTF(3, 4);
#ifdef __clang_analyzer__ /* as hone_fail: what it returns is its second argument */
#define hone_call_fail(c, s, ...) ((void)(hone_call_fail)(c, s, __VA_ARGS__), (s))
#endif
static inline hone_status hone_call_no_memory(const hone_host_call *c) {
    return hone_call_fail(c, HONE_NO_MEMORY, "out of memory");
}

/* ---- operands ------------------------------------------------------------------------------------------ */
static inline int hone_call_inputs(const hone_host_call *c) {
    return c->node->n_in - c->node->n_capture;
} /* the op's own, captures left out */
static inline hone_value *hone_call_in(const hone_host_call *c, int k) {
    return k < hone_call_inputs(c) ? c->in[k] : NULL;
}
static inline bool hone_call_wants(const hone_host_call *c, int k) {
    return k < c->node->n_out && (!c->node->out || c->node->out[k] >= 0);
}
/* Input k, which must be there and be of this tag. */
hone_status hone_call_tagged(const hone_host_call *, int k, hone_tag, const hone_value **out) HONE_CHECKED;
static inline hone_status hone_call_tensor(const hone_host_call *c, int k, const hone_value **out) {
    return hone_call_tagged(c, k, HONE_TAG_TENSOR, out);
}
/* The same, of one dtype. */
hone_status hone_call_typed(const hone_host_call *, int k, hone_dtype, const hone_value **out) HONE_CHECKED;
/* The one number of integer or float tensor k; `otherwise` where it is absent. */
hone_status hone_call_i64(const hone_host_call *, int k, int64_t otherwise, int64_t *out) HONE_CHECKED;
hone_status hone_call_f64(const hone_host_call *, int k, double otherwise, double *out) HONE_CHECKED;

/* ---- attributes ---------------------------------------------------------------------------------------- */
static inline const hone_attr *hone_call_attr(const hone_host_call *c, const char *name) {
    return hone_attr_find(c->node->attr, c->node->n_attr, name);
}
static inline int64_t hone_call_int(const hone_host_call *c, const char *name, int64_t otherwise) {
    return hone_attr_int(c->node->attr, c->node->n_attr, name, otherwise);
}
static inline double hone_call_float(const hone_host_call *c, const char *name, double otherwise) {
    return hone_attr_float(c->node->attr, c->node->n_attr, name, otherwise);
}
static inline const char *hone_call_text(const hone_host_call *c, const char *name, const char *otherwise) {
    return hone_attr_text(c->node->attr, c->node->n_attr, name, otherwise);
}
/* A list attribute of this kind; n = 0 where it is absent. An attribute of another kind is an error. */
hone_status hone_call_list(const hone_host_call *, const char *name, hone_attr_kind,
                           hone_attr *out) HONE_CHECKED;
/* The name's number in a list that ends in NULL. */
hone_status hone_call_choice(const hone_host_call *, const char *name, const char *const *choices,
                             int otherwise, int *out) HONE_CHECKED;

/* ---- outputs ------------------------------------------------------------------------------------------- */
/* drops what was there; drops `take` where output k is not wanted */
void hone_call_set(const hone_host_call *, int k, hone_value *take);
/* A reference that may outlive the call: the value itself, or a copy where it (or a member) only borrows its
   bytes. */
hone_status hone_call_keep(const hone_host_call *, const hone_value *, hone_value **out) HONE_CHECKED;
/* Output k is this value, kept. */
hone_status hone_call_pass(const hone_host_call *, int k, const hone_value *) HONE_CHECKED;
/* The pool that owns the strings of a tensor this call makes. */
void hone_call_pool(hone_value *tensor, hone_strings *pool);
/* Copies n string handles, their text into the call's own pool: for strings that come from several pools. */
hone_status hone_call_copy_strings(const hone_host_call *, void *to, const void *from,
                                   int64_t n) HONE_CHECKED;

/* ---- what is kept, and threads ------------------------------------------------------------------------- */
/* What an earlier call kept; NULL: nothing. */
static inline hone_host_kept *hone_call_kept(const hone_host_call *c) {
    return c->kept ? atomic_load_explicit(c->kept, memory_order_acquire) : NULL;
}
/* Keeps it for later calls and returns what is kept now: another thread may have been first, then `take` is
   destroyed. Where nothing can be kept `take` comes back, and the caller destroys it: hone_call_done. */
hone_host_kept *hone_call_keep_made(const hone_host_call *, hone_host_kept *take);
static inline void hone_call_done(const hone_host_call *c, hone_host_kept *k) {
    if (!c->kept && k) k->destroy(k);
}
static inline void hone_call_spread(const hone_host_call *c, int64_t n, void (*piece)(void *arg, int64_t k),
                                    void *arg) {
    if (c->spread && n > 1) c->spread(c, n, piece, arg);
    else
        for (int64_t k = 0; k < n; k++) piece(arg, k);
}

/* ---- tensors that may lie on a device ------------------------------------------------------------------ */
/* A new tensor where `like` lies; contents: anything. */
hone_status hone_call_make(const hone_host_call *, const hone_value *like, hone_dtype, const int64_t *dims,
                           int rank, hone_value **out) HONE_CHECKED;
hone_status hone_call_move(const hone_host_call *, const hone_pieces_move *) HONE_CHECKED;
/* A value that the host can read: itself, or a copy. */
hone_status hone_call_seen(const hone_host_call *, const hone_value *, hone_value **out) HONE_CHECKED;

/* ---- shapes -------------------------------------------------------------------------------------------- */
/* below 0 counts from the end */
hone_status hone_call_axis(const hone_host_call *, int64_t axis, int rank, int *out) HONE_CHECKED;
/* A dense tensor as [outer, n, inner] around an axis. */
typedef struct {
    int64_t outer, n, inner;
} hone_around;
hone_around hone_call_around(const int64_t *dims, int rank, int axis);
/* numpy's rule for two shapes; then where an output element comes from. */
hone_status hone_call_broadcast(const hone_host_call *, const hone_value *a, const hone_value *b,
                                int64_t *dims, int *rank) HONE_CHECKED;
/* flat place in v of output element `at` */
int64_t hone_call_source(const hone_value *v, const int64_t *dims, int rank, int64_t at);
static inline size_t hone_call_bytes(hone_dtype t) { return hone_dtypes[t].bytes; }
#endif
