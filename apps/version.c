/* SPDX-License-Identifier: Apache-2.0
   hone version: what this program was made of and by, and what of the CPU it uses. */
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "commands.h"
#include "hone/tools.h"
#include "json.h"
#include "term.h"

extern const char hone_build_commit[]; /* "1a2b3c4d5e6f", "1a2b3c4d5e6f+changes" or "" (cmake/commit.cmake) */

#if defined(__clang__)
static const char compiler[] = "clang " __clang_version__;
#else
static const char compiler[] = "gcc " __VERSION__;
#endif

static void put_text(const char *key, const char *text) {
    printf("\"%s\": ", key);
    hone_json_put_text(stdout, text, strlen(text));
}
/* The highest of the CPU's levels; "baseline" where there is none. */
static const char *level_of(const hone_json *cpu) {
    const hone_json *levels = hone_json_get(cpu, "levels"), *last = NULL;
    for (const hone_json *l = levels ? levels->first : NULL; l; l = l->next) last = l;
    return hone_json_text(last, "name", "baseline");
}
static int version(bool json) {
    char *text = NULL;
    hone_status s = hone_machine_report(0, &text);
    if (s) return hone_args_failed(s);
    hone_json *r = hone_json_read(text);
    const hone_json *cpu = hone_json_get(r, "cpu");
    const char *name = hone_json_text(cpu, "name", ""),
               *architecture = hone_json_text(cpu, "architecture", ""), *level = level_of(cpu);
    if (json) {
        hone_args_answered();
        printf("{"), put_text("version", hone_version());
        printf(", "), put_text("commit", hone_build_commit);
        printf(", "), put_text("compiler", compiler);
        printf(", "), put_text("architecture", architecture);
        printf(", "), put_text("cpu", name);
        printf(", "), put_text("cpu_level", level);
        printf("}\n");
    } else {
        hone_print(stdout, "hone %s\n", hone_version());
        hone_print(stdout, "commit    %s\n", *hone_build_commit ? hone_build_commit : "not known");
        hone_print(stdout, "compiler  %s\n", compiler);
        hone_print(stdout, "cpu       %s, %s: %s\n", name, architecture, level);
    }
    hone_json_free(r);
    hone_text_release(text);
    return 0;
}

int hone_cmd_version(int argc, char **argv) {
    bool json = false;
    hone_words operands = {0};
    const hone_option options[] = {{"--json", NULL, "print JSON", HONE_ARG_FLAG, &json, 0}, {0}};
    const hone_usage usage = {
        "version",
        "",
        0,
        0,
        "Shows the version, the commit and compiler it was built of and by, and the CPU's level.",
        "hone version\nhone version --json",
        options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    if (rc == HONE_ARGS_GO) rc = version(json);
    hone_words_free(&operands);
    return rc;
}
