/* SPDX-License-Identifier: Apache-2.0
   picture: options → a recipe, files → a tensor. The work is hone/image.h's. */
#include "picture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hone/image.h"

bool hone_picture_wished(const hone_picture_wish *w) {
    return w && (w->resize || w->crop || w->mean || w->std || w->order);
}

const char *hone_picture_format(const char *path) {
    char head[16];
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    size_t n = fread(head, 1, sizeof head, f);
    fclose(f);
    return hone_image_format(head, n);
}

/* ---- options ---- */

/* "224" is 224 both ways, "320x240" width by height. */
static bool read_size(const char *text, int *width, int *height) {
    char *end;
    long w = strtol(text, &end, 10), h = w;
    if (end == text || w < 1 || w > 1 << 20) return false;
    if (*end == 'x') {
        const char *rest = end + 1;
        h = strtol(rest, &end, 10);
        if (end == rest || h < 1 || h > 1 << 20) return false;
    }
    *width = (int)w, *height = (int)h;
    return !*end;
}

/* "0.5" is three times the same, "0.4,0.5,0.6" by channel. */
static bool read_numbers(const char *text, float out[3]) {
    int n = 0;
    for (;; text++) {
        char *end;
        double v = strtod(text, &end);
        if (end == text || !isfinite(v) || n == 3) return false;
        out[n++] = (float)v;
        text = end;
        if (!*text) break;
        if (*text != ',' && *text != ' ') return false;
    }
    if (n == 1) out[1] = out[2] = out[0];
    return n != 2;
}

static int set_resize(const char *text, hone_image_recipe *r) {
    int width = 0, height = 0;
    if (!strcmp(text, "stretch")) return r->fit = HONE_IMAGE_STRETCH, 0;
    if (!strcmp(text, "pad")) return r->fit = HONE_IMAGE_PAD, 0;
    if (!read_size(text, &width, &height))
        return hone_args_wrong(
            "--resize %s: say 256 (the shorter side), 320x240 (just that), 'stretch' or 'pad'", text);
    if (strchr(text, 'x')) r->fit = HONE_IMAGE_STRETCH, r->width = width, r->height = height;
    else r->shorter = width;
    return 0;
}

/* Names set both; numbers are for pixels from 0 to 1, or from 0 to 255 where one of them is above 1. */
static int set_numbers(const hone_picture_wish *w, hone_image_recipe *r) {
    bool named = w->mean && hone_image_recipe_name(r, w->mean);
    if (w->mean && !named) {
        hone_image_recipe_name(r, "0-1");
        if (!read_numbers(w->mean, r->mean))
            return hone_args_wrong(
                "--mean %s: say imagenet, 0-1, -1-1, none, one number, or three as 0.485,0.456,0.406",
                w->mean);
    }
    if (w->std && (named || !w->mean))
        return hone_args_wrong("--std %s: goes with --mean and its numbers", w->std);
    if (w->std && !read_numbers(w->std, r->std))
        return hone_args_wrong("--std %s: say one number, or three as 0.229,0.224,0.225", w->std);
    bool large = false;
    for (int c = 0; c < 3; c++) {
        large |= r->mean[c] > 1 || r->std[c] > 1;
        if (r->std[c] == 0)
            return hone_args_wrong("--std %s: it is divided by, so it must not be 0", w->std ? w->std : "0");
    }
    if (w->mean && !named) r->range = large ? 255 : 1;
    return 0;
}

static int set_order(const char *text, hone_image_recipe *r) {
    if (strcmp(text, "rgb") && strcmp(text, "bgr"))
        return hone_args_wrong("--order %s: say rgb or bgr", text);
    if (r->order == HONE_IMAGE_GRAY)
        return hone_args_wrong("--order %s: the model's input has one channel", text);
    r->order = text[0] == 'b' ? HONE_IMAGE_BGR : HONE_IMAGE_RGB;
    return 0;
}

static int make_recipe(const hone_port *port, const hone_picture_wish *w, hone_image_recipe *r) {
    int width = 0, height = 0, rc = 0;
    if (hone_image_recipe_for(port, r)) return hone_args_failed(HONE_BAD_INPUT);
    const int fixed_width = r->width, fixed_height = r->height;
    if (!r->width || !r->height) r->width = r->height = 0; /* one alone says too little */
    if (w && w->resize) rc = set_resize(w->resize, r);
    if (!rc && w && w->crop) {
        if (!read_size(w->crop, &width, &height))
            rc = hone_args_wrong("--crop %s: say 224, or width by height as 320x240", w->crop);
        else if (r->fit != HONE_IMAGE_COVER)
            rc = hone_args_wrong("--crop %s: nothing is left to cut after --resize %s", w->crop, w->resize);
        else r->width = width, r->height = height;
    }
    if (!rc && r->width &&
        ((fixed_width && r->width != fixed_width) || (fixed_height && r->height != fixed_height)))
        rc = hone_args_wrong(
            "input '%s' is %s: a picture of %dx%d (width by height) does not fit; say --crop %dx%d",
            port->name, port->shape, r->width, r->height, fixed_width ? fixed_width : r->width,
            fixed_height ? fixed_height : r->height);
    if (!rc && !r->width && (fixed_width || fixed_height))
        rc = hone_args_wrong(
            "input '%s' is %s: say the size of the picture with --crop WIDTHxHEIGHT or --resize WIDTHxHEIGHT",
            port->name, port->shape);
    if (!rc && w && w->resize && !r->width && r->fit != HONE_IMAGE_COVER)
        rc = hone_args_wrong(
            "--resize %s: the model's input has no size of its own; say --resize WIDTHxHEIGHT", w->resize);
    if (!rc && w && w->order) rc = set_order(w->order, r);
    if (!rc && w) rc = set_numbers(w, r);
    return rc;
}

/* ---- files ---- */

int hone_picture_feed(const hone_port *port, const hone_words *files, const hone_picture_wish *wish,
                      hone_value **out, char *told, size_t room) {
    hone_image_recipe recipe;
    char words[256];
    int rc = make_recipe(port, wish, &recipe);
    if (rc) return rc;
    int64_t batch = recipe.batch && port->dims[0] > 0 ? port->dims[0] : -1;
    if ((batch > 0 && files->n != batch) || (!recipe.batch && files->n > 1))
        return hone_args_wrong("input '%s' is %s: it takes %lld picture%s, and %d %s given", port->name,
                               port->shape, (long long)(batch > 0 ? batch : 1), batch > 1 ? "s" : "",
                               files->n, files->n > 1 ? "were" : "was");
    hone_value **picture = hone_must_alloc(sizeof *picture * (size_t)files->n);
    hone_status s = HONE_OK;
    hone_image_order order = recipe.order == HONE_IMAGE_GRAY ? HONE_IMAGE_GRAY : HONE_IMAGE_RGB;
    for (int k = 0; k < files->n && !s; k++) s = hone_image_read(files->at[k], order, &picture[k]);
    if (!s) s = hone_image_prepare(picture, files->n, &recipe, out);
    rc = s ? hone_args_failed(s) : 0;
    if (!rc) {
        const int64_t *d = hone_value_dims(picture[0]);
        hone_image_recipe_text(&recipe, words, sizeof words);
        snprintf(told, room, "%.120s (%s, %lldx%lld)", files->at[0], hone_picture_format(files->at[0]),
                 (long long)d[1], (long long)d[0]);
        size_t n = strlen(told);
        if (files->n > 1) snprintf(told + n, room - n, " and %d more", files->n - 1);
        n = strlen(told);
        snprintf(told + n, room - n, ": %s", words);
    }
    for (int k = 0; k < files->n; k++) hone_value_free(picture[k]);
    free(picture);
    return rc;
}

int hone_picture_recipe(const hone_port *port, const hone_picture_wish *w, hone_image_recipe *out) {
    return make_recipe(port, w, out);
}
