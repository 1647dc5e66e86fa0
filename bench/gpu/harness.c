/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/dtype.h"

extern char **environ;

void stop(const char *what, ...) {
    va_list list;
    va_start(list, what);
    fputs("gpu: ", stderr), vfprintf(stderr, what, list), fputc('\n', stderr);
    va_end(list);
    exit(1);
}

/* ---- kernels: texts are collected, compiled by as many processes as there are cores, and kept by their hash
   --- */
typedef struct {
    uint64_t hash;
    char *text;
    hone_cuda_kernel kernel;
    int shared_bytes;
} entry;
static entry *entries;
static int n_entries;
static uint64_t hash_of(const char *text, const char *arch) {
    uint64_t h = 1469598103934665603u;
    for (; *arch; arch++) h = (h ^ (unsigned char)*arch) * 1099511628211u;
    for (; *text; text++) h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h;
}
static const char *folder(void) {
    static char path[256];
    const char *named = getenv("HONE_GPU_CACHE");
    if (!path[0]) {
        snprintf(path, sizeof path, "%s", named ? named : "/tmp/hone-gpu-kernels");
        mkdir(path, 0755);
    }
    return path;
}
static void path_of(uint64_t hash, const char *ending, char *to, size_t bytes) {
    snprintf(to, bytes, "%s/%016llx.%s", folder(), (unsigned long long)hash, ending);
}
const hone_cuda_kernel *kernel_of(bench *b, const char *text, const char *name, int shared_bytes) {
    const uint64_t hash = hash_of(text, b->arch);
    entry *e = NULL;
    for (int k = 0; k < n_entries && !e; k++)
        if (entries[k].hash == hash) e = &entries[k];
    if (!e) {
        if (n_entries % 64 == 0) entries = realloc(entries, sizeof *entries * (size_t)(n_entries + 64));
        e = &entries[n_entries++];
        *e = (entry){.hash = hash, .text = strdup(text)};
        if (!b->collect) compile_all(b);
    }
    if (b->collect) return NULL;
    if (!e->kernel.function || shared_bytes > e->shared_bytes) {
        char path[300];
        path_of(hash, "cubin", path, sizeof path);
        FILE *f = fopen(path, "rb");
        if (!f) return NULL; /* it did not compile, and that was told */
        fseek(f, 0, SEEK_END);
        const long bytes = ftell(f);
        void *cubin = malloc((size_t)bytes);
        rewind(f);
        if (fread(cubin, 1, (size_t)bytes, f) != (size_t)bytes) stop("%s: %s", path, strerror(errno));
        fclose(f);
        hone_cuda_unload(b->g, &e->kernel);
        OK(hone_cuda_load(b->g, cubin, name, shared_bytes, &e->kernel));
        e->shared_bytes = shared_bytes;
        free(cubin);
        if (e->kernel.local_bytes)
            fprintf(stderr, "gpu: note: %s (%s) spills %d bytes, %d registers\n", name, path,
                    e->kernel.local_bytes, e->kernel.registers);
    }
    return &e->kernel;
}
/* `gpu --compile HASH ARCH`: one text to machine code, in a process of its own. */
int compile_one(const char *hash, const char *arch) {
    char path[300], to[300], part[310];
    const uint64_t h = strtoull(hash, NULL, 16);
    path_of(h, "cu", path, sizeof path), path_of(h, "cubin", to, sizeof to);
    snprintf(part, sizeof part, "%s.part", to);
    FILE *f = fopen(path, "rb");
    if (!f) return 1;
    fseek(f, 0, SEEK_END);
    const long n = ftell(f);
    char *text = calloc(1, (size_t)n + 1);
    rewind(f);
    if (fread(text, 1, (size_t)n, f) != (size_t)n) return 1;
    fclose(f);
    void *cubin = NULL;
    size_t bytes = 0;
    if (hone_nvrtc_compile(text, hash, arch, &cubin, &bytes)) {
        fprintf(stderr, "gpu: %s\n", hone_fail_text());
        return 1;
    }
    f = fopen(part, "wb");
    if (!f || fwrite(cubin, 1, bytes, f) != bytes || fclose(f)) return 1;
    return rename(part, to) != 0;
}
void compile_all(bench *b) {
    struct timespec t0, t1;
    int running = 0, made = 0, failed = 0;
    const int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    clock_gettime(CLOCK_MONOTONIC, &t0);
    for (int k = 0; k <= n_entries; k++) {
        char path[300], hash[24];
        int status;
        if (k < n_entries) {
            path_of(entries[k].hash, "cubin", path, sizeof path);
            if (!access(path, R_OK)) continue;
            path_of(entries[k].hash, "cu", path, sizeof path);
            FILE *f = fopen(path, "wb");
            if (!f || fputs(entries[k].text, f) < 0 || fclose(f)) stop("%s: %s", path, strerror(errno));
            if (getenv("HONE_GPU_COUNT")) {
                made++;
                continue;
            }
            snprintf(hash, sizeof hash, "%016llx", (unsigned long long)entries[k].hash);
            char *const argv[] = {"gpu", "--compile", hash, (char *)(uintptr_t)b->arch, NULL};
            pid_t pid;
            if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ))
                stop("no process to compile in");
            running++, made++;
        }
        while (running >= (k < n_entries ? cores : 1)) {
            if (wait(&status) < 0) stop("wait: %s", strerror(errno));
            running--, failed += status != 0;
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &t1);
    if (made)
        fprintf(stderr, "gpu: compiled %d kernels for %s in %.1f s, %d failed\n", made, b->arch,
                (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) * 1e-9, failed);
    b->wrong += failed;
}

/* ---- operands ---- */
static const hone_dtype dtype_of[] = {[HONE_CUDA_F16] = HONE_DTYPE_F16,
                                      [HONE_CUDA_BF16] = HONE_DTYPE_BF16,
                                      [HONE_CUDA_F32] = HONE_DTYPE_F32,
                                      [HONE_CUDA_S8] = HONE_DTYPE_I8,
                                      [HONE_CUDA_S32] = HONE_DTYPE_I32};
int type_bytes(int type) { return (int[]){0, 2, 2, 4, 1, 4}[type]; }
uint64_t dice(void) {
    static uint64_t s = 88172645463325252u;
    s ^= s << 13, s ^= s >> 7, s ^= s << 17;
    return s;
}
double tensor_get(const tensor *t, size_t k) {
    const hone_dtype d = dtype_of[t->type];
    return hone_scalar_f64(hone_dtypes[d].ctype,
                           hone_dtype_load(d, (const char *)t->host + k * (size_t)type_bytes(t->type)));
}
void tensor_put(tensor *t, size_t k, double v) {
    hone_dtype_store(dtype_of[t->type], (char *)t->host + k * (size_t)type_bytes(t->type), HONE_F64,
                     (hone_scalar){.f64 = v}, t->type >= HONE_CUDA_S8);
}
static tensor tensor_make(bench *b, int type, size_t n) {
    tensor t = {.bytes = n * (size_t)type_bytes(type),
                .shift = (size_t)b->shift * (size_t)type_bytes(type),
                .type = type};
    if (!b->collect) {
        t.host = malloc(t.bytes ? t.bytes : 1);
        if (!t.host) stop("no memory for %zu bytes", t.bytes);
        OK(hone_cuda_memory(b->g, t.bytes + t.shift, &t.at));
    }
    t.at += t.shift; /* known while collecting, too: alignment decides which kernels there are */
    return t;
}
void tensor_send(bench *b, tensor *t) {
    if (!b->collect) OK(hone_cuda_copy_in(b->g, t->at, t->host, t->bytes));
}
void tensor_fetch(bench *b, tensor *t) {
    if (!b->collect) OK(hone_cuda_copy_out(b->g, t->host, t->at, t->bytes));
}
tensor tensor_random(bench *b, int type, size_t n, double scale) {
    tensor t = tensor_make(b, type, n);
    if (b->collect) return t;
    enum { VALUES = 4096 };
    tensor few = {.type = type, .host = malloc((size_t)VALUES * 4)};
    for (size_t k = 0; k < VALUES; k++)
        tensor_put(&few, k,
                   type >= HONE_CUDA_S8 ? (double)(dice() % 255) - 127
                                        : ((double)k / (VALUES / 2) - 1) * scale);
    const size_t e = (size_t)type_bytes(type);
    for (size_t k = 0; k < n; k += 4) { /* four draws from one throw */
        const uint64_t r = dice();
        for (size_t q = 0; q < 4 && k + q < n; q++)
            memcpy((char *)t.host + (k + q) * e, (char *)few.host + (r >> (13 * q) & (VALUES - 1)) * e, e);
    }
    free(few.host);
    tensor_send(b, &t);
    return t;
}
tensor tensor_poison(bench *b, int type, size_t n) {
    tensor t = tensor_make(b, type, n);
    if (!b->collect) memset(t.host, 0xfb, t.bytes), tensor_send(b, &t);
    return t;
}
tensor tensor_zero(bench *b, int type, size_t n) {
    tensor t = tensor_make(b, type, n);
    if (!b->collect) memset(t.host, 0, t.bytes), tensor_send(b, &t);
    return t;
}
void tensor_free(bench *b, tensor *t) {
    if (b->collect) return;
    hone_cuda_memory_free(b->g, t->at - t->shift);
    free(t->host);
    *t = (tensor){0};
}
hone_cuda_window window_over(int batch, int size, int channels, int kernel, int stride, int pad, int dilation,
                             const tensor *x, const tensor *w, const tensor *y, const tensor *bias) {
    const int out = (size + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
    return (hone_cuda_window){.x = x->at,
                              .w = w->at,
                              .y = y->at,
                              .bias = bias->at,
                              .batch = batch,
                              .height = size,
                              .width = size,
                              .channels = channels,
                              .out_height = out,
                              .out_width = out,
                              .kernel_y = kernel,
                              .kernel_x = kernel,
                              .stride_y = stride,
                              .stride_x = stride,
                              .pad_y = pad,
                              .pad_x = pad,
                              .dilation_y = dilation,
                              .dilation_x = dilation,
                              .pitch_x = channels,
                              .pitch_y = channels};
}
double *tensor_doubles(const tensor *t) {
    const size_t n = t->bytes / (size_t)type_bytes(t->type);
    double *d = malloc(sizeof *d * (n ? n : 1));
    if (!d) stop("no memory for a reference");
    if (t->type <= HONE_CUDA_BF16) { /* by table: 65536 values */
        double *value = malloc(sizeof *value << 16);
        for (unsigned k = 0; k < 65536; k++) {
            const uint16_t bits = (uint16_t)k;
            value[k] = tensor_get(&(tensor){.type = t->type, .host = (void *)(uintptr_t)&bits}, 0);
        }
        for (size_t k = 0; k < n; k++) d[k] = value[((const uint16_t *)t->host)[k]];
        free(value);
    } else {
        for (size_t k = 0; k < n; k++) d[k] = tensor_get(t, k);
    }
    return d;
}
reference reference_make(size_t all, size_t most) {
    const size_t n = all < most ? all : most;
    reference r = {.n = n,
                   .at = malloc(sizeof *r.at * n),
                   .want = malloc(sizeof *r.want * n),
                   .size = calloc(n, sizeof *r.size)};
    if (!r.at || !r.want || !r.size) stop("no memory for a reference");
    for (size_t k = 0; k < n; k++) r.at[k] = n == all ? k : k == 0 ? 0 : k == 1 ? all - 1 : dice() % all;
    return r;
}
void reference_free(reference *r) {
    free(r->at), free(r->want), free(r->size);
    *r = (reference){0};
}
bool reference_check(bench *b, const reference *r, tensor *out, const char *what) {
    tensor_fetch(b, out);
    for (size_t k = 0; k < r->n; k++) {
        const double got = tensor_get(out, r->at[k]);
        if (right(out->type, got, r->want[k], r->size[k])) continue;
        fprintf(b->table, "WRONG %s: element %zu is %g, not %g\n", what, r->at[k], got, r->want[k]);
        fflush(b->table);
        b->wrong++;
        return false;
    }
    b->checked++;
    return true;
}
void check_again(bench *b, tensor *out, call *once, void *ready, const char *what) {
    char *second = malloc(out->bytes ? out->bytes : 1);
    const size_t e = (size_t)type_bytes(out->type);
    if (!second) stop("no memory for %zu bytes", out->bytes);
    for (int k = 0; k < b->again; k++) {
        OK(hone_cuda_set(b->g, out->at, 0xfb, out->bytes)), OK(once(b, ready));
        OK(hone_cuda_copy_out(b->g, second, out->at, out->bytes));
        size_t other = 0, first = 0;
        for (size_t i = 0; i < out->bytes / e && memcmp(second, out->host, out->bytes); i++)
            if (memcmp(second + i * e, (char *)out->host + i * e, e) && !other++) first = i;
        if (other) {
            const tensor now = {.host = second, .type = out->type};
            fprintf(b->table,
                    "WRONG %s: %zu elements have other bits in run %d: element %zu is %g and was %g\n", what,
                    other, k + 2, first, tensor_get(&now, first), tensor_get(out, first));
            fflush(b->table), b->wrong++;
        } else {
            b->repeated++;
        }
    }
    free(second);
}
bool right(int type, double got, double want, double size) {
    static const double digits[] = {[HONE_CUDA_F16] = 1e-3,
                                    [HONE_CUDA_BF16] = 8e-3,
                                    [HONE_CUDA_F32] = 2e-6,
                                    [HONE_CUDA_S8] = 0.51,
                                    [HONE_CUDA_S32] = 0};
    if (isnan(want)) return isnan(got);
    if (isinf(want)) return got == want;
    return fabs(got - want) <= (type == HONE_CUDA_S8 ? 0.51
                                : type == HONE_CUDA_S32
                                    ? 0
                                    : digits[type] * fmax(0.05, fabs(want)) + 2e-6 * size);
}

/* ---- time ---- */
contender contender_of(bench *b, const char *name, call *once, void *what) {
    contender c = {.n = 0};
    snprintf(c.name, sizeof c.name, "%s", name);
    OK(once(b, what)); /* what is slow the first time */
    OK(hone_cuda_wait(b->g));
    if (b->once) return c;
    OK(hone_cuda_record(b->g));
    for (int k = 0; k < CALLS; k++) OK(once(b, what));
    OK(hone_cuda_recorded(b->g, &c.graph));
    return c;
}
static double replay(bench *b, contender *c) {
    double s;
    OK(hone_cuda_replay(b->g, c->graph)); /* clocks up, caches as they will be */
    OK(hone_cuda_mark(b->g, 0));
    OK(hone_cuda_replay(b->g, c->graph));
    OK(hone_cuda_mark(b->g, 1));
    OK(hone_cuda_marked(b->g, &s));
    return s * 1e6 / CALLS;
}
static FILE *to_torch, *from_torch;
static bool torch_line(const char *line, char *answer, size_t bytes) {
    if (!to_torch) {
        int in[2], out[2];
        if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) return false;
        const char *script = getenv("HONE_GPU_TORCH");
        char *const argv[] = {"python3", (char *)(uintptr_t)(script ? script : "bench/gpu/torch_peer.py"),
                              NULL};
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, in[0], 0);
        posix_spawn_file_actions_adddup2(&actions, out[1], 1);
        pid_t pid;
        signal(SIGPIPE, SIG_IGN);
        if (posix_spawnp(&pid, "python3", &actions, NULL, argv, environ)) return false;
        close(in[0]), close(out[1]);
        to_torch = fdopen(in[1], "w"), from_torch = fdopen(out[0], "r");
    }
    if (!from_torch || fprintf(to_torch, "%s\n", line) < 0 || fflush(to_torch) ||
        !fgets(answer, (int)bytes, from_torch))
        return false;
    return true;
}
contender contender_torch(bench *b, const char *name, const char *spec) {
    contender c = {.torch = true};
    char answer[256], line[300];
    (void)b;
    if (getenv("HONE_GPU_NO_TORCH")) return c;
    snprintf(line, sizeof line, "make %s %s", name, spec);
    if (!torch_line(line, answer, sizeof answer) || strncmp(answer, "ok", 2)) {
        fprintf(stderr, "gpu: no peer %s %s: %s", name, spec, answer);
        return c;
    }
    snprintf(c.name, sizeof c.name, "%s", name);
    return c;
}
void in_turns(bench *b, contender *c, int n, int rounds) {
    for (int r = 0; r < rounds && !b->once; r++)
        for (int k = 0; k < n; k++) {
            char line[64], answer[256];
            if (!c[k].name[0]) continue;
            double us;
            if (c[k].torch) {
                snprintf(line, sizeof line, "go %s", c[k].name);
                if (!torch_line(line, answer, sizeof answer)) stop("the PyTorch process ended");
                us = atof(answer);
            } else {
                us = replay(b, &c[k]);
            }
            if (c[k].n < 64) c[k].us[c[k].n++] = us;
        }
}
static int by_size(const void *x, const void *y) {
    return (*(const double *)x > *(const double *)y) - (*(const double *)x < *(const double *)y);
}
static double at_share(const contender *c, double share) {
    double s[64];
    memcpy(s, c->us, sizeof *s * (size_t)c->n);
    qsort(s, (size_t)c->n, sizeof *s, by_size);
    return c->n ? s[(int)(share * (c->n - 1) + 0.5)] : 0;
}
double middle(const contender *c) { return at_share(c, 0.5); }
double spread(const contender *c) { return c->n ? (at_share(c, 0.9) - at_share(c, 0.1)) / middle(c) : 0; }
void contender_free(bench *b, contender *c) {
    hone_cuda_graph_free(b->g, c->graph);
    c->graph = NULL;
}

/* ---- the table ---- */
void mean_add(mean *m, double ratio) {
    if (ratio > 0) m->log_sum += log(ratio), m->n++;
}
void mean_tell(bench *b, const mean *m, const char *bar) {
    if (m->n)
        fprintf(b->table, "| **%s** | mean of %d | | | | **%.3f** | bar %s | |\n", m->text, m->n,
                exp(m->log_sum / m->n), bar);
    fflush(b->table);
}
void tell_search(bench *b, mean *m, const char *family, const char *what, double best_us, const char *best,
                 double us, const char *chosen) {
    fprintf(b->table, "search %s %s: best %.2f us %s; chosen %.2f us (%.2f) %s\n", family, what, best_us,
            best, us, us > 0 ? best_us / us : 0, chosen);
    fflush(b->table), fflush(b->csv);
    mean_add(m, us > 0 ? best_us / us : 0);
}
double tell(bench *b, const char *family, const char *what, const char *way, const contender *c, int n,
            double flops, double bytes) {
    char peers[128] = "";
    double best = 0;
    for (int k = 1; k < n; k++)
        if (c[k].name[0]) {
            const double us = middle(&c[k]);
            snprintf(peers + strlen(peers), sizeof peers - strlen(peers), "%s%s %.2f ±%.0f%%",
                     peers[0] ? ", " : "", c[k].name, us, 50 * spread(&c[k]));
            if (best == 0 || us < best) best = us;
        }
    const double us = middle(&c[0]), ratio = best / us;
    fprintf(b->table, "| %s | %s | %s | %.2f ±%.0f%% | %s | %.3f | %.0f TF/s, %.0f%% | %.0f GB/s, %.0f%% |\n",
            family, what, way, us, 50 * spread(&c[0]), peers, ratio, flops / us * 1e-6,
            flops / us / 989.5e6 * 100, bytes / us * 1e-3, bytes / us * 1e6 / b->copy_rate * 100);
    fflush(b->table);
    return ratio;
}
