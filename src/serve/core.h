/* SPDX-License-Identifier: Apache-2.0
   core: what the server does whatever protocol it is asked in: models by name and version, requests,
   statistics, loading. No sockets here; http*.c and grpc*.c speak to clients and call this.

       hone_serve_version *v = hone_serve_find(core, "mnist", 0, &e);              0: the newest that is ready
       hone_serve_request *r = hone_serve_request_create(v, &e);                   holds the version
       void *at; size_t bytes;
       k = hone_serve_input(r, "image", "FP32", dims, 4, &at, &bytes, &e);         then fill `at`; or
         hone_serve_input_text for strings
       r->done = reply, r->arg = connection;
       hone_serve_submit(r);                                                       reply(r) is called once,
         from any thread, perhaps at once
       … in reply: r->error.code, else r->out[k], of the version's output k
       hone_serve_request_free(r); hone_serve_release(v);

   Errors are numbered as HTTP numbers them: 400 a wrong request, 404 no such model, 429, 500 ours, 501, 503
   later or elsewhere. */
#ifndef HONE_SERVE_CORE_H
#define HONE_SERVE_CORE_H
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hone/hone.h"
#include "hone/serve.h"

typedef struct {
    int code;        /* 0: none */
    char text[500];  /* one line */
    int retry_after; /* seconds, with 503 and 429; 0: not said */
} hone_serve_error;
/* Sets and returns the code. */
int hone_serve_fail(hone_serve_error *, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* a status of the engine, numbered */
int hone_serve_failed(hone_serve_error *, hone_status, const char *text);
/* sets hone_server_error */
hone_status hone_server_say(hone_status, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t hone_serve_now(void); /* ns, monotonic */

/* ---- types ---- */
const char *hone_serve_type_name(hone_dtype); /* "FP32"; NULL: the protocol has none */
hone_dtype hone_serve_type(const char *name); /* NONE: none */
size_t hone_serve_type_bytes(hone_dtype);     /* 0 for BYTES */

/* ---- models ---- */
typedef struct hone_serve_core hone_serve_core;
typedef struct hone_serve_version hone_serve_version;
hone_serve_core *hone_serve_core_of(hone_server *);

/* Held until hone_serve_release. NULL: `error` says whether there is no such model (404), or it is not ready
   and why (503). */
hone_serve_version *hone_serve_find(hone_serve_core *, const char *name, int64_t version, hone_serve_error *);
hone_serve_version *hone_serve_hold(hone_serve_version *);
void hone_serve_release(hone_serve_version *);
const char *hone_serve_version_name(const hone_serve_version *);
int64_t hone_serve_version_number(const hone_serve_version *);
/* As clients see them: the model's, but for states that the server keeps and controls that it gives. */
int hone_serve_inputs(const hone_serve_version *);
int hone_serve_outputs(const hone_serve_version *);
const hone_port *hone_serve_input_port(const hone_serve_version *, int k);
const hone_port *hone_serve_output_port(const hone_serve_version *, int k);
/* of hone.json's labels; NULL: none */
const char *hone_serve_label(const hone_serve_version *, int64_t class_number);

/* Health: starting → ready → draining. */
typedef enum { HONE_SERVE_STARTING, HONE_SERVE_READY, HONE_SERVE_DRAINING } hone_serve_health;
hone_serve_health hone_serve_health_of(hone_serve_core *);

/* Documents, as the protocol has them; the caller's. NULL: no memory, or `error`. */
const char *const *hone_serve_extensions(void); /* those that are there; ends in NULL */
json_t *hone_serve_metadata(hone_serve_version *);
json_t *hone_serve_config(hone_serve_version *);
json_t *hone_serve_statistics(hone_serve_core *, const char *name /* NULL: all */, int64_t version,
                              hone_serve_error *);
json_t *hone_serve_index(hone_serve_core *, bool ready_only);

/* Loading takes its time, so it is done by a thread of the core's, which calls done(arg, error) once;
   error->code 0: loaded (or unloaded, and requests find it no more). `config` and `files`: of the protocol's
   parameters, may be NULL; the first is copied, of the second the contents are taken. */
typedef void hone_serve_loaded(void *arg, const hone_serve_error *);
struct hone_serve_given;
void hone_serve_load(hone_serve_core *, const char *name, const char *config, struct hone_serve_given *files,
                     hone_serve_loaded *done, void *arg);
/* `members`: with the members of an ensemble that no other one has. */
void hone_serve_unload(hone_serve_core *, const char *name, bool members, hone_serve_loaded *done, void *arg);

/* ---- requests ---- */
typedef struct { /* a sequence's, as the protocol has it: a number, or a text; 0 and NULL: of no sequence */
    uint64_t number;
    char *text; /* malloc'd; the request's */
    bool start, end;
} hone_serve_id;
typedef struct { /* monotonic ns; 0: did not come to that */
    uint64_t received, queued, begun, ready /* inputs gathered */, ran, done;
    int batch; /* rows that ran together */
} hone_serve_times;
typedef struct hone_serve_request {
    hone_serve_version *version;
    hone_value **in, **out; /* one an input (NULL: left out), one an output of the version */
    uint64_t priority;      /* 1 the most urgent; 0: the version's default */
    uint64_t timeout_us;    /* in the queue; 0: the version's default */
    void (*done)(struct hone_serve_request *);
    void *arg;
    /* `done` may be called, and the model run, within hone_serve_submit: the calling thread has nothing
       better to do */
    bool inline_ok;
    hone_serve_id id; /* of the sequence it is a part of */
    /* Nobody waits for it any more: where it has not begun, it leaves the queue (499). Any thread, until
       done. */
    atomic_bool cancelled;
    hone_serve_error error;
    hone_serve_times times;
    /* the core's own: */
    void **memory;     /* of inputs that landed */
    hone_value **kept; /* what `out` are parts of */
    int64_t rows;      /* of the first dim; 0: not for a batch */
    int64_t length;    /* its inputs were filled from this; 0: they were not */
    struct hone_serve_sequence *sequence;
    struct hone_serve_request *next;
} hone_serve_request;
hone_serve_request *hone_serve_request_create(hone_serve_version *, hone_serve_error *);
/* An input of numbers, by name, of the type's name and so many dims. Checks them against the model. Returns
   the input's number, or -1. Out: where its bytes go, dense, row-major, little-endian, and how many there
   are. */
int hone_serve_input(hone_serve_request *, const char *name, const char *type, const int64_t *dims, int rank,
                     void **at, size_t *bytes, hone_serve_error *);
/* An input of texts: *out is a string tensor to fill with hone_value_set_text. */
int hone_serve_input_text(hone_serve_request *, const char *name, const int64_t *dims, int rank,
                          hone_value **out, hone_serve_error *);
/* The same from the protocol's bytes: a length of four bytes, little-endian, then so many bytes, an element.
   0, or the error's code. */
int hone_serve_text_unpack(hone_value *, const void *bytes, size_t n, hone_serve_error *);
size_t hone_serve_text_packed(const hone_value *);       /* bytes that packing gives */
void hone_serve_text_pack(const hone_value *, void *to); /* fills them */
/* Queues it. `done` is called exactly once; until then the request is the core's. */
void hone_serve_submit(hone_serve_request *);
void hone_serve_request_free(hone_serve_request *);

/* The largest classes of an output's rows as the protocol's texts "value:index:label", a BYTES tensor [rows,
   k] (or [k]). */
int hone_serve_classes(const hone_serve_version *, const hone_value *scores, int k, hone_value **out,
                       hone_serve_error *);
#endif
