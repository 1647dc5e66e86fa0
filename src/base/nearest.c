/* SPDX-License-Identifier: Apache-2.0
   nearest: which of the names there are was meant by a word that is none of them. */
#include <limits.h>
#include <string.h>

#include "hone/tools.h"

enum { LONGEST = 128 };

/* Letters to insert, delete or change to make b of a. */
static int edits(const char *a, size_t n_a, const char *b) {
    int row[LONGEST];
    const size_t n = strlen(b);
    if (n >= LONGEST || n_a >= LONGEST) return INT_MAX;
    for (size_t j = 0; j <= n; j++) row[j] = (int)j;
    for (size_t i = 1; i <= n_a; i++) {
        int corner = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= n; j++) {
            const int change = corner + (a[i - 1] != b[j - 1]), least = row[j - 1] < row[j] ? row[j - 1] + 1 : row[j] + 1;
            corner = row[j];
            row[j] = change < least ? change : least;
        }
    }
    return row[n];
}

const char *hone_nearest(const char *word, size_t bytes, const char *const *names, int n) {
    const char *best = NULL;
    int least = bytes > 8 ? 4 : 3; /* further away is another word */
    for (int k = 0; k < n; k++) {
        const int d = edits(word, bytes, names[k]);
        if (d < least && d < (int)strlen(names[k])) least = d, best = names[k];
    }
    return best;
}
