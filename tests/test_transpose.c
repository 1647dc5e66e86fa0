/* SPDX-License-Identifier: Apache-2.0
   Floats that are only moved, rows to columns: against the definition and to the bit, any order of dims, odd
   sizes, one thread and many, NaN and both zeros among them. */
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
        snprintf(text, sizeof text, "graph g (x: f32[%s]) -> y { y = Transpose(x) {perm: [%s]}; }", dims,
                 order);
        twin_check(text, odd_input, 0, 0, NULL);
    }
}
static void blocks(void **state) { /* pixels of channels: rows that become one */
    (void)state;
    for (int round = 0; round < (SLOW ? 6 : 30); round++) {
        const int by = draw(2, 4), c = draw(1, 3), h = draw(8, 20), w = draw(17, 40);
        snprintf(
            text, sizeof text,
            "graph g (x: f32[2, %d, %d, %d]) -> y { y = DepthToSpace(x) {blocksize: %d, mode: \"%s\"}; }",
            c * by * by, h, w, by, draw(0, 1) ? "CRD" : "DCR");
        if (!twin_check(text, odd_input, 0, 0, "transpose")) fail_msg("nothing was turned in\n%s", text);
    }
}
/* channels of two or three groups in turns, between convolutions that keep them last: matrices of a pixel
   each, many a tile */
static void shuffles(void **state) {
    (void)state;
    for (int round = 0; round < (SLOW ? 6 : 30); round++) {
        const int groups = draw(2, 3), c = draw(2, 40), h = draw(1, 20), w = draw(1, 20), all = groups * c;
        snprintf(text, sizeof text,
                 "graph g (x: f32[2, 8, %d, %d]) -> y { a: f32[%d, 8, 1, 1] = random(1, -1, 1); b: f32[9, "
                 "%d, 1, 1] = random(2, -1, 1); "
                 "apart: i64[5] = {2, %d, %d, %d, %d}; together: i64[4] = {2, %d, %d, %d}; "
                 "p = Conv(x, a); q = Reshape(p, apart); r = Transpose(q) {perm: [0, 2, 1, 3, 4]}; s = "
                 "Reshape(r, together); y = Conv(s, b); }",
                 h, w, all, all, groups, c, h, w, all, h, w);
        twin_check(text, odd_input, 1e-4, 1e-4, NULL);
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(orders), cmocka_unit_test(blocks),
                                       cmocka_unit_test(shuffles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
