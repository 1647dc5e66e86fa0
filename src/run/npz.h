/* SPDX-License-Identifier: Apache-2.0
   npz: NumPy's archive of arrays, read from a file's bytes. */
#ifndef HONE_RUN_NPZ_H
#define HONE_RUN_NPZ_H
#include "base/file.h"
#include "base/value.h"

hone_status hone_npz_find(const hone_file *, const char *name, hone_value **out) HONE_CHECKED;
hone_status hone_npz_list(const hone_file *, hone_text *) HONE_CHECKED; /* the names, as a JSON list */
#endif
