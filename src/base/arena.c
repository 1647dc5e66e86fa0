/* SPDX-License-Identifier: Apache-2.0
   arena: bump allocation in blocks that double up to 1 MiB; a large request gets a block of its own size.

   Memory is zeroed when handed out, so reset costs nothing. Under AddressSanitizer each piece is followed by
   16 forbidden bytes and the unused rest of a block is forbidden too: an overrun inside an arena is found as
   on the heap. */
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WATCHED 1
#endif
#endif
#ifdef WATCHED
#include <sanitizer/asan_interface.h>
enum { GAP = 16 };
#define FORBID(p, n) __asan_poison_memory_region((p), (n))
#define ALLOW(p, n) __asan_unpoison_memory_region((p), (n))
#else
enum { GAP = 0 };
#define FORBID(p, n) ((void)0)
#define ALLOW(p, n) ((void)0)
#endif

typedef struct block {
    struct block *next;
    size_t room, used; /* of the bytes after this header */
    bool lent;         /* the caller's memory */
} block;
enum { HEAD = 64, FIRST = 4096, LARGEST = 1 << 20, MOST = 1 << 26, SEVERAL_PAGES = 1 << 16 };
_Static_assert(sizeof(block) <= HEAD, "a block's header keeps the first piece aligned");

struct hone_arena {
    block *blocks; /* the newest first; only it has room that is still used */
    size_t bytes;  /* handed out since the last reset */
    size_t first;  /* of the first block after a reset; 0: FIRST */
    bool lent;
};
_Static_assert(sizeof(struct hone_arena) <= HEAD, "lent memory begins with it");

static char *bytes_of(block *b) { return (char *)b + HEAD; }

static void free_block(block *b) {
    ALLOW(bytes_of(b), b->room);
    if (!b->lent) hone_free(b);
}

hone_arena *hone_arena_create(void) { return hone_alloc(sizeof(hone_arena)); }

hone_arena *hone_arena_in(void *room, size_t bytes) {
    if (bytes < 4 * HEAD) return NULL;
    hone_arena *a = room;
    block *b = (block *)(void *)((char *)room + HEAD);
    *b = (block){.room = bytes - 2 * HEAD, .lent = true};
    *a = (hone_arena){.blocks = b, .lent = true};
    FORBID(bytes_of(b), b->room);
    return a;
}

void hone_arena_destroy(hone_arena *a) {
    if (!a) return;
    for (block *b = a->blocks, *next; b; b = next) next = b->next, free_block(b);
    if (!a->lent) hone_free(a);
}

/* The one block is kept; several go, and the next one is as large as all of them: an arena that is used again
   and again settles on one. */
void hone_arena_reset(hone_arena *a) {
    block *b = a->blocks;
    a->bytes = 0;
    if (b && !b->next) {
        b->used = 0;
        FORBID(bytes_of(b), b->room);
        return;
    }
    a->first = 0;
    for (block *next; b; b = next) next = b->next, a->first += b->room, free_block(b);
    if (a->first > MOST) a->first = MOST;
    a->blocks = NULL;
}

void *hone_arena_raw(hone_arena *a, size_t bytes) {
    if (bytes > PTRDIFF_MAX - HEAD - GAP - 16) return NULL;
    size_t need = ((bytes ? bytes : 1) + GAP + 15) & ~(size_t)15;
    block *b = a->blocks;
    if (!b || b->room - b->used < need) {
        size_t room = b ? b->room * 2 : FIRST;
        if (room > LARGEST) room = LARGEST;
        if (!b && a->first > room) room = a->first;
        if (room < need) room = need;
        block *fresh = hone_alloc_raw(HEAD + room);
        if (!fresh) return NULL;
        if (room >= SEVERAL_PAGES && room <= LARGEST) hone_bring_pages(fresh, HEAD + room);
        *fresh = (block){.next = b, .room = room};
        FORBID(bytes_of(fresh), room);
        a->blocks = b = fresh;
    }
    char *p = bytes_of(b) + b->used;
    b->used += need;
    a->bytes += bytes;
    ALLOW(p, bytes);
    return p;
}
void *hone_arena_alloc(hone_arena *a, size_t bytes) {
    void *p = hone_arena_raw(a, bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

void *hone_arena_copy(hone_arena *a, const void *from, size_t bytes) {
    void *p = hone_arena_raw(a, bytes);
    if (p && bytes) memcpy(p, from, bytes);
    return p;
}

char *hone_arena_textn(hone_arena *a, const char *text, size_t bytes) {
    char *p = bytes < SIZE_MAX ? hone_arena_alloc(a, bytes + 1) : NULL;
    if (p && bytes) memcpy(p, text, bytes);
    return p;
}

char *hone_arena_text(hone_arena *a, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *p = n >= 0 ? hone_arena_alloc(a, (size_t)n + 1) : NULL;
    if (p) vsnprintf(p, (size_t)n + 1, format, again);
    va_end(again);
    va_end(args);
    return p;
}

size_t hone_arena_bytes(const hone_arena *a) { return a->bytes; }

bool hone_vec_grow_in(hone_arena *a, void **at, int *room, int n, size_t item) {
    if (n <= *room) return true;
    if (n < 0 || *room > INT32_MAX / 2) return false; /* the count passed INT_MAX */
    size_t want = *room < 8 ? 16 : (size_t)*room * 2, bytes;
    if (want < (size_t)n) want = (size_t)n;
    void *p = hone_mul_size(want, item, &bytes) ? hone_arena_alloc(a, bytes) : NULL;
    if (!p) return false;
    if (*room) memcpy(p, *at, (size_t)*room * item);
    *at = p;
    *room = (int)want;
    return true;
}
