/* SPDX-License-Identifier: Apache-2.0
   recurrent: a classifier of token sequences: embedding, layers of LSTM or GRU (both ways with bi=1), one
   linear layer on the last step. Our own design, written as nn.LSTM and nn.GRU are exported. */
#include <math.h>
#include <string.h>

#include "zoo/nets.h"
#include "zoo/transformer.h"

/* Zeros [ways, B, H] as the state before the first step. */
static hone_vid zeros(hone_zoo *z, hone_vid x, int64_t ways, int64_t hidden) {
    bool fixed = hone_dim_is_number(z->batch);
    hone_value *v;
    if (z->status || (z->status = hone_value_tensor(
                          HONE_DTYPE_F32, (const int64_t[]){ways, fixed ? z->batch : 1, hidden}, 3, &v)))
        return -1;
    hone_vid zero = hone_zoo_const(z, "initial", v);
    return fixed
               ? zero
               : hone_zoo_op(z, "Expand",
                             HONE_ZOO_IN(zero, hone_zoo_shape(z, x, HONE_ZOO_DIMS(ways, z->batch, hidden))));
}

/* x: [S, B, K] → [S, B, ways * H] */
static hone_vid layer(hone_zoo *z, const char *op, hone_vid x, int64_t ways, int64_t hidden) {
    bool lstm = !strcmp(op, "LSTM");
    int64_t gates = lstm ? 4 : 3, in = hone_zoo_dim(z, x, 2), s = hone_zoo_dim(z, x, 0);
    double reach = sqrt(3.0 / (double)hidden);
    hone_vid w = hone_zoo_weight(z, "W", HONE_ZOO_DIMS(ways, gates * hidden, in), 0, sqrt(3.0 / (double)in));
    hone_vid r = hone_zoo_weight(z, "R", HONE_ZOO_DIMS(ways, gates * hidden, hidden), 0, reach);
    hone_vid b = hone_zoo_weight(z, "B", HONE_ZOO_DIMS(ways, 2 * gates * hidden), 0, 0.1);
    hone_vid h = zeros(z, x, ways, hidden), from = x;
    const char *way = ways == 2 ? "bidirectional" : "forward";
    if (lstm) {
        hone_vid c = zeros(z, x, ways, hidden);
        x = hone_zoo_op_many(z, op, HONE_ZOO_IN(x, w, r, b, -1, h, c), 3, "direction=%s hidden_size=%d", way,
                             (int)hidden);
    } else {
        x = hone_zoo_op_many(z, op, HONE_ZOO_IN(x, w, r, b, -1, h), 2,
                             "direction=%s hidden_size=%d linear_before_reset=1", way, (int)hidden);
    }
    if (ways == 1)
        return hone_zoo_op(z, "Squeeze", HONE_ZOO_IN(x, hone_zoo_ints(z, (const int64_t[]){1}, 1)));
    x = hone_zoo_transpose(z, x, "0,2,1,3");
    return hone_zoo_reshape(z, x, from, HONE_ZOO_DIMS(s, z->batch, ways * hidden));
}

void hone_zoo_recurrent(hone_zoo *z, const void *plan) {
    int64_t ways = 1 + hone_zoo_option(z, HONE_ZOO_BI), hidden = hone_zoo_option(z, HONE_ZOO_HIDDEN);
    hone_vid ids = hone_zoo_input(z, "input_ids", HONE_DTYPE_I64, HONE_ZOO_DIMS(z->batch, z->seq));
    hone_vid x = hone_zoo_embed(z, "embedding", ids, hone_zoo_option(z, HONE_ZOO_VOCAB),
                                hone_zoo_option(z, HONE_ZOO_DIM));
    x = hone_zoo_transpose(z, x, "1,0,2");
    for (int k = 0; k < hone_zoo_option(z, HONE_ZOO_LAYERS); k++) {
        hone_zoo_enter(z, "rnn.%d", k);
        x = layer(z, plan, x, ways, hidden);
        hone_zoo_leave(z);
    }
    x = hone_zoo_op_with(z, "Gather", HONE_ZOO_IN(x, hone_zoo_int(z, -1)), "axis=0");
    hone_zoo_name(z, "logits");
    hone_zoo_output(z, hone_zoo_linear(z, "fc", x, hone_zoo_option(z, HONE_ZOO_CLASSES), true, 2));
}
