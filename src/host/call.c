/* SPDX-License-Identifier: Apache-2.0
   call: see call.h. */
#include "host/call.h"

#include <stdio.h>
#include <string.h>

hone_status(hone_call_fail)(const hone_host_call *c, hone_status s, const char *format, ...) {
    char text[600];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    const hone_program *p = c->node->program;
    return hone_fail(s, "node '%s' (%s %d): %s", c->node->name ? c->node->name : "", p ? p->name : "?",
                     p ? p->since : 0, text);
}

static const char *operand_name(const hone_host_call *c, int k) {
    const hone_program *p = c->node->program;
    return p && p->n_in ? p->operand[k < p->n_in ? k : p->n_in - 1].name : "";
}

static const char *const tag_names[] = {"tensor", "sequence", "optional", "map"};

hone_status hone_call_tagged(const hone_host_call *c, int k, hone_tag tag, const hone_value **out) {
    const hone_value *v = hone_call_in(c, k);
    if (!v) return hone_call_fail(c, HONE_BAD_INPUT, "input %d (%s) is missing", k, operand_name(c, k));
    if (v->tag != tag)
        return hone_call_fail(c, HONE_BAD_INPUT, "input %d (%s) is a %s; it must be a %s", k,
                              operand_name(c, k), tag_names[v->tag], tag_names[tag]);
    *out = v;
    return HONE_OK;
}

hone_status hone_call_typed(const hone_host_call *c, int k, hone_dtype t, const hone_value **out) {
    const hone_value *v = NULL;
    HONE_TRY(hone_call_tensor(c, k, &v));
    if (v->dtype != t)
        return hone_call_fail(c, HONE_BAD_INPUT, "input %d (%s) is of type %s; it must be %s", k,
                              operand_name(c, k), hone_dtypes[v->dtype].name, hone_dtypes[t].name);
    *out = v;
    return HONE_OK;
}

static hone_status one(const hone_host_call *c, int k, const hone_value **out) {
    const hone_value *v = NULL;
    HONE_TRY(hone_call_tensor(c, k, &v));
    if (hone_value_count(v) != 1)
        return hone_call_fail(c, HONE_BAD_INPUT, "input %d (%s) has %lld elements; it must have one", k,
                              operand_name(c, k), (long long)hone_value_count(v));
    *out = v;
    return HONE_OK;
}

hone_status hone_call_i64(const hone_host_call *c, int k, int64_t otherwise, int64_t *out) {
    *out = otherwise;
    if (!hone_call_in(c, k)) return HONE_OK;
    const hone_value *v = NULL;
    HONE_TRY(one(c, k, &v));
    hone_kind kind = hone_dtypes[v->dtype].kind;
    if (kind != HONE_KIND_INT && kind != HONE_KIND_UINT && kind != HONE_KIND_BOOL)
        return hone_call_fail(c, HONE_BAD_INPUT, "input %d (%s) is of type %s; it must be an integer", k,
                              operand_name(c, k), hone_dtypes[v->dtype].name);
    *out = hone_value_i64(v, 0);
    return HONE_OK;
}

hone_status hone_call_f64(const hone_host_call *c, int k, double otherwise, double *out) {
    *out = otherwise;
    if (!hone_call_in(c, k)) return HONE_OK;
    const hone_value *v = NULL;
    HONE_TRY(one(c, k, &v));
    if (hone_dtypes[v->dtype].kind != HONE_KIND_FLOAT)
        return hone_call_fail(c, HONE_BAD_INPUT, "input %d (%s) is of type %s; it must be a float", k,
                              operand_name(c, k), hone_dtypes[v->dtype].name);
    *out = hone_value_f64(v, 0);
    return HONE_OK;
}

hone_status hone_call_list(const hone_host_call *c, const char *name, hone_attr_kind kind, hone_attr *out) {
    const hone_attr *a = hone_call_attr(c, name);
    if (!a) {
        *out = (hone_attr){.name = name, .kind = kind};
        return HONE_OK;
    }
    if (a->kind != kind) return hone_call_fail(c, HONE_BAD_INPUT, "attribute %s is of the wrong kind", name);
    *out = *a;
    return HONE_OK;
}

hone_status hone_call_choice(const hone_host_call *c, const char *name, const char *const *choices,
                             int otherwise, int *out) {
    const char *text = hone_call_text(c, name, choices[otherwise]);
    for (int k = 0; choices[k]; k++)
        if (!strcmp(choices[k], text)) {
            *out = k;
            return HONE_OK;
        }
    return hone_call_fail(c, HONE_BAD_INPUT, "attribute %s is \"%s\", which is none of its values", name,
                          text);
}

void hone_call_set(const hone_host_call *c, int k, hone_value *take) {
    if (!hone_call_wants(c, k)) {
        hone_value_drop(take);
        return;
    }
    hone_value_drop(c->out[k]);
    c->out[k] = take;
}

static bool borrows(const hone_value *v) {
    if (v->tag == HONE_TAG_TENSOR) return v->data && !v->free_data;
    for (int k = 0; k < v->n_item; k++)
        if (borrows(v->item[k])) return true;
    return false;
}

hone_status hone_call_keep(const hone_host_call *c, const hone_value *v, hone_value **out) {
    if (!borrows(v)) {
        *out = hone_value_hold((hone_value *)v);
        return HONE_OK;
    }
    hone_status s = hone_value_copy(v, out);
    return s ? hone_fail_at(s, "node '%s': ", c->node->name ? c->node->name : "") : s;
}

hone_status hone_call_pass(const hone_host_call *c, int k, const hone_value *v) {
    hone_value *kept;
    HONE_TRY(hone_call_keep(c, v, &kept));
    hone_call_set(c, k, kept);
    return HONE_OK;
}

void hone_call_pool(hone_value *tensor, hone_strings *pool) {
    if (tensor->strings == pool) return;
    hone_strings *old = tensor->strings;
    tensor->strings = pool ? hone_strings_hold(pool) : NULL;
    if (old) hone_strings_drop(old);
}

hone_status hone_call_copy_strings(const hone_host_call *c, void *to, const void *from, int64_t n) {
    const hone_string **dst = to, *const *src = from;
    for (int64_t k = 0; k < n; k++) {
        dst[k] = src[k] && src[k]->bytes ? hone_strings_add(c->strings, src[k]->text, src[k]->bytes)
                                         : &hone_string_empty;
        if (!dst[k]) return hone_call_no_memory(c);
    }
    return HONE_OK;
}

hone_status hone_call_axis(const hone_host_call *c, int64_t axis, int rank, int *out) {
    if (axis < -rank || axis >= rank)
        return hone_call_fail(c, HONE_BAD_INPUT,
                              "axis %lld is outside [%d, %d], the axes of a tensor of rank %d",
                              (long long)axis, -rank, rank - 1, rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return HONE_OK;
}

hone_around hone_call_around(const int64_t *dims, int rank, int axis) {
    hone_around a = {1, rank ? dims[axis] : 1, 1};
    for (int k = 0; k < rank; k++) { /* only an empty tensor's dims can overflow: another one is 0 */
        int64_t *side = k < axis ? &a.outer : &a.inner;
        if (k != axis && __builtin_mul_overflow(*side, dims[k], side)) *side = 0;
    }
    return a;
}

hone_status hone_call_broadcast(const hone_host_call *c, const hone_value *a, const hone_value *b,
                                int64_t *dims, int *rank) {
    int r = a->rank > b->rank ? a->rank : b->rank;
    for (int k = 0; k < r; k++) { /* k counts from the right */
        int64_t da = k < a->rank ? a->dim[a->rank - 1 - k] : 1,
                db = k < b->rank ? b->dim[b->rank - 1 - k] : 1;
        if (da != db && da != 1 && db != 1)
            return hone_call_fail(c, HONE_BAD_INPUT,
                                  "the inputs do not broadcast: %lld and %lld stand in dim %d of %d",
                                  (long long)da, (long long)db, r - 1 - k, r);
        dims[r - 1 - k] = da == 1 ? db : da;
    }
    int64_t count;
    if (!hone_count_of(dims, r, &count))
        return hone_call_fail(c, HONE_BAD_INPUT, "the broadcast shape is too large");
    *rank = r;
    return HONE_OK;
}

int64_t hone_call_source(const hone_value *v, const int64_t *dims, int rank, int64_t at) {
    int64_t place = 0, step = 1;
    for (int k = 0; k < rank; k++) { /* from the right */
        int64_t d = dims[rank - 1 - k], i = at % d;
        at /= d;
        if (k < v->rank) {
            int64_t own = v->dim[v->rank - 1 - k];
            if (own > 1) place += i * step;
            step *= own;
        }
    }
    return place;
}

hone_status hone_call_make(const hone_host_call *c, const hone_value *like, hone_dtype t, const int64_t *dims,
                           int rank, hone_value **out) {
    return like->away && c->make ? c->make(c, like, t, dims, rank, out)
                                 : hone_value_tensor(t, dims, rank, out);
}
hone_status hone_call_move(const hone_host_call *c, const hone_pieces_move *m) {
    if (m->to->away || m->from->away)
        return c->move ? c->move(c, m) : hone_call_fail(c, HONE_BUG, "a tensor lies on a device");
    for (int64_t k = 0; k < m->n && m->bytes; k++)
        memcpy((char *)m->to->data + m->at + (size_t)k * m->step,
               (const char *)m->from->data + m->from_at + (size_t)k * m->from_step, m->bytes);
    return HONE_OK;
}
hone_status hone_call_seen(const hone_host_call *c, const hone_value *v, hone_value **out) {
    if (!v->away) {
        *out = hone_value_hold((hone_value *)v);
        return HONE_OK;
    }
    hone_value *host = NULL;
    HONE_TRY(hone_value_tensor(v->dtype, v->dim, v->rank, &host));
    hone_status s = hone_call_move(c, &(hone_pieces_move){.to = host, .from = v, .bytes = v->bytes, .n = 1});
    if (s) hone_value_drop(host);
    else *out = host;
    return s;
}

hone_host_kept *hone_call_keep_made(const hone_host_call *c, hone_host_kept *take) {
    hone_host_kept *there = NULL;
    if (!c->kept || atomic_compare_exchange_strong(c->kept, &there, take)) return take;
    take->destroy(take);
    return there;
}
