// tile 128 128 threads 128 shared 98304
/* SPDX-License-Identifier: Apache-2.0
   Step 7, the matrix unit of warps (mma.sync, sm_80): one instruction of a warp multiplies 16 x 16 by 16 x 8,
   which step 6 took 64 instructions of every thread for. A warp has 64 x 64 of C. Fragments come by ldmatrix,
   which reads eight rows of 16 bytes at a time.

   Rows in shared memory are 128 bytes, and their 16-byte pieces are swapped by the row's number (swizzle):
   eight rows of one column then meet all banks, without the padding of the steps before.

   What it brings: an order of magnitude. What is left: fragments pass through registers, warps issue copies,
   and the newer tensor cores are only fed fully by wgmma. This is what src/kernels/cuda/contract_mma.cu is,
   without its edges, types and epilogues. */
enum { STEP = 64, SIDE = 128, ROW = 128, STAGES = 3, STAGE = 2 * SIDE * ROW };
DEVICE void fill(const hone_cuda_contract *a, int k) {
    const u32 stage = shared_at(hone_shared) + (u32)(k / STEP % STAGES * STAGE);
    if (k < a->k)
        UNROLL for (int i = 0; i < SIDE / 16; i++) {
            const int row = THREAD / 8 + 16 * i, piece = THREAD % 8;
            copy16(stage + swizzle((u32)(row * ROW + piece * 16)),
                   (const u16 *)a->a + (BLOCK_Y * SIDE + row) * a->pitch_a + k + piece * 8, 16);
            copy16(stage + SIDE * ROW + swizzle((u32)(row * ROW + piece * 16)),
                   (const u16 *)a->b + (BLOCK_X * SIDE + row) * a->pitch_b + k + piece * 8, 16);
        }
    copy_commit();
}
KERNEL(hone_ladder, hone_cuda_contract, 128, 1) {
    /* this warp's part of the tile */
    const int lane = THREAD % 32, m0 = THREAD / 32 % 2 * 64, n0 = THREAD / 64 * 64;
    float sum[4][8][4];
    UNROLL for (int i = 0; i < 4; i++)
        UNROLL for (int j = 0; j < 8; j++)
            UNROLL for (int e = 0; e < 4; e++) sum[i][j][e] = 0;
    fill(a, 0), fill(a, STEP);
    for (int k = 0; k < a->k; k += STEP) {
        copy_wait(STAGES - 2);
        sync_block();
        fill(a, k + (STAGES - 1) * STEP);
        const u32 tile_a = shared_at(hone_shared) + (u32)(k / STEP % STAGES * STAGE),
                  tile_b = tile_a + SIDE * ROW;
        UNROLL for (int q = 0; q < STEP / 16; q++) { /* an instruction takes 16 of k: 32 bytes */
            u32 left[4][4], right[4][4];
            UNROLL for (int i = 0; i < 4; i++)
                matrix_load(left[i], tile_a + swizzle((u32)((m0 + i * 16 + lane % 16) * ROW + q * 32 +
                                                            lane / 16 * 16)));
            UNROLL for (int j = 0; j < 4; j++)
                matrix_load(right[j], tile_b + swizzle((u32)((n0 + j * 16 + lane / 16 * 8 + lane % 8) * ROW +
                                                             q * 32 + lane / 8 % 2 * 16)));
            UNROLL for (int i = 0; i < 4; i++)
                UNROLL for (int j = 0; j < 8; j++) mma_f16(sum[i][j], left[i], right[j / 2] + j % 2 * 2);
        }
    }
    UNROLL for (int i = 0; i < 4; i++) /* a thread's sums: rows lane / 4 and 8 below, two columns */
        UNROLL for (int j = 0; j < 8; j++)
            UNROLL for (int h = 0; h < 2; h++) {
                const int m = BLOCK_Y * SIDE + m0 + i * 16 + lane / 4 + 8 * h,
                          n = BLOCK_X * SIDE + n0 + j * 8 + lane % 4 * 2;
                *(u32 *)((u16 *)a->c + m * a->pitch_c + n) =
                    f32_f16x2(sum[i][j][2 * h], sum[i][j][2 * h + 1]);
            }
}
