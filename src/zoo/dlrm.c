/* SPDX-License-Identifier: Apache-2.0
   dlrm: a recommendation model in the style of DLRM (Naumov et al. 2019), with the sizes of its Criteo
   example: 13 numbers and 26 categories become 27 vectors of 16; their dot products, and the numbers' own
   vector, give one probability. */
#include "zoo/nets.h"
#include "zoo/transformer.h"

enum { NUMBERS = 13, CATEGORIES = 26, SIZE = 16, VECTORS = CATEGORIES + 1 };
static const int bottom[] = {512, 256, 64, SIZE}, top[] = {512, 256, 1};

static hone_vid chain(hone_zoo *z, const char *name, hone_vid x, const int *size, int n, bool last) {
    char layer[32];
    for (int k = 0; k < n; k++) {
        snprintf(layer, sizeof layer, "%s.%d", name, 2 * k);
        x = hone_zoo_linear(z, layer, x, size[k], true, 1.4);
        if (last && k == n - 1) hone_zoo_name(z, "probability");
        x = hone_zoo_act(z, last && k == n - 1 ? "Sigmoid" : "Relu", x);
    }
    return x;
}

/* Each pair of different vectors once: places below the diagonal of [VECTORS, VECTORS]. */
static hone_vid pairs(hone_zoo *z) {
    int64_t at[VECTORS * (VECTORS - 1) / 2];
    int n = 0;
    for (int a = 0; a < VECTORS; a++)
        for (int b = 0; b < a; b++) at[n++] = a * VECTORS + b;
    return hone_zoo_ints(z, at, n);
}

void hone_zoo_dlrm(hone_zoo *z, const void *plan) {
    int64_t rows = hone_zoo_option(z, HONE_ZOO_ROWS);
    hone_vid dense = hone_zoo_input(z, "dense", HONE_DTYPE_F32, HONE_ZOO_DIMS(z->batch, NUMBERS));
    hone_vid sparse = hone_zoo_input(z, "sparse", HONE_DTYPE_I64, HONE_ZOO_DIMS(z->batch, CATEGORIES));
    hone_vid vector[VECTORS] = {chain(z, "bot_l", dense, bottom, 4, false)};
    char name[32];
    for (int k = 0; k < CATEGORIES; k++) {
        hone_vid one = hone_zoo_op_with(z, "Gather", HONE_ZOO_IN(sparse, hone_zoo_int(z, k)), "axis=1");
        snprintf(name, sizeof name, "emb_l.%d", k);
        vector[k + 1] = hone_zoo_embed(z, name, one, rows, SIZE);
    }
    hone_zoo_enter(z, "interaction");
    hone_vid x = hone_zoo_cat(z, vector, VECTORS, 1);
    x = hone_zoo_reshape(z, x, dense, HONE_ZOO_DIMS(z->batch, VECTORS, SIZE));
    x = hone_zoo_op(z, "MatMul", HONE_ZOO_IN(x, hone_zoo_transpose(z, x, "0,2,1")));
    x = hone_zoo_reshape(z, x, dense, HONE_ZOO_DIMS(z->batch, VECTORS * VECTORS));
    x = hone_zoo_op_with(z, "Gather", HONE_ZOO_IN(x, pairs(z)), "axis=1");
    x = hone_zoo_cat(z, HONE_ZOO_IN(vector[0], x), 1);
    hone_zoo_leave(z);
    hone_zoo_output(z, chain(z, "top_l", x, top, 3, true));
}
