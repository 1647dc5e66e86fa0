/* SPDX-License-Identifier: Apache-2.0
   peak: see peak.h. Chains of multiply-adds in registers, enough of them that every unit is busy while each waits for its last result; and
   memcpy between buffers larger than most caches. The best of a few rounds counts: others use the machine too. */
#include "run/peak.h"

#include <sched.h>
#include <string.h>

#include "base/mem.h"
#include "base/thread.h"

enum { STEPS = 20000 /* of each chain */, CALLS = 10, ROUNDS = 24, COPIES = 3, PIECES = 16, COPY_BYTES = 96 << 20 };

/* Runs the chains, returns the operations done; `sink` keeps the result, so that it must be computed. One variable a chain, by name: so they are
   registers in any compiler. */
typedef double chains_fn(float *sink);
#define EACH12(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define EACH24(X) EACH12(X) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23)
#define BEGIN(k) a##k = SET(k + 1.0f),
#define STEP(k) a##k = FMA(a##k, m, b);
#define JOIN(k) m = FMA(a##k, m, b);
#define CHAINS(each, n)                                  \
    VECTOR each(BEGIN) m = SET(0.999f), b = SET(0.001f); \
    for (int s = 0; s < STEPS; s++) { each(STEP) }       \
    each(JOIN) STORE(sink, m);                           \
    return 2.0 * STEPS * (n) * (double)(sizeof(VECTOR) / sizeof(float))

#if defined(__x86_64__)
#include <immintrin.h>
#define VECTOR __m128
#define SET _mm_set1_ps
#define FMA(a, m, b) _mm_add_ps(_mm_mul_ps(a, m), b)
#define STORE _mm_storeu_ps
static double chains_sse(float *sink) { CHAINS(EACH12, 12); }
#undef VECTOR
#undef SET
#undef FMA
#undef STORE
#define VECTOR __m256
#define SET _mm256_set1_ps
#define FMA _mm256_fmadd_ps
#define STORE _mm256_storeu_ps
__attribute__((target("avx2,fma"))) static double chains_avx2(float *sink) { CHAINS(EACH12, 12); }
#undef VECTOR
#undef SET
#undef FMA
#undef STORE
#define VECTOR __m512
#define SET _mm512_set1_ps
#define FMA _mm512_fmadd_ps
#define STORE _mm512_storeu_ps
__attribute__((target("avx512f"))) static double chains_avx512(float *sink) { CHAINS(EACH24, 24); }
static chains_fn *best_chains(void) {
    return hone_cpu() & HONE_CPU_AVX512 ? chains_avx512 : hone_cpu() & HONE_CPU_AVX2 ? chains_avx2 : chains_sse;
}
#elif defined(__aarch64__)
#include <arm_neon.h>
#define VECTOR float32x4_t
#define SET vdupq_n_f32
#define FMA(a, m, b) vfmaq_f32(b, a, m)
#define STORE vst1q_f32
static double chains_neon(float *sink) { CHAINS(EACH24, 24); }
static chains_fn *best_chains(void) { return chains_neon; }
#else
#define VECTOR float
#define SET(x) (x)
#define FMA(a, m, b) ((a) * (m) + (b))
#define STORE(to, v) (*(to) = (v))
static double chains_plain(float *sink) { CHAINS(EACH12, 12); }
static chains_fn *best_chains(void) { return chains_plain; }
#endif

typedef struct {
    hone_barrier barrier;
    atomic_bool ready; /* the barrier is */
    chains_fn *chains;
    char *to, *from; /* COPY_BYTES each, or NULL */
    hone_peak best;
} measuring;

static void member(void *arg, int me, int members) {
    measuring *w = arg;
    float sink[16] = {0};
    volatile float keep;
    if (me == 0) {
        hone_barrier_init(&w->barrier, members);
        w->best.threads = members;
        atomic_store(&w->ready, true);
    }
    while (!atomic_load(&w->ready)) sched_yield();
    size_t share = COPY_BYTES / (size_t)members, at = share * (size_t)me;
    if (w->to) memset(w->to + at, 1, share), memset(w->from + at, 2, share); /* the system's pages, near who will use them */
    for (int round = 0; round < ROUNDS; round++) {
        hone_barrier_wait(&w->barrier);
        uint64_t begun = hone_clock_ns();
        double done = 0;
        for (int k = 0; k < CALLS; k++) done += w->chains(sink);
        keep = sink[0];
        hone_barrier_wait(&w->barrier);
        double rate = done * members / ((double)(hone_clock_ns() - begun) * 1e-9);
        if (me == 0 && rate > w->best.f32_flops_per_s) w->best.f32_flops_per_s = rate;
    }
    (void)keep;
    /* Piece by piece, each timed: it is long out of the caches when its turn comes again, and some piece meets no other process. */
    size_t piece = share / PIECES;
    for (int round = 0; round < COPIES * PIECES && w->to; round++) {
        size_t from = at + piece * (size_t)(round % PIECES);
        hone_barrier_wait(&w->barrier);
        uint64_t begun = hone_clock_ns();
        memcpy(w->to + from, w->from + from, piece);
        hone_barrier_wait(&w->barrier);
        double rate = (double)(piece * (size_t)members) / ((double)(hone_clock_ns() - begun) * 1e-9);
        if (me == 0 && rate > w->best.copy_bytes_per_s) w->best.copy_bytes_per_s = rate;
    }
}
hone_peak hone_peak_measure(int threads) {
    measuring w = {.chains = best_chains()};
    w.to = hone_alloc_raw(COPY_BYTES), w.from = hone_alloc_raw(COPY_BYTES);
    if (!w.to || !w.from) hone_free(w.to), hone_free(w.from), w.to = w.from = NULL;
    hone_team_run(threads, member, &w);
    hone_free(w.to), hone_free(w.from);
    return w.best;
}
