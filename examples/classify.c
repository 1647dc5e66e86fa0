/* SPDX-License-Identifier: Apache-2.0
   classify: a picture in, the likeliest classes out.

       cc classify.c $(pkg-config --cflags --libs hone) -o classify && ./classify model.onnx picture.png */
#include <hone/hone.h>
#include <hone/image.h>
#include <stdio.h>

int main(int argc, char **argv) {
    hone_model *model = NULL;
    hone_session *session = NULL;
    hone_value *picture = NULL, *in[1] = {0}, *out[1] = {0};
    hone_image_recipe recipe;
    if (argc < 3) return fprintf(stderr, "usage: classify MODEL.onnx PICTURE\n"), 2;

    /* A model of one input and one output, and what its input wants a picture to be: size, channels,
       range. */
    hone_status s = hone_model_load(argv[1], &model);
    if (!s && (hone_model_inputs(model) != 1 || hone_model_outputs(model) != 1)) {
        fprintf(stderr, "classify: %s is not a classifier: it has %d inputs and %d outputs\n", argv[1],
                hone_model_inputs(model), hone_model_outputs(model));
        return hone_model_free(model), 1;
    }
    if (!s) s = hone_image_recipe_for(hone_model_input(model, 0), &recipe);
    if (!s) s = hone_image_read(argv[2], HONE_IMAGE_RGB, &picture);
    if (!s) s = hone_image_prepare(&picture, 1, &recipe, &in[0]);

    /* The run itself. */
    if (!s) s = hone_session_create(model, NULL, &session);
    if (!s) s = hone_session_run(session, in, out);
    if (s) fprintf(stderr, "classify: %s\n", hone_error());

    /* The three largest scores, one after the other. */
    double below = 1e300;
    for (int place = 0; !s && place < 3; place++) {
        int64_t best = -1;
        for (int64_t k = 0; k < hone_value_elements(out[0]); k++) {
            double score = hone_value_number(out[0], k);
            if (score < below && (best < 0 || score > hone_value_number(out[0], best))) best = k;
        }
        if (best < 0) break;
        below = hone_value_number(out[0], best);
        printf("class %lld  %.4f\n", (long long)best, below);
    }
    hone_value_free(picture), hone_value_free(in[0]), hone_value_free(out[0]);
    hone_session_free(session);
    hone_model_free(model);
    return s != HONE_OK;
}
