/* SPDX-License-Identifier: Apache-2.0
   model: what the public handles are. Private to run/. */
#ifndef HONE_RUN_MODEL_H
#define HONE_RUN_MODEL_H
#include "hone/quant.h"
#include "run/advice.h"
#include "run/exec.h"
#include "run/forms.h"
#include "run/units.h"

struct hone_model {
    atomic_int holders;      /* the caller, and each session */
    hone_compiled *compiled; /* for the CPU; reports are of it */
    hone_forms forms;        /* for other devices */
    hone_port *in, *out;
    bool bare; /* without weights: see hone_model_bare */
};
struct hone_session {
    hone_model *model;             /* held */
    const hone_compiled *compiled; /* the form that it runs */
    hone_exec *exec;
    hone_advice advice; /* that it follows */
    hone_units *units;  /* its devices; NULL: the CPU */
    char *keep_f32;     /* as in hone_options */
    atomic_flag busy;   /* a run is under way */
};
hone_status hone_model_whole(const hone_model *) HONE_CHECKED;               /* fails for a bare one */
hone_status hone_report_graph(const hone_graph *, hone_text *) HONE_CHECKED; /* report_graph.c */
hone_status hone_text_give(hone_text *, char **out) HONE_CHECKED;            /* frees the buffer either way */
bool hone_samples_close_text(hone_samples *); /* text.c; false: they are others */
#endif
