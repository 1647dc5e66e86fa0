/* SPDX-License-Identifier: Apache-2.0
   move: tensors brought into another order. y is dense; in x another dim than y's last may be contiguous.
   Where that is so, a block reads a tile along x's contiguous dim, turns it in shared memory and writes it
   along y's: both sides are whole lines. Where x's last dim is contiguous too, it is a copy of rows.
   Elements are only moved, so their type is a size. Strides of x are not negative.

   A block has one tile and ends: blocks that begin in order keep what is read and written at a time close
   together, which memory likes better than blocks that stay.

   Filled in by the printer: BYTES (1, 2, 4 or 8 an element), TURN (1: y's last dim is k, x's contiguous one
   is j; 2: the same, a block has all j and k of an i, dense in x, whose rows do not begin at multiples of 16
   bytes, while the whole does; 3: the same where x's rows do and y's do not), X_ALIGNED, Y_ALIGNED (1: rows
   begin at multiples of 16 bytes; of a copy: both), HIGH (rows of a tile: 64, 128 or 256; of a copy: pieces a
   thread has under way), ONCE (1: what is written is not kept in L2), BLOCKS (of 256 threads on a
   multiprocessor at least). */
#if BYTES == 1
typedef u8 element;
#elif BYTES == 2
typedef u16 element;
#elif BYTES == 4
typedef u32 element;
#else
typedef u64 element;
#endif
enum { PER = 16 / BYTES, THREADS = 256 }; /* PER: elements of a 16-byte piece */
#if ONCE
#define STORE16 store16_once
#else
#define STORE16 store16
#endif
typedef union ALIGNED16 {
    element one[PER];
    u32x4 all;
} piece;

#if TURN == 2
/* All of one i lies in shared memory as it lies in x: its rows begin at odd places, which are as good as any
   order for the banks. */
KERNEL(hone_move, hone_cuda_move, THREADS, BLOCKS) {
    const u32 wide = (u32)a->extent[1], high = (u32)a->extent[2], pieces = wide * high / PER;
    const u32x4 *from = (const u32x4 *)((const element *)a->x + BLOCK_X * a->stride_x[0]);
    element *to = (element *)a->y + (i64)BLOCK_X * wide * high;
    const element *shared = (const element *)hone_shared;
    launch_next();
    wait_previous();
    for (u32 p = (u32)THREAD; p < pieces; p += THREADS) copy16(shared_at(hone_shared) + p * 16, from + p, 16);
    copy_commit();
    copy_wait(0);
    sync_block();
    for (u32 p = (u32)THREAD; p < pieces; p += THREADS) {
        u32 j = p * PER / high, k = p * PER - j * high, at = k * wide + j;
        piece v;
        UNROLL for (int e = 0; e < PER; e++) {
            v.one[e] = shared[at];
            if (++k == high) k = 0, at = ++j;
            else at += wide;
        }
        STORE16(to + p * PER, v.all);
    }
}
#elif TURN == 3
/* Each PER rows of x begin 16 bytes further in shared memory than they would side by side, so that pieces of
   y's rows come from different banks. A warp has eight pieces, a line of 128 bytes, of each of four rows of
   y, whose elements lie in four words. A piece belongs to the row that it begins in. */
enum { WORD = BYTES < 4 ? 4 / BYTES : 1 };
KERNEL(hone_move, hone_cuda_move, THREADS, BLOCKS) {
    const u32 wide = (u32)a->extent[1], high = (u32)a->extent[2], row = wide / PER, across = wide / 4,
              all = across * (((high + PER - 1) / PER + 14) / 8);
    const u32x4 *from = (const u32x4 *)((const element *)a->x + BLOCK_X * a->stride_x[0]);
    element *to = (element *)a->y + (i64)BLOCK_X * wide * high;
    const element *shared = (const element *)hone_shared;
    launch_next();
    wait_previous();
    for (u32 p = (u32)THREAD; p < row * high; p += THREADS)
        copy16(shared_at(hone_shared) + (p + p / row / PER) * 16, from + p, 16);
    copy_commit();
    copy_wait(0);
    sync_block();
    for (u32 t = (u32)THREAD / 32; t < all; t += THREADS / 32) {
        const u32 down = t / across, beside = t - down * across;
        u32 j = beside / WORD * PER + (u32)(THREAD % 32 / 8 * WORD) + beside % WORD;
        const u32 p = (j * high + PER - 1) / PER / 8 * 8 + down * 8 + (u32)(THREAD % 8);
        u32 k = p * PER - j * high;
        if (k >= high) continue; /* or before the row: then k is less than 0 */
        piece v;
        UNROLL for (int e = 0; e < PER; e++) {
            v.one[e] = shared[k * wide + k / PER * PER + j];
            if (++k == high) k = 0, j++;
        }
        STORE16(to + p * PER, v.all);
    }
}
#elif TURN
/* A tile is HIGH rows of 128 bytes along j. Where x's rows begin at multiples of 16 bytes, so do the tile's,
   and their pieces of 16 bytes are swapped by the row; else a row of the tile begins where its first aligned
   piece does, and rows that are PER apart are neighbours. Either way neighbouring pieces of a row of y come
   from different banks. */
/* BAND: tiles side by side along j before the next ones along k: both sides of what is under way are long */
enum {
    BAND = 8,
    TILE_J = 128 / BYTES,
    WORD = BYTES < 4 ? 4 / BYTES : 1,
    GROUPS = HIGH / PER,
    ROW = X_ALIGNED ? 128 : 144
};
DEVICE u32 place(int k, int byte) {
    if (X_ALIGNED) return (u32)(k * ROW) + ((u32)byte ^ (u32)(k / PER % 8 * 16));
    return (u32)((k % PER * GROUPS + k / PER) * ROW + byte);
}
/* where it begins, how much of it is there */
typedef struct {
    const char *x;
    element *y;
    int wide, high;
} tile;
/* tiles are counted in 32 bits: longer divisions would take as long as the tile */
DEVICE tile tile_at(const hone_cuda_move *a, u32 t) {
    const u32 tiles_j = (u32)((a->extent[1] + TILE_J - 1) / TILE_J),
              tiles_k = (u32)((a->extent[2] + HIGH - 1) / HIGH), i = t / (tiles_j * tiles_k);
    t -= i * (tiles_j * tiles_k);
    const u32 first = t / (BAND * tiles_k) * BAND, within = t - first * tiles_k,
              many = tiles_j - first < BAND ? tiles_j - first : BAND;
    const u32 at_k = within / many, at_j = first + within - at_k * many;
    const i64 j0 = (i64)at_j * TILE_J, k0 = (i64)at_k * HIGH;
    tile r;
    r.x = (const char *)((const element *)a->x + i * a->stride_x[0] + k0 * a->stride_x[2] + j0);
    r.y = (element *)a->y + (i * a->extent[1] + j0) * a->extent[2] + k0;
    r.wide = a->extent[1] - j0 < TILE_J ? (int)(a->extent[1] - j0) : TILE_J;
    r.high = a->extent[2] - k0 < HIGH ? (int)(a->extent[2] - k0) : HIGH;
    return r;
}
/* Part of a piece: by elements, so that nothing behind the tensor's end is touched, nor anything before its
   beginning. */
DEVICE void bring_some(u32 to, u64 from, u64 end) {
    for (; from < end; from += BYTES, to += BYTES) *(element *)(hone_shared + to) = *(const element *)from;
}
DEVICE void bring(const hone_cuda_move *a, const tile *t, u32 to) {
    const i64 pitch = a->stride_x[2] * BYTES;
#if X_ALIGNED /* the last piece of a row may be part of one */
    const int j = THREAD % 8 * PER, left = t->wide - j;
    const char *from = t->x + (THREAD / 8) * pitch + j * BYTES;
    UNROLL for (int q = 0; q < HIGH / 32; q++) {
        const int k = THREAD / 8 + q * 32;
        if (k < t->high && left >= PER) copy16(to + place(k, j * BYTES), from, 16);
        else if (k < t->high && left > 0)
            bring_some(place(k, j * BYTES), (u64)from, (u64)from + (u64)(left * BYTES));
        from += 32 * pitch;
    }
#else         /* pieces that hold some of a row, and some of its neighbours too */
    const u64 end =
        a->x +
        (u64)(((a->extent[0] - 1) * a->stride_x[0] + (a->extent[2] - 1) * a->stride_x[2] + a->extent[1]) *
              BYTES);
    UNROLL for (int n = 0; n < (HIGH * 9 + THREADS - 1) / THREADS; n++) {
        const int p = THREAD + n * THREADS, k = p / 9, q = p % 9;
        const u64 row = (u64)t->x + (u64)(k * pitch), from = row / 16 * 16 + (u64)(q * 16);
        if (k >= t->high || from >= row + (u64)(t->wide * BYTES)) continue;
        if (from >= a->x && from + 16 <= end) copy16(to + place(k, q * 16), (const void *)from, 16);
        else { /* the tensor's first piece, or its last */
            const u64 first = from < a->x ? a->x : from;
            bring_some(place(k, q * 16 + (int)(first - from)), first, from + 16 < end ? from + 16 : end);
        }
    }
#endif
    copy_commit();
}
DEVICE void leave(const hone_cuda_move *a, const tile *t) {
    const i64 pitch = a->extent[2];
#if X_ALIGNED && Y_ALIGNED
    /* lanes: 8 groups of PER rows by 4 words: every lane another bank, and 128 bytes of a row of y in one
       store */
    UNROLL for (int q = 0; q < GROUPS * (TILE_J / WORD) / THREADS; q++) {
        const int warp = THREAD / 32 + q * 8, group = warp % (GROUPS / 8) * 8 + THREAD % 8,
                  word = warp / (GROUPS / 8) * 4 + THREAD % 32 / 8;
        union {
            element one[WORD];
            u32 bits;
            u64 long_bits;
        } from[PER];
        if (group * PER >= t->high || word * WORD >= t->wide) continue;
        UNROLL for (int r = 0; r < PER; r++) {
            const char *at = hone_shared + place(group * PER + r, word * WORD * BYTES);
            if (BYTES == 8) from[r].long_bits = *(const u64 *)at;
            else from[r].bits = *(const u32 *)at;
        }
        element *to = t->y + word * WORD * pitch + group * PER;
        UNROLL for (int e = 0; e < WORD; e++) {
            piece v;
            UNROLL for (int r = 0; r < PER; r++) v.one[r] = from[r].one[e];
            if (word * WORD + e < t->wide) STORE16(to, v.all); /* whole: the pitch is a multiple of PER */
            to += pitch;
        }
    }
#else
    /* aligned pieces of y's rows; the first and the last of a row may be shared with others */
    enum { PIECES = GROUPS + !Y_ALIGNED };
    const u32 x0 = (u32)(u64)t->x, step = (u32)a->stride_x[2] * BYTES;
    for (int p = THREAD; p < TILE_J * PIECES; p += THREADS) {
        const int j = p / PIECES;
        element *row = t->y + j * pitch;
        const int first = p % PIECES * PER - (Y_ALIGNED ? 0 : (int)((u64)row % 16) / BYTES);
        if (j >= t->wide || first >= t->high || first + PER <= 0) continue;
        piece v;
        UNROLL for (int e = 0; e < PER; e++) {
            const int k = first + e;
            if (Y_ALIGNED || (k >= 0 && k < t->high))
                v.one[e] =
                    *(const element *)(hone_shared +
                                       place(k,
                                             j * BYTES + (X_ALIGNED ? 0 : (int)((x0 + (u32)k * step) % 16))));
        }
        if (Y_ALIGNED || (first >= 0 && first + PER <= t->high)) STORE16(row + first, v.all);
        else
            UNROLL for (int e = 0; e < PER; e++)
                if (first + e >= 0 && first + e < t->high) row[first + e] = v.one[e];
    }
#endif
}

KERNEL(hone_move, hone_cuda_move, THREADS, BLOCKS) {
    const tile t = tile_at(a, (u32)BLOCK_X);
    launch_next();
    wait_previous();
    bring(a, &t, shared_at(hone_shared));
    copy_wait(0);
    sync_block();
    leave(a, &t);
}
#elif X_ALIGNED && Y_ALIGNED
/* All of y in its order, HIGH pieces of a warp's neighbours under way; one division where x is not dense. */
KERNEL(hone_move, hone_cuda_move, THREADS, BLOCKS) {
    const i64 pieces = a->extent[2] / PER, all = a->extent[0] * a->extent[1] * pieces,
              first = ((i64)BLOCK_X * (THREADS / 32) + THREAD / 32) * 32 * HIGH + THREAD % 32;
    const bool dense = a->stride_x[1] == a->extent[2] && a->stride_x[0] == a->extent[1] * a->extent[2];
    u32x4 *to = (u32x4 *)a->y + first;
    u32x4 v[HIGH];
    launch_next();
    wait_previous();
    UNROLL for (int q = 0; q < HIGH; q++) {
        const i64 n = first + q * 32;
        if (n >= all) continue;
        if (dense) v[q] = load16_once((const u32x4 *)a->x + n);
        else {
            const i64 row = n / pieces, i = row / a->extent[1];
            v[q] = load16_once((const u32x4 *)((const element *)a->x + i * a->stride_x[0] +
                                               (row - i * a->extent[1]) * a->stride_x[1]) +
                               (n - row * pieces));
        }
    }
    UNROLL for (int q = 0; q < HIGH; q++)
        if (first + q * 32 < all) STORE16(to + q * 32, v[q]);
}
#else
/* Rows that begin anywhere: element by element, neighbours by neighbouring threads, HIGH of each under
   way. */
KERNEL(hone_move, hone_cuda_move, THREADS, BLOCKS) {
    const i64 all = a->extent[0] * a->extent[1] * a->extent[2],
              first = ((i64)BLOCK_X * (THREADS / 32) + THREAD / 32) * 32 * HIGH + THREAD % 32;
    element *to = (element *)a->y + first;
    element v[HIGH];
    launch_next();
    wait_previous();
    UNROLL for (int q = 0; q < HIGH; q++) {
        const i64 n = first + q * 32, row = n / a->extent[2], i = row / a->extent[1];
        if (n < all)
            v[q] = ((const element *)a->x)[i * a->stride_x[0] + (row - i * a->extent[1]) * a->stride_x[1] +
                                           (n - row * a->extent[2])];
    }
    UNROLL for (int q = 0; q < HIGH; q++)
        if (first + q * 32 < all) to[q * 32] = v[q];
}
#endif
