/* SPDX-License-Identifier: Apache-2.0
   tls: GnuTLS as recv and send. */
#include "serve/tls.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>

struct hone_serve_tls {
    gnutls_certificate_credentials_t own;
};
struct hone_serve_secured {
    gnutls_session_t session;
    bool agreed, broken;
};

hone_status hone_serve_tls_open(const char *certificate, const char *key, hone_serve_tls **out) {
    hone_serve_tls *t = calloc(1, sizeof *t);
    if (!t || gnutls_certificate_allocate_credentials(&t->own)) {
        free(t);
        return hone_server_say(HONE_NO_MEMORY, "no memory for TLS");
    }
    const int rc = gnutls_certificate_set_x509_key_file(t->own, certificate, key, GNUTLS_X509_FMT_PEM);
    if (rc < 0) {
        hone_serve_tls_free(t);
        return hone_server_say(HONE_BAD_INPUT, "TLS: certificate %s with key %s: %s", certificate, key,
                               gnutls_strerror(rc));
    }
    *out = t;
    return HONE_OK;
}
void hone_serve_tls_free(hone_serve_tls *t) {
    if (!t) return;
    gnutls_certificate_free_credentials(t->own);
    free(t);
}

hone_serve_secured *hone_serve_secured_open(hone_serve_tls *t, int fd) {
    static const gnutls_datum_t h2 = {(unsigned char *)(uintptr_t) "h2", 2};
    hone_serve_secured *s = calloc(1, sizeof *s);
    if (!s || gnutls_init(&s->session, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL)) {
        free(s);
        return NULL;
    }
    if (gnutls_set_default_priority(s->session) ||
        gnutls_credentials_set(s->session, GNUTLS_CRD_CERTIFICATE, t->own) ||
        gnutls_alpn_set_protocols(s->session, &h2, 1, GNUTLS_ALPN_MANDATORY)) {
        hone_serve_secured_free(s);
        return NULL;
    }
    gnutls_transport_set_int(s->session, fd);
    return s;
}
void hone_serve_secured_free(hone_serve_secured *s) {
    if (!s) return;
    if (s->agreed && !s->broken) (void)gnutls_bye(s->session, GNUTLS_SHUT_WR);
    gnutls_deinit(s->session);
    free(s);
}

static ssize_t failed(hone_serve_secured *s, ssize_t rc) {
    if (rc == GNUTLS_E_AGAIN || rc == GNUTLS_E_INTERRUPTED) {
        errno = rc == GNUTLS_E_AGAIN ? EAGAIN : EINTR;
        return -1;
    }
    s->broken = true, errno = EPROTO;
    return -1;
}
static int agree(hone_serve_secured *s) { /* 1: it was agreed; 0: not yet; below: it cannot be */
    if (s->agreed) return 1;
    if (s->broken) return (int)failed(s, GNUTLS_E_INVALID_SESSION);
    int rc;
    do rc = gnutls_handshake(s->session);
    while (rc < 0 && rc != GNUTLS_E_AGAIN && !gnutls_error_is_fatal(rc)); /* interrupted, or a warning */
    if (!rc) return s->agreed = true;
    if (rc != GNUTLS_E_AGAIN) {
        (void)gnutls_alert_send_appropriate(s->session, rc);
        return (int)failed(s, rc);
    }
    errno = EAGAIN;
    return 0;
}
ssize_t hone_serve_secured_receive(hone_serve_secured *s, void *to, size_t n) {
    const int good = agree(s);
    if (good <= 0) return -1;
    const ssize_t got = gnutls_record_recv(s->session, to, n);
    if (got == GNUTLS_E_PREMATURE_TERMINATION) return 0; /* HTTP/2 tells by itself what is whole */
    return got >= 0 ? got : failed(s, got);
}
ssize_t hone_serve_secured_send(hone_serve_secured *s, const void *from, size_t n) {
    const int good = agree(s);
    if (good <= 0) return -1;
    const ssize_t sent = gnutls_record_send(s->session, from, n);
    return sent >= 0 ? sent : failed(s, sent);
}
bool hone_serve_secured_agreed(const hone_serve_secured *s) { return s->agreed; }
bool hone_serve_secured_wants_write(const hone_serve_secured *s) {
    return !s->agreed && !s->broken && gnutls_record_get_direction(s->session);
}
