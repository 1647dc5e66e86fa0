/* SPDX-License-Identifier: Apache-2.0
   emulated_gpu: an NVIDIA driver and NVRTC for machines that have no GPU: a shared library, put in the place
   of both, under which the whole CUDA device runs (`hone run --device cuda`): recognition, tactics, printing,
   packing, launches, recording, copies.

   "Compiling" is the system's C compiler over the same text, with emulate.h's words instead of CUDA's;
   machine code is that shared object; a launch runs it at once, thread by thread. Memory ends at a page that
   nobody may touch. It says what the driver says: alignments of tensor maps, sizes of blocks, shared memory.
   It cannot say anything of time, and it is no test of NVRTC or of what the hardware does with two things at
   once.

       LD_LIBRARY_PATH=FOLDER HONE_NVRTC=FOLDER/libcuda.so.1 hone run MODEL --device cuda

   HONE_EMULATED_SMS (132) and HONE_EMULATED_ARCH (90; 80 has no wgmma and no copy engine) say what GPU it
   is. */
#include <ctype.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default"))) int
enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NOT_FOUND = 500, LAUNCH_FAILED = 719 };
/* one thing at a time: emulate.h's state is a library's */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char trouble[200];
static int setting(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text && *text ? atoi(text) : otherwise;
}
/* text may be NULL; never fails: a test's process ends instead */
static char *append(char *text, const char *from, size_t n) {
    const size_t had = text ? strlen(text) : 0;
    char *more = realloc(text, had + n + 1);
    if (!more) abort();
    memcpy(more + had, from, n);
    more[had + n] = 0;
    return more;
}
static char *put(char *text, const char *from) { return append(text, from, strlen(from)); }

/* ---- NVRTC: CUDA C to a shared object ------------------------------------------------------------------ */
typedef struct {
    char *source, *code, *log;
    size_t bytes;
} program;
typedef struct { /* in front of the shared object: what a module is told by its "machine code" alone */
    char magic[8];
    uint64_t bytes;
} head;

/* Lines of the prelude of printed kernels (loops/print_target.c) that say how CUDA does it, and what stands
   here instead. */
static const struct {
    const char *begins, *instead;
} words[] = {
    {"#define HONE_KERNEL 1", ""},
    {"#define HONE_SHARED ", "#define HONE_SHARED static\n"},
    {"#define HONE_ENTRY(", "#define HONE_ENTRY(name, threads) void name\n"},
    {"#define HONE_THREAD ", "#define HONE_THREAD ((uint32_t)THREAD)\n"},
    {"#define HONE_GROUP ", "#define HONE_GROUP ((unsigned long long)BLOCK_X)\n"},
    {"#define HONE_BARRIER()", "#define HONE_BARRIER() sync_block()\n"},
    {"#define HONE_RAISE(",
     "#define HONE_RAISE(at, code) do { if (*(at) < (code)) *(at) = (code); } while (0)\n"},
    {"#define HONE_SHUFFLE(", "#define HONE_SHUFFLE(v, by) __extension__({ __typeof__(v) hone_r = (v); "
                              "emu_shuffle_down(&hone_r, sizeof "
                              "hone_r, (by)); hone_r; })\n"},
    {"#define HONE_MOVE(", "#define HONE_MOVE(T, n, to, from, at) memcpy((to), (from), sizeof(T) * (n))\n"},
    {"HONE_INLINE float hone_half_get(",
     "HONE_INLINE float hone_half_get(uint16_t t) { return f16_f32(t); }\n"},
    {"HONE_INLINE uint16_t hone_half_put(",
     "HONE_INLINE uint16_t hone_half_put(float v) { return f32_f16(v); }\n"},
    {"HONE_INLINE int32_t hone_outside(int *bad, int tensor) { return *bad = *bad ?",
     "HONE_INLINE int32_t hone_outside_first(int *bad, int tensor) { return *bad = *bad ? *bad : tensor, 0; "
     "}\n#define hone_outside "
     "hone_outside_first\n"},
};
static char *translate(const char *source) {
    char *out = NULL;
    for (const char *line = source; *line;) {
        const size_t n = strcspn(line, "\n") + (strchr(line, '\n') != NULL);
        size_t k = 0;
        while (k < sizeof words / sizeof *words && strncmp(line, words[k].begins, strlen(words[k].begins)))
            k++;
        out = k < sizeof words / sizeof *words ? put(out, words[k].instead) : append(out, line, n);
        line += n;
    }
    return out ? out : put(NULL, "");
}
/* Each printed kernel gets a function that takes its arguments as a launch has them: an address each. */
static char *entries(const char *source, char *out) {
    char text[512];
    for (const char *at = strstr(source, "HONE_ENTRY("), *next; at; at = next) {
        char name[128];
        int threads = 0, used = 0;
        next = strstr(at + 1, "HONE_ENTRY(");
        if (sscanf(at, "HONE_ENTRY(%127[^,], %d)(%n", name, &threads, &used) < 2 || !used) continue;
        const size_t body = next ? (size_t)(next - at) : strlen(at);
        bool meets = false;
        for (const char *w = at; w < at + body; w++)
            meets |= !strncmp(w, "HONE_BARRIER", 12) || !strncmp(w, "HONE_SHUFFLE", 12);
        char *call = put(NULL, ""), *sizes = put(NULL, "");
        int n = 0;
        for (const char *p = at + used; *p && *p != ')'; n++) {
            const size_t whole = strcspn(p, ",)");
            size_t type = whole; /* all but the name at its end */
            while (type && (p[type - 1] == '_' || isalnum((unsigned char)p[type - 1]))) type--;
            snprintf(text, sizeof text, "%s*(__typeof__(%.*s) *)p[%d]", n ? ", " : "", (int)type, p, n);
            call = put(call, text);
            snprintf(text, sizeof text, "%ssizeof(%.*s)", n ? ", " : "", (int)type, p);
            sizes = put(sizes, text);
            p += whole + (p[whole] == ',');
        }
        snprintf(text, sizeof text, "static void call_%s(const void *a) { void *const *p = a; (void)p; %s(",
                 name, name);
        out = put(put(put(out, text), call), "); }\n");
        snprintf(text, sizeof text, "static const unsigned long sizes_%s[] = {", name);
        out = put(put(put(out, text), sizes), "};\n");
        snprintf(text, sizeof text, "const struct emu_entry entry_%s = {call_%s, %d, %d, %d, sizes_%s};\n",
                 name, name, threads, meets, n, name);
        out = put(out, text);
        free(call), free(sizes);
    }
    return out;
}
static const char entry_words[] =
    "struct emu_entry { void (*call)(const void *); int threads, meets, n; const unsigned long *sizes; };\n"
    "static inline void emu_shuffle_down(void *v, unsigned long bytes, int by) {\n"
    "    memcpy(emu.slot[emu.now], v, bytes);\n    sync_warp();\n"
    "    if (emu.now % 32 + by < 32) memcpy(v, emu.slot[emu.now + by], bytes);\n    sync_warp();\n}\n";
struct entry {
    void (*call)(const void *);
    int threads, meets, n;
    const unsigned long *sizes;
};

static char *whole_file(const char *path, size_t *bytes) {
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    *bytes = 0;
    if (!f) return NULL;
    for (size_t n = 1; n;) {
        char *more = realloc(text, *bytes + 65537);
        if (!more) abort();
        text = more, n = fread(text + *bytes, 1, 65536, f), *bytes += n;
    }
    fclose(f);
    text[*bytes] = 0;
    return text;
}
static void folder_of(char *to, size_t room) {
    const char *t = getenv("TMPDIR");
    snprintf(to, room, "%.100s/hone-gpu-XXXXXX", t && *t ? t : "/tmp");
}
API nvrtcVersion(int *major, int *minor) { return *major = 0, *minor = 1, OK; }
API nvrtcCreateProgram(program **out, const char *source, const char *name, int n, const char *const *headers,
                       const char *const *names) {
    (void)name, (void)n, (void)headers, (void)names;
    *out = calloc(1, sizeof **out);
    if (!*out) return INVALID;
    (*out)->source = put(NULL, source);
    return OK;
}
API nvrtcCompileProgram(program *p, int n, const char *const *options) {
    char folder[160], path[200], command[900];
    (void)n, (void)options;
    folder_of(folder, sizeof folder);
    if (!mkdtemp(folder)) return INVALID;
    snprintf(path, sizeof path, "%s/k.c", folder);
    FILE *f = fopen(path, "w");
    if (!f) return INVALID;
    char *text = translate(p->source), *tail = entries(text, put(NULL, ""));
    fprintf(f, "#include \"emulate.h\"\n%s%s\n%s", entry_words, text, tail);
    free(text), free(tail);
    if (fclose(f)) return INVALID;
    snprintf(command, sizeof command,
             "cc -O0 -std=gnu11 -w -ffp-contract=off -shared -fPIC -I '%s' -I '%s/tests' -o %s/k.so %s -lm > "
             "%s/log "
             "2>&1",
             HONE_BESIDE, HONE_SOURCE, folder, path, folder);
    const int failed = system(command);
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/log", folder);
    p->log = whole_file(path, &bytes);
    snprintf(path, sizeof path, "%s/k.so", folder);
    char *object = failed ? NULL : whole_file(path, &bytes);
    if (object) {
        const head h = {"emulate", bytes};
        p->bytes = sizeof h + bytes, p->code = malloc(p->bytes);
        if (!p->code) abort();
        memcpy(p->code, &h, sizeof h), memcpy(p->code + sizeof h, object, bytes);
        free(object);
        snprintf(command, sizeof command, "rm -rf %s", folder);
        if (system(command)) return INVALID;
    } else fprintf(stderr, "emulated_gpu: %s/k.c does not compile\n", folder);
    return object ? OK : INVALID;
}
API nvrtcDestroyProgram(program **p) {
    free((*p)->source), free((*p)->code), free((*p)->log), free(*p);
    return *p = NULL, OK;
}
API nvrtcGetCUBINSize(program *p, size_t *n) { return *n = p->bytes, OK; }
API nvrtcGetCUBIN(program *p, char *to) { return memcpy(to, p->code, p->bytes), OK; }
API nvrtcGetPTXSize(program *p, size_t *n) { return nvrtcGetCUBINSize(p, n); }
API nvrtcGetPTX(program *p, char *to) { return nvrtcGetCUBIN(p, to); }
API nvrtcGetProgramLogSize(program *p, size_t *n) { return *n = p->log ? strlen(p->log) + 1 : 0, OK; }
API nvrtcGetProgramLog(program *p, char *to) { return strcpy(to, p->log ? p->log : ""), OK; }
__attribute__((visibility("default"))) const char *nvrtcGetErrorString(int code) {
    return code ? "the C compiler refuses it" : "success";
}

/* ---- the device ---------------------------------------------------------------------------------------- */
API cuInit(unsigned flags) { return (void)flags, OK; }
API cuGetErrorString(int code, const char **text) {
    *text = code == NO_MEMORY ? "out of memory"
            : *trouble        ? trouble
            : code == INVALID ? "invalid argument"
                              : "emulated failure";
    return OK;
}
API cuDeviceGetCount(int *n) { return *n = 1, OK; }
API cuDeviceGet(int *device, int k) { return *device = k, k ? INVALID : OK; }
API cuDeviceGetName(char *to, int room, int device) {
    return (void)device, snprintf(to, (size_t)room, "emulated GPU"), OK;
}
API cuDeviceTotalMem_v2(size_t *n, int device) { return (void)device, *n = (size_t)8 << 30, OK; }
API cuDeviceGetAttribute(int *v, int which, int device) {
    const int arch = setting("HONE_EMULATED_ARCH", 90);
    (void)device;
    switch (which) {
    case 16: *v = setting("HONE_EMULATED_SMS", 132); return OK;
    case 38: *v = 50 << 20; return OK;
    case 75: *v = arch / 10; return OK;
    case 76: *v = arch % 10; return OK;
    case 97: *v = arch >= 90 ? 232448 : 166912; return OK;
    default: *v = 0; return OK;
    }
}
API cuDevicePrimaryCtxRetain(void **context, int device) {
    return (void)device, *context = (void *)&lock, OK;
}
API cuDevicePrimaryCtxRelease_v2(int device) { return (void)device, OK; }
API cuCtxSetCurrent(void *context) { return (void)context, OK; }

/* ---- memory: its last byte (up to 255) is the last of a page; the page before it knows how long it is
   --- */
static uint64_t map_memory(size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), data = (bytes + 255) / 256 * 256,
                 all = (data + page - 1) / page * page + 2 * page;
    char *at = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at + all - page, page, PROT_NONE)) return 0;
    memcpy(at, &all, sizeof all);
    memset(at + all - page - data, 0xfb, data); /* not a number, in all floats */
    return (uint64_t)(uintptr_t)(at + all - page - data);
}
static void unmap_memory(uint64_t memory) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = memory / page * page - page;
    size_t all;
    memcpy(&all, (void *)at, sizeof all);
    munmap((void *)at, all);
}
API cuMemAlloc_v2(uint64_t *out, size_t bytes) {
    return (*out = bytes > (size_t)8 << 30 ? 0 : map_memory(bytes ? bytes : 1)) ? OK : NO_MEMORY;
}
API cuMemFree_v2(uint64_t at) { return unmap_memory(at), OK; }
API cuMemAllocHost_v2(void **out, size_t bytes) { return (*out = malloc(bytes)) ? OK : NO_MEMORY; }
API cuMemFreeHost(void *at) { return free(at), OK; }

/* ---- modules and kernels ------------------------------------------------------------------------------- */
typedef struct module {
    void *library;
    struct function *functions;
} module;
typedef struct function {
    struct function *next;
    const struct entry *printed; /* NULL: a kernel that takes one struct */
    const char *(*emulate)(void (*)(const void *), const void *, const int *, int, int, uint32_t);
    const char *(*alone)(void (*)(const void *), const void *, const int *, int);
    void (*kernel)(const void *);
    int threads;
    size_t bytes;
} function;
API cuModuleLoadData(void **out, const void *code) {
    head h;
    char folder[160], path[200];
    memcpy(&h, code, sizeof h);
    if (strcmp(h.magic, "emulate")) return INVALID;
    folder_of(folder, sizeof folder);
    if (!mkdtemp(folder)) return INVALID;
    snprintf(path, sizeof path, "%s/k.so", folder);
    FILE *f = fopen(path, "wb");
    bool written = f && fwrite((const char *)code + sizeof h, 1, h.bytes, f) == h.bytes;
    written = f && !fclose(f) && written;
    module *m = calloc(1, sizeof *m);
    if (m && written) m->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path), rmdir(folder);
    if (!m || !m->library) return free(m), INVALID;
    return *out = m, OK;
}
API cuModuleUnload(void *of) {
    module *m = of;
    for (function *f = m->functions, *next; f; f = next) next = f->next, free(f);
    dlclose(m->library), free(m);
    return OK;
}
static void *symbol(const module *m, const char *before, const char *name, const char *after) {
    char text[256];
    snprintf(text, sizeof text, "%s%s%s", before, name, after);
    return dlsym(m->library, text);
}
API cuModuleGetFunction(void **out, void *of, const char *name) {
    module *m = of;
    function *f = calloc(1, sizeof *f);
    if (!f) return NO_MEMORY;
    *(void **)&f->emulate = symbol(m, "", "hone_emulate", ""),
           *(void **)&f->alone = symbol(m, "", "hone_emulate_alone", "");
    if ((f->printed = symbol(m, "entry_", name, "")))
        f->kernel = f->printed->call, f->threads = f->printed->threads;
    else {
        const int *threads = symbol(m, "", name, "_threads");
        const unsigned long *bytes = symbol(m, "", name, "_bytes");
        *(void **)&f->kernel = symbol(m, "", name, "");
        if (threads && bytes) f->threads = *threads, f->bytes = *bytes;
    }
    if (!f->kernel || !f->threads || !f->emulate || !f->alone) return free(f), NOT_FOUND;
    f->next = m->functions, m->functions = f;
    return *out = f, OK;
}
API cuFuncGetAttribute(int *v, int which, void *of) {
    return *v = which == 0 ? ((function *)of)->threads : which == 4 ? 64 : 0, OK;
}
API cuFuncSetAttribute(void *of, int which, int value) {
    return (void)of, which == 8 && value > 232448 ? INVALID : OK;
}

/* ---- streams: what is asked for is done at once, or recorded ------------------------------------------- */
typedef struct {
    unsigned grid[3], block[3], shared_bytes;
    void *stream;
    const struct {
        int id, pad;
        union {
            unsigned cluster[3];
            char room[64];
        } value;
    } * attributes;
    unsigned n_attributes;
} launch_config;
typedef struct { /* a launch with its arguments, or a copy, or a fill */
    function *of;
    int grid[3], cluster;
    char *data; /* arguments, by value */
    size_t *at; /* where each of them is in it */
    int n;
    uint64_t to, from;
    size_t bytes;
    int fill; /* -1: a copy */
    const struct lt_product *product;
} work;
static int multiply(const struct lt_product *);
typedef struct {
    work *at;
    int n;
} graph;
typedef struct {
    bool recording;
    graph record;
} stream;
static int failed(const char *why) { return snprintf(trouble, sizeof trouble, "%s", why), LAUNCH_FAILED; }
static int perform(const work *w) {
    if (w->product) return multiply(w->product);
    if (!w->of) {
        if (w->fill < 0) memmove((void *)(uintptr_t)w->to, (void *)(uintptr_t)w->from, w->bytes);
        else memset((void *)(uintptr_t)w->to, w->fill, w->bytes);
        return OK;
    }
    static uint32_t seed = 1;
    void *args[1024];
    for (int k = 0; k < w->n; k++) args[k] = w->data + w->at[k];
    const function *f = w->of;
    const void *given = f->printed ? (const void *)args : args[0];
    const char *wrong = f->printed && !f->printed->meets
                            ? f->alone(f->kernel, given, w->grid, f->threads)
                            : f->emulate(f->kernel, given, w->grid, w->cluster, f->threads, seed++);
    return wrong ? failed(wrong) : OK;
}
static void forget(graph *g) {
    for (int k = 0; k < g->n; k++) free(g->at[k].data), free(g->at[k].at);
    free(g->at);
    *g = (graph){0};
}
static int ask(void *of, work w) { /* takes what w has allocated */
    stream *s = of;
    pthread_mutex_lock(&lock);
    int code = OK;
    if (s && s->recording) {
        work *more = realloc(s->record.at, sizeof *more * (size_t)(s->record.n + 1));
        if (!more) abort();
        s->record.at = more, more[s->record.n++] = w;
    } else code = perform(&w), free(w.data), free(w.at);
    pthread_mutex_unlock(&lock);
    return code;
}
API cuLaunchKernelEx(const launch_config *c, void *of, void **args, void **extra) {
    function *f = of;
    work w = {.of = f, .cluster = 1, .n = f->printed ? f->printed->n : 1};
    (void)extra;
    for (unsigned k = 0; k < c->n_attributes; k++)
        if (c->attributes[k].id == 4) w.cluster = (int)c->attributes[k].value.cluster[0];
    for (int k = 0; k < 3; k++) w.grid[k] = (int)c->grid[k];
    if ((int)c->block[0] != f->threads || c->block[1] != 1 || c->block[2] != 1)
        return failed("a block of another size than the kernel was compiled for");
    if (!w.grid[0] || !w.grid[1] || !w.grid[2] || w.n > 1024) return INVALID;
    if (c->shared_bytes > 232448) return failed("more shared memory than a block can have");
    size_t all = 0;
    w.at = calloc((size_t)w.n + 1, sizeof *w.at);
    for (int k = 0; k < w.n; k++)
        w.at[k] = all, all += ((f->printed ? f->printed->sizes[k] : f->bytes) + 63) / 64 * 64;
    w.data = aligned_alloc(64, all ? all : 64);
    if (!w.at || !w.data) abort();
    for (int k = 0; k < w.n; k++)
        memcpy(w.data + w.at[k], args[k], f->printed ? f->printed->sizes[k] : f->bytes);
    return ask(c->stream, w);
}
API cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *s) {
    return ask(s, (work){.to = to, .from = (uint64_t)(uintptr_t)from, .bytes = bytes, .fill = -1});
}
API cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *s) {
    return ask(s, (work){.to = (uint64_t)(uintptr_t)to, .from = from, .bytes = bytes, .fill = -1});
}
API cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
    return cuMemcpyDtoHAsync_v2(to, from, bytes, NULL);
}
API cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *s) {
    return ask(s, (work){.to = to, .from = from, .bytes = bytes, .fill = -1});
}
API cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *s) {
    return ask(s, (work){.to = to, .bytes = bytes, .fill = value});
}
API cuStreamCreate(void **out, unsigned flags) {
    return (void)flags, (*out = calloc(1, sizeof(stream))) ? OK : NO_MEMORY;
}
API cuStreamDestroy_v2(void *of) { return forget(&((stream *)of)->record), free(of), OK; }
API cuStreamSynchronize(void *of) { return (void)of, OK; }
API cuStreamBeginCapture_v2(void *of, int mode) { return (void)mode, ((stream *)of)->recording = true, OK; }
API cuStreamEndCapture(void *of, void **out) {
    stream *s = of;
    graph *g = malloc(sizeof *g);
    if (!g) return NO_MEMORY;
    *g = s->record, s->record = (graph){0}, s->recording = false;
    return *out = g, OK;
}
/* an instance takes what was recorded */
API cuGraphInstantiateWithFlags(void **out, void *of, unsigned long long flags) {
    graph *g = malloc(sizeof *g);
    (void)flags;
    if (!g) return NO_MEMORY;
    *g = *(graph *)of, *(graph *)of = (graph){0};
    return *out = g, OK;
}
API cuGraphLaunch(void *of, void *s) {
    const graph *g = of;
    int code = OK;
    (void)s;
    pthread_mutex_lock(&lock);
    for (int k = 0; k < g->n && !code; k++) code = perform(g->at + k);
    pthread_mutex_unlock(&lock);
    return code;
}
API cuGraphDestroy(void *of) { return forget(of), free(of), OK; }
API cuGraphExecDestroy(void *of) { return forget(of), free(of), OK; }
API cuEventCreate(void **out, unsigned flags) {
    return (void)flags, (*out = calloc(1, sizeof(struct timespec))) ? OK : NO_MEMORY;
}
API cuEventDestroy_v2(void *of) { return free(of), OK; }
API cuEventRecord(void *of, void *s) { return (void)s, clock_gettime(CLOCK_MONOTONIC, of), OK; }
API cuEventSynchronize(void *of) { return (void)of, OK; }
API cuEventElapsedTime(float *ms, void *from, void *to) {
    const struct timespec *a = from, *b = to;
    return *ms = (float)((double)(b->tv_sec - a->tv_sec) * 1e3 + (double)(b->tv_nsec - a->tv_nsec) * 1e-6),
           OK;
}

/* ---- tensor maps, as emulate.h reads them -------------------------------------------------------------- */
typedef struct {
    uint64_t base, stride[4];
    uint32_t dim[5], box[5], element, swizzled;
    int32_t low[2], high[2], step[2];
} map;
static int element_bytes(int type) { return type == 6 || type == 9 ? 2 : type == 7 || type == 3 ? 4 : 1; }
static int encode(void *out, int type, unsigned rank, void *at, const unsigned long long *dims,
                  const unsigned long long *strides, map m, int swizzle) {
    m.base = (uint64_t)(uintptr_t)at, m.element = (uint32_t)element_bytes(type), m.swizzled = swizzle == 3;
    if (m.base % 16 || rank < 1 || rank > 5 || (swizzle == 3 && m.box[0] * m.element > 128))
        return failed("a tensor map whose address or box is not what the engine takes"), INVALID;
    for (unsigned k = 0; k < 5; k++) m.dim[k] = k < rank ? (uint32_t)dims[k] : 1;
    for (unsigned k = 0; k + 1 < rank; k++)
        if ((m.stride[k] = strides[k]) % 16)
            return failed("a tensor map whose strides are no multiples of 16"), INVALID;
    for (unsigned k = 0; k < rank; k++)
        if (!dims[k]) return failed("a tensor map of nothing"), INVALID;
    memcpy(out, &m, sizeof m);
    return OK;
}
API cuTensorMapEncodeTiled(void *out, int type, unsigned rank, void *at, const unsigned long long *dims,
                           const unsigned long long *strides, const unsigned *box, const unsigned *steps,
                           int interleave, int swizzle, int promote, int fill) {
    map m = {0};
    (void)interleave, (void)promote, (void)fill;
    for (unsigned k = 0; k < 5; k++) m.box[k] = k < rank ? box[k] : 1;
    for (unsigned k = 0; k < rank; k++)
        if (!box[k] || box[k] > 256 || steps[k] != 1)
            return failed("a tensor map whose box is larger than 256, or strided"), INVALID;
    return encode(out, type, rank, at, dims, strides, m, swizzle);
}
API cuTensorMapEncodeIm2col(void *out, int type, unsigned rank, void *at, const unsigned long long *dims,
                            const unsigned long long *strides, const int *low, const int *high,
                            unsigned channels, unsigned pixels, const unsigned *steps, int interleave,
                            int swizzle, int promote, int fill) {
    map m = {.box = {channels, pixels, 1, 1, 1},
             .low = {low[0], low[1]},
             .high = {high[0], high[1]},
             .step = {(int)steps[1], (int)steps[2]}};
    (void)interleave, (void)promote, (void)fill;
    for (int k = 0; k < 2; k++)
        if (low[k] < -128 || low[k] > 127 || high[k] < -128 || high[k] > 127)
            return failed("a tensor map of windows whose corner is beyond 127"), INVALID;
    if (rank != 4 || pixels > 1024 || channels > 256) return INVALID;
    return encode(out, type, rank, at, dims, strides, m, swizzle);
}

/* ---- cuBLASLt: what Hone asks of it, as its manual has it -----------------------------------------------
   */
typedef struct {
    int compute, turn_left, turn_right;
    uint32_t epilogue;
    const void *bias;
    int bias_type;
} lt_desc;
typedef struct {
    int type, batches;
    uint64_t rows, columns;
    int64_t pitch, batch;
} lt_layout;
struct lt_product { /* all by value: descriptors may change once it was asked for */
    lt_desc d;
    lt_layout a, b, c, y;
    float alpha, beta;
    const void *at[3];
    void *to;
};
API cublasLtCreate(void **out) { return (*out = calloc(1, 8)) ? OK : NO_MEMORY; }
API cublasLtMatmulDescCreate(void **out, int compute, int scale) {
    lt_desc *d = calloc(1, sizeof *d);
    d->compute = compute, d->epilogue = 1, d->bias_type = -1;
    return *out = d, scale == 0 ? OK : INVALID;
}
API cublasLtMatmulDescDestroy(void *d) { return free(d), OK; }
API cublasLtMatmulDescSetAttribute(void *of, int which, const void *value, size_t bytes) {
    lt_desc *d = of;
    void *const to = which == 3    ? (void *)&d->turn_left
                     : which == 4  ? (void *)&d->turn_right
                     : which == 7  ? (void *)&d->epilogue
                     : which == 8  ? (void *)&d->bias
                     : which == 26 ? (void *)&d->bias_type
                                   : NULL;
    return to && bytes == (which == 8 ? 8u : 4u) ? memcpy(to, value, bytes), OK : INVALID;
}
API cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t columns, int64_t pitch) {
    lt_layout *l = calloc(1, sizeof *l);
    *l = (lt_layout){type, 1, rows, columns, pitch, 0};
    return *out = l, pitch >= (int64_t)rows ? OK : INVALID;
}
API cublasLtMatrixLayoutDestroy(void *l) { return free(l), OK; }
API cublasLtMatrixLayoutSetAttribute(void *of, int which, const void *value, size_t bytes) {
    lt_layout *l = of;
    if (which == 5 && bytes == 4) memcpy(&l->batches, value, 4);
    else if (which == 6 && bytes == 8) memcpy(&l->batch, value, 8);
    else return INVALID;
    return OK;
}
API cublasLtMatmulPreferenceCreate(void **out) { return (*out = calloc(1, 8)) ? OK : NO_MEMORY; }
API cublasLtMatmulPreferenceDestroy(void *p) { return free(p), OK; }
API cublasLtMatmulPreferenceSetAttribute(void *p, int which, const void *value, size_t bytes) {
    (void)p, (void)value;
    return (which == 1 && bytes == 8) || (which >= 5 && which <= 8 && bytes == 4) ? OK : INVALID;
}
static bool lt_fits(const lt_desc *d, const lt_layout *a, const lt_layout *b, const lt_layout *c,
                    const lt_layout *y) {
    const uint64_t m = d->turn_left ? a->columns : a->rows, k = d->turn_left ? a->rows : a->columns;
    const bool halves = a->type == 2 || a->type == 14;
    return y->rows == m && c->rows == m && (d->turn_right ? b->columns : b->rows) == k &&
           y->columns == c->columns && y->columns == (d->turn_right ? b->rows : b->columns) &&
           a->type == b->type && c->type == y->type && (y->type == a->type || (halves && y->type == 0)) &&
           d->compute == (halves ? 68 : 77) && a->batches == y->batches && b->batches == y->batches &&
           c->batches == y->batches && (!(d->epilogue & 4) || (d->bias && d->bias_type == y->type));
}
API cublasLtMatmulAlgoGetHeuristic(void *h, void *d, void *a, void *b, void *c, void *y, void *wish, int most,
                                   void *out, int *n) {
    (void)h, (void)wish;
    memset(out, 0, 64 + 8 + 8 + 16);
    const size_t workspace = 4096;
    memcpy((char *)out + 64, &workspace, 8);
    *n = most >= 1 && lt_fits(d, a, b, c, y);
    return *n ? OK : INVALID;
}
static float lt_load(int type, const void *at, int64_t k) {
    if (type == 0) return ((const float *)at)[k];
    const uint16_t h = ((const uint16_t *)at)[k];
    uint32_t bits = (uint32_t)h << 16;
    float v;
    if (type == 2) {
        const int e = h >> 10 & 31, f = h & 1023;
        v = e == 31 ? (f ? NAN : INFINITY) : ldexpf((float)(e ? f + 1024 : f), (e ? e : 1) - 25);
        return h >> 15 ? -v : v;
    }
    memcpy(&v, &bits, 4);
    return v;
}
static void lt_store(int type, void *at, int64_t k, float v) {
    if (type == 0) {
        ((float *)at)[k] = v;
        return;
    }
    uint32_t bits;
    memcpy(&bits, &v, 4);
    if (type == 14) {
        ((uint16_t *)at)[k] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        return;
    }
    int e;
    const float size = fabsf(v), f = frexpf(size, &e);
    const int at_least = e < -13 ? -13 : e;
    const uint32_t units =
        (uint32_t)(size < 65520 ? rintf(ldexpf(f, e - at_least + 11)) : 0); /* of the last place */
    const uint32_t h = !(size < 65520) ? (isnan(v) ? 0x7e00 : 0x7c00)
                       : units < 1024  ? units
                                       : (uint32_t)(at_least + 14) * 1024 + units - 1024;
    ((uint16_t *)at)[k] = (uint16_t)(h | (signbit(v) ? 0x8000 : 0));
}
static int multiplied;
API hone_emulated_products(void) { return multiplied; }
static int multiply(const struct lt_product *p) {
    multiplied++;
    const lt_desc *d = &p->d;
    const int64_t depth = (int64_t)(d->turn_left ? p->a.rows : p->a.columns);
    for (int64_t q = 0; q < p->y.batches; q++)
        for (int64_t j = 0; j < (int64_t)p->y.columns; j++)
            for (int64_t i = 0; i < (int64_t)p->y.rows; i++) {
                double sum = 0;
                for (int64_t k = 0; k < depth; k++)
                    sum += (double)lt_load(p->a.type, p->at[0],
                                           q * p->a.batch +
                                               (d->turn_left ? i * p->a.pitch + k : k * p->a.pitch + i)) *
                           (double)lt_load(p->b.type, p->at[1],
                                           q * p->b.batch +
                                               (d->turn_right ? k * p->b.pitch + j : j * p->b.pitch + k));
                double v = p->alpha * sum;
                if (p->beta != 0)
                    v += p->beta * (double)lt_load(p->c.type, p->at[2], q * p->c.batch + j * p->c.pitch + i);
                if (d->epilogue & 4) v += (double)lt_load(d->bias_type, d->bias, i);
                if (d->epilogue & 2) v = v > 0 ? v : 0;
                if (d->epilogue & 32)
                    v = 0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
                lt_store(p->y.type, p->to, q * p->y.batch + j * p->y.pitch + i, (float)v);
            }
    return OK;
}
API cublasLtMatmul(void *h, void *d, const float *alpha, const void *a, void *la, const void *b, void *lb,
                   const float *beta, const void *c, void *lc, void *y, void *ly, const void *algorithm,
                   void *workspace, size_t room, void *stream) {
    (void)h, (void)algorithm;
    if (!lt_fits(d, la, lb, lc, ly) || (room && !workspace)) return INVALID;
    struct lt_product *p = malloc(sizeof *p); /* a recording keeps it to its end */
    if (!p) return NO_MEMORY;
    *p = (struct lt_product){*(lt_desc *)d,
                             *(lt_layout *)la,
                             *(lt_layout *)lb,
                             *(lt_layout *)lc,
                             *(lt_layout *)ly,
                             *alpha,
                             *beta,
                             {a, b, c},
                             y};
    if (room) memset(workspace, 0x7f, room); /* it is there */
    return ask(stream, (work){.product = p});
}
