/* SPDX-License-Identifier: Apache-2.0
   sequence: what a model remembers from request to request. Some of its outputs are inputs of the next run;
   for each sequence they are kept here, as the values that the runs made: nothing is copied, and clients see
   neither. Control inputs (start, ready, end, the sequence's id) are given here too.

   A sequence is in the table from its first request to the one that ends it, or until it was idle for too
   long. Its requests run one after another, as they came; those of others run beside it. A request holds its
   sequence, so one that ended, or was begun anew, lives until its last request is done. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/inside.h"

enum { CHAINS = 1024, MOST = 4096, PATHS = 4096, RANK = 16, STATES = 1024, DATA_MOST = 64 << 20 };
static const int64_t IDLE_US = 60000000;

typedef enum { START, READY, END, CORRID, KINDS } kind;
static const char *const kinds[KINDS] = {"CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_READY",
                                         "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_CORRID"};
typedef struct {
    int in, out;         /* of the model */
    bool shown;          /* the config lists the output: clients get it too */
    hone_value *initial; /* shared by all sequences that begin */
} state;
typedef struct {
    int in;
    kind of;
    hone_value *value[2]; /* false, true; of CORRID one to be filled a run: NULL */
} control;

typedef struct hone_serve_sequence {
    uint64_t number;
    char *text;
    int holders, waiting; /* requests, and the table; requests that wait or run */
    bool running, lost;   /* lost: its first request was never run */
    uint64_t used;
    hone_value **state, **spare; /* spare: of the run before, to be written by the next */
    bool *own;                   /* of each state: no answer and no other state is in its memory */
    struct hone_serve_sequence *chain, *older, *newer; /* in the table; by use */
} sequence;
struct hone_serve_sequences {
    state *state;
    control *control;
    int states, controls, inputs, outputs; /* inputs, outputs: of the model */
    int *in, *out;                         /* of the model, of each that clients see */
    int most, count;
    uint64_t idle_ns;
    sequence *chain[CHAINS], *oldest, *newest;
};

/* ---- the config ---- */

static int wrong(const hone_serve_version *v, hone_serve_error *e, const char *where, const char *name,
                 const char *what) {
    return hone_serve_fail(e, 400, "sequence_batching of model '%s': %s '%.100s' %s", v->name, where, name,
                           what);
}
static int find(const hone_serve_version *v, bool output, const char *name) {
    for (int k = 0; name && k < (output ? hone_model_outputs(v->model) : hone_model_inputs(v->model)); k++)
        if (!strcmp((output ? hone_model_output(v->model, k) : hone_model_input(v->model, k))->name, name))
            return k;
    return -1;
}
static bool type_differs(const json_t *said, hone_dtype d) { /* "TYPE_FP32", where it is said */
    const char *t = json_string_value(said);
    if (!t) return said != NULL;
    if (!strncmp(t, "TYPE_", 5)) t += 5;
    return hone_serve_type(!strcmp(t, "STRING") ? "BYTES" : t) != d;
}
/* The dims of a state that begins: the model's, those of the config where the model leaves them free, else 1.
   Dims without the batch's, where the config has one. */
static bool dims_of(const hone_serve_version *v, const hone_port *p, const json_t *said, int64_t *dims) {
    const int n = (int)json_array_size(said);
    const int skip = n && n == p->rank - 1 && hone_serve_config_int(v->config, "max_batch_size", 0) > 0;
    if (p->rank < 0 || p->rank > RANK || (n && n + skip != p->rank)) return false;
    for (int k = 0; k < p->rank; k++) {
        const json_int_t d =
            k < skip || !n ? -1 : json_integer_value(json_array_get(said, (size_t)(k - skip)));
        dims[k] = p->dims[k] >= 0 ? p->dims[k] : d >= 0 ? d : 1;
        if (d >= 0 && d != dims[k]) return false;
    }
    return true;
}
static int fill_from(const hone_serve_version *v, const char *folder, const char *file, hone_value *to,
                     hone_serve_error *e) {
    char path[PATHS];
    if (strchr(file, '/') || *file == '.' || !folder)
        return wrong(v, e, "data_file", file, "is to name a file in the folder initial_state of the model");
    snprintf(path, sizeof path, "%.3000s/initial_state/%.500s", folder, file);
    FILE *f = fopen(path, "rb");
    const size_t n = hone_value_bytes(to), got = f ? fread(hone_value_data(to), 1, n, f) : 0;
    const bool whole = f && got == n && fgetc(f) == EOF;
    if (f) fclose(f);
    return whole ? 0 : wrong(v, e, "data_file", file, "cannot be read, or has not the bytes of its state");
}
static int read_state(hone_serve_version *v, const char *folder, const json_t *s, hone_serve_error *e) {
    hone_serve_sequences *q = v->sequences;
    const char *in = json_string_value(json_object_get(s, "input_name")),
               *out = json_string_value(json_object_get(s, "output_name"));
    const json_t *initial = json_object_get(s, "initial_state"), *type = json_object_get(s, "data_type");
    state *to = &q->state[q->states];
    int64_t dims[RANK], n = 1;
    if (json_is_array(initial)) initial = json_array_get(initial, 0);
    if ((to->in = find(v, false, in)) < 0)
        return wrong(v, e, "state", in ? in : "", "is no input of the model");
    if ((to->out = find(v, true, out)) < 0)
        return wrong(v, e, "state", out ? out : "", "is no output of the model");
    const hone_port *p = hone_model_input(v->model, to->in), *o = hone_model_output(v->model, to->out);
    if (p->kind != HONE_VALUE_TENSOR || !hone_serve_type_bytes(p->dtype) || o->dtype != p->dtype ||
        o->kind != p->kind || type_differs(type, p->dtype))
        return wrong(v, e, "state", in, "has not one type of numbers as input, as output and in the config");
    if (o->rank >= 0 && p->rank >= 0 && o->rank != p->rank)
        return wrong(v, e, "state", in, "has not the same rank as input and as output");
    const json_t *more = json_object_get(initial, "dims");
    if (!dims_of(v, p, json_array_size(more) ? more : json_object_get(s, "dims"), dims))
        return wrong(v, e, "state", in, "has dims in the config that the model has not");
    for (int k = 0; k < p->rank; k++)
        if (dims[k] > DATA_MOST || (n *= dims[k]) > DATA_MOST)
            return wrong(v, e, "state", in, "would be larger than a state may be");
    if (hone_tensor_create(p->dtype, dims, p->rank, &to->initial)) /* zeros */
        return hone_serve_fail(e, 503, "state '%s': %s", in, hone_error());
    q->states++;
    for (const json_t *l = json_object_get(v->config, "output"), *one = NULL; l; l = NULL)
        for (size_t k = 0; (one = json_array_get(l, k)); k++) {
            const char *name = json_string_value(json_object_get(one, "name"));
            to->shown |= name && !strcmp(name, out);
        }
    const char *file = json_string_value(json_object_get(initial, "data_file"));
    return file ? fill_from(v, folder, file, to->initial, e) : 0;
}
static int read_control(hone_serve_version *v, const char *name, const json_t *c, hone_serve_error *e) {
    static const char *const sides[] = {"int32_false_true", "fp32_false_true", "bool_false_true"};
    static const hone_dtype types[] = {HONE_DTYPE_I32, HONE_DTYPE_F32, HONE_DTYPE_BOOL};
    hone_serve_sequences *q = v->sequences;
    control *to = &q->control[q->controls];
    const char *of = json_string_value(json_object_get(c, "kind"));
    const json_t *type = json_object_get(c, "data_type"), *side = NULL;
    int64_t dims[RANK];
    int which = 0;
    for (to->of = START; of && to->of < KINDS && strcmp(kinds[to->of], of) != 0;) to->of++;
    if (!of) to->of = START; /* protobuf's 0 */
    if (to->of == KINDS) return wrong(v, e, "control", of, "is none that there is");
    if ((to->in = find(v, false, name)) < 0) return wrong(v, e, "control", name, "is no input of the model");
    const hone_port *p = hone_model_input(v->model, to->in);
    if (p->kind != HONE_VALUE_TENSOR || !dims_of(v, p, NULL, dims))
        return wrong(v, e, "control", name, "is no tensor of a known rank");
    for (int k = 0; k < p->rank; k++)
        if (dims[k] != 1) return wrong(v, e, "control", name, "is an input of more than one element");
    q->controls++;
    if (to->of == CORRID) {
        static const hone_dtype ids[] = {HONE_DTYPE_U64, HONE_DTYPE_I64, HONE_DTYPE_U32, HONE_DTYPE_I32,
                                         HONE_DTYPE_STRING};
        for (size_t k = 0; k < sizeof ids / sizeof *ids; k++)
            if (ids[k] == p->dtype && !type_differs(type, p->dtype)) return 0;
        return wrong(v, e, "control", name, "is to be a number of 32 or 64 bits, or a text");
    }
    for (; which < 3 && !json_array_size(side = json_object_get(c, sides[which])); which++) continue;
    if (which == 3 || types[which] != p->dtype || json_array_size(side) != 2)
        return wrong(v, e, "control", name, "wants two numbers, for false and true, of the input's type");
    for (int k = 0; k < 2; k++) {
        const json_t *x = json_array_get(side, (size_t)k);
        if (hone_tensor_create(p->dtype, dims, p->rank, &to->value[k]))
            return hone_serve_fail(e, 503, "control '%s': %s", name, hone_error());
        void *at = hone_value_data(to->value[k]);
        if (which == 0) *(int32_t *)at = (int32_t)json_integer_value(x);
        else if (which == 1) *(float *)at = (float)json_number_value(x);
        else *(uint8_t *)at = json_is_true(x) || json_integer_value(x) != 0;
    }
    return 0;
}
/* What is left for clients. */
static int hide(hone_serve_version *v, hone_serve_error *e) {
    hone_serve_sequences *q = v->sequences;
    const int ports = q->inputs + q->outputs;
    bool *taken = calloc((size_t)ports + 1, sizeof *taken);
    if (!taken) return hone_serve_fail(e, 503, "no memory for model '%s'", v->name);
    for (int k = 0; k < q->states + q->controls && !e->code; k++) {
        const int in = k < q->states ? q->state[k].in : q->control[k - q->states].in;
        if (taken[in])
            wrong(v, e, "input", hone_model_input(v->model, in)->name, "is a state or a control twice");
        taken[in] = true;
        if (k >= q->states) continue;
        bool *out = &taken[q->inputs + q->state[k].out];
        if (*out)
            wrong(v, e, "output", hone_model_output(v->model, q->state[k].out)->name, "is a state twice");
        *out = true;
    }
    for (int k = 0; k < q->states; k++)
        if (q->state[k].shown) taken[q->inputs + q->state[k].out] = false;
    v->inputs = v->outputs = 0;
    for (int k = 0, n = 0; k < ports; k++) {
        if (taken[k]) continue;
        v->port[n++] = v->port[k];
        if (k < q->inputs) q->in[v->inputs++] = k;
        else q->out[v->outputs++] = k - q->inputs;
    }
    free(taken);
    return e->code;
}
int hone_serve_sequences_read(hone_serve_version *v, const char *folder, hone_serve_error *e) {
    const json_t *said = json_object_get(v->config, "sequence_batching"), *item, *one;
    const json_t *states = json_object_get(said, "state"), *controls = json_object_get(said, "control_input");
    if (!json_is_object(said)) return 0;
    const int64_t idle = hone_serve_config_int(said, "max_sequence_idle_microseconds", 0),
                  most = hone_serve_config_int(said, "oldest.max_candidate_sequences", MOST);
    size_t k, j, n_controls = 0;
    json_array_foreach(controls, k, item) n_controls += json_array_size(json_object_get(item, "control"));
    hone_serve_sequences *q = v->sequences = calloc(1, sizeof *q);
    if (q) {
        q->inputs = v->inputs, q->outputs = v->outputs;
        q->state = calloc(json_array_size(states) + 1, sizeof *q->state);
        q->control = calloc(n_controls + 1, sizeof *q->control);
        q->in = calloc((size_t)q->inputs + 1, sizeof *q->in);
        q->out = calloc((size_t)q->outputs + 1, sizeof *q->out);
        q->idle_ns = (uint64_t)(idle > 0 ? idle : IDLE_US) * 1000, q->most = (int)most;
    }
    if (!q || !q->state || !q->control || !q->in || !q->out)
        return hone_serve_fail(e, 503, "no memory for model '%s'", v->name);
    if (idle < 0 || idle > 86400000000 || most < 1 || most > 1000000)
        return hone_serve_fail(
            e, 400,
            "sequence_batching of model '%s': an idle time of 0 to 86400000000 us and 1 to 1000000 "
            "candidate sequences will do",
            v->name);
    if (json_array_size(states) > STATES)
        return hone_serve_fail(e, 400, "sequence_batching of model '%s': more than %d states", v->name,
                               STATES);
    if (json_object_get(v->config, "weights"))
        return hone_serve_fail(
            e, 400,
            "model '%s' has sequences and weights: a sequence stays with one version; name the "
            "version in requests instead",
            v->name);
    if (!e->code) json_array_foreach(states, k, item) if (read_state(v, folder, item, e)) break;
    if (!e->code)
        json_array_foreach(controls, k, item) json_array_foreach(json_object_get(item, "control"), j, one) {
            const char *name = json_string_value(json_object_get(item, "name"));
            if (!e->code) read_control(v, name ? name : "", one, e);
        }
    return e->code ? e->code : hide(v, e);
}

/* ---- the table ---- */

static void end(const hone_serve_sequences *q, sequence *s) {
    for (int k = 0; s->state && k < 2 * q->states; k++) hone_value_free(s->state[k]);
    free(s->state), free(s->own), free(s->text), free(s);
}
static void let_go(const hone_serve_sequences *q, sequence *s) {
    if (!--s->holders) end(q, s);
}
static unsigned chain_of(uint64_t number, const char *text) {
    uint64_t h = number * 0x9e3779b97f4a7c15u;
    for (const char *p = text; p && *p; p++) h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    return (unsigned)(h >> 40) % CHAINS;
}
static sequence **place_of(hone_serve_sequences *q, uint64_t number, const char *text) {
    sequence **at = &q->chain[chain_of(number, text)];
    while (*at &&
           ((*at)->number != number || !(*at)->text != !text || (text && strcmp((*at)->text, text) != 0)))
        at = &(*at)->chain;
    return at;
}
static void out_of_order(hone_serve_sequences *q, sequence *s) {
    *(s->older ? &s->older->newer : &q->oldest) = s->newer;
    *(s->newer ? &s->newer->older : &q->newest) = s->older;
    s->older = s->newer = NULL;
}
static void used(hone_serve_sequences *q, sequence *s, uint64_t now) {
    s->used = now;
    s->older = q->newest, s->newer = NULL;
    *(s->older ? &s->older->newer : &q->oldest) = s;
    q->newest = s;
}
static void take_out(hone_serve_sequences *q, sequence *s) { /* of the table; requests may still hold it */
    *place_of(q, s->number, s->text) = s->chain, s->chain = NULL;
    out_of_order(q, s), q->count--;
    let_go(q, s);
}
static sequence *begin(const hone_serve_sequences *q, const hone_serve_id *id) {
    sequence *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->number = id->number, s->text = id->text ? strdup(id->text) : NULL;
    s->state = calloc(2 * (size_t)q->states + 1, sizeof *s->state);
    s->own = calloc((size_t)q->states + 1, sizeof *s->own);
    if (!s->state || !s->own || (id->text && !s->text)) {
        end(q, s);
        return NULL;
    }
    s->spare = s->state + q->states;
    for (int k = 0; k < q->states; k++) s->state[k] = hone_value_share(q->state[k].initial);
    return s;
}
int hone_serve_sequences_count(const hone_serve_version *v) { return v->sequences ? v->sequences->count : 0; }
uint64_t hone_serve_sequences_sweep(hone_serve_version *v, uint64_t now) {
    hone_serve_sequences *q = v->sequences;
    while (q && q->oldest && now - q->oldest->used >= q->idle_ns) {
        sequence *s = q->oldest;
        if (s->waiting) out_of_order(q, s), used(q, s, now);
        else take_out(q, s);
    }
    return q && q->oldest ? q->oldest->used + q->idle_ns : 0;
}
static const char *name_of(const hone_serve_id *id, char *room, size_t n) {
    if (id->text) snprintf(room, n, "'%.200s'", id->text);
    else snprintf(room, n, "%llu", (unsigned long long)id->number);
    return room;
}
int hone_serve_sequence_enter(hone_serve_request *r) {
    hone_serve_version *v = r->version;
    hone_serve_sequences *q = v->sequences;
    const hone_serve_id *id = &r->id;
    const bool named = id->number || (id->text && *id->text);
    char name[240];
    if (!q && named)
        return hone_serve_fail(
            &r->error, 400,
            "model '%s' takes no sequences: a request with sequence_id would be mistaken for a part of one",
            v->name);
    if (!q) return 0;
    if (!named)
        return hone_serve_fail(
            &r->error, 400,
            "inference request to model '%s' must specify a non-zero or non-empty correlation ID "
            "(sequence_id)",
            v->name);
    name_of(id, name, sizeof name);
    (void)hone_serve_sequences_sweep(v, r->times.queued);
    sequence **at = place_of(q, id->number, id->text), *s = *at;
    if (!s && !id->start)
        return hone_serve_fail(&r->error, 400,
                               "inference request for sequence %s to model '%s' must specify the START flag "
                               "on the first request "
                               "of the sequence (it was not started, has ended, was idle for more than %llu "
                               "ms, or the model was "
                               "loaded anew)",
                               name, v->name, (unsigned long long)(q->idle_ns / 1000000));
    if (id->start) {
        if (!s && q->count >= q->most && !id->end) {
            hone_serve_fail(&r->error, 503,
                            "model '%s' has %d sequences under way, and takes no more; try again later",
                            v->name, q->count);
            r->error.retry_after = 1;
            return r->error.code;
        }
        sequence *fresh = begin(q, id);
        if (!fresh) return hone_serve_fail(&r->error, 503, "no memory for a sequence of model '%s'", v->name);
        if (s) take_out(q, s); /* begun anew: the old one is over */
        at = place_of(q, id->number, id->text);
        if (!id->end) {
            fresh->chain = *at, *at = fresh, fresh->holders++;
            used(q, fresh, r->times.queued), q->count++;
        }
        s = fresh;
    }
    s->holders++, s->waiting++, r->sequence = s;
    if (id->start) return 0;
    out_of_order(q, s), used(q, s, r->times.queued);
    if (id->end) take_out(q, s);
    return 0;
}
bool hone_serve_sequence_free_now(const hone_serve_request *r) {
    return !r->sequence || !r->sequence->running;
}
void hone_serve_sequence_take(hone_serve_request *r) {
    if (r->sequence) r->sequence->running = true;
}
void hone_serve_sequence_leave(hone_serve_request *r, bool ran) {
    sequence *s = r->sequence;
    if (!s) return;
    if (ran) s->running = false;
    else if (r->id.start) s->lost = true;
    s->waiting--, r->sequence = NULL;
    let_go(r->version->sequences, s);
}

/* ---- a run ---- */

hone_value *hone_serve_sequences_made(const hone_serve_version *v, int input) {
    const hone_serve_sequences *q = v->sequences;
    for (int k = 0; q && k < q->states; k++)
        if (q->state[k].in == input) return q->state[k].initial;
    for (int k = 0; q && k < q->controls; k++)
        if (q->control[k].in == input) return q->control[k].value[1];
    return NULL;
}
static hone_status id_value(const hone_serve_version *v, int in, const hone_serve_id *id, hone_value **out) {
    const hone_port *p = hone_model_input(v->model, in);
    int64_t dims[RANK];
    char number[32];
    for (int k = 0; k < p->rank; k++) dims[k] = 1;
    hone_status s = hone_tensor_create(p->dtype, dims, p->rank, out);
    if (s) return s;
    snprintf(number, sizeof number, "%llu", (unsigned long long)id->number);
    const char *text = id->text ? id->text : number;
    if (p->dtype == HONE_DTYPE_STRING) return hone_value_set_text(*out, 0, text, strlen(text));
    /* little-endian, as all machines that Hone runs on */
    memcpy(hone_value_data(*out), &id->number, hone_value_bytes(*out));
    return HONE_OK;
}
static bool overlap(const hone_value *a, const hone_value *b) {
    const char *x = hone_value_data((hone_value *)a), *y = hone_value_data((hone_value *)b);
    return x && y && x < y + hone_value_bytes(b) && y < x + hone_value_bytes(a);
}
/* A run may give one memory for two outputs, or an input's again. */
static bool is_own(const hone_serve_sequences *q, const sequence *s, hone_value *const *out, int state) {
    hone_value *v = out[q->state[state].out];
    bool own = !q->state[state].shown;
    for (int k = 0; k < q->outputs && own; k++)
        own = k == q->state[state].out || !out[k] || !overlap(v, out[k]);
    for (int k = 0; k < q->states && own; k++) own = !overlap(v, s->state[k]);
    return own;
}
hone_status hone_serve_sequence_run(hone_serve_instance *i, hone_serve_request *r) {
    hone_serve_version *v = i->version;
    hone_serve_sequences *q = v->sequences;
    sequence *s = r->sequence;
    hone_value **in = i->given, **out = in + q->inputs;
    hone_status st = HONE_OK;
    if (s->lost) {
        hone_serve_fail(&r->error, 400,
                        "model '%s': the first request of this sequence was never run; start it anew",
                        v->name);
        return HONE_BAD_INPUT;
    }
    for (int k = 0; k < v->inputs; k++) in[q->in[k]] = r->in[k];
    for (int k = 0; k < q->states; k++) {
        in[q->state[k].in] = s->state[k];
        out[q->state[k].out] = s->spare[k], s->spare[k] = NULL; /* written by the run, where it fits */
    }
    for (int k = 0; k < q->controls && !st; k++) {
        const control *c = &q->control[k];
        if (c->of == CORRID) st = id_value(v, c->in, &r->id, &in[c->in]);
        else in[c->in] = c->value[c->of == START ? r->id.start : c->of == END ? r->id.end : true];
    }
    if (!st) st = hone_session_run(i->session, in, out);
    if (st) hone_serve_failed(&r->error, st, hone_error());
    bool own[STATES] = {false};
    for (int k = 0; k < q->states && !st; k++) own[k] = is_own(q, s, out, k);
    for (int k = 0; k < q->states && !st; k++) {
        const state *t = &q->state[k];
        if (s->own[k]) s->spare[k] = s->state[k]; /* nobody else reads it */
        else hone_value_free(s->state[k]);
        s->own[k] = own[k];
        s->state[k] = t->shown ? hone_value_share(out[t->out]) : out[t->out];
        if (!t->shown) out[t->out] = NULL;
    }
    for (int k = 0; k < v->outputs && !st; k++) r->out[k] = out[q->out[k]], out[q->out[k]] = NULL;
    for (int k = 0; k < q->outputs; k++)
        hone_value_free(out[k]), out[k] = NULL; /* nobody asked, or it failed */
    for (int k = 0; k < q->controls; k++)
        if (q->control[k].of == CORRID) hone_value_free(in[q->control[k].in]), in[q->control[k].in] = NULL;
    return st;
}

void hone_serve_sequences_free(hone_serve_sequences *q) {
    if (!q) return;
    for (int k = 0; k < CHAINS; k++)
        for (sequence *s = q->chain[k], *next; s; s = next) {
            next = s->chain;
            take_out(q, s);
        }
    for (int k = 0; q->state && k < q->states; k++) hone_value_free(q->state[k].initial);
    for (int k = 0; q->control && k < q->controls; k++)
        hone_value_free(q->control[k].value[0]), hone_value_free(q->control[k].value[1]);
    free(q->state), free(q->control), free(q->in), free(q->out), free(q);
}
