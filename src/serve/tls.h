/* SPDX-License-Identifier: Apache-2.0
   tls: a socket that is spoken to in TLS, by GnuTLS, which libmicrohttpd brings along. For the gRPC front,
   whose client must agree on HTTP/2; the HTTP front has its TLS from libmicrohttpd itself. Never blocks: it
   is as the socket is. */
#ifndef HONE_SERVE_TLS_H
#define HONE_SERVE_TLS_H
#include <sys/types.h>

#include "serve/core.h"

typedef struct hone_serve_tls hone_serve_tls;         /* a certificate and its key, read once */
typedef struct hone_serve_secured hone_serve_secured; /* one connection */

/* Files in PEM form. Says what is wrong with them. */
hone_status hone_serve_tls_open(const char *certificate, const char *key, hone_serve_tls **out);
void hone_serve_tls_free(hone_serve_tls *);

/* NULL: no memory. The socket stays the caller's */
hone_serve_secured *hone_serve_secured_open(hone_serve_tls *, int fd);
void hone_serve_secured_free(hone_serve_secured *); /* says goodbye, if that can be said at once */
/* As recv and send: -1 with errno, EAGAIN where the socket is to be waited for; 0 of receive: the end. The
   handshake is made within them. */
ssize_t hone_serve_secured_receive(hone_serve_secured *, void *, size_t);
ssize_t hone_serve_secured_send(hone_serve_secured *, const void *, size_t);
bool hone_serve_secured_agreed(const hone_serve_secured *);      /* the handshake is done */
bool hone_serve_secured_wants_write(const hone_serve_secured *); /* the handshake waits for room to write */
#endif
