/* SPDX-License-Identifier: Apache-2.0
   library: the toolkit's libraries, opened at run time: nothing of them is needed to build. */
#ifndef HONE_DEVICE_CUDA_LIBRARY_H
#define HONE_DEVICE_CUDA_LIBRARY_H
#include <stdbool.h>

typedef struct {
    void *to; /* a pointer to a function */
    const char *name;
} hone_cuda_symbol;
/* Opens lib`stem`.so and finds its functions. Where the environment's `variable` names a file it is that one
   or none; else it is looked for by the names of its versions, in the toolkit's folder, in the Python
   packages of a venv and of the user. `open` opens a path. False: it is not there, or not all of it. */
bool hone_cuda_library(const char *variable, const char *stem, void *(*open)(const char *path),
                       const hone_cuda_symbol *, int n);
#endif
