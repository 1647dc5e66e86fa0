/* SPDX-License-Identifier: Apache-2.0
   answer: an answer of HTTP/1.1 as it comes in pieces, read by a client: `hone load`, and the server where it
   stands before others. No sockets here. What a server sends is not trusted: every length is bounded, and
   what is not HTTP ends in HONE_ANSWER_BROKEN. */
#ifndef HONE_NET_ANSWER_H
#define HONE_NET_ANSWER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HONE_ANSWER_HEAD_MAX = 16 << 10 };
typedef enum {
    HONE_ANSWER_HEAD,
    HONE_ANSWER_BODY,   /* `left` bytes more */
    HONE_ANSWER_TO_END, /* until the connection is closed */
    HONE_ANSWER_CHUNK_SIZE,
    HONE_ANSWER_CHUNK,
    HONE_ANSWER_CHUNK_END,
    HONE_ANSWER_TRAILER,
    HONE_ANSWER_DONE,
    HONE_ANSWER_BROKEN
} hone_answer_stage;

typedef struct {
    hone_answer_stage stage;
    int status;
    bool closes;   /* the server will close the connection */
    uint64_t left; /* of the body, or of the chunk */
    /* The head is whole: status, then lines that end in CR LF, then an empty one. May be NULL; false: the
       answer is broken. */
    bool (*headed)(void *arg, const char *head);
    bool (*body)(void *arg, const uint8_t *, size_t); /* a piece of it; false: the answer is broken */
    void *arg;
    size_t head_n;                   /* bytes of head, or of a line between chunks */
    char head[HONE_ANSWER_HEAD_MAX]; /* a head may come in pieces */
} hone_answer;

/* Before each answer; headed, body and arg stay. */
void hone_answer_reset(hone_answer *);
/* Returns how many of the n bytes belong to this answer. */
size_t hone_answer_take(hone_answer *, const uint8_t *, size_t n);
/* So many bytes of the body (stage BODY, at most `left`) were put where they belong by somebody else. */
void hone_answer_landed(hone_answer *, size_t n);
/* The connection was closed by the server; true: that was the answer's end. */
bool hone_answer_end(hone_answer *);
#endif
