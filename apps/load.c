/* SPDX-License-Identifier: Apache-2.0
   load: a folder is mistaken for the model in it, and names are mistyped: then the file that is there is
   named. */
#include "load.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "args.h"
#include "hone/tools.h"
#include "term.h"

enum { MOST = 512, PATH = 1024 };

static bool is_model(const char *name) {
    size_t n = strlen(name);
    return n > 5 && !strcmp(name + n - 5, ".onnx");
}
/* The file in `folder` that was meant: the one model in it, or the one with a name like `like` (NULL: none is
   known). */
static bool guess(const char *folder, const char *like, char *out, size_t room) {
    char *names[MOST];
    const char *meant = NULL;
    int n = 0, models = 0;
    DIR *d = opendir(*folder ? folder : ".");
    for (struct dirent *e; d && n < MOST && (e = readdir(d));) {
        if (e->d_name[0] == '.' || !(names[n] = strdup(e->d_name))) continue;
        if (is_model(names[n]) && models++ == 0) meant = names[n];
        n++;
    }
    if (d) closedir(d);
    if (models != 1) meant = NULL;
    if (like) meant = hone_args_nearest(like, (const char *const *)names, n);
    if (meant)
        snprintf(out, room, "%s%s%s", folder, *folder && folder[strlen(folder) - 1] != '/' ? "/" : "", meant);
    bool found = meant != NULL;
    for (int k = 0; k < n; k++) free(names[k]);
    return found;
}
static char spooled[64];
const char *hone_model_shown(const char *path) { return path == spooled ? "-" : path; }
const char *hone_load_stdin(void) {
    static const long long most = 1ll << 40;
    if (*spooled) return spooled; /* named twice, it is the same */
    if (isatty(STDIN_FILENO))
        return hone_args_wrong("- is the model on stdin, and stdin is a terminal: 'hone run - < model.onnx'"),
               NULL;
    const int fd = memfd_create("stdin.onnx", 0); /* children have it, too */
    char *buffer = hone_must_alloc(1 << 20);
    long long all = 0;
    ssize_t n = fd < 0 ? -1 : 1;
    hone_progress bar;
    hone_progress_begin(&bar, "reading stdin");
    while (n > 0 && all < most) {
        do n = read(STDIN_FILENO, buffer, 1 << 20);
        while (n < 0 && errno == EINTR);
        for (ssize_t done = 0, put; n > 0 && done < n; done += put)
            if ((put = write(fd, buffer + done, (size_t)(n - done))) <= 0) n = -1, put = 0;
        all += n > 0 ? n : 0;
    }
    hone_progress_end(&bar);
    free(buffer);
    if (n < 0) return hone_args_wrong("the model on stdin cannot be read: %s", strerror(errno)), NULL;
    if (!all) return hone_args_wrong("stdin is empty: there is no model"), NULL;
    snprintf(spooled, sizeof spooled, "/proc/%ld/fd/%d", (long)getpid(), fd);
    return spooled;
}
hone_dtype hone_precision(const char *word, size_t length) {
    static const hone_dtype all[] = {HONE_DTYPE_F32, HONE_DTYPE_BF16, HONE_DTYPE_F16, HONE_PRECISION_TF32};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        const char *name = hone_dtype_name(all[k]);
        if (strlen(name) == length && !memcmp(name, word, length)) return all[k];
    }
    return HONE_DTYPE_NONE;
}
hone_status hone_load(const char *path, hone_model **out, char *why, size_t room) {
    hone_progress bar;
    hone_progress_begin(&bar, "loading the model");
    const double began = hone_clock_ms();
    hone_status s = hone_model_load(path, out);
    hone_progress_end(&bar);
    if (!s)
        hone_note("%s loaded and compiled in %s", hone_model_shown(path),
                  hone_text_ms(hone_clock_ms() - began));
    if (!s) return s;
    struct stat st;
    char meant[PATH] = "", folder[PATH];
    snprintf(why, room, "%s", hone_error());
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    snprintf(folder, sizeof folder, "%.*s", (int)(name - path), path);
    bool there = stat(path, &st) == 0, is_folder = there && S_ISDIR(st.st_mode);
    if (is_folder && guess(path, NULL, meant, sizeof meant))
        snprintf(why, room, "'%s' is a folder; did you mean '%s'?", path, meant);
    else if (is_folder) snprintf(why, room, "'%s' is a folder; name the .onnx file in it", path);
    else if (!there && strlen(name) < 64 && guess(folder, name, meant, sizeof meant))
        snprintf(why, room, "there is no file '%s'; did you mean '%s'?", path, meant);
    return s;
}

hone_status hone_load_for(const char *path, const hone_words *inputs, hone_model **out, char *why,
                          size_t room) {
    hone_status s = hone_load(path, out, why, room);
    if (s || !inputs->n || !strncmp(path, "zoo:", 4)) return s;
    char **names = hone_must_alloc(sizeof *names * (size_t)inputs->n);
    int n = 0, length = 0;
    for (int k = 0; k < inputs->n; k++) {
        bool known = !hone_args_after(inputs->at[k], &length);
        for (int i = 0; i < hone_model_inputs(*out) && !known; i++) {
            const char *name = hone_model_input(*out, i)->name; /* there may be a '=' in it */
            known = !strncmp(inputs->at[k], name, strlen(name)) && inputs->at[k][strlen(name)] == '=';
        }
        if (!known && (names[n] = strndup(inputs->at[k], (size_t)length))) n++;
    }
    hone_model *open = NULL;
    /* else the option's own message says what is wrong */
    if (n && !hone_model_load_open(path, (const char *const *)names, n, &open)) {
        hone_model_free(*out);
        *out = open;
    }
    for (int k = 0; k < n; k++) free(names[k]);
    free(names);
    return HONE_OK;
}
