/* SPDX-License-Identifier: Apache-2.0
   advice: see advice.h. */
#include "run/advice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

void hone_advice_path(hone_text *t) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    /* several may share a home */
    const unsigned long long machine = (unsigned long long)hone_wisdom_machine();
    if (cache && *cache == '/') hone_text_put(t, "%s/hone/wisdom-%016llx.txt", cache, machine);
    else if (home && *home == '/') hone_text_put(t, "%s/.cache/hone/wisdom-%016llx.txt", home, machine);
}
/* IO: it cannot be read; else as hone_wisdom_read. */
static hone_status read_wisdom(const char *path, hone_wisdom **out) {
    hone_file f;
    *out = NULL;
    HONE_TRY(hone_file_open(path, &f));
    hone_status s = hone_wisdom_read((const char *)f.data, f.bytes, out);
    hone_file_close(&f);
    return s;
}
hone_status hone_advice_write(const hone_wisdom *w, const char *path) {
    hone_text t = {0};
    hone_wisdom_print(w, &t);
    hone_status s = t.failed ? hone_fail(HONE_NO_MEMORY, "no memory for wisdom") : HONE_OK;
    char *folder = s ? NULL : strdup(path);
    /* what cannot be made is seen below */
    for (char *at = folder ? strchr(folder + 1, '/') : NULL; at; at = strchr(at + 1, '/'))
        *at = 0, (void)mkdir(folder, 0777), *at = '/';
    free(folder);
    if (!s) s = hone_file_write(path, t.text, t.n);
    hone_text_free(&t);
    return s;
}
hone_status hone_advice_open(const char *named, hone_advice *out) {
    const char *path = named;
    hone_text t = {0};
    *out = (hone_advice){0};
    if (!path) path = getenv("HONE_WISDOM");
    if (!path) {
        hone_advice_path(&t);
        if (t.failed || !t.n || access(t.text, F_OK) != 0) { /* nobody has tuned */
            hone_text_free(&t);
            return HONE_OK;
        }
        path = t.text;
    }
    if (!*path || (!named && !strcmp(path, "none"))) return HONE_OK;
    hone_status s = read_wisdom(path, &out->wisdom);
    const size_t n = strlen(path) + 1;
    if (s == HONE_IO && named) s = hone_fail_at(s, "wisdom: ");
    else if (s && s != HONE_NO_MEMORY)
        snprintf(out->why, sizeof out->why, "%s", hone_fail_text()), s = HONE_OK;
    if (!s && !(out->path = hone_alloc(n))) s = hone_fail(HONE_NO_MEMORY, "no memory for wisdom");
    if (!s) memcpy(out->path, path, n);
    else hone_advice_close(out);
    hone_text_free(&t);
    return s;
}
void hone_advice_close(hone_advice *a) {
    hone_wisdom_destroy(a->wisdom);
    hone_free(a->path);
    *a = (hone_advice){0};
}
