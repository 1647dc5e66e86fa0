/* SPDX-License-Identifier: Apache-2.0
   columns: rows of 32-bit values made columns, four by four in registers. */
#ifndef HONE_BASE_COLUMNS_H
#define HONE_BASE_COLUMNS_H
#include <stddef.h>
#include <stdint.h>

typedef uint32_t hone_four __attribute__((vector_size(16)));
/* not by memcpy, which gcc 12 sends through integer registers on aarch64 */
typedef uint32_t hone_four_anywhere __attribute__((vector_size(16), aligned(4), may_alias));
#if defined(__clang__)
#define HONE_OF_TWO(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define HONE_OF_TWO(a, b, i, j, k, l) __builtin_shuffle(a, b, (hone_four){i, j, k, l})
#endif
/* to[j * to_step + i] = from[i * from_step + j],  i < rows, j < columns; steps in values */
static inline void hone_columns(const void *source, ptrdiff_t from_step, int64_t rows, int64_t columns,
                                void *target, ptrdiff_t to_step) {
    const uint32_t *from = source;
    uint32_t *to = target;
    /* the last four again where they overlap */
    for (int64_t j = 0; j < columns && rows >= 4 && columns >= 4;
         j = j + 8 <= columns || j + 4 == columns ? j + 4 : columns - 4)
        for (int64_t i = 0; i < rows; i = i + 8 <= rows || i + 4 == rows ? i + 4 : rows - 4) {
            hone_four r[4];
            for (int k = 0; k < 4; k++)
                r[k] = *(const hone_four_anywhere *)(const void *)(from + (i + k) * from_step + j);
            const hone_four a = HONE_OF_TWO(r[0], r[1], 0, 4, 1, 5), b = HONE_OF_TWO(r[2], r[3], 0, 4, 1, 5),
                            c = HONE_OF_TWO(r[0], r[1], 2, 6, 3, 7), d = HONE_OF_TWO(r[2], r[3], 2, 6, 3, 7);
            r[0] = HONE_OF_TWO(a, b, 0, 1, 4, 5), r[1] = HONE_OF_TWO(a, b, 2, 3, 6, 7);
            r[2] = HONE_OF_TWO(c, d, 0, 1, 4, 5), r[3] = HONE_OF_TWO(c, d, 2, 3, 6, 7);
            for (int k = 0; k < 4; k++) *(hone_four_anywhere *)(void *)(to + (j + k) * to_step + i) = r[k];
        }
    for (int64_t j = 0; j < columns && (rows < 4 || columns < 4); j++)
        for (int64_t i = 0; i < rows; i++) to[j * to_step + i] = from[i * from_step + j];
}
#endif
