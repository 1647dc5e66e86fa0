/* SPDX-License-Identifier: Apache-2.0
   output: refusing what is read, and writing beside the file before it takes its place. */
#define _GNU_SOURCE
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hone/tools.h"

static bool same(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino &&
           S_ISREG(x.st_mode);
}

int hone_output_check(const char *option, const char *path, const hone_words *models,
                      const hone_words *files) {
    for (int k = 0; models && k < models->n; k++)
        if (hone_not_source(models->at[k], path)) return hone_args_wrong("%s: %s", option, hone_error());
    for (int k = 0; files && k < files->n; k++) {
        int length;
        const char *after = hone_args_after(files->at[k], &length);
        if (same(files->at[k], path) || (after && same(after, path)))
            return hone_args_wrong("%s: cannot write '%s': it is one of the inputs; choose another name",
                                   option, path);
    }
    return 0;
}

int hone_output_begin(const char *option, const char *path, hone_output *out) {
    struct stat st;
    *out = (hone_output){.option = option, .path = path};
    bool direct = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
    if (direct) {
        out->to = fopen(path, "we");
    } else {
        /* a link leads to the file that is replaced */
        char *real = realpath(path, NULL), *part = NULL;
        if (!real) real = strdup(path);
        if (!real || asprintf(&part, "%s.%ld.part", real, (long)getpid()) < 0) part = NULL, errno = ENOMEM;
        out->real = real, out->part = part;
        int fd = out->part ? open(out->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
        out->to = fd < 0 ? NULL : fdopen(fd, "w");
    }
    if (out->to) return 0;
    int rc = hone_args_wrong("%s %s: the file cannot be written: %s", option, path, strerror(errno));
    free(out->part), free(out->real);
    *out = (hone_output){0};
    return rc;
}

int hone_output_try(const char *option, const char *path) {
    struct stat st;
    hone_output o;
    /* a pipe would be opened, and closed again */
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return 0;
    int rc = hone_output_begin(option, path, &o);
    return rc ? rc : hone_output_end(&o, false);
}

int hone_output_end(hone_output *o, bool keep) {
    int rc = 0, lost = ferror(o->to);
    if (fclose(o->to)) lost = 1;
    if (keep && !lost && o->part && rename(o->part, o->real)) lost = 1;
    if (keep && lost)
        rc = hone_args_wrong("%s %s: the file could not be written: %s", o->option, o->path,
                             errno ? strerror(errno) : "is the disk full?");
    if (o->part && (!keep || lost)) unlink(o->part);
    free(o->part), free(o->real);
    *o = (hone_output){0};
    return rc;
}
