/* SPDX-License-Identifier: Apache-2.0
   target: what a device says of itself before a graph is compiled for it and plans are made: its memory, and
   how it likes tensors to lie there. All 0: as the host's memory, and every tensor row-major. Here and not in
   device/, because passes ask it. */
#ifndef HONE_IR_TARGET_H
#define HONE_IR_TARGET_H
#include "base/dtype.h"

typedef struct {
    size_t alignment; /* of a block in an allocation, a power of 2; 0: 64 */
    size_t largest;   /* bytes of one allocation; 0: what there is */
    /* A bit (1 << hone_dtype) for each type in whose convolutions channels should be last in memory (NHWC),
       and so in all that is made of their results element by element, by pools, sums and joins. Where a
       session asks for a precision, tensors of f32 and of bytes, which are quantized ones, count as that
       (not on the CPU). No bit: NCHW, as the model has it. */
    uint64_t channels_last;
    /* Likewise for products of one tensor with constant matrices that should be one product. */
    uint64_t abreast;
    /* Likewise for products of quantized factors that should be products of this type: factors are
       dequantized before, and sums quantized behind. */
    uint64_t floats;
    bool bytes; /* but for those that its units multiply as bytes */
} hone_target;
static inline bool hone_target_wants_last(const hone_target *t, hone_dtype d) {
    return t->channels_last >> d & 1;
}
static inline bool hone_target_wants_floats(const hone_target *t, hone_dtype d) { return t->floats >> d & 1; }
static inline bool hone_target_wants_bytes(const hone_target *t) { return t->bytes; }
static inline bool hone_target_wants_abreast(const hone_target *t, hone_dtype d) {
    return t->abreast >> d & 1;
}
#endif
