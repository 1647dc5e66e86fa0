/* SPDX-License-Identifier: Apache-2.0
   leaks: what the library still holds when a test program ends is a leak, whatever the build: every block
   comes through hone_alloc, which counts. Linked into every test. It sees no block of the test's own, and
   says how much was lost, not where: for that there is LeakSanitizer. */
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/thread.h"

__attribute__((destructor)) static void look(void) {
    hone_pool_shutdown(); /* threads that wait for more work are no leak */
    const unsigned long long left = hone_alloc_live_bytes();
    if (!left) return;
    fprintf(stderr, "%llu bytes of the library's memory were never given back\n", left);
    fflush(NULL);
    _exit(1);
}
