/* SPDX-License-Identifier: Apache-2.0
   tile_make: turns one stage, all its numbers known, into tile code. What the expressions are worth was found
   out by tile_know.c; here the mode is chosen and dims are collapsed, then tile_emit.c emits instructions,
   then registers get buffers and tiles their size. */
#include "base/round.h"
#include "loops/tile_maker.h"

#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

typedef hone_tile_maker maker;
typedef hone_tile_reg reg;

/* ---- walks --------------------------------------------------------------------------------------------- */
static void keep_affine(maker *m, int64_t *affine) {
    if (!hone_push_in(m->tmp, &m->affine, affine)) hone_tile_no_memory(m);
}
static void keep_arg(maker *m, int32_t x) {
    hone_know *k = hone_know_of(&m->w, x);
    if (k->kind == HONE_KNOW_AFFINE) keep_affine(m, k->affine);
}
static void keep_access(maker *m, const hone_x *load) {
    int64_t *d = HONE_NEW_N(m->tmp, int64_t, m->w.n_slot + 1);
    if (!d) {
        hone_tile_no_memory(m);
        return;
    }
    if (!hone_tile_address(m, load, d)) {
        hone_tile_fail(m, hone_fail(HONE_NOT_SUPPORTED, "strides beyond 64 bits"));
        return;
    }
    keep_affine(m, d);
    if (!load && m->w.stage->identity) return;
    for (int k = 0; k < hone_know_subs(&m->w, load); k++) {
        const int32_t s = hone_know_sub(&m->w, load, k);
        if (!hone_know_inside(hone_know_of(&m->w, s),
                              hone_know_dim(&m->w, load, load ? load->a : m->w.stage->tensor, k)))
            keep_arg(m, s);
    }
    if (load && load->c >= 0) keep_arg(m, load->c);
}
static void keep_values(maker *m) {
    const hone_instance *in = m->w.in;
    keep_arg(m, m->w.stage->value);
    if (m->w.stage->reduce >= HONE_REDUCE_ARGMAX) keep_arg(m, m->w.stage->pick);
    for (int32_t k = 0; k < in->n_x; k++) {
        const hone_x *x = in->x + k;
        if (!m->w.x[k].live || m->w.x[k].kind != HONE_KNOW_VALUE) continue;
        if (x->kind == HONE_X_LOAD) keep_access(m, x);
        else if (x->kind == HONE_X_FN)
            for (int a = 0; a < hone_fns[x->fn].arity; a++) keep_arg(m, a == 0 ? x->a : a == 1 ? x->b : x->c);
        else {
            keep_arg(m, x->a);
            if (x->kind == HONE_X_SELECT) keep_arg(m, x->b), keep_arg(m, x->c);
        }
    }
}

/* Slots from `from` to `to` (without the over index), neighbours joined where all that is kept stays
   affine. */
static void make_walk(maker *m, int from, int to, hone_walk *walk) {
    int64_t ext[HONE_SLOTS];
    int slot[HONE_SLOTS], nd = 0;
    for (int at = from; at < to; at++) {
        const int s = m->order[at];
        const int64_t e = m->w.extent[s];
        if (s == m->w.over || e == 1) continue;
        bool join = nd > 0;
        for (int k = 0; join && k < m->affine.n; k++) {
            int64_t t;
            join = !__builtin_mul_overflow(m->affine.at[k][s], e, &t) && t == m->affine.at[k][slot[nd - 1]];
        }
        if (join) {
            if (__builtin_mul_overflow(ext[nd - 1], e, &ext[nd - 1]))
                hone_tile_fail(m, hone_fail(HONE_NOT_SUPPORTED, "a domain of more than 2^62 elements"));
            slot[nd - 1] = s;
        } else ext[nd] = e, slot[nd++] = s;
    }
    const int pad = nd >= 2 ? 0 : 2 - nd;
    *walk = (hone_walk){.nd = nd + pad};
    for (int d = 0; d < pad; d++) walk->ext[d] = 1, walk->slot[d] = -1;
    memcpy(walk->ext + pad, ext, sizeof *ext * (size_t)nd);
    memcpy(walk->slot + pad, slot, sizeof *slot * (size_t)nd);
    if (!hone_count_of(walk->ext, walk->nd, &walk->n))
        hone_tile_fail(m, hone_fail(HONE_NOT_SUPPORTED, "a domain of more than 2^62 elements"));
}

/* ---- the whole ----------------------------------------------------------------------------------------- */
/* ALL where more loads run along the last reduced index than along the domain's, and the reduction is long
   enough for lanes; or where the domain is too small for tiles. */
static hone_tile_mode choose(const maker *m, int64_t elements, int64_t count) {
    const hone_stage *st = m->w.stage;
    if (!st->n_reduce && st->reduce == HONE_REDUCE_NONE) return HONE_TILE_MAP;
    int inner = -1, reduced = -1, n_inner = 0, n_reduced = 0;
    for (int at = 0; at < m->w.n_slot; at++) {
        const int s = m->order[at];
        if (m->w.extent[s] > 1 && s != m->w.over) *(s < st->n_index ? &inner : &reduced) = s;
    }
    if (reduced < 0 || !count) return HONE_TILE_EACH;
    for (int32_t k = 0; k < m->w.in->n_x; k++) {
        const hone_x *x = m->w.in->x + k;
        if (!m->w.x[k].live || m->w.x[k].kind != HONE_KNOW_VALUE || x->kind != HONE_X_LOAD) continue;
        int64_t d[HONE_SLOTS + 1] = {0};
        const int64_t bytes = hone_dtypes[m->w.in->tensor[x->a].dtype].bytes;
        if (!hone_tile_address(m, x, d)) continue;
        bool moves = false; /* what stays where it is during the reduction is read once */
        for (int q = st->n_index; q < m->w.n_slot; q++) moves = moves || d[q];
        if (!moves) continue;
        n_reduced += llabs(d[reduced]) == bytes;
        n_inner += inner >= 0 && llabs(d[inner]) == bytes;
    }
    const int64_t row = inner < 0 ? 1 : m->w.extent[inner];
    if (elements < 16 && count >= 4 * elements) return HONE_TILE_ALL;
    if (n_reduced > n_inner) return count >= 16 ? HONE_TILE_ALL : HONE_TILE_EACH;
    return n_reduced == n_inner && count >= 64 && row < 32 ? HONE_TILE_ALL : HONE_TILE_EACH;
}

/* What does not change with the reduced indices goes first, in the same order. */
static void part(maker *m, hone_tilecode *code) {
    hone_tile_ins *sorted = HONE_NEW_N(m->tmp, hone_tile_ins, m->ins.n + 1);
    if (!sorted) {
        hone_tile_no_memory(m);
        return;
    }
    int n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < m->ins.n; k++)
            if (m->ins.at[k].varies == (pass == 1)) sorted[n++] = m->ins.at[k];
        if (!pass) code->head = n;
    }
    if (n) memcpy(m->ins.at, sorted, sizeof *sorted * (size_t)n);
}

/* Buffers: by width, reused when their register has been read for the last time. A register that lives across
   the loop over reduced indices keeps its own. Returns bytes an element of all of them. */
static size_t allocate(maker *m, hone_tilecode *code, uint8_t **width_of, int *n_buffer) {
    int *def = HONE_NEW_N(m->tmp, int, m->regs.n + 1), *freed[4], n_free[4] = {0};
    uint8_t *width = hone_arena_alloc(m->tmp, (size_t)m->regs.n + 1);
    for (int w = 0; w < 4; w++) freed[w] = HONE_NEW_N(m->tmp, int, m->regs.n + 1);
    if (!def || !width || !freed[0] || !freed[1] || !freed[2] || !freed[3]) {
        hone_tile_no_memory(m);
        return 0;
    }
    for (int k = 0; k < m->regs.n; k++) m->regs.at[k].last = -1, def[k] = -1;
    for (int k = 0; k < m->ins.n; k++) {
        const hone_tile_ins *i = m->ins.at + k;
        const int32_t args[3] = {i->a, i->b, i->c};
        for (int a = 0; a < 3; a++) {
            if (args[a] < 0) continue;
            reg *r = m->regs.at + args[a];
            r->last = k;
            if (k >= code->head && def[args[a]] < code->head) r->kept = true;
        }
        if (i->dst >= 0) def[i->dst] = k;
    }
    size_t bytes = 0;
    int n = 0;
    for (int k = 0; k < m->regs.n; k++) {
        reg *r = m->regs.at + k;
        if (!r->kept) continue;
        width[n] = r->width, bytes += (size_t)1 << r->width, r->buffer = (size_t)n++;
    }
    for (int k = 0; k < m->ins.n; k++) {
        const hone_tile_ins *i = m->ins.at + k;
        const int32_t args[3] = {i->a, i->b, i->c};
        /* element by element: dst may be a dying argument */
        const bool in_place = i->kind == HONE_TILE_OP || i->kind == HONE_TILE_MULADD;
        for (int pass = 0; pass < 2; pass++) {
            for (int a = 0; pass == !in_place && a < 3; a++) {
                bool again = false;
                for (int b = 0; b < a; b++) again = again || args[b] == args[a];
                if (args[a] < 0 || again || m->regs.at[args[a]].kept || m->regs.at[args[a]].last != k)
                    continue;
                const int w = m->regs.at[args[a]].width;
                freed[w][n_free[w]++] = (int)m->regs.at[args[a]].buffer;
            }
            if (pass || i->dst < 0 || m->regs.at[i->dst].kept) continue;
            reg *r = m->regs.at + i->dst;
            if (n_free[r->width]) r->buffer = (size_t)freed[r->width][--n_free[r->width]];
            else width[n] = r->width, bytes += (size_t)1 << r->width, r->buffer = (size_t)n++;
            if (r->last < 0) freed[r->width][n_free[r->width]++] = (int)r->buffer; /* never read */
        }
    }
    *width_of = width, *n_buffer = n;
    return bytes;
}

static int64_t piece_of(const hone_walk *walk, int64_t most) {
    const int64_t row = walk->ext[walk->nd - 1];
    if (walk->n <= most) return walk->n > 0 ? walk->n : 1;
    if (row < most) return row > 0 ? most / row * row : 1;
    const int64_t pieces = hone_ceil_div(row, most), even = (hone_ceil_div(row, pieces) + 15) / 16 * 16;
    return even < most ? even : most;
}

static size_t carve(size_t *at, size_t bytes) {
    const size_t here = *at;
    *at += (bytes + 63) / 64 * 64;
    return here;
}

/* Sizes of tiles, places in scratch, and the code's own copies. */
static void finish(maker *m, hone_tilecode *code) {
    hone_tile_join(m, code);
    uint8_t *width = NULL;
    int n_buffer = 0;
    const size_t each = allocate(m, code, &width, &n_buffer);
    if (m->status) return;
    int64_t most = 1024;
    while (most > 256 && each * (size_t)most > 32768) most /= 2;
    code->walk.piece = piece_of(&code->walk, most);
    code->out.piece =
        code->mode == HONE_TILE_ALL ? (code->out.n < most ? code->out.n : most) : code->walk.piece;
    if (code->mode == HONE_TILE_ALL) {
        const int64_t k = code->count > 0 ? code->count : 1;
        code->walk.piece = k >= most              ? most
                           : code->walk.n <= most ? (code->walk.n > 0 ? code->walk.n : 1)
                                                  : most / k * k;
    }
    if (code->out.piece < 1) code->out.piece = 1;
    const size_t cap = (size_t)(code->walk.piece > code->out.piece ? code->walk.piece : code->out.piece);
    size_t at = 0, *buffer = HONE_NEW_N(m->arena, size_t, m->regs.n + 1),
           *place = HONE_NEW_N(m->tmp, size_t, n_buffer + 1);
    if (!buffer || !place) {
        hone_tile_no_memory(m);
        return;
    }
    for (int k = 0; k < n_buffer; k++) place[k] = carve(&at, cap << width[k]);
    for (int k = 0; k < m->regs.n; k++) buffer[k] = place[m->regs.at[k].buffer];
    code->spare = carve(&at, cap * 16);
    code->acc = carve(&at, code->mode == HONE_TILE_MAP ? 0 : code->mode == HONE_TILE_EACH ? cap * 8 : 8);
    code->win = carve(&at, code->reduce >= HONE_REDUCE_ARGMAX ? cap * 4 : 0);
    code->regs = carve(&at, sizeof(void *) * (size_t)m->regs.n);
    code->forms = carve(&at, sizeof(int64_t) * (size_t)m->forms.n);
    code->fixed = carve(&at, sizeof(int64_t) * (size_t)m->n_fixed);
    code->scratch = at;
    code->buffer = buffer, code->n_reg = m->regs.n;
    code->constant = (const void *)m->constant, code->n_constant = m->n_constant;
    code->n_form = m->forms.n;
    code->form = hone_arena_copy(m->arena, m->forms.at, sizeof *m->forms.at * (size_t)m->forms.n);
    code->n_ins = m->ins.n;
    hone_tile_ins *ins = hone_arena_copy(m->arena, m->ins.at, sizeof *m->ins.at * (size_t)m->ins.n);
    int64_t *ext = HONE_NEW_N(m->arena, int64_t, m->n_fixed);
    if (!code->form || !ins || !ext) {
        hone_tile_no_memory(m);
        return;
    }
    for (int f = 0; f < m->n_fixed; f++) ext[f] = m->fixed_slot[f] < 0 ? 1 : m->w.extent[m->fixed_slot[f]];
    code->fixed_ext = ext, code->n_fixed = m->n_fixed;

    /* A load whose memory runs across the rows: see boxes() in tile_run.c. */
    bool across = false, own = false;
    for (int k = 0; k < code->n_ins; k++) {
        ins[k].ahead =
            ins[k].flat && !ins[k].level && code->walk.n > (1 << 20) / (ins[k].bytes ? ins[k].bytes : 1);
        own = own || ins[k].kind == HONE_TILE_ACC;
        if (ins[k].kind != HONE_TILE_LOAD || ins[k].level || ins[k].n_bound) continue;
        const int64_t *coef = code->form[ins[k].form].coef + code->walk.nd - 2;
        across = across || (llabs(coef[0]) == ins[k].bytes && llabs(coef[1]) >= 64);
    }
    if (code->mode == HONE_TILE_MAP && across && !own) code->box_rows = 32;

    /* A flat store of what one instruction has just computed: that instruction writes to the tensor itself.
       What no cache will hold until it is read again is written past the caches instead. */
    code->direct = -1;
    const hone_tile_ins *store = ins + code->n_ins - 1;
    if (code->mode == HONE_TILE_MAP && store->kind == HONE_TILE_STORE && store->flat && !store->convert) {
        int def = -1, uses = 0;
        for (int k = 0; k + 1 < code->n_ins; k++) {
            if (ins[k].dst == store->a) def = k;
            uses += ins[k].a == store->a || ins[k].b == store->a || ins[k].c == store->a;
        }
        /* of attention: in scratch */
        bool block = m->acc_tensor >= 0 && m->w.in->tensor[store->tensor].role == HONE_ROLE_TEMP;
        code->streams = !code->box_rows && code->walk.n >= (16 << 20) / store->bytes && !block;
        if (!code->streams && def >= 0 && !uses && ins[def].kind != HONE_TILE_ACC) {
            ins[def].keep = true;
            code->direct = store->a, code->direct_store = store, code->n_ins--;
        }
    }
    code->ins = ins;

    int64_t cost = 1;
    for (int k = 0; k < code->n_ins; k++) cost += ins[k].level == 0;
    if (code->mode != HONE_TILE_MAP && code->count > 0 && __builtin_mul_overflow(cost, code->count, &cost))
        cost = INT64_MAX;
    if (code->whole) return;
    const int64_t row = code->out.ext[code->out.nd - 1], fewest = code->mode == HONE_TILE_EACH ? 32 : 1;
    code->grain = 65536 / cost > fewest ? 65536 / cost : fewest,
    code->least = 4096 / cost > fewest ? 4096 / cost : fewest;
    code->unit = row > 0 && row < code->out.piece ? row : code->out.piece;
    if (row > 0 && code->box_rows) code->unit = code->box_rows * row;
}

static void make(maker *m) {
    const hone_stage *st = m->w.stage;
    hone_tilecode *code = m->code;
    const bool arg = st->reduce == HONE_REDUCE_ARGMAX || st->reduce == HONE_REDUCE_ARGMIN;
    int64_t ext[HONE_SLOTS], reduced[HONE_SLOTS];
    for (int s = 0; s < m->w.n_slot; s++) {
        if (s < st->n_index) ext[s] = s == m->w.over ? 1 : m->w.extent[s];
        else reduced[s - st->n_index] = m->w.extent[s];
    }
    if (!hone_count_of(ext, st->n_index, &code->elements) ||
        !hone_count_of(reduced, st->n_reduce, &code->count)) {
        hone_tile_fail(m, hone_fail(HONE_NOT_SUPPORTED, "a domain of more than 2^62 elements"));
        return;
    }
    code->mode = choose(m, code->elements, code->count);
    code->reduce = st->reduce;
    code->value = code->pick = code->result = -1;
    m->fixed_slot[m->n_fixed++] = m->w.over;
    for (int s = st->n_index; code->mode == HONE_TILE_EACH && s < m->w.n_slot; s++)
        m->fixed_slot[m->n_fixed++] = s;

    /* walks */
    keep_values(m);
    if (code->mode != HONE_TILE_ALL) keep_access(m, NULL);
    if (m->status) return;
    make_walk(m, 0, code->mode == HONE_TILE_ALL ? m->w.n_slot : st->n_index, &code->walk);
    code->out = code->walk;
    if (code->mode == HONE_TILE_ALL) {
        m->affine.n = 0;
        keep_access(m, NULL);
        for (int k = 0; !st->identity && k < hone_know_subs(&m->w, NULL); k++)
            keep_arg(m, hone_know_sub(&m->w, NULL, k));
        /* what the subscripts load; a few forms too many do no harm */
        for (int32_t k = 0; !st->identity && k < m->w.in->n_x; k++)
            if (m->w.x[k].live && m->w.x[k].kind == HONE_KNOW_AFFINE) keep_affine(m, m->w.x[k].affine);
            else if (m->w.x[k].live && m->w.x[k].kind == HONE_KNOW_VALUE && m->w.in->x[k].kind == HONE_X_LOAD)
                keep_access(m, m->w.in->x + k);
        make_walk(m, 0, st->n_index, &code->out);
    }
    if (m->status) return;

    /* the value */
    m->walk = &code->walk;
    const hone_dtype target = m->w.in->tensor[st->tensor].dtype;
    int ctype = m->w.in->x[st->value].type;
    const bool moves = code->mode == HONE_TILE_MAP && st->how == HONE_STORE_SET &&
                       target != hone_ctype_dtype((hone_ctype)ctype) && !st->saturate &&
                       hone_tile_width(hone_dtypes[target].bytes) >= 0 &&
                       hone_know_of(&m->w, st->value)->kind != HONE_KNOW_CONST &&
                       hone_tile_can_move(m, st->value, target);
    int value = hone_tile_emit(m, st->value, moves ? target : HONE_DTYPE_NONE);
    if (code->mode != HONE_TILE_MAP) {
        code->ctype = (hone_ctype)ctype;
        code->value = hone_tile_at_level(m, value, 0);
        if (arg) {
            if (hone_know_of(&m->w, st->pick)->fails) {
                hone_tile_fail(m, hone_fail(HONE_NOT_SUPPORTED, "a checked load in what argmax takes"));
                return;
            }
            ctype = m->w.in->x[st->pick].type;
            code->pick = hone_tile_at_level(m, hone_tile_emit(m, st->pick, HONE_DTYPE_NONE), 0);
            code->pick_width = hone_tile_width_of(ctype);
        }
        if (m->status) return;
        m->regs.at[code->value].kept = true;
        if (arg) m->regs.at[code->pick].kept = true;
        if (code->mode == HONE_TILE_EACH) part(m, code);
        code->tail = m->ins.n;
        for (int32_t k = 0; k < m->w.in->n_x; k++) m->memo[k] = -1;
        m->walk = &code->out;
        value = code->result = hone_tile_new_reg(m, hone_tile_width_of(ctype), 0, false);
        if (m->status) return;
        m->regs.at[value].kept = true;
    }
    if (m->status) return;
    hone_tile_emit_store(m, value, ctype, moves ? target : HONE_DTYPE_NONE);
    if (!m->status) finish(m, code);
}

hone_status hone_tilecode_make(hone_arena *arena, const hone_instance *in, int stage, const hone_param *param,
                               const hone_tensor_view *tensor, int acc_tensor, hone_tilecode **out) {
    _Alignas(64) char room[16384]; /* most stages need no more than this to be thought over */
    maker m = {
        .arena = arena, .place = tensor, .acc_tensor = acc_tensor, .tmp = hone_arena_in(room, sizeof room)};
    m.code = HONE_NEW(arena, hone_tilecode);
    m.memo = HONE_NEW_N(m.tmp, int32_t, in->n_x + 1);
    m.memo_guard = HONE_NEW_N(m.tmp, int32_t, in->n_x + 1);
    if (!m.code || !m.memo || !m.memo_guard) hone_tile_no_memory(&m);
    if (!m.status) m.status = hone_know_stage(m.tmp, in, stage, param, &m.w);
    if (!m.status) {
        for (int32_t k = 0; k < in->n_x; k++) m.memo[k] = -1;
        m.code->ops = hone_tile_ops_best();
        m.code->instance = in;
        const hone_stage *st = in->stage + stage;
        hone_stage_order(in, st, param, tensor[st->tensor].stride, m.order);
        for (int k = st->n_index; k < m.w.n_slot; k++) m.order[k] = k;
        make(&m);
    }
    hone_arena_destroy(m.tmp);
    if (!m.status) *out = m.code;
    return m.status;
}

int64_t hone_tilecode_elements(const hone_tilecode *code) { return code->elements; }
bool hone_tilecode_whole(const hone_tilecode *code) { return code->whole; }
int64_t hone_tilecode_grain(const hone_tilecode *code, int threads) {
    if (code->whole) return code->elements;
    const int64_t grain = hone_share_of(code->elements, code->least, code->grain, threads),
                  vector = code->mode == HONE_TILE_ALL ? 1 : 16;
    /* else whole rows would make them too unequal */
    const int64_t unit = code->box_rows || grain >= 4 * code->unit ? code->unit : vector;
    return hone_round_up(grain, unit);
}
size_t hone_tilecode_scratch(const hone_tilecode *code) { return code->scratch; }
