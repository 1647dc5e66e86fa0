/* SPDX-License-Identifier: Apache-2.0
   traffic: what the parts of `hone load` share: where the requests go and what they are (traffic_body.c), how
   they travel (a protocol's table: traffic_http.c, traffic_grpc.c), one level of load (traffic_run.c), what
   many levels say (traffic_sum.c) and how that is shown (traffic_tell.c). Nothing here knows models: all it
   has is what the server tells. */
#ifndef HONE_APPS_TRAFFIC_H
#define HONE_APPS_TRAFFIC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "args.h"
#include "json.h"

/* ---- bytes that grow ---- */
typedef struct {
    uint8_t *at;
    size_t n, room;
} hone_octets;
void hone_octets_add(hone_octets *, const void *, size_t);
void hone_octets_print(hone_octets *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hone_octets_free(hone_octets *);

/* ---- the server, and the model in it ---- */
typedef struct {
    char host[256], port[8];
    struct sockaddr_storage address;
    socklen_t address_bytes;
    const hone_words *headers; /* "NAME: VALUE", sent with every request */
    double timeout_s;
} hone_target;
/* 0, or the exit code: one line was said */
int hone_target_read(const char *url, bool grpc, hone_target *out);
int hone_target_connect(const hone_target *, bool wait); /* a socket, or -1 and errno */
void hone_socket_close(int fd);                          /* keeps errno */

typedef struct { /* an input as the server describes it, and the numbers it is given */
    char *name, datatype[8];
    hone_dtype dtype;
    int rank;
    bool free_first;   /* the first dim was free */
    int64_t dims[16];  /* -1: free; then what was chosen */
    hone_octets *data; /* one for each distinct request */
    char from[160];
} hone_traffic_input;
typedef struct {
    char *name, *version; /* version: as asked for, "" for the server's choice */
    char server[128];
    int n, requests; /* inputs; distinct requests */
    hone_traffic_input *input;
    /* batch: items that a request holds: the first dim where that is the batch, else 1 */
    int64_t max_batch, batch;
} hone_traffic_model;

/* How the command's words choose inputs. */
typedef struct {
    hone_words dims, shapes, inputs;
    int distinct, seed;
} hone_traffic_wish;
int hone_traffic_describe(hone_traffic_model *, const hone_json *metadata, const hone_json *config);
int hone_traffic_fill(hone_traffic_model *, const hone_traffic_wish *);
/* The JSON of request k, and behind it the tensors where `json` is false; returns the bytes of JSON. */
size_t hone_traffic_json_body(const hone_traffic_model *, int k, bool json, hone_octets *out);
void hone_traffic_model_free(hone_traffic_model *);

/* ---- how requests travel ---- */
typedef struct { /* what the server counted since it started, of one model, in ns */
    bool there;
    double total, executions, inferences, queue, input, infer, output, requests;
} hone_traffic_served;

/* An answer is there, or will never be: why is NULL, or what went wrong. */
typedef void hone_traffic_done(void *cookie, int slot, const char *why);
typedef struct {
    hone_traffic_done *done;
    void *cookie;
    const hone_octets *request; /* whole requests as this protocol sends them, so many */
    int requests;
    const hone_target *target;
} hone_traffic_link;

typedef struct {
    const char *name;
    int streams; /* requests that one connection may have under way */
    /* Over a socket that was told to connect. NULL: no memory. */
    void *(*open)(const hone_traffic_link *, int fd, int first_slot);
    void (*close)(void *);
    /* Begins one; false: the connection broke (its requests were told). */
    bool (*send)(void *, int slot, int request);
    /* The socket has something to read, or room; false: broken, or the server wants another one for the next
       request. */
    bool (*ready)(void *, bool readable, bool writable);
    bool (*waits)(void *); /* for room to write */
    /* Asks about the model and what it did, by means of its own. 0, or the exit code. */
    int (*describe)(const hone_target *, hone_traffic_model *);
    void (*served)(const hone_target *, const hone_traffic_model *, hone_traffic_served *);
    void (*body)(const hone_traffic_model *, const hone_target *, int k, bool json, hone_octets *out);
} hone_traffic_protocol;
extern const hone_traffic_protocol hone_traffic_http;
const hone_traffic_protocol *hone_traffic_grpc(void); /* NULL: nghttp2 is not there */

/* ---- one level of load ---- */
typedef struct {
    const hone_traffic_protocol *protocol;
    hone_target target;
    hone_traffic_model model;
    hone_octets *request;
    int requests;
    double warmup_s, window_s;
    /* exactly: so many requests and no more; 0: until it is stable */
    int windows_most, connections, pid, seed, exactly;
    bool steady;   /* --rate at even distances, not Poisson's */
    double stable; /* 0.1: how far three windows may lie apart */
} hone_traffic;

typedef struct {
    double at, low, high; /* ms; 95 of 100 such intervals hold the true one */
} hone_traffic_quantile;
typedef struct {
    int clients; /* under way at once; 0: a rate */
    double rate;
    /* late: the generator's own delay, at the 99th percentile */
    double seconds, per_s, mean_ms, max_ms, late_ms;
    hone_traffic_quantile p50, p90, p95, p99;
    int windows;
    int64_t n, errors, in_bytes;
    bool stable, overloaded;
    char why[256]; /* of the first error */
    hone_traffic_served served;
    double cpu_us, memory_bytes; /* --pid: a request, and resident; else NAN */
    struct {
        double per_s, p50, p99;
    } window[64];
} hone_traffic_level;
/* 0, or the exit code. `share` is called a few times a second, from 0 to 1. */
int hone_traffic_run(const hone_traffic *, hone_traffic_level *, void (*share)(void *, double), void *cookie);

/* Latencies of one level, in the order they came. */
void hone_traffic_sum(double *ms, int n, hone_traffic_level *);
/* Which level is the knee: the most throughput for its latency. -1: none. */
int hone_traffic_knee(const hone_traffic_level *, int n);

typedef struct {
    const hone_traffic *traffic;
    hone_traffic_level *level;
    int n, knee;
    const char *url;
} hone_traffic_report;
void hone_traffic_tell(const hone_traffic_report *);
void hone_traffic_json(const hone_traffic_report *, FILE *);
void hone_traffic_csv(const hone_traffic_report *, FILE *);
#endif
