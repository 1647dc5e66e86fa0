/* SPDX-License-Identifier: Apache-2.0
   activation: functions of one number that follow a sum in so many networks that they have names: recognition
   finds them (loops/match_epilogue.h), kernels compute them. */
#ifndef HONE_BASE_ACTIVATION_H
#define HONE_BASE_ACTIVATION_H

/* name, f(x); s is the logistic function 1 / (1 + e^-x) */
#define HONE_ACTIVATIONS(row)                                                                           \
    row(sigmoid)          /* s(x) */                                                                    \
        row(tanh)         /* tanh(x) */                                                                 \
        row(silu)         /* x * s(alpha * x) */                                                        \
        row(hard_sigmoid) /* clamp(alpha * x + beta, 0, 1) */                                           \
        row(hard_swish)   /* x * clamp(alpha * x + beta, 0, 1) */                                       \
        row(gelu)         /* x / 2 * (1 + erf(x / sqrt 2)) */                                           \
        row(gelu_tanh)    /* x * s(alpha * x + beta * x^3): the tanh form, as 1 + tanh(u) is 2 s(2u) */ \
        row(leaky)        /* x < 0 ? alpha * x : x */
typedef enum {
#define ENUM(name) HONE_ACTIVATE_##name,
    HONE_ACTIVATIONS(ENUM)
#undef ENUM
        HONE_ACTIVATE_COUNT /* none of them */
} hone_activation;
#endif
