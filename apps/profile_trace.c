/* SPDX-License-Identifier: Apache-2.0
   profile_trace: the steps of a run in the order in which they run, as a trace that ui.perfetto.dev and
   Chrome's own page for tracing show. Each has the length that was measured; what lay between them was not,
   so they stand one behind the other. */
#include <stdio.h>
#include <string.h>

#include "load.h"
#include "output.h"
#include "profile.h"

int hone_profile_trace(const hone_profiled *j, const hone_json *steps, const double *ns) {
    hone_output out;
    double at = 0;
    int k = 0, rc = hone_output_begin("--trace", j->trace, &out);
    if (rc) return rc;
    FILE *f = out.to;
    fprintf(f, "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n{\"ph\": \"M\", \"pid\": 1, \"name\": "
               "\"process_name\", \"args\": {");
    hone_json_first_text(f, "name", hone_model_shown(j->path));
    fprintf(f, "}},\n{\"ph\": \"M\", \"pid\": 1, \"tid\": 1, \"name\": \"thread_name\", \"args\": {");
    hone_json_first_text(f, "name", j->where.device ? j->where.device : "cpu");
    fprintf(f, "}}");
    for (const hone_json *s = steps->first; s; s = s->next, k++) {
        const char *node = hone_json_text(s, "node", "");
        char op[96];
        hone_profile_op(s, op, sizeof op);
        fprintf(f, ",\n{\"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": %.3f, \"dur\": %.3f", at * 1e-3,
                ns[k] * 1e-3);
        hone_json_member_text(f, "name", *node ? node : "(between devices)");
        hone_json_member_text(f, "cat", op);
        fprintf(f, ", \"args\": {"), hone_json_first_text(f, "op", op);
        hone_json_member_text(f, "tactic", hone_json_text(s, "tactic", ""));
        if (hone_json_get(s, "bytes")) hone_json_member_number(f, "bytes", hone_json_number(s, "bytes", 0));
        if (hone_json_get(s, "launches"))
            hone_json_member_number(f, "launches", hone_json_number(s, "launches", 0));
        fprintf(f, "}}");
        at += ns[k];
    }
    fprintf(f, "\n]}\n");
    return hone_output_end(&out, true);
}
