/* SPDX-License-Identifier: Apache-2.0
   tile_code: what tile code is made of. Shared by its maker (tile_know.c, tile_make.c) and its runner
   (tile_run.c), nobody else.

   A *walk* is a flattened box of indices, its dims collapsed where every address allows. Its last dim is a
   row. Registers are of level 0, one value an element, or of level 1, one value a row: what does not change
   along a row is computed once a row and spread when needed.
   A *form* is an affine function of the walk's coordinates and of the fixed indices (the over index; in mode
   EACH the reduced ones).

   A stage runs in one of three modes:
     MAP    no reduction: tiles of the domain
     EACH   tiles of the domain; the reduced indices are looped over for each tile, accumulators side by side
     ALL    tiles of domain and reduced indices together; each element's values are joined in lanes, then
            stored as a tile of the domain */
#ifndef HONE_LOOPS_TILE_CODE_H
#define HONE_LOOPS_TILE_CODE_H
#include "loops/tile.h"
#include "loops/tile_ops.h"

#define HONE_SLOTS 40 /* indices of one stage */

typedef struct {
    int nd; /* at least 2 */
    int64_t ext[HONE_SLOTS + 2];
    /* the innermost of the stage's indices that make up the dim; -1: a dim of 1 put in front */
    int slot[HONE_SLOTS + 2];
    int64_t n;     /* elements */
    int64_t piece; /* longest tile */
} hone_walk;
typedef struct {
    int64_t c;
    int64_t *coef;        /* a dim of the walk */
    const int64_t *fixed; /* a fixed index */
} hone_form;
typedef struct {
    int form;
    int64_t dim;
} hone_tile_bound; /* 0 <= form < dim */

typedef enum {
    HONE_TILE_OP,     /* dst = op(a, b, c) */
    HONE_TILE_IOTA,   /* dst = form */
    HONE_TILE_EXPAND, /* dst (level 0) = a (level 1) */
    HONE_TILE_LOAD,   /* dst = tensor at form, `other` outside the bounds */
    HONE_TILE_ACC,    /* dst = the caller's values */
    HONE_TILE_MULADD, /* dst = a + b * k */
    HONE_TILE_INSIDE, /* dst = (a or 1) and 0 <= b < k */
    HONE_TILE_CHECK,  /* error where b (-1: everywhere) and not 0 <= a < k */
    HONE_TILE_GATHER, /* dst = tensor at byte offsets a; where b, if b; else c, if c */
    /* dst (level 0) = tensor at byte offsets a (level 1) + form along the row; b (level 1), c as above */
    HONE_TILE_ROWS,
    HONE_TILE_ROUND,  /* dst = a as storage of `dtype` would hold it */
    HONE_TILE_STORE,  /* tensor at form = a */
    HONE_TILE_SCATTER /* tensor at byte offsets b (where c, if c) joined with a */
} hone_tile_kind;
typedef struct {
    uint8_t kind, level;
    uint8_t ctype;        /* compute type of the value */
    uint8_t dtype, bytes; /* storage */
    uint8_t width;        /* logarithm of dst's bytes (STORE, SCATTER, EXPAND: of a's) */
    bool convert;         /* storage and register differ */
    bool flat;            /* form is the walk's own order, dense */
    bool keep;            /* LOAD: dst must be its buffer, not the tensor's memory */
    bool varies;          /* with the reduced indices, in mode EACH */
    bool saturate;
    bool ahead;  /* flat and larger than a cache: the next tile's memory is asked for early */
    uint8_t how; /* hone_store */
    int16_t dim; /* CHECK: of the tensor, for the message */
    int32_t dst, a, b, c;
    int32_t tensor, form, n_bound;
    int64_t k; /* stride, extent */
    const hone_tile_bound *bound;
    hone_scalar other; /* LOAD, ROWS: outside, where c is -1; as the register holds it */
    hone_tile_op *op;
} hone_tile_ins;

typedef enum { HONE_TILE_MAP, HONE_TILE_EACH, HONE_TILE_ALL } hone_tile_mode;
struct hone_tilecode {
    const hone_tile_ops *ops;
    const hone_instance *instance;
    hone_tile_mode mode;
    hone_walk walk; /* of the instructions before `tail` */
    hone_walk out;  /* of those from `tail` on; MAP, EACH: the same */
    const hone_tile_ins *ins;
    /* EACH: [0, head) once a tile, [head, tail) for every reduced index; [tail, n_ins) after the reduction */
    int head, tail, n_ins;
    const hone_form *form;
    int n_form;
    /* registers: buffer of each in scratch; constants are filled in once a run */
    const size_t *buffer;
    int n_reg;
    struct {
        int reg;
        uint8_t width;
        hone_scalar k;
    } const *constant;
    int n_constant;
    /* register that is the target's memory itself (flat store of MAP), or -1 */
    int direct;
    const hone_tile_ins *direct_store; /* it still stands behind the last instruction */
    bool streams;                      /* MAP: the target is larger than caches are, and written past them */
    /* MAP: tiles are boxes of this many rows, because a load runs across them; 0: stretches */
    int64_t box_rows;
    /* the reduction */
    hone_reduce reduce;
    hone_ctype ctype;
    int value, pick, result; /* registers; pick -1 */
    int pick_width;
    int64_t count;   /* reduced elements an element of the domain */
    size_t acc, win; /* scratch: accumulators; winners' mask (ARG) */
    int n_fixed;     /* fixed[0] is the over index; EACH: then the reduced ones */
    const int64_t *fixed_ext;
    /* a piece of work for one thread: at most, at least, in multiples of */
    int64_t elements, grain, least, unit;
    bool whole; /* elements may store to one place: all in order, by one thread */
    /* offsets of tables and a spare tile in scratch, and all of it */
    size_t regs, forms, fixed, spare, scratch;
};
#endif
