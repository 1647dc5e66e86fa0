/* SPDX-License-Identifier: Apache-2.0
   contract: products and convolutions on an NVIDIA GPU: the ways in which one can be computed, what each
   would cost, and how its kernel is printed and launched. The kernels are src/kernels/cuda/contract_*.cu and
   few_rows.cu. */
#ifndef HONE_DEVICE_CUDA_CONTRACT_H
#define HONE_DEVICE_CUDA_CONTRACT_H
#include "device/cuda/driver.h"
#include "device/cuda/print.h"

/* what is to be computed; addresses and pitches too, because alignment decides which kernels can do it */
typedef struct {
    hone_cuda_type in, out;
    hone_cuda_contract p;
    /* of a convolution: p.m are its output pixels, p.n its channels, p.k = taps x channels; else NULL */
    const hone_cuda_window *window;
    const char *epilogue; /* an expression of v, see epilogue.cu */
    /* weights: no kernel writes them, so they are read before the kernel ahead has ended */
    bool constant_b;
} hone_cuda_product;

typedef enum { HONE_CUDA_BY_WGMMA, HONE_CUDA_BY_MMA, HONE_CUDA_BY_ROWS, HONE_CUDA_BY_COLUMNS } hone_cuda_unit;
typedef struct {
    hone_cuda_unit unit;
    int tile_m, tile_n, stages,
        /* by rows: tile_m is the rows of A, tile_n the columns of a block; by columns: 16 of them by tile_m
           rows */
        splits;
    int blocks;           /* on a multiprocessor */
    int warps_m, warps_n; /* by mma */
} hone_cuda_way;

/* The order of tiles, for kernels that stay for many; false where there are too many of them. */
bool hone_cuda_walk_of(int m, int n, int batches, int tile_m, int tile_n, hone_cuda_walk *out);
/* All ways that can compute p on this GPU, at most `most` of them. There is always one. */
int hone_cuda_ways(const hone_cuda_product *p, const hone_cuda_facts *gpu, hone_cuda_way *way, int most);
/* microseconds, about */
double hone_cuda_cost(const hone_cuda_product *p, const hone_cuda_facts *gpu, const hone_cuda_way *way);
hone_cuda_way hone_cuda_best_way(const hone_cuda_product *p, const hone_cuda_facts *gpu); /* the cheapest */
int hone_cuda_way_text(const hone_cuda_way *way, char *to, size_t bytes);                 /* for people */

extern const char *const hone_cuda_contract_names[]; /* the kernel's name in its module, by unit */
hone_status hone_cuda_contract_print(hone_text *out, const hone_cuda_product *p, const hone_cuda_way *way);
hone_cuda_launch_shape hone_cuda_contract_launch(const hone_cuda_product *p, const hone_cuda_facts *gpu,
                                                 const hone_cuda_way *way);
/* Bytes of the workspace and of the counters (which must be 0 before the first run, and are after each) that
   split sums need. */
void hone_cuda_contract_room(const hone_cuda_product *p, const hone_cuda_way *way, size_t *workspace,
                             size_t *counters);
typedef union {
    hone_cuda_contract plain;
    hone_cuda_contract_tma tiles;
    struct {
        hone_cuda_contract p;
        hone_cuda_window w;
    } window;
    struct {
        hone_cuda_contract_tma t;
        hone_cuda_window w;
    } window_tiles;
} hone_cuda_contract_args;
hone_status hone_cuda_contract_fill(hone_cuda *g, const hone_cuda_product *p, const hone_cuda_way *way,
                                    hone_cuda_contract_args *args);
#endif
