// tile 128 128 threads 256 shared 9216
/* SPDX-License-Identifier: Apache-2.0
   Step 4, registers: a thread has 8 x 8 elements of C. For each k it reads 8 + 8 values from shared memory
   and makes 64 products of them: four products a load, where step 3 had half a one. What a register holds is
   the fastest memory there is, and there are 256 KB of it on every SM.

   A thread's rows and columns are 16 apart, so that neighbouring threads have neighbouring rows of B's tile,
   whose distance is again an odd number of words.

   What it brings: the multiplications become what the kernel does. What is left: loads of 2 bytes, from
   memory and from shared memory. */
enum { STEP = 16, PITCH = 18, SIDE = 128 };
KERNEL(hone_ladder, hone_cuda_contract, 256, 1) {
    u16 *tile_a = (u16 *)hone_shared, *tile_b = tile_a + SIDE * PITCH;
    const int x = THREAD % 16, y = THREAD / 16, m0 = BLOCK_Y * SIDE, n0 = BLOCK_X * SIDE;
    float sum[8][8];
    UNROLL for (int i = 0; i < 8; i++)
        UNROLL for (int j = 0; j < 8; j++) sum[i][j] = 0;
    for (int k = 0; k < a->k; k += STEP) {
        UNROLL for (int i = 0; i < SIDE / 16; i++) { /* 16 threads load one row */
            tile_a[(y + 16 * i) * PITCH + x] = ((const u16 *)a->a)[(m0 + y + 16 * i) * a->pitch_a + k + x];
            tile_b[(y + 16 * i) * PITCH + x] = ((const u16 *)a->b)[(n0 + y + 16 * i) * a->pitch_b + k + x];
        }
        sync_block();
        UNROLL for (int q = 0; q < STEP; q++) {
            float left[8], right[8];
            UNROLL for (int i = 0; i < 8; i++)
                left[i] = f16_f32(tile_a[(y + 16 * i) * PITCH + q]),
                right[i] = f16_f32(tile_b[(x + 16 * i) * PITCH + q]);
            UNROLL for (int i = 0; i < 8; i++)
                UNROLL for (int j = 0; j < 8; j++) sum[i][j] += left[i] * right[j];
        }
        sync_block();
    }
    UNROLL for (int i = 0; i < 8; i++)
        UNROLL for (int j = 0; j < 8; j++)
            ((u16 *)a->c)[(m0 + y + 16 * i) * a->pitch_c + n0 + x + 16 * j] = f32_f16(sum[i][j]);
}
