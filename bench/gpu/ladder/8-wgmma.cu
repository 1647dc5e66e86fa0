// tile 128 128 threads 256 shared 131104 box 64 128 128
/* SPDX-License-Identifier: Apache-2.0
   Step 8, wgmma and the copy engine (sm_90a). wgmma is an instruction of a warpgroup, 128 threads, that
   reads both factors from shared memory by itself and runs while its threads go on. The copy engine (TMA)
   brings a whole tile for one instruction of one thread: it computes the addresses, swizzles, fills in zeros
   outside of the matrix, and tells a barrier in shared memory how many bytes have come.

   Four stages. Thread 0 asks for the tiles that are three steps ahead, when both warpgroups have read what
   was there before: the block's barrier in every step says so. `box` in the first line: what the maps bring
   at once, columns of k, rows of A, rows of B.

   What it brings: shared memory is read once a warpgroup, no fragment passes through a register, no thread
   computes addresses. What is left: in every step all wait for all, and thread 0 has two trades. */
enum { STEP = 64, SIDE = 128, ROW = 128, TILE = SIDE * ROW, STAGES = 4, BARRIERS_AT = STAGES * 2 * TILE };
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
DEVICE void bring(const hone_cuda_contract_tma *a, int k) {
    const u32 shared = shared_at(hone_shared), s = (u32)(k / STEP % STAGES),
              full = shared + BARRIERS_AT + 8 * s, stage = shared + s * 2 * TILE;
    if (k >= a->p.k || THREAD) return;
    barrier_expect(full, 2 * TILE);
    tile_load(stage, &a->map_a, full, k, BLOCK_Y * SIDE, 0);
    tile_load(stage + TILE, &a->map_b, full, k, BLOCK_X * SIDE, 0);
}
KERNEL(hone_ladder, hone_cuda_contract_tma, 256, 1) {
    const u32 shared = shared_at(hone_shared);
    /* a warpgroup has 64 rows, a warp of it 16 */
    const int group = (int)shuffle_from((u32)THREAD / 128, 0), lane = THREAD % 32, warp = THREAD / 32 % 4;
    if (THREAD == 0) {
        UNROLL for (int s = 0; s < STAGES; s++) barrier_init(shared + BARRIERS_AT + 8 * (u32)s, 1);
        barrier_fence();
    }
    sync_block();
    UNROLL for (int s = 0; s < STAGES - 1; s++) bring(a, s * STEP);
    float sum[64];
    UNROLL for (int j = 0; j < 64; j++) sum[j] = 0;
    for (int k = 0; k < a->p.k; k += STEP) {
        const u32 s = (u32)(k / STEP % STAGES), stage = shared + s * 2 * TILE;
        /* opened for an even or an odd time */
        barrier_wait(shared + BARRIERS_AT + 8 * s, (u32)(k / STEP / STAGES % 2));
        wgmma_fence();
        UNROLL for (int q = 0; q < STEP / 16; q++)
            wgmma(sum, operand(stage + (u32)(group * 64 * ROW + q * 32)),
                  operand(stage + TILE + (u32)(q * 32)), 1);
        wgmma_commit();
        wgmma_wait(0);
        sync_block(); /* both warpgroups have read this stage */
        bring(a, k + (STAGES - 1) * STEP);
    }
    UNROLL for (int j = 0; j < 64; j++) KNOWN(sum[j]);
    UNROLL for (int j = 0; j < 16; j++)
        UNROLL for (int h = 0; h < 2; h++) {
            const int m = BLOCK_Y * SIDE + group * 64 + warp * 16 + lane / 4 + 8 * h,
                      n = BLOCK_X * SIDE + j * 8 + lane % 4 * 2;
            *(u32 *)((u16 *)a->p.c + m * a->p.pitch_c + n) =
                f32_f16x2(sum[j * 4 + h * 2], sum[j * 4 + h * 2 + 1]);
        }
}
