/* SPDX-License-Identifier: Apache-2.0
   parse: tokens of one row into a hone_program. Recursive descent, one token of look-ahead; depth is bounded,
   the text may be a user's. */
#include "loops/parse.h"

#include <ctype.h>
#include <setjmp.h>
#include <string.h>

#include "loops/lexer.h"

enum { MAX_DEPTH = 200 };

typedef struct {
    hone_arena *arena, *scratch;
    const char *source;
    const hone_token *t;
    hone_program *p;
    const hone_snippet *snippets;
    int depth, used; /* used: nesting of `use` */
    jmp_buf fail;
    hone_status status;
} parser;

static void __attribute__((noreturn)) wrong(parser *p, const char *what) {
    const hone_token *t = p->t;
    const char *near = t->kind == HONE_TOK_END || t->kind == HONE_TOK_LINE ? "the end of the line"
                       : t->kind == HONE_TOK_NUMBER                        ? "a number"
                                                                           : t->text;
    p->status = hone_fail(HONE_BAD_INPUT, "%s:%d:%d: op %s: %s, near '%s'", p->source, t->line, t->column,
                          p->p && p->p->name ? p->p->name : "?", what, near);
    longjmp(p->fail, 1);
}
static void __attribute__((noreturn)) memory(parser *p) {
    p->status = hone_fail(HONE_NO_MEMORY, "%s: out of memory", p->source);
    longjmp(p->fail, 1);
}
static void *make(parser *p, size_t bytes) {
    void *m = hone_arena_alloc(p->arena, bytes);
    if (!m) memory(p);
    return m;
}
static bool is(const parser *p, const char *mark) {
    return p->t->kind == HONE_TOK_MARK && !strcmp(p->t->text, mark);
}
static bool word(const parser *p, const char *w) {
    return p->t->kind == HONE_TOK_NAME && !strcmp(p->t->text, w);
}
static bool take(parser *p, const char *mark) { return is(p, mark) ? (p->t++, true) : false; }
static bool take_word(parser *p, const char *w) { return word(p, w) ? (p->t++, true) : false; }
static void want(parser *p, const char *mark) {
    char m[32];
    if (!take(p, mark)) { memcpy(m, "expected ", 9), m[9] = 0, strncat(m, mark, 8), wrong(p, m); }
}
static const char *name(parser *p) {
    if (p->t->kind != HONE_TOK_NAME) wrong(p, "expected a name");
    return (p->t++)->text;
}
static bool at_end(const parser *p) { return p->t->kind == HONE_TOK_END || p->t->kind == HONE_TOK_LINE; }

/* ---- expressions --------------------------------------------------------------------------------------- */
static hone_tree *expr(parser *p, int strength);
static hone_tree *tree(parser *p, hone_tree_kind kind) {
    hone_tree *t = make(p, sizeof *t);
    t->kind = kind, t->line = p->t->line;
    return t;
}
static hone_tree *with2(parser *p, hone_tree_kind kind, const char *nm, hone_tree *a, hone_tree *b) {
    hone_tree *t = tree(p, kind);
    t->name = nm, t->n_arg = b ? 2 : 1;
    t->arg = make(p, 2 * sizeof *t->arg);
    t->arg[0] = a, t->arg[1] = b;
    return t;
}
/* A list of up to 64 trees, `close` included. Kept in a fixed array so that a failed parse leaks nothing. */
static void list(parser *p, hone_tree *into, const char *close, hone_tree *(*item)(parser *)) {
    hone_tree *v[64];
    int n = 0;
    while (!take(p, close)) {
        if (n && !take(p, ",")) wrong(p, "expected ','");
        if (n == 64) wrong(p, "more than 64 items");
        v[n++] = item(p);
    }
    into->arg = make(p, sizeof *v * (size_t)(n + 1));
    memcpy(into->arg, v, sizeof *v * (size_t)n);
    into->n_arg = n;
}
static hone_tree *index_item(parser *p) { /* k, k.., k : e, k : e max c */
    hone_tree *t = tree(p, HONE_T_INDEX);
    t->group = p->t->group, t->name = name(p);
    if (take(p, ":")) {
        t->body = expr(p, 4);
        if (take_word(p, "max")) t->other = expr(p, 4);
    }
    return t;
}
static hone_tree *subscript(parser *p) {
    if (is(p, ":")) {
        hone_tree *t = tree(p, HONE_T_COLON);
        p->t++;
        return t;
    }
    hone_tree *e = expr(p, 0);
    if (e->kind == HONE_T_NAME && is(p, ":")) { /* in a stage's target: k : extent */
        p->t++;
        e->kind = HONE_T_INDEX;
        e->body = expr(p, 4);
        if (take_word(p, "max")) e->other = expr(p, 4);
    }
    return e;
}
static hone_tree *item(parser *p) { return subscript(p); }

static hone_tree *load(parser *p, const char *nm) { /* after '[' */
    hone_tree *t = tree(p, HONE_T_LOAD);
    t->name = nm;
    list(p, t, "]", item);
    if (take(p, "..")) t->spread = true;
    return t;
}
static bool starts_operand(const parser *p) {
    return p->t->kind == HONE_TOK_NAME || p->t->kind == HONE_TOK_NUMBER || is(p, "(");
}
/* at '(' after max or min: is it a reduction? yes if an operand follows the bracket */
static bool reduction_follows(parser *p) {
    int depth = 0;
    const hone_token *t = p->t;
    for (; t->kind != HONE_TOK_END && t->kind != HONE_TOK_LINE; t++) {
        if (t->kind != HONE_TOK_MARK) continue;
        if (*t->text == '(' || *t->text == '[') depth++;
        if ((*t->text == ')' || *t->text == ']') && --depth == 0) {
            parser q = {.t = t + 1};
            return starts_operand(&q) && !word(&q, "else") && !word(&q, "max") && !word(&q, "if") &&
                   !word(&q, "at");
        }
    }
    return false;
}
static hone_tree *postfix_else(parser *p, hone_tree *t);
static hone_tree *primary(parser *p) {
    if (++p->depth > MAX_DEPTH) wrong(p, "nested too deeply");
    hone_tree *t;
    if (p->t->kind == HONE_TOK_NUMBER) {
        t = tree(p, HONE_T_NUMBER);
        t->real = p->t->real;
        if (t->real) t->k.f = p->t->f;
        else t->k.i = p->t->i;
        p->t++;
    } else if (p->t->kind == HONE_TOK_STRING) {
        t = tree(p, HONE_T_TEXT), t->name = (p->t++)->text;
    } else if (take(p, "(")) {
        t = expr(p, 0);
        if (is(p, ",")) { /* a tuple */
            hone_tree *first = t, *rest = tree(p, HONE_T_TUPLE);
            p->t++;
            list(p, rest, ")", item);
            t = tree(p, HONE_T_TUPLE);
            t->arg = make(p, sizeof *t->arg * (size_t)(rest->n_arg + 1));
            t->arg[0] = first, t->n_arg = rest->n_arg + 1;
            memcpy(t->arg + 1, rest->arg, sizeof *t->arg * (size_t)rest->n_arg);
        } else want(p, ")");
    } else if (p->t->kind == HONE_TOK_NAME) {
        bool group = p->t->group;
        const char *nm = name(p);
        if (!group && is(p, "[")) {
            p->t++, t = load(p, nm);
        } else if (is(p, "(")) {
            bool folds = !strcmp(nm, "max") || !strcmp(nm, "min");
            bool always =
                !strcmp(nm, "sum") || !strcmp(nm, "prod") || !strcmp(nm, "argmax") || !strcmp(nm, "argmin");
            if (!group && (always || (folds && reduction_follows(p)))) {
                p->t++;
                t = tree(p, HONE_T_REDUCE), t->name = nm;
                list(p, t, ")", index_item);
                t->body = expr(p, 6); /* the product after it */
                if (!strncmp(nm, "arg", 3)) want(p, ":"), t->other = expr(p, 4);
            } else {
                p->t++;
                t = tree(p, HONE_T_CALL), t->name = nm, t->group = group;
                p->p->random |= !strcmp(nm, "uniform") || !strcmp(nm, "normal");
                list(p, t, ")", item);
                /* flat(x)[e] */
                if (!strcmp(nm, "flat") && t->n_arg == 1 && t->arg[0]->kind == HONE_T_NAME && is(p, "[")) {
                    p->t++;
                    t = load(p, t->arg[0]->name), t->flat = true;
                } else if (!strcmp(nm, "dims") && t->n_arg == 1 && is(p, "[")) { /* dims(x)[e] */
                    p->t++;
                    hone_tree *l = load(p, "dims");
                    l->body = t, t = l;
                }
            }
        } else {
            t = tree(p, HONE_T_NAME), t->name = nm, t->group = group;
        }
    } else wrong(p, "expected an expression");
    p->depth--;
    return postfix_else(p, t);
}
static hone_tree *unary(parser *p) {
    if (is(p, "-") || is(p, "!")) {
        if (++p->depth > MAX_DEPTH) wrong(p, "nested too deeply");
        const char *op = (p->t++)->text;
        hone_tree *e = unary(p);
        p->depth--;
        if (e->kind == HONE_T_NUMBER && *op == '-') {
            e->real ? (e->k.f = -e->k.f) : (e->k.i = -e->k.i);
            return e;
        }
        return with2(p, HONE_T_UNARY, op, e, NULL);
    }
    return primary(p);
}
static hone_tree *postfix_else(parser *p, hone_tree *t) {
    if (!word(p, "else")) return t;
    if (p->t[1].kind == HONE_TOK_NAME && !strcmp(p->t[1].text, "skip")) return t; /* the store's */
    p->t++;
    hone_tree *otherwise = unary(p);
    if (t->kind == HONE_T_LOAD) {
        t->other = otherwise;
        return t;
    }
    return with2(p, HONE_T_CALL, "else", t, otherwise);
}
static const struct {
    const char *op;
    int strength;
} binaries[] = {{"||", 0}, {"&&", 1}, {"|", 2},  {"^", 2}, {"&", 2},  {"==", 3},
                {"!=", 3}, {"<", 3},  {"<=", 3}, {">", 3}, {">=", 3}, {"<<", 4},
                {">>", 4}, {"+", 5},  {"-", 5},  {"*", 6}, {"/", 6},  {"%", 6}};
/* strength: 0 everything … 4 sums and shifts, 5 sums, 6 only products without / and % (what a reduction
   takes). */
static hone_tree *expr(parser *p, int strength) {
    if (++p->depth > MAX_DEPTH) wrong(p, "nested too deeply");
    hone_tree *left = unary(p);
    for (;;) {
        int found = -1;
        for (int k = 0; k < (int)(sizeof binaries / sizeof *binaries); k++)
            if (is(p, binaries[k].op)) found = k;
        if (found < 0 || binaries[found].strength < strength) break;
        const char *op = binaries[found].op;
        if (strength == 6 && *op != '*') break;
        p->t++;
        hone_tree *right = binaries[found].strength == 6
                               ? unary(p)
                               : expr(p, binaries[found].strength + 1 > 6 ? 6 : binaries[found].strength + 1);
        if (binaries[found].strength == 5) { /* the right side of + is a whole product, / and % included */
            for (;;) {
                const char *o = is(p, "*") ? "*" : is(p, "/") ? "/" : is(p, "%") ? "%" : NULL;
                if (!o) break;
                p->t++;
                right = with2(p, HONE_T_BINARY, o, right, unary(p));
            }
        }
        left = with2(p, HONE_T_BINARY, op, left, right);
    }
    p->depth--;
    return left;
}

/* ---- the head of a row --------------------------------------------------------------------------------- */
static void entry(parser *p, hone_entry *e) {
    if (take(p, "?")) {
        e->kind = HONE_DIM_FREE;
        return;
    }
    if (p->t->kind == HONE_TOK_NUMBER && !p->t->real && p->t->i == 1) {
        e->kind = HONE_DIM_ONES, p->t++;
        if (take(p, "..")) {
            if (take_word(p, "for")) e->like = name(p);
            else if (take_word(p, "at")) e->at = name(p);
            else wrong(p, "1.. needs 'at' or 'for'");
        }
        if (take_word(p, "if")) e->cond = expr(p, 0);
        return;
    }
    e->broadcast = take(p, "~");
    e->expr = expr(p, 0);
    if (take_word(p, "at")) e->at = name(p);
}
static void operand(parser *p, hone_operand *o, bool output) {
    o->output = output, o->name = name(p), o->variadic = take(p, "*");
    if (take(p, "[")) {
        hone_entry v[HONE_MAX_RANK] = {0};
        o->shaped = true;
        while (!take(p, "]")) {
            if (o->n_entry && !take(p, ",")) wrong(p, "expected ','");
            if (o->n_entry == HONE_MAX_RANK) wrong(p, "too many dims");
            entry(p, v + o->n_entry++);
        }
        o->entry = make(p, sizeof *v * (size_t)(o->n_entry + 1));
        memcpy(o->entry, v, sizeof *v * (size_t)o->n_entry);
    }
    want(p, ":");
    const char *type = name(p);
    static const struct {
        const char *name;
        hone_of of;
    } kinds[] = {{"any", HONE_OF_ANY}, {"seq", HONE_OF_SEQ}, {"opt", HONE_OF_OPT}, {"map", HONE_OF_MAP}};
    o->of = HONE_OF_VAR, o->type = type;
    if ((o->dtype = hone_dtype_named(type, strlen(type)))) o->of = HONE_OF_DTYPE;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (!strcmp(type, kinds[k].name)) o->of = kinds[k].of;
    for (;;) {
        if (take(p, "?")) o->optional = true;
        else if (take_word(p, "contents")) o->contents = true;
        else if (take(p, "=")) o->otherwise = unary(p), o->optional = true;
        else break;
    }
}
static void head(parser *p) {
    hone_program *g = p->p;
    enum { MAX_OPERANDS = 48 };
    hone_operand v[MAX_OPERANDS] = {0};
    const char *part = name(p), *domain = "";
    while (take(p, ".")) { /* com.microsoft.Gelu */
        domain = *domain ? hone_arena_text(p->arena, "%s.%s", domain, part) : part;
        part = name(p);
        if (!domain) memory(p);
    }
    g->name = part, g->domain = strcmp(domain, "ai.onnx") ? domain : "";
    if (p->t->kind != HONE_TOK_NUMBER) wrong(p, "expected the version");
    g->since = (int)(p->t++)->i;
    want(p, "(");
    while (!take(p, ")")) {
        if (g->n_in && !take(p, ",")) wrong(p, "expected ','");
        if (g->n_in == MAX_OPERANDS) wrong(p, "too many operands");
        operand(p, v + g->n_in++, false);
    }
    want(p, "->");
    do {
        if (g->n_in + g->n_out == MAX_OPERANDS) wrong(p, "too many operands");
        operand(p, v + g->n_in + g->n_out++, true);
    } while (take(p, ","));
    if (!at_end(p)) wrong(p, "expected the end of the line");
    g->operand = make(p, sizeof *v * (size_t)(g->n_in + g->n_out + 1));
    memcpy(g->operand, v, sizeof *v * (size_t)(g->n_in + g->n_out));
}

/* ---- lines --------------------------------------------------------------------------------------------- */
static void attrs(parser *p) {
    static const struct {
        const char *name;
        hone_attr_kind kind;
    } kinds[] = {{"int", HONE_ATTR_INT},   {"float", HONE_ATTR_FLOAT},   {"string", HONE_ATTR_STRING},
                 {"ints", HONE_ATTR_INTS}, {"floats", HONE_ATTR_FLOATS}, {"strings", HONE_ATTR_STRINGS},
                 {"type", HONE_ATTR_TYPE}, {"tensor", HONE_ATTR_TENSOR}, {"body", HONE_ATTR_BODY}};
    hone_program *g = p->p;
    do {
        hone_attr_spec a = {.group = p->t->group};
        a.name = a.alias = name(p);
        if (take_word(p, "as")) a.alias = name(p);
        a.kind = a.group ? HONE_ATTR_INTS : HONE_ATTR_INT;
        bool typed = take(p, ":");
        if (typed) {
            const char *k = name(p);
            size_t n = 0;
            while (n < sizeof kinds / sizeof *kinds && strcmp(k, kinds[n].name)) n++;
            if (n == sizeof kinds / sizeof *kinds)
                wrong(p, "expected int, float, string, ints, floats, strings, type, tensor or body");
            a.kind = kinds[n].kind;
        }
        if (take(p, "!")) a.required = true;
        if (take(p, "=")) {
            a.has_default = true;
            bool minus = take(p, "-");
            if (p->t->kind == HONE_TOK_STRING) {
                if (!typed) a.kind = HONE_ATTR_STRING;
                a.s = p->t->text;
            } else if (p->t->kind == HONE_TOK_NUMBER) {
                if (p->t->real && !typed) a.kind = a.group ? HONE_ATTR_FLOATS : HONE_ATTR_FLOAT;
                a.f = minus ? -p->t->f : p->t->f,
                a.i = p->t->real ? hone_ctype_cast(HONE_I64, HONE_F64, (hone_scalar){.f64 = a.f}).i64
                      : minus    ? -p->t->i
                                 : p->t->i;
            } else if (p->t->kind == HONE_TOK_NAME && a.kind == HONE_ATTR_TYPE) {
                a.i = hone_dtype_named(p->t->text, strlen(p->t->text));
                if (!a.i) a.s = p->t->text; /* a type variable: whatever the inputs make it */
            } else if (a.kind == HONE_ATTR_INTS && word(p, "reversed")) {
                a.s = p->t->text; /* absent: r - 1, …, 1, 0 */
            } else wrong(p, "expected a number or a string");
            p->t++;
        }
        hone_attr_spec *grown = make(p, sizeof a * (size_t)(g->n_attr + 1)); /* few: copying is fine */
        if (g->n_attr) memcpy(grown, g->attr, sizeof a * (size_t)g->n_attr);
        grown[g->n_attr++] = a, g->attr = grown;
    } while (take(p, ","));
}
static void types(parser *p) { /* T: f16 f32 */
    hone_program *g = p->p;
    hone_type_var v = {.name = name(p)};
    want(p, ":");
    while (p->t->kind == HONE_TOK_NAME) {
        const char *t = name(p);
        hone_dtype d = hone_dtype_named(t, strlen(t));
        if (!d) p->t--, wrong(p, "no such type");
        v.allowed |= 1u << d;
    }
    if (take(p, "=")) v.otherwise = name(p);
    hone_type_var *grown = make(p, sizeof v * (size_t)(g->n_type + 1));
    if (g->n_type) memcpy(grown, g->type, sizeof v * (size_t)g->n_type);
    grown[g->n_type++] = v, g->type = grown;
}
static hone_line *lines(parser *p, int indent);
static hone_line *new_line(parser *p, hone_line_kind kind) {
    hone_line *l = make(p, sizeof *l);
    l->kind = kind, l->line = p->t->line;
    return l;
}
static hone_line *stage(parser *p) {
    hone_line *l = new_line(p, HONE_LINE_STAGE);
    l->name = name(p);
    want(p, "[");
    hone_tree *subs = load(p, l->name);
    l->sub = subs->arg, l->n_sub = subs->n_arg;
    static const char *const hows[] = {"=", "add=", "mul=", "max=", "min="};
    for (int k = 0; k < 5 && !l->how; k++)
        if (take(p, hows[k])) l->how = hows[k];
    if (!l->how) wrong(p, "expected = or add= mul= max= min=");
    if (word(p, "sat") && p->t[1].kind == HONE_TOK_MARK && *p->t[1].text == '(') {
        /* sat(e) must be the whole right side */
        p->t += 2, l->saturate = true;
        l->expr = expr(p, 0);
        want(p, ")");
    } else l->expr = expr(p, 0);
    if (word(p, "else") && p->t[1].kind == HONE_TOK_NAME && !strcmp(p->t[1].text, "skip"))
        p->t += 2, l->skip = true;
    return l;
}
static hone_line *definition(parser *p) { /* K = e, O.. = e, p = e, p.. = e, f(a, b) = e */
    hone_line *l = new_line(p, HONE_LINE_SHORT);
    l->group = p->t->group, l->name = name(p);
    if (isupper((unsigned char)*l->name)) l->kind = HONE_LINE_DIM;
    if (take(p, "(")) {
        const char *v[16];
        while (!take(p, ")")) {
            if (l->n_param && !take(p, ",")) wrong(p, "expected ','");
            if (l->n_param == 16) wrong(p, "more than 16 parameters");
            if (p->t->group) wrong(p, "a parameter is no group");
            v[l->n_param++] = name(p);
        }
        l->param = make(p, sizeof *v * (size_t)(l->n_param + 1));
        memcpy(l->param, v, sizeof *v * (size_t)l->n_param);
        l->kind = HONE_LINE_SHORT;
    }
    want(p, "=");
    l->expr = expr(p, 0);
    return l;
}
static hone_line *snippet(parser *p, int indent) { /* use NAME */
    const char *nm = name(p);
    for (const hone_snippet *s = p->snippets; s; s = s->next) {
        if (strcmp(s->name, nm)) continue;
        if (++p->used > 8) wrong(p, "'use' goes round in circles");
        hone_token *tokens;
        hone_status st = hone_lex(p->arena, p->scratch, p->source, s->line, s->text, s->bytes, &tokens);
        if (st) {
            p->status = st;
            longjmp(p->fail, 1);
        }
        const hone_token *back = p->t;
        p->t = tokens;
        /* past "lines NAME" */
        while (p->t->kind != HONE_TOK_END && !(p->t->kind == HONE_TOK_LINE && p->t != tokens)) p->t++;
        hone_line *l = lines(p, 0);
        if (p->t->kind != HONE_TOK_END) wrong(p, "cannot read these shared lines");
        p->t = back, p->used--;
        return l;
    }
    (void)indent;
    p->t--, wrong(p, "no such 'lines'");
}
/* All lines deeper than `indent`. */
static hone_line *lines(parser *p, int indent) {
    hone_line *first = NULL, **tail = &first, *last_when = NULL;
    if (++p->depth > MAX_DEPTH) wrong(p, "nested too deeply");
    while (p->t->kind == HONE_TOK_LINE && p->t->indent > indent) {
        int here = p->t->indent;
        p->t++;
        hone_line *l = NULL, *when = NULL;
        const hone_token *n = p->t + 1;
        bool named = p->t->kind == HONE_TOK_NAME, mark = n->kind == HONE_TOK_MARK;
        if (!named) wrong(p, "a line begins with a name");
        if (mark && *n->text == ':' && !p->t->group) types(p);
        else if (mark && *n->text == '[') l = stage(p);
        else if (mark && !strcmp(n->text, "=")) l = definition(p);
        else if (take_word(p, "attr")) attrs(p);
        else if (take_word(p, "use")) l = snippet(p, here);
        else if (take_word(p, "rank")) {
            l = new_line(p, HONE_LINE_RANK);
            if (!p->t->group) wrong(p, "rank is for a group: X..");
            l->name = name(p), l->group = true;
            want(p, "=");
            l->expr = expr(p, 0);
        } else if (take_word(p, "need")) {
            l = new_line(p, HONE_LINE_NEED);
            l->expr = expr(p, 0);
            want(p, ",");
            if (p->t->kind != HONE_TOK_STRING) wrong(p, "expected the text of the error");
            l->text = (p->t++)->text;
        } else if (word(p, "over") && mark && *n->text == '(') {
            l = new_line(p, HONE_LINE_OVER);
            p->t += 2;
            hone_tree *ix = index_item(p);
            want(p, ")");
            l->name = ix->name, l->expr = ix->body;
            l->block = lines(p, here);
            if (!l->block) wrong(p, "over() has no lines");
        } else if (take_word(p, "when")) {
            l = when = new_line(p, HONE_LINE_WHEN);
            l->expr = expr(p, 0);
            l->block = lines(p, here);
        } else if (word(p, "else") && last_when && (n->kind == HONE_TOK_LINE || n->kind == HONE_TOK_END)) {
            p->t++;
            last_when->other = lines(p, here);
        } else if (word(p, "view") || word(p, "host") || word(p, "control")) {
            hone_runs runs = word(p, "view")   ? HONE_RUNS_VIEW
                             : word(p, "host") ? HONE_RUNS_HOST
                                               : HONE_RUNS_CONTROL;
            p->t++;
            const char *how = name(p);
            if (take_word(p, "when")) {
                if (!take_word(p, "strings")) wrong(p, "expected 'strings'");
                p->p->how_strings = how;
            } else p->p->how = how, p->p->runs = runs;
        } else l = definition(p); /* f(a, b) = e */
        if (!at_end(p)) wrong(p, "expected the end of the line");
        last_when = when;
        if (l) {
            *tail = l;
            while (*tail) tail = &(*tail)->next;
        }
    }
    p->depth--;
    return first;
}

hone_status hone_parse_row(hone_arena *arena, hone_arena *scratch, const char *source, int line,
                           const char *text, size_t bytes, const hone_snippet *snippets, hone_program **out) {
    hone_token *tokens;
    HONE_TRY(hone_lex(arena, scratch, source, line, text, bytes, &tokens));
    parser p = {.arena = arena, .scratch = scratch, .source = source, .t = tokens, .snippets = snippets};
    if (!(p.p = HONE_NEW(arena, hone_program))) return hone_fail(HONE_NO_MEMORY, "%s: out of memory", source);
    p.p->text = text, p.p->text_bytes = bytes, p.p->line = line, p.p->domain = "";
    if (setjmp(p.fail)) return p.status;
    if (p.t->kind == HONE_TOK_LINE) p.t++;
    if (!take_word(&p, "op")) wrong(&p, "expected 'op'");
    head(&p);
    p.p->lines = lines(&p, 0);
    if (p.t->kind != HONE_TOK_END) wrong(&p, "expected a line of the row");
    /* a type that is the name of an attribute */
    for (int k = 0; k < p.p->n_in + p.p->n_out; k++)
        for (int a = 0; a < p.p->n_attr && p.p->operand[k].of == HONE_OF_VAR; a++)
            if (!strcmp(p.p->attr[a].name, p.p->operand[k].type)) p.p->operand[k].of = HONE_OF_ATTR;
    *out = p.p;
    return HONE_OK;
}
