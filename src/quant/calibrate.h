/* SPDX-License-Identifier: Apache-2.0
   calibrate: samples go through the float graph, and every tensor that is to be rounded leaves its histogram;
   then ranges are tried where they matter, behind the nodes that read it. */
#ifndef HONE_QUANT_CALIBRATE_H
#define HONE_QUANT_CALIBRATE_H
#include "quant/plan.h"

/* Bytes of tensors that may be kept at once, so that looking at them takes little beside a run. */
int64_t hone_quant_held(const hone_graph *);
/* Of so many tensors of f32, the bytes that each has on a sample. Where shapes are not known the graph is
   asked, which runs once for it. */
hone_status hone_quant_bytes(const hone_quant_job *, const hone_graph *, const hone_vid *, int n,
                             int64_t sample, int64_t *bytes) HONE_CHECKED;
/* Nodes that were added behind the first `nodes` go where they may stand first, so that what they read is not
   kept for them: added node k right behind node after[k]; -1: before all. False: no memory. */
bool hone_quant_settle_down(hone_graph *g, int nodes, const int *after);
/* Fills `seen` of every class, and the layers' multiply-adds. Tensors are looked at where they are made
   (hone.Observe), a run a sample, so that none is kept. */
hone_status hone_quant_calibrate(const hone_quant_job *, hone_quant_plan *, const int64_t *sample,
                                 int n) HONE_CHECKED;
/* Chooses each class's range: by the observer named, or the one with the least error behind the nodes that
   read it, over these samples. */
hone_status hone_quant_choose(const hone_quant_job *, hone_quant_plan *, const int64_t *sample,
                              int n) HONE_CHECKED;
/* All classes by one observer. */
void hone_quant_choose_all(hone_quant_plan *, hone_observer);

/* cache.c: what calibration found, as text. *found false: there is none that fits this model and these
   samples. */
hone_status hone_quant_cache_read(hone_quant_plan *, const char *path, uint64_t key,
                                  bool *found) HONE_CHECKED;
hone_status hone_quant_cache_write(const hone_quant_plan *, const char *path, uint64_t key) HONE_CHECKED;
#endif
