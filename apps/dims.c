/* SPDX-License-Identifier: Apache-2.0
   dims: names are read off the ports' shapes ("f32[batch, 3, 224, 224]"). A dim without a name ("?") can be called by input and place:
   "image.2". Guesses are 1, and, where the model cannot be planned so (a convolution that finds its input too small), some usual sizes. */
#include "dims.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANK_MAX = 16, NAME = 64, FREE_MAX = 256 };
static const int64_t sizes[] = {1, 16, 64, 224, 640};

typedef struct {
    char name[NAME];
    int64_t value; /* -1: not given */
} free_dim;
typedef struct {
    free_dim at[FREE_MAX];
    int n;
} free_dims;

/* The text of dim d of a shape; "" where there is none. */
static void dim_text(const hone_port *p, int d, char *out) {
    const char *at = strchr(p->shape, '[');
    out[0] = 0;
    for (at = at ? at + 1 : ""; d > 0 && *at; d--) {
        at += strcspn(at, ",]");
        at += strspn(at, ", ");
    }
    snprintf(out, NAME, "%.*s", (int)strcspn(at, ",]"), at);
}
/* What a free dim is called: its symbol, or input.place where it has none. */
static void dim_name(const hone_port *p, int d, char *out) {
    dim_text(p, d, out);
    if (!*out || !strcmp(out, "?")) snprintf(out, NAME, "%.48s.%d", p->name, d);
}
static free_dim *find(free_dims *f, const char *name) {
    for (int k = 0; k < f->n; k++)
        if (!strcmp(f->at[k].name, name)) return f->at + k;
    return NULL;
}
static void gather(const hone_model *m, free_dims *f) {
    for (int k = 0; k < hone_model_inputs(m); k++) {
        const hone_port *p = hone_model_input(m, k);
        for (int d = 0; p->kind == HONE_VALUE_TENSOR && d < p->rank && d < RANK_MAX; d++) {
            char name[NAME];
            if (p->dims[d] >= 0) continue;
            dim_name(p, d, name);
            if (find(f, name) || f->n == FREE_MAX) continue;
            f->at[f->n].value = -1;
            memcpy(f->at[f->n++].name, name, NAME);
        }
    }
}
static int take(free_dims *f, const hone_words *words) {
    const char *names[FREE_MAX];
    for (int k = 0; k < f->n; k++) names[k] = f->at[k].name;
    for (int k = 0; k < words->n; k++) {
        char name[NAME], *end;
        int length = 0;
        const char *text = hone_args_after(words->at[k], &length);
        if (!text || !isdigit((unsigned char)*text))
            return hone_args_wrong("--dim %s: write it as NAME=SIZE, as in --dim batch=8", words->at[k]);
        long long value = strtoll(text, &end, 10);
        if (*end || value > INT32_MAX) return hone_args_wrong("--dim %s: the size is no whole number below 2^31", words->at[k]);
        snprintf(name, sizeof name, "%.*s", length, words->at[k]);
        free_dim *d = find(f, name);
        if (!d && !f->n) return hone_args_wrong("--dim %s: the model has no free dim; its shapes are fixed", words->at[k]);
        if (!d) {
            const char *near = hone_args_nearest(name, names, f->n);
            return hone_args_wrong("--dim %s: the model has no free dim '%s'; did you mean '%s'?", words->at[k], name,
                                   near ? near : names[0]);
        }
        d->value = value;
    }
    return 0;
}
static hone_status plan(const hone_model *m, free_dims *f, int64_t otherwise, char **out) {
    int n = hone_model_inputs(m);
    hone_shape *in = hone_must_alloc(sizeof *in * (size_t)(n + 1));
    int64_t *dims = hone_must_alloc(sizeof *dims * RANK_MAX * (size_t)(n + 1));
    for (int k = 0; k < n; k++) {
        const hone_port *p = hone_model_input(m, k);
        in[k] = (hone_shape){dims + (size_t)RANK_MAX * (size_t)k, p->kind == HONE_VALUE_TENSOR && p->rank >= 0 ? p->rank : -1};
        if (p->kind == HONE_VALUE_TENSOR && p->rank < 0) in[k].rank = 0; /* not known: a scalar is as good a guess as any */
        for (int d = 0; d < in[k].rank && d < RANK_MAX; d++) {
            char name[NAME];
            dim_name(p, d, name);
            const free_dim *mine = p->dims[d] < 0 ? find(f, name) : NULL;
            bool batch = d == 0 || strstr(name, "batch"); /* the first is rarely what makes an input too small */
            dims[(size_t)RANK_MAX * (size_t)k + (size_t)d] = p->dims[d] >= 0            ? p->dims[d]
                                                             : mine && mine->value >= 0 ? mine->value
                                                             : batch                    ? 1
                                                                                        : otherwise;
        }
    }
    hone_status s = hone_model_plan(m, in, out);
    free(in);
    free(dims);
    return s;
}
static bool is_first(const hone_model *m, const char *name) { /* as plan() has it: "batch" */
    for (int k = 0; k < hone_model_inputs(m); k++) {
        const hone_port *p = hone_model_input(m, k);
        char own[NAME] = "";
        if (p->kind == HONE_VALUE_TENSOR && p->rank > 0 && p->dims[0] < 0) dim_name(p, 0, own);
        if (!strcmp(own, name)) return true;
    }
    return strstr(name, "batch") != NULL;
}
static bool is_partial(const hone_json *plan) {
    const hone_json *whole = hone_json_get(plan, "whole"), *steps = hone_json_get(plan, "steps");
    bool control = false;
    for (const hone_json *s = steps ? steps->first : NULL; s && !control; s = s->next)
        control = !strcmp(hone_json_text(s, "tactic", ""), "control");
    return control || !whole || whole->type != HONE_JSON_TRUE;
}
int hone_plan_for(const hone_model *m, const hone_words *dims, hone_planned *out, char **json) {
    free_dims *f = hone_must_alloc(sizeof *f);
    char *text = NULL;
    int64_t taken = 1;
    *out = (hone_planned){0};
    gather(m, f);
    int rc = take(f, dims);
    hone_status s = HONE_OK;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes && !rc; k++) {
        taken = sizes[k];
        hone_status now = plan(m, f, taken, &text);
        if (!k && now)
            s = now, snprintf(out->why, sizeof out->why, "%s", hone_error()); /* the first failure is told: 1 is what run takes */
        if (!now) s = HONE_OK, out->why[0] = 0;
        if (!now || now == HONE_NO_MEMORY || now == HONE_BUG) break;
    }
    if (s) taken = 1;
    for (int k = 0; k < f->n && !rc; k++) {
        bool given = f->at[k].value >= 0;
        char *to = given ? out->given : out->guessed;
        size_t n = strlen(to), room = sizeof out->given - n;
        snprintf(to + n, room, "%s%s = %lld", n ? ", " : "", f->at[k].name,
                 (long long)(given                        ? f->at[k].value
                             : is_first(m, f->at[k].name) ? 1
                                                          : taken));
    }
    free(f);
    out->status = s;
    if (!rc && !s && !(out->plan = hone_json_read(text)))
        out->status = HONE_BUG, snprintf(out->why, sizeof out->why, "the plan's report cannot be read");
    out->partial = out->plan && is_partial(out->plan);
    if (json && !rc && out->plan) *json = text;
    else hone_text_release(text);
    return rc;
}
void hone_planned_free(hone_planned *p) {
    hone_json_free(p->plan);
    *p = (hone_planned){0};
}
