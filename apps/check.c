/* SPDX-License-Identifier: Apache-2.0
   hone check: loads and compiles a model and plans a run of it, without running it. Lists every problem when
   it cannot; else where it would run and in how much memory. For people and for scripts: the exit code is the
   answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "check.h"
#include "commands.h"
#include "dims.h"
#include "hone/hone.h"
#include "json.h"
#include "load.h"
#include "term.h"
#include "where.h"

/* How a node runs, by the tactics of its steps; the highest of them counts. */
typedef enum { NO_STEP, TILE, KERNEL, DEVICE, HOST, WAYS } way;
static const struct {
    const char *json, *text;
} ways[WAYS] = {{"none", "free (views, known numbers)"},
                {"tile", "by tile code"},
                {"kernel", "by kernels"},
                {"device", "on other devices"},
                {"host", "on the host"}};
static way way_of(const char *tactic) {
    static const char *const tile[] = {"tile", "copy", "over", "interpret"}, *const host[] = {"host",
                                                                                              "control"};
    for (size_t k = 0; k < sizeof host / sizeof *host; k++)
        if (!strcmp(tactic, host[k])) return HOST;
    for (size_t k = 0; k < sizeof tile / sizeof *tile; k++)
        if (!strcmp(tactic, tile[k])) return TILE;
    return KERNEL;
}

typedef struct {
    int count[WAYS], nodes, steps;
    double memory; /* all of it */
} account;
static account sum_up(const hone_json *plan) {
    account a = {0};
    const hone_json *nodes = hone_json_get(plan, "nodes"), *steps = hone_json_get(plan, "steps");
    a.nodes = nodes ? nodes->n : 0, a.steps = steps ? steps->n : 0;
    way *of = hone_must_alloc(sizeof *of * (size_t)(a.nodes + 1));
    for (const hone_json *s = steps ? steps->first : NULL; s; s = s->next) {
        int k = (int)hone_json_number(s, "number", -1);
        const char *device = hone_json_text(s, "device", "cpu:0");
        if (hone_json_get(s, "copied_bytes")) continue; /* between memories */
        way w = strcmp(device, "cpu:0") ? DEVICE : way_of(hone_json_text(s, "tactic", ""));
        if (k >= 0 && k < a.nodes && w > of[k]) of[k] = w;
    }
    for (int k = 0; k < a.nodes; k++) a.count[of[k]]++;
    free(of);
    static const char *const parts[] = {"parameter_bytes", "packed_bytes", "arena_bytes",
                                        "scratch_bytes",   "input_bytes",  "output_bytes"};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) a.memory += hone_json_number(plan, parts[k], 0);
    return a;
}

static double machine_memory(void) {
    char *text = NULL;
    hone_json *r = hone_machine_report(0, &text) ? NULL : hone_json_read(text);
    double bytes = hone_json_number(hone_json_get(r, "memory"), "bytes", 0);
    hone_json_free(r);
    hone_text_release(text);
    return bytes;
}

static int problems(const char *text, bool json) {
    int n = 0;
    for (const char *line = text; *line; n++) {
        size_t length = strcspn(line, "\n");
        if (json) {
            printf(n ? ", " : "");
            hone_json_put_text(stdout, line, length);
        } else {
            hone_print(stdout, "  %.*s\n", (int)length, line);
        }
        line += length + (line[length] == '\n');
    }
    return n;
}

static void tell_text(const char *key, const char *text) {
    printf(", \"%s\": ", key);
    hone_json_put_text(stdout, text, strlen(text));
}
/* What was wrong with the file and did not matter. */
static void tell_forgiven(const hone_model *m, bool json) {
    char *text = NULL;
    hone_json *r = m && !hone_model_report(m, "summary", &text) ? hone_json_read(text) : NULL;
    const hone_json *list = hone_json_get(r, "forgiven");
    if (json) printf(", \"forgiven\": [");
    for (const hone_json *one = list ? list->first : NULL; one; one = one->next) {
        if (!json) {
            hone_print(stdout, "forgave %s\n", one->text ? one->text : "");
            continue;
        }
        if (one != list->first) printf(", ");
        hone_json_put_text(stdout, one->text, strlen(one->text));
    }
    if (json) printf("]");
    hone_json_free(r);
    hone_text_release(text);
}

static void tell_json(const char *path, const char *wrong, const hone_planned *p, const hone_model *m,
                      const char *device) {
    static const char *const copied[] = {
        "arena_bytes",   "lower_bound_bytes", "parameter_bytes", "packed_bytes",
        "scratch_bytes", "input_bytes",       "output_bytes",    "flops"};
    printf("{\"model\": ");
    path = hone_model_shown(path);
    hone_json_put_text(stdout, path, strlen(path));
    printf(", \"ok\": %s, \"problems\": [", wrong ? "false" : "true");
    if (wrong) problems(wrong, true);
    printf("]");
    tell_forgiven(m, true);
    if (p->plan) {
        account a = sum_up(p->plan);
        const hone_json *whole = hone_json_get(p->plan, "whole");
        hone_check_floats(path, m, true);
        tell_text("device", device);
        printf(", \"dims_given\": %s, \"dims_guessed\": %s", p->given_json ? p->given_json : "null",
               p->guessed_json ? p->guessed_json : "null");
        printf(", \"whole\": %s, \"nodes\": %d, \"steps\": %d, \"nodes_by\": {",
               whole && whole->type == HONE_JSON_TRUE ? "true" : "false", a.nodes, a.steps);
        for (int k = 0; k < WAYS; k++) printf("%s\"%s\": %d", k ? ", " : "", ways[k].json, a.count[k]);
        printf("}, \"peak_bytes\": %.0f", a.memory);
        if (hone_json_get(p->plan, "devices"))
            printf(", \"copies\": %.0f, \"copied_bytes\": %.0f", hone_json_number(p->plan, "copies", 0),
                   hone_json_number(p->plan, "copied_bytes", 0));
        for (size_t k = 0; k < sizeof copied / sizeof *copied; k++)
            printf(", \"%s\": %.0f", copied[k], hone_json_number(p->plan, copied[k], 0));
    }
    printf("}");
}
/* Where steps run, what goes to the host instead and why, and what has to be copied for it. */
static void tell_devices(const hone_json *plan) {
    const hone_json *devices = hone_json_get(plan, "devices"), *host = hone_json_get(plan, "host");
    if (!devices) return;
    printf("device  ");
    for (const hone_json *d = devices->first; d; d = d->next)
        hone_print(stdout, "%s %.0f step%s, ", hone_json_text(d, "name", ""), hone_json_number(d, "steps", 0),
                   hone_json_number(d, "steps", 0) == 1 ? "" : "s");
    hone_print(stdout, "copies %.0f, %s a run\n", hone_json_number(plan, "copies", 0),
               hone_text_bytes(hone_json_number(plan, "copied_bytes", 0)));
    for (const hone_json *h = host ? host->first : NULL; h; h = h->next)
        hone_print(stdout, "  on the cpu: %s (%s): %s\n", hone_json_text(h, "node", ""),
                   hone_json_text(h, "op", ""), hone_json_text(h, "why", ""));
}
static void tell_plan(const hone_planned *p, const char *device) {
    account a = sum_up(p->plan);
    const hone_json *whole = hone_json_get(p->plan, "whole"), *waits = hone_json_get(p->plan, "waits_for");
    const char *dim = hone_paint(stdout, HONE_DIM), *plain = hone_paint(stdout, HONE_PLAIN);
    if (*p->given || *p->guessed) {
        hone_print(stdout, "for     %s", p->given);
        if (*p->guessed)
            hone_print(stdout, "%s%s  %s(guessed; --dim NAME=SIZE says otherwise)%s", *p->given ? ", " : "",
                       p->guessed, dim, plain);
        printf("\n");
    }
    hone_print(stdout, "where   %s: %d node%s in %d step%s", device, a.nodes, a.nodes == 1 ? "" : "s",
               a.steps, a.steps == 1 ? "" : "s");
    const way order[] = {DEVICE, KERNEL, TILE, HOST, NO_STEP};
    for (int k = 0, told = 0; k < WAYS; k++)
        if (a.count[order[k]])
            hone_print(stdout, "%s%d %s", told++ ? ", " : ": ", a.count[order[k]], ways[order[k]].text);
    printf("\n");
    tell_devices(p->plan);
    hone_print(stdout, "memory  %s%s at the peak", p->partial ? "at least " : "", hone_text_bytes(a.memory));
    const struct {
        const char *key, *text;
    } parts[] = {{"parameter_bytes", "parameters"}, {"packed_bytes", "packed parameters"},
                 {"arena_bytes", "tensors"},        {"scratch_bytes", "scratch a thread"},
                 {"input_bytes", "inputs"},         {"output_bytes", "outputs"}};
    for (size_t k = 0, told = 0; k < sizeof parts / sizeof *parts; k++) {
        double bytes = hone_json_number(p->plan, parts[k].key, 0);
        if (bytes > 0)
            hone_print(stdout, "%s%s %s", told++ ? ", " : ": ", hone_text_bytes(bytes), parts[k].text);
    }
    printf("\n");
    if (!p->partial) return;
    if (!whole || whole->type == HONE_JSON_TRUE) {
        printf("note    bodies of Loop, Scan and If are planned when they run, and are not counted here\n");
        return;
    }
    hone_print(stdout,
               "note    that is up to node '%s': shapes after it depend on the numbers of '%s', and are "
               "planned when those are there\n",
               hone_json_text(p->plan, "cut_at", "?"),
               waits && waits->first && waits->first->text ? waits->first->text : "?");
}

static int check(const char *path, const hone_words *dims, const hone_where *where, bool json) {
    hone_options options;
    hone_options_default(&options);
    hone_where_set(where, &options);
    hone_model *model = NULL;
    hone_planned p = {0};
    int rc = 0;
    char why[16384];
    hone_status s = hone_load(path, &model, why, sizeof why);
    const char *wrong = s ? why : NULL;
    if (!s) rc = hone_plan_for(model, dims, &options, &p, NULL);
    if (rc && !json) goto done; /* a mistake in --dim, told already */
    if (rc) s = HONE_BAD_INPUT, wrong = hone_args_last();
    char planned[1200];
    if (!s && !p.plan) {
        s = p.status;
        char guessed[sizeof p.guessed * 2];
        hone_text_visible(guessed, sizeof guessed, p.guessed, strlen(p.guessed), 0);
        snprintf(planned, sizeof planned, "%s%s%s%s", p.why, *guessed ? " (with " : "", guessed,
                 *guessed ? ", which is a guess: --dim NAME=SIZE says otherwise)" : "");
        wrong = planned;
    }
    double need = p.plan ? sum_up(p.plan).memory : 0, have = need > 0 ? machine_memory() : 0;
    if (have > 0 && need > have) {
        s = HONE_NO_MEMORY;
        snprintf(planned, sizeof planned, "a run%s%s%s%s needs %s of memory, and this machine has %s",
                 *p.given || *p.guessed ? " with " : "", p.given, *p.given && *p.guessed ? ", " : "",
                 p.guessed, hone_text_bytes(need), hone_text_bytes(have));
        wrong = planned;
    }
    rc = !wrong ? 0 : s == HONE_BUG ? 2 : 1;
    if (json) {
        tell_json(path, wrong, &p, model, options.device ? options.device : "cpu");
    } else if (wrong) {
        hone_print(stdout, "%s%s cannot run:%s\n", hone_paint(stdout, HONE_RED), hone_model_shown(path),
                   hone_paint(stdout, HONE_PLAIN));
        int n = problems(wrong, false);
        hone_args_wrong("%d problem%s", n, n == 1 ? "" : "s");
    } else {
        hone_print(stdout, "%s%s can run%s: %d input%s, %d output%s\n", hone_paint(stdout, HONE_GREEN),
                   hone_model_shown(path), hone_paint(stdout, HONE_PLAIN), hone_model_inputs(model),
                   hone_model_inputs(model) == 1 ? "" : "s", hone_model_outputs(model),
                   hone_model_outputs(model) == 1 ? "" : "s");
        tell_forgiven(model, false);
        hone_check_floats(path, model, false);
        tell_plan(&p, options.device ? options.device : "cpu");
    }
done:
    hone_planned_free(&p);
    hone_model_free(model);
    return rc;
}

int hone_cmd_check(int argc, char **argv) {
    bool json = false;
    hone_words operands = {0}, dims = {0};
    hone_where where = {0};
    const hone_option options[] = {
        {"--dim", "NAME=SIZE", "a free dim of the inputs, as in batch=8; others are guessed", HONE_ARG_LIST,
         &dims, 0},
        HONE_WHERE_OPTIONS(&where),
        {"--json", NULL, "print JSON", HONE_ARG_FLAG, &json, 0},
        {0},
    };
    const hone_usage usage = {"check",
                              "MODEL...",
                              1,
                              -1,
                              "Says whether a model can run, where and in how much memory, and every problem "
                              "when it cannot. Nothing is run. Exits 0 only when "
                              "it can.",
                              "hone check model.onnx\nhone check models/*.onnx\nhone check model.onnx --dim "
                              "batch=8 --json\nhone check model.onnx > /dev/null && "
                              "echo fine",
                              options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    if (rc == HONE_ARGS_GO && !(rc = hone_where_begin(&where))) {
        if (json) hone_args_answered();
        if (json && operands.n > 1) putchar('[');
        for (int k = 0; k < operands.n; k++) {
            if (k) printf(json ? ",\n" : "\n");
            int one = check(operands.at[k], &dims, &where, json);
            rc = one > rc ? one : rc;
        }
        if (json) printf(operands.n > 1 ? "]\n" : "\n");
    }
    hone_where_free(&where);
    hone_words_free(&operands);
    hone_words_free(&dims);
    return rc;
}
