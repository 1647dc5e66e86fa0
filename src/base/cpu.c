/* SPDX-License-Identifier: Apache-2.0
   cpu: what this CPU can do and the system lets us do, how many cores we may use, and the clock. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

static char name[80];

#if defined(__x86_64__)
#include <cpuid.h>

typedef struct {
    unsigned a, b, c, d;
} leaf;
static leaf cpuid(unsigned n, unsigned sub) {
    leaf r = {0, 0, 0, 0};
    __get_cpuid_count(n, sub, &r.a, &r.b, &r.c, &r.d);
    return r;
}
static bool bit(unsigned word, int n) { return word >> n & 1; }

/* The tile registers are large: Linux gives them only to a process that asks. */
static bool ask_for_amx(void) {
    enum { REQUEST = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

static uint32_t probe(void) {
    leaf one = cpuid(1, 0), seven = cpuid(7, 0), more = cpuid(7, 1);
    uint32_t has = 0;
    for (unsigned i = 0; i < 3; i++) {
        leaf part = cpuid(0x80000002u + i, 0);
        memcpy(name + 16 * i, &part, 16);
    }
    if (!bit(one.c, 27)) return 0; /* no OSXSAVE: the system saves no wide register */
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    bool ymm = (low & 0x6) == 0x6, zmm = (low & 0xe6) == 0xe6, tiles = (low & 0x60000) == 0x60000;
    /* AVX FMA F16C AVX2 */
    if (ymm && bit(one.c, 28) && bit(one.c, 12) && bit(one.c, 29) && bit(seven.b, 5)) has |= HONE_CPU_AVX2;
    if (!(has & HONE_CPU_AVX2) || !zmm || !bit(seven.b, 16) || !bit(seven.b, 17) || !bit(seven.b, 30) ||
        !bit(seven.b, 31))
        return has;
    has |= HONE_CPU_AVX512;
    if (bit(seven.c, 11)) has |= HONE_CPU_VNNI;
    if (bit(more.a, 5)) has |= HONE_CPU_AVX512BF16;
    if (bit(seven.d, 23)) has |= HONE_CPU_AVX512FP16;
    /* bf16 tile int8 */
    if (tiles && bit(seven.d, 22) && bit(seven.d, 24) && bit(seven.d, 25) && ask_for_amx())
        has |= HONE_CPU_AMX;
    return has;
}
#elif defined(__aarch64__)
#include <sys/auxv.h>

/* The kernel's bit numbers, which older headers lack. */
static const struct {
    int word, bit;
    uint32_t feature;
} bits[] = {{AT_HWCAP, 1, HONE_CPU_NEON},  {AT_HWCAP, 10, HONE_CPU_FP16}, {AT_HWCAP, 20, HONE_CPU_DOTPROD},
            {AT_HWCAP, 22, HONE_CPU_SVE},  {AT_HWCAP, 23, HONE_CPU_FHM},  {AT_HWCAP2, 13, HONE_CPU_I8MM},
            {AT_HWCAP2, 14, HONE_CPU_BF16}};

/* Arm's Linux prints no model name, only numbers. */
static const struct {
    unsigned maker, part;
    const char *name;
} parts[] = {{0x41, 0xd03, "Cortex-A53"},  {0x41, 0xd05, "Cortex-A55"},  {0x41, 0xd08, "Cortex-A72"},
             {0x41, 0xd0b, "Cortex-A76"},  {0x41, 0xd0c, "Neoverse-N1"}, {0x41, 0xd40, "Neoverse-V1"},
             {0x41, 0xd41, "Cortex-A78"},  {0x41, 0xd49, "Neoverse-N2"}, {0x41, 0xd4f, "Neoverse-V2"},
             {0x41, 0xd84, "Neoverse-V3"}, {0x41, 0xd8e, "Neoverse-N3"}, {0xc0, 0xac3, "Ampere-1"}};

static uint32_t probe(void) {
    uint32_t has = 0;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        if (getauxval((unsigned long)bits[i].word) >> bits[i].bit & 1) has |= bits[i].feature;
    unsigned maker = 0, part = 0;
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "CPU implementer : %x", &maker);
        sscanf(line, "CPU part : %x", &part);
    }
    if (f) fclose(f);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].maker == maker && parts[i].part == part)
            snprintf(name, sizeof name, "%s", parts[i].name);
    return has;
}
#else
static uint32_t probe(void) { return 0; }
#endif

/* Levels a user may force by the variable HONE_CPU; each allows what stands in its row. */
static const struct {
    const char *name;
    uint32_t allowed;
} levels[] = {{"baseline", HONE_CPU_NEON},
              {"avx2", HONE_CPU_NEON | HONE_CPU_AVX2},
              {"avx512", HONE_CPU_NEON | HONE_CPU_AVX2 | HONE_CPU_AVX512},
              {"vnni", HONE_CPU_NEON | HONE_CPU_AVX2 | HONE_CPU_AVX512 | HONE_CPU_VNNI},
              {"dotprod", HONE_CPU_NEON | HONE_CPU_FP16 | HONE_CPU_DOTPROD}};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t found;
static int cores;
static _Atomic uint32_t mask = UINT32_MAX;

/* Quota of one cgroup file in whole cores, rounded up; a large number when there is none. v2 has "quota
   period" in one file. */
static int quota(const char *limit_path, const char *period_path) {
    long long limit = -1, period = 0;
    FILE *f = fopen(limit_path, "re");
    if (f && fscanf(f, "%lld %lld", &limit, &period) < 1) limit = -1;
    if (f) fclose(f);
    if (limit > 0 && period_path && (f = fopen(period_path, "re"))) {
        if (fscanf(f, "%lld", &period) != 1) period = 0;
        fclose(f);
    }
    long long whole = limit > 0 && period > 0 ? limit / period + (limit % period != 0) : 1 << 20;
    return whole < 1 << 20 ? (int)whole : 1 << 20;
}

static int count_cores(void) {
    int n = 0;
    /* the call fails until the set is large enough for the kernel's */
    for (int room = 1024; n == 0 && room <= 1 << 17; room *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)room);
        if (!set) break;
        if (sched_getaffinity(0, CPU_ALLOC_SIZE((size_t)room), set) == 0)
            n = CPU_COUNT_S(CPU_ALLOC_SIZE((size_t)room), set);
        CPU_FREE(set);
    }
    if (n == 0) n = (int)sysconf(_SC_NPROCESSORS_ONLN);
    int allowed = quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    if (allowed < n) n = allowed;
    /* v2: our own group and every one above it may set a limit. */
    char group[512] = "", path[600], line[512];
    FILE *f = fopen("/proc/self/cgroup", "re");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "0::/", 4))
            snprintf(group, sizeof group, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    if (f) fclose(f);
    for (;;) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
        if ((allowed = quota(path, NULL)) < n) n = allowed;
        char *slash = strrchr(group, '/');
        if (!slash) break;
        *slash = 0;
    }
    return n < 1 ? 1 : n;
}

static void look(void) {
    found = probe();
    cores = count_cores();
    char *first = name; /* brand strings are padded with blanks */
    while (*first == ' ') first++;
    memmove(name, first, strlen(first) + 1);
    for (size_t n = strlen(name); n && name[n - 1] == ' '; n--) name[n - 1] = 0;
    const char *level = getenv("HONE_CPU");
    for (size_t i = 0; level && i < sizeof levels / sizeof *levels; i++)
        if (!strcmp(level, levels[i].name)) found &= levels[i].allowed;
}

uint32_t hone_cpu(void) {
    pthread_once(&once, look);
    return found & atomic_load_explicit(&mask, memory_order_relaxed);
}

void hone_cpu_mask(uint32_t allowed) { atomic_store(&mask, allowed); }

hone_status hone_cpu_check(void) {
    const char *level = getenv("HONE_CPU");
    char all[128] = "";
    size_t n = 0;
    if (!level || !*level) return HONE_OK;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (!strcmp(level, levels[i].name)) return HONE_OK;
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "", levels[i].name);
    }
    return hone_fail(HONE_BAD_INPUT, "HONE_CPU is '%s'; there are %s", level, all);
}

const char *hone_cpu_name(void) {
    pthread_once(&once, look);
    return name;
}

int hone_cores(void) {
    pthread_once(&once, look);
    return cores;
}

static uint64_t read_clock(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
uint64_t hone_clock_ns(void) { return read_clock(CLOCK_MONOTONIC); }
uint64_t hone_clock_thread_ns(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }
