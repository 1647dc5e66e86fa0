/* SPDX-License-Identifier: Apache-2.0
   mutate: see mutate.h. A message becomes a tree of fields, some fields of it are changed, and the tree is
   written out again. Which fields are messages stands in one table; everything else is a number or bytes. */
#include "mutate.h"

#include <stdlib.h>
#include <string.h>

#include "loops/program.h"
#include "model/wire.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room); /* libFuzzer's own */

typedef enum {
    PLAIN,
    MODEL,
    GRAPH,
    NODE,
    ATTRIBUTE,
    TENSOR,
    SPARSE,
    VALUE_INFO,
    TYPE,
    TENSOR_TYPE,
    LIST_TYPE,
    MAP_TYPE,
    SHAPE,
    DIM,
    OPSET,
    FUNCTION,
    ENTRY
} kind;
static const struct {
    kind of;
    int field;
    kind is;
} messages[] = {
    {MODEL, 7, GRAPH},       {MODEL, 8, OPSET},         {MODEL, 25, FUNCTION},   {GRAPH, 1, NODE},
    {GRAPH, 5, TENSOR},      {GRAPH, 11, VALUE_INFO},   {GRAPH, 12, VALUE_INFO}, {GRAPH, 13, VALUE_INFO},
    {GRAPH, 15, SPARSE},     {NODE, 5, ATTRIBUTE},      {ATTRIBUTE, 5, TENSOR},  {ATTRIBUTE, 6, GRAPH},
    {ATTRIBUTE, 10, TENSOR}, {ATTRIBUTE, 11, GRAPH},    {ATTRIBUTE, 14, TYPE},   {ATTRIBUTE, 15, TYPE},
    {ATTRIBUTE, 22, SPARSE}, {ATTRIBUTE, 23, SPARSE},   {SPARSE, 1, TENSOR},     {SPARSE, 2, TENSOR},
    {TENSOR, 13, ENTRY},     {VALUE_INFO, 2, TYPE},     {TYPE, 1, TENSOR_TYPE},  {TYPE, 4, LIST_TYPE},
    {TYPE, 5, MAP_TYPE},     {TYPE, 8, TENSOR_TYPE},    {TYPE, 9, LIST_TYPE},    {TENSOR_TYPE, 2, SHAPE},
    {LIST_TYPE, 1, TYPE},    {MAP_TYPE, 2, TYPE},       {SHAPE, 1, DIM},         {FUNCTION, 7, NODE},
    {FUNCTION, 9, OPSET},    {FUNCTION, 11, ATTRIBUTE},
};

typedef struct field field;
struct field {
    kind is;
    uint32_t number;
    hone_wire_type type;
    uint64_t value;
    uint8_t *data;
    size_t bytes;
    field *child, *next; /* of a message; its sibling */
};
typedef struct {
    hone_arena *arena;
    uint64_t seed;
    hone_vec(field *) all; /* every field but the root, in order */
} tree;

static uint64_t below(tree *t, uint64_t n) {
    t->seed ^= t->seed << 13, t->seed ^= t->seed >> 7, t->seed ^= t->seed << 17;
    return n ? (t->seed >> 11) % n : 0;
}

/* ---- bytes to tree and back ---------------------------------------------------------------------------- */
static bool read_fields(tree *t, field *parent, hone_wire w, int depth) {
    field **end = &parent->child;
    hone_field f;
    while (hone_wire_next(&w, &f)) {
        field *n = HONE_NEW(t->arena, field);
        if (!n || !hone_push(&t->all, n)) return false;
        *n = (field){.number = f.number, .type = f.type, .value = f.value, .bytes = f.bytes};
        if (f.type == HONE_WIRE_BYTES &&
            !(n->data =
                  hone_arena_copy(t->arena, f.bytes ? f.data : (const uint8_t *)"", f.bytes ? f.bytes : 1)))
            return false;
        for (size_t k = 0; f.type == HONE_WIRE_BYTES && k < sizeof messages / sizeof *messages; k++)
            if (messages[k].of == parent->is && messages[k].field == (int)f.number) n->is = messages[k].is;
        if (n->is && depth < 40 && hone_wire_good(hone_wire_of(&f)) &&
            !read_fields(t, n, hone_wire_of(&f), depth + 1))
            return false;
        *end = n, end = &n->next;
    }
    return !w.bad;
}
static size_t varint_size(uint64_t v) {
    size_t n = 1;
    for (; v > 127; v >>= 7) n++;
    return n;
}
static size_t put_varint(uint8_t *to, uint64_t v) {
    size_t n = 0;
    for (; v > 127; v >>= 7) to[n++] = (uint8_t)(v | 128);
    to[n++] = (uint8_t)v;
    return n;
}
/* The size of the fields of a message; sets `bytes` of messages on the way. */
static size_t measure(field *parent, int depth) {
    size_t total = 0;
    for (field *f = parent->child; f; f = f->next) {
        if (f->child && depth < 60) f->bytes = measure(f, depth + 1);
        total += varint_size((uint64_t)f->number << 3);
        if (f->type == HONE_WIRE_VARINT) total += varint_size(f->value);
        else
            total += f->type == HONE_WIRE_64   ? 8
                     : f->type == HONE_WIRE_32 ? 4
                                               : varint_size(f->bytes) + f->bytes;
    }
    return total;
}
static uint8_t *write_fields(const field *parent, uint8_t *to, int depth) {
    for (const field *f = parent->child; f; f = f->next) {
        to += put_varint(to, (uint64_t)f->number << 3 | (uint64_t)f->type);
        if (f->type == HONE_WIRE_VARINT) to += put_varint(to, f->value);
        else if (f->type == HONE_WIRE_64) memcpy(to, &f->value, 8), to += 8;
        else if (f->type == HONE_WIRE_32) memcpy(to, &f->value, 4), to += 4;
        else {
            to += put_varint(to, f->bytes);
            if (f->child && depth < 60) to = write_fields(f, to, depth + 1);
            else if (f->bytes) memcpy(to, f->data, f->bytes), to += f->bytes;
        }
    }
    return to;
}
static bool tree_open(tree *t, field *root, const uint8_t *data, size_t size) {
    *root = (field){.is = MODEL};
    return t->arena && read_fields(t, root, (hone_wire){data, data + size, false}, 0) && t->all.n > 0;
}
static size_t tree_close(tree *t, field *root, uint8_t *out, size_t room) {
    size_t n = measure(root, 0);
    if (n > room) n = 0;
    else write_fields(root, out, 0);
    hone_vec_free(&t->all);
    hone_arena_destroy(t->arena);
    return n;
}

/* ---- changes ------------------------------------------------------------------------------------------- */
static field *pick(tree *t) { return t->all.at[below(t, (uint64_t)t->all.n)]; }
static void change_number(tree *t, field *f) {
    static const int64_t odd[] = {0,
                                  1,
                                  2,
                                  3,
                                  4,
                                  7,
                                  8,
                                  16,
                                  17,
                                  64,
                                  255,
                                  256,
                                  65535,
                                  65536,
                                  1 << 20,
                                  INT32_MAX,
                                  (int64_t)INT32_MAX + 1,
                                  INT64_MAX,
                                  INT64_MIN,
                                  -1,
                                  -2,
                                  -3,
                                  INT32_MIN,
                                  (int64_t)1 << 40,
                                  (int64_t)1 << 62};
    if (f->type == HONE_WIRE_32) {
        static const float numbers[] = {0, -0.0f, 1, -1, 0.5f, 2, 1e-30f, 1e30f, 3.5f, 1e10f};
        float v = numbers[below(t, sizeof numbers / sizeof *numbers)];
        uint32_t bits = below(t, 8) ? 0 : 0x7fc00000;
        if (!bits) memcpy(&bits, &v, 4);
        f->value = bits;
    } else if (below(t, 3)) f->value = (uint64_t)odd[below(t, sizeof odd / sizeof *odd)];
    else f->value += below(t, 2) ? 1 : (uint64_t)-1;
}
static void set_bytes(tree *t, field *f, const void *data, size_t n) {
    uint8_t *copy = hone_arena_copy(t->arena, n ? data : "", n ? n : 1);
    if (copy) f->data = copy, f->bytes = n, f->child = NULL;
}
static void change_bytes(tree *t, field *f) {
    const hone_library *library;
    uint64_t how = below(t, 8);
    if (how < 4) { /* the same kind of text from elsewhere: another name, another op, another attribute */
        for (int k = 0; k < 20; k++) {
            const field *o = pick(t);
            if (o->type == HONE_WIRE_BYTES && !o->is && o->bytes && o->bytes < 100 &&
                (k > 10 || o->number == f->number)) {
                set_bytes(t, f, o->data, o->bytes);
                return;
            }
        }
    }
    if (how == 4 && f->number == 4 && hone_library_builtin(&library) == HONE_OK) {
        const char *name =
            hone_library_at(library, (int)below(t, (uint64_t)hone_library_count(library)))->name;
        set_bytes(t, f, name, strlen(name));
        return;
    }
    size_t room = f->bytes + 64;
    uint8_t *copy = hone_arena_alloc(t->arena, room);
    if (!copy) return;
    if (f->bytes) memcpy(copy, f->data, f->bytes);
    f->bytes = LLVMFuzzerMutate(copy, f->bytes, room);
    f->data = copy, f->child = NULL;
}
static void change_place(tree *t, field *f) {
    field *o = pick(t);
    switch (below(t, 4)) {
    case 0: /* out of the list: it takes over what follows */
        if (f->next) *f = *f->next;
        break;
    case 1: { /* twice */
        field *copy = hone_arena_copy(t->arena, f, sizeof *f);
        if (copy) f->next = copy;
        break;
    }
    case 2: /* another of the same message */
        for (int k = 0; k < 30 && (o->is != f->is || o->type != f->type); k++) o = pick(t);
        if (o->is == f->is && o->type == f->type && o != f)
            f->value = o->value, f->data = o->data, f->bytes = o->bytes, f->child = o->child;
        break;
    default: /* trade with a neighbour */
        if (f->next) {
            field here = *f, there = *f->next;
            field *after = there.next;
            *f = there, f->next = here.next;
            *here.next = here, here.next->next = after;
        }
    }
}
/* A copy may hang in two places, and a message could come to hold itself: a tree too deep or too large is not
   written. */
static bool sane(const field *parent, int depth, int *left) {
    if (depth > 50) return false;
    for (const field *f = parent->child; f; f = f->next)
        if (--*left < 0 || (f->child && !sane(f, depth + 1, left))) return false;
    return true;
}

size_t mutate_model(uint8_t *data, size_t size, size_t room, unsigned seed) {
    tree t = {.arena = hone_arena_create(), .seed = seed * 0x9e3779b97f4a7c15u + 1};
    field root;
    if (below(&t, 20) == 0 || !tree_open(&t, &root, data, size)) {
        hone_vec_free(&t.all);
        hone_arena_destroy(t.arena);
        return LLVMFuzzerMutate(data, size, room);
    }
    for (uint64_t n = 1 + below(&t, 4); n; n--) {
        field *f = pick(&t);
        if (below(&t, 3) == 0) change_place(&t, f);
        else if (f->type != HONE_WIRE_BYTES) change_number(&t, f);
        else if (!f->is) change_bytes(&t, f);
        else if (below(&t, 4) == 0) change_place(&t, f);
    }
    int left = 20000;
    if (!sane(&root, 0, &left)) root.child = NULL;
    size_t n = tree_close(&t, &root, data, room);
    return n ? n : LLVMFuzzerMutate(data, size, room);
}
size_t mutate_join(const uint8_t *a, size_t na, const uint8_t *b, size_t nb, uint8_t *out, size_t room,
                   unsigned seed) {
    tree t = {.arena = hone_arena_create(), .seed = seed * 0x9e3779b97f4a7c15u + 1}, u = {.arena = t.arena};
    field root, other, *to = NULL;
    bool ok = tree_open(&t, &root, a, na) && tree_open(&u, &other, b, nb);
    for (field *f = ok ? root.child : NULL; f; f = f->next) to = f->is == GRAPH ? f : to;
    for (field *f = ok ? other.child : NULL; f && to; f = f->next)
        for (field *g = f->is == GRAPH ? f->child : NULL; g;) {
            field *next = g->next;
            /* in front: what it makes can be read by all */
            if (below(&t, 3)) g->next = to->child, to->child = g;
            g = next;
        }
    hone_vec_free(&u.all);
    if (!to) root.child = NULL;
    return tree_close(&t, &root, out, room);
}
