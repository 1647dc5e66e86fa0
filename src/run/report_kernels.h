/* SPDX-License-Identifier: Apache-2.0
   report_kernels: what `hone explain --device` adds (report_kernels.c). */
#ifndef HONE_RUN_REPORT_KERNELS_H
#define HONE_RUN_REPORT_KERNELS_H
#include "ir/graph.h"
#include "run/model.h"

hone_status hone_report_kernels(const hone_model *, const hone_node *, const hone_instance *,
                                int lang /* hone_lang */, hone_text *) HONE_CHECKED;
#endif
