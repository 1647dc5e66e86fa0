/* SPDX-License-Identifier: Apache-2.0
   tile_emit: expressions and stores of a stage as instructions of tile code.

   Selects evaluate both arms, so a load in an arm must not fail where the arm is not taken: emit() carries a
   *guard*, a register that is nonzero where the value is wanted (-1: everywhere). */
#include "loops/tile_maker.h"

#include <stdlib.h>
#include <string.h>

enum { ROW = 1, ANY = 2 }; /* levels: 0 an element, ROW one value a row, ANY a constant */
typedef hone_tile_maker maker;
typedef hone_tile_reg reg;

int hone_tile_fail(maker *m, hone_status s) {
    if (!m->status) m->status = s;
    return -1;
}
int hone_tile_no_memory(maker *m) { return hone_tile_fail(m, hone_fail(HONE_NO_MEMORY, "out of memory")); }
static int min(int a, int b) { return a < b ? a : b; }

/* ---- addresses and forms ------------------------------------------------------------------------------- */
bool hone_tile_address(const maker *m, const hone_x *load, int64_t *d) {
    const int tensor = load ? load->a : m->w.stage->tensor,
              bytes = hone_dtypes[m->w.in->tensor[tensor].dtype].bytes;
    const bool own = !load && m->w.stage->identity;
    for (int k = 0; k < hone_know_subs(&m->w, load); k++) {
        int64_t stride = load && load->flat ? 1 : m->place[tensor].stride[k];
        if (__builtin_mul_overflow(stride, (int64_t)bytes, &stride)) return false;
        if (own) {
            if (m->w.extent[k] > 1 && __builtin_add_overflow(d[k], stride, &d[k])) return false;
            continue;
        }
        const hone_know *s = hone_know_of(&m->w, hone_know_sub(&m->w, load, k));
        if (s->kind != HONE_KNOW_VALUE && !hone_know_add(&m->w, d, s, stride)) return false;
    }
    /* and no element's offset overflows, wherever the indices are */
    __int128 reach = d[m->w.n_slot] < 0 ? -(__int128)d[m->w.n_slot] : d[m->w.n_slot];
    for (int k = 0; k < m->w.n_slot; k++) reach += (d[k] < 0 ? -(__int128)d[k] : d[k]) * m->w.extent[k];
    return reach < INT64_MAX / 2;
}

static int form(maker *m, const int64_t *affine) {
    const hone_walk *walk = m->walk;
    int64_t *coef = HONE_NEW_N(m->arena, int64_t, walk->nd + m->n_fixed);
    if (!coef) return hone_tile_no_memory(m);
    for (int d = 0; d < walk->nd; d++) coef[d] = walk->slot[d] < 0 ? 0 : affine[walk->slot[d]];
    for (int f = 0; f < m->n_fixed; f++)
        coef[walk->nd + f] = m->fixed_slot[f] < 0 ? 0 : affine[m->fixed_slot[f]];
    if (!hone_push_in(m->tmp, &m->forms,
                      ((hone_form){.c = affine[m->w.n_slot], .coef = coef, .fixed = coef + walk->nd})))
        return hone_tile_no_memory(m);
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

/* ---- registers and instructions ------------------------------------------------------------------------ */
int hone_tile_new_reg(maker *m, int width, int level, bool varies) {
    if (!hone_push_in(m->tmp, &m->regs,
                      ((reg){.width = (uint8_t)width, .level = (uint8_t)level, .varies = varies})))
        return hone_tile_no_memory(m);
    if (m->regs.n > m->room_expanded) {
        const int room = 2 * m->regs.n + 32;
        int32_t *e = HONE_NEW_N(m->tmp, int32_t, room);
        if (!e) return hone_tile_no_memory(m);
        for (int k = 0; k < room; k++) e[k] = k < m->room_expanded ? m->expanded[k] : -1;
        m->expanded = e, m->room_expanded = room;
    }
    return m->regs.n - 1;
}
static int constant(maker *m, int width, hone_scalar k) {
    for (int c = 0; c < m->n_constant; c++)
        if (m->constant[c].width == width && m->constant[c].k.u64 == k.u64) return m->constant[c].reg;
    const int r = hone_tile_new_reg(m, width, ANY, false);
    if (r < 0) return r;
    if (m->n_constant % 16 == 0) {
        void *more = hone_arena_alloc(m->arena, sizeof *m->constant * (size_t)(m->n_constant + 16));
        if (!more) return hone_tile_no_memory(m);
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
        if ((i.dst = hone_tile_new_reg(m, width, i.level, i.varies)) < 0) return -1;
        i.width = (uint8_t)width;
    }
    if (!hone_push_in(m->tmp, &m->ins, i)) return hone_tile_no_memory(m);
    return i.dst;
}
int hone_tile_at_level(maker *m, int r, int level) {
    if (r < 0 || m->regs.at[r].level == level || m->regs.at[r].level == ANY) return r;
    if (m->expanded[r] >= 0) return m->expanded[r];
    const int e = put(m, (hone_tile_ins){.kind = HONE_TILE_EXPAND, .level = 0, .a = r, .b = -1, .c = -1},
                      m->regs.at[r].width);
    if (e >= 0) m->expanded[r] = e;
    return e;
}
/* An element-wise instruction at the finest level of its arguments. */
static int put_op(maker *m, hone_tile_ins i, int width) {
    if (m->status) return -1;
    int level = min(level_of(m, i.a), min(level_of(m, i.b), level_of(m, i.c)));
    if (level == ANY) level = ROW;
    i.level = (uint8_t)level;
    i.a = hone_tile_at_level(m, i.a, level), i.b = hone_tile_at_level(m, i.b, level),
    i.c = hone_tile_at_level(m, i.c, level);
    return put(m, i, width);
}
static int put_fn(maker *m, hone_fn fn, int ctype, int width, int a, int b, int c) {
    hone_tile_op *op = m->code->ops->fn[fn][ctype];
    if (!op)
        return hone_tile_fail(m, hone_fail(HONE_BUG, "function %s has no %s version", hone_fns[fn].name,
                                           hone_ctype_names[ctype]));
    return put_op(m, (hone_tile_ins){.kind = HONE_TILE_OP, .op = op, .a = a, .b = b, .c = c}, width);
}
/* `rows`: without what changes along a row. */
static int put_iota(maker *m, const int64_t *affine, bool rows) {
    const int f = form(m, affine);
    if (f < 0) return -1;
    if (rows) m->forms.at[f].coef[m->walk->nd - 1] = 0;
    return put(m,
               (hone_tile_ins){.kind = HONE_TILE_IOTA,
                               .level = (uint8_t)form_level(m, f),
                               .form = f,
                               .varies = form_varies(m, f),
                               .a = -1,
                               .b = -1,
                               .c = -1},
               3);
}

/* ---- expressions --------------------------------------------------------------------------------------- */
static int emit(maker *m, int32_t at, int guard);

/* guard and (nonzero, or zero where `not`) */
static int narrow(maker *m, int guard, int cond, bool not ) {
    const int c = not ? put_fn(m, HONE_FN_not, HONE_I32, 2, cond, -1, -1) : cond;
    return guard < 0 ? c : put_fn(m, HONE_FN_and, HONE_I32, 2, guard, c, -1);
}
static void check(maker *m, int sub, int guard, int64_t dim, int tensor, int k) {
    put_op(m,
           (hone_tile_ins){.kind = HONE_TILE_CHECK,
                           .a = sub,
                           .b = guard,
                           .c = -1,
                           .k = dim,
                           .tensor = tensor,
                           .dim = (int16_t)k},
           -1);
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
        ok = put_op(m, (hone_tile_ins){.kind = HONE_TILE_INSIDE, .a = ok, .b = s, .c = -1, .k = dim}, 2);
    }
    return ok;
}

/* Constants and loads of storage type `raw` move as they lie, without being widened (raw NONE: they are
   widened). */
bool hone_tile_can_move(const maker *m, int32_t at, hone_dtype raw) {
    const hone_know *k = hone_know_of(&m->w, at);
    const hone_x *x = m->w.in->x + k->is;
    if (k->kind == HONE_KNOW_CONST) return true;
    if (k->kind != HONE_KNOW_VALUE) return false;
    if (x->kind == HONE_X_SELECT) return hone_tile_can_move(m, x->b, raw) && hone_tile_can_move(m, x->c, raw);
    return x->kind == HONE_X_LOAD && m->w.in->tensor[x->a].dtype == raw &&
           (x->c < 0 || hone_tile_can_move(m, x->c, raw));
}
static int emit_as(maker *m, int32_t at, int guard, hone_dtype raw);

static int put_const(maker *m, const hone_know *k, int type, hone_dtype raw, hone_scalar *out) {
    hone_scalar v = scalar_bits(type, k->k);
    int width = hone_tile_width_of(type);
    if (raw) {
        uint64_t cell[2] = {0, 0};
        hone_dtype_store(raw, cell, (hone_ctype)type, k->k, false);
        v.u64 = cell[0];
        width = hone_tile_width(hone_dtypes[raw].bytes);
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
    bool own = m->code->mode == HONE_TILE_MAP && (t->dtype == HONE_DTYPE_F32 || t->dtype == HONE_DTYPE_I32) &&
               !x->flat;
    for (int k = t->rank - 1; own && k >= 0; k--) {
        const hone_know *s = hone_know_of(&m->w, hone_know_sub(&m->w, x, k));
        own = s->kind != HONE_KNOW_VALUE && hone_know_add(&m->w, d, s, stride) &&
              !__builtin_mul_overflow(stride, m->w.param[t->dim[k]].i, &stride);
    }
    stride = 1;
    for (int s = m->w.n_slot - 1; own && s >= 0; s--) {
        if (s == m->w.over) continue;
        own = m->w.extent[s] <= 1 || d[s] == stride;
        stride *= m->w.extent[s];
    }
    if (!own || d[m->w.n_slot])
        return hone_tile_fail(
            m,
            hone_fail(HONE_NOT_SUPPORTED, "%s: an epilogue reads it at other indices than its own", t->name));
    return put(m, (hone_tile_ins){.kind = HONE_TILE_ACC, .level = 0, .a = -1, .b = -1, .c = -1}, 2);
}

static int emit_load(maker *m, const hone_x *x, int guard, hone_dtype raw) {
    const hone_tensor *t = m->w.in->tensor + x->a;
    const int bytes = hone_dtypes[t->dtype].bytes, ctype = hone_dtypes[t->dtype].ctype;
    const int width = raw ? hone_tile_width(bytes) : hone_tile_width_of(ctype);
    if (hone_tile_width(bytes) < 0 || (!raw && ctype != x->type))
        return hone_tile_fail(
            m, hone_fail(HONE_NOT_SUPPORTED, "%s: loads of %s", t->name, hone_dtypes[t->dtype].name));
    if (x->a == m->acc_tensor) return emit_acc(m, x);

    /* what may be outside, and what is there then */
    int list[HONE_MAX_RANK], ok = -1, other = -1;
    const int n_out = outside(m, x, guard, x->c < 0, list);
    const bool masked = n_out && (x->c >= 0 || guard >= 0); /* else the checks have settled it */
    hone_scalar otherwise = {.u64 = 0};
    if (masked && x->c >= 0) {
        const hone_know *e = hone_know_of(&m->w, x->c);
        if (e->kind == HONE_KNOW_CONST) put_const(m, e, x->type, raw, &otherwise);
        else if (!e->fails) other = emit_as(m, x->c, guard, raw);
        else {
            ok = inside(m, x, guard, list, n_out);
            other = emit_as(m, x->c, narrow(m, guard, ok, true), raw);
        }
    }
    if (m->status) return -1;

    /* the affine part, and the rest */
    int64_t d[HONE_SLOTS + 1] = {0};
    if (!hone_tile_address(m, x, d))
        return hone_tile_fail(m, hone_fail(HONE_NOT_SUPPORTED, "strides beyond 64 bits"));
    int wild[HONE_MAX_RANK], n_wild = 0, level = ROW;
    for (int k = 0; k < hone_know_subs(&m->w, x); k++) {
        const int32_t s = hone_know_sub(&m->w, x, k);
        if (hone_know_of(&m->w, s)->kind != HONE_KNOW_VALUE) continue;
        wild[n_wild] = emit(m, s, guard);
        if (m->status) return -1;
        level = min(level, level_of(m, wild[n_wild++]));
    }
    hone_tile_ins i = {.kind = HONE_TILE_LOAD,
                       .ctype = (uint8_t)ctype,
                       .dtype = (uint8_t)t->dtype,
                       .bytes = (uint8_t)bytes,
                       .tensor = x->a,
                       .a = -1,
                       .b = -1,
                       .c = other,
                       .other = otherwise,
                       .convert = !raw && hone_ctype_dtype((hone_ctype)ctype) != t->dtype};
    if (!n_wild) {
        i.form = form(m, d);
        if (i.form < 0) return -1;
        level = form_level(m, i.form);
        i.varies = form_varies(m, i.form);
        if (masked) {
            hone_tile_bound *bound = HONE_NEW_N(m->arena, hone_tile_bound, n_out);
            if (!bound) return hone_tile_no_memory(m);
            for (int k = 0; k < n_out; k++) {
                const hone_know *s = hone_know_of(&m->w, hone_know_sub(&m->w, x, list[k]));
                int64_t a[HONE_SLOTS + 1] = {0};
                if (!hone_know_add(&m->w, a, s, 1) || (bound[k].form = form(m, a)) < 0)
                    return hone_tile_no_memory(m);
                bound[k].dim = hone_know_dim(&m->w, x, x->a, list[k]);
                level = min(level, form_level(m, bound[k].form));
                i.varies = i.varies || form_varies(m, bound[k].form);
            }
            i.bound = bound, i.n_bound = n_out;
            if (other >= 0) level = min(level, level_of(m, other));
        }
        i.level = (uint8_t)level;
        i.c = hone_tile_at_level(m, other, level);
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
        if (hone_know_of(&m->w, hone_know_sub(&m->w, x, k))->kind != HONE_KNOW_VALUE) continue;
        const int64_t stride = (x->flat ? 1 : m->place[x->a].stride[k]) * bytes;
        off = put_op(
            m, (hone_tile_ins){.kind = HONE_TILE_MULADD, .a = off, .b = wild[n++], .c = -1, .k = stride}, 3);
    }
    if (m->status) return -1;
    i.b = ok;
    if (rows) {
        i.kind = HONE_TILE_ROWS, i.level = 0, i.a = off, i.k = along;
        i.c = hone_tile_at_level(m, other, 0);
        return put(m, i, width);
    }
    i.kind = HONE_TILE_GATHER, i.level = (uint8_t)level;
    i.a = hone_tile_at_level(m, off, level), i.b = hone_tile_at_level(m, ok, level);
    if (other < 0 && masked && otherwise.u64) other = constant(m, width, otherwise);
    i.c = hone_tile_at_level(m, other, level);
    return put(m, i, width);
}

static int emit_value(maker *m, const hone_x *x, int guard, hone_dtype raw) {
    const int width = hone_tile_width_of(x->type);
    switch (x->kind) {
    case HONE_X_LOAD: return emit_load(m, x, guard, raw);
    case HONE_X_FN: {
        const int type = m->w.in->x[x->a].type, arity = hone_fns[x->fn].arity;
        const int a = emit(m, x->a, guard), b = arity > 1 ? emit(m, x->b, guard) : -1,
                  c = arity > 2 ? emit(m, x->c, guard) : -1;
        if (m->status) return -1;
        const hone_know *e = x->fn == HONE_FN_pow ? hone_know_of(&m->w, x->b) : NULL;
        /* as fn.h has it, without asking each time */
        if (e && e->kind == HONE_KNOW_CONST && (type == HONE_F32 || type == HONE_F64)) {
            const double p = hone_scalar_f64((hone_ctype)type, e->k);
            const int square = p == 2 || p == 3 ? put_fn(m, HONE_FN_mul, type, width, a, a, -1) : -1;
            if (square >= 0) return p == 2 ? square : put_fn(m, HONE_FN_mul, type, width, square, a, -1);
        }
        return put_fn(m, (hone_fn)x->fn, type, width, a, b, c);
    }
    case HONE_X_SELECT: {
        const int c = emit(m, x->a, guard);
        if (m->status) return -1;
        const int a =
            emit_as(m, x->b, hone_know_of(&m->w, x->b)->fails ? narrow(m, guard, c, false) : guard, raw);
        const int b =
            emit_as(m, x->c, hone_know_of(&m->w, x->c)->fails ? narrow(m, guard, c, true) : guard, raw);
        const int w = raw ? hone_tile_width(hone_dtypes[raw].bytes) : width;
        if (m->status || w < 0) return hone_tile_fail(m, HONE_NOT_SUPPORTED);
        return put_op(
            m, (hone_tile_ins){.kind = HONE_TILE_OP, .op = m->code->ops->select[w], .a = c, .b = a, .c = b},
            w);
    }
    case HONE_X_CAST: {
        const int a = emit(m, x->a, guard);
        return put_op(m,
                      (hone_tile_ins){.kind = HONE_TILE_OP,
                                      .op = m->code->ops->cast[m->w.in->x[x->a].type][x->type],
                                      .a = a,
                                      .b = -1,
                                      .c = -1},
                      width);
    }
    case HONE_X_ROUND: {
        const int a = emit(m, x->a, guard);
        if (hone_dtypes[x->fn].bytes > 8)
            return hone_tile_fail(m,
                                  hone_fail(HONE_NOT_SUPPORTED, "rounding to %s", hone_dtypes[x->fn].name));
        return put_op(
            m,
            (hone_tile_ins){
                .kind = HONE_TILE_ROUND, .ctype = x->type, .dtype = (uint8_t)x->fn, .a = a, .b = -1, .c = -1},
            width);
    }
    default: return hone_tile_fail(m, hone_fail(HONE_BUG, "unknown kind of expression %d", x->kind));
    }
}

static int emit_as(maker *m, int32_t at, int guard, hone_dtype raw) {
    if (m->status) return -1;
    const hone_know *k = hone_know_of(&m->w, at);
    const hone_x *x = m->w.in->x + k->is;
    if (k->kind == HONE_KNOW_CONST) return put_const(m, k, x->type, raw, NULL);
    if (!k->fails) guard = -1;
    const int under = guard * 2 + (raw != HONE_DTYPE_NONE);
    if (m->memo[k->is] >= 0 && m->memo_guard[k->is] == under) return m->memo[k->is];
    const int r = k->kind == HONE_KNOW_AFFINE ? put_iota(m, k->affine, false) : emit_value(m, x, guard, raw);
    if (m->status) return -1;
    m->memo[k->is] = r, m->memo_guard[k->is] = under;
    return r;
}
static int emit(maker *m, int32_t at, int guard) { return emit_as(m, at, guard, HONE_DTYPE_NONE); }

int hone_tile_emit(maker *m, int32_t x, hone_dtype raw) { return emit_as(m, x, -1, raw); }

/* ---- the store ----------------------------------------------------------------------------------------- */
/* No two elements of the domain store to one place. */
static bool injective(const maker *m, const int64_t *d) {
    int64_t extent[HONE_SLOTS];
    for (int s = 0; s < m->w.stage->n_index; s++) extent[s] = s == m->w.over ? 1 : m->w.extent[s];
    return hone_is_injective(d, extent, m->w.stage->n_index);
}

void hone_tile_emit_store(maker *m, int value, int ctype, hone_dtype raw) {
    if (m->status) return;
    const hone_stage *st = m->w.stage;
    const hone_tensor *t = m->w.in->tensor + st->tensor;
    const int bytes = hone_dtypes[t->dtype].bytes;
    if (hone_tile_width(bytes) < 0) {
        hone_tile_fail(
            m, hone_fail(HONE_NOT_SUPPORTED, "%s: stores of %s", t->name, hone_dtypes[t->dtype].name));
        return;
    }
    hone_tile_ins i = {.kind = HONE_TILE_STORE,
                       .ctype = (uint8_t)ctype,
                       .dtype = (uint8_t)t->dtype,
                       .bytes = (uint8_t)bytes,
                       .tensor = st->tensor,
                       .a = value,
                       .b = -1,
                       .c = -1,
                       .dst = -1,
                       .how = (uint8_t)st->how,
                       .saturate = st->saturate,
                       .width = m->regs.at[value].width,
                       .convert = !raw && hone_ctype_dtype((hone_ctype)ctype) != t->dtype};
    if (st->how != HONE_STORE_SET) { /* joined in the target's compute type */
        const int to = hone_dtypes[t->dtype].ctype;
        if (to != ctype)
            i.a = put_op(
                m,
                (hone_tile_ins){
                    .kind = HONE_TILE_OP, .op = m->code->ops->cast[ctype][to], .a = value, .b = -1, .c = -1},
                hone_tile_width_of(to));
        if (m->status) return;
        value = i.a, i.ctype = (uint8_t)to, i.width = m->regs.at[value].width;
        i.convert = hone_ctype_dtype((hone_ctype)to) != t->dtype;
    }
    int64_t d[HONE_SLOTS + 1] = {0};
    if (!hone_tile_address(m, NULL, d)) {
        hone_tile_fail(m, hone_fail(HONE_NOT_SUPPORTED, "strides beyond 64 bits"));
        return;
    }
    int list[HONE_MAX_RANK], ok = -1, wild = 0;
    const int n_out = outside(m, NULL, -1, !st->skip, list);
    for (int k = 0; !st->identity && k < t->rank; k++)
        wild += hone_know_of(&m->w, hone_know_sub(&m->w, NULL, k))->kind == HONE_KNOW_VALUE;
    const bool apart = !wild && injective(m, d);
    m->code->whole = !apart; /* in order, so in one piece */
    if (!wild && st->how == HONE_STORE_SET && (!n_out || !st->skip)) {
        i.form = form(m, d);
        if (i.form < 0) return;
        i.a = hone_tile_at_level(m, value, 0);
        i.flat = form_flat(m, i.form, 0, bytes);
        put(m, i, -1);
        return;
    }
    i.kind = HONE_TILE_SCATTER;
    if (n_out && st->skip) ok = inside(m, NULL, -1, list, n_out);
    int off = put_iota(m, d, false);
    for (int k = 0; !st->identity && k < t->rank && !m->status; k++) {
        const int32_t s = hone_know_sub(&m->w, NULL, k);
        if (hone_know_of(&m->w, s)->kind != HONE_KNOW_VALUE) continue;
        off = put_op(m,
                     (hone_tile_ins){.kind = HONE_TILE_MULADD,
                                     .a = off,
                                     .b = emit(m, s, -1),
                                     .c = -1,
                                     .k = m->place[st->tensor].stride[k] * bytes},
                     3);
    }
    if (m->status) return;
    i.a = hone_tile_at_level(m, value, 0), i.b = hone_tile_at_level(m, off, 0),
    i.c = hone_tile_at_level(m, ok, 0);
    put(m, i, -1);
}
