/* SPDX-License-Identifier: Apache-2.0
   asan_calls: gcc's address sanitizer has its checks as calls in our builds, and asks a slow function of its
   runtime for whatever is not aligned or is wider than 16 bytes: every vector that a kernel loads. Here a
   quick look stands before it (the linker's --wrap), which reads the shadow of up to 64 bytes at once; and
   before the other checks too, which are quick themselves but a shared library away. What is seen is the
   same: whenever a byte of the shadow is not zero, the runtime is asked, and it reports. In no release, and
   not itself checked. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern uintptr_t __asan_shadow_memory_dynamic_address;
/* A byte of the shadow stands for 8 of memory; zero: all of them may be used. */
static inline const uint8_t *shadow_of(uintptr_t at) {
    return (const uint8_t *)((at >> 3) + __asan_shadow_memory_dynamic_address);
}
static inline bool clean(uintptr_t at, size_t n) {
    const uint8_t *shadow = shadow_of(at);
    const uintptr_t more = ((at + n - 1) >> 3) - (at >> 3); /* up to 8 for 64 bytes that lie askew */
    uint64_t first;
    if (more > 8) return false;
    memcpy(&first, shadow, sizeof first);
    return more < 8 ? !(first << 8 * (7 - more)) : !(first | shadow[8]);
}
static inline bool clean16(uintptr_t at) {
    uint16_t both;
    memcpy(&both, shadow_of(at), sizeof both);
    return !both;
}

/* The runtime is called as the last thing, so that a report begins where the load stands. */
#define CHECK(name, clean)                      \
    void __real___asan_##name(uintptr_t at);    \
    void __wrap___asan_##name(uintptr_t at);    \
    void __wrap___asan_##name(uintptr_t at) {   \
        if (!(clean)) __real___asan_##name(at); \
    }
CHECK(load1, !*shadow_of(at))
CHECK(load2, !*shadow_of(at))
CHECK(load4, !*shadow_of(at))
CHECK(load8, !*shadow_of(at))
CHECK(load16, clean16(at))
CHECK(store1, !*shadow_of(at))
CHECK(store2, !*shadow_of(at))
CHECK(store4, !*shadow_of(at))
CHECK(store8, !*shadow_of(at))
CHECK(store16, clean16(at))
#define CHECK_N(name)                                   \
    void __real___asan_##name(uintptr_t at, size_t n);  \
    void __wrap___asan_##name(uintptr_t at, size_t n);  \
    void __wrap___asan_##name(uintptr_t at, size_t n) { \
        if (!clean(at, n)) __real___asan_##name(at, n); \
    }
CHECK_N(loadN)
CHECK_N(storeN)
