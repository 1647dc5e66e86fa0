// tile 128 128 threads 256 shared 61440
/* SPDX-License-Identifier: Apache-2.0
   Step 6, asynchronous copies: cp.async (sm_80) brings 16 bytes from memory into shared memory without a
   register and without waiting. Three stages of tiles are in turn: while one is multiplied, the next two are
   on their way.

   The copy cannot convert or transpose, so tiles lie as A and B do, rows of 32 halves; a thread takes 8
   halves of k of one row at a time. Rows are 80 bytes apart, five times 16, so that eight neighbouring rows
   meet all banks.

   What it brings: memory's latency is hidden. What is left: 51 TF/s is all that 32-bit multiply-adds can do
   on an H200. */
enum { STEP = 32, SIDE = 128, PITCH = 80, STAGES = 3, STAGE = 2 * SIDE * PITCH };
DEVICE void fill(const hone_cuda_contract *a, int k) { /* both tiles of the step that begins at k */
    const u32 stage = shared_at(hone_shared) + (u32)(k / STEP % STAGES * STAGE);
    if (k < a->k)
        UNROLL for (int i = 0; i < 2; i++) {
            const int row = THREAD / 4 + 64 * i, piece = THREAD % 4;
            copy16(stage + (u32)(row * PITCH + piece * 16),
                   (const u16 *)a->a + (BLOCK_Y * SIDE + row) * a->pitch_a + k + piece * 8, 16);
            copy16(stage + (u32)((SIDE + row) * PITCH + piece * 16),
                   (const u16 *)a->b + (BLOCK_X * SIDE + row) * a->pitch_b + k + piece * 8, 16);
        }
    copy_commit(); /* one group a step, empty or not */
}
typedef union ALIGNED16 {
    u16 one[8];
    u32x4 all;
} eight;
KERNEL(hone_ladder, hone_cuda_contract, 256, 1) {
    const int x = THREAD % 16, y = THREAD / 16, m0 = BLOCK_Y * SIDE, n0 = BLOCK_X * SIDE;
    float sum[8][8];
    UNROLL for (int i = 0; i < 8; i++)
        UNROLL for (int j = 0; j < 8; j++) sum[i][j] = 0;
    fill(a, 0), fill(a, STEP);
    for (int k = 0; k < a->k; k += STEP) {
        copy_wait(STAGES - 2); /* all but the newest group: this step's tiles are there */
        /* … for all threads, and all have read the step before, whose stage is filled next */
        sync_block();
        fill(a, k + (STAGES - 1) * STEP);
        const u32 tile_a = shared_at(hone_shared) + (u32)(k / STEP % STAGES * STAGE),
                  tile_b = tile_a + SIDE * PITCH;
        UNROLL for (int piece = 0; piece < STEP / 8; piece++) {
            eight left[8];
            UNROLL for (int i = 0; i < 8; i++)
                left[i].all = shared_load16(tile_a + (u32)((y + 16 * i) * PITCH + piece * 16));
            UNROLL for (int j = 0; j < 8; j++) {
                eight right;
                right.all = shared_load16(tile_b + (u32)((x + 16 * j) * PITCH + piece * 16));
                UNROLL for (int i = 0; i < 8; i++)
                    UNROLL for (int e = 0; e < 8; e++)
                        sum[i][j] += f16_f32(left[i].one[e]) * f16_f32(right.one[e]);
            }
        }
    }
    UNROLL for (int i = 0; i < 8; i++)
        UNROLL for (int j = 0; j < 8; j++)
            ((u16 *)a->c)[(m0 + y + 16 * i) * a->pitch_c + n0 + x + 16 * j] = f32_f16(sum[i][j]);
}
