/* SPDX-License-Identifier: Apache-2.0
   nms: NonMaxSuppression: boxes in falling order of score, each kept unless it overlaps a kept one too
   much. */
#include <math.h>

#include "host/order.h"

typedef struct {
    float y0, x0, y1, x1, area;
} box;

static box make_box(const float *v, bool center) {
    box b;
    if (center) { /* x, y of the middle, width, height */
        float w = v[2] / 2, h = v[3] / 2;
        b = (box){v[1] - h, v[0] - w, v[1] + h, v[0] + w, 0};
    } else /* any two corners */
        b = (box){fminf(v[0], v[2]), fminf(v[1], v[3]), fmaxf(v[0], v[2]), fmaxf(v[1], v[3]), 0};
    b.area = (b.y1 - b.y0) * (b.x1 - b.x0);
    return b;
}

static bool overlap(const box *a, const box *b, float limit) {
    float h = fminf(a->y1, b->y1) - fmaxf(a->y0, b->y0), w = fminf(a->x1, b->x1) - fmaxf(a->x0, b->x0);
    if (!(h > 0) || !(w > 0) || !(a->area > 0) || !(b->area > 0)) return false;
    float both = h * w;
    return both / (a->area + b->area - both) > limit;
}

static int by_score(const void *with, int64_t a, int64_t b) {
    const float *s = with;
    return (s[a] < s[b]) - (s[a] > s[b]);
}

typedef struct {
    int64_t batch, class, box;
} chosen;
typedef hone_vec(chosen) choice;

/* One class of one image. at, kept: room for n. */
static hone_status suppress(const hone_host_call *c, const box *boxes, const float *score, int64_t n,
                            int64_t most, float limit, double least, chosen name, int64_t *at, int64_t *kept,
                            choice *out) {
    int64_t m = 0, k_kept = 0;
    /* NaN is no score */
    for (int64_t k = 0; k < n; k++)
        if ((double)score[k] > least || (least == -INFINITY && score[k] == -INFINITY)) at[m++] = k;
    if (!hone_order_sort(at, m, by_score, score)) return hone_call_no_memory(c);
    for (int64_t k = 0; k < m && k_kept < most; k++) {
        bool keep = true;
        for (int64_t j = 0; j < k_kept && keep; j++) keep = !overlap(boxes + at[k], boxes + kept[j], limit);
        if (!keep) continue;
        kept[k_kept++] = name.box = at[k];
        if (out->n == INT32_MAX || !hone_push(out, name)) return hone_call_no_memory(c);
    }
    return HONE_OK;
}

hone_status hone_host_nms(const hone_host_call *c) {
    const hone_value *boxes, *scores;
    int64_t most;
    double limit, least;
    HONE_TRY(hone_call_typed(c, 0, HONE_DTYPE_F32, &boxes));
    HONE_TRY(hone_call_typed(c, 1, HONE_DTYPE_F32, &scores));
    HONE_TRY(hone_call_i64(c, 2, 0, &most));
    HONE_TRY(hone_call_f64(c, 3, 0, &limit));
    HONE_TRY(hone_call_f64(c, 4, -INFINITY, &least));
    if (boxes->rank != 3 || boxes->dim[2] != 4)
        return hone_call_fail(c, HONE_BAD_INPUT, "boxes must have shape [batches, boxes, 4]");
    if (scores->rank != 3 || scores->dim[0] != boxes->dim[0] || scores->dim[2] != boxes->dim[1])
        return hone_call_fail(c, HONE_BAD_INPUT, "scores must have shape [%lld, classes, %lld], to fit boxes",
                              (long long)boxes->dim[0], (long long)boxes->dim[1]);
    if (!(limit >= 0 && limit <= 1))
        return hone_call_fail(c, HONE_BAD_INPUT, "iou_threshold is %g; it must lie in [0, 1]", limit);
    int64_t n = boxes->dim[1], classes = scores->dim[1],
            batches = hone_value_count(scores) ? boxes->dim[0] : 0;
    bool center = hone_call_int(c, "center_point_box", 0) != 0;
    choice found = {0};
    size_t bytes;
    if (!hone_mul_size((size_t)n, sizeof(box) + 2 * sizeof(int64_t), &bytes)) return hone_call_no_memory(c);
    int64_t *at = hone_alloc(bytes);
    hone_status s = at ? HONE_OK : hone_call_no_memory(c);
    box *room = at ? (box *)(void *)(at + 2 * n) : NULL;
    for (int64_t b = 0; b < batches && !s && most > 0; b++) {
        for (int64_t k = 0; k < n; k++)
            room[k] = make_box((const float *)boxes->data + (b * n + k) * 4, center);
        for (int64_t k = 0; k < classes && !s; k++)
            s = suppress(c, room, (const float *)scores->data + (b * classes + k) * n, n, most, (float)limit,
                         least, (chosen){b, k, 0}, at, at + n, &found);
    }
    hone_value *y;
    if (!s) s = hone_host_out(c, 0, HONE_DTYPE_I64, (int64_t[]){found.n, 3}, 2, &y);
    for (int k = 0; k < found.n && !s; k++)
        memcpy((int64_t *)y->data + 3 * k, (int64_t[]){found.at[k].batch, found.at[k].class, found.at[k].box},
               3 * sizeof(int64_t));
    hone_vec_free(&found);
    hone_free(at);
    return s;
}
