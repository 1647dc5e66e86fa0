/* SPDX-License-Identifier: Apache-2.0
   transformer: what encoders and decoders share. Dims: B batch, S sequence, H heads, D size of a head, E = H
   * D. */
#ifndef HONE_ZOO_TRANSFORMER_H
#define HONE_ZOO_TRANSFORMER_H
#include "zoo/layers.h"

#define HONE_ZOO_LOWEST (-3.4028234663852886e38) /* what exporters add to scores that do not count */

/* [B, S] → [B, S, size] */
hone_vid hone_zoo_embed(hone_zoo *, const char *name, hone_vid ids, int64_t rows, int64_t size);
/* [B, S, H * D] → [B, S, H, D], transposed by `perm` */
hone_vid hone_zoo_heads(hone_zoo *, hone_vid x, int64_t heads, const char *perm);
/* [B, H, S, D] → [B, S, H * D]; B and S as `from` has them */
hone_vid hone_zoo_join_heads(hone_zoo *, hone_vid x, hone_vid from);
hone_vid hone_zoo_softmax(hone_zoo *, hone_vid scores, hone_vid v); /* softmax(scores) times v */
hone_vid hone_zoo_unsqueeze(hone_zoo *, hone_vid x, int64_t axis);
hone_vid hone_zoo_cast(hone_zoo *, hone_vid x, hone_dtype);
hone_vid hone_zoo_size_of(hone_zoo *, hone_vid x, int axis); /* i64[1], by Shape and Slice */
/* first, first + 1, …: `n` whole numbers as i64[1, n] */
hone_vid hone_zoo_count_up(hone_zoo *, const char *leaf, int64_t first, int64_t n);
#endif
