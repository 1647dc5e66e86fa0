/* SPDX-License-Identifier: Apache-2.0
   transformer: embeddings, heads and positions, spelled as exporters spell them. */
#include "zoo/transformer.h"

#include <math.h>

hone_vid hone_zoo_embed(hone_zoo *z, const char *name, hone_vid ids, int64_t rows, int64_t size) {
    hone_zoo_enter(z, "%s", name);
    hone_vid w = hone_zoo_weight(z, "weight", HONE_ZOO_DIMS(rows, size), 0, sqrt(3.0 / (double)size));
    ids = hone_zoo_op_with(z, "Gather", HONE_ZOO_IN(w, ids), "axis=0");
    hone_zoo_leave(z);
    return ids;
}
hone_vid hone_zoo_heads(hone_zoo *z, hone_vid x, int64_t heads, const char *perm) {
    hone_dim size = hone_zoo_dim(z, x, 2) / heads;
    x = hone_zoo_reshape(z, x, x, HONE_ZOO_DIMS(hone_zoo_dim(z, x, 0), hone_zoo_dim(z, x, 1), heads, size));
    return hone_zoo_transpose(z, x, perm);
}
hone_vid hone_zoo_join_heads(hone_zoo *z, hone_vid x, hone_vid from) {
    hone_dim all = hone_zoo_dim(z, x, 1) * hone_zoo_dim(z, x, 3);
    x = hone_zoo_transpose(z, x, "0,2,1,3");
    return hone_zoo_reshape(z, x, from,
                            HONE_ZOO_DIMS(hone_zoo_dim(z, from, 0), hone_zoo_dim(z, from, 1), all));
}
hone_vid hone_zoo_softmax(hone_zoo *z, hone_vid scores, hone_vid v) {
    scores = hone_zoo_op_with(z, "Softmax", HONE_ZOO_IN(scores), "axis=-1");
    return hone_zoo_op(z, "MatMul", HONE_ZOO_IN(scores, v));
}
hone_vid hone_zoo_unsqueeze(hone_zoo *z, hone_vid x, int64_t axis) {
    hone_vid at = hone_zoo_ints(z, &axis, 1);
    return hone_zoo_op(z, "Unsqueeze", HONE_ZOO_IN(x, at));
}
hone_vid hone_zoo_cast(hone_zoo *z, hone_vid x, hone_dtype to) {
    return hone_zoo_op_with(z, "Cast", HONE_ZOO_IN(x), "to=%d", to);
}
hone_vid hone_zoo_size_of(hone_zoo *z, hone_vid x, int axis) {
    return hone_zoo_slice(z, hone_zoo_op(z, "Shape", HONE_ZOO_IN(x)), 0, axis, axis + 1);
}
hone_vid hone_zoo_count_up(hone_zoo *z, const char *leaf, int64_t first, int64_t n) {
    hone_value *v;
    if (z->status || (z->status = hone_value_tensor(HONE_DTYPE_I64, (const int64_t[]){1, n}, 2, &v)))
        return -1;
    for (int64_t k = 0; k < n; k++) ((int64_t *)v->data)[k] = first + k;
    return hone_zoo_const(z, leaf, v);
}
