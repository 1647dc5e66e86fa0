/* SPDX-License-Identifier: Apache-2.0
   Copies through pinned memory (device/cuda/staging.c), with a stream that is as late as a stream may be:
   what is asked of it is done only when somebody waits, and no further than to the mark that is waited for.
   So memory that is used again too early gives wrong bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/cuda/driver.h"

typedef struct {
    char *to;
    const char *from;
    size_t bytes;
    int mark; /* -1: a copy */
} ask;
static ask all[4096];
static int n, waits;
static hone_cuda_address address(const void *at) { return (hone_cuda_address)(uintptr_t)at; }
static void do_first(int count) {
    for (int k = 0; k < count; k++)
        if (all[k].mark < 0) memcpy(all[k].to, all[k].from, all[k].bytes);
    memmove(all, all + count, sizeof *all * (size_t)(n - count)), n -= count;
}
static hone_status asked(ask a) {
    assert_true(n < 4096);
    all[n++] = a;
    return HONE_OK;
}
static hone_status fake_pin(hone_cuda *g, size_t bytes, void **out) {
    (void)g;
    *out = malloc(bytes);
    return *out ? HONE_OK : HONE_NO_MEMORY;
}
static void fake_unpin(hone_cuda *g, void *at) {
    (void)g;
    free(at);
}
static hone_status fake_send(hone_cuda *g, hone_cuda_address to, const void *from, size_t bytes) {
    (void)g;
    return asked((ask){(char *)(uintptr_t)to, from, bytes, -1});
}
static hone_status fake_fetch(hone_cuda *g, void *to, hone_cuda_address from, size_t bytes) {
    (void)g;
    return asked((ask){to, (const char *)(uintptr_t)from, bytes, -1});
}
static hone_status fake_mark(hone_cuda *g, int which) {
    (void)g;
    return asked((ask){.mark = which});
}
static hone_status fake_await(hone_cuda *g, int which) { /* up to the last of its name */
    (void)g;
    for (int k = n - 1; k >= 0; k--)
        if (all[k].mark == which) {
            do_first(k + 1);
            break;
        }
    return HONE_OK;
}
static hone_status fake_wait(hone_cuda *g) {
    (void)g;
    do_first(n), waits++;
    return HONE_OK;
}
#define hone_cuda_pin fake_pin
#define hone_cuda_unpin fake_unpin
#define hone_cuda_send fake_send
#define hone_cuda_fetch fake_fetch
#define hone_cuda_mark fake_mark
#define hone_cuda_await fake_await
#define hone_cuda_wait fake_wait
#define hone_staging_begin staging_begin /* not the library's */
#define hone_staging_end staging_end
#define hone_staging_send staging_send
#define hone_staging_fetch staging_fetch
#define hone_staging_peek staging_peek
#define hone_staging_wait staging_wait
#include "device/cuda/staging.c"

enum { MOST = 9 << 20 };
static char gpu[MOST], host[MOST], back[MOST], want[MOST];
static void random_copies(void **state) {
    (void)state;
    hone_staging s;
    unsigned r = 9;
    assert_int_equal(staging_begin((hone_cuda *)gpu, &s), HONE_OK);
    for (int round = 0; round < 400; round++) {
        static const size_t sizes[] = {0,        1,    4,        255,      4096,          100000,
                                       HALF - 1, HALF, HALF + 1, 2 * HALF, 2 * HALF + 77, 4 * HALF + 5};
        r = r * 1103515245u + 12345u;
        const size_t bytes = sizes[(r >> 8) % 12], at = bytes < MOST ? (r >> 12) % (MOST - bytes) : 0;
        if ((r >> 28) % 3) {
            memset(host, (int)(r >> 16), bytes ? bytes : 1);
            for (size_t k = 0; k < bytes; k += 4093) host[k] = (char)k;
            assert_int_equal(staging_send(&s, address(gpu + at), host, bytes), HONE_OK);
            memcpy(want + at, host, bytes);
            memset(host, 0x5a, bytes); /* it may change at once */
        } else {
            uint32_t word = 0, expected;
            memcpy(&expected, want + at, 4);
            assert_int_equal(staging_peek(&s, address(gpu + at), &word), HONE_OK);
            assert_int_equal(staging_fetch(&s, back, address(gpu + at), bytes), HONE_OK);
            assert_memory_equal(back, want + at, bytes);
            assert_int_equal(word, expected);
        }
        if ((r >> 20) % 7 == 0) assert_int_equal(staging_wait(&s), HONE_OK);
    }
    assert_int_equal(staging_wait(&s), HONE_OK);
    assert_memory_equal(gpu, want, MOST);
    staging_end(&s);
}
static void waits_once(void **state) { /* a run of small tensors */
    (void)state;
    hone_staging s;
    assert_int_equal(staging_begin((hone_cuda *)gpu, &s), HONE_OK);
    waits = 0;
    for (int k = 0; k < 5; k++)
        assert_int_equal(staging_send(&s, address(gpu + 1000 * k), host, 600), HONE_OK);
    assert_int_equal(waits, 0);
    assert_int_equal(staging_fetch(&s, back, address(gpu), 4000), HONE_OK);
    assert_int_equal(waits, 1);
    staging_end(&s);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_copies), cmocka_unit_test(waits_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
