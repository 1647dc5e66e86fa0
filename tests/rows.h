/* SPDX-License-Identifier: Apache-2.0
   rows: parses every row of the op library now, for tests that count what is allocated: else each is parsed
   when a model first asks for it, and stays. */
#ifndef HONE_TESTS_ROWS_H
#define HONE_TESTS_ROWS_H
#include "loops/program.h"

static inline void parse_rows(void) {
    const hone_library *all;
    if (hone_library_builtin(&all)) fail_msg("%s", hone_fail_text());
    for (int k = 0; k < hone_library_count(all); k++)
        if (!hone_library_at(all, k)) fail_msg("row %d: %s", k, hone_fail_text());
}
#endif
