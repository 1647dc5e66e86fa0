// tile 16 16 threads 256 shared 0
/* SPDX-License-Identifier: Apache-2.0
   Step 1, naive: C = A Bᵀ as one writes it first. A thread has one element of C and walks along k.

   What is wrong with it: neighbouring threads have neighbouring rows of A, so that one load of a warp touches
   16 rows, each a memory line away from the next, for 2 bytes of each; and every element of A is read n
   times, of B m times, all through the caches. */
KERNEL(hone_ladder, hone_cuda_contract, 256, 1) {
    const int m = BLOCK_Y * 16 + THREAD % 16, n = BLOCK_X * 16 + THREAD / 16;
    const u16 *left = (const u16 *)a->a + m * a->pitch_a, *right = (const u16 *)a->b + n * a->pitch_b;
    float sum = 0;
    for (int k = 0; k < a->k; k++) sum += f16_f32(left[k]) * f16_f32(right[k]);
    ((u16 *)a->c)[m * a->pitch_c + n] = f32_f16(sum);
}
