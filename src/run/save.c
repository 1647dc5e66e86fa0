/* SPDX-License-Identifier: Apache-2.0
   save: a model as a file for other runtimes. */
#include "model/export.h"
#include "run/model.h"

hone_status hone_model_save(const hone_model *m, const char *path) { return hone_graph_export_file(m->compiled->graph, path, NULL); }
