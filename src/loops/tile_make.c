/* SPDX-License-Identifier: Apache-2.0
   tile_make: turns one stage, all its numbers known, into tile code. What the expressions are worth was found out by tile_know.c; here dims
   are collapsed, instructions emitted and registers given buffers.

   Selects evaluate both arms, so a load in an arm must not fail where the arm is not taken: emit() carries a *guard*, a register that is
   nonzero where the value is wanted (-1: everywhere). */
#include "loops/tile_know.h"

#include <stdlib.h>
#include <string.h>

enum { ROW = 1, ANY = 2 }; /* levels: 0 an element, ROW one value a row, ANY a constant */
typedef struct { uint8_t width, level; bool varies, kept; int last; size_t buffer; } reg;
typedef struct {
    hone_knows w;
    hone_arena *arena, *tmp; /* of the code; of what is needed only now */
    const hone_place *place;
    int acc_tensor;
    hone_tilecode *code;
    const hone_walk *walk;   /* of what is being emitted */
    int fixed_slot[HONE_SLOTS + 1], n_fixed;
    hone_vec(hone_tile_ins) ins;
    hone_vec(hone_form) forms;
    hone_vec(reg) regs;
    hone_vec(int64_t *) affine; /* every affine function that the walk must keep affine */
    struct { int reg; uint8_t width; hone_scalar k; } *constant;
    int n_constant;
    int32_t *memo, *memo_guard, *expanded; /* register of each expression, guard (and rawness) it was made under; each register's expansion */
    int room_expanded;
    hone_status status;
} maker;

static int fail(maker *m, hone_status s) {
    if (!m->status) m->status = s;
    return -1;
}
static int no_memory(maker *m) { return fail(m, hone_fail(HONE_NO_MEMORY, "out of memory")); }
static int log2_bytes(int bytes) { return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : -1; }
static int ctype_width(int ctype) { return log2_bytes(hone_ctype_bytes[ctype]); }
static int min(int a, int b) { return a < b ? a : b; }

/* ---- addresses and walks --------------------------------------------------------------------------------------------------------- */
/* Adds the affine part of an access's byte offset; load NULL: the stage's target. False where it does not fit in 64 bits. */
static bool address(const maker *m, const hone_x *load, int64_t *d) {
    const int tensor = load ? load->a : m->w.stage->tensor, bytes = hone_dtypes[m->w.in->tensor[tensor].dtype].bytes;
    const bool own = !load && m->w.stage->identity;
    for (int k = 0; k < hone_know_subs(&m->w, load); k++) {
        int64_t stride = load && load->flat ? 1 : m->place[tensor].stride[k];
        if (__builtin_mul_overflow(stride, (int64_t)bytes, &stride)) return false;
        if (own) {
            if (m->w.extent[k] > 1 && __builtin_add_overflow(d[k], stride, &d[k])) return false;
            continue;
        }
        const hone_know *s = hone_know_of(&m->w, hone_know_sub(&m->w, load, k));
        if (s->kind != KNOW_VALUE && !hone_know_add(&m->w, d, s, stride)) return false;
    }
    return true;
}

static void keep_affine(maker *m, int64_t *affine) {
    if (!hone_push(&m->affine, affine)) no_memory(m);
}
static void keep_arg(maker *m, int32_t x) {
    hone_know *k = hone_know_of(&m->w, x);
    if (k->kind == KNOW_AFFINE) keep_affine(m, k->affine);
}
static void keep_access(maker *m, const hone_x *load) {
    int64_t *d = HONE_NEW_N(m->tmp, int64_t, m->w.n_slot + 1);
    if (!d) { no_memory(m); return; }
    if (!address(m, load, d)) { fail(m, hone_fail(HONE_NOT_SUPPORTED, "strides beyond 64 bits")); return; }
    keep_affine(m, d);
    if (!load && m->w.stage->identity) return;
    for (int k = 0; k < hone_know_subs(&m->w, load); k++) {
        const int32_t s = hone_know_sub(&m->w, load, k);
        if (!hone_know_inside(hone_know_of(&m->w, s), hone_know_dim(&m->w, load, load ? load->a : m->w.stage->tensor, k))) keep_arg(m, s);
    }
    if (load && load->c >= 0) keep_arg(m, load->c);
}
static void keep_values(maker *m) {
    const hone_instance *in = m->w.in;
    keep_arg(m, m->w.stage->value);
    if (m->w.stage->reduce >= HONE_REDUCE_ARGMAX) keep_arg(m, m->w.stage->pick);
    for (int32_t k = 0; k < in->n_x; k++) {
        const hone_x *x = in->x + k;
        if (!m->w.x[k].live || m->w.x[k].kind != KNOW_VALUE) continue;
        if (x->kind == HONE_X_LOAD) keep_access(m, x);
        else if (x->kind == HONE_X_FN)
            for (int a = 0; a < hone_fns[x->fn].arity; a++) keep_arg(m, a == 0 ? x->a : a == 1 ? x->b : x->c);
        else {
            keep_arg(m, x->a);
            if (x->kind == HONE_X_SELECT) keep_arg(m, x->b), keep_arg(m, x->c);
        }
    }
}

/* Slots from `from` to `to` (without the over index), neighbours joined where all that is kept stays affine. */
static void make_walk(maker *m, int from, int to, hone_walk *walk) {
    int64_t ext[HONE_SLOTS];
    int slot[HONE_SLOTS], nd = 0;
    for (int s = from; s < to; s++) {
        const int64_t e = m->w.extent[s];
        if (s == m->w.over || e == 1) continue;
        bool join = nd > 0;
        for (int k = 0; join && k < m->affine.n; k++) {
            int64_t t;
            join = !__builtin_mul_overflow(m->affine.at[k][s], e, &t) && t == m->affine.at[k][slot[nd - 1]];
        }
        if (join) {
            if (__builtin_mul_overflow(ext[nd - 1], e, &ext[nd - 1])) fail(m, hone_fail(HONE_NOT_SUPPORTED, "a domain of more than 2^62 elements"));
            slot[nd - 1] = s;
        } else ext[nd] = e, slot[nd++] = s;
    }
    const int pad = nd >= 2 ? 0 : 2 - nd;
    *walk = (hone_walk){.nd = nd + pad};
    for (int d = 0; d < pad; d++) walk->ext[d] = 1, walk->slot[d] = -1;
    memcpy(walk->ext + pad, ext, sizeof *ext * (size_t)nd);
    memcpy(walk->slot + pad, slot, sizeof *slot * (size_t)nd);
    if (!hone_count_of(walk->ext, walk->nd, &walk->n)) fail(m, hone_fail(HONE_NOT_SUPPORTED, "a domain of more than 2^62 elements"));
}

static int form(maker *m, const int64_t *affine) {
    const hone_walk *walk = m->walk;
    int64_t *coef = HONE_NEW_N(m->arena, int64_t, walk->nd + m->n_fixed);
    if (!coef) return no_memory(m);
    for (int d = 0; d < walk->nd; d++) coef[d] = walk->slot[d] < 0 ? 0 : affine[walk->slot[d]];
    for (int f = 0; f < m->n_fixed; f++) coef[walk->nd + f] = m->fixed_slot[f] < 0 ? 0 : affine[m->fixed_slot[f]];
    if (!hone_push(&m->forms, ((hone_form){.c = affine[m->w.n_slot], .coef = coef, .fixed = coef + walk->nd}))) return no_memory(m);
    return m->forms.n - 1;
}
static int form_level(const maker *m, int f) { return m->forms.at[f].coef[m->walk->nd - 1] ? 0 : ROW; }
static bool form_varies(const maker *m, int f) {
    for (int k = 1; k < m->n_fixed; k++)
        if (m->forms.at[f].fixed[k]) return true;
    return false;
}
/* The form runs through memory as the walk (at this level) does, without gaps. */
static bool form_flat(const maker *m, int f, int level, int64_t bytes) {
    for (int d = m->walk->nd - 1 - level; d >= 0; d--) {
        if (m->walk->ext[d] > 1 && m->forms.at[f].coef[d] != bytes) return false;
        if (__builtin_mul_overflow(bytes, m->walk->ext[d], &bytes)) return false;
    }
    return true;
}

/* ---- registers and instructions -------------------------------------------------------------------------------------------------- */
static int new_reg(maker *m, int width, int level, bool varies) {
    if (!hone_push(&m->regs, ((reg){.width = (uint8_t)width, .level = (uint8_t)level, .varies = varies}))) return no_memory(m);
    if (m->regs.n > m->room_expanded) {
        const int room = 2 * m->regs.n + 32;
        int32_t *e = HONE_NEW_N(m->tmp, int32_t, room);
        if (!e) return no_memory(m);
        for (int k = 0; k < room; k++) e[k] = k < m->room_expanded ? m->expanded[k] : -1;
        m->expanded = e, m->room_expanded = room;
    }
    return m->regs.n - 1;
}
static int constant(maker *m, int width, hone_scalar k) {
    for (int c = 0; c < m->n_constant; c++)
        if (m->constant[c].width == width && m->constant[c].k.u64 == k.u64) return m->constant[c].reg;
    const int r = new_reg(m, width, ANY, false);
    if (r < 0) return r;
    if (m->n_constant % 16 == 0) {
        void *more = hone_arena_alloc(m->arena, sizeof *m->constant * (size_t)(m->n_constant + 16));
        if (!more) return no_memory(m);
        if (m->n_constant) memcpy(more, m->constant, sizeof *m->constant * (size_t)m->n_constant);
        m->constant = more;
    }
    m->regs.at[r].kept = true;
    m->constant[m->n_constant].reg = r;
    m->constant[m->n_constant].width = (uint8_t)width;
    m->constant[m->n_constant++].k = k;
    return r;
}
/* The bits of a constant of this type, nothing behind them. */
static hone_scalar scalar_bits(int ctype, hone_scalar k) {
    hone_scalar r = {.u64 = 0};
    memcpy(&r, &k, hone_ctype_bytes[ctype]);
    return r;
}

static int level_of(const maker *m, int r) { return r < 0 ? ANY : m->regs.at[r].level; }
static int put(maker *m, hone_tile_ins i, int width) {
    if (m->status) return -1;
    const int32_t args[3] = {i.a, i.b, i.c};
    for (int k = 0; k < 3; k++) i.varies = i.varies || (args[k] >= 0 && m->regs.at[args[k]].varies);
    i.dst = -1;
    if (width >= 0) {
        if ((i.dst = new_reg(m, width, i.level, i.varies)) < 0) return -1;
        i.width = (uint8_t)width;
    }
    if (!hone_push(&m->ins, i)) return no_memory(m);
    return i.dst;
}
static int at_level(maker *m, int r, int level) {
    if (r < 0 || m->regs.at[r].level == level || m->regs.at[r].level == ANY) return r;
    if (m->expanded[r] >= 0) return m->expanded[r];
    const int e = put(m, (hone_tile_ins){.kind = TILE_EXPAND, .level = 0, .a = r, .b = -1, .c = -1}, m->regs.at[r].width);
    if (e >= 0) m->expanded[r] = e;
    return e;
}
/* An element-wise instruction at the finest level of its arguments. */
static int put_op(maker *m, hone_tile_ins i, int width) {
    if (m->status) return -1;
    int level = min(level_of(m, i.a), min(level_of(m, i.b), level_of(m, i.c)));
    if (level == ANY) level = ROW;
    i.level = (uint8_t)level;
    i.a = at_level(m, i.a, level), i.b = at_level(m, i.b, level), i.c = at_level(m, i.c, level);
    return put(m, i, width);
}
static int put_fn(maker *m, hone_fn fn, int ctype, int width, int a, int b, int c) {
    hone_tile_op *op = m->code->ops->fn[fn][ctype];
    if (!op) return fail(m, hone_fail(HONE_BUG, "function %s has no %s version", hone_fns[fn].name, hone_ctype_names[ctype]));
    return put_op(m, (hone_tile_ins){.kind = TILE_OP, .op = op, .a = a, .b = b, .c = c}, width);
}
/* `rows`: without what changes along a row. */
static int put_iota(maker *m, const int64_t *affine, bool rows) {
    const int f = form(m, affine);
    if (f < 0) return -1;
    if (rows) m->forms.at[f].coef[m->walk->nd - 1] = 0;
    return put(m, (hone_tile_ins){.kind = TILE_IOTA, .level = (uint8_t)form_level(m, f), .form = f, .varies = form_varies(m, f), .a = -1, .b = -1, .c = -1}, 3);
}

/* ---- expressions ----------------------------------------------------------------------------------------------------------------- */
static int emit(maker *m, int32_t at, int guard);

/* guard and (nonzero, or zero where `not`) */
static int narrow(maker *m, int guard, int cond, bool not) {
    const int c = not ? put_fn(m, HONE_FN_not, HONE_I32, 2, cond, -1, -1) : cond;
    return guard < 0 ? c : put_fn(m, HONE_FN_and, HONE_I32, 2, guard, c, -1);
}
static void check(maker *m, int sub, int guard, int64_t dim, int tensor, int k) {
    put_op(m, (hone_tile_ins){.kind = TILE_CHECK, .a = sub, .b = guard, .c = -1, .k = dim, .tensor = tensor, .dim = (int16_t)k}, -1);
}

/* The subscripts of an access that may be outside; `error`: they are checked. Returns how many. */
static int outside(maker *m, const hone_x *load, int guard, bool error, int *list) {
    const int tensor = load ? load->a : m->w.stage->tensor;
    int n = 0;
    if (!load && m->w.stage->identity) return 0;
    for (int k = 0; k < hone_know_subs(&m->w, load); k++) {
        const int32_t s = hone_know_sub(&m->w, load, k);
        const int64_t dim = hone_know_dim(&m->w, load, tensor, k);
        if (hone_know_inside(hone_know_of(&m->w, s), dim)) continue;
        list[n++] = k;
        if (error) check(m, emit(m, s, guard), guard, dim, tensor, k);
    }
    return n;
}
static int inside(maker *m, const hone_x *load, int guard, const int *list, int n) {
    int ok = -1;
    for (int k = 0; k < n && !m->status; k++) {
        const int64_t dim = hone_know_dim(&m->w, load, load ? load->a : m->w.stage->tensor, list[k]);
        const int s = emit(m, hone_know_sub(&m->w, load, list[k]), guard);
        ok = put_op(m, (hone_tile_ins){.kind = TILE_INSIDE, .a = ok, .b = s, .c = -1, .k = dim}, 2);
    }
    return ok;
}

/* Constants and loads of storage type `raw` move as they lie, without being widened (raw NONE: they are widened). */
static bool can_move(const maker *m, int32_t at, hone_dtype raw) {
    const hone_know *k = hone_know_of(&m->w, at);
    const hone_x *x = m->w.in->x + k->is;
    if (k->kind == KNOW_CONST) return true;
    if (k->kind != KNOW_VALUE) return false;
    if (x->kind == HONE_X_SELECT) return can_move(m, x->b, raw) && can_move(m, x->c, raw);
    return x->kind == HONE_X_LOAD && m->w.in->tensor[x->a].dtype == raw && (x->c < 0 || can_move(m, x->c, raw));
}
static int emit_as(maker *m, int32_t at, int guard, hone_dtype raw);

static int put_const(maker *m, const hone_know *k, int type, hone_dtype raw, hone_scalar *out) {
    hone_scalar v = scalar_bits(type, k->k);
    int width = ctype_width(type);
    if (raw) {
        uint64_t cell[2] = {0, 0};
        hone_dtype_store(raw, cell, (hone_ctype)type, k->k, false);
        v.u64 = cell[0];
        width = log2_bytes(hone_dtypes[raw].bytes);
    }
    if (out) {
        *out = v;
        return -1;
    }
    return constant(m, width, v);
}

static int emit_acc(maker *m, const hone_x *x) {
    const hone_tensor *t = m->w.in->tensor + x->a;
    int64_t d[HONE_SLOTS + 1] = {0}, stride = 1;
    bool own = m->code->mode == TILE_MAP && t->dtype == HONE_DTYPE_F32 && !x->flat;
    for (int k = t->rank - 1; own && k >= 0; k--) {
        const hone_know *s = hone_know_of(&m->w, hone_know_sub(&m->w, x, k));
        own = s->kind != KNOW_VALUE && hone_know_add(&m->w, d, s, stride) && !__builtin_mul_overflow(stride, m->w.param[t->dim[k]].i, &stride);
    }
    stride = 1;
    for (int s = m->w.n_slot - 1; own && s >= 0; s--) {
        if (s == m->w.over) continue;
        own = m->w.extent[s] <= 1 || d[s] == stride;
        stride *= m->w.extent[s];
    }
    if (!own || d[m->w.n_slot]) return fail(m, hone_fail(HONE_NOT_SUPPORTED, "%s: an epilogue reads it at other indices than its own", t->name));
    return put(m, (hone_tile_ins){.kind = TILE_ACC, .level = 0, .a = -1, .b = -1, .c = -1}, 2);
}

static int emit_load(maker *m, const hone_x *x, int guard, hone_dtype raw) {
    const hone_tensor *t = m->w.in->tensor + x->a;
    const int bytes = hone_dtypes[t->dtype].bytes, ctype = hone_dtypes[t->dtype].ctype;
    const int width = raw ? log2_bytes(bytes) : ctype_width(ctype);
    if (log2_bytes(bytes) < 0 || (!raw && ctype != x->type)) return fail(m, hone_fail(HONE_NOT_SUPPORTED, "%s: loads of %s", t->name, hone_dtypes[t->dtype].name));
    if (x->a == m->acc_tensor) return emit_acc(m, x);

    /* what may be outside, and what is there then */
    int list[HONE_MAX_RANK], ok = -1, other = -1;
    const int n_out = outside(m, x, guard, x->c < 0, list);
    const bool masked = n_out && (x->c >= 0 || guard >= 0); /* else the checks have settled it */
    hone_scalar otherwise = {.u64 = 0};
    if (masked && x->c >= 0) {
        const hone_know *e = hone_know_of(&m->w, x->c);
        if (e->kind == KNOW_CONST) put_const(m, e, x->type, raw, &otherwise);
        else if (!e->fails) other = emit_as(m, x->c, guard, raw);
        else {
            ok = inside(m, x, guard, list, n_out);
            other = emit_as(m, x->c, narrow(m, guard, ok, true), raw);
        }
    }
    if (m->status) return -1;

    /* the affine part, and the rest */
    int64_t d[HONE_SLOTS + 1] = {0};
    if (!address(m, x, d)) return fail(m, hone_fail(HONE_NOT_SUPPORTED, "strides beyond 64 bits"));
    int wild[HONE_MAX_RANK], n_wild = 0, level = ROW;
    for (int k = 0; k < hone_know_subs(&m->w, x); k++) {
        const int32_t s = hone_know_sub(&m->w, x, k);
        if (hone_know_of(&m->w, s)->kind != KNOW_VALUE) continue;
        wild[n_wild] = emit(m, s, guard);
        if (m->status) return -1;
        level = min(level, level_of(m, wild[n_wild++]));
    }
    hone_tile_ins i = {.kind = TILE_LOAD, .ctype = (uint8_t)ctype, .dtype = (uint8_t)t->dtype, .bytes = (uint8_t)bytes, .tensor = x->a, .a = -1, .b = -1,
                       .c = other, .other = otherwise, .convert = !raw && hone_ctype_dtype((hone_ctype)ctype) != t->dtype};
    if (!n_wild) {
        i.form = form(m, d);
        if (i.form < 0) return -1;
        level = form_level(m, i.form);
        i.varies = form_varies(m, i.form);
        if (masked) {
            hone_bound *bound = HONE_NEW_N(m->arena, hone_bound, n_out);
            if (!bound) return no_memory(m);
            for (int k = 0; k < n_out; k++) {
                const hone_know *s = hone_know_of(&m->w, hone_know_sub(&m->w, x, list[k]));
                int64_t a[HONE_SLOTS + 1] = {0};
                if (!hone_know_add(&m->w, a, s, 1) || (bound[k].form = form(m, a)) < 0) return no_memory(m);
                bound[k].dim = hone_know_dim(&m->w, x, x->a, list[k]);
                level = min(level, form_level(m, bound[k].form));
                i.varies = i.varies || form_varies(m, bound[k].form);
            }
            i.bound = bound, i.n_bound = n_out;
            if (other >= 0) level = min(level, level_of(m, other));
        }
        i.level = (uint8_t)level;
        i.c = at_level(m, other, level);
        i.flat = !masked && form_flat(m, i.form, level, bytes);
        return put(m, i, width);
    }

    /* A gather. Where only the row decides what is gathered, whole rows are moved. */
    if (masked && ok < 0) ok = inside(m, x, guard, list, n_out);
    if (m->status) return -1;
    const int last = m->walk->slot[m->walk->nd - 1];
    const int64_t along = last < 0 ? 0 : d[last];
    const bool rows = level == ROW && along && level_of(m, ok) != 0;
    if (ok >= 0) level = min(level, level_of(m, ok));
    if (along && !rows) level = 0;
    if (!rows && other >= 0) level = min(level, level_of(m, other));
    int off = put_iota(m, d, rows);
    for (int k = 0, n = 0; k < hone_know_subs(&m->w, x) && !m->status; k++) {
        if (hone_know_of(&m->w, hone_know_sub(&m->w, x, k))->kind != KNOW_VALUE) continue;
        const int64_t stride = (x->flat ? 1 : m->place[x->a].stride[k]) * bytes;
        off = put_op(m, (hone_tile_ins){.kind = TILE_MULADD, .a = off, .b = wild[n++], .c = -1, .k = stride}, 3);
    }
    if (m->status) return -1;
    i.b = ok;
    if (rows) {
        i.kind = TILE_ROWS, i.level = 0, i.a = off, i.k = along;
        i.c = at_level(m, other, 0);
        return put(m, i, width);
    }
    i.kind = TILE_GATHER, i.level = (uint8_t)level;
    i.a = at_level(m, off, level), i.b = at_level(m, ok, level);
    if (other < 0 && masked && otherwise.u64) other = constant(m, width, otherwise);
    i.c = at_level(m, other, level);
    return put(m, i, width);
}

static int emit_value(maker *m, const hone_x *x, int guard, hone_dtype raw) {
    const int width = ctype_width(x->type);
    switch (x->kind) {
    case HONE_X_LOAD: return emit_load(m, x, guard, raw);
    case HONE_X_FN: {
        const int type = m->w.in->x[x->a].type, arity = hone_fns[x->fn].arity;
        const int a = emit(m, x->a, guard), b = arity > 1 ? emit(m, x->b, guard) : -1, c = arity > 2 ? emit(m, x->c, guard) : -1;
        if (m->status) return -1;
        const hone_know *e = arity > 1 ? hone_know_of(&m->w, x->b) : NULL;
        if (x->fn == HONE_FN_pow && e->kind == KNOW_CONST && (type == HONE_F32 || type == HONE_F64)) { /* as fn.h has it, without asking each time */
            const double p = hone_scalar_f64((hone_ctype)type, e->k);
            const int square = p == 2 || p == 3 ? put_fn(m, HONE_FN_mul, type, width, a, a, -1) : -1;
            if (square >= 0) return p == 2 ? square : put_fn(m, HONE_FN_mul, type, width, square, a, -1);
        }
        return put_fn(m, (hone_fn)x->fn, type, width, a, b, c);
    }
    case HONE_X_SELECT: {
        const int c = emit(m, x->a, guard);
        if (m->status) return -1;
        const int a = emit_as(m, x->b, hone_know_of(&m->w, x->b)->fails ? narrow(m, guard, c, false) : guard, raw);
        const int b = emit_as(m, x->c, hone_know_of(&m->w, x->c)->fails ? narrow(m, guard, c, true) : guard, raw);
        const int w = raw ? log2_bytes(hone_dtypes[raw].bytes) : width;
        if (m->status || w < 0) return fail(m, HONE_NOT_SUPPORTED);
        return put_op(m, (hone_tile_ins){.kind = TILE_OP, .op = m->code->ops->select[w], .a = c, .b = a, .c = b}, w);
    }
    case HONE_X_CAST: {
        const int a = emit(m, x->a, guard);
        return put_op(m, (hone_tile_ins){.kind = TILE_OP, .op = m->code->ops->cast[m->w.in->x[x->a].type][x->type], .a = a, .b = -1, .c = -1}, width);
    }
    case HONE_X_ROUND: {
        const int a = emit(m, x->a, guard);
        if (hone_dtypes[x->fn].bytes > 8) return fail(m, hone_fail(HONE_NOT_SUPPORTED, "rounding to %s", hone_dtypes[x->fn].name));
        return put_op(m, (hone_tile_ins){.kind = TILE_ROUND, .ctype = x->type, .dtype = (uint8_t)x->fn, .a = a, .b = -1, .c = -1}, width);
    }
    default: return fail(m, hone_fail(HONE_BUG, "unknown kind of expression %d", x->kind));
    }
}

static int emit_as(maker *m, int32_t at, int guard, hone_dtype raw) {
    if (m->status) return -1;
    const hone_know *k = hone_know_of(&m->w, at);
    const hone_x *x = m->w.in->x + k->is;
    if (k->kind == KNOW_CONST) return put_const(m, k, x->type, raw, NULL);
    if (!k->fails) guard = -1;
    const int under = guard * 2 + (raw != HONE_DTYPE_NONE);
    if (m->memo[k->is] >= 0 && m->memo_guard[k->is] == under) return m->memo[k->is];
    const int r = k->kind == KNOW_AFFINE ? put_iota(m, k->affine, false) : emit_value(m, x, guard, raw);
    if (m->status) return -1;
    m->memo[k->is] = r, m->memo_guard[k->is] = under;
    return r;
}
static int emit(maker *m, int32_t at, int guard) { return emit_as(m, at, guard, HONE_DTYPE_NONE); }

/* ---- the store ------------------------------------------------------------------------------------------------------------------- */
/* No two elements of the domain store to one place: by size, each stride passes over all that the smaller ones reach. */
static bool injective(const maker *m, const int64_t *d) {
    bool done[HONE_SLOTS] = {false};
    __int128 reach = 0;
    for (int n = 0; n < m->w.stage->n_index; n++) {
        int best = -1;
        for (int s = 0; s < m->w.stage->n_index; s++)
            if (!done[s] && s != m->w.over && m->w.extent[s] > 1 && (best < 0 || llabs(d[s]) < llabs(d[best]))) best = s;
        if (best < 0) return true;
        done[best] = true;
        if (llabs(d[best]) <= reach) return false;
        reach += (__int128)llabs(d[best]) * (m->w.extent[best] - 1);
    }
    return true;
}

static void emit_store(maker *m, int value, int ctype, hone_dtype raw) {
    if (m->status) return;
    const hone_stage *st = m->w.stage;
    const hone_tensor *t = m->w.in->tensor + st->tensor;
    const int bytes = hone_dtypes[t->dtype].bytes;
    if (log2_bytes(bytes) < 0) { fail(m, hone_fail(HONE_NOT_SUPPORTED, "%s: stores of %s", t->name, hone_dtypes[t->dtype].name)); return; }
    hone_tile_ins i = {.kind = TILE_STORE, .ctype = (uint8_t)ctype, .dtype = (uint8_t)t->dtype, .bytes = (uint8_t)bytes, .tensor = st->tensor, .a = value,
                       .b = -1, .c = -1, .dst = -1, .how = (uint8_t)st->how, .saturate = st->saturate, .width = m->regs.at[value].width,
                       .convert = !raw && hone_ctype_dtype((hone_ctype)ctype) != t->dtype};
    if (st->how != HONE_STORE_SET) { /* joined in the target's compute type */
        const int to = hone_dtypes[t->dtype].ctype;
        if (to != ctype) i.a = put_op(m, (hone_tile_ins){.kind = TILE_OP, .op = m->code->ops->cast[ctype][to], .a = value, .b = -1, .c = -1}, ctype_width(to));
        if (m->status) return;
        value = i.a, i.ctype = (uint8_t)to, i.width = m->regs.at[value].width;
    }
    int64_t d[HONE_SLOTS + 1] = {0};
    if (!address(m, NULL, d)) { fail(m, hone_fail(HONE_NOT_SUPPORTED, "strides beyond 64 bits")); return; }
    int list[HONE_MAX_RANK], ok = -1, wild = 0;
    const int n_out = outside(m, NULL, -1, !st->skip, list);
    for (int k = 0; !st->identity && k < t->rank; k++) wild += hone_know_of(&m->w, hone_know_sub(&m->w, NULL, k))->kind == KNOW_VALUE;
    const bool apart = !wild && injective(m, d);
    if (!apart) m->code->grain = m->code->elements; /* in order, so in one piece */
    if (!wild && st->how == HONE_STORE_SET && (!n_out || !st->skip)) {
        i.form = form(m, d);
        if (i.form < 0) return;
        i.a = at_level(m, value, 0);
        i.flat = form_flat(m, i.form, 0, bytes);
        put(m, i, -1);
        return;
    }
    i.kind = TILE_SCATTER;
    if (n_out && st->skip) ok = inside(m, NULL, -1, list, n_out);
    int off = put_iota(m, d, false);
    for (int k = 0; !st->identity && k < t->rank && !m->status; k++) {
        const int32_t s = hone_know_sub(&m->w, NULL, k);
        if (hone_know_of(&m->w, s)->kind != KNOW_VALUE) continue;
        off = put_op(m, (hone_tile_ins){.kind = TILE_MULADD, .a = off, .b = emit(m, s, -1), .c = -1, .k = m->place[st->tensor].stride[k] * bytes}, 3);
    }
    if (m->status) return;
    i.a = at_level(m, value, 0), i.b = at_level(m, off, 0), i.c = at_level(m, ok, 0);
    put(m, i, -1);
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------------- */
/* ALL where more loads run along the last reduced index than along the domain's, and the reduction is long enough for lanes; or where the
   domain is too small for tiles. */
static hone_tile_mode choose(const maker *m, int64_t elements, int64_t count) {
    const hone_stage *st = m->w.stage;
    if (!st->n_reduce && st->reduce == HONE_REDUCE_NONE) return TILE_MAP;
    int inner = -1, reduced = -1, n_inner = 0, n_reduced = 0;
    for (int s = 0; s < m->w.n_slot; s++)
        if (m->w.extent[s] > 1 && s != m->w.over) *(s < st->n_index ? &inner : &reduced) = s;
    if (reduced < 0 || !count) return TILE_EACH;
    for (int32_t k = 0; k < m->w.in->n_x; k++) {
        const hone_x *x = m->w.in->x + k;
        if (!m->w.x[k].live || m->w.x[k].kind != KNOW_VALUE || x->kind != HONE_X_LOAD) continue;
        int64_t d[HONE_SLOTS + 1] = {0};
        const int64_t bytes = hone_dtypes[m->w.in->tensor[x->a].dtype].bytes;
        if (!address(m, x, d)) continue;
        n_reduced += llabs(d[reduced]) == bytes;
        n_inner += inner >= 0 && llabs(d[inner]) == bytes;
    }
    const int64_t row = inner < 0 ? 1 : m->w.extent[inner];
    if (elements < 16 && count >= 4 * elements) return TILE_ALL;
    if (n_reduced > n_inner) return count >= 16 ? TILE_ALL : TILE_EACH;
    return n_reduced == n_inner && count >= 64 && row < 32 ? TILE_ALL : TILE_EACH;
}

/* What does not change with the reduced indices goes first, in the same order. */
static void part(maker *m, hone_tilecode *code) {
    hone_tile_ins *sorted = HONE_NEW_N(m->tmp, hone_tile_ins, m->ins.n + 1);
    if (!sorted) { no_memory(m); return; }
    int n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < m->ins.n; k++)
            if (m->ins.at[k].varies == (pass == 1)) sorted[n++] = m->ins.at[k];
        if (!pass) code->head = n;
    }
    if (n) memcpy(m->ins.at, sorted, sizeof *sorted * (size_t)n);
}

/* Buffers: by width, reused when their register has been read for the last time. A register that lives across the loop over reduced
   indices keeps its own. Returns bytes an element of all of them. */
static size_t allocate(maker *m, hone_tilecode *code, uint8_t **width_of, int *n_buffer) {
    int *def = HONE_NEW_N(m->tmp, int, m->regs.n + 1), *freed[4], n_free[4] = {0};
    uint8_t *width = hone_arena_alloc(m->tmp, (size_t)m->regs.n + 1);
    for (int w = 0; w < 4; w++) freed[w] = HONE_NEW_N(m->tmp, int, m->regs.n + 1);
    if (!def || !width || !freed[0] || !freed[1] || !freed[2] || !freed[3]) { no_memory(m); return 0; }
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
        const bool in_place = i->kind == TILE_OP || i->kind == TILE_MULADD; /* element by element: dst may be a dying argument */
        for (int pass = 0; pass < 2; pass++) {
            for (int a = 0; pass == !in_place && a < 3; a++) {
                bool again = false;
                for (int b = 0; b < a; b++) again = again || args[b] == args[a];
                if (args[a] < 0 || again || m->regs.at[args[a]].kept || m->regs.at[args[a]].last != k) continue;
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
    const int64_t pieces = (row + most - 1) / most, even = ((row + pieces - 1) / pieces + 15) / 16 * 16;
    return even < most ? even : most;
}

static size_t carve(size_t *at, size_t bytes) {
    const size_t here = *at;
    *at += (bytes + 63) / 64 * 64;
    return here;
}

/* Sizes of tiles, places in scratch, and the code's own copies. */
static void finish(maker *m, hone_tilecode *code) {
    uint8_t *width = NULL;
    int n_buffer = 0;
    const size_t each = allocate(m, code, &width, &n_buffer);
    if (m->status) return;
    int64_t most = 1024;
    while (most > 256 && each * (size_t)most > 32768) most /= 2;
    code->walk.piece = piece_of(&code->walk, most);
    code->out.piece = code->mode == TILE_ALL ? (code->out.n < most ? code->out.n : most) : code->walk.piece;
    if (code->mode == TILE_ALL) {
        const int64_t k = code->count > 0 ? code->count : 1;
        code->walk.piece = k >= most ? most : code->walk.n <= most ? (code->walk.n > 0 ? code->walk.n : 1) : most / k * k;
    }
    if (code->out.piece < 1) code->out.piece = 1;
    const size_t cap = (size_t)(code->walk.piece > code->out.piece ? code->walk.piece : code->out.piece);
    size_t at = 0, *buffer = HONE_NEW_N(m->arena, size_t, m->regs.n + 1), *place = HONE_NEW_N(m->tmp, size_t, n_buffer + 1);
    if (!buffer || !place) { no_memory(m); return; }
    for (int k = 0; k < n_buffer; k++) place[k] = carve(&at, cap << width[k]);
    for (int k = 0; k < m->regs.n; k++) buffer[k] = place[m->regs.at[k].buffer];
    code->spare = carve(&at, cap * 16);
    code->acc = carve(&at, code->mode == TILE_MAP ? 0 : code->mode == TILE_EACH ? cap * 8 : 8);
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
    if (!code->form || !ins || !ext) { no_memory(m); return; }
    for (int f = 0; f < m->n_fixed; f++) ext[f] = m->fixed_slot[f] < 0 ? 1 : m->w.extent[m->fixed_slot[f]];
    code->fixed_ext = ext, code->n_fixed = m->n_fixed;

    /* A flat store of what one instruction has just computed: that instruction writes to the tensor itself. */
    code->direct = -1;
    if (code->mode == TILE_MAP && code->n_ins > 1) {
        const hone_tile_ins *store = ins + code->n_ins - 1;
        int def = -1, uses = 0;
        for (int k = 0; k + 1 < code->n_ins; k++) {
            if (ins[k].dst == store->a) def = k;
            uses += ins[k].a == store->a || ins[k].b == store->a || ins[k].c == store->a;
        }
        if (store->kind == TILE_STORE && store->flat && !store->convert && def >= 0 && !uses && ins[def].kind != TILE_ACC) {
            ins[def].keep = true;
            code->direct = store->a, code->direct_store = store, code->n_ins--;
        }
    }
    code->ins = ins;

    int64_t cost = 1;
    for (int k = 0; k < code->n_ins; k++) cost += ins[k].level == 0;
    if (code->mode != TILE_MAP && code->count > 0 && __builtin_mul_overflow(cost, code->count, &cost)) cost = INT64_MAX;
    if (code->grain) return; /* the store decided it */
    const int64_t row = code->out.ext[code->out.nd - 1];
    int64_t grain = 65536 / cost, least = code->mode == TILE_EACH ? 128 : 1;
    if (grain < least) grain = least;
    if (row > 0 && grain >= row) grain = grain / row * row;
    else if (grain > code->out.piece) grain = grain / code->out.piece * code->out.piece;
    code->grain = grain;
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
    if (!hone_count_of(ext, st->n_index, &code->elements) || !hone_count_of(reduced, st->n_reduce, &code->count)) {
        fail(m, hone_fail(HONE_NOT_SUPPORTED, "a domain of more than 2^62 elements"));
        return;
    }
    code->mode = choose(m, code->elements, code->count);
    code->reduce = st->reduce;
    code->value = code->pick = code->result = -1;
    m->fixed_slot[m->n_fixed++] = m->w.over;
    for (int s = st->n_index; code->mode == TILE_EACH && s < m->w.n_slot; s++) m->fixed_slot[m->n_fixed++] = s;

    /* walks */
    keep_values(m);
    if (code->mode != TILE_ALL) keep_access(m, NULL);
    if (m->status) return;
    make_walk(m, 0, code->mode == TILE_ALL ? m->w.n_slot : st->n_index, &code->walk);
    code->out = code->walk;
    if (code->mode == TILE_ALL) {
        m->affine.n = 0;
        keep_access(m, NULL);
        for (int k = 0; !st->identity && k < hone_know_subs(&m->w, NULL); k++) keep_arg(m, hone_know_sub(&m->w, NULL, k));
        for (int32_t k = 0; !st->identity && k < m->w.in->n_x; k++) /* what the subscripts load; a few forms too many do no harm */
            if (m->w.x[k].live && m->w.x[k].kind == KNOW_AFFINE) keep_affine(m, m->w.x[k].affine);
            else if (m->w.x[k].live && m->w.x[k].kind == KNOW_VALUE && m->w.in->x[k].kind == HONE_X_LOAD) keep_access(m, m->w.in->x + k);
        make_walk(m, 0, st->n_index, &code->out);
    }
    if (m->status) return;

    /* the value */
    m->walk = &code->walk;
    const hone_dtype target = m->w.in->tensor[st->tensor].dtype;
    int ctype = m->w.in->x[st->value].type;
    const bool moves = code->mode == TILE_MAP && st->how == HONE_STORE_SET && target != hone_ctype_dtype((hone_ctype)ctype) && !st->saturate &&
                       log2_bytes(hone_dtypes[target].bytes) >= 0 && hone_know_of(&m->w, st->value)->kind != KNOW_CONST && can_move(m, st->value, target);
    int value = emit_as(m, st->value, -1, moves ? target : HONE_DTYPE_NONE);
    if (code->mode != TILE_MAP) {
        code->ctype = (hone_ctype)ctype;
        code->value = at_level(m, value, 0);
        if (arg) {
            if (hone_know_of(&m->w, st->pick)->fails) { fail(m, hone_fail(HONE_NOT_SUPPORTED, "a checked load in what argmax takes")); return; }
            ctype = m->w.in->x[st->pick].type;
            code->pick = at_level(m, emit(m, st->pick, -1), 0);
            code->pick_width = ctype_width(ctype);
        }
        if (m->status) return;
        m->regs.at[code->value].kept = true;
        if (arg) m->regs.at[code->pick].kept = true;
        if (code->mode == TILE_EACH) part(m, code);
        code->tail = m->ins.n;
        for (int32_t k = 0; k < m->w.in->n_x; k++) m->memo[k] = -1;
        m->walk = &code->out;
        value = code->result = new_reg(m, ctype_width(ctype), 0, false);
        if (m->status) return;
        m->regs.at[value].kept = true;
    }
    if (m->status) return;
    emit_store(m, value, ctype, moves ? target : HONE_DTYPE_NONE);
    if (!m->status) finish(m, code);
}

hone_status hone_tilecode_make(hone_arena *arena, const hone_instance *in, int stage, const hone_param *param, const hone_place *tensor, int acc_tensor,
                               hone_tilecode **out) {
    maker m = {.arena = arena, .place = tensor, .acc_tensor = acc_tensor, .tmp = hone_arena_create()};
    if (!m.tmp) return hone_fail(HONE_NO_MEMORY, "out of memory");
    m.code = HONE_NEW(arena, hone_tilecode);
    m.memo = HONE_NEW_N(m.tmp, int32_t, in->n_x + 1);
    m.memo_guard = HONE_NEW_N(m.tmp, int32_t, in->n_x + 1);
    if (!m.code || !m.memo || !m.memo_guard) no_memory(&m);
    if (!m.status) m.status = hone_know_stage(m.tmp, in, stage, param, &m.w);
    if (!m.status) {
        for (int32_t k = 0; k < in->n_x; k++) m.memo[k] = -1;
        m.code->ops = hone_tile_ops_best();
        m.code->instance = in;
        make(&m);
    }
    hone_vec_free(&m.ins);
    hone_vec_free(&m.forms);
    hone_vec_free(&m.regs);
    hone_vec_free(&m.affine);
    hone_arena_destroy(m.tmp);
    if (!m.status) *out = m.code;
    return m.status;
}

int64_t hone_tilecode_elements(const hone_tilecode *code) { return code->elements; }
int64_t hone_tilecode_grain(const hone_tilecode *code) { return code->grain; }
size_t hone_tilecode_scratch(const hone_tilecode *code) { return code->scratch; }
