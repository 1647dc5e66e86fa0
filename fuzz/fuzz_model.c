/* SPDX-License-Identifier: Apache-2.0
   fuzz_model: any bytes as an ONNX model: loaded, compiled, and run once on small inputs. mutate.c changes
   models field by field. */
#include "feed.h"
#include "mutate.h"

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    hone_alloc_limit(FEED_LIMIT_BYTES);
    return 0;
}
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
    return mutate_model(data, size, room, seed);
}
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b, size_t nb, uint8_t *out,
                                 size_t room, unsigned seed) {
    return mutate_join(a, na, b, nb, out, room, seed);
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hone_model *m = NULL;
    if (hone_model_load_memory(data, size, &m) != HONE_OK) return 0;
    feed_run(m, (int)(size & 1));
    hone_model_free(m);
    return 0;
}
