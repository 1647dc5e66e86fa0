/* SPDX-License-Identifier: Apache-2.0
   npz: NumPy's archive of arrays: a zip file with a .npy a name, stored or deflated (by zlib, loaded when one
   comes). Of zip's many habits only what NumPy and zip programs write for such files: one disk, no
   encryption, 64-bit sizes. */
#include <string.h>

#include "base/file.h"
#include "base/value.h"
#include "image/library.h"
#include "run/npy.h"
#include "run/npz.h"

#if __has_include(<zlib.h>)
#include <zlib.h>
#define CALLS(X) X(inflateInit2_) X(inflate) X(inflateEnd)
HONE_LIBRARY(CALLS, "libz.so.1", "zlib1g")
#define HAVE_ZLIB 1
#else
#define HAVE_ZLIB 0
#endif

enum {
    END_BYTES = 22,
    COMMENT_MOST = 65535,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    DEFLATE_MOST = 1032,
    STORED = 0,
    DEFLATED = 8
};

typedef struct { /* one file of the archive */
    const char *name;
    size_t name_bytes;
    unsigned flags, method;
    uint32_t crc;
    uint64_t packed, bytes, at; /* at: of its local header */
} entry;

static uint64_t little(const uint8_t *p, int bytes) { /* little-endian */
    uint64_t v = 0;
    while (bytes-- > 0) v = v << 8 | p[bytes];
    return v;
}
static hone_status damaged(const char *what) {
    return hone_fail(HONE_BAD_INPUT, "the archive is damaged: %s", what);
}

/* Where the directory begins and how many entries it has. */
static hone_status directory(const hone_file *f, uint64_t *at, uint64_t *n) {
    if (f->bytes < END_BYTES)
        return hone_fail(HONE_BAD_INPUT, "this is no .npz archive: it is too short for one");
    const uint8_t *end = f->data + f->bytes - END_BYTES;
    for (int k = 0; little(end, 4) != 0x06054b50; k++, end--)
        if (end == f->data || k == COMMENT_MOST)
            return hone_fail(HONE_BAD_INPUT, "this is no .npz archive: it has no directory at its end");
    *n = little(end + 10, 2), *at = little(end + 16, 4);
    if (*n == 0xffff || *at == 0xffffffff) { /* the 64-bit form stands in front */
        const uint8_t *pointer = end - f->data >= 20 ? end - 20 : NULL;
        const uint64_t where =
            pointer && little(pointer, 4) == 0x07064b50 ? little(pointer + 8, 8) : UINT64_MAX;
        if (where > f->bytes - END_BYTES || f->bytes - where < 56 || little(f->data + where, 4) != 0x06064b50)
            return damaged("its 64-bit directory is not there");
        *n = little(f->data + where + 32, 8), *at = little(f->data + where + 48, 8);
    }
    return *at <= f->bytes && *n <= f->bytes / ENTRY_BYTES ? HONE_OK : damaged("its directory lies outside");
}
/* Sizes that have no room in 32 bits stand in a field of their own, in this order. */
static bool read_wide(const uint8_t *extra, size_t bytes, entry *e) {
    while (bytes >= 4) {
        size_t n = (size_t)little(extra + 2, 2);
        if (n > bytes - 4) return false;
        if (little(extra, 2) == 1) {
            const uint8_t *p = extra + 4, *end = p + n;
            uint64_t *const field[] = {&e->bytes, &e->packed, &e->at};
            for (int k = 0; k < 3; k++) {
                if (*field[k] != 0xffffffff) continue;
                if (end - p < 8) return false;
                *field[k] = little(p, 8), p += 8;
            }
            return true;
        }
        extra += 4 + n, bytes -= 4 + n;
    }
    return true;
}
/* The entry at *at, which moves behind it. */
static hone_status next(const hone_file *f, uint64_t *at, entry *e) {
    if (f->bytes - *at < ENTRY_BYTES || little(f->data + *at, 4) != 0x02014b50)
        return damaged("its directory is cut short");
    const uint8_t *p = f->data + *at;
    const size_t name = (size_t)little(p + 28, 2), extra = (size_t)little(p + 30, 2),
                 comment = (size_t)little(p + 32, 2);
    if (f->bytes - *at - ENTRY_BYTES < name + extra + comment) return damaged("its directory is cut short");
    *e = (entry){.name = (const char *)p + ENTRY_BYTES,
                 .name_bytes = name,
                 .flags = (unsigned)little(p + 8, 2),
                 .method = (unsigned)little(p + 10, 2),
                 .crc = (uint32_t)little(p + 16, 4),
                 .packed = little(p + 20, 4),
                 .bytes = little(p + 24, 4),
                 .at = little(p + 42, 4)};
    if (!read_wide(p + ENTRY_BYTES + name, extra, e)) return damaged("sizes are cut short");
    if (e->name_bytes > 4 && !memcmp(e->name + e->name_bytes - 4, ".npy", 4)) e->name_bytes -= 4;
    *at += ENTRY_BYTES + name + extra + comment;
    return HONE_OK;
}

static uint32_t crc_of(const uint8_t *p, size_t n) {
    uint32_t table[256], crc = UINT32_MAX;
    for (uint32_t k = 0; k < 256; k++) {
        uint32_t c = k;
        for (int bit = 0; bit < 8; bit++) c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
        table[k] = c;
    }
    for (size_t k = 0; k < n; k++) crc = table[(crc ^ p[k]) & 0xff] ^ crc >> 8;
    return ~crc;
}
static hone_status unpack(const uint8_t *from, size_t packed, uint8_t *to, size_t bytes) {
#if HAVE_ZLIB
    HONE_TRY(hone_library_load(&library));
    z_stream z = {.next_in = (Bytef *)(uintptr_t)from, .next_out = to};
    if (lib.inflateInit2_(&z, -15, ZLIB_VERSION, (int)sizeof z) != Z_OK)
        return hone_fail(HONE_NO_MEMORY, "no memory to unpack it");
    int rc = Z_OK;
    while (rc == Z_OK) { /* zlib counts in 32 bits */
        const size_t in = packed < UINT32_MAX ? packed : UINT32_MAX,
                     room = bytes < UINT32_MAX ? bytes : UINT32_MAX;
        z.avail_in = (uInt)in, z.avail_out = (uInt)room;
        rc = lib.inflate(&z, Z_NO_FLUSH);
        packed -= in - z.avail_in, bytes -= room - z.avail_out;
        if (rc == Z_OK && z.avail_in == in && z.avail_out == room) break;
    }
    lib.inflateEnd(&z);
    return rc == Z_STREAM_END && bytes == 0 ? HONE_OK
                                            : damaged("what is deflated in it does not end where it should");
#else
    return hone_library_unbuilt("zlib1g-dev");
#endif
}
static hone_status read_entry(const hone_file *f, const entry *e, hone_value **out) {
    if (e->flags & 1) return hone_fail(HONE_NOT_SUPPORTED, "it is encrypted");
    if (e->method != STORED && e->method != DEFLATED)
        return hone_fail(HONE_NOT_SUPPORTED, "it is packed by method %u; stored and deflated can be read",
                         e->method);
    if (e->at > f->bytes || f->bytes - e->at < LOCAL_BYTES || little(f->data + e->at, 4) != 0x04034b50)
        return damaged("an array is not where it should be");
    const uint8_t *p = f->data + e->at;
    const uint64_t head = LOCAL_BYTES + little(p + 26, 2) + little(p + 28, 2);
    if (head > f->bytes - e->at || e->packed > f->bytes - e->at - head)
        return damaged("an array is cut short");
    if (e->method == STORED ? e->bytes != e->packed : e->bytes > e->packed * DEFLATE_MOST + DEFLATE_MOST)
        return damaged("an array's size is impossible");
    const uint8_t *data = p + head;
    uint8_t *made = NULL;
    hone_status s = HONE_OK;
    if (e->method == DEFLATED) {
        if (!(made = hone_alloc((size_t)e->bytes + 1)))
            return hone_fail(HONE_NO_MEMORY, "no memory for %llu bytes", (unsigned long long)e->bytes);
        s = unpack(data, (size_t)e->packed, made, (size_t)e->bytes), data = made;
    }
    if (!s && crc_of(data, (size_t)e->bytes) != e->crc) s = damaged("the checksum of an array is another");
    if (!s) s = hone_npy_read(data, (size_t)e->bytes, out);
    hone_free(made);
    return s;
}

hone_status hone_npz_find(const hone_file *f, const char *name, hone_value **out) {
    uint64_t at, n;
    entry e = {0};
    HONE_TRY(directory(f, &at, &n));
    for (uint64_t k = 0; k < n; k++) {
        HONE_TRY(next(f, &at, &e));
        if (strlen(name) == e.name_bytes && !memcmp(e.name, name, e.name_bytes))
            return read_entry(f, &e, out);
    }
    return hone_fail(HONE_BAD_INPUT, "it has no array '%s'", name);
}
hone_status hone_npz_list(const hone_file *f, hone_text *t) {
    uint64_t at, n;
    entry e = {0};
    HONE_TRY(directory(f, &at, &n));
    hone_text_put(t, "[");
    for (uint64_t k = 0; k < n; k++) {
        char name[512];
        HONE_TRY(next(f, &at, &e));
        if (e.name_bytes >= sizeof name || memchr(e.name, 0, e.name_bytes))
            return damaged("a name is impossible");
        memcpy(name, e.name, e.name_bytes), name[e.name_bytes] = 0;
        if (k) hone_text_put(t, ", ");
        hone_text_json(t, name);
    }
    hone_text_put(t, "]");
    return HONE_OK;
}
