/* SPDX-License-Identifier: Apache-2.0
   build_stage: lines into stages. Every reduction becomes a stage of its own over just the indices its body
   uses; stages nobody reads fall away; the rest is packed into the instance. */
#include <ctype.h>
#include <string.h>

#include "loops/build.h"

int hone_build_tensor(const hone_builder *b, const char *name) {
    for (int k = b->tensor.n - 1; k >= 0; k--)
        if (!strcmp(b->tensor.at[k].name, name)) return k;
    return -1;
}
int32_t hone_build_push(hone_builder *b, const int32_t *items, int n) {
    int32_t at = b->list.n;
    for (int k = 0; k < n; k++)
        if (!hone_push(&b->list, items[k])) hone_build_memory(b);
    return at;
}
static int32_t add_index(hone_builder *b, const char *name, int32_t extent_x) {
    hone_index i = {name, hone_build_param(b, hone_build_typed(b, extent_x, HONE_I64), "")};
    if (!hone_push(&b->index, i)) hone_build_memory(b);
    return b->index.n - 1;
}
static int32_t index_x(hone_builder *b, int32_t i) {
    return hone_build_x(b, (hone_x){.kind = HONE_X_INDEX, .type = HONE_I64, .a = i}, false);
}
static int32_t visible(hone_builder *b, int32_t x) { /* a pure value, seen by an executor */
    if (!b->pure.at[x] || b->x.at[x].kind == HONE_X_CONST || b->x.at[x].kind == HONE_X_PARAM) return x;
    int t = b->x.at[x].type;
    int32_t p = hone_build_x(b,
                             (hone_x){.kind = HONE_X_PARAM,
                                      .type = (uint8_t)(t == HONE_WEAK_REAL ? HONE_WEAK_REAL : HONE_I64),
                                      .a = hone_build_param(b, x, "")},
                             true);
    return t == HONE_I32 ? hone_build_typed(b, p, HONE_I32) : p;
}
static int32_t final(hone_builder *b, int32_t x, int type) { /* type -1: its own */
    x = visible(b, x);
    int own = b->x.at[x].type;
    if (own == HONE_WEAK_INT || own == HONE_WEAK_REAL) {
        if (type < 0) type = own == HONE_WEAK_INT ? HONE_I64 : b->weak_real;
        if (own == HONE_WEAK_REAL && type != HONE_F32 && type != HONE_F64)
            x = hone_build_typed(b, x, b->weak_real);
        x = hone_build_typed(b, x, type);
    }
    return x;
}

/* ---- indices ------------------------------------------------------------------------------------------- */
static int32_t upper_dim(hone_builder *b, const char *name, int member, int line) {
    char *up = hone_arena_textn(b->arena, name, strlen(name)); /* may become a parameter's name */
    if (!up) hone_build_memory(b);
    for (char *p = up; *p; p++) *p = (char)toupper((unsigned char)*p);
    const hone_attr_spec *s = hone_build_attr(b, up);
    if (s && member < 0) { /* attr group as G */
        hone_tree t = {.kind = HONE_T_NAME, .name = s->alias, .line = line};
        return hone_build_pure(b, &t, NULL, -1);
    }
    return hone_build_dim(b, up, member, line);
}
static int upper_rank(hone_builder *b, const char *name) {
    char *up = hone_arena_textn(b->heap, name, strlen(name));
    if (!up) hone_build_memory(b);
    for (char *p = up; *p; p++) *p = (char)toupper((unsigned char)*p);
    return hone_build_rank(b, up);
}
static hone_env *frame(hone_builder *b, const hone_env *up, const char *name, bool group, int n) {
    hone_env *e = HONE_NEW(b->heap, hone_env);
    int32_t *ids = HONE_NEW_N(b->heap, int32_t, n + 1);
    if (!e || !ids) hone_build_memory(b);
    *e = (hone_env){.up = up, .name = name, .group = group, .index = ids, .n = n};
    return e;
}
/* A new index (or group of them) named by tree t; `entry`: the dim of an output where it stands alone, or
   NULL. */
static const hone_env *bind_index(hone_builder *b, const hone_tree *t, const hone_env *e,
                                  const hone_tree *entry) {
    int n = 1;
    if (t->group) {
        n = -1;
        if (t->kind == HONE_T_INDEX && t->body) n = hone_build_spread(b, t->body, e);
        if (n < 0 && entry && entry->kind == HONE_T_NAME && entry->group) n = hone_build_rank(b, entry->name);
        if (n < 0) n = upper_rank(b, t->name);
        if (n < 0 && t->kind == HONE_T_INDEX && t->other) n = hone_build_spread(b, t->other, e);
        if (n < 0) hone_build_fail(b, t->line, "how many members '%s..' has is not known", t->name);
    }
    hone_env *f = frame(b, e, t->name, t->group, n);
    for (int m = 0; m < n; m++) {
        int member = t->group ? m : -1;
        int32_t extent;
        if (t->kind == HONE_T_INDEX && t->body) {
            /* with a cap, the cap; the guard is the body's */
            const hone_tree *ex = t->other ? t->other : t->body;
            int r = hone_build_spread(b, ex, e);
            extent = hone_build_pure(b, ex, t->other ? NULL : e, r >= 0 ? m : -1);
        } else if (entry) {
            extent = hone_build_pure(b, entry, NULL, member);
        } else extent = upper_dim(b, t->name, member, t->line);
        ((int32_t *)f->index)[m] = add_index(b, t->name, extent);
        if (!hone_push(&b->domain, f->index[m])) hone_build_memory(b);
    }
    return f;
}
static bool is_index_name(hone_builder *b, const hone_tree *t) { /* a name that nothing else defines */
    if (t->kind == HONE_T_INDEX) return true;
    if (t->kind != HONE_T_NAME || isupper((unsigned char)*t->name)) return false;
    return !hone_build_short(b, t->name, t->group) && !hone_build_attr(b, t->name) &&
           (t->group || hone_build_operand(b, t->name) < 0);
}
/* Indices that an expression in a target's subscript uses and nobody has bound: ScatterND's i.. */
static const hone_env *bind_inner(hone_builder *b, const hone_tree *t, const hone_env *e, int depth) {
    if (!t || depth > 30) return e;
    if (t->kind == HONE_T_NAME || t->kind == HONE_T_INDEX) {
        if (hone_build_lookup(e, t->name, t->group)) return e;
        if (is_index_name(b, t)) return bind_index(b, t, e, NULL);
        const hone_line *l = hone_build_short(b, t->name, t->group);
        return l && !isupper((unsigned char)*t->name) ? bind_inner(b, l->expr, e, depth + 1) : e;
    }
    for (int k = 0; k < t->n_arg; k++) e = bind_inner(b, t->arg[k], e, depth + 1);
    if (t->kind == HONE_T_CALL) {
        const hone_line *l = hone_build_short(b, t->name, false);
        if (l && l->n_param) { /* its parameters are bound by the call; the rest are the place's names */
            for (int k = 0; k < l->n_param; k++) {
                hone_env *f = HONE_NEW(b->heap, hone_env);
                if (!f) hone_build_memory(b);
                *f = (hone_env){.up = e, .name = l->param[k], .tree = t->arg[k], .where = e};
                e = f;
            }
            e = bind_inner(b, l->expr, e, depth + 1);
        }
    }
    e = bind_inner(b, t->body, e, depth + 1);
    return bind_inner(b, t->other, e, depth + 1);
}
static const hone_env *bind_sub(hone_builder *b, const hone_tree *t, const hone_env *e,
                                const hone_tree *entry) {
    if (t->kind == HONE_T_TUPLE) {
        for (int k = 0; k < t->n_arg; k++)
            e = bind_sub(b, t->arg[k], e,
                         entry && entry->kind == HONE_T_TUPLE && k < entry->n_arg ? entry->arg[k] : NULL);
        return e;
    }
    /* the over index */
    if ((t->kind == HONE_T_NAME || t->kind == HONE_T_INDEX) && hone_build_lookup(e, t->name, t->group))
        return e;
    if (is_index_name(b, t))
        return bind_index(b, t, e,
                          t->kind == HONE_T_INDEX && t->body     ? NULL
                          : entry && entry->kind != HONE_T_TUPLE ? entry
                                                                 : NULL);
    return bind_inner(b, t, e, 0);
}

/* ---- what an expression uses --------------------------------------------------------------------------- */
typedef struct {
    uint8_t *seen, *index, *tensor;
} uses;
static void walk(const hone_builder *b, int32_t x, uses *u) {
    if (x < 0 || u->seen[x]) return;
    u->seen[x] = 1;
    const hone_x *e = b->x.at + x;
    switch (e->kind) {
    case HONE_X_INDEX: u->index[e->a] = 1; break;
    case HONE_X_LOAD:
        u->tensor[e->a] = 1;
        for (int k = 0; k < (e->flat ? 1 : b->tensor.at[e->a].rank); k++) walk(b, b->list.at[e->b + k], u);
        walk(b, e->c, u);
        break;
    case HONE_X_FN:
    case HONE_X_SELECT:
    case HONE_X_CAST:
    case HONE_X_ROUND: walk(b, e->a, u), walk(b, e->b, u), walk(b, e->c, u); break;
    default: break;
    }
}
static uses new_uses(hone_builder *b) {
    uses u = {HONE_NEW_N(b->heap, uint8_t, b->x.n + 1), HONE_NEW_N(b->heap, uint8_t, b->index.n + 1),
              HONE_NEW_N(b->heap, uint8_t, b->tensor.n + 1)};
    if (!u.seen || !u.index || !u.tensor) hone_build_memory(b);
    return u;
}

/* ---- reductions ---------------------------------------------------------------------------------------- */
static hone_reduce reduce_kind(const char *name) {
    static const char *const names[] = {"", "sum", "prod", "max", "min", "argmax", "argmin"};
    for (int k = 1; k < 7; k++)
        if (!strcmp(name, names[k])) return (hone_reduce)k;
    return HONE_REDUCE_NONE;
}
static int32_t neutral(hone_builder *b, hone_reduce r, int type) {
    hone_scalar k = {.u64 = 0};
    int c = type == HONE_WEAK_INT ? HONE_I64 : type;
    if (r == HONE_REDUCE_PROD) return hone_build_typed(b, hone_build_int(b, 1), type);
    if (r == HONE_REDUCE_MAX || r == HONE_REDUCE_ARGMAX) {
        if (c == HONE_F32) k.f32 = -__builtin_inff();
        else if (c == HONE_F64) k.f64 = -__builtin_inf();
        else if (c == HONE_I32) k.i32 = INT32_MIN;
        else if (c == HONE_I64) k.i64 = INT64_MIN;
    } else if (r == HONE_REDUCE_MIN || r == HONE_REDUCE_ARGMIN) {
        if (c == HONE_F32) k.f32 = __builtin_inff();
        else if (c == HONE_F64) k.f64 = __builtin_inf();
        else if (c == HONE_I32) k.i32 = INT32_MAX;
        else if (c == HONE_I64) k.i64 = INT64_MAX;
        else k.u64 = UINT64_MAX;
    }
    return hone_build_x(b, (hone_x){.kind = HONE_X_CONST, .type = (uint8_t)c, .k = k}, true);
}
typedef struct {
    hone_reduce kind;
    int32_t value, pick;
    const int32_t *index;
    int n;
} reduction;
static reduction reduce_parts(hone_builder *b, const hone_tree *t, const hone_env *e, int member) {
    reduction r = {.kind = reduce_kind(t->name), .pick = -1};
    int before = b->domain.n;
    const hone_env *f = e;
    for (int k = 0; k < t->n_arg; k++) f = bind_index(b, t->arg[k], f, NULL);
    int n = b->domain.n - before;
    int32_t *ids = HONE_NEW_N(b->heap, int32_t, n + 1);
    if (!ids) hone_build_memory(b);
    for (int k = 0; k < n; k++) ids[k] = b->domain.at[before + k];
    r.index = ids, r.n = n;
    r.value = final(b, hone_build_expr(b, t->body, f, member), -1);
    for (int k = 0; k < t->n_arg; k++) { /* k : n[r] max H → the cap's loop, and nothing beyond n[r] */
        const hone_tree *ix = t->arg[k];
        if (!ix->other) continue;
        const hone_env *g = hone_build_lookup(f, ix->name, ix->group);
        for (int m = 0; m < g->n; m++) {
            int32_t limit = hone_build_expr(b, ix->body, e, ix->group ? m : member);
            int32_t in = hone_build_fn(b, HONE_FN_lt, index_x(b, g->index[m]),
                                       hone_build_typed(b, limit, HONE_I64), -1);
            r.value = hone_build_select(b, in, r.value, neutral(b, r.kind, b->x.at[r.value].type));
        }
    }
    if (t->other) r.pick = final(b, hone_build_expr(b, t->other, f, member), -1);
    b->domain.n = before;
    return r;
}
static int add_stage(hone_builder *b, hone_stage s, bool before_over) {
    int at = before_over ? b->over_stage0 : b->stage.n;
    if (!hone_push(&b->stage, s)) hone_build_memory(b);
    if (before_over) {
        memmove(b->stage.at + at + 1, b->stage.at + at, sizeof s * (size_t)(b->stage.n - 1 - at));
        b->stage.at[at] = s, b->over_stage0++;
    }
    return at;
}
int32_t hone_build_reduce(hone_builder *b, const hone_tree *t, const hone_env *e, int member) {
    if (!b->slots) hone_build_later(b);
    reduction r = reduce_parts(b, t, e, member);
    int type = b->x.at[r.pick >= 0 ? r.pick : r.value].type;
    /* the indices it needs, in the place's order */
    uses u = new_uses(b);
    walk(b, r.value, &u), walk(b, r.pick, &u);
    bool in_group = false;
    for (int k = 0; b->over >= 0 && k < b->over_tensor.n; k++) in_group |= u.tensor[b->over_tensor.at[k]];
    hone_tensor tmp = {.name = hone_arena_text(b->arena, "%s%d", t->name, b->tensor.n),
                       .role = HONE_ROLE_TEMP,
                       .operand = -1,
                       .dtype = hone_ctype_dtype((hone_ctype)type)};
    if (!tmp.name) hone_build_memory(b);
    int32_t dom[HONE_MAX_RANK + 32], sub[HONE_MAX_RANK];
    int n = 0;
    for (int k = 0; k < b->domain.n; k++) {
        int32_t i = b->domain.at[k];
        bool is_reduced = false;
        for (int q = 0; q < r.n; q++) is_reduced |= r.index[q] == i;
        if (is_reduced || !(u.index[i] || (in_group && i == b->over_index))) continue;
        if (n == HONE_MAX_RANK)
            hone_build_fail(b, t->line, "a reduction uses more than %d indices", HONE_MAX_RANK);
        tmp.dim[n] = b->index.at[i].extent;
        sub[n] = index_x(b, i), dom[n++] = i;
    }
    tmp.rank = n;
    if (!hone_push(&b->tensor, tmp)) hone_build_memory(b);
    int target = b->tensor.n - 1;
    if (r.n > 32) hone_build_fail(b, t->line, "too many indices");
    for (int k = 0; k < r.n; k++) dom[n + k] = r.index[k];
    hone_stage s = {.tensor = target,
                    .n_index = n,
                    .n_reduce = r.n,
                    .reduce = r.kind,
                    .identity = true,
                    .distinct = true,
                    .over = in_group ? b->over : -1,
                    .over_index = in_group ? b->over_index : -1,
                    .value = r.value,
                    .pick = r.pick,
                    .sub0 = -1};
    s.index0 = hone_build_push(b, dom, n + r.n);
    if (in_group && !hone_push(&b->over_tensor, target)) hone_build_memory(b);
    add_stage(b, s, b->over >= 0 && !in_group);
    int32_t place = hone_build_push(b, sub, n);
    return hone_build_x(
        b, (hone_x){.kind = HONE_X_LOAD, .type = (uint8_t)type, .a = target, .b = place, .c = -1}, false);
}

/* ---- lines --------------------------------------------------------------------------------------------- */
static const hone_entry *output_entry(const hone_operand *o, int nth) { /* the nth that takes a subscript */
    for (int k = 0; o && k < o->n_entry; k++)
        if (o->entry[k].kind != HONE_DIM_ONES && nth-- == 0) return o->entry + k;
    return NULL;
}
/* Indices of the target, bound; subscripts built; the tensor made if it is new. */
static const hone_env *open_target(hone_builder *b, const hone_line *l, const hone_env *e, int *target,
                                   int32_t *sub, int *n_sub) {
    int o = hone_build_operand(b, l->name);
    const hone_operand *op = o >= b->p->n_in ? b->p->operand + o : NULL;
    if (o >= 0 && !op) hone_build_fail(b, l->line, "'%s' is an input: nothing can be stored there", l->name);
    for (int k = 0; k < l->n_sub; k++) {
        const hone_entry *en = output_entry(op, k);
        e = bind_sub(b, l->sub[k], e, en ? en->expr : NULL);
    }
    *target = hone_build_tensor(b, l->name);
    *n_sub = hone_build_subscripts(b, l->sub, l->n_sub, e,
                                   *target < 0 ? HONE_MAX_RANK : b->tensor.at[*target].rank, l->line, sub);
    if (*target >= 0 && *n_sub != b->tensor.at[*target].rank)
        hone_build_fail(b, l->line, "'%s' has %d dims, not %d", l->name, b->tensor.at[*target].rank, *n_sub);
    return e;
}
static int new_temp(hone_builder *b, const hone_line *l, const int32_t *sub, int n_sub, int type) {
    hone_tensor t = {.name = l->name,
                     .role = HONE_ROLE_TEMP,
                     .operand = -1,
                     .dtype = hone_ctype_dtype((hone_ctype)type),
                     .rank = n_sub};
    for (int k = 0; k < n_sub; k++) {
        if (b->x.at[sub[k]].kind != HONE_X_INDEX)
            hone_build_fail(b, l->line, "the subscripts of '%s', which this line makes, must be indices",
                            l->name);
        t.dim[k] = b->index.at[b->x.at[sub[k]].a].extent;
    }
    if (!hone_push(&b->tensor, t)) hone_build_memory(b);
    return b->tensor.n - 1;
}
/* Strings are handles, so only what was loaded as one may be stored as one; 0 is the empty string. */
static bool moves_strings(const hone_builder *b, int32_t x) {
    const hone_x *e = b->x.at + x;
    if (e->kind == HONE_X_CONST) return e->type == HONE_U64 && e->k.u64 == 0;
    if (e->kind == HONE_X_SELECT) return moves_strings(b, e->b) && moves_strings(b, e->c);
    return e->kind == HONE_X_LOAD && b->tensor.at[e->a].dtype == HONE_DTYPE_STRING &&
           (e->c < 0 || moves_strings(b, e->c));
}
static void stage(hone_builder *b, const hone_line *l, const hone_env *e) {
    static const char *const hows[] = {"=", "add=", "mul=", "max=", "min="};
    int32_t sub[HONE_MAX_RANK];
    int n_sub, target;
    b->domain.n = 0;
    if (b->over >= 0 && !hone_push(&b->domain, b->over_index)) hone_build_memory(b);
    e = open_target(b, l, e, &target, sub, &n_sub);
    /* the domain in the order of the subscripts where they are plain indices; else as met */
    int32_t dom[64];
    int n = 0;
    for (int k = 0; k < n_sub; k++)
        if (b->x.at[sub[k]].kind == HONE_X_INDEX) {
            bool twice = false;
            for (int q = 0; q < n; q++) twice |= dom[q] == b->x.at[sub[k]].a;
            if (!twice) dom[n++] = b->x.at[sub[k]].a;
        }
    bool identity = n == n_sub;
    for (int k = 0; k < b->domain.n; k++) {
        bool in = false;
        for (int q = 0; q < n; q++) in |= dom[q] == b->domain.at[k];
        if (in) continue;
        if (n >= 30) hone_build_fail(b, l->line, "too many indices");
        if (b->domain.at[k] == b->over_index && b->over >= 0) {
            memmove(dom + 1, dom, sizeof *dom * (size_t)n), dom[0] = b->over_index, n++;
            continue;
        }
        dom[n++] = b->domain.at[k];
        identity = false;
    }
    if (b->over >= 0 && n > n_sub) identity = false;
    b->domain.n = 0;
    for (int k = 0; k < n; k++)
        if (!hone_push(&b->domain, dom[k])) hone_build_memory(b);
    hone_stage s = {.n_index = n,
                    .identity = identity,
                    .distinct = identity,
                    .saturate = l->saturate,
                    .skip = l->skip,
                    .over = b->over,
                    .over_index = b->over >= 0 ? b->over_index : -1,
                    .pick = -1,
                    .sub0 = -1};
    while (strcmp(hows[s.how], l->how)) s.how = (hone_store)(s.how + 1);
    int want = target >= 0 ? (int)hone_dtypes[b->tensor.at[target].dtype].ctype : -1;
    /* the whole value is one reduction: no temporary */
    if (l->expr->kind == HONE_T_REDUCE && s.how == HONE_STORE_SET && identity) {
        reduction r = reduce_parts(b, l->expr, e, -1);
        s.reduce = r.kind, s.value = final(b, r.value, want),
        s.pick = r.pick < 0 ? -1 : final(b, r.pick, want), s.n_reduce = r.n;
        if (n + r.n > 62) hone_build_fail(b, l->line, "too many indices");
        memcpy(dom + n, r.index, sizeof *dom * (size_t)r.n);
    } else s.value = final(b, hone_build_expr(b, l->expr, e, -1), want);
    int type = b->x.at[s.pick >= 0 ? s.pick : s.value].type;
    if (target < 0) target = new_temp(b, l, sub, n_sub, type);
    else if (b->tensor.at[target].role == HONE_ROLE_TEMP &&
             type != (int)hone_dtypes[b->tensor.at[target].dtype].ctype && s.pick < 0)
        s.value = hone_build_typed(b, s.value, (int)hone_dtypes[b->tensor.at[target].dtype].ctype);
    if (b->tensor.at[target].dtype == HONE_DTYPE_STRING && (s.reduce || s.how || !moves_strings(b, s.value)))
        hone_build_fail(b, 0, "%s cannot make the strings of '%s' out of numbers", b->p->name, l->name);
    s.tensor = target;
    s.index0 = hone_build_push(b, dom, n + s.n_reduce);
    s.sub0 = hone_build_push(b, sub, n_sub);
    add_stage(b, s, false);
}
static void over(hone_builder *b, const hone_line *l, int number) {
    hone_tree ix = {.kind = HONE_T_INDEX, .name = l->name, .body = l->expr, .line = l->line};
    b->domain.n = 0;
    const hone_env *e = bind_index(b, &ix, NULL, NULL);
    b->over = number, b->over_index = e->index[0], b->over_stage0 = b->stage.n, b->over_tensor.n = 0;
    /* every target of the block exists before any line is built, because they read each other at t - 1 */
    b->block.n = 0;
    for (const hone_line *k = l->block; k; k = k->next) {
        const hone_line *inner = k;
        if (k->kind == HONE_LINE_WHEN) {
            double v = 0;
            hone_build_const(b, hone_build_expr(b, k->expr, NULL, -1), &v);
            inner = v != 0 ? k->block : k->other;
        }
        for (const hone_line *q = inner; q; q = k->kind == HONE_LINE_WHEN ? q->next : NULL)
            if (q->kind == HONE_LINE_STAGE && !hone_push(&b->block, q)) hone_build_memory(b);
    }
    for (int k = 0; k < b->block.n; k++) {
        int32_t sub[HONE_MAX_RANK];
        int n_sub, target;
        b->domain.n = 0;
        open_target(b, b->block.at[k], e, &target, sub, &n_sub);
        if (target < 0) target = new_temp(b, b->block.at[k], sub, n_sub, b->weak_real);
        if (!hone_push(&b->over_tensor, target)) hone_build_memory(b);
    }
    for (int k = 0; k < b->block.n; k++) stage(b, b->block.at[k], e);
    b->over = -1, b->over_index = -1;
}
static void build_stages(hone_builder *b) {
    int n_over = 0;
    b->over = -1, b->over_index = -1;
    for (int k = 0; k < b->lines.n; k++) {
        const hone_line *l = b->lines.at[k];
        if (l->kind == HONE_LINE_STAGE) stage(b, l, NULL);
        if (l->kind == HONE_LINE_OVER) over(b, l, n_over++);
        if (l->kind == HONE_LINE_NEED) {
            hone_need n = {hone_build_pure(b, l->expr, NULL, -1), l->text};
            if (!hone_push(&b->need, n)) hone_build_memory(b);
        }
    }
}

/* ---- packing ------------------------------------------------------------------------------------------- */
typedef struct {
    hone_builder *b;
    int32_t *to;
    const int32_t *tensor;
} packer;
static int32_t pack(packer *p, int32_t x) {
    if (x < 0) return -1;
    if (p->to[x]) return p->to[x] - 1;
    hone_x e = p->b->x.at[x];
    if (e.kind == HONE_X_LOAD) {
        int n = e.flat ? 1 : p->b->tensor.at[e.a].rank;
        int32_t sub[HONE_MAX_RANK];
        for (int k = 0; k < n; k++) sub[k] = pack(p, p->b->list.at[e.b + k]);
        e.c = pack(p, e.c), e.b = p->b->kept_list.n, e.a = p->tensor[e.a];
        for (int k = 0; k < n; k++)
            if (!hone_push(&p->b->kept_list, sub[k])) hone_build_memory(p->b);
    } else if (e.kind == HONE_X_FN || e.kind == HONE_X_SELECT || e.kind == HONE_X_CAST ||
               e.kind == HONE_X_ROUND) {
        e.a = pack(p, e.a), e.b = pack(p, e.b), e.c = pack(p, e.c);
    } else if (e.kind > HONE_X_ROUND)
        hone_build_fail(p->b, 0, "a parameter's expression of %s was not settled", p->b->p->name);
    if (!hone_push(&p->b->kept_x, e)) hone_build_memory(p->b);
    p->to[x] = p->b->kept_x.n;
    return p->b->kept_x.n - 1;
}
#define KEEP(v) (hone_arena_copy(b->arena, (v).at, sizeof *(v).at * (size_t)(v).n))
static const hone_instance *pack_all(hone_builder *b) {
    /* stages that lead to a wanted output */
    uint8_t *need = HONE_NEW_N(b->heap, uint8_t, b->tensor.n + 1),
            *live = HONE_NEW_N(b->heap, uint8_t, b->stage.n + 1);
    int32_t *tensor_to = HONE_NEW_N(b->heap, int32_t, b->tensor.n + 1);
    if (!need || !live || !tensor_to) hone_build_memory(b);
    for (int k = 0; k < b->tensor.n; k++) need[k] = b->tensor.at[k].role == HONE_ROLE_OUT;
    for (bool more = true; more;) {
        more = false;
        for (int k = b->stage.n - 1; k >= 0; k--) {
            const hone_stage *s = b->stage.at + k;
            if (live[k] || !need[s->tensor]) continue;
            uses u = new_uses(b);
            walk(b, s->value, &u), walk(b, s->pick, &u);
            for (int q = 0; s->sub0 >= 0 && q < b->tensor.at[s->tensor].rank; q++)
                walk(b, b->list.at[s->sub0 + q], &u);
            for (int t = 0; t < b->tensor.n; t++) need[t] |= u.tensor[t];
            live[k] = 1, more = true;
        }
    }
    hone_instance *out = HONE_NEW(b->arena, hone_instance);
    hone_solver *s = HONE_NEW(b->arena, hone_solver);
    int32_t *to = HONE_NEW_N(b->heap, int32_t, b->x.n + 1);
    if (!out || !s || !to) hone_build_memory(b);
    int n = 0; /* operands keep their tensors, temporaries nobody needs go */
    for (int k = 0; k < b->tensor.n; k++) {
        if (!need[k] && b->tensor.at[k].role == HONE_ROLE_TEMP) {
            tensor_to[k] = -1;
            continue;
        }
        tensor_to[k] = n++;
    }
    packer p = {.b = b, .to = to, .tensor = tensor_to};
    for (int k = 0; k < b->stage.n; k++) {
        if (!live[k]) continue;
        hone_stage st = b->stage.at[k];
        int dims = b->tensor.at[st.tensor].rank;
        st.value = pack(&p, st.value), st.pick = pack(&p, st.pick);
        int32_t sub[HONE_MAX_RANK] = {0};
        if (st.sub0 >= 0)
            for (int q = 0; q < dims; q++) sub[q] = pack(&p, b->list.at[st.sub0 + q]);
        int32_t ix = b->kept_list.n;
        for (int q = 0; q < st.n_index + st.n_reduce; q++)
            if (!hone_push(&b->kept_list, b->list.at[st.index0 + q])) hone_build_memory(b);
        st.index0 = ix;
        if (st.sub0 >= 0) {
            st.sub0 = b->kept_list.n;
            for (int q = 0; q < dims; q++)
                if (!hone_push(&b->kept_list, sub[q])) hone_build_memory(b);
            /* a permutation of all the domain's indices, each once: no two values meet */
            int met = 0;
            for (int q = 0; q < dims; q++) met += b->kept_x.at[sub[q]].kind == HONE_X_INDEX;
            uint8_t *once = HONE_NEW_N(b->heap, uint8_t, b->index.n + 1);
            if (!once) hone_build_memory(b);
            int distinct = 0;
            for (int q = 0; q < dims; q++)
                if (b->kept_x.at[sub[q]].kind == HONE_X_INDEX && !once[b->kept_x.at[sub[q]].a])
                    once[b->kept_x.at[sub[q]].a] = 1, distinct++;
            st.distinct = met == dims && distinct == st.n_index - (st.over >= 0 && !once[st.over_index]);
        }
        st.tensor = tensor_to[st.tensor];
        if (!hone_push(&b->kept_stage, st)) hone_build_memory(b);
    }
    hone_tensor *tensors = HONE_NEW_N(b->arena, hone_tensor, n + 1);
    bool *is_real = HONE_NEW_N(b->arena, bool, b->param.n + 1);
    if (!tensors || !is_real) hone_build_memory(b);
    for (int k = 0; k < b->tensor.n; k++)
        if (tensor_to[k] >= 0) tensors[tensor_to[k]] = b->tensor.at[k];
    for (int k = 0; k < b->p->n_in + b->p->n_out; k++)
        if (b->operand_tensor[k] >= 0) b->operand_tensor[k] = tensor_to[b->operand_tensor[k]];
    for (int k = 0; k < b->param.n; k++)
        is_real[k] =
            b->x.at[b->param.at[k]].type == HONE_WEAK_REAL || b->x.at[b->param.at[k]].type == HONE_F64;
    *s = (hone_solver){.x = KEEP(b->x),
                       .list = KEEP(b->list),
                       .param = KEEP(b->param),
                       .vector = KEEP(b->vector),
                       .slots = b->slots,
                       .check = KEEP(b->check),
                       .need = KEEP(b->need),
                       .n_x = b->x.n,
                       .n_vector = b->vector.n,
                       .n_check = b->check.n,
                       .n_need = b->need.n,
                       .operand_tensor = b->operand_tensor};
    hone_stage *stages = KEEP(b->kept_stage);
    *out = (hone_instance){.program = b->p,
                           .tensor = tensors,
                           .index = KEEP(b->index),
                           .stage = stages,
                           .x = KEEP(b->kept_x),
                           .list = KEEP(b->kept_list),
                           .n_tensor = n,
                           .n_index = b->index.n,
                           .n_stage = b->kept_stage.n,
                           .n_x = b->kept_x.n,
                           .n_list = b->kept_list.n,
                           .n_param = b->param.n,
                           .param_real = is_real,
                           .param_name = (const char *const *)KEEP(b->param_name),
                           .solver = s};
    if (!s->x || !s->list || !s->param || !s->vector || !s->check || !s->need) hone_build_memory(b);
    if (!out->index || !out->stage || !out->x || !out->list || !out->param_name) hone_build_memory(b);
    hone_stages_know(out, stages);
    return out;
}
static void finish(hone_builder *b) {
    hone_vec_free(&b->ranks);
    hone_vec_free(&b->dims);
    hone_vec_free(&b->lines);
    hone_vec_free(&b->x);
    hone_vec_free(&b->pure);
    hone_vec_free(&b->list);
    hone_vec_free(&b->table);
    hone_vec_free(&b->param);
    hone_vec_free(&b->param_name);
    hone_vec_free(&b->tensor);
    hone_vec_free(&b->index);
    hone_vec_free(&b->stage);
    hone_vec_free(&b->vector);
    hone_vec_free(&b->check);
    hone_vec_free(&b->need);
    hone_vec_free(&b->domain);
    hone_vec_free(&b->over_tensor);
    hone_vec_free(&b->block);
    hone_vec_free(&b->kept_x);
    hone_vec_free(&b->kept_list);
    hone_vec_free(&b->kept_stage);
    hone_arena_destroy(b->heap);
    hone_free(b);
}
static hone_status begin(hone_arena *a, const hone_call *c, hone_builder **out) {
    hone_builder *b = hone_alloc(sizeof *b);
    if (!b || !(b->heap = hone_arena_create())) {
        hone_free(b);
        return hone_fail(HONE_NO_MEMORY, "no memory to make an instance of %s", c->program->name);
    }
    b->arena = a, b->call = c, b->p = c->program, b->over = -1, b->over_index = -1;
    *out = b;
    return HONE_OK;
}
/* Work that may give up in the middle. Its own frame, so that no local of a caller is lost to the jump. */
static hone_status guarded(hone_builder *b, void (*work)(hone_builder *)) {
    if (setjmp(b->fail)) return b->not_yet ? HONE_OK : b->status;
    work(b);
    return HONE_OK;
}
static void find_ranks(hone_builder *b) {
    hone_build_types(b);
    hone_build_ranks(b);
}
static void make_all(hone_builder *b) {
    find_ranks(b);
    /* what the search for ranks left behind */
    b->x.n = b->pure.n = b->param.n = b->param_name.n = b->dims.n = b->list.n = b->table.n = 0;
    hone_build_slots(b);
    build_stages(b);
    b->made = pack_all(b);
}
hone_status hone_instance_make(hone_arena *a, const hone_call *c, const hone_instance **out) {
    hone_builder *b = NULL;
    HONE_TRY(begin(a, c, &b));
    hone_status s = guarded(b, make_all);
    if (!s) *out = b->not_yet ? NULL : b->made;
    finish(b);
    return s;
}
hone_status hone_instance_key(hone_arena *a, const hone_call *c, const char **out) {
    hone_builder *b = NULL;
    HONE_TRY(begin(a, c, &b));
    hone_status s = guarded(b, find_ranks);
    if (s || b->not_yet) {
        finish(b);
        if (!s) *out = NULL;
        return s;
    }
    hone_text t = {0};
    hone_text_put(&t, "%s.%s/%d", b->p->domain, b->p->name, b->p->since);
    for (int k = 0; k < b->p->n_in + b->p->n_out; k++) {
        const hone_arg *g = c->arg + k;
        hone_text_put(&t, " %c%d", g->present ? '+' : '-', k < b->p->n_in && g->present ? (int)g->dtype : 0);
        /* broadcasting drops leading subscripts */
        if (g->present && k < b->p->n_in) hone_text_put(&t, ":%d", g->rank);
        if (g->present && k < b->p->n_in && b->p->operand[k].contents)
            hone_text_put(&t, "#%lld", (long long)g->n_content);
    }
    for (int k = 1; k < b->ranks.n; k++) /* by name: in which order they were found is no matter */
        for (int q = k; q > 0 && strcmp(b->ranks.at[q].name, b->ranks.at[q - 1].name) < 0; q--) {
            hone_group_rank swap = b->ranks.at[q];
            b->ranks.at[q] = b->ranks.at[q - 1], b->ranks.at[q - 1] = swap;
        }
    for (int k = 0; k < b->ranks.n; k++) hone_text_put(&t, " %s%d", b->ranks.at[k].name, b->ranks.at[k].rank);
    for (int k = 0; k < c->n_attr; k++) {
        const hone_attr *at = c->attr + k;
        hone_text_put(&t, " %s=", at->name);
        for (int q = 0; q < at->n && at->i; q++) hone_text_put(&t, "%lld,", (long long)at->i[q]);
        for (int q = 0; q < at->n && at->f; q++) hone_text_put(&t, "%a,", at->f[q]);
        for (int q = 0; q < at->n && at->s; q++) hone_text_put(&t, "%s,", at->s[q].text);
    }
    *out = t.failed ? NULL : hone_arena_text(a, "%s", t.text);
    bool bad = t.failed || !*out;
    hone_text_free(&t);
    finish(b);
    return bad ? hone_fail(HONE_NO_MEMORY, "no memory for an instance's key") : HONE_OK;
}
