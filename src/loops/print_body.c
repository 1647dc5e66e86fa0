/* SPDX-License-Identifier: Apache-2.0
   print_body: what a kernel does at one place of a stage's domain: indices, terms of a reduction, stores
   (print_kernel.h). The same text in every language: the prelude's words make the difference. A check that
   fails sets `bad`; nothing returns early, since barriers may follow. */
#include "loops/print_kernel.h"

#include <stdio.h>
#include <string.h>

enum { CHUNK = 64 };

const char *hone_kernel_count(const hone_kernel *m) { return m->s->narrow ? "uint32_t" : "uint64_t"; }
void hone_kernel_number_add(hone_kernel *m, const char *name, int64_t i) {
    for (int k = 0; k < m->number.n; k++)
        if (!strcmp(m->number.at[k].name, name)) return;
    if (!hone_push(&m->number, ((hone_kernel_number){.name = name, .kind = HONE_KARG_I64, .i = i})))
        m->failed = true;
}
void hone_body_survey(hone_kernel *m, const hone_stage *s) {
    hone_printer *p = &m->p;
    const hone_instance *in = p->in;
    const hone_tensor *w = in->tensor + s->tensor;
    hone_print_note(p, s->value);
    if (s->pick >= 0) hone_print_note(p, s->pick);
    for (int q = 0; q < s->n_index + s->n_reduce; q++)
        hone_print_param(p, in->index[in->list[s->index0 + q]].extent);
    for (int q = 0; q < w->rank; q++) {
        if (!s->identity) hone_print_note(p, in->list[s->sub0 + q]);
        hone_print_param(p, w->dim[q]);
    }
}
void hone_body_decode(hone_kernel *m, const char *from, const int32_t *ids, int n) {
    hone_printer *p = &m->p;
    const char *u = hone_kernel_count(m), *rest = from;
    if (n > 1) {
        hone_print_line(p);
        hone_text_put(p->out, "%s hone_rest = %s;\n", u, from);
        rest = "hone_rest";
    }
    for (int k = n - 1; k >= 0; k--) {
        const char *extent = k ? hone_print_param(p, p->in->index[ids[k]].extent) : NULL;
        hone_print_line(p);
        if (k)
            hone_text_put(p->out, "const int64_t %s = (int64_t)(%s %% (%s)%s);\n", p->index[ids[k]], rest, u,
                          extent);
        else hone_text_put(p->out, "const int64_t %s = (int64_t)%s;\n", p->index[ids[k]], rest);
        if (!k) break;
        hone_print_line(p);
        hone_text_put(p->out, "hone_rest /= (%s)%s;\n", u, extent);
    }
    for (int k = 0; k < n; k++) { /* not each is used by every stage */
        hone_print_line(p);
        hone_text_put(p->out, "(void)%s;\n", p->index[ids[k]]);
    }
}

/* ---- reductions ---- */
static bool is_real(hone_ctype c) { return c == HONE_F32 || c == HONE_F64; }
static bool is_arg(const hone_stage *s) { return s->reduce >= HONE_REDUCE_ARGMAX; }
static bool is_max(const hone_stage *s) {
    return s->reduce == HONE_REDUCE_MAX || s->reduce == HONE_REDUCE_ARGMAX;
}
/* A product of many floats leaves f32's range on the way, though not at the end: in f64 where there is
   one. */
hone_ctype hone_body_acc(const hone_kernel *m, const hone_stage *s) {
    const hone_ctype c = (hone_ctype)m->p.in->x[s->value].type;
    return c == HONE_F32 && s->reduce == HONE_REDUCE_PROD && m->target->f64 ? HONE_F64 : c;
}
static bool in_chunks(const hone_kernel *m, const hone_stage *s) {
    return m->s->chunked && s->reduce == HONE_REDUCE_SUM && is_real((hone_ctype)m->p.in->x[s->value].type);
}
void hone_body_acc_open(hone_kernel *m, const hone_stage *s, bool lanes) {
    hone_printer *p = &m->p;
    const hone_ctype c = hone_body_acc(m, s);
    if (c == HONE_F64) p->f64 = true;
    hone_print_line(p);
    hone_text_put(p->out, "%s acc = ", hone_print_types[c]);
    if (s->reduce <= HONE_REDUCE_PROD) hone_text_put(p->out, "%d", s->reduce == HONE_REDUCE_PROD);
    else hone_print_limit(p, c, !is_max(s));
    hone_text_put(p->out, ";\n");
    if (in_chunks(m, s)) {
        hone_print_line(p);
        hone_text_put(p->out, "%s hone_part = 0;\n", hone_print_types[c]);
        hone_print_line(p);
        hone_text_put(p->out, "uint32_t hone_count = 0;\n");
    }
    if (!is_arg(s)) return;
    hone_print_line(p);
    if (lanes) hone_text_put(p->out, "int64_t hone_best = -1;\n");
    else hone_text_put(p->out, "%s pick = 0;\n", hone_print_types[p->in->x[s->pick].type]);
    if (lanes) return;
    hone_print_line(p);
    hone_text_put(p->out, "int begun = 0;\n");
}
void hone_body_acc_close(hone_kernel *m, const hone_stage *s, bool lanes) {
    (void)lanes;
    if (!in_chunks(m, s)) return;
    hone_print_line(&m->p);
    hone_text_put(m->p.out, "acc += hone_part;\n");
}
static void put_combine(hone_kernel *m, const hone_stage *s, const char *a, const char *b) {
    const hone_ctype c = hone_body_acc(m, s);
    if (is_real(c) && s->reduce <= HONE_REDUCE_PROD)
        hone_text_put(m->p.out, "%s %s %s", a, s->reduce == HONE_REDUCE_SUM ? "+" : "*", b);
    else
        hone_text_put(m->p.out, "hone_%s_%s(%s, %s)",
                      s->reduce == HONE_REDUCE_SUM    ? "add"
                      : s->reduce == HONE_REDUCE_PROD ? "mul"
                      : is_max(s)                     ? "max"
                                                      : "min",
                      hone_ctype_names[c], a, b);
}
/* The first largest; NaN counts as larger than all. Term numbers decide between equals, since lanes take
   terms out of turn. */
static void put_better(hone_kernel *m, const hone_stage *s, const char *v, const char *term) {
    const hone_ctype c = (hone_ctype)m->p.in->x[s->value].type;
    const char *cn = hone_ctype_names[c], *op = is_max(s) ? ">" : "<";
    hone_text_put(m->p.out, "%s >= 0 && (hone_best < 0 || ", term);
    if (is_real(c))
        hone_text_put(m->p.out,
                      "(hone_isnan_%s(%s) ? !hone_isnan_%s(acc) || %s < hone_best : !hone_isnan_%s(acc) && "
                      "(%s %s acc || (%s == acc && %s < "
                      "hone_best))))",
                      cn, v, cn, term, cn, v, op, v, term);
    else hone_text_put(m->p.out, "%s %s acc || (%s == acc && %s < hone_best))", v, op, v, term);
}
void hone_body_join(hone_kernel *m, const hone_stage *s, const char *other, const char *other_term) {
    hone_printer *p = &m->p;
    hone_print_line(p);
    if (is_arg(s)) {
        hone_text_put(p->out, "if (");
        put_better(m, s, other, other_term);
        hone_text_put(p->out, ") acc = %s, hone_best = %s;\n", other, other_term);
        return;
    }
    hone_text_put(p->out, "acc = ");
    put_combine(m, s, "acc", other);
    hone_text_put(p->out, ";\n");
}
static void put_value(hone_kernel *m, const hone_stage *s, const char *source) {
    if (source) hone_text_put(m->p.out, "%s", source);
    else hone_print_expr(&m->p, s->value);
}
/* A sum of products is fused: fma is asked for, since the compiler may not take it by itself. */
static bool put_fused(hone_kernel *m, const hone_stage *s, const char *to) {
    hone_printer *p = &m->p;
    const hone_x *e = p->in->x + s->value;
    const hone_ctype c = hone_body_acc(m, s);
    if (s->reduce != HONE_REDUCE_SUM || !is_real(c) || e->kind != HONE_X_FN || e->fn != HONE_FN_mul ||
        p->named[s->value])
        return false;
    hone_text_put(p->out, "%s = hone_fma_%s(", to, hone_ctype_names[c]);
    hone_print_expr(p, e->a);
    hone_text_put(p->out, ", ");
    hone_print_expr(p, e->b);
    hone_text_put(p->out, ", %s);\n", to);
    return true;
}
void hone_body_term(hone_kernel *m, const hone_stage *s, bool lanes, const char *source) {
    hone_printer *p = &m->p;
    const hone_ctype c = (hone_ctype)p->in->x[s->value].type;
    hone_print_block b = hone_print_open(p, &s->value, source ? 0 : 1);
    p->out = &b.text;
    if (!source) hone_print_name_shared(p);
    hone_print_line(p);
    if (is_arg(s)) {
        hone_text_put(p->out, "const %s value = ", hone_print_types[c]);
        put_value(m, s, source);
        hone_text_put(p->out, ";\n");
        if (lanes) {
            hone_print_line(p);
            hone_text_put(p->out, "if (");
            put_better(m, s, "value", "(int64_t)hone_term");
            hone_text_put(p->out, ") acc = value, hone_best = (int64_t)hone_term;\n");
        } else hone_print_arg(p, s);
    } else if (in_chunks(m, s) && !source) {
        if (!put_fused(m, s, "hone_part")) {
            hone_text_put(p->out, "hone_part += ");
            hone_print_child(p, s->value, HONE_AT_SELECT);
            hone_text_put(p->out, ";\n");
        }
        hone_print_line(p);
        hone_text_put(p->out, "if (++hone_count %% %du == 0) acc += hone_part, hone_part = 0;\n", CHUNK);
    } else if (source || !put_fused(m, s, "acc")) {
        const hone_ctype own = hone_body_acc(m, s);
        if (is_real(own) && s->reduce <= HONE_REDUCE_PROD) {
            hone_text_put(p->out, "acc %s ", s->reduce == HONE_REDUCE_SUM ? "+=" : "*=");
            if (own != c && !source) hone_text_put(p->out, "(double)");
            if (source) hone_text_put(p->out, "%s", source);
            else hone_print_child(p, s->value, own != c ? HONE_AT_ATOM : HONE_AT_SELECT);
            hone_text_put(p->out, ";\n");
        } else {
            hone_text_put(p->out, "acc = hone_%s_%s(acc, ",
                          s->reduce == HONE_REDUCE_SUM    ? "add"
                          : s->reduce == HONE_REDUCE_PROD ? "mul"
                          : is_max(s)                     ? "max"
                                                          : "min",
                          hone_ctype_names[own]);
            put_value(m, s, source);
            hone_text_put(p->out, ");\n");
        }
    }
    hone_print_close(p, &b);
}
/* nested heads, each with a brace */
int hone_body_loops(hone_kernel *m, const int32_t *ids, int n, int32_t fixed) {
    hone_printer *p = &m->p;
    int made = 0;
    for (int k = 0; k < n; k++) {
        if (ids[k] == fixed) continue;
        const char *i = p->index[ids[k]];
        hone_print_line(p);
        hone_text_put(p->out, "for (int64_t %s = 0; %s < %s; %s++) {\n", i, i,
                      hone_print_param(p, p->in->index[ids[k]].extent), i);
        p->depth++, made++;
    }
    return made;
}
void hone_body_end(hone_kernel *m, int made) {
    for (int k = 0; k < made; k++) {
        m->p.depth--;
        hone_print_line(&m->p);
        hone_text_put(m->p.out, "}\n");
    }
}
void hone_body_serial(hone_kernel *m, const hone_stage *s) {
    hone_body_acc_open(m, s, false);
    const int made = hone_body_loops(m, m->p.in->list + s->index0 + s->n_index, s->n_reduce, -1);
    if (!made) { /* over nothing: one term */
        hone_print_line(&m->p);
        hone_text_put(m->p.out, "{\n");
        m->p.depth++;
    }
    hone_body_term(m, s, false, NULL);
    hone_body_end(m, made ? made : 1);
    hone_body_acc_close(m, s, false);
}
void hone_body_pick(hone_kernel *m, const hone_stage *s) {
    hone_printer *p = &m->p;
    if (!is_arg(s)) return;
    hone_print_line(p);
    hone_text_put(p->out, "%s pick = 0;\n", hone_print_types[p->in->x[s->pick].type]);
    hone_print_line(p);
    hone_text_put(p->out, "if (hone_best >= 0) {\n");
    p->depth++;
    hone_print_line(p);
    hone_text_put(p->out, "const %s hone_term = (%s)hone_best;\n", hone_kernel_count(m),
                  hone_kernel_count(m));
    hone_body_decode(m, "hone_term", p->in->list + s->index0 + s->n_index, s->n_reduce);
    hone_print_block b = hone_print_open(p, &s->pick, 1);
    p->out = &b.text;
    hone_print_name_shared(p);
    hone_print_line(p);
    hone_text_put(p->out, "pick = ");
    hone_print_child(p, s->pick, HONE_AT_SELECT);
    hone_text_put(p->out, ";\n");
    hone_print_close(p, &b);
    hone_body_end(m, 1);
}

/* ---- stores ---- */
static bool is_inside(const hone_kernel *m, const hone_stage *s, int k, int32_t sub) {
    const hone_tensor *w = m->p.in->tensor + s->tensor;
    if (hone_print_safe(&m->p, w, k, sub)) return true;
    return sub >= 0 && m->p.knows && hone_know_inside(hone_know_of(m->p.knows, sub), m->param[w->dim[k]].i);
}
static int subscripts(hone_kernel *m, const hone_stage *s, int32_t *sub) {
    const hone_tensor *w = m->p.in->tensor + s->tensor;
    for (int k = 0; k < w->rank; k++)
        sub[k] = s->identity ? ~m->p.in->list[s->index0 + k] : m->p.in->list[s->sub0 + k];
    return w->rank;
}
/* subscripts that are not simple get a variable */
static hone_print_places assign(hone_kernel *m, const int32_t *sub, int n) {
    hone_printer *p = &m->p;
    hone_print_places at = {.n = n};
    for (int k = 0; k < n; k++) {
        at.sub[k] = sub[k], at.temp[k] = -1;
        if (hone_print_simple(p, sub[k])) continue;
        at.temp[k] = p->n_temp++;
        hone_print_line(p);
        hone_text_put(p->out, "v%d = ", at.temp[k]);
        hone_print_expr(p, sub[k]);
        hone_text_put(p->out, ";\n");
    }
    return at;
}
/* what lies there then */
static void put_put(hone_kernel *m, const hone_stage *s, hone_ctype from, const char *value, int32_t x) {
    hone_printer *p = &m->p;
    const hone_dtype t = p->in->tensor[s->tensor].dtype;
    const bool same = hone_print_element_of(t).same == (int)from;
    if (!same) hone_text_put(p->out, "hone_put_%s_%s(", hone_dtypes[t].name, hone_ctype_names[from]);
    if (value) hone_text_put(p->out, "%s", value);
    else hone_print_expr(p, x);
    if (!same) hone_text_put(p->out, ", %d)", s->saturate);
}
void hone_body_element(hone_kernel *m, const hone_stage *s, hone_ctype from, const char *value) {
    put_put(m, s, from, value, -1);
}
/* The element is written as text: x[…]. */
static void put_update(hone_kernel *m, const hone_stage *s, const char *element, const char *value,
                       hone_ctype c, int32_t x) {
    static const char *const hows[] = {"", "add", "mul", "max", "min"};
    hone_printer *p = &m->p;
    const hone_dtype t = p->in->tensor[s->tensor].dtype;
    const hone_ctype own = hone_dtypes[t].ctype;
    hone_print_line(p);
    hone_text_put(p->out, "%s = ", element);
    if (!s->how) {
        put_put(m, s, c, value, x);
        hone_text_put(p->out, ";\n");
        return;
    }
    const bool same = hone_print_element_of(t).same == (int)own;
    if (!same) hone_text_put(p->out, "hone_put_%s_%s(", hone_dtypes[t].name, hone_ctype_names[own]);
    hone_text_put(p->out, "hone_%s_%s(", hows[s->how], hone_ctype_names[own]);
    if (hone_print_element_of(t).plain) hone_text_put(p->out, "%s, ", element);
    else hone_text_put(p->out, "hone_get_%s(%s), ", hone_dtypes[t].name, element);
    if (c == own) hone_text_put(p->out, "%s)", value);
    else hone_text_put(p->out, "hone_cast_%s_%s(%s))", hone_ctype_names[c], hone_ctype_names[own], value);
    if (!same) hone_text_put(p->out, ", %d)", s->saturate);
    hone_text_put(p->out, ";\n");
}
static const char *reduced_value(const hone_kernel *m, const hone_stage *s) {
    if (!s->reduce) return NULL;
    if (s->pick >= 0) return "pick";
    return hone_body_acc(m, s) != (hone_ctype)m->p.in->x[s->value].type ? "(float)acc" : "acc";
}
static void put_outside(hone_kernel *m, const hone_stage *s) {
    hone_print_line(&m->p);
    hone_text_put(m->p.out, "(void)hone_outside(&bad, %d);\n", 1 + s->tensor);
}
void hone_body_store(hone_kernel *m, const hone_stage *s, const char *held) {
    hone_printer *p = &m->p;
    const hone_ctype c = (hone_ctype)p->in->x[s->pick >= 0 ? s->pick : s->value].type;
    int32_t sub[HONE_MAX_RANK], root[HONE_MAX_RANK + 1];
    const int rank = subscripts(m, s, sub);
    const char *value = reduced_value(m, s);
    int n = 0;
    bool check = false;
    if (!value) root[n++] = s->value;
    for (int k = 0; k < rank && !held; k++)
        root[n++] = sub[k] < 0 ? -1 : sub[k], check |= !is_inside(m, s, k, sub[k]);
    hone_print_block b = hone_print_open(p, root, n);
    p->out = &b.text;
    hone_print_name_shared(p);
    if (held) {
        hone_print_line(p);
        hone_text_put(p->out, "%s = ", held);
        if (value) hone_text_put(p->out, "%s", value);
        else hone_print_child(p, s->value, HONE_AT_SELECT);
        hone_text_put(p->out, ";\n");
        hone_print_close(p, &b);
        return;
    }
    m->written[s->tensor] = 1;
    const hone_print_places at = assign(m, sub, rank);
    if (!value && (s->how || check)) {
        hone_print_line(p);
        hone_text_put(p->out, "const %s value = ", hone_print_types[c]);
        hone_print_expr(p, s->value);
        hone_text_put(p->out, ";\n");
        value = "value";
    }
    if (check) {
        hone_print_line(p);
        hone_text_put(p->out, "if (");
        hone_print_inside(p, p->in->tensor + s->tensor, s->tensor, false, &at);
        hone_text_put(p->out, ") {\n");
        p->depth++;
    }
    hone_text element = {0}, *out = p->out;
    p->out = &element;
    hone_text_put(p->out, "%s[", p->tensor[s->tensor]);
    hone_print_at(p, s->tensor, false, &at);
    hone_text_put(p->out, "]");
    p->out = out;
    if (element.failed) m->failed = true;
    else put_update(m, s, element.text, value, c, s->value);
    hone_text_free(&element);
    if (check) {
        p->depth--;
        hone_print_line(p);
        hone_text_put(p->out, "}");
        hone_text_put(p->out, s->skip ? "\n" : " else {\n");
        if (!s->skip) {
            p->depth++;
            put_outside(m, s);
            hone_body_end(m, 1);
        }
    }
    hone_print_close(p, &b);
}
void hone_body_scatter(hone_kernel *m, const hone_stage *s) {
    hone_printer *p = &m->p;
    const hone_ctype c = (hone_ctype)p->in->x[s->pick >= 0 ? s->pick : s->value].type;
    int32_t sub[HONE_MAX_RANK] = {0}, root[HONE_MAX_RANK] = {0};
    const int rank = subscripts(m, s, sub);
    bool check = false;
    for (int k = 0; k < rank; k++) root[k] = sub[k] < 0 ? -1 : sub[k], check |= !is_inside(m, s, k, sub[k]);
    hone_print_block b = hone_print_open(p, root, rank);
    p->out = &b.text;
    hone_print_name_shared(p);
    m->written[s->tensor] = 1;
    const hone_print_places at = assign(m, sub, rank);
    int braces = 1;
    hone_print_line(p);
    if (check) {
        hone_text_put(p->out, "if (!(");
        hone_print_inside(p, p->in->tensor + s->tensor, s->tensor, false, &at);
        hone_text_put(p->out, ")) {\n");
        p->depth++;
        if (!s->skip) put_outside(m, s);
        p->depth--;
        hone_print_line(p);
        hone_text_put(p->out, "} else ");
    }
    hone_text_put(p->out, "{\n");
    p->depth++;
    hone_print_line(p);
    hone_text_put(p->out, "const int64_t hone_to = ");
    hone_print_at(p, s->tensor, false, &at);
    hone_text_put(p->out, ";\n");
    if (m->s->owners > 1) {
        hone_print_line(p);
        hone_text_put(p->out, "if ((uint64_t)hone_to %% (uint64_t)hone_owners == (uint64_t)hone_own) {\n");
        p->depth++, braces++;
    }
    if (s->reduce) hone_body_serial(m, s);
    const char *value = reduced_value(m, s);
    hone_print_block inner = hone_print_open(p, &s->value, value ? 0 : 1);
    p->out = &inner.text;
    if (!value) {
        hone_print_name_shared(p);
        hone_print_line(p);
        hone_text_put(p->out, "const %s value = ", hone_print_types[c]);
        hone_print_expr(p, s->value);
        hone_text_put(p->out, ";\n");
        value = "value";
    }
    char element[300];
    snprintf(element, sizeof element, "%.250s[hone_to]", p->tensor[s->tensor]);
    put_update(m, s, element, value, c, s->value);
    hone_print_close(p, &inner);
    hone_body_end(m, braces);
    hone_print_close(p, &b);
}
