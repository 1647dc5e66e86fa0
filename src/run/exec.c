/* SPDX-License-Identifier: Apache-2.0
   exec: see exec.h. Steps are the device's to run (device/device.h); host steps come back here. */
#include "run/exec.h"

#include <string.h>

#include "base/thread.h"
#include "device/away.h"
#include "plan/bind.h"
#include "plan/verify.h"
#include "run/spaces.h"

typedef struct {
    const hone_compiled *body;
    hone_exec *exec;
} child;
enum { MOST_CONTENTS = 4096 }; /* an input with more numbers decides no shape ahead of a run */
struct hone_exec {
    const hone_compiled *c;
    hone_exec_options options;
    hone_plan *plans; /* most recently used first, through `sibling` */
    int n_plans;
    const hone_plan *last;
    struct {
        void *at;
        size_t bytes;
    } arena[HONE_MAX_CUTS];
    const hone_units *units;
    hone_spaces *spaces;
    hone_copied copied; /* by the last run, where it is not a body's */
    hone_value **slot;
    void **base; /* bases from 0 on; those of constants lie before it */
    int n_slot, n_base, n_constant;
    hone_vec(void *) guard; /* by slot; guard mode */
    hone_vec(int64_t) key;
    hone_fact *input;         /* facts of this run's inputs */
    uint8_t *in_space;        /* where they lie */
    hone_strings *strings;    /* made in this run */
    hone_vec(child) children; /* bodies that ran here, of branches bound in place too */
    hone_value *const *in;
    /* the clock at which this run must be over; 0: whenever. A body has its outermost run's */
    uint64_t until;
};

hone_status hone_exec_create(const hone_compiled *c, const hone_exec_options *o, hone_exec **out) {
    hone_exec *e = hone_alloc(sizeof *e);
    if (!e) return hone_run_no_memory();
    e->c = c, e->options = *o, e->units = o->units ? o->units : &hone_units_cpu;
    e->input = hone_alloc(sizeof *e->input * (size_t)(c->graph->in.n + 1));
    e->in_space = hone_alloc((size_t)c->graph->in.n + 1);
    hone_status s = e->input && e->in_space
                        ? hone_spaces_create(c, e->units, o->copied ? o->copied : &e->copied, &e->spaces)
                        : hone_run_no_memory();
    if (s) hone_exec_destroy(e);
    else *out = e;
    return s;
}
void hone_exec_destroy(hone_exec *e) {
    if (!e) return;
    hone_plan_destroy(e->plans);
    for (int k = 0; k < HONE_MAX_CUTS; k++) hone_free(e->arena[k].at);
    for (int k = 0; k < e->n_slot; k++) hone_value_drop(e->slot[k]);
    for (int k = 0; k < e->children.n; k++) hone_exec_destroy(e->children.at[k].exec);
    hone_vec_free(&e->children);
    hone_spaces_destroy(e->spaces);
    hone_free(e->slot);
    if (e->base) hone_free(e->base - e->n_constant);
    hone_free(e->input);
    hone_free(e->in_space);
    for (int k = 0; k < e->guard.n; k++) hone_free(e->guard.at[k]);
    hone_vec_free(&e->guard);
    hone_vec_free(&e->key);
    hone_strings_drop(e->strings);
    hone_free(e);
}
const hone_plan *hone_exec_last(const hone_exec *e) { return e->last; }
const hone_copied *hone_exec_copied(const hone_exec *e) { return &e->copied; }
int hone_exec_plans(const hone_exec *e) { return e->n_plans; }

/* ---- host steps ---------------------------------------------------------------------------------------- */
typedef struct {
    hone_host_call call;
    hone_exec *exec;
    const hone_host_step *step;
} hosting;
/* The executor of a body, kept from run to run: its plans are. On a device its outputs stay there, but for a
   Loop's condition. */
static hone_status child_of(hone_exec *e, const hone_host_step *h, const hone_compiled *body,
                            hone_exec **out) {
    for (int k = 0; k < e->children.n; k++)
        if (e->children.at[k].body == body) {
            *out = e->children.at[k].exec;
            return HONE_OK;
        }
    child c = {.body = body};
    hone_exec_options o = e->options;
    o.copied = o.copied ? o.copied : &e->copied;
    o.stay = h->unit != 0, o.read = !strcmp(h->node->program->how, "loop");
    HONE_TRY(hone_exec_create(body, &o, &c.exec));
    if (!hone_push(&e->children, c)) {
        hone_exec_destroy(c.exec);
        return hone_run_no_memory();
    }
    *out = c.exec;
    return HONE_OK;
}
static hone_status run_body(const hone_host_call *call, int b, hone_value *const *in, int n_in,
                            hone_value **out, int n_out) {
    const hosting *h = call->run;
    if (b < 0 || b >= call->node->n_body) return hone_fail(HONE_BUG, "no such body");
    /* of the step's own graph: it may stand in a branch bound in place */
    const hone_compiled *body = h->step->compiled->body[h->step->number][b];
    const hone_graph *g = body->graph;
    if (n_in != g->in.n || n_out != g->out.n)
        return hone_fail(HONE_BAD_INPUT, "a body has %d inputs and %d outputs, %d and %d are needed", g->in.n,
                         g->out.n, n_in, n_out);
    hone_exec *e = NULL;
    HONE_TRY(child_of(h->exec, h->step, body, &e));
    e->until = h->exec->until;
    hone_status s = HONE_OK;
    hone_value **seen = NULL; /* what lies on a device and decides shapes comes to the host */
    for (int k = 0; k < n_in && !s; k++) {
        if (!in[k] || !in[k]->away || !body->content_input[k] || hone_value_count(in[k]) > MOST_CONTENTS)
            continue;
        if (!seen && !(seen = hone_alloc(sizeof *seen * (size_t)n_in * 2))) return hone_run_no_memory();
        s = hone_spaces_fetch(h->exec->spaces, in[k], seen + n_in + k);
    }
    for (int k = 0; seen && k < n_in; k++) seen[k] = seen[n_in + k] ? seen[n_in + k] : in[k];
    if (!s) s = hone_exec_run(e, seen ? seen : in, out);
    for (int k = 0; seen && k < n_in; k++) hone_value_drop(seen[n_in + k]);
    hone_free(seen);
    return s;
}
static hone_status make(const hone_host_call *call, const hone_value *like, hone_dtype t, const int64_t *dims,
                        int rank, hone_value **out) {
    const hone_exec *e = ((const hosting *)call->run)->exec;
    const int unit = hone_spaces_unit(e->spaces, like);
    return unit < 1 ? hone_value_tensor(t, dims, rank, out)
                    : hone_away_tensor(e->units->unit + unit, t, dims, rank, out);
}
static hone_status move(const hone_host_call *call, const hone_pieces_move *m) {
    return hone_spaces_move(((const hosting *)call->run)->exec->spaces, m);
}
/* An operand of a host step as a value: where its reader wants it. */
static hone_status place_operand(hone_exec *e, const hone_host_step *h, int k, const hone_value *v,
                                 hone_value **out) {
    const hone_host_operand *o = h->in + k;
    const bool numbers = v->tag == HONE_TAG_TENSOR && v->dtype != HONE_DTYPE_STRING;
    if (!numbers || (v->away && o->goes) || (!v->away && !o->goes)) *out = hone_value_hold((hone_value *)v);
    else
        return o->goes ? hone_spaces_bring(e->spaces, h->unit, v, out) : hone_spaces_fetch(e->spaces, v, out);
    return HONE_OK;
}
/* Pieces of a host function's work, taken in turn by whoever is free. */
typedef struct {
    void (*piece)(void *arg, int64_t k);
    void *arg;
    int64_t n;
    _Atomic int64_t taken;
} pieces;
static void take_pieces(void *arg, int me, int members) {
    pieces *p = arg;
    (void)me, (void)members;
    for (int64_t k; (k = atomic_fetch_add_explicit(&p->taken, 1, memory_order_relaxed)) < p->n;)
        p->piece(p->arg, k);
}
static int threads_of(const hone_exec *e);
static void spread(const hone_host_call *call, int64_t n, void (*piece)(void *arg, int64_t k), void *arg) {
    pieces p = {.piece = piece, .arg = arg, .n = n};
    hone_team_share(n < call->threads ? (int)n : call->threads, take_pieces, &p);
}
static hone_status run_host(void *arg, const hone_step *step) {
    hone_exec *e = arg;
    const hone_host_step *h = step->data;
    const hone_node *n = h->node;
    hone_value *stack[32], **all = stack;
    hone_dtype types_stack[32], *types = types_stack;
    int count = n->n_in + n->n_out;
    if (count > 32 && (!(all = hone_alloc(sizeof *all * (size_t)count)) ||
                       !(types = hone_alloc(sizeof *types * (size_t)count)))) {
        if (all != stack) hone_free(all);
        return hone_run_no_memory();
    }
    memset(all, 0, sizeof *all * (size_t)count);
    hone_value **in = all, **out = all + n->n_in;
    hone_status s = HONE_OK;
    bool keeps = false; /* a result may hold its inputs: they must own their data */
    for (int k = 0; k < n->n_out; k++) {
        int o = n->program->n_in + (k < n->program->n_out ? k : n->program->n_out - 1);
        hone_of of = n->program->operand[o].of;
        keeps |=
            of == HONE_OF_SEQ || of == HONE_OF_OPT || of == HONE_OF_MAP || of == HONE_OF_ANY || n->n_body;
    }
    for (int k = 0; k < n->n_in && !s; k++) {
        const hone_host_operand *o = h->in + k;
        if (o->kind == HONE_OPERAND_ABSENT) continue;
        const hone_value *v = o->kind == HONE_OPERAND_SLOT
                                  ? (o->slot < e->c->graph->in.n ? e->in[o->slot] : e->slot[o->slot])
                              : o->kind == HONE_OPERAND_INPUT ? e->in[o->slot]
                              : o->kind == HONE_OPERAND_CONST ? o->constant
                                                              : NULL;
        hone_value *view = NULL;
        if (!v && o->kind == HONE_OPERAND_TENSOR && o->space) {
            s = hone_spaces_take(e->spaces, o->space, h->ref[k], &o->fact, &in[k]);
            continue;
        }
        if (!v && o->kind == HONE_OPERAND_TENSOR) {
            s = hone_value_view(o->fact.dtype, o->fact.dim, o->fact.rank, hone_ref_at(h->ref[k], e->base),
                                &view);
            v = view;
        }
        if (s || !v) continue;
        const bool there = o->goes || v->away; /* it is, or will be, on a device */
        if (!there && keeps && v->tag == HONE_TAG_TENSOR && !v->free_data && o->kind != HONE_OPERAND_CONST)
            s = hone_value_copy(v, &in[k]);
        else s = place_operand(e, h, k, v, &in[k]);
        hone_value_drop(view);
    }
    for (int k = 0; k < n->n_out && !s; k++) {
        types[k] = h->out[k].fact.dtype;
        if (h->out[k].kind == HONE_OPERAND_TENSOR)
            s = hone_value_view(h->out[k].fact.dtype, h->out[k].fact.dim, h->out[k].fact.rank,
                                hone_ref_at(h->ref[n->n_in + k], e->base), &out[k]);
    }
    if (!s && !e->strings && !(e->strings = hone_strings_create())) s = hone_run_no_memory();
    if (!s) {
        hosting w = {.call = {.node = n,
                              .in = in,
                              .out = out,
                              .out_dtype = types,
                              .strings = e->strings,
                              .run_body = run_body,
                              .spread = spread,
                              .make = make,
                              .move = move,
                              .threads = e->options.profile == 1 ? 1 : threads_of(e),
                              .kept = h->compiled->kept + h->number},
                     .exec = e,
                     .step = h};
        w.call.run = &w;
        s = h->host ? h->host(&w.call) : hone_fail(HONE_NOT_SUPPORTED, "there is no host function for it");
    }
    for (int k = 0; k < n->n_out && !s; k++) {
        const hone_host_operand *o = h->out + k;
        if (o->kind == HONE_OPERAND_ABSENT) continue;
        if (!out[k]) s = hone_fail(HONE_BUG, "output %d was not made", k);
        else if (o->kind == HONE_OPERAND_SLOT) {
            hone_value_drop(e->slot[o->slot]);
            e->slot[o->slot] = hone_value_hold(out[k]);
            e->base[HONE_BASE_FIRST + e->c->graph->in.n + e->c->graph->out.n + o->slot] = out[k]->data;
        } else { /* an op that made its own tensor in spite of the one handed in */
            void *to = hone_ref_at(h->ref[n->n_in + k], e->base);
            int64_t bytes = hone_value_count(out[k]) * hone_dtypes[out[k]->dtype].bytes;
            bool fits = out[k]->dtype == o->fact.dtype && out[k]->rank == o->fact.rank;
            for (int d = 0; fits && d < out[k]->rank; d++) fits = out[k]->dim[d] == o->fact.dim[d];
            if (!fits) s = hone_fail(HONE_BUG, "output %d has another shape than inferred", k);
            else if (out[k]->data != to && bytes) memcpy(to, out[k]->data, (size_t)bytes);
        }
    }
    for (int k = 0; k < count; k++) hone_value_drop(all[k]);
    if (all != stack) hone_free(all), hone_free(types);
    return s;
}

/* ---- memory and plans ---------------------------------------------------------------------------------- */
static hone_status grow(void **at, size_t *have, size_t want) {
    if (*have >= want && *at) return HONE_OK;
    hone_free(*at);
    *have = 0;
    if (!(*at = hone_alloc_raw(want ? want : 1))) return hone_run_no_memory();
    *have = want;
    return HONE_OK;
}
static int threads_of(const hone_exec *e) {
    return e->options.threads > 0 ? e->options.threads : hone_cores();
}
static bool same_key(const hone_plan *p, const int64_t *key, int n) {
    const int64_t *k = (const int64_t *)(const void *)p->key;
    return k[0] == n && (!n || !memcmp(k + 1, key, sizeof *key * (size_t)n));
}
static hone_plan *find(hone_plan **list, const int64_t *key, int n) { /* and moves it to the front */
    for (hone_plan **p = list; *p; p = &(*p)->sibling)
        if (same_key(*p, key, n)) {
            hone_plan *found = *p;
            *p = found->sibling, found->sibling = *list, *list = found;
            return found;
        }
    return NULL;
}
static hone_status keep(hone_exec *e, hone_plan **list, hone_plan *p, const int64_t *key, int n, int most) {
    int64_t *k = hone_alloc(sizeof *k * (size_t)(n + 1));
    if (!k) {
        hone_plan_destroy(p);
        return hone_run_no_memory();
    }
    k[0] = n;
    if (n) memcpy(k + 1, key, sizeof *k * (size_t)n);
    p->key = (char *)k, p->sibling = *list, *list = p;
    int count = 1;
    for (hone_plan *q = p; q->sibling; q = q->sibling)
        if (++count > most) { /* the least recently used goes */
            hone_plan *old = q->sibling;
            q->sibling = NULL;
            hone_plan_destroy(old);
            break;
        }
    if (list == &e->plans) e->n_plans = count > most ? most : count;
    return HONE_OK;
}
static bool add_key(hone_exec *e, const hone_value *v, bool numbers) {
    if (!v) return hone_push(&e->key, -7);
    if (!hone_push(&e->key, (int64_t)v->tag * 64 + v->dtype) ||
        !hone_push(&e->key, v->tag == HONE_TAG_TENSOR ? v->rank : -1))
        return false;
    for (int k = 0; v->tag == HONE_TAG_TENSOR && k < v->rank; k++)
        if (!hone_push(&e->key, v->dim[k])) return false;
    if (!numbers || v->tag != HONE_TAG_TENSOR || v->dtype == HONE_DTYPE_STRING) return true;
    int64_t n = hone_value_count(v);
    for (int64_t k = 0; k < n; k++) {
        double f = hone_dtypes[v->dtype].kind == HONE_KIND_FLOAT ? hone_value_f64(v, k) : 0;
        int64_t i = hone_dtypes[v->dtype].kind == HONE_KIND_FLOAT ? 0 : hone_value_i64(v, k);
        if (hone_dtypes[v->dtype].kind == HONE_KIND_FLOAT) memcpy(&i, &f, sizeof i);
        if (!hone_push(&e->key, i)) return false;
    }
    return true;
}
/* What the next plan segment wants to know, read off the last one. `views` are borrowed tensors over arena
   memory; the caller drops them. */
static hone_status read_wanted(hone_exec *e, const hone_plan *p, hone_fact *facts, hone_value **views,
                               uint8_t *space) {
    for (int k = 0; k < p->n_wanted; k++) {
        const hone_bound_var *v = p->var + p->wanted[k];
        if (v->at == HONE_AT_SLOT) {
            const hone_value *w = v->slot < e->c->graph->in.n ? e->in[v->slot] : e->slot[v->slot];
            if (!w) return hone_fail(HONE_BUG, "a value is not there");
            facts[k] = hone_fact_of_value(w);
            if (w->away) { /* its shape is known, its numbers are not */
                const int unit = hone_spaces_unit(e->spaces, w);
                facts[k].value = NULL, space[k] = (uint8_t)(unit > 0 ? unit : 0);
                if (!hone_push(&e->key, -100 - unit) || !add_key(e, w, false)) return hone_run_no_memory();
                continue;
            }
        } else if (v->at == HONE_AT_COUNTED) {
            int64_t n;
            memcpy(&n, hone_ref_at(v->count, e->base), sizeof n);
            if (n < 0 || n > v->most)
                return hone_fail(HONE_BUG, "a device counted %lld of at most %lld", (long long)n,
                                 (long long)v->most);
            facts[k] = v->fact, facts[k].dim[v->counted] = n, facts[k].value = NULL, facts[k].contents = NULL;
            if (!hone_push(&e->key, n)) return hone_run_no_memory();
            continue;
        } else {
            HONE_TRY(hone_value_view(v->fact.dtype, v->fact.dim, v->fact.rank, hone_ref_at(v->ref, e->base),
                                     &views[k]));
            /* strided: only dense numbers are read */
            facts[k] = hone_fact_of_value(views[k]);
        }
        if (!add_key(e, facts[k].value, true)) return hone_run_no_memory();
    }
    return HONE_OK;
}
/* Room for all bases of a plan, and the constants' there. */
static hone_status grow_bases(hone_exec *e, const hone_plan *p) {
    if (p->n_base <= e->n_base && p->n_constant <= e->n_constant) return HONE_OK;
    const int n_base = p->n_base > e->n_base ? p->n_base : e->n_base,
              n_constant = p->n_constant > e->n_constant ? p->n_constant : e->n_constant;
    void **base = hone_alloc(sizeof *base * ((size_t)n_base + (size_t)n_constant));
    if (!base) return hone_run_no_memory();
    base += n_constant;
    hone_packs_bases(e->c->packs, 0, n_constant, base);
    if (e->base) memcpy(base, e->base, sizeof *base * (size_t)e->n_base), hone_free(e->base - e->n_constant);
    e->base = base, e->n_base = n_base, e->n_constant = n_constant;
    return HONE_OK;
}
/* Guard mode: an allocation for every block, made anew for every run. */
static hone_status guard_blocks(hone_exec *e, const hone_plan *p) {
    void **base = e->base + HONE_BASE_FIRST + e->c->graph->in.n + e->c->graph->out.n + p->guard_slot;
    while (e->guard.n < p->guard_slot + p->n_block)
        if (!hone_push(&e->guard, NULL)) return hone_run_no_memory();
    for (int k = 0; k < p->n_block; k++) {
        void **at = e->guard.at + p->guard_slot + k;
        if (p->block[k].space) continue; /* spaces.c */
        hone_free(*at);
        if (!(*at = base[k] = hone_alloc_raw((size_t)p->block[k].exact))) return hone_run_no_memory();
        memset(*at, HONE_GUARD_FILL, (size_t)p->block[k].exact);
    }
    return HONE_OK;
}
static bool same_memory(const hone_value *a, const hone_value *b) {
    return b->bytes &&
           (a->away && b->away ? a->away->handle == b->away->handle && hone_away_is(a, &b->away->unit)
                               : !a->away && !b->away && a->data == b->data);
}
static hone_status run_segments(hone_exec *e, hone_plan *p) {
    for (int k = 0; k < p->n_segment; k++) {
        const struct hone_planned_segment *g = p->segment + k;
        if (k && e->until && hone_clock_ns() >= e->until)
            return hone_fail(HONE_BAD_INPUT, "the run was stopped after its limit of %lld ms",
                             (long long)e->options.limit_ms);
        for (int q = g->from; g->unit == HONE_UNIT_COPY && q < g->to; q++)
            HONE_TRY(hone_spaces_copy(e->spaces, p->step + q, e->base));
        if (g->unit == HONE_UNIT_COPY) continue;
        const hone_segment all = {.step = p->step + g->from,
                                  .n = g->to - g->from,
                                  .base = hone_spaces_bases(e->spaces, g->unit, e->base),
                                  .scratch_bytes = g->scratch_bytes,
                                  .threads = threads_of(e),
                                  .profile = e->options.profile,
                                  .until = e->until,
                                  .limit_ms = e->options.limit_ms,
                                  .host = run_host,
                                  .arg = e,
                                  .sealed = g->sealed};
        HONE_TRY(e->units->unit[g->unit].row->run(hone_spaces_queue(e->spaces, g->unit), &all));
    }
    return HONE_OK;
}
static hone_status within_limit(const hone_exec *e, const hone_plan *p) {
    /* in guard mode each tensor has memory of its own */
    int64_t bytes = p->guard_slot < 0 ? p->arena_bytes : p->sum_bytes;
    for (int u = 1; p->space && u < p->units->n; u++) bytes += p->space[u].bytes;
    return bytes <= e->options.limit_bytes
               ? HONE_OK
               : hone_fail(HONE_NO_MEMORY, "the tensors of this run need %.3f MB; limit_bytes allows %.3f",
                           (double)bytes * 1e-6, (double)e->options.limit_bytes * 1e-6);
}
static hone_status run_segment(hone_exec *e, hone_plan *p, hone_value **out) {
    const hone_graph *g = e->c->graph;
    if (e->options.limit_bytes) HONE_TRY(within_limit(e, p));
    const size_t had = e->arena[p->depth].bytes;
    HONE_TRY(grow(&e->arena[p->depth].at, &e->arena[p->depth].bytes, (size_t)p->arena_bytes));
    if (e->arena[p->depth].bytes > had) hone_bring_pages(e->arena[p->depth].at, (size_t)p->arena_bytes);
    HONE_TRY(grow_bases(e, p));
    if (e->units->n > 1) HONE_TRY(hone_spaces_prepare(e->spaces, p, HONE_BASE_FIRST + g->in.n + g->out.n));
    if (p->n_slot > e->n_slot) {
        hone_value **slot =
            hone_realloc(e->slot, sizeof *slot * (size_t)e->n_slot, sizeof *slot * (size_t)p->n_slot);
        if (!slot) return hone_run_no_memory();
        memset(slot + e->n_slot, 0, sizeof *slot * (size_t)(p->n_slot - e->n_slot));
        e->slot = slot, e->n_slot = p->n_slot;
    }
    const int first_slot = HONE_BASE_FIRST + g->in.n + g->out.n;
    e->base[HONE_BASE_ARENA] = e->arena[p->depth].at, e->base[HONE_BASE_PLAN] = p->own;
    if (p->guard_slot >= 0) HONE_TRY(guard_blocks(e, p));
    if (p->arena_slot >= 0) e->base[first_slot + p->arena_slot] = e->arena[p->depth].at;
    if (p->own_slot >= 0) e->base[first_slot + p->own_slot] = p->own;
    /* tensors that control flow left on devices */
    for (int k = g->in.n; e->units->n > 1 && k < e->n_slot; k++) {
        const int unit = e->slot[k] ? hone_spaces_unit(e->spaces, e->slot[k]) : 0;
        if (unit > 0 && e->slot[k]->away)
            hone_spaces_set(e->spaces, unit, first_slot + k, e->slot[k]->away->handle);
    }
    for (int k = 0; k < g->in.n; k++) {
        e->base[HONE_BASE_FIRST + k] = e->in[k] ? e->in[k]->data : NULL;
        if (p->port && p->port[k] && e->in[k] && e->in[k]->away)
            hone_spaces_set(e->spaces, p->port[k], HONE_BASE_FIRST + k, e->in[k]->away->handle);
    }
    for (int k = 0; k < g->out.n; k++) {
        if (p->out[k].how != HONE_OUT_WRITTEN) continue;
        const hone_fact *f = &p->out[k].fact;
        bool fits =
            out[k] && out[k]->tag == HONE_TAG_TENSOR && out[k]->dtype == f->dtype && out[k]->rank == f->rank;
        for (int d = 0; fits && d < f->rank; d++) fits = out[k]->dim[d] == f->dim[d];
        const hone_unit *there =
            p->port && p->port[g->in.n + k] ? e->units->unit + p->port[g->in.n + k] : NULL;
        fits = fits && hone_away_is(out[k], there);
        for (int q = 0; fits && q < g->in.n; q++)
            if (e->in[q] && same_memory(e->in[q], out[k]))
                return hone_fail(HONE_BAD_INPUT, "the tensor given for output '%s' is also an input",
                                 g->var.at[g->out.at[k]].name);
        for (int q = 0; fits && q < k; q++)
            if (out[q] && same_memory(out[q], out[k]))
                return hone_fail(HONE_BAD_INPUT,
                                 "the tensor given for output '%s' is given for another one too",
                                 g->var.at[g->out.at[k]].name);
        if (!fits) { /* nothing was given, or of another shape: a new one */
            hone_value_drop(out[k]), out[k] = NULL;
            HONE_TRY(there ? hone_away_tensor(there, f->dtype, f->dim, f->rank, &out[k])
                           : hone_value_tensor(f->dtype, f->dim, f->rank, &out[k]));
        }
        e->base[HONE_BASE_FIRST + g->in.n + k] = out[k]->data;
        if (there)
            hone_spaces_set(e->spaces, p->port[g->in.n + k], HONE_BASE_FIRST + g->in.n + k,
                            out[k]->away->handle);
    }
    hone_status s = run_segments(e, p);
    if (e->units->n > 1) { /* also where something failed: all that is under way comes to its end */
        hone_text first = {0};
        if (s) hone_text_put(&first, "%s", hone_fail_text());
        hone_status late = hone_spaces_wait(e->spaces);
        if (s) hone_fail(s, "%s", first.text ? first.text : ""), hone_text_free(&first);
        else s = late;
    }
    HONE_TRY(s);
    for (int k = 0; k < g->out.n; k++) {
        if (p->out[k].how != HONE_OUT_SLOT) continue;
        hone_value *v = p->out[k].slot < g->in.n ? e->in[p->out[k].slot] : e->slot[p->out[k].slot];
        if (!v) return hone_fail(HONE_BUG, "output %d was not made", k);
        hone_value_drop(out[k]);
        out[k] = NULL;
        if (v->away && !(e->options.stay && k >= e->options.read))
            HONE_TRY(hone_spaces_fetch(e->spaces, v, &out[k]));
        else if (v->free_data || v->tag != HONE_TAG_TENSOR) out[k] = hone_value_hold(v);
        else HONE_TRY(hone_value_copy(v, &out[k]));
    }
    return HONE_OK;
}
static hone_status own_strings(hone_value **v) { /* a string tensor leaves: it takes its strings along */
    if (!*v || (*v)->tag != HONE_TAG_TENSOR || (*v)->dtype != HONE_DTYPE_STRING) return HONE_OK;
    hone_value *copy;
    HONE_TRY(hone_value_copy(*v, &copy));
    hone_value_drop(*v);
    *v = copy;
    return HONE_OK;
}
static hone_status check_input(const hone_graph *g, int k, const hone_value *v) {
    const hone_var *w = g->var.at + g->in.at[k];
    if (!v)
        return g->outer || w->tag == HONE_TAG_OPTIONAL
                   ? HONE_OK
                   : hone_fail(HONE_BAD_INPUT, "input '%s' is missing", w->name);
    if (w->tag != v->tag && w->dtype)
        return g->outer
                   ? HONE_OK
                   : hone_fail(HONE_BAD_INPUT,
                               "input '%s' is of another kind (tensor, sequence, optional) than the model's",
                               w->name);
    if (v->tag != HONE_TAG_TENSOR || g->outer) return HONE_OK;
    if (w->dtype && v->dtype != w->dtype)
        return hone_fail(HONE_BAD_INPUT, "input '%s' is %s, the model wants %s", w->name,
                         hone_dtypes[v->dtype].name, hone_dtypes[w->dtype].name);
    if (w->rank >= 0 && v->rank != w->rank)
        return hone_fail(HONE_BAD_INPUT, "input '%s' has %d dims, the model wants %d", w->name, v->rank,
                         w->rank);
    for (int d = 0; d < w->rank; d++)
        if (hone_dim_is_number(w->dim[d]) && w->dim[d] != v->dim[d])
            return hone_fail(HONE_BAD_INPUT, "input '%s': dim %d is %lld, the model wants %lld", w->name, d,
                             (long long)v->dim[d], (long long)w->dim[d]);
    return HONE_OK;
}
/* One symbol, one value. Checked once a plan: its key holds all dims. */
static hone_status check_symbols(const hone_exec *e) {
    const hone_graph *g = e->c->graph;
    for (int k = 0; k < g->in.n && !g->outer; k++)
        for (int q = 0; q <= k; q++) {
            const hone_var *v = g->var.at + g->in.at[k], *w = g->var.at + g->in.at[q];
            if (e->input[k].rank < 0 || e->input[q].rank < 0) continue;
            for (int d = 0; d < v->rank; d++)
                for (int f = 0; f < w->rank; f++)
                    if (hone_dim_is_symbolic(v->dim[d]) && v->dim[d] == w->dim[f] &&
                        e->input[k].dim[d] != e->input[q].dim[f]) {
                        const char *name = hone_dim_symbol_name(g->dims, (int)(v->dim[d] - HONE_DIM_BAND));
                        return hone_fail(HONE_BAD_INPUT, "'%s' is %lld in input '%s' and %lld in input '%s'",
                                         name, (long long)e->input[q].dim[f], w->name,
                                         (long long)e->input[k].dim[d], v->name);
                    }
        }
    return HONE_OK;
}
/* The space of an input: of a value on a device, which must be one of the session's. */
static hone_status find_space(hone_exec *e, int k, const hone_value *v) {
    e->in_space[k] = 0;
    if (!v || !v->away) return HONE_OK;
    for (int u = 1; u < e->units->n; u++)
        if (hone_away_is(v, e->units->unit + u)) e->in_space[k] = (uint8_t)u;
    if (e->in_space[k]) return HONE_OK;
    return hone_fail(HONE_BAD_INPUT, "input '%s' lies on %s:%d, which is no device of this session",
                     e->c->graph->var.at[e->c->graph->in.at[k]].name, v->away->unit.row->name,
                     v->away->unit.number);
}
hone_status hone_exec_run(hone_exec *e, hone_value *const *in, hone_value **out) {
    const hone_graph *g = e->c->graph;
    e->key.n = 0;
    for (int k = 0; k < g->in.n; k++) {
        HONE_TRY(check_input(g, k, in[k]));
        HONE_TRY(find_space(e, k, in[k]));
        e->input[k] = in[k] ? hone_fact_of_value(in[k]) : hone_fact_unknown;
        bool contents = e->c->content_input[k] && in[k] && in[k]->tag == HONE_TAG_TENSOR &&
                        hone_value_count(in[k]) <= MOST_CONTENTS;
        if (in[k] && in[k]->away && contents)
            return hone_fail(
                HONE_NOT_SUPPORTED,
                "input '%s' lies on a device, and its numbers decide shapes: bring it to the host first",
                g->var.at[g->in.at[k]].name);
        if (!contents) e->input[k].value = NULL;
        if (e->in_space[k] && !hone_push(&e->key, -100 - e->in_space[k])) return hone_run_no_memory();
        if (!add_key(e, in[k], contents)) return hone_run_no_memory();
    }
    hone_value *const *before = e->in;
    uint64_t until = e->until;
    e->in = in;
    if (!until && e->options.limit_ms > 0)
        e->until = hone_clock_ns() + (uint64_t)e->options.limit_ms * 1000000u;
    const hone_bind_options how = {.interpret = e->options.interpret,
                                   .threads = threads_of(e),
                                   .wisdom = e->options.wisdom,
                                   .precision = e->options.precision,
                                   .keep_f32 = e->options.keep_f32,
                                   .units = e->units,
                                   .in_space = e->in_space,
                                   .stay = e->options.stay,
                                   .read = e->options.read};
    e->copied = (hone_copied){0};
    int most = e->options.plans > 0 ? e->options.plans : 64;
    hone_value **mine = out;
    hone_plan *p = find(&e->plans, e->key.at, e->key.n);
    hone_status s = HONE_OK;
    if (!p) {
        s = check_symbols(e);
        if (!s) s = hone_bind(e->c, e->input, NULL, NULL, how, &p);
        if (!s) s = keep(e, &e->plans, p, e->key.at, e->key.n, most);
    }
    if (!s) e->last = p;
    while (!s) {
        s = run_segment(e, p, mine);
        if (s || p->cut_node < 0) break;
        hone_fact facts[HONE_MAX_WANTED];
        hone_value *views[HONE_MAX_WANTED] = {0};
        uint8_t space[HONE_MAX_WANTED] = {0};
        e->key.n = 0;
        s = read_wanted(e, p, facts, views, space);
        hone_plan *next = s ? NULL : find(&p->next_cut, e->key.at, e->key.n);
        if (!s && !next) {
            hone_bind_options then = how;
            then.wanted_space = space;
            s = hone_bind(e->c, e->input, p, facts, then, &next);
            if (!s) s = keep(e, &p->next_cut, next, e->key.at, e->key.n, 8);
        }
        for (int k = 0; k < p->n_wanted; k++) hone_value_drop(views[k]);
        p = next;
    }
    for (int k = 0; k < g->out.n && !s; k++) s = own_strings(mine + k);
    for (int k = 0; k < e->n_slot; k++) hone_value_drop(e->slot[k]), e->slot[k] = NULL;
    hone_strings_drop(e->strings);
    e->strings = NULL, e->in = before, e->until = until;
    return s;
}
