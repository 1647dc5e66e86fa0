/* SPDX-License-Identifier: Apache-2.0
   nms: NonMaxSuppression. Scores of each image and class are sorted; a work-group walks one such row: the
   best that is left is kept, and takes out what overlaps it too much. Then rows are put behind one another.
   Thresholds must be known when a plan is made. */
#include "device/functions/functions.h"

#include <math.h>

enum { MOST_SORTED = 1 << 26 /* pairs */ };
static bool number_of(const hone_function_call *c, int k, double otherwise, double *out) {
    *out = otherwise;
    if (k >= c->of->n_in || c->of->in[k] < 0) return true;
    const hone_fact *f = c->in + k;
    if (f->contents && f->n_content == 1 && hone_dim_is_number(f->contents[0])) *out = (double)f->contents[0];
    else if (f->value && hone_value_count(f->value) == 1)
        *out = k == 2 ? (double)hone_value_i64(f->value, 0) : hone_value_f64(f->value, 0);
    else return false;
    return true;
}
typedef struct {
    int64_t batches, classes, n, most;
    double limit, least;
} shape;
static bool shape_of(const hone_function_call *c, shape *s) {
    const hone_fact *boxes = c->in, *scores = c->in + 1;
    double most;
    if (c->of->n_in < 2 || !hone_fact_shaped(boxes) || !hone_fact_shaped(scores) ||
        boxes->dtype != HONE_DTYPE_F32 || scores->dtype != HONE_DTYPE_F32 || boxes->rank != 3 ||
        boxes->dim[2] != 4 || scores->rank != 3 || scores->dim[0] != boxes->dim[0] ||
        scores->dim[2] != boxes->dim[1])
        return false;
    if (!number_of(c, 2, 0, &most) || !number_of(c, 3, 0, &s->limit) ||
        !number_of(c, 4, -INFINITY, &s->least))
        return false;
    s->batches = boxes->dim[0], s->classes = scores->dim[1], s->n = boxes->dim[1];
    s->most = most >= (double)s->n ? s->n : most >= 1 ? (int64_t)most : 0;
    return s->limit >= 0 && s->limit <= 1 && s->most > 0 && s->batches > 0 && s->classes > 0 && s->n > 0 &&
           s->n < MOST_SORTED && s->batches < MOST_SORTED && s->classes < MOST_SORTED &&
           s->batches * s->classes <= MOST_SORTED / hone_fn_power(s->n);
}
static bool takes(hone_function_call *c) {
    shape s;
    if (!shape_of(c, &s)) return false;
    c->out[0] = (hone_fact){.dtype = HONE_DTYPE_I64, .rank = 2, .dim = {s.batches * s.classes * s.most, 3}};
    c->counted[0] = 0;
    return true;
}

static const char filling[] =
    "        const int64_t row = at / m, p = at - row * m;\n"
    "        const float v = p < n ? score[row * n + p] : 0.0f;\n"
    "        const int taken = p < n && (v > least || (all != 0 && v == least));\n"
    "        keys[at] = taken ? hone_key_f32((uint64_t)bits[p < n ? row * n + p : 0]) : 0;\n"
    "        places[at] = taken ? (uint32_t)p : 0xffffffffu;\n";
/* Boxes as the host makes them; MIN and MAX are the language's. */
static const char boxes_text[] =
    "#ifndef HONE_NMS_BOX\n#define HONE_NMS_BOX\n"
    "typedef struct { float y0, x0, y1, x1, area; } hone_nms_box;\n"
    "HONE_INLINE hone_nms_box hone_nms_make(float a, float b, float c, float d, int center) {\n"
    "    hone_nms_box v;\n"
    "    if (center) {\n        const float w = c / 2, h = d / 2;\n        v.y0 = b - h, v.x0 = a - w, v.y1 "
    "= b + h, v.x1 = a + w;\n"
    "    } else v.y0 = MIN(a, c), v.x0 = MIN(b, d), v.y1 = MAX(a, c), v.x1 = MAX(b, d);\n"
    "    v.area = (v.y1 - v.y0) * (v.x1 - v.x0);\n    return v;\n}\n"
    "HONE_INLINE int hone_nms_overlap(hone_nms_box a, hone_nms_box b, float limit) {\n"
    "    const float h = MIN(a.y1, b.y1) - MAX(a.y0, b.y0), w = MIN(a.x1, b.x1) - MAX(a.x0, b.x0);\n"
    "    if (!(h > 0) || !(w > 0) || !(a.area > 0) || !(b.area > 0)) return 0;\n"
    "    const float both = h * w;\n    return both / (a.area + b.area - both) > limit;\n}\n#endif\n";
/* A place that was taken out has its highest bit set; so have those behind the last. */
static const char walking[] =
    "    HONE_SHARED uint32_t found[256];\n"
    "    const int64_t row = (int64_t)HONE_GROUP;\n    const int64_t image = row / classes * n;\n"
    "    HONE_GLOBAL uint32_t *const place = places + row * m;\n"
    "    int64_t from = 0, have = 0;\n"
    "    while (from < n && have < most) {\n" /* the same for all threads */
    "        uint32_t best = 0xffffffffu;\n"
    "        for (; from < n && best == 0xffffffffu; from += best == 0xffffffffu ? 256 : 0) {\n"
    "            const int64_t p = from + HONE_THREAD;\n"
    "            found[HONE_THREAD] = p < n && (place[p] >> 31) == 0 ? (uint32_t)p : 0xffffffffu;\n          "
    "  HONE_BARRIER();\n"
    "            for (uint32_t by = 128; by > 0; by /= 2) {\n"
    "                if (HONE_THREAD < by && found[HONE_THREAD + by] < found[HONE_THREAD]) "
    "found[HONE_THREAD] = found[HONE_THREAD + by];\n"
    "                HONE_BARRIER();\n            }\n"
    "            best = found[0];\n            HONE_BARRIER();\n        }\n"
    "        if (best != 0xffffffffu) {\n"
    "            const uint32_t mine = place[best];\n"
    "            HONE_GLOBAL const float *const a = box + (image + mine) * 4;\n"
    "            const hone_nms_box one = hone_nms_make(a[0], a[1], a[2], a[3], center != 0);\n"
    "            for (int64_t p = (int64_t)best + 1 + HONE_THREAD; p < n; p += 256)\n"
    "                if ((place[p] >> 31) == 0) {\n"
    "                    HONE_GLOBAL const float *const b = box + (image + place[p]) * 4;\n"
    "                    if (hone_nms_overlap(hone_nms_make(b[0], b[1], b[2], b[3], center != 0), one, "
    "limit)) place[p] |= 0x80000000u;\n"
    "                }\n"
    "            if (HONE_THREAD == 0) kept[row * most + have] = mine;\n"
    "            have++, from = (int64_t)best + 1;\n        }\n"
    "        HONE_BARRIER();\n    }\n"
    "    if (HONE_THREAD == 0) number[row] = have;\n";
static const char writing[] =
    "        const int64_t row = at / most, p = at - row * most, begin = number[row];\n"
    "        if (p < (row + 1 < rows ? number[row + 1] : count[0]) - begin) {\n"
    "            y[(begin + p) * 3] = row / classes;\n            y[(begin + p) * 3 + 1] = row % classes;\n"
    "            y[(begin + p) * 3 + 2] = kept[at];\n        }\n";
static void make(hone_function *f) {
    shape s;
    if (!shape_of(f->call, &s)) {
        f->failed = true;
        return;
    }
    const int64_t rows = s.batches * s.classes, m = hone_fn_power(s.n);
    const int keys = hone_fn_scratch(f, rows * m * 8), places = hone_fn_scratch(f, rows * m * 4),
              kept = hone_fn_scratch(f, rows * s.most * 4), number = hone_fn_scratch(f, rows * 8);
    const bool center = hone_attr_int(f->call->of->attr, f->call->of->n_attr, "center_point_box", 0) != 0;
    const char *end = f->target->lang == HONE_LANG_OPENCL ? "" : "f";
    const char *boxes = hone_arena_text(
        f->arena, "#define MIN fmin%s\n#define MAX fmax%s\n%s#undef MIN\n#undef MAX\n", end, end, boxes_text);
    const hone_function_arg sorted = HONE_FN_SCRATCH("uint32_t", "places", places),
                            n = HONE_FN_NUMBER("n", s.n), width = HONE_FN_NUMBER("m", m),
                            most = HONE_FN_NUMBER("most", s.most),
                            classes = HONE_FN_NUMBER("classes", s.classes),
                            list = HONE_FN_SCRATCH("uint32_t", "kept", kept),
                            numbers = HONE_FN_SCRATCH("int64_t", "number", number);
    const hone_function_arg fill[] = {HONE_FN_READ("float", "score", 1),
                                      HONE_FN_READ("uint32_t", "bits", 1),
                                      HONE_FN_SCRATCH("uint64_t", "keys", keys),
                                      sorted,
                                      n,
                                      width,
                                      HONE_FN_FLOAT("least", s.least),
                                      HONE_FN_NUMBER("all", s.least == -INFINITY)};
    const hone_function_arg walk[] = {HONE_FN_READ("float", "box", 0),
                                      sorted,
                                      list,
                                      numbers,
                                      n,
                                      width,
                                      most,
                                      classes,
                                      HONE_FN_FLOAT("limit", s.limit),
                                      HONE_FN_NUMBER("center", center)};
    const hone_function_arg write[] = {HONE_FN_WRITE("int64_t", "y", hone_fn_out(f, 0)),
                                       HONE_FN_READ("int64_t", "count", hone_fn_count(f)),
                                       list,
                                       numbers,
                                       most,
                                       classes,
                                       HONE_FN_NUMBER("rows", rows)};
    if (!boxes) {
        f->failed = true;
        return;
    }
    hone_fn_each(f, rows * m, hone_fn_key(f, HONE_DTYPE_F32), filling, fill, 8);
    hone_fn_sort(f, keys, places, rows, m);
    hone_fn_launch(f, rows, HONE_FN_THREADS, boxes, walking, walk, 10);
    hone_fn_running_sums(f, number, rows);
    hone_fn_each(f, rows * s.most, "", writing, write, 7);
}
const hone_function_row hone_function_nms = {"nms", takes, make};
