/* SPDX-License-Identifier: Apache-2.0
   away: see away.h. */
#include "device/away.h"

static void drop(void *owner) {
    struct hone_away *a = owner;
    if (a->release) a->release(a->owner);
    else a->unit.row->free(a->unit.row, a->unit.number, a->handle);
    hone_free(a);
}
hone_status hone_away_tensor(const hone_unit *u, hone_dtype t, const int64_t *dims, int rank,
                             hone_value **out) {
    hone_value *v = NULL;
    if (t == HONE_DTYPE_STRING) return hone_fail(HONE_NOT_SUPPORTED, "strings stay on the host");
    HONE_TRY(hone_value_shell(t, dims, rank, &v));
    struct hone_away *a = hone_alloc(sizeof *a);
    hone_status s = a ? u->row->alloc(u->row, u->number, v->bytes ? v->bytes : 1, &a->handle)
                      : hone_fail(HONE_NO_MEMORY, "no memory for a tensor");
    if (s) {
        hone_free(a);
        hone_value_drop(v);
        return s;
    }
    a->unit = *u, v->away = a, v->owner = a, v->free_data = drop;
    *out = v;
    return HONE_OK;
}
hone_status hone_away_borrow(const hone_unit *u, hone_dtype t, const int64_t *dims, int rank, void *handle,
                             void (*release)(void *), void *owner, hone_value **out) {
    hone_value *v = NULL;
    HONE_TRY(hone_value_shell(t, dims, rank, &v));
    struct hone_away *a = hone_alloc(sizeof *a);
    if (!a) {
        hone_value_drop(v);
        return hone_fail(HONE_NO_MEMORY, "no memory for a tensor");
    }
    *a = (struct hone_away){.unit = *u, .handle = handle, .release = release, .owner = owner};
    v->away = a, v->owner = a, v->free_data = drop;
    *out = v;
    return HONE_OK;
}
hone_status hone_away_copy(const hone_unit *u, hone_dtype t, const int64_t *dims, int rank, void *handle,
                           int64_t at, hone_value **out) {
    hone_value *v = NULL;
    hone_queue *q = NULL;
    if (!u->row->copy_within)
        return hone_fail(HONE_NOT_SUPPORTED, "%s:%d cannot copy inside of its memory", u->row->name,
                         u->number);
    HONE_TRY(hone_away_tensor(u, t, dims, rank, &v));
    hone_status s = v->bytes ? u->row->open(u->row, u->number, &q) : HONE_OK;
    if (!s && q) s = u->row->copy_within(q, v->away->handle, 0, handle, at, v->bytes);
    if (!s && q) s = u->row->wait(q);
    if (q) u->row->close(q);
    if (s) hone_value_drop(v);
    else *out = v;
    return s;
}
bool hone_away_is(const hone_value *v, const hone_unit *u) {
    if (!u || !u->row->alloc) return !v->away;
    return v->away && v->away->unit.row == u->row && v->away->unit.number == u->number;
}
/* A queue for one copy. */
static hone_status copy(const hone_unit *u, void *handle, const void *from, void *to, size_t bytes) {
    hone_queue *q = NULL;
    if (!bytes) return HONE_OK;
    HONE_TRY(u->row->open(u->row, u->number, &q));
    hone_status s =
        from ? u->row->copy_in(q, handle, 0, from, bytes) : u->row->copy_out(q, to, handle, 0, bytes);
    if (!s) s = u->row->wait(q);
    u->row->close(q);
    return s;
}
hone_status hone_away_bring(const hone_value *v, const hone_unit *u, hone_value **out) {
    if (v->tag != HONE_TAG_TENSOR || v->dtype == HONE_DTYPE_STRING)
        return hone_fail(HONE_BAD_INPUT, "only tensors of numbers can be on a device");
    hone_value *host = NULL, *there = NULL;
    hone_status s = HONE_OK;
    if (v->away) {
        HONE_TRY(hone_value_tensor(v->dtype, v->dim, v->rank, &host));
        s = copy(&v->away->unit, v->away->handle, NULL, host->data, v->bytes);
    } else if (hone_away_is(v, u)) return hone_value_copy(v, out);
    if (!s && (!u || !u->row->alloc)) {
        *out = host;
        return HONE_OK;
    }
    if (!s) s = hone_away_tensor(u, v->dtype, v->dim, v->rank, &there);
    if (!s) s = copy(u, there->away->handle, host ? host->data : v->data, NULL, v->bytes);
    hone_value_drop(host);
    if (s) hone_value_drop(there);
    else *out = there;
    return s;
}
