/* SPDX-License-Identifier: Apache-2.0
   move: tensors brought into another order. y's last dim is contiguous; in x another dim may be. Where that is so, a block reads a square
   along x's contiguous dim, turns it in shared memory and writes it along y's: both sides are whole lines. Where x's last dim is contiguous too,
   it is a copy of rows. Elements are only moved, so their type is a size.

   Filled in by the printer: BYTES (1, 2, 4 or 8 an element), TURN (1: y's last dim is k, x's contiguous one is j). */
#if BYTES == 1
typedef u8 element;
#elif BYTES == 2
typedef u16 element;
#elif BYTES == 4
typedef u32 element;
#else
typedef u64 element;
#endif

#if TURN
enum { SIDE = 32, LANES = 4 / BYTES > 0 ? 4 / BYTES : 1, TILE = SIDE * LANES, PITCH = TILE + LANES }; /* a row of a tile is 32 words */
typedef union { element one[LANES]; u32 word; } lanes; /* moved as one word, or two */

/* A tile of TILE x TILE elements: 256 threads, each word of a row by one lane. */
KERNEL(hone_move, hone_cuda_move, 256, 4) {
    element *tile = (element *)hone_shared; /* [j of x][k of x]: read along j */
    const int lane = THREAD % SIDE, first = THREAD / SIDE;
    const i64 j0 = (i64)BLOCK_X * TILE, k0 = (i64)BLOCK_Y * TILE;
    launch_next();
    wait_previous();
    for (i64 i = BLOCK_Z; i < a->extent[0]; i += GRID_Z) {
        const element *x = (const element *)a->x + i * a->stride_x[0];
        element *y = (element *)a->y + i * a->extent[1] * a->extent[2];
        UNROLL for (int r = first; r < TILE; r += 8) {
            const i64 k = k0 + r, j = j0 + lane * LANES;
            lanes v;
            const element *from = x + k * a->stride_x[2] + j;
            const bool whole = k < a->extent[2] && j + LANES <= a->extent[1] && (u64)from % (LANES * BYTES) == 0;
            if (whole) {
                v = *(const lanes *)from;
            } else {
                UNROLL for (int e = 0; e < LANES; e++) v.one[e] = k < a->extent[2] && j + e < a->extent[1] ? from[e] : 0;
            }
            ((lanes *)(tile + r * PITCH))[lane] = v; /* a row is whole words */
        }
        sync_block();
        UNROLL for (int r = first; r < TILE; r += 8) {
            const i64 j = j0 + r, k = k0 + lane * LANES;
            if (j < a->extent[1]) {
                lanes v;
                element *to = y + j * a->extent[2] + k;
                UNROLL for (int e = 0; e < LANES; e++) v.one[e] = tile[(lane * LANES + e) * PITCH + r];
                if (k + LANES <= a->extent[2] && (u64)to % (LANES * BYTES) == 0) {
                    *(lanes *)to = v;
                } else {
                    UNROLL for (int e = 0; e < LANES; e++)
                        if (k + e < a->extent[2]) to[e] = v.one[e];
                }
            }
        }
        sync_block();
    }
}
#else
/* Rows of y, k contiguous on both sides: 16 bytes a thread where both are aligned, else element by element. */
KERNEL(hone_move, hone_cuda_move, 256, 4) {
    const int per = 16 / BYTES;
    const i64 pieces = (a->extent[2] + per - 1) / per, all = a->extent[0] * a->extent[1] * pieces;
    launch_next();
    wait_previous();
    for (i64 n = (i64)BLOCK_X * 256 + THREAD; n < all; n += (i64)GRID_X * 256) {
        const i64 k = n % pieces * per, j = n / pieces % a->extent[1], i = n / pieces / a->extent[1];
        const element *from = (const element *)a->x + i * a->stride_x[0] + j * a->stride_x[1] + k;
        element *to = (element *)a->y + (i * a->extent[1] + j) * a->extent[2] + k;
        if (k + per <= a->extent[2] && ((u64)from | (u64)to) % 16 == 0) store16(to, load16_once(from));
        else
            for (int e = 0; e < per && k + e < a->extent[2]; e++) to[e] = from[e];
    }
}
#endif
