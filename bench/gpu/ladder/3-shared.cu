// tile 32 32 threads 1024 shared 4352
/* SPDX-License-Identifier: Apache-2.0
   Step 3, shared memory: a block loads 32 rows of A and of B, 32 elements of k at a time, and every element
   is then used 32 times from shared memory instead of from a cache.

   Rows there are 34 halves apart and not 32: 17 words, an odd number, so that 32 threads that read one column
   of 32 rows meet 32 banks. With 32 halves, 16 words, they would meet two, and wait for each other.

   What it brings: memory traffic goes down by 32. What is left: two loads from shared memory for every
   multiplication. */
enum { STEP = 32, PITCH = 34 };
KERNEL(hone_ladder, hone_cuda_contract, 1024, 1) {
    u16 *tile_a = (u16 *)hone_shared, *tile_b = tile_a + 32 * PITCH;
    const int x = THREAD % 32, y = THREAD / 32, m = BLOCK_Y * 32 + y, n = BLOCK_X * 32 + x;
    const u16 *left = (const u16 *)a->a + m * a->pitch_a,
              *right = (const u16 *)a->b + (BLOCK_X * 32 + y) * a->pitch_b;
    float sum = 0;
    for (int k = 0; k < a->k; k += STEP) {
        tile_a[y * PITCH + x] = left[k + x], tile_b[y * PITCH + x] = right[k + x];
        sync_block(); /* both tiles are there */
        UNROLL for (int i = 0; i < STEP; i++)
            sum += f16_f32(tile_a[y * PITCH + i]) * f16_f32(tile_b[x * PITCH + i]);
        sync_block(); /* both have been read */
    }
    ((u16 *)a->c)[m * a->pitch_c + n] = f32_f16(sum);
}
