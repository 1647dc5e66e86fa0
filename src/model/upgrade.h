/* SPDX-License-Identifier: Apache-2.0
   upgrade: the up-converters, by theme. upgrade.c has the table that says which op needs which, below which
   version. */
#ifndef HONE_MODEL_UPGRADE_H
#define HONE_MODEL_UPGRADE_H
#include "model/draft.h"

typedef void hone_upgrade_fn(hone_edit *);

/* upgrade_inputs.c: what was an attribute is an input now */
hone_upgrade_fn hone_up_clip, hone_up_dropout, hone_up_pad, hone_up_slice, hone_up_axes, hone_up_split,
    hone_up_topk, hone_up_reshape, hone_up_tile, hone_up_upsample, hone_up_dft;
/* upgrade_forms.c: the same name meant something else */
hone_upgrade_fn hone_up_broadcast, hone_up_prelu, hone_up_cast, hone_up_batch_norm, hone_up_gemm,
    hone_up_softmax, hone_up_scatter, hone_up_lp_pool, hone_up_recurrent, hone_up_group_norm,
    hone_up_roi_align, hone_up_grid_sample, hone_up_selu, hone_up_concat, hone_up_scan, hone_up_label_encoder;
/* canon.c: one of several ways that the newest version still allows */
hone_upgrade_fn hone_canon_chain, hone_canon_fill, hone_canon_mvn, hone_canon_split, hone_canon_layout,
    hone_canon_attention, hone_canon_rotary, hone_canon_resize, hone_canon_optimizer;
/* einsum.c: in terms of other ops */
hone_upgrade_fn hone_canon_einsum;
/* gradient.c: likewise */
hone_upgrade_fn hone_canon_gradient;
/* canon_contrib.c: ops of com.microsoft in terms of ONNX's; those it does not know are left alone */
hone_upgrade_fn hone_contrib;
bool hone_contrib_knows(const char *domain, const char *op);
/* flex.c: FlexAttention. `modify` writes the body of that name out, applied to x, and returns its result; x
   where there is no such body. */
typedef hone_vid hone_onnx_modify(void *context, const char *body, hone_vid x);
void hone_onnx_flex_attention(hone_edit *, hone_onnx_modify *, void *context);
#endif
