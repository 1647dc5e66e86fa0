/* SPDX-License-Identifier: Apache-2.0
   compare_find: which runtimes there are. compare.py asks its Python for modules; nothing is imported for
   that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "child.h"

static const char *const known[HONE_RUNTIMES][2] = {
    {"hone", "Hone"}, {"ort", "ONNX Runtime"}, {"openvino", "OpenVINO"}, {"torch", "PyTorch"}, {"mnn", "MNN"},
    {"ncnn", "ncnn"}, {"tvm", "TVM"}};

void hone_runtimes_list(hone_runtime runtime[HONE_RUNTIMES]) {
    for (int k = 0; k < HONE_RUNTIMES; k++)
        runtime[k] = (hone_runtime){
            .name = known[k][0], .label = known[k][1], .wanted = true, .why = "not looked for"};
    snprintf(runtime[0].version, sizeof runtime[0].version, "%s", hone_version());
}

static int by_name(const char *name, size_t n) {
    for (int k = 0; k < HONE_RUNTIMES; k++)
        if (strlen(known[k][0]) == n && !memcmp(known[k][0], name, n)) return k;
    return -1;
}

int hone_runtimes_choose(hone_runtime *r, const char *with) {
    for (int k = 1; k < HONE_RUNTIMES; k++) r[k].wanted = !with;
    if (!with || !strcmp(with, "none")) return 0;
    for (const char *at = with; *at;) {
        size_t n = strcspn(at, ",");
        int k = by_name(at, n);
        if (k < 0) {
            char word[64], names[HONE_RUNTIMES * 16] = "";
            const char *name[HONE_RUNTIMES];
            for (k = 0; k < HONE_RUNTIMES; k++) {
                name[k] = known[k][0];
                if (k) snprintf(names + strlen(names), sizeof names - strlen(names), "%s, ", known[k][0]);
            }
            snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), at);
            const char *near = hone_args_nearest(word, name, HONE_RUNTIMES);
            if (near)
                return hone_args_wrong("--with %s: there is no runtime '%s'; did you mean '%s'?", with, word,
                                       near);
            return hone_args_wrong("--with %s: there is no runtime '%s'; there are %sor 'none'", with, word,
                                   names);
        }
        r[k].wanted = true;
        at += n + (at[n] == ',');
    }
    return 0;
}

/* One line of what `find` says: "found NAME VERSION" or "missing NAME WHY". False: neither. */
static bool note(hone_runtime *r, const char *python, const char *line) {
    bool found = !strncmp(line, "found ", 6), missing = !strncmp(line, "missing ", 8);
    const char *name = line + (found ? 6 : 8);
    if (!found && !missing) return false;
    size_t n = strcspn(name, " ");
    int k = by_name(name, n);
    const char *rest = name + n + (name[n] == ' ');
    /* of no interest, or found in another Python already */
    if (k < 1 || r[k].python || !r[k].wanted) return true;
    if (found) {
        r[k].python = python;
        snprintf(r[k].version, sizeof r[k].version, "%.40s", rest);
    } else if (!strcmp(r[k].why, "not looked for")) snprintf(r[k].why, sizeof r[k].why, "%.280s", rest);
    return true;
}

void hone_runtimes_find(hone_runtime *r, const hone_words *pythons, const char *script, const char *folder,
                        double limit) {
    char log[512];
    int left = 0;
    for (int k = 1; k < HONE_RUNTIMES; k++) left += r[k].wanted;
    snprintf(log, sizeof log, "%s/find.log", folder);
    for (int p = 0; p < pythons->n && left; p++) {
        const char *argv[] = {pythons->at[p], script, "find", NULL}, *line = NULL;
        hone_child c;
        bool ok = hone_child_start(&c, argv, log, NULL), ended = false;
        while (ok && !ended && (line = hone_child_ask(&c, NULL, limit))) {
            ended = !strcmp(line, "end");
            if (!ended && !note(r, pythons->at[p], line)) hone_child_refuse(&c, line), ok = false;
        }
        hone_child_end(&c);
        for (int k = 1; k < HONE_RUNTIMES && !ended; k++) /* what it did not say, it does not have */
            if (r[k].wanted && !r[k].python && !strcmp(r[k].why, "not looked for"))
                snprintf(r[k].why, sizeof r[k].why, "looked for by %.60s: %.200s", pythons->at[p], c.why);
    }
    for (int k = 1; k < HONE_RUNTIMES; k++)
        if (r[k].wanted && !r[k].python && !strcmp(r[k].why, "not looked for"))
            snprintf(r[k].why, sizeof r[k].why, "not found");
}
