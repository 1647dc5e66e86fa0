/* SPDX-License-Identifier: Apache-2.0
   args: what each family of CUDA kernels takes, one struct by value. The same text stands before the kernel's
   and in C, so that both sides agree on every byte; addresses are 64-bit numbers. Sizes are in elements
   unless the name says bytes. */
#ifndef HONE_KERNELS_CUDA_ARGS_H
#define HONE_KERNELS_CUDA_ARGS_H
typedef struct { /* a row of x makes a row of y, or one number */
    unsigned long long x, y, weight, bias, other;
    long long rows, pitch_x, pitch_y, pitch_other;
    int columns;
    float epsilon;
} hone_cuda_rows;
typedef struct { /* y[i][j][k] = x at i, j, k by these strides; y is dense */
    unsigned long long x, y;
    long long extent[3], stride_x[3];
} hone_cuda_move;
typedef struct { /* C[b][m][n] = A[b][m][k] * B[b][n][k]: both factors have k as their last dim */
    /* bias: f32, whole: i32, both a number a column */
    unsigned long long a, b, c, bias, whole, residual, workspace, counters;
    long long batch_a, batch_b, batch_c, batch_residual; /* elements from one batch to the next */
    long long pitch_a, pitch_b, pitch_c, pitch_residual; /* elements from one row to the next */
    int m, n, k, batches, splits;
    float alpha;
} hone_cuda_contract;
typedef struct {
    unsigned long long word[16];
} hone_cuda_tensor_map __attribute__((aligned(64)));
enum { HONE_CUDA_GROUP = 8 };
/* the order of C's tiles: groups of HONE_CUDA_GROUP rows of them, column by column within one, so that
   neighbours share L2 */
typedef struct {
    /* tiles of all batches, of one, of a full group; groups; rows of tiles in the last one */
    unsigned works, tiles, group, groups, last;
    unsigned by_tiles, by_group, by_last; /* x / d is the upper half of x * by_d; 0: d is 1 */
} hone_cuda_walk;
typedef struct { /* the same product where tiles come by the copy engine */
    hone_cuda_tensor_map map_a, map_b, map_c, map_before; /* before: the residual */
    /* of the last tiles where those are not whole: rows behind the edge cost the engine time */
    hone_cuda_tensor_map end_a, end_b;
    hone_cuda_contract p;
    hone_cuda_walk walk;
} hone_cuda_contract_tma;
typedef struct { /* a window over channels-last pixels; w is f32 [ky][kx][c] for depthwise */
    unsigned long long x, w, y, bias, whole, residual;
    int batch, height, width, channels, out_height, out_width, kernel_y, kernel_x, stride_y, stride_x, pad_y,
        pad_x, dilation_y, dilation_x;
    int pitch_x, pitch_y; /* of depthwise and pools: elements from one pixel to the next */
} hone_cuda_window;
typedef struct { /* the first layer: an image of few channels, its elements so far apart */
    hone_cuda_contract p;
    hone_cuda_window w;
    long long image, line, pixel, channel;
} hone_cuda_first;
typedef struct { /* y[z][c] = scale * the sum of x[z][r][c] over rows r; columns lie side by side */
    unsigned long long x, y, workspace, counters;
    long long matrix_x, matrix_y, pitch_x; /* elements from one matrix to the next, one row to the next */
    int rows, columns, blocks, splits;     /* blocks: over columns */
    float scale;
} hone_cuda_columns;
typedef struct { /* a recurrent layer; x, h, c: f32 [steps][ways][rows][(gates)][width]; c, h0, c0: or 0 */
    unsigned long long x, r, bias, h, c, h0, c0;
    long long h0_way, h0_row, h0_each, c0_way, c0_row, c0_each; /* elements */
    int when_c[2], when_k[2]; /* a direction: step t reads x of when_c + when_k t; 0 where there is none */
    int steps, ways, rows, width;
} hone_cuda_cell;
typedef struct { /* softmax(q kᵀ scale + mask) v by heads; strides in elements: batch, head, token */
    unsigned long long q, k, v, y, mask, lengths, workspace, counters;
    /* the mask's: batch, head, query */
    long long stride_q[3], stride_k[3], stride_v[3], stride_y[3], stride_mask[3];
    int batches, heads, kv_heads, queries, keys, head_size, splits;
    float scale;
} hone_cuda_attention;
typedef struct { /* the same where tiles come by the copy engine; all boxes are 64 columns wide, swizzled */
    /* head size, heads that share K and V, queries, heads of K and V, batches; box: 64, group, 64 / group,
       1, 1 */
    hone_cuda_tensor_map map_q, map_y;
    /* head size, keys, heads of K and V, batches; box: 64, BLOCK_K, 1, 1 */
    hone_cuda_tensor_map map_k, map_v;
    hone_cuda_attention p; /* lengths or 0; no workspace, no counters, no splits */
    /* how many heads' keys and values are worked on together, so that they stay in L2: 1 or more */
    int section;
} hone_cuda_attention_tma;
#endif
