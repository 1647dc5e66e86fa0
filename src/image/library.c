/* SPDX-License-Identifier: Apache-2.0 */
#include "image/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int load(const hone_library *l) {
    void *file = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
    for (int k = 0; file && k < l->n; k++) {
        void *symbol = dlsym(file, l->name[k]);
        if (!symbol) return -1;
        memcpy((char *)l->slot + (size_t)k * sizeof symbol, &symbol, sizeof symbol);
    }
    return file ? 1 : -1;
}

hone_status hone_library_load(hone_library *l) {
    int found = atomic_load(&l->found);
    if (!found) {
        pthread_mutex_lock(&lock);
        found = atomic_load(&l->found);
        if (!found) atomic_store(&l->found, found = load(l));
        pthread_mutex_unlock(&lock);
    }
    return found > 0 ? HONE_OK
                     : hone_fail(HONE_NOT_SUPPORTED,
                                 "read by %s, which is not on this machine: install %s (Debian, Ubuntu)",
                                 l->file, l->package);
}

hone_status hone_library_unbuilt(const char *package) {
    return hone_fail(HONE_NOT_SUPPORTED,
                     "this hone was built without it: install %s (Debian, Ubuntu) and build again", package);
}
