/* SPDX-License-Identifier: Apache-2.0
   picture: image files as a model's input: what the user said about size, crop, numbers and channels, and the
   rest from the input's shape. */
#ifndef HONE_APPS_PICTURE_H
#define HONE_APPS_PICTURE_H
#include <stdbool.h>

#include "args.h"
#include "hone/image.h"

typedef struct { /* as given; NULL: not */
    const char *resize, *crop, *mean, *std, *order;
} hone_picture_wish;
bool hone_picture_wished(const hone_picture_wish *); /* anything at all */

/* Whether a file is one, by its first bytes: "JPEG", …; NULL: no, or it cannot be read. */
const char *hone_picture_format(const char *path);
/* The files as one input, a batch when several. `told` says in words all that was done. 0, or the exit code:
   one line was said. */
int hone_picture_feed(const hone_port *, const hone_words *files, const hone_picture_wish *, hone_value **out,
                      char *told, size_t room);
/* What the wishes make of an input, for pictures that are read later. 0, or the exit code: one line was
   said. */
int hone_picture_recipe(const hone_port *, const hone_picture_wish *, hone_image_recipe *out);
#endif
