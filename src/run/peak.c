/* SPDX-License-Identifier: Apache-2.0
   peak: see peak.h. Chains of multiply-adds in registers, enough of them that every unit is busy while each
   waits for its last result; and memcpy between buffers larger than most caches. The best of many short
   rounds counts: others use the machine too.

   A loop of nothing but multiply-adds can lock onto half of the units: on a Neoverse-V1 24 chains often run
   on two of four pipes, and show exactly half of the peak. So there are several bodies, with other numbers of
   chains and with a load between them, and the best one counts. */
#include "run/peak.h"

#include <sched.h>
#include <string.h>

#include "base/mem.h"
#include "base/thread.h"

enum {
    STEPS = 20000 /* of each chain */,
    CALLS = 3,
    BODIES = 4,
    COPIES = 3,
    PIECES = 16,
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* where no figure says anything */
    ROUNDS = 8,
    COPY_BYTES = 4 << 20
#else
    ROUNDS = 96,
    COPY_BYTES = 96 << 20
#endif
};

/* Runs the chains, returns the operations done; `sink` keeps the result, so that it must be computed. One
   variable a chain, by name: so they are registers in any compiler. */
typedef double chains_fn(float *sink);
#define EACH12(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define EACH16(X) EACH12(X) X(12) X(13) X(14) X(15)
#define EACH20(X) EACH16(X) X(16) X(17) X(18) X(19)
#define EACH24(X) EACH20(X) X(20) X(21) X(22) X(23)
#define BEGIN(k) a##k = SET(k + 1.0f),
#define STEP(k) a##k = FMA(a##k, m, b);
#define JOIN(k) m = FMA(a##k, m, b);
#define CHAINS(each, n, also)                            \
    VECTOR each(BEGIN) m = SET(0.999f), b = SET(0.001f); \
    for (int s = 0; s < STEPS; s++) { each(STEP) also; } \
    each(JOIN) STORE(sink, m);                           \
    return 2.0 * STEPS * (n) * (double)(sizeof(VECTOR) / sizeof(float))

#if defined(__x86_64__)
#include <immintrin.h>
#define VECTOR __m128
#define SET _mm_set1_ps
#define FMA(a, m, b) _mm_add_ps(_mm_mul_ps(a, m), b)
#define STORE _mm_storeu_ps
static double chains_sse(float *sink) { CHAINS(EACH12, 12, (void)0); }
static double chains_sse_load(float *sink) { CHAINS(EACH12, 12, b = *(volatile __m128 *)(sink + 16)); }
#undef VECTOR
#undef SET
#undef FMA
#undef STORE
#define VECTOR __m256
#define SET _mm256_set1_ps
#define FMA _mm256_fmadd_ps
#define STORE _mm256_storeu_ps
__attribute__((target("avx2,fma"))) static double chains_avx2(float *sink) { CHAINS(EACH12, 12, (void)0); }
__attribute__((target("avx2,fma"))) static double chains_avx2_load(float *sink) {
    CHAINS(EACH12, 12, b = *(volatile __m256 *)(sink + 16));
}
#undef VECTOR
#undef SET
#undef FMA
#undef STORE
#define VECTOR __m512
#define SET _mm512_set1_ps
#define FMA _mm512_fmadd_ps
#define STORE _mm512_storeu_ps
__attribute__((target("avx512f"))) static double chains_avx512(float *sink) { CHAINS(EACH24, 24, (void)0); }
__attribute__((target("avx512f"))) static double chains_avx512_16(float *sink) {
    CHAINS(EACH16, 16, (void)0);
}
__attribute__((target("avx512f"))) static double chains_avx512_load(float *sink) {
    CHAINS(EACH20, 20, b = *(volatile __m512 *)(sink + 16));
}
static int bodies(uint32_t cpu, chains_fn **out) {
    if (cpu & HONE_CPU_AVX512)
        return out[0] = chains_avx512, out[1] = chains_avx512_16, out[2] = chains_avx512_load, 3;
    if (cpu & HONE_CPU_AVX2) return out[0] = chains_avx2, out[1] = chains_avx2_load, 2;
    return out[0] = chains_sse, out[1] = chains_sse_load, 2;
}
#elif defined(__aarch64__)
#include <arm_neon.h>
#define VECTOR float32x4_t
#define SET vdupq_n_f32
/* a + m * b: the instruction adds to its target, and the other way round would cost moves */
#define FMA(a, m, b) vfmaq_f32(a, m, b)
#define STORE vst1q_f32
static double chains_neon_24(float *sink) { CHAINS(EACH24, 24, (void)0); }
static double chains_neon_20(float *sink) { CHAINS(EACH20, 20, (void)0); }
static double chains_neon_16(float *sink) { CHAINS(EACH16, 16, (void)0); }
static double chains_neon_load(float *sink) { CHAINS(EACH20, 20, b = *(volatile float32x4_t *)(sink + 16)); }
static int bodies(uint32_t cpu, chains_fn **out) {
    (void)cpu;
    out[0] = chains_neon_24, out[1] = chains_neon_20, out[2] = chains_neon_16, out[3] = chains_neon_load;
    return 4;
}
#else
#define VECTOR float
#define SET(x) (x)
#define FMA(a, m, b) ((a) * (m) + (b))
#define STORE(to, v) (*(to) = (v))
static double chains_plain(float *sink) { CHAINS(EACH12, 12, (void)0); }
static int bodies(uint32_t cpu, chains_fn **out) { return (void)cpu, out[0] = chains_plain, 1; }
#endif

typedef struct {
    hone_barrier barrier;
    atomic_bool ready; /* the barrier is */
    chains_fn *chains[BODIES];
    int bodies;
    char *to, *from; /* COPY_BYTES each, or NULL */
    hone_peak best;
} measuring;

static void member(void *arg, int me, int members) {
    measuring *w = arg;
    _Alignas(64) float sink[32] = {0}; /* what a body stores, and a vector that it may load */
    volatile float keep;
    if (me == 0) {
        hone_barrier_init(&w->barrier, members);
        w->best.threads = members;
        atomic_store(&w->ready, true);
    }
    while (!atomic_load(&w->ready)) sched_yield();
    size_t share = COPY_BYTES / (size_t)members, at = share * (size_t)me;
    /* the system's pages, near who will use them */
    if (w->to) memset(w->to + at, 1, share), memset(w->from + at, 2, share);
    for (int round = 0; round < ROUNDS; round++) {
        hone_barrier_wait(&w->barrier);
        uint64_t begun = hone_clock_ns();
        double done = 0;
        for (int k = 0; k < CALLS; k++) done += w->chains[round % w->bodies](sink);
        keep = sink[0];
        hone_barrier_wait(&w->barrier);
        double rate = done * members / ((double)(hone_clock_ns() - begun) * 1e-9);
        if (me == 0 && rate > w->best.f32_flops_per_s) w->best.f32_flops_per_s = rate;
    }
    (void)keep;
    /* Piece by piece, each timed: it is long out of the caches when its turn comes again, and some piece
       meets no other process. */
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
double hone_peak_round(uint32_t cpu) {
    chains_fn *chains[BODIES];
    const int n = bodies(cpu, chains);
    _Alignas(64) float sink[32] = {0};
    double best = 0;
    for (int k = 0; k < n; k++) {
        const uint64_t begun = hone_clock_ns();
        const double done = chains[k](sink), rate = done / ((double)(hone_clock_ns() - begun) * 1e-9);
        if (rate > best) best = rate;
    }
    volatile float keep = sink[0];
    (void)keep;
    return best;
}
hone_peak hone_peak_measure(int threads) {
    measuring w = {0};
    w.bodies = bodies(hone_cpu(), w.chains);
    w.to = hone_alloc_raw(COPY_BYTES), w.from = hone_alloc_raw(COPY_BYTES);
    if (!w.to || !w.from) hone_free(w.to), hone_free(w.from), w.to = w.from = NULL;
    hone_team_run(threads, member, &w);
    hone_free(w.to), hone_free(w.from);
    return w.best;
}
