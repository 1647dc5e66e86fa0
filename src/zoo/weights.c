/* SPDX-License-Identifier: Apache-2.0
   weights: numbers from a seed, a name and a place. Whole-number hashing, then one exact conversion and one
   rounded product: the same bits on every machine, with any number of threads, and the one tensor does not
   depend on the others. */
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "base/thread.h"
#include "zoo/build.h"

enum { BLOCK = 1 << 16 };
static const int64_t most_bytes = (int64_t)8 << 30; /* a mistyped option should not fill the machine */

typedef struct {
    float *to;
    int64_t n;
    uint64_t key;
    float center, unit;
} filling;

/* Each block has a key of its own, so that 32 bits are enough inside it; compilers make vector code of the
   loop. */
static void fill_block(const filling *f, int64_t block) {
    int64_t from = block * BLOCK;
    uint32_t n = (uint32_t)(f->n - from < BLOCK ? f->n - from : BLOCK),
             key = (uint32_t)hone_mix64(f->key + (uint64_t)block);
    float *to = f->to + from, center = f->center, unit = f->unit;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t h = (k ^ key) * 0x9e3779b1u;
        h = (h ^ h >> 15) * 0x85ebca6bu;
        h = (h ^ h >> 13) * 0xc2b2ae35u;
        h ^= h >> 16;
        to[k] = center + (float)((int32_t)(h >> 8) - (1 << 23)) * unit;
    }
}
static void fill_part(void *arg, int member, int members) {
    const filling *f = arg;
    for (int64_t k = member; k * BLOCK < f->n; k += members) fill_block(f, k);
}

/* "layer1.0.weight" from "/layer1/0" and "weight" */
static void full_name(const hone_zoo *z, const char *leaf, char *out, size_t room) {
    snprintf(out, room, "%s/%s", z->path, leaf);
    for (char *c = out; *c; c++)
        if (*c == '/') *c = '.';
    memmove(out, out + 1, strlen(out));
}

void hone_zoo_fill(const hone_zoo *z, const char *leaf, float *to, int64_t n, double center, double reach) {
    char name[320];
    full_name(z, leaf, name, sizeof name);
    uint64_t key = 1469598103934665603u ^ hone_mix64((uint64_t)hone_zoo_option(z, HONE_ZOO_SEED) + 1);
    for (const char *c = name; *c; c++) key = (key ^ (unsigned char)*c) * 1099511628211u;
    filling f = {to, n, hone_mix64(key), (float)center, (float)reach / (1 << 23)};
    hone_team_run(n < 16 * BLOCK ? 1 : 0, fill_part, &f);
}

hone_vid hone_zoo_const(hone_zoo *z, const char *leaf, hone_value *take) {
    char name[320];
    full_name(z, leaf, name, sizeof name);
    if (z->status) {
        hone_value_drop(take);
        return -1;
    }
    z->weight_bytes += (int64_t)take->bytes;
    hone_vid v = hone_graph_const(z->g, name, take);
    if (v < 0) z->status = hone_fail(HONE_NO_MEMORY, "no memory for the network");
    return v;
}

hone_vid hone_zoo_buffer(hone_zoo *z, const char *leaf, const hone_dim *dim, int rank, double center,
                         double reach) {
    char name[320];
    int64_t n;
    hone_value *value;
    if (z->status) return -1;
    full_name(z, leaf, name, sizeof name);
    if (!hone_count_of(dim, rank, &n) || n > most_bytes / 4 || z->weight_bytes > most_bytes - n * 4) {
        z->status =
            hone_fail(HONE_BAD_INPUT,
                      "with these options the weights would be above %lld GB, at '%s': take smaller ones",
                      (long long)(most_bytes >> 30), name);
        return -1;
    }
    if (z->measure) {
        z->weight_bytes += n * 4;
        return hone_zoo_var(z, name, HONE_DTYPE_F32, dim, rank);
    }
    if ((z->status = hone_value_tensor(HONE_DTYPE_F32, dim, rank, &value))) return -1;
    hone_zoo_fill(z, leaf, value->data, n, center, reach);
    return hone_zoo_const(z, leaf, value);
}

hone_vid hone_zoo_weight(hone_zoo *z, const char *leaf, const hone_dim *dim, int rank, double center,
                         double reach) {
    int64_t n;
    if (hone_count_of(dim, rank, &n)) z->parameters += n;
    return hone_zoo_buffer(z, leaf, dim, rank, center, reach);
}
