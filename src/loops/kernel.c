/* SPDX-License-Identifier: Apache-2.0
   kernel: from stages to launches: a schedule each, the kernel's text, its arguments, temporaries and scratch
   (kernel.h). */
#include "loops/kernel.h"

#include <inttypes.h>
#include <string.h>

#include "base/round.h"
#include "loops/print_kernel.h"

typedef struct {
    hone_arena *arena;
    const hone_kernel_target *target;
    const hone_instance *in;
    const hone_param *param;
    int64_t *stride;
    const hone_taker *taker;
    hone_vec(hone_launch) launch;
    hone_vec(hone_launches) turn;
    hone_vec(int64_t) scratch;
    hone_kernels *out;
} maker;

static hone_status no_memory(void) { return hone_fail(HONE_NO_MEMORY, "no memory for a kernel's text"); }

/* ---- arguments ---- */
typedef hone_vec(hone_karg) kargs;
typedef struct {
    hone_kernel *m;
    hone_text *head, *start; /* the parameter list; declarations at the body's start */
    kargs arg;
    int bytes;
    bool failed;
} signature;
static void add(signature *g, hone_karg a, int bytes) {
    if (!hone_push(&g->arg, a)) g->failed = true;
    g->bytes += bytes;
}
static void memory(signature *g, hone_karg a, const char *type, bool constant, const char *name) {
    const bool offsets = g->m->row->offsets;
    const char *sep = g->arg.n ? ", " : "";
    const int n = g->arg.n;
    if (offsets) {
        hone_text_put(g->head, "%sHONE_GLOBAL uchar *hone_b%d, const int64_t hone_o%d", sep, n, n);
        hone_text_put(g->start, "    HONE_GLOBAL %s%s *const %s = HONE_AT(%s%s, hone_b%d, hone_o%d);\n",
                      constant ? "const " : "", type, name, constant ? "const " : "", type, n, n);
    } else hone_text_put(g->head, "%s%s%s *const %s", sep, constant ? "const " : "", type, name);
    add(g, a, 8);
    if (offsets) add(g, (hone_karg){.kind = HONE_KARG_OFFSET, .which = a.which}, 8);
}
static void number_argument(signature *g, const hone_kernel_number *n) {
    static const char *const types[] = {[HONE_KARG_I64] = "int64_t",
                                        [HONE_KARG_STEP] = "int64_t",
                                        [HONE_KARG_F64] = "double",
                                        [HONE_KARG_F32] = "float"};
    hone_text_put(g->head, "%sconst %s %s", g->arg.n ? ", " : "", types[n->kind], n->name);
    add(g, (hone_karg){.kind = n->kind, .i = n->i, .f = n->f}, n->kind == HONE_KARG_F32 ? 4 : 8);
}
static bool uses_tensor(const hone_kernel *m, int t) {
    return m->written[t] || (m->p.loaded[t] && !m->p.held[t]);
}
/* Numbers that were written into the text: parameters, strides, sizes; those of the schedule are there
   already. */
static void collect(hone_kernel *m) {
    hone_printer *p = &m->p;
    const hone_instance *in = p->in;
    for (int k = 0; k < in->n_param; k++) {
        if (!p->param_used[k]) continue;
        hone_kernel_number n = {.name = p->param[k], .kind = HONE_KARG_I64, .i = m->param[k].i};
        if (in->param_real[k])
            n = (hone_kernel_number){.name = p->param[k],
                                     .kind = p->param_used[k] > 1 ? HONE_KARG_F64 : HONE_KARG_F32,
                                     .f = m->param[k].f};
        if (n.kind == HONE_KARG_F64) p->f64 = true;
        if (!hone_push(&m->number, n)) m->failed = true;
    }
    for (int t = 0; t < in->n_tensor; t++) {
        int64_t size = 1;
        for (int k = 0; k < in->tensor[t].rank; k++) {
            if (__builtin_mul_overflow(size, m->param[in->tensor[t].dim[k]].i, &size)) size = INT64_MAX;
            if (!p->stride_used[t * HONE_MAX_RANK + k]) continue;
            const char *name = hone_arena_text(p->arena, "%s_%d", p->tensor[t], k);
            hone_kernel_number n = {
                .name = name, .kind = HONE_KARG_I64, .i = m->stride[t * HONE_MAX_RANK + k]};
            if (!name || !hone_push(&m->number, n)) m->failed = true;
        }
        if (!p->size_used[t]) continue;
        const char *name = hone_arena_text(p->arena, "%s_size", p->tensor[t]);
        if (!name ||
            !hone_push(&m->number, ((hone_kernel_number){.name = name, .kind = HONE_KARG_I64, .i = size})))
            m->failed = true;
    }
}
static void sign(signature *g, hone_arena *arena, bool fails, hone_launch *l) {
    hone_kernel *m = g->m;
    const hone_instance *in = m->p.in;
    if (fails) {
        memory(g, (hone_karg){.kind = HONE_KARG_ERROR, .writes = true}, "uint32_t", false, "hone_error");
        hone_text_put(g->head, ", const uint32_t hone_where");
        add(g, (hone_karg){.kind = HONE_KARG_WHERE}, 4);
    }
    for (int t = 0; t < in->n_tensor; t++) {
        if (!uses_tensor(m, t)) continue;
        const char *type = hone_print_element_of(in->tensor[t].dtype).c;
        if (in->tensor[t].dtype == HONE_DTYPE_F64) m->p.f64 = true;
        const bool writes = m->written[t];
        memory(g, (hone_karg){.kind = HONE_KARG_TENSOR, .which = t, .writes = writes}, type, !writes,
               m->p.tensor[t]);
    }
    if (m->scratch >= 0)
        memory(g, (hone_karg){.kind = HONE_KARG_SCRATCH, .which = m->scratch, .writes = m->scratch_written},
               hone_print_types[m->scratch_type], !m->scratch_written, "hone_scratch");
    int moved = 0, bytes = 0;
    for (int k = 0; k < m->number.n; k++) bytes += 8;
    const bool many = g->bytes + bytes > m->target->arg_bytes;
    int64_t *number = many ? HONE_NEW_N(arena, int64_t, m->number.n + 1) : NULL;
    if (many && !number) {
        g->failed = true;
        return;
    }
    if (many) memory(g, (hone_karg){.kind = HONE_KARG_NUMBERS}, "int64_t", true, "hone_number");
    for (int k = 0; k < m->number.n; k++) {
        const hone_kernel_number *n = m->number.at + k;
        if (!many || n->kind == HONE_KARG_STEP) {
            number_argument(g, n);
            continue;
        }
        number[moved] = n->i;
        const float single = (float)n->f;
        if (n->kind == HONE_KARG_F64) {
            memcpy(number + moved, &n->f, 8);
            hone_text_put(g->start, "    const double %s = hone_from_bits_f64((uint64_t)hone_number[%d]);\n",
                          n->name, moved);
        } else if (n->kind == HONE_KARG_F32) {
            uint32_t u;
            memcpy(&u, &single, 4);
            number[moved] = u;
            hone_text_put(g->start, "    const float %s = hone_from_bits_f32((uint32_t)hone_number[%d]);\n",
                          n->name, moved);
        } else hone_text_put(g->start, "    const int64_t %s = hone_number[%d];\n", n->name, moved);
        moved++;
    }
    l->number = number, l->n_number = moved;
    l->arg = HONE_NEW_N(arena, hone_karg, g->arg.n + 1), l->n_arg = g->arg.n;
    if (!l->arg) g->failed = true;
    else if (g->arg.n) memcpy(l->arg, g->arg.at, sizeof *l->arg * (size_t)g->arg.n);
}

/* ---- one kernel ---- */
static uint64_t hash(const char *s, uint64_t h) {
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}
static hone_status finish(maker *o, hone_kernel *m, hone_text *body, hone_launch *l) {
    hone_text head = {0}, start = {0}, text = {0};
    const bool fails = body->n && strstr(body->text, "&bad");
    collect(m);
    signature g = {.m = m, .head = &head, .start = &start};
    sign(&g, o->arena, fails, l);
    hone_text_put(&text, "(%s) {\n    HONE_BEGIN();\n%s%s", head.text ? head.text : "",
                  start.text ? start.text : "", m->shared->text ? m->shared->text : "");
    if (fails) hone_text_put(&text, "    int bad = 0;\n");
    hone_text_put(&text, "%s", body->text ? body->text : "");
    if (fails)
        hone_text_put(
            &text,
            "    if (bad) HONE_RAISE(hone_error, ~(hone_where << 8 | (uint32_t)(bad < 255 ? bad : 255)));\n");
    hone_text_put(&text, "}\n");
    hone_status s = HONE_OK;
    if (g.failed || m->failed || head.failed || start.failed || text.failed || body->failed ||
        m->shared->failed)
        s = no_memory();
    if (!s && m->p.f64 && !o->target->f64)
        s = hone_fail(HONE_NOT_SUPPORTED, "'%s' of %s computes in f64, which the device does not have",
                      o->in->tensor[o->in->stage[m->first].tensor].name,
                      o->in->program ? o->in->program->name : "a fused node");
    if (!s) {
        l->f64 = m->p.f64, l->threads = m->s->threads, l->shared_bytes = m->shared_bytes;
        l->name = hone_arena_text(o->arena, "hone_%016" PRIx64 "%08x", hash(text.text, 0xcbf29ce484222325u),
                                  (unsigned)(hash(text.text, (uint64_t)m->s->threads + 77) >> 32));
        if (l->name)
            l->text = hone_arena_text(o->arena, "HONE_ENTRY(%s, %d)%s", l->name, l->threads, text.text);
        if (!l->name || !l->text) s = no_memory();
    }
    hone_vec_free(&g.arg);
    hone_text_free(&head), hone_text_free(&start), hone_text_free(&text);
    return s;
}
static hone_status print(maker *o, const hone_schedule *sch, int first, int scratch, bool second,
                         hone_launch *l) {
    const hone_instance *in = o->in;
    const hone_stage *s = in->stage + first;
    hone_text body = {0}, shared = {0};
    hone_kernel m = {.target = o->target,
                     .row = hone_print_target_of(o->target->lang),
                     .param = o->param,
                     .stride = o->stride,
                     .s = sch,
                     .first = first,
                     .shared = &shared,
                     .scratch = scratch};
    hone_printer *p = &m.p;
    hone_status st = hone_printer_open(p, &m.row->words, in, &body) ? HONE_OK : no_memory();
    hone_knows *know = st ? NULL : HONE_NEW_N(p->arena, hone_knows, sch->n_stage);
    if (!st) m.written = HONE_NEW_N(p->arena, uint8_t, in->n_tensor + 1);
    if (!st && (!know || !m.written)) st = no_memory();
    for (int k = 0; k < sch->n_stage && !st; k++)
        st = hone_know_stage(p->arena, in, first + k, o->param, know + k);
    m.know = know;
    if (!st) {
        for (int t = 0; t < in->n_tensor; t++) hone_print_name_tensor(p, t);
        memset(p->uses, 0, sizeof *p->uses * (size_t)in->n_x);
        for (int k = 0; k < sch->n_stage; k++) {
            p->knows = know + k;
            hone_body_survey(&m, s + k);
        }
        memset(p->param_used, 0, (size_t)in->n_param);
        if (s->over >= 0) {
            p->index[s->over_index] = hone_print_unique(p, in->index[s->over_index].name);
            if (!hone_push(&m.number,
                           ((hone_kernel_number){.name = p->index[s->over_index], .kind = HONE_KARG_STEP})))
                m.failed = true;
        }
        if (sch->kind != HONE_ROWS) hone_print_name_indices(p, s);
        if (scratch >= 0) m.scratch_type = hone_body_acc(&m, s);
        hone_kernel_body(&m, second);
        /* lives in a register */
        for (int k = 0; k < sch->n_stage; k++)
            if (p->held[s[k].tensor] && !m.written[s[k].tensor]) o->out->temp_bytes[s[k].tensor] = 0;
        st = finish(o, &m, &body, l);
    }
    l->first_stage = first, l->n_stage = sch->n_stage, l->schedule = *sch;
    hone_vec_free(&m.number);
    hone_text_free(&body), hone_text_free(&shared);
    hone_arena_destroy(p->arena);
    return st;
}

/* ---- stages ---- */
static hone_status launch(maker *o, const hone_schedule *sch, int first, int64_t groups, int scratch,
                          bool second) {
    hone_launch l = {.groups = groups};
    if (groups < 1) return HONE_OK;
    if (groups > INT32_MAX)
        return hone_fail(HONE_NOT_SUPPORTED, "'%s' has too many elements for a grid",
                         o->in->tensor[o->in->stage[first].tensor].name);
    HONE_TRY(print(o, sch, first, scratch, second, &l));
    return hone_push_in(o->arena, &o->launch, l) ? HONE_OK : no_memory();
}
static int64_t groups_of_blocks(const maker *o, const hone_product_blocks *b) {
    int64_t m = 1, n = 1, batch = 1;
    for (int k = 0; k < b->n_m; k++) m *= o->param[o->in->index[b->m[k]].extent].i;
    for (int k = 0; k < b->n_n; k++) n *= o->param[o->in->index[b->n[k]].extent].i;
    for (int k = 0; k < b->n_batch; k++) batch *= o->param[o->in->index[b->batch[k]].extent].i;
    return batch * hone_ceil_div(m, b->rows) * hone_ceil_div(n, b->columns);
}
static hone_status stage(maker *o, int first, int *n) {
    const hone_stage *s = o->in->stage + first;
    hone_schedule sch;
    HONE_TRY(hone_schedule_choose(o->arena, o->in, first, o->param, o->stride, &o->target->wish, &sch));
    const char *wrong =
        hone_schedule_illegal(o->in, first, o->param, o->stride, o->target->wish.max_threads, &sch);
    if (wrong) return hone_fail(HONE_BUG, "the schedule of '%s': %s", o->in->tensor[s->tensor].name, wrong);
    int64_t points = 1;
    /* nothing to do, however long the others are */
    for (int k = 0; k < sch.n_order; k++)
        if (o->param[o->in->index[o->in->list[s->index0 + sch.order[k]]].extent].i <= 0) {
            *n = sch.n_stage;
            return HONE_OK;
        }
    for (int k = 0; k < sch.n_order; k++)
        if (__builtin_mul_overflow(
                points, o->param[o->in->index[o->in->list[s->index0 + sch.order[k]]].extent].i, &points) ||
            points > (int64_t)1 << 40)
            return hone_fail(HONE_NOT_SUPPORTED, "'%s' has too many elements for a grid",
                             o->in->tensor[s->tensor].name);
    *n = sch.n_stage;
    if (sch.kind == HONE_EACH)
        return launch(o, &sch, first, hone_ceil_div(points, (int64_t)sch.threads * sch.unroll * sch.vector),
                      -1, false);
    if (sch.kind == HONE_OWNERS)
        return launch(o, &sch, first, hone_ceil_div(points * sch.owners, sch.threads), -1, false);
    if (sch.kind == HONE_LANES || sch.kind == HONE_ROWS)
        return launch(o, &sch, first, hone_ceil_div(points, sch.threads / sch.lanes), -1, false);
    if (sch.kind == HONE_BLOCKS) return launch(o, &sch, first, groups_of_blocks(o, &sch.blocks), -1, false);
    if (sch.kind == HONE_TILES) {
        const int64_t a = o->param[o->in->index[o->in->list[s->index0 + sch.order[sch.n_order - 1]]].extent]
                              .i,
                      b = o->param[o->in->index[o->in->list[s->index0 + sch.across]].extent].i;
        return launch(o, &sch, first,
                      points ? points / a / b * hone_ceil_div(a, 32) * hone_ceil_div(b, 32) : 0, -1, false);
    }
    const int scratch = o->scratch.n;
    if (!hone_push_in(o->arena, &o->scratch, points * sch.slices * 8)) return no_memory();
    HONE_TRY(launch(o, &sch, first, points * sch.slices, scratch, false));
    sch.lanes = sch.threads < 32 ? sch.threads : 32;
    return launch(o, &sch, first, hone_ceil_div(points, sch.threads / sch.lanes), scratch, true);
}
/* By kernels of the device's own; *n 0: it has none for it. */
static hone_status taken(maker *o, int first, int *n) {
    *n = 0;
    if (!o->taker) return HONE_OK;
    hone_taken t = {.first_scratch = o->scratch.n};
    HONE_TRY(o->taker->take(o->taker->of, o->arena, first, &t));
    for (int k = 0; k < t.n_scratch; k++)
        if (!hone_push_in(o->arena, &o->scratch, t.scratch_bytes[k])) return no_memory();
    for (int k = 0; k < t.n_launch; k++) {
        t.launch[k].first_stage = first, t.launch[k].n_stage = t.n_stage;
        if (!hone_push_in(o->arena, &o->launch, t.launch[k])) return no_memory();
    }
    *n = t.n_stage;
    return HONE_OK;
}
static hone_status places(maker *o) { /* of temporaries: row-major */
    const hone_instance *in = o->in;
    for (int t = 0; t < in->n_tensor; t++) {
        const hone_tensor *w = in->tensor + t;
        if (w->dtype == HONE_DTYPE_C128 || w->dtype == HONE_DTYPE_C64 || w->dtype == HONE_DTYPE_STRING)
            return hone_fail(HONE_NOT_SUPPORTED, "'%s' is %s, which no kernel computes with", w->name,
                             hone_dtypes[w->dtype].name);
        if (w->role != HONE_ROLE_TEMP) continue;
        int64_t n = 1;
        for (int k = w->rank - 1; k >= 0; k--) {
            o->stride[t * HONE_MAX_RANK + k] = n;
            if (__builtin_mul_overflow(n, o->param[w->dim[k]].i, &n))
                return hone_fail(HONE_NO_MEMORY, "the temporary '%s' is too large", w->name);
        }
        if (__builtin_mul_overflow(n, (int64_t)hone_dtypes[w->dtype].bytes, &n))
            return hone_fail(HONE_NO_MEMORY, "the temporary '%s' is too large", w->name);
        o->out->temp_bytes[t] = n;
    }
    return HONE_OK;
}
hone_status hone_kernels_make(hone_arena *arena, const hone_kernel_target *target, const hone_instance *in,
                              const hone_param *param, int64_t *stride, const hone_taker *taker,
                              hone_kernels *out) {
    *out = (hone_kernels){.temp_bytes = HONE_NEW_N(arena, int64_t, in->n_tensor + 1)};
    maker o = {.arena = arena,
               .target = target,
               .in = in,
               .param = param,
               .stride = stride,
               .taker = taker,
               .out = out};
    if (!out->temp_bytes) return no_memory();
    HONE_TRY(places(&o));
    for (int k = 0, n = 0; k < in->n_stage; k += n) {
        const hone_stage *s = in->stage + k;
        hone_launches turn = {.first = o.launch.n, .rounds = 1};
        if (s->over < 0) {
            HONE_TRY(taken(&o, k, &n));
            if (!n) HONE_TRY(stage(&o, k, &n));
        } else {
            int each = 0;
            HONE_TRY(taken(&o, k, &n)); /* the whole group */
            if (!n) {
                turn.rounds = param[in->index[s->over_index].extent].i;
                for (; k + n < in->n_stage && in->stage[k + n].over == s->over; n += each)
                    HONE_TRY(stage(&o, k + n, &each));
            }
        }
        turn.n = o.launch.n - turn.first;
        if (turn.n && turn.rounds > 0 && !hone_push_in(arena, &o.turn, turn)) return no_memory();
    }
    out->launch = o.launch.at, out->n_launch = o.launch.n, out->turn = o.turn.at, out->n_turn = o.turn.n;
    out->scratch_bytes = o.scratch.at, out->n_scratch = o.scratch.n;
    return HONE_OK;
}
void hone_launch_describe(const hone_launch *l, hone_text *out) {
    static const char *const kinds[] = {"a thread each", "lanes", "slices", "owners",
                                        "tiles",         "rows",  "blocks"};
    if (l->own) {
        hone_text_put(out, "%s: %lld blocks of %d threads", l->entry, (long long)l->groups, l->threads);
        return;
    }
    hone_text_put(out, "%s: %lld x %d threads", kinds[l->schedule.kind], (long long)l->groups, l->threads);
    if (l->schedule.lanes > 1) hone_text_put(out, ", %d lanes a reduction", l->schedule.lanes);
    if (l->schedule.slices) hone_text_put(out, ", %lld slices", (long long)l->schedule.slices);
    if (l->schedule.kind == HONE_OWNERS)
        hone_text_put(out, ", %lld owners%s", (long long)l->schedule.owners,
                      l->schedule.whole ? ", in order" : "");
    if (l->schedule.kind == HONE_BLOCKS)
        hone_text_put(out, ", %d x %d a block, %d x %d a thread", l->schedule.blocks.rows,
                      l->schedule.blocks.columns, l->schedule.blocks.thread_rows,
                      l->schedule.blocks.thread_columns);
    if (l->schedule.unroll > 1) hone_text_put(out, ", %d places each", l->schedule.unroll);
    if (l->schedule.vector > 1)
        hone_text_put(out, ", %d neighbours each, %d loads at once", l->schedule.vector,
                      l->schedule.n_vectored);
    if (l->n_stage > 1) hone_text_put(out, ", %d stages", l->n_stage);
}
