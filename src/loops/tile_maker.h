/* SPDX-License-Identifier: Apache-2.0
   tile_maker: what the two halves of tile code's maker share: tile_emit.c turns expressions into
   instructions, tile_make.c decides how the stage is walked before and gives registers their buffers after.
   Nobody else includes it. */
#ifndef HONE_LOOPS_TILE_MAKER_H
#define HONE_LOOPS_TILE_MAKER_H
#include "loops/tile_know.h"

typedef struct {
    uint8_t width, level;
    bool varies, kept;
    int last;
    size_t buffer;
} hone_tile_reg; /* kept: its buffer is never another's */
typedef struct {
    hone_knows w;
    hone_arena *arena, *tmp; /* of the code; of what is needed only now */
    const hone_tensor_view *place;
    /* the stage's slots as they are walked: the domain by its target's memory, then the reduced ones */
    int order[HONE_SLOTS];
    int acc_tensor;
    hone_tilecode *code;
    const hone_walk *walk; /* of what is being emitted */
    int fixed_slot[HONE_SLOTS + 1], n_fixed;
    hone_vec(hone_tile_ins) ins;
    hone_vec(hone_form) forms;
    hone_vec(hone_tile_reg) regs;
    hone_vec(int64_t *) affine; /* every affine function that the walk must keep affine */
    struct {
        int reg;
        uint8_t width;
        hone_scalar k;
    } * constant;
    int n_constant;
    int32_t *memo, *memo_guard,
        /* register of each expression, guard (and rawness) it was made under; each register's expansion */
        *expanded;
    int room_expanded;
    hone_status status; /* the first failure; all functions do nothing after it */
} hone_tile_maker;

static inline int hone_tile_width(int bytes) {
    return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : -1;
}
static inline int hone_tile_width_of(int ctype) { return hone_tile_width(hone_ctype_bytes[ctype]); }
int hone_tile_fail(hone_tile_maker *, hone_status); /* -1 */
int hone_tile_no_memory(hone_tile_maker *);         /* -1 */
/* Adds the affine part of an access's byte offset; load NULL: the stage's target. False where it does not fit
   in 64 bits. */
bool hone_tile_address(const hone_tile_maker *, const hone_x *load, int64_t *d);

int hone_tile_new_reg(hone_tile_maker *, int width, int level, bool varies);
/* the register, spread to elements where it holds rows */
int hone_tile_at_level(hone_tile_maker *, int reg, int level);
/* The register that holds expression x. raw: as storage of this dtype holds it, unwidened (only where
   hone_tile_can_move), or NONE. */
int hone_tile_emit(hone_tile_maker *, int32_t x, hone_dtype raw);
bool hone_tile_can_move(const hone_tile_maker *, int32_t x, hone_dtype raw);
void hone_tile_emit_store(hone_tile_maker *, int value, int ctype, hone_dtype raw);

/* tile_join.c: several instructions as one */
void hone_tile_join(hone_tile_maker *, const hone_tilecode *);
#endif
