/* SPDX-License-Identifier: Apache-2.0
   profile: what hone profile has measured (profile.c), and how it is told (profile_tell.c,
   profile_trace.c). */
#ifndef HONE_APPS_PROFILE_H
#define HONE_APPS_PROFILE_H
#include "bench.h"
#include "feed.h"
#include "hone/tools.h"
#include "json.h"
#include "stats.h"
#include "where.h"

typedef enum { HONE_PROFILE_BY_NODE, HONE_PROFILE_BY_OP, HONE_PROFILE_BY_TACTIC } hone_profile_grouping;
extern const char *const hone_profile_groupings[];

typedef struct { /* a node, or all nodes of an op or a tactic */
    char node[160], op[96], tactic[48];
    int steps, nodes;
    double launches;     /* of kernels; 0 on the CPU */
    double ns;           /* a run */
    double flops, bytes; /* a run; NAN: not known */
    double largest;      /* ns of the step that the tactic is of */
    bool wise;           /* follows measured choices */
    bool choice;         /* there was something to choose */
} hone_profile_row;

typedef struct {
    const char *path, *precision, *wisdom, *by, *trace;
    int seed, threads, runs, top;
    double seconds;
    bool json, cast;
    hone_where where;
    hone_words inputs, shapes, dims;
    hone_feed_wish feed;

    hone_model *model;
    hone_session *session, *plain; /* the second one times nothing but whole runs: on devices, where steps are
                                      replayed by themselves */
    hone_fed *fed;
    hone_value **in, **out, **there; /* there: inputs that lie on the device, or NULL */
    int n_in, n_out;
    hone_options options;

    hone_times times; /* of runs that count */
    double first_ms, median_ms;
    double *sample; /* SAMPLES numbers a step: ns of a run */
    int samples;
    hone_profile_row *row;
    int n;
    double steps_ns; /* of all rows */
    hone_speed speed;
    bool away; /* on a device that is not the CPU */
    bool whole;
    char advice[2][256];
    int n_advice;
} hone_profiled;

typedef enum {
    HONE_BOUND_NOT_KNOWN,
    HONE_BOUND_ARITHMETIC,
    HONE_BOUND_MEMORY,
    HONE_BOUND_CACHE
} hone_bound_by;
typedef struct {
    double arithmetic, memory; /* shares of the two roofs; NAN: not known */
    double share;              /* of the nearer one */
    hone_bound_by by;
} hone_roofs;
hone_roofs hone_profile_roofs(const hone_profiled *, const hone_profile_row *);

void hone_profile_op(const hone_json *step, char *out, size_t room); /* "Conv + Relu" */
void hone_profile_tell(const hone_profiled *, hone_profile_grouping);
void hone_profile_tell_json(const hone_profiled *, hone_profile_grouping);
/* The steps of a run, one after another, for Perfetto and chrome://tracing. ns: of each step of `steps`
 * ("steps" of a session's report). 0, or the exit code: one line was said. */
int hone_profile_trace(const hone_profiled *, const hone_json *steps, const double *ns);
#endif
