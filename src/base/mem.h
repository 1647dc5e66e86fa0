/* SPDX-License-Identifier: Apache-2.0
   mem: the one door to the heap, arenas, growable arrays, text buffers, and sizes that cannot overflow.

   Compile-time objects live in an arena and are never freed one by one. Every heap call goes through
   hone_alloc, so that tests can count calls (a run of a static model makes none) and make the Nth one
   fail. */
#ifndef HONE_BASE_MEM_H
#define HONE_BASE_MEM_H
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* 64-byte aligned, zeroed; NULL when there is none. hone_alloc(0) is a valid pointer */
void *hone_alloc(size_t bytes);
void *hone_alloc_raw(size_t bytes); /* the same, not zeroed: for big tensors */
/* All of a block's pages at once, where the system can: one by one, as they are touched, takes four times as
   long. */
void hone_bring_pages(void *p, size_t bytes);
void *hone_realloc(void *p, size_t old_bytes, size_t bytes);
void hone_free(void *p);              /* NULL is fine */
uint64_t hone_alloc_calls(void);      /* calls since the process began, all threads */
uint64_t hone_alloc_live_bytes(void); /* bytes now held */
/* tests: the call after `calls` more fails, once; -1 switches off */
void hone_alloc_fail_after(int64_t calls);
/* a call that would hold more than this in all fails; 0: no limit. For the whole process */
void hone_alloc_limit(uint64_t bytes);

/* Sizes of tensors come from hostile files: every product goes through these. False means overflow; *out is
   untouched. */
bool hone_mul_size(size_t a, size_t b, size_t *out);
bool hone_add_size(size_t a, size_t b, size_t *out);
/* product; false on a negative dim or above 2^62 */
bool hone_count_of(const int64_t *dims, int rank, int64_t *out);

/* Arena: zeroed bump allocation, 16-byte aligned, all freed at once. */
typedef struct hone_arena hone_arena;
hone_arena *hone_arena_create(void);
/* starts in the caller's memory, 64-byte aligned, and goes to the heap when that is used up; destroy it
   before that memory goes */
hone_arena *hone_arena_in(void *room, size_t bytes);
void hone_arena_destroy(hone_arena *);
void hone_arena_reset(hone_arena *);                /* forgets all; keeps memory for as much again */
void *hone_arena_alloc(hone_arena *, size_t bytes); /* NULL only when the heap is exhausted */
void *hone_arena_raw(hone_arena *, size_t bytes);   /* the same, not zeroed: for what is written at once */
void *hone_arena_copy(hone_arena *, const void *, size_t bytes);
char *hone_arena_text(hone_arena *, const char *format, ...) HONE_PRINTF(2, 3);
char *hone_arena_textn(hone_arena *, const char *text, size_t bytes); /* copy, zero-terminated */
size_t hone_arena_bytes(const hone_arena *);
#define HONE_NEW(arena, type) ((type *)hone_arena_alloc((arena), sizeof(type)))
#define HONE_NEW_N(arena, type, n) ((type *)hone_arena_alloc((arena), sizeof(type) * (size_t)(n)))

/* Growable array on the heap: `hone_vec(int) v = {0}; hone_push(&v, 3); v.at[0]; v.n; hone_vec_free(&v);`
   hone_push is an expression: false when out of memory. */
#define hone_vec(type) \
    struct {           \
        type *at;      \
        int n, room;   \
    }
bool hone_vec_grow(void **at, int *room, int n, size_t item);
#define hone_push(v, item)                                                        \
    (hone_vec_grow((void **)&(v)->at, &(v)->room, (v)->n + 1, sizeof *(v)->at) && \
     ((v)->at[(v)->n++] = (item), true))
/* The same in an arena: nothing to free. */
bool hone_vec_grow_in(hone_arena *, void **at, int *room, int n, size_t item);
#define hone_push_in(a, v, item)                                                          \
    (hone_vec_grow_in((a), (void **)&(v)->at, &(v)->room, (v)->n + 1, sizeof *(v)->at) && \
     ((v)->at[(v)->n++] = (item), true))
#define hone_vec_free(v) (hone_free((v)->at), (v)->at = NULL, (v)->n = (v)->room = 0)

/* Text buffer: reports, printed programs, JSON. A failed allocation sets `failed` and later calls do
   nothing. */
typedef struct {
    char *text; /* zero-terminated once anything was put */
    size_t n, room;
    bool failed;
} hone_text;
void hone_text_put(hone_text *, const char *format, ...) HONE_PRINTF(2, 3);
void hone_text_putv(hone_text *, const char *format, va_list);
void hone_text_json(hone_text *, const char *string); /* "quoted and escaped" */
void hone_text_free(hone_text *);
#endif
