/* SPDX-License-Identifier: Apache-2.0
   regex: a parser that writes a program of few instructions, and the machine that runs it (Thompson 1968).

   Jumps are relative, so a piece of program can be moved (to put a split before it) and copied (for {2,5}) as
   it is. */
#include "host/regex.h"

#include <string.h>

#include "host/utf8.h"

enum { MAX_CODE = 20000, MAX_DEPTH = 200, MAX_REPEAT = 1000 };

typedef enum { SET, ANY, SPLIT, JUMP, ASSERT, MATCH } opcode;
typedef enum { AT_START, AT_END, AT_WORD, NOT_AT_WORD } place;
typedef struct {
    uint8_t op;
    bool negate, fold, newline; /* SET: all but these; either case. ANY: newlines too */
    int x, y;                   /* SPLIT: both ways. JUMP: x. ASSERT: the place. SET: ranges x … x + y */
} code;
typedef struct {
    uint32_t lo, hi;
} range;

struct hone_regex {
    hone_vec(code) prog;
    hone_vec(range) ranges;
    int *now, *next, *stack;    /* thread lists and work list, as long as prog */
    uint32_t *mark, tick;       /* threads already in the list being made */
    size_t *since, *next_since; /* where the threads of now and next began: for finding */
};

/* ---- parsing ------------------------------------------------------------------------------------------- */
typedef struct {
    hone_regex *r;
    const char *start, *at, *end;
    int depth;
    bool fold, newline; /* flags i and s */
    hone_status status;
} parser;

static bool fail(parser *p, hone_status s, const char *what) {
    if (!p->status) p->status = hone_fail(s, "pattern, byte %d: %s", (int)(p->at - p->start), what);
    return false;
}
static bool bad(parser *p, const char *what) { return fail(p, HONE_BAD_INPUT, what); }
static bool more(const parser *p) { return p->at < p->end; }
static bool take(parser *p, const char *mark) {
    size_t n = strlen(mark);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, mark, n)) return false;
    p->at += n;
    return true;
}

static bool emit(parser *p, code c) {
    if (p->r->prog.n >= MAX_CODE) return fail(p, HONE_NOT_SUPPORTED, "the pattern is too large");
    return hone_push(&p->r->prog, c) || fail(p, HONE_NO_MEMORY, "out of memory");
}
static bool insert(parser *p, int at, code c) {
    if (!emit(p, c)) return false;
    code *v = p->r->prog.at;
    memmove(v + at + 1, v + at, sizeof *v * (size_t)(p->r->prog.n - 1 - at));
    v[at] = c;
    return true;
}
static bool add_range(parser *p, uint32_t lo, uint32_t hi) {
    if (p->r->ranges.n >= MAX_CODE * 4) return fail(p, HONE_NOT_SUPPORTED, "the pattern is too large");
    return hone_push(&p->r->ranges, ((range){lo, hi})) || fail(p, HONE_NO_MEMORY, "out of memory");
}

/* Named sets, as ASCII ranges in rising order. */
static const struct {
    const char *name, *text;
} sets[] = {
    {"d", "09"},           {"w", "09AZ__az"},   {"s", "\t\n\f\r  "}, {"alnum", "09AZaz"},
    {"alpha", "AZaz"},     {"ascii", "\1\x7f"}, {"blank", "\t\t  "}, {"cntrl", "\1\x1f\x7f\x7f"},
    {"digit", "09"},       {"graph", "!~"},     {"lower", "az"},     {"print", " ~"},
    {"punct", "!/:@[`{~"}, {"space", "\t\r  "}, {"upper", "AZ"},     {"word", "09AZ__az"},
    {"xdigit", "09AFaf"},
};
static bool add_set(parser *p, const char *name, size_t bytes, bool negate) {
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
        if (strlen(sets[k].name) != bytes || memcmp(sets[k].name, name, bytes)) continue;
        uint32_t from = 0;
        for (const char *t = sets[k].text; *t; t += 2) {
            uint32_t lo = (uint8_t)t[0] == 1 ? 0 : (uint8_t)t[0], hi = (uint8_t)t[1]; /* \1 stands for 0 */
            if (negate ? lo > from && !add_range(p, from, lo - 1) : !add_range(p, lo, hi)) return false;
            from = hi + 1;
        }
        return !negate || add_range(p, from, 0x10FFFF);
    }
    return bad(p, "no such class of characters");
}

static int hex(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* After a backslash: one character (true, *c), or a set's letter (*set). */
static bool escape(parser *p, uint32_t *c, char *set) {
    static const char from[] = "ntrfva", to[] = "\n\t\r\f\v\a";
    *set = 0;
    if (!more(p)) return bad(p, "a \\ at the end");
    char e = *p->at;
    const char *known = strchr(from, e);
    if (e && strchr("dDwWsS", e)) {
        *set = *p->at++;
        return true;
    }
    if (e && known) {
        *c = (uint8_t)to[known - from];
        p->at++;
        return true;
    }
    if (e == 'x') {
        p->at++;
        bool braces = take(p, "{");
        uint32_t v = 0;
        int n = 0;
        for (; more(p) && hex(*p->at) >= 0 && n < (braces ? 6 : 2); n++) v = v * 16 + (uint32_t)hex(*p->at++);
        if (n < (braces ? 1 : 2) || v > 0x10FFFF || (braces && !take(p, "}"))) return bad(p, "a wrong \\x");
        *c = v;
        return true;
    }
    if ((e >= 'a' && e <= 'z') || (e >= 'A' && e <= 'Z') || (e >= '0' && e <= '9'))
        return fail(p, HONE_NOT_SUPPORTED, "this escape is not supported");
    p->at += hone_utf8_read(p->at, p->end, c);
    return true;
}

static bool add_escaped(parser *p, char set) {
    char small = (char)(set | 32);
    return add_set(p, &small, 1, set != small);
}

static bool set_class(parser *p) { /* after [ */
    int first = p->r->ranges.n;
    bool negate = take(p, "^");
    for (bool begin = true; begin || !take(p, "]"); begin = false) {
        if (!more(p)) return bad(p, "a [ without its ]");
        if (take(p, "[:")) {
            bool not_it = take(p, "^");
            const char *name = p->at;
            while (more(p) && *p->at >= 'a' && *p->at <= 'z') p->at++;
            if (!add_set(p, name, (size_t)(p->at - name), not_it)) return false;
            if (!take(p, ":]")) return bad(p, "a [: without its :]");
            continue;
        }
        uint32_t lo, hi;
        char set = 0;
        if (take(p, "\\")) {
            if (!escape(p, &lo, &set)) return false;
        } else p->at += hone_utf8_read(p->at, p->end, &lo);
        if (set) {
            if (!add_escaped(p, set)) return false;
            continue;
        }
        hi = lo;
        if (p->end - p->at >= 2 && *p->at == '-' && p->at[1] != ']') {
            p->at++;
            if (take(p, "\\")) {
                if (!escape(p, &hi, &set)) return false;
                if (set) return bad(p, "a set at the end of a range");
            } else p->at += hone_utf8_read(p->at, p->end, &hi);
            if (hi < lo) return bad(p, "a range that runs backwards");
        }
        if (!add_range(p, lo, hi)) return false;
    }
    return emit(
        p, (code){.op = SET, .negate = negate, .fold = p->fold, .x = first, .y = p->r->ranges.n - first});
}

static bool literal(parser *p, uint32_t c) {
    return add_range(p, c, c) && emit(p, (code){.op = SET, .fold = p->fold, .x = p->r->ranges.n - 1, .y = 1});
}
static bool assertion(parser *p, place where) { return emit(p, (code){.op = ASSERT, .x = where}); }

static bool alternatives(parser *p);

/* After "(": a group, or flags to the end of the group we are in. */
static bool group(parser *p) {
    bool fold = p->fold, newline = p->newline;
    if (take(p, "?")) {
        if (take(p, "P<") || take(p, "<")) {
            const char *name = p->at;
            while (more(p) && *p->at != '>') {
                bool letter = (*p->at >= 'a' && *p->at <= 'z') || (*p->at >= 'A' && *p->at <= 'Z') ||
                              (*p->at >= '0' && *p->at <= '9') || *p->at == '_';
                /* (?<= and (?<! too */
                if (!letter) return fail(p, HONE_NOT_SUPPORTED, "this kind of group is not supported");
                p->at++;
            }
            if (p->at == name || !take(p, ">")) return bad(p, "a group without a name");
        } else {
            bool on = true;
            while (more(p) && *p->at != ':' && *p->at != ')') {
                if (take(p, "-")) on = false;
                else if (take(p, "i")) p->fold = on;
                else if (take(p, "s")) p->newline = on;
                else if (!take(p, "U"))
                    return fail(p, HONE_NOT_SUPPORTED, "this kind of group is not supported");
            }
            if (take(p, ")")) return true; /* flags alone: they stay */
            if (!take(p, ":")) return bad(p, "a ( without its )");
        }
    }
    if (++p->depth > MAX_DEPTH) return fail(p, HONE_NOT_SUPPORTED, "nested too deeply");
    if (!alternatives(p)) return false;
    p->depth--;
    if (!take(p, ")")) return bad(p, "a ( without its )");
    p->fold = fold;
    p->newline = newline;
    return true;
}

static bool atom(parser *p) {
    if (take(p, "(")) return group(p);
    if (take(p, "[")) return set_class(p);
    if (take(p, ".")) return emit(p, (code){.op = ANY, .newline = p->newline});
    if (take(p, "^") || take(p, "\\A")) return assertion(p, AT_START);
    if (take(p, "$") || take(p, "\\z")) return assertion(p, AT_END);
    if (take(p, "\\b")) return assertion(p, AT_WORD);
    if (take(p, "\\B")) return assertion(p, NOT_AT_WORD);
    uint32_t c;
    if (take(p, "\\")) {
        char set;
        if (!escape(p, &c, &set)) return false;
        if (!set) return literal(p, c);
        int first = p->r->ranges.n;
        return add_escaped(p, set) && emit(p, (code){.op = SET, .x = first, .y = p->r->ranges.n - first});
    }
    if (strchr("*+?", *p->at) && *p->at) return bad(p, "nothing to repeat");
    p->at += hone_utf8_read(p->at, p->end, &c);
    return literal(p, c);
}

/* {n}, {n,}, {n,m}; false: it is no such thing, and stands for itself. most = -1: without end. */
static bool counts(parser *p, int *least, int *most) {
    const char *back = p->at;
    int v[2] = {-1, -1}, n = 0;
    if (!take(p, "{")) return false;
    for (;; n++) {
        while (more(p) && *p->at >= '0' && *p->at <= '9') {
            if (v[n] < 0) v[n] = 0;
            if (v[n] <= MAX_REPEAT) v[n] = v[n] * 10 + (*p->at - '0');
            p->at++;
        }
        if (n || !take(p, ",")) break;
    }
    if (v[0] < 0 || !take(p, "}")) {
        p->at = back;
        return false;
    }
    *least = v[0];
    *most = n ? v[1] : v[0];
    return true;
}

static bool copy_block(parser *p, const code *block, int n) {
    for (int k = 0; k < n; k++)
        if (!emit(p, block[k])) return false;
    return true;
}

/* Makes block [from, end) match least … most times in a row. */
static bool repeat(parser *p, int from, int least, int most) {
    int n = p->r->prog.n - from;
    if (least > MAX_REPEAT || most > MAX_REPEAT) return bad(p, "more than 1000 repetitions");
    if (most >= 0 && most < least) return bad(p, "a repetition with its limits the wrong way round");
    code *block = hone_alloc(sizeof *block * (size_t)n);
    if (!block) return fail(p, HONE_NO_MEMORY, "out of memory");
    if (n) memcpy(block, p->r->prog.at + from, sizeof *block * (size_t)n);
    p->r->prog.n = from;
    bool good = true;
    for (int k = 0; k < least && good; k++) good = copy_block(p, block, n);
    for (int k = least; k < most && good; k++)
        good = emit(p, (code){.op = SPLIT, .x = 1, .y = n + 1}) && copy_block(p, block, n);
    if (most < 0 && good)
        good = emit(p, (code){.op = SPLIT, .x = 1, .y = n + 2}) && copy_block(p, block, n) &&
               emit(p, (code){.op = JUMP, .x = -(n + 1)});
    hone_free(block);
    return good;
}

static bool sequence(parser *p) {
    while (more(p) && *p->at != '|' && *p->at != ')') {
        int from = p->r->prog.n, least = 0, most = -1;
        if (!atom(p)) return false;
        if (take(p, "*")) least = 0, most = -1;
        else if (take(p, "+")) least = 1, most = -1;
        else if (take(p, "?")) least = 0, most = 1;
        else if (!counts(p, &least, &most)) continue;
        take(p, "?"); /* greedy or not is all the same to a whole match */
        if (more(p) && strchr("*+?", *p->at) && *p->at) return bad(p, "a repetition of a repetition");
        if (!repeat(p, from, least, most)) return false;
    }
    return true;
}

static bool alternatives(parser *p) {
    int chain = -1; /* jumps to the end, each naming the one before */
    for (;;) {
        int from = p->r->prog.n;
        if (!sequence(p)) return false;
        if (!take(p, "|")) break;
        if (!insert(p, from, (code){.op = SPLIT, .x = 1, .y = p->r->prog.n - from + 2})) return false;
        if (!emit(p, (code){.op = JUMP, .x = chain})) return false;
        chain = p->r->prog.n - 1;
    }
    while (chain >= 0) {
        code *jump = p->r->prog.at + chain;
        int before = jump->x;
        jump->x = p->r->prog.n - chain;
        chain = before;
    }
    return true;
}

hone_status hone_regex_create(const char *pattern, size_t bytes, hone_regex **out) {
    hone_regex *r = hone_alloc(sizeof *r);
    if (!r) return hone_fail(HONE_NO_MEMORY, "out of memory");
    parser p = {.r = r, .start = pattern, .at = pattern, .end = pattern + bytes};
    if (bytes > INT32_MAX) fail(&p, HONE_NOT_SUPPORTED, "the pattern is too large");
    else if (alternatives(&p) && more(&p)) bad(&p, "a ) without its (");
    if (!p.status && emit(&p, (code){.op = MATCH})) {
        size_t n = (size_t)r->prog.n;
        r->now = hone_alloc(sizeof(int) * n);
        r->next = hone_alloc(sizeof(int) * n);
        r->stack = hone_alloc(sizeof(int) * n * 2);
        r->mark = hone_alloc(sizeof(uint32_t) * n);
        r->since = hone_alloc(sizeof(size_t) * n);
        r->next_since = hone_alloc(sizeof(size_t) * n);
        if (!r->now || !r->next || !r->stack || !r->mark || !r->since || !r->next_since)
            fail(&p, HONE_NO_MEMORY, "out of memory");
    }
    if (p.status) {
        hone_regex_destroy(r);
        return p.status;
    }
    *out = r;
    return HONE_OK;
}

void hone_regex_destroy(hone_regex *r) {
    if (!r) return;
    hone_vec_free(&r->prog);
    hone_vec_free(&r->ranges);
    hone_free(r->now);
    hone_free(r->next);
    hone_free(r->stack);
    hone_free(r->mark);
    hone_free(r->since);
    hone_free(r->next_since);
    hone_free(r);
}

/* ---- matching ------------------------------------------------------------------------------------------ */
static bool in_ranges(const hone_regex *r, const code *c, uint32_t v) {
    for (int k = 0; k < c->y; k++)
        if (v >= r->ranges.at[c->x + k].lo && v <= r->ranges.at[c->x + k].hi) return true;
    return false;
}
static bool accepts(const hone_regex *r, const code *c, uint32_t v) {
    if (c->op == ANY) return c->newline || v != '\n';
    bool in = in_ranges(r, c, v) ||
              (c->fold && (in_ranges(r, c, hone_utf8_lower(v)) || in_ranges(r, c, hone_utf8_upper(v))));
    return in != c->negate;
}
static bool is_word(const char *at, const char *start, const char *end) {
    return at >= start && at < end &&
           ((*at >= '0' && *at <= '9') || (*at >= 'A' && *at <= 'Z') || (*at >= 'a' && *at <= 'z') ||
            *at == '_');
}
static bool holds(int where, const char *at, const char *start, const char *end) {
    bool edge = (at > start && is_word(at - 1, start, end)) != is_word(at, start, end);
    return where == AT_START ? at == start : where == AT_END ? at == end : where == AT_WORD ? edge : !edge;
}

/* Adds thread pc and all it reaches without reading; true if that is the end of the program. */
static bool add(hone_regex *r, int *list, int *n, int pc, const char *at, const char *start,
                const char *end) {
    int top = 0;
    bool matched = false;
    r->stack[top++] = pc;
    while (top) {
        pc = r->stack[--top];
        if (r->mark[pc] == r->tick) continue;
        r->mark[pc] = r->tick;
        const code *c = r->prog.at + pc;
        if (c->op == SPLIT) {
            r->stack[top++] = pc + c->y;
            r->stack[top++] = pc + c->x;
        } else if (c->op == JUMP) r->stack[top++] = pc + c->x;
        else if (c->op == ASSERT) {
            if (holds(c->x, at, start, end)) r->stack[top++] = pc + 1;
        } else if (c->op == MATCH) matched = true;
        else list[(*n)++] = pc;
    }
    return matched;
}

static void new_list(hone_regex *r) {
    if (++r->tick == 0) { /* marks of four thousand million lists ago must not count */
        memset(r->mark, 0, sizeof *r->mark * (size_t)r->prog.n);
        r->tick = 1;
    }
}

bool hone_regex_matches(hone_regex *r, const char *text, size_t bytes) {
    if (!text) text = "";
    const char *at = text, *end = text + bytes;
    int n = 0;
    new_list(r);
    bool matched = add(r, r->now, &n, 0, at, text, end);
    while (at < end && n) {
        uint32_t c;
        at += hone_utf8_read(at, end, &c);
        int m = 0;
        matched = false;
        new_list(r);
        for (int k = 0; k < n; k++)
            if (accepts(r, r->prog.at + r->now[k], c))
                matched |= add(r, r->next, &m, r->now[k] + 1, at, text, end);
        int *swap = r->now;
        r->now = r->next;
        r->next = swap;
        n = m;
    }
    return matched && at == end;
}

/* Threads stand in the order in which they began, so that of two in the same place the one that began first
   stays. */
bool hone_regex_find(hone_regex *r, const char *text, size_t bytes, size_t from, size_t *at, size_t *length) {
    if (!text) text = "";
    const char *p = text + from, *end = text + bytes;
    bool found = false;
    int n = 0;
    if (from > bytes) return false;
    new_list(r);
    for (;;) {
        size_t here = (size_t)(p - text);
        if (!found) { /* another one may begin here: it has its place after those that began before */
            int first = n;
            if (add(r, r->now, &n, 0, p, text, end)) found = true, *at = here, *length = 0;
            for (int k = first; k < n; k++) r->since[k] = here;
        }
        if (p >= end || (found && !n)) return found;
        uint32_t c;
        p += hone_utf8_read(p, end, &c);
        int m = 0;
        new_list(r);
        for (int k = 0; k < n && (!found || r->since[k] <= *at); k++) {
            if (!accepts(r, r->prog.at + r->now[k], c)) continue;
            int first = m;
            if (add(r, r->next, &m, r->now[k] + 1, p, text, end))
                found = true, *at = r->since[k], *length = (size_t)(p - text) - r->since[k];
            for (int i = first; i < m; i++) r->next_since[i] = r->since[k];
        }
        int *swap = r->now;
        r->now = r->next, r->next = swap;
        size_t *other = r->since;
        r->since = r->next_since, r->next_since = other;
        n = m;
    }
}
