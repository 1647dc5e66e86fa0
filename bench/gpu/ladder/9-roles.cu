// tile 128 256 threads 384 shared 196672 box 64 128 256
/* SPDX-License-Identifier: Apache-2.0
   Step 9, roles: a third warpgroup does nothing but ask for tiles, and the two that multiply do nothing
   else. They meet at barriers in shared memory only: a stage is `full` when its bytes have come, `empty`
   when both warpgroups have read it; nobody waits for a step's end. The asking warpgroup gives its registers
   to the others, whose tile of C grows to 64 x 256 each: more products for every byte of shared memory. The
   wait for one step's products comes after the next step's were issued, so that the matrix unit never idles.

   What it brings: copies and products overlap entirely. What is left for src/kernels/cuda/contract_wgmma.cu:
   blocks that stay for many tiles and write one while they multiply the next, an order of tiles that keeps
   both factors in L2, two blocks that share a tile of B, any size, type and epilogue. */
enum {
    STEP = 64,
    TILE_M = 128,
    TILE_N = 256,
    ROW = 128,
    TILE_A = TILE_M * ROW,
    STAGE = TILE_A + TILE_N * ROW,
    STAGES = 4,
    BARRIERS_AT = STAGES * STAGE
};
/* D[64][128] += A[64][16] B[128][16]ᵀ, both from shared memory by descriptor. The instruction names all its
   registers. */
DEVICE void wgmma(float d[64], u64 a, u64 b, int add) {
#ifdef HONE_EMULATE
    emu_wgmma(d, a, 0, b, 128, add, EMU_F16);
#else
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, %64, %65, p, 1, 1, 0, 0; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),
          "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),
          "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),
          "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
          "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]),
          "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]),
          "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),
          "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "l"(a), "l"(b), "r"(add));
#endif
}
DEVICE u64 operand(u32 at) { /* rows of 128 bytes, swizzled; 8 rows are 1024 bytes */
    return (u64)((at & 0x3ffffu) >> 4) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}
KERNEL(hone_ladder, hone_cuda_contract_tma, 384, 1) {
    const u32 shared = shared_at(hone_shared), full = shared + BARRIERS_AT, empty = full + 8 * STAGES;
    const int group = (int)shuffle_from((u32)THREAD / 128, 0) - 1, lane = THREAD % 32, warp = THREAD / 32 % 4,
              steps = a->p.k / STEP;
    if (THREAD == 0) {
        UNROLL for (int s = 0; s < STAGES; s++)
            barrier_init(full + 8 * (u32)s, 1), barrier_init(empty + 8 * (u32)s, 2);
        barrier_fence();
    }
    sync_block();
    if (group < 0) {
        registers_less(40);
        if (THREAD == 0)
            for (int k = 0; k < steps; k++) {
                const u32 s = (u32)(k % STAGES);
                if (k >= STAGES) barrier_wait(empty + 8 * s, (u32)(k / STAGES % 2 ^ 1));
                barrier_expect(full + 8 * s, STAGE);
                tile_load(shared + s * STAGE, &a->map_a, full + 8 * s, k * STEP, BLOCK_Y * TILE_M, 0);
                tile_load(shared + s * STAGE + TILE_A, &a->map_b, full + 8 * s, k * STEP, BLOCK_X * TILE_N,
                          0);
            }
    } else {
        registers_more(232);
        float sum[2][64]; /* left and right 128 columns */
        UNROLL for (int j = 0; j < 64; j++) sum[0][j] = sum[1][j] = 0;
        for (int k = 0; k < steps; k++) {
            const u32 s = (u32)(k % STAGES), left = shared + s * STAGE + (u32)(group * 64 * ROW),
                      right = shared + s * STAGE + TILE_A;
            barrier_wait(full + 8 * s, (u32)(k / STAGES % 2));
            wgmma_fence();
            UNROLL for (int q = 0; q < STEP / 16; q++)
                UNROLL for (int h = 0; h < 2; h++)
                    wgmma(sum[h], operand(left + (u32)(q * 32)),
                          operand(right + (u32)(h * 128 * ROW + q * 32)), 1);
            wgmma_commit();
            wgmma_wait(1); /* the step before: its stage has been read */
            if (THREAD % 128 == 0 && k > 0) barrier_arrive(empty + 8 * (u32)((k - 1) % STAGES));
        }
        wgmma_wait(0);
        UNROLL for (int j = 0; j < 64; j++) KNOWN(sum[0][j]);
        UNROLL for (int j = 0; j < 64; j++) KNOWN(sum[1][j]);
        UNROLL for (int j = 0; j < 32; j++)
            UNROLL for (int h = 0; h < 2; h++) {
                const int m = BLOCK_Y * TILE_M + group * 64 + warp * 16 + lane / 4 + 8 * h,
                          n = BLOCK_X * TILE_N + j * 8 + lane % 4 * 2;
                *(u32 *)((u16 *)a->p.c + m * a->p.pitch_c + n) =
                    f32_f16x2(sum[j / 16][j % 16 * 4 + h * 2], sum[j / 16][j % 16 * 4 + h * 2 + 1]);
            }
    }
}
