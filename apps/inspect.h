/* SPDX-License-Identifier: Apache-2.0
   inspect: the views of `hone inspect`, one function each. They draw the library's reports, read into
   trees. */
#ifndef HONE_APPS_INSPECT_H
#define HONE_APPS_INSPECT_H
#include "dims.h"
#include "json.h"

/* Topic "graph": the model's own graph stands first in the list. */
typedef struct {
    const hone_json *graph;
    const hone_json **var, **node; /* by number */
    int n_var, n_node;
} hone_drawn;
void hone_drawn_open(const hone_json *graphs, hone_drawn *);
void hone_drawn_close(hone_drawn *);

/* sort: "number", "work", "bytes" or "parameters". planned: work by node where the dims make it known; its
   plan may be NULL. */
void hone_show_nodes(const hone_json *graphs, const hone_planned *, const char *sort);
void hone_show_dot(const hone_json *graphs, const char *name);
void hone_show_memory(const hone_planned *);
/* The page in one file. 0, or the exit code: one line was said. */
int hone_write_page(const hone_model *, const char *path, const hone_planned *, const char *plan_json,
                    const char *file);
#endif
