/* SPDX-License-Identifier: Apache-2.0
   thread: the process's one pool of workers, a barrier, the clock and the CPU probe.

   A run asks for a team: the calling thread plus free workers, perhaps none; all teams together never exceed
   the cores. Every member calls `body(arg, member, members)` once; the team is one run long, and inside it
   members meet at barriers. */
#ifndef HONE_BASE_THREAD_H
#define HONE_BASE_THREAD_H
#include "base/status.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

int hone_cores(void); /* cores this process may use (affinity, cgroup quota) */
/* Runs body on up to `threads` members (0: all cores); returns when all are back. Member 0 is the caller.
   Never fails: with no free worker the caller is alone. */
void hone_team_run(int threads, void (*body)(void *arg, int member, int members), void *arg);
/* The same for work that members take in turn until there is no more, without meeting: when the caller is
   back nothing is left, and who has not begun by then (another process is on its core) is not waited for. */
void hone_team_share(int threads, void (*body)(void *arg, int member, int members), void *arg);
/* Of n pieces of work, how many a thread takes at once: at least `least` (fewer are not worth a meeting), at
   most `most` (which stay in a cache), and so many that all threads have some and are done together. Never
   less than 1. */
int64_t hone_share_of(int64_t n, int64_t least, int64_t most, int threads);
/* joins idle workers; tests and leak checkers. The pool starts again when needed */
void hone_pool_shutdown(void);

/* A barrier that spins (at most about a millisecond) before it sleeps. One line of cache a field; reusable at
   once. */
typedef struct {
    _Alignas(64) atomic_uint arrived;
    _Alignas(64) atomic_uint phase;
    _Alignas(64) unsigned members;
} hone_barrier;
void hone_barrier_init(hone_barrier *, int members);
void hone_barrier_wait(hone_barrier *);
void hone_wait_for(atomic_uint *, unsigned least); /* until another member has made it that */

uint64_t hone_clock_ns(void);        /* monotonic */
uint64_t hone_clock_thread_ns(void); /* that the calling thread has had of a core */

/* What this CPU can do. A mask narrows it, so that tests and bug reports can force a level. */
enum {
    HONE_CPU_NEON = 1 << 0,
    HONE_CPU_FP16 = 1 << 1,
    HONE_CPU_DOTPROD = 1 << 2,
    HONE_CPU_BF16 = 1 << 3,
    HONE_CPU_I8MM = 1 << 4,
    HONE_CPU_SVE = 1 << 5,
    HONE_CPU_FHM = 1 << 6 /* products of f16 added to f32 */,
    HONE_CPU_AVX2 = 1 << 8 /* with FMA and F16C */,
    HONE_CPU_AVX512 = 1 << 9 /* F BW DQ VL */,
    HONE_CPU_VNNI = 1 << 10,
    HONE_CPU_AVX512BF16 = 1 << 11,
    HONE_CPU_AVX512FP16 = 1 << 12,
    HONE_CPU_AMX = 1 << 13 /* tile, int8, bf16; permission asked */
};
uint32_t hone_cpu(void); /* probed once, and masked */
/* UINT32_MAX: all. Also read once from the environment variable HONE_CPU ("baseline", "avx2", "avx512") */
void hone_cpu_mask(uint32_t allowed);
hone_status hone_cpu_check(void) HONE_CHECKED; /* BAD_INPUT where HONE_CPU names no level */
const char *hone_cpu_name(void);               /* "Intel(R) Xeon(R) …" or "" */
#endif
