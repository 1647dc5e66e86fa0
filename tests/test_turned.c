/* SPDX-License-Identifier: Apache-2.0
   Floats that are only moved, rows to columns: against the definition and to the bit, any order of dims, odd sizes, one thread and many, NaN and both zeros among them. */
#include "twin.h"

static hone_value *odd_input(const hone_graph *g, int k) {
    static const float odd[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-42f};
    hone_value *x = twin_input(g, k);
    for (int64_t q = 0; q < hone_value_count(x); q += draw(1, 40)) ((float *)x->data)[q] = odd[draw(0, 5)];
    return x;
}
static char text[1024];
static void orders(void **state) {
    (void)state;
    for (int round = 0; round < (SLOW ? 30 : 150); round++) {
        const int rank = draw(2, 4);
        int dim[4], perm[4];
        char dims[64] = "", order[64] = "";
        for (int k = 0; k < rank; k++) dim[k] = rank == 2 ? draw(2, 130) : draw(1, 30), perm[k] = k;
        for (int k = rank - 1; k > 0; k--) {
            const int q = draw(0, k), was = perm[k];
            perm[k] = perm[q], perm[q] = was;
        }
        for (int k = 0; k < rank; k++) {
            snprintf(dims + strlen(dims), sizeof dims - strlen(dims), "%s%d", k ? ", " : "", dim[k]);
            snprintf(order + strlen(order), sizeof order - strlen(order), "%s%d", k ? ", " : "", perm[k]);
        }
        snprintf(text, sizeof text, "graph g (x: f32[%s]) -> y { y = Transpose(x) {perm: [%s]}; }", dims, order);
        twin_check(text, odd_input, 0, 0, NULL);
    }
}
static void blocks(void **state) { /* pixels of channels: rows that become one */
    (void)state;
    for (int round = 0; round < (SLOW ? 6 : 30); round++) {
        const int by = draw(2, 4), c = draw(1, 3), h = draw(8, 20), w = draw(17, 40);
        snprintf(text, sizeof text, "graph g (x: f32[2, %d, %d, %d]) -> y { y = DepthToSpace(x) {blocksize: %d, mode: \"%s\"}; }",
                 c * by * by, h, w, by, draw(0, 1) ? "CRD" : "DCR");
        if (!twin_check(text, odd_input, 0, 0, "turned")) fail_msg("nothing was turned in\n%s", text);
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(orders), cmocka_unit_test(blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
