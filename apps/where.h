/* SPDX-License-Identifier: Apache-2.0
   where: --device, --place, --plugin and --ops, by one rule for every command that runs models. */
#ifndef HONE_APPS_WHERE_H
#define HONE_APPS_WHERE_H
#include "args.h"

typedef struct {
    const char *device;
    hone_words place, plugins, ops;
    char *lines; /* of place, as options want them */
} hone_where;
/* Rows of a command's table of options. */
#define HONE_WHERE_OPTIONS(w)                                                                              \
    {"--device",    "NAME[:N]",   "where to run: cpu, cuda, opencl, or a device of a plugin (cpu)",        \
     HONE_ARG_TEXT, &(w)->device, 0},                                                                      \
        {"--place",     "PATTERN=DEVICE", "nodes with such names run there instead, as in 'layer4.*=cpu'", \
         HONE_ARG_LIST, &(w)->place,      0},                                                              \
        {"--plugin", "FILE", "a file that adds devices or ops", HONE_ARG_LIST, &(w)->plugins, 0},          \
        HONE_OPS_OPTION(w)
#define HONE_OPS_OPTION(w)                                                                      \
    {                                                                                           \
        "--ops", "FILE", "ops of your own, as text, that the model uses (docs/02-programs.md)", \
            HONE_ARG_LIST, &(w)->ops, 0                                                         \
    }
/* Loads the plugins and ops, before any model. 0, or the exit code: one line was said. */
int hone_where_begin(hone_where *);
/* Opens the devices that are named, as a session would, and closes them. */
hone_status hone_where_open(const hone_where *);
void hone_where_set(const hone_where *, hone_options *);
/* Says which patterns of --place no node's name fits: most likely they are mistyped. */
void hone_where_doubt(const hone_where *, const hone_model *);
/* Instead of hone_where_begin, for processes that this one starts: by the environment, and from it. */
void hone_where_export(const hone_where *);
int hone_where_import(hone_where *);
void hone_where_free(hone_where *);
#endif
