/* SPDX-License-Identifier: Apache-2.0
   pbtxt: protobuf's text form to JSON, so far as config.pbtxt uses it. Which fields repeat is not in the
   text: the names that repeat in Triton's ModelConfig are in a table, any other that comes twice becomes a
   list too. Maps (key, value) become objects.

   Words without quotes (true, TYPE_FP32, KIND_CPU) become true, false, or texts. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "serve/inside.h"

enum { DEEP = 32 };
static const char *const lists[] = {"input",
                                    "output",
                                    "instance_group",
                                    "dims",
                                    "step",
                                    "versions",
                                    "preferred_batch_size",
                                    "gpus",
                                    "shape",
                                    "batch_input",
                                    "batch_output",
                                    "model_warmup",
                                    "state",
                                    "control_input",
                                    "control",
                                    "agents",
                                    "secondary_devices",
                                    "profile",
                                    "source_input",
                                    "target_name",
                                    "int32_false_true",
                                    "fp32_false_true",
                                    "bool_false_true",
                                    "initial_state"};
static const char *const maps[] = {
    "parameters", "input_map", "output_map", "cc_model_filenames", "metric_tags", "priority_queue_policy",
    "inputs",     "properties"};

typedef struct {
    const char *at, *end;
    int line;
    hone_serve_error *e;
} reader;

static bool among(const char *const *names, size_t n, const char *name) {
    for (size_t k = 0; k < n; k++)
        if (!strcmp(names[k], name)) return true;
    return false;
}
static void space(reader *r) {
    for (; r->at < r->end; r->at++) {
        if (*r->at == '#')
            while (r->at < r->end && *r->at != '\n') r->at++;
        if (r->at >= r->end) return;
        if (*r->at == '\n') r->line++;
        else if (!isspace((unsigned char)*r->at) && *r->at != ',' && *r->at != ';') return;
    }
}
static bool next_is(reader *r, char c) {
    space(r);
    if (r->at >= r->end || *r->at != c) return false;
    r->at++;
    return true;
}
static json_t *wrong(reader *r, const char *what) {
    if (!r->e->code) hone_serve_fail(r->e, 400, "line %d: %s", r->line, what);
    return NULL;
}
static size_t word(reader *r, char *out, size_t room) {
    size_t n = 0;
    space(r);
    while (r->at < r->end && (isalnum((unsigned char)*r->at) || strchr("_-+.", *r->at)) && *r->at)
        if (n + 1 < room) out[n++] = *r->at++;
        else return 0;
    out[n] = 0;
    return n;
}
/* A quoted text, and those that follow it at once. Out: bytes that end in a zero. */
static char *quoted(reader *r, size_t *n) {
    char *out = malloc((size_t)(r->end - r->at) + 1);
    *n = 0;
    for (space(r); out && r->at < r->end && (*r->at == '"' || *r->at == '\''); space(r)) {
        const char quote = *r->at++;
        for (; r->at < r->end && *r->at != quote; r->at++) {
            char c = *r->at;
            if (c == '\n') break;
            if (c == '\\' && r->at + 1 < r->end) {
                const char x = *++r->at;
                c = x == 'n' ? '\n' : x == 't' ? '\t' : x == 'r' ? '\r' : x;
                if (x >= '0' && x <= '7') {
                    int value = 0;
                    for (int k = 0; k < 3 && r->at < r->end && *r->at >= '0' && *r->at <= '7'; k++)
                        value = value * 8 + (*r->at++ - '0');
                    r->at--, c = (char)value;
                }
            }
            out[(*n)++] = c;
        }
        if (r->at >= r->end || *r->at != quote) {
            free(out);
            wrong(r, "a text has no end");
            return NULL;
        }
        r->at++;
    }
    if (out) out[*n] = 0;
    return out;
}

static json_t *fields(reader *r, char close, int deep);
static json_t *scalar(reader *r) {
    char text[128], *end;
    space(r);
    if (r->at < r->end && (*r->at == '"' || *r->at == '\'')) {
        size_t n;
        char *q = quoted(r, &n);
        json_t *out = q ? json_stringn(q, n) : NULL;
        free(q);
        return out ? out : wrong(r, "a text that is not UTF-8");
    }
    if (!word(r, text, sizeof text)) return wrong(r, "a value is missing");
    if (!strcmp(text, "true") || !strcmp(text, "false")) return json_boolean(*text == 't');
    const long long i = strtoll(text, &end, 0);
    if (!*end) return json_integer(i);
    const double d = strtod(text, &end);
    json_t *real = *end ? json_string(text) : json_real(d);
    return real ? real : wrong(r, "a number that is not finite");
}
static json_t *value(reader *r, int deep) {
    if (deep > DEEP) return wrong(r, "it is nested too deep");
    if (next_is(r, '{')) return fields(r, '}', deep + 1);
    if (next_is(r, '<')) return fields(r, '>', deep + 1);
    if (!next_is(r, '[')) return scalar(r);
    json_t *list = json_array();
    while (!next_is(r, ']')) {
        json_t *item = r->at < r->end ? value(r, deep + 1) : wrong(r, "a list has no end");
        if (!item || json_array_append_new(list, item)) {
            json_decref(list);
            return wrong(r, "no memory");
        }
    }
    return list;
}
static int add_to_map(json_t *into, const char *name, json_t *v) {
    json_t *map = json_object_get(into, name), *key = json_object_get(v, "key"),
           *what = json_object_get(v, "value");
    char text[32];
    if (!map && json_object_set_new(into, name, map = json_object())) return -1;
    if (json_is_integer(key)) snprintf(text, sizeof text, "%lld", (long long)json_integer_value(key));
    else if (!json_is_string(key)) return -1;
    return json_object_set_new(map, json_is_string(key) ? json_string_value(key) : text,
                               what ? json_incref(what) : json_object());
}
static int add(json_t *into, const char *name, json_t *v) { /* takes v */
    json_t *old = json_object_get(into, name);
    const bool list = among(lists, sizeof lists / sizeof *lists, name);
    if (json_is_object(v) && json_object_get(v, "key") && among(maps, sizeof maps / sizeof *maps, name)) {
        const int bad = add_to_map(into, name, v);
        json_decref(v);
        return bad;
    }
    if (json_is_array(old) && json_is_array(v)) {
        const int bad = json_array_extend(old, v);
        json_decref(v);
        return bad;
    }
    if (json_is_array(old)) return json_array_append_new(old, v);
    if (!old && (!list || json_is_array(v))) return json_object_set_new(into, name, v);
    json_t *fresh = json_array();
    if (old) json_array_append(fresh, old);
    return json_array_append_new(fresh, v) || json_object_set_new(into, name, fresh) ? -1 : 0;
}
static json_t *fields(reader *r, char close, int deep) {
    json_t *out = json_object();
    char name[128];
    while (!(close && next_is(r, close))) {
        space(r);
        if (r->at >= r->end && !close) return out;
        if (r->at >= r->end) break;
        if (!word(r, name, sizeof name)) {
            json_decref(out);
            return wrong(r, "a field's name is missing");
        }
        const bool colon = next_is(r, ':');
        space(r);
        json_t *v = colon || (r->at < r->end && strchr("{<[", *r->at) && *r->at)
                        ? value(r, deep)
                        : wrong(r, "a ':' is missing after a field's name");
        if (!v || add(out, name, v)) {
            json_decref(out);
            return wrong(r, "a field that cannot be kept");
        }
    }
    if (close && r->at <= r->end && r->at > (const char *)0 && r->at[-1] == close) return out;
    json_decref(out);
    return wrong(r, "a '{' has no end");
}
json_t *hone_serve_pbtxt(const char *text, size_t bytes, hone_serve_error *e) {
    reader r = {text, text + bytes, 1, e};
    e->code = 0;
    json_t *out = fields(&r, 0, 0);
    if (!e->code) return out;
    json_decref(out);
    return NULL;
}
