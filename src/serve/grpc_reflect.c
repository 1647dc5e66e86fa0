/* SPDX-License-Identifier: Apache-2.0
   grpc_reflect: grpc.reflection.v1 and v1alpha: clients that know nothing of a server ask what it speaks. */
#include <string.h>

#include "serve/grpc.h"
#include "serve/grpc_proto.h"

enum { /* of ServerReflectionRequest */
       HOST = 1,
       FILE_BY_NAME = 3,
       FILE_OF_SYMBOL = 4,
       FILE_OF_EXTENSION = 5,
       EXTENSIONS = 6,
       LIST = 7
};
static bool same(const hone_serve_field *f, const char *text) {
    return f->bytes == strlen(text) && !memcmp(f->data, text, f->bytes);
}
static const hone_grpc_symbol *symbol_of(const hone_grpc_protos *p, const hone_serve_field *f) {
    for (int k = 0; k < p->symbols; k++)
        if (same(f, p->symbol[k].name)) return &p->symbol[k];
    return NULL;
}
static void put_file(hone_serve_out *o, const hone_grpc_file *f) {
    const size_t begun = hone_serve_put_begin(o, 4);
    hone_serve_put_bytes(o, 1, f->descriptor.at, f->descriptor.n);
    hone_serve_put_end(o, begun);
}
static void put_error(hone_serve_out *o, int code, const char *text) {
    const size_t begun = hone_serve_put_begin(o, 7);
    hone_serve_put_number(o, 1, (uint64_t)code);
    hone_serve_put_text(o, 2, text);
    hone_serve_put_end(o, begun);
}
static void answer(hone_serve_out *o, const hone_grpc_protos *p, const hone_serve_field *f) {
    const hone_grpc_symbol *s;
    switch (f->number) {
    case FILE_BY_NAME:
        for (int k = 0; k < HONE_GRPC_FILES; k++)
            if (same(f, p->file[k].name)) {
                put_file(o, &p->file[k]);
                return;
            }
        put_error(o, HONE_GRPC_NOT_FOUND, "there is no such file");
        return;
    case FILE_OF_SYMBOL:
        if ((s = symbol_of(p, f))) put_file(o, &p->file[s->file]);
        else put_error(o, HONE_GRPC_NOT_FOUND, "there is no such symbol");
        return;
    case EXTENSIONS: /* proto3 has none */
        if (!(s = symbol_of(p, f)) || s->kind != HONE_PROTO_MESSAGE) {
            put_error(o, HONE_GRPC_NOT_FOUND, "there is no such message");
        } else {
            const size_t begun = hone_serve_put_begin(o, 5);
            hone_serve_put_text(o, 1, s->name);
            hone_serve_put_end(o, begun);
        }
        return;
    case LIST: {
        const size_t begun = hone_serve_put_begin(o, 6);
        for (int k = 0; k < p->symbols; k++) {
            if (p->symbol[k].kind != HONE_PROTO_SERVICE) continue;
            const size_t one = hone_serve_put_begin(o, 1);
            hone_serve_put_text(o, 1, p->symbol[k].name);
            hone_serve_put_end(o, one);
        }
        hone_serve_put_end(o, begun);
        return;
    }
    default: put_error(o, HONE_GRPC_NOT_FOUND, "there are no extensions");
    }
}
bool hone_grpc_reflect(hone_grpc_item *i, const uint8_t *at, size_t n) {
    const hone_grpc_protos *p = hone_grpc_protos_get();
    hone_serve_wire w = {at, at + n, false};
    hone_serve_field f, host = {0}, asked = {0};
    while (hone_serve_wire_next(&w, &f)) {
        if (f.type != HONE_SERVE_BYTES) continue;
        if (f.number == HOST) host = f;
        else if (f.number >= FILE_BY_NAME && f.number <= LIST) asked = f;
    }
    if (w.bad || !asked.number) hone_serve_fail(&i->error, 400, "the message is malformed");
    else if (!p) hone_serve_fail(&i->error, 503, "no memory for descriptors");
    if (!p || i->error.code) {
        hone_grpc_call_fail(i->call, hone_grpc_status_of(i->error.code), i->error.text);
        i->error.code = 0;
        return true;
    }
    size_t begun;
    hone_serve_out *o = hone_grpc_answer(i, &begun);
    if (host.bytes) hone_serve_put_bytes(o, 1, host.data, host.bytes);
    hone_serve_put_bytes(o, 2, at, n);
    answer(o, p, &asked);
    hone_grpc_answered(i, begun);
    return true;
}
