/* SPDX-License-Identifier: Apache-2.0
   quantize_score: a command of the user's says how good a model is. It runs through the shell, so that its
   words are what they are in a terminal, with nothing to read; what it prints before its last line is for
   people, and what it says on standard error is quoted where it fails. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "child.h"
#include "quantize.h"
#include "term.h"

enum { LINE = 512 };

double hone_quantize_score(hone_quantize_scorer *s, const char *model) {
    /* A last line without an end gets one. */
    static const char around[] = "{ %s \"$1\"\n} </dev/null; code=$?; echo; exit $code";
    const char *folder = getenv("TMPDIR");
    char log[1024], last[LINE] = "";
    const size_t room = strlen(s->command) + sizeof around;
    char *script = hone_must_alloc(room);
    hone_child c;
    double worth = NAN;
    *s->why = 0;
    snprintf(log, sizeof log, "%s/hone-metric-XXXXXX", folder && *folder ? folder : "/tmp");
    const int file = mkstemp(log);
    if (file >= 0) close(file);
    snprintf(script, room, around, s->command);
    const char *const argv[] = {"/bin/sh", "-c", script, "sh", model, NULL};
    if (file < 0 || !hone_child_start(&c, argv, log, NULL)) {
        snprintf(s->why, sizeof s->why, "%s", file < 0 ? "no temporary file can be made" : c.why);
        free(script);
        return NAN;
    }
    const double end = hone_clock_ms() + 1000 * s->seconds;
    for (const char *line; (line = hone_child_ask(&c, NULL, (end - hone_clock_ms()) / 1000));)
        if (line[strspn(line, " \t\r")]) snprintf(last, sizeof last, "%s", line);
    char *behind = last;
    if (c.code == 0) worth = strtod(last, &behind);
    if (c.code < 0 && hone_clock_ms() >= end)
        snprintf(s->why, sizeof s->why,
                 "it did not end within %g s; --metric-limit says how long it may take", s->seconds);
    else if (c.code == 127)
        snprintf(s->why, sizeof s->why,
                 "neither top1, cosine, mse, sqnr or perplexity nor a command that is there");
    else if (c.code != 0) snprintf(s->why, sizeof s->why, "%s", c.why);
    else if (behind == last || !isfinite(worth) || behind[strspn(behind, " \t\r")])
        worth = NAN,
        snprintf(s->why, sizeof s->why,
                 *last ? "the last line it prints is no number: %.100s" : "it prints nothing", last);
    unlink(log);
    free(script);
    return worth;
}
