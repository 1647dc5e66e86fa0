/* SPDX-License-Identifier: Apache-2.0
   grpc_proto: proto3's text to descriptors. Each text is read twice: first for the names in it, then, with
   those known, for what is written. */
#include "serve/grpc_proto.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char hone_proto_text[]; /* the files, "# file NAME" before each */

enum { WORD = 128, SCOPE = 256 };
typedef struct {
    hone_grpc_protos *all;
    int file;
    bool naming, bad; /* naming: the first time */
    const char *at;
    char word[WORD], scope[SCOPE]; /* the next token; where we are, "inference.ModelInferRequest" */
    hone_serve_out *out;
} reader;

/* ---- tokens ---- */

static void next(reader *r) {
    size_t n = 0;
    for (;;) {
        r->at += strspn(r->at, " \t\r\n");
        if (strncmp(r->at, "//", 2) != 0) break;
        r->at += strcspn(r->at, "\n");
    }
    const char quote = *r->at == '"' ? *r->at++ : 0;
    while (n < WORD - 1 &&
           (quote ? *r->at && *r->at != quote : isalnum((unsigned char)*r->at) || strchr("_.", *r->at)) &&
           *r->at)
        r->word[n++] = *r->at++;
    if (!n && *r->at && *r->at != '#') r->word[n++] = *r->at++; /* '#': the next file */
    if (quote && *r->at == quote) r->at++;
    r->word[n] = 0;
}
static bool is(const reader *r, const char *word) { return !strcmp(r->word, word); }
static bool skip(reader *r, const char *word) { /* where it stands next */
    if (!is(r, word)) return false;
    next(r);
    return true;
}
static void want(reader *r, const char *word) { r->bad |= !skip(r, word); }
static void name(reader *r, char out[WORD]) {
    memcpy(out, r->word, WORD);
    r->bad |= !*out;
    next(r);
}

/* ---- names ---- */

static size_t enter(reader *r, const char *text) { /* returns what leave() wants */
    const size_t was = strlen(r->scope);
    snprintf(r->scope + was, SCOPE - was, *r->scope ? ".%s" : "%s", text);
    return was;
}
static void leave(reader *r, size_t was) { r->scope[was] = 0; }
static void add_symbol(reader *r, hone_grpc_kind kind, const char *text) {
    hone_grpc_protos *a = r->all;
    if (!r->naming) return;
    if (a->symbols == a->room) {
        const int room = a->room ? 2 * a->room : 256;
        hone_grpc_symbol *more = realloc(a->symbol, sizeof *more * (size_t)room);
        if (!more) {
            r->bad = true;
            return;
        }
        a->symbol = more, a->room = room;
    }
    const size_t was = enter(r, text);
    a->symbol[a->symbols] = (hone_grpc_symbol){strdup(r->scope), kind, r->file};
    r->bad |= !a->symbol[a->symbols++].name;
    leave(r, was);
}

/* ---- types ---- */

enum { TYPE_MESSAGE = 11, TYPE_ENUM = 14, OPTIONAL = 1, REPEATED = 3 };
static int scalar(const char *word) { /* 0: none */
    static const struct {
        const char *name;
        int type;
    } types[] = {{"double", 1}, {"float", 2},  {"int64", 3},  {"uint64", 4}, {"int32", 5},
                 {"bool", 8},   {"string", 9}, {"bytes", 12}, {"uint32", 13}};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (!strcmp(types[k].name, word)) return types[k].type;
    return 0;
}
/* From within outwards: ".inference.ModelInput.Format". */
static int resolve(reader *r, const char *word, char out[SCOPE]) {
    char scope[SCOPE];
    memcpy(scope, r->scope, SCOPE);
    for (;;) {
        char *dot = strrchr(scope, '.');
        snprintf(out, SCOPE, "%s%.120s%s%.120s", *scope ? "." : "", scope, ".", word);
        for (int k = 0; k < r->all->symbols; k++) {
            const hone_grpc_symbol *s = &r->all->symbol[k];
            if (s->kind <= HONE_PROTO_ENUM && !strcmp(s->name, out + 1))
                return s->kind == HONE_PROTO_ENUM ? TYPE_ENUM : TYPE_MESSAGE;
        }
        if (!*scope) break;
        *(dot ? dot : scope) = 0;
    }
    r->bad |= !r->naming; /* the second time all names are known */
    return TYPE_MESSAGE;
}
static void put_field(reader *r, const char *text, uint64_t number, int label, const char *type, int oneof) {
    enum { FIELD = 2, NAME = 1, NUMBER = 3, LABEL = 4, TYPE = 5, TYPE_NAME = 6, ONEOF = 9 };
    char found[SCOPE] = "";
    const int plain = scalar(type), kind = plain ? plain : resolve(r, type, found);
    const size_t begun = hone_serve_put_begin(r->out, FIELD);
    hone_serve_put_text(r->out, NAME, text);
    hone_serve_put_number(r->out, NUMBER, number);
    hone_serve_put_number(r->out, LABEL, (uint64_t)label);
    hone_serve_put_number(r->out, TYPE, (uint64_t)kind);
    hone_serve_put_text(r->out, TYPE_NAME, found);
    if (oneof >= 0) hone_serve_put_number(r->out, ONEOF, (uint64_t)oneof);
    hone_serve_put_end(r->out, begun);
}

/* ---- what stands in a file ---- */

static uint64_t number(reader *r) { /* "= 7;" */
    want(r, "=");
    char *end;
    const uint64_t v = strtoull(r->word, &end, 10);
    r->bad |= !*r->word || *end;
    next(r);
    want(r, ";");
    return v;
}
/* A map is a repeated message of its own: "input_map" is of InputMapEntry. */
static void map(reader *r) {
    enum { NESTED = 3, NAME = 1, OPTIONS = 7, MAP_ENTRY = 7 };
    char key[WORD], value[WORD], text[WORD], entry[WORD + 8];
    size_t n = 0;
    want(r, "<"), name(r, key), want(r, ","), name(r, value), want(r, ">"), name(r, text);
    for (const char *c = text; *c; c++)
        if (*c != '_') entry[n++] = c == text || c[-1] == '_' ? (char)toupper((unsigned char)*c) : *c;
    memcpy(entry + n, "Entry", sizeof "Entry");
    const size_t begun = hone_serve_put_begin(r->out, NESTED);
    hone_serve_put_text(r->out, NAME, entry);
    put_field(r, "key", 1, OPTIONAL, key, -1), put_field(r, "value", 2, OPTIONAL, value, -1);
    const size_t options = hone_serve_put_begin(r->out, OPTIONS);
    hone_serve_put_number(r->out, MAP_ENTRY, 1);
    hone_serve_put_end(r->out, options), hone_serve_put_end(r->out, begun);
    add_symbol(r, HONE_PROTO_MESSAGE, entry), add_symbol(r, HONE_PROTO_PART, text);
    put_field(r, text, number(r), REPEATED, entry, -1);
}
static void field(reader *r, int oneof) {
    char type[WORD], text[WORD];
    const int label = skip(r, "repeated") ? REPEATED : OPTIONAL;
    name(r, type), name(r, text);
    add_symbol(r, HONE_PROTO_PART, text);
    put_field(r, text, number(r), label, type, oneof);
}
static void enumeration(reader *r, uint32_t as) {
    enum { NAME = 1, VALUE = 2, NUMBER = 2 };
    char text[WORD];
    name(r, text);
    add_symbol(r, HONE_PROTO_ENUM, text);
    const size_t begun = hone_serve_put_begin(r->out, as);
    hone_serve_put_text(r->out, NAME, text);
    want(r, "{");
    while (!skip(r, "}") && !r->bad) {
        name(r, text);
        const size_t value = hone_serve_put_begin(r->out, VALUE);
        hone_serve_put_text(r->out, NAME, text);
        hone_serve_put_number(r->out, NUMBER, number(r));
        hone_serve_put_end(r->out, value);
    }
    hone_serve_put_end(r->out, begun);
}
static void message(reader *r, uint32_t as) {
    enum { NAME = 1, NESTED = 3, ENUM = 4, ONEOF = 8 };
    char text[WORD];
    int oneofs = 0;
    name(r, text);
    add_symbol(r, HONE_PROTO_MESSAGE, text);
    const size_t begun = hone_serve_put_begin(r->out, as), was = enter(r, text);
    hone_serve_put_text(r->out, NAME, text);
    want(r, "{");
    while (!skip(r, "}") && !r->bad) {
        if (skip(r, "message")) message(r, NESTED);
        else if (skip(r, "enum")) enumeration(r, ENUM);
        else if (skip(r, "map")) map(r);
        else if (!skip(r, "oneof")) field(r, -1);
        else {
            name(r, text);
            const size_t oneof = hone_serve_put_begin(r->out, ONEOF);
            hone_serve_put_text(r->out, NAME, text);
            hone_serve_put_end(r->out, oneof);
            want(r, "{");
            while (!skip(r, "}") && !r->bad) field(r, oneofs);
            oneofs++;
        }
    }
    leave(r, was);
    hone_serve_put_end(r->out, begun);
}
static bool one_way(reader *r, uint32_t as) { /* "(stream Name)"; whether it streams */
    char type[WORD], found[SCOPE] = "";
    want(r, "(");
    const bool stream = skip(r, "stream");
    name(r, type), want(r, ")");
    (void)resolve(r, type, found);
    hone_serve_put_text(r->out, as, found);
    return stream;
}
static void service(reader *r) {
    enum { SERVICE = 6, NAME = 1, METHOD = 2, INPUT = 2, OUTPUT = 3, CLIENT_STREAMS = 5, SERVER_STREAMS = 6 };
    char text[WORD];
    name(r, text);
    add_symbol(r, HONE_PROTO_SERVICE, text);
    const size_t begun = hone_serve_put_begin(r->out, SERVICE), was = enter(r, text);
    hone_serve_put_text(r->out, NAME, text);
    want(r, "{");
    while (!skip(r, "}") && !r->bad) {
        want(r, "rpc"), name(r, text);
        add_symbol(r, HONE_PROTO_PART, text);
        const size_t method = hone_serve_put_begin(r->out, METHOD);
        hone_serve_put_text(r->out, NAME, text);
        if (one_way(r, INPUT)) hone_serve_put_number(r->out, CLIENT_STREAMS, 1);
        want(r, "returns");
        if (one_way(r, OUTPUT)) hone_serve_put_number(r->out, SERVER_STREAMS, 1);
        want(r, ";");
        hone_serve_put_end(r->out, method);
    }
    leave(r, was);
    hone_serve_put_end(r->out, begun);
}
/* `package` NULL: the text's own. */
static bool read_file(hone_grpc_protos *a, int file, const char *text, const char *package, bool naming) {
    enum { NAME = 1, PACKAGE = 2, MESSAGE = 4, ENUM = 5, SYNTAX = 12 };
    hone_grpc_file *f = &a->file[file];
    reader r = {.all = a, .file = file, .naming = naming, .at = text, .out = &f->descriptor};
    char word[WORD] = "";
    hone_serve_out_free(&f->descriptor);
    next(&r);
    while (*r.word && !r.bad) {
        if (skip(&r, "syntax")) want(&r, "="), want(&r, "proto3"), want(&r, ";");
        else if (skip(&r, "package")) {
            name(&r, word), want(&r, ";");
            snprintf(r.scope, SCOPE, "%s", package ? package : word);
        } else if (skip(&r, "service")) service(&r);
        else if (skip(&r, "message")) message(&r, MESSAGE);
        else if (skip(&r, "enum")) enumeration(&r, ENUM);
        else r.bad = true;
    }
    hone_serve_put_text(&f->descriptor, NAME, f->name);
    hone_serve_put_text(&f->descriptor, PACKAGE, r.scope);
    hone_serve_put_text(&f->descriptor, SYNTAX, "proto3");
    return !r.bad && !f->descriptor.failed;
}

static hone_grpc_protos protos;
static bool good;
static void read_all(void) {
    static const struct {
        const char *heading, *name, *package;
    } files[HONE_GRPC_FILES] = {
        {"# file inference.proto\n", "inference.proto", NULL},
        {"# file health.proto\n", "grpc/health/v1/health.proto", NULL},
        {"# file reflection.proto\n", "grpc/reflection/v1/reflection.proto", NULL},
        {"# file reflection.proto\n", "grpc/reflection/v1alpha/reflection.proto", "grpc.reflection.v1alpha"},
    };
    good = true;
    for (int time = 0; time < 2; time++)
        for (int k = 0; k < HONE_GRPC_FILES && good; k++) {
            const char *at = strstr(hone_proto_text, files[k].heading);
            snprintf(protos.file[k].name, sizeof protos.file[k].name, "%s", files[k].name);
            good = at && read_file(&protos, k, at + strlen(files[k].heading), files[k].package, !time);
        }
}
const hone_grpc_protos *hone_grpc_protos_get(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_all);
    return good ? &protos : NULL;
}
