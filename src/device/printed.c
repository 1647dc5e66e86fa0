/* SPDX-License-Identifier: Apache-2.0
   printed: see printed.h. A step is an instance: its launches, in turn, as often as a recurrence wants. */
#include "device/printed.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/thread.h"
#include "device/functions/functions.h"
#include "device/replayed.h"
#include "device/wisdom.h"

typedef struct hone_printed_known { /* for the process, as its device is: not counted by hone_alloc */
    char *name;
    void *kernel;
} known;
typedef struct { /* of a step; kernels when memory is placed: then it is known what is stored in halves */
    hone_printed_gpu *gpu;
    const hone_instance *in; /* NULL: a function for a host op, whose kernels bind has made */
    const hone_param *param;
    int64_t *stride; /* HONE_MAX_RANK a tensor */
    hone_dtype half; /* f16 or bf16, if floats may be stored so; else NONE */
    hone_printed_own own;
    /* of an instance whose kernels are all printed: the device's name and measured choices, for
       hone_printed_choose, and what it chose. decision NULL: nothing to choose */
    const char *row;
    const struct hone_wisdom *wisdom;
    hone_decision *decision;
    hone_kernels kernels;
    int64_t scratch_bytes; /* of all its scratch */
    const int64_t *scratch_at;
} work;
typedef struct {   /* what seal found */
    void **kernel; /* a launch, step by step */
    uint64_t id;   /* no other segment of the process has it */
    int64_t launches, scratch_bytes;
    bool numbers;        /* some launch has its numbers copied to memory first: that is no launch */
    const int32_t *base; /* all that its steps name, once each */
    int n_base;
} sealed_segment;
struct hone_queue {
    hone_printed_gpu *gpu;
    void *queue;
    void *error, *scratch, *numbers, *counters, *kept; /* memory of the device */
    int64_t scratch_bytes, numbers_bytes, kept_bytes;
    hone_vec(const hone_step *) under_way; /* since the last wait: the error word tells them apart */
    uint32_t word;                         /* the error word, where the driver peeks */
    hone_captured *captured;               /* NULL: launches are not recorded here */
    hone_capture_key key;
};
static hone_status no_memory(void) { return hone_fail(HONE_NO_MEMORY, "no memory for a device's state"); }
static const hone_printed *printed_of(const hone_device *d) { return (const hone_printed *)(const void *)d; }

/* ---- devices of the process ---------------------------------------------------------------------------- */
int hone_printed_count(const hone_device *d) {
    const int n = printed_of(d)->driver->count();
    return n < HONE_MOST_PRINTED ? n : HONE_MOST_PRINTED;
}
/* Opened once, and never closed: modules and constants of all sessions are there. */
hone_status hone_printed_gpu_of(const hone_device *d, int number, hone_printed_gpu **out) {
    static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
    hone_printed *p = (hone_printed *)(uintptr_t)printed_of(d);
    *out = NULL;
    if (number < 0 || number >= HONE_MOST_PRINTED)
        return hone_fail(HONE_BAD_INPUT, "there is no device %s:%d", d->name, number);
    *out = atomic_load(&p->gpu[number]);
    if (*out) return HONE_OK;
    pthread_mutex_lock(&opening);
    hone_status s = HONE_OK;
    if (!(*out = atomic_load(&p->gpu[number]))) {
        hone_printed_gpu *g = calloc(1, sizeof *g); /* for the process: it is nobody's to give back */
        s = g ? p->driver->open(number, &g->gpu, &g->target, &g->memory) : no_memory();
        if (!s) {
            g->driver = p->driver;
            pthread_mutex_init(&g->lock, NULL);
            atomic_store(&p->gpu[number], *out = g);
        } else free(g);
    }
    pthread_mutex_unlock(&opening);
    return s;
}
void hone_printed_target(const hone_device *d, int number, hone_target *out) {
    hone_printed_gpu *g;
    *out = hone_printed_gpu_of(d, number, &g) ? (hone_target){0} : g->memory;
}
hone_status hone_printed_alloc(const hone_device *d, int number, size_t bytes, void **handle) {
    hone_printed_gpu *g;
    HONE_TRY(hone_printed_gpu_of(d, number, &g));
    return g->driver->alloc(g->gpu, bytes, handle);
}
void hone_printed_free(const hone_device *d, int number, void *handle) {
    hone_printed_gpu *g;
    if (!hone_printed_gpu_of(d, number, &g)) g->driver->free(g->gpu, handle);
}

/* ---- steps --------------------------------------------------------------------------------------------- */
const char *hone_printed_refuses(const hone_device *d, const hone_instance *in) {
    hone_printed_gpu *g;
    const bool f64 = hone_printed_gpu_of(d, 0, &g) || g->target.f64;
    if (in->n_tensor > HONE_MOST_WHOLE) return "it has too many tensors";
    for (int t = 0; t < in->n_tensor; t++) {
        const hone_dtype type = in->tensor[t].dtype;
        if (type == HONE_DTYPE_C64 || type == HONE_DTYPE_C128)
            return "no kernel computes with complex numbers";
        if (type == HONE_DTYPE_STRING) return "no kernel computes with strings";
        if (type == HONE_DTYPE_F64 && !f64) return "the device has no f64";
    }
    return NULL;
}
static hone_status lay_scratch(hone_arena *arena, work *w) {
    int64_t *at = HONE_NEW_N(arena, int64_t, w->kernels.n_scratch + 1);
    if (!at) return hone_steps_no_memory();
    for (int k = 0; k < w->kernels.n_scratch; k++)
        at[k] = w->scratch_bytes, w->scratch_bytes += (w->kernels.scratch_bytes[k] + 255) / 256 * 256;
    w->scratch_at = at;
    return HONE_OK;
}
hone_status hone_printed_bind(hone_steps *s, const hone_device_call *c) {
    const hone_instance *in = c->instance;
    work *w = HONE_NEW(s->arena, work);
    int64_t *stride = HONE_NEW_N(s->arena, int64_t, in->n_tensor * HONE_MAX_RANK + 1);
    if (!w || !stride ||
        !(w->param = hone_arena_copy(s->arena, c->param, sizeof *c->param * (size_t)in->n_param)))
        return hone_steps_no_memory();
    HONE_TRY(hone_printed_gpu_of(c->unit->row, c->unit->number, &w->gpu));
    const hone_printed_driver *d = w->gpu->driver;
    w->in = in, w->stride = stride;
    const bool halves = c->how.precision == HONE_DTYPE_F16 || c->how.precision == HONE_DTYPE_BF16;
    bool stays = halves && c->keep_f32; /* f32 in memory */
    hone_device_call call = *c;         /* what stays f32 multiplies in tf32, where the device has that */
    if (stays) call.how.precision = HONE_PRECISION_TF32;
    if (d->own_match) HONE_TRY(d->own_match(w->gpu->gpu, s->arena, &call, &w->own));
    if (d->own_match && w->own.beyond) {
        stays = true, call.how.precision = HONE_PRECISION_TF32;
        HONE_TRY(d->own_match(w->gpu->gpu, s->arena, &call, &w->own));
    }
    if (halves && !stays) w->half = c->how.precision;
    const char *tactic = w->own.of ? w->own.tactic : "printed";
    if (stays)
        tactic = !w->own.of ? "printed f32" : !strcmp(tactic, "kernel") ? "kernel f32" : "tensor cores tf32";
    hone_step step = {.tactic = tactic, .data = w};
    step.decision = w->own.decision;
    if (!w->own.of) { /* its schedules are chosen when the kernels are printed */
        if (!(w->decision = hone_arena_alloc(s->arena, sizeof *w->decision))) return hone_steps_no_memory();
        step.decision = w->decision, w->row = c->unit->row->name, w->wisdom = c->how.wisdom;
    }
    /* what a program keeps for itself stays f32: sums, statistics of rows */
    for (int t = 0; t < in->n_tensor && w->half; t++)
        if (in->tensor[t].dtype == HONE_DTYPE_F32 && in->tensor[t].role != HONE_ROLE_TEMP)
            step.half_able |= (uint64_t)1 << t;
    HONE_TRY(hone_steps_whole_with(s, c, step, w->own.ref, w->own.bytes, w->own.n_ref, w->own.unread));
    for (int t = 0; t < in->n_tensor; t++)
        memcpy(stride + t * HONE_MAX_RANK, c->stride[t], sizeof c->stride[t]);
    return HONE_OK;
}
/* The instance with its tensors in the types in which they are stored. */
static const hone_instance *stored(hone_arena *a, const hone_step *s) {
    const work *w = s->data;
    if (!s->half_stored) return w->in;
    hone_instance *in = hone_arena_copy(a, w->in, sizeof *in);
    hone_tensor *tensor =
        in ? hone_arena_copy(a, w->in->tensor, sizeof *tensor * (size_t)w->in->n_tensor) : NULL;
    if (!tensor) return NULL;
    for (int t = 0; t < in->n_tensor; t++)
        if (s->half_stored >> t & 1) tensor[t].dtype = w->half;
    in->tensor = tensor;
    return in;
}
typedef struct {
    const work *w;
    const hone_instance *in;
    const hone_ref *ref;
} taking;
static hone_status take(void *of, hone_arena *a, int stage, hone_taken *out) {
    const taking *t = of;
    return t->w->gpu->driver->own_take(t->w->gpu->gpu, a, &t->w->own, t->in, t->ref, stage, out);
}
static hone_status lower(hone_arena *arena, const hone_step *s) {
    work *w = (work *)(uintptr_t)s->data; /* bind made it in this plan's arena, and nobody has read it yet */
    if (!w->in) return HONE_OK;
    taking t = {.w = w, .in = stored(arena, s), .ref = s->ref};
    if (!t.in) return hone_steps_no_memory();
    const hone_taker taker = {&t, take};
    HONE_TRY(hone_kernels_make(arena, &w->gpu->target, t.in, w->param, w->stride, w->own.of ? &taker : NULL,
                               &w->kernels));
    if (w->decision)
        HONE_TRY(hone_printed_choose(arena, w->row, w->gpu, w->wisdom, t.in, w->param, w->stride, &w->kernels,
                                     w->decision));
    if (w->kernels.n_scratch > HONE_PRINTED_SCRATCH)
        return hone_fail(HONE_NOT_SUPPORTED, "%s wants too many scratch buffers", w->in->program->name);
    return lay_scratch(arena, w);
}

/* ---- functions for host ops: launches that no program was printed to ----------------------------------- */
bool hone_printed_takes(const hone_device *d, int number, hone_function_call *c) {
    (void)d, (void)number;
    return hone_function_takes(c);
}
hone_status hone_printed_function(hone_steps *s, const hone_function_call *c) {
    const int n = c->of->n_in + c->of->n_out + 1;
    work *w = HONE_NEW(s->arena, work);
    hone_access *access = HONE_NEW(s->arena, hone_access);
    hone_box *box = HONE_NEW_N(s->arena, hone_box, n);
    if (!w || !access || !box) return hone_steps_no_memory();
    HONE_TRY(hone_printed_gpu_of(c->unit->row, c->unit->number, &w->gpu));
    HONE_TRY(hone_function_make(s->arena, &w->gpu->target, c, &w->kernels));
    HONE_TRY(lay_scratch(s->arena, w));
    for (int t = 0; t < n; t++) { /* all of them are dense */
        const hone_fact *f = t < c->of->n_in ? c->in + t : t < n - 1 ? c->out + t - c->of->n_in : NULL;
        int64_t count = 1;
        if (f && c->ref[t].base != HONE_BASE_NONE && !hone_count_of(f->dim, f->rank, &count))
            return hone_fail(HONE_NO_MEMORY, "an operand of %s is too large", c->of->program->name);
        box[t].bytes = count * (int64_t)(f ? hone_dtypes[f->dtype].bytes : sizeof(int64_t));
    }
    *access = (hone_access){.box = box, .n_ref = n};
    for (int l = 0; l < w->kernels.n_launch; l++)
        for (int k = 0; k < w->kernels.launch[l].n_arg; k++) {
            const hone_karg *a = w->kernels.launch[l].arg + k;
            if (a->kind == HONE_KARG_TENSOR)
                *(a->writes ? &access->writes : &access->reads) |= (uint64_t)1 << a->which;
        }
    access->reads &= ~access->writes; /* what it reads of its own results it has written before */
    return hone_steps_add(
        s,
        (hone_step){
            .tactic = "function", .data = w, .node = c->node, .of = c->of, .access = access, .tiles = 1},
        (hone_ref *)(uintptr_t)c->ref, n);
}

/* ---- kernels ------------------------------------------------------------------------------------------- */
static int place_of(const hone_printed_gpu *g, const char *name, bool *there) {
    int low = 0, high = g->n_known;
    while (low < high) {
        const int mid = (low + high) / 2, c = strcmp(g->known[mid].name, name);
        if (!c) {
            *there = true;
            return mid;
        }
        if (c < 0) low = mid + 1;
        else high = mid;
    }
    *there = false;
    return low;
}
static bool remember(hone_printed_gpu *g, const char *name, void *kernel) {
    bool there;
    const int at = place_of(g, name, &there);
    if (there) return true;
    if (g->n_known == g->room) {
        const int room = g->room ? 2 * g->room : 64;
        known *more = realloc(g->known, sizeof *more * (size_t)room);
        if (!more) return false;
        g->known = more, g->room = room;
    }
    char *copy = strdup(name);
    if (!copy) return false;
    memmove(g->known + at + 1, g->known + at, sizeof *g->known * (size_t)(g->n_known++ - at));
    g->known[at] = (known){copy, kernel};
    return true;
}
/* Where compiled programs are kept: HONE_KERNELS, or hone/kernels in the user's cache; "none", or no such
   place: nowhere. */
static const char *cache_folder(hone_text *t) {
    const char *named = getenv("HONE_KERNELS"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (named && !strcmp(named, "none")) return NULL;
    if (named && *named) hone_text_put(t, "%s", named);
    else if (cache && *cache == '/') hone_text_put(t, "%s/hone/kernels", cache);
    else if (home && *home == '/') hone_text_put(t, "%s/.cache/hone/kernels", home);
    if (!t->n || t->failed) return NULL;
    for (char *p = t->text + 1;; p++) { /* all folders on the way */
        const char was = *p;
        if (was && was != '/') continue;
        *p = 0;
        (void)!mkdir(t->text, 0700);
        *p = was;
        if (!was) break;
    }
    struct stat about;
    return !stat(t->text, &about) && S_ISDIR(about.st_mode) ? t->text : NULL;
}
typedef hone_vec(const hone_launch *) launches;
static hone_status compile(hone_printed_gpu *g, const launches *want) {
    const int n = want->n;
    hone_text text = {0}, path = {0};
    const char **name = hone_alloc(sizeof *name * (size_t)(n + 1));
    void **kernel = hone_alloc(sizeof *kernel * (size_t)(n + 1));
    bool f64 = false;
    for (int k = 0; k < n; k++) f64 |= want->at[k]->f64;
    hone_kernel_prelude(&g->target, f64, &text);
    for (int k = 0; k < n && name; k++) {
        hone_text_put(&text, "%s", want->at[k]->text);
        name[k] = want->at[k]->name;
    }
    hone_status s = name && kernel && !text.failed ? HONE_OK : no_memory();
    if (!s) s = g->driver->compile(g->gpu, text.text, name, n, cache_folder(&path), kernel);
    for (int k = 0; k < n && !s; k++)
        if (!remember(g, name[k], kernel[k])) s = no_memory();
    hone_text_free(&text), hone_text_free(&path);
    hone_free(name), hone_free(kernel);
    return s;
}
/* Programs of the device's own are large and many: compiled beside one another. */
typedef struct {
    hone_printed_gpu *gpu;
    const launches *want;
    const char *cache;
    void **kernel;
    atomic_int next;
} owns;
static void compile_owns(void *arg, int member, int members) {
    owns *o = arg;
    (void)member, (void)members;
    for (int k; (k = atomic_fetch_add(&o->next, 1)) < o->want->n;)
        if (o->gpu->driver->own_compile(o->gpu->gpu, o->want->at[k], o->cache, o->kernel + k))
            o->kernel[k] = NULL;
}
static hone_status compile_own(hone_printed_gpu *g, const launches *want) {
    enum { COMPILERS = 16 };
    hone_text path = {0};
    owns o = {.gpu = g,
              .want = want,
              .cache = cache_folder(&path),
              .kernel = hone_alloc(sizeof *o.kernel * (size_t)(want->n + 1))};
    hone_status s = o.kernel ? HONE_OK : no_memory();
    const int most = hone_cores() < COMPILERS ? hone_cores() : COMPILERS;
    if (!s) hone_team_run(want->n < most ? want->n : most, compile_owns, &o);
    for (int k = 0; k < want->n && !s; k++) { /* again where it failed: its message is of this thread then */
        if (!o.kernel[k]) s = g->driver->own_compile(g->gpu, want->at[k], o.cache, o.kernel + k);
        if (!s && !remember(g, want->at[k]->name, o.kernel[k])) s = no_memory();
    }
    hone_free(o.kernel);
    hone_text_free(&path);
    return s;
}
static bool wants(const launches *all, const char *name) {
    for (int k = 0; k < all->n; k++)
        if (!strcmp(all->at[k]->name, name)) return true;
    return false;
}
static uint32_t launches_of(const work *w) {
    int64_t n = 0;
    for (int t = 0; t < w->kernels.n_turn; t++) n += w->kernels.turn[t].rounds * w->kernels.turn[t].n;
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}
/* What a recording of these steps depends on, and whether there can be one. */
static bool survey(hone_arena *arena, const hone_step *step, int n, sealed_segment *out) {
    static atomic_uint_fast64_t segments;
    hone_vec(int32_t) base = {0};
    bool good = true;
    out->id = 1 + atomic_fetch_add(&segments, 1);
    for (int k = 0; k < n; k++) {
        const work *w = step[k].data;
        if (w->scratch_bytes > out->scratch_bytes) out->scratch_bytes = w->scratch_bytes;
        out->launches += launches_of(w);
        for (int l = 0; l < w->kernels.n_launch; l++) out->numbers |= w->kernels.launch[l].n_number > 0;
        for (int r = 0; r < step[k].access->n_ref && good; r++) {
            int at = 0;
            if (!((step[k].access->reads | step[k].access->writes) >> r & 1)) continue;
            while (at < base.n && base.at[at] != step[k].ref[r].base) at++;
            if (at == base.n) good = hone_push(&base, step[k].ref[r].base);
        }
    }
    out->n_base = base.n;
    good = good && (out->base = hone_arena_copy(arena, base.at, sizeof *base.at * (size_t)base.n));
    hone_vec_free(&base);
    return good;
}
hone_status hone_printed_seal(hone_arena *arena, const hone_step *step, int n, const void **sealed) {
    sealed_segment *out = HONE_NEW(arena, sealed_segment);
    int n_launch = 0;
    for (int k = 0; k < n; k++) {
        HONE_TRY(lower(arena, step + k));
        n_launch += ((const work *)step[k].data)->kernels.n_launch;
    }
    if (!out || !(out->kernel = HONE_NEW_N(arena, void *, n_launch + 1)) || !survey(arena, step, n, out))
        return hone_steps_no_memory();
    *sealed = out;
    if (!n_launch) return HONE_OK;
    hone_printed_gpu *g = ((const work *)step[0].data)->gpu;
    launches want = {0}, own = {0};
    hone_status s = HONE_OK;
    bool there;
    pthread_mutex_lock(&g->lock);
    for (int k = 0; k < n && !s; k++) {
        const hone_kernels *all = &((const work *)step[k].data)->kernels;
        for (int l = 0; l < all->n_launch && !s; l++) {
            launches *to = all->launch[l].own ? &own : &want;
            (void)place_of(g, all->launch[l].name, &there);
            if (!there && !wants(to, all->launch[l].name) && !hone_push(to, all->launch + l)) s = no_memory();
        }
    }
    if (!s && want.n) s = compile(g, &want);
    if (!s && own.n) s = compile_own(g, &own);
    for (int k = 0, at = 0; k < n && !s; k++) {
        const hone_kernels *all = &((const work *)step[k].data)->kernels;
        for (int l = 0; l < all->n_launch; l++, at++)
            out->kernel[at] = g->known[place_of(g, all->launch[l].name, &there)].kernel;
    }
    pthread_mutex_unlock(&g->lock);
    hone_vec_free(&want), hone_vec_free(&own);
    return s;
}

/* ---- queues -------------------------------------------------------------------------------------------- */
hone_status hone_printed_open(const hone_device *d, int number, hone_queue **out) {
    hone_queue *q = hone_alloc(sizeof *q);
    if (!q) return no_memory();
    static const uint32_t none = 0;
    static const char zero[HONE_PRINTED_COUNTERS];
    hone_status s = hone_printed_gpu_of(d, number, &q->gpu);
    if (!s) s = q->gpu->driver->queue(q->gpu->gpu, number, &q->queue);
    if (!s) s = q->gpu->driver->alloc(q->gpu->gpu, sizeof none, &q->error);
    if (!s) s = q->gpu->driver->copy_in(q->queue, q->error, 0, &none, sizeof none);
    if (!s && q->gpu->driver->own_launch) s = q->gpu->driver->alloc(q->gpu->gpu, sizeof zero, &q->counters);
    if (!s && q->counters) s = q->gpu->driver->copy_in(q->queue, q->counters, 0, zero, sizeof zero);
    if (!s && q->gpu->driver->capture &&
        !(q->captured = hone_captured_create(q->gpu->driver->capture, q->queue)))
        s = no_memory();
    if (s) hone_printed_close(q);
    else *out = q;
    return s;
}
void hone_printed_close(hone_queue *q) {
    if (!q) return;
    if (q->gpu) {
        const hone_printed_driver *d = q->gpu->driver;
        void *const memory[] = {q->error, q->scratch, q->numbers, q->counters, q->kept};
        if (q->queue) (void)!d->wait(q->queue);
        hone_captured_destroy(q->captured);
        for (size_t k = 0; k < sizeof memory / sizeof *memory; k++)
            if (memory[k]) d->free(q->gpu->gpu, memory[k]);
        if (q->queue) d->close(q->queue);
    }
    hone_vec_free(&q->under_way);
    hone_vec_free(&q->key);
    hone_free(q);
}
/* What the error word says of all that was under way; it is forgotten then. */
static hone_status judge(hone_queue *q, uint32_t word) {
    static const uint32_t none = 0;
    const uint32_t where = ~word >> 8, tensor = (~word & 255) - 1;
    const hone_step *s = word && (int)where < q->under_way.n ? q->under_way.at[where] : NULL;
    q->under_way.n = 0;
    if (!word) return HONE_OK;
    HONE_TRY(q->gpu->driver->copy_in(q->queue, q->error, 0, &none, sizeof none));
    if (!s || !((const work *)s->data)->in)
        return hone_fail(HONE_BUG, "a kernel failed whose step is not known");
    const hone_instance *in = ((const work *)s->data)->in;
    return hone_fail(HONE_BAD_INPUT, "node '%s' (%s): an index is outside of '%s'", s->of ? s->of->name : "",
                     s->of ? s->of->program->name : in->program->name,
                     (int)tensor < in->n_tensor ? in->tensor[tensor].name : "?");
}
static hone_status told(hone_queue *q) {
    uint32_t word = 0;
    if (!q->under_way.n) return HONE_OK;
    HONE_TRY(q->gpu->driver->copy_out(q->queue, &word, q->error, 0, sizeof word));
    return judge(q, word);
}
hone_status hone_printed_await(const hone_device *d, int number, int64_t stream) {
    hone_printed_gpu *g = NULL;
    HONE_TRY(hone_printed_gpu_of(d, number, &g));
    return g->driver->await ? g->driver->await(g->gpu, stream)
                            : hone_fail(HONE_NOT_SUPPORTED, "%s has no streams to wait for", d->name);
}
hone_status hone_printed_wait(hone_queue *q) {
    hone_status s = told(q);
    return s ? s : q->gpu->driver->wait(q->queue);
}
hone_status hone_printed_copy_in(hone_queue *q, void *to, int64_t at, const void *from, size_t bytes) {
    return q->gpu->driver->copy_in(q->queue, to, at, from, bytes);
}
hone_status hone_printed_copy_within(hone_queue *q, void *to, int64_t at, void *from, int64_t from_at,
                                     size_t bytes) {
    return bytes ? q->gpu->driver->copy(q->queue, to, at, from, from_at, bytes) : HONE_OK;
}
hone_status hone_printed_copy_out(hone_queue *q, void *to, void *from, int64_t at, size_t bytes) {
    const hone_printed_driver *d = q->gpu->driver;
    if (!d->peek || !q->under_way.n) { /* before anybody trusts a number */
        HONE_TRY(told(q));
        return d->copy_out(q->queue, to, from, at, bytes);
    }
    HONE_TRY(d->peek(q->queue, q->error, &q->word));
    hone_status s = d->copy_out(q->queue, to, from, at, bytes);
    return s ? s : judge(q, q->word);
}
static hone_status grow(hone_queue *q, void **memory, int64_t *have, int64_t want) {
    if (want <= *have) return HONE_OK;
    HONE_TRY(q->gpu->driver->wait(q->queue)); /* whatever still uses it */
    if (*memory) q->gpu->driver->free(q->gpu->gpu, *memory);
    *memory = NULL, *have = 0;
    HONE_TRY(q->gpu->driver->alloc(q->gpu->gpu, (size_t)want, memory));
    *have = want;
    return HONE_OK;
}

/* ---- a run --------------------------------------------------------------------------------------------- */
enum { MOST_ARGS = 600, MOST_UNDER_WAY = 1 << 23, MOST_RECORDED = 1 << 14 };
static hone_status launch(hone_queue *q, const hone_segment *g, const hone_step *s, const hone_launch *l,
                          void *kernel, int64_t round, int where) {
    const work *w = s->data;
    hone_printed_arg arg[MOST_ARGS];
    if (l->n_arg > MOST_ARGS)
        return hone_fail(HONE_NOT_SUPPORTED, "a kernel of %s has %d arguments",
                         s->of ? s->of->program->name : "a copy", l->n_arg);
    if (l->n_number) {
        HONE_TRY(grow(q, &q->numbers, &q->numbers_bytes, l->n_number * (int64_t)sizeof *l->number));
        HONE_TRY(q->gpu->driver->copy_in(q->queue, q->numbers, 0, l->number,
                                         sizeof *l->number * (size_t)l->n_number));
    }
    for (int k = 0; k < l->n_arg; k++) {
        const hone_karg *a = l->arg + k;
        hone_printed_arg *to = arg + k;
        *to = (hone_printed_arg){.kind = a->kind, .i = a->i, .f = a->f};
        switch (a->kind) {
        case HONE_KARG_TENSOR:
            to->memory = g->base[s->ref[a->which].base], to->offset = s->ref[a->which].offset;
            break;
        case HONE_KARG_SCRATCH: to->memory = q->scratch, to->offset = w->scratch_at[a->which]; break;
        case HONE_KARG_NUMBERS: to->memory = q->numbers; break;
        case HONE_KARG_ERROR: to->memory = q->error; break;
        case HONE_KARG_OFFSET: to->i = k ? arg[k - 1].offset : 0; break;
        case HONE_KARG_STEP: to->i = round; break;
        case HONE_KARG_WHERE: to->i = where; break;
        case HONE_KARG_I64:
        case HONE_KARG_F64:
        case HONE_KARG_F32: break;
        }
    }
    return q->gpu->driver->launch(q->queue, kernel, l->groups, l->threads, arg, l->n_arg);
}
static hone_status launch_own(hone_queue *q, const hone_segment *g, const hone_step *s, const hone_launch *l,
                              void *kernel) {
    const work *w = s->data;
    const hone_printed_driver *d = q->gpu->driver;
    hone_printed_arg ref[64], scratch[HONE_PRINTED_SCRATCH];
    for (int k = 0; k < s->access->n_ref; k++)
        ref[k] = (hone_printed_arg){.memory = g->base[s->ref[k].base], .offset = s->ref[k].offset};
    for (int k = 0; k < w->kernels.n_scratch; k++)
        scratch[k] = (hone_printed_arg){.memory = q->scratch, .offset = w->scratch_at[k]};
    return d->own_launch(q->queue, kernel, l, &(hone_printed_memory){ref, scratch, q->counters});
}
static hone_status run_step(hone_queue *q, const hone_segment *g, const hone_step *s, void *const *kernel,
                            int where) {
    const work *w = s->data;
    for (int k = 0; k < w->kernels.n_turn; k++) {
        const hone_launches *t = w->kernels.turn + k;
        for (int64_t round = 0; round < t->rounds; round++)
            for (int l = t->first; l < t->first + t->n; l++) {
                const hone_launch *one = w->kernels.launch + l;
                HONE_TRY(one->own ? launch_own(q, g, s, one, kernel[l])
                                  : launch(q, g, s, one, kernel[l], round, where));
            }
    }
    return HONE_OK;
}
/* A step by itself, with its launches not seen (replayed.h). It was not run yet. */
typedef struct {
    hone_queue *q;
    const hone_segment *g;
    const hone_step *s;
    void *const *kernel;
    int where;
} alone;
static hone_status run_alone(void *arg) {
    const alone *a = arg;
    return run_step(a->q, a->g, a->s, a->kernel, a->where);
}
static hone_status time_step(alone *a, double *seconds) {
    enum { MOST_RANGES = 8, MOST_KEPT = 1 << 30 };
    const work *w = a->s->data;
    const hone_printed_driver *d = a->q->gpu->driver;
    hone_replayed_range range[MOST_RANGES];
    const int n = d->time_graph ? hone_replayed_ranges(a->s, a->g->base, range, MOST_RANGES) : -1;
    bool may = n >= 0 && a->s->launches > 0;
    int64_t bytes = 0, at = 0;
    for (int l = 0; l < w->kernels.n_launch; l++) may &= !w->kernels.launch[l].n_number;
    for (int k = 0; k < n; k++) bytes += range[k].bytes, may &= bytes < MOST_KEPT;
    if (may) HONE_TRY(grow(a->q, &a->q->kept, &a->q->kept_bytes, bytes));
    for (int k = 0; k < n && may; at += range[k++].bytes)
        HONE_TRY(d->copy(a->q->queue, a->q->kept, at, range[k].memory, range[k].at, (size_t)range[k].bytes));
    if (d->time_begin) HONE_TRY(d->time_begin(a->q->queue));
    HONE_TRY(run_alone(a));
    HONE_TRY(d->time_end(a->q->queue, seconds));
    const hone_replayed r = {d, a->q->queue, range, n, a->q->kept, a->s->launches, run_alone, a};
    return may ? hone_replayed_time(&r, *seconds, seconds) : HONE_OK;
}
typedef struct {
    hone_queue *q;
    const hone_segment *g;
    int first; /* under way before it */
    bool timed;
} running;
static hone_status run_steps(void *arg) {
    const running *r = arg;
    const hone_segment *g = r->g;
    const hone_printed_driver *d = r->q->gpu->driver;
    void *const *kernel = ((const sealed_segment *)g->sealed)->kernel;
    for (int k = 0; k < g->n; k++) {
        hone_step *s = g->step + k;
        const uint64_t begun = g->profile ? hone_clock_ns() : 0;
        if (r->timed && hone_clock_ns() >= g->until)
            return hone_fail(HONE_BAD_INPUT, "the run was stopped after its limit of %lld ms",
                             (long long)g->limit_ms);
        const bool timed = g->profile && d->time_begin,
                   by_itself = timed && g->profile == HONE_PROFILE_REPLAYED;
        double seconds = 0;
        if (timed && !by_itself) HONE_TRY(d->time_begin(r->q->queue));
        if (g->profile) s->launches = launches_of(s->data);
        alone one = {r->q, g, s, kernel, r->first + k};
        HONE_TRY(by_itself ? time_step(&one, &seconds) : run_step(r->q, g, s, kernel, one.where));
        kernel += ((const work *)s->data)->kernels.n_launch;
        if (!g->profile) continue;
        if (!by_itself) HONE_TRY(timed ? d->time_end(r->q->queue, &seconds) : d->wait(r->q->queue));
        s->ns += timed ? (uint64_t)(seconds * 1e9) : hone_clock_ns() - begun, s->runs++;
    }
    return HONE_OK;
}
/* All that decides what a segment's launches are. false: no memory. */
static bool key_of(hone_queue *q, const hone_segment *g, int first) {
    const sealed_segment *sealed = g->sealed;
    q->key.n = 0;
    bool good = hone_push(&q->key, sealed->id) && hone_push(&q->key, (uint64_t)first) &&
                hone_push(&q->key, sealed->scratch_bytes ? (uint64_t)(uintptr_t)q->scratch : 0);
    for (int k = 0; k < sealed->n_base && good; k++)
        good = hone_push(&q->key, (uint64_t)(uintptr_t)g->base[sealed->base[k]]);
    return good;
}
hone_status hone_printed_run(hone_queue *q, const hone_segment *g) {
    const sealed_segment *sealed = g->sealed;
    if (q->under_way.n >= MOST_UNDER_WAY - g->n) HONE_TRY(hone_printed_wait(q));
    HONE_TRY(grow(q, &q->scratch, &q->scratch_bytes, sealed->scratch_bytes));
    running r = {q, g, q->under_way.n, g->until != 0};
    for (int k = 0; k < g->n; k++)
        if (!hone_push(&q->under_way, g->step + k)) return no_memory();
    const bool may = q->captured && !g->profile && !sealed->numbers &&
                     sealed->launches >= HONE_CAPTURE_LEAST && sealed->launches <= MOST_RECORDED &&
                     key_of(q, g, r.first);
    r.timed = r.timed && !may; /* between segments the clock is looked at anyway */
    return may ? hone_captured_run(q->captured, &q->key, run_steps, &r) : run_steps(&r);
}
