/* SPDX-License-Identifier: Apache-2.0
   words: what every CUDA kernel of Hone is written in. Types, conversions of halves, and each PTX instruction
   that a kernel uses as one function, so that kernels read as algorithms. Stands before a kernel's text when
   it is compiled by NVRTC; needs no header of the toolkit.

   tests/emulate.h has a second definition of the instructions, for the CPU: tests compile the same kernel
   text with HONE_EMULATE and run it thread by thread. So kernels are written in the part of CUDA C++ that is
   C11 too: no templates, no references, no default arguments.

   Shared memory is addressed by 32-bit byte offsets, as the instructions take them. */
typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#ifndef HONE_EMULATE
#define DEVICE static __device__ __forceinline__
#define UNROLL _Pragma("unroll")
/* A kernel takes one struct by value: KERNEL(name, struct type, threads a block, blocks an SM) { … a->field …
   } */
#define KERNEL(name, type, threads, blocks)                                                                 \
    static __device__ __forceinline__ void name##_body(const type *a);                                      \
    extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ type args) { \
        name##_body(&args);                                                                                 \
    }                                                                                                       \
    static __device__ __forceinline__ void name##_body(const type *a)
extern __shared__ __align__(1024) char hone_shared[];
#define THREAD ((int)threadIdx.x)
#define BLOCK_X ((int)blockIdx.x)
#define BLOCK_Y ((int)blockIdx.y)
#define BLOCK_Z ((int)blockIdx.z)
#define GRID_X ((int)gridDim.x)
#define GRID_Z ((int)gridDim.z)
#define F32_BITS(v) __float_as_uint(v)
#define BITS_F32(v) __uint_as_float(v)
#define ALIGNED16 __align__(16)

typedef struct ALIGNED16 {
    u32 x, y, z, w;
} u32x4;

DEVICE u32 shared_at(const void *p) { return (u32)__cvta_generic_to_shared(p); }

/* ---- halves ---- */
DEVICE float f16_f32(u16 h) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}
DEVICE u16 f32_f16(float f) {
    u16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}
DEVICE u32 f32_f16x2(float low, float high) {
    u32 r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}
DEVICE float bf16_f32(u16 h) { return BITS_F32((u32)h << 16); }
DEVICE u16 f32_bf16(float f) {
    u16 h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}
DEVICE u32 f32_bf16x2(float low, float high) {
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}
DEVICE float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
DEVICE float inverse_fast(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
DEVICE float rsqrt_fast(float x) { return rsqrtf(x); }

/* ---- barriers and shuffles; all threads of a warp take part ---- */
DEVICE void sync_block(void) { asm volatile("bar.sync 0;" ::: "memory"); }
DEVICE void sync_some(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
/* without waiting */
DEVICE void arrive_some(int id, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
DEVICE void sync_warp(void) { __syncwarp(); }
/* true in one thread of the warp. The compiler knows it: what is asked of the copy engine behind it needs no
   loop over threads */
DEVICE bool elect(void) {
    u32 chosen;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(chosen));
    return chosen != 0;
}
DEVICE u32 upper_product(u32 x, u32 y) { return __umulhi(x, y); }
/* four of the bytes of a (0 to 3) and b (4 to 7), a hexadecimal digit of `which` each */
DEVICE u32 pick_bytes(u32 a, u32 b, u32 which) { return __byte_perm(a, b, which); }
DEVICE float shuffle_xor(float v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
DEVICE u32 shuffle_from(u32 v, int lane) { return __shfl_sync(0xffffffffu, v, lane); }

/* ---- global memory ---- */
DEVICE u32x4 load16(const void *p) { return *(const u32x4 *)p; }
/* n floats, n known when compiled, from an address that is aligned to all of them, or to 16 bytes. */
DEVICE void load_floats(float *to, const float *p, int n) {
    if (n % 4 == 0) {
        UNROLL for (int e = 0; e < n; e += 4) {
            const float4 v = *(const float4 *)(p + e);
            to[e] = v.x, to[e + 1] = v.y, to[e + 2] = v.z, to[e + 3] = v.w;
        }
    } else if (n == 2) {
        const float2 v = *(const float2 *)p;
        to[0] = v.x, to[1] = v.y;
    } else to[0] = *p;
}
DEVICE u32x4 load16_once(const void *p) { /* read by nobody else: not kept in L1 */
    u32x4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}
DEVICE u32x4 load16_l2(const void *p) { /* what another block may have written */
    u32x4 v;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}
DEVICE void store16(void *p, u32x4 v) { /* written out: the compiler makes four stores of some */
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}
DEVICE void store16_once(void *p, u32x4 v) { /* read by nobody soon: the first to leave L2 */
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w)
                 : "memory");
}
/* counts 1 up; what was there before; orders what this block wrote before it */
DEVICE u32 atomic_count(u32 *p) {
    u32 was;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(was) : "l"(p) : "memory");
    return was;
}
DEVICE void fence_gpu(void) { __threadfence(); }

/* ---- programmatic dependent launch (sm_90): the next kernel may start; wait until the one before has ended
   --- */
DEVICE void launch_next(void) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
DEVICE void wait_previous(void) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* ---- shared memory ---- */
DEVICE u32x4 shared_load16(u32 at) {
    u32x4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(at)
                 : "memory");
    return v;
}
DEVICE u16 shared_load2(u32 at) {
    u16 v;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v) : "r"(at) : "memory");
    return v;
}
DEVICE u64 shared_load8(u32 at) {
    u64 v;
    asm volatile("ld.shared.u64 %0, [%1];" : "=l"(v) : "r"(at) : "memory");
    return v;
}
DEVICE u32 shared_load4(u32 at) {
    u32 v;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
    return v;
}
DEVICE void shared_store16(u32 at, u32x4 v) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}
DEVICE void shared_store2(u32 at, u16 v) {
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(at), "h"(v) : "memory");
}
DEVICE void shared_store8(u32 at, u64 v) {
    asm volatile("st.shared.u64 [%0], %1;" ::"r"(at), "l"(v) : "memory");
}
DEVICE void shared_store4(u32 at, u32 v) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(v) : "memory");
}

/* ---- asynchronous copies of 16 bytes (sm_80); `bytes` of them are read, the rest are zeros ---- */
DEVICE void copy16(u32 to, const void *from, int bytes) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
}
DEVICE void copy4(u32 to, const void *from, int bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
DEVICE void copy_commit(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
/* all but the last n groups are there */
#define copy_wait(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")

/* ---- warps' matrix unit (sm_80): fragments as the instruction set has them ---- */
/* four 8x8 matrices of 16-bit values; each thread brings the address of one row */
DEVICE void matrix_load(u32 r[4], u32 at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}
DEVICE void matrix_load_across(u32 r[4], u32 at) { /* the same, each matrix transposed */
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}
#define MMA_FLOAT(name, shape)                                                            \
    DEVICE void name(float c[4], const u32 a[4], const u32 b[2]) {                        \
        asm volatile("mma.sync.aligned." shape                                            \
                     " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"   \
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                     \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \
    }
MMA_FLOAT(mma_f16, "m16n8k16.row.col.f32.f16.f16.f32")
MMA_FLOAT(mma_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32")
MMA_FLOAT(mma_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32")
#define MMA_BYTES(name, types)                                                                       \
    DEVICE void name(int c[4], const u32 a[4], const u32 b[2]) {                                     \
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." types ".s32"                           \
                     " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"              \
                     : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])                                \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));            \
    }
MMA_BYTES(mma_s8, "s8.s8")
MMA_BYTES(mma_u8s8, "u8.s8")
MMA_BYTES(mma_s8u8, "s8.u8")

/* ---- barriers in shared memory, on which copies of tiles report (sm_90) ---- */
DEVICE void barrier_init(u32 at, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory");
}
DEVICE void barrier_fence(void) { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE void barrier_arrive(u32 at) {
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared::cta.b64 s, [%0]; }" ::"r"(at) : "memory");
}
/* All threads of a cluster's blocks that have not ended meet; what they wrote to shared memory before, others
   see after. */
DEVICE void cluster_arrive(void) { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
DEVICE void cluster_wait(void) { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
DEVICE u32x4 shared_load16_of(u32 at, int rank) { /* from another block of the cluster */
    u32x4 v;
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %4, %5; ld.shared::cluster.v4.u32 {%0, "
                 "%1, %2, %3}, [there]; }"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(at), "r"(rank)
                 : "memory");
    return v;
}
DEVICE void shared_store16_of(u32 at, int rank, u32x4 v) { /* likewise */
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
                 "st.shared::cluster.v4.u32 [there], {%2, %3, %4, %5}; }" ::"r"(at),
                 "r"(rank), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}
/* arrives, and says how many bytes must come before the barrier opens */
DEVICE void barrier_expect(u32 at, u32 bytes) {
    asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared::cta.b64 s, [%0], %1; }" ::"r"(at),
                 "r"(bytes)
                 : "memory");
}
DEVICE void barrier_wait(u32 at, u32 parity) {
    asm volatile("{ .reg .pred p;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@p bra done;\n"
                 "bra again;\n"
                 "done: }" ::"r"(at),
                 "r"(parity)
                 : "memory");
}

/* ---- tiles by the copy engine (sm_90) ---- */
DEVICE void tile_load(u32 to, const hone_cuda_tensor_map *map, u32 barrier, int c0, int c1, int c2) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
                 "{%3, %4, %5}], [%2];" ::"r"(to),
                 "l"((u64)map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2)
                 : "memory");
}
DEVICE void tile_load4(u32 to, const hone_cuda_tensor_map *map, u32 barrier, int c0, int c1, int c2, int c3) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
                 "{%3, %4, %5, %6}], [%2];" ::"r"(to),
                 "l"((u64)map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}
DEVICE void tile_load5(u32 to, const hone_cuda_tensor_map *map, u32 barrier, int c0, int c1, int c2, int c3,
                       int c4) {
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
                 "{%3, %4, %5, %6, %7}], [%2];" ::"r"(to),
                 "l"((u64)map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
                 : "memory");
}
DEVICE void map_prefetch(const hone_cuda_tensor_map *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"((u64)map) : "memory");
}
/* Rows of A as windows see them: `pixels` of the map from (x, y, n) on, moved by one tap; c0: the first
   channel. */
DEVICE void window_load(u32 to, const hone_cuda_tensor_map *map, u32 barrier, int c0, int x, int y, int n,
                        int tap_x, int tap_y) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(to),
                 "l"((u64)map), "r"(barrier), "r"(c0), "r"(x), "r"(y), "r"(n), "h"((u16)tap_x),
                 "h"((u16)tap_y)
                 : "memory");
}
DEVICE void tile_store(const hone_cuda_tensor_map *map, u32 from, int c0, int c1, int c2) {
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"((u64)map),
        "r"(from), "r"(c0), "r"(c1), "r"(c2)
        : "memory");
}
DEVICE void tile_store5(const hone_cuda_tensor_map *map, u32 from, int c0, int c1, int c2, int c3, int c4) {
    asm volatile(
        "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(
            (u64)map),
        "r"(from), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
        : "memory");
}
DEVICE void store_commit(void) { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/* all but the last n have been read from shared memory */
#define store_wait(n) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(n) : "memory")
/* plain stores before, copy engine after */
DEVICE void fence_proxy(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* ---- warpgroups' matrix unit (sm_90a); wgmma itself is printed for its width ---- */
DEVICE void wgmma_fence(void) { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit(void) { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
#define wgmma_wait(n) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory")
/* what follows from the int i is computed here, not kept in registers from before a loop */
#define AGAIN(i) asm volatile("" : "+r"(i))
/* a sum in v is there from here on: nothing that reads it moves before the wait above */
#define KNOWN(v) asm volatile("" : "+f"(v)::"memory")
/* What makes v stays before the wait below, which the compiler moves up otherwise: a store that never
   happens, as v is not below 0. */
DEVICE void before_wait(float v, u32 at) {
    asm volatile("{ .reg .pred p; setp.lt.f32 p, %0, 0f00000000; @p st.shared.f32 [%1], %0; }" ::"f"(v),
                 "r"(at)
                 : "memory");
}
#define registers_more(n) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n))
#define registers_less(n) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n))
#endif

/* 2^23 + a byte. Less a whole number, 2^23 in it, it is the byte less a zero point in one step more; a
   conversion of bytes takes as long as eight. */
DEVICE float byte_up(u32 b) { return BITS_F32(0x4b000000u | b); }
/* Rows of 128 bytes in shared memory, 16-byte pieces swapped by the row's number, so that eight rows of one
   column meet eight banks. The copy engine and wgmma know this order as the 128-byte swizzle. */
DEVICE u32 swizzle(u32 at) { return at ^ ((at >> 7 & 7) << 4); }
