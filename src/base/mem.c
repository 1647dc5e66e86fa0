/* SPDX-License-Identifier: Apache-2.0
   mem: the heap door with its counters, checked sizes, the growable array. Arenas are in arena.c, text
   buffers in text.c.

   A block is [ start … | header 64 bytes | the caller's bytes ]: the caller's pointer is a multiple of 64,
   and the header before it remembers the size and where the system's block starts. */
#define _GNU_SOURCE
#include "base/mem.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGN = 64, LAZY = 1 << 20, LARGE = 2 << 20 };

typedef struct {
    size_t bytes;
    void *start;
} header;

static atomic_uint_fast64_t calls, live, limit;
static atomic_int_fast64_t fail_after = -1;

static bool told_to_fail(void) {
    int_fast64_t left = atomic_load_explicit(&fail_after, memory_order_relaxed);
    while (left >= 0)
        if (atomic_compare_exchange_weak(&fail_after, &left, left - 1)) return left == 0;
    return false;
}

static bool past_limit(size_t bytes) {
    uint_fast64_t most = atomic_load_explicit(&limit, memory_order_relaxed);
    return most && (bytes > most || atomic_load_explicit(&live, memory_order_relaxed) > most - bytes);
}

/* Large pages where they fit wholly: weights and arenas are touched from end to end, and a fault for every 4
   KB took a third of the time of loading a 100 MB model. What the system does with the hint is its
   business. */
static void large_pages(void *start, size_t bytes) {
    uintptr_t from = ((uintptr_t)start + LARGE - 1) & ~(uintptr_t)(LARGE - 1),
              to = ((uintptr_t)start + bytes) & ~(uintptr_t)(LARGE - 1);
    if (from < to) madvise((void *)from, to - from, MADV_HUGEPAGE);
}

static void *get(size_t bytes, bool zero) {
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    if (bytes > PTRDIFF_MAX - 2 * ALIGN || told_to_fail() || past_limit(bytes)) return NULL;
    void *start = NULL;
    char *p = NULL;
    if (zero && bytes >= LAZY) { /* fresh pages are zero already; calloc knows, memset would touch them all */
        if (!(start = calloc(1, bytes + 2 * ALIGN))) return NULL;
        p = (char *)(((uintptr_t)start + 2 * ALIGN - 1) & ~(uintptr_t)(ALIGN - 1));
    } else { /* exact in size, so that a sanitizer sees the first byte past the end */
        if (posix_memalign(&start, ALIGN, bytes + ALIGN)) return NULL;
        p = (char *)start + ALIGN;
        if (zero) memset(p, 0, bytes);
    }
    if (bytes >= LARGE) large_pages(start, bytes);
    header h = {bytes, start};
    memcpy(p - ALIGN, &h, sizeof h);
    atomic_fetch_add_explicit(&live, bytes, memory_order_relaxed);
    return p;
}

void hone_bring_pages(void *p, size_t bytes) {
#ifdef MADV_POPULATE_WRITE
    const uintptr_t from = ((uintptr_t)p + 4095) & ~(uintptr_t)4095,
                    to = ((uintptr_t)p + bytes) & ~(uintptr_t)4095;
    const int before = errno;
    if (to > from && madvise((void *)from, to - from, MADV_POPULATE_WRITE)) errno = before;
#else
    (void)p, (void)bytes;
#endif
}
void *hone_alloc(size_t bytes) { return get(bytes, true); }
void *hone_alloc_raw(size_t bytes) { return get(bytes, false); }

void *hone_realloc(void *p, size_t old_bytes, size_t bytes) {
    bool lazy = bytes >= LAZY;
    size_t keep = !p ? 0 : old_bytes < bytes ? old_bytes : bytes;
    char *q = get(bytes, lazy);
    if (!q) return NULL;
    if (keep) memcpy(q, p, keep);
    if (!lazy) memset(q + keep, 0, bytes - keep);
    hone_free(p);
    return q;
}

void hone_free(void *p) {
    if (!p) return;
    header h;
    memcpy(&h, (char *)p - ALIGN, sizeof h);
    atomic_fetch_sub_explicit(&live, h.bytes, memory_order_relaxed);
    free(h.start);
}

uint64_t hone_alloc_calls(void) { return atomic_load_explicit(&calls, memory_order_relaxed); }
uint64_t hone_alloc_live_bytes(void) { return atomic_load_explicit(&live, memory_order_relaxed); }
void hone_alloc_limit(uint64_t bytes) { atomic_store(&limit, bytes); }
void hone_alloc_fail_after(int64_t n) { atomic_store(&fail_after, n < 0 ? -1 : n); }

bool hone_mul_size(size_t a, size_t b, size_t *out) {
    size_t r;
    if (__builtin_mul_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

bool hone_add_size(size_t a, size_t b, size_t *out) {
    size_t r;
    if (__builtin_add_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

/* A zero dim makes the product zero, but the other dims must still be sane: their product is formed without
   it. */
bool hone_count_of(const int64_t *dims, int rank, int64_t *out) {
    int64_t n = 1;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0) return false;
        if (dims[i] == 0) empty = true;
        else if (__builtin_mul_overflow(n, dims[i], &n) || n > (int64_t)1 << 62) return false;
    }
    *out = empty ? 0 : n;
    return true;
}

bool hone_vec_grow(void **at, int *room, int n, size_t item) {
    if (n <= *room) return true;
    if (n < 0) return false; /* the count passed INT_MAX */
    size_t want = (size_t)(*room < 8 ? 8 : *room) * 3 / 2, bytes;
    if (want < (size_t)n) want = (size_t)n;
    if (want > INT32_MAX) want = INT32_MAX;
    if (!hone_mul_size(want, item, &bytes)) return false;
    void *p = hone_realloc(*at, (size_t)*room * item, bytes);
    if (!p) return false;
    *at = p;
    *room = (int)want;
    return true;
}
