/* SPDX-License-Identifier: Apache-2.0
   search: which layers are integers, which repairs are kept: by what the whole model says on the samples that judge. */
#ifndef HONE_QUANT_SEARCH_H
#define HONE_QUANT_SEARCH_H
#include "quant/judge.h"
#include "quant/plan.h"

typedef struct {
    const hone_quant_job *job;
    hone_quant_plan *plan;
    hone_quant_judge judge;
    hone_quant_metric metric;
    hone_quant_score score; /* out: of the plan as it is left */
    double float_ns, int_ns; /* out: the whole model */
    hone_text tried;         /* out: JSON objects, what was tried and what came of it */
} hone_quant_search;
hone_status hone_quant_search_run(hone_quant_search *) HONE_CHECKED;
#endif
