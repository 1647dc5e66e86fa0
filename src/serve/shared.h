/* SPDX-License-Identifier: Apache-2.0
   shared: regions of system and of CUDA memory, by the names that clients register them under: inputs are
   read from them, outputs written into them, and no tensor goes through a socket. */
#ifndef HONE_SERVE_SHARED_H
#define HONE_SERVE_SHARED_H
#include "serve/core.h"

typedef struct hone_serve_shared hone_serve_shared;
hone_serve_shared *hone_serve_shared_create(void); /* NULL: no memory */
void hone_serve_shared_free(hone_serve_shared *);
hone_serve_shared *hone_serve_shared_of(hone_serve_core *);

/* Each returns 0, or the error's code. key: of shm_open, "/name". */
int hone_serve_shared_add(hone_serve_shared *, const char *name, const char *key, uint64_t offset,
                          uint64_t bytes, hone_serve_error *);
/* handle: n bytes of cudaIpcMemHandle_t */
int hone_serve_shared_add_cuda(hone_serve_shared *, const char *name, const uint8_t *handle, size_t n,
                               int64_t device, uint64_t bytes, hone_serve_error *);
/* Of that kind; "": all of it. */
int hone_serve_shared_remove(hone_serve_shared *, bool cuda, const char *name, hone_serve_error *);
/* A list of {name, key, offset, byte_size}, or {name, device_id, byte_size}; of one, or "": of all. NULL:
   `error`. */
json_t *hone_serve_shared_list(hone_serve_shared *, bool cuda, const char *name, hone_serve_error *);

/* A tensor of a request, from a region; `at` and `bytes` as hone_serve_input gave them, or `texts`; given:
   what the request says it has there. */
typedef struct {
    char name[128]; /* "": none */
    uint64_t offset, bytes;
} hone_serve_place;
int hone_serve_shared_input(hone_serve_shared *, const hone_serve_place *, const char *input, void *at,
                            size_t bytes, hone_value *texts, hone_serve_error *);
/* An output into a region, if it fits; *bytes: how much it takes there. */
int hone_serve_shared_output(hone_serve_shared *, const hone_serve_place *, const char *output, hone_value *,
                             uint64_t *bytes, hone_serve_error *);
#endif
