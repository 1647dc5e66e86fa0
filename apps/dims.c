/* SPDX-License-Identifier: Apache-2.0
   dims: names are read off the ports' shapes ("f32[batch, 3, 224, 224]"). A dim without a name is called by
   input and place: "image.2". */
#include "dims.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANK_MAX = 16, NAME = HONE_DIM_NAME, FREE_MAX = 256 };
static const int64_t sizes[] = {1, 16, 64, 224, 640};

typedef struct {
    char name[NAME];
    int64_t value; /* -1: not given */
    bool said;     /* by --dim */
    /* the first dim of an input, or called so: rarely what makes an input too small, so its guess stays 1 */
    bool batch;
    bool used; /* by an input that no file or --shape gives: a guess of it is one */
} free_dim;
struct hone_dims_known {
    free_dim at[FREE_MAX];
    int n;
    int64_t otherwise;       /* what is guessed */
    struct {                 /* one an input */
        const int64_t *dims; /* its shape, where it is given */
        int rank;
        const char *name;
        bool known, scalar; /* scalar: the rank is not known, and guessed */
    } * input;
    int n_input;
};

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
void hone_dim_name(const hone_port *p, int d, char out[NAME]) {
    dim_text(p, d, out);
    /* what the library calls a dim without a name */
    bool made_up = out[0] == '_' && out[1] && strspn(out + 1, "0123456789") == strlen(out + 1);
    if (!*out || !strcmp(out, "?") || made_up) snprintf(out, NAME, "%.48s.%d", p->name, d);
}
static free_dim *find(const hone_dims_known *f, const char *name) {
    for (int k = 0; k < f->n; k++)
        if (!strcmp(f->at[k].name, name)) return (free_dim *)f->at + k;
    return NULL;
}
static bool is_free(const hone_port *p, int d) {
    return p->kind == HONE_VALUE_TENSOR && d < p->rank && d < RANK_MAX && p->dims[d] < 0;
}
static void gather(const hone_model *m, hone_dims_known *f) {
    for (int k = 0; k < hone_model_inputs(m); k++) {
        const hone_port *p = hone_model_input(m, k);
        f->input[k].name = p->name;
        f->input[k].scalar = p->kind == HONE_VALUE_TENSOR && p->rank < 0;
        for (int d = 0; d < p->rank; d++) {
            char name[NAME];
            if (!is_free(p, d)) continue;
            hone_dim_name(p, d, name);
            free_dim *one = find(f, name);
            if (!one && f->n == FREE_MAX) continue;
            if (!one) {
                one = f->at + f->n++;
                *one = (free_dim){.value = -1, .batch = strstr(name, "batch") != NULL, .used = true};
                memcpy(one->name, name, NAME);
            }
            one->batch |= d == 0;
        }
    }
}
static int take(hone_dims_known *f, const hone_words *words) {
    const char *names[FREE_MAX];
    for (int k = 0; k < f->n; k++) names[k] = f->at[k].name;
    for (int k = 0; k < words->n; k++) {
        char name[HONE_DIM_NAME], *end;
        int length = 0;
        const char *text = hone_args_after(words->at[k], &length);
        if (!text || !length || !isdigit((unsigned char)*text))
            return hone_args_wrong("--dim %s: write it as NAME=SIZE, as in --dim batch=8", words->at[k]);
        long long value = strtoll(text, &end, 10);
        if (*end || value > INT32_MAX)
            return hone_args_wrong("--dim %s: the size is no whole number below 2^31", words->at[k]);
        snprintf(name, sizeof name, "%.*s", length, words->at[k]);
        free_dim *d = find(f, name);
        if (!d && !f->n)
            return hone_args_wrong("--dim %s: the model has no free dim; its shapes are fixed", words->at[k]);
        if (!d) {
            const char *near = hone_args_nearest(name, names, f->n);
            return hone_args_wrong("--dim %s: the model has no free dim '%s'; did you mean '%s'?",
                                   words->at[k], name, near ? near : names[0]);
        }
        if (d->said && d->value != value)
            return hone_args_wrong("--dim %s: '%s' is %lld already; say it once", words->at[k], name,
                                   (long long)d->value);
        d->value = value, d->said = true;
    }
    return 0;
}
hone_dims_known *hone_dims_read(const hone_model *m, const hone_words *words) {
    hone_dims_known *f = hone_must_alloc(sizeof *f);
    f->n_input = hone_model_inputs(m);
    f->input = hone_must_alloc(sizeof *f->input * (size_t)(f->n_input + 1));
    f->otherwise = 1;
    gather(m, f);
    if (!words || !take(f, words)) return f;
    hone_dims_free(f);
    return NULL;
}
void hone_dims_free(hone_dims_known *f) {
    if (f) free(f->input);
    free(f);
}
/* Dims that only inputs of known shape have are not guessed. */
static void note_used(hone_dims_known *f, const hone_model *m) {
    for (int k = 0; k < f->n; k++) f->at[k].used = false;
    for (int k = 0; k < f->n_input; k++) {
        const hone_port *p = hone_model_input(m, k);
        for (int d = 0; d < p->rank && !f->input[k].known; d++) {
            char name[NAME];
            hone_dim_name(p, d, name);
            free_dim *one = is_free(p, d) ? find(f, name) : NULL;
            if (one) one->used = true;
        }
    }
}
int hone_dims_fix(hone_dims_known *f, const hone_port *p, const int64_t *dims, int rank, const char *by) {
    for (int k = 0; k < f->n_input; k++)
        if (!strcmp(f->input[k].name, p->name))
            f->input[k].known = true, f->input[k].dims = dims, f->input[k].rank = rank;
    for (int d = 0; d < rank; d++) {
        char name[NAME];
        if (!is_free(p, d)) continue;
        hone_dim_name(p, d, name);
        free_dim *one = find(f, name);
        if (!one) continue;
        if (one->said && one->value != dims[d])
            return hone_args_wrong("--dim %s=%lld: %s says that it is %lld", name, (long long)one->value, by,
                                   (long long)dims[d]);
        one->value = dims[d];
    }
    return 0;
}
int64_t hone_dims_size(const hone_dims_known *f, const hone_port *p, int d, bool *guessed) {
    char name[NAME];
    if (p->dims[d] >= 0) return p->dims[d];
    hone_dim_name(p, d, name);
    const free_dim *one = find(f, name);
    if (one && one->value >= 0) return one->value;
    if (guessed) *guessed = true;
    return one && one->batch ? 1 : f->otherwise;
}
static hone_status plan(const hone_model *m, const hone_dims_known *f, const hone_options *o, char **out) {
    int n = f->n_input;
    hone_shape *in = hone_must_alloc(sizeof *in * (size_t)(n + 1));
    int64_t *dims = hone_must_alloc(sizeof *dims * RANK_MAX * (size_t)(n + 1));
    for (int k = 0; k < n; k++) {
        const hone_port *p = hone_model_input(m, k);
        int64_t *at = dims + (size_t)RANK_MAX * (size_t)k;
        in[k] = (hone_shape){at, p->kind == HONE_VALUE_TENSOR && p->rank >= 0 ? p->rank : -1};
        if (f->input[k].scalar) in[k].rank = 0; /* not known: a scalar is as good a guess as any */
        if (f->input[k].known) in[k] = (hone_shape){f->input[k].dims, f->input[k].rank};
        else
            for (int d = 0; d < in[k].rank && d < RANK_MAX; d++) at[d] = hone_dims_size(f, p, d, NULL);
    }
    hone_status s = hone_model_plan_with(m, o, in, out);
    free(in);
    free(dims);
    return s;
}
/* The first failure is told: 1 is the rule. */
static hone_status try_sizes(hone_dims_known *f, const hone_model *m, const hone_options *o, char **text,
                             char *why, size_t room) {
    hone_status s = HONE_OK;
    bool open = false;
    for (int k = 0; k < f->n; k++) open |= f->at[k].value < 0 && !f->at[k].batch;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        f->otherwise = sizes[k];
        hone_status now = plan(m, f, o, text);
        if (!k && now) s = now, snprintf(why, room, "%s", hone_error());
        if (!now) s = HONE_OK, why[0] = 0;
        if (!now || !open || now == HONE_NO_MEMORY || now == HONE_BUG) break;
    }
    if (s) f->otherwise = 1;
    return s;
}
void hone_dims_try(hone_dims_known *f, const hone_model *m) {
    char *text = NULL, why[512];
    if (!try_sizes(f, m, NULL, &text, why, sizeof why)) hone_text_release(text);
    note_used(f, m);
}
static void list(const hone_dims_known *f, bool given, char *out, size_t room) {
    size_t n = 0;
    out[0] = 0;
    for (int k = 0; k < f->n && n + 1 < room; k++) {
        const free_dim *d = f->at + k;
        if ((d->value >= 0) != given || (!given && !d->used)) continue;
        n += (size_t)snprintf(out + n, room - n, "%s%s = %lld", n ? ", " : "", d->name,
                              (long long)(given      ? d->value
                                          : d->batch ? 1
                                                     : f->otherwise));
    }
    for (int k = 0; k < f->n_input && n + 1 < room && !given; k++)
        if (f->input[k].scalar && !f->input[k].known)
            n += (size_t)snprintf(out + n, room - n, "%s%.48s = scalar", n ? ", " : "", f->input[k].name);
}
static char *list_json(const hone_dims_known *f, bool given) {
    char *text = NULL;
    size_t bytes = 0;
    int n = 0;
    FILE *to = open_memstream(&text, &bytes);
    if (!to) return NULL;
    fputc('{', to);
    for (int k = 0; k < f->n; k++) {
        const free_dim *d = f->at + k;
        if ((d->value >= 0) != given || (!given && !d->used)) continue;
        if (n++) fputs(", ", to);
        hone_json_put_text(to, d->name, strlen(d->name));
        fprintf(to, ": %lld", (long long)(given ? d->value : d->batch ? 1 : f->otherwise));
    }
    for (int k = 0; k < f->n_input && !given; k++) {
        if (!f->input[k].scalar || f->input[k].known) continue;
        if (n++) fputs(", ", to);
        hone_json_put_text(to, f->input[k].name, strlen(f->input[k].name));
        fputs(": \"scalar\"", to);
    }
    fputc('}', to);
    if (!fclose(to)) return text;
    free(text);
    return NULL;
}
void hone_dims_guesses(const hone_dims_known *f, char *out, size_t room) { list(f, false, out, room); }
bool hone_dims_other(const hone_dims_known *f) { return f->otherwise != 1; }

static bool is_partial(const hone_json *plan) {
    const hone_json *whole = hone_json_get(plan, "whole"), *steps = hone_json_get(plan, "steps");
    bool control = false;
    for (const hone_json *s = steps ? steps->first : NULL; s && !control; s = s->next)
        control = !strcmp(hone_json_text(s, "tactic", ""), "control");
    return control || !whole || whole->type != HONE_JSON_TRUE;
}
int hone_plan_for(const hone_model *m, const hone_words *dims, const hone_options *o, hone_planned *out,
                  char **json) {
    char *text = NULL;
    *out = (hone_planned){0};
    hone_dims_known *f = hone_dims_read(m, dims);
    if (!f) return 1;
    hone_status s = out->status = try_sizes(f, m, o, &text, out->why, sizeof out->why);
    list(f, true, out->given, sizeof out->given);
    list(f, false, out->guessed, sizeof out->guessed);
    out->given_json = list_json(f, true), out->guessed_json = list_json(f, false);
    hone_dims_free(f);
    if (!s && !(out->plan = hone_json_read(text)))
        out->status = HONE_BUG, snprintf(out->why, sizeof out->why, "the plan's report cannot be read");
    out->partial = out->plan && is_partial(out->plan);
    if (json && out->plan) *json = text;
    else hone_text_release(text);
    return 0;
}
void hone_planned_free(hone_planned *p) {
    hone_json_free(p->plan);
    free(p->given_json), free(p->guessed_json);
    *p = (hone_planned){0};
}
