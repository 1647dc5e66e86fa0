/* SPDX-License-Identifier: Apache-2.0
   fuzz_wisdom: any text as wisdom, behind the head that this machine would accept and as it comes. What is
   read is printed and read back, and whatever is found for problems of many sizes fits them. */
#include <stdlib.h>
#include <string.h>

#include "device/wisdom.h"
#include "kernels/gemm.h"

static void use(const hone_wisdom *w) {
    hone_text t = {0};
    hone_wisdom *again = NULL;
    hone_wisdom_print(w, &t);
    if (!t.failed) {
        if (hone_wisdom_read(t.text, t.n, &again) != HONE_OK || again->line.n != w->line.n ||
            again->id != w->id)
            abort();
        for (int k = 0; k < w->line.n; k++) {
            hone_problem p = w->line.at[k].problem;
            const hone_gemm_f32 *g = hone_gemm_f32_best();
            p.vector = g->vector, p.widths = g->widths, p.mr = 14, p.nr = 32;
            memcpy(p.rows, g->mr, sizeof p.rows);
            const hone_choice *c = hone_wisdom_find(w, &p);
            if (c && !hone_choice_fits(&p, c)) abort();
        }
    }
    hone_text_free(&t);
    hone_wisdom_destroy(again);
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hone_wisdom *w = NULL, *none = hone_wisdom_create();
    hone_text t = {0};
    if (hone_wisdom_read((const char *)data, size, &w) == HONE_OK) use(w);
    hone_wisdom_destroy(w);
    if (none) hone_wisdom_print(none, &t); /* the head, and "end 0" */
    char *text = t.failed || !none ? NULL : malloc(t.n + size + 1);
    if (text) {
        size_t head = t.n - strlen("end 0\n");
        memcpy(text, t.text, head);
        memcpy(text + head, data, size);
        if (hone_wisdom_read(text, head + size, &w) == HONE_OK) use(w);
        hone_wisdom_destroy(w);
    }
    free(text);
    hone_text_free(&t);
    hone_wisdom_destroy(none);
    return 0;
}
