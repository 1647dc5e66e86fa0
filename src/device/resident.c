/* SPDX-License-Identifier: Apache-2.0
   resident: see resident.h. */
#include "device/resident.h"

#include <pthread.h>

typedef struct {
    hone_unit on;
    int32_t base;
    void *handle;
} resident;
struct hone_residents {
    pthread_mutex_t lock;
    hone_vec(resident) all;
};
hone_residents *hone_residents_create(void) {
    hone_residents *r = hone_alloc(sizeof *r);
    if (r) pthread_mutex_init(&r->lock, NULL);
    return r;
}
void hone_residents_empty(hone_residents *r) {
    for (int k = 0; k < r->all.n; k++)
        r->all.at[k].on.row->free(r->all.at[k].on.row, r->all.at[k].on.number, r->all.at[k].handle);
    r->all.n = 0;
}
void hone_residents_destroy(hone_residents *r) {
    if (!r) return;
    hone_residents_empty(r);
    hone_vec_free(&r->all);
    pthread_mutex_destroy(&r->lock);
    hone_free(r);
}
static hone_status bring(hone_residents *r, const hone_unit *u, hone_queue *q, hone_packs *packs,
                         int32_t base, void **handle) {
    const size_t bytes = hone_packs_size(packs, base);
    void *there = NULL;
    HONE_TRY(u->row->alloc(u->row, u->number, bytes ? bytes : 1, &there));
    hone_status s = bytes ? u->row->copy_in(q, there, 0, hone_packs_at(packs, base), bytes) : HONE_OK;
    if (!s) s = u->row->wait(q); /* other queues will read it */
    if (!s && !hone_push(&r->all, ((resident){*u, base, there})))
        s = hone_fail(HONE_NO_MEMORY, "no memory for a model");
    if (s) u->row->free(u->row, u->number, there);
    else *handle = there;
    return s;
}
hone_status hone_resident_get(hone_residents *r, const hone_unit *u, hone_queue *q, hone_packs *packs,
                              int32_t base, void **handle) {
    hone_status s = HONE_OK;
    void *found = NULL;
    pthread_mutex_lock(&r->lock);
    for (int k = 0; k < r->all.n && !found; k++)
        if (r->all.at[k].base == base && r->all.at[k].on.row == u->row && r->all.at[k].on.number == u->number)
            found = r->all.at[k].handle;
    if (!found) s = bring(r, u, q, packs, base, &found);
    pthread_mutex_unlock(&r->lock);
    if (!s) *handle = found;
    return s;
}
