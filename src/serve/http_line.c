/* SPDX-License-Identifier: Apache-2.0
   http_line: requests of clients that send the next one before the last is answered (pipelining). Hundreds of
   them may lie in the memory of one connection, and libmicrohttpd would answer them one after another while
   all others wait. So each stands in line, behind those of other such clients, and one at a time is called:
   between two of them the thread looks after everybody else. */
#include "serve/http.h"

static hone_http_call *next(hone_http_line *l) { /* under the lock */
    hone_http_call *c = l->at ? NULL : l->first;
    if (!c) return NULL;
    if (!(l->first = c->behind)) l->last = NULL;
    l->at = c, c->behind = NULL;
    return c;
}
void hone_http_line_enter(hone_http_line *l, hone_http_call *c, void (*call)(hone_http_call *)) {
    pthread_mutex_lock(&l->lock);
    c->lined = true;
    if (l->last) l->last->behind = c;
    else l->first = c;
    l->last = c;
    hone_http_call *now = next(l);
    pthread_mutex_unlock(&l->lock);
    if (now) call(now);
}
void hone_http_line_leave(hone_http_line *l, hone_http_call *c, void (*call)(hone_http_call *)) {
    if (!c->lined) return;
    pthread_mutex_lock(&l->lock);
    c->lined = false;
    if (l->at == c) l->at = NULL;
    hone_http_call *now = next(l);
    pthread_mutex_unlock(&l->lock);
    if (now) call(now);
}
