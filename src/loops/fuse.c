/* SPDX-License-Identifier: Apache-2.0
   fuse: see fuse.h. The element-wise parts are rewritten in the indices of the first part's last stage: their
   own index k becomes the expression that gives position k of the result (a plain index, or g*M + m where the
   first part sees a dim as several). */
#include "loops/fuse.h"

#include <string.h>

#include "loops/build.h"

/* of the only output; NULL: none, or several */
static const hone_slots *out_slots(const hone_instance *in, int *tensor) {
    int found = -1;
    for (int t = 0; t < in->n_tensor; t++)
        if (in->tensor[t].role == HONE_ROLE_OUT) {
            if (found >= 0) return NULL;
            found = t;
        }
    if (found < 0 || !in->solver) return NULL;
    *tensor = found;
    const hone_slots *s = in->solver->slots + in->tensor[found].operand;
    for (int k = 0; k < s->n; k++)
        if (s->slot[k].at >= 0 || s->slot[k].axis != k || s->slot[k].free_dim) return NULL;
    return s;
}
/* A saturating store that can be said as a clamp and a cast, so that what follows may read it from a
   register. */
static bool clamps(const hone_instance *in, const hone_stage *s) {
    const hone_dtype_row *d = hone_dtypes + in->tensor[s->tensor].dtype;
    return (d->kind == HONE_KIND_INT || d->kind == HONE_KIND_UINT) && d->bytes <= 2 && d->ctype == HONE_I32 &&
           in->x[s->value].type == HONE_F32 && !s->reduce;
}
bool hone_fuse_looks_up(const hone_instance *in) {
    if (in->n_stage != 1 || in->stage[0].reduce ||
        hone_dtypes[in->tensor[in->stage[0].tensor].dtype].bytes != 1)
        return false;
    const hone_x *e = in->x + in->stage[0].value;
    if (e->kind != HONE_X_LOAD || in->tensor[e->a].rank != 1 || e->flat) return false;
    const hone_x *at = in->x + in->list[e->b];
    while (at->kind == HONE_X_CAST) at = in->x + at->a;
    return at->kind == HONE_X_FN && at->fn == HONE_FN_band;
}
bool hone_fuse_can_begin(const hone_instance *in) {
    int t;
    if (!out_slots(in, &t) || !in->n_stage || hone_fuse_looks_up(in)) return false;
    const hone_stage *s = in->stage + in->n_stage - 1;
    for (int k = 0; k < in->n_stage - 1; k++)
        if (in->stage[k].tensor == t) return false;
    for (int x = 0; x < in->n_x; x++)
        if (in->x[x].kind == HONE_X_LOAD && in->x[x].a == t) return false;
    return s->tensor == t && s->identity && !s->how && s->over < 0 && (!s->saturate || clamps(in, s)) &&
           s->pick < 0 && in->tensor[t].dtype != HONE_DTYPE_STRING;
}
static bool maps(const hone_instance *in, int *out) { /* one stage, element by element, dims as they are */
    const hone_slots *s = out_slots(in, out);
    if (!s || in->n_stage != 1 || in->stage[0].reduce || !in->stage[0].identity || in->stage[0].how ||
        in->stage[0].over >= 0 || in->stage[0].tensor != *out || in->tensor[*out].dtype == HONE_DTYPE_STRING)
        return false;
    for (int k = 0; k < s->n; k++)
        if (s->slot[k].ones || s->slot[k].n_part != 1) return false;
    return in->tensor[*out].rank == s->n;
}
bool hone_fuse_can_follow(const hone_instance *in, int operand) {
    int out;
    if (!maps(in, &out)) return false;
    const hone_stage *s = in->stage;
    bool read = false;
    for (int x = 0; x < in->n_x; x++) {
        const hone_x *e = in->x + x;
        if (e->kind != HONE_X_LOAD || in->tensor[e->a].role != HONE_ROLE_IN ||
            in->tensor[e->a].operand != operand)
            continue;
        if (e->flat || e->c >= 0 || in->tensor[e->a].rank != s->n_index) return false;
        for (int k = 0; k < s->n_index; k++) {
            const hone_x *sub = in->x + in->list[e->b + k];
            if (sub->kind != HONE_X_INDEX || sub->a != in->list[s->index0 + k]) return false;
        }
        read = true;
    }
    return read;
}
/* A sum, not one of products of bytes, that is rounded: what makes it of bytes ends there. */
static bool averages(const hone_instance *in) {
    bool sums = false;
    for (int k = 0; k + 1 < in->n_stage; k++)
        sums |= in->stage[k].reduce == HONE_REDUCE_SUM && in->x[in->stage[k].value].type != HONE_I32;
    return sums && in->stage[in->n_stage - 1].saturate;
}
bool hone_fuse_must_end(const hone_instance *in) {
    if (averages(in)) return true;
    return (in->n_stage && in->stage[in->n_stage - 1].saturate && !clamps(in, in->stage + in->n_stage - 1)) ||
           hone_fuse_looks_up(in);
}
bool hone_fuse_sums_bytes(const hone_instance *in) {
    if (in->n_stage != 2 || in->stage[0].reduce != HONE_REDUCE_SUM ||
        in->x[in->stage[0].value].type != HONE_I32)
        return false;
    return in->stage[1].follows && hone_dtypes[in->tensor[in->stage[1].tensor].dtype].bytes == 1;
}

typedef struct {
    hone_arena *arena;
    const hone_fuse_part *part;
    int n;
    hone_vec(hone_x) x;
    hone_vec(int32_t) list;
    hone_vec(hone_tensor) tensor;
    hone_vec(hone_fused_from) from;
    hone_vec(hone_index) index;
    hone_vec(hone_stage) stage;
    int *param0, *index0;
    int32_t *value;    /* of each part: its result over the first part's domain */
    int32_t *position; /* expression of each actual dim of the result */
    int rank;
    bool failed;
} fuser;

static int32_t push_x(fuser *f, hone_x x) {
    if (!hone_push(&f->x, x)) f->failed = true;
    return f->x.n - 1;
}
/* Copies expression x of part p. `map`: memo, 0 not yet; index k of an element-wise part becomes position
   k. */
static int32_t copy(fuser *f, int p, int32_t x, int32_t *map, const int *tensor) {
    if (x < 0 || f->failed) return -1;
    if (map[x]) return map[x] - 1;
    const hone_instance *in = f->part[p].instance;
    hone_x e = in->x[x];
    int32_t made = -1;
    switch (e.kind) {
    case HONE_X_PARAM: e.a += f->param0[p]; break;
    case HONE_X_INDEX:
        if (p > 0) {
            const hone_stage *s = in->stage;
            for (int k = 0; k < s->n_index; k++)
                if (in->list[s->index0 + k] == e.a) made = f->position[k];
            if (made < 0) f->failed = true;
            map[x] = made + 1;
            return made;
        }
        break; /* the first part keeps its own indices */
    case HONE_X_LOAD: {
        int operand = in->tensor[e.a].role == HONE_ROLE_IN ? in->tensor[e.a].operand : -1,
            source = operand >= 0 && f->part[p].source ? f->part[p].source[operand] : -1;
        if (source >= 0) {
            made = f->value[source];
            map[x] = made + 1;
            return made;
        }
        int n = e.flat ? 1 : in->tensor[e.a].rank;
        int32_t sub[HONE_MAX_RANK];
        for (int k = 0; k < n; k++) sub[k] = copy(f, p, in->list[e.b + k], map, tensor);
        e.c = copy(f, p, e.c, map, tensor), e.a = tensor[e.a], e.b = f->list.n;
        for (int k = 0; k < n; k++)
            if (!hone_push(&f->list, sub[k])) f->failed = true;
        break;
    }
    case HONE_X_CONST: break;
    default:
        e.a = copy(f, p, e.a, map, tensor), e.b = copy(f, p, e.b, map, tensor),
        e.c = copy(f, p, e.c, map, tensor);
    }
    if (f->failed) return -1;
    made = push_x(f, e);
    map[x] = made + 1;
    return made;
}
static int add_tensor(fuser *f, int p, int t, hone_role role) {
    hone_tensor w = f->part[p].instance->tensor[t];
    w.role = role;
    if (role == HONE_ROLE_TEMP) w.operand = -1;
    for (int k = 0; k < w.rank; k++) w.dim[k] += f->param0[p];
    if (!hone_push(&f->tensor, w) || !hone_push(&f->from, ((hone_fused_from){p, t}))) f->failed = true;
    return f->tensor.n - 1;
}
/* A value as it would come back from storage of `dtype`. */
static int32_t rounded(fuser *f, int32_t x, hone_dtype dtype, bool saturate) {
    hone_ctype to = hone_dtypes[dtype].ctype, have = (hone_ctype)f->x.at[x].type;
    if (saturate) {
        hone_scalar lo = {.u64 = 0}, hi = {.u64 = 0};
        lo.f32 = (float)hone_dtypes[dtype].lowest, hi.f32 = (float)hone_dtypes[dtype].highest;
        x = push_x(f, (hone_x){.kind = HONE_X_FN,
                               .type = HONE_F32,
                               .fn = HONE_FN_max,
                               .a = x,
                               .b = push_x(f, (hone_x){.kind = HONE_X_CONST, .type = HONE_F32, .k = lo}),
                               .c = -1});
        x = push_x(f, (hone_x){.kind = HONE_X_FN,
                               .type = HONE_F32,
                               .fn = HONE_FN_min,
                               .a = x,
                               .b = push_x(f, (hone_x){.kind = HONE_X_CONST, .type = HONE_F32, .k = hi}),
                               .c = -1});
        return push_x(f, (hone_x){.kind = HONE_X_CAST, .type = (uint8_t)to, .a = x, .b = -1, .c = -1});
    }
    /* 0.25 is true; a cast to an integer would say 0 */
    if (hone_dtypes[dtype].kind == HONE_KIND_BOOL && have != to)
        return push_x(f, (hone_x){.kind = HONE_X_FN,
                                  .type = HONE_I32,
                                  .fn = HONE_FN_ne,
                                  .a = x,
                                  .b = push_x(f, (hone_x){.kind = HONE_X_CONST, .type = (uint8_t)have}),
                                  .c = -1});
    if (have != to)
        x = push_x(f, (hone_x){.kind = HONE_X_CAST, .type = (uint8_t)to, .a = x, .b = -1, .c = -1});
    if (hone_dtypes[dtype].bytes == hone_ctype_bytes[to]) return x;
    return push_x(
        f,
        (hone_x){.kind = HONE_X_ROUND, .type = (uint8_t)to, .fn = (uint16_t)dtype, .a = x, .b = -1, .c = -1});
}
static void first_part(fuser *f, hone_arena *scratch) {
    const hone_instance *in = f->part[0].instance;
    int out = -1;
    const hone_slots *slots = out_slots(in, &out);
    int *tensor = HONE_NEW_N(scratch, int, in->n_tensor + 1);
    int32_t *map = HONE_NEW_N(scratch, int32_t, in->n_x + 1);
    if (!tensor || !map || !slots) {
        f->failed = true;
        return;
    }
    const hone_stage *last = in->stage + in->n_stage - 1;
    for (int t = 0; t < in->n_tensor; t++) {
        hone_role role = in->tensor[t].role;
        if (t == out && !last->reduce) {
            tensor[t] = -1;
            continue;
        }
        tensor[t] = add_tensor(f, 0, t, t == out ? HONE_ROLE_TEMP : role);
        if (t == out) f->tensor.at[tensor[t]].dtype = hone_ctype_dtype((hone_ctype)in->x[last->value].type);
    }
    for (int k = 0; k < in->n_index; k++)
        if (!hone_push(&f->index, in->index[k])) f->failed = true;
    int32_t value = -1;
    for (int k = 0; k < in->n_stage && !f->failed; k++) {
        hone_stage s = in->stage[k];
        int32_t v = copy(f, 0, s.value, map, tensor), pick = copy(f, 0, s.pick, map, tensor);
        if (k == in->n_stage - 1 && !s.reduce) {
            value = v;
            break;
        }
        int32_t sub[HONE_MAX_RANK];
        for (int q = 0; s.sub0 >= 0 && q < in->tensor[s.tensor].rank; q++)
            sub[q] = copy(f, 0, in->list[s.sub0 + q], map, tensor);
        hone_stage c = s;
        c.value = v, c.pick = pick, c.tensor = tensor[s.tensor], c.index0 = f->list.n;
        for (int q = 0; q < s.n_index + s.n_reduce; q++)
            if (!hone_push(&f->list, in->list[s.index0 + q])) f->failed = true;
        c.sub0 = s.sub0 >= 0 ? f->list.n : -1;
        for (int q = 0; s.sub0 >= 0 && q < in->tensor[s.tensor].rank; q++)
            if (!hone_push(&f->list, sub[q])) f->failed = true;
        if (!hone_push(&f->stage, c)) f->failed = true;
    }
    if (f->failed) return;
    /* the plain indices of the last stage's domain, as expressions */
    int32_t ix[HONE_MAX_RANK];
    for (int k = 0; k < last->n_index && k < HONE_MAX_RANK; k++)
        ix[k] = push_x(f, (hone_x){.kind = HONE_X_INDEX, .type = HONE_I64, .a = in->list[last->index0 + k]});
    if (last->reduce) { /* its sums are read back at their own place */
        hone_x load = {
            .kind = HONE_X_LOAD, .type = in->x[last->value].type, .a = tensor[out], .b = f->list.n, .c = -1};
        for (int k = 0; k < last->n_index; k++)
            if (!hone_push(&f->list, ix[k])) f->failed = true;
        value = push_x(f, load);
    }
    if (value < 0 || !f->x.at) f->failed = true; /* rounding reads it */
    if (f->failed) return;
    f->value[0] = rounded(f, value, in->tensor[out].dtype, last->saturate);
    f->rank = slots->n;
    for (int k = 0; k < slots->n; k++) {
        const hone_slot *s = slots->slot + k;
        int32_t at = -1;
        for (int q = 0; q < s->n_part; q++) {
            int32_t i = ix[s->part0 + q];
            if (at < 0) {
                at = i;
                continue;
            }
            hone_x extent = {.kind = HONE_X_PARAM, .type = HONE_I64, .a = in->tensor[out].dim[s->part0 + q]};
            at = push_x(f, (hone_x){.kind = HONE_X_FN,
                                    .type = HONE_I64,
                                    .fn = HONE_FN_mul,
                                    .a = at,
                                    .b = push_x(f, extent),
                                    .c = -1});
            at = push_x(
                f,
                (hone_x){.kind = HONE_X_FN, .type = HONE_I64, .fn = HONE_FN_add, .a = at, .b = i, .c = -1});
        }
        if (at < 0) at = push_x(f, (hone_x){.kind = HONE_X_CONST, .type = HONE_I64});
        f->position[k] = at;
    }
}
#define KEEP(v) (hone_arena_copy(a, (v).at, sizeof *(v).at * (size_t)(v).n))
hone_status hone_fuse(hone_arena *a, const hone_fuse_part *part, int n, hone_fused **out) {
    fuser f = {.arena = a, .part = part, .n = n};
    hone_arena *scratch = hone_arena_create();
    *out = NULL;
    if (!scratch) return hone_fail(HONE_NO_MEMORY, "no memory to fuse");
    f.param0 = HONE_NEW_N(a, int, n + 1);
    f.value = HONE_NEW_N(scratch, int32_t, n + 1);
    f.position = HONE_NEW_N(scratch, int32_t, HONE_MAX_RANK + 1);
    int params = 0;
    for (int p = 0; f.param0 && p < n; p++) f.param0[p] = params, params += part[p].instance->n_param;
    if (!f.param0 || !f.value || !f.position) f.failed = true;
    if (!f.failed) first_part(&f, scratch);
    int target = -1;
    for (int p = 1; p < n && !f.failed; p++) {
        const hone_instance *in = part[p].instance;
        int o;
        int *tensor = HONE_NEW_N(scratch, int, in->n_tensor + 1);
        int32_t *map = HONE_NEW_N(scratch, int32_t, in->n_x + 1);
        if (!maps(in, &o) || in->tensor[o].rank != f.rank || !tensor || !map) {
            f.failed = true;
            break;
        }
        for (int t = 0; t < in->n_tensor; t++) {
            tensor[t] = -1;
            if (in->tensor[t].role == HONE_ROLE_IN &&
                (!part[p].source || part[p].source[in->tensor[t].operand] < 0))
                tensor[t] = add_tensor(&f, p, t, HONE_ROLE_IN);
        }
        if (p == n - 1) target = add_tensor(&f, p, o, HONE_ROLE_OUT);
        int32_t v = copy(&f, p, in->stage[0].value, map, tensor);
        if (f.failed) break;
        f.value[p] = p == n - 1 ? v : rounded(&f, v, in->tensor[o].dtype, in->stage[0].saturate);
    }
    if (!f.failed) { /* the one store */
        const hone_instance *head = part[0].instance, *tail = part[n - 1].instance;
        const hone_stage *dom = head->stage + head->n_stage - 1;
        hone_stage s = {.tensor = target,
                        .n_index = dom->n_index,
                        .identity = true,
                        .distinct = true,
                        .saturate = tail->stage[0].saturate,
                        .over = -1,
                        .over_index = -1,
                        .value = f.value[n - 1],
                        .pick = -1};
        s.index0 = f.list.n;
        for (int k = 0; k < dom->n_index; k++)
            if (!hone_push(&f.list, head->list[dom->index0 + k])) f.failed = true;
        s.sub0 = f.list.n;
        for (int k = 0; k < f.rank; k++) {
            const hone_x *e = f.x.at + f.position[k];
            s.identity &=
                f.rank == dom->n_index && e->kind == HONE_X_INDEX && e->a == head->list[dom->index0 + k];
            if (!hone_push(&f.list, f.position[k])) f.failed = true;
        }
        if (!hone_push(&f.stage, s)) f.failed = true;
    }
    if (!f.failed && f.tensor.n <= 56) {
        hone_fused *r = HONE_NEW(a, hone_fused);
        hone_instance *in = HONE_NEW(a, hone_instance);
        const hone_instance **parts = HONE_NEW_N(a, const hone_instance *, n + 1);
        bool *is_real = HONE_NEW_N(a, bool, params + 1);
        const char **names = HONE_NEW_N(a, const char *, params + 1);
        if (r && in && parts && is_real && names) {
            for (int p = 0; p < n; p++) {
                parts[p] = part[p].instance;
                for (int k = 0; k < parts[p]->n_param; k++)
                    is_real[f.param0[p] + k] = parts[p]->param_real[k],
                                          names[f.param0[p] + k] = parts[p]->param_name[k];
            }
            hone_stage *stages = KEEP(f.stage);
            *in = (hone_instance){.program = part[n - 1].instance->program,
                                  .tensor = KEEP(f.tensor),
                                  .index = KEEP(f.index),
                                  .stage = stages,
                                  .x = KEEP(f.x),
                                  .list = KEEP(f.list),
                                  .n_tensor = f.tensor.n,
                                  .n_index = f.index.n,
                                  .n_stage = f.stage.n,
                                  .n_x = f.x.n,
                                  .n_list = f.list.n,
                                  .n_param = params,
                                  .param_real = is_real,
                                  .param_name = names};
            *r = (hone_fused){
                .instance = in, .part = parts, .n_part = n, .param0 = f.param0, .from = KEEP(f.from)};
            if (in->tensor && in->index && in->stage && in->x && in->list && r->from)
                hone_stages_know(in, stages), *out = r;
        }
    }
    hone_vec_free(&f.x);
    hone_vec_free(&f.list);
    hone_vec_free(&f.tensor);
    hone_vec_free(&f.from);
    hone_vec_free(&f.index);
    hone_vec_free(&f.stage);
    hone_arena_destroy(scratch);
    return HONE_OK;
}
