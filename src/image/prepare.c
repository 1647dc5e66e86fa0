/* SPDX-License-Identifier: Apache-2.0
   prepare: pictures → the tensor a model wants, by a recipe; and the recipe that a declared shape
   suggests. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/value.h"
#include "image/image.h"
#include "image/resize.h"

enum {
    FILL = 114 /* the gray beside a picture that does not fill its place; what detectors are trained with */
};

/* ---- recipes ---- */

typedef struct {
    const char *name;
    float range, mean[3], std[3];
} norm;
static const norm norms[] = {{"imagenet", 1, {0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}},
                             {"0-1", 1, {0, 0, 0}, {1, 1, 1}},
                             {"-1-1", 1, {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}},
                             {"none", 255, {0, 0, 0}, {1, 1, 1}}};

int hone_image_recipe_name(hone_image_recipe *r, const char *name) {
    for (size_t k = 0; r && name && k < sizeof norms / sizeof *norms; k++) {
        if (strcmp(norms[k].name, name)) continue;
        r->range = norms[k].range;
        memcpy(r->mean, norms[k].mean, sizeof r->mean);
        memcpy(r->std, norms[k].std, sizeof r->std);
        return 1;
    }
    return 0;
}

static bool takes_pixels(hone_dtype t) {
    return t == HONE_DTYPE_U8 ||
           (hone_dtype_valid(t) && hone_dtypes[t].kind == HONE_KIND_FLOAT && hone_dtypes[t].bits >= 16);
}

hone_status hone_image_recipe_for(const hone_port *port, hone_image_recipe *out) {
    if (!port || !out)
        return hone_fail(HONE_BAD_INPUT, "hone_image_recipe_for: port and out must not be NULL");
    if (port->kind != HONE_VALUE_TENSOR || (port->rank != 3 && port->rank != 4))
        return hone_fail(HONE_BAD_INPUT,
                         "input '%s' is %s: a picture needs 3 or 4 dims, as f32[1, 3, 224, 224]", port->name,
                         port->shape);
    if (!takes_pixels(port->dtype))
        return hone_fail(HONE_BAD_INPUT, "input '%s' is %s: a picture is made as f16, f32, f64 or u8 only",
                         port->name, port->shape);
    hone_image_recipe r = {.dtype = port->dtype, .batch = port->rank == 4};
    const int64_t *d = port->dims + r.batch;
    bool first = d[0] == 1 || d[0] == 3, last = d[2] == 1 || d[2] == 3;
    r.last = last && (!first || (d[0] == 1 && d[2] == 3)); /* where both could be: channels in front */
    if (!first && !last && d[0] > 0 && d[2] > 0)
        return hone_fail(HONE_BAD_INPUT, "input '%s' is %s: no dim of it is 1 or 3 channels", port->name,
                         port->shape);
    int64_t channels = d[r.last ? 2 : 0], height = d[r.last ? 0 : 1], width = d[r.last ? 1 : 2];
    /* H x W x free */
    if (!first && !last && d[0] > 0) r.last = 1, height = d[0], width = d[1], channels = -1;
    if (height > HONE_IMAGE_SIDE || width > HONE_IMAGE_SIDE) HONE_TRY(hone_pixels_allowed(width, height));
    r.height = height > 0 ? (int)height : 0;
    r.width = width > 0 ? (int)width : 0;
    r.order = channels == 1 ? HONE_IMAGE_GRAY : HONE_IMAGE_RGB;
    hone_image_recipe_name(&r, r.dtype == HONE_DTYPE_U8 ? "none" : channels == 1 ? "0-1" : "imagenet");
    *out = r;
    return HONE_OK;
}

/* ---- in words ---- */

typedef struct {
    char *at;
    size_t left;
} words;
static void say(words *w, const char *format, ...) HONE_PRINTF(2, 3);
static void say(words *w, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(w->at, w->left, format, ap);
    va_end(ap);
    if (n < 0) return;
    size_t used = (size_t)n < w->left ? (size_t)n : w->left - 1;
    w->at += used, w->left -= used;
}

static void say_three(words *w, const char *what, const float v[3], int channels) {
    say(w, ", %s %g", what, (double)v[0]);
    if (channels == 3 && (v[1] != v[0] || v[2] != v[0])) say(w, " %g %g", (double)v[1], (double)v[2]);
}

void hone_image_recipe_text(const hone_image_recipe *r, char *out, size_t room) {
    static const char *const orders[] = {"RGB", "BGR", "luma"};
    words w = {out, room};
    if (!r || !out || !room) return;
    out[0] = 0;
    bool sized = r->width > 0 && r->height > 0;
    if (r->fit == HONE_IMAGE_COVER && r->shorter) say(&w, "shorter side to %d, ", r->shorter);
    if (r->fit == HONE_IMAGE_COVER && sized)
        say(&w, "%scentre %dx%d", r->shorter ? "" : "resized to cover, ", r->width, r->height);
    else if (sized)
        say(&w, "%s %dx%d", r->fit == HONE_IMAGE_PAD ? "padded to" : "stretched to", r->width, r->height);
    else if (!r->shorter) say(&w, "its own size");
    else say(&w, "no crop");
    say(&w, ", %s", orders[r->order]);
    if (r->dtype != HONE_DTYPE_U8) {
        int channels = r->order == HONE_IMAGE_GRAY ? 1 : 3;
        bool plain = true;
        for (int c = 0; c < channels; c++) plain &= r->mean[c] == 0 && r->std[c] == 1;
        say(&w, ", 0 to %g", (double)r->range);
        if (!plain) say_three(&w, "mean", r->mean, channels), say_three(&w, "std", r->std, channels);
    }
    say(&w, ", %s%s", r->batch ? "N" : "", r->last ? "HWC" : "CHW");
}

/* ---- doing ---- */

typedef struct {
    int width, height; /* after resizing */
    int x, y;          /* where the result begins in it; below zero: where it begins in the result */
} placing;

static int half_even(int difference) { /* half of it; a half rounds to the even number */
    int h = difference / 2, odd = difference % 2;
    return odd && (h & 1) ? h + (difference > 0 ? 1 : -1) : h;
}

static int scaled(int a, int b, int c) { /* a * b / c, cut off; at least 1 */
    double v = (double)a * b / c;
    return v < 1 ? 1 : v > HONE_IMAGE_SIDE ? HONE_IMAGE_SIDE + 1 : (int)v;
}

static hone_status place(const hone_image_recipe *r, int w, int h, int width, int height, placing *p) {
    *p = (placing){w, h, 0, 0};
    if (r->fit == HONE_IMAGE_COVER && r->shorter) {
        if (w <= h) p->width = r->shorter, p->height = scaled(r->shorter, h, w);
        else p->height = r->shorter, p->width = scaled(r->shorter, w, h);
        if (width && (p->width < width || p->height < height))
            return hone_fail(HONE_BAD_INPUT,
                             "a picture of %dx%d with its shorter side brought to %d is smaller than %dx%d; "
                             "resize it to more",
                             w, h, r->shorter, width, height);
    } else if (width && r->fit == HONE_IMAGE_STRETCH) {
        p->width = width, p->height = height;
    } else if (width) { /* one side fits; the other stands out, or leaves a gap */
        bool by_width = (int64_t)width * h >= (int64_t)height * w;
        if (r->fit == HONE_IMAGE_PAD) by_width = !by_width;
        p->width = by_width ? width : scaled(height, w, h);
        p->height = by_width ? scaled(width, h, w) : height;
        if (r->fit == HONE_IMAGE_COVER) { /* whatever a rounding did */
            if (p->width < width) p->width = width;
            if (p->height < height) p->height = height;
        } else {
            if (p->width > width) p->width = width;
            if (p->height > height) p->height = height;
        }
    }
    if (width) p->x = half_even(p->width - width), p->y = half_even(p->height - height);
    return hone_pixels_allowed(p->width, p->height);
}

/* What a channel's 256 values become, as elements of the result. */
static void make_table(const hone_image_recipe *r, int c, uint8_t table[256][8]) {
    for (int k = 0; k < 256; k++) {
        float v = r->range == 255 ? (float)k : (float)k / 255.0f * r->range;
        if (r->dtype == HONE_DTYPE_U8) table[k][0] = (uint8_t)k;
        else
            hone_dtype_store(r->dtype, table[k], HONE_F32, (hone_scalar){.f32 = (v - r->mean[c]) / r->std[c]},
                             false);
    }
}

/* The pixels of one picture, resized, of which `part` was made, into its part of the tensor. */
static void put(const hone_image_recipe *r, const uint8_t *pixel, const placing *p, const hone_box *part,
                int channels, int width, int height, uint8_t *to) {
    uint8_t table[256][8];
    size_t bytes = hone_dtypes[r->dtype].bytes, plane = (size_t)width * (size_t)height;
    for (int c = 0; c < channels; c++) {
        int from = r->order == HONE_IMAGE_BGR ? 2 - c : c;
        uint8_t *at = to + bytes * (r->last ? (size_t)c : plane * (size_t)c);
        size_t step = bytes * (r->last ? (size_t)channels : 1);
        make_table(r, c, table);
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++, at += step) {
                int sx = x + p->x - part->x, sy = y + p->y - part->y;
                bool inside = sx >= 0 && sy >= 0 && sx < part->width && sy < part->height;
                int v = inside ? pixel[((size_t)sy * (size_t)part->width + (size_t)sx) * (size_t)channels +
                                       (size_t)from]
                               : FILL;
                memcpy(at, table[v], bytes);
            }
    }
}

static hone_status one(const hone_image_recipe *r, const hone_value *v, int width, int height, uint8_t *to) {
    int channels = r->order == HONE_IMAGE_GRAY ? 1 : 3, w = (int)v->dim[1], h = (int)v->dim[0];
    const hone_pixels source = {w, h, (int)v->dim[2], v->data};
    placing p;
    HONE_TRY(place(r, w, h, width, height, &p));
    hone_box part = {p.x > 0 ? p.x : 0, p.y > 0 ? p.y : 0, 0, 0}; /* of the resized picture: what is seen */
    part.width = p.width - part.x < width ? p.width - part.x : width,
    part.height = p.height - part.y < height ? p.height - part.y : height;
    uint8_t *plain = hone_alloc_raw((size_t)w * (size_t)h * (size_t)channels);
    uint8_t *sized = hone_alloc_raw((size_t)part.width * (size_t)part.height * (size_t)channels);
    hone_status s = plain && sized
                        ? HONE_OK
                        : hone_fail(HONE_NO_MEMORY, "no memory for a picture of %d x %d", p.width, p.height);
    if (!s) {
        hone_pixels_convert(&source, channels == 1 ? HONE_IMAGE_GRAY : HONE_IMAGE_RGB, plain);
        s = hone_resize(plain, w, h, channels, p.width, p.height, &part, sized);
    }
    if (!s) put(r, sized, &p, &part, channels, width, height, to);
    hone_free(plain);
    hone_free(sized);
    return s;
}

static hone_status check(hone_value *const *pictures, int n, const hone_image_recipe *r) {
    if (!r->batch && n != 1)
        return hone_fail(HONE_BAD_INPUT, "a tensor without a batch holds one picture, not %d", n);
    if (!takes_pixels(r->dtype))
        return hone_fail(HONE_BAD_INPUT, "a picture is made as f16, f32, f64 or u8 only");
    if (r->order < HONE_IMAGE_RGB || r->order > HONE_IMAGE_GRAY || r->fit < HONE_IMAGE_COVER ||
        r->fit > HONE_IMAGE_PAD || r->width < 0 || r->height < 0 || r->shorter < 0 ||
        r->shorter > HONE_IMAGE_SIDE || !r->width != !r->height)
        return hone_fail(HONE_BAD_INPUT,
                         "a recipe must have an order and a fit of the enums, and width and height together");
    for (int c = 0; c < 3; c++)
        if (!isfinite(r->mean[c]) || !isfinite(r->std[c]) || r->std[c] == 0 || !isfinite(r->range))
            return hone_fail(HONE_BAD_INPUT, "mean, std and range must be numbers, std not 0");
    for (int k = 0; k < n; k++) {
        const hone_value *v = pictures[k];
        if (!v || v->tag != HONE_TAG_TENSOR || v->dtype != HONE_DTYPE_U8 || v->rank != 3 ||
            (v->dim[2] != 1 && v->dim[2] != 3))
            return hone_fail(HONE_BAD_INPUT,
                             "picture %d must be u8[height, width, 3] or u8[height, width, 1]", k);
        HONE_TRY(hone_pixels_allowed(v->dim[1], v->dim[0]));
    }
    return HONE_OK;
}

hone_status hone_image_prepare(hone_value *const *pictures, int n, const hone_image_recipe *r,
                               hone_value **out) {
    if (!pictures || n < 1 || !r || !out)
        return hone_fail(HONE_BAD_INPUT, "hone_image_prepare: pictures, recipe and out must not be NULL");
    HONE_TRY(check(pictures, n, r));
    int width = r->width, height = r->height, channels = r->order == HONE_IMAGE_GRAY ? 1 : 3;
    if (!width) { /* the first picture's own */
        placing p;
        HONE_TRY(place(r, (int)pictures[0]->dim[1], (int)pictures[0]->dim[0], 0, 0, &p));
        width = p.width, height = p.height;
    }
    HONE_TRY(hone_pixels_allowed(width, height));
    int64_t dims[4] = {n, r->last ? height : channels, r->last ? width : height, r->last ? channels : width};
    hone_value *made = NULL;
    HONE_TRY(hone_value_tensor(r->dtype, dims + !r->batch, 3 + !!r->batch, &made));
    hone_status s = HONE_OK;
    for (int k = 0; k < n && !s; k++)
        s = one(r, pictures[k], width, height, (uint8_t *)made->data + made->bytes / (size_t)n * (size_t)k);
    if (s) hone_value_drop(made);
    else *out = made;
    return s;
}
