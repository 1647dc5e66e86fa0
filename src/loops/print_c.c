/* SPDX-License-Identifier: Apache-2.0
   print_c: an instance as one C11 function: plain nested loops, as a person would write them. fn.h and
   storage.h stand before it.

   It gives the interpreter's bits: float sums in double in the same order, arms not taken are not evaluated,
   every load and store that could be outside is checked. Loads whose subscripts are indices over that very
   dim need no check. What an expression uses twice is named once, e12, unless it might fail where it is not
   reached. Not scheduled, not fast: fast code is tile_*.c's and a schedule's. */
#include "loops/print_walk.h"

static const hone_print_words c11 = {.name = "C11", .wide = "LL", .reserved = ""};

/* Nested heads; the last opens a brace; returns how deep it went. The first one asks all extents: around an
   empty loop it may not turn 2^62 times. */
static int loops(hone_printer *p, const int32_t *ids, int n, int32_t fixed) {
    int made = 0;
    for (int k = 0; k < n; k++) {
        if (ids[k] == fixed) continue;
        const char *i = p->index[ids[k]];
        hone_print_line(p);
        bool last = true;
        for (int q = k + 1; q < n; q++) last &= ids[q] == fixed;
        hone_text_put(p->out, "for (int64_t %s = 0; %s < %s", i, i,
                      hone_print_param(p, p->in->index[ids[k]].extent));
        for (int q = k + 1; q < n && !made; q++)
            if (ids[q] != fixed)
                hone_text_put(p->out, " && 0 < %s", hone_print_param(p, p->in->index[ids[q]].extent));
        hone_text_put(p->out, "; %s++)%s\n", i, last ? " {" : "");
        p->depth++, made++;
    }
    if (!made) {
        hone_print_line(p);
        hone_text_put(p->out, "{\n");
        p->depth++;
    }
    return made ? made : 1;
}
static void end_loops(hone_printer *p, int made) {
    p->depth -= made;
    hone_text_put(p->out, "%*s}\n", 4 * (p->depth + made - 1), "");
}

/* The reduction's loops; its result is then `acc` (or `pick`), of the value's compute type. */
static void reduction(hone_printer *p, const hone_stage *s) {
    hone_ctype c = (hone_ctype)p->in->x[s->value].type;
    bool real = c == HONE_F32 || c == HONE_F64, arg = s->reduce >= HONE_REDUCE_ARGMAX,
         max = s->reduce == HONE_REDUCE_MAX || s->reduce == HONE_REDUCE_ARGMAX,
         summed = s->reduce <= HONE_REDUCE_PROD;
    const char *cn = hone_ctype_names[c];
    hone_print_line(p);
    hone_text_put(p->out, "%s acc = ", real && summed ? "double" : hone_print_types[c]);
    if (summed) hone_text_put(p->out, "%d", s->reduce == HONE_REDUCE_PROD);
    else hone_print_limit(p, c, !max);
    hone_text_put(p->out, ";\n");
    if (arg) {
        hone_print_line(p);
        hone_text_put(p->out, "%s pick = 0;\n", hone_print_types[p->in->x[s->pick].type]);
        hone_print_line(p);
        hone_text_put(p->out, "int begun = 0;\n");
    }
    int made = loops(p, p->in->list + s->index0 + s->n_index, s->n_reduce, -1);
    hone_print_block b = hone_print_open(p, &s->value, 1);
    bool may_fail = hone_print_fails(p, s->value);
    p->out = &b.text;
    hone_print_name_shared(p);
    hone_print_line(p);
    if (arg) {
        hone_text_put(p->out, "const %s value = ", hone_print_types[c]);
        hone_print_expr(p, s->value);
        hone_text_put(p->out, ";\n");
        hone_print_arg(p, s);
        may_fail |= hone_print_fails(p, s->pick);
    } else {
        const char *fn = s->reduce == HONE_REDUCE_SUM    ? "add"
                         : s->reduce == HONE_REDUCE_PROD ? "mul"
                         : max                           ? "max"
                                                         : "min";
        if (real && summed) {
            hone_text_put(p->out, "acc %s ", s->reduce == HONE_REDUCE_SUM ? "+=" : "*=");
            if (c == HONE_F32) hone_text_put(p->out, "(double)");
            hone_print_child(p, s->value, c == HONE_F32 ? HONE_AT_ATOM : HONE_AT_SELECT);
            hone_text_put(p->out, ";\n");
        } else {
            hone_text_put(p->out, "acc = hone_%s_%s(acc, ", fn, cn);
            hone_print_expr(p, s->value);
            hone_text_put(p->out, ");\n");
        }
    }
    if (may_fail) {
        hone_print_line(p);
        hone_text_put(p->out, "if (bad) return bad;\n");
    }
    hone_print_close(p, &b);
    end_loops(p, made);
}
/* Stores `value` (text) of compute type c at the stage's place. */
static void store(hone_printer *p, const hone_stage *s, const int32_t *sub) {
    const hone_tensor *w = p->in->tensor + s->tensor;
    hone_print_element el = hone_print_element_of(w->dtype);
    hone_ctype own = hone_dtypes[w->dtype].ctype,
               c = (hone_ctype)p->in->x[s->pick >= 0 ? s->pick : s->value].type;
    /* a float sum ends in float */
    bool check = false, narrowed = s->reduce && s->reduce <= HONE_REDUCE_PROD && c == HONE_F32;
    for (int k = 0; k < w->rank; k++) check |= !hone_print_safe(p, w, k, sub[k]);
    hone_print_places at = {.n = w->rank};
    for (int k = 0; k < w->rank; k++) {
        at.sub[k] = sub[k], at.temp[k] = -1;
        if (hone_print_simple(p, sub[k])) continue;
        at.temp[k] = p->n_temp++;
        hone_print_line(p);
        hone_text_put(p->out, "v%d = ", at.temp[k]);
        hone_print_expr(p, sub[k]);
        hone_text_put(p->out, ";\n");
    }
    bool may_fail = false;
    for (int k = 0; k < w->rank; k++) may_fail |= hone_print_fails(p, sub[k]);
    if (!s->reduce) may_fail |= hone_print_fails(p, s->value);
    const char *value = s->reduce ? s->pick >= 0 ? "pick" : narrowed ? "(float)acc" : "acc" : NULL;
    if (!value && (s->how || may_fail || check)) {
        hone_print_line(p);
        hone_text_put(p->out, "const %s value = ", hone_print_types[c]);
        hone_print_expr(p, s->value);
        hone_text_put(p->out, ";\n");
        value = "value";
    }
    if (may_fail) {
        hone_print_line(p);
        hone_text_put(p->out, "if (bad) return bad;\n");
    }
    if (check) {
        hone_print_line(p);
        hone_text_put(p->out, s->skip ? "if (" : "if (!(");
        hone_print_inside(p, w, s->tensor, false, &at);
        if (s->skip) hone_text_put(p->out, ") {\n"), p->depth++;
        else hone_text_put(p->out, ")) return %d;\n", 1 + s->tensor);
    }
    hone_print_line(p);
    if (s->how) {
        static const char *const hows[] = {"", "add", "mul", "max", "min"};
        hone_text_put(p->out, "%s *const to = %s + ", el.c, p->tensor[s->tensor]);
        hone_print_at(p, s->tensor, false, &at);
        hone_text_put(p->out, ";\n");
        hone_print_line(p);
        if (el.same == (int)own) hone_text_put(p->out, "*to = ");
        else
            hone_text_put(p->out, "hone_store_%s_%s(to, ", hone_dtypes[w->dtype].name, hone_ctype_names[own]);
        hone_text_put(p->out, "hone_%s_%s(", hows[s->how], hone_ctype_names[own]);
        if (el.plain) hone_text_put(p->out, "*to, ");
        else hone_text_put(p->out, "hone_load_%s(to), ", hone_dtypes[w->dtype].name);
        if (c == own) hone_text_put(p->out, "%s)", value);
        else hone_text_put(p->out, "hone_cast_%s_%s(%s))", hone_ctype_names[c], hone_ctype_names[own], value);
        hone_text_put(p->out, el.same == (int)own ? ";\n" : ", %d);\n", s->saturate);
    } else {
        bool same = el.same == (int)c;
        if (same) hone_text_put(p->out, "%s[", p->tensor[s->tensor]);
        else
            hone_text_put(p->out, "hone_store_%s_%s(%s + ", hone_dtypes[w->dtype].name, hone_ctype_names[c],
                          p->tensor[s->tensor]);
        hone_print_at(p, s->tensor, false, &at);
        hone_text_put(p->out, same ? "] = " : ", ");
        if (value) hone_text_put(p->out, "%s", value);
        else hone_print_expr(p, s->value);
        if (same) hone_text_put(p->out, ";\n");
        else hone_text_put(p->out, ", %d);\n", s->saturate);
    }
    if (check && s->skip) {
        p->depth--;
        hone_print_line(p);
        hone_text_put(p->out, "}\n");
    }
}
static void stage(hone_printer *p, const hone_stage *s) {
    const hone_tensor *w = p->in->tensor + s->tensor;
    const int32_t *ids = p->in->list + s->index0;
    int taken = p->n_taken;
    hone_print_name_indices(p, s);
    int made = loops(p, ids, s->n_index, s->over >= 0 ? s->over_index : -1);
    if (s->reduce) reduction(p, s);
    int32_t sub[HONE_MAX_RANK], root[HONE_MAX_RANK + 1];
    int n = 0;
    if (!s->reduce) root[n++] = s->value;
    for (int k = 0; k < w->rank; k++) root[n++] = sub[k] = s->identity ? ~ids[k] : p->in->list[s->sub0 + k];
    hone_print_block b = hone_print_open(p, root, n);
    p->out = &b.text;
    hone_print_name_shared(p);
    store(p, s, sub);
    hone_print_close(p, &b);
    end_loops(p, made);
    p->n_taken = taken;
}

/* ---- the function -------------------------------------------------------------------------------------- */
static void survey(hone_printer *p) { /* names of all that is used, so that it can be declared first */
    const hone_instance *in = p->in;
    for (int t = 0; t < in->n_tensor; t++) hone_print_name_tensor(p, t);
    for (int k = 0; k < in->n_stage; k++) {
        const hone_stage *s = in->stage + k;
        const hone_tensor *w = in->tensor + s->tensor;
        p->stored[s->tensor] = p->strided[s->tensor] = 1;
        hone_print_note(p, s->value);
        if (s->pick >= 0) hone_print_note(p, s->pick);
        for (int q = 0; q < s->n_index + s->n_reduce; q++)
            hone_print_param(p, in->index[in->list[s->index0 + q]].extent);
        for (int q = 0; q < w->rank; q++) {
            if (!s->identity) hone_print_note(p, in->list[s->sub0 + q]);
            bool inside = s->identity ? in->index[in->list[s->index0 + q]].extent == w->dim[q]
                                      : hone_print_safe(p, w, q, in->list[s->sub0 + q]);
            if (!inside) hone_print_param(p, w->dim[q]);
        }
    }
    for (int t = 0; t < in->n_tensor; t++)
        if (p->flat[t])
            for (int k = 0; k < in->tensor[t].rank; k++) hone_print_param(p, in->tensor[t].dim[k]);
}
static void declare(hone_printer *p) {
    const hone_instance *in = p->in;
    hone_text_put(p->out, "    (void)hone_t, (void)hone_s, (void)hone_p, (void)hone_pf;\n");
    if (p->can_fail) hone_text_put(p->out, "    int bad = 0;\n");
    for (int k = 0; k < in->n_param; k++) {
        if (!p->param[k]) continue;
        if (in->param_real[k]) hone_text_put(p->out, "    const double %s = hone_pf[%d];\n", p->param[k], k);
        else hone_text_put(p->out, "    const int64_t %s = hone_p[%d];\n", p->param[k], k);
    }
    for (int t = 0; t < in->n_tensor; t++) {
        const hone_tensor *w = in->tensor + t;
        if (!p->loaded[t] && !p->stored[t]) continue;
        hone_text_put(p->out, "    %s%s *const %s = hone_t[%d];\n", p->stored[t] ? "" : "const ",
                      hone_print_element_of(w->dtype).c, p->tensor[t], t);
        if (p->strided[t] && w->rank) {
            for (int k = 0; k < w->rank; k++)
                hone_text_put(p->out, "%s%s_%d = hone_s[%d]", k ? ", " : "    const int64_t ", p->tensor[t],
                              k, t * HONE_MAX_RANK + k);
            hone_text_put(p->out, ";\n");
        }
        if (p->flat[t]) {
            hone_text_put(p->out, "    const int64_t %s_size = 1", p->tensor[t]);
            for (int k = 0; k < w->rank; k++) hone_text_put(p->out, " * %s", hone_print_param(p, w->dim[k]));
            hone_text_put(p->out, ";\n");
        }
    }
}
void hone_print_c(const hone_instance *in, const char *name, hone_text *out) {
    hone_printer p;
    if (!hone_printer_open(&p, &c11, in, out)) {
        out->failed = true;
        hone_arena_destroy(p.arena);
        return;
    }
    survey(&p);
    hone_text_put(out,
                  "int %s(void *const *hone_t, const long long *hone_s, const long long *hone_p, const "
                  "double *hone_pf) {\n",
                  name);
    declare(&p);
    for (int k = 0; k < in->n_stage;) {
        const hone_stage *s = in->stage + k;
        if (s->over < 0) {
            stage(&p, s), k++;
            continue;
        }
        const char *i = p.index[s->over_index] = hone_print_unique(&p, in->index[s->over_index].name);
        hone_print_line(&p);
        hone_text_put(out, "for (int64_t %s = 0; %s < %s; %s++) {\n", i, i,
                      hone_print_param(&p, in->index[s->over_index].extent), i);
        p.depth++;
        for (int over = s->over; k < in->n_stage && in->stage[k].over == over; k++) stage(&p, in->stage + k);
        p.depth--, p.n_taken--;
        hone_text_put(out, "    }\n");
    }
    hone_text_put(out, "    return 0;\n}\n");
    hone_arena_destroy(p.arena);
}
