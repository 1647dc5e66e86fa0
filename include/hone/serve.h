/* SPDX-License-Identifier: Apache-2.0
   serve.h: the server, embedded. A folder of models behind ports: KServe v2, as Triton speaks it.

       hone_server_options o;                        hone_server *server = NULL;
       hone_server_options_default(&o);
       o.repository = "models", o.http = 8000;
       if (hone_server_start(&o, &server)) puts(hone_server_error());
       …                                             requests are answered by threads of the server
       hone_server_stop(server, 30000);              every request that was accepted is answered
       hone_server_free(server);

   These functions are in libhone_serve, which stands on libhone, libmicrohttpd, jansson and zlib; libhone
   itself needs none of them. The rules at the top of hone.h hold, but for the message of a failure, which is
   hone_server_error's. */
#ifndef HONE_SERVE_H
#define HONE_SERVE_H
#include "hone/hone.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_server hone_server;

/* Texts are copied. A port of 0 is any free one (hone_server_port tells it), of -1 none. */
typedef struct {
    /* a folder of NAME/VERSION/model.onnx, a folder of .onnx files, one .onnx file, or "zoo:NAME" */
    const char *repository;
    const char *host; /* address to listen at; NULL: 127.0.0.1 */
    int http, grpc, metrics;
    int http_threads; /* that read and write connections; 0: as many as cores, at most 4 */
    /* "throughput", or "latency=10ms": what batches and instances are chosen for; NULL: throughput */
    const char *goal;
    int threads; /* cores for models; 0: all */
    /* the repository is looked at so often where the system cannot tell of changes; 0: 1000 */
    int poll_ms;
    int watch;                  /* 1: changes in the repository are followed */
    int explicit_load;          /* 1: nothing is loaded until it is asked for */
    const char *const *load;    /* names to load at start with explicit_load; NULL or ends in NULL */
    int64_t max_body_bytes;     /* of a request, after unpacking; 0: 256 MiB */
    int64_t max_json_bytes;     /* of that, JSON; 0: 16 MiB */
    int64_t max_header_bytes;   /* 0: 32 KiB */
    int max_connections;        /* 0: 1000 */
    int max_connections_per_ip; /* 0: no limit */
    int idle_seconds;           /* a connection that does nothing is closed; 0: 60 */
    int request_seconds;        /* a request must have come whole within these; 0: 120 */
    double rate;                /* requests a second of one address, more are answered 429; 0: no limit */
    int queue;                  /* requests that wait for one model, more are answered 503; 0: 256 */
    int64_t run_ms;             /* a run that takes longer fails; 0: no limit */
    /* a file, a key a line: then requests need "Authorization: Bearer KEY"; NULL: none */
    const char *api_keys;
    const char *certificate; /* files in PEM form: TLS; both or none */
    const char *key;
    const char *access_log; /* a file that gets a line of JSON a request; "-": standard output; NULL: none */
    /* Called with one line at what an operator wants to know: a model loaded, refused, unloaded. Any thread.
       NULL: nobody. */
    void (*tell)(void *arg, const char *line);
    void *arg;
    const char *precision; /* "f32", "bf16", "f16", "tf32" for all models; NULL: as hone_options has it */
    /* "HOST:PORT,grpc://HOST:PORT": no models here; requests go to these servers of KServe v2, over HTTP or
       gRPC, to the one that is ready and has the least to do. Then there is no repository. NULL: none */
    const char *front;
    const char *trace; /* a file that gets the spans of requests, as ui.perfetto.dev shows them; NULL: none */
    /* "cuda", "cuda:0,cuda:1": where models run that do not say so themselves; their instances are shared out
       among these. NULL: the CPU */
    const char *device;
    int answer_seconds; /* of a server behind the front; 0: 60 */
    /* MiB of files that a request to load a model may bring, within max_body_bytes; 0: 256; -1: none */
    int max_files_mib;
    /* MiB that one model's weights and tensors may take; its config may say less ("memory_mib"); 0: none */
    int max_model_mib;
    int reserved[5]; /* zero */
} hone_server_options;
HONE_API void hone_server_options_default(hone_server_options *); /* fills all fields */

/* The calling thread's last message of this library: one line, or "". */
HONE_API const char *hone_server_error(void);

/* Opens the ports, then loads the repository; back when that is done. A model of a folder that cannot be
   loaded is told, and answers why to those who ask for it; it does not stop the others. Fails: BAD_INPUT for
   options, and where a file, zoo:NAME or a name of `load` cannot be loaded; NOT_SUPPORTED for a protocol that
   was not built in; IO for a port that is taken, a repository or file that cannot be read, a name of `load`
   that is not there. */
HONE_API hone_status hone_server_start(const hone_server_options *, hone_server **out);
/* The port that was opened for "http", "grpc" or "metrics"; -1: none. */
HONE_API int hone_server_port(const hone_server *, const char *what);
/* No more requests are taken (health says not ready, ports are closed); those that were accepted are
   answered, for so many milliseconds at most. Fails: IO where some were still running then; they are answered
   with 503. */
HONE_API hone_status hone_server_stop(hone_server *, int64_t most_ms);
HONE_API void hone_server_free(hone_server *); /* stops at once where it was not stopped. NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
