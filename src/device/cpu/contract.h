/* SPDX-License-Identifier: Apache-2.0
   contract: a bound matrix multiplication. contract.c finds it in a program, contract_run.c computes it. Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_CONTRACT_H
#define HONE_DEVICE_CPU_CONTRACT_H
#include <string.h>

#include "device/cpu/epilogue.h"
#include "kernels/gemm.h"
#include "kernels/gemm_half.h"

enum { HONE_CONTRACT_KC = 2048 }; /* the most of K at a time */
typedef struct {                  /* what is taken away from a factor of 8 bits */
    int tensor;                   /* -1: nothing */
    bool is_signed;
    int64_t c, *at, by_batch[MAX_BATCH]; /* at: along M for A, along N for B; NULL: the same all along */
    bool in_row;                         /* at[k] is k */
} hone_zero_point;
typedef struct {
    hone_slots_of slots;
    hone_affine_load a, b;
    int first_tensor; /* in a recurrence: what step 0 reads instead of A, and from where; -1: nothing else */
    int64_t first_at;
    int64_t over_a, over_b, over_out; /* how addresses move with the over index */
    hone_dtype stored_a, stored_b;    /* constants that are f16 or bf16 until they are packed; 0: f32 */
    float alpha;
    int64_t m, n, k, batch;
    int group_n[MAX_SLOTS], n_n, first_m; /* slots of N; rows begin at this one */
    bool columns_known;                   /* B is constant */
    /* offsets in elements: a group's flattened position → where */
    int64_t *at_m_a, *at_m_domain, *at_k_a, *at_k_b, *at_m_out;
    /* batches: a few indices; how addresses move with each, and an operand's own number of a batch (radix 0: it does not know the index) */
    int n_batch;
    int64_t batch_extent[MAX_BATCH], batch_a, batch_b;
    struct {
        int64_t a, b, domain, out, radix_a, radix_b, edge[MAX_BOUNDED]; /* edge: A's window */
    } by[MAX_BATCH];
    /* N as rows × run: along a run B's address moves by run_step */
    int64_t rows, run, run_step, *at_row_b;
    int64_t *at_m_a_bounded[MAX_BOUNDED], *at_k_a_bounded[MAX_BOUNDED]; /* A's window, where A has one */
    int64_t *at_k_bounded[MAX_BOUNDED], *at_row_bounded[MAX_BOUNDED], run_bounded[MAX_BOUNDED];
    /* rows of A as pieces of K: `taps` pieces of `piece` values that lie in a row; piece 0: they lie in no such order: found one by one where that pays (`strewn`), else copied */
    int64_t taps, piece;
    bool strewn;
    int64_t low_k[MAX_BOUNDED],
        high_k[MAX_BOUNDED]; /* A's window: where its places begin and end, so that most rows are seen to be inside at once */
    const hone_gemm_f32 *kernel;
    const hone_depthwise_rows *each; /* both operands know N: depthwise, channels last; or NULL */
    bool direct;                     /* the kernel finishes its rows itself and writes them where they belong */
    /* factors of 8 bits (contract_int.c): sums in i32, each factor less its zero point. flip: over every byte of an operand, so that it is what the kernel takes */
    bool bytes;
    const hone_gemm_i8 *kernel_i8;
    hone_gemm_i8_fn *run_i8;          /* its form for these operands, */
    bool a_signed, b_signed;          /* which takes these */
    int64_t m_run, k_run;             /* how long the last index of rows is, and of K */
    int64_t stride_i8;                /* depthwise: pixels share their windows' columns, so many further each; 0: they do not */
    int64_t out_apart;                /* so far are the bytes that are made of them; 0: it varies */
    const uint8_t *pairs_i8;          /* and are so small that two that follow on are taken as one: how many from each on may be; or NULL */
    bool below_i8;                    /* and the rows of the picture share rows of the window: two rows at once */
    const hone_depthwise_i8 *each_i8; /* both operands know N: depthwise, channels last; or NULL */
    int64_t at_once_m, at_once_n;     /* rows and columns whose sums wait in scratch together, */
    int64_t packed_m;                 /* and rows of A that are copied together */
    /* rows that lie in no pieces (a first layer's few channels): K in groups of at most four bytes that follow on; 0: they are not so taken */
    int64_t fours, *four_at, *four_own; /* where each group is, and in a row that was copied; */
    int64_t *in_fours;                  /* each value of K among them */
    uint32_t *four_mask;                /* which bytes of a group are some */
    const uint8_t *lies; /* how many rows from each on are read where they lie: all inside, equally apart, with bytes behind; or NULL */
    const uint8_t
        *four_whole;       /* of each row: all of its groups are inside, and behind them as many bytes as are read; NULL: a batch decides */
    int64_t lies_end;      /* rows that begin behind have too few bytes behind */
    int64_t rows_apart;    /* rows of A are taken as they lie, so many bytes apart; 0: they are copied */
    const int64_t *tap_at; /* rows are multiplied where they lie (contract_int_taps.c): where their pieces begin; NULL: they are not */
    const uint32_t *tap_outside; /* of each row a bit for each piece that is outside; NULL: none ever is */
    uint32_t *outside; /* a bit for each value of K of each row: it is outside A's window. NULL: there are too many, or a batch moves it */
    int64_t k_order;   /* the order of K's indices, which packed weights have too */
    const hone_epilogue *levels;
    uint8_t flip_a, flip_b;
    hone_zero_point zero_a, zero_b;
    /* factors rounded to bf16 or f16 (contract_half.c); or NULL. Rows of A: so many values lie in a row, so many are inside a window together */
    const hone_gemm_half *half;
    int64_t run_a, unit_a;
    int64_t apart_a;                 /* rows are all of K in a row, so far apart, and of whole steps of the kernel; 0: they are not */
    const hone_depthwise_rows *ends; /* what finishes rows of sums */
    struct
    { /* a window that moves pixel by pixel (contract_window.c): a tile's pixels are kept once, in lines of `pitch`, and its results, `run` a line, are rows of that */
        int64_t lines, run, pitch, high, line; /* lines of results a tile, 0: it is not so; of pixels so many more, so far apart in A */
        int64_t rows, pixels;                  /* the kernel's rows of a tile, and pixels that these see */
        int64_t slice, slices, deep,
            *at; /* channels lie in slices; of K in panels; where its parts, a slice at a place of the window, begin */
    } window;
    struct { /* few channels (contract_stem.c): rows are `taps` runs of `wide` values of a copy of A in bf16, of lines of `pitch` values */
        int64_t lines; /* of results a tile; 0: it is not so */
        int64_t run, tall, right,
            down; /* results of a line, and the kernel's rows for them; pixels from one to the next, lines from a line to the next */
        int64_t taps, wide, deep, *at;     /* deep: of K in panels; at: where taps begin, from a row's first */
        int64_t pitch, height, channels;   /* of the copy: values a line, lines, values a pixel, of which these are A's: */
        int64_t own, channel, line, pixel; /* how far apart its channels, lines and pixels are */
        int64_t y0, x0, high, across;      /* the copy's first line and pixel are these of A, which has so many */
    } stem;
    int64_t *place;  /* of a value of K, in a panel; NULL: its own */
    int rounded;     /* ref of all of A as halves, rounded by a step before; 0: none */
    int64_t all_a;   /* how many values that are */
    uint64_t halves; /* tensors that may be stored as bf16: A, the residual, the result */
    int mr, nr;
    int64_t mt, nt, kc;     /* a tile, and how much of K at a time */
    bool blocks;            /* the kernel takes rows by blocks, many at a call; */
    int64_t band;           /* so many rows of a tile meet all panels before others do */
    int packed_a, packed_b; /* refs of constant operands, A in rows (bytes: in panels), B in panels; 0: none (never the first tensor) */
    int shared;             /* ref of B as a step before has packed it once, for all blocks of rows; 0: none */
    int out;                /* tensor that is written */
    hone_simple *simple;    /* what follows, where it is of the common form, */
    const hone_tilecode *epilogue; /* else this; both NULL: nothing follows */
    int n_ref;
    size_t c_bytes, a_bytes, b_bytes, line_bytes, at_bytes, turned_bytes,
        gate_bytes; /* of scratch; turned: 0 where the kernel takes rows as they lie; gate: 0 where nothing meets an activation of panels */
    struct {        /* rows of A are scaled by value of K while they are turned, or copied (ahead.c) */
        bool is;
        int s, b; /* refs; b: or -1 */
        int64_t s_c, b_c;
        float lo, hi;
    } ahead;
    struct hone_winograd *winograd; /* a convolution by tiles (winograd.h); or NULL */
    struct hone_planes *planes;     /* a convolution of few channels (planes.h); or NULL */
    int way;                        /* wisdom said which: 0 nothing, else 1 the sum itself, more: tiles of so many results a side */
    struct {                        /* depthwise, channels last, by lines of `run` results (contract_lines.c); 0: it is not so */
        const struct hone_lines *kernel;
        int64_t run, pitch, out_pitch, residual_pitch;
        int across, step, ahead;
        int bound; /* which of A's bounds is about columns, or -1 */
        int down;  /* rows of the picture from a line to the next, 0: they do not lie evenly */
    } lines;
    /* depthwise */
    const hone_depthwise_f32 *plane;
    hone_depthwise_shape shape;
    int64_t plane_rows; /* output rows a tile */
    int64_t plane_step; /* from pixel to pixel of a row; 1 but for bytes that lie channels last */
} hone_contract;

/* at[c] = from + c * step: two at a time */
static inline void hone_ladder(const uint8_t **at, const uint8_t *from, int64_t step, int64_t n) {
    typedef uintptr_t two __attribute__((vector_size(2 * sizeof(uintptr_t))));
    two v = {(uintptr_t)from, (uintptr_t)from + (uintptr_t)step};
    int64_t c = 0;
    for (; c + 2 <= n; c += 2, v += 2 * (uintptr_t)step) memcpy(at + c, &v, sizeof v);
    if (c < n) at[c] = from + c * step;
}

/* Where a batch stands: its indices, offsets of operands, domain and result, and the operands' own numbers of it. */
typedef struct {
    int64_t index[MAX_BATCH], a, b, domain, out, own_a, own_b, edge[MAX_BOUNDED];
} hone_standing;
hone_standing hone_contract_stand(const hone_contract *, int64_t batch);
int64_t hone_contract_own(const hone_contract *, int64_t number, bool a); /* where an operand's own batch begins */
/* Rows m0 … m0+m-1 of A, all of K, one after another. The standing says where A's window is; NULL where it has none. */
void hone_contract_pack_a(const hone_contract *, const void *a, const hone_standing *, int64_t m0, int64_t m, float *rows);
/* contract_pack.c: does a load know an index? May an operand be packed ahead, as this ref? Its packed operands are noted in the recipe. */
bool hone_contract_knows(const hone_affine_load *, int slot);
bool hone_contract_packable(const hone_cpu_call *, const hone_contract *, bool a, int ref);
size_t hone_contract_packed_bytes(const hone_contract *, bool a); /* of an operand in panels, all batches */
hone_status hone_contract_keep_packed(hone_recipe_maker *, const hone_contract *) HONE_CHECKED;
/* columns n0 … n0+nt-1 into panels of nr, the last one of as many whole vectors as it needs; panels are `apart` slices of nr apart, and kc of them are written
   from the first. line: room for nt values, or NULL for one panel. */
/* Element k of a constant that is f32 (0) or halves. */
static inline float hone_contract_widened(hone_dtype stored, const void *at, int64_t k) {
    return stored ? hone_dtype_load(stored, hone_element(at, true, k)).f32 : ((const float *)at)[k];
}
void hone_contract_pack_b(const hone_contract *, const void *b, int64_t n0, int64_t nt, int64_t k0, int64_t kc, int64_t apart,
                          float *panels, float *line);
/* Columns n0 … n0+n-1 of slice k of B in a row: elements of `size` bytes, `outside` in every byte of those outside. */
void hone_contract_gather(const hone_contract *, const void *b, int64_t k, int64_t n0, int64_t n, size_t size, int outside, void *line);
/* Is all of B's zero point nothing, as the kernel sees it? */
bool hone_contract_int_plain(const hone_contract *, void *const *at, const hone_standing *, int64_t n0, int64_t n);
int32_t hone_contract_int_zero(const hone_contract *, bool a, void *const *at, const hone_standing *,
                               int64_t k);                                                    /* as the kernel sees it */
int hone_contract_int_outside(const hone_contract *, void *const *at, const hone_standing *); /* A's zero point as it is */
/* contract_depthwise_int.c: the same where both operands know N */
void hone_depthwise_int_choose(hone_arena *, hone_contract *);
size_t hone_depthwise_int_bytes(const hone_contract *);
void hone_depthwise_int_fill(const hone_contract *, const uint8_t *source, void *panels);
void hone_depthwise_int_step(hone_contract *, hone_step *);
/* Finished rows m0 … m0+m-1, columns n0 … n0+n-1, in c (f32, or i32 with `less` to be taken away from each row first; NULL: nothing) with the given stride. */
hone_status hone_contract_finish(const hone_contract *, void *const *at, int64_t over, const hone_standing *, int64_t m0, int64_t m,
                                 int64_t n0, int64_t n, void *c, int64_t stride, const int32_t *less, void *scratch) HONE_CHECKED;
static inline int64_t hone_contract_columns(const hone_contract *d) { /* N in whole vectors */
    return (d->n + d->kernel->vector - 1) / d->kernel->vector * d->kernel->vector;
}
/* Whether rows of A are to be turned where the kernel can (kernels/gemm.h): it costs as much as a panel or two, but makes one piece of several. The widest panels are
   for rows as they lie. */
static inline bool hone_contract_turns(const hone_contract *d) {
    const bool wide = d->nr > d->kernel->wide * d->kernel->vector;
    return d->kernel->turn && d->m > HONE_GEMM_FEW && !wide && (d->n >= (d->taps > 1 ? 16 : 32) || d->strewn);
}
/* Rows as they lie that stay in L1 while all panels pass, which then come from L2: less than rows would, where there are enough of them. Else all of a tile. */
static inline int64_t hone_contract_band(const hone_contract *d) {
    enum { ROWS_L1 = 20480 };
    const int64_t k = d->k < d->kc ? d->k : d->kc, rows = ROWS_L1 / (4 * k) / d->mr * d->mr;
    return rows >= 4 * d->mr && rows < d->mt ? rows : d->mt;
}
/* Multiply-adds of a lane of f32 in a nanosecond, about: narrow vectors come with more units. */
static inline int hone_contract_lane(const hone_contract *d) { return d->kernel->vector == 4 ? 8 : 4; }
/* Rows that a kernel has just finished get the activation that follows. */
static inline void hone_contract_activate(const hone_contract *d, const hone_gemm_part *p) {
    if (d->simple && d->simple->activate) d->simple->activate(p->c, p->c_from, p->m, p->n, d->simple->alpha, d->simple->beta);
}
/* What follows an activation of a kernel's rows m …, columns n0 …: the row that is added later may lie where the kernel writes, so it is kept before. */
enum { HONE_CONTRACT_KEPT = 64 }; /* columns of a panel, at most */
void hone_contract_keep(const hone_contract *, void *const *at, const hone_standing *, int64_t m, int64_t n0, const hone_gemm_part *,
                        float *kept);
void hone_contract_then(const hone_contract *, void *const *at, const hone_standing *, const hone_gemm_part *, const float *kept);
/* contract_blocks.c: nr and mr; then mt, nt and kc, for so many threads */
void hone_contract_panel(hone_contract *, int threads);
void hone_contract_blocks(hone_contract *, int threads);
void hone_contract_pack_step(const hone_contract *, hone_step *);
void hone_contract_step(hone_contract *, hone_step *);
/* contract_plane.c */
bool hone_contract_plane(hone_contract *); /* fills shape; false: not one plane a batch */
void hone_contract_plane_step(hone_contract *, hone_step *);
/* contract_run.c */
const hone_contract *hone_contract_plain(const hone_step *); /* that of a step of contract_run.c's own; NULL: it is another step */
/* Tile `number`, at step `over` of a recurrence (0 elsewhere). at: one address a ref; half: those that are stored as bf16 (hone_step). */
hone_status hone_contract_tile(const hone_contract *, void *const *at, uint64_t half, int64_t number, int64_t over,
                               void *scratch) HONE_CHECKED;
/* A's window: is value k of row m inside; are all of them */
bool hone_contract_inside(const hone_contract *, const hone_standing *, int64_t m, int64_t k);
bool hone_contract_all_inside(const hone_contract *, const hone_standing *, int64_t m);
uint32_t *hone_contract_outside(hone_arena *, const hone_contract *); /* d->outside, or NULL */
/* Where a tile's rows lie and what the kernel does at their ends, where it does it itself. */
typedef struct {
    const float **a, **residual;
    float **c, **sums, *bias_m; /* sums: until K is done, in scratch: what is written may lie on the residual */
} hone_contract_lists;
static inline void hone_contract_halves(const hone_contract *d, uint64_t half, hone_gemm_part *p) {
    p->a_half = half >> d->a.tensor & 1, p->c_half = half >> d->out & 1;
    p->residual_half = d->simple && d->simple->residual.tensor >= 0 && (half >> d->simple->residual.tensor & 1);
}
void hone_contract_ends(const hone_contract *, void *const *at, int64_t over, const hone_standing *, int64_t m0, int64_t m,
                        hone_gemm_part *, const hone_contract_lists *);
/* contract_lines.c: whether it goes by lines, when all else is chosen; and where these tensors are stored as bf16; a tile of it */
void hone_lines_choose(hone_contract *);
bool hone_lines_takes(const hone_contract *, uint64_t half);
void hone_lines_fill(const hone_contract *, const void *source,
                     float *panels); /* weights of any depthwise that lies channels last: rows of all channels */
void hone_lines_tile(const hone_contract *, void *const *at, uint64_t half, int64_t number);
/* contract_half.c: factors rounded to a half. choose: false where precision is none, or it does not pay; panels of B: how many bytes, and their filling from the
   weights */
bool hone_contract_half_choose(hone_arena *, hone_contract *, const hone_how *);
size_t hone_contract_half_bytes(const hone_contract *);
void hone_contract_half_fill(const hone_contract *, const void *source, void *panels);
/* contract_stem.c: is it one, with all that it needs (bf16, after the kernel is chosen)? The step that makes its copy. */
bool hone_stem_choose(hone_arena *, hone_contract *);
void hone_stem_copy(hone_contract *, hone_part *);
/* contract_window.c: is it one, by about so many rows? The pixels that rows from m0 on see. */
void hone_window_choose(hone_arena *, hone_contract *, int64_t most);
void hone_window_take(const hone_contract *, const float *a, bool half, int64_t m0, uint16_t *to);
/* A step before, where rows of A are to be put together of short pieces: rounds all of it once, or makes a stem's copy. */
hone_status hone_contract_half_before(hone_recipe_maker *, const hone_cpu_call *, hone_contract *, uint64_t *uses) HONE_CHECKED;
void hone_contract_half_step(hone_contract *, hone_step *);
/* contract_int.c: the same on 8 bits */
void hone_contract_int_fill(const hone_contract *, bool a, const uint8_t *source, void *panels);
void hone_contract_int_blocks(hone_contract *, int threads);
void hone_contract_int_step(hone_contract *, hone_step *);
bool hone_contract_int_fours(hone_arena *, hone_contract *); /* whether K is taken by fours; false: no memory */
static inline int64_t hone_contract_int_depth(const hone_contract *d) { return d->fours ? 4 * d->fours : d->k; }
static inline int64_t hone_contract_int_deep(const hone_contract *d) { /* of whole steps of the kernel */
    return (hone_contract_int_depth(d) + d->kernel_i8->deep - 1) / d->kernel_i8->deep * d->kernel_i8->deep;
}
static inline int64_t hone_contract_int_groups(const hone_contract *d) { return hone_contract_int_deep(d) / 4; }
/* contract_int_taps.c: whether rows are multiplied where they lie (false: no memory), and their product with n columns */
bool hone_contract_int_taps(hone_arena *, hone_contract *);
void hone_contract_int_taps_run(const hone_contract *, const uint8_t *a, int64_t m0, int64_t m, const uint8_t *beyond, const uint8_t *b,
                                int64_t n, int32_t *c, ptrdiff_t stride);
/* contract_int_pack.c: row m of A in one piece, where it lies or in `line`; rows of A and columns of B in panels; sums of a panel's columns */
const uint8_t *hone_contract_int_row(const hone_contract *, const uint8_t *a, const hone_standing *, int64_t m, int outside, uint8_t *line);
void hone_contract_int_pack_a(const hone_contract *, const uint8_t *a, const hone_standing *, int64_t m0, int64_t m, int outside,
                              uint8_t *panels, int32_t *sum, uint8_t *line);
void hone_contract_int_pack_b(const hone_contract *, const uint8_t *b, int64_t n0, int64_t nt, int outside, uint8_t *panels, uint8_t *line);
void hone_contract_int_column_sums(const hone_contract *, const uint8_t *panel, int32_t *sum);
void hone_contract_int_pack_step(const hone_contract *, hone_step *);
/* The product of one stage of a recurrence, without epilogue; *out NULL: it is none. begun: whoever runs it says where rows of A are. */
hone_status hone_contract_over(hone_recipe_maker *, const hone_cpu_call *, int stage, bool begun, hone_contract **out, int64_t *tiles,
                               size_t *scratch_bytes) HONE_CHECKED;
#endif
