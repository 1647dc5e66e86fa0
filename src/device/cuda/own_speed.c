/* SPDX-License-Identifier: Apache-2.0
   own_speed: how fast this GPU multiplies: a large product by the kernel that networks would get. */
#include "device/cuda/own.h"

enum { LEAST = 256, MOST = 4096, RUNS = 12 };
static const double slow = 1e-3; /* seconds: a product that takes so long is large enough */

static hone_status product(hone_cuda *gpu, hone_cuda *queue, hone_cuda_type in, int side,
                           hone_cuda_address at, int runs, double *seconds) {
    const hone_cuda_facts *facts = hone_cuda_facts_of(gpu);
    const size_t bytes = (size_t)MOST * MOST * 4;
    hone_own_launch own = {.kind = HONE_OWN_PRODUCT, .aligned = 16};
    hone_cuda_product *p = &own.product;
    *p = (hone_cuda_product){.in = in, .out = in == HONE_CUDA_S8 ? HONE_CUDA_S32 : in, .epilogue = "v"};
    p->p = (hone_cuda_contract){.a = at,
                                .b = at + bytes,
                                .c = at + 2 * bytes,
                                .m = side,
                                .n = side,
                                .k = side,
                                .batches = 1,
                                .splits = 1,
                                .alpha = 1,
                                .pitch_a = side,
                                .pitch_b = side,
                                .pitch_c = side,
                                .workspace = at + 3 * bytes};
    own.way = hone_cuda_best_way(p, facts);
    size_t workspace = 0, counters = 0;
    hone_cuda_contract_room(p, &own.way, &workspace, &counters);
    if (workspace > bytes / 2 || counters > bytes / 2)
        return hone_fail(HONE_BUG, "a product wants too much workspace");
    p->p.counters = at + 3 * bytes + bytes / 2;
    own.shape = hone_cuda_contract_launch(p, facts, &own.way);
    hone_arena *arena = hone_arena_create();
    hone_text text = {0};
    hone_launch launch = {0};
    hone_cuda_kernel kernel = {0};
    hone_cuda_contract_args args;
    hone_status s = arena ? hone_cuda_contract_print(&text, p, &own.way)
                          : hone_fail(HONE_NO_MEMORY, "no memory to measure products");
    if (!s) s = hone_own_finish(arena, &text, hone_cuda_contract_names[own.way.unit], &own, &launch);
    else hone_text_free(&text);
    if (!s) s = hone_own_compile(gpu, &launch, NULL, &kernel.function);
    if (!s) s = hone_cuda_contract_fill(gpu, p, &own.way, &args);
    if (!s) s = hone_cuda_enter(queue);
    for (int k = 0; k <= runs && !s; k++) { /* the first wakes it up */
        if (k == 1) s = hone_cuda_mark(queue, 0);
        if (!s) s = hone_cuda_launch(queue, &kernel, &own.shape, &args);
    }
    if (!s) s = hone_cuda_mark(queue, 1);
    if (!s) s = hone_cuda_marked(queue, seconds);
    *seconds /= runs;
    hone_arena_destroy(arena);
    return s;
}
hone_status hone_own_speed(hone_cuda *gpu, hone_cuda *queue, hone_dtype precision, double *rate) {
    const hone_cuda_type in = precision == HONE_DTYPE_F16    ? HONE_CUDA_F16
                              : precision == HONE_DTYPE_BF16 ? HONE_CUDA_BF16
                              : precision == HONE_DTYPE_I8   ? HONE_CUDA_S8
                                                             : HONE_CUDA_F32;
    const size_t bytes = (size_t)MOST * MOST * 4; /* the most that a factor or the result has */
    hone_cuda_address at = 0;
    double seconds = 0;
    *rate = 0;
    HONE_TRY(hone_cuda_enter(gpu));
    HONE_TRY(hone_cuda_memory(gpu, 4 * bytes, &at));
    hone_status s = hone_cuda_set(queue, at, 0, 4 * bytes);
    if (!s) s = hone_cuda_set(queue, at, 0x2d, 2 * bytes); /* small numbers in every type */
    for (int side = LEAST; !s && seconds < slow; side *= 4) {
        s = product(gpu, queue, in, side, at, side == MOST ? RUNS : 1, &seconds);
        if (!s && seconds > 0) *rate = 2.0 * side * side * side / seconds;
        if (side == MOST) break;
    }
    hone_cuda_memory_free(gpu, at);
    return s;
}
