/* SPDX-License-Identifier: Apache-2.0
   http_seen: the JSON of a connection's last request. Who sends tensors as binary data sends the same JSON
   before them again and again: it is read once. Documents are only looked at, so calls share one. */
#include <stdlib.h>
#include <string.h>

#include "serve/http.h"

enum { MOST = 2048 };

json_t *hone_http_seen_read(hone_http_seen *s, const char *text, size_t n, json_error_t *where) {
    if (s && s->document && s->n == n && !memcmp(s->text, text, n)) return json_incref(s->document);
    json_t *document = json_loadb(text, n, JSON_REJECT_DUPLICATES, where);
    if (!s || !document || n > MOST) return document;
    char *copy = realloc(s->text, n + 1);
    json_decref(s->document), s->document = NULL, s->n = n;
    if (!copy) return document;
    s->text = memcpy(copy, text, n);
    s->document = json_incref(document);
    return document;
}
void hone_http_seen_free(hone_http_seen *s) {
    json_decref(s->document), free(s->text);
    *s = (hone_http_seen){0};
}
