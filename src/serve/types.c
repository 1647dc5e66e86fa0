/* SPDX-License-Identifier: Apache-2.0
   types: the protocol's names of types, and the messages of failures. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "serve/core.h"

static const struct {
    const char *name;
    hone_dtype dtype;
    int bytes;
} types[] = {
    {"BOOL", HONE_DTYPE_BOOL, 1},  {"UINT8", HONE_DTYPE_U8, 1},     {"UINT16", HONE_DTYPE_U16, 2},
    {"UINT32", HONE_DTYPE_U32, 4}, {"UINT64", HONE_DTYPE_U64, 8},   {"INT8", HONE_DTYPE_I8, 1},
    {"INT16", HONE_DTYPE_I16, 2},  {"INT32", HONE_DTYPE_I32, 4},    {"INT64", HONE_DTYPE_I64, 8},
    {"FP16", HONE_DTYPE_F16, 2},   {"FP32", HONE_DTYPE_F32, 4},     {"FP64", HONE_DTYPE_F64, 8},
    {"BF16", HONE_DTYPE_BF16, 2},  {"BYTES", HONE_DTYPE_STRING, 0},
};
enum { TYPES = sizeof types / sizeof *types };

const char *hone_serve_type_name(hone_dtype d) {
    for (int k = 0; k < TYPES; k++)
        if (types[k].dtype == d) return types[k].name;
    return NULL;
}
hone_dtype hone_serve_type(const char *name) {
    for (int k = 0; k < TYPES; k++)
        if (!strcmp(types[k].name, name)) return types[k].dtype;
    return HONE_DTYPE_NONE;
}
size_t hone_serve_type_bytes(hone_dtype d) {
    for (int k = 0; k < TYPES; k++)
        if (types[k].dtype == d) return (size_t)types[k].bytes;
    return 0;
}

uint64_t hone_serve_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int hone_serve_fail(hone_serve_error *e, int code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char text[sizeof e->text];
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *p = text; *p; p++) /* one line, whatever was asked for by name */
        if ((unsigned char)*p < ' ' || *p == 127) *p = ' ';
    memcpy(e->text, text, sizeof text);
    e->code = code, e->retry_after = 0;
    return code;
}
int hone_serve_failed(hone_serve_error *e, hone_status s, const char *text) {
    static const int codes[] = {[HONE_OK] = 0,          [HONE_BAD_INPUT] = 400, [HONE_NOT_SUPPORTED] = 501,
                                [HONE_NO_MEMORY] = 503, [HONE_IO] = 500,        [HONE_BUG] = 500};
    return hone_serve_fail(e, codes[s], "%s", text);
}

static _Thread_local char said[600];
hone_status hone_server_say(hone_status s, const char *format, ...) {
    char text[sizeof said];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    memcpy(said, text, sizeof text);
    return s;
}
const char *hone_server_error(void) { return said; }
