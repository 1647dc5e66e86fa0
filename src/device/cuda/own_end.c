/* SPDX-License-Identifier: Apache-2.0
   own_end: the stage that follows a product, as an expression of the sum that its kernel computes before it
   stores: what it reads beside the sum must be a number, a number a column, or a residual that lies as the
   result does. Of bytes the arithmetic is that of the definition, to the last bit: sums begin with their bias
   in integers, what is the same for a whole column (a product of scales, mostly) is computed ahead, and what
   follows is said in instructions that cost less and round alike (src/kernels/cuda/quick.cu). */
#include <math.h>
#include <string.h>

#include "device/cuda/own_product.h"
#include "loops/print_target.h"

typedef struct {
    const hone_device_call *c;
    hone_own_product *p;
    hone_printer *to;
    int acc;
    int32_t scale;       /* the expression that is computed ahead, a number a column; -1: none */
    int more[3], n_more; /* constants of f32, other numbers of each column */
    int64_t more_at[3];
    bool bare; /* the sum is read without its bias */
    bool tame; /* no number or scale is so large or small that a quotient's steps could leave f32's range */
    bool fits;
} ending;
static const char *constant_of(const ending *e, int tensor) { /* NULL: it is none */
    const hone_ref r = e->c->ref[tensor];
    return e->c->constant && e->c->constant[tensor] && hone_base_is_constant(r.base)
               ? (const char *)hone_packs_constant(e->c->packs, r.base) + r.offset
               : NULL;
}
/* b[n] + sum, in integers: the sum begins with b */
static bool begins(ending *e, int32_t x) {
    const hone_instance *in = e->c->instance;
    const hone_x *n = in->x + x;
    if (n->kind != HONE_X_FN || n->fn != HONE_FN_add || n->type != HONE_I32) return false;
    const bool first = in->x[n->a].kind == HONE_X_LOAD && in->x[n->a].a == e->acc;
    const int32_t other = first ? n->b : n->a, sum = first ? n->a : n->b;
    const hone_x *b = in->x + other, *s = in->x + sum;
    int64_t at = 0;
    if (s->kind != HONE_X_LOAD || s->a != e->acc || b->kind != HONE_X_LOAD ||
        in->tensor[b->a].dtype != HONE_DTYPE_I32 || !constant_of(e, b->a) ||
        hone_match_end(&e->c->sized, &e->p->m, other, &at) != HONE_END_COLUMN ||
        (e->p->whole >= 0 && (e->p->whole != b->a || e->p->whole_at != at)))
        return false;
    e->p->whole = b->a, e->p->whole_at = at;
    e->to->said[x] = "hone_add_i32(whole, v)";
    return true;
}
/* Does it read constants of f32 alone, numbers and numbers a column? `columns`: one of those at least. */
static bool is_scale(const ending *e, int32_t x, bool *columns) {
    const hone_x *n = e->c->instance->x + x;
    int64_t at = 0;
    if (n->type != HONE_F32) return false;
    if (n->kind == HONE_X_CONST) return true;
    if (n->kind == HONE_X_FN) {
        const int32_t arg[3] = {n->a, n->b, n->c};
        for (int k = 0; k < hone_fns[n->fn].arity; k++)
            if (!is_scale(e, arg[k], columns)) return false;
        return true;
    }
    if (n->kind != HONE_X_LOAD || n->a == e->acc || e->c->instance->tensor[n->a].dtype != HONE_DTYPE_F32 ||
        !constant_of(e, n->a))
        return false;
    const hone_end_kind kind = hone_match_end(&e->c->sized, &e->p->m, x, &at);
    *columns |= kind == HONE_END_COLUMN;
    return kind == HONE_END_COLUMN || kind == HONE_END_NUMBER;
}
static void see(ending *e, float v) { e->fits &= isfinite(v) != 0, e->tame &= fabsf(v) <= 0x1p20f; }
static void see_column(ending *e, int tensor, int64_t at) {
    if (!e->p->m.integers) return;
    const char *v = constant_of(e, tensor);
    e->tame &= v != NULL;
    for (int64_t k = 0; v && k < hone_own_columns_of(&e->p->m); k++) {
        float one;
        memcpy(&one, v + (at + k) * 4, 4);
        see(e, one);
    }
}
static bool number_at(const ending *e, int32_t x, float *out) { /* one of f32, the same for all */
    const hone_x *n = e->c->instance->x + x;
    int64_t at = 0;
    if (n->kind != HONE_X_LOAD || e->c->instance->tensor[n->a].dtype != HONE_DTYPE_F32 ||
        !constant_of(e, n->a) || hone_match_end(&e->c->sized, &e->p->m, x, &at) != HONE_END_NUMBER)
        return n->kind == HONE_X_CONST && n->type == HONE_F32 ? *out = n->k.f32, true : false;
    memcpy(out, constant_of(e, n->a) + at * 4, 4);
    return true;
}
static hone_scalar scale_at(const ending *e, int32_t x, int64_t column) {
    const hone_x *n = e->c->instance->x + x;
    hone_scalar a[3] = {{0}}, out = {0};
    int64_t at = 0;
    if (n->kind == HONE_X_CONST) return n->k;
    if (n->kind == HONE_X_LOAD) {
        const bool each = hone_match_end(&e->c->sized, &e->p->m, x, &at) == HONE_END_COLUMN;
        memcpy(&out.f32, constant_of(e, n->a) + (at + (each ? column : 0)) * 4, 4);
        return out;
    }
    const int32_t arg[3] = {n->a, n->b, n->c};
    for (int k = 0; k < hone_fns[n->fn].arity; k++) a[k] = scale_at(e, arg[k], column);
    return hone_fn_eval((hone_fn)n->fn, HONE_F32, a);
}
static bool computed_ahead(ending *e, int32_t x) {
    bool columns = false;
    if (e->c->instance->x[x].kind != HONE_X_FN || !is_scale(e, x, &columns) || !columns ||
        (e->scale >= 0 && e->scale != x) || e->p->bias >= 0)
        return false;
    e->scale = x, e->to->said[x] = "bias";
    for (int64_t k = 0; k < hone_own_columns_of(&e->p->m); k++) see(e, scale_at(e, x, k).f32);
    return true;
}
/* Kernels have room for one number a column, and read others behind it. */
static bool another_column(ending *e, int tensor, int64_t at) {
    const int64_t columns = hone_own_columns_of(&e->p->m);
    if (!e->p->m.integers || e->p->depthwise || !constant_of(e, tensor) ||
        (e->scale < 0 && !constant_of(e, e->p->bias)))
        return false;
    for (int k = 0; k < e->n_more; k++)
        if (e->more[k] == tensor) return true;
    if (e->n_more == (int)(sizeof e->more / sizeof *e->more)) return false;
    e->more[e->n_more] = tensor, e->more_at[e->n_more++] = at;
    e->to->held[tensor] =
        hone_arena_text(e->to->arena, "column_at(a, n, %lld)", (long long)e->n_more * columns);
    return e->to->held[tensor] != NULL;
}
/* ---- cheaper words of bytes' arithmetic; the values are the same ---- */
static const char *text_of(ending *e, int32_t x) {
    hone_text t = {0}, *const was = e->to->out;
    e->to->out = &t;
    hone_print_child(e->to, x, HONE_AT_ATOM);
    e->to->out = was;
    const char *text = t.failed ? NULL : hone_arena_text(e->to->arena, "%s", t.text ? t.text : "");
    hone_text_free(&t);
    e->fits &= text != NULL;
    return text;
}
static void say(ending *e, int32_t x, const char *text) { e->to->said[x] = text, e->fits &= text != NULL; }
static const hone_x *fn_of(const ending *e, int32_t x, hone_fn fn) { /* NULL: it is not that one of floats */
    const hone_x *n = e->c->instance->x + x;
    return n->kind == HONE_X_FN && n->fn == fn && e->c->instance->x[n->a].type == HONE_F32 ? n : NULL;
}
static bool constant_at(const ending *e, int32_t x, float *out) {
    const hone_x *n = e->c->instance->x + x;
    *out = n->k.f32;
    return n->kind == HONE_X_CONST && n->type == HONE_F32;
}
static bool small_number(const ending *e, int32_t x, int *out) { /* a zero point, as a float */
    const hone_x *n = e->c->instance->x + x;
    if (n->kind != HONE_X_CAST || n->type != HONE_F32) return false;
    const hone_x *z = e->c->instance->x + n->a;
    return z->kind == HONE_X_LOAD && hone_own_number(e->c, z->a, out);
}
/* min(max(r, low), high), where r is a whole number and the bounds are of a byte */
static const hone_x *clamp_of(const ending *e, int32_t x, float *low, float *high) {
    const hone_x *m = fn_of(e, x, HONE_FN_min), *n = m ? fn_of(e, m->a, HONE_FN_max) : NULL;
    if (!n || !constant_at(e, m->b, high) || !constant_at(e, n->b, low) || *low < -128 || *high > 255)
        return NULL;
    const hone_x *sum = fn_of(e, n->a, HONE_FN_add);
    return fn_of(e, n->a, HONE_FN_round) || (sum && fn_of(e, sum->a, HONE_FN_round)) ? n : NULL;
}
static const char beside[] = "beside_at(a, batch, m, n)";
static bool reads_beside(ending *e) { return e->p->beside = e->p->m.integers && !e->p->depthwise; }
/* The kernel reads bytes of a residual without their sign, and has 2^23 more. */
static const char *residual_less(const ending *e, int zero) {
    if (e->p->beside) return hone_arena_text(e->to->arena, "(%s - %d.0f)", beside, zero);
    const bool has_sign = e->c->instance->tensor[e->p->residual].dtype == HONE_DTYPE_I8;
    return hone_arena_text(e->to->arena,
                           has_sign ? "(BITS_F32(F32_BITS(residual) ^ 0x80u) - %d.0f)" : "(residual - %d.0f)",
                           8388608 + (has_sign ? 128 : 0) + zero);
}
static const char *clamped_text(const ending *e, const char *text, float low, float high) {
    return hone_arena_text(e->to->arena, "fminf(fmaxf(%s, %af), %af)", text, (double)low, (double)high);
}
/* f32(i32(clamped) - z), f32(residual - z): whole numbers that f32 holds */
static bool dequantized(ending *e, const hone_x *n, int32_t x) {
    const hone_instance *in = e->c->instance;
    if (n->kind != HONE_X_CAST || n->type != HONE_F32 || in->x[n->a].type != HONE_I32) return false;
    const hone_x *d = in->x + n->a;
    int64_t at = 0;
    int zero = 0;
    int32_t from = n->a;
    if (d->kind == HONE_X_FN && d->fn == HONE_FN_sub) {
        const hone_x *z = in->x + d->b;
        if (z->kind == HONE_X_CONST) zero = z->k.i32;
        else if (z->kind != HONE_X_LOAD || !hone_own_number(e->c, z->a, &zero)) return false;
        from = d->a;
    }
    const hone_x *v = in->x + from;
    if (zero < -128 || zero > 255) return false;
    if (v->kind == HONE_X_LOAD && v->a == e->p->residual &&
        hone_match_end(&e->c->sized, &e->p->m, from, &at) == HONE_END_RESIDUAL) {
        say(e, x, residual_less(e, zero));
        return true;
    }
    float low, high;
    const hone_x *clamp =
        v->kind == HONE_X_CAST && in->x[v->a].type == HONE_F32 ? clamp_of(e, v->a, &low, &high) : NULL;
    if (!clamp) return false;
    const hone_x *sum = fn_of(e, clamp->a, HONE_FN_add);
    int added;
    if (sum && small_number(e, sum->b, &added) && added == zero) { /* whole numbers, all of them */
        const char *text = text_of(e, sum->a);
        if (text) say(e, x, clamped_text(e, text, low - (float)zero, high - (float)zero));
        return true;
    }
    const char *text = text_of(e, v->a);
    if (text) say(e, x, hone_arena_text(e->to->arena, "(%s - %d.0f)", text, zero));
    return true;
}
static void rewrite(ending *e, int32_t x, bool clamped) {
    const hone_x *n = e->c->instance->x + x;
    float low, high, by;
    const hone_x *clamp = clamp_of(e, x, &low, &high);
    if (dequantized(e, n, x)) return;
    if (clamp) {
        const char *text = text_of(e, clamp->a);
        if (text) say(e, x, clamped_text(e, text, low, high));
    } else if (fn_of(e, x, HONE_FN_round) && clamped) {
        const char *text = text_of(e, n->a);
        if (text) say(e, x, hone_arena_text(e->to->arena, "quick_round(%s)", text));
    } else if (fn_of(e, x, HONE_FN_div) && e->tame && number_at(e, n->b, &by) && by >= 0x1p-60f) {
        const char *text = text_of(e, n->a);
        if (text)
            say(e, x,
                hone_arena_text(e->to->arena, "quick_quotient(%s, %af, %af)", text, (double)by,
                                (double)(1 / by)));
    }
}
/* 1 + tanh(u) is one word, where both are of f32. */
static void one_tanh(ending *e, int32_t x) {
    const hone_x *sum = fn_of(e, x, HONE_FN_add);
    float one;
    if (!sum) return;
    const int32_t other = constant_at(e, sum->a, &one) ? sum->b : sum->a;
    const hone_x *tanh = fn_of(e, other, HONE_FN_tanh);
    if (!tanh || !constant_at(e, other == sum->b ? sum->a : sum->b, &one) || one != 1) return;
    const char *text = text_of(e, tanh->a);
    if (text) say(e, x, hone_arena_text(e->to->arena, "hone_one_tanh_f32(%s)", text));
}
static bool is_small(const ending *e, int32_t x) { /* a number of a byte's size */
    const hone_x *n = e->c->instance->x + x;
    int zero;
    return n->kind == HONE_X_CONST ? n->type == HONE_F32 && fabsf(n->k.f32) <= 256
                                   : small_number(e, x, &zero);
}
static void look(ending *e, int32_t x, bool clamped) {
    const hone_instance *in = e->c->instance;
    const hone_x *n = in->x + x;
    int64_t at = 0;
    if (!e->fits) return;
    switch (n->kind) {
    case HONE_X_CONST: return;
    case HONE_X_INDEX: e->fits = false; return;
    case HONE_X_PARAM: {
        const double v = in->param_real[n->a] ? e->c->param[n->a].f : (double)e->c->param[n->a].i;
        e->to->param[n->a] = in->param_real[n->a] ? hone_arena_text(e->to->arena, "(%a)", v)
                                                  : hone_arena_text(e->to->arena, "((int64_t)%lld)",
                                                                    (long long)e->c->param[n->a].i);
        e->fits &= e->to->param[n->a] != NULL && isfinite(v);
        return;
    }
    case HONE_X_LOAD: {
        if (n->a == e->acc) {
            e->bare = true;
            /* what is rewritten above it takes these words at once */
            e->to->held[n->a] = hone_own_begins(e->p) ? "hone_add_i32(whole, v)"
                                : e->p->m.alpha == 1  ? "v"
                                                      : "(a->alpha * v)";
            return;
        }
        const hone_end_kind kind = hone_match_end(&e->c->sized, &e->p->m, x, &at);
        const char *was = e->to->held[n->a];
        const hone_dtype stored = in->tensor[n->a].dtype;
        if (stored == HONE_DTYPE_I8 ||
            stored == HONE_DTYPE_U8) { /* a zero point; a residual as C is stored */
            if (kind == HONE_END_NUMBER && constant_of(e, n->a)) {
                const char *v = constant_of(e, n->a) + at;
                const char *text = hone_arena_text(
                    e->to->arena, "(%d)", stored == HONE_DTYPE_I8 ? *(const int8_t *)v : *(const uint8_t *)v);
                if (!text || (was && strcmp(was, text))) break;
                e->to->held[n->a] = text;
                return;
            }
            if (kind != HONE_END_RESIDUAL || (e->p->residual >= 0 && e->p->residual != n->a)) break;
            if (!hone_own_is_byte(in->tensor[e->p->m.c].dtype) && !reads_beside(e)) break;
            e->p->residual = n->a, e->p->residual_at = at;
            const char *text = residual_less(e, 0);
            e->to->held[n->a] = text ? hone_arena_text(e->to->arena, "((int)%s)", text) : NULL;
            if (!e->to->held[n->a]) break;
            return;
        }
        if (n->type != HONE_F32) break;
        if (kind == HONE_END_NUMBER && constant_of(e, n->a) && stored == HONE_DTYPE_F32) {
            float v;
            memcpy(&v, constant_of(e, n->a) + at * 4, 4);
            see(e, v);
            const char *text = isfinite(v) ? hone_arena_text(e->to->arena, "(%af)", (double)v) : NULL;
            if (!text || (was && strcmp(was, text))) break;
            e->to->held[n->a] = text;
            return;
        }
        const bool told = (e->c->constant && e->c->constant[n->a]) ||
                          in->tensor[n->a].role == HONE_ROLE_TEMP; /* else it may be stored as halves */
        if (kind == HONE_END_COLUMN && told && stored == HONE_DTYPE_F32) {
            see_column(e, n->a, at);
            if (e->scale >= 0 || (e->p->bias >= 0 && e->p->bias != n->a)) {
                if (another_column(e, n->a, at)) return;
                break;
            }
            e->p->bias = n->a, e->p->bias_at = at, e->to->held[n->a] = "bias";
            return;
        }
        if (kind == HONE_END_RESIDUAL) { /* which kernels read as they store */
            const bool other = hone_own_is_byte(in->tensor[e->p->m.c].dtype);
            if (e->p->residual >= 0 && e->p->residual != n->a) break;
            if (other && !reads_beside(e)) break;
            e->p->residual = n->a, e->p->residual_at = at;
            e->to->held[n->a] = other ? beside : "residual";
            e->tame = false; /* it may be as large as it likes */
            return;
        }
        break;
    }
    default: {
        if (e->p->m.integers && (begins(e, x) || computed_ahead(e, x))) return;
        float low, high;
        /* what is clamped to a byte, before a zero point and a lower bound, too */
        const bool passes = (fn_of(e, x, HONE_FN_add) || fn_of(e, x, HONE_FN_max)) && is_small(e, n->b);
        const bool below = clamp_of(e, x, &low, &high) || (clamped && passes);
        const int32_t arg[3] = {n->a, n->b, n->c};
        for (int k = 0; k < 3; k++)
            if (arg[k] >= 0) look(e, arg[k], below);
        if (e->p->m.integers && e->fits) rewrite(e, x, clamped);
        else if (e->fits) one_tanh(e, x);
        return;
    }
    }
    e->fits = false;
}
/* What a byte is stored of, without a rounding that is the last step: kernels clamp and round by
   themselves. */
static int32_t before_rounding(const ending *e, int32_t x) {
    const hone_x *sum = fn_of(e, x, HONE_FN_add);
    int zero;
    if (sum && small_number(e, sum->b, &zero) && zero == 0) x = sum->a;
    const hone_x *round = fn_of(e, x, HONE_FN_round);
    return round && e->to->said[x] ? round->a : x;
}
/* What is computed ahead, or the bias, and behind it the other numbers of each column. */
static hone_status gather(hone_arena *arena, const ending *e) {
    hone_own_product *p = e->p;
    const int64_t n = hone_own_columns_of(&p->m);
    const size_t bytes = (size_t)n * sizeof(float);
    float *to = HONE_NEW_N(arena, float, (1 + e->n_more) * n);
    if (!to) return hone_steps_no_memory();
    for (int64_t k = 0; e->scale >= 0 && k < n; k++) to[k] = scale_at(e, e->scale, k).f32;
    if (e->scale < 0) memcpy(to, constant_of(e, p->bias) + p->bias_at * 4, bytes);
    for (int k = 0; k < e->n_more; k++)
        memcpy(to + (1 + k) * n, constant_of(e, e->more[k]) + e->more_at[k] * 4, bytes);
    p->scale = to, p->scales = 1 + e->n_more, p->bias = -1;
    return HONE_OK;
}
hone_status hone_own_end(hone_arena *arena, const hone_device_call *c, int stage, hone_own_product *p) {
    enum { MOST_TEXT = 3000 };
    p->bias = p->residual = p->whole = -1, p->epilogue = NULL, p->scale = NULL;
    if (p->m.stages == 1) {
        p->epilogue = p->m.alpha != 1 ? "a->alpha * v" : hone_own_begins(p) ? "hone_add_i32(whole, v)" : "v";
        return HONE_OK;
    }
    hone_text text = {0};
    hone_printer printer;
    const hone_stage *z = c->instance->stage + stage + 1;
    hone_status s =
        hone_printer_open(&printer, &hone_print_target_of(HONE_LANG_CUDA)->words, c->instance, &text)
            ? HONE_OK
            : hone_steps_no_memory();
    /* what is stored in a byte is clamped to its range there */
    ending e = {.c = c,
                .p = p,
                .to = &printer,
                .acc = c->instance->stage[stage].tensor,
                .scale = -1,
                .tame = true,
                .fits = z->saturate == hone_own_is_byte(c->instance->tensor[p->m.c].dtype) && !z->reduce &&
                        !z->skip};
    if (!s) look(&e, z->value, z->saturate);
    if (!s && e.bare && p->whole >= 0) e.fits = false; /* with its bias here, and without it there */
    if (!s && e.fits && (e.scale >= 0 || e.n_more)) s = gather(arena, &e);
    if (!s && e.fits) {
        const int type = c->instance->x[z->value].type;
        const bool sums = c->instance->tensor[p->m.c].dtype == HONE_DTYPE_I32;
        hone_print_expr(&printer, p->m.integers && z->saturate ? before_rounding(&e, z->value) : z->value);
        if (text.failed) s = hone_steps_no_memory();
        else if (text.n < MOST_TEXT && !printer.f64 &&
                 (type == HONE_F32 || (type == HONE_I32 && sums) || z->saturate))
            if (!(p->epilogue = hone_arena_text(arena, "%s", text.text))) s = hone_steps_no_memory();
    }
    if (printer.arena) hone_arena_destroy(printer.arena);
    hone_text_free(&text);
    return s;
}
