/* SPDX-License-Identifier: Apache-2.0
   broken: what is said where a call breaks a rule of its row: the rule, the shapes, the numbers.

   A `need` whose text has braces is a sentence of its own, in which {x} is the shape of operand x (its
   numbers, where the row takes its contents), {#x} how many elements it has, and {axis} an attribute. A text
   without braces says what must hold; shapes are added. */
#include <string.h>

#include "loops/build.h"

enum { SHOWN = 24 /* numbers of a list */ };

static void put_dims(hone_text *t, const hone_dims *dims, const hone_dim *d, int64_t n) {
    hone_text_put(t, "[");
    for (int64_t k = 0; k < n && k < SHOWN; k++) {
        if (k) hone_text_put(t, ", ");
        if (hone_dim_is_number(d[k])) hone_text_put(t, "%lld", (long long)d[k]);
        else if (d[k] == HONE_DIM_UNKNOWN) hone_text_put(t, "?");
        else hone_dim_print(dims, d[k], t);
    }
    hone_text_put(t, n > SHOWN ? ", …]" : "]");
}
static void put_shape(hone_text *t, const hone_call *c, int k) {
    if (!c->arg[k].present) hone_text_put(t, "(absent)");
    else if (c->arg[k].rank < 0) hone_text_put(t, "[…]");
    else put_dims(t, c->dims, c->arg[k].dim, c->arg[k].rank);
}
/* "a [3, 4], b [5, 6]" */
static void put_shapes(hone_text *t, const hone_call *c) {
    bool more = false;
    for (int k = 0; k < c->program->n_in; k++) {
        if (!c->arg[k].present || c->program->operand[k].contents || c->arg[k].rank < 0) continue;
        hone_text_put(t, "%s%s ", more ? ", " : "", c->program->operand[k].name);
        put_shape(t, c, k);
        more = true;
    }
}
static void put_attr(hone_text *t, const hone_attr *a) {
    bool list = a->kind == HONE_ATTR_INTS || a->kind == HONE_ATTR_FLOATS || a->kind == HONE_ATTR_STRINGS;
    if (list) hone_text_put(t, "[");
    for (int k = 0; k < a->n && k < SHOWN; k++) {
        if (k) hone_text_put(t, ", ");
        if (a->i) hone_text_put(t, "%lld", (long long)a->i[k]);
        else if (a->f) hone_text_put(t, "%g", a->f[k]);
        else if (a->s)
            hone_text_put(t, "'%.*s'", (int)(a->s[k].bytes < 40 ? a->s[k].bytes : 40), a->s[k].text);
    }
    if (list) hone_text_put(t, a->n > SHOWN ? ", …]" : "]");
}
static void put_spec(hone_text *t, const hone_call *c, const char *name, size_t n) {
    const hone_program *p = c->program;
    bool count = *name == '#';
    if (count) name++, n--;
    for (int k = 0; k < p->n_in; k++) {
        const hone_arg *a = c->arg + k;
        if (strlen(p->operand[k].name) != n || memcmp(p->operand[k].name, name, n) != 0) continue;
        if (count) {
            hone_dim all = a->rank < 0 ? HONE_DIM_UNKNOWN : 1;
            for (int d = 0; d < a->rank; d++) all = hone_dim_mul(c->dims, all, a->dim[d]);
            if (all == HONE_DIM_UNKNOWN) hone_text_put(t, "?");
            else if (hone_dim_is_number(all)) hone_text_put(t, "%lld", (long long)all);
            else hone_dim_print(c->dims, all, t);
        } else if (p->operand[k].contents && a->present && a->content)
            put_dims(t, c->dims, a->content, a->n_content);
        else put_shape(t, c, k);
        return;
    }
    for (int k = 0; k < c->n_attr; k++)
        if (strlen(c->attr[k].name) == n && !memcmp(c->attr[k].name, name, n)) {
            put_attr(t, c->attr + k);
            return;
        }
    hone_text_put(t, "not given");
}

static hone_status say(hone_text *t) {
    hone_status s = t->failed ? hone_fail(HONE_NO_MEMORY, "no memory for a message")
                              : hone_fail(HONE_BAD_INPUT, "%s", t->text);
    hone_text_free(t);
    return s;
}

hone_status hone_broken_need(const hone_call *c, const char *text) {
    hone_text t = {0};
    if (!strchr(text, '{')) {
        hone_text_put(&t, "this must hold, and does not: %s (", text);
        put_shapes(&t, c);
        hone_text_put(&t, ")");
        return say(&t);
    }
    while (*text) {
        size_t n = strcspn(text, "{"), inner = text[n] ? strcspn(text + n, "}") : 0;
        hone_text_put(&t, "%.*s", (int)n, text);
        if (inner) put_spec(&t, c, text + n + 1, inner - 1);
        text += n + inner + (text[n + inner] == '}');
    }
    return say(&t);
}
hone_status hone_broken_size(const hone_call *c, const hone_check *q, int axis, int64_t actual,
                             int64_t want) {
    hone_text t = {0};
    hone_text_put(&t, "dim %d of %s is %lld and must be %s%lld", axis, c->program->operand[q->operand].name,
                  (long long)actual, q->broadcast && want != 1 ? "1 or " : "", (long long)want);
    hone_text_put(&t, " (%s): ", q->text);
    put_shapes(&t, c);
    return say(&t);
}
void hone_broken_ranks(const hone_call *c, hone_text *t) {
    bool more = false;
    for (int k = 0; k < c->program->n_in; k++) {
        if (!c->arg[k].present || c->program->operand[k].contents || c->arg[k].rank < 0) continue;
        hone_text_put(t, "%s%s has %d dims", more ? ", " : "", c->program->operand[k].name, c->arg[k].rank);
        more = true;
    }
}
