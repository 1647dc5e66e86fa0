/* SPDX-License-Identifier: Apache-2.0
   driver: one NVIDIA GPU through the CUDA driver, which is opened at run time: memory, modules, launches,
   graphs, events, tensor maps. No header or library of the toolkit is needed to build. Knows nothing about
   what kernels compute. */
#ifndef HONE_DEVICE_CUDA_DRIVER_H
#define HONE_DEVICE_CUDA_DRIVER_H
#include "base/mem.h"
#include "base/round.h"
#include "kernels/cuda/args.h"

typedef struct hone_cuda hone_cuda;
typedef struct {
    char name[96], arch[16]; /* "sm_90a": what NVRTC is asked for */
    int major, minor, sms, shared_bytes, l2_bytes;
    size_t memory_bytes;
} hone_cuda_facts;
typedef struct {
    void *module, *function;
    int registers, local_bytes, threads; /* as compiled; local: spilled to memory */
} hone_cuda_kernel;
typedef struct {
    int grid[3], threads, shared_bytes, cluster; /* cluster: blocks along x that share tiles; 0 or 1: none */
} hone_cuda_launch_shape;
typedef unsigned long long hone_cuda_address;

int hone_cuda_count(void); /* GPUs; 0 where there is no driver */
/* HONE_NOT_SUPPORTED where there is no driver or no such GPU */
hone_status hone_cuda_open(int ordinal, hone_cuda **out);
void hone_cuda_close(hone_cuda *g);
/* the calling thread works on this GPU from now on; open does it too */
hone_status hone_cuda_enter(hone_cuda *g);
const hone_cuda_facts *hone_cuda_facts_of(const hone_cuda *g);

hone_status hone_cuda_memory(hone_cuda *g, size_t bytes, hone_cuda_address *out);
void hone_cuda_memory_free(hone_cuda *g, hone_cuda_address at);
/* both wait */
hone_status hone_cuda_copy_in(hone_cuda *g, hone_cuda_address to, const void *from, size_t bytes);
hone_status hone_cuda_copy_out(hone_cuda *g, void *to, hone_cuda_address from, size_t bytes);
/* in the stream */
hone_status hone_cuda_copy(hone_cuda *g, hone_cuda_address to, hone_cuda_address from, size_t bytes);
/* in the stream */
hone_status hone_cuda_set(hone_cuda *g, hone_cuda_address at, unsigned char value, size_t bytes);

/* Host memory that the GPU reads and writes by itself, and copies of it, in the stream: they come back at
   once. */
hone_status hone_cuda_pin(hone_cuda *g, size_t bytes, void **out);
void hone_cuda_unpin(hone_cuda *g, void *at);
hone_status hone_cuda_send(hone_cuda *g, hone_cuda_address to, const void *from, size_t bytes);
hone_status hone_cuda_fetch(hone_cuda *g, void *to, hone_cuda_address from, size_t bytes);

hone_status hone_cuda_load(hone_cuda *g, const void *cubin, const char *name, int shared_bytes,
                           hone_cuda_kernel *out);
void hone_cuda_unload(hone_cuda *g, hone_cuda_kernel *kernel);
/* In the stream. The kernel may start while the one before it ends: it waits for that one's results itself
   (wait_previous). */
hone_status hone_cuda_launch(hone_cuda *g, const hone_cuda_kernel *kernel,
                             const hone_cuda_launch_shape *shape, const void *args);
/* A module with several kernels, and one of them; both stay until the process ends. */
hone_status hone_cuda_module(hone_cuda *g, const void *cubin, void **module);
hone_status hone_cuda_function(hone_cuda *g, void *module, const char *name, void **function);
/* The same with a pointer to each argument, for kernels that wait for nobody: one begins when all before it
   is done. */
hone_status hone_cuda_launch_in_turn(hone_cuda *g, void *function, int64_t groups, int threads, void **args);
/* for all that was asked of the stream; tells what went wrong in it */
hone_status hone_cuda_wait(hone_cuda *g);
void *hone_cuda_stream(hone_cuda *g); /* for other libraries */

hone_status hone_cuda_record(hone_cuda *g); /* what comes now is not run but recorded … */
hone_status hone_cuda_recorded(hone_cuda *g, void **graph);
hone_status hone_cuda_replay(hone_cuda *g, void *graph); /* … and run by this */
void hone_cuda_graph_free(hone_cuda *g, void *graph);
/* 0: begin, 1: end of what is timed, in the stream */
hone_status hone_cuda_mark(hone_cuda *g, int which);
hone_status hone_cuda_marked(hone_cuda *g, double *seconds); /* waits for mark 1; from mark 0 to it */

/* of somebody else: 1 the legacy default stream, 2 the thread's, else a CUstream */
hone_status hone_cuda_await_stream(hone_cuda *, int64_t stream);
hone_status hone_cuda_await(hone_cuda *g, int which); /* all before that mark is done */

/* Tensor maps for the copy engine. type: hone_cuda_type; rank 3 to 5; sizes in elements, strides of all dims
   but the first in bytes; boxes swizzled by 128 bytes. */
hone_status hone_cuda_tiled(hone_cuda *g, hone_cuda_tensor_map *map, int type, int rank, hone_cuda_address at,
                            const long long *extent, const long long *stride_bytes, const int *box);
/* Windows over channels-last pixels: tiles of `pixels` windows and `channels` of their channels. */
hone_status hone_cuda_im2col(hone_cuda *g, hone_cuda_tensor_map *map, int type, const hone_cuda_window *w,
                             int channels, int pixels);
#endif
