/* SPDX-License-Identifier: Apache-2.0
   Memory of a CUDA device between two processes, as clients of the server share it: the test has it, and the
   same program, started once more, opens it by its handle. Without a device: what is said then. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "serve/cuda.h"

enum { BYTES = 1000003, PART = 4097 }; /* no whole number of pages */

static unsigned char pattern(size_t k, int turn) {
    return (unsigned char)(k * 31 + k / 257 + (size_t)turn * 7);
}

static int child(const char *hex) {
    uint8_t handle[HONE_SERVE_CUDA_HANDLE], *room = malloc(BYTES);
    hone_serve_cuda *m = NULL, *more = NULL;
    for (int k = 0; k < HONE_SERVE_CUDA_HANDLE; k++) {
        unsigned byte;
        if (sscanf(hex + 2 * k, "%2x", &byte) != 1) return 2;
        handle[k] = (uint8_t)byte;
    }
    const char *why = hone_serve_cuda_open(handle, 0, BYTES, &m);
    if (why || !room) return fprintf(stderr, "open: %s\n", why ? why : "no memory"), 3;
    if ((why = hone_serve_cuda_read(m, 0, room, BYTES))) return fprintf(stderr, "read: %s\n", why), 4;
    for (size_t k = 0; k < BYTES; k++)
        if (room[k] != pattern(k, 0)) return fprintf(stderr, "byte %zu is %d\n", k, room[k]), 5;
    for (size_t k = 0; k < PART; k++) room[k] = pattern(k, 1);
    if ((why = hone_serve_cuda_write(m, 77, room, PART))) return fprintf(stderr, "write: %s\n", why), 6;
    if (!hone_serve_cuda_read(m, BYTES - 10, room, 11) || !hone_serve_cuda_write(m, BYTES + 1, room, 0) ||
        !hone_serve_cuda_read(m, UINT64_MAX, room, 2))
        return 7;
    if (hone_serve_cuda_read(m, BYTES, room, 0)) return 8;
    hone_serve_cuda_close(m);
    why = hone_serve_cuda_open(handle, 0, (uint64_t)1 << 40, &more); /* more than there is */
    if (!why) return 9;
    if (!hone_serve_cuda_open(handle, 1000, BYTES, &more) || !hone_serve_cuda_open(handle, -1, BYTES, &more))
        return 10;
    memset(handle, 0x5a, sizeof handle);
    if (!hone_serve_cuda_open(handle, 0, BYTES, &more)) return 11;
    return 0;
}

static const char *self;
static void shared(void **state) {
    (void)state;
    if (!hone_serve_cuda_there()) {
        hone_serve_cuda *m;
        const uint8_t handle[HONE_SERVE_CUDA_HANDLE] = {0};
        assert_string_equal(hone_serve_cuda_open(handle, 0, 1, &m), "GPUs not supported");
        print_message("there is no CUDA device\n");
        return;
    }
    void *l = dlopen("libcuda.so.1", RTLD_NOW);
    int (*retain)(void **, int), (*current)(void *), (*alloc)(uint64_t *, size_t), (*release)(uint64_t);
    int (*in)(uint64_t, const void *, size_t), (*out)(void *, uint64_t, size_t), (*get)(void *, uint64_t);
    const struct {
        const char *name;
        void *to;
    } names[] = {{"cuDevicePrimaryCtxRetain", &retain},
                 {"cuCtxSetCurrent", &current},
                 {"cuMemAlloc_v2", &alloc},
                 {"cuMemFree_v2", &release},
                 {"cuMemcpyHtoD_v2", &in},
                 {"cuMemcpyDtoH_v2", &out},
                 {"cuIpcGetMemHandle", &get}};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        void *f = dlsym(l, names[k].name);
        assert_non_null(f);
        memcpy(names[k].to, &f, sizeof f);
    }
    void *context;
    uint64_t at;
    unsigned char *room = malloc(BYTES), handle[HONE_SERVE_CUDA_HANDLE];
    char hex[2 * HONE_SERVE_CUDA_HANDLE + 1];
    assert_int_equal(retain(&context, 0), 0);
    assert_int_equal(current(context), 0);
    assert_int_equal(alloc(&at, BYTES), 0);
    for (size_t k = 0; k < BYTES; k++) room[k] = pattern(k, 0);
    assert_int_equal(in(at, room, BYTES), 0);
    assert_int_equal(get(handle, at), 0);
    for (int k = 0; k < HONE_SERVE_CUDA_HANDLE; k++) sprintf(hex + 2 * k, "%02x", handle[k]);
    const pid_t pid = fork();
    if (!pid) {
        execl(self, self, "child", hex, (char *)NULL);
        _exit(99);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(out(room, at, BYTES), 0);
    for (size_t k = 0; k < BYTES; k++)
        assert_int_equal(room[k], k >= 77 && k < 77 + PART ? pattern(k - 77, 1) : pattern(k, 0));
    assert_int_equal(release(at), 0);
    free(room);
}

int main(int argc, char **argv) {
    if (argc == 3) return child(argv[2]);
    self = argc ? argv[0] : "";
    const struct CMUnitTest tests[] = {cmocka_unit_test(shared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
