/* SPDX-License-Identifier: Apache-2.0
   fuzz_graph: any text as a graph: what parses must print, and what was printed must parse again. */
#include <stdlib.h>

#include "ir/graph.h"

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    hone_alloc_limit(256 << 20);
    return 0;
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hone_graph *g = NULL, *again = NULL;
    hone_text t = {0};
    if (hone_graph_parse((const char *)data, size, &g) != HONE_OK) return 0;
    if (hone_graph_print(g, &t) == HONE_OK && hone_graph_parse(t.text, t.n, &again) != HONE_OK &&
        hone_alloc_live_bytes() < 128 << 20)
        abort();
    hone_graph_destroy(again);
    hone_graph_destroy(g);
    hone_text_free(&t);
    return 0;
}
