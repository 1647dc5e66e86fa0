/* SPDX-License-Identifier: Apache-2.0
   printed_choice: schedules of printed kernels as choices that a tuner measures and wisdom keeps. A problem
   is the kernels that the rules would print with the numbers that they are launched
   with; a choice is a wish (loops/schedule.h): what is not possible for a stage is not heard there, so every
   choice is right. */
#include <stdio.h>
#include <string.h>

#include "device/printed.h"
#include "device/wisdom.h"

static uint64_t mix(uint64_t h, const void *at, size_t n) {
    for (size_t k = 0; k < n; k++) h = (h ^ ((const unsigned char *)at)[k]) * 0x100000001b3u;
    return h;
}
static uint64_t device_of(hone_printed_gpu *g) { /* wisdom of one GPU is not another's */
    hone_text t = {0};
    g->driver->about(g->gpu, &t);
    const uint64_t h = t.text ? mix(7, t.text, t.n) : 0;
    hone_text_free(&t);
    return h;
}
static void problem_of(const char *row, hone_printed_gpu *g, const hone_kernels *k, hone_problem *p) {
    char name[HONE_PROBLEM_NAME];
    uint64_t texts = 0xcbf29ce484222325u, numbers = texts;
    for (int l = 0; l < k->n_launch; l++) {
        const hone_launch *o = k->launch + l;
        texts = mix(texts, o->name, strlen(o->name)), numbers = mix(numbers, &o->groups, sizeof o->groups);
        for (int a = 0; a < o->n_arg; a++)
            if (o->arg[a].kind == HONE_KARG_I64) numbers = mix(numbers, &o->arg[a].i, sizeof o->arg[a].i);
    }
    *p = (hone_problem){.kind = HONE_PROBLEM_SCHEDULE,
                        /* as long as files take */
                        .number = {(int64_t)(texts >> 17), (int64_t)(numbers >> 17)}};
    snprintf(name, sizeof name, "%.24s-%08x", row, (unsigned)(device_of(g) >> 32));
    hone_problem_name(p, name);
}
hone_status hone_printed_choose(hone_arena *arena, const char *row, hone_printed_gpu *g,
                                const hone_wisdom *wisdom, const hone_instance *in, const hone_param *param,
                                int64_t *stride, hone_kernels *kernels, hone_decision *out) {
    problem_of(row, g, kernels, &out->problem);
    const hone_choice *wise = hone_wisdom_find(wisdom, &out->problem);
    if (!wise) return HONE_OK;
    hone_kernel_target target = g->target;
    out->choice = *wise, out->wise = true;
    target.wish.kind = (int)wise->knob[HONE_SCHEDULE_KIND],
    target.wish.lanes = (int)wise->knob[HONE_SCHEDULE_LANES];
    target.wish.unroll = (int)wise->knob[HONE_SCHEDULE_UNROLL];
    target.wish.vector = (int)wise->knob[HONE_SCHEDULE_VECTOR];
    if (wise->knob[HONE_SCHEDULE_THREADS] && wise->knob[HONE_SCHEDULE_THREADS] < target.wish.max_threads)
        target.wish.max_threads = (int)wise->knob[HONE_SCHEDULE_THREADS];
    return hone_kernels_make(arena, &target, in, param, stride, NULL, kernels);
}
