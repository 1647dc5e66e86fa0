/* SPDX-License-Identifier: Apache-2.0
   library: a decoder's library, loaded when its first picture comes. Its header is needed to build, the
   library only to read such pictures: so the command starts without any of them, runs where they are not,
   and is linked without what they in turn want. Each format lists the functions that it calls:

       #define CALLS(X) X(png_read_info) X(png_read_image)
       HONE_LIBRARY(CALLS, "libpng16.so.16", "libpng16-16")
       … HONE_TRY(hone_library_load(&library)); lib.png_read_info(…) … */
#ifndef HONE_IMAGE_LIBRARY_H
#define HONE_IMAGE_LIBRARY_H
#include <stdatomic.h>

#include "image/image.h"

typedef struct {
    const char *file, *package; /* as the loader knows it; as Debian does */
    const char *const *name;    /* n functions … */
    void *slot;                 /* … and where their addresses go, a pointer each */
    int n;
    _Atomic int found; /* 0: not looked for; 1: there; -1: not */
} hone_library;

hone_status hone_library_load(hone_library *) HONE_CHECKED;
/* What a format says that was built without its header. */
hone_status hone_library_unbuilt(const char *package) HONE_CHECKED;

#define HONE_LIBRARY_SLOT(f) __typeof__(&f) f;
#define HONE_LIBRARY_NAME(f) #f,
#ifdef HONE_STATIC /* linked, not loaded */
#define HONE_LIBRARY_HERE(f) f,
#define HONE_LIBRARY_FOUND(CALLS) \
    { CALLS(HONE_LIBRARY_HERE) }
enum { HONE_LIBRARY_IS = 1 };
#else
#define HONE_LIBRARY_FOUND(CALLS) \
    { 0 }
enum { HONE_LIBRARY_IS = 0 };
#endif
#define HONE_LIBRARY(CALLS, file_, package_)                                          \
    static struct { CALLS(HONE_LIBRARY_SLOT) } lib = HONE_LIBRARY_FOUND(CALLS);       \
    static const char *const library_names[] = {CALLS(HONE_LIBRARY_NAME)};            \
    static hone_library library = {.file = file_,                                     \
                                   .package = package_,                               \
                                   .name = library_names,                             \
                                   .slot = &lib,                                      \
                                   .n = sizeof library_names / sizeof *library_names, \
                                   .found = HONE_LIBRARY_IS};
#endif
