/* SPDX-License-Identifier: Apache-2.0
   attention: softmax(scale Q Kᵀ + mask) V on an NVIDIA GPU: the ways in which it can be computed, what each
   would cost, how its kernels (src/kernels/cuda/attention*.cu) are printed and launched. */
#ifndef HONE_DEVICE_CUDA_ATTENTION_H
#define HONE_DEVICE_CUDA_ATTENTION_H
#include "device/cuda/driver.h"
#include "device/cuda/print.h"

typedef struct {
    hone_cuda_type type; /* f16 or bf16 */
    bool causal;
    hone_cuda_type mask; /* f32, f16 or bf16; 0: there is none */
    /* addresses and strides too: alignment decides which kernels can do it; splits is the way's */
    hone_cuda_attention p;
} hone_cuda_attended;
typedef enum {
    HONE_CUDA_ATTENTION_WARPS,
    HONE_CUDA_ATTENTION_DECODE,
    HONE_CUDA_ATTENTION_GROUPS
} hone_cuda_attention_unit;
typedef struct {
    hone_cuda_attention_unit unit;
    int warps, splits;                              /* by warps, and decode */
    int consumers, block_k, stages, section, turns; /* by warpgroups, see attention_wgmma.cu */
} hone_cuda_attention_way;

/* All ways that can compute it on this GPU, at most `most` of them. There is one for head sizes up to 256,
   and none for larger ones. */
int hone_cuda_attention_ways(const hone_cuda_attended *t, const hone_cuda_facts *gpu,
                             hone_cuda_attention_way *way, int most);
double hone_cuda_attention_cost(const hone_cuda_attended *t, const hone_cuda_facts *gpu,
                                const hone_cuda_attention_way *way); /* us, about */
bool hone_cuda_attention_best(const hone_cuda_attended *t, const hone_cuda_facts *gpu,
                              hone_cuda_attention_way *way); /* false: there is none */
/* for people */
int hone_cuda_attention_way_text(const hone_cuda_attention_way *way, char *to, size_t bytes);

hone_status hone_cuda_attention_print(hone_text *out, const hone_cuda_attended *t,
                                      const hone_cuda_attention_way *way);
hone_cuda_launch_shape hone_cuda_attention_launch(const hone_cuda_attended *t, const hone_cuda_facts *gpu,
                                                  const hone_cuda_attention_way *way);
/* Bytes of the workspace and of the counters (0 before the first run, and after each) that split keys
   need. */
void hone_cuda_attention_room(const hone_cuda_attended *t, const hone_cuda_attention_way *way,
                              size_t *workspace, size_t *counters);
typedef union {
    hone_cuda_attention plain;
    hone_cuda_attention_tma tiles;
} hone_cuda_attention_args;
hone_status hone_cuda_attention_fill(hone_cuda *g, const hone_cuda_attended *t,
                                     const hone_cuda_attention_way *way, hone_cuda_attention_args *args);
#endif
