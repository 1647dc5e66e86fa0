/* SPDX-License-Identifier: Apache-2.0
   bits: a bound product with weights of few bits in blocks. bits.c finds it in a program, bits_pack.c packs
   the weights; few rows are multiplied by bits_run.c, many by bits_many.c where A may
   be rounded and by bits_float.c where not. Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_BITS_H
#define HONE_DEVICE_CPU_BITS_H
#include "loops/match_affine.h"
#include "device/cpu/cpu.h"
#include "kernels/bits.h"
#include "kernels/gemm.h"

typedef struct {
    const hone_bits *kernel;
    int a, b, scales, zero, out; /* tensors; zero -1: none, all are 2^(bits-1) */
    hone_dtype a_dtype, scale_dtype, zero_dtype, out_dtype;
    int bits;
    int64_t block, blocks, k, m, n;
    const int64_t *row_a, *row_out; /* where each row begins */
    int64_t first_a;
    /* A as so many rows of 8 bits, each what the ones before it left: 1 where A may be rounded, else 3, which
       is as fine as f32 beside a block's largest value */
    int digits;
    bool coupled;     /* one row by the kernel that takes 4 bits as they are packed */
    bool many;        /* several rows at a time (bits_many.c) */
    int packed, rows; /* refs: panels of weights; quantized rows */
    int64_t panels, per_tile, rows_at_once, row_tiles;
    /* bytes: of a block's weights, with its scales behind them; of all blocks of a panel; of the panel, with
       zero points; of a quantized row, and where its parts begin */
    int64_t block_bytes, step, stream_bytes, panel_bytes, row_bytes, at_scale, at_sum, at_start, at_flag;
    int64_t grain; /* rows a tile quantizes, or packs */
    /* several rows at a time: how many; whether by weights as they are packed; bytes of so many quantized
       rows, and where their parts begin; where all rows' flags begin */
    int high;
    bool as_packed;
    int64_t band_bytes, band_scale, band_shift, band_start, flags;
    /* as floats: */
    const hone_gemm_f32 *gemm; /* NULL: not so */
    /* columns of its panels, which take `high` rows at a time; columns made floats at a time */
    int columns, across;
    /* of K; values in one; rows of all of A as they are transposed; rows of a tile */
    int64_t pieces, piece, packed_rows, at_once;
} hone_bits_product;
/* K in whole blocks */
static inline int64_t hone_bits_deep(const hone_bits_product *d) { return d->blocks * d->block; }
static inline bool hone_bits_float_zero(const hone_bits_product *d) {
    return d->zero >= 0 && d->zero_dtype != HONE_DTYPE_U8;
}
/* Sizes, when all above them is known; the steps and their packed weights. */
void hone_bits_sizes(hone_bits_product *, int threads);
hone_status hone_bits_steps(hone_template_builder *, hone_bits_product *) HONE_CHECKED;
void hone_bits_many_sizes(hone_bits_product *);
hone_status hone_bits_many_steps(hone_template_builder *, hone_bits_product *) HONE_CHECKED;
bool hone_bits_float_sizes(hone_bits_product *, int threads); /* false: not worth it */
hone_status hone_bits_float_steps(hone_template_builder *, hone_bits_product *) HONE_CHECKED;

/* bits_pack.c */
enum { HONE_BITS_FLIP = 0x80 }; /* over 4-bit weights' bytes, as the kernel `one` wants them */
hone_status hone_bits_packed(const hone_cpu_call *, const hone_packed *, hone_ref *out);
typedef struct {
    const uint8_t *weights; /* of the first block; scales stand behind each */
    const float *shift;     /* zero points that are floats, times scales; or NULL */
    const int8_t *zero;     /* or NULL: all are `all` */
    int all;
} hone_bits_panel;
hone_bits_panel hone_bits_panel_at(const hone_bits_product *, const uint8_t *at);
/* Blocks of a panel from block g on as bytes, less their zero points where these are few bits, too; where
   they lie, from block to block *step bytes. `bytes`: room, not needed for 8 bits. */
const int8_t *hone_bits_bytes(const hone_bits_product *, const hone_bits_panel *, int64_t g, int64_t blocks,
                              int8_t *bytes, ptrdiff_t *step);
static inline const float *hone_bits_scales(const hone_bits_product *d, const hone_bits_panel *w, int64_t g) {
    return (const float *)(const void *)(w->weights + g * d->step + d->block_bytes);
}

/* bits_run.c */
/* as floats, in whole blocks */
const float *hone_bits_row_of(const hone_bits_product *, const char *a, int64_t row, float *line);
void hone_bits_quantize_row(const hone_bits_product *, const float *a, char *to, float *rest);
void hone_bits_by_definition(const hone_bits_product *, const hone_bits_panel *, const float *a, int64_t n,
                             float *out);
void hone_bits_store(const hone_bits_product *, char *out, int64_t row, int64_t panel, const float *v);
#endif
