/* SPDX-License-Identifier: Apache-2.0
   given: files of a model that came with a request to load it. */
#ifndef HONE_SERVE_GIVEN_H
#define HONE_SERVE_GIVEN_H
#include "serve/core.h"

typedef struct {
    char *path; /* in the model's folder: "1/model.onnx" */
    void *data;
    size_t bytes;
} hone_serve_file;
typedef struct hone_serve_given {
    hone_serve_file *file;
    int n;
} hone_serve_given;

void hone_serve_given_free(hone_serve_given *);
/* Takes `data`, whatever happens; `name` may begin with "file:". 0, or the error's code, as all of these. */
int hone_serve_given_add(hone_serve_given *, const char *name, void *data, size_t bytes, hone_serve_error *);
/* Takes the contents of files out of JSON, in place; a number stands there then, which _name is called with,
   once for each, as that text is read. `json` has room for a zero behind. */
int hone_serve_given_cut(hone_serve_given *, char *json, size_t *bytes, hone_serve_error *);
int hone_serve_given_name(hone_serve_given *, const char *name, const json_t *number, hone_serve_error *);
/* Into a new folder, malloc'd; NULL: error. */
char *hone_serve_given_write(const hone_serve_given *, hone_serve_error *);
void hone_serve_given_remove(const char *folder);
/* `out` has room for three bytes of every four of the text, and four more. -1: it is none. */
int64_t hone_serve_base64(const char *text, size_t length, uint8_t *out);
#endif
