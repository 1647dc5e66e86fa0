/* SPDX-License-Identifier: Apache-2.0
   contract: a bound matrix multiplication: what all tactics for it share. loops/match_contraction.h finds it,
   contract_choose.c says how it goes, contract_run.c computes it in floats, contract_epilogue.c is what
   follows. Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_CONTRACT_H
#define HONE_DEVICE_CPU_CONTRACT_H
#include <string.h>

#include "base/round.h"
#include "device/cpu/epilogue.h"
#include "kernels/gemm.h"
#include "loops/match_contraction.h"

enum { HONE_CONTRACT_KC = 2048 }; /* the most of K at a time */
struct hone_contract {
    hone_match_contraction of; /* what it is; all below is how */
    hone_affine_load a, b;     /* operands: tensors are refs, which may be buffers */

    /* offsets in elements: a group's flattened position → where */
    int64_t *at_m_a, *at_m_domain, *at_k_a, *at_k_b, *at_m_out, *at_row_b;
    /* batches: how addresses move with each of their indices. edge: A's window */
    struct {
        int64_t a, b, domain, out, edge[HONE_MAX_BOUNDED];
    } by[HONE_MAX_BATCH];
    /* A's window, where A has one */
    int64_t *at_m_a_bounded[HONE_MAX_BOUNDED], *at_k_a_bounded[HONE_MAX_BOUNDED];
    /* B's */
    int64_t *at_k_bounded[HONE_MAX_BOUNDED], *at_row_bounded[HONE_MAX_BOUNDED], run_bounded[HONE_MAX_BOUNDED];
    /* a bit for each value of K of each row: it is outside A's window. NULL: there are too many, or a batch
       moves it */
    uint32_t *outside;
    /* refs of constant operands, A in rows (bytes: in panels), B in panels; 0: none (never the first
       tensor) */
    int packed_a, packed_b;
    /* ref of B as a step before has packed it once, for all blocks of rows; 0: none */
    int shared;
    int out, n_ref;                     /* tensor that is written */
    hone_cpu_epilogue *epilogue;        /* what follows, where it is of the common form, */
    const hone_tilecode *epilogue_code; /* else this; both NULL: nothing follows */

    int mr, nr;
    int64_t mt, nt, kc; /* a tile, and how much of K at a time */
    /* wisdom said which: 0 nothing, else 1 the sum itself, more: tiles of so many results a side */
    int way;
    /* tensors that may be stored as bf16: A, the residual, the result */
    uint64_t bf16_able;
    size_t c_bytes, a_bytes, b_bytes, line_bytes, at_bytes; /* of scratch */

    /* by floats (contract_run.c) */
    const hone_gemm_f32 *kernel;
    /* depthwise, channels last (both operands know N); or NULL */
    const hone_dwconv_nhwc *dwconv_nhwc;
    bool gathered; /* rows in no pieces are found one by one, not copied, where that pays */
    bool direct;   /* the kernel finishes its rows itself and writes them where they belong */
    bool blocks;   /* the kernel takes rows by blocks, many at a call */
    int64_t band;  /* so many rows of a tile meet all panels before others do */
    /* of scratch, too: rows of A that are packed (0: the kernel takes them unpacked), and panels that are
       activated before they meet another factor (0: there are none) */
    size_t packed_a_bytes, gate_bytes;
    /* rows of A are scaled while they are packed, or copied (prologue.c); or NULL */
    const struct hone_contract_prologue *prologue;

    /* by other tactics, each with what it needs of its own; or NULL */
    struct hone_contract_int *i8;      /* factors of 8 bits (contract_int.h) */
    struct hone_dwconv_int *dwconv_i8; /* of which both know N: depthwise, channels last (contract_int.h) */
    struct hone_contract_half *half;   /* factors rounded to bf16 or f16 (contract_half.h) */
    struct hone_contract_dwconv_nchw *dwconv_nchw; /* depthwise, plane by plane (contract_dwconv.h) */
    struct hone_contract_dwconv_rows
        *dwconv_rows;                     /* depthwise, channels last, by lines (contract_dwconv.h) */
    struct hone_winograd *winograd;       /* a convolution by tiles (winograd.h) */
    struct hone_direct_conv *direct_conv; /* a convolution of few channels (direct_conv.h) */
};
struct hone_contract_prologue { /* rows of A, scaled by value of K */
    int s, b;                   /* refs; b: or -1 */
    int64_t s_c, b_c;
    float lo, hi;
};

/* at[c] = from + c * step: two at a time */
static inline void hone_ladder(const uint8_t **at, const uint8_t *from, int64_t step, int64_t n) {
    typedef uintptr_t two __attribute__((vector_size(2 * sizeof(uintptr_t))));
    two v = {(uintptr_t)from, (uintptr_t)from + (uintptr_t)step};
    int64_t c = 0;
    for (; c + 2 <= n; c += 2, v += 2 * (uintptr_t)step) memcpy(at + c, &v, sizeof v);
    if (c < n) at[c] = from + c * step;
}

/* Where a batch stands: its indices, offsets of operands, domain and result, and the operands' own numbers of
   it. */
typedef struct {
    int64_t index[HONE_MAX_BATCH], a, b, domain, out, own_a, own_b, edge[HONE_MAX_BOUNDED];
} hone_standing;
hone_standing hone_contract_stand(const hone_contract *, int64_t batch);
/* where an operand's own batch begins */
int64_t hone_contract_own(const hone_contract *, int64_t number, bool a);
/* Rows m0 … m0+m-1 of A, all of K, one after another. The standing says where A's window is; NULL where it
   has none. */
void hone_contract_pack_a(const hone_contract *, const void *a, const hone_standing *, int64_t m0, int64_t m,
                          float *rows);
/* contract_pack.c: may an operand be packed ahead, as this ref? Its packed operands are noted in the
   step template. */
bool hone_contract_packable(const hone_cpu_call *, const hone_contract *, bool a, int ref);
size_t hone_contract_packed_bytes(const hone_contract *, bool a); /* of an operand in panels, all batches */
hone_status hone_contract_keep_packed(hone_template_builder *, const hone_contract *) HONE_CHECKED;
/* Element k of a constant that is f32 (0) or halves. */
static inline float hone_contract_widened(hone_dtype stored, const void *at, int64_t k) {
    return stored ? hone_dtype_load(stored, hone_element(at, true, k)).f32 : ((const float *)at)[k];
}
/* Columns n0 … n0+nt-1 into panels of nr, the last one of as many whole vectors as it needs; panels are
   `apart` slices of nr apart, and kc of them are written from the first. line: room for nt values, or NULL
   for one panel. */
void hone_contract_pack_b(const hone_contract *, const void *b, int64_t n0, int64_t nt, int64_t k0,
                          int64_t kc, int64_t apart, float *panels, float *line);
/* Columns n0 … n0+n-1 of slice k of B in a row: elements of `size` bytes, `outside` in every byte of those
   outside. */
void hone_contract_gather(const hone_contract *, const void *b, int64_t k, int64_t n0, int64_t n, size_t size,
                          int outside, void *line);
/* Finished rows m0 … m0+m-1, columns n0 … n0+n-1, in c (f32, or i32 with `less` to be taken away from each
   row first; NULL: nothing) with the given stride. */
hone_status hone_contract_epilogue(const hone_contract *, void *const *at, int64_t over,
                                   const hone_standing *, int64_t m0, int64_t m, int64_t n0, int64_t n,
                                   void *c, int64_t stride, const int32_t *less, void *scratch) HONE_CHECKED;
static inline int64_t hone_contract_columns(const hone_contract *d) { /* N in whole vectors */
    return hone_round_up(d->of.n, d->kernel->vector);
}
/* Whether rows of A are to be packed where the kernel can (kernels/gemm.h): it costs as much as a panel
   or two, but makes one piece of several. The widest panels are for unpacked rows. */
static inline bool hone_contract_packs_a(const hone_contract *d) {
    const bool wide = d->nr > d->kernel->packed_widths * d->kernel->vector;
    return d->kernel->pack_a && d->of.m > HONE_GEMM_SMALL_M && !wide &&
           (d->of.n >= (d->of.taps > 1 ? 16 : 32) || d->gathered);
}
/* Unpacked rows that stay in L1 while all panels pass, which then come from L2: less than rows would,
   where there are enough of them. Else all of a tile. */
static inline int64_t hone_contract_band(const hone_contract *d) {
    enum { ROWS_L1 = 20480 };
    const int64_t k = d->of.k < d->kc ? d->of.k : d->kc, rows = ROWS_L1 / (4 * k) / d->mr * d->mr;
    return rows >= 4 * d->mr && rows < d->mt ? rows : d->mt;
}
/* Multiply-adds of a lane of f32 in a nanosecond, about: narrow vectors come with more units. */
static inline int hone_contract_lane(const hone_contract *d) { return d->kernel->vector == 4 ? 8 : 4; }
/* Rows that a kernel has just finished get the activation that follows. */
static inline void hone_contract_activate(const hone_contract *d, const hone_gemm_args *p) {
    if (d->epilogue && d->epilogue->activate)
        d->epilogue->activate(p->c, p->c_from, p->m, p->n, d->epilogue->alpha, d->epilogue->beta);
}
/* What follows an activation of a kernel's rows m …, columns n0 …: the row that is added later may lie where
   the kernel writes, so it is kept before. */
enum { HONE_CONTRACT_KEPT = 64 }; /* columns of a panel, at most */
void hone_contract_keep(const hone_contract *, void *const *at, const hone_standing *, int64_t m, int64_t n0,
                        const hone_gemm_args *, float *kept);
void hone_contract_then(const hone_contract *, void *const *at, const hone_standing *, const hone_gemm_args *,
                        const float *kept);
/* contract_blocks.c: nr and mr; then mt, nt and kc, for so many threads */
void hone_contract_panel(hone_contract *, int threads);
void hone_contract_blocks(hone_contract *, int threads);
void hone_contract_pack_step(const hone_contract *, hone_step *);
void hone_contract_step(hone_contract *, hone_step *);
/* contract_run.c */
/* that of a step of contract_run.c's own; NULL: it is another step */
const hone_contract *hone_contract_plain(const hone_step *);
/* Tile `number`, at step `over` of a recurrence (0 elsewhere). at: one address a ref; half: those that are
   stored as bf16 (hone_step). */
hone_status hone_contract_tile(const hone_contract *, void *const *at, uint64_t half, int64_t number,
                               int64_t over, void *scratch) HONE_CHECKED;
/* A's window: is value k of row m inside; are all of them */
bool hone_contract_inside(const hone_contract *, const hone_standing *, int64_t m, int64_t k);
bool hone_contract_all_inside(const hone_contract *, const hone_standing *, int64_t m);
uint32_t *hone_contract_outside(hone_arena *, const hone_contract *); /* d->outside, or NULL */
/* Where a tile's rows lie and what the kernel does at their ends, where it does it itself. */
typedef struct {
    const float **a, **residual;
    /* sums: until K is done, in scratch: what is written may lie on the residual */
    float **c, **sums, *bias_m;
} hone_contract_lists;
static inline void hone_contract_halves(const hone_contract *d, uint64_t half, hone_gemm_args *p) {
    p->a_bf16 = half >> d->a.tensor & 1, p->c_bf16 = half >> d->out & 1;
    p->residual_bf16 =
        d->epilogue && d->epilogue->residual.tensor >= 0 && (half >> d->epilogue->residual.tensor & 1);
}
void hone_contract_epilogue_args(const hone_contract *, void *const *at, int64_t over, const hone_standing *,
                                 int64_t m0, int64_t m, hone_gemm_args *, const hone_contract_lists *);
/* Rows m0 … times the activation of those in `gates`, for an epilogue that has such a factor. */
void hone_contract_gate(const hone_contract *, void *const *at, const hone_standing *, int64_t m0,
                        const hone_gemm_args *, const hone_contract_lists *, const float *gates);
/* The product of one stage of a recurrence, without epilogue; *out NULL: it is none. begun: whoever runs it
   says where rows of A are. */
hone_status hone_contract_over(hone_template_builder *, const hone_cpu_call *, int stage, bool begun,
                               hone_contract **out, int64_t *tiles, size_t *scratch_bytes) HONE_CHECKED;
#endif
