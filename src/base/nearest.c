/* SPDX-License-Identifier: Apache-2.0
   nearest: which of the names there are was meant by a word that is none of them. */
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "hone/tools.h"

enum { LONGEST = 128 };

static int low(char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; }
/* Letters to insert, delete, change or swap with the next to make b of a; large and small ones are the
   same. */
static int edits(const char *a, size_t n_a, const char *b) {
    int rows[3][LONGEST], *before = rows[0], *above = rows[1], *row = rows[2]; /* of i - 2, i - 1, i */
    const size_t n = strlen(b);
    if (n >= LONGEST || n_a >= LONGEST) return INT_MAX;
    for (size_t j = 0; j <= n; j++) row[j] = (int)j;
    for (size_t i = 1; i <= n_a; i++) {
        int *const free_row = before;
        before = above, above = row, row = free_row;
        row[0] = (int)i;
        for (size_t j = 1; j <= n; j++) {
            const bool same = low(a[i - 1]) == low(b[j - 1]);
            int least = above[j - 1] + !same;
            if (row[j - 1] + 1 < least) least = row[j - 1] + 1;
            if (above[j] + 1 < least) least = above[j] + 1;
            if (i > 1 && j > 1 && !same && low(a[i - 1]) == low(b[j - 2]) && low(a[i - 2]) == low(b[j - 1]) &&
                before[j - 2] + 1 < least)
                least = before[j - 2] + 1;
            row[j] = least;
        }
    }
    return row[n];
}

const char *hone_nearest(const char *word, size_t bytes, const char *const *names, int n) {
    const char *best = NULL;
    int least = bytes > 8 ? 4 : bytes > 4 ? 3 : 2; /* further away is another word */
    for (int k = 0; k < n; k++) {
        const int d = edits(word, bytes, names[k]);
        if (d < least && d < (int)strlen(names[k])) least = d, best = names[k];
    }
    return best;
}
