/* SPDX-License-Identifier: Apache-2.0
   plugin: devices from outside (include/hone/device.h) as rows of the table, and files that bring them. Every
   node, or fused group, is one step; what it computes is the plugin's work. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "base/thread.h"
#include "device/device.h"
#include "hone/device.h"

enum { MOST_PLUGINS = 16 };
typedef struct {
    hone_device row; /* the first member: rows are found again by it */
    hone_device_table table;
} plugin;
struct hone_queue {
    const plugin *of;
    void *queue;
};
struct hone_work {
    const hone_instance *instance;
    const hone_param *param;
    hone_tensor_view *place; /* strides */
    int64_t (*dims)[HONE_MAX_RANK];
    const hone_node *node;
};
static const plugin *plugin_of(const hone_device *d) { return (const plugin *)(const void *)d; }

/* ---- work ---------------------------------------------------------------------------------------------- */
const char *hone_work_op(const hone_work *w) {
    return w->node ? w->node->program->name : w->instance->program->name;
}
const char *hone_work_node(const hone_work *w) { return w->node ? w->node->name : ""; }
int hone_work_tensors(const hone_work *w) { return w->instance->n_tensor; }
static hone_work_tensor tensor_of(const hone_tensor *t) {
    static const hone_work_role roles[] = {
        [HONE_ROLE_IN] = HONE_WORK_IN, [HONE_ROLE_OUT] = HONE_WORK_OUT, [HONE_ROLE_TEMP] = HONE_WORK_TEMP};
    return (hone_work_tensor){.role = roles[t->role], .dtype = t->dtype, .rank = t->rank};
}
void hone_work_tensor_of(const hone_work *w, int k, hone_work_tensor *out) {
    *out = (hone_work_tensor){0};
    if (k < 0 || k >= w->instance->n_tensor) return;
    *out = tensor_of(w->instance->tensor + k);
    out->dims = w->dims[k], out->strides = w->place[k].stride;
}
hone_status hone_work_define(const hone_work *w, void *const *at) {
    hone_tensor_view place[HONE_MOST_WHOLE];
    const int n = w->instance->n_tensor;
    memcpy(place, w->place, sizeof *place * (size_t)n);
    for (int k = 0; k < n; k++) place[k].at = at[k];
    hone_status s = hone_interpret(w->instance, w->param, place);
    return s && w->node ? hone_fail_at(s, "node '%s' (%s): ", w->node->name, w->node->program->name) : s;
}
hone_status hone_device_fail(hone_status s, const char *message) {
    return hone_fail(s, "%s", message ? message : "");
}

/* ---- the row ------------------------------------------------------------------------------------------- */
static int count(const hone_device *d) { return plugin_of(d)->table.count; }
static void target(const hone_device *d, int number, hone_target *out) {
    (void)number;
    const hone_device_table *t = &plugin_of(d)->table;
    *out = (hone_target){.alignment = t->alignment, .largest = t->largest, .channels_last = t->channels_last};
}
static const char *refuses(const hone_device *d, const hone_instance *in) {
    const hone_device_table *table = &plugin_of(d)->table;
    hone_work_tensor t[HONE_MOST_WHOLE];
    if (in->n_tensor > HONE_MOST_WHOLE) return "too many tensors";
    for (int k = 0; k < in->n_tensor; k++) t[k] = tensor_of(in->tensor + k);
    return table->refuses ? table->refuses(table->self, in->program->name, t, in->n_tensor) : NULL;
}
static hone_status bind(hone_steps *s, const hone_device_call *c) {
    const hone_instance *in = c->instance;
    hone_work *w = HONE_NEW(s->arena, hone_work);
    hone_tensor_view *place = HONE_NEW_N(s->arena, hone_tensor_view, in->n_tensor + 1);
    hone_param *param = hone_arena_copy(s->arena, c->param, sizeof *param * (size_t)in->n_param);
    int64_t(*dims)[HONE_MAX_RANK] = hone_arena_alloc(s->arena, sizeof *dims * (size_t)(in->n_tensor + 1));
    if (!w || !place || !param || !dims) return hone_steps_no_memory();
    *w = (hone_work){in, param, place, dims, c->of};
    HONE_TRY(hone_steps_whole(s, c, (hone_step){.tactic = c->unit->row->name, .data = w}));
    for (int t = 0; t < in->n_tensor; t++) {
        memcpy(place[t].stride, c->stride[t], sizeof place[t].stride);
        for (int k = 0; k < in->tensor[t].rank; k++) dims[t][k] = param[in->tensor[t].dim[k]].i;
    }
    return HONE_OK;
}
static hone_status open_queue(const hone_device *d, int number, hone_queue **out) {
    const plugin *p = plugin_of(d);
    hone_queue *q = hone_alloc(sizeof *q);
    if (!q) return hone_fail(HONE_NO_MEMORY, "no memory for a session");
    q->of = p;
    hone_status s = p->table.open(p->table.self, number, &q->queue);
    if (s) hone_free(q);
    else *out = q;
    return s;
}
static void close_queue(hone_queue *q) {
    if (!q) return;
    q->of->table.close(q->queue);
    hone_free(q);
}
static hone_status run(hone_queue *q, const hone_segment *g) {
    const hone_device_table *table = &q->of->table;
    hone_device_operand at[HONE_MOST_WHOLE];
    for (int k = 0; k < g->n; k++) {
        hone_step *s = g->step + k;
        const hone_work *w = s->data;
        const uint64_t begun = g->profile ? hone_clock_ns() : 0;
        for (int t = 0; t < w->instance->n_tensor; t++)
            at[t] = (hone_device_operand){g->base[s->ref[t].base], s->ref[t].offset};
        HONE_TRY(table->enqueue(q->queue, w, at));
        if (!g->profile) continue;
        HONE_TRY(table->wait(q->queue));
        s->ns += hone_clock_ns() - begun, s->runs++;
    }
    return HONE_OK;
}
static hone_status alloc(const hone_device *d, int number, size_t bytes, void **handle) {
    const plugin *p = plugin_of(d);
    return p->table.alloc(p->table.self, number, bytes, handle);
}
static void give_back(const hone_device *d, int number, void *handle) {
    const plugin *p = plugin_of(d);
    p->table.free(p->table.self, number, handle);
}
static hone_status copy_in(hone_queue *q, void *to, int64_t at, const void *from, size_t bytes) {
    return q->of->table.copy_in(q->queue, to, at, from, bytes);
}
static hone_status copy_out(hone_queue *q, void *to, void *from, int64_t at, size_t bytes) {
    return q->of->table.copy_out(q->queue, to, from, at, bytes);
}
static hone_status copy_peer(hone_queue *q, void *to, int64_t at, hone_queue *other, void *from,
                             int64_t from_at, size_t bytes) {
    return q->of->table.copy_peer(q->queue, to, at, other->queue, from, from_at, bytes);
}
static hone_status copy_within(hone_queue *q, void *to, int64_t at, void *from, int64_t from_at,
                               size_t bytes) {
    return q->of->table.copy_peer(q->queue, to, at, q->queue, from, from_at, bytes);
}
static hone_status await(const hone_device *d, int number, int64_t stream) {
    const hone_device_table *t = &plugin_of(d)->table;
    return t->await(t->self, number, stream);
}
static hone_status wait_queue(hone_queue *q) { return q->of->table.wait(q->queue); }

hone_status hone_device_add(const hone_device_table *t) {
    if (!t) return hone_fail(HONE_BAD_INPUT, "hone_device_add: the table must not be NULL");
    if (t->abi != HONE_DEVICE_ABI)
        return hone_fail(HONE_BAD_INPUT,
                         "a device's table is of ABI %d, this library's is %d: compile it with this "
                         "library's hone/device.h",
                         t->abi, HONE_DEVICE_ABI);
    if (!t->alloc || !t->free || !t->open || !t->close || !t->copy_in || !t->copy_out || !t->enqueue ||
        !t->wait || t->count < 1 || (t->alignment & (t->alignment - 1)))
        return hone_fail(HONE_BAD_INPUT,
                         "device '%s' lacks functions, counts none, or its alignment is no power of 2",
                         t->name ? t->name : "");
    static plugin all[MOST_PLUGINS];
    static int n;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (n == MOST_PLUGINS) {
        pthread_mutex_unlock(&lock);
        return hone_fail(HONE_NOT_SUPPORTED, "there are %d devices from outside already", n);
    }
    plugin *p = all + n;
    p->table = *t;
    p->row = (hone_device){.name = t->name,
                           .count = count,
                           .target = target,
                           .refuses = refuses,
                           .bind = bind,
                           .open = open_queue,
                           .close = close_queue,
                           .run = run,
                           .alloc = alloc,
                           .free = give_back,
                           .copy_in = copy_in,
                           .copy_out = copy_out,
                           .copy_peer = t->copy_peer ? copy_peer : NULL,
                           .copy_within = t->copy_peer ? copy_within : NULL,
                           .dlpack = (int)t->dlpack,
                           .await = t->await ? await : NULL,
                           .wait = wait_queue};
    hone_status s = hone_devices_add(&p->row);
    n += !s;
    pthread_mutex_unlock(&lock);
    return s;
}

/* ---- files   ------------------------------------------------------------------------------------------- */
hone_status hone_plugin_load(const char *file) {
    if (!file || !*file) return hone_fail(HONE_BAD_INPUT, "hone_plugin_load: a file's name is wanted");
    hone_text path = {0};
    /* a file, and nothing that the system would look for elsewhere */
    hone_text_put(&path, "%s%s", strchr(file, '/') ? "" : "./", file);
    void *handle = path.failed ? NULL : dlopen(path.text, RTLD_NOW | RTLD_LOCAL);
    hone_text_free(&path);
    const char *why = handle ? NULL : dlerror();
    if (!handle) return hone_fail(HONE_IO, "plugin '%s' cannot be loaded: %s", file, why ? why : "no memory");
    hone_status (*begin)(void) = NULL;
    void *symbol = dlsym(handle, "hone_plugin");
    memcpy(&begin, &symbol, sizeof begin);
    if (!begin) {
        dlclose(handle);
        return hone_fail(HONE_BAD_INPUT, "'%s' is no plugin: it exports no hone_plugin", file);
    }
    hone_status s = begin();
    return s ? hone_fail_at(s, "plugin '%s': ", file) : HONE_OK; /* it stays: it may have added something */
}
