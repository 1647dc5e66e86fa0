/* SPDX-License-Identifier: Apache-2.0
   emulate: CUDA kernels on the CPU, for tests. Stands before the printed text of a kernel instead of NVRTC's
   built-in words and is compiled by the system's C compiler; hone_emulate then runs the kernel block by
   block, every thread a fiber of its own.

   It is unkind on purpose: threads take turns in an order that changes, shared memory begins as noise,
   asynchronous copies happen as late as their waits allow, a tile of the copy engine arrives some turns after
   it was asked for. Blocks of a cluster run side by side. A kernel that forgot a barrier gives a wrong answer
   here; one that waits for what nobody does is reported as a deadlock. What it does not show: bank conflicts,
   memory ordering between blocks, alignment of instructions' addresses beyond what is checked below,
   registers. */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE /* whose longjmp takes a jump to another stack for a mistake */
#include <math.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define HONE_EMULATE 1
#define DEVICE static inline __attribute__((unused))
#define UNROLL
#define ALIGNED16 __attribute__((aligned(16)))
#define KERNEL(name, type, threads, blocks)                          \
    static void name##_body(const type *a);                          \
    const int name##_threads = threads;                              \
    const unsigned long name##_bytes = sizeof(type);                 \
    void name(const void *args) { name##_body((const type *)args); } \
    static void name##_body(const type *a)
typedef void emulated_kernel(const void *);

enum {
    EMU_CLUSTER = 16,
    EMU_THREADS = 4096,
    EMU_STACK = 64 * 1024,
    EMU_SHARED = 232448,
    EMU_COPIES = 512,
    EMU_BARRIERS = 16,
    EMU_GROUPS = 128,
    EMU_TILES = 512
};
typedef struct {
    uint32_t to;
    const void *from;
    int bytes, size, group;
} emu_copy;
typedef struct {
    ucontext_t context; /* where it begins; from then on it goes on at `at` */
    jmp_buf at;
    int begun;
    /* issued, committed: of wgmma; cluster: the meeting it arrived at */
    int done, group, n_copies, first_copy, issued, committed, cluster;
    emu_copy copy[EMU_COPIES];
} emu_thread;
typedef struct { /* a tile that the copy engine has yet to bring */
    const void *map;
    uint32_t to, barrier;
    /* window: at is channel, x, y, n, and the tap's x and y; else coordinates, as many as the map has */
    int at[6], window, turns;
    int thread; /* who asked */
} emu_tile;
typedef struct {
    int arrived, generation;
} emu_meeting;
typedef struct { /* one wgmma of a warpgroup, until it is waited for */
    void *sum[128];
    const uint32_t *left[128]; /* registers of A, or NULL */
    uint64_t a, b;
    int n, add, type, group;
} emu_product;
enum { EMU_PRODUCTS = 128 };
static struct {
    emu_thread *thread;
    char *stacks;
    jmp_buf scheduler;
    /* threads: of a block; now and alive: of all blocks of the cluster; block: its first */
    int threads, now, block[3], grid[3], alive;
    emu_meeting barrier[EMU_CLUSTER][EMU_BARRIERS], cluster, warp[EMU_THREADS / 32], group[EMU_GROUPS];
    uint32_t slot[EMU_THREADS][12];
    int products_done[EMU_GROUPS], registers[EMU_GROUPS];
    emu_tile tile[EMU_TILES];
    int n_tiles;
    long progress;
    uint32_t noise;
    const char *trouble;
} emu;
static emu_product emu_products[EMU_GROUPS][EMU_PRODUCTS]; /* 17 MB: not cleared for each launch */
static _Alignas(1024) char emu_shared[EMU_CLUSTER][EMU_SHARED];
#define EMU_RANK (emu.now / emu.threads)
#define EMU_GROUP (EMU_RANK * (EMU_GROUPS / EMU_CLUSTER) + emu.now % emu.threads / 128)
#define hone_shared (emu_shared[EMU_RANK])

#define THREAD (emu.now % emu.threads)
#define BLOCK_X (emu.block[0] + EMU_RANK)
#define BLOCK_Y (emu.block[1])
#define BLOCK_Z (emu.block[2])
#define GRID_X (emu.grid[0])
#define GRID_Z (emu.grid[2])

/* Contexts begin fibers, jumps go on with them: a change of contexts calls the kernel. */
static inline void emu_yield(void) {
    const int me = emu.now;
    if (!_setjmp(emu.thread[me].at)) _longjmp(emu.scheduler, 1);
    emu.now = me;
}
static inline void emu_go_on(emu_thread *t) { /* till it yields */
    if (_setjmp(emu.scheduler)) return;
    if (t->begun) _longjmp(t->at, 1);
    t->begun = 1;
    setcontext(&t->context);
}
static inline void emu_wrong(const char *what) {
    if (!emu.trouble) emu.trouble = what;
}
static inline void emu_meet(emu_meeting *m, int count) {
    int generation = m->generation;
    emu.progress++;
    if (++m->arrived == count) m->arrived = 0, m->generation++;
    else
        while (m->generation == generation && !emu.trouble) emu_yield();
}
static inline uint32_t F32_BITS(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
static inline float BITS_F32(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}
typedef struct ALIGNED16 {
    uint32_t x, y, z, w;
} u32x4;
static inline uint32_t shared_at(const void *p) { return (uint32_t)((const char *)p - hone_shared); }
static inline void *emu_at(uint32_t at, uint32_t bytes, uint32_t align) {
    if (at % align) emu_wrong("an address in shared memory is not aligned");
    if (at + bytes > EMU_SHARED) emu_wrong("an address is outside of shared memory"), at = 0;
    return hone_shared + at;
}

/* ---- halves ---- */
static inline float f16_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023;
    if (exponent == 31) return BITS_F32(sign | 0x7f800000u | fraction << 13);
    if (exponent) return BITS_F32(sign | (exponent + 112) << 23 | fraction << 13);
    return (sign ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
}
static inline uint16_t f32_f16(float f) {
    uint32_t u = F32_BITS(f), sign = u >> 16 & 0x8000;
    float a = fabsf(f);
    if (isnan(f)) return 0x7fff;
    if (a >= 65520.0f) return (uint16_t)(sign | 0x7c00);
    if (a < 0x1p-14f) return (uint16_t)(sign | (uint32_t)nearbyintf(a * 0x1p24f));
    uint32_t r = (u & 0x7fffffffu) - (112u << 23);
    r += 0xfff + (r >> 13 & 1);
    return (uint16_t)(sign | r >> 13);
}
static inline uint32_t f32_f16x2(float low, float high) {
    return f32_f16(low) | (uint32_t)f32_f16(high) << 16;
}
static inline float bf16_f32(uint16_t h) { return BITS_F32((uint32_t)h << 16); }
static inline uint16_t f32_bf16(float f) {
    uint32_t u = F32_BITS(f);
    if (isnan(f)) return 0x7fff;
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
static inline uint32_t f32_bf16x2(float low, float high) {
    return f32_bf16(low) | (uint32_t)f32_bf16(high) << 16;
}
static inline float exp2_fast(float x) { return exp2f(x); }
static inline float inverse_fast(float x) { return 1.0f / x; }
static inline float rsqrt_fast(float x) { return 1.0f / sqrtf(x); }

/* ---- barriers and shuffles ---- */
static inline void sync_block(void) { emu_meet(&emu.barrier[EMU_RANK][0], emu.threads); }
static inline void sync_some(int id, int threads) { emu_meet(&emu.barrier[EMU_RANK][id], threads); }
static inline void arrive_some(int id, int threads) {
    emu_meeting *m = &emu.barrier[EMU_RANK][id];
    emu.progress++;
    if (++m->arrived == threads) m->arrived = 0, m->generation++;
}
static inline bool elect(void) { return emu.now % 32 == 0; }
static inline uint32_t pick_bytes(uint32_t a, uint32_t b, uint32_t which) {
    const uint64_t all = (uint64_t)b << 32 | a;
    uint32_t out = 0;
    for (int k = 0; k < 4; k++) out |= (uint32_t)(all >> (which >> 4 * k & 7) * 8 & 255) << 8 * k;
    return out;
}
static inline uint32_t upper_product(uint32_t x, uint32_t y) { return (uint32_t)((uint64_t)x * y >> 32); }
/* Threads of a cluster that have not ended: some may end while others wait. */
static inline void cluster_arrive(void) {
    emu.thread[emu.now].cluster = emu.cluster.generation;
    emu.cluster.arrived++, emu.progress++;
}
static inline void cluster_wait(void) {
    while (emu.thread[emu.now].cluster == emu.cluster.generation && !emu.trouble)
        if (emu.cluster.arrived == emu.alive)
            emu.cluster.arrived = 0, emu.cluster.generation++, emu.progress++;
        else emu_yield();
}
static inline void sync_warp(void) { emu_meet(&emu.warp[emu.now / 32], 32); }
static inline uint32_t shuffle_from(uint32_t v, int lane) {
    emu.slot[emu.now][0] = v;
    sync_warp();
    uint32_t r = emu.slot[emu.now / 32 * 32 + lane][0];
    sync_warp();
    return r;
}
static inline float shuffle_xor(float v, int mask) {
    return BITS_F32(shuffle_from(F32_BITS(v), emu.now % 32 ^ mask));
}

/* ---- memory ---- */
static inline u32x4 load16(const void *p) {
    if ((uintptr_t)p % 16) emu_wrong("16 bytes are loaded from an address that is not aligned");
    return *(const u32x4 *)p;
}
static inline void load_floats(float *to, const float *p, int n) {
    if ((uintptr_t)p % (n % 4 ? (size_t)n * 4 : 16))
        emu_wrong("floats are loaded from an address that is not aligned");
    memcpy(to, p, (size_t)n * 4);
}
static inline u32x4 load16_l2(const void *p) { return *(const u32x4 *)p; }
static inline u32x4 load16_once(const void *p) { return load16(p); }
static inline void store16(void *p, u32x4 v) {
    if ((uintptr_t)p % 16) emu_wrong("16 bytes are stored to an address that is not aligned");
    *(u32x4 *)p = v;
}
static inline void store16_once(void *p, u32x4 v) { store16(p, v); }
static inline uint32_t atomic_count(uint32_t *p) { return (*p)++; }
static inline void fence_gpu(void) {}
static inline void launch_next(void) {}
static inline void wait_previous(void) {}
static inline u32x4 shared_load16(uint32_t at) { return *(const u32x4 *)emu_at(at, 16, 16); }
static inline u32x4 shared_load16_of(uint32_t at, int rank) {
    const char *mine = emu_at(at, 16, 16);
    return *(const u32x4 *)(emu_shared[rank] + (mine - hone_shared));
}
static inline void shared_store16_of(uint32_t at, int rank, u32x4 v) {
    char *mine = emu_at(at, 16, 16);
    *(u32x4 *)(emu_shared[rank] + (mine - hone_shared)) = v;
}
static inline uint32_t shared_load4(uint32_t at) { return *(const uint32_t *)emu_at(at, 4, 4); }
static inline uint16_t shared_load2(uint32_t at) { return *(const uint16_t *)emu_at(at, 2, 2); }
static inline uint64_t shared_load8(uint32_t at) { return *(const uint64_t *)emu_at(at, 8, 8); }
static inline void shared_store16(uint32_t at, u32x4 v) { *(u32x4 *)emu_at(at, 16, 16) = v; }
static inline void shared_store2(uint32_t at, uint16_t v) { *(uint16_t *)emu_at(at, 2, 2) = v; }
static inline void shared_store8(uint32_t at, uint64_t v) { *(uint64_t *)emu_at(at, 8, 8) = v; }
static inline void shared_store4(uint32_t at, uint32_t v) { *(uint32_t *)emu_at(at, 4, 4) = v; }

/* ---- asynchronous copies: done when they must be, not before ---- */
static inline void emu_copy_async(uint32_t to, const void *from, int bytes, int size) {
    emu_thread *t = &emu.thread[emu.now];
    if (bytes && (uintptr_t)from % (uintptr_t)size) emu_wrong("an asynchronous copy's source is not aligned");
    if (t->n_copies == EMU_COPIES) {
        memmove(t->copy, t->copy + t->first_copy, sizeof *t->copy * (size_t)(t->n_copies - t->first_copy));
        t->n_copies -= t->first_copy, t->first_copy = 0;
    }
    if (t->n_copies == EMU_COPIES) emu_wrong("too many asynchronous copies wait");
    else t->copy[t->n_copies++] = (emu_copy){to, from, bytes, size, t->group};
}
static inline void copy16(uint32_t to, const void *from, int bytes) { emu_copy_async(to, from, bytes, 16); }
static inline void copy4(uint32_t to, const void *from, int bytes) { emu_copy_async(to, from, bytes, 4); }
static inline void copy_commit(void) { emu.thread[emu.now].group++; }
static inline void copy_wait(int n) {
    emu_thread *t = &emu.thread[emu.now];
    for (; t->first_copy < t->n_copies && t->copy[t->first_copy].group < t->group - n; t->first_copy++) {
        const emu_copy *c = &t->copy[t->first_copy];
        char *to = emu_at(c->to, (uint32_t)c->size, (uint32_t)c->size);
        memset(to, 0, (size_t)c->size);
        if (c->bytes) memcpy(to, c->from, (size_t)c->bytes);
    }
    emu.progress++;
}

/* ---- warps' matrix unit ---- */
static inline void emu_matrix_load(uint32_t r[4], uint32_t at, int across) {
    const int base = emu.now / 32 * 32, lane = emu.now % 32;
    emu.slot[emu.now][0] = at;
    sync_warp();
    for (int k = 0; k < 4; k++) {
        uint16_t half[2];
        for (int e = 0; e < 2; e++) {
            const int row = across ? 2 * (lane % 4) + e : lane / 4,
                      column = across ? lane / 4 : 2 * (lane % 4) + e;
            memcpy(&half[e], (char *)emu_at(emu.slot[base + 8 * k + row][0], 16, 16) + 2 * column, 2);
        }
        r[k] = half[0] | (uint32_t)half[1] << 16;
    }
    sync_warp();
}
static inline void matrix_load(uint32_t r[4], uint32_t at) { emu_matrix_load(r, at, 0); }
static inline void matrix_load_across(uint32_t r[4], uint32_t at) { emu_matrix_load(r, at, 1); }
/* What element e of a 32-bit register is as a number: 16-bit floats two a register, tf32 one, 8 bits four. */
enum {
    EMU_F16,
    EMU_BF16,
    EMU_TF32,
    EMU_S8,
    EMU_U8,
    EMU_S8U8
}; /* of both factors; EMU_U8: right ones are signed */
static inline int emu_right(int type) { return type == EMU_U8 ? EMU_S8 : type == EMU_S8U8 ? EMU_U8 : type; }
static inline int emu_left(int type) { return type == EMU_S8U8 ? EMU_S8 : type; }
static inline int emu_whole(int type) { return type >= EMU_S8; }
static inline double emu_element(uint32_t r, int e, int type) {
    switch (type) {
    case EMU_F16: return f16_f32((uint16_t)(r >> 16 * e));
    case EMU_BF16: return bf16_f32((uint16_t)(r >> 16 * e));
    case EMU_TF32: return BITS_F32(r & 0xffffe000u);
    case EMU_U8: return (uint8_t)(r >> 8 * e);
    default: return (int8_t)(r >> 8 * e);
    }
}
static inline void emu_mma(double c[4], const uint32_t a[4], const uint32_t b[2], int type) {
    const int base = emu.now / 32 * 32, lane = emu.now % 32,
              per = type == EMU_TF32  ? 1
                    : emu_whole(type) ? 4
                                      : 2;
    for (int k = 0; k < 4; k++) emu.slot[emu.now][k] = a[k];
    emu.slot[emu.now][4] = b[0], emu.slot[emu.now][5] = b[1];
    sync_warp();
    for (int i = 0; i < 4; i++) /* row lane/4 (+8), column 2 (lane%4) (+1) */
        for (int half = 0; half < 2; half++)
            for (int t = 0; t < 4; t++)
                for (int e = 0; e < per; e++) {
                    const uint32_t left = emu.slot[base + lane / 4 * 4 + t][(i >= 2) + 2 * half];
                    const uint32_t right = emu.slot[base + (2 * (lane % 4) + i % 2) * 4 + t][4 + half];
                    c[i] += emu_element(left, e, emu_left(type)) * emu_element(right, e, emu_right(type));
                }
    sync_warp();
}
static inline void emu_mma_float(float c[4], const uint32_t a[4], const uint32_t b[2], int type) {
    double sum[4] = {c[0], c[1], c[2], c[3]};
    emu_mma(sum, a, b, type);
    for (int i = 0; i < 4; i++) c[i] = (float)sum[i];
}
static inline void mma_f16(float c[4], const uint32_t a[4], const uint32_t b[2]) {
    emu_mma_float(c, a, b, EMU_F16);
}
static inline void mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2]) {
    emu_mma_float(c, a, b, EMU_BF16);
}
static inline void mma_tf32(float c[4], const uint32_t a[4], const uint32_t b[2]) {
    emu_mma_float(c, a, b, EMU_TF32);
}
static inline void emu_mma_bytes(int c[4], const uint32_t a[4], const uint32_t b[2], int type) {
    double sum[4] = {c[0], c[1], c[2], c[3]};
    emu_mma(sum, a, b, type);
    for (int i = 0; i < 4; i++) c[i] = (int)sum[i];
}
static inline void mma_s8(int c[4], const uint32_t a[4], const uint32_t b[2]) {
    emu_mma_bytes(c, a, b, EMU_S8);
}
static inline void mma_u8s8(int c[4], const uint32_t a[4], const uint32_t b[2]) {
    emu_mma_bytes(c, a, b, EMU_U8);
}
static inline void mma_s8u8(int c[4], const uint32_t a[4], const uint32_t b[2]) {
    emu_mma_bytes(c, a, b, EMU_S8U8);
}

/* ---- barriers in shared memory: one word each ---- */
typedef struct {
    int16_t left, arrivals;
    int32_t bytes_phase;
} emu_mbarrier; /* bytes_phase: bytes that must come, times two, and the phase */
static inline void emu_barrier_turn(emu_mbarrier *b) {
    if (b->left || b->bytes_phase >> 1) return;
    b->left = b->arrivals, b->bytes_phase ^= 1, emu.progress++;
}
static inline void barrier_init(uint32_t at, int arrivals) {
    *(emu_mbarrier *)emu_at(at, 8, 8) = (emu_mbarrier){(int16_t)arrivals, (int16_t)arrivals, 0};
}
static inline void barrier_fence(void) {}
static inline void emu_barrier_change(uint32_t at, int arrivals, int bytes) {
    emu_mbarrier *b = emu_at(at, 8, 8);
    if (arrivals > b->left) emu_wrong("more arrive at a barrier than it was made for");
    b->left = (int16_t)(b->left - arrivals), b->bytes_phase += 2 * bytes, emu.progress++;
    if (b->bytes_phase < 0) emu_wrong("more bytes come than a barrier was told of");
    emu_barrier_turn(b);
}
static inline void barrier_arrive(uint32_t at) { emu_barrier_change(at, 1, 0); }
static inline void barrier_expect(uint32_t at, uint32_t bytes) { emu_barrier_change(at, 1, (int)bytes); }
static inline void barrier_wait(uint32_t at, uint32_t parity) {
    const emu_mbarrier *b = emu_at(at, 8, 8);
    while ((uint32_t)(b->bytes_phase & 1) == parity && !emu.trouble) emu_yield();
}

/* ---- the copy engine. The test fills a tensor map with this. ---- */
typedef struct {
    uint64_t base, stride[4]; /* strides in bytes, of dims 1 and on */
    uint32_t dim[5], box[5], element, swizzled;
    /* of windows, x and y: where the first and the last begin, how far apart; box is channels, pixels */
    int32_t low[2], high[2], step[2];
} emu_map;
_Static_assert(sizeof(emu_map) <= 128, "a tensor map");
static inline uint32_t emu_box_bytes(const emu_map *m) {
    return m->box[0] * m->box[1] * m->box[2] * m->box[3] * m->box[4] * m->element;
}
static inline void emu_tile_move(const emu_map *m, uint32_t shared, const int at[5], int store) {
    for (uint32_t o = 0; o < emu_box_bytes(m); o += m->element) { /* box by box element, dim 0 fastest */
        uint32_t rest = o / m->element, to = o;
        int64_t from = 0;
        int inside = 1;
        for (int d = 0; d < 5; d++) {
            const int64_t i = at[d] + (int64_t)(rest % m->box[d]);
            /* the engine writes pieces of 16 bytes, also behind a row's end */
            const int64_t piece = store && d == 0 ? 16 / m->element : 1;
            inside &= i >= 0 && i < ((int64_t)m->dim[d] + piece - 1) / piece * piece, rest /= m->box[d];
            from += i * (d ? (int64_t)m->stride[d - 1] : (int64_t)m->element);
        }
        if (m->swizzled) to = (shared + to) ^ ((shared + to) >> 7 & 7) << 4;
        else to += shared;
        char *s = emu_at(to, m->element, m->element), *g = (char *)(uintptr_t)m->base + from;
        if (store && inside) memcpy(g, s, m->element);
        if (!store && inside) memcpy(s, g, m->element);
        if (!store && !inside) memset(s, 0, m->element);
    }
}
static inline void emu_window_move(const emu_map *m, uint32_t shared, const int at[6]) {
    int x = at[1], y = at[2], n = at[3];
    for (uint32_t p = 0; p < m->box[1]; p++) {
        for (uint32_t c = 0; c < m->box[0]; c++) {
            uint32_t o = p * m->box[0] * m->element + c * m->element;
            if (m->swizzled) o ^= (o >> 7 & 7) << 4;
            char *s = emu_at(shared + o, m->element, m->element);
            const int64_t i = at[0] + (int64_t)c, u = x + at[4], v = y + at[5];
            const int inside = i < (int64_t)m->dim[0] && u >= 0 && u < (int64_t)m->dim[1] && v >= 0 &&
                               v < (int64_t)m->dim[2] && n < (int64_t)m->dim[3];
            if (inside)
                memcpy(s,
                       (char *)(uintptr_t)m->base + i * m->element + u * (int64_t)m->stride[0] +
                           v * (int64_t)m->stride[1] + n * (int64_t)m->stride[2],
                       m->element);
            else memset(s, 0, m->element);
        }
        if ((x += m->step[0]) > (int)m->dim[1] - 1 + m->high[0]) {
            x = m->low[0];
            if ((y += m->step[1]) > (int)m->dim[2] - 1 + m->high[1]) y = m->low[1], n++;
        }
    }
}
static inline void emu_ask(emu_tile tile) {
    if (tile.to % 128) emu_wrong("a tile's address in shared memory is not aligned");
    if (emu.n_tiles == EMU_TILES) {
        emu_wrong("too many tiles are under way");
        return;
    }
    emu.noise = emu.noise * 1664525u + 1013904223u;
    tile.turns = (int)(emu.noise >> 30) + 1, tile.thread = emu.now;
    emu.tile[emu.n_tiles++] = tile;
    emu.progress++;
}
static inline void tile_load(uint32_t to, const void *map, uint32_t barrier, int c0, int c1, int c2) {
    emu_ask((emu_tile){map, to, barrier, {c0, c1, c2}, 0, 0});
}
static inline void tile_load4(uint32_t to, const void *map, uint32_t barrier, int c0, int c1, int c2,
                              int c3) {
    emu_ask((emu_tile){map, to, barrier, {c0, c1, c2, c3}, 0, 0});
}
static inline void tile_load5(uint32_t to, const void *map, uint32_t barrier, int c0, int c1, int c2, int c3,
                              int c4) {
    emu_ask((emu_tile){map, to, barrier, {c0, c1, c2, c3, c4}, 0, 0});
}
static inline void window_load(uint32_t to, const void *map, uint32_t barrier, int c0, int x, int y, int n,
                               int tap_x, int tap_y) {
    emu_ask((emu_tile){map, to, barrier, {c0, x, y, n, tap_x, tap_y}, 1, 0});
}
static inline void emu_tiles_arrive(void) {
    for (int k = 0; k < emu.n_tiles;) {
        if (--emu.tile[k].turns > 0) {
            k++;
            continue;
        }
        emu_map m;
        memcpy(&m, emu.tile[k].map, sizeof m);
        emu.now = emu.tile[k].thread;
        if (emu.tile[k].window) emu_window_move(&m, emu.tile[k].to, emu.tile[k].at);
        else emu_tile_move(&m, emu.tile[k].to, emu.tile[k].at, 0);
        emu_barrier_change(emu.tile[k].barrier, 0, -(int)emu_box_bytes(&m));
        emu.tile[k] = emu.tile[--emu.n_tiles];
    }
}
static inline void tile_store5(const void *map, uint32_t from, int c0, int c1, int c2, int c3, int c4) {
    emu_map m;
    memcpy(&m, map, sizeof m);
    emu_tile_move(&m, from, (int[]){c0, c1, c2, c3, c4}, 1);
}
static inline void tile_store(const void *map, uint32_t from, int c0, int c1, int c2) {
    tile_store5(map, from, c0, c1, c2, 0, 0);
}
static inline void store_commit(void) {}
#define store_wait(n) ((void)0)
static inline void map_prefetch(const void *map) { (void)map; }
static inline void fence_proxy(void) {}

/* ---- warpgroups' matrix unit: D[64][n] += A[64][32 bytes] B[n][32 bytes], by descriptors, rows of 128 bytes
   swizzled; or A from registers and B as B[k][n], panels of 64 columns, swizzled. Nothing is read or written
   before its wait, and then all of it ---- */
static inline uint32_t emu_swizzled(uint64_t descriptor, uint32_t at) {
    const uint32_t all = (uint32_t)(descriptor & 0x3fff) * 16 + at;
    if (descriptor >> 62 != 1) emu_wrong("a matrix descriptor without the 128-byte swizzle");
    return all ^ (all >> 7 & 7) << 4;
}
static inline uint32_t emu_operand(uint64_t descriptor, int row, int byte) {
    const uint32_t group = (uint32_t)(descriptor >> 32 & 0x3fff) << 4;
    uint32_t word;
    memcpy(&word,
           emu_at(emu_swizzled(descriptor,
                               (uint32_t)(row / 8) * group + (uint32_t)(row % 8) * 128 + (uint32_t)byte),
                  4, 4),
           4);
    return word;
}
static inline uint32_t emu_operand_across(uint64_t descriptor, int k, int n) {
    const uint32_t panel = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
                   group = (uint32_t)(descriptor >> 32 & 0x3fff) << 4;
    const uint32_t at = (uint32_t)(n / 64) * panel + (uint32_t)(k / 8) * group + (uint32_t)(k % 8) * 128 +
                        (uint32_t)(n % 64) * 2;
    uint16_t half;
    memcpy(&half, emu_at(emu_swizzled(descriptor, at), 2, 2), 2);
    return half;
}
static inline void emu_multiply(const emu_product *p) {
    static double left[64][32], right[256][32];
    const int type = p->type, per = type == EMU_TF32 ? 1 : emu_whole(type) ? 4 : 2, k = 8 * per;
    for (int i = 0; i < 64 + p->n; i++)
        for (int w = 0; w < 8; w++) {
            uint32_t word;
            if (i >= 64 && p->left[0])
                word = emu_operand_across(p->b, 2 * w, i - 64) | emu_operand_across(p->b, 2 * w + 1, i - 64)
                                                                     << 16;
            else if (i >= 64) word = emu_operand(p->b, i - 64, 4 * w);
            else if (p->left[0]) word = p->left[i / 16 * 32 + i % 8 * 4 + w % 4][i / 8 % 2 + w / 4 * 2];
            else word = emu_operand(p->a, i, 4 * w);
            for (int e = 0; e < per; e++)
                *(i < 64 ? &left[i][w * per + e] : &right[i - 64][w * per + e]) =
                    emu_element(word, e, i < 64 ? emu_left(type) : emu_right(type));
        }
    for (int t = 0; t < 128; t++)
        for (int j = 0; j < p->n / 2; j++) {
            const int row = t / 32 * 16 + t % 32 / 4 + (j & 2) * 4, column = j / 4 * 8 + t % 4 * 2 + (j & 1);
            void *at = (char *)p->sum[t] + 4 * j;
            double sum = !p->add ? 0 : emu_whole(type) ? *(int *)at : *(float *)at;
            for (int q = 0; q < k; q++) sum += left[row][q] * right[column][q];
            if (emu_whole(type)) *(int *)at = (int)sum;
            else *(float *)at = (float)sum;
        }
}
static inline void emu_wgmma(void *sum, uint64_t a, const uint32_t *registers, uint64_t b, int n, int add,
                             int type) {
    emu_thread *t = &emu.thread[emu.now];
    const int group = EMU_GROUP;
    if (t->issued - emu.products_done[group] >= EMU_PRODUCTS) emu_wrong("too many products are under way");
    emu_product *p = &emu_products[group][t->issued++ % EMU_PRODUCTS];
    p->sum[THREAD % 128] = sum, p->left[THREAD % 128] = registers;
    p->a = a, p->b = b, p->n = n, p->add = add, p->type = type, p->group = t->committed;
}
static inline void wgmma_fence(void) {}
static inline void wgmma_commit(void) { emu.thread[emu.now].committed++; }
/* all but the last n groups are done by the last of the warpgroup to come here */
static inline void wgmma_wait(int n) {
    const emu_thread *t = &emu.thread[emu.now];
    const int group = EMU_GROUP;
    emu_meeting *m = &emu.group[group];
    int *done = &emu.products_done[group];
    if (m->arrived == 127)
        for (; *done < t->issued && emu_products[group][*done % EMU_PRODUCTS].group < t->committed - n;
             ++*done) {
            emu_product *p = &emu_products[group][*done % EMU_PRODUCTS];
            emu_multiply(p);
            memset(p->sum, 0, sizeof p->sum); /* who does not ask for the next one is missed */
        }
    emu_meet(m, 128);
}
#define AGAIN(i) ((void)(i))
#define KNOWN(v) ((void)0)
static inline void before_wait(float v, uint32_t at) {
    if (v < 0) emu_wrong("a store that must never happen"), (void)at;
}
/* Registers move between warpgroups within what the block was launched with: who asks for more than the
   others gave away waits for ever. */
static inline void registers_more(int n) { emu.registers[EMU_GROUP] = n; }
static inline void registers_less(int n) { emu.registers[EMU_GROUP] = n; }
static inline void emu_registers_check(void) { /* of the first block: the others have the same text */
    const int groups = emu.threads / 128,
              each = 65536 / emu.threads / 8 * 8 < 255 ? 65536 / emu.threads / 8 * 8 : 255;
    int all = 0, moved = 0;
    for (int g = 0; g < groups; g++)
        all += emu.registers[g] ? emu.registers[g] : each, moved |= emu.registers[g];
    if (moved && all > groups * each) emu_wrong("warpgroups ask for more registers than the block has");
}

/* ---- running ---- */
static emulated_kernel *emu_kernel;
static const void *emu_args;
static void emu_start(void) { /* of one block after the other */
    for (;;) {
        emu_kernel(emu_args);
        emu.thread[emu.now].done = 1, emu.alive--, emu.progress++;
        emu_yield();
    }
}
/* NULL, or what went wrong. cluster: blocks side by side in x that share memory; 1: none. */
const char *hone_emulate(emulated_kernel *kernel, const void *args, const int grid[3], int cluster,
                         int threads, uint32_t seed);
const char *hone_emulate(emulated_kernel *kernel, const void *args, const int grid[3], int cluster,
                         int threads, uint32_t seed) {
    const int fibers = threads * cluster;
    if (cluster > EMU_CLUSTER || fibers > EMU_THREADS || grid[0] % cluster) return "no such cluster";
    emu_thread *thread = calloc((size_t)fibers, sizeof *thread);
    char *stacks = malloc((size_t)fibers * EMU_STACK);
    if (!thread || !stacks) return "no memory";
    memset(&emu, 0, sizeof emu);
    emu.thread = thread, emu.stacks = stacks, emu.threads = threads, emu.noise = seed, emu_kernel = kernel,
    emu_args = args;
    memcpy(emu.grid, grid, sizeof emu.grid);
    const int blocks = grid[0] * grid[1] * grid[2];
    for (int b = 0; b < blocks && !emu.trouble; b += cluster) {
        emu.block[0] = b % grid[0], emu.block[1] = b / grid[0] % grid[1],
        emu.block[2] = b / grid[0] / grid[1];
        memset(emu_shared, 0xfb, (size_t)cluster * EMU_SHARED); /* not a number, in all floats */
        memset(emu.barrier, 0, sizeof emu.barrier), memset(emu.products_done, 0, sizeof emu.products_done);
        emu.cluster = (emu_meeting){0}, emu.alive = fibers;
        for (int t = 0; t < fibers; t++) {
            emu_thread *f = &thread[t];
            f->done = f->group = f->n_copies = f->first_copy = f->issued = f->committed = f->cluster = 0;
            if (f->begun) continue;
            getcontext(&f->context);
            f->context.uc_stack.ss_sp = stacks + (size_t)t * EMU_STACK,
            f->context.uc_stack.ss_size = EMU_STACK;
            makecontext(&f->context, emu_start, 0);
        }
        for (int left = fibers, idle = 0; left && !emu.trouble;) {
            const long before = emu.progress;
            emu.noise = emu.noise * 1664525u + 1013904223u;
            const int warps = (fibers + 31) / 32, first = (int)(emu.noise >> 8) % warps,
                      down = emu.noise >> 31;
            left = 0;
            for (int w = 0; w < warps; w++)
                for (int lane = 0; lane < 32; lane++) {
                    const int one = (w + first) % warps * 32 + (down ? 31 - lane : lane);
                    if (one >= fibers || thread[one].done) continue;
                    emu.now = one;
                    emu_go_on(&thread[one]);
                    left += !thread[one].done;
                }
            emu_tiles_arrive();
            idle = emu.progress == before && !emu.n_tiles ? idle + 1 : 0;
            if (idle > 3) emu_wrong("deadlock: every thread waits");
        }
        emu_registers_check();
        if (emu.n_tiles && !emu.trouble) emu_wrong("a block ends before its tiles arrived");
    }
    free(thread), free(stacks);
    return emu.trouble;
}
/* The same for kernels whose threads never meet: one after the other, without fibers. */
const char *hone_emulate_alone(emulated_kernel *kernel, const void *args, const int grid[3], int threads);
const char *hone_emulate_alone(emulated_kernel *kernel, const void *args, const int grid[3], int threads) {
    emu.threads = threads, emu.trouble = NULL;
    memcpy(emu.grid, grid, sizeof emu.grid);
    for (int b = 0; b < grid[0] * grid[1] * grid[2] && !emu.trouble; b++) {
        emu.block[0] = b % grid[0], emu.block[1] = b / grid[0] % grid[1],
        emu.block[2] = b / grid[0] / grid[1];
        for (emu.now = 0; emu.now < threads; emu.now++) kernel(args);
    }
    return emu.trouble;
}
