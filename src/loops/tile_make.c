/* SPDX-License-Identifier: Apache-2.0
   tile_make: turns one stage, all its numbers known, into tile code. What the expressions are worth was found out by tile_know.c; here dims
   are collapsed, instructions emitted and registers given buffers.

   Selects evaluate both arms, so a load in an arm must not fail where the arm is not taken: emit() carries a *guard*, a register that is
   nonzero where the value is wanted (-1: everywhere). */
#include "loops/tile_know.h"

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
    int32_t *memo, *memo_guard, *expanded; /* register of each expression, the guard it was made under; expanded form of each register */
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
    if (width >= 0) {
        const int32_t args[3] = {i.a, i.b, i.c};
        for (int k = 0; k < 3; k++) i.varies = i.varies || (args[k] >= 0 && m->regs.at[args[k]].varies);
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
static int put_iota(maker *m, const int64_t *affine) {
    const int f = form(m, affine);
    if (f < 0) return -1;
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

/* The subscripts of an access that may be outside: checked where it is an error, gathered into *ok (or -1) where it is not. Returns how many. */
static int outside(maker *m, const hone_x *load, int guard, bool error, int *list, int *ok) {
    const int tensor = load ? load->a : m->w.stage->tensor;
    int n = 0;
    *ok = -1;
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
    const int n_out = outside(m, x, guard, x->c < 0, list, &ok);
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
        list[HONE_MAX_RANK - n_wild] = list[HONE_MAX_RANK - n_wild]; /* strides are looked up again below */
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
    int64_t whole[HONE_SLOTS + 1];
    memcpy(whole, d, sizeof whole);
    if (rows) { /* the last dim's own part is added along the row */
        for (int s = last, joined = 1; s >= 0 && joined; s--) {
            bool mine = true;
            for (int k = 0; k + 1 < m->walk->nd; k++) mine = mine && m->walk->slot[k] != s;
            joined = mine;
            if (mine && s != m->w.over) d[s] = 0;
            for (int f = 0; mine && f < m->n_fixed; f++)
                if (m->fixed_slot[f] == s) d[s] = whole[s];
        }
    }
    int off = put_iota(m, d);
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
    if (m->memo[k->is] >= 0 && m->memo_guard[k->is] == guard) return m->memo[k->is];
    const int r = k->kind == KNOW_AFFINE ? put_iota(m, k->affine) : emit_value(m, x, guard, raw);
    if (m->status) return -1;
    m->memo[k->is] = r, m->memo_guard[k->is] = guard;
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
    int64_t d[HONE_SLOTS + 1] = {0};
    if (!address(m, NULL, d)) { fail(m, hone_fail(HONE_NOT_SUPPORTED, "strides beyond 64 bits")); return; }
    int list[HONE_MAX_RANK], ok, wild = 0;
    const int n_out = outside(m, NULL, -1, !st->skip, list, &ok);
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
    int off = put_iota(m, d);
    for (int k = 0; !st->identity && k < t->rank && !m->status; k++) {
        const int32_t s = hone_know_sub(&m->w, NULL, k);
        if (hone_know_of(&m->w, s)->kind != KNOW_VALUE) continue;
        off = put_op(m, (hone_tile_ins){.kind = TILE_MULADD, .a = off, .b = emit(m, s, -1), .c = -1, .k = m->place[st->tensor].stride[k] * bytes}, 3);
    }
    if (m->status) return;
    i.a = at_level(m, value, 0), i.b = at_level(m, off, 0), i.c = at_level(m, ok, 0);
    put(m, i, -1);
}
