/* SPDX-License-Identifier: Apache-2.0
   shared: regions are kept as open files, and read and written as files are: a client that cuts its region
   short while it is used gets an error, where a mapping would end the server (SIGBUS). It costs one copy,
   which the socket would have cost several times. */
#include "serve/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/cuda.h"

enum { REGIONS_MAX = 4096, KEY_ROOM = 256 };
typedef struct {
    char name[128], key[KEY_ROOM];
    uint64_t offset, bytes;
    int fd;
    hone_serve_cuda *cuda; /* then this is where it is, and there is no file */
    int64_t device;
} region;
struct hone_serve_shared {
    pthread_rwlock_t lock; /* written to add and remove: a file is not closed while it is used */
    region *at;
    int n, room;
};

hone_serve_shared *hone_serve_shared_create(void) {
    hone_serve_shared *s = calloc(1, sizeof *s);
    if (s) pthread_rwlock_init(&s->lock, NULL);
    return s;
}
static void let_go(region *r) {
    if (r->cuda) hone_serve_cuda_close(r->cuda);
    else close(r->fd);
}
void hone_serve_shared_free(hone_serve_shared *s) {
    if (!s) return;
    for (int k = 0; k < s->n; k++) let_go(&s->at[k]);
    pthread_rwlock_destroy(&s->lock);
    free(s->at), free(s);
}

static region *find(hone_serve_shared *s, const char *name) { /* with the lock held */
    for (int k = 0; k < s->n; k++)
        if (!strcmp(s->at[k].name, name)) return &s->at[k];
    return NULL;
}
static int unknown(const char *kind, const char *name, hone_serve_error *e) {
    return hone_serve_fail(e, 404, "Unable to find %s shared memory region: '%.100s'", kind, name);
}

/* Takes what the region holds. */
static int add(hone_serve_shared *s, region *r, hone_serve_error *e) {
    pthread_rwlock_wrlock(&s->lock);
    if (!e->code && find(s, r->name))
        hone_serve_fail(e, 400, "shared memory region '%s' already in manager", r->name);
    if (!e->code && s->n == REGIONS_MAX) hone_serve_fail(e, 400, "there are %d regions already", REGIONS_MAX);
    if (!e->code && s->n == s->room) {
        region *more = realloc(s->at, sizeof *more * (size_t)(s->room * 2 + 16));
        if (more) s->at = more, s->room = s->room * 2 + 16;
        else hone_serve_fail(e, 503, "no memory for a region");
    }
    if (!e->code) s->at[s->n++] = *r;
    pthread_rwlock_unlock(&s->lock);
    if (e->code) let_go(r);
    return e->code;
}
int hone_serve_shared_add(hone_serve_shared *s, const char *name, const char *key, uint64_t offset,
                          uint64_t bytes, hone_serve_error *e) {
    struct stat st;
    region r = {.offset = offset, .bytes = bytes};
    const size_t name_n = strlen(name), key_n = strlen(key);
    if (!name_n || name_n >= sizeof r.name)
        return hone_serve_fail(e, 400, "a region's name has 1 to %zu bytes", sizeof r.name - 1);
    if (*key != '/' || !key[1] || strchr(key + 1, '/') || key_n >= sizeof r.key)
        return hone_serve_fail(e, 400, "region '%s': the key is one of shm_open, as in /name", name);
    r.fd = shm_open(key, O_RDWR | O_CLOEXEC, 0);
    if (r.fd < 0)
        return hone_serve_fail(e, 400, "region '%s': Unable to open shared memory region: '%s': %s", name,
                               key, strerror(errno));
    memcpy(r.name, name, name_n + 1), memcpy(r.key, key, key_n + 1);
    e->code = 0;
    if (fstat(r.fd, &st) || !bytes || offset > (uint64_t)st.st_size || bytes > (uint64_t)st.st_size - offset)
        hone_serve_fail(e, 400, "region '%s': %llu bytes at %llu are not all within '%s'", name,
                        (unsigned long long)bytes, (unsigned long long)offset, key);
    return add(s, &r, e);
}
int hone_serve_shared_add_cuda(hone_serve_shared *s, const char *name, const uint8_t *handle, size_t n,
                               int64_t device, uint64_t bytes, hone_serve_error *e) {
    region r = {.bytes = bytes, .fd = -1, .device = device};
    const size_t name_n = strlen(name);
    const char *why = NULL;
    e->code = 0;
    if (!name_n || name_n >= sizeof r.name)
        return hone_serve_fail(e, 400, "a region's name has 1 to %zu bytes", sizeof r.name - 1);
    memcpy(r.name, name, name_n + 1);
    if (!hone_serve_cuda_there()) why = "GPUs not supported";
    else if (n != HONE_SERVE_CUDA_HANDLE) why = "a handle has 64 bytes";
    else why = hone_serve_cuda_open(handle, device, bytes, &r.cuda);
    if (why)
        return hone_serve_fail(e, 400, "failed to register CUDA shared memory region: '%s', %s", name, why);
    return add(s, &r, e);
}

/* One that is not there is no mistake: clients clean up so, as with Triton. */
int hone_serve_shared_remove(hone_serve_shared *s, bool cuda, const char *name, hone_serve_error *e) {
    e->code = 0;
    pthread_rwlock_wrlock(&s->lock);
    for (int k = s->n - 1; k >= 0; k--) {
        if (!s->at[k].cuda == cuda || (*name && strcmp(s->at[k].name, name) != 0)) continue;
        let_go(&s->at[k]);
        s->at[k] = s->at[--s->n];
    }
    pthread_rwlock_unlock(&s->lock);
    return 0;
}

json_t *hone_serve_shared_list(hone_serve_shared *s, bool cuda, const char *name, hone_serve_error *e) {
    json_t *list = json_array();
    e->code = 0;
    pthread_rwlock_rdlock(&s->lock);
    for (int k = 0; k < s->n; k++) {
        const region *r = &s->at[k];
        if (!r->cuda == cuda || (*name && strcmp(r->name, name) != 0)) continue;
        json_array_append_new(list, cuda ? json_pack("{s:s, s:I, s:I}", "name", r->name, "device_id",
                                                     (json_int_t)r->device, "byte_size", (json_int_t)r->bytes)
                                         : json_pack("{s:s, s:s, s:I, s:I}", "name", r->name, "key", r->key,
                                                     "offset", (json_int_t)r->offset, "byte_size",
                                                     (json_int_t)r->bytes));
    }
    pthread_rwlock_unlock(&s->lock);
    if (!*name || json_array_size(list)) return list;
    json_decref(list);
    unknown(cuda ? "cuda" : "system", name, e);
    return NULL;
}

/* Within the region: to `to`, or from `from`. */
static void copy(const region *r, uint64_t offset, void *to, const void *from, size_t bytes,
                 hone_serve_error *e) {
    if (r->cuda) {
        const char *why = to ? hone_serve_cuda_read(r->cuda, offset, to, bytes)
                             : hone_serve_cuda_write(r->cuda, offset, from, bytes);
        if (why) hone_serve_fail(e, 400, "region '%s': %s", r->name, why);
        return;
    }
    for (size_t done = 0; !e->code && done < bytes;) {
        const off_t at = (off_t)(r->offset + offset + done);
        const ssize_t n = to ? pread(r->fd, (char *)to + done, bytes - done, at)
                             : pwrite(r->fd, (const char *)from + done, bytes - done, at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            hone_serve_fail(e, 400, "region '%s': %s", r->name,
                            n ? strerror(errno) : "it was cut short by its owner");
        else done += (size_t)n;
    }
}
static int move(hone_serve_shared *s, const char *name, uint64_t offset, void *to, const void *from,
                size_t bytes, hone_serve_error *e) {
    e->code = 0;
    pthread_rwlock_rdlock(&s->lock);
    const region *r = find(s, name);
    if (!r) unknown("system", name, e);
    else if (offset > r->bytes || bytes > r->bytes - offset)
        hone_serve_fail(e, 400, "%zu bytes at %llu are beyond region '%s' of %llu", bytes,
                        (unsigned long long)offset, name, (unsigned long long)r->bytes);
    else copy(r, offset, to, from, bytes, e);
    pthread_rwlock_unlock(&s->lock);
    return e->code;
}

int hone_serve_shared_input(hone_serve_shared *s, const hone_serve_place *p, const char *input, void *at,
                            size_t bytes, hone_value *texts, hone_serve_error *e) {
    if (!texts && p->bytes != bytes)
        return hone_serve_fail(
            e, 400, "input '%s': shared_memory_byte_size is %llu, and its shape and datatype have %zu bytes",
            input, (unsigned long long)p->bytes, bytes);
    if (!texts) return bytes ? move(s, p->name, p->offset, at, NULL, bytes, e) : 0;
    void *packed = p->bytes < SIZE_MAX / 2 ? malloc((size_t)p->bytes + 1) : NULL;
    if (!packed) return hone_serve_fail(e, 503, "no memory for input '%s'", input);
    if (!move(s, p->name, p->offset, packed, NULL, (size_t)p->bytes, e))
        hone_serve_text_unpack(texts, packed, (size_t)p->bytes, e);
    free(packed);
    return e->code;
}
int hone_serve_shared_output(hone_serve_shared *s, const hone_serve_place *p, const char *output,
                             hone_value *v, uint64_t *bytes, hone_serve_error *e) {
    const bool text = hone_value_dtype(v) == HONE_DTYPE_STRING;
    const size_t n = text ? hone_serve_text_packed(v) : hone_value_bytes(v);
    void *packed = text ? malloc(n + 1) : NULL;
    *bytes = n;
    if (n > p->bytes)
        hone_serve_fail(e, 400, "output '%s' has %zu bytes, and shared_memory_byte_size is %llu", output, n,
                        (unsigned long long)p->bytes);
    else if (text && !packed) hone_serve_fail(e, 503, "no memory for output '%s'", output);
    else {
        if (text) hone_serve_text_pack(v, packed);
        if (n) move(s, p->name, p->offset, NULL, text ? packed : hone_value_data(v), n, e);
    }
    free(packed);
    return e->code;
}
