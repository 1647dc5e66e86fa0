/* SPDX-License-Identifier: Apache-2.0
   move: tensors brought into another order. y's last dim is contiguous; in x another dim may be. Where that is so, a block reads a tile
   along x's contiguous dim, turns it in shared memory and writes it along y's: both sides are whole lines. Where x's last dim is contiguous too,
   it is a copy of rows. Elements are only moved, so their type is a size.

   Filled in by the printer: BYTES (1, 2, 4 or 8 an element), TURN (1: y's last dim is k, x's contiguous one is j; shared memory:
   two tiles of 16 KB). */
#if BYTES == 1
typedef u8 element;
#elif BYTES == 2
typedef u16 element;
#elif BYTES == 4
typedef u32 element;
#else
typedef u64 element;
#endif
enum { PER = 16 / BYTES }; /* elements of a 16-byte piece */

#if TURN
/* A tile is TILE_K rows of 128 bytes along j. Its pieces of 16 bytes are swapped by the row, so that PER rows of one column meet different
   banks. A thread reads a word (WORD elements of j) of PER rows and has whole pieces of y's rows. */
enum { TILE_J = 128 / BYTES, TILE_K = 128, WORD = BYTES < 4 ? 4 / BYTES : 1, TILE_BYTES = TILE_K * 128 };
DEVICE u32 place(int k, int byte) { return (u32)(k * 128) + ((u32)byte ^ (u32)(k / PER % 8 * 16)); }

typedef struct { const element *x; element *y; int wide, high; } tile; /* where it begins, how much of it is there */
DEVICE tile tile_at(const hone_cuda_move *a, i64 t) {
    const i64 tiles_j = (a->extent[1] + TILE_J - 1) / TILE_J, tiles_k = (a->extent[2] + TILE_K - 1) / TILE_K;
    const i64 j0 = t % tiles_j * TILE_J, k0 = t / tiles_j % tiles_k * TILE_K, i = t / tiles_j / tiles_k;
    tile r;
    r.x = (const element *)a->x + i * a->stride_x[0] + k0 * a->stride_x[2] + j0;
    r.y = (element *)a->y + (i * a->extent[1] + j0) * a->extent[2] + k0;
    r.wide = a->extent[1] - j0 < TILE_J ? (int)(a->extent[1] - j0) : TILE_J;
    r.high = a->extent[2] - k0 < TILE_K ? (int)(a->extent[2] - k0) : TILE_K;
    return r;
}
DEVICE void bring(const hone_cuda_move *a, const tile *t, u32 to) {
    int thread = THREAD;
    AGAIN(thread);
    const i64 pitch = a->stride_x[2];
    if (((u64)t->x | (u64)(pitch * BYTES)) % 16 == 0) { /* pieces; the last of a row may be part of one */
        const int j = thread % 8 * PER, left = t->wide - j;
        const element *from = t->x + (thread / 8) * pitch + j;
        UNROLL for (int q = 0; q < TILE_K / 32; q++) {
            const int k = thread / 8 + q * 32;
            if (k < t->high && left > 0) copy16(to + place(k, j * BYTES), from, left >= PER ? 16 : left * BYTES);
            from += 32 * pitch;
        }
    } else { /* element by element, neighbours by neighbouring threads */
        enum { ROUND = 8 };
        for (int p = thread; p < TILE_K * TILE_J; p += 256 * ROUND) {
            element v[ROUND];
            UNROLL for (int q = 0; q < ROUND; q++) {
                const int k = (p + q * 256) / TILE_J, j = (p + q * 256) % TILE_J;
                if (k < t->high && j < t->wide) v[q] = t->x[k * pitch + j];
            }
            UNROLL for (int q = 0; q < ROUND; q++) {
                const int k = (p + q * 256) / TILE_J, j = (p + q * 256) % TILE_J;
                if (k < t->high && j < t->wide) *(element *)(hone_shared + (to - shared_at(hone_shared)) + place(k, j * BYTES)) = v[q];
            }
        }
    }
    copy_commit();
}
DEVICE void leave(const hone_cuda_move *a, const tile *t, u32 from_at) {
    int thread = THREAD;
    AGAIN(thread);
    const i64 pitch = a->extent[2];
    const char *shared = hone_shared + (from_at - shared_at(hone_shared));
    if (((u64)t->y | (u64)(pitch * BYTES)) % 16 == 0) {
        /* lanes: 8 groups of PER rows by 4 words: every lane another bank, and 128 bytes of a row of y in one store */
        UNROLL for (int q = 0; q < 4 / WORD; q++) {
            const int warp = thread / 32 + q * 8, group = warp % (TILE_K / PER / 8) * 8 + thread % 8, word = warp / (TILE_K / PER / 8) * 4 + thread % 32 / 8;
            union { element one[WORD]; u32 bits; u64 long_bits; } from[PER];
            if (group * PER >= t->high || word * WORD >= t->wide) continue;
            UNROLL for (int r = 0; r < PER; r++) {
                const char *at = shared + place(group * PER + r, word * WORD * BYTES);
                if (BYTES == 8) from[r].long_bits = *(const u64 *)at;
                else from[r].bits = *(const u32 *)at;
            }
            element *to = t->y + word * WORD * pitch + group * PER;
            UNROLL for (int e = 0; e < WORD; e++) {
                union ALIGNED16 { element one[PER]; u32x4 all; } v;
                UNROLL for (int r = 0; r < PER; r++) v.one[r] = from[r].one[e];
                if (word * WORD + e < t->wide) store16(to, v.all); /* whole: the pitch is a multiple of PER */
                to += pitch;
            }
        }
    } else {
        for (int p = thread; p < TILE_K * TILE_J; p += 256) {
            const int k = p % TILE_K, j = p / TILE_K;
            if (k < t->high && j < t->wide) t->y[j * pitch + k] = *(const element *)(shared + place(k, j * BYTES));
        }
    }
}

/* A block stays for many tiles: the next one comes while this one leaves. */
KERNEL(hone_move, hone_cuda_move, 256, 4) {
    const i64 tiles = (a->extent[1] + TILE_J - 1) / TILE_J * ((a->extent[2] + TILE_K - 1) / TILE_K) * a->extent[0];
    const u32 shared = shared_at(hone_shared);
    launch_next();
    wait_previous();
    i64 t = BLOCK_X;
    if (t >= tiles) return;
    tile now = tile_at(a, t);
    bring(a, &now, shared);
    for (int turn = 0; t < tiles; turn ^= 1, t += GRID_X) {
        tile next = now;
        if (t + GRID_X < tiles) next = tile_at(a, t + GRID_X), bring(a, &next, shared + (u32)(turn ^ 1) * TILE_BYTES);
        else copy_commit();
        copy_wait(1);
        sync_block();
        leave(a, &now, shared + (u32)turn * TILE_BYTES);
        sync_block(); /* the tile after the next may come here */
        now = next;
    }
}
#else
/* Rows of y, k contiguous on both sides: 16 bytes a thread where both are aligned, else element by element. */
KERNEL(hone_move, hone_cuda_move, 256, 4) {
    const i64 pieces = (a->extent[2] + PER - 1) / PER, all = a->extent[0] * a->extent[1] * pieces;
    const bool dense = a->stride_x[1] == a->extent[2] && a->stride_x[0] == a->extent[1] * a->extent[2] && ((a->x | a->y) | (u64)(a->extent[2] * BYTES)) % 16 == 0;
    launch_next();
    wait_previous();
    if (dense) { /* one row: no division */
        const u32x4 *from = (const u32x4 *)a->x;
        u32x4 *to = (u32x4 *)a->y;
        for (i64 n = (i64)BLOCK_X * 1024 + THREAD; n < all; n += (i64)GRID_X * 1024) {
            u32x4 v[4];
            UNROLL for (int q = 0; q < 4; q++)
                if (n + q * 256 < all) v[q] = load16_once(from + n + q * 256);
            UNROLL for (int q = 0; q < 4; q++)
                if (n + q * 256 < all) store16(to + n + q * 256, v[q]);
        }
        return;
    }
    for (i64 n = (i64)BLOCK_X * 256 + THREAD; n < all; n += (i64)GRID_X * 256) {
        const i64 k = n % pieces * PER, j = n / pieces % a->extent[1], i = n / pieces / a->extent[1];
        const element *from = (const element *)a->x + i * a->stride_x[0] + j * a->stride_x[1] + k;
        element *to = (element *)a->y + (i * a->extent[1] + j) * a->extent[2] + k;
        if (k + PER <= a->extent[2] && ((u64)from | (u64)to) % 16 == 0) store16(to, load16_once(from));
        else
            for (int e = 0; e < PER && k + e < a->extent[2]; e++) to[e] = from[e];
    }
}
#endif
