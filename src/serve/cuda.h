/* SPDX-License-Identifier: Apache-2.0
   cuda: memory of a CUDA device that another process shares by its handle. The driver is opened when the
   first region is; the server needs none. Stands on nothing else of the server, so that a test can try it
   alone. */
#ifndef HONE_SERVE_CUDA_H
#define HONE_SERVE_CUDA_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HONE_SERVE_CUDA_HANDLE = 64 };
typedef struct hone_serve_cuda hone_serve_cuda;
bool hone_serve_cuda_there(void); /* the driver, and a device */
/* Each returns NULL, or one line that says what went wrong. */
const char *hone_serve_cuda_open(const uint8_t handle[HONE_SERVE_CUDA_HANDLE], int64_t device, uint64_t bytes,
                                 hone_serve_cuda **out);
const char *hone_serve_cuda_read(hone_serve_cuda *, uint64_t offset, void *to, size_t bytes);
const char *hone_serve_cuda_write(hone_serve_cuda *, uint64_t offset, const void *from, size_t bytes);
void hone_serve_cuda_close(hone_serve_cuda *);
#endif
