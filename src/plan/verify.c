/* SPDX-License-Identifier: Apache-2.0
   verify: holds a finished plan to what its steps say that they read and write. It trusts neither the memory
   planner nor the lives of blocks: it walks the steps in order with a map of the arena and of each output,
   in which every granule knows who wrote it last, and for which block.

   A read must find all of it written for its own block: else nobody wrote it, or somebody else has taken its
   place too early. A write may replace what another block left there (if that was still needed, its reader
   finds out), but not what its own block holds, unless the step reads that too: parts of one block do not
   overlap. Within a step nothing that is read may be written, but element by element where the step says so.
   What computes values is not looked at; tests compare those.

   A step reads and writes in the memory of its own device only: what lies elsewhere must have come by a
   copy, which states both memories. Segments must hold all steps, in order, each under its own device. */
#include "plan/verify.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/bind.h"

/* bytes; granules: of memory that is larger only the bounds are looked at */
enum { MOST_GRANULE = 64, MOST_MAPPED = 1 << 27 };
typedef struct {          /* who wrote: a step, a ref of it, and for which block */
    int step, ref, block; /* hone_block_placed; of outputs -1 */
} writer;
typedef struct {
    int64_t bytes; /* -1: not known here */
    bool there;    /* all of it was written before; nothing may be written */
    uint32_t *by;  /* else: of each granule, the number of its writer + 1, 0 nobody */
} memory;
typedef struct {
    const hone_compiled *c;
    const hone_plan *p;
    memory *base; /* from 0 on */
    bool *slot;   /* holds a value */
    int n_in, n_out;
    int64_t granule;
    hone_vec(writer) writers;
    int now; /* step; n_step: what follows the last one */
    char what[64];
} verifier;
typedef struct { /* one access */
    hone_ref ref;
    hone_box box;
    hone_copies copies;
    int space; /* of who touches it */
} touch;

static hone_status no_memory(void) { return hone_fail(HONE_NO_MEMORY, "no memory to verify a plan"); }
static const char *name_of(const verifier *v, int step) {
    const hone_node *n = step < v->p->n_step ? v->p->step[step].of : NULL;
    return n ? n->name : "";
}
static hone_status wrong(const verifier *v, const char *format, ...) HONE_PRINTF(2, 3);
static hone_status wrong(const verifier *v, const char *format, ...) {
    hone_text t = {0};
    va_list args;
    va_start(args, format);
    hone_text_putv(&t, format, args);
    va_end(args);
    hone_status s =
        v->now < v->p->n_step
            ? hone_fail(HONE_BUG, "the plan is wrong: step %d (%s, node '%s'), %s: %s", v->now,
                        v->p->step[v->now].tactic, name_of(v, v->now), v->what, t.text ? t.text : "")
            : hone_fail(HONE_BUG, "the plan is wrong: after its last step, %s: %s", v->what,
                        t.text ? t.text : "");
    hone_text_free(&t);
    return s;
}
static void say(verifier *v, const char *what, int k) { snprintf(v->what, sizeof v->what, "%s %d", what, k); }

/* ---- touches ------------------------------------------------------------------------------------------- */
static touch touch_of(const verifier *v, const hone_step *s, int k) {
    const hone_transfer *across = s->unit == HONE_UNIT_COPY ? s->data : NULL;
    touch t = {s->ref[k],
               s->access->box[k],
               {1, NULL},
               across ? (k ? across->to : across->from) : hone_unit_space(v->p->units, s->unit)};
    if (s->copies) t.copies.n = s->copies->n;
    return t;
}
static int64_t by_of(const hone_step *s, int k) { return s->copies ? s->copies->by[k] : 0; }
/* All runs of a touch: visit(v, arg, at, bytes), until one is not HONE_OK. `shift`: what is stored as bf16
   takes half of all. */
typedef hone_status visitor(verifier *, void *arg, const memory *, int64_t at, int64_t bytes);
static hone_status walk(verifier *v, const memory *m, const touch *t, int64_t by, int shift, visitor *visit,
                        void *arg) {
    const hone_box *b = &t->box;
    int64_t at[32] = {0};
    if (b->bytes <= 0 || b->n > 32) return HONE_OK;
    for (int64_t copy = 0; copy < t->copies.n; copy++) {
        memset(at, 0, sizeof at);
        for (bool more = true; more;) {
            int64_t place = copy * by;
            for (int k = 0; k < b->n; k++) place += at[k] * b->dim[k].step;
            HONE_TRY(visit(v, arg, m, t->ref.offset + (place >> shift), b->bytes >> shift));
            int k = b->n - 1;
            while (k >= 0 && ++at[k] == b->dim[k].count) at[k--] = 0;
            more = k >= 0;
        }
    }
    return HONE_OK;
}
static hone_status in_bounds(const verifier *v, const memory *m, const touch *t, int64_t by, int shift) {
    int64_t first, end, far = 0;
    if (t->box.bytes == HONE_BOX_WHOLE || m->bytes < 0) return HONE_OK;
    if (!hone_box_span(&t->box, &first, &end)) return t->box.bytes ? wrong(v, "its size overflows") : HONE_OK;
    if (__builtin_mul_overflow(t->copies.n - 1, by, &far) ||
        __builtin_add_overflow(*(far < 0 ? &first : &end), far, far < 0 ? &first : &end))
        return wrong(v, "its size overflows");
    first >>= shift, end >>= shift;
    if (t->ref.offset + first < 0 || t->ref.offset + end > m->bytes)
        return wrong(v, "bytes %lld to %lld of base %d, which has %lld",
                     (long long)t->ref.offset + (long long)first, (long long)t->ref.offset + (long long)end,
                     t->ref.base, (long long)m->bytes);
    return HONE_OK;
}
static const char *space_name(const verifier *v, int space) {
    return space ? v->p->units->unit[space].row->name : "the host";
}
/* The memory behind a ref, as seen from a space. */
static hone_status memory_of(const verifier *v, hone_ref r, int from, memory *constant, memory **out) {
    const int space = hone_plan_space(v->p, HONE_BASE_FIRST + v->n_in + v->n_out, r.base);
    if (space >= 0 && space != from)
        return wrong(v,
                     "it lies in the memory of %s:%d, and is touched from that of %s:%d: a copy is missing",
                     space_name(v, space), v->p->units->unit[space].number, space_name(v, from),
                     v->p->units->unit[from].number);
    if (hone_base_is_constant(r.base)) {
        if (-r.base > v->p->n_constant) return wrong(v, "there is no constant %d", -1 - r.base);
        *constant = (memory){(int64_t)hone_packs_size(v->c->packs, r.base), true, NULL}, *out = constant;
        return HONE_OK;
    }
    if (r.base >= v->p->n_base) return wrong(v, "there is no base %d", r.base);
    if (r.base == HONE_BASE_NONE) return wrong(v, "it was never placed");
    const int slot = r.base - HONE_BASE_FIRST - v->n_in - v->n_out;
    if (slot >= 0 && !v->slot[slot]) return wrong(v, "nobody has made the value in slot %d", slot);
    *out = v->base + r.base;
    return HONE_OK;
}
typedef struct {
    uint32_t me; /* writer's number + 1 */
    int block;
    bool again; /* it may write over what its own block holds */
    uint64_t in_place;
    const touch *self;
} touching;
static hone_status is_written(verifier *v, void *arg, const memory *m, int64_t at, int64_t bytes) {
    const touching *w = arg;
    for (int64_t g = at / v->granule; g < (at + bytes) / v->granule; g++) {
        const uint32_t by = m->by[g];
        if (!by)
            return wrong(v, "it reads byte %lld of base %d, which nobody wrote",
                         (long long)g * (long long)v->granule, w->self->ref.base);
        const writer *q = v->writers.at + by - 1;
        if (q->block != w->block)
            return wrong(
                v, "it reads byte %lld of base %d, but step %d (node '%s') has written something else there",
                (long long)g * (long long)v->granule, w->self->ref.base, q->step, name_of(v, q->step));
    }
    return HONE_OK;
}
static hone_status write_there(verifier *v, void *arg, const memory *m, int64_t at, int64_t bytes) {
    const touching *w = arg;
    for (int64_t g = at / v->granule; g < (at + bytes) / v->granule; g++) {
        const writer *q = m->by[g] ? v->writers.at + m->by[g] - 1 : NULL;
        if (q && m->by[g] != w->me && q->step == v->now)
            return wrong(v, "it writes byte %lld of base %d, which is part of its operand %d too",
                         (long long)g * (long long)v->granule, w->self->ref.base, q->ref);
        if (q && m->by[g] != w->me && q->block == w->block && !w->again)
            return wrong(v,
                         "it writes byte %lld of base %d, where step %d (node '%s') has put another part of "
                         "the same block",
                         (long long)g * (long long)v->granule, w->self->ref.base, q->step,
                         name_of(v, q->step));
        m->by[g] = w->me;
    }
    return HONE_OK;
}
/* What this step has just written must not be what it reads, but for the operand itself. */
static hone_status is_left(verifier *v, void *arg, const memory *m, int64_t at, int64_t bytes) {
    const touching *w = arg;
    for (int64_t g = at / v->granule; g < (at + bytes) / v->granule; g++) {
        const writer *q = m->by[g] ? v->writers.at + m->by[g] - 1 : NULL;
        if (!q || q->step != v->now || q->ref == (int)w->me) continue;
        return wrong(v, "it reads byte %lld of base %d, where its own operand %d is written",
                     (long long)g * (long long)v->granule, w->self->ref.base, q->ref);
    }
    return HONE_OK;
}
static bool same_box(const touch *a, const touch *b) {
    if (a->ref.base != b->ref.base || a->ref.offset != b->ref.offset || a->box.bytes != b->box.bytes ||
        a->box.n != b->box.n)
        return false;
    return !a->box.n || !memcmp(a->box.dim, b->box.dim, sizeof *a->box.dim * (size_t)a->box.n);
}

/* ---- steps --------------------------------------------------------------------------------------------- */
static hone_status read_one(verifier *v, const touch *t, int64_t by, int shift) {
    memory constant, *m = NULL;
    HONE_TRY(memory_of(v, t->ref, t->space, &constant, &m));
    if (!m) return wrong(v, "base %d is nobody's", t->ref.base);
    HONE_TRY(in_bounds(v, m, t, by, shift));
    touching w = {.block = t->ref.block, .self = t};
    return m->by ? walk(v, m, t, by, shift, is_written, &w) : HONE_OK;
}
static hone_status write_one(verifier *v, const touch *t, int64_t by, int shift, int ref, bool again) {
    memory constant, *m = NULL;
    HONE_TRY(memory_of(v, t->ref, t->space, &constant, &m));
    if (!m) return wrong(v, "base %d is nobody's", t->ref.base);
    HONE_TRY(in_bounds(v, m, t, by, shift));
    if (m->there) return wrong(v, "it writes to base %d, which is only there to be read", t->ref.base);
    if (!hone_push(&v->writers, ((writer){v->now, ref, t->ref.block}))) return no_memory();
    touching w = {.me = (uint32_t)v->writers.n, .block = t->ref.block, .again = again, .self = t};
    return m->by ? walk(v, m, t, by, shift, write_there, &w) : HONE_OK;
}
static hone_status verify_step(verifier *v, const hone_step *s) {
    const hone_access *a = s->access;
    if (s->unit == HONE_UNIT_COPY) {
        const hone_transfer *t = s->data;
        say(v, "operand", 0);
        if (a->n_ref != 2 || a->reads != 1 || a->writes != 2 || t->from < 0 || t->to < 0 ||
            t->from >= v->p->units->n || t->to >= v->p->units->n || t->from == t->to)
            return wrong(v, "it is no copy from one memory to another");
        if (a->box[0].bytes != t->bytes || a->box[1].bytes != t->bytes || a->box[0].n || a->box[1].n)
            return wrong(v, "it copies %lld bytes and states others", (long long)t->bytes);
    }
    for (int k = 0; k < a->n_ref; k++) {
        const touch t = touch_of(v, s, k);
        say(v, "operand", k);
        if (a->reads >> k & 1) HONE_TRY(read_one(v, &t, by_of(s, k), s->half_stored >> k & 1));
    }
    for (int k = 0; k < a->n_ref; k++) {
        const touch t = touch_of(v, s, k);
        say(v, "operand", k);
        if (a->writes >> k & 1)
            HONE_TRY(write_one(v, &t, by_of(s, k), s->half_stored >> k & 1, k, a->reads >> k & 1));
    }
    for (int k = 0; k < a->n_ref; k++) {
        const touch t = touch_of(v, s, k);
        memory constant, *m = NULL;
        if (!(a->reads >> k & 1)) continue;
        say(v, "operand", k);
        HONE_TRY(memory_of(v, t.ref, t.space, &constant, &m));
        if (!m->by) continue;
        bool mine = false; /* lies just where a result lies, and is read only there */
        for (int q = 0; q < a->n_ref && s->in_place >> k & 1 && !mine; q++) {
            const touch y = touch_of(v, s, q);
            mine = a->writes >> q & 1 && same_box(&t, &y);
        }
        touching w = {.me = (uint32_t)k, .self = &t};
        if (!mine) HONE_TRY(walk(v, m, &t, by_of(s, k), s->half_stored >> k & 1, is_left, &w));
    }
    return HONE_OK;
}
/* A tensor as a touch; strides NULL: dense. */
static hone_status touch_tensor(hone_arena *a, const hone_fact *f, const int64_t *stride, hone_ref ref,
                                touch *out) {
    int64_t dense[HONE_MAX_RANK];
    hone_dense_strides(f, dense);
    *out = (touch){.ref = ref, .copies.n = 1};
    return hone_box_make(a, f->dim, stride ? stride : dense, f->rank, (int64_t)hone_dtypes[f->dtype].bytes,
                         &out->box)
               ? HONE_OK
               : no_memory();
}
static hone_status verify_host(verifier *v, hone_arena *a, const hone_step *s) {
    const hone_host_step *h = s->data;
    touch t;
    for (int k = 0; k < h->node->n_in; k++) {
        const hone_host_operand *o = h->in + k;
        say(v, "input", k);
        if (o->kind == HONE_OPERAND_SLOT && (o->slot < 0 || o->slot >= v->p->n_slot || !v->slot[o->slot]))
            return wrong(v, "nobody has made the value in slot %d", o->slot);
        if (o->kind != HONE_OPERAND_TENSOR) continue;
        HONE_TRY(touch_tensor(a, &o->fact, NULL, h->ref[k], &t));
        t.space = o->space;
        HONE_TRY(read_one(v, &t, 0, 0));
    }
    for (int k = 0; k < h->node->n_out; k++) {
        const hone_host_operand *o = h->out + k;
        say(v, "output", k);
        if (o->kind == HONE_OPERAND_SLOT) {
            if (o->slot < 0 || o->slot >= v->p->n_slot) return wrong(v, "there is no slot %d", o->slot);
            if (v->slot[o->slot]) return wrong(v, "slot %d holds a value already", o->slot);
            v->slot[o->slot] = true;
        }
        if (o->kind != HONE_OPERAND_TENSOR) continue;
        HONE_TRY(touch_tensor(a, &o->fact, NULL, h->ref[h->node->n_in + k], &t));
        HONE_TRY(write_one(v, &t, 0, 0, h->node->n_in + k, false));
    }
    return HONE_OK;
}

/* Segments: all steps, in order, each under its own device. */
static hone_status verify_segments(verifier *v) {
    const hone_plan *p = v->p;
    int at = 0;
    v->now = p->n_step;
    for (int k = 0; k < p->n_segment; k++) {
        const struct hone_planned_segment *g = p->segment + k;
        say(v, "segment", k);
        if (g->from != at || g->to <= at || g->to > p->n_step)
            return wrong(v, "it has steps %d to %d, and should begin at %d", g->from, g->to, at);
        for (; at < g->to; at++) {
            const hone_step *s = p->step + at;
            if (s->unit != g->unit) return wrong(v, "step %d is another device's", at);
            if (s->host && s->unit)
                return wrong(v, "step %d is the host's, and would run on %s", at, space_name(v, s->unit));
            if (s->unit != HONE_UNIT_COPY && s->unit >= p->units->n)
                return wrong(v, "step %d is of a device that is none", at);
        }
    }
    return at == p->n_step ? HONE_OK : wrong(v, "the last %d steps are in no segment", p->n_step - at);
}
/* What segments in other memories read of constants, they must have been promised. */
static hone_status verify_needs(verifier *v) {
    const hone_plan *p = v->p;
    for (v->now = 0; v->now < p->n_step; v->now++) {
        const hone_step *s = p->step + v->now;
        if (s->unit == HONE_UNIT_COPY || !s->access || !hone_unit_space(p->units, s->unit)) continue;
        for (int q = 0; q < s->access->n_ref; q++) {
            bool there = !(s->access->reads >> q & 1) ||
                         hone_plan_space(p, HONE_BASE_FIRST + v->n_in + v->n_out, s->ref[q].base) >= 0;
            for (int k = 0; k < p->n_need && !there; k++)
                there = p->need[k].unit == s->unit && p->need[k].base == s->ref[q].base;
            say(v, "operand", q);
            if (!there)
                return wrong(v, "nobody brings constant %d to %s", -1 - s->ref[q].base,
                             space_name(v, s->unit));
        }
    }
    return HONE_OK;
}

/* ---- the plan ------------------------------------------------------------------------------------------ */
static int64_t gcd(int64_t a, int64_t b) {
    for (a = a < 0 ? -a : a, b = b < 0 ? -b : b; b;) {
        const int64_t r = a % b;
        a = b, b = r;
    }
    return a;
}
/* The largest piece of memory that nobody touches a part of. */
static int64_t granule_of(const verifier *v) {
    int64_t g = MOST_GRANULE;
    for (int k = 0; k < v->p->n_step; k++) {
        const hone_step *s = v->p->step + k;
        if (!s->access) { /* a host step: whole tensors */
            const hone_host_step *h = s->data;
            if (!s->host) continue;
            for (int q = 0; q < h->node->n_in + h->node->n_out; q++)
                if (h->in[q].kind == HONE_OPERAND_TENSOR)
                    g = gcd(gcd(g, h->ref[q].offset), (int64_t)hone_dtypes[h->in[q].fact.dtype].bytes);
            continue;
        }
        for (int q = 0; q < s->access->n_ref; q++) {
            const hone_box *b = s->access->box + q;
            const int shift = s->half_stored >> q & 1;
            if (!((s->access->reads | s->access->writes) >> q & 1) || b->bytes < 0) continue;
            g = gcd(gcd(g, s->ref[q].offset), b->bytes >> shift);
            for (int d = 0; d < b->n; d++) g = gcd(g, b->dim[d].step >> shift);
            if (s->copies) g = gcd(g, s->copies->by[q] >> shift);
        }
    }
    for (int k = 0; k < v->p->n_base; k++)
        if (v->base[k].bytes > 0) g = gcd(g, v->base[k].bytes);
    const hone_graph *graph = v->c->graph;
    /* vars that live on, into this plan and out of it */
    for (const hone_plan *p = v->p; p; p = p == v->p ? p->before : NULL)
        for (int k = 0; p->var && k < graph->var.n; k++)
            if ((p->var[k].at == HONE_AT_REF || p->var[k].at == HONE_AT_COUNTED) && p->var[k].fact.dtype &&
                p->var[k].fact.dtype != HONE_DTYPE_STRING)
                g = gcd(gcd(g, p->var[k].ref.offset), (int64_t)hone_dtypes[p->var[k].fact.dtype].bytes);
    return g;
}
static int64_t bytes_of(const hone_fact *f) {
    int64_t n;
    if (!hone_fact_shaped(f) || f->dtype == HONE_DTYPE_STRING || !hone_count_of(f->dim, f->rank, &n))
        return -1;
    return n * (int64_t)hone_dtypes[f->dtype].bytes;
}
static hone_status map(verifier *v, hone_arena *a, memory *m) { /* nobody wrote any of it yet */
    m->there = false;
    if (m->bytes > 0 && m->bytes / v->granule <= MOST_MAPPED &&
        !(m->by = HONE_NEW_N(a, uint32_t, m->bytes / v->granule)))
        return no_memory();
    return HONE_OK;
}
static const hone_fact a_count = {.dtype = HONE_DTYPE_I64, .rank = 0}; /* of what is counted */
static hone_status inherit_one(verifier *v, hone_arena *a, int var, const hone_fact *f, const int64_t *stride,
                               hone_ref ref) {
    if (ref.base < HONE_BASE_FIRST || ref.base >= v->p->n_base || !v->base[ref.base].by) return HONE_OK;
    touch t;
    HONE_TRY(touch_tensor(a, f, stride, ref, &t));
    if (!hone_push(&v->writers, ((writer){-1, var, ref.block}))) return no_memory();
    touching here = {.me = (uint32_t)v->writers.n, .block = ref.block, .again = true, .self = &t};
    say(v, "what is left of var", var);
    HONE_TRY(in_bounds(v, v->base + ref.base, &t, 0, 0));
    return walk(v, v->base + ref.base, &t, 0, 0, write_there, &here);
}
/* What the plan segment before left in outputs, and what of its memory is still something. */
static hone_status inherit(verifier *v, hone_arena *a) {
    const hone_plan *p = v->p->before;
    const int first_slot = HONE_BASE_FIRST + v->n_in + v->n_out;
    const int from = p->guard_slot < 0 ? p->arena_slot : p->guard_slot,
              to = p->guard_slot < 0 ? from + 1 : from + p->n_block;
    for (int k = from; k < to; k++) HONE_TRY(map(v, a, v->base + first_slot + k));
    for (int k = 1; p->space && k < p->units->n; k++)
        if (p->space[k].slot >= 0) HONE_TRY(map(v, a, v->base + first_slot + p->space[k].slot));
    for (int k = 0; k < v->c->graph->var.n; k++) {
        const hone_bound_var *w = p->var + k;
        if (w->at != HONE_AT_REF && w->at != HONE_AT_COUNTED) continue;
        const hone_fact room = hone_bound_room(w);
        HONE_TRY(inherit_one(v, a, k, &room, w->stride, w->ref));
        if (w->at == HONE_AT_COUNTED) HONE_TRY(inherit_one(v, a, k, &a_count, NULL, w->count));
    }
    for (int k = from; k < to; k++) v->base[first_slot + k].there = true;
    for (int k = 1; p->space && k < p->units->n; k++)
        if (p->space[k].slot >= 0) v->base[first_slot + p->space[k].slot].there = true;
    return HONE_OK;
}
static hone_status begin(verifier *v, hone_arena *a, const hone_fact *input) {
    const hone_plan *p = v->p;
    const int first_slot = HONE_BASE_FIRST + v->n_in + v->n_out;
    v->base = HONE_NEW_N(a, memory, p->n_base + 1), v->slot = HONE_NEW_N(a, bool, p->n_slot + 1);
    if (!v->base || !v->slot) return no_memory();
    for (int k = 0; k < p->n_base; k++) v->base[k] = (memory){-1, true, NULL};
    for (const hone_plan *q = p; q; q = q->before)
        for (int k = 1; q->space && k < q->units->n; k++)
            if (q->space[k].slot >= 0)
                v->base[first_slot + q->space[k].slot].bytes = q->space[k].bytes,
                                     v->slot[q->space[k].slot] = true;
    v->base[HONE_BASE_ARENA].bytes = p->arena_bytes, v->base[HONE_BASE_PLAN].bytes = p->own_bytes;
    for (int k = 0; k < v->n_in; k++)
        v->base[HONE_BASE_FIRST + k].bytes = bytes_of(input + k), v->slot[k] = true;
    for (int k = 0; k < v->n_out; k++)
        if (p->out[k].how == HONE_OUT_WRITTEN)
            v->base[HONE_BASE_FIRST + v->n_in + k].bytes = bytes_of(&p->out[k].fact);
    for (int k = 0; p->before && k < p->before->n_slot; k++) v->slot[k] = true;
    for (const hone_plan *q = p->before; q; q = q->before) {
        v->base[first_slot + q->arena_slot].bytes = q->arena_bytes;
        v->base[first_slot + q->own_slot].bytes = q->own_bytes;
    }
    for (const hone_plan *q = p; q; q = q->before)
        for (int k = 0; q->guard_slot >= 0 && k < q->n_block; k++)
            v->base[first_slot + q->guard_slot + k].bytes = q->block[k].exact,
                                                 v->slot[q->guard_slot + k] = true;
    v->granule = granule_of(v);
    HONE_TRY(map(v, a, v->base + HONE_BASE_ARENA));
    for (int k = 1; p->space && k < p->units->n; k++)
        if (p->space[k].slot >= 0) HONE_TRY(map(v, a, v->base + first_slot + p->space[k].slot));
    for (int k = 0; p->guard_slot >= 0 && k < p->n_block; k++)
        HONE_TRY(map(v, a, v->base + first_slot + p->guard_slot + k));
    for (int k = 0; k < v->n_out; k++) HONE_TRY(map(v, a, v->base + HONE_BASE_FIRST + v->n_in + k));
    return p->before ? inherit(v, a) : HONE_OK;
}
static hone_status lives_on(verifier *v, hone_arena *a, const hone_fact *f, const int64_t *stride,
                            hone_ref ref) {
    const int first_slot = HONE_BASE_FIRST + v->n_in + v->n_out;
    touch t;
    if (ref.block >= -1) return HONE_OK; /* in no block of this plan segment */
    if (ref.base == first_slot + v->p->arena_slot) ref.base = HONE_BASE_ARENA;
    HONE_TRY(touch_tensor(a, f, stride, ref, &t));
    const int space = hone_plan_space(v->p, first_slot, ref.base);
    t.space = space < 0 ? 0 : space;
    return read_one(v, &t, 0, 0);
}
static hone_status end(verifier *v, hone_arena *a) {
    const hone_plan *p = v->p;
    touch t;
    for (int k = 0; k < v->n_out; k++) {
        say(v, "output", k);
        if (p->out[k].how == HONE_OUT_SLOT &&
            (p->out[k].slot < 0 || p->out[k].slot >= p->n_slot || !v->slot[p->out[k].slot]))
            return wrong(v, "nobody has made the value in slot %d", p->out[k].slot);
        if (p->out[k].how != HONE_OUT_WRITTEN) continue;
        HONE_TRY(
            touch_tensor(a, &p->out[k].fact, NULL, (hone_ref){HONE_BASE_FIRST + v->n_in + k, -1, 0}, &t));
        t.space = p->port ? p->port[v->n_in + k] : 0;
        HONE_TRY(read_one(v, &t, 0, 0));
    }
    for (int k = 0; p->cut_node >= 0 && k < v->c->graph->var.n; k++) {
        const hone_bound_var *w = p->var + k;
        if (w->at != HONE_AT_REF && w->at != HONE_AT_COUNTED) continue;
        const hone_fact room = hone_bound_room(w);
        snprintf(v->what, sizeof v->what, "'%.40s' past the cut", v->c->graph->var.at[k].name);
        HONE_TRY(lives_on(v, a, &room, w->stride, w->ref));
        if (w->at == HONE_AT_COUNTED) HONE_TRY(lives_on(v, a, &a_count, NULL, w->count));
    }
    return HONE_OK;
}
hone_status hone_plan_verify(const hone_compiled *c, const hone_fact *input, const hone_plan *p) {
    verifier v = {.c = c, .p = p, .n_in = c->graph->in.n, .n_out = c->graph->out.n};
    hone_arena *a = hone_arena_create();
    hone_status s = a ? begin(&v, a, input) : no_memory();
    for (v.now = 0; v.now < p->n_step && !s; v.now++) {
        const hone_step *step = p->step + v.now;
        s = step->access ? verify_step(&v, step)
            : step->host ? verify_host(&v, a, step)
                         : wrong(&v, "it does not say what it reads and writes");
        if (s) break;
    }
    if (!s) s = end(&v, a);
    if (!s) s = verify_segments(&v);
    if (!s) s = verify_needs(&v);
    hone_vec_free(&v.writers);
    hone_arena_destroy(a);
    return s;
}
static bool wanted(atomic_int *known /* 0: not asked yet */, const char *name, bool otherwise) {
    int is = atomic_load_explicit(known, memory_order_relaxed);
    if (is) return is == 2;
    const char *word = getenv(name);
    is = 1 + (word && *word ? !strcmp(word, "1") : otherwise);
    atomic_store_explicit(known, is, memory_order_relaxed);
    return is == 2;
}
bool hone_verify_wanted(void) {
    static atomic_int known;
#ifdef NDEBUG
    return wanted(&known, "HONE_VERIFY", false);
#else
    return wanted(&known, "HONE_VERIFY", true);
#endif
}
bool hone_guard_wanted(void) {
    static atomic_int known;
    return wanted(&known, "HONE_GUARD", false);
}
