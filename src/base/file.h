/* SPDX-License-Identifier: Apache-2.0
   file: a whole file as read-only bytes, mapped where the system can. */
#ifndef HONE_BASE_FILE_H
#define HONE_BASE_FILE_H
#include "base/mem.h"

typedef struct {
    const uint8_t *data;
    size_t bytes;
    bool mapped;
} hone_file;
/* Regular files only; an empty file is data = "" and bytes = 0. The message names the path and the system's
   reason. */
hone_status hone_file_open(const char *path, hone_file *out) HONE_CHECKED;
void hone_file_close(hone_file *);
/* Bytes of any mapped file that nobody will read soon: the pages wholly inside are given back, and come again
   from the file when they are read. Bytes that are not of a mapped file stay as they are. Any thread. */
void hone_file_forget(const void *at, size_t bytes);
/* both are there and are one file, by whatever names and links */
bool hone_file_same(const char *a, const char *b);
/* whole or not at all: temp + rename */
hone_status hone_file_write(const char *path, const void *data, size_t bytes) HONE_CHECKED;
/* The same piece by piece, for what is too large to hold: begin, put …, end. Nothing is at `path` until the
   end; a failed one is dropped by hone_file_end too, whose status is then the first failure's. */
typedef struct {
    char *path, *temp; /* temp NULL: a device or pipe, written in place */
    int fd;
    uint64_t bytes;     /* put so far */
    hone_status status; /* of the first failure; its message is left on the thread */
} hone_file_out;
hone_status hone_file_begin(const char *path, hone_file_out *out) HONE_CHECKED;
hone_status hone_file_put(hone_file_out *, const void *data, size_t bytes);
hone_status hone_file_end(hone_file_out *, bool keep /* false: drop it */);
/* name in path's folder; NULL if name is absolute or climbs with ".." */
char *hone_path_beside(hone_arena *, const char *path, const char *name);
#endif
