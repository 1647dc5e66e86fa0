/* SPDX-License-Identifier: Apache-2.0
   control: If, Loop, Scan and SequenceMap. They run bodies through the call's run_body and know nothing of
   how a body runs.

   A body takes its formal inputs and then the node's captures. Values go round by reference; what leaves the
   node is kept (call.h), as a body may hand back a value it was only lent. */
#include <unistd.h>

#include "host/call.h"

/* ---- a body and its operands --------------------------------------------------------------------------- */
typedef struct {
    const hone_host_call *call;
    const hone_graph *graph;
    int number, n_in, n_formal, n_out;
    hone_value **in, **out; /* formal inputs, then captures; all references are ours, but captures */
    hone_value **spare;     /* one an output: a tensor that may be filled, or NULL */
} frame;

static void frame_clear(hone_value **v, int n) {
    for (int k = 0; k < n; k++) {
        hone_value_drop(v[k]);
        v[k] = NULL;
    }
}

static void frame_close(frame *f) {
    if (f->in) frame_clear(f->in, f->n_formal);
    if (f->out) frame_clear(f->out, f->n_out);
    if (f->spare) frame_clear(f->spare, f->n_out);
    hone_free(f->in);
    hone_free(f->out);
    hone_free(f->spare);
    f->in = f->out = f->spare = NULL;
}

/* The body that this attribute names; it must take n_formal inputs of its own and give at least `least`
   outputs. */
static hone_status frame_open(const hone_host_call *c, const char *attr, int n_formal, int least, frame *f) {
    *f = (frame){.call = c};
    const hone_attr *a = hone_call_attr(c, attr);
    if (!a || a->kind != HONE_ATTR_BODY || a->body < 0 || a->body >= c->node->n_body ||
        !c->node->body[a->body])
        return hone_call_fail(c, HONE_BAD_INPUT, "attribute %s is missing: it must be a graph", attr);
    f->number = a->body;
    f->graph = c->node->body[a->body];
    if (f->graph->n_formal != n_formal)
        return hone_call_fail(c, HONE_BAD_INPUT, "graph %s takes %d inputs; the node gives it %d", attr,
                              f->graph->n_formal, n_formal);
    if (f->graph->in.n != n_formal + c->node->n_capture)
        return hone_call_fail(c, HONE_BUG, "graph %s has %d captures, the node %d", attr,
                              f->graph->in.n - n_formal, c->node->n_capture);
    if (f->graph->out.n < least)
        return hone_call_fail(c, HONE_BAD_INPUT, "graph %s gives %d outputs; %d are needed", attr,
                              f->graph->out.n, least);
    f->n_formal = n_formal;
    f->n_in = f->graph->in.n;
    f->n_out = f->graph->out.n;
    f->in = hone_alloc(sizeof *f->in * (size_t)f->n_in);
    f->out = hone_alloc(sizeof *f->out * (size_t)f->n_out);
    f->spare = hone_alloc(sizeof *f->spare * (size_t)f->n_out);
    if (!f->in || !f->out || !f->spare) {
        frame_close(f);
        return hone_call_no_memory(c);
    }
    for (int k = 0; k < c->node->n_capture; k++) f->in[n_formal + k] = c->in[hone_call_inputs(c) + k];
    return HONE_OK;
}

/* What it was given last goes into the next run's outputs: so a carried value has two buffers, by turns. Only
   where nobody else has it. */
static void frame_swap(frame *f, int in, int out) {
    hone_value *v = f->in[in];
    if (!v || v->tag != HONE_TAG_TENSOR || v->dtype == HONE_DTYPE_STRING || !v->free_data ||
        !hone_value_alone(v))
        return;
    hone_value_drop(f->spare[out]);
    f->spare[out] = v, f->in[in] = NULL;
}
/* Runs it on the inputs now set, and lets go of them. Input in0 + k is carried to the next run as output out0
   + k, n of them. */
static hone_status frame_run(frame *f, int in0, int out0, int n) {
    frame_clear(f->out, f->n_out);
    for (int k = 0; k < f->n_out; k++) f->out[k] = f->spare[k], f->spare[k] = NULL;
    hone_status s = f->call->run_body(f->call, f->number, f->in, f->n_in, f->out, f->n_out);
    for (int k = 0; k < n; k++) frame_swap(f, in0 + k, out0 + k);
    frame_clear(f->in, f->n_formal);
    for (int k = 0; k < f->n_out && !s; k++)
        if (!f->out[k]) s = hone_call_fail(f->call, HONE_BUG, "output %d of the graph was not made", k);
    return s;
}

static const hone_var *body_output(const frame *f, int k) {
    return hone_var_of(f->graph, f->graph->out.at[k]);
}

static hone_status make_scalar(hone_dtype t, int64_t v, hone_value **out) {
    HONE_TRY(hone_value_tensor(t, NULL, 0, out));
    hone_dtype_store(t, (*out)->data, HONE_I64, (hone_scalar){.i64 = v}, false);
    return HONE_OK;
}

static hone_status truth(const hone_host_call *c, const hone_value *v, const char *what, bool *out) {
    if (v->tag != HONE_TAG_TENSOR || v->dtype != HONE_DTYPE_BOOL || hone_value_count(v) != 1)
        return hone_call_fail(c, HONE_BAD_INPUT, "%s must be a bool tensor of one element", what);
    hone_value *seen = NULL;
    HONE_TRY(hone_call_seen(c, v, &seen));
    *out = hone_value_i64(seen, 0) != 0;
    hone_value_drop(seen);
    return HONE_OK;
}

/* ---- scan outputs: one tensor an iteration, stacked along a new axis ----------------------------------- */
typedef struct {
    hone_dtype dtype;
    int rank; /* of one member */
    int64_t dim[HONE_MAX_RANK], n;
    size_t member; /* bytes */
    char *data;    /* members one after the other */
    size_t bytes, room;
    /* instead of data, where the members lie on a device: members along a first axis of its own */
    hone_value *away;
    int64_t awaited; /* so many will come, as far as that is known; 0: it is not */
} stack;

/* Above the machine's memory there is no hope; said here, before the system ends the process instead. */
static bool fits_machine(size_t bytes) {
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages <= 0 || size <= 0 || bytes / (size_t)size < (size_t)pages;
}

/* On a device: room for all that will come, or for more and more. */
static hone_status stack_push_away(const hone_host_call *c, stack *s, const hone_value *v, int number) {
    enum { MOST_AHEAD = 1 << 28 /* bytes that are taken before they are needed */, FEW = 8 };
    int64_t dims[HONE_MAX_RANK], room = s->away ? s->away->dim[0] : 0;
    if (s->n >= room) {
        const bool all = s->awaited > s->n && (!s->member || (uint64_t)s->awaited <= MOST_AHEAD / s->member);
        hone_value *more = NULL;
        room = all ? s->awaited : s->n + s->n / 2 + FEW;
        dims[0] = room;
        memcpy(dims + 1, s->dim, sizeof *dims * (size_t)s->rank);
        HONE_TRY(hone_call_make(c, s->away ? s->away : v, s->dtype, dims, s->rank + 1, &more));
        hone_status st =
            s->n ? hone_call_move(c,
                                  &(hone_pieces_move){
                                      .to = more, .from = s->away, .bytes = (size_t)s->n * s->member, .n = 1})
                 : HONE_OK;
        if (st) {
            hone_value_drop(more);
            return hone_fail_at(st, "scan output %d after %lld iterations: ", number, (long long)s->n);
        }
        hone_value_drop(s->away);
        s->away = more;
    }
    HONE_TRY(hone_call_move(
        c, &(hone_pieces_move){
               .to = s->away, .at = (size_t)s->n * s->member, .from = v, .bytes = s->member, .n = 1}));
    s->n++;
    return HONE_OK;
}
static hone_status stack_push(const hone_host_call *c, stack *s, const hone_value *v, int number) {
    if (v->away && s->n && !s->away) { /* it began on the host */
        hone_value *seen = NULL;
        HONE_TRY(hone_call_seen(c, v, &seen));
        hone_status st = stack_push(c, s, seen, number);
        hone_value_drop(seen);
        return st;
    }
    if (v->tag != HONE_TAG_TENSOR)
        return hone_call_fail(c, HONE_BAD_INPUT, "scan output %d of the body is no tensor", number);
    if (!s->n) {
        if (v->rank >= HONE_MAX_RANK)
            return hone_call_fail(c, HONE_BAD_INPUT,
                                  "scan output %d of the body has rank %d: no room for one more axis", number,
                                  v->rank);
        s->dtype = v->dtype;
        s->rank = v->rank;
        memcpy(s->dim, v->dim, sizeof *v->dim * (size_t)v->rank);
        s->member = (size_t)hone_value_count(v) * hone_call_bytes(v->dtype);
    } else if (v->dtype != s->dtype || v->rank != s->rank ||
               memcmp(v->dim, s->dim, sizeof *v->dim * (size_t)v->rank))
        return hone_call_fail(c, HONE_BAD_INPUT,
                              "scan output %d of the body changed its type or shape at iteration %lld",
                              number, (long long)s->n);
    if (v->away || s->away) return stack_push_away(c, s, v, number); /* once on a device, all go there */
    size_t need;
    if (!hone_add_size(s->bytes, s->member, &need)) return hone_call_no_memory(c);
    if (need > s->room) {
        size_t room = need < 64 ? 64 : need > SIZE_MAX / 2 ? need : need + need / 2;
        char *data = fits_machine(room) ? hone_realloc(s->data, s->room, room) : NULL;
        if (!data)
            return hone_call_fail(c, HONE_NO_MEMORY,
                                  "out of memory: scan output %d has %zu bytes after %lld iterations", number,
                                  need, (long long)s->n);
        s->data = data;
        s->room = room;
    }
    if (s->dtype == HONE_DTYPE_STRING)
        HONE_TRY(hone_call_copy_strings(c, s->data + s->bytes, v->data, hone_value_count(v)));
    else if (s->member) memcpy(s->data + s->bytes, v->data, s->member);
    s->bytes = need;
    s->n++;
    return HONE_OK;
}

/* Where no iteration ran, type and shape are those the body states; a size it does not state is 0. */
static void stack_guess(stack *s, const frame *f, int k, hone_dtype known) {
    const hone_var *v = body_output(f, k);
    s->dtype = v && v->dtype ? v->dtype : known ? known : HONE_DTYPE_F32;
    s->rank = v && v->rank > 0 && v->rank < HONE_MAX_RANK ? v->rank : 0;
    for (int d = 0; d < s->rank; d++)
        s->dim[d] = hone_dim_is_number(v->dim[d]) && v->dim[d] >= 0 ? v->dim[d] : 0;
}

static hone_status stack_give_away(const hone_host_call *c, stack *s, int k, const int64_t *dims, int at,
                                   bool backwards) {
    hone_value *y = NULL;
    if (!at && !backwards) { /* its memory as it is, maybe longer than what is used */
        y = s->away, s->away = NULL;
        y->bytes = (size_t)s->n * s->member, y->dim[0] = s->n;
        hone_call_set(c, k, y);
        return HONE_OK;
    }
    HONE_TRY(hone_call_make(c, s->away, s->dtype, dims, s->rank + 1, &y));
    const hone_around a = hone_call_around(dims, s->rank + 1, at);
    const size_t row = (size_t)a.inner * hone_call_bytes(s->dtype);
    hone_status st = HONE_OK;
    for (int64_t i = 0; i < s->n && !st && row; i++)
        st = hone_call_move(c,
                            &(hone_pieces_move){.to = y,
                                                .at = (size_t)i * row,
                                                .step = (size_t)s->n * row,
                                                .from = s->away,
                                                .from_at = (size_t)(backwards ? s->n - 1 - i : i) * s->member,
                                                .from_step = row,
                                                .bytes = row,
                                                .n = a.outer});
    if (st) hone_value_drop(y);
    else hone_call_set(c, k, y);
    return st;
}
/* Node output k: the members along a new axis, in this order or backwards. Axis 0 takes the bytes as they
   are. */
static hone_status stack_give(const hone_host_call *c, stack *s, int k, int64_t axis, bool backwards) {
    int64_t dims[HONE_MAX_RANK], count;
    int at;
    HONE_TRY(hone_call_axis(c, axis, s->rank + 1, &at));
    for (int d = 0; d <= s->rank; d++) dims[d] = d == at ? s->n : s->dim[d - (d > at)];
    if (!hone_count_of(dims, s->rank + 1, &count))
        return hone_call_fail(c, HONE_BAD_INPUT, "output %d is too large", k);
    hone_value *y;
    if (s->away) return stack_give_away(c, s, k, dims, at, backwards);
    if (!at && !backwards && count) {
        HONE_TRY(hone_value_view(s->dtype, dims, s->rank + 1, s->data, &y));
        y->free_data = hone_free;
        s->data = NULL;
        hone_call_set(c, k, y);
    } else {
        HONE_TRY(hone_host_out(c, k, s->dtype, dims, s->rank + 1, &y));
        hone_around a = hone_call_around(dims, s->rank + 1, at);
        size_t row = (size_t)a.inner * hone_call_bytes(s->dtype);
        for (int64_t o = 0; o < a.outer && count; o++)
            for (int64_t i = 0; i < s->n; i++)
                memcpy((char *)y->data + (size_t)(o * s->n + i) * row,
                       s->data + (size_t)(backwards ? s->n - 1 - i : i) * s->member + (size_t)o * row, row);
    }
    if (s->dtype == HONE_DTYPE_STRING) hone_call_pool(y, c->strings);
    return HONE_OK;
}

static void stacks_free(stack *s, int n) {
    for (int k = 0; k < n && s; k++) hone_free(s[k].data), hone_value_drop(s[k].away);
    hone_free(s);
}

/* ---- If ------------------------------------------------------------------------------------------------ */
hone_status hone_host_if(const hone_host_call *c) {
    const hone_value *cond;
    bool yes = false;
    HONE_TRY(hone_call_tensor(c, 0, &cond));
    HONE_TRY(truth(c, cond, "cond", &yes));
    frame f;
    HONE_TRY(frame_open(c, yes ? "then_branch" : "else_branch", 0, c->node->n_out, &f));
    hone_status s = frame_run(&f, 0, 0, 0);
    for (int k = 0; k < c->node->n_out && !s; k++)
        if (hone_call_wants(c, k)) s = hone_call_pass(c, k, f.out[k]);
    frame_close(&f);
    return s;
}

/* ---- Loop ---------------------------------------------------------------------------------------------- */
/* Body: (iteration, cond, carried…) -> (cond, carried…, scan outputs…). An absent cond starts as true; the
   body's own cond always counts, as a loop without a trip count could not end otherwise. */
static hone_status loop(const hone_host_call *c, frame *f, hone_value **carried, int n_carried, stack *stacks,
                        int n_stack) {
    int64_t trips;
    bool go = true;
    HONE_TRY(hone_call_i64(c, 0, INT64_MAX, &trips));
    if (hone_call_in(c, 1)) HONE_TRY(truth(c, c->in[1], "cond", &go));
    for (int k = 0; k < n_stack && trips < INT64_MAX; k++) stacks[k].awaited = trips;
    for (int64_t i = 0; i < trips && go; i++) {
        HONE_TRY(make_scalar(HONE_DTYPE_I64, i, &f->in[0]));
        HONE_TRY(make_scalar(HONE_DTYPE_BOOL, go, &f->in[1]));
        for (int k = 0; k < n_carried; k++) { /* the references move into the frame */
            f->in[2 + k] = carried[k];
            carried[k] = NULL;
        }
        HONE_TRY(frame_run(f, 2, 1, n_carried));
        HONE_TRY(truth(c, f->out[0], "output 0 (cond) of the body", &go));
        for (int k = 0; k < n_carried; k++) {
            carried[k] = f->out[1 + k];
            f->out[1 + k] = NULL;
        }
        for (int k = 0; k < n_stack; k++)
            if (hone_call_wants(c, n_carried + k))
                HONE_TRY(stack_push(c, stacks + k, f->out[1 + n_carried + k], k));
    }
    for (int k = 0; k < n_carried; k++)
        if (hone_call_wants(c, k)) HONE_TRY(hone_call_pass(c, k, carried[k]));
    for (int k = 0; k < n_stack; k++) {
        int to = n_carried + k;
        if (!hone_call_wants(c, to)) continue;
        if (!stacks[k].n)
            stack_guess(stacks + k, f, 1 + to, c->out_dtype ? c->out_dtype[to] : HONE_DTYPE_NONE);
        HONE_TRY(stack_give(c, stacks + k, to, 0, false));
    }
    return HONE_OK;
}

hone_status hone_host_loop(const hone_host_call *c) {
    int n = hone_call_inputs(c) - 2;
    if (n < 0) n = 0;
    frame f;
    HONE_TRY(frame_open(c, "body", 2 + n, 1 + n, &f));
    int n_stack = f.n_out - 1 - n;
    hone_status s = HONE_OK;
    if (c->node->n_out > f.n_out - 1)
        s = hone_call_fail(c, HONE_BAD_INPUT, "the node has %d outputs, its body gives %d", c->node->n_out,
                           f.n_out - 1);
    hone_value **carried = hone_alloc(sizeof *carried * (size_t)n);
    stack *stacks = hone_alloc(sizeof *stacks * (size_t)n_stack);
    if (!s && (!carried || !stacks)) s = hone_call_no_memory(c);
    for (int k = 0; k < n && !s; k++) {
        if (!c->in[2 + k])
            s = hone_call_fail(c, HONE_BAD_INPUT, "input %d, a loop-carried value, is missing", 2 + k);
        else carried[k] = hone_value_hold(c->in[2 + k]);
    }
    if (!s) s = loop(c, &f, carried, n, stacks, n_stack);
    for (int k = 0; k < n && carried; k++) hone_value_drop(carried[k]);
    hone_free(carried);
    stacks_free(stacks, n_stack);
    frame_close(&f);
    return s;
}

/* ---- Scan ---------------------------------------------------------------------------------------------- */
static hone_status slice(const hone_host_call *c, const hone_value *x, int axis, int64_t at,
                         hone_value **out) {
    int64_t dims[HONE_MAX_RANK];
    for (int d = 0; d < x->rank - 1; d++) dims[d] = x->dim[d + (d >= axis)];
    hone_value *y;
    HONE_TRY(hone_call_make(c, x, x->dtype, dims, x->rank - 1, &y));
    hone_around a = hone_call_around(x->dim, x->rank, axis);
    size_t row = (size_t)a.inner * hone_call_bytes(x->dtype);
    hone_status s = row ? hone_call_move(c, &(hone_pieces_move){.to = y,
                                                                .step = row,
                                                                .from = x,
                                                                .from_at = (size_t)at * row,
                                                                .from_step = (size_t)a.n * row,
                                                                .bytes = row,
                                                                .n = a.outer})
                        : HONE_OK;
    if (s) {
        hone_value_drop(y);
        return s;
    }
    hone_call_pool(y, x->strings);
    *out = y;
    return HONE_OK;
}

static int64_t entry(hone_attr list, int k) { return k < list.n ? list.i[k] : 0; }

/* Body: (state…, a slice of each scan input…) -> (state…, scan outputs…) */
static hone_status scan(const hone_host_call *c, frame *f, int n_state, int n_scan, stack *stacks,
                        int n_stack) {
    hone_attr in_axes, in_back, out_axes, out_back;
    HONE_TRY(hone_call_list(c, "scan_input_axes", HONE_ATTR_INTS, &in_axes));
    HONE_TRY(hone_call_list(c, "scan_input_directions", HONE_ATTR_INTS, &in_back));
    HONE_TRY(hone_call_list(c, "scan_output_axes", HONE_ATTR_INTS, &out_axes));
    HONE_TRY(hone_call_list(c, "scan_output_directions", HONE_ATTR_INTS, &out_back));
    int64_t length = 0;
    for (int k = 0; k < n_scan; k++) {
        const hone_value *x;
        int axis;
        HONE_TRY(hone_call_tensor(c, n_state + k, &x));
        HONE_TRY(hone_call_axis(c, entry(in_axes, k), x->rank, &axis));
        if (k && x->dim[axis] != length)
            return hone_call_fail(c, HONE_BAD_INPUT, "scan input %d has %lld steps, scan input 0 has %lld", k,
                                  (long long)x->dim[axis], (long long)length);
        length = x->dim[axis];
    }
    for (int k = 0; k < n_state; k++) {
        if (!c->in[k]) return hone_call_fail(c, HONE_BAD_INPUT, "input %d, a state, is missing", k);
        f->out[k] = hone_value_hold(c->in[k]);
    }
    for (int k = 0; k < n_stack; k++) stacks[k].awaited = length;
    for (int64_t i = 0; i < length; i++) {
        for (int k = 0; k < n_state; k++) {
            f->in[k] = f->out[k];
            f->out[k] = NULL;
        }
        for (int k = 0; k < n_scan; k++) {
            const hone_value *x = c->in[n_state + k];
            int axis;
            HONE_TRY(hone_call_axis(c, entry(in_axes, k), x->rank, &axis));
            HONE_TRY(slice(c, x, axis, entry(in_back, k) ? length - 1 - i : i, &f->in[n_state + k]));
        }
        HONE_TRY(frame_run(f, 0, 0, n_state));
        for (int k = 0; k < n_stack; k++)
            if (hone_call_wants(c, n_state + k)) HONE_TRY(stack_push(c, stacks + k, f->out[n_state + k], k));
    }
    for (int k = 0; k < n_state; k++)
        if (hone_call_wants(c, k)) HONE_TRY(hone_call_pass(c, k, f->out[k]));
    for (int k = 0; k < n_stack; k++) {
        int to = n_state + k;
        if (!hone_call_wants(c, to)) continue;
        if (!stacks[k].n) stack_guess(stacks + k, f, to, c->out_dtype ? c->out_dtype[to] : HONE_DTYPE_NONE);
        HONE_TRY(stack_give(c, stacks + k, to, entry(out_axes, k), entry(out_back, k) != 0));
    }
    return HONE_OK;
}

hone_status hone_host_scan(const hone_host_call *c) {
    int64_t n_scan = hone_call_int(c, "num_scan_inputs", 0);
    int n = hone_call_inputs(c);
    if (n_scan < 1 || n_scan > n)
        return hone_call_fail(c, HONE_BAD_INPUT,
                              "num_scan_inputs is %lld; it must be between 1 and %d, the inputs",
                              (long long)n_scan, n);
    int n_state = n - (int)n_scan;
    frame f;
    HONE_TRY(frame_open(c, "body", n, n_state, &f));
    int n_stack = f.n_out - n_state;
    hone_status s = HONE_OK;
    if (c->node->n_out > f.n_out)
        s = hone_call_fail(c, HONE_BAD_INPUT, "the node has %d outputs, its body gives %d", c->node->n_out,
                           f.n_out);
    stack *stacks = hone_alloc(sizeof *stacks * (size_t)n_stack);
    if (!s && !stacks) s = hone_call_no_memory(c);
    if (!s) s = scan(c, &f, n_state, (int)n_scan, stacks, n_stack);
    stacks_free(stacks, n_stack);
    frame_close(&f);
    return s;
}

/* ---- SequenceMap --------------------------------------------------------------------------------------- */
/* items[k * length + i]: member i of output k. */
static hone_status map(const hone_host_call *c, frame *f, int length, hone_value **items) {
    for (int i = 0; i < length; i++) {
        for (int k = 0; k < f->n_formal; k++)
            f->in[k] = hone_value_hold(c->in[k]->tag == HONE_TAG_SEQUENCE ? c->in[k]->item[i] : c->in[k]);
        HONE_TRY(frame_run(f, 0, 0, 0));
        for (int k = 0; k < c->node->n_out; k++) {
            if (f->out[k]->tag != HONE_TAG_TENSOR)
                return hone_call_fail(c, HONE_BAD_INPUT,
                                      "output %d of the body is no tensor; a sequence holds tensors", k);
            HONE_TRY(hone_call_keep(c, f->out[k], items + (size_t)k * (size_t)length + i));
        }
    }
    for (int k = 0; k < c->node->n_out; k++) {
        if (!hone_call_wants(c, k)) continue;
        hone_value *list;
        HONE_TRY(hone_value_list(HONE_TAG_SEQUENCE, items + (size_t)k * (size_t)length, length, &list));
        if (!list->dtype && body_output(f, k)) list->dtype = body_output(f, k)->dtype;
        hone_call_set(c, k, list);
    }
    return HONE_OK;
}

hone_status hone_host_sequence_map(const hone_host_call *c) {
    const hone_value *first;
    HONE_TRY(hone_call_tagged(c, 0, HONE_TAG_SEQUENCE, &first));
    int n = hone_call_inputs(c), length = first->n_item;
    for (int k = 1; k < n; k++) {
        if (!c->in[k]) return hone_call_fail(c, HONE_BAD_INPUT, "input %d is missing", k);
        if (c->in[k]->tag == HONE_TAG_SEQUENCE && c->in[k]->n_item != length)
            return hone_call_fail(c, HONE_BAD_INPUT, "input %d has %d members, input 0 has %d", k,
                                  c->in[k]->n_item, length);
    }
    frame f;
    HONE_TRY(frame_open(c, "body", n, c->node->n_out, &f));
    size_t count = (size_t)length * (size_t)c->node->n_out;
    hone_value **items = hone_alloc(sizeof *items * count);
    hone_status s = items ? map(c, &f, length, items) : hone_call_no_memory(c);
    for (size_t k = 0; k < count && items; k++) hone_value_drop(items[k]);
    hone_free(items);
    frame_close(&f);
    return s;
}
