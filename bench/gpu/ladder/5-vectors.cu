// tile 128 128 threads 256 shared 32768
/* SPDX-License-Identifier: Apache-2.0
   Step 5, vectors: every load is 16 bytes. From memory a thread takes 8 halves at once. In shared memory the
   tiles lie the other way round, [k][m], and as floats: converted once instead of once a use, and a thread's
   8 rows of one k are two loads of 16 bytes.

   A thread's 8 rows are two groups of 4, 64 apart: a warp then reads 16 bytes a thread from places that
   follow each other.

   What it brings: an eighth of the load instructions; multiplications now issue almost every cycle. What is
   left: the block waits for memory before every step, and multiplies nothing meanwhile. */
enum { STEP = 32, SIDE = 128 };
/* 128 rows of STEP halves: two pieces of 8 a thread */
DEVICE void spread(float *tile, const u16 *from, i64 pitch) {
    UNROLL for (int i = 0; i < 2; i++) {
        /* a warp stores 32 neighbours, in 32 banks */
        const int row = THREAD % SIDE, k = (THREAD / SIDE + 2 * i) * 8;
        union ALIGNED16 {
            u16 one[8];
            u32x4 all;
        } v;
        v.all = load16(from + row * pitch + k);
        UNROLL for (int e = 0; e < 8; e++) tile[(k + e) * SIDE + row] = f16_f32(v.one[e]);
    }
}
/* 4 from `first` on, and 4 that are 64 behind them */
DEVICE void take(float v[8], const float *row, int first) {
    UNROLL for (int h = 0; h < 2; h++) {
        const u32x4 four = shared_load16(shared_at(row + first + 64 * h));
        v[4 * h] = BITS_F32(four.x), v[4 * h + 1] = BITS_F32(four.y), v[4 * h + 2] = BITS_F32(four.z),
              v[4 * h + 3] = BITS_F32(four.w);
    }
}
KERNEL(hone_ladder, hone_cuda_contract, 256, 1) {
    float *tile_a = (float *)hone_shared, *tile_b = tile_a + STEP * SIDE;
    const int x = THREAD % 16, y = THREAD / 16, m0 = BLOCK_Y * SIDE, n0 = BLOCK_X * SIDE;
    float sum[8][8];
    UNROLL for (int i = 0; i < 8; i++)
        UNROLL for (int j = 0; j < 8; j++) sum[i][j] = 0;
    for (int k = 0; k < a->k; k += STEP) {
        spread(tile_a, (const u16 *)a->a + m0 * a->pitch_a + k, a->pitch_a);
        spread(tile_b, (const u16 *)a->b + n0 * a->pitch_b + k, a->pitch_b);
        sync_block();
        UNROLL for (int q = 0; q < STEP; q++) {
            float left[8], right[8];
            take(left, tile_a + q * SIDE, 4 * y), take(right, tile_b + q * SIDE, 4 * x);
            UNROLL for (int i = 0; i < 8; i++)
                UNROLL for (int j = 0; j < 8; j++) sum[i][j] += left[i] * right[j];
        }
        sync_block();
    }
    UNROLL for (int i = 0; i < 8; i++)
        UNROLL for (int h = 0; h < 2; h++) { /* 4 neighbours of a row are 8 bytes */
            u64 *to =
                (u64 *)((u16 *)a->c + (m0 + 4 * y + i % 4 + i / 4 * 64) * a->pitch_c + n0 + 4 * x + 64 * h);
            *to = f32_f16x2(sum[i][4 * h], sum[i][4 * h + 1]) |
                  (u64)f32_f16x2(sum[i][4 * h + 2], sum[i][4 * h + 3]) << 32;
        }
}
