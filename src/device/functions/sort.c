/* SPDX-License-Identifier: Apache-2.0
   sort: rows of pairs in scratch, by a bitonic network: 2048 neighbours at a time in shared memory, wider
   steps in memory. No two pairs are equal, since places differ, so the result is one only, whatever the
   order of the work. */
#include "device/functions/functions.h"

const char hone_fn_before[] = "#ifndef HONE_BEFORE\n#define HONE_BEFORE\n"
                              "HONE_INLINE int hone_before(uint64_t a, uint32_t i, uint64_t b, uint32_t j) { "
                              "return a != b ? a > b : i < j; }\n"
                              "#endif\n";
/* A step of the network: of each pair (low, high) the better one goes first where `up`. */
#define STEP                                                                                                 \
    "            const uint32_t low = 2 * p - (p & (by - 1)), high = low + by;\n"                            \
    "            const int swap = up ? hone_before(key[high], place[high], key[low], place[low]) : "         \
    "hone_before(key[low], place[low], "                                                                     \
    "key[high], place[high]);\n"                                                                             \
    "            if (swap) {\n"                                                                              \
    "                const uint64_t k = key[low];\n                const uint32_t i = place[low];\n"         \
    "                key[low] = key[high], place[low] = place[high], key[high] = k, place[high] = i;\n     " \
    "       }\n"
const char hone_fn_sort_shared[] =
    "    for (uint32_t size = 2; size <= M; size *= 2)\n"
    "        for (uint32_t by = size / 2; by > 0; by /= 2) {\n"
    "            for (uint32_t p = HONE_THREAD; p < M / 2; p += T) {\n"
    "                const int up = ((2 * p - (p & (by - 1))) & size) == 0;\n" STEP "            }\n"
    "            HONE_BARRIER();\n        }\n";

/* Blocks of M: from nothing to sorted, alternately, or the last steps of a wider merge. */
static const char in_blocks[] =
    "    HONE_SHARED uint64_t key[M];\n    HONE_SHARED uint32_t place[M];\n"
    "    const int64_t begin = (int64_t)HONE_GROUP * M, in_row = begin & (m - 1);\n"
    "    for (uint32_t p = HONE_THREAD; p < M; p += T) key[p] = keys[begin + p], place[p] = places[begin + "
    "p];\n"
    "    HONE_BARRIER();\n"
    "    for (int64_t size = first ? 2 : wide; size <= (first ? M : wide); size *= 2)\n"
    "        for (uint32_t by = size < M ? (uint32_t)size / 2 : M / 2; by > 0; by /= 2) {\n"
    "            for (uint32_t p = HONE_THREAD; p < M / 2; p += T) {\n"
    "                const int up = ((in_row + (int64_t)(2 * p - (p & (by - 1)))) & size) == 0;\n" STEP
    "            }\n"
    "            HONE_BARRIER();\n        }\n"
    "    for (uint32_t p = HONE_THREAD; p < M; p += T) keys[begin + p] = key[p], places[begin + p] = "
    "place[p];\n";
static const char in_memory[] = /* at: a pair of all rows */
    "        const int64_t pairs = m / 2, row = at / pairs, p = at - row * pairs, low = 2 * p - (p & (by - "
    "1)), high = low + by;\n"
    "        HONE_GLOBAL uint64_t *const key = keys + row * m;\n        HONE_GLOBAL uint32_t *const place = "
    "places + row * m;\n"
    "        const uint64_t a = key[low], b = key[high];\n        const uint32_t i = place[low], j = "
    "place[high];\n"
    "        if ((low & wide) == 0 ? hone_before(b, j, a, i) : hone_before(a, i, b, j)) key[low] = b, "
    "place[low] = j, key[high] = a, "
    "place[high] = i;\n";

static void blocks(hone_function *f, int keys, int places, int64_t rows, int64_t m, int64_t wide) {
    const int64_t block = m < HONE_FN_BLOCK ? m : HONE_FN_BLOCK;
    const int threads = block < 2 * HONE_FN_THREADS ? 32 : HONE_FN_THREADS;
    const char *body = hone_arena_text(f->arena, "#define M %d\n#define T %d\n%s#undef M\n#undef T\n",
                                       (int)block, threads, in_blocks);
    const hone_function_arg arg[] = {HONE_FN_SCRATCH("uint64_t", "keys", keys),
                                     HONE_FN_SCRATCH("uint32_t", "places", places), HONE_FN_NUMBER("m", m),
                                     HONE_FN_NUMBER("wide", wide), HONE_FN_NUMBER("first", !wide)};
    if (!body) f->failed = true;
    else hone_fn_launch(f, rows * (m / block), threads, hone_fn_before, body, arg, 5);
}
void hone_fn_sort(hone_function *f, int keys, int places, int64_t rows, int64_t m) {
    blocks(f, keys, places, rows, m, 0);
    for (int64_t wide = 2 * HONE_FN_BLOCK; wide <= m; wide *= 2) {
        for (int64_t by = wide / 2; by >= HONE_FN_BLOCK; by /= 2) {
            const hone_function_arg arg[] = {
                HONE_FN_SCRATCH("uint64_t", "keys", keys), HONE_FN_SCRATCH("uint32_t", "places", places),
                HONE_FN_NUMBER("m", m), HONE_FN_NUMBER("wide", wide), HONE_FN_NUMBER("by", by)};
            hone_fn_each(f, rows * (m / 2), hone_fn_before, in_memory, arg, 5);
        }
        blocks(f, keys, places, rows, m, wide);
    }
}
