/* SPDX-License-Identifier: Apache-2.0
   spaces: see spaces.h. */
#include "run/spaces.h"

#include <string.h>

#include "device/away.h"
#include "device/resident.h"
#include "plan/bind.h"
#include "plan/verify.h"

typedef struct {
    void *at;
    size_t bytes;
} piece;
typedef struct { /* of one plan segment */
    piece arena, own;
    uint64_t own_of; /* the plan whose own memory it holds */
} memory;
typedef struct {
    const hone_unit *unit;
    hone_queue *queue;
    void **base; /* from 0 on; constants lie before it */
    int n_base, n_constant;
    memory *segment; /* HONE_MAX_CUTS, made when the first is wanted */
    hone_vec(void *) guard;
} space;
struct hone_spaces {
    const hone_compiled *c;
    const hone_units *units;
    space space[HONE_MOST_UNITS];
    hone_copied *copied;
    piece staging; /* between two devices that cannot copy to each other */
};

hone_status hone_spaces_create(const hone_compiled *c, const hone_units *u, hone_copied *copied,
                               hone_spaces **out) {
    hone_spaces *s = hone_alloc(sizeof *s);
    if (!s) return hone_run_no_memory();
    s->c = c, s->units = u, s->copied = copied;
    hone_status st = HONE_OK;
    for (int k = 0; k < u->n && !st; k++) {
        s->space[k].unit = u->unit + k;
        st = u->unit[k].row->open(u->unit[k].row, u->unit[k].number, &s->space[k].queue);
    }
    if (st) hone_spaces_destroy(s);
    else *out = s;
    return st;
}
static void give_back(const space *w, piece *p) {
    if (p->at) w->unit->row->free(w->unit->row, w->unit->number, p->at);
    *p = (piece){0};
}
void hone_spaces_destroy(hone_spaces *s) {
    if (!s) return;
    for (int k = 0; k < s->units->n; k++) {
        space *w = s->space + k;
        if (!w->unit) continue;
        if (w->queue && w->unit->row->wait) (void)!w->unit->row->wait(w->queue);
        for (int d = 0; w->segment && d < HONE_MAX_CUTS; d++)
            give_back(w, &w->segment[d].arena), give_back(w, &w->segment[d].own);
        for (int q = 0; q < w->guard.n; q++)
            if (w->guard.at[q]) w->unit->row->free(w->unit->row, w->unit->number, w->guard.at[q]);
        hone_vec_free(&w->guard);
        if (w->queue) w->unit->row->close(w->queue);
        hone_free(w->segment);
        if (w->base) hone_free(w->base - w->n_constant);
    }
    hone_free(s->staging.at);
    hone_free(s);
}
void hone_spaces_set(hone_spaces *s, int unit, int32_t base, void *handle) {
    s->space[unit].base[base] = handle;
}
hone_queue *hone_spaces_queue(const hone_spaces *s, int unit) { return s->space[unit].queue; }
void *const *hone_spaces_bases(const hone_spaces *s, int unit, void **host) {
    return hone_unit_space(s->units, unit) ? s->space[unit].base : host;
}

/* ---- memory -------------------------------------------------------------------------------------------- */
static hone_status grow(space *w, piece *p, size_t want) {
    if (p->at && p->bytes >= want) return HONE_OK;
    HONE_TRY(w->unit->row->wait(w->queue)); /* whatever still reads it */
    give_back(w, p);
    HONE_TRY(w->unit->row->alloc(w->unit->row, w->unit->number, want ? want : 1, &p->at));
    p->bytes = want;
    return HONE_OK;
}
static hone_status grow_bases(space *w, const hone_plan *p) {
    if (w->base && p->n_base <= w->n_base && p->n_constant <= w->n_constant) return HONE_OK;
    const int n = p->n_base > w->n_base ? p->n_base : w->n_base,
              c = p->n_constant > w->n_constant ? p->n_constant : w->n_constant;
    void **base = hone_alloc(sizeof *base * ((size_t)n + (size_t)c + 1));
    if (!base) return hone_run_no_memory();
    base += c;
    if (w->base) {
        memcpy(base - w->n_constant, w->base - w->n_constant,
               sizeof *base * ((size_t)w->n_base + (size_t)w->n_constant));
        hone_free(w->base - w->n_constant);
    }
    w->base = base, w->n_base = n, w->n_constant = c;
    return HONE_OK;
}
/* Guard mode: an allocation for every block that lies here, new and full of ones for every run. */
static hone_status guard_blocks(space *w, int number, const hone_plan *p, int first_slot) {
    while (w->guard.n < p->guard_slot + p->n_block)
        if (!hone_push(&w->guard, NULL)) return hone_run_no_memory();
    HONE_TRY(w->unit->row->wait(w->queue));
    for (int k = 0; k < p->n_block; k++) {
        void **at = w->guard.at + p->guard_slot + k;
        const size_t bytes = (size_t)p->block[k].exact;
        if (p->block[k].space != number) continue;
        if (*at) w->unit->row->free(w->unit->row, w->unit->number, *at);
        *at = NULL;
        HONE_TRY(w->unit->row->alloc(w->unit->row, w->unit->number, bytes ? bytes : 1, at));
        w->base[first_slot + p->guard_slot + k] = *at;
        if (!bytes) continue;
        void *ones = hone_alloc_raw(bytes);
        if (!ones) return hone_run_no_memory();
        memset(ones, HONE_GUARD_FILL, bytes);
        hone_status s = w->unit->row->copy_in(w->queue, *at, 0, ones, bytes);
        hone_free(ones);
        HONE_TRY(s);
    }
    return HONE_OK;
}
/* What was computed when a plan was made. */
static hone_status bring_own(space *w, const hone_plan *p) {
    memory *s = w->segment + p->depth;
    if (s->own_of == p->id) return HONE_OK;
    HONE_TRY(grow(w, &s->own, (size_t)p->own_bytes));
    if (p->own_bytes) HONE_TRY(w->unit->row->copy_in(w->queue, s->own.at, 0, p->own, (size_t)p->own_bytes));
    s->own_of = p->id;
    return HONE_OK;
}
static hone_status bring_need(hone_spaces *s, const hone_plan *p, struct hone_need n, int first_slot) {
    space *w = s->space + n.unit;
    if (hone_base_is_constant(n.base)) {
        if (w->base[n.base]) return HONE_OK;
        s->copied->constants += (int64_t)hone_packs_size(s->c->packs, n.base);
        return hone_resident_get(s->c->residents, w->unit, w->queue, s->c->packs, n.base, &w->base[n.base]);
    }
    const hone_plan *of = p; /* whose own memory it is */
    if (n.base != HONE_BASE_PLAN)
        for (of = p->before; of && n.base != first_slot + of->own_slot;) of = of->before;
    if (!of) return hone_fail(HONE_BUG, "nobody knows base %d", n.base);
    HONE_TRY(bring_own(w, of));
    w->base[n.base] = w->segment[of->depth].own.at;
    return HONE_OK;
}
hone_status hone_spaces_prepare(hone_spaces *s, const hone_plan *p, int first_slot) {
    for (int k = 1; k < s->units->n; k++) {
        space *w = s->space + k;
        if (!hone_unit_space(s->units, k)) continue;
        if (!w->segment && !(w->segment = hone_alloc(sizeof *w->segment * HONE_MAX_CUTS)))
            return hone_run_no_memory();
        HONE_TRY(grow_bases(w, p));
        if (p->space[k].slot < 0) continue;
        HONE_TRY(grow(w, &w->segment[p->depth].arena, (size_t)p->space[k].bytes));
        w->base[first_slot + p->space[k].slot] = w->segment[p->depth].arena.at;
        if (p->guard_slot >= 0) HONE_TRY(guard_blocks(w, k, p, first_slot));
    }
    for (int k = 0; k < p->n_need; k++) HONE_TRY(bring_need(s, p, p->need[k], first_slot));
    return HONE_OK;
}

/* ---- copies -------------------------------------------------------------------------------------------- */
/* Bytes from one memory to another, or inside of one; a space 0 is the host's, and its handle an address. */
typedef struct {
    int space;
    void *handle;
    int64_t at;
} place;
static hone_status copy(hone_spaces *s, place to, place from, size_t bytes) {
    space *a = s->space + from.space, *b = s->space + to.space;
    const hone_device *row = a->unit->row;
    if (!bytes) return HONE_OK;
    if (!from.space && !to.space) {
        memcpy((char *)to.handle + to.at, (const char *)from.handle + from.at, bytes);
        return HONE_OK;
    }
    *(!from.space              ? &s->copied->in
      : !to.space              ? &s->copied->out
      : from.space == to.space ? &s->copied->within
                               : &s->copied->across) += (int64_t)bytes;
    if (!from.space)
        return b->unit->row->copy_in(b->queue, to.handle, to.at, (const char *)from.handle + from.at, bytes);
    if (!to.space) return row->copy_out(a->queue, (char *)to.handle + to.at, from.handle, from.at, bytes);
    if (from.space == to.space && row->copy_within)
        return row->copy_within(a->queue, to.handle, to.at, from.handle, from.at, bytes);
    if (from.space != to.space && row == b->unit->row && row->copy_peer)
        return row->copy_peer(b->queue, to.handle, to.at, a->queue, from.handle, from.at, bytes);
    if (s->staging.bytes < bytes) {
        hone_free(s->staging.at);
        s->staging = (piece){0};
        if (!(s->staging.at = hone_alloc_raw(bytes))) return hone_run_no_memory();
        s->staging.bytes = bytes;
    }
    HONE_TRY(row->copy_out(a->queue, s->staging.at, from.handle, from.at, bytes));
    return b->unit->row->copy_in(b->queue, to.handle, to.at, s->staging.at, bytes);
}
static place place_of(const hone_spaces *s, int space, hone_ref r, void *const *host) {
    return (place){space, space ? s->space[space].base[r.base] : host[r.base], r.offset};
}
hone_status hone_spaces_copy(hone_spaces *s, const hone_step *step, void *const *host) {
    const hone_transfer *t = step->data;
    return copy(s, place_of(s, t->to, step->ref[1], host), place_of(s, t->from, step->ref[0], host),
                (size_t)t->bytes);
}

/* ---- values -------------------------------------------------------------------------------------------- */
int hone_spaces_unit(const hone_spaces *s, const hone_value *v) {
    if (!v->away) return 0;
    for (int k = 1; k < s->units->n; k++)
        if (hone_away_is(v, s->units->unit + k)) return k;
    return -1;
}
static hone_status finish(hone_spaces *s, int unit) {
    const space *w = s->space + unit;
    return w->unit->row->wait ? w->unit->row->wait(w->queue) : HONE_OK;
}
static hone_status fill(hone_spaces *s, int unit, place from, hone_value *take, hone_value **out) {
    hone_status st = copy(s, (place){unit, take->away->handle, 0}, from, take->bytes);
    if (!st) st = finish(s, unit);
    if (st) hone_value_drop(take);
    else *out = take;
    return st;
}
hone_status hone_spaces_take(hone_spaces *s, int unit, hone_ref r, const hone_fact *f, hone_value **out) {
    hone_value *v = NULL;
    HONE_TRY(hone_away_tensor(s->units->unit + unit, f->dtype, f->dim, f->rank, &v));
    return fill(s, unit, (place){unit, s->space[unit].base[r.base], r.offset}, v, out);
}
hone_status hone_spaces_bring(hone_spaces *s, int unit, const hone_value *host, hone_value **out) {
    hone_value *v = NULL;
    HONE_TRY(hone_away_tensor(s->units->unit + unit, host->dtype, host->dim, host->rank, &v));
    return fill(s, unit, (place){0, host->data, 0}, v, out);
}
hone_status hone_spaces_fetch(hone_spaces *s, const hone_value *there, hone_value **host) {
    hone_value *v = NULL;
    HONE_TRY(hone_value_tensor(there->dtype, there->dim, there->rank, &v));
    hone_status st =
        hone_spaces_move(s, &(hone_pieces_move){.to = v, .from = there, .bytes = there->bytes, .n = 1});
    if (st) hone_value_drop(v);
    else *host = v;
    return st;
}
hone_status hone_spaces_move(hone_spaces *s, const hone_pieces_move *m) {
    const int to = hone_spaces_unit(s, m->to), from = hone_spaces_unit(s, m->from);
    if (to < 0 || from < 0) return hone_fail(HONE_BAD_INPUT, "a tensor lies on no device of this session");
    place a = {to, to ? m->to->away->handle : m->to->data, 0},
          b = {from, from ? m->from->away->handle : m->from->data, 0};
    hone_status st = HONE_OK;
    for (int64_t k = 0; k < m->n && !st; k++) {
        a.at = (int64_t)(m->at + (size_t)k * m->step),
        b.at = (int64_t)(m->from_at + (size_t)k * m->from_step);
        st = copy(s, a, b, m->bytes);
    }
    if (!st && to) st = finish(s, to);
    if (!st && from && from != to) st = finish(s, from);
    return st;
}
hone_status hone_spaces_wait(hone_spaces *s) {
    hone_status first = HONE_OK;
    char message[512] = "";
    for (int k = 0; k < s->units->n; k++) {
        const space *w = s->space + k;
        hone_status st = w->unit->row->wait ? w->unit->row->wait(w->queue) : HONE_OK;
        if (!st || first) continue;
        first = st;
        strncpy(message, hone_fail_text(), sizeof message - 1);
    }
    return first ? hone_fail(first, "%s", message) : HONE_OK;
}
