/* SPDX-License-Identifier: Apache-2.0
   user_op: adds an op that ONNX does not have, as text, and runs a model that uses it.

       cc user_op.c $(pkg-config --cflags --libs hone) -o user_op && ./user_op user_op/model.onnx */
#include <hone/hone.h>
#include <stdio.h>

static const char swish[] = "op my.ops.Swish 1 (x[I..]: T) -> y[I..]: T\n"
                            "  T: f16 bf16 f32 f64\n"
                            "  attr beta = 1.0\n"
                            "  y[i..] = x[i..] * sigmoid(beta * x[i..])\n";

int main(int argc, char **argv) {
    hone_model *model = NULL;
    hone_session *session = NULL;
    hone_value *in[1] = {0}, *out[1] = {0};
    const int64_t dims[] = {2, 8};
    if (argc < 2) return fprintf(stderr, "usage: user_op user_op/model.onnx\n"), 2;
    hone_status s = hone_ops_add("swish", swish, sizeof swish - 1); /* before the model */
    if (!s) s = hone_model_load(argv[1], &model);
    if (!s) s = hone_session_create(model, NULL, &session);
    if (!s) s = hone_tensor_create(HONE_DTYPE_F32, dims, 2, &in[0]);
    for (int k = 0; !s && k < 16; k++) ((float *)hone_value_data(in[0]))[k] = 0.25f * (float)(k - 8);
    if (!s) s = hone_session_run(session, in, out);
    if (s) fprintf(stderr, "user_op: %s\n", hone_error());
    for (int row = 0; !s && row < 2; row++)
        printf("row %d: %.4f %.4f %.4f %.4f\n", row, hone_value_number(out[0], row * 4),
               hone_value_number(out[0], row * 4 + 1), hone_value_number(out[0], row * 4 + 2),
               hone_value_number(out[0], row * 4 + 3));
    hone_value_free(in[0]);
    hone_value_free(out[0]);
    hone_session_free(session);
    hone_model_free(model);
    return s != HONE_OK;
}
