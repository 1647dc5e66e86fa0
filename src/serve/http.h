/* SPDX-License-Identifier: Apache-2.0
   http: what the files of the HTTP front share: a call (one request and its answer), where its body goes, how
   it is answered. */
#ifndef HONE_SERVE_HTTP_H
#define HONE_SERVE_HTTP_H
#include <microhttpd.h>
#include <zlib.h>

#include "serve/server.h"

typedef struct hone_http hone_http;
typedef struct hone_http_call hone_http_call;

typedef struct {
    char *at;
    size_t n, room;
} hone_http_text;
bool hone_http_append(hone_http_text *, const void *, size_t);
bool hone_http_printf(hone_http_text *, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool hone_http_quoted(hone_http_text *, const char *); /* as JSON */
bool hone_http_number(hone_http_text *, int64_t);
char *hone_http_digits(int64_t, char text[24]); /* within `text` */
bool hone_http_text_append(hone_http_text *, const char *);

typedef struct {
    const char *name;               /* in the table of routes; what of the path is a model is in the call */
    bool post;                      /* else GET (and HEAD) */
    bool open;                      /* needs no API key */
    void (*body)(hone_http_call *); /* before the first byte, once the headers are in; may set error */
    /* all of the body is there: answers, or sets `waiting` and answers later */
    void (*finish)(hone_http_call *);
} hone_http_route;

typedef struct { /* where bytes of the body go after its JSON */
    uint8_t *at;
    size_t bytes;
    hone_value *texts; /* then at is ours, and unpacked when it is full */
} hone_http_part;

typedef struct { /* the JSON of a connection's last request */
    char *text;
    size_t n;
    json_t *document; /* NULL: none yet */
} hone_http_seen;

/* What a finished call says to the front: */
enum { HONE_CALL_BODY, HONE_CALL_SUBMITTED, HONE_CALL_SUSPENDED, HONE_CALL_DONE };

struct hone_http_call {
    hone_http *front;
    struct MHD_Connection *connection;
    const hone_http_route *route;
    char model[256];
    int64_t version;
    hone_serve_error error; /* then this is the answer, once the body was read */
    atomic_int state;
    bool waiting; /* somebody else will finish it */
    /* It came before the one ahead of it was answered: those take turns, one at a time (http_line.c). */
    bool lined, called;
    hone_http_call *behind;
    uint64_t began, in, out, forgotten;
    /* the body */
    hone_http_text text;   /* JSON, or all of it where there is no other place */
    int64_t json_bytes;    /* of the body that are JSON; -1: all; 0: none, it is one raw tensor */
    int64_t length;        /* Content-Length; -1: not said */
    uint64_t taken;        /* bytes of the body, unpacked */
    bool unpack, unpacked; /* it is compressed; its end was there */
    z_stream stream;
    /* inference */
    bool parsed;
    hone_serve_version *held;
    hone_serve_request *request;
    json_t *document;
    hone_http_seen *seen; /* the connection's; may be NULL */
    hone_http_part *part;
    int parts, at_part;
    size_t at_byte;
    hone_serve_times times;         /* of the request, when that went along with the answer */
    bool raw;                       /* the body is kept as it came, whatever it is */
    char *url;                      /* of what goes to a server behind a front, whole */
    struct hone_front_job *forward; /* that, and its answer */
    bool picture_wanted;            /* /classify: the body is a picture's file */
    hone_value *picture;
    /* the answer */
    struct MHD_Response *reply;
    int code;
    char trace[56], parent[17], verb[8], path[300];
};

hone_server *hone_http_server(const hone_http_call *);
hone_serve_core *hone_http_core(const hone_http_call *);
const char *hone_http_header(const hone_http_call *, const char *name); /* NULL: not there */
/* Each answers: once a call. Text and document are taken. */
void hone_http_answer(hone_http_call *, int code, const char *type, hone_http_text *);
void hone_http_answer_json(hone_http_call *, int code, json_t *);
void hone_http_answer_empty(hone_http_call *, int code);
void hone_http_answer_error(hone_http_call *);
void hone_http_release(hone_http_call *); /* it waited, and can be answered: from any thread */
/* http_body.c */
void hone_http_unpack(hone_http_call *); /* the headers are in: is it compressed? May set error */
void hone_http_take(hone_http_call *, const char *bytes, size_t n);
/* http_line.c */
typedef struct {
    pthread_mutex_t lock;
    hone_http_call *first, *last;
    hone_http_call *at; /* whose turn it is, not to be looked into */
} hone_http_line;
void hone_http_line_enter(hone_http_line *, hone_http_call *, void (*call)(hone_http_call *));
void hone_http_line_leave(hone_http_line *, hone_http_call *, void (*call)(hone_http_call *));
/* http_infer.c */
void hone_http_infer_body(hone_http_call *);
void hone_http_infer_take(hone_http_call *, const char *bytes, size_t n); /* of any body; may set error */
void hone_http_infer_finish(hone_http_call *);
void hone_http_infer_reply(hone_http_call *); /* the request is done */
void hone_http_infer_free(hone_http_call *);
void hone_http_submit(hone_http_call *); /* c->request */
/* http_seen.c: json_loadb, or what it made of the same text before, not to be changed */
json_t *hone_http_seen_read(hone_http_seen *, const char *text, size_t, json_error_t *);
void hone_http_seen_free(hone_http_seen *);
/* http_data.c: JSON's numbers and texts to tensors and back */
int hone_http_data_read(const json_t *data, hone_dtype, void *at, hone_value *texts, int64_t count,
                        const char *name, hone_serve_error *);
bool hone_http_data_write(const hone_value *, hone_http_text *);
/* front_http.c */
const hone_http_route *hone_front_find(hone_http_call *, const char *url, bool post, bool metrics);
void hone_front_reply(hone_http_call *); /* the server behind has answered */
void hone_front_forget(hone_http_call *);
/* http_classify.c */
void hone_http_classify_body(hone_http_call *);
void hone_http_classify_finish(hone_http_call *);
void hone_http_classify_reply(hone_http_call *);
/* status.c */
void hone_http_page(hone_http_call *);
void hone_http_status(hone_http_call *);
bool hone_serve_metrics_write(hone_serve_core *, hone_http_text *);
bool hone_serve_metrics_process(hone_http_text *); /* of this process, whatever it does */
json_t *hone_serve_status_process(void);           /* the same for the status page */
#endif
