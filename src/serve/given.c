/* SPDX-License-Identifier: Apache-2.0
   given: files of a model that came with a request to load it, "file:1/model.onnx" and others. They are taken
   out of the request's JSON before that is read, so that a limit for JSON holds for the rest; the keeper puts
   them into a folder of their own, as they would stand in a repository, loads from there, and removes it. */
#include "serve/given.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 256, PATHS = 1024, DEEP = 8 };
#define UNNAMED "?" /* a file whose parameter was not read yet */

/* ---- a list ---- */

void hone_serve_given_free(hone_serve_given *g) {
    for (int k = 0; k < g->n; k++) free(g->file[k].path), free(g->file[k].data);
    free(g->file);
    *g = (hone_serve_given){0};
}
/* Names within a folder: nothing that leaves it, or hides in it. */
static bool path_good(const char *path) {
    int depth = 0;
    if (strlen(path) >= PATHS / 2) return false;
    for (const char *p = path;; p++) {
        const size_t n = strcspn(p, "/");
        if (!n || n > 200 || *p == '.' || ++depth > DEEP) return false;
        for (size_t k = 0; k < n; k++)
            if ((unsigned char)p[k] < ' ' || p[k] == '\\') return false;
        p += n;
        if (!*p) return true;
    }
}
int hone_serve_given_add(hone_serve_given *g, const char *name, void *data, size_t bytes,
                         hone_serve_error *e) {
    const char *path = strncmp(name, "file:", 5) ? name : name + 5;
    hone_serve_file *more = NULL;
    char *copy = NULL;
    if (!path_good(path))
        hone_serve_fail(e, 400, "'%.80s': a file's name in the model's folder is wanted, file:1/model.onnx",
                        name);
    else if (g->n == FILES) hone_serve_fail(e, 413, "more than %d files for one model", FILES);
    else if (!(more = realloc(g->file, sizeof *more * (size_t)(g->n + 1))) || !(copy = strdup(path)))
        hone_serve_fail(e, 503, "no memory for '%.80s'", name);
    if (more) g->file = more;
    if (copy) g->file[g->n++] = (hone_serve_file){copy, data, bytes};
    else free(data);
    return e->code;
}

/* ---- out of JSON ---- */

/* Of a digit one more than its number; 0: it is none. */
static const uint8_t digits[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};
int64_t hone_serve_base64(const char *text, size_t length, uint8_t *out) {
    const uint8_t *in = (const uint8_t *)text;
    size_t n = 0, k = 0, at = 0;
    uint32_t bits = 0;
    while (at < length) {
        for (; k % 4 == 0 && length - at >= 4; at += 4, n += 3) { /* most of it */
            const uint32_t a = digits[in[at]], b = digits[in[at + 1]], c = digits[in[at + 2]],
                           d = digits[in[at + 3]];
            if (!a || !b || !c || !d) break;
            const uint32_t whole = (a - 1) << 18 | (b - 1) << 12 | (c - 1) << 6 | (d - 1);
            out[n] = (uint8_t)(whole >> 16), out[n + 1] = (uint8_t)(whole >> 8), out[n + 2] = (uint8_t)whole;
        }
        if (at == length) break;
        if (in[at] == '\\' && at + 1 < length && in[at + 1] == '/') { /* as some write it in JSON */
            at++;
            continue;
        }
        if (!digits[in[at]]) {
            const size_t rest = length - at;
            for (size_t r = at; r < length; r++)
                if (in[r] != '=') return -1;
            return rest <= 2 && k % 4 > 1 ? (int64_t)n : -1;
        }
        bits = bits << 6 | (digits[in[at++]] - 1u);
        if (k++ % 4) out[n++] = (uint8_t)(bits >> (6 - 2 * ((k - 1) % 4)));
    }
    return k % 4 == 1 ? -1 : (int64_t)n;
}
static size_t text_end(const char *json, size_t n, size_t at) { /* of the text whose quote is at `at` */
    const char *from = json + at + 1, *end = memchr(from, '"', n - at - 1);
    if (end && !memchr(from, '\\', (size_t)(end - from))) return (size_t)(end - json);
    for (at++; at < n && json[at] != '"'; at++) at += json[at] == '\\';
    return at < n ? at : n;
}
/* What stands behind a key "file:…" becomes a short number, and a file without a name yet. */
int hone_serve_given_cut(hone_serve_given *g, char *json, size_t *bytes, hone_serve_error *e) {
    const size_t n = *bytes;
    size_t kept = 0;
    bool key = false, value = false; /* the last text was such a key; and a colon came after it */
    for (size_t at = 0; at < n && !e->code; at++) {
        if (json[at] != '"') {
            if (!strchr(" \t\r\n", json[at])) value = key && json[at] == ':', key = key && value;
            json[kept++] = json[at];
            continue;
        }
        const size_t end = text_end(json, n, at), length = end > at ? end - at - 1 : 0;
        if (end < n && value) {
            uint8_t *data = malloc(length / 4 * 3 + 4);
            const int64_t got = data ? hone_serve_base64(json + at + 1, length, data) : 0;
            char number[16];
            if (got < 0) hone_serve_fail(e, 400, "a file of the request is no base64");
            if (!data) hone_serve_fail(e, 503, "no memory for a file of the request");
            const int digits = snprintf(number, sizeof number, "%d", g->n);
            /* no longer than what it replaces, but for an empty one's two quotes */
            if (!length && !e->code) hone_serve_fail(e, 400, "a file of the request is empty");
            if (e->code) free(data);
            else if (!hone_serve_given_add(g, UNNAMED, data, (size_t)got, e))
                memcpy(json + kept, number, (size_t)digits), kept += (size_t)digits;
            key = value = false;
        } else {
            key = length >= 5 && !memcmp(json + at + 1, "file:", 5), value = false;
            const size_t whole = (end < n ? end + 1 : n) - at;
            memmove(json + kept, json + at, whole), kept += whole;
        }
        at = end;
    }
    json[kept] = 0, *bytes = kept;
    return e->code;
}
int hone_serve_given_name(hone_serve_given *g, const char *name, const json_t *number, hone_serve_error *e) {
    const json_int_t k = json_is_integer(number) ? json_integer_value(number) : -1;
    if (k < 0 || k >= g->n || strcmp(g->file[k].path, UNNAMED) != 0)
        return hone_serve_fail(e, 400, "'%.80s' is to be a text of base64", name);
    char *copy = path_good(name + 5) ? strdup(name + 5) : NULL;
    if (!copy)
        return hone_serve_fail(
            e, 400, "'%.80s': a file's name in the model's folder is wanted, file:1/model.onnx", name);
    free(g->file[k].path), g->file[k].path = copy;
    return 0;
}

/* ---- a folder of them ---- */

static bool put(const char *folder, const hone_serve_file *f) {
    char path[PATHS + 600];
    const int n = snprintf(path, sizeof path, "%s/%s", folder, f->path);
    if (n < 0 || (size_t)n >= sizeof path) return errno = ENAMETOOLONG, false;
    for (char *p = path + strlen(folder) + 1; (p = strchr(p, '/')); *p++ = '/')
        if (*p = 0, mkdir(path, 0700) && errno != EEXIST) return false;
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return false;
    const char *at = f->data;
    size_t left = f->bytes;
    while (left) {
        const ssize_t wrote = write(fd, at, left);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) break;
        at += wrote, left -= (size_t)wrote;
    }
    const int why = errno;
    return close(fd), errno = why, !left;
}
/* Files that no parameter named are not there for anybody. */
static const hone_serve_file *unnamed(const hone_serve_given *g) {
    for (int k = 0; k < g->n; k++)
        if (!strcmp(g->file[k].path, UNNAMED)) return &g->file[k];
    return NULL;
}
char *hone_serve_given_write(const hone_serve_given *g, hone_serve_error *e) {
    const char *temp = getenv("TMPDIR");
    char folder[512];
    snprintf(folder, sizeof folder, "%.400s/hone-given-XXXXXX", temp && *temp ? temp : "/tmp");
    if (unnamed(g)) {
        hone_serve_fail(e, 400, "files stand within the parameters, and nowhere else");
        return NULL;
    }
    char *out = mkdtemp(folder) ? strdup(folder) : NULL;
    if (!out) {
        hone_serve_fail(e, 503, "no folder for the request's files: %s", strerror(errno));
        return NULL;
    }
    for (int k = 0; k < g->n && !e->code; k++)
        if (!put(folder, &g->file[k]))
            hone_serve_fail(e, errno == EEXIST || errno == ENOTDIR ? 400 : 503, "file:%.100s: %s",
                            g->file[k].path, strerror(errno));
    if (!e->code) return out;
    hone_serve_given_remove(out), free(out);
    return NULL;
}
static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *where) {
    (void)s, (void)kind, (void)where;
    return remove(path), 0;
}
void hone_serve_given_remove(const char *folder) { nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS); }
