/* SPDX-License-Identifier: Apache-2.0
   json: a recursive reader for JSON's grammar. Depth is bounded, so that no text exhausts the stack. */
#include "json.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hone/tools.h"

enum { DEPTH_MAX = 64 };
typedef struct {
    const char *at;
    int depth;
} reader;

static hone_json *read_value(reader *);

static void skip(reader *r) { r->at += strspn(r->at, " \t\r\n"); }

static bool take(reader *r, const char *word) {
    skip(r);
    size_t n = strlen(word);
    if (strncmp(r->at, word, n) != 0) return false;
    r->at += n;
    return true;
}

static bool hex4(reader *r, uint32_t *out) {
    char digits[5] = "", *end;
    strncpy(digits, r->at, 4);
    *out = (uint32_t)strtoul(digits, &end, 16);
    if (end != digits + 4 || strspn(digits, "0123456789abcdefABCDEF") != 4) return false;
    r->at += 4;
    return true;
}

static char *put_utf8(char *p, uint32_t c) {
    if (c < 0x80) {
        *p++ = (char)c;
    } else if (c < 0x800) {
        *p++ = (char)(0xc0 | c >> 6), *p++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *p++ = (char)(0xe0 | c >> 12), *p++ = (char)(0x80 | (c >> 6 & 63)), *p++ = (char)(0x80 | (c & 63));
    } else {
        *p++ = (char)(0xf0 | c >> 18), *p++ = (char)(0x80 | (c >> 12 & 63)),
        *p++ = (char)(0x80 | (c >> 6 & 63)), *p++ = (char)(0x80 | (c & 63));
    }
    return p;
}

/* The escape after a backslash. */
static bool escape(reader *r, char **p) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = *r->at++;
    const char *plain = c ? strchr(from, c) : NULL;
    if (plain) return *(*p)++ = to[plain - from], true;
    uint32_t code, low;
    if (c != 'u' || !hex4(r, &code)) return false;
    if (code >= 0xd800 && code < 0xdc00) { /* the first half of a pair */
        if (r->at[0] != '\\' || r->at[1] != 'u') return false;
        r->at += 2;
        if (!hex4(r, &low) || low < 0xdc00 || low > 0xdfff) return false;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    *p = put_utf8(*p, code ? code : 0xfffd); /* a zero would end our text */
    return true;
}

static char *read_text(reader *r) {
    if (!take(r, "\"")) return NULL;
    size_t n = 0;
    for (const char *p = r->at; *p && *p != '"'; p++, n++)
        if (*p == '\\' && p[1]) p++, n++;
    char *text = malloc(n + 1), *p = text; /* no escape is longer than what it stands for */
    while (text && *r->at && *r->at != '"') {
        if (*r->at != '\\') *p++ = *r->at++;
        else if (r->at++, !escape(r, &p)) break;
    }
    if (text && *r->at == '"') return r->at++, *p = 0, text;
    free(text);
    return NULL;
}

/* Members up to `close`; false leaves what was read in `v`, for the caller to free. */
static bool read_members(reader *r, hone_json *v, const char *close) {
    hone_json **last = &v->first;
    if (take(r, close)) return true;
    do {
        char *key = NULL;
        if (v->type == HONE_JSON_OBJECT && (!(key = read_text(r)) || !take(r, ":"))) return free(key), false;
        hone_json *member = read_value(r);
        if (!member) return free(key), false;
        member->key = key;
        *last = member;
        last = &member->next;
        v->n++;
    } while (take(r, ","));
    return take(r, close);
}

static hone_json *read_value(reader *r) {
    hone_json *v = calloc(1, sizeof *v);
    bool ok = false;
    if (!v || ++r->depth > DEPTH_MAX) return free(v), NULL;
    if (take(r, "{")) {
        v->type = HONE_JSON_OBJECT;
        ok = read_members(r, v, "}");
    } else if (take(r, "[")) {
        v->type = HONE_JSON_ARRAY;
        ok = read_members(r, v, "]");
    } else if (*r->at == '"') {
        v->type = HONE_JSON_TEXT;
        ok = (v->text = read_text(r)) != NULL;
    } else if (take(r, "true")) {
        v->type = HONE_JSON_TRUE, ok = true;
    } else if (take(r, "false")) {
        v->type = HONE_JSON_FALSE, ok = true;
    } else if (take(r, "null")) {
        ok = true;
    } else if (*r->at == '-' || (*r->at >= '0' && *r->at <= '9')) {
        char *end;
        v->type = HONE_JSON_NUMBER;
        v->number = strtod(r->at, &end);
        ok = end > r->at;
        r->at = end;
    }
    r->depth--;
    if (ok) return v;
    hone_json_free(v);
    return NULL;
}

hone_json *hone_json_read(const char *text) {
    reader r = {.at = text};
    hone_json *v = read_value(&r);
    skip(&r);
    if (v && *r.at) hone_json_free(v), v = NULL;
    return v;
}

void hone_json_free(hone_json *v) {
    if (!v) return;
    for (hone_json *m = v->first, *next; m; m = next) next = m->next, hone_json_free(m);
    free(v->key);
    free(v->text);
    free(v);
}

const hone_json *hone_json_get(const hone_json *v, const char *key) {
    const hone_json *m = v && v->type == HONE_JSON_OBJECT ? v->first : NULL;
    while (m && strcmp(m->key, key) != 0) m = m->next;
    return m;
}

double hone_json_number(const hone_json *v, const char *key, double otherwise) {
    const hone_json *m = hone_json_get(v, key);
    return m && m->type == HONE_JSON_NUMBER ? m->number : otherwise;
}

const char *hone_json_text(const hone_json *v, const char *key, const char *otherwise) {
    const hone_json *m = hone_json_get(v, key);
    return m && m->type == HONE_JSON_TEXT ? m->text : otherwise;
}

/* ---- writing ---- */

void hone_json_put_text(FILE *to, const char *text, size_t bytes) {
    fputc('"', to);
    for (size_t k = 0, n; k < bytes; k += n) {
        char shown[16];
        const unsigned char lead = (unsigned char)text[k];
        const size_t most = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
        n = 1;
        while (n < most && k + n < bytes && ((unsigned char)text[k + n] & 0xc0) == 0x80) n++;
        size_t seen = hone_text_visible(shown, sizeof shown, text + k, n, 0);
        if (text[k] == '"' || text[k] == '\\') fprintf(to, "\\%c", text[k]);
        else if (seen == n) fwrite(text + k, 1, n, to);
        else if ((unsigned char)text[k] < 0x80) fprintf(to, "\\u%04x", (unsigned char)text[k]);
        else if (shown[1] == 'u' && seen == 6) fputs(shown, to); /* a character that a terminal would obey */
        else fputs("\\ufffd", to), n = 1;
    }
    fputc('"', to);
}

void hone_json_put_number(FILE *to, double v) {
    if (isfinite(v)) fprintf(to, "%.9g", v);
    else fputs("null", to);
}
void hone_json_first_text(FILE *to, const char *key, const char *text) {
    fprintf(to, "\"%s\": ", key);
    hone_json_put_text(to, text, strlen(text));
}
void hone_json_member_text(FILE *to, const char *key, const char *text) {
    fputs(", ", to);
    hone_json_first_text(to, key, text);
}
void hone_json_member_number(FILE *to, const char *key, double v) {
    fprintf(to, ", \"%s\": ", key);
    hone_json_put_number(to, v);
}
