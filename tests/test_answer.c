/* SPDX-License-Identifier: Apache-2.0
   The reader of HTTP answers: each answer whole, a byte at a time and in odd pieces is read alike; what is
   none is broken; answers with random changes never go beyond their bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/answer.h"
#include "random.h"

enum { KEPT = 4096 };
typedef struct {
    char body[KEPT];
    size_t n;
    int heads;
} got;
static bool headed(void *arg, const char *head) {
    got *g = arg;
    g->heads++;
    return strstr(head, "\r\n\r\n") != NULL;
}
static bool body(void *arg, const uint8_t *at, size_t n) {
    got *g = arg;
    if (n > KEPT - g->n) return false;
    memcpy(g->body + g->n, at, n), g->n += n;
    return true;
}

/* In pieces of so many bytes; each piece is a block of its own, so that a step beyond it is seen. */
static size_t read_in(hone_answer *a, got *g, const char *text, size_t n, size_t piece) {
    *g = (got){.n = 0};
    a->headed = headed, a->body = body, a->arg = g;
    hone_answer_reset(a);
    size_t used = 0;
    for (size_t at = 0; at < n && a->stage < HONE_ANSWER_DONE; at += piece) {
        const size_t here = n - at < piece ? n - at : piece;
        uint8_t *block = malloc(here);
        memcpy(block, text + at, here);
        used += hone_answer_take(a, block, here);
        free(block);
    }
    return used;
}

static const struct {
    const char *text, *body;
    int status;
    hone_answer_stage stage;
    bool closes;
    size_t surplus;
} answers[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", "ab", 200, HONE_ANSWER_DONE, false, 0},
    {"HTTP/1.1 200 OK\r\ncontent-length:2 \r\n\r\nabc", "ab", 200, HONE_ANSWER_DONE, false, 1},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", "", 200, HONE_ANSWER_DONE, true, 0},
    {"HTTP/1.1 204 No\r\n\r\n", "", 204, HONE_ANSWER_DONE, false, 0},
    {"HTTP/1.1 304 Same\r\nContent-Length: 50\r\n\r\n", "", 304, HONE_ANSWER_DONE, false, 0},
    {"HTTP/1.0 200 OK\r\n\r\nabc", "abc", 200, HONE_ANSWER_TO_END, true, 0},
    {"HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: "
     "1\r\n\r\nx",
     "x", 404, HONE_ANSWER_DONE, false, 0},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: "
     "1\r\n\r\n3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\n"
     "T: x\r\n\r\n",
     "abc0123456789", 200, HONE_ANSWER_DONE, false, 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", "ab", 200, HONE_ANSWER_BODY, false, 0},
    {"HTTP/1.1 101 Switch\r\n\r\n", "", 101, HONE_ANSWER_BROKEN, false, 0},
    {"HTTP/1.1 200 OK\r\n\r\n", "", 200, HONE_ANSWER_BROKEN, false, 0}, /* where does it end? */
    {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "", 200, HONE_ANSWER_BROKEN, false, 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n", "", 200, HONE_ANSWER_BROKEN, false, 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "", 200, HONE_ANSWER_BROKEN, false,
     0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999\r\n\r\n", "", 200, HONE_ANSWER_BROKEN, false, 0},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "", 200, HONE_ANSWER_BROKEN, false, 0},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-3\r\n", "", 200, HONE_ANSWER_BROKEN, false, 0},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", "a", 200, HONE_ANSWER_BROKEN, false,
     0},
    {"HTTP/1.1 OK\r\n\r\n", "", 0, HONE_ANSWER_BROKEN, false, 0},
    {"HTTP/2 200 OK\r\n\r\n", "", 0, HONE_ANSWER_BROKEN, false, 0},
    {"\r\n\r\n", "", 0, HONE_ANSWER_BROKEN, false, 0},
};
enum { ANSWERS = sizeof answers / sizeof *answers };

static void read_alike(void **state) {
    (void)state;
    hone_answer *a = calloc(1, sizeof *a);
    got *g = calloc(1, sizeof *g);
    for (int k = 0; k < ANSWERS; k++) {
        const size_t n = strlen(answers[k].text);
        for (size_t piece = 1; piece <= n; piece = piece < 9                    ? piece + 1
                                                   : piece < n && piece * 3 > n ? n
                                                                                : piece * 3) {
            const size_t used = read_in(a, g, answers[k].text, n, piece);
            if (a->stage != answers[k].stage || g->n != strlen(answers[k].body) ||
                memcmp(g->body, answers[k].body, g->n) != 0 || a->status != answers[k].status)
                fail_msg("answer %d in pieces of %zu: stage %d, status %d, body '%.*s'", k, piece, a->stage,
                         a->status, (int)g->n, g->body);
            if (a->stage < HONE_ANSWER_BROKEN) assert_int_equal(a->closes, answers[k].closes);
            if (a->stage == HONE_ANSWER_DONE) assert_true(n - used >= answers[k].surplus || piece > 1);
            if (a->stage == HONE_ANSWER_DONE && piece == n) assert_int_equal(n - used, answers[k].surplus);
            if (a->stage == HONE_ANSWER_TO_END)
                assert_true(hone_answer_end(a) && a->stage == HONE_ANSWER_DONE);
            else if (a->stage < HONE_ANSWER_DONE)
                assert_true(!hone_answer_end(a) && a->stage == HONE_ANSWER_BROKEN);
        }
    }
    free(a), free(g);
}

/* A body that is put where it belongs by somebody else. */
static void landed(void **state) {
    (void)state;
    hone_answer *a = calloc(1, sizeof *a);
    got *g = calloc(1, sizeof *g);
    const char *text = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
    read_in(a, g, text, strlen(text), strlen(text));
    assert_int_equal(a->left, 7);
    hone_answer_landed(a, 5);
    assert_int_equal(a->stage, HONE_ANSWER_BODY);
    hone_answer_landed(a, 2);
    assert_int_equal(a->stage, HONE_ANSWER_DONE);
    free(a), free(g);
}

static void random_changes(void **state) {
    (void)state;
    hone_answer *a = calloc(1, sizeof *a);
    got *g = calloc(1, sizeof *g);
    uint32_t seed = 1;
    char text[512], *large = malloc(100000);
    for (int round = 0; round < 20000; round++) {
        const char *from = answers[round % ANSWERS].text;
        size_t n = strlen(from);
        memcpy(text, from, n);
        for (int k = 0; k < 1 + round % 4; k++) {
            next_linear(&seed);
            const size_t at = (seed >> 8) % n;
            if (seed >> 30) text[at] = (char)(seed >> 3);
            else memmove(text + at, text + at + 1, --n - at);
            if (!n) break;
        }
        if (!n) continue;
        const size_t used = read_in(a, g, text, n, 1 + (seed >> 5) % n);
        assert_true(used <= n && a->stage <= HONE_ANSWER_BROKEN);
    }
    /* a head, or a line between chunks, that has no end */
    memset(large, 'a', 100000);
    read_in(a, g, large, 100000, 1000);
    assert_int_equal(a->stage, HONE_ANSWER_BROKEN);
    memcpy(large, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", 50);
    read_in(a, g, large, 100000, 1000);
    assert_int_equal(a->stage, HONE_ANSWER_BROKEN);
    free(a), free(g), free(large);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(read_alike), cmocka_unit_test(landed),
                                       cmocka_unit_test(random_changes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
