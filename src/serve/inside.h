/* SPDX-License-Identifier: Apache-2.0
   inside: the structs of the core, for its own files; protocols see core.h.

   Locks, outermost first: core->lock (the table of models), version->lock (its queue and counts). Nothing is
   called back with either held. */
#ifndef HONE_SERVE_INSIDE_H
#define HONE_SERVE_INSIDE_H
#include "serve/core.h"
#include "serve/given.h"
#include "serve/shared.h"

enum { HONE_SERVE_SIZES = 12, HONE_SERVE_COUNTED = 64, HONE_SERVE_BUCKETS = 96 };

typedef struct {                   /* how a version is run: measured, or as its config says */
    int max_batch;                 /* rows; 0: requests are not joined */
    int sizes[HONE_SERVE_SIZES];   /* of batches that are made, ascending, the first 1 */
    uint64_t ns[HONE_SERVE_SIZES]; /* that a run of each took; 0: not measured */
    int n_sizes;
    uint64_t delay_ns; /* that a request waits for others */
    uint64_t alone_ns; /* of a run on one thread; 0: it could not be tried */
    int instances, threads;
    bool kept;           /* found in the file of what was measured before */
    int queue;           /* requests that may wait */
    bool quick;          /* a run is short beside handing it to another thread */
    uint64_t timeout_us; /* in the queue; 0: none */
    int priorities, default_priority;
    const char *why; /* why requests are not joined; NULL: they are */
} hone_serve_way;

typedef struct { /* of a rehearsal */
    double rows_a_second, p95_ns;
} hone_serve_figures;
typedef struct {
    uint64_t count, ns;
} hone_serve_span;
typedef struct {
    uint64_t last_ms; /* of the epoch */
    uint64_t inferences, executions, rejected, cancelled;
    hone_serve_span success, fail, queue, input, infer, output;
    struct {
        hone_serve_span input, infer, output;
    } batch[HONE_SERVE_COUNTED + 1];   /* by rows; the last: and more */
    uint64_t took[HONE_SERVE_BUCKETS]; /* requests by what they took: four buckets a doubling of 1 us */
    uint64_t waited[HONE_SERVE_BUCKETS];
    uint64_t load_ns;
} hone_serve_counts;

typedef struct { /* requests of different lengths in one batch */
    int mask, n; /* the input that tells; lengths that dim 1 is filled to */
    int64_t length[HONE_SERVE_SIZES];
    uint64_t cuts[4]; /* a bit an output: it is as long as the inputs */
    bool on;
    const char *why; /* it is not on */
} hone_serve_ragged;

typedef struct hone_serve_ensemble hone_serve_ensemble;
typedef struct hone_serve_sequences hone_serve_sequences;
typedef struct { /* one place to run: a session, and a thread that serves the queue */
    hone_serve_version *version;
    hone_session *session;
    hone_value **given; /* of a model with sequences: all inputs, then all outputs, of a run */
    pthread_t thread;
    bool started, busy;
    void **gather; /* memory for batches, one an input */
    size_t *room;
} hone_serve_instance;

struct hone_serve_version {
    atomic_int holders;
    hone_serve_core *core;
    char *name, *path;
    int64_t number;
    int64_t stamp; /* of its files: another one is another version of the same number */
    hone_model *model;
    json_t *config; /* as the folder has it: config.pbtxt or hone.json, as JSON; an empty object: neither */
    char **labels;
    int n_labels;
    hone_port *port; /* as clients see them: inputs, then outputs */
    int inputs, outputs;
    hone_serve_ensemble *ensemble;   /* NULL: a model; then `model` is there */
    hone_serve_sequences *sequences; /* NULL: requests have no past */
    hone_serve_way way;
    hone_serve_ragged ragged;
    struct { /* bytes; the limit 0: none */
        int64_t limit, weights, packed, tensors;
    } memory;
    char *why; /* way.why, where it is ours */
    pthread_mutex_t lock;
    pthread_cond_t more;
    hone_serve_request *first, *last; /* waiting, by priority, then as they came */
    int waiting, running;
    bool closing;
    hone_serve_instance *instance;
    int n_instances;
    hone_serve_counts counts;
    hone_serve_version *next; /* among those to be ended */
};

typedef enum { HONE_SERVE_UNAVAILABLE, HONE_SERVE_LOADING, HONE_SERVE_LOADED } hone_serve_state;
typedef struct {
    int64_t number, stamp;
    hone_serve_state state;
    char *reason;
    hone_serve_version *version; /* held, where it is loaded */
} hone_serve_slot;
typedef struct {
    char *name, *folder; /* folder NULL: a lone file, or zoo: */
    char *lone;
    hone_serve_slot *slot; /* ascending by number */
    int n_slots;
    bool wanted;    /* loaded, or to be: 0 after unload, until load */
    bool seen;      /* by the scan that is under way */
    bool named;     /* at the start, itself: it must be there */
    json_t *graph;  /* the config of an ensemble, as last read; NULL: it is none */
    int round;      /* of ensembles: when it was last looked at; < 0: that is under way */
    json_t *config; /* given with load; NULL: the folder's */
    char *given;    /* the folder of files that came with load, gone by now; NULL: it is the repository's */
    int64_t stamp;  /* of the folder's config */
} hone_serve_entry;

typedef struct hone_serve_task {
    char *name, *config;
    hone_serve_given files;
    bool load, members;
    hone_serve_loaded *done;
    void *arg;
    struct hone_serve_task *next;
} hone_serve_task;

struct hone_serve_core {
    hone_server_options o; /* texts are the server's copies */
    int cores;
    uint64_t latency_goal_ns; /* 0: throughput */
    pthread_rwlock_t lock;
    hone_serve_entry *entry;
    int n_entries;
    atomic_int health;
    atomic_int under_way; /* requests submitted and not done */
    atomic_bool cut;      /* the time to stop is over: what waits in a queue is refused */
    /* the keeper: loads, unloads, watches, ends versions that nobody holds */
    pthread_t keeper;
    bool kept;
    pthread_mutex_t keeping;
    pthread_cond_t kept_more;
    hone_serve_task *task, **last_task;
    hone_serve_version *dead;
    atomic_ullong changed; /* versions that began or ended, so far */
    int round;             /* of looking at ensembles */
    bool go, quit;       /* it may begin to load; it is to end */
    int wake[2], watch;  /* a pipe that wakes the keeper; inotify, or -1 */
    uint64_t began_ns;
    hone_serve_shared *shared; /* regions that clients registered */
};

/* core.c */
hone_status hone_serve_core_start(const hone_server_options *, hone_serve_core **out);
void hone_serve_core_go(hone_serve_core *);           /* loads the repository; back when that is done */
hone_status hone_serve_core_named(hone_serve_core *); /* what was asked for by its name is there */
void hone_serve_core_drain(hone_serve_core *);
void hone_serve_core_cut(hone_serve_core *); /* what runs comes to its end, what waits is refused */
void hone_serve_core_free(hone_serve_core *);
void hone_serve_tell(hone_serve_core *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hone_serve_wake(hone_serve_core *);
/* repository.c: looks at the folder; loads and unloads what changed. By the keeper, and at start. */
hone_status hone_serve_scan(hone_serve_core *, bool first);
void hone_serve_do(hone_serve_core *, hone_serve_task *);
void hone_serve_entry_empty(hone_serve_core *, hone_serve_entry *, const char *reason);
/* version.c */
hone_serve_version *hone_serve_version_load(hone_serve_core *, const char *name, int64_t number,
                                            const char *path, json_t *config, const char *folder,
                                            hone_serve_error *);
/* of an ensemble; `member`: one a step, held meanwhile */
hone_serve_version *hone_serve_version_of_members(hone_serve_core *, const char *name, int64_t number,
                                                  json_t *config, const char *folder,
                                                  hone_serve_version *const *member, hone_serve_error *);
void hone_serve_version_end(hone_serve_version *); /* nobody holds it */
/* measure.c: fills version->way, and the sessions that it will run with */
int hone_serve_measure(hone_serve_version *, hone_serve_error *);
/* Made up inputs of so many rows, and room for outputs behind them, malloc'd; NULL: there are none. */
hone_value **hone_serve_made_inputs(const hone_serve_version *, int64_t rows);
/* memory.c: a limit of what weights and the tensors of all instances take. _begin: of weights */
int hone_serve_memory_begin(hone_serve_version *, hone_serve_error *);
int64_t hone_serve_memory_room(const hone_serve_version *); /* for one instance's tensors; 0: no limit */
/* after a session's largest run; adds its tensors where it `stays` */
int hone_serve_memory_note(hone_serve_version *, const hone_session *, bool stays, hone_serve_error *);
int hone_serve_memory_over(const hone_serve_version *, const char *why, hone_serve_error *); /* the error */
int64_t hone_serve_memory_all(const hone_serve_version *);
/* ragged.c */
int hone_serve_ragged_read(hone_serve_version *, hone_serve_error *);
void hone_serve_ragged_try(hone_serve_version *, hone_session *);
void hone_serve_ragged_fill(hone_serve_request *);
void hone_serve_ragged_cut(hone_serve_request *);
/* learned.c: what was measured, kept. `told`: of the config. False: nothing is kept, or it is not there */
bool hone_serve_learned_key(const hone_serve_version *, const hone_serve_way *told, char key[17]);
bool hone_serve_learned_find(hone_serve_version *, const char *key);
void hone_serve_learned_keep(const hone_serve_version *, const char *key);
/* rehearse.c: `in`, one row, of so many askers, for a moment, while the version's threads run */
bool hone_serve_rehearse(hone_serve_version *, hone_value *const *in, int askers, hone_serve_figures *out);
/* run.c */
int hone_serve_run_start(hone_serve_version *, hone_serve_error *);
void hone_serve_run_stop(hone_serve_version *);
void hone_serve_counted(hone_serve_version *, const hone_serve_request *); /* one that others ran */
void hone_serve_answer(hone_serve_core *, hone_serve_request *);           /* a list; outside of all locks */
int hone_serve_bucket(uint64_t ns);
uint64_t hone_serve_bucket_ns(int); /* its upper end */
/* request.c: an input that is a value already, which is shared. The value outlives the request. */
int hone_serve_input_value(hone_serve_request *, int k, hone_value *, hone_serve_error *);
/* ensemble.c: the graph, checked */
enum { HONE_SERVE_STEPS = 256, HONE_SERVE_TENSORS = 4096 };
bool hone_serve_is_ensemble(const json_t *config);
json_t *hone_serve_steps(const json_t *config); /* borrowed */
hone_serve_ensemble *hone_serve_ensemble_read(const char *name, const json_t *config, hone_serve_error *);
/* holds the members, and fills version->port */
int hone_serve_ensemble_bind(hone_serve_version *, hone_serve_version *const *member, hone_serve_error *);
void hone_serve_ensemble_free(hone_serve_ensemble *);
/* ensemble_run.c */
void hone_serve_ensemble_submit(hone_serve_request *);
/* sequence.c. All but _read and _free with the version's lock held. */
int hone_serve_sequences_read(hone_serve_version *, const char *folder, hone_serve_error *);
void hone_serve_sequences_free(hone_serve_sequences *);
hone_value *hone_serve_sequences_made(const hone_serve_version *, int input); /* borrowed; NULL: a client's */
int hone_serve_sequences_count(const hone_serve_version *);
int hone_serve_sequence_enter(hone_serve_request *); /* finds or begins its sequence; 0, or the error */
bool hone_serve_sequence_free_now(const hone_serve_request *); /* it can be run now */
void hone_serve_sequence_take(hone_serve_request *);           /* … and is about to be */
/* it was run, or (ran false) never will be */
void hone_serve_sequence_leave(hone_serve_request *, bool ran);
/* ends those that were idle for too long; when to look again, or 0 */
uint64_t hone_serve_sequences_sweep(hone_serve_version *, uint64_t now);
/* without the lock: the run itself */
hone_status hone_serve_sequence_run(hone_serve_instance *, hone_serve_request *);
/* config.c */
int hone_serve_config_lengthen(json_t *, const char *path, hone_serve_error *);
json_t *hone_serve_config_read(const char *folder, hone_serve_error *);
json_t *hone_serve_pbtxt(const char *text, size_t bytes, hone_serve_error *);
int hone_serve_config_way(const hone_serve_version *, hone_serve_way *, hone_serve_error *);
/* The devices of a list, "cuda:0,cuda:1"; the k-th, in turns. An empty or no list: none, "cpu". */
int hone_serve_devices(const char *list);
const char *hone_serve_device(const char *list, int k, char out[64]);
/* its config's, or the server's; may be NULL */
const char *hone_serve_device_list(const hone_serve_version *);
/* "a.b.c"; a list's first counts */
int64_t hone_serve_config_int(const json_t *, const char *path, int64_t otherwise);
#endif
