/* SPDX-License-Identifier: Apache-2.0
   match_epilogue_form: what the parts of the matcher of epilogues share: what is looked at, and the numbers
   in it (match_epilogue_form.c); which activation it is (match_activation.c). */
#ifndef HONE_LOOPS_MATCH_EPILOGUE_FORM_H
#define HONE_LOOPS_MATCH_EPILOGUE_FORM_H
#include "loops/match_epilogue.h"

typedef struct {
    hone_arena *arena;
    const hone_epilogue_query *q;
    bool then; /* as the query says, where it may be */
    int patience;
    /* where it is not a sum of floats that comes in: r is given, and `read` the expression that was found to
       be it, or -1 */
    hone_match_epilogue *r;
    int32_t read;
    const hone_match_epilogue *narrow; /* what makes bytes of a sum of integers, */
    int32_t narrows;                   /* and the expression that it is */
} hone_epilogue_matching;

static inline const hone_x *hone_epilogue_x(const hone_epilogue_matching *m, int32_t x) {
    return m->q->of->instance->x + x;
}
/* The same value: the same expression, or one written twice, as far as some patience goes. */
bool hone_epilogue_same(hone_epilogue_matching *, int32_t x, int32_t y);
/* A load that moves along a row (along_n), or stays the same in it. */
bool hone_epilogue_load(hone_epilogue_matching *, int32_t x, bool along_n, hone_match_number *out);
/* A number that stays the same along a row: a constant, or a load of f32 (or of 8 bits, widened). */
bool hone_epilogue_row_number(hone_epilogue_matching *, int32_t x, hone_match_number *out);
/* What x is an activation of, and which; x itself: of none. */
int32_t hone_epilogue_activation(hone_epilogue_matching *, int32_t x, hone_match_epilogue *r);
/* [times *] an activation [+ plus, or a row], an activation times a row, or an activation that a number is
   the least of: what that is of; x itself where it is no such thing. */
int32_t hone_epilogue_and_then(hone_epilogue_matching *, int32_t x, hone_match_epilogue *r);
extern const hone_match_number hone_epilogue_none; /* no number: -0, which changes no sum */
#endif
