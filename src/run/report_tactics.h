/* SPDX-License-Identifier: Apache-2.0
   report_tactics: by which tactics the CPU does a node, and which others could, for `hone explain`. */
#ifndef HONE_RUN_REPORT_TACTICS_H
#define HONE_RUN_REPORT_TACTICS_H
#include "run/model.h"

hone_status hone_report_tactics(const hone_model *, const hone_node *, hone_text *) HONE_CHECKED;
#endif
