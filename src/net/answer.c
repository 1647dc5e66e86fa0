/* SPDX-License-Identifier: Apache-2.0
   answer: see answer.h. */
#include "net/answer.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const uint64_t most = (uint64_t)1 << 40; /* bytes of a body, or of a chunk */

void hone_answer_reset(hone_answer *a) {
    a->stage = HONE_ANSWER_HEAD, a->status = 0, a->closes = false, a->left = 0, a->head_n = 0;
}

/* The value of a header in a head; it ends at CR. NULL: not there. */
static const char *header(const char *head, const char *name) {
    const size_t n = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, n) != 0 || line[2 + n] != ':') continue;
        const char *v = line + 3 + n;
        return v + strspn(v, " \t");
    }
    return NULL;
}

/* A whole number and nothing behind it; false: it is none, or larger than a body may be. */
static bool number_of(const char *text, int base, uint64_t *out) {
    char *end;
    if (!(base == 16 ? isxdigit((unsigned char)*text) : isdigit((unsigned char)*text))) return false;
    errno = 0;
    *out = strtoull(text, &end, base);
    end += strspn(end, " \t");
    return !errno && *out <= most && (*end == '\r' || (base == 16 && (*end == ';' || *end == '\n')));
}

static void take_head(hone_answer *a) {
    a->head[a->head_n] = 0;
    a->stage = HONE_ANSWER_BROKEN;
    const char *h = a->head;
    if (strlen(h) != a->head_n || strncmp(h, "HTTP/1.", 7) != 0 || !isdigit((unsigned char)h[7]) ||
        h[8] != ' ' || !isdigit((unsigned char)h[9]) || !isdigit((unsigned char)h[10]) ||
        !isdigit((unsigned char)h[11]))
        return;
    a->status = atoi(h + 9);
    const char *length = header(h, "Content-Length"), *coding = header(h, "Transfer-Encoding");
    const char *connection = header(h, "Connection");
    a->closes = connection ? !strncasecmp(connection, "close", 5) : h[7] == '0';
    a->head_n = 0;
    if (a->status / 100 == 1) { /* one of those that come before the answer */
        a->stage = a->status == 101 ? HONE_ANSWER_BROKEN : HONE_ANSWER_HEAD;
        return;
    }
    if (a->headed && !a->headed(a->arg, h)) return;
    if (coding && !strncasecmp(coding, "chunked", 7)) a->stage = HONE_ANSWER_CHUNK_SIZE;
    else if (a->status == 204 || a->status == 304) a->stage = HONE_ANSWER_DONE;
    else if (length) {
        if (number_of(length, 10, &a->left)) a->stage = a->left ? HONE_ANSWER_BODY : HONE_ANSWER_DONE;
    } else if (a->closes) a->stage = HONE_ANSWER_TO_END;
}

/* Bytes up to a line's end are gathered in head; true: the line is whole. */
static bool take_line(hone_answer *a, const uint8_t **at, const uint8_t *end) {
    const uint8_t *lf = memchr(*at, '\n', (size_t)(end - *at));
    const size_t n = (size_t)((lf ? lf + 1 : end) - *at);
    if (n >= HONE_ANSWER_HEAD_MAX - a->head_n) return a->stage = HONE_ANSWER_BROKEN, false;
    memcpy(a->head + a->head_n, *at, n);
    a->head_n += n, *at += n;
    return lf != NULL;
}

void hone_answer_landed(hone_answer *a, size_t n) {
    a->left -= n;
    if (!a->left) a->stage = a->stage == HONE_ANSWER_BODY ? HONE_ANSWER_DONE : HONE_ANSWER_CHUNK_END;
}

size_t hone_answer_take(hone_answer *a, const uint8_t *from, size_t n) {
    const uint8_t *at = from, *end = from + n;
    while (at < end && a->stage < HONE_ANSWER_DONE) switch (a->stage) {
        case HONE_ANSWER_HEAD:
            if (!take_line(a, &at, end)) break;
            if (a->head_n >= 4 && !memcmp(a->head + a->head_n - 4, "\r\n\r\n", 4)) take_head(a);
            break;
        case HONE_ANSWER_CHUNK_SIZE:
            if (!take_line(a, &at, end)) break;
            a->head[a->head_n] = 0, a->head_n = 0;
            a->stage = !number_of(a->head, 16, &a->left) ? HONE_ANSWER_BROKEN
                       : a->left                         ? HONE_ANSWER_CHUNK
                                                         : HONE_ANSWER_TRAILER;
            break;
        case HONE_ANSWER_TRAILER:
            if (!take_line(a, &at, end)) break;
            a->stage = a->head_n == 2 ? HONE_ANSWER_DONE : HONE_ANSWER_TRAILER, a->head_n = 0;
            break;
        case HONE_ANSWER_CHUNK_END:
            if (take_line(a, &at, end))
                a->stage = a->head_n == 2 ? HONE_ANSWER_CHUNK_SIZE : HONE_ANSWER_BROKEN, a->head_n = 0;
            break;
        default: {
            size_t here = (size_t)(end - at);
            if (a->stage != HONE_ANSWER_TO_END && here > a->left) here = (size_t)a->left;
            if (!a->body(a->arg, at, here)) a->stage = HONE_ANSWER_BROKEN;
            else if (a->stage != HONE_ANSWER_TO_END) hone_answer_landed(a, here);
            at += here;
        }
        }
    return (size_t)(at - from);
}

bool hone_answer_end(hone_answer *a) {
    a->stage = a->stage == HONE_ANSWER_TO_END ? HONE_ANSWER_DONE : HONE_ANSWER_BROKEN;
    return a->stage == HONE_ANSWER_DONE;
}
