/* SPDX-License-Identifier: Apache-2.0
   yolo: a one-stage detector without anchor boxes, of the shape and size of YOLOv8n: a backbone of
   cross-stage blocks, a pyramid up and down, three heads, boxes as distributions of distances. Output:
   "boxes", [batch, 4 + classes, places]: center x, y, width, height in pixels, then a
   score a class. Choosing among boxes (NMS) is left to the caller, as in the usual exports. */
#include "zoo/nets.h"

enum { BINS = 16, HEADS = 3 };

/* One row a layer; each reads the one above. */
static const struct {
    enum { CONV /* 3x3, stride 2 */, CROSS, POOLS, UP, JOIN /* with layer `n` */, HEAD } kind;
    int out, n; /* n: CROSS: blocks; JOIN: the layer */
    bool adds;
} rows[] = {
    {CONV, 16, 0, false},   {CONV, 32, 0, false},   {CROSS, 32, 1, true},  {CONV, 64, 0, false},
    {CROSS, 64, 2, true},   {CONV, 128, 0, false},  {CROSS, 128, 2, true}, {CONV, 256, 0, false},
    {CROSS, 256, 1, true},  {POOLS, 256, 0, false}, {UP, 0, 0, false},     {JOIN, 0, 6, false},
    {CROSS, 128, 1, false}, {UP, 0, 0, false},      {JOIN, 0, 4, false},   {CROSS, 64, 1, false},
    {HEAD, 0, 0, false},    {CONV, 64, 0, false},   {JOIN, 0, 12, false},  {CROSS, 128, 1, false},
    {HEAD, 0, 0, false},    {CONV, 128, 0, false},  {JOIN, 0, 9, false},   {CROSS, 256, 1, false},
    {HEAD, 0, 0, false},
};
enum { ROWS = sizeof rows / sizeof *rows };

static hone_vid conv(hone_zoo *z, const char *name, hone_vid x, int out, int k, int stride) {
    return HONE_ZOO_CONV(z, name, x, .out = out, .k = k, .stride = stride, .act = "Silu", .gain = 1.12);
}

/* Half of the channels go through `n` blocks one after another, and everything on the way is joined. */
static hone_vid cross(hone_zoo *z, hone_vid x, int out, int n, bool adds) {
    hone_vid part[8], halves = hone_zoo_ints(z, (const int64_t[]){out / 2, out / 2}, 2);
    x = conv(z, "cv1", x, out, 1, 1);
    part[0] = hone_zoo_op_many(z, "Split", HONE_ZOO_IN(x, halves), 2, "axis=1");
    part[1] = part[0] + 1;
    for (int k = 0; k < n; k++) {
        hone_zoo_enter(z, "m.%d", k);
        hone_vid y = conv(z, "cv1", part[k + 1], out / 2, 3, 1);
        y = conv(z, "cv2", y, out / 2, 3, 1);
        part[k + 2] = adds ? hone_zoo_add(z, part[k + 1], y) : y;
        hone_zoo_leave(z);
    }
    return conv(z, "cv2", hone_zoo_cat(z, part, n + 2, 1), out, 1, 1);
}

static hone_vid pools(hone_zoo *z, hone_vid x, int out) {
    hone_vid part[4] = {conv(z, "cv1", x, out / 2, 1, 1)};
    for (int k = 0; k < 3; k++) part[k + 1] = hone_zoo_max_pool(z, part[k], 5, 1, 2, false);
    return conv(z, "cv2", hone_zoo_cat(z, part, 4, 1), out, 1, 1);
}

static hone_vid up(hone_zoo *z, hone_vid x) {
    hone_vid twice = -1;
    hone_value *v;
    const int64_t two = 2;
    if (!z->status && !(z->status = hone_value_tensor(HONE_DTYPE_F32, &two, 1, &v))) {
        ((float *)v->data)[0] = ((float *)v->data)[1] = 2;
        twice = hone_zoo_const(z, "Constant_output_0", v);
    }
    return hone_zoo_op_with(
        z, "Resize", HONE_ZOO_IN(x, -1, twice),
        "axes=2,3 coordinate_transformation_mode=asymmetric mode=nearest nearest_mode=floor");
}

/* Distances in bins and classes, [N, 4 * BINS + classes, places]. */
static hone_vid head(hone_zoo *z, hone_vid x, int at, int classes) {
    static const int box = 4 * BINS;
    int wide = classes < 64 ? 64 : classes < 100 ? classes : 100;
    hone_zoo_enter(z, "detect.%d", at);
    hone_vid a = conv(z, "box.0", x, box, 3, 1), c = conv(z, "class.0", x, wide, 3, 1);
    a = conv(z, "box.1", a, box, 3, 1), c = conv(z, "class.1", c, wide, 3, 1);
    a = HONE_ZOO_CONV(z, "box.2", a, .out = box, .k = 1, .plain = true);
    c = HONE_ZOO_CONV(z, "class.2", c, .out = classes, .k = 1, .plain = true);
    hone_vid both = hone_zoo_cat(z, HONE_ZOO_IN(a, c), 1);
    both = hone_zoo_reshape(z, both, both, HONE_ZOO_DIMS(hone_zoo_dim(z, both, 0), box + classes, -1));
    hone_zoo_leave(z);
    return both;
}

/* The middle of each place, in places, [1, 2, n]; and how many pixels a place is, [1, n]. */
static void places(hone_zoo *z, hone_vid *middle, hone_vid *pixels) {
    static const int each[HEADS] = {8, 16, 32};
    int64_t side = hone_zoo_option(z, HONE_ZOO_IMAGE), n = 0, at = 0;
    for (int k = 0; k < HEADS; k++) n += side / each[k] * (side / each[k]);
    hone_value *m = NULL, *p = NULL;
    if (!z->status) z->status = hone_value_tensor(HONE_DTYPE_F32, (const int64_t[]){1, 2, n}, 3, &m);
    if (!z->status) z->status = hone_value_tensor(HONE_DTYPE_F32, (const int64_t[]){1, n}, 2, &p);
    if (z->status) {
        hone_value_drop(m);
        return;
    }
    for (int k = 0; k < HEADS; k++)
        for (int64_t y = 0; y < side / each[k]; y++)
            for (int64_t x = 0; x < side / each[k]; x++, at++) {
                ((float *)m->data)[at] = (float)x + 0.5f;
                ((float *)m->data)[n + at] = (float)y + 0.5f;
                ((float *)p->data)[at] = (float)each[k];
            }
    *middle = hone_zoo_const(z, "anchors", m);
    *pixels = hone_zoo_const(z, "strides", p);
}

/* The expected distance over its bins: a softmax and a convolution with 0, 1, 2, … */
static hone_vid expect(hone_zoo *z, hone_vid x) {
    hone_dim n = hone_zoo_dim(z, x, 0), all = hone_zoo_dim(z, x, 2);
    const int64_t dim[] = {1, BINS, 1, 1};
    hone_value *v;
    hone_vid w = -1;
    hone_zoo_enter(z, "dfl");
    hone_vid y = hone_zoo_reshape(z, x, x, HONE_ZOO_DIMS(n, 4, BINS, all));
    y = hone_zoo_op_with(z, "Softmax", HONE_ZOO_IN(hone_zoo_transpose(z, y, "0,2,1,3")), "axis=1");
    if (!z->status && !(z->status = hone_value_tensor(HONE_DTYPE_F32, dim, 4, &v))) {
        for (int k = 0; k < BINS; k++) ((float *)v->data)[k] = (float)k;
        w = hone_zoo_const(z, "weight", v);
        z->parameters += BINS;
    }
    y = hone_zoo_op_with(z, "Conv", HONE_ZOO_IN(y, w),
                         "dilations=1,1 group=1 kernel_shape=1,1 pads=0,0,0,0 strides=1,1");
    y = hone_zoo_reshape(z, y, x, HONE_ZOO_DIMS(n, 4, all));
    hone_zoo_leave(z);
    return y;
}

static void decode(hone_zoo *z, const hone_vid *level, int classes) {
    hone_vid middle = -1, pixels = -1, x = hone_zoo_cat(z, level, HEADS, 2);
    hone_vid parts = hone_zoo_ints(z, (const int64_t[]){4 * BINS, classes}, 2);
    hone_vid box = hone_zoo_op_many(z, "Split", HONE_ZOO_IN(x, parts), 2, "axis=1"), score = box + 1;
    places(z, &middle, &pixels);
    box = expect(z, box);
    hone_vid low = hone_zoo_slice(z, box, 1, 0, 2), high = hone_zoo_slice(z, box, 1, 2, 4);
    low = hone_zoo_op(z, "Sub", HONE_ZOO_IN(middle, low)), high = hone_zoo_add(z, middle, high);
    hone_vid center = hone_zoo_add(z, low, high), size = hone_zoo_op(z, "Sub", HONE_ZOO_IN(high, low));
    center = hone_zoo_op(z, "Div", HONE_ZOO_IN(center, hone_zoo_float(z, 2)));
    box = hone_zoo_mul(z, hone_zoo_cat(z, HONE_ZOO_IN(center, size), 1), pixels);
    score = hone_zoo_op(z, "Sigmoid", HONE_ZOO_IN(score));
    hone_zoo_name(z, "boxes");
    hone_zoo_output(z, hone_zoo_cat(z, HONE_ZOO_IN(box, score), 1));
}

void hone_zoo_yolo(hone_zoo *z, const void *plan) {
    int classes = (int)hone_zoo_option(z, HONE_ZOO_CLASSES), layer = 0, heads = 0;
    hone_vid x = hone_zoo_image(z, 3), made[ROWS], level[HEADS];
    for (int k = 0; k < ROWS; k++) {
        if (rows[k].kind == HEAD) { /* beside the chain: it has no number */
            level[heads] = head(z, x, heads, classes);
            heads++;
            continue;
        }
        hone_zoo_enter(z, "model.%d", layer);
        switch (rows[k].kind) {
        case CONV: x = conv(z, "conv", x, rows[k].out, 3, 2); break;
        case CROSS: x = cross(z, x, rows[k].out, rows[k].n, rows[k].adds); break;
        case POOLS: x = pools(z, x, rows[k].out); break;
        case UP: x = up(z, x); break;
        default: x = hone_zoo_cat(z, HONE_ZOO_IN(x, made[rows[k].n]), 1); break;
        }
        made[layer++] = x;
        hone_zoo_leave(z);
    }
    hone_zoo_enter(z, "detect");
    decode(z, level, classes);
    hone_zoo_leave(z);
}
