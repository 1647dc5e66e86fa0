/* SPDX-License-Identifier: Apache-2.0
   file: whole files in and out. A mapped file that somebody cuts short while we read it raises SIGBUS; that
   is the system's contract, and model files are replaced by rename (as we write them), not rewritten in
   place. */
#define _GNU_SOURCE
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static hone_status refuse(const char *verb, const char *path) {
    return hone_fail(HONE_IO, "cannot %s '%s': %s", verb, path, strerror(errno));
}

/* What is mapped now, so that a piece of it can be forgotten by whoever has its address. One that finds no
   room here is not forgotten. */
enum { MOST = 256 };
static struct { uintptr_t from, to; } mapped[MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void note(uintptr_t at, uintptr_t from, uintptr_t to) { /* the row that begins at `at` becomes this */
    pthread_mutex_lock(&lock);
    int k = 0;
    while (k < MOST && mapped[k].from != at) k++;
    if (k < MOST) mapped[k].from = from, mapped[k].to = to;
    pthread_mutex_unlock(&lock);
}

/* For file systems that cannot map. */
static hone_status read_all(int fd, const char *path, size_t bytes, hone_file *out) {
    uint8_t *data = hone_alloc_raw(bytes);
    if (!data) return hone_fail(HONE_NO_MEMORY, "no memory for '%s' (%zu bytes)", path, bytes);
    for (size_t at = 0; at < bytes;) {
        ssize_t got = read(fd, data + at, bytes - at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            hone_free(data);
            return got < 0
                       ? refuse("read", path)
                       : hone_fail(HONE_IO, "cannot read '%s': it became shorter while it was read", path);
        }
        at += (size_t)got;
    }
    *out = (hone_file){data, bytes, false};
    return HONE_OK;
}

hone_status hone_file_open(const char *path, hone_file *out) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer must not hang us */
    if (fd < 0) return refuse("open", path);
    struct stat st;
    hone_status s = HONE_OK;
    if (fstat(fd, &st) != 0) s = refuse("open", path);
    else if (!S_ISREG(st.st_mode)) s = hone_fail(HONE_IO, "cannot open '%s': it is not a regular file", path);
    else if ((uint64_t)st.st_size > PTRDIFF_MAX)
        s = hone_fail(HONE_IO, "cannot open '%s': it is larger than the address space", path);
    else if (st.st_size == 0) *out = (hone_file){(const uint8_t *)"", 0, false};
    else {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED) {
            *out = (hone_file){p, (size_t)st.st_size, true};
            note(0, (uintptr_t)p, (uintptr_t)p + (size_t)st.st_size);
        } else s = read_all(fd, path, (size_t)st.st_size, out);
    }
    close(fd);
    return s;
}

void hone_file_close(hone_file *f) {
    if (f->mapped) {
        note((uintptr_t)f->data, 0, 0);
        munmap((void *)f->data, f->bytes);
    } else if (f->bytes) hone_free((void *)f->data);
    *f = (hone_file){0};
}

void hone_file_forget(const void *at, size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    pthread_mutex_lock(&lock); /* so that it is not closed meanwhile */
    for (int k = 0; k < MOST; k++) {
        if ((uintptr_t)at < mapped[k].from || (uintptr_t)at >= mapped[k].to) continue;
        uintptr_t from = ((uintptr_t)at + page - 1) / page * page, to = mapped[k].to;
        /* at the file's end nothing else lives on the last page */
        if (bytes < to - (uintptr_t)at) to = ((uintptr_t)at + bytes) / page * page;
        if (from < to) madvise((void *)from, to - from, MADV_DONTNEED);
    }
    pthread_mutex_unlock(&lock);
}

static bool write_all(int fd, const uint8_t *data, size_t bytes) {
    while (bytes) {
        ssize_t put = write(fd, data, bytes);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        data += put, bytes -= (size_t)put;
    }
    return true;
}

hone_status hone_file_begin(const char *path, hone_file_out *out) {
    static atomic_uint serial;
    struct stat st;
    /* A device or pipe is written, not replaced: renaming over /dev/null would be a disaster. */
    bool direct = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
    size_t n = strlen(path) + 1, room = n + 48;
    hone_file_out f = {.path = hone_alloc(n), .temp = direct ? NULL : hone_alloc(room), .fd = -1};
    hone_status s = HONE_OK;
    if (!f.path || (!direct && !f.temp)) s = hone_fail(HONE_NO_MEMORY, "no memory to write '%s'", path);
    if (!s) memcpy(f.path, path, n);
    if (!s && f.temp)
        snprintf(f.temp, room, "%s.%ld-%u.tmp", path, (long)getpid(), atomic_fetch_add(&serial, 1));
    if (!s && (f.fd = open(direct ? path : f.temp, O_WRONLY | O_CLOEXEC | (direct ? 0 : O_CREAT | O_EXCL),
                           0666)) < 0)
        s = refuse("write", path);
    if (s) hone_free(f.path), hone_free(f.temp);
    else *out = f;
    return s;
}

hone_status hone_file_put(hone_file_out *f, const void *data, size_t bytes) {
    if (f->status) return f->status;
    if (!write_all(f->fd, data, bytes)) return f->status = refuse("write", f->path);
    f->bytes += bytes;
    return HONE_OK;
}

hone_status hone_file_end(hone_file_out *f, bool keep) {
    keep = keep && !f->status;
    if (keep && f->temp && fsync(f->fd) != 0) f->status = refuse("write", f->path);
    if (close(f->fd) != 0 && keep && !f->status) f->status = refuse("write", f->path);
    if (keep && f->temp && !f->status && rename(f->temp, f->path) != 0) f->status = refuse("write", f->path);
    if (f->temp && (!keep || f->status)) unlink(f->temp);
    hone_free(f->path), hone_free(f->temp);
    return f->status;
}

hone_status hone_file_write(const char *path, const void *data, size_t bytes) {
    hone_file_out f;
    HONE_TRY(hone_file_begin(path, &f));
    hone_file_put(&f, data, bytes);
    return hone_file_end(&f, true);
}

bool hone_file_same(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

char *hone_path_beside(hone_arena *a, const char *path, const char *name) {
    if (!name[0] || name[0] == '/') return NULL;
    for (const char *part = name; part; part = strchr(part, '/')) {
        if (*part == '/') part++;
        if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || !part[2])) return NULL;
    }
    const char *slash = strrchr(path, '/');
    return hone_arena_text(a, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, name);
}
