/* SPDX-License-Identifier: Apache-2.0
   lexer: see lexer.h. */
#include "loops/lexer.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Longest first, so that a prefix never wins. */
static const char *const marks[] = {"add=", "mul=", "max=", "min=", "->", "..", "<<", ">>", "<=",
                                    ">=",   "==",   "!=",   "&&",   "||", "(",  ")",  "[",  "]",
                                    ",",    ":",    "=",    "?",    "~",  "!",  "+",  "-",  "*",
                                    "/",    "%",    "<",    ">",    "&",  "^",  "|",  ";",  "."};

static bool joins(const hone_token *t) { /* a line that ends so goes on */
    static const char *const open[] = {",",  "+",  "-",  "*",  "/",  "%", "<",  ">",  "&",  "^", "|", "<=",
                                       ">=", "==", "!=", "&&", "||", "=", "->", "<<", ">>", "(", "["};
    if (t->kind != HONE_TOK_MARK) return false;
    for (size_t k = 0; k < sizeof open / sizeof *open; k++)
        if (!strcmp(open[k], t->text)) return true;
    return false;
}

hone_status hone_lex(hone_arena *a, hone_arena *scratch, const char *source, int first_line, const char *text,
                     size_t bytes, hone_token **out) {
    hone_vec(hone_token) v = {0};
    hone_status s = HONE_OK;
    const char *p = text, *end = text + bytes;
    const char *bol = text; /* where the line begins */
    int line = first_line, depth = 0;
    bool fresh = true; /* at the start of a line */
    while (p < end) {
        if (*p == '\n') {
            line++, bol = ++p, fresh = true;
            continue;
        }
        if (*p == '#') {
            while (p < end && *p != '\n') p++;
            continue;
        }
        if (fresh) {
            const char *q = p;
            while (q < end && (*q == ' ' || *q == '\t' || *q == '\r')) q++;
            if (q == end || *q == '\n' || *q == '#') {
                p = q;
                continue;
            }
            fresh = false;
            bool arrow = q + 1 < end && q[0] == '-' && q[1] == '>';
            if (depth == 0 && !arrow && !(v.n && joins(v.at + v.n - 1))) {
                hone_token t = {.kind = HONE_TOK_LINE,
                                .line = line,
                                .column = (int)(q - bol) + 1,
                                .indent = (int)(q - p)};
                if (!hone_push(&v, t)) goto memory;
            }
            p = q;
            continue;
        }
        if (*p == ' ' || *p == '\t' || *p == '\r') {
            p++;
            continue;
        }
        hone_token t = {.line = line, .column = (int)(p - bol) + 1};
        if (isalpha((unsigned char)*p) || *p == '_') {
            const char *q = p;
            while (q < end && (isalnum((unsigned char)*q) || *q == '_')) q++;
            /* add= and friends are marks, but "max" alone is a name */
            bool store = q - p == 3 && q < end && *q == '=' && !(q + 1 < end && q[1] == '=') &&
                         (!memcmp(p, "add", 3) || !memcmp(p, "mul", 3) || !memcmp(p, "max", 3) ||
                          !memcmp(p, "min", 3));
            if (!store) {
                t.kind = HONE_TOK_NAME, t.text = hone_arena_textn(a, p, (size_t)(q - p)), p = q;
                if (end - p >= 2 && p[0] == '.' && p[1] == '.') t.group = true, p += 2;
                if (!t.text || !hone_push(&v, t)) goto memory;
                continue;
            }
        }
        if (isdigit((unsigned char)*p) || (*p == '.' && p + 1 < end && isdigit((unsigned char)p[1]))) {
            char num[64];
            size_t n = 0;
            const char *q = p;
            while (q < end) {
                if (n + 3 > sizeof num) { /* the next two, and the end */
                    s = hone_fail(HONE_BAD_INPUT, "%s:%d:%d: a number is too long", source, line, t.column);
                    goto done;
                }
                if (*q == '.' && q + 1 < end && q[1] == '.') break;
                if (isdigit((unsigned char)*q)) num[n++] = *q++;
                else if (*q == '.') t.real = true, num[n++] = *q++;
                else if ((*q == 'e' || *q == 'E') && q + 1 < end &&
                         (isdigit((unsigned char)q[1]) ||
                          ((q[1] == '-' || q[1] == '+') && q + 2 < end && isdigit((unsigned char)q[2])))) {
                    t.real = true, num[n++] = *q++, num[n++] = *q++;
                } else break;
            }
            num[n] = 0;
            t.kind = HONE_TOK_NUMBER, t.f = strtod(num, NULL), t.i = t.real ? 0 : strtoll(num, NULL, 10),
            p = q;
            if (!hone_push(&v, t)) goto memory;
            continue;
        }
        if (*p == '"') {
            const char *q = p + 1;
            while (q < end && *q != '"' && *q != '\n') q++;
            if (q == end || *q != '"') {
                s = hone_fail(HONE_BAD_INPUT, "%s:%d:%d: a string does not end", source, line, t.column);
                goto done;
            }
            t.kind = HONE_TOK_STRING, t.text = hone_arena_textn(a, p + 1, (size_t)(q - p - 1)), p = q + 1;
            if (!t.text || !hone_push(&v, t)) goto memory;
            continue;
        }
        size_t k = 0, n_marks = sizeof marks / sizeof *marks;
        for (; k < n_marks; k++)
            if ((size_t)(end - p) >= strlen(marks[k]) && !memcmp(p, marks[k], strlen(marks[k]))) break;
        if (k == n_marks) {
            s = hone_fail(HONE_BAD_INPUT, "%s:%d:%d: unexpected character '%c'", source, line, t.column,
                          isprint((unsigned char)*p) ? *p : '?');
            goto done;
        }
        t.kind = HONE_TOK_MARK, t.text = marks[k], p += strlen(marks[k]);
        if (*t.text == '(' || *t.text == '[') depth++;
        if (*t.text == ')' || *t.text == ']') depth -= depth > 0;
        if (!hone_push(&v, t)) goto memory;
    }
    hone_token last = {.kind = HONE_TOK_END, .line = line, .column = (int)(p - bol) + 1};
    if (!hone_push(&v, last)) goto memory;
    *out = hone_arena_copy(scratch, v.at, sizeof *v.at * (size_t)v.n);
    if (!*out) goto memory;
    goto done;
memory:
    s = hone_fail(HONE_NO_MEMORY, "%s: out of memory", source);
done:
    hone_vec_free(&v);
    return s;
}
