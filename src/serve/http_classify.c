/* SPDX-License-Identifier: Apache-2.0
   http_classify: POST a picture's file, get labels. How it becomes the model's input stands in hone.json
   beside the model:

       {"labels": "labels.txt", "picture": {"resize": 256, "fit": "cover", "order": "rgb", "normalize":
       "imagenet", "mean": [..], "std": [..],
        "range": 1, "top": 5, "softmax": true}}

   What is not said follows from the model's input, as `hone run` has it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hone/image.h"
#include "serve/http.h"
#include "serve/inside.h"

static int recipe_of(const hone_serve_version *v, hone_image_recipe *r, hone_serve_error *e) {
    static const char *const fits[] = {"cover", "stretch", "pad"}, *const orders[] = {"rgb", "bgr", "gray"};
    const json_t *p = json_object_get(v->config, "picture"),
                 *three[2] = {json_object_get(p, "mean"), json_object_get(p, "std")};
    const char *fit = json_string_value(json_object_get(p, "fit")),
               *order = json_string_value(json_object_get(p, "order"));
    const char *normalize = json_string_value(json_object_get(p, "normalize"));
    if (v->inputs != 1)
        return hone_serve_fail(e, 400, "model '%s' has %d inputs; a picture is one", v->name, v->inputs);
    if (hone_image_recipe_for(hone_serve_input_port(v, 0), r))
        return hone_serve_fail(e, 400, "model '%s': %s", v->name, hone_error());
    const int64_t shorter = hone_serve_config_int(p, "resize", r->shorter),
                  width = hone_serve_config_int(p, "width", r->width);
    const int64_t height = hone_serve_config_int(p, "height", r->height);
    if (shorter < 0 || shorter > 16384 || width < 0 || width > 16384 || height < 0 || height > 16384)
        return hone_serve_fail(e, 500, "hone.json of '%s': sizes of pictures go to 16384", v->name);
    r->shorter = (int)shorter, r->width = (int)width, r->height = (int)height;
    if (normalize && !hone_image_recipe_name(r, normalize))
        return hone_serve_fail(e, 500, "hone.json of '%s': normalize is imagenet, 0-1, -1-1 or none",
                               v->name);
    if (json_is_number(json_object_get(p, "range")))
        r->range = (float)json_number_value(json_object_get(p, "range"));
    for (int k = 0; k < 3; k++) {
        if (fit && !strcmp(fit, fits[k])) r->fit = (hone_image_fit)k;
        if (order && !strcmp(order, orders[k])) r->order = (hone_image_order)k;
        for (int which = 0; which < 2; which++)
            if (json_is_array(three[which]) && json_array_size(three[which]))
                (which ? r->std : r->mean)[k] = (float)json_number_value(
                    json_array_get(three[which], (size_t)k % json_array_size(three[which])));
    }
    for (int k = 0; k < 3; k++)
        if (r->dtype == HONE_DTYPE_F32 && r->std[k] == 0)
            return hone_serve_fail(e, 500, "hone.json of '%s': std is not 0", v->name);
    return 0;
}
void hone_http_classify_body(hone_http_call *c) {
    c->picture_wanted = true;
    if (!(c->held = hone_serve_find(hone_http_core(c), c->model, c->version, &c->error))) return;
    hone_image_recipe r;
    recipe_of(c->held, &r, &c->error);
}
void hone_http_classify_finish(hone_http_call *c) {
    hone_image_recipe recipe = {0};
    hone_value *pixels = NULL, *ready = NULL;
    const hone_port *p = hone_serve_input_port(c->held, 0);
    if (!c->text.n) hone_serve_fail(&c->error, 400, "the body is to be a picture's file: JPEG, PNG, WebP, …");
    else if (recipe_of(c->held, &recipe, &c->error)) return;
    else if (hone_image_decode(c->text.at, c->text.n,
                               recipe.order == HONE_IMAGE_GRAY ? HONE_IMAGE_GRAY : HONE_IMAGE_RGB, &pixels) ||
             hone_image_prepare(&pixels, 1, &recipe, &ready))
        hone_serve_fail(&c->error, 400, "the picture: %s", hone_error());
    else if ((c->request = hone_serve_request_create(c->held, &c->error))) {
        void *at;
        size_t bytes;
        c->request->times.received = c->began;
        if (hone_serve_input(c->request, p->name, hone_serve_type_name(hone_value_dtype(ready)),
                             hone_value_dims(ready), hone_value_rank(ready), &at, &bytes, &c->error) >= 0) {
            memcpy(at, hone_value_data(ready), bytes);
            hone_http_submit(c);
        }
    }
    hone_value_free(pixels), hone_value_free(ready);
}
/* The output with the labels: the only one, or the first of so many classes as there are labels. */
void hone_http_classify_reply(hone_http_call *c) {
    const hone_serve_version *v = c->held;
    const json_t *p = json_object_get(v->config, "picture");
    const hone_value *scores = v->outputs ? c->request->out[0] : NULL;
    for (int k = 0; k < v->outputs; k++)
        if (v->n_labels && hone_value_elements(c->request->out[k]) == v->n_labels) {
            scores = c->request->out[k];
            break;
        }
    const int64_t n =
        scores && hone_serve_type_bytes(hone_value_dtype(scores)) ? hone_value_elements(scores) : 0;
    int64_t top = hone_serve_config_int(p, "top", 5);
    if (n < 1 || n > 1000000) {
        hone_serve_fail(&c->error, 400, "model '%s' gives no scores of classes", c->model);
        hone_http_answer_error(c);
        return;
    }
    if (top > n) top = n;
    if (top > 100) top = 100;
    const bool softmax = json_is_true(json_object_get(p, "softmax"));
    double most = -INFINITY, sum = 0;
    for (int64_t k = 0; k < n; k++) most = fmax(most, hone_value_number(scores, k));
    for (int64_t k = 0; k < n && softmax; k++) sum += exp(hone_value_number(scores, k) - most);
    json_t *list = json_array();
    double before = INFINITY;
    int64_t last = -1;
    for (int64_t place = 0; place < top; place++) {
        int64_t best = -1;
        double x = 0;
        for (int64_t k = 0; k < n; k++) {
            const double y = hone_value_number(scores, k);
            if (!(y < before || (y == before && k > last)) || (best >= 0 && y <= x)) continue;
            best = k, x = y;
        }
        if (best < 0) break;
        const double score = softmax ? exp(x - most) / sum : x;
        const char *label = hone_serve_label(v, best);
        json_t *one = json_pack("{s:I, s:o}", "class", (json_int_t)best, "score",
                                isfinite(score) ? json_real(score) : json_null());
        if (one && label) json_object_set_new(one, "label", json_string(label));
        if (one) json_array_append_new(list, one);
        before = x, last = best;
    }
    hone_http_answer_json(c, 200,
                          json_pack("{s:s, s:I, s:o}", "model_name", c->model, "model_version",
                                    (json_int_t)v->number, "classes", list));
}
