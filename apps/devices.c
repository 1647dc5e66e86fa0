/* SPDX-License-Identifier: Apache-2.0
   hone devices: what there is to run on. Draws the library's report of the machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "commands.h"
#include "hone/tools.h"
#include "json.h"
#include "table.h"
#include "term.h"

static void tell_cpu(const hone_json *cpu) {
    const char *name = hone_json_text(cpu, "name", ""), *forced = hone_json_text(cpu, "forced", "");
    double cores = hone_json_number(cpu, "cores", 0), online = hone_json_number(cpu, "cores_online", 0);
    const hone_json *levels = hone_json_get(cpu, "levels"), *caches = hone_json_get(cpu, "caches");
    printf("%scpu%s      %s, %s, %.0f core%s", hone_paint(stdout, HONE_BOLD), hone_paint(stdout, HONE_PLAIN),
           *name ? name : "unnamed", hone_json_text(cpu, "architecture", ""), cores, cores == 1 ? "" : "s");
    if (online > cores) printf(" to use, of %.0f", online);
    printf("\nlevels   ");
    for (const hone_json *l = levels ? levels->first : NULL; l; l = l->next)
        printf("%s%s", l == levels->first ? "" : ", ", hone_json_text(l, "name", ""));
    if (!levels || !levels->first) printf("baseline");
    if (*forced) printf("  (HONE_CPU=%s narrows them)", forced);
    printf("\n");
    if (caches && caches->first) printf("caches   ");
    for (const hone_json *c = caches ? caches->first : NULL; c; c = c->next) {
        const char *kind = hone_json_text(c, "kind", "");
        printf("%sL%.0f%s %s", c == caches->first ? "" : ", ", hone_json_number(c, "level", 0),
               !strcmp(kind, "Data")          ? "d"
               : !strcmp(kind, "Instruction") ? "i"
                                              : "",
               hone_text_binary(hone_json_number(c, "bytes", 0)));
    }
    if (caches && caches->first) printf("\n");
}
static void tell_peak(const char *label, const hone_json *p) {
    double copy = hone_json_number(p, "copy_bytes_per_s", 0);
    if (!p) return;
    printf("%s%s/s f32 multiply-add", label, hone_text_flops(hone_json_number(p, "f32_flops_per_s", 0)));
    if (copy > 0) printf(", %s/s copied", hone_text_bytes(copy));
    printf(" on %.0f thread%s\n", hone_json_number(p, "threads", 1),
           hone_json_number(p, "threads", 1) == 1 ? "" : "s");
}
static void tell_device(const hone_json *d) {
    char name[64];
    const char *problem = hone_json_text(d, "problem", ""), *missing = hone_json_text(d, "missing", "");
    const hone_json *found = hone_json_get(d, "found");
    const double in = hone_json_number(d, "copy_in_bytes_per_s", 0),
                 out = hone_json_number(d, "copy_out_bytes_per_s", 0);
    if (!found || found->type != HONE_JSON_TRUE) {
        printf("%s%-8s%s not here: it wants %s\n", hone_paint(stdout, HONE_BOLD),
               hone_json_text(d, "device", ""), hone_paint(stdout, HONE_PLAIN),
               *missing ? missing : "something that it does not name");
        return;
    }
    snprintf(name, sizeof name, "%s:%.0f", hone_json_text(d, "device", ""), hone_json_number(d, "number", 0));
    printf("%s%-8s%s %s", hone_paint(stdout, HONE_BOLD), name, hone_paint(stdout, HONE_PLAIN),
           hone_json_text(d, "name", "a device from outside"));
    if (*hone_json_text(d, "through", "")) printf(", %s", hone_json_text(d, "through", ""));
    if (hone_json_number(d, "memory_bytes", 0) > 0)
        printf(", %s", hone_text_bytes(hone_json_number(d, "memory_bytes", 0)));
    printf("\n");
    if (*problem) printf("         it cannot be used: %s\n", problem);
    if (in > 0)
        printf("         %s/s f32 multiply-add, ",
               hone_text_flops(hone_json_number(d, "f32_flops_per_s", 0)));
    if (in > 0) printf("%s/s copied in, ", hone_text_bytes(in));
    if (in > 0) printf("%s/s out\n", hone_text_bytes(out));
}
static void tell(const hone_json *r, const hone_json *others) {
    static const char *const head[] = {"family", "kernel", "for"};
    const hone_json *memory = hone_json_get(r, "memory"), *kernels = hone_json_get(r, "kernels"),
                    *measured = hone_json_get(r, "measured");
    tell_cpu(hone_json_get(r, "cpu"));
    printf("memory   %s, %s of it available\n", hone_text_bytes(hone_json_number(memory, "bytes", 0)),
           hone_text_bytes(hone_json_number(memory, "available_bytes", 0)));
    if (measured) {
        tell_peak("now      ", hone_json_get(measured, "one_thread"));
        tell_peak("         ", hone_json_get(measured, "all_threads"));
        printf("         measured just now, in a moment: on a busy machine both read low\n");
    }
    const hone_json *devices = hone_json_get(others, "devices");
    for (const hone_json *d = devices ? devices->first : NULL; d; d = d->next) tell_device(d);
    printf("\n");
    hone_table *t = hone_table_create("lll", head);
    for (const hone_json *k = kernels ? kernels->first : NULL; k; k = k->next) {
        hone_table_cell(t, "%s", hone_json_text(k, "family", ""));
        hone_table_cell(t, "%s", hone_json_text(k, "kernel", ""));
        hone_table_cell(t, "%s", hone_json_text(k, "for", ""));
    }
    hone_table_print(t, stdout, "");
}

static int devices(bool json, bool quick) {
    char *text = NULL, *others = NULL;
    hone_status s = hone_machine_report(!quick, &text);
    if (!s) s = hone_device_report(!quick, &others);
    if (s) {
        hone_text_release(text);
        return hone_args_failed(s);
    }
    hone_json *r = json ? NULL : hone_json_read(text), *o = json ? NULL : hone_json_read(others);
    /* two objects as one */
    if (json) hone_args_answered(), printf("%.*s, %s\n", (int)strlen(text) - 1, text, others + 1);
    else if (r && o) tell(r, o);
    hone_text_release(text), hone_text_release(others);
    int rc =
        json || (r && o)
            ? 0
            : hone_args_wrong("the report of the machine cannot be read: a bug of Hone's, please report it") +
                  1;
    hone_json_free(r), hone_json_free(o);
    return rc;
}
int hone_cmd_devices(int argc, char **argv) {
    bool json = false, quick = false;
    hone_words operands = {0};
    const hone_option options[] = {
        {"--quick", NULL, "measure nothing", HONE_ARG_FLAG, &quick, 0},
        {"--json", NULL, "print JSON", HONE_ARG_FLAG, &json, 0},
        {0},
    };
    const hone_usage usage = {"devices",
                              "",
                              0,
                              0,
                              "Shows what there is to run on: the CPU, its levels and caches, the kernels "
                              "chosen for it, other devices or "
                              "what they would want, and how fast all are just now.",
                              "hone devices\nHONE_CPU=avx2 hone devices --quick",
                              options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    if (rc == HONE_ARGS_GO) rc = devices(json, quick);
    hone_words_free(&operands);
    return rc;
}
