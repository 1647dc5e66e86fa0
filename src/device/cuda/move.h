/* SPDX-License-Identifier: Apache-2.0
   move: transposes and copies on an NVIDIA GPU: the ways in which one can be done, what each would cost, how
   its kernel (src/kernels/cuda/move.cu) is printed and launched. */
#ifndef HONE_DEVICE_CUDA_MOVE_H
#define HONE_DEVICE_CUDA_MOVE_H
#include "device/cuda/driver.h"
#include "device/cuda/print.h"

typedef struct {
    int bytes;        /* of an element: 1, 2, 4 or 8 */
    hone_cuda_move p; /* stride_x[1] or stride_x[2] is 1 */
} hone_cuda_movement;
typedef struct {
    int turn, high, once, blocks; /* see move.cu */
} hone_cuda_move_way;

/* rows that follow each other in x as they do in y become one: before all else */
void hone_cuda_move_merge(hone_cuda_movement *m);
/* there is always one */
int hone_cuda_move_ways(const hone_cuda_movement *m, hone_cuda_move_way *way, int most);
double hone_cuda_move_cost(const hone_cuda_movement *m, const hone_cuda_facts *gpu,
                           const hone_cuda_move_way *way); /* microseconds, about */
hone_cuda_move_way hone_cuda_move_best(const hone_cuda_movement *m, const hone_cuda_facts *gpu);
/* the kernel is hone_move */
hone_status hone_cuda_move_print(hone_text *out, const hone_cuda_movement *m, const hone_cuda_move_way *way);
hone_cuda_launch_shape hone_cuda_move_launch(const hone_cuda_movement *m, const hone_cuda_move_way *way);
#endif
