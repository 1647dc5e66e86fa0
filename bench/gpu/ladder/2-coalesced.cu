// tile 8 4 threads 256 shared 0
/* SPDX-License-Identifier: Apache-2.0
   Step 2, coalesced: the threads of a warp stand beside each other along k, where A and B are dense, and one
   load of a warp is 128 bytes that follow each other: one memory line, all of it used. A warp has one row of
   A and four rows of B; its threads add up their parts at the end.

   What it brings: loads at the width of the memory system. What is left: every byte is loaded for at most
   four products. */
KERNEL(hone_ladder, hone_cuda_contract, 256, 1) {
    const int lane = THREAD % 32, m = BLOCK_Y * 8 + THREAD / 32, n = BLOCK_X * 4;
    const u32 *left = (const u32 *)((const u16 *)a->a + m * a->pitch_a); /* two halves at a time */
    float sum[4] = {0, 0, 0, 0};
    for (int k = lane; k < a->k / 2; k += 32) {
        const u32 x = left[k];
        UNROLL for (int j = 0; j < 4; j++) {
            const u32 y = ((const u32 *)((const u16 *)a->b + (n + j) * a->pitch_b))[k];
            sum[j] += f16_f32((u16)x) * f16_f32((u16)y) + f16_f32((u16)(x >> 16)) * f16_f32((u16)(y >> 16));
        }
    }
    UNROLL for (int j = 0; j < 4; j++) {
        UNROLL for (int distance = 16; distance > 0; distance /= 2) sum[j] += shuffle_xor(sum[j], distance);
        if (lane == 0) ((u16 *)a->c)[m * a->pitch_c + n + j] = f32_f16(sum[j]);
    }
}
