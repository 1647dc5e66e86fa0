/* SPDX-License-Identifier: Apache-2.0
   http_body: a request's body as it comes: unpacked where it is compressed, limited, and handed on to whoever
   reads tensors of it, or kept whole. */
#include <stdlib.h>
#include <strings.h>

#include "serve/http.h"

enum { AT_ONCE = 1 << 20 }; /* a body of that size has its room from the first byte on */

/* Memory is taken as bytes come, not as they are announced; a large body gets its size at once when a part is
   there. */
static bool take_raw(hone_http_call *c, const char *bytes, size_t n) {
    hone_http_text *t = &c->text;
    const size_t whole = c->length > 0 ? (size_t)c->length + 1 : 0;
    if (whole > t->room && (whole <= AT_ONCE || t->n >= whole / 8)) {
        char *more = realloc(t->at, whole);
        if (!more) return false;
        t->at = more, t->room = whole;
    }
    return hone_http_append(t, bytes, n);
}
static void take_plain(hone_http_call *c, const char *bytes, size_t n) {
    const hone_server_options *o = hone_serve_options(hone_http_server(c));
    c->taken += n;
    if (c->error.code) return; /* read, and forgotten */
    if (c->taken > (uint64_t)o->max_body_bytes)
        hone_serve_fail(&c->error, 413, "the body is larger than %lld bytes", (long long)o->max_body_bytes);
    else if (!c->raw) hone_http_infer_take(c, bytes, n);
    else if (!take_raw(c, bytes, n)) hone_serve_fail(&c->error, 503, "no memory for the body");
}
void hone_http_take(hone_http_call *c, const char *bytes, size_t n) {
    c->in += n;
    if (!c->unpack) {
        take_plain(c, bytes, n);
        return;
    }
    char out[16384];
    c->stream.next_in = (Bytef *)bytes, c->stream.avail_in = (uInt)n;
    while (!c->unpacked && !c->error.code) {
        c->stream.next_out = (Bytef *)out, c->stream.avail_out = sizeof out;
        const int rc = inflate(&c->stream, Z_NO_FLUSH);
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR) {
            hone_serve_fail(&c->error, 400, "the body does not unpack: %s",
                            c->stream.msg ? c->stream.msg : "damaged");
            return;
        }
        const size_t made = sizeof out - c->stream.avail_out;
        c->unpacked = rc == Z_STREAM_END;
        if (made) take_plain(c, out, made);
        if (!made && !c->unpacked) break;
        if (!c->stream.avail_in && c->stream.avail_out) break;
    }
}
void hone_http_unpack(hone_http_call *c) {
    const char *coding = hone_http_header(c, "Content-Encoding");
    if (!coding || !*coding || !strcasecmp(coding, "identity")) return;
    if (strcasecmp(coding, "gzip") && strcasecmp(coding, "deflate") && strcasecmp(coding, "x-gzip"))
        hone_serve_fail(&c->error, 415, "Content-Encoding '%.40s': gzip and deflate are taken", coding);
    else if (inflateInit2(&c->stream, 15 + 32))
        hone_serve_fail(&c->error, 503, "no memory to unpack the body");
    else c->unpack = true;
}
