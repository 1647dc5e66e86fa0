/* SPDX-License-Identifier: Apache-2.0 */
#include "device/kept.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"

typedef struct { /* before the code: what it was made of, by two hashes, and a hash of itself */
    char magic[8];
    uint64_t key[2], hash, bytes;
} head;
static const char magic[8] = "honebin";
static uint64_t hash(uint64_t h, const void *at, size_t n) {
    for (size_t k = 0; k < n; k++) h = (h ^ ((const unsigned char *)at)[k]) * 0x100000001b3u;
    return h;
}
hone_kept hone_kept_name(const char *folder, const char *end, const char *const *part, int n) {
    hone_kept out = {.key = {0xcbf29ce484222325u, 0x9e3779b97f4a7c15u}};
    for (int w = 0; w < 2; w++)
        for (int k = 0; k < n; k++) out.key[w] = hash(out.key[w], part[k], strlen(part[k]) + 1);
    if (folder && snprintf(out.path, sizeof out.path, "%s/%016llx.%s", folder, (unsigned long long)out.key[0],
                           end) >= (int)sizeof out.path)
        out.path[0] = 0;
    return out;
}
void *hone_kept_get(const hone_kept *k, size_t *bytes) {
    hone_file f;
    head h;
    void *code = NULL;
    if (!k->path[0] || hone_file_open(k->path, &f)) return NULL;
    if (f.bytes > sizeof h) {
        const size_t n = f.bytes - sizeof h;
        memcpy(&h, f.data, sizeof h);
        if (!memcmp(h.magic, magic, sizeof magic) && !memcmp(h.key, k->key, sizeof h.key) && h.bytes == n &&
            h.hash == hash(0, f.data + sizeof h, n) && (code = hone_alloc_raw(n)))
            memcpy(code, f.data + sizeof h, *bytes = n);
    }
    hone_file_close(&f);
    return code;
}
void hone_kept_put(const hone_kept *k, const void *code, size_t bytes) {
    head h = {.key = {k->key[0], k->key[1]}, .hash = hash(0, code, bytes), .bytes = bytes};
    unsigned char *all = k->path[0] ? hone_alloc_raw(sizeof h + bytes) : NULL;
    if (!all) return;
    memcpy(h.magic, magic, sizeof magic);
    memcpy(all, &h, sizeof h), memcpy(all + sizeof h, code, bytes);
    (void)!hone_file_write(k->path, all, sizeof h + bytes);
    hone_free(all);
}
