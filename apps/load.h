/* SPDX-License-Identifier: Apache-2.0
   load: a model by the path that a user typed, and what to do where there is none; what it is to be computed
   in. */
#ifndef HONE_APPS_LOAD_H
#define HONE_APPS_LOAD_H
#include "args.h"
#include "hone/hone.h"

/* hone_model_load; on failure `why` is the library's message, with a guess at the file that was meant. */
hone_status hone_load(const char *path, hone_model **out, char *why, size_t room);
/* The same for --input NAME=FILE: an initializer that the model lists as an input too, and that is named
   there, becomes an input. */
hone_status hone_load_for(const char *path, const hone_words *inputs, hone_model **out, char *why,
                          size_t room);
/* The model that comes on stdin, as the path of a file without a name that lives as long as this process, for
   its children, too. NULL after a line that says why not. */
const char *hone_load_stdin(void);
/* How a model is called when it is shown: the path, or "-" for what came on stdin. */
const char *hone_model_shown(const char *path);
/* What --precision may be, of so many characters: f32, bf16, f16 or tf32; NONE where it is none of them. */
hone_dtype hone_precision(const char *word, size_t length);
#endif
