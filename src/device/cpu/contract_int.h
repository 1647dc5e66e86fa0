/* SPDX-License-Identifier: Apache-2.0
   contract_int: a bound matrix multiplication of 8-bit factors. contract_int.c computes it,
   contract_int_pack.c packs its operands, contract_int_indirect.c multiplies rows where they lie,
   contract_dwconv_int.c is depthwise. Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_CONTRACT_INT_H
#define HONE_DEVICE_CPU_CONTRACT_INT_H
#include "device/cpu/contract.h"

typedef struct { /* what is taken away from a factor of 8 bits */
    int tensor;  /* -1: nothing */
    bool is_signed;
    int64_t c, *at, by_batch[HONE_MAX_BATCH]; /* at: along M for A, along N for B; NULL: the same all along */
    bool in_row;                              /* at[k] is k */
} hone_zero_point;
/* flip: over every byte of an operand, so that it is what the kernel takes */
struct hone_contract_int {
    const hone_gemm_i8 *kernel;
    hone_gemm_i8_fn *run;    /* its form for these operands, */
    bool a_signed, b_signed; /* which takes these */
    uint8_t flip_a, flip_b;
    hone_zero_point zero_a, zero_b;
    const hone_epilogue *requantize;
    int64_t out_apart;            /* so far are the bytes that are made of them; 0: it varies */
    int64_t at_once_m, at_once_n; /* rows and columns whose sums wait in scratch together, */
    int64_t packed_m;             /* and rows of A that are copied together */
    /* rows that lie in no pieces (a first layer's few channels): K in groups of at most four bytes that
       follow on; 0: they are not so taken */
    int64_t dot4_groups, *dot4_at, *dot4_copied; /* where each group is, and in a row that was copied; */
    int64_t *dot4_of;                            /* each value of K among them */
    uint32_t *dot4_mask;                         /* which bytes of a group are some */
    const uint8_t
        *direct_run; /* how many rows from each on are read where they lie: all inside, equally apart,
                                           with bytes behind; or NULL */
    const uint8_t
        *dot4_inside;   /* of each row: all of its groups are inside, and behind them as many bytes as are
                                           read; NULL: a batch decides */
    int64_t direct_end; /* rows that begin behind have too few bytes behind */
    int64_t row_stride; /* rows of A are taken as they lie, so many bytes apart; 0: they are copied */
    /* rows are multiplied where they lie: where their pieces begin; NULL: they are not */
    const int64_t *indirect_at;
    /* of each row a bit for each piece that is outside; NULL: none ever is */
    const uint32_t *indirect_outside;
};
struct hone_dwconv_int { /* both operands know N: depthwise, channels last */
    const hone_dwconv_i8 *kernel;
    int64_t stride; /* pixels share their windows' columns, so many further each; 0: they do not; */
    /* and are so small that two that follow on are taken as one: how many from each on may be; or NULL */
    const uint8_t *pairs;
    bool below; /* and the rows of the image share rows of the window: two rows at once */
};

/* Is all of B's zero point nothing, as the kernel sees it? */
bool hone_contract_int_plain(const hone_contract *, void *const *at, const hone_standing *, int64_t n0,
                             int64_t n);
int32_t hone_contract_int_zero(const hone_contract *, bool a, void *const *at, const hone_standing *,
                               int64_t k); /* as the kernel sees it */
/* A's zero point as it is */
int hone_contract_int_outside(const hone_contract *, void *const *at, const hone_standing *);
/* contract_dwconv_int.c: the same where both operands know N */
void hone_dwconv_int_choose(hone_arena *, hone_contract *);
size_t hone_dwconv_int_bytes(const hone_contract *);
void hone_dwconv_int_fill(const hone_contract *, const uint8_t *source, void *panels);
void hone_dwconv_int_step(hone_contract *, hone_step *);
/* contract_int.c: the same on 8 bits */
void hone_contract_int_fill(const hone_contract *, bool a, const uint8_t *source, void *panels);
void hone_contract_int_blocks(hone_contract *, int threads);
void hone_contract_int_step(hone_contract *, hone_step *);
/* whether K is taken by dot4 groups; false: no memory */
bool hone_contract_int_dot4(hone_arena *, hone_contract *);
static inline int64_t hone_contract_int_depth(const hone_contract *d) {
    return d->i8->dot4_groups ? 4 * d->i8->dot4_groups : d->of.k;
}
static inline int64_t hone_contract_int_deep(const hone_contract *d) { /* of whole steps of the kernel */
    return (hone_contract_int_depth(d) + d->i8->kernel->deep - 1) / d->i8->kernel->deep * d->i8->kernel->deep;
}
static inline int64_t hone_contract_int_groups(const hone_contract *d) {
    return hone_contract_int_deep(d) / 4;
}
/* contract_int_indirect.c: whether rows are multiplied where they lie (false: no memory), and their product
   with n columns */
bool hone_contract_int_indirect(hone_arena *, hone_contract *);
void hone_contract_int_indirect_run(const hone_contract *, const uint8_t *a, int64_t m0, int64_t m,
                                    const uint8_t *beyond, const uint8_t *b, int64_t n, int32_t *c,
                                    ptrdiff_t stride);
/* contract_int_pack.c: row m of A in one piece, where it lies or in `line`; rows of A and columns of B in
   panels; sums of a panel's columns */
const uint8_t *hone_contract_int_row(const hone_contract *, const uint8_t *a, const hone_standing *,
                                     int64_t m, int outside, uint8_t *line);
void hone_contract_int_pack_a(const hone_contract *, const uint8_t *a, const hone_standing *, int64_t m0,
                              int64_t m, int outside, uint8_t *panels, int32_t *sum, uint8_t *line);
void hone_contract_int_pack_b(const hone_contract *, const uint8_t *b, int64_t n0, int64_t nt, int outside,
                              uint8_t *panels, uint8_t *line);
void hone_contract_int_column_sums(const hone_contract *, const uint8_t *panel, int32_t *sum);
void hone_contract_int_pack_step(const hone_contract *, hone_step *);
#endif
