/* SPDX-License-Identifier: Apache-2.0
   print_target: the table of what kernels are printed in: a language's words for memory, threads and
   barriers, as the prelude that stands before kernels. HIP is CUDA with other words. Nothing here needs a
   vendor's header: what OpenCL C, NVRTC and hipRTC know by themselves is enough. */
#include "loops/print_target.h"

#include "loops/kernel.h"

extern const char hone_fn_text[], hone_storage_text[];

static const char opencl[] =
    "#pragma OPENCL FP_CONTRACT OFF\n"
    "#define HONE_GLOBAL __global\n"
    "#define HONE_SHARED __local\n"
    "#define HONE_ENTRY(name, threads) __kernel __attribute__((reqd_work_group_size(threads, 1, 1))) void "
    "name\n"
    "#define HONE_AT(T, buffer, offset) ((__global T *)((__global uchar *)(buffer) + (offset)))\n"
    "#define HONE_THREAD ((uint)get_local_id(0))\n"
    "#define HONE_GROUP ((ulong)get_group_id(0))\n"
    "#define HONE_BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)\n"
    "#define HONE_RAISE(at, code) (void)atomic_max((volatile __global uint *)(at), (code))\n"
    "#define HONE_VECTOR(T, name, n) T name[n]\n"
    "#define HONE_BRING(T, n, to, from) vstore##n(vload##n(0, (from)), 0, (to))\n"
    "#define HONE_LEAVE(T, n, to, from) vstore##n(vload##n(0, (from)), 0, (to))\n";
/* An access of 16 or 8 bytes where the address allows it, which is one branch for all threads that matter. */
#define VECTORS                                                                                             \
    "typedef struct __attribute__((aligned(16))) { unsigned int w[4]; } hone_16;\n"                         \
    "typedef struct __attribute__((aligned(8))) { unsigned int w[2]; } hone_8;\n"                           \
    "#define HONE_VECTOR(T, name, n) __attribute__((aligned(16))) T name[n]\n"                              \
    "#define HONE_MOVE(T, n, to, from, at) "                                                                \
    "if (sizeof(T) * (n) == 16 && (unsigned long long)(at) % 16 == 0) *(hone_16 *)(to) = *(const hone_16 "  \
    "*)(from); "                                                                                            \
    "else if (sizeof(T) * (n) == 8 && (unsigned long long)(at) % 8 == 0) *(hone_8 *)(to) = *(const hone_8 " \
    "*)(from); "                                                                                            \
    "else for (int hone_q = 0; hone_q < (n); hone_q++) (to)[hone_q] = (from)[hone_q]\n"                     \
    "#define HONE_BRING(T, n, to, from) { const T *const hone_from = (from); HONE_MOVE(T, n, to, "          \
    "hone_from, hone_from); }\n"                                                                            \
    "#define HONE_LEAVE(T, n, to, from) { T *const hone_into = (to); HONE_MOVE(T, n, hone_into, from, "     \
    "hone_into); }\n"
static const char cuda[] =
    "#define HONE_KERNEL 1\n"
    "#define HONE_GLOBAL\n"
    "#define HONE_SHARED __shared__\n"
    "#define HONE_ENTRY(name, threads) extern \"C\" __global__ void __launch_bounds__(threads) name\n"
    "#define HONE_THREAD (threadIdx.x)\n"
    "#define HONE_GROUP ((unsigned long long)blockIdx.x)\n"
    "#define HONE_BARRIER() __syncthreads()\n"
    "#define HONE_RAISE(at, code) (void)atomicMax((at), (code))\n"
    "#define HONE_SHUFFLE(v, by) __shfl_down_sync(0xffffffffu, (v), (by), 32)\n" VECTORS
    /* the kernel behind this one may be brought, and nothing is read before the one
                              ahead has ended */
    "#if __CUDA_ARCH__ >= 900\n"
    "#define HONE_BEGIN() asm volatile(\"griddepcontrol.launch_dependents; griddepcontrol.wait;\" ::: "
    "\"memory\")\n"
    "#endif\n";
/* A wave is 64 wide there, or 32; a shuffle of 32 is right in both. */
static const char hip[] =
    "#define HONE_KERNEL 1\n"
    "#define HONE_GLOBAL\n"
    "#define HONE_SHARED __shared__\n"
    "#define HONE_ENTRY(name, threads) extern \"C\" __global__ void __launch_bounds__(threads) name\n"
    "#define HONE_THREAD (threadIdx.x)\n"
    "#define HONE_GROUP ((unsigned long long)blockIdx.x)\n"
    "#define HONE_BARRIER() __syncthreads()\n"
    "#define HONE_RAISE(at, code) (void)atomicMax((at), (code))\n"
    "#define HONE_SHUFFLE(v, by) __shfl_down((v), (by), 32)\n" VECTORS;

/* f16 by the device's own instructions: between fn.h and storage.h. OpenCL has them in its core, whatever it
   says of fp16. */
static const char opencl_halves[] =
    "#define HONE_HALVES 1\n"
    "HONE_INLINE float hone_half_get(uint16_t t) { return vload_half(0, (const __private half *)&t); }\n"
    "HONE_INLINE uint16_t hone_half_put(float v) { uint16_t t; vstore_half_rte(v, 0, (__private half *)&t); "
    "return t; }\n";
static const char cuda_halves[] = "#define HONE_HALVES 1\n"
                                  "HONE_INLINE float hone_half_get(uint16_t t) { float v; asm(\"cvt.f32.f16 "
                                  "%0, %1;\" : \"=f\"(v) : \"h\"(t)); return v; }\n"
                                  "HONE_INLINE uint16_t hone_half_put(float v) { uint16_t t; "
                                  "asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(t) : \"f\"(v)); return t; }\n";
static const char hip_halves[] =
    "#define HONE_HALVES 1\n"
    "HONE_INLINE float hone_half_get(uint16_t t) { _Float16 h; memcpy(&h, &t, 2); return (float)h; }\n"
    "HONE_INLINE uint16_t hone_half_put(float v) { const _Float16 h = (_Float16)v; uint16_t t; memcpy(&t, "
    "&h, 2); return t; }\n";

/* clang-format off */
#define RESERVED_ALWAYS \
    " inline signed bool true false int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t " \
    "INFINITY NAN memcpy uint ulong ushort uchar half hone_at hone_to hone_rest hone_lane hone_term " \
    "hone_live hone_part hone_first hone_place hone_k hone_r hone_v hone_total hone_terms hone_error " \
    "hone_where hone_number hone_slices hone_owners hone_rows hone_columns hone_row hone_column hone_down " \
    "hone_across hone_as hone_bs hone_from hone_x hone_y hone_i hone_j hone_q hone_t hone_sum hone_line "
static const char reserved_opencl[] = RESERVED_ALWAYS
    "kernel global local constant private read_only write_only read_write image2d_t event_t sampler_t "
    "size_t ptrdiff_t barrier pipe uniform vec_step "
    "char2 char4 short2 int2 int4 uint2 uint4 long2 float2 float4 float8 double2 half2 complex imaginary "
    "quad ";
static const char reserved_cuda[] = RESERVED_ALWAYS
    "and and_eq alignas alignof asm bitand bitor catch char16_t char32_t class compl concept constexpr "
    "const_cast decltype delete dynamic_cast explicit "
    "export friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected "
    "public reinterpret_cast requires "
    "static_assert static_cast template this thread_local throw try typeid typename using virtual wchar_t "
    "xor xor_eq threadIdx blockIdx blockDim gridDim "
    "warpSize dim3 int2 int4 float2 float4 __device__ ";
/* clang-format on */
static const hone_print_target rows[HONE_LANGS] = {
    [HONE_LANG_OPENCL] =
        {{"OpenCL C 1.2", true, "L", reserved_opencl}, opencl, opencl_halves, true, true, false},
    [HONE_LANG_CUDA] = {{"CUDA C", true, "LL", reserved_cuda}, cuda, cuda_halves, false, false, true},
    [HONE_LANG_HIP] = {{"HIP", true, "LL", reserved_cuda}, hip, hip_halves, false, false, true},
};
const char *const hone_lang_names[HONE_LANGS] = {"OpenCL C 1.2", "CUDA C", "HIP"};
const hone_print_target *hone_print_target_of(hone_lang lang) { return rows + lang; }

/* fn.h and storage.h, then what printed kernels say beside them. The first load that was outside is told. */
static const char common[] =
    "#ifndef HONE_BEGIN\n#define HONE_BEGIN()\n#endif\n"
    "HONE_INLINE int32_t hone_outside(int *bad, int tensor) { return *bad = *bad ? *bad : tensor, 0; }\n";

void hone_kernel_prelude(const hone_kernel_target *t, bool f64, hone_text *out) {
    if (!f64) hone_text_put(out, "#define HONE_NO_F64 1\n");
    else if (t->lang == HONE_LANG_OPENCL)
        hone_text_put(out, "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n");
    hone_text_put(out, "%s%s\n%s%s\n%s", rows[t->lang].prelude, hone_fn_text, rows[t->lang].halves,
                  hone_storage_text, common);
}
