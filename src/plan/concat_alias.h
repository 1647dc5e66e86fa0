/* SPDX-License-Identifier: Apache-2.0
   concat_alias: see concat_alias.c. */
#ifndef HONE_PLAN_CONCAT_ALIAS_H
#define HONE_PLAN_CONCAT_ALIAS_H
#include "plan/bind.h"

struct hone_concat_alias { /* where in a Concat's output a var may lie */
    hone_vid in;           /* that output; -1: it has no alias */
    int axis;
    hone_dim at; /* along the axis */
};
/* Aliases of all vars, into c->alias; NULL where nobody has one. Wants c->instance. */
hone_status hone_concat_aliases_find(hone_compiled *) HONE_CHECKED;
/* Puts a var that is being made into its alias, or a Concat's output into the room that was made for it. */
hone_status hone_concat_alias_place(hone_binder *, hone_level *, hone_vid, hone_bound_var *,
                                    bool *done) HONE_CHECKED;
/* A Concat: what does not lie in its place yet is copied there. */
hone_status hone_bind_concat(hone_binder *, hone_level *, int node, hone_fact *out) HONE_CHECKED;
#endif
