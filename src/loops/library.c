/* SPDX-License-Identifier: Apache-2.0
   library: all rows of the embedded ops text, and a user's. Splits text into rows at lines that begin at the
   left margin. A model has ops of a few kinds only, so the embedded rows are parsed when they are first asked
   for (tests ask for all); a user's at once, since they may be wrong.

   A user's text becomes a library of its own on top of the one before: what was published never changes, so
   readers need no lock, and a text with a mistake in it leaves nothing behind. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "loops/parse.h"

typedef struct {
    const char *source, *text, *domain, *name;
    size_t bytes;
    int line, since;
    const hone_snippet *snippets;    /* those above it */
    _Atomic(hone_program *) program; /* NULL: not parsed yet */
} row;
struct hone_library {
    hone_library *below; /* where rows are looked for that are not here; or NULL */
    hone_arena *arena;
    pthread_mutex_t lock; /* of the arena, once the library is shared */
    bool later;           /* rows are parsed when asked for, and their text stays where it is */
    hone_vec(row) row;
    hone_snippet *snippets;
    hone_vec(int) slot; /* hash of (domain, name) → row + 1; size is a power of two, or 0 */
};

hone_status hone_library_create(hone_library **out) {
    hone_library *l = hone_alloc(sizeof *l);
    if (!l || !(l->arena = hone_arena_create())) {
        hone_free(l);
        return hone_fail(HONE_NO_MEMORY, "no memory for the op library");
    }
    pthread_mutex_init(&l->lock, NULL);
    *out = l;
    return HONE_OK;
}
void hone_library_destroy(hone_library *l) {
    if (!l) return;
    hone_vec_free(&l->row);
    hone_vec_free(&l->slot);
    hone_arena_destroy(l->arena);
    pthread_mutex_destroy(&l->lock);
    hone_free(l);
}
static hone_status parse(hone_library *l, row *r) {
    hone_arena *scratch = hone_arena_create();
    hone_program *made = NULL;
    hone_status s =
        scratch ? hone_parse_row(l->arena, scratch, r->source, r->line, r->text, r->bytes, r->snippets, &made)
                : hone_fail(HONE_NO_MEMORY, "no memory for the op library");
    hone_arena_destroy(scratch);
    if (!s) atomic_store(&r->program, made);
    return s;
}
static const hone_program *parsed(const hone_library *l, row *r) {
    if (!atomic_load(&r->program)) {
        /* what it holds does not change, only how much of it is worked out */
        hone_library *mine = (hone_library *)l;
        pthread_mutex_lock(&mine->lock);
        const hone_status s = atomic_load(&r->program) ? HONE_OK : parse(mine, r);
        (void)s; /* it stays NULL; rows are tested, so there is no memory */
        pthread_mutex_unlock(&mine->lock);
    }
    return atomic_load(&r->program);
}
/* What a row is about, before it is parsed: op [DOMAIN.]NAME VERSION */
static bool read_head(hone_library *l, row *r) {
    const char *at = r->text + 3;
    const size_t n = strcspn(at, " \t\r\n");
    size_t dot = n;
    while (dot && at[dot - 1] != '.') dot--;
    if (at + n >= r->text + r->bytes) return false;
    r->domain = dot ? hone_arena_textn(l->arena, at, dot - 1) : "",
    r->name = hone_arena_textn(l->arena, at + dot, n - dot);
    r->since = atoi(at + n);
    if (r->domain && !strcmp(r->domain, "ai.onnx")) r->domain = "";
    return r->domain && r->name;
}
static uint32_t hash(const char *domain, const char *name) {
    uint32_t h = 2166136261u;
    for (const char *p = domain; *p; p++) h = (h ^ (unsigned char)*p) * 16777619u;
    for (const char *p = name; *p; p++) h = (h ^ (unsigned char)*p) * 16777619u;
    return h;
}
static bool same(const row *p, const char *domain, const char *name) {
    return !strcmp(p->name, name) && !strcmp(p->domain, domain);
}
static bool rehash(hone_library *l) {
    int size = 64;
    while (size < l->row.n * 2) size *= 2;
    hone_vec_free(&l->slot);
    while (l->slot.n < size)
        if (!hone_push(&l->slot, 0)) return false;
    for (int k = 0; k < l->row.n; k++) {
        const row *p = l->row.at + k;
        uint32_t h = hash(p->domain, p->name) & (uint32_t)(size - 1);
        while (l->slot.at[h] && !same(l->row.at + l->slot.at[h] - 1, p->domain, p->name))
            h = (h + 1) & (uint32_t)(size - 1);
        /* the newest; a later row replaces */
        if (!l->slot.at[h] || l->row.at[l->slot.at[h] - 1].since <= p->since) l->slot.at[h] = k + 1;
    }
    return true;
}
static hone_status add_rows(hone_library *l, const char *source, const char *text, size_t bytes) {
    const char *p = text, *end = text + bytes;
    int line = 1;
    while (p < end) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        const char *next = eol ? eol + 1 : end;
        if (next - p > 7 && !memcmp(p, "# file ", 7)) { /* the build joins files so */
            source = hone_arena_textn(l->arena, p + 7, (size_t)(next - p - 7 - (eol ? 1 : 0)));
            if (!source) return hone_fail(HONE_NO_MEMORY, "no memory for the op library");
            line = 1, p = next;
            continue;
        }
        bool op = next - p > 3 && !memcmp(p, "op ", 3), shared = next - p > 6 && !memcmp(p, "lines ", 6);
        if (!op && !shared) {
            const char *q = p;
            while (q < next && (*q == ' ' || *q == '\t' || *q == '\r' || *q == '\n')) q++;
            if (q < next && *q != '#')
                return hone_fail(HONE_BAD_INPUT,
                                 "%s:%d:%d: a row begins with 'op' or 'lines' at the left margin", source,
                                 line, (int)(q - p) + 1);
            line++, p = next;
            continue;
        }
        const char *start = p;
        int first = line;
        do { /* up to the next line that begins at the margin with a word, or a file mark */
            p = next, line++;
            eol = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
            next = eol ? eol + 1 : end;
        } while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r' ||
                             (*p == '#' && (next - p <= 7 || memcmp(p, "# file ", 7)))));
        const char *stop = p; /* trailing blank and comment lines belong to what follows */
        for (;;) {
            const char *b = stop;
            while (b > start && (b[-1] == '\n' || b[-1] == ' ' || b[-1] == '\r')) b--;
            const char *bol = b;
            while (bol > start && bol[-1] != '\n') bol--;
            if (b > start && *bol == '#') {
                stop = bol;
                continue;
            }
            stop = b;
            break;
        }
        const char *copy = l->later ? start : hone_arena_textn(l->arena, start, (size_t)(stop - start));
        if (!copy) return hone_fail(HONE_NO_MEMORY, "no memory for the op library");
        if (shared) {
            if (stop - start <= 6)
                return hone_fail(HONE_BAD_INPUT, "%s:%d:6: 'lines' needs a name", source, first);
            hone_snippet *s = HONE_NEW(l->arena, hone_snippet);
            if (!s) return hone_fail(HONE_NO_MEMORY, "no memory for the op library");
            const char *n = copy + 6;
            size_t len = strcspn(n, " \t\r\n#");
            if (!(s->name = hone_arena_textn(l->arena, n, len)))
                return hone_fail(HONE_NO_MEMORY, "no memory for the op library");
            s->text = copy, s->bytes = (size_t)(stop - start), s->line = first, s->next = l->snippets;
            l->snippets = s;
        } else {
            row r = {.source = source,
                     .text = copy,
                     .bytes = (size_t)(stop - start),
                     .line = first,
                     .snippets = l->snippets};
            if (!l->later || !read_head(l, &r)) {
                HONE_TRY(parse(l, &r));
                r.domain = r.program->domain, r.name = r.program->name, r.since = r.program->since;
            }
            if (!hone_push(&l->row, r)) return hone_fail(HONE_NO_MEMORY, "no memory for the op library");
        }
    }
    return rehash(l) ? HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory for the op library");
}
hone_status hone_library_add(hone_library *l, const char *source, const char *text, size_t bytes) {
    return add_rows(l, source, text, bytes);
}
static row *find_here(const hone_library *l, const char *domain, const char *name) {
    if (!l->slot.n) return NULL;
    uint32_t mask = (uint32_t)l->slot.n - 1, h = hash(domain, name) & mask;
    for (; l->slot.at[h]; h = (h + 1) & mask)
        if (same(l->row.at + l->slot.at[h] - 1, domain, name)) return l->row.at + l->slot.at[h] - 1;
    return NULL;
}
/* *l: the library that has it */
static row *find(const hone_library **l, const char *domain, const char *name) {
    if (!strcmp(domain, "ai.onnx")) domain = "";
    for (; *l; *l = (*l)->below) {
        row *r = find_here(*l, domain, name);
        if (r) return r;
    }
    return NULL;
}
const hone_program *hone_library_find(const hone_library *l, const char *domain, const char *name) {
    row *r = find(&l, domain, name);
    return r ? parsed(l, r) : NULL;
}
bool hone_library_has(const hone_library *l, const char *domain, const char *name) {
    return find(&l, domain, name) != NULL;
}
int hone_library_count(const hone_library *l) { return l ? l->row.n + hone_library_count(l->below) : 0; }
const hone_program *hone_library_at(const hone_library *l, int k) {
    for (; k >= l->row.n; l = l->below) k -= l->row.n;
    return parsed(l, l->row.at + k);
}

/* ---- the process's library ----------------------------------------------------------------------------- */
extern const char hone_ops_text[]; /* generated at build from ops/ */
extern const size_t hone_ops_text_bytes;
static _Atomic(hone_library *) newest; /* the embedded rows, and on top of them what users added */
static hone_status builtin_status;
static char builtin_error[512];
static void free_all(void) {
    for (hone_library *l = atomic_exchange(&newest, NULL); l;) {
        hone_library *below = l->below;
        hone_library_destroy(l);
        l = below;
    }
}
static void make_builtin(void) {
    hone_library *l = NULL;
    builtin_status = hone_library_create(&l);
    if (!builtin_status)
        l->later = true, builtin_status = hone_library_add(l, "ops", hone_ops_text, hone_ops_text_bytes);
    if (builtin_status) {
        strncpy(builtin_error, hone_fail_text(), sizeof builtin_error - 1);
        hone_library_destroy(l);
    } else {
        atomic_store(&newest, l);
        atexit(free_all);
    }
}
hone_status hone_library_builtin(const hone_library **out) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_builtin);
    if (builtin_status) return hone_fail(builtin_status, "%s", builtin_error);
    *out = atomic_load(&newest);
    return HONE_OK;
}

static bool stores(const hone_line *l, const char *name) {
    for (; l; l = l->next)
        if ((l->kind == HONE_LINE_STAGE && !strcmp(l->name, name)) || stores(l->block, name) ||
            stores(l->other, name))
            return true;
    return false;
}
/* A user's row is a program in a domain of its own. Host functions trust the signatures of our rows, so no
   other row may name them. */
static hone_status check_row(const hone_library *below, const hone_library *mine, int k, const char *source) {
    const hone_program *p = hone_library_at(mine, k), *old = hone_library_find(below, p->domain, p->name);
    const char *why = NULL;
    if (!p->domain[0] || !strncmp(p->domain, "ai.onnx", 7))
        why = "is in ONNX's domain: give it one of your own, as in 'op my.ops.Name 1'";
    else if (p->runs != HONE_RUNS_PROGRAM || p->how_strings)
        why = "is a view, host or control op: a row of yours must be a program";
    else if (old && (old->text_bytes != p->text_bytes || memcmp(old->text, p->text, p->text_bytes)))
        why = "is there already, with other text: give it another name";
    for (int q = p->n_in; q < p->n_in + p->n_out && !why; q++)
        if (!stores(p->lines, p->operand[q].name)) why = "has an output that no line stores";
    for (int q = 0; q < k && !why; q++)
        if (same(mine->row.at + q, p->domain, p->name)) why = "is defined twice in this text";
    if (!why) return HONE_OK;
    return hone_fail(HONE_BAD_INPUT, "%s:%d:1: op %s%s%s %s", source, p->line, p->domain,
                     p->domain[0] ? "." : "", p->name, why);
}
hone_status hone_library_extend(const char *source, const char *text, size_t bytes) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const hone_library *now;
    hone_library *l = NULL;
    HONE_TRY(hone_library_builtin(&now));
    HONE_TRY(hone_library_create(&l));
    hone_status s = hone_library_add(l, source, text, bytes);
    if (!s && !l->row.n) s = hone_fail(HONE_BAD_INPUT, "%s: there is no op in this text", source);
    pthread_mutex_lock(&lock);
    l->below = atomic_load(&newest);
    for (int k = 0; k < l->row.n && !s; k++) s = check_row(l->below, l, k, source);
    if (!s) atomic_store(&newest, l);
    pthread_mutex_unlock(&lock);
    if (s) hone_library_destroy(l);
    return s;
}
