/* SPDX-License-Identifier: Apache-2.0
   static: what stands for the dynamic loader in a command that is linked statically (HONE_STATIC): there is
   none, and it says so. glibc's own would want the very glibc that it was linked with. */
#ifdef HONE_STATIC
#include <stddef.h>

void *hone_no_dlopen(const char *file, int flags);
void *hone_no_dlsym(void *handle, const char *name);
char *hone_no_dlerror(void);
int hone_no_dlclose(void *handle);

void *hone_no_dlopen(const char *file, int flags) {
    (void)file, (void)flags;
    return NULL;
}
void *hone_no_dlsym(void *handle, const char *name) {
    (void)handle, (void)name;
    return NULL;
}
char *hone_no_dlerror(void) {
    static char why[] = "this hone is linked statically and loads no libraries; the Debian package and a "
                        "build of one's own do";
    return why;
}
int hone_no_dlclose(void *handle) {
    (void)handle;
    return 0;
}
#endif
