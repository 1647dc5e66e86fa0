/* SPDX-License-Identifier: Apache-2.0
   build_call: from a call to types, ranks and slots: what each operand's dims are to the program. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "loops/build.h"

void hone_build_fail(hone_builder *b, int line, const char *format, ...) {
    char text[400];
    va_list v;
    va_start(v, format);
    vsnprintf(text, sizeof text, format, v);
    va_end(v);
    b->status = line ? hone_fail(HONE_BAD_INPUT, "%s (row line %d)", text, line)
                     : hone_fail(HONE_BAD_INPUT, "%s", text);
    longjmp(b->fail, 1);
}
void hone_build_memory(hone_builder *b) {
    b->status = hone_fail(HONE_NO_MEMORY, "no memory to make an instance of %s", b->p->name);
    longjmp(b->fail, 1);
}
void hone_build_later(hone_builder *b) {
    b->not_yet = true, b->status = HONE_OK;
    longjmp(b->fail, 1);
}

int hone_build_operand(const hone_builder *b, const char *name) {
    for (int k = 0; k < b->p->n_in + b->p->n_out; k++)
        if (!strcmp(b->p->operand[k].name, name)) return k;
    return -1;
}
const hone_attr_spec *hone_build_attr(const hone_builder *b, const char *alias) {
    for (int k = 0; k < b->p->n_attr; k++)
        if (!strcmp(b->p->attr[k].alias, alias)) return b->p->attr + k;
    return NULL;
}
const hone_attr *hone_build_attr_given(const hone_builder *b, const hone_attr_spec *s) {
    return hone_attr_find(b->call->attr, b->call->n_attr, s->name);
}

/* ---- types --------------------------------------------------------------------------------------------- */
static bool is_half(hone_dtype t) { return t == HONE_DTYPE_F16 || t == HONE_DTYPE_BF16; }
/* The dtype of variable `name` from the present inputs; false when two disagree. */
static bool input_type(const hone_call *c, const char *name, hone_dtype *out, int *other) {
    *out = HONE_DTYPE_NONE;
    for (int k = 0; k < c->program->n_in; k++) {
        const hone_operand *o = c->program->operand + k;
        if (o->of != HONE_OF_VAR || strcmp(o->type, name) || !c->arg[k].present || !c->arg[k].dtype) continue;
        const hone_dtype t = c->arg[k].dtype;
        if (c->mixed && *out == HONE_DTYPE_F32 && is_half(t)) continue;
        if (*out && *out != t && !(c->mixed && t == HONE_DTYPE_F32 && is_half(*out))) {
            *other = k;
            return false;
        }
        *out = t;
    }
    return true;
}
/* The same, and where no input tells, what its line says. */
static bool var_type(const hone_call *c, const char *name, hone_dtype *out, int *other) {
    if (!input_type(c, name, out, other)) return false;
    /* not given by an input: the only one allowed, or the default */
    for (int k = 0; !*out && k < c->program->n_type; k++) {
        const hone_type_var *v = c->program->type + k;
        if (strcmp(v->name, name)) continue;
        if (v->allowed && !(v->allowed & (v->allowed - 1))) *out = (hone_dtype)__builtin_ctz(v->allowed);
        else if (v->otherwise && !(*out = hone_dtype_named(v->otherwise, strlen(v->otherwise))) &&
                 strcmp(v->otherwise, name))
            return input_type(c, v->otherwise, out, other);
    }
    return true;
}
static hone_dtype attr_type(const hone_call *c, const char *name) {
    const hone_attr *a = hone_attr_find(c->attr, c->n_attr, name);
    if (a && a->i && hone_dtype_valid(a->i[0])) return (hone_dtype)a->i[0];
    for (int k = 0; k < c->program->n_attr; k++) {
        const hone_attr_spec *s = c->program->attr + k;
        hone_dtype d = HONE_DTYPE_NONE;
        int other;
        if (strcmp(s->name, name)) continue;
        return !s->s ? (hone_dtype)s->i : var_type(c, s->s, &d, &other) ? d : HONE_DTYPE_NONE;
    }
    return HONE_DTYPE_NONE;
}
static hone_status check_types(const hone_call *c) {
    const hone_program *p = c->program;
    for (int k = 0; k < p->n_in; k++) {
        const hone_operand *o = p->operand + k;
        hone_dtype t = c->arg[k].dtype, v;
        int other = k;
        if (!c->arg[k].present || !t) continue;
        if (o->of == HONE_OF_DTYPE && t != o->dtype)
            return hone_fail(HONE_BAD_INPUT, "input '%s' is %s, %s wants %s", o->name, hone_dtypes[t].name,
                             p->name, hone_dtypes[o->dtype].name);
        if (o->of != HONE_OF_VAR) continue;
        if (!var_type(c, o->type, &v, &other))
            return hone_fail(HONE_BAD_INPUT, "input '%s' is %s, but another input of the same type %s is %s",
                             p->operand[other].name, hone_dtypes[c->arg[other].dtype].name, o->type,
                             hone_dtypes[v].name);
        for (int n = 0; n < p->n_type; n++)
            if (!strcmp(p->type[n].name, o->type) && !(p->type[n].allowed >> t & 1))
                return hone_fail(HONE_BAD_INPUT, "input '%s' is %s, which %s %d does not take", o->name,
                                 hone_dtypes[t].name, p->name, p->since);
    }
    return HONE_OK;
}
hone_status hone_call_dtypes(const hone_call *c, hone_dtype *out) {
    const hone_program *p = c->program;
    HONE_TRY(check_types(c));
    for (int k = 0; k < p->n_out; k++) {
        const hone_operand *o = p->operand + p->n_in + k;
        int other;
        out[k] = HONE_DTYPE_NONE;
        if (o->of == HONE_OF_DTYPE) out[k] = o->dtype;
        if (o->of == HONE_OF_ATTR) out[k] = attr_type(c, o->type);
        if (o->of == HONE_OF_VAR && !var_type(c, o->type, out + k, &other))
            return hone_fail(HONE_BUG, "types of %s disagree", p->name);
    }
    return HONE_OK;
}
hone_dtype hone_build_type(hone_builder *b, const hone_operand *o) {
    int other;
    hone_dtype t = o->dtype;
    if (o->of == HONE_OF_ATTR) t = attr_type(b->call, o->type);
    if (o->of == HONE_OF_VAR && !var_type(b->call, o->type, &t, &other)) t = HONE_DTYPE_NONE;
    return t;
}
void hone_build_types(hone_builder *b) {
    if ((b->status = check_types(b->call))) longjmp(b->fail, 1);
    b->weak_real = HONE_F32;
    for (int k = 0; k < b->p->n_in; k++) {
        const hone_arg *a = b->call->arg + k;
        if (!a->present) {
            if (!b->p->operand[k].optional)
                hone_build_fail(b, 0, "input '%s' is missing; %s needs it", b->p->operand[k].name,
                                b->p->name);
            continue;
        }
        if (!a->dtype) hone_build_later(b);
        if (hone_dtypes[a->dtype].kind == HONE_KIND_COMPLEX)
            hone_build_fail(b, 0, "input '%s' is %s: complex numbers are not supported",
                            b->p->operand[k].name, hone_dtypes[a->dtype].name);
        if (a->dtype == HONE_DTYPE_F64) b->weak_real = HONE_F64;
    }
    for (int k = 0; k < b->p->n_attr; k++)
        if (b->p->attr[k].required && !hone_build_attr_given(b, b->p->attr + k))
            hone_build_fail(b, 0, "attribute '%s' is missing; %s needs it", b->p->attr[k].name, b->p->name);
}

/* ---- ranks --------------------------------------------------------------------------------------------- */
int hone_build_rank(hone_builder *b, const char *group) {
    for (int k = 0; k < b->ranks.n; k++)
        if (!strcmp(b->ranks.at[k].name, group)) return b->ranks.at[k].rank;
    return -1;
}
static void set_rank(hone_builder *b, const char *group, int rank, int line) {
    if (rank < 0 || rank > HONE_MAX_RANK) {
        hone_text t = {0};
        char ranks[128];
        hone_broken_ranks(b->call, &t);
        snprintf(ranks, sizeof ranks, "%s", t.text ? t.text : "");
        hone_text_free(&t);
        hone_build_fail(b, line, "%s: too %s for %s, %s.. would have %d", ranks, rank < 0 ? "few" : "many",
                        b->p->name, group, rank);
    }
    hone_group_rank g = {group, rank};
    if (!hone_push(&b->ranks, g)) hone_build_memory(b);
}
static bool is_group(const hone_entry *e) {
    return e->kind == HONE_DIM_PLAIN && e->expr->kind == HONE_T_NAME && e->expr->group;
}
static int vector_of(hone_builder *b, const char *name) {
    hone_tree t = {.kind = HONE_T_NAME, .name = name};
    int v = hone_build_vector(b, &t);
    if (v < 0) hone_build_fail(b, b->p->line, "'%s' is no vector", name);
    return v;
}
/* How many dims `at` names, of an operand with `rank` dims; -1: not known yet. */
static int64_t axes_count(hone_builder *b, const char *at, int rank) {
    int v = vector_of(b, at); /* first: it may move b->vector.at */
    int64_t n = hone_vector_length(b->vector.at, v, b->call);
    if (n) return n;
    return hone_attr_int(b->call->attr, b->call->n_attr, "noop_with_empty_axes", 0) ? 0 : rank;
}
/* false: depends on what is not known yet */
static bool decided(hone_builder *b, const hone_tree *t, double *v) {
    jmp_buf save;
    memcpy(&save, &b->fail, sizeof save);
    int depth = b->depth;
    volatile bool known = false;
    if (!setjmp(b->fail)) known = hone_build_const(b, hone_build_expr(b, t, NULL, -1), v);
    memcpy(&b->fail, &save, sizeof save);
    /* not to be got over: what it interrupted may be half done */
    if (b->status == HONE_NO_MEMORY) hone_build_memory(b);
    b->not_yet = false, b->status = HONE_OK, b->depth = depth;
    return known;
}
/* a condition, as far as it can be decided */
static bool holds(hone_builder *b, const hone_tree *cond, bool *known) {
    double v = 0;
    *known = decided(b, cond, &v);
    return *known && v != 0;
}
static bool activate(hone_builder *b, const hone_line *l) { /* true: all conditions could be decided */
    bool all = true;
    for (; l; l = l->next) {
        if (l->kind == HONE_LINE_WHEN) {
            bool known, yes = holds(b, l->expr, &known);
            all &= known;
            if (known && !activate(b, yes ? l->block : l->other)) all = false;
        } else if (!hone_push(&b->lines, l)) hone_build_memory(b);
    }
    return all;
}
/* rank of the first group named in it; -1. A dim's line may name its own group */
static int first_group(hone_builder *b, const hone_tree *t, int deep) {
    if (!t || deep > 8) return -1;
    if (t->kind == HONE_T_NAME && t->group) {
        int r = hone_build_rank(b, t->name);
        if (r >= 0) return r;
        const hone_line *l = hone_build_short(b, t->name, true);
        if (l) return first_group(b, l->expr, deep + 1);
    }
    for (int k = 0; k < t->n_arg; k++) {
        int r = first_group(b, t->arg[k], deep);
        if (r >= 0) return r;
    }
    int r = first_group(b, t->body, deep);
    return r >= 0 ? r : first_group(b, t->other, deep);
}
static bool has_rank_line(const hone_builder *b, const char *group) {
    for (int k = 0; k < b->lines.n; k++)
        if (b->lines.at[k]->kind == HONE_LINE_RANK && !strcmp(b->lines.at[k]->name, group)) return true;
    return false;
}
/* One round of finding ranks; true when something new was found. */
static bool find_ranks(hone_builder *b) {
    int before = b->ranks.n;
    for (int k = 0; k < b->lines.n; k++) {
        const hone_line *l = b->lines.at[k];
        if (l->kind == HONE_LINE_RANK && hone_build_rank(b, l->name) < 0) {
            double v = 0;
            if (!decided(b, l->expr, &v)) continue;
            bool open = false;
            /* counts from the end of the operand that holds the group */
            for (int o = 0; o < b->p->n_in && v < 0 && !open; o++)
                for (int e = 0; e < b->p->operand[o].n_entry; e++) {
                    if (!is_group(b->p->operand[o].entry + e) ||
                        strcmp(b->p->operand[o].entry[e].expr->name, l->name) || !b->call->arg[o].present)
                        continue;
                    if (b->call->arg[o].rank < 0) open = true;
                    else v += b->call->arg[o].rank;
                    break;
                }
            if (open) continue; /* the operand's rank is not known yet */
            /* hostile attributes */
            set_rank(b, l->name,
                     v >= -1 && v <= HONE_MAX_RANK ? (int)v
                     : v > 0                       ? HONE_MAX_RANK + 1
                                                   : -1,
                     l->line);
        }
        if (l->kind == HONE_LINE_DIM && l->group && hone_build_rank(b, l->name) < 0) {
            int r = first_group(b, l->expr, 0);
            if (r >= 0) set_rank(b, l->name, r, l->line);
        }
    }
    for (int k = 0; k < b->p->n_in; k++) {
        const hone_operand *o = b->p->operand + k;
        const hone_arg *a = b->call->arg + k;
        if (!a->present || !o->shaped || a->rank < 0) continue;
        int left = a->rank, open = -1;
        bool two = false;
        for (int e = 0; e < o->n_entry; e++) {
            const hone_entry *n = o->entry + e;
            if (is_group(n)) {
                int r = hone_build_rank(b, n->expr->name);
                if (n->at && r < 0) {
                    int64_t count = axes_count(b, n->at, a->rank);
                    if (count >= 0 && count <= a->rank)
                        set_rank(b, n->expr->name, r = (int)count, b->p->line);
                    else if (count > a->rank)
                        hone_build_fail(b, 0, "'%s' names %lld axes of '%s', which has %d dims", n->at,
                                        (long long)count, o->name, a->rank);
                }
                if (r >= 0) left -= r;
                else two = open >= 0, open = e;
            } else left--;
        }
        if (open < 0 || two) continue;
        const hone_entry *n = o->entry + open;
        if (n->broadcast) continue; /* below */
        if (left < 0) {
            const hone_attr *axis = hone_attr_find(b->call->attr, b->call->n_attr, "axis");
            if (axis && axis->kind == HONE_ATTR_INT)
                hone_build_fail(b, 0, "axis %lld is outside of '%s', which has %d dims",
                                (long long)axis->i[0], o->name, a->rank);
            hone_build_fail(b, 0, "input '%s' has %d dims, too few for %s", o->name, a->rank, b->p->name);
        }
        set_rank(b, n->expr->name, left, b->p->line);
    }
    if (b->ranks.n > before) return true;
    for (int k = 0; k < b->p->n_in; k++) /* broadcast groups: the longest of all that are given */
        for (int e = 0; e < b->p->operand[k].n_entry; e++) {
            const hone_entry *n = b->p->operand[k].entry + e;
            if (!is_group(n) || !n->broadcast || hone_build_rank(b, n->expr->name) >= 0 ||
                has_rank_line(b, n->expr->name))
                continue;
            int most = 0;
            bool known = true;
            for (int o = 0; o < b->p->n_in; o++)
                for (int f = 0; f < b->p->operand[o].n_entry; f++) {
                    const hone_entry *m = b->p->operand[o].entry + f;
                    if (!is_group(m) || strcmp(m->expr->name, n->expr->name) || !b->call->arg[o].present)
                        continue;
                    int r = b->call->arg[o].rank - (b->p->operand[o].n_entry - 1);
                    if (b->call->arg[o].rank < 0) known = false;
                    if (r > most) most = r;
                }
            if (known) {
                set_rank(b, n->expr->name, most, b->p->line);
                return true;
            }
        }
    return false;
}
void hone_build_ranks(hone_builder *b) {
    bool all;
    int lines = -1;
    do {
        b->lines.n = 0;
        all = activate(b, b->p->lines);
        bool more = find_ranks(b);
        if (!more && b->lines.n == lines) break;
        lines = b->lines.n;
    } while (true);
    /* a condition that stays open: a content or rank that is not known yet, or a mistake in the row; say
       which */
    if (!all) {
        for (const hone_line *l = b->p->lines; l; l = l->next)
            if (l->kind == HONE_LINE_WHEN) {
                double v;
                if (!hone_build_const(b, hone_build_expr(b, l->expr, NULL, -1), &v))
                    hone_build_fail(
                        b, l->line,
                        "a condition of %s does not depend on attributes, types, presence and ranks alone",
                        b->p->name);
            }
        hone_build_later(b);
    }
    /* a rule that ranks alone break: its own words, before what follows from it goes wrong */
    for (int k = 0; k < b->lines.n; k++) {
        const hone_line *l = b->lines.at[k];
        bool known = true;
        if (l->kind == HONE_LINE_NEED && !holds(b, l->expr, &known) && known) {
            b->status = hone_broken_need(b->call, l->text);
            longjmp(b->fail, 1);
        }
    }
}

/* ---- slots --------------------------------------------------------------------------------------------- */
static int add_slot(hone_builder *b, hone_slots *s, hone_slot slot) {
    if (s->n == HONE_MAX_RANK) hone_build_fail(b, 0, "more than %d dims", HONE_MAX_RANK);
    s->slot[s->n] = slot;
    return s->n++;
}
static void add_dim(hone_builder *b, hone_tensor *t, bool broadcast) {
    if (t->rank == HONE_MAX_RANK) hone_build_fail(b, 0, "'%s' has more than %d dims", t->name, HONE_MAX_RANK);
    t->dim[t->rank] = -1, t->broadcast[t->rank++] = broadcast;
}
/* Expands the entries of operand k. Sizes are filled in later, when dims can be solved. */
static void slots_of(hone_builder *b, int k) {
    const hone_operand *o = b->p->operand + k;
    const hone_arg *a = b->call->arg + k;
    hone_slots *s = b->slots + k;
    s->slot = HONE_NEW_N(b->arena, hone_slot, HONE_MAX_RANK);
    if (!s->slot) hone_build_memory(b);
    hone_tensor t = {.name = o->name,
                     .role = o->output ? HONE_ROLE_OUT : HONE_ROLE_IN,
                     .operand = k,
                     .dtype = o->output ? hone_build_type(b, o) : a->dtype};
    if (!hone_dtype_valid(t.dtype))
        hone_build_fail(b, 0, "the type of '%s' cannot be told, or there is none of that number", o->name);
    if (hone_dtypes[t.dtype].kind == HONE_KIND_COMPLEX)
        hone_build_fail(b, 0, "'%s' is %s: complex numbers are not supported", o->name,
                        hone_dtypes[t.dtype].name);
    int rest = 0;
    const char *at_name = NULL;
    for (int e = 0; e < o->n_entry; e++)
        if (o->entry[e].at) at_name = o->entry[e].at;
    int at = at_name ? vector_of(b, at_name) : -1, at_members = 0;
    for (int e = 0; e < o->n_entry; e++) {
        const hone_entry *n = o->entry + e;
        int members = 1;
        if (is_group(n)) {
            members = hone_build_rank(b, n->expr->name);
            if (members < 0) hone_build_later(b);
        }
        if (n->kind == HONE_DIM_ONES) {
            bool known = true;
            if (n->cond && !holds(b, n->cond, &known)) members = 0;
            if (!known) hone_build_later(b);
            if (members && n->like) members = hone_build_rank(b, n->like);
            if (members && n->at) {
                int64_t len = hone_vector_length(b->vector.at, at, b->call);
                if (len < 0) hone_build_later(b);
                /* as many as the input's group at the same axes has */
                members = (int)len;
                for (int i = 0; i < b->p->n_in; i++)
                    for (int f = 0; f < b->p->operand[i].n_entry; f++)
                        if (is_group(b->p->operand[i].entry + f) && b->p->operand[i].entry[f].at &&
                            !strcmp(b->p->operand[i].entry[f].at, n->at))
                            members = hone_build_rank(b, b->p->operand[i].entry[f].expr->name);
            }
        }
        if (n->at) at_members += members;
        for (int m = 0; m < members; m++) {
            hone_slot slot = {.broadcast = n->broadcast,
                              .ones = n->kind == HONE_DIM_ONES,
                              .free_dim = n->kind == HONE_DIM_FREE,
                              .at = -1,
                              .part0 = t.rank};
            if (at >= 0) slot.at = at, slot.nth = n->at ? m : -1 - rest++;
            if (n->kind == HONE_DIM_PLAIN) {
                slot.n_part = n->expr->kind == HONE_T_TUPLE ? n->expr->n_arg : 1;
                for (int q = 0; q < slot.n_part; q++) add_dim(b, &t, n->broadcast);
            } else if (n->kind == HONE_DIM_FREE) slot.n_part = 1, add_dim(b, &t, false);
            add_slot(b, s, slot);
        }
    }
    /* the named axes are gone (keepdims = 0): the rest stands in its own order */
    if (o->output && !at_members)
        for (int m = 0; m < s->n; m++) s->slot[m].at = -1;
    /* which actual axis each is; leading ~ dims may be missing */
    int missing = 0;
    if (!o->output) {
        if (a->rank < 0) hone_build_later(b);
        missing = s->n - a->rank;
        for (int m = 0; m < missing; m++)
            if (!s->slot[m].broadcast)
                hone_build_fail(b, 0, "input '%s' has %d dims; %s wants %d", o->name, a->rank, b->p->name,
                                s->n);
        if (missing < 0) {
            bool scalar = o->n_entry == 0;
            if (!scalar && s->n == 1 && s->slot[0].broadcast) scalar = false;
            if (!scalar)
                hone_build_fail(b, 0, "input '%s' has %d dims; %s wants %d", o->name, a->rank, b->p->name,
                                s->n);
        }
    }
    for (int m = 0; m < s->n; m++) s->slot[m].axis = m < missing ? -1 : m - (missing > 0 ? missing : 0);
    if (!hone_push(&b->tensor, t)) hone_build_memory(b);
    b->operand_tensor[k] = b->tensor.n - 1;
}
/* For messages: "K", "G * C" */
static const char *name_of_size(hone_builder *b, const hone_tree *t) {
    if (t->kind == HONE_T_NAME) return t->name;
    if (t->kind != HONE_T_TUPLE || t->n_arg != 2) return "by the others";
    const hone_tree *left = t->arg[0], *right = t->arg[1];
    if (!left || !right || left->kind != HONE_T_NAME || right->kind != HONE_T_NAME) return "by the others";
    const char *text = hone_arena_text(b->arena, "%s * %s", left->name, right->name);
    if (!text) hone_build_memory(b);
    return text;
}
static void size_of(hone_builder *b, int k, int e, int m, hone_slot *slot, int number) {
    const hone_operand *o = b->p->operand + k;
    const hone_entry *n = o->entry + e;
    int32_t size = -1;
    for (int q = 0; q < slot->n_part; q++) {
        const hone_tree *tree = n->expr && n->expr->kind == HONE_T_TUPLE ? n->expr->arg[q] : n->expr;
        int32_t x;
        if (n->kind == HONE_DIM_FREE)
            x = hone_build_x(b, (hone_x){.kind = HONE_X_CONST, .type = HONE_I64, .k.i64 = HONE_DIM_UNKNOWN},
                             true);
        else
            x = hone_build_typed(b, hone_build_pure(b, tree, NULL, m),
                                 HONE_I64); /* typed, so that an index over this dim has the same parameter */
        int32_t param = hone_build_param(b, x, tree && tree->kind == HONE_T_NAME ? tree->name : "");
        b->tensor.at[b->operand_tensor[k]].dim[slot->part0 + q] = param;
        size = size < 0 ? x : hone_build_fn(b, HONE_FN_mul, size, x, -1);
    }
    if (!o->output && size >= 0 && n->expr) {
        hone_check c = {k, number, size, slot->broadcast, name_of_size(b, n->expr)};
        if (!hone_push(&b->check, c)) hone_build_memory(b);
    }
}
void hone_build_slots(hone_builder *b) {
    int n = b->p->n_in + b->p->n_out;
    b->slots = HONE_NEW_N(b->arena, hone_slots, n + 1);
    b->operand_tensor = HONE_NEW_N(b->arena, int, n + 1);
    if (!b->slots || !b->operand_tensor) hone_build_memory(b);
    for (int k = 0; k < n; k++) {
        b->operand_tensor[k] = -1;
        const hone_operand *o = b->p->operand + k;
        if (o->variadic) hone_build_fail(b, 0, "'%s' is variadic; %s has no program", o->name, b->p->name);
        if (b->call->arg[k].present && o->shaped) slots_of(b, k);
    }
    for (int k = 0; k < n; k++) {
        if (b->operand_tensor[k] < 0) continue;
        const hone_operand *o = b->p->operand + k;
        int number = 0;
        for (int e = 0; e < o->n_entry; e++) {
            const hone_entry *en = o->entry + e;
            if (en->kind == HONE_DIM_ONES) {
                while (number < b->slots[k].n && b->slots[k].slot[number].ones) number++;
                continue;
            }
            int members = is_group(en) ? hone_build_rank(b, en->expr->name) : 1;
            for (int m = 0; m < members; m++, number++)
                size_of(b, k, e, is_group(en) ? m : -1, b->slots[k].slot + number, number);
        }
    }
}
